"""Attention: every query t receives a weighted mean of the values, y_t = Σ_s a_ts v_s.

    score_ts = scale Σ_d q_td k_sd + bias_ts         how well key s matches query t
    a_ts     = exp(score_ts) / Σ_s' exp(score_ts')   the weights of a query sum to 1
    y_td     = Σ_s a_ts v_sd

Read kernels/attention.py first. It has these sums as loops, and `blockwise`, which reads the keys
once, in blocks, with a running maximum and a running sum. In this file, the same is done for 64
queries at a time, one in each lane. The weights of a block are used immediately and not stored, so
the memory grows with T and S instead of T·S, and the backward pass computes the weights again.

The functions take q [..., T, D], k [..., S, D], v [..., S, E] of one dtype, a bool mask and a bias
of that dtype that broadcast to [..., T, S] (or None). They return y [..., T, E] and the arrays that
the backward function needs. Where the mask is False, or s > t under `causal`, the score is -∞.
For a query t that may not attend to any key, y_t and dq_t are 0.

In the code, n runs over all leading axes together, t over queries, s over keys, d over features. A
gradient dL/dx is called dx, and dL/dy is called g.
"""

import math
from typing import NamedTuple

import numpy as np

from tinyattn.kernels.attention import leading_axes
from tinyattn.kernels.fast import thresholds
from tinyattn.kernels.machine.compile import helper, jit, noinline
from tinyattn.kernels.machine.fork_join import fork_join
from tinyattn.kernels.machine.layout import empty_like_heads, strided_matrices
from tinyattn.kernels.machine.load_store import alloc_aligned, load, load_bitmask, store
from tinyattn.kernels.machine.prefetch import prefetch_rows
from tinyattn.kernels.machine.simd import (
    broadcast,
    exp,
    fma,
    hmin,
    hsum,
    maximum,
    select_bit,
    select_equal,
    select_greater,
    width,
)
from tinyattn.kernels.machine.thread_pool import parallel_for
from tinyattn.kernels.machine.tiles import copy, fill, product, transpose

QUERIES = 64  # queries in a block, one per lane, so that sums over keys need no hsum
KEYS = 64  # keys in a block
DIAGONAL_KEYS = 32  # keys in a block on the diagonal of causal attention
# fewest tasks of the backward pass; with few heads, the queries are split into parts
MIN_TASKS = 8


class Inputs(NamedTuple):
    """The inputs of both passes, as one-dimensional arrays with the positions of their matrices.

    Matrix n of q starts at q[starts[0, n]], with the stride rows[0] from row to row. For k, v, mask
    and bias, the index is 1 … 4 instead of 0.
    """

    q: np.ndarray  # [N, T, D] with a single axis, like all arrays here
    k: np.ndarray  # [N, S, D]
    v: np.ndarray  # [N, S, E]
    mask: np.ndarray  # [N, T, S], in bytes; of size 0 without a mask
    bias: np.ndarray  # [N, T, S]; of size 0 without a bias
    starts: np.ndarray  # [5, N]
    rows: tuple
    columns: tuple  # strides along the rows of mask and bias
    sizes: tuple  # T, S, D, E
    causal: bool
    scale: float
    lowest: float  # lowest finite number


class Outputs(NamedTuple):
    """The outputs of the forward pass. Starts and strides are as in `Inputs`."""

    y: np.ndarray  # [N, T, E]
    starts: np.ndarray  # [1, N]
    rows: tuple
    highest: np.ndarray  # [N, T]: the maximum of the scores of a query
    norm: np.ndarray  # [N, T]: 1 / Σ exp(score - highest), 0 for a query that sees no key, or nan


class QueryRows(NamedTuple):
    """The arrays of the backward pass with a row for each query, except q. Only dq is written.

    `starts` and `rows` are as in `Inputs`.
    """

    g: np.ndarray  # [N, T, E]
    y: np.ndarray  # [N, T, E]
    dq: np.ndarray  # [N, T, D], written
    starts: np.ndarray  # [3, N]
    rows: tuple
    highest: np.ndarray  # from the forward pass, like norm
    norm: np.ndarray


class Sums(NamedTuple):
    """The sums of the backward pass, separate for each part of the queries of a head."""

    dk: np.ndarray  # [parts, N, S, D]
    dv: np.ndarray  # [parts, N, S, E]
    starts: np.ndarray  # [2, parts · N]
    rows: tuple
    dbias: np.ndarray  # of size 0 if no gradient of the bias is needed
    bias_starts: np.ndarray  # [1, parts · N]
    bias_row: int  # strides from row to row and along a row
    bias_column: int


def attention(q, k, v, mask, bias, causal, scale):
    """Return y and (highest, norm, `Inputs`) for the backward pass, named as in `Outputs`."""
    lead = leading_axes(q, k, v)
    x = inputs(lead, q, k, v, mask, bias, causal, scale)
    (T, S, D, E), N = x.sizes, math.prod(lead)
    y = empty_like_heads(q, (*lead, T, E))
    highest, norm = np.empty(N * T, q.dtype), np.empty(N * T, q.dtype)
    outputs = *strided_matrices(lead, y)[:3], highest, norm

    tasks, serial = N * -(-T // QUERIES), N * T * S * (D + E) < thresholds.ATTENTION
    parallel_for(forward, tasks, outputs, tuple(x), serial=serial)
    return y, (highest, norm, x)


def attention_backward(
    g, y, residuals, q, k, v, mask, bias, causal, scale, needs_bias=True, into=None
):
    """Return dq, dk, dv and dbias (None unless needs_bias), with all leading axes broadcast.

    y and residuals are the results of `attention`. If `into` contains arrays for dq, dk and dv, the
    gradients are written to them.
    """
    highest, norm, x = residuals
    lead, (T, S, D, E) = y.shape[:-2], x.sizes
    N = math.prod(lead)
    parts = max(1, min(-(-T // QUERIES), -(-MIN_TASKS // max(N, 1))))
    dq, dk, dv = into or (empty_like_heads(q, (*lead, T, D)), None, None)
    if dk is None or parts > 1:
        dk, dv = (
            empty_like_heads(k, (*lead, S, D), parts),
            empty_like_heads(v, (*lead, S, E), parts),
        )
    else:
        dk, dv = dk[None], dv[None]
    rows, columns = ((1, 1) + bias.shape)[-2:] if needs_bias else (0, 0)
    # whether each number is written exactly once
    every = rows > 1 and columns > 1 and S > 0 and mask is None and not causal
    make = np.empty if every else np.zeros
    db = make((parts if rows == 1 else 1, *lead, rows, columns), y.dtype)
    queries = *strided_matrices(lead, g, y, dq)[:-1], highest, norm
    dbias, bias_starts, (row,), (column,) = strided_matrices((parts, *lead), db)
    sums = *strided_matrices((parts, *lead), dk, dv)[:-1], dbias, bias_starts, row, column

    serial = 2 * N * T * S * (D + E) < thresholds.ATTENTION
    parallel_for(backward, N * parts, queries, sums, tuple(x), parts, serial=serial)
    dk, dv, db = (z[0] if len(z) == 1 else z.sum(axis=0) for z in (dk, dv, db))
    if into and parts > 1:
        into[1][...], into[2][...] = dk, dv
    return dq, dk, dv, db if needs_bias else None


@jit
def forward(outputs, inputs, team, start, stop):
    """Compute `Outputs` from `Inputs`. A task is one block of queries of one head, with all keys.

    After each block of keys, top = max score, total = Σ exp(score - top) and acc = Σ exp(score -
    top) v hold for the keys so far. When the maximum rises, total and acc are multiplied by exp(old
    - new). Source: Milakov and Gimelshein 2018, Rabe and Staats 2021, Dao et al. 2022.
    """
    if fork_join(team, start, stop):
        return
    y, y_starts, (y_row,), highest, norm = Outputs(*outputs)
    x = Inputs(*inputs)
    q, k, v, starts, (q_row, k_row, v_row, _, _) = x.q, x.k, x.v, x.starts, x.rows
    T, S, D, E = x.sizes
    like, one = v, v.dtype.type(1)
    query, acc = alloc_aligned(D * QUERIES, like), alloc_aligned(E * QUERIES, like)
    tile = alloc_aligned(KEYS * QUERIES, like)
    top, total = alloc_aligned(QUERIES, like), alloc_aligned(QUERIES, like)
    seen = alloc_aligned(QUERIES, np.uint64(0))
    W, t_blocks = width(like), (T + QUERIES - 1) // QUERIES
    interleaved = k_row > D  # rows of other heads lie in between, as after a projection
    for task in range(start, stop):
        n, t0 = task_to_block(task, t_blocks)
        rows = min(QUERIES, T - t0)
        wide = (rows + W - 1) // W * W  # number of lanes in use
        if interleaved and task + 1 < stop:  # prefetch the rows of the next task during this one
            then, t = task_to_block(task + 1, t_blocks)
            prefetch_rows(q, starts[0, then] + t * q_row, q_row, min(QUERIES, T - t), D)
            if then > n:
                prefetch_rows(k, starts[1, then], k_row, min(KEYS, S), D)
                prefetch_rows(v, starts[2, then], v_row, min(KEYS, S), E)
        y_at = y_starts[0, n] + t0 * y_row
        if interleaved:
            prefetch_rows(y, y_at, y_row, rows, E)  # to be written to
        if rows < QUERIES:
            fill(query, 0)
        transpose(query, 0, QUERIES, q, starts[0, n] + t0 * q_row, q_row, rows, D, x.scale)
        fill(total, 0)
        fill(top, x.lowest)  # finite, so that -∞ - top is -∞ and not nan
        first = True
        s1, end = 0, min(S, t0 + rows) if x.causal else S
        while s1 < end:
            s0 = s1
            keys, lane = block_of_keys(x, t0, s0)
            s1 += keys
            if interleaved:
                prefetch_rows(k, starts[1, n] + s1 * k_row, k_row, min(KEYS, end - s1), D)
                prefetch_rows(v, starts[2, n] + s1 * v_row, v_row, min(KEYS, end - s1), E)
            if not scores(tile, seen, x, query, n, t0, s0, rows, keys, lane, wide):
                continue
            if first and lane > 0:
                fill(acc, 0)
                first = False
            online_softmax(tile, top, total, acc, E, keys, lane, wide, first)
            # acc[d, t] += Σ_s v[s, d] tile[s, t]
            at = starts[2, n] + s0 * v_row
            matrices = acc, lane, QUERIES, v, at, 1, v_row, tile, lane, QUERIES
            product(*matrices, E, wide - lane, keys, not first)
            first = False
        if first:
            fill(acc, 0)
        divide(acc, total, E, wide)
        copy(highest, n * T + t0, 0, top, 0, 0, 1, rows, one)
        copy(norm, n * T + t0, 0, total, 0, 0, 1, rows, one)
        transpose(y, y_at, y_row, acc, 0, QUERIES, E, rows, one)


@helper
def task_to_block(task, t_blocks):
    """Return (matrix, first query) of a task of `forward`, in each matrix the last queries first.

    With `causal`, the last queries attend to most keys, so their tasks take longest.
    """
    return task // t_blocks, (t_blocks - 1 - task % t_blocks) * QUERIES


@helper
def online_softmax(tile, top, total, acc, E, keys, lane, wide, first):
    """Replace the scores in tile by weights exp(score - top), and update top, total and acc.

    acc has no values yet if `first` is True.
    """
    W = width(tile)
    for j in range(lane, wide, W):
        before = load(top, j)
        now = before
        for i in range(j, j + keys * QUERIES, QUERIES):
            now = maximum(load(tile, i), now)
        shrink = exp(before - now)
        weights = load(total, j) * shrink
        for i in range(j, j + keys * QUERIES, QUERIES):
            weight = exp(load(tile, i) - now)
            store(tile, i, weight)
            weights = weights + weight
        store(top, j, now)
        store(total, j, weights)
        if not first and hmin(shrink) < 1:
            for i in range(j, j + E * QUERIES, QUERIES):
                store(acc, i, load(acc, i) * shrink)


@helper
def divide(acc, total, E, wide):
    """Multiply acc by 1 / total, and replace total by 1 / total, except where total is 0 or nan."""
    for j in range(0, wide, width(acc)):
        weights, none = load(total, j), broadcast(acc, 0)
        # a total of 0 or nan stays unchanged
        weights = select_greater(weights, none, broadcast(acc, 1) / weights, weights)
        store(total, j, weights)
        for i in range(j, j + E * QUERIES, QUERIES):
            store(acc, i, load(acc, i) * weights)


@jit
def backward(queries, sums, inputs, parts, team, start, stop):
    """Compute dq of `QueryRows`, and all `Sums`.

    A task is every parts-th block of queries of one head. Each task adds its gradients to a
    separate dk and dv.

    The weights are computed again as a_ts = exp(score_ts - highest_t) norm_t. The gradient of the
    softmax subtracts the mean of da, which does not need a second pass, because Σ_s a_ts da_ts =
    Σ_s a_ts g_t·v_s = g_t·y_t.

    There are two kinds of products. Scores, da and dq have the queries t in the lanes. dk and dv
    have the features in the lanes, and q and g are read row by row.
    """
    if fork_join(team, start, stop):
        return
    g, y, dq, own_starts, (g_row, y_row, dq_row), highest, norm = QueryRows(*queries)
    dk, dv, sum_starts, (dk_row, dv_row), dbias, bias_starts, dbias_row, dbias_column = Sums(*sums)
    x = Inputs(*inputs)
    q, k, v, starts, (q_row, k_row, v_row, _, _) = x.q, x.k, x.v, x.starts, x.rows
    T, S, D, E = x.sizes
    like, one, W = v, v.dtype.type(1), width(v)
    D_wide, E_wide = (D + W - 1) // W * W, (E + W - 1) // W * W
    query, dquery = alloc_aligned(D * QUERIES, like), alloc_aligned(D * QUERIES, like)
    grad = alloc_aligned(E * QUERIES, like)
    query_rows = alloc_aligned(D_wide * QUERIES, like)
    grad_rows, y_rows = alloc_aligned(E_wide * QUERIES, like), alloc_aligned(E_wide * QUERIES, like)
    a, ds = alloc_aligned(KEYS * QUERIES, like), alloc_aligned(KEYS * QUERIES, like)
    seen = alloc_aligned(QUERIES, np.uint64(0))
    dkeys, dvalues = alloc_aligned(S * D_wide, like), alloc_aligned(S * E_wide, like)
    top, factor = alloc_aligned(QUERIES, like), alloc_aligned(QUERIES, like)
    mean = alloc_aligned(QUERIES, like)
    for rows_of in (query_rows, grad_rows, y_rows):
        fill(rows_of, 0)  # the columns that fill the last vector stay 0
    for task in range(start, stop):
        n, part = task // parts, task % parts
        fill(dkeys, 0)
        fill(dvalues, 0)
        for t0 in range(part * QUERIES, T, parts * QUERIES):
            rows = min(QUERIES, T - t0)
            wide = (rows + W - 1) // W * W  # number of lanes in use
            if rows < QUERIES:
                for numbers in (query, grad, top, factor, mean):
                    fill(numbers, 0)
            q0, g0 = starts[0, n] + t0 * q_row, own_starts[0, n] + t0 * g_row
            y0, dq0 = own_starts[1, n] + t0 * y_row, own_starts[2, n] + t0 * dq_row
            transpose(query, 0, QUERIES, q, q0, q_row, rows, D, x.scale)
            transpose(grad, 0, QUERIES, g, g0, g_row, rows, E, one)
            copy(query_rows, 0, D_wide, q, q0, q_row, rows, D, x.scale)
            copy(grad_rows, 0, E_wide, g, g0, g_row, rows, E, one)
            copy(y_rows, 0, E_wide, y, y0, y_row, rows, E, one)
            copy(top, 0, 0, highest, n * T + t0, 0, 1, rows, one)
            copy(factor, 0, 0, norm, n * T + t0, 0, 1, rows, one)
            products_of_rows(mean, grad_rows, y_rows, rows, E_wide)
            first = True
            s1, end = 0, min(S, t0 + rows) if x.causal else S
            while s1 < end:
                s0 = s1
                keys, lane = block_of_keys(x, t0, s0)
                s1 += keys
                if not scores(a, seen, x, query, n, t0, s0, rows, keys, lane, wide):
                    continue
                # da[s, t] = Σ_e v[s, e] g[t, e]
                at, seeing = starts[2, n] + s0 * v_row, wide - lane
                matrices = ds, lane, QUERIES, v, at, v_row, 1, grad, lane, QUERIES
                product(*matrices, keys, seeing, E, False)
                softmax_gradient(a, ds, top, factor, mean, keys, lane, wide)
                # dv[s, e] += Σ_t a[s, t] g[t, e],   dk[s, d] += Σ_t ds[s, t] scale q[t, d]
                i, j, seeing_rows = s0 * E_wide, lane * E_wide, rows - lane
                matrices = dvalues, i, E_wide, a, lane, QUERIES, 1, grad_rows, j, E_wide
                product(*matrices, keys, E_wide, seeing_rows, True)
                i, j = s0 * D_wide, lane * D_wide
                matrices = dkeys, i, D_wide, ds, lane, QUERIES, 1, query_rows, j, D_wide
                product(*matrices, keys, D_wide, seeing_rows, True)
                if first and lane > 0:
                    fill(dquery, 0)
                    first = False
                # dq[d, t] += Σ_s k[s, d] ds[s, t]
                at = starts[1, n] + s0 * k_row
                matrices = dquery, lane, QUERIES, k, at, 1, k_row, ds, lane, QUERIES
                product(*matrices, D, seeing, keys, not first)
                first = False
                if dbias.size:
                    at = bias_starts[0, part * starts.shape[1] + n]
                    at += (t0 + lane) * dbias_row + s0 * dbias_column
                    add_bias_gradient(dbias, at, dbias_row, dbias_column, ds, lane, rows, keys)
            if first:
                fill(dquery, 0)
            transpose(dq, dq0, dq_row, dquery, 0, QUERIES, D, rows, x.scale)
        m = part * starts.shape[1] + n
        copy(dk, sum_starts[0, m], dk_row, dkeys, 0, D_wide, S, D, one)
        copy(dv, sum_starts[1, m], dv_row, dvalues, 0, E_wide, S, E, one)


@helper
def products_of_rows(out, a, b, rows, columns):
    """Compute out[t] = Σ_e a[t, e] b[t, e] for rows whose `columns` numbers fill whole vectors."""
    W = width(a)
    for t in range(rows):
        dot = broadcast(a, 0)
        for i in range(t * columns, (t + 1) * columns, W):
            dot = fma(load(a, i), load(b, i), dot)
        out[t] = hsum(dot)


@helper
def softmax_gradient(a, ds, top, factor, mean, keys, lane, wide):
    """Replace scores in a by weights, and the gradient of the weights in ds by that of the scores.

    a = exp(score - top) factor,   ds = a (da - mean)
    """
    none = broadcast(a, 0)
    for j in range(lane, wide, width(a)):
        tops, factors, means = load(top, j), load(factor, j), load(mean, j)
        for i in range(j, j + keys * QUERIES, QUERIES):
            e = exp(load(a, i) - tops)  # 0 stays 0 even next to a nan
            weight = select_equal(e, none, none, e * factors)
            store(a, i, weight)
            dscore = weight * (load(ds, i) - means)
            store(ds, i, select_equal(e, none, none, dscore))


# ---------------------------------------------------------------- a block of queries and keys


@helper
def block_of_keys(x, t0, s0):
    """Return how many keys from s0 on form a block, and the first lane whose query sees any."""
    lane = max(s0 - t0, 0) if x.causal else 0
    return min(DIAGONAL_KEYS if x.causal and s0 >= t0 else KEYS, x.sizes[1] - s0), lane


@helper
def scores(tile, seen, x, query, n, t0, s0, rows, keys, lane, wide):
    """Compute tile[s, t] = scale q_t·k_s + bias_ts, or -∞ where query t may not attend to key s.

    The block has `rows` queries from t0 on and `keys` keys from s0 on. Return whether any key may
    be seen. If not, the tile is not changed.
    """
    noinline()
    starts, (_, k_row, _, mask_row, bias_row) = x.starts, x.rows
    mask_column, bias_column = x.columns
    at = starts[3, n] + t0 * mask_row + s0 * mask_column
    diagonal = x.causal and s0 + keys - 1 > t0
    which = visibility(seen, x.mask, at, mask_row, mask_column, rows, keys, diagonal, t0 - s0)
    if which == NONE_VISIBLE:
        return False
    biased = x.bias.size > 0
    if biased:
        at = starts[4, n] + t0 * bias_row + s0 * bias_column
        load_bias_tile(tile, x.bias, at, bias_row, bias_column, rows, keys)
    at, D = starts[1, n] + s0 * k_row, x.sizes[2]
    matrices = tile, lane, QUERIES, x.k, at, k_row, 1, query, lane, QUERIES
    product(*matrices, keys, wide - lane, D, biased)
    if which == SOME_VISIBLE:
        mask_tile(tile, seen, lane, wide, keys)
    return True


@helper
def load_bias_tile(tile, bias, at, row, column, rows, keys):
    """Write bias[t, s] to tile[s, t], with zeros after the last row."""
    noinline()
    if rows < QUERIES:
        fill(tile, 0)
    if column == 1 and row > 0:
        transpose(tile, 0, QUERIES, bias, at, row, rows, keys, tile.dtype.type(1))
        return
    for s in range(keys):
        for t in range(rows):
            tile[s * QUERIES + t] = bias[at + t * row + s * column]


# ---------------------------------------------------------------- which keys a query may see

NONE_VISIBLE, SOME_VISIBLE, ALL_VISIBLE = 0, 1, 2
NO_BITS, ALL_BITS = np.uint64(0), np.uint64(2**64 - 1)


@helper
def visibility(seen, mask, at, row, column, rows, keys, diagonal, first):
    """Return NONE_, SOME_ or ALL_VISIBLE for a block, and set bit s of seen[t] for visible keys s.

    `first` is the position of the block's first query minus the position of its first key. If
    `diagonal`, query t may attend to the first `first` + t + 1 keys of the block at most.
    """
    noinline()
    if mask.size == 0 and not diagonal:
        return ALL_VISIBLE
    present = ALL_BITS >> np.uint64(64 - keys)
    some, every, own = NO_BITS, present, present
    seen[:] = ALL_BITS
    for t in range(rows):
        # otherwise, the range is the same for all queries, as with padding
        if mask.size and (t == 0 or row > 0):
            if column == 1 and keys == KEYS:
                own = load_bitmask(mask, at + t * row)
            else:
                own = NO_BITS
                for s in range(keys):
                    if mask[at + t * row + s * column]:
                        own |= np.uint64(1) << np.uint64(s)
        word = own
        if diagonal:
            past = first + t + 1
            word &= ALL_BITS >> np.uint64(64 - min(past, 64)) if past > 0 else NO_BITS
        seen[t] = word
        some |= word
        every &= word
    return NONE_VISIBLE if some == NO_BITS else ALL_VISIBLE if every == present else SOME_VISIBLE


@helper
def mask_tile(tile, seen, lane, wide, keys):
    """Write -∞ to tile[s, t] if query t may not attend to key s."""
    noinline()
    hidden = broadcast(tile, -np.inf)
    for s in range(keys):
        for j in range(lane, wide, width(tile)):
            i = s * QUERIES + j
            store(tile, i, select_bit(seen, j, s, load(tile, i), hidden))


@helper
def add_bias_gradient(db, at, row, column, ds, lane, rows, keys):
    """Add dscore_ts to dbias_ts, which is a sum where the bias was broadcast."""
    noinline()
    if row > 0 and column > 0:  # without broadcasting, each number belongs to one t and s
        transpose(db, at, row, ds, lane, QUERIES, keys, rows - lane, ds.dtype.type(1))
        return
    for t in range(rows - lane):
        for s in range(keys):
            db[at + t * row + s * column] += ds[s * QUERIES + lane + t]


# ---------------------------------------------------------------- shapes


EMPTY = {np.dtype(d): np.empty((0, 0), d) for d in (np.float32, np.float64, bool)}


def inputs(lead, q, k, v, mask, bias, causal, scale):
    """Return the `Inputs` for arguments of `attention`, with leading axes broadcast to `lead`."""
    sizes = (q.shape[-2], *k.shape[-2:], v.shape[-1])
    mask = EMPTY[np.dtype(bool)] if mask is None else mask
    bias = EMPTY[q.dtype] if bias is None else bias
    *memory, starts, rows, columns = strided_matrices(lead, q, k, v, mask.view(np.uint8), bias)
    number = q.dtype.type
    return Inputs(
        *memory,
        starts,
        rows,
        columns[3:],
        sizes,
        bool(causal),
        number(scale),
        number(LOWEST_FINITE[number]),
    )


LOWEST_FINITE = {d: np.finfo(d).min for d in (np.float32, np.float64)}
