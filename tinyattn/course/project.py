"""Where the course lies on disk: the project's folder, its lectures and its homework."""

import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

LEDGER = Path("lectures") / "claims.toml"
WEIGHTS = Path("lectures") / "weights"


class CourseError(Exception):
    """Something in the course is not as it must be; the message says what to do about it."""


class NoSuchLecture(CourseError):
    """The course has no lecture or homework of the number that was asked for."""


@dataclass(frozen=True)
class Document:
    """One text of the course, a lecture or a homework, and the files generated from it."""

    root: Path
    number: str  # "04" for a lecture, "hw04" for a homework
    slug: str

    @property
    def is_homework(self):
        return self.number.startswith("hw")

    @property
    def name(self):
        return f"{self.number}_{self.slug}"

    @property
    def source(self):
        folder = self.root / "lectures"
        return (folder / "homework" if self.is_homework else folder) / f"{self.name}.md"

    @property
    def notebook(self):
        folder = self.root / "notebooks"
        return (folder / "homework" if self.is_homework else folder) / f"{self.name}.ipynb"

    @property
    def workbook(self):
        """The student's own copy, which git does not see."""
        return self.root / "workbook" / self.notebook.relative_to(self.root / "notebooks")

    @property
    def deck(self):
        return self.root / "build" / "decks" / f"{self.name}.html"

    def relative(self, path):
        """The path as it reads from the project's folder, for messages."""
        return Path(path).relative_to(self.root).as_posix()


def is_root(folder):
    """True if the folder holds the course."""
    return (folder / LEDGER).is_file()


def find_root(start=None):
    """The project's folder: above `start` (default: the working folder), or around the package.

    Raises CourseError where neither has the lectures, as after an install without a checkout.
    """
    start = Path.cwd() if start is None else Path(start).resolve()
    package = Path(__file__).resolve().parents[1]
    for folder in (start, *start.parents, package.parent):
        if is_root(folder):
            return folder
    raise CourseError(
        "the lectures are not here: neither this folder nor one above it is a checkout of "
        f"tinyattn, and the installed package ({package}) came without them.\n"
        "Get the project's folder (git clone, or the archive), go into it, and install with\n"
        '    python3 -m venv .venv && .venv/bin/pip install -e ".[class]"'
    )


def lectures(root):
    """All lectures of the project, in order of their numbers."""
    return _documents(root, "lectures", r"(\d\d)_(\w+)\.md")


def homework(root):
    """All homework of the project, in order of their numbers."""
    return _documents(root, "lectures/homework", r"(hw\d\d)_(\w+)\.md")


def find(root, number):
    """The lecture ("4", "04") or homework ("hw04") of this number.

    Raises NoSuchLecture that lists what there is.
    """
    wanted = re.sub(r"^(hw)?(\d)$", r"\g<1>0\2", str(number).lower())
    there = lectures(root) + homework(root)
    for document in there:
        if wanted in (document.number, document.name):
            return document
    listing = "\n".join(f"    {d.number:5} {d.slug.replace('_', ' ')}" for d in there)
    raise NoSuchLecture(f"there is no lecture '{number}'; there are\n{listing or '    none yet'}")


def write_text(path, text):
    """Write a file whole or not at all: a reader never sees half of it."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _documents(root, folder, pattern):
    root = Path(root).resolve()
    found = [re.fullmatch(pattern, p.name) for p in sorted((root / folder).glob("*.md"))]
    return [Document(root, match[1], match[2]) for match in found if match]
