// Everything together: drawing a step, keys, clicks, the start.

function draw(turned = true) {
  if (turned) state.slices.clear();
  const { node, backward } = now(), i = chosen(), group = foldOf(node);
  document.body.className = (backward ? "backward" : "forward") + (state.walk ? " walking" : "");
  const half = steps.filter((s) => !s.backward).length;
  $("#range").value = state.at;
  $("#phase").textContent = backward ? `backward ${state.at - half + 1} of ${steps.length - half}` : `forward ${state.at + 1} of ${half}`;
  $("#what").textContent = (state.gradients ?? backward) ? "gradients" : "values";
  $("#walk-on").hidden = Boolean(state.walk) || !walkTarget();
  const focused = document.activeElement?.closest("#arrays, #sum, nav");  // is drawn again
  drawOverview();
  drawWhere(node);
  const lead = backward ? came(node, i) : group ? folded(group, node, i, slopesThrough(group, node, i)) : made(node, i);
  $("#sum").innerHTML = lead + (group && !backward ? "" : source(node, backward)) + (backward || !node.grad ? "" : `<p class="quiet">dL/d ${escaped(nameOf(node, i))} = ${text(node.grad[i])}; press space to see how it was computed</p>`);
  fitTables();
  drawArrays();
  drawCard();
  showChosen();
  if (focused) (focused.tagName === "NAV" ? $("nav .now") : $(".array.this td.chosen"))?.focus({ preventScroll: true });
}

// the chosen number, or at the first stop of a walk the number that the walk explains
function showChosen() {
  const opening = state.walk?.at === 0 && $(".array:not(.this) td.followed");
  const cell = opening || $(".array.this td.chosen");
  for (const what of [cell?.closest(".array"), cell]) reveal(what, $("#arrays .flow"));
}

// a table that is too wide has the names of a row on a line of their own
function fitTables() {
  const room = $("#sum").clientWidth - 8;  // without its padding
  for (const table of document.querySelectorAll("#sum table")) {
    table.classList.remove("in-two-lines");
    table.classList.toggle("in-two-lines", table.offsetWidth > room);
  }
}

function drawWhere(node) {
  const layers = node.path.map((g) => escaped(g.label)).join(" › ");
  const line = (found, said, className) => (found ? `<div class="${className}">${said} ${found[1]} <code>${escaped(found[2].replace(/\s+# .*/, ""))}</code></div>` : "");
  const inner = node.inner && (!node.line || node.inner[2] !== node.line[2]) && node.path.length ? node.inner : null;
  $("#where").innerHTML = (layers ? `<div>${layers}</div>` : "") + line(node.line, `${node.line?.[0] === "cell" ? "" : escaped(node.line?.[0] ?? "")} line`, "") + line(inner, `${escaped(inner?.[0] ?? "")} line`, "inner");
}

// ---- keys

const KEYS = {
  ArrowRight: () => go(visible(state.at + 1, 1)), PageDown: () => go(visible(state.at + 1, 1)),
  ArrowLeft: () => go(visible(state.at - 1, -1)), PageUp: () => go(visible(state.at - 1, -1)),
  ArrowDown: () => move(now().node.shape.at(-1) ?? 1), ArrowUp: () => move(-(now().node.shape.at(-1) ?? 1)),
  Home: () => go(visible(0, 1)), End: () => go(visible(steps.length - 1, -1)),
  " ": otherSide, v: showOther, f: foldHere, F: foldAll, r: toggleMoves, w: () => (state.walk ? leaveWalk() : startWalk()), Backspace: back,
  "?": () => $("#help").showModal(),
};

function showOther() {
  state.gradients = state.gradients === null ? !now().backward : null;
  draw();
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("#help").open) return;
  const { target, key } = event;
  if (parent !== window && ["PageDown", "PageUp"].includes(key)) {  // for a deck
    if (target.matches("input")) event.preventDefault();
    return parent.postMessage({ page: key }, "*");
  }
  const isControl = target.matches("button, summary, input");
  if (isControl && (key === " " || key === "Enter")) return;  // it presses the button
  if (target.matches("td") && (key === "Enter" || key === " ")) { event.preventDefault(); pick(target); return; }
  if (target.matches("input") && key.startsWith("Arrow")) return;
  let act = KEYS[key];
  if (event.shiftKey && key === "ArrowRight") act = () => move(1);
  else if (event.shiftKey && key === "ArrowLeft") act = () => move(-1);
  else if (state.walk && key === "ArrowRight") act = () => walkBy(1);
  else if (state.walk && key === "ArrowLeft") act = () => walkBy(-1);
  else if (key === "Escape") act = leave;
  if (!act) return;
  event.preventDefault();
  act();
});

// the keys belong to the deck or the notebook again
function leave() {
  parent.postMessage("leave", "*");
  parent.focus();
}

// ---- clicks

const pick = (cell) => choose(trace.nodes[cell.dataset.node], Number(cell.dataset.i));

addEventListener("click", (event) => {
  const at = (attribute) => event.target.closest(`[data-${attribute}]`)?.dataset[attribute];
  const cell = event.target.closest("td[data-i], button.link");
  if (cell) pick(cell);
  else if (at("group") !== undefined) fold(groups.find((g) => g.id === Number(at("group"))));
  else if (at("step") !== undefined) openStep(trace.nodes[at("step")]);
  else if (at("walk") !== undefined) Number(at("walk")) ? walkBy(Number(at("walk"))) : leaveWalk();
});

function openStep(node) {
  let at = stepOf(node, now().backward);
  if (at < 0) at = stepOf(node, true);
  go(at);
}

addEventListener("toggle", (event) => {
  const { key } = event.target.dataset ?? {};
  if (key) state.opened[event.target.open ? "add" : "delete"](key);
  fitTables();
}, true);

for (const change of ["focus", "blur"]) addEventListener(change, drawCard);
$("#first").onclick = KEYS.Home;
$("#next").onclick = () => (state.walk ? walkBy(1) : KEYS.ArrowRight());
$("#previous").onclick = () => (state.walk ? walkBy(-1) : KEYS.ArrowLeft());
$("#what").onclick = showOther;
$("#back").onclick = back;
$("#walk-on").onclick = startWalk;
$("#keys").onclick = KEYS["?"];
$("#help button").onclick = () => $("#help").close();
new ResizeObserver(() => { if (steps.length) { drawOverview(); fitTables(); showChosen(); } }).observe($("header"));  // a slide that appears
$("#range").oninput = (event) => go(visible(Number(event.target.value), 1));

// ---- start

// the number chosen with trace.start, at which the page opens
function openAt(node, i, backward) {
  [node, i] = origin(node, i);
  state.at = Math.max(0, stepOf(node, backward));
  state.chosen.set(node.id, i);
  node.path.forEach((g) => state.folded.delete(g.id));
  draw();
}

function start() {
  read();
  order();
  $("h1").textContent = trace.title;
  document.title = trace.title;
  $("#range").max = steps.length - 1;
  groups.filter((g) => g.closed || trace.results.length > 30).forEach((g) => state.folded.add(g.id));
  if (trace.walk) startWalk();
  else if (trace.start) openAt(trace.nodes[trace.start[0]], trace.start[1], trace.start[2]);
  else { state.at = visible(0, 1); state.chosen.set(now().node.id, 0); draw(); }
  document.body.dataset.ready = "yes";
}

start();
