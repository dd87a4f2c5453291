"""Adam by its kernel as by array algebra, whatever happened to the optimizer between two steps."""

import copy
import pickle

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import nn, optim
from tinyattn.kernels import numba

SHAPES = [(3, 5), (70, 80), (), (150, 130), (0, 4), (1, 7, 2)]


def trained_between(change, compiled, monkeypatch, dtype=np.float64):
    """Parameters after three steps of AdamW, `change` and three more; by the kernel or without."""
    if not compiled:
        monkeypatch.setattr(optim.algorithms, "_by_kernel", lambda _: False)
    rng = np.random.default_rng(0)
    parameters = [nn.Parameter(rng.normal(size=s).astype(dtype)) for s in SHAPES]
    optimizer = optim.AdamW([{"params": parameters[:3]}, {"params": parameters[3:], "lr": 0.1}])
    for step in range(6):
        if step == 3:
            parameters, optimizer = change(parameters, optimizer) or (parameters, optimizer)
        for p in parameters:
            p.grad = rng.normal(size=p.shape).astype(dtype)
        if step == 1:
            parameters[1].grad = None
        optimizer.step()
    return [p.data for p in parameters]


def nothing(parameters, optimizer):
    pass


def copied(parameters, optimizer):
    optimizer = copy.deepcopy(optimizer)
    return [p for g in optimizer.param_groups for p in g["params"]], optimizer


def pickled(parameters, optimizer):
    optimizer = pickle.loads(pickle.dumps(optimizer))
    return [p for g in optimizer.param_groups for p in g["params"]], optimizer


def loaded(parameters, optimizer):
    saved = {k: np.asarray(v, order="F") for k, v in optimizer.state_dict().items()}
    optimizer.load_state_dict(saved)


def written(parameters, optimizer):
    parameters[0].data = np.ones(SHAPES[0])
    with ta.no_grad():
        parameters[1][2:] = 3.0


def exchanged(parameters, optimizer):
    group = optimizer.param_groups[0]["params"]
    group[0], group[2] = group[2], group[0]
    optimizer.state[0], optimizer.state[2] = optimizer.state[2], optimizer.state[0]
    optimizer.shapes = [p.shape for p in optimizer._parameters()]


@pytest.mark.skipif(numba is None, reason="without Numba there is no kernel")
@pytest.mark.parametrize("change", [nothing, copied, pickled, loaded, written, exchanged])
def test_a_step_by_the_kernel_is_one_by_array_algebra(change, monkeypatch):
    together = trained_between(change, True, monkeypatch)
    for one, other in zip(trained_between(change, False, monkeypatch), together, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-10, atol=1e-12)
