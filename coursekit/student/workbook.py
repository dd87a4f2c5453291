"""Make the student's own copies of the notebooks, and open them in JupyterLab.

Students work in copies, because saving in JupyterLab would change the committed notebooks, and the
next `git pull` would then stop.
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from coursekit.build.index import WHERE
from coursekit.build.public_api import new_names
from coursekit.build.text import METADATA, read_notebook
from coursekit.build.views import from_text, student_copy, with_install
from tinyattn.course.project import CourseError, homework, install, lectures, write_text

# sentences about how a page is made, which a student does not need
OF_AUTHORS = re.compile(r"\s`(tinyattn build|python -m tests)\b.*?\.(?=\s)", re.DOTALL)
OWN = "The notebooks beside this page are your own copies, so change what you like in them."


def prepare(document, *, fresh=False):
    """Make the missing copies in workbook/ and return the document's copy.

    With `fresh`, the student's copy is renamed, never deleted, and a new one is made.
    """
    read_notebook(document)  # this raises an error if the notebook is not built or is damaged
    if fresh and document.workbook.exists():
        _set_aside(document.workbook)
    for name, text in companions(document.root).items():
        if not (path := document.home / "workbook" / name).exists():
            write_text(path, text)
    missing = [
        other
        for other in lectures(document.root) + homework(document.root)
        if other.notebook.is_file() and not other.workbook.exists()
    ]
    new = new_names(lectures(document.root)) if missing else {}
    for other in missing:
        write_text(other.workbook, copy_of(other, new))
    return document.workbook


def companions(root):
    """Return {name: text} of the pages next to the copies (lectures, glossary, PyTorch's names)."""
    made = {}
    index = root / "notebooks" / "index.ipynb"
    if index.is_file():  # images are removed, because JupyterLab cannot see their folder
        text = index.read_text("utf-8")
        text = re.sub(r"<img src=[^>]*></a><br>([^<]*)</td>", r"\1</a></td>", text)
        made["index.ipynb"] = text.replace(WHERE, OWN)
    for name, page in (
        ("glossary.ipynb", "GLOSSARY.md"),
        ("from_pytorch.ipynb", "from_pytorch.md"),
    ):
        path = root / "lectures" / page
        if path.is_file():
            made[name] = _as_notebook(name.partition(".")[0], path.read_text("utf-8"))
    return made


def _as_notebook(name, text):
    """Return a page as a notebook of texts with working links, because JupyterLab renders these."""
    text = OF_AUTHORS.sub("", text.replace("](../notebooks/", "]("))
    # links that lead out of the workbook become words
    text = re.sub(r"\[([^\]]*)\]\(\.\./[^)]*\)", r"\1", text)
    parts = re.split(r"\n(?=## )", text.strip())
    cells = [
        {"cell_type": "markdown", "id": f"{name}-{i:03d}", "metadata": {}, "source": part.strip()}
        for i, part in enumerate(parts)
    ]
    page = {"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(page, indent=1, ensure_ascii=False) + "\n"


def copy_of(document, new, *, install=False):
    """Return the text of the notebook in which a student works.

    `new` is the result of `public_api.new_names`. With `install`, the notebook has the cell that
    installs the package, for work on another machine.
    """
    text = from_text(document.notebook.read_text(encoding="utf-8"))
    copy = text if document.is_homework else student_copy(text, new[document.number])
    return with_install(copy) if install else copy


def open_in_jupyterlab(document, *, fresh=False, browser=True):
    """Start JupyterLab on the student's copy, wait until it ends, and return its exit code.

    `fresh` is as in `prepare`. Without `browser`, only the address is printed.
    """
    if importlib.util.find_spec("jupyterlab") is None:
        raise CourseError(
            "JupyterLab is not installed. Install it with\n"
            f"    {install('class')}\n"
            f"or run the notebook in the terminal: tinyattn run {document.number}"
        )
    path = prepare(document, fresh=fresh)
    # The notebook is given as an address, so that the printed address opens it too.
    folder = document.home / "workbook"
    address = f"--LabApp.default_url=/lab/tree/{path.relative_to(folder).as_posix()}"
    # The file browser shows only the copies, because the texts with the solutions are outside.
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={folder}", address]
    if not browser:
        command.append("--no-browser")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        print("you are root (as in a container), so JupyterLab is started with --allow-root")
        command.append("--allow-root")
    print(
        f"opening your copy {document.relative(path)}; press Ctrl-C twice to end JupyterLab",
        flush=True,
    )
    process = subprocess.Popen(command, cwd=folder, env=_environment())
    from tinyattn.kernels.machine import first_use

    if first_use.start(say=False):
        print("the kernels of the lectures are now compiled in the background, once")
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue  # JupyterLab received the interrupt too, and asks whether to stop


def _environment():
    """Return the environment with our settings (labconfig/) among JupyterLab's defaults.

    The student's own settings have priority. Ours turn off JupyterLab's question about news, which
    would cover the first slide.
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
