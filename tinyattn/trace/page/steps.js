// The order of the steps, which of them are shown, and which number is chosen.

const state = {
  at: 0, chosen: new Map(), history: [], folded: new Set(), moves: false, gradients: null,
  opened: new Set(), slices: new Map(), walk: null,
};
let steps = [];   // [{node, backward}]: first all results, then each array when its gradient is complete
let groups = [];  // layers and functions with those of their nodes that are shown

const isHidden = (node) => node.through && !state.moves && node !== trace.last;
const now = () => steps[state.at];
const chosen = () => state.chosen.get(now().node.id) ?? 0;

function order() {
  steps = trace.results.filter((n) => !isHidden(n)).map((node) => ({ node, backward: false }));
  const waiting = new Map(trace.nodes.map((n) => [n.id, new Set(n.users.filter(([t]) => t.grad).map(([t]) => t.id)).size]));
  const complete = (node) => { if (node.grad && !isHidden(node)) steps.push({ node, backward: true }); };
  for (const node of [...trace.results].reverse()) {
    if (!node.grad) continue;
    complete(node);
    for (const id of new Set((node.inputs ?? []).filter((o) => "node" in o && o.rows).map((o) => o.node))) {
      waiting.set(id, waiting.get(id) - 1);
      if (waiting.get(id) === 0 && trace.nodes[id].kind !== "result") complete(trace.nodes[id]);
    }
  }
  const seen = new Set();
  groups = [];
  trace.groups.forEach((group, id) => {
    const shown = group.nodes.map((n) => trace.nodes[n]).filter((n) => !isHidden(n));
    const key = shown.map((n) => n.id).join();
    if (shown.length > 1 && shown.length < steps.filter((s) => !s.backward).length && !seen.has(key))
      groups.push({ ...group, id, shown });
    seen.add(key);
  });
  for (const node of trace.nodes) node.path = groups.filter((g) => g.shown.includes(node));
}

const foldOf = (node) => node.path.find((g) => state.folded.has(g.id));
const standsFor = (node) => { const g = foldOf(node); return !g || g.shown.at(-1) === node; };

function visible(at, direction) {
  while (at >= 0 && at < steps.length) {
    if (standsFor(steps[at].node)) return at;
    at += direction;
  }
  return null;
}

const stepOf = (node, backward) => steps.findIndex((s) => s.node === node && s.backward === backward);

// ---- moving

function go(at, i) {
  if (at === null || at < 0 || at >= steps.length) return;
  const from = now();
  state.at = at;
  const { node } = now();
  if (i !== undefined) state.chosen.set(node.id, i);
  else if (from.node !== node && !follow(node, now().backward) && !state.chosen.has(node.id)) state.chosen.set(node.id, 0);
  draw();
}

// The next number is on the path of the number before, if there is a path.
function follow(node, backward) {
  let best = null;
  if (backward) {
    for (const [user, input] of node.users) {
      for (const part of reached(user)) {
        const size = Math.abs(part.slope);
        if (part.source === node && part.input.k === input.k && (!best || size > best[0])) best = [size, part.j];
      }
    }
  } else {
    for (const input of node.inputs ?? []) {
      if (!("node" in input) || !input.rows) continue;
      const [source, j] = chosenBelow(trace.nodes[input.node]);
      if (!source) continue;
      for (let i = 0; i < node.size; i++) {
        const at = placeOf(input.rows, i, j);
        if (at < 0) continue;
        const size = Math.abs(slopeAt(node, input, i, at));
        if (!best || size > best[0]) best = [size, i];
      }
    }
  }
  if (best) state.chosen.set(node.id, best[1]);
  return best !== null;
}

// the parts of the chosen element of a user, or of what a reshape makes of it
function reached(user) {
  if (!isHidden(user)) return state.chosen.has(user.id) ? parts(user, state.chosen.get(user.id)) : [];
  return user.users.flatMap(([next]) => reached(next))
    .filter((p) => p.source === user)
    .flatMap((p) => parts(user, p.j).map((q) => ({ ...q, slope: p.slope })));
}

function chosenBelow(node) {
  if (state.chosen.has(node.id)) return [node, state.chosen.get(node.id)];
  if (!isHidden(node)) return [null, 0];
  const input = node.inputs.find((o) => o.rows);
  const [below, j] = chosenBelow(trace.nodes[input.node]);
  if (!below) return [null, 0];
  for (let i = 0; i < node.size; i++) if (placeOf(input.rows, i, j) >= 0) return [node, i];
  return [null, 0];
}

// a click on a number chooses it, and the paths through other numbers are forgotten
function choose(node, i) {
  state.history.push([state.at, new Map(state.chosen)]);
  [node, i] = origin(node, i);
  const group = foldOf(node);
  if (group && !standsFor(node)) node.path.forEach((g) => state.folded.delete(g.id));
  if (node !== now().node) {
    let at = stepOf(node, now().backward);
    if (at < 0) at = stepOf(node, true);
    if (at < 0) { aside(node, i); return; }
    state.at = at;
  } else state.chosen.clear();
  state.chosen.set(node.id, i);
  draw();
}

// an array without a step of its own, such as an input that requires no gradient
function aside(node, i) {
  state.history.pop();
  const said = { given: "was given", constant: "is a constant", parameter: "is a parameter" }[node.kind];
  $("#sum").prepend(element("p", "quiet", `${escaped(nameOf(node, i))} = ${text(node.data[i])} ${said}: this number was not computed from others, and its gradient was not needed.`));
}

function back() {
  const before = state.history.pop();
  if (!before) return;
  [state.at, state.chosen] = before;
  draw();
}

function move(by) {
  const { node } = now();
  const i = chosen() + by;
  if (i < 0 || i >= node.size) return;
  state.chosen.clear();
  state.chosen.set(node.id, i);
  draw();
}

// ---- folding

function fold(group) {
  if (state.folded.has(group.id)) state.folded.delete(group.id);
  else state.folded.add(group.id);
  settle();
}

function foldAll() {
  if (state.folded.size) state.folded.clear();
  else groups.forEach((g) => state.folded.add(g.id));
  settle();
}

// after folding, the step that stands for a layer is its last one
function settle() {
  const { node, backward } = now();
  const group = foldOf(node);
  if (group && !standsFor(node)) state.at = Math.max(0, stepOf(group.shown.at(-1), backward));
  draw();
}

function foldHere() {
  const { node } = now();
  const group = foldOf(node) ?? node.path.at(-1);
  if (group) fold(group);
}

function toggleMoves() {
  const { node, backward } = now();
  state.moves = !state.moves;
  order();
  const at = stepOf(node, backward);
  state.at = at >= 0 ? at : 0;
  $("#range").max = steps.length - 1;
  settle();
}

function otherSide() {
  const at = stepOf(now().node, !now().backward);
  if (at >= 0) go(at, chosen());
}
