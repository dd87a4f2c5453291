// From what an element is computed, and where it is used: the rows of the Jacobians (trace/patterns.py).

const span = (rows, i) => (rows.starts ? [rows.starts[i], rows.starts[i + 1]] : [i * rows.n, (i + 1) * rows.n]);

function column(rows, i, at) {
  if (rows.columns) return rows.columns[at];
  const k = at - i * rows.n;
  const first = rows.first === "i" ? i : rows.first[i];
  return first + (typeof rows.offset === "number" ? k * rows.offset : rows.offset[k]);
}

// The element of the other input that multiplies this one in a product: [node or null, element, value]
function partner(node, input, i, at) {
  const other = node.inputs.find((o) => o.k === input.rows.partner);
  if (!("node" in other)) return [null, 0, other.number];
  const source = trace.nodes[other.node];
  const j = column(other.rows, i, at);
  return [source, j, source.data[j]];
}

function slopeAt(node, input, i, at) {
  const r = input.rows;
  if ("slope" in r) return r.slope;
  if ("partner" in r) return partner(node, input, i, at)[2];
  if (r.row) return r.row[i];
  return r.same ? r.same[at - i * r.n] : r.slopes[at];
}

// [{input, source, j, slope, measured, at}]: all elements from which element i was computed directly
function parts(node, i) {
  const found = [];
  for (const input of node.inputs ?? []) {
    if (!input.rows) continue;
    const [start, end] = span(input.rows, i);
    for (let at = start; at < end; at++) {
      const j = column(input.rows, i, at);
      const wrong = input.rows.wrong?.find((w) => w[0] === i && w[1] === j);
      found.push({
        input, j, at, node, i, slope: slopeAt(node, input, i, at),
        source: "node" in input ? trace.nodes[input.node] : null,
        measured: wrong ? wrong[3] : input.rows.measured?.[at], wrong: Boolean(wrong),
      });
    }
    for (const [row, j, slope, measured] of input.rows.wrong ?? [])  // sources that the rule forgot
      if (row === i && !found.some((p) => p.input === input && p.j === j))
        found.push({ input, j, at: -1, node, i, slope, measured, wrong: true, source: "node" in input ? trace.nodes[input.node] : null });
  }
  return found;
}

const valueOf = (part) => (part.source ? part.source.data[part.j] : part.input.number);
const termOf = (part) => (part.slope === 0 ? 0 : part.slope * valueOf(part));
const isSummand = (node, part) => node.terms?.includes(part.input.k);

// the place of column j in row i, or -1
function placeOf(rows, i, j) {
  const [start, end] = span(rows, i);
  if (!rows.columns && typeof rows.offset === "number") {
    const first = rows.first === "i" ? i : rows.first[i];
    const k = end - start === 1 ? (j === first ? 0 : -1) : (j - first) / rows.offset;
    return Number.isInteger(k) && k >= 0 && k < end - start ? start + k : -1;
  }
  for (let at = start; at < end; at++) if (column(rows, i, at) === j) return at;
  return -1;
}

// [{node, i, slope, measured}]: all elements that are computed from x[j]; reshapes are skipped
function uses(x, j) {
  const found = [];
  for (const [node, input] of x.users) {
    for (let i = 0; i < node.size; i++) {
      const at = placeOf(input.rows, i, j);
      const wrong = input.rows.wrong?.find((w) => w[0] === i && w[1] === j);
      if (at < 0 && !wrong) continue;
      if (isHidden(node)) { found.push(...uses(node, i)); break; }
      found.push({
        node, i, input, at, slope: at < 0 ? 0 : slopeAt(node, input, i, at),
        measured: wrong ? wrong[3] : input.rows.measured?.[at], wrong: Boolean(wrong),
      });
    }
  }
  return found;
}

// the same number before it was reshaped or transposed
function origin(node, i) {
  while (node && isHidden(node)) {
    const input = node.inputs.find((o) => o.rows);
    i = column(input.rows, i, span(input.rows, i)[0]);
    node = trace.nodes[input.node];
  }
  return [node, i];
}

// A folded layer as one operation: {id of a node outside: Map(element → slope)} of one element, by
// the chain rule over the rows inside
function slopesThrough(group, node, i) {
  const inside = new Set(group.nodes);
  const slopes = new Map([[node.id, new Map([[i, 1]])]]);
  const outside = new Map();
  for (const id of [...group.nodes].reverse()) {
    const mine = slopes.get(id);
    if (!mine) continue;
    for (const [element, weight] of mine)
      for (const part of parts(trace.nodes[id], element)) {
        if (!part.source || part.slope === 0 || part.at < 0) continue;
        let [source, j] = [part.source, part.j];
        if (!inside.has(source.id)) [source, j] = origin(source, j);
        const into = inside.has(source.id) ? slopes : outside;
        if (!into.has(source.id)) into.set(source.id, new Map());
        const m = into.get(source.id);
        m.set(j, (m.get(j) ?? 0) + weight * part.slope);
      }
  }
  return outside;
}
