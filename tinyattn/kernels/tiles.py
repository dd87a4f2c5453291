"""The two operations on blocks of a matrix that fast kernels are made of: product and transpose.

A processor multiplies far more numbers in a second than it can read. What counts is therefore how
often a number is used while it is in a register. `product` computes a tile of the result at a
time, say 6 rows of 4 vectors: for each k it reads 4 vectors of B and 6 numbers of A, and makes 24
multiply-adds of them. The 24 sums stay in registers until the tile is done.

                         b[k, j]   4 vectors of row k
        a[i,     k]   ┌──────────────────────────┐
        a[i + 1, k]   │  c[i, j] … 24 registers  │
        a[i + 2, k]   │                          │
             …        │                          │
        a[i + 5, k]   └──────────────────────────┘

All matrices are given as one row of memory, the place of the first element and the steps between
rows: element (i, k) of a is a[a0 + i · a_row + k · a_col]. So one product serves A and Aᵀ.
"""

import numpy as np

from tinyattn.kernels import jit, numba
from tinyattn.kernels.simd import (
    REGISTERS,
    Vector,
    at,
    broadcasted,
    called,
    fetch,
    instruction,
    lanes_before,
    load_lanes,
    spread,
    width,
)

if numba is not None:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

    INTEGER = ir.IntType(64)

# (vectors, rows) of a tile, the widest first: what is left of a row of tiles takes a narrower one
TILES = ((4, 6), (2, 8), (1, 8)) if REGISTERS == 32 else ((2, 6), (1, 6))
TALL = TILES[0][1]  # rows of the widest tile
LAST = 4, 2, 1  # heights of the tiles for the rows that are left
AHEAD = 8  # a row is asked for so many rows before it is copied
SOON = 4  # a row of a panel is asked for so many rows before it is multiplied with


def loop(builder, start, stop, step):
    """for i in range(start, stop, step), for the body of a with statement; gives (i, count)."""
    return cgutils.for_range_slice(builder, start, stop, INTEGER(step), inc=True)


def subroutine(builder, name, arguments, emit):
    """Call a function that `emit(its builder, *its arguments)` writes, once in a program."""
    kinds = [x.type for x in arguments]
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.VoidType(), kinds), f"tinyattn_{name}"
    )
    if function.is_declaration:
        function.linkage = "linkonce_odr"
        function.attributes.add("noinline")
        inside = ir.IRBuilder(function.append_basic_block())
        emit(inside, *function.args)
        inside.ret_void()
    builder.call(function, arguments)


def extent_of(builder, rows, row, columns, column):
    """Numbers from the first element of a matrix to its last; 0 if it has none."""
    one, zero = INTEGER(1), INTEGER(0)
    last = builder.mul(builder.sub(rows, one), row)
    last = builder.add(last, builder.mul(builder.sub(columns, one), column))
    none = builder.or_(*[builder.icmp_signed("<=", m, zero) for m in (rows, columns)])
    return builder.select(none, zero, builder.add(last, one))


# ---------------------------------------------------------------- product


def _product(c, c0, c_row, a, a0, a_row, a_col, b, b0, b_row, rows, columns, n, add):
    i, j, k = (np.arange(m) for m in (rows, columns, n))
    c_ij = c0 + i[:, None] * c_row + j
    found = a[a0 + i[:, None] * a_row + k * a_col] @ b[b0 + k[:, None] * b_row + j]
    c[c_ij] = (c[c_ij] if add else 0) + found


@instruction(_product)
def product(typing, c, c0, c_row, a, a0, a_row, a_col, b, b0, b_row, rows, columns, n, add):
    """c[i, j] = Σ_k a[i, k] b[k, j] for i < rows, j < columns, k < n; with `add`: c += that.

    c[i, j] is c[c0 + i · c_row + j], a[i, k] is a[a0 + i · a_row + k · a_col], b[k, j] is
    b[b0 + k · b_row + j]. `columns` is a multiple of `width(c)`; rows and n are any.
    """
    vector = Vector(c.dtype)

    def code(context, builder, signature, args):
        c, c0, c_row, a, a0, a_row, a_col, b, b0, b_row, rows, columns, n, add = args
        kinds, one = signature.args, INTEGER(1)
        extent = extent_of(builder, rows, c_row, columns, one)
        c = at(context, builder, kinds[0], c, c0, extent)
        a = at(context, builder, kinds[3], a, a0, extent_of(builder, rows, a_row, n, a_col))
        b = at(context, builder, kinds[7], b, b0, extent_of(builder, n, b_row, columns, one))
        arguments = [c, c_row, a, a_row, a_col, b, b_row, rows, columns, n, add]
        subroutine(builder, f"product_{vector.dtype}", arguments, _product_code)
        return context.get_dummy_value()

    size = types.intp
    signature = types.void(c, size, size, a, size, size, size, b, size, size, size, size, size,
                           types.boolean)  # fmt: skip
    return signature, code


def _product_code(builder, c, c_row, a, a_row, a_col, b, b_row, rows, columns, n, add):
    def tile(h, vectors, c_ij, i, j, b_j):
        a_i = builder.gep(a, [builder.mul(i, a_row)])
        _tile(builder, h, vectors, c_ij, c_row, a_i, a_row, a_col, b_j, b_row, n, add)

    _tiles(builder, TILES, tile, c, c_row, b, rows, columns)


def _tiles(builder, kinds, tile, c, c_row, b, rows, columns):
    """All tiles of a product: the widest that fit, then narrower ones; the same for the rows."""
    lanes = Vector.lanes_of(c.type.pointee)
    j0 = INTEGER(0)
    for vectors, height in kinds:
        wide = vectors * lanes
        stop = builder.add(builder.sub(columns, INTEGER(wide)), INTEGER(1))
        with loop(builder, j0, stop, wide) as (j, _):
            i0 = INTEGER(0)
            for h in (height, *LAST):
                end = builder.add(builder.sub(rows, INTEGER(h)), INTEGER(1))
                with loop(builder, i0, end, h) as (i, _):
                    c_ij = builder.gep(c, [builder.add(builder.mul(i, c_row), j)])
                    tile(h, vectors, c_ij, i, j, builder.gep(b, [j]))
                i0 = builder.sub(rows, builder.urem(builder.sub(rows, i0), INTEGER(h)))
        j0 = builder.sub(columns, builder.urem(builder.sub(columns, j0), INTEGER(wide)))


def _tile(
    builder, rows, vectors, c, c_row, a, a_row, a_col, b, b_row, n, add, onto=None, ahead=0
):  # fmt: skip
    """c[i, j] = Σ_k a[i, k] b[k, j] for `rows` rows of `vectors` vectors, all in registers.

    With `add`, c[i, j] = d[i, j] + that; onto = (place, step between rows) of d, or None for C.
    C is asked for at the start and needed at the end: by then it has come. B is asked for `ahead`
    rows before it is needed, if that is not 0.
    """
    lanes = Vector.lanes_of(c.type.pointee)
    places = [(i, j) for i in range(rows) for j in range(vectors)]
    c_rows = [builder.gep(c, [builder.mul(c_row, INTEGER(i))]) for i in range(rows)]
    a_rows = [builder.gep(a, [builder.mul(a_row, INTEGER(i))]) for i in range(rows)]
    c_ij = [spread(builder, c_rows[i], j * lanes) for i, j in places]
    align = 4 if isinstance(c.type.pointee, ir.FloatType) else 8
    for p in c_ij:
        fetch(builder, p)
    first = [ir.VectorType(c.type.pointee, lanes)(None) for _ in places]
    before = builder.block
    body, done = builder.append_basic_block("k"), builder.append_basic_block("k_done")
    builder.cbranch(builder.icmp_signed(">", n, INTEGER(0)), body, done)

    builder.position_at_end(body)
    k, a_k, b_k = (builder.phi(INTEGER) for _ in range(3))
    sums = [builder.phi(x.type) for x in first]
    b_row_k = builder.gep(b, [b_k])
    for j in range(vectors if ahead else 0):
        later = builder.add(builder.mul(b_row, INTEGER(ahead)), INTEGER(j * lanes))
        fetch(builder, builder.gep(b_row_k, [later]))
    b_kj = [builder.load(spread(builder, b_row_k, j * lanes), align=align) for j in range(vectors)]
    then = []
    for i in range(rows):
        a_ik = broadcasted(builder, builder.load(builder.gep(a_rows[i], [a_k])), b_kj[0].type)
        for j in range(vectors):
            then.append(called(builder, "llvm.fmuladd", a_ik, b_kj[j], sums[i * vectors + j]))
    steps = [builder.add(k, INTEGER(1)), builder.add(a_k, a_col), builder.add(b_k, b_row)]
    builder.cbranch(builder.icmp_signed("<", steps[0], n), body, done)
    builder.position_at_end(done)
    result = [builder.phi(x.type) for x in first]
    starts = [INTEGER(0)] * 3 + first + first
    for phi, start, step in zip([k, a_k, b_k, *sums, *result], starts, [*steps, *then, *then],
                                strict=True):  # fmt: skip
        phi.add_incoming(start, before)
        phi.add_incoming(step, body)
    with builder.if_else(add) as (then, instead):
        with then:
            d, d_row = onto or (c, c_row)
            d_rows = [builder.gep(d, [builder.mul(d_row, INTEGER(i))]) for i in range(rows)]
            for (i, j), x, p in zip(places, result, c_ij, strict=True):
                before = builder.load(spread(builder, d_rows[i], j * lanes), align=align)
                builder.store(builder.fadd(before, x), p, align=align)
        with instead:
            for x, p in zip(result, c_ij, strict=True):
                builder.store(x, p, align=align)


# ---------------------------------------------------------------- product of strips and a panel

# Where the same rows of A meet many columns, they are first copied into strips of TALL rows, in
# the order in which a tile reads them: a[0, k], a[1, k], …, a[5, k], a[0, k + 1], … Then all
# places are constants in the code of a tile, and neither rows nor lines of memory are skipped.


def _strips(out, x, x0, x_row, x_col, rows, columns):
    i, k = np.arange(rows)[:, None], np.arange(columns)
    out[i // TALL * TALL * columns + k * TALL + i % TALL] = x[x0 + i * x_row + k * x_col]


@instruction(_strips)
def strips(typing, out, x, x0, x_row, x_col, rows, columns):
    """Copies x[i, k], i < rows, k < columns, into strips of TALL rows.

    x[i, k] is x[x0 + i · x_row + k · x_col]; x_row or x_col is 1. It comes to place
    k · TALL + i mod TALL of strip ⌊i / TALL⌋, which begins at ⌊i / TALL⌋ · TALL · columns of
    `out`. What lies behind the last row in the last strip is anything. `out` needs room for
    `size_of_strips(rows, columns, out)` numbers.
    """

    def code(context, builder, signature, args):
        out, x, x0, x_row, x_col, rows, columns = args
        kinds = signature.args
        size = _strip_room(builder, rows, columns, Vector(kinds[0].dtype).lanes)
        out = at(context, builder, kinds[0], out, INTEGER(0), size)
        x = at(context, builder, kinds[1], x, x0, extent_of(builder, rows, x_row, columns, x_col))
        arguments = [out, x, x_row, x_col, rows, columns]
        subroutine(builder, f"strips_{signature.args[0].dtype}", arguments, _strips_code)
        return context.get_dummy_value()

    size = types.intp
    return types.void(out, x, size, size, size, size, size), code


@jit
def size_of_strips(rows, columns, lanes):
    """Numbers that `strips` needs: for whole strips, and for the end of its last vectors."""
    return (rows + TALL - 1) // TALL * TALL * columns + TALL * lanes


def _strip_room(builder, rows, columns, lanes):
    tall = INTEGER(TALL)
    whole = builder.mul(builder.udiv(builder.add(rows, INTEGER(TALL - 1)), tall), tall)
    return builder.add(builder.mul(whole, columns), INTEGER(TALL * lanes))


def _strips_code(builder, out, x, x_row, x_col, rows, columns):
    upright = builder.icmp_signed("==", x_col, INTEGER(1))
    with builder.if_else(upright) as (by_rows, by_columns):
        with by_rows:
            _strips_of_rows(builder, out, x, x_row, rows, columns)
        with by_columns:
            _strips_of_columns(builder, out, x, x_col, rows, columns)


def _strips_of_rows(builder, out, x, x_row, rows, columns):
    """A vector of each of TALL rows at a time; their lanes are shuffled together."""
    number = x.type.pointee
    lanes, align = Vector.lanes_of(number), 4 if isinstance(number, ir.FloatType) else 8
    whole = builder.sub(columns, builder.urem(columns, INTEGER(lanes)))
    last = builder.sub(rows, INTEGER(1))
    with loop(builder, INTEGER(0), rows, TALL) as (i, _):
        starts = []
        for r in range(TALL):  # behind the last row comes the last row again
            row = builder.add(i, INTEGER(r))
            row = builder.select(builder.icmp_signed("<", row, last), row, last)
            starts.append(builder.gep(x, [builder.mul(row, x_row)]))
        strip = builder.gep(out, [builder.mul(i, columns)])

        def put(k, v, strip=strip):
            for m, u in enumerate(_shuffled_together(builder, v)):
                place = builder.gep(strip, [builder.mul(k, INTEGER(TALL))])
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
            # number q of this vector is one of pair (m half + q // 2), of the two that this is of
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


def _strips_of_columns(builder, out, x, x_col, rows, columns):
    """Column by column: TALL numbers at a time, then those of the rows that are left."""
    number = x.type.pointee
    align = 4 if isinstance(number, ir.FloatType) else 8
    several = ir.VectorType(number, TALL).as_pointer()
    whole = builder.sub(rows, builder.urem(rows, INTEGER(TALL)))
    with loop(builder, INTEGER(0), columns, 1) as (k, _):
        column = builder.gep(x, [builder.mul(k, x_col)])
        first = builder.gep(out, [builder.mul(k, INTEGER(TALL))])
        later = builder.gep(column, [builder.mul(x_col, INTEGER(AHEAD))])
        with loop(builder, INTEGER(0), whole, TALL) as (i, _):
            fetch(builder, builder.gep(later, [i]))
            v = builder.load(builder.bitcast(builder.gep(column, [i]), several), align=align)
            place = builder.gep(first, [builder.mul(i, columns)])
            builder.store(v, builder.bitcast(place, several), align=align)
        with loop(builder, whole, rows, 1) as (i, _):
            place = builder.add(builder.mul(whole, columns), builder.sub(i, whole))
            number = builder.load(builder.gep(column, [i]))
            builder.store(number, builder.gep(first, [place]))


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
    `columns` is a multiple of `width(c)`, at most a panel; rows and n are any.
    """
    vector = Vector(c.dtype)

    def code(context, builder, signature, args):
        c, c0, c_row, d, d0, d_row, a, b, b0, rows, columns, n, add = args
        kinds, one = signature.args, INTEGER(1)
        c = at(context, builder, kinds[0], c, c0, extent_of(builder, rows, c_row, columns, one))
        extent = extent_of(builder, rows, d_row, columns, one)
        extent = builder.select(add, extent, INTEGER(0))
        d = at(context, builder, kinds[3], d, builder.select(add, d0, INTEGER(0)), extent)
        a = at(context, builder, kinds[6], a, INTEGER(0), builder.mul(rows, n))
        panel = INTEGER(TILES[0][0] * vector.lanes)
        b = at(context, builder, kinds[7], b, b0, extent_of(builder, n, panel, columns, one))
        arguments = [c, c_row, d, d_row, a, b, rows, columns, n, add]
        subroutine(builder, f"product_of_strips_{vector.dtype}", arguments, _product_of_strips_code)
        return context.get_dummy_value()

    size = types.intp
    kinds = c, size, size, d, size, size, a, b, size, size, size, size, types.boolean
    return types.void(*kinds), code


def _product_of_strips_code(builder, c, c_row, d, d_row, a, b, rows, columns, n, add):
    panel, tall = INTEGER(TILES[0][0] * Vector.lanes_of(c.type.pointee)), INTEGER(TALL)

    def tile(h, vectors, c_ij, i, j, b_j):
        inside = builder.urem(i, tall)
        strip = builder.gep(a, [builder.mul(builder.sub(i, inside), n)])
        onto = _element(builder, d, i, d_row, j), d_row
        _tile(builder, h, vectors, c_ij, c_row, builder.gep(strip, [inside]), INTEGER(1), tall,
              b_j, panel, n, add, onto, SOON)  # fmt: skip

    _tiles(builder, [(vectors, TALL) for vectors, _ in TILES], tile, c, c_row, b, rows, columns)


# ---------------------------------------------------------------- fill, transpose, copy


@instruction(lambda out, number: out.fill(number))
def fill(typing, out, number):
    """out[i] = number for all i; much shorter to compile than out[:] = number."""

    def code(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        arguments = [array.data, array.nitems, args[1]]
        subroutine(builder, f"fill_{signature.args[0].dtype}", arguments, _filled)
        return context.get_dummy_value()

    return types.void(out, out.dtype), code


def _filled(builder, out, n, number):
    with loop(builder, INTEGER(0), n, 1) as (i, _):
        builder.store(number, builder.gep(out, [i]))


def _transpose(out, o0, o_row, x, x0, x_row, rows, columns, factor):
    i, j = np.arange(rows)[:, None], np.arange(columns)
    out[o0 + j * o_row + i] = factor * x[x0 + i * x_row + j]


@instruction(_transpose)
def transpose(typing, out, o0, o_row, x, x0, x_row, rows, columns, factor):
    """out[j, i] = factor · x[i, j] for i < rows, j < columns.

    x[i, j] is x[x0 + i · x_row + j], out[j, i] is out[o0 + j · o_row + i].
    """
    return _moved("transpose", out, x, _transposed_blocks, True)


def _copy(out, o0, o_row, x, x0, x_row, rows, columns, factor):
    i, j = np.arange(rows)[:, None], np.arange(columns)
    out[o0 + i * o_row + j] = factor * x[x0 + i * x_row + j]


@instruction(_copy)
def copy(typing, out, o0, o_row, x, x0, x_row, rows, columns, factor):
    """out[i, j] = factor · x[i, j] for i < rows, j < columns, in the same notation."""
    return _moved("copy", out, x, _copied_vectors, False)


def _moved(name, out, x, emit, turned):
    def code(context, builder, signature, args):
        out, o0, o_row, x, x0, x_row, rows, columns, factor = args
        kinds, size = signature.args, (columns, rows) if turned else (rows, columns)
        extent = extent_of(builder, size[0], o_row, size[1], INTEGER(1))
        out = at(context, builder, kinds[0], out, o0, extent)
        extent = extent_of(builder, rows, x_row, columns, INTEGER(1))
        x = at(context, builder, kinds[3], x, x0, extent)
        arguments = [out, o_row, x, x_row, rows, columns, factor]
        subroutine(builder, f"{name}_{signature.args[0].dtype}", arguments, emit)
        return context.get_dummy_value()

    size = types.intp
    return types.void(out, size, size, x, size, size, size, size, x.dtype), code


def _transposed_blocks(builder, out, o_row, x, x_row, rows, columns, factor):
    """Whole blocks of lanes × lanes in registers, then what is left of rows and of columns."""
    lanes = INTEGER(Vector.lanes_of(x.type.pointee))
    whole = [builder.sub(m, builder.urem(m, lanes)) for m in (rows, columns)]
    with loop(builder, INTEGER(0), whole[0], lanes.constant) as (i, _):
        with loop(builder, INTEGER(0), whole[1], lanes.constant) as (j, _):
            _block(builder, _element(builder, out, j, o_row, i), o_row,
                   _element(builder, x, i, x_row, j), x_row, factor)  # fmt: skip
    for i0, j0, i1 in ((INTEGER(0), whole[1], whole[0]), (whole[0], INTEGER(0), rows)):
        with loop(builder, i0, i1, 1) as (i, _), loop(builder, j0, columns, 1) as (j, _):
            number = builder.fmul(builder.load(_element(builder, x, i, x_row, j)), factor)
            builder.store(number, _element(builder, out, j, o_row, i))


def _element(builder, x, i, row, j):
    return builder.gep(x, [builder.add(builder.mul(i, row), j)])


def _block(builder, out, o_row, x, x_row, factor):
    """One block of lanes × lanes."""
    n = Vector.lanes_of(x.type.pointee)
    align = 4 if isinstance(x.type.pointee, ir.FloatType) else 8
    rows = [spread(builder, _element(builder, x, INTEGER(i), x_row, INTEGER(0))) for i in range(n)]
    v = [builder.load(p, align=align) for p in rows]
    for p in rows:
        fetch(builder, builder.gep(builder.bitcast(p, x.type), [builder.mul(x_row, INTEGER(n))]))
    factor = broadcasted(builder, factor, v[0].type)
    v = [builder.fmul(u, factor) for u in v]
    v = turned(builder, v)
    for j in range(n):
        p = spread(builder, _element(builder, out, INTEGER(j), o_row, INTEGER(0)))
        builder.store(v[j], p, align=align)


def turned(builder, v):
    """The columns of as many vectors as they have lanes.

    A perfect shuffle of the rows, like one of cards, log2(lanes) times: in each round row i is
    zipped with row i + lanes/2: their first halves become the new row 2i, their second halves the
    new row 2i + 1. Element (i, j) wanders to (j, i).
    """
    n = len(v)
    halves = [[i // 2 + i % 2 * n + half for i in range(n)] for half in (0, n // 2)]
    zips = [ir.VectorType(ir.IntType(32), n)(order) for order in halves]
    for _ in range(n.bit_length() - 1):
        v = [builder.shuffle_vector(v[i], v[i + n // 2], z) for i in range(n // 2) for z in zips]
    return v


def _copied_vectors(builder, out, o_row, x, x_row, rows, columns, factor):
    lanes = Vector.lanes_of(x.type.pointee)
    align = 4 if isinstance(x.type.pointee, ir.FloatType) else 8
    whole = builder.sub(columns, builder.urem(columns, INTEGER(lanes)))
    with loop(builder, INTEGER(0), rows, 1) as (i, _):
        with loop(builder, INTEGER(0), whole, lanes) as (j, _):
            fetch(builder, _element(builder, x, builder.add(i, INTEGER(AHEAD)), x_row, j))
            v = builder.load(spread(builder, _element(builder, x, i, x_row, j)), align=align)
            v = builder.fmul(v, broadcasted(builder, factor, v.type))
            builder.store(v, spread(builder, _element(builder, out, i, o_row, j)), align=align)
        with loop(builder, whole, columns, 1) as (j, _):
            number = builder.fmul(builder.load(_element(builder, x, i, x_row, j)), factor)
            builder.store(number, _element(builder, out, i, o_row, j))
