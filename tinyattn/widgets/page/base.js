"use strict";
// What all widgets share: sliders, a pen that draws SVG, the mouse and the keys.
//
// A widget is WIDGET = {controls, values(state), draw(pen, values, state), said(values, state)} and
// perhaps functions that change the state: point(x, y) for a press or a drag at this position,
// over(mark) for the mark under the pointer, and key(key) for a key while the picture has the focus.
// hint: what to do with the picture; inside(x, y): whether a drag may begin there; split: the x at
// which a narrow page divides the picture, to show the right part below the left one. A control's
// off(state) tells whether it has no effect now.

const DATA = JSON.parse(document.querySelector("#data").textContent);
const $ = (selector) => document.querySelector(selector);
const BLUE = "#0072B2", VERMILLION = "#D55E00", GREEN = "#009E73", PURPLE = "#C0609A", SLATE = "#46525E";
const QUIET = "#5F6B76", HAIRLINE = "#C9D0D6", INK = "#1F2328";
const OBJECTS = ["#0F7C80", "#8A6BBE", "#B5651D", "#3C6E47", "#A23B72", "#46525E"];

const state = {};

// A narrow page, such as a phone, shows a picture half as wide, so that its words are readable. A
// widget with `split` draws the whole picture, and the others draw in the width `room()`.
const WIDE = 960, HIGH = $("svg").viewBox.baseVal.height;
const narrow = () => innerWidth < 640;
const room = () => (narrow() ? WIDE / 2 : WIDE);
const split = () => (narrow() && WIDGET.split) || null;

function text(value) {
  if (!Number.isFinite(value)) return value > 0 ? "∞" : value < 0 ? "−∞" : "nan";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e5)) {
    const [factor, exponent] = value.toExponential(1).split("e");
    return `${factor.replace("-", "−")}·${power(Number(exponent))}`;
  }
  const s = size >= 100 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : value.toFixed(size < 1 ? 3 : 2);
  return s.replace("-", "−").replace(/\B(?=(\d{3})+$)/, ",");
}

const power = (exponent) => `10${[...String(exponent)].map((c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] ?? "⁻").join("")}`;

// round numbers between low and high, with their texts
function ticks(low, high) {
  const part = (high - low) / 5 || 1, unit = 10 ** Math.floor(Math.log10(part));
  const step = unit * [1, 2, 5, 10].find((n) => n * unit > 0.999 * part);
  const first = Math.ceil(low / step - 1e-9), digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return range(Math.floor(high / step + 1e-9) - first + 1).map((k) => {
    const at = (first + k) * step;
    return [at, at.toFixed(digits).replace("-", "−")];
  });
}


const escaped = (s) => String(s).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const sum = (list) => list.reduce((a, b) => a + b, 0);
const range = (n) => Array.from({ length: n }, (_, i) => i);

function softmax(scores) {
  const highest = Math.max(...scores);
  const e = scores.map((s) => Math.exp(s - highest)), total = sum(e);
  return e.map((v) => v / total);
}

// ---- the pen

class Pen {
  constructor() { this.parts = []; }

  put(html) { this.parts.push(html); }

  text(x, y, words, { anchor = "start", color = INK, size = 17, weight = 400 } = {}) {
    this.put(`<text x="${x}" y="${y}" text-anchor="${anchor}" fill="${color}" font-size="${size}" font-weight="${weight}">${escaped(words)}</text>`);
  }

  line(points, { color = SLATE, width = 2.4, dash = "" } = {}) {
    const path = points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
    this.put(`<path d="${path}" fill="none" stroke="${color}" stroke-width="${width}" stroke-dasharray="${dash}" stroke-linejoin="round"/>`);
  }

  arrow([x0, y0], [x1, y1], { color = SLATE, width = 3 } = {}) {
    const a = Math.atan2(y1 - y0, x1 - x0), tip = (turn) => [x1 - 13 * Math.cos(a + turn), y1 - 13 * Math.sin(a + turn)];
    this.line([[x0, y0], [x1 - 8 * Math.cos(a), y1 - 8 * Math.sin(a)]], { color, width });
    const [l, r] = [tip(0.45), tip(-0.45)];
    this.put(`<path d="M${x1} ${y1}L${l[0]} ${l[1]}L${r[0]} ${r[1]}z" fill="${color}"/>`);
  }

  dot(x, y, { color = SLATE, radius = 6, said = "", i = null, ring = false } = {}) {
    this.put(`<circle cx="${x}" cy="${y}" r="${radius}" fill="${color}" ${ring ? `stroke="${INK}" stroke-width="3"` : 'stroke="#fff" stroke-width="1"'} ${i === null ? "" : `data-i="${i}"`}><title>${escaped(said)}</title></circle>`);
  }

  // bars side by side with their numbers; those of `pale` are grey
  bars(box, labels, values, { most = Math.max(...values), color = SLATE, pale = [], words = values.map(text) } = {}) {
    const wide = box.width / values.length;
    values.forEach((value, i) => {
      const height = most > 0 ? (box.height * value) / most : 0, x = box.x + i * wide, y = box.y + box.height - height;
      this.put(`<rect x="${x + wide * 0.12}" y="${y}" width="${wide * 0.76}" height="${height}" fill="${pale[i] ? HAIRLINE : color}" data-i="${i}"><title>${escaped(labels[i])}: ${value}</title></rect>`);
      if (wide > 34) this.text(x + wide / 2, y - 6, words[i], { anchor: "middle", size: 16 });
      if (wide > 12) this.text(x + wide / 2, box.y + box.height + 20, labels[i], { anchor: "middle", size: 16, color: pale[i] ? QUIET : INK });
    });
    this.line([[box.x, box.y + box.height], [box.x + box.width, box.y + box.height]], { width: 1.5 });
  }

  // curves {name, values, color}; log: powers of ten on the vertical axis
  curves(box, xs, curves, { xlabel = "", ylabel = "", log = false, low, high } = {}) {
    const put = (v) => (log ? Math.log10(Math.max(v, 1e-300)) : v);
    const all = curves.flatMap((c) => c.values).filter(Number.isFinite).map(put);
    const [y0, y1] = [low === undefined ? Math.min(...all) : put(low), high === undefined ? Math.max(...all) : put(high)];
    const [x0, x1] = [xs[0], xs.at(-1)], X = (x) => box.x + (box.width * (x - x0)) / (x1 - x0 || 1);
    const Y = (y) => box.y + box.height - box.height * Math.max(0, Math.min(1, (put(y) - y0) / (y1 - y0 || 1)));
    const places = log ? range(Math.floor(y1) - Math.ceil(y0) + 1).map((k) => Math.ceil(y0) + k).filter((k, _, a) => k % Math.ceil(a.length / 6) === 0).map((k) => [10 ** k, k ? power(k) : "1"]) : ticks(y0, y1);
    for (const [y, words] of places) {
      this.line([[box.x, Y(y)], [box.x + box.width, Y(y)]], { color: "#E4E9EE", width: 1.2 });
      this.text(box.x - 8, Y(y) + 6, words, { anchor: "end", size: 16, color: QUIET });
    }
    for (const [x, words] of ticks(xs[0], xs.at(-1))) this.text(X(x), box.y + box.height + 20, words, { anchor: "middle", size: 16, color: QUIET });
    this.text(box.x + box.width / 2, box.y + box.height + 42, xlabel, { anchor: "middle", color: QUIET });
    this.text(box.x, box.y - 10, ylabel, { color: QUIET });
    for (const c of curves) this.line(xs.map((x, i) => [X(x), Y(c.values[i])]), c);
    return { X, Y };
  }

  // a matrix of numbers from 0 to `most` as cells
  cells(box, matrix, { most = 1, color = "70,82,94" } = {}) {
    const high = box.height / matrix.length, wide = box.width / matrix[0].length;
    matrix.forEach((row, r) => row.forEach((value, c) => this.put(`<rect x="${box.x + c * wide}" y="${box.y + r * high}" width="${wide}" height="${high}" fill="rgba(${color},${Math.min(1, value / most).toFixed(3)})" data-r="${r}" data-c="${c}"><title>${value}</title></rect>`)));
    this.put(`<rect x="${box.x}" y="${box.y}" width="${box.width}" height="${box.height}" fill="none" stroke="${HAIRLINE}" pointer-events="none"/>`);
  }
}

// ---- controls

const shownValue = (control) => (control.show ?? text)(valueOf(control));
const valueOf = (control) => (control.log ? 10 ** state[control.name] : state[control.name]);

function drawControls() {
  $("form").replaceChildren(...WIDGET.controls.map((control) => {
    const label = document.createElement("label");
    label.append(control.label, control.choices ? choice(control) : slider(control));
    if (!control.choices) label.append(Object.assign(document.createElement("output"), { id: `out-${control.name}` }));
    return label;
  }));
  const reset = Object.assign(document.createElement("button"), { type: "button", textContent: "reset", title: "r", onclick: start });
  $("form").append(reset);
}

function slider(control) {
  const input = Object.assign(document.createElement("input"), { type: "range", id: control.name, min: control.min, max: control.max, step: control.step, value: state[control.name] });
  input.setAttribute("aria-label", control.label);
  input.oninput = () => { state[control.name] = Number(input.value); draw(); };
  return input;
}

function choice(control) {
  const select = Object.assign(document.createElement("select"), { id: control.name });
  control.choices.forEach((words, i) => select.add(new Option(words, i, false, i === state[control.name])));
  select.onchange = () => { state[control.name] = Number(select.value); draw(); };
  return select;
}

function start() {
  for (const control of WIDGET.controls) state[control.name] = DATA.start?.[control.name] ?? control.start;
  Object.assign(state, structuredClone(WIDGET.state ?? {}));
  drawControls();
  draw();
}

const widgets = () => ({ ...state, ...Object.fromEntries(WIDGET.controls.map((c) => [c.name, valueOf(c)])) });

function draw() {
  for (const control of WIDGET.controls) {
    if (control.off) document.getElementById(control.name).disabled = control.off(state);
    const out = document.getElementById(`out-${control.name}`);
    if (!out) continue;
    out.textContent = shownValue(control);
    document.getElementById(control.name).setAttribute("aria-valuetext", out.textContent);
  }
  const pen = new Pen(), values = WIDGET.values(widgets()), at = split();
  $("svg").setAttribute("viewBox", at ? `0 0 ${Math.max(at, WIDE - at)} ${2 * HIGH}` : `0 0 ${room()} ${HIGH}`);
  WIDGET.draw(pen, values, widgets());
  $("svg").innerHTML = at ? halves(pen.parts.join(""), at) : pen.parts.join("");
  $("#said").textContent = WIDGET.said(values, widgets());
}

// the part of a picture to the left of `at`, and the other part below it
function halves(picture, at) {
  const part = (name, x, width) => `<clipPath id="${name}"><rect x="${x}" width="${width}" height="${HIGH}"/></clipPath><g clip-path="url(#${name})">${picture}</g>`;
  return `${part("left", 0, at)}<g transform="translate(${-at} ${HIGH})">${part("right", at, WIDE - at)}</g>`;
}

let wasNarrow = narrow();
addEventListener("resize", () => {
  if (narrow() !== wasNarrow) { wasNarrow = narrow(); draw(); }
});

// ---- mouse and keys

function place(event) {
  const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform($("svg").getScreenCTM().inverse());
  return split() && y > HIGH ? [x + split(), y - HIGH] : [x, y];
}

let dragged = false;

function pointAt(event) {
  const mark = event.target.dataset;
  if (WIDGET.over && (mark.i ?? mark.r) !== undefined && WIDGET.over(mark)) draw();
}

$("svg").addEventListener("pointerdown", (event) => {
  pointAt(event);  // a finger points without having moved
  if (!WIDGET.point || event.button !== 0 || !(WIDGET.inside?.(...place(event)) ?? true)) return;
  dragged = true;
  $("svg").setPointerCapture(event.pointerId);
  WIDGET.point(...place(event));
  draw();
});
$("svg").addEventListener("pointermove", (event) => {
  if (dragged) { WIDGET.point(...place(event)); draw(); } else pointAt(event);
});
for (const end of ["pointerup", "pointercancel"]) $("svg").addEventListener(end, () => { dragged = false; });
// the keys belong to the deck or the notebook again
function leave() {
  parent.postMessage("leave", "*");
  parent.focus();
}

function begin() {
  if (WIDGET.key) $("svg").tabIndex = 0;  // a picture that keys can move is reached by Tab
  if (WIDGET.point) $("svg").classList.add("draggable");
  if (WIDGET.hint) $("#caption").append(` ${WIDGET.hint}`);
  start();
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.matches?.("input[type=text]");  // letters belong to the words
  if (["PageDown", "PageUp"].includes(event.key)) {  // for a deck
    if (parent !== window && event.target.matches("input, select")) event.preventDefault();
    parent.postMessage({ page: event.key }, "*");
  } else if (event.key === "r" && !typing) start();
  else if (event.key === "Escape") leave();
  else if (event.target === $("svg") && WIDGET.key?.(event.key)) { event.preventDefault(); draw(); }
});
