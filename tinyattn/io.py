"""Weight files in the safetensors format, and checkpoints from which training resumes exactly.

The format: 8 bytes with the length of the header, the header (JSON: for each name the dtype, the
shape and the position of its bytes), then the bytes of all arrays, little-endian, without gaps.
Source: https://github.com/huggingface/safetensors, "Format".
"""

import copy
import json
import math
import os
import re
import secrets
import stat
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from tinyattn.engine import torch_hints
from tinyattn.engine.autograd import Tensor
from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_range

DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "u1",
    "BOOL": "?",
    "C64": "<c8",
}
NAMES = {np.dtype(v): k for k, v in DTYPES.items()}
MAX_HEADER = 100_000_000  # the same limit as in the format's own reader
MAX_DIGITS = 40  # sizes have 64 bits, and the state of a generator 128
MAX_AXES = 64  # the limit of NumPy
OTHERS = {
    b"PK": "a PyTorch (.pt) or NumPy (.npz) file",
    b"\x93NUMPY": "a NumPy (.npy) file",
    b"\x80": "perhaps a pickle of Python",
    b"\x89HDF": "an HDF5 (.h5) file",
}


def save(path, tensors, metadata=None):
    """Write arrays to a safetensors file, either completely or not at all.

    The file is first written under a temporary name in the same folder and then renamed in one
    step, so a crash or a full disk leaves an existing file unchanged. The new file keeps the
    permissions of the old one, and a symbolic link remains a link. To save everything that is
    needed to resume training, use `save_checkpoint`.

    Args:
        path       path of the file, where a leading ~ means your home folder
        tensors    {name: Tensor or array}, such as module.state_dict()
        metadata   a dictionary {string: string} that is stored with the arrays, or None. Other
                   programs can read it, but `load` does not return it

    Raises:
        TypeError: an argument is of the wrong type, a name is not a string or is "__metadata__", or
            an entry is not an array of numbers or has a dtype that cannot be stored
        OSError: `path` is not a regular file or cannot be written, or its folder does not exist
            (FileNotFoundError)
    """
    entries = tensors.items() if isinstance(tensors, dict) else ()
    nested = [(k, v) for k, v in entries if isinstance(v, dict) or hasattr(v, "state_dict")]
    what = "the values of the dictionary must be arrays"
    if nested:
        name, value = nested[0]
        what += f", but {name!r} is of type {type(value).__name__}"
    if hasattr(tensors, "param_groups"):
        nested, what = True, "expected a dictionary of arrays, got an optimizer"
    if nested:
        raise TypeError(
            f"save: {what}. To save a model and its optimizer, write "
            "tinyattn.io.save_checkpoint(path, model, optimizer), and to continue, "
            "tinyattn.io.load_checkpoint(path, model, optimizer)"
        )
    if not isinstance(path, str | os.PathLike) or not hasattr(tensors, "items"):
        is_model = hasattr(tensors, "state_dict")
        raise TypeError(
            "save: expected a path and a dictionary of arrays such as model.state_dict(), got "
            f"{type(path).__name__} and {type(tensors).__name__}"
            + (". Write save(path, model.state_dict())" if is_model else "")
        )
    path, arrays = Path(path).expanduser(), {}
    for name, value in tensors.items():
        if not isinstance(name, str):
            raise TypeError(f"save: names must be strings, got {name!r}")
        kind = "an array of objects" if hasattr(value, "dtype") else type(value).__name__
        try:
            array = np.asarray(value.data if isinstance(value, Tensor) else value)
        except ValueError:
            array, kind = np.asarray(None), f"a {kind} with rows of different lengths"
        if array.dtype == object:
            raise TypeError(f"save: {name!r} must be an array of numbers, got {kind}")
        if name == "__metadata__":
            raise TypeError(
                "save: '__metadata__' cannot be the name of an array, because the format uses it. "
                "Choose another name, or pass strings as metadata="
            )
        if array.dtype.newbyteorder("<") not in NAMES:
            convert = f"Convert it with .astype to one of {', '.join(str(d) for d in NAMES)}"
            if array.dtype.kind == "c":
                convert = "Convert it with .astype(np.complex64)"
            if array.dtype.kind in "SU":
                convert = "Pass strings as metadata={name: string}"
            raise TypeError(
                f"save: {name!r} has the dtype {array.dtype}, which cannot be stored. {convert}"
            )
        arrays[name] = np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
    header, offset = {}, 0
    if metadata:
        if not isinstance(metadata, dict) or not all(
            isinstance(s, str) for pair in metadata.items() for s in pair
        ):
            raise TypeError(
                "save: metadata must be a dictionary {string: string}. Write numbers as str(number)"
            )
        header["__metadata__"] = metadata
    # Wide elements come first, so that every array starts at a multiple of its element's size.
    order = sorted(arrays, key=lambda n: (-arrays[n].dtype.itemsize, n))
    for name in order:
        a = arrays[name]
        ends = [offset, offset + a.nbytes]
        header[name] = {"dtype": NAMES[a.dtype], "shape": list(a.shape), "data_offsets": ends}
        offset += a.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    chunks = [len(text).to_bytes(8, "little"), text, *(arrays[n].data for n in order)]
    with _errors_of("save"):
        atomic_write(path, chunks)


def atomic_write(path, chunks):
    """Write bytes to a file completely, or leave an existing file untouched.

    The bytes go to a new file in the same folder, which is then renamed in one step. A program that
    reads the file therefore gets the old file or the new one, but never a part of it.

    Args:
        path     path of the file, a string or a path object. A leading ~ has no special meaning
        chunks   list or generator of bytes, which are written one after the other

    Raises:
        TypeError: `path` is not a path, or a chunk is not bytes
        OSError: `path` is not a regular file or cannot be written, or its folder does not exist
            (FileNotFoundError)
    """
    path = Path(os.path.realpath(path))
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"atomic_write: {path.name} cannot be written, because there is no folder "
            f"{path.parent}. Make it first: Path({str(path.parent)!r}).mkdir(parents=True)"
        )
    mode = _mode(path)
    beside = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
    try:
        # "x" creates a new file with the permissions of the system
        with open(beside, "xb") as file:
            for chunk in chunks:
                if isinstance(chunk, int | str):  # `chunks` is bytes or a text instead of a list
                    raise TypeError(
                        "atomic_write: chunks must be a list or generator of bytes, got an element "
                        f"of type {type(chunk).__name__}. Write [data], or [text.encode()]"
                    )
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(beside, mode)
        os.replace(beside, path)
    except BaseException:
        # the file does not exist yet, or an interrupt came right after the move
        with suppress(OSError):
            os.unlink(beside)
        raise


def _mode(path):
    """Return the permissions of the file that will be replaced, or None if there is none."""
    try:
        mode = os.lstat(path).st_mode  # a link that remains here refers to itself
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        kinds = {
            stat.S_IFDIR: "a folder",
            stat.S_IFCHR: "a device",
            stat.S_IFBLK: "a device",
            stat.S_IFIFO: "a pipe",
            stat.S_IFSOCK: "a socket",
            stat.S_IFLNK: "a link that leads nowhere",
        }
        kind = kinds.get(stat.S_IFMT(mode), "not a regular file")
        raise OSError(
            f"atomic_write: {path} is {kind}. Choose the name of a regular file, old or new"
        )
    return stat.S_IMODE(mode)


@contextmanager
def _errors_of(name):
    """Let the errors of `atomic_write`, `save` and `load` in a block begin with `name`.

    This is the function that the user called.
    """
    try:
        yield
    except (OSError, TypeError, ValueError) as error:
        start, _, what = str(error).partition(": ")
        if start in ("atomic_write", "save", "load"):
            error.args = (f"{name}: {what}",)
        raise


@torch_hints.with_torch_hints
def load(path):
    """Return the arrays of a safetensors file.

    Numbers in bfloat16 are returned as float32, which holds them exactly.

    Args:
        path   path of the file, where a leading ~ means your home folder

    Returns:
        {name: array}, in the order of the file's header

    Raises:
        TypeError: `path` is neither a string nor a path object
        ValueError: the file is broken or has a different format
        OSError: the file does not exist (FileNotFoundError), is a folder or cannot be read
    """
    return _read(path)[0]


def _read(path):
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"load: path must be the path of a file, got {type(path).__name__}")
    path = Path(path).expanduser()
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(_missing(path)) from None
    except IsADirectoryError:
        raise IsADirectoryError(
            f"load: {path} is a folder. Pass the path of a file in it"
        ) from None
    header = _header(path, content)
    body = memoryview(content)[8 + int.from_bytes(content[:8], "little") :]
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        _broken(path, "its metadata is not a table of strings")
    arrays, end = {}, 0
    by_place = sorted(header, key=lambda n: _place(path, n, header[n]))
    for name in by_place:
        entry = header[name]
        start, stop = _place(path, name, entry)
        if start != end or stop > len(body):
            if start == end:
                why = f"it is cut off, because {_short(name)} needs the bytes {start} to {stop} "
                why += f"after the header, but only {len(body)} exist. Copy or download it again"
            else:
                why = f"the bytes of {_short(name)} begin at {start}, but must begin at {end}, "
                why += "where the previous array ends"
            _broken(path, why)
        end = stop
        arrays[name] = _array(path, name, entry, body[start:stop])
    if end != len(body):
        more = len(body) - end
        rest = "1 byte at the end belongs" if more == 1 else f"{more} bytes at the end belong"
        _broken(path, f"{rest} to no array")
    return {name: arrays[name] for name in header}, metadata


def _missing(path):
    """Return the message for a file that does not exist, with the name of a similar file."""
    if not path.parent.is_dir():
        return f"load: there is no folder {path.parent.absolute()}, so there is no file {path.name}"
    there = {p.name: p.name for p in path.parent.iterdir() if p.is_file()}
    there |= {Path(name).stem: name for name in there.values()}
    near = get_close_matches(path.name, there, 1) or get_close_matches(path.stem, there, 1)
    hint = f": did you mean {there[near[0]]}?" if near else ""
    return f"load: there is no file {path.name} in {path.parent.absolute()}{hint}"


def _header(path, content):
    size = int.from_bytes(content[:8], "little")
    if len(content) < 8 or size > min(len(content) - 8, MAX_HEADER):
        if content.startswith(b"version https://git-lfs"):
            _broken(
                path,
                "it is a pointer of Git LFS, which says where the file is. Get the file itself "
                "with `git lfs pull`, or download it from the web page",
            )
        if content.startswith(b"GGUF"):
            _broken(path, "it is a GGUF file. Read it with tinyattn.models.gguf.read(path)")
        if content[:1000].lstrip().lower().startswith((b"<!doctype html", b"<html")):
            _broken(
                path,
                "it is a web page, probably one with a link to the file. Download the file itself",
            )
        for start, kind in OTHERS.items():
            if content.startswith(start):
                _broken(
                    path,
                    f"it is {kind}. Open it with the library that wrote it, and save its arrays "
                    f"with ta.save(path, arrays)",
                )
        if not content:
            _broken(path, "it is empty")
        with suppress(UnicodeDecodeError):
            if content[:1000].decode("ascii").replace("\n", "").replace("\t", "").isprintable():
                _broken(path, "it is a text file. Read it with np.loadtxt, json or open")
        _broken(
            path,
            f"its first 8 bytes announce a header of {size} bytes, but the file has {len(content)}",
        )
    try:
        header = _json(content[8 : 8 + size])
    except (ValueError, RecursionError) as error:
        _broken(path, f"its header cannot be read ({error})")
    if not isinstance(header, dict):
        _broken(path, "its header is not a table of arrays")
    return header


def _json(text):
    """Return the value of a JSON text, or raise ValueError for repeated names and long numbers."""
    return json.loads(text, object_pairs_hook=_no_duplicates, parse_int=_whole_number)


def _no_duplicates(pairs):
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name appears twice")
    return found


def _whole_number(digits):
    if len(digits) > MAX_DIGITS:  # the time to read a number grows with the square of its digits
        raise ValueError(f"a number has {len(digits)} digits, more than {MAX_DIGITS}")
    return int(digits)


def _place(path, name, entry):
    try:
        start, stop = entry["data_offsets"]
        if not (type(start) is type(stop) is int and 0 <= start <= stop):  # a bool is not a size
            raise ValueError
    except (KeyError, TypeError, ValueError):
        _broken(path, f"the entry of {_short(name)} has no valid data_offsets")
    return start, stop


def _array(path, name, entry, raw):
    kind, shape = entry.get("dtype"), entry.get("shape")
    if not isinstance(kind, str) or (kind not in DTYPES and kind != "BF16"):
        _broken(path, f"{_short(name)} has the unknown dtype {_short(kind)}")
    sizes = isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)
    if not sizes or len(shape) > MAX_AXES:
        _broken(path, f"{_short(name)} has the invalid shape {_short(shape)}")
    dtype = np.dtype("<u2" if kind == "BF16" else DTYPES[kind])
    if math.prod(shape) * dtype.itemsize != len(raw):
        _broken(
            path,
            f"{_short(name)} has shape {_short(shape)} and dtype {kind}, so it needs "
            f"{math.prod(shape) * dtype.itemsize} bytes, but it has {len(raw)}",
        )
    array = np.frombuffer(raw, dtype)
    if kind == "BF16":  # a BF16 number is the upper half of a float32
        array = (array.astype(np.uint32) << 16).view(np.float32)
    try:
        return array.astype(array.dtype.newbyteorder("=")).reshape(shape)
    except ValueError as error:  # an axis is too long, as in [0, 10**30]
        _broken(path, f"{_short(name)} has the invalid shape {_short(shape)} ({error})")


def _short(value):
    """Return a value of the file as a text for messages, shortened, because names may be long."""
    text = repr(value[:100] if isinstance(value, str | list) else value)
    return text if len(text) <= 100 else text[:100] + " …"


def _broken(path, why):
    raise ValueError(f"load: {path} is not a complete safetensors file: {why}")


# ---------------------------------------------------------------- checkpoints


@torch_hints.with_torch_hints
def save_checkpoint(path, module, optimizer, step=0, rng=None):
    """Save everything that is needed to resume training later.

    The checkpoint contains the weights and buffers of the module, the optimizer's state, the step,
    and the states of the random generators. These are the default generator (`ta.seed`), which
    dropout and data.batches use if no rng= is passed, the generators that were passed to layers,
    and `rng`. The checkpoint does not contain other generators, the step_count of a schedule, or
    the class and sizes of the module.

    Args:
        path        path of the file, where a leading ~ means your home folder
        module      the module
        optimizer   its optimizer
        step        number of the current step, a whole number that `load_checkpoint` returns
        rng         your own numpy.random.Generator, whose state is saved too, or None

    Raises:
        TypeError: an argument is of the wrong type, such as a seed instead of a generator
        ValueError: step is below -10¹⁸ or above 10¹⁸
        OSError: `path` is not a regular file or cannot be written, or its folder does not exist
            (FileNotFoundError)
    """
    _check_order("save_checkpoint", path, module, optimizer)
    tensors = {f"module.{k}": v for k, v in module.state_dict().items()}
    tensors |= {f"optimizer.{k}": v for k, v in optimizer.state_dict().items()}
    check_range("save_checkpoint", -(10**18), 10**18, whole=True, step=step)
    _check_rng("save_checkpoint", rng)
    metadata = {"step": str(step)}
    for name, own in _generators(module, rng).items():
        state = own.bit_generator.state  # some generators keep arrays in their state
        metadata[name] = json.dumps(state, default=np.ndarray.tolist)
    with _errors_of("save_checkpoint"):
        save(path, tensors, metadata)


def _check_order(name, path, module, optimizer):
    """Check that a path, a module and an optimizer were given, in this order."""
    if (
        not isinstance(path, str | os.PathLike)
        or not hasattr(optimizer, "param_groups")
        or not hasattr(module, "named_parameters")
    ):
        raise TypeError(
            f"{name}: expected a path, a module and its optimizer, got {type(path).__name__}, "
            f"{type(module).__name__} and {type(optimizer).__name__}. "
            f"Write io.{name}(path, model, optimizer)"
        )


def _check_rng(name, rng):
    if rng is not None and not isinstance(rng, np.random.Generator):
        raise TypeError(
            f"{name}: rng must be a numpy.random.Generator, got {type(rng).__name__}. A seed "
            "has no state. Make a generator with np.random.default_rng(seed), and keep it"
        )


@torch_hints.with_torch_hints
def load_checkpoint(path, module, optimizer, rng=None):
    """Restore everything that `save_checkpoint` saved, and return the step.

    If the file does not fit the module or the optimizer, nothing is changed.

    Args:
        path        path of the file, where a leading ~ means your home folder
        module      a module of the same class and sizes as the saved one
        optimizer   an optimizer of this module, of the same class as the saved one
        rng         your own numpy.random.Generator, which is set to its saved state, or None

    Returns:
        the number of the step that was saved

    Raises:
        ValueError: the file is broken or not a checkpoint, or a saved option of the optimizer is
            outside its range
        ValueError: the file has no state for `rng`, or the state of another kind of generator
        KeyError: the file was saved for a different module or optimizer
        TypeError: an argument is of the wrong type, such as a seed instead of a generator
        OSError: the file does not exist (FileNotFoundError), is a folder or cannot be read
    """
    _check_order("load_checkpoint", path, module, optimizer)
    _check_rng("load_checkpoint", rng)
    with _errors_of("load_checkpoint"):
        tensors, metadata = _read(path)
    step, states = _step(path, metadata), []
    for name, own in _generators(module, rng).items():
        if name in metadata or name == "rng":  # a layer may have had no generator when it was saved
            states.append((own, _state(path, metadata, name, own)))
    parts = {"module": {}, "optimizer": {}}
    for name, array in tensors.items():
        kind, _, rest = name.partition(".")
        if kind not in parts:
            raise ValueError(
                f"load_checkpoint: {path} is not a checkpoint, because it contains {_short(name)}, "
                "which belongs to neither a module nor an optimizer. Read it with ta.load"
            )
        parts[kind][rest] = array
    before = module.state_dict()
    try:
        module.load_state_dict(parts["module"])
        optimizer.load_state_dict(parts["optimizer"])
    except BaseException as error:
        module.load_state_dict(before)
        if isinstance(error, KeyError | ValueError):
            error.args = (f"load_checkpoint: {path} does not fit: {error.args[0]}",)
        raise
    for own, state in states:
        own.bit_generator.state = state
    return step


def _generators(module, rng):
    """Return {name in the file: generator}: the default generator, those of layers, and `rng`."""
    found = {"default_rng": generator()}
    for name, layer in getattr(module, "named_modules", list)():
        for key, value in vars(layer).items():
            if isinstance(value, np.random.Generator):
                found[f"rng of {name}.{key}"] = value
    return found if rng is None else found | {"rng": rng}


def _step(path, metadata):
    step = metadata.get("step")
    if step is None:
        raise ValueError(
            f"load_checkpoint: {path} is not a checkpoint, because it has no step. If it contains "
            "weights, write module.load_state_dict(ta.load(path))"
        )
    if not re.fullmatch(r"-?[0-9]{1,19}", step):
        raise ValueError(
            f"load_checkpoint: {path} has the step {_short(step)}, which is not a whole number"
        )
    return int(step)


def _state(path, metadata, name, rng):
    """Return the state saved as `name`, after a test on a copy of the generator `rng`."""
    if name not in metadata:
        raise ValueError(
            f"load_checkpoint: {path} was saved without rng=, so it contains no state for your "
            "generator. Leave out rng= here too"
        )
    kind, trial = rng.bit_generator.state["bit_generator"], copy.deepcopy(rng.bit_generator)
    try:
        state = _json(metadata[name])
        if state["bit_generator"] == kind:
            trial.state = state
            if not _in_buffers(state, rng.bit_generator.state):
                raise ValueError("its position lies beyond the end of its buffer")
    except (ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError) as error:
        raise ValueError(
            f"load_checkpoint: the generator state in {path} cannot be used "
            f"({_short(str(error))}). Use another checkpoint, or load only the weights from it"
        ) from None
    if state["bit_generator"] != kind:
        raise ValueError(
            f"load_checkpoint: {path} was saved with a {str(state['bit_generator'])[:100]} "
            f"generator, got {kind}. Pass a generator of the saved kind"
        )
    return state


def _in_buffers(state, own):
    """Return whether each position in a saved state is inside its buffer, as NumPy does not check.

    `own` is the present state of the generator, whose buffers have the right lengths.
    """
    inner, own_inner = state["state"], own["state"]
    places = (state, own, "buffer_pos", "buffer"), (inner, own_inner, "pos", "key")
    return all(  # Philox has buffer_pos, the Mersenne twister has pos
        len(found[numbers]) == len(ours[numbers]) and 0 <= found[place] <= len(ours[numbers])
        for found, ours, place, numbers in places
        if place in ours
    )
