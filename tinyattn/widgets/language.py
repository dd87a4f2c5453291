"""Widgets about sequences: attention of a model, sampling, gradients through time, positions."""

import math

import numpy as np

from tinyattn.engine.ranges import check_range
from tinyattn.widgets import still
from tinyattn.widgets.weights import softmax
from tinyattn.widgets.widget import Widget, names_of, numbers


def attention(weights, tokens, keys=None, *, what="", layer=0, head=0, query=0):
    """Explore the attention weights of a model, by layer and head.

    Args:
        weights   attention weights of L layers with H heads [L, H, T, S], or a list of L arrays
                  [H, T, S]
        tokens    labels of the T queries
        keys      labels of the S keys. If None, the labels of the queries are used
        what      name of the model, for the title
        layer     index of the layer that is shown initially
        head      index of the head that is shown initially
        query     index of the query that is shown initially

    Returns:
        a `Widget`
    """
    if not hasattr(weights, "__len__") or not len(weights):
        raise ValueError(
            "widgets.attention: weights must be a list with an array [H, T, S] for each layer, got "
            f"{weights!r}"
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
    keys = names_of("attention", "keys", tokens if keys is None else keys, S)
    check_range("widgets.attention", whole=True, layer=layer, head=head, query=query)
    if not (0 <= layer < L and 0 <= head < H and 0 <= query < T):
        raise ValueError(
            f"widgets.attention: layer, head and query must be indices of {L} layers, {H} heads "
            f"and {T} queries, got layer={layer}, head={head}, query={query}"
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
        taken    index of the token that follows at each position [P] int, or None if it is not
                 shown

    Returns:
        a `Widget`
    """
    logits = numbers("sampling", "logits", logits, 2)
    places, count = logits.shape
    tokens = names_of("sampling", "tokens", tokens, count)
    texts = names_of("sampling", "texts", texts, places)
    if taken is not None and len(taken) != places:
        raise ValueError(
            f"widgets.sampling: taken must have one token for each of the {places} positions, got "
            f"{len(taken)}"
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
            **({} if taken is None else {"taken": [int(t) for t in taken]}),
        },
        still.bars(f"{texts[0][-60:]} …", [tokens[i] for i in best], p[best]),
    )


def spectral_radius(W, g=None, steps=40):
    """Explore the length of a gradient g after 0, 1, ... steps back through h_t = W h_(t-1).

    Args:
        W       matrix [n, n], which is rescaled to the spectral radius set by the slider
        g       gradient at the last step [n]. If None, it is random
        steps   number of steps

    Returns:
        a `Widget`
    """
    W = numbers("spectral_radius", "W", W, 2)
    if W.shape[0] != W.shape[1]:
        raise ValueError(f"widgets.spectral_radius: W must be square, got shape {W.shape}")
    radius = np.abs(np.linalg.eigvals(W)).max()
    if radius == 0:
        raise ValueError(
            "widgets.spectral_radius: all eigenvalues of W are 0, so it cannot be rescaled. Pass "
            "another matrix"
        )
    g = (
        np.random.default_rng(0).normal(size=len(W))
        if g is None
        else numbers("spectral_radius", "g", g, 1)
    )
    if len(g) != len(W) or not g.any():
        raise ValueError(
            f"widgets.spectral_radius: g must have {len(W)} numbers, one for each row of W, of "
            f"which one or more are not 0, got {len(g)}{'' if g.any() else ' zeros'}"
        )
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
        d        number of features, which must be even
        length   number of positions t, at least 2
        base     number above 0. Pair k has the wavelength 2π base^(2k/d)

    Returns:
        a `Widget`
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
