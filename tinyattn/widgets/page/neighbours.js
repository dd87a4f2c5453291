// Which points are neighbours: the k nearest, or all within a radius.

const WIDGET = {
  hint: "Or select the figure with Tab, and use the arrow keys.",
  state: { over: null },
  controls: [
    { name: "kind", label: "neighbours", choices: ["the k nearest", "all within a radius"], start: 0 },
    { name: "k", label: "k", min: 1, max: Math.min(24, DATA.points.length - 1), step: 1, start: 4, show: String, off: ({ kind }) => kind === 1 },
    { name: "radius", label: "radius", min: 0, max: DATA.reach, step: DATA.reach / 200, start: DATA.reach / 4, off: ({ kind }) => kind === 0 },
  ],
  values({ kind, k, radius }) {
    const edges = DATA.points.flatMap((p, i) => {
      const near = DATA.points.map((o, j) => [Math.hypot(o[0] - p[0], o[1] - p[1]), j]).filter(([, j]) => j !== i).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
      return (kind ? near.filter(([d]) => d <= radius) : near.slice(0, k)).map(([, j]) => [j, i]);
    });
    const into = range(DATA.points.length).map((i) => edges.filter(([, to]) => to === i).length);
    return { edges, into };
  },
  draw(pen, { edges }, { over, kind, radius }) {
    const xs = DATA.points.map((p) => p[0]), ys = DATA.points.map((p) => p[1]);
    const scale = Math.min((room() - 60) / (Math.max(...xs) - Math.min(...xs)), 340 / (Math.max(...ys) - Math.min(...ys)));
    const at = (p) => [room() / 2 + scale * (p[0] - (Math.max(...xs) + Math.min(...xs)) / 2), 185 - scale * (p[1] - (Math.max(...ys) + Math.min(...ys)) / 2)];
    if (kind && over !== null) { const [x, y] = at(DATA.points[over]); pen.put(`<circle cx="${x}" cy="${y}" r="${scale * radius}" fill="#DCEBF6" stroke="${BLUE}" pointer-events="none"/>`); }
    edges.forEach(([j, i]) => pen.line([at(DATA.points[j]), at(DATA.points[i])], { color: i === over ? INK : "#C9D0D6", width: i === over ? 3 : 1.2 }));
    const largest = Math.max(...DATA.sizes);
    DATA.points.forEach((p, i) => { const [x, y] = at(p); pen.dot(x, y, { color: i === over ? BLUE : SLATE, radius: 3 + 9 * Math.sqrt(DATA.sizes[i] / largest), i, said: `${DATA.what} ${i}: ${text(DATA.sizes[i])}` }); });
  },
  said({ edges, into }, { over }) {
    const alone = into.filter((n) => n === 0).length;
    return `${edges.length} edges; ${alone} of ${into.length} points have no neighbour, and none has more than ${Math.max(...into)}${over === null ? "" : `; this point has ${into[over]}`}`;
  },
  over(mark) { const changed = Number(mark.i) !== state.over; state.over = Number(mark.i); return changed; },
  key(key) {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[key];
    if (by) state.over = ((state.over ?? -by) + by + DATA.points.length) % DATA.points.length;
    return Boolean(by);
  },
};
