"""einops on Tensors, with the installed library: NumPy's values, and gradients."""

import subprocess
import sys

import numpy as np
import pytest

from tests import ROOT
from tinyattn import Tensor, nn
from tinyattn.check import gradcheck

einops = pytest.importorskip("einops")
X = np.random.default_rng(0).normal(size=(2, 6, 4))

CALLS = {
    "rearrange": lambda x: einops.rearrange(x, "b (h t) d -> b t (h d)", h=2),
    "transpose": lambda x: einops.rearrange(x, "b t d -> d b t"),
    "new axes": lambda x: einops.rearrange(x, "b t d -> b 1 t () d"),
    "of a list": lambda x: einops.rearrange([x, 2 * x], "n b t d -> b (n t) d"),
    "sum": lambda x: einops.reduce(x, "b t d -> b d", "sum"),
    "mean": lambda x: einops.reduce(x, "b (t two) d -> b t", "mean", two=2),
    "max": lambda x: einops.reduce(x, "b t d -> t", "max"),
    "min": lambda x: einops.reduce(x, "b t d ->", "min"),
    "prod": lambda x: einops.reduce(x, "b t d -> b t 1", "prod"),
    "repeat": lambda x: einops.repeat(x, "b t d -> b (t copies) d", copies=3),
    "repeat a new axis": lambda x: einops.repeat(x, "b t d -> b n t d", n=2),
    "einsum": lambda x: einops.einsum(x, x, "b query d, b key d -> b query key"),
    "pack": lambda x: einops.pack([x, x[:, 0]], "b * d")[0],
    "unpack": lambda x: einops.unpack(x, [[2], [4]], "b * d")[1],
}


@pytest.mark.parametrize("name", CALLS)
def test_values_and_gradients(name):
    f = CALLS[name]
    y = f(Tensor(X))
    assert isinstance(y, Tensor)
    np.testing.assert_allclose(y.numpy(), f(X), rtol=1e-14, atol=1e-14)
    report = gradcheck(f, X, order=2)
    assert report, report


def test_parameters_shapes_and_arrays():
    w = nn.Parameter(np.ones((2, 3)))
    assert einops.rearrange(w, "i j -> j i").requires_grad
    assert einops.parse_shape(w, "rows columns") == {"rows": 2, "columns": 3}
    assert isinstance(einops.asnumpy(Tensor(X)), np.ndarray)
    assert isinstance(einops.rearrange(X, "b t d -> b d t"), np.ndarray)
    with pytest.raises(einops.EinopsError):
        einops.rearrange(w, "i j k -> j i k")


@pytest.mark.parametrize("first", ["einops", "tinyattn"])
def test_whichever_is_imported_first(first):
    program = f"import {first}, einops, sys; before = len(sys.meta_path)\n" + (
        "import tinyattn as ta, numpy as np\n"
        "x = ta.tensor(np.ones((2, 3)), requires_grad=True)\n"
        "y = einops.rearrange(x, 'a b -> (b a)')\n"
        "assert y.shape == (6,) and y.requires_grad\n"
        "assert not any('RegisterOnImport' in type(f).__name__ for f in sys.meta_path)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)


def test_nothing_happens_without_einops():
    program = "import tinyattn, sys; assert 'einops' not in sys.modules; import numpy.ma"
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)
