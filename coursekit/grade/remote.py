"""The student's functions behind a sandbox: questions go in as text, plain data comes out."""

import json

from coursekit.grade.sandbox import ProcessLost
from tinyattn.course.checks.judging import Diagnosis, NotAsked, source_of
from tinyattn.course.checks.runner import decode, encode
from tinyattn.course.checks.student import Student


class RemoteStudent(Student):
    """Runs the cells in a process of a sandbox; if it is lost, the next question starts another."""

    def __init__(self, sandbox, cells, forbidden=()):
        self._sandbox, self._cells, self._forbidden = sandbox, cells, list(forbidden)
        self._process, self._lost_at_once, self._errors = None, None, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._close()

    def _ask(self, function, inputs):
        job = {
            "ask": source_of(function),
            "name": function.__name__,
            "inputs": encode(list(inputs)),
        }
        try:
            self._start()
            reply = self._send(job)
            if "value" in reply:
                return {"value": decode(reply["value"])}
            return self._explained(_texts(reply))
        except ProcessLost as lost:
            self._close()
            raise Diagnosis(str(lost), lost.mistake) from None
        except (KeyError, TypeError, ValueError, RecursionError):
            self._close()
            raise Diagnosis("what it returns cannot be read", "an answer of another kind") from None

    def _start(self):
        if self._lost_at_once is not None:  # the cells themselves do not come to an end
            raise self._lost_at_once
        if self._process is not None:
            return
        self._process = self._sandbox.open()
        try:
            ready = self._send({"forbid": self._forbidden})
        except ProcessLost as lost:  # nothing of the student's has run yet, so nobody loses a point
            raise NotAsked(f"the sandbox does not start: {lost}") from None
        if ready != {"value": None}:
            raise NotAsked(f"the sandbox is not ready: {ready}")
        try:
            ran = self._send({"cells": self._cells}).get("cells", [])
            self._errors = [_texts(error) for error in ran if error]
        except ProcessLost as lost:
            self._lost_at_once = lost
            raise

    def _send(self, job):
        reply = json.loads(self._process.send(json.dumps(job)))
        if type(reply) is not dict:
            raise ValueError("no reply")
        return reply

    def _explained(self, reply):
        """A function that is not there, because its cell stopped: say where that did."""
        if reply["error"] == "NameError" and "is the cell" in reply["message"]:
            return next((e for e in self._errors if e["error"] != "NotImplementedError"), reply)
        return reply

    def _close(self):
        if self._process is not None:
            self._process.close()
            self._process = None


def _texts(reply):
    return {key: str(reply[key])[:2000] for key in ("error", "message", "line")}
