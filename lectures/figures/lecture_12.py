"""Lecture 12: the potentials of object condensation, and the way from hits to objects."""

from coursekit.drawing import Drawing
from coursekit.drawing.paths import paint, toward
from coursekit.drawing.style import BIG, INK, OBJECTS, PAPER, QUIET, SLATE, Box

(TEAL, TEAL_INK, TEAL_AREA), (VIOLET, VIOLET_INK, VIOLET_AREA) = OBJECTS
UNIT = 104  # pixels of the distance 1
# hits of two objects in the plane of the third panel, relative to its centre
FIRST = ((-140, -96), (-148, 60), (-10, -70), (10, 92))
SECOND = ((146, 70), (136, -88), (-8, 24))
# hits of two objects: place, strength β in percent, object
STRENGTHS = (
    (150, 196, 92, 0), (70, 140, 30, 0), (96, 268, 15, 0), (224, 122, 20, 0), (180, 300, 8, 0),
    (420, 330, 85, 1), (340, 262, 25, 1), (520, 276, 12, 1), (372, 426, 30, 1), (500, 420, 8, 1),
    (400, 110, 3, None), (96, 430, 4, None),
)  # fmt: skip


def condensation_point():
    """Slide K57."""
    d = Drawing(
        "condensation_point",
        "Each hit of two objects, and each of two noise hits, has a condensation strength beta. "
        "The hit with the largest beta in an object is its condensation point, and what the "
        "network predicts there counts as the properties of the whole object.",
    )
    d.heading(2, 24, 1, "each hit has a strength $\\beta$", part="strengths")
    for x, y, percent, k in STRENGTHS:
        _strong_hit(d, x, y, percent, k)
    d.note(130, 366, "object 1", color=TEAL_INK)
    d.note(436, 500, "object 2", color=VIOLET_INK)
    d.note(290, 540, r"number and size: $\beta$; white: noise", color=QUIET)
    with d.step(1):
        d.heading(640, 24, 2, "the strongest hit is the condensation point", part="chosen")
        d.text(
            676,
            64,
            r"$\alpha = $ hit of the object with the largest $\beta$",
            anchor="start",
            part="chosen",
        )
        for x, y, k in ((150, 196, 0), (420, 330, 1)):
            ring = f'<circle cx="{x}" cy="{y}" r="38" fill="none" stroke="{OBJECTS[k][0]}" '
            d.shape("reach", f"alpha {k + 1}", ring + 'stroke-width="3" stroke-dasharray="6 5"/>')
            d.text(x + 48, y - 30, r"$\alpha$", BIG, OBJECTS[k][1], part=f"alpha {k + 1}")
    with d.step(2):
        d.heading(640, 124, 3, "its prediction counts for the object", part="told")
        for k, (y, words) in enumerate(((196, "photon, 12.1 GeV"), (330, "pion, 8.4 GeV"))):
            fill, stroke = OBJECTS[k][2], OBJECTS[k][0]
            card = f'<rect x="676" y="{y - 30}" width="330" height="60" rx="6" fill="{fill}" '
            d.shape("card", f"told {k + 1}", card + f'stroke="{stroke}" stroke-width="1.8"/>')
            d.text(841, y, words, 22, OBJECTS[k][1], part=f"told {k + 1}")
        d.arrow((194, 196), (672, 196), color=OBJECTS[0][0], part="told 1")
        d.arrow((464, 330), (672, 330), color=OBJECTS[1][0], part="told 2")
        d.text(676, 420, "energy and class of the whole object,", anchor="start", part="told")
        d.text(676, 452, "not only of this hit", anchor="start", part="told")
    return d


def _strong_hit(d, x, y, percent, k):
    radius = 8 + round(0.16 * percent)
    color = SLATE if k is None else OBJECTS[k][0]
    corner = 1 if k == 1 else radius
    rect = f'<rect x="{x - radius}" y="{y - radius}" width="{2 * radius}" '
    rect += f'height="{2 * radius}" rx="{corner}" fill="{PAPER if k is None else color}" '
    d.shape("hit", "strengths", rect + f'stroke="{color}" stroke-width="1.8"/>')
    d.note(
        x,
        y + radius + (36 if percent > 50 else 17),
        f"{percent / 100:.2f}",
        color=QUIET,
        part="strengths",
    )


def potentials():
    """Slides K55 and K56."""
    d = Drawing(
        "potentials",
        "A potential in the form of a parabola attracts each hit to the condensation point of its "
        "own object. A potential in the form of a cone, which ends at distance 1, repels each hit "
        "from the condensation points of other objects. In the plane, the hits of each object move "
        "to their own condensation point.",
    )
    with d.part("attraction"):
        d.heading(2, 24, 1, "own object: attraction")
        # the caron of the slide's letter; Matplotlib sets its own beside the letter
        caron = f'<path d="M9 61.5l4 4.5l4 -4.5" {paint("none", INK, 1.5)}/>'
        d.shape("label", None, caron)
        d.text(2, 76, r"$V_k(x) = \Vert x - x_\alpha\Vert^2\, q_{\alpha k}$", 21, anchor="start")
        _parabola(d, 158, 430)
    with d.step(1), d.part("repulsion"):
        d.heading(392, 24, 2, "other object: repulsion")
        d.text(
            392,
            76,
            r"$\hat V_k(x) = \max(0, 1 - \Vert x - x_\alpha\Vert)\, q_{\alpha k}$",
            21,
            anchor="start",
        )
        _cone(d, 548, 430)
    with d.step(2), d.part("plane"):
        d.heading(796, 24, 3, "both forces in the plane")
        d.text(796, 76, "forces on hits of two objects", 20, QUIET, "start")
        _plane(d, 966, 290)
    return d


def _hit(d, x, y, k=0, radius=9):
    """A hit of object k: a circle for the first, a square for the second."""
    box = Box(x, y, 2 * radius, 2 * radius)
    corner = radius if k == 0 else 1
    rect = f'<rect x="{x - radius:.1f}" y="{y - radius:.1f}" width="{2 * radius}" '
    rect += f'height="{2 * radius}" rx="{corner}" fill="{OBJECTS[k][0]}" stroke="{PAPER}" '
    d.shape("hit", f"hit of object {k + 1}", rect + 'stroke-width="1.5"/>')
    return box


def _alpha(d, x, y, k=0):
    corner = 16 if k == 0 else 2
    rect = f'<rect x="{x - 16}" y="{y - 16}" width="32" height="32" rx="{corner}" fill="{PAPER}" '
    d.shape("hit", f"alpha {k + 1}", rect + f'stroke="{OBJECTS[k][0]}" stroke-width="4"/>')
    d.text(x, y - 1, r"$\alpha$", 22, part=f"alpha {k + 1}", inside=Box(x, y, 32, 32))


def _axis(d, left, right, y):
    d.arrow((left, y), (right, y), width=2, part="axis")
    d.text(right - 10, y + 26, "$x$", 22, part="axis")


def _parabola(d, x, y):
    height = lambda t: y - 270 * (t / 150) ** 2
    ts = range(-150, 151, 5)
    d.curve([(x - 150, y), *((x + t, height(t)) for t in ts), (x + 150, y)], fill=TEAL_AREA)
    _axis(d, 2, 330, y)
    d.curve([(x + t, height(t)) for t in ts if abs(t) >= 15], TEAL, 3.4)
    for t, low in ((-122, 40), (-70, 60), (96, 40)):
        _hit(d, x + t, height(t))
        force = (x + t * (1 - 0.42 * abs(t) / 122), y + low)
        d.arrow((x + t, y + low), force, color=TEAL, width=3, part="force")
    _alpha(d, x, y)
    d.note(x, y + 88, "the force grows with the distance", color=TEAL_INK)


def _cone(d, x, y):
    top = y - 130
    d.curve([(x - UNIT, y), (x, top), (x + UNIT, y)], fill=VIOLET_AREA)
    _axis(d, 392, 724, y)
    for side in (-1, 1):
        d.curve([(x + side * 152, y), (x + side * UNIT, y), (x, top)], VIOLET, 3.4, dashed=True)
    for t in (-58, 66, 136):
        _hit(d, x + t, y - 130 * max(0, 1 - abs(t) / UNIT))
        if abs(t) < UNIT:
            end = (x + t + (34 if t > 0 else -34), y + 52)
            d.arrow((x + t, y + 52), end, color=TEAL, width=3, part="force")
    _alpha(d, x, y, 1)
    d.arrow((x, y + 80), (x + UNIT, y + 80), width=2, part="margin")
    d.arrow((x + UNIT, y + 80), (x, y + 80), width=2, part="margin")
    d.note(x + UNIT / 2, y + 102, "1", part="margin")
    d.note(x - 90, y + 102, "beyond 1: no force", color=VIOLET_INK)


def _plane(d, x, y):
    alphas = ((x - 76, y - 10), (x + 76, y + 10))
    for k, (px, py) in enumerate(alphas):
        circle = f'<circle cx="{px}" cy="{py}" r="{UNIT}" fill="none" stroke="{OBJECTS[k][0]}" '
        d.shape("reach", f"reach {k + 1}", circle + 'stroke-width="2" stroke-dasharray="7 6"/>')
    for k, hits in enumerate((FIRST, SECOND)):
        for a, b in hits:
            start = (x + a, y + b)
            own, other = alphas[k], alphas[1 - k]
            away = ((start[0] - other[0]) ** 2 + (start[1] - other[1]) ** 2) ** 0.5
            push = 34 if away < UNIT else 0
            end = [
                start[i] + 0.42 * (own[i] - start[i]) + push * (start[i] - other[i]) / away
                for i in (0, 1)
            ]
            begin = toward(start, end, 12)
            d.arrow(begin, tuple(end), color=OBJECTS[k][0], width=3, part=f"force {k + 1}")
            _hit(d, *start, k)
    for k, (px, py) in enumerate(alphas):
        _alpha(d, px, py, k)
    d.note(x - 84, y + 160, "object 1", color=TEAL_INK)
    d.note(x + 84, y + 160, "object 2", color=VIOLET_INK)
    d.note(x, y + 200, "dashed: range of the repulsion", color=QUIET)


def hits_to_objects():
    """Slides K57 to K60: from hits to objects."""
    d = Drawing(
        "hits_to_objects",
        "A graph network predicts for each hit a condensation strength, a position in the "
        "clustering space, and the energy of its object. Then the hit with the largest strength "
        "starts an object and claims all free hits near it. This step is repeated until no free "
        "hit with a large strength is left.",
    )
    d.text(2, 40, "hits", anchor="start", weight=600, part="hits")
    d.matrix(62, 150, 8, 6, 20, "data", "$X$", part="hits")
    d.sizes(62, 250, "N", "6", part="hits")
    net = d.box("linear", 204, 150, 124, 120, "graph", "network", part="network")
    d.arrow((122, 150), net.w, part="network")
    outs = (
        (r"$\beta$", "strength", 60, 1),
        ("$x_c$", "position", 150, 2),
        ("$p$", "energy", 240, 1),
    )
    for k, (letter, words, y, columns) in enumerate(outs):
        with d.part(("beta", "place", "properties")[k]):
            points = [(266, y), (352, y)] if y == 150 else [(290, 150), (290, y), (352, y)]
            d.arrow(*points, thing="state")
            m = d.matrix(352 + 10 * columns, y, 4, columns, 20, "state")
            d.text(m.right + 14, y - 12, letter, BIG, anchor="start")
            d.note(m.right + 14, y + 18, words, anchor="start")
    titles = ("the strongest hit", "it claims nearby hits", "the next object", "the rest is noise")
    for k, title in enumerate(titles):
        left = 2 + 292 * k
        with d.step(k + 1), d.part(f"collect {k + 1}"):
            d.frame(left, 316, left + 272, 558, part="frame")
            d.heading(left + 12, 340, k + 1, title)
            _collected(d, left + 136, 462, k)
    with d.step(1):
        d.text(
            620,
            60,
            r"1.  Choose the free hit with the largest $\beta > t_\beta$.",
            anchor="start",
            part="rules",
        )
    with d.step(2):
        d.text(
            620,
            104,
            r"2.  It claims all free hits within the distance $t_d$",
            anchor="start",
            part="rules",
        )
        d.text(656, 140, "in the clustering space.", anchor="start", part="rules")
    with d.step(3):
        d.text(
            620,
            184,
            "3.  Repeat both steps with the remaining free hits.",
            anchor="start",
            part="rules",
        )
    with d.step(4):
        d.text(
            620,
            228,
            r"4.  Stop when no free hit has $\beta > t_\beta$.",
            anchor="start",
            part="rules",
        )
    return d


CLOUD = (  # places in the clustering space, strength, object
    (-72, -18, 13, 0), (-96, 8, 7, 0), (-52, 12, 8, 0), (-84, -48, 6, 0), (-40, -30, 6, 0),
    (66, 20, 12, 1), (88, -8, 7, 1), (44, -4, 6, 1), (86, 48, 6, 1), (40, 44, 7, 1),
    (10, -60, 4, 2), (-12, 62, 4, 2),
)  # fmt: skip


def _collected(d, x, y, stage):
    for k, (px, py) in enumerate(((-72, -18), (66, 20))):
        if stage >= 1 + 2 * k or stage == 3 or (k == 1 and stage == 2):
            circle = f'<circle cx="{x + px}" cy="{y + py}" r="52" fill="none" '
            circle += f'stroke="{OBJECTS[k][0]}" stroke-width="2" stroke-dasharray="6 5"/>'
            d.shape("reach", None, circle)
    for px, py, radius, of in CLOUD:
        taken = (of == 0 and stage >= 1) or (of == 1 and stage >= 2)
        strongest = stage == 0 and (px, py) == (-72, -18)
        color = OBJECTS[of][0] if of < 2 and (taken or strongest) else None
        corner = 1 if of == 1 and taken else radius
        fill, stroke = (color, PAPER) if color else (PAPER, SLATE)
        rect = f'<rect x="{x + px - radius}" y="{y + py - radius}" width="{2 * radius}" '
        rect += f'height="{2 * radius}" rx="{corner}" fill="{fill}" stroke="{stroke}" '
        d.shape("hit", None, rect + 'stroke-width="1.8"/>')
