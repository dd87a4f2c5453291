"""From how much work a second thread pays: below these numbers one thread does all of it.

Sharing a loop costs waking the workers and waiting for the last of them.
"""

ATTENTION = 1e6  # multiplications
MATMUL = 3e6  # multiplications
MATVEC = 2.5e5  # multiplications
DECODE = 40_000  # multiplications; the workers are awake already, from the kernel before
CONV = 1e6  # multiplications
RECURRENT = 2**20  # multiplications of all steps
RECURRENT_CELL = 40_000  # numbers of p, what the input says to all gates
ROWWISE = 40_000  # numbers; segments, rows by number and batch norm too
POOL = 2**16  # numbers read, each as often as it is in a window
KNN_SORT = 2048  # points that are sorted into leaves
