"""The product of a matrix with one vector or a few, y_i = W x_i + b, without packing the matrix.

`matmul` packs a matrix first, because each of its numbers is then used for many rows. For a few
rows, packing takes longer than the product. In this file, y_ij is the dot product of row i of x
with row j of W, both contiguous. machine/dot_products.py computes several dot products together.

This case occurs when a model generates text, because all weights are read for a single new token of
each text.
"""

import numpy as np

from tinyattn.engine.memory import empty_pooled
from tinyattn.kernels.fast import thresholds
from tinyattn.kernels.machine.compile import jit, noinline
from tinyattn.kernels.machine.dot_products import TILE_COLUMNS, dot_products
from tinyattn.kernels.machine.fork_join import fork_join
from tinyattn.kernels.machine.layout import ravel
from tinyattn.kernels.machine.load_store import load_partial, store_partial
from tinyattn.kernels.machine.simd import width
from tinyattn.kernels.machine.thread_pool import parallel_for


def product(a, b, bias=None):
    """Return A B, plus bias_j in each row, for a [M, K] and b [K, N] with contiguous columns."""
    (M, K), N = a.shape, b.shape[1]
    y = empty_pooled((M, N), a.dtype)
    bias = np.empty(0, a.dtype) if bias is None else ravel(bias)
    arrays = y.reshape(-1), ravel(a), ravel(b.T), bias
    items = -(-N // TILE_COLUMNS)
    parallel_for(few_rows, items, *arrays, M, N, K, items, serial=M * N * K <= thresholds.MATVEC)
    return y


@jit
def few_rows(y, x, w, bias, M, N, K, items, team, start, stop):
    """Compute y = x Wᵀ + b for x [M, K] and W [N, K], where b may be empty.

    The tiles of y are divided among `items` items, of which start … stop - 1 are computed.
    """
    noinline()
    if fork_join(team, start, stop):
        return
    tiles = (N + TILE_COLUMNS - 1) // TILE_COLUMNS
    j0, j1 = start * tiles // items * TILE_COLUMNS, min(stop * tiles // items * TILE_COLUMNS, N)
    dot_products(y, j0, N, x, 0, K, w, j0 * K, K, M, j1 - j0, K)
    if bias.size:
        for i in range(M):
            for j in range(j0, j1, width(y)):
                sum_j = load_partial(y, i * N + j, i * N + j1, 0) + load_partial(bias, j, j1, 0)
                store_partial(y, i * N + j, i * N + j1, sum_j)
