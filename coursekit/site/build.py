"""The command `tinyattn site`, which writes the sources of the pages and then the pages."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

from coursekit.build.public_api import first_uses, new_names, public_names
from coursekit.build.text import need, read_notebook, slides
from coursekit.deck import handout, render
from coursekit.site import browser, notebooks, pages, reference
from coursekit.site.addresses import page_of, texts
from coursekit.student.workbook import copy_of
from tinyattn.course.project import CourseError, homework, lectures, write_text
from tinyattn.ops import coverage

SITE = Path("build") / "site"
SOURCES = Path("build") / "site-sources"
PICTURES = "tests/benchmarks", "docs/pictures"  # folders with images of the project's texts


def build_site(root, students=False):
    """Write the whole site and return its first page.

    `students` leaves out the pages for lecturers and the notes of the slides.

    Raises CourseError with Sphinx's message if a page has an error, such as a broken link.
    """
    for package in ("sphinx", "myst_nb", "furo"):
        need(package, "site")
    sources, extra = root / SOURCES / "pages", root / SOURCES / "files"
    shutil.rmtree(root / SOURCES, ignore_errors=True)
    write_sources(root, sources, extra, students)
    shutil.rmtree(root / SITE, ignore_errors=True)
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-b",
        "html",
        "-q",
        "-W",
        "--keep-going",
        "-c",
        Path(__file__).parent,
        "-d",
        root / SOURCES / "doctrees",
        "-D",
        f"html_extra_path={extra}",
        sources,
        root / SITE,
    ]
    print("pages, which takes some minutes", flush=True)
    done = subprocess.run(command, check=False)
    if done.returncode:
        raise CourseError("site: Sphinx found errors or warnings, which are printed above")
    browser.write_browser(root, root / SITE, root / SOURCES / "browser")
    return root / SITE / "index.html"


def write_sources(root, sources, extra, students=False):
    """Write the sources of Sphinx's pages, and the files that it only copies."""
    documents, tasks = lectures(root), homework(root)
    built = {document: slides(read_notebook(document)) for document in documents}
    anchors = {document: notebooks.anchors(document) for document in documents}
    by_number = {task.number: task for task in tasks}
    new = new_names(documents)
    for document in documents + tasks:
        buttons = ways(root, document, by_number, students)
        copy = copy_of(document, new, install=True)
        notebooks.write_page(document, sources, extra, buttons, copy)
    for number, document in enumerate(documents, 1):
        print(f"slides {number} of {len(documents)}: {document.name}", flush=True)
        deck = extra / "decks" / document.deck.name
        render.build_deck(document, notes=not students, path=deck)
    write_handouts(documents, extra / "decks", students)
    shutil.copytree(
        root / "lectures" / "figures",
        extra / "figures",
        ignore=shutil.ignore_patterns("*.py", "__*"),
    )
    for folder in PICTURES:
        for picture in (root / folder).glob("*.png"):
            shutil.copyfile(picture, extra / pages.PROJECT_PICTURES / picture.name)
    names = public_names()
    uses = first_uses(documents, names)
    examples = reference.read_examples(root / "docs" / "examples")
    reference.write_reference(root, sources, uses, anchors, examples)
    write_text(sources / "reference" / "numpy.md", numpy_page())
    template = (root / "docs" / "index.md").read_text(encoding="utf-8")
    home = pages.home(root, template, built, anchors, by_number, students)
    write_text(sources / "index.md", home + contents(documents, tasks, students))
    write_text(sources / "claims.md", pages.claims_page(root, built, anchors))
    after = {
        "references": pages.sources_table(names),
        "teaching/index": "" if students else write_teaching(root, sources),
    }
    for path, page in texts(students).items():
        if path.endswith(".md") and page != "index":
            text = pages.project_text(root, path, page, students)
            write_text(sources / f"{page}.md", "\n\n".join([text, after.get(page, "")]))


def write_handouts(documents, folder, students=False):
    """Print a handout of each lecture into a folder, for students without the notes.

    Without a browser that prints, one line reports this, and the pages of the lectures have no link
    to a handout.
    """
    if handout.find_browser() is None:
        print("no handouts as PDF on the site: there is no Chromium, Chrome or Edge to print them")
        return
    for number, document in enumerate(documents, 1):
        print(f"handout {number} of {len(documents)}: {document.name}", flush=True)
        printed = handout.build_handout(document, notes=not students, folder=folder)
        printed.with_suffix(".html").unlink()


def ways(root, document, tasks, students=False):
    """Return the buttons under the title of a lecture or homework, as (words, address on the
    site).
    """
    found = [("Open in the browser", browser.address(document))]
    if document.is_homework:
        number = document.number.removeprefix("hw")
        lecture = next(d for d in lectures(root) if d.number == number)
        found.append((f"Lecture {number}", f"{page_of(lecture)}.html"))
    else:
        found.append(("Slides", f"decks/{document.name}.html"))
        if handout.find_browser():
            kind = "pages" if students else "handout"
            found.append(("Handout (PDF)", f"decks/{document.name}_{kind}.pdf"))
        task = tasks.get(f"hw{document.number}")
        if task:
            found.append(("Homework", f"{page_of(task)}.html"))
    found.append(("Notebook to work in", f"notebooks/{document.notebook.name}"))
    if not students:
        found += elsewhere(document.relative(document.notebook))
    taught = not document.is_homework and teaching(root, document.number).is_file()
    if taught and not students:
        found.append(("For those who teach", f"teaching/{document.number}.html"))
    return found


def elsewhere(path, environment=os.environ):
    """Return the buttons that open a notebook on other machines, as (words, address).

    Only the workflow that publishes the site knows the address of the repository.
    """
    repository = environment.get("GITHUB_REPOSITORY")
    if not repository:
        return []
    return [
        ("Colab", f"https://colab.research.google.com/github/{repository}/blob/main/{quote(path)}"),
        ("Binder", f"https://mybinder.org/v2/gh/{repository}/main?labpath={quote(path)}"),
    ]


def teaching(root, number):
    return root / "lectures" / "teaching" / f"{number}.md"


def write_teaching(root, sources):
    """Write the pages for lecturers and return their table of contents."""
    there = [d for d in lectures(root) if teaching(root, d.number).is_file()]
    for document in there:
        path = f"lectures/teaching/{document.number}.md"
        text = pages.project_text(root, path, f"teaching/{document.number}")
        write_text(sources / f"teaching/{document.number}.md", text)
    tree = "\n".join(document.number for document in there)
    return f"```{{toctree}}\n:hidden:\n{tree}\n```\n"


def numpy_page():
    """Return the page about the effect of each of NumPy's functions on a tensor."""
    parts = [
        "# NumPy's functions\n\n"
        "NumPy's own functions take tensors. What each of them does with one:"
    ]
    for kind, names in coverage.table().items():
        listed = ", ".join(f"`{name}`" for name in names)
        parts.append(f"## {kind}\n\n{coverage.KINDS[kind].capitalize()}.\n\n{listed}")
    return "\n\n".join(parts) + "\n"


def contents(documents, tasks, students=False):
    """Return the site's table of contents, which is shown next to every page."""
    lecturers = [] if students else ["teaching/index", "project/writing_lectures"]
    parts = {
        "Lectures": [f"{title(d)} <{page_of(d)}>" for d in documents],
        "Homework": [page_of(document) for document in tasks],
        "To look up": [
            "reference/index",
            "claims",
            "systems",
            "glossary",
            "references",
            "from_pytorch",
            "benchmarks",
            "benchmarks_tried",
        ],
        "Making" if students else "Teaching and making": [
            *lecturers,
            "project/contributing",
            "project/kernels",
            "project/trace",
            "project/tests",
            "project/data_sources",
            "project/changes",
        ],
    }
    trees = [
        f"```{{toctree}}\n:hidden:\n:caption: {caption}\n:titlesonly:\n\n"
        + "\n".join(entries)
        + "\n```"
        for caption, entries in parts.items()
    ]
    return "\n\n" + "\n\n".join(trees) + "\n"


def title(document):
    """Return the title of a lecture with its number, for the table of contents."""
    return f"{document.number} {slides(read_notebook(document))[0].title}"


def serve(folder, port=8000):
    """Show the site in the browser until Ctrl-C."""
    from functools import partial
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        print(f"http://127.0.0.1:{server.server_port}/   Ctrl-C ends it", flush=True)
        server.serve_forever()
