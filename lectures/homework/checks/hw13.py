"""The checks of homework 13: kernels, judged by their numbers and by counted bytes."""

import numpy as np

from tinyattn.course.checks.judging import Homework, array_of, expect, judge, number_of

homework = Homework("hw13")


def kilobytes(n):
    return f"{n / 1000:.0f} kB"


# --- task 1


def one_pass(its, scores, block):
    """The student's result, the most bytes alive at once, and whether a second loop was tried."""
    import tracemalloc

    def blocks_of(x, again):
        """Like a generator. The array that it reads is no attribute of it."""
        starts, ended = iter(range(0, len(x), block)), []

        class Blocks:
            def __iter__(self):
                return self

            def __next__(self):
                start = next(starts, None)
                if start is None:
                    again.extend(ended)
                    ended.append(True)
                    raise StopIteration
                return x[start : start + block].copy()

        return Blocks()

    from tinyattn.course.checks.runner import kept_bytes

    its.log_sum_exp(blocks_of(scores[: 2 * block], []))  # what a first call imports does not count
    again, kept = [], kept_bytes(its.log_sum_exp)
    blocks = blocks_of(scores, again)
    tracemalloc.start()
    try:
        y = its.log_sum_exp(blocks)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return y, most + kept, bool(again)


def log_sum(s):
    """Return ln Σ exp(s), which is -inf if all s are."""
    m = s.max()
    return m if np.isinf(m) else m + np.log(np.exp(s - m).sum())


def log_sum_slips(s, block):
    """What comes out if something is forgotten."""
    starts = range(0, len(s), block)
    blocks, M = [s[i : i + block] for i in starts], s.max()
    running = [s[: i + block].max() for i in starts]
    unshrunk = sum(np.exp(b - m).sum() for b, m in zip(blocks, running, strict=True))
    own = sum(np.exp(b - b.max()).sum() for b in blocks)
    return {
        "when the old sum is not corrected as the maximum rises": M + np.log(unshrunk),
        "when each block has a maximum of its own, and the sums are added": M + np.log(own),
        "when the maximum is not added again at the end": log_sum(s) - M,
        "without the logarithm at the end": np.exp(log_sum(s) - M),
        "from the last block only": log_sum(blocks[-1]),
        "from the first block only": log_sum(blocks[0]),
        "for the maximum only, without the sum": M,
        "when the logarithms of the blocks' sums are added: add the sums, not their "
        "logarithms": sum(log_sum(b) for b in blocks),
    }


def result_of(student, scores, block):
    """Return the student's result and the most bytes. A second loop over the blocks is an error."""
    hint = "blocks yields one array after the other: for s in blocks."
    y, most, again = student.ask(one_pass, scores, block, hint=hint)
    expect(
        not again or y is None or np.isclose(number_of(y), log_sum(scores)),
        "a second loop over the blocks finds nothing, because each block is available only "
        "once. Do everything that needs a block in the first loop",
        "a second loop over the blocks",
    )
    return y, most


def ask_log_sum(student, scores, block, what):
    y, most = result_of(student, scores, block)
    judge(y, log_sum(scores), log_sum_slips(scores, block), what=what)
    return most


@homework.part(1, "the sum")
def the_sum(student, case):
    n, block = case.size(23, 15, 40), case.size(5, 3, 7)
    ask_log_sum(student, 2 * case.normal(n), block, "ln Σ exp")


@homework.part(1, "large scores")
def large_scores(student, case):
    block = case.size(5, 3, 7)
    rising = np.sort(900 * case.rng.uniform(-1, 1, 30)) + case.normal(30)
    for name, s in (("rising", rising), ("falling", rising[::-1]), ("below -700", rising - 2000)):
        y, _ = result_of(student, s + 300, block)
        bad = y is not None and not np.isfinite(number_of(y))
        expect(
            not bad,
            f"{name} scores: the result is {y}. exp overflows above 709 and is 0 below -745. "
            "Subtract the running maximum before you apply exp, and when it changes, multiply "
            "the old sum by exp(old maximum - new maximum)",
            "exp overflows",
        )
        judge(y, log_sum(s + 300), log_sum_slips(s + 300, block), what=f"{name} scores")


@homework.part(1, "masked scores")
def masked_scores(student, case):
    block = case.size(5, 3, 7)
    s = case.normal(4 * block)
    s[: block + 1] = -np.inf
    for what, scores in (("first block masked", s), ("all masked", s - np.inf)):
        y, _ = result_of(student, scores, block)
        expect(
            y is None or not np.isnan(number_of(y)),
            f"{what}: the result is nan. Perhaps you computed -inf - (-inf), which is nan, while "
            "all scores so far were -inf",
            "nan when a whole block is masked",
        )
        judge(y, log_sum(scores), what=what)


@homework.part(1, "few bytes", hidden=(1,))
def few_bytes(student, case):
    block = 1000
    scores = 3 * case.normal(60 * block)
    most = ask_log_sum(student, scores, block, "ln Σ exp of 60 blocks")
    allowed = 8 * 8 * block
    expect(
        most <= allowed,
        f"60 blocks of {kilobytes(8 * block)}: your code stores {kilobytes(most)} at the same "
        f"time, but only {kilobytes(allowed)} are allowed. Does it collect the blocks before it "
        "sums them?",
        "all blocks are stored",
    )


# --- task 2


def blockwise(its, q, k, v, block):
    """The student's result, the most bytes alive at once, rows fetched, most rows in one fetch."""
    import tracemalloc

    from tinyattn.course.checks.runner import kept_bytes

    fetched = []

    def read(start, stop):
        fetched.append(len(k[start:stop]))
        return k[start:stop].copy(), v[start:stop].copy()

    def empty(start, stop):
        return 0 * k[start:stop], 0 * v[start:stop]

    its.attention_in_blocks(0 * q, empty, len(k), block)  # imports of a first call do not count
    kept = kept_bytes(its.attention_in_blocks)
    tracemalloc.start()
    try:
        y = its.attention_in_blocks(q, read, len(k), block)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return y, most + kept, sum(fetched), max(fetched, default=0)


def attention(q, k, v):
    s = q @ k.T
    a = np.exp(s - s.max(axis=1, keepdims=True))
    return (a / a.sum(axis=1, keepdims=True)) @ v


def attention_slips(q, k, v, block):
    """What comes out if something is forgotten."""
    starts = range(0, len(k), block)
    s, values = q @ k.T, [v[i : i + block] for i in starts]
    m = [s[:, : i + block].max(axis=1, keepdims=True) for i in starts]
    e = [np.exp(s[:, i : i + block] - m_) for i, m_ in zip(starts, m, strict=True)]
    w = [np.exp(m_ - m[-1]) for m_ in m]  # what each block is corrected by until the end
    sums = [e_.sum(axis=1, keepdims=True) for e_ in e]
    parts = [e_ @ v_ for e_, v_ in zip(e, values, strict=True)]
    total, y = (sum(w_ * p for w_, p in zip(w, x, strict=True)) for x in (sums, parts))
    whole = len(k) // block * block
    each = [attention(q, k[i : i + block], v[i : i + block]) for i in starts]
    return {
        "when y is not corrected as the maximum rises, only the sum": sum(parts) / total,
        "when the sum is not corrected as the maximum rises, only y": y / sum(sums),
        "when neither y nor the sum is corrected as the maximum rises": sum(parts) / sum(sums),
        "without the division at the end": y,
        "when each block has a softmax of its own, and these are added": sum(each),
        "when each block has a softmax of its own, and these are averaged": sum(each) / len(each),
        "from the last block only": each[-1],
        "from the first block only": each[0],
        "when the last, shorter block is left out": attention(q, k[:whole], v[:whole]),
        "with the scores divided by √D: this task does not divide them": attention(
            q / np.sqrt(q.shape[1]), k, v
        ),
    }


def ask_attention(student, case, sizes, what, scale=1.0):
    """Judge the numbers, and return the counts of `blockwise`."""
    T, N, D, block = sizes
    q, k, v = scale * case.normal(T, D), case.normal(N, D), case.normal(N, D)
    hint = "q is [T, D], k and v [n, D]: the scores of a block are q @ k.T, [T, n]."
    y, *counts = student.ask(blockwise, q, k, v, block, hint=hint)
    if y is not None and scale > 1:
        expect(
            np.isfinite(array_of(y).astype(float)),
            f"{what}: the result has nan or infinity. exp overflows above 709, so subtract the "
            "running maximum, separately for each query (with one maximum for all queries, all "
            "exponentials of some of them become 0)",
            "exp overflows",
        )
    judge(y, attention(q, k, v), attention_slips(q, k, v, block), what=what)
    return counts


@homework.part(2, "the same result")
def same_numbers(student, case):
    block = case.size(8, 4, 9)
    T, D = case.size(5, 2, 7), case.size(4, 2, 6)
    ask_attention(student, case, (T, 3 * block + 3, D, block), "attention")
    ask_attention(student, case, (T, 2 * block, D, block), "two whole blocks of keys")


@homework.part(2, "large scores")
def large_attention(student, case):
    block = case.size(8, 4, 9)
    sizes = case.size(5, 2, 7), 3 * block + 3, case.size(4, 3, 6), block
    ask_attention(student, case, sizes, "scores of several hundred", scale=400.0)


SIZES = 64, 2000, 16, 32


@homework.part(2, "no table", hidden=(1,))
def no_table(student, case):
    T, N, _, block = SIZES
    most, _, largest = ask_attention(student, case, SIZES, "64 queries, 2000 keys")
    expect(
        largest <= block,
        f"{largest} rows were fetched at once, but a block has only {block}",
        "more than a block is fetched at once",
    )
    allowed = 8 * (8 * T * block)
    expect(
        most <= allowed,
        f"64 queries, 2000 keys: your code stores {kilobytes(most)} at the same time, but only "
        f"{kilobytes(allowed)} (eight blocks of scores) are allowed. The whole score matrix "
        f"takes {kilobytes(8 * T * N)}. Does your code collect something from all blocks?",
        "the table is stored",
    )


@homework.part(2, "each row once", hidden=(1,))
def each_row_once(student, case):
    N = SIZES[1]
    _, rows, _ = ask_attention(student, case, SIZES, "64 queries, 2000 keys")
    expect(
        rows == N,
        f"{N} rows of keys and values, but {rows} were fetched: {rows / N:.3g} times each. One "
        "loop over the blocks is enough, with all queries inside",
        "rows are fetched more than once",
    )


# --- task 3


def packed_product(its, d, m, packed, x):
    """The student's result, the most bytes alive at once, and which inputs were written to."""
    import tracemalloc

    import numpy as np

    from tinyattn.course.checks.runner import kept_bytes

    given = d, m, packed, x
    its.packed_product(*(0 * a for a in given))  # what a first call imports does not count
    kept = kept_bytes(its.packed_product)
    before = [a.copy() for a in given]
    tracemalloc.start()
    try:
        y = its.packed_product(*given)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    changed = [
        name
        for name, a, b in zip(("d", "m", "packed", "x"), given, before, strict=True)
        if not np.array_equal(a, b)
    ]
    return y, most + kept, changed


def packed_matrix(case, R, blocks):
    packed = case.rng.integers(0, 256, (R, blocks, 16)).astype(np.uint8)
    return case.rng.uniform(0.1, 1, (R, blocks)), case.normal(R, blocks), packed


def numbers_of(packed, first=0, axis=-2):
    """q [R, C] of packed nibbles: first=1 takes the high ones first, axis=-1 as neighbours."""
    low, high = packed % 16, packed // 16
    pair = [high, low] if first else [low, high]
    return np.stack(pair, axis=axis).reshape(len(packed), -1).astype(float)


def product_slips(d, m, packed, x):
    D, M, q = np.repeat(d, 32, axis=1), np.repeat(m, 32, axis=1), numbers_of(packed)
    sums = x.reshape(-1, 32).sum(axis=1)
    return {
        "with the two halves of each byte swapped: the low four bits come first": (
            (D * numbers_of(packed, first=1) + M) @ x
        ),
        "with the two numbers of a byte next to each other: byte i holds numbers i and 16 + i": (
            (D * numbers_of(packed, axis=-1) + M) @ x
        ),
        "without m": (D * q) @ x,
        "without d": (q + M) @ x,
        "when m is added once for each block: multiply it by the sum of x in the block": (
            (D * q) @ x + m.sum(axis=1)
        ),
        "with the sum over the whole x in each block": (D * q) @ x + m.sum(axis=1) * x.sum(),
        "with m multiplied by d, too: w = d q + m": (D * (q + M)) @ x,
        "with only the first 16 numbers of each block": (
            (D * q + M).reshape(len(d), -1, 32)[..., :16].reshape(len(d), -1)
            @ x.reshape(-1, 32)[:, :16].reshape(-1)
        ),
        "when the high half of each byte is not shifted right by four bits (>> 4)": (
            (D * np.stack([packed & 15, packed & 240], -2).reshape(len(d), -1) + M) @ x
        ),
        "when the low half of each byte is not extracted (& 15)": (
            (D * np.stack([packed, packed >> 4], -2).reshape(len(d), -1) + M) @ x
        ),
        "with the sum of x over the first 16 numbers only": (
            (D * q) @ x + m @ x.reshape(-1, 32)[:, :16].sum(axis=1)
        ),
        "with d and m exchanged": np.sum(m * (q * x).reshape(len(d), -1, 32).sum(-1), 1) + d @ sums,
    }


def ask_product(student, case, R, blocks, what):
    d, m, packed = packed_matrix(case, R, blocks)
    x = case.normal(32 * blocks)
    hint = "packed[:, b] is [R, 16]: the bytes of block b in all rows."
    y, most, changed = student.ask(packed_product, d, m, packed, x, hint=hint)
    expect(
        not changed,
        f"afterwards {' and '.join(changed)} has changed, so your function writes into its "
        "inputs. Compute a new array",
        "the inputs are changed",
    )
    right = np.einsum("rbi,bi->r", _weights(d, m, packed), x.reshape(-1, 32))
    judge(y, right, product_slips(d, m, packed, x), what=what)
    return most, packed.nbytes


def _weights(d, m, packed):
    return d[..., None] * numbers_of(packed).reshape(*d.shape, 32) + m[..., None]


@homework.part(3, "the product")
def the_product(student, case):
    ask_product(student, case, case.size(5, 3, 8), case.size(3, 2, 5), "y")


@homework.part(3, "never unpacked", hidden=(1,))
def never_unpacked(student, case):
    most, packed = ask_product(student, case, 256, 64, "y of a matrix 256 x 2048")
    expect(
        most < packed,
        f"a matrix of {kilobytes(packed)}: your code stores {kilobytes(most)} in addition at the "
        "same time. Process one block or one row at a time, because no array may be as large as "
        "the matrix",
        "the matrix is unpacked",
    )


# --- task 4


@homework.part(4, "bytes")
def bytes_fetched(student, case):
    M, d, T = case.size(1500, 100, 3000), case.size(64, 8, 128), case.size(48, 3, 90)
    N = T * case.size(20, 3, 30)
    ask_fetched(student, N + T // 2, M, d, T)  # the last block is smaller
    ask_fetched(student, N, M, d, T)


def ask_fetched(student, N, M, d, T):
    blocks, own, theirs = -(-N // T), 2 * N * d, 2 * M * d
    right = 4 * (own + blocks * theirs)
    mistakes = {
        "for numbers of one byte: float32 takes 4": right / 4,
        "for numbers of 8 bytes: float32 takes 4": 2 * right,
        "when keys and values are read only once: each block of queries reads all of them": (
            4 * (own + theirs)
        ),
        "when each query reads all keys and values: the queries of a block share them": 4
        * (own + N * theirs),
        "without the queries and the result": 4 * blocks * theirs,
        "without the result": 4 * (own / 2 + blocks * theirs),
        "with the keys only, without the values": 4 * (own + blocks * theirs / 2),
        "when queries and result count for each block, too": 4 * blocks * (own + theirs),
        "when there is one block too many where T divides N": 4 * (own + (N // T + 1) * theirs),
        "when the last, smaller block is forgotten": 4 * (own + N // T * theirs),
        "with a fraction of a block: the last, smaller block also reads all keys and values": 4
        * (own + N / T * theirs),
        "when the keys are divided into blocks instead of the queries": 4
        * (own + -(-M // T) * theirs),
        "when the score matrix is written and read as well": right + 8 * N * M,
    }
    judge(student.fetched(N, M, d, T), right, mistakes, what="fetched")


@homework.part(4, "the roof")
def the_roof(student, case):
    P, B = 1e11 * case.rng.uniform(0.5, 2), 1e10 * case.rng.uniform(0.5, 2)
    for operations, moved in ((1e9, 1e9), (1e12, 1e9)):
        compute, fetch = operations / P, moved / B
        mistakes = {
            "when the two times are added: computing and reading happen at the same time, so "
            "the longer time counts": (compute + fetch),
            "for the shorter of the two times": min(compute, fetch),
            "with the fractions inverted: the time is operations / (operations per second)": max(
                P / operations, B / moved
            ),
            "for the speed instead of the time": min(P, operations / moved * B),
        }
        judge(student.least_seconds(operations, moved, P, B), max(compute, fetch), mistakes)
