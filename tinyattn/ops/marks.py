"""Marks for operations: what the engine has to know of them beside their rules."""

from tinyattn.engine.autograd import Primitive, primitive


def elementwise(f) -> Primitive:
    """A primitive that works on each element by itself, and so do its rules.

    Where no gradient arrives none leaves, though the slope be infinite: see engine/invalid.py.
    """
    apply = primitive(f)
    apply.operation.elementwise = True
    return apply
