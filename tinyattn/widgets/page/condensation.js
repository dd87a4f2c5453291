// Object condensation: the force on a point from the condensation points of its own and of other objects.

// pixels of the distance 1; a narrow picture still shows all condensation points
const unit = () => Math.min(130, (room() / 2) / (1 + Math.max(...DATA.centres.map(([x]) => Math.abs(x)))), room() / 5);

const WIDGET = {
  hint: "Select the figure with Tab, and move the point with the arrow keys.",
  state: { x: null },
  controls: [{ name: "mine", label: "the point belongs to", choices: DATA.names, start: 0 }],
  values({ mine, x }) {
    const p = x ?? DATA.start.x;
    let value = 0;
    const gradient = [0, 0];
    DATA.centres.forEach((c, k) => {
      const [dx, dy] = [p[0] - c[0], p[1] - c[1]], d = Math.hypot(dx, dy), q = DATA.charges[k];
      value += q * (k === mine ? d * d : Math.max(0, 1 - d));
      const slope = k === mine ? 2 * q : d < 1 && d > 0 ? -q / d : 0;
      gradient[0] += slope * dx;
      gradient[1] += slope * dy;
    });
    return { p, value, gradient };
  },
  draw(pen, { p, gradient }, { mine }) {
    const size = unit(), at = ([x, y]) => [room() / 2 + size * x, 185 - size * y];
    DATA.centres.forEach((c, k) => {
      const [x, y] = at(c), color = OBJECTS[k % OBJECTS.length];
      if (k !== mine) pen.put(`<circle cx="${x}" cy="${y}" r="${size}" fill="${color}" fill-opacity=".1" stroke="${color}" stroke-dasharray="6 5"/>`);
      pen.put(k % 2 ? `<rect x="${x - 11}" y="${y - 11}" width="22" height="22" fill="${color}"/>` : `<circle cx="${x}" cy="${y}" r="12" fill="${color}"/>`);
      pen.text(x, y + 36, `${DATA.names[k]}${k === mine ? ": attracts" : ": repels"}`, { anchor: "middle", color, weight: 600 });
    });
    const [x, y] = at(p), slope = Math.hypot(...gradient), long = slope ? Math.min(110, 40 * slope) / slope : 0;
    if (slope) pen.arrow([x, y], [x - long * gradient[0], y + long * gradient[1]], { color: INK, width: 4 });
    pen.dot(x, y, { color: OBJECTS[mine % OBJECTS.length], radius: 10, ring: true });
    pen.text(24, 24, "drag the point; the arrow shows how a training step moves it", { color: QUIET });
  },
  said: ({ value, gradient }) => `potential ${text(value)}; gradient (${gradient.map(text).join(", ")})`,
  point(x, y) { state.x = [(Math.max(12, Math.min(room() - 12, x)) - room() / 2) / unit(), (185 - Math.max(12, Math.min(368, y))) / unit()]; },
  key(key) {
    const by = { ArrowRight: [0.05, 0], ArrowLeft: [-0.05, 0], ArrowUp: [0, 0.05], ArrowDown: [0, -0.05] }[key];
    if (by) {
      const [x, y] = (state.x ?? DATA.start.x).map((v, i) => v + by[i]);
      WIDGET.point(room() / 2 + unit() * x, 185 - unit() * y);
    }
    return Boolean(by);
  },
};
