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
LAYERS = "Module MultiheadAttention Sequential Linear ReLU LayerNorm Embedding PositionalEncoding"
for name in (*LAYERS.split(), "TransformerEncoderLayer"):
    homework.allow(5, f"tinyattn.nn.{name}")
homework.build_on(5, "padding_mask", "causal_mask")
homework.build_on(7, "causal_mask")


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
        "with the mask inverted: True means that a token may be attended to": ~there[:, None],
        "without the axis in the middle: [B, S] would be read as one mask [T, S] for all": there,
        "with the axis at the end: [B, S, 1] hides queries, not keys": there[:, :, None],
        "when START is hidden as well: only padding is forbidden": (ids > START)[:, None],
        "when START and STOP are hidden as well: only padding is forbidden": (ids > STOP)[:, None],
    }
    judge(student.padding_mask(ids), there[:, None], mistakes, what="padding_mask", kind="bool")


def lower(T):
    return np.array([[s <= t for s in range(T)] for t in range(T)])


@homework.part(1, "causal")
def causal(student, case):
    T = case.size(4, 2, 7)
    mistakes = {
        "with rows and columns swapped, so that only the future is visible": lower(T).T,
        "without the diagonal: a token may attend to itself": np.tri(T, k=-1),
        "with one diagonal too many: it shows the token to be predicted": np.tri(T, k=1),
        "with the mask inverted": ~lower(T),
    }
    judge(student.causal_mask(T), lower(T), mistakes, what="causal_mask", kind="bool")


@homework.part(1, "both")
def both(student, case):
    ids = sentences(case)
    (B, T), there = ids.shape, ids > 0
    right = np.array([there[b] & lower(T) for b in range(B)])
    mistakes = {
        "with `or`: a pair is allowed only if both masks allow it": np.array(
            [there[b] | lower(T) for b in range(B)]
        ),
        "without the padding mask": np.broadcast_to(lower(T), (B, T, T)),
        "without the causal mask": np.broadcast_to(there[:, None], (B, T, T)),
    }
    judge(student.target_mask(ids), right, mistakes, what="target_mask", kind="bool")


# --- task 2


def a_source(case):
    """X, M, the three matrices, and keep [B, 1, S]: every source has at least one token."""
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
        "without using the mask: padding gets weight": cross(X, M, W_q, W_k, W_v, everything),
        "with the mask inverted": cross(X, M, W_q, W_k, W_v, ~keep),
        "without the division by √d_k": cross(X, M, W_q, W_k, W_v, keep, scale=1.0),
        "by dividing by d_k instead of its square root": cross(
            X, M, W_q, W_k, W_v, keep, scale=K.shape[-1]
        ),
        "from the decoder alone: keys and values must be computed from the memory": cross(
            X, X, W_q, W_k, W_v, np.ones((1, 1, X.shape[1]), bool)
        ),
        "with W_q and W_k swapped": cross(X, M, W_k, W_q, W_v, keep),
        "with W_k and W_v swapped": cross(X, M, W_q, W_v, W_k, keep),
        "by dividing by the square root of d, the width of X: d_k is the width of K": cross(
            X, M, W_q, W_k, W_v, keep, scale=np.sqrt(X.shape[-1])
        ),
        "by dividing by the square root of the number of tokens: d_k is the width of K": cross(
            X, M, W_q, W_k, W_v, keep, scale=np.sqrt(M.shape[1])
        ),
        "by setting forbidden scores to 0: exp(0) is 1, so padding still gets weight": soft(
            np.where(keep, s, 0)
        )
        @ V,
        "by hiding after the softmax: the remaining weights do not sum to 1": (soft(s) * keep) @ V,
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
        found["with queries from the memory: they must be computed from X"] = cross(
            M[:, : X.shape[1]], M, W_q, W_k, W_v, keep
        )
    return found


SHAPES = "The scores are [B, T, S]: T queries of the target, S keys of the source."


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
        "shifted must return two arrays, the inputs of the decoder and the tokens to predict",
    )
    gets, asked = target[:, :-1], target[:, 1:]
    given = {
        "with the two swapped: the decoder would be given the token to predict": asked,
        "with all columns: after the last token there is nothing to predict": target,
    }
    judge(came[0], gets, given, what="the inputs of the decoder")
    wanted = {
        "without a shift: the decoder would be given the very token to predict": gets,
        "with all columns: the first one, START, is never predicted": target,
    }
    judge(came[1], asked, wanted, what="the tokens to predict")


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
        "with padding counted: the model would be rewarded for writing PAD after the end": (
            each.mean()
        ),
        "as a sum instead of a mean": each[real].sum(),
        "by dividing by the number of all positions, padding included": each[real].sum()
        / each.size,
        "as a mean of the means of the sentences: every token must count once": np.mean(
            [e[r].mean() for e, r in zip(each, real, strict=True)]
        ),
        "before the mean: the loss is one number": each[real],
        "without STOP: the model has to learn where a sentence ends": each[answers > STOP].mean(),
        "from the padding only: True must mean that a position counts": each[~real].mean(),
        "with a softmax before the cross-entropy, which contains one already": -np.mean(
            np.log(np.take_along_axis(soft(p), answers[:, :, None], axis=2))[:, :, 0][real]
        ),
    }
    judge(came, each[real].mean(), mistakes, what="loss_of")
    expect(
        slope is not None,
        ("loss_of: the gradient does not reach logits. Call F.cross_entropy on logits itself"),
    )
    right = np.where(real[:, :, None], p - np.eye(12)[answers], 0) / real.sum()
    judge(slope, right, what="loss_of, the gradient with respect to the logits")


# --- task 4


def written(its, sentence, max_len, said):
    """The output of `write` for a stub of a model that knows what it says, and then STOP."""
    import numpy as np

    import tinyattn as ta

    class Stub:
        calls = 0

        def __call__(self, src, tgt):
            src, tgt = np.asarray(src), np.asarray(tgt)
            if tgt.ndim != 2 or tgt.shape[0] != 1 or tgt[0, 0] != 1:
                raise ValueError(f"tgt must be [1, T] and begin with START, got {tgt.tolist()}")
            self.calls += 1
            if self.calls > 60:
                raise ValueError("your loop never ends. Stop at STOP, or after max_len tokens")
            answer = [*said, 2, *[3] * 70]
            logits = np.zeros((1, tgt.shape[1], 12))
            for t in range(tgt.shape[1]):
                right_so_far = list(tgt[0, 1 : t + 1]) == answer[:t]
                logits[0, t, answer[t] if right_so_far else 3] = 1
            return ta.tensor(logits)

    return its.write(Stub(), sentence, max_len)


def a_sentence(case):
    if case.number == 0:
        return np.array([[4, 7, 5, 5, PAD]])
    n = case.size(4, 3, 7)
    return np.array([[*case.rng.integers(4, 12, n), PAD]])


def what_it_says(case, sentence):
    """The sentence backwards, or in the hidden cases another one, which only the model knows."""
    if case.number == 0:
        return sentence[0][sentence[0] != PAD][::-1].tolist()
    return case.rng.integers(3, 12, case.size(4, 3, 8)).tolist()


@homework.part(4, "until STOP")
def write(student, case):
    sentence = a_sentence(case)
    right = what_it_says(case, sentence)
    came = student.ask(written, sentence, 10, right)
    expect(came != [], "write: the list is empty. Did you append each token to `said`?")
    expect(isinstance(came, list), f"write: return a list, not a {type(came).__name__}")
    expect(STOP not in came, f"write: STOP must not be in the result, but yours is {came}")
    expect(
        came == right,
        f"write: expected {right}, yours is {came}. Does the model get all tokens so far, and do "
        "you use the LAST position, logits[0, -1]?",
        "other words",
    )


@homework.part(4, "until max_len")
def write_short(student, case):
    sentence = a_sentence(case)
    said = what_it_says(case, sentence)
    right, came = said[:2], student.ask(written, sentence, 2, said)
    expect(
        isinstance(came, list) and len(came) == 2,
        f"write: with max_len=2 expected 2 tokens, yours is {came}",
        "max_len is ignored",
    )
    expect(came == right, f"write: with max_len=2 expected {right}, yours is {came}")


# --- task 5


def a_decoder(case):
    """x, memory, mask, keep, and weights for all parameters of a DecoderLayer(8, 2, 12)."""
    B, T, S, d, hidden = 2, case.size(3, 2, 5), case.size(4, 3, 6), 8, 12
    attention = [(3 * d, d), (3 * d,), (d, d), (d,)]
    network, norms = [(hidden, d), (hidden,), (d, hidden), (d,)], [(d,)] * 6
    weights = [0.5 * case.normal(*shape) for shape in [*attention, *attention, *network, *norms]]
    keep = np.arange(S) < np.array([[S], [S - 1]])
    return case.normal(B, T, d), case.normal(B, S, d), lower(T), keep[:, None], weights


def decoded(its, x, memory, mask, keep, weights):
    """The output of the student's DecoderLayer with these weights."""
    import numpy as np

    import tinyattn as ta

    layer = its.DecoderLayer(8, 2, 12, rng=0)
    for p, w in zip(layer.parameters(), weights, strict=True):
        p.data = w
    return layer(ta.tensor(x), ta.tensor(memory), mask, np.asarray(keep))


def two_heads(x, context, allowed, in_weight, in_bias, out_weight, out_bias):
    d = x.shape[-1]
    q, k, v = (
        y @ in_weight[i * d : i * d + d].T + in_bias[i * d : i * d + d]
        for i, y in enumerate((x, context, context))
    )
    heads = []
    for h in (slice(0, d // 2), slice(d // 2, d)):
        s = q[..., h] @ np.swapaxes(k[..., h], 1, 2) / np.sqrt(d // 2)
        heads.append(soft(np.where(allowed, s, -1e30)) @ v[..., h])
    return np.concatenate(heads, axis=-1) @ out_weight.T + out_bias


SUBLAYERS = ("self-attention", "cross-attention", "the feed-forward network")


def right_decoder(x, memory, mask, keep, weights, *, drop=(), norm="after", order=(0, 1, 2)):
    """Return the layer, or the layer without ("skip", i) or ("norm", i) in `drop`."""
    own, other, (w1, b1, w2, b2), norms = weights[:4], weights[4:8], weights[8:12], weights[12:]
    parts = [
        lambda y: two_heads(y, y, mask, *own),
        lambda y: two_heads(y, memory, keep, *other),
        lambda y: np.maximum(y @ w1.T + b1, 0) @ w2.T + b2,
    ]

    def normed(y, i):
        z = (y - y.mean(axis=-1, keepdims=True)) / np.sqrt(y.var(axis=-1, keepdims=True) + 1e-5)
        return norms[2 * i] * z + norms[2 * i + 1]

    for place, i in enumerate(order):
        if norm == "before":
            x = x + parts[i](normed(x, place))
        else:
            y = parts[i](x) + (0 if ("skip", i) in drop else x)
            x = y if ("norm", i) in drop else normed(y, place)
    return x


def wrong_decoders(x, memory, mask, keep, weights):
    given = (x, memory, mask, keep, weights)
    found = {
        f"without the {'skip path' if what == 'skip' else what} of {name}": right_decoder(
            *given, drop=[(what, i)]
        )
        for what in ("skip", "norm")
        for i, name in enumerate(SUBLAYERS)
    }
    all_of = {what: [(what, i) for i in range(3)] for what in ("skip", "norm")}
    others = {
        "without the skip paths: add the input of each sublayer to its output": {
            "drop": all_of["skip"]
        },
        "without the norms": {"drop": all_of["norm"]},
        "with the norm before each sublayer: the task asks for norm(x + sublayer(x))": {
            "norm": "before"
        },
        "with cross-attention before self-attention": {"order": (1, 0, 2)},
        "with the feed-forward network before cross-attention": {"order": (0, 2, 1)},
        "without the feed-forward network": {"order": (0, 1)},
        "without cross-attention": {"order": (0, 2)},
    }
    found |= {name: right_decoder(*given, **options) for name, options in others.items()}
    return found | {
        "without the mask in self-attention: the decoder sees the future": right_decoder(
            x, memory, np.ones_like(mask), keep, weights
        ),
        "without `keep` in cross-attention: padding gets weight": right_decoder(
            x, memory, mask, np.ones_like(keep), weights
        ),
    }


@homework.part(5, "the decoder layer")
def decoder_layer(student, case):
    given = a_decoder(case)
    hint = "Queries are the first argument of an attention, keys and values the next two."
    came = student.ask(decoded, *given, hint=hint)
    judge(came, right_decoder(*given), wrong_decoders(*given), what="DecoderLayer", rtol=1e-5)


def put_together(its, src, tgt, table, positions, head):
    """The student's Translator with stubs for its parts that let every input be recognized."""
    import numpy as np

    import tinyattn as ta

    model = its.Translator(8, 2, rng=0)
    model.embed = lambda ids: ta.tensor(table[np.asarray(ids)])
    model.places = lambda x: x + positions[: x.shape[1]]
    model.encoder = lambda x, keep: 2 * x * np.swapaxes(np.asarray(keep), 1, 2)
    model.decoder = lambda x, memory, mask, keep: (
        x
        + 3 * np.asarray(mask).sum(axis=-1)[..., None]
        + np.sum(memory * np.swapaxes(np.asarray(keep), 1, 2), axis=1, keepdims=True)
    )
    model.head = lambda x: x @ head
    model.source_mask = lambda src: (np.asarray(src) > 0)[:, None, :]
    model.target_mask = lambda tgt: np.tri(np.shape(tgt)[1], dtype=bool)
    return model(src, tgt)


def translated(src, tgt, table, positions, head, *, hide=True, places=(1, 1), logits=True):
    keep = (src > 0)[:, :, None] if hide else np.ones((*src.shape, 1), bool)
    memory = 2 * (table[src] + places[0] * positions[: src.shape[1]]) * keep
    x = table[tgt] + places[1] * positions[: tgt.shape[1]]
    y = x + 3 * (1 + np.arange(tgt.shape[1]))[:, None] + (memory * keep).sum(1, keepdims=True)
    return y @ head if logits else y


@homework.part(5, "the whole model")
def translator(student, case):
    src = sentences(case)
    tgt = case.rng.integers(1, 12, (len(src), case.size(5, 3, 6)))
    given = (src, tgt, case.normal(12, 8), case.normal(9, 8), case.normal(8, 12))
    mistakes = {
        "without positions": translated(*given, places=(0, 0)),
        "without positions in the source": translated(*given, places=(0, 1)),
        "without positions in the target": translated(*given, places=(1, 0)),
        "without the head: the result must be logits [B, T, 12]": translated(*given, logits=False),
    }
    hint = (
        "encoder(x, keep) and decoder(x, memory, mask, keep) take embedded sentences [B, T, d]; "
        "masks come from self.source_mask(src) and self.target_mask(tgt)."
    )
    came = student.ask(put_together, *given, hint=hint)
    judge(came, translated(*given), mistakes, what="Translator", rtol=1e-5)


# --- task 6


def seen(its, name, fault, sign, cases, c):
    """Return the result of a student's test for a model with one fault, and if inputs were kept.

    cases: a list of (src, tgt); c: three constants of the model. Returns a list of
    (answer, src, tgt) after the test.
    """
    import numpy as np

    import tinyattn as ta

    class Faulty:
        """y[b, t] depends on what position t of sentence b may see, and on one thing too much."""

        def __call__(self, src, tgt):
            src, tgt = np.asarray(src), np.asarray(tgt)
            y = 0.01 * c[1] * (src @ np.arange(1, src.shape[1] + 1))[:, None]
            y = y + c[0] * np.cumsum(tgt, axis=1)
            if fault == "future":
                y = y + 0.1 * c[2] * tgt[:, -1:]
            if fault == "padding":
                y = y + 0.1 * c[2] * (src == 0).sum(axis=1, keepdims=True)
            if fault == "neighbours":
                y = y + 0.1 * c[2] * tgt[:1, :1] * src[0].sum()
            return ta.tensor(sign * np.stack([y, y / 2], axis=2))

    return [(getattr(its, name)(Faulty(), src, tgt), src, tgt) for src, tgt in cases]


FAULTS = ("future", "padding", "neighbours")


def sees(name):
    def part(student, case):
        B, S, T = 4, case.size(4, 3, 6), case.size(5, 3, 6)
        src = np.where(np.arange(S) < case.rng.integers(2, S + 1, (B, 1)), 1, 0)
        src = src * (3 + np.arange(B * S).reshape(B, S) % 9)
        tgt = 3 + case.rng.permutation(B * T).reshape(B, T) % 9
        c = case.rng.uniform(0.5, 2, 3) if case.number else np.ones(3)
        for fault in ("none", *FAULTS):
            for sign in (1, -1):  # a logit may rise or fall
                (came,) = _asked(student, name, fault, sign, [(src, tgt)], c)
                _what_it_says(name, fault, came, largest_change(name, src, tgt, c[2]))
        if name == "future":
            _every_last_token(student, src[:1], tgt[:1], c)

    return part


def _asked(student, name, fault, sign, cases, c):
    """The numbers that the test returns for these cases."""
    hint = "Check the axes: logits are [B, T, V]."
    found = student.ask(seen, f"sees_{name}", fault, sign, cases, c, hint=hint)
    numbers = []
    for (came, *after), before in zip(found, cases, strict=True):
        expect(came is not None, f"sees_{name}: is the `return` missing?", NO_RETURN)
        numbers.append(float(number_of(came, f"sees_{name}, the largest change")))
        expect(
            all(map(np.array_equal, after, before)),
            f"sees_{name} changes src or tgt itself. Work on a copy",
            "changes its inputs",
        )
    return numbers


def largest_change(name, src, tgt, c):
    """Return the correct answer for the model with this fault. None: it depends on the student."""
    if name == "padding":
        return 0.1 * c * 2
    if name == "neighbours":
        own = 0.1 * c * tgt[:, 0] * src.sum(axis=1)
        return np.abs(own - own[0]).max()
    return None


def _every_last_token(student, src, tgt, c):
    """Whatever the last token is, sees_future must really change it."""
    ends = [(src, np.append(tgt[:, :-1], [[last]], axis=1)) for last in range(3, 12)]
    for sign in (1, -1):
        for (_, end), came in zip(
            ends, _asked(student, "future", "future", sign, ends, c), strict=True
        ):
            expect(
                came > 1e-3,
                "sees_future does not detect a model that sees the future if the last token is "
                f"{end[0, -1]}. Does your test really change it, and do you also count logits "
                "that decrease?",
                "sees_future does not always change the last token, or counts one sign only",
            )


def _what_it_says(name, fault, came, right):
    if fault == name:
        expect(
            came > 1e-3,
            f"sees_{name} does not detect a model that sees {name}",
            f"sees_{name} detects nothing",
        )
        expect(
            right is None or np.isclose(came, right),
            f"sees_{name}: the largest change, up or down, is {right or 0:.4g}, yours is "
            f"{came:.4g}",
            f"sees_{name} does not return the largest change",
        )
        return
    what = "a model without a fault" if fault == "none" else f"a model that sees {fault}"
    extra = {
        "future": " Leave out the last position: it may see the token that you changed",
        "padding": " Append the padding at the end, so that all tokens keep their positions",
    }
    expect(
        abs(came) < 1e-9,
        f"sees_{name} reports {came:.2g} for {what}, but it should test for one fault only."
        + extra.get(name, ""),
        f"sees_{name} accuses {what}",
    )


for fault in FAULTS:
    homework.part(6, f"sees_{fault}")(sees(fault))

VERDICTS = {  # digests, so that nobody reads them here by chance
    "Anna": "36e13417",
    "Ben": "01bb1298",
    "Cleo": "790a598c",
    "Dora": "6f50b61b",
}


def digest(person, word):
    return hashlib.sha256(f"hw06 {person} {word}".encode()).hexdigest()[:8]


@homework.part(6, "the verdicts", hidden=())
def verdicts(student, case):
    said = student.verdicts()
    expect(isinstance(said, dict), "verdicts: return a dictionary from names to faults")
    kinds = sorted({*FAULTS, "nothing"})
    for person in VERDICTS:
        expect(person in said, f"there is no verdict on {person} yet", "a verdict is missing")
        word = said[person]
        expect(word in kinds, f"the verdict on {person} must be one of {kinds}, yours is {word!r}")
        expect(
            digest(person, word) == VERDICTS[person],
            f"your verdict on {person} is {word}, but look at the numbers that your own tests "
            f"printed for {person}",
            f"the verdict on {person}",
        )


# --- task 7


def mended_mask(its, tgt):
    return its.Mended(rng=0).target_mask(tgt)


@homework.part(7, "the mended mask")
def mended(student, case):
    T = case.size(6, 3, 8)
    mistakes = {
        "with Anna's mask, which shows one token too many": np.tri(T, k=1, dtype=bool),
        "with the mask transposed": lower(T).T,
        "without the diagonal": np.tri(T, k=-1, dtype=bool),
    }
    came = student.ask(mended_mask, case.rng.integers(3, 12, (2, T)))
    judge(came, lower(T), mistakes, what="target_mask", kind="bool")
