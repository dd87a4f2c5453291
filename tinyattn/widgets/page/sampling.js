// The next token of a language model: temperature, then top-k, then top-p, then one is drawn.

const SHOWN = 14;

function probabilities(logits, T, k, p) {
  const order = range(logits.length).sort((a, b) => logits[b] - logits[a] || a - b);
  const kept = new Set(order.slice(0, k)), first = softmax(logits.map((z, i) => (kept.has(i) ? z / T : -Infinity)));
  let before = 0;
  const inside = new Set();
  for (const i of order) { if (before < p) inside.add(i); before += first[i]; }
  const rest = p < 1 ? first.map((v, i) => (inside.has(i) ? v : 0)) : first, total = sum(rest);
  return { order, weights: rest.map((v) => v / total) };
}

const WIDGET = {
  split: 480,  // between two bars
  controls: [
    { name: "step", label: "position", min: 0, max: DATA.logits.length - 1, step: 1, start: 0, show: (i) => `${i + 1} of ${DATA.logits.length}` },
    { name: "T", label: "temperature", min: -1, max: 0.7, step: 0.02, start: 0, log: true },
    { name: "k", label: "top-k", min: 1, max: DATA.tokens.length, step: 1, start: DATA.tokens.length, show: String },
    { name: "p", label: "top-p", min: 0.05, max: 1, step: 0.01, start: 1 },
  ],
  values({ step, T, k, p }) {
    const { order, weights } = probabilities(DATA.logits[step], T, k, p);
    return { order, weights, left: weights.filter((w) => w > 0).length };
  },
  draw(pen, { order, weights }, { step }) {
    pen.text(40, 24, `${DATA.texts[step].slice(narrow() ? -44 : -70)}▁`, { weight: 600 });
    const shown = order.slice(0, SHOWN), words = shown.map((i) => DATA.tokens[i].replaceAll(" ", "␣").replaceAll("\n", "⏎"));
    pen.bars({ x: 40, y: 70, width: 880, height: 220 }, words, shown.map((i) => weights[i]), { most: Math.max(0.5, ...weights), pale: shown.map((i) => weights[i] === 0) });
    const last = DATA.taken?.[step];
    if (last !== undefined) pen.text(920, 24, `the text continues with “${DATA.tokens[last].replaceAll(" ", "␣").replaceAll("\n", "⏎")}”: ${text(weights[last])}`, { anchor: "end", color: QUIET });
  },
  said: ({ weights, order, left }) => `${left} of ${DATA.tokens.length} tokens can be drawn; the most likely one has probability ${text(weights[order[0]])}`,
};
