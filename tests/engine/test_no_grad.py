"""Where nothing is recorded: blocks, decorators, generators, threads."""

import threading

import numpy as np
import pytest

from tests.engine.leaves import leaf
from tinyattn import Tensor, no_grad


def recorded():
    return (leaf(2) * 2).requires_grad


def test_no_grad_is_restored():
    with no_grad():
        assert not recorded()
        with no_grad():
            assert not recorded()
        assert not recorded()
    assert recorded()
    with pytest.raises(KeyError):
        with no_grad():
            raise KeyError
    assert recorded()


def test_no_grad_as_decorator():
    @no_grad()
    def f():
        return recorded()

    assert not f()
    assert not f()
    assert recorded()


def test_no_grad_is_per_thread():
    inside, may_leave, seen = threading.Event(), threading.Event(), []

    def other():
        with no_grad():
            inside.set()
            may_leave.wait(10)
            seen.append(recorded())

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(10)
    assert recorded()
    with no_grad():
        pass
    may_leave.set()
    thread.join()
    assert seen == [False]
    assert recorded()


def test_no_grad_inside_a_generator_that_is_thrown_away():
    def batches():
        with no_grad():
            yield recorded()

    generator = batches()
    assert next(generator) is False
    generator.close()
    assert recorded()


def test_parameters_made_under_no_grad():
    with no_grad():
        w = leaf(3)
    assert w.requires_grad
    np.sum(w * w).backward()
    assert w.grad is not None


def test_backward_under_no_grad():
    w = leaf(3)
    loss = np.sum(w * w)
    with no_grad():
        loss.backward()
    np.testing.assert_allclose(w.grad, 2 * w.data)
    assert recorded()


def test_two_threads_at_once():
    def work(seed, results):
        x = Tensor(np.random.default_rng(seed).normal(size=20), requires_grad=True)
        for _ in range(200):
            y = np.sum(np.tanh(x) * x)
            with no_grad():
                np.exp(x)
        y.backward()
        results[seed] = np.array_equal(
            x.grad, np.tanh(x.data) + x.data * (1 - np.tanh(x.data) * np.tanh(x.data))
        ) or np.allclose(x.grad, np.tanh(x.data) + x.data * (1 - np.tanh(x.data) ** 2), rtol=1e-12)

    results = {}
    threads = [threading.Thread(target=work, args=(i, results)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == dict.fromkeys(range(4), True)
