"""tinyattn: deep learning from scratch on NumPy, with the models of a course on attention."""

from tinyattn import ops  # noqa: F401 - gives Tensor its operators
from tinyattn.autograd import Tensor, no_grad, primitive, tensor
from tinyattn.io import load, save
from tinyattn.random import seed
from tinyattn.transforms import grad, hessian, jacobian, value_and_grad


def set_threads(n):
    """Run kernels on n threads from now on; returns the number before."""
    from tinyattn.kernels.machine import thread_pool  # imports Numba

    return thread_pool.set_threads(n)


__version__ = "0.1.0"
__all__ = [
    "Tensor", "grad", "hessian", "jacobian", "load", "no_grad", "primitive", "save", "seed",
    "set_threads", "tensor", "value_and_grad",
]  # fmt: skip
