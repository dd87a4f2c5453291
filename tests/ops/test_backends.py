"""Functions and layers with `impl`: their implementations agree."""

import importlib
import inspect
import pkgutil
import re
import warnings

import numpy as np
import pytest

import tinyattn as ta
import tinyattn.functional as F
from tests import ROOT
from tests.cases.ops import blocks as case_blocks
from tests.machine import fresh_python
from tinyattn import Tensor, graph, kernels, nn, ops
from tinyattn.functional import recurrent
from tinyattn.graph import neighbours
from tinyattn.ops import backends, quantized
from tinyattn.ops.backends import IMPLEMENTATIONS

MODULES = {
    "F": F,
    "graph": graph,
    "nn": nn,
    "recurrent": recurrent,
    "neighbours": neighbours,
    "quantized": quantized,
}


def has_impl(f):
    return callable(f) and "impl" in inspect.signature(f).parameters


def found():
    """{name: function or class} of all that take `impl`, also in the forward of a layer."""
    public = {}
    for module, content in MODULES.items():
        for name, f in vars(content).items():
            ours = getattr(f, "__module__", "").startswith("tinyattn") and not name.startswith("_")
            if ours and name != "select" and (has_impl(f) or has_impl(getattr(f, "forward", None))):
                public.setdefault(inspect.unwrap(f), (f"{module}.{name}", f))
    return dict(public.values())


RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 6, 8))  # as [B, C, L], [B, T, D] or [heads, T, D]
POINTS, FEATURES = RNG.normal(size=(20, 3)), RNG.normal(size=(20, 4))
INDEX = RNG.integers(0, 20, (20, 3))
IDS = RNG.integers(0, 5, 20)
WEIGHTS = [RNG.normal(size=s) for s in ((9, 8), (9, 3), (9,), (9,))]
GRU, STATE = recurrent.GRU, (RNG.normal(size=(2, 3)),)


def layer(cls, *arguments):
    """impl -> the layer in float64."""
    return lambda impl: cls(*arguments, impl=impl, rng=0).astype(np.float64)


def pooling(cls):
    return lambda impl: cls(2, impl=impl)


def forward(module, **options):
    module = module.astype(np.float64)
    return lambda impl: lambda *inputs: module(*inputs, impl=impl, **options)


# name: (its line of the table, impl -> function of the inputs, inputs)
EXAMPLES = {
    "F.scaled_dot_product_attention": ("attention", None, (X, X[::-1], X + 1)),
    "F.conv1d": ("conv1d", None, (X, RNG.normal(size=(4, 6, 3)))),
    "F.conv2d": ("conv2d", None, (X[None], RNG.normal(size=(4, 2, 3, 2)))),
    "F.max_pool1d": ("max_pool1d", None, (X, 2)),
    "F.max_pool2d": ("max_pool2d", None, (X, 2)),
    "F.avg_pool1d": ("avg_pool1d", None, (X, 2)),
    "F.avg_pool2d": ("avg_pool2d", None, (X, 2)),
    "graph.segment_max": ("segment_max", None, (POINTS, IDS, 5)),
    "graph.segment_min": ("segment_min", None, (POINTS, IDS, 5)),
    "graph.segment_prod": ("segment_prod", None, (POINTS, IDS, 5)),
    "graph.segment_softmax": ("segment_softmax", None, (POINTS, IDS, 5)),
    "graph.knn": ("knn", None, (POINTS, 4)),
    "graph.knn_graph": ("knn_graph", None, (POINTS, 4)),
    "graph.radius_graph": ("radius_graph", None, (POINTS, 0.9)),
    "graph.mean_max": ("mean_max", None, (RNG.random((20, 3)), FEATURES, INDEX)),
    "graph.squared_distances": ("squared_distances", None, (POINTS, INDEX)),
    "neighbours.neighbour_max": ("neighbour_max", None, (FEATURES, INDEX)),
    "quantized.quantized_linear": (
        "quantized_linear",
        None,
        (RNG.normal(size=(2, 32)), case_blocks(quantized.Q4_1, 3, 1)),
    ),
    "neighbours.pair_sums": ("pair_sums", None, (FEATURES, FEATURES[::-1], INDEX)),
    "recurrent.scan": (
        "GRU",
        lambda impl: lambda x, h, *w: recurrent.scan(GRU, x, (h,), *w, impl=impl),
        (X, *STATE, *WEIGHTS),
    ),
    "recurrent.step": (
        "GRUCell",
        lambda impl: lambda x, h, *w: recurrent.step(GRU, x, (h,), *w, impl=impl),
        (X[:, 0], *STATE, *WEIGHTS),
    ),
    "nn.Conv1d": ("conv1d", layer(nn.Conv1d, 6, 4, 3), (X,)),
    "nn.Conv2d": ("conv2d", layer(nn.Conv2d, 2, 4, 3), (X,)),
    "nn.MaxPool1d": ("max_pool1d", pooling(nn.MaxPool1d), (X,)),
    "nn.MaxPool2d": ("max_pool2d", pooling(nn.MaxPool2d), (X,)),
    "nn.AvgPool2d": ("avg_pool2d", pooling(nn.AvgPool2d), (X,)),
    "nn.RNN": ("RNN", layer(nn.RNN, 8, 3), (X,)),
    "nn.GRU": ("GRU", layer(nn.GRU, 8, 3), (X,)),
    "nn.LSTM": ("LSTM", layer(nn.LSTM, 8, 3), (X,)),
    "nn.RNNCell": ("RNNCell", layer(nn.RNNCell, 8, 3), (X[:, 0],)),
    "nn.GRUCell": ("GRUCell", layer(nn.GRUCell, 8, 3), (X[:, 0],)),
    "nn.LSTMCell": ("LSTMCell", layer(nn.LSTMCell, 8, 3), (X[:, 0],)),
    "nn.MultiheadAttention": (
        "attention",
        forward(nn.MultiheadAttention(8, 2, rng=0), need_weights=False),
        (X, X[::-1], X + 1),
    ),
    "nn.SelfAttention": (
        "attention",
        forward(nn.SelfAttention(8, 2, rng=0), need_weights=False),
        (X,),
    ),
    "nn.CrossAttention": (
        "attention",
        forward(nn.CrossAttention(8, 2, rng=0), need_weights=False),
        (X, X + 1),
    ),
    "nn.GroupedQueryAttention": (
        "attention",
        forward(nn.GroupedQueryAttention(8, 2, rng=0)),
        (X,),
    ),
}
names = pytest.mark.parametrize("name", EXAMPLES)


def test_every_function_with_impl_has_an_example():
    assert set(found()) == set(EXAMPLES)


def run(name, impl):
    """The results and the gradients of all inputs, as arrays."""
    _, make, inputs = EXAMPLES[name]
    inputs = [
        Tensor(x, requires_grad=True) if getattr(x, "dtype", None) == np.float64 else x
        for x in inputs
    ]
    f = make(impl) if make else lambda *xs: found()[name](*xs, impl=impl)
    results = flat(f(*inputs))
    recorded = [y for y in results if isinstance(y, Tensor) and y.requires_grad]
    if recorded:
        sum(np.sum(y * np.cos(np.arange(y.size).reshape(y.shape))) for y in recorded).backward()
    gradients = [x.grad for x in inputs if isinstance(x, Tensor)]
    return [np.asarray(getattr(y, "data", y)) for y in results], gradients


def flat(y):
    if isinstance(y, graph.Graph):
        return [y.src, y.dst]
    if isinstance(y, tuple | list):
        return [part for x in y for part in flat(x)]
    return [] if y is None else [y]


@names
def test_the_implementations_of_a_function_agree(name):
    pytest.importorskip("numba")
    implementations = IMPLEMENTATIONS[EXAMPLES[name][0]].names
    assert len(implementations) > 1 and "numpy" in implementations
    expected, gradients = run(name, "numpy")
    for impl in (*implementations, "auto"):
        results, own = run(name, impl)
        for a, b in zip(results, expected, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-12)
        assert [g is None for g in own] == [g is None for g in gradients]
        for a, b in zip(own, gradients, strict=True):
            if b is not None:
                np.testing.assert_allclose(a, b, atol=1e-11)
    assert name.split(".")[1] in ("knn", "knn_graph", "radius_graph") or gradients[0] is not None


@names
def test_what_a_docstring_names_is_what_there_is(name):
    line, make, _ = EXAMPLES[name]
    if make is None:  # a function; a layer refers to it, or to another layer
        named = re.findall(r'"(sums|numpy|kernel|matmul)"', found()[name].__doc__)
        assert set(named) == set(IMPLEMENTATIONS[line].names)


# ---------------------------------------------------------------- by itself


def test_auto_takes_the_kernel_from_the_work_in_the_table(monkeypatch):
    monkeypatch.setattr(backends, "_numba", True)
    for name, entry in IMPLEMENTATIONS.items():
        if "kernel" in entry.names:
            assert backends.select(name, "auto", np.dtype(np.float32), entry.least) == "kernel"
            assert backends.select(name, "auto", np.dtype(np.float32), entry.least - 1) == "numpy"
        assert backends.select(name, "auto", np.dtype(np.float32), 1) == "numpy"
        assert backends.select(name, "auto", np.dtype(np.float16), 1e20) == "numpy"
        assert backends.select(name, "auto", np.dtype(np.int64), 1e20) == "numpy"


def operations():
    """{name: function} of all functions of tinyattn.ops that `operation` made."""
    found = {}
    for info in pkgutil.walk_packages(ops.__path__, "tinyattn.ops."):
        for name, f in vars(importlib.import_module(info.name)).items():
            if hasattr(f, "implement") and f.__module__ == info.name:
                found[f"{info.name}.{name}"] = f
    return found


def test_what_the_table_names_is_there():
    """All implementations of an operation are in its line; other lines may have fewer."""
    found = operations()
    assert len(found) > 5
    for name, f in found.items():
        assert set(f.implementations) == set(IMPLEMENTATIONS[f.line].names), name


def test_without_numba_arrays_compute_and_one_warning_says_so(monkeypatch):
    monkeypatch.setattr(backends, "_numba", None)
    monkeypatch.setattr(kernels, "numba", None)
    monkeypatch.setattr(kernels, "missing", "needs Numba (pip install numba)")
    x = np.ones((1, 40, 8), np.float32)
    with pytest.warns(UserWarning, match=r"attention: .* needs Numba \(pip install numba\)"):
        y = F.scaled_dot_product_attention(x, x, x, impl="kernel")
    np.testing.assert_array_equal(y.data, F.scaled_dot_product_attention(x, x, x, impl="numpy"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        F.scaled_dot_product_attention(x, x, x, impl="kernel")
        graph.knn(POINTS, 3, impl="kernel")
        F.softmax(np.ones((100, 100), np.float32))
        with ta.no_grad():
            nn.GRU(8, 3, impl="kernel", rng=0)(x)


def test_small_work_does_not_load_numba():
    assert fresh_python("""
        import sys
        import numpy as np
        import tinyattn as ta
        from tinyattn import graph, nn, optim
        model = nn.Sequential(nn.Linear(3, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 2))
        optimizer = optim.Adam(model.parameters())
        model(np.ones((5, 3), np.float32)).sum().backward()
        optimizer.step()
        nn.SelfAttention(8, 2)(np.ones((1, 5, 8), np.float32))[0].sum().backward()
        graph.knn(np.ones((9, 2)), 3)
        print("numba" in sys.modules)
    """) == ["False"]


def test_no_other_place_chooses_an_implementation():
    """`backends.py` lists the places that choose without its decorator, and why."""
    chosen = re.compile(r"\b(kernel_is_faster|array_algebra|kernels import fast|kernels\.fast)\b")
    library = ROOT / "tinyattn"
    places = {
        path.relative_to(library).as_posix()
        for path in library.rglob("*.py")
        if path.relative_to(library).parts[0] not in ("kernels", "ops")
        and chosen.search("\n".join(code_lines(path)))
    }
    assert places == {"optim/algorithms.py", "inference/layers.py", "trace/view.py"}
    assert all(place in backends.__doc__ for place in places)


def code_lines(path):
    return [line.split("#")[0] for line in path.read_text("utf-8").splitlines()]
