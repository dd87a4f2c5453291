"""Whether this version of Numba is one that the kernels can be compiled with.

The kernels rely on facts of Numba's insides (facts.py), and a new version may change them. So they
are tried once for each version, before the first kernel is compiled, in a process of its own, and
the outcome is remembered beside Numba's cache. TINYATTN_CANARY=off leaves the trial out.
"""

import json
import os
import platform
import subprocess
import sys
import zlib
from contextlib import suppress
from pathlib import Path

HERE = Path(__file__).parent
KNOWN = "0.68"  # the version of Numba that the kernels were written with
SECONDS = 300  # no trial takes longer
REMEMBERED = 16  # outcomes that are kept


def problem_with(numba):
    """Why kernels cannot be compiled with it, as the end of a sentence; "" if all facts hold."""
    if os.environ.get("TINYATTN_CANARY") == "off" or getattr(sys, "frozen", False):
        return ""
    key, places = key_of(numba), places_of(numba)
    problem = remembered(key, places)
    if problem is None:
        problem = try_facts()
        remember(key, problem, places)
    if not problem:
        return ""
    return (
        f"was written for Numba {KNOWN}, and Numba {numba.__version__} does not do what it relies "
        f"on ({problem})"
    )


def key_of(numba):
    """What the outcome depends on: versions, processor, and the files of this folder."""
    import llvmlite

    checksum = 0
    for source in sorted(HERE.glob("*.py")):
        checksum = zlib.crc32(source.read_bytes(), checksum)
    cpu = numba.config.CPU_NAME or llvmlite.binding.get_host_cpu_name()
    settings = numba.config.CPU_FEATURES, numba.config.DISABLE_JIT
    versions = numba.__version__, llvmlite.__version__, platform.python_version()
    return " ".join(str(x) for x in (*versions, cpu, *settings, f"{checksum:08x}"))


def places_of(numba):
    """Files for the outcomes, from the best place to the last resort."""
    folder = Path(numba.config.CACHE_DIR) if numba.config.CACHE_DIR else HERE / "__pycache__"
    return [folder / "canary.json", Path.home() / ".cache" / "tinyattn" / "canary.json"]


def read(place):
    """{key: problem} of a file; an empty dict if it cannot be read."""
    try:
        return json.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def remembered(key, places):
    """The problem of an earlier trial, "" for none, or None if there was no trial."""
    for place in places:
        problem = read(place).get(key)
        if problem is not None:
            return problem
    return None


def remember(key, problem, places):
    """Write the outcome to the first place that can be written to."""
    for place in places:
        with suppress(OSError):
            place.parent.mkdir(parents=True, exist_ok=True)
            outcomes = dict(list(read(place).items())[1 - REMEMBERED :]) | {key: problem}
            unfinished = place.with_suffix(f".{os.getpid()}")
            unfinished.write_text(json.dumps(outcomes), encoding="utf-8")
            unfinished.replace(place)  # whole or not at all: others may read meanwhile
            return


def try_facts():
    """The fact that does not hold, in words, or "" if all do."""
    paths = [str(HERE.parents[2]), os.environ.get("PYTHONPATH", "")]
    own = {
        "TINYATTN_CANARY": "off",
        "NUMBA_NRT_STATS": "1",  # counts what is allocated and freed
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "tinyattn.kernels.machine.facts"],
            env={**os.environ, **own},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"their trial did not run: {error}"
    if done.returncode == 0:
        return ""
    last = (done.stdout.strip() or done.stderr.strip() or "import").splitlines()[-1]
    return last if ":" in last else f"{last}: ended with status {done.returncode}"
