"""Arrays in place of Tensors: they are not copied, and a Tensor comes back in every case."""

import inspect
import tracemalloc

import numpy as np
import pytest

import tests.cases.graph
import tests.cases.models
import tests.cases.points
import tests.cases.recurrent
import tests.cases.rowwise
import tinyattn.functional as F
from tests.cases.layers import CASES, NOTHING_TO_CHECK
from tinyattn import Tensor, graph, nn

# each of these files adds its examples to CASES when it is imported
MORE = tests.cases.graph, tests.cases.models, tests.cases.points, tests.cases.recurrent
MORE += (tests.cases.rowwise,)
# what these find are numbers of nodes, points or objects: plain arrays, as indices are
INDICES = {graph.knn, graph.knn_graph, graph.radius_graph, graph.knn_edges, graph.condense}
INDICES |= {graph.match, graph.Matching, graph.Graph, graph.batch, graph.fully_connected}
INDICES |= {graph.from_adjacency, graph.from_networkx, F.neighbour_table, F.multinomial}
NO_FUNCTION = NOTHING_TO_CHECK | {
    graph.Terms,
    nn.KeyValueCache,
    nn.CrossAttentionCache,
    nn.SkipInit,
}


def public():
    for module in (F, graph, nn):
        for name, f in vars(module).items():
            ours = getattr(f, "__module__", "").startswith("tinyattn.")
            if ours and not name.startswith("_") and callable(f):
                yield f"{module.__name__.split('.')[-1]}.{name}", f


def flat(y):
    return [part for x in y for part in flat(x)] if isinstance(y, tuple | list) else [y]


CALLED = {name: f for name, f in public() if f in CASES}


@pytest.fixture
def copies(monkeypatch):
    """The arrays that became Tensors by being copied."""
    found, init = [], Tensor.__init__

    def spy(self, data, *arguments, **options):
        found.append(data)
        init(self, data, *arguments, **options)

    monkeypatch.setattr(Tensor, "__init__", spy)
    return found


@pytest.mark.parametrize("name", CALLED)
def test_arrays_are_not_copied_and_a_tensor_comes_back(name, copies):
    f = CALLED[name]
    for case in CASES[f]:
        arrays = [x for x in case.inputs if isinstance(x, np.ndarray)]
        copies.clear()
        results = flat(case.f(*case.inputs))
        copied = [
            c
            for c in copies
            for a in arrays
            if isinstance(c, np.ndarray) and a.size and np.shares_memory(c, a)
        ]
        assert not copied, f"{case.note}: copied an input of shape {copied[0].shape}"
        assert all(isinstance(y, Tensor) for y in results if y is not None), case.note


def test_nothing_public_is_left_out():
    """What has no example has no result that could be a Tensor."""
    functions = {f for _, f in public() if inspect.isfunction(f) or inspect.isclass(f)}
    rest = functions - set(CASES) - INDICES - NO_FUNCTION
    assert {f.__name__ for f in rest} <= {"one_hot", "detach", "LlamaBlock"}
    assert isinstance(F.one_hot(np.array([0, 2]), 3), Tensor)
    block = nn.LlamaBlock(8, 2, 1, 12, rng=0)
    assert isinstance(block(np.ones((1, 3, 8), np.float32)), Tensor)


# ---------------------------------------------------------------- memory

BIG = np.random.default_rng(0).normal(size=(1 << 14, 16)).astype(np.float32)  # 1 MB
KERNEL = BIG[:16].reshape(16, 4, 2, 2)[:, :, :, :2]
IDS = np.arange(len(BIG)) // 4
GRAPH = graph.Graph(IDS, IDS, len(BIG))
CALLS = {
    "segment_sum": lambda x: graph.segment_sum(x, IDS, 5000),
    "segment_mean": lambda x: graph.segment_mean(x, IDS, 5000),
    "segment_max": lambda x: graph.segment_max(x, IDS, 5000),
    "segment_softmax": lambda x: graph.segment_softmax(x, IDS, 5000),
    "propagate": lambda x: graph.propagate(x, GRAPH, lambda x_j, x_i: x_i),
    "attention": lambda x: F.scaled_dot_product_attention(*[x.reshape(-1, 64, 16)] * 3),
    "max_pool2d": lambda x: F.max_pool2d(x.reshape(4, 4, 128, 128), 2),
    "conv2d": lambda x: F.conv2d(x.reshape(4, 4, 128, 128), KERNEL),
    "pad": lambda x: F.pad(x, (1, 1)),
    "linear": lambda x: F.linear(x, BIG[:4]),
    "softmax": F.softmax,
    "relu": F.relu,
    "layer_norm": lambda x: F.layer_norm(x, 16),
    "mse_loss": lambda x: F.mse_loss(x, BIG),
    "dropout in evaluation": lambda x: F.dropout(x, 0.5, False),
    "GRU": lambda x: nn.GRU(16, 2, rng=0)(x.reshape(64, 256, 16))[0],
}


def peak(f, x):
    f(x)  # the first call makes what is made once
    tracemalloc.start()
    f(x)
    size = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return size


@pytest.mark.parametrize("name", CALLS)
def test_an_array_takes_no_more_memory_than_a_tensor(name):
    f = CALLS[name]
    assert peak(f, BIG) < peak(f, Tensor(BIG)) + BIG.nbytes / 2


def test_evaluation_gives_the_array_itself():
    assert np.shares_memory(F.dropout(BIG, 0.5, training=False).data, BIG)
