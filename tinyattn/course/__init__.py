"""Functions for the cells of a lecture: claims, predictions, drawings, trained weights, progress.

Import the checks of homework with `from tinyattn.course import checks`. `course.measure` contains
the timers of lecture 13. The package `coursekit` builds notebooks, slides and the site.
"""

from tinyattn.course.claims import Claim, ClaimError, claim, full, seeds, small
from tinyattn.course.drawings import drawing, where
from tinyattn.course.predictions import answer, compare, predict
from tinyattn.course.project import CourseError
from tinyattn.course.weights import as_shipped, trained
from tinyattn.course.wording import at_least, difference, listed, percent
from tinyattn.progress import progress

__all__ = [
    "Claim",
    "ClaimError",
    "CourseError",
    "answer",
    "as_shipped",
    "at_least",
    "claim",
    "compare",
    "difference",
    "drawing",
    "full",
    "listed",
    "percent",
    "predict",
    "progress",
    "seeds",
    "small",
    "trained",
    "where",
]
