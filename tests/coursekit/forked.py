"""Grading on this machine for many tests: its processes are forks of one that has all loaded.

What runs in a process is the same, and each is as fresh as one that was started. To load the
library again for each of two hundred submissions would take a minute; `test_grade.py` starts
processes as grading does.
"""

import contextlib
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from types import SimpleNamespace

from coursekit.grade.own_machine import OwnMachine, OwnProcess

PARENT = """
import os, signal, socket, sys
sys.path.insert(0, {folder!r})
sys.modules["numba"] = None  # as in `own_machine`
import server
import tinyattn.functional, tinyattn.graph, tinyattn.nn, tinyattn.optim
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
there = socket.socket(fileno={number})
while True:
    asked, pipes, *_ = socket.recv_fds(there, 1, 2)
    if not asked:
        break
    fork = os.fork()
    if not fork:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        there.close()
        for pipe, number in zip(pipes, (0, 1)):
            os.dup2(pipe, number)
            os.close(pipe)
        server.serve(server.quiet())
        os._exit(0)
    for pipe in pipes:
        os.close(pipe)
    there.sendall(fork.to_bytes(8, "big"))
"""


class ForkedMachine(OwnMachine):
    """As OwnMachine; where processes cannot be forked, they are started."""

    def __enter__(self):
        self.parent = None
        if hasattr(os, "fork"):
            self.here, there = socket.socketpair()
            program = PARENT.format(folder=str(self.folder), number=there.fileno())
            threads = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
            self.parent = subprocess.Popen(
                [sys.executable, "-I", "-B", "-c", program],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=self.folder,
                env=os.environ | threads,
                pass_fds=[there.fileno()],
            )
            there.close()
        return super().__enter__()

    def __exit__(self, *error):
        if self.parent is not None:
            self.here.close()
            self.parent.wait(60)
        super().__exit__(*error)

    def open(self):
        return super().open() if self.parent is None else Fork(self.here)


class Fork(OwnProcess):
    """One fork, with pipes as those of a process that was started."""

    def __init__(self, parent):
        (its_input, requests), (answers, its_output) = os.pipe(), os.pipe()
        socket.send_fds(parent, [b"+"], [its_input, its_output])
        os.close(its_input)
        os.close(its_output)
        pid = int.from_bytes(parent.recv(8), "big")
        assert pid, "the process that forks has ended"

        def kill():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

        pipes = {"stdin": os.fdopen(requests, "wb"), "stdout": os.fdopen(answers, "rb")}
        self.process = SimpleNamespace(pid=pid, kill=kill, wait=lambda: None, **pipes)
        self.answers = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
