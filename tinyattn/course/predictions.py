"""Record a student's prediction before a cell is run, and show it again next to the result.

A guess that is not written down is forgotten as soon as the answer appears. In the student's copy
of a lecture, a cell `course.predict("...")` follows each question, and `course.compare()` follows
the answer. If the question offers the answers A, B and C, `course.answer(...)` explains which part
of the student's answer is right.
"""

import base64
import html
import json
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

from tinyattn.course import claims
from tinyattn.course.project import LEDGER, CourseError, find_root

# This matches a single letter, as in "B", "B because ..." or "b", but not "a sum", which begins
# with a word.
LETTER = re.compile(r"\(?(?:([A-Z])\b|([a-z])(?=[).,:;]|$))")
_open = []  # the prediction that has no answer yet
_answered = {}  # {seal of a question: the prediction}
_compared = {}  # {numbers of claims: the prediction}


@dataclass(frozen=True)
class Note:
    """Lines of (label, words), displayed in a notebook and in a terminal."""

    lines: tuple

    def __repr__(self):
        return "\n".join(f"{what} {words}" for what, words in self.lines)

    def _repr_html_(self):
        rows = "<br>".join(f"<b>{html.escape(a)}</b> {html.escape(b)}" for a, b in self.lines)
        return (
            '<div style="border-left:4px solid #8a4577;padding:0.3em 0 0.3em 0.8em;'
            f'margin:0.4em 0;line-height:1.6;text-align:left">{rows}</div>'
        )


def predict(words=""):
    """Keep your prediction until `compare` or `answer` shows it next to the result.

    Args:
        words   text of your prediction. If it is empty, you are asked to write one

    Returns:
        a `Note`, which the notebook displays

    Raises:
        TypeError: words is not a string
    """
    if not isinstance(words, str):
        raise TypeError(
            f"predict: words must be a text in quotes, got {words!r} ({type(words).__name__})"
        )
    _open[:] = [words.strip()]
    if not _open[0]:
        return Note((("No prediction yet.", "Any guess is better: write one and run it again."),))
    return Note((("Noted.", "Now run the next cell."),))


def compare(*numbers, root=None):
    """Show your last prediction next to the outcome of claims, or ask you to compare it yourself.

    Args:
        numbers   numbers of claims, such as "C030", whose verdict and evidence are read from the
                  ledger. Without a number, you are asked to compare with the output above
        root      folder of the project. If None, look for it in the working folder and above

    Returns:
        a `Note`, which the notebook displays

    Raises:
        CourseError: a claim is not in the ledger, or there is no folder of the project
        ClaimError: the ledger is missing or invalid
    """
    words = _taken_up()
    # if this cell runs again, there is no open prediction, so the stored one counts
    words = words or _compared.get(numbers, words)
    if numbers and words:
        _compared[numbers] = words
    said = ("You expected:", f"“{words}”") if words else (_missing(words), "")
    return Note((said, *(_measured(number, root) for number in numbers), _question(words, numbers)))


def sealed(right, words):
    """Encode the answers of a question, so that they are not read by accident.

    Args:
        right   the letter of the right answer
        words   {letter: why it is right, or why it is wrong}

    Returns:
        a text that `answer` decodes

    Raises:
        ValueError: there are no words for `right`
    """
    if right not in words:
        raise ValueError(
            f"sealed: right must be one of the choices {', '.join(words) or '(none)'}, got "
            f"{right!r}"
        )
    written = json.dumps([right, words], ensure_ascii=False).encode()
    return base64.b64encode(zlib.compress(written)).decode()


def answer(seal):
    """Show whether the last prediction was right, and why, for a question with several choices.

    Before there is a prediction, the answer is not shown.

    Args:
        seal   text in the cell of the lecture that contains the choices and the right answer, a
               result of `tinyattn.course.predictions.sealed`

    Returns:
        a `Note`, which the notebook displays

    Raises:
        ValueError: seal is not a result of `sealed`, for example because it was changed
    """
    try:
        right, words = json.loads(zlib.decompress(base64.b64decode(seal)))
    except (TypeError, ValueError, zlib.error):
        raise ValueError(
            "answer: the text in this cell is damaged. Copy it again from the original lecture"
        ) from None
    # if this cell runs again, there is no open prediction, so the stored one counts
    said = _taken_up() or _answered.get(seal)
    if not said:
        return Note(
            (
                ("No prediction yet.", "The answer waits for it: write one, even a guess, in the"),
                ("", 'cell course.predict("...") above, run that cell, and then this one.'),
            )
        )
    _answered[seal] = said
    because = ("Why:", words[right])
    match = LETTER.match(said or "")
    letter = (match[1] or match[2]).upper() if match else ""
    if letter == right:
        return Note((("You said:", f"{letter}, and so it is."), because))
    if letter in words:
        return Note(
            (("You said:", f"{letter}; it is {right}."), because, (f"And {letter}?", words[letter]))
        )
    # this is a single letter that is not one of the choices
    if re.fullmatch(r"\W*[A-Za-z]\W*", said or ""):
        return Note(
            (
                (
                    "You said:",
                    f"{letter or said}, but the answers are {', '.join(words)}; it is {right}.",
                ),
                because,
            )
        )
    return Note((("You expected:", f"“{said}”"), ("It is:", f"{right}."), because))


def _taken_up():
    """Close the open prediction and return its words, or None if there is none."""
    return _open.pop() if _open else None


def _missing(words):
    if words == "":
        return "You wrote no prediction."
    return 'There is no prediction to compare: run a cell course.predict("...") before this one.'


def _question(words, numbers):
    if not words:
        return ("", "Before the next question: what would have surprised you here?")
    what = "this" if numbers else "what you see above"
    return ("And now:", f"does {what} agree with you? If not, which step of your reasoning fails?")


def _measured(number, root):
    path = (find_root() if root is None else Path(root)) / LEDGER
    ledger = claims.read_ledger(path)
    entry = ledger.get(number)
    if entry is None:
        raise CourseError(
            f"there is no claim {number} in {LEDGER.as_posix()}. Its claims have numbers like "
            f"{next(iter(ledger), 'C001')}"
        )
    return (f"The result of the unchanged cells ({number}, {entry['verdict']}):", entry["evidence"])
