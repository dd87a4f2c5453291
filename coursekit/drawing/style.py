"""The style of the drawings: colours, kinds of boxes, font sizes, widths of words.

Only data that flows is coloured, with the same colours in every lecture. Boxes, edges and frames
are grey. A square, filled box has weights, and a round, white box has none.
"""

import re
from dataclasses import dataclass
from functools import cache

INK, SLATE, QUIET = "#1F2328", "#46525E", "#5F6B76"
EDGE, HAIRLINE, PAPER, PANEL = "#808C97", "#C9D0D6", "#FFFFFF", "#FAFBFC"

# What flows along a line: the colours of the (line, words, area). The words have a contrast of at
# least 4.5 on paper and on the area.
THINGS = {
    "data": (SLATE, "#333D47", "#E9EDF1"),  # raw input, weights of attention, plain numbers
    "query": ("#0072B2", "#00609A", "#DCEBF6"),
    "key": ("#D55E00", "#A34700", "#FCE6D7"),
    "value": ("#009E73", "#006B4E", "#D8F1E8"),  # a message is a value of attention
    "state": ("#C0609A", "#8F3469", "#F8E4EF"),  # a node's features are its state
    # this colour is too light for a line alone, so the line is drawn with an edge
    "memory": ("#E69F00", "#7A5400", "#FCEFCF"),
}
# The colours of two classes of points: (line, words, area). The classes also differ in shape.
OBJECTS = (("#0F7C80", "#0B5F62", "#E3F1F1"), ("#8A6BBE", "#5F4494", "#F0ECF7"))

# kind of box: (fill, stroke, width of the stroke, radius of the corners, words)
KINDS = {
    "linear": ("#E4E9EE", SLATE, 1.8, 3, INK),
    "embedding": ("#E4E9EE", SLATE, 1.8, 3, INK),
    "attention": ("#33414E", "#33414E", 1.8, 3, PAPER),  # the only dark box: positions mix here
    "norm": ("#F4F6F8", SLATE, 1.4, 3, INK),
    "softmax": (PAPER, SLATE, 1.8, 99, INK),
    "activation": (PAPER, SLATE, 1.8, 99, INK),
    "pool": (PAPER, SLATE, 1.8, 0, INK),
    "node": (THINGS["data"][2], SLATE, 2.2, 99, INK),
    "picked": ("#33414E", "#33414E", 2.2, 99, PAPER),  # the selected node
}

BIG, TEXT, SMALL, SMALLEST = 24, 20, 17, 16  # pixels on a page of 1280 x 720
SANS = "'Deck Sans','Source Sans 3','Segoe UI',Helvetica,Arial,'Liberation Sans',sans-serif"
MONO = "'Deck Mono','JetBrains Mono',Menlo,Consolas,'Liberation Mono',monospace"
# The widths of the characters from " " to "~" in the deck's font, in hundredths of the font size.
# Each is stored as the character with the code width + 32.
WIDTHS = (
    "4=KRRr]9>>JR9?9CRRRRRRRRRR99RRRJuV[Y^UQ^a:PZQiabYbYUV`ToSPV>C"
    ">RRVRWNXR=RV99R:sWVXXCJBVOhMOJ>8>R"
)
EM = 200  # coordinates of formula outlines are rounded to 1/200 of the font size


@dataclass(frozen=True)
class Box:
    """The centre and size of an object, with the middles of its sides as n, e, s and w."""

    x: float
    y: float
    width: float
    height: float

    @property
    def n(self):
        return self.x, self.y - self.height / 2

    @property
    def s(self):
        return self.x, self.y + self.height / 2

    @property
    def e(self):
        return self.x + self.width / 2, self.y

    @property
    def w(self):
        return self.x - self.width / 2, self.y

    @property
    def left(self):
        return self.w[0]

    @property
    def right(self):
        return self.e[0]

    @property
    def top(self):
        return self.n[1]

    @property
    def bottom(self):
        return self.s[1]

    def at(self, side, share):
        """Return a point on a side. share=0 is the left or upper end, and share=1 is the other
        end.
        """
        x, y = getattr(self, side)
        away = share - 0.5
        return (x + away * self.width, y) if side in "ns" else (x, y + away * self.height)


def spread(widths, left, right=None, gap=16):
    """Return the centres of objects in a row from `left`, with equal gaps if `right` is given."""
    if right is not None and len(widths) > 1:
        gap = (right - left - sum(widths)) / (len(widths) - 1)
    centres = []
    for width in widths:
        centres.append(left + width / 2)
        left += width + gap
    return centres


def runs(label):
    """Return the pieces of a label, which are formulas (between dollars) and words, in order."""
    return [run for run in re.split(r"(\$[^$]+\$)", label) if run]


def extent(run, size, weight=400, mono=False):
    """Return (width, height above, depth below the baseline) of a piece of a label, in pixels."""
    if run[0] == "$":
        _, *extents = formula(run[1:-1])
        return tuple(e * size * 1.06 / EM for e in extents)
    if mono:
        return len(run) * size * 0.6, 0.78 * size, 0.12 * size
    if not run.isascii():
        character = next(c for c in run if not c.isascii())
        raise ValueError(
            f"drawing: {run!r} has the character {character!r}, which is not ASCII. Write it as a "
            "formula between dollar signs"
        )
    units = sum(ord(WIDTHS[ord(c) - 32]) - 32 for c in run) / 100
    return units * size * (1 + (weight - 400) / 7000), 0.78 * size, 0.12 * size


@cache
def formula(tex):
    """Return (outline, width, height, depth) of a formula in units of 1/200 of its size.

    The outline is the data of an SVG path, with its baseline at 0. Matplotlib typesets it, so it
    needs no font and looks the same everywhere.
    """
    from matplotlib.font_manager import FontProperties
    from matplotlib.mathtext import MathTextParser
    from matplotlib.textpath import TextPath

    font = FontProperties(size=EM, math_fontfamily="cm")
    set_ = MathTextParser("path").parse(f"${tex}$", 72, font)
    path, data, here = TextPath((0, 0), f"${tex}$", size=EM, prop=font), [], (0, 0)
    for points, code in path.iter_segments(curves=True, simplify=False):
        pairs = [(round(x), round(-y)) for x, y in zip(points[::2], points[1::2], strict=True)]
        if code == path.MOVETO:
            data.append(f"M{pairs[0][0]} {pairs[0][1]}")
        elif code == path.CLOSEPOLY:
            data.append("z")
            continue
        else:  # differences from the last point are shorter to write
            steps = " ".join(f"{x - here[0]} {y - here[1]}" for x, y in pairs)
            data.append(" mlqc"[int(code)] + steps.replace(" -", "-"))
        here = pairs[-1]
    return "".join(data), set_.width, set_.height, set_.depth
