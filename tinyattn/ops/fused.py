"""`custom_vjp` as a decorator, for the operations that do not choose by `operation` yet."""

from tinyattn.ops.backends import custom_vjp


def fused(reference=None):
    """Make a function of a kernel differentiable by the rule that `.defvjp` is given later."""

    def decorate(f):
        name = f.__name__.strip("_")
        apply = custom_vjp(f, None, reference, name)
        apply.defvjp = lambda rule: apply.operation.defvjp_joint(
            custom_vjp(f, rule, reference, name).operation.joint
        )
        return apply

    return decorate
