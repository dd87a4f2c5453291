"""Byte-pair encoding, which repeatedly merges the most frequent pair of neighbouring tokens.

Source: Sennrich, Haddow, Birch 2016, and for bytes Radford et al. 2019.
"""

import re
from collections import Counter, defaultdict

import numpy as np

from tinyattn.data.tokenizers.simple import check_text, checked
from tinyattn.data.tokenizers.words import split_digits, split_gpt2
from tinyattn.engine.ranges import check_range


class BytePairs:
    """A byte-pair tokenizer. Its tokens are bytes, and pairs of tokens that were merged into one.

        tokenizer = BytePairs.train(text, 1000)
        tokenizer.encode("the theory")

    `len(tokenizer)` is the number of tokens.

    Args:
        tokens    list of the tokens as bytes, such as b"th", in the order of their ids from 0
        merges    list of triples of token ids (a, b, c) in order of priority: neighbours a and b
                  become c
        special   {text: token id} of special tokens, such as the end of a text. They are found
                  before a text is cut into words. If None, there are none
        split     function that cuts a text into a list of words, within which pairs are merged. The
                  default is the rule of GPT-2
        unknown   token id for bytes that have no token. If None, `encode` raises an error for them

    Raises:
        TypeError: special is neither a dictionary nor None
    """

    def __init__(self, tokens, merges, special=None, split=split_gpt2, unknown=None):
        if not (special is None or isinstance(special, dict)):
            raise TypeError(
                f"BytePairs: special must be a dictionary {{text: token id}} or None, got "
                f"{special!r}"
            )
        self.tokens, self.special, self.split = list(tokens), dict(special or {}), split
        self.merges = {(a, b): (rank, c) for rank, (a, b, c) in enumerate(merges)}
        single = {
            t[0]: i
            for i, t in enumerate(self.tokens)
            if len(t) == 1 and i not in self.special.values()
        }
        self.bytes = [single.get(b, unknown) for b in range(256)]
        longest_first = sorted(self.special, key=len, reverse=True)
        self._special = re.compile(f"({'|'.join(map(re.escape, longest_first))})")
        self._known = {}  # tokens of words seen before

    @classmethod
    def train(cls, text, vocab_size, special=(), split=split_gpt2):
        """Learn merges from a text until there are vocab_size tokens, and return the tokenizer.

        The token ids 0 to 255 are the bytes. The merged tokens follow in the order in which they
        were found, and the special tokens come last. If several pairs are equally frequent, the
        pair with the lowest token ids is merged. If no pair occurs at least twice, training stops
        with fewer than vocab_size tokens.

        Args:
            text         the text
            vocab_size   number of tokens, including the 256 bytes and the special tokens
            special      list of texts that each become one token
            split        function that cuts a text into a list of words, within which pairs are
                         merged. The default is the rule of GPT-2

        Returns:
            a `BytePairs`

        Raises:
            TypeError: text is not a string, vocab_size is not a whole number, or special is not a
                list of strings
            ValueError: vocab_size is below 256 plus the number of special tokens, or a special
                token is empty or repeated
        """
        check_text("BytePairs.train", text, advice='Join several texts with "".join(texts)')
        check_range("BytePairs.train", whole=True, vocab_size=vocab_size)
        if not isinstance(special, list | tuple) or not all(isinstance(s, str) for s in special):
            advice = f". Write special=[{special!r}]" if isinstance(special, str) else ""
            raise TypeError(
                f"BytePairs.train: special must be a list of texts, got {special!r}{advice}"
            )
        if "" in special or len(set(special)) < len(special):
            raise ValueError(
                "BytePairs.train: special must contain different texts, none of them empty, got "
                f"{list(special)}"
            )
        if vocab_size < 256 + len(special):
            s = "s" * (len(special) != 1)
            raise ValueError(
                f"BytePairs.train: expected vocab_size >= {256 + len(special)} (256 bytes and "
                f"{len(special)} special token{s}), got vocab_size={vocab_size}"
            )
        tokens, merges = [bytes([b]) for b in range(256)], []
        pairs = _Pairs(Counter(split(text)))
        while len(tokens) + len(special) < vocab_size:
            best = pairs.most_frequent()
            if best is None:
                break
            merges.append((*best, len(tokens)))
            pairs.merge(best, len(tokens))
            tokens.append(tokens[best[0]] + tokens[best[1]])
        numbers = {s: len(tokens) + i for i, s in enumerate(special)}
        return cls([*tokens, *(s.encode() for s in special)], merges, numbers, split)

    @classmethod
    def from_gguf(cls, metadata):
        """Build the byte-pair tokenizer that is stored in a GGUF file.

        The file must name the kind "gpt2" and the rule of GPT-2 or SmolLM for cutting a text into
        words.

        Args:
            metadata   {key: value} of the file, as in `tinyattn.models.gguf.read(path).metadata`

        Returns:
            a `BytePairs`

        Raises:
            TypeError: metadata is not a dictionary
            ValueError: the tokenizer is of another kind or cuts words by another rule, or an entry
                is missing or damaged
        """
        if not isinstance(metadata, dict):
            raise TypeError(
                "BytePairs.from_gguf: metadata must be a dictionary, the field metadata of a GGUF, "
                f"got an object of type {type(metadata).__name__}"
            )
        kind, pre = (metadata.get(f"tokenizer.ggml.{k}") for k in ("model", "pre"))
        pre = "default" if pre is None else pre
        splits = {
            "gpt2": split_gpt2,
            "gpt-2": split_gpt2,
            "default": split_gpt2,
            "smollm": split_digits,
        }
        if kind is None:
            _misfit("model", "missing, so metadata contains no tokenizer")
        if kind != "gpt2" or not isinstance(pre, str) or pre not in splits:
            raise ValueError(
                f"BytePairs.from_gguf: the tokenizer is {kind!r} with the pre-tokenizer {pre!r}, "
                f"which is not supported. Use a file with the tokenizer 'gpt2' and "
                f"one of the pre-tokenizers {', '.join(splits)}"
            )
        texts, types = _texts(metadata, "tokens"), _types(metadata)
        unknown = metadata.get("tokenizer.ggml.unknown_token_id")
        if unknown is not None and not (type(unknown) is int and 0 <= unknown < len(texts)):
            _misfit(
                "unknown_token_id", f"{unknown!r}, expected a token id from 0 to {len(texts) - 1}"
            )
        ids = {t: i for i, t in enumerate(texts)}
        merges = [(ids.get(a), ids.get(b), ids.get(a + b)) for a, b in _merges(metadata)]
        special = {t: i for t, i in ids.items() if types[i] == 3}  # control tokens
        if "" in special:
            _misfit("tokens", f"a list in which the special token {special['']} is an empty text")
        return cls(
            [_to_bytes(t) if n == 1 else t.encode() for t, n in zip(texts, types, strict=True)],
            [merge for merge in merges if None not in merge],
            special,
            splits[pre],
            unknown,
        )

    def encode(self, text):
        """Return the token ids of `text`, [T] int64.

        A special token in the text becomes its own token id.

        Raises:
            TypeError: `text` is not a string
            ValueError: a byte has no token, and there is no token for unknown bytes
        """
        check_text("BytePairs.encode", text)
        ids = []
        for part in self._special.split(text) if self.special else [text]:
            if part in self.special:
                ids.append(self.special[part])
            else:
                for word in self.split(part):
                    ids += self._word(word)
        return np.array(ids, np.int64)

    def decode(self, ids):
        """Return the text of the token ids `ids` [T], with � for bytes that are not UTF-8.

        Raises:
            ValueError: ids are not integers [T] from 0 to the number of tokens - 1
        """
        parts = [self.tokens[i] for i in checked("BytePairs.decode", ids, len(self))]
        return b"".join(parts).decode("utf-8", errors="replace")

    def _word(self, word):
        """Return the token ids of one word, by repeatedly applying the merge with top priority."""
        if word in self._known:
            return self._known[word]
        ids = [self.bytes[b] for b in word.encode("utf-8")]
        if None in ids:
            c = next(c for c in word if None in [self.bytes[b] for b in c.encode("utf-8")])
            raise ValueError(
                f"BytePairs.encode: {c!r} has a byte that is not a token, and there is no token "
                "for unknown bytes. Create the tokenizer with BytePairs(..., unknown=id), or "
                "remove this character from the text"
            )
        while len(ids) > 1:
            known = [p for p in zip(ids, ids[1:], strict=False) if p in self.merges]
            if not known:
                break
            pair = min(known, key=self.merges.get)
            _, new = self.merges[pair]
            ids = merged(ids, pair, new)
        self._known[word] = ids
        return ids

    def __len__(self):
        return len(self.tokens)


def _texts(metadata, name):
    """Return the entry `name` of the metadata, which must be a list of texts."""
    found = metadata.get(f"tokenizer.ggml.{name}")
    if found is None:
        _misfit(name, "missing, expected a list of texts")
    if not isinstance(found, list):
        _misfit(name, f"of type {type(found).__name__}, expected a list of texts")
    return found


def _types(metadata):
    """Return the kind of each token, 1 for an ordinary token and 3 for a control token."""
    types, n = metadata.get("tokenizer.ggml.token_type"), len(_texts(metadata, "tokens"))
    if types is None:
        _misfit("token_type", f"missing, expected a whole number for each of the {n} tokens")
    types = np.asarray(types)
    if types.shape != (n,) or types.dtype.kind not in "iu":
        _misfit(
            "token_type",
            f"{types.dtype} of shape {types.shape}, expected a whole number for each of the {n} "
            "tokens",
        )
    return types.tolist()


def _merges(metadata):
    """Return pairs of tokens that become one, in the order in which they were learned."""
    pairs = [line.split(" ") for line in _texts(metadata, "merges")]
    for i, pair in enumerate(pairs):
        if len(pair) != 2:
            _misfit(
                "merges",
                f"{' '.join(pair)[:100]!r} at index {i}, expected two tokens separated by a space",
            )
    return pairs


def _misfit(name, what):
    raise ValueError(f"BytePairs.from_gguf: tokenizer.ggml.{name} is {what}")


def merged(ids, pair, new):
    """Return token ids in which each occurrence of a pair, from the left, is one new token id.

    Args:
        ids    list of token ids
        pair   two token ids (a, b)
        new    token id
    """
    found, i = [], 0
    while i < len(ids):
        here = i + 1 < len(ids) and (ids[i], ids[i + 1]) == pair
        found.append(new if here else ids[i])
        i += 2 if here else 1
    return found


class _Pairs:
    """The counts of all pairs of neighbouring tokens, which are updated as pairs are merged."""

    def __init__(self, words):
        self.words = [[list(w.encode("utf-8")), n] for w, n in words.items()]
        self.count = Counter()
        self.where = defaultdict(set)  # pair: indices of the words that contain it
        for k in range(len(self.words)):
            self._add(k, +1)

    def _add(self, k, sign):
        """Add the pairs of word k to the counts if `sign` is 1, or subtract them if it is -1."""
        ids, n = self.words[k]
        for pair in zip(ids, ids[1:], strict=False):
            self.count[pair] += sign * n
            if sign > 0:
                self.where[pair].add(k)

    def most_frequent(self):
        """Return the pair that occurs most often, or None if none occurs twice."""
        best = min(self.count, key=lambda pair: (-self.count[pair], pair), default=None)
        return best if best is not None and self.count[best] > 1 else None

    def merge(self, pair, new):
        """Replace the pair with the token `new` in all words."""
        for k in self.where.pop(pair):
            self._add(k, -1)
            self.words[k][0] = merged(self.words[k][0], pair, new)
            self._add(k, +1)
        del self.count[pair]


# ---------------------------------------------------------------- how files write bytes


def _letters():
    """Return {character: byte}. GPT-2 writes spaces and invisible bytes as characters >= 256."""
    visible = [
        *range(ord("!"), ord("~") + 1),
        *range(ord("¡"), ord("¬") + 1),
        *range(ord("®"), ord("ÿ") + 1),
    ]
    rest = [b for b in range(256) if b not in visible]
    return {chr(b): b for b in visible} | {chr(256 + i): b for i, b in enumerate(rest)}


LETTERS = _letters()


NO_LETTER = dict.fromkeys(range(256), 0xFFFF)
# 0xFFFF is not a character of Latin-1, so encoding it raises an error
BYTES = NO_LETTER | {ord(letter): b for letter, b in LETTERS.items()}


def _to_bytes(token):
    """Return the bytes of a token that is written in the characters of GPT-2."""
    try:
        return token.translate(BYTES).encode("latin-1")
    except UnicodeEncodeError:
        return token.encode()
