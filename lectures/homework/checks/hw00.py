"""The checks of homework 00: rules of the engine."""

import numpy as np

from tinyattn.course.checks.judging import (
    EXACT,
    Homework,
    array_of,
    by_formula,
    expect,
    judge,
    number_of,
)

homework = Homework("hw00")
homework.allow(1, "tinyattn.primitive")
for task in (1, 2, 3, 4, 5):
    homework.derive_by_hand(task)
homework.derive_by_hand(8, engine=True)


# --- task 1


@homework.part(1, "the rule")
def sigmoid_rule(student, case):
    x = np.array([[-2.0, 0.0, 1.0], [0.5, 3.0, -0.1]]) if case.number == 0 else case.normal(4, 2)
    x = x + (9.0 if case.number else 0.0)  # so flat that difference quotients are wrong
    y = 1 / (1 + np.exp(-x))
    g = case.normal(*x.shape)
    mistakes = {
        "without g: the gradient from above is not used. Multiply by g": y * (1 - y),
        "with x instead of y. Did you use x? The derivative is easiest with y": g * x * (1 - x),
        "with the opposite sign: the sign is wrong": -g * y * (1 - y),
        "without the factor 1 - y": g * y,
        "without the factor y": g * (1 - y),
        "from y (1 + y)": g * y * (1 + y),
        "from the rule of tanh, 1 - y²": g * (1 - y * y),
        "with 1 - x instead of 1 - y": g * y * (1 - x),
        "with g added: multiply by g, as in every rule": g + y * (1 - y),
    }
    judge(student.sigmoid_rule(g, y, x), g * y * (1 - y), mistakes, **EXACT)
    by_formula(student, x.size)


# --- task 2

AXIS = "Insert the removed axis again (np.expand_dims), then copy g to the shape of x."


@homework.part(2, "a sum over an axis")
def total_rule(student, case):
    shapes = [((2, 3), 1), ((2, 2), 0), ((3, 3), 1), ((2, 3, 4), 1)]
    for shape, axis in shapes:
        shape = tuple(n + case.number for n in shape)
        x = case.normal(*shape)
        g = case.normal(*np.sum(x, axis).shape)
        right = np.repeat(np.expand_dims(g, axis), shape[axis], axis)
        mistakes = {
            "divided by the length of the axis: that would be the rule of the mean": right
            / shape[axis],
            "multiplied by x: the derivative with respect to each term of a sum is 1": right * x,
            "from the sum of all of g: every number of x gets the g of its own sum": np.full(
                shape, g.sum()
            ),
            "without the gradient from above: every number of x gets the g of its own sum": (
                np.ones(shape)
            ),
        }
        if g.ndim == 1 and len(g) == shape[-1]:
            mistakes[
                "along the wrong axis. For axis=1, all numbers of a ROW get the same gradient"
            ] = np.broadcast_to(g if axis == 1 else g[:, None], shape)
        came = array_of(student.total_rule(g, np.sum(x, axis), x, axis, hint=AXIS))
        expect(
            came.shape == shape,
            f"x has shape {shape} and axis={axis}, so g has shape {g.shape}, and the gradient must "
            f"have the shape of x. Yours has shape {came.shape}",
            "with another shape than x",
        )
        judge(came, right, mistakes, what=f"x of shape {shape}, axis={axis}")


# --- task 3

SHAPES = [
    ((5, 3), (5, 3)), ((3,), (5, 3)), ((5, 1), (5, 3)), ((1, 3), (5, 3)), ((), (2, 3)),
    ((4, 1), (2, 4, 3)), ((1, 1), (7, 1)),
]  # fmt: skip
MORE_SHAPES = [((3, 1, 2), (4, 3, 5, 2)), ((1,), (4, 6)), ((1, 4), (3, 1, 2, 4)), ((2, 1), (2, 1))]


def some_shapes(case):
    """Six pairs of shapes: of a large one, the first axes are missing, and others have length 1."""
    found = []
    for _ in range(6):
        large = [int(n) for n in case.rng.integers(1, 5, case.rng.integers(1, 5))]
        kept = large[case.rng.integers(0, len(large) + 1) :]
        found.append((tuple(n if case.rng.random() < 0.5 else 1 for n in kept), tuple(large)))
    return found


def summed(g, shape):
    """The same sum, by a loop over all numbers of g."""
    found = np.zeros(shape)
    for place in np.ndindex(g.shape):
        last = place[len(place) - len(shape) :]
        found[tuple(0 if n == 1 else i for i, n in zip(last, shape, strict=True))] += g[place]
    return found


def _axes(g, shape, came):
    """Say which axes a result is summed over and which are right, or "" if it is not such a sum."""
    left = g.ndim - len(shape)
    copies = tuple(left + i for i, n in enumerate(shape) if n == 1 and g.shape[left + i] > 1)
    wanted = (*range(left), *copies)
    for code in range(1, 2**g.ndim):
        axes = tuple(i for i in range(g.ndim) if code >> i & 1)
        for keep in (False, True):
            total = g.sum(axes, keepdims=keep)
            if axes != wanted and total.shape == came.shape and np.allclose(total, came):
                return (
                    f"Yours is summed over {_list(axes)} of g, but the copies are along "
                    f"{_list(wanted) if wanted else 'no axis'}."
                )
    return ""


def _list(axes):
    return f"axis {axes[0]}" if len(axes) == 1 else f"the axes {', '.join(map(str, axes))}"


@homework.part(3, "sums over copies")
def sum_to(student, case):
    for small, large in SHAPES if case.number == 0 else MORE_SHAPES + some_shapes(case):
        g = case.normal(*large)
        what = f"g of shape {large}, to be summed to {small}"
        came = array_of(student.sum_to(g, small, hint=what))
        reason = _axes(g, small, came) or (
            "An axis is missing: use keepdims=True where shape has length 1."
            if came.ndim < len(small)
            else "Some axes or copies must still be summed."
        )
        expect(
            came.shape == small,
            f"{what}: your result has shape {came.shape}. {reason}",
            "with another shape than asked for",
        )
        right = summed(g, small)
        copies = max(1, int(np.prod(large)) // max(1, int(np.prod(small))))
        short = [i - len(small) for i, n in enumerate(small) if n == 1]
        part = {
            "as a mean: the copies must be summed. Did you take a mean?": right / copies,
            "from the first copy only": g[(0,) * (len(large) - len(small))]
            if not short
            else right * np.nan,
        }
        if np.size(right) > 1:
            part["from the sum of all numbers of g, in every position"] = np.full(
                np.shape(right), g.sum()
            )
        if not np.allclose(came, right) and (reason := _axes(g, small, came)):
            part[f"from a sum over other axes. {reason}"] = came
        judge(came, right, part, what=what)


# --- task 4


def factors(case):
    """Square matrices first, because every arrangement has a shape that fits there."""
    N, K, M = (3, 3, 3) if case.number < 2 else (2, 3, 4 + case.number)
    return case.normal(N, K), case.normal(K, M), case.normal(N, M)


def arrangements(case, of):
    a, b, g = factors(case)
    other, name, side = (b, "b", "right") if of == "a" else (a, "a", "left")
    right = g @ b.T if of == "a" else a.T @ g
    wrong = {}
    ways = {
        f"where {name} is not transposed: {name} must be transposed": (
            lambda: g @ b if of == "a" else a @ g
        ),
        f"in the wrong order. In y = a b, {name} is on the {side}, and it stays there": (
            lambda: other.T @ g if of == "a" else g @ other.T
        ),
        f"in the wrong order, and without a transpose: {name} stays on the {side}": (
            lambda: other @ g if of == "a" else g @ other
        ),
        "from an elementwise product (*): y = a b is a matrix product, and so is its rule": (
            lambda: g * other
        ),
        "without g: the gradient from above is not used": (
            lambda: np.ones_like(g) @ b.T if of == "a" else a.T @ np.ones_like(g)
        ),
        f"with g transposed instead of {name}: {name} must be transposed, g stays as it is": (
            lambda: g.T @ b if of == "a" else g.T @ a
        ),
        f"from the other rule: this is the gradient of {'b' if of == 'a' else 'a'}": (
            lambda: a.T @ g if of == "a" else g @ b.T
        ),
    }
    for way, compute in ways.items():
        try:
            wrong[way] = compute()
        except ValueError:  # this arrangement has no shape that fits
            continue
    return (g, a @ b, a, b), right, wrong


MATRICES = "g is [N, M], a is [N, K], b is [K, M]: which arrangement has the required shape?"


@homework.part(4, "the rule of a")
def rule_a(student, case):
    given, right, wrong = arrangements(case, "a")
    judge(student.matmul_rule_a(*given, hint=MATRICES), right, wrong, what="the rule of a")


@homework.part(4, "the rule of b")
def rule_b(student, case):
    given, right, wrong = arrangements(case, "b")
    judge(student.matmul_rule_b(*given, hint=MATRICES), right, wrong, what="the rule of b")


# --- task 5


@homework.part(5, "softmax along the rows")
def softmax_rule(student, case):
    N, C = (4, 4) if case.number == 0 else (case.size(4, 2, 5), case.size(4, 3, 6))
    x, g = case.normal(N, C), case.normal(N, C)
    g = g + (1e3 if case.number else 0.0)  # it cancels in a formula, not in differences
    y = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
    J = [np.diag(row) - np.outer(row, row) for row in y]
    right = np.array([j @ row for j, row in zip(J, g, strict=True)])
    mistakes = {
        "with the diagonal only: each probability of a row depends on all its scores": g
        * y
        * (1 - y),
        "without the sum: each probability of a row depends on all its scores": g * y,
        "with the sum over the whole array, although each row is separate": y * (g - np.sum(g * y)),
        "with the sum over the columns: sum along the row, axis=1": y
        * (g - np.sum(g * y, axis=0, keepdims=True)),
        "with the sum of g without y: if all scores of a row rise together, nothing changes, so "
        "the gradient of a row must sum to 0": y * (g - np.sum(g, axis=1, keepdims=True)),
        "with 1 instead of g before the sum": y * (1 - np.sum(g * y, axis=1, keepdims=True)),
        "with the mean instead of the sum": y * (g - np.mean(g * y, axis=1, keepdims=True)),
        "by adding the sum: if one probability rises, all others of the row fall": y
        * (g + np.sum(g * y, axis=1, keepdims=True)),
        "without the factor y before the sum: both terms have it": g * y
        - np.sum(g * y, axis=1, keepdims=True),
        "without the factor y": g - np.sum(g * y, axis=1, keepdims=True),
        "with the opposite sign": -right,
    }
    if N == C:
        why = "without keepdims: the sums of the rows are subtracted from the columns"
        mistakes[why] = y * (g - np.sum(g * y, axis=1))
    hint = "A sum along the row must keep its axis (keepdims=True) to fit the shape of g."
    judge(student.softmax_rule(g, y, x, hint=hint), right, mistakes, **EXACT)
    by_formula(student, x.size)


# --- task 6


def slope_of(its, program, value):
    """The student's derivative of the last number of a program with respect to the first.

    `program` has steps (operation, i, j) on the numbers so far. The operation "const" makes j.
    """

    used = [0]  # not in the class, where it could be set back

    class Counted(tuple):
        """Slopes that count how often they are used."""

        def __iter__(self):
            used[0] += 1
            if used[0] > 40 * len(program) + 1000:
                raise ValueError(
                    "your backward visits the same numbers repeatedly: for a chain of 20 doublings "
                    "it would take a million steps. Each number passes its gradient on once"
                )
            return super().__iter__()

    numbers = [its.Number(value)]
    for operation, i, j in program:
        if operation == "const":
            numbers.append(its.Number(j))
            continue
        a, b = numbers[i], numbers[j]
        new = a + b if operation == "add" else a * b
        new.slopes = Counted(new.slopes)
        numbers.append(new)
    its.backward(numbers[-1])
    return float(numbers[0].grad)


def slope(program, value):
    """The same slope, forwards: every number carries its derivative along."""
    numbers = [(value, 1.0)]
    for operation, i, j in program:
        if operation == "const":
            numbers.append((j, 0.0))
            continue
        (a, da), (b, db) = numbers[i], numbers[j]
        numbers.append((a + b, da + db) if operation == "add" else (a * b, da * b + a * db))
    return numbers[-1][1]


A, M = "add", "mul"
PROGRAMS = {  # numbers are 0 (x), then one for each step
    "y = 5 x": ([("const", 0, 5.0), (M, 0, 1)], 2.0),
    "y = x x x, at 2": ([(M, 0, 0), (M, 1, 0)], 2.0),
    "y = x + x + x": ([(A, 0, 0), (A, 1, 0)], 1.0),
    "p = x x, y = p + p, at 3": ([(M, 0, 0), (A, 1, 1)], 3.0),
    "p = x x, y = p p + p, at 0.5": ([(M, 0, 0), (M, 1, 1), (A, 2, 1)], 0.5),
    "p = x x, y = p p + p, at 3": ([(M, 0, 0), (M, 1, 1), (A, 2, 1)], 3.0),
    "p = x x, y = p + p p, at 3": ([(M, 0, 0), (M, 1, 1), (A, 1, 2)], 3.0),
    "q = 2 x + 1, y = q q + x q, at 1": (
        [("const", 0, 2.0), (M, 0, 1), ("const", 0, 1.0), (A, 2, 3)]
        + [(M, 4, 4), (M, 0, 4), (A, 5, 6)],
        1.0,
    ),
}


def a_program(case):
    """Random sums and products of earlier numbers."""
    program = [("const", 0, 0.5)]
    for n in range(2, case.size(6, 5, 9)):
        operation = M if case.rng.random() < 0.5 else A
        program.append((operation, int(case.rng.integers(0, n)), n - 1))
    return [*program, (A, len(program), 0)], 0.7


def _slope(student, what, program, value):
    hint = "A recursion stops after a thousand steps. Use a loop and a list (failure 1 in class)."
    came = float(number_of(student.ask(slope_of, program, value, hint=hint), "the slope"))
    right = slope(program, value)
    if came == 0:
        why = "No gradient arrives: is result.grad set to 1, and does the loop start at the result?"
    elif len(program) == 2 and program[0][0] == "const":
        why = (
            "No number is used twice here, so the error is in the product itself: each input "
            "gets slope * number.grad."
        )
    elif came > right:
        why = (
            "Too large: a number that is used twice passes its gradient on twice, and the second "
            "time the first part is still in it. This is the friend's bug."
        )
    else:
        why = (
            "Too small: the slopes of all paths must be ADDED, and a number may pass its gradient "
            "on only after everything computed from it has done so."
        )
    expect(
        np.isclose(came, right),
        f"{what}: the gradient is {right:g}, yours is {came:g}. {why}",
        why.partition(":")[0],
    )


@homework.part(6, "numbers that are used twice")
def used_twice(student, case):
    if case.number:
        program, value = a_program(case)
        _slope(student, f"the program {program}", program, value)
        return
    for what, (program, value) in PROGRAMS.items():
        _slope(student, what, program, value)


@homework.part(6, "each number once", hidden=())
def once(student, case):
    doubled = [(A, n, n) for n in range(20)]
    _slope(student, "y = x doubled twenty times", doubled, 1.0)


@homework.part(6, "a long chain", hidden=())
def long_chain(student, case):
    chain = [(A, n, 0) for n in range(5000)]
    _slope(student, "y = x + x + … + x, 5,000 times", chain, 1.0)


# --- task 7


def descended(its, start, idle, step, times):
    """Return two parameters after steps on a quadratic loss, where the second has no gradient."""
    import numpy as np

    import tinyattn as ta

    w = ta.tensor(start, requires_grad=True)
    other = ta.tensor(idle, requires_grad=True)
    for _ in range(times):
        np.sum(w * w).backward()
        its.descend([w, other], step)
    return w.data, other.data, w.grad


DESCEND = (
    "A parameter may have no gradient (its .grad is None), and then it stays as it is. Change the "
    "numbers in p.data, not the tensor itself."
)


def _descend(student, case, times):
    start, idle, step = np.array([1.0, -2.0]), np.array([5.0]), 0.25
    if case.number:
        start, step = start + case.normal(2), float(case.rng.uniform(0.05, 0.25))
    w, other, grad = student.ask(descended, start, idle, step, times, hint=DESCEND)
    return start, step, array_of(w), array_of(other), grad


@homework.part(7, "one step")
def one_step(student, case):
    start, step, w, other, grad = _descend(student, case, 1)
    mistakes = {
        "if the parameter did not move. `p = p - ...` only gives the name p to a new tensor. "
        "Change p.data": start,
        "if the step goes uphill: the step is AGAINST the gradient": start + step * 2 * start,
        "if the length of the step is not used": start - 2 * start,
    }
    judge(w, start - step * 2 * start, mistakes, what="descend")
    judge(other, np.array([5.0]), what="a parameter without gradient must stay as it is")
    expect(
        grad is None or np.any(array_of(grad)),
        "a gradient is removed with p.grad = None. Zeros say that there is a gradient, which is "
        "zero",
        "zeros instead of None",
    )
    expect(
        grad is None,
        "the gradient is still there. Gradients add up, so the next backward() would add to it. "
        "Set p.grad = None",
        "the gradient is not removed",
    )


@homework.part(7, "many steps")
def many_steps(student, case):
    start, step, w, *_ = _descend(student, case, 20)
    mistakes = {
        "if gradients add up: each step must start without a gradient": _piled_up(start, step, 20)
    }
    judge(w, start * (1 - 2 * step) ** 20, mistakes, what="twenty steps on a quadratic loss")


def _piled_up(w, step, times):
    g = np.zeros_like(w)
    for _ in range(times):
        g = g + 2 * w
        w = w - step * g
    return w


# --- task 8


def bell_of(x, width):
    return np.exp(-((x / width) ** 2))


def bells(case):
    x = case.normal(4, 3)
    if case.number:
        x[0] *= 1e-6  # near the top, where differences are wrong
    return x, np.array([0.7, 1.0, 2.0]) + 0.3 * case.number


@homework.part(8, "the value")
def bell(student, case):
    x, width = bells(case)
    mistakes = {
        "without the square of the width": np.exp(-(x**2 / width)),
        "without the minus: the bell must decrease on both sides": np.exp((x / width) ** 2),
        "without the square of x": np.exp(-x / width**2),
        "without the square": np.exp(-(x / width)),
        "without the width": np.exp(-(x**2)),
        "with a factor 1/2, as in a normal distribution": np.exp(-((x / width) ** 2) / 2),
    }
    judge(student.bell(x, width), bell_of(x, width), mistakes, what="bell")


def _worked_out(counted, most):
    expect(
        counted is None or counted <= most,
        "right, but your rules evaluate the bell itself several times. Derive the rules on paper",
        "differences in place of the derivative",
    )


RULES = (
    "bell has two inputs, so it needs two rules. Each rule is given g, y, x and width, even if it "
    "does not use them all."
)


@homework.part(8, "the two rules")
def bell_rules(student, case):
    x, width = bells(case)
    arriving = case.normal(4, 3)
    _, grads = student.gradients("bell", x, width, arriving=arriving, hint=RULES)
    counted = student.counted
    g, y = arriving, bell_of(x, width)
    by_x, by_width = -2 * x / width**2 * y * g, 2 * x**2 / width**3 * y * g
    expect(grads[0] is not None and grads[1] is not None, RULES, "a rule is missing")
    judge(
        grads[0],
        by_x,
        {
            "with the opposite sign: the sign is wrong": -by_x,
            "without the 2": by_x / 2,
            "with one factor of width too many": by_x * width,
            "without g: the gradient from above is not used": by_x / g,
            "without y": by_x / y,
            "without the division by width²": by_x * width**2,
            "from the rule of the width. Are the two rules swapped? The first is that of x": (
                by_width
            ),
        },
        what="the rule of x",
        **EXACT,
    )
    judge(
        grads[1],
        by_width.sum(axis=0),
        {
            "with the opposite sign: the sign is wrong": -by_width.sum(axis=0),
            "with one factor of width too many": (by_width * width).sum(axis=0),
            "with x instead of x²": (by_width / x).sum(axis=0),
            "without g: the gradient from above is not used": (by_width / g).sum(axis=0),
            "without y": (by_width / y).sum(axis=0),
            "from the rule of x. Are the two rules swapped?": by_x.sum(axis=0),
            "with two factors of width too many": (by_width * width**2).sum(axis=0),
            "without the 2": by_width.sum(axis=0) / 2,
        },
        what="the rule of the width",
        **EXACT,
    )
    _worked_out(counted, 3 * x.size)


def second(its, x, width):
    """The second derivative with respect to x, for each number separately."""
    import numpy as np

    import tinyattn as ta

    t = ta.tensor(x, requires_grad=True)
    its.bell(t, width).backward(np.ones(x.shape), create_graph=True)
    slope, t.grad = t.grad, None
    slope.backward(np.ones(x.shape))
    return t.grad


@homework.part(8, "the second derivative")
def bell_second(student, case):
    x, width = bells(case)
    _, grads = student.gradients("bell", x, width, arriving=np.ones(x.shape), hint=RULES)
    first = -2 * x / width**2 * bell_of(x, width)
    expect(
        grads[0] is None or np.allclose(grads[0], first),
        "it is checked only when the rule of x is right",
        "the rule of x is wrong",
    )
    came = student.ask(second, x, width, hint="Are all parts of your rules NumPy functions?")
    counted = student.counted
    expect(came is not None, "no second derivative: are all parts of your rules NumPy functions?")
    right = (4 * x**2 / width**4 - 2 / width**2) * bell_of(x, width)
    judge(came, right, what="the second derivative with respect to x", **EXACT)
    _worked_out(counted, 2 * x.size)
