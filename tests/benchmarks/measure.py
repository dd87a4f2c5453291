"""Timing of several programs that do the same work, interleaved in one run.

A round runs every program once, so that a machine that slows down slows all of them. The figure
is the ratio of two times of the same round; its median and its quartiles over the rounds are
printed. Absolute times belong to one machine on one day: they stand beside the ratio only to tell
microseconds from seconds.

A script prints a Markdown table; `python -m tests.benchmarks` runs all scripts, each in a process
of its own, and keeps what they print in RESULTS.md.
"""

import os
import platform
import statistics
import time

THREADS = "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"


def use_threads(n):
    """Give every library n threads; call before NumPy or PyTorch is imported."""
    for name in (*THREADS, "TINYATTN_THREADS"):
        os.environ[name] = str(n)


def interleave(programs, rounds=60, warm_up=3, at_least=0.0):
    """Run {name: function} in turn; {name: [seconds of each round]}.

    at_least: repeat a program within a round until so many seconds are filled, and run it once
    before without looking at the clock: the threads of the program before may still be spinning.
    """
    times, repeats = {name: [] for name in programs}, dict.fromkeys(programs, 1)
    patience = 15.0  # seconds in all
    for i in range(rounds + warm_up):
        patience -= wait_until_alone(patience)
        for name, run in programs.items():
            if at_least:
                run()
            start = time.perf_counter()
            for _ in range(repeats[name]):
                run()
            seconds = (time.perf_counter() - start) / repeats[name]
            if i >= warm_up:
                times[name].append(seconds)
            elif at_least:
                repeats[name] = max(1, round(at_least / max(seconds, 1e-7)))
    return times


def wait_until_alone(patience):
    """Wait until no other program wants a processor (Linux only); the seconds that it took."""
    start = time.perf_counter()
    while time.perf_counter() - start < patience:
        try:
            with open("/proc/loadavg", encoding="ascii") as file:
                running = int(file.read().split()[3].partition("/")[0])
        except (OSError, ValueError, IndexError):
            break
        if running <= 1:  # that is us
            break
        time.sleep(0.02)
    return time.perf_counter() - start


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


HEADER = (
    "| work | ours, ms | best peer, ms | peer / ours (quartiles) | goal | GFLOP/s | of the peak |\n"
    "|---|---|---|---|---|---|---|"
)


def row(work, times, ours="tinyattn", goal=None, flop=None, peak=None):
    """One line under HEADER: the peer with the lowest median counts.

    flop: multiplications and additions of the work; peak: what a matrix product reaches.
    """
    medians = {name: statistics.median(seconds) for name, seconds in times.items()}
    best = min((name for name in times if name != ours), key=medians.get)
    low, middle, high = ratios(times, ours)[best]
    missed = "" if goal is None else f"{goal}" if middle >= goal else f"{goal} (missed)"
    rate = "" if flop is None else f"{flop / medians[ours] / 1e9:.0f}"
    share = "" if flop is None or not peak else f"{flop / medians[ours] / peak:.0%}"
    peer = "" if len(times) == 2 else f" {best}"
    return (
        f"| {work} | {medians[ours] * 1e3:.3f} | {medians[best] * 1e3:.3f}{peer} | "
        f"**{middle:.2f}** ({low:.2f}-{high:.2f}) | {missed} | {rate} | {share} |"
    )


def product_peak(threads, n=1024):
    """FLOP/s of NumPy's product of two float32 matrices on so many threads: the machine's peak."""
    import numpy as np

    a = np.random.default_rng(0).standard_normal((n, n)).astype(np.float32)
    best = min(interleave({"product": lambda: a @ a}, 9)["product"])
    return 2 * n**3 / best


def versions(*modules):
    """One line with what was compared."""
    parts = [f"Python {platform.python_version()}", platform.machine()]
    return ", ".join(parts + [f"{m.__name__} {m.__version__}" for m in modules])
