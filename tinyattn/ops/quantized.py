"""Matrices of numbers with few bits, and a product that need not unpack the matrix.

32 neighbouring numbers in a row form a block, which shares a scale. Reading the weights takes most
of the time that a language model needs to generate a token, so with a matrix in blocks of 4 bits it
generates several times as fast as in float32.
"""

import math

import numpy as np

from tinyattn import kernels
from tinyattn.engine.autograd import primitive
from tinyattn.engine.convert import as_float
from tinyattn.kernels import fast
from tinyattn.ops.backends import MATVEC_ROWS, operation
from tinyattn.ops.matmul import gemm


class QuantizedMatrix:
    """A matrix W [R, C] in blocks of 32 numbers, as in a GGUF file.

    Args:
        kind   `Q4_1` or `Q8_0`, the format of a block
        raw    the bytes of the file, [R, C/32, bytes of a block], which are never copied

    Raises:
        TypeError: kind is neither Q4_1 nor Q8_0, or raw is not an array of bytes
        ValueError: the shape of raw does not fit the format
    """

    def __init__(self, kind, raw):
        if kind not in (Q4_1, Q8_0):
            raise TypeError(f"QuantizedMatrix: kind must be the class Q4_1 or Q8_0, got {kind!r}")
        if not isinstance(raw, np.ndarray) or raw.dtype != np.uint8:
            what = raw.dtype if isinstance(raw, np.ndarray) else type(raw).__name__
            raise TypeError(f"QuantizedMatrix: raw must be an array of bytes (uint8), got {what}")
        if raw.ndim != 3 or raw.shape[2] != kind.nbytes:
            raise ValueError(
                f"QuantizedMatrix: {kind.__name__} needs bytes [rows, blocks of a row, "
                f"{kind.nbytes}], got shape {raw.shape}"
            )
        self.kind, self.raw = kind, raw
        self.shape = len(raw), 32 * raw.shape[1]

    def unpack(self, rows=slice(None)):
        """Return the numbers of the given rows (an index, a slice or an array) as float32 [..., C].

        Without an argument, all rows are returned, [R, C].
        """
        raw = self.raw[rows]
        w = self.kind.unpack(raw.reshape(-1, self.kind.nbytes))
        return w.reshape(*raw.shape[:-2], self.shape[1])

    def __repr__(self):
        return f"QuantizedMatrix({self.kind.__name__}, {self.shape}, {self.raw.nbytes:,} bytes)"


class Q4_1:
    """The format w_i = d q_i + m in 20 bytes: d and m as float16, then 16 bytes with two q each.

    Byte i holds the 4 bits of q_i in its lower half, and those of q_(16+i) in its upper half.
    """

    nbytes = 20

    @staticmethod
    def parts(raw):
        """Return the parts of blocks raw [..., 20]: d, m [..., 1] as float32, and bytes [..., 16].

        Each of these bytes contains two numbers q_i.
        """
        return halves(raw[..., :2]), halves(raw[..., 2:4]), raw[..., 4:]

    @staticmethod
    def unpack(raw):
        """Return the numbers of N blocks [N, 20] as float32 [N, 32]."""
        d, m, packed = Q4_1.parts(raw)
        return d * nibbles(packed) + m


class Q8_0:
    """The format w_i = d q_i in 34 bytes: d as float16, then 32 signed bytes q_i."""

    nbytes = 34

    @staticmethod
    def parts(raw):
        """Return the parts of blocks raw [..., 34]: d [..., 1] as float32, and q [..., 32] int8."""
        return halves(raw[..., :2]), np.ascontiguousarray(raw[..., 2:]).view(np.int8)

    @staticmethod
    def unpack(raw):
        """Return the numbers of N blocks [N, 34] as float32 [N, 32]."""
        d, q = Q8_0.parts(raw)
        return d * q


def halves(raw):
    """Return as float32 [..., 1] the float16 number in each pair of bytes of `raw` [..., 2]."""
    return np.ascontiguousarray(raw).view("<f2").astype(np.float32)


def nibbles(raw):
    """Return the lower halves of all bytes [..., n], followed by the upper halves, [..., 2 n]."""
    return np.concatenate([raw & 15, raw >> 4], axis=-1)


# ---------------------------------------------------------------- the product


def quantized_linear(x, blocks, impl="auto"):
    """Return y = x Wᵀ for a quantized W, with the gradient dL/dx = dL/dy W.

    Args:
        x        [..., C]. Whole numbers become float32
        blocks   W, a `QuantizedMatrix` [R, C], which gets no gradient
        impl     "sums" (loops), "numpy" (unpacks W and multiplies), "kernel" (compiled, never
                 unpacks W for a few rows of x), or "auto": "kernel" where it is faster, otherwise
                 "numpy"

    Returns:
        y [..., R]

    Raises:
        TypeError: blocks is not a QuantizedMatrix, x is complex, or impl does not accept the dtype
            of x
        ValueError: x does not have C features, or impl has another value
    """
    if not isinstance(blocks, QuantizedMatrix):
        raise TypeError(
            "quantized_linear: blocks must be a QuantizedMatrix, got an object of type "
            f"{type(blocks).__name__}. For an array, use F.linear"
        )
    x = as_float(x)
    if x.dtype.kind != "f":
        raise TypeError(
            f"quantized_linear: x must be real numbers, got {x.dtype}. Pass x.real and x.imag "
            "separately"
        )
    R, C = blocks.shape
    if not x.shape or x.shape[-1] != C:
        raise ValueError(
            f"quantized_linear: x has shape {x.shape}, but the matrix [{R}, {C}] needs {C} "
            f"features in the last axis"
        )
    n = math.prod(x.shape[:-1])
    y = product(np.reshape(x, (n, C)), blocks, impl=impl)
    return np.reshape(y, (*x.shape[:-1], R))


@operation("quantized_linear", work=lambda x, blocks: len(x) * math.prod(blocks.shape))
@primitive
def product(x, blocks):
    """Return x Wᵀ for rows x [n, C], after unpacking all numbers of `blocks`, which stores W."""
    return x @ blocks.unpack().T.astype(x.dtype, copy=False)


@primitive
def _loops(x, blocks):
    loop = kernels.quantized.q4_1 if blocks.kind is Q4_1 else kernels.quantized.q8_0
    *scales, q = blocks.kind.parts(blocks.raw)
    return loop(np.ascontiguousarray(x), *[s[..., 0].astype(x.dtype) for s in scales], q)


@primitive
def _kernel(x, blocks):
    """Multiply by the matrix with the kernel, which reads the blocks where they are.

    With many rows, unpacking is a small part of the work, and the kernel for large products is
    faster.
    """
    if len(x) <= MATVEC_ROWS:
        return fast.quantized.product(x, blocks.raw)
    return gemm(x, fast.quantized.unpacked(blocks.raw, x.dtype).T)


# the gradient of x needs the transposed matrix, so it is unpacked
for f in (product, _loops, _kernel):
    f.defvjp(lambda g, y, x, blocks: g @ blocks.unpack().astype(x.dtype, copy=False), None)
product.implement("sums", _loops)
product.implement("kernel", _kernel)
