"""Read GGUF, a file format for language models with weights rounded to few bits.

A file of version 2 or 3 is little-endian and has four parts. The first part is "GGUF", the version,
the number of tensors and the number of entries. The second part consists of the entries (key, type,
value), such as sizes and vocabulary. The third part lists the name, the axes (the last axis first),
the type and the position of each tensor. The fourth part contains the elements of the tensors and
begins at a multiple of the alignment. Most elements are rounded to few bits, in blocks of 32 that
share a scale. Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

import math
import mmap
import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tinyattn.ops.quantized import Q4_1, Q8_0, QuantizedMatrix, halves, nibbles

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
STRING, ARRAY, BOOL = 8, 9, 7
SIZE = struct.Struct("<Q")
MAX_AXES = 4  # the limit of the library that defines the format
MAX_ALIGNMENT = 2**20
MOST_AT_ONCE = 2**13  # numbers that are unpacked together, few enough to stay in the cache


class GGUF(NamedTuple):
    """The contents of a GGUF file.

    Attributes:
        metadata   {key: value}, such as sizes and the vocabulary
        tensors    {name: array or QuantizedMatrix}
        path       path of the file, for error messages
    """

    metadata: dict
    tensors: dict
    path: str = "the file"

    def entry(self, key, kind, default=None):
        """Return the value of a key in the metadata.

        Args:
            key       name of the entry
            kind      str for a string, float for any number, or int for a whole number >= 1
            default   value if the key is missing. If None, a missing key is an error

        Raises:
            ValueError: the key is missing and has no default, or the value is not of this kind
        """
        value = self.metadata.get(key, default)
        fits = {str: str, float: int | float, int: int}[kind]
        if not isinstance(value, fits) or isinstance(value, bool) or (kind is int and value < 1):
            expected = {str: "a string", float: "a number", int: "a whole number >= 1"}[kind]
            found = "missing" if value is None else _short(value)
            raise ValueError(f"gguf: {self.path}: {key} is {found}, expected {expected}")
        return value


def read(path):
    """Read the metadata and all tensors of a GGUF file.

    Before any array is created, all sizes and positions are compared with the length of the file.

    Args:
        path   path of the file

    Returns:
        a `GGUF`, in which all tensors are arrays in float32. Their axes are in NumPy's order, so a
        weight is [out, in]

    Raises:
        FileNotFoundError: there is no such file
        ValueError: the file is damaged or has a feature that is not supported. The error names the
            file and the reason
    """
    path = Path(path)
    metadata, places, reader = _opened(path, _content(path, mmap.ACCESS_READ))
    tensors = {name: reader.tensor(*place) for name, place in places.items()}
    return GGUF(metadata, tensors, str(path))


def mapped(path):
    """Read a GGUF file like `read`, but keep matrices of types Q4_1 and Q8_0 quantized.

    The bytes of these matrices are read from the file on first use, and stay in the file cache of
    the operating system.

    Args:
        path   path of the file

    Returns:
        a `GGUF`, in which these matrices are `QuantizedMatrix`, and all other tensors float32

    Raises:
        FileNotFoundError: as in `read`
        ValueError: as in `read`
    """
    path = Path(path)
    content = _content(path, mmap.ACCESS_COPY)  # processes share its pages until one of them writes
    metadata, places, reader = _opened(path, content)
    tensors = {}
    for name, place in places.items():
        kind = IN_BLOCKS.get(place.kind) if len(place.shape) == 2 else None
        if kind is None:
            tensors[name] = reader.tensor(*place)
            continue
        raw = np.frombuffer(content, np.uint8, place.stop - place.start, place.start)
        rows, columns = place.shape
        tensors[name] = QuantizedMatrix(kind, raw.reshape(rows, columns // 32, kind.nbytes))
    return GGUF(metadata, tensors, str(path))


def _content(path, access):
    """Return the bytes of a file, mapped into memory or, if the system cannot map it, as a copy."""
    with open(path, "rb") as file:
        if not file.read(1):
            _broken(path, "it is empty")
        try:
            return mmap.mmap(file.fileno(), 0, access=access)
        except OSError:
            file.seek(0)
            return bytearray(file.read())


def _opened(path, content):
    """Read the header in `content`, and return (metadata, {name: _Place}, reader)."""
    reader = _Reader(path, content)
    metadata, infos = reader.header()
    return metadata, reader.places(infos, reader.first_tensor(metadata)), reader


class _Place(NamedTuple):
    """The position of a tensor in the file, its shape and its type."""

    start: int
    stop: int
    shape: tuple
    kind: int


class _Reader:
    """A reader that starts at the beginning of a file. `at` is the position of the next byte."""

    def __init__(self, path, content):
        self.path, self.content, self.at = path, content, 0

    def header(self):
        """Read the entries and the list of tensors, and return both as dictionaries.

        They are {key: value} and {name: (shape, type, position)}.
        """
        if self.bytes(4) != b"GGUF":
            self.broken("it does not begin with GGUF")
        version = self.number("I")
        if version not in (2, 3):
            self.broken(f"its version is {version}, but only versions 2 and 3 are supported")
        num_tensors, num_entries = self.number("Q"), self.number("Q")
        metadata, infos = {}, {}
        for _ in range(num_entries):
            key = self.new_name(metadata, "entry")
            metadata[key] = self.value(self.number("I"), key)
        for _ in range(num_tensors):
            name, axes = self.new_name(infos, "tensor"), self.number("I")
            if axes > MAX_AXES:
                self.broken(f"{name} has {axes} axes, but at most {MAX_AXES} are possible")
            shape = tuple(self.number("Q") for _ in range(axes))[::-1]
            infos[name] = shape, self.number("I"), self.number("Q")
        return metadata, infos

    def first_tensor(self, metadata):
        """Return the position of the first tensor. Positions in the header are relative to it."""
        alignment = metadata.get("general.alignment", 32)
        if type(alignment) is not int or alignment not in ALIGNMENTS:
            self.broken(
                f"general.alignment is {_short(alignment)}, expected a power of two up to "
                f"{MAX_ALIGNMENT}"
            )
        self.alignment = alignment
        return -(-self.at // alignment) * alignment

    def places(self, infos, start):
        """Return {name: _Place}. Tensors that overlap or exceed the file are an error."""
        found = {name: self.place(name, start, *info) for name, info in infos.items()}
        end, before = start, None
        for name, place in sorted(found.items(), key=lambda pair: pair[1][:2]):
            if place.start < end:
                self.broken(f"{before} and {name} share bytes")
            if place.stop > len(self.content):
                self.broken(
                    f"it ends at byte {len(self.content)}, in the middle of {name}, which "
                    f"is stored at {place.start}-{place.stop}"
                )
            end, before = place.stop, name
        return found

    def place(self, name, start, shape, kind, offset):
        if kind not in BLOCKS:
            known = ", ".join(BLOCKS[k][0] for k in BLOCKS)
            self.broken(f"{name} is stored as type {kind}, but the known types are {known}")
        if offset % self.alignment:
            self.broken(
                f"{name} is stored at {offset}, which is not a multiple of {self.alignment}"
            )
        _, size, nbytes, _ = BLOCKS[kind]
        # an empty tensor has no bytes, but NumPy must be able to count its other axes
        if math.prod(max(n, 1) for n in shape) >= 2**60:
            self.broken(f"{name} {shape} has more numbers than a file can contain")
        if (shape[-1] if shape else 1) % size:
            self.broken(f"{name} {shape} does not consist of blocks of {size}")
        length = math.prod(shape) // size * nbytes
        return _Place(start + offset, start + offset + length, shape, kind)

    def tensor(self, start, stop, shape, kind):
        """Return the elements of a tensor, unpacked a few blocks at a time to save memory."""
        _, size, nbytes, unpack = BLOCKS[kind]
        out = np.empty((math.prod(shape) // size, size), np.float32)
        step = MOST_AT_ONCE // size
        for i in range(0, len(out), step):
            raw = self.content[start + i * nbytes : min(stop, start + (i + step) * nbytes)]
            with np.errstate(all="ignore"):  # nan and inf in a file are allowed
                out[i : i + step] = unpack(np.frombuffer(raw, np.uint8).reshape(-1, nbytes))
        return out.reshape(shape)

    # ---- the parts of the header

    def bytes(self, n):
        if self.at + n > len(self.content):
            self.cut_off()
        self.at += n
        return self.content[self.at - n : self.at]

    def number(self, code):
        return struct.unpack("<" + code, self.bytes(struct.calcsize("<" + code)))[0]

    def string(self):
        return self.bytes(self.number("Q")).decode("utf-8", errors="replace")

    def strings(self, n):
        """Return a list of n strings, quickly, because a vocabulary has tens of thousands."""
        found, content, at, end = [], self.content, self.at, len(self.content)
        for _ in range(n):
            if at + 8 > end:
                self.cut_off()
            start = at + 8
            at = start + SIZE.unpack_from(content, at)[0]
            if at > end:
                self.cut_off()
            found.append(content[start:at].decode("utf-8", errors="replace"))
        self.at = at
        return found

    def new_name(self, names, what):
        name = self.string()
        if name in names:
            self.broken(f"the {what} {_short(name)} occurs twice")
        return name

    def value(self, kind, key):
        if kind == STRING:
            return self.string()
        if kind == ARRAY:
            return self.array(key)
        if kind not in SCALARS:
            self.broken(f"{_short(key)} has the unknown type {kind}")
        return self.truth(key) if kind == BOOL else self.number(SCALARS[kind])

    def array(self, key):
        of, n = self.number("I"), self.number("Q")
        if of == ARRAY:
            self.broken(f"{_short(key)} is a list of lists, which is not supported")
        if of == STRING:
            return self.strings(n)
        if of not in SCALARS:
            self.broken(f"{_short(key)} is a list of the unknown type {of}")
        code = np.dtype(SCALARS[of]).newbyteorder("<")
        raw = np.frombuffer(self.bytes(n * code.itemsize), np.uint8)
        if of == BOOL and raw.max(initial=0) > 1:
            self.broken(f"{_short(key)} has truth values other than 0 and 1")
        return raw.view(code)

    def truth(self, key):
        value = self.number("B")
        if value > 1:
            self.broken(f"{_short(key)} has the truth value {value}, expected 0 or 1")
        return bool(value)

    def cut_off(self):
        self.broken(f"it ends at byte {len(self.content)}, in the middle of its header")

    def broken(self, why):
        _broken(self.path, why)


ALIGNMENTS = {2**i for i in range(MAX_ALIGNMENT.bit_length())}


def _short(value):
    """Shorten a value of the file for an error message. A damaged name may be very long."""
    text = repr(value)
    return text if len(text) <= 100 else text[:100] + " …"


def _broken(path, why):
    raise ValueError(f"gguf: {path} cannot be read: {why}")


# ---------------------------------------------------------------- blocks [N, bytes] -> [N, numbers]


def _plain(dtype):
    return lambda raw: np.ascontiguousarray(raw).view(dtype).astype(np.float32)


def _bf16(raw):
    """Return float32 numbers from their upper 16 bits."""
    return (np.ascontiguousarray(raw).view("<u2").astype(np.uint32) << 16).view(np.float32)


def _q4_0(raw):
    """Unpack x = d (q - 8), where q has 4 bits and d is the scale of the block."""
    return halves(raw[:, :2]) * (nibbles(raw[:, 2:]).astype(np.float32) - 8)


def _fifth_bits(raw):
    """Return the fifth bits of the 32 numbers of each block, each bit multiplied by 16."""
    return np.unpackbits(raw, axis=1, bitorder="little") << 4


def _q5_0(raw):
    """Unpack x = d (q - 16), where q has 5 bits and d is the scale of the block.

    The highest bits are stored separately.
    """
    q = nibbles(raw[:, 6:]) | _fifth_bits(raw[:, 2:6])
    return halves(raw[:, :2]) * (q.astype(np.float32) - 16)


def _q5_1(raw):
    """Unpack x = d q + m, where q has 5 bits, d is the scale of the block and m its smallest x.

    The highest bits are stored separately.
    """
    q = nibbles(raw[:, 8:]) | _fifth_bits(raw[:, 4:8])
    return halves(raw[:, :2]) * q + halves(raw[:, 2:4])


def _q6_k(raw):
    """Unpack x = d s (q - 32), with 256 numbers q of 6 bits and a scale s for each 16 of them.

    d is the scale of the block.
    """
    low, high = raw[:, :128].reshape(-1, 2, 64), raw[:, 128:192].reshape(-1, 2, 32)
    scale = np.ascontiguousarray(raw[:, 192:208]).view(np.int8).astype(np.float32)
    low = np.concatenate([low & 15, low >> 4], axis=2).reshape(-1, 2, 4, 32)
    high = np.stack([(high >> shift) & 3 for shift in (0, 2, 4, 6)], axis=2)  # [N, 2, 4, 32]
    q = (low | (high << 4)).astype(np.float32) - 32
    return (q.reshape(-1, 16, 16) * scale[..., None]).reshape(-1, 256) * halves(raw[:, 208:])


IN_BLOCKS = {3: Q4_1, 8: Q8_0}  # types whose matrices need not be unpacked
# type: (name, numbers in a block, bytes of a block, function that unpacks blocks)
BLOCKS = {
    0: ("F32", 1, 4, _plain("<f4")),
    1: ("F16", 1, 2, _plain("<f2")),
    2: ("Q4_0", 32, 18, _q4_0),
    3: ("Q4_1", 32, Q4_1.nbytes, Q4_1.unpack),
    6: ("Q5_0", 32, 22, _q5_0),
    7: ("Q5_1", 32, 24, _q5_1),
    8: ("Q8_0", 32, Q8_0.nbytes, Q8_0.unpack),
    14: ("Q6_K", 256, 210, _q6_k),
    30: ("BF16", 1, 2, _bf16),
}
