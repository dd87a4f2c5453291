"""The student's own copies of the notebooks, and JupyterLab on them.

The committed notebooks stay as they are: saving in JupyterLab would change them, and the next
`git pull` would stop on the student's work.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from coursekit.build.public_api import new_names
from coursekit.build.text import read_notebook
from coursekit.build.views import student_copy
from tinyattn.course.project import CourseError, homework, install, lectures, write_text


def prepare(document, *, fresh=False):
    """Make the copies in workbook/ that are not there yet; returns the document's copy.

    With `fresh` the student's copy is renamed, never deleted, and a new one is made.
    """
    read_notebook(document)  # says so if it is not built or damaged
    if fresh and document.workbook.exists():
        _set_aside(document.workbook)
    missing = [
        other
        for other in lectures(document.root) + homework(document.root)
        if other.notebook.is_file() and not other.workbook.exists()
    ]
    new = new_names(lectures(document.root)) if missing else {}
    for other in missing:
        write_text(other.workbook, copy_of(other, new))
    return document.workbook


def copy_of(document, new):
    """The file in which a student works; new: of `names.new_names`."""
    text = document.notebook.read_text(encoding="utf-8")
    return text if document.is_homework else student_copy(text, new[document.number])


def open_in_jupyterlab(document, *, fresh=False, browser=True):
    """Start JupyterLab on the student's copy and wait until it ends; returns its exit code."""
    if importlib.util.find_spec("jupyterlab") is None:
        raise CourseError(
            f"JupyterLab is not installed; install it with\n    {install('class')}\n"
            f"or without it, in the terminal: tinyattn run {document.number}"
        )
    path = prepare(document, fresh=fresh)
    # as the address, not as the file to run: so the address that is printed leads there too
    folder = document.home / "workbook"
    address = f"--LabApp.default_url=/lab/tree/{path.relative_to(folder).as_posix()}"
    # the file browser shows the copies alone: the texts with the solutions are not below them
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={folder}", address]
    if not browser:
        command.append("--no-browser")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        print("you are root (as in a container): JupyterLab is started with --allow-root")
        command.append("--allow-root")
    print(f"opening {document.relative(path)}, your own copy; Ctrl-C twice ends JupyterLab")
    process = subprocess.Popen(command, cwd=folder, env=_environment())
    from tinyattn.kernels.machine import first_use

    if first_use.start(say=False):
        print("the kernels of the lectures are compiled in the background, once")
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue  # JupyterLab got it too, and asks whether to stop


def _environment():
    """With our settings (labconfig/) among JupyterLab's defaults; the student's own come first.

    They keep its question about news from lying over the first slide.
    """
    name = "JUPYTER_CONFIG_PATH"
    places = [str(Path(__file__).parent), *filter(None, [os.environ.get(name)])]
    return os.environ | {name: os.pathsep.join(places)}


def _set_aside(path):
    number = 1
    while (kept := path.with_name(f"{path.stem}.old{number}.ipynb")).exists():
        number += 1
    path.rename(kept)
    print(f"your copy is now {kept.name}")
