"""Open notebooks of the site in a real browser, run every cell, and look for errors.

    tinyattn site && python -m tests.scripts.in_browser 00 hw00

The site is served from build/site and opened in Chromium. Python itself comes from Pyodide's
server. If this server cannot be reached, the script prints a message and tests only the steps
before. The exit code is 0 if all steps that could be tested succeeded.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from coursekit.site import browser
from coursekit.site.build import SITE
from tests import ROOT
from tests.coursekit.browser import CHROMIUM
from tinyattn.course import project

LONGEST = 600  # seconds for a notebook, with what it has to load
OPENED = "document.querySelectorAll('.jp-Notebook .jp-Cell').length"
# JupyterLab's command, which ends when the last cell has ended
RUN_ALL = "jupyterapp.commands.execute('notebook:run-all-cells').then(() => 'done')"
FOUND = """JSON.stringify({
  left: jupyterapp.shell.currentWidget.content.widgets.filter(
    c => c.model.type == 'code' && c.model.executionCount === null && c.model.sharedModel.source
  ).length,
  errors: [...document.querySelectorAll('.jp-OutputArea-output')].map(o => o.innerText).filter(
    text => /^\\w*Error/m.test(text))
})"""


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m tests.scripts.in_browser", description=__doc__)
    parser.add_argument("numbers", nargs="*", default=["00"], help="lectures and homework: 00 hw00")
    options = parser.parse_args(arguments)
    site = ROOT / SITE
    if CHROMIUM is None or not (site / browser.FOLDER).is_dir():
        print("skipped: it needs Chromium, and the site: tinyattn site", file=sys.stderr)
        return 0
    python = pyodide(site)
    reached = can_be_reached(python)
    if not reached:
        print(f"{python} cannot be reached from here: notebooks are opened, but not run")
    handler = partial(Quiet, directory=str(site))
    with (
        ThreadingHTTPServer(("127.0.0.1", 0), handler) as server,
        tempfile.TemporaryDirectory() as d,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        top = f"http://127.0.0.1:{server.server_port}"
        problems = []
        for number in options.numbers:
            document = project.find(ROOT, number)
            with Page(f"{top}/{browser.address(document)}", Path(d) / number) as page:
                found = tried(page, document, reached)
            print(f"{document.name}: {found or 'all right'}", flush=True)
            problems += found
        server.shutdown()
    return 1 if problems else 0


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def pyodide(site):
    """Return the address that JupyterLite's kernel loads Python from."""
    for script in (site / browser.FOLDER / "extensions").rglob("*.js"):
        match = re.search(r"https://[^\"'`]*pyodide\.m?js", script.read_text(encoding="utf-8"))
        if match:
            return match[0]
    raise SystemExit("no address of Pyodide in the kernel's scripts: has JupyterLite changed?")


def can_be_reached(address):
    try:
        with urllib.request.urlopen(address, timeout=20):
            return True
    except (urllib.error.URLError, OSError):
        return False


def tried(page, document, run):
    """Return what is wrong with a notebook in the browser. If `run` is False, it is only opened."""
    cells = len(json.loads(document.notebook.read_text(encoding="utf-8"))["cells"])
    until(lambda: page.value(OPENED) > 2, 120, f"{document.name} shows no cells")
    if not run:
        return []
    page.value(RUN_ALL, LONGEST)
    found = json.loads(page.value(FOUND))
    return found["errors"] + (
        [f"{found['left']} of {cells} cells did not run"] * (found["left"] > 0)
    )


def until(condition, seconds, message):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(message)
        time.sleep(0.1)


class Page:
    """A page in a Chromium of its own, asked over the DevTools protocol."""

    def __init__(self, address, profile):
        self.address, self.profile, self.number = address, profile, 0

    def __enter__(self):
        import websocket

        options = "--headless --no-sandbox --disable-gpu --no-first-run --disable-sync"
        options += " --disable-background-networking --remote-debugging-port=0"
        self.process = subprocess.Popen(
            [CHROMIUM, *options.split(), f"--user-data-dir={self.profile}", self.address],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        port = self.profile / "DevToolsActivePort"
        until(lambda: port.is_file() and port.read_text().strip(), 60, "Chromium does not start")
        place = f"http://127.0.0.1:{port.read_text().split()[0]}/json"
        pages = []
        until(lambda: pages.extend(self._pages(place)) or pages, 60, "Chromium opens no page")
        self.socket = websocket.create_connection(pages[0], suppress_origin=True, timeout=LONGEST)
        return self

    def _pages(self, place):
        with urllib.request.urlopen(place, timeout=20) as answer:
            shown = json.load(answer)
        return [p["webSocketDebuggerUrl"] for p in shown if p["url"].startswith(self.address[:20])]

    def __exit__(self, *_):
        self.socket.close()
        self.process.terminate()
        self.process.wait(20)

    def value(self, expression, seconds=60):
        """Return the value of a JavaScript expression, after waiting if it is a promise."""
        wanted = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        result = self.command("Runtime.evaluate", seconds, **wanted)
        if "exceptionDetails" in result:
            raise SystemExit(f"the page says: {result['exceptionDetails']['exception']}")
        return result["result"].get("value")

    def command(self, method, seconds=60, **parameters):
        """Return the answer to a command of the protocol."""
        self.number += 1
        self.socket.settimeout(seconds)
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while (answer := json.loads(self.socket.recv())).get("id") != self.number:
            pass
        return answer["result"]


if __name__ == "__main__":
    sys.exit(main())
