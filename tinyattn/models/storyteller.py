"""A small GPT that writes children's stories, with its tokenizer and the record of its training.

    model, tokenizer = storyteller.load()
    ids = model.generate(tokenizer.encode("<end>Once upon a time"), 200, temperature=0.6, rng=1)
    print(tokenizer.decode(ids))

The weights are shipped with the library, in 8 bits. The stories of the training data are not
included. data/SOURCES.md names their source, and tools/data/make_storyteller.py trained the model.
"""

from pathlib import Path

import numpy as np

from tinyattn.data.tokenizers import BytePairs
from tinyattn.models.gpt import GPT

FILE = Path(__file__).parents[1] / "data" / "storyteller.npz"
END = "<end>"  # a token before and after each story
SIZES = ("large", "small")


def load(size="large"):
    """Load a trained model that writes stories and its tokenizer, and return (GPT, BytePairs).

    Args:
        size   "large" for the model with 4 layers, 570,432 parameters and a vocabulary of 1,024
               tokens, or "small" for 2 layers, 87,360 parameters and a vocabulary of 512 tokens,
               which the widget `own_words` uses

    Raises:
        ValueError: `size` is neither "large" nor "small"
    """
    stored = _stored(size)
    state = {}
    for name, value in stored.items():
        if name.startswith("model."):
            factors = stored.get(f"factors.{name[6:]}")
            wide = value.astype(np.float32)
            state[name[6:]] = wide if factors is None else wide * factors[:, None]
    words = tokenizer(stored["alphabet"].tolist(), stored["pairs"].tolist())
    vocab, d = state["embedding.weight"].shape
    length = len(state["positions.weight"])
    layers = 1 + max(int(n.split(".")[2]) for n in state if n.startswith("blocks.layers."))
    model = GPT(vocab, d, int(stored["heads"]), layers, length, rng=0)
    model.load_state_dict(state)
    return model.eval(), words


def record(size="large"):
    """Return the measurements that were recorded during training, a dictionary of arrays.

    loss [100] is the mean training loss (nats per token) in each hundredth of the steps. held_out
    [M, 2] contains a step and the bits per character on 60 held-out stories after this step. bits
    is the same measure on all 200 held-out stories with the shipped weights. bits_of_characters is
    the measure for the small GPT of lecture 07, which reads and writes single characters and was
    trained on the same stories with the settings of the lecture. steps is the number of training
    steps, and seconds is the computing time on one core.

    Args:
        size   "large" or "small"

    Raises:
        ValueError: `size` is neither "large" nor "small"
    """
    names = ("loss", "held_out", "bits", "bits_of_characters", "steps", "seconds")
    stored = _stored(size)
    return {name: stored[name] for name in names}


def _stored(size):
    """Return the arrays of one size."""
    if size not in SIZES:
        raise ValueError(f'storyteller: size must be "large" or "small", got {size!r}')
    with np.load(FILE) as file:
        start = f"{size}/"
        return {name.removeprefix(start): file[name] for name in file.files if start in name}


def tokenizer(alphabet, pairs):
    """Return a `BytePairs` with the bytes of the alphabet, the merged pairs and END as tokens.

    Args:
        alphabet   list of the bytes that occur, as integers
        pairs      list of merged pairs (a, b), with the token ids of `BytePairs.train`: an id < 256
                   is a byte, and 256 + i is the result of merge i
    """
    number = {b: i for i, b in enumerate(alphabet)}
    tokens, merges = [bytes([b]) for b in alphabet], []
    for i, pair in enumerate(pairs):
        a, b = (number[t] for t in pair)
        number[256 + i] = len(tokens)
        merges.append((a, b, len(tokens)))
        tokens.append(tokens[a] + tokens[b])
    return BytePairs([*tokens, END.encode()], merges, {END: len(tokens)})
