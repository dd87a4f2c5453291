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
  if (!path.length) return [opening(x, j)];
  const back = [...path].reverse().map((p) => backwardStop(p, x));
  return [opening(x, j), ...path.map((p, n) => forwardStop(path, n, x, j)), turning(path, x, j), ...back, ending(x, j)];
}

const opening = (x, j) => ({
  at: [trace.last, 0, false],
  title: `Should ${escaped(nameOf(x, j))} grow or shrink?`,
  body: `This page holds one run of a computation, with all its numbers. On the left are its steps, down to the last number, <b>L</b>: ${escaped(trace.last.name)} = ${text(trace.last.data[0])}. It says how wrong the result is; smaller is better. We follow one number, ${bold(x, j)} = ${text(x.data[j])} (rows and columns are counted from 0), and ask: <b>if it moves a little, how far does L move?</b>`,
});

function forwardStop(path, n, x, j) {
  const p = path[n], from = bold(...p.from), to = bold(p.node, p.i), title = `Forward, ${n + 1} of ${path.length}: into ${escaped(nameOf(p.node, p.i))}`;
  const ways = p.ways > 1 ? ` It goes into ${p.ways} numbers; we follow one, ${to}.` : "", factor = factorOf(p);
  if (n === 0) {
    const why = factor ? ` It is multiplied with ${factor}, so` : "";
    return { at: [p.node, p.i, false], title, body: `Here ${from} is used: look at the terms on the left.${ways}${why} ${why ? "if" : "If"} it moves by 0.01, ${to} moves by ${put(p.slope)} · 0.01 = ${text(p.slope * 0.01)}. The factor ${text(p.slope)} is called the <b>slope</b>.` };
  }
  const product = path.slice(0, n + 1).reduce((s, q) => s * q.slope, 1);
  const taken = p.node.terms?.includes(p.input.k) ? `: it stands ${text(p.slope)} times in the sum` : `: that is how steep ${escaped(operationOf(p.node).name)} is here`;
  const because = factor ? `, as it is multiplied with ${factor}` : taken;
  return { at: [p.node, p.i, false], title, body: `${from} goes into ${to}.${ways} The slope is ${text(p.slope)}${because}. So ${bold(x, j)} moves ${to} by ${path.slice(0, n + 1).map((q) => put(q.slope)).join(" · ")} = <b>${text(product)}</b> times as much as itself.` };
}

function turning(path, x, j) {
  const product = path.reduce((s, p) => s * p.slope, 1);
  return {
    at: [trace.last, 0, true],
    title: "Turn round: the same from the end",
    body: `On this one path L moves ${text(product)} times as much as ${bold(x, j)}. But there are other paths, and other weights. So nobody multiplies path by path. Going <b>backward</b>, each array gets dL/d(it), how far L moves when it moves, and everything before it uses that again. It begins with dL/dL = 1.`,
  };
}

function backwardStop(p, x) {
  const [from, i] = p.from, name = bold(from, i), g = p.node.grad[p.i];
  const title = `Backward to ${escaped(nameOf(from, i))}`;
  if (from === x) {
    const sumOf = p.ways > 1 ? `${name} goes into ${p.ways} numbers. Each brings a part, and the parts add up` : `${name} goes into ${bold(p.node, p.i)} only`;
    return { at: [from, i, true], title, body: `Here is the answer. ${sumOf}: <b>how far L moves with that number · what the weight is multiplied with there</b>${factorOf(p) ? "" : " (the slope)"}. dL/d ${name} = ${text(from.grad[i])}.` };
  }
  const rest = p.ways > 1 ? ` It goes into ${p.ways} numbers, so the parts of all are added: ${text(from.grad[i])}.` : "";
  return { at: [from, i, true], title, body: `If ${name} moves a little, ${bold(p.node, p.i)} moves ${text(p.slope)} times as much (the slope of the way forward), and L moves ${text(g)} times as much as that: ${put(g)} · ${put(p.slope)} = ${text(g * p.slope)}.${rest}` };
}

function ending(x, j) {
  const g = x.grad[j], measured = trace.walk?.[2];
  const check = typeof measured === "number" ? ` To check, the whole computation was run again with this number a little larger and a little smaller: L moved ${text(measured)} times as much.` : "";
  return {
    at: [x, j, true],
    title: `So ${escaped(nameOf(x, j))} should ${g > 0 ? "shrink" : g < 0 ? "grow" : "stay"}`,
    body: `dL/d ${bold(x, j)} = ${text(g)} is ${g > 0 ? "positive: more of it makes L larger" : g < 0 ? "negative: more of it makes L smaller" : "0: nothing changes"}.${check} Training takes a small step against the gradient. Now click any other number: its sum says in the same way where it came from.`,
  };
}

const put = (v) => (v < 0 ? `(${text(v)})` : text(v));

function startWalk() {
  const target = trace.walk ? [trace.nodes[trace.walk[0]], trace.walk[1]] : firstWeight();
  if (!target) return;
  state.folded.clear();
  state.walk = { stops: stops(...target), at: 0 };
  showStop();
}

// if nobody chose one: the weight with the largest gradient, of those used first
function firstWeight() {
  const node = trace.nodes.find((n) => n.kind === "parameter" && n.grad && n.size);
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

function walkBy(by) {
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
  const { stops: all, at } = state.walk, stop = all[at];
  card.innerHTML = `<h2>${stop.title}</h2><p>${stop.body}</p><footer><button data-walk="-1" ${at ? "" : "disabled"}>◀ back</button><button data-walk="1">${at + 1 < all.length ? "on ▶" : "look around"}</button><span class="quiet">${at + 1} of ${all.length}; the keys → and ← do the same</span><button data-walk="0">leave the walk</button></footer>`;
}
