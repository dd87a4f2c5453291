"""An explorer of a small GPT that reads the words that you type into the page."""

import base64

import numpy as np

from tinyattn.engine.autograd import no_grad
from tinyattn.widgets import still
from tinyattn.widgets.widget import Widget

LONGEST = 40  # tokens, because a map of more tokens is too fine to click on


def own_words(model, tokenizer, text, *, what="a small GPT"):
    """Explore a GPT with words of your own: attention, next token, and the gradient of its loss.

    The page computes the forward pass, and the backward pass from −log p of one next token to the
    embedding of each token and to the attention weights of each head. Each matrix is rounded to 8
    bits with one factor for each row, so the page has about 1.3 bytes for each parameter.

    Args:
        model       a `models.GPT`
        tokenizer   the `data.tokenizers.BytePairs` with which the model was trained. It has exactly
                    one special token, which precedes every text
        text        the text that the page shows at first
        what        name of the model, for the title

    Returns:
        a `Widget`

    Raises:
        TypeError: `model` is not a GPT, `tokenizer` is not a BytePairs, or `text` is not a string
        ValueError: the tokenizer and the model have different numbers of tokens, the tokenizer does
            not have exactly one special token, or `text` is too long for the model
    """
    parts = all(hasattr(model, part) for part in ("embedding", "positions", "blocks"))
    if not parts or not hasattr(tokenizer, "merges"):
        raise TypeError(
            "widgets.own_words: expected a models.GPT and a data.tokenizers.BytePairs, got "
            f"{type(model).__name__} and {type(tokenizer).__name__}"
        )
    tokens = len(model.embedding.weight)
    if len(tokenizer) != tokens:
        raise ValueError(
            f"widgets.own_words: the tokenizer must have {tokens} tokens, as the model has, got "
            f"{len(tokenizer)}. Pass the tokenizer with which the model was trained"
        )
    if len(tokenizer.special) != 1:
        raise ValueError(
            "widgets.own_words: the tokenizer must have exactly one special token, got "
            f"{list(tokenizer.special)}"
        )
    layers = model.blocks.layers
    names = [t.decode("utf-8", errors="replace") for t in tokenizer.tokens]
    return Widget(
        "own_words",
        f"Your own words in {what}",
        "A weight tells how much of a value a token receives, and a gradient tells how a change "
        "would affect the loss. The number below a token is the length of the gradient at its "
        "embedding.",
        {
            "text": text,
            "tokens": names,
            "end": next(iter(tokenizer.special)),
            "bytes": {b: i for b, i in enumerate(tokenizer.bytes) if i is not None},
            "merges": [(*pair, new) for pair, (_, new) in tokenizer.merges.items()],
            "layers": len(layers),
            "heads": layers[0].self_attn.num_heads,
            "longest": LONGEST,
            "weights": {name: packed(value) for name, value in model.state_dict().items()},
        },
        _still(model, tokenizer, text, names),
        height=760,
        parts=("gpt",),
    )


def rows_in_8_bits(matrix, largest=127):
    """Return the matrix as whole numbers, and the factor of each row in float32.

    Args:
        matrix    numbers [R, C]
        largest   largest absolute value of the integers. With 31, only 6 of the 8 bits are needed

    Returns:
        (integers [R, C] int8, factors [R] float32), whose product approximates the matrix
    """
    matrix = np.asarray(matrix, np.float64)
    factors = (np.abs(matrix).max(axis=1) / largest).astype("<f4")
    steps = np.divide(matrix, factors[:, None], where=factors[:, None] > 0, out=0 * matrix)
    return np.round(steps).astype(np.int8), factors


def packed(value):
    """Return a parameter as text, with a matrix in 8 bits and a vector in float32.

    Args:
        value   the parameter, [R, C] or [N]

    Returns:
        {"numbers"} for a vector, and {"shape", "numbers", "factors"} for a matrix, where the
        numbers and factors are in base64
    """
    value = np.asarray(value)
    if value.ndim == 1:
        return {"numbers": _text(value.astype("<f4"))}
    whole, factors = rows_in_8_bits(value)
    return {"shape": whole.shape, "numbers": _text(whole), "factors": _text(factors)}


def _text(array):
    return base64.b64encode(array.tobytes()).decode()


def _still(model, tokenizer, text, names):
    """Draw the likeliest next tokens after the text."""
    start = tokenizer.special[next(iter(tokenizer.special))]
    with no_grad():
        scores = model(np.concatenate([[start], tokenizer.encode(text)])[None]).numpy()[0, -1]
    p = np.exp(scores - scores.max())
    p = p / p.sum()
    best = np.argsort(-p, kind="stable")[:12]
    return still.bars(f"the next token after “{text}”", [names[i] for i in best], p[best])
