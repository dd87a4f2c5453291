"""Drawings of networks as SVG: boxes for layers, arrows for data, built up in steps.

    d = Drawing("attention", "One head of attention: X gives Q, K and V ...")
    q = d.box("linear", 200, 80, 96, 48, "$W^Q$", part="query/W")  # centre, width, height
    with d.step(1):
        d.arrow(q.e, (400, 80), thing="query")
    d.save("attention.svg")

In a label, the text between dollars is a formula, drawn as outlines. The same calls give the same
bytes. `style.py` contains the colours and kinds, and `checks.py` the requirements.
"""

from contextlib import contextmanager
from html import escape
from pathlib import Path

from coursekit.drawing.paths import (
    arrow_head,
    n,
    outline,
    paint,
    rectangle,
    rims,
    rounded,
    toward,
)
from coursekit.drawing.style import (
    BIG,
    EDGE,
    HAIRLINE,
    INK,
    KINDS,
    MONO,
    PANEL,
    PAPER,
    QUIET,
    SANS,
    SLATE,
    SMALL,
    SMALLEST,
    TEXT,
    THINGS,
    Box,
    extent,
    runs,
    spread,
)
from tinyattn.course.drawing_shown import shown


class Drawing:
    """A page of 1152 x 560 pixels, the body of a slide, filled by the calls below.

    `name` is the name of its file. `alt` describes in two sentences what flows where, for readers
    who cannot see the drawing. `words`, `lines` and `boxes` are the drawn elements, for the checks.
    """

    def __init__(self, name, alt, width=1152, height=560):
        self.name, self.alt, self.width, self.height = name, alt, width, height
        self.words, self.lines, self.boxes = [], [], []
        self._steps, self._now, self._inside = {0: []}, 0, []

    # ------------------------------------------------------------ parts and steps

    @contextmanager
    def step(self, number):
        """Show the elements drawn inside the block at this key press of the deck."""
        before, self._now = self._now, number
        yield
        self._now = before

    @contextmanager
    def part(self, name):
        """Assign the elements drawn inside the block to this part (a/b for a nested one)."""
        self._inside.append(name)
        yield
        self._inside.pop()

    def shape(self, kind, part, *elements):
        """Put SVG elements on the page as one part. All other methods call this method."""
        group = f'<g class="part {kind}" data-part="{escape(self._named(part))}">'
        self._steps.setdefault(self._now, []).append(group + "".join(elements) + "</g>")

    def _named(self, part):
        return "/".join([*self._inside, *([part] if part else [])]) or "label"

    # ------------------------------------------------------------ words

    def text(
        self, x, y, label, size=TEXT, color=INK, anchor="middle", weight=400, part=None, inside=None
    ):
        """Draw one line of words and formulas with its middle at height y.

        `inside` is the `Box` that must contain it, or None.
        """
        words = self._label(x, y, label, size, color, anchor, weight, part, box=inside)
        self.shape("label", part, words)

    def note(self, x, y, label, anchor="middle", color=QUIET, part=None):
        """Draw a small grey remark."""
        self.text(x, y, label, SMALL, color, anchor, part=part)

    def sizes(self, x, y, *axes, anchor="middle", part=None):
        """Draw the shape of the data, as in [T, d]."""
        label = f"[{', '.join(axes)}]"
        words = self._label(x, y, label, SMALLEST, QUIET, anchor, 400, part, mono=True)
        self.shape("label", part, words)

    def badge(self, x, y, number, part=None, radius=15):
        """Draw a number in a dark circle."""
        circle = f'<circle cx="{n(x)}" cy="{n(y)}" r="{n(radius)}" fill="{INK}"/>'
        size = TEXT if radius > 12 else SMALLEST
        digit = self._label(x, y, str(number), size, PAPER, "middle", 600, part)
        self.shape("label", part, circle, digit)

    def heading(self, x, y, number, label, part=None):
        """Draw a number in a dark circle, and a description of the step."""
        self.badge(x + 15, y, number, part)
        self.text(x + 41, y, label, anchor="start", weight=600, part=part)

    def _label(self, x, y, label, size, color, anchor, weight, part, *, mono=False, box=None):
        """Return the SVG of one line, measured and recorded for the checks."""
        if size < SMALLEST:
            raise ValueError(
                f"drawing: {label!r} has the font size {size} px, but {SMALLEST} px are needed to "
                f"read it. Pass size={SMALLEST} or more"
            )
        pieces = [label] if mono else runs(label)
        extents = [extent(run, size, weight, mono) for run in pieces]
        width = sum(e[0] for e in extents)
        left = x - width * {"start": 0, "middle": 0.5, "end": 1}[anchor]
        base = y + 0.34 * size
        top, bottom = base - max(e[1] for e in extents), base + max(e[2] for e in extents)
        self.words.append((label, (left, top, left + width, bottom), self._named(part), box))
        out = []
        for run, (wide, _, _) in zip(pieces, extents, strict=True):
            if run[0] == "$":
                out.append(outline(run[1:-1], left, base, size, color))
            else:
                out.append(
                    f'<text x="{n(left)}" y="{n(base)}" font-size="{size}" font-weight="{weight}" '
                    f'fill="{color}" font-family="{MONO if mono else SANS}" '
                    f'textLength="{n(wide)}" lengthAdjust="spacingAndGlyphs" '
                    f'xml:space="preserve">{escape(run)}</text>'
                )
            left += wide
        return "".join(out)

    # ------------------------------------------------------------ boxes

    def box(self, kind, x, y, width, height, *lines, part=None, size=TEXT, thing=None):
        """Draw a box for one kind of layer with lines of words, and return its position."""
        fill, stroke, line, corner, ink = KINDS[kind]
        if thing:
            stroke, ink, fill = THINGS[thing]
        box = Box(x, y, width, height)
        if kind == "pool":  # pooling returns fewer things, so the box becomes narrower
            inset = height * 0.2
            form = f'<path d="M{n(box.left)} {n(box.top)}L{n(box.right)} {n(box.top + inset)}'
            form += f'V{n(box.bottom - inset)}L{n(box.left)} {n(box.bottom)}Z" '
        else:
            form = rectangle(box, min(corner, width / 2, height / 2))
        out = [form + paint(fill, stroke, line) + "/>"]
        if kind == "embedding":  # an embedding looks like a table
            marks = "".join(
                f"M{n(box.left + 5)} {n(box.top + k * height / 4)}h10" for k in (1, 2, 3)
            )
            out.append(f'<path d="{marks}" {paint("none", stroke, 1.4)}/>')
        middle = x + 6 if kind == "embedding" else x
        for k, words in enumerate(lines):
            high = y + (k - (len(lines) - 1) / 2) * size * 1.16
            out.append(self._label(middle, high, words, size, ink, "middle", 400, part, box=box))
        self._keep(box, kind, part, out)
        return box

    def op(self, x, y, sign, part=None, size=28):
        """Draw a circle in which paths meet: + adds, * multiplies, . is the dot product."""
        arm, turn = {"*": (0.19, 45), "+": (0.24, 0), ".": (0, 0)}[sign]
        a = n(size * arm)
        out = f'<g transform="translate({n(x)} {n(y)}) rotate({turn})"><circle r="{n(size / 2)}" '
        out += f"{paint(PAPER, SLATE, 1.8)}/>"
        cross = f'<path d="M-{a} 0H{a}M0-{a}V{a}" {paint("none", INK, 2.2)}/></g>'
        out += f'<circle r="3.2" fill="{INK}"/></g>' if sign == "." else cross
        box = Box(x, y, size, size)
        self._keep(box, "op", part, [out])
        return box

    def node(self, x, y, label="", kind="node", radius=20, part=None, size=TEXT, thing=None):
        """Draw a node or a hit, with kind "picked" for the selected one."""
        return self.box(
            kind,
            x,
            y,
            2 * radius,
            2 * radius,
            *([label] if label else []),
            part=part,
            size=size,
            thing=thing,
        )

    def matrix(
        self,
        x,
        y,
        rows,
        columns,
        unit,
        thing,
        label="",
        part=None,
        size=BIG,
        split=1,
        lines="rows",
    ):
        """Draw a matrix to scale, rows x unit by columns x unit, split into blocks of columns.

        Thin lines separate its rows or, with lines="columns", its columns.
        """
        line, ink, area = THINGS[thing]
        box = Box(x, y, columns * unit, rows * unit)
        out = [rectangle(box, 0) + paint(area, line, 2) + "/>"]
        if lines == "columns":
            thin = "".join(
                f"M{n(box.left + k * unit)} {n(box.top)}v{n(box.height)}" for k in range(1, columns)
            )
        else:
            thin = "".join(
                f"M{n(box.left)} {n(box.top + k * unit)}h{n(box.width)}" for k in range(1, rows)
            )
        if thin:
            out.append(f'<path d="{thin}" {paint("none", line, 0.7)} stroke-opacity="0.55"/>')
        for k in range(1, split):
            where = box.left + k * box.width / split
            out.append(f'<path d="M{n(where)} {n(box.top)}v{n(box.height)}" ')
            out.append(paint("none", line, 2) + "/>")
        if label:
            out.append(self._label(x, y, label, size, ink, "middle", 400, part, box=box))
        self._keep(box, f"matrix {thing}", part, out)
        return box

    def features(self, x, y, values, unit=16, thing="state", part=None):
        """Draw numbers from 0 to 1 as a column of cells, darker for larger numbers."""
        line, _, area = THINGS[thing]
        box = Box(x, y, unit, unit * len(values))
        out = [rectangle(box, 0) + paint(area, line, 1.4) + "/>"]
        for k, value in enumerate(values):
            cell = Box(x, box.top + (k + 0.5) * unit, unit, unit)
            out.append(rectangle(cell, 0) + paint(line, line, 1.2))
            out.append(f' fill-opacity="{0.12 + 0.68 * value:.2f}"/>')
        self._keep(box, f"features {thing}", part, out)
        return box

    def frame(self, left, top, right, bottom, label="", part=None, corner="se", fill=PANEL):
        """Draw a block with a name in a corner: "nw", "ne", "sw" or "se"."""
        box = Box((left + right) / 2, (top + bottom) / 2, right - left, bottom - top)
        out = [rectangle(box, 14) + paint(fill, HAIRLINE, 1.5) + "/>"]
        if label:
            x = right - 14 if "e" in corner else left + 14
            y = top + 18 if "n" in corner else bottom - 16
            side = "end" if "e" in corner else "start"
            out.append(self._label(x, y, label, SMALL, QUIET, side, 600, part))
        self._keep(box, "frame", part, out)
        return box

    def _keep(self, box, kind, part, elements):
        name = f"box {kind}" if kind in KINDS or kind == "op" else kind
        self.boxes.append((box, kind, self._named(part)))
        self.shape(name, part, *elements)

    # ------------------------------------------------------------ rows and stacks

    def row(self, left, y, *items, right=None, gap=18, height=64, thing=None):
        """Draw items (kind, width, lines, part) as boxes in a row, with `thing` flowing between
        them.

        A "+" or "*" as kind is a circle. With `right`, equal gaps fill the row. Returns the boxes.
        """
        centres = spread([item[1] for item in items], left, right, gap)
        boxes = []
        for x, (kind, width, lines, part) in zip(centres, items, strict=True):
            if kind in "+*":
                boxes.append(self.op(x, y, kind, part, size=width))
            else:
                boxes.append(self.box(kind, x, y, width, height, *lines, part=part))
        if thing:
            self.chain(boxes, thing, [item[3] for item in items])
        return boxes

    def stack(self, x, top, *items, bottom=None, gap=18, width=150, up=False, thing=None):
        """Draw items (kind, height, lines, part) as boxes in a column, from top to bottom.

        The arrows of `thing` point down, or up with `up`. With `bottom`, equal gaps fill the
        column. All else is as in `row`.
        """
        centres = spread([item[1] for item in items], top, bottom, gap)
        boxes = []
        for y, (kind, height, lines, part) in zip(centres, items, strict=True):
            if kind in "+*":
                boxes.append(self.op(x, y, kind, part, size=height))
            else:
                boxes.append(self.box(kind, x, y, width, height, *lines, part=part))
        if thing:
            parts = [item[3] for item in items]
            way = (boxes[::-1], parts[::-1]) if up else (boxes, parts)
            self.chain(way[0], thing, way[1])
        return boxes

    def chain(self, boxes, thing="state", parts=None):
        """Draw arrows from each box to the next one, to the right, down or up."""
        for k, (a, b) in enumerate(zip(boxes, boxes[1:], strict=False)):
            part = parts[k + 1] if parts else None
            if abs(a.y - b.y) < 1:
                self.arrow(a.e, b.w, thing=thing, part=part)
            else:
                ends = (a.s, b.n) if a.y < b.y else (a.n, b.s)
                self.arrow(*ends, thing=thing, part=part)

    # ------------------------------------------------------------ arrows

    def arrow(
        self,
        *points,
        thing="data",
        kind="flow",
        head=True,
        width=2.4,
        part=None,
        bend=10,
        color=None,
        over=None,
    ):
        """Draw a line with round corners through points, of kind flow, residual, control or rail.

        A branch begins on the line that it leaves, at a right angle. `over` is the colour of the
        background if this line crosses over another one.
        """
        line, edge, _ = THINGS[thing]
        line, width = color or line, 5 if kind == "rail" else width
        self.lines += [
            (a, b, self._named(part), kind) for a, b in zip(points, points[1:], strict=False)
        ]
        tip = 5 + 2.6 * width if head else 0
        path = rounded([*points[:-1], toward(points[-1], points[-2], tip * 0.8)], bend)
        dash = ' stroke-dasharray="7 5"' if kind == "control" else ""
        tube = thing == "memory" and color is None
        out = []
        if over:  # the gap is not at the ends, where the arrow may meet other lines
            inner = [toward(*points[:2], 8), *points[1:-1], toward(*points[:-3:-1], 8)]
            out.append(f'<path d="{rounded(inner, bend)}" {paint("none", over, width + 9)}/>')
        out += [f'<path d="{path}" {paint("none", edge, width + 2.6)}/>'] if tube else []
        out.append(f'<path d="{path}" {paint("none", line, width)}{dash}/>')
        # The head is drawn, because a marker needs an id, which would clash with another drawing's.
        if head:
            rim = f' stroke="{edge}" stroke-width="1.4" stroke-linejoin="round"' if tube else ""
            out.append(f'<path d="{arrow_head(points[-2], points[-1], tip)}" fill="{line}"{rim}/>')
        self.shape(f"arrow {kind} {thing}", part, *out)

    def edge(self, a, b, part=None):
        """Draw an edge of a graph between two nodes: grey, without a head."""
        ends = rims(a, b)
        self.lines.append((*ends, self._named(part), "edge"))
        (x1, y1), (x2, y2) = ends
        line = f'<path d="M{n(x1)} {n(y1)}L{n(x2)} {n(y2)}" {paint("none", EDGE, 2.4)}/>'
        self.shape("edge", part, line)

    def curve(self, points, color=INK, width=2.4, part=None, *, dashed=False, fill="none"):
        """Draw a line through many points and, with `fill`, the area that it encloses."""
        points = list(points)
        data = "M" + "L".join(f"{n(x)} {n(y)}" for x, y in points)
        if fill == "none":
            pairs = zip(points, points[1:], strict=False)
            self.lines += [(a, b, self._named(part), "curve") for a, b in pairs]
        dash = ' stroke-dasharray="8 6"' if dashed else ""
        stroke = paint(fill, color if fill == "none" else "none", width)
        self.shape("curve", part, f'<path d="{data}" {stroke}{dash}/>')

    # ------------------------------------------------------------ the file

    def svg(self, until=None, focus=()):
        """Return the drawing as SVG text.

        `until` and `focus` select steps and parts, as in `tinyattn.course.drawing_shown.shown`.
        Raises ValueError if the alt text is empty, a part is still open, or `focus` names no part.
        """
        if not self.alt:
            raise ValueError(
                f"drawing {self.name}: the alt text is empty. Pass a description of the drawing as "
                "alt="
            )
        if self._inside:
            raise ValueError(
                f"drawing {self.name}: the part {'/'.join(self._inside)} is still open. Call svg "
                "or save after its with block"
            )
        w, h = self.width, self.height
        out = [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="drawing" viewBox="0 0 {w} {h}" '
            f'width="{w}" height="{h}" role="img" data-drawing="{self.name}" '
            f'aria-label="{escape(self.alt)}">',
            f'<rect class="paper" width="{w}" height="{h}" fill="{PAPER}"/>',
        ]
        for k in sorted(self._steps):
            kind = "step fragment" if k else "step"
            out += [f'<g class="{kind}" data-step="{k}">', *self._steps[k], "</g>"]
        return shown("\n".join([*out, "</svg>\n"]), until, focus)

    def save(self, path):
        """Write the drawing to the file `path`, which must end in .svg, and return `path`."""
        if Path(path).suffix != ".svg":
            raise ValueError(f"drawing: path must end in .svg, got {str(path)!r}")
        Path(path).write_text(self.svg(), encoding="utf-8", newline="\n")
        return path

    def _repr_svg_(self):
        return self.svg()

    def __repr__(self):
        return f"<drawing {self.name}: {self.alt}>"
