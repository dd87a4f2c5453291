"""Lecture 02: an image into words, through one vector and with attention."""

from coursekit.drawing import Drawing
from coursekit.drawing.paths import paint
from coursekit.drawing.style import BIG, THINGS

STATE, VALUE = THINGS["state"][1], THINGS["value"][1]
COLUMNS = (604, 730, 856, 982, 1108)  # the steps of the decoder
WORDS = ("<start>", "blue", "circle", "red", "square")  # the caption goes row by row


def through_one_vector():
    """Slide KB08."""
    d = Drawing(
        "through_one_vector",
        "A CNN turns the nine regions of an image into nine vectors, and a function combines these "
        "into one context vector. At every step, an LSTM receives this vector and the previous "
        "word, and predicts the next word.",
    )
    _image(d, 2, 170)
    z = _regions(d, 306, 248)
    with d.step(1), d.part("context"):
        f = d.box("linear", 410, 248, 64, 150, "$f_w$", size=BIG)
        d.arrow(z.e, f.w, thing="state")
        c = d.matrix(490, 248, 4, 1, 20, "memory", part="c")
        d.arrow(f.e, c.w, thing="memory", width=3)
        d.text(490, 186, "$c$", 28, THINGS["memory"][1])
        d.note(450, 352, "one vector for")
        d.note(450, 376, "the whole image")
    with d.step(2), d.part("decoder"):
        d.arrow(
            (500, 248),
            (538, 248),
            (538, 344),
            (COLUMNS[-1] - 24, 344),
            (COLUMNS[-1] - 24, 282),
            thing="memory",
            width=3,
            part="context",
        )
        for x in COLUMNS[:-1]:
            d.arrow((x - 24, 344), (x - 24, 282), thing="memory", width=3, part="context")
        _decoder(d, 248)
    return d


def _image(d, left, top):
    with d.part("image"):
        side = 52
        for k in range(9):
            x, y = left + (k % 3) * side, top + (k // 3) * side
            form = f'<rect x="{x}" y="{y}" width="{side}" height="{side}" '
            d.shape("cell", None, form + paint("#FFFFFF", THINGS["data"][0], 1.4) + "/>")
        red = f'<rect x="{left + 12}" y="{top + side + 12}" width="28" height="28" '
        d.shape("cell", None, red + 'fill="#B5452C"/>')
        dot = f'<circle cx="{left + 130}" cy="{top + 26}" r="14" fill="#3D6FB4"/>'
        d.shape("cell", None, dot)
        d.note(left + 78, top + 180, "nine image regions")


def _regions(d, x, y):
    with d.part("regions"):
        net = d.box("linear", 228, y, 70, 96, "CNN")
        d.arrow((158, y), net.w)
        z = d.matrix(x, y, 9, 2, 18, "state", "$z_j$", size=22)
        d.arrow(net.e, z.w, thing="state")
        d.sizes(x, y + 100, "9", "D")
    return z


def _decoder(d, y):
    xs = COLUMNS
    boxes = [d.box("linear", x, y, 84, 68, "LSTM", part=f"step {t}") for t, x in enumerate(xs, 1)]
    said = (*WORDS[1:], "<end>")
    for t, (box, x) in enumerate(zip(boxes, xs, strict=True)):
        d.arrow(box.n, (x, y - 90), part=f"step {t + 1}")
        d.text(x, y - 108, said[t], part=f"step {t + 1}")
        d.arrow((x + 22, 440), (x + 22, box.bottom), part=f"step {t + 1}", over="#FFFFFF")
        d.text(x, 462, WORDS[t], part=f"step {t + 1}")
    d.chain(boxes, "state", [f"step {t}" for t in range(1, len(xs) + 1)])
    d.note(856, 520, "each word is the input of the next step")


def with_attention():
    """Slides KB09 to KB12, with their letters."""
    d = Drawing(
        "with_attention",
        "The state of the decoder is compared with every region of the image, and a softmax turns "
        "the scores into weights. The weighted sum of the regions is the context vector, which is "
        "computed again for each word. From the context vector, the previous word and its old "
        "state, the LSTM predicts the next word.",
    )
    _image(d, 2, 60)
    z = _regions(d, 306, 138)
    d.text(2, 440, "$h_{t-1}$", BIG, STATE, "start", part="state")
    with d.step(1), d.part("scores"):
        phi = d.box("linear", 470, 250, 96, 60, r"$\Phi$", size=BIG)
        d.arrow(z.e, (470, 138), thing="state", head=False)
        d.arrow((470, 138), phi.n, thing="key")
        d.arrow((70, 440), (470, 440), thing="state", head=False)
        d.arrow((470, 440), phi.s, thing="query")
        d.text(486, 186, "the regions", 18, THINGS["key"][1], "start")
        d.text(486, 330, "the query", 18, THINGS["query"][1], "start")
    with d.step(2), d.part("weights"):
        soft = d.box("softmax", 630, 250, 104, 46, "softmax")
        d.arrow(phi.e, soft.w)
        d.text(548, 226, "$e_{tj}$", 20)
        d.note(546, 276, "score")
        a = d.matrix(740, 250, 9, 3, 12, "data", "$a_t$")
        d.arrow(soft.e, a.w)
        d.note(740, 326, "one weight for each region")
    with d.step(3), d.part("context"):
        times = d.box("activation", 740, 100, 200, 46, r"$c_t = \Sigma_j\, a_{tj}\, z_j$", size=20)
        d.arrow((470, 138), (560, 138), (560, 100), times.w, thing="value")
        d.arrow(a.n, times.s)
    with d.step(4), d.part("word"):
        lstm = d.box("linear", 960, 340, 110, 80, "LSTM")
        d.arrow(times.e, (960, 100), lstm.n, thing="value")
        d.text(978, 160, "$c_t$", BIG, VALUE, "start")
        d.arrow((470, 440), (880, 440), (880, 340), lstm.w, thing="state")
        d.arrow((960, 470), lstm.s)
        d.text(960, 494, "$E[w_{t-1}]$", BIG)
        d.note(960, 530, "the previous word")
        d.arrow(lstm.e, (1100, 340), thing="state", width=3)
        d.text(1100, 312, "$h_t$", BIG, STATE)
        d.note(1150, 372, "predicts the", "end")
        d.note(1150, 394, "next word", "end")
    with d.step(5), d.part("again"):
        d.note(2, 500, "The same steps with the new state give the next word.", "start")
    return d


def two_layers():
    """Slide KB12: the layer of the captioner, and self-attention, box by box at the same places."""
    d = Drawing(
        "two_layers",
        "On the left is the attention of the captioner: the state h is compared with the regions "
        "z, and a score, a softmax and a weighted sum give the context c. On the right is "
        "self-attention with the same three boxes. Three matrices give each word a query, a key "
        "and a value, and each word attends to all words.",
    )
    for k, title in enumerate(
        ("captioner: state attends to regions", "self-attention: words attend to words")
    ):
        left = 600 * k
        with d.step(k), d.part(("captioner", "self-attention")[k]):
            d.frame(left + 2, 2, left + 550, 558, part="frame")
            d.heading(left + 20, 34, k + 1, title)
            _layer(d, left, own_matrices=k == 1)
    return d


def _layer(d, left, *, own_matrices):
    letters = ("$q_i$", "$k_j$", "$v_j$") if own_matrices else ("$h_{t-1}$", "$z_j$", "$z_j$")
    score, weight, out = (
        ("$s_{ij}$", "$a_{ij}$", "$y_i$") if own_matrices else ("$e_{tj}$", "$a_{tj}$", "$c_t$")
    )
    query, key, value, y_in = left + 100, left + 380, left + 480, 490
    phi = d.box(
        "linear" if not own_matrices else "activation",
        left + 240,
        330,
        120,
        54,
        r"$q_i \cdot k_j/\sqrt{d}$" if own_matrices else r"$\Phi(h, z_j)$",
        part="score",
    )
    soft = d.box("softmax", left + 240, 226, 120, 46, "softmax", part="softmax")
    total = d.box("activation", left + 240, 130, 120, 46, r"$\Sigma_j$", size=BIG, part="sum")
    above = y_in - 24
    if own_matrices:
        above = 410 - 22
        for x, name in ((query, "$W^Q$"), (key, "$W^K$"), (value, "$W^V$")):
            box = d.box("linear", x, 410, 72, 44, name, part=name)
            d.arrow((x, y_in - 24), box.s, thing="state")
    d.arrow((query, above), (query, 330), phi.w, thing="query")
    d.arrow((key, above), (key, 330), phi.e, thing="key")
    d.arrow((value, above), (value, 130), total.e, thing="value")
    for x, y, label, thing in zip(
        (query, key, value), (300, 300, 300), letters, ("query", "key", "value"), strict=True
    ):
        d.text(x + (0 if x != value else 34), y if x != value else 226, label, 22, THINGS[thing][1])
    ends = ("$x_i$", "$x_j$", "$x_j$") if own_matrices else ("state", "regions", "regions")
    for x, label in zip((query, key, value), ends, strict=True):
        d.text(x, y_in, label, 22 if own_matrices else 18)
    d.arrow(phi.n, soft.s)
    d.text(left + 262, 276, score, 20, anchor="start")
    d.arrow(soft.n, total.s)
    d.text(left + 262, 178, weight, 20, anchor="start")
    d.arrow(total.n, (left + 240, 80), thing="state", width=3)
    d.text(left + 272, 84, out, BIG, STATE, "start")
    note = (
        "three matrices give each word three roles"
        if own_matrices
        else "the same regions are compared and summed"
    )
    d.note(left + 276, 534, note)
