"""Timing of several programs that do the same work, interleaved in one run.

A round runs every program once, so that a slower machine affects all programs. Each round begins
with a different program. The result is the ratio of two times in the same round, and its median and
quartiles over the rounds are printed. Absolute times belong to one machine on one day. They are
printed next to the ratio only to distinguish microseconds from seconds. Freed memory stays with the
process (`ta.keep_memory`) for all programs of a run.

Each script prints a Markdown table. `python -m tests.benchmarks` runs all scripts, each in a
separate process, and stores their output in RESULTS.md.
"""

import os
import platform
import statistics
import time

THREADS = "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"


def use_threads(n):
    """Give every library n threads. Call this function before NumPy or PyTorch is imported."""
    for name in (*THREADS, "TINYATTN_THREADS"):
        os.environ[name] = str(n)
    os.environ["TINYATTN_COMPILE"] = "now"  # otherwise NumPy runs until the kernels are compiled


def interleave(programs, rounds=60, warm_up=3, at_least=0.0, rounds_if_slow=None, rest=0.05):
    """Run {name: function} in turn, and return {name: [seconds of each round]}.

    In each round, a program is repeated for at least `at_least` seconds. Before that, it rests for
    `rest` seconds and runs once without being timed. Otherwise, threads of the previous program
    might still be spinning (those of OpenBLAS for a tenth of a second) and would slow down this
    program. A slow peer runs only in the warm-up and in the first `rounds_if_slow` rounds, so its
    list is shorter. `slow_peers` decides from the shortest times so far which peers are slow.
    """
    import tinyattn as ta  # not before `use_threads`

    ta.keep_memory()
    times, repeats = {name: [] for name in programs}, dict.fromkeys(programs, 1)
    slow, patience = set(), 15.0  # seconds in all
    for i in range(rounds + warm_up):
        patience -= wait_until_alone(patience)
        if i - warm_up == rounds_if_slow:
            slow = slow_peers({name: min(seconds) for name, seconds in times.items()})
        in_turn = list(programs.items())
        first = i % len(in_turn)  # the first program finds processors that have rested
        for name, run in in_turn[first:] + in_turn[:first]:
            if name in slow:
                continue
            if at_least:
                time.sleep(rest)
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


def slow_peers(seconds, ours="tinyattn"):
    """Return the peers slower than 5 times the fastest time and 1.5 times the best peer's time.

    We and the best peer are never slow.
    """
    peers = {name: t for name, t in seconds.items() if name != ours}
    limit = max(5 * min(seconds.values()), 1.5 * min(peers.values()))
    return {name for name, t in peers.items() if t > limit}


def wait_until_alone(patience):
    """Wait until no other program uses a processor (Linux only), and return the seconds waited."""
    start = time.perf_counter()
    while time.perf_counter() - start < patience:
        try:
            with open("/proc/loadavg", encoding="ascii") as file:
                running = int(file.read().split()[3].partition("/")[0])
        except (OSError, ValueError, IndexError):
            break
        if running <= 1:  # this process
            break
        time.sleep(0.02)
    return time.perf_counter() - start


def ratios(times, ours):
    """Return {peer: (lower quartile, median, upper quartile)} of the peer's time / our time.

    Both times are from the same round. A slow peer may have run only in the first rounds.
    """
    found = {}
    for name, seconds in times.items():
        if name != ours:
            both = zip(seconds, times[ours], strict=False)
            found[name] = statistics.quantiles([s / t for s, t in both], n=4)
    return found


def table(rows, peers):
    """Return a Markdown table of {work: ratios}, our speed relative to that of each peer."""
    lines = [
        "| work | " + " | ".join(f"speed relative to {p}" for p in peers) + " |",
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
    "| work | ours, ms | best peer, ms | peer / ours (quartiles) | goal "
    "| ours, GFLOP/s | ours / peak |\n"
    "|---|---|---|---|---|---|---|"
)


def row(work, times, ours="tinyattn", goal=None, flop=None, peak=None, peer=None):
    """Return a line of the table for `peer`, or for the peer with the lowest median.

    `flop` is the number of multiplications and additions, and `peak` the rate of a matrix product.
    The median is taken over the rounds in which the peer ran.
    """
    medians = {name: statistics.median(seconds) for name, seconds in times.items()}
    best = peer or min((name for name in times if name != ours), key=medians.get)
    low, middle, high = ratios(times, ours)[best]
    missed = "" if goal is None else f"{goal}" if middle >= goal else f"{goal} (missed)"
    rate = "" if flop is None else f"{flop / medians[ours] / 1e9:.0f}"
    share = "" if flop is None or not peak else f"{flop / medians[ours] / peak:.0%}"
    named = f" {best}" if peer or len(times) > 2 else ""
    return (
        f"| {work} | {medians[ours] * 1e3:.3f} | {medians[best] * 1e3:.3f}{named} | "
        f"**{middle:.2f}** ({low:.2f}-{high:.2f}) | {missed} | {rate} | {share} |"
    )


def product_peak(threads, n=1024):
    """FLOP/s of NumPy's product of two float32 matrices on this many threads."""
    import numpy as np

    a = np.random.default_rng(0).standard_normal((n, n)).astype(np.float32)
    best = min(interleave({"product": lambda: a @ a}, 40)["product"])
    return 2 * n**3 / best


def versions(*modules):
    """Return one line with the versions of the compared libraries."""
    parts = [f"Python {platform.python_version()}", platform.machine()]
    return ", ".join(parts + [f"{m.__name__} {m.__version__}" for m in modules])


def by_processor(avx512, avx2):
    """The value for the processor that Numba compiles for, such as a goal (None: no goal)."""
    from tinyattn.kernels.machine.llvm import VECTOR_BYTES  # not before `use_threads`

    return avx512 if VECTOR_BYTES == 64 else avx2


def head(*modules):
    """Return the text before the first row of a table that has no `foot`."""
    return f"All programs use float32 and two threads. {versions(*modules)}\n\n{HEADER}"


def foot(rounds, *modules, work="All programs use float32", peak=None, note=""):
    """Return the text after the last row, with the versions. `work` begins its first sentence."""
    sentences = [f"{work}, with 2 threads each. Medians and quartiles are over {rounds} rounds."]
    if peak:
        of = "NumPy's product of two 1024 x 1024 matrices"
        sentences.append(f"The peak is the speed of {of}, {peak / 1e9:.0f} GFLOP/s.")
    if note:
        sentences.append(note)
    return "\n" + " ".join([*sentences, versions(*modules)])
