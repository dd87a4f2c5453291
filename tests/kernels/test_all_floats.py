"""A sample of the inputs of `tests/scripts/all_floats.py`, with the worst that it has found."""

import numpy as np
import pytest

from tests.machine import fresh_python, processor_without
from tests.scripts import all_floats
from tests.scripts.all_floats import BOUNDS
from tinyattn.kernels.machine.llvm import HAS_FMA, VECTOR_BYTES

pytest.importorskip("numba")
NAN_WITH_PAYLOAD = np.array([0x7FC00001, 0x7FA12345, 0xFFFFFFFF, 0x7F800001], np.uint32)


@pytest.mark.parametrize("name", BOUNDS)
def test_the_error_is_within_the_bound(name):
    sample = all_floats.inputs(0, 1 << 32, 8191)
    error, _, wrong = all_floats.check(name, sample)
    assert not len(wrong), wrong[:10]
    assert error > BOUNDS[name].ulps / 4  # the bound says something
    worst = np.array([float.fromhex(x) for x in BOUNDS[name].worst], np.float32)
    error, at, wrong = all_floats.check(name, worst)
    assert not len(wrong), wrong
    if HAS_FMA:  # without it other inputs are the worst
        assert error > 0.9 * BOUNDS[name].ulps, (error, at)
    print(f"\n{name}: {len(sample) + len(worst):,} inputs")


@pytest.mark.parametrize("name", BOUNDS)
def test_ends_zeros_and_nan(name):
    y = all_floats.values(name, NAN_WITH_PAYLOAD.view(np.float32))
    assert np.isnan(y).all()
    low, high, zero = all_floats.values(name, np.array([-3e38, 80, -0.0], np.float32))
    expected = {"exp": (0, np.exp(80), 1), "sigmoid": (0, 1, 0.5)}.get(name, (-1, 1, 0))
    np.testing.assert_allclose((low, high, zero), expected, rtol=1e-6, atol=2e-35)
    assert np.signbit(zero) == (name == "erf")  # tanh gives 0 for -0


def test_a_worse_function_is_seen(monkeypatch):
    monkeypatch.setattr(all_floats, "erf_of", lambda x: np.tanh(x * np.float32(1.2)))
    error, _, wrong = all_floats.check("erf", np.linspace(-3, 3, 1000, dtype=np.float32))
    assert error > 1000 and len(wrong) > 900


@pytest.mark.skipif(VECTOR_BYTES < 32, reason="this processor has no AVX2 to leave out")
def test_without_fma_the_bounds_hold_too(tmp_path):
    code = """
        import numpy as np
        from tests.scripts import all_floats
        from tinyattn.kernels.machine.llvm import HAS_FMA, VECTOR_BYTES
        assert (HAS_FMA, VECTOR_BYTES) == (False, 16)
        sample = all_floats.inputs(0, 1 << 32, 8191)
        for name in ("exp", "sigmoid", "tanh"):
            print(len(all_floats.check(name, sample)[2]))
        x = np.random.default_rng(0).uniform(-700, 700, 64000)
        y = np.empty_like(x)
        all_floats.vectors(all_floats.EXP, y, x)
        print(np.abs(y / np.exp(x) - 1).max() < 1e-15)
    """
    settings = {"NUMBA_CACHE_DIR": str(tmp_path), "TINYATTN_CANARY": "off"}
    assert fresh_python(code, **processor_without("avx", "fma"), **settings) == [*"000", "True"]
