"""The page "Coming from PyTorch", made from the table of hints: `python -m tests.mistakes.page`."""

from tests import ROOT
from tinyattn.engine.torch_hints import DIFFERENT, FUNCTIONS, KEYWORDS, METHODS, MODULES

PAGE = ROOT / "lectures" / "from_pytorch.md"

TOP = """\
# Coming from PyTorch

Names, arguments, shapes and weights of layers are PyTorch's, so that a `state_dict` can be loaded
from one into the other. This page lists what differs. `python -m tests.mistakes.page` makes it from
[`tinyattn/engine/torch_hints.py`](../tinyattn/engine/torch_hints.py); a test runs both
sides of each line that has a value, and compares them. The error for a name that is not here, of a
method, a function or an argument, shows its line: `x.view(3, 2)` says that it is `x.reshape(3, 2)`.

In short:

- **Arrays are NumPy's.** `x.data`, `x.grad` and what `model.state_dict()` holds are arrays,
  functions of tensors are NumPy's (`np.exp(x)`, `np.einsum(...)`), and so are the names of
  arguments: `axis`, `keepdims`.
- **The batch is the first axis**, everywhere: recurrent layers take `x [B, T, D]`, where
  PyTorch's default is `[T, B, D]`. The state is `[layers · directions, B, H]`, as there.
- **True in a mask means "may take part"**, in every function and layer. PyTorch's
  `scaled_dot_product_attention` means the same, its layers (`attn_mask`, `key_padding_mask`) the
  opposite.
- **No device**, no `.to(...)`: there is only the CPU. `model.astype(np.float64)` changes the
  dtype.
- **`x.std()` and `x.var()` divide by n**, as in NumPy; PyTorch divides by n - 1.
- **`.grad` is kept on leaves only**, and a result says so; `ta.gradients(y, [h])` gives that of a
  result h.
- **Operations make new arrays**, and none has a variant with a `_` at its end. What writes is
  `x[...] = v` and `x.data = v`, for values without a gradient, and `p -= lr * p.grad` inside
  `ta.no_grad()`; if a graph has used the old values, its `backward` refuses.
- **A plain array is not watched.** It must not be changed between an operation that it took part in
  and `backward`, or the gradient is silently wrong; `ta.tensor(array)` is a copy.
"""

SECTIONS = [
    ("Called the same, or taken for granted, and different", DIFFERENT),
    ("Arguments", KEYWORDS),
    ("Attributes and methods of a tensor", METHODS),
    ("Attributes and methods of a module", MODULES),
    ("Functions and classes", FUNCTIONS),
]


def cell(text):
    """Code for a table, where a bar would end the cell."""
    return f"`{text}`".replace("|", "\\|")


def page():
    """The whole text."""
    parts = [TOP]
    for title, lines in SECTIONS:
        rows = [f"| {cell(h.theirs)} | {cell(h.ours)} | {h.note} |" for h in lines.values()]
        parts.append(
            "\n".join([f"## {title}\n", "| PyTorch | tinyattn | |", "|---|---|---|", *rows, ""])
        )
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
