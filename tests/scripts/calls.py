"""Count the Python calls of one forward pass inside tinyattn: `python -m tests.scripts.calls`.

A call is a call of a Python function with its file in tinyattn/. A move is a call after a call in a
different file. You have to follow both in a debugger. The forward pass uses array algebra, so
kernels are not counted.
"""

import sys
from pathlib import Path

import numpy as np

import tinyattn as ta
from tinyattn import graph, nn
from tinyattn.ops.backends import array_algebra

PACKAGE = str(Path(ta.__file__).parent)


def calls_of(run):
    """Return (file, function) of every call inside tinyattn while run() runs, in order."""
    seen = []

    def profile(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            seen.append((frame.f_code.co_filename, frame.f_code.co_qualname))

    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
    return seen


def counts(seen):
    """Return how many calls, functions, files and moves between files there are."""
    files = [file for file, _ in seen]
    moves = sum(a != b for a, b in zip(files, files[1:], strict=False))
    return {
        "calls": len(seen),
        "functions": len(set(seen)),
        "files": len(set(files)),
        "moves": moves,
    }


def forwards():
    """Return {name: function that runs one forward pass}."""
    rng = np.random.default_rng(0)
    attention, gravnet = (
        nn.MultiheadAttention(16, 4, rng=0),
        graph.GravNetConv(5, 6, 3, 4, 3, rng=0),
    )
    lstm = nn.LSTM(4, 8, batch_first=True, rng=0)
    tokens = ta.tensor(rng.normal(size=(2, 6, 16)).astype(np.float32))
    points = ta.tensor(rng.normal(size=(12, 5)).astype(np.float32))
    step = ta.tensor(rng.normal(size=(2, 1, 4)).astype(np.float32))
    return {
        "MultiheadAttention": lambda: attention(tokens, tokens, tokens, need_weights=False),
        "GravNetConv": lambda: gravnet(points),
        "LSTM, one step": lambda: lstm(step),
    }


def main():
    with array_algebra():
        for name, run in forwards().items():
            run()  # what is imported at first use is imported here
            seen = calls_of(run)
            print(f"{name:20}", ", ".join(f"{n} {what}" for what, n in counts(seen).items()))
            if "-v" in sys.argv:
                for file, function in seen:
                    print("   ", Path(file).relative_to(PACKAGE), function)


if __name__ == "__main__":
    main()
