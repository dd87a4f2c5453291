"""What an installation brings: the script, the extras, every data file."""

import fnmatch
import importlib.util
import re
import tomllib

import pytest
from packaging.markers import Marker

import tinyattn
from tests import ROOT
from tests.scripts.lowest import lowest
from tinyattn import doctor

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_console_script_is_there():
    module, _, function = PROJECT["project"]["scripts"]["tinyattn"].partition(":")
    assert callable(getattr(importlib.import_module(module), function))


def test_only_numpy_and_numba_are_needed_and_nothing_is_capped():
    needed = PROJECT["project"]["dependencies"]
    assert [re.match(r"\w+", one)[0] for one in needed] == ["numpy", "numba"]
    extras = PROJECT["project"]["optional-dependencies"]
    assert set(extras) == {"class", "dev", "grade", "models", "peers", "site"}
    for requirements in (needed, *extras.values()):
        assert not [one for one in requirements if "<" in one.split(";")[0]]


def test_numba_is_asked_for_only_where_it_can_be_had():
    (numba,) = [one for one in PROJECT["project"]["dependencies"] if one.startswith("numba")]
    marker = Marker(numba.partition(";")[2].strip())
    for system, machine, expected in [
        ("linux", "x86_64", True),
        ("linux", "aarch64", True),
        ("win32", "AMD64", True),
        ("darwin", "arm64", True),
        ("darwin", "x86_64", False),
        ("emscripten", "wasm32", False),
        ("wasi", "wasm32", False),
    ]:
        assert marker.evaluate({"sys_platform": system, "platform_machine": machine}) == expected


def test_the_version_stands_in_one_place():
    assert PROJECT["project"]["dynamic"] == ["version", "urls"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "tinyattn.__version__"}
    for file, line in [
        ("CITATION.cff", r"^version: {}$"),
        ("CHANGELOG.md", r"^## {}(, not yet released|, 20.*)?$"),
    ]:
        text = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(line.format(re.escape(tinyattn.__version__)), text, re.M), file


def test_doctor_knows_every_extra_and_the_lowest_versions():
    extras = PROJECT["project"]["optional-dependencies"]
    assert set(doctor.GROUPS) == {"", *extras}
    assert set(doctor.MODELS) == set(extras["models"])
    assert {name: doctor.TESTED[name][0] for name in lowest()} == lowest()
    assert PROJECT["project"]["requires-python"] == f">={doctor.TESTED['python'][0]}"


def test_the_readme_names_the_models():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(name in text for name in doctor.MODELS)


def test_the_lowest_versions_are_read_from_the_project():
    assert lowest().keys() == {"numpy", "numba"}
    assert all(re.fullmatch(r"\d+\.\d+", number) for number in lowest().values())


def test_every_data_file_is_installed():
    patterns = PROJECT["tool"]["setuptools"]["package-data"]
    covered = {
        path
        for package, names in patterns.items()
        for path in ROOT.joinpath(*package.split(".")).rglob("*")
        if any(
            fnmatch.fnmatch(path.relative_to(ROOT.joinpath(*package.split("."))).as_posix(), name)
            for name in names
        )
    }
    files = [p for p in (ROOT / "tinyattn").rglob("*") if p.is_file() and p.suffix != ".py"]
    left = [p.relative_to(ROOT) for p in files if p not in covered and "__pycache__" not in p.parts]
    assert not left, f"not in [tool.setuptools.package-data]: {left}"


def test_every_folder_of_the_package_is_one():
    for path in (ROOT / "tinyattn").rglob("*.py"):
        assert (path.parent / "__init__.py").is_file(), f"{path.parent} has no __init__.py"


def test_the_commands_of_the_readme_are_the_ones_ci_runs():
    blocks = re.findall(r"```bash\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    commands = [line for block in blocks for line in block.splitlines() if "-m venv" in line]
    first, second = commands
    assert first.startswith("python3 -m venv .venv && .venv/bin/pip install -e ")
    assert first.endswith(".venv/bin/tinyattn class")
    assert second.endswith(".venv/bin/pytest")


def test_addresses_are_those_of_the_repository_that_builds_and_never_invented():
    spec = importlib.util.spec_from_file_location("setup_of_tinyattn", ROOT / "setup.py")
    setup = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(setup)
    assert setup.links({}) == {}
    found = setup.links({"GITHUB_REPOSITORY": "Some-One/course"})
    assert found["Source"] == "https://github.com/Some-One/course"
    assert found["Documentation"] == "https://some-one.github.io/course/"


def test_doctor_finds_compiled_kernels_in_every_folder(tmp_path, monkeypatch):
    numba = pytest.importorskip("numba")
    from tinyattn.kernels.machine.compile import compiled_files

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    assert compiled_files() == {}
    for name in ("fast/__pycache__/attention.sums-1.nbi", "fast/knn.run-2.nbi", "x/other.f-3.nbi"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert compiled_files() == {tmp_path: ["attention", "knn"]}  # `other` is no kernel of ours
