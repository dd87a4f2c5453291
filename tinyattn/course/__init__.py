"""The machinery of the course. A lecture uses what is named here.

The rest is imported by its module's name, since it needs more than NumPy: `course.build` makes
notebooks, `course.deck` slides, `course.homework` the student's version of an exercise.
"""

from tinyattn.course.claims import Claim, ClaimError, claim, full, seeds, small
from tinyattn.course.drawings import drawing, where
from tinyattn.course.predictions import answer, compare, predict
from tinyattn.course.progress import progress
from tinyattn.course.project import CourseError
from tinyattn.course.weights import as_shipped, trained

__all__ = [
    "Claim", "ClaimError", "CourseError", "answer", "as_shipped", "claim", "compare", "drawing",
    "full", "predict", "progress", "seeds", "small", "trained", "where",
]  # fmt: skip
