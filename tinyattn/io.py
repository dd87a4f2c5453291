"""Weight files in the safetensors format, and checkpoints from which training resumes exactly.

The format: 8 bytes with the length of the header, the header (JSON: for each name the dtype, the
shape and where its bytes stand), then the bytes of all arrays, little-endian, without gaps.
Source: https://github.com/huggingface/safetensors, "Format".
"""

import json
import math
import os
import secrets
from pathlib import Path

import numpy as np

from tinyattn.autograd import Tensor

DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?", "C64": "<c8",
}  # fmt: skip
NAMES = {np.dtype(v): k for k, v in DTYPES.items()}
MAX_HEADER = 100_000_000  # as in the format's own reader


def save(path, tensors, metadata=None):
    """Write {name: Tensor or array} to a safetensors file: whole, or not at all.

    The file is written beside its place and then moved there in one step, so that a crash or a
    full disk leaves an older file as it was. metadata: {string: string}.
    """
    arrays = {}
    for name, value in tensors.items():
        if not isinstance(name, str):
            raise TypeError(f"save: names are strings, got {name!r}")
        array = np.asarray(value.data if isinstance(value, Tensor) else value)
        if array.dtype.newbyteorder("<") not in NAMES or name == "__metadata__":
            raise TypeError(
                f"save: {name!r} is of type {array.dtype}, expected one of "
                f"{', '.join(str(d) for d in NAMES)}"
            )
        arrays[name] = np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
    header, offset = {}, 0
    if metadata:
        if not all(isinstance(s, str) for pair in metadata.items() for s in pair):
            raise TypeError("save: metadata must map strings to strings")
        header["__metadata__"] = metadata
    # wide elements first, so that every array starts at a multiple of its element's size
    order = sorted(arrays, key=lambda n: (-arrays[n].dtype.itemsize, n))
    for name in order:
        a = arrays[name]
        ends = [offset, offset + a.nbytes]
        header[name] = {"dtype": NAMES[a.dtype], "shape": list(a.shape), "data_offsets": ends}
        offset += a.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    write_whole(path, [len(text).to_bytes(8, "little"), text, *(arrays[n].data for n in order)])


def write_whole(path, parts):
    """Write the bytes of all parts to `path`, or leave what was there untouched."""
    path = Path(path)
    beside = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    with open(beside, "xb") as file:  # "x": a file of our own, readable for whom the system allows
        try:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
            file.close()  # before the move, for Windows
            os.replace(beside, path)
        except BaseException:
            file.close()
            os.unlink(beside)
            raise


def load(path):
    """{name: array} of a safetensors file. bfloat16 comes as float32, which holds it exactly."""
    return _read(path)[0]


def _read(path):
    path = Path(path)
    content = path.read_bytes()
    header = _header(path, content)
    body = memoryview(content)[8 + int.from_bytes(content[:8], "little") :]
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        _broken(path, "its metadata are not strings")
    arrays, end = {}, 0
    by_place = sorted(header, key=lambda n: _place(path, n, header[n]))
    for name in by_place:
        entry = header[name]
        start, stop = _place(path, name, entry)
        if start != end or stop > len(body):
            _broken(path, f"the bytes of {name!r} are at {start}-{stop}, expected from {end} on, "
                          f"within {len(body)}")  # fmt: skip
        end = stop
        arrays[name] = _array(path, name, entry, body[start:stop])
    if end != len(body):
        _broken(path, f"{len(body) - end} bytes at the end belong to no array")
    return {name: arrays[name] for name in header}, metadata


def _header(path, content):
    size = int.from_bytes(content[:8], "little")
    if len(content) < 8 or size > min(len(content) - 8, MAX_HEADER):
        _broken(path, f"it says that its header has {size} bytes, but it has {len(content)} in all")
    try:
        header = json.loads(content[8 : 8 + size], object_pairs_hook=_no_duplicates)
    except (ValueError, RecursionError) as error:
        _broken(path, f"its header cannot be read ({error})")
    if not isinstance(header, dict):
        _broken(path, "its header is not a table of arrays")
    return header


def _no_duplicates(pairs):
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a name occurs twice")
    return dict(pairs)


def _place(path, name, entry):
    try:
        start, stop = entry["data_offsets"]
        if not (type(start) is type(stop) is int and 0 <= start <= stop):  # a bool is no number
            raise ValueError
    except (KeyError, TypeError, ValueError):
        _broken(path, f"the entry of {name!r} has no valid data_offsets")
    return start, stop


def _array(path, name, entry, raw):
    kind, shape = entry.get("dtype"), entry.get("shape")
    if not isinstance(kind, str) or (kind not in DTYPES and kind != "BF16"):
        _broken(path, f"{name!r} has the unknown dtype {kind!r}")
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
        _broken(path, f"{name!r} has the invalid shape {shape!r}")
    dtype = np.dtype("<u2" if kind == "BF16" else DTYPES[kind])
    if math.prod(shape) * dtype.itemsize != len(raw):
        _broken(path, f"{name!r} has shape {shape} of {kind}, but {len(raw)} bytes")
    array = np.frombuffer(raw, dtype)
    if kind == "BF16":  # the upper half of a float32
        array = (array.astype(np.uint32) << 16).view(np.float32)
    try:
        return array.astype(array.dtype.newbyteorder("=")).reshape(shape)
    except ValueError as error:  # more axes or longer ones than NumPy has
        _broken(path, f"{name!r} has the invalid shape {shape!r} ({error})")


def _broken(path, why):
    raise ValueError(f"load: {path} is not a whole safetensors file: {why}")


# ---------------------------------------------------------------- checkpoints


def save_checkpoint(path, module, optimizer, step=0, rng=None):
    """Write all that training needs to go on from here: weights, optimizer, step, generator."""
    tensors = {f"module.{k}": v for k, v in module.state_dict().items()}
    tensors |= {f"optimizer.{k}": v for k, v in optimizer.state_dict().items()}
    metadata = {"step": str(step)}
    if rng is not None:
        state = rng.bit_generator.state  # some kinds keep arrays in it
        metadata["rng"] = json.dumps(state, default=np.ndarray.tolist)
    save(path, tensors, metadata)


def load_checkpoint(path, module, optimizer, rng=None):
    """Put everything back into module, optimizer and rng; returns the step."""
    tensors, metadata = _read(path)
    if "step" not in metadata:
        raise ValueError(f"load_checkpoint: {path} holds weights only; use ta.load")
    if rng is not None and "rng" not in metadata:
        raise ValueError(f"load_checkpoint: {path} was saved without the state of a generator")
    state = None if rng is None else json.loads(metadata["rng"])
    if state is not None and state["bit_generator"] != rng.bit_generator.state["bit_generator"]:
        raise ValueError(
            f"load_checkpoint: {path} was saved with a generator of kind "
            f"{state['bit_generator']}, got {rng.bit_generator.state['bit_generator']}"
        )
    parts = {"module": {}, "optimizer": {}}
    for name, array in tensors.items():
        kind, _, rest = name.partition(".")
        if kind not in parts:
            raise ValueError(f"load_checkpoint: {path} is no checkpoint, it holds {name!r}")
        parts[kind][rest] = array
    before = module.state_dict()
    module.load_state_dict(parts["module"])
    try:
        optimizer.load_state_dict(parts["optimizer"])
    except Exception:
        module.load_state_dict(before)  # all or nothing
        raise
    if state is not None:
        rng.bit_generator.state = state
    return int(metadata["step"])
