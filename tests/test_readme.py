"""The README is true: its examples run and its links lead somewhere."""

import contextlib
import io
import re

from tests import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_examples_run_and_print_what_the_text_says():
    names, printed = {}, []
    for code in re.findall(r"```python\n(.*?)```", README, re.S):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, "README.md", "exec"), names)
        printed.append(out.getvalue())
    assert len(printed) == 3
    assert float(printed[0].split()[1]) < 0.01, "the ten lines are to fit the sine"
    first, second = map(float, re.findall(r"-?\d+\.\d+", printed[1]))
    tanh = 0.46211716  # tanh 0.5; then 1 - t², -2t(1 - t²)
    for found, expected in [
        (first, 1 - tanh**2),
        (second, -2 * tanh * (1 - tanh**2)),
    ]:
        assert abs(found - expected) < 1e-5  # float32
    assert "2/3" in printed[2], "the check is to name the factor that is missing"


def test_the_table_names_every_lecture_and_homework():
    found = [
        p
        for folder in ("", "homework")
        for p in (ROOT / "notebooks" / folder).glob("[0-9h]*.ipynb")
    ]
    there = {p.relative_to(ROOT).as_posix() for p in found}
    missing = sorted(path for path in there if f"({path})" not in README)
    assert len(there) > 20
    assert not missing, f"the table of lectures in README.md has no link to {', '.join(missing)}"


def test_links_lead_somewhere():
    targets = [t for t in re.findall(r"\]\(([^)]+)\)", README) if "://" not in t]
    missing = [t for t in targets if not (ROOT / t).exists()]
    assert targets and not missing
