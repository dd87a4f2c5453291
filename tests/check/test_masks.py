"""check.causal, check.padding and check.isolated: right models pass, planted bugs are found.

The planted ones are bugs that published models and course exercises really had; all of them train.
"""

import numpy as np
import pytest

import tinyattn.functional as F
from tinyattn import check, nn
from tinyattn.models.bert import BERT
from tinyattn.models.gpt import GPT

rng = np.random.default_rng(0)
B, T, D, H = 3, 6, 8, 2
X = rng.normal(size=(B, T, D))
IDS = rng.integers(1, 9, size=(B, T))
PAST = np.tri(T, dtype=bool)


def layer(seed=0, **options):
    return nn.TransformerEncoderLayer(D, H, 16, dropout=0.0, rng=seed, **options)


class Attention(nn.Module):
    """Self-attention by hand, with places for bugs."""

    def __init__(self, mask=PAST, hidden=-np.inf, merge=True, axis=-1):
        self.maps = nn.Linear(D, 3 * D, rng=0)
        self.mask, self.hidden, self.merge, self.axis = mask, hidden, merge, axis

    def forward(self, x, keep=None):
        b, n, _ = x.shape
        q, k, v = (
            np.swapaxes(np.reshape(part, (b, n, H, D // H)), 1, 2)
            for part in np.split(self.maps(x), 3, axis=-1)
        )
        scores = q @ np.swapaxes(k, -1, -2) / 2.0  # [B, H, T, T]
        mask = self.mask if keep is None else keep[:, None, None, :]
        a = F.softmax(np.where(mask, scores, self.hidden), axis=self.axis)
        y = a @ v  # [B, H, T, d]
        return np.reshape(np.swapaxes(y, 1, 2) if self.merge else y, (b, n, D))


# ---------------------------------------------------------------- causal


def test_what_is_causal_passes():
    for impl in ("numpy", "sums", "kernel"):
        attention = nn.SelfAttention(D, H, rng=0)
        assert check.causal(lambda x, f=attention, i=impl: f(x, causal=True, impl=i), X)
    assert check.causal(lambda x: layer()(x, causal=True), X)
    report = check.causal(GPT(9, D, H, 2, T, rng=0), IDS).expect()
    assert "none sees a later one" in report.text
    assert check.causal(lambda x: np.cumsum(x, axis=1), X)
    assert check.causal(Attention(), X)


BUGS = {
    "no mask": (Attention(np.ones((T, T), bool)), "each position sees the whole future"),
    "shifted": (Attention(np.tri(T, k=1, dtype=bool)), "shifted by one"),
    "transposed": (Attention(PAST.T), "wrong way round"),
    "finite": (Attention(hidden=-12.0), "a finite number such as -10"),
    "merge": (Attention(merge=False), "2 heads were merged by a reshape alone"),
    "softmax over queries": (Attention(axis=-2), None),
    "mean over time": (lambda x: x - x.mean(axis=1, keepdims=True), "whole future"),
}


@pytest.mark.parametrize("bug", BUGS)
def test_what_is_not_causal_is_found(bug):
    f, cause = BUGS[bug]
    report = check.causal(f, X)
    assert not report and "position 0 sees the later" in report.text
    if cause:
        assert any(cause in c for c in report.causes), report
    with pytest.raises(AssertionError, match="see the future"):
        report.expect()


def test_a_large_finite_number_fails_where_nothing_may_be_seen():
    """Key 0 is padding: query 0 sees nothing, and minus a billion makes it see everything."""
    mask = PAST & (np.arange(T) > 0)
    report = check.causal(Attention(mask, hidden=-1e9), X)
    assert not report and "position 0 sees the later 1, 2, 3, 4, 5" in report.text
    right = nn.SelfAttention(D, H, rng=0)
    assert check.causal(lambda x: right(x, mask), X)


def test_causal_of_tokens_looks_at_values():
    model = GPT(9, D, H, 2, T, rng=0)
    assert not check.causal(lambda ids: model.blocks(model.embedding(ids)), IDS)


def test_a_leak_without_gradient_is_found_by_values():
    assert not check.causal(lambda x: x + x.data.mean(axis=1, keepdims=True), X)


# ---------------------------------------------------------------- padding


def with_padding(module):
    return lambda x, keep: module(x, keep[:, None, :])


def pooled(mean):
    def f(x, keep):
        total = np.sum(np.where(keep[..., None], x, 0), axis=1)
        return total / mean(keep)

    return f


def test_what_ignores_padding_passes():
    assert check.padding(with_padding(layer()), X)
    assert check.padding(Attention(), X)
    assert check.padding(nn.DeepSets(nn.Linear(D, 4, rng=0), nn.Linear(4, 2, rng=0), "max"), X)
    assert check.padding(nn.SetTransformer(D, 2, 8, 2, 4, rng=0), X)
    bert = BERT(9, D, H, 2, max_len=T, rng=0).astype(np.float64)
    assert check.padding(lambda ids, keep: bert(ids, keep=keep), IDS)
    assert check.padding(pooled(lambda keep: keep.sum(axis=1, keepdims=True)), X)


def test_what_sees_padding_is_found():
    report = check.padding(lambda x, keep: layer()(x), X)
    assert not report and "differ from those of the row alone" in report.text
    assert "a gradient arrives at the padding" in report.text
    report = check.padding(Attention(hidden=-12.0), X)
    assert any("a finite number such as -10" in c for c in report.causes), report
    report = check.padding(pooled(lambda keep: keep.shape[1]), X)
    assert any("divided by the padded length" in c for c in report.causes), report
    assert "numbers differ from the row alone" in report.text
    report = check.padding(lambda x, keep: np.max(np.where(keep[..., None], x, 0), axis=1), X)
    assert not report  # the largest of negative numbers is not 0


def test_padding_that_multiplies_by_zero_is_found_by_its_gradient():
    """Weights set to 0 after the softmax: the rest does not sum to 1."""

    def f(x, keep):
        a = F.softmax(x @ np.swapaxes(x, 1, 2), axis=-1) * keep[:, None, :]
        return a @ x

    assert not check.padding(f, X)


# ---------------------------------------------------------------- isolated


def test_members_that_do_not_see_each_other_pass():
    assert check.isolated(layer(), X)
    assert check.isolated(GPT(9, D, H, 1, T, rng=0), IDS)
    assert check.isolated(nn.BatchNorm1d(D).eval(), X[:, 0])
    batch = np.array([0, 0, 1, 1, 1, 2])
    assert check.isolated(lambda x: x * 2, X[0], batch)
    sums = (batch == np.arange(3)[:, None]).astype(float)
    assert check.isolated(lambda x: sums @ x, X[0], batch)


def test_batch_norm_in_training_is_not_isolated():
    norm = nn.BatchNorm1d(D)
    before = norm.state_dict()
    report = check.isolated(norm, X[:, 0])
    assert any("batch norm in training mode" in c for c in report.causes), report
    assert (norm.state_dict()["running_mean"] == before["running_mean"]).all()  # a copy was checked


def test_softmax_over_the_batch_is_found():
    report = check.isolated(lambda x: F.softmax(x, axis=0), X)
    assert "member 0 sees 1, 2" in report.text


def test_reshape_in_place_of_a_transpose_is_found():
    """[B, T, D] -> [T, B, D] by a reshape mixes the rows of different members."""
    report = check.isolated(
        lambda x: np.reshape(np.cumsum(np.reshape(x, (T, B, D)), 0), X.shape), X
    )
    assert not report
    report = check.isolated(lambda x: x[np.array([1, 2, 0])], X)
    assert any("mixed up" in c for c in report.causes), report


def test_batch_size_taken_for_the_number_of_nodes_is_found():
    """Two graphs of 3 nodes, pooled with index i % B in place of i // n."""
    x, batch = X[0], np.repeat([0, 1], 3)
    wrong = (np.arange(6) % 2 == np.arange(2)[:, None]).astype(float)
    right = (batch == np.arange(2)[:, None]).astype(float)
    assert check.isolated(lambda x: right @ x, x, batch)
    report = check.isolated(lambda x: wrong @ x, x, batch)
    assert not report and "member 0 sees 1" in report.text
    edges = np.array([[0, 1], [1, 2], [2, 3]])  # the last one leads into the other graph

    def messages(x):
        y = np.zeros_like(x.data)
        y[edges[:, 1], 0] = 1
        return x + y * x[np.maximum(np.arange(6) - 1, 0)]

    assert "member 1 sees 0" in check.isolated(messages, x, batch).text
