"""Widgets: small explorers for decks and notebooks, which need neither a server nor a network.

    widgets.temperature([2.0, 1.0, 0.5], ["cat", "dog", "fish"])

A widget shows numbers that the lecture computed. When you move a slider, the page computes
everything that depends on it. The default setting illustrates the main point, and `reset` (or the
key r) returns to it. Where scripts do not run, as in print or in the web view of a notebook, a
static image is shown.
"""

from tinyattn.widgets.graphs import condensation, gravnet, neighbours, over_smoothing, thresholds
from tinyattn.widgets.language import attention, positions, sampling, spectral_radius
from tinyattn.widgets.own_words import own_words
from tinyattn.widgets.weights import score_variance, temperature, vectors
from tinyattn.widgets.widget import Widget

__all__ = [
    "Widget",
    "attention",
    "condensation",
    "gravnet",
    "neighbours",
    "over_smoothing",
    "own_words",
    "positions",
    "sampling",
    "score_variance",
    "spectral_radius",
    "temperature",
    "thresholds",
    "vectors",
]
