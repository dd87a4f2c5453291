"""Lecture 06: the transformer of 2017, its layers, and its masks."""

from math import cos, sin

from blocks import add_and_norm, into_attention, residual

from coursekit.drawing import Drawing
from coursekit.drawing.paths import paint
from coursekit.drawing.style import BIG, INK, THINGS


def transformer():
    d = Drawing(
        "transformer",
        "Source tokens are embedded and pass through six encoder layers, and the output of the "
        "last layer is the memory. Target tokens, shifted right, pass through six decoder layers, "
        "whose cross-attention takes its keys and values from the memory. A linear map and a "
        "softmax give the probabilities of the next token.",
    )
    _embedding(d, "source", 136, "S")
    with d.step(1), d.part("encoder"):
        d.frame(164, 40, 746, 218, r"encoder  6 $\times$", corner="se", part="frame")
        state = _self_attention(d, 136, 66, "self-", "attention")
    with d.step(2), d.part("encoder"):
        state = _feed_forward(d, state, 66, 92)
    with d.step(3):
        _embedding(d, "target", 400, "T")
        with d.part("decoder"):
            d.frame(164, 284, 1052, 520, r"decoder  6 $\times$", corner="ne", part="frame")
            asking = _self_attention(d, 400, 482, "masked", "self-", "attention")
    with d.step(4):
        asked = _cross_attention(d, asking, state)
    with d.step(5), d.part("decoder"):
        out = _feed_forward(d, asked, 482, 88)
    with d.step(6):
        _output(d, out)
    return d


def _embedding(d, name, y, axis):
    below = name == "target"  # the tokens come from below, the positions from above
    with d.part(name):
        side = 1 if below else -1
        box = d.box("embedding", 50, y, 96, 60, "embed")
        op = d.op(130, y, "+", part="position")
        d.arrow((50, y + side * 58), (50, y + side * 30), part="tokens")
        d.arrow((130, y - side * 48), (130, y - side * 14), part="position")
        d.note(130, y - side * 62, "position", part="position")
        d.arrow(box.e, op.w, thing="state")
        d.sizes(50, y - side * 48, axis, "d")
        d.text(2, y + side * 74, f"{name} tokens", anchor="start", part="tokens")
        if below:
            d.note(2, y + 98, "shifted right", anchor="start", part="tokens")


def _self_attention(d, y, level, *words):
    box = into_attention(d, 196, y, 184, 100, *words, part="self-attention")
    d.arrow((144, y), (184, y), thing="state", head=False, part="self-attention")
    op, norm = add_and_norm(d, box, "self-attention")
    residual(d, 172, y, level, op, "self-attention/residual")
    return norm


def _feed_forward(d, before, level, width):
    with d.part("feed-forward"):
        box = d.box(
            "linear", before.right + 30 + width / 2, before.y, width, 72, "feed-", "forward"
        )
        d.arrow(before.e, box.w, thing="state")
    op, norm = add_and_norm(d, box, "feed-forward")
    residual(d, before.right + 12, before.y, level, op, "feed-forward/residual")
    return norm


def _cross_attention(d, asking, memory):
    y, x = asking.y, 622
    with d.part("memory"):
        d.arrow(
            memory.e,
            (786, memory.y),
            (786, 252),
            (x, 252),
            (x, 286),
            thing="memory",
            kind="rail",
            head=False,
        )
        d.text(802, 176, "memory", weight=600, color=THINGS["memory"][1], anchor="start")
        d.note(802, 200, "output of the last layer", anchor="start")
        d.sizes(802, 224, "S", "d", anchor="start")
        d.note(802, 252, "to every decoder layer", anchor="start")
    with d.part("decoder/cross-attention"):
        query = d.box("linear", 532, y, 44, 28, "$W^Q$", size=18, part="query")
        box = d.box("attention", x, y, 104, 98, "cross-", "attention")
        d.arrow(asking.e, query.w, thing="state", part="query")
        d.arrow(query.e, box.w, thing="query", part="query")
        for role, letter, place in (("key", "K", x - 28), ("value", "V", x + 28)):
            w = d.box("linear", place, 316, 44, 28, f"$W^{letter}$", size=18, part=role)
            d.arrow((x, 286), (place, 286), w.n, thing="memory", width=2, part=role, bend=8)
            d.arrow(w.s, (place, box.top), thing=role, part=role)
    with d.part("decoder"):
        op, norm = add_and_norm(d, box, "cross-attention")
        residual(d, asking.right + 12, y, 482, op, "cross-attention/residual")
    return norm


def _output(d, state):
    with d.part("output"):
        linear, softmax = d.stack(
            1106,
            216,
            ("softmax", 48, ["softmax"], "softmax"),
            ("linear", 48, ["linear"], "linear"),
            width=88,
            gap=34,
        )[::-1]
        d.arrow(state.e, (1106, state.y), linear.s, thing="state", part="linear")
        d.arrow(linear.n, softmax.s, part="softmax")
        d.arrow(softmax.n, (1106, 180), part="next token")
        d.text(1150, 140, "next token", anchor="end", part="next token")
        d.sizes(1150, 164, "T", "vocab", anchor="end", part="next token")


def shapes():
    """Slide K22: the shapes at the arrows."""
    d = Drawing(
        "shapes",
        "The encoder turns the source ids into the memory, which has one vector for each token. "
        "The decoder turns the target ids so far into one vector for each position, and its "
        "cross-attention reads the memory. A linear map computes the scores of the next token.",
    )
    xs = (200, 470, 860)
    for name, y, axis in (("encoder", 130, "S"), ("decoder", 420, "T")):
        with d.step(0 if name == "encoder" else 1), d.part(name):
            words = "source ids" if axis == "S" else "target ids"
            d.text(2, y - 14, words, anchor="start")
            d.sizes(2, y + 16, "B", axis, anchor="start")
            embed = d.box("embedding", xs[0], y, 130, 70, "embed,", "positions")
            box = d.box("attention", xs[1], y, 200, 110, name, r"6 $\times$")
            d.arrow((104, y), embed.w)
            d.arrow(embed.e, box.w, thing="state", width=3)
            d.sizes(316, y - 60, "B", axis, "d")
            where = {"S": "[B, H, S, S]", "T": "[B, H, T, T]"}[axis]
            d.note(xs[1], y + 84, f"attention weights {where}")
    with d.step(2), d.part("memory"):
        d.arrow(
            (570, 130),
            (700, 130),
            (700, 275),
            (xs[1], 275),
            (xs[1], 365),
            thing="memory",
            kind="rail",
        )
        d.text(716, 190, "memory", color=THINGS["memory"][1], anchor="start", weight=600)
        d.sizes(716, 218, "B", "S", "d", anchor="start")
        d.note(490, 318, "attention weights [B, H, T, S]", "start")
    with d.step(3), d.part("output"):
        linear = d.box("linear", xs[2], 420, 110, 64, "linear")
        d.arrow((570, 420), linear.w, thing="state", width=3)
        d.sizes(690, 396, "B", "T", "d")
        d.arrow(linear.e, (980, 420))
        d.text(992, 404, "logits", anchor="start")
        d.sizes(992, 434, "B", "T", "vocab", anchor="start")
    d.note(
        576,
        544,
        "B sentences, S source tokens, T target tokens, H heads, d features",
        part="letters",
    )
    return d


def norm_places():
    """Slide S14: the norm after the sum, as in 2017, and before each sublayer."""
    d = Drawing(
        "norm_places",
        "In the layer of 2017, the sum of the state and the output of a sublayer passes through a "
        "norm, so the state itself is normalized twice. In newer layers, the norm comes before "
        "each sublayer, so the state runs through, and the outputs of the sublayers are only added "
        "to it.",
    )
    orders = (
        (
            "post-norm: after each sum (2017)",
            ("attention", "+", "norm", "feed-forward", "+", "norm"),
        ),
        (
            "pre-norm: before each sublayer (newer models)",
            ("norm", "attention", "+", "norm", "feed-forward", "+"),
        ),
    )
    for k, (title, order) in enumerate(orders):
        top = 284 * k
        with d.step(k), d.part(("post-norm", "pre-norm")[k]):
            d.frame(2, top + 2, 1150, top + 264, part="frame")
            d.heading(20, top + 34, k + 1, title)
            _block(d, top + 178, order)
    return d


def _block(d, y, order):
    looks = {"attention": ("attention", 150), "feed-forward": ("linear", 130), "norm": ("norm", 84)}
    items = [
        ("+", 34, [], "add") if name == "+" else (*looks[name], [name], name) for name in order
    ]
    boxes = d.row(140, y, *items, right=1020, height=72, thing="state")
    d.text(40, y, "$x$", BIG, THINGS["state"][1])
    d.arrow((62, y), boxes[0].w, thing="state")
    d.arrow(boxes[-1].e, (1112, y), thing="state")
    start = 101
    for k, name in enumerate(order):
        if name == "+":
            residual(d, start, y, y - 84, boxes[k], "residual")
            norm_follows = order[0] != "norm"  # a branch leaves after it
            start = boxes[k + norm_follows].right + 24


def word_by_word():
    """Slides K24 and K25: the feed-forward network, and the skip path with its gradient."""
    d = Drawing(
        "word_by_word",
        "On the left, each of four tokens passes through a feed-forward network with the same "
        "weights, and no arrow leads from one token to another. On the right, x bypasses f on a "
        "skip path and is added to f(x). In the backward pass, the gradient takes both paths.",
    )
    with d.part("feed-forward"):
        d.frame(2, 2, 550, 558, part="frame")
        d.heading(20, 34, 1, "feed-forward: each token separately")
        for t in range(4):
            x = 86 + 126 * t
            box = d.box("linear", x, 270, 96, 120, "linear", "ReLU", "linear", part=f"word {t + 1}")
            d.arrow((x, 424), box.s, thing="state", part=f"word {t + 1}")
            d.text(x, 446, f"$x_{t + 1}$", BIG, part=f"word {t + 1}")
            d.arrow(box.n, (x, 126), thing="state", part=f"word {t + 1}")
            d.text(x, 102, f"$y_{t + 1}$", BIG, part=f"word {t + 1}")
        d.note(276, 510, "the same weights four times, and no arrow between tokens")
    with d.step(1), d.part("skip path"):
        d.frame(602, 2, 1150, 558, part="frame")
        d.heading(620, 34, 2, "skip path: add x to f(x)")
        f = d.box("linear", 790, 290, 110, 64, "$f$", size=BIG)
        plus = d.op(790, 170, "+", size=32)
        d.text(790, 462, "$x$", BIG)
        d.arrow((790, 440), f.s, thing="state")
        d.arrow((790, 390), (690, 390), (690, 170), plus.w, thing="state")
        d.arrow(f.n, plus.s, thing="state")
        d.arrow(plus.n, (790, 104), thing="state", width=3)
        d.text(790, 80, "$y = x + f(x)$", 22)
    with d.step(2), d.part("backwards"):
        d.text(1030, 80, r"$\bar y$", BIG)
        d.arrow((1030, 170), (1030, 390), color=INK, kind="control", width=1.6, head=False)
        d.arrow(
            (1030, 104),
            (1030, 170),
            (940, 170),
            (940, 390),
            (1030, 390),
            (1030, 430),
            color=INK,
            kind="control",
            width=4,
        )
        d.text(1046, 290, r"$\times\,f'$", 22, anchor="start")
        d.text(926, 290, r"$\times\,1$", 22, anchor="end")
        d.text(1030, 462, r"$\bar x = \bar y\,(1 + f')$", 22)
        d.note(876, 510, r"the skip path passes the gradient $\bar y$ on unchanged")
    return d


def positions_added():
    """Slides S16 and S17: a row for each position, composed of clock hands."""
    d = Drawing(
        "positions_added",
        "On the left, two matrices are added: the embeddings of four words, with one row for each "
        "word, and the matrix P, with one row for each position. On the right, the rows of P are "
        "shown as clock hands of different speeds. From one position to the next, each hand turns "
        "by its own angle.",
    )
    words = ("the", "dog", "chases", "cats")
    with d.part("sum"):
        d.heading(2, 34, 1, "add one row of P for each position")
        for t, word in enumerate(words):
            y = 160 + 40 * t
            d.text(62, y, word, part=f"word {t}")
            d.text(16, y, f"${t}$", 20, part=f"word {t}")
        d.note(16, 116, "$t$")
        d.matrix(200, 220, 4, 4, 40, "state", part="E")
        d.text(300, 220, "$+$", 32)
        d.matrix(400, 220, 4, 4, 40, "memory", part="P")
        d.text(200, 330, "embeddings", 20)
        d.text(400, 330, "$P$", BIG)
        d.note(300, 400, "at another position,")
        d.note(300, 428, "the same word gets a different vector")
    with d.step(1), d.part("clocks"):
        d.heading(600, 34, 2, "what a row contains: clock hands")
        for t in range(4):
            x = 700 + 118 * t
            d.text(x, 92, f"$t={t}$", 20, part=f"position {t}")
            for k, speed in enumerate((1.2, 0.4, 0.13)):
                _clock(d, x, 164 + 124 * k, speed * t, f"position {t}/clock {k}")
        for k, name in enumerate(("fast", "slower", "slowest")):
            d.note(650, 164 + 124 * k, name, "end")
        d.text(876, 500, r"$p_t = (\sin\omega_0 t,\ \cos\omega_0 t,\ \sin\omega_1 t,\ \ldots)$", 22)
        d.note(876, 538, "From one position to the next, each hand turns by its own angle.")
    return d


def _clock(d, x, y, angle, part):
    """A clock whose hand has turned by this angle from the top."""
    radius = 40
    circle = f'<circle cx="{x}" cy="{y}" r="{radius}" ' + paint("#FFFFFF", THINGS["data"][0], 1.6)
    d.shape("clock", part, circle + "/>")
    tip = (x + 34 * sin(angle), y - 34 * cos(angle))
    d.arrow((x, y), tip, thing="memory", width=3, part=part)
