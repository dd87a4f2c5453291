"""Widgets in a browser without network: what they show is what the library computes."""

import base64
import html
import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.coursekit import browser
from tests.widgets.test_own_words import TOKENIZER, WORDS, model_of
from tinyattn import widgets
from tinyattn.graph import condense
from tinyattn.models.decoding import probabilities

RNG = np.random.default_rng(0)
SCORES = np.array([2.0, 1.0, 0.5, -1.0])
Q, KEYS = RNG.normal(size=64), RNG.normal(size=(12, 64))
LOGITS = 2 * RNG.normal(size=(3, 20))
POINTS, SIZES = RNG.normal(size=(14, 2)), np.exp(RNG.normal(size=14))
W = RNG.normal(size=(5, 5))
BETA = RNG.uniform(size=30) ** 3
X = np.concatenate([0.2 * RNG.normal(size=(15, 2)), 0.2 * RNG.normal(size=(15, 2)) + [1.5, 0.5]])
MAPS = np.exp(RNG.normal(size=(2, 3, 4, 5)))
MAPS /= MAPS.sum(axis=-1, keepdims=True)
DISTANCES = np.array([0.1, 0.3, 0.7])
FEATURES = np.array([RNG.normal(size=4) / (layer + 1) for layer in range(3)])
SQUARE = [(0, 1), (1, 2), (2, 3), (3, 0)]
CORNERS = [(-1, -1), (1, -1), (1, 1), (-1, 1)]

ALL = {
    "temperature": lambda: widgets.temperature(SCORES, ["cat", "dog", "fish", "<bird>"]),
    "score_variance": lambda: widgets.score_variance(Q, KEYS),
    "vectors": lambda: widgets.vectors(),
    "attention": lambda: widgets.attention(MAPS, list("abcd"), list("vwxyz"), head=1, query=2),
    "sampling": lambda: widgets.sampling(LOGITS, [f"t{i}" for i in range(20)], ["O", "On", "Onc"]),
    "spectral_radius": lambda: widgets.spectral_radius(W, np.ones(5), steps=10),
    "own_words": lambda: widgets.own_words(model_of(), TOKENIZER, WORDS),
    "positions": lambda: widgets.positions(d=8, length=20),
    "neighbours": lambda: widgets.neighbours(POINTS, SIZES, k=3),
    "over_smoothing": lambda: widgets.over_smoothing(FEATURES, SQUARE, CORNERS),
    "gravnet": lambda: widgets.gravnet(DISTANCES),
    "condensation": lambda: widgets.condensation(),
    "thresholds": lambda: widgets.thresholds(BETA, X, [0] * 15 + [1] * 15),
}


def softmax(z):
    e = np.exp(z - z.max())
    return e / e.sum()


def apart():
    d = np.linalg.norm(POINTS[:, None] - POINTS[None], axis=-1)
    np.fill_diagonal(d, np.inf)
    return d


def over_time(radius):
    """|(radius W / ρ)ᵀᵗ g| / |g|, computed step by step."""
    scaled = radius * W / np.abs(np.linalg.eigvals(W)).max()
    g, sizes = np.ones(5) / np.sqrt(5), [1.0]
    for _ in range(10):
        g = scaled.T @ g
        sizes.append(np.linalg.norm(g))
    return sizes


def potential(p):
    """q |p - own|² + q max(0, 1 - |p - other|), and its gradient by differences."""
    own, other = np.array([-1.2, 0.2]), np.array([0.9, -0.3])
    f = lambda p: np.sum((p - own) ** 2) + max(0.0, 1 - np.linalg.norm(p - other))
    h = 1e-6 * np.eye(2)
    return f(p), [(f(p + e) - f(p - e)) / 2e-6 for e in h]


def sinusoid(p):
    angle = p / 10_000.0 ** (2 * np.arange(4) / 8)
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1).ravel()


found, points = condense(BETA, X, 0.3, 0.5)
moved, slope = potential(np.array([0.4, 0.1]))

# (widget, what is set, [(what the page says, what it should be)])
CHECKS = [
    ("temperature", {"T": np.log10(0.5)}, {"weights": softmax(SCORES / 0.5)}),
    ("score_variance", {"d": 5}, {"variance": np.var(KEYS[:, :32] @ Q[:32])}),
    ("score_variance", {"d": 6, "scaled": 1}, {"weights": softmax(KEYS @ Q / 8)}),
    ("vectors", {}, {"weights": softmax(np.array([1.5 + 0.6 * 110 / 60, 0.9]))}),
    ("attention", {}, {"word": 2, "weights": MAPS[0, 1, 2]}),
    ("attention", {"layer": 1, "head": 2}, {"matrix": MAPS[1, 2]}),
    ("attention", {"layer": 1, "head": 3}, {"matrix": MAPS[1].mean(axis=0)}),
    (
        "sampling",
        {"step": 1, "T": np.log10(0.7), "k": 6, "p": 0.8},
        {"weights": probabilities(LOGITS[1], 10 ** np.log10(0.7), 6, 0.8)},
    ),
    ("spectral_radius", {"radius": 1.2}, {"sizes": over_time(1.2)}),
    ("own_words", {"layer": 1}, {"at": len(TOKENIZER.encode(WORDS))}),
    ("positions", {"position": 5}, {"products": [sinusoid(5) @ sinusoid(p) for p in range(20)]}),
    ("neighbours", {"k": 5}, {"into": np.full(14, 5)}),
    ("neighbours", {"kind": 1, "radius": 0.6}, {"into": (apart() <= 0.6).sum(axis=1)}),
    ("over_smoothing", {"layers": 2}, {"spread": FEATURES[2].std()}),
    ("gravnet", {"c": 1}, {"weights": np.exp(-10 * DISTANCES**2)}),
    ("condensation", {}, {"value": moved, "gradient": slope}),
    ("thresholds", {"t_beta": 0.3, "t_d": 0.5}, {"found": found, "points": points}),
]

SCRIPT = """
<script>
const failures = [];
addEventListener("error", (e) => failures.push(e.message));
const before = JSON.stringify(state), answers = [];
for (const wanted of %s) {
  for (const [name, value] of Object.entries(wanted)) {
    const control = document.getElementById(name);
    control.value = control.tagName === "SELECT" ? String(value) : value;
    if (control.type === "range") { control.step = "any"; control.value = value; }
    control.dispatchEvent(new Event(control.tagName === "SELECT" ? "change" : "input"));
  }
  answers.push(WIDGET.values(widgets()));
}
const svg = document.querySelector("svg");
svg.focus();
for (const key of ["ArrowDown", "ArrowRight"])
  svg.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const drawn = svg.innerHTML, said = document.querySelector("#said").textContent;
dispatchEvent(new KeyboardEvent("keydown", { key: "r" }));
const requests = performance.getEntriesByType("resource").length;
const wide = [...svg.querySelectorAll("text")].filter((t) => {
  const b = t.getBBox();
  return b.x < -2 || b.x + b.width > 962 || b.y < -2 || b.y + b.height > 382;
}).map((t) => t.textContent);
const out = document.createElement("pre");
out.id = "result";
out.textContent = JSON.stringify({
  answers, failures, requests, said, wide, reset: JSON.stringify(state) === before,
  nan: /NaN|undefined/.test(drawn + svg.innerHTML + said) });
document.body.append(out);
</script>
</body>"""


@browser.needed
@pytest.mark.parametrize("name", list(ALL))
def test_the_page_computes_what_numpy_computes(name, tmp_path):
    wanted = [(settings, expected) for n, settings, expected in CHECKS if n == name]
    page = ALL[name]().html()
    settings = json.dumps([{k: float(v) for k, v in s.items()} for s, _ in wanted])
    path = tmp_path / "widget.html"
    path.write_text(page.replace("</body>", SCRIPT % settings), encoding="utf-8")
    shown = browser.show(path)
    answer = json.loads(html.unescape(re.search(r'<pre id="result">(.*?)</pre>', shown)[1]))
    assert answer["failures"] == [] and answer["requests"] == 0
    assert answer["reset"] and answer["said"] and not answer["nan"] and answer["wide"] == []
    assert len(answer["answers"]) == len(wanted) > 0
    for values, (_, expected) in zip(answer["answers"], wanted, strict=True):
        for what, numbers in expected.items():
            assert np.allclose(values[what], numbers, rtol=2e-4, atol=2e-4), what


DRAG = """
<script>
const svg = document.querySelector("svg"), begun = JSON.stringify(state);
svg.setPointerCapture = () => {};  // there is no real pointer here
const send = (kind, x, y, more = {}) => {
  const at = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());
  svg.dispatchEvent(
    new PointerEvent(kind, { clientX: at.x, clientY: at.y, bubbles: true, ...more }));
};
const drag = (from, to) => {
  send("pointerdown", ...from);
  send("pointermove", ...to);
  send("pointerup", ...to);
};
send("pointermove", 300, 200);  // without a press nothing is moved
const still = JSON.stringify(state) === begun;
const ends = [];
for (const [from, to] of %s) { drag(from, to); ends.push(structuredClone(state)); }
for (let i = 0; i < 99; i++)
  svg.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
const out = document.createElement("pre");
out.id = "result";
out.textContent = JSON.stringify({ still, ends, last: state, tab: svg.tabIndex,
  caption: document.querySelector("#caption").textContent });
document.body.append(out);
</script>
</body>"""


def dragged(name, drags, folder):
    """What a widget says after some drags [[x, y], [x, y]] in its picture, and 99 times →."""
    path = folder / "widget.html"
    page = ALL[name]().html().replace("</body>", DRAG % json.dumps(drags))
    path.write_text(page, encoding="utf-8")
    shown = browser.show(path)
    return json.loads(html.unescape(re.search(r'<pre id="result">(.*?)</pre>', shown)[1]))


@browser.needed
def test_a_key_is_dragged_where_the_arrows_are(tmp_path):
    drags = [[[300, 80], [270, 100]], [[700, 200], [800, 100]], [[300, 80], [900, 900]]]
    answer = dragged("vectors", drags, tmp_path)
    assert answer["still"] and answer["tab"] == 0 and "Tab" in answer["caption"]
    keys = [end["key"] for end in answer["ends"]]
    # beside the plane nothing is dragged; outside of it the key stays at its edge
    assert np.allclose(keys, [[30, 90], [30, 90], [200, -165]])
    assert np.allclose(answer["last"]["key"], [200, -165])  # nor do keys lead out of it


@browser.needed
def test_a_point_is_dragged_and_stays_in_the_picture(tmp_path):
    answer = dragged("condensation", [[[480, 185], [610, 55]], [[480, 185], [2000, 55]]], tmp_path)
    assert np.allclose(answer["ends"][0]["x"], [1, 1])
    assert np.allclose(answer["ends"][1]["x"], [3.6, 1])
    assert np.allclose(answer["last"]["x"], [3.6, 1])


PHONE = """
<script>
const svg = document.querySelector("svg"), at = split() ?? Infinity;
const words = [...svg.querySelectorAll("text")];
const upper = at < Infinity ? svg.querySelector("g") : svg;
const size = (t) => parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a;
const cut = [...upper.querySelectorAll("text")].filter((t) => {
  const b = t.getBBox(), right = at < Infinity ? WIDE : room();
  return b.x < -2 || b.x + b.width > right + 2 || (b.x < at - 2 && b.x + b.width > at + 2);
}).map((t) => t.textContent);
document.body.dataset.phone = JSON.stringify({ cut, small: words.filter((t) => size(t) < 10).length,
  over: document.documentElement.scrollWidth - innerWidth,
  controls: [...document.querySelectorAll("form *")].filter(
    (e) => e.getBoundingClientRect().right > $("form").getBoundingClientRect().right).length });
</script></body>"""


@browser.needed
@pytest.mark.parametrize("name", [n for n in ALL if n != "own_words"])
def test_on_a_phone_all_words_are_readable_and_nothing_is_cut(name, tmp_path):
    path = tmp_path / "widget.html"
    path.write_text(ALL[name]().html().replace("</body>", PHONE), encoding="utf-8")
    shown = browser.show(path, size="390,900")
    found = json.loads(html.unescape(re.search(r'data-phone="([^"]*)"', shown)[1]))
    assert found["cut"] == [] and found["small"] == 0
    assert found["over"] <= 0 and found["controls"] == 0


@browser.needed
def test_on_a_phone_the_lower_half_of_a_picture_is_pointed_at(tmp_path):
    page = widgets.positions(d=8, length=20).html()
    script = """<script>
    const svg = document.querySelector("svg");
    svg.setPointerCapture = () => {};  // there is no real pointer here
    const at = new DOMPoint(930 - split(), HIGH + 100).matrixTransform(svg.getScreenCTM());
    svg.dispatchEvent(
      new PointerEvent("pointerdown", { clientX: at.x, clientY: at.y, bubbles: true }));
    document.body.dataset.seen = state.position;
    </script></body>"""
    path = tmp_path / "widget.html"
    path.write_text(page.replace("</body>", script), encoding="utf-8")
    assert 'data-seen="19"' in browser.show(path, size="390,900")


@browser.needed
def test_pointing_at_the_letters_of_a_word_chooses_it(tmp_path):
    long = ["a rather long word", "and another one"]
    page = widgets.attention(MAPS[:, :, :2, :2], long).html()
    script = """<script>
    const seen = [];
    for (const word of DATA.queries) {
      const letters = [...document.querySelectorAll("svg text")]
        .find((t) => t.textContent === word);
      const b = letters.getBoundingClientRect(), [x, y] = [b.x + b.width / 2, b.y + b.height / 2];
      document.elementFromPoint(x, y).dispatchEvent(
        new PointerEvent("pointermove", { clientX: x, clientY: y, bubbles: true }));
      seen.push(state.over);
    }
    document.body.dataset.seen = JSON.stringify(seen);
    </script></body>"""
    path = tmp_path / "widget.html"
    path.write_text(page.replace("</body>", script), encoding="utf-8")
    assert 'data-seen="[0,1]"' in browser.show(path)


@browser.needed
def test_a_position_is_chosen_in_either_picture(tmp_path):
    drags = [[[70, 100], [70, 100]], [[560, 100], [930, 100]], [[255, 60], [255, 60]]]
    answer = dragged("positions", drags, tmp_path)
    assert [end["position"] for end in answer["ends"]] == [0, 19, 10]
    assert answer["tab"] == -1  # what a slider does is not offered a second time


@pytest.mark.parametrize("name", list(ALL))
def test_a_notebook_gets_a_frame_and_a_still_picture(name):
    shown = ALL[name]()._repr_html_()
    still = base64.b64decode(re.search(r"base64,([^\"]+)", shown)[1])
    assert ElementTree.fromstring(still).tag.endswith("svg")
    assert "nan" not in still.decode()
    assert shown.count("<iframe") == 1 and "<script>" not in shown
    assert len(shown) < (100_000 if name == "own_words" else 60_000)  # it brings a network


@browser.needed
@pytest.mark.parametrize(
    ("scheme", "height", "dark"), [("dark", 560, True), ("light", 560, False), ("dark", 500, False)]
)
def test_an_explorer_follows_the_theme_of_the_page_around(scheme, height, dark, tmp_path):
    """The site sets `color-scheme`; the frames in a deck are lower, and its pages are white."""
    filter_now = "getComputedStyle(document.documentElement).filter"
    # a frame learns the scheme in its own time, so it tells its filter again and again
    tell = f"setInterval(() => parent.postMessage({filter_now}, '*'), 50)"
    inner = html.escape(f"{ALL['temperature']().html()}<script>{tell}</script>", quote=True)
    keep = "document.body.dataset.filter = e.data; told = e.data.includes('invert') ? 40 : told + 1"
    page = tmp_path / "page.html"
    page.write_text(
        f'<!doctype html><meta charset="utf-8"><body style="color-scheme: {scheme}">'
        f"<script>let told = 0; onmessage = (e) => {{ {keep}; }};</script>"
        f'<iframe srcdoc="{inner}" sandbox="allow-scripts" style="width:800px;height:{height}px">',
        encoding="utf-8",
    )
    found = re.search(r'data-filter="([^"]*)"', browser.show(page, until="told >= 40"))[1]
    assert ("invert" in found) is dark and (found == "none") is not dark


@browser.needed
@pytest.mark.parametrize("name", ["sampling", "positions", "over_smoothing"])
def test_in_a_small_window_nothing_is_cut_off(name, tmp_path):
    """At 800 pixels, JupyterLab's list of files leaves less than half of the width."""
    page_of = "document.documentElement"
    cut = f"parent.postMessage({page_of}.scrollWidth - {page_of}.clientWidth, '*')"
    tell = f"addEventListener('load', () => setTimeout(() => {cut}, 100))"
    inner = html.escape(f"{ALL[name]().html()}<script>{tell}</script>", quote=True)
    page = tmp_path / "page.html"
    page.write_text(
        '<!doctype html><meta charset="utf-8"><body>'
        "<script>onmessage = (e) => { document.body.dataset.cut = e.data; };</script>"
        f'<iframe srcdoc="{inner}" sandbox="allow-scripts" style="width:348px;height:560px;'
        'border:0">',
        encoding="utf-8",
    )
    shown = browser.show(page, until="document.body.dataset.cut")
    assert re.search(r'data-cut="(\d+)"', shown)[1] == "0"


@browser.needed
@pytest.mark.parametrize("light", ["false", "true"])
def test_an_explorer_is_dark_in_a_dark_theme_of_jupyterlab(light, tmp_path):
    """JupyterLab tells its theme by an attribute of the body alone."""
    page = tmp_path / "page.html"
    page.write_text(
        f'<!doctype html><meta charset="utf-8"><body data-jp-theme-light="{light}">'
        f"{ALL['temperature']()._repr_html_()}<script>document.body.dataset.scheme = "
        'getComputedStyle(document.querySelector("iframe")).colorScheme;</script>',
        encoding="utf-8",
    )
    found = re.search(r'data-scheme="([^"]*)"', browser.show(page))[1]
    assert found == {"false": "dark", "true": "normal"}[light]
