"""The page: data, scripts and styles in one HTML file that needs no network."""

import base64
import html
import json
import math
import re
import zlib
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent / "page"
SCRIPTS = ("read.js", "rows.js", "steps.js", "overview.js", "tables.js", "sums.js", "walk.js",
           "main.js")  # fmt: skip
MOST_BYTES = 10_000_000


def page(data):
    """The HTML of a trace. Raises ValueError if it has more than ten million letters."""
    head, numbers = _packed(data)
    scripts = "\n".join(_short((FOLDER / name).read_text(encoding="utf-8")) for name in SCRIPTS)
    text = (FOLDER / "page.html").read_text(encoding="utf-8")
    for mark, part in (
        ("{{title}}", html.escape(data["title"])),
        ("{{style}}", _style()),
        ("{{scripts}}", scripts),
        ("{{head}}", head),
        ("{{numbers}}", numbers),
    ):
        text = text.replace(mark, part, 1)
    if len(text) > MOST_BYTES:
        raise ValueError(
            f"trace: the page would have {len(text) / 1e6:.0f} MB, at most "
            f"{MOST_BYTES // 10**6} are useful; trace a shorter sequence, fewer layers or a "
            f"smaller batch"
        )
    return text


def _short(text):
    """A script or style without its indentation and comments."""
    lines = [re.sub(r"\s\s// .*", "", line).strip() for line in text.splitlines()]
    return "\n".join([line for line in lines if line and not line.startswith(("//", "/* "))])


def _style():
    """The style sheet without spaces that mean nothing in it."""
    return re.sub(r" ?([{};,]|:(?= )) ?", r"\1", _short((FOLDER / "style.css").read_text("utf-8")))


def _packed(data):
    """JSON, in which each array is its place in one block of numbers; both compressed."""
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
    return _compressed(head), _compressed(b"".join(blocks))


def _compressed(data):
    return base64.b64encode(zlib.compress(data, 9)).decode()
