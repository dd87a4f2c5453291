"""The k nearest neighbours of 100,000 points against the same peers.

    python -m tests.benchmarks.knn_large [rounds]

PyTorch (cdist and topk) has no part: it would have to store 100,000² distances. Slow peers run in
the first two rounds only, ours and the best peer in all.
"""

import sys

from tests.benchmarks.knn import COMPARED, LARGE, measured
from tests.benchmarks.measure import head

SLOW = 2


def main(rounds=5):
    print(head(*COMPARED))
    for N, D, goal in LARGE:
        for k in (8, 16, 40) if D <= 8 else (16,):
            measured(N, D, k, goal, rounds, SLOW)
    print(
        f"\nMedian and quartiles of {rounds} rounds. A peer that takes more than 5 times as long "
        f"as the fastest and 1.5 times as long as the best peer runs in the first {SLOW} rounds "
        "only; each ratio is of times of the same round."
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
