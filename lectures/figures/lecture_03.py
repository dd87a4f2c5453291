"""Lecture 03: the filter and its neighbour table, what a stack sees, and all index sums."""

from coursekit.drawing import Drawing
from coursekit.drawing.paths import paint, rims
from coursekit.drawing.style import BIG, EDGE, INK, QUIET, THINGS

PICTURE = ("11100", "01110", "00111", "00110", "01100")
FILTER = ("101", "010", "101")
FOUND = ("434", "243", "234")
CELL = 52


def sliding_filter():
    """Slides K03 and K12, with the numbers of K12."""
    d = Drawing(
        "sliding_filter",
        "A filter of three by three weights is placed on the image. The sum of the products of its "
        "weights and the pixels below them is one output. For the next output, the filter moves by "
        "one pixel and keeps its weights.",
    )
    _grid(d, 2, 96, PICTURE, "image", "$x$")
    _grid(d, 404, 148, FILTER, "filter", r"$\omega$")
    _grid(d, 712, 148, None, "output", "$y$")
    d.text(340, 226, "$*$", 34, part="signs")
    d.text(636, 226, "$=$", 34, part="signs")
    with d.step(1):
        _window(d, 0, "solid")
    with d.step(2):
        _window(d, 1, "dashed")
    with d.step(3), d.part("output"):
        for j in range(2, 9):
            _number(d, 712, 148, j // 3, j % 3, FOUND[j // 3][j % 3])
        d.note(790, 336, "the same weights at all nine positions")
    with d.step(4), d.part("table"):
        d.text(930, 120, "neighbour table", anchor="start", weight=600)
        rows = ("$I(0, j) = 0, 1, 2, 5, 6, ...$", "$I(1, j) = 1, 2, 3, 6, 7, ...$")
        for k, row in enumerate(rows):
            d.text(930, 168 + 40 * k, row, 17, anchor="start")
        d.note(930, 250, "$I(i, j)$: the pixel under", "start")
        d.note(930, 274, "weight $j$ for output $i$", "start")
    d.text(
        576, 480, r"$y_i = \theta\,(\,\sum_j\, \omega_j\, x_{I(i, j)} - T\,)$", 28, part="formula"
    )
    return d


def _grid(d, left, top, numbers, part, letter):
    size = 3 if numbers is None else len(numbers)
    with d.part(part):
        d.text(left + size * CELL / 2, top - 26, letter, BIG)
        m = d.matrix(left + size * CELL / 2, top + size * CELL / 2, size, size, CELL, "data")
        data = "".join(f"M{left + k * CELL} {top}v{m.height:g}" for k in range(1, size))
        thin = paint("none", THINGS["data"][0], 0.7)
        d.shape("grid", None, f'<path d="{data}" {thin} stroke-opacity="0.55"/>')
        for r in range(size if numbers else 0):
            for c in range(size):
                _number(d, left, top, r, c, numbers[r][c])


def _number(d, left, top, row, column, number):
    d.text(left + (column + 0.5) * CELL, top + (row + 0.5) * CELL, number, BIG)


def _window(d, j, style):
    """The filter's place on the picture for output j, and that output."""
    with d.part(f"place {j}"):
        dash = ' stroke-dasharray="9 6"' if style == "dashed" else ""
        for left, top, size in ((2 + j * CELL, 96, 3), (712 + j * CELL, 148, 1)):
            form = f'<rect x="{left}" y="{top}" width="{size * CELL}" height="{size * CELL}" '
            d.shape("window", None, form + paint("none", INK, 4.5) + dash + "/>")
        _number(d, 712, 148, 0, j, FOUND[0][j])


def receptive_field():
    """Slide K10."""
    d = Drawing(
        "receptive_field",
        "One output depends on three positions of the layer below, which depend on five positions "
        "of the layer below them, and so on. Each layer with filters of width three adds two "
        "positions, one on either side.",
    )
    columns, gap = 11, 76
    xs = [150 + gap * k for k in range(columns)]
    ys = [500 - 112 * layer for layer in range(5)]
    nodes = {}
    for layer, y in enumerate(ys):
        name = "input" if layer == 0 else f"layer {layer}"
        d.text(2, y, name, anchor="start", part=name)
        for k, x in enumerate(xs):
            top = layer == 4 and k == 5
            kind = "picked" if top else "node"
            nodes[layer, k] = d.node(x, y, kind=kind, radius=16, part=name)
    for step in range(1, 5):
        layer = 4 - step
        with d.step(step):
            name = "input" if layer == 0 else f"layer {layer}"
            seen = [k for k in range(columns) if abs(k - 5) <= step]
            for k in seen:
                nodes[layer, k] = d.node(
                    xs[k],
                    ys[layer],
                    kind="picked" if layer else "node",
                    radius=16,
                    thing=None if layer else "state",
                    part=f"{name}/seen",
                )
            for k in range(columns):
                if abs(k - 5) < step:
                    for o in (-1, 0, 1):
                        ends = rims(nodes[layer + 1, k], nodes[layer, k + o])
                        d.arrow(*ends, head=False, color=EDGE, width=2, part=f"{name}/seen")
            d.text(
                980,
                ys[layer],
                f"{2 * step + 1} {'inputs' if layer == 0 else 'positions'}",
                anchor="start",
                part=f"{name}/seen",
            )
    d.text(980, 52, "1 output", anchor="start", part="formula")
    d.text(
        576,
        536,
        r"receptive field: $R = 1 + L\,(k - 1)$ inputs, for $L$ layers with filters of width $k$",
        20,
        part="formula",
    )
    return d


def filter_or_attention():
    """Slides K12, K13 and K18: the weight of a place, or the weight of a pair."""
    d = Drawing(
        "filter_or_attention",
        "In a convolution, an output is a weighted sum of its neighbours, and each weight depends "
        "only on the position. In attention, an output is a weighted sum of all inputs, and each "
        "weight is computed from two words, so the weights change from sentence to sentence.",
    )
    words = ("the", "bear", "said", "it", "sees")
    offsets = (0, 0, 2.4, 7, 4)
    pairs = (2, 8, 1.5, 3, 5)
    for k, title in enumerate(
        ("convolution: weights of positions", "attention: weights of pairs of words")
    ):
        left = 592 * k
        with d.step(k), d.part(("filter", "attention")[k]):
            d.frame(left + 2, 2, left + 558, 558, part="frame")
            d.heading(left + 20, 34, k + 1, title)
            top = d.node(left + 280 + 96, 130, "$i$", "picked", 24)
            d.text(left + 430, 130, "$y_i$", BIG, THINGS["state"][1])
            for i, word in enumerate(words):
                x = left + 88 + 96 * i
                node = d.node(x, 320, f"$x_{i + 1}$", radius=24, size=20)
                d.text(x, 370, word)
                width = (offsets, pairs)[k][i]
                if width:
                    d.arrow(*rims(node, top, 3), thing=("data", "value")[k], width=width)
            d.text(
                left + 280,
                452,
                (
                    r"$y_i = \sum_{j = -1}^{1} \omega_j\, x_{i + j}$",
                    r"$y_i = \sum_{j = 1}^{N} a(x_i, x_j)\, v_j$",
                )[k],
                24,
            )
            d.note(
                left + 280,
                524,
                ("the same three weights in every sentence", "different weights in every sentence")[
                    k
                ],
            )
    return d


def index_sums():
    """Slides K16 to K18, with all indices."""
    d = Drawing(
        "index_sums",
        "The inputs are multiplied by three matrices, which gives keys, queries and values. Each "
        "score is a sum over the features of a query and a key. A softmax over the senders j turns "
        "the scores into weights, and the output is the sum over j of the values times these "
        "weights.",
    )
    rows = (
        ("key", 90, r"$\omega$", "K", "j", r"\beta", r"\alpha"),
        ("query", 250, r"$\tilde\omega$", "Q", "i", r"\gamma", r"\alpha"),
        ("value", 450, r"$\hat\omega$", "V", "j", r"\beta", r"\alpha"),
    )
    out = {}
    for role, y, weight, letter, row, column, feature in rows:
        with d.part(role):
            x = d.matrix(70, y, 5, 4, 18, "state", "$x$")
            w = d.box("linear", 218, y, 80, 72, weight, size=26)
            m = d.matrix(376, y, 5, 4, 18, role, f"${letter.lower()}$")
            d.arrow(x.e, w.w, thing="state")
            d.arrow(w.e, m.w, thing=role)
            _indices(d, x, row, column)
            _indices(d, m, row, feature)
            out[role] = m
    with d.step(1), d.part("scores"):
        dot = d.box("activation", 520, 170, 92, 46, r"$\Sigma_\alpha$", size=22)
        d.arrow(out["key"].e, (520, 90), dot.n, thing="key")
        d.arrow(out["query"].e, (520, 250), dot.s, thing="query")
        d.note(520, 300, r"sum over the features $\alpha$")
    with d.step(2), d.part("weights"):
        soft = d.box("softmax", 690, 170, 132, 46, r"$\sigma_j\,(\,\cdot\, / \sqrt{d_k})$", size=18)
        d.arrow(dot.e, soft.w)
        a = d.matrix(858, 170, 5, 5, 18, "data", "$a$")
        d.arrow(soft.e, a.w)
        _indices(d, a, "i", "j")
        d.note(858, 244, "rows sum to 1")
    with d.step(3), d.part("sum"):
        total = d.box("activation", 858, 450, 92, 46, r"$\Sigma_j$", size=22)
        d.arrow((858, 262), total.n)
        d.arrow(out["value"].e, total.w, thing="value")
        y = d.matrix(1080, 450, 5, 4, 18, "state", "$y$")
        d.arrow(total.e, y.w, thing="state")
        _indices(d, y, "i", r"\alpha")
        d.note(858, 500, "sum over the senders $j$")
    d.note(1150, 40, "$i$: receiver", "end", color=QUIET, part="letters")
    d.note(1150, 68, "$j$: sender", "end", color=QUIET, part="letters")
    return d


def _indices(d, m, row, column):
    d.text(m.left - 12, m.top + 10, f"${row}$", 18, QUIET)
    d.text(m.right - 10, m.top - 14, f"${column}$", 18, QUIET)
