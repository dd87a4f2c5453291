"""Print a lecture that runs slide by slide, and the ledger, in the terminal."""

import shutil
import sys
import textwrap
import time

from coursekit.build.execute import CellError, execute, namespace, surroundings, wanted
from coursekit.build.experiment import stamp
from coursekit.build.text import MissingPackage, read_notebook, read_source, slides
from tinyattn.course import claims
from tinyattn.course.project import LEDGER, CourseError


def run(document, *, verbose=False):
    """Execute a lecture or homework in this process and print its progress, slide by slide.

    If jupytext is installed, the text is run, otherwise the notebook. For homework, the student's
    own copy is run. With `verbose`, the printed output of the cells is shown as well. Returns True
    if every cell ran and every claim agreed with the ledger.
    """
    cells, origin = _cells(document)
    parts = slides(cells)
    print(f"{document.number} {document.slug.replace('_', ' ')}, from {origin}")
    if claims.full():
        print("full run: all claims at full size; the verdicts go into the ledger")
    outcomes, names, began = [], namespace(), time.perf_counter()
    with surroundings(document.folder):
        for number, slide in enumerate(parts, 1):
            label = f"{number:3d}/{len(parts)}  {_heading(slide)}"
            try:
                outcomes += _run_slide(slide, label, names, verbose)
            except CellError as error:
                print(f"\n{label}\n{textwrap.indent(str(error), '        ')}", file=sys.stderr)
                return False
    if claims.full() and not document.is_homework:
        entered = {claim.number for outcome in outcomes for claim in outcome.claims}
        stamp(document.root, cells, entered)
    _print_summary(outcomes, time.perf_counter() - began, verbose)
    return not any(outcome.disagreement for outcome in outcomes)


def _cells(document):
    if document.is_homework:
        if document.workbook.is_file():
            return read_notebook(document, document.workbook), document.relative(document.workbook)
        return read_notebook(document), document.relative(document.notebook)
    try:
        return read_source(document).cells, document.relative(document.source)
    except MissingPackage:
        return read_notebook(document), document.relative(document.notebook)


def _heading(slide):
    title = slide.title.replace("`", "").replace("**", "")
    return f"{title} ({' '.join(slide.ids)})" if slide.ids else title


def _run_slide(slide, label, names, verbose):
    """Run the cells of one slide, print its line and the results, and return the outcomes."""
    moving = sys.stdout.isatty()
    if moving:
        print(label, end="", flush=True)
    began = time.perf_counter()
    outcomes = []
    for cell in filter(wanted, slide.cells):
        try:
            outcomes.append(execute(cell, names))
        except BaseException:
            if moving:
                print("\r\x1b[K", end="")
            raise
    seconds = time.perf_counter() - began
    timing = f"  {seconds:.1f} s" if outcomes else ""
    print(("\r\x1b[K" if moving else "") + label + timing, flush=True)
    for outcome in outcomes:
        if verbose and outcome.printed.strip():
            print(textwrap.indent(outcome.printed.rstrip(), "        "))
        for shown in (*outcome.claims, outcome.disagreement):
            if shown is not None:
                print(_wrapped(shown))
    return outcomes


def _wrapped(shown):
    """Return a claim, or its disagreement with the ledger, indented and wrapped to the terminal."""
    text = f"! {shown}" if isinstance(shown, claims.ClaimError) else repr(shown)
    lines = []
    for line in text.split("\n"):
        indent = " " * (8 + len(line) - len(line.lstrip()))
        lines.append(
            textwrap.fill(
                line.strip(), _width(), initial_indent=indent, subsequent_indent=indent + "  "
            )
        )
    return "\n".join(lines)


def _width():
    return max(60, min(100, shutil.get_terminal_size().columns))


def _print_summary(outcomes, seconds, verbose):
    verdicts = [claim.verdict for outcome in outcomes for claim in outcome.claims]
    disagreements = [o.disagreement for o in outcomes if o.disagreement]
    counts = [f"{verdicts.count(v)} {v}" for v in claims.VERDICTS if v in verdicts]
    if disagreements:
        counts.append(f"{len(disagreements)} disagree with the ledger")
    tried = f"; claims: {', '.join(counts)}" if counts else ""
    print(f"done in {seconds:.1f} s{tried}")
    if not verbose and any(outcome.printed.strip() for outcome in outcomes):
        print("(--verbose shows what the cells print; the notebook shows the figures too)")


def print_claims(root, lecture=None):
    """Print verdict, slides, text, evidence and control of all claims, or of one `lecture`'s.

    Raises CourseError if there are none.
    """
    ledger = claims.read_ledger(root / LEDGER)
    chosen = {n: e for n, e in ledger.items() if lecture in (None, e["lecture"])}
    if not chosen:
        there = ", ".join(sorted({entry["lecture"] for entry in ledger.values()}))
        raise CourseError(
            f"lecture {lecture} has no claims in the ledger. Lectures with claims: {there}"
            if there
            else f"the ledger {root / LEDGER} contains no claims"
        )
    width = _width()
    for number, entry in chosen.items():
        verdict = entry["verdict"]
        print(
            f"{claims.SYMBOLS[verdict]} {number}  {verdict:20} lecture {entry['lecture']}, "
            f"slides {' '.join(entry['slides'])}"
        )
        control = entry["control"] and f"control: {entry['control']}"
        for text in (entry["claim"], entry["evidence"], control):
            if text:
                print(textwrap.fill(text, width, initial_indent=" " * 8, subsequent_indent=" " * 8))
    verdicts = [entry["verdict"] for entry in chosen.values()]
    counts = [f"{verdicts.count(v)} {v}" for v in claims.VERDICTS if v in verdicts]
    print(f"{len(chosen)} in all: {', '.join(counts)}")
