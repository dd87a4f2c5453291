"""A mistake shows the student's own lines and the message; the library's frames are left out."""

import os
import re
import subprocess
import sys
import traceback
from importlib.metadata import entry_points

import numpy as np
import pytest

import tinyattn as ta
import tinyattn.functional as F
from tests import ROOT
from tinyattn.engine import tracebacks

PROGRAM = """\
import numpy as np
from tinyattn import functional as F
from tinyattn import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)

    def forward(self, x):
        return F.relu(self.first(x))

net = Net()
net(np.ones((5, 4), np.float32))
"""
MESSAGE = "ValueError: linear: x has shape (5, 4), but the weight (4, 3)"


def run(command, **environment):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    environment.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=os.getcwd())
    return done.stdout + done.stderr


def test_plain_python_shows_own_lines_and_the_message(tmp_path):
    (tmp_path / "mine.py").write_text(PROGRAM)
    lines = run([sys.executable, str(tmp_path / "mine.py")]).splitlines()
    assert len(lines) <= 12
    assert any("net(np.ones" in line for line in lines)
    assert any("self.first(x)" in line for line in lines)
    assert not any(f"tinyattn{os.sep}nn" in line for line in lines)
    assert lines[-2].startswith(MESSAGE)
    assert "TINYATTN_TRACEBACKS=full" in lines[-1]
    full = run([sys.executable, str(tmp_path / "mine.py")], TINYATTN_TRACEBACKS="full")
    assert f"tinyattn{os.sep}nn" in full and "left out" not in full


@pytest.fixture(scope="module")
def notebook():
    """The texts of the errors of some cells, in a kernel of Jupyter."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    cells = {
        "layers": PROGRAM,
        "numpy": (
            "import tinyattn as ta\nx = ta.tensor([[1.0]], requires_grad=True)\nnp.sum(x, axis=7)"
        ),
        "cause": (
            "try:\n    x.view(2)\nexcept AttributeError as e:\n    raise ValueError('mine') from e"
        ),
        "own": "1 / 0",
        "debugger": (
            "import sys, traceback\nprint(len(traceback.extract_tb(sys.last_traceback)))\n"
            "print(get_ipython().InteractiveTB.tb is sys.last_traceback)"
        ),
        "verbose": "%xmode Verbose\nnp.sum(x, axis=7)",
    }
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells.values()])
    client = nbclient.NotebookClient(
        nb, kernel_name="python3", allow_errors=True, resources={"metadata": {"path": str(ROOT)}}
    )
    client.execute()
    outputs = [
        "\n".join("\n".join(o.get("traceback", [o.get("text", "")])) for o in cell.outputs)
        for cell in nb.cells
    ]
    return dict(zip(cells, [re.sub(r"\x1b\[[0-9;]*m", "", o) for o in outputs], strict=True))


def test_a_notebook_shows_own_lines_and_the_message(notebook):
    lines = [line for line in notebook["layers"].splitlines() if line.strip()]
    assert len(lines) <= 12
    assert sum(line.startswith("Cell In") for line in lines) == 2
    assert not any(line.startswith("File") for line in lines)
    assert "%xmode Verbose shows all" in lines[-2]
    assert lines[-1].startswith(MESSAGE)


def test_frames_of_numpy_below_the_library_go_with_it(notebook):
    lines = [line for line in notebook["numpy"].splitlines() if line.strip()]
    assert len(lines) <= 8
    assert "File" not in notebook["numpy"]
    assert lines[-1].startswith("AxisError")


def test_a_cause_is_shortened_too(notebook):
    assert "x.reshape(3, 2)" in notebook["cause"] and "ValueError: mine" in notebook["cause"]
    assert "File" not in notebook["cause"]


def test_an_error_without_the_library_is_left_alone(notebook):
    assert "left out" not in notebook["own"] and "ZeroDivisionError" in notebook["own"]


def test_the_debugger_has_all_frames(notebook):
    assert notebook["debugger"].split()[1] == "True"


def test_xmode_verbose_shows_all(notebook):
    assert "reduce.py" in notebook["verbose"] and "left out" not in notebook["verbose"]


def caught(f):
    try:
        f()
    except Exception as error:
        return error
    raise AssertionError("no error")


def test_what_is_kept():
    error = caught(lambda: ta.grad(lambda x: np.sum(x @ np.ones(4)))(np.ones(3)))
    short, hidden = tracebacks.shortened(error.__traceback__)
    names = [frame.name for frame in traceback.extract_tb(short)]
    assert names == ["caught", "<lambda>", "<lambda>"]
    assert hidden == len(traceback.extract_tb(error.__traceback__)) - 3 > 3
    assert tracebacks.shortened(None) == (None, 0)


def test_a_traceback_of_the_library_alone_stays():
    error = caught(lambda: ta.tensor([1.0]).view(2))
    inside = error.__traceback__.tb_next.tb_next  # what is below the lambda
    assert tracebacks.shortened(inside) == (inside, 0)


def shadowed():
    sum = 3
    return sum([1, 2])


def without_parentheses():
    with ta.no_grad:
        return 3


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda x: x.size(0), "x.shape[0] for x.size(0)"),
        (lambda x: [i for v, i in [x.max(1)]], "x.argmax(axis)"),
        (lambda x: shadowed(), "`sum` was given a new value"),
        (lambda x: undefined, "After a restart of the kernel"),  # noqa: F821
        (lambda x: np.sum(x, dim=1), "np.sum(x, axis=1)"),
        (lambda x: np.concatenate([x, x], dim=0), "axis= in NumPy"),
        (lambda x: np.mean(x, 0, keepdim=True), "keepdims= in NumPy"),
        (lambda x: F.mse_loss(x, x).item().backward(), "Call backward() on the loss itself"),
        (lambda x: x.numpy().unsqueeze(0), "np.expand_dims(x, 0)"),
        (lambda x: without_parentheses(), "with ta.no_grad():"),
        (lambda x: ta.no_grad(np.exp), "@ta.no_grad()"),
        (lambda x: ta.load("w.safetensors", x), "model.load_state_dict(ta.load(path))"),
        (
            lambda x: torch.save(x, "w.pt"),  # noqa: F821
            "Write ta.save(path, model.state_dict()), with the path first",
        ),
        (lambda x: torch.nn.Linear(3, 4), "Write nn instead of torch.nn"),  # noqa: F821
        (lambda x: torch.sigmoid(x), "use F.sigmoid"),  # noqa: F821
        (lambda x: torch.cat([x, x]), "np.concatenate([x, y])"),  # noqa: F821
        (lambda x: torch.quux(x), "NumPy's functions"),  # noqa: F821
        (lambda x: sorted([1, 2], dim=1), None),
        (lambda x: x.numpy().quux, None),
        (lambda x: x.shape(0), None),
        (lambda x: x @ x, None),
    ],
)
def test_errors_of_python_get_a_hint(wrong, words):
    error = caught(lambda: wrong(ta.tensor(np.ones((3, 2)))))
    for _ in range(2):  # the second time, nothing is added
        tracebacks.add_hint(error, error.__traceback__, notebook=True)
    notes = getattr(error, "__notes__", [])
    assert len(notes) == (words is not None) and (words or "") in "".join(notes)


def test_a_descending_sort_is_explained_in_every_version_of_numpy():
    """NumPy 2.5 knows descending=, so the error comes from NumPy itself or from the Tensors."""
    error = caught(lambda: np.sort(ta.tensor([1.0, 3.0]), descending=True))
    tracebacks.add_hint(error, error.__traceback__, notebook=True)
    assert "-np.sort(-x)" in "".join([str(error), *getattr(error, "__notes__", [])])


def test_pytest_shows_the_line_of_the_test(tmp_path):
    (tmp_path / "test_mine.py").write_text(
        "import numpy as np\nfrom tinyattn import nn\n\n"
        "def test_mine():\n    nn.Linear(3, 4)(np.ones((5, 4), np.float32))\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    if not [e for e in entry_points(group="pytest11") if e.value == "coursekit.pytest_plugin"]:
        command += ["-p", "coursekit.pytest_plugin"]  # an installation that is older than it
    shown = run(command)
    assert ">       nn.Linear(3, 4)" in shown and MESSAGE.split(": ", 1)[1] in shown
    assert "module.py" not in shown
    full = run([*command, "--full-trace"])
    assert "module.py" in full
