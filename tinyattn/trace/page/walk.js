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

function stops(x, j) {
  const path = mainPath(x, j), w = `<b>${escaped(nameOf(x, j))}</b>`, L = `<b>${escaped(trace.last.name)}</b>`;
  const value = text(x.data[j]), g = x.grad[j];
  const list = [{
    at: [trace.last, 0, false],
    title: `Should ${escaped(nameOf(x, j))} grow or shrink?`,
    body: `This page holds one run of a computation, each number of it. On the left are its steps, down to the last number, <b>L</b>: ${L} = ${text(trace.last.data[0])}. It says how wrong the result is; smaller is better. We follow one number, ${w} = ${value}, and ask: <b>if it moves a little, how far does L move?</b>`,
  }];
  path.forEach((p, n) => {
    const [from, at] = p.from, name = `<b>${escaped(nameOf(from, at))}</b>`, to = `<b>${escaped(nameOf(p.node, p.i))}</b>`;
    const ways = p.ways > 1 ? ` It goes into ${p.ways} numbers; we follow one of them, ${to}.` : "";
    list.push({
      at: [p.node, p.i, false],
      title: `Forward, ${n + 1} of ${path.length}: into ${escaped(nameOf(p.node, p.i))}`,
      body: n === 0
        ? `Here ${name} is used.${ways} Look at the terms on the left. If ${name} moves by 0.01, ${to} moves by ${text(p.slope)} · 0.01. The factor ${text(p.slope)} is called the <b>slope</b>.`
        : `${name} goes into ${to}.${p.ways > 1 ? ` (It goes into ${p.ways} numbers; we follow one.)` : ""} The slope is ${text(p.slope)}${path.length > 1 ? `, so ${w} moves ${to} by ${path.slice(0, n + 1).map((q) => put(q.slope)).join(" · ")} = ${text(path.slice(0, n + 1).reduce((s, q) => s * q.slope, 1))} times as much` : ""}.`,
    });
  });
  const along = path.reduce((s, p) => s * p.slope, 1);
  list.push({
    at: [trace.last, 0, true],
    title: "Turn round: the same from the end",
    body: `Along this one path L moves ${path.map((p) => put(p.slope)).join(" · ")} = ${text(along)} times as much as ${w}. But there are other paths, and other weights. So nobody multiplies path by path: going <b>backward</b>, each array keeps dL/d(it), how far L moves when it moves, and everything before it uses that again. It begins with dL/dL = 1.`,
  });
  [...path].reverse().forEach((p) => {
    const [from, at] = p.from;
    const isEnd = from === x, name = `<b>${escaped(nameOf(from, at))}</b>`;
    list.push({
      at: [from, at, true],
      title: `Backward to ${escaped(nameOf(from, at))}`,
      body: isEnd
        ? `Here is the answer. ${name} goes into ${p.ways} number${p.ways > 1 ? "s; each brings a part" : ""}: <b>dL/d of that · slope</b>. ${p.ways > 1 ? "The parts add up: " : ""}dL/d ${name} = ${text(g)}.`
        : `${p.ways > 1 ? `Each number that ${name} goes into brings a part, and the parts add up` : `${name} goes into ${escaped(nameOf(p.node, p.i))} only`}: dL/d of that · slope. The slope is the one that you saw on the way forward.`,
    });
  });
  const measured = trace.walk?.[2];
  list.push({
    at: [x, j, true],
    title: `So ${escaped(nameOf(x, j))} should ${g > 0 ? "shrink" : g < 0 ? "grow" : "stay"}`,
    body: `dL/d ${w} = ${text(g)} is ${g > 0 ? "positive: more of it makes L larger" : g < 0 ? "negative: more of it makes L smaller" : "0: nothing changes"}.${measured === undefined ? "" : ` To check, the whole computation was run again with this number a little larger and a little smaller: L moved ${text(measured)} times as much.`} Training takes a small step against the gradient. Now click any other number: its sum says in the same way where it came from.`,
  });
  return list;
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
