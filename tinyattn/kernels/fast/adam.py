"""A step of Adam or AdamW, which reads and writes each number once.

The same step as array algebra is `Adam.update` in tinyattn/optim/algorithms.py. A test compares
both versions.
"""

from tinyattn.kernels.fast.rowwise import parallel_rows
from tinyattn.kernels.machine.compile import jit
from tinyattn.kernels.machine.fork_join import fork_join
from tinyattn.kernels.machine.load_store import load_partial, store_partial
from tinyattn.kernels.machine.simd import broadcast, sqrt, width


@jit
def adam_numbers(out, theta, g, m, v, numbers, team, start, stop):
    """Update m ← β₁m + (1-β₁)g and v ← β₂v + (1-β₂)g², and compute the new parameters `out`.

    out = keep θ - rate · m / (√v / correct + ε), where decay · θ is added to g before the update.
    `numbers` is (rate, β₁, β₂, ε, decay, correct, keep) from `Adam.kernel_constants`. With the
    learning rate η and the weight decay λ, AdamW has keep = 1 - η λ and decay = 0, and Adam has
    keep = 1 and decay = λ.
    """
    if fork_join(team, start, stop):
        return
    rate, beta1, beta2, eps, decay, correct, keep = numbers
    W, one = width(theta), theta.dtype.type(1)
    for i in range(start, stop, W):
        x, slope = load_partial(theta, i, stop, 0), load_partial(g, i, stop, 0)
        slope = slope + x * decay
        first, second = load_partial(m, i, stop, 0), load_partial(v, i, stop, 0)
        first = first + (slope - first) * (one - beta1)
        second = second * beta2 + slope * slope * (one - beta2)
        store_partial(m, i, stop, first)
        store_partial(v, i, stop, second)
        step = first / (sqrt(second) / broadcast(x, correct) + eps)
        store_partial(out, i, stop, x * keep - step * rate)


def adam(jobs):
    """Make a step for all parameters, one after the other, each of them on all threads.

    A job is (out, theta, g, m, v, numbers), five contiguous arrays of one dtype and the numbers
    of `adam_numbers` as NumPy numbers of that dtype.
    """
    for *arrays, numbers in jobs:
        n = arrays[0].size
        parallel_rows(adam_numbers, n, n, *[x.reshape(-1) for x in arrays], tuple(numbers))
