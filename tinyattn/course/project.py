"""Where the course is on disk: the project's folder, its lectures and its homework.

In a checkout, everything is in one folder. An installed package contains the course in `shipped/`,
where nothing is written, so the student's files go into a separate folder.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from tinyattn.io import atomic_write

LEDGER = Path("lectures") / "claims.toml"
CHECKS = Path("lectures") / "homework" / "checks"
WEIGHTS = Path("lectures") / "weights"
SHIPPED = Path(__file__).resolve().with_name("shipped")  # setup.py copies the course to this folder
STUDENTS = "tinyattn-course"  # folder for generated files if the course itself is installed
CHECKOUT = (
    "Get the project's folder (git clone, or the archive), go into it, and install with\n"
    '    python3 -m venv .venv && .venv/bin/pip install -e ".[class]"'
)


class CourseError(Exception):
    """The error for a missing or wrong part of the course. The message explains what to do."""


class NoSuchLecture(CourseError):
    """The error for a number that no lecture or homework of the course has."""


@dataclass(frozen=True)
class Document:
    """One text of the course, a lecture or a homework, and the files generated from it.

    Attributes:
        root     folder of the project
        number   number of the text, "04" for a lecture and "hw04" for a homework
        slug     rest of the file's name, such as "self_attention"
    """

    root: Path
    number: str
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
        """Return the student's own copy, which git ignores."""
        return self.home / "workbook" / self.notebook.relative_to(self.root / "notebooks")

    @property
    def deck(self):
        return self.home / "build" / "decks" / f"{self.name}.html"

    @property
    def home(self):
        """Return the folder for generated files: the project's or, if installed, the student's."""
        return students_folder() if self.root == SHIPPED else self.root

    @property
    def folder(self):
        """Return the folder in which the cells run, here as in JupyterLab."""
        return (self.workbook if self.root == SHIPPED else self.notebook).parent

    def relative(self, path):
        """Return a path relative to the project's folder, for messages."""
        path = Path(path)
        return path.relative_to(self.root).as_posix() if self.root in path.parents else str(path)


def is_root(folder):
    """Return True if the folder contains the course."""
    return (folder / LEDGER).is_file()


def find_root(start=None):
    """Return the folder of the course.

    This is the first of the following folders that contains the course: `start`, each folder above
    it, the checkout to which the package belongs, and the copy that was installed with the package.

    Args:
        start   folder in which the search begins. If None, the working folder

    Raises:
        CourseError: none of these folders contains the course, for example because only the
            package's folder was copied
    """
    start = Path.cwd() if start is None else Path(start).resolve()
    package = Path(__file__).resolve().parents[1]
    for folder in (start, *start.parents, package.parent, SHIPPED):
        if is_root(folder):
            return folder
    raise CourseError(
        "the lectures are not here, because neither this folder nor one above it is a checkout of "
        f"tinyattn, and the package in use ({package}) was installed without them.\n"
        f"{CHECKOUT}"
    )


def find_checkout():
    """Return the project's folder, for commands that write texts, notebooks or verdicts into it.

    Raises:
        CourseError: there is only an installed course, or none at all
    """
    root = find_root()
    if root == SHIPPED:
        raise CourseError(
            "this needs the texts of the course, including the solutions of its homework, which an "
            "installed package does not contain.\n"
            f"{CHECKOUT}"
        )
    return root


def students_folder():
    """Return the folder `tinyattn-course` with a student's copies of an installed course.

    It is in the working folder or in a folder above. If it does not exist yet, the result is its
    path in the working folder.
    """
    here = Path.cwd()
    there = (folder / STUDENTS for folder in (here, *here.parents))
    return next((folder for folder in there if folder.is_dir()), here / STUDENTS)


def install(extra=""):
    """Return the command that installs an extra into the current environment, as text.

    Args:
        extra   name of the extra, such as "class". If "", the library is installed without extras
    """
    if _in_checkout():
        return f'{pip()} install -e ".[{extra}]"' if extra else f"{pip()} install -e ."
    return f'{pip()} install "tinyattn[{extra}]"' if extra else f"{pip()} install tinyattn"


def pip():
    """Return the command for pip, as text. In a checkout, it is the one in `.venv` (README.md)."""
    return ".venv/bin/pip" if _in_checkout() else f"{sys.executable} -m pip"


def _in_checkout():
    """Return whether the package in use belongs to a checkout."""
    return is_root(Path(__file__).resolve().parents[2])


def lectures(root):
    """Return all lectures of the project in the folder `root`, in numerical order."""
    return _documents(root, "lectures", r"(\d\d)_(\w+)\.md")


def homework(root):
    """Return all homework assignments of the project in the folder `root`, in numerical order."""
    if Path(root) == SHIPPED:  # an installed package lacks the texts, which contain the solutions
        return _documents(root, "notebooks/homework", r"(hw\d\d)_(\w+)\.ipynb")
    return _documents(root, "lectures/homework", r"(hw\d\d)_(\w+)\.md")


def find(root, number):
    """Return the lecture ("4", "04") or homework ("hw04") with this number.

    Args:
        root     folder of the project
        number   number or full name

    Returns:
        a `Document`

    Raises:
        NoSuchLecture: there is none with this number. The error lists the existing ones
    """
    wanted = re.sub(r"^(hw)?(\d)$", r"\g<1>0\2", str(number).lower())
    there = lectures(root) + homework(root)
    for document in there:
        if wanted in (document.number, document.name):
            return document
    listing = "\n".join(f"    {d.number:5} {d.slug.replace('_', ' ')}" for d in there)
    raise NoSuchLecture(
        f"there is no lecture or homework '{number}'. Choose one of\n{listing or '    none yet'}"
    )


def write_text(path, text):
    """Write a file completely or not at all, so that a reader never sees half of it.

    Args:
        path   path of the file. Missing folders are created
        text   text, which is written in UTF-8
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(path, [text.encode()])


def _documents(root, folder, pattern):
    root = Path(root).resolve()
    found = [re.fullmatch(pattern, p.name) for p in sorted((root / folder).glob("*.*"))]
    return [Document(root, match[1], match[2]) for match in found if match]
