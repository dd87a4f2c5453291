"""Tokenizers for the characters and for the bytes of a text."""

import numpy as np

from tinyattn.engine.convert import to_array

EACH = (
    "For several texts, write [tokenizer.encode(text) for text in texts], and pass this list to "
    "tokenizers.padded"
)


class Characters:
    """A tokenizer with one token for each different character of a text.

        tokenizer = Characters("hello")
        tokenizer.encode("hole")      # [1, 3, 2, 0]: its characters are e, h, l, o
        tokenizer.decode([1, 0])      # "he"

    Token ids follow the order of the characters' codes. A character that does not occur in the text
    cannot be encoded.

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
            raise ValueError(
                f"Characters: {', '.join(map(repr, unknown[:5]))} did not occur in the text from "
                f"which the tokenizer was built ({len(self)} characters). Build it from a text "
                "that contains them"
            )
        return np.array([self.ids[c] for c in text], np.int64)

    def decode(self, ids):
        """Return the text of the token ids `ids` [T].

        Raises:
            ValueError: ids are not integers [T] from 0 to the number of tokens - 1
        """
        return "".join(self.tokens[i] for i in checked(ids, len(self)))

    def __len__(self):
        return len(self.tokens)


class Bytes:
    """A tokenizer with one token for each of the 256 bytes, for UTF-8 text in any script.

    Its vocabulary does not depend on a text. If a model writes bytes that are not UTF-8, they are
    decoded as �.
    """

    def encode(self, text):
        """Return the bytes of `text`, [T] integers from 0 to 255.

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
        return bytes(checked(ids, 256)).decode("utf-8", errors="replace")

    def __len__(self):
        return 256


def padded(sequences, pad=0):
    """Return sequences of different length as one padded array, with a mask of the tokens.

    Args:
        sequences   list of B sequences of token ids, of which the longest has T
        pad         token id that pads shorter sequences

    Returns:
        (ids [B, T] int64, keep [B, T] bool), where keep is True for tokens and False for padding

    Raises:
        TypeError: a sequence does not consist of integers
    """
    sequences = [np.asarray(to_array(s)) for s in sequences]
    for i, s in enumerate(sequences):
        if s.ndim != 1 or (s.size and s.dtype.kind not in "iu"):
            advice = "Pass a list with one sequence for each text"
            if s.dtype.kind in "US":
                advice = "Encode texts with a tokenizer first"
            elif s.ndim == 1 and s.dtype.kind == "f":
                advice = "Convert it with .astype(int)"
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
    """Raise TypeError with the function's `name` and `advice` unless `text` is a single string."""
    if not isinstance(text, str):
        raise TypeError(f"{name}: expected one text, got {type(text).__name__}. {advice}")


def checked(ids, n):
    """Return `ids` [T] as a list, after checking that they are integers from 0 to n - 1."""
    ids = np.asarray(to_array(ids))
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise ValueError(
            f"decode: expected token ids, which are integers [T], got {ids.dtype} of shape "
            f"{ids.shape}. For several texts, decode one row at a time"
        )
    if ids.size and not 0 <= ids.min() <= ids.max() < n:
        expected = f"expected token ids from 0 to {n - 1}" if n else "there are no tokens"
        wrong = np.flatnonzero((ids < 0) | (ids >= n))[0]
        raise ValueError(f"decode: {expected}, got {ids[wrong]} at index {wrong}")
    return [int(i) for i in ids]
