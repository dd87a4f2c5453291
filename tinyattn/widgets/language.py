"""Widgets about sequences: attention of a model, sampling, gradients through time, positions."""

import math

import numpy as np

from tinyattn.engine.ranges import check_range
from tinyattn.widgets import still
from tinyattn.widgets.weights import softmax
from tinyattn.widgets.widget import Widget, names_of, numbers, whole_numbers


def attention(weights, tokens, keys=None, *, what="", layer=0, head=0, query=0):
    """Explore the attention weights of a model, by layer and head.

    Args:
        weights   attention weights of L layers with H heads [L, H, T, S], or a list of L arrays
                  [H, T, S]
        tokens    labels of the T queries
        keys      labels of the S keys. If None, the labels of the queries, which requires S = T
        what      name of the model, for the title, or "" for none
        layer     index of the layer that is shown initially, from 0 to L - 1
        head      index of the head that is shown initially, from 0 to H - 1
        query     index of the query that is shown initially, from 0 to T - 1

    Returns:
        a `Widget`

    Raises:
        TypeError: an index is not a whole number, or `tokens` or `keys` is not a list
        ValueError: the weights are not finite numbers, or their shape is not [H, T, S] in every
            layer or differs between layers
        ValueError: the number of labels is wrong, or an index is out of range
    """
    layered = hasattr(weights, "__len__") and not isinstance(weights, dict)
    layered = layered and getattr(weights, "ndim", 1) > 0
    if not layered or not len(weights):
        came = type(weights).__name__ + (" without layers" if layered else "")
        raise ValueError(
            "widgets.attention: weights must be a list with an array [H, T, S] for each layer, got "
            f"{came}"
        )
    if getattr(weights, "ndim", 4) != 4:
        advice = ". Write weights[None] for a single layer" if weights.ndim == 3 else ""
        advice = ". Choose one example, such as weights[:, 0]" if weights.ndim == 5 else advice
        raise ValueError(
            f"widgets.attention: weights must be [L, H, T, S], got shape {weights.shape}{advice}"
        )
    if getattr(weights[0], "ndim", 3) == 4:
        raise ValueError(
            "widgets.attention: weights must be a list of arrays [H, T, S], got shape "
            f"{weights[0].shape} in layer 0. Choose one example: [w[0] for w in weights]"
        )
    layers = [numbers("attention", f"weights[{i}]", w, 3) for i, w in enumerate(weights)]
    if len({w.shape for w in layers}) > 1:
        raise ValueError(
            "widgets.attention: weights must have the same shape [H, T, S] in all layers, got "
            f"{', '.join(str(w.shape) for w in layers)}"
        )
    weights = np.stack(layers)
    L, H, T, S = weights.shape
    queries = names_of("attention", "tokens", tokens, T)
    if keys is None and tokens is not None and S != T:
        raise ValueError(
            f"widgets.attention: weights has a different number of keys ({S}) than queries ({T}). "
            "Pass the labels of the keys as keys="
        )
    keys = names_of("attention", "keys", tokens if keys is None else keys, S)
    check_range("widgets.attention", whole=True, layer=layer, head=head, query=query)
    for name, index, number in (("layer", layer, L), ("head", head, H), ("query", query, T)):
        if not 0 <= index < number:
            raise ValueError(
                f"widgets.attention: expected 0 <= {name} < {number}, got {name}={index}"
            )
    return Widget(
        "attention",
        f"Attention {'of ' + what if what else 'weights'}".strip(),
        "Point at a word on the left. A weight tells how much of a value the word receives, but "
        "not how the result would change without this value, because the values themselves, other "
        "heads and residual paths matter as well.",
        {
            "weights": np.round(weights, 4),
            "queries": queries,
            "keys": keys,
            "names": ["query", "key"],
            "start": {"layer": layer, "head": head, "over": query},
        },
        still.cells(
            f"layer {layer + 1}, head {head + 1}: row = query, column = key",
            weights[layer, head],
            queries,
            keys,
        ),
        height=640,
    )


def sampling(logits, tokens, texts, taken=None):
    """Explore the distribution of the next token with temperature, top-k and top-p.

    Args:
        logits   logits of the next token at P positions of a text [P, V]
        tokens   labels of the V tokens
        texts    list of P strings, the text up to each position
        taken    index of the token that follows at each position [P] int, from 0 to V - 1. If
                 None, it is not shown

    Returns:
        a `Widget`

    Raises:
        TypeError: `tokens` or `texts` is not a list
        ValueError: the logits are not finite numbers [P, V], the number of tokens, texts or entries
            in `taken` is wrong, or `taken` contains a number that is not whole or out of range
    """
    logits = numbers("sampling", "logits", logits, 2)
    places, count = logits.shape
    tokens = names_of("sampling", "tokens", tokens, count)
    texts = names_of("sampling", "texts", texts, places)
    taken = None if taken is None else whole_numbers("sampling", "taken", taken, 0, count)
    if taken is not None and len(taken) != places:
        raise ValueError(
            f"widgets.sampling: taken must have {places} {'entry' if places == 1 else 'entries'}, "
            f"one for each row of logits, got {len(taken)}"
        )
    p = softmax(logits[0])
    best = np.argsort(-p, kind="stable")[:14]
    return Widget(
        "sampling",
        "Drawing the next token",
        "The temperature is applied first, then top-k, then top-p. The remaining probabilities "
        "are scaled to sum to 1. Grey tokens can no longer be drawn.",
        {
            "logits": logits,
            "tokens": tokens,
            "texts": texts,
            **({} if taken is None else {"taken": taken}),
        },
        still.bars(f"{texts[0][-60:]} …", [tokens[i] for i in best], p[best]),
    )


def spectral_radius(W, g=None, steps=40):
    """Explore the length of a gradient g after 0, 1, ... steps back through h_t = W h_(t-1).

    Args:
        W       matrix [n, n], which is rescaled to the spectral radius set by the slider. Its
                eigenvalues must not all be 0
        g       gradient at the last step [n], not all 0, which is rescaled to length 1. If None, it
                is random, but the same in every call
        steps   number of steps back, at least 0

    Returns:
        a `Widget`

    Raises:
        TypeError: `steps` is not a whole number
        ValueError: `W` or `g` has the wrong shape or contains something other than finite numbers
        ValueError: all eigenvalues of `W` or all numbers in `g` are 0, or `steps` is negative
    """
    check_range("widgets.spectral_radius", 0, whole=True, steps=steps)
    W = numbers("spectral_radius", "W", W, 2)
    if W.shape[0] != W.shape[1]:
        raise ValueError(f"widgets.spectral_radius: W must be square, got shape {W.shape}")
    radius = np.abs(np.linalg.eigvals(W)).max()
    if radius == 0:
        raise ValueError(
            "widgets.spectral_radius: all eigenvalues of W are 0, so W cannot be rescaled. Pass a "
            "matrix with an eigenvalue other than 0, such as a random matrix"
        )
    g = (
        np.random.default_rng(0).normal(size=len(W))
        if g is None
        else numbers("spectral_radius", "g", g, 1)
    )
    if len(g) != len(W):
        raise ValueError(
            f"widgets.spectral_radius: g must have {len(W)} {'entry' if len(W) == 1 else 'entries'}"
            f", one for each row of W, got {len(g)}"
        )
    if not g.any():
        raise ValueError("widgets.spectral_radius: g must not be 0, got only zeros")
    sizes, g = [1.0], g / np.linalg.norm(g)
    for _ in range(steps):
        g = W.T @ g / radius
        sizes.append(float(np.linalg.norm(g)))
    still_sizes = np.array(sizes) * 0.9 ** np.arange(steps + 1)
    return Widget(
        "spectral_radius",
        "The gradient through time",
        "The cell has no nonlinearity, so each step back multiplies the gradient only by the "
        "transpose of W. With tanh, each step would also multiply it by slopes of at most 1.",
        {"sizes": sizes},
        still.curves(
            "length of the gradient, spectral radius 0.9",
            np.arange(steps + 1),
            [still_sizes],
            "steps back in time",
            log=True,
        ),
    )


def positions(d=32, length=64, base=10_000.0):
    """Explore sinusoidal positions, in which pairs of features are the hands of clocks.

    Features 2k and 2k + 1 of position t are the sine and cosine of t base^(-2k/d).

    Args:
        d        number of features, an even number >= 2
        length   number of positions t = 0, 1, ..., at least 2
        base     finite number above 0. Pair k has the wavelength 2π base^(2k/d)

    Returns:
        a `Widget`

    Raises:
        TypeError: `d` or `length` is not a whole number, or `base` is not a number
        ValueError: `d` is odd or less than 2, `length` is less than 2, or `base` is not finite and
            above 0
    """
    check_range("widgets.positions", whole=True, d=d, length=length)
    check_range("widgets.positions", above=0, below=math.inf, base=base)
    if d < 2 or d % 2 or length < 2:
        raise ValueError(
            f"widgets.positions: expected an even d >= 2 and length >= 2, got d={d}, "
            f"length={length}"
        )
    p = np.arange(length)
    return Widget(
        "positions",
        "Positions as clocks",
        "Each pair of features is a hand of a clock that turns more slowly than the one before. "
        "The scalar product of the vectors of two positions depends only on their distance.",
        {"d": d, "length": length, "base": float(base)},
        still.curves("first pair of features", p, [np.sin(p), np.cos(p)], "position"),
    )
