"""Widgets about points and graphs: neighbours, over-smoothing, GravNet, object condensation."""

import math

import numpy as np

from tinyattn.engine.ranges import check_range
from tinyattn.widgets import still
from tinyattn.widgets.widget import Widget, names_of, numbers


def neighbours(points, sizes=None, *, k=4, what="particle"):
    """Explore points with edges from their k nearest points, or from all points within a radius.

    Args:
        points   positions [N, 2]
        sizes    sizes of the drawn points [N], such as their momenta. If None, all are equal
        k        initial number of neighbours of each point, without the point itself
        what     word for a point, such as "particle"

    Returns:
        a `Widget`
    """
    points = _plane("neighbours", "points", points)
    sizes = np.ones(len(points)) if sizes is None else numbers("neighbours", "sizes", sizes, 1)
    check_range("widgets.neighbours", 1, whole=True, k=k)
    if len(sizes) != len(points) or len(points) < 2:
        raise ValueError(
            "widgets.neighbours: expected at least two points and one size for each, got "
            f"{len(points)} points and {len(sizes)} sizes"
        )
    apart = np.linalg.norm(points[:, None] - points[None], axis=-1)
    np.fill_diagonal(apart, np.inf)
    near = np.argsort(apart, axis=1, kind="stable")[:, :k]
    edges = [(int(j), i) for i in range(len(points)) for j in near[i]]
    reach = float(np.ptp(points, axis=0).max()) / 2
    return Widget(
        "neighbours",
        "Neighbours: the k nearest, or all within a radius",
        "With the k nearest, each point has k neighbours, however far away they are. With a "
        "radius, the neighbours of a point are all other points within this distance, of which "
        "there may be none. Point at a point to see its neighbours.",
        {"points": points, "sizes": sizes, "what": what, "reach": reach, "start": {"k": k}},
        still.points(f"the {k} nearest neighbours", points, sizes, edges),
    )


def over_smoothing(features, edges, places, labels=None):
    """Explore a feature of each node after 0, 1, 2, ... layers.

    Args:
        features   value of the feature [L + 1, N], before the first layer and after each of L
                   layers
        edges      pairs of connected nodes [E, 2] int
        places     positions of the nodes [N, 2], between -1 and 1
        labels     a character for each of the N nodes. If None, their indices

    Returns:
        a `Widget`
    """
    features = numbers("over_smoothing", "features", features, 2)
    places = _plane("over_smoothing", "places", places)
    count = features.shape[1]
    if len(places) != count:
        raise ValueError(
            f"widgets.over_smoothing: places must have one row for each of the {count} nodes, got "
            f"{len(places)}"
        )
    if np.abs(places).max() > 1:
        raise ValueError(
            "widgets.over_smoothing: places must be between -1 and 1, got up to "
            f"{np.abs(places).max():.3g}. Write places / np.abs(places).max()"
        )
    edges = numbers("over_smoothing", "edges", edges, 2).astype(int)
    if edges.shape[1] != 2 or edges.min() < 0 or edges.max() >= count:
        raise ValueError(
            f"widgets.over_smoothing: edges must be pairs [E, 2] of nodes from 0 to {count - 1}, "
            f"got shape {edges.shape} with {edges.min()} to {edges.max()}"
        )
    signs = names_of("over_smoothing", "labels", labels, count)
    return Widget(
        "layers_on_graph",
        "Many layers make all nodes alike",
        "Each layer mixes a node with its neighbours. The colour is one feature, blue above 0 and "
        "orange below. The character in a node is its label.",
        {"features": features, "edges": edges, "places": places, "signs": signs},
        still.points("before the first layer", places, features[0], edges.tolist()),
    )


def gravnet(distances, sharpness=10.0):
    """Explore the weights exp(-c d²) of the neighbours of a point in the learned space.

    Args:
        distances   distances d of the K neighbours [K], at least 0
        sharpness   initial value of c, above 0

    Returns:
        a `Widget`
    """
    distances = numbers("gravnet", "distances", distances, 1)
    check_range("widgets.gravnet", above=0, below=math.inf, sharpness=sharpness)
    if (distances < 0).any():
        raise ValueError(
            f"widgets.gravnet: expected distances >= 0, got {distances.min():g} among them"
        )
    d = np.linspace(0, max(distances.max(), 0.1), 101)
    return Widget(
        "gravnet",
        "GravNet: how far a neighbour still counts",
        "The message of a neighbour is multiplied by exp(−c d²). If the network moves the points "
        "farther apart, this has the same effect as a larger c.",
        {"distances": distances, "start": {"c": float(np.log10(sharpness))}},
        still.curves(f"weight exp(−{sharpness:g} d²)", d, [np.exp(-sharpness * d * d)], "distance"),
    )


def condensation(centres=((-1.2, 0.2), (0.9, -0.3)), charges=(1.0, 1.0), names=None, x=(0.4, 0.1)):
    """Explore the potential at a point x that you drag between condensation points.

        V = q_own |x - x_own|² + Σ_other q_other max(0, 1 - |x - x_other|)

    "own" is the object to which the point belongs, and the sum is over all other objects.

    Args:
        centres   positions of the condensation points of K objects [K, 2]
        charges   their charges q [K]
        names     names of the objects. If None, "object 1", "object 2", ...
        x         initial position of the point (x₁, x₂)

    Returns:
        a `Widget`
    """
    centres = _plane("condensation", "centres", centres)
    charges = numbers("condensation", "charges", charges, 1)
    if len(charges) != len(centres):
        raise ValueError(
            f"widgets.condensation: charges must have one entry for each of the {len(centres)} "
            f"centres, got {len(charges)}"
        )
    given = names or [f"object {i + 1}" for i in range(len(centres))]
    x = numbers("condensation", "x", x, 1)
    if len(x) != 2:
        raise ValueError(f"widgets.condensation: x must be a pair of numbers, got {len(x)} numbers")
    return Widget(
        "condensation",
        "The force on a point in object condensation",
        "The condensation point of its own object attracts the point, more strongly from farther "
        "away. The others repel it, but only within the distance 1 (the dashed circle).",
        {
            "centres": centres,
            "charges": charges,
            "start": {"x": x},
            "names": names_of("condensation", "names", given, len(centres)),
        },
        still.points("condensation points and a point", np.vstack([centres, x]), [*charges, 0.5]),
    )


def thresholds(beta, x, truth=None, t_beta=0.1, t_d=0.8):
    """Explore how object condensation collects the points of an event into objects.

    Args:
        beta     β of each point [N]
        x        learned position of each point [N, 2]
        truth    true object of each point [N] int, or None if it is not shown
        t_beta   initial threshold: only points with a larger β can start an object
        t_d      initial distance t_d within which an object collects the free points

    Returns:
        a `Widget`
    """
    beta, x = numbers("thresholds", "beta", beta, 1), _plane("thresholds", "x", x)
    if len(beta) != len(x) or (truth is not None and len(truth) != len(x)):
        raise ValueError(
            "widgets.thresholds: beta, x and truth must have the same number of points, got "
            f"{len(beta)}, {len(x)} and {'no truth' if truth is None else len(truth)}"
        )
    truth = None if truth is None else [int(t) for t in truth]
    return Widget(
        "thresholds",
        "From points to objects: two thresholds",
        "The point with the highest β above the threshold becomes a condensation point and "
        "collects all free points within t_d (the dashed circle). Then the remaining free point "
        "with the highest β follows, and so on. Condensation points have a thick edge.",
        {
            "beta": beta,
            "x": x,
            "start": {"t_beta": t_beta, "t_d": t_d},
            **({} if truth is None else {"truth": truth}),
        },
        still.points("points as large as their β", x, beta),
    )


def _plane(name, what, points):
    points = numbers(name, what, points, 2)
    if points.shape[1] != 2:
        raise ValueError(f"widgets.{name}: {what} must be [N, 2], got shape {points.shape}")
    return points
