"""How a compiled kernel becomes an operation that can be differentiated."""

from functools import wraps

import numpy as np

from tinyattn.engine.autograd import Operation, Tensor, backward_pass, record
from tinyattn.engine.convert import to_array


def fused(reference=None):
    """Make a function that runs a kernel differentiable.

        @fused()
        def twice(x):
            return kernel(x), saved
        twice.defvjp(lambda g, y, saved, wanted, x: [backward_kernel(g, saved)])

    The function sees plain arrays and returns y and what its rule needs again. The
    rule gets the gradient g of y, y, what was saved, one bool for each input that says whether its
    gradient is wanted, and the inputs; it returns the gradients of all inputs (None where an
    input has none).

    A kernel is not NumPy code, so its rule cannot be differentiated again. With a `reference`, the
    same operation composed of others, the second derivative is that of the reference: under
    `create_graph` the rule computes it and takes its gradients, which are recorded. Without one
    the rule raises NotImplementedError, and says that impl="numpy" can be differentiated twice.
    """

    def decorate(f):
        op = Operation(f.__name__.strip("_"))

        @wraps(f)
        def apply(*inputs):
            arrays = tuple([to_array(x) for x in inputs])
            y, saved = f(*arrays)
            wanted = tuple([_wanted(x) for x in inputs])
            return record(op, y, inputs, arrays, {"saved": saved, "wanted": wanted})

        def defvjp(rule):
            @op.defvjp_joint
            def joint(g, y, *inputs, saved, wanted):
                if not isinstance(g, Tensor):
                    return rule(g, y, saved, wanted, *inputs)
                if reference is None:
                    raise NotImplementedError(
                        f"backward: {op.name} runs a compiled kernel, which has no second "
                        f'derivative (create_graph=True, ta.hessian); use impl="numpy"'
                    )
                return _through(reference, g, inputs)

        apply.operation, apply.defvjp = op, defvjp
        return apply

    return decorate


def _through(reference, g, inputs):
    """The gradients of the reference, recorded, so that they have gradients themselves."""
    # views, so that one tensor given as two inputs has a gradient for each
    inputs = [np.reshape(x, x.shape) if _wanted(x) else x for x in inputs]
    targets = {x for x in inputs if _wanted(x)}
    found = backward_pass(reference(*inputs), g, create_graph=True, targets=targets)
    return [found.get(x) if _wanted(x) else None for x in inputs]


def _wanted(x):
    return isinstance(x, Tensor) and x.requires_grad
