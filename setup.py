"""Puts the course into the wheel; everything else about the package stands in pyproject.toml.

An installed package brings the lectures as a student needs them: texts, notebooks, drawings,
ledger, trained weights and the checks of the homework, in `tinyattn/course/shipped/`. Notebooks
come without outputs, which are most of their bytes: `tinyattn slides` runs a lecture once before it
shows its slides. The texts of the homework, which have the solutions, are left out. A check
compares with an answer of its own; checks come packed, so that nobody reads one by accident.
Whoever wants to read them can: what runs on a student's machine cannot be hidden from the student.
"""

import base64
import json
import os
import shutil
import textwrap
import zlib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
SHIPPED = [
    "lectures/[0-9][0-9]_*.md",
    "lectures/GLOSSARY.md",
    "lectures/from_pytorch.md",
    "lectures/*.toml",
    "lectures/figures/*.svg",
    "lectures/weights/*.safetensors",
]
CHECKS = "lectures/homework/checks/*.py"
NOTEBOOKS = ["notebooks/[0-9][0-9]_*.ipynb", "notebooks/homework/hw[0-9][0-9]_*.ipynb"]
NOTEBOOKS += ["notebooks/index.ipynb"]
HEAD = "# the checks of a homework, packed, because they compare with an answer of their own"


def ship(root, target):
    """Copy the course of the project `root` into the folder `target`; returns the files."""
    written = []
    for pattern in [*SHIPPED, CHECKS, *NOTEBOOKS]:
        for path in filter(Path.is_file, sorted(root.glob(pattern))):
            copy = target / path.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            if pattern == CHECKS:
                copy = copy.with_suffix(".packed")
                copy.write_text(packed(path.read_text("utf-8")), encoding="utf-8", newline="\n")
            elif pattern in NOTEBOOKS:
                copy.write_text(
                    without_outputs(path.read_text("utf-8")), encoding="utf-8", newline="\n"
                )
            else:
                shutil.copyfile(path, copy)
            written.append(copy)
    return written


def packed(source):
    """A file of checks that is not read by accident; `tinyattn.course.checks.unpacked` reads it."""
    letters = base64.b64encode(zlib.compress(source.encode(), 9)).decode()
    return "\n".join([HEAD, *textwrap.wrap(letters, 100)]) + "\n"


def without_outputs(text):
    """The file of a notebook as it is before its first run."""
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def links(environment=os.environ):
    """The addresses that an index shows beside the package, {} away from a repository's workflow.

    They are those of the repository whose workflow builds the package, so they are never invented.
    """
    repository = environment.get("GITHUB_REPOSITORY", "")
    owner, _, name = repository.partition("/")
    if not name:
        return {}
    source = f"{environment.get('GITHUB_SERVER_URL', 'https://github.com')}/{repository}"
    return {
        "Documentation": f"https://{owner.lower()}.github.io/{name}/",
        "Source": source,
        "Changes": f"{source}/blob/main/CHANGELOG.md",
        "Questions and errors": f"{source}/issues",
    }


class BuildWithCourse(build_py):
    """`build_py` that adds the course; an editable install finds it in the project's folder."""

    def run(self):
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib) / "tinyattn" / "course" / "shipped"
            shutil.rmtree(target, ignore_errors=True)  # of an earlier build
            ship(ROOT, target)


if __name__ == "__main__":
    setup(cmdclass={"build_py": BuildWithCourse}, project_urls=links())
