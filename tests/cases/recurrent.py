"""The cases for recurrent layers, with states, lengths and implementations."""

import numpy as np

from tests.cases.layers import layer
from tests.cases.ops import apart, normal
from tinyattn import nn
from tinyattn.nn import Module

__all__ = ["ENDS"]

ENDS = np.array([3, 0, 1])  # one full sequence, one empty, one with padding


class Ended(Module):
    """A recurrent layer whose sequences end at ENDS; its parameters are checked with the inputs."""

    def __init__(self, rnn, several=False):
        self.rnn, self.several = rnn, several

    def forward(self, x, *state):
        return self.rnn(x, state if self.several else (state[0] if state else None), ENDS)

    def __repr__(self):
        return f"{self.rnn!r} impl={self.rnn.impl}, lengths"


class Stepped(Module):
    """A cell with its state as one input more for each of its parts."""

    def __init__(self, cell):
        self.cell = cell

    def forward(self, x, *state):
        return self.cell(x, state if len(state) > 1 else state[0])

    def __repr__(self):
        return f"{self.cell!r} impl={self.cell.impl}, with a state"


X = normal(3, 3, 2)
for impl, order in (("numpy", 2), ("sums", 1), ("kernel", 2)):
    for cls in (nn.RNNCell, nn.GRUCell, nn.LSTMCell)[impl == "kernel" :]:  # an RNN has no kernel
        several = cls is nn.LSTMCell
        states = [normal(2, 3), normal(2, 3) + 1][: 1 + several]
        layer(cls, normal(2, 3), make=cls(3, 2, impl=impl, rng=0), order=order)
        layer(
            cls,
            normal(2, 2),
            *states,
            make=Stepped(cls(2, 3, bias=False, impl=impl, rng=1)),
            order=order,
        )
        layer(cls, normal(0, 3), make=cls(3, 2, impl=impl, rng=0), order=order)
layer(nn.RNNCell, apart(1, 2), make=nn.RNNCell(2, 2, nonlinearity="relu", rng=3))

for cls in (nn.RNN, nn.GRU, nn.LSTM):
    for impl, order in (("numpy", 2), ("sums", 1), ("kernel", 1)):
        options = {"impl": impl, "rng": 0}
        layer(cls, X, make=cls(2, 3, **options), order=order)
        layer(cls, X, make=cls(2, 1, 2, bias=False, bidirectional=True, **options), order=1)
        several = cls is nn.LSTM
        states = [normal(1, 3, 3), normal(1, 3, 3) + 0.5][: 1 + several]
        layer(cls, X, *states, make=Ended(cls(2, 3, **options), several), order=order)
        layer(cls, X, make=Ended(cls(2, 2, bidirectional=True, **options)), order=1)
        layer(cls, normal(1, 0, 2), make=cls(2, 2, **options), order=order)
for impl, order in (("numpy", 2), ("sums", 1), ("kernel", 1)):
    relu = nn.RNN(2, 2, nonlinearity="relu", impl=impl, rng=4)
    layer(nn.RNN, apart(1, 3, 2), make=relu, order=order)
