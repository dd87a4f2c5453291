"""Run a student's own notebook as grading does, on the student's own machine.

This is not a sandbox: the code runs as it does in the notebook, in a separate process. Only
`tinyattn check --as-handed-in` uses it, because grading needs WebAssembly.
"""

import os
import queue
import subprocess
import sys
import threading
import time

from coursekit.grade.sandbox import LARGEST, SECONDS, Sandbox, ended, too_slow

START = """
import sys
sys.path.insert(0, {folder!r})
sys.modules["numba"] = None  # as in WebAssembly: NumPy alone, nothing compiled
import server
server.serve(server.quiet())
"""


class OwnMachine(Sandbox):
    """Processes of the operating system, for trusted code."""

    description = "in a process of this machine, without a sandbox"

    def open(self):
        return OwnProcess(self.folder)


class OwnProcess:
    """One Python process, whose answers are read by a thread."""

    def __init__(self, folder):
        threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-B", "-c", START.format(folder=str(folder))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=os.environ | threads,
        )
        self.answers = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, line):
        """Return the answer to one line. Raises ProcessLost if the process ends or is too slow."""
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise ended() from None
        began, computed = time.monotonic(), seconds_of(self.process.pid)
        while True:
            try:
                answer = self.answers.get(timeout=0.2)
            except queue.Empty:
                now, waited = seconds_of(self.process.pid), time.monotonic() - began
                spent = waited if None in (now, computed) else now - computed
                if spent < SECONDS and waited < 6 * SECONDS:
                    continue
                self.close()
                raise too_slow() from None
            if answer is None:
                raise ended()
            return answer

    def close(self):
        """End the process."""
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
    """Return the computing time of a process in seconds, or None if the system is not Linux."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return None
