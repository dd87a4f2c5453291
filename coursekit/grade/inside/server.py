"""The process inside the sandbox, which runs the student's cells and answers the grader.

Each request and each answer is one line of JSON. Whatever the student's code does here, it can only
change its own answers, because the grader compares the numbers outside of the sandbox.

An environment has two namespaces. The distributed cells run in `given`, with all of the library,
and so do sample solutions of earlier tasks. The student's code runs in `own`, with the names that
the task lists. Each sees the definitions of the other.
"""

import ast
import importlib
import io
import json
import linecache
import os
import sys
import types

import numpy as np
from environment import BY_HAND, Count, Environment, Forbidden, close_tensor

from tinyattn.course.checks.runner import answer, decode, encode, failure

LONGEST_REPLY = 8_000_000
environments = {}  # number -> Names


class Bin(io.TextIOBase):
    """A replacement for standard output that drops the student's prints."""

    def write(self, text):
        return len(text)


def reply(line):
    """Return the answer to one request, as a line of JSON, without prints of the student's code."""
    kept = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = Bin()
    try:
        job = json.loads(line)
        (kind,) = job.keys() & WAYS.keys()
        text = json.dumps(WAYS[kind](job))
    except BaseException as error:
        text = json.dumps(failure(error))
    finally:
        sys.stdout, sys.stderr = kept
    if len(text) > LONGEST_REPLY:
        text = json.dumps({"error": "TooLarge", "message": "the answer is too large", "line": ""})
    return text


class Names:
    """The two namespaces of one environment, and the part of them that the grader sees."""

    def __init__(self, job):
        self.environment = Environment(job["allow"], job["by_hand"])
        self.tasks = set(job["asked"])  # the names that the student must define
        self.given, self.own = ({"__name__": "__main__"} for _ in range(2))
        self.given["__builtins__"] = __builtins__
        self.fixed = set()  # names that sample solutions define, which stay unchanged

    def __contains__(self, name):
        return name in self.own or name in self.given

    def __getitem__(self, name):
        first, second = (self.own, self.given) if name in self.tasks else (self.given, self.own)
        return first[name] if name in first else second[name]

    def run_given(self, tree, where):
        """Run a distributed cell, and let the student's code use the names that it defines."""
        before = dict(self.given)
        exec(compile(tree, where, "exec"), self.given)
        for name, value in list(self.given.items()):
            if (name in before and before[name] is value) or name == "__builtins__":
                continue
            if self.environment.by_hand and value is np:
                self.given[name] = self.environment.module("numpy")
            self.own[name] = self.seen(value)

    def seen(self, value):
        """Return the student's view of a value that a distributed cell defines."""
        if isinstance(value, types.ModuleType):
            return self.environment.module(value.__name__)
        module = getattr(value, "__module__", None)
        library = isinstance(module, str) and module.split(".")[0] == "tinyattn"
        if library and callable(value) and not self.environment.lists(value):
            return self.environment.refuse(value)
        return value

    def run_sample(self, tree, where):
        """Run the sample solution of an earlier task instead of the student's solution."""
        before = dict(self.given)
        self.run_given(tree, where)
        self.fixed |= {n for n in self.given if self.given[n] is not before.get(n)}

    def run_own(self, tree, where):
        """Run statements of the student, and let the distributed cells use the names defined."""
        before = dict(self.own)
        try:
            self.environment.run(tree, where, self.own)
        finally:
            for name, value in list(self.own.items()):
                if (name in before and before[name] is value) or name.startswith("__"):
                    continue
                if name in self.fixed:
                    self.own[name] = before[name]
                elif name in self.tasks or name not in self.given:
                    self.given[name] = value


def prepare(job):
    """Fill an environment, and return {"cells": errors}, one for each failed statement."""
    if job["by_hand"]:
        forbid_gradients(job["engine"])
    else:
        close_tensor()
    names = environments[job["environment"]] = Names(job)
    waiting = []
    for kind in ("given", "sample", "own"):
        for cell in job[kind]:
            where = f"<{kind} cell {cell['place']}>"
            if kind == "own":
                source = cell["source"]
                lines = source.splitlines(keepends=True)
                linecache.cache[where] = (len(source), None, lines, where)
            run = {"given": names.run_given, "sample": names.run_sample, "own": names.run_own}[kind]
            waiting += [(run, *one, where) for one in _statements(cell)]
    errors = _run_all(waiting)
    return {"cells": errors}


def _statements(cell):
    """Return (tree,) for each statement of a cell that is to run."""
    body = ast.parse(cell["source"]).body
    kept = range(len(body)) if cell["keep"] is None else cell["keep"]
    return [(ast.Module([body[i]], []),) for i in kept]


def _run_all(waiting):
    """Run statements, those with a NameError again after the others, and return all errors."""
    while waiting:
        again, errors = [], []
        for run, tree, where in waiting:
            try:
                run(tree, where)
            except NameError as error:
                again.append((run, tree, where))
                errors.append(failure(error))
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                errors.append(failure(error))
                STOPPED.append(errors[-1])
        if len(again) == len(waiting):
            break
        waiting = again
    stopped, STOPPED[:] = list(STOPPED), []
    return stopped + (errors if waiting else [])


STOPPED = []


def run_ask(job):
    """Run a function of the grader together with the student's code."""
    place = {}
    exec(job["ask"], place)
    Count.numbers = 0
    result = answer(place[job["name"]], environments[job["environment"]], decode(job["inputs"]))
    if "value" in result:
        return {"value": encode(result["value"]), "counted": Count.numbers}
    return result


def forbid_gradients(names):
    """Make the functions with these full `names` raise Forbidden wherever the library has them."""
    for name in names:
        owner, _, last = name.rpartition(".")
        try:
            holder = importlib.import_module(owner)
        except ModuleNotFoundError:  # a method has no module of its own, so look in its class
            module, _, kind = owner.rpartition(".")
            holder = getattr(importlib.import_module(module), kind)
        _refuse(holder, last, name.replace("tinyattn.", ""))


def _refuse(holder, last, shown):
    found = getattr(holder, last)

    def refuse(*args, **kwargs):
        raise Forbidden(f"you call {shown}, {BY_HAND}")

    setattr(holder, last, refuse)
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("tinyattn"):
            for attribute, value in list(vars(module).items()):
                if value is found:
                    setattr(module, attribute, refuse)


WAYS = {"own": prepare, "ask": run_ask}


def quiet():
    """Reserve standard output for the answers, so that no print can reach them."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):
        os.dup2(nothing, descriptor)
    return answers


def serve(answers):
    """Answer requests on standard input until it ends, in a separate process."""
    for line in sys.stdin:
        answers.write(reply(line) + "\n")
        answers.flush()
