// Sinusoidal positions: p·(p + shift) depends on the shift only; each pair of features is a clock.

const LEFT = { x: 70, y: 40, width: 370, height: 240 }, RIGHT = { x: 560, y: 40, width: 370, height: 240 };

const WIDGET = {
  split: 492,
  hint: "Press or drag in a figure to choose t.",
  controls: [
    { name: "pair", label: "pair of features k", min: 0, max: DATA.d / 2 - 1, step: 1, start: 0, show: (i) => String(i) },
    { name: "position", label: "position t", min: 0, max: DATA.length - 1, step: 1, start: Math.floor(DATA.length / 2), show: String },
  ],
  values({ pair, position }) {
    const angle = (p, i) => p * DATA.base ** ((-2 * i) / DATA.d);
    const pairs = range(DATA.d / 2), places = range(DATA.length);
    return {
      sine: places.map((p) => Math.sin(angle(p, pair))), cosine: places.map((p) => Math.cos(angle(p, pair))),
      products: places.map((p) => sum(pairs.map((i) => Math.cos(angle(p - position, i))))),
      wavelength: 2 * Math.PI * DATA.base ** ((2 * pair) / DATA.d),
    };
  },
  draw(pen, { sine, cosine, products }, { position }) {
    const places = range(DATA.length);
    const left = pen.curves(LEFT, places, [{ values: sine, color: BLUE }, { values: cosine, color: VERMILLION, dash: "7 5" }], { low: -1, high: 1, xlabel: "position", ylabel: "features 2k (sine) and 2k + 1 (cosine, dashed)" });
    pen.dot(left.X(position), left.Y(sine[position]), { color: BLUE });
    pen.dot(left.X(position), left.Y(cosine[position]), { color: VERMILLION });
    const right = pen.curves(RIGHT, places, [{ values: products, color: SLATE }], { low: -DATA.d / 8, high: DATA.d / 2, xlabel: "other position", ylabel: "scalar product with the vector of t" });
    pen.line([[right.X(position), 40], [right.X(position), 280]], { dash: "5 5", color: HAIRLINE });
  },
  said: ({ wavelength }, { pair, position }) => `pair ${pair} turns once in ${text(wavelength)} positions; positions at the same distance from t = ${position} have the same scalar product with it`,
  point(x) {
    const box = x < 500 ? LEFT : RIGHT, share = Math.max(0, Math.min(1, (x - box.x) / box.width));
    state.position = Math.round(share * (DATA.length - 1));
    $("#position").value = state.position;
  },
};
