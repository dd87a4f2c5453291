"""Mistakes with compiled and quantized models: the error that each must raise."""

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import inference, models, nn


@pytest.mark.parametrize("cls", [inference.QuantizedLinear, inference.QuantizedEmbedding])
def test_a_quantized_layer_is_made_of_a_quantized_matrix(cls):
    with pytest.raises(TypeError, match=rf"{cls.__name__}: blocks must be a QuantizedMatrix"):
        cls(np.zeros((3, 64), np.float32))


def test_only_a_module_is_compiled():
    with pytest.raises(TypeError, match=r"model must be an nn.Module, got builtin"):
        inference.compile(print)
    with pytest.raises(TypeError, match=r"got the class Linear. Make the module first, and then"):
        inference.compile(nn.Linear)


def test_a_cache_of_other_sizes_names_both():
    def block(d, heads):
        return nn.TransformerEncoderLayer(d, heads, 2 * d, 0.0, "gelu", norm_first=True, rng=0)

    cache = nn.KeyValueCache()
    own, other = (inference.compile(block(*sizes).eval()) for sizes in ((24, 3), (48, 4)))
    own(ta.tensor(np.ones((2, 1, 24), np.float32)), cache=cache)
    with pytest.raises(ValueError, match=r"is \(3, 8, 8\) in the cache, got \(4, 12, 12\)"):
        other(ta.tensor(np.ones((2, 1, 48), np.float32)), cache=cache)


def test_a_subclass_is_named_with_its_article():
    own = type("OwnLinear", (nn.Linear,), {})
    with pytest.raises(inference.CannotCompile, match="is an OwnLinear, a subclass of Linear"):
        inference.compile(own(2, 2))


def test_a_changed_layer_is_named_with_what_was_changed(monkeypatch):
    model = models.BERT(8, 16, 2, 2, rng=0).eval()
    linear = model.encoder.layers[1].linear2
    linear.forward = lambda x: 0 * x
    with pytest.raises(
        inference.CannotCompile,
        match=r"encoder.layers.1.linear2 has a forward of its own, set on this Linear",
    ):
        inference.compile(model)
    del linear.forward
    layer = model.encoder.layers[0]
    layer._self_attention = layer._self_attention
    with pytest.raises(
        inference.CannotCompile, match="encoder.layers.0 has a _self_attention of its own"
    ):
        inference.compile(model)
    del layer._self_attention
    monkeypatch.setattr(nn.LayerNorm, "__call__", nn.LayerNorm.forward, raising=False)
    with pytest.raises(inference.CannotCompile, match="whose __call__ was replaced on the class"):
        inference.compile(model)
