"""The sentence pairs that are shipped: right phrases, cut into pieces that fit together."""

import re

import numpy as np
import pytest

from tinyattn.data import translation
from tinyattn.data.translation import from_pairs, phrases, software, tokenizer
from tools.data.make_translation import make


def test_numbers_in_words():
    words = {side: translation._lines(side, "cardinals") for side in ("en", "de", "fr")}
    assert {side: lines[799] for side, lines in words.items()} == {
        "en": "seven hundred and ninety-nine",
        "de": "siebenhundertneunundneunzig",
        "fr": "sept cent quatre-vingt-dix-neuf",
    }
    assert all(len(set(lines)) == 10_000 for lines in words.values())
    right = dict(zip(words["en"], words["de"], strict=True))
    assert all(right[e] == g for e, g in phrases(50, "de", rng=0, kinds=("number",)))


@pytest.mark.parametrize(
    ("language", "ahead", "past"), [("de", "in .+n", "vor .+n"), ("fr", "dans .+", "il y a .+")]
)
def test_times(language, ahead, past):
    for english, other in phrases(200, language, rng=0, kinds=("time",)):
        assert re.fullmatch(past if english.endswith(" ago") else ahead, other)
        assert not re.search("(-|and |in )one (second|minute|hour|day|week|month|year)", english)


def test_a_date_is_the_pattern_of_cldr_filled_with_words():
    day = translation.datetime.date(1905, 5, 3)
    assert translation._dated("en", day, 0) == "Wednesday, May third, nineteen oh-five"
    assert translation._dated("de", day, 0) == "Mittwoch, der dritte Mai neunzehnhundertfünf"
    assert translation._dated("fr", day, 1) == "trois mai mille neuf cent cinq"


def test_phrases_are_different_and_reproducible():
    first = phrases(600, rng=3)
    assert len({english for english, _ in first}) == 600
    assert first == phrases(600, rng=3) != phrases(600, rng=4)
    dates = sum(bool(re.search("day,|[a-z], [a-z]+teen|, two|, twenty", e)) for e, _ in first)
    assert 0.4 < dates / 600 < 0.7
    assert phrases(0) == []


@pytest.mark.parametrize("language", ["de", "fr"])
def test_every_phrase_is_made_of_known_pieces(language):
    cutter = tokenizer(language)
    for pair in phrases(500, language, rng=1):
        for text in pair:
            ids = cutter.encode(text)
            assert (ids[0], ids[-1]) == (cutter.ids["[CLS]"], cutter.ids["[SEP]"])
            assert cutter.ids["[UNK]"] not in ids
            whole = "".join(cutter.tokens[i].removeprefix("##") for i in ids[1:-1])
            assert whole == text.replace(" ", "")


def test_long_german_numbers_are_cut_where_they_are_put_together():
    cutter = tokenizer("de")
    numbers = translation._lines("de", "cardinals")
    assert cutter.pieces(numbers[1224]) == [
        "ein",
        "##tausend",
        "##zwei",
        "##hundert",
        "##vier",
        "##und",
        "##zwanzig",
    ]
    used = {piece for word in numbers for piece in cutter.pieces(word)}
    assert "[UNK]" not in used and len(used) < 70
    assert cutter.ids["[PAD]"] == 0


@pytest.mark.parametrize("language", ["de", "fr"])
def test_messages_are_short_and_translated(language):
    pairs = software(language)
    assert len(pairs) > 700 and len(dict(pairs)) == len(pairs)
    assert all(0 < len(text) <= 80 and "\n" not in text for pair in pairs for text in pair)
    assert dict(pairs)["Tuesday"] == {"de": "Dienstag", "fr": "mardi"}[language]


def test_own_pairs_become_ids():
    source, target, cutter = from_pairs([("A cat.", "Eine Katze."), ["dogs", "die Hunde"]])
    assert source.shape == (2, 5) and target.shape == (2, 5)
    assert cutter.decode(source[0]) == "[CLS] A cat . [SEP]"
    assert cutter.decode(target[1]) == "[CLS] die Hunde [SEP] [PAD]"
    assert cutter.ids["[PAD]"] == 0 and cutter.unknown("a cat dogs fly") == ["a", "fly"]
    again = from_pairs([("cat", "Katze")], cutter)
    assert again[2] is cutter and again[0].shape == (1, 3)


def test_the_maker_makes_the_same(tmp_path):
    for package in ("babel", "num2words", "django"):
        pytest.importorskip(package)
    make(tmp_path / "translation.npz")
    with np.load(tmp_path / "translation.npz") as new:
        for language in ("en", "de", "fr"):
            for name in ("cardinals", "years", "days", "months", "weekdays", "dates", "times"):
                lines = new[f"{language}_{name}"].tobytes().decode().split("\n")
                assert lines == translation._lines(language, name)
