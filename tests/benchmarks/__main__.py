"""Run all benchmarks, each in a separate process, and store their output.

    python -m tests.benchmarks            all, into tests/benchmarks/RESULTS.md
    python -m tests.benchmarks gpt knn    only these; the other parts of RESULTS.md stay
    python -m tests.benchmarks --avx2     with AVX2 only, on a processor that has AVX-512, too

Every script of this folder that has a `main` is one part of RESULTS.md, with the first line of its
docstring as the heading. Each part has a section for each kind of processor.
"""

import argparse
import ast
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

from tests import ROOT
from tests.machine import processor_without
from tinyattn import doctor
from tinyattn.kernels.machine import llvm

HERE = Path(__file__).parent
RESULTS = HERE / "RESULTS.md"
HELPERS = {"__init__", "__main__", "measure", "closures"}
KINDS = ("AVX2", "AVX-512", "other")
# these variables restrict every library of a process to AVX2 if the processor has AVX-512, too
AVX2 = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
    "FAISS_OPT_LEVEL": "avx2",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL",
}
HEAD = """# Measured

This page compares the speed of tinyattn with that of other libraries, its peers, as printed by
`python -m tests.benchmarks`. Most tables show the peer's time divided by ours, so above 1, tinyattn
is faster. Each ratio compares times of the same round, and its median over all rounds is printed
with the quartiles. The times in milliseconds are medians, too, so their quotient can differ from
the ratio. The best peer is the fastest one in this row, unless each peer has a row of its own. The
goal is the ratio that we want to reach. Rows below the goal, before rounding, are marked as missed.
[What we tried](TRIED.md) explains where the slower rows spend their time. In the names of the rows,
B is the batch size, H the number of heads or hidden units, N or T the number of points or tokens,
d, D or F the number of features, and k the number of neighbours.

Most laptops have the vector instructions AVX2, and most servers have AVX-512 as well. A section for
AVX2 that names a processor with AVX-512 (such as znver4) was measured there, with the libraries
restricted to AVX2 (`--avx2`). We know of no such setting for llama.cpp, ONNX Runtime and OpenVINO,
so these may have used AVX-512. The load average is the mean number of threads that ran, or waited
for a processor, in the minute before a part began. If it is high, other programs may have disturbed
the measurement.

The first table shows, for each part, the geometric mean of its ratios and the lowest ratio.
"""


def scripts():
    """Return {name: first line of its docstring}."""
    found = {}
    for path in sorted(HERE.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        main = any(isinstance(n, ast.FunctionDef) and n.name == "main" for n in tree.body)
        if path.stem not in HELPERS and main:
            found[path.stem] = (ast.get_docstring(tree) or path.stem).splitlines()[0].rstrip(".")
    return found


def parts():
    """Return {(name, kind): text} of the sections that RESULTS.md has now."""
    text = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
    pieces = re.split(r"^<!-- (\w+) ([\w-]+) -->\n", text, flags=re.MULTILINE)
    return {
        (name, kind): body.partition("\n## ")[0].removeprefix(f"### {kind}\n").strip()
        for name, kind, body in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True)
    }


def page(found, titles):
    """RESULTS.md: the overview, then each part with a section for each kind of processor."""
    pieces = [HEAD, overview(found, titles)]
    for name, title in titles.items():
        kinds = [kind for kind in KINDS if (name, kind) in found]
        if kinds:
            pieces.append(f"## {title}\n")
        for kind in kinds:
            pieces.append(f"<!-- {name} {kind} -->\n### {kind}\n\n{found[name, kind]}\n")
    return "\n".join(pieces).rstrip() + "\n"


def overview(found, titles):
    """Return a table with the geometric mean and the minimum of the rows of each part."""
    kinds = [kind for kind in KINDS if any(kind == k for _, k in found)]
    lines = [
        "| part | " + " | ".join(f"{k}: mean ratio (lowest)" for k in kinds) + " |",
        "|---" * (len(kinds) + 1) + "|",
    ]
    for name, title in titles.items():
        cells = [cell(found.get((name, kind), "")) for kind in kinds]
        if any(cells):
            lines.append(f"| {title} | " + " | ".join(c or "not measured" for c in cells) + " |")
    return "\n".join(lines) + "\n"


def cell(text):
    """The geometric mean and the least of the ratios to the best peer in a section's table."""
    ratios = [float(r) for r in re.findall(r"\| \*\*([\d.]+)\*\* \([\d.]+-[\d.]+\) \|", text)]
    return f"{statistics.geometric_mean(ratios):.2f} ({min(ratios):.2f})" if ratios else ""


def run(name, settings):
    """Return the output of a script in an environment with `settings`, or how the script ended."""
    print(f"\n{name}", flush=True)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0
    lines, folder = [f"{processor(settings)}\n\n"], HERE.parents[1]
    command = [sys.executable, "-W", "ignore", "-m", f"tests.benchmarks.{name}"]
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, **settings, "PYTHONPATH": path}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=folder, env=environment
    )
    for line in process.stdout:
        print(line, end="", flush=True)
        lines.append(line)
    if process.wait():
        lines.append(f"\nThe script ended with error {process.returncode}.\n")
    if hasattr(os, "getloadavg"):
        lines.append(f"\nThe load average was {load:.1f} when this part began.\n")
    return "".join(lines).strip()


def processor(settings):
    """Return a sentence that names the processor and says whether it is restricted to AVX2."""
    from llvmlite.binding import get_host_cpu_name  # not installed where the page is only read

    kept = ", restricted to AVX2" if settings else ""
    return f"Processor: {doctor.processor_name()} ({get_host_cpu_name()}){kept}."


def kind_of_processor(settings):
    """Return the section that a measurement belongs to."""
    if settings:
        return "AVX2"
    return {64: "AVX-512", 32: "AVX2"}.get(llvm.VECTOR_BYTES, "other")


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts to run (default: all)")
    parser.add_argument("--avx2", action="store_true", help="restrict every library to AVX2")
    options = parser.parse_args(arguments)
    titles = scripts()
    unknown = [name for name in options.names if name not in titles]
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(titles)}")
    if options.avx2 and llvm.VECTOR_BYTES < 32:
        parser.error(f"this processor has no AVX2: its vectors have {llvm.VECTOR_BYTES} bytes")
    settings = {}
    if options.avx2 and llvm.VECTOR_BYTES > 32:
        # kernels for another processor would not be found beside those for this one
        kernels = ROOT / "build" / "kernels-avx2"
        settings = {**AVX2, **processor_without("avx512"), "NUMBA_CACHE_DIR": str(kernels)}
    found, kind = parts(), kind_of_processor(settings)
    for name in options.names or titles:
        start = time.perf_counter()
        found[name, kind] = run(name, settings)
        print(f"{time.perf_counter() - start:.0f} s")
        RESULTS.write_text(page(found, titles), encoding="utf-8")


if __name__ == "__main__":
    main()
