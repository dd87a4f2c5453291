"""tinyattn: deep learning from scratch on NumPy, with the models of a course on attention."""

from tinyattn import ops  # noqa: F401 - gives Tensor its operators
from tinyattn.autograd import Tensor, no_grad, primitive, tensor
from tinyattn.io import load, save
from tinyattn.random import seed
from tinyattn.threads import set_threads
from tinyattn.transforms import grad, hessian, jacobian, value_and_grad

__version__ = "0.1.0"
__all__ = [
    "Tensor", "grad", "hessian", "jacobian", "load", "no_grad", "primitive", "save", "seed",
    "set_threads", "tensor", "value_and_grad",
]  # fmt: skip
