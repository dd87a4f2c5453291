"""The checks of homework 06: encoder and decoder."""

import hashlib

import numpy as np

from tinyattn.course.checks.judging import (
    NO_RETURN,
    Homework,
    expect,
    judge,
    judge_gradients,
    number_of,
)

homework = Homework("hw06")
PAD, START, STOP = 0, 1, 2  # then 3 ... 11: the digits 1 to 9
homework.allow(2, "tinyattn.functional.softmax")
homework.allow(3, "tinyattn.functional.cross_entropy")
homework.build_on(6, "causal_mask")


def soft(s, axis=-1):
    with np.errstate(all="ignore"):
        e = np.exp(s - s.max(axis=axis, keepdims=True))
        return e / e.sum(axis=axis, keepdims=True)


# --- task 1


def sentences(case):
    """ids [B, S] with padding behind, no sentence empty."""
    if case.number == 0:
        return np.array([[START, 4, 5, STOP], [START, STOP, PAD, PAD], [9, PAD, PAD, PAD]])
    B, S = case.size(3, 2, 5), case.size(4, 3, 6)
    ids = case.rng.integers(1, 12, (B, S))
    n = case.rng.integers(1, S + 1, B)
    n[0] = S - 1
    return np.where(np.arange(S) < n[:, None], ids, PAD)


@homework.part(1, "padding")
def padding(student, case):
    ids = sentences(case)
    there = ids > 0
    mistakes = {
        "with the mask the wrong way round: True means that a word may be looked at": ~there[
            :, None
        ],
        "without the axis in the middle: [B, S] would be read as one mask for all, [T, S]": there,
        "with the axis at the end: [B, S, 1] forbids to ask, not to be looked at": there[
            :, :, None
        ],
        "when START may not be looked at: only padding is forbidden": (ids > START)[:, None],
        "when START and STOP may not be looked at: only padding is forbidden": (ids > STOP)[
            :, None
        ],
    }
    judge(student.padding_mask(ids), there[:, None], mistakes, what="padding_mask", kind="bool")


def lower(T):
    return np.array([[s <= t for s in range(T)] for t in range(T)])


@homework.part(1, "causal")
def causal(student, case):
    T = case.size(4, 2, 7)
    mistakes = {
        "with rows and columns exchanged: then only the future may be seen": lower(T).T,
        "without the diagonal: a word may look at itself, and the first has nobody else": np.tri(
            T, k=-1
        ),
        "with the diagonal above it: that is the word to be predicted": np.tri(T, k=1),
        "with the mask the wrong way round": ~lower(T),
    }
    judge(student.causal_mask(T), lower(T), mistakes, what="causal_mask", kind="bool")


@homework.part(1, "both")
def both(student, case):
    ids = sentences(case)
    (B, T), there = ids.shape, ids > 0
    right = np.array([there[b] & lower(T) for b in range(B)])
    mistakes = {
        "with `or`: a word may be looked at only if both masks allow it": np.array(
            [there[b] | lower(T) for b in range(B)]
        ),
        "without the padding": np.broadcast_to(lower(T), (B, T, T)),
        "without the causal mask": np.broadcast_to(there[:, None], (B, T, T)),
    }
    judge(student.target_mask(ids), right, mistakes, what="target_mask", kind="bool")


# --- task 2


def a_source(case):
    """X, M, the three matrices, and keep [B, 1, S]: every source has at least one word."""
    B, T, S, d, dk = 3, case.size(2, 1, 4), case.size(4, 4, 6), 6, case.size(5, 2, 5)
    X, M = case.normal(B, T, d), case.normal(B, S, d)
    keep = np.arange(S) < np.array([S - 1, 2, 1])[:, None]
    return X, M, *case.normal(3, d, dk), keep[:, None]


def cross(X, M, W_q, W_k, W_v, keep, scale=None):
    K = M @ W_k
    s = X @ W_q @ np.swapaxes(K, -1, -2) / (np.sqrt(K.shape[-1]) if scale is None else scale)
    return soft(np.where(keep, s, -1e30)) @ (M @ W_v)


def wrong_cross(X, M, W_q, W_k, W_v, keep):
    K, V, everything = M @ W_k, M @ W_v, np.ones_like(keep)
    s = X @ W_q @ np.swapaxes(K, -1, -2) / np.sqrt(K.shape[-1])
    found = {
        "without looking at the mask: padding gets weight": cross(X, M, W_q, W_k, W_v, everything),
        "with the mask the wrong way round": cross(X, M, W_q, W_k, W_v, ~keep),
        "without the division by √d_k": cross(X, M, W_q, W_k, W_v, keep, scale=1.0),
        "by dividing by d_k, not by its square root": cross(
            X, M, W_q, W_k, W_v, keep, scale=K.shape[-1]
        ),
        "from the decoder alone: keys and values must come from the memory": cross(
            X, X, W_q, W_k, W_v, np.ones((1, 1, X.shape[1]), bool)
        ),
        "with W_q and W_k exchanged": cross(X, M, W_k, W_q, W_v, keep),
        "with W_k and W_v exchanged": cross(X, M, W_q, W_v, W_k, keep),
        "by dividing by the root of d, the width of X; d_k is that of K": cross(
            X, M, W_q, W_k, W_v, keep, scale=np.sqrt(X.shape[-1])
        ),
        "by dividing by the root of the number of words; d_k is the width of K": cross(
            X, M, W_q, W_k, W_v, keep, scale=np.sqrt(M.shape[1])
        ),
        "by setting forbidden scores to 0: exp(0) is 1, padding still gets weight": soft(
            np.where(keep, s, 0)
        )
        @ V,
        "by hiding after the softmax: what is left does not sum to 1": (soft(s) * keep) @ V,
        "without the softmax": np.where(keep, s, 0) @ V,
    }
    name = "with the softmax over the wrong axis: the weights of one query must sum to 1"
    infinite = soft(np.where(keep, s, -np.inf), axis=1)
    found |= {
        name: soft(np.where(keep, s, -1e9), axis=1) @ V,
        f"{name}, so that there is nan": infinite @ V,
        f"{name}, with nan set to 0": np.nan_to_num(infinite) @ V,
    }
    if M.shape[1] >= X.shape[1]:
        found["with queries and keys from the same source: the memory asks itself"] = cross(
            M[:, : X.shape[1]], M, W_q, W_k, W_v, keep
        )
    return found


SHAPES = "The scores are [B, T, S]: T places of the target ask, S words of the source answer."


@homework.part(2, "cross-attention")
def cross_attention(student, case):
    given = a_source(case)
    judge(student.cross_attention(*given, hint=SHAPES), cross(*given), wrong_cross(*given))


@homework.part(2, "gradient")
def cross_gradient(student, case):
    judge_gradients(
        student,
        "cross_attention",
        cross,
        *a_source(case),
        of=[0, 1],
        letters="XM",
        hint=SHAPES,
        case=case,
    )


# --- task 3


def targets(case):
    if case.number == 0:
        return np.array([[START, 5, 3, 4, STOP, PAD], [START, 9, STOP, PAD, PAD, PAD]])
    n = case.size(4, 3, 5)
    digits = case.rng.integers(3, 12, (2, n))
    long = [START, *digits[0], STOP, PAD]
    short = [START, *digits[1][:1], STOP]
    return np.array([long, short + [PAD] * (len(long) - len(short))])


@homework.part(3, "shifted")
def shifted(student, case):
    target = targets(case)
    came = student.shifted(target, hint="Take columns of target: target[:, a:b].")
    expect(
        isinstance(came, tuple | list) and len(came) == 2,
        "shifted must return two arrays, what the decoder gets and what it is asked for",
    )
    gets, asked = target[:, :-1], target[:, 1:]
    given = {
        "with the two exchanged: the decoder would get the word it must say": asked,
        "with all columns: behind the last word there is nothing to ask for": target,
    }
    judge(came[0], gets, given, what="what it gets")
    wanted = {
        "without a shift: the decoder would get the very word it is asked for": gets,
        "with all columns: the first one, START, is never asked for": target,
    }
    judge(came[1], asked, wanted, what="what it is asked for")


def loss_and_gradient(its, logits, answers):
    import tinyattn as ta

    t = ta.tensor(logits, requires_grad=True)
    loss = its.loss_of(t, answers)
    if not isinstance(loss, ta.Tensor) or loss.size != 1:
        return loss, None
    loss.backward()
    return loss, t.grad


@homework.part(3, "the loss")
def loss(student, case):
    answers = targets(case)[:, 1:]
    logits = case.normal(*answers.shape, 12)
    hint = "Bring logits to [n, V] and answers to [n] first."
    came, slope = student.ask(loss_and_gradient, logits, answers, hint=hint)
    p, real = soft(logits), answers > 0
    each = -np.log(np.take_along_axis(p, answers[:, :, None], axis=2))[:, :, 0]
    mistakes = {
        "with padding counted: the model would be praised for writing PAD behind the end": (
            each.mean()
        ),
        "as a sum, not a mean": each[real].sum(),
        "by dividing by all places, those of the padding included": each[real].sum() / each.size,
        "as a mean of the means of the sentences: every word counts once": np.mean(
            [e[r].mean() for e, r in zip(each, real, strict=True)]
        ),
        "before the mean: one number is wanted": each[real],
        "without STOP: the model has to learn where the end is": each[answers > STOP].mean(),
        "from the padding alone: True has to mean that a place counts": each[~real].mean(),
        "with a softmax before the cross-entropy, which has one already": -np.mean(
            np.log(np.take_along_axis(soft(p), answers[:, :, None], axis=2))[:, :, 0][real]
        ),
    }
    judge(came, each[real].mean(), mistakes, what="loss_of")
    expect(slope is not None, "loss_of: the gradient is lost: use F.cross_entropy on logits itself")
    right = np.where(real[:, :, None], p - np.eye(12)[answers], 0) / real.sum()
    judge(slope, right, what="loss_of, the gradient by the logits")


# --- task 4


def written(its, sentence, max_len):
    """What `write` writes with a model without a network, which says the source backwards."""
    import numpy as np

    import tinyattn as ta

    class Backwards:
        calls = 0

        def __call__(self, src, tgt):
            src, tgt = np.asarray(src), np.asarray(tgt)
            if tgt.ndim != 2 or tgt.shape[0] != 1 or tgt[0, 0] != 1:
                raise ValueError(f"tgt must be [1, T] and begin with START, got {tgt.tolist()}")
            self.calls += 1
            if self.calls > 60:
                raise ValueError("your loop does not end. Stop at STOP and at max_len")
            answer = [*src[0][src[0] != 0][::-1], 2, *[3] * 70]
            logits = np.zeros((1, tgt.shape[1], 12))
            for t in range(tgt.shape[1]):
                right_so_far = list(tgt[0, 1 : t + 1]) == answer[:t]
                logits[0, t, answer[t] if right_so_far else 3] = 1
            return ta.tensor(logits)

    return its.write(Backwards(), sentence, max_len)


def a_sentence(case):
    if case.number == 0:
        return np.array([[4, 7, 5, 5, PAD]])
    n = case.size(4, 3, 7)
    return np.array([[*case.rng.integers(4, 12, n), PAD]])


@homework.part(4, "until STOP")
def write(student, case):
    sentence = a_sentence(case)
    came = student.ask(written, sentence, 10)
    right = sentence[0][sentence[0] != PAD][::-1].tolist()
    expect(came != [], "write: nothing was written. Is each token appended to `said`?")
    expect(isinstance(came, list), f"write: return a list, yours is a {type(came).__name__}")
    expect(STOP not in came, f"write: STOP must not be in the result, yours is {came}")
    expect(
        came == right,
        f"write: expected {right}, yours is {came}. Does the model get all that was said so far, "
        "and do you take the LAST place, logits[0, -1]?",
        "other words",
    )


@homework.part(4, "until max_len")
def write_short(student, case):
    sentence = a_sentence(case)
    right = sentence[0][sentence[0] != PAD][::-1].tolist()[:2]
    came = student.ask(written, sentence, 2)
    expect(
        isinstance(came, list) and len(came) == 2,
        f"write: with max_len=2 expected 2 tokens, yours is {came}",
        "max_len is not kept",
    )
    expect(came == right, f"write: with max_len=2 expected {right}, yours is {came}")


# --- task 5


def seen(its, name, fault, sign, cases):
    """What a test of the student's says about a model with one fault; were its inputs kept?

    cases: a list of (src, tgt). Returns a list of (answer, src, tgt) after the test.
    """
    import numpy as np

    import tinyattn as ta

    class Faulty:
        """y[b, t] = what place t of sentence b knows; one kind of knowledge too much."""

        def __call__(self, src, tgt):
            src, tgt = np.asarray(src), np.asarray(tgt)
            y = np.cumsum(tgt, axis=1) + 0.01 * (src @ np.arange(1, src.shape[1] + 1))[:, None]
            if fault == "future":
                y = y + 0.1 * tgt[:, -1:]
            if fault == "padding":
                y = y + 0.1 * (src == 0).sum(axis=1, keepdims=True)
            if fault == "neighbours":
                y = y + 0.1 * tgt[:1, :1] * src[0].sum()
            return ta.tensor(sign * np.stack([y, y / 2], axis=2))

    return [(getattr(its, name)(Faulty(), src, tgt), src, tgt) for src, tgt in cases]


FAULTS = ("future", "padding", "neighbours")


def sees(name):
    def part(student, case):
        B, S, T = 4, case.size(4, 3, 6), case.size(5, 3, 6)
        src = np.where(np.arange(S) < case.rng.integers(2, S + 1, (B, 1)), 1, 0)
        src = src * (3 + np.arange(B * S).reshape(B, S) % 9)
        tgt = 3 + case.rng.permutation(B * T).reshape(B, T) % 9
        for fault in ("none", *FAULTS):
            for sign in (1, -1):  # what changes may rise or fall
                (came,) = _asked(student, name, fault, sign, [(src, tgt)])
                _what_it_says(name, fault, came, largest_change(name, src, tgt))
        if name == "future":
            _every_last_token(student, src[:1], tgt[:1])

    return part


def _asked(student, name, fault, sign, cases):
    """The numbers that the test gives for these cases."""
    hint = "Mind the axes: logits are [B, T, V]."
    found = student.ask(seen, f"sees_{name}", fault, sign, cases, hint=hint)
    numbers = []
    for (came, *after), before in zip(found, cases, strict=True):
        expect(came is not None, f"sees_{name}: is the `return` missing?", NO_RETURN)
        numbers.append(float(number_of(came, f"sees_{name}, the largest change")))
        expect(
            all(map(np.array_equal, after, before)),
            f"sees_{name} changes src or tgt itself: work on a copy",
            "changes its inputs",
        )
    return numbers


def largest_change(name, src, tgt):
    """The right answer for the model with this fault; None where it depends on the student."""
    if name == "padding":
        return 0.1 * 2
    if name == "neighbours":
        own = 0.1 * tgt[:, 0] * src.sum(axis=1)
        return np.abs(own - own[0]).max()
    return None


def _every_last_token(student, src, tgt):
    """A sentence that ends with this token, for all of them: a change must change it."""
    ends = [(src, np.append(tgt[:, :-1], [[last]], axis=1)) for last in range(3, 12)]
    for sign in (1, -1):
        for (_, end), came in zip(
            ends, _asked(student, "future", "future", sign, ends), strict=True
        ):
            expect(
                came > 1e-3,
                f"sees_future does not notice a model that sees the future, if the last token is "
                f"{end[0, -1]}. Is it really changed then, and does a logit that falls count, too?",
                "sees_future does not always change the last token, or looks at one sign",
            )


def _what_it_says(name, fault, came, right):
    if fault == name:
        expect(
            came > 1e-3,
            f"sees_{name} does not notice a model that sees {name}",
            f"sees_{name} notices nothing",
        )
        expect(
            right is None or np.isclose(came, right),
            f"sees_{name}: the largest change, whether up or down, is {right or 0:.4g}, yours says "
            f"{came:.4g}",
            f"sees_{name} does not give the largest change",
        )
        return
    what = "a model without a fault" if fault == "none" else f"a model that sees {fault}"
    extra = {
        "future": " Leave out the last place itself: it may see the token that you changed",
        "padding": " Append the padding at the end, so that all words keep their places",
    }
    expect(
        abs(came) < 1e-9,
        f"sees_{name} complains ({came:.2g}) about {what}; it should test nothing else."
        + extra.get(name, ""),
        f"sees_{name} complains about {what}",
    )


for fault in FAULTS:
    homework.part(5, f"sees_{fault}")(sees(fault))

VERDICTS = {  # digests, so that nobody reads them here by chance
    "Anna": "36e13417",
    "Ben": "01bb1298",
    "Cleo": "790a598c",
    "Dora": "6f50b61b",
}


def digest(person, word):
    return hashlib.sha256(f"hw06 {person} {word}".encode()).hexdigest()[:8]


@homework.part(5, "the verdicts", hidden=())
def verdicts(student, case):
    said = student.verdicts()
    expect(isinstance(said, dict), "verdicts: return a dictionary, name → fault")
    kinds = sorted({*FAULTS, "nothing"})
    for person in VERDICTS:
        expect(person in said, f"there is no verdict about {person} yet", "a verdict is missing")
        word = said[person]
        expect(word in kinds, f"{word!r} about {person} is none of {kinds}")
        expect(
            digest(person, word) == VERDICTS[person],
            f"you say {person} sees {word}, but look at the numbers that your own tests printed "
            f"for {person}",
            f"the verdict about {person}",
        )


# --- task 6


def mended_mask(its, tgt):
    return its.Mended(rng=0).target_mask(tgt)


@homework.part(6, "the mended mask")
def mended(student, case):
    T = case.size(6, 3, 8)
    mistakes = {
        "with Anna's mask, which shows one word too many": np.tri(T, k=1, dtype=bool),
        "with the mask transposed": lower(T).T,
        "without the diagonal": np.tri(T, k=-1, dtype=bool),
    }
    came = student.ask(mended_mask, case.rng.integers(3, 12, (2, T)))
    judge(came, lower(T), mistakes, what="target_mask", kind="bool")
