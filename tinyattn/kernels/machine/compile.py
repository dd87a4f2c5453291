"""How kernels are compiled: the options for Numba, the cache on disk, intrinsics.

`jit` is for kernels that Python calls, and `helper` is for functions that only other kernels call.
If Numba is missing, both return the function unchanged, so kernels run as ordinary Python.
"""

from contextlib import suppress
from functools import partial
from pathlib import Path

from tinyattn.kernels.machine import compile_notice
from tinyattn.kernels.machine.canary import import_numba
from tinyattn.kernels.machine.first_use import checksum_of_sources

# missing: the reason why kernels are not compiled, as the end of a sentence, or "". If there is a
# reason, numba is None, and everything works as if Numba were not installed.
numba, missing = import_numba()

if numba is not None:
    compile_notice.install()
    from numba import types
    from numba.core.caching import FunctionCache
    from numba.extending import intrinsic as numba_intrinsic

OPTIONS = {
    "nogil": True,  # other Python threads can run meanwhile
    "error_model": "numpy",  # x / 0 is infinite, not an exception
    "fastmath": {"contract"},  # a·b + c in one instruction (FMA), inf and nan stay correct
    "no_cfunc_wrapper": True,  # kernels are never called from C
}


def jit(f, **options):
    """Compile f with Numba for calls from Python, during which other Python threads can run.

    `options` replace or extend OPTIONS. The machine code is cached on disk. Its file name contains
    a checksum of all kernel sources, because Numba checks only the file of f and would miss a
    change in a function that f calls.
    """
    if numba is None:
        return f
    f.__qualname__ += f"_{checksum:08x}"
    kernel = numba.njit(f, **{**OPTIONS, **options})
    # RuntimeError: Numba has no folder to write to, so each process compiles the kernel again
    with suppress(RuntimeError, OSError):
        kernel._cache = KernelCache(f)  # `cache=True` does the same with a FunctionCache
    return kernel


def helper(f, **options):
    """Compile f like `jit`, but for calls from other kernels only. A call from Python would crash.

    Compiling takes a fifth less time than with `jit`, because the code that unpacks Python objects
    is omitted.
    """
    return jit(f, no_cpython_wrapper=True, **options)


if numba is not None:

    class KernelCache(FunctionCache):
        """Numba's cache of a kernel. If the cache fails, the kernel is still compiled and run."""

        def load_overload(self, signature, target):
            """Return the machine code from the disk, or None if it cannot be read."""
            try:
                return super().load_overload(signature, target)
            except Exception:  # a damaged file may raise any error
                self._forget()
                return None

        def save_overload(self, signature, compiled):
            """Store the machine code on the disk, or report once that this is impossible."""
            try:
                super().save_overload(signature, compiled)
            except OSError as error:
                self._forget()
                compile_notice.kernel_not_kept(self._py_func, self.cache_path, error)

        def _forget(self):
            """Remove the index of cache files, which may name a damaged or outdated file."""
            with suppress(OSError):
                Path(self._cache_file._index_path).unlink(missing_ok=True)


# a·b and + c are rounded separately, so that all versions of a formula round equally
jit_no_fma, helper_no_fma = partial(jit, fastmath=False), partial(helper, fastmath=False)


checksum = checksum_of_sources()


def intrinsic(reference):
    """Return a decorator for functions that emit machine code, used in kernels.

    `reference` computes the same result with NumPy, and runs if Numba is missing.
    """
    return lambda emit: reference if numba is None else numba_intrinsic(emit)


@intrinsic(lambda: None)
def noinline(typing):
    """Prevent inlining of the function in which this is the first statement.

    Short functions run faster when inlined, long ones only take longer to compile.
    """

    def code(context, builder, signature, args):
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), code


@intrinsic(lambda: None)
def alwaysinline(typing):
    """Request inlining of the function in which this is the first statement.

    Use it for a short function with many arrays that is called in an inner loop. An array is passed
    as 7 arguments, most of them on the stack, so a call with a tuple of arrays may take longer than
    its computation.
    """

    def code(context, builder, signature, args):
        builder.function.attributes.add("alwaysinline")
        return context.get_dummy_value()

    return types.void(), code


def compiled_files():
    """Return {folder: kernel files with machine code} for the folders that Numba may have used."""
    from numba.misc.appdirs import AppDirs

    package = Path(__file__).resolve().parents[1]
    users = Path(AppDirs(appname="numba", appauthor=False).user_cache_dir)
    found = {}
    for folder in [Path(numba.config.CACHE_DIR)] if numba.config.CACHE_DIR else [package, users]:
        # files outside the package's folder may belong to other programs
        own = {path.stem for path in package.rglob("*.py")}
        names = {path.name.split(".")[0] for path in folder.rglob("*.nbi")} & own
        if names:
            found[folder] = sorted(names)
    return found
