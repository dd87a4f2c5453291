"""What `tinyattn doctor` says: what is installed, how this machine computes, what is missing."""

import importlib.metadata
import importlib.util
import os
import platform
import sys
from pathlib import Path

from tinyattn.course.claims import NOT_RUN, read_ledger
from tinyattn.course.project import LEDGER, CourseError, find_root, homework, lectures

# what each extra brings, and what it is for
GROUPS = {
    "": ("needed", ["numpy", "numba"]),
    "class": ("for the notebooks", ["matplotlib", "jupyterlab", "ipykernel"]),
    "dev": (
        "to build lectures and run the tests",
        ["pytest", "hypothesis", "jupytext", "nbclient", "nbconvert", "ruff"],
    ),
    "peers": (
        "to compare with other libraries",
        ["torch", "torch-geometric", "autograd", "scipy", "scikit-learn", "safetensors"],
    ),
}


def examine():
    """Print everything; returns 1 if something is missing that the course cannot do without."""
    print(f"python      {platform.python_version()} at {sys.executable}")
    print(f"system      {platform.system()} {platform.machine()}, {_threads()}")
    missing = [extra for extra in GROUPS if not _print_group(extra)]
    print("\ncomputing")
    for name, value in (*_blas(), *_numba()):
        print(f"  {name:12} {value}")
    print("\ncourse")
    found = _print_course()
    for extra in missing:
        target = f'-e ".[{extra}]"' if extra else "-e ."
        print(f"\nto get what is missing {GROUPS[extra][0]}:\n    .venv/bin/pip install {target}")
    return 0 if found and "" not in missing and "class" not in missing else 1


def _print_group(extra):
    """Print the versions of one group of packages; False if one is missing."""
    purpose, packages = GROUPS[extra]
    versions = {package: _version(package) for package in packages}
    print(f"\n{purpose}" + (f"  [{extra}]" if extra else ""))
    for package, version in versions.items():
        print(f"  {package:16} {version or 'missing'}")
    if "numba" in versions and not versions["numba"]:
        print("  without numba everything runs, on NumPy alone, and some of it slowly")
        del versions["numba"]
    return all(versions.values())


def _version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _threads():
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{usable} processors usable"


def _blas():
    """Which matrix library NumPy calls, and which vector instructions it found."""
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
    yield "vectors", ", ".join(found) or "the baseline only"


def _numba():
    """Numba's target and threads, and whether the kernels are compiled already."""
    if importlib.util.find_spec("numba") is None:
        return
    import llvmlite.binding as llvm

    yield "compiler", f"LLVM {'.'.join(map(str, llvm.llvm_version_info))} for {_cpu(llvm)}"
    yield "kernels", _threads()
    yield "layers", f"Numba's own, not used by the kernels: {', '.join(_layers())}"
    compiled = _compiled()
    yield "compiled", ", ".join(compiled) or "no kernel yet; each is at its first use"


def _threads():
    try:
        from tinyattn.kernels.machine import thread_pool
    except ValueError as error:
        return f"cannot run: {error}"
    chosen = thread_pool.requested_threads() or "one for each processor"
    return f"run on Python's threads: {chosen} (TINYATTN_THREADS changes it)"


def _cpu(llvm):
    features = llvm.get_host_cpu_features()
    known = [name for name in ("avx2", "fma", "avx512f", "neon", "sve") if features.get(name)]
    return f"{llvm.get_host_cpu_name()} ({', '.join(known) or 'no wide vectors'})"


def _layers():
    modules = {"tbb": "tbbpool", "omp": "omppool", "workqueue": "workqueue"}
    for layer, module in modules.items():
        try:
            if importlib.util.find_spec(f"numba.np.ufunc.{module}"):
                yield layer
        except (ImportError, ValueError):
            continue


def _compiled():
    """The kernel files that have machine code in Numba's cache."""
    import numba

    folder = Path(__file__).resolve().parents[1] / "kernels" / "__pycache__"
    if numba.config.CACHE_DIR:
        folder = Path(numba.config.CACHE_DIR)
    return sorted({path.name.split(".")[0] for path in folder.rglob("*.nbi")})


def _print_course():
    """Print where the lectures are; False if they are not found."""
    try:
        root = find_root()
        ledger = read_ledger(root / LEDGER)
    except CourseError as error:
        print(f"  {error}")
        return False
    print(f"  folder       {root}")
    for document in lectures(root) + homework(root):
        built = "" if document.notebook.is_file() else f"  (tinyattn build {document.number})"
        print(f"  {document.number:12} {document.slug.replace('_', ' ')}{built}")
    tried = sum(entry["verdict"] != NOT_RUN for entry in ledger.values())
    print(f"  claims       {tried} of {len(ledger)} tried")
    return True
