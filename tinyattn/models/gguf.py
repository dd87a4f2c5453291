"""Reading GGUF, the file format in which language models for laptops are handed around.

The format, version 2 and 3, little-endian: "GGUF", version, number of tensors, number of entries;
then the entries (key, type, value) with sizes and vocabulary; then for each tensor name, axes (the
last one first), type and place; then, from a multiple of the alignment on, the numbers. Most are
rounded to few bits in blocks of 32 that share a scale.
Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

import mmap
import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np

SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
STRING, ARRAY = 8, 9


class GGUF(NamedTuple):
    """What a file holds: {key: value} and {name: array}."""

    metadata: dict
    tensors: dict


def read(path):
    """The metadata and all tensors of a GGUF file, as float32, axes in NumPy's order."""
    path = Path(path)
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        reader = _Reader(path, content)
        metadata, infos = reader.header()
        alignment = metadata.get("general.alignment", 32)
        start = -(-reader.at // alignment) * alignment
        tensors = {name: reader.tensor(start + place, shape, kind, name)
                   for name, (shape, kind, place) in infos.items()}  # fmt: skip
    return GGUF(metadata, tensors)


class _Reader:
    """A place in the file that moves on with everything that is read."""

    def __init__(self, path, content):
        self.path, self.content, self.at = path, content, 0

    def header(self):
        if self.bytes(4) != b"GGUF":
            self.broken("it does not begin with GGUF")
        version = self.number("I")
        if version not in (2, 3):
            self.broken(f"its version is {version}; 2 and 3 can be read")
        num_tensors, num_entries = self.number("Q"), self.number("Q")
        metadata = {self.string(): self.value(self.number("I")) for _ in range(num_entries)}
        infos = {}
        for _ in range(num_tensors):
            name, axes = self.string(), self.number("I")
            shape = tuple(self.number("Q") for _ in range(axes))[::-1]
            infos[name] = shape, self.number("I"), self.number("Q")
        return metadata, infos

    def bytes(self, n):
        if self.at + n > len(self.content):
            self.broken(f"it ends at byte {len(self.content)}, in the middle of something")
        self.at += n
        return self.content[self.at - n : self.at]

    def number(self, code):
        return struct.unpack("<" + code, self.bytes(struct.calcsize("<" + code)))[0]

    def string(self):
        return self.bytes(self.number("Q")).decode("utf-8", errors="replace")

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            of, n = self.number("I"), self.number("Q")
            if of in SCALARS:
                code = np.dtype(SCALARS[of]).newbyteorder("<")
                return np.frombuffer(self.bytes(n * code.itemsize), code)
            return [self.value(of) for _ in range(n)]
        if kind not in SCALARS:
            self.broken(f"an entry has the unknown type {kind}")
        return self.number(SCALARS[kind])

    def tensor(self, place, shape, kind, name):
        if kind not in BLOCKS:
            known = ", ".join(BLOCKS[k][0] for k in BLOCKS)
            self.broken(f"{name} is stored as type {kind}; known are {known}")
        _, size, nbytes, unpack = BLOCKS[kind]
        n = int(np.prod(shape, dtype=np.int64))
        if n % size:
            self.broken(f"{name} {shape} does not consist of blocks of {size}")
        self.at = place
        raw = np.frombuffer(self.bytes(n // size * nbytes), np.uint8).reshape(-1, nbytes)
        return unpack(raw).reshape(shape)

    def broken(self, why):
        raise ValueError(f"gguf: {self.path} cannot be read: {why}")


# ---------------------------------------------------------------- blocks [N, bytes] -> [N, numbers]


def _half(raw):
    """Two bytes of each block as a number, [N, 1]."""
    return np.ascontiguousarray(raw).view("<f2").astype(np.float32)


def _nibbles(raw):
    """The lower halves of all bytes, then the upper ones."""
    return np.concatenate([raw & 15, raw >> 4], axis=1)


def _plain(dtype):
    return lambda raw: np.ascontiguousarray(raw).view(dtype).astype(np.float32)


def _bf16(raw):
    """The upper half of a float32."""
    return (np.ascontiguousarray(raw).view("<u2").astype(np.uint32) << 16).view(np.float32)


def _q4_0(raw):
    """x = d (q - 8), q of 4 bits"""
    return _half(raw[:, :2]) * (_nibbles(raw[:, 2:]).astype(np.float32) - 8)


def _q4_1(raw):
    """x = d q + m, q of 4 bits"""
    return _half(raw[:, :2]) * _nibbles(raw[:, 4:]) + _half(raw[:, 2:4])


def _fifth_bits(raw):
    """32 bits of each block, times 16."""
    return np.unpackbits(raw, axis=1, bitorder="little") << 4


def _q5_0(raw):
    """x = d (q - 16), q of 5 bits, the highest ones apart"""
    q = _nibbles(raw[:, 6:]) | _fifth_bits(raw[:, 2:6])
    return _half(raw[:, :2]) * (q.astype(np.float32) - 16)


def _q5_1(raw):
    """x = d q + m, q of 5 bits, the highest ones apart"""
    q = _nibbles(raw[:, 8:]) | _fifth_bits(raw[:, 4:8])
    return _half(raw[:, :2]) * q + _half(raw[:, 2:4])


def _q8_0(raw):
    """x = d q, q a signed byte"""
    return _half(raw[:, :2]) * np.ascontiguousarray(raw[:, 2:]).view(np.int8)


def _q6_k(raw):
    """x = d s (q - 32): 256 numbers of 6 bits, a scale s for each 16 of them."""
    low, high = raw[:, :128].reshape(-1, 2, 64), raw[:, 128:192].reshape(-1, 2, 32)
    scale = np.ascontiguousarray(raw[:, 192:208]).view(np.int8).astype(np.float32)
    low = np.concatenate([low & 15, low >> 4], axis=2).reshape(-1, 2, 4, 32)
    high = np.stack([(high >> shift) & 3 for shift in (0, 2, 4, 6)], axis=2)  # [N, 2, 4, 32]
    q = (low | (high << 4)).astype(np.float32) - 32
    return (q.reshape(-1, 16, 16) * scale[..., None]).reshape(-1, 256) * _half(raw[:, 208:])


# type: (name, numbers in a block, bytes of a block, how it is unpacked)
BLOCKS = {
    0: ("F32", 1, 4, _plain("<f4")),
    1: ("F16", 1, 2, _plain("<f2")),
    2: ("Q4_0", 32, 18, _q4_0),
    3: ("Q4_1", 32, 20, _q4_1),
    6: ("Q5_0", 32, 22, _q5_0),
    7: ("Q5_1", 32, 24, _q5_1),
    8: ("Q8_0", 32, 34, _q8_0),
    14: ("Q6_K", 256, 210, _q6_k),
    30: ("BF16", 1, 2, _bf16),
}
