"""How kernels are compiled: the options for Numba, the cache on disk, intrinsics.

`jit` is for kernels that Python calls, `helper` for functions that only other kernels call. Both
give the function back as it is where Numba is missing: then kernels run as ordinary Python.
"""

from contextlib import suppress
from functools import partial
from pathlib import Path

from tinyattn.kernels.machine import compile_notice
from tinyattn.kernels.machine.canary import import_numba
from tinyattn.kernels.machine.first_use import checksum_of_sources

# missing: the reason why kernels are not compiled, as the end of a sentence; "" if they are. If
# they are not, numba is None, and everything works as if it were not installed.
numba, missing = import_numba()

if numba is not None:
    compile_notice.install()
    from numba import types
    from numba.core.caching import FunctionCache
    from numba.extending import intrinsic as numba_intrinsic

OPTIONS = {
    "nogil": True,  # other Python threads can run meanwhile
    "error_model": "numpy",  # x / 0 is infinite, not an exception
    "fastmath": {"contract"},  # a·b + c in one instruction (FMA); infinities and nan stay correct
    "no_cfunc_wrapper": True,  # kernels are never called from C
}


def jit(f, **options):
    """Compile f with Numba, for Python to call: other Python threads run meanwhile.

    The machine code is kept on disk. Its name there carries a checksum of all kernel sources,
    because Numba looks only at the file of f itself and would miss a change in what f calls.
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
    """`jit` for a function that only other kernels call; a call from Python would crash.

    Without the code that unpacks Python's objects it is compiled in a fifth less time.
    """
    return jit(f, no_cpython_wrapper=True, **options)


if numba is not None:

    class KernelCache(FunctionCache):
        """Numba's cache of a kernel; if it cannot be used, the kernel is still compiled and run."""

        def load_overload(self, signature, target):
            """The machine code from the disk; None if there is none that can be read."""
            try:
                return super().load_overload(signature, target)
            except Exception:  # a damaged file may raise any error
                self._forget()
                return None

        def save_overload(self, signature, compiled):
            """Keep the machine code, or say once that it cannot be kept."""
            try:
                super().save_overload(signature, compiled)
            except OSError as error:
                self._forget()
                compile_notice.kernel_not_kept(self._py_func, self.cache_path, error)

        def _forget(self):
            """Remove the list of files, which may name one that is damaged or older than itself."""
            with suppress(OSError):
                Path(self._cache_file._index_path).unlink(missing_ok=True)


# a·b and + c are rounded separately, so that all versions of a formula round equally
jit_no_fma, helper_no_fma = partial(jit, fastmath=False), partial(helper, fastmath=False)


checksum = checksum_of_sources()


def intrinsic(reference):
    """A function for kernels: machine code that the decorated function emits, or its reference.

    reference: what it computes, in NumPy; this is what runs where Numba is missing.
    """
    return lambda emit: reference if numba is None else numba_intrinsic(emit)


@intrinsic(lambda: None)
def noinline(typing):
    """First statement of a function that is not to be inlined where others call it.

    Short functions run faster when inlined, long ones only take longer to compile.
    """

    def code(context, builder, signature, args):
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), code


@intrinsic(lambda: None)
def alwaysinline(typing):
    """First statement of a short function that takes many arrays and is called in an inner loop.

    An array is 7 arguments, most of which go over the stack: with a tuple of arrays the call may
    take longer than what is computed in it.
    """

    def code(context, builder, signature, args):
        builder.function.attributes.add("alwaysinline")
        return context.get_dummy_value()

    return types.void(), code


def compiled_files():
    """{folder: kernel files with machine code in it}, for each folder that Numba may have used."""
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
