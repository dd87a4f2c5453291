"""Facts about the internals of Numba and LLVM that the kernels rely on, tested by small kernels.

Each `fact_…` compiles a kernel, runs it and compares the result with NumPy. canary.py runs this
file in a separate process, once for each version of Numba, because a fact that no longer holds may
crash the process. README.md of kernels/ lists where each fact is used.
"""

import sys
from typing import NamedTuple

import numpy as np

from tinyattn.engine.memory import aligned
from tinyattn.kernels.machine.atomics import (
    atomic_load,
    atomic_store,
    fetch_add,
    pause,
    wait_for,
    yield_processor,
)
from tinyattn.kernels.machine.canary import OF_SYSTEM
from tinyattn.kernels.machine.compile import OPTIONS, alwaysinline, helper, noinline, numba
from tinyattn.kernels.machine.compress import (
    compress_less_equal,
    count_less_equal,
    mask_less_equal,
    trailing_zeros,
)
from tinyattn.kernels.machine.dot_products import dot_products
from tinyattn.kernels.machine.fork_join import FAILED, fork_join, make_team, runtime_zero
from tinyattn.kernels.machine.llvm import VECTOR_BYTES
from tinyattn.kernels.machine.load_store import (
    alloc_aligned,
    array_at,
    load,
    load_bitmask,
    load_partial,
    store,
    store_partial,
)
from tinyattn.kernels.machine.low_precision import (
    copy_two_float16,
    load_bytes,
    load_float16,
    load_high_halves,
    load_low_halves,
    load_signed_bytes,
)
from tinyattn.kernels.machine.packing import pack, packed_product, packed_size, round_up_to_tile
from tinyattn.kernels.machine.prefetch import fence, prefetch, store_nontemporal
from tinyattn.kernels.machine.simd import (
    broadcast,
    exp,
    fma,
    hmax,
    hsum,
    interleave_low,
    maximum,
    minimum,
    select_greater,
    sqrt,
    width,
)
from tinyattn.kernels.machine.sorting_network import sort_in_registers
from tinyattn.kernels.machine.tiles import TILES, copy, fill, product, transpose

TOLERANCE = {np.float32: 1e-5, np.float64: 1e-12}


def compiled(f):
    """Return f, compiled with the options of all kernels but without the cache on disk."""
    return numba.njit(f, **OPTIONS)


def random(*shape, dtype=np.float32):
    """Return an array with this shape of random numbers between 0 and 1."""
    return np.random.default_rng(0).random(shape).astype(dtype)


def expect(found, expected, dtype=np.float64):
    """Raise ValueError if `found` differs from `expected` by more than rounding of dtype."""
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    if not np.allclose(found, expected, rtol=0, atol=10 * TOLERANCE[dtype]):
        found, expected = np.broadcast_arrays(found, expected)
        wrong = ~np.isclose(found, expected, rtol=0, atol=10 * TOLERANCE[dtype])
        i = tuple(map(int, np.argwhere(wrong)[0]))
        raise ValueError(f"at index {i}: expected {expected[i]}, got {found[i]}")


# ---------------------------------------------------------------- vectors


def fact_vectors():
    """An LLVM vector can be a Numba type with operators, and LLVM has fmuladd and sqrt for it."""

    @compiled
    def run(out, x):
        W = width(x)
        a, b = load(x, 0), load(x, 1)
        c = sqrt(fma(a, b, a) + a * out.dtype.type(2)) / (b + broadcast(x, 1))
        store(out, 0, select_greater(a, b, exp(broadcast(x, 0) - a), c))
        store(out, W, interleave_low(a, b))
        return hsum(a), hmax(b), W

    for dtype in TOLERANCE:
        x, out = random(64, dtype=dtype), np.zeros(64, dtype)
        *folded, W = run(out, x)
        a, b = x[:W], x[1 : W + 1]
        expect(folded, [a.sum(), b.max()], dtype)
        expect(out[:W], np.where(a > b, np.exp(-a), np.sqrt(a * b + 3 * a) / (b + 1)), dtype)
        expect(out[W : 2 * W], np.stack([a, b], axis=1).reshape(-1)[:W], dtype)


def fact_extrema():
    """The instruction llvm.x86.avx.max.ps.256 returns b if a or b is nan.

    The minimum and float64 behave in the same way. Only AVX2 has these instructions, so for other
    vectors a comparison and a selection are tested. The fact that a function may be `alwaysinline`
    is tested as well.
    """

    @helper
    def larger_and_smaller(out, x, i):
        alwaysinline()
        a, b = load(x, 0), load(x, i)
        store(out, 0, maximum(a, b))
        store(out, width(x), minimum(a, b))

    @compiled
    def run(out, x, i):
        larger_and_smaller(out, x, i)
        return width(x)

    for dtype in TOLERANCE:
        x, out = random(64, dtype=dtype), np.zeros(64, dtype)
        x[[0, 17, 34]] = np.nan
        for i in (1, 16):
            W = run(out, x, i)
            a, b = x[:W], x[i : i + W]
            expected = np.concatenate([np.where(a > b, a, b), np.where(a < b, a, b)])
            if not np.array_equal(out[: 2 * W], expected, equal_nan=True):
                raise ValueError(f"expected {expected[:4]} …, got {out[:4]} …")


def fact_parts_of_vectors():
    """LLVM's masked load and store have the names llvm.masked.load.v16f32.p0v16f32 and so on."""

    @compiled
    def run(out, x, loaded, stored):
        store_partial(out, 1, 1 + stored, load_partial(x, 0, loaded, 5))
        return width(x)

    numbers = [(loaded, stored) for loaded in (1, 2, 64) for stored in (1, 2, 64)]
    for dtype in TOLERANCE:  # the narrowest vectors have 2 lanes
        for loaded, stored in numbers:
            x, out, expected = random(64, dtype=dtype), *np.zeros((2, 64), dtype)
            W = run(out, x, loaded, stored)
            lanes = np.where(np.arange(W) < loaded, x[:W], 5)[:stored]
            expected[1 : 1 + len(lanes)] = lanes
            expect(out, expected, dtype)


def fact_bits():
    """The bits of a vector's mask form an integer, and LLVM has ctpop, cttz and vector.compress."""

    @compiled
    def run(dist, ids, x, numbers, flags):
        v = load(x, 0)
        n = compress_less_equal(dist, ids, 0, v, numbers, 0, x.dtype.type(0.5))
        m, mask = count_less_equal(v, x.dtype.type(0.5)), mask_less_equal(v, broadcast(x, 0.5))
        return n, m, mask, trailing_zeros(mask), load_bitmask(flags, 0), width(x)

    for dtype in TOLERANCE:
        x, dist, ids = random(64, dtype=dtype), np.zeros(64, dtype), np.zeros(64, np.int32)
        flags = (random(64) > 0.5).view(np.uint8)
        *found, W = run(dist, ids, x, np.arange(64, dtype=np.int32), flags)
        kept = np.flatnonzero(x[:W] <= 0.5)
        mask, bits = (sum(1 << int(i) for i in some) for some in (kept, np.flatnonzero(flags)))
        expected = [len(kept), len(kept), mask, int(kept[0]), bits]
        if [int(i) for i in found] != expected:
            raise ValueError(f"wrong bits: expected {expected}, got {list(map(int, found))}")
        expect(dist[: len(kept)], x[kept], dtype)
        expect(ids[: len(kept)], kept)


def fact_packed_lanes():
    """The lanes of a register can be permuted by a table that is indexed by a mask.

    The instruction is llvm.x86.avx2.permd, llvm.x86.ssse3.pshuf.b.128 or
    llvm.aarch64.neon.tbl1.v16i8. With AVX-512, and if none of these exists, vector.compress is
    used.
    """

    @compiled
    def run(dist, ids, x, numbers):
        n = compress_less_equal(dist, ids, 0, load(x, 0), numbers, 0, x.dtype.type(0))
        return n, width(x)

    lanes = np.arange(64)
    for dtype in TOLERANCE:
        dist, ids = np.zeros(64, dtype), np.zeros(64, np.int32)
        for mask in range(256):
            x = np.where(mask >> lanes % 8 & 1, -1 - lanes, 1 + lanes).astype(dtype)
            n, W = run(dist, ids, x, lanes.astype(np.int32))
            kept = np.flatnonzero(x[:W] < 0)
            if n != len(kept) or (dist[:n] != x[kept]).any() or (ids[:n] != kept).any():
                raise ValueError(
                    f"wrong lanes for the mask {mask:08b}: expected {kept}, got {ids[:n]}"
                )


# ---------------------------------------------------------------- memory


def fact_aligned_memory():
    """Numba's runtime (NRT) has aligned memory, which is freed when the array is gone."""

    @compiled
    def run(n):
        x = alloc_aligned(n, np.float32(0))
        x[:] = 1
        return x.ctypes.data % 64, x.sum()

    before = numba.core.runtime.rtsys.get_allocation_stats()
    expect(run(1000), [0, 1000])
    after = numba.core.runtime.rtsys.get_allocation_stats()
    if after.alloc - before.alloc != after.free - before.free:
        raise ValueError("memory of alloc_aligned is not freed")


def fact_arrays_at_addresses():
    """`populate_array` without an owner makes an array of memory that it does not own."""

    @compiled
    def run(table):
        x = array_at(table[0], table[1], np.float32(0))
        x[1] = 7
        return x.sum(), len(x)

    x = random(9)
    found = run(np.array([x.ctypes.data, 5]))
    expect(x[1], 7)
    expect(found, [x[:5].sum(), 5], np.float32)


def fact_low_precision():
    """LLVM widens vectors of bytes and of float16, the latter by the processor itself."""

    @compiled
    def run(out, raw):
        W = width(out)
        store(out, 0, load_low_halves(raw, 1, out))
        store(out, W, load_high_halves(raw, 1, out))
        store(out, 2 * W, load_signed_bytes(raw, 1, out))
        store(out, 3 * W, load_bytes(raw, 1, out))
        copy_two_float16(raw, 0, out, 4 * W)
        out[4 * W + 2] = load_float16(raw, 2, out)
        return W

    for dtype in TOLERANCE:
        raw, out = np.arange(100, 200, dtype=np.uint8), np.zeros(80, dtype)
        raw[:4] = np.array([1.5, -2e-7], np.float16).view(np.uint8)
        W = run(out, raw)
        some = raw[1 : W + 1]
        expect(out[: 4 * W], [*some & 15, *some >> 4, *some.view(np.int8), *some])
        pair = raw[:4].view(np.float16)
        if (out[4 * W : 4 * W + 3] != [*pair, pair[1]]).any():
            raise ValueError("a float16 has a different value after it was converted")


def fact_prefetch():
    """LLVM has llvm.prefetch.p0i8, fences, and stores with the metadata "nontemporal"."""

    @compiled
    def run(out, x):
        prefetch(x, 0)
        store_nontemporal(out, 0, load(x, 0))
        fence()
        return width(x)

    x, out = random(16), aligned(16, np.float32)
    W = run(out, x)
    expect(out[:W], x[:W])


# ---------------------------------------------------------------- tiles


def fact_tiles():
    """A function of LLVM that is added to the module of a kernel (linkonce_odr) can be called."""

    @compiled
    def run(c, a, b, turned, copied):
        fill(turned, 0)
        product(c, 0, 32, a, 0, 5, 1, b, 0, 32, 7, 32, 5, False)
        product(c, 0, 32, a, 0, 5, 1, b, 0, 32, 7, 32, 5, True)
        transpose(turned, 0, 7, c, 0, 32, 7, 32, c.dtype.type(2))
        copy(copied, 0, 32, c, 0, 32, 7, 32, c.dtype.type(1))

    @compiled
    def run_dots(y, x, w):
        dot_products(y, 0, 5, x, 0, 35, w, 0, 35, 3, 5, 35)

    a, b = random(7, 5), random(5, 32)
    turned, c, copied = np.ones((32, 7), np.float32), *np.zeros((2, 7, 32), np.float32)
    run(c.reshape(-1), a.reshape(-1), b.reshape(-1), turned.reshape(-1), copied.reshape(-1))
    for found, expected in ((c, 2 * a @ b), (turned, 4 * (a @ b).T), (copied, 2 * a @ b)):
        expect(found, expected, np.float32)
    x, w, y = random(3, 35), random(5, 35), np.zeros((3, 5), np.float32)
    run_dots(y.reshape(-1), x.reshape(-1), w.reshape(-1))
    expect(y, x @ w.T, np.float32)


def fact_packing():
    """`compile_internal` compiles a function of Python into a kernel."""

    @compiled
    def run(c, a, b, columns):
        packed = alloc_aligned(packed_size(7, 5, width(c)), c)
        pack(packed, a, 0, 5, 1, 7, 5)
        packed_product(c, 0, columns, c, 0, 0, packed, b, 0, round_up_to_tile(7), columns, 5, False)

    columns = TILES[0][0] * VECTOR_BYTES // 4
    a, b, c = random(7, 5), random(5, columns), np.zeros((16, columns), np.float32)
    run(c.reshape(-1), a.reshape(-1), b.reshape(-1), columns)
    expect(c[:7], a @ b, np.float32)


def fact_sorting():
    """Vectors stay in registers while they are compared and shuffled."""

    @compiled
    def run(dist, ids, n):
        sort_in_registers(dist, ids, 0, n)

    dist, ids = random(27), np.arange(27, dtype=np.int32)
    order = np.argsort(dist)
    expected = dist[order]
    run(dist, ids, 27)
    expect(dist, expected)
    expect(ids, order)


# ---------------------------------------------------------------- threads


def fact_atomics():
    """LLVM has atomic loads, stores and additions, and `sched_yield` can be called."""

    @compiled
    def run(x):
        pause()
        yield_processor()
        before = fetch_add(x, runtime_zero(), 5)
        atomic_store(x, 1, atomic_load(x, 0) + before)
        wait_for(x, 1, 9)

    x = np.array([2, 0])
    run(x)
    expect(x, [7, 9])


class Pair(NamedTuple):
    """Arguments of other types than arrays and numbers."""

    left: float
    right: bool


def fact_fork_join():
    """A compiled function has 2 arguments in front, 7 for an array, and returns 0 or -2 (None)."""

    @compiled
    def run(done, y, x, factor, numbers, pair, team, start, stop):
        noinline()
        if fork_join(team, start, stop):
            return
        if factor < 0:
            raise ZeroDivisionError
        for i in range(start, stop):
            done[i] += 1
            y[i] = factor * x[i, 1] + numbers[1] + pair.left

    @compiled
    def with_constant(team, n):
        run(np.zeros(1), np.zeros(1), np.zeros((1, 2)), 1.0, (1, 2.5), Pair(0.5, True), team, 0, n)

    x = random(40, 4, dtype=np.float64)[:, ::2]  # not contiguous
    done, y, team = np.zeros(40, np.int64), np.zeros(40), make_team(0)
    run(done, y, x, 3.0, (1, 2.5), Pair(0.5, True), team, 0, 40)
    expect(done, np.ones(40))
    expect(y, 3 * x[:, 1] + 3)
    if team[FAILED]:
        raise ValueError("a chunk that ran without an error is marked as failed")
    run(done, y, x, -1.0, (1, 2.5), Pair(0.5, True), team, 0, 40)
    if not team[FAILED]:
        raise ValueError("a chunk with an error is not marked as failed")
    try:
        with_constant(team, 1)
    except Exception as error:
        if "runtime_zero() for 0" not in str(error):
            raise
    else:
        raise ValueError("fork_join does not notice that start is a constant")


def main():
    """Test all facts, and print the name of each before its test, in case the test crashes."""
    for name, fact in list(globals().items()):
        if name.startswith("fact_"):
            print(name.removeprefix("fact_"), flush=True)
            try:
                fact()
            except Exception as error:
                lines = str(error).strip().splitlines() or [""]
                # Numba writes one line before an error of the system, such as a full disk
                line = next((line for line in lines if OF_SYSTEM.search(line)), lines[0])
                print(f"{name.removeprefix('fact_')}: {type(error).__name__}: {line}")
                sys.exit(1)


if __name__ == "__main__":
    main()
