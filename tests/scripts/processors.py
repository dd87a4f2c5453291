"""Are the kernels right on processors with narrower vectors than this one's?

    python -m tests.scripts.processors

Each time a fresh Python compiles the kernels of attention and of a matrix times a vector for a
processor without some of this one's instructions, and compares them with NumPy. That takes a
minute of compiling, so it is no part of the quick suite. The exit code is 0 if all were right.
"""

import sys
import tempfile

from tests.machine import fresh_python

PROGRAM = """
import numpy as np
from tinyattn.functional.attention import scaled_dot_product_attention
from tinyattn.engine.autograd import Tensor
from tinyattn.kernels.fast import matvec
from tinyattn.kernels.machine.llvm import VECTOR_BYTES
print(VECTOR_BYTES)
arrays = np.random.default_rng(0).standard_normal((3, 2, 70, 6)).astype(np.float32)
found = []
for impl in ("kernel", "numpy"):
    inputs = [Tensor(x, requires_grad=True) for x in arrays]
    y = scaled_dot_product_attention(*inputs, causal=True, impl=impl)
    (y * y).sum().backward()
    found.append([y.data, *[x.grad for x in inputs]])
for dtype in (np.float32, np.float64):
    x, w = (np.random.default_rng(1).standard_normal(s).astype(dtype) for s in ((7, 35), (6, 35)))
    print(np.allclose(matvec.product(x, w.T), x @ w.T, rtol=0, atol=2e-5))
print(all(np.allclose(a, b, rtol=0, atol=2e-5) for a, b in zip(*found)))
"""

# instructions that are missing, by the beginnings of their names: bytes of the widest vector left
PROCESSORS = {("avx512",): 32, ("avx512", "avx2", "fma"): 16}


def main():
    import numba

    from tinyattn.kernels.machine.llvm import VECTOR_BYTES

    target = numba.core.registry.cpu_target.target_context.codegen().magic_tuple()[2]
    wrong = 0
    for missing, width in PROCESSORS.items():
        if width >= VECTOR_BYTES:
            print(f"without {', '.join(missing)}: left out, vectors here have {VECTOR_BYTES} bytes")
            continue
        features = [f for f in target.split(",") if not f.lstrip("+-").startswith(missing)]
        with tempfile.TemporaryDirectory() as cache:
            found = fresh_python(
                PROGRAM,
                NUMBA_CPU_FEATURES=",".join(features),
                NUMBA_CPU_NAME="x86-64",
                NUMBA_CACHE_DIR=cache,
            )
        right = found == [str(width), *["True"] * 3]
        wrong += not right
        print(f"without {', '.join(missing)}: {'right' if right else f'wrong: {found}'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
