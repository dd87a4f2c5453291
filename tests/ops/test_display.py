"""How a Tensor shows itself."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import nn


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: ta.tensor([[1.0, 2.0]]), "tensor([[1., 2.]])"),
        (
            lambda: ta.tensor([[1.0, 2.0]], requires_grad=True),
            "tensor([[1., 2.]], requires_grad=True)",
        ),
        (lambda: np.tanh(ta.tensor(0.5, requires_grad=True)), "tensor(0.4621, op=tanh)"),
        (lambda: np.tanh(ta.tensor(0.5)), "tensor(0.4621)"),
        (lambda: ta.tensor([1.0, 2.0], requires_grad=True)[0], "tensor(1., op=getitem)"),
        (lambda: ta.tensor(np.ones(2)), "tensor([1., 1.], dtype=float64)"),
        (lambda: ta.tensor(np.array([1, 2])), f"tensor([1, 2], dtype={np.int_.__name__})"),
        (lambda: ta.tensor([1.0, -1.0]) > 0, "tensor([ True, False], dtype=bool)"),
        (lambda: ta.tensor(np.zeros((0, 3), np.float32)), "tensor([], shape=(0, 3))"),
        (lambda: ta.tensor([]), "tensor([])"),
        (
            lambda: ta.tensor(np.arange(5000)),
            f"tensor([   0,    1,    2, ..., 4997, 4998, 4999], dtype={np.int_.__name__})",
        ),
        (lambda: nn.Parameter([1.0]), "Parameter([1.], requires_grad=True)"),
        (lambda: ta.tensor([1 / 3]), "tensor([0.3333])"),
    ],
)
def test_repr(make, text):
    assert repr(make()) == str(make()) == text


def test_rows_stand_under_each_other():
    assert repr(ta.tensor([[1.0], [-2.0]])) == "tensor([[ 1.],\n        [-2.]])"


def test_a_result_names_its_operation_after_backward_too():
    x = ta.tensor(3.0, requires_grad=True)
    y = x * x
    y.backward()
    assert repr(y) == "tensor(9., op=multiply)"
    assert "op multiply" in y._repr_html_()


def test_print_options_of_numpy_are_followed():
    with np.printoptions(precision=2):
        assert repr(ta.tensor([1 / 3])) == "tensor([0.33])"
    with np.printoptions(threshold=3, edgeitems=1):
        assert repr(ta.tensor([1.0, 2.0, 3.0, 4.0])) == "tensor([1., ..., 4.])"


def test_format():
    loss = ta.tensor([0.12345], requires_grad=True).sum()
    assert f"{loss:.3f}" == "0.123"
    assert f"{loss:8.3f}" == "   0.123"
    assert f"{loss}" == "tensor(0.1235, op=sum)"
    assert f"{ta.tensor([1.0, 2.5]):.1f}" == "[1.0, 2.5]"
    assert f"{ta.tensor(np.array(3)):d}" == "3"


# ---------------------------------------------------------------- notebook


class Balanced(HTMLParser):
    """Checks that every tag is closed in its order, and counts the cells of tables."""

    def __init__(self):
        super().__init__()
        self.open, self.cells, self.pictured, self.text, self.titles = [], 0, 0, [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.cells += tag == "td"
        self.pictured += tag == "path"
        assert not {"src", "href", "onclick"} & {name for name, _ in attrs}

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        (self.titles if self.open and self.open[-1] == "title" else self.text).append(data)


def read(x):
    page = Balanced()
    page.feed(x._repr_html_())
    page.close()
    assert page.open == []
    return page


@pytest.mark.parametrize(
    ("shape", "cells"),
    [
        ((), 0), ((0,), 0), ((0, 3), 0), ((3, 0), 0), ((5,), 5), ((40,), 13), ((200,), 13),
        ((2, 3), 6), ((8, 12), 96), ((2, 2, 3), 12), ((2, 0, 3), 0), ((2, 3, 2, 2), 24),
    ],
)  # fmt: skip
def test_html_shows_the_numbers_of_small_arrays(shape, cells):
    for dtype in (np.float32, np.int64, bool, np.complex64):
        page = read(ta.tensor(np.ones(shape, dtype)))
        assert page.cells == cells
        assert str(list(shape)) in "".join(page.text)


@pytest.mark.parametrize(
    ("shape", "cells"),
    [
        ((9, 13), 117),
        ((100, 3), 60),
        ((3, 200), 84),
        ((500, 700), 560),
        ((2, 9, 13), 234),
        ((50, 4, 9, 13), 468),
        ((1000, 1), 20),
    ],
)
def test_html_of_large_arrays_is_a_picture_that_stays_small(shape, cells):
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    for array in (x, (10 * x).astype(int), x > 0):
        page = read(ta.tensor(array))
        assert page.pictured == cells
        assert len(ta.tensor(array)._repr_html_()) < 70_000


def test_a_picture_says_each_value_under_the_mouse():
    x = np.random.default_rng(0).normal(size=(2, 9, 13)).astype(np.float32)
    page = read(ta.tensor(x))
    for i in range(2):
        for r, c in np.ndindex(9, 13):
            said = f"[{r}, {c}] = {x[i, r, c]:.3f}".replace("-", "−")
            assert page.titles[i * 117 + r * 13 + c] == said
    assert "[1, :, :]" in "".join(page.text)
    blocks = np.arange(80 * 56.0).reshape(80, 56)
    assert read(ta.tensor(blocks)).titles[29] == "[4:8, 2:4] from 226.000 to 395.000"


def test_one_outlier_does_not_take_the_colours_of_all_others():
    x = np.random.default_rng(0).normal(size=(10, 13))
    plain = ta.tensor(x)._repr_html_()
    x[3, 4] = 1e6
    with_outlier = ta.tensor(x)._repr_html_()
    shares = [
        [float(s) for s in re.findall(r"rgba\([\d,]+,(0\.\d+)\)", h)] for h in (plain, with_outlier)
    ]
    assert np.mean(shares[1]) > 0.8 * np.mean(shares[0])
    assert "1.00e+06" in with_outlier


def test_nan_and_infinity_have_a_sign_of_their_own():
    x = np.zeros((20, 13))
    x[1, 2], x[3, 4], x[5, 6] = np.nan, np.inf, -np.inf
    text = "".join(read(ta.tensor(x)).text)
    assert text.count("×") == 1 and text.count("−∞") == 1 and text.count("∞") == 2
    read(ta.tensor(np.full((200, 200), np.nan)))


def test_html_names_operation_and_gradient():
    x = ta.tensor([3.0, 4.0], requires_grad=True)
    assert "op tanh" in "".join(read(np.tanh(x)).text)
    (x * x).sum().backward()
    assert "gradient of length 10" in "".join(read(x).text)
    (x * x).sum().backward(create_graph=True)  # then the gradient is a Tensor
    assert "gradient of length 20" in "".join(read(x).text)


def test_html_of_a_lambda_is_escaped():
    odd = ta.primitive(lambda x: np.sin(x))
    assert "op <lambda>" in "".join(read(odd(ta.tensor([1.0, 2.0], requires_grad=True))).text)


def test_html_survives_what_is_not_finite():
    text = "".join(read(ta.tensor([np.nan, np.inf, -np.inf, 1e-30, 1e30, -0.5])).text)
    for part in ("nan", "inf", "−inf", "1.00e−30", "1.00e+30", "−0.500"):
        assert part in text
    read(ta.tensor(np.full((20, 20), np.nan)))
    read(ta.tensor(np.full((20, 20), np.inf)))


def test_colours_tell_the_sign():
    html = ta.tensor([-2.0, 0.0, 2.0])._repr_html_()
    assert "rgba(213,94,0,0.60)" in html
    assert "rgba(0,114,178,0.60)" in html
    assert ",0.00)" in html
