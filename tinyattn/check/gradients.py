"""Check the engine's Jacobian against central differences.

    numeric:  dy/dx ≈ (f(x + h) - f(x - h)) / 2h

The step h = ε^(1/3) max(1, |x|), with ε = 2.2e-16 of float64, balances the two errors: truncating
the Taylor series costs h² f'''/6 ≈ 4e-11 f''' / 6, and rounding f costs ε |f| / h ≈ 4e-11 |f|. Near
x = 1e-4, the logarithm is so steep that this step is too long. A derivative that seems wrong is
therefore measured again, with the step ε^(1/3) |x| and with one a thousand times smaller. A wrong
rule agrees with none of them.
"""

import copy
from dataclasses import dataclass
from inspect import Parameter, signature

import numpy as np

from tinyattn.check.diagnosis import Case, causes_of
from tinyattn.check.report import Report, at, check_callable, name_of, number
from tinyattn.engine.autograd import Tensor, backward_pass
from tinyattn.engine.convert import as_tensor
from tinyattn.engine.ranges import check_range
from tinyattn.engine.read_only import WrittenError, comparing

STEP = np.finfo(np.float64).eps ** (1 / 3)

# For a well-behaved function, the two errors above are about 1e-10. Sums of many terms and steep
# functions lose a few more digits, but a wrong rule is wrong in the first digits, so these
# tolerances leave room.
RTOL = 1e-5  # relative to the derivative
ATOL = 1e-8  # relative to the largest |f|, for derivatives that are (nearly) zero

SHORTER = [STEP * 10.0**-n for n in (6, 5, 4, 3, 2, 1, 0)]  # steps for |x| near 1e-6, 1e-5, …, 1

# a Jacobian up to this many numbers is compared whole, a larger one by random projections
FULL = 10_000
PROJECTIONS = 3

ORDERS = {1: "first", 2: "second", 3: "third"}


def gradcheck(f, *inputs, order=1, eps=None, atol=None, rtol=RTOL):
    """Compare the gradient of f(*inputs) with central differences, in float64.

    The whole Jacobian is compared if it has at most 10,000 numbers. Otherwise three random
    combinations of its rows are compared, along three random directions of the inputs. A wrong
    number in the Jacobian still changes these with probability 1. A derivative counts as right if
    it differs by at most atol + rtol · |derivative|. A rule that modifies g, y or an input in place
    is also reported.

    Args:
        f        function that returns a Tensor, or a tuple, list or dictionary of Tensors. A module
                 is copied to float64 and checked together with its parameters
        inputs   arguments of f. Floating-point arguments (arrays, Tensors, Python floats, lists of
                 them) are converted to float64 and checked, and all others are passed on unchanged
        order    1 checks first derivatives, 2 also second and 3 also third derivatives. From 2 on,
                 the incoming gradient is an input called g (or g' if f has an input g), so a rule
                 must be right as a function of g too, and must give the same gradient when it is
                 recorded and when it is not
        eps      step, as a multiple of max(1, |x|). If None, 6e-6, or a shorter step if 6e-6 is too
                 long
        atol     absolute difference that is allowed. If None, 1e-8 times the largest result or, if
                 all results are below 1, 1e-8
        rtol     additional difference that is allowed, as a fraction of the derivative

    Returns:
        a `Report`

    Raises:
        ValueError: no input or no result is floating point, f is not deterministic, f converts its
            float64 inputs to float32, eps is not between 0 and 1, order < 1, or atol or rtol is
            negative
        TypeError: f is not a function, order is not a whole number, or eps, atol or rtol is not a
            number
    """
    check_callable("gradcheck", f)
    check_range("gradcheck", above=0, below=1, eps=eps, optional=("eps",))
    check_range("gradcheck", 0, atol=atol, rtol=rtol, optional=("atol",))
    check_range("gradcheck", 1, whole=True, order=order)
    precision = Precision(eps or STEP, atol, rtol, eps is None)
    try:
        with comparing():
            return _gradcheck(_function(f, inputs, precision), name_of(f), order)
    except WrittenError as error:
        return Report(
            False, f"gradcheck of {name_of(f)}: WRONG\n  {error}", np.inf, 0, (str(error),)
        )


def _gradcheck(function, name, order):
    done = []
    for n in range(1, order + 1):
        title = f"gradcheck of {name}, {ORDERS.get(n, f'{n}th')} order"
        report = _compare_jacobians(function, title)
        if not report:
            return report
        done.append(report)
        if n < order:
            report = _recorded_alike(function, f"gradcheck of {name}")
            if not report:
                return report
            function = _derivative(function)
    return Report(
        True,
        "\n".join(r.text for r in done),
        max(r.error for r in done),
        sum(r.compared for r in done),
    )


@dataclass(frozen=True)
class Precision:
    """The settings for measuring derivatives.

    Attributes:
        step    step of the differences, as a multiple of max(1, |x|)
        atol    largest absolute difference that passes. If None, ATOL times the size of the results
        rtol    largest difference that passes, as a fraction of the derivative
        again   True: a derivative that seems wrong is measured again with shorter steps
    """

    step: float
    atol: float | None
    rtol: float
    again: bool

    def absolute(self, size):
        """Return the largest absolute difference that passes for results of this size."""
        return ATOL * size if self.atol is None else self.atol

    def differs(self, analytic, numeric, size):
        """Return a bool array that is True where derivatives differ, for results of this size.

        Args:
            analytic   derivatives that the engine computed
            numeric    derivatives from differences, of the same shape
            size       the largest absolute value of the results
        """
        relative = self.rtol * np.maximum(np.abs(analytic), np.abs(numeric))
        return ~(np.abs(analytic - numeric) <= self.absolute(size) + relative)  # NaN differs too


@dataclass(frozen=True)
class Function:
    """A function of float64 tensors that returns a dictionary of tensors.

    Attributes:
        call        function (tensors) -> {name: tensor}
        leaves      function (arrays) -> the tensors with which `call` is called
        values      {name of an input: array}, the point at which the derivative is checked
        others      {name of an input: value}, inputs with respect to which it is not checked
        precision   the `Precision` with which derivatives are measured
    """

    call: object
    leaves: object
    values: dict
    others: dict
    precision: Precision


# ---------------------------------------------------------------- f as a function of tensors


def _function(f, inputs, precision):
    parameters = {}
    if hasattr(f, "named_parameters"):
        f = copy.deepcopy(f).astype(np.float64)
        parameters = {n: p for n, p in f.named_parameters() if p.requires_grad}
    names = _input_names(f, len(inputs))
    plain = [x.data if isinstance(x, Tensor) else x for x in inputs]
    checked = [i for i, x in enumerate(plain) if _is_floating(x)]
    values = {names[i]: np.array(plain[i], np.float64) for i in checked}
    values |= {name: p.data for name, p in parameters.items()}
    if not values:
        raise ValueError(
            "gradcheck: no input is floating point, so there is nothing to check. Pass at least "
            "one array of floating-point numbers"
        )
    others = {names[i]: x for i, x in enumerate(plain) if i not in checked}

    def leaves(arrays):
        fresh = [Tensor(a, requires_grad=True) for a in arrays[: len(checked)]]
        for p, a in zip(parameters.values(), arrays[len(checked) :], strict=True):
            p.data = a
        return [*fresh, *parameters.values()]

    def call(tensors):
        arguments = list(inputs)
        for i, t in zip(checked, tensors, strict=False):  # the parameters come after these tensors
            arguments[i] = t
        return dict(_flat(f(*arguments), "y"))

    return Function(call, leaves, values, others, precision)


def _input_names(f, n):
    """Return the names of n arguments as f declares them, or x0, x1, … if it does not."""
    try:
        declared = signature(f).parameters.values()
    except (TypeError, ValueError):
        declared = ()
    usable = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    names = [p.name for p in declared if p.kind in usable][:n]
    return names + [f"x{i}" for i in range(len(names), n)]


def _is_floating(x):
    if isinstance(x, float | list | np.ndarray | np.generic):
        return np.asarray(x).dtype.kind == "f"
    return False


def _flat(result, name):
    """Yield the floating-point tensors in a result with their names, which begin with `name`."""
    if isinstance(result, tuple | list):
        for i, r in enumerate(result):
            yield from _flat(r, f"{name}{i}")
    elif isinstance(result, dict):
        for key, r in result.items():
            yield from _flat(r, f"{name}.{key}")
    elif result is not None:
        y = result if isinstance(result, Tensor) else Tensor(np.asarray(result))
        if y.dtype.kind == "f":
            yield name, y


def _derivative(function, create_graph=True):
    """Return the gradient as a `Function` of the same inputs and of the incoming gradients.

    Without `create_graph`, the rules get arrays and are not recorded.
    """
    outputs = function.call(function.leaves(list(function.values.values())))
    rng = np.random.default_rng(1)
    incoming = {}
    for name, y in outputs.items():
        name = f"g{name.removeprefix('y')}"
        while name in function.values | incoming:  # f may have an input g
            name += "'"
        incoming[name] = rng.normal(size=y.shape)
    n = len(function.values)

    def leaves(arrays):
        return function.leaves(arrays[:n]) + [Tensor(a, requires_grad=True) for a in arrays[n:]]

    def call(tensors):
        xs, gs = tensors[:n], tensors[n:]
        y = _vector(function.call(xs))
        g = _vector(dict(enumerate(gs)))
        g = g if create_graph else g.data
        found = backward_pass(y, g, create_graph, targets=set(xs)) if y.requires_grad else {}
        return {
            f"dL/d{name}": as_tensor(found[x] if x in found else np.zeros(x.shape))
            for name, x in zip(function.values, xs, strict=True)
        }

    values = function.values | incoming
    return Function(call, leaves, values, function.others, function.precision)


def _vector(outputs):
    """Concatenate all outputs into one vector."""
    return np.concatenate([np.reshape(y, -1) for y in outputs.values()])


def _recorded_alike(function, title):
    """Return a Report on whether rules give the same result when they are recorded."""
    gradients = []
    for create_graph in (True, False):
        derivative = _derivative(function, create_graph)
        gradients.append(derivative.call(derivative.leaves(list(derivative.values.values()))))
    lines, worst = [], 0.0
    for name, recorded, plain in zip(
        function.values, *(g.values() for g in gradients), strict=True
    ):
        size = np.abs(plain.data).max(initial=1.0)
        wrong = function.precision.differs(recorded.data, plain.data, size)
        wrong &= ~(np.isnan(recorded.data) & np.isnan(plain.data))
        if wrong.any():
            index = tuple(np.argwhere(wrong)[0])
            lines.append(
                f"  input {name}: the gradient at {at(name, index)} is "
                f"{number(recorded.data[index])} with create_graph=True, and "
                f"{number(plain.data[index])} without: the rule computes something else "
                f"when it gets Tensors"
            )
        difference = np.abs(recorded.data - plain.data).max(initial=0.0) / size
        worst = max(worst, difference)
    return _finish(title, lines, [], worst, 0, "derivatives with and without recording")


# ---------------------------------------------------------------- the two Jacobians


def _compare_jacobians(function, title):
    values = list(function.values.values())
    outputs = function.call(function.leaves(values))
    _usable(function, outputs)
    n_out = sum(y.size for y in outputs.values())
    if n_out * sum(x.size for x in values) > FULL:
        return _compare_projections(function, title, _vector(outputs).data)
    # Use twice the unit vectors and halve the result, because with 1 a rule that ignores its g
    # would seem right.
    analytic = [rows / 2 for rows in _analytic(function, 2 * np.eye(n_out))]
    numeric = [np.empty_like(a) for a in analytic]
    y = _vector(outputs).data
    size = np.abs(y[np.isfinite(y)]).max(initial=1.0)
    for k, x in enumerate(values):
        for i in range(x.size):
            h = function.precision.step * max(1.0, abs(x.flat[i]))
            numeric[k][:, i] = _slopes(function, k, i, h)
            for h in _shorter(function.precision, x.flat[i]):
                wrong = function.precision.differs(analytic[k][:, i], numeric[k][:, i], size)
                if not wrong.any():
                    break
                again = _slopes(function, k, i, h)
                better = wrong & ~function.precision.differs(analytic[k][:, i], again, size)
                # the first step left the domain of the function
                better |= np.isfinite(again) & ~np.isfinite(numeric[k][:, i])
                numeric[k][better, i] = again[better]
    return _report(function, title, outputs, analytic, numeric, size)


def _slopes(function, k, i, h):
    """Return the derivatives of all results by element i of input k, with the step h."""
    one = np.zeros(list(function.values.values())[k].shape)
    one.flat[i] = h
    return _difference(function, k, one) / h


def _shorter(precision, x):
    """Return shorter steps with which to measure again near the number x, or an empty list."""
    if not precision.again:
        return []
    relative = [precision.step * abs(x)] if 1e-12 < abs(x) < 1 else []
    return [*relative, precision.step / 1000 * max(1.0, abs(x))]


def _usable(function, outputs):
    if not outputs:
        raise ValueError(
            "gradcheck: the function returned no floating-point result. Return one that depends on "
            "the inputs"
        )
    for name, y in outputs.items():
        if y.dtype != np.float64:
            raise ValueError(
                f"gradcheck: all inputs are float64, but the result {name} is {y.dtype}, too "
                "coarse for differences. Find the operation that changes the dtype, or convert the "
                "weights of a layer with layer.astype(np.float64)"
            )
    again = function.call(function.leaves(list(function.values.values())))
    if not np.array_equal(_vector(outputs).data, _vector(again).data, equal_nan=True):
        raise ValueError(
            "gradcheck: the function gives a different result each time, so differences mean "
            "nothing. Seed its random numbers, for example with rng=0, or switch dropout off with "
            ".eval()"
        )


def _analytic(function, seeds):
    """Return the matrix seeds · J for each input, with one backward pass for each seed."""
    xs = function.leaves(list(function.values.values()))
    y = _vector(function.call(xs))
    rows = [[] for _ in xs]
    for seed in seeds:
        found = (
            backward_pass(y, seed, retain_graph=True, targets=set(xs)) if y.requires_grad else {}
        )
        for row, x in zip(rows, xs, strict=True):
            g = found[x] if x in found else np.zeros(x.shape)
            row.append(np.reshape(g, -1))
    return [np.reshape(row, (len(seeds), x.size)) for row, x in zip(rows, xs, strict=True)]


def _difference(function, k, step):
    """Return (f(x + step) - f(x - step)) / 2 as one vector, where the step changes input k."""
    ys = []
    for sign in (1, -1):
        values = list(function.values.values())
        values[k] = values[k] + sign * step
        with np.errstate(divide="ignore", invalid="ignore"):  # a step may leave the domain
            ys.append(_vector(function.call(function.leaves(values))).data)
    with np.errstate(invalid="ignore"):
        return (ys[0] - ys[1]) / 2


def _compare_projections(function, title, y):
    rng, precision = np.random.default_rng(0), function.precision
    seeds = rng.normal(size=(PROJECTIONS, y.size))
    # A projection sums many derivatives, so the tolerance is relative to it and to the sum of the
    # results.
    atol = precision.absolute(max(1.0, (np.abs(seeds) @ np.abs(y)).max()))
    analytic = _analytic(function, seeds)
    lines, causes, worst, compared = [], [], 0.0, 0
    for k, (name, x) in enumerate(function.values.items()):
        if x.size == 0:
            continue
        a, n = np.empty((2, PROJECTIONS, PROJECTIONS))
        for j in range(PROJECTIONS):
            direction = rng.normal(size=x.shape) * np.maximum(1.0, np.abs(x))
            a[:, j] = analytic[k] @ direction.ravel()
            n[:, j] = _along(function, k, seeds, direction, [precision.step])
            tolerance = atol + precision.rtol * max(np.abs(a[:, j]).max(), np.abs(n[:, j]).max())
            if precision.again and not np.abs(a[:, j] - n[:, j]).max() <= tolerance:
                again = _along(function, k, seeds, direction, SHORTER)
                if np.abs(a[:, j] - again).max() <= tolerance:
                    n[:, j] = again
        compared += a.size
        difference, size = np.abs(a - n).max(), max(np.abs(a).max(), np.abs(n).max())
        worst = max(worst, difference / max(1.0, size))
        if not difference <= atol + precision.rtol * size:
            index, one_a, one_n = _search(function, k, seeds[0], analytic[k][0])
            lines.append(
                f"  input {name}, shape {x.shape}: differs most near {at(name, index)}: "
                f"analytic {number(one_a)}, numeric {number(one_n)} "
                f"(of a random sum of all results)"
            )
            causes += [f"{name}: {c}" for c in causes_of(Case(name, x, None, (), {}, {}), a, n)]
    return _finish(title, lines, causes, worst, compared, "random sums of derivatives")


def _along(function, k, seeds, direction, steps):
    """Return seeds · dy/d(input k) · direction, where the |x| of each element selects its step."""
    x, total = np.abs(list(function.values.values())[k]), 0.0
    bounds = [0.0, *[h / STEP for h in steps[1:]], np.inf]
    for h, low, high in zip(steps, bounds, bounds[1:], strict=False):
        part = np.where((x >= low) & (x < high), direction, 0.0)
        if part.any():
            total = total + seeds @ (_difference(function, k, h * part) / h)
    return total


def _search(function, k, seed, analytic):
    """Return (index, analytic, numeric) of one wrong derivative, found by halving the suspects."""
    x = list(function.values.values())[k]
    h = function.precision.step
    steps = h * np.maximum(1.0, np.abs(x)).ravel()

    def numeric(ids):
        step = np.zeros(x.size)
        step[ids] = steps[ids]
        return seed @ _difference(function, k, step.reshape(x.shape)) / h

    ids = np.arange(x.size)
    while len(ids) > 1:
        halves = np.array_split(ids, 2)
        wrong = [abs(analytic[half] @ steps[half] / h - numeric(half)) for half in halves]
        ids = halves[int(np.argmax(wrong))]
    i = ids[0]
    return np.unravel_index(i, x.shape), analytic[i], numeric(ids) * h / steps[i]


# ---------------------------------------------------------------- the report


def _report(function, title, outputs, analytic, numeric, size):
    lines, causes, worst, compared = [], [], 0.0, 0
    y = _vector(outputs)
    places = [(name, i) for name, t in outputs.items() for i in np.ndindex(t.shape)]
    shape = next(iter(outputs.values())).shape if len(outputs) == 1 else None
    for k, (name, x) in enumerate(function.values.items()):
        a, n = analytic[k], numeric[k]
        compared += a.size
        if a.size == 0:
            continue
        difference = np.nan_to_num(np.abs(a - n), nan=np.inf)
        worst = max(worst, (difference / np.maximum(1.0, np.abs(n))).max())
        wrong = function.precision.differs(a, n, size)
        if not wrong.any():
            continue
        i, j = np.unravel_index(np.argmax(difference), a.shape)
        out, inp = at(*places[i]), at(name, np.unravel_index(j, x.shape))
        lines.append(
            f"  input {name}, shape {x.shape}: {wrong.sum()} of {a.size} derivatives are wrong, "
            f"the worst is d {out} / d {inp}: analytic {number(a[i, j])}, numeric {number(n[i, j])}"
        )
        others = {m: v for m, v in (function.values | function.others).items() if m != name}
        jacobians = {m: v for m, v in zip(function.values, numeric, strict=True) if m != name}
        case = Case(name, x, y.data, shape, others, jacobians, wrong, _kinks(function, k, wrong))
        if not y.requires_grad:
            found = [
                "the result is not connected to any input: it was computed from plain arrays "
                "(.data, .numpy(), .detach(), no_grad), which have no gradient"
            ]
        else:
            found = causes_of(case, a, n)
        causes += [f"{name}: {c}" for c in found]
    return _finish(title, lines, causes, worst, compared, "derivatives")


def _kinks(function, k, wrong):
    """Return {wrong element: (left slope, right slope)} where the two slopes differ."""
    values = list(function.values.values())
    middle = _vector(function.call(function.leaves(values))).data
    kinks = {}
    for j in np.flatnonzero(wrong.any(axis=0))[:50]:
        slopes = []
        for sign in (-1, 1):
            step = np.zeros(values[k].shape)
            step.flat[j] = sign * function.precision.step * max(1.0, abs(values[k].flat[j]))
            moved = [v + step if i == k else v for i, v in enumerate(values)]
            with np.errstate(divide="ignore", invalid="ignore"):
                y = _vector(function.call(function.leaves(moved))).data
                slopes.append((y - middle) / step.flat[j])
        # the slope of a smooth function changes by only h f''
        if not np.allclose(*slopes, rtol=1e-3, atol=1e-3):
            kinks[j] = slopes
    return kinks


def _finish(title, lines, causes, worst, compared, what):
    if not lines:
        what = what if compared != 1 else what.replace("derivatives", "derivative")
        text = f"{title}: right ({compared} {what} compared with central differences, "
        text += f"largest difference {worst:.1e})"
        return Report(True, text, worst, compared)
    text = [f"{title}: WRONG", *lines, *(f"  perhaps: {c}" for c in causes)]
    return Report(False, "\n".join(text), worst, compared, tuple(causes))
