"""Tokenizers for the characters and for the bytes of a text."""

import numpy as np

from tinyattn.engine.convert import to_array
from tinyattn.engine.ranges import check_range

EACH = (
    "For several texts, write [tokenizer.encode(text) for text in texts], and pass this list to "
    "tokenizers.padded"
)


class Characters:
    """A tokenizer with one token for each different character of a text.

        tokenizer = Characters("hello")
        tokenizer.encode("hole")      # [1, 3, 2, 0]: the ids 0 to 3 stand for e, h, l and o
        tokenizer.decode([1, 0])      # "he"

    Token ids start at 0 and follow the order of the characters' Unicode codes. A character that
    does not occur in the text cannot be encoded. `len(tokenizer)` is the number of tokens.

    Args:
        text   text that contains all characters that the tokenizer must know

    Raises:
        TypeError: `text` is not a string
    """

    def __init__(self, text):
        check_text("Characters", text, advice='Join several texts with "".join(texts)')
        self.tokens = sorted(set(text))
        self.ids = {c: i for i, c in enumerate(self.tokens)}

    def encode(self, text):
        """Return the token ids of `text`, [T] int64.

        Raises:
            TypeError: `text` is not a string
            ValueError: a character did not occur in the text of the tokenizer
        """
        check_text("Characters.encode", text)
        unknown = sorted(set(text) - self.ids.keys())
        if unknown:
            more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
            raise ValueError(
                f"Characters.encode: {', '.join(map(repr, unknown[:5]))}{more} did not occur in "
                "the text from which the tokenizer was built. Build it from a text that contains "
                "all characters that you need"
            )
        return np.array([self.ids[c] for c in text], np.int64)

    def decode(self, ids):
        """Return the text of the token ids `ids` [T].

        Raises:
            ValueError: ids are not integers [T] from 0 to the number of tokens - 1
        """
        return "".join(self.tokens[i] for i in checked("Characters.decode", ids, len(self)))

    def __len__(self):
        return len(self.tokens)


class Bytes:
    """A tokenizer with one token for each of the 256 bytes, for UTF-8 text in any script.

    Its vocabulary does not depend on a text, and the token id of a byte is its value.
    """

    def encode(self, text):
        """Return the bytes of `text` in UTF-8, which are its token ids from 0 to 255, [T] int64.

        Raises:
            TypeError: `text` is not a string
        """
        check_text("Bytes.encode", text)
        return np.frombuffer(text.encode("utf-8"), np.uint8).astype(np.int64)

    def decode(self, ids):
        """Return the text of the bytes `ids` [T], with � for bytes that are not UTF-8.

        Raises:
            ValueError: ids are not integers [T] from 0 to 255
        """
        return bytes(checked("Bytes.decode", ids, 256)).decode("utf-8", errors="replace")

    def __len__(self):
        return 256


def padded(sequences, pad=0):
    """Return sequences of different lengths as one padded array, with a mask of the tokens.

    Args:
        sequences   list of B sequences of token ids, of which the longest has length T
        pad         token id that is appended to shorter sequences

    Returns:
        (ids [B, T] int64, keep [B, T] bool), where keep is True for tokens and False for padding

    Raises:
        TypeError: sequences is not a list, a sequence does not consist of integers [T], or pad is
            not a whole number
    """
    check_range("padded", whole=True, pad=pad)
    if not hasattr(sequences, "__iter__"):
        raise TypeError(
            f"padded: sequences must be a list, got {sequences!r}. Pass a list with one sequence "
            "for each text"
        )
    sequences = [as_array(s) for s in sequences]
    for i, s in enumerate(sequences):
        if s.ndim != 1 or (s.size and s.dtype.kind not in "iu"):
            advice = "Pass a list with one sequence for each text"
            if s.dtype.kind in "US":
                advice = "Encode texts with a tokenizer first"
            elif s.ndim == 1 and s.dtype.kind in "fb":
                advice = "Convert it with np.asarray(sequence, int)"
            raise TypeError(
                f"padded: sequence {i} must be token ids, which are integers [T], got {s.dtype} of "
                f"shape {s.shape}. {advice}"
            )
    lengths = np.array([len(s) for s in sequences], np.int64)
    keep = np.arange(lengths.max(initial=0)) < lengths[:, None]
    ids = np.full(keep.shape, pad, np.int64)
    if len(sequences):
        ids[keep] = np.concatenate([s.astype(np.int64) for s in sequences])
    return ids, keep


def check_text(name, text, advice=EACH):
    """Raise TypeError with the function's `name` and `advice` unless `text` is a single string.

    The advice is for a list of texts. Other types get a different one.
    """
    if not isinstance(text, str):
        if isinstance(text, bytes):
            advice = 'Convert it with .decode("utf-8")'
        elif not hasattr(text, "__iter__"):
            advice = "Pass a string"
        raise TypeError(f"{name}: expected one text, got {type(text).__name__}. {advice}")


def checked(name, ids, n):
    """Return `ids` [T] as a list, after checking that they are integers from 0 to n - 1.

    `name` is the name of the calling function.
    """
    ids = as_array(ids)
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        advice = "For several texts, pass one row at a time"
        if ids.dtype.kind in "US":
            advice = "This is text already, so there is nothing to decode"
        elif ids.ndim == 0:
            advice = "Pass a list of token ids"
        elif ids.ndim == 1 and ids.dtype.kind in "fb":
            advice = "Convert them with np.asarray(ids, int)"
        raise ValueError(
            f"{name}: expected token ids, which are integers [T], got {ids.dtype} of shape "
            f"{ids.shape}. {advice}"
        )
    if ids.size and not 0 <= ids.min() <= ids.max() < n:
        expected = f"expected token ids from 0 to {n - 1}" if n else "the tokenizer has no tokens"
        wrong = np.flatnonzero((ids < 0) | (ids >= n))[0]
        raise ValueError(f"{name}: {expected}, got {ids[wrong]} at index {wrong}")
    return [int(i) for i in ids]


def as_array(values):
    """Return values as an array, of dtype object if they are rows of different lengths."""
    try:
        return np.asarray(to_array(values))
    except ValueError:
        return np.array([*values, None], object)[:-1]
