"""Check a lecture without running it: length of slides, IDs, claims, plain Python."""

import ast
import re

from coursekit.build.questions import asks, choices, choices_of, in_deck, waiting
from coursekit.build.text import MINUTES, read_source, slide_heading, slide_ids, slides, tags_of
from tinyattn.course.project import LEDGER, CourseError

MOST_WORDS = 60
MOST_LINES = 34  # lines of code that one cell may put into the deck


def problems(documents):
    """Return all problems of these lectures, one line each, and skip homework."""
    found, places = [], {}
    for document in documents:
        if document.is_homework:
            continue
        name = document.relative(document.source)
        cells = read_source(document).cells
        found += [f"{name}: {problem}" for problem in lecture_problems(cells)]
        for slide in slides(cells):
            for slide_id in slide.ids:
                here = f"{name}, slide '{slide.title}'"
                if slide_id in places:
                    found.append(f"{here}: {slide_id} is already used in {places[slide_id]}")
                places.setdefault(slide_id, here)
    return found


def lecture_problems(cells):
    """Return the problems of one lecture."""
    parts = slides(cells)
    yield from _frame(parts)
    for slide in parts:
        where = f"slide '{slide.title}'"
        words = slide_words(slide)
        if words > MOST_WORDS:
            yield f"{where} has {words} words, at most {MOST_WORDS}; tag text 'notebook-only'"
        yield from (f"{where}: {problem}" for problem in _choices(slide))
        for cell in slide.cells:
            of_slides = slide_ids(cell) + [tag for tag in tags_of(cell) if _of_a_slide(tag)]
            if of_slides and slide_heading(cell) is None:
                yield f"{where}: {' '.join(of_slides)} tags a cell that is not a heading"
            if cell["cell_type"] == "code":
                yield from (f"{where}: {problem}" for problem in _code(cell))


def _choices(slide):
    """Return the problems of the answers that a question offers."""
    shown = "\n".join(c["source"] for c in in_deck(slide) if c["cell_type"] == "markdown")
    for cell in choices_of(slide):
        if "notebook-only" not in tags_of(cell):
            yield "a cell with the tag 'choices' needs 'notebook-only' too"
        if not asks(shown):
            yield "it has choices but no question"
        try:
            _, words = choices(cell)
        except CourseError as error:
            yield str(error)
            continue
        yield from (f"no answer '{a})' is offered" for a in words if f"{a}) " not in shown)
        answers = [c for c, waits in waiting(slide) if waits and c["cell_type"] == "code"]
        if any(slide.cells.index(c) > slide.cells.index(cell) for c in answers):
            yield "its choices must come after the cell that answers the question"


def _of_a_slide(tag):
    return tag in ("optional", "guest") or MINUTES.fullmatch(tag)


def slide_words(slide):
    """Return the number of words that the deck shows of a slide, without formulas and headings."""
    count = 0
    for cell in slide.cells:
        if cell["cell_type"] == "markdown" and "notebook-only" not in tags_of(cell):
            text = re.sub(r"\$\$.*?\$\$|\$[^$\n]+\$|```.*?```", " ", cell["source"], flags=re.S)
            text = re.sub(r"^#+ .*$", "", text, flags=re.M)
            count += len(re.findall(r"[^\W\d_][\w'’-]*", text))
    return count


def claims_in(cells):
    """Return the claims that the code of a lecture tests, in order."""
    return [number for cell in cells for number, _ in _claim_calls(cell)]


def disagreements(ledger, lectures_claims):
    """Return where the ledger disagrees with the lectures, given {lecture: claims}."""
    tried = [
        (number, lecture) for lecture, numbers in lectures_claims.items() for number in numbers
    ]
    for number, entry in ledger.items():
        where = [lecture for claim, lecture in tried if claim == number]
        if entry["lecture"] in lectures_claims and where != [entry["lecture"]]:
            tests = f"the lectures that test it are {', '.join(where)}" if where else ""
            yield (
                f"{LEDGER.as_posix()}: {number} belongs to lecture {entry['lecture']} and must be "
                f"tested there once, but {tests or 'no lecture tests it'}"
            )
    for number, lecture in tried:
        if number not in ledger:
            yield (
                f"lecture {lecture} tests {number}, which is not in {LEDGER.as_posix()}: add a "
                f'table [{number}] there with verdict = "not run"'
            )


def without_homework(lectures, homework):
    """Return one line for each lecture that has no homework with its number and slug."""
    there = {document.name for document in homework}
    for document in lectures:
        if f"hw{document.name}" not in there and not _is_guest(document):
            yield (
                f"{document.name} has no homework: write lectures/homework/hw{document.name}.md, "
                f"and build it with  tinyattn build hw{document.number}"
            )


def _is_guest(document):
    """Return whether the title of a lecture has the tag `guest`. Such a unit has no homework."""
    if not document.source.is_file():
        return False
    return "guest" in tags_of(read_source(document).cells[0])


def _frame(parts):
    """Return the problems of the opening question and the closing slide."""
    if parts[0].level != 1 or not parts[0].title:
        yield "does not begin with a '# ' title"
    opening = "".join(cell["source"] for slide in parts[:2] for cell in slide.cells)
    if "?" not in opening:
        yield "does not open with the question that it answers (none in the first two slides)"
    if not parts[-1].title.lower().startswith("what you saw"):
        yield f"ends with '{parts[-1].title}', not with a slide 'What you saw'"


def _code(cell):
    try:
        tree = ast.parse(cell["source"])
    except SyntaxError as error:
        first = cell["source"].strip().split("\n")[0]
        yield f"the cell '{first}' is not plain Python: {error}"
        return
    if not {"hide-code", "notebook-only"} & set(tags_of(cell)):
        lines = cell["source"].count("\n") + 1
        if lines > MOST_LINES:
            yield f"{lines} lines of code in the deck, at most {MOST_LINES}; tag it 'hide-code'"
    ends = tree.body[-1] if tree.body else None
    last = ast.dump(ends.value) if isinstance(ends, ast.Expr) else ""
    calls = list(_claim_calls(cell))
    if len(calls) > 1 or (calls and ast.dump(calls[0][1]) != last):
        yield f"{calls[0][0]}: a cell must have only one claim, as its last expression"


def _claim_calls(cell):
    """Yield (claim, call) for each call of claim("C...") in a code cell."""
    if cell["cell_type"] != "code":
        return
    try:
        tree = ast.parse(cell["source"])
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("course.claim", "claim"):
            first = node.args[0] if node.args else None
            yield (first.value if isinstance(first, ast.Constant) else "?"), node
