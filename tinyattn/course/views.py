"""Two views of an executed lecture: the notebook to read, and the student's copy to work in.

Both have the cells of the text. The notebook to read has all outputs; code that only draws or
reports is folded, and so is what answers a question: one click opens it. The student's copy has
no outputs, and after each question a place for the student's prediction, which comes back beside
what was measured. Speaker notes are for the deck; they are in no cell of either.
"""

import json

from tinyattn.course.lint import claims_in
from tinyattn.course.questions import waiting
from tinyattn.course.text import slides, tags_of

PREDICT = 'course.predict("")  # what do you expect? Write it between the quotes, then go on'


def fold(cells):
    """Fold what only draws, and the answers of questions, in a notebook to read."""
    answers = {cell["id"] for slide in slides(cells) for cell, waits in waiting(slide) if waits}
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        hidden = {}
        if "hide-code" in tags_of(cell):
            hidden["source_hidden"] = True
        if cell["id"] in answers and cell["outputs"]:
            hidden["outputs_hidden"] = True
            cell["metadata"]["collapsed"] = True
        if hidden:
            cell["metadata"]["jupyter"] = hidden


def student_copy(text):
    """The file of a student's copy, made from the file of the lecture's notebook."""
    notebook = json.loads(text)
    cells = notebook["cells"]
    for cell in cells:
        cell["source"] = "".join(cell["source"])
        cell["metadata"].pop("notes", None)
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
            cell["metadata"].pop("collapsed", None)
            cell["metadata"].get("jupyter", {}).pop("outputs_hidden", None)
    notebook["cells"] = [cell for slide in slides(cells) for cell in _with_predictions(slide)]
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _with_predictions(slide):
    """The cells of a slide, with a cell to predict before and one to compare after each answer."""
    answers = [cell for cell, waits in waiting(slide) if waits and cell["cell_type"] == "code"]
    if not answers:
        return slide.cells
    first, last = slide.cells.index(answers[0]), slide.cells.index(answers[-1]) + 1
    tried = ", ".join(f'"{number}"' for number in claims_in(answers))
    name = slide.cells[0]["id"]
    return [
        *slide.cells[:first],
        _code(f"{name}-predict", PREDICT),
        *slide.cells[first:last],
        _code(f"{name}-compare", f"course.compare({tried})"),
        *slide.cells[last:],
    ]


def _code(name, source):
    return {
        "cell_type": "code", "execution_count": None, "id": name, "metadata": {}, "outputs": [],
        "source": source,
    }  # fmt: skip
