"""Two views of an executed lecture: the notebook to read, and the student's copy to work in.

Both have the cells of the text. The notebook to read has all outputs. Code that only draws or
reports is folded, and so are the answers of questions. One click opens them. The student's copy has
no outputs. After each question, it has a cell for the student's prediction, which is later shown
next to the measured result. On the first slide of the course that uses a function, a layer or a
data set, the copy explains it. Speaker notes belong to the deck, so no cell of either view contains
them.
"""

import json
import re
import textwrap
from html import unescape

from coursekit.build.lint import claims_in
from coursekit.build.public_api import summary
from coursekit.build.questions import asks, choices, choices_of, waiting
from coursekit.build.text import (
    BEFORE_ANSWER,
    BEFORE_CHOICES,
    INSTALL,
    slides,
    tags_of,
    without_first_line,
)
from tinyattn.course.predictions import sealed
from tinyattn.progress import MIME as PROGRESS

NOT_SHOWN = (
    "Here is a drawing, which JupyterLab does not show until you trust this notebook. To do so,\n"
    "choose Activate Command Palette in the View menu, and then Trust Notebook. Or run this cell\n"
    "and the cells before it. This is what the drawing shows:\n"
)
MAP_NOT_SHOWN = "(A small map of the drawing appears here when you trust this notebook.)"
PREDICT = 'course.predict("")  # what do you expect? Write it between the quotes, then go on'


def fold(cells):
    """Fold code that only draws, and the answers of questions, in a notebook to read."""
    answers = {cell["id"] for slide in slides(cells) for cell, waits in waiting(slide) if waits}
    for cell in cells:
        if "choices" in tags_of(cell):
            cell["metadata"]["jupyter"] = {"source_hidden": True}
        if cell["cell_type"] != "code":
            continue
        _say_what_is_not_shown(cell["outputs"])
        hidden = {}
        if "hide-code" in tags_of(cell):
            hidden["source_hidden"] = True
        if cell["id"] in answers and cell["outputs"] and not _is_explorer(cell):
            hidden["outputs_hidden"] = True
            cell["metadata"]["collapsed"] = True
        if hidden:
            cell["metadata"]["jupyter"] = hidden


def _say_what_is_not_shown(outputs):
    """Replace a drawing by its description, because JupyterLab does not show untrusted SVG."""
    for data in [o["data"] for o in outputs if "image/svg+xml" in o.get("data", {})]:
        svg = "".join(data["image/svg+xml"])
        if 'class="drawing map"' in svg:
            data["text/plain"] = MAP_NOT_SHOWN
        elif label := re.search(r'aria-label="([^"]*)"|<title>([^<]*)</title>', svg):
            data["text/plain"] = NOT_SHOWN + textwrap.fill(unescape(label[1] or label[2]), 90)


def _is_explorer(cell):
    """Return whether a cell shows an interactive page, which is not folded.

    Such a page shows no answer before its user acts. If it were folded, JupyterLab would show its
    HTML as text at the first click.
    """
    shown = ["".join(o.get("data", {}).get("text/html", "")) for o in cell["outputs"]]
    return any('class="explorer"' in text for text in shown)


def with_install(text):
    """Return the file of a notebook with the cell that installs the package, below its title."""
    first = json.loads(text)["cells"][0]["id"]
    return with_cell(text, 1, f"{first}-install", INSTALL)


def with_cell(text, place, name, source):
    """Return the file of a notebook with another code cell, whose id is `name`."""
    notebook = json.loads(text)
    cell = {
        "cell_type": "code",
        "execution_count": None,
        "id": name,
        "metadata": {},
        "outputs": [],
        "source": source.splitlines(keepends=True),
    }
    notebook["cells"].insert(place, cell)
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def to_read(text):
    """Return the file of a notebook to read, made from the cells of the text.

    It also has the cell that installs the package. JupyterLab shows the first line of folded parts,
    so every cell of choices, and every folded output that begins with text or a drawing, gets a
    first line that reveals nothing.
    """
    notebook = json.loads(with_install(text))
    for cell in notebook["cells"]:
        if "choices" in tags_of(cell):
            source = BEFORE_CHOICES + without_first_line(cell)
            cell["source"] = source.splitlines(keepends=True)
        elif _tells_when_folded(cell):
            cell["outputs"].insert(0, BEFORE_ANSWER)
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _tells_when_folded(cell):
    """Return whether the output of a cell is folded and its visible first line would reveal it.

    Only a figure (<Figure size ...>) and a progress bar (20 of 20) reveal nothing of the answer.
    """
    hidden = cell["metadata"].get("jupyter", {}).get("outputs_hidden", False)
    if not hidden or cell["outputs"][0] == BEFORE_ANSWER:
        return False
    data = cell["outputs"][0].get("data", {})
    shows_markup = {"text/html", "image/svg+xml"} & set(data)  # JupyterLab prefers these
    return bool(shows_markup) or not {"image/png", PROGRESS} & set(data)


def from_text(text):
    """Return the file of a notebook to read, without the parts that only `to_read` adds."""
    notebook = json.loads(text)
    notebook["cells"] = [c for c in notebook["cells"] if "".join(c["source"]) != INSTALL]
    for cell in notebook["cells"]:
        cell["source"] = without_first_line(cell).splitlines(keepends=True)
        if "outputs" in cell:
            cell["outputs"] = [output for output in cell["outputs"] if output != BEFORE_ANSWER]
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def student_copy(text, new=None):
    """Return the file of a student's copy, made from the file of the lecture's notebook.

    `new` is {first cell of a slide: names that it uses first}, as `public_api.new_names` returns
    it.
    """
    notebook = json.loads(text)
    cells = notebook["cells"]
    for cell in cells:
        cell["source"] = "".join(cell["source"])
    silent = {c["id"] for c in cells if "hide-output" in tags_of(c) or not _shows(c)}
    for cell in cells:
        cell["metadata"].pop("notes", None)
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
            cell["metadata"].pop("collapsed", None)
            cell["metadata"].get("jupyter", {}).pop("outputs_hidden", None)
    parts = slides(cells)
    notebook["cells"], open_before = [], False
    for slide, after in zip(parts, [*parts[1:], None], strict=True):
        stays_open = _hands_on(slide, after, silent)
        first, *others = _with_predictions(slide, open_before, stays_open)
        if slide.optional:
            first["source"] = _marked_optional(first["source"])
        # the introduced words come last, because they may contain a question mark
        introduced = (new or {}).get(first["id"])
        between = [_introduction(first["id"], introduced)] if introduced else []
        about = [] if notebook["cells"] else [_about(first["id"])]
        notebook["cells"] += [first, *about, *between, *others]
        open_before = stays_open
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


ABOUT = """\
This is your own copy, so change what you like and run it again. [All lectures](index.ipynb), the \
[glossary](glossary.ipynb) and [what has another name in PyTorch](from_pytorch.ipynb) are beside it.

- A label such as **C027** is the number of a claim of the slides. The lecture tests each claim by \
an experiment, and a badge shows the verdict.
- A slide marked *Optional* is left out in the short version; no other slide needs it.
- Before an answer there is a cell for your prediction. Write it, run the cell, and go on."""


def _about(slide):
    """Return a cell that describes a student's copy, under the title of the lecture."""
    return {"cell_type": "markdown", "id": f"{slide}-about", "metadata": {}, "source": ABOUT}


def _marked_optional(source):
    """Return the first cell of a slide with a word under its heading."""
    heading, _, rest = source.partition("\n")
    return f"{heading}\n\n*Optional*\n{rest}"


def _introduction(slide, introduced):
    """Return a cell that explains each new name with the first sentence of its docstring."""
    lines = [
        f"- `{name.written}`: " + re.sub(r"([*<|])", r"\\\1", summary(name)) for name in introduced
    ]
    source = "\n".join(["*New here*, and `help(...)` says more:", "", *lines])
    return {"cell_type": "markdown", "id": f"{slide}-new", "metadata": {}, "source": source}


def _shows(cell):
    """Return whether a cell shows more than the progress of a loop."""
    return any(PROGRESS not in output.get("data", {}) for output in cell.get("outputs", []))


def _answers(slide, asked_before=False):
    """Return the code cells that wait for a question, and the text for each choice.

    If the previous slide asked a question (`asked_before`), the whole slide answers it, unless a
    cell on it waits.
    """
    code = [(cell, waits) for cell, waits in waiting(slide) if cell["cell_type"] == "code"]
    found = [cell for cell, waits in code if waits]
    if asked_before and not found:
        found = [cell for cell, _ in code]
    return found + choices_of(slide)


def _hands_on(slide, after, silent):
    """Return whether the next slide answers the question, because the code here shows nothing.

    `silent` holds the ids of cells that show nothing. The next slide must show something, and not
    ask a question itself.
    """
    if after is None or choices_of(slide) or not _answers(slide):
        return False
    texts = [cell["source"] for cell in after.cells if cell["cell_type"] == "markdown"]
    if any(map(asks, texts)) or all(cell["id"] in silent for cell in _answers(after, True)):
        return False
    return all(cell["id"] in silent for cell in _answers(slide))


def _with_predictions(slide, open_before=False, stays_open=False):
    """Return the cells of a slide with a prediction before each answer and a comparison after it.

    With `open_before`, a prediction of the previous slide waits here. With `stays_open`, the next
    slide answers.
    """
    answers = _answers(slide, open_before)
    if not answers:
        return slide.cells
    first, last = slide.cells.index(answers[0]), slide.cells.index(answers[-1]) + 1
    while first > 1 and _is_part_of_answer(slide.cells[first - 1]):
        first -= 1
    name, ask = slide.cells[0]["id"], PREDICT
    between = slide.cells[first:last]
    if "choices" in tags_of(answers[-1]):
        right, words = choices(between.pop())
        reply = _answer(right, words)
        ask = ask.replace("what do you expect?", f"{', '.join(words)}, and why?")
    else:
        reply = f"course.compare({', '.join(map(_quoted, claims_in(answers)))})"
    return [
        *slide.cells[:first],
        *([] if open_before else [_code(f"{name}-predict", ask)]),
        *between,
        *([] if stays_open else [_folded(_code(f"{name}-compare", reply))]),
        *slide.cells[last:],
    ]


def _is_part_of_answer(cell):
    """Return whether a text is a proof, or has the tag `fragment`, and asks no question."""
    waits = "fragment" in tags_of(cell) or cell["source"].startswith("**Proof")
    return cell["cell_type"] == "markdown" and waits and not asks(cell["source"])


def _answer(right, words):
    """Return the call that answers a prediction for a question with choices, which it seals."""
    return f"course.answer({_quoted(sealed(right, words))})"


def _folded(cell):
    """Return the cell, folded if it answers a question. It shows its text when it runs."""
    if cell["source"].startswith("course.answer("):
        cell["metadata"]["jupyter"] = {"source_hidden": True}
    return cell


def _quoted(words):
    return json.dumps(words, ensure_ascii=False)


def _code(name, source):
    return {
        "cell_type": "code",
        "execution_count": None,
        "id": name,
        "metadata": {},
        "outputs": [],
        "source": source,
    }
