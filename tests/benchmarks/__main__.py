"""Run all benchmarks, each in a process of its own, and keep what they print.

    python -m tests.benchmarks            all, into tests/benchmarks/RESULTS.md
    python -m tests.benchmarks gpt knn    these only; the other parts of RESULTS.md stay

Every script of this folder that has a `main` is one part, with the first line of its docstring as
the heading.
"""

import ast
import os
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "RESULTS.md"
HELPERS = {"__init__", "__main__", "measure", "closures"}
HEAD = """# Measured

This page says how many times as fast as its peer tinyattn does each piece of work, as printed by
`python -m tests.benchmarks`. Each number is the ratio of the times of the same round, as the median
over the rounds with its quartiles. Above 1, tinyattn is faster. Rows that miss their goal say so.

## Why rows miss their goal, and what we tested

- **Products of up to 50 million multiplications, GPT tiny and small.** Helper threads used to get
  each piece of work from Python and had to wake up first, which cost 90 µs per call. Now they take
  pieces inside the kernel and watch for the next one for a millisecond, which improved GPT small
  from 0.85 to 1.1. The cutting of a product is computed once for each shape, which saves 8 µs per
  call. Pieces have at least a million multiplications, and there are at least four of them. Sixteen
  pieces of a small product, each of which packs its rows and finds the columns in the cache of the
  other processor, took an eighth longer. With larger pieces, two threads pay from a third of the
  work on. This and a linear map that takes all leading axes itself gained a twelfth for GPT tiny.
- **Large products, GPT big.** Several changes improved them from 0.75 to 0.9-1.0 of the speed of
  MKL: tiles of 6 rows instead of 4, which read a panel two thirds as often; B packed once by all
  threads; tasks claimed by an atomic count; A in strips, so that all positions in a tile are
  constants; and prefetched rows of the panel. If both matrices are copied in advance, the tiles
  alone are as fast as MKL's whole product. The difference is the copying of B (a twentieth) and,
  with two threads, the wait of one thread for the other at the end (up to as much). Without gain we
  tested: the same rows always on the same thread, results that begin at a cache line, panels in the
  same memory at each call or stored past the cache, shallower slices, tiles of 2 to 5 vectors, and
  smaller tasks at the end. Deeper slices (1,024 terms instead of 384) gained up to 5%. Higher
  pieces of work gained as much in single products and lost as much in a training step. A group of
  panels for each thread, where B has 1,024 columns or more, gained 2 to 6%, because it takes long
  to read what another thread has just written. For narrower B, where each thread would have to copy
  rows of A for itself, it gained nothing and lost up to 8%. The gradient of a weight reads A by
  columns, at three quarters of the speed. Copying a few columns into all strips in turn took a
  third less time alone, but lost 8% in a training step, where A comes from far memory.
- **Cells of 128 units.** The weights of a step are packed again for 64 rows, and Python runs around
  the two products of each step. Panels are not kept from step to step, because nothing would show
  that a weight was changed in between.
- **Attention forward.** Up to N = 512, transposing the queries and the exponential cost more than
  in long rows. From N = 1,024 on, it runs at the speed of a large product, and PyTorch's at 85% of
  it. Prefetching the rows of the next head gained a tenth where heads are inside the tokens. Tasks
  claimed by an atomic count and tiles with constant steps made no difference above the noise.
- **Attention forward + backward, causal.** At N = 128, two of the three blocks of a head are on the
  diagonal, where a part of each product is masked again. Smaller blocks of keys there (32 instead
  of 64) gained 8%. At N = 4,096 it runs at 90 to 100% of the speed of a large product; one run
  found 1.5 and 1.6 there, another 1.4.
- **Trainable bias.** At N = 512 it runs at three quarters of the speed of a large product; twice
  the speed of PyTorch would be above that of a large product. At N = 128, the bias and its gradient
  take a quarter of the time, because they have to be transposed for queries that are side by side.
  Blocks of 32 or 128 keys are within 2%.
- **LSTM, and GRU of 256 units.** They are somewhat faster than oneDNN. Handling left-over rows in
  pairs and 6 steps at a time gained some 10% at 256 units, whose weights hardly fit the second
  cache. Prefetching rows of the weights made no difference.
- **Segment softmax, random ids.** Rows are read in random order, forward and backward, and those of
  the next segment are prefetched. Results are stored past the cache, as those of the sums are: a
  store that does not first read the line it changes saves a third of the traffic.
- **ParticleNet-Lite.** Kernels for batch normalization and ReLU improved it from 0.35 to about 1.
  The kernel for ReLU has been removed, because it was not clearly faster than NumPy with AVX2.
- **Generation, one sentence of MiniLM.** All weights are read for one token. Tiles of dot products
  read each of them in place and once for up to 24 rows, and a token passes through a layer in one
  compiled call, without Python between the operations. Together this improved it from 0.7-0.95 to
  1.1-1.4. For d = 128, most of the time was Python around the layers. What Python finds in a layer
  is now looked up once for a text, which gained a sixth. Both threads take their parts of a product
  in few pieces, each from its own end, so that half of the weights stays in the cache of either
  thread, which gained 5 to 25%.
- **A model in blocks of 4 bits.** All layers are one compiled call per token. The Python that
  remained took 1.4 ms of 7, because after 96 MB of weights its own data are far from the processor.
  The model is now compared with the compiled one only in every 16th step, and norm and head have
  compiled forms of their own, which leaves 0.6 ms. Two threads take two thirds of the time of one,
  because both read from the same memory. Without gain we tested prefetching at any distance, large
  pages, and the scales of a whole row times sums of x as vectors. We did not build inputs rounded
  to 8 bits, as llama.cpp has them, with rows stored again for it. That would be about 1.7 times as
  fast, but no longer exact. Most of the peak of memory is Numba: 270 MB after it has compiled one
  line, with SciPy.
- **Thirty-two sentences of MiniLM.** Five sixths of the time are products, whose tiles run as fast
  in the model as they do alone. Copying the weights takes another 7% of a product. Half of that is
  waiting for far memory, which PyTorch's six layers read as well. Attention is about twice as fast
  as PyTorch's; GELU, norms and sums take a tenth. Plain arrays instead of tensors, and sums on all
  threads, gained 6%, and separate panels for each thread another 2 to 5%. Without gain we tested: a
  layer in one compiled call, with a thread for each operation or for each text; prefetching the
  next weights during a product (1%); pieces of twice the rows (a product gains up to 4%, the model
  nothing); GELU in place, and sums and norms in one pass.
- **AdamW** passes through each parameter once, in a call of 5 µs. A single call for all of them
  needs a table of addresses, which takes longer to make than the calls it saves. Small parameters
  side by side in one array, for which the gradients are copied, gained a sixth of the optimizer and
  a hundredth of a step of GPT tiny, for forty lines, so we removed them again.
- **EdgeConv.** Nearly all of the time is gathering rows and maxima, forward and backward. These
  loops now use vectors, which gained little where the features fill them. The rows do not fit the
  second cache. Without gain we tested prefetched rows, two vectors of features at a time (5-10%),
  and one vector of features for all points before the next.
- **Pooling.** Its loops do not use vectors where windows are a stride apart.
- **GELU, norms, softmax of few rows.** Masks for the ends of rows cost a tenth to a fifth. Other
  ways to make them (from one integer, from 32-bit lanes) gained nothing.
- **First kernel.** Numba reads its own registries first, and SciPy where that is installed.
- **Compiling again** is Numba's work on two long functions. Fewer kinds of tiles, a lower level of
  optimization and no vectorizing of loops all left it as it was. Helpers without the code that
  unpacks Python's objects saved a fifth where a kernel has many of them, as kNN does. A function
  that only calls another costs all of that function's code again; without such functions, the LSTM
  takes a fifth less.
- **Engine.** One `apply` and one backward loop for all operations, instead of special paths for one
  and two operands, cost a third of the speed of a chain of small operations. A `__getattr__` on
  Tensor, which only wrote better error messages, made each access to one of its slots take three
  times as long in Python 3.11. Without it, the chains are 1.14 to 1.19 times as fast, with both
  versions measured in turns. "add" misses the goal of 1.5 times PyTorch eager: a fifth of its time
  are two sums of NumPy, the rest is Python that each step needs, and PyTorch's rule for it computes
  nothing. Training steps of a GPT, an LSTM and ParticleNet showed no difference beyond the spread.
  For tanh, the four calls of NumPy (one forward and three in the rule) already take more than a
  fifth of HIPS's time, so three times is out of reach without compiled code.
"""


def scripts():
    """{name: first line of its docstring}"""
    found = {}
    for path in sorted(HERE.glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        main = any(isinstance(n, ast.FunctionDef) and n.name == "main" for n in tree.body)
        if path.stem not in HELPERS and main:
            found[path.stem] = (ast.get_docstring(tree) or path.stem).splitlines()[0].rstrip(".")
    return found


def parts():
    """{name: text} of the parts that RESULTS.md has now."""
    text = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
    pieces = re.split(r"^<!-- (\w+) -->\n", text, flags=re.MULTILINE)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def run(name):
    """What a script prints, or how it ended."""
    print(f"\n{name}", flush=True)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0
    lines, folder = [], HERE.parents[1]
    command = [sys.executable, "-W", "ignore", "-m", f"tests.benchmarks.{name}"]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=folder, env=environment
    )
    for line in process.stdout:
        print(line, end="", flush=True)
        lines.append(line)
    if process.wait():
        lines.append(f"\nThe script ended with error {process.returncode}.\n")
    if hasattr(os, "getloadavg"):
        lines.append(f"\nLoad of the machine at the start, in processors: {load:.1f}.\n")
    return "".join(lines)


def main(names):
    known = scripts()
    unknown = [n for n in names if n not in known]
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; there are {', '.join(known)}")
    found = parts()
    for name in names or known:
        start = time.perf_counter()
        text = run(name)
        print(f"{time.perf_counter() - start:.0f} s")
        found[name] = f"\n## {known[name]}\n\n{text.strip()}\n\n"
        ordered = [f"<!-- {n} -->\n{found[n]}" for n in sorted(found) if n in known]
        RESULTS.write_text(f"{HEAD}\n{''.join(ordered).rstrip()}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
