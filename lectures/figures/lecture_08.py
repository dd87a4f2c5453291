"""Lecture 08: Particle Transformer, class attention, Molecule Attention Transformer, ASTROMER."""

from blocks import LETTERS, ROLES

from coursekit.drawing import Drawing
from coursekit.drawing.style import BIG, INK, THINGS

STATE = THINGS["state"][1]


def particle_transformer():
    """Slides H10 to H13 and Qu, Li, Qian 2022."""
    d = Drawing(
        "particle_transformer",
        "Particles are embedded and pass through eight blocks of attention. A matrix U, computed "
        "from physical quantities of each pair, is added to the scores. Then a learned class token "
        "attends to all particles in two blocks, and the kind of jet is predicted from the state "
        "of this token.",
    )
    y, low = 150, 400
    d.text(2, y, "particles", anchor="start", part="particles")
    embed = d.box("linear", 170, y, 90, 60, "embed", part="particles")
    d.arrow((86, y), embed.w, part="particles")
    d.sizes(2, y + 32, "N", "C", anchor="start", part="particles")
    with d.part("particle attention"):
        d.frame(262, 46, 590, 256, r"8 $\times$", corner="se", part="frame")
        attention = d.box("attention", 362, y, 130, 84, "particle", "attention")
        mlp = d.box("linear", 514, y, 90, 64, "MLP")
        d.arrow(embed.e, attention.w, thing="state", width=3)
        d.arrow(attention.e, mlp.w, thing="state")
        d.note(426, 74, "with residual sums and norms")
    _pairs(d, low, attention)
    with d.step(2), d.part("class attention"):
        d.frame(640, 46, 890, 256, r"2 $\times$", corner="se", part="frame")
        cls = d.box("attention", 718, y, 124, 84, "class", "attention")
        last = d.box("linear", 840, y, 76, 64, "MLP")
        d.arrow(mlp.e, cls.w, thing="state", width=3)
        d.arrow(cls.e, last.w, thing="state")
        d.arrow((718, 310), cls.s, thing="query")
        d.text(718, 334, r"$x_\mathrm{class}$", BIG, THINGS["query"][1])
        d.note(776, 334, "learned", "start")
    with d.step(3), d.part("answer"):
        head = d.box("linear", 980, y, 84, 60, "linear")
        soft = d.box("softmax", 1102, y, 96, 46, "softmax")
        d.arrow(last.e, head.w, thing="state")
        d.arrow(head.e, soft.w)
        d.arrow(soft.s, (1102, 240))
        d.text(1150, 264, "kind of jet", anchor="end")
    return d


def _pairs(d, low, attention):
    with d.step(1), d.part("pairs"):
        d.text(2, low, "pairs", anchor="start")
        d.sizes(2, low + 32, "N", "N", "4", anchor="start")
        pairs = d.box("linear", 170, low, 90, 60, "embed")
        d.arrow((60, low), pairs.w)
        u = d.matrix(362, low, 6, 6, 18, "data", "$U$")
        d.arrow(pairs.e, u.w)
        d.arrow(u.n, attention.s, width=3)
        d.sizes(430, low + 30, "N", "N", "heads", anchor="start")
        d.note(430, low, "one matrix for each head", "start")
        d.text(2, 500, r"$\ln k_T,\ \ln z,\ \ln\Delta,\ \ln m^2$", 22, anchor="start")
        d.note(
            2,
            536,
            "relative transverse momentum, momentum fraction, distance and mass of a pair",
            "start",
        )
        d.text(600, 500, r"$\mathrm{softmax}(QK^T / \sqrt{d_k} + U)\,V$", BIG, anchor="start")


def class_attention():
    """Slide H12."""
    d = Drawing(
        "class_attention",
        "Only the learned class token has a query. Keys and values come from the token and from "
        "all particles, and the output is the new state of the token. The particles do not "
        "change.",
    )
    d.matrix(150, 110, 1, 5, 28, "query", part="token")
    d.text(2, 110, r"$x_\mathrm{class}$", BIG, THINGS["query"][1], "start", part="token")
    d.note(150, 148, "learned, random before training", part="token")
    d.matrix(150, 348, 6, 5, 28, "state", "$x^L$", part="particles")
    d.note(150, 460, "particles after the last block", part="particles")
    with d.step(1):
        maps = {}
        for role, y in zip(ROLES, (110, 262, 414), strict=True):
            maps[role] = d.box("linear", 480, y, 80, 60, f"$W_{LETTERS[role]}$", size=22, part=role)
        d.arrow((220, 110), maps["query"].w, thing="state", part="query")
        join = d.box("activation", 352, 338, 56, 130, r"$\Vert$", size=BIG, part="side by side")
        d.arrow((220, 348), (324, 348), thing="state", part="side by side")
        d.arrow((352, 110), join.n, thing="state", part="side by side")
        for role in ("key", "value"):
            d.arrow((410, 338), (410, maps[role].y), maps[role].w, thing="state", part=role)
        d.arrow(join.e, (410, 338), thing="state", head=False, part="side by side")
    with d.step(2), d.part("attention"):
        att = d.box("attention", 700, 262, 150, 130, "attention")
        d.arrow(maps["query"].e, (700, 110), att.n, thing="query")
        d.arrow(maps["key"].e, att.w, thing="key")
        d.arrow(maps["value"].e, (700, 414), att.s, thing="value")
        d.text(560, 90, "one query", 18, THINGS["query"][1], "start")
        d.text(530, 236, "$N + 1$ keys", 18, THINGS["key"][1], "start")
        d.text(560, 440, "$N + 1$ values", 18, THINGS["value"][1], "start")
    with d.step(3), d.part("answer"):
        out = d.matrix(930, 262, 1, 5, 28, "state")
        d.arrow(att.e, out.w, thing="state")
        d.text(930, 222, r"$x_\mathrm{class}'$", BIG, STATE)
        d.note(930, 300, "one vector for the jet,")
        d.note(930, 326, "the same for any order of the particles")
    return d


def molecule_attention():
    """Slide N28 and Maziarka et al. 2020."""
    d = Drawing(
        "molecule_attention",
        "Three matrices contain weights for pairs of atoms, which come from attention, from the "
        "distances and from the bonds. Each matrix is multiplied by a fixed factor. Their sum is "
        "multiplied by the values.",
    )
    rows = (
        ("attention", 100, r"$\lambda_a$", r"$\mathrm{softmax}(QK^T / \sqrt{d_k})$", "learned"),
        ("distance", 270, r"$\lambda_d$", "$g(D)$", "larger for near atoms"),
        ("bonds", 440, r"$\lambda_g$", r"$\mathrm{Adj}$", "bonds and diagonal, rows sum to 1"),
    )
    plus = d.op(670, 270, "+", "sum", size=40)
    for k, (name, y, share, formula, words) in enumerate(rows):
        with d.step(k), d.part(name):
            d.text(2, y - 14, formula, BIG, INK, "start")
            d.note(2, y + 24, words, "start")
            m = d.matrix(360, y, 6, 6, 20, "data")
            times = d.box("activation", 520, y, 76, 46, share, size=22)
            d.arrow(m.e, times.w)
            points = [times.e, plus.w] if y == 270 else [times.e, (670, y)]
            d.arrow(*points, *([] if y == 270 else [plus.n if y < 270 else plus.s]))
    with d.step(3), d.part("sum"):
        a = d.matrix(790, 270, 6, 6, 20, "data", "$A$")
        d.arrow(plus.e, a.w)
        d.text(880, 270, r"$\cdot$", 34)
        d.matrix(940, 270, 6, 4, 20, "value", "$V$")
        d.text(1010, 270, "$=$", 30)
        d.matrix(1076, 270, 6, 4, 20, "state", "$Y$")
        d.note(790, 356, "[atom, atom]")
        d.note(940, 356, "values of the atoms")
    return d


def astromer():
    """Slides H14 to H16."""
    d = Drawing(
        "astromer",
        "A light curve is a sequence of brightness values at irregular times, and the times "
        "determine the positional encoding. Some values are hidden, and the network is trained to "
        "predict them. Later, a small classifier predicts the kind of star from the states of the "
        "network.",
    )
    _light_curve(d)
    with d.step(1), d.part("input"):
        lin = d.box("linear", 130, 300, 120, 56, "linear")
        plus = d.op(300, 300, "+", size=32)
        pos = d.box("activation", 300, 420, 190, 52, r"$\sin(\omega t),\ \cos(\omega t)$", size=19)
        d.arrow((130, 236), lin.n)
        d.note(146, 232, "brightness, 0 if hidden", "start")
        d.arrow(lin.e, plus.w, thing="state")
        d.arrow((300, 500), pos.s)
        d.note(300, 518, "observation times")
        d.arrow(pos.n, plus.s)
    with d.step(2), d.part("encoder"):
        enc = d.box("attention", 500, 300, 170, 110, r"encoder  $2\times$")
        d.arrow(plus.e, enc.w, thing="state")
        d.sizes(640, 270, "T", "256", part="states")
    with d.step(3), d.part("pre-training"):
        head = d.box("linear", 790, 300, 110, 56, "linear")
        d.arrow(enc.e, head.w, thing="state")
        d.arrow(head.e, (920, 300))
        d.text(932, 300, "the hidden values", anchor="start")
        d.note(932, 330, "pre-training, no labels", "start")
    with d.step(4), d.part("fine-tuning"):
        head = d.box("linear", 790, 440, 130, 56, "classifier")
        d.arrow((690, 300), (690, 440), head.w, thing="state")
        d.arrow(head.e, (920, 440))
        d.text(932, 440, "kind of star", anchor="start")
        d.note(932, 470, "fine-tuning, few labels", "start")
    return d


def _light_curve(d):
    xs = (96, 150, 250, 290, 420, 470, 560, 690)
    heights = (0.3, 0.5, 0.9, 0.95, 0.4, 0.25, 0.5, 0.85)
    hidden = (2, 5)
    with d.part("light curve"):
        d.arrow((60, 170), (760, 170))
        d.text(752, 196, "time", 18, anchor="end")
        d.text(60, 28, "brightness (two values are hidden)", 18, anchor="start")
        for i, (x, h) in enumerate(zip(xs, heights, strict=True)):
            kind = "activation" if i in hidden else "picked"
            d.node(x, 160 - 100 * h, kind=kind, radius=9, part="points")
            if i in hidden:
                d.text(x - 16, 160 - 100 * h, "?", BIG, anchor="end")
