"""The k nearest neighbours of 100,000 points against scipy and scikit-learn.

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
        f"\nMedians and quartiles are over {rounds} rounds. A peer that takes more than 5 times as "
        "long as the fastest program, and more than 1.5 times as long as the best peer, runs only "
        f"in the first {SLOW} rounds. Where no peer is named, it is scikit-learn."
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
