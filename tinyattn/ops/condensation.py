"""The repulsion of object condensation, summed without a table of all pairs."""

import numpy as np

from tinyattn.engine.autograd import Tensor, primitive
from tinyattn.engine.convert import to_array
from tinyattn.ops.index import scatter_add


@primitive
def repulsion(x, q, x_alpha, q_alpha, pairs):
    """Return Σ q_j max(0, 1 - |x_j - x_αk|) q_αk over pairs of a point j and an object k.

    Args:
        x         positions x_j of all points [N, C]
        q         charges q_j of all points [N]
        x_alpha   position x_αk of the condensation point of each object [K, C]
        q_alpha   charge q_αk of each condensation point [K]
        pairs     blocks of pairs, each with two arrays of the indices j and k. The forward and the
                  backward pass iterate over the blocks. Pairs farther apart than 1 contribute
                  nothing, so they may be left out
    """
    total = 0.0
    for j, k in pairs:
        _, _, push = _pushes(x[j] - x_alpha[k])
        total += float(np.sum(q[j] * push * q_alpha[k]))
    return np.asarray(total, x.dtype)


@repulsion.defvjp_joint
def _repulsion_rule(g, y, x, q, x_alpha, q_alpha, pairs):
    inputs = x, q, x_alpha, q_alpha
    grads = [np.zeros(a.shape, a.dtype) for a in inputs]
    for j, k in pairs:
        q_j, q_k = q[j], q_alpha[k]
        away, slope, push = _pushes(x[j] - x_alpha[k])
        pull = away * np.expand_dims(slope * q_j * q_k, 1)
        parts = (-pull, j), (push * q_k, j), (pull, k), (push * q_j, k)
        sums = [
            scatter_add(part, ids, a.shape) for (part, ids), a in zip(parts, inputs, strict=True)
        ]
        grads = [
            a + (s if isinstance(g, Tensor) else s.data) for a, s in zip(grads, sums, strict=True)
        ]
    return (*[g * a for a in grads], None)


def _pushes(away):
    """Return (x - x_α, 1 / d, max(0, 1 - d)) for x - x_α = `away` [P, C] and d = |x - x_α| [P].

    At d = 0, where d has no derivative, and at d > 1, where the push is constant, the second result
    is 0 instead of 1 / d.
    """
    d2 = np.sum(np.square(away), axis=1)
    apart, near = to_array(d2) > 0, to_array(d2) <= 1
    d = np.sqrt(np.where(apart, d2, 1))
    return away, np.where(apart & near, 1 / d, 0), np.maximum(0, np.where(apart, 1 - d, 1))
