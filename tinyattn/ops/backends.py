"""One way to choose an implementation, for all operations.

An operation that is worth a compiled kernel is written up to three times. All implementations give
the same result and the same gradient:

    "sums"    the index sums of the formula, as loops (compiled if Numba is installed)
    "numpy"   array algebra; can be differentiated more than once
    "kernel"  compiled for vectors and threads
    "auto"    "kernel" where it is faster, else "numpy"; also "numpy" while the kernels of a new
              installation are compiled (kernels/machine/first_use.py)

The array algebra is a function in a file of this folder. `operation` makes it the operation, which
takes the name of an implementation as `impl`, and the other implementations stand below it:

    @operation("softmax", work=lambda x: x.size)
    def softmax(x):
        e = np.exp(x - np.max(x, axis=-1, keepdims=True))
        return e / np.sum(e, axis=-1, keepdims=True)

    softmax.implement("kernel", forward, backward)

So the gradient of an operation X is in ops/X.py, and its last lines name the loops and the kernel.

`IMPLEMENTATIONS` says which implementations each operation has, and from how much work on its
kernel is faster.
"""

import warnings
from contextlib import contextmanager
from functools import wraps
from threading import local
from typing import NamedTuple

import numpy as np

from tinyattn import kernels
from tinyattn.engine.autograd import Operation, Tensor, backward_pass, record
from tinyattn.kernels.machine import first_use

ALL, NO_SUMS, NO_KERNEL = ("sums", "numpy", "kernel"), ("numpy", "kernel"), ("sums", "numpy")
FLOATS = np.dtype(np.float32), np.dtype(np.float64)  # the numbers that kernels compute with


class Entry(NamedTuple):
    """A line of the table: the implementations, and when "auto" takes the kernel."""

    names: tuple  # of the implementations
    least: float  # work from which the kernel is faster than NumPy
    unit: str  # what is counted as work


# At the end of a line: how many times as fast as NumPy the kernel was with this much work, forward
# and backward in float32 (two cores with AVX-512). Many kernels are ahead with less work already;
# but the first call of a kernel loads it, which takes a part of a second in every process, and so
# small examples should not need one.
IMPLEMENTATIONS = {
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
    "packed_self_attention": Entry(NO_SUMS, 2**14, "scores, T·T of all heads"),  # as attention
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


def select(name, impl, dtype, work):
    """The implementation that runs: "sums", "numpy" or "kernel".

    name   of the operation, a line of `IMPLEMENTATIONS`
    impl   what was asked for
    dtype  of the numbers; only "numpy" takes others than float32 and float64
    work   how much there is to do, in the unit of the table

    Without Numba "kernel" becomes "numpy"; a warning says so once. Raises ValueError for an
    implementation that the operation does not have, and TypeError for numbers that it does not
    take.
    """
    if impl == "auto":
        return "kernel" if kernel_is_faster(name, dtype, work) else "numpy"
    names = IMPLEMENTATIONS[name].names
    if impl not in names:
        raise ValueError(f"{name}: impl={impl!r} is not one of auto, {', '.join(names)}")
    if impl != "numpy" and dtype not in FLOATS:
        raise TypeError(
            f'{name}: impl="{impl}" takes float32 or float64, got {dtype}; "numpy" takes all'
        )
    if impl == "kernel" and not have_numba(name):
        return "numpy"
    return impl


def kernel_is_faster(name, dtype, work):
    """Whether the kernel of an operation should do so much work on numbers of this dtype."""
    enough = work >= IMPLEMENTATIONS[name].least and dtype in FLOATS and _mode.kernels
    return enough and first_use.ready() and have_numba(name)


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
        _numba = kernels.numba is not None
        if not _numba:
            warnings.warn(
                f"{name}: the compiled kernel {kernels.missing}; here and from now on NumPy "
                f"computes in its place, with the same results, but more slowly",
                stacklevel=2,
            )
    return _numba


# ---------------------------------------------------------------- the decorator


def operation(name, work, second_order=True):
    """Make a function in array algebra an operation that may have more implementations.

    name          its line of `IMPLEMENTATIONS`, and its name in messages
    work          a function of the inputs: how much there is to do, in the unit of that line; 0
                  where the kernel cannot do it. "auto" asks for it
    second_order  whether the gradient of the other implementations can be differentiated again, as
                  that of the array algebra (see `custom_vjp`)

    The operation f(*inputs, impl="auto", name=name) passes its inputs, which are known to be right,
    to the implementation that `select` names; their dtype is that of the first one. A line of the
    table with another name, and so with other implementations, is chosen by `name`.

    `f.implement(impl, forward, backward)` adds an implementation: functions on plain arrays, as
    `custom_vjp` takes them. Without a backward pass, forward itself is called, with the inputs as
    they are.
    """

    def decorate(reference):
        implementations = {"numpy": reference}

        @wraps(reference)
        def run(*inputs, impl="auto", name=name):
            much = 0
            if impl == "auto":
                much = work(*inputs) if _mode.kernels else 0
                if much < IMPLEMENTATIONS[name].least:  # as it is most of the time
                    return reference(*inputs)
            return implementations[select(name, impl, inputs[0].dtype, much)](*inputs)

        def implement(impl, forward, backward=None):
            if backward is not None:
                again = reference if second_order else None
                forward = custom_vjp(forward, backward, again, reference.__name__)
            implementations[impl] = forward

        run.line, run.implement, run.implementations = name, implement, implementations
        return run

    return decorate


def along_rows(x, axis=-1):
    """The work of an operation along one axis: all numbers, 0 where it is not the last axis."""
    return x.size if x.ndim and axis in (-1, x.ndim - 1) else 0


def custom_vjp(forward, backward, reference=None, name=None):
    """The differentiable function of a forward and a backward pass on plain arrays.

        twice = custom_vjp(
            lambda x: (kernel(x), None),
            lambda g, y, residuals, needs_grad, x: [backward_kernel(g)],
        )

    forward returns y and its residuals, which is whatever the backward pass needs again. backward
    gets the gradient g of y, y, the residuals, one bool for each input that says whether its
    gradient is needed, and the inputs; it returns the gradients of all inputs (None where an input
    has none).

    A kernel is not NumPy code, so its backward pass cannot be differentiated again. With a
    `reference`, the same function composed of operations, the second derivative is that of the
    reference: under `create_graph` the backward pass computes it and takes its gradients, which are
    recorded. Without one it raises NotImplementedError, and says that impl="numpy" can be
    differentiated twice.
    """
    op, f = Operation(name or forward.__name__), forward

    @wraps(f)
    def apply(*inputs):
        arrays = tuple([x.data if isinstance(x, Tensor) else x for x in inputs])
        y, residuals = f(*arrays)
        needs_grad = tuple([_needs_grad(x) for x in inputs])
        return record(op, y, inputs, arrays, {"residuals": residuals, "needs_grad": needs_grad})

    @op.defvjp_joint
    def joint(g, y, *inputs, residuals, needs_grad):
        if not isinstance(g, Tensor):
            return backward(g, y, residuals, needs_grad, *inputs)
        if reference is None:
            raise NotImplementedError(
                f"backward: {op.name} runs a compiled kernel, which has no second "
                f'derivative (create_graph=True, ta.hessian); use impl="numpy"'
            )
        return _through(reference, g, inputs)

    apply.operation = op
    return apply


def _through(reference, g, inputs):
    """The gradients of the reference, recorded, so that they have gradients themselves."""
    # views, so that one tensor given as two inputs has a gradient for each
    inputs = [np.reshape(x, x.shape) if _needs_grad(x) else x for x in inputs]
    targets = {x for x in inputs if _needs_grad(x)}
    found = backward_pass(reference(*inputs), g, create_graph=True, targets=targets)
    return [found.get(x) if _needs_grad(x) else None for x in inputs]


def _needs_grad(x):
    return isinstance(x, Tensor) and x.requires_grad
