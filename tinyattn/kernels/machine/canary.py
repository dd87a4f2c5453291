"""Check whether the kernels can be compiled with this version of Numba.

The kernels rely on details of Numba (assumptions.py), which a new version may change. They are
therefore tested once for each version, before the first kernel is compiled, in a separate process,
and the outcome is stored next to Numba's cache. TINYATTN_CANARY=off skips the test.
"""

import errno
import json
import os
import platform
import re
import subprocess
import sys
import zlib
from contextlib import suppress
from pathlib import Path

from tinyattn.kernels.machine import compile_notice

HERE = Path(__file__).parent
KNOWN = "0.68"  # version of Numba for which the kernels were written
SECONDS = 300  # longest duration of a trial
NOT_DONE = f"did not end within {SECONDS} s"
REMEMBERED = 16  # number of outcomes that are kept

# These are the beginnings of the message of a system error, and of one that reports a full disk.
# Linux and macOS use one number for a full disk and another for an exceeded quota, and Windows uses
# two for a full disk.
OF_SYSTEM = re.compile(r"\[(Errno|WinError) \d+\].*")
OF_FULL_DISK = re.compile(
    rf"\[(Errno ({errno.ENOSPC}|{getattr(errno, 'EDQUOT', errno.ENOSPC)})|WinError (39|112))\]"
)


def import_numba():
    """Return (Numba, ""), or (None, why kernels cannot be compiled, as the end of a sentence)."""
    try:
        import numba
        from numba import config, extending  # noqa: F401  also an empty folder can be imported
    except Exception as error:  # it may have been built for a different NumPy, Python or LLVM
        return None, _not_imported(error)
    problem = problem_with(numba)
    return (None, problem) if problem else (numba, "")


def _not_imported(error):
    if isinstance(error, ModuleNotFoundError) and error.name == "numba":
        return "needs Numba (pip install numba)"
    line = (str(error).strip().splitlines() or [""])[0].rstrip(".")
    return (
        f"needs Numba, whose installation is broken (importing it raises {type(error).__name__}: "
        f"{line}; pip install --force-reinstall numba)"
    )


def problem_with(numba):
    """Return why this Numba cannot compile kernels, as the end of a sentence, or "" if it can."""
    if numba.config.DISABLE_JIT:
        return "needs Numba's compiler, which NUMBA_DISABLE_JIT=1 switches off (unset it)"
    if os.environ.get("TINYATTN_CANARY") == "off" or getattr(sys, "frozen", False):
        return ""
    key, places = key_of(numba), places_of(numba)
    problem = remembered(key, places)
    if problem is None:
        problem = try_facts()
        of_system = OF_SYSTEM.search(problem)
        if of_system:  # the next run may not have this error
            return _not_tried(of_system.group())
        if problem == NOT_DONE:  # on a less busy machine, the trial may end in time
            return f"needs a trial of Numba, which {NOT_DONE} and is repeated in the next run"
        remember(key, problem, places)
    if not problem:
        return ""
    return (
        f"was written for Numba {KNOWN}, and Numba {numba.__version__} does not do what it relies "
        f"on ({problem})"
    )


def _not_tried(error):
    if OF_FULL_DISK.search(error):
        return f"needs space on the disk, which is full ({error}; remove some files)"
    return f"needs a trial of Numba, which the system did not let run ({error})"


def key_of(numba):
    """Return all that the outcome depends on: versions, processor and the files of this folder."""
    import llvmlite

    checksum = 0
    for source in sorted(HERE.glob("*.py")):
        checksum = zlib.crc32(source.read_bytes(), checksum)
    cpu = numba.config.CPU_NAME or llvmlite.binding.get_host_cpu_name()
    versions = numba.__version__, llvmlite.__version__, platform.python_version()
    return " ".join(map(str, (*versions, cpu, numba.config.CPU_FEATURES, f"{checksum:08x}")))


def places_of(numba):
    """Return possible files for the outcomes, the best first."""
    folder = Path(numba.config.CACHE_DIR) if numba.config.CACHE_DIR else HERE / "__pycache__"
    folders = [folder]
    with suppress(RuntimeError):  # the user may have no home directory
        folders.append(Path.home() / ".cache" / "tinyattn")
    return [folder / "canary.json" for folder in folders]


def read(place):
    """Return {key: problem} of the file `place`, or an empty dict if it cannot be read."""
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def remembered(key, places):
    """Return the problem found by an earlier trial with this key, "" if it found none, or None.

    None means that none of the files in `places` has the outcome of such a trial.
    """
    for place in places:
        problem = read(place).get(key)
        if isinstance(problem, str):
            return problem
    return None


def remember(key, problem, places):
    """Write the problem ("" for none) under `key` to the first of `places` that can be written.

    If none of them can be written, report this.
    """
    errors = []
    for place in places:
        unfinished = place.with_suffix(f".{os.getpid()}")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            outcomes = dict(list(read(place).items())[1 - REMEMBERED :]) | {key: problem}
            unfinished.write_text(json.dumps(outcomes), encoding="utf-8")
            # replace the file atomically, because other processes may read it
            unfinished.replace(place)
            return
        except OSError as error:
            errors.append(error)
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
    compile_notice.not_kept("the trial of Numba", places[0].parent, errors[0], "makes it")


def try_facts():
    """Test all facts in a separate process. Return "" if they hold, or what went wrong."""
    paths = [str(HERE.parents[2]), os.environ.get("PYTHONPATH", "")]
    own = {
        "TINYATTN_CANARY": "off",
        "NUMBA_NRT_STATS": "1",  # counts allocated and freed blocks
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "tinyattn.kernels.machine.assumptions"],
            env={**os.environ, **own},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return NOT_DONE
    except OSError as error:
        return f"their trial did not run: {error}"
    if done.returncode == 0:
        return ""
    last = (done.stdout.strip() or done.stderr.strip() or "import").splitlines()[-1]
    return last if ":" in last else f"{last}: ended with status {done.returncode}"
