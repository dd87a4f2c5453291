"""Lecture 12's worked study: its trained network computes the same in PyTorch Geometric."""

import ast
import builtins
import contextlib
import io

import numpy as np
import pytest

from coursekit.build import text
from tests import ROOT
from tinyattn.course import project, weights
from tinyattn.io import load

LECTURE = project.find(ROOT, "12")
# what the first cell of the lecture imports, as far as these cells need it
IMPORTS = """
import numpy as np
import tinyattn as ta
import tinyattn.functional as F
from tinyattn import models, nn
from tinyattn.data.showers import select
import warnings
"""
NAMES = {"shower_inputs", "Finder", "in_pytorch", "search_for_pytorch", "both_networks"}


@pytest.fixture(scope="module")
def lecture():
    """The cells of the lecture that make both networks, and its trained network."""
    from tinyattn import data

    found = {}
    exec(IMPORTS, found)
    for tree in statements():
        if getattr(tree, "name", None) in NAMES:
            exec(compile(ast.Module([tree], []), str(LECTURE.source), "exec"), found)
    assert NAMES <= set(found)
    found["finder"] = found["Finder"](np.random.default_rng(0))
    shipped = weights.unpacked(load(ROOT / project.WEIGHTS / "12_showers_1.safetensors"))
    found["finder"].load_state_dict(
        {n.removeprefix("module."): a for n, a in shipped.items() if n.startswith("module.")}
    )
    found["shower_test"] = data.showers(2, rng=3432, objects=(2, 8))
    return found


def statements():
    for cell in text.read_source(LECTURE).cells:
        if cell["cell_type"] == "code":
            yield from ast.parse(cell["source"]).body


def said(lecture):
    """What the last cell of the study prints."""
    (comparison,) = [t for t in statements() if isinstance(t, ast.Try)]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(ast.Module([comparison], []), str(LECTURE.source), "exec"), lecture)
    return out.getvalue()


@pytest.fixture
def peers(monkeypatch):
    """PyTorch Geometric; the search that the lecture brings for it is taken back afterwards."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    import torch_geometric.typing

    if not torch_geometric.typing.WITH_KNN:
        monkeypatch.setattr(torch_geometric.typing, "WITH_KNN", False)
        monkeypatch.setattr(torch.ops.pyg, "knn", None, raising=False)


def test_the_trained_network_says_the_same_in_pytorch(lecture, peers):
    network = lecture["finder"].network
    for e in range(2):
        event = lecture["select"](lecture["shower_test"], e)
        ours, theirs = lecture["both_networks"](network, event)
        assert ours.shape == theirs.shape and ours.shape[1] == 4
        assert np.abs(ours).max() > 1  # a trained network has something to say
        # float32, and sums in another order: five digits of the largest output
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5 * np.abs(ours).max())
    assert "4 outputs each; largest output" in said(lecture)


def test_another_weight_would_be_seen(lecture, peers):
    """The comparison is sharp: with one bias changed the two say different things."""
    both, network = lecture["both_networks"], lecture["finder"].network
    event = lecture["select"](lecture["shower_test"], 0)
    ours = both(network, event)[0]
    state = {n: np.array(v) for n, v in network.state_dict().items()}
    state["blocks.1.gravnet.lin_h.bias"] += 0.1
    other = type(network)(6, 4, 3, 32, 32, propagate_dimensions=12, k=24, hidden=40)
    other.load_state_dict(state)
    assert np.abs(both(other, event)[1] - ours).max() > 1e-3


def test_without_pytorch_the_lecture_says_what_is_missing(lecture, monkeypatch):
    def refusing(name, *rest, **options):
        if name.startswith("torch"):
            raise ImportError(f"No module named '{name}'")
        return real(name, *rest, **options)

    real = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", refusing)
    assert "PyTorch and PyTorch Geometric are needed" in said(lecture)
