"""Find the inputs that are the summands of a result: y_i = Σ_j dy_i/dx_j x_j, where this holds."""

import numpy as np


def summands(step, rows, packed):
    """Return the indices of the inputs whose terms slope · value sum to every y_i, or None.

    `rows` is the list of `Rows` of the `Step`, and `packed` is what the function `packed` returns
    for them. The choices are tested in this order: all inputs, all but one of a pair of factors, a
    single input. The last choice finds that attention is a sum over its values. The terms also sum
    to y_i for some operations that are not sums (maximum, relu), by Euler's theorem for homogeneous
    functions of degree one.
    """
    inputs = [k for k, r in enumerate(rows) if r is not None]
    with np.errstate(all="ignore"):
        sums = {k: _sum(step, rows[k], k) for k in inputs}
        choices = [inputs, *_without_partner(step, inputs, packed), *[[k] for k in inputs]]
        return next((c for c in choices if c and _adds_up(step, [sums[k] for k in c])), None)


def _sum(step, r, k):
    x = np.asarray(step.values[k], np.float64).reshape(-1)
    terms = np.where(r.slopes == 0, 0, r.slopes * x[r.columns])
    return np.bincount(r.owners(), terms, step.y.size)


def _adds_up(step, sums):
    y, total = step.y.reshape(-1).astype(np.float64), np.sum(sums, axis=0)
    largest = np.abs(y[np.isfinite(y)]).max(initial=0)
    room = 1e-5 * largest + 1e-6 if step.y.dtype == np.float32 else 1e-9 * (1 + largest)
    return ((total == y) | (np.abs(total - y) <= room)).all()


def _without_partner(step, inputs, packed):
    """Yield the inputs without one factor of a product, because a product counts only once."""
    is_tensor = [x is not None for x in step.inputs]
    for k in sorted(inputs, key=lambda k: not is_tensor[k]):
        partner = packed[k].get("partner")
        if partner is None and is_tensor[k] and len(inputs) == 2:
            other = inputs[1] if inputs[0] == k else inputs[0]
            # in a product with a single number, all slopes are equal, so `packed` has no partner
            partner = other if np.size(step.values[other]) == 1 else None
        if partner is not None:
            yield [q for q in inputs if q != partner]
