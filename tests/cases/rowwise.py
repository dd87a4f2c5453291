"""Gradient cases of the row-wise kernels, which small inputs would not reach by themselves."""

import numpy as np

import tinyattn.functional as F
from tests.cases.ops import case, normal
from tinyattn.engine.convert import to_array
from tinyattn.ops import attention, norms
from tinyattn.ops.activations import gelu
from tinyattn.ops.losses import cross_entropy
from tinyattn.ops.matmul import linear
from tinyattn.ops.softmax import log_softmax, softmax

IDS = np.array([2, 0, 4, 2])

for shape in ((3, 5), (2, 1, 17), (4, 1)):
    case(softmax, normal(*shape), impl="kernel")
    case(log_softmax, normal(*shape), impl="kernel")
case(cross_entropy, normal(4, 5), IDS, impl="kernel")
for note, centred in (("centred", True), ("not centred", False)):

    def norm(x, weight=None, bias=None, centred=centred):
        return norms.norm(x, weight, bias, 1e-5, centred, impl="kernel")

    case(norms.norm, normal(4, 5), normal(5), normal(5), f=norm, note=note)
    case(norms.norm, normal(2, 2, 17), normal(17), f=norm, note=f"{note}, no bias")
    case(norms.norm, normal(2, 7), f=norm, note=f"{note}, alone")
for note, own in (("in training", True), ("in evaluation", False)):

    def batch_norm(x, weight=None, bias=None, own=own):
        statistics = norms.statistics(to_array(x)) if own else (np.zeros(5), np.full(5, 2.0))
        return norms.batch_norm(x, weight, bias, *statistics, 1e-5, own, impl="kernel")

    case(norms.batch_norm, normal(4, 5), normal(5), normal(5), f=batch_norm, note=note)
    case(norms.batch_norm, normal(7, 5), normal(5), f=batch_norm, note=f"{note}, no bias")
    case(norms.batch_norm, normal(3, 5), f=batch_norm, note=f"{note}, alone")
for tanh in (False, True):
    case(gelu, normal(3, 7), tanh, impl="kernel")

case(linear, normal(4, 3), normal(5, 3), normal(5))
case(linear, normal(2, 1, 3, 4), normal(5, 4), normal(5), note="many axes")
case(linear, normal(2, 3, 4), normal(1, 4), note="no bias")
case(linear, normal(4), normal(5, 4), normal(5), note="a vector")

SEEN = np.array([[True, False, True], [True, True, False], [False, False, False]])
case(F.packed_self_attention, normal(2, 3, 12), 2)
case(attention.packed, normal(2, 2, 3, 2), 1, 2)
case(attention.split_heads, normal(2, 3, 4), 2)
case(
    F.packed_self_attention,
    normal(3, 12),
    2,
    SEEN,
    normal(2, 3, 3),
    True,
    note="mask, bias, causal",
)
for note, bias in (("alone", ()), ("bias", (normal(1, 3, 3),))):

    def heads(x, bias=None):
        return attention.packed_self_attention(x, SEEN, bias, True, 2, impl="kernel")

    case(attention.packed_self_attention, normal(2, 3, 12), *bias, f=heads, note=note, order=1)
