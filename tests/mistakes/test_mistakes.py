"""Each mistake ends in the error that says what was expected, what came, and what to do."""

import re

import numpy as np
import pytest

import tinyattn as ta
import tinyattn.functional as F
from tests.mistakes import layers, tensors, training
from tinyattn import check, data, graph, metrics, models, nn, optim
from tinyattn.training import fit  # noqa: F401 - `ta.training`

AREAS = {"tensors": tensors, "layers": layers, "training": training}
CASES = [(area, *m) for area, module in AREAS.items() for m in module.MISTAKES]


def what_is_there(tmp_path):
    """The names that the programs use, made anew for each."""
    rng = np.random.default_rng(0)
    names = {
        "np": np,
        "ta": ta,
        "F": F,
        "nn": nn,
        "optim": optim,
        "graph": graph,
        "models": models,
        "data": data,
        "check": check,
        "metrics": metrics,
        "training": ta.training,
    }
    names["a"] = rng.normal(size=(2, 3))
    names["x"] = ta.tensor(rng.normal(size=(2, 3)), requires_grad=True)
    names["w"] = ta.tensor(rng.normal(size=(4, 3)), requires_grad=True)
    names["ids"] = np.arange(10).reshape(2, 5)
    names["tokens"] = ta.tensor(rng.normal(size=(2, 5, 8)).astype(np.float32))
    names["model"] = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    names["p"] = list(names["model"].parameters())
    names["loss"] = names["x"].sum()
    names["g"] = graph.Graph([0, 1], [1, 2], 3)
    names["points"] = rng.normal(size=(6, 2))
    names["path"] = tmp_path / "weights.safetensors"
    return names


@pytest.mark.parametrize(
    ("area", "program", "error", "facts"),
    [(a, p, e, f) for a, p, e, *f in CASES],
    ids=[program for _, program, *_ in CASES],
)
def test_the_error_says_what_is_wrong(area, program, error, facts, tmp_path):
    space = what_is_there(tmp_path)
    if "torch" in program:
        space["torch"] = pytest.importorskip("torch")
    with pytest.raises(error) as caught:
        exec(program, space)
    said = str(caught.value.__cause__ or caught.value)
    for fact in facts:
        assert re.search(fact, said), f"{fact!r} is missing in: {said}"
    assert len(said) < 600, "who reads that?"


def test_how_many_mistakes_are_tried():
    assert len({program for _, program, *_ in CASES}) == len(CASES) >= 150
    print(
        f"\n{len(CASES)} mistakes: "
        + ", ".join(f"{len(module.MISTAKES)} in {area}" for area, module in AREAS.items())
    )
