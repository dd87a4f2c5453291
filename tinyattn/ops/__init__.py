"""The operations. Importing them gives `Tensor` its operators and methods (`methods.py`)."""

from inspect import isfunction

from tinyattn.autograd import Tensor
from tinyattn.hints import explained
from tinyattn.ops.methods import TensorMethods

# The class stands on the floor below, which must not import its methods: so they are put in here.
for _name, _member in vars(TensorMethods).items():
    if _name not in ("__dict__", "__weakref__", "__module__", "__doc__"):
        _named = isfunction(_member) and not _name.startswith("_")  # x.sum(dim=0) gets a hint
        setattr(Tensor, _name, explained(_member) if _named else _member)
Tensor.backward = explained(Tensor.backward)
