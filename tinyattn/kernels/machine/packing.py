"""Products for which both matrices were copied before, in the order in which a tile reads them.

Where the same rows of A meet many columns, a slice of A is copied into strips, as high as a tile:

    a[0, k], a[1, k], …, a[5, k], a[0, k + 1], …     strip 0: rows 0 … 5 of the slice
    a[6, k], …                                       strip 1, behind the last column of strip 0

B stands in panels, as wide as a tile, row by row. Then all places are constants in the code of a
tile, and neither rows nor lines of memory are skipped. Strips are whole: behind the last row of
the slice stands that row again, and what comes of it is nobody's.
"""

import numpy as np

from tinyattn.kernels import helper, numba
from tinyattn.kernels.machine.simd import (
    Vector,
    at,
    fetch,
    instruction,
    lanes_before,
    load_lanes,
    spread,
    width,
)
from tinyattn.kernels.machine.tiles import (
    AHEAD,
    TALL,
    TILES,
    extent_of,
    in_tiles,
    loop,
    subroutine,
    tile_of_sums,
)

if numba is not None:
    from llvmlite import ir
    from numba import types

    from tinyattn.kernels.machine.tiles import INTEGER

SOON = 4  # a row of a panel is asked for so many rows before it is multiplied with


@helper
def whole_strips(rows):
    """`rows`, up to a multiple of TALL."""
    return (rows + TALL - 1) // TALL * TALL


@helper
def size_of_strips(rows, columns, lanes):
    """Numbers that `strips` needs room for: the strips, and the end of the last vectors."""
    return whole_strips(rows) * columns + TALL * lanes


# ---------------------------------------------------------------- the copy


def _strips(out, x, x0, x_row, x_col, rows, columns):
    i, k = np.arange(rows - rows % -TALL)[:, None], np.arange(columns)
    place = i // TALL * TALL * columns + k * TALL + i % TALL
    out[place] = x[x0 + np.minimum(i, rows - 1) * x_row + k * x_col]


@instruction(_strips)
def strips(typing, out, x, x0, x_row, x_col, rows, columns):
    """Copies x[i, k], i < rows, k < columns, to out[⌊i / TALL⌋ TALL columns + k TALL + i mod TALL].

    x[i, k] is x[x0 + i · x_row + k · x_col]; x_row or x_col is 1. `out` has room for
    `size_of_strips(rows, columns, width(x))` numbers.
    """
    lanes = Vector(x.dtype).lanes

    def code(context, builder, signature, args):
        out, x, x0, x_row, x_col, rows, columns = args
        kinds, sizes = signature.args, types.intp(types.intp, types.intp, types.intp)
        size = context.compile_internal(
            builder, lambda m, n, lanes: size_of_strips(m, n, lanes), sizes,
            [rows, columns, INTEGER(lanes)],
        )  # fmt: skip
        out = at(context, builder, kinds[0], out, INTEGER(0), size)
        x = at(context, builder, kinds[1], x, x0, extent_of(builder, rows, x_row, columns, x_col))
        arguments = [out, x, x_row, x_col, rows, columns]
        subroutine(builder, f"strips_{signature.args[0].dtype}", arguments, _copied)
        return context.get_dummy_value()

    size = types.intp
    return types.void(out, x, size, size, size, size, size), code


def _copied(builder, out, x, x_row, x_col, rows, columns):
    last = builder.sub(rows, INTEGER(1))

    def rows_of(i):
        """i … i + TALL - 1; behind the last row comes the last row again."""
        several = [builder.add(i, INTEGER(r)) for r in range(TALL)]
        return [builder.select(builder.icmp_signed("<", j, last), j, last) for j in several]

    upright = builder.icmp_signed("==", x_col, INTEGER(1))
    with builder.if_else(upright) as (by_rows, by_columns):
        with by_rows:
            _from_rows(builder, out, x, x_row, rows, columns, rows_of)
        with by_columns:
            _from_columns(builder, out, x, x_col, rows, columns, rows_of)


def _from_rows(builder, out, x, x_row, rows, columns, rows_of):
    """A vector of each of TALL rows at a time; their lanes are shuffled together."""
    lanes, align = Vector.lanes_of(x.type.pointee), _bytes_of(x)
    whole = builder.sub(columns, builder.urem(columns, INTEGER(lanes)))
    with loop(builder, INTEGER(0), rows, TALL) as (i, _):
        starts = [builder.gep(x, [builder.mul(row, x_row)]) for row in rows_of(i)]
        strip = builder.gep(out, [builder.mul(i, columns)])

        def put(k, v, strip=strip):
            place = builder.gep(strip, [builder.mul(k, INTEGER(TALL))])
            for m, u in enumerate(_shuffled_together(builder, v)):
                builder.store(u, spread(builder, place, m * lanes), align=align)

        with loop(builder, INTEGER(0), whole, lanes) as (k, _):
            places = [spread(builder, builder.gep(row, [k])) for row in starts]
            put(k, [builder.load(p, align=align) for p in places])
        with builder.if_then(builder.icmp_signed("<", whole, columns)):
            places = [spread(builder, builder.gep(row, [whole])) for row in starts]
            inside = lanes_before(builder, places[0].type.pointee, whole, columns)
            put(whole, [load_lanes(builder, p, inside, 0.0) for p in places])


def _shuffled_together(builder, v):
    """v[0][0], v[1][0], …, v[5][0], v[0][1], … as vectors again.

    First two and two: pairs a[0] b[0] a[1] b[1] …; then each third pair is of the same two.
    """
    n, half = v[0].type.count, v[0].type.count // 2

    def shuffled(a, b, order):
        return builder.shuffle_vector(a, b, ir.VectorType(ir.IntType(32), n)(order))

    found = []
    for side in (0, half):
        order = [side + i // 2 + i % 2 * n for i in range(n)]
        pairs = [shuffled(v[i], v[i + 1], order) for i in range(0, TALL, 2)]
        for m in range(TALL // 2):
            # number q of this vector is in pair number `pair` of the two rows `of`
            places = [divmod(m * half + q // 2, TALL // 2) for q in range(n)]
            u = pairs[0]
            for own in range(1, TALL // 2):
                order = [
                    n + 2 * pair + q % 2 if of == own else 2 * pair + q % 2 if own == 1 else q
                    for q, (pair, of) in enumerate(places)
                ]
                u = shuffled(u, pairs[own], order)
            found.append(u)
    return found


def _from_columns(builder, out, x, x_col, rows, columns, rows_of):
    """Column by column, TALL numbers at a time; those of the last strip one by one."""
    align, several = _bytes_of(x), ir.VectorType(x.type.pointee, TALL).as_pointer()
    whole = builder.sub(rows, builder.urem(rows, INTEGER(TALL)))
    with loop(builder, INTEGER(0), columns, 1) as (k, _):
        column = builder.gep(x, [builder.mul(k, x_col)])
        later = builder.gep(column, [builder.mul(x_col, INTEGER(AHEAD))])
        first = builder.gep(out, [builder.mul(k, INTEGER(TALL))])
        with loop(builder, INTEGER(0), whole, TALL) as (i, _):
            fetch(builder, builder.gep(later, [i]))
            v = builder.load(builder.bitcast(builder.gep(column, [i]), several), align=align)
            place = builder.gep(first, [builder.mul(i, columns)])
            builder.store(v, builder.bitcast(place, several), align=align)
        with builder.if_then(builder.icmp_signed("<", whole, rows)):
            place = builder.gep(first, [builder.mul(whole, columns)])
            for r, i in enumerate(rows_of(whole)):
                number = builder.load(builder.gep(column, [i]))
                builder.store(number, builder.gep(place, [INTEGER(r)]))


def _bytes_of(x):
    return 4 if isinstance(x.type.pointee, ir.FloatType) else 8


# ---------------------------------------------------------------- the product


def _product_of_strips(c, c0, c_row, d, d0, d_row, a, b, b0, rows, columns, n, add):
    i, k, j = np.arange(rows)[:, None], np.arange(n), np.arange(columns)
    a_ik = a[i // TALL * TALL * n + k * TALL + i % TALL]
    found = a_ik @ b[b0 + k[:, None] * TILES[0][0] * width(c) + j]
    c[c0 + i * c_row + j] = (d[d0 + i * d_row + j] if add else 0) + found


@instruction(_product_of_strips)
def product_of_strips(typing, c, c0, c_row, d, d0, d_row, a, b, b0, rows, columns, n, add):
    """c[i, j] = Σ_k a[i, k] b[k, j] for i < rows, j < columns, k < n; with `add`, d[i, j] + that.

    a is in `strips`, b[k, j] is b[b0 + k · panel + j] with a panel as wide as the widest tile.
    d[i, j] is d[d0 + i · d_row + j]: C itself, or with d_row = 0 a number for each column.
    `rows` is a multiple of TALL, `columns` one of `width(c)`, at most a panel; n is any.
    """
    vector = Vector(c.dtype)

    def code(context, builder, signature, args):
        c, c0, c_row, d, d0, d_row, a, b, b0, rows, columns, n, add = args
        kinds, one = signature.args, INTEGER(1)
        c = at(context, builder, kinds[0], c, c0, extent_of(builder, rows, c_row, columns, one))
        extent = extent_of(builder, rows, d_row, columns, one)
        d0, extent = (builder.select(add, m, INTEGER(0)) for m in (d0, extent))
        d = at(context, builder, kinds[3], d, d0, extent)
        a = at(context, builder, kinds[6], a, INTEGER(0), builder.mul(rows, n))
        panel = INTEGER(TILES[0][0] * vector.lanes)
        b = at(context, builder, kinds[7], b, b0, extent_of(builder, n, panel, columns, one))
        arguments = [c, c_row, d, d_row, a, b, rows, columns, n, add]
        subroutine(builder, f"product_of_strips_{vector.dtype}", arguments, _summed)
        return context.get_dummy_value()

    size = types.intp
    kinds = c, size, size, d, size, size, a, b, size, size, size, size, types.boolean
    return types.void(*kinds), code


def _summed(builder, c, c_row, d, d_row, a, b, rows, columns, n, add):
    panel = INTEGER(TILES[0][0] * Vector.lanes_of(c.type.pointee))

    def tile(h, vectors, c_ij, i, j, b_j):
        d_ij = builder.gep(d, [builder.add(builder.mul(i, d_row), j)])
        strip = builder.gep(a, [builder.mul(i, n)])
        tile_of_sums(builder, h, vectors, c_ij, c_row, strip, INTEGER(1), INTEGER(TALL), b_j, panel,
                     n, add, (d_ij, d_row), SOON)  # fmt: skip

    kinds = [(vectors, (TALL,)) for vectors, _ in TILES]
    in_tiles(builder, kinds, tile, c, c_row, b, rows, columns)
