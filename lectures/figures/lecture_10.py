"""Lecture 10: EdgeConv, graphs that each layer builds again, DGCNN and ParticleNet."""

from math import dist

from coursekit.drawing import Drawing
from coursekit.drawing.paths import rims
from coursekit.drawing.style import BIG, QUIET, THINGS

STATE, VALUE = THINGS["state"][1], THINGS["value"][1]


def edge_conv():
    """Slide K44, with the signs of the paper; i receives, its neighbours j send."""
    d = Drawing(
        "edge_conv",
        "For every neighbour j of a point i, the same small network computes a message from the "
        "features of i and the difference between the features of j and i. The maximum of each "
        "feature over all messages is the new feature of i.",
        height=450,
    )
    centre = d.node(180, 205, "$x_i$", "picked", 32, part="i", size=22)
    around = ((60, 90), (250, 70), (80, 335), (320, 300))
    nodes = [
        d.node(x, y, f"$x_{j}$", radius=26, part=f"x_{j}", size=20)
        for j, (x, y) in enumerate(around, 1)
    ]
    for node in nodes:
        d.edge(node, centre, part="edges")
    d.note(190, 402, "the $K$ nearest neighbours of point $i$", part="edges")
    ys = (60, 155, 250, 345)
    with d.step(1), d.part("pairs"):
        for j, y in enumerate(ys, 1):
            own = d.matrix(480, y, 1, 3, 26, "state", "$x_i$", size=20)
            d.matrix(558, y, 1, 3, 26, "state", f"$x_{j} - x_i$", size=18)
            if j == 1:
                d.note(own.x, y - 34, "the receiver")
                d.note(564, y + 34, "the difference")
        d.sizes(519, 402, "N", "K", "2 F")
    with d.step(2), d.part("messages"):
        for j, y in enumerate(ys, 1):
            mlp = d.box("linear", 692, y, 84, 52, "MLP")
            d.arrow((597, y), mlp.w, thing="state")
            m = d.matrix(820, y, 1, 4, 24, "value", f"$m_{{{j} \\to i}}$", size=18)
            d.arrow(mlp.e, m.w, thing="value")
        d.note(692, 434, "the same weights for each edge")
        d.sizes(820, 402, "N", "K", "F'")
    with d.step(3), d.part("maximum"):
        pool = d.box("pool", 960, 202, 96, 110, "max")
        for y in (ys[0], ys[-1]):
            d.arrow((868, y), (890, y), (890, 202), thing="value", head=False)
        for y in ys[1:-1]:
            d.arrow((868, y), (890, y), thing="value", head=False)
        d.arrow((890, 202), pool.w, thing="value")
        y = d.matrix(1096, 202, 1, 4, 26, "state", "$y_i$", size=20)
        d.arrow(pool.e, y.w, thing="state")
        d.sizes(1096, 402, "N", "F'")
    return d


PLACES = (  # of eight points in the space of the input, and in the features of two layers
    ((40, 40), (92, 66), (66, 116), (150, 40), (206, 78), (176, 128), (90, 190), (190, 202)),
    ((52, 50), (80, 96), (130, 112), (140, 56), (208, 60), (196, 130), (72, 170), (176, 196)),
    ((60, 62), (46, 104), (176, 176), (88, 92), (190, 52), (212, 92), (66, 146), (204, 200)),
)


def dynamic_graph():
    """DGCNN: each layer finds new neighbours in its input features."""
    d = Drawing(
        "dynamic_graph",
        "In the first layer, a point receives from the points that are nearest in space. Each "
        "later layer finds new neighbours in its input features, so points that are far apart in "
        "space can become neighbours, and information spreads farther.",
    )
    titles = ("nearest in space", "nearest in $x'$", "nearest in $x''$")
    for k, title in enumerate(titles):
        left = 2 + 401 * k
        with d.step(k), d.part(f"layer {k + 1}"):
            d.frame(left, 2, left + 346, 400, part="frame")
            d.heading(left + 16, 34, k + 1, title)
            _neighbours(d, left + 24, 76, PLACES[k])
    for k, letter in enumerate(("x", "x'", "x''")):
        with d.step(k), d.part(f"layer {k + 1}"):
            x = 175 + 401 * k
            d.text(x, 470, f"${letter}$", 28, STATE)
            if k:
                box = d.box("linear", x - 201, 470, 116, 60, "EdgeConv")
                d.arrow((x - 372, 470), box.w, thing="state")
                d.arrow(box.e, (x - 32, 470), thing="state")
    d.note(
        576,
        540,
        "The features have a gradient, but the choice of neighbours has none.",
        part="words",
    )
    return d


def _neighbours(d, left, top, places, k=3):
    nodes = []
    for i, (x, y) in enumerate(places):
        kind = "picked" if i == 1 else "node"
        nodes.append(
            d.node(left + 1.25 * x, top + 1.25 * y, f"{i + 1}", kind, 15, size=16, part="point")
        )
    own = places[1]
    near = sorted(range(8), key=lambda i: dist(places[i], own))
    for i in near[1 : k + 1]:
        d.arrow(*rims(nodes[i], nodes[1], 2), thing="value", width=3, part="edge")


def dgcnn():
    """The segmentation network of Wang et al. 2018, fig. 3, as in the lecture (slide K44)."""
    d = Drawing(
        "dgcnn",
        "Three EdgeConv layers follow each other, and each finds its neighbours in its own input. "
        "Their outputs are concatenated, and a maximum and a mean over all points give one vector "
        "u for the cloud. This vector is appended to the features of every point, and an MLP "
        "predicts the part of each point.",
        height=420,
    )
    y = 100
    d.text(2, y, "$x$", BIG, STATE, "start", part="input")
    d.sizes(2, y + 34, "N", "3", anchor="start", part="input")
    boxes = d.row(
        110,
        y,
        *[("linear", 120, ["kNN,", "EdgeConv"], f"layer {k}") for k in range(1, 4)],
        gap=66,
        height=84,
    )
    d.arrow((34, y), boxes[0].w, thing="state", part="layer 1")
    d.chain(boxes, "state", [f"layer {k}" for k in range(1, 4)])
    for k, box in enumerate(boxes, 1):
        d.sizes(box.x, y - 64, "N", "32", part=f"layer {k}")
    d.note(930, y - 76, "each layer finds the neighbours", part="words")
    d.note(930, y - 50, "in its own input features", part="words")
    low = 330
    with d.step(1), d.part("u"):
        for box in boxes[:2]:
            x = box.right + 33
            d.arrow((x, y), (x, low - 110), thing="state", head=False)
        d.arrow(boxes[2].e, (760, y), thing="state", head=False)
        d.arrow((boxes[0].right + 33, low - 110), (760, low - 110), thing="state", head=False)
        d.arrow((760, y), (760, low - 110), (90, low - 110), (90, low), (130, low), thing="state")
        d.box("linear", 190, low, 120, 60, "dense $g$")
        d.note(190, low + 54, "three outputs, concatenated")
        pool = d.box("pool", 370, low, 96, 84, "max,", "mean")
        d.arrow((250, low), pool.w, thing="state")
        d.note(370, low + 66, "over all points")
        d.arrow(pool.e, (500, low), thing="value")
        d.text(526, low, "$u$", BIG, VALUE)
        d.sizes(526, low + 40, "1", "128")
    with d.step(2), d.part("part of each point"):
        pair = d.matrix(760, low, 1, 6, 28, "state", "$z_i$", size=20)
        d.arrow((760, low - 110), (760, low - 20), thing="state")
        u = d.matrix(900, low, 1, 4, 28, "value", "$u$", size=20)
        d.arrow((526, low - 24), (526, low - 70), (900, low - 70), (900, low - 20), thing="value")
        mlp = d.box("linear", 1020, low, 80, 60, "MLP")
        d.arrow(u.e, mlp.w)
        d.note(pair.x, low + 54, "the same $u$ for every point")
        d.arrow(mlp.n, (1020, low - 90))
        d.text(1020, low - 112, "part of point $i$")
    return d


def particlenet():
    """Slide K45 and Qu, Gouskos 2019, as in models.ParticleNet."""
    d = Drawing(
        "particlenet",
        "Each block connects every particle with its nearest neighbours, the first block by "
        "direction and the others by features. A block computes a message from each pair with "
        "three layers, takes the mean of the messages, and adds a shortcut. After the blocks, a "
        "small network predicts the kind of jet from the mean over all particles.",
    )
    y = 120
    d.text(2, y, "particles", anchor="start", part="input")
    blocks = d.row(
        150,
        y,
        *[
            ("linear", 164, ["EdgeConv block", f"{w}, {w}, {w}"], f"block {k}")
            for k, w in enumerate((64, 128, 256), 1)
        ],
        gap=44,
        height=84,
    )
    d.arrow((84, y), blocks[0].w, thing="state", part="block 1")
    d.chain(blocks, "state", ["block 1", "block 2", "block 3"])
    first, other = r"nearest in $(\Delta\eta, \Delta\phi)$", "nearest in features"
    places = (first, other, other)
    for box, words in zip(blocks, places, strict=True):
        d.note(box.x, y - 66, words, part="neighbours")
    pool, mlp = d.row(
        808,
        y,
        ("pool", 96, ["mean"], "pool"),
        ("linear", 84, ["MLP"], "MLP"),
        gap=40,
        height=84,
        thing="state",
    )
    d.arrow(blocks[-1].e, pool.w, thing="state", part="pool")
    d.arrow(mlp.e, (1080, y), part="MLP")
    d.text(1150, y - 24, "kind of jet", anchor="end", part="MLP")
    with d.step(1), d.part("inside"):
        d.frame(2, 220, 1150, 556, part="frame")
        d.text(22, 252, "inside a block", anchor="start", weight=600)
        _inside(d)
    return d


def _inside(d):
    low, high = 370, 500
    d.text(36, high, "$x$", BIG, STATE)
    d.arrow((54, high), (560, high), thing="state", head=False)
    knn = d.box("activation", 148, low, 116, 52, "$K$ nearest")
    d.arrow((80, high), (80, low), knn.w, thing="state")
    pair = d.matrix(318, low, 1, 5, 28, "state", r"$x_i \,\Vert\, x_j - x_i$", size=18)
    d.arrow(knn.e, pair.w, thing="state")
    layers = d.row(
        416,
        low,
        *[("linear", 96, ["linear", "BN, ReLU"], f"layer {k}") for k in (1, 2, 3)],
        gap=20,
        height=64,
    )
    d.arrow(pair.e, layers[0].w, thing="state")
    d.chain(layers, "value")
    mean = d.box("pool", 826, low, 84, 80, "mean")
    d.arrow(layers[-1].e, mean.w, thing="value")
    d.note(826, low - 58, "over the neighbours", color=QUIET)
    plus = d.op(940, low, "+", size=32)
    d.arrow(mean.e, plus.w, thing="value")
    short = d.box("linear", 610, high, 100, 48, "linear, BN", size=18)
    d.arrow((540, high), short.w, thing="state")
    d.arrow(short.e, (940, high), plus.s, thing="state", kind="residual")
    relu = d.box("activation", 1026, low, 76, 44, "ReLU")
    d.arrow(plus.e, relu.w, thing="state")
    d.arrow(relu.e, (1100, low), thing="state")
    d.text(1122, low, "$y$", BIG, STATE)
    d.note(740, high + 26, "shortcut", color=STATE)
