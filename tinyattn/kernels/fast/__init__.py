"""The operations of `kernels/` on vectors and threads."""

from importlib import import_module


def __getattr__(name):
    """`fast.x` imports the file x when it is first used."""
    try:
        return import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{name}":
            raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
