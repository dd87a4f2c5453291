// The walk: why one particular number gets its gradient, for somebody who sees it for the first time.

// the path with the largest part at each step, from x[j] to L: [{node, i, slope}]
function mainPath(x, j) {
  const path = [];
  for (let node = x, i = j; node !== trace.last;) {
    const all = uses(node, i).filter((u) => u.node.grad);
    if (!all.length) break;
    const best = all.reduce((a, b) => (Math.abs(b.slope * b.node.grad[b.i]) > Math.abs(a.slope * a.node.grad[a.i]) ? b : a));
    path.push({ ...best, from: [node, i], ways: all.length });
    [node, i] = [best.node, best.i];
  }
  return path;
}

const bold = (node, i) => `<b>${escaped(nameOf(node, i))}</b>`;

// what a use multiplies a number with, if it does: "x[0, 1] = −0.5"
function factorOf(use) {
  if (use.at < 0 || !("partner" in use.input.rows)) return null;
  const [source, j, value] = partner(use.node, use.input, use.i, use.at);
  return source ? `${bold(...origin(source, j))} = ${text(value)}` : text(value);
}

function stops(x, j) {
  const path = mainPath(x, j);
  if (!path.length) return [opening(x, j, path)];
  const back = [...path].reverse().map((p) => backwardStop(p, x, path));
  return [opening(x, j, path), ...path.map((p, n) => forwardStop(path, n, x, j)), turning(path, x, j), ...back, ending(x, j)];
}

const isTrained = (x) => x.kind === "parameter";

function opening(x, j, path) {
  const layer = /^(\d+)\.(\w+)$/.exec(x.name), counted = "Rows and columns are counted from 0.";
  const named = layer ? `<b>${escaped(x.name)}</b> is the ${escaped(layer[2])} of layer ${layer[1]}. ${counted}` : counted;
  return {
    at: path.length ? [path[0].node, path[0].i, false] : [trace.last, 0, false],
    title: isTrained(x) ? `Should ${escaped(nameOf(x, j))} grow or shrink?` : `How much does ${escaped(nameOf(x, j))} matter?`,
    body: `This page holds one run of a computation, with all its numbers. On the left are its steps, down to the last number, <b>L</b>: ${escaped(trace.last.name)} = ${text(trace.last.data[0])}.${isTrained(x) ? " It says how wrong the result is; smaller is better." : ""} We follow one number, ${bold(x, j)} = ${text(x.data[j])}, framed in orange, and ask: <b>if it moves a little, how far does L move?</b> ${named} Numbers are rounded; point at one for all its digits.`,
  };
}

// operations that add up several numbers; any other with the slope 1 passes one on
const SUMS = new Set(["add", "subtract", "sum", "cumsum", "segment_sum", "scatter_add"]);

// why a number moves the result of its operation by so much, in the words of a school book
function reasonOf(p) {
  const factor = factorOf(p), { name } = operationOf(p.node), [from, i] = p.from;
  if (factor) return `, as it is multiplied with ${factor}`;
  if (p.node.terms?.includes(p.input.k)) {
    if (p.slope === 1 && !SUMS.has(name)) return `: ${escaped(name)} passes it on as it is`;
    if (Math.abs(p.slope) === 1) return p.slope > 0 ? ": it is added once, unchanged" : ": it is taken away once";
    return `: it stands ${text(p.slope)} times in the sum`;
  }
  const exponent = name === "power" && p.node.inputs.find((o) => "text" in o)?.text;
  if (Number(exponent) === 2) return `: the slope of x² is 2 x, here 2 · ${put(from.data[i])}`;
  if (name === "tanh") return `: the curve tanh has the slope 1 − tanh², here 1 − ${put(p.node.data[p.i])}²`;
  return `: that is how steep ${escaped(name)} is here`;
}

function forwardStop(path, n, x, j) {
  const p = path[n], from = bold(...p.from), to = bold(p.node, p.i), title = `Forward, ${n + 1} of ${path.length}: into ${escaped(nameOf(p.node, p.i))}`;
  const ways = p.ways > 1 ? ` It goes into ${p.ways} numbers; we follow one, ${to}.` : "", factor = factorOf(p);
  if (n === 0) {
    const why = factor ? ` It is multiplied with ${factor}, so` : "";
    return { at: [p.node, p.i, false], title, body: `Here ${from} is used: look at the terms on the left.${ways}${why} ${why ? "if" : "If"} it moves by 0.01, ${to} moves by ${put(p.slope)} · 0.01 = ${text(p.slope * 0.01)}. The factor ${text(p.slope)} is called the <b>slope</b>.` };
  }
  const product = path.slice(0, n + 1).reduce((s, q) => s * q.slope, 1);
  return { at: [p.node, p.i, false], title, body: `${from} goes into ${to}.${ways} The slope is ${text(p.slope)}${reasonOf(p)}. So if ${bold(x, j)} moves by one small unit, ${to} moves by ${path.slice(0, n + 1).map((q) => put(q.slope)).join(" · ")} = <b>${text(product)}</b> of that unit.` };
}

function turning(path, x, j) {
  const product = path.reduce((s, p) => s * p.slope, 1), moved = `if ${bold(x, j)} moves by one small unit, L moves by ${text(product)} of it`;
  const count = trace.nodes.filter((n) => isLeaf(n) && n.grad).reduce((s, n) => s + n.size, 0);
  const why = path.some((p) => p.ways > 1)
    ? `On this one path, ${moved}. But it has other paths to L, and there are ${count - 1} other numbers to ask about. Nobody multiplies path by path`
    : `So ${moved}. That was one number, and it took ${path.length} slopes. There are ${count} such numbers here, and millions in a real network, and most of these slopes are the same for all of them`;
  return {
    at: [trace.last, 0, true],
    title: "Turn round: the same from the end",
    body: `${why}. Going <b>backward</b>, each array gets dL/d(it): for each of its numbers, how far L moves when that number moves. Everything before it uses that again. It begins with dL/dL = 1.`,
  };
}

function backwardStop(p, x, path) {
  const [from, i] = p.from, name = bold(from, i), g = p.node.grad[p.i];
  const title = `Backward to ${escaped(nameOf(from, i))}`;
  if (from === x) {
    const sumOf = p.ways > 1 ? `${name} goes into ${p.ways} numbers. Each brings a part, and the parts add up` : `${name} goes into ${bold(p.node, p.i)} only`;
    const again = path.every((q) => q.ways === 1) ? " It is the product of the same slopes as on the way forward, multiplied from the other end." : "";
    return { at: [from, i, true], title, body: `Here is the answer. ${sumOf}: <b>how far L moves with that number · ${factorOf(p) ? "what this one is multiplied with there" : "the slope"}</b>. dL/d ${name} = ${text(from.grad[i])}.${again}` };
  }
  const rest = p.ways > 1 ? ` It goes into ${p.ways} numbers, so the parts of all are added: ${text(from.grad[i])}.` : "";
  return { at: [from, i, true], title, body: `If ${name} moves by one small unit, ${bold(p.node, p.i)} moves by ${text(p.slope)} (the slope of the way forward), and L by ${text(g)} times as much as that: ${put(g)} · ${put(p.slope)} = ${text(g * p.slope)}.${rest}` };
}

function ending(x, j) {
  const g = x.grad[j], measured = trace.walk?.[2];
  const check = typeof measured === "number" ? ` To check, the whole computation was run again with this number a little larger and a little smaller. Measured so: ${digits(measured)}; by the slopes: ${digits(g)}.` : "";
  const title = isTrained(x) ? `So ${escaped(nameOf(x, j))} should ${g > 0 ? "shrink" : g < 0 ? "grow" : "stay"}` : `L moves ${text(g)} times as much as ${escaped(nameOf(x, j))}`;
  return {
    at: [x, j, true],
    title,
    body: `dL/d ${bold(x, j)} = ${text(g)} is ${g > 0 ? "positive: more of it makes L larger" : g < 0 ? "negative: more of it makes L smaller" : "0: nothing changes"}.${check}${isTrained(x) ? " Training takes a small step against the gradient." : ""} Now click any other number: its sum says in the same way where it came from.`,
  };
}

// four digits, so that a measured and a computed number can be compared
const digits = (v) => String(Number(v.toPrecision(4))).replaceAll("-", "−");

const put = (v) => (v < 0 ? `(${text(v)})` : text(v));

const walkTarget = () => (trace.walk ? [trace.nodes[trace.walk[0]], trace.walk[1]] : firstWeight());

function startWalk() {
  const target = walkTarget();
  if (!target) return;
  state.folded.clear();
  const path = new Map(mainPath(...target).flatMap((p) => [[p.from[0].id, p.from[1]], [p.node.id, p.i]]));
  state.walk = { stops: stops(...target), at: 0, path };
  showStop();
}

// if nobody chose one: the number with the largest gradient among the weights used first, or what was given
function firstWeight() {
  const asked = (kind) => trace.nodes.find((n) => n.kind === kind && n.grad && n.size);
  const node = asked("parameter") ?? asked("given");
  if (!node) return null;
  const i = node.grad.reduce((best, g, k) => (Math.abs(g) > Math.abs(node.grad[best]) ? k : best), 0);
  return [node, i];
}

function showStop() {
  const { stops: all, at } = state.walk;
  const [node, i, backward] = all[at].at;
  state.gradients = null;
  state.at = Math.max(0, stepOf(node, backward));
  state.chosen.set(node.id, i);
  draw();
}

// whether the page still shows what the card speaks of
function isAtStop() {
  const [node, i, backward] = state.walk.stops[state.walk.at].at;
  return state.gradients === null && state.at === Math.max(0, stepOf(node, backward)) && state.chosen.get(node.id) === i && !foldOf(node);
}

function walkBy(by) {
  if (!isAtStop()) { state.folded.clear(); showStop(); return; }
  const next = state.walk.at + by;
  if (next < 0 || next >= state.walk.stops.length) { if (by > 0) leaveWalk(); return; }
  state.walk.at = next;
  showStop();
}

function leaveWalk() {
  state.walk = null;
  draw();
}

function drawCard() {
  const card = $("#card");
  card.hidden = !state.walk;
  if (!state.walk) return;
  const { stops: all, at } = state.walk, here = isAtStop(), leave = `<button data-walk="0">leave the walk</button>`;
  const keys = document.hasFocus() ? "the keys → and ← do the same" : "click here, and the keys → and ← do the same";
  card.innerHTML = here
    ? `<h2>${all[at].title}</h2><p>${all[at].body}</p><footer><button data-walk="-1" ${at ? "" : "disabled"}>◀ back</button><button data-walk="1">${at + 1 < all.length ? "on ▶" : "look around"}</button><span class="quiet">${at + 1} of ${all.length}; ${keys}</span>${leave}</footer>`
    : `<h2>You left the path</h2><p>Look at as many numbers as you like.</p><footer><button data-walk="1">back to the path</button><span></span>${leave}</footer>`;
}
