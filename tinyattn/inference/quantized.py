"""Layers for generation and not for training, with weights that stay in blocks of a few bits.

The weights have no gradient and cannot be trained, but the inputs have a gradient, as in every
layer.
"""

import math

from tinyattn.engine.autograd import from_numpy
from tinyattn.functional.linear import check_indices
from tinyattn.nn import Buffer, Module
from tinyattn.ops.quantized import QuantizedMatrix, quantized_linear


class _InBlocks(Module):
    """A layer that keeps the `QuantizedMatrix` `blocks` as a buffer of bytes."""

    def __init__(self, blocks):
        if not isinstance(blocks, QuantizedMatrix):
            raise TypeError(
                f"{type(self).__name__}: blocks must be a QuantizedMatrix, such as a matrix in "
                f"gguf.mapped(path).tensors, got {type(blocks).__name__}"
            )
        self.kind, self.weight = blocks.kind, Buffer(0)
        self.weight.data = blocks.raw  # the bytes of a file need not be copied

    @property
    def blocks(self):
        """Return the weight as a `QuantizedMatrix`."""
        return QuantizedMatrix(self.kind, self.weight.data)

    def extra_repr(self):
        return ", ".join([*map(str, self.blocks.shape[::-1]), self.kind.__name__])


class QuantizedLinear(_InBlocks):
    """A linear layer y = x Wᵀ without a bias and with a quantized weight W [out, in].

    Args:
        blocks   the weight, an `ops.quantized.QuantizedMatrix` [out, in]

    Raises:
        TypeError: blocks is not a QuantizedMatrix
    """

    def forward(self, x, impl="auto"):
        """Apply the layer. Shape: x [..., in] → [..., out].

        Args:
            x      the input
            impl   "sums" (loops), "numpy" (unpacks W first), "kernel" (compiled) or "auto" (the
                   faster of "numpy" and "kernel")

        Raises:
            ValueError: the last axis of x does not have `in` features, or impl is unknown
            TypeError: x is complex, or impl does not support its dtype
        """
        return quantized_linear(x, self.blocks, impl)


class QuantizedEmbedding(_InBlocks):
    """An embedding y = W[ids] with a quantized weight W [rows, features].

    Args:
        blocks   the table, an `ops.quantized.QuantizedMatrix` [rows, features]

    Raises:
        TypeError: blocks is not a QuantizedMatrix
    """

    def forward(self, ids):
        """Look up and unpack the vectors. Shape: ids [...] → [..., features], float32.

        Args:
            ids   indices of rows, whole numbers of any shape

        Raises:
            TypeError: the ids are not whole numbers
            IndexError: an id is negative, or not below the number of rows
            ValueError: the ids are a list of rows of different lengths
        """
        blocks = self.blocks
        ids = check_indices("QuantizedEmbedding", ids, blocks.shape[0])
        return from_numpy(blocks.unpack(ids))


def numbers_in_blocks(module):
    """Return the number of elements of all quantized matrices in `module`, each counted once."""
    matrices = {
        m.weight.data.ctypes.data: math.prod(m.blocks.shape)
        for m in module.modules()
        if isinstance(m, _InBlocks)
    }
    return sum(matrices.values())
