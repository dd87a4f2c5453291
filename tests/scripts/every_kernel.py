"""Is every kernel right on this processor, forward and backward, in float32 and in float64?

    python -m tests.scripts.every_kernel
    python -m tests.scripts.every_kernel --only knn      some of them, by a part of the name

Each operation runs on its compiled implementations, with sizes that are not multiples of the width
of a vector, and is compared with array algebra in float64. An error is the largest difference,
divided by the largest number that was expected. The program needs NumPy and Numba only, so it also
runs where there is no pytest, and it compiles everything, which takes some minutes. It ends with
each compiled function of `kernels/fast` that did not run. The exit code is 0 if all were right.
"""

import argparse
import inspect
import os
import sys
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np

import tinyattn as ta
import tinyattn.functional as F
from tinyattn import Tensor, graph, inference, kernels, models, nn, optim
from tinyattn.functional import recurrent
from tinyattn.graph import neighbours
from tinyattn.kernels.machine import first_use
from tinyattn.ops.backends import IMPLEMENTATIONS, array_algebra
from tinyattn.ops.quantized import Q4_1, Q8_0, QuantizedMatrix, quantized_linear

# Rounding grows with the number of terms, which is at most some hundreds here.
BOUND = {np.float32: 1e-5, np.float64: 1e-10}
BOTH = np.float32, np.float64


class Case(NamedTuple):
    """A call of f with inputs, in which float64 arrays are rounded to the dtype under test."""

    f: object  # f(*inputs, impl="auto"): arrays, Tensors, a Graph, or tuples of these
    inputs: tuple
    implementations: tuple
    dtypes: tuple
    bounds: dict


CASES = {}  # name of a kernel: its cases


def case(name, f, *inputs, implementations=("auto",), dtypes=BOTH, bounds=BOUND):
    """Add a case for the implementations that are compared with array algebra."""
    CASES.setdefault(name, []).append(Case(f, inputs, implementations, dtypes, bounds))


# ---------------------------------------------------------------- one case


@contextmanager
def kernels_for_all():
    """Inside the block "auto" is "kernel" for any amount of work, except for none at all."""
    before = dict(IMPLEMENTATIONS)
    try:
        for name, entry in before.items():
            if np.isfinite(entry.least):
                IMPLEMENTATIONS[name] = entry._replace(least=1)
        yield
    finally:
        IMPLEMENTATIONS.update(before)


def run(case, implementation, dtype, exact):
    """Return results and gradients, computed in float64 from the same numbers if `exact`."""
    inputs, leaves = [], []
    for x in case.inputs:
        if isinstance(x, np.ndarray) and x.dtype == np.float64:
            x = Tensor(rounded(x, dtype, exact), requires_grad=True)
            leaves.append(x)
        inputs.append(x)
    with array_algebra() if exact else kernels_for_all():
        options = {} if implementation == "auto" else {"impl": implementation}
        results = flat(case.f(*inputs, **options))
        recorded = [y for y in results if isinstance(y, Tensor) and y.requires_grad]
        rng, total = np.random.default_rng(1), 0
        for y in recorded:
            total = total + np.sum(y * rounded(rng.normal(size=y.shape), dtype, exact))
        if recorded:
            total.backward()
    gradients = [x.grad for x in leaves if x.grad is not None]
    return [np.asarray(getattr(a, "data", a)) for a in (*results, *gradients)]


def rounded(x, dtype, exact):
    """Return x rounded to a dtype, and then converted to float64 if `exact`."""
    return x.astype(dtype).astype(np.float64 if exact else dtype)


def flat(y):
    """Return all arrays and Tensors of a result."""
    if isinstance(y, graph.Graph):
        return [y.src, y.dst]
    if isinstance(y, tuple | list):
        return [part for x in y for part in flat(x)]
    return [y]


def error(found, expected, dtype):
    """Return the largest error, or infinity if shapes, dtypes or integers differ."""
    if len(found) != len(expected):
        return np.inf
    largest = 0.0
    for a, b in zip(found, expected, strict=True):
        whole = b.dtype.kind in "iu"
        if a.shape != b.shape or (a.dtype.kind not in "iu" if whole else a.dtype != dtype):
            return np.inf
        if whole:
            largest = max(largest, 0.0 if (a == b).all() else np.inf)
        elif a.size:
            size = np.abs(b).max()
            difference = np.abs(a - b).max() / (size if size else 1)
            largest = max(largest, np.inf if np.isnan(difference) else float(difference))
    return largest


# ---------------------------------------------------------------- inputs

RNG = np.random.default_rng(0)
TWO = "auto", "sums"  # the compiled implementations of an operation that has loops, too


def normal(*shape):
    return RNG.normal(size=shape)


def tied(*shape):
    """Return small whole numbers, many of them equal."""
    return RNG.integers(-2, 3, shape).astype(float)


def blocks(kind, R, n):
    """Return a matrix [R, 32 n] in blocks, with numbers between -1 and 1."""
    raw = RNG.integers(0, 256, (R, n, kind.nbytes)).astype(np.uint8)
    raw[..., :2] = RNG.uniform(0.004, 0.007, (R, n, 1)).astype(np.float16).view(np.uint8)
    if kind is Q4_1:
        raw[..., :2] = RNG.uniform(0.06, 0.12, (R, n, 1)).astype(np.float16).view(np.uint8)
        raw[..., 2:4] = RNG.uniform(-0.9, -0.6, (R, n, 1)).astype(np.float16).view(np.uint8)
    return QuantizedMatrix(kind, raw)


# ---------------------------------------------------------------- attention

attention = F.scaled_dot_product_attention
for lead, T, S, D, E in (((2, 3), 70, 70, 7, 5), ((), 1, 1, 1, 1), ((2,), 3, 131, 17, 17)):
    heads = normal(*lead, T, D), normal(*lead, S, D), normal(*lead, S, E)
    case("attention", attention, *heads, implementations=TWO)
    case("attention, causal", partial(attention, causal=True), *heads, implementations=TWO)
    seen = RNG.random((*lead, T, S)) < 0.7
    seen[..., 0, :] = False  # a query that may see no key
    case("attention, mask", partial(attention, mask=seen), *heads, implementations=TWO)
    biased = lambda q, k, v, bias, **o: attention(q, k, v, bias=bias, **o)
    case("attention, bias", biased, *heads, normal(T, S), implementations=TWO)
    both = lambda q, k, v, bias, seen=seen, **o: attention(q, k, v, seen, bias, True, **o)
    case("attention, all options", both, *heads, normal(*lead, T, S), implementations=TWO)
case(
    "attention, no heads",
    attention,
    normal(0, 3, 4),
    normal(0, 5, 4),
    normal(0, 5, 2),
    implementations=TWO,
)
for T, wide, H in ((67, 3 * 2 * 9, 2), (1, 3, 1), (130, 3 * 16, 1)):
    packed = lambda x, H=H: F.packed_self_attention(x, H, causal=True)
    case("self-attention, packed", packed, normal(2, T, wide))
    case(
        "self-attention, packed",
        lambda x, b, H=H: F.packed_self_attention(x, H, bias=b),
        normal(2, T, wide),
        normal(H, T, T),
    )

# ---------------------------------------------------------------- convolution and pooling

for B, C, L, out, K, options in (
    (2, 3, 13, 5, 3, {"padding": 1}),
    (1, 1, 1, 1, 1, {}),
    (3, 4, 130, 6, 5, {"stride": 2, "dilation": 3, "padding": 4}),
    (2, 6, 37, 4, 2, {"groups": 2, "padding": 1}),
):
    inputs = normal(B, C, L), normal(out, C // options.get("groups", 1), K), normal(out)
    case("conv1d", partial(F.conv1d, **options), *inputs, implementations=TWO)
for B, C, size, out, K, options in (
    (2, 3, (9, 7), 5, (3, 3), {"padding": 1}),
    (1, 1, (1, 1), 1, (1, 1), {}),
    (2, 4, (19, 33), 6, (5, 2), {"stride": (2, 1), "dilation": (1, 2), "padding": (3, 1)}),
    (2, 6, (11, 12), 4, (3, 1), {"groups": 2, "stride": 2}),
):
    inputs = normal(B, C, *size), normal(out, C // options.get("groups", 1), *K), normal(out)
    case("conv2d", partial(F.conv2d, **options), *inputs, implementations=TWO)
case("conv1d", F.conv1d, normal(0, 3, 8), normal(2, 3, 3), implementations=TWO)

for name, one, two in (
    ("max_pool", F.max_pool1d, F.max_pool2d),
    ("avg_pool", F.avg_pool1d, F.avg_pool2d),
):
    for number in (normal, tied):
        for size, K, options in ((13, 2, {}), (1, 1, {}), (71, 5, {"stride": 3, "padding": 2})):
            case(
                f"{name}1d",
                partial(one, kernel_size=K, **options),
                number(2, 3, size),
                implementations=TWO,
            )
        for size, K, options in (
            ((9, 7), 2, {}),
            ((35, 19), 3, {"stride": 2, "padding": 1}),
            ((5, 66), (2, 3), {}),
        ):
            case(
                f"{name}2d",
                partial(two, kernel_size=K, **options),
                number(2, 3, *size),
                implementations=TWO,
            )

# ---------------------------------------------------------------- recurrent networks

ENDS = np.array([7, 0, 3, 6, 1])
for label, cell in (
    ("RNN", recurrent.RNN),
    ("RNN, relu", recurrent.RELU_RNN),
    ("GRU", recurrent.GRU),
    ("LSTM", recurrent.LSTM),
):
    G = cell.gates
    for B, T, D, H in ((5, 7, 3, 9), (1, 1, 1, 1), (37, 4, 17, 35)):
        # so small that tanh is seldom near 1, where 1 - tanh² loses digits
        weights = [normal(*shape) / 4 for shape in ((G * H, D), (G * H, H), (G * H,), (G * H,))]
        state = [normal(B, H) for _ in range(cell.states)]
        for options in ({}, {"reverse": True}, {"lengths": ENDS}):
            if "lengths" in options and B != len(ENDS):
                continue

            def scan(x, *rest, cell=cell, options=options, **implementation):
                n = cell.states
                return recurrent.scan(cell, x, rest[:n], *rest[n:], **options, **implementation)

            case(label, scan, normal(B, T, D), *state, *weights, implementations=TWO)

        def step(x, *rest, cell=cell, **implementation):
            return recurrent.step(
                cell, x, rest[: cell.states], *rest[cell.states :], **implementation
            )

        implementations = ("sums",) if G == 1 else TWO  # an RNN has no kernel of one step
        case(
            f"{label}, one step",
            step,
            normal(B, D),
            *state,
            *weights,
            implementations=implementations,
        )

# ---------------------------------------------------------------- segments and rows

for E, n, shape in ((53, 7, (9,)), (1, 1, (1,)), (200, 11, (2,)), (101, 5, (3, 7)), (90, 40, ())):
    ids = RNG.integers(0, n, E)
    for name in ("sum", "mean", "max", "min", "prod", "softmax"):
        f = partial(getattr(graph, f"segment_{name}"), ids=ids, num_segments=n)
        case(f"segment_{name}", f, normal(E, *shape))
        if name in ("max", "min"):
            case(f"segment_{name}", f, tied(E, *shape))
for name in ("max", "min", "prod", "softmax"):  # no rows at all
    empty = partial(getattr(graph, f"segment_{name}"), ids=np.zeros(0, int), num_segments=3)
    case(f"segment_{name}", empty, normal(0, 4), implementations=("kernel",))

for N, C, E in ((13, 7, 41), (1, 1, 5), (40, 33, 700), (9, 70, 3)):
    ids = RNG.integers(-N, N, E)
    case("rows taken", lambda x, ids=ids: x[ids], normal(N, C))
    case("rows taken", lambda x, ids=ids: F.embedding(ids % len(x), x), normal(N, C))
    f = lambda v, ids=ids, N=N: graph.segment_sum(v, ids % N, N)
    case("rows added", f, normal(E, C))

for shape in ((7, 9), (1, 1), (3, 2, 67), (5, 130), (700, 65)):
    C = shape[-1]
    x, w, b = normal(*shape), normal(C), normal(C)
    # the gradient of a single feature is a difference of two numbers, which ε keeps apart
    eps = 1e-5 if C > 1 else 0.1
    case("softmax", F.softmax, x)
    case("log_softmax", F.log_softmax, x)
    case("layer_norm", lambda x, w, b, eps=eps: F.layer_norm(x, x.shape[-1], w, b, eps), x, w, b)
    case("rms_norm", lambda x, w, eps=eps: F.rms_norm(x, x.shape[-1], w, eps), x, w)
    case("gelu", F.gelu, 2 * x)
    case("gelu, tanh", partial(F.gelu, approximate="tanh"), 2 * x)
    if len(shape) == 2:
        ids = RNG.integers(0, C, len(x))
        case("cross_entropy", lambda x, ids=ids: F.cross_entropy(x, ids), x)
        mean, var = normal(C), 1 + RNG.random(C)
        evaluated = lambda x, w, b, m, v: F.batch_norm(x, m.data, v.data, w, b)
        case("batch_norm, evaluation", evaluated, x, w, b, mean, var)
        if len(x) > 1:
            trained = lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True)
            case("batch_norm, training", trained, x, w, b)
case(
    "batch_norm, training", lambda x: F.batch_norm(x, None, None, training=True), normal(3, 5, 4, 7)
)

# ---------------------------------------------------------------- products

for M, K, N in ((7, 5, 9), (37, 53, 41), (129, 131, 67), (300, 40, 130), (33, 300, 17)):
    case("matmul", lambda x, w: F.linear(x, w.T), normal(M, K), normal(K, N))
    case("linear", F.linear, normal(M, K), normal(N, K), normal(N))
for M in (1, 2, 5, 24):  # few rows, for which the matrix is not reordered
    for K, N in ((16, 3), (67, 35), (513, 130)):
        case("matvec", F.linear, normal(M, K), normal(N, K), normal(N))

for kind in (Q4_1, Q8_0):
    for M, R, n in ((1, 3, 1), (2, 37, 3), (5, 8, 2), (24, 33, 4), (67, 35, 2)):
        f = partial(quantized_linear, blocks=blocks(kind, R, n))
        case(f"product with {kind.__name__}", f, normal(M, 32 * n), implementations=TWO)

# ---------------------------------------------------------------- neighbours


def search(x, k, batch=None, **implementation):
    return graph.knn(x, k, batch, **implementation)


SIZES = ((70, 1, 5), (1, 3, 1), (200, 2, 17), (129, 3, 9), (333, 6, 40), (200, 4, 63))
for N, D, k in SIZES:
    case("knn, few features", partial(search, k=k), normal(N, D), implementations=TWO)
    case("knn, few features", partial(search, k=k), tied(N, D), implementations=TWO)
case("knn, few features", partial(search, k=7), normal(2500, 3))
for N, D, k in ((70, 7, 5), (1, 9, 1), (300, 17, 20), (129, 40, 9), (260, 64, 33)):
    case("knn, many features", partial(search, k=k), normal(N, D), implementations=TWO)
    case("knn, many features", partial(search, k=k), tied(N, D), implementations=TWO)
clouds = RNG.permutation(np.repeat(np.arange(4), (9, 65, 130, 12)))
for D in (3, 20):
    f = partial(search, k=8, batch=clouds)
    case("knn, batch", f, normal(len(clouds), D), implementations=TWO)
    radius = partial(graph.radius_graph, r=1.5 if D == 3 else 6, batch=clouds)
    case("radius_graph, batch", radius, normal(len(clouds), D), implementations=TWO)
for N, D in ((70, 1), (1, 3), (300, 3), (129, 8), (200, 2)):
    for number in (normal, tied):
        case("radius_graph", partial(graph.radius_graph, r=1.0), number(N, D), implementations=TWO)
case("knn_graph", partial(graph.knn_graph, k=6), normal(101, 3), implementations=TWO)

for N, K, C in ((23, 5, 9), (1, 1, 1), (130, 7, 35), (67, 16, 4)):
    index = RNG.integers(0, N, (N, K))
    for number in (normal, tied):
        mean_max = partial(graph.mean_max, index=index)
        case("mean_max", mean_max, np.abs(number(N, K)), number(N, C), implementations=TWO)
        case("neighbour_max", partial(neighbours.neighbour_max, index=index), number(N, C))
    case("squared_distances", partial(graph.squared_distances, index=index), normal(N, C))
    pairs = partial(neighbours.pair_sums, index=index)
    case("pair_sums", pairs, normal(N, C), normal(N, C))


def layer(make, *more):
    """Return a function of x that makes a layer with weights of the dtype of x, and calls it."""
    return lambda x: make().astype(x.dtype)(x, *more)


for aggr in ("max", "mean", "sum"):
    for last in ((), (nn.ReLU(),), (nn.ReLU(), nn.Linear(11, 7, rng=1))):
        make = lambda aggr=aggr, last=last: graph.DynamicEdgeConv(
            nn.Sequential(nn.Linear(10, 11, rng=0), *last), 6, aggr
        )
        case("EdgeConv", layer(make), normal(67, 5))
gravnet = lambda: graph.GravNetConv(5, 9, 3, 7, 6, sharpness=0.5, rng=0)
case("GravNet", layer(gravnet, np.repeat([0, 1], (40, 30))), normal(70, 5))

# ---------------------------------------------------------------- Adam


def steps(theta, *gradients, make):
    """Return the parameter after some steps."""
    p = nn.Parameter(theta.data.copy())
    optimizer = make([p])
    for g in gradients:
        p.grad = g.data
        optimizer.step()
    return p.data.copy()


for n in (1, 7, 8195, 50_001):
    for name, make in (
        ("Adam", partial(optim.Adam, lr=0.1)),
        ("Adam, decay", partial(optim.Adam, lr=0.1, weight_decay=0.1)),
        ("AdamW", partial(optim.AdamW, lr=0.1, weight_decay=0.1)),
    ):
        case(name, partial(steps, make=make), normal(n), *[normal(n) for _ in range(3)])

# ---------------------------------------------------------------- compiled inference

V = 11  # tokens of a vocabulary
# Sums of float32 through two layers with large weights, as the tests of `inference` allow.
TWO_LAYERS = {np.float32: 2e-5}


def in_blocks(model, kind):
    """Return the model with all maps of its blocks quantized."""
    for block in model.layers:
        for part, names in ((block.self_attn, "qkvo"), (block.mlp, ("gate", "up", "down"))):
            for name in names:
                R, C = getattr(part, f"{name}_proj").weight.shape
                setattr(part, f"{name}_proj", inference.QuantizedLinear(blocks(kind, R, C // 32)))
    return model


def random_weights(model):
    """Return the model after adding random numbers to all weights and biases."""
    rng = np.random.default_rng(1)
    for p in model.parameters():
        p.data = p.data + rng.normal(0, 0.3, p.shape).astype(p.dtype)
    return model.eval()


def token_by_token(like, model, ids, lengths):
    """Return the logits of tokens one by one, after a start with lengths[b] tokens."""
    exact = like.dtype == np.float64  # then the modules compute
    model.astype(like.dtype)
    compute = model if exact else inference.compile(model)
    found, cache = [], model.empty_cache()
    with ta.no_grad():
        compute(np.tile(np.arange(6) % V, (len(ids), 1)), cache)
        for past in cache:
            past.truncate(lengths)
        for t in range(ids.shape[1]):
            found.append(compute(ids[:, t : t + 1], cache).data)
    return found


def sentences(like, model, ids, keep):
    """Return the vectors of the tokens of short texts."""
    model.astype(like.dtype)
    with ta.no_grad():
        return (model if like.dtype == np.float64 else inference.compile(model))(ids, None, keep)


def one_layer(x, make):
    """Return a single layer, compiled for float32."""
    made = make().astype(x.dtype).eval()
    with ta.no_grad():
        x = Tensor(x.data)
        return (made if x.dtype == np.float64 else inference.compile(made))(x)


def decoded(name, f, **options):
    case(name, partial(f, **options), normal(1), dtypes=(np.float32,), bounds=TWO_LAYERS)


for B in (1, 3, 29):
    texts = {"ids": RNG.integers(V, size=(B, 5)), "lengths": RNG.integers(0, 7, B)}
    for D, H in ((24, 3), (33, 3), (160, 2)):
        model = random_weights(models.GPT(V, D, H, 2, 40, rng=0))
        decoded("decode, GPT", token_by_token, model=model, **texts)
    for D, H, G in ((24, 4, 2), (34, 1, 1), (192, 6, 3)):
        model = random_weights(models.Llama(V, D, H, G, 2, 2 * D + 3, rng=0))
        decoded("decode, Llama", token_by_token, model=model, **texts)
    for kind in (Q4_1, Q8_0):
        model = random_weights(in_blocks(models.Llama(V, 64, 4, 2, 2, 96, rng=0), kind))
        decoded(f"decode, Llama in {kind.__name__}", token_by_token, model=model, **texts)
for B, T, D, H in ((1, 1, 5, 5), (3, 7, 33, 3), (5, 12, 128, 4)):
    model = random_weights(models.BERT(V, D, H, 2, max_len=80, rng=0))
    ids, ends = RNG.integers(V, size=(B, T)), RNG.integers(0, T + 1, B)
    for keep in (None, np.arange(T) < ends[:, None]):
        decoded("decode, BERT", sentences, model=model, ids=ids, keep=keep)
case(
    "compiled RMS norm",
    partial(one_layer, make=lambda: nn.RMSNorm(33)),
    normal(2, 3, 33),
    dtypes=(np.float32,),
)
for matrix in (blocks(Q4_1, 35, 3), blocks(Q8_0, 35, 3)):
    make = lambda matrix=matrix: inference.QuantizedLinear(matrix)
    case("compiled product", partial(one_layer, make=make), normal(3, 96), dtypes=(np.float32,))

# ---------------------------------------------------------------- what was compiled

# Compiled inference is for float32, and GELU has a kernel of its own for each dtype.
ONLY_FLOAT32 = {"activations.gelu_numbers"}  # and all of decode
ONLY_FLOAT64 = {"activations.gelu_sums"}
PRECISIONS = "float32", "float64"


def is_compiled(f):
    """Return whether an object is a function that Numba compiled."""
    return hasattr(f, "py_func") and hasattr(f, "signatures")


def forgotten():
    """Return (compiled functions of `kernels/fast` that did not run, how many there are).

    Where one dtype ran and the other did not, the line names the one that is missing.
    """
    ran, missing = {}, []  # compiled function: the types of the numbers with which it ran
    own = {}  # compiled functions of each file
    folder = Path(inspect.getfile(import_module("tinyattn.kernels.fast"))).parent
    for file in sorted(folder.glob("[!_]*.py")):
        module = import_module(f"tinyattn.kernels.fast.{file.stem}")
        own[file.stem] = [
            (name, f)
            for name, f in vars(module).items()
            if is_compiled(f) and f.py_func.__module__ == module.__name__
        ]
    for f in [f for functions in own.values() for _, f in functions if f.signatures]:
        reach(f, {t for t in PRECISIONS if t in str(f.signatures)}, ran)
    for file, functions in own.items():
        for name, f in functions:
            name, types = f"{file}.{name}", ran.get(f)
            if types is None:
                missing.append(name)
            elif types == {"float32"} and file != "decode" and name not in ONLY_FLOAT32:
                missing.append(f"{name} in float64")
            elif types == {"float64"} and name not in ONLY_FLOAT64:
                missing.append(f"{name} in float32")
    return missing, sum(map(len, own.values()))


def reach(f, types, ran):
    """Enter in `ran` that f and all compiled functions that it calls ran with these types.

    What is loaded from the disk brings with it what it calls, which then has no signatures.
    """
    if f in ran and types <= ran[f]:
        return
    ran[f] = ran.get(f, set()) | types
    codes = [f.py_func.__code__]
    while codes:
        code = codes.pop()
        codes += [c for c in code.co_consts if inspect.iscode(c)]
        called = [f.py_func.__globals__.get(name) for name in code.co_names]
        for g in filter(is_compiled, called):
            reach(g, types, ran)


# ---------------------------------------------------------------- all


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m tests.scripts.every_kernel", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--only", default="", metavar="WORD", help="kernels with it in their names")
    only = parser.parse_args(arguments).only
    if kernels.numba is None:
        print(f"nothing was compiled: Tinyattn's kernel {kernels.missing}")
        return 1
    kernels.set_threads(2)  # also where there is one processor
    chosen = {name: cases for name, cases in CASES.items() if only in name}
    wrong = []
    for name, cases in chosen.items():
        for dtype in BOTH:
            lines = [judged(c, dtype) for c in cases if dtype in c.dtypes]
            if not lines:
                continue
            largest, bound = max(lines, key=lambda line: line[0] / line[1])
            right = largest <= bound
            wrong += [] if right else [name]
            print(
                f"{name:28} {dtype.__name__}  largest error {largest:.1e}, bound {bound:.0e}"
                f"{'' if right else '  WRONG'}",
                flush=True,
            )
    missing, total = ([], 0) if only else forgotten()
    if missing:
        print(f"{len(missing)} of {total} compiled functions did not run: {', '.join(missing)}")
    elif not only:
        print(f"all {total} compiled functions of kernels/fast ran")
    if wrong:
        print(f"{len(chosen)} kernels, wrong: {', '.join(dict.fromkeys(wrong))}")
    else:
        print(f"{len(chosen)} kernels, all right")
    return 1 if wrong or missing or not chosen else 0


def judged(case, dtype):
    """Return (largest error, bound) of a case over its implementations."""
    expected = run(case, "auto", dtype, exact=True)
    largest = max(
        error(run(case, implementation, dtype, False), expected, dtype)
        for implementation in case.implementations
    )
    return largest, case.bounds[dtype]


if __name__ == "__main__":
    os.environ[first_use.SETTING] = "now"  # else NumPy computes while a kernel is compiled
    sys.exit(main())
