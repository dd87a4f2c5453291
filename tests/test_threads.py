"""The pool of threads that kernels share, and kernels without Numba."""

import os

import numpy as np
import pytest

from tests.machine import fresh_python, kernels_on
from tinyattn.kernels import threads


def test_an_error_in_a_piece_of_work_arrives():
    def work(start, stop):
        if start <= 5 < stop:
            raise ZeroDivisionError

    with kernels_on(2), pytest.raises(ZeroDivisionError):
        threads.share(work, 8)


def test_share_does_everything_once():
    for n in (0, 1, 2, 3, 7, 100):
        done = np.zeros(n, int)

        def work(start, stop, done=done):
            done[start:stop] += 1

        with kernels_on(2):
            threads.share(work, n)
        assert (done == 1).all()


class Asleep(threads._Helper):
    """A helper that other programs keep from its processor: it never wakes."""

    def serve(self):
        pass


def test_a_helper_that_does_not_wake_holds_nobody_up(monkeypatch):
    monkeypatch.setattr(threads, "_helpers", [Asleep(), Asleep()])
    for _ in range(3):
        done = np.zeros(50, int)

        def work(start, stop, done=done):
            done[start:stop] += 1

        with kernels_on(3):
            threads.share(work, 50)
        assert (done == 1).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_fork_after_a_kernel_ran():
    assert fresh_python("""
        import os, warnings, numpy as np
        from tinyattn.functional.attention import scaled_dot_product_attention
        from tinyattn.kernels import threads
        threads.set_threads(2)
        warnings.simplefilter("ignore")  # newer Pythons warn of a fork with threads
        x = np.random.default_rng(0).standard_normal((4, 200, 8))
        run = lambda: scaled_dot_product_attention(x, x, x, impl="kernel").data
        before = run()
        child = os.fork()
        if child == 0:
            os._exit(0 if (run() == before).all() else 1)
        _, status = os.waitpid(child, 0)
        print(status, (run() == before).all())
    """) == ["0", "True"]


# ---------------------------------------------------------------- Numba is optional and lazy


def test_numba_is_imported_by_the_first_kernel_only():
    assert fresh_python("""
        import sys, numpy as np
        import tinyattn
        from tinyattn.functional.attention import scaled_dot_product_attention
        x = np.ones((4, 20, 8))
        scaled_dot_product_attention(x, x, x)
        print("numba" in sys.modules)
        scaled_dot_product_attention(x, x, x, impl="kernel")
        print("numba" in sys.modules)
    """) == ["False", "True"]


def test_without_numba_everything_runs():
    out = fresh_python("""
        import sys, warnings
        sys.modules["numba"] = None
        import numpy as np
        from tinyattn.autograd import Tensor
        from tinyattn.functional.attention import scaled_dot_product_attention
        x = np.random.default_rng(0).standard_normal((2, 70, 3))
        results = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for impl in ("matmul", "sums", "kernel", "kernel", "auto"):
                t = Tensor(x, requires_grad=True)
                y = scaled_dot_product_attention(t, t, t, causal=True, impl=impl)
                y.backward(x)
                results.append(np.concatenate([y.data, t.grad]))
        print(all(np.allclose(r, results[0], rtol=0, atol=1e-12) for r in results))
        print(len(caught), caught[0].message)
    """)
    assert out[:2] == ["True", "1"]
    assert "numba" in " ".join(out).lower()
