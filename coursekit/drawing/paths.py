"""The SVG elements of drawings: numbers, rectangles, paths, arrow heads."""

from html import escape
from math import hypot

from coursekit.drawing.style import EM, formula


def n(x):
    """Format a coordinate with at most one decimal."""
    return f"{round(x, 1) + 0.0:.1f}".removesuffix(".0")


def paint(fill, stroke, width):
    return f'fill="{fill}" stroke="{stroke}" stroke-width="{width:g}" stroke-linejoin="round"'


def rectangle(box, corner):
    """Return the beginning of a rectangle's element, to which its paint is added later."""
    rx = f'rx="{n(corner)}" ' if corner else ""
    return (
        f'<rect x="{n(box.left)}" y="{n(box.top)}" width="{n(box.width)}" '
        f'height="{n(box.height)}" {rx}'
    )


def outline(tex, x, base, size, color):
    """Draw a formula with its left end at x, and with a stroke that makes it bold enough to
    project.
    """
    scale = size * 1.06 / EM
    return (
        f'<path class="math" transform="translate({n(x)} {n(base)}) scale({scale:.4g})" '
        f'd="{formula(tex)[0]}" fill="{color}" stroke="{color}" '
        f'stroke-width="{0.35 / scale:.3g}"><title>{escape(tex)}</title></path>'
    )


def toward(start, end, length):
    """Return the point `length` pixels from start on the way to end."""
    (x1, y1), (x2, y2) = start, end
    way = hypot(x2 - x1, y2 - y1) or 1
    return x1 + (x2 - x1) / way * length, y1 + (y2 - y1) / way * length


def rims(a, b, gap=0):
    """Return the points where a line from one round node to another leaves and arrives."""
    ends = (a.x, a.y), (b.x, b.y)
    return toward(*ends, a.width / 2 + gap), toward(*ends[::-1], b.width / 2 + gap)


def arrow_head(before, end, length):
    """Draw a triangle with its tip at `end`, for a line that comes from `before`."""
    bx, by = toward(end, before, length)
    ux, uy = (end[0] - bx) * 0.46, (end[1] - by) * 0.46
    corners = end, (bx + uy, by - ux), (bx - uy, by + ux)
    return f"M{'L'.join(f'{n(x)} {n(y)}' for x, y in corners)}Z"


def rounded(points, radius):
    """Return the data of a path through points, with rounded corners."""
    points = [p for k, p in enumerate(points) if k == 0 or p != points[k - 1]]
    data = f"M{n(points[0][0])} {n(points[0][1])}"
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        r = min(radius, *(hypot(corner[0] - p[0], corner[1] - p[1]) / 2 for p in (before, after)))
        (x1, y1), (x2, y2) = toward(corner, before, r), toward(corner, after, r)
        data += f"L{n(x1)} {n(y1)}Q{n(corner[0])} {n(corner[1])} {n(x2)} {n(y2)}"
    return data + f"L{n(points[-1][0])} {n(points[-1][1])}"
