// Your own words in a small GPT: attention, the next token, and where its loss flows back to.
//
// state: words, at (the token whose next token is predicted; null: the last), target (the next token;
// null: the one that follows in the words, or the likeliest), cell ([i, j] of a map), sum ("next",
// "cell", "token").

const MODEL = modelOf(DATA), LABELS = DATA.tokens.map((t) => (t === DATA.end ? "▷" : t.replaceAll(" ", "␣").replaceAll("\n", "⏎")));
const MOST = 12;  // next tokens that are listed
const signed = (v) => `${v < 0 ? "−" : "+"} ${text(Math.abs(v))}`;
const make = (tag, options = {}) => Object.assign(document.createElement(tag), options);

$("form").after(make("div", { id: "own" }));
$("#own").innerHTML = `<div id="line"><label>your words <input type="text" id="words" autocomplete="off" autocapitalize="off" spellcheck="false"></label>
<button type="button" id="on">draw the next token</button></div><div id="tokens" role="group" aria-label="tokens"></div>`;
$("svg").before(make("div", { id: "pictures" }));
const column = make("div");
column.append(make("div", { id: "next" }), $("#said"));
$("#pictures").append($("svg"), column, make("div", { id: "sum" }));

// a blank belongs to the token of the next word, so a blank at the end has no token yet
const withoutBlank = (words) => words.replace(/ +$/, "");

// the computation for the words, kept while only the display changes
let last = { words: null };
function computed({ words }) {
  if (last.words === words) return last;
  const ids = encode(DATA, withoutBlank(words)), most = MODEL.positions.length - 1, kept = ids.slice(-Math.min(most, DATA.longest));
  const run = forward(MODEL, [DATA.tokens.indexOf(DATA.end), ...kept]);
  const unknown = [...new Set(words)].filter((c) => [...new TextEncoder().encode(c)].some((b) => DATA.bytes[b] === undefined));
  return (last = { words, run, cut: ids.length - kept.length, unknown });
}

const likeliest = (p) => p.indexOf(Math.max(...p));

const WIDGET = {
  hint: "Click on a number to see the sum behind it. In the map, the arrow keys move from cell to cell.",
  state: { words: DATA.text, at: null, target: null, cell: null, sum: "next" },
  controls: [
    { name: "T", label: "temperature", min: -1, max: 0.7, step: 0.02, start: 0, log: true },
    { name: "layer", label: "layer", choices: MODEL.layers.map((_, l) => String(l + 1)), start: 0 },
    { name: "head", label: "head", choices: range(MODEL.heads).map((h) => String(h + 1)), start: 0 },
    { name: "map", label: "maps", choices: ["attention weights a", "∂loss/∂a", "∂loss/∂score"], start: 0 },
  ],
  values({ words, at, target, cell, layer, head, map, T, sum: kind }) {
    const { run, cut, unknown } = computed({ words }), end = run.ids.length - 1;
    at = Math.min(at ?? end, end);
    const p = softmax(run.logits[at].map((s) => s / T));
    target ??= at < end ? run.ids[at + 1] : likeliest(run.logits[at]);
    const back = backward(MODEL, run, at, target), heads = (l, h) => [run.layers[l].heads[h].weights, back.layers[l][h].a, back.layers[l][h].s][map];
    const maps = MODEL.layers.map((_, l) => range(MODEL.heads).map((h) => heads(l, h)));
    const flow = back.embeddings.map((g) => Math.sqrt(dot(g, g)));
    const [i, j] = cell && cell[0] <= end ? cell : [at, 0];
    const shares = contributions(MODEL, run, at, target);
    return { run, back, maps, p, at, target, flow, shares, i, j, layer, head, map, T, kind, cut, unknown, loss: back.loss, labels: run.ids.map((id) => LABELS[id]) };
  },
  draw(pen, values) {
    if ($("#words").value !== state.words) $("#words").value = state.words;
    drawTokens(values);
    drawMaps(pen, values);
    drawNext(values);
    drawSum(values);
  },
  said({ target, loss, cut, unknown }) {
    const gone = [cut ? `The first ${cut} tokens are left out.` : "", unknown.length ? `The model has no token for ${unknown.join(" ")}.` : ""].join(" ");
    return `loss −log p(“${LABELS[target]}”) = ${text(loss)}. ${gone}`.trim();
  },
  key(key) {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[key];
    if (!step) return false;
    const { i, j, run } = WIDGET.values(widgets()), end = run.ids.length - 1, row = Math.max(0, Math.min(end, i + step[0]));
    Object.assign(state, { cell: [row, Math.max(0, Math.min(row, j + step[1]))], sum: "cell" });
    return true;
  },
};

// ---- what is drawn

// a token chooses the position; the number below it is the length of the gradient at its embedding
function drawTokens({ labels, at, flow, kind, i }) {
  const largest = Math.max(...flow, 1e-30);
  $("#tokens").replaceChildren(...labels.map((label, t) => {
    const token = make("button", { type: "button", textContent: label }), slope = make("button", { type: "button", textContent: text(flow[t]), title: "length of the gradient of the loss at this embedding" });
    token.dataset.t = slope.dataset.flow = t;
    token.setAttribute("aria-pressed", t === at);
    slope.setAttribute("aria-pressed", kind === "token" && i === t);
    slope.setAttribute("aria-label", `gradient at ${label}: ${text(flow[t])}`);
    slope.style.setProperty("--part", `${(100 * flow[t]) / largest}%`);
    const both = make("span");
    both.append(token, slope);
    return both;
  }));
}

const most = (matrix) => Math.max(...matrix.flat().map(Math.abs), 1e-30);

// weights are grey; a gradient is blue where more would lower the loss, orange where it would raise it
function cells(pen, [x, y, size], matrix, map, scale, mark) {
  const step = size / matrix.length;
  matrix.forEach((row, i) => row.forEach((v, j) => {
    const color = map === 0 ? "70,82,94" : v < 0 ? "0,114,178" : "213,94,0";
    pen.put(`<rect x="${x + j * step}" y="${y + i * step}" width="${step}" height="${step}" fill="rgba(${color},${Math.min(1, Math.abs(v) / scale).toFixed(3)})" ${mark(i, j)}><title>${text(v)}</title></rect>`);
  }));
  pen.put(`<path d="M${x} ${y}V${y + size}H${x + size}z" fill="none" stroke="${HAIRLINE}" pointer-events="none"/>`);
}

function drawMaps(pen, { maps, labels, layer, head, map, at, i, j, kind }) {
  const [wide, side] = narrow() ? [360, 264] : [640, 290], T = labels.length, step = side / T, font = Math.min(15, 0.85 * step);
  const scale = most(maps.flat(2)), left = 92, shown = (label) => (label.length > 9 ? `${label.slice(0, 8)}…` : label);
  labels.forEach((label, t) => {
        if (font > 5) pen.text(left - 6, 22 + (t + 0.5) * step + font / 3, shown(label), { anchor: "end", size: font, weight: t === (kind === "next" ? at : i) ? 700 : 400, color: t === at ? BLUE : INK });
  });
  cells(pen, [left, 22, side], maps[layer][head], map, most(maps[layer][head]), (r, c) => `data-cell="${r} ${c}"`);
  pen.text(narrow() ? 12 : left, 15, `layer ${layer + 1}, head ${head + 1}: row i from column j`, { size: 15, color: QUIET });
  if (kind === "cell") pen.put(`<rect x="${left + j * step}" y="${22 + i * step}" width="${step}" height="${step}" fill="none" stroke="${BLUE}" stroke-width="3" pointer-events="none"/>`);
  const small = narrow() ? Math.min(74, 340 / MODEL.heads - 8) : Math.min(110, 236 / MODEL.heads - 8, 290 / MODEL.layers.length - 10), x0 = narrow() ? 12 : 404, y0 = narrow() ? 318 : 22;
  maps.forEach((row, l) => row.forEach((matrix, h) => {
    const x = x0 + h * (small + 8), y = y0 + l * (small + 10);
    cells(pen, [x, y, small], matrix, map, scale, () => "");
    pen.put(`<rect x="${x - 2}" y="${y - 2}" width="${small + 4}" height="${small + 4}" fill="transparent" stroke="${l === layer && h === head ? BLUE : "none"}" stroke-width="2.5" data-head="${l} ${h}"><title>layer ${l + 1}, head ${h + 1}</title></rect>`);
  }));
  const high = narrow() ? y0 + MODEL.layers.length * (small + 10) : 318;
  pen.text(x0, narrow() ? 308 : 15, "all heads, a row for each layer", { size: 15, color: QUIET });
  $("svg").setAttribute("viewBox", `0 0 ${wide} ${high}`);
}

function drawNext({ p, target, kind, labels, at }) {
  const order = range(p.length).sort((a, b) => p[b] - p[a]).slice(0, MOST);
  if (!order.includes(target)) order[MOST - 1] = target;
  $("#next").replaceChildren(make("h2", { textContent: `after “${labels[at]}”` }), ...order.map((v) => {
    const button = make("button", { type: "button" });
    button.dataset.next = v;
    button.setAttribute("aria-pressed", v === target && kind === "next");
    if (v === target) button.classList.add("target");
    button.append(make("b", { textContent: LABELS[v] }), make("i"), make("span", { textContent: `${(100 * p[v]).toFixed(1)}%` }));
    button.children[1].style.setProperty("--part", `${(100 * p[v]) / Math.max(...p)}%`);
    return button;
  }));
}

// terms with their bars; the last line is their sum
function terms(rows, total) {
  const size = Math.max(...rows.map(([, v]) => Math.abs(v)), 1e-30);
  const bar = (v) => `<i class="${v < 0 ? "below" : "above"}" style="--part:${(50 * Math.abs(v)) / size}%"></i>`;
  return `<table>${rows.map(([name, v, more = ""]) => `<tr><td>${escaped(name)}</td><td>${bar(v)}</td><td>${signed(v)}</td><td>${escaped(more)}</td></tr>`).join("")}
<tr class="total"><td>${escaped(total[0])}</td><td></td><td>${escaped(total[1])}</td><td></td></tr></table>`;
}

const SUMS = {
  next({ shares, target, run, at, p, T, loss }) {
    const logit = run.logits[at][target], highest = Math.max(...run.logits[at]), e = run.logits[at].map((s) => Math.exp((s - highest) / T));
    return `<h2>p(“${escaped(LABELS[target])}”) = ${text(p[target])}</h2>
<p>Its logit is z · embedding, where z is the output of the last norm. Each part of the network contributes a term:</p>${terms(shares, ["logit", text(logit)])}
<p>Softmax over ${p.length} tokens, temperature ${text(T)}: exp((${text(logit)} − ${text(highest)}) / ${text(T)}) / Σ = ${text(e[target])} / ${text(sum(e))} = <b>${text(p[target])}</b></p>
<p>At temperature 1, the loss is −log p = ${text(loss)}.</p>`;
  },
  cell(values) {
    const { run, back, layer, head, i, j, map, labels } = values, { q, k, v, scores, weights } = run.layers[layer].heads[head], d = q[0].length;
    const where = `i = “${escaped(labels[i])}” ${i}, j = “${escaped(labels[j])}” ${j}`, found = back.layers[layer][head];
    if (map === 1) return `<h2>∂loss/∂a = ${text(found.a[i][j])}</h2><p>${where}. The output is y<sub>i</sub> = Σ a<sub>ij</sub> v<sub>j</sub>, so the slope is ∂loss/∂y<sub>i</sub> · v<sub>j</sub>:</p>
${terms([...v[j]].map((x, f) => [`feature ${f + 1}`, found.out[i][f] * x, `${text(found.out[i][f])} · ${text(x)}`]), ["∂loss/∂a", text(found.a[i][j])])}`;
    if (map === 2) {
      const mean = dot(weights[i], found.a[i]);
      return `<h2>∂loss/∂score = ${text(found.s[i][j])}</h2><p>${where}. The weights of a row sum to 1, so only the difference from their mean slope counts:</p>
${terms(weights[i].map((a, c) => [`“${labels[c]}”`, a * found.a[i][c], `${text(a)} · ${text(found.a[i][c])}`]), ["mean slope Σ a ∂loss/∂a", text(mean)])}
<p>a (∂loss/∂a − mean) = ${text(weights[i][j])} · (${text(found.a[i][j])} − ${text(mean)}) = <b>${text(found.s[i][j])}</b></p>`;
    }
    const highest = Math.max(...scores[i]), e = scores[i].map((s) => Math.exp(s - highest)), product = scores[i][j] * Math.sqrt(d);
    return `<h2>a = ${text(weights[i][j])}</h2><p>${where}. The score is q<sub>i</sub> · k<sub>j</sub> / √${d}:</p>
${terms([...q[i]].map((x, f) => [`feature ${f + 1}`, x * k[j][f], `${text(x)} · ${text(k[j][f])}`]), ["q · k", text(product)])}
<p>${text(product)} / ${text(Math.sqrt(d))} = <b>${text(scores[i][j])}</b>. Softmax over j ≤ i:</p>
${terms(scores[i].map((s, c) => [`“${labels[c]}”`, e[c], `exp(${text(s)} − ${text(highest)})`]), ["Σ", text(sum(e))])}
<p>${text(e[j])} / ${text(sum(e))} = <b>${text(weights[i][j])}</b></p>`;
  },
  token({ back, flow, labels, i, target }) {
    return `<h2>gradient at “${escaped(labels[i])}”: length ${text(flow[i])}</h2>
<p>∂loss/∂(embedding) of this token, for the loss of “${escaped(LABELS[target])}”. The length is √Σ of the squares:</p>
${terms([...back.embeddings[i]].map((g, f) => [`feature ${f + 1}`, g * g, `(${text(g)})²`]), ["Σ, and √Σ", `${text(flow[i] ** 2)}, ${text(flow[i])}`])}`;
  },
};

function drawSum(values) {
  $("#sum").innerHTML = SUMS[values.kind](values);
}

// ---- what is typed and clicked

function change(now) {
  const kept = document.activeElement?.dataset ?? {}, [name] = Object.keys(kept);
  Object.assign(state, now);
  draw();
  if (name) $(`[data-${name}="${kept[name]}"]`)?.focus();  // the button was drawn again
}

function showSum(now) {
  change(now);
  if (narrow()) $("#sum").scrollIntoView({ block: "nearest" });
}

const NEW = { at: null, target: null, cell: null, sum: "next" };
function changeWords(words) {
  change({ words, ...NEW });
  $("#tokens").scrollLeft = 1e6;  // to the newest
}
$("#words").oninput = () => changeWords($("#words").value);
$("#words").onkeydown = (event) => { if (event.key === "Enter") $("#on").click(); };
$("#on").onclick = () => {
  const { p, run, at } = WIDGET.values({ ...widgets(), at: null });
  let left = Math.random(), v = 0;
  while ((left -= p[v]) > 0 && v < p.length - 1) v++;
  if (DATA.tokens[v] === DATA.end) v = likeliest(p.map((x, i) => (i === v ? 0 : x)));  // the story goes on
  changeWords(withoutBlank(state.words) + DATA.tokens[v]);
};
document.addEventListener("click", (event) => {
  const { t, flow, next, cell, head } = event.target.closest("[data-t], [data-flow], [data-next], [data-cell], [data-head]")?.dataset ?? {};
  if (t !== undefined) change({ at: Number(t), target: null, cell: null, sum: "next" });
  else if (flow !== undefined) showSum({ cell: [Number(flow), 0], sum: "token" });
  else if (next !== undefined) showSum({ target: Number(next), sum: "next" });
  else if (cell) showSum({ cell: cell.split(" ").map(Number), sum: "cell" });
  else if (head) {
    const [l, h] = head.split(" ").map(Number);
    change({ layer: l, head: h });
    for (const name of ["layer", "head"]) document.getElementById(name).value = state[name];
  }
});
addEventListener("resize", draw);
