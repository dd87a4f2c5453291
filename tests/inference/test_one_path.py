"""A layer's `forward` is the only thing that computes it: with gradients, without, in `generate`.

Each layer class of nn, graph and models is changed in three ways: `forward` replaced on the class,
replaced on the layer alone, overridden in a subclass. Whatever holds such a layer must then give
what the changed layer gives, in every mode. The layers and their inputs are those of `tests.cases`.
"""

import importlib
import inspect
import pkgutil
from copy import deepcopy
from functools import cache, partial

import numpy as np
import pytest

import tests.cases.captioner
import tests.cases.graph
import tests.cases.models
import tests.cases.points
import tests.cases.recurrent
import tinyattn as ta
from tests.cases.layers import CASES, apart, normal
from tinyattn import Tensor, graph, inference, models, nn
from tinyattn.models.captioner_attention import Softmax
from tinyattn.models.generation import prefill

V = 13
IDS = np.random.default_rng(0).integers(V, size=(2, 5))

# classes that only hold other layers and are called by none, or have no forward of their own
HOLDERS = {nn.Module, nn.ModuleDict, nn.ModuleList}
# layers that a model's forward does not call: BERT's pooler has a method of its own, and Seq2Seq
# calls the two halves of its Transformer one by one, as it must when it generates
NOT_IN_FORWARD = {
    (models.BERT, "pooler"),
    (models.MaskedWords, "bert.pooler"),
    (models.Seq2Seq, "transformer"),
}


def layer_classes():
    """All classes of layers and models in nn, graph and models that can be made."""
    found = set()
    for package in (nn, graph, models):
        for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            module = importlib.import_module(info.name)
            found |= {
                c
                for _, c in inspect.getmembers(module, inspect.isclass)
                if issubclass(c, nn.Module)
                and c.__module__ == info.name
                and not c.__name__.startswith("_")
            }
    return sorted(found - HOLDERS, key=lambda c: (c.__module__, c.__name__))


def further_examples():
    """(module, inputs, options) of layers that `tests.cases` has in another form, or not at all."""
    net = models.ParticleNet(3, 2, 2, ((3, 3), (3,)), 3, 0.0, rng=0)
    jets, mask = apart(2, 4, 3), np.array([[True] * 4, [True, True, False, False]])
    yield net, (tests.cases.points.CLOUD[:4] + np.zeros((2, 1, 1)), jets, mask), {}
    yield nn.Dropout(0.5), (normal(2, 3),), {}
    yield models.SigmoidGate(), (normal(2, 3),), {}
    yield Softmax(), (normal(2, 3),), {}
    yield nn.MaxPool1d(2), (normal(1, 2, 6),), {}
    gelu = {"activation": "gelu", "rng": 0}
    for norm_first in (False, True):  # of the kinds that are compiled
        layer = nn.TransformerEncoderLayer(8, 2, 12, 0.0, norm_first=norm_first, **gelu)
        yield nn.TransformerEncoder(layer, 2, nn.LayerNorm(8)), (normal(2, 5, 8),), {"causal": True}
    scores, labels = normal(3, 4), np.array([0, 3, 1])
    yield nn.CrossEntropyLoss(), (scores, labels), {}
    yield nn.BCEWithLogitsLoss(), (scores, (scores > 0).astype(float)), {}
    for cell in (nn.RNNCell, nn.GRUCell, nn.LSTMCell):
        yield cell(3, 2, rng=0), (normal(2, 3),), {}


@cache
def examples():
    found = []
    for cases in CASES.values():
        for _, f, inputs, _ in cases:
            module, options = (f.func, f.keywords) if isinstance(f, partial) else (f, {})
            if isinstance(module, nn.Module):
                found.append((module, inputs, options))
    found += further_examples()
    return [
        (deepcopy(module).astype(np.float64).eval(), [tensor_of(x) for x in inputs], options)
        for module, inputs, options in found
    ]


@pytest.mark.parametrize("package", [nn, models], ids=["nn", "models"])
def test_every_forward_says_its_shapes(package):
    """Those of graph as well, as soon as they have a docstring."""
    for cls in layer_classes():
        if cls.__module__.startswith(package.__name__):
            text = inspect.getdoc(cls.forward) or ""
            assert text, f"{cls.__name__}.forward has no docstring: say its shapes and what raises"
            assert "[" in text or "shape" in text or cls is nn.Sequential, (
                f"the docstring of {cls.__name__}.forward names no shape, such as y [B, d]"
            )


def tensor_of(x):
    return Tensor(x) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x


def examples_of(cls):
    """Examples in which a layer of this class takes part, each to be changed at will."""
    found = [e for e in examples() if any(type(m) is cls for m in e[0].modules())]
    assert found, (
        f"no example holds a {cls.__name__}: add one to tests/cases with layer(...), or to "
        f"further_examples() in this file"
    )
    own = [e for e in found if type(e[0]) is cls][:2]
    return [deepcopy(e) for e in own + [e for e in found if type(e[0]) is not cls]]


def changed(output):
    """An output of a layer that nobody could mistake for the right one."""
    if isinstance(output, tuple | list):
        return type(output)(map(changed, output))
    if isinstance(output, Tensor) and output.dtype.kind == "f":
        return output * 1.5 + 0.25
    return output


def changed_forward(inner, calls):
    """A forward around another one; `calls` gets the layer each time."""

    def forward(self, *inputs, **options):
        calls.append(self)
        return changed(inner(self, *inputs, **options))

    return forward


WAYS = "on the class", "on the layer", "in a subclass"


def change(way, cls, module, calls, monkeypatch):
    """Change all layers of a class inside a module, in one of three ways; returns these layers."""
    layers = [m for m in module.modules() if type(m) is cls]
    forward = changed_forward(cls.forward, calls)
    if way == "on the class":
        monkeypatch.setattr(cls, "forward", forward)
    for layer in layers:
        if way == "on the layer":
            layer.forward = partial(forward, layer)
        if way == "in a subclass":
            layer.__class__ = type(f"Own{cls.__name__}", (cls,), {"forward": forward})
    return layers


def numbers(output):
    """All numbers of an output in one row."""
    if isinstance(output, tuple | list):
        return np.concatenate([numbers(o) for o in output]) if output else np.zeros(0)
    return np.ravel(np.asarray(output.data if isinstance(output, Tensor) else 0, np.float64))


def same(a, b):
    return a.shape == b.shape and np.allclose(a, b, rtol=1e-6, atol=1e-8, equal_nan=True)


def not_needed(module, inputs):
    """Layers inside a module that its forward has no use for."""
    inside = dict(module.named_modules())
    found = {id(inside[name]) for kind, name in NOT_IN_FORWARD if type(module) is kind}
    if type(module) is models.ParticleTransformer and (len(inputs) < 2 or inputs[1] is None):
        found |= {id(m) for m in module.pair_embed.modules()}  # without momenta there are no pairs
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cls", layer_classes(), ids=lambda c: f"{c.__module__[9:]}.{c.__name__}")
def test_a_changed_layer_computes(cls, way, monkeypatch):
    for module, inputs, options in examples_of(cls):
        with monkeypatch.context() as patch:
            before, calls = numbers(module(*inputs, **options)), []
            spare = not_needed(module, inputs)
            layers = change(way, cls, module, calls, patch)
            recorded = numbers(module(*inputs, **options))
            seen, calls[:] = list(map(id, calls)), []
            with ta.no_grad():
                silent = numbers(module(*inputs, **options))
            needed = {id(m) for m in layers} - spare
            assert needed <= set(seen), f"{module!r} computes a {cls.__name__} without calling it"
            assert seen == list(map(id, calls))
            assert same(recorded, silent)
            if needed and before.size and type(module) is cls:
                assert not same(recorded, before)


# ---------------------------------------------------------------- generation


def random_weights(model):
    rng = np.random.default_rng(1)
    for p in model.parameters():
        p.data = p.data + rng.normal(0, 0.3, p.shape).astype(p.dtype)
    return model.eval()


GENERATORS = {
    "GPT": lambda: random_weights(models.GPT(V, 24, 3, 2, 40, rng=0)),
    "Llama": lambda: random_weights(models.Llama(V, 24, 4, 2, 2, 40, rng=0)),
    "Llama with a head": lambda: random_weights(
        models.Llama(V, 24, 4, 2, 2, 40, tied_head=False, rng=0)
    ),
}


def classes_in(model):
    return {type(m) for m in model.modules()} - HOLDERS


def logits(model, compiled):
    """What `generate` draws from, for the prompts and some tokens behind them."""
    with ta.no_grad():
        step, state, tokens = prefill(model, list(IDS), compiled=compiled)
        found = []
        for _ in range(4):
            scores, state = step(tokens, state)
            found.append(scores.data)
            tokens = scores.data.argmax(axis=-1)
    return np.stack(found)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("name", "cls"),
    [
        (name, cls)
        for name, make in GENERATORS.items()
        for cls in sorted(classes_in(make()), key=lambda c: c.__name__)
    ],
)
def test_a_changed_layer_generates(name, cls, way, monkeypatch):
    model, calls = GENERATORS[name](), []
    is_model = cls is type(model)
    before = logits(model, compiled=True)
    change(way, cls, model, calls, monkeypatch)
    expected = logits(model, compiled=False)
    seen, calls[:] = list(map(id, calls)), []
    if seen:  # the model's own forward is not needed here
        assert not np.allclose(expected, before, atol=1e-3)
        with pytest.raises(inference.CannotCompile, match=cls.__name__):
            inference.compile(model)
    else:
        assert is_model
    np.testing.assert_array_equal(logits(model, compiled=True), expected)
    assert seen == list(map(id, calls))
    for options in ({"temperature": 0}, {"rng": 3}):
        compiled, modules = (model.generate(IDS, 12, compiled=c, **options) for c in (True, False))
        np.testing.assert_array_equal(compiled, modules)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cls", sorted(classes_in(models.BERT(V, 8, 2, 1)), key=str))
def test_a_changed_layer_reads_sentences(cls, way, monkeypatch):
    model, calls = random_weights(models.BERT(V, 24, 3, 2, rng=0)), []
    change(way, cls, model, calls, monkeypatch)
    keep = np.arange(5) < np.array([[5], [3]])
    expected = model.sentence_vectors(IDS, keep, compiled=False)
    seen, calls[:] = list(map(id, calls)), []
    np.testing.assert_array_equal(model.sentence_vectors(IDS, keep), expected)
    assert seen and seen == list(map(id, calls))
    with pytest.raises(inference.CannotCompile, match=cls.__name__):
        inference.compile(model)
