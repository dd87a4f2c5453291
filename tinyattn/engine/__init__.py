"""The engine: arrays that remember how they were computed, and the chain rule.

autograd.py     start here: `Tensor`, `primitive`, `backward_pass`
methods.py      the operators and methods of a Tensor: x + y, x.sum()
dispatch.py     the table from NumPy's functions to the operations of `ops/`
dtypes.py       the dtype of an array
convert.py      conversions between Tensors, arrays and numbers
transforms.py   `grad`, `value_and_grad`, `jacobian`, `hessian`, `gradients`
invalid.py      the gradient where a slope is infinite
messages.py     the error messages
arguments.py    errors for arguments of NumPy's functions that have no rule
read_only.py    errors for functions that write into their arguments
ranges.py       errors for numbers outside of their range
torch_hints.py  names that differ in PyTorch
other_names.py  names that differ in other libraries
tracebacks.py   tracebacks without the frames of the library
boxes.py        the calls that a trace shows as one box
memory.py       reuse of memory
random.py       the default generator of random numbers
"""
