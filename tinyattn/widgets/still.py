"""Static images of widgets, for print and for pages without scripts: plain SVG, 960 x 380."""

from html import escape

import numpy as np

INK, SLATE, QUIET, HAIRLINE = "#1F2328", "#46525E", "#5F6B76", "#C9D0D6"
LEFT, TOP, WIDE, HIGH = 80, 40, 830, 270


def _document(parts, title):
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 380" width="960" height="380" '
        f'font-family="sans-serif" font-size="17"><title>{escape(title)}</title>'
        '<rect width="960" height="380" fill="#fff"/>'
    )
    return head + _text(20, 24, title, weight=600) + "".join(parts) + "</svg>"


def _text(x, y, words, anchor="start", color=INK, weight=400):
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}" '
        f'font-weight="{weight}">{escape(str(words))}</text>'
    )


def _line(x0, y0, x1, y1, color=SLATE, width=1.5):
    return (
        f'<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" stroke="{color}" stroke-width="{width}"/>'
    )


def bars(title, labels, values):
    """Draw one bar for each value, with its number above it, and return the SVG text.

    Args:
        title    title of the image
        labels   a label for each bar
        values   numbers >= 0
    """
    most, wide = max(max(values), 1e-30), WIDE / len(values)
    parts = [_line(LEFT, TOP + HIGH, LEFT + WIDE, TOP + HIGH)]
    for i, (label, v) in enumerate(zip(labels, values, strict=True)):
        high = (HIGH - 30) * v / most
        x = LEFT + wide * i
        parts.append(
            f'<rect x="{x + wide * 0.12:.1f}" y="{TOP + HIGH - high:.1f}" fill="{SLATE}" '
            f'width="{wide * 0.76:.1f}" height="{high:.1f}"/>'
        )
        if wide > 30:
            parts.append(_text(x + wide / 2, TOP + HIGH - high - 6, f"{v:.2f}", "middle"))
            parts.append(_text(x + wide / 2, TOP + HIGH + 22, label, "middle"))
    return _document(parts, title)


def _power_of_ten(exponent):
    return "10" + f"{exponent:.0f}".translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def curves(title, x, ys, xlabel, log=False):
    """Draw curves over x, and return the SVG text.

    Args:
        title    title of the image
        x        values of the horizontal axis [N]
        ys       list of curves [N]
        xlabel   label of the horizontal axis
        log      True: the vertical axis shows powers of ten
    """
    x, ys = np.asarray(x, float), [np.asarray(y, float) for y in ys]
    ys = [np.log10(np.maximum(y, 1e-300)) for y in ys] if log else ys
    low, high = min(y.min() for y in ys), max(y.max() for y in ys)
    span, across = (high - low) or 1.0, (x[-1] - x[0]) or 1.0
    parts = []
    for share in (0, 0.5, 1):
        value = low + share * span
        y = TOP + HIGH * (1 - share)
        parts.append(_line(LEFT, y, LEFT + WIDE, y, "#E4E9EE"))
        parts.append(
            _text(LEFT - 8, y + 6, _power_of_ten(value) if log else f"{value:.2g}", "end", QUIET)
        )
        at = LEFT + WIDE * share
        parts.append(_text(at, TOP + HIGH + 22, f"{x[0] + share * across:.3g}", "middle", QUIET))
    for i, y in enumerate(ys):
        places = zip(
            LEFT + WIDE * (x - x[0]) / across, TOP + HIGH * (1 - (y - low) / span), strict=True
        )
        path = "L".join(f"{a:.1f} {b:.1f}" for a, b in places)
        color = ("#0072B2", "#D55E00", SLATE)[i % 3]
        parts.append(f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="2.5"/>')
    parts.append(_text(LEFT + WIDE / 2, TOP + HIGH + 48, xlabel, "middle", QUIET))
    return _document(parts, title)


def cells(title, matrix, rows, columns):
    """Draw a matrix of weights as cells, darker for larger weights, and return the SVG text.

    Args:
        title     title of the image
        matrix    weights [R, C]
        rows      labels of the rows
        columns   labels of the columns
    """
    matrix = np.asarray(matrix, float)
    high, wide = min(26.0, 320 / len(matrix)), min(60.0, 640 / matrix.shape[1])
    most, parts = max(matrix.max(), 1e-30), []
    for r, name in enumerate(rows):
        parts.append(_text(190, 66 + high * (r + 0.7), name, "end"))
        for c, v in enumerate(matrix[r]):
            parts.append(
                f'<rect x="{200 + c * wide:.1f}" y="{60 + r * high:.1f}" width="{wide:.1f}" '
                f'height="{high:.1f}" fill="rgb(70,82,94)" fill-opacity="{v / most:.3f}"/>'
            )
    for c, name in enumerate(columns):
        if wide > 30:
            parts.append(_text(200 + (c + 0.5) * wide, 52, name[: int(wide / 9)], "middle", QUIET))
    return _document(parts, title)


def points(title, places, sizes, edges=()):
    """Draw points and the edges between them, and return the SVG text.

    Args:
        title    title of the image
        places   positions of the points [N, 2]
        sizes    sizes of the points [N], of which the absolute value counts
        edges    pairs (i, j) of indices of points
    """
    places, sizes = np.asarray(places, float), np.asarray(sizes, float)
    low, span = places.min(axis=0), np.maximum(np.ptp(places, axis=0), 1e-9)
    scale = min(860 / span[0], 320 / span[1])
    at = (places - low - span / 2) * [scale, -scale] + [480, 205]
    parts = [_line(*at[i], *at[j], HAIRLINE) for i, j in edges]
    radii = 4 + 11 * np.sqrt(np.abs(sizes) / max(np.abs(sizes).max(), 1e-30))
    for (x, y), r in zip(at, radii, strict=True):
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r:.1f}" fill="{SLATE}" stroke="#fff"/>'
        )
    return _document(parts, title)
