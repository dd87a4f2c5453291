"""Memory that is freed serves again, in large arrays and in smaller ones."""

import gc
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tinyattn.engine import memory

FLOAT32 = np.dtype(np.float32)


@pytest.fixture(autouse=True)
def small_is_large(monkeypatch):
    """Arrays above 1,000 bytes count as large, 10,000 bytes may wait."""
    gc.collect()
    monkeypatch.setattr(memory, "LARGEST", 1000)
    monkeypatch.setattr(memory, "SPARE", 10_000)
    memory._spare.clear()
    yield
    memory._spare.clear()


def place(x):
    return x.__array_interface__["data"][0]


def test_small_arrays_are_ordinary_ones():
    assert memory.empty_pooled((5, 50), FLOAT32).base is None


def test_a_large_array_has_shape_and_dtype_and_can_be_written():
    x = memory.empty_pooled((3, 0, 100), FLOAT32)
    assert x.shape == (3, 0, 100)
    for dtype in (np.float32, np.float64):
        x = memory.empty_pooled((3, 200), np.dtype(dtype))
        x[...] = np.arange(600.0).reshape(3, 200)
        assert x.shape == (3, 200) and x.dtype == dtype and x.flags.c_contiguous
        assert x.flags.writeable and x.sum() == 600 * 599 / 2


def test_memory_serves_again_only_when_all_views_are_gone():
    x = memory.empty_pooled((3, 200), FLOAT32)
    first, view = place(x), x[1:].T
    del x
    y = memory.empty_pooled((3, 200), FLOAT32)
    assert place(y) != first
    view[...] = 5.0
    del view
    assert place(memory.empty_pooled((200, 3), FLOAT32)) == first  # other shape, as many bytes
    assert place(memory.empty_pooled((3, 201), FLOAT32)) != first


def test_no_more_waits_than_may():
    held = [memory.empty_pooled((1, 500), FLOAT32) for _ in range(8)]
    places = [place(x) for x in held]
    while held:
        del held[0]
    assert [place(m) for m in memory._spare.values()] == places[3:]  # 5 blocks of 2,000 bytes


def test_tracemalloc_sees_every_array():
    first = memory.empty_pooled((50, 100), FLOAT32)
    del first
    tracemalloc.start()
    try:
        x = memory.empty_pooled((50, 100), FLOAT32)
        assert tracemalloc.get_traced_memory()[1] >= x.nbytes
    finally:
        tracemalloc.stop()


def test_threads_never_get_the_same_memory():
    def fill(i):
        for _ in range(300):
            x = memory.empty_pooled((20, 20), FLOAT32)
            x[...] = i
            if not (x == i).all():
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(fill, range(8)))


# ---------------------------------------------------------------- blocks that the C library keeps


@pytest.mark.skipif(not memory.keep_memory(), reason="not with this C library")
def test_freed_memory_is_used_again():
    import resource

    def page_faults():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(20):
            np.ones(2**20, np.float32)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    page_faults()
    assert page_faults() < 2000  # 20 arrays of 1024 pages
