"""What runs inside the sandbox: the student's cells, and answers to the grader's questions.

One line of JSON comes in, one goes out. Whatever the student's code does in here, all it can
change is its own answers: the grader reads numbers, compares them, and keeps its judge outside.
"""

import importlib
import io
import json
import linecache
import os
import sys
import types

from tinyattn.course.checks.runner import answer, decode, encode, failure

names = {"__name__": "__main__", "__builtins__": __builtins__}
LONGEST_REPLY = 8_000_000


class Forbidden(Exception):
    """A function was called that the student is asked to write."""


class Bin(io.TextIOBase):
    """Where the student's prints go."""

    def write(self, text):
        return len(text)


def reply(line):
    """The answer to one request, as a line of JSON. Prints of the student's code are dropped."""
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


def take_away(job):
    """Let the forbidden functions refuse."""
    for name in job["forbid"]:
        forbid(name)
    return {"value": None}


def run_cells(job):
    """Run the cells; {"cells": the error of each, None for one that ran}."""
    return {"cells": [run_cell(i, source) for i, source in enumerate(job["cells"])]}


def run_cell(i, source):
    where = f"<cell {i}>"
    linecache.cache[where] = (len(source), None, source.splitlines(keepends=True), where)
    try:
        exec(compile(source, where, "exec"), names)
    except BaseException as error:
        return failure(error)
    return None


def run_ask(job):
    """Run a function of the grader's beside the student's code."""
    place = {}
    exec(job["ask"], place)
    result = answer(place[job["name"]], names, decode(job["inputs"]))
    if "value" in result:
        return {"value": encode(result["value"])}
    return result


def forbid(name):
    """Let the library function of this full name raise Forbidden, wherever it is known."""
    owner, _, last = name.rpartition(".")
    try:
        holder = importlib.import_module(owner)
    except ModuleNotFoundError:  # a method: its class stands in a module
        module, _, kind = owner.rpartition(".")
        holder = getattr(importlib.import_module(module), kind)
    found = getattr(holder, last)
    shown = name.replace("tinyattn.functional", "F").replace("tinyattn.", "")

    def refuse(*args, **kwargs):
        raise Forbidden(f"you call {shown}, which this task asks you to write yourself")

    if isinstance(found, type) and isinstance(holder, types.ModuleType):
        found.__init__ = refuse
        return
    setattr(holder, last, refuse)
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("tinyattn"):
            for attribute, value in list(vars(module).items()):
                if value is found:
                    setattr(module, attribute, refuse)


WAYS = {"forbid": take_away, "cells": run_cells, "ask": run_ask}


def quiet():
    """Keep standard output for the answers, where nothing that is printed gets into them."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):
        os.dup2(nothing, descriptor)
    return answers


def serve(answers):
    """Answer requests on standard input until it ends; for a process of its own."""
    for line in sys.stdin:
        answers.write(reply(line) + "\n")
        answers.flush()
