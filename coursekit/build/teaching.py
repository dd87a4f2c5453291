"""Requirements for a lecture that others can teach: minutes, questions, an ending, a page.

`lectures/TEACHING.md` explains the purpose of each.
"""

import re

from coursekit.build.pages import GOALS, READ, WORDS, ending, minutes, teaching_page
from coursekit.build.questions import choices_of
from coursekit.build.text import notes_of, slides, tags_of

SHORT, LONG = (40, 45), (75, 90)  # minutes of the short version and of the whole lecture
GUEST = (20, 40)  # minutes of a unit with the tag `guest` in its title, which has no homework
PARTS = ("Prepare", "Goes wrong", "Last ten minutes", "Homework")
FEWEST_ANSWERS, FEWEST_CHOICES = 3, 2


def lacks(document, cells, tasks):
    """Return the missing parts of this lecture, one line each, from its cells and its homework."""
    yield from _plan(cells)
    if is_guest(cells):
        return
    yield from _ending(cells)
    page = teaching_page(document)
    if page.is_file():
        where = document.relative(page)
        yield from (f"{where}: {what}" for what in page_lacks(page.read_text("utf-8"), tasks))
    else:
        yield f"it has no page for the lecturer, {document.relative(page)}"


def page_lacks(text, tasks):
    """Return the missing parts of a page for the lecturer, one line each."""
    parts = dict(re.findall(r"^## (.+)\n((?:(?!^## ).*\n?)*)", text, re.MULTILINE))
    if not re.match(r"# Teaching lecture \d\d: .+\n\n\S", text) or "short version" not in text:
        yield "it must begin with '# Teaching lecture NN: ...' and say what the short version is"
    if tuple(parts) != PARTS:
        yield f"its parts are {', '.join(parts) or 'none'}; expected {', '.join(PARTS)}"
        return
    if parts["Prepare"].count("\n- ") < 2:
        yield "'Prepare' has fewer than two points"
    if len(_rows(parts["Goes wrong"])) < 4:
        yield "'Goes wrong' has fewer than four rows: what happens, what helps"
    exercises = re.findall(r"^\d\. .+$", parts["Last ten minutes"], re.MULTILINE)
    if len(exercises) < 2 or not all(" *Answer*: " in exercise for exercise in exercises):
        yield "'Last ten minutes' needs two exercises, each with an '*Answer*: '"
    yield from _homework(parts["Homework"], tasks)


def is_guest(cells):
    """Return whether the lecture is a separate unit for one hour with a guest."""
    return any("guest" in tags_of(cell) for cell in slides(cells)[0].cells[:1])


def _plan(cells):
    if is_guest(cells):
        whole = minutes(cells)[1]
        if not GUEST[0] <= whole <= GUEST[1]:
            yield f"the guest unit takes {whole} minutes, expected {GUEST[0]} to {GUEST[1]}"
        yield from _silent(cells)
        return
    for name, found, (least, most) in zip(
        ("short version", "whole lecture"), minutes(cells), (SHORT, LONG), strict=True
    ):
        if not least <= found <= most:
            yield f"the {name} takes {found} minutes, expected {least} to {most}"
    offering = sum(bool(choices_of(slide)) for slide in slides(cells))
    if offering < FEWEST_CHOICES:
        yield f"questions that offer answers: {offering}, expected {FEWEST_CHOICES} or more"
    yield from _silent(cells)


def _silent(cells):
    silent = [slide.title for slide in slides(cells) if not notes_of(slide.cells[0])]
    if silent:
        yield f"slides without speaker notes: {'; '.join(silent)}"


def _ending(cells):
    end = ending(cells)
    for heading, least in ((GOALS, 3), (WORDS, 5), (READ, 3)):
        if len(end.get(heading, [])) < least:
            yield f"after its last slide '### {heading}' has fewer than {least} lines"


def _homework(text, tasks):
    if not re.search(r"\d+ to \d+ minutes, and `tinyattn check \d\d` checks it", text):
        yield "'Homework' does not say '30 to 60 minutes, and `tinyattn check 04` checks it'"
    asked = re.search(r"^Open question (\d+[a-z]): \*(.+)\*$", text, re.MULTILINE)
    if not asked:
        yield "'Homework' has no line 'Open question 7b: *...*'"
    elif f"**{asked[1]}.**" not in tasks:
        yield f"the homework has no question {asked[1]}"
    most = re.search(r"^\| answer \| marks \(out of (\d+)\) \|$", text, re.MULTILINE)
    marks = [int(mark) for mark in re.findall(r"\| (\d+)[^|]*\|$", text, re.MULTILINE)]
    if not most or len(marks) < FEWEST_ANSWERS:
        table = "| answer | marks (out of N) |"
        yield f"'Homework' needs a table '{table}' of {FEWEST_ANSWERS} answers"
    elif max(marks) != int(most[1]) or min(marks) >= int(most[1]):
        yield "the table must contain an answer with all marks, and one with fewer"


def _rows(text):
    """Return the rows of a table below its head."""
    return [line for line in text.split("\n") if line.startswith("|")][2:]
