"""A kernel that compiles in a moment, loaded afresh as often as a test likes.

What is loaded is a new function with an empty memory, as in a new process: its machine code comes
from the disk if it is there, and is compiled and kept there otherwise.
"""

import importlib.util
import threading

import numpy as np

NAME = "small.twice"
SOURCE = """
from tinyattn.kernels import jit

@jit
def twice(x):
    return x[0] + x[0]
"""


def load(folder, name="tinyattn.small"):
    """The kernel, whose file is in the folder, in a module of this name."""
    path = folder / "small.py"
    if not path.exists():
        path.write_text(SOURCE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.twice


def run(folder, name="tinyattn.small", loaded=lambda: None):
    """(how many of two dtypes were read from the disk, the kernel's folder there or None).

    loaded: called when the kernel is loaded and has not run yet
    """
    kernel = load(folder, name)
    loaded()
    for dtype in (np.float32, np.float64):
        assert kernel(np.ones(1, dtype)) == 2
    for thread in threading.enumerate():  # what they say is said now
        if isinstance(thread, threading.Timer):
            thread.join()
    return sum(kernel.stats.cache_hits.values()), kernel.stats.cache_path


def files(folder, ending=""):
    """The files of the kernel in a folder of Numba's cache."""
    return sorted(folder.rglob(f"small.twice_*{ending}"))
