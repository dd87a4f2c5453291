"""Generated sentences in which a verb must agree with a subject far away: toy-agreement.

    quietly the dogs often today <verb> the trout        →  plural: "see", not "sees"

The verb is hidden; whether it is singular or plural is known by the subject alone. What stands
between them is either fillers, which have no number, or clauses with subjects of their own.
Slide K11.
"""

from typing import NamedTuple

import numpy as np

from tinyattn.engine.random import generator

PAD, VERB = 0, 1
SINGULAR = ("bear", "dog", "cat", "horse", "duck", "snake")
PLURAL = ("bears", "dogs", "cats", "horses", "ducks", "snakes")
PAST_VERBS = ("saw", "liked", "heard", "followed")  # the same for one and for many
FILLERS = ("quietly", "often", "today", "perhaps", "still", "really", "here", "again")
WORDS = ("<pad>", "<verb>", "the", "that", "trout", *SINGULAR, *PLURAL, *PAST_VERBS, *FILLERS)
NUMBER = {word: number for number, word in enumerate(WORDS)}
_SUBJECTS = np.array([[NUMBER[w] for w in kind] for kind in (SINGULAR, PLURAL)])
_PAST = np.array([NUMBER[w] for w in PAST_VERBS])
_FILLERS = np.array([NUMBER[w] for w in FILLERS])


class Agreement(NamedTuple):
    """n sentences; each has one hidden verb and the subject it must agree with."""

    ids: np.ndarray  # [n, T] int64, PAD behind the end
    plural: np.ndarray  # [n] int64: 1 if the hidden verb is plural
    verb: np.ndarray  # [n] int64: place of the hidden verb
    subject: np.ndarray  # [n] int64: place of its subject


def agreement(n, distance, before=2, rng=None):
    """n sentences with the verb `distance` words behind its subject: distance - 1 fillers between.

    distance: a number, or one for each sentence [n]. In front of the subject stand `the` and up to
    `before` fillers, behind the verb `the trout`, which has no number. All are padded to the
    length before + largest distance + 4.
    """
    rng, farthest = generator(rng), int(np.max(distance, initial=1))
    distance = np.asarray(distance)
    if distance.shape not in ((), (n,)):
        raise ValueError(
            f"agreement: distance is a number or one for each of the {n} sentences, got shape "
            f"{distance.shape}"
        )
    distance = np.broadcast_to(distance, (max(n, 0),))
    if n < 0 or before < 0 or distance.dtype.kind not in "iu" or (distance < 1).any():
        raise ValueError(
            "agreement: expected n ≥ 0, before ≥ 0 and whole distances ≥ 1, got "
            f"n={n}, before={before}, distance={distance.tolist()[:5]}"
        )
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
    """n sentences with `depth` clauses inside each other; the last verb, of the first subject, is
    hidden.

        often the dog that the cats that the bear saw liked <verb>        (depth 2)

    Every subject has a number of its own, and the verbs inside stand in the past, which has none.
    So nothing but the first subject knows the number of the hidden verb, 4 · depth + 1 words behind
    it: counting plurals does not help. In front of the first subject stand up to `before` fillers
    and `the`. All are padded to the length before + 4 · depth + 3. depth 0: the dog <verb>.
    """
    if n < 0 or depth < 0 or before < 0:
        raise ValueError(
            f"nested: expected n ≥ 0, depth ≥ 0 and before ≥ 0, got {n}, {depth} and {before}"
        )
    rng = generator(rng)
    numbers = rng.integers(2, size=(n, depth + 1))
    subjects = _SUBJECTS[numbers, rng.integers(len(SINGULAR), size=numbers.shape)]
    clauses = np.full((n, 4 * depth + 3), NUMBER["that"])  # the S that the S that the S …
    clauses[:, 0 : 3 * depth + 1 : 3], clauses[:, 1 : 3 * depth + 2 : 3] = NUMBER["the"], subjects
    clauses[:, 3 * depth + 2 : -1] = rng.choice(_PAST, size=(n, depth))  # … V V V
    clauses[:, -1] = VERB
    fillers = rng.choice(_FILLERS, size=(n, before))
    ids = np.concatenate([fillers, clauses, np.full((n, before), PAD)], axis=1)
    shown = before - rng.integers(before + 1, size=n)  # begins so many places later
    ids = np.take_along_axis(ids, shown[:, None] + np.arange(before + 4 * depth + 3), axis=1)
    subject = before - shown + 1
    return Agreement(ids, numbers[:, 0], subject + 4 * depth + 1, subject)


def read(ids):
    """The words of one sentence [T], without padding."""
    return " ".join(WORDS[i] for i in np.asarray(ids) if i != PAD)
