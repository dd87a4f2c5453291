"""The English text, its windows, and the memory tasks."""

import re

import numpy as np

from tinyattn import data
from tinyattn.data import recall
from tinyattn.data.text import ALPHABET, clean


def test_the_text_is_long_and_clean():
    text = data.english()
    assert 300_000 < len(text) < 600_000
    assert set(text) <= set(ALPHABET)
    assert not re.search(r"  |\n\n|\n | \n", text)
    assert text.count(" the ") > 3000
    assert data.english() == text


def test_cleaning_keeps_sentences_and_drops_ornament():
    raw = "Title\n=====\n\nA “word” – and\n   one more…\n\n\n* **bold** tilde~\n"
    assert clean(raw) == 'Title\nA "word" - and one more...\nbold tilde\n'
    assert clean("a -> b == c\n") == "a -> b == c\n"


def test_any_version_of_the_text_can_be_coded():
    letters = data.tokenizers.Characters(data.english())
    assert letters.decode(letters.encode(data.english()[:500])) == data.english()[:500]


def test_windows_go_on_where_the_ones_before_ended():
    ids = np.arange(100)
    pieces = data.windows(ids, batch_size=3, length=8)
    seen = list(pieces)
    assert len(pieces) == len(seen) == 4
    for x, y in seen:
        assert x.shape == y.shape == (3, 8)
        np.testing.assert_array_equal(y, x + 1)
    for (_, before), (x, _) in zip(seen[:-1], seen[1:], strict=True):
        np.testing.assert_array_equal(x[:, 0], before[:, -1])
    every = np.concatenate([x for x, _ in seen], axis=1)
    np.testing.assert_array_equal(np.sort(every.ravel()), np.arange(96))
    assert len(list(pieces)) == 4, "it can be gone through again"


def test_the_last_target_may_be_the_last_id():
    ((x, y),) = data.windows(np.arange(9), batch_size=2, length=4)
    np.testing.assert_array_equal(x, [[0, 1, 2, 3], [4, 5, 6, 7]])
    np.testing.assert_array_equal(y[-1], [5, 6, 7, 8])


def test_first_bit():
    x, y = recall.first_bit(200, 7, rng=0)
    assert x.shape == (200, 7, 1)
    assert x.dtype == np.float32
    assert set(np.unique(x)) == {-1, 1}
    np.testing.assert_array_equal(y, x[:, 0, 0] == 1)
    assert 60 < y.sum() < 140
    np.testing.assert_array_equal(recall.first_bit(200, 7, rng=0)[0], x)


def test_delayed_bit():
    x, y, when = recall.delayed_bit(300, 20, rng=1)
    rows = np.arange(300)
    np.testing.assert_array_equal(x[rows, when[:, 0], 0], 2 * y - 1)
    np.testing.assert_array_equal(x[rows, when[:, 1], 1], 1)
    assert (np.abs(x[:, :, 0]).sum(axis=1) == 1).all()
    assert (x[:, :, 1].sum(axis=1) == 1).all()
    assert when[:, 0].max() < 5
    assert when[:, 1].min() >= 15
