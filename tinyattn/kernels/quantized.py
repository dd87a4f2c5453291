"""The product with a matrix of numbers with few bits (a quantized matrix), as loops.

Each row consists of blocks of 32 numbers, which share a scale d (and an offset m). Each number is
stored as an integer q. The product is computed directly from q, without unpacking w:

    Σ_i w_i x_i = d Σ_i q_i x_i + m Σ_i x_i   for   w_i = d q_i + m
"""

import numpy as np

from tinyattn.kernels import jit


@jit
def q4_1(x, d, m, packed):
    """Return y_tr = Σ_b (d_rb Σ_i q_rbi x_tbi + m_rb Σ_i x_tbi), with q from 0 to 15.

    x [T, C], d and m [R, C/32], packed [R, C/32, 16], y [T, R]. Byte i of a block contains q_i in
    its lower half and q_(16+i) in its upper half.
    """
    T, (R, B) = len(x), d.shape
    y = np.zeros((T, R), x.dtype)
    for t in range(T):
        for r in range(R):
            for b in range(B):
                qx = sum_x = x.dtype.type(0)
                for i in range(16):
                    low, high = x[t, 32 * b + i], x[t, 32 * b + 16 + i]
                    qx += (packed[r, b, i] & 15) * low + (packed[r, b, i] >> 4) * high
                    sum_x += low + high
                y[t, r] += d[r, b] * qx + m[r, b] * sum_x
    return y


@jit
def q8_0(x, d, q):
    """Return y_tr = Σ_b d_rb Σ_i q_rbi x_tbi, with q from -128 to 127.

    x [T, C], d [R, C/32], q [R, C/32, 32], y [T, R].
    """
    T, (R, B) = len(x), d.shape
    y = np.zeros((T, R), x.dtype)
    for t in range(T):
        for r in range(R):
            for b in range(B):
                qx = x.dtype.type(0)
                for i in range(32):
                    qx += q[r, b, i] * x[t, 32 * b + i]
                y[t, r] += d[r, b] * qx
    return y
