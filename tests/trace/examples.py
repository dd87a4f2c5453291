"""Small computations to trace: each returns a Trace."""

import numpy as np

import tinyattn as ta
import tinyattn.functional as F
from tinyattn import models, nn


def perceptron():
    """2-3-1 with its loss, two examples."""
    ta.seed(0)
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    x = np.array([[1.0, -0.5], [0.2, 0.8]], np.float32)
    target = np.array([[1.0], [0.0]], np.float32)
    with ta.trace(title="A network with three hidden numbers") as t:
        y = model(x)
        loss = np.mean((y - target) ** 2)  # noqa: F841 - the trace finds it by its name
    return t


def attention():
    """Two words, d = 3: what each takes from the other."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2, 4)).astype(np.float32)
    target = rng.normal(size=(2, 3)).astype(np.float32)
    WQ, WK, WV = (
        ta.tensor(rng.normal(size=(4, 3)), np.float32, requires_grad=True) for _ in range(3)
    )

    def self_attention(WQ, WK, WV):
        q, k, v = X @ WQ, X @ WK, X @ WV
        weights = F.softmax(q @ k.T / np.float32(3**0.5))
        y = weights @ v
        return np.mean((y - target) ** 2)

    return ta.trace(self_attention, WQ, WK, WV, labels=["Thinking", "Machines"])


def recurrent():
    """Six steps of a recurrent cell; its weights are used at each."""
    ta.seed(0)
    cell, head = nn.RNNCell(2, 3), nn.Linear(3, 1)
    x = np.random.default_rng(2).normal(size=(6, 1, 2)).astype(np.float32)
    with ta.trace() as t:
        h = np.zeros((1, 3), np.float32)
        for step in x:
            h = cell(step, h)
        loss = (head(h) ** 2).sum()  # noqa: F841
    return t


def selection():
    """relu, a maximum, rows that are picked, a slice and a reshape."""
    table = ta.tensor(np.array([[1, -2], [0, 3], [2, 2], [-1, 1]]), np.float32, requires_grad=True)
    ids = np.array([2, 0, 2])
    with ta.trace() as t:
        rows = table[ids]
        bent = F.relu(rows)
        best = np.max(bent.reshape(2, 3), axis=1)
        loss = best[0] * best[1] + rows[1:].sum()  # noqa: F841
    return t


def language_model(tokens=16, width=32):
    """A GPT of two layers, after the loss."""
    ta.seed(0)
    model = models.GPT(20, width, 4, 2, tokens)
    ids = np.random.default_rng(0).integers(0, 20, size=(1, tokens + 1))
    with ta.trace(title="A GPT with two layers") as t:
        logits = model(ids[:, :-1])
        loss = F.cross_entropy(np.reshape(logits, (tokens, 20)), ids[0, 1:])  # noqa: F841
    return t


SMALL = [perceptron, attention, recurrent, selection]
