"""Lecture 00: forward through a formula, and back."""

from coursekit.drawing import Drawing
from coursekit.drawing.style import BIG, INK, QUIET

Y, LOW = 190, 430
OPS = {"p": (300, "*"), "s": (580, "+"), "y": (860, "*")}
INPUTS = {"b": 300, "c": 580, "d": 860}
VALUES = {"a": 2, "b": 3, "c": -1, "d": 4, "p": 6, "s": 5, "y": 20}
SLOPES = {"y": 1, "s": 4, "d": 5, "p": 4, "c": 4, "a": 12, "b": 8}


def backward_graph():
    """y = (a b + c) d with the numbers of the lecture."""
    d = Drawing(
        "backward_graph",
        "Forward, from left to right, a times b plus c times d is computed: 6, then 5, then 20. "
        "Backward, from right to left, each step multiplies the slope that arrives by its own "
        "slope, and so every input gets its gradient in one sweep.",
    )
    ops = {name: d.op(x, Y, sign, f"op {name}", 48) for name, (x, sign) in OPS.items()}
    leaves = {"a": d.node(50, Y, "$a$", radius=30, part="a", size=BIG)}
    leaves |= {
        name: d.node(x, LOW, f"${name}$", radius=30, part=name, size=BIG)
        for name, x in INPUTS.items()
    }
    end = d.node(1104, Y, "$y$", radius=30, part="y", size=BIG)
    ways = {
        "a": (leaves["a"], ops["p"]),
        "p": (ops["p"], ops["s"]),
        "s": (ops["s"], ops["y"]),
        "y": (ops["y"], end),
    }
    for name, (one, other) in ways.items():
        d.arrow((one.right, Y - 10), (other.left, Y - 10), part=f"forward/{name}")
    for name, x in INPUTS.items():
        d.arrow((x - 10, LOW - 30), (x - 10, Y + 24), part=f"forward/{name}")
    for name, value in VALUES.items():
        with d.step(0 if name in "abcd" else 1):
            _value(d, name, value, ways)
    slopes = ("y", "sd", "pc", "ab")
    words = (
        "start with 1",
        "product: times the other factor",
        "sum: passed on as it is",
        "product again",
    )
    for k, (names, rule) in enumerate(zip(slopes, words, strict=True)):
        with d.step(k + 2):
            for name in names:
                _slope(d, name, ways)
            x = (1040, 860, 580, 300)[k]
            d.note(x, Y - 74, rule, part=f"backward/{names[0]}", color=QUIET)
    d.text(576, 526, r"$y = (a\,b + c)\,d$", 28, part="formula")
    with d.step(2), d.part("formula"):
        d.text(2, 526, r"$\bar v$: how far $y$ moves for each bit of $v$", 20, anchor="start")
    return d


def _value(d, name, value, ways):
    if name in ways:
        one, other = ways[name]
        d.text((one.right + other.left) / 2, Y - 32, _minus(value), BIG, part=f"forward/{name}")
    else:
        d.text(INPUTS[name] - 26, 330, _minus(value), BIG, anchor="end", part=f"forward/{name}")


def _minus(value):
    return f"${value}$" if value < 0 else f"{value}"


def _slope(d, name, ways):
    label = rf"$\bar {name} = {SLOPES[name]}$"
    part = f"backward/{name}"
    if name in ways:
        one, other = ways[name]
        d.arrow((other.left, Y + 10), (one.right, Y + 10), color=INK, kind="control", part=part)
        d.text((one.right + other.left) / 2, Y + 40, label, BIG, part=part)
    else:
        x = INPUTS[name] + 10
        d.arrow((x, Y + 24), (x, LOW - 30), color=INK, kind="control", part=part)
        d.text(x + 16, 330, label, BIG, anchor="start", part=part)
