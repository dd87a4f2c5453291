"""Is the web site whole? Build it, then follow every link of every page, and every name of a place.

    python -m tests.scripts.site            build it first (needs the extra [site])
    python -m tests.scripts.site --built    the one that is there

Nothing is asked of a network: addresses of others are only counted. The exit code is 0 if all held.
"""

import argparse
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

from coursekit.build.public_api import public_names
from coursekit.site import browser
from coursekit.site.build import SITE, build_site
from tests import ROOT
from tinyattn.course.project import homework, lectures

FOLDER = ROOT / SITE
LARGEST = 150 * 2**20


class Page(HTMLParser):
    """What a page links to, and the names of its places."""

    def __init__(self):
        super().__init__()
        self.links, self.places, self.formulas, self.without_alt = [], set(), 0, 0

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if values.get("id"):
            self.places.add(values["id"])
        if tag in ("a", "link") and values.get("href"):
            self.links.append(values["href"])
        if tag in ("img", "script", "iframe") and values.get("src"):
            self.links.append(values["src"])
        self.without_alt += tag == "img" and not values.get("alt")
        self.formulas += "math" in (values.get("class") or "").split()


def main(arguments=None):
    new = argparse.ArgumentParser(
        prog="python -m tests.scripts.site", description=__doc__.split("\n")[0]
    )
    new.add_argument("--built", action="store_true", help="do not build it")
    if not new.parse_args(arguments).built:
        build_site(ROOT)
    pages = read(FOLDER)
    problems = [*missing_pages(), *broken_links(pages), *contents(pages)]
    for problem in problems:
        print(problem, file=sys.stderr)
    links = sum(len(page.links) for page in pages.values())
    print(f"{len(pages)} pages, {links} links, {len(problems)} problems")
    return 1 if problems else 0


def read(folder):
    """Return {path from the site's top: Page}, without JupyterLite's pages."""
    pages = {}
    for path in sorted(folder.rglob("*.html")):
        if path.is_relative_to(folder / browser.FOLDER):
            continue
        page = Page()
        page.feed(path.read_text(encoding="utf-8"))
        pages[path.relative_to(folder).as_posix()] = page
    return pages


def missing_pages():
    """Return the required pages that are missing."""
    names = [f"{name.page}.html" for name in public_names()]
    documents = lectures(ROOT) + homework(ROOT)
    names += [f"{'homework' if d.is_homework else 'lectures'}/{d.name}.html" for d in documents]
    names += [f"decks/{d.name}.html" for d in lectures(ROOT)]
    names += [f"notebooks/{d.notebook.name}" for d in documents]
    names += [f"{browser.FOLDER}/files/{d.notebook.name}" for d in documents]
    names += [f"{browser.FOLDER}/notebooks/index.html"]
    names += [
        "index.html",
        "search.html",
        "claims.html",
        "systems.html",
        "glossary.html",
        "benchmarks.html",
        "references.html",
        "from_pytorch.html",
        "teaching/index.html",
    ]
    return [f"{name} is missing" for name in names if not (FOLDER / name).is_file()]


def broken_links(pages):
    """Return the links of the site to pages, files and anchors that do not exist."""
    found = []
    for name, page in pages.items():
        here = (FOLDER / name).parent
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (here / unquote(parts.path)).resolve() if parts.path else FOLDER / name
            if not target.is_file():
                found.append(f"{name}: {link} leads nowhere")
                continue
            place, file = unquote(parts.fragment), target.relative_to(FOLDER).as_posix()
            if place and file in pages and place not in pages[file].places:
                found.append(f"{name}: {link} names a place that is not there")
    return found


def contents(pages):
    """Return missing formulas, implementations and alt texts of the pages, and excessive size."""
    found = []
    attention = pages["reference/functional/scaled_dot_product_attention.html"]
    if attention.formulas < 2:
        found.append("the page of attention has no formulas")
    text = (FOLDER / "reference/functional/scaled_dot_product_attention.html").read_text("utf-8")
    found += [
        f"attention: no implementation '{title}'"
        for title in ("Index sums", "Array algebra", "Compiled kernel")
        if title not in text
    ]
    found += [
        f"{name}: {page.without_alt} pictures without words"
        for name, page in pages.items()
        if page.without_alt and name.startswith(("lectures/", "index"))
    ]
    size = sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file())
    if size > LARGEST:
        found.append(f"the site has {size / 2**20:.0f} MB, at most {LARGEST / 2**20:.0f}")
    return found


if __name__ == "__main__":
    sys.exit(main())
