"""WordPiece, the tokenizer of BERT, which cuts words that it does not know into known pieces.

Source: Wu et al. 2016. The text is cleaned as in the code of the "uncased" models of Devlin et al.
2019.
"""

import re
import unicodedata
from functools import lru_cache
from pathlib import Path

import numpy as np

from tinyattn.data.tokenizers.simple import check_text, checked, padded

# Each Chinese character is a word of its own: (first, last) of each range.
CHINESE = [
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
]
ONCE = "Call this method once for each text"
BATCH = "For several texts, write tokenizer.batch(texts)"
LONGEST = 100  # characters; a longer word becomes [UNK]


class WordPiece:
    """BERT's tokenizer, which cuts text into words and pieces of words from a vocabulary.

        tokenizer = WordPiece("vocab.txt")
        ids, keep = tokenizer.batch(["A cat.", "The dog chased it."])

    `len(tokenizer)` is the number of pieces.

    Args:
        vocabulary   path of a file with one piece per line, or a list of the pieces. All pieces are
                     different, and those that continue a word begin with "##". The token id of a
                     piece is its index, from 0
        lower        True: the text is converted to lower case without accents (as in "uncased"
                     models)

    Raises:
        FileNotFoundError: there is no such file
        TypeError: the vocabulary is not a path or a list of strings
        ValueError: the vocabulary lacks one of [PAD], [UNK], [CLS] and [SEP] or contains a piece
            twice, or a file is not in UTF-8 or has an empty line
    """

    def __init__(self, vocabulary, lower=True):
        source = "the vocabulary"
        if isinstance(vocabulary, str | Path):
            source, vocabulary = vocabulary, _lines(vocabulary)
        self.tokens = list(vocabulary) if hasattr(vocabulary, "__iter__") else [vocabulary]
        if not all(isinstance(t, str) for t in self.tokens):
            raise TypeError(
                "WordPiece: vocabulary must be the path of a file or a list of strings, got "
                f"{str(vocabulary)[:100]}"
            )
        self.lower = lower
        self.ids = {t: i for i, t in enumerate(self.tokens)}
        missing = [t for t in ("[PAD]", "[UNK]", "[CLS]", "[SEP]") if t not in self.ids]
        if missing:
            ends = any(f"{t}\n" in self.ids for t in missing)
            raise ValueError(
                f"WordPiece: {source} has no {', '.join(missing)}. "
                + (
                    'Remove the "\\n" at the end of each entry'
                    if ends
                    else "Add one entry for each"
                )
            )
        if len(self.ids) < len(self.tokens):
            again = next(i for i, t in enumerate(self.tokens) if self.ids[t] != i)
            piece = self.tokens[again]
            raise ValueError(
                f"WordPiece: the vocabulary contains {piece[:100]!r} twice, at the indices {again} "
                f"and {self.ids[piece]}. Remove one of the two"
            )
        special = [t for t in self.tokens if re.fullmatch(r"\[(PAD|UNK|CLS|SEP|MASK)\]", t)]
        self.special = {t: self.ids[t] for t in special}
        self._special = re.compile(f"({'|'.join(map(re.escape, special))})")

    def encode(self, text, pair=None):
        """Return the token ids of [CLS] text [SEP], or of [CLS] text [SEP] pair [SEP], [T] int64.

        Args:
            text   the text. A word for which there are no pieces becomes [UNK]
            pair   a second text. If None, the ids are those of [CLS] text [SEP]

        Raises:
            TypeError: `text` or `pair` is not a string
        """
        check_text("WordPiece.encode", text, BATCH)
        if pair is not None:
            check_text("WordPiece.encode, pair", pair, ONCE)
        pieces = ["[CLS]", *self.pieces(text), "[SEP]"]
        pieces += [] if pair is None else [*self.pieces(pair), "[SEP]"]
        return np.array([self.ids[p] for p in pieces], np.int64)

    def batch(self, texts):
        """Encode a list of B texts, as [CLS] text [SEP], padded with [PAD] to the longest.

        Args:
            texts   list of the texts

        Returns:
            (ids [B, T] int64, keep [B, T] bool), where keep is True for tokens and False for
            padding

        Raises:
            TypeError: `texts` is not a list of strings
        """
        if isinstance(texts, str):
            raise TypeError(
                "WordPiece.batch: texts must be a list of texts, got a single text. Write [text]"
            )
        if not hasattr(texts, "__iter__"):
            raise TypeError(f"WordPiece.batch: texts must be a list of texts, got {texts!r}")
        texts = list(texts)
        for i, text in enumerate(texts):
            check_text(f"WordPiece.batch, texts[{i}]", text, "For pairs of texts, use encode")
        return padded([self.encode(t) for t in texts], self.ids["[PAD]"])

    def decode(self, ids):
        """Return the text of the token ids `ids` [T], with one space between words.

        Special tokens such as [CLS] are included.

        Raises:
            ValueError: ids are not integers [T] from 0 to the number of tokens - 1
        """
        text = " ".join(self.tokens[i] for i in checked("WordPiece.decode", ids, len(self)))
        return text.replace(" ##", "")

    def pieces(self, text):
        """Return the list of the pieces of `text` as strings, without adding [CLS] and [SEP].

        A word for which there are no pieces becomes [UNK]. Raises TypeError if `text` is not a
        string.
        """
        check_text("WordPiece.pieces", text, ONCE)
        found = []
        for part in self._special.split(text):
            if part in self.special:
                found.append(part)
            else:
                for word in self.words(part):
                    found += self._cut(word)
        return found

    def unknown(self, text):
        """Return the list of the words of `text` that have no pieces and thus become [UNK].

        Each word is listed once, in the form that `words` returns, and in the order of the first
        occurrences. Raises TypeError if `text` is not a string.
        """
        check_text("WordPiece.unknown", text, ONCE)
        parts = [p for p in self._special.split(text) if p not in self.special]
        words = dict.fromkeys(word for part in parts for word in self.words(part))
        return [word for word in words if self._cut(word) == ["[UNK]"]]

    def words(self, text):
        """Return the words and punctuation marks of `text`, before they are cut into pieces.

        Control characters are removed, and if `lower` is True, words are in lower case without
        accents. A special token such as [CLS] is split into its brackets and its name. Raises
        TypeError if `text` is not a string.
        """
        check_text("WordPiece.words", text, ONCE)
        text = "".join(map(_spaced, text))
        if self.lower:
            text = unicodedata.normalize("NFD", text)
            text = "".join(c for c in text if unicodedata.category(c) != "Mn").lower()
        return "".join(f" {c} " if _is_sign(c) else c for c in text).split()

    def _cut(self, word):
        """Cut a word by repeatedly taking the longest known piece at the start of the rest."""
        found, start = [], 0
        if len(word) > LONGEST:
            return ["[UNK]"]
        while start < len(word):
            before = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((e for e in ends if before + word[start:e] in self.ids), None)
            if end is None:
                return ["[UNK]"]
            found.append(before + word[start:end])
            start = end
        return found

    def __len__(self):
        return len(self.tokens)


def _lines(path):
    """Return the lines of a vocabulary file. Empty or repeated lines are an error."""
    content, first = Path(path).read_bytes(), {}
    try:
        lines = content.decode("utf-8-sig").replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"WordPiece: {path}, line {line}: byte {content[error.start]:#x} is not UTF-8. Save "
            "the file as UTF-8"
        ) from None
    if not lines[-1]:
        del lines[-1]
    for number, piece in enumerate(lines, 1):
        if not piece:
            raise ValueError(
                f"WordPiece: {path}, line {number} is empty. Write one piece on each line"
            )
        if first.setdefault(piece, number) < number:
            raise ValueError(
                f"WordPiece: {path}, line {number}: {piece[:100]!r} already appears on line "
                f"{first[piece]}. Remove one of the two"
            )
    return lines


@lru_cache(4096)  # a text repeats a small number of characters many times
def _spaced(c):
    """Return the replacement of character c, which is a space, nothing, c between spaces, or c."""
    category = unicodedata.category(c)
    if c in "\t\n\r" or category == "Zs":
        return " "
    if c == "\ufffd" or category in ("Cc", "Cf", "Cs", "Co", "Cn"):
        return ""
    if any(first <= ord(c) <= last for first, last in CHINESE):
        return f" {c} "
    return c


@lru_cache(4096)
def _is_sign(c):
    """Return whether c is punctuation: ASCII except letters and digits, or Unicode's category P."""
    return (c.isascii() and c.isprintable() and not c.isalnum() and c != " ") or (
        unicodedata.category(c).startswith("P")
    )
