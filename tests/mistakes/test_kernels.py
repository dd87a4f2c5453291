"""Mistakes that kernels must refuse before they run: the error that each must raise."""

import numpy as np
import pytest

from tests.kernels.test_threads import fails_at
from tinyattn.graph import neighbours as operations
from tinyattn.kernels import jit, numba
from tinyattn.kernels.machine import thread_pool

OTHERS = ("numpy", "kernel") if numba else ("numpy",)


@pytest.mark.parametrize("impl", ["auto", *OTHERS])
def test_an_index_of_other_points_is_refused(impl):
    """The kernel would read behind the end of the index."""
    with pytest.raises(ValueError, match=r"6 rows, one for each point of x, got shape \(4, 2\)"):
        operations.squared_distances(np.ones((6, 3)), np.zeros((4, 2), int), impl)


needs_numba = pytest.mark.skipif(numba is None, reason="without Numba nothing is shared")


@needs_numba
def test_a_constant_start_or_stop_is_refused():
    """Numba would compile the kernel for that very number, and all pieces would have it."""

    @jit
    def begins_at_zero(n, team):
        fails_at(-1, team, 0, n)

    @jit
    def ends_at_eight(n, team):
        fails_at(-1, team, n, 8)

    for kernel in (begins_at_zero, ends_at_eight):
        with pytest.raises(Exception, match=r"Pass, for example, runtime_zero\(\) for 0"):
            thread_pool.parallel_region(kernel, 3)
