"""Encoders of images for the captioners, which compute features of the regions of an image.

`Regions` is a stack of convolutions, and `CaptionerCells` is an MLP for the cells of a grid. Read
`Regions` first.

Letters: B images, R regions or cells with D features each.

Source: Xu et al. 2015 "Show, Attend and Tell", slide KB08.
"""

import numpy as np

import tinyattn.functional as F
from tinyattn import nn
from tinyattn.engine.autograd import Tensor
from tinyattn.engine.random import generator
from tinyattn.nn.init import normal_parameter
from tinyattn.nn.validation import check_sizes


class Regions(nn.Module):
    """A stack of convolutions that computes features of the regions of an image.

        z = places + relu(conv(... relu(conv(1 - images))))

    Each 3 by 3 convolution has stride 2, so L convolutions divide the image into regions of 2^L by
    2^L pixels, which come in reading order (row by row). The features of a region also depend on
    some pixels of neighbouring regions. Because attention ignores the order of the regions, a
    learned vector for the position of each region is added (`places`). Pixels are inverted, so that
    white (1) becomes 0.

    Args:
        channels   number of channels of an image, 3 for RGB
        widths     tuple with the number of channels after each convolution, of which the last is D
        count      number R of regions of an image
        rng        seed or numpy.random.Generator for the initial values, or None for the default
                   generator

    Raises:
        ValueError: channels, count or a width is not a whole number >= 1
        TypeError: widths is not a tuple or list, or is empty

    Source: Xu et al. 2015 (regions of a CNN), slide KB08.
    """

    def __init__(self, channels, widths, count, rng=None):
        check_sizes(self, single=True, channels=channels, count=count)
        check_sizes(self, widths=widths)
        if not isinstance(widths, tuple | list) or not widths:
            raise TypeError(
                "Regions: widths must be a tuple with a number of channels for each convolution, "
                f"got {widths!r}. Write, for example, widths=(16, 32)"
            )
        rng = generator(rng)
        self.channels, sizes = channels, (channels, *widths)
        self.convolutions = nn.ModuleList(
            [
                nn.Conv2d(a, b, 3, stride=2, padding=1, rng=rng)
                for a, b in zip(sizes, widths, strict=False)
            ]
        )
        self.size = widths[-1]
        self.places = normal_parameter((count, self.size), 0.3, rng)

    def forward(self, images):
        """Compute the features of the regions.

        Args:
            images   images with values from 0 to 1 [B, height, width, channels]

        Returns:
            z [B, R, D], where z_j are the features of region j

        Raises:
            ValueError: images are not [B, height, width, channels] with the layer's number of
                channels, an integer array contains numbers above 1, or an image does not have
                `count` regions
            TypeError: images do not consist of numbers
        """
        x = _images("Regions", images, self.channels)
        x = np.moveaxis(1 - x, -1, 1)  # [B, channels, height, width]
        for convolution in self.convolutions:
            x = F.relu(convolution(x))
        x = np.reshape(x, (x.shape[0], x.shape[1], x.shape[2] * x.shape[3]))
        return _placed("Regions", "regions", np.swapaxes(x, 1, 2), self.places)


class CaptionerCells(nn.Module):
    """An MLP for the cells of a grid, z_j = places_j + W₂ relu(W₁ (1 - cell_j) + b₁) + b₂.

    All cells share the MLP. The features of a cell depend only on the pixels of this cell, so its
    attention weight shows how much these pixels were used. As in `Regions`, a learned vector for
    the position of each cell is added (`places`), and pixels are inverted.

    Args:
        channels   number of channels of an image, 3 for RGB
        cell       width and height of a cell in pixels, a single number
        size       number D of features of a cell
        count      number R of cells of an image
        rng        seed or numpy.random.Generator for the initial values, or None for the default
                   generator

    Raises:
        ValueError: channels, cell, size or count is not a whole number >= 1
    """

    def __init__(self, channels, cell, size, count, rng=None):
        check_sizes(self, single=True, channels=channels, cell=cell, size=size, count=count)
        rng = generator(rng)
        self.channels, self.cell, self.size = channels, cell, size
        self.first = nn.Linear(cell * cell * channels, size, rng=rng)
        self.second = nn.Linear(size, size, rng=rng)
        self.places = normal_parameter((count, size), 0.3, rng)

    def forward(self, images):
        """Compute the features of the cells, row by row.

        Args:
            images   images with values from 0 to 1 [B, height, width, channels]

        Returns:
            z [B, R, D], where z_j are the features of cell j

        Raises:
            ValueError: images are not [B, height, width, channels] with the layer's number of
                channels, an integer array contains numbers above 1, height or width is not a
                multiple of `cell`, or an image does not have `count` cells
            TypeError: images do not consist of numbers
        """
        x = _images("CaptionerCells", images, self.channels)
        b, height, width, channels = x.shape
        s = self.cell
        if height % s or width % s:
            raise ValueError(
                f"CaptionerCells: images of {height} by {width} pixels cannot be cut into cells of "
                f"{s} by {s}. Choose a cell that divides height and width"
            )
        x = np.reshape(1 - x, (b, height // s, s, width // s, s, channels))
        x = np.reshape(np.swapaxes(x, 2, 3), (b, (height // s) * (width // s), s * s * channels))
        return _placed("CaptionerCells", "cells", self.second(F.relu(self.first(x))), self.places)


def _images(name, images, channels):
    """Return images as a Tensor [B, height, width, channels], after a check of their values."""
    x = images if isinstance(images, Tensor) else Tensor(images)
    if x.ndim != 4 or x.shape[3] != channels:
        advice = ""
        if x.ndim == 3 and x.shape[2] == channels:
            advice = ". Write images[None] for one image"
        elif x.ndim == 4 and x.shape[1] == channels:
            advice = ". Write np.moveaxis(images, 1, 3)"
        raise ValueError(
            f"{name}: images must be [B, height, width, channels] with {channels} "
            f"channel{'' if channels == 1 else 's'}, got shape {x.shape}{advice}"
        )
    if x.dtype.kind in "iu" and x.data.max(initial=0) > 1:
        raise ValueError(
            f"{name}: images must have values from 0 to 1, got {x.dtype} up to {x.data.max()}. "
            "Divide them by 255"
        )
    return x


def _placed(name, parts, z, places):
    """Add the position vectors `places` [R, D] to z [B, R, D], where R counts the `parts`."""
    if z.shape[1] != len(places):
        create = f"Create {name} with count={z.shape[1]}, or pass" if z.shape[1] else "Pass"
        raise ValueError(
            f"{name}: each image has {z.shape[1]} {parts if z.shape[1] != 1 else parts[:-1]}, "
            f"expected count={len(places)}. {create} images of another size"
        )
    return z + places
