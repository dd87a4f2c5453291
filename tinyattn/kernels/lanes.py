"""Blocks of LANES rows side by side: inner loops that the compiler turns into vector instructions.

A vector instruction does the same with 8 or 16 numbers at once. So a block holds the rows of a
matrix next to each other: element (i, t), feature i of row t, is at [i · LANES + t]. Every inner
loop runs over the rows t, with a fixed length, and the rows never mix. A block that has fewer
rows is filled up with zeros.
"""

import math

import numpy as np

from tinyattn.kernels import FASTMATH, jit, overload

LANES = 64


@jit
def blocks(T):
    """Number of blocks of LANES rows."""
    return (T + LANES - 1) // LANES


@jit
def lanes(n, like):
    """Room for n features of a block."""
    return np.empty(n * LANES, like.dtype)


@jit
def into_lanes(out, x, t0, rows, factor):
    """out[d, t] = factor · x[t0 + t, d], with zeros behind the last row."""
    out[:] = 0
    for t in range(rows):
        for d in range(x.shape[1]):
            out[d * LANES + t] = factor * x[t0 + t, d]


@jit
def add_product(c, a, b):
    """c[i, t] += Σ_k a[i, k] b[k, t], for b and c in lanes.

    Four rows of c meet four rows of b: sixteen multiply-adds for eight vectors read, four written.
    """
    I, K = a.shape
    fours_i, fours_k = I // 4 * 4, K // 4 * 4
    for i in range(0, fours_i, 4):
        ci = c[i * LANES : (i + 4) * LANES]
        for k in range(0, fours_k, 4):
            bk = b[k * LANES : (k + 4) * LANES]
            p0, p1, p2, p3 = a[i, k], a[i, k + 1], a[i, k + 2], a[i, k + 3]
            q0, q1, q2, q3 = a[i + 1, k], a[i + 1, k + 1], a[i + 1, k + 2], a[i + 1, k + 3]
            r0, r1, r2, r3 = a[i + 2, k], a[i + 2, k + 1], a[i + 2, k + 2], a[i + 2, k + 3]
            s0, s1, s2, s3 = a[i + 3, k], a[i + 3, k + 1], a[i + 3, k + 2], a[i + 3, k + 3]
            for t in range(LANES):
                t1, t2, t3 = LANES + t, 2 * LANES + t, 3 * LANES + t
                b0, b1, b2, b3 = bk[t], bk[t1], bk[t2], bk[t3]
                ci[t] = ci[t] + p0 * b0 + p1 * b1 + p2 * b2 + p3 * b3
                ci[t1] = ci[t1] + q0 * b0 + q1 * b1 + q2 * b2 + q3 * b3
                ci[t2] = ci[t2] + r0 * b0 + r1 * b1 + r2 * b2 + r3 * b3
                ci[t3] = ci[t3] + s0 * b0 + s1 * b1 + s2 * b2 + s3 * b3
    for i in range(I):  # the rows and columns that do not fill a four
        for k in range(fours_k if i < fours_i else 0, K):
            for t in range(LANES):
                c[i * LANES + t] += a[i, k] * b[k * LANES + t]


def add_dots(c, a, b):
    """c[i, j] += Σ_t a[i, t] b[j, t], for a and b in lanes."""
    I, J = c.shape
    pairs, fours = I // 2 * 2, J // 4 * 4
    zero = c.dtype.type(0)
    for i in range(0, pairs, 2):
        ai = a[i * LANES : (i + 2) * LANES]
        for j in range(0, fours, 4):
            bj = b[j * LANES : (j + 4) * LANES]
            p0 = p1 = p2 = p3 = r0 = r1 = r2 = r3 = zero
            for t in range(LANES):
                a0, a1 = ai[t], ai[LANES + t]
                b0, b1, b2, b3 = bj[t], bj[LANES + t], bj[2 * LANES + t], bj[3 * LANES + t]
                p0, p1, p2, p3 = p0 + a0 * b0, p1 + a0 * b1, p2 + a0 * b2, p3 + a0 * b3
                r0, r1, r2, r3 = r0 + a1 * b0, r1 + a1 * b1, r2 + a1 * b2, r3 + a1 * b3
            for m, total in enumerate((p0, p1, p2, p3)):
                c[i, j + m] += total
            for m, total in enumerate((r0, r1, r2, r3)):
                c[i + 1, j + m] += total
    for i in range(I):
        for j in range(fours if i < pairs else 0, J):
            total = zero
            for t in range(LANES):
                total += a[i * LANES + t] * b[j * LANES + t]
            c[i, j] += total


# a sum over lanes is a vector of partial sums, added up at the end: "reassoc" allows that order
add_dots = jit(add_dots, fastmath={"contract", "reassoc"})


def exp(x):
    """eˣ for x ≤ 0, made of additions and multiplications only; 0 for x = -∞.

    x = n ln 2 + r with a whole number n and |r| ≤ ln 2 / 2, so eˣ = 2ⁿ eʳ. The Taylor series gives
    eʳ to the last bit or two, and 2ⁿ is n in the exponent bits of a number. Adding 1.5 · 2²³
    (float64: 1.5 · 2⁵²) leaves no room behind the point: it rounds, and n is in the lowest bits.
    """
    return math.exp(x)


@overload(exp, jit_options=FASTMATH)
def _exp(x):
    return exp_float32 if x.bitwidth == 32 else exp_float64


LOG2E_32, SHIFT_32 = np.float32(1 / math.log(2)), np.float32(1.5 * 2**23)
LN2_32, LN2_REST_32 = np.float32(0.693359375), np.float32(-2.12194440e-4)  # n · LN2 is exact
TAYLOR_32 = tuple(np.float32(1 / math.factorial(i)) for i in range(7, -1, -1))


def exp_float32(x):
    """eˣ in float32."""
    shifted = x * LOG2E_32 + SHIFT_32
    n = shifted - SHIFT_32
    r = x - n * LN2_32 - n * LN2_REST_32
    y = TAYLOR_32[0]
    for c in TAYLOR_32[1:]:
        y = y * r + c
    exponent = np.int32((np.float32(shifted).view(np.int32) + 127) << 23)
    return np.float32(0) if x < -87 else y * exponent.view(np.float32)


LOG2E_64, SHIFT_64 = 1 / math.log(2), 1.5 * 2.0**52
LN2_64, LN2_REST_64 = 0.693147180369123816490, 1.90821492927058770002e-10
TAYLOR_64 = tuple(1 / math.factorial(i) for i in range(13, -1, -1))


def exp_float64(x):
    """eˣ in float64."""
    shifted = x * LOG2E_64 + SHIFT_64
    n = shifted - SHIFT_64
    r = x - n * LN2_64 - n * LN2_REST_64
    y = TAYLOR_64[0]
    for c in TAYLOR_64[1:]:
        y = y * r + c
    exponent = np.int64((np.float64(shifted).view(np.int64) + 1023) << 52)
    return 0.0 if x < -708 else y * exponent.view(np.float64)
