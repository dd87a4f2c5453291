// q·k of random vectors grows with √d; divided by √d it does not, and softmax stays soft.

const WIDGET = {
  split: 485,
  controls: [
    { name: "d", label: "dimension d", min: 0, max: DATA.dimensions.length - 1, step: 1, start: DATA.dimensions.length - 1, show: (i) => String(DATA.dimensions[i]) },
    { name: "scaled", label: "scores", choices: ["q·k", "q·k / √d"], start: 0 },
  ],
  values({ d, scaled }) {
    const width = DATA.dimensions[d], by = scaled ? Math.sqrt(width) : 1;
    const scores = DATA.scores[d].map((s) => s / by), mean = sum(scores) / scores.length;
    const variance = sum(scores.map((s) => (s - mean) ** 2)) / scores.length;
    return { scores, weights: softmax(scores), variance };
  },
  draw(pen, { scores, weights }) {
    const X = (s) => 230 + Math.max(-195, Math.min(195, s * 4));
    pen.text(40, 24, "scores of one query with each key", { color: QUIET });
    pen.line([[30, 200], [430, 200]], { color: HAIRLINE });
    pen.text(230, 300, "0", { anchor: "middle", color: QUIET });
    scores.forEach((s, i) => pen.dot(X(s), 200 - 14 * ((i % 9) - 4), { color: VERMILLION, radius: 7, said: text(s) }));
    pen.text(520, 24, "weights softmax(scores), largest first", { color: QUIET });
    const sorted = [...weights].sort((a, b) => b - a);
    pen.bars({ x: 520, y: 50, width: 400, height: 230 }, sorted.map(() => ""), sorted, { most: 1, words: sorted.map(() => "") });
    pen.text(510, 56, "1", { anchor: "end", color: QUIET });
    pen.text(510, 286, "0", { anchor: "end", color: QUIET });
  },
  said: ({ variance, weights }) => `variance of the scores ${text(variance)}; largest weight ${text(Math.max(...weights))}`,
};
