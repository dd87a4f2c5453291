"""Lecture 13: attention block by block, without the table of all weights."""

from tinyattn.plot import Drawing
from tinyattn.plot.drawing_paths import paint
from tinyattn.plot.drawing_style import BIG, INK, THINGS

LEFT, TOP, TILE = 236, 126, 84  # of the table of scores


def blockwise():
    """Dao et al. 2022, FlashAttention; Milakov and Gimelshein 2018 for the running softmax."""
    d = Drawing(
        "blockwise",
        "A block of queries stays in the fast memory, and blocks of keys and values pass by. For "
        "each, a small table of scores is made, the largest score, the sum of the exponentials "
        "and the output are brought up to date, and the table is thrown away.",
    )
    with d.part("table"):
        d.frame(LEFT, TOP, LEFT + 4 * TILE, TOP + 4 * TILE, part="never stored", fill="none")
        grid = "".join(f"M{LEFT + k * TILE} {TOP}v{4 * TILE}M{LEFT} {TOP + k * TILE}h{4 * TILE}"
                       for k in (1, 2, 3))  # fmt: skip
        d.shape("grid", None, f'<path d="{grid}" {paint("none", "#C9D0D6", 1.2)}/>')
        d.note(LEFT + 2 * TILE, 504, "all scores, [T, S]: never stored")
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
        d.text(664, 150, r"$S = Q_2\, K_j^T / \sqrt{d_k}$", BIG, anchor="start")
        d.text(664, 206, r"$m' = \max(m,\ \max S)$", BIG, anchor="start")
        d.text(664, 262, r"$P = \exp(S - m')$", BIG, anchor="start")
        d.text(664, 318, r"$l' = l\, e^{\,m - m'} + \Sigma P$", BIG, anchor="start")
        d.text(664, 374, r"$O' = O\, e^{\,m - m'} + P\, V_j$", BIG, anchor="start")
        d.note(1130, 206, "largest so far", "end")
        d.note(1130, 318, "sum so far", "end")
        d.note(1130, 374, "output so far", "end")
        d.note(664, 430, "$m$ and $l$: one number for each query", "start")
    with d.step(4), d.part("output"):
        d.text(640, 504, "after the last block: output", anchor="start")
        d.text(904, 504, "$O / l$", 26, THINGS["state"][1], "start")
