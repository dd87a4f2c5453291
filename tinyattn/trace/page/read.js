// From the packed text in the page to arrays. Every other file only reads `trace`.

const $ = (selector) => document.querySelector(selector);
const trace = {};

// {"$": [kind, place, size]} stands for an array, {"$": "inf"} for a number JSON does not know
function filled(value, block) {
  if (Array.isArray(value)) return value.map((v) => filled(v, block));
  if (!value || typeof value !== "object") return value;
  if ("$" in value) {
    if (typeof value.$ === "string") return { inf: Infinity, "-inf": -Infinity }[value.$] ?? NaN;
    const [kind, place, size] = value.$;
    return new (kind === "f" ? Float32Array : Int32Array)(block, place, size);
  }
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, filled(v, block)]));
}

function read() {
  Object.assign(trace, filled(JSON.parse(words("#head")), unpacked("#numbers").buffer));
  trace.operations = Object.values(trace.operations);
  trace.nodes.forEach((node, id) => Object.assign(node, { id, users: [], size: node.data.length }));
  for (const node of trace.nodes)
    for (const input of node.inputs ?? [])
      if ("node" in input && input.rows) trace.nodes[input.node].users.push([node, input]);
  trace.results = trace.nodes.filter((node) => node.kind === "result");
  trace.results.forEach((node, place) => { node.place = place; });
  trace.last = trace.nodes[trace.loss];
}

// ---- numbers, indices, HTML

function text(value) {
  if (value === undefined || value === null) return "";
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  let s;
  if (Number.isInteger(value) && size < 1e5) s = String(value);
  else if (size >= 1e5 || size < 5e-4) s = value.toExponential(1).replace("e+", "e");
  else s = size >= 1000 ? value.toFixed(0) : size >= 100 ? value.toFixed(1) : size >= 9.995 ? value.toFixed(2) : value.toFixed(3);
  return s.replaceAll("-", "−");
}

function indexOf(node, i) {
  const index = [];
  for (let axis = node.shape.length - 1; axis >= 0; axis--) {
    index.unshift(i % node.shape[axis]);
    i = Math.floor(i / node.shape[axis]);
  }
  return index;
}

const nameOf = (node, i) => (node.shape.length ? `${node.name}[${indexOf(node, i).join(", ")}]` : node.name);
const shapeOf = (node) => (node.shape.length ? `[${node.shape.join(", ")}]` : "number");
const escaped = (s) => String(s).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

// in a sum a long name of a parameter is cut at the front: …out_proj.weight[3, 1]
function link(node, i) {
  const name = nameOf(node, i), ends = name.split(".");
  const shown = name.length > 24 && ends.length > 2 ? `…${ends.slice(-2).join(".")}` : name;
  return `<button class="link" title="${escaped(name)}" data-node="${node.id}" data-i="${i}">${escaped(shown)}</button>`;
}

// Scroll a box until an element in it is seen. `scrollIntoView` would move the notebook around it, too.
function reveal(e, box) {
  if (!e) return;
  const inner = e.getBoundingClientRect(), outer = box.getBoundingClientRect(), edge = 6;
  const by = (first, last, low, high) => (first < low + edge ? first - low - edge : Math.max(0, Math.min(first - low - edge, last - high + edge)));
  box.scrollTop += by(inner.top, inner.bottom, outer.top, outer.top + box.clientHeight);
  box.scrollLeft += by(inner.left, inner.right, outer.left, outer.left + box.clientWidth);
}

function element(tag, className, html) {
  const e = document.createElement(tag);
  if (className) e.className = className;
  if (html !== undefined) e.innerHTML = html;
  return e;
}
