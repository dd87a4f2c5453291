"""How time and memory grow with N: attention and nearest neighbours, drawn on log axes.

    python -m tests.benchmarks.growth          all points, and a figure of them

Each point is measured in a separate process, because the peak of memory belongs to a process. The
memory is this peak minus the memory after a run of a small problem. Attention is one forward and
backward pass of 8 causal heads with 64 features. The neighbours are the 16 nearest among points in
3 dimensions.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.benchmarks.measure import by_processor, use_threads

HERE = Path(__file__).parent
SIZES = {
    ("attention", "kernel"): [128, 256, 512, 1024, 2048, 4096, 8192],
    ("attention", "numpy"): [128, 256, 512, 1024, 2048],
    ("attention", "PyTorch"): [128, 256, 512, 1024, 2048, 4096, 8192],
    ("neighbours", "kernel"): [1000, 3000, 10_000, 30_000, 100_000],
    ("neighbours", "numpy"): [1000, 3000, 10_000],
    ("neighbours", "scipy cKDTree"): [1000, 3000, 10_000, 30_000, 100_000],
}
SMALL = {"attention": 64, "neighbours": 100}


def attention(who, N):
    """Return a function that does the work once."""
    import numpy as np

    q, k, v, g = np.random.default_rng(0).standard_normal((4, 1, 8, N, 64), np.float32)
    if who == "PyTorch":
        import torch

        torch.set_num_threads(2)
        q, k, v = (torch.tensor(x, requires_grad=True) for x in (q, k, v))
        g, f = torch.tensor(g), torch.nn.functional.scaled_dot_product_attention
        return lambda: torch.autograd.grad(f(q, k, v, is_causal=True), (q, k, v), g)

    import tinyattn as ta
    import tinyattn.functional as F

    q, k, v = (ta.tensor(x, requires_grad=True) for x in (q, k, v))

    def run():
        q.grad = k.grad = v.grad = None
        F.scaled_dot_product_attention(q, k, v, causal=True, impl=who).backward(g)

    return run


def neighbours(who, N):
    """Return a function that does the work once."""
    import numpy as np

    x = np.random.default_rng(0).standard_normal((N, 3), np.float32)
    if who == "scipy cKDTree":
        from scipy.spatial import cKDTree

        return lambda: cKDTree(x).query(x, 16, workers=2)

    from tinyattn import graph

    return lambda: graph.knn(x, 16, impl=who)


def point(work, who, N):
    """Return the seconds and megabytes of one problem, measured in this process."""
    import resource
    import time

    unit = (
        1e6 if sys.platform == "darwin" else 1e3
    )  # ru_maxrss is in bytes on macOS, in kilobytes on Linux
    make = {"attention": attention, "neighbours": neighbours}[work]
    make(who, SMALL[work])()
    run, before = make(who, N), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run()
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / unit
    seconds, spent = [], 0.0
    while len(seconds) < 3 or (spent < 0.5 and len(seconds) < 50):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
        spent += seconds[-1]
    return sorted(seconds)[len(seconds) // 2], peak


def draw(found, path):
    """Draw two rows of panels, time and memory, for both kinds of work."""
    from tinyattn import plot

    plot.use_style()
    picture = plot.figure(2, 2, size=(12, 8))
    for column, work in enumerate(("attention", "neighbours")):
        for row, (name, unit) in enumerate((("time", "s"), ("peak memory", "MB"))):
            ax = picture.axes[2 * row + column]
            for i, who in enumerate(w for k, w in found if k == work):
                N, values = zip(*((n, p[row]) for n, p in found[work, who].items()), strict=True)
                values = [max(v, 0.1) if row else v for v in values]  # less cannot be measured
                ax.loglog(N, values, "osD"[i] + "-", color=plot.COLORS[i], label=who)
            ax.set(title=f"{work}: {name}", xlabel="$N$", ylabel=f"{name}, {unit}")
            ax.legend()
    picture.figure.savefig(path, dpi=100)


def slope(points, i):
    """Return the power of N between the last two sizes."""
    import math

    (n, a), (m, b) = list(points.items())[-2:]
    return math.log(max(b[i], 0.1 if i else 0) / max(a[i], 0.1 if i else 0)) / math.log(m / n)


def main():
    found = {}
    for (work, who), sizes in SIZES.items():
        for N in sizes:
            command = [sys.executable, "-m", "tests.benchmarks.growth", work, who, str(N)]
            out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            found.setdefault((work, who), {})[N] = json.loads(out)
            print(work, who, N, out.strip(), file=sys.stderr)
    print(
        "| work | implementation | largest N | peak memory at this N, MB | time: power of N "
        "| memory: power of N |"
    )
    print("|---|---|---|---|---|---|")
    for (work, who), points in found.items():
        N, (_, peak) = list(points.items())[-1]
        print(
            f"| {work} | {who} | {N} | {peak:.0f} | {slope(points, 0):.1f} | "
            f"{slope(points, 1):.1f} |"
        )
    name = by_processor("growth-avx512.png", "growth-avx2.png")
    draw(found, HERE / name)
    print(
        "\nAttention is one forward and backward pass of 8 causal heads with 64 features, and the "
        "neighbours are the 16 nearest among N points in 3 dimensions. The powers are those "
        "between the two largest N."
    )
    print(f"\n![time and memory against N]({name})")


if __name__ == "__main__":
    use_threads(2)
    if len(sys.argv) == 4:
        print(json.dumps(point(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
    else:
        os.environ.setdefault("PYTHONWARNINGS", "ignore")
        main()
