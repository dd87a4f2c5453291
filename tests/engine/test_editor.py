"""What an editor offers after a dot: every public name, with its arguments and its docstring.

Jedi is asked as Jupyter asks it, Pyright as VS Code does. Neither runs the package: they read it.
"""

import json
import subprocess
import sys
import threading

import jedi
import pytest

import tinyattn as ta
import tinyattn.functional as F
from tests import ROOT
from tinyattn import graph, nn, optim

PROGRAM = """\
import tinyattn as ta
import tinyattn.functional as F
from tinyattn import graph, nn, optim
t = ta.tensor([1.0])
results = [t + 1, 1 - t, -t, t @ t, t[0], t > 0, t.T, t.sum(), t.reshape(1), abs(t), t.detach()]
"""
LATER = [
    "check",
    "data",
    "functional",
    "graph",
    "widgets",
    "metrics",
    "models",
    "nn",
    "optim",
    "plot",
    "trace",
    "training",
]


def public(thing):
    """The names that a user of a class or module is meant to find in it."""
    if hasattr(thing, "__all__"):
        return [name for name in thing.__all__ if not name.startswith("_")]
    names = [name for name in dir(thing) if not name.startswith("_") and hasattr(thing, name)]
    if isinstance(thing, type):
        return names
    return [n for n in names if getattr(getattr(thing, n), "__module__", "") == thing.__name__]


OFFERED = {
    "t.": public(ta.Tensor),
    "(t + 1).": public(ta.Tensor),
    "t.sum().": public(ta.Tensor),
    "ta.": public(ta) + LATER,
    "nn.": public(nn),
    "F.": public(F),
    "graph.": public(graph),
    "optim.": public(optim),
    "ta.nn.": public(nn),
    "ta.optim.": public(optim),
}
WITH_TEXT = ["t.", "ta.", "nn.", "F.", "graph.", "optim."]  # each of these names once
NO_DOCSTRING = {"grad", "requires_grad"}  # no methods: the docstring of Tensor tells of them


def without_text(prefix, texts):
    """What has no docstring, and what can be called but shows no arguments."""
    thing = {"t.": ta.Tensor, "ta.": ta, "nn.": nn, "F.": F, "graph.": graph, "optim.": optim}
    found = []
    for name, text in texts.items():
        if callable(getattr(thing[prefix], name, None)):
            arguments, *docstring = text.strip().splitlines()
            if "(" not in arguments or not docstring:
                found.append(name)
        elif not text and name not in NO_DOCSTRING:
            found.append(name)
    return found


# ---------------------------------------------------------------- Jedi


def jedi_offers(prefix):
    script = jedi.Script(PROGRAM + prefix, project=jedi.Project(ROOT))
    return {c.name: c for c in script.complete() if not c.name.startswith("_")}


@pytest.mark.parametrize("prefix", OFFERED)
def test_jedi_offers_every_name(prefix):
    offered = jedi_offers(prefix)
    assert not set(OFFERED[prefix]) - set(offered)


@pytest.mark.parametrize("prefix", WITH_TEXT)
def test_jedi_shows_arguments_and_docstring(prefix):
    offered = jedi_offers(prefix)
    texts = {name: offered[name].docstring() for name in OFFERED[prefix]}
    assert not without_text(prefix, texts)


# ---------------------------------------------------------------- Pyright


class LanguageServer:
    """Pyright's language server: JSON messages through its standard input and output."""

    def __init__(self, path, text):
        command = [sys.executable, "-m", "pyright.langserver", "--stdio"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.timer = threading.Timer(300, self.process.kill)  # no test may wait for ever
        self.timer.start()
        self.number, self.uri = 0, path.as_uri()
        root = {"uri": ROOT.as_uri(), "name": "tinyattn"}
        self.ask(
            "initialize",
            processId=None,
            rootUri=root["uri"],
            workspaceFolders=[root],
            capabilities={"workspace": {"configuration": True}},
        )
        self.tell("initialized")
        document = {"uri": self.uri, "languageId": "python", "version": 1, "text": text}
        self.tell("textDocument/didOpen", textDocument=document)

    def send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def receive(self):
        length = 0
        while line := self.process.stdout.readline().strip():
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return json.loads(self.process.stdout.read(length))

    def tell(self, method, **params):
        self.send({"method": method, "params": params})

    def ask(self, method, **params):
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        while True:
            message = self.receive()
            if message.get("id") == self.number and "method" not in message:
                assert "error" not in message, message
                return message["result"]
            if "id" in message:  # a question of the server: which settings are there?
                settings = [
                    {"pythonPath": sys.executable} for _ in message["params"].get("items", [])
                ]
                self.send({"id": message["id"], "result": settings or None})

    def complete(self, line, character):
        found = self.ask(
            "textDocument/completion",
            textDocument={"uri": self.uri},
            position={"line": line, "character": character},
        )
        return {item["label"]: item for item in found["items"]}

    def text(self, item):
        documentation = self.ask("completionItem/resolve", **item).get("documentation") or {}
        return documentation.get("value", "") if isinstance(documentation, dict) else documentation

    def close(self):
        self.timer.cancel()
        self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("editor") / "program.py"
    text = PROGRAM + "\n".join(OFFERED)
    path.write_text(text, encoding="utf-8")
    server = LanguageServer(path, text)
    yield server
    server.close()


def line_of(prefix):
    return PROGRAM.count("\n") + list(OFFERED).index(prefix), len(prefix)


@pytest.mark.parametrize("prefix", OFFERED)
def test_pyright_offers_every_name(prefix, server):
    assert not set(OFFERED[prefix]) - set(server.complete(*line_of(prefix)))


@pytest.mark.parametrize("prefix", WITH_TEXT)
def test_pyright_shows_arguments_and_docstring(prefix, server):
    offered = server.complete(*line_of(prefix))
    texts = {name: server.text(offered[name]) for name in OFFERED[prefix]}
    assert not without_text(prefix, texts)


def test_pyright_finds_no_mistake_in_a_correct_program(tmp_path):
    """Operators, methods, an operation of one's own: no red lines, and results are Tensors."""
    program = PROGRAM + (
        "@ta.primitive\ndef scale(x, c):\n    return x * c\n"
        "scale.defvjp(lambda g, y, x, c: g * c, None)\n"
        "t -= 1\nt /= t\nresults += [t, scale(t, 2.0), F.relu(t)]\nfor r in results:\n"
        "    reveal_type(r)\n    print(r.sum().item(), r.shape[0], r.data.dtype)\n"
    )
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pyright",
        "--pythonpath",
        sys.executable,
        "--outputjson",
        str(tmp_path / "program.py"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300)
    found = json.loads(done.stdout)["generalDiagnostics"]
    assert [d["message"] for d in found] == ['Type of "r" is "Tensor"']
