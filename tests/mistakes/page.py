"""The page "Coming from PyTorch", made from the table of hints: `python -m tests.mistakes.page`."""

from tests import ROOT
from tinyattn.engine.torch_hints import DIFFERENT, FUNCTIONS, KEYWORDS, METHODS, MODULES

PAGE = ROOT / "lectures" / "from_pytorch.md"

TOP = """\
# Coming from PyTorch

This page is for readers who know PyTorch. Names, arguments, shapes and weights of layers are the
same, so you can load a `state_dict` from one library into the other. The tables list what differs.
`python -m tests.mistakes.page` makes them from
[`tinyattn/engine/torch_hints.py`](../tinyattn/engine/torch_hints.py), and a test runs both sides of
each line that has a value and compares them. If you use a method, function or argument of PyTorch
that does not exist here, the error message quotes the matching line: `x.view(3, 2)` tells you to
write `x.reshape(3, 2)`.

In short:

- **Arrays are NumPy's.** `x.data`, `x.grad` and the entries of `model.state_dict()` are arrays.
  Functions of tensors are NumPy's (`np.exp(x)`, `np.einsum(...)`), and so are the names of their
  arguments, `axis` and `keepdims`.
- **The batch is the first axis** everywhere. Recurrent layers take `x [B, T, D]`, where PyTorch's
  default is `[T, B, D]`. The state is `[layers · directions, B, H]`, as in PyTorch.
- **In a mask, True means "attend to this position"**, in every function and layer. PyTorch's
  `scaled_dot_product_attention` means the same, but its layers (`attn_mask`, `key_padding_mask`)
  mean the opposite.
- **There is only the CPU**, so tensors have no device and no `.to(...)`.
  `model.astype(np.float64)` changes the dtype.
- **`x.std()` and `x.var()` divide by n**, as in NumPy. PyTorch divides by n - 1.
- **Saving.** `ta.save(path, model.state_dict())` writes the weights, and
  `model.load_state_dict(ta.load(path))` reads them. To continue a training later, write
  `tinyattn.io.save_checkpoint(path, model, optimizer)`, and then, with a new model and optimizer
  of the same classes and sizes, `tinyattn.io.load_checkpoint(path, model, optimizer)`.
- **Only leaf tensors store `.grad`.** Reading it on any other tensor gives None and a warning. For
  the gradient of an intermediate result h, use `ta.gradients(y, [h])`.
- **Operations return new tensors**, and none has an in-place variant whose name ends in `_`. To
  overwrite values, use `x[...] = v` or `x.data = v`, where v must not carry a gradient, or
  `p -= lr * p.grad` inside `ta.no_grad()`. If a graph still needs the old values, its `backward()`
  raises an error.
- **Changes to plain NumPy arrays are not tracked.** If you modify an array between the operation
  that used it and `backward()`, the gradient is silently wrong. `ta.tensor(array)` copies the
  array, so it is safe.
"""

SECTIONS = [
    ("Same name, different behaviour", DIFFERENT),
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
