"""The k nearest neighbours of 100,000 points, as in knn.py; takes up to an hour.

    python -m tests.benchmarks.knn_large [rounds]

PyTorch (cdist and topk) has no part: it would have to store 100,000² distances.
"""

import sys

from tests.benchmarks.knn import LARGE, head, measured


def main(rounds=None):
    head()
    for N, D, goal in LARGE:
        for k in (8, 16, 40) if D <= 8 else (16,):
            measured(N, D, k, goal, rounds or (5 if D < 5 else 2))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
