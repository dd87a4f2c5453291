"""Dot products of a few rows with many rows, in tiles of registers.

y_ij is the dot product of row i of x with row j of w, where each row is contiguous. A tile computes
several dot products together. For example, a tile of 4 × 4 reads 8 vectors and uses them for 16
multiply-adds.

                    lanes k … k + 15 of rows j, j + 1, j + 2, j + 3 of w
        row i     ┌──────────────────────────────────┐
        row i + 1 │  16 vectors of partial sums; at  │
        row i + 2 │  the end the lanes of each are   │
        row i + 3 │  added up: 16 numbers of y       │
                  └──────────────────────────────────┘
"""

import numpy as np

from tinyattn.kernels.machine.compile import intrinsic, numba
from tinyattn.kernels.machine.llvm import (
    VECTOR_REGISTERS,
    Vector,
    call_intrinsic,
    call_subroutine,
    element_pointer,
    emit_loop,
    emit_masked_load,
    emit_prefetch,
    extent_of,
    size_of,
    tail_mask,
    vector_pointer,
)

if numba is not None:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

    from tinyattn.kernels.machine.llvm import INT64


# Rows of x in a tile, and in the tiles of the last rows.
TILE_HEIGHTS = (6, 2, 1) if VECTOR_REGISTERS == 32 else (3, 2, 1)


TILE_COLUMNS = 4  # columns of y in a tile, which need as many rows of w


def _dot_products_reference(y, y0, y_row, x, x0, x_row, w, w0, w_row, rows, columns, n):
    i, j, k = np.arange(rows)[:, None], np.arange(columns), np.arange(n)
    y[y0 + i * y_row + j] = x[x0 + i * x_row + k] @ w[w0 + j[:, None] * w_row + k].T


@intrinsic(_dot_products_reference)
def dot_products(typing, y, y0, y_row, x, x0, x_row, w, w0, w_row, rows, columns, n):
    """Compute y[i, j] = Σ_k x[i, k] w[j, k] for i < rows, j < columns, k < n.

    y[i, j] is y[y0 + i · y_row + j], x[i, k] is x[x0 + i · x_row + k], and w[j, k] is
    w[w0 + j · w_row + k].
    """
    vector = Vector(y.dtype)

    def code(context, builder, signature, args):
        y, y0, y_row, x, x0, x_row, w, w0, w_row, rows, columns, n = args
        kinds, one = signature.args, INT64(1)
        y = element_pointer(
            context, builder, kinds[0], y, y0, extent_of(builder, rows, y_row, columns, one)
        )
        x = element_pointer(
            context, builder, kinds[3], x, x0, extent_of(builder, rows, x_row, n, one)
        )
        w = element_pointer(
            context, builder, kinds[6], w, w0, extent_of(builder, columns, w_row, n, one)
        )
        arguments = [y, y_row, x, x_row, w, w_row, rows, columns, n]
        call_subroutine(builder, f"dot_products_{vector.dtype}", arguments, _emit_tiles)
        return context.get_dummy_value()

    size = types.intp
    return types.void(y, size, size, x, size, size, w, size, size, size, size, size), code


def _emit_tiles(builder, y, y_row, x, x_row, w, w_row, rows, columns, n):
    """Emit all tiles. Each row of w is read once, and multiplied by all rows of x."""
    j0 = INT64(0)
    for many, heights in (
        (TILE_COLUMNS, TILE_HEIGHTS),
        (1, (1,)),
    ):  # few kinds of tiles, so that less code is compiled
        stop = builder.add(builder.sub(columns, INT64(many)), INT64(1))
        with emit_loop(builder, j0, stop, many) as (j, _):
            w_j, i0 = builder.gep(w, [builder.mul(j, w_row)]), INT64(0)
            for height in heights:
                end = builder.add(builder.sub(rows, INT64(height)), INT64(1))
                with emit_loop(builder, i0, end, height) as (i, _):
                    y_ij = builder.gep(y, [builder.add(builder.mul(i, y_row), j)])
                    x_i = builder.gep(x, [builder.mul(i, x_row)])
                    _emit_tile(builder, height, many, y_ij, y_row, x_i, x_row, w_j, w_row, n)
                i0 = builder.sub(rows, builder.urem(builder.sub(rows, i0), INT64(height)))
        j0 = builder.sub(columns, builder.urem(builder.sub(columns, j0), INT64(many)))


def _emit_tile(builder, height, many, y, y_row, x, x_row, w, w_row, n):
    """Emit y[i, j] for i < height, j < many, and prefetch the rows of w of the next tile."""
    number = x.type.pointee
    align, kind = (
        size_of(number),
        ir.VectorType(number, Vector.lanes_of(number)),
    )
    x_rows = [builder.gep(x, [builder.mul(x_row, INT64(i))]) for i in range(height)]
    w_rows = [builder.gep(w, [builder.mul(w_row, INT64(j))]) for j in range(many)]
    sums = [cgutils.alloca_once(builder, kind) for _ in range(height * many)]
    for p in sums:
        builder.store(kind(None), p)

    def add_products(vector):
        if height == 3:  # 12 sums, 3 vectors of x and 1 of w fill 16 registers
            x_i = [vector(row) for row in x_rows]
            for j in range(many):
                w_j = vector(w_rows[j])
                for i in range(height):
                    p = sums[i * many + j]
                    builder.store(
                        call_intrinsic(builder, "llvm.fmuladd", x_i[i], w_j, builder.load(p)), p
                    )
            return
        w_j = [vector(row) for row in w_rows]
        for i in range(height):
            x_i = vector(x_rows[i])
            for j, p in enumerate(sums[i * many : (i + 1) * many]):
                builder.store(
                    call_intrinsic(builder, "llvm.fmuladd", x_i, w_j[j], builder.load(p)), p
                )

    whole = builder.sub(n, builder.urem(n, INT64(kind.count)))
    next_tile = builder.mul(w_row, INT64(many))
    with emit_loop(builder, INT64(0), whole, kind.count) as (k, _):
        add_products(
            lambda row: builder.load(vector_pointer(builder, builder.gep(row, [k])), align=align)
        )
        for row in w_rows:
            emit_prefetch(builder, builder.gep(row, [builder.add(k, next_tile)]))
    with builder.if_then(builder.icmp_signed("<", whole, n)):  # the last lanes do not fill a vector
        lanes = tail_mask(builder, kind, whole, n)

        def rest(row):
            pointer = vector_pointer(builder, builder.gep(row, [whole]))
            return emit_masked_load(builder, pointer, lanes, 0)

        add_products(rest)
    for i in range(height):
        found = _emit_hsums(builder, [builder.load(p) for p in sums[i * many : (i + 1) * many]])
        place = builder.gep(y, [builder.mul(y_row, INT64(i))])
        builder.store(found, builder.bitcast(place, found.type.as_pointer()), align=align)


def _emit_hsums(builder, vectors):
    """Emit code for the sums of the lanes of 1, 2 or 4 vectors, as one vector of 1, 2 or 4 numbers.

    In each round, one half of the lanes is added to the other half. While there are several
    vectors, the halves of two vectors are combined into one.
    """
    lanes = length = vectors[0].type.count  # length: number of lanes that belong to the same sum
    while length > 1:
        half = length // 2
        # a single vector is paired with itself
        pairs = list(zip(vectors[::2], vectors[1::2] or vectors, strict=True))
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
    # four vectors of two lanes leave two vectors, which are concatenated
    both = ir.VectorType(ir.IntType(32), 2 * lanes)(list(range(2 * lanes)))
    return builder.shuffle_vector(*vectors, both)
