"""The checks of homework 01: recurrent networks."""

import numpy as np

from tinyattn.course.checks.judging import (
    NO_RETURN,
    Homework,
    array_of,
    expect,
    judge,
    number_of,
)

homework = Homework("hw01")
homework.forbid_gradients(2)
for task in (1, 2):
    homework.forbid(task, "tinyattn.nn.LSTM", "tinyattn.nn.LSTMCell")


def sigmoid(s):
    return 1 / (1 + np.exp(-s))


def scores(case):
    """s [B, 4H] and the old c [B, H]."""
    B, H = case.size(3, 1, 5), case.size(2, 1, 4)
    return case.normal(B, 4 * H), case.normal(B, H)


def pair(came, names):
    expect(
        isinstance(came, tuple) and len(came) == len(names),
        f"return {len(names)} things, {', '.join(names)}, separated by commas",
        "not two things",
    )
    return came


# --- task 1


def cell_of(i, f, g, o, c, outer=np.tanh):
    new = f * c + i * g
    return o * outer(new), new


def cell(s, c):
    i, f, g, o = np.split(s, 4, axis=-1)
    return cell_of(sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o), c)


def known_cells(s, c):
    """(h, c) of frequent slips, by name."""
    i, f, g, o = np.split(s, 4, axis=-1)
    S, t = sigmoid, np.tanh
    return {
        "with the blocks in the order i, f, o, g: the third one is g": cell_of(
            S(i), S(f), t(o), S(g), c
        ),
        "with the blocks in the order f, i, g, o: the first one is i": cell_of(
            S(f), S(i), t(g), S(o), c
        ),
        "with a sigmoid on g: it needs a tanh, so that it can be negative": cell_of(
            S(i), S(f), S(g), S(o), c
        ),
        "without the outer tanh: h = o ⊙ tanh c'": cell_of(S(i), S(f), t(g), S(o), c, lambda u: u),
        "with h from the old cell state: c' has to be computed first": (
            S(o) * t(c),
            S(f) * c + S(i) * t(g),
        ),
        "with f = 1 - i: this is the coupled gate of a GRU": cell_of(S(i), 1 - S(i), t(g), S(o), c),
        "without the sigmoids": cell_of(i, f, t(g), o, c),
        "without forgetting: the old c must be multiplied by f": cell_of(S(i), 1, t(g), S(o), c),
        "when h and c_new are exchanged: h comes first, yours are swapped": cell(s, c)[::-1],
    }


SPLIT = "s is [B, 4H]: np.split(s, 4, axis=-1) gives four blocks [B, H]."


def lstm_part(place, name):
    def part(student, case):
        s, c = scores(case)
        came = pair(student.lstm_cell(s, c, hint=SPLIT), ("h", "c_new"))
        slips = {slip: hc[place] for slip, hc in known_cells(s, c).items()}
        judge(came[place], cell(s, c)[place], slips, what=name)

    return part


homework.part(1, "the new cell state")(lstm_part(1, "c_new"))
homework.part(1, "the hidden state")(lstm_part(0, "h"))


# --- task 2


def rule_of(s, c, gh, gc, **slip):
    """The gradients by s and c, and with a usual slip in them."""
    i, f, g, o = np.split(s, 4, axis=-1)
    i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
    new = f * c + i * g
    t = np.tanh(new)
    factor = {"di": i * (1 - i), "df": f * (1 - f), "dg": 1 - g * g, "do": o * (1 - o), "last": t}
    factor["total"] = gc + gh * o * (1 - t * t)
    factor |= {name: change(i, f, g, o, new, t) for name, change in slip.items()}
    total = factor["total"]
    rows = [
        total * g * factor["di"],
        total * c * factor["df"],
        total * i * factor["dg"],
        gh * factor["last"] * factor["do"],
    ]
    return np.concatenate(rows, axis=-1), total * f


def by_differences(s, c, gh, gc, epsilon=1e-6):
    """The same from difference quotients of the cell: the independent reference."""

    def loss(s, c):
        h, new = cell(s, c)
        return np.sum(gh * h + gc * new)

    found = []
    for x, f in ((s, lambda v: loss(v, c)), (c, lambda v: loss(s, v))):
        slope = np.zeros_like(x)
        for place in np.ndindex(x.shape):
            step = np.zeros_like(x)
            step[place] = epsilon
            slope[place] = (f(x + step) - f(x - step)) / (2 * epsilon)
        found.append(slope)
    return found


def known_rules(s, c, gh, gc):
    """(gradient by s, by c) of frequent slips, by name."""

    def rule(**slip):
        return rule_of(s, c, gh, gc, **slip)

    one = lambda *_: 1
    return {
        "when gh reaches c' without gc: add what comes directly": rule(
            total=lambda i, f, g, o, new, t: gh * o * (1 - t * t)
        ),
        "when only gc reaches c': c' is used in h as well": rule(total=lambda *_: gc),
        "without the derivative of the outer tanh": rule(
            total=lambda i, f, g, o, new, t: gc + gh * o
        ),
        "without the factor o on the way from h to c'": rule(
            total=lambda i, f, g, o, new, t: gc + gh * (1 - t * t)
        ),
        "without σ' and tanh': from a gate you still have to go to its score": rule(
            di=one, df=one, dg=one, do=one
        ),
        "with σ' for the block g: it has a tanh": rule(dg=lambda i, f, g, o, new, t: g * (1 - g)),
        "with c' in place of tanh c' at the output gate": rule(last=lambda i, f, g, o, new, t: new),
    }


BLOCKS = "np.concatenate([...], axis=-1) puts four blocks [B, H] side by side."


def _backward(student, case):
    s, c = scores(case)
    gh, gc = case.normal(*c.shape), case.normal(*c.shape)
    came = student.lstm_cell_backward(s, c, gh, gc, hint=BLOCKS)
    by_s, by_c = pair(came, ("gradient by s", "gradient by c"))
    return (s, c, gh, gc), array_of(by_s), array_of(by_c)


@homework.part(2, "the gradient by c")
def gradient_by_c(student, case):
    given, _, by_c = _backward(student, case)
    slips = {name: rc[1] for name, rc in known_rules(*given).items()}
    judge(by_c, by_differences(*given)[1], slips, what="gradient by c", rtol=1e-5, atol=1e-7)


def block_part(k, name):
    def part(student, case):
        given, by_s, _ = _backward(student, case)
        s, c = given[:2]
        expect(
            by_s.shape == s.shape,
            f"the gradient by s has the shape of s, {s.shape}: four blocks of {c.shape} side by "
            f"side; yours is {by_s.shape}. {BLOCKS}",
            "not four blocks side by side",
        )
        block = slice(k * c.shape[1], (k + 1) * c.shape[1])
        slips = {slip: rc[0][:, block] for slip, rc in known_rules(*given).items()}
        right = by_differences(*given)[0][:, block]
        what = f"gradient by s, block {name}"
        judge(by_s[:, block], right, slips, what=what, rtol=1e-5, atol=1e-7)

    return part


for k, name in enumerate("ifgo"):
    homework.part(2, f"the block {name}")(block_part(k, name))


# --- task 3


def rnn(its, state, x, a, what):
    """The cell, the loop, or the gradient by the inputs, of MendedRNN with these weights."""
    import numpy as np

    import tinyattn as ta

    model = its.MendedRNN(len(state["aa.bias"]), np.random.default_rng(0)).astype(np.float64)
    for name, parameter in model.named_parameters():
        parameter.data = np.array(state[name])
    if what == "cell":
        return model.cell(x[:, 0], ta.tensor(a))
    inputs = ta.tensor(x, requires_grad=True)
    y = model(inputs)
    if what == "loop":
        return y
    y.sum().backward()
    return inputs.grad


def some_weights(case, H):
    shapes = {
        "ax.weight": (H, 1), "ax.bias": (H,), "aa.weight": (H, H), "aa.bias": (H,),
        "out.weight": (2, H), "out.bias": (2,),
    }  # fmt: skip
    return {name: 0.5 * case.normal(*shape) for name, shape in shapes.items()}


def cell_with(w, x, a, pre=lambda x, a: a):
    return x @ w["ax.weight"].T + w["ax.bias"] + pre(x, a) @ w["aa.weight"].T + w["aa.bias"]


def bits(case, H=6):
    """x [B, T, 1], an old state, and weights."""
    x = case.rng.integers(0, 2, (4, case.size(8, 3, 9), 1)).astype(float)
    x[:2, 0, 0] = 0, 1
    return x, case.normal(4, H), some_weights(case, H)


@homework.part(3, "the cell")
def the_cell(student, case):
    x, a, w = bits(case)
    x0 = x[:, 0]
    mistakes = {
        "when the state is multiplied by the input: it is to be ADDED to it, each with its own "
        "weights": np.tanh(cell_with(w, x0, a, lambda x, a: x * a)),
        "without the old state": np.tanh(x0 @ w["ax.weight"].T + w["ax.bias"]),
        "without the tanh": cell_with(w, x0, a),
    }
    came = student.ask(rnn, w, x, a, "cell", hint="x is [B, 1] and a is [B, H].")
    judge(came, np.tanh(cell_with(w, x0, a)), mistakes, what="the cell")


@homework.part(3, "the loop")
def the_loop(student, case):
    x, a, w = bits(case)
    far = np.abs(array_of(student.ask(rnn, w, x, a, "gradient"))).max(axis=(0, 2))
    expect(
        far[-1] > 0,
        "the loop: the last input does not reach the output",
        "the last input does not reach the output",
    )
    expect(
        far[0] > 0,
        "the loop: not yet. The gradient by the first input is exactly 0, so nothing can be "
        "learned about it. What cuts the state off from its past inside the loop?",
        "the state is cut off from its past",
    )
    state = np.zeros_like(a)
    for t in range(x.shape[1]):
        state = np.tanh(cell_with(w, x[:, t], state))
    right = state @ w["out.weight"].T + w["out.bias"]
    judge(student.ask(rnn, w, x, a, "loop"), right, what="the loop")


def one_step(its, W, x, y, lr):
    """A step of a linear layer with old gradients: the loss, and the weights after it."""
    import numpy as np

    import tinyattn.functional as F
    from tinyattn import nn, optim

    model = nn.Linear(W.shape[1], len(W), rng=0).astype(np.float64)
    model.weight.data, model.bias.data = W, np.zeros(len(W))
    optimizer = optim.SGD(model.parameters(), lr=lr)
    F.cross_entropy(model(x), y).backward()
    loss = its.mended_step(model, optimizer, x, y)
    return loss, model.weight.data, model.bias.data


@homework.part(3, "the training step")
def the_step(student, case):
    W, x = case.normal(3, 4), case.normal(5, 4)
    y, lr = case.rng.integers(0, 3, 5), 0.1 + 0.1 * case.number
    value, W_after, b_after = student.ask(one_step, W, x, y, lr)
    expect(value is not None, "the step: `loss` is not there to be returned", NO_RETURN)
    s = x @ W.T
    p = np.exp(s) / np.exp(s).sum(axis=1, keepdims=True)
    slope = (p - np.eye(3)[y]).T / 5
    both = {
        "when the weights did not move. optimizer.step()?": W,
        "from the gradients of this step AND those of the one before: gradients add up until "
        "somebody clears them": W - 2 * lr * slope @ x,
        "when the weights go uphill": W + lr * slope @ x,
    }
    judge(W_after, W - lr * slope @ x, both, what="the step, the weights")
    judge(b_after, -lr * slope.sum(axis=1), what="the step, the bias")
    right = -np.log(p[np.arange(5), y]).mean()
    judge(number_of(value, "the loss"), right, what="the loss that the step returns")
