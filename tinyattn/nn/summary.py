"""Display of a module as a tree of its parts and as a table of layers and shapes."""

import html

from tinyattn.engine.autograd import no_grad


def tree(module, indent=0):
    """Return a module and all modules inside it as text, with an indented line for each.

    Args:
        module   the module
        indent   number of levels, of two spaces each, by which all lines but the first are indented
    """
    name = type(module).__name__
    children = list(module.named_children())
    if not children:
        return f"{name}({module.extra_repr()})"
    pad = "  " * (indent + 1)
    lines = [pad + module.extra_repr()] if module.extra_repr() else []
    lines += [f"{pad}({n}): {tree(m, indent + 1)}" for n, m in children]
    return f"{name}(\n" + "\n".join(lines) + "\n" + "  " * indent + ")"


class Summary:
    """A table of layers with their output shapes and numbers of parameters.

    The shapes are recorded in one call of the module, in evaluation mode and without gradients.

    Args:
        module    the module
        inputs    arguments of this call. Without inputs and options, the table has no shapes
        options   dictionary of keyword arguments of this call, or None
    """

    def __init__(self, module, inputs=(), options=None):
        shapes = _run(module, inputs, options or {}) if inputs or options else {}
        self.rows = []
        left = {id(p): p.size for p in module.parameters()}  # a shared parameter counts once
        for name, m in module.named_modules():
            size = sum(left.pop(id(v), 0) for v in vars(m).values())
            level = name.count(".") + 1 if name else 0
            label = "  " * level + (f"{name.rsplit('.', 1)[-1]}: " if name else "")
            self.rows.append((label + type(m).__name__, shapes.get(id(m), ""), size))
        self.total = module.num_parameters()

    def __repr__(self):
        cells = [("layer", "output shape", "parameters")]
        cells += [(a, b, f"{n:,}" if n else "-") for a, b, n in self.rows]
        widths = [max(len(row[i]) for row in cells) for i in range(3)]
        lines = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c:>{widths[2]}}" for a, b, c in cells]
        rule = "-" * len(lines[0])
        return "\n".join([lines[0], rule, *lines[1:], rule, f"{self.total:,} parameters"])

    def _repr_html_(self):
        left, right = "text-align:left;white-space:pre", "text-align:right"
        rows = "".join(
            f'<tr><td style="{left}">{html.escape(a)}</td><td style="{left}">{b}</td>'
            f'<td style="{right}">{f"{n:,}" if n else "-"}</td></tr>'
            for a, b, n in self.rows
        )
        return (
            f'<table><thead><tr><th style="{left}">layer</th><th style="{left}">output shape</th>'
            f'<th style="{right}">parameters</th></tr></thead><tbody>{rows}</tbody>'
            f'<tfoot><tr><td style="{left}" colspan="2"><b>together</b></td>'
            f'<td style="{right}"><b>{self.total:,}</b></td></tr></tfoot></table>'
        )


def _run(module, inputs, options):
    """Return the output shape of every module inside, observed during one call."""
    shapes, watched = {}, list(module.modules())

    def watch(m):
        inner = m.forward

        def forward(*args, **kwargs):
            out = inner(*args, **kwargs)
            first = out[0] if isinstance(out, tuple) and out else out
            shapes[id(m)] = str(getattr(first, "shape", ""))
            return out

        vars(m)["forward"] = forward

    modes = [m.training for m in watched]
    try:
        for m in watched:
            watch(m)
        module.eval()
        with no_grad():
            module(*inputs, **options)
    finally:
        for m, mode in zip(watched, modes, strict=True):
            vars(m).pop("forward", None)
            m.training = mode
    return shapes
