"""A small project to try the course's machinery on: one lecture, one homework, a ledger."""

from tinyattn.course import claims
from tinyattn.course.project import LEDGER

HEADER = """\
---
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

"""
LECTURE = (
    HEADER
    + """\
# How much is one and one?

A question to begin with.

+++ {"tags": ["N12"]}

## It is two

$$1 + 1 = 2$$

```{code-cell} ipython3
:tags: [hide-code]

from tinyattn import course

total = 1 + 1
print("counted")
```

+++ {"tags": ["notes"]}

Ask the room first.

+++ {"tags": ["notebook-only"]}

Much longer text.

+++ {"tags": ["K15", "N13"]}

## And the slide claims it

```{code-cell} ipython3
for _ in course.progress(range(3), "counting"):
    pass
course.claim("C001", total == 2, f"total {total}", f"one and two are {1 + 2}")
```

## What you saw

- two
"""
)
HOMEWORK = (
    HEADER
    + """\
# Homework

```{code-cell} ipython3
def double(x):
    # BEGIN SOLUTION: add x to itself
    answer = x + x
    return answer
    # END SOLUTION
```

```{code-cell} ipython3
assert double(2) == 4, "twice two is four"
```

+++ {"tags": ["solution"]}

Multiplying by two does it as well.
"""
)
ENTRY = {
    "lecture": "04",
    "slides": ["K15"],
    "claim": "One and one are two.",
    "confirmed_if": "the total is 2",
    "verdict": claims.HOLDS,
    "evidence": "total 2",
    "control": "one and two are three",
    "experiment": "",
}


def make(root, lecture=LECTURE, homework=HOMEWORK, **entry):
    """Write the project into the folder `root`; returns the folder."""
    (root / "lectures" / "homework").mkdir(parents=True)
    (root / "lectures" / "04_counting.md").write_text(lecture, encoding="utf-8")
    (root / "lectures" / "homework" / "hw04_counting.md").write_text(homework, encoding="utf-8")
    claims.write_ledger(root / LEDGER, {"C001": ENTRY | entry})
    return root
