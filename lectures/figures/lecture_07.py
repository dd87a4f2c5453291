"""Lecture 07: GPT, BERT, masks, the cache, pre-training and fine-tuning."""

from blocks import add_and_norm, into_attention, residual

from coursekit.drawing import Drawing
from coursekit.drawing.paths import paint
from coursekit.drawing.style import BIG, INK, PAPER, QUIET, SLATE, THINGS

STATE = THINGS["state"][1]


def gpt():
    """Slide N07 and H07: pre-norm, as in models.GPT."""
    d = Drawing(
        "gpt",
        "Tokens and positions are embedded, and their sum passes through a stack of blocks. Each "
        "block adds the output of causal self-attention and then the output of an MLP to the "
        "state. A last norm and the transposed embedding matrix give a score for every token of "
        "the vocabulary.",
    )
    y = 300
    with d.part("embedding"):
        d.text(2, y + 74, "tokens", anchor="start")
        box = d.box("embedding", 50, y, 96, 60, "embed")
        d.arrow((50, y + 60), box.s)
        op = d.op(134, y, "+")
        d.arrow(box.e, op.w, thing="state")
        d.arrow((134, y + 48), op.s)
        d.note(134, y + 64, "position")
        d.sizes(50, y - 50, "T", "d")
    add2 = _gpt_block(d, y, op)
    with d.step(3), d.part("head"):
        norm, _, soft = d.row(
            880,
            y,
            ("norm", 60, ["norm"], "norm"),
            ("linear", 80, [r"$E^T$"], "scores"),
            ("softmax", 92, ["softmax"], "softmax"),
            gap=18,
            height=56,
            thing="state",
        )
        d.arrow(add2.e, norm.w, thing="state", width=3)
        d.arrow(soft.n, (soft.x, 200))
        d.text(1150, 176, "next token", anchor="end")
        d.sizes(1150, 150, "T", "V", anchor="end")
        d.note(1150, 372, "the embedding matrix", "end")
        d.note(1150, 396, "again, transposed", "end")
    with d.step(4):
        d.note(
            512, 80, "the state runs through, and blocks only add to it", part="block", color=STATE
        )
        d.note(512, 470, "a single stack, without an encoder or cross-attention", part="block")
    return d


def _gpt_block(d, y, op):
    with d.step(1), d.part("block"):
        d.frame(172, 120, 852, 420, r"block  $N\times$", corner="se", part="frame")
        d.arrow(op.e, (208, y), thing="state", head=False, width=3)
        norm = d.box("norm", 246, y, 60, 56, "norm")
        d.arrow((208, y), norm.w, thing="state")
        attention = into_attention(d, 306, y, 292, 110, "causal", "self-", "attention")
        d.arrow(norm.e, (292, y), thing="state", head=False)
        add = d.op(518, y, "+", part="add 1")
        d.arrow(attention.e, add.w, thing="state")
        residual(d, 192, y, 180, add, "residual")
    with d.step(2), d.part("block"):
        norm2, _, add2 = d.row(
            580,
            y,
            ("norm", 60, ["norm"], "norm 2"),
            ("linear", 84, ["MLP"], "MLP"),
            ("+", 28, [], "add 2"),
            gap=28,
            height=56,
            thing="state",
        )
        d.arrow(add.e, norm2.w, thing="state")
        residual(d, 552, y, 180, add2, "residual")
    return add2


def bert():
    """Slides H05 and H09."""
    d = Drawing(
        "bert",
        "A sentence with a hidden word passes through a stack of encoder blocks, in which every "
        "word attends to all words, left and right. The state at the position of the hidden word "
        "gives the scores for this word, and the state at the first token gives a label for the "
        "sentence.",
    )
    words = ("[CLS]", "the", "[MASK]", "barked", "loudly")
    xs = [180 + 200 * k for k in range(5)]
    with d.part("encoder"):
        box = d.box("attention", 580, 270, 1000, 90, r"encoder  $N\times$", size=BIG)
    d.note(2, 486, "tokens", "start", part="tokens")
    for x, word in zip(xs, words, strict=True):
        with d.part("tokens"):
            d.text(x, 486, word, weight=600 if word == "[MASK]" else 400)
            e = d.box("embedding", x, 410, 88, 44, "embed", size=18)
            d.arrow((x, 468), e.s)
            d.arrow(e.n, (x, box.bottom), thing="state")
    with d.step(1), d.part("both directions"):
        d.note(580, 534, "every word attends to all words, left and right: no causal mask")
    with d.step(2), d.part("hidden word"):
        head = d.box("linear", 580, 150, 150, 48, "linear, softmax", size=18)
        d.arrow((580, box.top), head.s, thing="state")
        d.arrow(head.n, (580, 88))
        d.text(580, 66, "dog, fox, alarm, ...")
        d.note(580, 30, "pre-training: predict the hidden word")
    with d.step(3), d.part("label"):
        head = d.box("linear", 180, 150, 120, 48, "classifier", size=18)
        d.arrow((180, box.top), head.s, thing="state")
        d.arrow(head.n, (180, 88))
        d.text(180, 66, "label")
        d.note(180, 30, "fine-tuning: one new layer")
    for x in (xs[1], xs[3], xs[4]):
        d.arrow((x, box.top), (x, 186), thing="state", part="states")
    return d


def masks():
    """Slides N25 and H06: which word may attend to which."""
    d = Drawing(
        "masks",
        "Three tables show which word may attend to which. Each row belongs to a word that "
        "receives, and each column to a word that sends. In the encoder, all pairs are permitted. "
        "In the decoder, a word may attend to itself and to earlier words. In the attention to the "
        "source, padding is hidden.",
    )
    panels = (
        ("encoder: all words", lambda t, s: True),
        ("decoder: no later words", lambda t, s: s <= t),
        ("source: no padding", lambda t, s: s < 4),
    )
    for k, (title, permitted) in enumerate(panels):
        left = 2 + 392 * k
        with d.step(k), d.part(title):
            d.frame(left, 2, left + 364, 558, part="frame")
            d.heading(left + 16, 34, k + 1, title)
            _table(d, left + 84, 116, permitted)
            d.note(left + 194, 84, "columns: keys (words that send)", color=THINGS["key"][1])
            d.note(
                left + 84, 420, "rows: queries (words that receive)", "start", THINGS["query"][1]
            )
            mask = "+ M" if k else ""
            d.text(left + 182, 474, rf"$\mathrm{{softmax}}(QK^T / \sqrt{{d_k}} {mask})$", 19)
            d.note(
                left + 182,
                520,
                (
                    "no mask",
                    r"$M$: 0 if permitted, otherwise $-\infty$",
                    "the last column is padding",
                )[k],
            )
    return d


def _table(d, left, top, permitted, size=5, cell=52):
    for t in range(size):
        d.text(left - 24, top + (t + 0.5) * cell, f"$q_{t + 1}$", 20, THINGS["query"][1])
        for s in range(size):
            x, y = left + s * cell, top + t * cell
            fill = THINGS["data"][2] if permitted(t, s) else PAPER
            form = f'<rect x="{x}" y="{y}" width="{cell}" height="{cell}" '
            d.shape("cell", None, form + paint(fill, SLATE, 1.2) + "/>")
            if not permitted(t, s):
                cross = f"M{x + 18} {y + 18}l16 16m0 -16l-16 16"
                d.shape("cell", None, f'<path d="{cross}" {paint("none", QUIET, 2)}/>')
            else:
                dot = f'<circle cx="{x + cell / 2:g}" cy="{y + cell / 2:g}" r="6" fill="{INK}"/>'
                d.shape("cell", None, dot)


def cache():
    """The cache of keys and values when a sentence is written."""
    d = Drawing(
        "cache",
        "At each step, a query, a key and a value are computed only for the newest token. The keys "
        "and values of earlier tokens are kept from the steps before, and the new key and value "
        "are added to them. The query attends to all of them.",
    )
    d.text(2, 60, "new token", anchor="start", weight=600, part="token")
    x = d.matrix(60, 120, 1, 4, 28, "state", "$x_5$", part="token", size=20)
    with d.part("maps"):
        boxes = {}
        for role, y in (("query", 120), ("key", 250), ("value", 380)):
            letter = {"query": "Q", "key": "K", "value": "V"}[role]
            w = d.box("linear", 226, y, 66, 48, f"$W^{letter}$", size=22, part=role)
            route = [x.e, w.w] if y == 120 else [(146, 120), (146, y), w.w]
            d.arrow(*route, thing="state", part=role)
            boxes[role] = w
    q = d.matrix(370, 120, 1, 4, 28, "query", "$q_5$", part="query", size=20)
    d.arrow(boxes["query"].e, q.w, thing="query", part="query")
    stores = {}
    for role, y, letter in (("key", 250, "k"), ("value", 380, "v")):
        with d.part(f"cache/{role}"):
            stores[role] = d.matrix(506, y, 4, 4, 22, role)
            for k in range(4):
                d.text(
                    506,
                    y - 33 + 22 * k,
                    f"${letter}_{k + 1}$",
                    16,
                    THINGS[role][1],
                    inside=stores[role],
                )
    with d.part("cache"):
        d.frame(430, 186, 582, 494, part="frame", fill="none")
        d.note(506, 520, "kept from earlier steps")
    _asked(d, q, boxes)
    return d


def _asked(d, q, boxes):
    with d.step(1):
        for role, y, letter in (("key", 250, "k"), ("value", 380, "v")):
            new = d.matrix(506, y + 58, 1, 4, 22, role, part=f"new/{role}")
            d.text(
                506, y + 58, f"${letter}_5$", 16, THINGS[role][1], inside=new, part=f"new/{role}"
            )
            w = boxes[role]
            d.arrow(w.e, (360, y), (360, y + 58), new.w, thing=role, part=f"new/{role}")
    with d.step(2), d.part("attention"):
        att = d.box("attention", 780, 250, 150, 120, "attention")
        d.arrow(q.e, (740, 120), (740, att.top), thing="query")
        d.arrow((582, 250), att.w, thing="key")
        d.arrow((582, 380), (780, 380), att.s, thing="value")
        d.text(900, 120, "one query,", anchor="start")
        d.text(900, 148, "five keys, five values", anchor="start")
    with d.step(3), d.part("output"):
        y5 = d.matrix(1000, 250, 1, 4, 28, "state", "$y_5$", size=20)
        d.arrow(att.e, y5.w, thing="state")
        d.text(646, 470, "work for one token grows as", 20, anchor="start")
        d.text(646, 500, r"$T\;$ with the cache, $T^2\;$ without it", 20, anchor="start")


def encoder_and_mask():
    """Slide H03: a layer of the encoder and one of the decoder, post-norm as in 2017."""
    d = Drawing(
        "encoder_and_mask",
        "Both layers have the same boxes: self-attention, sum and norm, feed-forward, sum and "
        "norm. In the encoder, every word attends to all words. In the decoder, a mask hides the "
        "later words. The cross-attention, which comes between the two parts of the decoder layer "
        "of 2017, is omitted.",
    )
    with d.part("encoder"):
        _layer(d, 110, "a whole text")
        d.text(2, 24, "encoder", anchor="start", weight=600)
        d.sizes(1104, 84, "T", "d")
    _mask(d, 110, lambda t, s: True, "no mask: each word (row)", "attends to all words (columns)")
    with d.step(1), d.part("decoder"):
        norm, forward = _layer(d, 380, "the text so far")
        d.text(2, 294, "decoder", anchor="start", weight=600)
        d.sizes(1104, 354, "T", "d")
        d.note(790, 236, "the same boxes, the same weights", color=INK, part="same weights")
    with d.step(2):
        _mask(d, 380, lambda t, s: s <= t, "causal mask:", "no word", "attends to", "later words")
    with d.step(3), d.part("cross-attention"):
        x = (norm.right + forward.left) / 2
        d.curve([(x, 392), (x, 462)], QUIET, 2, dashed=True)
        d.frame(x - 116, 466, x + 116, 554, fill=PAPER)
        d.note(x, 488, "Cross-attention is omitted,", color=INK)
        d.note(x, 510, "because there is no encoder", color=INK)
        d.note(x, 532, "to attend to.", color=INK)
    return d


def _layer(d, y, words):
    """A layer of 2017: what comes in is named; returns the first norm and the feed-forward box."""
    d.text(2, y + 34, words, 18, anchor="start", part="input")
    d.arrow((2, y), (184, y), thing="state", head=False, part="self-attention")
    box = into_attention(d, 196, y, 184, 100, "self-", "attention", part="self-attention")
    op, norm = add_and_norm(d, box, "self-attention")
    residual(d, 152, y, y - 72, op, "self-attention/residual")
    with d.part("feed-forward"):
        forward = d.box("linear", 800, y, 104, 72, "feed-", "forward")
        d.arrow(norm.e, forward.w, thing="state")
    op, last = add_and_norm(d, forward, "feed-forward")
    residual(d, 716, y, y - 72, op, "feed-forward/residual")
    d.arrow(last.e, (1150, y), thing="state", part="output")
    return norm, forward


def _mask(d, y, permitted, *words, cell=16):
    """Below the attention of a layer: its mask as a small table, and what it means."""
    left, top = 268, y + 74
    with d.part("mask" if "mask" in words[0] else "no mask"):
        for t in range(5):
            for s in range(5):
                x, high = left + s * cell, top + t * cell
                fill = THINGS["data"][2] if permitted(t, s) else PAPER
                form = f'<rect x="{x}" y="{high}" width="{cell}" height="{cell}" '
                d.shape("cell", None, form + paint(fill, SLATE, 1.2) + "/>")
                if permitted(t, s):
                    middle = f'cx="{x + cell / 2:g}" cy="{high + cell / 2:g}"'
                    d.shape("cell", None, f'<circle {middle} r="3" fill="{INK}"/>')
        d.arrow((308, top), (308, y + 49), kind="control")
        for k, line in enumerate(words):
            d.note(left + 96, top + 20 + 22 * k, line, "start", INK)


def prompting():
    """Slide H08: the prompt is the beginning of a line, the model generates the rest."""
    d = Drawing(
        "prompting",
        "A stack of causal blocks reads an English phrase and an arrow and predicts the first word "
        "of the German translation. Each predicted word is appended to the input, until the model "
        "predicts the end of the line. There is no encoder.",
    )
    given = ("[CLS]", "nineteen", "hours", "ago", r"$\Rightarrow$")
    said = ("vor", "neunzehn", "Stunden", "[SEP]")
    xs = [92 + 138 * k for k in range(8)]
    with d.part("decoder"):
        box = d.box("attention", 575, 240, 1146, 90, r"causal blocks  $N\times$", size=BIG)
        d.note(
            24,
            164,
            "each position attends to itself and to all positions on its left",
            "start",
            part="causal",
        )
    with d.part("prompt"):
        for x, word in zip(xs, given, strict=False):
            _read(d, x, word, box)
        _span(d, 24, 708, 466, "the prompt")
        d.note(366, 516, "the arrow precedes a translation")
    for k, word in enumerate(said):
        x = xs[4 + k]
        with d.step(k + 1):
            with d.part(f"written/{k + 1}"):
                head = d.box("linear", x, 140, 104, 40, "word head", size=18)
                d.arrow((x, box.top), head.s, thing="state")
                d.arrow(head.n, (x, 88))
                d.text(x, 66, word, weight=600)
            if k < 3:
                with d.part(f"written/{k + 1}"):
                    _read(d, xs[5 + k], word, box, 600)
    with d.step(1):
        d.note(24, 66, "the most probable next word", "start", INK, part="said")
    with d.step(4), d.part("written"):
        _span(d, 728, 1124, 466, "generated, one token at a time")
        d.note(
            575,
            18,
            "no encoder, no cross-attention: the translation continues the prompt",
            color=INK,
        )
    return d


def _read(d, x, word, box, weight=400):
    d.text(x, 422, word, 19, weight=weight)
    e = d.box("embedding", x, 350, 88, 44, "embed", size=18)
    d.arrow((x, 404), e.s)
    d.arrow(e.n, (x, box.bottom), thing="state")


def _span(d, left, right, y, words):
    """A bracket under words that belong together, and what they are."""
    d.curve([(left, y - 12), (left, y), (right, y), (right, y - 12)], SLATE, 1.8, "span")
    d.text((left + right) / 2, y + 24, words, part="span")


def pretraining():
    """Slide H09."""
    d = Drawing(
        "pretraining",
        "A network is first trained on a large amount of text without labels: GPT predicts the "
        "next word, and BERT predicts a hidden word. Its weights are kept, a small new layer is "
        "added, and the network is trained for the task on a few labelled examples.",
    )
    with d.part("pre-training"):
        d.frame(2, 2, 548, 558, part="frame")
        d.heading(20, 34, 1, "pre-training: a lot of text, no labels")
        for x, name, said, read in (
            (150, "GPT", "next word", "the dog ..."),
            (400, "BERT", "hidden word", "the [MASK] barked"),
        ):
            body = d.box("attention", x, 300, 190, 130, "backbone", part=f"{name}/backbone")
            head = d.box("linear", x, 168, 120, 48, "word head", size=18, part=f"{name}/head")
            d.arrow((x, 440), body.s, part=name)
            d.text(x, 462, read, 18, part=name)
            d.arrow(body.n, head.s, thing="state", part=name)
            d.arrow(head.n, (x, 112), part=name)
            d.text(x, 92, said, part=name)
            d.note(x, 510, name, color=INK, part=name)
    with d.step(1), d.part("fine-tuning"):
        d.frame(640, 2, 1150, 558, part="frame")
        d.heading(658, 34, 2, "fine-tuning: few labels")
        d.arrow((496, 300), (790, 300), kind="control", width=3)
        d.text(594, 260, "weights", 18, QUIET)
        body = d.box("attention", 895, 300, 210, 130, "pre-trained", "backbone")
        d.arrow((895, 440), body.s)
        d.text(895, 462, "the film was dull", 18)
        head = d.box("linear", 895, 168, 150, 48, "new classifier", size=18)
        d.arrow(body.n, head.s, thing="state")
        d.arrow(head.n, (895, 112))
        d.text(895, 92, "negative")
        d.note(895, 510, "train everything, or only the new layer (frozen backbone)")
    return d
