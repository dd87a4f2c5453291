"""Mistakes with explorers: the error that each must raise."""

import numpy as np
import pytest

from tests.widgets.test_own_words import TEXT, TOKENIZER, model_of
from tinyattn import data, widgets

RNG = np.random.default_rng(0)
Q, KEYS = RNG.normal(size=64), RNG.normal(size=(12, 64))
LOGITS = 2 * RNG.normal(size=(3, 20))
BETA = RNG.uniform(size=30) ** 3
X = np.concatenate([0.2 * RNG.normal(size=(15, 2)), 0.2 * RNG.normal(size=(15, 2)) + [1.5, 0.5]])
MAPS = np.exp(RNG.normal(size=(2, 3, 4, 5)))
FEATURES = np.array([RNG.normal(size=4) / (layer + 1) for layer in range(3)])
SQUARE = [(0, 1), (1, 2), (2, 3), (3, 0)]
CORNERS = [(-1, -1), (1, -1), (1, 1), (-1, 1)]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: widgets.temperature([]), "at least one element"),
        (lambda: widgets.temperature([1.0, np.nan]), "scores must be finite, got nan at index 1"),
        (lambda: widgets.temperature([1.0, 2.0], ["one"]), "labels must have 2 entries, got 1"),
        (lambda: widgets.score_variance(Q, KEYS[:, :5]), "64 features, but keys has 5"),
        (lambda: widgets.score_variance([1.0], KEYS[:, :5]), "q has 1 feature, but keys has 5"),
        (
            lambda: widgets.score_variance(Q, KEYS, [8, 65]),
            "1 <= dimensions.i. < 65, got 65 at index 1",
        ),
        (lambda: widgets.score_variance(Q, KEYS, []), r"at least one element, got shape \(0,\)"),
        (lambda: widgets.score_variance(Q, KEYS, [1.5]), "whole numbers .*, got 1.5 at index 0"),
        (lambda: widgets.vectors((0, 0)), "query must not be .0, 0"),
        (lambda: widgets.vectors((1, 2, 3)), r"a pair of numbers \(x, y\), got \[1.0, 2.0, 3.0\]"),
        (lambda: widgets.vectors("ab"), "query must be real numbers, got str"),
        (lambda: widgets.attention([], "ab"), "got list without layers"),
        (lambda: widgets.attention(3, "ab"), "a list with an array .* for each layer, got int"),
        (lambda: widgets.attention(MAPS, "abcd"), r"keys \(5\) than queries \(4\). Pass the"),
        (lambda: widgets.attention(MAPS[0], "abcd"), r"Write weights\[None\] for a single layer"),
        (lambda: widgets.attention([MAPS], "abcd"), r"Choose one example: \[w\[0\] for"),
        (lambda: widgets.attention(MAPS[:, None], "abcd"), r"such as weights\[:, 0\]"),
        (lambda: widgets.attention(MAPS, list("abc")), "tokens must have 4 entries, got 3"),
        (lambda: widgets.attention(MAPS, "abcd", "vwxyz", layer=2), "0 <= layer < 2, got layer=2"),
        (lambda: widgets.attention(MAPS, list("abcd"), list("vwxyz"), query=4), "query=4"),
        (
            lambda: widgets.sampling(LOGITS, list("ab"), ["x"] * 3),
            "tokens must have 20 entries, got 2",
        ),
        (lambda: widgets.spectral_radius(np.ones((2, 3))), "must be square"),
        (lambda: widgets.spectral_radius(np.zeros((2, 2))), "all eigenvalues of W are 0"),
        (
            lambda: widgets.spectral_radius(np.eye(2), [1.0, 0, 0]),
            "must have 2 entries, one .*got 3$",
        ),
        (lambda: widgets.spectral_radius(np.eye(2), [0.0, 0]), "g must not be 0, got only zeros"),
        (lambda: widgets.spectral_radius(np.eye(2), steps=-1), "0 <= steps, got steps=-1"),
        (
            lambda: widgets.sampling(LOGITS, ["a"] * 20, "xyz", [0, 20, 1]),
            "0 <= taken.i. < 20, got 20 at index 1",
        ),
        (lambda: widgets.positions(d=7), "an even d >= 2"),
        (lambda: widgets.neighbours([[1, 2], [3]]), "points must form one array with 2 axes"),
        (lambda: widgets.neighbours(np.ones((1, 2))), "at least two points, got only 1"),
        (lambda: widgets.neighbours(X, BETA[:3]), "sizes must have 30 entries, one for each"),
        (lambda: widgets.neighbours(X[:2], [1, -2]), "sizes >= 0 .*, got -2 at index 1"),
        (lambda: widgets.neighbours(np.ones((3, 3))), r"must be \[N, 2\]"),
        (
            lambda: widgets.over_smoothing(FEATURES, SQUARE, CORNERS[:2]),
            r"places must have shape \(4, 2\), .*, got shape \(2, 2\)",
        ),
        (
            lambda: widgets.over_smoothing(FEATURES, SQUARE, 3 * np.array(CORNERS)),
            r"-1 <= places <= 1, got -3. Write places / np.abs\(places\).max",
        ),
        (
            lambda: widgets.over_smoothing(FEATURES, [(0, 4)], CORNERS),
            r"from 0 to 3, got \(0, 4\) at index 0",
        ),
        (
            lambda: widgets.over_smoothing(FEATURES, np.array(SQUARE).T, CORNERS),
            r"got shape \(2, 4\). Transpose edges",
        ),
        (lambda: widgets.over_smoothing(FEATURES, [(0, 1, 2)], CORNERS), r"shape \(1, 3\)"),
        (lambda: widgets.gravnet([-1.0]), "expected distances >= 0"),
        (
            lambda: widgets.condensation(charges=[1.0]),
            "charges must have 2 entries, one for each row of centres, got 1",
        ),
        (lambda: widgets.condensation(x=(1, 2, 3)), "a pair of numbers .*, got 3 numbers"),
        (lambda: widgets.thresholds(BETA, X[:3]), "beta and x must have the same .* 30 and 3$"),
        (lambda: widgets.thresholds(BETA, X, ["a"] * 30), "truth must be real numbers, got text"),
        (lambda: widgets.thresholds(BETA[:1], X[:1], [0.5]), "whole numbers, got 0.5 at index 0"),
    ],
)
def test_what_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: widgets.own_words(None, TOKENIZER, ""), TypeError, "got NoneType and BytePairs"),
        (
            lambda: widgets.own_words(model_of(), data.tokenizers.Bytes(), ""),
            TypeError,
            "got GPT and Bytes",
        ),
        (
            lambda: widgets.own_words(model_of(), data.tokenizers.BytePairs.train(TEXT, 260), ""),
            ValueError,
            "must have 278 tokens, as the model has, got 260",
        ),
    ],
)
def test_what_own_words_refuses(make, error, words):
    with pytest.raises(error, match=words):
        make()
