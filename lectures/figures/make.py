"""Draw all drawings of the lectures, and the graph of one neuron for the README.

python lectures/figures/make.py
"""

from pathlib import Path

import numpy as np
import transformer

import tinyattn as ta
from tinyattn import plot

FOLDER = Path(__file__).parent
DRAWINGS = [
    transformer.transformer,
]  # fmt: skip


def neuron():
    """The graph of one neuron, with values and gradients."""
    w = ta.tensor(2.0, requires_grad=True)
    x = ta.tensor(-1.0, requires_grad=True)
    b = ta.tensor(2.5, requires_grad=True)
    y = np.tanh(w * x + b)
    y.backward(create_graph=True)  # keeps the graph, so that it can be drawn with the gradients
    return plot.graph(y, {"w": w, "x": x, "b": b, "y": y})


if __name__ == "__main__":
    neuron().save(FOLDER / "graph.svg")
    for draw in DRAWINGS:
        drawing = draw()
        drawing.save(FOLDER / f"{drawing.name}.svg")
