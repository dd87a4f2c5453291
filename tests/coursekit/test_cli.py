"""The command as a student meets it: help, answers, errors without tracebacks."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tinyattn as tinyattn_package
from coursekit import cli, make
from coursekit.build import index, notebooks, pages, text, views
from coursekit.student import workbook
from tests.coursekit import small_project as course_project
from tinyattn import doctor
from tinyattn.course import project
from tinyattn.kernels.machine import first_use

COMMANDS = ["class", "run", "slides", "build", "claims", "doctor"]


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A small project with built (not executed) notebooks, entered."""
    root = course_project.make(tmp_path / "project")
    for document in project.lectures(root) + project.homework(root):
        project.write_text(
            document.notebook, views.to_read(notebooks.to_json(notebooks.unexecuted(document)))
        )
    monkeypatch.chdir(root / "lectures")
    return root


def tinyattn(*arguments, cwd=None, **environment):
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "coursekit.cli", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_each_help_has_an_example(command, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main([command, "--help"])
    assert caught.value.code == 0
    assert f"example:\n  tinyattn {command}" in capsys.readouterr().out


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to a group of processes")
def test_a_build_that_is_stopped_says_so_and_nothing_else(tmp_path):
    root = course_project.make(tmp_path / "project")
    lecture = project.lectures(root)[0]
    before = lecture.notebook.read_bytes() if lecture.notebook.exists() else None
    source = lecture.source.read_text(encoding="utf-8")
    sleeps = "import time\nopen('started', 'w').close()\ntime.sleep(60)"
    cell = f"\n```{{code-cell}} ipython3\n{sleeps}\n```\n"
    lecture.source.write_text(source + cell, encoding="utf-8")
    program = (
        "import signal, sys; from coursekit import cli;"
        "signal.signal(signal.SIGINT, signal.default_int_handler);"  # it may have been ignored here
        "sys.exit(cli.main(sys.argv[1:]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, "build", lecture.number],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        start_new_session=True,
    )
    with process:
        deadline = time.monotonic() + 120
        while not list(root.rglob("started")) and time.monotonic() < deadline:
            time.sleep(0.1)
        os.killpg(process.pid, signal.SIGINT)  # what Ctrl-C does
        try:
            printed, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 130
    assert printed.rstrip().endswith("stopped")
    assert "Traceback" not in printed
    after = lecture.notebook.read_bytes() if lecture.notebook.exists() else None
    assert after == before


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    shown = capsys.readouterr().out
    assert all(f"\n    {command} " in shown for command in COMMANDS)


def test_version_is_the_packages(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"tinyattn {tinyattn_package.__version__}\n"


@pytest.mark.parametrize("arguments", [["lecture"], ["run"], ["run", "04", "--loud"]])
def test_wrong_usage_is_2(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2
    assert "usage: tinyattn" in capsys.readouterr().err


def test_without_a_command_it_helps(capsys):
    assert cli.main([]) == 2
    assert "tinyattn class 04" in capsys.readouterr().err


def test_in_a_process_errors_come_without_traceback(root):
    done = tinyattn("run", "99", cwd=root)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        "tinyattn: there is no lecture or homework '99'. Choose one of\n"
        "    04    counting\n    hw04  counting\n"
    )


def test_run_says_which_claims_held(root, capsys, monkeypatch):
    monkeypatch.chdir(root / "lectures" / "homework")
    assert cli.main(["run", "4"]) == 0
    said = capsys.readouterr().out
    assert "2/4  It is two (N12)" in said
    assert "✓ C001 holds: One and one are two." in said
    assert "claims: 1 holds" in said
    assert "counted" not in said


def test_run_verbose_shows_what_cells_print(root, capsys):
    assert cli.main(["run", "04", "--verbose"]) == 0
    assert "        counted\n" in capsys.readouterr().out


def edit(root, old, new, name="04_counting.md"):
    path = root / "lectures" / name
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def test_run_stops_at_a_failing_cell_and_shows_it(root, capsys):
    edit(root, "total = 1 + 1", "def f():\n    return 1 / 0\n\ntotal = f()")
    assert cli.main(["run", "04"]) == 1
    shown = capsys.readouterr()
    assert "2/4  It is two (N12)" in shown.err
    assert "ZeroDivisionError: division by zero" in shown.err
    assert "-->   4     return 1 / 0" in shown.err
    assert "-->   6 total = f()" in shown.err
    assert "Traceback" not in shown.err


def test_run_goes_on_after_a_disagreement_and_fails(root, capsys):
    edit(root, "total == 2", "total == 3")
    assert cli.main(["run", "04"]) == 1
    shown = capsys.readouterr().out
    assert "this run: refuted as worded" in shown
    assert "4/4  What you saw" in shown
    assert "1 disagree with the ledger" in shown


@pytest.mark.parametrize(
    ("package", "what"), [("matplotlib_missing", "matplotlib_missing"), ("torch", '-e ".[peers]"')]
)
def test_run_says_how_to_install_what_is_missing(root, capsys, monkeypatch, package, what):
    monkeypatch.setitem(sys.modules, package, None)  # importing it raises ModuleNotFoundError
    edit(root, "total = 1 + 1", f"import {package}")
    assert cli.main(["run", "04"]) == 1
    assert f".venv/bin/pip install {what}" in capsys.readouterr().err


def test_a_full_run_writes_the_ledger(root):
    edit(root, "total {total}", "in full: {total}")
    done = tinyattn("run", "04", cwd=root, TINYATTN_FULL="1")
    assert done.returncode == 0, done.stderr
    assert "in full: 2" in (root / project.LEDGER).read_text(encoding="utf-8")


def test_a_refused_claim_keeps_the_digest_of_its_old_verdict(root, monkeypatch):
    """Else a verdict of the old code would pass as one of the new code."""
    monkeypatch.setenv("TINYATTN_FULL", "1")
    assert cli.main(["run", "04"]) == 0
    before = (root / project.LEDGER).read_text(encoding="utf-8")
    edit(root, "total = 1 + 1", "total = 3 - 1")
    edit(root, ', f"one and two are {1 + 2}")', ")")  # no control: the full run is refused
    assert cli.main(["run", "04"]) == 1
    assert (root / project.LEDGER).read_text(encoding="utf-8") == before


def test_without_jupytext_the_notebook_is_run(root, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "jupytext", None)
    assert cli.main(["run", "04"]) == 0
    assert "from notebooks/04_counting.ipynb" in capsys.readouterr().out


def test_run_homework_runs_the_students_copy(root, capsys):
    assert cli.main(["run", "hw04"]) == 1
    assert "NotImplementedError: add x to itself" in capsys.readouterr().err
    document = project.find(root, "hw04")
    project.write_text(workbook.prepare(document), notebooks.to_json(text.read_source(document)))
    assert cli.main(["run", "hw04"]) == 0
    assert "from workbook/homework/hw04_counting.ipynb" in capsys.readouterr().out


# --- class


@pytest.fixture
def started(monkeypatch):
    """What would have been started in place of JupyterLab."""
    pytest.importorskip("jupyterlab")
    commands = []

    class Process:
        def __init__(self, command, cwd, env):
            assert Path(env["JUPYTER_CONFIG_PATH"], "labconfig").is_dir()
            commands.append((command, cwd))

        def wait(self):
            return 0

    monkeypatch.setattr(workbook.subprocess, "Popen", Process)
    monkeypatch.setattr(first_use, "start", lambda say: commands.append("warm"))
    return commands


def test_class_opens_the_students_copy(root, started, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000, raising=False)
    assert cli.main(["class", "04", "--no-browser"]) == 0
    (command, cwd), then = started
    folder = root / "workbook"
    assert cwd == folder and then == "warm"
    assert f"--ServerApp.root_dir={folder}" in command
    assert any(c.endswith("=/lab/tree/04_counting.ipynb") for c in command)
    below = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    assert sorted(below) == ["04_counting.ipynb", "homework/hw04_counting.ipynb"]
    assert "--no-browser" in command
    assert (root / "workbook" / "homework" / "hw04_counting.ipynb").is_file()


def test_class_speaks_before_it_loads(root, started, capsys, monkeypatch):
    """The rest takes some seconds, in which a silent terminal looks as if nothing happened."""
    said = []
    monkeypatch.setattr(project, "find_root", lambda: said.append(capsys.readouterr().out) or root)
    cli.main(["class", "04"])
    assert "opening the course" in said[0]


def test_index_glossary_and_names_of_pytorch_are_beside_the_copies():
    pages = workbook.companions(project.find_root())
    assert set(pages) == {"index.ipynb", "glossary.ipynb", "from_pytorch.ipynb"}
    there = {d.notebook.name for d in project.lectures(project.find_root())}
    for name, page in pages.items():
        cells = json.loads(page)["cells"]
        words = "".join("".join(cell["source"]) for cell in cells)
        assert "<img" not in words and "](../" not in words, name
        links = set(re.findall(r"(?:\]\(|href=\")(\w+\.ipynb)", words))
        assert links <= there | set(pages), name
        assert links or name == "from_pytorch.ipynb"
        for of_authors in ("tinyattn build", "tests.mistakes", "a test runs"):
            assert of_authors not in words, name
    assert "The tables list what differs. If you use" in pages["from_pytorch.ipynb"].replace(
        "\\n", " "
    )
    assert "your own copies" in pages["index.ipynb"]
    assert "stay as they are" not in pages["index.ipynb"]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="Windows knows no root")
def test_class_as_root_says_so(root, started, capsys, monkeypatch):
    for user, expected in ((0, True), (1000, False)):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        assert cli.main(["class", "04"]) == 0
        assert ("--allow-root" in started[-2][0]) is expected
        assert ("you are root" in capsys.readouterr().out) is expected


def test_class_keeps_what_the_student_wrote(root, started, capsys):
    cli.main(["class", "04"])
    copy = root / "workbook" / "04_counting.ipynb"
    mine = copy.read_text(encoding="utf-8").replace("total = 1 + 1", "total = 2 + 0")
    copy.write_text(mine, encoding="utf-8")
    cli.main(["class", "04"])
    assert copy.read_text(encoding="utf-8") == mine
    cli.main(["class", "04", "--fresh"])
    assert "total = 1 + 1" in copy.read_text(encoding="utf-8")
    assert (root / "workbook" / "04_counting.old1.ipynb").read_text(encoding="utf-8") == mine


def test_class_can_make_the_copies_only(root, started, capsys):
    assert cli.main(["class", "04", "--copies-only"]) == 0
    assert not started
    assert "04_counting.ipynb" in capsys.readouterr().out
    copy = (root / "workbook" / "04_counting.ipynb").read_text(encoding="utf-8")
    assert "%pip install" not in copy  # the package is here


def test_class_run_executes_in_the_terminal(root, capsys):
    assert cli.main(["class", "04", "--run"]) == 0
    assert "✓ C001 holds" in capsys.readouterr().out


def test_class_without_jupyterlab(root, capsys, monkeypatch):
    monkeypatch.setattr(workbook.importlib.util, "find_spec", lambda name: None)
    assert cli.main(["class", "04"]) == 1
    assert 'pip install -e ".[class]"' in capsys.readouterr().err


# --- build, slides, claims, doctor


def test_build_check(root, capsys, monkeypatch):
    assert cli.main(["build", "--check"]) == 1
    said = capsys.readouterr().err
    assert "notebooks/index.ipynb is out of date" in said
    assert "the whole lecture takes 8 minutes, expected 75 to 90" in said
    assert "slides without speaker notes: How much is one and one?" in said
    monkeypatch.setattr(make, "lacks", lambda *lecture: [])  # it is too short for a class
    index.write_index(root)
    pages.write_pages(root)
    assert cli.main(["build", "--check"]) == 0
    edit(root, "- two", "- three")
    assert cli.main(["build", "--check"]) == 1
    assert "slide 'What you saw', cell 7 differs" in capsys.readouterr().err


def test_build_homework(root, capsys):
    edit(root, "add x to itself", "twice x", "homework/hw04_counting.md")
    assert cli.main(["build", "hw04"]) == 0
    cells = json.loads((root / "notebooks/homework/hw04_counting.ipynb").read_text("utf-8"))[
        "cells"
    ]
    assert "twice x" in "".join(cells[2]["source"])  # after the one that installs the package


def test_slides_of_homework_are_refused(root, capsys):
    assert cli.main(["slides", "hw04", "--no-open"]) == 1
    assert "only lectures have slides" in capsys.readouterr().err


def test_grading_needs_a_process(root, capsys):
    assert cli.main(["grade", "04", "handed_in", "--jobs", "-1"]) == 1
    assert "expected --jobs >= 1, got --jobs -1" in capsys.readouterr().err


def test_claims_are_a_table(root, capsys):
    assert cli.main(["claims", "--lecture", "4"]) == 0
    shown = capsys.readouterr().out
    assert "✓ C001  holds" in shown
    assert "lecture 04, slides K15\n        One and one are two.\n        total 2\n" in shown
    assert shown.endswith("1 in all: 1 holds\n")


@pytest.mark.skipif(os.name == "nt", reason="needs a shell of Unix")
def test_a_pipe_that_closes_is_quiet(root):
    done = subprocess.run(
        f'"{sys.executable}" -m coursekit.cli claims | "{sys.executable}" -c ""',
        shell=True,
        cwd=root,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.stderr == ""


def test_ctrl_c_is_quiet(root, capsys, monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "examine", interrupt)
    assert cli.main(["doctor"]) == 130
    assert capsys.readouterr().err == "\nstopped\n"


def test_doctor_says_what_is_there(root, capsys):
    cli.main(["doctor"])
    shown = capsys.readouterr().out
    for word in ("python ", "numpy ", "matrices ", "vectors ", str(root), "04           counting"):
        assert word in shown


def test_doctor_says_how_to_get_what_is_missing(root, capsys, monkeypatch):
    monkeypatch.setattr(
        doctor, "_version", lambda package: None if package == "matplotlib" else "1"
    )
    assert cli.main(["doctor"]) == 1
    shown = capsys.readouterr().out
    assert "matplotlib           missing" in shown
    assert 'for the notebooks:\n    .venv/bin/pip install -e ".[class]"' in shown


def test_a_folder_that_is_read_only_is_named_without_a_traceback(root, capsys, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EROFS, "Read-only file system", "/course/workbook")

    monkeypatch.setattr("coursekit.student.workbook.prepare", refuse)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    assert cli.main(["class", "04", "--no-browser"]) == 1
    said = capsys.readouterr().err
    assert "/course/workbook cannot be written (Read-only file system)" in said
