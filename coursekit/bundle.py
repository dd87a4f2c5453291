"""The command `tinyattn bundle`: make the folder for a class, without the lecturer's texts.

A checkout has the sample solutions, the answers to open questions and the lecturer's pages. The
folder that is made here has none of them.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from coursekit.build.public_api import new_names
from coursekit.deck import render
from coursekit.student.workbook import copy_of
from tinyattn import __version__
from tinyattn.course.project import CourseError, lectures, write_text

BUNDLE = Path("build") / "class"
MARK = "START.md"
# the parts of a checkout from which a wheel is built
SOURCES = ("coursekit", "lectures", "notebooks", "tinyattn")
FILES = ("LICENSE", "MANIFEST.in", "README.md", "pyproject.toml", "setup.py")
NOT_COPIED = ("__pycache__", ".ipynb_checkpoints", "teaching", "*.nbi", "*.nbc", "hw*.md")
NOTES = re.compile(  # in the text of a lecture
    r'^\+\+\+ \{"tags": \["notes"\]\}\n.*?(?=^\+\+\+|^```\{code-cell\}|\Z)',
    re.MULTILINE | re.DOTALL,
)
BUILD = ["-m", "pip", "wheel", "-q", "--no-deps", "."]  # pip gets the setuptools that it needs
START = """\
# Start here

You need Python 3.11 or newer. In this folder:

```bash
python3 -m venv .venv
.venv/bin/pip install "./{wheel}[class]"
.venv/bin/tinyattn class {first}
```

On Windows, write `.venv\\Scripts\\` instead of `.venv/bin/`. The last line opens JupyterLab with a
copy of each notebook, in the new folder `tinyattn-course/workbook/`. Write into these copies.

- **`slides/`** has the slides of the lectures. Each is one file, which any browser opens without a
  network; `?` lists the keys.
- **`notebooks/`** has the same notebooks to fill in, if you have a JupyterLab or Colab of your own.
- **`{wheel}`** is the library with the data sets and the trained networks.
"""
CHECK = """
`.venv/bin/tinyattn check {number}` tells you what of your homework is right. Hand in the notebook
itself, saved.
"""


def write(root, folder=None, documents=()):
    """Write the folder for a class with these lectures and homework, and return its path.

    Raises CourseError if the folder is not empty and was not made by this command, or if the wheel
    cannot be built.
    """
    folder = root / BUNDLE if folder is None else Path(folder)
    if folder.exists() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise CourseError(
            f"bundle: {folder} is not empty, and was not made by tinyattn bundle. Choose an empty "
            "or a new folder"
        )
    shutil.rmtree(folder, ignore_errors=True)
    try:
        return _filled(root, folder, documents)
    except BaseException:  # an incomplete folder would block the next attempt
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _filled(root, folder, documents):
    new = new_names(lectures(root))
    for document in documents:
        name = document.notebook.relative_to(root / "notebooks")
        write_text(folder / "notebooks" / name, copy_of(document, new, install=True))
        if not document.is_homework:
            deck = folder / "slides" / document.deck.name
            render.build_deck(document, notes=False, path=deck)
    wheel = build_wheel(root, folder)
    start = START.format(wheel=wheel.name, first=documents[0].number)
    homework = [document.number for document in documents if document.is_homework]
    if homework:
        start += CHECK.format(number=homework[0].removeprefix("hw"))
    write_text(folder / MARK, start)
    return folder


def build_wheel(root, folder):
    """Build the package of the checkout `root` into the folder, and return its path.

    The wheel is built from a copy without speaker notes, so nothing is left in the checkout.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tinyattn-bundle-") as place:
        copy = Path(place)
        for name in SOURCES:
            ignored = shutil.ignore_patterns(*NOT_COPIED)
            shutil.copytree(root / name, copy / name, ignore=ignored)
        for path in (copy / "lectures").glob("[0-9][0-9]_*.md"):
            write_text(path, NOTES.sub("", path.read_text(encoding="utf-8")))
        for path in (copy / "notebooks").rglob("*.ipynb"):
            write_text(path, without_notes(path.read_text(encoding="utf-8")))
        for name in FILES:
            shutil.copyfile(root / name, copy / name)
        done = subprocess.run(
            [sys.executable, *BUILD, "-w", folder.resolve()],
            cwd=copy,
            capture_output=True,
            text=True,
            env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        )
    made = sorted(folder.glob(f"tinyattn-{__version__}-*.whl"))
    if done.returncode or not made:
        last = (done.stderr.strip().split("\n") or [""])[-1]
        raise CourseError(
            f"bundle: the wheel could not be built: {last or 'pip printed no reason'}\nCheck the "
            "network connection, because pip downloads setuptools"
        )
    return made[0]


def without_notes(notebook):
    """Return the file of a notebook without the speaker notes in the metadata of its cells."""
    content = json.loads(notebook)
    for cell in content["cells"]:
        cell["metadata"].pop("notes", None)
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
