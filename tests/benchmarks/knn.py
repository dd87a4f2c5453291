"""The k nearest neighbours against scipy, scikit-learn and PyTorch.

    python -m tests.benchmarks.knn [rounds]

All programs use float32 and two threads. Every point is a query, and the time includes building the
tree or index. Before the timing, the results are compared in float64. faiss is included if it is
installed. scipy's tree is omitted if it would be slower than comparing all pairs. 100,000 points
are in knn_large.py.
"""

import sys

from tests.benchmarks.measure import by_processor, head, interleave, row, use_threads

use_threads(2)

import numpy as np  # noqa: E402
import scipy  # noqa: E402
import sklearn  # noqa: E402
import torch  # noqa: E402
from scipy.spatial import cKDTree  # noqa: E402
from sklearn.neighbors import NearestNeighbors  # noqa: E402

from tinyattn.graph import knn  # noqa: E402

try:
    import faiss

    faiss.omp_set_num_threads(2)
except ImportError:
    faiss = None
torch.set_num_threads(2)
COMPARED = [np, scipy, sklearn, torch] + ([faiss] if faiss is not None else [])

# dimensions: goal
GOALS = {
    2: by_processor(4, 4),
    3: by_processor(4, 4.5),
    4: by_processor(4, 4.5),
    8: by_processor(4, 4.5),
    16: by_processor(3, 3.5),
    64: by_processor(1.7, 2.2),
}
WORK = [(N, D, goal) for N in (1_000, 10_000) for D, goal in GOALS.items()]
LARGE = [(100_000, D, goal) for D, goal in GOALS.items()]
CLOUDS = {3: 4, 64: by_processor(4, 2.5)}


def with_faiss(x, k):
    index = faiss.IndexFlatL2(x.shape[1])
    index.add(x)
    return index.search(x, k)[1]


def with_torch(x, k):
    t = torch.from_numpy(x)
    return torch.cdist(t, t).topk(k, largest=False)[1].numpy()


def programs(x, k):
    """Return {name: function}, where each function returns the neighbours [N, k]."""
    N, D = x.shape
    found = {
        "tinyattn": lambda: knn(x, k)[0],
        "scikit-learn": lambda: (
            NearestNeighbors(n_neighbors=k, n_jobs=2).fit(x).kneighbors(x, return_distance=False)
        ),
    }
    if D <= 8 or (N <= 1_000 and D <= 16):
        found["scipy"] = lambda: cKDTree(x).query(x, k=k, workers=2)[1]
    if N <= 10_000:
        found["torch"] = lambda: with_torch(x, k)
    if faiss is not None and (N <= 10_000 or D >= 8):
        found["faiss"] = lambda: with_faiss(x, k)
    return found


def check(x, index, k):
    """Check that the distances of some points are the smallest in float64, up to rounding."""
    x = x.astype(np.float64)
    for i in range(0, len(x), max(1, len(x) // 50)):
        d2 = np.sum((x[i] - x) ** 2, axis=1)
        np.testing.assert_allclose(d2[index[i]], np.sort(d2)[:k], rtol=1e-5, atol=1e-10)


def clouds(D, k):
    """Return 1024 clouds of 30 to 128 points. For PyTorch, they are padded to 128 points and
    masked.
    """
    rng = np.random.default_rng(0)
    sizes = rng.integers(30, 129, 1024)
    batch = np.repeat(np.arange(1024), sizes)
    x = rng.standard_normal((len(batch), D)).astype(np.float32)
    mask = np.arange(128) < sizes[:, None]
    padded = np.zeros((1024, 128, D), np.float32)
    padded[mask] = x
    padded, hidden = torch.from_numpy(padded), torch.from_numpy(~mask)

    def pytorch():
        square = (padded * padded).sum(-1)
        products = torch.bmm(padded, padded.transpose(1, 2))
        d2 = square[:, :, None] + square[:, None] - 2 * products
        d2.masked_fill_(hidden[:, None], float("inf"))
        return d2.topk(k, largest=False)[1]

    start = np.cumsum(sizes) - sizes
    ours, theirs = knn(x, k, batch)[0], pytorch().numpy()[mask] + start[batch][:, None]
    assert np.mean(ours == theirs) > 0.999  # PyTorch's product form is not exact
    return {"tinyattn": lambda: knn(x, k, batch), "torch": pytorch}


def measured(N, D, k, goal, rounds, rounds_if_slow=None):
    """Return one line of the table."""
    x = np.random.default_rng(0).standard_normal((N, D)).astype(np.float32)
    every = programs(x, k)
    check(x, every["tinyattn"](), k)
    warm_up, at_least = int(N < 100_000), 0.01 if N == 1_000 else 0.0
    times = interleave(every, rounds, warm_up, at_least, rounds_if_slow)
    print(row(f"N = {N:,}, D = {D}, k = {k}", times, goal=goal), flush=True)


def main(rounds=None):
    print(head(*COMPARED))
    for N, D, goal in WORK:
        for k in (8, 16, 40):
            measured(N, D, k, goal, rounds or (9 if N == 1_000 else 5))
    for D, goal in CLOUDS.items():
        for k in (8, 16):
            times = interleave(clouds(D, k), rounds or 7, 1)
            print(
                row(
                    f"1024 clouds of 30 to 128 points, against PyTorch, D = {D}, k = {k}",
                    times,
                    goal=goal,
                ),
                flush=True,
            )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
