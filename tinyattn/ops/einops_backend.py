"""Tensors in einops: `einops.rearrange(x, "b h t d -> b t (h d)")` and the like, with gradients.

einops asks each of its backends whether a tensor is one of its own. NumPy's backend does all that
is needed, since its functions run for a Tensor; it has to be told so. That happens when einops is
imported, before or after tinyattn, and never otherwise. Source: https://github.com/arogozhnikov/einops
"""

import sys
from importlib.util import find_spec

from tinyattn.engine.autograd import Tensor

BACKENDS = "einops._backends"


def register(backends):
    """Give the module of backends one for Tensors; einops finds it among the subclasses."""

    class TensorBackend(backends.NumpyBackend):
        framework_name = __name__.partition(".")[0]

        def is_appropriate_type(self, tensor):
            return isinstance(tensor, Tensor)

        def from_numpy(self, x):
            return Tensor(x)

        def to_numpy(self, x):
            return x.numpy()

    backends.AbstractBackend.of_tinyattn = TensorBackend  # subclasses are known by weak references


class RegisterOnImport:
    """Stands among the finders of modules, and leaves them when einops is imported."""

    def find_spec(self, name, path=None, target=None):
        """None for all modules but one; that is found by the others, and registered with."""
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
