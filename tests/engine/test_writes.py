"""Memory: values that are written to after they were used, graphs used twice, graphs dropped."""

import copy
import gc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view

import tinyattn.functional as F
from tests.engine.leaves import leaf
from tinyattn import Tensor, grad, jacobian, primitive

rng = np.random.default_rng(0)


# ---------------------------------------------------------------- written to after it was used


def set_item(x):
    x[...] = 1.0


def set_one(x):
    x[0] = 1.0


def set_data(x):
    x.data = np.ones_like(x.data)


def change_data(x):
    x.data -= 0.1


WRITES = [set_item, set_one, set_data, change_data]
dtypes = pytest.mark.parametrize("dtype", [np.float32, np.float64])  # float32 goes a shorter way


@dtypes
@pytest.mark.parametrize("write", WRITES)
def test_input_written_to(write, dtype):
    x = leaf(3, dtype=dtype)
    y = np.sum(np.exp(x) * x)
    write(x)
    with pytest.raises(RuntimeError, match="(exp|multiply) was written"):
        y.backward()
    assert x.grad is None


@dtypes
@pytest.mark.parametrize("write", WRITES)
def test_result_written_to(write, dtype):
    x = leaf(3, dtype=dtype)
    y = np.exp(x)
    z = np.sum(y)
    write(y)
    with pytest.raises(RuntimeError, match="(exp|sum) was written"):
        z.backward()


@dtypes
@pytest.mark.parametrize("write", WRITES)
def test_constant_written_to(write, dtype):
    """A buffer for batches that is filled again before backward."""
    batch, w = Tensor(np.ones((2, 3), dtype)), leaf(3, dtype=dtype)
    loss = np.sum(batch @ w)
    write(batch)
    with pytest.raises(RuntimeError, match="matmul .*written"):
        loss.backward()


VIEWS = {
    "slice": lambda x: x[1:],
    "row": lambda x: x[0],
    "transposed": lambda x: x.T,
    "reshaped": lambda x: x.reshape(-1),
    "ravel": lambda x: x.ravel(),
    "newaxis": lambda x: x[None],
    "diagonal": lambda x: x.reshape(3, 2).T,
    "view of a view": lambda x: x[1:].T[0],
    "detached": lambda x: x.detach(),
    "broadcast": lambda x: np.broadcast_to(x, (2, 2, 3)),
    "expanded": lambda x: np.expand_dims(x, 0),
    "squeezed": lambda x: x[None].squeeze(0),
    "swapped": lambda x: np.swapaxes(x, 0, 1),
    "moved": lambda x: np.moveaxis(x, 0, 1),
    "flipped": lambda x: np.flip(x),
    "positive": lambda x: x.detach()[:],
    "split": lambda x: np.split(x, 2)[0],
    "all": lambda x: x[...],
}


@pytest.mark.parametrize("view", VIEWS)
def test_view_written_to_through_its_base(view):
    x = Tensor(rng.normal(size=(2, 3)))
    w = leaf()
    y = np.sum(np.exp(VIEWS[view](x) * w))
    x[...] = 2.0
    with pytest.raises(RuntimeError, match="written"):
        y.backward()


@pytest.mark.parametrize("view", [v for v in VIEWS if v != "broadcast"])
def test_base_written_to_through_a_view(view):
    x, w = Tensor(rng.normal(size=(2, 3))), leaf()
    alias = VIEWS[view](x)
    y = np.sum(x * w)
    before = x.data.copy()
    alias[...] = 2.0
    if np.array_equal(before, x.data):
        pytest.skip("NumPy makes a copy here")
    with pytest.raises(RuntimeError, match="written"):
        y.backward()


def test_batch_behind_a_convolution_written_to():
    batch, w = Tensor(np.ones((1, 1, 4))), leaf(1, 1, 2)
    y = np.sum(F.conv1d(batch, w))  # its windows are a view of the batch
    batch[...] = 5.0
    with pytest.raises(RuntimeError, match="written"):
        y.backward()


def test_two_views_of_one_memory():
    x, w = Tensor(rng.normal(size=(2, 3))), leaf()
    a, b = x[0], x[:, 1]
    y = np.sum(a * w)
    b[...] = 5.0
    with pytest.raises(RuntimeError, match="written"):
        y.backward()


STEPS = [
    lambda a, b: a[1:],
    lambda a, b: a[:, 0],
    lambda a, b: a.T,
    lambda a, b: a.reshape(-1),
    lambda a, b: np.broadcast_to(a, (2, *a.shape)),
    lambda a, b: a[None],
    lambda a, b: a.detach(),
    lambda a, b: np.flip(a),
    lambda a, b: a.copy(),
    lambda a, b: a[[0, 0, -1]],
    lambda a, b: sliding_window_view(a.ravel(), 1),
    lambda a, b: a * b,
    lambda a, b: a * b.T,
    lambda a, b: a.ravel()[:2] * b.ravel()[-2:],
    lambda a, b: b.ravel()[:2] * a.ravel()[:2],
    lambda a, b: np.sum(a) * b,
    lambda a, b: np.einsum("...i,...i->...", a, b),
    lambda a, b: np.exp(-a * a),
    lambda a, b: np.where(a > 0, a, 0.5),
    lambda a, b: np.tanh(a),
    lambda a, b: np.concatenate([a.ravel(), b.ravel()]),
    lambda a, b: np.maximum(a, np.mean(b)),
]


@dtypes
@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(st.integers(-3, len(STEPS) - 1), st.integers(0), st.integers(0)), max_size=12
    )
)
@np.errstate(all="ignore")  # products may overflow; nan must equal nan then
def test_random_views_and_writes_are_refused_or_right(dtype, steps):
    """Each tensor has a twin that shares no memory; a write to shared memory leaves it alone."""
    start = np.random.default_rng(0).normal(size=(3, 2)).astype(dtype)
    leaf, twin = (Tensor(start, requires_grad=True) for _ in range(2))
    ours, twins, written = [leaf, Tensor(start)], [twin, Tensor(start)], False
    for step, i, j in steps:
        i, j = i % len(ours), j % len(ours)
        if step >= 0:
            if ours[i].ndim > 3:
                continue
            try:
                y = STEPS[step](ours[i], ours[j])
            except (IndexError, ValueError):
                continue
            ours.append(y)
            twins.append(np.copy(STEPS[step](twins[i], twins[j])))
        elif not ours[i].requires_grad and ours[i].data.flags.writeable:
            ours[i][...] = -0.5
            written = True
            for k, t in enumerate(ours):  # what shares its memory has new values from now on
                if not t.requires_grad:
                    twins[k] = Tensor(t.data)
            if not np.array_equal(twin.data, leaf.data):  # written to through leaf.detach()
                twin.data = leaf.data.copy()
    loss, expected = (
        sum((np.sum(np.tanh(t)) for t in ts if t.requires_grad), start=Tensor(dtype(0))) + 0.0
        for ts in (ours, twins)
    )
    try:
        loss.backward()
    except RuntimeError:
        assert written
        return
    expected.backward()
    rtol = {np.float32: 1e-4, np.float64: 1e-9}[dtype]
    np.testing.assert_allclose(leaf.grad, twin.grad, rtol=rtol, atol=rtol / 1000)


def test_a_copy_that_shares_memory_written_to():
    for x in (Tensor([1.0, 2.0]), Tensor([1.0, 2.0]) * 2):
        w, twin = leaf(2), copy.copy(x)
        y = np.sum(x * w)
        twin[...] = 50
        assert np.array_equal(x.data, [50, 50])
        with pytest.raises(RuntimeError, match="multiply .*written"):
            y.backward()
    with pytest.raises(RuntimeError, match="copy: .*computed"):
        copy.copy(w * w)


def test_tensor_by_name_only_is_refused():
    @primitive
    def scale(x, *, c):
        return x * c

    scale.defvjp(lambda g, y, x, *, c: g * c)
    x = leaf(3)
    np.sum(scale(x, c=2.0)).backward()
    np.testing.assert_array_equal(x.grad, [2, 2, 2])
    with pytest.raises(TypeError, match="scale: c .*position"):
        scale(x, c=Tensor(2.0))  # a write to it could not be seen


def test_writing_between_two_graphs_is_allowed():
    w = leaf(3)
    for _ in range(3):
        loss = np.sum(w * w)
        loss.backward()
        w.data -= 0.1 * w.grad
        w.grad = None
    w[...] = np.ones(3)
    np.sum(w * w).backward()
    assert np.array_equal(w.grad, [2, 2, 2])


def test_writing_to_something_else_is_allowed():
    x = leaf(3)
    y = x * 2
    other = np.copy(x.detach())
    other[...] = 7
    np.sum(y).backward()
    assert np.array_equal(x.grad, [2, 2, 2])


def test_index_changed_after_it_was_used():
    x, ids, mask = leaf(3), np.array([0, 1]), np.array([True, False, True])
    y = np.sum(x[ids]) + np.sum(x[mask]) + np.sum(np.take(x, ids))
    ids[...] = 2
    mask[...] = True
    y.backward()
    assert np.array_equal(x.grad, [3, 2, 1])


def test_condition_written_to():
    x, mask = leaf(3), Tensor(np.array([True, False, True]))
    y = np.sum(np.where(mask, x, 0.0))
    mask[...] = True
    with pytest.raises(RuntimeError, match="where .*written"):
        y.backward()


# ---------------------------------------------------------------- two times backward


def test_second_backward():
    x = leaf(3)
    y = np.sum(np.exp(x))
    y.backward()
    g = x.grad.copy()
    with pytest.raises(RuntimeError, match="freed"):
        y.backward()
    assert np.array_equal(x.grad, g)


def test_second_loss_through_a_freed_part():
    x = leaf(3)
    h = np.exp(x)
    first, second = np.sum(h), np.sum(h * h)
    first.backward()
    g = x.grad.copy()
    with pytest.raises(RuntimeError, match="freed"):
        second.backward()
    assert np.array_equal(x.grad, g)


def test_two_losses_added():
    x = leaf(3)
    h = np.exp(x)
    (np.sum(h) + np.sum(h * h)).backward()
    e = np.exp(x.data)
    np.testing.assert_allclose(x.grad, e + 2 * e * e, rtol=1e-12)


def test_intermediate_gradients_do_not_go_stale():
    """With create_graph the graph stays, and a second backward must count every path once."""
    x = leaf(3)
    h = np.exp(x)
    first, second = np.sum(h), np.sum(h * h)
    first.backward(create_graph=True)
    second.backward()
    e = np.exp(x.data)
    total = x.grad.data if isinstance(x.grad, Tensor) else x.grad
    np.testing.assert_allclose(total, e + 2 * e * e, rtol=1e-12)
    with pytest.warns(UserWarning, match="computed by exp, and only leaves keep gradients"):
        assert h.grad is None


def test_gradients_add_up_over_graphs():
    x = leaf(3)
    for _ in range(3):
        np.sum(x * 2).backward()
    assert np.array_equal(x.grad, [6, 6, 6])


@pytest.mark.parametrize("uses", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("shape", [(), (1,), (2, 3)])
def test_many_uses_of_one_tensor(uses, shape):
    x = leaf(*shape)
    y = x * 1
    terms = [y, x, y * y, x * y, np.exp(y)][:uses]
    values = [np.ones(shape), np.ones(shape), 2 * x.data, 2 * x.data, np.exp(x.data)][:uses]
    total = terms[0]
    for t in terms[1:]:
        total = total + t
    np.sum(total).backward()
    assert type(x.grad) is np.ndarray
    np.testing.assert_allclose(x.grad, sum(values), rtol=1e-12)


def test_diamond_is_walked_once():
    x = leaf()
    y = x
    for _ in range(60):  # 2**60 paths
        y = y + y
    y.backward()
    assert x.grad == 2.0**60


# ---------------------------------------------------------------- long chains, memory


def test_chain_of_100000_operations():
    x = leaf(2)
    y = x
    for _ in range(50_000):
        y = y * 1.0 + 0.0
    np.sum(y).backward()
    assert np.array_equal(x.grad, [1, 1])


def test_long_chain_is_dropped_without_recursion():
    y = leaf(2)
    for _ in range(100_000):
        y = -y
    assert y.requires_grad
    del y


def test_long_chain_can_be_differentiated_twice():
    x = leaf()
    y = x * x
    for _ in range(10_000):
        y = y + 0.0
    y.backward(create_graph=True)
    g, x.grad = x.grad, None
    g.backward()
    assert x.grad == 2


@pytest.fixture
def _no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def graph_of(x):
    h = np.tanh(x @ x.T)
    loss = np.sum(np.concatenate([h, h[::2]]) ** 2 / np.mean(h, axis=0))
    return loss, [weakref.ref(t) for t in (h, loss)]


def run_dropped(x):
    return graph_of(x)[1]


def run_backward(x):
    loss, refs = graph_of(x)
    loss.backward()
    return refs


def run_backward_twice(x):
    loss, refs = graph_of(x)
    loss.backward()
    with pytest.raises(RuntimeError):
        loss.backward()
    return refs


def run_create_graph(x):
    loss, refs = graph_of(x)
    loss.backward(create_graph=True)
    g, x.grad = x.grad, None
    np.sum(g * g).backward()
    x.grad = None
    return [*refs, weakref.ref(g)]


def run_grad(x):
    refs = []

    def f(x):
        loss, found = graph_of(x)
        refs.extend(found)
        return loss

    grad(f)(x.detach())
    grad(f)(x)
    jacobian(f)(x)
    grad(lambda x: np.sum(grad(f)(x)))(x.detach())
    return refs


def run_error(x):
    try:
        loss, refs = graph_of(x)
        x.data = x.data + 1
        loss.backward()
    except RuntimeError:
        pass
    return refs


@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize(
    "run", [run_dropped, run_backward, run_backward_twice, run_create_graph, run_grad, run_error]
)
def test_graph_is_freed_at_once(run):
    """No reference cycles: with the garbage collector off, nothing may survive its last use."""
    refs = run(leaf(4, 4))
    assert [r() for r in refs] == [None] * len(refs)


@pytest.mark.usefixtures("_no_collector")
def test_backward_frees_what_it_has_used():
    freed = []
    big = leaf(100)
    h = np.exp(big)
    weakref.finalize(h, freed.append, "h")
    loss = np.sum(h * 2)
    del h
    assert not freed
    loss.backward()
    assert freed == ["h"]  # although the loss is still held
