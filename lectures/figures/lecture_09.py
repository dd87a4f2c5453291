"""Lecture 09: messages along edges, GCN and GAT, the block of a graph network."""

from coursekit.drawing import Drawing
from coursekit.drawing.paths import rims
from coursekit.drawing.style import BIG, PAPER, QUIET, THINGS, Box

VALUE, STATE = THINGS["value"][1], THINGS["state"][1]
PLACES = {"1": (108, 110), "2": (468, 110), "i": (288, 290), "3": (108, 470), "4": (468, 470)}
EDGES = ("1i", "2i", "3i", "13", "24")
FEATURES = {
    "1": (0.9, 0.1, 0.5, 0.6),
    "2": (0.1, 0.8, 0.5, 0.7),
    "3": (0.6, 0.8, 0.1, 0.9),
    "4": (0.3, 0.9, 0.7, 0.1),
    "i": (0.2, 0.5, 0.9, 0.3),
}


def messages():
    """Slides K36 to K39: y_i = □ over the neighbours j of φ(x_i, x_j, e_ij)."""
    d = Drawing(
        "messages",
        "Each neighbour j sends a message to node i, computed from the features of both nodes and "
        "of the edge. The messages are summed, or their mean or maximum is taken. An update "
        "computes the new features of i from the old ones and from this result.",
    )
    nodes = _graph(d)
    for name, (x, y) in PLACES.items():
        left = name in "13"
        x_cells = x - 52 if left else x + 52
        d.features(x_cells, y, FEATURES[name], part=f"x_{name}")
        d.text(
            x_cells + (-18 if left else 18),
            y,
            f"$x_{name}$",
            22,
            STATE,
            "end" if left else "start",
            part=f"x_{name}",
        )
    with d.step(1):
        d.heading(650, 40, 1, "a message along each edge", "message")
        d.text(
            691,
            84,
            r"$m_{j \to i} = \Phi\,(x_i,\ x_j,\ e_{ij})$",
            BIG,
            anchor="start",
            part="message",
        )
        d.note(691, 118, "$e_{ij}$: features of the edge", "start", part="message")
        for name, (x, y) in {"1": (122, 222), "2": (454, 222), "3": (122, 358)}.items():
            a, b = rims(nodes[name], nodes["i"], 4)
            d.arrow(a, b, thing="value", width=4, part=f"message/{name}")
            side = "start" if name != "2" else "end"
            d.text(x, y, rf"$m_{{{name} \to i}}$", 20, VALUE, side, part=f"message/{name}")
        for name, (x, y) in {"1": (210, 176), "2": (366, 176), "3": (210, 404)}.items():
            side = "start" if name != "2" else "end"
            d.text(x, y, f"$e_{{i{name}}}$", 18, QUIET, side, part=f"edge {name}i")
    _receive(d)
    return d


def _receive(d):
    with d.step(2), d.part("gather"):
        d.heading(650, 160, 2, "gather")
        plus = d.op(826, 280, "+", size=36)
        for name, y in (("1", 220), ("2", 280), ("3", 340)):
            d.text(720, y, rf"$m_{{{name} \to i}}$", 20, VALUE, "end")
            points = [(732, y), plus.w] if y == 280 else [(732, y), (826, y), plus.n]
            d.arrow(*(points if y != 340 else [*points[:2], plus.s]), thing="value")
        d.note(826, 378, "or mean or max", part="gather")
    with d.step(3), d.part("update"):
        d.heading(900, 160, 3, "update")
        box = d.box("linear", 980, 280, 108, 60, "update")
        d.arrow(plus.e, box.w, thing="value")
        d.arrow((980, 362), box.s, thing="state")
        d.text(980, 386, "$x_i$", BIG, STATE)
        d.arrow(box.e, (1096, 280), thing="state")
        d.text(1124, 280, "$x_i'$", BIG, STATE)
        d.text(
            691,
            482,
            r"$x_i' = \mathrm{update}\,(x_i,\ \sum_{j \in N(i)} m_{j \to i})$",
            22,
            anchor="start",
        )


def _graph(d, edges=EDGES, radius=30):
    nodes = {}
    places = {name: PLACES[name] for name in sorted({c for edge in edges for c in edge})}
    for name, (x, y) in places.items():
        kind = "picked" if name == "i" else "node"
        nodes[name] = d.node(x, y, f"${name}$", kind, radius, part=f"node {name}", size=22)
    for a, b in edges:
        d.edge(nodes[a], nodes[b], part=f"edge {a}{b}")
    return nodes


def gcn_gat():
    """Slides N04 and N05: who decides how much a neighbour counts."""
    d = Drawing(
        "gcn_gat",
        "On the left is a GCN, in which the weights of the neighbours depend only on the numbers "
        "of edges, so training cannot change them. On the right is a GAT, in which a small learned "
        "function of both nodes computes a score, and the softmax over the neighbours gives the "
        "weights.",
    )
    weights = {"gcn": (0.29, 0.35, 0.22, 0.25), "gat": (0.08, 0.62, 0.1, 0.2)}
    for k, (name, title) in enumerate(
        (("gcn", "GCN: weights from the graph"), ("gat", "GAT: weights from the features"))
    ):
        left = 600 * k
        with d.step(k), d.part(name):
            d.frame(left + 2, 2, left + 550, 558, part="frame")
            d.heading(left + 20, 34, k + 1, title)
            _weighted_star(d, left + 219, 214, weights[name])
            d.note(left + 276, 372, "$i$ receives, $j$ sends")
            if name == "gcn":
                d.text(left + 276, 436, r"$c_{ij} = 1\,/\,\sqrt{\tilde d_i\, \tilde d_j}$", BIG)
                d.note(left + 276, 484, r"$\tilde d_i$: number of neighbours, including $i$ itself")
                d.note(left + 276, 514, "training does not change these weights")
            else:
                d.text(
                    left + 276,
                    420,
                    r"$e_{ij} = \mathrm{LeakyReLU}(a \cdot [z_i \,\Vert\, z_j])$",
                    22,
                )
                d.text(left + 276, 462, r"$\alpha_{ij} = \mathrm{softmax}_j\,(e_{ij})$", 22)
                d.note(left + 276, 500, "$a$ is learned, and the weights of $i$ sum to 1")
                d.note(left + 276, 528, r"$z_i = h_i W$")
    return d


def _weighted_star(d, x, y, weights):
    """Node i with three neighbours and itself; arrows as wide as their weights."""
    around = {"1": (x - 110, y - 104), "2": (x + 190, y - 104), "3": (x - 110, y + 110)}
    centre = d.node(x + 40, y, "$i$", "picked", 30, part="node i", size=22)
    for (name, place), weight in zip(around.items(), weights, strict=False):
        node = d.node(*place, f"${name}$", "node", 26, part=f"node {name}", size=22)
        d.arrow(
            *rims(node, centre, 3), thing="value", width=1.5 + 12 * weight, part=f"weight/{name}"
        )
        mid = ((place[0] + x + 40) / 2, (place[1] + y) / 2)
        label = (mid[0] + (34 if name != "2" else 40), mid[1] + (-22 if name == "1" else 26))
        d.text(*label, f"{weight:.2f}", part=f"weight/{name}", color=THINGS["data"][1])
    own = weights[3]
    d.arrow(
        (x + 70, y + 8),
        (x + 150, y + 8),
        (x + 150, y + 80),
        (x + 46, y + 80),
        (x + 46, y + 33),
        thing="value",
        width=1.5 + 12 * own,
        part="weight/i",
    )
    d.text(x + 178, y + 46, f"{own:.2f}", part="weight/i", color=THINGS["data"][1])
    d.note(x + 178, y + 84, "itself", "start", part="weight/i")


def graph_block():
    """Slide K35 and the block of Battaglia et al. 2018."""
    d = Drawing(
        "graph_block",
        "First, each edge is updated from its old features, its two nodes and the global features. "
        "Then, each node is updated from the sum of its incoming edges, its old features and the "
        "global features. Last, the global features are updated from their old values and the sums "
        "over all edges and all nodes.",
    )
    rows = (
        ("edges", "e_{ij}", "value", 110, 320, r"$e_{ij},\ x_i,\ x_j,\ u$"),
        ("nodes", "x_i", "state", 286, 590, r"$\rho(e'),\ x_i,\ u$"),
        ("global", "u", "data", 462, 860, r"$\rho(e'),\ \rho(x'),\ u$"),
    )
    for name, letter, thing, y, x, takes in rows:
        color = THINGS[thing][1]
        with d.part(name):
            d.text(2, y - 20, name, anchor="start", weight=600)
            d.text(2, y + 16, f"${letter}$", BIG, color, "start")
            box = Box(x, y, 190, 84)
            d.arrow((80, y), box.w, thing=thing, width=3, part="old")
            with d.step({"edges": 1, "nodes": 2, "global": 3}[name]):
                d.box("linear", x, y, 190, 84, part="MLP")
                d.text(x, y - 20, "MLP", part="MLP")
                d.text(x, y + 16, takes, part="MLP")
                d.arrow(box.e, (1070, y), thing=thing, width=3, part="new")
                new = letter.replace("_{ij}", "_{ij}'").replace("x_i", "x_i'").replace("u", "u'")
                d.text(1086, y, f"${new}$", BIG, color, "start", part="new")
    with d.step(1), d.part("edges"):
        d.arrow((280, 286), (280, 152), thing="state")
        d.arrow((360, 462), (360, 152), over=PAPER)
    with d.step(2), d.part("nodes"):
        _pooled(d, 550, 110, 244, "value")
        d.arrow((630, 462), (630, 328))
    with d.step(3), d.part("global"):
        _pooled(d, 820, 110, 420, "value", over=PAPER)
        _pooled(d, 900, 286, 420, "state")
    d.note(
        1150,
        540,
        r"$\rho$: sum, mean or maximum of any number of vectors, in any order",
        "end",
        part="global",
    )
    return d


def _pooled(d, x, top, bottom, thing, over=None):
    """All rows of what flows at height `top` become one, which goes down to a box."""
    pill = d.box("activation", x, top + 62, 46, 34, r"$\rho$")
    d.arrow((x, top), pill.n, thing=thing)
    d.arrow(pill.s, (x, bottom), thing=thing, over=over)


def who_hears_whom():
    """Slide K34: how an MLP, a CNN, attention and a graph network exchange information."""
    d = Drawing(
        "who_hears_whom",
        "Each of four layers has its inputs below and its outputs above. In an MLP, an output "
        "depends on all inputs, with a separate weight for each. In a CNN, it depends only on its "
        "neighbours. In attention, it depends on all inputs, with weights computed from the "
        "features. In a graph network, it depends on the inputs to which an edge connects it.",
    )
    kinds = (
        ("MLP", "all inputs, a weight for each", lambda i, j: 1),
        ("CNN", "neighbours, shared weights", lambda i, j: abs(i - j) <= 1),
        ("attention", "all inputs, computed weights", lambda i, j: 1),
        ("graph network", "inputs with an edge", lambda i, j: (i, j) in JOINED or i == j),
    )
    shares = (0.1, 0.55, 0.05, 0.2, 0.1)
    for k, (name, words, reaches) in enumerate(kinds):
        left = 292 * k
        with d.step(k), d.part(name.split()[0]):
            d.frame(left + 2, 2, left + 274, 420, part="frame")
            d.heading(left + 16, 34, k + 1, name)
            places = [left + 34 + 52 * i for i in range(5)]
            lower = [d.node(x, 310, "", "node", 14, part=f"x_{i}") for i, x in enumerate(places)]
            kind = lambda j: "picked" if j == 2 else "node"
            upper = [d.node(x, 130, "", kind(j), 14, part=f"y_{j}") for j, x in enumerate(places)]
            for i, j in ((i, j) for i in range(5) for j in range(5) if reaches(i, j) and j != 2):
                d.arrow(
                    *rims(lower[i], upper[j], 2),
                    thing="data",
                    width=0.8,
                    head=False,
                    part=f"{i} to {j}",
                )
            for i in (i for i in range(5) if reaches(i, 2)):
                width = 1 + 9 * shares[i] if name == "attention" else 3
                d.arrow(*rims(lower[i], upper[2], 2), thing="value", width=width, part=f"{i} to 2")
            d.note(left + 138, 370, words)
    with d.step(4):
        d.text(
            576, 480, "After one layer, the dark output depends on the inputs with a green arrow."
        )
        d.note(576, 520, "To depend on other inputs, it needs more layers or more edges.")
    return d


JOINED = {(0, 2), (4, 2), (2, 0), (2, 4), (0, 1), (1, 0), (3, 4), (4, 3)}  # both ways
