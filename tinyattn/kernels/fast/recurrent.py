"""RNN, GRU and LSTM over whole sequences, forward and backward, with vector instructions.

kernels/recurrent.py has the formulas and the same functions as loops, with the same letters. In
this file, each thread takes a part of the batch through all steps. The matrix products are computed
in tiles of registers (machine/tiles.py), and the rest is computed with vectors while the numbers
are still in the first cache.
"""

from typing import NamedTuple

import numpy as np

from tinyattn.kernels.fast import thresholds
from tinyattn.kernels.machine import thread_pool
from tinyattn.kernels.machine.compile import helper, jit, noinline
from tinyattn.kernels.machine.fork_join import (
    chunk_start,
    fork_join,
    runtime_true,
    runtime_zero,
)
from tinyattn.kernels.machine.layout import ravel
from tinyattn.kernels.machine.load_store import (
    alloc_aligned,
    load,
    load_partial,
    store,
    store_partial,
)
from tinyattn.kernels.machine.simd import (
    broadcast,
    exp,
    fma,
    maximum,
    select_greater,
    width,
)
from tinyattn.kernels.machine.thread_pool import parallel_for
from tinyattn.kernels.machine.tiles import copy, fill, product, transpose
from tinyattn.kernels.recurrent import GATES, GRU, LSTM, RELU, TANH, parts_of

BLOCK_STEPS = 6  # steps whose W_ih x is computed together: long products that stay in the cache
MAX_PART_SEQUENCES = 32  # largest number of sequences that go through the steps together
TERMS = 128  # terms of a sum that are added together; a panel of this many rows fits into the cache
KEPT = 1, 1, 4, 6  # numbers per unit that are kept from each step for the backward pass
BLOCKS = 1, 1, 4, 4  # number of gates, plus one for the GRU, whose r needs q_n separately from p_n


class Sizes(NamedTuple):
    """The sizes of a call. P is H rounded up to whole vectors, and L is D rounded up."""

    kind: int
    B: int
    T: int
    D: int
    H: int
    P: int
    L: int
    reverse: bool


class Forward(NamedTuple):
    """The arrays of the forward pass, each with one axis. The first five are results."""

    y: np.ndarray  # [B, T, H]
    h: np.ndarray  # [B, H]: the first state before the call, the last one after it
    c: np.ndarray  # [B, H]: likewise the cell state of an LSTM
    prev: np.ndarray  # [B, T, P]: h before each step, for the backward pass
    kept: np.ndarray  # [B, T, KEPT, P]: other numbers for the backward pass
    x: np.ndarray  # [B, T, D]
    w_ih: np.ndarray  # packed
    w_hh: np.ndarray
    bias: np.ndarray  # [BLOCKS, P]
    lengths: np.ndarray  # [B]


class Backward(NamedTuple):
    """The arrays of the backward pass, each with one axis. The first four are results."""

    dx: np.ndarray  # [B, T, L], of size 0 if this gradient is not needed
    # [B, H]: the gradient of the last state before the call, of the first one after it
    dh: np.ndarray
    dc: np.ndarray  # [B, H]: likewise for the cell state of an LSTM
    dgates: np.ndarray  # [B, T, BLOCKS · P + W]: gradient of p and q
    gy: np.ndarray  # [B, T, H]
    prev: np.ndarray  # from the forward pass, like kept
    kept: np.ndarray
    w_ih: np.ndarray  # packed
    w_hh: np.ndarray
    lengths: np.ndarray  # [B]


@helper
def sigmoid(x):
    """Return 1 / (1 + e⁻ˣ) of a vector, where x < -80 is replaced by -80 to avoid an overflow.

    In float32, the error is at most 3.5 units in the last place (tests/scripts/all_floats.py).
    """
    bounded = maximum(broadcast(x, -80), x)
    return broadcast(x, 1) / (exp(broadcast(x, 0) - bounded) + broadcast(x, 1))


@helper
def tanh(x, tiny):
    """Return tanh x = 2 σ(2x) - 1 of a vector, or its Taylor series where x² ≤ tiny.

    For small x, the subtraction would cancel most digits. In float32, the error is at most 6.5
    units in the last place (tests/scripts/all_floats.py).
    """
    square = x * x
    series = fma(broadcast(x, 62 / 2835), square, broadcast(x, -17 / 315))
    series = fma(series, square, broadcast(x, 2 / 15))
    series = fma(series, square, broadcast(x, -1 / 3))
    series = fma(series * square, x, x)
    far = sigmoid(x + x)
    return select_greater(square, tiny, far + far - broadcast(x, 1), series)


@helper
def tiny_square(like):
    """Return the largest x² for which the series in `tanh` is exact to the last bit or two."""
    return broadcast(like, 0.09 if like.itemsize == 4 else 1e-4)


@helper
def tile_width(W, columns, j):
    """Return the width of the tile that starts at column j: four vectors, fewer at the end."""
    return min(4 * W, columns - j)


@jit
def pack_transposed(w, gates, rows, columns, P):
    """Return Wᵀ [columns, gates · P], packed into column panels as wide as a tile.

    A tile thus reads its numbers one after the other. With rows of Wᵀ, it would skip through memory
    in equal steps, and if these are a power of two, all rows fall into the same positions of the
    cache. The panel of a gate that begins with column j starts at (gate · P + j) · columns.
    """
    W = width(w)
    out = alloc_aligned(gates * P * columns, w)
    fill(out, w.dtype.type(0))
    for gate in range(gates):
        for j in range(0, P, 4 * W):
            wide, first = tile_width(W, P, j), (gate * rows + j) * columns
            transpose(
                out,
                (gate * P + j) * columns,
                wide,
                w,
                first,
                columns,
                min(wide, rows - j),
                columns,
                w.dtype.type(1),
            )
    return out


@jit
def pack_straight(w, gates, rows, columns, P, L):
    """Return W [gates · P, L], packed into column panels as wide as a tile.

    The panel that begins with column j starts at j · gates · P.
    """
    W = width(w)
    out = alloc_aligned(gates * P * L, w)
    fill(out, w.dtype.type(0))
    for gate in range(gates):
        for j in range(0, L, 4 * W):
            wide = tile_width(W, L, j)
            first = j * gates * P + gate * P * wide
            copy(
                out,
                first,
                wide,
                w,
                gate * rows * columns + j,
                columns,
                rows,
                min(wide, columns - j),
                w.dtype.type(1),
            )
    return out


@helper
def packed_product(c, c0, c_row, a, a0, a_row, b, b0, wide, rows, n, add):
    """Compute `product` with a packed panel of n rows, in steps of TERMS rows."""
    noinline()
    for k in range(0, n, TERMS):
        product(
            c,
            c0,
            c_row,
            a,
            a0 + k,
            a_row,
            1,
            b,
            b0 + k * wide,
            wide,
            rows,
            wide,
            min(TERMS, n - k),
            add or k > 0,
        )


@helper
def states_in(h, c, all_h, all_c, n, b0, R):
    """Copy R rows from b0 on of all_h and (LSTM) all_c [B, H] to h and c [R, P], padded with 0."""
    for r in range(R):
        at, end = (b0 + r) * n.H, (b0 + r + 1) * n.H
        for u in range(0, n.P, width(h)):
            store(h, r * n.P + u, load_partial(all_h, at + u, end, 0))
            if n.kind == LSTM:
                store(c, r * n.P + u, load_partial(all_c, at + u, end, 0))


@helper
def states_out(all_h, all_c, h, c, n, b0, R):
    """Copy h and (LSTM) c [R, P] back to R rows from b0 on of all_h and all_c [B, H]."""
    for r in range(R):
        at, end = (b0 + r) * n.H, (b0 + r + 1) * n.H
        for u in range(0, n.P, width(h)):
            store_partial(all_h, at + u, end, load(h, r * n.P + u))
            if n.kind == LSTM:
                store_partial(all_c, at + u, end, load(c, r * n.P + u))


# ---------------------------------------------------------------- forward


@jit
def forward(arrays, n, parts, team, start, stop):
    """Run all steps for parts start … stop - 1 of the batch. `arrays` is `Forward`, n is `Sizes`.

    gates [BLOCK_STEPS, R, BLOCKS, P] contains p + q of some steps of the R sequences of a part,
    where b0 is the first sequence. For the GRU, it contains p_r + q_r, p_z + q_z, p_n and q_n.
    """
    if fork_join(team, start, stop):
        return
    n = Sizes(*n)
    y, all_h, all_c, prev, kept, x, w_ih, w_hh, bias, lengths = Forward(*arrays)
    P, row = n.P, BLOCKS[n.kind] * n.P
    for part in range(start, stop):
        b0 = chunk_start(n.B, 4, part, parts)
        R, longest = chunk_start(n.B, 4, part + 1, parts) - b0, 0
        gates, h = alloc_aligned(BLOCK_STEPS * R * row, x), alloc_aligned(R * P, x)
        c = alloc_aligned(R * P, x)
        fill(c, x.dtype.type(0))
        for b in range(b0, b0 + R):
            longest = max(longest, lengths[b])
        states_in(h, c, all_h, all_c, n, b0, R)
        for done in range(0, longest, BLOCK_STEPS):
            steps = min(BLOCK_STEPS, longest - done)
            t0 = longest - done - steps if n.reverse else done
            input_products(gates, x, w_ih, n, t0, steps, b0, R)
            for i in range(steps):
                t = t0 + (steps - 1 - i if n.reverse else i)
                at = (t - t0) * R * row
                state_products(gates, at, h, w_hh, n, R)
                for r in range(R):
                    if t < lengths[b0 + r]:
                        place = (b0 + r) * n.T + t
                        next_vectors(y, h, c, prev, kept, gates, at + r * row, bias, n, r, place)
        states_out(all_h, all_c, h, c, n, b0, R)


@helper
def input_products(gates, x, ih, n, t0, steps, b0, R):
    """Write W_ih x_t to gates[t, r, gate], for `steps` steps of R sequences from t0 and b0 on."""
    noinline()
    W, row = width(x), BLOCKS[n.kind] * n.P
    for gate in range(GATES[n.kind]):
        for j in range(0, n.P, 4 * W):
            wide, panel, at = tile_width(W, n.P, j), (gate * n.P + j) * n.D, gate * n.P + j
            for k in range(0, n.D, TERMS):
                terms, part = min(TERMS, n.D - k), panel + k * wide
                if steps >= R:  # the rows of a product are the steps of one sequence
                    for r in range(R):
                        product(
                            gates,
                            at + r * row,
                            R * row,
                            x,
                            ((b0 + r) * n.T + t0) * n.D + k,
                            n.D,
                            1,
                            ih,
                            part,
                            wide,
                            steps,
                            wide,
                            terms,
                            k > 0,
                        )
                else:  # the rows of a product are one step of all sequences
                    for i in range(steps):
                        product(
                            gates,
                            at + i * R * row,
                            row,
                            x,
                            (b0 * n.T + t0 + i) * n.D + k,
                            n.T * n.D,
                            1,
                            ih,
                            part,
                            wide,
                            R,
                            wide,
                            terms,
                            k > 0,
                        )


@helper
def state_products(gates, at, h, hh, n, R):
    """Add W_hh h to the gates of one step of R sequences, but keep it apart for the n of a GRU."""
    noinline()
    W, row = width(h), BLOCKS[n.kind] * n.P
    for gate in range(GATES[n.kind]):
        apart = n.kind == GRU and gate == 2
        for j in range(0, n.P, 4 * W):
            wide = tile_width(W, n.P, j)
            packed_product(
                gates,
                at + (gate + apart) * n.P + j,
                row,
                h,
                runtime_zero(),
                n.P,
                hh,
                (gate * n.P + j) * n.H,
                wide,
                R,
                n.H,
                not apart,
            )


@helper
def next_vectors(y, h, c, prev, kept, gates, at, bias, n, r, place):
    """Run `step` of the loops with vectors, for sequence r, where `place` is b · T + t."""
    noinline()
    W, P, tiny = width(y), n.P, tiny_square(y)
    keep = place * KEPT[n.kind] * P
    for u in range(0, P, W):
        s = r * P + u
        before = load(h, s)
        store(prev, place * P + u, before)
        first = load(gates, at + u) + load(bias, u)
        if n.kind == TANH:
            now = tanh(first, tiny)
            store(kept, keep + u, now)
        elif n.kind == RELU:
            now = maximum(broadcast(y, 0), first)
            store(kept, keep + u, now)
        elif n.kind == GRU:
            r_u, z = sigmoid(first), sigmoid(load(gates, at + P + u) + load(bias, P + u))
            q = load(gates, at + 3 * P + u) + load(bias, 3 * P + u)
            new = tanh(fma(r_u, q, load(gates, at + 2 * P + u) + load(bias, 2 * P + u)), tiny)
            now = fma(z, before - new, new)
            store(kept, keep + u, r_u)
            store(kept, keep + P + u, z)
            store(kept, keep + 2 * P + u, new)
            store(kept, keep + 3 * P + u, q)
        else:
            i, f = sigmoid(first), sigmoid(load(gates, at + P + u) + load(bias, P + u))
            g = tanh(load(gates, at + 2 * P + u) + load(bias, 2 * P + u), tiny)
            o = sigmoid(load(gates, at + 3 * P + u) + load(bias, 3 * P + u))
            cell = load(c, s)
            store(kept, keep + u, i)
            store(kept, keep + P + u, f)
            store(kept, keep + 2 * P + u, g)
            store(kept, keep + 3 * P + u, o)
            store(kept, keep + 5 * P + u, cell)
            cell = fma(f, cell, i * g)
            tanh_c = tanh(cell, tiny)
            store(kept, keep + 4 * P + u, tanh_c)
            store(c, s, cell)
            now = o * tanh_c
        store(h, s, now)
        store_partial(y, place * n.H + u, (place + 1) * n.H, now)


# ---------------------------------------------------------------- backward


@jit
def row_of_gradients(n, W):
    """Return the stride from step to step in dgates.

    It is one vector longer than needed, because steps at a distance of a power of two would compete
    for the same cache lines.
    """
    return BLOCKS[n.kind] * n.P + W


@jit
def backward(arrays, n, parts, team, start, stop):
    """Run all steps backwards for parts start … stop - 1 of the batch. `arrays` is `Backward`.

    The product dgates W_hh is added to dh of the state before a step. The rows of dgates of one
    step are also in `now`, contiguous for the product. They are 0 for a sequence that has ended.
    """
    if fork_join(team, start, stop):
        return
    n = Sizes(*n)
    dx, all_dh, all_dc, dgates, gy, prev, kept, w_ih, w_hh, lengths = Backward(*arrays)
    W, P, row = width(gy), n.P, row_of_gradients(n, width(gy))
    GP, last = GATES[n.kind] * P, (2 if n.kind == GRU else GATES[n.kind]) * P
    for part in range(start, stop):
        b0 = chunk_start(n.B, 4, part, parts)
        R, longest = chunk_start(n.B, 4, part + 1, parts) - b0, 0
        dh, dc, now = alloc_aligned(R * P, gy), alloc_aligned(R * P, gy), alloc_aligned(R * row, gy)
        fill(now, gy.dtype.type(0))
        for b in range(b0, b0 + R):
            longest = max(longest, lengths[b])
        states_in(dh, dc, all_dh, all_dc, n, b0, R)
        for done in range(0, longest, BLOCK_STEPS):
            steps = min(BLOCK_STEPS, longest - done)
            t0 = done if n.reverse else longest - done - steps
            for i in range(steps):
                t = t0 + (i if n.reverse else steps - 1 - i)
                for r in range(R):
                    if t < lengths[b0 + r]:
                        place = (b0 + r) * n.T + t
                        vectors_backward(dgates, now, dh, dc, gy, kept, prev, n, r, place)
                    else:
                        fill(now[r * row : (r + 1) * row], gy.dtype.type(0))
                for j in range(0, P, 4 * W):
                    wide = tile_width(W, P, j)
                    packed_product(
                        dh,
                        j,
                        P,
                        now,
                        runtime_zero(),
                        row,
                        w_hh,
                        j * GP,
                        wide,
                        R,
                        last,
                        runtime_true(),
                    )
                    if n.kind == GRU:
                        packed_product(
                            dh,
                            j,
                            P,
                            now,
                            3 * P,
                            row,
                            w_hh,
                            j * GP + last * wide,
                            wide,
                            R,
                            P,
                            runtime_true(),
                        )
            if dx.size:
                input_gradients(dx, dgates, w_ih, n, t0, steps, b0, R)
        states_out(all_dh, all_dc, dh, dc, n, b0, R)


@helper
def input_gradients(dx, dgates, ih, n, t0, steps, b0, R):
    """Compute dx_t = dp_t W_ih, for `steps` steps of R sequences from t0 and b0 on."""
    noinline()
    W, row, GP = width(dx), row_of_gradients(n, width(dx)), GATES[n.kind] * n.P
    for j in range(0, n.L, 4 * W):
        wide = tile_width(W, n.L, j)
        for k in range(0, GP, TERMS):
            for r in range(R):
                place, terms = (b0 + r) * n.T + t0, min(TERMS, GP - k)
                product(
                    dx,
                    place * n.L + j,
                    n.L,
                    dgates,
                    place * row + k,
                    row,
                    1,
                    ih,
                    j * GP + k * wide,
                    wide,
                    steps,
                    wide,
                    terms,
                    k > 0,
                )


@helper
def vectors_backward(dgates, now, dh, dc, gy, kept, prev, n, r, place):
    """Run `step_backward` of the loops with vectors, for sequence r, where `place` is b · T + t."""
    noinline()
    W, P, H = width(gy), n.P, n.H
    row = row_of_gradients(n, W)
    keep, to, at, one = place * KEPT[n.kind] * P, place * row, r * row, broadcast(gy, 1)
    for u in range(0, P, W):
        s = r * P + u
        d = load(dh, s) + load_partial(gy, place * H + u, (place + 1) * H, 0)
        a = load(kept, keep + u)
        if n.kind == TANH:
            store(now, at + u, d * (one - a * a))
            store(dh, s, broadcast(gy, 0))
        elif n.kind == RELU:
            store(now, at + u, select_greater(a, broadcast(gy, 0), d, broadcast(gy, 0)))
            store(dh, s, broadcast(gy, 0))
        elif n.kind == GRU:
            z, new = load(kept, keep + P + u), load(kept, keep + 2 * P + u)
            q = load(kept, keep + 3 * P + u)
            dn = d * (one - z) * (one - new * new)
            store(now, at + u, dn * q * a * (one - a))
            before = load(prev, place * P + u)
            store(now, at + P + u, d * (before - new) * z * (one - z))
            store(now, at + 2 * P + u, dn)
            store(now, at + 3 * P + u, dn * a)
            store(dh, s, d * z)
        else:
            f, g = load(kept, keep + P + u), load(kept, keep + 2 * P + u)
            o, tanh_c = load(kept, keep + 3 * P + u), load(kept, keep + 4 * P + u)
            dcell = fma(d * o, one - tanh_c * tanh_c, load(dc, s))
            store(now, at + u, dcell * g * a * (one - a))
            store(now, at + P + u, dcell * load(kept, keep + 5 * P + u) * f * (one - f))
            store(now, at + 2 * P + u, dcell * a * (one - g * g))
            store(now, at + 3 * P + u, d * tanh_c * o * (one - o))
            store(dc, s, dcell * f)
            store(dh, s, broadcast(gy, 0))
    for u in range(0, BLOCKS[n.kind] * P, W):
        store(dgates, to + u, load(now, at + u))


@jit
def weight_gradients(dw_ih, dw_hh, db, dgates, x, prev, n, parts, team, start, stop):
    """Compute db and parts start … stop - 1 of the rows of dW_ih = Σ dp x and dW_hh = Σ dq h.

    The sums run over all sequences and steps, and TERMS terms are added at a time. For this
    purpose, x and h of TERMS steps are packed into panels. Then 4 · W columns of dgates at a time
    are copied into one block and multiplied by all panels.
    """
    if fork_join(team, start, stop):
        return
    n = Sizes(*n)
    W, P, N, rows = width(x), n.P, n.B * n.T, GATES[n.kind] * n.P
    row, one = row_of_gradients(n, W), x.dtype.type(1)
    panels, own = alloc_aligned(TERMS * (n.L + P), x), alloc_aligned(TERMS * 4 * W, x)
    low, high = chunk_start(rows, W, start, parts), chunk_start(rows, W, stop, parts)
    cut = max(low, min(high, 2 * P)) if n.kind == GRU else high  # from here on, dq differs from dp
    for k0 in range(0, N, TERMS):
        k = min(TERMS, N - k0)
        for j in range(0, n.L, 4 * W):
            wide = tile_width(W, n.L, j)
            copy(panels, TERMS * j, wide, x, k0 * n.L + j, n.L, k, wide, one)
        for j in range(0, P, 4 * W):
            wide = tile_width(W, P, j)
            copy(panels, TERMS * (n.L + j), wide, prev, k0 * P + j, P, k, wide, one)
        for i in range(low, high, 4 * W):
            some = min(4 * W, high - i)
            copy(own, 0, some, dgates, k0 * row + i, row, k, some, one)
            for j in range(0, n.L, 4 * W):
                wide = tile_width(W, n.L, j)
                product(
                    dw_ih,
                    i * n.L + j,
                    n.L,
                    own,
                    0,
                    1,
                    some,
                    panels,
                    TERMS * j,
                    wide,
                    some,
                    wide,
                    k,
                    True,
                )
            add_up(db, i, own, some, k)
            dq = min(some, max(cut - i, 0))
            state_gradients(dw_hh, own, runtime_zero(), some, panels, n, i, dq, k)
            if dq < some:
                copy(own, 0, some, dgates, k0 * row + P + i, row, k, some, one)
                state_gradients(dw_hh, own, dq, some, panels, n, i + dq, some - dq, k)
        if n.kind == GRU:
            for i in range(k0, k0 + k):
                for j in range(cut + P, high + P, W):
                    store(db, j, load(db, j) + load(dgates, i * row + j))


@helper
def state_gradients(dw_hh, own, first, high, panels, n, i, rows, k):
    """Add ownᵀ h to rows i … i + rows - 1 of dW_hh, for k steps, whose h is in the panels.

    `own` [k, high] contains columns of dgates, which are used from column `first` on.
    """
    noinline()
    W, P = width(own), n.P
    for j in range(0, P, 4 * W):
        wide = tile_width(W, P, j)
        product(
            dw_hh,
            i * P + j,
            P,
            own,
            first,
            1,
            high,
            panels,
            TERMS * (n.L + j),
            wide,
            rows,
            wide,
            k,
            True,
        )


@helper
def add_up(db, i, own, high, k):
    """Add the sum of the k rows of own [k, high] to db[i], db[i + 1], …."""
    noinline()
    W = width(own)
    for j in range(0, high, W):
        total = load(db, i + j)
        for m in range(k):
            total = total + load(own, m * high + j)
        store(db, i + j, total)


# ---------------------------------------------------------------- all parts of a batch


def round_up(n, W):
    """Return n rounded up to whole vectors of W numbers."""
    return -(-n // W) * W


def sizes_of(kind, x, w_hh, reverse):
    """Return the `Sizes` of a call."""
    (B, T, D), H, W = x.shape, w_hh.shape[1], width(x)
    return Sizes(kind, B, T, D, H, round_up(H, W), round_up(D, W), bool(reverse))


def over_batch(kernel, n, *arrays):
    """Run a kernel in parallel on parts of the batch, which are whole groups of 4 sequences."""
    parts = min(-(-n.B // 4), max(thread_pool.num_threads(), -(-n.B // MAX_PART_SEQUENCES)))
    parallel_for(kernel, parts, arrays, tuple(n), parts, serial=is_small(n))


def is_small(n):
    """Return whether the work is so small that a second thread would not help."""
    return n.B * n.T * n.H * (n.D + n.H) < thresholds.RECURRENT


def padded(x, shape):
    """Return x with zeros after the end of each axis, up to `shape`."""
    if x.shape == shape:
        return x
    out = np.zeros(shape, x.dtype)
    out[tuple(slice(m) for m in x.shape)] = x
    return out


def sequence(kind, x, h0, c0, w_ih, w_hh, b_ih, b_hh, lengths, reverse):
    """Return y, last h and (LSTM) last c as one row, and the arrays for the backward pass."""
    n, states, G = sizes_of(kind, x, w_hh, reverse), 1 + (kind == LSTM), GATES[kind]
    full = lengths.size == 0 or lengths.min() == n.T
    empty = np.empty if full else np.zeros  # nothing is written after the end of a sequence
    row = empty(n.B * (n.T + states) * n.H, x.dtype)
    y, h, c = parts_of(row, x, n.H, states)
    h[:] = h0
    c[:] = c0[:, : c.shape[1]]
    bias = np.zeros((BLOCKS[kind], n.P), x.dtype)
    bias[:G, : n.H] = b_ih.reshape(G, n.H)
    bias[[0, 1, 3] if kind == GRU else slice(G), : n.H] += b_hh.reshape(G, n.H)
    ih = pack_transposed(ravel(w_ih), G, n.H, n.D, n.P)
    hh = pack_transposed(ravel(w_hh), G, n.H, n.H, n.P)
    prev = empty(n.B * n.T * n.P, x.dtype)
    kept = np.empty(n.B * n.T * KEPT[kind] * n.P, x.dtype)
    outputs = ravel(y), ravel(h), ravel(c)
    over_batch(forward, n, *outputs, prev, kept, ravel(x), ih, hh, ravel(bias), lengths)
    return row, (prev, kept)


def sequence_gradients(kind, g, residuals, needs_x, x, w_ih, w_hh, lengths, reverse):
    """Return dx (None unless needs_x), dh0, dc0, dW_ih, dW_hh, db_ih and db_hh.

    g is the gradient of the row that `sequence` returned, and residuals its second result.
    """
    n, states, G = sizes_of(kind, x, w_hh, reverse), 1 + (kind == LSTM), GATES[kind]
    P, H, D = n.P, n.H, n.D
    prev, kept = residuals
    gy, dh, dc = parts_of(ravel(g), x, H, states)
    dh, dc = dh.copy(), dc.copy()
    full = lengths.size == 0 or lengths.min() == n.T
    empty = np.empty if full else np.zeros
    dx = empty((n.B, n.T, n.L) if needs_x else 0, x.dtype)
    dgates = empty(n.B * n.T * row_of_gradients(n, width(x)), x.dtype)
    ih = pack_straight(ravel(w_ih), G, H, D, P, n.L)
    hh = pack_straight(ravel(w_hh), G, H, H, P, P)
    over_batch(
        backward,
        n,
        dx.reshape(-1),
        ravel(dh),
        ravel(dc),
        dgates,
        ravel(gy),
        prev,
        kept,
        ih,
        hh,
        lengths,
    )
    dw_ih, dw_hh = np.zeros((G, P, n.L), x.dtype), np.zeros((G, P, P), x.dtype)
    db = np.zeros((BLOCKS[kind], P), x.dtype)
    arrays = dw_ih.reshape(-1), dw_hh.reshape(-1), db.reshape(-1), dgates
    wide_x = ravel(padded(x, (n.B, n.T, n.L)))
    parts = thread_pool.num_threads()
    arrays = *arrays, wide_x, prev, tuple(n), parts
    parallel_for(weight_gradients, parts, *arrays, serial=is_small(n))
    db_hh = db[[0, 1, 3]] if kind == GRU else db
    return (
        dx[..., :D] if needs_x else None,
        dh,
        dc,
        dw_ih[:, :H, :D].reshape(-1, D),
        dw_hh[:, :H, :H].reshape(-1, H),
        db[:G, :H].reshape(-1),
        db_hh[:, :H].reshape(-1),
    )
