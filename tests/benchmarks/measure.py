"""Timing of several programs that do the same work, interleaved in one run.

A round runs every program once, so that a machine that slows down slows all of them. The figure
is the ratio of two times of the same round; its median and its quartiles over the rounds are
printed. Absolute times are not: they belong to one machine on one day.
"""

import os
import platform
import statistics
import time

THREADS = "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"


def use_threads(n):
    """Give every library n threads; call before NumPy or PyTorch is imported."""
    for name in THREADS:
        os.environ[name] = str(n)


def interleave(programs, rounds=60, warm_up=3):
    """Run {name: function} in turn; {name: [seconds of each round]}."""
    times = {name: [] for name in programs}
    for i in range(rounds + warm_up):
        for name, run in programs.items():
            start = time.perf_counter()
            run()
            if i >= warm_up:
                times[name].append(time.perf_counter() - start)
    return times


def ratios(times, ours):
    """{peer: (lower quartile, median, upper quartile)} of time of the peer / time of ours."""
    found = {}
    for name, seconds in times.items():
        if name != ours:
            found[name] = statistics.quantiles(
                [s / t for s, t in zip(seconds, times[ours], strict=True)], n=4
            )
    return found


def table(rows, peers):
    """A Markdown table of {work: ratios}: how many times as fast as each peer."""
    lines = [
        "| work | " + " | ".join(f"faster than {p}" for p in peers) + " |",
        "|---" * (len(peers) + 1) + "|",
    ]
    for work, found in rows.items():
        cells = [
            f"{found[p][1]:.2f} ({found[p][0]:.2f}-{found[p][2]:.2f})" if p in found else "-"
            for p in peers
        ]
        lines.append(f"| {work} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def versions(*modules):
    """One line with what was compared."""
    parts = [f"Python {platform.python_version()}", platform.machine()]
    return ", ".join(parts + [f"{m.__name__} {m.__version__}" for m in modules])
