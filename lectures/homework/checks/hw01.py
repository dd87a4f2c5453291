"""The checks of homework 01: recurrent networks."""

import numpy as np

from tinyattn.course.checks.judging import (
    EXACT,
    NO_RETURN,
    Homework,
    array_of,
    by_formula,
    expect,
    judge,
    number_of,
)

homework = Homework("hw01")
for task in (2, 3):
    homework.derive_by_hand(task)
homework.allow(4, "tinyattn.functional.cross_entropy")


def sigmoid(s):
    return 1 / (1 + np.exp(-s))


def scores(case):
    """s [B, 4H], the old c [B, H] and the peepholes p [3, H]."""
    B, H = case.size(3, 1, 5), case.size(2, 1, 4)
    return case.normal(B, 4 * H), case.normal(B, H), case.normal(3, H)


def pair(came, names):
    expect(
        isinstance(came, tuple) and len(came) == len(names),
        f"return {len(names)} values, {', '.join(names)}, separated by a comma",
        "not two values",
    )
    return came


# --- task 1


def cell_of(s, c, p, *, order="ifgo", S=sigmoid, on_g=np.tanh, outer=np.tanh, look="new", **slip):
    """(h, c') of the cell, or of a cell with a common mistake in it."""
    block = dict(zip(order, np.split(s, 4, axis=-1), strict=True))
    i, f = S(block["i"] + p[0] * c), S(block["f"] + p[1] * c)
    f = slip["f_of"](i) if "f_of" in slip else f
    new = f * c + i * on_g(block["g"])
    o = S(block["o"] + p[2] * (new if look == "new" else c))
    return o * outer(c if slip.get("h_from_old") else new), new


def known_cells(s, c, p):
    """(h, c) of common mistakes, by name."""

    def cell(p=p, **slip):
        return cell_of(s, c, p, **slip)

    return {
        "with the blocks in the order i, f, o, g: the third one is g": cell(order="ifog"),
        "with the blocks in the order f, i, g, o: the first one is i": cell(order="figo"),
        "with a sigmoid on g: it needs a tanh, so that it can be negative": cell(on_g=sigmoid),
        "without the outer tanh: h = o ⊙ tanh c'": cell(outer=lambda u: u),
        "without the tanh on g": cell(on_g=lambda u: u),
        "with h from the old cell state: c' has to be computed first": cell(h_from_old=True),
        "with f = 1 - i: this is the coupled gate of a GRU": cell(f_of=lambda i: 1 - i),
        "without the sigmoids": cell(S=lambda u: u),
        "without forgetting: the old c must be multiplied by f": cell(f_of=lambda i: 1),
        "without the peepholes": cell(0 * p),
        "when the output gate uses the old c instead of the new one": cell(look="old"),
        "with the peepholes of i and f swapped": cell(p[[1, 0, 2]]),
        "without the peephole of the output gate": cell(p * [[1], [1], [0]]),
        "when h and c_new are swapped: h comes first": cell()[::-1],
    }


SPLIT = "s is [B, 4H]: np.split(s, 4, axis=-1) gives four blocks [B, H]."


def lstm_part(place, name):
    def part(student, case):
        given = scores(case)
        came = pair(student.lstm_cell(*given, hint=SPLIT), ("h", "c_new"))
        slips = {slip: hc[place] for slip, hc in known_cells(*given).items()}
        judge(came[place], cell_of(*given)[place], slips, what=name)

    return part


homework.part(1, "the new cell state")(lstm_part(1, "c_new"))
homework.part(1, "the hidden state")(lstm_part(0, "h"))


# --- task 2


def rule_of(
    s,
    c,
    p,
    gh,
    gc,
    *,
    one_minus=True,
    on_g=None,
    last=np.tanh,
    back=1,
    total=None,
    to_i="g",
    to_f="c",
    keep=1,
):
    """The gradients with respect to s and c, or those with a common mistake."""
    i, f, g, o = np.split(s, 4, axis=-1)
    i, f, g = sigmoid(i + p[0] * c), sigmoid(f + p[1] * c), np.tanh(g)
    new = f * c + i * g
    o, t = sigmoid(o + p[2] * new), np.tanh(new)
    slope = (lambda gate: gate * (1 - gate)) if one_minus else (lambda gate: 1)
    s_o = gh * last(new) * slope(o)
    direct = gc + gh * o * (1 - t * t) if total is None else total(o, t)
    arrives = direct + s_o * p[2] * (back != "not to c'")
    factor = {"g": g, "c": c, "new": new, "": 1}
    s_i, s_f = arrives * factor[to_i] * slope(i), arrives * factor[to_f] * slope(f)
    s_g = arrives * i * (on_g(g) if on_g else (1 - g * g if one_minus else 1))
    by_c = arrives * f * keep + (s_i * p[0] + s_f * p[1]) * (back != "not to c")
    return np.concatenate([s_i, s_f, s_g, s_o], axis=-1), by_c


def by_differences(s, c, p, gh, gc, epsilon=1e-6):
    """The same from difference quotients of the cell: the independent reference."""

    def loss(s, c):
        h, new = cell_of(s, c, p)
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


def known_rules(s, c, p, gh, gc):
    """(gradients with respect to s and to c) of common mistakes, by name."""

    def rule(**slip):
        return rule_of(s, c, p, gh, gc, **slip)

    return {
        "when gc is missing: c' also gets a gradient directly": rule(
            total=lambda o, t: gh * o * (1 - t * t)
        ),
        "when only gc reaches c': c' is used in h as well": rule(total=lambda o, t: gc),
        "without the derivative of the outer tanh": rule(total=lambda o, t: gc + gh * o),
        "without the factor o on the path from h to c'": rule(
            total=lambda o, t: gc + gh * (1 - t * t)
        ),
        "without σ' and tanh': the gradient still has to pass from each gate to its score": rule(
            one_minus=False
        ),
        "with σ' for the block g: it has a tanh": rule(on_g=lambda g: g * (1 - g)),
        "with c' instead of tanh c' at the output gate": rule(last=lambda new: new),
        "without the path through the peephole of the output gate, which uses c'": rule(
            back="not to c'"
        ),
        "with (1 - t) instead of (1 - t²): tanh' = 1 - tanh²": rule(
            total=lambda o, t: gc + gh * o * (1 - t)
        ),
        "without g on the path to i: in i ⊙ g, the other factor is g": rule(to_i=""),
        "without c on the path to f: in f ⊙ c, the other factor is c": rule(to_f=""),
        "with c' on the path to f: the other factor is the old c": rule(to_f="new"),
        "with (1 - g)² instead of 1 - g²": rule(on_g=lambda g: (1 - g) ** 2),
        "without the path from c' to c through f": rule(keep=0),
        "without the paths through the peepholes of i and f, which use the old c": rule(
            back="not to c"
        ),
    }


BLOCKS = "np.concatenate([...], axis=-1) joins four blocks [B, H] into [B, 4H]."


def _backward(student, case):
    s, c, p = scores(case)
    s = s + (7.0 if case.number else 0.0)  # so flat that difference quotients are wrong
    c = c * (200.0 if case.number == 3 else 1.0)  # and so large
    given = s, c, p, case.normal(*c.shape), case.normal(*c.shape)
    came = student.lstm_cell_backward(*given, hint=BLOCKS)
    by_s, by_c = pair(came, ("gradient with respect to s", "gradient with respect to c"))
    return given, array_of(by_s), array_of(by_c)


def _most(given):
    """Five numbers for each unit of the cell, and as many again for who computes them twice."""
    return 10 * given[1].size


@homework.part(2, "the gradient with respect to c")
def gradient_by_c(student, case):
    given, _, by_c = _backward(student, case)
    slips = {name: rc[1] for name, rc in known_rules(*given).items()}
    if case.number == 0:  # in the others, differences are not exact enough
        judge(by_c, by_differences(*given)[1], slips, what="gradient for c", rtol=1e-5, atol=1e-7)
    judge(by_c, rule_of(*given)[1], slips, what="gradient for c", **EXACT)
    by_formula(student, _most(given))


def block_part(k, name):
    def part(student, case):
        given, by_s, _ = _backward(student, case)
        s, c = given[:2]
        expect(
            by_s.shape == s.shape,
            f"the gradient with respect to s must have the shape of s, {s.shape}: four blocks of "
            f"{c.shape}; yours is {by_s.shape}. {BLOCKS}",
            "not four blocks",
        )
        block = slice(k * c.shape[1], (k + 1) * c.shape[1])
        slips = {slip: rc[0][:, block] for slip, rc in known_rules(*given).items()}
        what = f"gradient for s, block {name}"
        if case.number == 0:
            right = by_differences(*given)[0][:, block]
            judge(by_s[:, block], right, slips, what=what, rtol=1e-5, atol=1e-7)
        judge(by_s[:, block], rule_of(*given)[0][:, block], slips, what=what, **EXACT)
        by_formula(student, _most(given))

    return part


for k, name in enumerate("ifgo"):
    homework.part(2, f"the block {name}")(block_part(k, name))


# --- task 3


def by_running(W, a, epsilon=1e-6):
    """The norms from difference quotients of the RNN itself, run from every state to the end."""
    H, T = len(W), len(a) - 1
    inputs = np.arctanh(a[1:]) - a[:-1] @ W.T  # with them the RNN visits these states
    norms = []
    for m in range(T + 1):
        moved = np.concatenate([a[T - m] + epsilon * np.eye(H), a[T - m] - epsilon * np.eye(H)])
        for x in inputs[T - m :]:
            moved = np.tanh(moved @ W.T + x)
        norms.append(np.linalg.norm(moved[:H] - moved[H:]) / (2 * epsilon) / np.sqrt(H))
    return np.array(norms)


def reach_of(W, a, *, slope=lambda a: 1 - a**2, order="right", size=1, shift=0):
    """The norms from the product of matrices, or from one with a common mistake."""
    J, norms = np.eye(len(W)), [1.0]
    for t in range(len(a) - 1, 0, -1):
        step = slope(a[t - shift])[:, None] * W
        J = {"right": J @ step, "left": step @ J, "one": step}[order]
        norms.append(np.linalg.norm(J) / np.sqrt(len(W)))
    return size * np.array(norms)


@homework.part(3, "the reach of the gradient")
def the_reach(student, case):
    H = case.size(4, 2, 6)
    W = case.normal(H, H)
    a = case.rng.uniform(-0.9, 0.9, size=(case.size(6, 3, 9), H))
    if case.number:  # so flat that differences of the RNN are wrong
        a = np.sign(a) * (1 - 1e-5 * np.abs(a))
    came = array_of(student.reach(W, a, hint="W is [H, H] and a is [T + 1, H]."))
    expect(
        came.shape != (len(a) - 1,),
        f"the reach: there are {len(a)} norms, from m = 0 (which is 1) to m = T; yours are "
        f"{len(came)}",
        "one norm too few",
    )
    mistakes = {
        "with the new matrix on the left: matrices of later steps are on the left, so "
        "multiply from the right": (reach_of(W, a, order="left")),
        "without tanh', which is 1 - a²": reach_of(W, a, slope=np.ones_like),
        "with 1 - tanh² a: the states are already tanh(s), so tanh' is 1 - a²": (
            reach_of(W, a, slope=lambda a: 1 - np.tanh(a) ** 2)
        ),
        "with tanh' at the old state: J_t takes the new state a_t": reach_of(W, a, shift=1),
        "with Wᵀ: a row of W belongs to the unit that receives": reach_of(W.T, a),
        "without the division by √H": reach_of(W, a, size=np.sqrt(H)),
        "with the norm of the last matrix only, not of the product": reach_of(W, a, order="one"),
        "in reverse order: m = 0 comes first": reach_of(W, a)[::-1],
    }
    if case.number == 0:
        judge(came, by_running(W, a), mistakes, what="the reach", rtol=1e-5, atol=1e-7)
    judge(came, reach_of(W, a), mistakes, what="the reach", **EXACT)
    by_formula(student, 10 * a.size)


# --- task 4


def rnn(its, state, x, a, what):
    """The cell, the loop, or the gradient of the inputs, of MendedRNN with these weights."""
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
        "ax.weight": (H, 1),
        "ax.bias": (H,),
        "aa.weight": (H, H),
        "aa.bias": (H,),
        "out.weight": (2, H),
        "out.bias": (2,),
    }
    return {name: 0.5 * case.normal(*shape) for name, shape in shapes.items()}


def cell_with(w, x, a, pre=lambda x, a: a):
    return x @ w["ax.weight"].T + w["ax.bias"] + pre(x, a) @ w["aa.weight"].T + w["aa.bias"]


def bits(case, H=6):
    """x [B, T, 1], an old state, and weights."""
    x = case.rng.integers(0, 2, (4, case.size(8, 3, 9), 1)).astype(float)
    x[:2, 0, 0] = 0, 1
    return x, case.normal(4, H), some_weights(case, H)


@homework.part(4, "the cell")
def the_cell(student, case):
    x, a, w = bits(case)
    x0 = x[:, 0]
    mistakes = {
        "when the state is multiplied by the input: ADD them, each with its own weights": np.tanh(
            cell_with(w, x0, a, lambda x, a: x * a)
        ),
        "without the old state": np.tanh(x0 @ w["ax.weight"].T + w["ax.bias"]),
        "without the tanh": cell_with(w, x0, a),
        "with a tanh of each term: add the terms first, then apply the tanh": np.tanh(
            x0 @ w["ax.weight"].T + w["ax.bias"]
        )
        + np.tanh(a @ w["aa.weight"].T + w["aa.bias"]),
        "without the weights of the old state, self.aa": np.tanh(
            x0 @ w["ax.weight"].T + w["ax.bias"] + a
        ),
    }
    came = student.ask(rnn, w, x, a, "cell", hint="x is [B, 1] and a is [B, H].")
    judge(came, np.tanh(cell_with(w, x0, a)), mistakes, what="the cell")


@homework.part(4, "the loop")
def the_loop(student, case):
    x, a, w = bits(case)
    far = np.abs(array_of(student.ask(rnn, w, x, a, "gradient"))).max(axis=(0, 2))
    expect(
        far[-1] > 0,
        "the loop: the last input does not reach the output. Does the loop go through all of x, "
        "and is the `return` after the loop, not in it?",
        "the last input does not reach the output",
    )
    expect(
        far[0] > 0,
        "the loop: not correct yet. The gradient of the first input is exactly 0, so the "
        "network cannot learn anything about it. What cuts the state off from its past inside "
        "the loop?",
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
    return loss, hasattr(loss, "item"), model.weight.data, model.bias.data


@homework.part(4, "the training step")
def the_step(student, case):
    W, x = case.normal(3, 4), case.normal(5, 4)
    y, lr = case.rng.integers(0, 3, 5), 0.1 + 0.1 * case.number
    value, has_item, W_after, b_after = student.ask(one_step, W, x, y, lr)
    expect(value is not None, "the step: it returned None. Return `loss`", NO_RETURN)
    expect(
        has_item,
        "the step: return the loss itself, a Tensor. The calling code takes its value with .item()",
        "a number instead of the loss",
    )
    s = x @ W.T
    p = np.exp(s) / np.exp(s).sum(axis=1, keepdims=True)
    slope = (p - np.eye(3)[y]).T / 5
    both = {
        "when the weights did not move. Is optimizer.step() missing?": W,
        "from the gradients of this step AND of the previous step: gradients add up until they are "
        "cleared": W - 2 * lr * slope @ x,
        "when the step increases the loss": W + lr * slope @ x,
    }
    judge(W_after, W - lr * slope @ x, both, what="the step, the weights")
    judge(b_after, -lr * slope.sum(axis=1), what="the step, the bias")
    right = -np.log(p[np.arange(5), y]).mean()
    judge(number_of(value, "the loss"), right, what="the loss that the step returns")
