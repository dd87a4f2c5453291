"""Chains of 100 small operations on 16 x 16 arrays, forward and backward.

Computing with arrays of this size takes hardly any time, so the engine itself is measured. Every
program starts from the same two arrays and ends with the gradients of both. One thread each.

    python -m tests.benchmarks.engine
"""

import sys

from tests.benchmarks.measure import interleave, ratios, table, use_threads, versions

use_threads(1)

import autograd  # noqa: E402
import autograd.numpy as anp  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

import tinyattn as ta  # noqa: E402
from tests.benchmarks.closures import Value  # noqa: E402

torch.set_num_threads(1)
N_OPERATIONS, SIZE = 100, 16

CHAINS = {
    "add": lambda x, a, b: x + a,
    "mul": lambda x, a, b: x * b,
    "matmul": lambda x, a, b: x @ b,
    "tanh": lambda x, a, b: x.tanh(),
    "mul, add, matmul, tanh": lambda x, a, b: ((x * b + a) @ b).tanh(),
}


def chain(step, a, b):
    per_step = 4 if step is CHAINS["mul, add, matmul, tanh"] else 1
    x = a
    for _ in range(N_OPERATIONS // per_step):
        x = step(x, a, b)
    return x


def programs(name, A, B):
    """Return a program for each engine. All compute the same chain and the gradients of a and b."""
    step, one = CHAINS[name], np.ones_like(A)
    torch_one = torch.ones(A.shape, dtype=torch.from_numpy(A).dtype)

    def tinyattn():
        a, b = ta.Tensor(A, requires_grad=True), ta.Tensor(B, requires_grad=True)
        chain(step, a, b).backward(one)
        return a.grad, b.grad

    def pytorch():
        a, b = torch.tensor(A, requires_grad=True), torch.tensor(B, requires_grad=True)
        chain(step, a, b).backward(torch_one)
        return a.grad, b.grad

    def closures():
        a, b = Value(A), Value(B)
        chain(step, a, b).backward(one)
        return a.grad, b.grad

    anp_step = {
        "tanh": lambda x, a, b: anp.tanh(x),
        "mul, add, matmul, tanh": lambda x, a, b: anp.tanh((x * b + a) @ b),
    }.get(name, step)
    length = N_OPERATIONS // (4 if "," in name else 1)

    def hips_loss(a, b):
        x = a
        for _ in range(length):
            x = anp_step(x, a, b)
        return anp.sum(x)

    gradients = autograd.grad(hips_loss, (0, 1))
    return {
        "tinyattn": tinyattn,
        "PyTorch eager": pytorch,
        "HIPS autograd": lambda: gradients(A, B),
        "a tape of closures": closures,
    }


def check_equal(name, A, B):
    """Check that all engines agree in float64 before anything is timed."""
    found = {k: f() for k, f in programs(name, A.astype(np.float64), B.astype(np.float64)).items()}
    for k, gradients in found.items():
        for ours, theirs in zip(found["tinyattn"], gradients, strict=True):
            theirs = np.zeros_like(A) if theirs is None else np.asarray(theirs)
            ours = np.zeros_like(A) if ours is None else ours
            np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12, err_msg=f"{name}, {k}")


def main(rounds=60):
    rng = np.random.default_rng(0)
    A, small = (rng.normal(0, 0.25, (SIZE, SIZE)).astype(np.float32) for _ in range(2))
    # the product of 100 small factors is below 1e-38, and processors are slow with such numbers
    near_one = rng.uniform(0.9, 1.1, (SIZE, SIZE)).astype(np.float32)
    rows = {}
    for name in CHAINS:
        B = near_one if name == "mul" else small
        check_equal(name, A, B)
        rows[name] = ratios(interleave(programs(name, A, B), rounds), "tinyattn")
    print(
        f"Each program computes {N_OPERATIONS} operations on {SIZE} x {SIZE} float32 arrays, "
        "forward and backward, with one thread.\n"
    )
    print(table(rows, ["PyTorch eager", "HIPS autograd", "a tape of closures"]))
    print(
        "\nA tape of closures is a minimal engine on NumPy (tests/benchmarks/closures.py), which "
        f"checks no inputs and frees no memory. Medians and quartiles are over {rounds} rounds. "
        f"{versions(np, torch, ta)}"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
