"""Run all lectures in full, one after the other, with every claim at its full size.

If the machine stops, hours of work are not lost. Finished lectures are noted in build/full.json,
and the next call continues with the first lecture that is not finished or has changed since. The
duration of each lecture is written into the table of `lectures/README.md`.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from tinyattn.course.project import CourseError, write_text
from tinyattn.kernels.machine import first_use

DONE = Path("build") / "full.json"
TABLE = Path("lectures") / "README.md"
BEGIN, END = "<!-- full runs -->", "<!-- end of full runs -->"


def run(documents, *, again=False):
    """Run these lectures in full, and return the exit code, which is 1 if one of them failed.

    `again` includes lectures whose text has not changed since their last full run.
    """
    failed = []
    for document in documents:
        done = _read(document.root)
        text = _digest(document)
        if not again and done.get(document.number, {}).get("text") == text:
            print(
                f"{document.name}: unchanged since its last full run (--again runs it nevertheless)"
            )
            continue
        began = time.perf_counter()
        if _one(document) != 0:
            failed.append(document.number)
            continue
        minutes = (time.perf_counter() - began) / 60
        done = _read(document.root) | {document.number: {"text": text, "minutes": minutes}}
        write_text(document.root / DONE, json.dumps(done, indent=1))
        write_times(document.root, done)
    if failed:
        print(f"failed: {', '.join(failed)}; the next call runs them again", file=sys.stderr)
    return 1 if failed else 0


def _one(document):
    """Run one lecture in full in its own process, which isolates its memory and its crashes."""
    return subprocess.run(
        [sys.executable, "-m", "coursekit.cli", "run", document.number],
        cwd=document.root,
        env={**os.environ, "TINYATTN_FULL": "1", first_use.SETTING: "now"},
        check=False,
    ).returncode


def write_times(root, done):
    """Write these durations into the table of `lectures/README.md`, and keep all others."""
    text = (root / TABLE).read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    table, end, after = rest.partition(END)
    if not (begin and end):
        raise CourseError(
            f"{TABLE.as_posix()} must contain the lines '{BEGIN}' and '{END}', in this order. Add "
            "both where the table of times belongs"
        )
    rows = dict(re.findall(r"^\| (\d\d) \| (\d+) \|$", table, re.MULTILINE))
    rows |= {number: f"{entry['minutes']:.0f}" for number, entry in done.items()}
    lines = [f"| {number} | {minutes} |" for number, minutes in sorted(rows.items())]
    table = "\n".join(["", "| lecture | minutes of a full run |", "|---|---|", *lines, ""])
    write_text(root / TABLE, before + begin + table + end + after)


def _read(root):
    path = root / DONE
    try:
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except ValueError:
        raise CourseError(
            f"{DONE.as_posix()} is damaged, so it is unknown which lectures have run. Delete it to "
            "run all of them again"
        ) from None


def _digest(document):
    return hashlib.sha256(document.source.read_bytes()).hexdigest()[:16]
