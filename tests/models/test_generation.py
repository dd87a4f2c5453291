"""Sampling draws what it says, and the search finds what trying everything finds."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyattn import Tensor
from tinyattn.models import decoding
from tinyattn.models.decoding import beam_search, decode, greedy, log_softmax, probabilities, sample

V, T, STOP = 3, 4, 0
LOGITS = np.array([[2.0, 1.0, 0.5, 0.5, -3.0], [0.0, 0.0, 0.0, 0.0, 4.0]])
rng = np.random.default_rng(0)


# ---------------------------------------------------------------- one token


def test_temperature():
    p = probabilities(LOGITS)
    e = np.exp(LOGITS)
    np.testing.assert_allclose(p, e / e.sum(-1, keepdims=True), rtol=1e-12)
    e = np.exp(LOGITS / 0.5)
    np.testing.assert_allclose(probabilities(LOGITS, 0.5), e / e.sum(-1, keepdims=True), rtol=1e-12)
    assert (probabilities(LOGITS, 0) == [[1, 0, 0, 0, 0], [0, 0, 0, 0, 1]]).all()
    assert (sample(LOGITS, 0) == [0, 4]).all()
    assert np.isfinite(probabilities(LOGITS, 1e-8)).all()


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({"top_k": 1}, {0}),
        ({"top_k": 2}, {0, 1}),
        ({"top_k": 3}, {0, 1, 2}),  # 2 and 3 are equal: the lower number stays
        ({"top_k": 9}, {0, 1, 2, 3, 4}),
        ({"top_p": 0.1}, {0}),  # the likeliest always stays
        ({"top_p": 0.6}, {0, 1}),  # 0.549, then 0.751
        ({"top_p": 0.76}, {0, 1, 2}),
        ({"top_p": 1.0}, {0, 1, 2, 3, 4}),
        ({"top_k": 3, "top_p": 0.8}, {0, 1}),  # 0.628, 0.231, 0.140 of what top_k left
        ({"temperature": 0.1, "top_p": 0.6}, {0}),  # the temperature comes first
    ],
)
def test_what_stays(options, left):
    p = probabilities(LOGITS[0], **options)
    assert set(np.flatnonzero(p)) == left
    full = probabilities(LOGITS[0], options.get("temperature", 1.0))
    ids = sorted(left)
    np.testing.assert_allclose(p[ids], full[ids] / full[ids].sum(), rtol=1e-12)


def test_half_and_half_needs_one():
    assert (probabilities(np.zeros(2), top_p=0.5) == [1, 0]).all()
    assert (probabilities(np.zeros(4), top_k=2) == [0.5, 0.5, 0, 0]).all()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=8), st.integers(1, 9), st.floats(0.05, 1))
def test_top_k_and_top_p_by_their_definition(logits, k, share):
    p = probabilities(logits)
    order = sorted(range(len(p)), key=lambda i: (-p[i], i))
    assert set(np.flatnonzero(probabilities(logits, top_k=k))) == set(order[:k])
    n = next((n for n in range(1, len(p)) if p[order[:n]].sum() >= share), len(p))
    kept = set(np.flatnonzero(probabilities(logits, top_p=share)))
    if abs(p[order[:n]].sum() - share) > 1e-12:  # a sum that is rounded may go either way
        assert kept == set(order[:n])


@pytest.mark.parametrize(
    "options", [{}, {"temperature": 2.0}, {"top_k": 3}, {"top_p": 0.8, "temperature": 1.5}]
)
def test_draws_are_distributed_as_said(options):
    """χ² of 20,000 draws stays below the value that chance passes once in 10,000 times."""
    scipy_stats = pytest.importorskip("scipy.stats")
    n, p = 20_000, probabilities(LOGITS[0], **options)
    counts = np.bincount(sample(np.tile(LOGITS[0], (n, 1)), rng=1, **options), minlength=len(p))
    assert (counts[p == 0] == 0).all()
    possible = p > 0
    chi2 = np.sum((counts - n * p)[possible] ** 2 / (n * p)[possible])
    assert chi2 < scipy_stats.chi2.ppf(1 - 1e-4, possible.sum() - 1)


def test_draws_take_any_shape_and_repeat_with_the_seed():
    z = rng.normal(size=(2, 3, 7)).astype(np.float32)
    a, b = sample(Tensor(z), rng=5), sample(z, rng=5)
    assert a.shape == (2, 3) and (a == b).all()
    assert sample(z[:0]).shape == (0, 3)
    assert sample(np.array([0.0, -np.inf, -np.inf])) == 0
    assert not (sample(np.tile([-np.inf, 0.0, -np.inf], (100, 1)), rng=0) != 1).any()


# ---------------------------------------------------------------- whole sequences

TABLE = {
    prefix: log_softmax(rng.normal(size=V) * 2)
    for n in range(T)
    for prefix in product(range(V), repeat=n)
}


def step(tokens, state):
    """The logits depend on all tokens since the start (-1); the state carries them."""
    seen = np.concatenate([state["seen"], tokens[:, None]], axis=1)
    logits = np.stack([TABLE[tuple(int(i) for i in row[1:])] for row in seen])
    return Tensor(logits), {"seen": seen}


def nothing(B=1):
    return {"seen": np.empty((B, 0), np.int64)}


def everything(length_penalty, stop):
    """All sequences that end with a stop token or have T tokens, the best first."""
    found = []
    for n in range(1, T + 1):
        for y in product(range(V), repeat=n):
            if any(i in stop for i in y[:-1]) or (n < T and y[-1] not in stop):
                continue
            p = sum(TABLE[y[:t]][y[t]] for t in range(n))
            finished = y[-1] in stop
            score = p / ((5 + n) / 6) ** length_penalty
            found.append((score, y[:-1] if finished else y, p, finished))
    return sorted(found, key=lambda entry: -entry[0])


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.5, -0.5])
@pytest.mark.parametrize("stop", [(STOP,), (0, 2), ()])
def test_enough_beams_are_exhaustive(length_penalty, stop):
    (found,) = beam_search(step, nothing(), -1, stop, V**T, T, length_penalty)
    best = everything(length_penalty, stop)[0]
    assert tuple(found[0].tokens) == best[1]
    np.testing.assert_allclose([found[0].score, found[0].log_probability], best[::2], rtol=1e-12)
    assert found[0].finished == best[3]
    assert all(a.score >= b.score for a, b in zip(found, found[1:], strict=False))


def test_every_answer_has_its_true_score():
    truth = {y: entry for entry in everything(0.6, (STOP,)) for y in [entry[1]]}
    for beams in (1, 2, 5):
        (found,) = beam_search(step, nothing(), -1, STOP, beams, T)
        assert 1 <= len(found) <= beams
        for h in found:
            score, _, p, finished = truth[tuple(h.tokens)]
            np.testing.assert_allclose((h.score, h.log_probability), (score, p), rtol=1e-12)
            assert h.finished == finished


def test_one_beam_is_greedy():
    for seed in range(20):
        logits = np.random.default_rng(seed).normal(size=(5, V, V)) * 2

        def following(tokens, state, logits=logits):
            return logits[state[:, 0], tokens], state + 1

        t0 = np.zeros((2, 1), int)
        chosen = greedy(following, t0, [1, 2], STOP, 5)
        for y, (best,) in zip(chosen, beam_search(following, t0, [1, 2], STOP, 1, 5), strict=True):
            assert (y == best.tokens).all() and y.shape == best.tokens.shape


def test_a_wider_beam_finds_what_greedy_misses():
    """Greedy takes 1 (0.6), after which all is even; the best sequence begins with 2."""
    first, even, sure = np.log([[1e-9, 0.6, 0.4], [1 / 3] * 3, [1e-9, 1e-9, 1.0]])
    rules = {-1: first, 0: even, 1: even, 2: sure}

    def rule(tokens, state):
        return np.stack([rules[int(i)] for i in tokens]), state

    assert (greedy(rule, None, -1, None, 3)[0][:1] == 1).all()
    (found,) = beam_search(rule, None, -1, None, 2, 3)
    assert (found[0].tokens == 2).all()


def test_rows_of_a_batch_do_not_mix():
    alone = beam_search(step, nothing(), -1, STOP, 3, T)
    together = beam_search(step, nothing(3), [-1, -1, -1], STOP, 3, T)
    for answers in together:
        assert [tuple(h.tokens) for h in answers] == [tuple(h.tokens) for h in alone[0]]
    assert beam_search(step, nothing(0), np.empty(0, int), STOP, 3, T) == []


def test_decode_stops_at_any_stop_token():
    script = np.array([[1, 2, 0, 1], [2, 2, 2, 2], [0, 1, 1, 1]])

    def play(tokens, t):
        return np.eye(V)[script[np.arange(3), t]] * 50, t + 1

    found = decode(play, np.zeros(3, int), [0, 0, 0], stop=0, max_len=4, rng=0)
    assert [list(y) for y in found] == [[1, 2], [2, 2, 2, 2], []]
    found = greedy(play, np.zeros(3, int), [0, 0, 0], stop=[0, 2], max_len=4)
    assert [list(y) for y in found] == [[1], [], []]
    calls = []

    def counted(tokens, t):
        calls.append(len(tokens))
        return play(tokens, t)

    greedy(counted, np.zeros(3, int), [0, 0, 0], stop=[0, 2], max_len=4)
    assert len(calls) == 2  # all rows ended: no further call


def test_the_first_call_has_one_row_for_each_start():
    counts = []

    def counted(tokens, state):
        counts.append(len(tokens))
        return step(tokens, state)

    beam_search(counted, nothing(2), [-1, -1], None, 3, 3)
    assert counts == [2, 6, 6]


def test_states_of_any_form_are_indexed():
    pair = (np.arange(3), [np.arange(6).reshape(3, 2)])
    found = decoding.index_state({"a": pair, "b": None}, np.array([2, 0, 0]))
    assert list(found["a"][0]) == [2, 0, 0] and found["a"][1][0].shape == (3, 2)
