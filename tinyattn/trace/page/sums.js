// How the chosen number or its gradient was computed, and the arrays beside it.

const MOST_TERMS = 9;

// the largest terms, and the others as one number
function largest(list, key) {
  if (list.length <= MOST_TERMS) return [list, null];
  const order = [...list].sort((a, b) => Math.abs(key(b)) - Math.abs(key(a)));
  const rest = order.slice(MOST_TERMS - 1);
  return [order.slice(0, MOST_TERMS - 1), { count: rest.length, sum: rest.reduce((s, p) => s + key(p), 0) }];
}

const partLink = (p) => (p.source ? link(...origin(p.source, p.j)) : text(p.input.number));
const operationOf = (node) => trace.operations[node.operation];

function measuredCell(part, node) {
  if (part.measured !== undefined) return `<td class="measured${part.wrong ? " wrong" : ""}">${text(part.measured)}</td>`;
  return `<td class="measured">${node?.measured?.compared ? "" : "not measured"}</td>`;
}

function more(key, title, html) {
  return `<details data-key="${key}" ${state.opened.has(key) ? "open" : ""}><summary>${title}</summary>${html}</details>`;
}

// ---- forward: how y[i] was computed

function made(node, i) {
  const all = parts(node, i);
  const name = escaped(nameOf(node, i));
  let html = `<h2>${name} = ${text(node.data[i])}</h2>`;
  if (!all.length) return `${html}<p>computed by <b>${operationOf(node).name}</b>, which has no input with a derivative here</p>`;
  const summed = node.terms ? all.filter((p) => isSummand(node, p)) : [];
  html += copied(summed, all) ?? written(node, i, all) ?? (node.terms ? sum(node, i, summed) : `<p>computed by <b>${operationOf(node).name}</b> from these numbers</p>`);
  const lists = node.terms && !written(node, i, all) && !copied(summed, all);
  return html + extras(node) + wrongNote(node) + (lists ? more("slopes", "How much does each of these numbers change it? The slopes", slopes(node, all)) : copied(summed, all) ? "" : slopes(node, all));
}

// inputs that are not numbers of an array: an index, an axis, a shape
function extras(node) {
  const texts = node.inputs.filter((o) => "text" in o);
  return texts.length && operationOf(node).name !== "power"
    ? `<p class="quiet">${escaped(operationOf(node).name)}, ${texts.map((o) => escaped(`${o.what} = ${o.text}`)).join(", ")}</p>` : "";
}

function copied(summed, all) {
  const [one] = summed;
  if (summed.length !== 1 || one.slope !== 1 || !one.source || all.some((p) => p !== one && p.slope !== 0)) return null;
  const others = all.length - 1;
  return `<p class="formula">the same number as ${partLink(one)}</p>${others ? `<p class="quiet">selected from ${others + 1} numbers; the others have slope 0</p>` : ""}`;
}

// one number of each operand: the formula with its numbers, as tanh(0.3) or a / b
function written(node, i, all) {
  const sign = { divide: " / ", power: " ** ", multiply: " · ", add: " + ", subtract: " − " }[operationOf(node).name];
  const operands = [];
  for (const input of node.inputs) {
    if ("text" in input) {
      if (operationOf(node).name === "power") operands.push([escaped(input.text), escaped(input.text)]);
      continue;
    }
    const mine = all.filter((p) => p.input === input);
    if (mine.length !== 1 || mine[0].at < 0) return null;
    operands.push([partLink(mine[0]), text(valueOf(mine[0]))]);
  }
  if (sign ? operands.length !== 2 : operands.length !== 1 || node.terms) return null;
  const put = (k) => {
    const shown = operands.map((o) => (k && sign && o[k].startsWith("−") ? `(${o[k]})` : o[k]));
    return sign ? shown.join(sign) : `${operationOf(node).name}(${shown[0]})`;
  };
  return `<p class="formula">${put(0)}<br>= ${put(1)}<br>= <b>${text(node.data[i])}</b></p>`;
}

function sum(node, i, summed) {
  const [shown, rest] = largest(summed, termOf);
  const lines = shown.map((p) => {
    const factor = "partner" in p.input.rows && p.at >= 0 ? partner(node, p.input, i, p.at) : null;
    const value = text(valueOf(p)), slope = text(p.slope), put = (s) => (s.startsWith("−") ? `(${s})` : s);
    if (factor?.[0]) return `<tr><td>${partLink(p)} · ${link(...origin(factor[0], factor[1]))}</td><td>${value} · ${put(slope)}</td><td>= ${text(termOf(p))}</td></tr>`;
    if (p.slope === 1) return `<tr><td>${partLink(p)}</td><td></td><td>= ${text(termOf(p))}</td></tr>`;
    if (p.slope === -1) return `<tr><td>− ${partLink(p)}</td><td></td><td>= ${text(termOf(p))}</td></tr>`;
    return `<tr><td>${slope} · ${partLink(p)}</td><td>${slope} · ${put(value)}</td><td>= ${text(termOf(p))}</td></tr>`;
  });
  if (rest) lines.push(`<tr><td class="quiet">and ${rest.count} smaller ones</td><td></td><td>${text(rest.sum)}</td></tr>`);
  if (summed.length > 1) lines.push(`<tr class="total"><td>sum</td><td></td><td>= ${text(node.data[i])}</td></tr>`);
  const widest = Math.max(...lines.map((html) => html.replace(/<[^>]*>/g, "").length));
  return `<table class="${widest > 48 ? "dense" : ""}">${lines.join("")}</table>`;
}

function slopes(node, all) {
  const [shown, rest] = largest(all.filter((p) => p.source || p.slope), (p) => p.slope);
  const lines = shown.map((p) => `<tr class="${p.wrong ? "wrong" : ""}"><td>${partLink(p)}</td><td>${text(valueOf(p))}</td><td>${text(p.slope)}</td>${measuredCell(p, node)}</tr>`);
  if (rest) lines.push(`<tr><td class="quiet">and ${rest.count} with a smaller slope</td></tr>`);
  return `<table><tr><th></th><th>value</th><th>slope</th><th>measured</th></tr>${lines.join("")}</table>
<p class="quiet">If one of these numbers changes by a little, the chosen number changes by slope times as much.</p>`;
}

function wrongNote(node) {
  const m = node.measured;
  if (!m?.wrong) return "";
  return `<p class="wrong">${m.wrong} of ${m.compared} measured slopes differ from those of the rule of ${escaped(operationOf(node).name)}, so the rule is wrong.</p>`;
}

// ---- a folded layer

function folded(group, node, i, outside) {
  const all = [...outside].flatMap(([id, m]) => [...m].map(([j, slope]) => ({ node: trace.nodes[id], j, slope })));
  const [shown, rest] = largest(all, (p) => p.slope);
  const lines = shown.map((p) => `<tr><td>${link(p.node, p.j)}</td><td>${text(p.node.data[p.j])}</td><td>${text(p.slope)}</td></tr>`);
  if (rest) lines.push(`<tr><td class="quiet">and ${rest.count} with a smaller slope</td></tr>`);
  return `<h2>${escaped(nameOf(node, i))} = ${text(node.data[i])}</h2>
<p>computed by <b>${escaped(group.label)}</b> in ${group.shown.length} steps <button data-group="${group.id}">open</button>${group.formula ? `: ${escaped(group.formula)}` : ""}</p>
<p class="quiet">The chosen number depends on ${all.length} numbers outside this box. If one of them changes by a little, the chosen number changes by slope times as much:</p>
<table class="dense"><tr><th></th><th>value</th><th>slope</th></tr>${lines.join("")}</table>`;
}

// ---- backward: how dL/dx[j] was computed

function came(node, i) {
  const g = node.grad?.[i];
  let html = `<h2>dL/d ${escaped(nameOf(node, i))} = ${text(g)}</h2>`;
  if (node === trace.last) return `${html}<p>dL/dL is always 1. The backward pass begins here.</p>`;
  const all = uses(node, i).filter((u) => u.node.grad);
  if (!all.length) return `${html}<p class="quiet">L does not depend on this number.</p>`;
  const part = (u) => u.slope * u.node.grad[u.i];
  const [shown, rest] = largest(all, part);
  const put = (s) => (s.startsWith("−") ? `(${s})` : s);
  const lines = shown.map((u) => `<tr class="${u.wrong ? "wrong" : ""}"><td>${link(u.node, u.i)}</td><td>${text(u.node.grad[u.i])}</td><td>· ${put(text(u.slope))}</td><td>= ${text(part(u))}</td></tr>`);
  if (rest) lines.push(`<tr><td class="quiet">and ${rest.count} smaller ones</td><td></td><td></td><td>${text(rest.sum)}</td></tr>`);
  if (all.length > 1) lines.push(`<tr class="total"><td>sum</td><td></td><td></td><td>= ${text(g)}</td></tr>`);
  html += `<table><tr><th>used in</th><th>dL/d of this</th><th>· slope</th><th>= term</th></tr>${lines.join("")}</table>
<p class="quiet">Slope: how much the number on the left changes when ${escaped(nameOf(node, i))} changes.</p>`;
  const users = [...new Set(all.map((u) => u.node))];
  html += users.map(wrongNote).join("");
  html += more("measured", "Are the slopes correct? Measured slopes", `<table><tr><th></th><th>slope</th><th>measured</th></tr>${shown.map((u) => `<tr><td>${link(u.node, u.i)}</td><td>${text(u.slope)}</td>${measuredCell(u, u.node)}</tr>`).join("")}</table>${users.map(agreement).join("")}`);
  if (node.kind !== "result") return `${html}<p class="quiet">This number was not computed from others, so the backward pass ends here.${node.kind === "parameter" ? " Training uses this gradient." : ""}</p>`;
  return html + more("goes", "To which numbers does the gradient go next?", goes(node, i));
}

function agreement(node) {
  const m = node.measured;
  if (!m?.compared) return "";
  return `<p class="quiet">${escaped(operationOf(node).name)}: ${m.compared - m.wrong} of ${m.compared} slopes agree with the measurement to ${text(m.largest)}.</p>`;
}

function goes(node, i) {
  const g = node.grad[i];
  const all = parts(node, i).filter((p) => p.source?.grad);
  const [shown, rest] = largest(all, (p) => p.slope * g);
  const lines = shown.map((p) => `<tr><td>${partLink(p)}</td><td>${text(p.slope)}</td><td>· ${text(g)}</td><td>= ${text(p.slope * g)}</td></tr>`);
  if (rest) lines.push(`<tr><td class="quiet">and ${rest.count} smaller ones</td></tr>`);
  return lines.length ? `<table><tr><th>to</th><th>slope</th><th>· dL/d of the chosen number</th><th>= term</th></tr>${lines.join("")}</table>` : '<p class="quiet">No input of this step needs a gradient.</p>';
}

// ---- the source

function source(node, backward) {
  const seen = new Map();
  const add = (shown) => { if (shown) seen.set(`${shown.file}${shown.line}`, shown); };
  let operations = [];
  if (backward) {
    for (const [user, input] of node.users.flatMap(passed)) {
      const operation = operationOf(user);
      operations.push(operation);
      add(operation.rules[operation.joint ? 0 : input.k]);
    }
  } else {
    operations = [operationOf(node)];
    add(operations[0].forward);
  }
  operations = [...new Set(operations)];
  const formulas = operations.map((o) => `<p><b>${escaped(o.name)}</b>: ${escaped(o.formula)}</p>`).join("");
  const codes = [...seen.values()].map((s) => `<pre>${escaped(s.text)}</pre><p class="quiet">${escaped(s.file)}, line ${s.line}</p>`).join("");
  const title = backward ? "The rule in the source code" : "The operation in the source code";
  return formulas + codes ? more("source", title, formulas + codes) : "";
}

const passed = ([user, input]) => (isHidden(user) ? user.users.flatMap(passed) : [[user, input]]);

// ---- arrays

function drawArrays() {
  const { node, backward } = now(), i = chosen(), group = foldOf(node);
  const grad = state.gradients ?? backward;
  const flow = element("div", "flow");
  const box = $("#arrays");
  if (backward) {
    const to = marksOf(uses(node, i), (u) => [u.node, u.i]);
    flow.append(row([{ node, grad }]));
    if (to.size) flow.append(arrow("↑ through", operationsOf([...to.keys()]), [...to.keys()][0]), row([...to].map(([user, marks]) => ({ node: user, grad, marks }))));
  } else if (group) {
    const outside = [...slopesThrough(group, node, i)].map(([id, marks]) => {
      const values = new Float32Array(trace.nodes[id].size);
      for (const [j, slope] of marks) values[j] = slope;
      return { node: trace.nodes[id], values, lead: "slope for " };
    });
    flow.append(row([{ node, grad }]), arrow("computed by", [{ name: group.label }]), row(outside));
  } else {
    const from = marksOf(parts(node, i).filter((p) => p.source), (p) => origin(p.source, p.j));
    flow.append(row([...from].map(([x, marks]) => ({ node: x, grad: grad && Boolean(x.grad), marks }))));
    flow.append(arrow("↓", [operationOf(node)], node), row([{ node, grad }]));
    const to = marksOf(uses(node, i), (u) => [u.node, u.i]);
    if (to.size) {
      const later = element("details");
      later.dataset.key = "used";
      later.open = state.opened.has("used");
      later.append(element("summary", "", `Where is it used?`), row([...to].map(([user, marks]) => ({ node: user, grad, marks }))));
      flow.append(later);
    }
  }
  const bottom = element("div", "", legend());
  bottom.id = "legend";
  box.replaceChildren(flow, bottom);
}

// {array: {element: slope}}
function marksOf(list, place) {
  const found = new Map();
  for (const p of list) {
    const [node, i] = place(p);
    if (!found.has(node)) found.set(node, new Map());
    found.get(node).set(i, p.slope);
  }
  return found;
}

function row(boxes) {
  const e = element("div", "row");
  boxes.forEach((b) => e.append(arrayBox(b)));
  return e;
}

const operationsOf = (nodes) => [...new Set(nodes.map(operationOf))];

function arrow(sign, operations, node) {
  const weights = node?.inputs.some((o) => "node" in o && isLeaf(trace.nodes[o.node]));
  return element("div", "arrow", `${sign} ${operations.map((o) => `<b class="${weights ? "weights" : ""}">${escaped(o.name)}</b>`).join(" ")}`);
}
