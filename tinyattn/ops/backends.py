"""Which version of an operation runs: chosen here, for all operations.

An operation that is worth a compiled kernel is written up to three times. All versions ("rungs")
give the same result and the same gradient; the argument `impl` of a function says which one runs:

    "sums"    the index sums of the formula, as loops (compiled if Numba is installed)
    "numpy"   array algebra; can be differentiated more than once
    "kernel"  compiled for vectors and threads
    "auto"    "kernel" where it is faster, else "numpy"

`TABLE` says which rungs each operation has, and from how much work on its kernel is faster.
"""

import warnings
from contextlib import contextmanager
from threading import local
from typing import NamedTuple

import numpy as np

ALL, NO_SUMS, NO_KERNEL = ("sums", "numpy", "kernel"), ("numpy", "kernel"), ("sums", "numpy")
FLOATS = np.dtype(np.float32), np.dtype(np.float64)  # the numbers that kernels compute with


class Entry(NamedTuple):
    """A line of the table: the rungs of an operation, and when "auto" takes the kernel."""

    rungs: tuple
    least: float  # work from which the kernel is faster than NumPy
    unit: str  # what is counted as work


# At the end of a line: how many times as fast as NumPy the kernel was with this much work, forward
# and backward in float32 (two cores with AVX-512). Many kernels are ahead with less work already;
# but the first call of a kernel loads it, which takes a part of a second in every process, and so
# small examples should not need one.
TABLE = {
    # functions with an argument `impl`
    "attention": Entry(ALL, 2**14, "scores, T·S of all heads"),  # 1.6
    "conv1d": Entry(ALL, 2**15, "multiplications"),  # 1.9
    "conv2d": Entry(ALL, 2**15, "multiplications"),  # 2.1
    "max_pool1d": Entry(ALL, 2**15, "numbers read, B·C·windows·kernel"),  # 3.0
    "max_pool2d": Entry(ALL, 2**15, "numbers read, B·C·windows·kernel"),  # 3.2
    "avg_pool1d": Entry(ALL, 2**15, "numbers read, B·C·windows·kernel"),  # 1.6
    "avg_pool2d": Entry(ALL, 2**15, "numbers read, B·C·windows·kernel"),  # 2.0
    "RNN": Entry(ALL, 2, "steps"),  # 1.2; of one step 0.9
    "GRU": Entry(ALL, 2, "steps"),  # 1.8
    "LSTM": Entry(ALL, 2, "steps"),  # 1.8
    "RNNCell": Entry(NO_KERNEL, np.inf, "gates B·G·H"),  # one gate: nothing to put together
    "GRUCell": Entry(ALL, 2**12, "gates B·G·H"),  # 1.6
    "LSTMCell": Entry(ALL, 2**12, "gates B·G·H"),  # 1.4
    "segment_max": Entry(NO_SUMS, 2**12, "numbers"),  # 2.0 to 2.6
    "segment_min": Entry(NO_SUMS, 2**12, "numbers"),  # as segment_max
    "segment_prod": Entry(NO_SUMS, 2**12, "numbers"),  # 4.2
    "segment_softmax": Entry(NO_SUMS, 2**12, "numbers"),  # 2.0 to 2.9
    "knn": Entry(ALL, 2**5, "points"),  # 1.6
    "knn_graph": Entry(ALL, 2**5, "points"),  # as knn
    "radius_graph": Entry(ALL, 2**6, "points"),  # 1.1
    "mean_max": Entry(ALL, 2**13, "messages N·K·F"),  # 3.1
    "neighbour_max": Entry(NO_SUMS, 2**13, "messages N·K·F"),  # 1.9
    "squared_distances": Entry(NO_SUMS, 2**13, "differences N·K·S"),  # 2.6
    "pair_sums": Entry(NO_SUMS, 2**13, "sums N·K·F"),  # 1.6
    # operations that choose by themselves
    "softmax": Entry(NO_SUMS, 2**12, "numbers"),  # 1.5
    "log_softmax": Entry(NO_SUMS, 2**12, "numbers"),  # 1.5
    "cross_entropy": Entry(NO_SUMS, 2**12, "numbers"),  # 2.2
    "norm": Entry(NO_SUMS, 2**12, "numbers"),  # 2.6
    "batch_norm": Entry(NO_SUMS, 2**12, "numbers"),  # 2.2
    "gelu": Entry(NO_SUMS, 2**12, "numbers"),  # 2.2
    "take_rows": Entry(NO_SUMS, 2**17, "numbers"),  # 2.4; of a sixteenth 0.9
    "add_rows": Entry(NO_SUMS, 2**12, "numbers"),  # 3.0
    "sum_rows": Entry(NO_SUMS, 2**13, "numbers"),  # 1.2; of a quarter 0.8
    # Products: with more work NumPy calls threads of its own, which keep waiting in a loop when
    # they are done and slow down the kernels that follow. With less it takes one thread.
    "matmul": Entry(NO_SUMS, 2**18, "multiplications"),
    "matvec": Entry(NO_SUMS, 2**17, "multiplications"),  # of a few rows with a matrix
    "quantized_linear": Entry(ALL, 2**12, "multiplications"),  # of numbers of few bits
    "adam": Entry(NO_SUMS, 2**12, "parameters"),  # 1.8
}

LEAST_QUERIES = 16  # the kernel of attention does 64 at once: 1.4 of 16 queries, 1.1 of 4
MATVEC_ROWS = 24  # with more rows the kernel "matmul", which reorders the matrix, is faster
MATVEC_TERMS = 16  # terms of a sum that fill a vector


def choose(name, impl, dtype, work):
    """The rung that runs: "sums", "numpy" or "kernel".

    name   of the operation, a line of `TABLE`
    impl   what was asked for
    dtype  of the numbers; only "numpy" takes others than float32 and float64
    work   how much there is to do, in the unit of the table

    Without Numba "kernel" becomes "numpy"; a warning says so once. Raises ValueError for a rung
    that the operation does not have, and TypeError for numbers that the rung does not take.
    """
    if impl == "auto":
        return "kernel" if kernel_is_faster(name, dtype, work) else "numpy"
    rungs = TABLE[name].rungs
    if impl not in rungs:
        raise ValueError(f"{name}: impl={impl!r} is not one of auto, {', '.join(rungs)}")
    if impl != "numpy" and dtype not in FLOATS:
        raise TypeError(
            f'{name}: impl="{impl}" takes float32 or float64, got {dtype}; "numpy" takes all'
        )
    if impl == "kernel" and not have_numba(name):
        return "numpy"
    return impl


def kernel_is_faster(name, dtype, work):
    """Whether the kernel of an operation should do so much work on numbers of this dtype."""
    enough = work >= TABLE[name].least and dtype in FLOATS and _mode.kernels
    return enough and have_numba(name)


class _Mode(local):
    kernels = True  # each thread starts so


_mode = _Mode()


@contextmanager
def array_algebra():
    """Inside the block "auto" is "numpy", in this thread: small steps that can be looked at."""
    before = _mode.kernels
    try:
        _mode.kernels = False
        yield
    finally:
        _mode.kernels = before


_numba = None  # whether Numba is installed; None: not known yet


def have_numba(name):
    """Whether kernels can run. The first call imports Numba, or warns that `name` goes without."""
    global _numba
    if _numba is None:
        from tinyattn import kernels

        _numba = kernels.numba is not None
        if not _numba:
            warnings.warn(
                f"{name}: the compiled kernel {kernels.missing}; here and from now on NumPy "
                f"computes in its place, with the same results, but more slowly",
                stacklevel=2,
            )
    return _numba
