"""The operations: NumPy functions, each followed by its derivative rule.

In all docstrings, x̄ is dL/dx, the gradient of the loss L with respect to x.

Importing this package fills the table in which a Tensor looks up its functions
(`engine/dispatch.py`).
"""

from tinyattn.ops import (  # noqa: F401
    compositions,
    decompositions,
    display,
    einops_backend,
    elementwise,
    fourier,
    index,
    linalg,
    reduce,
    shape,
    trigonometric,
)
