"""Lecture 05: two views of a set, Deep Sets, and the blocks of the Set Transformer."""

from blocks import LETTERS

from coursekit.drawing import Drawing
from coursekit.drawing.style import BIG, THINGS

STATE = THINGS["state"][1]
DOTS = ((-110, -70), (20, -100), (110, -20), (60, 90), (-80, 70))


def two_views():
    """Slides S01 and S02."""
    d = Drawing(
        "two_views",
        "On the left, a set is a graph without edges, and the same function is applied to each "
        "element. On the right, it is a graph with all edges, along which every element sends "
        "messages to every other one.",
    )
    for k, title in enumerate(("no edges", "all edges")):
        left = 592 * k
        with d.step(k), d.part(title):
            d.frame(left + 2, 2, left + 558, 558, part="frame")
            d.heading(left + 20, 34, k + 1, title)
            nodes = [
                d.node(left + 280 + x, 216 + y, f"$x_{i}$", radius=26, size=20)
                for i, (x, y) in enumerate(DOTS, 1)
            ]
            if k:
                for i, a in enumerate(nodes):
                    for b in nodes[i + 1 :]:
                        d.edge(a, b)
            formula = (r"$x_i \mapsto \phi(x_i)$", r"$y_i = \sum_j\, a_{ij}\, v_j$")[k]
            d.text(left + 280, 426, formula, 26)
            d.note(
                left + 280,
                490,
                (
                    "the same function for every element: Deep Sets",
                    "messages along all edges: attention",
                )[k],
            )
            d.note(
                left + 280,
                520,
                ("cost proportional to $N$, the number of elements", r"cost proportional to $N^2$")[
                    k
                ],
            )
    return d


def deep_sets():
    """Slide S05."""
    d = Drawing(
        "deep_sets",
        "The same network phi is applied to every element of a set. The results are added, and the "
        "sum does not depend on their order. A second network rho computes the output from the "
        "sum.",
    )
    ys = (100, 220, 340, 460)
    for i, y in enumerate(ys, 1):
        with d.part(f"element {i}"):
            d.matrix(80, y, 1, 5, 26, "data", f"$x_{i}$", size=19)
            phi = d.box("linear", 272, y, 92, 60, r"$\phi$", size=BIG)
            d.arrow((145, y), phi.w)
            with d.step(1):
                out = d.matrix(462, y, 1, 5, 26, "state", f"$\\phi(x_{i})$", size=19)
                d.arrow(phi.e, out.w, thing="state")
    d.note(272, 530, "the same weights for all elements", part="phi")
    with d.step(2), d.part("sum"):
        plus = d.op(650, 280, "+", size=40)
        for y in (ys[0], ys[-1]):
            d.arrow((527, y), (590, y), (590, 280), thing="state", head=False)
        for y in ys[1:-1]:
            d.arrow((527, y), (590, y), thing="state", head=False)
        d.arrow((590, 280), plus.w, thing="state")
        total = d.matrix(770, 280, 1, 5, 26, "state")
        d.note(770, 318, "sum")
        d.arrow(plus.e, total.w, thing="state")
        d.note(650, 330, "order is lost")
    with d.step(3), d.part("rho"):
        rho = d.box("linear", 934, 280, 92, 60, r"$\rho$", size=BIG)
        d.arrow(total.e, rho.w, thing="state")
        d.arrow(rho.e, (1080, 280))
        d.text(1112, 280, "$y$", 28)
        d.text(934, 470, r"$y = \rho\,(\,\sum_i\, \phi(x_i)\,)$", 26)
    return d


def set_transformer():
    """Slide S06: the blocks of Lee et al. 2019 as in nn.MAB, SAB, ISAB and PMA."""
    d = Drawing(
        "set_transformer",
        "In a MAB, the elements of X attend to the elements of Y, and residual sums, norms and a "
        "network for each element follow. In a SAB, a set attends to itself. In an ISAB, m "
        "inducing points attend to the set, and the set attends to them, so the cost is "
        "proportional to N m. In a PMA, learned seeds attend to the set, which gives one vector "
        "for each seed.",
    )
    with d.part("MAB"):
        _mab_inside(d)
    blocks = (
        ("SAB", "all pairs of elements", r"$N^2$"),
        ("ISAB", "via $m$ inducing points", r"$2\,N m$"),
        ("PMA", "learned pooling", r"$k\,N$"),
    )
    for k, (name, words, work) in enumerate(blocks):
        left = 2 + 391 * k
        with d.step(k + 1), d.part(name):
            d.frame(left, 282, left + 366, 558, part="frame")
            d.heading(left + 16, 312, k + 2, name)
            d.note(left + 350, 312, words, "end")
            (_sab, _isab, _pma)[k](d, left, 420)
            d.text(left + 183, 534, f"pairs: {work}", 20)
    return d


def _mab_inside(d):
    d.frame(2, 2, 1150, 262, part="frame")
    d.heading(18, 32, 1, "MAB(X, Y): X attends to Y")
    y = 120
    d.text(60, y, "$X$", BIG, STATE)
    d.text(60, 204, "$Y$", BIG, STATE)
    maps = {}
    for role, high in (("query", y), ("key", 178), ("value", 230)):
        maps[role] = d.box("linear", 216, high, 56, 34, f"$W^{LETTERS[role]}$", size=18, part=role)
    attention, add, norm, rff, add2, norm2 = d.row(
        300,
        y,
        ("attention", 126, ["attention"], "attention"),
        ("+", 28, [], "add"),
        ("norm", 70, ["norm"], "norm"),
        ("linear", 84, ["rFF"], "rFF"),
        ("+", 28, [], "add 2"),
        ("norm", 70, ["norm"], "norm 2"),
        right=1010,
        height=60,
        thing="state",
    )
    d.arrow((84, y), maps["query"].w, thing="state")
    d.arrow(maps["query"].e, attention.w, thing="query")
    d.arrow((84, 204), (150, 204), thing="state", head=False)
    for role in ("key", "value"):
        d.arrow((150, 204), (150, maps[role].y), maps[role].w, thing="state")
    d.arrow(maps["key"].e, (340, 178), (340, 150), thing="key")
    d.arrow(maps["value"].e, (388, 230), (388, 150), thing="value")
    for start, op in ((120, add), ((norm.right + rff.left) / 2, add2)):
        d.arrow((start, y), (start, 68), (op.x, 68), op.n, thing="state", kind="residual", width=2)
    d.arrow(norm2.e, (1066, y), thing="state")
    d.sizes(1108, y, "N", "d")
    d.note(850, 190, "rFF: the same network for each element")
    d.note(850, 220, r"$Y$ gives only keys and values")


def _mab(d, x, y):
    return d.box("attention", x, y, 92, 56, "MAB")


def _sab(d, left, y):
    box = _mab(d, left + 196, y)
    d.text(left + 34, y, "$X$", BIG, STATE)
    d.arrow((left + 54, y), box.w, thing="state")
    d.arrow((left + 96, y), (left + 96, y + 62), (box.x, y + 62), box.s, thing="state")
    d.arrow(box.e, (left + 336, y), thing="state")
    d.note(left + 196, y - 52, "$X$ attends to $X$")


def _isab(d, left, y):
    one, two = _mab(d, left + 132, y), _mab(d, left + 268, y)
    d.text(left + 26, y + 62, "$X$", BIG, STATE)
    d.text(left + 26, y, "$I$", BIG, THINGS["query"][1])
    d.arrow((left + 42, y), one.w, thing="state")
    d.arrow((one.x, y + 62), one.s, thing="state")
    d.arrow(one.e, two.w, thing="state")
    d.text(left + 200, y - 24, "$H$", 20, STATE)
    d.arrow((left + 44, y + 62), (two.x, y + 62), two.s, thing="state")
    d.arrow(two.e, (left + 350, y), thing="state")
    d.note(left + 90, y - 52, "$I$ attends to $X$")
    d.note(left + 268, y - 52, "$X$ attends to $H$")


def _pma(d, left, y):
    rff = d.box("linear", left + 116, y + 62, 70, 40, "rFF")
    box = _mab(d, left + 226, y)
    d.text(left + 34, y, "$S$", BIG, THINGS["query"][1])
    d.text(left + 34, y + 62, "$X$", BIG, STATE)
    d.arrow((left + 52, y), box.w, thing="state")
    d.arrow((left + 52, y + 62), rff.w, thing="state")
    d.arrow(rff.e, (box.x, y + 62), box.s, thing="state")
    d.arrow(box.e, (left + 336, y), thing="state")
    d.note(left + 226, y - 52, "$k$ seeds $S$ attend to $X$")


def shuffled():
    """Slides S03 and S10: F(PX) = F(X), and F(PX) = P F(X)."""
    d = Drawing(
        "shuffled",
        "The left function is invariant, because four elements in two orders give the same "
        "output. The right function is equivariant. It has an output for each element, and "
        "permuting the elements permutes the outputs in the same way.",
    )
    orders = ("1234", "3142")
    for k, (name, title) in enumerate(
        (
            ("invariant", "invariant: the same output"),
            ("equivariant", "equivariant: permuted outputs"),
        )
    ):
        left = 600 * k
        with d.step(k), d.part(name):
            d.frame(left + 2, 2, left + 550, 558, part="frame")
            d.heading(left + 20, 34, k + 1, title)
            for row, order in enumerate(orders):
                _of_a_set(d, left, 150 + 180 * row, order, each=k == 1)
            d.arrow((left + 122, 186), (left + 122, 294), part="shuffle")
            d.note(left + 140, 240, "permute", "start", part="shuffle")
            formula = r"$F(PX) = P\,F(X)$" if k else r"$F(PX) = F(X)$"
            d.text(left + 276, 450, formula, 28)
            words = "one output for each element" if k else "for example a sum, a mean or a maximum"
            d.note(left + 276, 510, words)
    return d


def _of_a_set(d, left, y, order, *, each):
    """Four elements in this order, the function, and its output or outputs."""
    for place, name in enumerate(order):
        d.node(left + 50 + 48 * place, y, f"$x_{name}$", "node", 22, part=f"x_{name}")
    box = d.box("linear", left + 296, y, 60, 56, "$F$", size=26)
    d.arrow((left + 222, y), box.w, thing="state")
    if not each:
        d.arrow(box.e, (left + 440, y), thing="state", width=3)
        d.text(left + 470, y, "$y$", 30)
        return
    d.arrow(box.e, (left + 352, y), thing="state")
    for place, name in enumerate(order):
        d.node(left + 380 + 46 * place, y, f"$y_{name}$", "picked", 20, part=f"y_{name}")
