"""With AVX2 no loop has to store vectors with a mask, which is very slow on processors of AMD."""

import pytest

pytest.importorskip("numba")

from tests.machine import fresh_python, processor_without
from tinyattn.kernels.machine.llvm import VECTOR_BYTES

pytestmark = pytest.mark.skipif(VECTOR_BYTES < 32, reason="this processor has no AVX2")

# LLVM makes a masked store of a comparison only in the machine code
INSERT = r"""
import re
import numpy as np
from tinyattn.kernels import jit_no_fma
from tinyattn.kernels.fast.candidate_list import insert
from tinyattn.kernels.machine.llvm import VECTOR_BYTES
from tinyattn.kernels.machine.load_store import load

@jit_no_fma
def run(best, x):
    insert(best, 4, 0, load(x, 0))

run(np.ones(64, np.float32), np.ones(64, np.float32))
(code,) = run.inspect_asm().values()
print(VECTOR_BYTES, "vminps" in code, len(re.findall(r"vp?maskmov\w+\s+%ymm\d+, %ymm\d+, ", code)))
"""

# `whole` counts cycles of blocks that store a whole vector and need no block with a masked store
ROWS = r"""
import re
import numpy as np
from llvmlite import binding
from tinyattn.kernels.fast import rowwise
from tinyattn.kernels.machine.llvm import VECTOR_BYTES

def circles(kernel):
    (code,) = kernel.inspect_llvm().values()
    masked = whole = 0
    for function in binding.parse_assembly(code).functions:
        follow, stores = {}, set()
        for block in function.blocks:
            lines = [str(one) for one in block.instructions]
            if any("@llvm.masked.store" in line for line in lines):
                masked += 1
                continue
            follow[block.name] = re.findall(r"label %\"?([^\s,\"\]]+)", lines[-1])
            if any(re.search(r"store <8 x float>", line) for line in lines):
                stores.add(block.name)
        for start in stores:
            seen, todo = set(), list(follow[start])
            while todo:
                name = todo.pop()
                if name in follow and name not in seen:
                    seen.add(name)
                    todo += follow[name]
            whole += start in seen
    return masked, whole

x = np.ones((3, 40), np.float32)
rowwise.softmax_backward(x, rowwise.softmax(x, False), False)
print(VECTOR_BYTES)
for kernel in (rowwise.softmax_rows, rowwise.softmax_rows_backward):
    masked, whole = circles(kernel)
    print(masked > 0, whole > 0)
"""


def on_avx2(program, folder):
    """The words that a program prints whose kernels are compiled for AVX2."""
    settings = {"NUMBA_CACHE_DIR": str(folder), "TINYATTN_CANARY": "off"}
    return fresh_python(program, **processor_without("avx512"), **settings)


def test_inserting_has_no_masked_store(tmp_path):
    assert on_avx2(INSERT, tmp_path) == ["32", "True", "0"]


def test_rows_mask_only_their_last_vector(tmp_path):
    assert on_avx2(ROWS, tmp_path) == ["32", *["True"] * 4]
