"""Lecture 00: the map of the course, and a formula forward and back."""

from coursekit.drawing import Drawing
from coursekit.drawing.paths import rims
from coursekit.drawing.style import BIG, INK, OBJECTS, QUIET, SLATE, SMALL, TEXT, THINGS

Y, LOW = 190, 430
OPS = {"p": (300, "*"), "s": (580, "+"), "y": (860, "*")}
INPUTS = {"b": 300, "c": 580, "d": 860}
VALUES = {"a": 2, "b": 3, "c": -1, "d": 4, "p": 6, "s": 5, "y": 20}
SLOPES = {"y": 1, "s": 4, "d": 5, "p": 4, "c": 4, "a": 12, "b": 8}


ROAD = {  # the colour of each road, and of its words
    "sequences": (THINGS["query"][0], THINGS["query"][1]),
    "images": (THINGS["key"][0], THINGS["key"][1]),
    "sets": OBJECTS[1][:2],
    "graphs": (THINGS["value"][0], THINGS["value"][1]),
    "engine": (SLATE, SLATE),
}
STATIONS = (  # x, y, road, lines of the name, and whether they are above
    (66, 280, "engine", ("autograd", "engine"), False),
    (196, 160, "sequences", ("RNN, LSTM,", "GRU"), True),
    (336, 160, "sequences", ("attention", "in RNNs"), True),
    (266, 400, "images", ("from convolution", "to attention"), False),
    (476, 280, "sets", ("self-", "attention"), False),
    (656, 280, "sets", ("sets",), False),
    (616, 120, "sequences", ("encoder-", "decoder"), True),
    (756, 120, "sequences", ("GPT, BERT",), True),
    (906, 120, "sequences", ("transformers", "in science"), True),
    (616, 440, "graphs", ("message", "passing"), False),
    (746, 440, "graphs", ("point", "clouds"), False),
    (866, 440, "graphs", ("GravNet",), False),
    (996, 440, "graphs", ("object", "condensation"), False),
    (1036, 280, "engine", ("kernels", "and cost"), False),
)
ROUTES = {
    "sequences": ((0, 1), (1, 2), (2, 4), (4, 6), (6, 7), (7, 8), (8, 13)),
    "images": ((0, 3), (3, 4)),
    "sets": ((4, 5), (5, 13)),
    "graphs": ((4, 9), (9, 10), (10, 11), (11, 12), (12, 13)),
}
TOPICS = (
    (266, 198, "sequences", "sequences"),
    (266, 356, "images", "images"),
    (756, 162, "sequences", "text"),
    (806, 394, "graphs", "graphs and points"),
)


def course_map():
    """The fourteen lectures, and the roads between them."""
    d = Drawing(
        "course_map",
        "The map shows the fourteen lectures. Two roads lead from lecture 00 to self-attention in "
        "lecture 04, one through recurrent networks and one through convolution. Three roads lead "
        "on from there, through text, sets and graphs. All three end at lecture 13, which is about "
        "kernels and cost.",
    )
    nodes = [
        d.node(x, y, f"{i:02d}", radius=25, part=f"lecture {i:02d}", size=TEXT)
        for i, (x, y, *_) in enumerate(STATIONS)
    ]
    for road, stops in ROUTES.items():
        for a, b in stops:
            ends = rims(nodes[a], nodes[b])
            d.arrow(*ends, color=ROAD[road][0], width=5, part=f"road/{road}")
    *others, (x, y, _, lines, _) = STATIONS
    for k, words in enumerate(lines):  # to the right: roads arrive from all other sides
        d.text(x + 34, y - 11 + 22 * k, words, SMALL, anchor="start", part="name")
    for x, y, _, lines, above in others:
        first = y - 40 - 22 * (len(lines) - 1) if above else y + 46
        for k, words in enumerate(lines):
            d.text(x, first + 22 * k, words, SMALL, part="name")
    for x, y, road, words in TOPICS:
        d.text(x, y, words, TEXT, ROAD[road][1], weight=600, part=f"road/{road}")
    return d


def backward_graph():
    """y = (a b + c) d with the numbers of the lecture."""
    d = Drawing(
        "backward_graph",
        "Forward, from left to right, y = (a b + c) d is computed: the product is 6, the sum is 5, "
        "and the output is 20. Backward, from right to left, each operation multiplies the "
        "gradient that it receives by its own derivatives. So one pass computes the gradient with "
        "respect to every input.",
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
        "multiply by the other factor",
        "pass on unchanged",
        "multiply again",
    )
    for k, (names, rule) in enumerate(zip(slopes, words, strict=True)):
        with d.step(k + 2):
            for name in names:
                _slope(d, name, ways)
            x = (1040, 860, 580, 300)[k]
            d.note(x, Y - 74, rule, part=f"backward/{names[0]}", color=QUIET)
    d.text(576, 526, r"$y = (a\,b + c)\,d$", 28, part="formula")
    with d.step(2), d.part("formula"):
        d.text(2, 526, r"$\bar v$: derivative of $y$ with respect to $v$", 20, anchor="start")
        d.text(1150, 526, r"$p = a\,b$ and $s = p + c$", 20, anchor="end")
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
