// Arrays as heat tables. Small ones have a number in each cell; large ones are a map with the
// numbers around the chosen one beside it.

const MOST_COLUMNS = 9, MOST_ROWS = 12, BLOCK = 96;  // a map shows at most 96 x 96 cells at once

function colour(value, reach) {
  if (!Number.isFinite(value)) return "rgba(128,128,128,.25)";
  const share = reach ? 0.6 * Math.min(1, Math.abs(value) / reach) : 0;
  return `rgba(${value < 0 ? "213,94,0" : "0,114,178"},${share.toFixed(3)})`;
}

// the largest |value|, without a few outliers that are much larger than the others
function reachOf(values) {
  const sizes = Float32Array.from(values, Math.abs).filter(Number.isFinite).sort();
  if (!sizes.length) return 0;
  const most = sizes.at(-1), usual = sizes[Math.floor(0.98 * (sizes.length - 1))];
  return sizes.length > 50 && most > 4 * usual && usual > 0 ? usual : most;
}

// {node, grad: show its gradient, marks: Map(element → slope), values: numbers to show instead, lead: text before the name}
function arrayBox({ node, grad, marks, values, lead = "" }) {
  const box = element("div", `array${node === now().node ? " this" : ""}`);
  values ??= grad ? node.grad : node.data;
  const said = { parameter: "parameter", given: "given", constant: "constant" }[node.kind] ?? "";
  const before = lead || (grad ? "dL/d " : "");
  box.append(element("div", "name", `${before}<button class="link" title="${escaped(node.name)}" data-node="${node.id}" data-i="${state.chosen.get(node.id) ?? 0}">${escaped(node.name)}</button> <small>${shapeOf(node)}</small> <span class="quiet">${said}</span>`));
  if (!values) {
    box.append(element("div", "quiet", "its gradient was not needed"));
    return box;
  }
  if (!node.size) {
    box.append(element("div", "quiet", "no elements"));
    return box;
  }
  const rows = node.shape.at(-2) ?? 1, columns = node.shape.at(-1) ?? 1, slice = rows * columns;
  const at = focusOf(node, marks);
  const k = state.slices.get(node.id) ?? Math.floor(at / slice);
  if (node.size > slice) box.append(slicePicker(node, k, node.size / slice, slice));
  const view = { node, values, marks, rows, columns, start: k * slice, reach: reachOf(values), blank: !lead && !isKnown(node, grad), at };
  if (columns <= MOST_COLUMNS && rows <= MOST_ROWS) box.append(cells(view, 0, 0, rows, columns));
  else box.append(map(view));
  return box;
}

// the element around which the numbers are shown: the chosen one, or the one with the largest slope
function focusOf(node, marks) {
  if (node === now().node) return chosen();
  let best = -1, most = -1;
  for (const [i, slope] of marks ?? []) if (Math.abs(slope) > most) [best, most] = [i, Math.abs(slope)];
  return best >= 0 ? best : (state.chosen.get(node.id) ?? 0);
}

function isKnown(node, grad) {
  const { node: current, backward } = now();
  if (!grad) return node.kind !== "result" || backward || node.place <= current.place;
  if (!backward) return true;
  const step = stepOf(origin(node, 0)[0], true);
  return step < 0 || step <= state.at;
}

function slicePicker(node, k, count, slice) {
  const lead = indexOf(node, k * slice).slice(0, -2).join(", ");
  const picker = element("div", "pick", `[${lead}, :, :] <button aria-label="previous slice">◂</button> <button aria-label="next slice">▸</button>`);
  const turn = (by) => { state.slices.set(node.id, (k + count + by) % count); draw(false); };
  const [before, after] = picker.querySelectorAll("button");
  before.onclick = () => turn(-1);
  after.onclick = () => turn(1);
  return picker;
}

function cells(view, r0, c0, rows, columns) {
  const { node, values, marks, start, reach, blank } = view;
  const isThis = node === now().node;
  const table = element("table", `cells${blank ? " blank" : ""}${columns > 6 ? " narrow" : ""}`);
  table.setAttribute("role", "grid");
  table.setAttribute("aria-label", `${node.name}, ${shapeOf(node)}`);
  const cut = rows < view.rows || columns < view.columns;  // then rows and columns have numbers
  const words = trace.labels ?? [], byRow = node.shape.length > 1 && words.length === view.rows;
  const byColumn = byRow && words.length === view.columns;
  const name = (named, at) => escaped(named ? words[at] : cut ? at : "");
  const lines = [];
  if (cut || byColumn)
    lines.push(`<tr><th></th>${Array.from({ length: columns }, (_, c) => `<th>${name(byColumn, c0 + c)}</th>`).join("")}</tr>`);
  for (let r = r0; r < r0 + rows; r++) {
    const head = cut || byRow ? `<th>${name(byRow, r)}</th>` : "";
    const line = [];
    for (let c = c0; c < c0 + columns; c++) {
      const i = start + r * view.columns + c, value = values[i];
      const part = marks?.has(i) ? (marks.get(i) === 0 ? "zero" : "part") : "";
      const mine = isThis && i === chosen(), followed = state.walk?.path.get(node.id) === i ? " followed" : "";
      const said = `${nameOf(node, i)} = ${blank ? "not computed yet" : value}`;
      line.push(`<td role="gridcell" data-i="${i}" data-node="${node.id}" class="${part}${mine ? " chosen" : ""}${followed}" ${mine || (!isThis && i === view.at) ? 'tabindex="0"' : 'tabindex="-1"'} title="${escaped(said)}" aria-label="${escaped(said)}" style="background:${colour(value, reach)}">${blank ? "·" : text(value)}</td>`);
    }
    lines.push(`<tr>${head}${line.join("")}</tr>`);
  }
  table.innerHTML = lines.join("");
  return table;
}

function map(view) {
  const { node, values, marks, rows, columns, start, reach, blank } = view;
  const inside = view.at >= start && view.at < start + rows * columns ? view.at - start : 0;
  const [r, c] = [Math.floor(inside / columns), inside % columns];
  const r0 = BLOCK * Math.floor(r / BLOCK), c0 = BLOCK * Math.floor(c / BLOCK);
  const height = Math.min(BLOCK, rows - r0), width = Math.min(BLOCK, columns - c0);
  const size = Math.max(3, Math.min(14, Math.floor(250 / Math.max(height, width / 1.4))));
  const canvas = element("canvas");
  Object.assign(canvas, { width: width * size, height: height * size });
  const pen = canvas.getContext("2d");
  const each = (draw) => {
    for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) draw(start + (r0 + y) * columns + c0 + x, x * size, y * size);
  };
  if (!blank) each((i, x, y) => { pen.fillStyle = colour(values[i], reach); pen.fillRect(x, y, size, size); });
  pen.strokeStyle = "#1F2328";
  if (marks) each((i, x, y) => { if (marks.get(i)) pen.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1); });
  pen.lineWidth = 2;
  if (node === now().node) pen.strokeRect((c - c0) * size - 1, (r - r0) * size - 1, size + 2, size + 2);
  const under = (event) => {
    const y = Math.floor(event.offsetY / size), x = Math.floor(event.offsetX / size);
    return y < height && x < width && y >= 0 && x >= 0 ? start + (r0 + y) * columns + c0 + x : null;
  };
  canvas.onmousemove = (event) => {
    const i = under(event);
    canvas.title = i === null ? "" : `${nameOf(node, i)} = ${blank ? "not computed yet" : values[i]}`;
  };
  canvas.onclick = (event) => { const i = under(event); if (i !== null) choose(node, i); };
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${node.name} ${shapeOf(node)} as a heat map. The numbers around ${nameOf(node, view.at)} are below.`);
  const box = element("div", "map");
  box.append(canvas);
  if (r0 + c0 > 0 || height < rows || width < columns) box.append(element("div", "pick", `rows ${r0} to ${r0 + height - 1}, columns ${c0} to ${c0 + width - 1} of ${shapeOf(node)}`));
  const around = (at, count, all) => Math.max(0, Math.min(at - Math.floor(count / 2), all - count));
  const nr = Math.min(3, rows), nc = Math.min(5, columns);
  box.append(cells(view, around(r, nr, rows), around(c, nc, columns), nr, nc));
  return box;
}

const legend = () => `<span>−<i class="scale" style="margin:0 5px"></i>+</span>
<span><i style="box-shadow:0 0 0 3px var(--ink)"></i>chosen</span>
<span><i style="box-shadow:0 0 0 1.5px var(--ink)"></i>connected</span>
<span><i style="outline:2px dashed var(--edge)"></i>with slope 0</span>`;
