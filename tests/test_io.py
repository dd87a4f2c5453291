"""Weight files are written whole or not at all, read exactly, and refused when broken."""

import json
import os

import numpy as np
import pytest

import tinyattn as ta
import tinyattn.functional as F
from tinyattn import data, nn, optim
from tinyattn.io import load_checkpoint, save_checkpoint

DTYPES = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?", "c8"]


def arrays():
    rng = np.random.default_rng(0)
    found = {f"of {d}": (rng.normal(size=(2, 3)) * 50).astype(d) for d in DTYPES if d != "u8"}
    found |= {"of u8": np.arange(3, dtype="u8"), "empty": np.zeros((0, 4), "f4")}
    return found | {
        "number": np.array(2.5),
        "turned": np.arange(6.0).reshape(2, 3).T,
        "ä.β": np.ones(1),
    }


def assert_equal(found, expected):
    assert found.keys() == expected.keys()
    for name in expected:
        assert found[name].dtype == expected[name].dtype, name
        np.testing.assert_array_equal(found[name], expected[name], strict=True)


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
def test_round_trip(tmp_path):
    ta.save(tmp_path / "a", arrays())
    assert_equal(ta.load(tmp_path / "a"), {n: np.asarray(a) for n, a in arrays().items()})


def test_tensors_and_big_endian_arrays(tmp_path):
    ta.save(
        tmp_path / "a", {"t": ta.tensor([1, 2], requires_grad=True), "b": np.arange(3, dtype=">f4")}
    )
    assert_equal(
        ta.load(tmp_path / "a"), {"t": np.array([1, 2], "f4"), "b": np.arange(3, dtype="f4")}
    )


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
def test_the_reference_library_reads_and_writes_the_same(tmp_path):
    reference = pytest.importorskip("safetensors.numpy")
    mine = {n: np.ascontiguousarray(a) for n, a in arrays().items()}
    ta.save(tmp_path / "mine", mine)
    assert_equal(reference.load_file(tmp_path / "mine"), mine)
    reference.save_file(mine, tmp_path / "theirs")
    assert_equal(ta.load(tmp_path / "theirs"), mine)


def test_bfloat16_is_read_as_float32(tmp_path):
    values = np.array([1.0, -2.5, 3.140625], np.float32)
    raw = (values.view(np.uint32) >> 16).astype("<u2").tobytes()
    header = {"x": {"dtype": "BF16", "shape": [3], "data_offsets": [0, 6]}}
    write(tmp_path / "a", header, raw)
    assert_equal(ta.load(tmp_path / "a"), {"x": values})


def write(path, header, raw):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + raw)


def test_truncation_is_found_at_every_length(tmp_path):
    ta.save(tmp_path / "a", {"x": np.ones(2)})
    whole = (tmp_path / "a").read_bytes()
    for n in range(len(whole)):
        (tmp_path / "b").write_bytes(whole[:n])
        with pytest.raises(ValueError, match="complete"):
            ta.load(tmp_path / "b")


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    ta.save(tmp_path / "a", {"x": np.ones(2)})

    def full_disk(fd):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="no space"):
        ta.save(tmp_path / "a", {"x": np.zeros(1000)})
    assert os.listdir(tmp_path) == ["a"]
    assert_equal(ta.load(tmp_path / "a"), {"x": np.ones(2)})


# ---------------------------------------------------------------- checkpoints


def run(steps, model, optimizer, rng):
    for _ in range(steps):
        x = rng.normal(size=(8, 3)).astype(np.float32)
        F.mse_loss(model(x), x[:, :1]).backward()
        optimizer.step()
        optimizer.zero_grad()


def fresh(make):
    model = nn.Sequential(
        nn.Linear(3, 5, rng=0), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 1, rng=1)
    )
    return model, make(model.parameters()), np.random.default_rng(3)


@pytest.mark.parametrize(
    "make",
    [
        lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: optim.RMSprop(p, momentum=0.5, centered=True),
        lambda p: optim.Adam(p, lr=0.01),
        lambda p: optim.AdamW(p, lr=0.01, betas=(0.8, 0.99)),
    ],
)
def test_training_resumes_bit_for_bit(tmp_path, make):
    model, optimizer, rng = fresh(make)
    run(10, model, optimizer, rng)

    first, first_optimizer, first_rng = fresh(make)
    run(5, first, first_optimizer, first_rng)
    save_checkpoint(tmp_path / "c", first, first_optimizer, step=5, rng=first_rng)
    second, second_optimizer, second_rng = fresh(make)
    assert load_checkpoint(tmp_path / "c", second, second_optimizer, second_rng) == 5
    run(5, second, second_optimizer, second_rng)

    assert_equal(second.state_dict(), model.state_dict())
    assert_equal(second_optimizer.state_dict(), optimizer.state_dict())
    assert rng.random() == second_rng.random()


@pytest.mark.parametrize("rng", [None, 7], ids=["default generator", "generator of the layers"])
def test_training_with_dropout_resumes_bit_for_bit(tmp_path, rng):
    """In a new process: there the default generator starts somewhere else."""

    def with_dropout():
        layers = [
            nn.Linear(3, 5, rng=0),
            nn.Dropout(0.5, rng),
            nn.LSTM(5, 4, 2, dropout=0.5, rng=rng),
        ]
        model = nn.Sequential(*layers[:2], nn.Linear(5, 1, rng=1))
        model.cell = layers[2]
        return model, optim.SGD(model.parameters(), lr=0.1)

    def train(model, optimizer):
        x = np.ones((8, 4, 3), np.float32)
        for (batch,) in data.batches(x, batch_size=4):  # in an order of the default generator
            optimizer.zero_grad()
            hidden = model[1](model[0](batch))
            y, _ = model.cell(hidden)
            (np.mean(y * y) + np.mean(model[2](hidden) ** 2)).backward()
            optimizer.step()

    ta.seed(0)
    model, optimizer = with_dropout()
    weights = model.state_dict()
    train(model, optimizer)
    save_checkpoint(tmp_path / "c", model, optimizer)
    train(model, optimizer)

    ta.seed(1)
    again, its_optimizer = with_dropout()
    load_checkpoint(tmp_path / "c", again, its_optimizer)
    train(again, its_optimizer)
    assert_equal(again.state_dict(), model.state_dict())
    assert weights.keys() == again.state_dict().keys()


def test_a_checkpoint_that_does_not_fit_leaves_the_generators_alone(tmp_path):
    model, optimizer, _ = fresh(lambda p: optim.Adam(p))
    save_checkpoint(tmp_path / "c", model, optimizer)
    ta.seed(5)
    other = nn.Linear(3, 1, rng=0)
    with pytest.raises(KeyError, match="nothing"):
        load_checkpoint(tmp_path / "c", other, optim.Adam(other.parameters()))
    drawn = data.batches(np.arange(50), batch_size=50)
    (first,) = next(iter(drawn))
    ta.seed(5)
    (again,) = next(iter(data.batches(np.arange(50), batch_size=50)))
    np.testing.assert_array_equal(first, again)


def test_a_checkpoint_for_something_else_changes_nothing(tmp_path):
    model, optimizer, rng = fresh(lambda p: optim.Adam(p))
    run(2, model, optimizer, rng)
    save_checkpoint(tmp_path / "c", model, optimizer)
    other = nn.Linear(3, 1, rng=0)
    before = other.state_dict()
    with pytest.raises(KeyError, match="nothing"):
        load_checkpoint(tmp_path / "c", other, optim.Adam(other.parameters()))
    assert_equal(other.state_dict(), before)
    same, few, _ = fresh(lambda p: optim.SGD(list(p)[:1]))
    before = same.state_dict()
    with pytest.raises(KeyError, match="unexpected: "):
        load_checkpoint(tmp_path / "c", same, few)
    assert_equal(same.state_dict(), before)


UNUSABLE = "the generator state in .* cannot be used"


def assert_refused(path, model, optimizer, rng):
    """The state of the generator is, by us or in other words by NumPy (from 2.5 on)."""
    before = json.dumps(rng.bit_generator.state, default=np.ndarray.tolist)
    with pytest.raises(ValueError, match="generator state") as caught:
        load_checkpoint(path, model, optimizer, rng)
    assert str(path) in str(caught.value)
    assert json.dumps(rng.bit_generator.state, default=np.ndarray.tolist) == before


@pytest.mark.parametrize("kind", ["MT19937", "Philox"])
def test_a_generator_that_would_read_behind_its_numbers_is_refused(tmp_path, kind):
    model, optimizer, _ = fresh(lambda p: optim.Adam(p))
    rng = np.random.Generator(getattr(np.random, kind)(0))
    save_checkpoint(tmp_path / "c", model, optimizer, rng=rng)
    whole = (tmp_path / "c").read_bytes()
    first, _, rest = whole.partition(b'pos\\": ')
    digits = len(rest) - len(rest.lstrip(b"0123456789"))
    damaged = first + b'pos\\": ' + b"9" * digits + rest[digits:]
    assert len(damaged) == len(whole) and damaged != whole
    (tmp_path / "c").write_bytes(damaged)
    assert_refused(tmp_path / "c", model, optimizer, rng)


@pytest.mark.parametrize(
    ("kind", "place", "numbers"), [("MT19937", "pos", "key"), ("Philox", "buffer_pos", "buffer")]
)
def test_more_numbers_than_a_generator_has_are_refused(tmp_path, kind, place, numbers):
    model, optimizer, _ = fresh(lambda p: optim.Adam(p))
    rng = np.random.Generator(getattr(np.random, kind)(0))
    state = json.loads(json.dumps(rng.bit_generator.state, default=np.ndarray.tolist))
    inside = state["state"] if kind == "MT19937" else state
    inside[numbers], inside[place] = inside[numbers] * 1000, 10 * len(inside[numbers])
    tensors = {f"module.{k}": v for k, v in model.state_dict().items()}
    tensors |= {f"optimizer.{k}": v for k, v in optimizer.state_dict().items()}
    ta.save(tmp_path / "c", tensors, {"step": "1", "rng": json.dumps(state)})
    assert_refused(tmp_path / "c", model, optimizer, rng)


def test_what_an_optimizer_keeps_gets_the_dtype_of_the_parameter():
    model, optimizer, rng = fresh(lambda p: optim.Adam(p))
    run(1, model, optimizer, rng)
    wide = {
        k: v.astype(np.float64) if v.dtype == np.float32 else v
        for k, v in optimizer.state_dict().items()
    }
    optimizer.load_state_dict(wide)
    run(1, model, optimizer, rng)
    assert {p.dtype for p in model.parameters()} == {np.dtype(np.float32)}


# ---------------------------------------------------------------- broken files and generators


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
def test_a_saved_file_has_the_usual_permissions(tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    ta.save(tmp_path / "weights", {"x": np.ones(1)})
    modes = [(tmp_path / n).stat().st_mode for n in ("plain", "weights")]
    assert modes[0] == modes[1]


def test_a_single_bfloat16_is_an_array(tmp_path):
    text = json.dumps({"x": {"dtype": "BF16", "shape": [], "data_offsets": [0, 2]}}).encode()
    (tmp_path / "a").write_bytes(len(text).to_bytes(8, "little") + text + b"\x80\x3f")
    x = ta.load(tmp_path / "a")["x"]
    assert isinstance(x, np.ndarray)
    assert x.tolist() == 1.0


@pytest.mark.parametrize("kind", ["PCG64", "MT19937", "Philox", "SFC64"])
def test_generators_of_every_kind_resume(tmp_path, kind):
    model = nn.Linear(2, 1, rng=0)
    optimizer = optim.Adam(model.parameters())
    rng = np.random.Generator(getattr(np.random, kind)(0))
    rng.random(7)
    save_checkpoint(tmp_path / "c", model, optimizer, rng=rng)
    expected = rng.random(3).tolist()
    again = np.random.Generator(getattr(np.random, kind)(1))
    load_checkpoint(tmp_path / "c", model, optimizer, again)
    assert again.random(3).tolist() == expected


def test_a_tilde_is_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    ta.save("~/w.safetensors", {"w": np.ones(2)})
    assert (tmp_path / "w.safetensors").exists() and list(ta.load("~/w.safetensors")) == ["w"]
