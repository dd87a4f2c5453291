"""Test the kernels for processors with narrower vectors than those of this processor.

    python -m tests.scripts.processors             every width but this processor's own
    python -m tests.scripts.processors --all       this processor's own too
    python -m tests.scripts.processors 16          one width, in bytes

For each width, pytest runs the canary and all tests in FOLDERS, with the kernels compiled for a
processor that lacks some instructions of this processor. The ordinary tests cover the width of this
processor. The exit code is 0 if all tests passed. A run takes 11 to 16 minutes on two cores.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time

from tests import ROOT
from tests.machine import processor_without

FOLDERS = ["tests/kernels", "tests/graph", "tests/functional", "tests/inference", "tests/ops"]
# bytes of a vector: the instructions that are missing, by the beginnings of their names. Old
# processors with 16 bytes have no FMA either; ARM processors have it, see tests/scripts/aarch64.py.
PROCESSORS = {64: (), 32: ("avx512",), 16: ("avx", "fma")}


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m tests.scripts.processors")
    parser.add_argument("widths", nargs="*", type=int, help="bytes of a vector: 16, 32, 64")
    parser.add_argument("--all", action="store_true", help="this processor's own width too")
    options = parser.parse_args(arguments)

    from tinyattn.kernels.machine.llvm import VECTOR_BYTES

    possible = [width for width in PROCESSORS if width <= VECTOR_BYTES]
    unknown = set(options.widths) - set(possible)
    if unknown:
        parser.error(f"this processor has vectors of {possible} bytes, not of {sorted(unknown)}")
    chosen = options.widths or [w for w in possible if options.all or w < VECTOR_BYTES]
    if not chosen:
        print(f"vectors here have {VECTOR_BYTES} bytes, and there is no narrower width to try")
    return 1 if sum([not is_right_with(width) for width in chosen]) else 0


def is_right_with(width):
    """Run all of FOLDERS with vectors of so many bytes and print what came out."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as cache:
        settings = {**processor_without(*PROCESSORS[width]), "NUMBA_CACHE_DIR": cache}
        environment = {**os.environ, **settings}
        program = "from tinyattn.kernels.machine.llvm import VECTOR_BYTES as b; print(b)"
        command = [sys.executable, "-c", program]  # its import runs the canary, too
        found = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
        if found.stdout.strip() != str(width):
            print(f"vectors of {width} bytes: kernels are compiled for {found.stdout.strip()!r}")
            print(found.stderr)
            return False
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *FOLDERS]
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    minutes = (time.monotonic() - began) / 60
    right = done.returncode == 0 and re.search(r"\d+ passed", done.stdout)
    if not right:
        print(done.stdout[-20_000:], done.stderr[-2000:], sep="\n")
    print(f"vectors of {width} bytes, {minutes:.1f} minutes: {done.stdout.splitlines()[-1]}")
    return right


if __name__ == "__main__":
    sys.exit(main())
