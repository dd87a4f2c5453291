"""Pictures into words: a small convolutional network sees, an LSTM writes.

`Captioner` looks at another part of the picture for every word (soft attention); for
`FixedCaptioner` the whole picture must fit into one vector. Both share everything else.

Source: Xu et al. 2015 "Show, Attend and Tell", Vinyals et al. 2015 "Show and Tell"; slides
KB08-KB13.
"""

import math
from typing import NamedTuple

import numpy as np

import tinyattn.functional as F
from tinyattn import nn
from tinyattn.autograd import Tensor, no_grad
from tinyattn.models.generation import beam_search
from tinyattn.models.writing import evaluating
from tinyattn.ops.elementwise import plain
from tinyattn.random import generator


class Regions(nn.Module):
    """Features z [B, R, D] of the R regions of pictures [B, height, width, channels].

    Convolutions of 3 by 3 with ReLU; each ends in a pooling layer that joins 2 by 2 pixels, so L
    layers make regions of 2^L by 2^L pixels, in reading order. `grid(images)` says how many rows
    and columns of them.
    """

    def __init__(self, channels, widths, rng=None):
        rng = generator(rng)
        sizes = (channels, *widths)
        self.convolutions = nn.ModuleList(
            [nn.Conv2d(a, b, 3, padding=1, rng=rng) for a, b in zip(sizes, widths, strict=False)]
        )
        self.size = widths[-1]

    def forward(self, images):
        x = images if isinstance(images, Tensor) else Tensor(images)
        if x.ndim != 4:
            raise ValueError(f"Regions: images are [B, height, width, channels], got {x.shape}")
        x = np.moveaxis(x, -1, 1)  # [B, channels, height, width]
        for convolution in self.convolutions:
            x = F.max_pool2d(F.relu(convolution(x)), 2)
        x = np.reshape(x, (x.shape[0], x.shape[1], -1))
        return np.swapaxes(x, 1, 2)  # [B, R, D]


class Cells(nn.Module):
    """Features z [B, R, D] of the cells of a grid: one MLP, alone on each cell of `cell` pixels.

    A region sees its own pixels and nothing else, so a weight on it can be read as a look at it.
    """

    def __init__(self, channels, cell, size, rng=None):
        rng = generator(rng)
        self.cell, self.size = cell, size
        self.first = nn.Linear(cell * cell * channels, size, rng=rng)
        self.second = nn.Linear(size, size, rng=rng)

    def forward(self, images):
        x = images if isinstance(images, Tensor) else Tensor(images)
        b, height, width, channels = x.shape
        s = self.cell
        if height % s or width % s:
            raise ValueError(f"Cells: {height} by {width} pixels cannot be cut into cells of {s}")
        x = np.reshape(x, (b, height // s, s, width // s, s, channels))
        x = np.reshape(np.swapaxes(x, 2, 3), (b, (height // s) * (width // s), s * s * channels))
        return F.relu(self.second(F.relu(self.first(x))))  # [B, R, D]


class AdditiveScore(nn.Module):
    """e_i = v · tanh(W h + U z_i), [B, R] (Xu et al. 2015, Bahdanau et al. 2015)."""

    def __init__(self, state, features, size, rng=None):
        rng = generator(rng)
        self.from_state = nn.Linear(state, size, rng=rng)
        self.from_region = nn.Linear(features, size, bias=False, rng=rng)
        self.v = nn.Linear(size, 1, bias=False, rng=rng)

    def forward(self, h, z):
        return self.v(np.tanh(self.from_state(h)[:, None] + self.from_region(z)))[:, :, 0]


class DotScore(nn.Module):
    """e_i = (W h) · (U z_i) / √size, [B, R]: query and key (Vaswani et al. 2017)."""

    def __init__(self, state, features, size, rng=None):
        rng = generator(rng)
        self.size = size
        self.from_state = nn.Linear(state, size, bias=False, rng=rng)
        self.from_region = nn.Linear(features, size, bias=False, rng=rng)

    def forward(self, h, z):
        q, k = self.from_state(h), self.from_region(z)
        return np.einsum("bd,brd->br", q, k) / math.sqrt(self.size)
