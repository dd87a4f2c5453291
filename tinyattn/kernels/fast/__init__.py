"""The operations of kernels/ with vector instructions and threads.

The docstring of each file names the simpler version that it speeds up. `from tinyattn.kernels
import fast` does not import these files. Each file, such as `fast.rowwise`, is imported on first
use, and Numba with it.
"""

from importlib import import_module
from importlib.util import find_spec


def __getattr__(name):
    """Return the file `name` of this folder, imported on its first use."""
    if name.startswith("_") or find_spec(f"{__name__}.{name}") is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
