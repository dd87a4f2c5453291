"""The trial of the facts that kernels rely on: where one fails, NumPy does all, with one line."""

import errno
import os
import re
import signal
import subprocess
from types import SimpleNamespace

import pytest

numba = pytest.importorskip("numba")

from tests import ROOT  # noqa: E402
from tests.machine import fresh_python  # noqa: E402
from tinyattn.kernels.machine import assumptions, canary, compile_notice  # noqa: E402

SIGSEGV = int(signal.SIGSEGV)
ATTENTION = """
import warnings
import numpy as np
from tinyattn.functional.attention import scaled_dot_product_attention
x = np.random.default_rng(0).standard_normal((4, 200, 16)).astype(np.float32)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    found = [scaled_dot_product_attention(x, x, x, causal=True).data for _ in range(2)]
from tinyattn import kernels
expected = scaled_dot_product_attention(x, x, x, causal=True, impl="numpy").data
print(kernels.numba is None, np.array_equal(found, [expected] * 2), len(caught))
print(*[one.message for one in caught])
"""
# what a later version may do to us: a name that is gone, another meaning, and a crash; the first of
# all facts, one in the middle, and one at the end
CHANGES = {
    "gone": ("del IRBuilder.shuffle_vector", "vectors: .*shuffle_vector"),
    "other": ("IRBuilder.cttz = lambda self, x, _: x", "bits: ValueError: wrong bits"),
    "crash": (
        f"import os\nIRBuilder.store_atomic = lambda *_: os.kill(os.getpid(), {SIGSEGV})",
        f"atomics: ended with status -{SIGSEGV}",
    ),
}


def changed_llvmlite(folder, change):
    """Settings of a Python in which llvmlite is another one, as are all that it starts."""
    source = f"from llvmlite.ir.builder import IRBuilder\n{change}\n"
    (folder / "sitecustomize.py").write_text(source, encoding="utf-8")
    paths = os.pathsep.join([str(folder), str(ROOT)])
    return {"PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(folder), "TINYATTN_CANARY": ""}


@pytest.mark.skipif(os.name == "nt", reason="a crash has another status there")
@pytest.mark.parametrize("name", CHANGES)
def test_where_a_fact_fails_attention_runs_on_arrays_with_one_line(name, tmp_path):
    change, message = CHANGES[name]
    settings = changed_llvmlite(tmp_path, change)
    for _ in range(2 if name == "gone" else 1):  # the second one remembers
        without, same, lines, *words = fresh_python(ATTENTION, **settings)
        assert (without, same, lines) == ("True", "True", "1")
        assert re.search(message, " ".join(words))
        assert f"Numba {numba.__version__} does not do what it relies on" in " ".join(words)
    assert len(canary.read(tmp_path / "canary.json")) == 1


def test_where_all_facts_hold_kernels_are_compiled_and_kept(tmp_path):
    """Files of the cache carry the checksum of what the trial has tried."""
    found = fresh_python(
        """
        import os, warnings
        import numpy as np
        warnings.simplefilter("error")
        from tinyattn.kernels.fast.rowwise import softmax, softmax_rows
        from tinyattn.kernels.machine import compile
        print(softmax(np.ones((2, 4), np.float32), False).sum(), len(softmax_rows.signatures))
        print(f"{compile.checksum:08x}")
        print(*[f for _, _, files in os.walk(os.environ["NUMBA_CACHE_DIR"]) for f in files])
        """,
        NUMBA_CACHE_DIR=str(tmp_path),
        TINYATTN_CANARY="",
    )
    total, kernels, checksum, *files = found
    assert (total, kernels) == ("2.0", "1")
    assert list(canary.read(tmp_path / "canary.json").values()) == [""]
    indices = [name for name in files if name.endswith(".nbi") and "softmax_rows" in name]
    assert len(indices) == 1 and checksum in indices[0]


# ---------------------------------------------------------------- what else may be at fault

NO_SPACE = f"OSError({errno.ENOSPC}, os.strerror({errno.ENOSPC}))"
BROKEN = r"the compiled kernel needs Numba, whose installation is broken \(importing it raises {}; "
# package that is another one: its source, and what the line says
IMPORTS = {
    "other NumPy": (
        "numba",
        "raise SystemError('no NumPy\\nlike ours.')",
        BROKEN.format("SystemError: no NumPy"),
    ),
    "no library": (
        "llvmlite",
        "raise OSError('no libllvmlite.so')",
        BROKEN.format("OSError: no libllvmlite.so"),
    ),
    "empty": (
        "numba",
        "",
        BROKEN.format("ImportError: cannot import name 'config' from 'numba'.*"),
    ),
    "no llvmlite": (
        "llvmlite",
        "raise ModuleNotFoundError('it is gone', name='llvmlite')",
        BROKEN.format("ModuleNotFoundError: it is gone"),
    ),
    "none": (
        "numba",
        "raise ModuleNotFoundError('it is gone', name='numba')",
        r"the compiled kernel needs Numba \(pip install numba\)\. ",
    ),
}


def one_line_about_numpy(settings):
    """The only warning of attention, which NumPy computes."""
    without, same, lines, *words = fresh_python(ATTENTION, **settings)
    assert (without, same, lines) == ("True", "True", "1")
    line = " ".join(words)
    assert "does not do what it relies on" not in line
    return line


@pytest.mark.parametrize("name", IMPORTS)
def test_a_numba_that_cannot_be_imported_is_told_as_that(name, tmp_path):
    package, source, message = IMPORTS[name]
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text(source, encoding="utf-8")
    settings = {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    assert re.search(message, one_line_about_numpy(settings))


@pytest.mark.parametrize("trial", ["", "off"])
def test_a_compiler_that_is_switched_off_is_told_as_that(trial):
    line = one_line_about_numpy({"NUMBA_DISABLE_JIT": "1", "TINYATTN_CANARY": trial})
    assert "needs Numba's compiler, which NUMBA_DISABLE_JIT=1 switches off (unset it)" in line


def test_a_full_disk_is_told_as_that_and_not_remembered(tmp_path):
    change = f"import os\ndef full(*_):\n    raise {NO_SPACE}\nIRBuilder.shuffle_vector = full"
    line = one_line_about_numpy(changed_llvmlite(tmp_path, change))
    assert re.search(
        r"needs space on the disk, which is full \(\[Errno \d+\] .*; remove some", line
    )
    assert not (tmp_path / "canary.json").exists()


@pytest.fixture
def trials(monkeypatch, tmp_path):
    """Numba of some version, and the list of trials that were made."""
    monkeypatch.delenv("TINYATTN_CANARY", raising=False)
    made = []
    monkeypatch.setattr(canary, "try_facts", lambda: made.append(1) or "")
    config = SimpleNamespace(
        CACHE_DIR=str(tmp_path), CPU_NAME="", CPU_FEATURES="", DISABLE_JIT=False
    )
    return SimpleNamespace(__version__="9.9", config=config), made


def test_facts_are_tried_once_for_each_version(trials):
    version, made = trials
    assert canary.problem_with(version) == canary.problem_with(version) == ""
    assert len(made) == 1
    version.__version__ = "9.10"
    assert canary.problem_with(version) == canary.problem_with(version) == ""
    assert len(made) == 2


def test_the_trial_can_be_left_out(trials, monkeypatch):
    version, made = trials
    monkeypatch.setenv("TINYATTN_CANARY", "off")
    assert canary.problem_with(version) == "" and not made


def test_a_trial_that_does_not_start_is_not_remembered(trials, monkeypatch):
    version, made = trials
    error = OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
    text = f"their trial did not run: {error}"
    monkeypatch.setattr(canary, "try_facts", lambda: made.append(1) or text)
    for i in (1, 2):
        expected = f"needs a trial of Numba, which the system did not let run ({error})"
        assert canary.problem_with(version) == expected and len(made) == i


def test_a_trial_that_takes_too_long_is_not_remembered(trials, monkeypatch):
    """The machine may be less busy the next time."""
    version, _ = trials
    started = []

    def run(command, timeout, **_):
        started.append(command)
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.undo()
    monkeypatch.setattr(canary, "remembered", lambda key, places: None)
    monkeypatch.setattr(canary, "remember", lambda *_: pytest.fail("it was remembered"))
    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.delenv("TINYATTN_CANARY", raising=False)
    for i in (1, 2):
        assert "did not end within" in canary.problem_with(version) and len(started) == i


def test_an_outcome_that_cannot_be_kept_is_told_once(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(compile_notice, "_said", set())
    (tmp_path / "file").write_text("", encoding="utf-8")
    for key in "ab":
        canary.remember(key, "", [tmp_path / "file" / "canary.json"])
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"tinyattn: the trial of Numba cannot be kept in {tmp_path / 'file'} (")
    assert "so each run makes it again. Set NUMBA_CACHE_DIR to a folder" in line


def test_an_unfinished_file_of_outcomes_is_removed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(compile_notice, "_said", set())

    def full(self, text, **_):
        self.write_bytes(text.encode()[:5])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(canary.Path, "write_text", full)
    canary.remember("a", "", [tmp_path / "canary.json"])
    assert not list(tmp_path.iterdir()) and os.strerror(errno.ENOSPC) in capsys.readouterr().err


def test_an_outcome_is_remembered_where_there_is_a_place(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    places = [tmp_path / "file" / "canary.json", tmp_path / "folder" / "canary.json"]
    assert canary.remembered("a", places) is None
    for i in range(40):
        canary.remember(f"key {i}", "", places)
    canary.remember("a", "fork_join: ended", places)
    assert canary.remembered("a", places) == "fork_join: ended"
    assert canary.remembered("key 39", places) == ""
    assert len(canary.read(places[1])) == canary.REMEMBERED
    for damaged in ("not JSON", "[1]", '{"a": 1}', '{"a": "fork'):
        places[1].write_text(damaged, encoding="utf-8")
        assert canary.remembered("a", places) is None


def test_a_wrong_result_is_shown_where_it_differs():
    with pytest.raises(ValueError, match=r"index \(4,\)"):
        assumptions.expect([1, 2, 3, 4, 5], [1, 2, 3, 4, 6])
    with pytest.raises(ValueError, match=r"index \(1, 0\)"):
        assumptions.expect([[0, 0], [1e-10, 0]], 0)


def test_the_readme_lists_all_facts():
    readme = (ROOT / "tinyattn" / "kernels" / "README.md").read_text(encoding="utf-8")
    names = {name for name in vars(assumptions) if name.startswith("fact_")}
    assert set(re.findall(r"`(fact_\w+)`", readme)) == names


# ---------------------------------------------------------------- facts that no kernel can try


def test_bounds_are_checked_on_demand(tmp_path):
    assert fresh_python(
        """
        import numpy as np
        from tinyattn.kernels import jit
        from tinyattn.kernels.machine.load_store import load, load_partial
        from tinyattn.kernels.machine.prefetch import prefetch
        from tinyattn.kernels.machine.simd import hsum, width

        @jit
        def sum_at(x, i):
            prefetch(x, i + 1000)  # which may be behind the end
            return hsum(load(x, i))

        @jit
        def sum_up_to(x, i, end):
            return hsum(load_partial(x, i, end, 0))

        x = np.ones(20, np.float64)
        print(sum_at(x, 0) == width(x), sum_up_to(x, 19, 20))
        # x[19] and x[20], which the narrowest vectors reach too
        for f, *place in ((sum_at, -1), (sum_at, 20), (sum_up_to, 19, 21)):
            try:
                print(f(x, *place))
            except IndexError as error:
                print(*str(error).split())
        """,
        NUMBA_BOUNDSCHECK="1",
        NUMBA_CACHE_DIR=str(tmp_path),
        TINYATTN_CANARY="off",
    ) == ["True", "1.0", *["vector", "outside", "of", "array"] * 3]
