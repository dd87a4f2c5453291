"""A drawing that is read from its file and shown up to a step, or with some parts made pale."""

import re
from html import unescape

PALE = 0.25  # opacity of the parts that are not in focus


class SavedDrawing:
    """A drawing that was read from its file and appears at the end of a notebook cell."""

    def __init__(self, svg):
        self.svg = svg

    def _repr_svg_(self):
        return self.svg

    def __repr__(self):
        return unescape(re.search(r'aria-label="([^"]*)"', self.svg)[1])


def shown(svg, until=None, focus=()):
    """Return the SVG text of a drawing up to a step, with all parts pale except some.

    If `until` or `focus` is given, the drawing no longer builds up by key presses.

    Args:
        svg     text of the drawing
        until   number of the last step that is shown. If None, all are shown
        focus   name or names of the parts that keep their colour, together with the parts inside
                them. If empty, all parts do

    Raises:
        ValueError: the drawing has no such part
    """
    lines, keep = [], True
    for line in svg.split("\n"):
        begins = re.match(r'<g class="step[^"]*" data-step="(\d+)">', line)
        if begins or line == "</svg>":
            keep = until is None or not begins or int(begins[1]) <= until
        if keep:
            lines.append(line)
    text = "\n".join(lines)
    if until is not None or focus:
        text = text.replace('class="step fragment"', 'class="step"')
    return _with_focus(text, [focus] if isinstance(focus, str) else list(focus))


def _with_focus(svg, focus):
    there = set(re.findall(r'data-part="([^"]*)"', svg))
    lit = {part for part in there for name in focus if f"{part}/".startswith(f"{name}/")}
    for name in focus:
        if not any(f"{part}/".startswith(f"{name}/") for part in there):
            raise ValueError(
                f"the drawing has no part {name!r}. Choose one of {', '.join(sorted(there))}"
            )
    if not focus:
        return svg
    return re.sub(
        r'<g class="part ([^"]*)" data-part="([^"]*)"',
        lambda g: (
            f'<g class="part {"lit " if g[2] in lit else ""}{g[1]}" data-part="{g[2]}"'
            + ("" if g[2] in lit else f' opacity="{PALE}"')
        ),
        svg,
    )
