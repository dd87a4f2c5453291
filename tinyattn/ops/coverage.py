"""The effect of each of NumPy's public functions on a Tensor, for `tinyattn doctor --numpy`."""

import textwrap

import numpy as np

from tinyattn import ops  # noqa: F401 - fills the table of the engine
from tinyattn.engine.convert import NONDIFFERENTIABLE
from tinyattn.engine.dispatch import HANDLED_FUNCTIONS

MODULES = {"np": np, "np.linalg": np.linalg, "np.fft": np.fft}
KINDS = {
    "recorded": "the result is a Tensor with a gradient",
    "no gradient": "the result is a Tensor without a gradient, as for comparisons and indices",
    "refused": "an error names the function. Pass x.numpy(), or use recorded functions",
    "plain arrays": "the function creates arrays, or needs x.numpy() as its argument",
}


def public_functions():
    """Return {"np.exp": np.exp, …} for NumPy, its linear algebra and its Fourier transforms."""
    found, seen = {}, set()
    for prefix, module in MODULES.items():
        for name in sorted(module.__all__):
            f = getattr(module, name)
            if callable(f) and not isinstance(f, type) and id(f) not in seen:
                seen.add(id(f))
                found[f"{prefix}.{name}"] = f
    return found


def kind_of(f):
    """Return the key of KINDS that describes how the function f of NumPy treats a Tensor."""
    if f in HANDLED_FUNCTIONS:
        return "no gradient" if f in NONDIFFERENTIABLE else "recorded"
    return "refused" if asks_tensors(f) else "plain arrays"


def asks_tensors(f):
    """Return whether NumPy passes a call of f with a Tensor on to tinyattn (NEP 13 and NEP 18)."""
    return isinstance(f, np.ufunc) or hasattr(f, "_implementation")


def table():
    """Return {kind: names of functions} for all public functions of NumPy and all KINDS."""
    found = {kind: [] for kind in KINDS}
    for name, f in public_functions().items():
        found[kind_of(f)].append(name)
    return found


def print_table():
    """Print the table: a paragraph for each kind of effect, with the names of its functions."""
    for kind, names in table().items():
        print(f"{kind} ({len(names)}): {KINDS[kind]}")
        short = ", ".join(name.removeprefix("np.") for name in names)
        print(textwrap.fill(short, 96, initial_indent="    ", subsequent_indent="    ") + "\n")
