"""Make a handout of a deck as a PDF, with several pages on a sheet and the notes next to them.

Chromium, Chrome or Edge prints it. On a machine without them, the HTML file remains, which any
browser can print.
"""

import base64
import io
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from coursekit.build.notebooks import executed
from coursekit.deck.render import render
from tinyattn.course.project import write_text

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "msedge")
OPTIONS = "--headless --no-sandbox --disable-gpu --no-first-run --disable-sync"
OPTIONS += " --disable-background-networking --no-pdf-header-footer --virtual-time-budget=60000"
SECONDS = 300
WIDEST = 1000  # pixels of a picture, which is printed 10 cm wide, so it has 250 dots per inch
# A4 with margins of 12 mm is 703 by 1031 of these pixels
SHEET = """
@page { size: A4 portrait; margin: 12mm; }
@media print {
  #deck { display: grid; }
  .slide { width: auto !important; height: auto !important; break-after: auto !important; }
  .page { zoom: var(--size); box-shadow: inset 0 0 0 3px var(--line); }
  .explorer { visibility: hidden; } /* nobody clicks on paper, and a frame is not made smaller */
  .noted #deck { --size: 0.3; display: block; }
  .noted .slide { display: grid !important; grid-template-columns: 384px 1fr; gap: 16px;
    min-height: 236px; padding-bottom: 14px; }
  .noted .slide > aside.notes { display: block; font-size: 11.5px; line-height: 1.35; }
  .bare #deck { --size: 0.265; grid-template-columns: 340px 340px; gap: 18px; }
}
"""


def build_handout(document, *, core=False, notes=True, folder=None):
    """Write the handout of a lecture, and return the path of the PDF (without a browser, the HTML).

    With `core`, it has only the short version. With `notes`, a sheet has three or four pages and
    the lecturer's notes. Without, it has eight or ten pages, for a class. Without `folder`, the
    handout is written next to the deck.
    """
    page = render(executed(document), document, core=core, notes=notes)
    kind = "noted" if notes else "bare"
    page = page.replace("</head>", f"<style>{SHEET}</style></head>", 1)
    page = page.replace("<body>", f'<body class="{kind}">', 1)
    name = f"{document.name}{'_core' if core else ''}_{'handout' if notes else 'pages'}"
    path = Path(folder or document.deck.parent) / f"{name}.html"
    write_text(path, re.sub(r"(data:image/png;base64,)([A-Za-z0-9+/=]+)", smaller, page))
    browser = find_browser()
    if browser is None:
        return path
    print_page(browser, path, path.with_suffix(".pdf"))
    return path.with_suffix(".pdf")


def smaller(picture):
    """Return a picture of the page, given as a match of prefix and data, at most `WIDEST` pixels
    wide.
    """
    from PIL import Image  # Matplotlib, which has drawn the picture, needs it too

    image = Image.open(io.BytesIO(base64.b64decode(picture[2])))
    if image.width <= WIDEST:
        return picture[0]
    height = round(image.height * WIDEST / image.width)
    paper = Image.new("RGBA", image.size, "white")
    paper.alpha_composite(image.convert("RGBA"))
    resized = paper.convert("RGB").resize((WIDEST, height), Image.Resampling.LANCZOS)
    resized = resized.quantize(64, dither=Image.Dither.NONE)  # few colours need little memory
    data = io.BytesIO()
    resized.save(data, "PNG")
    return picture[1] + base64.b64encode(data.getvalue()).decode()


def find_browser():
    """Return the command of a browser that prints, or None if there is none."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def print_page(browser, path, pdf):
    """Let a browser print an HTML file, without a network."""
    with tempfile.TemporaryDirectory(prefix="tinyattn-print-") as profile:
        command = [browser, *OPTIONS.split(), f"--user-data-dir={profile}"]
        command += ["--proxy-server=127.0.0.1:9", f"--print-to-pdf={pdf}", Path(path).as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=SECONDS)
