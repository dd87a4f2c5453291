"""The command `tinyattn build`, which processes the texts and reports the result of each."""

import sys
import time

from coursekit.build.index import INDEX, index, write_index
from coursekit.build.lint import claims_in, disagreements, problems, without_homework
from coursekit.build.notebooks import build_notebook, differences
from coursekit.build.pages import old_pages, write_pages
from coursekit.build.teaching import lacks
from coursekit.build.text import read_source
from coursekit.build.tidy import tidy
from coursekit.deck.render import build_deck
from tinyattn.course import claims
from tinyattn.course.project import LEDGER, homework


def build(documents, *, tidy_first=False, texts_only=False):
    """Make notebooks and slides of all documents, and return the exit code."""
    for document in documents:
        began = time.perf_counter()
        print(f"{document.relative(document.source)}", flush=True)
        if tidy_first:
            print(f"    {tidy(document)} code cells formatted")
        build_notebook(document, texts_only=texts_only, on_slide=_show_slide)
        _clear()
        print(f"    {document.relative(document.notebook)}  {time.perf_counter() - began:.1f} s")
        if not document.is_homework:
            path = build_deck(document)
            print(f"    {document.relative(path)}  {path.stat().st_size / 2**20:.1f} MB")
    if documents:
        write_index(documents[0].root)
        write_pages(documents[0].root)
    return 0


def check(documents):
    """Report which cells of which notebooks differ from the text, and any problems.

    Returns the exit code, which is 1 if there is anything to report.
    """
    changed = [line for document in documents for line in differences(document)]
    changed += problems(documents)
    if documents:
        changed += _missing_parts(documents[0].root, [d for d in documents if not d.is_homework])
        changed += _old_index(documents[0].root)
        changed += old_pages(documents[0].root)
    for line in changed:
        print(line, file=sys.stderr)
    if not changed:
        n = len(documents)
        print(
            "1 notebook agrees with its text" if n == 1 else f"{n} notebooks agree with their texts"
        )
    return 1 if changed else 0


def _missing_parts(root, lectures):
    """Return the missing parts of these lectures: claims in the ledger, homework, and the plan,
    ending and teaching page that another lecturer needs.
    """
    ledger = claims.read_ledger(root / LEDGER)
    tried = {d.number: claims_in(read_source(d).cells) for d in lectures}
    there = homework(root)
    found = [*disagreements(ledger, tried), *without_homework(lectures, there)]
    tasks = {d.number: d.source.read_text(encoding="utf-8") for d in there}
    for document in lectures:
        parts = lacks(document, read_source(document).cells, tasks.get(f"hw{document.number}", ""))
        found += [f"{document.relative(document.source)}: {part}" for part in parts]
    return found


def _old_index(root):
    """Return a line if the table of contents is older than the notebooks it lists."""
    path = root / INDEX
    there = path.read_text(encoding="utf-8") if path.is_file() else ""
    old = f"{INDEX.as_posix()} is out of date; run: tinyattn build"
    return [] if there == index(root) else [old]


def _show_slide(slide):
    if sys.stdout.isatty():
        _clear()
        print(f"    {slide.title}", end="", flush=True)


def _clear():
    if sys.stdout.isatty():
        print("\r\x1b[K", end="")
