"""The engine: arrays that remember how they were computed, and the chain rule.

autograd.py     start here: `Tensor`, `primitive`, `backward_pass`
methods.py      the operators and methods of a Tensor: x + y, x.sum()
dispatch.py     the table from NumPy's functions to the operations of `ops/`
dtypes.py       the dtype of an array
convert.py      conversions between Tensors, arrays and numbers
transforms.py   `grad`, `jacobian`, `hessian`
messages.py     the error messages
torch_hints.py  names that differ in PyTorch
memory.py       reuse of memory
random.py       the default generator of random numbers
"""
