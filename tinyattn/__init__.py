"""tinyattn: deep learning from scratch on NumPy, with the models of a course on attention."""

from importlib import import_module
from typing import TYPE_CHECKING

from tinyattn import ops  # noqa: F401 - gives Tensor its operators
from tinyattn.autograd import Tensor, no_grad, primitive, tensor
from tinyattn.check.anomaly import detect_anomaly
from tinyattn.hints import explained, missing_name
from tinyattn.io import load, save
from tinyattn.random import seed
from tinyattn.threads import set_threads
from tinyattn.transforms import grad, gradients, hessian, jacobian, value_and_grad

if TYPE_CHECKING:  # for editors; when the program runs, `__getattr__` imports what is asked for
    from . import (  # noqa: F401
        check,
        data,
        functional,
        graph,
        inference,
        knobs,
        metrics,
        models,
        nn,
        optim,
        plot,
        training,
    )
    from .trace import trace  # noqa: F401
else:
    tensor = explained(tensor)  # the engine itself does not know PyTorch's arguments

_SUBMODULES = [
    "check", "data", "functional", "graph", "inference", "knobs", "metrics", "models", "nn",
    "optim", "plot", "trace", "training",
]  # fmt: skip


def __getattr__(name):
    """`ta.nn` after `import tinyattn as ta`: a submodule is imported when it is first used."""
    if name in _SUBMODULES:
        return import_module(f"tinyattn.{name}")
    raise AttributeError(f"module 'tinyattn' has no attribute {name!r}{missing_name(name)}")


def __dir__():
    return sorted([*globals(), *_SUBMODULES])


__version__ = "0.1.0"
__all__ = [
    "Tensor", "detect_anomaly", "grad", "gradients", "hessian", "jacobian", "load", "no_grad",
    "primitive", "save", "seed", "set_threads", "tensor", "value_and_grad",
]  # fmt: skip
