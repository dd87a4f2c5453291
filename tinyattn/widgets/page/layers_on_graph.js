// Features of the nodes after 0, 1, 2, ... layers of message passing: more layers, less difference.

const WIDGET = {
  controls: [{ name: "layers", label: "layers", min: 0, max: DATA.features.length - 1, step: 1, start: 0, show: String }],
  values({ layers }) {
    const x = DATA.features[layers], mean = sum(x) / x.length;
    return { x, spread: Math.sqrt(sum(x.map((v) => (v - mean) ** 2)) / x.length) };
  },
  draw(pen, { x }) {
    const at = ([u, v]) => [room() * (0.5 + 0.42 * u), 185 - 165 * v], most = Math.max(...DATA.features[0].map(Math.abs));
    DATA.edges.forEach(([i, j]) => pen.line([at(DATA.places[i]), at(DATA.places[j])], { color: "#C9D0D6", width: 1.6 }));
    DATA.places.forEach((p, i) => {
      const [u, v] = at(p), share = (0.6 * Math.min(1, Math.abs(x[i]) / most)).toFixed(3);
      pen.dot(u, v, { radius: 13, color: "#fff", ring: true });
      pen.put(`<circle cx="${u}" cy="${v}" r="12" fill="${x[i] < 0 ? `rgba(213,94,0,${share})` : `rgba(0,114,178,${share})`}" data-i="${i}"><title>node ${i}: ${x[i]}</title></circle>`);
      pen.text(u, v + 5, DATA.signs[i].replace("-", "−"), { anchor: "middle", size: 16, weight: 600 });
    });
  },
  said: ({ spread }, { layers }) => `after ${layers} layer${layers === 1 ? "" : "s"}, the nodes differ by ${text(spread)} (standard deviation)`,
};
