"""GPT: PyTorch's numbers, nothing seen of the future, and a cache that changes nothing."""

import numpy as np
import pytest

import tinyattn as ta
import tinyattn.functional as F
from tests.parity import same, torch
from tinyattn import check, optim
from tinyattn.models import GPT
from tinyattn.models.decoding import beam_search, log_softmax
from tinyattn.models.generation import eval_mode, prefill

V, D, H, L, MAX = 11, 8, 2, 3, 12
rng = np.random.default_rng(0)
IDS = rng.integers(V, size=(3, 7))
TN = torch.nn


def gpt(dtype=np.float64, **options):
    return GPT(V, D, H, L, MAX, rng=0, **options).astype(dtype)


def logits(model, ids, cache=None):
    with ta.no_grad():
        return model(np.asarray(ids), cache).data


# ---------------------------------------------------------------- the model


class TorchGPT(TN.Module):
    """The same model of PyTorch's parts, with the same names."""

    def __init__(self):
        super().__init__()
        self.embedding, self.positions = TN.Embedding(V, D), TN.Embedding(MAX, D)
        layer = TN.TransformerEncoderLayer(
            D, H, 4 * D, 0.0, "gelu", norm_first=True, batch_first=True
        )
        self.blocks = TN.TransformerEncoder(layer, L, TN.LayerNorm(D), enable_nested_tensor=False)

    def forward(self, ids):
        T = ids.shape[1]
        x = self.embedding(ids) + self.positions(torch.arange(T))
        x = self.blocks(x, TN.Transformer.generate_square_subsequent_mask(T).to(x.dtype))
        return x @ self.embedding.weight.T


def test_parity_with_pytorch_and_gradients_of_the_tied_head():
    torch.manual_seed(0)
    theirs, ours = TorchGPT().double(), gpt()
    ours.load_state_dict(theirs.state_dict())
    y, z = ours(IDS), theirs(torch.tensor(IDS))
    same(y.data, z.detach().numpy(), "logits")
    F.cross_entropy(y[:, :-1].reshape((-1, V)), IDS[:, 1:].ravel()).backward()
    TN.functional.cross_entropy(
        z[:, :-1].flatten(0, 1), torch.tensor(IDS[:, 1:]).ravel()
    ).backward()
    found = dict(ours.named_parameters())
    for name, p in theirs.named_parameters():
        same(found[name].grad, p.grad.numpy(), name)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("T", [7, 100])  # matrix products, and the kernel
def test_later_tokens_change_no_bit(dtype, T):
    model = GPT(V, D, H, 2, 100, rng=0).astype(dtype)
    ids = np.random.default_rng(1).integers(V, size=(4, T))
    before = logits(model, ids)
    for t in (0, T // 2, T - 2):
        changed = ids.copy()
        changed[:, t + 1 :] = (changed[:, t + 1 :] + 1) % V
        after = logits(model, changed)
        assert (before[:, : t + 1] == after[:, : t + 1]).all()
        assert (before[:, t + 1 :] != after[:, t + 1 :]).any()


def test_checks_agree():
    check.causal(gpt(), IDS).expect()
    check.isolated(gpt(), IDS).expect()


def test_it_starts_even_and_learns_a_sequence():
    model = GPT(V, 16, 2, 2, 16, rng=0)
    ids = np.tile(np.arange(8), (2, 2))
    optimizer = optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(ids[:, :-1]).reshape((-1, V)), ids[:, 1:].ravel())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    spread = 0.02 * np.sqrt(768)  # of the first scores, whatever d_model: E exp(s) = exp(spread²/2)
    assert abs(losses[0] - np.log(V) - spread**2 / 2) < 0.1
    assert losses[-1] < 0.1
    assert (model.generate(np.array([0, 1]), 9, temperature=0) == np.arange(11) % 8).all()


# ---------------------------------------------------------------- the cache


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("pieces", [[7], [1] * 7, [3, 1, 3], [4, 3]])
def test_cached_logits_are_those_of_the_whole(dtype, pieces):
    model, start, found = gpt(dtype), 0, []
    cache, whole = model.empty_cache(), logits(model, IDS)
    for n in pieces:
        found.append(logits(model, IDS[:, start : start + n], cache))
        start += n
    limit = 1e-6 if dtype == np.float32 else 1e-14
    np.testing.assert_allclose(np.concatenate(found, axis=1), whole, rtol=0, atol=limit)


def test_prompts_of_different_length_share_a_cache():
    model, lengths = gpt(), np.array([7, 3, 1])
    cache = model.empty_cache()
    logits(model, IDS, cache)
    for layer in cache:
        layer.truncate(lengths)
    new = np.array([[1, 2], [3, 4], [5, 6]])
    found = logits(model, new, cache)
    for b, n in enumerate(lengths):
        alone = logits(model, np.concatenate([IDS[b, :n], new[b]])[None])
        np.testing.assert_allclose(found[b], alone[0, n:], rtol=0, atol=1e-13)


def test_rows_of_a_cache_go_on_by_themselves():
    model = gpt()
    cache = model.empty_cache()
    logits(model, IDS[:, :4], cache)
    index = np.array([2, 0, 0, 1])
    taken = [layer.rows(index) for layer in cache]
    found = logits(model, IDS[index, 4:], taken)
    np.testing.assert_allclose(found, logits(model, IDS[index])[:, 4:], rtol=0, atol=1e-13)
    assert (cache[0].lengths == 4).all()  # and the first cache is as it was


# ---------------------------------------------------------------- generate


@pytest.mark.parametrize(
    "options", [{}, {"temperature": 0}, {"temperature": 0.7, "top_k": 4}, {"top_p": 0.8}]
)
@pytest.mark.parametrize("new", [4, 20])  # 20: further than the model can see
def test_with_and_without_cache_it_writes_the_same(options, new):
    model = gpt()
    for ids in (IDS[0], IDS, [IDS[0], IDS[1, :2], IDS[2, :1]], [IDS[0, :5]]):
        found = model.generate(ids, new, rng=3, **options)
        again = model.generate(ids, new, rng=3, cache=False, **options)
        assert type(found) is type(again)
        for a, b in zip(found, again, strict=True):
            assert (a == b).all()


def test_shapes_of_what_is_written():
    model = gpt()
    assert model.generate(IDS, 4).shape == (3, 11)
    assert (model.generate(IDS, 4)[:, :7] == IDS).all()
    assert model.generate(IDS[0], 4).shape == (11,)
    assert model.generate([1, 2], 4).shape == (6,)
    assert [len(y) for y in model.generate([[1, 2], [3]], 4)] == [6, 5]
    assert (model.generate(IDS, 0) == IDS).all()
    assert model.generate(ta.Tensor(IDS), 1).dtype.kind == "i"
    assert model.generate(np.zeros((0, 3), int), 2).shape == (0, 3)


def test_greedy_is_the_argmax_of_each_step():
    model, ids = gpt(), IDS[:, :2]
    found = model.generate(ids, 5, temperature=0)
    for t in range(2, 7):
        assert (found[:, t] == logits(model, found[:, :t])[:, -1].argmax(-1)).all()


def test_each_prompt_of_a_batch_goes_on_as_alone():
    model, prompts = gpt(), [IDS[0], IDS[1, :2], IDS[2, :1]]
    together = model.generate(prompts, 20, temperature=0)
    for prompt, y in zip(prompts, together, strict=True):
        assert (model.generate(prompt, 20, temperature=0) == y).all()


def test_stop_tokens():
    model = gpt()
    free = model.generate(IDS, 5, temperature=0)
    stop = int(free[0, 8])  # the second new token of row 0
    found = model.generate(IDS, 5, temperature=0, stop=stop)
    for a, b in zip(found, free, strict=True):
        new = list(b[7:])
        n = new.index(stop) if stop in new else len(new)
        assert (a[7 : 7 + n] == new[:n]).all() and (a[7 + n :] == stop).all()
    one = model.generate(IDS[0], 5, temperature=0, stop=[stop, V + 5])
    assert stop not in one[7:] and len(one) <= 8


def test_it_writes_in_evaluation_mode_and_goes_back():
    model = GPT(V, D, H, L, MAX, dropout=0.5, rng=0)
    first, second = (model.generate(IDS, 3, temperature=0) for _ in range(2))
    assert (first == second).all() and model.training
    assert not model.eval().generate(IDS, 1).size == 0 and not model.training


def test_beam_search_of_a_language_model_keeps_its_cache():
    model, prompts = gpt(), [IDS[0, :4], IDS[1, :2]]
    with eval_mode(model), ta.no_grad():
        cached, plain = (
            beam_search(*prefill(model, prompts, c), None, 3, 5) for c in (True, False)
        )
    for prompt, a, b in zip(prompts, cached, plain, strict=True):
        for h, k in zip(a, b, strict=True):
            assert (h.tokens == k.tokens).all()
            whole = np.concatenate([prompt, h.tokens])
            p = log_softmax(logits(model, whole[None]))[0]
            n = len(prompt)
            true = sum(p[n - 1 + i, t] for i, t in enumerate(h.tokens))
            np.testing.assert_allclose([h.log_probability, k.log_probability], true, rtol=1e-10)
