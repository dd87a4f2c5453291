"""The machinery of the course. A lecture uses `claim`, `full`, `seeds` and `progress`.

The rest is imported by its module's name, since it needs more than NumPy: `course.build` makes
notebooks, `course.deck` slides, `course.homework` the student's version of an exercise.
"""

from tinyattn.course.claims import Claim, ClaimError, claim, full, seeds
from tinyattn.course.progress import progress
from tinyattn.course.project import CourseError

__all__ = ["Claim", "ClaimError", "CourseError", "claim", "full", "progress", "seeds"]
