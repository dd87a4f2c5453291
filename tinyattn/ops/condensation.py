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
        q         their charges q_j [N]
        x_alpha   position x_αk of the condensation point of each object [K, C]
        q_alpha   its charge q_αk [K]
        pairs     blocks of pairs, which are read one after the other, each as two arrays of the
                  indices j and k
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
    """Turn x - x_α [P, C] into directions in place. Return 1 / |x - x_α| and 1 - |x - x_α| [P].

    At distance 0, where the derivative of the distance does not exist, 0 is used.
    """
    d2 = np.sum(np.square(away), axis=1)
    apart = to_array(d2) > 0
    d = np.sqrt(np.where(apart, d2, 1))
    return away, np.where(apart, 1 / d, 0), np.maximum(0, np.where(apart, 1 - d, 1))
