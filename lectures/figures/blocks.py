"""What several drawings share: the three maps before attention, residual paths, a legend."""

from coursekit.drawing.style import QUIET, THINGS

ROLES = ("query", "key", "value")
LETTERS = dict(zip(ROLES, "QKV", strict=True))


def projections(d, left, y, start, roles=ROLES, gap=34, width=44):
    """The maps W of a state that arrives at (start, y): returns the boxes, one below the other."""
    boxes = []
    for k, role in enumerate(roles):
        high = y + (k - (len(roles) - 1) / 2) * gap
        box = d.box(
            "linear", left + width / 2, high, width, 28, f"$W^{LETTERS[role]}$", size=18, part=role
        )
        points = [(start, y), (start, high), box.w] if abs(high - y) > 1 else [(start, y), box.w]
        d.arrow(*points, thing="state", part=role, bend=8)
        boxes.append(box)
    return boxes


def into_attention(d, left, y, start, width, *lines, part="attention"):
    """Query, key and value of one state go into an attention box; returns the box."""
    with d.part(part):
        maps = projections(d, left, y, start)
        box = d.box("attention", left + 62 + width / 2, y, width, 98, *lines)
        for role, w in zip(ROLES, maps, strict=True):
            d.arrow(w.e, (box.left, w.y), thing=role, part=role)
    return box


def residual(d, x, y, level, op, part):
    """The state goes round a sub-layer, from (x, y) over the height `level` to the sum."""
    end = op.n if level < y else op.s
    d.arrow(
        (x, y), (x, level), (op.x, level), end, thing="state", kind="residual", width=2, part=part
    )


def add_and_norm(d, after, part):
    """A sum and a norm to the right of a box; returns both."""
    with d.part(part):
        op = d.op(after.right + 32, after.y, "+", part="add")
        norm = d.box("norm", op.right + 48, after.y, 60, 56, "norm", part="norm")
        d.arrow(after.e, op.w, thing="state", part="add")
        d.arrow(op.e, norm.w, thing="state", part="norm")
    return op, norm


def legend(d, left, top, *rows, gap=30):
    """Lines of colour and what flows there; rows are (thing, words)."""
    for k, (thing, words) in enumerate(rows):
        y = top + k * gap
        kind = "rail" if thing == "memory" else "flow"
        d.arrow((left, y), (left + 44, y), thing=thing, kind=kind, part="legend")
        d.text(left + 58, y, words, 17, THINGS[thing][1], "start", part="legend")


def legend_boxes(d, left, top, *rows, gap=34):
    """Small boxes and what they are; rows are (kind, words)."""
    for k, (kind, words) in enumerate(rows):
        y = top + k * gap
        d.box(kind, left + 22, y, 44, 22, part="legend")
        d.text(left + 58, y, words, 17, QUIET, "start", part="legend")
