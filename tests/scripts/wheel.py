"""Test the wheel: build it, install it in an empty environment, and use it like a student.

    python -m tests.scripts.wheel                   build from this checkout; needs a package index
    python -m tests.scripts.wheel --wheel FILE      one that is built already
    python -m tests.scripts.wheel --extra ""        without the extra [class]: only NumPy and Numba

Everything happens in a temporary folder outside the checkout. The exit code is 0 if all checks
passed.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tests import ROOT
from tinyattn.course import project

# bytes: half of it are trained networks, which a class loads instead of training them
LARGEST = 16 * 2**20
# a student's commands, with what each must print and its exit code
COMMANDS = [
    (["--version"], "tinyattn ", 0),
    (["run", "00"], "done in", 0),
    (["claims", "--lecture", "04"], "in all:", 0),
    (["check", "00"], "task 1", 1),  # nothing is written yet
    (["full", "00"], "this needs the texts of the course", 1),
]
WITH_CLASS = [
    (["class", "00", "--run"], "done in", 0),
    (["slides", "00", "--no-open"], "00_autograd_engine.html", 0),
    (["doctor"], "shipped", 0),
]


def main(arguments=None):
    options = parser().parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="tinyattn-wheel-") as folder:
        folder = Path(folder)
        wheel = Path(options.wheel) if options.wheel else built(folder)
        problems = contents(wheel)
        if not problems:
            problems = used(installed(wheel, folder, options.extra), folder, options.extra)
    for problem in problems:
        print(problem, file=sys.stderr)
    print("the wheel is complete" if not problems else f"{len(problems)} problems")
    return 1 if problems else 0


def parser():
    new = argparse.ArgumentParser(
        prog="python -m tests.scripts.wheel", description=__doc__.split("\n")[0]
    )
    new.add_argument("--wheel", metavar="FILE", help="a wheel that is built already")
    new.add_argument("--extra", default="class", help="which extra is installed with it")
    return new


def built(folder):
    """Build a wheel of this checkout, and return its path."""
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "-q", "-w", folder, ROOT]
    subprocess.run(command, check=True)
    return next(folder.glob("*.whl"))


def contents(wheel):
    """Return what is wrong with the files of the wheel."""
    size = wheel.stat().st_size
    print(f"{wheel.name}  {size / 2**20:.1f} MB")
    found = [] if size <= LARGEST else [f"{size / 2**20:.1f} MB, at most {LARGEST / 2**20:.0f}"]
    with zipfile.ZipFile(wheel) as archive:
        there = {name: archive.read(name) for name in archive.namelist()}
    for document in project.lectures(ROOT) + project.homework(ROOT):
        name = document.relative(document.notebook)
        copy = there.get(f"tinyattn/course/shipped/{name}")
        if copy is None:
            found.append(f"{name} is missing")
        elif sources(copy) != sources(document.notebook.read_bytes()):
            found.append(f"{name} has other cells than here, where tests look for solutions in it")
    # only the texts of the homework have its solutions
    return found + [
        f"{name} has solutions" for name in there if re.search(r"/hw\d\d_.*\.md$", name)
    ]


def sources(notebook):
    """Return the sources of the cells of a notebook, given as the bytes of its file."""
    return ["".join(cell["source"]) for cell in json.loads(notebook)["cells"]]


def installed(wheel, folder, extra):
    """The command `tinyattn` of an environment that has nothing but the wheel and the extra."""
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    scripts = environment / ("Scripts" if os.name == "nt" else "bin")
    what = f"{wheel}[{extra}]" if extra else str(wheel)
    command = [scripts / "python", "-m", "pip", "install", "-q", what]
    subprocess.run(command, check=True, env=surroundings())
    return scripts / "tinyattn"


def surroundings():
    """Return the environment's variables without those that would lead to this checkout."""
    return {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "TINYATTN_FULL")}


def used(command, folder, extra):
    """Return the problems when a student uses the library in an empty folder."""
    place = folder / "somewhere"
    place.mkdir()
    problems = []
    for arguments, expected, code in COMMANDS + (WITH_CLASS if extra == "class" else []):
        done = subprocess.run(
            [command, *arguments],
            cwd=place,
            capture_output=True,
            encoding="utf-8",
            check=False,
            env=surroundings() | {"PYTHONIOENCODING": "utf-8"},
        )
        printed = done.stdout + done.stderr
        right = done.returncode == code and expected in printed
        print(f"{'ok   ' if right else 'WRONG'} tinyattn {' '.join(arguments)}", flush=True)
        if not right:
            problems.append(f"tinyattn {' '.join(arguments)}: {done.returncode}\n{printed}")
    return problems


if __name__ == "__main__":
    sys.exit(main())
