"""Format the code of a lecture's text with `ruff format`, cell by cell."""

import re
import subprocess
import sys

from coursekit.build.text import need
from tinyattn.course.project import CourseError, write_text

# the fence, the options of the cell (":tags: ..."), the code, the fence
CELL = re.compile(r"^(```\{code-cell\}[^\n]*\n(?::[^\n]*\n)*\n*)(.*?)(^```\s*?$)", re.M | re.S)


def tidy(document):
    """Format the code cells of a text in place, and return the number of changed cells.

    Raises CourseError if ruff cannot format a cell, as after a syntax error.
    """
    need("ruff")
    before = document.source.read_text(encoding="utf-8")
    changed = 0

    def formatted(match):
        nonlocal changed
        code = _ruff(match[2], document)
        changed += code != match[2]
        return match[1] + code + match[3]

    after = CELL.sub(formatted, before)
    if changed:
        write_text(document.source, after)
    return changed


def _ruff(code, document):
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--stdin-filename", "cell.py", "-"],
        input=code,
        capture_output=True,
        encoding="utf-8",
        cwd=document.root,
        check=False,
    )
    if done.returncode:
        first = code.strip().split("\n")[0]
        raise CourseError(
            f"{document.relative(document.source)}, cell '{first}': ruff cannot format it\n"
            f"{done.stderr.strip()}"
        )
    return done.stdout
