"""Generated sentences in which a verb must agree with a distant subject: toy-agreement.

    quietly the dogs often today <verb> the trout        →  plural: "see", not "sees"

The verb is hidden, and only the subject determines whether it is singular or plural. The words
between subject and verb are either fillers, which are neither singular nor plural, or clauses that
have other subjects. Source: slide K11.
"""

from typing import NamedTuple

import numpy as np

from tinyattn.data.tokenizers.simple import checked
from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_range

PAD, VERB = 0, 1
SINGULAR = ("bear", "dog", "cat", "horse", "duck", "snake")
PLURAL = ("bears", "dogs", "cats", "horses", "ducks", "snakes")
# these forms are the same for singular and plural
PAST_VERBS = ("saw", "liked", "heard", "followed")
FILLERS = ("quietly", "often", "today", "perhaps", "still", "really", "here", "again")
WORDS = ("<pad>", "<verb>", "the", "that", "trout", *SINGULAR, *PLURAL, *PAST_VERBS, *FILLERS)
NUMBER = {word: number for number, word in enumerate(WORDS)}
_SUBJECTS = np.array([[NUMBER[w] for w in kind] for kind in (SINGULAR, PLURAL)])
_PAST = np.array([NUMBER[w] for w in PAST_VERBS])
_FILLERS = np.array([NUMBER[w] for w in FILLERS])


class Agreement(NamedTuple):
    """A set of n sentences, each with a hidden verb and the subject that it must agree with.

    Attributes:
        ids       token ids, indices into `tinyattn.data.sentences.WORDS`, with 0 (PAD) after the
                  end [n, T] int64
        plural    1 if the hidden verb is plural, and 0 if it is singular [n] int64
        verb      position of the hidden verb in the sentence [n] int64
        subject   position of the subject with which this verb agrees [n] int64
    """

    ids: np.ndarray
    plural: np.ndarray
    verb: np.ndarray
    subject: np.ndarray


def agreement(n, distance, before=2, rng=None):
    """Generate n sentences with distance - 1 fillers between the subject and its verb.

    Each sentence begins with up to `before` fillers, followed by `the` and the subject. The verb is
    followed by `the trout`, which may be singular or plural. All sentences are padded to the length
    before + largest distance + 4.

    Args:
        n          number of sentences
        distance   number of words from the subject to its verb, at least 1 (the verb follows
                   directly), or one number for each sentence [n]
        before     largest number of fillers before the subject
        rng        seed or numpy.random.Generator, or None for the default generator

    Returns:
        `Agreement`

    Raises:
        TypeError: n or before is not a whole number
        ValueError: n or before is negative, or distance is neither a whole number >= 1 nor n such
            numbers
    """
    check_range("agreement", 0, whole=True, n=n, before=before)
    given, distance = distance, np.asarray(distance)
    if distance.dtype.kind not in "iu" or (distance < 1).any():
        raise ValueError(f"agreement: distance must be whole numbers >= 1, got {given!r}")
    rng, farthest = generator(rng), int(np.max(distance, initial=1))
    if distance.shape not in ((), (n,)):
        raise ValueError(
            f"agreement: distance must be one number, or one for each sentence (n={n}), got shape "
            f"{distance.shape}"
        )
    distance = np.broadcast_to(distance, (n,))
    T = before + farthest + 4
    plural = rng.integers(2, size=n)
    subject = 1 + rng.integers(before + 1, size=n)
    verb, rows = subject + distance, np.arange(n)
    ids = rng.choice(_FILLERS, size=(n, T))
    ids[rows, subject] = _SUBJECTS[plural, rng.integers(len(SINGULAR), size=n)]
    for place, word in (
        (subject - 1, NUMBER["the"]),
        (verb, VERB),
        (verb + 1, NUMBER["the"]),
        (verb + 2, NUMBER["trout"]),
    ):
        ids[rows, place] = word
    ids[np.arange(T) > verb[:, None] + 2] = PAD
    return Agreement(ids, plural, verb, subject)


def nested(n, depth, before=2, rng=None):
    """Generate n sentences with nested clauses, in which the verb of the first subject is hidden.

        often the dog that the cats that the bear saw liked <verb>        (depth 2)

    Every subject is singular or plural independently of the others. The verbs of the clauses are in
    the past tense, which is the same in singular and plural. The hidden verb is 4 · depth + 1 words
    after the first subject. Only this subject determines whether it is singular or plural, so
    counting plurals is not enough. Each sentence begins with up to `before` fillers, followed by
    `the` and the first subject. All sentences are padded to the length before + 4 · depth + 3. With
    depth 0, a sentence has the form "the dog <verb>".

    Args:
        n        number of sentences
        depth    number of nested clauses
        before   largest number of fillers before the first subject
        rng      seed or numpy.random.Generator, or None for the default generator

    Returns:
        `Agreement`

    Raises:
        TypeError: n, depth or before is not a whole number
        ValueError: n, depth or before is negative
    """
    check_range("nested", 0, whole=True, n=n, depth=depth, before=before)
    rng = generator(rng)
    numbers = rng.integers(2, size=(n, depth + 1))
    subjects = _SUBJECTS[numbers, rng.integers(len(SINGULAR), size=numbers.shape)]
    clauses = np.full((n, 4 * depth + 3), NUMBER["that"])  # the S that the S that the S …
    clauses[:, 0 : 3 * depth + 1 : 3], clauses[:, 1 : 3 * depth + 2 : 3] = NUMBER["the"], subjects
    clauses[:, 3 * depth + 2 : -1] = rng.choice(_PAST, size=(n, depth))  # … V V V
    clauses[:, -1] = VERB
    fillers = rng.choice(_FILLERS, size=(n, before))
    ids = np.concatenate([fillers, clauses, np.full((n, before), PAD)], axis=1)
    # this number of fillers before the clause is removed
    shown = before - rng.integers(before + 1, size=n)
    ids = np.take_along_axis(ids, shown[:, None] + np.arange(before + 4 * depth + 3), axis=1)
    subject = before - shown + 1
    return Agreement(ids, numbers[:, 0], subject + 4 * depth + 1, subject)


def read(ids):
    """Return the words of one sentence as a text, without padding.

    Args:
        ids   token ids of the sentence [T], indices into WORDS

    Raises:
        ValueError: ids are not whole numbers [T] from 0 to the number of words - 1
    """
    return " ".join(WORDS[i] for i in checked("read", ids, len(WORDS)) if i != PAD)
