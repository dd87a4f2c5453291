"""Test the kernels for 64-bit ARM on x86_64, with an emulated processor.

    python -m tests.scripts.aarch64

Debian's arm64 packages of Python and the aarch64 wheels of NumPy and Numba are unpacked below
`build/aarch64/`, and QEMU runs this Python. It runs the canary of the kernels with each fact of
`assumptions.py`, then `tests.scripts.every_kernel`. This takes a quarter of an hour, mostly for
compiling. A second run finds the packages and the compiled kernels. The script needs Debian with
root, apt and network to install QEMU and the packages. If these are missing, it prints one line and
does nothing.

An emulator computes like the processor, but its memory ordering may be that of x86_64. Therefore,
the script does not test whether threads on ARM see each other's writes in time. The exit code is 0
only if all results were right.
"""

import os
import platform
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version

from tests import ROOT

CACHE = ROOT / "build" / "aarch64"
SYSTEM, SITE = CACHE / "root", CACHE / "site"  # the packages of Debian, and the wheels
SUITE, PYTHON = "bookworm", "3.11"  # a version of Debian, and its Python
MIRROR = "http://deb.debian.org/debian"
LIBRARIES = "numpy", "numba", "llvmlite"  # in the versions that are installed here
PLATFORMS = "manylinux_2_28_aarch64", "manylinux2014_aarch64"
EMULATOR = "qemu-aarch64-static"
TOOLS = {EMULATOR: "qemu-user-static", "debootstrap": "debootstrap"}  # program: its package
HOURS = 2  # no part takes longer

CANARY = """
import sys
sys.executable = sys.argv[1]  # the emulated Python, which the canary starts once more
import numba
from tinyattn.kernels.machine import canary
problem = canary.problem_with(numba)
print(f"canary: {problem or 'all facts hold'}")
sys.exit(bool(problem))
"""


class Missing(Exception):
    """Something without which nothing can be tried here."""


def main():
    try:
        python = emulated_python()
    except Missing as reason:
        print(f"nothing was tried: {reason}")
        return 1
    own = {name: value for name, value in os.environ.items() if name != "TINYATTN_CANARY"}
    parts = {
        "architecture": [
            "-c",
            "import platform; print(platform.machine(), platform.python_version())",
        ],
        "canary": ["-c", CANARY, python],
        "every kernel": ["-u", "-m", "tests.scripts.every_kernel"],
    }
    for name, arguments in parts.items():
        done = subprocess.run(
            [python, *arguments], env=own, timeout=HOURS * 3600, check=False, cwd=ROOT
        )
        if done.returncode:
            print(f"{name}: ended with status {done.returncode}")
            return 1
    print("all right on aarch64")
    return 0


def emulated_python():
    """Return a program that runs Python for ARM, after installing the missing packages."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise Missing(f"it needs Linux on x86_64, this is {sys.platform} on {platform.machine()}")
    install_tools()
    unpack_system()
    unpack_wheels()
    return starter()


def install_tools():
    """Install QEMU and debootstrap with apt."""
    absent = [package for program, package in TOOLS.items() if shutil.which(program) is None]
    if not absent:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise Missing(f"{' and '.join(absent)} must be installed, which needs root and apt-get")
    step("apt-get", "update", "-qq")
    step("apt-get", "install", "-qq", "-y", "--no-install-recommends", *absent)


def unpack_system():
    """Unpack the packages of a Debian for ARM with its Python, without configuring them."""
    if SYSTEM.is_dir():
        return
    if os.geteuid() != 0:
        raise Missing("to unpack a Debian for ARM, debootstrap needs root")
    unfinished = CACHE / "root.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    step(
        "debootstrap",
        "--foreign",
        "--arch=arm64",
        "--variant=minbase",
        "--include=python3",
        SUITE,
        unfinished,
        MIRROR,
    )
    for package in sorted((unfinished / "var/cache/apt/archives").glob("*.deb")):
        step("dpkg-deb", "-x", package, unfinished)
        package.unlink()
    unfinished.rename(SYSTEM)


def unpack_wheels():
    """Unpack NumPy and Numba for ARM, in the versions that this environment has."""
    try:
        wanted = [f"{name}=={version(name)}" for name in LIBRARIES]
    except PackageNotFoundError as error:
        raise Missing(f"{error.name} must be installed here, whose version is tried") from error
    mark = SITE / "unpacked.txt"
    if mark.is_file() and mark.read_text(encoding="utf-8") == " ".join(wanted):
        return
    wheels = CACHE / "wheels"
    for folder in (wheels, SITE):
        shutil.rmtree(folder, ignore_errors=True)
    platforms = [word for name in PLATFORMS for word in ("--platform", name)]
    step(
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "-d",
        wheels,
        *platforms,
        "--no-deps",
        "--only-binary=:all:",
        "--python-version",
        PYTHON,
        *wanted,
    )
    for wheel in sorted(wheels.glob("*.whl")):
        shutil.unpack_archive(wheel, SITE, "zip")
    mark.write_text(" ".join(wanted), encoding="utf-8")


def starter():
    """Return the path of a script that starts the emulated Python."""
    path = CACHE / "python"
    settings = {
        "PYTHONPATH": f"{SITE}:{ROOT}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": CACHE / "compiled",
        # for the processor that QEMU emulates, OpenBLAS else takes code that multiplies wrongly
        "OPENBLAS_CORETYPE": "ARMV8",
    }
    lines = [f"export {name}='{value}'" for name, value in settings.items()]
    lines.append("unset NUMBA_CPU_NAME NUMBA_CPU_FEATURES")  # they are for the processor here
    python = SYSTEM / "usr" / "bin" / f"python{PYTHON}"
    start = f"exec {EMULATOR} -L '{SYSTEM}' '{python}' \"$@\""
    path.write_text("\n".join(["#!/bin/sh", *lines, start, ""]), encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def step(*command):
    """Run a command of the set-up silently. If it fails, raise Missing with its last line."""
    command = [str(word) for word in command]
    done = subprocess.run(
        command,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
        raise Missing(f"{' '.join(command[:4])} … failed, network or packages may lack: {last}")


if __name__ == "__main__":
    sys.exit(main())
