"""Show the three implementations of a function side by side: loops, array algebra, compiled
kernel.
"""

import inspect
from importlib import import_module

from coursekit.site.addresses import relative, source_page

# {name: [(title, description, functions)]}
IMPLEMENTATIONS = {
    "functional/scaled_dot_product_attention": [
        (
            "Index sums",
            'impl="sums": the three formulas as loops',
            ["kernels.attention.scores", "kernels.attention.attention_loops"],
        ),
        (
            "Array algebra",
            'impl="numpy": two matrix products and a softmax; times v is the result',
            ["ops.attention.attention_softmax", "ops.attention.attention_weights"],
        ),
        (
            "Compiled kernel",
            'impl="kernel": 64 queries side by side, block by block of keys',
            ["kernels.fast.attention.forward"],
        ),
    ],
}


def side_by_side(key, here):
    """Return the Markdown of the implementations of a function, or [] if none is shown."""
    columns = []
    for title, words, names in IMPLEMENTATIONS.get(key, []):
        codes = [inspect.getsource(function_of(name)).strip() for name in names]
        line = inspect.getsourcelines(function_of(names[-1]))[1]
        file = names[-1].rpartition(".")[0].replace(".", "/") + ".py"
        address = relative(f"{source_page(f'tinyattn/{file}')}.html#L{line}", here)
        code = "\n\n\n".join(codes)
        columns.append(
            f'<div>\n\n**{title}**\n\n{words}: <a href="{address}">{file}</a>\n\n'
            f"```python\n{code}\n```\n\n</div>"
        )
    if not columns:
        return []
    same = "All three give the same result and the same gradients; the tests compare them."
    boxes = '<div class="implementations">\n\n' + "\n\n".join(columns) + "\n\n</div>"
    return ["## Three implementations", same, boxes]


def function_of(name):
    """Return the Python function of a name such as ops.attention.attention_softmax.

    The function itself may be compiled.
    """
    module, _, name = name.rpartition(".")
    return _plain(getattr(import_module(f"tinyattn.{module}"), name))


def _plain(function):
    """Return the Python function from which a compiled one was made."""
    for attribute in ("py_func", "f", "function", "__wrapped__"):
        if hasattr(function, attribute):
            return _plain(getattr(function, attribute))
    return function
