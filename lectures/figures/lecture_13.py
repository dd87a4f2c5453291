"""Lecture 13: attention block by block; vectors and threads; where networks are used."""

from coursekit.drawing import Drawing
from coursekit.drawing.paths import paint
from coursekit.drawing.style import BIG, INK, THINGS

LEFT, TOP, TILE = 236, 126, 84  # of the table of scores


def blockwise():
    """Dao et al. 2022, FlashAttention; Milakov and Gimelshein 2018 for the running softmax."""
    d = Drawing(
        "blockwise",
        "A block of queries stays in the fast memory while blocks of keys and values pass by. For "
        "each of these blocks, a small part of the score matrix is computed. The largest score, "
        "the sum of the exponentials and the output are updated, and the scores are discarded.",
    )
    with d.part("table"):
        d.frame(LEFT, TOP, LEFT + 4 * TILE, TOP + 4 * TILE, part="never stored", fill="none")
        grid = "".join(
            f"M{LEFT + k * TILE} {TOP}v{4 * TILE}M{LEFT} {TOP + k * TILE}h{4 * TILE}"
            for k in (1, 2, 3)
        )
        d.shape("grid", None, f'<path d="{grid}" {paint("none", "#C9D0D6", 1.2)}/>')
        d.note(LEFT + 2 * TILE, 504, "the score matrix, [N, N], is never stored")
    for k in range(4):
        d.matrix(LEFT - 56, TOP + (k + 0.5) * TILE, 3, 3, 24, "query", f"$Q_{k + 1}$", size=22)
        d.matrix(LEFT + (k + 0.5) * TILE, 92, 2, 3, 24, "key", f"$K_{k + 1}$", size=22)
        d.matrix(LEFT + (k + 0.5) * TILE, 32, 2, 3, 24, "value", f"$V_{k + 1}$", size=22)
    d.note(2, TOP + TILE * 1.5, "one block of", "start")
    d.note(2, TOP + TILE * 1.5 + 24, "queries stays", "start")
    d.note(2, 62, "these pass by", "start")
    for k in range(4):
        with d.step(k + 1), d.part(f"tile {k + 1}"):
            x, y = LEFT + k * TILE, TOP + TILE
            form = f'<rect x="{x + 4}" y="{y + 4}" width="{TILE - 8}" height="{TILE - 8}" '
            d.shape("tile", None, form + paint(THINGS["data"][2], INK, 2.4) + "/>")
            d.text(x + TILE / 2, y + TILE / 2, f"$S_{k + 1}$", BIG)
    _fast_memory(d)
    return d


def _fast_memory(d):
    with d.step(1), d.part("fast memory"):
        d.frame(640, 96, 1150, 462, "fast memory", corner="ne", part="frame")
        d.text(664, 150, r"$S_j = Q_2\, K_j^T / \sqrt{d_k}$", BIG, anchor="start")
        d.text(664, 206, r"$m' = \max(m,\ \max S_j)$", BIG, anchor="start")
        d.text(664, 262, r"$P = \exp(S_j - m')$", BIG, anchor="start")
        d.text(664, 318, r"$l' = l\, e^{\,m - m'} + \Sigma P$", BIG, anchor="start")
        d.text(664, 374, r"$O' = O\, e^{\,m - m'} + P\, V_j$", BIG, anchor="start")
        d.note(1130, 206, "largest score so far", "end")
        d.note(1130, 318, "sum so far", "end")
        d.note(1130, 374, "output so far", "end")
        d.note(664, 430, "$m$ and $l$: one number for each query", "start")
    with d.step(4), d.part("output"):
        d.text(640, 504, "after the last block: output", anchor="start")
        d.text(904, 504, "$O / l$", 26, THINGS["state"][1], "start")


def lanes_and_threads():
    """What the package's kernel adds to version 4."""
    d = Drawing(
        "lanes_and_threads",
        "On the left, one instruction of the processor multiplies one number from each of eight "
        "queries, with one query in each lane, by the same number of a key, and adds the products "
        "to eight scores. On the right, two threads share the blocks of queries, and both read the "
        "same keys and values.",
    )
    with d.part("vectors"):
        d.frame(2, 2, 566, 558, part="frame")
        d.heading(20, 34, 5, "vectors: many numbers at once")
        for lane in range(8):
            x = 67 + 62 * lane
            d.matrix(x, 112, 1, 1, 48, "query", f"$q_{lane + 1}$", size=22)
            d.matrix(x, 212, 1, 1, 48, "key", "$k$", size=22)
            d.matrix(x, 312, 1, 1, 48, "data", f"$s_{lane + 1}$", size=22)
        d.op(284, 162, "*")
        d.op(284, 262, "+")
        d.text(284, 388, "one instruction: 8 products and 8 sums")
        d.note(284, 432, "8 queries side by side, one in each lane")
        d.note(284, 462, "the same number of one key in all lanes")
        d.note(284, 492, "no sum is taken across lanes")
    with d.step(1), d.part("threads"):
        d.frame(586, 2, 1150, 558, part="frame")
        d.heading(604, 34, 6, "threads: many blocks at once")
        for thread in range(2):
            left = 610 + 268 * thread
            d.frame(left, 70, left + 248, 330, f"thread {thread + 1}", part="frame")
            for k in range(3):
                x = left + 46 + 78 * k
                q = d.matrix(x, 124, 2, 2, 30, "query", f"$Q_{2 * k + thread + 1}$", size=22)
                y = d.matrix(x, 236, 2, 2, 30, "state", f"$Y_{2 * k + thread + 1}$", size=22)
                d.arrow(q.s, y.n, thing="query")
        d.matrix(810, 400, 2, 3, 30, "key", "$K$", size=22)
        d.matrix(926, 400, 2, 3, 30, "value", "$V$", size=22)
        d.note(868, 462, "both read the same keys and values")
        d.note(868, 492, "each writes its own rows, so no thread waits")
    return d


STAGES = (  # x, lines of the name
    (106, ("raw", "signals")),
    (341, ("hits", "with energies")),
    (576, ("tracks, showers,", "jets")),
    (811, ("variables", "of the event")),
    (1046, ("signal or", "background?")),
)
NETWORKS = (  # from and to which stage, what the network does, where the course has it, key press
    (3, 4, "final classifier", "inputs: a few computed numbers", 1),
    (2, 3, "better variables: which jet is this?", "lectures 08 and 10", 2),
    (1, 2, "reconstruction", "lectures 11 and 12", 3),
    (0, 4, "direct analysis of raw signals", "lecture 08: the brightness of stars over time", 4),
)


def stages():
    """The original slide's list of places, as steps of an analysis."""
    d = Drawing(
        "stages",
        "An analysis goes from raw signals to hits, to tracks, showers and jets, to variables of "
        "the event and to a decision. A network can do a single one of these steps, or replace the "
        "whole chain.",
    )
    boxes = [
        d.box("linear", x, 56, 176, 84, *lines, part=lines[0], thing="data") for x, lines in STAGES
    ]
    for one, two in zip(boxes, boxes[1:], strict=False):
        d.arrow(one.e, two.w)
    for row, (start, end, what, where, step) in enumerate(NETWORKS):
        y, left, right = 178 + 104 * row, STAGES[start][0], STAGES[end][0]
        with d.step(step), d.part(what):
            d.badge(left, y, row + 1)
            d.arrow((left + 15, y), (right + 60, y), thing="query", width=5)
            at, side = {0: (left - 32, "end"), 1: (left - 32, "end"), 2: (right + 80, "start")}.get(
                row, (left + 30, "start")
            )
            d.text(at, y - 12 if row < 3 else y - 28, what, BIG, anchor=side)
            d.note(at, y + 18 if row < 3 else y + 26, where, anchor=side)
    return d
