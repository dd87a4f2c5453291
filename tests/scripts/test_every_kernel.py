"""A sample of `every_kernel.py`, whose cases all together take minutes."""

import pytest

from tests.scripts import every_kernel
from tinyattn import kernels

needs_numba = pytest.mark.skipif(kernels.numba is None, reason="compares compiled kernels")


@needs_numba
def test_pooling_is_right(capsys, monkeypatch):
    monkeypatch.setattr(kernels, "set_threads", lambda n: None)  # the other tests keep theirs
    assert every_kernel.main(["--only", "pool"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("largest error") == 8 and "4 kernels, all right" in shown


@needs_numba
def test_an_error_is_seen(capsys, monkeypatch):
    monkeypatch.setattr(kernels, "set_threads", lambda n: None)
    exact = [
        c._replace(bounds=dict.fromkeys(c.bounds, 1e-20)) for c in every_kernel.CASES["avg_pool1d"]
    ]
    monkeypatch.setitem(every_kernel.CASES, "avg_pool1d", exact)
    assert every_kernel.main(["--only", "avg_pool1d"]) == 1
    assert "WRONG" in capsys.readouterr().out
