"""The cases of `tests/cases/ops.py` for the compiled convolution, at sizes it never picks."""

from tests.cases.ops import apart, case, normal
from tinyattn import functional as F
from tinyattn.ops.conv import convolution

__all__ = []


def kernel(what, x, w, bias, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1):
    n = x.ndim - 2
    options = [pair[-n:] for pair in (stride, padding, padding, dilation)]
    case(
        what,
        x,
        w,
        bias,
        order=2,
        note=f"kernel {stride} {padding} {dilation} {groups}",
        f=lambda x, w, b: convolution(x, w, b, *options, groups, impl="kernel"),
    )


kernel(F.conv1d, normal(2, 3, 5), normal(4, 3, 2), normal(4))
kernel(F.conv1d, normal(1, 4, 7), normal(2, 2, 3), normal(2), (1, 2), (0, 1), (1, 2), 2)
kernel(F.conv2d, normal(2, 2, 3, 4), normal(2, 2, 2, 2), normal(2))
kernel(F.conv2d, normal(1, 2, 5, 4), normal(2, 1, 3, 2), normal(2), (2, 1), (1, 0), (1, 2), 2)
kernel(F.conv2d, normal(1, 1, 5, 6), normal(1, 1, 2, 2), normal(1), (1, 3), (1, 2), (2, 1))

# pooling: the index sums over the neighbour table are only differentiated once
for impl, order in (("sums", 1), ("kernel", 2)):
    for pool in (F.max_pool1d, F.avg_pool1d):
        case(pool, apart(2, 2, 5), 2, impl=impl, order=order)
        case(pool, apart(1, 2, 5), 3, stride=1, padding=1, impl=impl, order=order)
    for pool in (F.max_pool2d, F.avg_pool2d):
        options = {"stride": (2, 1), "padding": (1, 0), "impl": impl}
        case(pool, apart(1, 2, 5, 4), (2, 3), **options, order=order)
