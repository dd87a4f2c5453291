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


def token_by_token(model, ids, lengths=None, start=None):
    """Logits [B, T, V] of tokens one by one, behind a start of which lengths[b] tokens count."""
    found, cache = [], model.empty_cache()
    with ta.no_grad():
        if lengths is not None:
            model(np.tile(np.arange(6) % V, (len(ids), 1)) if start is None else start, cache)
            for layer in cache:
                layer.keep(lengths)
        for t in range(ids.shape[1]):
            found.append(model(ids[:, t : t + 1], cache).data[:, 0])
    return np.stack(found, axis=1), cache


@pytest.fixture
def compiled(monkeypatch):
    """The names of the compiled layers that ran, one by one."""
    from tinyattn.kernels.fast import decode as writing

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
    ragged = np.random.default_rng(3).integers(0, 7, B)
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
@pytest.mark.parametrize("make", [lambda: GPT(V, 256, 4, 2, 120, rng=0), lambda: llama(256, 4, 2)],
                         ids=["GPT", "Llama"])  # fmt: skip
def test_behind_long_texts_on_any_number_of_threads(make):
    """So long that all threads share the attention, too; one text is empty."""
    model, lengths = random_weights(make()), np.array([110, 0, 70, 109, 1])
    ids, start = np.random.default_rng(4).integers(V, size=(5, 3)), np.arange(550).reshape(5, 110)
    same_bits_on_any_threads(lambda: [token_by_token(model, ids, lengths, start % V)[0]])
    found = token_by_token(model, ids, lengths, start % V)[0]
    expected = token_by_token(model.astype(np.float64), ids, lengths, start % V)[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 * np.abs(expected).max())


@needs_numba
def test_what_is_compiled(compiled):
    few, many = (
        np.zeros((decoding.MATVEC_ROWS, 1), int),
        np.zeros((decoding.MATVEC_ROWS + 1, 1), int),
    )
    token_by_token(gpt(24, 3).eval(), few)
    assert compiled == ["encoder_layer"] * 2
    compiled.clear()
    token_by_token(gpt(24, 3).eval(), many)
    token_by_token(gpt(24, 3).astype(np.float64).eval(), few)
    mixed = gpt(24, 3).eval()
    for layer in mixed.blocks.layers:
        layer.linear1.weight.data = layer.linear1.weight.data.astype(np.float64)
    token_by_token(mixed, few)
    frozen = gpt(24, 3).eval()
    for layer in frozen.blocks.layers:
        layer.linear1.weight.data.flags.writeable = False
    token_by_token(frozen, few)
    assert compiled == []


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_does_not_fit_is_refused_and_changes_nothing(dtype):
    """The kernels trust the sizes that they are given."""
    x = ta.tensor(np.ones((2, 1, 24), dtype))
    own, other = layer().astype(dtype), nn.TransformerEncoderLayer(
        48, 4, 48, 0.0, "gelu", norm_first=True, rng=0
    ).eval().astype(dtype)  # fmt: skip
    block = LlamaBlock(24, 3, 1, 48, nn.RotaryPositions(8), 1e-5, rng=0).astype(dtype)
    cache = nn.KeyValueCache()
    with ta.no_grad():
        for _ in range(3):
            own(x, cache=cache)
        known = cache.k.copy()
        with pytest.raises(
            ValueError, match=r"holds heads and features \(3, 8, 8\).*\(4, 12, 12\)"
        ):
            other(ta.tensor(np.ones((2, 1, 48), dtype)), cache=cache)
        with pytest.raises(ValueError, match=r"\(3, 8, 8\).*\(1, 8, 8\)"):
            block(x, cache)
        for wide in (16, 32):
            wrong = ta.tensor(np.ones((2, 1, wide), dtype))
            for part in (own, block):
                with pytest.raises(ValueError, match=str(wide)):
                    part(wrong, cache=nn.KeyValueCache())
            with pytest.raises(ValueError, match=str(wide)):
                own(wrong, cache=cache)  # what was found in the layer before fits no longer
    assert (cache.lengths == 3).all()
    assert (cache.shortest, cache.longest) == (3, 3)
    assert np.array_equal(cache.k, known)


@needs_numba
@pytest.mark.parametrize("make", [lambda: layer(), lambda: llama(24, 3, 1, bias=True).layers[0]],
                         ids=["encoder layer", "Llama block"])  # fmt: skip
def test_weights_that_change_between_two_tokens_count_from_then_on(make, compiled):
    """What was found in a layer is kept, but not the numbers."""
    part, x = make(), np.random.default_rng(0).standard_normal((2, 4, 24)).astype(np.float32)

    def write(cache, t):
        with ta.no_grad():
            return part(ta.tensor(x[:, t : t + 1]), cache=cache).data

    def copy_of(cache):
        """The same tokens, but one less, in a cache that knows nothing of the layer."""
        twin = nn.KeyValueCache()
        twin.append(cache.k[:, :, : cache.longest], cache.v[:, :, : cache.longest])
        return twin.keep(cache.lengths - 1)

    for p in part.parameters():
        first, kept = p.data, nn.KeyValueCache()
        write(kept, 0)
        p.data = first + np.float32(0.5)  # another array
        assert np.array_equal(write(kept, 1), write(copy_of(kept), 1))
        p[...] = p.data + 0.5  # in place, as an optimizer does
        assert np.array_equal(write(kept, 2), write(copy_of(kept), 2))
        p.data = first
    assert len(compiled) == 5 * len(list(part.parameters()))


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


class Doubled(nn.Linear):
    """A map of one's own, as LoRA would be."""

    def forward(self, x):
        return 2 * super().forward(x)


@pytest.mark.parametrize(
    "make", [lambda: gpt(24, 3), lambda: llama(24, 4, 2)], ids=["GPT", "Llama"]
)
def test_parts_of_ones_own_are_used(make):
    """The fast ways know the parts of a layer; others must be called."""
    ids = np.random.default_rng(0).integers(V, size=(2, T))
    for name in ("linear1", "linear2", "out_proj", "down_proj", "q_proj", "gate_proj"):
        model = random_weights(make())
        for part in list(model.modules()):
            if hasattr(part, name):
                own = Doubled(*getattr(part, name).weight.shape[::-1], bias=False, rng=1)
                setattr(part, name, own)
        with ta.no_grad():
            whole = model(ids).data
        found, _ = token_by_token(model, ids)
        np.testing.assert_allclose(found, whole, rtol=0, atol=2e-5 * np.abs(whole).max())


@pytest.mark.parametrize(
    "make", [lambda: gpt(24, 3), lambda: llama(24, 4, 2)], ids=["GPT", "Llama"]
)
def test_a_part_that_is_watched_is_called(make):
    """Whoever puts a function in the place of a part's forward wants to see each call of it."""
    seen, ids = [], np.random.default_rng(0).integers(V, size=(2, T))

    def watch(part):
        inner = part.forward
        part.forward = lambda *a, **options: seen.append(part) or inner(*a, **options)

    for name in ("linear1", "norm1", "self_attn", "down_proj", "input_layernorm"):
        model = random_weights(make())
        parts = [getattr(m, name) for m in model.modules() if hasattr(m, name)]
        for part in parts:
            watch(part)
        seen.clear()
        token_by_token(model, ids)
        assert seen == parts * T


class Tripled(nn.Module):
    """A network of one's own in the place of a SwiGLU."""

    def forward(self, x):
        return 3 * x


def test_a_network_of_ones_own_is_used():
    model, ids = random_weights(llama(24, 4, 2)), np.random.default_rng(0).integers(V, size=(2, T))
    for block in model.layers:
        block.mlp = Tripled()
    with ta.no_grad():
        whole = model(ids).data
    found, _ = token_by_token(model, ids)
    np.testing.assert_allclose(found, whole, rtol=0, atol=2e-5 * np.abs(whole).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pairs_of_rotary_positions_are_those_of_the_block(dtype):
    """The fast ways turn features in halves; a block with other pairs must not take them."""
    block = LlamaBlock(24, 3, 3, 48, nn.InterleavedRotaryPositions(8), 1e-5, rng=0).astype(dtype)
    x = np.random.default_rng(0).standard_normal((2, T, 24)).astype(dtype)
    with ta.no_grad():
        whole, cache = block(ta.tensor(x)).data, nn.KeyValueCache()
        found = [block(ta.tensor(x[:, t : t + 1]), cache).data for t in range(T)]
    np.testing.assert_allclose(np.concatenate(found, axis=1), whole, rtol=0, atol=1e-5)
