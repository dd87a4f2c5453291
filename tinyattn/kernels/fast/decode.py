"""Process a few tokens in a transformer layer in one compiled call, for `tinyattn.inference`.

A few tokens need so little computation that Python between the operations would take as long as the
operations. In this file, a layer is therefore one kernel that calls the kernels of the other files.
Kernels with enough work use the team of threads. Most of the time is spent reading all weights
once. All blocks of a Llama run in a single call. Their weights are many arrays, so the kernel
receives tables of addresses.

Letters: B texts, D features, H query heads and G heads with keys and values, each with d features.
In `encoder_layer` and `llama_blocks`, one token of each text is new. The keys and values of all
tokens so far are in memory as [B, G, places, d], of which lengths[b] places are used, and those of
the new token are written after them. In `post_norm_layer`, all T tokens of each text are processed
together. The formulas are the same as in `nn.TransformerEncoderLayer` and `nn.LlamaBlock`, line by
line.
"""

import math

import numpy as np

from tinyattn.engine.memory import empty_pooled
from tinyattn.kernels.fast import thresholds
from tinyattn.kernels.fast.activations import gelu_numbers
from tinyattn.kernels.fast.matvec import few_rows
from tinyattn.kernels.fast.quantized import MIN_MULTIPLICATIONS_PER_CHUNK, ROWS, prepare, some_rows
from tinyattn.kernels.fast.rowwise import norm_rows, softmax_rows
from tinyattn.kernels.machine.compile import helper, jit, noinline
from tinyattn.kernels.machine.dot_products import TILE_COLUMNS, dot_products
from tinyattn.kernels.machine.fork_join import fork_join, runtime_false, runtime_true, runtime_zero
from tinyattn.kernels.machine.layout import ravel
from tinyattn.kernels.machine.load_store import (
    alloc_aligned,
    array_at,
    load_partial,
    store_partial,
)
from tinyattn.kernels.machine.simd import broadcast, exp, fma, maximum, width
from tinyattn.kernels.machine.thread_pool import parallel_region

MAX_ROWS = 24  # largest number of rows in a call of the kernel `few_rows`
FLOAT32 = 0  # kind of a matrix without blocks


def encoder_layer(x, cache, H, eps, weights):
    """Return `out` of `encoder_layer_steps` for x [B, D] and cache = (keys, values, old lengths).

    `weights` are the arrays that `encoder_layer_steps` names in its first line.
    """
    out = empty_pooled(x.shape, x.dtype)
    for rows in groups(len(x)):
        kept = [a[rows] for a in cache]
        arrays = out[rows].reshape(-1), ravel(x[rows]), *flat_cache(*kept)
        serial = too_small_for_threads(x[rows], kept, weights)
        parallel_region(encoder_layer_steps, *arrays, H, eps, weights, serial=serial)
    return out


def llama_blocks(x, past, lengths, places, H, G, d, wide, pairs, cos, sin, eps, norms, maps):
    """Return `out` of `llama_blocks_steps` for x [B, D].

    `past` contains the addresses of the keys and values of the first text, and pairs = (step,
    apart).
    """
    out = empty_pooled(x.shape, x.dtype)
    largest = len(x) * max(x.shape[1], H * d) * max(wide, H * d)
    text = G * places * d * x.itemsize  # bytes of the keys of one text
    for rows in groups(len(x)):
        turns = [ravel(a[rows] if a.ndim == 2 else a) for a in (cos, sin)]
        arrays = out[rows].reshape(-1), ravel(x[rows]), past + rows.start * text, lengths[rows]
        serial = max(largest, 2 * x.size * places) <= thresholds.DECODE
        parallel_region(
            llama_blocks_steps,
            *arrays,
            places,
            H,
            G,
            d,
            wide,
            *pairs,
            *turns,
            eps,
            norms,
            maps,
            serial=serial,
        )
    return out


def groups(B):
    """Return slices that divide B texts into groups of at most MAX_ROWS, as equal as possible."""
    n = -(-B // MAX_ROWS)
    return [slice(i * B // n, (i + 1) * B // n) for i in range(n)]


def too_small_for_threads(x, cache, weights):
    """Return whether no part of an encoder layer has enough work for a second thread."""
    places = cache[0].shape[2]
    return max(len(x) * max([w.size for w in weights]), 2 * x.size * places) <= thresholds.DECODE


def flat_cache(keys, values, lengths):
    """Return (keys and values with one axis, lengths, places) of a cache."""
    return keys.reshape(-1), values.reshape(-1), lengths, keys.shape[2]


@jit
def encoder_layer_steps(out, x, keys, values, lengths, places, H, eps, weights, team):
    """Compute x ← x + Attention(norm x),  out = x + W₂ gelu(W₁ norm x + b₁) + b₂ for x [B, D]."""
    norm1, shift1, w_in, b_in, w_out, b_out, norm2, shift2, w1, b1, w2, b2 = weights
    B, n = lengths.size, x.size
    D = n // B
    qkv, seen = alloc_aligned(3 * n, x), alloc_aligned(n, x)
    hidden = alloc_aligned(w1.size // D * B, x)
    y, z = alloc_aligned(n, x), alloc_aligned(n, x)

    normalise(z, x, norm1, shift1, B, runtime_true(), eps[0])
    linear(qkv, z, w_in, b_in, B, team)  # [B, 3 D]
    attend(
        seen,
        qkv,
        qkv[D:],
        qkv[2 * D :],
        3 * D,
        3 * D,
        keys,
        values,
        lengths,
        places,
        H,
        H,
        D // H,
        team_if_worth_it(team, 2 * n * places),
        runtime_zero(),
        B * H,
    )
    linear(y, seen, w_out, b_out, B, team)
    add_numbers(y, x, team[:0], runtime_zero(), n)

    normalise(z, y, norm2, shift2, B, runtime_true(), eps[1])
    linear(hidden, z, w1, b1, B, team)
    gelu_numbers(
        hidden,
        hidden,
        hidden,
        runtime_false(),
        runtime_false(),
        team[:0],
        runtime_zero(),
        hidden.size,
    )
    linear(out, hidden, w2, b2, B, team)
    add_numbers(out, y, team[:0], runtime_zero(), n)


@jit
def llama_blocks_steps(
    out, x, past, lengths, places, H, G, d, wide, step, apart, cos, sin, eps, norms, maps, team
):
    """Run all blocks, one after the other, for x [B, D].

        x ← x + Attention(norm x),  x ← x + W_down (silu(W_gate z) ⊙ W_up z) with z = norm x

    W_gate and W_up have `wide` rows. `rotate` explains step and apart. Three tables have a row for
    each of the L blocks. past [L, 2] contains the addresses of keys and values, norms [L, 2] the
    addresses of the weights of the norms, and maps [L, 7, 3] the matrices in the form that
    `linear_maps` expects.
    """
    B, n, nothing = lengths.size, x.size, x[:0]
    D, Q, K, F, room = n // B, B * H * d, B * G * d, B * wide, B * G * places * d
    of_heads, of_d = np.array([H * d, G * d, G * d]), np.array([D])
    of_gate = np.array([wide, wide])
    qkv, seen, gate = alloc_aligned(Q + 2 * K, x), alloc_aligned(Q, x), alloc_aligned(2 * F, x)
    q, k, v, hidden = qkv[:Q], qkv[Q : Q + K], qkv[Q + K :], gate[F:]
    y, z = alloc_aligned(n, x), alloc_aligned(n, x)
    out[:] = x
    for layer in range(len(maps)):
        keys, values = array_at(past[layer, 0], room, x), array_at(past[layer, 1], room, x)

        norm = array_at(norms[layer, 0], D, x)
        normalise(z, out, norm, nothing, B, runtime_false(), eps[layer, 0])
        linear_maps(qkv, z, maps[layer, :3], of_heads, B, team)
        rotate(q, cos, sin, B, d, step, apart)
        rotate(k, cos, sin, B, d, step, apart)
        attend(
            seen,
            q,
            k,
            v,
            H * d,
            G * d,
            keys,
            values,
            lengths,
            places,
            H,
            G,
            d,
            team_if_worth_it(team, 2 * q.size * places),
            runtime_zero(),
            B * G,
        )
        linear_maps(y, seen, maps[layer, 3:4], of_d, B, team)
        add_numbers(out, y, team[:0], runtime_zero(), n)

        norm = array_at(norms[layer, 1], D, x)
        normalise(z, out, norm, nothing, B, runtime_false(), eps[layer, 1])
        linear_maps(gate, z, maps[layer, 4:6], of_gate, B, team)
        silu_gate(hidden, gate[:F])
        linear_maps(y, hidden, maps[layer, 6:], of_d, B, team)
        add_numbers(out, y, team[:0], runtime_zero(), n)


# ---------------------------------------------------------------- parts of a layer


@helper
def add_numbers(y, x, team, start, stop):
    """Add x to y."""
    if fork_join(team, start, stop):
        return
    for i in range(start, stop, width(y)):
        store_partial(y, i, stop, load_partial(y, i, stop, 0) + load_partial(x, i, stop, 0))


@helper
def team_if_worth_it(team, multiplications):
    """Return the team if there is enough work for several threads, else an empty team."""
    return team if multiplications > thresholds.DECODE else team[:0]


@helper
def normalise(y, x, weight, bias, B, centred, eps):
    """Write the layer norm (if `centred`) or RMS norm of each of the B rows of x to y."""
    means, scales, no_team = alloc_aligned(B, x), alloc_aligned(B, x), np.empty(0, np.int64)
    norm_rows(
        y, means, scales, x, weight, bias, x.size // B, centred, eps, no_team, runtime_zero(), B
    )


@helper
def linear(y, x, weight, bias, B, team):
    """Compute y = x Wᵀ + b for the B rows of x, where W is `weight` and b is `bias`."""
    noinline()
    N, work = y.size // B, weight.size * B
    items = max(
        1, min(work // MIN_MULTIPLICATIONS_PER_CHUNK, (N + TILE_COLUMNS - 1) // TILE_COLUMNS)
    )
    few_rows(
        y,
        x,
        weight,
        bias,
        B,
        N,
        x.size // B,
        items,
        team_if_worth_it(team, work),
        runtime_zero(),
        items,
    )


@helper
def linear_maps(y, x, maps, sizes, B, team):
    """Compute y_p = x W_pᵀ + b_p [B, sizes[p]] for several W_p and the same x.

    y contains the y_p one after the other. A row of `maps` contains the address of W, its kind, and
    the address of b, or 0 without one. The kind is FLOAT32, or Q4_1 or Q8_0 of `fast.quantized`.
    """
    noinline()
    C = x.size // B
    sum_x, pairs = alloc_aligned(C // 32, y), alloc_aligned(C, y)
    prepare(sum_x, pairs, x, B)
    tiles = 0
    for N in sizes:
        tiles += (N + ROWS - 1) // ROWS
    items = max(1, min(y.size * C // MIN_MULTIPLICATIONS_PER_CHUNK, tiles))
    rows_of_maps(
        y,
        x,
        sum_x,
        pairs,
        maps,
        sizes,
        B,
        tiles,
        items,
        team_if_worth_it(team, y.size * C),
        runtime_zero(),
        items,
    )


@helper
def rows_of_maps(y, x, sum_x, pairs, maps, sizes, B, tiles, items, team, start, stop):
    """Compute the y_p of `linear_maps` for items start … stop - 1 of `items`.

    The `tiles` of all matrices, with ROWS rows each, are divided among the items.
    """
    noinline()
    if fork_join(team, start, stop):
        return
    first, last, C = start * tiles // items, stop * tiles // items, x.size // B
    for p in range(len(maps)):
        (matrix, kind, bias), N = maps[p], sizes[p]
        j0, j1 = max(first * ROWS, 0), min(last * ROWS, N)
        if j0 < j1 and kind == FLOAT32:
            w = array_at(matrix, N * C, y)
            dot_products(y, j0, N, x, 0, C, w, j0 * C, C, B, j1 - j0, C)
        elif j0 < j1:
            raw = array_at(matrix, N * C // 32 * kind, np.uint8(0))
            some_rows(y, x, sum_x, pairs, raw, kind, B, N, C, j0, j1)
        if bias != 0:
            b = array_at(bias, N, y)
            for i in range(B):
                for j in range(j0, j1):
                    y[i * N + j] += b[j]
        tiles_of_p = (N + ROWS - 1) // ROWS
        first, last, y = first - tiles_of_p, last - tiles_of_p, y[B * N :]


@helper
def silu_gate(y, gate):
    """Compute y ← silu(gate) · y with silu(x) = x / (1 + e⁻ˣ)."""
    one = y.dtype.type(1)
    for i in range(0, y.size, width(y)):
        x = load_partial(gate, i, y.size, 0)
        minus_x = maximum(x, broadcast(x, -80)) * -one  # exp(80) is still a number
        store_partial(y, i, y.size, load_partial(y, i, y.size, 0) * x / (exp(minus_x) + one))


@helper
def rotate(x, cos, sin, B, d, step, apart):
    """Apply rotary positions to all heads of each row; cos, sin [d/2], or [B, d/2] contiguous.

    Pair j consists of the features j · step and j · step + apart of a head. For
    `nn.RotaryEmbedding`, step is 1 and apart is d/2. For `nn.InterleavedRotaryEmbedding`, step is 2
    and apart is 1.
    """
    half, wide = d // 2, x.size // B
    for b in range(B):
        angle = b * half if cos.size > half else 0
        for at in range(b * wide, (b + 1) * wide, d):
            for j in range(half):
                c, s, i = cos[angle + j], sin[angle + j], at + j * step
                one, other = x[i], x[i + apart]
                x[i], x[i + apart] = one * c - other * s, other * c + one * s


@helper
def attend(y, q, k, v, q_row, kv_row, keys, values, lengths, places, H, G, d, team, start, stop):
    """Compute y = Σ_s a_s v_s over all tokens so far and the new one, [B, H d].

    Item b G + g is text b and head g of the keys and values. The new key at k[b kv_row + g d] and
    the new value are first written after the old ones in `keys` and `values`. Head h of text b has
    its query at q[b q_row + h d].
    """
    noinline()
    if fork_join(team, start, stop):
        return
    W, shared = width(y), H // G
    scale = y.dtype.type(1 / math.sqrt(d))
    for item in range(start, stop):
        b, g = item // G, item % G
        S, own, new = lengths[b] + 1, item * places * d, b * kv_row + g * d
        last = own + lengths[b] * d
        for j in range(0, d, W):
            store_partial(keys, last + j, last + d, load_partial(k, new + j, new + d, 0))
            store_partial(values, last + j, last + d, load_partial(v, new + j, new + d, 0))
        a = alloc_aligned(shared * S, y)
        dot_products(a, 0, S, q, b * q_row + g * shared * d, d, keys, own, d, shared, S, d)
        for i in range(0, a.size, W):
            store_partial(a, i, a.size, load_partial(a, i, a.size, 0) * scale)
        softmax_rows(a, a, S, runtime_false(), team[:0], runtime_zero(), shared)
        for h in range(shared):
            at = (b * H + g * shared + h) * d
            for j in range(0, d, W):
                sums = broadcast(y, 0)
                for s in range(S):
                    v_s = load_partial(values, own + s * d + j, own + (s + 1) * d, 0)
                    sums = fma(v_s, broadcast(y, a[h * S + s]), sums)
                store_partial(y, at + j, at + d, sums)


# ---------------------------------------------------------------- all tokens of a few short texts


def post_norm_layer(x, keep, H, eps, weights):
    """Return `out` of `post_norm_layer_steps` for x [B, T, D] and keep [B, T] or None."""
    B, T, _ = x.shape
    out = empty_pooled(x.shape, x.dtype)
    kept = np.empty(0, np.bool_) if keep is None else ravel(keep)
    arrays = out.reshape(-1), ravel(x), kept, B, T, H
    serial = B * T * weights[8].size <= thresholds.DECODE
    parallel_region(post_norm_layer_steps, *arrays, eps, weights, serial=serial)
    return out


@jit
def post_norm_layer_steps(out, x, keep, B, T, H, eps, weights, team):
    """Compute x ← norm(x + Attention(x)),  out = norm(x + W₂ gelu(W₁ x + b₁) + b₂), x [B, T, D]."""
    norm1, shift1, w_in, b_in, w_out, b_out, norm2, shift2, w1, b1, w2, b2 = weights
    n, N = x.size, B * T
    D = n // N
    qkv, seen = alloc_aligned(3 * n, x), alloc_aligned(n, x)
    hidden = alloc_aligned(w1.size // D * N, x)
    y, z = alloc_aligned(n, x), alloc_aligned(n, x)

    linear(qkv, x, w_in, b_in, N, team)  # [N, 3 D]
    attend_all(
        seen, qkv, keep, T, H, D // H, team_if_worth_it(team, 2 * n * T), runtime_zero(), B * H
    )
    linear(y, seen, w_out, b_out, N, team)
    add_numbers(y, x, team[:0], runtime_zero(), n)
    normalise(z, y, norm1, shift1, N, runtime_true(), eps[0])

    linear(hidden, z, w1, b1, N, team)
    of_gelu = team_if_worth_it(team, 4 * hidden.size)
    gelu_numbers(
        hidden,
        hidden,
        hidden,
        runtime_false(),
        runtime_false(),
        of_gelu,
        runtime_zero(),
        hidden.size,
    )
    linear(y, hidden, w2, b2, N, team)
    add_numbers(y, z, team[:0], runtime_zero(), n)
    normalise(out, y, norm2, shift2, N, runtime_true(), eps[1])


@helper
def attend_all(y, qkv, keep, T, H, d, team, start, stop):
    """Compute y_t = Σ_s a_ts v_s [B, T, H d] over the tokens of each text, from qkv [B, T, 3 H d].

    Item b H + h is head h of text b. keep [B T] is True for tokens that may be attended to. If it
    is empty, these are all tokens.
    """
    noinline()
    if fork_join(team, start, stop):
        return
    W, D = width(y), H * d
    scale = y.dtype.type(1 / math.sqrt(d))
    a = alloc_aligned(T * T, y)
    for item in range(start, stop):
        b, h = item // H, item % H
        q = b * T * 3 * D + h * d
        k, v = q + D, q + 2 * D
        dot_products(a, 0, T, qkv, q, 3 * D, qkv, k, 3 * D, T, T, d)
        nobody = keep.size > 0
        for s in range(T):
            hidden = keep.size > 0 and not keep[b * T + s]
            nobody = nobody and hidden
            for t in range(T):
                a[t * T + s] = -np.inf if hidden else a[t * T + s] * scale
        if nobody:
            a[:] = 0
        else:
            softmax_rows(a, a, T, runtime_false(), team[:0], runtime_zero(), T)
        for t in range(T):
            at = (b * T + t) * D + h * d
            for j in range(0, d, W):
                sums = broadcast(y, 0)
                for s in range(T):
                    at_v = v + s * 3 * D
                    v_s = load_partial(qkv, at_v + j, at_v + d, 0)
                    sums = fma(v_s, broadcast(y, a[t * T + s]), sums)
                store_partial(y, at + j, at + d, sums)
