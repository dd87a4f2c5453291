"""How many threads share the work of a compiled kernel."""


def set_threads(n: int) -> int:
    """Run kernels on n threads from now on; returns the number before."""
    from tinyattn.kernels.machine import thread_pool  # imports Numba, so not before it is needed

    return thread_pool.set_threads(n)
