"""`inference.compile`: the same numbers as the modules, what it says of itself, what it notices."""

import numpy as np
import pytest

import tinyattn as ta
import tinyattn.functional as F
from tests.machine import same_bits_on_any_threads
from tinyattn import inference, kernels, nn, optim
from tinyattn.inference.layers import MOST_TEXTS, MOST_TOKENS
from tinyattn.models import BERT, GPT, Llama, Seq2Seq

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


def bert(D=24, H=3, layers=2):
    return BERT(V, D, H, layers, max_len=80, rng=0)


def random_weights(model):
    """The model with weights and biases that all matter."""
    rng = np.random.default_rng(1)
    for p in model.parameters():
        p.data = p.data + rng.normal(0, 0.3, p.shape).astype(p.dtype)
    return model.eval()


def token_by_token(run, empty_cache, ids, lengths=None, start=None):
    """Logits [B, T, V] of tokens one by one, behind a start of which lengths[b] tokens count."""
    found, cache = [], empty_cache()
    with ta.no_grad():
        if lengths is not None:
            run(np.tile(np.arange(6) % V, (len(ids), 1)) if start is None else start, cache)
            for layer in cache:
                layer.truncate(lengths)
        for t in range(ids.shape[1]):
            found.append(run(ids[:, t : t + 1], cache).data[:, 0])
    return np.stack(found, axis=1), cache


@pytest.fixture
def kernel_calls(monkeypatch):
    """The names of the compiled layers that ran, one by one; the blocks of a Llama are one."""
    from tinyattn.kernels.fast import decode

    names = []
    for name in ("encoder_layer", "llama_blocks", "post_norm_layer"):
        run = getattr(decode, name)
        monkeypatch.setattr(decode, name, lambda *a, n=name, run=run: names.append(n) or run(*a))
    return names


# ---------------------------------------------------------------- one token of each text

GENERATORS = {
    "GPT": lambda: gpt(24, 3),
    "GPT, heads of 1": lambda: gpt(5, 5),
    "GPT, odd heads": lambda: gpt(33, 3),
    "GPT, wide": lambda: gpt(160, 2),
    "Llama": lambda: llama(24, 4, 2),
    "Llama, one head with keys": lambda: llama(30, 5, 1),
    "Llama, biases": lambda: llama(34, 1, 1, bias=True),
    "Llama, wide": lambda: llama(192, 6, 3),
}


@needs_numba
@pytest.mark.parametrize("make", GENERATORS.values(), ids=GENERATORS)
@pytest.mark.parametrize("B", [1, 3, 24, 29])
def test_a_compiled_layer_is_the_layer(make, B, kernel_calls):
    model = random_weights(make())
    compiled, ids = inference.compile(model), np.random.default_rng(2).integers(V, size=(B, T))
    ragged = np.random.default_rng(3).integers(0, 7, B)
    for lengths in (None, np.full(B, 6), ragged):
        kernel_calls.clear()
        found, cache = token_by_token(compiled, model.empty_cache, ids, lengths)
        assert len(kernel_calls) == (T if isinstance(model, Llama) else 2 * T)
        expected, exact = token_by_token(model.astype(np.float64), model.empty_cache, ids, lengths)
        model.astype(np.float32)
        scale = np.abs(expected).max()  # float32, through two layers
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 * scale)
        for a, b in zip(cache, exact, strict=True):
            assert (a.lengths == b.lengths).all()
            assert (a.shortest, a.longest) == (b.shortest, b.longest)
            for row, n in enumerate(a.lengths):
                for mine, other in ((a.k, b.k), (a.v, b.v)):
                    np.testing.assert_allclose(mine[row, :, :n], other[row, :, :n], atol=1e-4)


@needs_numba
@pytest.mark.parametrize(
    "make", [lambda: GPT(V, 256, 4, 2, 120, rng=0), lambda: llama(256, 4, 2)], ids=["GPT", "Llama"]
)
def test_behind_long_texts_on_any_number_of_threads(make):
    """So long that all threads share the attention, too; one text is empty."""
    model, lengths = random_weights(make()), np.array([110, 0, 70, 109, 1])
    ids, start = np.random.default_rng(4).integers(V, size=(5, 3)), np.arange(550).reshape(5, 110)
    compiled, rest = inference.compile(model), (model.empty_cache, ids, lengths, start % V)
    same_bits_on_any_threads(lambda: [token_by_token(compiled, *rest)[0]])
    found = token_by_token(compiled, *rest)[0]
    expected = token_by_token(model.astype(np.float64), *rest)[0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 * np.abs(expected).max())


class Twice(nn.Module):
    """A model of one's own, whose `generate` does not know the argument `compiled`."""

    def __init__(self):
        self.norm = nn.RMSNorm(4)

    def generate(self, x):
        return self.norm(self.norm(x))


def test_generate_of_a_model_of_ones_own():
    model, x = Twice(), np.ones((2, 4), np.float32)
    y = inference.compile(model).generate(x)
    np.testing.assert_array_equal(y.data, model.generate(x).data)
    assert not y.requires_grad


@pytest.mark.parametrize(
    "make", [lambda: gpt(24, 3), lambda: llama(24, 4, 2)], ids=["GPT", "Llama"]
)
@pytest.mark.parametrize(
    "ids",
    [np.arange(5), np.arange(12).reshape(3, 4), [[1, 2, 3], [4]]],
    ids=["one", "three", "ragged"],
)
def test_compiled_or_not_generates_the_same(make, ids):
    """Beyond max_len, too, where all is computed anew for each token."""
    model = random_weights(make())
    model.max_len = 20
    for options in ({"temperature": 0}, {"rng": 0}, {"temperature": 0, "cache": False}):
        found = model.generate(ids, 30, **options)
        explicit = inference.compile(model).generate(ids, 30, **options)
        expected = model.generate(ids, 30, compiled=False, **options)
        for a, b, c in zip(found, explicit, expected, strict=True):
            np.testing.assert_array_equal(a, c)
            np.testing.assert_array_equal(b, c)


@needs_numba
def test_when_the_kernel_runs(kernel_calls):
    few, many = np.zeros((MOST_TEXTS, 1), int), np.zeros((MOST_TEXTS + 1, 1), int)

    def run(model, ids):
        kernel_calls.clear()
        token_by_token(inference.compile(model.eval()), model.empty_cache, ids)
        return list(kernel_calls)

    assert run(gpt(24, 3), few) == ["encoder_layer"] * 2
    assert run(gpt(24, 3), many) == []
    assert run(gpt(24, 3).astype(np.float64), few) == []
    mixed, frozen = gpt(24, 3), gpt(24, 3)
    for layer in mixed.blocks.layers:
        layer.linear1.weight.data = layer.linear1.weight.data.astype(np.float64)
    assert run(mixed, few) == []
    for layer in frozen.blocks.layers:
        layer.linear1.weight.data.flags.writeable = False
    assert run(frozen, few) == []


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_does_not_fit_is_refused_and_changes_nothing(dtype):
    """The kernels trust the sizes that they are given."""
    x = ta.tensor(np.ones((2, 1, 24), dtype))
    own, other, block = pre_norm(), pre_norm(48, 4), nn.LlamaBlock(24, 3, 1, 48, rng=0)
    own, other, block = (inference.compile(m.eval().astype(dtype)) for m in (own, other, block))
    cache = nn.KeyValueCache()
    for _ in range(3):
        own(x, cache=cache)
    known = cache.k.copy()
    with pytest.raises(ValueError, match=r"\(3, 8, 8\).*\(4, 12, 12\)"):
        other(ta.tensor(np.ones((2, 1, 48), dtype)), cache=cache)
    with pytest.raises(ValueError, match=r"\(3, 8, 8\).*\(1, 8, 8\)"):
        block(x, cache)
    for wide in (16, 32):
        wrong = ta.tensor(np.ones((2, 1, wide), dtype))
        for part in (own, block):
            with pytest.raises(ValueError, match=str(wide)):
                part(wrong, cache=nn.KeyValueCache())
        with pytest.raises(ValueError, match=str(wide)):
            own(wrong, cache=cache)
    assert (cache.lengths == 3).all()
    assert (cache.shortest, cache.longest) == (3, 3)
    assert np.array_equal(cache.k, known)


def pre_norm(D=24, H=3, **options):
    options = {"activation": "gelu", "norm_first": True} | options
    return nn.TransformerEncoderLayer(D, H, 48, 0.0, rng=0, **options).eval()


@needs_numba
@pytest.mark.parametrize(
    "options", [{}, {"norm_first": False}, {"activation": "relu"}, {"bias": False}], ids=str
)
def test_every_layer_gives_one_by_one_what_it_gives_at_once(options, kernel_calls):
    part = inference.compile(pre_norm(**options))
    x = np.random.default_rng(0).standard_normal((2, T, 24)).astype(np.float32)
    whole, cache = part(ta.tensor(x), causal=True).data, nn.KeyValueCache()
    found = [part(ta.tensor(x[:, t : t + 1]), cache=cache).data for t in range(T)]
    np.testing.assert_allclose(np.concatenate(found, axis=1), whole, rtol=0, atol=1e-5)
    assert len(kernel_calls) == (T if options in ({}, {"bias": False}) else 0)


@pytest.mark.parametrize("rotary", [nn.RotaryEmbedding, nn.InterleavedRotaryEmbedding])
def test_pairs_of_rotary_positions_are_those_of_the_block(rotary, kernel_calls):
    block = nn.LlamaBlock(24, 3, 3, 48, rotary(8), rng=0).eval()
    run, cache = inference.compile(block), nn.KeyValueCache()
    x = np.random.default_rng(0).standard_normal((2, T, 24)).astype(np.float32)
    whole = run(ta.tensor(x)).data
    found = [run(ta.tensor(x[:, t : t + 1]), cache).data for t in range(T)]
    np.testing.assert_allclose(np.concatenate(found, axis=1), whole, rtol=0, atol=1e-5)
    assert bool(kernel_calls) == (kernels.numba is not None)


# ---------------------------------------------------------------- all tokens of short texts


@needs_numba
@pytest.mark.parametrize(("B", "T"), [(1, 1), (1, 12), (3, 7), (2, 32), (1, 64), (0, 3), (5, 13)])
@pytest.mark.parametrize(("D", "H"), [(24, 3), (33, 3), (5, 5), (128, 4)])
def test_sentences_are_those_of_the_modules(B, T, D, H, kernel_calls):
    model = random_weights(bert(D, H))
    compiled, rng = inference.compile(model), np.random.default_rng(5)
    ids = rng.integers(V, size=(B, T))
    lengths = rng.integers(0, T + 1, size=B)  # a text may be empty: its tokens see nobody
    for keep in (None, np.ones((B, T), bool), np.arange(T) < lengths[:, None]):
        kernel_calls.clear()
        found = compiled(ids, None, keep).data
        assert kernel_calls == ["post_norm_layer"] * (2 if 0 < B * T <= MOST_TOKENS else 0)
        with ta.no_grad():
            modules, exact = model(ids, None, keep).data, model.astype(np.float64)
            expected = exact(ids, None, keep).data
        model.astype(np.float32)
        scale = np.abs(expected).max(initial=1)
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 * scale)
        np.testing.assert_allclose(modules, expected, rtol=0, atol=2e-5 * scale)
        if B and (keep is None or keep.any(axis=1).all()):
            for vectors in (model.sentence_vectors, compiled.sentence_vectors):
                a, b = vectors(ids, keep), model.sentence_vectors(ids, keep, compiled=False)
                np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)


def test_sentences_on_any_number_of_threads():
    model, ids = random_weights(bert(256, 4)), np.random.default_rng(0).integers(V, size=(3, 15))
    same_bits_on_any_threads(lambda: [inference.compile(model)(ids).data])


def test_masks_of_another_kind_run_the_module(kernel_calls):
    layer, x = pre_norm(norm_first=False), np.random.default_rng(0).normal(size=(2, 5, 24))
    compiled, x = inference.compile(layer), ta.tensor(x.astype(np.float32))
    mask = np.random.default_rng(1).random((2, 5, 5)) < 0.7
    for options in ({"mask": mask}, {"mask": mask[0]}, {"causal": True}, {"mask": mask[:, None]}):
        with ta.no_grad():
            np.testing.assert_array_equal(compiled(x, **options).data, layer(x, **options).data)
    assert kernel_calls == []
    with pytest.raises(ValueError, match="mask"):
        compiled(x, mask=np.ones((2, 1, 4), bool))


# ---------------------------------------------------------------- weights that change


def other_values(model):
    """A state dict for the model in which every number is another."""
    return {name: a + np.float32(0.1) for name, a in model.state_dict().items()}


def train(model, ids):
    optimizer = optim.AdamW(model.parameters(), lr=0.1)
    F.mse_loss(model(ids), np.zeros(model(ids).shape, np.float32)).backward()
    optimizer.step()


def replace_arrays(model, ids):
    for p in model.parameters():
        p.data = p.data + np.float32(0.1)


def write_in_place(model, ids):
    for p in model.parameters():
        p[...] = p.data + np.float32(0.1)


def write_to_the_bare_arrays(model, ids):
    for p in model.parameters():
        p.data[...] += np.float32(0.1)


def replace_parameters(model, ids):
    for module in model.modules():
        for name, value in list(vars(module).items()):
            if isinstance(value, nn.Parameter):
                setattr(module, name, nn.Parameter(value.data + np.float32(0.1)))


def replace_a_layer(model, ids):
    for module in model.modules():
        for name, value in list(vars(module).items()):
            if isinstance(value, nn.Linear):
                other = nn.Linear(value.in_features, value.out_features, value.bias is not None)
                setattr(module, name, other.eval())


def replace_a_block(model, ids):
    for module in model.modules():
        if isinstance(module, nn.ModuleList):
            setattr(module, "0", getattr(module, "1"))


def make_it_double(model, ids):
    model.astype(np.float64)


CHANGES = [
    train,
    replace_arrays,
    write_in_place,
    write_to_the_bare_arrays,
    replace_parameters,
    replace_a_layer,
    replace_a_block,
    make_it_double,
    lambda model, ids: model.load_state_dict(other_values(model)),
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__)
@pytest.mark.parametrize(
    "make", [lambda: gpt(24, 3), lambda: llama(24, 4, 2), bert], ids=["GPT", "Llama", "BERT"]
)
def test_new_weights_count_at_once(make, change):
    model, ids = random_weights(make()), np.random.default_rng(0).integers(V, size=(2, 3))
    compiled, is_bert = inference.compile(model), isinstance(model, BERT)
    caches = [None if is_bert else model.empty_cache() for _ in "ab"]

    def run(model, cache):
        with ta.no_grad():
            return model(ids).data if is_bert else model(ids[:, :1], cache).data

    before = run(compiled, caches[0])
    run(model, caches[1])
    change(model, ids)
    found, expected = run(compiled, caches[0]), run(model, caches[1])
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 * scale)
    if change is not make_it_double:
        assert np.abs(found - before).max() > 1e-3 * scale


@needs_numba
def test_a_layer_that_is_changed_later_is_refused_then(kernel_calls):
    model, ids = random_weights(bert()), np.array([[1, 2, 3]])
    compiled = inference.compile(model)
    expected = compiled(ids).data
    linear = model.encoder.layers[1].linear2
    linear.forward = lambda x: 0 * x
    for use in (lambda: compiled(ids), lambda: compiled.sentence_vectors(ids), compiled.module):
        with pytest.raises(
            inference.CannotCompile,
            match="encoder.layers.1.linear2",
        ):
            use()
    assert "encoder.layers.1.linear2 has a forward" in repr(compiled)
    del linear.forward
    np.testing.assert_array_equal(compiled(ids).data, expected)


def test_a_watched_layer_is_refused():
    """`summary` watches each layer while it runs the model; so may anybody else."""
    model, found = random_weights(gpt(24, 3)), []
    rows = model.summary(np.zeros((1, 3), int)).rows
    assert [label for label, shape, _ in rows if not shape] == ["    layers: ModuleList"]
    inner = model.blocks.layers[0].norm1.forward
    model.blocks.layers[0].norm1.forward = lambda x: found.append(x) or inner(x)
    with pytest.raises(inference.CannotCompile, match="norm1 .*forward"):
        inference.compile(model)
    model.generate([1, 2, 3], 4)
    assert len(found) == 5  # the prompt without its last token, then token by token


def test_other_replacements_are_seen(monkeypatch):
    """Not `forward` alone; and a mock, a partial or a wrapper that took over the name."""
    from functools import wraps
    from unittest import mock

    @wraps(nn.Linear.forward)
    def wrapped(self, x):
        return nn.functional.linear(x, self.weight)

    model = gpt(24, 3).eval()
    for owner, name, value in (
        (nn.TransformerEncoderLayer, "_feed_forward", lambda self, x: x),
        (nn.Module, "__call__", lambda self, *a, **k: self.forward(*a, **k)),
        (nn.Linear, "forward", mock.MagicMock()),
        (nn.Linear, "forward", wrapped),
        (nn.LayerNorm, "__call__", nn.LayerNorm.forward),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, value, raising=False)
            with pytest.raises(inference.CannotCompile, match=f"whose {name} was replaced"):
                inference.compile(model)
    inference.compile(model)
    model.blocks.layers[0]._self_attention = model.blocks.layers[0]._self_attention
    with pytest.raises(inference.CannotCompile, match="layers.0 has a _self_attention"):
        inference.compile(model)


def test_dropout_that_acts_is_not_left_out():
    model = BERT(V, 24, 3, 2, dropout=0.5, rng=0)
    compiled, ids = inference.compile(model), np.array([[1, 2, 3]])
    assert "dropout in training mode" in repr(compiled) or kernels.numba is None
    assert not np.array_equal(compiled(ids).data, compiled(ids).data)
    model.eval()
    assert np.array_equal(compiled(ids).data, compiled(ids).data)
    assert compiled.compiled_layers or kernels.numba is None
    model.train()
    assert not np.array_equal(compiled(ids).data, compiled(ids).data)


# ---------------------------------------------------------------- what it says, and other models


@needs_numba
def test_it_prints_what_it_compiled():
    lines = repr(inference.compile(gpt(24, 3).eval())).splitlines()
    assert lines[0] == "GPT: 2 layers compiled"
    assert lines[2].split() == ["part", "layer", "runs", "as"]
    rows = [line.split(maxsplit=1) for line in lines[4:]]
    assert [name for name, _ in rows] == [
        "embedding",
        "positions",
        "dropout",
        "blocks.layers.0",
        "blocks.norm",
    ]
    assert "to 1" in lines[7] and "compiled for one new token of up to" in lines[7]
    assert lines[4].split(maxsplit=2)[2] == "module: this kind has no compiled form"
    text = repr(inference.compile(nn.Sequential(nn.Linear(3, 4), nn.LSTM(4, 4))))
    assert text.splitlines()[4:] == ["all   Sequential  module: this kind has no compiled form"]
    text = repr(inference.compile(nn.RMSNorm(4).astype(np.float64)))
    assert "module: its weight is float64 (4,), expected float32 (4,)" in text
    text = repr(inference.compile(Seq2Seq(V, 8, 2, 2).eval()))
    assert text.startswith("Seq2Seq: no layers compiled")
    assert "module: its activation is relu, not gelu" in text
    text = repr(inference.compile(gpt(24, 3).astype(np.float64).eval()))
    assert "its norm1.weight is float64 (24,), expected float32 (24,)" in text


class OwnModel(nn.Module):
    """A model of one's own around layers of the library."""

    def __init__(self):
        layer = nn.TransformerEncoderLayer(24, 3, 48, 0.0, "gelu", rng=0)
        self.layers = nn.TransformerEncoder(layer, 2)
        self.last = self.layers.layers[1]  # used twice

    def forward(self, x):
        return self.last(self.layers(x)) * 2


def test_a_model_of_ones_own_is_compiled_where_it_holds_layers(kernel_calls):
    model, x = OwnModel().eval(), np.random.default_rng(0).normal(size=(1, 5, 24))
    compiled, x = inference.compile(model), ta.tensor(x.astype(np.float32))
    np.testing.assert_allclose(compiled(x).data, model(x).data, rtol=0, atol=1e-5)
    assert len(kernel_calls) == (3 if kernels.numba is not None else 0)
    assert not compiled(x).requires_grad
    assert model(x).requires_grad
    names = [name for name, _ in compiled.module().named_parameters()]
    assert len(names) == len(list(model.parameters()))
    pairs = zip(compiled.module().parameters(), model.parameters(), strict=True)
    assert all(a is b for a, b in pairs)


def test_a_module_that_points_back_is_no_endless_loop():
    model, x = OwnModel().eval(), np.random.default_rng(0).normal(size=(1, 5, 24))
    model.layers.parent, x = model, ta.tensor(x.astype(np.float32))
    found = inference.compile(model)(x)
    np.testing.assert_allclose(found.data, model(x).data, rtol=0, atol=1e-5)


def test_a_wanted_gradient_runs_the_module():
    """Whoever uses the copy of the model with gradients gets them."""
    model, ids = random_weights(bert()), np.array([[1, 2, 3]])
    expected, found = (run(ids) for run in (model, inference.compile(model).module()))
    assert np.array_equal(found.data, expected.data)
    found.sum().backward()
    assert all(p.grad is not None for n, p in model.named_parameters() if "pooler" not in n)
