"""The cases of `tests/gradient_cases.py` for recurrent layers, with states, lengths and rungs."""

import numpy as np

from tests.gradient_cases import apart, case, normal
from tests.layer_cases import layer
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


for cls in (nn.RNNCell, nn.GRUCell):
    layer(cls, normal(2, 3), make=cls(3, 2, rng=0))
    layer(cls, normal(2, 3), normal(2, 2), make=cls(3, 2, bias=False, rng=1))
    layer(cls, normal(0, 3), make=cls(3, 2, rng=0))
layer(nn.RNNCell, apart(1, 2), make=nn.RNNCell(2, 2, nonlinearity="relu", rng=3))
layer(nn.LSTMCell, normal(2, 3), make=nn.LSTMCell(3, 2, rng=0))
LSTM_CELL = nn.LSTMCell(2, 3, bias=False, rng=1)
case(nn.LSTMCell, normal(2, 2), normal(2, 3), normal(2, 3) + 1, note="with a state",
     f=lambda x, h, c: LSTM_CELL(x, (h, c)))  # fmt: skip

X = normal(3, 3, 2)
for cls in (nn.RNN, nn.GRU, nn.LSTM):
    for impl, order in (("matmul", 2), ("sums", 1), ("kernel", 1)):
        options = {"impl": impl, "rng": 0}
        layer(cls, X, make=cls(2, 3, **options), order=order)
        layer(cls, X, make=cls(2, 1, 2, bias=False, bidirectional=True, **options), order=1)
        several = cls is nn.LSTM
        states = [normal(1, 3, 3), normal(1, 3, 3) + 0.5][: 1 + several]
        layer(cls, X, *states, make=Ended(cls(2, 3, **options), several), order=order)
        layer(cls, X, make=Ended(cls(2, 2, bidirectional=True, **options)), order=1)
        layer(cls, normal(1, 0, 2), make=cls(2, 2, **options), order=order)
for impl, order in (("matmul", 2), ("sums", 1), ("kernel", 1)):
    relu = nn.RNN(2, 2, nonlinearity="relu", impl=impl, rng=4)
    layer(nn.RNN, apart(1, 3, 2), make=relu, order=order)
