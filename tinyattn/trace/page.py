"""The page: data, scripts and styles in one HTML file that needs no network.

Data and scripts are packed with zlib. `page/inflate.js` unpacks them in the browser, whose
developer tools then show the scripts exactly as in `page/`, including comments.
"""

import base64
import html
import json
import math
import zlib
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent / "page"
SCRIPTS = (
    "read.js",
    "rows.js",
    "steps.js",
    "overview.js",
    "tables.js",
    "sums.js",
    "walk.js",
    "main.js",
)
MOST = 10_000_000  # characters of a page


def page(data):
    """Return the HTML of a trace.

    Args:
        data   dictionaries and lists, the result of `build.built`

    Raises:
        ValueError: the page would have more than ten million characters
    """
    head, numbers = _parts(data)
    scripts = "\n".join(_read(name) for name in SCRIPTS) + "\n//# sourceURL=trace.js"
    text = _read("page.html")
    packed = {"head": head, "numbers": numbers, "scripts": scripts.encode()}
    marks = {"title": html.escape(data["title"]), "style": _read("style.css")}
    marks["inflate"] = _read("inflate.js")
    for name, part in packed.items():
        marks[f"{name} size"] = str(len(part))
        marks[name] = base64.b64encode(zlib.compress(part, 9)).decode()
    for name, part in marks.items():
        text = text.replace("{{" + name + "}}", part, 1)
    if len(text) > MOST:
        raise ValueError(
            f"trace: expected a page of at most {MOST:,} characters, got {len(text):,}. Trace a "
            "shorter sequence, fewer layers or a smaller batch"
        )
    return text


def _read(name):
    return (FOLDER / name).read_text(encoding="utf-8")


def _parts(data):
    """Return (JSON, numbers) as bytes, where the JSON has the position of each array in numbers."""
    blocks, place = [], 0

    def put(value):
        nonlocal place
        if isinstance(value, np.ndarray):
            kind = "f" if value.dtype.kind == "f" else "i"
            block = np.ascontiguousarray(value, np.float32 if kind == "f" else np.int32).tobytes()
            at, place = place, place + len(block)
            blocks.append(block)
            return {"$": [kind, at, value.size]}
        if isinstance(value, dict):
            return {k: put(v) for k, v in value.items()}
        if isinstance(value, list | tuple):
            return [put(v) for v in value]
        if isinstance(value, float) and not math.isfinite(value):
            return {"$": str(value)}
        return value

    head = json.dumps(put(data), ensure_ascii=False, separators=(",", ":")).encode()
    return head, b"".join(blocks)
