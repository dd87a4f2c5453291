"""Lecture 04: query, key and value, one head, several heads."""

from blocks import LETTERS, ROLES, legend, legend_boxes

from coursekit.drawing import Drawing
from coursekit.drawing.style import BIG, QUIET, THINGS

CELL = 13  # pixels of a number in a matrix; N = 5 words, D = 8 features, two heads


def multihead():
    d = Drawing(
        "multihead",
        "X times three matrices gives Q, K and V, whose columns are split between two heads. In "
        "each head, the softmax of the queries times the transposed keys gives the weights, which "
        "are multiplied by the values. The results of the heads are concatenated and multiplied by "
        "the output matrix.",
    )
    d.matrix(56, 285, 5, 8, CELL, "state", "$X$", part="X")
    d.sizes(56, 338, "N", "D")
    for role, y in zip(ROLES, (110, 285, 460), strict=True):
        with d.part(role):
            letter = LETTERS[role]
            w = d.box("linear", 200, y, 104, 104, f"$W^{letter}$", size=BIG)
            route = [(108, 285), (w.left, y)] if y == 285 else [(126, 285), (126, y), w.w]
            d.arrow(*route, thing="state")
            m = d.matrix(340, y, 5, 8, CELL, role, split=2)
            for k in (1, 2):
                label = f"${letter}_{k}$"
                d.text(314 + 52 * (k - 1), y, label, BIG - 2, THINGS[role][1])
                d.badge(314 + 52 * (k - 1), y - 48, k, radius=11)
            d.arrow(w.e, m.w, thing=role)
    d.sizes(200, 40, "D", "D")
    d.sizes(340, 160, "N", "D")
    d.frame(430, 20, 968, 540, part="heads")
    for role, y in zip(ROLES, (110, 285, 460), strict=True):
        d.arrow((392, y), (430, y), thing=role, part=role)
    with d.step(1):
        _head(d, 1, 60, 148)
    with d.step(2):
        _head(d, 2, 310, 398)
        d.text(448, 516, r"$h = 2$ heads, $d_k = D / h$", 18, QUIET, "start", part="heads")
    with d.step(3), d.part("output"):
        d.matrix(1096, 110, 5, 8, CELL, "state", split=2)
        for k in (1, 2):
            d.text(1070 + 52 * (k - 1), 110, f"$Z_{k}$", BIG - 2, THINGS["state"][1])
            d.badge(1070 + 52 * (k - 1), 62, k, radius=11)
        d.note(1096, 30, "concatenated")
        w = d.box("linear", 1096, 285, 104, 104, "$W^O$", size=BIG)
        z = d.matrix(1096, 460, 5, 8, CELL, "state", "$Z$")
        d.sizes(1096, 513, "N", "D")
        d.arrow((968, 110), (1044, 110), thing="state")
        d.arrow((1096, 143), w.n, thing="state")
        d.arrow(w.s, z.n, thing="state")
    return d


def _head(d, k, title, y):
    with d.part(f"head {k}"):
        d.heading(446, title, k, ("first head", "second head")[k - 1])
        q = d.matrix(478, y, 5, 4, CELL, "query", f"$Q_{k}$", part="query")
        d.text(515, y, r"$\cdot$", BIG)
        key = d.matrix(560, y, 4, 5, CELL, "key", f"$K_{k}^T$", part="key", lines="columns")
        soft = d.box("softmax", 656, y, 84, 38, "softmax", size=17)
        d.text(656, y - 38, r"$\div\sqrt{d_k}$", 19)
        a = d.matrix(753, y, 5, 5, CELL, "data", f"$A_{k}$", part="weights")
        d.text(797, y, r"$\cdot$", BIG)
        d.matrix(834, y, 5, 4, CELL, "value", f"$V_{k}$", part="value")
        d.text(878, y, "$=$", BIG)
        d.matrix(920, y, 5, 4, CELL, "state", f"$Z_{k}$", part="Z")
        d.arrow(key.e, soft.w)
        d.arrow(soft.e, a.w)
        for x, axes in (
            (478, ("N", "D/h")),
            (565, ("D/h", "N")),
            (753, ("N", "N")),
            (838, ("N", "D/h")),
            (924, ("N", "D/h")),
        ):
            d.sizes(x, q.bottom + 22, *axes)


def three_roles():
    """Slides S12 and N11: every word has a key and a value, and the last one receives."""
    d = Drawing(
        "three_roles",
        "Learned matrices give every word a key and a value, and the receiving word, here the "
        "fourth, also a query. The query is compared with all keys, and the softmax turns the "
        "scores into weights. The sum of the values, multiplied by these weights, is the new "
        "vector of the receiving word.",
    )
    xs = [330 + 166 * k for k in range(4)]
    _keys(d, xs)
    with d.step(1):
        _scores(d, xs)
    with d.step(2), d.part("softmax"):
        soft = d.box("softmax", 579, 292, 600, 40, "softmax: positive weights with sum 1")
        for x in xs:
            d.arrow((x, 226), (x, soft.top))
    with d.step(3):
        _weighted_sum(d, xs)
    legend(
        d,
        956,
        24,
        ("query", "query"),
        ("key", "key"),
        ("value", "value"),
        ("state", "vector of a word"),
        ("data", "scores, weights"),
    )
    legend_boxes(d, 956, 188, ("linear", "has parameters"), ("softmax", "no parameters"))
    return d


def _keys(d, xs):
    for i, (x, word) in enumerate(zip(xs, ("the", "dog", "washed", "itself"), strict=True), 1):
        with d.part(f"word {i}"):
            d.text(x, 16, word, weight=600 if i == 4 else 400)
            state = d.matrix(x, 52, 1, 4, 24, "state", f"$x_{i}$", size=20)
            w = d.box("linear", x, 102, 48, 30, "$W^K$", size=18, part="key")
            key = d.matrix(x, 152, 1, 3, 24, "key", f"$k_{i}$", part="key", size=20)
            d.arrow(state.s, w.n, thing="state", part="key")
            d.arrow(w.s, key.n, thing="key", part="key")
    d.text(2, 102, "every word has a key", color=THINGS["key"][1], anchor="start", part="key")
    d.text(2, 132, "$k_i = x_i\\,W^K$", color=THINGS["key"][1], anchor="start", part="key")


def _scores(d, xs):
    with d.part("query"):
        d.text(2, 176, "the query of the last word", color=THINGS["query"][1], anchor="start")
        q = d.matrix(162, 212, 1, 3, 24, "query", "$q_4$", size=20)
        d.text(2, 212, "$x_4\\,W^Q =$", color=THINGS["query"][1], anchor="start")
        ends = [q.e]
        for i, x in enumerate(xs, 1):
            op = d.op(x, 212, ".", part=f"score {i}")
            d.arrow(ends[-1], op.w, thing="query")
            d.arrow((x, 164), op.n, thing="key", part=f"score {i}")
            d.text(x + 24, 248, f"$q_4 \\cdot k_{i}$", anchor="start", part=f"score {i}")
            ends.append(op.e)


def _weighted_sum(d, xs):
    strength = (2, 10, 3, 6)  # of the four weights, as widths of lines
    with d.part("value"):
        d.text(2, 412, "every word has a value", color=THINGS["value"][1], anchor="start")
        d.text(2, 442, "$v_i = x_i\\,W^V$", color=THINGS["value"][1], anchor="start")
        for i, (x, width) in enumerate(zip(xs, strength, strict=True), 1):
            v = d.matrix(x, 412, 1, 3, 24, "value", f"$v_{i}$", size=20)
            d.arrow((x, 312), v.n, width=width)
            d.text(x + 20, 344, f"$a_{{4{i}}}$", anchor="start")
            d.arrow(v.s, (x, 500), thing="value", width=width, head=False)
        d.arrow((xs[0], 500), (914, 500), thing="value", width=4)
    op = d.op(930, 500, "+", part="sum", size=32)
    y = d.matrix(1050, 500, 1, 3, 24, "state", "$y_4$", part="sum", size=20)
    d.arrow(op.e, y.w, thing="state", part="sum")
    d.text(1050, 444, r"$\sum_j\, a_{4j}\, v_j$", part="sum")


def one_head():
    """Slides N09 and N10: Q is [m, d_k], K [n, d_k], V [n, d_v]."""
    d = Drawing(
        "one_head",
        "The queries times the transposed keys give a matrix of scores, with one row for each "
        "query. The scores are divided by the square root of d_k, and the softmax makes each row "
        "sum to 1. The resulting weights times the values give one row of output for each query.",
    )
    y, unit = 230, 28
    q = d.matrix(58, y, 3, 4, unit, "query", "$Q$", part="Q")
    d.text(133, y, r"$\cdot$", 34, part="scores")
    k = d.matrix(222, y, 4, 5, unit, "key", "$K^T$", part="K", lines="columns")
    with d.step(1), d.part("scores"):
        d.text(314, y, "$=$", 30)
        e = d.matrix(406, y, 3, 5, unit, "data", "$E$")
        d.note(406, y + 96, "scores")
    with d.step(2), d.part("softmax"):
        scale = d.box("activation", 540, y, 84, 46, r"$\div\sqrt{d_k}$", size=19)
        soft = d.box("softmax", 654, y, 104, 46, "softmax")
        a = d.matrix(802, y, 3, 5, unit, "data", "$A$")
        d.chain([e, scale, soft, a], "data")
        d.note(654, y + 46, "row by row")
        d.note(802, y + 96, "weights: each row sums to 1")
    with d.step(3), d.part("output"):
        d.text(892, y, r"$\cdot$", 34)
        v = d.matrix(942, y, 5, 2, unit, "value", "$V$")
        d.text(1016, y, "$=$", 30)
        z = d.matrix(1096, y, 3, 2, unit, "state", "$Z$")
        d.sizes(v.x, v.top - 20, "n", "d_v")
        d.sizes(z.x, z.top - 20, "m", "d_v")
    for box, part, *axes in (
        (q, "Q", "m", "d_k"),
        (k, "K", "d_k", "n"),
        (e, "scores", "m", "n"),
        (a, "softmax", "m", "n"),
    ):
        with d.step({"Q": 0, "K": 0, "scores": 1, "softmax": 2}[part]):
            d.sizes(box.x, box.top - 20, *axes, part=part)
    d.text(576, 450, r"$Z = \mathrm{softmax}(QK^T / \sqrt{d_k})\,V$", 30, part="formula")
    d.note(
        576,
        508,
        "$m$ queries attend to $n$ keys, and the inner sizes of each product agree",
        part="formula",
    )
    return d
