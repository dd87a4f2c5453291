"""Widgets about scores and weights: temperature, √d, length and angle."""

import numpy as np

from tinyattn.widgets import still
from tinyattn.widgets.widget import Widget, names_of, numbers, whole_numbers


def temperature(scores, labels=None):
    """Explore softmax(scores / T): a small T selects one score, a large T makes all weights equal.

    Args:
        scores   scores [N]
        labels   labels of the N scores. If None, their indices

    Returns:
        a `Widget`

    Raises:
        TypeError: `labels` is not a list
        ValueError: the scores are not finite numbers [N], or the number of labels is not N
    """
    scores = numbers("temperature", "scores", scores, 1)
    labels = names_of("temperature", "labels", labels, len(scores))
    return Widget(
        "temperature",
        "Softmax with a temperature",
        "With a small T, the largest score gets nearly all the weight. With a large T, all weights "
        "are nearly equal. Their order never changes.",
        {"scores": scores, "labels": labels},
        still.bars("softmax(scores), T = 1", labels, softmax(scores)),
    )


def score_variance(q, keys, dimensions=None):
    """Explore the scores of a query with keys, for different numbers of features.

    The variance of q·k grows with the number d of features, so the softmax selects a single key.
    Dividing by √d avoids this.

    Args:
        q            query [D]
        keys         keys [N, D]
        dimensions   numbers d of features that the slider offers, a list of whole numbers from 1 to
                     D. The first d features are used. If None, the powers of two up to D

    Returns:
        a `Widget`

    Raises:
        ValueError: `q` is not [D], `keys` is not [N, D], or they contain something other than
            finite numbers
        ValueError: `dimensions` is not a list of whole numbers from 1 to D, or is empty
    """
    q, keys = numbers("score_variance", "q", q, 1), numbers("score_variance", "keys", keys, 2)
    if keys.shape[1] != len(q):
        raise ValueError(
            f"widgets.score_variance: q has {len(q)} {'feature' if len(q) == 1 else 'features'}, "
            f"but keys has {keys.shape[1]}. Give both the same number"
        )
    if dimensions is None:
        dimensions = [2**i for i in range(len(q).bit_length()) if 2**i <= len(q)]
    dimensions = whole_numbers("score_variance", "dimensions", dimensions, 1, len(q) + 1)
    scores = np.array([keys[:, :d] @ q[:d] for d in dimensions])
    return Widget(
        "score_variance",
        "Why scores are divided by √d",
        "Each feature adds a random term, so the variance of q·k is d times that of one term. "
        "The scores use the first d features of one query and its keys.",
        {"scores": scores, "dimensions": dimensions},
        still.bars(
            f"weights softmax(q·k) at d = {dimensions[-1]}, largest first",
            [""] * len(keys),
            np.sort(softmax(scores[-1]))[::-1],
        ),
    )


def vectors(query=(1.5, 0.6), other=(1.0, -1.0)):
    """Explore a key that you drag in the plane: its length, angle, score and weight.

    Args:
        query   the query (x, y), which must not be (0, 0)
        other   a second key (x, y), which does not move

    Returns:
        a `Widget`

    Raises:
        ValueError: `query` or `other` is not a pair of finite numbers, or `query` is (0, 0)
    """
    query, other = numbers("vectors", "query", query, 1), numbers("vectors", "other", other, 1)
    for name, pair in (("query", query), ("other", other)):
        if len(pair) != 2:
            raise ValueError(
                f"widgets.vectors: {name} must be a pair of numbers (x, y), got {pair.tolist()}"
            )
    if not query.any():
        raise ValueError("widgets.vectors: query must not be (0, 0), because its length would be 0")
    first = softmax(np.array([1.0 * query[0] + (110 / 60) * query[1], other @ query]))
    return Widget(
        "vectors",
        "Length and angle determine the weight",
        "q·k = |q| |k| cos(angle): a key that points the other way gets a negative score, and a "
        "long key gets more than a short one in the same direction.",
        {"query": query, "other": other},
        still.bars("weights of two keys", ["key", "other key"], first),
    )


def softmax(scores):
    """Return the softmax of scores along the last axis, as the page computes it."""
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)
