"""Detect whether a layer was changed by a subclass or by replacing one of its methods.

The `forward` of a layer defines its result. Code that computes the result in a different, faster
way is correct only for an unchanged layer, so it calls `describe_override` first. Examples are
`inference.compile`, and the layers on point clouds, which split the product of a linear layer.
"""

import sys
from functools import cache
from operator import is_
from types import FunctionType

from tinyattn.engine.ranges import with_article
from tinyattn.engine.torch_hints import without_hints
from tinyattn.nn.module import Module


def describe_override(module):
    """Return how a module differs from its class in tinyattn, or None if it does not.

    A module differs if its class is a subclass, or if a method was replaced on its class or on the
    module itself. (`Summary` replaces methods of modules to record the calls.)

    Args:
        module   the module

    Returns:
        the end of a sentence that begins with the name of the module, such as "is a MyLinear, a
        subclass of Linear", or None
    """
    return describe_class_override(type(module)) or describe_object_override(module)


def describe_class_override(cls):
    """Return how the class `cls` differs from a class in the source of tinyattn, or None.

    The result has the same form as that of `describe_override`.
    """
    found = with_article(cls.__name__)
    if not _is_library_class(cls):
        base = next(c for c in cls.__mro__ if _is_library_class(c))
        return f"is {found}, a subclass of {base.__name__}"
    for c in cls.__mro__[:-1]:  # without `object`
        name = _replaced(c)
        if name is not None:
            return f"is {found}, whose {name} was replaced on the class {c.__name__}"
    return None


def describe_object_override(module):
    """Return which method was set on this `module` itself instead of its class, or None.

    The result has the same form as that of `describe_override`.
    """
    cls = type(module)
    if _methods(cls).isdisjoint(vars(module)):
        return None
    (name, *_) = _methods(cls).intersection(vars(module))
    return f"has a {name} of its own, set on this {cls.__name__}"


def is_user_module(cls):
    """Return whether `cls` is a user's own class with `Module` as its only base in tinyattn."""
    return not _is_library_class(cls) and next(filter(_is_library_class, cls.__mro__)) is Module


def _is_library_class(cls):
    return cls.__module__.partition(".")[0] == "tinyattn"


@cache
def _methods(cls):
    """Return the names of the class's callable attributes."""
    # None, because a name that PyTorch has and modules here lack raises an error
    return frozenset(name for name in dir(cls) if callable(getattr(cls, name, None)))


_unchanged = {}  # class -> its attributes when they last agreed with its source


def _replaced(cls):
    """Return the name of an attribute that is not the one in the source of its class, or None."""
    now = vars(cls).values()
    known = _unchanged.get(cls, ())
    if len(known) == len(now) and all(map(is_, known, now)):
        return None
    for name, value in vars(cls).items():
        if not _is_original(cls, name, value):
            return name
    _unchanged[cls] = list(now)
    return None


def _is_original(cls, name, value):
    """Return whether the attribute of a class is the one that its source defines under this name.

    A function keeps its original file and name in its code, even if `functools.wraps` gave it the
    name of another function.
    """
    if isinstance(value, property):
        value = value.fget
    if isinstance(value, FunctionType):
        value = without_hints(value)
        code, file = value.__code__, sys.modules[cls.__module__].__file__
        return (code.co_qualname, code.co_filename) == (f"{cls.__qualname__}.{name}", file)
    return isinstance(value, type | staticmethod | classmethod) or not callable(value)
