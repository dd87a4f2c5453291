"""GELU, y = x Φ(x), forward and backward, in a single pass over memory.

As array algebra (tinyattn/ops/activations.py), GELU needs many passes over memory. Here, each
number is read and written once. A test compares both versions. All kernels take arrays with one
axis, and work on the numbers start … stop - 1.
"""

import math

import numpy as np

from tinyattn.engine.memory import empty_pooled
from tinyattn.kernels.fast.rowwise import parallel_rows
from tinyattn.kernels.machine.compile import jit
from tinyattn.kernels.machine.fork_join import fork_join
from tinyattn.kernels.machine.layout import ravel
from tinyattn.kernels.machine.load_store import load_partial, store_partial
from tinyattn.kernels.machine.simd import broadcast, exp, fma, maximum, select_greater, width

# erfc(z) = exp(-z²) t P(t) with t = 1 / (1 + z/2), for z ≥ 0; P fitted to 4e-8 (float32 only).
# Φ(-|x|) is half of it at z = |x| / √2, where z² = x²/2.
ERFC = tuple(
    np.float32(c)
    for c in (
        -0.05889132491004501,
        0.28370461222526755,
        -0.4853890814650003,
        0.275984145102177,
        -0.02518167132542719,
        0.20207145071958327,
        0.2432606194320846,
        0.2823535343238701,
        0.28208767371591664,
    )
)
ROOT_HALF, HALF = np.float32(math.sqrt(0.5)), np.float32(0.5)
HALF_ERFC = tuple(c * HALF for c in ERFC)  # exact, because halving rounds nothing
ONE, DENSITY = np.float32(1), np.float32(1 / math.sqrt(2 * math.pi))
CUBIC, ROOT_8_OVER_PI = np.float32(0.044715), np.float32(math.sqrt(8 / math.pi))


@jit
def gelu_sums(out, g, x, backward, tanh, team, start, stop):
    """Write y = x Φ(x) to `out`, or, if `backward`, dx = g (Φ(x) + x φ(x)).

    Φ is the normal distribution, and φ is its density. With `tanh`, Φ(x) is approximated by
    (1 + tanh(u/2)) / 2 = 1 / (1 + e⁻ᵘ) with u = √(8/π) (x + 0.044715 x³). This function computes
    the formulas directly. It is the reference, and runs for float64.
    """
    if fork_join(team, start, stop):
        return
    for i in range(start, stop):
        v = x[i]
        if tanh:
            phi = 0.5 + 0.5 * math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v * v * v))
            rise = phi * (1 - phi) * math.sqrt(8 / math.pi) * (1 + 3 * 0.044715 * v * v)
        else:
            phi = 0.5 * math.erfc(-v * math.sqrt(0.5))
            rise = math.exp(-0.5 * v * v) / math.sqrt(2 * math.pi)
        out[i] = g[i] * (phi + v * rise) if backward else v * phi


@jit
def gelu_numbers(out, g, x, backward, tanh, team, start, stop):
    """Compute the same as `gelu_sums` with vectors of float32."""
    if fork_join(team, start, stop):
        return
    W = width(x)
    for i in range(start, stop, W):
        v = load_partial(x, i, stop, 0)
        if tanh:
            square = v * v
            u = v * (square * CUBIC + ONE) * ROOT_8_OVER_PI
            u = maximum(u, broadcast(v, -80))  # exp(80) is still a number
            e = exp(broadcast(v, 0) - u)
            phi = broadcast(v, 1) / (e + ONE)
            slope = (square * (np.float32(3) * CUBIC) + ONE) * ROOT_8_OVER_PI
            rise = phi * e * phi * slope  # e · phi is 1 - phi, without cancellation
        else:
            size = maximum(v, broadcast(v, 0) - v)
            t = broadcast(v, 1) / fma(size, broadcast(v, HALF * ROOT_HALF), broadcast(v, 1))
            p = broadcast(v, HALF_ERFC[0])
            for c in HALF_ERFC[1:]:
                p = fma(p, t, broadcast(v, c))
            e = exp(v * v * -HALF)
            tail = p * t * e  # Φ(-|x|)
            phi = select_greater(v, broadcast(v, 0), broadcast(v, 1) - tail, tail)
            rise = e * DENSITY
        if backward:
            store_partial(out, i, stop, load_partial(g, i, stop, 0) * fma(v, rise, phi))
        else:
            store_partial(out, i, stop, v * phi)


def gelu(x, tanh):
    """Return x Φ(x), the GELU of x, with the approximation of Φ by tanh if `tanh`."""
    y, row = empty_pooled(x.shape, x.dtype), ravel(x)
    kernel = gelu_numbers if x.dtype == np.float32 else gelu_sums
    parallel_rows(kernel, x.size, 4 * x.size, y.reshape(-1), row, row, False, tanh)
    return y


def gelu_backward(g, x, tanh):
    """Return dx for the gradient g of `gelu(x, tanh)`."""
    dx = empty_pooled(x.shape, x.dtype)
    kernel = gelu_numbers if x.dtype == np.float32 else gelu_sums
    parallel_rows(kernel, x.size, 4 * x.size, dx.reshape(-1), ravel(g), ravel(x), True, tanh)
    return dx
