// Attention weights of a real model: from which words a word receives values, by layer and head.

const WIDGET = {
  split: 566,
  hint: "Or select the figure with Tab, and choose the word with ↑ and ↓.",
  state: { over: null },
  controls: [
    { name: "layer", label: "layer", choices: DATA.weights.map((_, l) => String(l + 1)), start: 0 },
    { name: "head", label: "head", choices: [...DATA.weights[0].map((_, h) => String(h + 1)), "mean of all"], start: 0 },
  ],
  values({ layer, head, over }) {
    const heads = DATA.weights[layer];
    const matrix = head < heads.length ? heads[head] : heads[0].map((row, t) => row.map((_, s) => sum(heads.map((h) => h[t][s])) / heads.length));
    const word = Math.min(over ?? DATA.start?.over ?? 0, DATA.queries.length - 1);
    return { matrix, word, weights: matrix[word] };
  },
  draw(pen, { matrix, word, weights }) {
    const { queries, keys } = DATA, high = Math.min(28, 340 / Math.max(queries.length, keys.length)), size = Math.min(17, high - 1);
    const yq = (t) => 24 + high * (t + 0.75), most = Math.max(...weights);
    pen.text(150, 16, DATA.names[0], { anchor: "end", color: QUIET, size: 16 });
    pen.text(400, 16, DATA.names[1], { color: QUIET, size: 16 });
    weights.forEach((w, s) => { if (w > 0.004) pen.line([[158, yq(word) - size / 3], [392, yq(s) - size / 3]], { width: 1 + 9 * w, color: `rgba(70,82,94,${(0.25 + 0.75 * (w / most)).toFixed(2)})` }); });
    queries.forEach((q, t) => {
      pen.put(`<rect x="0" y="${yq(t) - size}" width="152" height="${high}" fill="${t === word ? "#DCEBF6" : "transparent"}" data-i="${t}"/>`);
      pen.text(150, yq(t), q, { anchor: "end", size, weight: t === word ? 700 : 400, color: t === word ? "#00609A" : INK });
    });
    keys.forEach((k, s) => {
      pen.text(400, yq(s), k, { size, color: "#A34700" });
      pen.text(545, yq(s), weights[s].toFixed(3), { anchor: "end", size, color: QUIET });
    });
    const side = Math.min(330, high * Math.max(queries.length, keys.length));
    const box = { x: 590, y: 24, width: (side * keys.length) / Math.max(queries.length, keys.length), height: (side * queries.length) / Math.max(queries.length, keys.length) };
    pen.cells(box, matrix, { most: Math.max(...matrix.flat()) });
    const row = box.height / queries.length;
    pen.put(`<rect x="${box.x}" y="${box.y + word * row}" width="${box.width}" height="${row}" fill="none" stroke="${BLUE}" stroke-width="3" pointer-events="none"/>`);
  },
  said({ weights, word }, { layer, head }) {
    const best = weights.indexOf(Math.max(...weights));
    return `layer ${layer + 1}, ${head < DATA.weights[0].length ? `head ${head + 1}` : "mean of all heads"}: “${DATA.queries[word]}” attends most to “${DATA.keys[best]}” (${text(weights[best])})`;
  },
  over(mark) { const to = Number(mark.i ?? mark.r), changed = to !== state.over; state.over = to; return changed; },
  key(key) {
    const by = { ArrowDown: 1, ArrowUp: -1 }[key];
    if (by) state.over = Math.max(0, Math.min(DATA.queries.length - 1, (state.over ?? DATA.start?.over ?? 0) + by));
    return Boolean(by);
  },
};
