"""The operations: each a NumPy function with its derivative rule right under it.

Importing them fills the table in which a Tensor looks its functions up (`engine/dispatch.py`).
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
