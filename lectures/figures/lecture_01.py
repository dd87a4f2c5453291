"""Lecture 01: one cell over time, four ways to read and write, GRU and LSTM."""

from coursekit.drawing import Drawing
from coursekit.drawing.style import BIG, PANEL, THINGS

STATE, MEMORY = THINGS["state"][1], THINGS["memory"][1]


def unrolled():
    """Slides H16, H17, KB03, with the letters of H17."""
    d = Drawing(
        "unrolled",
        "A recurrent cell multiplies the old state by one matrix and the input by another, adds "
        "the two products, and applies a nonlinearity, which gives the new state. Unrolled over "
        "time, the same cell with the same weights appears at every step, and each step passes its "
        "state to the next.",
    )
    _cell_inside(d)
    with d.step(1):
        d.text(614, 290, "$=$", 34, part="unrolled")
        before = None
        for t, x in enumerate((716, 844, 972), 1):
            with d.part(f"step {t}"):
                cell = d.box("linear", x, 290, 76, 96, "cell")
                d.arrow((x, 440), cell.s)
                d.text(x, 462, f"$x_{t}$", BIG)
                d.arrow(cell.n, (x, 140))
                d.text(x, 118, f"$y_{t}$", BIG)
                d.arrow(before.e if before else (650, 290), cell.w, thing="state", width=3)
                if before:
                    d.text((before.e[0] + cell.left) / 2, 268, f"$a_{t - 1}$", 20, STATE)
            before = cell
        d.arrow(before.e, (1062, 290), thing="state", width=3, part="step 3")
        d.text(1036, 268, "$a_3$", 20, STATE, part="step 3")
        d.text(1100, 290, r"$\cdots$", BIG, part="unrolled")
        d.note(844, 520, "the same weights at every step", part="unrolled")
    return d


def _cell_inside(d):
    d.frame(86, 150, 520, 430, "cell", part="cell", corner="nw")
    with d.part("cell"):
        old, add, act = d.row(
            124,
            290,
            ("linear", 84, ["$W_{aa}$"], "W_aa"),
            ("+", 32, [], "sum"),
            ("activation", 84, ["tanh"], "tanh"),
            gap=40,
            height=56,
        )
        new = d.box("linear", add.x, 380, 84, 52, "$W_{ax}$", part="W_ax")
        d.arrow((2, 290), old.w, thing="state", width=3)
        d.arrow(old.e, add.w, thing="state")
        d.arrow((add.x, 490), new.s, part="W_ax")
        d.arrow(new.n, add.s, part="W_ax")
        d.arrow(add.e, act.w, thing="state", part="tanh")
        d.arrow(act.e, (584, 290), thing="state", width=3, part="state")
        out = d.box("linear", 462, 210, 84, 48, "$W_{ya}$", part="W_ya")
        d.arrow((462, 290), out.s, thing="state", part="W_ya")
        d.arrow(out.n, (462, 112), part="W_ya")
    d.text(2, 264, "$a_{t-1}$", BIG, STATE, "start", part="state")
    d.text(560, 264, "$a_t$", BIG, STATE, part="state")
    d.text(add.x, 514, "$x_t$", BIG, part="input")
    d.text(462, 90, "$y_t$", BIG, part="output")


def patterns():
    """Slide H18: which steps read, and which outputs count."""
    d = Drawing(
        "patterns",
        "A recurrent cell reads and writes in four patterns. In the first, one input starts a long "
        "output. In the second, a long input leads to one output. In the third, each input has an "
        "output. In the fourth, the whole input is read before the output is written.",
    )
    panels = (
        ("one to many", "a note in, a melody out", (1, 0, 0, 0), (1, 1, 1, 1)),
        ("many to one", "read everything, then answer once", (1, 1, 1, 1), (0, 0, 0, 1)),
        ("many to many, in step", "a tag for each letter", (1, 1, 1, 1), (1, 1, 1, 1)),
        (
            "many to many, one after the other",
            "read everything, then write",
            (1, 1, 1, 0, 0, 0),
            (0, 0, 0, 1, 1, 1),
        ),
    )
    for k, (title, words, reads, writes) in enumerate(panels):
        left, top = 2 + 592 * (k % 2), 4 + 284 * (k // 2)
        with d.step(k), d.part(title):
            d.frame(left, top, left + 556, top + 264)
            d.heading(left + 18, top + 30, k + 1, title)
            d.note(left + 59, top + 60, words, anchor="start")
            _wiring(d, left + 40, left + 516, top + 164, reads, writes)
    return d


def _wiring(d, left, right, y, reads, writes):
    cells = [("linear", 48, [], "cell")] * len(reads)
    boxes = d.row(left, y, *cells, right=right, height=48)
    d.chain(boxes, "state")
    for box, read, write in zip(boxes, reads, writes, strict=True):
        if read:
            d.arrow((box.x, y + 68), box.s)
            d.text(box.x, y + 82, "$x$", 22)
        if write:
            d.arrow(box.n, (box.x, y - 56))
            d.text(box.x, y - 78, "$y$", 22)


def lstm():
    """Slides H20 and KB04."""
    d = Drawing(
        "lstm",
        "The old state and the input feed three gates and the candidate. The cell state is "
        "multiplied by the forget gate, and then the product of the input gate and the candidate "
        "is added to it. The new state is the output gate times the tanh of the cell state.",
    )
    d.frame(110, 40, 664, 512, part="cell")
    gates = _gates(d)
    times, plus = d.op(190, 96, "*", "forget/times", 32), d.op(355, 96, "+", "write/plus", 32)
    with d.part("memory"):
        d.arrow((2, 96), times.w, thing="memory", kind="rail")
        d.arrow(times.e, plus.w, thing="memory", kind="rail")
        d.arrow(plus.e, (746, 96), thing="memory", kind="rail")
        d.text(2, 66, "$c_{t-1}$", BIG, MEMORY, "start")
        d.text(746, 66, "$c_t$", BIG, MEMORY, "end")
    with d.step(1), d.part("forget"):
        d.arrow(gates[0].n, times.s)
        d.text(206, 270, "$f_t$", 22, anchor="start")
        _equation(d, 130, 1, "forget", r"$f_t \odot c_{t-1}$")
    with d.step(2), d.part("write"):
        both = d.op(355, 200, "*", "times", 32)
        d.arrow(gates[1].n, (300, 200), both.w)
        d.arrow(gates[2].n, (410, 200), both.e)
        d.arrow(both.n, plus.s, thing="memory", width=3)
        d.text(288, 270, "$i_t$", 22, anchor="end")
        d.text(422, 270, "$g_t$", 22, anchor="start")
        _equation(d, 250, 2, "write", r"$c_t = f_t \odot c_{t-1} + i_t \odot g_t$")
    with d.step(3), d.part("read"):
        tanh = d.box("activation", 606, 164, 76, 38, "tanh")
        read = d.op(606, 236, "*", "times", 32)
        d.arrow((606, 99), tanh.n, thing="memory", width=3)
        d.arrow(tanh.s, read.n)
        d.arrow(gates[3].n, (520, 236), read.w)
        d.text(508, 270, "$o_t$", 22, anchor="end")
        d.arrow(read.s, (606, 430), (746, 430), thing="state", width=3)
        d.text(746, 404, "$h_t$", BIG, STATE, "end")
        _equation(d, 370, 3, "read", r"$h_t = o_t \odot \tanh(c_t)$")
    d.text(
        780,
        480,
        r"$f, i, o = \sigma([h_{t-1}, x_t]\,W_{f,i,o} + b_{f,i,o})$",
        18,
        anchor="start",
        part="gates",
    )
    d.text(780, 514, r"$g = \tanh([h_{t-1}, x_t]\,W_g + b_g)$", 18, anchor="start", part="gates")
    return d


def _equation(d, y, number, words, formula, size=22):
    d.heading(780, y, number, words)
    d.text(821, y + 40, formula, size, anchor="start")


def _gates(d):
    """The three gates and the candidate of an LSTM, fed by the old state and the input."""
    words = (
        ("forget", r"$\sigma$"),
        ("input", r"$\sigma$"),
        ("candidate", "tanh"),
        ("output", r"$\sigma$"),
    )
    gates = []
    with d.part("gates"):
        d.arrow((2, 430), (500, 430), (500, 366), thing="state", width=3)
        d.arrow((150, 530), (150, 472), (540, 472), (540, 366))
        for k, lines in enumerate(words):
            x = 190 + 110 * k
            gates.append(d.box("linear", x, 332, 92, 68, *lines, size=18, part=lines[0]))
            if k < 3:
                d.arrow((x - 20, 430), (x - 20, 366), thing="state", width=3)
                d.arrow((x + 20, 472), (x + 20, 366), over=PANEL)
        d.text(2, 404, "$h_{t-1}$", BIG, STATE, "start")
        d.text(128, 540, "$x_t$", BIG, anchor="end")
    return gates


def gru():
    """Slide H20, with the update gate of nn.GRU: z is the fraction of the old state."""
    d = Drawing(
        "gru",
        "The state runs through the cell. The update gate z is the fraction of the old state that "
        "is kept. The candidate is computed from the input and from the part of the old state that "
        "the reset gate lets through. The candidate times 1 - z is added to what is kept.",
    )
    d.frame(110, 40, 664, 512, part="cell")
    keep, plus = d.op(230, 96, "*", "keep/times", 32), d.op(590, 96, "+", "fill/plus", 32)
    with d.part("state"):
        d.arrow((2, 96), keep.w, thing="state", kind="rail")
        d.arrow(keep.e, plus.w, thing="state", kind="rail")
        d.arrow(plus.e, (746, 96), thing="state", kind="rail")
        d.text(2, 66, "$h_{t-1}$", BIG, STATE, "start")
        d.text(746, 66, "$h_t$", BIG, STATE, "end")
        d.arrow((140, 96), (140, 430), (472, 430), thing="state", head=False)
        d.arrow((150, 530), (150, 472), (572, 472), head=False)
        d.arrow((210, 430), (210, 366), thing="state")
        d.arrow((250, 472), (250, 366), over=PANEL)
        d.text(128, 540, "$x_t$", BIG, anchor="end")
    update = d.box("linear", 230, 332, 92, 68, "update", r"$\sigma$", size=18, part="update")
    with d.step(1), d.part("keep"):
        d.arrow(update.n, keep.s)
        d.text(246, 270, "$z_t$", 22, anchor="start")
        _equation(d, 130, 1, "keep", r"$z_t \odot h_{t-1}$")
    _candidate(d, plus)
    d.text(
        780,
        480,
        r"$z, r = \sigma([h_{t-1}, x_t]\,W_{z,r} + b_{z,r})$",
        18,
        anchor="start",
        part="gates",
    )
    d.note(780, 514, "z is the fraction of the old state that is", anchor="start", part="gates")
    d.note(780, 540, "kept (the convention of nn.GRU)", anchor="start", part="gates")
    return d


def _candidate(d, plus):
    with d.step(2), d.part("candidate"):
        reset = d.box("linear", 390, 332, 92, 68, "reset", r"$\sigma$", size=18, part="reset")
        new = d.box("linear", 590, 332, 92, 68, "candidate", "tanh", size=18)
        hide = d.op(490, 332, "*", "times", 32)
        d.arrow((460, 430), (490, 430), hide.s, thing="state")
        d.arrow((370, 430), (370, 366), thing="state")
        d.arrow((560, 472), (590, 472), new.s)
        d.arrow((410, 472), (410, 366), over=PANEL)
        d.arrow(reset.e, hide.w)
        d.arrow(hide.e, new.w, thing="state")
        d.text(456, 306, "$r_t$", 22)
        _equation(d, 250, 2, "propose", r"$n_t = \tanh([r_t \odot h_{t-1}, x_t]\,W_n + b_n)$", 20)
    with d.step(3), d.part("fill"):
        rest = d.box("activation", 410, 200, 96, 40, r"$1 - z_t$")
        fill = d.op(590, 200, "*", "times", 32)
        d.arrow((230, 200), rest.w)
        d.arrow(rest.e, fill.w)
        d.arrow(new.n, fill.s, thing="state")
        d.arrow(fill.n, plus.s, thing="state")
        d.text(606, 270, "$n_t$", 22, anchor="start")
        _equation(d, 370, 3, "combine", r"$h_t = z_t \odot h_{t-1} + (1 - z_t) \odot n_t$")
