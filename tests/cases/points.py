"""The cases of `tests/cases/ops.py` for point clouds: layers, condensation, models.

Points are far enough apart that a small step does not change who is whose neighbour.
"""

from functools import partial

import numpy as np

from tests.cases.layers import layer
from tests.cases.ops import CASES, apart, case, normal, positive
from tinyattn import graph, models, nn
from tinyattn.graph import mean_max, squared_distances
from tinyattn.graph.neighbours import neighbour_max, pair_sums

__all__ = ["CASES"]

INDEX = np.array([[0, 1, 2], [1, 2, 3], [2, 0, 4], [3, 1, 0], [4, 4, 1]])
BATCH = np.array([0, 0, 0, 1, 1, 1])

for impl in ("numpy", "sums", "kernel"):
    order = 2 if impl == "numpy" else 1
    case(mean_max, positive(5, 3), apart(5, 2), INDEX, order=order, impl=impl)
    case(
        mean_max,
        positive(5, 3),
        np.ones((5, 2)),
        INDEX,
        note=f"{impl}, messages differ by w",
        f=lambda w, h, i, impl=impl: mean_max(w, h, i, impl),
        order=order,
    )
    if impl != "sums":
        case(neighbour_max, apart(5, 2), INDEX, order=order, impl=impl)
        case(neighbour_max, apart(5, 2), INDEX[:, [0, 0, 1]], order=order, impl=impl)  # ties
        case(pair_sums, normal(5, 2), apart(5, 2), INDEX, order=order, impl=impl)
        case(squared_distances, normal(5, 2), INDEX, order=order, impl=impl)

CLOUD = np.array([[0.0, 0.1], [1.0, 0.3], [0.4, 1.2], [5.0, 5.2], [5.9, 5.5], [5.3, 6.7]])


def tanh_net():
    return nn.Sequential(nn.Linear(4, 3, rng=0), nn.Tanh(), nn.Linear(3, 2, rng=1))


for aggr in ("max", "mean", "sum"):
    for net in (nn.Linear(4, 3, rng=0), tanh_net()):
        make = partial(graph.DynamicEdgeConv, net, 2, aggr)
        layer(graph.DynamicEdgeConv, CLOUD, make=make, batch=BATCH)
    case(
        graph.edge_conv,
        CLOUD[:5],
        note=f"{aggr}, not linear first",
        f=lambda x, aggr=aggr: graph.edge_conv(np.tanh, x, INDEX[:, :2], aggr),
    )
GRAPHS = graph.knn_graph(CLOUD, 2, BATCH), graph.Graph([0, 1, 2, 2, 4], [1, 0, 1, 1, 3], 6)
for g in GRAPHS:  # as many neighbours for each, and any; node 5 hears nobody in the second
    for aggr in ("max", "mean", "sum"):
        for net in (nn.Linear(4, 3, rng=0), tanh_net()):
            layer(graph.EdgeConv, CLOUD, make=partial(graph.EdgeConv, net, aggr), graph=g)
layer(
    graph.GravNetConv,
    CLOUD,
    make=partial(graph.GravNetConv, 2, 3, 2, 2, 2, 0.5, rng=3),
    batch=BATCH,
)

BETA = np.array([0.3, 0.8, 0.1, 0.6, 0.45, 0.2])
TRUTH = np.array([0, 0, 1, 1, -1, -1])
for batch in (None, np.array([0, 0, 0, 1, 1, 1])):
    for loss in (None, positive(6)):
        inputs = (BETA, 0.6 * apart(6, 2)) + (() if loss is None else (loss,))
        case(
            graph.condensation_loss,
            *inputs,
            note=f"{loss is not None} {batch is not None}",
            f=lambda b, x, p=None, batch=batch: graph.condensation_loss(
                b, x, TRUTH, p, batch, s_B=0.7, s_C=1.3
            ),
        )
for truth, note in ((np.full(6, -1), "noise only"), (np.zeros(6, int), "one object")):
    case(
        graph.condensation_loss,
        BETA,
        0.6 * apart(6, 2),
        note=note,
        f=lambda b, x, truth=truth: graph.condensation_loss(b, x, truth),
    )
    case(
        graph.condensation_terms,
        BETA,
        0.6 * apart(6, 2),
        note=note,
        f=lambda b, x, truth=truth: sum(graph.condensation_terms(b, x, truth)),
    )

# models are put together from what is checked above; one of each kind, small
layer(
    models.GravNetModel,
    CLOUD,
    batch=BATCH,
    order=1,
    make=partial(models.GravNetModel, 2, 1, 2, 3, 3, 2, 2, 2, 3, rng=0),
)
layer(
    models.DGCNN,
    CLOUD,
    batch=BATCH,
    order=1,
    make=partial(models.DGCNN, 2, 2, 2, (3, 3), 4, (3,), 0.0, rng=0),
)
layer(
    models.DGCNNSegmentation,
    CLOUD,
    batch=BATCH,
    order=1,
    make=partial(models.DGCNNSegmentation, 2, 2, 2, (3, 3), 4, (3,), 0.0, rng=0),
)
JETS, MASK = apart(2, 4, 3), np.array([[True] * 4, [True, True, False, False]])
NET = models.ParticleNet(3, 2, 2, ((3, 3), (3,)), 3, 0.0, rng=0)
case(models.ParticleNet, JETS, order=1, f=lambda x: NET(CLOUD[:4] + np.zeros((2, 1, 1)), x, MASK))
