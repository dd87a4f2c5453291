"""The ledger of claims: the statement on a slide, its test, and the result.

A lecture ends an experiment with `course.claim("C027", holds=..., evidence="...", control="...")`.
The full run (`tinyattn full 04`) writes verdict, evidence and control into `lectures/claims.toml`.
Every other run must reach the same verdict, otherwise it stops with a ClaimError.
"""

import html
import json
import os
import re
import tomllib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from tinyattn.course.changes import changes
from tinyattn.course.project import LEDGER, CourseError, find_root, write_text
from tinyattn.course.wording import short_exponents
from tinyattn.engine.ranges import check_range

PROVED = "proved"  # an identity: its proof is on the slide, and the run tests the code against it
HOLDS, PARTLY, REFUTED = "holds", "holds partly", "refuted as worded"
UNDECIDED = "undecided"  # at this scale, the baseline or the control is within the spread
NOT_RUN = "not run"
VERDICTS = (PROVED, HOLDS, PARTLY, REFUTED, UNDECIDED, NOT_RUN)
SYMBOLS = {PROVED: "∎", HOLDS: "✓", PARTLY: "◐", REFUTED: "✗", UNDECIDED: "≈", NOT_RUN: "○"}
# Colour-blind readers can distinguish Okabe and Ito's palette, and a symbol always accompanies a
# colour.
COLOURS = {
    PROVED: "#00795a",
    HOLDS: "#00795a",
    PARTLY: "#0067a5",
    REFUTED: "#b84a00",
    UNDECIDED: "#8a4577",
    NOT_RUN: "#666666",
}
FIELDS = (
    "lecture",
    "slides",
    "claim",
    "confirmed_if",
    "verdict",
    "evidence",
    "control",
    "experiment",
)
HEADER = """\
# The claims of the slides, and what we found when we tested them.
# Verdict, evidence and control are written by a full run: tinyattn full NN
# control: the experiment without the claimed cause, or a deliberate error that is detected.
# experiment: a digest of the code that led to the verdict; when the code changes, run it in full.
# Add a claim by hand with verdict = "not run"; `tinyattn claims` prints this file as a table.
"""


SHORT = "this short run:"
AGREES = "The code agrees: "  # the beginning of the evidence for a proof


class ClaimError(CourseError):
    """The error for a claim that the ledger lacks or contradicts, or for an invalid ledger.

    In a full run, it is also raised for a claim without a control.
    """


def full():
    """Return True in a full run, which tests the claims at full size.

    The command `tinyattn full` sets the environment variable TINYATTN_FULL=1 for it.
    """
    return os.environ.get("TINYATTN_FULL", "") not in ("", "0")


def small():
    """Return True if the experiments of the lectures use their smallest size.

    They do so if Numba is missing, as in a browser, or if the environment variable TINYATTN_SMALL=1
    is set. A full run is never small.
    """
    asked = os.environ.get("TINYATTN_SMALL", "") not in ("", "0")
    return not full() and (asked or find_spec("numba") is None)


class Seeds(tuple):
    """The seeds of a loop. As text, they give their number: "5 seeds"."""

    def __str__(self):
        return f"{len(self)} seed{'s' * (len(self) != 1)}"


def seeds(quick=1):
    """Return the seeds 0, 1, 2, ... of an experiment.

    A full run has five seeds, a run in which `small()` is True has one, and every other run has
    `quick` seeds.

    Args:
        quick   number of seeds in a run that is neither full nor small, at least 1

    Returns:
        a tuple of integers, which appears in an f-string as, for example, "5 seeds"

    Raises:
        TypeError: quick is not a whole number
        ValueError: quick is below 1
    """
    check_range("seeds", 1, whole=True, quick=quick)
    return Seeds(range(5 if full() else 1 if small() else quick))


@dataclass(frozen=True)
class Claim:
    """The outcome of an experiment, displayed as a badge in a notebook and as text elsewhere.

    Attributes:
        number     number of the claim, "C027"
        verdict    "proved", "holds", "holds partly", "refuted as worded", "undecided" or "not run"
        evidence   figures that decided the verdict, from the run that decided it: the full run
                   recorded in the ledger, or this run
        control    result of the control experiment, which tests the reason that the claim gives
        text       wording of the claim in the ledger, or "" if there is no ledger
        note       text added by this run: its own figures, or a remark on the ledger
    """

    number: str
    verdict: str
    evidence: str
    control: str = ""  # the result without the claim's reason
    text: str = ""  # the claim's text in the ledger
    note: str = ""  # what this run adds: its own figures, or a note about the ledger

    def __repr__(self):
        head = f"{SYMBOLS[self.verdict]} {self.number} {self.verdict}"
        lines = [f"{head}: {self.text}" if self.text else head]
        lines += [f"    {line}" for line in self._lines()]
        return "\n".join(lines)

    def _lines(self):
        control = self.control and f"control: {self.control}"
        return [line for line in (self.evidence, control, self.note) if line]

    def _repr_html_(self):
        colour = COLOURS[self.verdict]
        pill = (
            f'<span style="background:{colour};color:#fff;border-radius:1em;padding:0.1em 0.7em;'
            f'font-weight:600;white-space:nowrap">{SYMBOLS[self.verdict]} {self.verdict}</span>'
        )
        rows = [f"{pill} <b>{self.number}</b> {html.escape(self.text)}"]
        folded = []
        for line in self._lines():
            if line is self.note and line.startswith(SHORT):
                folded.append(line)  # most readers want only the figures of the full run
            else:
                first, rest = _first_sentence(line)
                rows.append(f'<span style="opacity:0.8">{html.escape(first)}</span>')
                folded += [line] if rest else []  # all of it, because `rest` may refer to `first`
        if folded:
            words = "<br>".join(map(html.escape, folded))
            rows.append(f"<details><summary>More about the experiment</summary>{words}</details>")
        return (
            f'<div class="ta-claim" style="border-left:4px solid {colour};padding:0.3em 0 0.3em '
            f'0.8em;margin:0.4em 0;line-height:1.6;text-align:left">{"<br>".join(rows)}</div>'
        )


def _first_sentence(text):
    """Return the first sentence, which decides the verdict, and the rest, which a badge folds.

    Sentences in parentheses that follow directly belong to the first sentence.
    """
    end = re.search(r"[.?!](\s\((?:[^()]|\([^()]*\))*\))?(?=\s+[A-Z0-9±]|$)", text)
    return (text, "") if end is None else (text[: end.end()], text[end.end() :].strip())


def claim(number, holds, evidence="", control="", *, proved=False, quick_decides=True, root=None):
    """Report the outcome of the experiment on a claim, and compare it with the ledger.

    A full run writes the verdict, evidence and control into the ledger. Any other run must reach
    the ledger's verdict, and the badge shows the figures of both runs. If a student has changed
    cells of the lecture, a different verdict is allowed, and the badge lists the changes. If no
    folder with the course is found, the verdict is not compared, as the badge then explains.

    Args:
        number          number of the claim, "C027"
        holds           True, False, "partly", or "undecided" if the baseline or the control is
                        within the spread of the seeds at this scale
        evidence        the figures that decided the verdict, with the number of seeds and events.
                        The first sentence is the comparison that decides, because a badge folds the
                        rest
        control         the result, with its figure, of an experiment without the cause that the
                        claim gives, in which the effect must disappear. For an identity, it is the
                        deliberate error that is detected
        proved          True for an identity that is proved on the slide. The verdict is "proved" as
                        long as the code agrees with it (holds=True)
        quick_decides   False if one short training may give either result, so that a quick run does
                        not decide
        root            folder of the project. If None, look for it in the working folder and above

    Returns:
        a `Claim`

    Raises:
        ClaimError: the folder `root` has no valid ledger, or the claim is not in it. In a full run,
            also if `control` is empty. In any other run, also if the ledger's verdict is "not run",
            or if it differs from this run's although quick_decides is True and no cell was changed
        TypeError: `holds` is none of the values above, or is neither True nor False with
            proved=True
    """
    verdict = _verdict(number, holds, proved)
    evidence, control = (short_exponents(text) for text in (evidence, control))
    try:
        root = find_root() if root is None else Path(root)
    except CourseError:
        return Claim(number, verdict, evidence, control, note="no ledger here to compare with")
    path = root / LEDGER
    ledger = read_ledger(path)
    if number not in ledger:
        raise ClaimError(
            f"claim {number} is not in {LEDGER.as_posix()}. Check the number, or add a table "
            f"[{number}] there with {', '.join(FIELDS[:4])}, "
            f'verdict = "{NOT_RUN}", and "" for {", ".join(FIELDS[5:])}'
        )
    entry = ledger[number]
    if full():
        note = _enter(number, entry, verdict, evidence, control)
        write_ledger(path, ledger)
        return Claim(number, verdict, evidence, control, entry["claim"], note)
    note = f"{SHORT} {evidence}" if evidence and evidence != entry["evidence"] else ""
    if quick_decides or entry["verdict"] == NOT_RUN:
        changed = changes(root, entry["lecture"]) if entry["verdict"] != verdict else []
        if changed and entry["verdict"] != NOT_RUN:
            note = _of_a_change(number, entry, verdict, changed)
            evidence = evidence.replace(AGREES, "With your change: ", 1)
            return Claim(number, verdict, evidence, control, entry["claim"], note)
        _compare(number, entry, verdict, evidence)
    elif verdict != entry["verdict"]:
        seen = f"{note} " if note else ""
        note = f"{seen}This run is too short to decide. Its own verdict would be '{verdict}'."
    if entry["verdict"] != NOT_RUN:
        changed = changes(root, entry["lecture"], since_claim=True)
        if changed and verdict == entry["verdict"]:
            note = f"Your change leaves the verdict of {number}: {'; '.join(changed)}. "
            same = evidence == entry["evidence"]
            note += "The figures are the same." if same else f"With it: {evidence}"
        elif changed:
            note = (
                f"With your change ({'; '.join(changed)}), this run says '{verdict}': {evidence} "
                f"The run is too short to decide: compare it with a run without the change"
            )
    return Claim(
        number, entry["verdict"], entry["evidence"], entry["control"], entry["claim"], note
    )


def _of_a_change(number, entry, verdict, changed):
    """Return the note for a verdict that differs because a student changed cells."""
    does = "refutes" if verdict == REFUTED else "changes"
    control = f" Its control: {entry['control']}" if entry["control"] else ""
    return (
        f"Your change {does} {number}: {'; '.join(changed)}. Without it, the verdict is "
        f"'{entry['verdict']}': {entry['evidence']}{control}"
    )


def _enter(number, entry, verdict, evidence, control):
    """Write the outcome of a full run into the ledger's entry, and return a note about it."""
    if not control:
        raise ClaimError(
            f"claim {number} has no control, an experiment without the cause that the claim gives. "
            "Pass control= with its figure"
        )
    before = entry["verdict"]
    entry.update(verdict=verdict, evidence=evidence, control=control)
    return "" if before in (verdict, NOT_RUN) else f"the ledger said '{before}' before"


def read_ledger(path):
    """Return the ledger, {number of a claim: {field: value}}, in the order of the file.

    Args:
        path   path of the ledger

    Raises:
        ClaimError: there is no such file, it is not valid TOML, or a claim has a missing or unknown
            field or an unknown verdict. The error names the claim
    """
    path = Path(path)
    if not path.is_file():
        raise ClaimError(f"there is no ledger {path}. Pass the folder of the project as root=")
    try:
        ledger = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ClaimError(f"{path.name} is not valid TOML: {error}") from None
    for number, entry in ledger.items():
        if not isinstance(entry, dict) or set(entry) != set(FIELDS):
            found = set(entry) if isinstance(entry, dict) else set()
            missing, unknown = sorted(set(FIELDS) - found), sorted(found - set(FIELDS))
            wrong = [
                f"{what} {', '.join(names)}"
                for what, names in (("lacks", missing), ("has the unknown", unknown))
                if names
            ]
            raise ClaimError(
                f"{path.name}: [{number}] must have exactly the fields {', '.join(FIELDS)}, but "
                f"{' and '.join(wrong)}"
            )
        if entry["verdict"] not in VERDICTS:
            raise ClaimError(
                f"{path.name}: [{number}] has the verdict '{entry['verdict']}', not one of "
                + ", ".join(f"'{v}'" for v in VERDICTS)
            )
    return ledger


def write_ledger(path, ledger):
    """Write the ledger in the given order, completely or not at all.

    Args:
        path     path of the ledger
        ledger   {number of a claim: {field: value}}
    """
    tables = [HEADER]
    for number, entry in ledger.items():
        lines = [f"{field} = {_toml(entry[field])}" for field in FIELDS]
        tables.append("\n".join([f"[{number}]", *lines, ""]))
    write_text(path, "\n".join(tables))


def _toml(value):
    if isinstance(value, list):
        return "[" + ", ".join(_toml(v) for v in value) + "]"
    # TOML has JSON's escapes, except for the control character that JSON does not escape
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _verdict(number, holds, proved):
    if proved and not isinstance(holds, (bool, np.bool_)):
        raise TypeError(
            f"claim {number}: a proof holds or does not hold, so holds must be True or False, got "
            f"{holds!r} ({type(holds).__name__})"
        )
    if isinstance(holds, str) and holds in ("partly", UNDECIDED):
        return PARTLY if holds == "partly" else UNDECIDED
    if isinstance(holds, (bool, np.bool_)):
        return REFUTED if not holds else PROVED if proved else HOLDS
    raise TypeError(
        f'claim {number}: holds must be True, False, "partly" or "undecided", got {holds!r} '
        f"({type(holds).__name__}). For an array of checks, write bool(np.all(...))"
    )


def _compare(number, entry, verdict, evidence):
    rerun = f"tinyattn full --again {entry['lecture']}"
    if entry["verdict"] == NOT_RUN:
        raise ClaimError(
            f"claim {number} gives the verdict '{verdict}' ({evidence}), but the ledger has no "
            f"verdict yet. A full run writes it: {rerun}"
        )
    if entry["verdict"] != verdict:
        raise ClaimError(
            f"claim {number} ({entry['claim']})\n"
            f"  ledger:   {entry['verdict']} ({entry['evidence']})\n"
            f"  this run: {verdict} ({evidence})\n"
            f"Either something broke, or the quick run is too small to decide, or the verdict "
            f"has changed. In the last case, a full run writes the new one: {rerun}"
        )
