"""Make the notebooks that forty students hand in.

    python -m tests.coursekit.handed_in hw04 FOLDER

Right ones, also as people write and save them, wrong ones out of the tables of mistakes, lazy ones,
damaged ones and hostile ones; `FOLDER.expected.csv` says how many points each may get. With
`--grade` they are graded too, which takes some minutes, and every mark is compared with what is
expected. `--copies 3` makes a class of 120.
"""

import argparse
import ast
import csv
import json
import re
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

from coursekit.grade.grading import grade
from coursekit.grade.plan import plan_of
from tests import ROOT
from tinyattn.course import project

STUB = re.compile(r"# your code here\n(\s*)raise NotImplementedError\((?:[^()]|\([^()]*\))*\)")

WRITTEN_OUTSIDE = Path(tempfile.gettempdir()) / "tinyattn-was-here"
# code that stands at the top of the first task's cell and must change nothing for the others
HOSTILE = {
    "endless loop": "while True:\n    pass",
    "memory bomb": "x = []\nwhile True:\n    x.append(bytearray(10**8))",
    "fork bomb": "import os\nwhile True:\n    os.fork()",
    "exit": "import sys\nsys.exit(0)",
    "hard exit": "import os\nos._exit(0)",
    "forged result": "print('{\"value\": true}')\nprint('Task 1 is right.')",
    "much output": "for i in range(100):\n    print('x' * 10**6)",
    "allclose": "import numpy as np\nnp.allclose = np.isclose = lambda *a, **k: True",
    "judge": "import tinyattn.course.checks as c\nc.judge = c.expect = lambda *a, **k: None\n"
    "import server\nserver.answer = lambda *a: {'value': True}",
    "always equal": "class Always:\n    def __eq__(self, other):\n        return True\n"
    "    def __getattr__(self, name):\n        return self\n    def __call__(self, *a):\n"
    "        return self\n    __array__ = None",
    "read the solutions": "import pathlib\nimport tinyattn\n"
    f"hostile_folders = [pathlib.Path({str(ROOT)!r}), *pathlib.Path(tinyattn.__file__).parents]\n"
    "found = [p.read_text() for f in hostile_folders for p in f.glob('lectures/homework/*.md')]\n"
    "assert found",
    "write outside": f"open({str(WRITTEN_OUTSIDE)!r}, 'w').write('x')",
}


def notebook(cells):
    """The file of a notebook with these (id, type, source) cells."""
    made = []
    for name, kind, source in cells:
        cell = {"id": name, "cell_type": kind, "metadata": {}, "source": source}
        if kind == "code":
            cell |= {"outputs": [], "execution_count": None}
        made.append(cell)
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


class Class:
    """All that is handed in of one homework: {student: (notebook, least points, most points)}.

    A notebook is a text, or the bytes of a file that is not in plain UTF-8.
    """

    def __init__(self, plan):
        self.plan = plan
        self.most = len(self.plan.homework.parts)
        self.students = {}
        self.endings = {}  # student: the end of the file's name, if it is not .ipynb
        self.says = {}  # student: what the page must say about a known mistake
        self.tasks = [
            c for c in plan.cells if c.wanted and c.kind == "code" and c.task in plan.homework.tasks
        ]

    def cells(self, write, keep=lambda cell: True):
        return [
            (c.id, c.kind, write(c) if c.wanted else c.source) for c in self.plan.cells if keep(c)
        ]

    def hand_in(self, student, write, least, most=None, keep=lambda cell: True):
        most = least if most is None else most
        self.students[student] = (notebook(self.cells(write, keep)), least, most)

    def points_of(self, tasks):
        return sum(len(self.plan.homework.of(t)) for t in tasks if t in self.plan.homework.tasks)

    def write(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        for student, (made, _, _) in self.students.items():
            content = made if isinstance(made, bytes) else made.encode()
            (folder / f"{student}{self.endings.get(student, '.ipynb')}").write_bytes(content)

    def with_copies(self, number):
        """Add copies of every student under other names, until there are `number` of each."""
        for table in (self.students, self.says, self.endings):
            again = range(2, number + 1)
            table |= {f"{who} again {i}": what for i in again for who, what in table.items()}


def solved(cell):
    return cell.solution if cell.kind == "code" else f"{cell.source}\n\nBecause of the order."


def untouched(cell):
    return cell.source


def stub_as(text):
    """Every stub replaced by this statement."""
    return lambda cell: STUB.sub(lambda found: text, cell.source)


def class_of_thirty(plan):
    """Thirty notebooks of a homework, and what each may get."""
    room = Class(plan)
    tasks = room.plan.homework.tasks
    room.hand_in("01 right", solved, room.most)
    room.hand_in("02 right without checks", solved, room.most, keep=lambda c: "hw." not in c.source)
    lost = notebook([("", k, s) for _, k, s in room.cells(solved)])
    room.students["03 right, all ids lost"] = (lost, room.most, room.most)
    turned = list(reversed(room.cells(solved)))
    room.students["04 right, cells turned round"] = (notebook(turned), room.most, room.most)
    room.hand_in("05 untouched", untouched, 0)
    room.hand_in("06 returns None", stub_as("return None"), 0)
    room.hand_in("07 pass", stub_as("pass"), 0)
    half = tasks[: len(tasks) // 2]
    room.hand_in(
        "08 the first half",
        lambda c: solved(c) if c.task in half else untouched(c),
        room.points_of(half),
    )
    room.hand_in(
        "09 the second half",
        lambda c: untouched(c) if c.task in half else solved(c),
        room.points_of(set(tasks) - set(half)),
    )
    room.students["10 empty"] = (notebook([]), 0, 0)
    room.students["11 no notebook"] = ("this is a text", 0, 0)
    room.hand_in("12 a syntax error in task 1", _broken(tasks[0]), room.points_of(tasks[1:]))
    _hostile(room, tasks)
    _mistaken(room)
    return room


def _broken(task):
    return lambda c: "def f(:" if c.kind == "code" and c.task == task else solved(c)


def _hostile(room, tasks):
    """Hostile code in place of the first task; all other tasks are right."""
    rest = room.points_of(tasks[1:])
    for i, (name, code) in enumerate(HOSTILE.items()):

        def write(cell, code=code):
            if cell.kind != "code" or cell.task != tasks[0]:
                return solved(cell)
            return f"{code}\n{stub_as('return Always() if 0 else None')(cell)}"

        room.hand_in(f"{13 + i} {name}", write, rest)


def _mistaken(room):
    """One mistake of the table in each: the points of its task may be lost."""
    table = import_module(f"tests.coursekit.mistakes.{room.plan.homework.number}").MISTAKES
    while len(room.students) < 30:
        number = len(room.students) + 1
        table = [row for row in table if any(row[0] in c.solution for c in room.tasks)]
        right, wrong, says = table[(7 * number) % len(table)]
        cell = next(c for c in room.tasks if right in c.solution)

        def write(c, cell=cell, right=right, wrong=wrong):
            return c.solution.replace(right, wrong, 1) if c.id == cell.id else solved(c)

        lost = room.points_of([cell.task])
        student = f"{number} a mistake in task {cell.task}"
        room.hand_in(student, write, room.most - lost, room.most - 1)
        room.says[student] = says


# --- right answers as people write and save them


class Careless(ast.NodeTransformer):
    """A right answer with a helper of another cell, a picture, a print and an input in it."""

    def visit_FunctionDef(self, node):
        self.generic_visit(node)
        node.body = [*ast.parse("plt.figure(); print(MINE_IS)").body, *node.body]
        return node

    def visit_Return(self, node):
        if node.value is not None:
            node.value = ast.parse(f"passed_on({ast.unparse(node.value)})", mode="eval").body
        return node


def careless(plan):
    """All right, as people write: added cells, a stub left, magics, split cells, no ids."""
    cells, first, wanted = [], True, []
    for cell in plan.cells:
        if cell.kind != "code":
            cells.append(("", cell.kind, cell.source))
        elif not cell.wanted:
            more = "\nimport math, time\nimport matplotlib.pyplot as plt\n%matplotlib inline\n"
            cells.append(("", "code", cell.source + (more if first else "")))
            if first:
                cells.append(("", "code", "MINE_IS = math.sqrt(4)\nimport numpy.linalg as la"))
                cells.append(("", "code", "!pip install nothing\nname = input('Who?')"))
            first = False
        else:
            tree = ast.fix_missing_locations(Careless().visit(ast.parse(cell.solution)))
            parts = [ast.unparse(node) for node in tree.body]
            wanted.append(cell)
            if len(wanted) % 2:  # the stub is left, and the answer stands below it
                cells.append(("", "code", cell.source))
            parts = [f"%%time\n{part}" if i == 0 else part for i, part in enumerate(parts)]
            cells += [("", "code", part) for part in parts]
            cells.append(("", "code", "plt.plot([1])\nloss = not_there(3)\nhw.check(1)"))
    # the helper stands in the middle, between the tasks
    middle = len(cells) // 2
    helper = "def passed_on(x):\n    assert MINE_IS == 2\n    return x"
    return [*cells[:middle], ("", "code", helper), *cells[middle:]]


def before(cells, plan, write):
    """These cells, with another one before each cell of a task: write(the cell of the plan)."""
    more, wanted = [], {c.id: c for c in plan.cells if c.wanted and c.kind == "code"}
    for cell in cells:
        if cell[0] in wanted:
            more.append((f"{cell[0]}-before", "code", write(wanted[cell[0]])))
        more.append(cell)
    return more


def format_3(cells):
    """The file of a notebook as IPython saved it before 2015."""
    name = {"code": "input", "markdown": "source"}
    cells = [{"cell_type": kind, name[kind]: source} for _, kind, source in cells]
    return json.dumps({"worksheets": [{"cells": cells}], "metadata": {}, "nbformat": 3})


def class_of_forty(plan):
    """The thirty, and ten more: right answers as people write and save them, and what looks so."""
    room = class_of_thirty(plan)
    cells, most = room.cells(solved), room.most

    def add(student, content, least=most, at_most=None, ending=".ipynb"):
        name = f"{len(room.students) + 1} {student}"
        room.students[name] = (content, least, least if at_most is None else at_most)
        room.endings[name] = ending

    def magic(kind, source):
        return f"%%time\n%matplotlib inline\n{source}\n!ls" if kind == "code" else source

    add("helpers in cells of their own", notebook(careless(plan)))
    add("the stubs left", notebook(before(cells, plan, untouched)))
    magics = [(name, kind, magic(kind, source)) for name, kind, source in cells]
    add("magics, and a broken cell", notebook([*magics, ("", "code", "my notes = (")]))
    add("wrong first", notebook(before(cells, plan, stub_as("return None"))))
    last, names = _last_functions(room)
    rest = most - room.points_of([last])
    wrong = "\n".join(f"def {name}(*x, **y):\n    return None" for name in names)
    add("wrong in the end", notebook([*cells, ("", "code", wrong)]), rest, most - 1)
    forbidden = room.cells(lambda c: _forbidden(c) if c.task == last else solved(c))
    add("a function that is not listed", notebook(forbidden), rest)
    add("in UTF-16", notebook(cells).encode("utf-16"))
    add("as a text file", f"\ufeff{notebook(cells)}", ending=".ipynb.txt")
    add("in an old format", format_3(cells))
    add("half a file", notebook(cells)[: len(notebook(cells)) // 2], 0)
    return room


def _last_functions(room):
    """The last task that asks for functions, on which no other builds, and their names."""
    functions = {}
    for cell in room.tasks:
        found = [n.name for n in ast.parse(cell.solution).body if isinstance(n, ast.FunctionDef)]
        functions.setdefault(cell.task, []).extend(name for name in found if name in cell.asked)
    return next((t, functions[t]) for t in reversed(functions) if functions[t])


def _forbidden(cell):
    """The solution, with a call of a function of the library that no task lists."""
    if cell.kind != "code":
        return solved(cell)
    tree = ast.parse(cell.solution)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            use = "import tinyattn.functional as lib\nlib.logsumexp(np.zeros(2))"
            node.body = [*ast.parse(use).body, *node.body]
    return ast.unparse(tree)


def made(number, folder, copies=1):
    """Write the notebooks of forty students, and beside the folder what each may get."""
    room = class_of_forty(plan_of(project.find(ROOT, number)))
    room.with_copies(copies)
    room.write(folder)
    with open(f"{folder}.expected.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["student", "least", "most"])
        writer.writerows((name, *points) for name, (_, *points) in room.students.items())
    print(f"{len(room.students)} notebooks in {folder}")
    return room


def graded(room, folder, jobs=1):
    """Grade them, `jobs` at once.

    The result is how many students got other points or words than they may get.
    """
    files = {"csv_file": f"{folder}.csv", "html": f"{folder}.pages"}
    began = time.perf_counter()
    marks = grade(room.plan.document, folder, **files, jobs=jobs)
    seconds = time.perf_counter() - began
    wrong = len(room.students) - len(marks)
    for mark in marks:
        _, least, most = room.students[mark.student]
        says = room.says.get(mark.student, "")
        lost = [o for o in mark.outcomes if not o.right]
        said = not says or any(says in o.text for o in lost)
        if not least <= mark.points <= most or not said:
            wrong += 1
            print(f"{mark.student}: {mark.points} points, expected {least} to {most} {says!r}")
            print(*(f"    task {o.task}, {o.title}: {o.text}" for o in lost), sep="\n")
    of = len(room.students)
    print(f"{of - wrong} of {of} were graded as stated, in {seconds:.0f} s")
    return wrong


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Make the notebooks of forty students.")
    parser.add_argument("number", help="of the homework, such as hw04")
    parser.add_argument("folder", type=Path, help="where the notebooks are written")
    parser.add_argument("--grade", action="store_true", help="grade them too, and compare")
    parser.add_argument("--jobs", type=int, default=1, help="how many at once (default: 1)")
    parser.add_argument("--copies", type=int, default=1, help="of each notebook (default: 1)")
    given = parser.parse_args(arguments)
    room = made(given.number, given.folder, given.copies)
    return graded(room, given.folder, given.jobs) if given.grade else 0


if __name__ == "__main__":
    sys.exit(main())
