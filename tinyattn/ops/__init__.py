"""The operations. Importing them gives `Tensor` its operators and methods (`methods.py`)."""

from tinyattn.autograd import Tensor
from tinyattn.ops.methods import TensorMethods

# The class stands on the floor below, which must not import its methods: so they are put in here.
for _name, _member in vars(TensorMethods).items():
    if _name not in ("__dict__", "__weakref__", "__module__", "__doc__"):
        setattr(Tensor, _name, _member)
