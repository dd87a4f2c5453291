"""Draw the picture of the README: the graph of one neuron, with values and gradients.

python lectures/figures/make.py
"""

from pathlib import Path

import numpy as np

import tinyattn as ta
from tinyattn import plot

w = ta.tensor(2.0, requires_grad=True)
x = ta.tensor(-1.0, requires_grad=True)
b = ta.tensor(2.5, requires_grad=True)
y = np.tanh(w * x + b)
y.backward(create_graph=True)  # keeps the graph, so that it can be drawn with the gradients

picture = plot.graph(y, {"w": w, "x": x, "b": b, "y": y})
picture.save(Path(__file__).parent / "graph.svg")
