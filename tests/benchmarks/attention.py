"""Attention against PyTorch, forward and backward: interleaved, on the same number of threads.

    python tests/benchmarks/attention.py [threads]

Both take turns, so that whatever else the machine does hits both. Printed: the median time of each
rung, and the median of time(PyTorch) / time(rung) over the rounds with its middle half; above 1
the rung is faster. Set OPENBLAS_NUM_THREADS to the same number of threads.
"""

import sys
from time import perf_counter

import numpy as np
import torch

from tinyattn.autograd import Tensor
from tinyattn.functional.attention import scaled_dot_product_attention
from tinyattn.kernels import threads

ROUNDS = 15
SHAPES = [  # batch, heads, length, features of a head, causal
    (64, 8, 32, 16, False),
    (16, 8, 128, 32, False),
    (4, 8, 512, 32, False),
    (1, 8, 1024, 64, False),
    (1, 8, 1024, 64, True),
    (1, 2, 4096, 64, False),
]


def ours(arrays, g, causal, impl):
    tensors = [Tensor(x, requires_grad=True) for x in arrays]

    def run():
        for t in tensors:
            t.grad = None
        scaled_dot_product_attention(*tensors, causal=causal, impl=impl).backward(g)

    return run


def pytorch(arrays, g, causal):
    tensors = [torch.tensor(x, requires_grad=True) for x in arrays]
    g = torch.tensor(g)

    def run():
        for t in tensors:
            t.grad = None
        y = torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=causal)
        y.backward(g)

    return run


def seconds(run):
    start = perf_counter()
    run()
    return perf_counter() - start


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else threads.available()
    threads.set_threads(n)
    torch.set_num_threads(n)
    print(f"forward + backward, float32, {n} threads, {ROUNDS} rounds")
    print(f"{'B, H, N, D, causal':>28} {'rung':>7} {'ms':>9} {'PyTorch ms':>11} {'ratio':>7}")
    for B, H, N, D, causal in SHAPES:
        rng = np.random.default_rng(0)
        *arrays, g = rng.standard_normal((4, B, H, N, D)).astype(np.float32)
        rungs = {"torch": pytorch(arrays, g, causal)}
        rungs |= {impl: ours(arrays, g, causal, impl) for impl in ("matmul", "kernel")}
        for run in rungs.values():
            run()  # compiles, and warms up the caches
        times = np.array([[seconds(run) for run in rungs.values()] for _ in range(ROUNDS)])
        for i, impl in enumerate(rungs):
            if impl == "torch":
                continue
            low, ratio, high = np.percentile(times[:, 0] / times[:, i], [25, 50, 75])
            torch_ms, ms = np.median(times[:, [0, i]], axis=0) * 1e3
            print(f"{(B, H, N, D, causal)!s:>28} {impl:>7} {ms:9.2f} {torch_ms:11.2f} "
                  f"{ratio:7.2f}  ({low:.2f} to {high:.2f})", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
