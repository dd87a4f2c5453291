"""The product of two matrices as loops.

    c_ij = Σ_k a_ik b_kj

The loop over j is the innermost loop, so rows of b and c are read and written in the order of
memory. A gradient dL/dx is called dx, and dL/dc is called g.
"""

import numpy as np

from tinyattn.kernels import jit


@jit
def matmul_loops(a, b):
    """Return c_ij = Σ_k a_ik b_kj for a [I, K] and b [K, J]."""
    (I, K), J = a.shape, b.shape[1]
    c = np.zeros((I, J), a.dtype)
    for i in range(I):
        for k in range(K):
            for j in range(J):
                c[i, j] += a[i, k] * b[k, j]
    return c


@jit
def matmul_loops_backward(g, a, b):
    """Return da_ik = Σ_j g_ij b_kj and db_kj = Σ_i a_ik g_ij, g times the other factor."""
    (I, K), J = a.shape, b.shape[1]
    da, db = np.zeros_like(a), np.zeros_like(b)
    for i in range(I):
        for k in range(K):
            for j in range(J):
                da[i, k] += g[i, j] * b[k, j]
                db[k, j] += g[i, j] * a[i, k]
    return da, db
