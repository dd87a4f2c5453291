"""What the cells of a lecture call: claims, predictions, drawings, trained weights, progress.

The checks of homework are opened with `from tinyattn.course import checks`, and `course.measure`
has the clocks of lecture 13. What makes notebooks, slides and the site is the package `coursekit`.
"""

from tinyattn.course.claims import Claim, ClaimError, claim, full, seeds, small
from tinyattn.course.drawings import drawing, where
from tinyattn.course.predictions import answer, compare, predict
from tinyattn.course.project import CourseError
from tinyattn.course.weights import as_shipped, trained
from tinyattn.progress import progress

__all__ = [
    "Claim",
    "ClaimError",
    "CourseError",
    "answer",
    "as_shipped",
    "claim",
    "compare",
    "drawing",
    "full",
    "predict",
    "progress",
    "seeds",
    "small",
    "trained",
    "where",
]
