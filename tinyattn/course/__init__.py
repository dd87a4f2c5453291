"""The machinery of the course. A lecture uses `claim`, `drawing`, `where`,
`full`, `seeds`, `progress`.

The rest is imported by its module's name, since it needs more than NumPy: `course.build` makes
notebooks, `course.deck` slides, `course.homework` the student's version of an exercise.
"""

from tinyattn.course.claims import Claim, ClaimError, claim, full, seeds
from tinyattn.course.drawings import drawing, where
from tinyattn.course.progress import progress
from tinyattn.course.project import CourseError

__all__ = ["Claim", "ClaimError", "CourseError", "claim", "drawing", "full", "progress", "seeds",
    "where"]  # fmt: skip
