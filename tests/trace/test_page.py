"""The page in a browser without network: what it says of each number, and how it is moved through.

Each test adds a script to a saved page, which clicks and presses keys as a user would, and reads
what the page then holds.
"""

import html
import json
import re

import numpy as np
import pytest

import tinyattn as ta
import tinyattn.functional as F
from coursekit.deck import render
from tests import ROOT
from tests.coursekit import browser
from tests.trace import examples
from tinyattn import nn, widgets
from tinyattn.course import project

pytestmark = browser.needed

HARNESS = """
<script>
const failures = [];
addEventListener("error", (e) => failures.push(String(e.message)));
addEventListener("unhandledrejection", (e) => failures.push(String(e.reason)));
const press = (key, more = {}) => document.body.dispatchEvent(
  new KeyboardEvent("keydown", { key, bubbles: true, ...more }));
const said = () => $("#sum h2").textContent;
const cut = (e) => e.scrollHeight > e.clientHeight + 2 || e.scrollWidth > e.clientWidth + 2;
const wait = setInterval(() => {
  if (document.body.dataset.ready !== "yes" && !failures.length) return;
  clearInterval(wait);
  let result = null;
  try { result = (() => { %s })(); } catch (error) { failures.push(error.stack); }
  const requests = performance.getEntriesByType("resource").map((e) => e.name);
  const out = document.createElement("pre");
  out.id = "result";
  out.textContent = JSON.stringify({ result, failures, requests });
  document.body.append(out);
}, 50);
</script>
</body>"""


def run(trace, script, folder, size="1280,720"):
    """What the script returns on the page; fails if the page had an error or asked for a file."""
    path = folder / "trace.html"
    text = trace.save(path).read_text(encoding="utf-8")
    path.write_text(text.replace("</body>", HARNESS % script), encoding="utf-8")
    page = browser.show(path, size)
    found = re.search(r'<pre id="result">(.*?)</pre>', page, re.DOTALL)
    assert found, "the page never became ready"
    answer = json.loads(html.unescape(found[1]))
    assert answer["failures"] == []
    assert answer["requests"] == []
    return answer["result"]


# for every element: the terms add up to it, the parts to its gradient; the numbers that are summed
# are those that the page prints
SUMS = """
  const rows = [];
  const check = (node, i) => {
    if (node.kind === "result" && node.terms) {
      const all = parts(node, i).filter((p) => isSummand(node, p));
      rows.push(["value", nameOf(node, i), all.reduce((s, p) => s + termOf(p), 0), node.data[i]]);
    }
    if (node.grad && node !== trace.last)
      rows.push(["gradient", nameOf(node, i),
        uses(node, i).filter((u) => u.node.grad)
          .reduce((s, u) => s + u.slope * u.node.grad[u.i], 0), node.grad[i]]);
  };
  for (const moves of [false, true]) {
    state.moves = moves;
    order();
    for (const node of trace.nodes)
      for (let i = 0; i < node.size; i += EVERY) check(node, i);
  }
  return rows.map(([kind, name, a, b]) => [kind, name, String(a), String(b)]);
"""


def check_sums(rows):
    for kind, name, total, expected in rows:
        a, b = float(total), float(expected)
        assert np.isclose(a, b, rtol=1e-5, atol=1e-5, equal_nan=True), f"{kind} of {name}: {a}, {b}"
    return sum(kind == "value" for kind, *_ in rows), sum(kind == "gradient" for kind, *_ in rows)


def test_in_a_deck_it_fits_on_its_slide(tmp_path):
    shown = examples.perceptron()
    output = {
        "output_type": "execute_result",
        "data": {"text/html": shown._repr_html_(), "text/plain": repr(shown)},
    }
    cells = [
        {"cell_type": "markdown", "source": "## A number", "metadata": {}},
        {
            "cell_type": "code",
            "source": "t",
            "metadata": {"tags": ["hide-code"]},
            "outputs": [output],
        },
    ]
    path = tmp_path / "deck.html"
    measure = """<script>addEventListener("load", () => setTimeout(() => {
      const size = (e) => { const b = document.querySelector(e).getBoundingClientRect();
        return [b.left, b.top, b.right, b.bottom]; };
      document.body.dataset.sizes = JSON.stringify([size(".page"), size(".explorer"),
        size(".explorer iframe"), size(".explorer + .said")]); }, 500))</script></body>"""
    page = render.render(cells, project.lectures(ROOT)[0])
    path.write_text(page.replace("</body>", measure), encoding="utf-8")
    found = re.search(r'data-sizes="([^"]*)"', browser.show(path))[1]
    outer, *inner, said = json.loads(html.unescape(found))
    for left, top, right, bottom in inner:
        assert outer[0] < left < right < outer[2] and outer[1] < top < bottom < outer[3]
        assert bottom - top > 0.6 * (outer[3] - outer[1])
    assert said == [0, 0, 0, 0]  # the line for a notebook takes no room in a deck


def test_at_the_size_of_a_slide_the_list_of_steps_is_not_cut(tmp_path):
    trace = examples.perceptron()
    names, *heights = run(
        trace,
        """const nav = $("nav");
        const names = [...document.querySelectorAll("#leaves button")].map((b) => b.title);
        return [names, nav.scrollHeight, nav.clientHeight];""",
        tmp_path,
        size="1152,600",  # of the window; its page is about 510 high, as a frame in a deck
    )
    assert names == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert heights[0] <= heights[1]


@pytest.mark.parametrize("example", examples.SMALL, ids=lambda f: f.__name__)
def test_terms_and_parts_of_every_element(example, tmp_path):
    values, gradients = check_sums(run(example(), SUMS.replace("EVERY", "1"), tmp_path))
    assert values > 5 and gradients > 20


def test_a_language_model(tmp_path):
    trace = examples.language_model()
    rows = run(trace, SUMS.replace("EVERY", "97"), tmp_path)
    values, gradients = check_sums(rows)
    assert values > 500 and gradients > 500
    assert len(trace.html()) < 1_500_000


def test_every_step_by_keys(tmp_path):
    """From the first to the last step and back: each has a heading, a sum, and nothing is cut."""
    seen, count, overflow = run(
        examples.perceptron(),
        """
        const seen = [], overflow = [];
        for (let n = 0, last = -1; n < 99 && state.at !== last; n++) {
          seen.push(said());
          last = state.at;
          for (const e of [$("#sum"), $("#arrays .flow"), $("header")])
            if (cut(e)) overflow.push(`${said()}: ${e.id || e.className || e.tagName}`);
          press("ArrowRight");
        }
        press("End"); press("Home");
        if (!said().startsWith("linear[")) seen.push("Home does not lead to the first step");
        return [seen, steps.length, overflow];
        """,
        tmp_path,
    )
    assert len(seen) == count
    assert seen[0].startswith("linear[0, 0] = ")
    assert seen[5].startswith("loss = ")
    assert seen[6].startswith("dL/d loss = 1")
    assert any(s.startswith("dL/d 0.weight") for s in seen)
    assert overflow == []


def test_the_walk_by_clicks_from_the_loss_to_a_weight_and_back(tmp_path):
    trail = run(
        examples.perceptron(),
        """
        press("End"); press("Home");
        go(stepOf(trace.last, true));
        const trail = [said()];
        const follow = (name) => {
          const to = [...document.querySelectorAll("#arrays td, #sum .link")]
            .find((e) => trace.nodes[e.dataset.node]?.name === name);
          to.click();
          trail.push(said());
        };
        go(stepOf(trace.nodes.find((n) => n.name === "0.weight"), true));
        trail.push(said());
        follow("linear");
        follow("tanh");
        press(" ");
        trail.push(said());
        follow("linear");
        press("Backspace"); press("Backspace");
        trail.push(said());
        return trail;
        """,
        tmp_path,
    )
    names = [re.match(r"(dL/d )?[\w.]+", t)[0] for t in trail]
    assert names == [
        "dL/d loss",
        "dL/d 0.weight",
        "dL/d linear",
        "dL/d tanh",
        "tanh",
        "linear",
        "dL/d linear",
    ]


def test_the_path_is_followed(tmp_path):
    """What is looked at next was made of what was looked at before."""
    apart = run(
        examples.attention(),
        """
        const apart = [];
        state.chosen.clear();
        go(0, 4);
        for (let n = 1; n < steps.length; n++) {
          press("ArrowRight");
          const { node, backward } = now();
          const near = backward ? uses(node, chosen()) : parts(node, chosen());
          const places = near.map((p) => (backward ? [p.node, p.i] : origin(p.source, p.j)));
          const before = places.filter(([x]) => x && state.chosen.has(x.id));
          if (before.length && !before.some(([x, j]) => state.chosen.get(x.id) === j))
            apart.push(said());
        }
        return apart;
        """,
        tmp_path,
    )
    assert apart == []


def test_numbers_on_the_page_are_those_of_numpy(tmp_path):
    trace = examples.attention()
    cells = run(
        trace,
        """
        const cells = {};
        for (let n = 0; n < steps.length; n++) {
          go(n);
          document.querySelectorAll(".array.this td[data-i]").forEach((td) => {
            const node = trace.nodes[td.dataset.node];
            cells[`${now().backward ? "dL/d " : ""}${nameOf(node, td.dataset.i)}`] = td.textContent;
          });
        }
        return cells;
        """,
        tmp_path,
    )
    checked = 0
    for node in trace.data["nodes"]:
        for before, numbers in (("", node["data"]), ("dL/d ", node["grad"])):
            for i, index in enumerate(np.ndindex(*node["shape"])):
                name = before + node["name"] + (f"[{', '.join(map(str, index))}]" if index else "")
                if numbers is not None and name in cells:
                    shown = float(cells[name].replace("−", "-"))
                    assert np.isclose(shown, numbers[i], rtol=0.06, atol=6e-4), name
                    checked += 1
    assert checked > 60


def test_rows_have_the_words_that_were_given(tmp_path):
    heads, plain = run(
        examples.attention(),
        """
        const heads = () => [...document.querySelectorAll(".array.this th")]
          .map((e) => e.textContent);
        go(stepOf(trace.nodes.find((n) => n.name === "weights"), false));
        const words = heads();
        go(stepOf(trace.nodes.find((n) => n.name === "WQ"), true));
        return [words, heads()];
        """,
        tmp_path,
    )
    assert heads == ["", "Thinking", "Machines", "Thinking", "Machines"]
    assert plain == []


def test_the_keyboard_stays_where_it_was(tmp_path):
    """After a step by keys the chosen number has the focus, so that Tab goes on from there."""
    where = run(
        examples.perceptron(),
        """
        document.querySelector("#arrays .row td").focus();
        press("ArrowRight");
        return document.activeElement.className;
        """,
        tmp_path,
    )
    assert "chosen" in where


def test_a_wrong_rule_shows_red(tmp_path):
    import tinyattn as ta

    @ta.primitive
    def cube(x):
        """y = x³"""
        return x**3

    cube.defvjp(lambda g, y, x: g * 2 * x**2)  # wrong: it is 3 x²
    w = ta.tensor([1.0, 2.0], requires_grad=True)
    with ta.trace() as t:
        loss = cube(w).sum()  # noqa: F841
    forward, backward, rule = run(
        t,
        """
        press("Home");
        const forward = $("#sum tr.wrong").textContent;
        press("End");
        return [forward, $("#sum p.wrong").textContent, $("#sum pre").textContent];
        """,
        tmp_path,
    )
    assert "2" in forward and "3" in forward
    assert "the rule is wrong" in backward
    assert rule == "lambda g, y, x: g * 2 * x**2"


def test_keys_and_tab_reach_everything(tmp_path):
    focusable, labels, opened, kept = run(
        examples.selection(),
        """
        const focusable = [...document.querySelectorAll("button, td, summary, input")]
          .filter((e) => e.tabIndex >= 0 && !e.closest("dialog")).length;
        const labels = [...document.querySelectorAll("td[data-i]")].every((td) => td.ariaLabel);
        press("?");
        const opened = $("#help").open;
        $("#help").close();
        $("#sum summary").click();
        $("#sum details").open = true;
        press("r");
        return [focusable, labels, opened, steps.length];
        """,
        tmp_path,
    )
    assert focusable > 15 and labels and opened and kept > 10


def test_the_walk_ends_at_the_weight(tmp_path):
    """Every stop is a page of its own, and the last says what its title asked."""
    trace = examples.perceptron().walk("0.weight", (0, 1))
    titles, texts, cut = run(
        trace,
        """
        const titles = [], texts = [], cutOff = [];
        for (let n = 0; n < 40 && state.walk; n++) {
          titles.push($("#card h2").textContent);
          texts.push($("#card p").textContent);
          for (const e of [$("#card"), $("#sum")]) if (cut(e)) cutOff.push(titles.at(-1));
          press("ArrowRight");
        }
        return [titles, texts, cutOff];
        """,
        tmp_path,
    )
    g = trace.data["nodes"][1]["grad"][1]
    assert titles[0] == "Should 0.weight[0, 1] grow or shrink?"
    assert titles[-1] == f"So 0.weight[0, 1] should {'shrink' if g > 0 else 'grow'}"
    assert len(titles) == 15
    assert cut == []
    measured, computed = re.search(
        r"measured gradient is (\S+), and the gradient from the slopes is (\S+)\.", texts[-1]
    ).groups()
    assert np.isclose(float(measured.replace("−", "-")), g, rtol=1e-3)
    assert np.isclose(float(computed.replace("−", "-")), g, rtol=1e-3)


def test_who_leaves_the_path_is_told_so_and_finds_back(tmp_path):
    trace = examples.perceptron().walk("0.weight", (0, 1))
    cards, framed, asked = run(
        trace,
        """
        const cards = [], note = () => cards.push($("#card h2").textContent);
        const framed = [...document.querySelectorAll("td.followed")]
          .map((e) => e.title.split(" =")[0]);
        press("ArrowRight"); note();
        press(" "); note();            // the other side
        press("ArrowRight"); note();   // back to the stop, not on to the next
        press("ArrowDown"); note();    // another number
        $("#card button").click(); note();
        press("v"); note();            // gradients in place of values
        press("Escape"); note();       // gives the keys away, and keeps the walk
        press("w");
        return [cards, framed, $("#card").hidden];
        """,
        tmp_path,
    )
    stop = "Forward, 1 of 6: into linear[0, 0]"
    assert cards[:6] == [
        stop,
        "You left the path",
        stop,
        "You left the path",
        stop,
        "You left the path",
    ]
    assert "0.weight[0, 1]" in framed
    assert cards[6:] == cards[5:6] and asked  # w ends the walk, Escape does not


def test_a_walk_starts_at_a_given_number_where_there_is_no_parameter(tmp_path):
    import tinyattn as ta

    hidden, title = run(
        ta.trace(lambda x: np.sum(np.tanh(x) ** 2), np.array([[1.0, 2.0]])),
        """
        const button = $("#walk-on"), hidden = button.hidden;
        press("w");
        return [hidden, $("#card h2").textContent];
        """,
        tmp_path,
    )
    assert not hidden and re.match(r"How much does \w+\[\d, \d\] matter\?", title)


def test_layers_fold(tmp_path):
    folded, opened, influence = run(
        examples.language_model(tokens=6, width=8),
        """
        const folded = document.querySelectorAll("#graph .folded").length;
        const at = trace.nodes.find((n) => n.name.startsWith("logits"));
        go(visible(0, 1), 2 * 20 + 3);
        const group = foldOf(now().node);
        const rows = new Set();
        for (const [id, m] of slopesThrough(group, now().node, 2 * 20 + 3))
          if (/position/.test(trace.nodes[id].name))
            for (const j of m.keys()) rows.add(Math.floor(j / 8));
        document.querySelector("#graph .folded").click();
        return [folded, document.querySelectorAll("#graph .frame").length, [...rows].sort()];
        """,
        tmp_path,
    )
    assert folded >= 2 and opened == 1
    assert influence == [0, 1, 2]  # the causal mask, seen without opening anything


def test_it_opens_at_the_number_that_was_chosen(tmp_path):
    read = "return [said(), $('#phase').textContent];"
    value, forward = run(examples.perceptron().start("tanh", (1, 2)), read, tmp_path)
    assert value.startswith("tanh[1, 2] = ") and forward.startswith("forward 2 of ")
    gradient, backward = run(
        examples.perceptron().start("0.weight", (2, 1), gradient=True), read, tmp_path
    )
    assert gradient.startswith("dL/d 0.weight[2, 1] = ") and backward.startswith("backward")


def test_in_a_narrow_notebook_every_sum_is_seen_whole(tmp_path):
    """Then the names of a row have a line of their own; the chosen number is scrolled to."""
    cut, folded, hidden, beside = run(
        examples.recurrent(),
        """
        const cut = [], hidden = [], beside = [];
        let folded = 0;
        $("main").style.gridTemplateColumns = "255px 215px";
        $("#arrays .flow").style.width = "150px";
        for (let n = 0; n < steps.length; n++) {
          go(n, now().node.size - 1);
          const table = $("#sum table"), room = $("#sum").clientWidth;
          if (!table) continue;
          folded += table.classList.contains("in-two-lines");
          if (table.offsetWidth > room) cut.push(said());
          const total = table.querySelector(".total td"), last = total?.parentNode.previousSibling;
          const edge = last?.lastElementChild?.getBoundingClientRect().bottom;
          if (total?.getBoundingClientRect().top < edge - 1) beside.push(said());
          const cell = $(".array.this td.chosen").getBoundingClientRect();
          const seen = $("#arrays .flow").getBoundingClientRect();
          if (cell.top < seen.top || cell.bottom > seen.bottom + 1) hidden.push(said());
        }
        return [cut, folded, hidden, beside];
        """,
        tmp_path,
    )
    assert cut == [] and hidden == [] and beside == [] and folded > 10


@pytest.mark.parametrize(
    ("scheme", "height", "dark"), [("dark", 720, True), ("light", 720, False), ("dark", 500, False)]
)
def test_the_page_follows_the_theme_of_the_page_around(scheme, height, dark, tmp_path):
    """In a deck, the frame is lower and the page around it is white."""
    tell = "parent.postMessage(getComputedStyle(document.documentElement).filter, '*')"
    text = examples.perceptron().save(tmp_path / "trace.html").read_text(encoding="utf-8")
    inner = html.escape(text.replace("</body>", f"<script>{tell}</script></body>"), quote=True)
    page = tmp_path / "page.html"
    page.write_text(
        f'<!doctype html><meta charset="utf-8"><body style="color-scheme: {scheme}">'
        "<script>onmessage = (e) => { document.body.dataset.filter = e.data; };</script>"
        f'<iframe srcdoc="{inner}" sandbox="allow-scripts" style="width:800px;height:{height}px">',
        encoding="utf-8",
    )
    shown = browser.show(page, "1280,900", until="document.body.dataset.filter")
    assert ("invert" in re.search(r'data-filter="([^"]*)"', shown)[1]) is dark


def test_in_a_small_window_the_sums_are_seen_whole(tmp_path):
    """At 800 pixels, JupyterLab's list of files leaves less than half of the width."""
    cut = run(
        examples.perceptron(),
        """
        const cut = [];
        for (let n = 0; n < steps.length; n++) {
          go(n, 0);
          if ($("#sum").scrollWidth > $("#sum").clientWidth) cut.push(said());
        }
        return cut;
        """,
        tmp_path,
        "348,863",
    )
    assert cut == []


AROUND = """<!doctype html><meta charset="utf-8"><body style="margin:0;height:4000px">
<div style="height:500px"></div>%s
<script>
const frame = document.querySelector("iframe"), seen = [];
let given = 0, focused = 0;
window.focus = () => { focused += 1; };
addEventListener("message", ({ data }) => { given += data === "leave"; });
const wait = setInterval(() => {
  const inside = frame.contentDocument;
  if (inside?.body?.dataset.ready !== "yes") return;
  clearInterval(wait);
  const event = (key) => new frame.contentWindow.KeyboardEvent(
    "keydown", { key, bubbles: true, cancelable: true });
  const press = (key) => (inside.activeElement ?? inside.body).dispatchEvent(event(key));
  seen.push(scrollY);
  frame.focus();
  inside.querySelector("input").focus();
  const leftAlone = !press("PageDown");
  for (const key of ["End", "Home", "ArrowRight", "ArrowDown", " ", "Backspace"])
    inside.body.dispatchEvent(event(key));
  seen.push(scrollY, frame.clientHeight);
  press("Escape");
  setTimeout(() => { document.body.dataset.seen = JSON.stringify(
    [seen, leftAlone, given, focused]); }, 50);
}, 50);
</script></body>"""


@pytest.mark.parametrize("what", ["trace", "walk", "widget"])
def test_the_notebook_around_stays_in_its_place(what, tmp_path):
    """No step scrolls it, a slider leaves PageDown alone, and Escape gives the keys back."""
    if what == "widget":
        shown = widgets.temperature([1.0, 2.0])
    else:
        shown = examples.perceptron()
        shown = shown.walk("0.weight", (0, 1)) if what == "walk" else shown
    page = shown._repr_html_().replace('sandbox="allow-scripts"', "")  # to press keys in it
    path = tmp_path / "around.html"
    path.write_text(AROUND % page, encoding="utf-8")
    found = re.search(r'data-seen="([^"]*)"', browser.show(path))[1]
    (*scrolled, high), left_alone, told, focused = json.loads(html.unescape(found))
    assert scrolled == [0, 0] and told == focused == 1
    assert left_alone or what == "walk"  # which hides the slider
    assert high == (560 if what == "widget" else 720)


def test_where_the_frame_is_taken_out_a_sentence_is_left(tmp_path):
    """As in a notebook that is not trusted: no empty box, and what to do."""
    for shown in (examples.perceptron(), widgets.temperature([1.0, 2.0])):
        left = re.sub(r"<iframe.*?</iframe>", "", shown._repr_html_(), flags=re.DOTALL)
        page = f"""<!doctype html><body>{left}<script>addEventListener("load", () => {{
          const box = document.querySelector(".explorer");
          box.dataset.size = box.clientHeight; box.dataset.said = box.innerText; }});
          </script></body>"""
        path = tmp_path / "left.html"
        path.write_text(page, encoding="utf-8")
        found = browser.show(path)
        assert "Trust Notebook" in re.search(r'data-said="([^"]*)"', found)[1]
        size, pictures = int(re.search(r'data-size="(\d+)"', found)[1]), left.count("<img")
        assert 60 < size < 160 + 400 * pictures


def test_a_loss_is_closed_and_relu_adds_nothing(tmp_path):
    model = nn.Sequential(nn.Linear(3, 4, rng=0), nn.ReLU(), nn.Linear(4, 3, rng=1))
    x = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    with ta.trace() as t:
        loss = F.cross_entropy(model(x), np.array([0, 2]))  # noqa: F841
    boxes, sums, reasons = run(
        t,
        """const boxes = [...document.querySelectorAll("#steps button.folded, .folded")]
             .map((b) => b.textContent);
           const reasons = trace.results.flatMap((node) => node.inputs.filter((o) => o.rows)
             .map((input) => [operationOf(node).name,
                reasonOf({ node, input, i: 0, at: -1, slope: 1, from: [node, 0] })]));
           return [boxes, document.body.textContent.length, reasons];""",
        tmp_path,
    )
    assert any("cross_entropy()" in box for box in boxes) and sums
    said = dict(reasons)
    assert said["relu"] == ": relu passes it on unchanged"
    assert "passes it on" in said["getitem"] and "added" not in said["getitem"]


def test_after_the_fact_a_loss_is_drawn_as_one_box(tmp_path):
    model = nn.Sequential(nn.Linear(3, 4, rng=0), nn.ReLU(), nn.Linear(4, 3, rng=1))
    x = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    loss = F.cross_entropy(model(x), np.array([0, 2]))
    (boxes,) = run(
        ta.trace(loss),
        """return [[...document.querySelectorAll(".folded")].map((b) => b.textContent)];""",
        tmp_path,
    )
    assert [box for box in boxes if "cross_entropy()" in box]
