"""Support for Tensors in einops, as in `einops.rearrange(x, "b h t d -> b t (h d)")`.

einops asks each of its backends whether a tensor belongs to it. The functions of NumPy's backend
accept a Tensor, so a subclass of this backend only needs to be registered. This happens when einops
is imported, before or after tinyattn. Source: https://github.com/arogozhnikov/einops
"""

import sys
from importlib.util import find_spec

from tinyattn.engine.autograd import Tensor

BACKENDS = "einops._backends"


def register(backends):
    """Add a backend for Tensors to einops, which finds it among the subclasses of its own.

    `backends` is the module `einops._backends`.
    """

    class TensorBackend(backends.NumpyBackend):
        framework_name = __name__.partition(".")[0]

        def is_appropriate_type(self, tensor):
            return isinstance(tensor, Tensor)

        def from_numpy(self, x):
            return Tensor(x)

        def to_numpy(self, x):
            return x.numpy()

    # einops only keeps weak references to its subclasses
    backends.AbstractBackend.of_tinyattn = TensorBackend


class RegisterOnImport:
    """A finder of modules that removes itself when einops is imported."""

    def find_spec(self, name, path=None, target=None):
        """Return the spec of the backends of einops, and None for all other modules."""
        if name != BACKENDS:
            return None
        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_and_register(module):
                run(module)
                register(module)

            spec.loader.exec_module = run_and_register
        return spec


if BACKENDS in sys.modules:
    register(sys.modules[BACKENDS])
else:
    sys.meta_path.insert(0, RegisterOnImport())
