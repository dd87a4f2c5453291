"""The compiled attention: threads do not change a bit, and it keeps no matrix of weights."""

import sys

import numpy as np
import pytest

from tests.machine import fresh_python, same_bits_on_any_threads
from tinyattn.engine.autograd import Tensor
from tinyattn.functional.attention import scaled_dot_product_attention


def test_the_same_bits_on_any_number_of_threads():
    rng = np.random.default_rng(0)
    shapes = ((3, 300, 8), (3, 200, 8), (3, 200, 8), (1, 200))
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    mask = rng.random((3, 300, 200)) < 0.6
    g = rng.standard_normal((3, 300, 8)).astype(np.float32)

    def run():
        *qkv, bias = inputs = [Tensor(x, requires_grad=True) for x in arrays]
        y = scaled_dot_product_attention(*qkv, mask=mask, bias=bias, impl="kernel")
        y.backward(g)
        return [y.data, *(x.grad for x in inputs)]

    same_bits_on_any_threads(run)


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak memory as Linux gives it")
def test_memory_grows_with_the_length_not_with_its_square():
    kilobytes = fresh_python("""
        import resource, numpy as np
        from tinyattn.engine.autograd import Tensor
        from tinyattn.functional.attention import scaled_dot_product_attention
        for N in (256, 8192):
            q, k, v = (Tensor(np.ones((N, 16), np.float32), requires_grad=True) for _ in range(3))
            mask = np.ones(N, bool)
            y = scaled_dot_product_attention(q, k, v, mask, causal=True, impl="kernel")
            y.backward(np.ones_like(y.data))
            print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    """)
    short, long = map(int, kilobytes)
    square = 8192 * 8192 * 4 / 1024
    assert long - short < square / 8  # q, k, v, y, their gradients and eight parts: 12 of 256 MB
