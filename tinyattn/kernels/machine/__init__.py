"""Vectors, tiles, packing, threads: only this folder emits LLVM or relies on Numba's insides."""

from importlib import import_module


def __getattr__(name):
    """`machine.x` imports the file x when it is first used."""
    try:
        return import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{name}":
            raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
