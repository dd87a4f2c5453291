"""Thresholds for the amount of work above which a second thread makes a kernel faster.

Sharing a loop takes time, because sleeping workers must be woken and the last worker must finish.
The comments give µs on one thread and on two, at the threshold and at four times the threshold.
They were measured in float32 on two cores with AVX-512 (best of some hundred runs, while other
programs were running).
"""

#                        the work is counted in             µs at the threshold µs at four times
ATTENTION = 1e6  #       multiplications, forward           42 and 45           127 and 80
MATMUL = 1e6  #          multiplications                    27 and 20           83 and 53
MATVEC = 2.5e5  #        multiplications                    10 and 11           36 and 34
CONV = 1e6  #            multiplications                    37 and 41           111 and 71
RECURRENT = 2**20  #     multiplications of all steps       128 and 93          429 and 346
RECURRENT_CELL = 40_000  # numbers of p, for all gates      23 and 31           87 and 90
ROWWISE = 40_000  #      numbers (here softmax)             22 and 23           84 and 47
POOL = 36_864  #         numbers read (here with AVX2)      58 and 37           229 and 119
POOL_OF_FOUR = 2**17  #  numbers read (here with AVX2)      34 and 20           132 and 85
KNN_SORT = 2048  #       points that are sorted in leaves   69 and 79           245 and 262

# Multiplications of one product in a layer of `decode`. The threshold is lower than MATVEC, because
# the workers are already awake after the previous product, so sharing costs less.
DECODE = 40_000
