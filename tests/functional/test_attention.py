"""Scaled dot-product attention: every implementation against every other and against PyTorch."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyattn import check
from tinyattn.engine.autograd import Tensor
from tinyattn.functional import attention as F
from tinyattn.kernels import attention as loops
from tinyattn.kernels import numba
from tinyattn.kernels.fast import attention as kernel

IMPLS = ("sums", "numpy", "kernel")

# Sums of up to a hundred products of numbers of size 1: rounding errors of a few hundred ε.
# Weights are at most 1, so absolute errors are of that size too.
TOLERANCE = {np.float64: 1e-12, np.float32: 1e-5}


def attend(q, k, v, bias=None, **options):
    """y and the gradients of q, k, v and bias for a fixed incoming gradient; all plain arrays."""
    inputs = [None if x is None else Tensor(x, requires_grad=True) for x in (q, k, v, bias)]
    for t, x in zip(inputs, (q, k, v, bias), strict=True):
        if t is not None:
            t.data = x  # as it lies in memory: Tensor() itself makes a contiguous copy
    y = F.scaled_dot_product_attention(*inputs[:3], bias=inputs[3], **options)
    g = np.random.default_rng(1).standard_normal(y.shape).astype(y.dtype)
    y.backward(g)
    return [y.data, *[x.grad for x in inputs if x is not None]]


def random_inputs(shapes, dtype=np.float64, seed=0):
    """Standard normal q, k, v, bias; a bool mask. `shapes` in that order, None for none."""
    rng = np.random.default_rng(seed)
    arrays = [None if s is None else rng.standard_normal(s).astype(dtype) for s in shapes[:4]]
    mask = None if shapes[4] is None else rng.random(shapes[4]) < 0.6
    return arrays, mask


def assert_close(got, expected, tolerance):
    for x, y in zip(got, expected, strict=True):
        assert x.shape == y.shape
        assert x.dtype == y.dtype
        size = max(1.0, np.abs(y).max(initial=0))
        np.testing.assert_allclose(x, y, rtol=0, atol=tolerance * size)


# q, k, v, bias, mask, causal
CASES = {
    "plain": ((5, 4), (5, 4), (5, 4), None, None, False),
    "one of everything": ((1, 1), (1, 1), (1, 1), (1, 1), (1, 1), False),
    "T, S, D, E all different": ((7, 3), (11, 3), (11, 5), None, None, False),
    "D = 1": ((6, 1), (9, 1), (9, 1), None, (6, 9), False),
    "one query": ((2, 3, 1, 4), (2, 3, 13, 4), (2, 3, 13, 4), None, None, False),
    "one key": ((2, 13, 4), (2, 1, 4), (2, 1, 4), (13, 1), (2, 13, 1), False),
    "one block": ((64, 8), (64, 8), (64, 8), (64, 64), (64, 64), False),
    "several blocks": ((2, 131, 6), (2, 67, 6), (2, 67, 9), (131, 67), (2, 131, 67), False),
    "causal": ((2, 130, 4), (2, 130, 4), (2, 130, 4), None, None, True),
    "causal, more keys": ((5, 4), (97, 4), (97, 4), None, None, True),
    "causal, more queries": ((97, 4), (5, 4), (5, 4), (97, 5), (97, 5), True),
    "heads share keys": ((2, 3, 7, 4), (2, 1, 7, 4), (1, 7, 5), None, None, False),
    "keys have the batch axis": ((3, 4), (2, 5, 3, 4), (5, 3, 4), None, None, True),
    "padding": ((2, 3, 70, 4), (2, 3, 70, 4), (2, 3, 70, 4), None, (2, 1, 1, 70), False),
    "mask of queries": ((2, 3, 7, 4), (2, 3, 7, 4), (2, 3, 7, 4), None, (7, 1), False),
    "mask with one axis": ((2, 7, 4), (2, 9, 4), (2, 9, 4), None, (9,), False),
    "bias per head": ((2, 3, 70, 4), (2, 3, 66, 4), (2, 3, 66, 4), (3, 70, 66), None, False),
    "bias per key": ((2, 3, 200, 4), (2, 3, 66, 4), (2, 3, 66, 4), (3, 1, 66), None, False),
    "bias per query": ((2, 70, 4), (2, 66, 4), (2, 66, 4), (70, 1), (66,), True),
    "one bias": ((2, 70, 4), (2, 6, 4), (2, 6, 4), (1,), None, False),
    "bias and mask per batch": (
        (2, 3, 7, 4),
        (2, 3, 7, 4),
        (2, 3, 7, 4),
        (2, 1, 7, 7),
        (1, 3, 7, 7),
        True,
    ),
}
EMPTY = {
    "no queries": ((2, 0, 4), (2, 5, 4), (2, 5, 3), (0, 5), (2, 0, 5), False),
    "no keys": ((2, 5, 4), (2, 0, 4), (2, 0, 3), (5, 0), (5, 0), True),
    "no batch": ((0, 5, 4), (0, 5, 4), (0, 5, 3), (5, 5), (1, 5, 5), False),
    "nothing at all": ((0, 0, 4), (0, 0, 4), (0, 0, 3), None, None, False),
    "no features": ((5, 0), (6, 0), (6, 3), None, None, False),
    "no value features": ((5, 2), (6, 2), (6, 0), (5, 6), None, False),
}


# ---------------------------------------------------------------- the implementations agree


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("case", [*CASES, *EMPTY])
def test_all_implementations_give_the_same_values_and_gradients(case, dtype):
    *shapes, causal = {**CASES, **EMPTY}[case]
    arrays, mask = random_inputs(shapes, dtype)
    expected, *others = [attend(*arrays, mask=mask, causal=causal, impl=r) for r in IMPLS]
    for other in others:
        assert_close(other, expected, TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("case", CASES)
def test_kernel_and_matmul_agree_with_pytorch(case, dtype):
    torch = pytest.importorskip("torch")
    *shapes, causal = CASES[case]
    arrays, mask = random_inputs(shapes, dtype)
    q, k, v, bias = [None if x is None else torch.tensor(x, requires_grad=True) for x in arrays]
    T, S = q.shape[-2], k.shape[-2]
    allowed = np.tri(T, S, dtype=bool) if causal else np.ones((T, S), bool)
    allowed = torch.tensor(allowed if mask is None else allowed & mask)
    zero = torch.zeros((), dtype=q.dtype) if bias is None else bias
    scores = torch.where(allowed, zero, -torch.inf)
    lead = np.broadcast_shapes(*[x.shape[:-2] for x in (q, k, v)])
    y = torch.nn.functional.scaled_dot_product_attention(
        *[x.expand(*lead, *x.shape[-2:]) for x in (q, k, v)], attn_mask=scores
    )
    g = np.random.default_rng(1).standard_normal(y.shape).astype(dtype)
    y.backward(torch.tensor(g))
    expected = [y.detach().numpy(), *[x.grad.numpy() for x in (q, k, v, bias) if x is not None]]
    for impl in ("kernel", "numpy"):
        got = attend(*arrays, mask=mask, causal=causal, impl=impl)
        assert_close(got, expected, max(TOLERANCE[dtype], 1e-10))


dims = st.sampled_from([0, 1, 2, 3, 5, 13, 63, 64, 65, 129])
features = st.sampled_from([1, 2, 3, 4, 7, 8])


@st.composite
def problems(draw):
    """Shapes for `random_inputs` with any broadcasting, causal or not, scale, seed."""
    T, S, D, E = draw(dims), draw(dims), draw(features), draw(features)
    lead = draw(st.sampled_from([(), (1,), (2,), (3, 2), (2, 1, 2)]))

    def some(*axes):  # a shape that broadcasts to these axes
        axes = axes[draw(st.integers(0, len(axes))) :]
        return tuple(draw(st.sampled_from([1, n])) for n in axes)

    def with_axes(*last):
        return (*some(*lead), *last)

    bias = draw(st.sampled_from([None, some(*lead, T, S)]))
    mask = draw(st.sampled_from([None, some(*lead, T, S)]))
    shapes = ((*lead, T, D), with_axes(S, D), with_axes(S, E), bias, mask)
    return (
        shapes,
        draw(st.booleans()),
        draw(st.sampled_from([None, 0.3, -2.0])),
        draw(st.integers(0, 99)),
    )


LAYOUTS = {  # how the last two axes lie in memory
    "rows": lambda x: x,
    "columns": lambda x: np.swapaxes(np.swapaxes(x, -1, -2).copy(), -1, -2),
    "heads inside": lambda x: np.moveaxis(np.moveaxis(x, 0, -2).copy(), -2, 0),
    "backwards": lambda x: x[..., ::-1].copy()[..., ::-1],
    "every third": lambda x: np.repeat(x, 3, axis=-2)[..., ::3, :],
}
layouts = st.sampled_from(list(LAYOUTS))


@settings(max_examples=150, deadline=None)
@given(problems(), st.sampled_from([np.float64, np.float32]), st.tuples(*[layouts] * 4), layouts)
def test_implementations_agree_on_any_shapes(problem, dtype, orders, mask_order):
    shapes, causal, scale, seed = problem
    arrays, mask = random_inputs(shapes, dtype, seed=seed)
    options = dict(mask=mask, causal=causal, scale=scale)
    expected = attend(*arrays, **options, impl="numpy")
    assert np.isfinite(expected[0]).all()

    def laid_out(x, order):
        return LAYOUTS[order](x) if x is not None and x.ndim > 1 else x

    odd = [laid_out(x, order) for x, order in zip(arrays, orders, strict=True)]
    options["mask"] = laid_out(mask, mask_order)
    tolerance = 1e-11 if dtype == np.float64 else 1e-4  # |scale| up to 2: scores up to 30
    for impl in ("sums", "kernel"):
        assert_close(attend(*odd, **options, impl=impl), expected, tolerance)


def test_sums_are_the_formula():
    """The loops against the formula in one line."""
    q, k, v = (np.random.default_rng(i).standard_normal((n, 3)) for i, n in enumerate((4, 5, 5)))
    e = np.exp(0.5 * np.einsum("td,sd->ts", q, k))
    expected = np.einsum("ts,sd->td", e / e.sum(-1, keepdims=True), v)
    y, a = loops.attention_loops(q, k, v, np.ones((4, 5), bool), np.zeros((4, 5)), False, 0.5)
    np.testing.assert_allclose(y, expected, rtol=1e-14)
    np.testing.assert_allclose(a, e / e.sum(-1, keepdims=True), rtol=1e-14)


# ---------------------------------------------------------------- block by block


@pytest.mark.parametrize("block", [1, 3, 64, 1000])  # 3 and 64 divide hardly any S of the cases
@pytest.mark.parametrize("case", [*CASES, *EMPTY])
def test_blockwise_is_the_sums(case, block):
    """Values and gradients, of one head after the other."""
    *shapes, causal = {**CASES, **EMPTY}[case]
    (q, k, v, bias), mask = random_inputs(shapes)
    lead = loops.leading_axes(q, k, v)
    heads = loops.matrices_of(lead, q, k, v, *loops.mask_and_bias(lead, q, k, mask, bias))
    rng = np.random.default_rng(2)
    for head in zip(*heads, strict=True):
        inputs = *head, causal, 0.7
        y, a = loops.attention_loops(*inputs)
        g = rng.standard_normal(y.shape)
        expected = y, *loops.attention_loops_backward(g, *head[:3], a, 0.7)
        found, *saved = loops.blockwise(*inputs, block)
        found = found, *loops.blockwise_backward(g, found, *saved, *inputs, block)
        assert_close(found, expected, 1e-12)


def test_blockwise_of_queries_that_see_nothing_and_of_scores_of_any_size():
    """No key at all, none in the first blocks, a maximum that rises and falls, scores of 1000."""
    rng = np.random.default_rng(0)
    q, k, v, g = (rng.standard_normal((n, 4)) for n in (6, 10, 10, 6))
    q[4:], mask = 100 * q[4:], np.ones((6, 10), bool)
    mask[0], mask[1, :7], mask[2, 3:] = False, False, False
    bias = np.where(np.arange(6)[:, None] == 3, 9.0 * np.arange(10), rng.standard_normal((6, 10)))
    bias[2, :2] = -np.inf
    inputs = q, k, v, mask, bias, False, 5.0
    y, a = loops.attention_loops(*inputs)
    expected = y, *loops.attention_loops_backward(g, q, k, v, a, 5.0)
    assert np.abs(q @ k.T * 5).max() > 1000
    assert (y[0] == 0).all() and np.isfinite(y).all()
    for block in (1, 4, 10, 11):
        found, *saved = loops.blockwise(*inputs, block)
        found = found, *loops.blockwise_backward(g, found, *saved, *inputs, block)
        assert_close(found, expected, 1e-12)
        assert (found[1][0] == 0).all()


def test_blockwise_does_not_hide_nan():
    q, k, v = np.ones((3, 2)), np.ones((5, 2)), np.ones((5, 2))
    q[1], mask = np.nan, np.ones((3, 5), bool)
    mask[2] = False
    y, *_ = loops.blockwise(q, k, v, mask, np.zeros((3, 5)), False, 1.0, 2)
    np.testing.assert_array_equal(y, [[1, 1], [np.nan, np.nan], [0, 0]])


# ---------------------------------------------------------------- gradients


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize("case", ["T, S, D, E all different", "heads share keys", "bias per query"])
def test_first_derivative(case, impl):
    (*shapes, mask_shape), causal = CASES[case][:5], CASES[case][5]
    shapes = [s and tuple(min(n, 9) for n in s) for s in [*shapes, mask_shape]]
    (q, k, v, bias), mask = random_inputs(shapes)

    def f(q, k, v, bias):
        return F.scaled_dot_product_attention(q, k, v, mask, bias, causal, impl=impl)

    check.gradcheck(f, q, k, v, bias).expect()


def test_second_derivative_of_array_algebra():
    (q, k, v, bias), mask = random_inputs(((3, 2), (4, 2), (4, 3), (3, 4), (3, 4)))
    mask[1] = False

    def f(q, k, v, bias):
        return F.scaled_dot_product_attention(q, k, v, mask, bias, causal=True, impl="numpy")

    check.gradcheck(f, q, k, v, bias, order=2).expect()


def test_gradients_that_nobody_wants_are_not_returned():
    (q, k, v, bias), _ = random_inputs(((5, 2), (5, 2), (5, 2), (5, 5), None))
    y, saved = kernel.attention(q, k, v, None, bias, False, 1.0)
    *_, db = kernel.attention_backward(y, y, saved, q, k, v, None, bias, False, 1.0, False)
    assert db is None


def test_one_tensor_as_query_key_and_value():
    x = np.random.default_rng(0).standard_normal((6, 3))
    gradients = []
    for impl in IMPLS:
        t = Tensor(x, requires_grad=True)
        F.scaled_dot_product_attention(t, t, t, impl=impl).backward(np.ones((6, 3)))
        gradients.append([t.grad])
    for other in gradients[1:]:
        assert_close(other, gradients[0], 1e-12)


# ---------------------------------------------------------------- all three in one array


@pytest.mark.parametrize("lead", [(), (2,), (1, 9)])
@pytest.mark.parametrize("kind", ["plain", "mask", "bias", "causal", "all"])
def test_self_attention_is_attention_of_the_three_parts(kind, lead):
    T, H, d = 150, 4, 6
    rng = np.random.default_rng(0)
    x = rng.standard_normal((*lead, T, 3 * H * d))
    mask = rng.random((*lead, 1, 1, T)) < 0.7 if kind in ("mask", "all") else None
    bias = rng.standard_normal((H, T, T)) if kind in ("bias", "all") else None
    g = rng.standard_normal((*lead, T, H * d))
    whole = [Tensor(x, requires_grad=True), bias if bias is None else Tensor(bias, None, True)]
    y = F.packed_self_attention(whole[0], H, mask, whole[1], kind in ("causal", "all"))
    assert y._operation.name == ("packed_self_attention" if numba else "join_heads")
    y.backward(g)
    found = [y.data, *[t.grad for t in whole if t is not None]]
    parts = [Tensor(x, requires_grad=True), bias if bias is None else Tensor(bias, None, True)]
    q, k, v = (np.swapaxes(z.reshape(*lead, T, H, d), -3, -2) for z in np.split(parts[0], 3, -1))
    y = F.scaled_dot_product_attention(
        q, k, v, mask, parts[1], kind in ("causal", "all"), impl="numpy"
    )
    y = np.swapaxes(y, -3, -2).reshape(*lead, T, H * d)
    y.backward(g)
    assert_close(found, [y.data, *[t.grad for t in parts if t is not None]], 1e-12)


# ---------------------------------------------------------------- nothing permitted, large scores


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize("hide", ["mask", "bias", "both", "keys"])
def test_query_without_permitted_key_gives_zeros_and_no_gradient(impl, hide):
    arrays, mask = random_inputs(((2, 70, 4), (2, 66, 4), (2, 66, 3), (70, 66), (70, 66)))
    mask[:] = True
    if hide == "keys":
        arrays = [x[..., :0, :] if i in (1, 2) else x for i, x in enumerate(arrays)]
        arrays[3], mask = arrays[3][:, :0], mask[:, :0]
    if hide in ("mask", "both"):
        mask[3] = False
    if hide in ("bias", "both"):
        arrays[3][3] = -np.inf
    y, dq, dk, dv, db = attend(*arrays, mask=mask, impl=impl)
    for x in (y[:, 3], dq[:, 3], db[3]):
        assert not x.any()
    if hide != "keys":
        assert y[:, 4].all()
        assert all(np.isfinite(d).all() for d in (dq, dk, dv, db))


@pytest.mark.parametrize("impl", IMPLS)
def test_minus_infinity_in_the_bias_hides_like_the_mask(impl):
    arrays, mask = random_inputs(((2, 70, 4), (2, 66, 4), (2, 66, 3), (70, 66), (70, 66)))
    expected = attend(*arrays, mask=mask, impl=impl)
    arrays[3][~mask] = -np.inf
    assert_close(attend(*arrays, impl=impl), expected, 1e-13)


@pytest.mark.parametrize("impl", IMPLS)
def test_causal_sees_no_future(impl):
    (q, k, v, _), _ = random_inputs(((70, 4), (70, 4), (70, 4), None, None))
    y = F.scaled_dot_product_attention(q, k, v, causal=True, impl=impl).data
    k[50:], v[50:] = 7, 7
    changed = F.scaled_dot_product_attention(q, k, v, causal=True, impl=impl).data
    assert (y[:50] == changed[:50]).all()
    assert (y[50:] != changed[50:]).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("impl", IMPLS)
def test_large_scores(impl, sign, dtype):
    """Scores of ±10⁴ in steps of 1: the softmax of 0, -1, -2, … whatever the size."""
    scores = sign * 1e4 + np.arange(100)
    q, k = np.ones((1, 1), dtype), scores[:, None].astype(dtype)
    v = np.eye(100, dtype=dtype)
    y, *gradients = attend(q, k, v, impl=impl)
    expected = np.exp(scores - scores.max())
    expected /= expected.sum()
    np.testing.assert_allclose(y[0], expected, rtol=0, atol=10 * np.finfo(dtype).eps)
    assert all(np.isfinite(d).all() for d in gradients)


@pytest.mark.parametrize("impl", IMPLS)
def test_nan_is_not_hidden(impl):
    (q, k, v, _), _ = random_inputs(((70, 4), (70, 4), (70, 4), None, None))
    q[3, 0] = np.nan
    y = F.scaled_dot_product_attention(q, k, v, impl=impl).data
    assert np.isnan(y[3]).all()
    assert np.isfinite(np.delete(y, 3, axis=0)).all()


def with_a_wrong_number(impl, part, wrong, mask, causal, T=3, S=5):
    """Result and gradients where one number of key 1 (or query 1) is `wrong`."""
    (q, k, v, _), _ = random_inputs(((T, 4), (S, 4), (S, 4), None, None))
    arrays = {"q": q, "k": k, "v": v}
    arrays[part][1, 1] = wrong
    tensors = [Tensor(x, requires_grad=True) for x in arrays.values()]
    y = F.scaled_dot_product_attention(*tensors, mask=mask, causal=causal, impl=impl)
    y.backward(1 + np.arange(y.size).reshape(y.shape) / 10)
    return [y.data, *(x.grad for x in tensors)]


SEEN_BY_SOME = np.ones((3, 5), bool)
SEEN_BY_SOME[0, 1] = SEEN_BY_SOME[2, 4] = False
SEEN_BY_NONE = np.ones((3, 5), bool)
SEEN_BY_NONE[:, 1] = False


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("part", "qkv")
def test_the_implementations_agree_on_nan_and_infinity(part, wrong, causal):
    for mask in (None, SEEN_BY_SOME, SEEN_BY_NONE):
        expected = with_a_wrong_number("numpy", part, wrong, mask, causal)
        for impl in ("sums", "kernel"):
            found = with_a_wrong_number(impl, part, wrong, mask, causal)
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12, err_msg=impl)
        if mask is SEEN_BY_NONE and part != "q":
            assert all(np.isfinite(a).all() for a in expected)
        elif mask is None and not causal:
            assert np.isnan(expected[0]).any() or np.isinf(expected[0]).any()


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@pytest.mark.parametrize("impl", IMPLS)
def test_a_key_that_no_query_may_see_has_no_effect(impl):
    """As behind the last query under `causal`, and in padding that was never filled."""
    (q, k, v, _), _ = random_inputs(((2, 3, 4), (2, 5, 4), (2, 5, 4), None, None))
    bias, keep = np.zeros((3, 5)), np.array([[True] * 5, [True] * 3 + [False] * 2])[:, None]
    for options, hidden in (
        ({"causal": True}, np.s_[:, 3:]),
        ({"causal": True, "bias": bias, "mask": np.ones((1, 5), bool)}, np.s_[:, 3:]),
        ({"causal": True, "mask": np.ones((3, 1), bool)}, np.s_[:, 3:]),
        ({"mask": keep}, np.s_[1, 3:]),
        ({"mask": keep[1, 0]}, np.s_[:, 3:]),
        ({"mask": np.zeros((3, 1), bool)}, np.s_[:]),
        ({"mask": np.array(False)}, np.s_[:]),
    ):
        expected = attend(q, k, v, impl=impl, **options)
        for wrong in (np.nan, np.inf):
            bad_k, bad_v = k.copy(), v.copy()
            bad_k[hidden] = bad_v[hidden] = wrong
            found = attend(q, bad_k, bad_v, impl=impl, **options)
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_array_equal(a, b, err_msg=f"{options} {wrong}")


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
def test_hidden_keys_have_no_effect_where_heads_lie_side_by_side():
    x = np.random.default_rng(0).normal(size=(1, 90, 24)).astype(np.float32)
    keep = np.arange(90) < 80
    expected = F.packed_self_attention(x, 2, mask=keep).data[:, :80]
    x[:, 80:] = np.nan
    np.testing.assert_allclose(
        F.packed_self_attention(x, 2, mask=keep).data[:, :80], expected, rtol=1e-5
    )


# ---------------------------------------------------------------- weights


def test_weights_are_the_matrix_that_acts_on_the_values():
    (q, k, v, bias), mask = random_inputs(((2, 5, 4), (2, 7, 4), (2, 7, 3), (5, 7), (2, 1, 7)))
    mask[:, 0, 0] = True
    a = F.attention_weights(q, k, mask, bias, causal=True).data
    y = F.scaled_dot_product_attention(q, k, v, mask, bias, causal=True).data
    np.testing.assert_allclose(a @ v, y, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(a.sum(axis=-1), 1, rtol=1e-14)
    assert not a[~np.broadcast_to(mask & np.tri(5, 7, dtype=bool), a.shape)].any()


# ---------------------------------------------------------------- arrays as they come


@pytest.mark.parametrize("impl", IMPLS)
def test_any_memory_layout_and_read_only_arrays(impl):
    (q, k, v, bias), mask = random_inputs(((2, 5, 4), (2, 7, 4), (2, 7, 3), (5, 7), (2, 5, 7)))
    expected = attend(q, k, v, bias, mask=mask, impl=impl)
    odd = [np.asfortranarray(x) for x in (q, k)]
    odd += [np.repeat(v, 2, axis=1)[:, ::2], np.flip(np.flip(bias, 0).copy(), 0)]
    for x in odd:
        x.flags.writeable = False
    hidden = np.asfortranarray(mask)
    hidden.flags.writeable = False
    tensors = [Tensor(0.0, requires_grad=True) for _ in odd]
    for t, x in zip(tensors, odd, strict=True):
        t.data = x  # Tensor() itself makes a contiguous copy
    y = F.scaled_dot_product_attention(*tensors[:3], hidden, tensors[3], impl=impl)
    g = np.random.default_rng(1).standard_normal(y.shape)
    y.backward(np.broadcast_to(g, (1, *g.shape))[0])
    assert_close([y.data, *[t.grad for t in tensors]], expected, 1e-13)


@pytest.mark.parametrize("impl", IMPLS)
def test_dtypes(impl):
    q, k, v = (np.ones((3, 2), d) for d in (np.float32, np.float64, np.float32))
    assert F.scaled_dot_product_attention(q, q, q, impl=impl).dtype == np.float32
    assert F.scaled_dot_product_attention(q, k, v, impl=impl).dtype == np.float64
    tensors = [Tensor(x, requires_grad=True) for x in (q, k, v)]
    F.scaled_dot_product_attention(*tensors, impl=impl).sum().backward()
    assert [t.grad.dtype for t in tensors] == [q.dtype, k.dtype, v.dtype]
    lists = [[1.0, 0.0], [0.0, 1.0]]
    assert F.scaled_dot_product_attention(lists, lists, lists, impl=impl).dtype == np.float32


def test_mask_may_be_a_tensor():
    (q, k, v, _), mask = random_inputs(((5, 4), (7, 4), (7, 3), None, (5, 7)))
    for impl in IMPLS:
        y = F.scaled_dot_product_attention(q, k, v, Tensor(mask), causal=True, impl=impl)
        z = F.scaled_dot_product_attention(q, k, v, mask, causal=True, impl=impl)
        assert (y.data == z.data).all()


def test_auto_takes_the_kernel_for_long_inputs_only(monkeypatch):
    calls = []
    monkeypatch.setattr(kernel, "attention", lambda *a: calls.append(1) or (a[0], None))
    for shape, expected in (((8, 32, 4), 0), ((8, 128, 4), 1), ((8, 128, 4), 2)):
        x = np.ones(shape, np.float32)
        F.scaled_dot_product_attention(x, x, x)
        assert len(calls) == expected
    F.scaled_dot_product_attention(*[np.ones((8, 128, 4), np.float16)] * 3)
    assert len(calls) == 2
