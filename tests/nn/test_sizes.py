"""Every size of every constructor: negative, zero, fractional or a text is refused by name."""

import importlib
import inspect
import pkgutil

import numpy as np
import pytest

from tinyattn import graph, models, nn
from tinyattn.models.captioner_regions import CaptionerCells, Regions

# what the parameters may be called that are no sizes
OTHERS = {
    "activation",
    "add_self_loops",
    "affine",
    "aggr",
    "aggregate",
    "alpha",
    "approximate",
    "astromer",
    "attend",
    "delta",
    "g",
    "lambdas",
    "periods",
    "share",
    "axis",
    "base",
    "bert",
    "bias",
    "bidirectional",
    "concat",
    "decoder_layer",
    "dropout",
    "elementwise_affine",
    "encoder_layer",
    "end_dim",
    "eps",
    "ignore_index",
    "impl",
    "label_smoothing",
    "layer_norm_eps",
    "modules",
    "momentum",
    "negative_slope",
    "nonlinearity",
    "norm",
    "norm_first",
    "p",
    "pad",
    "padding_idx",
    "phi",
    "pool",
    "pos_weight",
    "reduction",
    "regions",
    "rho",
    "rng",
    "rotary",
    "score",
    "sharpness",
    "start_dim",
    "std",
    "tied_head",
    "track_running_stats",
    "weight",
    "weights",
    "edge_model",
    "node_model",
    "global_model",
    "batch_first",
    "strict",
}
MAY_BE_ZERO = {"padding"}  # all others begin at 1

# arguments that make a small one of each; what is not told is 4
TOLD = {
    "dropout": 0.0,
    "sizes": [4, 4],
    "phi": nn.Linear(4, 4),
    "rho": nn.Linear(4, 4),
    "encoder_layer": nn.TransformerEncoderLayer(4, 2),
    "activation": "relu",
    "rotary": None,
    "decoder_layer": nn.TransformerDecoderLayer(4, 2),
    "nn": nn.Linear(8, 4),
    "rng": 0,
    "eps": 1e-5,
    "bert": models.BERT(4, 4, 2, 1),
    "regions": Regions(1, (4,), 4),
    "score": nn.Linear(4, 4),
    "hidden": 4,
    "widths": (4, 4),
    "num_heads": 2,
    "num_kv_heads": 2,
    "share": 0.5,
    "dims": (4, 4),
    "astromer": models.Astromer(4, 2, 1, 4),
}
OF_CLASS = {
    nn.MLP: {"activation": nn.ReLU},
    models.ParticleNet: {"widths": ((4, 4), (4, 4))},
    models.DGCNN: {"hidden": (4, 4)},
    models.DGCNNSegmentation: {"hidden": (4, 4)},
}


def constructors():
    """{class: names of its sizes} of all modules of nn, graph and models."""
    found = {}
    for package in (nn, graph, models):
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for name, value in vars(importlib.import_module(info.name)).items():
                here = inspect.isclass(value) and value.__module__ == info.name
                if here and issubclass(value, nn.Module) and not name.startswith("_"):
                    parameters = [
                        p
                        for p in list(inspect.signature(value).parameters.values())
                        if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
                    ]
                    if parameters:
                        found[value] = parameters
    return found


CONSTRUCTORS = constructors()
NOT_A_SIZE = {(graph.EdgeConv, "nn"), (graph.DynamicEdgeConv, "nn")}
CASES = [
    (c, p.name)
    for c, parameters in CONSTRUCTORS.items()
    for p in parameters
    if p.name not in OTHERS and (c, p.name) not in NOT_A_SIZE
]


def arguments(cls):
    told = TOLD | OF_CLASS.get(cls, {})
    required = [
        p
        for p in CONSTRUCTORS[cls]
        if p.default is p.empty
        or p.name in ("widths", "hidden", "rng")
        or p.name in OF_CLASS.get(cls, {})
    ]
    return {p.name: told.get(p.name, 4) for p in required}


@pytest.mark.parametrize("cls", CONSTRUCTORS, ids=lambda c: c.__name__)
def test_the_arguments_of_these_tests_are_right(cls):
    try:
        cls(**arguments(cls))
    except Exception as error:
        pytest.fail(
            f"{cls.__name__}(**{arguments(cls)}) raises {type(error).__name__}: {error}. Say in "
            f"TOLD or OF_CLASS here with which arguments a small one is made",
            pytrace=False,
        )


@pytest.mark.parametrize(("cls", "name"), CASES, ids=lambda x: getattr(x, "__name__", x))
def test_sizes_that_are_none_are_refused_with_a_sentence(cls, name):
    usual = arguments(cls).get(name, 4)
    default = inspect.signature(cls).parameters[name].default
    optional = default is None or name == "num_kv_heads"
    for wrong in (-1, 0, 1.5, 2.0, "4", np.nan, True, *[None] * (not optional)):
        if wrong == 0 and wrong is not False and name in MAY_BE_ZERO:
            continue
        value = _in_place(usual, wrong)
        said = _said_about(cls, name, value)
        words = "whole numbers" if isinstance(value, tuple | list) else "a whole number"
        assert f"must be {words} of at least" in said and repr(wrong) in said, (
            f"{cls.__name__}({name}={wrong!r}) gave: {said}. Begin __init__ with "
            f"check_sizes(self, {name}={name}, ...); if {name} is no size, add it to OTHERS here"
        )


def _said_about(cls, name, value):
    """What a constructor says when it gets this value for one of its arguments."""
    try:
        cls(**arguments(cls) | {name: value})
    except (ValueError, TypeError) as error:
        return str(error)
    return "no error"


def _in_place(usual, wrong):
    """`wrong` in place of the first of several sizes."""
    if isinstance(usual, tuple | list):
        return type(usual)([_in_place(usual[0], wrong), *usual[1:]])
    return wrong


def test_a_convolution_takes_the_padding_by_name():
    assert nn.Conv1d(1, 1, 3, padding="same")(np.ones((1, 1, 5), np.float32)).shape == (1, 1, 5)
    assert nn.Conv2d(1, 1, 3, padding="valid").padding == "valid"


def test_numpy_integers_are_sizes():
    assert nn.Linear(np.int64(3), np.int32(2))(np.ones((1, 3), np.float32)).shape == (1, 2)
    assert nn.LayerNorm(np.int64(3)).normalized_shape == (3,)
    assert CaptionerCells(1, np.int64(4), np.int64(2), np.int64(4)).size == 2
