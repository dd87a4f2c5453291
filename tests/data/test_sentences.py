"""Generated sentences: what is promised about subject, verb and distance holds."""

import numpy as np
import pytest

from tinyattn.data import sentences
from tinyattn.data.sentences import FILLERS, PAD, PLURAL, SINGULAR, VERB, WORDS, agreement, nested


def number_of(word):
    return {**dict.fromkeys(SINGULAR, 0), **dict.fromkeys(PLURAL, 1)}[word]


@pytest.mark.parametrize("distance", [1, 2, 9, np.arange(1, 51)])
def test_a_verb_stands_behind_its_subject(distance):
    s = agreement(50, distance, rng=0)
    np.testing.assert_array_equal(s.verb - s.subject, np.broadcast_to(distance, 50))
    for ids, plural, verb, subject in zip(*s, strict=True):
        words = [WORDS[i] for i in ids]
        assert number_of(words[subject]) == plural and ids[verb] == VERB
        assert words[subject - 1] == "the" and words[verb + 1 : verb + 3] == ["the", "trout"]
        between = words[: subject - 1] + words[subject + 1 : verb]
        assert set(between) <= set(FILLERS)
        assert (ids[verb + 3 :] == PAD).all() and (ids[: verb + 3] != PAD).all()


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_clauses_stand_inside_each_other(depth):
    s = nested(40, depth, rng=0)
    assert s.ids.shape == (40, 4 * depth + 5) and (s.verb - s.subject == 4 * depth + 1).all()
    assert set(s.subject) == {1, 2, 3}
    for ids, plural, verb, subject in zip(*s, strict=True):
        words = [WORDS[i] for i in ids]
        assert number_of(words[subject]) == plural and ids[verb] == VERB
        assert set(words[: subject - 1]) <= set(FILLERS) and words[subject - 1] == "the"
        assert (ids[verb + 1 :] == PAD).all() and (ids[: verb + 1] != PAD).all()
        assert set(words[subject : verb - depth : 3]) <= {*SINGULAR, *PLURAL}
        assert words[subject + 1 : verb - depth].count("that") == depth
        assert set(words[verb - depth : verb]) <= set(sentences.PAST_VERBS)


def test_only_the_first_subject_knows_the_number_of_the_nested_verb():
    s = nested(4000, 3, rng=0)
    plural = np.isin(s.ids, [sentences.NUMBER[w] for w in PLURAL])
    rows = np.arange(4000)
    np.testing.assert_array_equal(plural[rows, s.subject], s.plural)
    for later in (3, 6, 9):
        assert abs((plural[rows, s.subject + later] == s.plural).mean() - 0.5) < 0.03


def test_both_numbers_are_as_frequent_and_a_seed_repeats():
    for make in (lambda: agreement(4000, 3, rng=1), lambda: nested(4000, 2, rng=1)):
        assert abs(make().plural.mean() - 0.5) < 0.03
        for a, b in zip(make(), make(), strict=True):
            np.testing.assert_array_equal(a, b)


def test_read_leaves_the_padding_out():
    s = agreement(2, [1, 6], before=0, rng=2)
    assert sentences.read(s.ids[0]).split()[2:] == ["<verb>", "the", "trout"]
    assert len(set(WORDS)) == len(WORDS)


def test_no_sentences():
    assert agreement(0, 3).ids.shape == (0, 9) and nested(0, 1).ids.shape == (0, 9)
