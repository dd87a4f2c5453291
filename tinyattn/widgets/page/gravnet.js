// GravNet's weights exp(-c d²): how far away a neighbour still counts.

const WIDGET = {
  controls: [{ name: "c", label: "constant c", min: -1, max: 3, step: 0.02, start: 1, log: true }],
  values: ({ c }) => ({ weights: DATA.distances.map((d) => Math.exp(-c * d * d)) }),
  draw(pen, { weights }, { c }) {
    const far = Math.max(...DATA.distances, 0.1), xs = range(101).map((i) => (far * i) / 100);
    const { X, Y } = pen.curves({ x: 80, y: 40, width: room() - 130, height: 250 }, xs, [{ values: xs.map((d) => Math.exp(-c * d * d)), color: GREEN, width: 3 }], { low: 0, high: 1, xlabel: "distance d in the learned space", ylabel: "weight exp(−c d²)" });
    DATA.distances.forEach((d, i) => pen.dot(X(d), Y(weights[i]), { color: SLATE, radius: 8, said: `neighbour ${i}: ${weights[i]}`, i }));
  },
  said: ({ weights }) => `the ${weights.length} neighbours together count as much as ${text(sum(weights))} neighbours at distance 0`,
};
