"""Print the lowest versions that pyproject.toml allows, or --check that they are installed."""

import re
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


def lowest():
    """Return {package: lowest version} of what the library needs to run."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    return dict(re.match(r"([\w-]+)>=([\d.]+)", need).groups() for need in project["dependencies"])


def main(*options):
    if "--check" in options:
        here = {name: version(name) for name in lowest()}
        wrong = {n: v for n, v in here.items() if not (v + ".").startswith(lowest()[n] + ".")}
        return f"expected {lowest()}, here are {here}" if wrong else None
    print(*[f"{name}=={number}.*" for name, number in lowest().items()])
    return None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
