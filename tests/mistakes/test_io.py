"""Mistakes with files of weights and checkpoints: the error that each must raise."""

import copy
import json
import os
import stat
import sys

import numpy as np
import pytest

import tinyattn as ta
from tests.test_io import assert_equal, fresh, run
from tinyattn import io, nn, optim
from tinyattn.io import load_checkpoint, save_checkpoint


def write(path, header, raw):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + raw)


GOOD = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


@pytest.mark.parametrize(
    ("header", "raw", "message"),
    [
        ({"x": GOOD}, b"1234", "it is cut off, because 'x' needs the bytes 0 to 8 .* only 4 exist"),
        ({"x": GOOD}, b"0" * 12, "belong to no array"),
        ({"x": GOOD | {"shape": [3]}}, b"0" * 8, "so it needs 12 bytes, but it has 8"),
        ({"x": GOOD | {"shape": [-2]}}, b"0" * 8, "invalid shape"),
        ({"x": GOOD | {"dtype": "F31"}}, b"0" * 8, "unknown dtype"),
        ({"x": GOOD | {"data_offsets": [8, 0]}}, b"0" * 8, "data_offsets"),
        ({"x": GOOD, "y": GOOD}, b"0" * 8, "'y' begin at 0, but must begin at 8, where the prev"),
        ({"x": GOOD}, b"0" * 9, "1 byte at the end belongs to no array"),
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


def test_unsuitable_values_are_refused_before_anything_is_written(tmp_path):
    with pytest.raises(TypeError, match="'x' must be an array of numbers, got an array of objects"):
        ta.save(tmp_path / "a", {"x": np.array([None])})
    with pytest.raises(TypeError, match="'__metadata__' cannot be the name of an array"):
        ta.save(tmp_path / "a", {"__metadata__": np.ones(2)})
    assert not (tmp_path / "a").exists()


GENERATOR = np.random.default_rng(3).bit_generator.state
DAMAGES = {
    "step": ({"step": "1.5"}, "the step '1.5', which is not a whole number"),
    "endless step": ({"step": "9" * 5000}, "not a whole number"),
    "no step": ({}, "because it has no step. If it contains weights"),
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"param_groups.0.lr": np.ones(3)}, r"lr must be a number, got float64 of shape \(3,\)"),
        ({"param_groups.0.lr": np.array(-1.0)}, "expected 0 <= lr < inf, got lr=-1.0"),
        (
            {"param_groups.0.betas": np.array([0.9, 2.0])},
            r"expected 0 <= betas\[1\] < 1, got betas\[1\]=2.0",
        ),
        ({"state.0.t": np.array(-3)}, "t must be a number of steps >= 0, got -3"),
        (
            {"state.0.m": np.ones((2, 2))},
            r"m must be .* in the shape \(5, 3\) .*, got float64 of shape \(2, 2\)",
        ),
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


ONE = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


@pytest.mark.parametrize(
    "header",
    [
        {"__metadata__": {"a": 1}, "x": ONE},
        {"__metadata__": [1], "x": ONE},
        {"x": ONE | {"dtype": ["F32"]}},
        {"x": ONE | {"shape": [True]}},
        {"x": ONE | {"data_offsets": [False, 4]}},
        {"x": ONE | {"shape": [1] * 70}},
        {"x": ONE | {"shape": [0, 2**70], "data_offsets": [0, 0]}},
        "[" * 100_000,
    ],
)
def test_every_broken_header_gives_the_same_error(tmp_path, header):
    text = header if isinstance(header, str) else json.dumps(header)
    raw = b"" if "0, 0]" in text else b"0000"
    (tmp_path / "a").write_bytes(len(text).to_bytes(8, "little") + text.encode() + raw)
    with pytest.raises(ValueError, match="not a complete safetensors file"):
        ta.load(tmp_path / "a")


def test_names_are_strings(tmp_path):
    with pytest.raises(TypeError, match="names must be strings, got 1"):
        ta.save(tmp_path / "a", {1: np.ones(1)})


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


def test_checkpoints_take_the_model_before_the_optimizer(tmp_path):
    model = nn.Linear(2, 1)
    optimizer = optim.SGD(model.parameters())
    for a, b in ((optimizer, model), (model.state_dict(), optimizer.state_dict())):
        for f in (io.save_checkpoint, io.load_checkpoint):
            with pytest.raises(TypeError, match=r"Write io.\w+\(path, model, optimizer\)"):
                f(tmp_path / "c", a, b)


posix = pytest.mark.skipif(
    os.name != "posix" or sys.platform == "wasi",
    reason="Windows and WebAssembly have other links, modes, locks and signals",
)


ONES = {"x": np.ones(2)}


@posix
def test_what_is_no_regular_file_is_refused_and_stays(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "to itself").symlink_to(tmp_path / "to itself")
    (tmp_path / "to the device").symlink_to("/dev/null")
    for name, kind in [
        ("pipe", "a pipe"),
        ("folder", "a folder"),
        ("to the device", "a device"),
        ("to itself", "a link that leads nowhere"),
    ]:
        before = os.lstat(tmp_path / name)
        with pytest.raises(OSError, match=f"is {kind}. Choose the name of a regular file"):
            ta.save(tmp_path / name, ONES)
        assert os.path.samestat(os.lstat(tmp_path / name), before)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert len(os.listdir(tmp_path)) == 4


@pytest.mark.parametrize(
    "arguments", [(ONES, "weights"), ("weights", nn.Linear(2, 2, rng=0)), ("weights", [ONES])]
)
def test_other_arguments_are_explained(arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TypeError, match="expected a path and a dictionary .*got"):
        ta.save(*arguments)
    assert not os.listdir(tmp_path)


def test_a_checkpoint_needs_a_path_and_a_small_step(tmp_path):
    model, optimizer, _ = fresh(lambda p: optim.Adam(p))
    for function in (save_checkpoint, load_checkpoint):
        with pytest.raises(TypeError, match="expected a path, a module .* got int, "):
            function(3, model, optimizer)
    with pytest.raises(ValueError, match="step <= 1000000000000000000"):
        save_checkpoint(tmp_path / "c", model, optimizer, step=10**19)
    with pytest.raises(TypeError, match="'a' must be an array of numbers, got a list with rows"):
        ta.save(tmp_path / "a", {"a": [[1], [1, 2]]})


def test_errors_about_a_file_begin_with_the_function_that_was_called(tmp_path):
    model = nn.Linear(2, 3)
    optimizer = optim.SGD(model.parameters())
    lost, raw = tmp_path / "no" / "a", tmp_path / "raw"
    raw.write_bytes(b"123")
    for error, name, call in (
        (FileNotFoundError, "save_checkpoint", lambda: save_checkpoint(lost, model, optimizer)),
        (FileNotFoundError, "load_checkpoint", lambda: load_checkpoint(lost, model, optimizer)),
        (ValueError, "load_checkpoint", lambda: load_checkpoint(raw, model, optimizer)),
        (FileNotFoundError, "save", lambda: ta.save(lost, {})),
        (FileNotFoundError, "load", lambda: ta.load(lost)),
        (OSError, "atomic_write", lambda: io.atomic_write(tmp_path, [b"a"])),
    ):
        with pytest.raises(error, match=f"^{name}: .*(no folder|is a folder|not a complete)"):
            call()


@pytest.mark.parametrize("chunks", [b"abc", "abc", ["abc"]])
def test_chunks_are_bytes(tmp_path, chunks):
    with pytest.raises(TypeError, match=r"a list or generator of bytes, got .* Write \[data\]"):
        io.atomic_write(tmp_path / "a", chunks)
    assert not list(tmp_path.iterdir())
