// All steps as a graph from top to bottom: layers are frames that can be folded into one box.

const ROW = 46, BOX = 28, INDENT = 14, LANE = 11, LEFT = 4;

// an array with a gradient that no step computed, such as a parameter
const isLeaf = (node) => node.kind !== "result" && Boolean(node.grad);

function overviewRows() {
  const rows = [], opened = new Set();
  for (const node of trace.results) {
    if (isHidden(node)) continue;
    let depth = 0, folded = null;
    for (const group of node.path) {
      if (!opened.has(group.id)) {
        opened.add(group.id);
        rows.push({ group, depth, folded: state.folded.has(group.id) });
      }
      if (state.folded.has(group.id)) { folded = group; break; }
      depth += 1;
    }
    if (!folded) rows.push({ node, depth });
  }
  return rows;
}

function drawOverview() {
  const rows = overviewRows(), { node: current, backward } = now();
  const graph = element("div");
  graph.id = "graph";
  const rowOf = new Map();  // node id → row that shows it
  rows.forEach((row, r) => {
    if (row.node) rowOf.set(row.node.id, r);
    else if (row.folded) row.group.nodes.forEach((id) => rowOf.set(id, r));
  });
  const { paths, lanes } = edges(rows, rowOf);
  const width = Math.max(60, $("nav").clientWidth - 32 - lanes * LANE);  // 0 while it is not on the page
  rows.forEach((row, r) => graph.append(overviewBox(row, r, width, current, backward)));
  graph.style.height = `${rows.length * ROW}px`;
  const nav = $("nav"), scrolled = nav.scrollTop;
  nav.replaceChildren(graph, leaves(current));
  const ends = [...graph.querySelectorAll("button")].map((b) => b.offsetLeft + b.offsetWidth);
  graph.insertAdjacentHTML("afterbegin", frames(rows, width) + drawnEdges(rows, paths, width, ends));
  nav.scrollTop = scrolled;
  reveal(nav.querySelector(".now"), nav);
}

function overviewBox({ node, group, depth, folded }, r, width, current, backward) {
  const button = element("button");
  const left = LEFT + depth * INDENT;
  Object.assign(button.style, { left: `${left}px`, top: `${r * ROW}px` });
  if (group) {
    const inside = group.shown.includes(current);
    button.className = folded ? `folded${inside ? " now" : ""}` : "frame";
    button.innerHTML = `${folded ? "▸" : "▾"} ${escaped(group.label)} <small>${group.shown.length} steps</small>`;
    button.setAttribute("aria-expanded", String(!folded));
    button.dataset.group = group.id;
  } else {
    const operation = trace.operations[node.operation].name;
    const weights = node.inputs.filter((o) => "node" in o && isLeaf(trace.nodes[o.node]));
    const later = !backward && node.place > current.place;
    button.className = [weights.length ? "weights" : "", node === current ? "now" : later ? "later" : ""].join(" ");
    button.innerHTML = `${escaped(node.name)}${node.name.startsWith(operation) ? "" : ` <small>${escaped(operation)}</small>`}`;
    button.title = `${node.name} by ${operation}${weights.map((o) => `, ${trace.nodes[o.node].name}`).join("")}`;
    button.dataset.step = node.id;
  }
  button.style.maxWidth = `${width - left}px`;
  if (group && !folded) button.style.width = `${width - left}px`;
  else button.style.minWidth = `${Math.min(96, width - left)}px`;
  return button;
}

// Edges between rows. The next row is reached straight, others by a lane on the right.
function edges(rows, rowOf) {
  const wanted = new Map();
  for (const target of trace.results) {
    if (isHidden(target)) continue;
    const to = rowOf.get(target.id);
    for (const input of target.inputs) {
      if (!("node" in input) || !input.rows) continue;
      const [source] = origin(trace.nodes[input.node], 0);
      const from = rowOf.get(source.id);
      if (from !== undefined && to !== undefined && from < to) wanted.set(`${from} ${to}`, { from, to, source, target });
    }
  }
  const ends = [];  // of each lane: the row up to which it is taken
  const paths = [...wanted.values()].sort((a, b) => a.from - b.from || a.to - b.to);
  for (const path of paths) {
    const between = rows.slice(path.from + 1, path.to);
    path.straight = between.every((row) => row.group && !row.folded);
    if (path.straight) continue;
    path.lane = ends.findIndex((end) => end <= path.from);
    if (path.lane < 0) path.lane = ends.length < 8 ? ends.length : 7;
    ends[path.lane] = path.to;
  }
  return { paths, lanes: ends.length };
}

// ends: the right end of each box
function drawnEdges(rows, paths, width, ends) {
  const { node } = now();
  const left = (r) => LEFT + rows[r].depth * INDENT;
  const drawn = paths.map(({ from, to, straight, lane, source, target }) => {
    const near = source === node || target === node;
    const stroke = near ? "var(--accent)" : "#808C97", wide = near ? 3 : 2;
    const y = to * ROW;
    if (straight) {
      const x = Math.max(left(from), left(to)) + 30, y0 = from * ROW + BOX;
      return line(`M${x} ${y0}V${y - 7}`, `M${x - 4} ${y - 8}h8l-4 8z`, stroke, wide) +
        `<text x="${x + 9}" y="${y - 5}" font-size="13" fill="#5F6B76" font-family="monospace">${shapeOf(source)}</text>`;
    }
    const x = width + 6 + lane * LANE, x1 = ends[to], y0 = from * ROW + BOX - 8, y1 = y + 8;
    return line(`M${ends[from]} ${y0}H${x - 6}q6 0 6 6V${y1 - 6}q0 6 -6 6H${x1 + 7}`, `M${x1 + 8} ${y1 - 4}v8l-8 -4z`, stroke, wide);
  });
  return `<svg width="1" height="1" aria-hidden="true">${drawn.join("")}</svg>`;
}

const line = (path, head, stroke, width) =>
  `<path d="${path}" fill="none" stroke="${stroke}" stroke-width="${width}"/><path d="${head}" fill="${stroke}"/>`;

function frames(rows, width) {
  const drawn = [];
  rows.forEach((row, r) => {
    if (!row.group || row.folded) return;
    let end = r;
    while (end + 1 < rows.length && rows[end + 1].depth > row.depth) end += 1;
    const x = LEFT + row.depth * INDENT - 3;
    drawn.push(`<rect x="${x}" y="${r * ROW}" width="${width - x + 3}" height="${(end - r) * ROW + BOX + 6}" rx="8" fill="#FAFBFC" stroke="#C9D0D6" stroke-width="1.5"/>`);
  });
  return `<svg width="1" height="1" aria-hidden="true">${drawn.join("")}</svg>`;
}

function leaves(current) {
  const list = element("div");
  list.id = "leaves";
  const learned = trace.nodes.filter((n) => n.kind !== "result" && n.grad);
  if (!learned.length) return list;
  list.append(element("h2", "", "given and learned"));
  for (const node of learned) {
    const button = element("button", node === current ? "now" : "", `${escaped(node.name)} <small>${shapeOf(node)}</small>`);
    button.dataset.step = node.id;
    button.title = node.name;
    list.append(button);
  }
  return list;
}
