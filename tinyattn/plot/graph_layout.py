"""The layout of a computation graph, from left to right (Sugiyama, Tagawa, Toda 1981).

1. `ranks`       the column of each node: right of its last input, with leaves next to their reader
2. `with_bends`  an edge that passes a column gets a bend there, which divides it into links
                 between neighbouring columns
3. `order`       the order in each column: repeatedly by the mean position of the neighbours
                 (barycentre), keeping the order with the fewest crossings
4. `heights`     y of each node, as near to its neighbours as the order and the gaps allow

A node is its index. An edge is (from, to, slot), where slot is its position among the inputs of
`to`.
"""

from bisect import bisect_right, insort
from collections import defaultdict
from itertools import pairwise

COLUMN_GAP, ROW_GAP, BEND_GAP = 42, 18, 14  # pixels
SWEEPS = 24
BEND = (0, 0)  # size of a bend


def layout(sizes, edges, free=()):
    """Return the centres (x, y) of nodes, the points of edges, and the size (width, height).

    Args:
        sizes   (width, height) of each node in pixels
        edges   list of (from, to, slot)
        free    nodes whose inputs have no order. At all other nodes, edges arrive from top to
                bottom in the order of their slots
    """
    rank = ranks(len(sizes), edges)
    chains = with_bends(rank, edges)
    sizes = [*sizes, *[BEND] * (len(rank) - len(sizes))]
    arriving = defaultdict(list)  # node -> its incoming edges, ordered by input
    for i, (_, v, _) in sorted(enumerate(edges), key=lambda e: e[1][2]):
        arriving[v].append(i)
    ports = [0.0] * len(edges)  # vertical offset from the node's centre at which an edge arrives
    for v in set(arriving) - set(free):
        _set_ports(ports, arriving[v], sizes[v])
    links = [
        (u, v, port if v == chain[-1] else 0)
        for chain, port in zip(chains, ports, strict=True)
        for u, v in pairwise(chain)
    ]
    columns = order(rank, links)
    y = heights(columns, sizes, links)
    for v in set(arriving) & set(free):
        _set_ports(ports, sorted(arriving[v], key=lambda i: y[chains[i][-2]]), sizes[v])
    x, sides = _across(columns, sizes)
    centres = [(x[rank[v]], y[v]) for v in range(len(sizes))]
    lines = [
        _line(chain, port, centres, sizes, [sides[rank[v]] for v in chain])
        for chain, port in zip(chains, ports, strict=True)
    ]
    bottom = max([y[v] + sizes[v][1] / 2 for v in range(len(sizes))])
    return centres, lines, (sides[-1][1], bottom)


def _set_ports(ports, edges, size):
    for slot, i in enumerate(edges):
        ports[i] = ((slot + 0.5) / len(edges) - 0.5) * 0.75 * size[1]


def ranks(n, edges):
    """Return the column of each node: the length of the longest path that leads to it.

    A leaf moves right, to the column before the first node that reads it.

    Args:
        n       number of nodes
        edges   list of (from, to, slot), each from a smaller to a larger index

    Raises:
        ValueError: an edge goes from a larger to a smaller index
    """
    rank, readers, inputs = [0] * n, defaultdict(list), defaultdict(list)
    for u, v, _ in edges:
        if u >= v:
            raise ValueError(
                f"layout: each edge must go from a smaller to a larger index, got {u} → {v}"
            )
        readers[u].append(v)
        inputs[v].append(u)
    for v in range(n):
        rank[v] = max([rank[u] + 1 for u in inputs[v]], default=0)
    for v in range(n):
        if not inputs[v] and readers[v]:
            rank[v] = min([rank[r] for r in readers[v]]) - 1
    return rank


def with_bends(rank, edges):
    """Return each edge as a chain of nodes in neighbouring columns.

    Args:
        rank    column of each node, to which the columns of the bends are appended
        edges   list of (from, to, slot)
    """
    chains = []
    for u, v, _ in edges:
        between = list(range(rank[u] + 1, rank[v]))
        chains.append([u, *range(len(rank), len(rank) + len(between)), v])
        rank.extend(between)
    return chains


def order(rank, links):
    """Return the nodes of each column from top to bottom, with few crossings.

    Args:
        rank    column of each node, including bends
        links   list of (from, to, vertical offset at `to`) between neighbouring columns
    """
    columns = [[] for _ in range(max(rank) + 1)]
    before, after = defaultdict(list), defaultdict(list)
    for u, v, port in links:
        before[v].append((u, 0))
        after[u].append((v, port))
    for v in _depth_first(rank, before):  # the inputs of a node are adjacent, in order
        columns[rank[v]].append(v)
    best, fewest = [list(c) for c in columns], crossings(columns, links)
    for sweep in range(SWEEPS):
        if fewest == 0:
            break
        neighbours, path = (before, columns) if sweep % 2 == 0 else (after, columns[::-1])
        place = {v: i for column in columns for i, v in enumerate(column)}
        for column in path:
            column.sort(key=lambda v, near=neighbours: _mean_place(v, near[v], place))
            place.update({v: i for i, v in enumerate(column)})
        found = crossings(columns, links)
        if found < fewest:
            best, fewest = [list(c) for c in columns], found
    return best


def _depth_first(rank, before):
    """Return all nodes, each after its inputs `before[v]`, depth first but without recursion."""
    inner = {u for near in before.values() for u, _ in near}
    stack, seen, out = [(v, False) for v in reversed(range(len(rank))) if v not in inner], set(), []
    while stack:
        v, ready = stack.pop()
        if ready:
            out.append(v)
        elif v not in seen:
            seen.add(v)
            stack.append((v, True))
            stack.extend([(u, False) for u, _ in reversed(before[v])])
    return out


def _mean_place(v, near, place):
    if not near:
        return place[v]
    return sum([place[u] + port / 1000 for u, port in near]) / len(near)  # the ports decide ties


def crossings(columns, links):
    """Return the number of pairs of links that cross.

    Args:
        columns   nodes of each column from top to bottom
        links     list of (from, to, vertical offset at `to`) between neighbouring columns
    """
    place = {v: i for column in columns for i, v in enumerate(column)}
    rank = {v: r for r, column in enumerate(columns) for v in column}
    by_rank = defaultdict(list)
    for u, v, port in links:
        by_rank[rank[u]].append((place[u], place[v] + port / 1000))
    found = 0
    for ends in by_rank.values():
        above = []
        for _, end in sorted(ends):
            found += len(above) - bisect_right(above, end)
            insort(above, end)
    return found


def heights(columns, sizes, links):
    """Return y of the centre of each node.

    y is repeatedly set to the mean of the neighbours, and nodes that touch are pushed apart.
    Weights keep the main line straight: long edges move least, and leaves move most.

    Args:
        columns   nodes of each column from top to bottom, the result of `order`
        sizes     (width, height) of each node in pixels, where a bend has (0, 0)
        links     list of (from, to, vertical offset at `to`) between neighbouring columns
    """
    before, after = defaultdict(list), defaultdict(list)  # node -> [(neighbour, weight)]
    inner = {v for _, v, _ in links}
    for u, v, _ in links:
        before[v].append((u, 1 if u in inner else 0.02))
        after[u].append((v, 1))
    y = [0.0] * len(sizes)
    for column in columns:
        at = 0.0
        for v in column:
            y[v] = at + sizes[v][1] / 2
            at += sizes[v][1] + ROW_GAP
    for sweep in range(SWEEPS):
        path = columns if sweep % 2 == 0 else columns[::-1]
        for column in path:
            wanted, weight = [], []
            for v in column:
                near = before[v] + after[v] if sweep > 3 else (before, after)[sweep % 2][v]
                total = sum([w for _, w in near])
                wanted.append(sum([w * y[u] for u, w in near]) / total if near else y[v])
                weight.append(4 if sizes[v] == BEND else 1 if v in inner else 0.05)
            for v, place in zip(
                column, _push_apart(wanted, weight, _gaps(column, sizes)), strict=True
            ):
                y[v] = place
    top = min([y[v] - sizes[v][1] / 2 for v in range(len(sizes))])
    return [place - top for place in y]


def _gaps(column, sizes):
    """Return the smallest allowed distance between the centres of neighbours in a column."""
    return [
        (sizes[u][1] + sizes[v][1]) / 2 + (BEND_GAP if BEND in (sizes[u], sizes[v]) else ROW_GAP)
        for u, v in pairwise(column)
    ]


def _push_apart(wanted, weight, gaps):
    """Return the positions nearest to `wanted` (weighted squares) that keep the order and the gaps.

    Without the gaps, this is isotonic regression, solved by pooling neighbours that are in the
    wrong order (pool adjacent violators).
    """
    shift, total = [0.0], 0.0
    for gap in gaps:
        total += gap
        shift.append(total)
    pools = []  # [weighted mean, weight, number of members]
    for place, w, s in zip(wanted, weight, shift, strict=True):
        pools.append([place - s, w, 1])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            mean, w2, n2 = pools.pop()
            first = pools[-1]
            first[0] = (first[0] * first[1] + mean * w2) / (first[1] + w2)
            first[1] += w2
            first[2] += n2
    means = [mean for mean, _, n in pools for _ in range(n)]
    return [mean + s for mean, s in zip(means, shift, strict=True)]


def _across(columns, sizes):
    """Return x of the centre and of the (left, right) sides of each column."""
    x, sides, at = [], [], 0.0
    for column in columns:
        width = max([sizes[v][0] for v in column])
        x.append(at + width / 2)
        sides.append((at, at + width))
        at += width + COLUMN_GAP
    return x, sides


def _line(chain, port, centres, sizes, sides):
    """Return the points of an edge, from the right of its first node to the left of its last.

    `chain` lists its nodes, of which `sides` are the columns, and `port` is its offset at the last.
    """
    (x, y), (width, _) = centres[chain[0]], sizes[chain[0]]
    points = [(x + width / 2, y), (sides[0][1], y)]
    for v, (left, right) in zip(chain[1:-1], sides[1:-1], strict=True):
        points += [(left, centres[v][1]), (right, centres[v][1])]
    (x, y), (width, _) = centres[chain[-1]], sizes[chain[-1]]
    return [*points, (sides[-1][0], y + port), (x - width / 2, y + port)]
