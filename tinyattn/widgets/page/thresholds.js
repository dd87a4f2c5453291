// Inference of object condensation: the point of highest β takes all within t_d, then the next.

function condense(tBeta, tD) {
  const order = range(DATA.beta.length).sort((a, b) => DATA.beta[b] - DATA.beta[a] || a - b);
  const found = DATA.beta.map(() => -1), points = [];
  for (const i of order) {
    if (found[i] >= 0 || DATA.beta[i] <= tBeta) continue;
    for (const j of order) if (found[j] < 0 && (j === i || (DATA.x[j][0] - DATA.x[i][0]) ** 2 + (DATA.x[j][1] - DATA.x[i][1]) ** 2 <= tD * tD)) found[j] = points.length;
    points.push(i);
  }
  return { found, points };
}

const WIDGET = {
  controls: [
    { name: "t_beta", label: "threshold of β", min: 0.01, max: 0.99, step: 0.01, start: 0.1 },
    { name: "t_d", label: "distance t_d", min: 0.02, max: 2, step: 0.02, start: 0.8 },
  ],
  values: ({ t_beta: b, t_d: d }) => condense(b, d),
  draw(pen, { found, points }, { t_d: d }) {
    // the circles of the initial setting are completely visible
    const within = DATA.start.t_d, around = (axis) => DATA.x.flatMap((p) => [p[axis] - within, p[axis] + within]);
    const xs = around(0), ys = around(1);
    const [cx, cy] = [(Math.max(...xs) + Math.min(...xs)) / 2, (Math.max(...ys) + Math.min(...ys)) / 2];
    const scale = Math.min((room() - 40) / (Math.max(...xs) - Math.min(...xs) || 1), 370 / (Math.max(...ys) - Math.min(...ys) || 1));
    const at = (p) => [room() / 2 + scale * (p[0] - cx), 185 - scale * (p[1] - cy)];
    points.forEach((i, k) => { const [x, y] = at(DATA.x[i]); pen.put(`<circle cx="${x}" cy="${y}" r="${scale * d}" fill="none" stroke="${OBJECTS[k % OBJECTS.length]}" stroke-width="2" stroke-dasharray="7 5"/>`); });
    DATA.x.forEach((p, i) => { const [x, y] = at(p); pen.dot(x, y, { color: found[i] < 0 ? HAIRLINE : OBJECTS[found[i] % OBJECTS.length], radius: 4 + 9 * DATA.beta[i], ring: points.includes(i), i, said: `β = ${text(DATA.beta[i])}, true object ${DATA.truth?.[i] ?? "?"}` }); });
  },
  said: ({ found, points }) => `${points.length} object${points.length === 1 ? "" : "s"} found${DATA.truth ? `, true number ${new Set(DATA.truth.filter((t) => t >= 0)).size}` : ""}; ${found.filter((f) => f < 0).length} of ${found.length} points belong to none`,
};
