"""tinyattn: deep learning from scratch on NumPy, with the models of a course on attention."""

from importlib import import_module
from typing import TYPE_CHECKING

from tinyattn import ops  # noqa: F401 - gives Tensor its operators
from tinyattn.check import detect_anomaly
from tinyattn.engine import torch_hints, tracebacks
from tinyattn.engine.autograd import Tensor, no_grad, primitive, tensor
from tinyattn.engine.memory import keep_memory
from tinyattn.engine.random import seed
from tinyattn.engine.torch_hints import with_torch_hints
from tinyattn.engine.transforms import grad, gradients, hessian, jacobian, value_and_grad
from tinyattn.io import load, save
from tinyattn.kernels import set_threads

# editors read these imports; at run time, `__getattr__` imports a module on first use
if TYPE_CHECKING:
    from . import (  # noqa: F401
        check,
        data,
        functional,
        graph,
        inference,
        metrics,
        models,
        nn,
        optim,
        plot,
        training,
        widgets,
    )
    from .trace import trace  # noqa: F401
else:
    tensor = with_torch_hints(tensor)  # the engine itself does not know PyTorch's arguments
    for _name in ("grad", "gradients", "hessian", "jacobian", "value_and_grad"):
        globals()[_name] = with_torch_hints(globals()[_name])

tracebacks.install()

_SUBMODULES = [
    "check",
    "data",
    "functional",
    "graph",
    "inference",
    "metrics",
    "models",
    "nn",
    "optim",
    "plot",
    "trace",
    "training",
    "widgets",
]


def __getattr__(name):
    """Import the submodule `name` when it is first used, such as `ta.nn`.

    Any other name raises AttributeError.
    """
    if name in _SUBMODULES:
        return import_module(f"tinyattn.{name}")
    raise torch_hints.no_such_name(__name__, name)


def __dir__():
    return sorted([*globals(), *_SUBMODULES])


__version__ = "0.1.0"
__all__ = [
    "Tensor",
    "detect_anomaly",
    "grad",
    "gradients",
    "hessian",
    "jacobian",
    "keep_memory",
    "load",
    "no_grad",
    "primitive",
    "save",
    "seed",
    "set_threads",
    "tensor",
    "value_and_grad",
]
