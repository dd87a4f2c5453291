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
def test_clauses_inside_each_other_agree_from_the_inside(depth):
    s = nested(40, depth, rng=0)
    assert s.ids.shape == (40, 4 * depth + 3) and (s.verb - s.subject == 4 * depth + 1).all()
    for ids, plural in zip(s.ids, s.plural, strict=True):
        words = [WORDS[i] for i in ids]
        assert number_of(words[1]) == plural and ids[-1] == VERB
        subjects, verbs = words[1 : 3 * depth + 2 : 3], words[3 * depth + 2 : -1]
        for subject, verb in zip(subjects[:0:-1], verbs, strict=True):
            assert number_of(subject) == (verb in sentences.PLURAL_VERBS)


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
    assert agreement(0, 3).ids.shape == (0, 9) and nested(0, 1).ids.shape == (0, 7)


@pytest.mark.parametrize(
    "call", [lambda: agreement(2, 0), lambda: agreement(2, 1.5), lambda: nested(1, -1)]
)
def test_bad_input_is_explained(call):
    with pytest.raises(ValueError, match="expected n ≥ 0"):
        call()
