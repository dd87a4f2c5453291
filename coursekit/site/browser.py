"""JupyterLab inside the browser, so a notebook opens from the site without any installation.

JupyterLite serves the student's copies as files. Pyodide, a Python in WebAssembly, runs them, and
the page loads it from the server of its developers. The package with its data and trained weights
comes from the site itself, as a wheel. There is no compiler, so everything runs on array algebra,
with the sizes of `course.small()`.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

from coursekit.build.public_api import new_names
from coursekit.build.text import need
from coursekit.build.views import with_cell
from coursekit.student.workbook import companions, copy_of
from tinyattn.course.project import CourseError, homework, lectures, write_text

FOLDER = "browser"  # on the site
# These formats of JupyterLab's icons are removed, because only browsers without WOFF need them, and
# such browsers cannot run WebAssembly.
OLD_FONTS = "eot", "svg", "ttf"
SETTINGS = {"appName": "tinyattn", "exposeAppInBrowser": True}
FIRST_CELL = """\
# This notebook runs in your browser; what you write stays on your computer. This cell brings the
# course into it, once for each visit: about half a minute.
%pip install -q tinyattn matplotlib"""


def address(document):
    """Return the address, from the top of the site, at which a document opens in the browser."""
    return f"{FOLDER}/notebooks/index.html?path={quote(document.notebook.name)}"


def write_browser(root, site, work):
    """Build JupyterLite with the student's copies and the package's wheel into `site`/browser.

    Raises CourseError with the output if the wheel or JupyterLite cannot be built.
    """
    for package in ("jupyterlite_core", "jupyterlite_pyodide_kernel"):
        need(package, "site")
    shutil.rmtree(work, ignore_errors=True)
    new = new_names(lectures(root))
    for document in lectures(root) + homework(root):
        copy = for_browser(copy_of(document, new))
        write_text(work / "files" / document.notebook.name, copy)
    for name, text in companions(root).items():
        write_text(work / "files" / name, text)
    # `python -m tests.scripts.in_browser` needs these to run a notebook
    settings = {"jupyter-lite-schema-version": 0, "jupyter-config-data": SETTINGS}
    write_text(work / "jupyter-lite.json", json.dumps(settings))
    _run([sys.executable, "-m", "pip", "wheel", "--no-deps", "-q", "-w", work, root], work)
    wheel = next(Path(work).glob("tinyattn-*.whl"))
    command = [
        sys.executable,
        "-m",
        "jupyterlite_core",
        "build",
        "--lite-dir",
        work,
        "--contents",
        work / "files",
        "--output-dir",
        site / FOLDER,
        "--apps",
        "lab",
        "--apps",
        "notebooks",
        "--no-sourcemaps",
        "--piplite-wheels",
        wheel,
    ]
    _run(command, work)
    for suffix in OLD_FONTS:
        for font in (site / FOLDER / "build").glob(f"fa-*.{suffix}"):
            font.unlink()


def for_browser(text):
    """Return the text of a notebook with a first cell that loads the package into the browser."""
    return with_cell(text, 0, "in-the-browser", FIRST_CELL)


def _run(command, folder):
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, encoding="utf-8", check=False
    )
    if done.returncode:
        said = (done.stdout + done.stderr).strip()[-2000:]
        raise CourseError(
            f"site: {Path(command[2]).name} ended with the exit code {done.returncode} and the "
            f"output:\n{said}"
        )
