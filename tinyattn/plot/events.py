"""Drawings of events and their objects: potentials, shapes, drift circles, tables of numbers."""

import numpy as np

from tinyattn.engine.autograd import Tensor
from tinyattn.plot.picture import figure
from tinyattn.plot.style import COLORS, INK, style

NOISE = "#A8A8A8"  # hits that belong to no object
PAPER = 0.93  # brightness of a pixel of no object
RED = COLORS[1]


def landscape(potential, title, scale, size=(9.5, 3.9)):
    """Draw a potential around a point: a map with the forces, and a cut through the middle.

    Args:
        potential  function of the distance, which is an array or Tensor of any shape. The
                   function consists of NumPy functions, so that its gradient can be computed
        title      title of the whole figure
        scale      strength of a force whose arrow has length 1
        size       (width, height) in inches

    Returns:
        a `Picture`
    """
    line = np.linspace(-1.6, 1.6, 161)
    X, Y = np.meshgrid(line, line)
    picture = figure(1, 2, size=size, width_ratios=(1.1, 1))
    ax, cut = picture.axes
    drawn = ax.contourf(X, Y, potential(np.hypot(X, Y)), 12, cmap="Blues")
    picture.figure.colorbar(drawn, ax=ax, label="potential for charge 1")
    at = np.stack(np.meshgrid(*[np.linspace(-1.5, 1.5, 12)] * 2), axis=-1).reshape(-1, 2)
    x = Tensor(at, requires_grad=True)
    potential(np.sqrt(np.sum(np.square(x), axis=1))).sum().backward()
    ax.quiver(*at.T, *-x.grad.T, color=RED, angles="xy", scale_units="xy", scale=scale, width=0.006)
    ax.plot(0, 0, "o", color="black", ms=9)
    ax.set(aspect="equal", xlabel="x₁", ylabel="x₂", title="Potential and force (arrows)")
    cut.plot(line, potential(np.abs(line)), color=COLORS[0])
    cut.set(xlabel="x₁ (at x₂ = 0)", ylabel="potential", title="Cut through the middle")
    picture.figure.suptitle(title)
    return picture


def shape_outline(kind, size, centre):
    """Return the corners [n, 2] of a circle, square or triangle. The last one repeats the first.

    Args:
        kind     0 for a circle, 1 for a square, 2 for a triangle, as in `data.overlaps`
        size     size of the shape in pixels, which is the radius of a circle
        centre   column and row of the centre
    """
    if kind == 0:
        a = np.linspace(0, 2 * np.pi, 60)
        corners = np.stack([np.cos(a), np.sin(a)], axis=1)
    elif kind == 1:
        corners = 0.85 * np.array([[-1, -1], [1, -1], [1, 1], [-1, 1], [-1, -1]])
    else:
        corners = np.array([[0, -1], [0.85, 0.7], [-0.85, 0.7], [0, -1]])
    return np.asarray(centre) + size * corners


def collected_pixels(images, beta, found, outlines, size=(11, 5.4)):
    """Draw three rows: images with the predicted outlines, their β, and the objects found.

    Args:
        images    images in RGB [B, side, side, 3]
        beta      β of each pixel [B, side, side], the confidence from 0 to 1 that it represents
                  its object
        found     index of the object found for each pixel [B, side, side] int, negative for none
        outlines  for each image, a list of outlines with corners [n, 2]
        size      (width, height) in inches

    Returns:
        a `Picture`
    """
    colors = [[int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)] for c in COLORS]
    colors = np.array([*colors, [PAPER] * 3])  # the last one is for pixels of no object
    B = len(images)
    picture = figure(3, B, size=size)
    for b in range(B):
        shown, weight, objects = picture.axes[b::B]
        shown.imshow(images[b])
        for corners in outlines[b]:
            shown.plot(*corners.T, color="black")
        weight.imshow(beta[b], cmap="Blues", vmin=0, vmax=1)
        own = np.unique(found[b], return_inverse=True)[1].reshape(found[b].shape)
        own = own - (found[b].min() < 0)  # -1 takes the last colour
        objects.imshow(colors[np.where(own >= 0, own % len(COLORS), -1)])
    for ax in picture.axes:
        ax.set_axis_off()
    for row, text in enumerate(("image and predicted outlines", "β", "objects found")):
        picture.axes[B * row].set_title(text, loc="left")
    return picture


def drift_circles(ax, wire, drift, numbers):
    """Draw each hit of a drift chamber as the circle around its wire that the particle touched.

    Args:
        ax       Axes to draw into
        wire     positions of the wires [N, 2]
        drift    drift distances [N]
        numbers  index of the colour of each hit [N] int. Hits with a negative index are grey
    """
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Circle

    colors = [COLORS[n % len(COLORS)] if n >= 0 else NOISE for n in numbers]
    circles = [Circle(w, max(d, 0.006)) for w, d in zip(wire, drift, strict=True)]
    ax.add_collection(PatchCollection(circles, facecolor="none", edgecolor=colors, linewidth=1.6))
    ax.set(xlim=(-1.08, 1.08), ylim=(-1.08, 1.08), aspect="equal")
    ax.add_patch(Circle((0, 0), 1.04, fill=False, color="#BBBBBB"))
    ax.axis("off")


def table(values, rows, columns, *, title=None, digits=2, size=(11, 4.4), shade=None):
    """Draw numbers as a table with horizontal names and a darker background for larger numbers.

    Args:
        values   numbers [R, C], where nan leaves a cell empty, or strings, which are written
                 unchanged
        rows     R names
        columns  C names
        title    title of the figure, or None
        digits   number of digits after the point
        size     (width, height) in inches
        shade    darkness of each cell [R, C], from 0 to 1. If None, the values, which must then be
                 numbers

    Returns:
        a `Picture`
    """
    values = np.asarray(values, object)
    shade = np.asarray(values if shade is None else shade, float)
    with style():
        picture = figure(size=size)
        ax = picture.ax
        ax.imshow(np.nan_to_num(shade), cmap="Blues", vmin=0, vmax=1.6, aspect="auto")
        for (i, j), value in np.ndenumerate(values):
            if isinstance(value, str):
                text = value
            else:
                text = "" if np.isnan(value) else f"{value:z,.{digits}f}".replace("-", "−")
            ax.text(j, i, text, ha="center", va="center", fontsize=15, color=INK)
        ax.set_xticks(range(len(columns)), columns, fontsize=14)
        ax.set_yticks(range(len(rows)), rows, fontsize=14)
        ax.xaxis.tick_top()
        ax.tick_params(length=0)
        ax.grid(False)
        for spine in ax.spines.values():
            spine.set_visible(False)
        if title:
            picture.figure.suptitle(title)
    return picture
