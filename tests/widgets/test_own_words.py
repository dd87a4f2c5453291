"""The explorer of own words: its forward and backward pass are those of the library."""

import html
import json
import re

import numpy as np
import pytest

import tinyattn as ta
import tinyattn.functional as F
from tests.coursekit import browser
from tinyattn import data, widgets
from tinyattn.models import GPT
from tinyattn.widgets.own_words import rows_in_8_bits

TEXT = "the cat sat on the mat. the dog sat on the cat's mat; 3 cats, 12 dogs!\n" * 4
TOKENIZER = data.tokenizers.BytePairs.train(TEXT, 290, special=["<end>"])
WORDS = "the cat's dog sat  on\nthe 12 mats"


def model_of(seed=0, layers=2, heads=4):
    """A GPT in float64 with weights of 8 bits, and with biases and norms that are not trivial."""
    model, rng = GPT(len(TOKENIZER), 16, heads, layers, 32, rng=seed), np.random.default_rng(seed)
    for p in model.parameters():
        if p.ndim == 1:
            value = p.numpy() + 0.2 * rng.normal(size=p.shape)
            p.data = value.astype(np.float32).astype(np.float64)
        else:
            whole, factors = rows_in_8_bits(p.numpy())
            p.data = whole * factors[:, None].astype(np.float64)
    return model.eval()


def computed(model, ids, at, target):
    """(logits, loss, gradients) by autograd, with the embeddings and the attention in the open."""
    d, T = model.embedding.weight.shape[1], len(ids)
    E = ta.tensor(model.embedding.weight.numpy()[ids], requires_grad=True)
    x, weights, scores = E + model.positions.weight.numpy()[:T], [], []
    hidden = np.triu(np.full((T, T), -np.inf), 1)
    for layer in model.blocks.layers:
        attention, heads = layer.self_attn, layer.self_attn.num_heads
        qkv = F.linear(layer.norm1(x), attention.in_proj_weight, attention.in_proj_bias)
        q, k, v = (
            qkv[:, i * d : (i + 1) * d].reshape(T, heads, -1).transpose(1, 0, 2) for i in range(3)
        )
        scores.append(q @ k.transpose(0, 2, 1) / np.sqrt(d // heads))
        weights.append(F.softmax(scores[-1] + hidden, axis=-1))
        x = x + attention.out_proj((weights[-1] @ v).transpose(1, 0, 2).reshape(T, d))
        x = x + layer.linear2(F.gelu(layer.linear1(layer.norm2(x))))
    logits = model.head(model.blocks.norm(x))
    loss = F.cross_entropy(logits[at : at + 1], np.array([target]))
    found = ta.gradients(loss, [E, *weights, *scores])
    return logits, loss, [np.asarray(g) for g in found]


SCRIPT = """
<script>
const failures = [];
addEventListener("error", (e) => failures.push(e.message));
const { run, back, at, target, shares, loss } = WIDGET.values({ ...widgets(), ...%s });
const out = document.createElement("pre");
out.id = "result";
out.textContent = JSON.stringify({ failures, ids: run.ids, at, target, loss, shares,
  coded: %s.map((words) => encode(DATA, words)),
  logits: run.logits, weights: run.layers.map(({ heads }) => heads.map((head) => head.weights)),
  embeddings: back.embeddings, a: back.layers.map((heads) => heads.map((h) => h.a)),
  s: back.layers.map((heads) => heads.map((h) => h.s)),
  requests: performance.getEntriesByType("resource").length,
}, (_, value) => (value instanceof Float64Array ? [...value] : value));
document.body.append(out);
</script>
</body>"""


def in_page(model, folder, asked, texts=()):
    page = widgets.own_words(model, TOKENIZER, WORDS).html()
    path = folder / "widget.html"
    script = SCRIPT % (json.dumps(asked), json.dumps(list(texts)))
    path.write_text(page.replace("</body>", script), encoding="utf-8")
    shown = browser.show(path)
    return json.loads(html.unescape(re.search(r'<pre id="result">(.*?)</pre>', shown, re.S)[1]))


def full(rows):
    """Rows of j <= i as a square matrix."""
    T = len(rows)
    return np.array([row + [0] * (T - len(row)) for row in rows])


@browser.needed
@pytest.mark.parametrize(
    ("seed", "layers", "heads", "asked"),
    [(0, 2, 4, {}), (1, 1, 2, {"at": 4}), (2, 3, 1, {"at": 9, "target": 258})],
)
def test_forward_and_backward_are_those_of_autograd(seed, layers, heads, asked, tmp_path):
    model = model_of(seed, layers, heads)
    found = in_page(model, tmp_path, asked)
    assert found["failures"] == [] and found["requests"] == 0
    ids = np.array([TOKENIZER.special["<end>"], *TOKENIZER.encode(WORDS)])
    assert found["ids"] == ids.tolist()
    at, target = found["at"], found["target"]
    if at < len(ids) - 1 and "target" not in asked:
        assert target == ids[at + 1]
    logits, loss, gradients = computed(model, ids, at, target)
    close = lambda a, b: np.allclose(a, b, rtol=1e-9, atol=1e-12)
    assert close(logits.numpy(), model(ids[None]).numpy()[0])  # the reference is the model
    # one float32 number, 1e-5 in the norm's ε or elsewhere, would already show
    assert close(found["logits"], logits.numpy()) and close(found["loss"], loss.item())
    assert close(found["embeddings"], gradients[0])
    for l in range(layers):
        a, s = gradients[1 + l], gradients[1 + layers + l]
        lower = np.tril(np.ones(a.shape[1:], bool))  # what the page shows
        for h in range(heads):
            assert close(full(found["a"][l][h]), np.where(lower, a[h], 0))
            assert close(full(found["s"][l][h]), s[h])
    assert np.abs(gradients[0]).max() > 1e-3  # there was something to compare
    assert close(sum(v for _, v in found["shares"]), logits.numpy()[at, target])


@browser.needed
def test_words_become_the_tokens_of_the_library(tmp_path):
    texts = [
        "",
        "the",
        " the the",
        "aaa aaaa",
        "cat's we'll 12 345",
        "x  y   \n\n z \n",
        "!?;;",
        "dogs",
    ]
    found = in_page(model_of(), tmp_path, {}, texts)
    assert found["coded"] == [TOKENIZER.encode(t).tolist() for t in texts]


USED = """
<script>
const failures = [], seen = {};
addEventListener("error", (e) => failures.push(e.message));
const type = (words) => {
  $("#words").value = words;
  $("#words").dispatchEvent(new Event("input", { bubbles: true }));
};
const click = (selector) => $(selector).dispatchEvent(new MouseEvent("click", { bubbles: true }));
const press = (key, at) => at.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
type("the cat ");
seen.blank = document.querySelectorAll("[data-t]").length;
type("the cat");
press("r", $("#words"));
seen.typed = state.words;
seen.tokens = document.querySelectorAll("[data-t]").length;
click("[data-t='1']"); seen.at = WIDGET.values(widgets()).at;
click("[data-cell='1 0']"); seen.cell = $("#sum h2").textContent;
click("[data-flow='2']"); seen.flow = $("#sum h2").textContent;
click("[data-next]"); seen.next = $("#sum h2").textContent;
click("[data-head='1 2']");
seen.head = [state.layer, state.head, $("#layer").value, $("#head").value];
for (const map of [1, 2]) {
  state.map = map;
  click("[data-cell='1 0']");
  seen[`map${map}`] = $("#sum h2").textContent;
}
press("ArrowDown", $("svg")); seen.arrow = state.cell;
click("#on"); seen.longer = state.words.length > "the cat".length;
type("thé"); seen.unknown = $("#said").textContent;
type("the ".repeat(200)); seen.cut = $("#said").textContent;
type(""); seen.empty = document.querySelectorAll("[data-t]").length;
seen.wide = document.documentElement.scrollWidth - innerWidth;
seen.nan = /NaN|undefined/.test(document.body.innerHTML.split("<script")[0]);
press("r", document.body); seen.reset = state.words;
const out = document.createElement("pre");
out.id = "result";
out.textContent = JSON.stringify({ failures, seen });
document.body.append(out);
</script>
</body>"""


@browser.needed
@pytest.mark.parametrize("size", ["1280,720", "500,844"])
def test_the_page_is_used_with_clicks_and_keys(size, tmp_path):
    page = widgets.own_words(model_of(), TOKENIZER, WORDS).html()
    path = tmp_path / "widget.html"
    path.write_text(page.replace("</body>", USED), encoding="utf-8")
    shown = browser.show(path, size)
    found = json.loads(html.unescape(re.search(r'<pre id="result">(.*?)</pre>', shown, re.S)[1]))
    seen = found["seen"]
    assert found["failures"] == [] and not seen["nan"] and seen["wide"] <= 0
    assert seen["typed"] == "the cat" and seen["tokens"] == 1 + len(TOKENIZER.encode("the cat"))
    assert seen["blank"] == seen["tokens"]
    assert seen["at"] == 1 and seen["head"] == [1, 2, "1", "2"] and seen["arrow"] == [2, 0]
    assert seen["cell"].startswith("a = ") and seen["flow"].startswith("gradient at")
    assert seen["next"].startswith("p(") and seen["longer"]
    assert seen["map1"].startswith("∂loss/∂a") and seen["map2"].startswith("∂loss/∂score")
    assert "no token for" not in seen["unknown"]  # these are all bytes of this tokenizer
    assert "left out" in seen["cut"] and seen["empty"] == 1 and seen["reset"] == WORDS
