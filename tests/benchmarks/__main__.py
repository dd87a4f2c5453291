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

How many times as fast as its peer each piece of work is, as `python -m tests.benchmarks` printed
it: the ratio of the times of the same round, as the median over the rounds with its quartiles.
Above 1 tinyattn is faster. Rows that fall short of their goal say so.

## Why rows fall short, and what was tried

- **Products of up to 50 million multiplications, GPT tiny and small.** Helpers used to get each
  piece of work from Python and to wake first, 90 µs a call. Now they take pieces inside of the
  kernel and watch for the next one for a millisecond: GPT small from 0.85 to 1.1. How a product is
  cut is computed once for each shape, which saves 8 µs a call. Pieces have a million
  multiplications or more, four of them at least; sixteen pieces of a small product, each of which
  packs its rows and finds the columns in the cache of the other processor, took an eighth longer.
  With larger pieces two threads pay from a third of the work on. GPT tiny gained a twelfth by that
  and by a linear map that takes all leading axes itself.
- **Large products, GPT big.** Tiles of 6 rows in place of 4 read a panel two thirds as often; B
  packed once by all threads, tasks claimed by an atomic count; A in strips, so that all places in a
  tile are constants, and rows of the panel asked for ahead: from 0.75 to 0.9-1.0 of the speed of
  MKL. With both matrices copied before, the tiles alone are as fast as all of MKL's product: what
  is behind is the copying of B, a twentieth, and, with two threads, that the one waits for the
  other at the end, up to as much. Tried without gain: the same rows always to the same thread,
  results that begin with a line of memory, panels in the same memory at each call or stored past
  the cache, shallower slices, tiles of 2 to 5 vectors, smaller tasks at the end. Deeper slices,
  1,024 terms in place of 384, gained up to 5%. Higher pieces of work gained as much product by
  product, and lost as much in a training step. A group of panels for each thread, where B is 1,024
  columns wide or more, gained 2 to 6%: what another thread has just written takes long to read.
  For narrower ones, whose rows of A each thread would have to copy for itself, it gained nothing
  and lost up to 8%. The gradient of a weight reads A by columns, at three quarters of the speed;
  copying a few columns into all strips in turn took a third less time alone and lost 8% in a
  training step, where A comes from far memory.
- **Cells of 128 units.** The weights of a step are packed anew for 64 rows, and around the two
  products of each step stands Python. Panels are not kept from step to step: nothing would tell
  that a weight was changed in between.
- **Attention forward.** Up to N = 512 turning the queries and the exponential weigh more than in
  long rows; from N = 1,024 on it runs at the speed of a large product, and PyTorch's at 85% of it.
  Rows of the next head are asked for ahead: a tenth where heads lie inside of the tokens.
  Tasks claimed by an atomic count, tiles with constant steps: no difference above the noise.
- **Attention forward + backward, causal.** At N = 128 two of the three blocks of a head lie on the
  diagonal, where a part of each product is hidden again; smaller blocks of keys there (32 in place
  of 64) brought 8%. At N = 4,096 it runs at 90 to 100% of the speed of a large product; one run
  found 1.5 and 1.6 there, another 1.4.
- **Trainable bias.** It runs at three quarters of the speed of a large product at N = 512: twice
  as fast as PyTorch would be above that speed. At N = 128 the bias and its gradient, which have to
  be turned, since queries lie side by side, take a quarter of the time. Blocks of 32 or 128 keys:
  within 2%.
- **LSTM, and GRU of 256 units.** Somewhat ahead of oneDNN. Rows left over in pairs and 6 steps at
  a time gained some 10% at 256 units, whose weights hardly fit the second cache. Rows of the
  weights asked for ahead: no difference.
- **Segment softmax, ids at random.** Rows are read at random, there and back; those of the next
  segment are asked for ahead. Results go past the cache, as those of the sums do: a store that
  does not first read the line it changes saves a third of the traffic.
- **ParticleNet-Lite.** Kernels for batch normalization and ReLU brought it from 0.35 to about 1.
- **Generation, one sentence of MiniLM.** All weights are read for one token. Tiles of dot products
  read each of them once for up to 24 rows, where they lie, and a token goes through a layer in one
  compiled call, without Python between the operations: from 0.7-0.95 to 1.1-1.4. For d = 128 most
  of the time was Python around the layers: what it finds in a layer is looked up once for a text,
  which gained a sixth. Both threads take their parts of a product in few pieces, each from its own
  end, so that half of the weights stays in the cache of either: 5 to 25%.
- **A model in blocks of 4 bits.** All layers are one compiled call a token. What is left of Python
  was 1.4 ms of 7: after 96 MB of weights its own data are far from the processor. The model is
  compared with what was compiled in every 16th step only, and norm and head have forms of their
  own: 0.6 ms. Two threads take two thirds of the time of one, for what they read comes from the
  same memory. Tried without gain: lines asked for ahead, at any distance; large pages; the scales
  of a whole row times sums of x as vectors. Not built: inputs rounded to 8 bits, as llama.cpp has
  them, and rows stored anew for it; that would be about 1.7 times as fast and no longer exact.
  Most of the peak of memory is Numba: 270 MB after it has compiled one line, with SciPy.
- **Thirty-two sentences of MiniLM.** Five sixths of it are products, whose tiles run as fast in the
  model as they do alone. Beside them stand the copies of the weights, 7% of a product: half of that
  is waiting for far memory, which PyTorch's six layers read as well. Attention is about twice as
  fast as PyTorch's; GELU, norms and sums take a tenth. Plain arrays in place of tensors, and sums
  on all threads, gained 6%, panels of its own for each thread another 2 to 5%. Tried without gain:
  a layer in one compiled call, with a thread for each operation or for each text; the next weights
  asked for during a product (1%); pieces of twice the rows (a product gains up to 4%, the model
  nothing); GELU in place, sums and norms in one pass.
- **AdamW** goes through each parameter once, in a call of 5 µs. One call for all of them needs a
  table of addresses, which takes longer to make than the calls it saves. Small parameters side by
  side in one array, for which the gradients are copied, gained a sixth of the optimizer and a
  hundredth of a step of GPT tiny, for forty lines: taken out again.
- **EdgeConv.** Nearly all of the time is gathering rows and maxima, there and back; in vectors
  since then, which gained little where the features fill them. The rows do not fit the second
  cache. Tried without gain: rows asked for ahead, two vectors of features at a time (5-10%), one
  vector of features for all points before the next.
- **Pooling.** Its loops are not in vectors where windows are a stride apart.
- **GELU, norms, softmax of few rows.** Masks for the ends of rows cost a tenth to a fifth; other
  ways to make them (from one integer, from 32-bit lanes) gained nothing.
- **First kernel.** Numba reads its own registries first, and SciPy where that is installed.
- **Compiling anew** is Numba's work on two long functions. Fewer kinds of tiles, a lower level of
  optimization, no vectorizing of loops: each left it as it was. Helpers without the code that
  unpacks Python's objects saved a fifth where a kernel has many of them, as kNN does; a function
  that only calls another costs all of that one's code again, and without them the LSTM takes a
  fifth less.
- **Engine.** One `apply` and one backward loop for all operations, in place of special paths for
  one and two operands, cost a third of the speed of a chain of small operations. A `__getattr__`
  on Tensor, which only wrote better error messages, made each access to one of its slots take
  three times as long in Python 3.11: without it the chains are 1.14 to 1.19 times as fast, both
  versions in turns. Of 1.5 times PyTorch eager "add" falls short: a fifth of its time are two
  sums of NumPy, the rest is Python that each step needs, and PyTorch's rule for it computes
  nothing. Training steps of a GPT, an LSTM and ParticleNet showed no difference beyond the spread.
  For tanh the four calls of NumPy, one forward and three in the rule, already take more than a
  fifth of HIPS's time: three times is out of reach without compiled code.
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
        lines.append(f"\nOther programs that wanted a processor at the start: {load:.1f}.\n")
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
