"""Product and transpose, the two operations on blocks of a matrix that fast kernels consist of.

A processor can multiply far more numbers per second than it can read from memory, so each number
must be used several times while it is in a register. `product` computes one tile of the result at a
time, for example 6 rows of 4 vectors. For each k, it reads 4 vectors of B and 6 numbers of A, and
uses them for 24 multiply-adds. The 24 sums stay in registers until the tile is done.

                         b[k, j]   4 vectors of row k
        a[i,     k]   ┌──────────────────────────┐
        a[i + 1, k]   │  c[i, j] … 24 registers  │
        a[i + 2, k]   │                          │
             …        │                          │
        a[i + 5, k]   └──────────────────────────┘

A matrix is given as a one-dimensional array, the index of its first element and its strides.
Element (i, k) of a is a[a0 + i · a_row + k · a_col], so the same function multiplies A and Aᵀ.
"""

import numpy as np

from tinyattn.kernels.machine.compile import intrinsic, numba
from tinyattn.kernels.machine.llvm import (
    VECTOR_BYTES,
    VECTOR_REGISTERS,
    Vector,
    call_intrinsic,
    call_subroutine,
    element_pointer,
    emit_broadcast,
    emit_loop,
    emit_prefetch,
    extent_of,
    size_of,
    vector_pointer,
)

if numba is not None:
    from llvmlite import ir
    from numba import types

    INT64 = ir.IntType(64)

# (vectors, rows) of a tile, the widest first, because the last columns use a narrower one
TILES = ((4, 6), (2, 8), (1, 8)) if VECTOR_REGISTERS == 32 else ((2, 6), (1, 6))
TILE_ROWS = TILES[0][1]  # rows of the widest tile
REMAINDER_ROWS = 4, 2, 1  # heights of the tiles for the last rows of C
PREFETCH_ROWS = 8  # a row is prefetched this many rows before it is copied


# ---------------------------------------------------------------- product


def _product_reference(c, c0, c_row, a, a0, a_row, a_col, b, b0, b_row, rows, columns, n, add):
    i, j, k = (np.arange(m) for m in (rows, columns, n))
    c_ij = c0 + i[:, None] * c_row + j
    found = a[a0 + i[:, None] * a_row + k * a_col] @ b[b0 + k[:, None] * b_row + j]
    c[c_ij] = (c[c_ij] if add else 0) + found


@intrinsic(_product_reference)
def product(typing, c, c0, c_row, a, a0, a_row, a_col, b, b0, b_row, rows, columns, n, add):
    """Compute c[i, j] = Σ_k a[i, k] b[k, j], i < rows, j < columns, k < n, added to c if `add`.

    c[i, j] is c[c0 + i · c_row + j], a[i, k] is a[a0 + i · a_row + k · a_col], b[k, j] is b[b0 + k
    · b_row + j]. `columns` is a multiple of `width(c)`. rows and n are arbitrary.
    """
    vector = Vector(c.dtype)

    def code(context, builder, signature, args):
        c, c0, c_row, a, a0, a_row, a_col, b, b0, b_row, rows, columns, n, add = args
        kinds, one = signature.args, INT64(1)
        extent = extent_of(builder, rows, c_row, columns, one)
        c = element_pointer(context, builder, kinds[0], c, c0, extent)
        a = element_pointer(
            context, builder, kinds[3], a, a0, extent_of(builder, rows, a_row, n, a_col)
        )
        b = element_pointer(
            context, builder, kinds[7], b, b0, extent_of(builder, n, b_row, columns, one)
        )
        arguments = [c, c_row, a, a_row, a_col, b, b_row, rows, columns, n, add]
        call_subroutine(builder, f"product_{vector.dtype}", arguments, _emit_product)
        return context.get_dummy_value()

    size = types.intp
    signature = types.void(
        c, size, size, a, size, size, size, b, size, size, size, size, size, types.boolean
    )
    return signature, code


def _emit_product(builder, c, c_row, a, a_row, a_col, b, b_row, rows, columns, n, add):
    def tile(h, vectors, c_ij, i, j, b_j):
        a_i = builder.gep(a, [builder.mul(i, a_row)])
        emit_tile(builder, h, vectors, c_ij, c_row, a_i, a_row, a_col, b_j, b_row, n, add)

    kinds = [(vectors, (height, *REMAINDER_ROWS)) for vectors, height in TILES]
    emit_tiles(builder, kinds, tile, c, c_row, b, rows, columns)


def emit_tiles(builder, kinds, tile, c, c_row, b, rows, columns):
    """Call tile(height, vectors, address of c[i, j], i, j, address of b[0, j]) for all tiles of C.

    `kinds` contains (vectors, heights), sorted from the widest to the narrowest, with the heights
    in descending order.
    """
    lanes = Vector.lanes_of(c.type.pointee)
    j0 = INT64(0)
    for vectors, heights in kinds:
        wide = vectors * lanes
        stop = builder.add(builder.sub(columns, INT64(wide)), INT64(1))
        with emit_loop(builder, j0, stop, wide) as (j, _):
            i0 = INT64(0)
            for h in heights:
                end = builder.add(builder.sub(rows, INT64(h)), INT64(1))
                with emit_loop(builder, i0, end, h) as (i, _):
                    c_ij = builder.gep(c, [builder.add(builder.mul(i, c_row), j)])
                    tile(h, vectors, c_ij, i, j, builder.gep(b, [j]))
                i0 = builder.sub(rows, builder.urem(builder.sub(rows, i0), INT64(h)))
        j0 = builder.sub(columns, builder.urem(builder.sub(columns, j0), INT64(wide)))


def emit_tile(
    builder, rows, vectors, c, c_row, a, a_row, a_col, b, b_row, n, add, onto=None, ahead=0
):
    """Emit c[i, j] = Σ_k a[i, k] b[k, j] for `rows` rows of `vectors` vectors, all in registers.

    With `add`, d[i, j] is added, where onto = (address, step between rows) of d, or None for C. C
    is prefetched at the start, because it is needed at the end. B is prefetched `ahead` rows before
    it is needed, if that is not 0.
    """
    lanes = Vector.lanes_of(c.type.pointee)
    places = [(i, j) for i in range(rows) for j in range(vectors)]
    c_rows = [builder.gep(c, [builder.mul(c_row, INT64(i))]) for i in range(rows)]
    a_rows = [builder.gep(a, [builder.mul(a_row, INT64(i))]) for i in range(rows)]
    c_ij = [vector_pointer(builder, c_rows[i], j * lanes) for i, j in places]
    align = size_of(c.type.pointee)
    for p in c_ij:
        emit_prefetch(builder, p)
    first = [ir.VectorType(c.type.pointee, lanes)(None) for _ in places]
    before = builder.block
    body, done = builder.append_basic_block("k"), builder.append_basic_block("k_done")
    builder.cbranch(builder.icmp_signed(">", n, INT64(0)), body, done)

    builder.position_at_end(body)
    k, a_k, b_k = (builder.phi(INT64) for _ in range(3))
    sums = [builder.phi(x.type) for x in first]
    b_row_k = builder.gep(b, [b_k])
    for j in range(vectors if ahead else 0):
        later = builder.add(builder.mul(b_row, INT64(ahead)), INT64(j * lanes))
        emit_prefetch(builder, builder.gep(b_row_k, [later]))
    b_kj = [
        builder.load(vector_pointer(builder, b_row_k, j * lanes), align=align)
        for j in range(vectors)
    ]
    then = []
    for i in range(rows):
        a_ik = emit_broadcast(builder, builder.load(builder.gep(a_rows[i], [a_k])), b_kj[0].type)
        for j in range(vectors):
            then.append(
                call_intrinsic(builder, "llvm.fmuladd", a_ik, b_kj[j], sums[i * vectors + j])
            )
    steps = [builder.add(k, INT64(1)), builder.add(a_k, a_col), builder.add(b_k, b_row)]
    builder.cbranch(builder.icmp_signed("<", steps[0], n), body, done)
    builder.position_at_end(done)
    result = [builder.phi(x.type) for x in first]
    starts = [INT64(0)] * 3 + first + first
    for phi, start, step in zip(
        [k, a_k, b_k, *sums, *result], starts, [*steps, *then, *then], strict=True
    ):
        phi.add_incoming(start, before)
        phi.add_incoming(step, body)
    with builder.if_else(add) as (then, instead):
        with then:
            d, d_row = onto or (c, c_row)
            d_rows = [builder.gep(d, [builder.mul(d_row, INT64(i))]) for i in range(rows)]
            for (i, j), x, p in zip(places, result, c_ij, strict=True):
                before = builder.load(vector_pointer(builder, d_rows[i], j * lanes), align=align)
                builder.store(builder.fadd(before, x), p, align=align)
        with instead:
            for x, p in zip(result, c_ij, strict=True):
                builder.store(x, p, align=align)


# ---------------------------------------------------------------- fill, transpose, copy


@intrinsic(lambda out, number: out.fill(number))
def fill(typing, out, number):
    """Set out[i] = number for all i. This compiles much faster than out[:] = number."""

    def code(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        arguments = [array.data, array.nitems, args[1]]
        call_subroutine(builder, f"fill_{signature.args[0].dtype}", arguments, _emit_fill)
        return context.get_dummy_value()

    return types.void(out, out.dtype), code


def _emit_fill(builder, out, n, number):
    with emit_loop(builder, INT64(0), n, 1) as (i, _):
        builder.store(number, builder.gep(out, [i]))


def _transpose_reference(out, o0, o_row, x, x0, x_row, rows, columns, factor):
    i, j = np.arange(rows)[:, None], np.arange(columns)
    out[o0 + j * o_row + i] = factor * x[x0 + i * x_row + j]


@intrinsic(_transpose_reference)
def transpose(typing, out, o0, o_row, x, x0, x_row, rows, columns, factor):
    """Write factor · x[i, j] to out[j, i] for i < rows, j < columns.

    x[i, j] is x[x0 + i · x_row + j], out[j, i] is out[o0 + j · o_row + i].
    """
    return _move("transpose", out, x, _emit_transpose, True)


def _copy_reference(out, o0, o_row, x, x0, x_row, rows, columns, factor):
    i, j = np.arange(rows)[:, None], np.arange(columns)
    out[o0 + i * o_row + j] = factor * x[x0 + i * x_row + j]


@intrinsic(_copy_reference)
def copy(typing, out, o0, o_row, x, x0, x_row, rows, columns, factor):
    """Write factor · x[i, j] to out[i, j] for i < rows, j < columns.

    x[i, j] is x[x0 + i · x_row + j], out[i, j] is out[o0 + i · o_row + j].
    """
    return _move("copy", out, x, _emit_copy, False)


def _move(name, out, x, emit, turned):
    def code(context, builder, signature, args):
        out, o0, o_row, x, x0, x_row, rows, columns, factor = args
        kinds, size = signature.args, (columns, rows) if turned else (rows, columns)
        extent = extent_of(builder, size[0], o_row, size[1], INT64(1))
        out = element_pointer(context, builder, kinds[0], out, o0, extent)
        extent = extent_of(builder, rows, x_row, columns, INT64(1))
        x = element_pointer(context, builder, kinds[3], x, x0, extent)
        arguments = [out, o_row, x, x_row, rows, columns, factor]
        call_subroutine(builder, f"{name}_{signature.args[0].dtype}", arguments, emit)
        return context.get_dummy_value()

    size = types.intp
    return types.void(out, size, size, x, size, size, size, size, x.dtype), code


def _emit_transpose(builder, out, o_row, x, x_row, rows, columns, factor):
    """Transpose whole blocks of lanes × lanes in registers, then the other columns and rows."""
    lanes = INT64(Vector.lanes_of(x.type.pointee))
    whole = [builder.sub(m, builder.urem(m, lanes)) for m in (rows, columns)]
    with emit_loop(builder, INT64(0), whole[0], lanes.constant) as (i, _):
        with emit_loop(builder, INT64(0), whole[1], lanes.constant) as (j, _):
            _emit_block(
                builder,
                _element(builder, out, j, o_row, i),
                o_row,
                _element(builder, x, i, x_row, j),
                x_row,
                factor,
            )
    for i0, j0, i1 in ((INT64(0), whole[1], whole[0]), (whole[0], INT64(0), rows)):
        with emit_loop(builder, i0, i1, 1) as (i, _), emit_loop(builder, j0, columns, 1) as (j, _):
            number = builder.fmul(builder.load(_element(builder, x, i, x_row, j)), factor)
            builder.store(number, _element(builder, out, j, o_row, i))


def _element(builder, x, i, row, j):
    return builder.gep(x, [builder.add(builder.mul(i, row), j)])


def _emit_block(builder, out, o_row, x, x_row, factor):
    """Transpose one block of lanes × lanes."""
    n = Vector.lanes_of(x.type.pointee)
    align = size_of(x.type.pointee)
    rows = [
        vector_pointer(builder, _element(builder, x, INT64(i), x_row, INT64(0))) for i in range(n)
    ]
    v = [builder.load(p, align=align) for p in rows]
    for p in rows:
        emit_prefetch(
            builder, builder.gep(builder.bitcast(p, x.type), [builder.mul(x_row, INT64(n))])
        )
    factor = emit_broadcast(builder, factor, v[0].type)
    v = [builder.fmul(u, factor) for u in v]
    v = transpose_in_registers(builder, v)
    for j in range(n):
        p = vector_pointer(builder, _element(builder, out, INT64(j), o_row, INT64(0)))
        builder.store(v[j], p, align=align)


def transpose_in_registers(builder, v):
    """Transpose a square block, which is given as one vector for each row.

    In each of log2(lanes) rounds, row i is interleaved with row i + lanes/2. Their first halves
    become the new row 2i, and their second halves the new row 2i + 1. After the last round, element
    (i, j) is at (j, i).
    """
    if VECTOR_BYTES == 32:
        return _transpose_by_halves(builder, v)
    n = len(v)
    orders = [[i // 2 + i % 2 * n + half for i in range(n)] for half in (0, n // 2)]
    zips = [ir.VectorType(ir.IntType(32), n)(order) for order in orders]
    for _ in range(n.bit_length() - 1):
        v = [builder.shuffle_vector(v[i], v[i + n // 2], z) for i in range(n // 2) for z in zips]
    return v


def _transpose_by_halves(builder, v):
    """Do the same as `transpose_in_registers` with AVX2, which interleaves only within halves.

    First, blocks of half the number of rows and columns are transposed, the left and the right
    block of the same rows at the same time. Then the halves are exchanged.
    """
    n, half = len(v), len(v) // 2

    def shuffled(a, b, order):
        return builder.shuffle_vector(a, b, ir.VectorType(ir.IntType(32), n)(order))

    zips = [
        [side + i // 2 + i % 2 * n + start for side in (0, half) for i in range(half)]
        for start in (0, half // 2)
    ]
    blocks = [v[:half], v[half:]]
    for _ in range(half.bit_length() - 1):
        blocks = [
            [shuffled(u[i], u[i + half // 2], z) for i in range(half // 2) for z in zips]
            for u in blocks
        ]
    parts = [[n * (i >= half) + i % half + start for i in range(n)] for start in (0, half)]
    return [shuffled(a, b, part) for part in parts for a, b in zip(*blocks, strict=True)]


def _emit_copy(builder, out, o_row, x, x_row, rows, columns, factor):
    lanes = Vector.lanes_of(x.type.pointee)
    align = size_of(x.type.pointee)
    whole = builder.sub(columns, builder.urem(columns, INT64(lanes)))
    with emit_loop(builder, INT64(0), rows, 1) as (i, _):
        with emit_loop(builder, INT64(0), whole, lanes) as (j, _):
            emit_prefetch(
                builder, _element(builder, x, builder.add(i, INT64(PREFETCH_ROWS)), x_row, j)
            )
            v = builder.load(
                vector_pointer(builder, _element(builder, x, i, x_row, j)), align=align
            )
            v = builder.fmul(v, emit_broadcast(builder, factor, v.type))
            builder.store(
                v, vector_pointer(builder, _element(builder, out, i, o_row, j)), align=align
            )
        with emit_loop(builder, whole, columns, 1) as (j, _):
            number = builder.fmul(builder.load(_element(builder, x, i, x_row, j)), factor)
            builder.store(number, _element(builder, out, i, o_row, j))
