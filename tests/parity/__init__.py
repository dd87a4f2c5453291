"""Comparison with PyTorch: the same call on the same numbers, values and gradients."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tinyattn as ta  # noqa: E402

TOLERANCE = {"float64": 1e-10, "float32": 1e-5}  # a few rounding errors of the dtype, relative


def both(ours, theirs, *inputs, rng=None, tolerance=None):
    """Run both functions on float arrays `inputs`; compare results and all input gradients."""
    rng = np.random.default_rng(0) if rng is None else rng
    x = [ta.Tensor(a, requires_grad=True) for a in inputs]
    t = [torch.tensor(np.array(a, order="C"), requires_grad=True) for a in inputs]
    y, z = ours(*x), theirs(*t)
    same(y.data, z.detach().numpy(), "result", tolerance)
    g = np.asarray(rng.normal(size=y.shape), y.dtype)
    y.backward(g)
    z.backward(torch.tensor(g))
    for i, (a, b) in enumerate(zip(x, t, strict=True)):
        expected = np.zeros(a.shape) if b.grad is None else b.grad.numpy()
        found = np.zeros(a.shape, a.dtype) if a.grad is None else a.grad
        same(found, expected, f"gradient of input {i}", tolerance)


def same(found, expected, what, tolerance=None):
    tolerance = tolerance or TOLERANCE[found.dtype.name]
    assert found.shape == expected.shape, what
    scale = max(1.0, float(np.max(np.abs(expected), initial=0)))
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale, err_msg=what)


def modules(mine, theirs, *inputs, options=None):
    """Load the weights of a PyTorch module; compare output, input and parameter gradients."""
    mine = mine.astype(np.float64)
    theirs = theirs.double()
    mine.load_state_dict(theirs.state_dict())
    both(mine, theirs, *inputs)
    for name, p in theirs.named_parameters():
        own = dict(mine.named_parameters())[name]
        expected = np.zeros(p.shape) if p.grad is None else p.grad.numpy()
        same(own.grad if own.grad is not None else np.zeros(own.shape), expected, name)
    after = mine.state_dict()
    for name, value in theirs.state_dict().items():  # running averages moved alike
        np.testing.assert_allclose(after[name], value.numpy(), rtol=1e-10, err_msg=name)
