"""Packing, which copies both matrices of a product into the order in which a tile reads them.

If the same rows of A are multiplied by many columns, a block of A is copied into row panels, which
are as high as a tile (TILE_ROWS, for example 6):

    a[0, k], a[1, k], …, a[5, k], a[0, k + 1], …     row panel 0: rows 0 … 5 of the block
    a[6, k], …                                       row panel 1, after the last column of panel 0

B is packed into column panels, as wide as a tile, row by row. Then all strides are constants in the
code of a tile, and memory is read from front to back. All row panels have TILE_ROWS rows. If the
block has fewer rows, its last row is repeated, and the results of the repeated rows are not used.

Source: Goto and van de Geijn, Anatomy of high-performance matrix multiplication (2008).
"""

import numpy as np

from tinyattn.kernels.machine.compile import helper, intrinsic, numba
from tinyattn.kernels.machine.llvm import (
    Vector,
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
from tinyattn.kernels.machine.simd import width
from tinyattn.kernels.machine.tiles import (
    PREFETCH_ROWS,
    TILE_ROWS,
    TILES,
    emit_tile,
    emit_tiles,
)

if numba is not None:
    from llvmlite import ir
    from numba import types

    from tinyattn.kernels.machine.llvm import INT64

PREFETCH_DISTANCE = 4  # a row of a panel of B is prefetched this many rows before its use


@helper
def round_up_to_tile(rows):
    """Return `rows`, rounded up to a multiple of TILE_ROWS."""
    return (rows + TILE_ROWS - 1) // TILE_ROWS * TILE_ROWS


@helper
def packed_size(rows, columns, lanes):
    """Return how many numbers `pack` writes at most, including the end of the last vectors."""
    return round_up_to_tile(rows) * columns + TILE_ROWS * lanes


# ---------------------------------------------------------------- the copy


def _pack_reference(out, x, x0, x_row, x_col, rows, columns):
    i, k = np.arange(rows - rows % -TILE_ROWS)[:, None], np.arange(columns)
    place = i // TILE_ROWS * TILE_ROWS * columns + k * TILE_ROWS + i % TILE_ROWS
    out[place] = x[x0 + np.minimum(i, rows - 1) * x_row + k * x_col]


@intrinsic(_pack_reference)
def pack(typing, out, x, x0, x_row, x_col, rows, columns):
    """Copy x[i, k], i < rows, k < columns, to out[⌊i / R⌋ R columns + k R + i mod R].

    R is TILE_ROWS. x[i, k] is x[x0 + i · x_row + k · x_col], where x_row or x_col is 1. `out` has
    `packed_size(rows, columns, width(x))` numbers.
    """
    lanes = Vector(x.dtype).lanes

    def code(context, builder, signature, args):
        out, x, x0, x_row, x_col, rows, columns = args
        kinds, sizes = signature.args, types.intp(types.intp, types.intp, types.intp)
        size = context.compile_internal(
            builder,
            lambda m, n, lanes: packed_size(m, n, lanes),
            sizes,
            [rows, columns, INT64(lanes)],
        )
        out = element_pointer(context, builder, kinds[0], out, INT64(0), size)
        x = element_pointer(
            context, builder, kinds[1], x, x0, extent_of(builder, rows, x_row, columns, x_col)
        )
        arguments = [out, x, x_row, x_col, rows, columns]
        call_subroutine(builder, f"pack_{signature.args[0].dtype}", arguments, _emit_pack)
        return context.get_dummy_value()

    size = types.intp
    return types.void(out, x, size, size, size, size, size), code


def _emit_pack(builder, out, x, x_row, x_col, rows, columns):
    last = builder.sub(rows, INT64(1))

    def rows_of(i):
        """Return the rows i … i + TILE_ROWS - 1, where the last row replaces all rows after it."""
        several = [builder.add(i, INT64(r)) for r in range(TILE_ROWS)]
        return [builder.select(builder.icmp_signed("<", j, last), j, last) for j in several]

    has_contiguous_rows = builder.icmp_signed("==", x_col, INT64(1))
    with builder.if_else(has_contiguous_rows) as (by_rows, by_columns):
        with by_rows:
            _pack_from_rows(builder, out, x, x_row, rows, columns, rows_of)
        with by_columns:
            _pack_from_columns(builder, out, x, x_col, rows, columns, rows_of)


def _pack_from_rows(builder, out, x, x_row, rows, columns, rows_of):
    """Pack TILE_ROWS rows, by reading a vector of each row and interleaving the lanes."""
    lanes, align = Vector.lanes_of(x.type.pointee), size_of(x.type.pointee)
    whole = builder.sub(columns, builder.urem(columns, INT64(lanes)))
    with emit_loop(builder, INT64(0), rows, TILE_ROWS) as (i, _):
        starts = [builder.gep(x, [builder.mul(row, x_row)]) for row in rows_of(i)]
        panel = builder.gep(out, [builder.mul(i, columns)])

        def put(k, v, panel=panel):
            place = builder.gep(panel, [builder.mul(k, INT64(TILE_ROWS))])
            for m, u in enumerate(_interleave_rows(builder, v)):
                builder.store(u, vector_pointer(builder, place, m * lanes), align=align)

        with emit_loop(builder, INT64(0), whole, lanes) as (k, _):
            places = [vector_pointer(builder, builder.gep(row, [k])) for row in starts]
            put(k, [builder.load(p, align=align) for p in places])
        with builder.if_then(builder.icmp_signed("<", whole, columns)):
            places = [vector_pointer(builder, builder.gep(row, [whole])) for row in starts]
            inside = tail_mask(builder, places[0].type.pointee, whole, columns)
            put(whole, [emit_masked_load(builder, p, inside, 0.0) for p in places])


def _interleave_rows(builder, v):
    """Return v[0][0], v[1][0], …, v[5][0], v[0][1], … as vectors.

    v contains TILE_ROWS vectors, in this example 6. First, two rows at a time are interleaved:
    a[0] b[0] a[1] b[1] …. In the result, every third pair comes from the same two rows.
    """
    n, half = v[0].type.count, v[0].type.count // 2

    def shuffled(a, b, order):
        return builder.shuffle_vector(a, b, ir.VectorType(ir.IntType(32), n)(order))

    found = []
    for side in (0, half):
        order = [side + i // 2 + i % 2 * n for i in range(n)]
        pairs = [shuffled(v[i], v[i + 1], order) for i in range(0, TILE_ROWS, 2)]
        for m in range(TILE_ROWS // 2):
            # number q of this vector is in pair number `pair` of the two rows `of`
            places = [divmod(m * half + q // 2, TILE_ROWS // 2) for q in range(n)]
            u = pairs[0]
            for own in range(1, TILE_ROWS // 2):
                order = [
                    n + 2 * pair + q % 2 if of == own else 2 * pair + q % 2 if own == 1 else q
                    for q, (pair, of) in enumerate(places)
                ]
                u = shuffled(u, pairs[own], order)
            found.append(u)
    return found


def _pack_from_columns(builder, out, x, x_col, rows, columns, rows_of):
    """Pack column by column, TILE_ROWS numbers at a time. The last panel is copied one by one."""
    align, several = size_of(x.type.pointee), ir.VectorType(x.type.pointee, TILE_ROWS).as_pointer()
    whole = builder.sub(rows, builder.urem(rows, INT64(TILE_ROWS)))
    with emit_loop(builder, INT64(0), columns, 1) as (k, _):
        column = builder.gep(x, [builder.mul(k, x_col)])
        later = builder.gep(column, [builder.mul(x_col, INT64(PREFETCH_ROWS))])
        first = builder.gep(out, [builder.mul(k, INT64(TILE_ROWS))])
        with emit_loop(builder, INT64(0), whole, TILE_ROWS) as (i, _):
            emit_prefetch(builder, builder.gep(later, [i]))
            v = builder.load(builder.bitcast(builder.gep(column, [i]), several), align=align)
            place = builder.gep(first, [builder.mul(i, columns)])
            builder.store(v, builder.bitcast(place, several), align=align)
        with builder.if_then(builder.icmp_signed("<", whole, rows)):
            place = builder.gep(first, [builder.mul(whole, columns)])
            for r, i in enumerate(rows_of(whole)):
                number = builder.load(builder.gep(column, [i]))
                builder.store(number, builder.gep(place, [INT64(r)]))


# ---------------------------------------------------------------- the product


def _packed_product_reference(c, c0, c_row, d, d0, d_row, a, b, b0, rows, columns, n, add):
    i, k, j = np.arange(rows)[:, None], np.arange(n), np.arange(columns)
    a_ik = a[i // TILE_ROWS * TILE_ROWS * n + k * TILE_ROWS + i % TILE_ROWS]
    found = a_ik @ b[b0 + k[:, None] * TILES[0][0] * width(c) + j]
    c[c0 + i * c_row + j] = (d[d0 + i * d_row + j] if add else 0) + found


@intrinsic(_packed_product_reference)
def packed_product(typing, c, c0, c_row, d, d0, d_row, a, b, b0, rows, columns, n, add):
    """Compute c[i, j] = Σ_k a[i, k] b[k, j], i < rows, j < columns, k < n, plus d[i, j] if `add`.

    a is the result of `pack`, and b[k, j] is b[b0 + k · panel + j] with a panel as wide as the
    widest tile. d[i, j] is d[d0 + i · d_row + j], which is C itself, or with d_row = 0 a number for
    each column. `rows` is a multiple of TILE_ROWS. `columns` is a multiple of `width(c)`, and at
    most the width of a panel. n is arbitrary.
    """
    vector = Vector(c.dtype)

    def code(context, builder, signature, args):
        c, c0, c_row, d, d0, d_row, a, b, b0, rows, columns, n, add = args
        kinds, one = signature.args, INT64(1)
        c = element_pointer(
            context, builder, kinds[0], c, c0, extent_of(builder, rows, c_row, columns, one)
        )
        extent = extent_of(builder, rows, d_row, columns, one)
        d0, extent = (builder.select(add, m, INT64(0)) for m in (d0, extent))
        d = element_pointer(context, builder, kinds[3], d, d0, extent)
        a = element_pointer(context, builder, kinds[6], a, INT64(0), builder.mul(rows, n))
        panel = INT64(TILES[0][0] * vector.lanes)
        b = element_pointer(
            context, builder, kinds[7], b, b0, extent_of(builder, n, panel, columns, one)
        )
        arguments = [c, c_row, d, d_row, a, b, rows, columns, n, add]
        call_subroutine(builder, f"packed_product_{vector.dtype}", arguments, _emit_packed_product)
        return context.get_dummy_value()

    size = types.intp
    kinds = c, size, size, d, size, size, a, b, size, size, size, size, types.boolean
    return types.void(*kinds), code


def _emit_packed_product(builder, c, c_row, d, d_row, a, b, rows, columns, n, add):
    panel = INT64(TILES[0][0] * Vector.lanes_of(c.type.pointee))

    def tile(h, vectors, c_ij, i, j, b_j):
        d_ij = builder.gep(d, [builder.add(builder.mul(i, d_row), j)])
        a_panel = builder.gep(a, [builder.mul(i, n)])
        emit_tile(
            builder,
            h,
            vectors,
            c_ij,
            c_row,
            a_panel,
            INT64(1),
            INT64(TILE_ROWS),
            b_j,
            panel,
            n,
            add,
            (d_ij, d_row),
            PREFETCH_DISTANCE,
        )

    kinds = [(vectors, (TILE_ROWS,)) for vectors, _ in TILES]
    emit_tiles(builder, kinds, tile, c, c_row, b, rows, columns)
