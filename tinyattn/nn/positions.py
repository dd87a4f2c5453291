"""Positions for layers that do not see the order: x [B, T, d] learns where each row stands."""

import numpy as np

from tinyattn.nn.layers import Dropout
from tinyattn.nn.module import Module


def sinusoids(length, d):
    """p[t, 2i] = sin(t / 10000^(2i/d)), p[t, 2i+1] = cos(the same);   [length, d], float64.

    Source: Vaswani et al. 2017, section 3.5; slides S16, N24.
    """
    i = np.arange(d)
    angle = np.arange(length)[:, None] / 10000.0 ** (2 * (i // 2) / d)
    return np.where(i % 2 == 0, np.sin(angle), np.cos(angle))


class PositionalEncoding(Module):
    """y = dropout(x + p[:T]) with the sinusoids p; nothing is learned."""

    def __init__(self, d_model, max_len=5000, dropout=0.0, rng=None):
        self.p = sinusoids(max_len, d_model)  # an array: it need not be saved
        self.dropout = Dropout(dropout, rng)

    def forward(self, x):
        T, d = x.shape[-2:]
        max_len, d_model = self.p.shape
        if T > max_len or d != d_model:
            raise ValueError(
                f"PositionalEncoding: expected [B, T, {d_model}] with T up to {max_len}, "
                f"got {x.shape}"
            )
        return self.dropout(x + self.p[:T].astype(x.dtype))

    def extra_repr(self):
        return f"{self.p.shape[1]}, max_len={self.p.shape[0]}"
