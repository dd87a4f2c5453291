"""Find the cells of a slide that answer a question. A deck shows them at the next key press.

A question is only worth asking if the answer is not visible next to it, so everything that follows
a question on its slide waits. Title slides only announce, and nothing on them waits. The tag
`shown` keeps a cell from waiting, and the tag `fragment` makes a cell wait even without a question.

A question may offer answers, "A) ... B) ...". A cell with the tag `choices` contains the text for
each answer, one line per letter, with the right one in bold. The student's copy answers with it.
"""

import re

from coursekit.build.text import tags_of
from tinyattn.course.project import CourseError

ENDS_WITH_QUESTION = re.compile(r"\?[*_\"')\]]*\s*$")
CHOICE = re.compile(r"- (?P<right>\*\*)?(?P<letter>[A-Z])(?(right)\*\*): (?P<words>.+)")
NOT_WORDS = re.compile(r"```.*?```|`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]+\$|\]\([^)]*\)", re.DOTALL)


def asks(text):
    """Return whether a sentence of this text is a question, ignoring code, formulas and links."""
    return bool(re.search(r"\?(?=[\s*_\"')\]:]|$)", NOT_WORDS.sub(" ", text)))


def parted(text):
    """Cut the text after each paragraph that ends with a question, and return the pieces."""
    pieces, gathered = [], []
    for paragraph in re.split(r"\n{2,}", text.strip()):
        gathered.append(paragraph)
        if ENDS_WITH_QUESTION.search(NOT_WORDS.sub(" x", paragraph)):
            pieces.append("\n\n".join(gathered))
            gathered = []
    if gathered:
        pieces.append("\n\n".join(gathered))
    return pieces


def choices(cell):
    """Return (letter of the right answer, {letter: text for this answer}) of a cell of choices.

    Raises CourseError unless there are two or more lines such as '- A: why not', with different
    letters, and exactly one of them with the letter in bold.
    """
    lines = [line for line in cell["source"].split("\n") if line.strip()]
    found = [CHOICE.fullmatch(line) for line in lines]
    right = [match["letter"] for match in found if match and match["right"]]
    words = {match["letter"]: match["words"] for match in found if match}
    if len(words) != len(lines) or len(words) < 2 or len(right) != 1:
        raise CourseError(
            "choices must be at least two lines such as '- A: why not', exactly one of them with "
            f"the letter in bold, '- **B**: why', and each letter once, got '{' / '.join(lines)}'"
        )
    return right[0], words


def choices_of(slide):
    """Return the cells of a slide that contain the texts for offered answers."""
    return [cell for cell in slide.cells if "choices" in tags_of(cell)]


def in_deck(slide):
    """Return the cells of a slide that the deck shows."""
    return [cell for cell in slide.cells if "notebook-only" not in tags_of(cell)]


def waiting(slide):
    """Return (cell, whether it waits for a key press) for the cells of a slide in the deck."""
    asked, found = slide.level > 1 and asks(slide.title), []
    for cell in in_deck(slide):
        opens = cell is slide.cells[0]  # the heading and the words under it
        tags = tags_of(cell)
        waits = "fragment" in tags or (asked and not opens and "shown" not in tags)
        found.append((cell, waits))
        if cell["cell_type"] == "markdown" and slide.level > 1:
            asked = asked or asks(cell["source"])
    return found
