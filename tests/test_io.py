"""Weight files are written whole or not at all, read exactly, and refused when broken."""

import copy
import json
import os

import numpy as np
import pytest

import tinyattn as ta
import tinyattn.functional as F
from tinyattn import data, io, nn, optim
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


GOOD = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("header", "raw", "message"),
    [
        ({"x": GOOD}, b"1234", "within 4"),
        ({"x": GOOD}, b"0" * 12, "belong to no array"),
        ({"x": GOOD | {"shape": [3]}}, b"0" * 8, "but 8 bytes"),
        ({"x": GOOD | {"shape": [-2]}}, b"0" * 8, "invalid shape"),
        ({"x": GOOD | {"dtype": "F31"}}, b"0" * 8, "unknown dtype"),
        ({"x": GOOD | {"data_offsets": [8, 0]}}, b"0" * 8, "data_offsets"),
        ({"x": GOOD, "y": GOOD}, b"0" * 8, "but must begin at 8 and end"),
        ({"x": 3}, b"", "data_offsets"),
        (b"{", b"", "header cannot be read"),
        (b"[1]", b"", "not a table"),
        (b'{"x":1,"x":2}', b"", "appears twice"),
    ],
)
def test_broken_files_are_refused(tmp_path, header, raw, message):
    write(tmp_path / "a", header, raw)
    with pytest.raises(ValueError, match=message):
        ta.load(tmp_path / "a")


@pytest.mark.parametrize("content", [b"", b"123", b"\xff" * 16])
def test_files_of_another_kind_are_refused(tmp_path, content):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ValueError, match="announce a header|it is empty|it is a text"):
        ta.load(tmp_path / "a")


def test_files_of_numpy_and_pytorch_are_named(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.ones(2))  # a zip file, as torch.save writes
    np.save(tmp_path / "a.npy", np.ones(2))
    with pytest.raises(
        ValueError, match=r"a\.npz .* PyTorch \(\.pt\) or NumPy \(\.npz\) .*ta\.save"
    ):
        ta.load(tmp_path / "a.npz")
    with pytest.raises(ValueError, match=r"it is a NumPy \(\.npy\) file"):
        ta.load(tmp_path / "a.npy")


def test_truncation_is_found_at_every_length(tmp_path):
    ta.save(tmp_path / "a", {"x": np.ones(2)})
    whole = (tmp_path / "a").read_bytes()
    for n in range(len(whole)):
        (tmp_path / "b").write_bytes(whole[:n])
        with pytest.raises(ValueError, match="not a complete safetensors file"):
            ta.load(tmp_path / "b")


DIGITS = b"9" * 4000
AXES = b"9" * 19 + b",9" * 50_000
ENTRY = b'{"x":{"dtype":"F32","shape":[%b],"data_offsets":[0,8]}}'


@pytest.mark.parametrize(
    ("header", "why"),
    [
        (b'{"x":' + b"[" * 100_000, "cannot be read"),
        # the count of digits is the reason: such a number is never turned into an int, which
        # would take the square of their count
        (b"[" + DIGITS + b",1" + b"]", "a number has 4000 digits"),
        (ENTRY % DIGITS, "a number has 4000 digits"),
        (b'{"x":' + b",".join([DIGITS] * 2000) + b"}", "a number has 4000 digits"),
        (ENTRY % AXES, "invalid shape"),
        (b'{"' + b"x" * 100_000 + b'":3}', "no valid data_offsets"),
    ],
    ids=["lists", "number", "size", "numbers", "axes", "name"],
)
def test_endless_numbers_names_and_lists_are_refused_in_few_words(tmp_path, header, why):
    write(tmp_path / "a", header, b"0" * 8)
    with pytest.raises(ValueError, match="not a complete safetensors file") as caught:
        ta.load(tmp_path / "a")
    assert why in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    ta.save(tmp_path / "a", {"x": np.ones(2)})

    def full_disk(fd):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="no space"):
        ta.save(tmp_path / "a", {"x": np.zeros(1000)})
    assert os.listdir(tmp_path) == ["a"]
    assert_equal(ta.load(tmp_path / "a"), {"x": np.ones(2)})


def test_unsuitable_values_are_refused_before_anything_is_written(tmp_path):
    with pytest.raises(TypeError, match="'x' has the dtype object"):
        ta.save(tmp_path / "a", {"x": np.array([None])})
    with pytest.raises(TypeError, match="'__metadata__' cannot be the name of an array"):
        ta.save(tmp_path / "a", {"__metadata__": np.ones(2)})
    assert not (tmp_path / "a").exists()


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
    with pytest.raises(KeyError, match="nothing was changed"):
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
    with pytest.raises(KeyError, match="nothing was changed"):
        load_checkpoint(tmp_path / "c", other, optim.Adam(other.parameters()))
    assert_equal(other.state_dict(), before)
    same, few, _ = fresh(lambda p: optim.SGD(list(p)[:1]))
    before = same.state_dict()
    with pytest.raises(KeyError, match="unexpected: "):
        load_checkpoint(tmp_path / "c", same, few)
    assert_equal(same.state_dict(), before)


UNUSABLE = "the generator state in .* cannot be used"
GENERATOR = np.random.default_rng(3).bit_generator.state
DAMAGES = {
    "step": ({"step": "1.5"}, "the step '1.5', which is not a whole number"),
    "endless step": ({"step": "9" * 5000}, "not a whole number"),
    "no step": ({}, "contains only weights"),
    "no generator": ({"step": "1"}, "was saved without rng="),
    "text": ({"step": "1", "rng": "{"}, "generator state in .* cannot be used"),
    "list": ({"step": "1", "rng": "[1]"}, "generator state in .* cannot be used"),
    "half": ({"step": "1", "rng": '{"bit_generator": "PCG64"}'}, "cannot be used"),
    "huge": ({"step": "1", "rng": json.dumps(GENERATOR | {"uinteger": 10**38})}, "cannot be used"),
    "endless": ({"step": "1", "rng": json.dumps(GENERATOR | {"uinteger": 10**4000})}, "digits"),
    "other": (
        {"step": "1", "rng": json.dumps(GENERATOR | {"bit_generator": "MT"})},
        "saved with a MT generator",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_changes_nothing_and_is_named(tmp_path, damage):
    metadata, message = DAMAGES[damage]
    model, optimizer, rng = fresh(lambda p: optim.Adam(p))
    run(2, model, optimizer, rng)
    tensors = {f"module.{k}": v for k, v in model.state_dict().items()}
    tensors |= {f"optimizer.{k}": v for k, v in optimizer.state_dict().items()}
    ta.save(tmp_path / "c", tensors, metadata)
    model, optimizer, rng = fresh(lambda p: optim.Adam(p))
    before = model.state_dict(), optimizer.state_dict(), copy.deepcopy(rng.bit_generator.state)
    with pytest.raises(ValueError, match=message) as caught:
        load_checkpoint(tmp_path / "c", model, optimizer, rng)
    assert str(tmp_path / "c") in str(caught.value)
    assert_equal(model.state_dict(), before[0])
    assert_equal(optimizer.state_dict(), before[1])
    assert rng.bit_generator.state == before[2]


def assert_refused(path, model, optimizer, rng):
    """The state of the generator is, by us or in other words by NumPy (from 2.5 on)."""
    before = json.dumps(rng.bit_generator.state, default=np.ndarray.tolist)
    with pytest.raises(ValueError, match=UNUSABLE) as caught:
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"param_groups.0.lr": np.ones(3)}, r"lr is float64 \(3,\), expected numbers \(\)"),
        ({"param_groups.0.lr": np.array(-1.0)}, "expected 0 <= lr < inf, got lr=-1.0"),
        (
            {"param_groups.0.betas": np.array([0.9, 2.0])},
            "expected 0 <= betas < 1, got betas=2.0",
        ),
        ({"state.0.t": np.array(-3)}, "t is -3, but must be a number of steps"),
        ({"state.0.m": np.ones((2, 2))}, r"m is float64 \(2, 2\), expected .* shape \(5, 3\)"),
        ({"state.0.m": None}, "contains t, v, expected m, t, v"),
        ({"state.0.more": np.ones((5, 3))}, "contains m, more, t, v"),
        ({"state.99.m": np.ones((5, 3))}, "unexpected: state.99.m"),
    ],
)
def test_an_optimizer_takes_only_what_its_rule_keeps(change, message):
    model, optimizer, rng = fresh(lambda p: optim.Adam(p))
    run(1, model, optimizer, rng)
    before = optimizer.state_dict()
    saved = {k: v for k, v in (before | change).items() if v is not None}
    with pytest.raises((KeyError, ValueError), match=message):
        optimizer.load_state_dict(saved)
    assert_equal(optimizer.state_dict(), before)


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


GOOD = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


@pytest.mark.parametrize(
    "header",
    [
        {"__metadata__": {"a": 1}, "x": GOOD},
        {"__metadata__": [1], "x": GOOD},
        {"x": GOOD | {"dtype": ["F32"]}},
        {"x": GOOD | {"shape": [True]}},
        {"x": GOOD | {"data_offsets": [False, 4]}},
        {"x": GOOD | {"shape": [1] * 70}},
        {"x": GOOD | {"shape": [0, 2**70], "data_offsets": [0, 0]}},
        "[" * 100_000,
    ],
)
def test_every_broken_header_gives_the_same_error(tmp_path, header):
    text = header if isinstance(header, str) else json.dumps(header)
    raw = b"" if "0, 0]" in text else b"0000"
    (tmp_path / "a").write_bytes(len(text).to_bytes(8, "little") + text.encode() + raw)
    with pytest.raises(ValueError, match="not a complete safetensors file"):
        ta.load(tmp_path / "a")


def test_a_single_bfloat16_is_an_array(tmp_path):
    text = json.dumps({"x": {"dtype": "BF16", "shape": [], "data_offsets": [0, 2]}}).encode()
    (tmp_path / "a").write_bytes(len(text).to_bytes(8, "little") + text + b"\x80\x3f")
    x = ta.load(tmp_path / "a")["x"]
    assert isinstance(x, np.ndarray)
    assert x.tolist() == 1.0


def test_names_are_strings(tmp_path):
    with pytest.raises(TypeError, match="names must be strings, got 1"):
        ta.save(tmp_path / "a", {1: np.ones(1)})


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


def test_a_generator_of_another_kind_changes_nothing(tmp_path):
    model = nn.Linear(2, 1, rng=0)
    optimizer = optim.Adam(model.parameters())
    save_checkpoint(tmp_path / "c", model, optimizer, rng=np.random.default_rng(0))
    model.weight.data = model.weight.data + 1
    before = model.weight.data
    other = np.random.Generator(np.random.MT19937(0))
    with pytest.raises(ValueError, match="a PCG64 generator, got MT19937"):
        load_checkpoint(tmp_path / "c", model, optimizer, other)
    assert model.weight.data is before


def test_a_foreign_file_is_no_checkpoint(tmp_path):
    model = nn.Linear(2, 1, rng=0)
    ta.save(tmp_path / "c", {"x": np.ones(1)}, {"step": "3"})
    with pytest.raises(ValueError, match="is not a checkpoint, because it contains 'x'"):
        load_checkpoint(tmp_path / "c", model, optim.Adam(model.parameters()))


def test_a_file_that_is_not_there_is_named_with_its_neighbour(tmp_path):
    ta.save(tmp_path / "model_best.safetensors", {"w": np.ones(2)})
    for asked in ("model_bst.safetensors", "model_best"):
        with pytest.raises(FileNotFoundError, match=r"did you mean model_best.safetensors\?"):
            ta.load(tmp_path / asked)
    with pytest.raises(FileNotFoundError, match="there is no file other in"):
        ta.load(tmp_path / "other")
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        ta.load(tmp_path / "no" / "other")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "it is empty"),
        ("x,y\n1,2\n", "it is a text file"),
        ("\n<!DOCTYPE html>\n<html lang=en>", "it is a web page"),
        ("GGUF\3\0\0\0\0\0\0\0", "it is a GGUF file"),
    ],
)
def test_a_text_is_called_one(tmp_path, content, words):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(ValueError, match=words):
        ta.load(tmp_path / "a.csv")


def test_a_tilde_is_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    ta.save("~/w.safetensors", {"w": np.ones(2)})
    assert (tmp_path / "w.safetensors").exists() and list(ta.load("~/w.safetensors")) == ["w"]


def test_checkpoints_take_the_model_before_the_optimizer(tmp_path):
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters())
    for a, b in ((optimizer, model), (model.state_dict(), optimizer.state_dict())):
        for f in (io.save_checkpoint, io.load_checkpoint):
            with pytest.raises(TypeError, match=r"Write io.\w+\(path, model, optimizer\)"):
                f(tmp_path / "c", a, b)


def test_wrong_kinds_are_explained(tmp_path):
    model = nn.Linear(2, 2)
    optimizer = optim.SGD(model.parameters())
    path = tmp_path / "a.safetensors"
    with pytest.raises(TypeError, match=r"got \w+ and Linear\. Write save\(path, model.state_dict"):
        ta.save(path, model)
    with pytest.raises(TypeError, match="expected a dictionary of arrays, got an optimizer"):
        ta.save(path, optimizer)
    with pytest.raises(TypeError, match="metadata must be a dictionary"):
        ta.save(path, {"a": np.ones(2)}, metadata="abc")
    with pytest.raises(IsADirectoryError, match="load: .* is a folder"):
        ta.load(tmp_path)
    for options, message in (
        ({"rng": 3}, "rng must be a .* got int"),
        ({"step": "a"}, "step must"),
    ):
        with pytest.raises(TypeError, match=message):
            ta.io.save_checkpoint(path, model, optimizer, **options)
