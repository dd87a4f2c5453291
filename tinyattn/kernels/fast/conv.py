"""Convolution over one or two axes, forward and backward.

    y_o,i = b_o + Σ_c Σ_k w_o,c,k x_c,(i · stride + k · dilation - padding)

kernels/conv.py has the formula as loops. In this file, it is a product of matrices. For 64
positions i at a time, the numbers of x in their windows are copied into a block, which has one
column for each position and one row for each term (c, k) of the sum. The block stays in the first
cache and is multiplied by w [channels out, terms] in tiles of registers (machine/tiles.py).

All arrays are contiguous: x [B, C, H, W], w [O, C / groups, KH, KW], y [B, O, rows, columns]. For a
convolution over one axis, the first of the two has length 1. In the code, b runs over the batch, o
over channels out, c over channels in, p over positions, k over terms. dx is dL/dx, g is dL/dy.
"""

from typing import NamedTuple

import numpy as np

from tinyattn.engine.memory import empty_pooled
from tinyattn.kernels.fast import thresholds
from tinyattn.kernels.machine.compile import helper, jit, noinline
from tinyattn.kernels.machine.fork_join import fork_join, runtime_false, runtime_true
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
    concat_even,
    hsum,
    interleave_high,
    interleave_low,
    width,
)
from tinyattn.kernels.machine.thread_pool import parallel_for
from tinyattn.kernels.machine.tiles import copy, fill, product, transpose


class Shape(NamedTuple):
    """The sizes of a convolution. `top` and `left` are the padding above and to the left of x."""

    B: int
    C: int
    H: int
    W: int
    O: int  # output channels
    KH: int
    KW: int
    rows: int  # number of rows of positions
    columns: int
    stride: tuple
    dilation: tuple
    top: int
    left: int
    high: int  # high, wide: H and W with padding
    wide: int
    groups: int


# ---------------------------------------------------------------- blocks of windows

POSITIONS = 64  # positions that are computed together
TERMS = 128  # terms that are added together, because 128 rows of 64 numbers fit into the L1 cache
# the gradient of w is summed over this many parts of the batch, then over the parts
BATCH_PARTS = 8


@helper
def padded_frame(x, n):
    """Return a frame for one padded image, all zeros, with room for one vector after its end.

    Element (c, u, v) is at [c, u, v % stride, v // stride], so elements that neighbouring windows
    have at the same position are adjacent in the frame, for any stride.
    """
    frame = alloc_aligned(n.C * n.high * n.stride[1] * row_length(n) + width(x), x)
    fill(frame, x.dtype.type(0))
    return frame


@helper
def row_length(n):
    """Return the length of the last axis of a frame for the `Shape` n."""
    return (n.wide + n.stride[1] - 1) // n.stride[1]


@helper
def copy_frame(frame, x, b, n, into):
    """If `into`, copy image b of x into its padded frame, else copy the frame back into x."""
    noinline()
    step, size, one = n.stride[1], row_length(n), x.dtype.type(1)
    for c in range(n.C):
        at, place = (b * n.C + c) * n.H * n.W, (c * n.high + n.top) * step * size
        if step == 1 and into:
            copy(frame, place + n.left, size, x, at, n.W, n.H, n.W, one)
        elif step == 1:
            copy(x, at, n.W, frame, place + n.left, size, n.H, n.W, one)
        elif step == 2:
            for u in range(n.H):
                near = place + u * 2 * size
                even = near + n.left % 2 * size + n.left // 2  # where x[0], x[2], … are
                odd = near + (n.left + 1) % 2 * size + (n.left + 1) // 2
                copy_by_parity(frame, even, odd, x, at + u * n.W, n.W, into)
        else:
            for phase in range(step):
                first = (phase - n.left) % step  # the first v of x in this phase
                count = (n.W - first + step - 1) // step
                to = place + phase * size + (first + n.left) // step
                for u in range(n.H):
                    near, far = to + u * step * size, at + u * n.W + first
                    if into:
                        for i in range(count):
                            frame[near + i] = x[far + i * step]
                    else:
                        for i in range(count):
                            x[far + i * step] = frame[near + i]


@helper
def copy_by_parity(frame, even, odd, x, at, count, into):
    """Copy `count` numbers between x and the frame: to the frame if `into`, else back to x.

    x[at], x[at + 2], … belong to frame[even], frame[even + 1], …, and x[at + 1], x[at + 3], … to
    frame[odd], frame[odd + 1], ….
    """
    W, end = width(x), at + count
    evens, odds = even + (count + 1) // 2, odd + count // 2
    for i in range(0, (count + 1) // 2, W):
        far = at + 2 * i
        if into:
            first, second = load_partial(x, far, end, 0), load_partial(x, far + W, end, 0)
            store_partial(frame, even + i, evens, concat_even(first, second))
            first, second = load_partial(x, far + 1, end, 0), load_partial(x, far + 1 + W, end, 0)
            store_partial(frame, odd + i, odds, concat_even(first, second))
        else:
            first = load_partial(frame, even + i, evens, 0)
            second = load_partial(frame, odd + i, odds, 0)
            store_partial(x, far, end, interleave_low(first, second))
            store_partial(x, far + W, end, interleave_high(first, second))


@helper
def term_offsets(n):
    """Return the index in the frame of each term of a group, for the first window."""
    size, taps, places = (
        row_length(n),
        n.KH * n.KW,
        np.empty(n.C // n.groups * n.KH * n.KW, np.int64),
    )
    for k in range(len(places)):
        c, tap = k // taps, k % taps
        u, v = tap // n.KW * n.dilation[0], tap % n.KW * n.dilation[1]
        row = (c * n.high + u) * n.stride[1] + v % n.stride[1]
        places[k] = row * size + v // n.stride[1]
    return places


@helper
def cut_positions(pieces, n, W, p0, count):
    """Divide positions p0 … p0 + count - 1 into pieces, which end where a row or a vector ends.

    pieces[i] is (start in the block, end in the block, index in the frame). Return the number of
    pieces.
    """
    found, done, size = 0, 0, row_length(n)
    while done < count:
        i, j = (p0 + done) // n.columns, (p0 + done) % n.columns
        m = min(n.columns - j, count - done, W)
        pieces[found, 0], pieces[found, 1] = done, done + m
        pieces[found, 2] = i * n.stride[0] * n.stride[1] * size + j
        found, done = found + 1, done + m
    return found


@helper
def windows(block, row, frame, terms, c0, pieces, n_pieces):
    """Copy term k of position p from the frame to block[k, p]. The stride between rows is `row`.

    `terms` is a part of `term_offsets`, c0 is the index of the first channel in the frame, and
    `pieces` comes from `cut_positions`. Whole vectors are stored, so the next piece overwrites the
    end of the previous one.
    """
    noinline()
    for k in range(len(terms)):
        for i in range(n_pieces):
            store(block, k * row + pieces[i, 0], load(frame, c0 + terms[k] + pieces[i, 2]))


@helper
def windows_backward(frame, block, row, terms, c0, pieces, n_pieces):
    """Add each number of the block to the element of the frame that `windows` copied it from."""
    noinline()
    W = width(frame)
    for k in range(len(terms)):
        for i in range(n_pieces):
            at, end, place = k * row + pieces[i, 0], k * row + pieces[i, 1], c0 + terms[k]
            place += pieces[i, 2]
            if end - at == W:
                store(frame, place, load(block, at) + load(frame, place))
            else:
                new = load_partial(block, at, end, 0) + load(frame, place)
                store_partial(frame, place, place + end - at, new)


@jit
def forward(y, x, w, bias, n, team, start, stop):
    """Compute y for tasks start … stop - 1. A task is up to POSITIONS positions of one image."""
    if fork_join(team, start, stop):
        return
    W, P, one = width(x), n.rows * n.columns, x.dtype.type(1)
    panels, C, O = (P + POSITIONS - 1) // POSITIONS, n.C // n.groups, n.O // n.groups
    K = C * n.KH * n.KW
    frame, block = padded_frame(x, n), alloc_aligned(TERMS * POSITIONS + W, x)
    tile = alloc_aligned(O * POSITIONS, x)
    places, pieces, picture = term_offsets(n), np.empty((POSITIONS, 3), np.int64), -1
    channel = n.high * n.stride[1] * row_length(n)
    for task in range(start, stop):
        b, p0 = task // panels, task % panels * POSITIONS
        if b != picture:
            copy_frame(frame, x, b, n, runtime_true())
            picture = b
        count = min(POSITIONS, P - p0)
        n_pieces = cut_positions(pieces, n, W, p0, count)
        whole = (count + W - 1) // W * W
        for group in range(n.groups):
            at = (b * n.O + group * O) * P + p0
            out, first, row = (y, at, P) if whole == count else (tile, 0, POSITIONS)
            for o in range(O):
                start_value = broadcast(x, bias[group * O + o])
                for u in range(0, whole, W):
                    store(out, first + o * row + u, start_value)
            for k0 in range(0, K, TERMS):
                terms = min(TERMS, K - k0)
                windows(
                    block,
                    POSITIONS,
                    frame,
                    places[k0 : k0 + terms],
                    group * C * channel,
                    pieces,
                    n_pieces,
                )
                product(
                    out,
                    first,
                    row,
                    w,
                    group * O * K + k0,
                    K,
                    1,
                    block,
                    0,
                    POSITIONS,
                    O,
                    whole,
                    terms,
                    True,
                )
            if whole != count:
                copy(y, at, P, tile, 0, POSITIONS, O, count, one)


@jit
def backward_x(dx, g, w_back, n, team, start, stop):
    """Compute dx of images start … stop - 1, by adding wᵀ g to the windows, with w_back = wᵀ."""
    if fork_join(team, start, stop):
        return
    W, P, one = width(g), n.rows * n.columns, g.dtype.type(1)
    C, O = n.C // n.groups, n.O // n.groups
    K = C * n.KH * n.KW
    frame, block = padded_frame(g, n), alloc_aligned(TERMS * POSITIONS + W, g)
    g_block = alloc_aligned(O * POSITIONS, g)
    places, pieces = term_offsets(n), np.empty((POSITIONS, 3), np.int64)
    channel = n.high * n.stride[1] * row_length(n)
    fill(g_block, g.dtype.type(0))
    for b in range(start, stop):
        fill(frame, g.dtype.type(0))
        for group in range(n.groups):
            for p0 in range(0, P, POSITIONS):
                count = min(POSITIONS, P - p0)
                whole = (count + W - 1) // W * W
                n_pieces = cut_positions(pieces, n, W, p0, count)
                copy(g_block, 0, POSITIONS, g, (b * n.O + group * O) * P + p0, P, O, count, one)
                for k0 in range(0, K, TERMS):
                    terms = min(TERMS, K - k0)
                    product(
                        block,
                        0,
                        POSITIONS,
                        w_back,
                        (group * K + k0) * O,
                        O,
                        1,
                        g_block,
                        0,
                        POSITIONS,
                        terms,
                        whole,
                        O,
                        False,
                    )
                    windows_backward(
                        frame,
                        block,
                        POSITIONS,
                        places[k0 : k0 + terms],
                        group * C * channel,
                        pieces,
                        n_pieces,
                    )
        copy_frame(frame, dx, b, n, runtime_false())


@jit
def backward_w(dw, db, g, x, n, parts, wide, team, start, stop):
    """Add Σ_p windows[k, p] g[o, p] to dw[part, group, k, o], and Σ_p g[o, p] to db[part, o].

    An item is a part of the batch. The rows of dw have `wide` numbers, at least the O of a group.
    """
    if fork_join(team, start, stop):
        return
    W, P, one = width(x), n.rows * n.columns, x.dtype.type(1)
    C, O = n.C // n.groups, n.O // n.groups
    K = C * n.KH * n.KW
    frame, block = padded_frame(x, n), alloc_aligned(TERMS * POSITIONS + W, x)
    turned = alloc_aligned(POSITIONS * wide, x)
    places, pieces = term_offsets(n), np.empty((POSITIONS, 3), np.int64)
    channel = n.high * n.stride[1] * row_length(n)
    fill(turned, x.dtype.type(0))
    for part in range(start, stop):
        for b in range(part * n.B // parts, (part + 1) * n.B // parts):
            copy_frame(frame, x, b, n, runtime_true())
            for o in range(n.O):
                at, sums = (b * n.O + o) * P, broadcast(x, 0)
                for u in range(0, P, W):
                    sums = sums + load_partial(g, at + u, at + P, 0)
                db[part * n.O + o] += hsum(sums)
            for group in range(n.groups):
                for p0 in range(0, P, POSITIONS):
                    count = min(POSITIONS, P - p0)
                    n_pieces = cut_positions(pieces, n, W, p0, count)
                    at = (b * n.O + group * O) * P + p0
                    transpose(turned, 0, wide, g, at, P, O, count, one)
                    for k0 in range(0, K, TERMS):
                        terms = min(TERMS, K - k0)
                        windows(
                            block,
                            POSITIONS,
                            frame,
                            places[k0 : k0 + terms],
                            group * C * channel,
                            pieces,
                            n_pieces,
                        )
                        product(
                            dw,
                            ((part * n.groups + group) * K + k0) * wide,
                            wide,
                            block,
                            0,
                            POSITIONS,
                            1,
                            turned,
                            0,
                            wide,
                            terms,
                            wide,
                            count,
                            True,
                        )


# ---------------------------------------------------------------- shapes


def shape_of(x, w, stride, dilation, before, after, groups):
    """Return the `Shape` of the convolution of x [B, C, H, W] with w [out, in / groups, KH, KW].

    stride and dilation have a number for each axis. `before` and `after` are the rows and columns
    of padding on the two sides of x.
    """
    B, C, H, W = x.shape
    high, wide = H + before[0] + after[0], W + before[1] + after[1]
    rows, columns = (
        (length - d * (k - 1) - 1) // s + 1
        for length, d, k, s in zip((high, wide), dilation, w.shape[2:], stride, strict=True)
    )
    return Shape(
        B,
        C,
        H,
        W,
        w.shape[0],
        *w.shape[2:],
        rows,
        columns,
        stride,
        dilation,
        *before,
        high,
        wide,
        groups,
    )


def terms_in(n):
    """Return the number of terms in the sum for one number of y."""
    return n.C // n.groups * n.KH * n.KW


def convolution(x, w, bias, n):
    """Return y [B, O, rows, columns] for the `Shape` n, where bias may be None."""
    y = empty_pooled((n.B, n.O, n.rows, n.columns), x.dtype)
    bias = np.zeros(n.O, x.dtype) if bias is None else ravel(bias)
    arrays = ravel(y), ravel(x), ravel(w), bias
    tasks, serial = (
        n.B * -(-n.rows * n.columns // POSITIONS),
        y.size * terms_in(n) < thresholds.CONV,
    )
    parallel_for(forward, tasks, *arrays, n, serial=serial)
    return y


def convolution_backward(g, x, w, n, x_wanted):
    """Return dx (None unless x_wanted), dw and dbias for the `Shape` n."""
    taps = terms_in(n)
    serial = g.size * taps < thresholds.CONV
    g_row, dx = ravel(g), None
    if x_wanted:
        dx = empty_pooled(x.shape, x.dtype)
        back = w.reshape(n.groups, n.O // n.groups, taps).transpose(0, 2, 1)
        arrays = ravel(dx), g_row, ravel(back)
        parallel_for(backward_x, n.B, *arrays, n, serial=serial)
    O = n.O // n.groups
    parts, wide = min(n.B, BATCH_PARTS), -(-O // width(x)) * width(x)
    dw, db = np.zeros((parts, n.groups, taps, wide), x.dtype), np.zeros((parts, n.O), x.dtype)
    arrays = ravel(dw), ravel(db), g_row, ravel(x), n, parts, wide
    parallel_for(backward_w, parts, *arrays, serial=serial)
    dw = dw.sum(axis=0)[..., :O].transpose(0, 2, 1).reshape(w.shape)
    return dx, dw, db.sum(axis=0)
