"""Broken GGUF files are refused with the reason, before any array is made."""

import itertools
import struct
import sys
import tracemalloc

import numpy as np
import pytest

from tests.models.gguf_files import text, write_gguf
from tinyattn.models import gguf

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
        with pytest.raises(ValueError, match="share bytes"):
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
