"""Compile the kernels that lectures use, so that the class need not wait for them."""

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np

import tinyattn.functional as F
from tinyattn import graph, nn, optim
from tinyattn.engine.autograd import Tensor
from tinyattn.kernels.machine import first_use
from tinyattn.ops.backends import have_numba

DTYPES = (np.float32, np.float64)


def warm(quiet=False, lock=None):
    """Compile the kernels that are not on disk yet, and return 0, the exit code of the command.

    Without Numba, there is nothing to compile.

    Args:
        quiet   True: do not print the duration of each step
        lock    Path of a file that is touched after each step, so that other processes see that
                compiling continues, or None
    """
    if not have_numba("warm"):  # this has already printed the reason
        return 0
    first_use.compile_now()
    start = time.perf_counter()
    for name, run in WORK.items():
        before = time.perf_counter()
        for dtype in DTYPES:
            run(dtype)
            if lock:
                lock.touch()
        if not quiet:
            print(f"{name:20} {time.perf_counter() - before:6.1f} s", flush=True)
    kept = _remember()
    if not quiet:
        print(f"{'all':20} {time.perf_counter() - start:6.1f} s; {kept}")
    return 0


def _remember():
    """Mark the kernels as compiled if they are stored on disk, and return a remark about this."""
    from tinyattn.kernels.machine.compile import compiled_files

    folders = compiled_files()
    if not folders:
        return (
            "but no folder can store the compiled kernels, so each run compiles them again. Set "
            "NUMBA_CACHE_DIR to a folder that you can write to"
        )
    first_use.mark()
    return f"cached on disk from now on, in {next(iter(folders))}"


def main(arguments=None):
    """Run `warm` as a background process, which kernels/machine/first_use.py starts.

    Args:
        arguments   list of command-line arguments, or None for those of the process

    Returns:
        the exit code
    """
    parser = argparse.ArgumentParser(prog="python -m tinyattn.warm", description=__doc__)
    parser.add_argument("--quiet", action="store_true", help="print nothing")
    parser.add_argument("--lock", type=Path, help="a file to touch after each step, and remove")
    options = parser.parse_args(arguments)
    if options.lock and hasattr(os, "nice"):
        os.nice(10)
    try:
        return warm(options.quiet, options.lock)
    finally:
        if options.lock:
            options.lock.unlink(missing_ok=True)


# ---------------------------------------------------------------- what is compiled

rng = np.random.default_rng(0)


def _tensor(dtype, *shape):
    return Tensor(rng.normal(size=shape).astype(dtype), requires_grad=True)


def _back(y):
    y.backward(np.ones(y.shape, y.dtype))


def _attention(dtype):
    keep = np.ones((1, 70), bool)
    for impl in ("kernel", "sums"):
        q = _tensor(dtype, 1, 2, 70, 8)
        for options in ({}, {"causal": True}, {"mask": keep}, {"bias": _tensor(dtype, 70, 70)}):
            _back(F.scaled_dot_product_attention(q, q, q, impl=impl, **options))
    x = _tensor(dtype, 2, 70, 48)
    _back(F.packed_self_attention(x, 2, causal=True))


def _convolution(dtype):
    for impl in ("kernel", "sums"):
        line, image = _tensor(dtype, 2, 3, 12), _tensor(dtype, 2, 3, 8, 8)
        _back(F.conv1d(line, _tensor(dtype, 4, 3, 3), _tensor(dtype, 4), padding=1, impl=impl))
        _back(F.conv2d(image, _tensor(dtype, 4, 3, 3, 3), _tensor(dtype, 4), padding=1, impl=impl))
        for pool in (F.max_pool1d, F.avg_pool1d):
            _back(pool(line, 2, impl=impl))
        for pool in (F.max_pool2d, F.avg_pool2d):
            _back(pool(image, 2, impl=impl))


def _recurrent(dtype):
    x = _tensor(dtype, 4, 6, 8)
    for layer in (nn.RNN, nn.GRU, nn.LSTM):
        one = layer(8, 16, impl="kernel", rng=0).astype(dtype)
        _back(one(x)[0])
    for cell in (nn.GRUCell, nn.LSTMCell):
        state = cell(8, 16, impl="kernel", rng=0).astype(dtype)(x[:, 0])
        _back(state[0] if isinstance(state, tuple) else state)


def _rows(dtype):
    """Run operations on arrays so large that the operations select their kernels themselves."""
    x, w = _tensor(dtype, 256, 64), _tensor(dtype, 64)
    ids = np.arange(256) % 64
    _back(F.softmax(x)), _back(F.log_softmax(x)), _back(F.cross_entropy(x, ids))
    _back(F.layer_norm(x, 64, w, w)), _back(F.rms_norm(x, 64, w)), _back(F.relu(x))
    _back(F.gelu(x)), _back(F.gelu(x, "tanh"))
    _back(nn.BatchNorm1d(64).astype(dtype)(x))
    _back(F.embedding(ids, x)), _back(F.embedding(np.tile(ids, 40), x))
    weight = _tensor(dtype, 128, 64)
    _back(F.linear(x, weight, _tensor(dtype, 128))), _back(x @ x.T)
    _back(F.linear(x[:8], _tensor(dtype, 1024, 64)))
    p = nn.Parameter(rng.normal(size=8192).astype(dtype))
    p.grad = np.ones_like(p.data)
    optim.Adam([p]).step(), optim.AdamW([p]).step()


def _graphs(dtype):
    values, ids = _tensor(dtype, 200, 8), np.arange(200) % 20
    for name in ("max", "min", "prod", "softmax"):
        _back(getattr(graph, f"segment_{name}")(values, ids, 20, impl="kernel"))
    _back(graph.segment_sum(_tensor(dtype, 1000, 8), np.arange(1000) % 20, 20))
    for dims in (2, 3, 4, 8):
        points = rng.normal(size=(300, dims)).astype(dtype)
        for k in (8, 16):
            graph.knn(points, k, impl="kernel")
    graph.radius_graph(points, 0.5, impl="kernel")
    x, batch = rng.normal(size=(2000, 5)).astype(dtype), np.arange(2000) // 1000
    _back(graph.GravNetConv(5, 16, 3, 8, 8, rng=0).astype(dtype)(_tensor(dtype, 2000, 5), batch))
    for last in (nn.ReLU(), nn.Linear(16, 16, rng=0)):
        inside = nn.Sequential(nn.Linear(10, 16, rng=0), last)
        _back(graph.DynamicEdgeConv(inside, 8).astype(dtype)(x, batch))


WORK = {
    "rows and products": _rows,
    "attention": _attention,
    "recurrent networks": _recurrent,
    "convolutions": _convolution,
    "graphs and points": _graphs,
}


if __name__ == "__main__":
    sys.exit(main())
