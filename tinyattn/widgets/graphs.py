"""Widgets about points and graphs: neighbours, over-smoothing, GravNet, object condensation."""

import math

import numpy as np

from tinyattn.engine.ranges import check_range
from tinyattn.widgets import still
from tinyattn.widgets.widget import Widget, names_of, numbers, whole_numbers


def neighbours(points, sizes=None, *, k=4, what="particle"):
    """Explore points with edges from their k nearest points, or from all points within a radius.

    Args:
        points   positions [N, 2] of at least two points
        sizes    sizes of the drawn points [N], such as their momenta, at least 0 and not all 0. If
                 None, all are equal
        k        initial number of neighbours of each point, at least 1. The point itself does not
                 count. The slider ends at N - 1, or at 24 for more points
        what     word for a point, in the singular

    Returns:
        a `Widget`

    Raises:
        TypeError: `k` is not a whole number
        ValueError: `points` is not [N, 2] with N >= 2, `sizes` is not [N], or they contain
            something other than finite numbers
        ValueError: a size is negative, all sizes are 0, or `k` is less than 1
    """
    points = _plane("neighbours", "points", points)
    sizes = np.ones(len(points)) if sizes is None else numbers("neighbours", "sizes", sizes, 1)
    check_range("widgets.neighbours", 1, whole=True, k=k)
    if len(points) < 2:
        raise ValueError("widgets.neighbours: points must contain at least two points, got only 1")
    if len(sizes) != len(points):
        raise ValueError(
            f"widgets.neighbours: sizes must have {len(points)} entries, one for each point, got "
            f"{len(sizes)}"
        )
    if sizes.min() < 0 or sizes.max() == 0:
        came = f"{sizes.min():g} at index {sizes.argmin()}" if sizes.min() < 0 else "only zeros"
        raise ValueError(f"widgets.neighbours: expected sizes >= 0 that are not all 0, got {came}")
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
    """Explore how the values of one feature become alike in all nodes of a graph, layer by layer.

    Args:
        features   values of the feature [L + 1, N]. Row 0 has the values before the first of L
                   layers, and row l those after l layers
        edges      pairs of connected nodes [E, 2] int, from 0 to N - 1
        places     positions of the nodes [N, 2], between -1 and 1
        labels     a label for each of the N nodes, for which there is room for one character. If
                   None, the indices of the nodes

    Returns:
        a `Widget`

    Raises:
        TypeError: `labels` is not a list
        ValueError: an array has the wrong shape or contains something other than finite numbers,
            or the number of labels is not N
        ValueError: an edge has an index that is not whole or belongs to no node, or a position is
            below -1 or above 1
    """
    features = numbers("over_smoothing", "features", features, 2)
    places = _plane("over_smoothing", "places", places)
    count = features.shape[1]
    if len(places) != count:
        raise ValueError(
            f"widgets.over_smoothing: places must have shape ({count}, 2), with one position for "
            f"each node in features, got shape {places.shape}"
        )
    if np.abs(places).max() > 1:
        raise ValueError(
            "widgets.over_smoothing: expected -1 <= places <= 1, got "
            f"{places.flat[np.abs(places).argmax()]:.15g}. Write places / np.abs(places).max()"
        )
    edges = numbers("over_smoothing", "edges", edges, 2)
    if edges.shape[1] != 2:
        advice = ". Transpose edges" if len(edges) == 2 else ""
        raise ValueError(
            f"widgets.over_smoothing: edges must be pairs [E, 2], got shape {edges.shape}{advice}"
        )
    wrong = np.flatnonzero((edges != np.rint(edges)) | (edges < 0) | (edges >= count)) // 2
    if len(wrong):
        raise ValueError(
            f"widgets.over_smoothing: edges must be pairs of whole numbers from 0 to {count - 1}, "
            f"got ({edges[wrong[0], 0]:g}, {edges[wrong[0], 1]:g}) at index {wrong[0]}"
        )
    edges = edges.astype(int)
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
    """Explore the weights exp(-c d²) of the neighbours of a point in the learned space of GravNet.

    Args:
        distances   distances d of the K neighbours [K] from the point, at least 0
        sharpness   initial value of c, above 0 and finite

    Returns:
        a `Widget`

    Raises:
        TypeError: `sharpness` is not a number
        ValueError: `distances` is not a list of finite numbers >= 0, or `sharpness` is not finite
            and above 0
    """
    distances = numbers("gravnet", "distances", distances, 1)
    check_range("widgets.gravnet", above=0, below=math.inf, sharpness=sharpness)
    if (distances < 0).any():
        raise ValueError(
            f"widgets.gravnet: expected distances >= 0, got {distances.min():g} at index "
            f"{distances.argmin()}"
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

    "own" is the object to which the point belongs, which you choose on the page. The sum is over
    all other objects.

    Args:
        centres   positions of the condensation points of K objects [K, 2]
        charges   charges q of the K condensation points [K]
        names     names of the K objects. If None, "object 1", "object 2", ...
        x         initial position (x₁, x₂) of the point that you drag

    Returns:
        a `Widget`

    Raises:
        TypeError: `names` is not a list
        ValueError: an array has the wrong shape or contains something other than finite numbers,
            or the number of charges or names is not K
    """
    centres = _plane("condensation", "centres", centres)
    charges = numbers("condensation", "charges", charges, 1)
    if len(charges) != len(centres):
        raise ValueError(
            f"widgets.condensation: charges must have {len(centres)} "
            f"{'entry' if len(centres) == 1 else 'entries'}, one for each row of centres, got "
            f"{len(charges)}"
        )
    given = [f"object {i + 1}" for i in range(len(centres))] if names is None else names
    x = numbers("condensation", "x", x, 1)
    if len(x) != 2:
        raise ValueError(
            f"widgets.condensation: x must be a pair of numbers (x₁, x₂), got {len(x)} "
            f"{'number' if len(x) == 1 else 'numbers'}"
        )
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
        beta     β of each point [N], the confidence from 0 to 1 that it represents its object
        x        learned position of each point [N, 2]
        truth    index of the true object of each point [N] int, negative if it has none. If None,
                 the true objects are not shown
        t_beta   initial threshold of β. Only points with a larger β can start an object
        t_d      initial distance within which a condensation point collects the free points

    Returns:
        a `Widget`

    Raises:
        TypeError: `t_beta` or `t_d` is not a number
        ValueError: `beta`, `x` or `truth` has the wrong shape, or they have different numbers of
            points
        ValueError: an array contains something other than finite numbers, an index in `truth` is
            not whole, or a threshold is nan
    """
    beta, x = numbers("thresholds", "beta", beta, 1), _plane("thresholds", "x", x)
    truth = None if truth is None else whole_numbers("thresholds", "truth", truth)
    check_range("widgets.thresholds", t_beta=t_beta, t_d=t_d)
    if len(beta) != len(x) or (truth is not None and len(truth) != len(x)):
        which = "beta and x" if truth is None else "beta, x and truth"
        came = f"{len(beta)} and {len(x)}"
        came = came if truth is None else f"{len(beta)}, {len(x)} and {len(truth)}"
        raise ValueError(
            f"widgets.thresholds: {which} must have the same number of points, got {came}"
        )
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
        advice = f". Transpose {what}" if len(points) == 2 else ""
        raise ValueError(f"widgets.{name}: {what} must be [N, 2], got shape {points.shape}{advice}")
    return points
