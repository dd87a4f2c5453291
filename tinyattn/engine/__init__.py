"""The engine: arrays that remember how they were made, and the chain rule.

autograd.py     start here: `Tensor`, `primitive`, `backward_pass`
methods.py      the operators and methods of a Tensor: x + y, x.sum()
dispatch.py     the table from NumPy's functions to the operations of `ops/`
dtypes.py       which dtype an array gets
convert.py      Tensors, arrays and numbers turned into one another
transforms.py   `grad`, `jacobian`, `hessian`
messages.py     what the engine refuses, and in which words
torch_hints.py  what PyTorch calls by another name
memory.py       memory that is used again
random.py       the default generator of random numbers
"""
