"""The product of a few rows with a matrix, y_i = W x_i + b, with the matrix left where it is.

`matmul` copies a matrix into panels first, because each number it then reads serves many rows. For
a few rows the copying takes longer than the product. Here y_ij is the dot product of row i of x
with row j of W, each in one piece, and a tile computes several at once: for 4 x 4 it reads 8
vectors and makes 16 multiply-adds of them.

                    lanes k … k + 15 of rows j, j + 1, j + 2, j + 3 of W
        row i     ┌──────────────────────────────────┐
        row i + 1 │  16 vectors of partial sums; at  │
        row i + 2 │  the end the lanes of each are   │
        row i + 3 │  added up: 16 numbers of y       │
                  └──────────────────────────────────┘

This is what a model does when it writes: one new token for each text, and all weights read for it.
"""

import numpy as np

from tinyattn.kernels import jit, numba
from tinyattn.kernels.machine.fork_join import together
from tinyattn.kernels.machine.layout import row_of
from tinyattn.kernels.machine.simd import (
    REGISTERS,
    Vector,
    at,
    called,
    fetch,
    instruction,
    lanes_before,
    load_lanes,
    load_until,
    once,
    spread,
    store_until,
    width,
)
from tinyattn.kernels.machine.thread_pool import share
from tinyattn.memory import empty

if numba is not None:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

    from tinyattn.kernels.machine.tiles import INTEGER, extent_of, loop, subroutine

HEIGHTS = (6, 2, 1) if REGISTERS == 32 else (2, 1)  # rows of x in a tile, and for what is left
COLUMNS = 4  # of y in a tile: so many rows of W
ALONE = 2.5e5  # multiplications below which a second thread costs more than it brings


def product(a, b, bias=None):
    """A B, plus bias_j in each row;   a [M, K], b [K, N] with its columns in one piece each."""
    (M, K), N = a.shape, b.shape[1]
    y = empty((M, N), a.dtype)
    bias = np.empty(0, a.dtype) if bias is None else row_of(bias)
    arrays = y.reshape(-1), row_of(a), row_of(b.T), bias
    items = -(-N // COLUMNS)
    share(few_rows, items, *arrays, M, N, K, items, alone=M * N * K <= ALONE)
    return y


@jit
def few_rows(y, x, w, bias, M, N, K, items, team, start, stop):
    """y = x Wᵀ + b, or + 0 without a bias; the tiles of y are shared out among so many items."""
    once()
    if together(team, start, stop):
        return
    tiles = (N + COLUMNS - 1) // COLUMNS
    j0, j1 = start * tiles // items * COLUMNS, min(stop * tiles // items * COLUMNS, N)
    dots(y, j0, N, x, 0, K, w, j0 * K, K, M, j1 - j0, K)
    if bias.size:
        for i in range(M):
            for j in range(j0, j1, width(y)):
                sum_j = load_until(y, i * N + j, i * N + j1, 0) + load_until(bias, j, j1, 0)
                store_until(y, i * N + j, i * N + j1, sum_j)


# ---------------------------------------------------------------- the tiles


def _dots(y, y0, y_row, x, x0, x_row, w, w0, w_row, rows, columns, n):
    i, j, k = np.arange(rows)[:, None], np.arange(columns), np.arange(n)
    y[y0 + i * y_row + j] = x[x0 + i * x_row + k] @ w[w0 + j[:, None] * w_row + k].T


@instruction(_dots)
def dots(typing, y, y0, y_row, x, x0, x_row, w, w0, w_row, rows, columns, n):
    """y[i, j] = Σ_k x[i, k] w[j, k] for i < rows, j < columns, k < n.

    y[i, j] is y[y0 + i · y_row + j], x[i, k] is x[x0 + i · x_row + k], and w the same.
    """
    vector = Vector(y.dtype)

    def code(context, builder, signature, args):
        y, y0, y_row, x, x0, x_row, w, w0, w_row, rows, columns, n = args
        kinds, one = signature.args, INTEGER(1)
        y = at(context, builder, kinds[0], y, y0, extent_of(builder, rows, y_row, columns, one))
        x = at(context, builder, kinds[3], x, x0, extent_of(builder, rows, x_row, n, one))
        w = at(context, builder, kinds[6], w, w0, extent_of(builder, columns, w_row, n, one))
        arguments = [y, y_row, x, x_row, w, w_row, rows, columns, n]
        subroutine(builder, f"dots_{vector.dtype}", arguments, _tiles)
        return context.get_dummy_value()

    size = types.intp
    return types.void(y, size, size, x, size, size, w, size, size, size, size, size), code


def _tiles(builder, y, y_row, x, x_row, w, w_row, rows, columns, n):
    """All tiles: rows of W in turn, which are read once, and under each of them all rows of x."""
    j0 = INTEGER(0)
    for many, heights in ((COLUMNS, HEIGHTS), (1, (1,))):  # few kinds, which are sooner compiled
        stop = builder.add(builder.sub(columns, INTEGER(many)), INTEGER(1))
        with loop(builder, j0, stop, many) as (j, _):
            w_j, i0 = builder.gep(w, [builder.mul(j, w_row)]), INTEGER(0)
            for height in heights:
                end = builder.add(builder.sub(rows, INTEGER(height)), INTEGER(1))
                with loop(builder, i0, end, height) as (i, _):
                    y_ij = builder.gep(y, [builder.add(builder.mul(i, y_row), j)])
                    x_i = builder.gep(x, [builder.mul(i, x_row)])
                    _tile(builder, height, many, y_ij, y_row, x_i, x_row, w_j, w_row, n)
                i0 = builder.sub(rows, builder.urem(builder.sub(rows, i0), INTEGER(height)))
        j0 = builder.sub(columns, builder.urem(builder.sub(columns, j0), INTEGER(many)))


def _tile(builder, height, many, y, y_row, x, x_row, w, w_row, n):
    """y[i, j] for i < height, j < many. The rows of W of the next tile are asked for meanwhile."""
    number = x.type.pointee
    align, kind = (
        4 if isinstance(number, ir.FloatType) else 8,
        ir.VectorType(number, Vector.lanes_of(number)),
    )
    x_rows = [builder.gep(x, [builder.mul(x_row, INTEGER(i))]) for i in range(height)]
    w_rows = [builder.gep(w, [builder.mul(w_row, INTEGER(j))]) for j in range(many)]
    sums = [cgutils.alloca_once(builder, kind) for _ in range(height * many)]
    for p in sums:
        builder.store(kind(None), p)

    def add_products(vector):
        w_j = [vector(row) for row in w_rows]
        for i in range(height):
            x_i = vector(x_rows[i])
            for j, p in enumerate(sums[i * many : (i + 1) * many]):
                builder.store(called(builder, "llvm.fmuladd", x_i, w_j[j], builder.load(p)), p)

    whole = builder.sub(n, builder.urem(n, INTEGER(kind.count)))
    next_tile = builder.mul(w_row, INTEGER(many))
    with loop(builder, INTEGER(0), whole, kind.count) as (k, _):
        add_products(lambda row: builder.load(spread(builder, builder.gep(row, [k])), align=align))
        for row in w_rows:
            fetch(builder, builder.gep(row, [builder.add(k, next_tile)]))
    with builder.if_then(builder.icmp_signed("<", whole, n)):  # what fills no vector
        lanes = lanes_before(builder, kind, whole, n)

        def rest(row):
            pointer = spread(builder, builder.gep(row, [whole]))
            return load_lanes(builder, pointer, lanes, 0)

        add_products(rest)
    for i in range(height):
        found = _totals(builder, [builder.load(p) for p in sums[i * many : (i + 1) * many]])
        place = builder.gep(y, [builder.mul(y_row, INTEGER(i))])
        builder.store(found, builder.bitcast(place, found.type.as_pointer()), align=align)


def _totals(builder, vectors):
    """The sums of the lanes of 1, 2 or 4 vectors, as one vector of so many numbers.

    Half of the lanes are added to the other half, again and again; while there are several
    vectors, two of them share one for it.
    """
    lanes = length = vectors[0].type.count  # length: lanes that belong to the same sum
    while length > 1:
        half = length // 2
        pairs = list(zip(vectors[::2], vectors[1::2] or vectors, strict=True))  # one: with itself
        total = lanes if len(vectors) > 1 else vectors[0].type.count // 2
        low = [s * length + i for s in range(total // half) for i in range(half)]
        orders = [ir.VectorType(ir.IntType(32), total)([i + up for i in low]) for up in (0, half)]
        vectors = [
            builder.fadd(*[builder.shuffle_vector(a, b, order) for order in orders])
            for a, b in pairs
        ]
        length = half
    if len(vectors) == 1:
        return vectors[0]
    both = ir.VectorType(ir.IntType(32), 2 * lanes)(list(range(2 * lanes)))  # vectors are so short
    return builder.shuffle_vector(*vectors, both)
