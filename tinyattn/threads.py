"""How many threads share the work of a compiled kernel."""


def set_threads(n: int) -> int:
    """Run kernels on n threads from now on; returns the number before."""
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise ValueError(f"set_threads: expected a whole number of at least 1, got {n!r}")
    from tinyattn.kernels.machine import thread_pool  # imports Numba, so not before it is needed

    return thread_pool.set_threads(n)
