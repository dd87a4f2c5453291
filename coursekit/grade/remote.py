"""The student's functions in a sandbox, which receives text and returns plain data."""

import itertools
import json

from coursekit.grade.sandbox import ProcessLost
from tinyattn.course.checks.judging import Diagnosis, NotAsked, source_of
from tinyattn.course.checks.runner import decode, encode
from tinyattn.course.checks.student import Student

NOT_THERE = "Did you run the cell"  # part of a NameError that `runner.View` raises
LATE = 2  # after this many questions that time out, a task gets no further questions


class Worker:
    """A process of a sandbox, started when it is needed and restarted when it was lost."""

    def __init__(self, sandbox):
        self._sandbox, self._process = sandbox, None
        self._numbers, self._started = itertools.count(), 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def started(self):
        """Start a process if none is running, and return its number, counted from 1."""
        if self._process is None:
            try:
                self._process = self._sandbox.open()
            except ProcessLost as lost:
                # no code of the student has run yet, so this costs no points
                raise NotAsked(f"the sandbox does not start: {lost}") from None
            self._started += 1
        return self._started

    def number(self):
        """Return a number for a new environment."""
        return next(self._numbers)

    def send(self, job):
        """Return the answer, a dictionary. Raises ProcessLost, or ValueError for another answer."""
        try:
            reply = json.loads(self._process.send(json.dumps(job)))
        except ProcessLost:
            self.close()
            raise
        if type(reply) is not dict:
            raise ValueError("no reply")
        return reply

    def close(self):
        if self._process is not None:
            self._process.close()
            self._process = None


class RemoteStudent(Student):
    """A student whose functions are in one environment: a program in a worker's process."""

    def __init__(self, worker, program, broken=()):
        self._worker, self._program, self._broken = worker, program, list(broken)
        self._environment, self._in, self._lost_at_once = None, None, None
        self._errors, self._light, self._late = [], False, 0
        self.counted = None

    def _ask(self, function, inputs):
        job = {
            "ask": source_of(function),
            "name": function.__name__,
            "inputs": encode(list(inputs)),
        }
        self.counted = None
        try:
            self._start()
            reply = self._worker.send(job | {"environment": self._environment})
            if "value" in reply:
                self.counted = int(reply["counted"])
                return {"value": decode(reply["value"])}
            return self._explained(_texts(reply))
        except ProcessLost as lost:
            self._late += lost.late
            if self._late >= LATE:
                self._lost_at_once = lost
            raise Diagnosis(str(lost), lost.mistake) from None
        except (KeyError, TypeError, ValueError, RecursionError):
            self._worker.close()
            raise Diagnosis("its result cannot be read", "an answer of another kind") from None

    def _start(self):
        if self._lost_at_once is not None:  # the cells themselves do not finish
            raise self._lost_at_once
        if self._worker.started() == self._in:
            return
        self._environment = self._worker.number()
        try:
            ran = self._worker.send(self._program.job(self._environment, light=self._light))
        except ProcessLost as lost:
            # training is left out only in a second attempt, because functions may depend on it
            if not self._light:
                self._light = True
                return self._start()
            self._lost_at_once = lost
            raise
        self._in = self._worker.started()
        self._errors = self._broken + [_texts(error) for error in ran["cells"] if error]

    def _explained(self, reply):
        """Explain a missing function by the error that stopped its cell."""
        if reply["error"] == "NameError" and NOT_THERE in reply["message"]:
            return next((e for e in self._errors if e["error"] != "NotImplementedError"), reply)
        return reply


def _texts(reply):
    return {key: str(reply[key])[:2000] for key in ("error", "message", "line")}
