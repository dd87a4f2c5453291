"""The language in which the lectures draw networks, as SVG. Every figure starts with `Drawing`."""

from coursekit.drawing.drawing import Drawing

__all__ = ["Drawing"]
