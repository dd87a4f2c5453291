"""Broken GGUF files are refused with the reason, before any array is made."""

import itertools
import struct
import sys
import tracemalloc

import numpy as np
import pytest

from tests.models.gguf_files import text, write_gguf
from tinyattn.data.tokenizers import BytePairs
from tinyattn.models import Llama, gguf

Q4_0 = 2


def entry(key, kind, raw):
    return text(key) + struct.pack("<I", kind) + raw


def info(name, shape, kind=0, place=0):
    head = text(name) + struct.pack("<I", len(shape))
    return head + struct.pack(f"<{len(shape)}QIQ", *shape[::-1], kind, place)


def file(entries=(), infos=(), body=b"", num_entries=None, num_tensors=None):
    counts = [
        len(infos) if num_tensors is None else num_tensors,
        len(entries) if num_entries is None else num_entries,
    ]
    head = b"GGUF" + struct.pack("<IQQ", 3, *counts) + b"".join([*entries, *infos])
    return head + b"\0" * (-len(head) % 32) + body


def alignment(kind, code, n):
    return file([entry("general.alignment", kind, struct.pack(f"<{code}", n))])


BROKEN = {
    "empty": (b"", "it is empty"),
    "alignment 0": (alignment(4, "I", 0), "general.alignment is 0, expected a power of two"),
    "alignment 12": (alignment(4, "I", 12), "general.alignment is 12, expected a power of two"),
    "alignment huge": (alignment(10, "Q", 2**63), "expected a power of two up to 1048576"),
    "alignment -32": (alignment(5, "i", -32), "general.alignment is -32"),
    "alignment 1.5": (alignment(6, "f", 1.5), "general.alignment is 1.5"),
    "alignment true": (alignment(7, "?", True), "general.alignment is True"),
    "alignment text": (file([entry("general.alignment", 8, text("32"))]), "alignment is '32'"),
    "type": (file([entry("k", 13, b"")]), "'k' has the unknown type 13"),
    "type of a list": (file([entry("k", 9, struct.pack("<IQ", 77, 1))]), "list of the unknown"),
    "lists in lists": (file([entry("k", 9, struct.pack("<IQ", 9, 1) * 5000)]), "list of lists"),
    "truth": (file([entry("k", 7, b"\2")]), "truth value 2"),
    "truths": (file([entry("k", 9, struct.pack("<IQ", 7, 2) + b"\1\3")]), "other than 0 and 1"),
    "endless text": (file([struct.pack("<Q", 2**64 - 1)]), "in the middle of its header"),
    "endless list": (file([entry("k", 9, struct.pack("<IQ", 12, 2**61))]), "middle of its header"),
    "texts": (file([entry("k", 9, struct.pack("<IQ", 8, 2**64 - 1))]), "middle of its header"),
    "key twice": (file([entry("k", 0, b"1")] * 2), "the entry 'k' occurs twice"),
    "entries": (file(num_entries=2**64 - 1), "in the middle of its header|unknown type"),
    "tensors": (file(num_tensors=2**64 - 1), "in the middle of its header|occurs twice"),
    "tensor twice": (file(infos=[info("x", (1,))] * 2, body=b"0" * 4), "tensor 'x' occurs twice"),
    "axes": (file(infos=[info("x", (1,) * 5)], body=b"0" * 4), "x has 5 axes, but at most 4"),
    "all axes": (file(infos=[text("x") + b"\xff" * 4]), "4294967295 axes"),
    "product is 2**64": (
        file(infos=[info("x", (2**32, 2**32))]),
        "more numbers than a file can contain",
    ),
    "product is 2**66": (
        file(infos=[info("x", (2**33, 2**33))]),
        "more numbers than a file can contain",
    ),
    "empty and huge": (file(infos=[info("x", (0, 2**62))]), "more numbers than a file can contain"),
    "too long": (file(infos=[info("x", (2**40,))]), "in the middle of x, which is stored at"),
    "far away": (file(infos=[info("x", (1,), place=2**63)]), "in the middle of x"),
    "between": (file(infos=[info("x", (1,), place=5)], body=b"0" * 9), "not a multiple of 32"),
    "rows": (file(infos=[info("x", (32, 33), Q4_0)], body=b"0" * 999), "consist of blocks of 32"),
    "overlap": (
        file(infos=[info("x", (9,)), info("y", (1,), place=32)], body=b"0" * 36),
        "x and y share bytes",
    ),
    "same place": (file(infos=[info("x", (1,)), info("y", (1,))], body=b"0" * 4), "share bytes"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_refused_with_the_reason(tmp_path, name):
    content, message = BROKEN[name]
    path = tmp_path / "a.gguf"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        gguf.read(path)
    assert str(path) in str(caught.value)


def test_the_cases_are_broken_in_one_place_only(tmp_path):
    infos = [info("x", (3,)), info("none", (0, 5), place=64), info("y", (32,), Q4_0, 64)]
    entries = [entry("k", 7, b"\1"), entry("general.alignment", 4, struct.pack("<I", 64))]
    good = file(entries, infos)
    good += b"\0" * (-len(good) % 64)
    (tmp_path / "a.gguf").write_bytes(good + b"\0" * 82)
    found = gguf.read(tmp_path / "a.gguf")
    assert found.metadata == {"k": True, "general.alignment": 64}
    assert {n: t.shape for n, t in found.tensors.items()} == {"x": (3,), "none": (0, 5), "y": (32,)}


def test_many_tensors_that_share_bytes_take_neither_time_nor_memory(tmp_path):
    """600 kB that say 10,000 times: my numbers are those 200,000 bytes."""
    infos = [info(f"tensor {i}", (50_000,)) for i in range(10_000)]
    (tmp_path / "a.gguf").write_bytes(file(infos=infos, body=b"0" * 200_000))
    size = (tmp_path / "a.gguf").stat().st_size
    calls = itertools.count()
    tracemalloc.start()
    try:
        sys.setprofile(lambda *_: next(calls))
        with pytest.raises(ValueError, match="tensor 0 and tensor 1 share bytes"):
            gguf.read(tmp_path / "a.gguf")
        sys.setprofile(None)
        assert next(calls) < 300 * 10_000  # comparing every pair would take 50 million
        assert tracemalloc.get_traced_memory()[1] < 15 * size
    finally:
        sys.setprofile(None)
        tracemalloc.stop()


@pytest.mark.skipif(sys.platform == "wasi", reason="a file is mapped, which WebAssembly cannot")
def test_reading_takes_the_memory_of_the_result(tmp_path):
    raw = np.random.default_rng(0).integers(256, size=18 * 32_000, dtype=np.uint8).tobytes()
    write_gguf(tmp_path / "a.gguf", {}, {"x": (Q4_0, (1000, 1024), raw)})
    tracemalloc.start()
    try:
        with np.errstate(all="raise"):  # random halves are nan and inf, too
            nbytes = gguf.read(tmp_path / "a.gguf").tensors["x"].nbytes
        assert tracemalloc.get_traced_memory()[1] < 1.2 * nbytes
    finally:
        tracemalloc.stop()


# ---------------------------------------------------------------- entries of another kind

ENTRIES = {
    "general.architecture": "llama",
    "llama.context_length": 10,
    "llama.attention.head_count": 2,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"general.architecture": 3}, "general.architecture is 3, expected a string"),
        ({"llama.attention.head_count": None}, "head_count is missing, expected a whole number"),
        ({"llama.attention.head_count": 0}, "head_count is 0, expected a whole number >= 1"),
        ({"llama.attention.head_count_kv": "1"}, "head_count_kv is '1', expected a whole number"),
        ({"llama.context_length": 1.5}, "context_length is 1.5, expected a whole number"),
        ({"llama.attention.layer_norm_rms_epsilon": "x"}, "epsilon is 'x', expected a number"),
        ({}, "the tensors of .* do not fit a Llama"),
    ],
)
def test_a_model_names_the_file_and_the_entry(tmp_path, changed, message):
    entries = {k: v for k, v in (ENTRIES | changed).items() if v is not None}
    write_gguf(tmp_path / "a.gguf", entries, {})
    with pytest.raises(ValueError, match=message) as caught:
        Llama.from_gguf(tmp_path / "a.gguf")
    assert str(tmp_path / "a.gguf") in str(caught.value)


TOKENIZER = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.tokens": ["<|end|>", "a", "b", "ab"],
    "tokenizer.ggml.token_type": [3, 1, 1, 1],
    "tokenizer.ggml.merges": ["a b"],
}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"token_type": None}, "token_type is missing, expected a whole number for each of the 4"),
        ({"tokens": None}, "tokens is missing, expected a list of texts"),
        ({"merges": 7}, "merges is of type int, expected a list of texts"),
        ({"merges": ["a b", "ab"]}, "merges is 'ab' at index 1, expected two tokens"),
        ({"merges": ["a b a"]}, "'a b a' at index 0, expected two tokens"),
        (
            {"token_type": [3, 1]},
            r"token_type is int(32|64) \(2,\), expected a whole number for each of the 4",
        ),
        (
            {"token_type": "3111"},
            r"token_type is <U4 \(\), expected a whole number for each of the 4",
        ),
        ({"tokens": ["", "a", "b", "ab"]}, "the special token 0 is an empty text"),
        ({"unknown_token_id": 4}, "unknown_token_id is 4, expected a token id from 0 to 3"),
        ({"unknown_token_id": "0"}, "unknown_token_id is '0', expected a token id from 0 to 3"),
        ({"pre": ["smollm"]}, "the pre-tokenizer"),
    ],
)
def test_a_tokenizer_names_the_entry(changed, message):
    assert BytePairs.from_gguf(TOKENIZER).encode("ab").tolist() == [3]
    changed = {f"tokenizer.ggml.{k}": v for k, v in changed.items()}
    with pytest.raises(ValueError, match=message):
        BytePairs.from_gguf(TOKENIZER | changed)
