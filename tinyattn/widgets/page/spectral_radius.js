// The gradient through time of h_t = W h_(t-1): it shrinks or grows with the spectral radius.

const WIDGET = {
  controls: [{ name: "radius", label: "spectral radius of W", min: 0.5, max: 1.5, step: 0.01, start: 0.9 }],
  values: ({ radius }) => ({ sizes: DATA.sizes.map((c, t) => c * radius ** t) }),
  draw(pen, { sizes }) {
    const steps = range(sizes.length);
    const { X, Y } = pen.curves({ x: 90, y: 40, width: room() - 140, height: 250 }, steps, [{ values: sizes, color: VERMILLION, width: 3.5 }], { log: true, low: 1e-8, high: 1e8, xlabel: "steps back in time", ylabel: "length of the gradient" });
    pen.line([[X(0), Y(1)], [X(steps.at(-1)), Y(1)]], { dash: "6 6", color: SLATE });
  },
  said: ({ sizes }) => `after ${sizes.length - 1} steps, the gradient is ${text(sizes.at(-1))} times as long: it ${sizes.at(-1) < 0.1 ? "vanishes" : sizes.at(-1) > 10 ? "explodes" : "neither vanishes nor explodes"}`,
};
