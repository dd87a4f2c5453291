"""How a compiled kernel becomes an operation, and the operations made so."""

from functools import cache, wraps

import numpy as np

from tinyattn.autograd import Operation, Tensor, record
from tinyattn.ops.elementwise import unwrap

ENOUGH = 4096  # numbers from which a kernel is worth its call (and, once, the import of Numba)


def fused(instead):
    """Make a function that runs a kernel differentiable.

        @fused(instead='impl="matmul"')
        def twice(x):
            return kernel(x), saved
        twice.defvjp(lambda g, y, saved, wanted, x: [backward_kernel(g, saved)])

    The function sees plain arrays and returns y and whatever its rule wants to have back. The
    rule gets the gradient g of y, y, that, one bool per input that says whether its gradient is
    wanted, and the inputs; it returns the gradients of all inputs (None where not wanted).

    A kernel is not NumPy code, so its rule cannot be differentiated again. The error for that
    names what can: `instead`.
    """

    def decorate(f):
        op = Operation(f.__name__)

        @wraps(f)
        def apply(*inputs):
            arrays = tuple([unwrap(x) for x in inputs])
            y, saved = f(*arrays)
            wanted = tuple([isinstance(x, Tensor) and x.requires_grad for x in inputs])
            return record(op, y, inputs, arrays, {"saved": saved, "wanted": wanted})

        def defvjp(rule):
            @op.defvjp_joint
            def joint(g, y, *inputs, saved, wanted):
                if isinstance(g, Tensor):
                    raise NotImplementedError(
                        f"backward: {f.__name__} runs a compiled kernel, which has no second "
                        f"derivative (create_graph=True, ta.hessian); use {instead}"
                    )
                return rule(g, y, saved, wanted, *inputs)

        apply.operation, apply.defvjp = op, defvjp
        return apply

    return decorate


@cache
def have_numba():
    """Whether kernels are compiled; the first call imports Numba."""
    from tinyattn import kernels

    return kernels.numba is not None


def worth(x, enough=ENOUGH):
    """Whether a kernel is faster than array algebra for the array x, and knows its numbers."""
    return x.size >= enough and x.dtype in (np.float32, np.float64) and have_numba()


# ---------------------------------------------------------------- attention


@fused(instead='impl="matmul"')
def attention(q, k, v, bias, mask, causal, scale):
    """y_t = Σ_s a_ts v_s with a = softmax(scale q·k + bias), block by block. [..., T, E]"""
    from tinyattn.kernels.fast import attention as kernel

    return kernel.attention(q, k, v, bias, mask, causal, scale)


@attention.defvjp
def _attention_rule(g, y, saved, wanted, q, k, v, bias, mask, causal, scale):
    from tinyattn.kernels.fast import attention as kernel

    return kernel.attention_backward(g, y, saved, q, k, v, bias, mask, causal, scale, wanted[3])


@fused(instead='impl="matmul"')
def attention_sums(q, k, v, bias, mask, causal, scale):
    """The same as index sums in loops."""
    from tinyattn.kernels.fast import attention as kernel

    return kernel.attention_sums(q, k, v, bias, mask, causal, scale)


@attention_sums.defvjp
def _attention_sums_rule(g, y, saved, wanted, q, k, v, bias, mask, causal, scale):
    from tinyattn.kernels.fast import attention as kernel

    return kernel.attention_sums_backward(g, y, saved, q, k, v, bias, mask, causal, scale)


@fused(instead='impl="matmul"')
def self_attention(x, bias, mask, causal, heads):
    """Attention of queries, keys and values that lie side by side: x [..., T, 3·H·d].

    y [..., T, H·d] is the heads side by side. The same as `attention` on views of x, but the
    gradients of the three arrive in one array, as the projection in front of it wants to have them.
    """
    from tinyattn.kernels.fast import attention as kernel

    q, k, v = _heads(x, heads)
    y, saved = kernel.attention(q, k, v, bias, mask, causal, q.shape[-1] ** -0.5)
    return _side_by_side(y), (y, saved)


@self_attention.defvjp
def _self_attention_rule(g, _, saved, wanted, x, bias, mask, causal, heads):
    from tinyattn.kernels.fast import attention as kernel

    y, saved = saved
    dx = np.empty(x.shape, x.dtype)
    q, k, v = _heads(x, heads)
    g = np.swapaxes(g.reshape(*g.shape[:-1], heads, -1), -3, -2)
    scale = q.shape[-1] ** -0.5
    *_, db = kernel.attention_backward(g, y, saved, q, k, v, bias, mask, causal, scale,
                                       wanted[1], _heads(dx, heads))  # fmt: skip
    return dx, db, None, None, None


def _heads(x, heads):
    """Views [..., H, T, d] of the three thirds of x [..., T, 3·H·d]."""
    *lead, T, wide = x.shape
    x = x.reshape(*lead, T, 3, heads, wide // 3 // heads)
    return [np.swapaxes(x[..., i, :, :], -3, -2) for i in range(3)]


def _side_by_side(y):
    """[..., H, T, d] -> [..., T, H·d]"""
    y = np.swapaxes(y, -3, -2)
    return y.reshape(*y.shape[:-2], -1)
