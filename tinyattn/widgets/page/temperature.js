// softmax(scores / T): how sharp the choice is.

const WIDGET = {
  split: 508,
  controls: [{ name: "T", label: "temperature T", min: -1.5, max: 1.5, step: 0.02, start: 0, log: true }],
  values({ T }) {
    const weights = softmax(DATA.scores.map((s) => s / T));
    return { weights, choices: Math.exp(-sum(weights.map((w) => (w > 0 ? w * Math.log(w) : 0)))) };
  },
  draw(pen, { weights }) {
    pen.text(40, 24, "scores", { color: QUIET });
    const low = Math.min(0, ...DATA.scores);
    pen.bars({ x: 40, y: 50, width: 400, height: 230 }, DATA.labels, DATA.scores.map((s) => s - low), { words: DATA.scores.map(text), color: BLUE });
    if (!narrow()) pen.arrow([452, 165], [500, 165]);
    pen.text(520, 24, "weights softmax(scores / T)", { color: QUIET });
    pen.bars({ x: 520, y: 50, width: 400, height: 230 }, DATA.labels, weights, { most: 1 });
  },
  said: ({ weights, choices }) => `largest weight ${text(Math.max(...weights))}; as uncertain as a choice among ${text(choices)} equal options`,
};
