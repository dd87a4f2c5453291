"""Compile all kernels in the background on first use, and use NumPy until they are ready.

Compiling all kernels takes a minute or two, once in each installation. You should not have to wait
for this in the first cell of a notebook. Therefore, the first operation that would choose a kernel
starts a process in the background that compiles all kernels, and prints a message. Until this
process has ended, impl="auto" chooses NumPy. Results are the same up to rounding. With
TINYATTN_COMPILE=now in the environment, each kernel is compiled on its first use instead, so that
all results have the same bits. Tests, full runs and the build of notebooks use this setting.
"""

import atexit
import os
import subprocess
import sys
import threading
import time
import zlib
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

HERE = Path(__file__).parents[1]  # the folder of the kernels
SETTING = "TINYATTN_COMPILE"
LONGEST = 900  # seconds between two signs of life, after which other processes stop waiting
PAUSE = 0.25  # seconds between two looks at the disk
TEXT = (
    "tinyattn: compiling the kernels for this machine in the background. This is done only once, "
    "and takes a minute or two. Until they are ready, NumPy computes the same results up to "
    "rounding."
)

_ready = False
_look_again = 0.0  # next time of a look, by time.monotonic()
_process = None
_one_at_a_time = threading.Lock()


def ready():
    """Return whether "auto" may choose a kernel. If needed, the first call starts compiling."""
    global _ready, _look_again
    if not _ready and time.monotonic() >= _look_again:
        with _one_at_a_time:
            _ready = _ready or _is_ready()
            _look_again = time.monotonic() + PAUSE
    return _ready


def compile_now():
    """Let this process compile each kernel on its first use, and not wait for the background."""
    global _ready
    _ready = True


def _is_ready():
    if os.environ.get(SETTING) == "now" or _cannot_be_compiled() or is_marked():
        return True
    if _process is not None:
        # if the other process ended without the file, this one compiles the remaining kernels
        return _process.poll() is not None
    return not (start() or _somebody_compiles())


def _cannot_be_compiled():
    """Return whether no process can compile, because Numba or a Python executable is missing."""
    try:
        version("numba"), version("llvmlite")
    except PackageNotFoundError:
        return True
    return not sys.executable or getattr(sys, "frozen", False)


def start(say=True):
    """Start a process that compiles all kernels, unless this was done or another process does it.

    Print a message if `say`, and return whether a process was started.
    """
    global _process
    if is_marked() or _somebody_compiles():
        return False
    for lock in _files("compiling"):
        with suppress(OSError):
            lock.parent.mkdir(parents=True, exist_ok=True)
            lock.write_text("", encoding="utf-8")
            _process = _begin(lock)
            lock.write_text(str(_process.pid), encoding="utf-8")
            atexit.register(_let_go, _process)
            break
    if say and _process is not None:
        print(TEXT, file=sys.stderr, flush=True)
    return _process is not None


def _begin(lock):
    """Start the compiling process with the file `lock`. It continues if this process ends."""
    paths = [str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")]
    own = {SETTING: "now", "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    options = {"start_new_session": True}
    if os.name == "nt":
        options = {"creationflags": subprocess.BELOW_NORMAL_PRIORITY_CLASS}
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "tinyattn.warm", "--quiet", "--lock", str(lock)],
        env={**os.environ, **own},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        **options,
    )


def _let_go(process):
    """Let the program end without waiting for the process, and without a warning from Python."""
    if process.poll() is None:
        process.returncode = 0


def _somebody_compiles():
    """Return whether another process is compiling for this installation."""
    for lock in _files("compiling"):
        with suppress(OSError, ValueError):
            if time.time() - lock.stat().st_mtime < LONGEST:
                pid = lock.read_text(encoding="utf-8")
                if not pid or _lives(int(pid)):
                    return True
    return False


def _lives(pid):
    if os.name == "nt":  # on Windows, os.kill would end the process
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def is_marked():
    """Return whether an earlier process compiled all kernels of these sources and versions."""
    return any(mark.exists() for mark in _files("compiled"))


def mark():
    """Remember that all kernels are compiled, in the best folder that takes a file."""
    for file in _files("compiled"):
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("", encoding="utf-8")
            return


def _files(what):
    """Return possible files for this installation whose names begin with `what`, the best first."""
    cache = os.environ.get("NUMBA_CACHE_DIR")
    folders = [Path(cache) if cache else HERE / "__pycache__"]
    with suppress(RuntimeError):  # the user may have no home directory
        folders.append(Path.home() / ".cache" / "tinyattn")
    return [folder / f"{what}_{_key()}" for folder in folders]


def _key():
    """Return a checksum of everything that the machine code depends on."""
    names = ["NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"]
    on = [sys.version, version("numba"), version("llvmlite"), *map(os.environ.get, names)]
    return f"{zlib.crc32(repr(on).encode(), checksum_of_sources()):08x}"


@cache
def checksum_of_sources():
    """Return a checksum of all source files of the kernels."""
    found = 0
    for source in sorted(HERE.rglob("*.py")):
        found = zlib.crc32(source.read_bytes(), found)
    return found
