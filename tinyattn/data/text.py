"""Real English text that comes with Python itself, and its pieces for training.

text = data.english()                          # about 400,000 characters, no download
letters = data.tokenizers.Characters(text)
pieces = data.windows(letters.encode(text), batch_size=32, length=64)
for x, y in pieces: ...                        # x [32, 64], y the same, one character on
"""

import re

import numpy as np

# what a typewriter has; everything else that the text holds is spelled with it or left out
ALPHABET = "\n !\"#%&'()*+,-./0123456789:;<=>?@[]_abcdefghijklmnopqrstuvwxyz{|}" + (
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)
SPELLED = {"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "…": "...", "\t": " "}


def english():
    """The help texts of Python: English sentences about the language, one long string.

    The text is the dictionary of the module `pydoc_data.topics` (what `help("for")` prints), its
    topics in alphabetical order: about 400,000 characters after cleaning. A paragraph is a line.
    Ruled lines, stars of emphasis and characters outside ALPHABET are taken out.

    It differs a little from one version of Python to the next. Build the vocabulary from the text.
    """
    from pydoc_data.topics import topics  # half a megabyte: only read when asked for

    return clean("\n\n".join([topics[name] for name in sorted(topics)]))


def clean(text):
    """Paragraphs as lines, typographic quotes and dashes as plain ones, the rest left out."""
    text = text.translate(str.maketrans(SPELLED)).replace("*", "")
    text = re.sub(r"[-=~^+|]{3,}", " ", text)  # ruled lines
    text = "".join([c for c in text if c in ALPHABET])
    paragraphs = [re.sub(r"\s+", " ", p).strip() for p in re.split(r"\n\s*\n", text)]
    return "\n".join([p for p in paragraphs if p]) + "\n"


def windows(ids, *, batch_size, length):
    """Batches of consecutive windows, for truncated backpropagation through time.

    ids [N] is cut into `batch_size` long streams that run side by side, and these into windows of
    `length`: row b of one batch goes on where row b of the batch before ended, so that a state can
    be handed from batch to batch. Yields x [B, T] and y [B, T], the ids that follow:
    y[b, t] is the id after x[b, t]. What does not fill a window at the end is left out.
    """
    return Windows(ids, batch_size, length)


class Windows:
    """What `windows` returns: may be gone through again and again; always in the same order."""

    def __init__(self, ids, batch_size, length):
        ids = np.asarray(ids)
        if ids.ndim != 1 or ids.dtype.kind not in "iu":
            raise ValueError(
                f"windows: ids must be whole numbers [N], got {ids.dtype} of shape {ids.shape}; "
                f"tokenizers turn text into ids"
            )
        for name, value in (("batch_size", batch_size), ("length", length)):
            if not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"windows: {name} must be a whole number ≥ 1, got {value!r}")
        self.length = int(length)
        self.count = (len(ids) - 1) // (batch_size * length)  # one id more is needed as target
        if self.count < 1:
            raise ValueError(
                f"windows: {batch_size} windows of {length} need {batch_size * length + 1} ids, "
                f"got {len(ids)}; make batch_size or length smaller"
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
