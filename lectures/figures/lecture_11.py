"""Lecture 11: GravNet in four steps."""

from coursekit.drawing import Drawing
from coursekit.drawing.paths import rims
from coursekit.drawing.style import BIG, QUIET, THINGS

POINTS = {
    "near": ((-48, -50), (76, -22), (-68, 34), (38, 46)),
    "far": ((62, -104), (112, -76), (110, 74), (-46, 116), (52, 124)),
}
VALUE = THINGS["value"][1]


def gravnet():
    """Slides K48 to K50; the variant of Qasim et al. 2019 as in nn and PyTorch Geometric."""
    d = Drawing(
        "gravnet",
        "Two linear maps compute the position of each hit in a learned space and the message that "
        "the hit sends. Each hit receives the messages of its nearest neighbours in this space, "
        "and nearer neighbours have larger weights. The mean and the maximum of the weighted "
        "messages are combined with the hit's own features.",
    )
    panels = ("project", "find neighbours", "weight and gather", "combine")
    for k, title in enumerate(panels):
        left = 2 + 292 * k
        with d.step(k), d.part(title):
            d.frame(left, 2, left + 272, 558, part="frame")
            d.heading(left + 14, 36, k + 1, title)
            (_project, _neighbours, _gather, _join)[k](d, left + 136)
    return d


def _project(d, x):
    source = d.matrix(x, 112, 6, 8, 12, "state", "$X$")
    d.sizes(x + 62, 112, "N", "F", anchor="start")
    s = d.box("linear", x - 62, 232, 96, 50, "$W_s$", size=22)
    h = d.box("linear", x + 62, 232, 96, 50, "$W_h$", size=22)
    for box in (s, h):
        d.arrow(source.s, (x, 180), (box.x, 180), box.n, thing="state")
    place = d.matrix(s.x, 336, 6, 2, 12, "data")
    features = d.matrix(h.x, 336, 6, 4, 12, "value", "$H$")
    d.arrow(s.s, place.n)
    d.arrow(h.s, features.n, thing="value")
    d.text(s.x - 32, 336, "$S$", BIG)
    d.note(s.x, 400, "positions")
    d.note(h.x, 400, "messages", color=VALUE)
    d.text(x, 462, "$S = X\\,W_s$", 22)
    d.text(x, 504, "$H = X\\,W_h$", 22)


def _hits(d, x, y, thing=None):
    near = [d.node(x + a, y + b, radius=10, thing=thing, part="near") for a, b in POINTS["near"]]
    for a, b in POINTS["far"]:
        d.node(x + a, y + b, radius=10, part="far")
    centre = d.node(x, y, "$i$", "picked", 16, size=18, part="i")
    return centre, near


def _neighbours(d, x):
    y = 232
    circle = f'<circle cx="{x}" cy="{y}" r="94" fill="none" stroke="{QUIET}" stroke-width="2" '
    d.shape("reach", "reach", circle + 'stroke-dasharray="6 5"/>')
    _hits(d, x, y)
    d.arrow((x - 116, 410), (x - 66, 410), part="axes")
    d.arrow((x - 116, 410), (x - 116, 360), part="axes")
    d.text(x - 50, 410, "$s_1$", part="axes")
    d.text(x - 96, 356, "$s_2$", part="axes")
    d.note(x, 452, "in the learned space,", part="words")
    d.note(x, 474, "not in the detector", part="words")
    d.text(x, 512, "$K$ nearest hits, including $i$", part="words", size=18)


def _gather(d, x):
    centre, near = _hits(d, x, 232, "value")
    for node in near:
        close = abs(node.x - x) + abs(node.y - 232)
        d.arrow(*rims(node, centre, 3), thing="value", width=max(1.6, 8 - close / 18))
    d.note(x, 398, "nearer hits count more")
    d.text(x, 436, r"$a_{ij} = \exp(-c\, |s_i - s_j|^2)$", 19)
    d.text(x, 482, "mean and max", color=VALUE)
    d.text(x, 510, r"of  $a_{ij}\, h_j$", color=VALUE)


def _join(d, x):
    own = d.matrix(x - 66, 128, 6, 8, 12, "state", "$X$")
    pooled = d.matrix(x + 66, 128, 6, 8, 12, "value", split=2)
    d.note(x + 42, 72, "mean", color=VALUE)
    d.note(x + 92, 72, "max", color=VALUE)
    one = d.box("linear", own.x, 244, 84, 50, "$W_1$", size=22)
    two = d.box("linear", pooled.x, 244, 84, 50, "$W_2$", size=22)
    d.arrow(own.s, one.n, thing="state")
    d.arrow(pooled.s, two.n, thing="value")
    plus = d.op(x, 318, "+", size=32)
    d.arrow(one.s, (one.x, 318), plus.w, thing="state")
    d.arrow(two.s, (two.x, 318), plus.e, thing="state")
    y = d.matrix(x, 404, 6, 8, 12, "state", "$Y$")
    d.arrow(plus.s, y.n, thing="state")
    d.sizes(x + 62, 404, "N", "F'", anchor="start")
    d.text(x, 472, r"$y_i = x_i W_1$", 20)
    d.text(x, 508, r"$+\ [\mathrm{mean}\,\Vert\,\mathrm{max}]\, W_2 + b$", 20)
