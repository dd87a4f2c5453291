"""The three rungs of a function side by side: loops, array algebra, compiled kernel."""

import inspect
from importlib import import_module

from tinyattn.course.site.addresses import relative, source_page

# {name: [(title, what it is, module, functions)]}
RUNGS = {
    "functional/scaled_dot_product_attention": [
        ("Index sums", 'impl="sums": the three formulas as loops',
         "tinyattn.kernels.attention", ["scores", "sums"]),
        ("Array algebra", 'impl="numpy": two matrix products and a softmax; times v is the result',
         "tinyattn.functional.attention", ["_weights", "_exponentials"]),
        ("Compiled kernel", 'impl="kernel": 64 queries side by side, block by block of keys',
         "tinyattn.kernels.fast.attention", ["forward"]),
    ],
}  # fmt: skip


def side_by_side(key, here):
    """The Markdown of the rungs of a function, [] if it has none on view."""
    columns = []
    for title, words, module, names in RUNGS.get(key, []):
        there = import_module(module)
        codes = [inspect.getsource(_plain(getattr(there, name))).strip() for name in names]
        line = inspect.getsourcelines(_plain(getattr(there, names[-1])))[1]
        path = module.replace(".", "/") + ".py"
        address = relative(f"{source_page(path)}.html#L{line}", here)
        code, file = "\n\n\n".join(codes), path.partition("/")[2]
        columns.append(
            f'<div>\n\n**{title}**\n\n{words}: <a href="{address}">{file}</a>\n\n'
            f"```python\n{code}\n```\n\n</div>"
        )
    if not columns:
        return []
    same = "All three give the same result and the same gradients; the tests compare them."
    return ["## Three rungs", same, '<div class="rungs">\n\n' + "\n\n".join(columns) + "\n\n</div>"]


def _plain(function):
    """The Python function that a compiled one is made of."""
    for attribute in ("py_func", "f", "function", "__wrapped__"):
        if hasattr(function, attribute):
            return _plain(getattr(function, attribute))
    return function
