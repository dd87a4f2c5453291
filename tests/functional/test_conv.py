"""Convolution and pooling: equal to PyTorch's over strides, paddings, dilations and groups."""

import itertools

import numpy as np
import pytest

import tinyattn as ta
import tinyattn.functional as F
from tests.parity import both, modules, torch
from tinyattn import check, nn
from tinyattn.functional import neighbour_table
from tinyattn.ops.conv import fold, unfold

TF = torch.nn.functional
rng = np.random.default_rng(0)
CASES = [
    c for c in itertools.product([1, 2, 3], [0, 1, 2], [1, 2], [1, 2]) if c[0] != 3 or c[2] == 1
]  # stride, padding, dilation, groups


def normal(*shape):
    return rng.normal(size=shape)


@pytest.mark.parametrize(("stride", "padding", "dilation", "groups"), CASES)
def test_convolution(stride, padding, dilation, groups):
    options = (stride, padding, dilation, groups)
    both(
        lambda *a: F.conv1d(*a, *options),
        lambda *a: TF.conv1d(*a, *options),
        normal(2, 4, 9),
        normal(6, 4 // groups, 3),
        normal(6),
    )
    both(
        lambda *a: F.conv2d(*a, None, *options),
        lambda *a: TF.conv2d(*a, None, *options),
        normal(2, 4, 7, 8),
        normal(2, 4 // groups, 3, 2),
    )


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
def test_options_of_two_axes_and_names():
    x, w = normal(2, 3, 6, 7), normal(4, 3, 2, 3)
    both(
        lambda x, w: F.conv2d(x, w, stride=(2, 1), padding=(0, 2), dilation=(1, 2)),
        lambda x, w: TF.conv2d(x, w, stride=(2, 1), padding=(0, 2), dilation=(1, 2)),
        x,
        w,
    )
    for padding in ("same", "valid"):
        both(
            lambda x, w, p=padding: F.conv2d(x, w, padding=p),
            lambda x, w, p=padding: TF.conv2d(x, w, padding=p),
            x,
            w[:, :, :, :],
        )


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel")
def test_same_padding_of_even_kernels():
    both(
        lambda x, w: F.conv1d(x, w, padding="same", dilation=3),
        lambda x, w: TF.conv1d(x, w, padding="same", dilation=3),
        normal(2, 3, 11),
        normal(4, 3, 4),
    )


def test_without_a_batch_axis():
    both(F.conv1d, TF.conv1d, normal(3, 8), normal(2, 3, 3))
    both(lambda x: F.max_pool2d(x, 2), lambda x: TF.max_pool2d(x, 2), normal(3, 6, 4))


@pytest.mark.parametrize(("stride", "padding", "dilation", "groups"), CASES)
def test_every_implementation_gives_the_same(stride, padding, dilation, groups):
    # the sum of slide K03 over its table, array algebra, kernel: values and gradients
    options = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
    for conv, x, w in [
        (F.conv1d, normal(2, 4, 9), normal(6, 4 // groups, 3)),
        (F.conv2d, normal(2, 4, 7, 8), normal(6, 4 // groups, 3, 2)),
    ]:
        implementations = {
            i: lambda x, w, b, i=i, conv=conv: conv(x, w, b, **options, impl=i)
            for i in ("sums", "numpy", "kernel")
        }
        check.same(implementations, (x, w, normal(6))).expect()


def test_neighbour_table():
    # five positions, kernel 3, padding 1: -1 is nobody
    table = neighbour_table((5,), 3, padding=1)
    assert table.tolist() == [[-1, 0, 1], [0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, -1]]
    # two axes are counted as one: the first 2 × 2 window of a 2 × 3 picture, then the second
    assert neighbour_table((2, 3), 2).tolist() == [[0, 1, 3, 4], [1, 2, 4, 5]]
    assert neighbour_table((6,), 2, stride=2, dilation=2).tolist() == [[0, 2], [2, 4]]
    for options, said in (
        ({"kernel_size": 0}, ">= 1, got"),
        ({"kernel_size": 3, "stride": 0}, ">= 1, got"),
        ({"kernel_size": 3, "padding": -1}, "expected padding >= 0"),
        ({"kernel_size": 9}, r"a window of size \(9,\) does not fit into x of size \(5,\)"),
    ):
        with pytest.raises(ValueError, match=f"neighbour_table: .*{said}"):
            neighbour_table((5,), **options)


def test_awkward_shapes_on_every_implementation():
    for x in (normal(0, 2, 5), normal(2, 2, 12)[:, :, ::2], normal(1, 2, 3)):
        implementations = {
            i: lambda x, w, i=i: F.conv1d(x, w, impl=i) for i in ("sums", "numpy", "kernel")
        }
        check.same(implementations, (x, normal(4, 2, 3))).expect()


def test_layers_take_a_implementation():
    x = ta.tensor(normal(2, 3, 8, 8))
    for make in (
        lambda i: nn.Conv2d(3, 4, 3, rng=0, impl=i).astype(np.float64),
        lambda i: nn.MaxPool2d(2, impl=i),
        lambda i: nn.AvgPool2d(2, impl=i),
    ):
        np.testing.assert_allclose(make("sums")(x).data, make("numpy")(x).data, atol=1e-12)


@pytest.mark.parametrize("impl", ["sums", "numpy", "kernel"])
def test_two_float_types_become_the_wider_one(impl):
    x = ta.tensor(np.ones((1, 1, 5)), requires_grad=True)
    w = ta.tensor(np.ones((1, 1, 3), np.float32), requires_grad=True)
    y = F.conv1d(x, w, impl=impl)
    assert y.dtype == np.float64
    y.sum().backward()
    assert (x.grad.dtype, w.grad.dtype) == (np.float64, np.float32)


def test_half_precision_is_for_numpy_alone():
    x = np.ones((1, 1, 5), np.float16)
    assert F.conv1d(x, x[:, :, :3]).dtype == np.float16
    with pytest.raises(TypeError, match='impl="numpy"'):
        F.conv1d(x, x[:, :, :3], impl="sums")


def test_fold_is_the_transpose_of_unfold():
    # <unfold x, y> = <x, fold y> for every x and y defines the transpose
    x, (stride, dilation) = normal(2, 3, 9, 7), ((2, 1), (1, 2))
    windows = unfold(ta.tensor(x), (3, 2), stride, dilation)
    y = normal(*windows.shape)
    back = fold(ta.tensor(y), (9, 7), stride, dilation)
    np.testing.assert_allclose(np.vdot(windows.data, y), np.vdot(x, back.data), rtol=1e-12)


@pytest.mark.parametrize("widths", [(1, 2), (0, 1, 2, 0), (-1, 1), (1, -2, -1, 0, 2, 2)])
def test_pad(widths):
    both(lambda x: F.pad(x, widths), lambda x: TF.pad(x, widths), normal(3, 4, 5))
    both(
        lambda x: F.pad(x, widths, value=2.5),
        lambda x: TF.pad(x, widths, value=2.5),
        normal(3, 4, 5),
    )


@pytest.mark.parametrize(
    "pair",
    [
        (
            lambda: nn.Conv1d(4, 6, 3, padding=1),
            lambda: torch.nn.Conv1d(4, 6, 3, padding=1),
            (2, 4, 7),
        ),
        (
            lambda: nn.Conv2d(2, 4, (3, 2), stride=2, groups=2, bias=False),
            lambda: torch.nn.Conv2d(2, 4, (3, 2), stride=2, groups=2, bias=False),
            (3, 2, 7, 6),
        ),
    ],
)
def test_layers(pair):
    mine, theirs, shape = pair
    modules(mine(), theirs(), normal(*shape))
