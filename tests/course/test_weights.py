"""Weights of full runs are shipped and loaded; what was judged is what is shipped."""

import numpy as np
import pytest

from tinyattn import course, nn
from tinyattn.course import weights
from tinyattn.course.project import WEIGHTS


def line():
    return nn.Sequential(nn.Linear(3, 4, rng=0), nn.BatchNorm1d(4))


def in_a_full_run(monkeypatch, root, module, train):
    monkeypatch.setenv("TINYATTN_FULL", "1")
    shown = course.trained("04_line", module, train, root=root)
    monkeypatch.delenv("TINYATTN_FULL")
    return shown


def test_a_full_run_trains_and_every_other_loads(root, monkeypatch):
    module, other = line(), line()

    def train():
        module[0].weight.data = np.full((4, 3), 0.1, np.float32)
        return {"loss": [3.0, 2.0]}

    shown = in_a_full_run(monkeypatch, root, module, train)
    assert list(shown["loss"]) == [3, 2]
    again = course.trained("04_line", other, lambda: pytest.fail("trained"), root=root)
    assert list(again["loss"]) == [3, 2]
    x = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    assert np.array_equal(module(x).data, other(x).data)  # to the bit: both are rounded
    assert module[0].weight.data[0, 0] == np.float32(np.float16(0.1)) != np.float32(0.1)
    assert module[0].weight.dtype == np.float32


def test_weights_of_another_network(root, monkeypatch):
    in_a_full_run(monkeypatch, root, line(), lambda: None)
    other = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5))
    before = other[0].weight.data.copy()
    with pytest.raises(course.CourseError, match=r"04_line(.|\n)*a different network"):
        course.trained("04_line", other, None, root=root)
    assert np.array_equal(other[0].weight.data, before)


def test_training_that_fails_leaves_the_file(root, monkeypatch):
    in_a_full_run(monkeypatch, root, line(), lambda: None)
    before = (root / WEIGHTS / "04_line.safetensors").read_bytes()

    def train():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_a_full_run(monkeypatch, root, line(), train)
    assert (root / WEIGHTS / "04_line.safetensors").read_bytes() == before


@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (2, 3, 4)])
def test_stored_arrays_come_back_bit_for_bit(shape):
    numbers = np.random.default_rng(0).normal(size=shape)
    arrays = {"half": numbers.astype("<f2"), "single": numbers.astype("<f4")}
    stored = weights.packed(arrays)
    assert set(stored) == {"halves", "layout", "single"}
    found = weights.unpacked(stored)
    for name, a in arrays.items():
        assert found[name].dtype == a.dtype and found[name].shape == a.shape
        assert found[name].tobytes() == a.tobytes()


def test_the_same_weights_are_the_same_bytes_in_any_order():
    arrays = {name: np.full(2, i, "<f2") for i, name in enumerate(["b", "a", "c"])}
    one, other = weights.packed(arrays), weights.packed(dict(sorted(arrays.items())))
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])


def test_a_network_that_is_judged_and_not_shipped_is_as_exact_as_one_that_is():
    module = course.as_shipped(line())
    for value in module.state_dict().values():
        array = np.asarray(getattr(value, "data", value))
        assert array.dtype == np.float32 or array.dtype.kind == "i"  # counted batches stay whole
        assert np.array_equal(array, array.astype(np.float16))
    assert not np.array_equal(module[0].weight.data, line()[0].weight.data)
