"""Real English text that is shipped with Python, and training windows of a text.

text = data.english()                          # about 400,000 characters, no download
letters = data.tokenizers.Characters(text)
pieces = data.windows(letters.encode(text), batch_size=32, length=64)
for x, y in pieces: ...                        # x [32, 64], and y one character later
"""

import re

import numpy as np

from tinyattn.data.tokenizers.simple import as_array

# The characters of a typewriter. All other characters are replaced by these or left out.
ALPHABET = "\n !\"#%&'()*+,-./0123456789:;<=>?@[]_abcdefghijklmnopqrstuvwxyz{|}" + (
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)
SPELLED = {"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "…": "...", "\t": " "}


def english():
    """Return Python's help texts, which describe the language in English, as one long string.

    They come from the module `pydoc_data.topics` (`help("for")` prints one of them), in
    alphabetical order of the topics: about 400,000 characters. Each paragraph is one line. Quotes
    and dashes are plain ones. Ruled lines, asterisks, and characters outside
    `tinyattn.data.text.ALPHABET` (letters, digits and common ASCII signs) are removed.

    The text differs slightly between versions of Python, so build your vocabulary from the text.
    """
    # this module has half a megabyte, so it is only imported when needed
    from pydoc_data.topics import topics

    return clean("\n\n".join([topics[name] for name in sorted(topics)]))


def clean(text):
    """Return the text with one line for each paragraph, and with plain quotes and dashes.

    Ruled lines, asterisks and all characters outside ALPHABET are removed.

    Args:
        text   the text, in which empty lines separate the paragraphs
    """
    text = text.translate(str.maketrans(SPELLED)).replace("*", "")
    text = re.sub(r"[-=~^+|]{3,}", " ", text)  # ruled lines
    text = "".join([c for c in text if c in ALPHABET])
    paragraphs = [re.sub(r"\s+", " ", p).strip() for p in re.split(r"\n\s*\n", text)]
    return "\n".join([p for p in paragraphs if p]) + "\n"


def windows(ids, *, batch_size, length):
    """Cut a sequence into batches of consecutive windows, for truncated backpropagation.

        for x, y in data.windows(ids, batch_size=32, length=64): ...

    The sequence is cut into B streams of equal length, and each stream into windows of T ids. Row b
    of a batch continues where row b of the previous batch ended, so a state can be passed from
    batch to batch. A loop yields x [B, T] and y [B, T], where y[b, t] is the id that follows
    x[b, t] in the sequence. Ids at the end that do not fill a batch are dropped.

    Args:
        ids          token ids, whole numbers [N] with N > B · T
        batch_size   number B of streams
        length       number T of ids in a window

    Returns:
        `Windows`, which you can iterate over more than once. Its `len()` is the number of batches

    Raises:
        ValueError: ids are not whole numbers [N], N <= B · T, or batch_size or length is not a
            whole number >= 1
    """
    return Windows(ids, batch_size, length)


class Windows:
    """The batches that `windows` returns, always in the same order.

    Args:
        ids          as in `windows`
        batch_size   as in `windows`
        length       as in `windows`
    """

    def __init__(self, ids, batch_size, length):
        ids = as_array(ids)
        if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
            advice = "Join several sequences with np.concatenate(ids)"
            if ids.dtype.kind in "US":
                advice = "A tokenizer turns text into ids"
            elif ids.ndim == 0:
                advice = "Pass a list of token ids"
            elif ids.ndim == 1 and ids.dtype.kind in "fb":
                advice = "Convert them with np.asarray(ids, int)"
            raise ValueError(
                f"windows: ids must be whole numbers [N], got {ids.dtype} of shape {ids.shape}. "
                f"{advice}"
            )
        for name, value in (("batch_size", batch_size), ("length", length)):
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not whole or value < 1:
                raise ValueError(f"windows: {name} must be a whole number >= 1, got {value!r}")
        self.length = int(length)
        self.count = (len(ids) - 1) // (batch_size * length)  # the last target needs one id more
        if self.count < 1:
            raise ValueError(
                f"windows: batch_size={batch_size} and length={length} need at least "
                f"{batch_size * length + 1} ids, got {len(ids)}. Pass more ids, or reduce "
                "batch_size or length"
            )
        used = batch_size * self.count * self.length
        self.x = ids[:used].reshape(batch_size, -1)  # [B, windows · T]
        self.y = ids[1 : used + 1].reshape(batch_size, -1)

    def __len__(self):
        return self.count

    def __iter__(self):
        for start in range(0, self.count * self.length, self.length):
            piece = slice(start, start + self.length)
            yield self.x[:, piece], self.y[:, piece]

    def __repr__(self):
        return f"{self.count} batches of consecutive windows [{len(self.x)}, {self.length}]"
