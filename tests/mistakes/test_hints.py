"""The table of hints: both sides of a line give the same, and every function that could uses it."""

import ast
import inspect
import pydoc
import re

import numpy as np
import pytest

import tinyattn as ta
import tinyattn.functional as F
from tests import ROOT
from tests.mistakes.page import PAGE, page
from tests.parity import torch
from tinyattn import graph, models, nn, optim
from tinyattn.engine import torch_hints
from tinyattn.engine.torch_hints import DIFFERENT, FUNCTIONS, KEYWORDS, METHODS, MODULES

TABLES = {
    "methods": METHODS,
    "keywords": KEYWORDS,
    "functions": FUNCTIONS,
    "different": DIFFERENT,
    "modules": MODULES,
}
LINES = [(table, name, hint) for table, lines in TABLES.items() for name, hint in lines.items()]
# lines whose sides are no values that could be compared
ONLY_SHOWN = {
    "retain_grad",
    "is_leaf",
    "grad_fn",
    "device",
    "cuda",
    "retain_graph",
    "num_warmup_steps",
    "ParameterList",
    "functional",
    "randn",
    "rand",
    "randint",
    "manual_seed",
    "autograd",
    "clip_grad_norm_",
    "lr_scheduler",
    "utils",
    "scatter_add",
    "amsgrad",
    "fused",
    "foreach",
    "maximize",
    "dtype",
    "batch_first",
    "edge_index",
    "input",
    "zero_",
    "fill_",
    "copy_",
    "add_",
    "sub_",
    "mul_",
    "a recurrent layer",
    "padded sequences",
    "gradients",
    "an entry of a Sequential",
}


def both_sides():
    """The names of the table, for PyTorch and for here, with the same values."""
    rng = np.random.default_rng(0)
    arrays = {
        "x": rng.normal(size=(2, 3)),
        "y": rng.normal(size=(2, 3)),
        "b": rng.normal(size=(2, 5, 4)),
        "s": np.array([[2.0, 1], [1, 3]]),
        "m": np.array([[True, False, True], [False, True, True]]),
        "i": np.array([[0, 2, 1], [1, 1, 0]]),
        "j": np.array([1, 0, 1]),
        "v": rng.normal(size=3),
        "keep": np.tri(5, dtype=bool),
        "hidden": ~np.tri(5, dtype=bool),
        "c": np.array([2, 0]),
        "padding": np.arange(5) >= np.array([[5], [3]]),
        "array": rng.normal(size=(2, 3)),
    }
    theirs = {n: torch.tensor(a) for n, a in arrays.items()} | {"torch": torch}
    theirs |= {"F": torch.nn.functional, "nn": torch.nn, "optim": torch.optim, "np": np}
    theirs["array"] = arrays["array"]
    theirs["later"] = torch.tensor(arrays["hidden"])
    ours = {n: ta.tensor(a) if a.dtype == np.float64 else a for n, a in arrays.items()}
    ours |= {"np": np, "ta": ta, "F": F, "nn": nn, "optim": optim, "graph": graph}
    options = {"dropout": 0.0, "batch_first": True, "dtype": torch.float64}
    peers = {
        "attention": (torch.nn.MultiheadAttention(4, 2, **options), nn.MultiheadAttention(4, 2)),
        "encoder": (
            torch.nn.TransformerEncoderLayer(4, 2, 8, **options),
            nn.TransformerEncoderLayer(4, 2, 8, 0.0),
        ),
        "decoder": (
            torch.nn.TransformerDecoderLayer(4, 2, 8, **options),
            nn.TransformerDecoderLayer(4, 2, 8, 0.0),
        ),
    }
    for name, (their, mine) in peers.items():
        mine.astype(np.float64).load_state_dict(their.state_dict())
        theirs[name], ours[name] = their, mine
    # the layers mean the opposite of the function: each side gets what it calls hidden
    theirs["hidden"] = theirs["later"]
    return theirs, ours


def as_array(value):
    value = value.detach() if isinstance(value, torch.Tensor) else value
    value = value.data if isinstance(value, ta.Tensor) else value
    return np.asarray(value)


@pytest.mark.filterwarnings("ignore::UserWarning:torch.*")
@pytest.mark.parametrize(("table", "name", "hint"), LINES, ids=[f"{t} {n}" for t, n, _ in LINES])
def test_both_sides_of_a_line_give_the_same(table, name, hint):
    if name in ONLY_SHOWN or table in ("modules", "optimizers"):
        ast.parse(hint.theirs), ast.parse(hint.ours)  # code it is, in any case
        return
    theirs, ours = both_sides()
    a, b = as_array(eval(hint.theirs, theirs)), as_array(eval(hint.ours, ours))
    assert a.shape == b.shape
    np.testing.assert_allclose(b, a, rtol=1e-6, equal_nan=True)


def test_hints_are_of_names_that_are_not_there():
    assert not [name for name in METHODS if hasattr(ta.Tensor, name)]
    assert not [name for name in MODULES if hasattr(nn.Linear(3, 2), name)]
    assert not {*MODULES} - {*dir(torch.nn.Module)}
    assert not [n for n in FUNCTIONS if n in ta.__all__]
    for module in (nn, F, optim):
        assert not [n for n in FUNCTIONS if n in vars(module)], module


def test_what_numpy_has_and_pytorch_calls_as_a_method_is_explained():
    """What changes a tensor in place has a _ at its end there."""
    x, asked = ta.tensor([1.0]), [f"{name}_" for name in torch_hints.IN_PLACE]
    assert not [name for name in asked if not hasattr(torch.Tensor, name)]
    asked += [n for n in dir(torch.Tensor) if isinstance(getattr(np, n, None), np.ufunc)]
    asked = [name for name in asked if not hasattr(x, name)]
    assert len(asked) > 90
    for name in asked:
        with pytest.raises(AttributeError, match=r": (write np\.|PyTorch's|operations return new)"):
            getattr(x, name)


def test_an_explained_name_is_not_there():
    x = ta.nn.Parameter([1.0])
    assert not hasattr(x, "view") and getattr(x, "to", None) is None
    assert {"sum", "grad", "data", "__add__", "__init__"} < set(dir(x))
    assert not {"view", "sinh", "add_"} & set(dir(x))
    names = set(dir(nn.Linear(3, 2)))
    assert {"weight", "in_features", "astype"} < names and not {*MODULES} & names
    with pytest.raises(AttributeError) as found:
        x.clone()
    assert (found.value.name, found.value.obj) == ("clone", x)
    text = pydoc.render_doc(ta.Tensor, renderer=pydoc.plaintext)
    assert text.index("PyTorch's x.view(3, 2) is x.reshape(3, 2) here") > text.index("swapaxes(")


@pytest.mark.parametrize("name", torch_hints.SCIPY)
def test_functions_of_scipy_are_named_as_they_are_called_here(name):
    special, x = pytest.importorskip("scipy.special"), np.array([0.5, 2.0])
    hint = re.escape(torch_hints.SCIPY[name])
    with pytest.raises(TypeError, match=rf"^{name} has no .* write {hint}"):
        getattr(special, name)(ta.tensor(x))
    found = eval(torch_hints.SCIPY[name], {"F": F, "x": ta.tensor(x)})
    np.testing.assert_allclose(found.data, getattr(special, name)(x), rtol=1e-6)


def test_methods_of_functions_are_replaced_by_what_gives_the_same():
    a, i, axis = np.arange(3.0), [0, 2, 2], 0
    names = {"np": np, "graph": graph, "a": a, "i": i, "axis": axis, "x": ta.tensor(a + 1)}
    for name, ours in torch_hints.OF_FUNCTIONS.items():
        function, method = name.split(".")
        f, expected = getattr(getattr(np, function), method), a.copy()
        if method == "at":
            f(expected, i, a + 1)
        else:
            expected = f(a + 1, axis)
        np.testing.assert_allclose(eval(ours, names).data, expected, err_msg=name)


def functions():
    """What is public, and takes an axis: PyTorch calls it dim."""
    for module in (F, graph, nn, models):
        for name in module.__all__:
            f = getattr(module, name)
            if not callable(f) or f is nn.Module:
                continue
            try:
                parameters = inspect.signature(f).parameters
            except ValueError:
                continue
            for theirs, here in (
                ("dim", "axis"),
                ("keepdim", "keepdims"),
                ("attn_mask", "mask"),
                ("is_causal", "causal"),
            ):
                if here in parameters and theirs not in parameters:
                    yield f"{module.__name__}.{name}", f, theirs
    for name in (
        "sum",
        "mean",
        "max",
        "min",
        "prod",
        "var",
        "std",
        "cumsum",
        "all",
        "any",
        "argmax",
        "squeeze",
        "repeat",
        "sort",
    ):
        yield f"Tensor.{name}", getattr(ta.tensor([1.0]), name), "dim"


FOUND = list(functions())


@pytest.mark.parametrize(("name", "f", "keyword"), FOUND, ids=[f"{n} {k}" for n, _, k in FOUND])
def test_every_function_explains_the_other_name(name, f, keyword):
    with pytest.raises(TypeError, match=rf"takes no {keyword}=: PyTorch's"):
        f(**{keyword: 1})


def test_other_errors_stay_what_they_are():
    with pytest.raises(TypeError, match=r"softmax takes no axes=: did you mean axis=\?"):
        F.softmax(np.ones(3), axes=0)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        F.softmax()

    @torch_hints.with_torch_hints
    def f(g):
        return g(dim=1)

    with pytest.raises(TypeError, match=r"<lambda>\(\) got an unexpected"):
        f(g=lambda: 0)
    assert torch_hints.without_hints(f).__name__ == "f" and torch_hints.without_hints(f) is not f
    assert torch_hints.without_hints(len) is len


def test_the_page_is_the_one_of_the_table():
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.mistakes.page"
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "lectures/from_pytorch.md" in readme
