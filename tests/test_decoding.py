"""One token at a time: the compiled layers against the same layers operation by operation."""

import numpy as np
import pytest

import tinyattn as ta
from tests.machine import same_bits_on_any_threads
from tinyattn import kernels, nn
from tinyattn.models import GPT, Llama
from tinyattn.models.llama import LlamaBlock
from tinyattn.nn import decoding

V, T = 13, 9
needs_numba = pytest.mark.skipif(kernels.numba is None, reason="without Numba nothing is compiled")


def gpt(D, H):
    return GPT(V, D, H, 2, 40, rng=0)


def llama(D, H, G, bias=False):
    model = Llama(V, D, H, G, 2, 2 * D + 3, rng=0)
    for layer in model.layers if bias else []:
        layer.self_attn = nn.GroupedQueryAttention(
            D, H, G, layer.self_attn.rotary, bias=True, rng=1
        )
        layer.mlp = nn.SwiGLU(D, 2 * D + 3, bias=True, rng=2)
    return model


def random_weights(model):
    """The model with weights and biases that all matter."""
    rng = np.random.default_rng(1)
    for p in model.parameters():
        p.data = p.data + rng.normal(0, 0.3, p.shape).astype(p.dtype)
    return model.eval()


def token_by_token(model, ids, lengths=None):
    """Logits [B, T, V] of tokens one by one, behind a start of which lengths[b] tokens count."""
    found, cache = [], model.empty_cache()
    with ta.no_grad():
        if lengths is not None:
            model(np.tile(np.arange(6) % V, (len(ids), 1)), cache)
            for layer in cache:
                layer.keep(lengths)
        for t in range(ids.shape[1]):
            found.append(model(ids[:, t : t + 1], cache).data[:, 0])
    return np.stack(found, axis=1), cache


@pytest.fixture
def compiled(monkeypatch):
    """The names of the compiled layers that ran, one by one."""
    from tinyattn.kernels import writing

    names = []
    for name in ("encoder_layer", "llama_block"):
        run = getattr(writing, name)
        monkeypatch.setattr(writing, name, lambda *a, n=name, run=run: names.append(n) or run(*a))
    return names


MODELS = {
    "GPT": lambda: gpt(24, 3),
    "GPT, heads of 1": lambda: gpt(5, 5),
    "GPT, odd heads": lambda: gpt(33, 3),
    "GPT, wide": lambda: gpt(160, 2),
    "Llama": lambda: llama(24, 4, 2),
    "Llama, one head with keys": lambda: llama(30, 5, 1),
    "Llama, biases": lambda: llama(34, 1, 1, bias=True),
    "Llama, wide": lambda: llama(192, 6, 3),
}  # fmt: skip


@needs_numba
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("B", [1, 3, 24])
def test_a_compiled_layer_is_the_layer(make, B, compiled):
    model = random_weights(make())
    ids = np.random.default_rng(2).integers(V, size=(B, T))
    ragged = np.random.default_rng(3).integers(1, 7, B)
    for lengths in (None, np.full(B, 6), ragged):
        compiled.clear()
        found, cache = token_by_token(model, ids, lengths)
        assert len(compiled) == 2 * T
        expected, plain = token_by_token(model.astype(np.float64), ids, lengths)
        model.astype(np.float32)
        scale = np.abs(expected).max()  # float32, through two layers
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 * scale)
        for a, b in zip(cache, plain, strict=True):
            assert (a.lengths == b.lengths).all()
            assert (a.shortest, a.longest) == (b.shortest, b.longest)
            for row, n in enumerate(a.lengths):
                for mine, other in ((a.k, b.k), (a.v, b.v)):
                    np.testing.assert_allclose(mine[row, :, :n], other[row, :, :n], atol=1e-4)


@needs_numba
@pytest.mark.parametrize("make", [lambda: gpt(256, 4), lambda: llama(256, 4, 2)],
                         ids=["GPT", "Llama"])  # fmt: skip
def test_the_same_bits_on_any_number_of_threads(make):
    model, ids = random_weights(make()), np.zeros((5, 4), int)
    same_bits_on_any_threads(lambda: [token_by_token(model, ids)[0]])


@needs_numba
def test_what_is_compiled(compiled):
    few, many = np.zeros((decoding.FEW, 1), int), np.zeros((decoding.FEW + 1, 1), int)
    token_by_token(gpt(24, 3).eval(), few)
    assert compiled == ["encoder_layer"] * 2
    compiled.clear()
    token_by_token(gpt(24, 3).eval(), many)
    token_by_token(gpt(24, 3).astype(np.float64).eval(), few)
    mixed = gpt(24, 3).eval()
    for layer in mixed.blocks.layers:
        layer.linear1.weight.data = layer.linear1.weight.data.astype(np.float64)
    token_by_token(mixed, few)
    assert compiled == []


def layer(**options):
    options = {"activation": "gelu", "norm_first": True} | options
    return nn.TransformerEncoderLayer(24, 3, 48, 0.0, rng=0, **options).eval()


@needs_numba
@pytest.mark.parametrize("options", [{}, {"norm_first": False}, {"activation": "relu"},
                                     {"bias": False}], ids=str)  # fmt: skip
def test_every_layer_writes_what_it_sees_at_once(options, compiled):
    part = layer(**options)
    x = np.random.default_rng(0).standard_normal((2, T, 24)).astype(np.float32)
    with ta.no_grad():
        whole, cache = part(ta.tensor(x), causal=True).data, nn.KeyValueCache()
        found = [part(ta.tensor(x[:, t : t + 1]), cache=cache).data for t in range(T)]
    np.testing.assert_allclose(np.concatenate(found, axis=1), whole, rtol=0, atol=1e-5)
    assert len(compiled) == (T if options in ({}, {"bias": False}) else 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pairs_of_rotary_positions_are_those_of_the_block(dtype):
    """The fast ways turn features in halves; a block with other pairs must not take them."""
    block = LlamaBlock(24, 3, 3, 48, nn.InterleavedRotaryPositions(8), 1e-5, rng=0).astype(dtype)
    x = np.random.default_rng(0).standard_normal((2, T, 24)).astype(dtype)
    with ta.no_grad():
        whole, cache = block(ta.tensor(x)).data, nn.KeyValueCache()
        found = [block(ta.tensor(x[:, t : t + 1]), cache).data for t in range(T)]
    np.testing.assert_allclose(np.concatenate(found, axis=1), whole, rtol=0, atol=1e-5)
