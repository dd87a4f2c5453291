"""Read damaged files (valid files with random changes), and test that errors are as documented.

    python -m tests.scripts.fuzz_files 100000        so many of each kind
    python -m tests.scripts.fuzz_files 100000 gguf   of one kind

Reading a file must give a result, or an exception of a documented kind with a message that names
the file. In this case, the object to be changed must be the same as before. Memory (as counted by
tracemalloc) may be a few times the size of the file, and the time must be less than a second.
`test_fuzz_files.py` tests a sample.
"""

import pickle
import struct
import sys
import tempfile
import time
import tracemalloc
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

import tinyattn as ta
from tests.models.gguf_files import write_gguf
from tinyattn import nn, optim
from tinyattn.data.tokenizers import BytePairs, WordPiece
from tinyattn.io import load_checkpoint, save_checkpoint
from tinyattn.models import Llama, gguf

SECONDS = 1.0  # of the processor, for one file

# ---------------------------------------------------------------- valid files


def safetensors_files(folder):
    rng = np.random.default_rng(0)
    kinds = {"a": "f8", "bias": "f4", "c.weight": "f2", "d": "i8", "e": "i1", "f": "?", "g": "c8"}
    arrays = {n: (rng.normal(size=(2, 3)) * 9).astype(k) for n, k in kinds.items()}
    ta.save(folder / "1", arrays | {"empty": np.zeros((0, 4)), "number": np.array(2.5)})
    ta.save(folder / "2", {"w": rng.normal(size=(50, 40))}, {"who": "x", "why": "[1, 2]"})
    ta.save(folder / "3", {})
    ta.save(folder / "4", {f"layers.{i}.bias": np.zeros(i % 3) for i in range(200)})


def trained(seed, make=optim.Adam, bits=np.random.PCG64):
    """Return a module, an optimizer and a generator after a training step."""
    # more numbers than header, else hardly any change is one of a number
    module = nn.Sequential(nn.Linear(16, 64, rng=seed), nn.BatchNorm1d(64))
    optimizer, rng = make(module.parameters()), np.random.Generator(bits(seed))
    for p in module.parameters():
        p.grad = rng.normal(size=p.shape).astype(np.float32)
    optimizer.step()
    return module, optimizer, rng


MAKERS = [
    (optim.Adam, np.random.PCG64),
    (lambda p: optim.SGD(p, momentum=0.9), np.random.MT19937),
    (lambda p: optim.RMSprop(p, momentum=0.5, centered=True), np.random.Philox),
]


def checkpoint_files(folder):
    for i, (make, bits) in enumerate(MAKERS):
        module, optimizer, rng = trained(0, make, bits)
        save_checkpoint(folder / str(i), module, optimizer, step=7, rng=rng)


def gguf_files(folder):
    rng = np.random.default_rng(0)
    raw = rng.integers(256, size=4096, dtype=np.uint8).tobytes()
    tensors = {n: (k, (3, s), raw[: 3 * b]) for k, (n, s, b, _) in gguf.BLOCKS.items()}
    entries = {"general.alignment": 32, "words": ["a", "é", ""], "kinds": np.arange(3), "eps": 1e-5}
    write_gguf(folder / "1", entries, tensors | {"matrix": rng.normal(size=(4, 5))})
    write_gguf(folder / "2", {}, {"x": rng.normal(size=(7, 60))}, version=2)
    write_gguf(folder / "3", {"general.architecture": "llama"}, {})
    many = {"tokens": [f"t{i}" for i in range(1000)], "scores": rng.integers(9, size=1000)}
    write_gguf(folder / "4", many, {"w": (2, (64, 1024), raw * 9)})


def llama_files(folder):
    tokens = ["<|end|>", "a", "Ġ", "b", "Ġa", "ab", "Ċ", "1"]
    entries = {
        "general.architecture": "llama",
        "llama.context_length": 10,
        "llama.attention.head_count": 2,
        "llama.attention.head_count_kv": 1,
        "llama.rope.freq_base": 500.0,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": np.array([3, 1, 1, 1, 1, 1, 1, 1]),
        "tokenizer.ggml.merges": ["Ġ a", "a b"],
        "tokenizer.ggml.unknown_token_id": 0,
    }
    shapes = {
        "token_embd": (8, 4),
        "output_norm": (4,),
        "blk.0.attn_norm": (4,),
        "blk.0.ffn_norm": (4,),
        "blk.0.attn_q": (4, 4),
        "blk.0.attn_k": (2, 4),
        "blk.0.attn_v": (2, 4),
        "blk.0.attn_output": (4, 4),
        "blk.0.ffn_gate": (6, 4),
        "blk.0.ffn_up": (6, 4),
        "blk.0.ffn_down": (4, 6),
    }
    rng = np.random.default_rng(0)
    tensors = {f"{name}.weight": rng.normal(size=shape) for name, shape in shapes.items()}
    write_gguf(folder / "1", entries, tensors)


def vocabulary_files(folder):
    marks, pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"], ["un", "##aff", "##able", "é", "東", "!"]
    for i, end in enumerate(("\n", "\r\n")):
        (folder / str(i)).write_bytes(end.join([*marks, *pieces, ""]).encode())
    (folder / "2").write_bytes("\n".join([*marks, *map(str, range(2000))]).encode())


# ---------------------------------------------------------------- reading them


def read_safetensors(path, content):
    for array in ta.load(path).values():
        assert isinstance(array, np.ndarray)


def read_checkpoint(path, content):
    """For each kind of optimizer and generator: everything, or nothing."""
    # PCG64 is in every file: the default generator is of this kind
    which = next((i for i, word in ((1, b"MT19937"), (2, b"Philox")) if word in content), 0)
    module, optimizer, rng = trained(1, *MAKERS[which])

    def state():
        arrays = module.state_dict() | {f"o.{k}": v for k, v in optimizer.state_dict().items()}
        return {k: v.tobytes() for k, v in arrays.items()}, pickle.dumps(rng.bit_generator.state)

    before = state()
    try:
        step = load_checkpoint(path, module, optimizer, rng)
    except Exception:
        assert state() == before, "something was changed"
        raise
    assert type(step) is int
    rng.random(), rng.integers(9), rng.normal()
    for p in module.parameters():
        p.grad = np.ones_like(p.data)
    with np.errstate(all="ignore"):
        optimizer.step()


def read_gguf(path, content):
    for array in gguf.read(path).tensors.values():
        assert array.dtype == np.float32


def read_llama(path, content):
    file = gguf.read(path)
    try:
        tokenizer = BytePairs.from_gguf(file.metadata)
    except ValueError as error:
        if "BytePairs.from_gguf: " not in str(error):  # it has no file, so it names the entry
            raise
        raise ValueError(f"{path}: {error}") from None
    assert isinstance(tokenizer.decode(np.arange(len(tokenizer))), str)
    Llama.from_gguf(path)


def read_vocabulary(path, content):
    tokenizer = WordPiece(path)
    tokenizer.decode(tokenizer.encode("unaffable é東!", "12 345"))


class Kind(NamedTuple):
    make: object  # writes valid files into a folder
    read: object  # (path, content): reads one
    errors: tuple  # what reading may raise
    memory: float  # bytes for a byte of the file
    slack: int = 60_000  # and bytes that any file may take: messages, parts of Python


KINDS = {
    "safetensors": Kind(safetensors_files, read_safetensors, (ValueError,), 12),
    "checkpoint": Kind(checkpoint_files, read_checkpoint, (ValueError, KeyError), 12, 160_000),
    "gguf": Kind(gguf_files, read_gguf, (ValueError,), 10),  # 4 bits become 32
    "llama": Kind(llama_files, read_llama, (ValueError,), 10, 160_000),
    # a line becomes a string and an entry of two tables, however short it is
    "vocabulary": Kind(vocabulary_files, read_vocabulary, (ValueError,), 100),
}

# ---------------------------------------------------------------- changing them

NUMBERS = [0, 1, 2, 3, 7, 8, 31, 33, 255, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 + 1,
           2**62, 2**63 - 1, 2**63, 2**64 - 1]  # fmt: skip
WORDS = [
    b"[",
    b"]",
    b"{",
    b"}",
    b"[]",
    b"{}",
    b",",
    b":",
    b'"',
    b"\\",
    b"null",
    b"true",
    b"-1",
    b"1.5",
    b"1e999",
    b"NaN",
    b"\n",
    b"\r",
    b"\0",
    b"\xff",
    "é".encode(),
    b"F32",
    b"BF16",
    b"BOOL",
    b'"shape"',
    b'"data_offsets"',
    b'"__metadata__"',
    b"[PAD]",
    b"##",
    b" ",
]


def mutated(content, others, rng):
    """Return the bytes after one to five changes."""
    for _ in range(1 + rng.integers(5)):
        content = CHANGES[rng.integers(len(CHANGES))](content, others, rng)
    size = len(content) - 8
    if rng.random() < 0.7 and size > 0 and b"{" in content[:9]:  # else few headers have an end
        old = int.from_bytes(content[:8], "little")
        end = content.rfind(b"}", 0, min(len(content), old + 50)) + 1
        content = struct.pack("<Q", max(end - 8, 0)) + content[8:]
    return content


def _place(content, rng):
    """Return a random position, more often near the beginning, where the header is."""
    return int(len(content) * rng.random() ** (1 + 2 * rng.integers(2)))


def _bit(content, others, rng):
    if not content:
        return content
    i = min(_place(content, rng), len(content) - 1)
    return content[:i] + bytes([content[i] ^ (1 << rng.integers(8))]) + content[i + 1 :]


def _number(content, others, rng):
    i, n = _place(content, rng), NUMBERS[rng.integers(len(NUMBERS))]
    raw = struct.pack("<Q", n)[: [1, 4, 8][rng.integers(3)]]
    return content[:i] + raw + content[i + len(raw) :]


def _digits(content, others, rng):
    """Replace a number that is written in digits."""
    i = _place(content, rng)
    while i < len(content) and not 48 <= content[i] < 58:
        i += 1
    j = i
    while j < len(content) and 48 <= content[j] < 58:
        j += 1
    new = str(NUMBERS[rng.integers(len(NUMBERS))]) if rng.random() < 0.9 else "9" * 5000
    return content[:i] + new.encode() + content[j:]


def _word(content, others, rng):
    i, word = _place(content, rng), WORDS[rng.integers(len(WORDS))]
    times = 1 if rng.random() < 0.9 else int(rng.integers(2000))
    return content[:i] + word * times + content[i + rng.integers(2) * len(word) :]


def _cut(content, others, rng):
    i = _place(content, rng)
    return content[:i] + content[i + rng.integers(1, 40) :]


def _end(content, others, rng):
    return content[: _place(content, rng)]


def _repeat(content, others, rng):
    i, n = _place(content, rng), int(rng.integers(1, 200))
    return content[: i + n] * (1 if rng.random() < 0.5 else 2) + content[i:]


def _splice(content, others, rng):
    other = others[rng.integers(len(others))]
    return content[: _place(content, rng)] + other[_place(other, rng) :]


CHANGES = [_bit, _bit, _number, _number, _digits, _digits, _word, _cut, _end, _repeat, _splice]

# ---------------------------------------------------------------- the run


class Outcome(NamedTuple):
    read: int
    refused: int
    seconds: float  # of the slowest
    memory: float  # bytes for a byte of the file, beyond the slack, of the worst
    faults: list  # (number of the file, what was wrong)


def run(name, n, seed=0, folder=None):
    """Read n changed files of a kind. File i depends on the seed and i only."""
    if folder is None:
        with tempfile.TemporaryDirectory() as made:
            return run(name, n, seed, made)
    kind, folder = KINDS[name], Path(folder)
    valid = _valid(kind, folder)
    read, slowest, most, faults = 0, 0.0, 0.0, []
    tracemalloc.start()
    try:
        for i in range(n):
            rng = np.random.default_rng([seed, i])
            content = mutated(valid[rng.integers(len(valid))], valid, rng)
            fine, fault, seconds, memory = _attempt(kind, folder / "mutated file", content)
            read, slowest, most = read + fine, max(slowest, seconds), max(most, memory)
            faults += [(i, fault)] if fault else []
    finally:
        tracemalloc.stop()
    return Outcome(read, n - read, slowest, most, faults)


def _valid(kind, folder):
    """Return the bytes of valid files."""
    kind.make(folder)
    contents = [path.read_bytes() for path in sorted(folder.iterdir())]
    for content in contents:
        fine, fault, *_ = _attempt(kind, folder / "valid file", content)
        assert fine and not fault, fault
    return contents


def _attempt(kind, path, content):
    """Return (whether it was read, what is wrong or None, seconds, memory) of one file."""
    path.write_bytes(content)
    fine, fault = False, None
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of numbers that do not fit into float32
            kind.read(path, content)
        fine = True
    except kind.errors as error:
        if str(path) not in str(error):
            fault = f"the message does not name the file: {error!r}"
    except Exception as error:
        fault = f"not documented: {error!r}"
    seconds = time.process_time() - start
    peak = tracemalloc.get_traced_memory()[1] - before
    memory = max(0, peak - kind.slack) / max(len(content), 1)
    if fault is None and seconds > SECONDS:
        fault = f"{seconds:.1f} s"
    if fault is None and memory > kind.memory:
        fault = f"{peak} bytes for a file of {len(content)}"
    return fine, fault, seconds, memory


def main(n, *names):
    failed = False
    for name in names or KINDS:
        found = run(name, int(n))
        failed |= bool(found.faults)
        print(
            f"{name:12} {n} files: {found.read} read, {found.refused} refused, "
            f"{len(found.faults)} faults; slowest {found.seconds:.3f} s, "
            f"most memory {found.memory:.1f} bytes a byte",
            flush=True,
        )
        for i, fault in found.faults[:20]:
            print(f"    file {i}: {fault[:300]}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
