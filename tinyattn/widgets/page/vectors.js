// Length and angle of a key, its score with the query, and the weight against another key.

const WIDGET = {
  split: 480,
  hint: "Drag the key, or select the figure with Tab and use the arrow keys.",
  state: { key: [60, 110] },  // in pixels from the origin, upwards positive
  controls: [],
  values(_, [x, y] = state.key) {
    const [kx, ky] = [x / 60, y / 60], length = Math.hypot(kx, ky), q = DATA.query, size = Math.hypot(...q);
    const score = kx * q[0] + ky * q[1], other = DATA.other[0] * q[0] + DATA.other[1] * q[1];
    const cosine = length ? score / (length * size) : 0;
    return { length, cosine, scores: [score, other], weights: softmax([score, other]) };
  },
  draw(pen, { weights, scores }) {
    const at = ([x, y]) => [240 + 60 * x, 190 - 60 * y], o = at([0, 0]);
    range(7).forEach((i) => { const a = i - 3; pen.line([at([a, -2.8]), at([a, 2.8])], { color: "#E4E9EE", width: 1 }); if (Math.abs(a) < 3) pen.line([at([-3.3, a]), at([3.3, a])], { color: "#E4E9EE", width: 1 }); });
    pen.arrow(o, at(DATA.query), { color: BLUE, width: 4 });
    pen.text(at(DATA.query)[0] + 8, at(DATA.query)[1] + 5, "query", { color: "#00609A", weight: 600 });
    pen.arrow(o, at(DATA.other), { color: "#808C97", width: 4 });
    pen.text(at(DATA.other)[0] + 8, at(DATA.other)[1] + 18, "other key", { color: QUIET });
    const tip = [o[0] + state.key[0], o[1] - state.key[1]];
    pen.arrow(o, tip, { color: VERMILLION, width: 4 });
    pen.dot(tip[0], tip[1], { color: VERMILLION, radius: 9 });
    pen.text(tip[0] + 12, tip[1] - 10, "key: drag it", { color: "#A34700", weight: 600 });
    pen.text(560, 24, "score q·k and weight", { color: QUIET });
    pen.bars({ x: 560, y: 60, width: 320, height: 250 }, ["key", "other key"], weights, { most: 1, words: weights.map((w, i) => `${text(w)}  (q·k ${text(scores[i])})`) });
  },
  said: ({ length, cosine, weights }) => `length ${text(length)}, cosine of the angle ${text(cosine)}: weight ${text(weights[0])}`,
  inside: (x) => x < 460,  // the weights are on the right
  point(x, y) { state.key = [Math.max(-200, Math.min(200, x - 240)), Math.max(-165, Math.min(165, 190 - y))]; },
  key(key) {
    const by = { ArrowRight: [6, 0], ArrowLeft: [-6, 0], ArrowUp: [0, 6], ArrowDown: [0, -6] }[key];
    if (by) WIDGET.point(240 + state.key[0] + by[0], 190 - state.key[1] - by[1]);
    return Boolean(by);
  },
};
