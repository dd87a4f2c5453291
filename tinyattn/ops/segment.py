"""Reductions over segments as operations, each over a kernel of tinyattn/kernels/fast/segment.py.

The same in array algebra, which has second derivatives too, is in tinyattn/graph/segment.py.
"""

from tinyattn.ops.fused import fused


def _reduction(f, kind):
    """The operation f(values, ids, n) over the kernel `reduce`; kind is a constant's name there."""

    def forward(values, ids, n):
        from tinyattn.kernels.fast import segment as kernel

        return kernel.reduce(values, ids, n, getattr(kernel, kind))

    def rule(g, y, saved, wanted, values, ids, n):
        from tinyattn.kernels.fast import segment as kernel

        return kernel.reduce_backward(g, y, saved, values, getattr(kernel, kind)), None, None

    forward.__name__, forward.__doc__ = f, f"y_s = {kind.lower()} of the rows of segment s."
    made = fused()(forward)
    made.defvjp(rule)
    return made


segment_max = _reduction("segment_max", "MAX")
segment_min = _reduction("segment_min", "MIN")
segment_prod = _reduction("segment_prod", "PROD")


@fused()
def segment_softmax(values, ids, n):
    """a_e = exp(values_e) / Σ exp(values_e') over the rows of its segment."""
    from tinyattn.kernels.fast import segment as kernel

    return kernel.softmax(values, ids, n)


@segment_softmax.defvjp
def _segment_softmax_rule(g, y, saved, wanted, values, ids, n):
    from tinyattn.kernels.fast import segment as kernel

    return kernel.softmax_backward(g, y, saved), None, None
