"""Do the solutions of the homework pass, with every training and every check in the text?

    python -m tests.scripts.solutions             all homework
    python -m tests.scripts.solutions hw02 hw07   these

The code cells of a homework run from top to bottom in a Python of their own. The quick suite runs
all homework except LONGEST, and `tests/coursekit/test_points.py` grades the functions of all. The
exit code is 0 if all solutions pass.
"""

import argparse
import sys
import time

from coursekit.build import homework, text
from tests import ROOT
from tinyattn.course import project

# six sevenths of the time of all homework, because these train networks
LONGEST = ("hw02", "hw05", "hw06", "hw07", "hw08", "hw10", "hw12")


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m tests.scripts.solutions", description="Run the solutions of the homework."
    )
    parser.add_argument("numbers", nargs="*", help="such as hw02; without any, all homework")
    numbers = parser.parse_args(arguments).numbers
    documents = [project.find(ROOT, n) for n in numbers] or project.homework(ROOT)
    wrong = sum(not passes(document) for document in documents)
    print(f"the solutions of {len(documents) - wrong} of {len(documents)} pass")
    return wrong > 0


def passes(document):
    """Return whether no cell of the homework fails, and print the cell that fails."""
    cells, began = text.read_source(document), time.perf_counter()
    failed = homework.run(cells, document.notebook.parent)
    count = sum(cell.cell_type == "code" for cell in cells.cells)
    says = f"passes ({count} code cells)" if failed is None else f"FAILS\n{failed['report']}"
    print(f"{document.number} {says} after {time.perf_counter() - began:.0f} s", flush=True)
    return failed is None


if __name__ == "__main__":
    sys.exit(main())
