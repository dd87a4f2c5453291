"""The choice of an implementation for each operation.

An operation for which a compiled kernel is worthwhile has two or three implementations, with the
same result and the same gradient:

    "sums"    the index sums of the formula, as loops (compiled if Numba is installed)
    "numpy"   array algebra, which can be differentiated more than once
    "kernel"  compiled for vectors and threads
    "auto"    "kernel" where it is faster, otherwise "numpy". It is also "numpy" while the kernels
              of a new installation are compiled (kernels/machine/first_use.py)

The array algebra is a function in a file of this folder. `operation` turns it into the operation,
which takes the name of an implementation as `impl`. The other implementations follow below it, as
in activations.py:

    @operation("gelu", work=lambda x, tanh: x.size)
    def gelu(x, tanh): ...  # the formula, which consists of operations with derivative rules

    gelu.implement(
        "kernel",
        lambda x, tanh: (fast.activations.gelu(x, tanh), None),
        lambda g, y, residuals, needs_grad, x, tanh: [fast.activations.gelu_backward(g, x, tanh)],
    )

The gradient of the array algebra follows from the rules of its parts, or from a rule of its own,
as in softmax.py. Each other implementation has its own backward pass.

`IMPLEMENTATIONS` lists the implementations of each operation, and the amount of work from which its
kernel is faster.

Four places choose without this decorator, and no others should:

    ops/matmul.py         `gemm` selects one of two operations by shape, and computes small products
                          itself, in 1.9 instead of 3.7 µs, because every layer calls it
    optim/algorithms.py   a step of Adam writes into parameters and states, so it is not a function
                          of arrays, and asks `kernel_is_faster` once for all parameters
    inference/layers.py   compiled layers run only if a user asks for them (`inference.compile`)
    trace/view.py         a trace shows every step, so it turns all kernels off (`array_algebra`)

Layers that compute the same result by a shorter formula (packed attention, the split product of
EdgeConv, the captioner's whole sequences) select an operation, whose implementation is chosen here.
"""

from contextlib import contextmanager
from functools import wraps
from threading import local
from typing import NamedTuple

import numpy as np

from tinyattn import kernels
from tinyattn.engine.autograd import Operation, Tensor, backward_pass, record
from tinyattn.engine.tracebacks import warn_caller
from tinyattn.kernels.machine import first_use

ALL, NO_SUMS, NO_KERNEL = ("sums", "numpy", "kernel"), ("numpy", "kernel"), ("sums", "numpy")
FLOATS = np.dtype(np.float32), np.dtype(np.float64)  # the dtypes that kernels compute with


class Entry(NamedTuple):
    """An entry of the table: the implementations, and the work from which the kernel is used."""

    names: tuple  # the values of `impl` besides "auto"
    least: float  # amount of work from which the kernel is faster than NumPy
    unit: str  # the unit in which `least` counts the work
    owner: str = ""  # the function in messages, if its name differs from that of the entry


# The numbers at the end of a line are the speed of the kernel divided by NumPy's with this
# much work, in float32 on two cores, with AVX-512 and with AVX2 (`python -m tests.benchmarks
# thresholds`). Many kernels are faster with less work already, but the first call of a kernel
# loads it, which takes a fraction of a second in every process, so small examples should not need
# one.
IMPLEMENTATIONS = {
    # functions with an argument `impl`
    "attention": Entry(  # 1.8, AVX2 1.8
        ALL, 2**14, "scores, T·S of all heads", "scaled_dot_product_attention"
    ),
    "conv1d": Entry(ALL, 2**15, "multiplications"),  # 2.7, AVX2 3.0
    "conv2d": Entry(ALL, 2**15, "multiplications"),  # 2.9, AVX2 3.3
    "max_pool1d": Entry(ALL, 2**15, "numbers read, B·C·windows·kernel"),  # 4.8, AVX2 5.6
    "max_pool2d": Entry(ALL, 2**15, "numbers read, B·C·windows·kernel"),  # 7.4, AVX2 7.3
    "avg_pool1d": Entry(ALL, 2**15, "numbers read, B·C·windows·kernel"),  # 1.4, AVX2 1.8
    "avg_pool2d": Entry(ALL, 2**15, "numbers read, B·C·windows·kernel"),  # 2.6, AVX2 3.4
    "RNN": Entry(ALL, 4, "steps"),  # 1.7, AVX2 1.7 (with 2 steps 1.2, AVX2 1.2)
    "GRU": Entry(ALL, 2, "steps"),  # 2.0, AVX2 2.1
    "LSTM": Entry(ALL, 2, "steps"),  # 2.0, AVX2 2.0
    # a single gate gives a kernel nothing to combine
    "RNNCell": Entry(NO_KERNEL, np.inf, "gates B·G·H"),
    "GRUCell": Entry(ALL, 2**12, "gates B·G·H"),  # 1.9, AVX2 2.0
    "LSTMCell": Entry(ALL, 2**12, "gates B·G·H"),  # 1.7, AVX2 1.8
    "segment_max": Entry(NO_SUMS, 2**12, "numbers"),  # 2.5, AVX2 3.0
    "segment_min": Entry(NO_SUMS, 2**12, "numbers"),  # 3.1, AVX2 2.6
    "segment_prod": Entry(NO_SUMS, 2**12, "numbers"),  # 6.5, AVX2 6.6
    "segment_softmax": Entry(NO_SUMS, 2**12, "numbers"),  # 3.6, AVX2 4.3
    "knn": Entry(ALL, 2**5, "points"),  # 1.8, AVX2 1.7
    "knn_graph": Entry(ALL, 2**5, "points"),  # 1.4, AVX2 1.5
    "radius_graph": Entry(ALL, 2**7, "points"),  # 1.8, AVX2 1.8 (with half of them 1.3, AVX2 1.3)
    "mean_max": Entry(ALL, 2**13, "messages N·K·F"),  # 3.1, AVX2 3.3
    "neighbour_max": Entry(NO_SUMS, 2**13, "messages N·K·F"),  # 1.8, AVX2 2.0
    "squared_distances": Entry(NO_SUMS, 2**13, "differences N·K·S"),  # 3.6, AVX2 3.2
    "pair_sums": Entry(NO_SUMS, 2**13, "sums N·K·F"),  # 1.7, AVX2 1.5
    # operations that choose the implementation themselves
    "packed_self_attention": Entry(NO_SUMS, 2**14, "scores, T·T of all heads"),  # 1.6, AVX2 1.8
    "softmax": Entry(NO_SUMS, 2**12, "numbers"),  # 1.8, AVX2 1.6
    "log_softmax": Entry(NO_SUMS, 2**12, "numbers"),  # 2.1, AVX2 1.9
    "cross_entropy": Entry(NO_SUMS, 2**12, "numbers"),  # 2.2, AVX2 2.1
    "norm": Entry(NO_SUMS, 2**12, "numbers"),  # 3.5, AVX2 3.9
    "batch_norm": Entry(NO_SUMS, 2**12, "numbers"),  # 3.6, AVX2 3.3
    "gelu": Entry(NO_SUMS, 2**12, "numbers"),  # 2.7, AVX2 2.7
    "take_rows": Entry(NO_SUMS, 2**18, "numbers"),  # 2.1, AVX2 2.4 (1.1 with a quarter)
    "add_rows": Entry(NO_SUMS, 2**12, "numbers"),  # 6.4, AVX2 6.2
    "sum_rows": Entry(NO_SUMS, 2**15, "numbers"),  # 2.3, AVX2 2.3 (1.2 with a quarter)
    # With more work, NumPy uses its own threads. After a product, these keep waiting in a loop and
    # slow down the kernels that follow, and if another program uses a processor, NumPy's product
    # takes milliseconds. The kernels matmul and matvec avoid both, so they are used although they
    # are hardly faster.
    "matmul": Entry(NO_SUMS, 2**19, "multiplications"),  # 0.9, AVX2 0.8
    # a few rows times a matrix, here 8 rows (one row: 0.6, AVX2 0.5)
    "matvec": Entry(NO_SUMS, 2**19, "multiplications"),  # 1.5, AVX2 1.0
    "quantized_linear": Entry(ALL, 2**14, "multiplications"),  # 1.5, AVX2 1.5
    "adam": Entry(NO_SUMS, 2**12, "parameters"),  # 1.5, AVX2 1.6
}

# The attention kernel computes 64 queries together, so it gains less with few queries: it is 1.5
# times as fast as NumPy for 16 queries, and 1.2 times for 8.
LEAST_QUERIES = 16
MATVEC_ROWS = 24  # with more rows the kernel "matmul", which reorders the matrix, is faster
MATVEC_TERMS = 16  # terms of a sum that fill a vector


def select(name, impl, dtype, work):
    """Return the implementation to run: "sums", "numpy" or "kernel".

    Without Numba, "kernel" becomes "numpy", with a single warning.

    Args:
        name    name of the operation, a line of `IMPLEMENTATIONS`
        impl    "auto", or an implementation of the operation
        dtype   dtype of the numbers. Only "numpy" accepts dtypes other than float32 and float64
        work    amount of work, in the unit of the table. Only "auto" uses it

    Raises:
        ValueError: the operation does not have this implementation
        TypeError: the implementation does not accept this dtype
    """
    if impl == "auto":
        return "kernel" if kernel_is_faster(name, dtype, work) else "numpy"
    names, owner = IMPLEMENTATIONS[name].names, IMPLEMENTATIONS[name].owner or name
    if impl not in names:
        raise ValueError(
            f"{owner}: impl must be one of auto, {', '.join(names)}, got impl={impl!r}"
        )
    if impl != "numpy" and dtype not in FLOATS:
        raise TypeError(
            f'{owner}: impl="{impl}" takes float32 or float64, got {dtype}. Use impl="numpy", '
            "which takes every dtype"
        )
    if impl == "kernel" and not have_numba(name):
        return "numpy"
    return impl


def kernel_is_faster(name, dtype, work):
    """Return whether "auto" runs the kernel of an operation for this amount of work and dtype.

    The result is False too inside `array_algebra`, without Numba, and while the kernels of a new
    installation are compiled. `name` is a line of `IMPLEMENTATIONS`.
    """
    enough = work >= IMPLEMENTATIONS[name].least and dtype in FLOATS and _mode.kernels
    return enough and first_use.ready() and have_numba(name)


class _Mode(local):
    kernels = True  # the value at the start of each thread


_mode = _Mode()


@contextmanager
def array_algebra():
    """Make "auto" mean "numpy" in this block and thread, so that all steps are visible."""
    before = _mode.kernels
    try:
        _mode.kernels = False
        yield
    finally:
        _mode.kernels = before


_numba = None  # whether Numba is installed, or None if not known yet


def have_numba(name):
    """Return whether kernels can run.

    The first call imports Numba. If it is not installed, a warning states that `name` runs without
    it.
    """
    global _numba
    if _numba is None:
        _numba = kernels.numba is not None
        if not _numba:
            warn_caller(
                f"{name}: the compiled kernel {kernels.missing}. From now on, NumPy computes the "
                f"same results, but more slowly"
            )
    return _numba


# ---------------------------------------------------------------- the decorator


def operation(name, work):
    """Return a decorator that turns array algebra into an operation with several implementations.

    The operation f(*inputs, impl="auto", name=name) passes its inputs, which must be valid, to the
    implementation that `select` returns for the dtype of the first input. A call can pass another
    `name` to use another entry of the table.

    `f.implement(impl, forward, backward)` adds an implementation, which consists of functions on
    plain arrays, as described in `custom_vjp`. The backward pass must return arrays that were
    allocated for it. Its gradients can be differentiated again, for which the array algebra is run
    (see `custom_vjp`). Without `backward`, forward is called with the inputs unchanged, which may
    be Tensors.

    Args:
        name   name of the entry in `IMPLEMENTATIONS`, also used in messages
        work   function of the inputs that returns the amount of work in the unit of this entry, or
               0 if the kernel cannot run. Only "auto" uses it
    """

    def decorate(reference):
        implementations = {"numpy": reference}

        @wraps(reference)
        def run(*inputs, impl="auto", name=name):
            much = 0
            if impl == "auto":
                much = work(*inputs) if _mode.kernels else 0
                if much < IMPLEMENTATIONS[name].least:  # this is the most frequent case
                    return reference(*inputs)
            return implementations[select(name, impl, inputs[0].dtype, much)](*inputs)

        def implement(impl, forward, backward=None):
            if backward is not None:
                forward = custom_vjp(forward, backward, reference, reference.__name__)
                forward.operation.fresh = True
            implementations[impl] = forward

        run.line, run.implement, run.implementations = name, implement, implementations
        return run

    return decorate


def along_rows(x, axis=-1):
    """Return the size of x as the work of an operation along the last axis, and 0 for others."""
    return x.size if x.ndim and axis in (-1, x.ndim - 1) else 0


def custom_vjp(forward, backward, reference=None, name=None):
    """Return a differentiable function, given its forward and backward pass on plain arrays.

        twice = custom_vjp(
            lambda x: (kernel(x), None),
            lambda g, y, residuals, needs_grad, x: [backward_kernel(g)],
        )

    A kernel is not NumPy code, so its backward pass cannot be differentiated again. Therefore, you
    can pass a `reference`, which is the same function composed of operations. Under `create_graph`,
    the backward pass computes the reference and its gradients, and records them. Without a
    reference, it raises NotImplementedError with the advice to use impl="numpy", which can be
    differentiated twice.

    Args:
        forward     function of the inputs as plain arrays. It returns (y, residuals), where the
                    residuals are the values that the backward pass needs again, or None
        backward    function of the gradient g of y, y itself, the residuals, a tuple needs_grad
                    with a bool for each input (True if its gradient is needed), and the inputs. It
                    returns the gradients of all inputs, with None for an input without a gradient
        reference   the same function composed of operations, or None
        name        name of the operation in messages, or None for the name of `forward`
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
                f"backward: {op.name} has only a first derivative, but create_graph=True and "
                'ta.hessian need the second one. Use impl="numpy"'
            )
        return _through(reference, g, inputs)

    apply.operation = op
    return apply


def _through(reference, g, inputs):
    """Return the gradients of the reference as Tensors that can be differentiated again."""
    # make views, so that a tensor that is passed twice gets a gradient for each input
    inputs = [np.reshape(x, x.shape) if _needs_grad(x) else x for x in inputs]
    targets = {x for x in inputs if _needs_grad(x)}
    found = backward_pass(reference(*inputs), g, create_graph=True, targets=targets)
    return [found.get(x) if _needs_grad(x) else None for x in inputs]


def _needs_grad(x):
    return isinstance(x, Tensor) and x.requires_grad
