// The walk: why one particular number gets its gradient, for a reader who sees it for the first time.

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

// the factor by which a use multiplies a number, if it does: "x[0, 1] = −0.5"
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
    body: `This page contains one run of a computation, with all its numbers. On the left are its steps, down to the last number, <b>L</b>: ${escaped(trace.last.name)} = ${text(trace.last.data[0])}.${isTrained(x) ? " L measures how wrong the result is, so smaller is better." : ""} We follow one number, ${bold(x, j)} = ${text(x.data[j])}, framed in orange, and ask: <b>if it changes a little, how much does L change?</b> ${named} Numbers are rounded. Point at a number to see all its digits.`,
  };
}

// operations that add up several numbers; any other with the slope 1 passes one on
const SUMS = new Set(["add", "subtract", "sum", "cumsum", "segment_sum", "scatter_add"]);

// why a number changes the result of its operation by this much, in the words of a school book
function reasonOf(p) {
  const factor = factorOf(p), { name } = operationOf(p.node), [from, i] = p.from;
  if (factor) return `, because it is multiplied by ${factor}`;
  if (p.node.terms?.includes(p.input.k)) {
    if (p.slope === 1 && !SUMS.has(name)) return `: ${escaped(name)} passes it on unchanged`;
    if (Math.abs(p.slope) === 1) return p.slope > 0 ? ": it is added once, unchanged" : ": it is subtracted once";
    return `, because it is multiplied by ${text(p.slope)}`;
  }
  const exponent = name === "power" && p.node.inputs.find((o) => "text" in o)?.text;
  if (Number(exponent) === 2) return `: the slope of x² is 2 x, here 2 · ${put(from.data[i])}`;
  if (name === "tanh") return `: the slope of tanh is 1 − tanh², here 1 − ${put(p.node.data[p.i])}²`;
  return `: this is the slope of ${escaped(name)} at this point`;
}

function forwardStop(path, n, x, j) {
  const p = path[n], from = bold(...p.from), to = bold(p.node, p.i), title = `Forward, ${n + 1} of ${path.length}: into ${escaped(nameOf(p.node, p.i))}`;
  const ways = p.ways > 1 ? ` It is used in ${p.ways} numbers, and we follow one of them, ${to}.` : "", factor = factorOf(p);
  if (n === 0) {
    const why = factor ? ` It is multiplied by ${factor}, so` : "";
    return { at: [p.node, p.i, false], title, body: `Here ${from} is used. Look at the terms on the left.${ways}${why} ${why ? "if" : "If"} it changes by 0.01, ${to} changes by ${put(p.slope)} · 0.01 = ${text(p.slope * 0.01)}. The factor ${text(p.slope)} is called the <b>slope</b>.` };
  }
  const product = path.slice(0, n + 1).reduce((s, q) => s * q.slope, 1);
  return { at: [p.node, p.i, false], title, body: `${from} is used in ${to}.${ways} The slope is ${text(p.slope)}${reasonOf(p)}. So if ${bold(x, j)} changes by one small unit, ${to} changes by ${path.slice(0, n + 1).map((q) => put(q.slope)).join(" · ")} = <b>${text(product)}</b> of that unit.` };
}

function turning(path, x, j) {
  const product = path.reduce((s, p) => s * p.slope, 1), moved = `if ${bold(x, j)} changes by one small unit, L changes by ${text(product)} of this unit`;
  const count = trace.nodes.filter((n) => isLeaf(n) && n.grad).reduce((s, n) => s + n.size, 0);
  const why = path.some((p) => p.ways > 1)
    ? `On this one path, ${moved}. But there are other paths to L, and ${count - 1} other numbers that need a gradient. It would take too long to multiply along every path`
    : `So ${moved}. This was one number, and it took ${path.length} slopes. There are ${count} such numbers here, and millions in a real network, and most of these slopes are the same for all of them`;
  return {
    at: [trace.last, 0, true],
    title: "Turn round and start from the end",
    body: `${why}. In the <b>backward</b> pass, each array gets its gradient, which tells for each number how much L changes when this number changes. All earlier steps use this gradient again. The backward pass begins with dL/dL = 1.`,
  };
}

function backwardStop(p, x, path) {
  const [from, i] = p.from, name = bold(from, i), g = p.node.grad[p.i];
  const title = `Backward to ${escaped(nameOf(from, i))}`;
  if (from === x) {
    const sumOf = p.ways > 1 ? `${name} is used in ${p.ways} numbers. Each contributes a term, and the terms are added` : `${name} is used only in ${bold(p.node, p.i)}`;
    const again = path.every((q) => q.ways === 1) ? " This is the product of the same slopes as in the forward pass, multiplied from the other end." : "";
    return { at: [from, i, true], title, body: `Here is the answer. ${sumOf}: <b>the gradient of that number · ${factorOf(p) ? "the factor by which this one is multiplied there" : "the slope"}</b>. dL/d ${name} = ${text(from.grad[i])}.${again}` };
  }
  const rest = p.ways > 1 ? ` It is used in ${p.ways} numbers, so all terms are added: ${text(from.grad[i])}.` : "";
  return { at: [from, i, true], title, body: `If ${name} changes by one small unit, ${bold(p.node, p.i)} changes by ${text(p.slope)} (the slope of the forward pass), and L changes by ${text(g)} times as much: ${put(g)} · ${put(p.slope)} = ${text(g * p.slope)}.${rest}` };
}

function ending(x, j) {
  const g = x.grad[j], measured = trace.walk?.[2];
  const check = typeof measured === "number" ? ` As a check, the whole computation was run again with this number a little larger and a little smaller. The measured gradient is ${digits(measured)}, and the gradient from the slopes is ${digits(g)}.` : "";
  const title = isTrained(x) ? `So ${escaped(nameOf(x, j))} should ${g > 0 ? "shrink" : g < 0 ? "grow" : "stay"}` : `L changes ${text(g)} times as much as ${escaped(nameOf(x, j))}`;
  return {
    at: [x, j, true],
    title,
    body: `dL/d ${bold(x, j)} = ${text(g)} is ${g > 0 ? "positive, so a larger value makes L larger" : g < 0 ? "negative, so a larger value makes L smaller" : "0, so a small change has no effect"}.${check}${isTrained(x) ? " Training takes a small step against the gradient." : ""} Now click any other number to see the terms from which it was computed.`,
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

// the default: the number with the largest gradient in the weight that is used first, or in an input
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

// whether the page still shows the number that the card explains
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
    ? `<h2>${all[at].title}</h2><p>${all[at].body}</p><footer><button data-walk="-1" ${at ? "" : "disabled"}>◀ back</button><button data-walk="1">${at + 1 < all.length ? "next ▶" : "look around"}</button><span class="quiet">${at + 1} of ${all.length}; ${keys}</span>${leave}</footer>`
    : `<h2>You left the path</h2><p>Look at as many numbers as you like.</p><footer><button data-walk="1">back to the path</button><span></span>${leave}</footer>`;
}
