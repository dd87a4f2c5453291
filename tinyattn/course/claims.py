"""The ledger of claims: what a slide says, how it was tried, and what came out.

A lecture ends an experiment with `course.claim("C027", holds=..., evidence="...")`. The full run
(TINYATTN_FULL=1) writes verdict and evidence into `lectures/claims.toml`; every other run must
come to the same verdict, else it stops with a ClaimError.
"""

import html
import json
import os
import tomllib
from dataclasses import dataclass

import numpy as np

from tinyattn.course.project import LEDGER, CourseError, find_root, write_text

HOLDS, PARTLY, REFUTED, NOT_RUN = "holds", "holds partly", "refuted as worded", "not run"
VERDICTS = (HOLDS, PARTLY, REFUTED, NOT_RUN)
SYMBOLS = {HOLDS: "✓", PARTLY: "◐", REFUTED: "✗", NOT_RUN: "○"}
# Okabe and Ito's palette: told apart by colour-blind readers too, and never without a symbol
COLOURS = {HOLDS: "#00795a", PARTLY: "#0067a5", REFUTED: "#b84a00", NOT_RUN: "#666666"}
FIELDS = ("lecture", "slides", "claim", "confirmed_if", "verdict", "evidence")
HEADER = """\
# The claims of the slides, and what came out when they were tried.
# Verdict and evidence are written by a full run: TINYATTN_FULL=1 tinyattn run NN
# Add a claim by hand with verdict = "not run"; `tinyattn claims` prints this file as a table.
"""


class ClaimError(CourseError):
    """A claim came out differently from the ledger, or is not in it."""


def full():
    """True in a full run (TINYATTN_FULL=1), where every claim is tried at its full size."""
    return os.environ.get("TINYATTN_FULL", "") not in ("", "0")


class Seeds(tuple):
    """Seeds to loop over; as text their number, "5 seeds"."""

    def __str__(self):
        return f"{len(self)} seed{'s' * (len(self) != 1)}"


def seeds(quick=1):
    """The seeds 0, 1, 2, ... to try an experiment with: five in a full run, otherwise `quick`."""
    return Seeds(range(5 if full() else quick))


@dataclass(frozen=True)
class Claim:
    """The outcome of one experiment; shows itself as a badge in a notebook, a line elsewhere."""

    number: str
    verdict: str
    evidence: str
    text: str = ""  # the claim in words, as the ledger has it
    note: str = ""  # what there is to say about the ledger

    def __repr__(self):
        head = f"{SYMBOLS[self.verdict]} {self.number} {self.verdict}"
        lines = [f"{head}: {self.text}" if self.text else head]
        lines += [f"    {line}" for line in (self.evidence, self.note) if line]
        return "\n".join(lines)

    def _repr_html_(self):
        colour = COLOURS[self.verdict]
        pill = (
            f'<span style="background:{colour};color:#fff;border-radius:1em;padding:0.1em 0.7em;'
            f'font-weight:600;white-space:nowrap">{SYMBOLS[self.verdict]} {self.verdict}</span>'
        )
        rows = [f"{pill} <b>{self.number}</b> {html.escape(self.text)}"]
        if self.evidence:
            rows.append(f'<span style="opacity:0.8">{html.escape(self.evidence)}</span>')
        if self.note:
            rows.append(f'<small style="opacity:0.7">{html.escape(self.note)}</small>')
        return (
            f'<div class="ta-claim" style="border-left:4px solid {colour};padding:0.3em 0 0.3em '
            f'0.8em;margin:0.4em 0;line-height:1.6;text-align:left">{"<br>".join(rows)}</div>'
        )


def claim(number, holds, evidence="", *, quick_decides=True, root=None):
    """Report the outcome of the experiment on claim `number` and hold it against the ledger.

    `holds` is True, False, or "partly"; `evidence` is the figure that decided it. In a full run
    the ledger takes both; in any other run the verdict must be the ledger's. Where one short
    training may come out either way, write `quick_decides=False`: a quick run then shows the
    verdict of the ledger, and beside it what it would have said itself. Away from the project's
    folder there is nothing to compare with, and the badge says so.

    Raises ClaimError if the claim is not in the ledger or came out differently.
    """
    verdict = _verdict(number, holds)
    try:
        root = find_root() if root is None else root
    except CourseError:
        return Claim(number, verdict, evidence, note="no ledger here to compare with")
    path = root / LEDGER
    ledger = read_ledger(path)
    if number not in ledger:
        raise ClaimError(
            f"claim {number} is not in {LEDGER.as_posix()}; add a table [{number}] there with "
            f'{", ".join(FIELDS[:4])} and verdict = "{NOT_RUN}"'
        )
    entry = ledger[number]
    note = ""
    if full():
        if entry["verdict"] not in (verdict, NOT_RUN):
            note = f"the ledger said '{entry['verdict']}' before"
        entry.update(verdict=verdict, evidence=evidence)
        write_ledger(path, ledger)
    elif quick_decides or entry["verdict"] == NOT_RUN:
        _compare(number, entry, verdict, evidence)
    else:
        own = "the same" if verdict == entry["verdict"] else f"'{verdict}'"
        note = f"the verdict is that of the full run; this short one alone would say {own}"
        verdict = entry["verdict"]
    return Claim(number, verdict, evidence, entry["claim"], note)


def read_ledger(path):
    """The ledger as a dictionary from claim to its fields, in the order of the file.

    Raises ClaimError naming the claim and the field that is missing, unknown or of a wrong kind.
    """
    try:
        ledger = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ClaimError(f"{path.name} is not valid TOML: {error}") from None
    for number, entry in ledger.items():
        if not isinstance(entry, dict) or set(entry) != set(FIELDS):
            raise ClaimError(f"{path.name}: [{number}] must have exactly the fields {FIELDS}")
        if entry["verdict"] not in VERDICTS:
            raise ClaimError(
                f"{path.name}: [{number}] has the verdict '{entry['verdict']}', not one of "
                + ", ".join(f"'{v}'" for v in VERDICTS)
            )
    return ledger


def write_ledger(path, ledger):
    """Write the ledger, whole or not at all, in the given order."""
    tables = [HEADER]
    for number, entry in ledger.items():
        lines = [f"{field} = {_toml(entry[field])}" for field in FIELDS]
        tables.append("\n".join([f"[{number}]", *lines, ""]))
    write_text(path, "\n".join(tables))


def _toml(value):
    if isinstance(value, list):
        return "[" + ", ".join(_toml(v) for v in value) + "]"
    # JSON's escapes are TOML's, but for the one control character that JSON leaves alone
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _verdict(number, holds):
    if isinstance(holds, str) and holds == "partly":
        return PARTLY
    if isinstance(holds, (bool, np.bool_)):
        return HOLDS if holds else REFUTED
    raise TypeError(
        f'claim {number}: holds must be True, False or "partly", but is {holds!r} '
        f"({type(holds).__name__}); for an array of checks write bool(np.all(...))"
    )


def _compare(number, entry, verdict, evidence):
    rerun = f"TINYATTN_FULL=1 tinyattn run {entry['lecture']}"
    if entry["verdict"] == NOT_RUN:
        raise ClaimError(
            f"claim {number} came out '{verdict}' ({evidence}), but the ledger has no verdict "
            f"yet; a full run writes it: {rerun}"
        )
    if entry["verdict"] != verdict:
        raise ClaimError(
            f"claim {number} ({entry['claim']})\n"
            f"  ledger:   {entry['verdict']} ({entry['evidence']})\n"
            f"  this run: {verdict} ({evidence})\n"
            f"Either something broke, or the quick run is too small to decide, or the verdict "
            f"has changed; if the last, a full run writes the new one: {rerun}"
        )
