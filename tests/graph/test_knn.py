"""kNN and radius search: every implementation against plain loops and SciPy, to the last bit."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinyattn as ta
from tests.machine import from_python, same_bits_on_any_threads
from tinyattn.graph import knn, knn_graph, radius_graph
from tinyattn.kernels import numba
from tinyattn.kernels.fast import candidate_list
from tinyattn.kernels.fast import knn as kernel
from tinyattn.kernels.fast.knn import LEAF_SIZE, Keys, forest
from tinyattn.kernels.machine import sorting_network

IMPLS = ("sums", "numpy", "kernel")


def by_sorting(x, k, batch=None):
    """All distances, sorted by (distance, index): nothing is left out."""
    batch = np.zeros(len(x), int) if batch is None else batch
    index, d2 = np.zeros((len(x), k), int), np.zeros((len(x), k), x.dtype)
    for event in np.unique(batch):
        rows = np.flatnonzero(batch == event)
        found = np.zeros((len(rows), len(rows)), x.dtype)
        for d in range(x.shape[1]):
            found += np.square(x[rows, None, d] - x[rows, d])
        order = np.argsort(found, axis=1, kind="stable")[:, :k]  # of equals, the first one first
        index[rows], d2[rows] = rows[order], np.take_along_axis(found, order, axis=1)
    return index, d2


def implementations(x):
    """All of them; in WebAssembly, where the sums run as Python, not for many points."""
    return IMPLS if numba or len(x) * x.size < 100_000 else ("numpy",)


def check(x, k, batch=None):
    expected = by_sorting(x, k, batch)
    for impl in (*implementations(x), "auto"):
        index, d2 = knn(x, k, batch, impl)
        assert index.dtype == np.intp
        assert d2.dtype == x.dtype
        np.testing.assert_array_equal(index, expected[0], err_msg=impl)
        np.testing.assert_array_equal(d2, expected[1], err_msg=impl)


CLOUDS = {
    "normal": lambda rng, N, D: rng.normal(size=(N, D)),
    "lattice, many ties": lambda rng, N, D: rng.integers(0, 3, (N, D)),
    "all at one place": lambda rng, N, D: np.full((N, D), 3.7),
    "on a line": lambda rng, N, D: np.arange(N)[:, None] * np.ones(D),
    "pairs of duplicates": lambda rng, N, D: np.repeat(rng.normal(size=(N, D)), 2, axis=0)[:N],
    "far from 0": lambda rng, N, D: rng.normal(size=(N, D)) + 1e4,
    "dense and thin": lambda rng, N, D: rng.normal(size=(N, D)) * np.exp(rng.normal(0, 5, (N, 1))),
    "tiny": lambda rng, N, D: rng.normal(size=(N, D)) * 1e-18,
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("cloud", list(CLOUDS))
@pytest.mark.parametrize(("N", "D", "k"), [(300, 2, 8), (300, 3, 40), (200, 20, 5), (90, 1, 90)])
def test_clouds(cloud, dtype, N, D, k):
    check(CLOUDS[cloud](np.random.default_rng(0), N, D).astype(dtype), k)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_cloud(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    sizes = data.draw(st.lists(st.integers(1, 70), min_size=1, max_size=5))
    D, k = data.draw(st.integers(1, 9)), data.draw(st.integers(0, min(sizes)))
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    cloud = data.draw(st.sampled_from(list(CLOUDS)))
    batch = np.repeat(rng.permutation(len(sizes)) * 3 - 2, sizes)
    if data.draw(st.booleans()):
        batch = rng.permutation(batch)
    check(CLOUDS[cloud](rng, sum(sizes), D).astype(dtype), k, batch)


@pytest.mark.parametrize("D", [1, 2, 3, 8])
def test_equals_scipy(D):
    spatial = pytest.importorskip("scipy.spatial")
    x = np.random.default_rng(D).normal(size=(3000, D))
    distance, index = spatial.cKDTree(x).query(x, k=10)
    for impl in implementations(x):
        own, d2 = knn(x, 10, impl=impl)
        np.testing.assert_array_equal(own, index)
        np.testing.assert_allclose(np.sqrt(d2), distance, rtol=1e-12)


def test_high_dimension_is_exact_near_zero():
    """Where |x|² + |y|² - 2 x·y cancels: neighbours a millionth apart, far from the origin."""
    rng = np.random.default_rng(0)
    x = np.repeat(rng.normal(size=(400, 64)), 3, axis=0) + 1e-5 * rng.normal(size=(1200, 64))
    x = x.astype(np.float32)
    check(x, 4)
    assert np.all(knn(x, 1)[1] == 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("N", [128, 129, 256, 1000])
def test_full_leaves_of_ties(N, dtype):
    """Lists grow as long as they ever can: all points of a leaf are tied, and those of the next."""
    rng = np.random.default_rng(N)
    half = np.where(np.arange(N)[:, None] % 2, rng.normal(size=(N, 2)), 0)
    for x in (np.zeros((N, 2)), rng.integers(0, 3, (N, 2)), half, np.zeros((N, 12))):
        for k in (1, 4, 11, 16, 17, 23, 63, 64, 65, 100):
            found = knn(x.astype(dtype), k, impl="kernel")
            for a, b in zip(found, knn(x.astype(dtype), k, impl="sums"), strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_squares_near_the_smallest_number(dtype):
    """There rounding is not relative to the numbers any more; candidates must not be lost."""
    for scale in (1, 3, 10, 100):
        x = np.random.default_rng(0).normal(size=(300, 9)).astype(dtype)
        x *= dtype(scale) * np.sqrt(np.finfo(dtype).smallest_subnormal)
        check(x, 5)


@pytest.mark.parametrize("N", [600, 1300])
@pytest.mark.parametrize("D", [9, 16, 64])
def test_high_dimension(N, D):
    rng = np.random.default_rng(N)
    x = rng.normal(size=(N, D)).astype(np.float32)
    for points in (x, np.round(x), x + 100, np.r_[x, 1e4 * x[:3]], np.ones_like(x)):
        check(points, 12)


@pytest.mark.parametrize("impl", IMPLS)
def test_empty_and_tiny(impl):
    for N, k in ((0, 0), (0, 3), (1, 1), (1, 0), (2, 2)):
        index, d2 = knn(np.zeros((N, 2), np.float32), k, impl=impl)
        assert index.shape == d2.shape == (N, k)
    for N in (3, 30):
        index, d2 = knn(np.zeros((N, 0), np.float32), 2, impl=impl)  # no coordinates: all are tied
        np.testing.assert_array_equal(index, [[0, 1]] * N)


@pytest.mark.parametrize("impl", IMPLS)
def test_what_comes_in(impl):
    x = np.random.default_rng(0).normal(size=(20, 6)).astype(np.float32)
    expected = knn(x[:, ::2].copy(), 3)[0]
    np.testing.assert_array_equal(knn(x[:, ::2], 3, impl=impl)[0], expected)  # with strides
    np.testing.assert_array_equal(knn(ta.Tensor(x[:, ::2].copy()), 3, impl=impl)[0], expected)
    fixed = x[:, ::2].copy()
    fixed.flags.writeable = False
    np.testing.assert_array_equal(knn(fixed, 3, impl=impl)[0], expected)
    whole = np.array([[0], [3], [1]])
    np.testing.assert_array_equal(knn(whole, 2, impl=impl)[0], [[0, 2], [1, 2], [2, 0]])


def test_the_same_bits_on_any_number_of_threads():
    x = np.random.default_rng(0).normal(size=(5000, 3)).astype(np.float32)
    same_bits_on_any_threads(lambda: knn(x, 9, impl="kernel"))


def test_from_several_python_threads_at_once():
    x = np.random.default_rng(0).normal(size=(3000, 3)).astype(np.float32)
    expected = knn(x, 9)[0]
    with ThreadPoolExecutor(4) as pool:
        for index, _ in pool.map(lambda _: knn(x, 9), range(12)):
            np.testing.assert_array_equal(index, expected)


# ---------------------------------------------------------------- the list of the best

prune, sort, tolerance = (
    from_python(f) for f in (candidate_list.prune, candidate_list.sort, candidate_list.tolerance)
)
initial_limits = from_python(kernel.initial_limits)
quickselect_vectors = from_python(kernel.quickselect_vectors)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=300), st.integers(1, 20), st.booleans())
@settings(max_examples=60, deadline=None)
def test_cut_keeps_the_best(values, k, shuffled):
    n = len(values)
    found = np.r_[np.array(values, np.float32), np.zeros(32, np.float32)]
    names = np.r_[np.random.default_rng(n).permutation(n) if shuffled else np.arange(n), [0] * 32]
    names = names.astype(np.int32)
    best = sorted(zip(found[:n].tolist(), names[:n].tolist(), strict=True))[:k]
    m, limit = prune(found, names, 0, n, k, np.float32(np.inf))
    if n >= k:
        assert m <= k + tolerance(k)
        assert limit >= best[-1][0]
    sort(found, names, 0, m)
    assert list(zip(found[:m].tolist(), names[:m].tolist(), strict=True))[:k] == best


@pytest.mark.parametrize("n", [2, 8, 16])
def test_network_sorts_whatever_comes(n):
    """What sorts all rows of zeros and ones sorts all rows of numbers (Knuth: 0-1 principle)."""
    rows = np.arange(1 << n)[:, None] >> np.arange(n) & 1
    for step in sorting_network.steps(n):
        e = np.arange(n)
        partner = rows[:, e ^ step]
        rows = np.where(e < e ^ step, np.minimum(rows, partner), np.maximum(rows, partner))
    assert (np.diff(rows, axis=1) >= 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lists_are_sorted_in_place(dtype):
    """Short ones in registers, long ones not; what lies around them stays."""
    rng = np.random.default_rng(0)
    for n in (*range(70), 127, 128, 129, 200):
        for values in (rng.random(n), rng.integers(0, 3, n), np.zeros(n)):
            found, names = np.full(n + 6, -7, dtype), np.full(n + 6, -7, np.int32)
            found[3 : 3 + n], names[3 : 3 + n] = values, rng.permutation(n)
            order = np.r_[:3, 3 + np.lexsort((names[3 : 3 + n], found[3 : 3 + n])), 3 + n : n + 6]
            expected = found[order], names[order]
            sort(found, names, 3, n)
            np.testing.assert_array_equal(found, expected[0])
            np.testing.assert_array_equal(names, expected[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_first_limits(dtype):
    """The k-th distance for small k, and for larger k a limit that k points keep."""
    x = np.random.default_rng(0).normal(size=(61, 3)).astype(dtype)
    f = forest(x, np.array([0, 61]))
    _, d2 = knn(x, 61, impl="sums")
    best, limit = np.zeros(16 * (61 + 16), dtype), np.zeros(LEAF_SIZE, dtype)
    for k in (1, 5, 16, 17, 40, 61):
        initial_limits(limit, best, f, 0, k)
        if k <= 16:
            np.testing.assert_array_equal(limit[:61], d2[:, k - 1])
        assert ((d2 <= limit[:61, None]).sum(axis=1) >= k).all()
        assert np.isfinite(limit).all() or k == 61  # several lists, not filled evenly
    initial_limits(limit, best, f, 0, 62)
    assert (limit[:61] == np.inf).all()


KEYS = {
    "many": lambda rng, n: rng.integers(0, 10**6, n),
    "few": lambda rng, n: rng.integers(0, 3, n),
    "up and down": lambda rng, n: -np.abs(np.arange(n) - n // 2),
    "two threads": lambda rng, n: np.where(np.arange(n) % 2, np.arange(n), n - np.arange(n)),
}


@given(
    st.integers(1, 5000),
    st.sampled_from(list(KEYS)),
    st.sampled_from([np.float32, float]),
    st.data(),
)
@settings(max_examples=100, deadline=None)
def test_halves(n, kind, dtype, data):
    """The smaller keys before the middle, the others behind, and each row once."""
    key = KEYS[kind](np.random.default_rng(n), n).astype(dtype)
    middle = data.draw(st.integers(0, n - 1))
    part, other = (Keys(np.zeros(n + 32, dtype), np.zeros(n + 32, np.int32)) for _ in range(2))
    part.key[:n], part.rows[:n] = key, np.arange(n)
    order = np.full(n + 6, -7, np.int32)
    quickselect_vectors(order, 3, part, other, n, middle)
    assert (order[:3] == -7).all()
    assert (order[n + 3 :] == -7).all()
    order = order[3 : n + 3]
    np.testing.assert_array_equal(np.sort(order), np.arange(n))
    assert key[order[:middle]].max(initial=key.min()) <= key[order[middle:]].min()


# ---------------------------------------------------------------- edges


def pairs_of(g):
    return list(zip(g.dst.tolist(), g.src.tolist(), strict=True))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_radius_graph(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    N, D = data.draw(st.integers(0, 150)), data.draw(st.integers(1, 10))
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    x = CLOUDS[data.draw(st.sampled_from(list(CLOUDS)))](rng, N, D).astype(dtype)
    r, loop = data.draw(st.sampled_from([0, 0.5, 1, 3, np.inf])), data.draw(st.booleans())
    batch = rng.integers(0, 3, N) if data.draw(st.booleans()) else None
    expected = []
    for i in range(N):
        near = []
        for j in range(N):
            d2 = x.dtype.type(0)
            for d in range(D):
                d2 += np.square(x[i, d] - x[j, d])
            same_cloud = batch is None or batch[i] == batch[j]
            if same_cloud and d2 <= np.square(dtype(r)) and (loop or i != j):
                near.append((d2, j))
        expected += [(i, j) for _, j in sorted(near)]
    for impl in (*IMPLS, "auto"):
        g = radius_graph(x, r, batch, loop, impl)
        assert pairs_of(g) == expected, impl
        assert g.num_nodes == N


@pytest.mark.parametrize("loop", [False, True])
def test_knn_graph(loop):
    x, batch = np.random.default_rng(0).normal(size=(30, 2)), np.repeat([1, 0], 15)
    x[3:9] = x[3]  # six points at one place: a point's own index is not among the first
    g = knn_graph(x, 4, batch, loop)
    assert np.all(g.in_degree == 4)
    assert np.all(batch[g.src] == batch[g.dst])
    assert np.all(g.batch == batch)
    index, _ = knn(x, 15, batch)
    for i in range(30):
        own = [j for j in index[i] if loop or j != i][:4]
        assert g.src[g.dst == i].tolist() == own


def test_edges_of_nothing():
    assert knn_graph(np.zeros((0, 2)), 3).num_edges == 0
    assert radius_graph(np.zeros((0, 2)), 1.0).num_edges == 0
    assert knn_graph(np.zeros((1, 2)), 0).num_edges == 0
