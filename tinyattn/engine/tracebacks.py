"""Tracebacks that show only the user's lines, without the frames of the library.

An error that a student's line causes is often raised many calls deep in the library, and each call
would fill five lines of a notebook. The message explains what is wrong, and the student's own line
shows where. So every printed traceback omits the frames of this library, together with the frames
of NumPy and other libraries between them.

All frames are shown with TINYATTN_TRACEBACKS=full in the environment, in a notebook also after
`%xmode Verbose`. The debugger (`%debug`, `pdb.pm()`) always has all of them. For pytest see
`coursekit/pytest_plugin.py`.
"""

import builtins
import linecache
import os
import re
import sys
import warnings
from pathlib import Path
from types import TracebackType

from tinyattn.engine import torch_hints

LIBRARY = str(Path(__file__).resolve().parents[1]) + os.sep  # the folder tinyattn/
PYTHON = tuple(
    str(Path(folder)) + os.sep
    for folder in {Path(os.__file__).parent, Path(os.__file__).resolve().parent}
)  # the standard library, and site-packages below it
SHOW_ALL = "TINYATTN_TRACEBACKS"
# errors that Python itself raises, and that newcomers from PyTorch see: message, line, hint
OF_PYTHON = (
    (
        "object is not callable",
        r"\.size\(",
        "x.size is the number of elements here. Write x.shape for PyTorch's x.size(), and "
        "x.shape[0] for x.size(0)",
    ),
    (
        "values to unpack",
        r"\.(max|min|sort|topk|median)\(",
        "x.max(axis) and x.sort(axis) return the values only. Write x.argmax(axis) or "
        "x.argsort(axis) for their indices",
    ),
    (
        "unexpected keyword argument 'dim'",
        r"\bnp\.",
        "PyTorch's dim= is axis= in NumPy, as in np.sum(x, axis=1)",
    ),
    (
        "unexpected keyword argument 'keepdim'",
        r"\bnp\.",
        "PyTorch's keepdim= is keepdims= in NumPy",
    ),
    (
        "unexpected keyword argument 'descending'",
        r"\bnp\.",
        "This NumPy sorts in ascending order only. Write -np.sort(-x), or np.argsort(-x) for "
        "the indices",
    ),
    (
        "'float' object has no attribute 'backward'",
        r"\.backward\(",
        "A number from .item() or float() has no graph. Call backward() on the loss itself, and "
        ".item() only to print it",
    ),
    (
        "does not support the context manager protocol",
        r"\bno_grad\b",
        "Write `with ta.no_grad():`, with ()",
    ),
    (
        "no_grad() takes 0 positional arguments",
        "",
        "Write @ta.no_grad() above a function, with (), or `with ta.no_grad():` around lines",
    ),
    (
        "load() takes 1 positional argument",
        r"\b(ta|tinyattn|io)\.load\(",
        "load(path) returns the arrays of a file. To read weights into a model, write "
        "model.load_state_dict(ta.load(path)). To continue a training, write "
        "tinyattn.io.load_checkpoint(path, model, optimizer)",
    ),
)


def shortened(tb):
    """Return (traceback without the frames of the library, number of omitted frames).

    Successive frames of libraries are omitted if one of them belongs to tinyattn. If no other frame
    would remain, nothing is omitted.
    """
    frames = []
    while tb is not None:
        frames.append(tb)
        tb = tb.tb_next
    kept, run = [], []
    for frame in (*frames, None):
        place = frame and _place(frame.tb_frame.f_code.co_filename)
        if place in ("library", "python"):
            run.append((frame, place))
            continue
        if all(place == "python" for _, place in run):
            kept += [passed for passed, _ in run]
        run = []
        if frame is not None:
            kept.append(frame)
    if not any(_place(t.tb_frame.f_code.co_filename) == "own" for t in kept):
        return frames[0] if frames else None, 0
    short = None
    for frame in reversed(kept):
        short = TracebackType(short, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return short, len(frames) - len(kept)


def _place(filename):
    """Return the owner of a file: "library" (tinyattn), "python" (any other library) or "own"."""
    if filename.startswith(LIBRARY):
        return "library"
    if filename.startswith(PYTHON) or filename.startswith("<frozen") or "site-packages" in filename:
        return "python"
    return "own"


def install():
    """Omit the frames of the library from tracebacks in this process, in IPython or plain Python.

    A hook that a different program has already set is not changed.
    """
    if os.environ.get(SHOW_ALL) == "full":
        return
    # use IPython only if it is loaded, because importing it would slow down plain Python
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if hasattr(ipython, "get_ipython") else None
    if shell is not None:
        _install_in(getattr(shell, "InteractiveTB", None))
    elif sys.excepthook is sys.__excepthook__:
        sys.excepthook = print_shortened


def warn_caller(text):
    """Warn with the message `text`, and report the user's line that called the library."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(LIBRARY):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, stacklevel=level)


def add_hint(error, tb, notebook=False):
    """Add a note to an error of Python itself whose message does not say what to do.

    The note depends on the message and on the last line of the user's code in the traceback tb. If
    `notebook` is True, it may refer to cells.
    """
    if getattr(error, "__notes__", None):
        return
    line = ""
    while tb is not None:
        code = tb.tb_frame.f_code
        if _place(code.co_filename) == "own":
            line = linecache.getline(code.co_filename, tb.tb_lineno)
        tb = tb.tb_next
    hint = _hint(error, str(error), line, notebook)
    if hint:
        error.add_note(hint)


def _hint(error, message, line, notebook):
    for said, written, hint in OF_PYTHON:
        if said in message and re.search(written, line):
            return hint
    if found := re.search(r"'numpy\.ndarray' object has no attribute '(\w+)'", message):
        return str(torch_hints.METHODS.get(found[1], ""))
    if "name 'torch' is not defined" in message:
        return _of_pytorch(line)
    if isinstance(error, NameError) and notebook:
        return (
            "If another cell defines this name, run that cell first. After a restart of the "
            "kernel, run all cells above (menu Run)"
        )
    if isinstance(error, TypeError) and "object is not callable" in message:
        called = [n for n in re.findall(r"(?<![\w.])(\w+)\(", line) if hasattr(builtins, n)]
        if called:
            return (
                f"Perhaps `{called[0]}` was given a new value, as in `{called[0]} = 0`. Choose "
                f"another name there, and write `del {called[0]}` to have the function back"
            )
    return ""


def _of_pytorch(line):
    """Return what to write instead of PyTorch's function in the user's line."""
    found = re.search(r"\btorch\.(\w+)", line)
    name = found[1] if found else ""
    ours = sys.modules["tinyattn"]
    if name == "save":
        return "Write ta.save(path, model.state_dict()), with the path first"
    if name in ours.__all__:
        return f"Write ta.{name} after `import tinyattn as ta`"
    if name in ("nn", "optim"):
        return f"Write {name} instead of torch.{name}, after `from tinyattn import {name}`"
    instead = torch_hints.missing_name(name) if name else ""
    return instead.removeprefix(": ") or "Write NumPy's functions, such as np.exp(x)"


def print_shortened(kind, error, tb):
    """Print an error without the frames of the library, as `sys.excepthook` in plain Python."""
    add_hint(error, tb)
    chain = _shorten_all(error)
    hidden = sum(n for _, _, n in chain)
    try:
        sys.__excepthook__(kind, error, error.__traceback__)
    finally:
        _restore(chain)
    if hidden:
        print(_told(hidden, f"{SHOW_ALL}=full"), file=sys.stderr)


def _install_in(formatter):
    """Let the object that formats IPython's tracebacks omit the frames of the library."""
    original = getattr(formatter, "structured_traceback", None)
    if original is None or getattr(original, "shortens", False):
        return

    def structured_traceback(kind=None, error=None, tb=None, *args, **options):
        full = isinstance(error, BaseException) and getattr(formatter, "mode", "") == "Verbose"
        if full or not isinstance(error, BaseException) or not isinstance(tb, TracebackType):
            return original(kind, error, tb, *args, **options)
        add_hint(error, tb, notebook=True)
        chain = _shorten_all(error)
        short, hidden = shortened(tb)
        hidden += sum(n for e, _, n in chain if e is not error)
        try:
            if hidden and not args:
                options.setdefault("context", 3)  # lines of each frame
            lines = original(kind, error, short, *args, **options)
        finally:
            _restore(chain)
            formatter.tb = tb  # for %debug
        if hidden and len(lines) > 1:  # insert the remark above the message, which stays at the end
            messages = [i for i, line in enumerate(lines) if kind.__name__ in line]
            lines.insert(messages[-1] if messages else len(lines), _told(hidden, "%xmode Verbose"))
        return lines

    structured_traceback.shortens = True
    formatter.structured_traceback = structured_traceback


def _told(hidden, way):
    frames = "1 line of tinyattn is" if hidden == 1 else f"{hidden} lines of tinyattn are"
    return f"({frames} left out here: {way} shows all)"


def _shorten_all(error):
    """Shorten the tracebacks of an error and of its causes.

    Return a list of (error, its full traceback, number of omitted frames).
    """
    chain, seen = [], set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        short, hidden = shortened(error.__traceback__)
        chain.append((error, error.__traceback__, hidden))
        error.__traceback__ = short
        cause = error.__cause__
        if cause is None and not error.__suppress_context__:
            cause = error.__context__
        error = cause
    return chain


def _restore(chain):
    for error, tb, _ in chain:
        error.__traceback__ = tb
