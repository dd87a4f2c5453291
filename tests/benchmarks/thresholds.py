"""Every kernel at its threshold, the least work for which impl="auto" uses it, against NumPy.

    python -m tests.benchmarks.thresholds [rounds]

For each line of `IMPLEMENTATIONS` that has a kernel, one step is timed with as much work as the
line says, with a quarter of it and with four times as much, in shapes of the lectures. Only this
line is switched between the kernel and array algebra, so everything else in the step chooses as
usual. A step is forward and backward with all gradients. For lines that compute one direction only
(`take_rows` has its gradient in `add_rows`), and for neighbours, which have no gradient, a step is
one call. Both use float32 and two threads, and their values and gradients are compared before the
timing. The goal is the rule of CONTRIBUTING.md for a kernel.
"""

import math
import statistics
import sys

from tests.benchmarks.measure import foot, interleave, ratios, use_threads

use_threads(2)

import numpy as np  # noqa: E402

import tinyattn as ta  # noqa: E402
import tinyattn.functional as F  # noqa: E402
from tinyattn import Tensor, graph, nn, optim  # noqa: E402
from tinyattn.graph import neighbours  # noqa: E402
from tinyattn.ops import index, matmul  # noqa: E402
from tinyattn.ops.backends import IMPLEMENTATIONS  # noqa: E402
from tinyattn.ops.quantized import Q4_1, QuantizedMatrix, quantized_linear  # noqa: E402

GOAL = 1.3
HEADER = (
    "| kernel, work at the threshold | ours, ms | NumPy, ms | NumPy / ours (quartiles) | goal "
    "| NumPy / ours with 1/4 of the work | with 4 times the work |\n"
    "|---|---|---|---|---|---|---|"
)
TABLE = dict(IMPLEMENTATIONS)


class Step:
    """A step of some size: f(), and its backward pass if there are leaves that need a gradient."""

    def __init__(self, size, f, leaves=()):
        self.size, self.f, self.leaves, self.g = size, f, leaves, None

    def __call__(self):
        y = self.f()
        if self.leaves:
            self.g = numbers(y.shape)[0] if self.g is None else self.g
            for x in self.leaves:
                x.grad = None
            y.backward(self.g)
        return [y, *[x.grad for x in self.leaves]]


def numbers(*shapes):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape, np.float32) for shape in shapes]


def step(size, f, *shapes):
    """Return the step f(*x) with a gradient for each x, which have these shapes."""
    leaves = [Tensor(x, requires_grad=True) for x in numbers(*shapes)]
    return Step(size, lambda: f(*leaves), leaves)


def whole(work, each):
    """Return the number of items that have at least this much work together, `each` per item."""
    return max(1, math.ceil(work / each))


# ---------------------------------------------------------------- a step for each line


def attention(T, d=16):
    def make(work):
        heads = whole(work, T * T)
        size = f"{heads} heads, T = {T}, d = {d}"
        return step(size, F.scaled_dot_product_attention, *[(heads, T, d)] * 3)

    return make


def packed(work, T=64, d=16):
    H = whole(work, T * T)
    attend = lambda x: F.packed_self_attention(x, H)
    return step(f"{H} heads, T = {T}, d = {d}", attend, (1, T, 3 * H * d))


def conv1d(work, C=4, L=32, out=8, k=3):
    B = whole(work, C * L * out * k)
    shapes = (B, C, L), (out, C, k), (out,)
    return step(f"{B} x {C} x {L}, {out} filters of {k}", F.conv1d, *shapes)


def conv2d(work, C=1, L=8, out=8, k=3):
    B = whole(work, C * L * L * out * k * k)
    shapes = (B, C, L, L), (out, C, k, k), (out,)
    return step(f"{B} x {C} x {L} x {L}, {out} filters of {k} x {k}", F.conv2d, *shapes)


def pool1d(f):
    return lambda work: pooling(f, whole(work, 8 * 32 * 2), 8, 32)


def pool2d(f):
    return lambda work: pooling(f, whole(work, 8 * 8 * 8 * 4), 8, 8, 8)


def pooling(f, *shape):
    return step(f"{' x '.join(map(str, shape))}, windows of 2", lambda x: f(x, 2), shape)


def sequence(kind, B=32, D=16, H=32):
    def make(work):
        layer, T = kind(D, H, rng=0), whole(work, 1)
        x = Tensor(numbers((B, T, D))[0], requires_grad=True)
        size = f"T = {T}, B = {B}, {D} to {H} units"
        return Step(size, lambda: layer(x)[0], [x, *layer.parameters()])

    return make


def cell(kind, gates, H=32):
    def make(work):
        layer, B = kind(H, H, rng=0), whole(work, gates * H)
        x = Tensor(numbers((B, H))[0], requires_grad=True)
        size = f"B = {B}, {H} to {H} units"
        output = lambda: layer(x)[0] if gates == 4 else layer(x)
        return Step(size, output, [x, *layer.parameters()])

    return make


def segments(f, features, rows=8):
    def make(work):
        E = whole(work, features)
        n = max(1, E // rows)
        ids = np.random.default_rng(0).integers(0, n, E)
        size = f"{E} x {features}, {n} segments"
        return step(size, lambda x: f(x, ids, n), (E, features))

    return make


def search(f, **options):
    def make(work):
        (x,), shown = numbers((work, 3)), ", ".join(f"{k} = {v}" for k, v in options.items())
        return Step(f"{work} points in 3 dimensions, {shown}", lambda: f(x, **options))

    return make


def near(f, features, weights=0, K=8):
    """Make steps of a function of neighbours, f(features, index) or f(weights, features, index)."""

    def make(work):
        N = whole(work, K * features)
        table = np.random.default_rng(0).integers(0, N, (N, K))
        shapes = [(N, weights), (N, features)][0 if weights else 1 :]
        size = f"N = {N}, K = {K}, {features} features"
        return step(size, lambda *inputs: f(*inputs, table), *shapes)

    return make


def rows(f, C, weights=0):
    def make(work):
        N = whole(work, C)
        return step(f"{N} x {C}", f, (N, C), *[(C,)] * weights)

    return make


def cross_entropy(work, C=10):
    N = whole(work, C)
    ids = np.random.default_rng(0).integers(0, C, N)
    return step(f"{N} x {C}", lambda x: F.cross_entropy(x, ids), (N, C))


def take_rows(work, N=1000, C=64):
    E = whole(work, C)
    (x,), ids = numbers((N, C)), np.random.default_rng(0).integers(0, N, E)
    return Step(f"{E} rows of {N} x {C}", lambda: index.take_rows(x, ids))


def add_rows(work, N=64, C=16):
    E = whole(work, C)
    (x, y), ids = numbers((E, C), (N, C)), np.random.default_rng(0).integers(0, N, E)

    def f():
        y[...] = 0
        index.add_rows(x, ids, y)
        return y

    return Step(f"{E} x {C} to {N} rows", f)


def sum_rows(work, C=64):
    (g,) = numbers((whole(work, C), C))
    return Step(f"{len(g)} x {C}", lambda: matmul.sum_rows(g))


def linear(work, then=None):
    """Return a step of a layer of n units for n rows, whose output may go through `then`."""
    n = math.ceil(work ** (1 / 3))
    f = (lambda *inputs: then(F.linear(*inputs))) if then else F.linear
    size = f"{n} rows, {n} to {n}{', then GELU' if then else ''}"
    return step(size, f, (n, n), (n, n), (n,))


def matvec(B):
    def make(work):
        n = math.ceil((work / B) ** 0.5)
        x, w, b = numbers((B, n), (n, n), (n,))
        return Step(
            f"{B} {'row' if B == 1 else 'rows'}, {n} to {n}", lambda: matmul.gemm(x, w.T, b)
        )

    return make


def quantized(work):
    R = whole(work, 64)
    raw = np.zeros((R, 2, Q4_1.nbytes), np.uint8)
    raw[..., :2] = np.float16(0.01)[None].view(np.uint8)
    raw[..., 4:] = np.random.default_rng(0).integers(0, 256, (R, 2, 16))
    blocks = QuantizedMatrix(Q4_1, raw)
    return step(f"1 row, 64 to {R}", lambda x: quantized_linear(x, blocks), (1, 64))


def adam(work, n=4):
    parameters = [Tensor(x, requires_grad=True) for x in numbers(*[(work // n,)] * n)]
    for p in parameters:
        p.grad = p.data / 2
    optimizer = optim.AdamW(parameters)

    def f():
        optimizer.step()
        return parameters[0].data

    return Step(f"{n} parameters of {work // n} numbers", f)


ROWS = [  # (line of the table, work -> step)
    ("attention", attention(64)),
    ("attention", attention(16)),
    ("conv1d", conv1d),
    ("conv2d", conv2d),
    ("max_pool1d", pool1d(F.max_pool1d)),
    ("max_pool2d", pool2d(F.max_pool2d)),
    ("avg_pool1d", pool1d(F.avg_pool1d)),
    ("avg_pool2d", pool2d(F.avg_pool2d)),
    ("RNN", sequence(nn.RNN)),
    ("GRU", sequence(nn.GRU)),
    ("LSTM", sequence(nn.LSTM)),
    ("GRUCell", cell(nn.GRUCell, 3)),
    ("LSTMCell", cell(nn.LSTMCell, 4)),
    ("segment_max", segments(graph.segment_max, 16)),
    ("segment_min", segments(graph.segment_min, 16)),
    ("segment_prod", segments(graph.segment_prod, 16)),
    ("segment_softmax", segments(graph.segment_softmax, 4)),
    ("knn", search(graph.knn, k=5)),
    ("knn_graph", search(graph.knn_graph, k=5)),
    ("radius_graph", search(graph.radius_graph, r=0.8)),
    ("mean_max", near(graph.mean_max, 32, weights=8)),
    ("neighbour_max", near(neighbours.neighbour_max, 32)),
    ("squared_distances", near(graph.squared_distances, 4)),
    ("pair_sums", near(neighbours.pair_sums, 32, weights=32)),
    ("packed_self_attention", packed),
    ("softmax", rows(F.softmax, 64)),
    ("log_softmax", rows(F.log_softmax, 10)),
    ("cross_entropy", cross_entropy),
    ("norm", rows(lambda x, w, b: F.layer_norm(x, x.shape[-1], w, b), 32, weights=2)),
    ("batch_norm", rows(lambda x, w, b: F.batch_norm(x, None, None, w, b, True), 16, weights=2)),
    ("gelu", rows(F.gelu, 64)),
    ("take_rows", take_rows),
    ("add_rows", add_rows),
    ("sum_rows", sum_rows),
    ("matmul", linear),
    ("matmul", lambda work: linear(work, F.gelu)),
    ("matvec", matvec(1)),
    ("matvec", matvec(8)),
    ("quantized_linear", quantized),
    ("adam", adam),
]


# ---------------------------------------------------------------- timing


def works(line):
    """Return the amounts of work at which a line is measured, the threshold in the middle."""
    return [max(1, math.ceil(factor * TABLE[line].least)) for factor in (1 / 4, 1, 4)]


def programs(line, step):
    """Return {name: function} for the step with the kernel of this line and without it."""
    # for all heads in one array, array algebra calls attention, which must not be a kernel then
    lines = ("attention", line) if line == "packed_self_attention" else (line,)

    def switched(least):
        entries = {name: TABLE[name]._replace(least=least) for name in lines}

        def run():
            IMPLEMENTATIONS.update(entries)
            return step()

        return run

    return {"tinyattn": switched(1), "NumPy": switched(np.inf)}


def check(line, make, work):
    """Compare what both programs return. Each has a step of its own, because Adam has a state."""
    found = [arrays(programs(line, make(work))[name]()) for name in ("tinyattn", "NumPy")]
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5 * max(1, np.abs(b).max(initial=0)))


def arrays(found):
    """Return all arrays in the results of a step."""
    if isinstance(found, graph.Graph):
        return [found.src, found.dst]
    if isinstance(found, list | tuple):
        return [a for part in found for a in arrays(part)]
    return [np.asarray(getattr(found, "data", found))]


def measured(line, make, rounds):
    """Return a line of the table."""
    # NumPy's threads keep a processor busy for a tenth of a second after a large product
    rest = 0.1 if line in ("matmul", "matvec") else 0.02
    found = []
    for work in works(line):
        check(line, make, work)
        step = make(work)
        times = interleave(programs(line, step), rounds, 3, at_least=0.003, rest=rest)
        low, middle, high = ratios(times, "tinyattn")["NumPy"]
        ms = [1e3 * statistics.median(times[name]) for name in ("tinyattn", "NumPy")]
        found.append((step.size, *ms, middle, f"({low:.2f}-{high:.2f})"))
    IMPLEMENTATIONS.update(TABLE)
    (*_, less, less_range), (size, ours, numpy, ratio, spread), (*_, more, more_range) = found
    goal = GOAL if ratio >= GOAL else f"{GOAL} (missed)"
    return (
        f"| {line}, {size} | {ours:.3f} | {numpy:.3f} | **{ratio:.2f}** {spread} | {goal} | "
        f"{less:.2f} {less_range} | {more:.2f} {more_range} |"
    )


def main(rounds=9):
    print(HEADER)
    for line, make in ROWS:
        print(measured(line, make, rounds), flush=True)
    print(foot(rounds, np, ta))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
