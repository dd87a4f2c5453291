"""Test whether the tests notice wrong derivatives, by changing derivatives on purpose.

    python -m tests.scripts.mutation [OPTIONS]

    (no option)         all mutants; goes on where it stopped
    --part 1/4          every fourth of them, for four evenings
    --only ops/linalg   those of one file
    --sample 100        a hundred of them, spread over all files
    --loops             the loops of tinyattn/kernels instead of rules
    --numba             with kernels, for the rules that call them
    --report            only print what is known

A mutant is a derivative rule (`defvjp`), or a function of the same file that a rule calls, with one
small mistake. For example, a sign is flipped, a factor is dropped, two inputs are swapped, a
broadcast is forgotten, x replaces y, or a comparison is reversed. A mutant exists only in memory.
The code of the function is replaced, and the gradient checks of `tests/cases` that run through it
are executed, then the tests in MORE_TESTS (with kernels or for loops those in KERNEL_TESTS or
LOOP_TESTS). Then the code is restored. A mutant that passes all tests has survived, so a check is
missing, or the mutant computes the same result.

Results are stored in build/mutation/ under the text of the function, so that unchanged functions
are not tested again. Survivors in EXPLAINED compute the same result, and those in WITHOUT_KERNELS
do so if no kernel runs. The reasons are given there.
"""

import argparse
import ast
import contextlib
import copy
import gc
import hashlib
import io
import json
import os
import sys
import time
import warnings
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import NamedTuple

import numpy as np
import pytest

from tests import ROOT
from tinyattn.ops.backends import have_numba

PACKAGE = ROOT / "tinyattn"
RESULTS = ROOT / "build" / "mutation"
RULES = ("ops", "functional", "graph", "engine/transforms.py")
MOST_SECONDS = 30  # of the processor, for one mutant
# where random numbers never come, and where kernels do what NumPy does for few numbers
MORE_TESTS = (
    "tests/ops/test_rules.py",
    "tests/ops/test_index.py",
    "tests/ops/test_matmul.py",
    "tests/engine/test_transforms.py",
)
# of rules whose kernels run for many numbers only
KERNEL_TESTS = ("tests/kernels/test_rowwise.py",)
# of the readable loops, also of those that no operation runs
BLOCKWISE = "tests/functional/test_attention.py::test_blockwise"
LOOP_TESTS = (
    "tests/kernels/test_loops.py",
    f"{BLOCKWISE}_is_the_sums",
    f"{BLOCKWISE}_of_queries_that_see_nothing_and_of_scores_of_any_size",
)

# (file, function, the mutated line contains): why no check notices it here
EXPLAINED = {
    ("graph/condensation.py", "_pushes", "> 0"): "value and rule alike; see test_equals_the_loops",
    (
        "ops/attention.py",
        "_packed_kernel_backward",
        "q.shape[-1]",
    ): "the kernel kept the scale itself",
    ("ops/attention.py", "_packed_kernel_backward", "x -> y"): "x and y have the same dtype",
    ("ops/elementwise.py", "_share_of", "x -> y"): "if both inputs are the same infinity, so is y",
    ("ops/elementwise.py", "lambda", "np.zeros_like(g)"): "minus zero is zero",
    ("ops/backends.py", "_through", "np.reshape(x, x.shape)"): "of kernels: see test_rules.py",
    ("ops/index.py", "_row_numbers", "-ids"): "of no numbers",
    ("ops/index.py", "_gather", "1 -> 0"): "chooses who computes, not what",
    ("ops/index.py", "take_rows", "index.size"): "chooses who computes, not what",
    ("ops/linalg.py", "_cholesky_rule", "404"): "x and y have the same shape and dtype",
    ("ops/linalg.py", "_matmul_left", "linalg.py:54"): "chooses who computes, not what",
    ("ops/matmul.py", "_multiplications", "ops/matmul.py"): "chooses who computes, not what",
    ("ops/matmul.py", "gemm", "matmul.py:21"): "a Tensor has a `dot` as well",
    ("ops/matmul.py", "gemm", "matmul.py:23"): "chooses who computes, not what",
    ("ops/matmul.py", "gemm", "matmul.py:25"): "chooses who computes, not what",
    ("ops/pool.py", "_max_kernel_backward", "x -> y"): "x and y have the same dtype",
    ("ops/pool.py", "_max_loops_backward", "x -> y"): "x and y have the same batch and dtype",
    ("ops/reduce.py", "_cumprod_rule", "y -> x"): "the rule does not use y",
    ("ops/reduce.py", "_extremum_vjp", "x -> y"): "x and y have the same dtype",
    ("ops/reduce.py", "restore", "-> g"): "a single number is broadcast to any shape",
}
# equal results if kernels do not run, so these are tested only with --numba
WITHOUT_KERNELS = {
    ("ops/index.py", "_names_rows", "index.ndim > 0"): "chooses who computes, not what",
    ("ops/index.py", "_row_numbers", "-n -> n"): "a line that runs with kernels only",
    ("ops/index.py", "_row_numbers", "least < -n ->"): "names the index in the error of a kernel",
    ("ops/index.py", "_take_rows_kernel", "-y"): "a line that runs with kernels only",
    ("ops/index.py", "_take_rows_kernel", "x -> y"): "a line that runs with kernels only",
    ("ops/index.py", "_gather", "x.ndim > 1 ->"): "chooses who computes, not what",
    ("ops/index.py", "_take_rows_kernel", "y -> x"): "a line that runs with kernels only",
    ("ops/matmul.py", "gemm", "matmul.py:28"): "a line that runs with kernels only",
    ("ops/matmul.py", "sum_rows", "-fast"): "a line that runs with kernels only",
    ("ops/pool.py", "_planes", "ops/pool.py"): "of kernels, which have tests of their own",
    ("ops/pool.py", "_two", "ops/pool.py"): "of kernels, which have tests of their own",
}

# ---------------------------------------------------------------- where rules stand


def functions_of_rules(tree):
    """Return the functions and lambdas of a module that are rules, or are called by rules."""
    named = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    found, todo = [], []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_defvjp(node.func):
            todo += [a for a in node.args if isinstance(a, ast.Lambda)]
            todo += [named[a.id] for a in node.args if isinstance(a, ast.Name) and a.id in named]
        if isinstance(node, ast.FunctionDef) and any(map(_is_defvjp, node.decorator_list)):
            todo.append(node)
    while todo:
        f = todo.pop()
        if f in found:
            continue
        found.append(f)
        calls = [
            n.func.id
            for n in ast.walk(f)
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)
        ]
        todo += [named[name] for name in calls if name in named and not named[name].decorator_list]
    return sorted(found, key=lambda f: (f.lineno, f.col_offset))


def _is_defvjp(node):
    return isinstance(node, ast.Attribute) and node.attr in ("defvjp", "defvjp_joint")


def backward_loops(tree):
    """Return the functions of a file of loops that belong to a backward pass."""
    return [
        n
        for n in tree.body
        if isinstance(n, ast.FunctionDef) and ("backward" in n.name or "gradients" in n.name)
    ]


# ---------------------------------------------------------------- mistakes


SHAPES = {"restore", "broadcast_to", "expand_dims", "reshape", "swapaxes", "unbroadcast"}
TURNED = {ast.Lt: ast.GtE, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.GtE: ast.Lt, ast.Eq: ast.NotEq}


def mistakes_at(node, names):
    """Yield (kind, replacement) for one node of a rule."""
    if isinstance(node, ast.BinOp):
        op, left, right = type(node.op), node.left, node.right
        if op in (ast.Add, ast.Sub):
            other = ast.Sub() if op is ast.Add else ast.Add()
            yield "a sign flipped", ast.BinOp(left, other, right)
        if op is ast.Mult:
            yield "a factor dropped", left
            yield "a factor dropped", right
        if op is ast.Div:
            yield "a divisor dropped", left
            yield "divided the other way", ast.BinOp(left, ast.Mult(), right)
        if op in (ast.MatMult, ast.Sub, ast.Pow):
            yield "two inputs swapped", ast.BinOp(right, node.op, left)
        if op is ast.Pow:
            yield "a power dropped", left
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        if not isinstance(node.operand, ast.Constant):
            yield "a sign flipped", node.operand
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
        other = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
        yield "a sign flipped", ast.AugAssign(node.target, other, node.value)
        yield "a sum that keeps the last", ast.Assign([node.target], node.value)
    if isinstance(node, ast.Compare) and type(node.ops[0]) in TURNED:
        turned = TURNED[type(node.ops[0])]()
        ops = [turned, *node.ops[1:]]  # 0 <= i < n has two
        yield "a comparison turned", ast.Compare(node.left, ops, node.comparators)
    if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple | ast.List):
        a, b, *more = [*node.value.elts, None, None]
        if b is not None and ast.unparse(a) != ast.unparse(b):
            yield "two gradients swapped", ast.Return(ast.Tuple([b, a, *more[:-2]], ast.Load()))
    elif isinstance(node, ast.Return) and isinstance(node.value, ast.BinOp | ast.Call | ast.Name):
        yield "the sign of the result flipped", ast.Return(ast.UnaryOp(ast.USub(), node.value))
    if isinstance(node, ast.Call):
        yield from _mistakes_at_call(node)
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        for a, b in (("x", "y"), ("y", "x"), ("a", "b"), ("b", "a")):
            if node.id == a and {a, b} <= names:
                yield f"{b} in place of {a}", ast.Name(b, ast.Load())
    if isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value > 1:
        yield "a number dropped", ast.Constant(1)


def _mistakes_at_call(node):
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in SHAPES and node.args and not isinstance(node.args[0], ast.Starred):
        yield "a broadcast forgotten", node.args[0]
    if name == "where" and len(node.args) == 3:
        c, a, b = node.args
        yield "the branches swapped", ast.Call(node.func, [c, b, a], node.keywords)
    if name in ("matmul", "subtract", "dot") and len(node.args) >= 2:
        a, b, *more = node.args
        yield "two inputs swapped", ast.Call(node.func, [b, a, *more], node.keywords)
    keep = [k for k in node.keywords if k.arg not in ("axis", "keepdims")]
    if len(keep) < len(node.keywords) and name in ("sum", "mean", "max", "prod", "cumsum"):
        yield "an axis forgotten", ast.Call(node.func, node.args, keep)


def whole_rule(f):
    """Yield the mistakes of a whole rule: its sign, and its factor two."""
    if isinstance(f, ast.Lambda):
        yield "the sign of the rule flipped", ast.UnaryOp(ast.USub(), f.body)


class Mutant(NamedTuple):
    """One mistake: where, what, and how the code is changed."""

    file: str
    function: str
    line: int
    column: int
    kind: str
    before: str
    after: str
    number: int  # of the function among those of its file
    place: int  # of the node among those of its function, -1 for the whole body of a lambda
    choice: int  # of the mistake among those of the node
    text: str  # of the function

    @property
    def key(self):
        parts = (self.file, self.text, self.kind, self.place, self.choice)
        return hashlib.sha1(repr(parts).encode()).hexdigest()[:16]

    def __str__(self):
        return (
            f"{self.file}:{self.line} {self.function}: {self.kind}: {self.before} -> {self.after}"
        )


def mutants_of(path, select=functions_of_rules):
    """Yield all mutants of a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for number, f in enumerate(select(tree)):
        names = {n.id for n in ast.walk(f) if isinstance(n, ast.Name)}
        sites = [(-1, f, list(whole_rule(f)))]
        sites += [(i, node, list(mistakes_at(node, names))) for i, node in enumerate(nodes_of(f))]
        for place, node, found in sites:
            for choice, (kind, after) in enumerate(found):
                before = f.body if place == -1 else node
                yield Mutant(
                    path.relative_to(PACKAGE).as_posix(),
                    getattr(f, "name", "lambda"),
                    node.lineno,
                    node.col_offset,
                    kind,
                    ast.unparse(before),
                    _text(after),
                    number,
                    place,
                    choice,
                    ast.unparse(f),
                )


def nodes_of(f):
    """Return the nodes of a function's body in a fixed order, without docstrings and defaults."""
    body = f.body if isinstance(f.body, list) else [f.body]
    return [node for part in body for node in ast.walk(part)]


def _text(node):
    return ast.unparse(ast.fix_missing_locations(copy.deepcopy(node)))


# ---------------------------------------------------------------- exchanging the code


def code_objects(code):
    """Yield a code object and all code objects inside it, in the order of the source."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from code_objects(constant)


def mutated_code(path, mutant, select):
    """Return (original code, code with the mistake) of the function of a mutant."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    f = select(tree)[mutant.number]
    original = list(code_objects(compile(source, str(path), "exec")))
    at = next(i for i, c in enumerate(original) if _is_code_of(c, f))
    names = {n.id for n in ast.walk(f) if isinstance(n, ast.Name)}
    if mutant.place == -1:
        f.body = list(whole_rule(f))[mutant.choice][1]
    else:
        target = nodes_of(f)[mutant.place]
        after = list(mistakes_at(target, names))[mutant.choice][1]
        _Exchange(target, ast.copy_location(copy.deepcopy(after), target)).visit(f)
    changed = compile(ast.fix_missing_locations(tree), str(path), "exec")
    return original[at], list(code_objects(changed))[at]


def _is_code_of(code, f):
    if isinstance(f, ast.FunctionDef):
        return code.co_name == f.name
    places = [p for p in code.co_positions() if p[0] is not None and p[2] is not None]
    inside = [(p[0], p[2]) for p in places if (p[0], p[2]) >= (f.body.lineno, f.body.col_offset)]
    end = f.body.end_lineno, f.body.end_col_offset
    return (
        code.co_name == "<lambda>"
        and bool(inside)
        and all((p[1], p[3]) <= end for p in places if (p[0], p[2]) in inside)
        and min(inside) == (f.body.lineno, f.body.col_offset)
    )


class _Exchange(ast.NodeTransformer):
    def __init__(self, old, new):
        self.old, self.new = old, new

    def visit(self, node):
        return self.new if node is self.old else self.generic_visit(node)


def living_function(code):
    """Return the function of the running program that has this code, or None."""
    found = [
        f
        for f in gc.get_objects()
        if type(f) is FunctionType
        and f.__code__ == code
        and f.__code__.co_filename == code.co_filename
    ]
    return found[0] if found else None


# ---------------------------------------------------------------- the checks


def all_checks():
    """Return [(name, case)] of tests/cases, and of indexing."""
    from tests.ops import test_gradients as table

    cases = [
        (f"{table.name_of(what)} {case.note}", case)
        for what, found in table.CASES.items()
        for case in found
    ]
    return cases + [(f"index {case.note}", case) for case in table.indexing_cases()]


def passes(check):
    """Return whether a check passes. Every exception counts as a failure."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return check()
        except Exception:
            return False


def what_runs_where(cases, codes):
    """Return {code: [(work, name, check)]} with the checks that run a function, the fastest first.

    A case runs the rules of the operations in its graph, and what these call in their files.
    """
    from tests.ops.test_gradients import operations_of
    from tinyattn.check import gradcheck

    found = {code: [] for code in codes}
    for name, case in cases:
        start = time.perf_counter()
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            operations = operations_of(case)
        seconds = time.perf_counter() - start

        def check(c=case):
            return bool(gradcheck(c.f, *c.inputs, order=c.order))

        for code in {code for op in operations for code in codes_below(op)} & found.keys():
            found[code].append((len(operations) * seconds, name, check))  # the direct ones first
    return {code: sorted(runs, key=lambda run: run[0]) for code, runs in found.items()}


@cache
def codes_below(operation):
    """Return the code of the rules of an operation, and of all functions that they call by name."""
    todo = [f for f in (*operation.rules, operation.joint) if isinstance(f, FunctionType)]
    seen = set()
    while todo:
        f = todo.pop()
        if f.__code__ in seen or not f.__code__.co_filename.startswith(str(PACKAGE)):
            continue
        seen.add(f.__code__)
        inside = [cell.cell_contents for cell in f.__closure__ or ()]
        names = {n for code in code_objects(f.__code__) for n in code.co_names}
        modules = [
            sys.modules.get(m)
            for n in names
            if n.startswith("tinyattn")
            for m in (n, *(f"{n}.{part}" for part in names))
        ]
        called = [f.__globals__.get(name) for name in names] + modules
        # a loop is called as an attribute of its module
        called += [
            getattr(m, name, None) for m in called if isinstance(m, ModuleType) for name in names
        ]
        todo += [g for g in (*inside, *called) if isinstance(g, FunctionType)]
    return frozenset(seen)


def tests_beside_checks(loops):
    """Return the additional tests to run, for rules or for loops."""
    if loops:
        return LOOP_TESTS
    return (*MORE_TESTS, *(KERNEL_TESTS if sys.modules.get("numba", "not asked for yet") else ()))


def noticed_by(tests):
    """Return whether one of these tests, which are not gradient checks, fails."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        options = ["-q", "-x", "-n0", "-p", "no:cacheprovider", "-p", "no:randomly"]
        return pytest.main([*options, *[str(ROOT / test) for test in tests]]) != 0


def is_caught(function, code, runs, tests):
    """Return ("caught", "survived" or "out of time", and which check came last)."""
    before, function.__code__ = function.__code__, code
    end = time.process_time() + MOST_SECONDS
    try:
        for _, name, check in runs:
            if not passes(check):
                return "caught", name
            if time.process_time() > end:
                return "out of time", name
        return ("caught" if noticed_by(tests) else "survived"), "tests"
    finally:
        function.__code__ = before


def in_a_child(work, *arguments):
    """work(*arguments) in a forked process: a wrong shape can let a kernel read foreign memory."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        with os.fdopen(writer, "w") as answer:
            json.dump(work(*arguments), answer)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return tuple(json.loads(text)) if text else ("caught", "the process ended")


# ---------------------------------------------------------------- running


def files(loops):
    """Return the files with rules, or the files with loops."""
    if loops:
        return sorted((PACKAGE / "kernels").glob("*.py"))
    places = [PACKAGE / part for part in RULES]
    return sorted(p for place in places for p in ([place] if place.suffix else place.rglob("*.py")))


def chosen(options):
    """Return the requested mutants, with their files."""
    select = backward_loops if options.loops else functions_of_rules
    found = [(path, m) for path in files(options.loops) for m in mutants_of(path, select)]
    found = [(p, m) for p, m in found if options.only in m.file]
    if options.part:
        i, n = map(int, options.part.split("/"))
        found = found[i - 1 :: n]
    if options.sample:
        step = max(1, len(found) // options.sample)
        found = found[step // 2 :: step][: options.sample]
    return select, found


def run(options):
    """Test the mutants that were not tested yet, and return {key: result}."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    known = read()
    select, mutants = chosen(options)
    # with kernels those are tried again that nothing noticed without them
    settled = {key for key, (result, _) in known.items() if result == "caught" or not options.numba}
    todo = [(p, m) for p, m in mutants if m.key not in settled]
    if not todo:
        return known, [m for _, m in mutants]
    pairs = {m.key: mutated_code(p, m, select) for p, m in todo}
    runs = what_runs_where(all_checks(), {before for before, _ in pairs.values()})
    tests = tests_beside_checks(options.loops)
    if noticed_by(tests):  # then every mutant would count as caught
        raise SystemExit(f"without a mutant these must pass: {', '.join(tests)}")
    with open(RESULTS / "results.jsonl", "a", encoding="utf-8") as file:
        for i, (_, mutant) in enumerate(todo):
            before, after = pairs[mutant.key]
            function = living_function(before)
            if before.co_code == after.co_code and before.co_consts == after.co_consts:
                result = ("equal", "the compiled code is the same")
            elif function is None:
                result = ("not run", "nothing holds this function")
            else:
                arguments = function, after, runs[before], tests
                alone = in_a_child if options.numba else lambda work, *them: work(*them)
                result = alone(is_caught, *arguments)
            known[mutant.key] = result
            file.write(json.dumps([mutant.key, *result]) + "\n")
            file.flush()
            print(f"{i + 1}/{len(todo)} {result[0]:11} {mutant}", flush=True)
    return known, [m for _, m in mutants]


def read():
    """Return {key: (result, by which check)} of earlier runs."""
    path = RESULTS / "results.jsonl"
    if not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    return {key: (result, by) for key, result, by in map(json.loads, lines)}


def reason(mutant):
    """Return why no check notices a mutant here, or None."""
    without = sys.modules.get("numba", "not asked for yet") is None
    for (file, function, piece), why in (EXPLAINED | (WITHOUT_KERNELS if without else {})).items():
        if (file, function) == (mutant.file, mutant.function) and piece in str(mutant):
            return why
    return None


def report(known, mutants):
    """Print the figures, and each survivor."""
    counts = {}
    for mutant in mutants:
        result = known.get(mutant.key, ("not tried", ""))[0]
        if result != "caught" and reason(mutant):
            result = "explained"
        counts[result] = counts.get(result, 0) + 1
        if result not in ("caught", "explained", "equal", "not tried"):
            print(f"{result}: {mutant}  ({known[mutant.key][1]})")
    print(f"{len(mutants)} mutants: " + ", ".join(f"{n} {r}" for r, n in sorted(counts.items())))
    return counts


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="part of the name of a file")
    parser.add_argument("--part", default="", help="1/4: the first of four parts")
    parser.add_argument("--sample", type=int, default=0, help="so many, spread over all")
    parser.add_argument("--loops", action="store_true", help="the loops of kernels, as Python")
    parser.add_argument("--numba", action="store_true", help="with kernels, for the rules of these")
    parser.add_argument("--report", action="store_true", help="only print what is known")
    options = parser.parse_args(arguments)
    if not options.numba:
        sys.modules["numba"] = None  # all runs as Python, and its code can be exchanged
        with warnings.catch_warnings(action="ignore"):
            have_numba("a mutant")  # warns once that Numba is missing
    known, mutants = (
        (read(), [m for _, m in chosen(options)[1]]) if options.report else run(options)
    )
    counts = report(known, mutants)
    return 1 if counts.get("survived") else 0


if __name__ == "__main__":
    sys.exit(main())
