// A GPT that runs in the page: byte pairs, the forward pass, and the backward pass written by hand.
//
// A matrix is a list of rows (Float64Array), one row per token; a weight has one row per output. The
// sizes come from the weights, so any `models.GPT` fits.

const zeros = (n) => new Float64Array(n);
const dot = (a, b) => { let s = 0; for (let i = 0; i < a.length; i++) s += a[i] * b[i]; return s; };
const addTo = (a, b, factor = 1) => { for (let i = 0; i < a.length; i++) a[i] += factor * b[i]; return a; };
const plus = (A, B) => A.map((row, t) => addTo(row.slice(), B[t]));

// y = x Wᵀ + b, and the gradient of x from the gradient of y
const linear = (X, W, b) => X.map((x) => Float64Array.from(W, (w, o) => dot(x, w) + b[o]));
const linearBack = (G, W) => G.map((g) => W.reduce((sum, w, o) => addTo(sum, w, g[o]), zeros(W[0].length)));

// erf as a series of positive terms, exact to about 15 digits
function erf(x) {
  if (Math.abs(x) > 6) return Math.sign(x);
  let term = x, total = x;
  for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(total); n++) total += term *= (2 * x * x) / (2 * n + 1);
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * total;
}
const gelu = (x) => 0.5 * x * (1 + erf(x / Math.SQRT2));
const geluSlope = (x) => 0.5 * (1 + erf(x / Math.SQRT2)) + (x * Math.exp((-x * x) / 2)) / Math.sqrt(2 * Math.PI);

// layer norm: γ x̂ + β with x̂ = (x - mean) / spread
function norm(X, { weight, bias }) {
  const spread = [], hat = X.map((x) => {
    const mean = sum([...x]) / x.length, centred = x.map((v) => v - mean);
    spread.push(Math.sqrt(dot(centred, centred) / x.length + 1e-5));
    return centred.map((v) => v / spread.at(-1));
  });
  return { hat, spread, y: hat.map((h) => h.map((v, i) => weight[i] * v + bias[i])) };
}

// the gradient of x from the gradient of γ x̂ + β: its mean and its part along x̂ are removed
const normBack = (G, { hat, spread }, { weight }) => G.map((g, t) => {
  const of = g.map((v, i) => v * weight[i]), mean = sum([...of]) / of.length, along = dot(of, hat[t]) / of.length;
  return of.map((v, i) => (v - mean - hat[t][i] * along) / spread[t]);
});

// the forward pass for the tokens `ids`, with all that the sums and the backward pass need
function forward(model, ids) {
  const d = model.positions[0].length, size = d / model.heads;
  let x = ids.map((id, t) => addTo(model.embedding[id].slice(), model.positions[t]));
  const layers = model.layers.map((layer) => {
    const norm1 = norm(x, layer.norm1), qkv = linear(norm1.y, layer.qkv.weight, layer.qkv.bias);
    const heads = range(model.heads).map((h) => {
      const [q, k, v] = [0, 1, 2].map((part) => qkv.map((row) => row.subarray(part * d + h * size, part * d + (h + 1) * size)));
      const scores = q.map((qi, i) => range(i + 1).map((j) => dot(qi, k[j]) / Math.sqrt(size)));  // i receives from j ≤ i
      const weights = scores.map(softmax);
      const out = weights.map((row) => row.reduce((y, a, j) => addTo(y, v[j], a), zeros(size)));
      return { q, k, v, scores, weights, out };
    });
    const joined = ids.map((_, t) => Float64Array.from(heads.flatMap((head) => [...head.out[t]])));
    x = plus(x, linear(joined, layer.out.weight, layer.out.bias));
    const norm2 = norm(x, layer.norm2), hidden = linear(norm2.y, layer.up.weight, layer.up.bias);
    const added = linear(hidden.map((row) => row.map(gelu)), layer.down.weight, layer.down.bias);
    x = plus(x, added);
    return { norm1, heads, norm2, hidden, added };
  });
  const last = norm(x, model.norm);
  const logits = last.y.map((z) => model.embedding.map((e) => dot(z, e)));
  return { ids, layers, last, logits };
}

// the gradient of loss = -log p(target) after the token at `at`, with respect to the embedding of each
// token, and for each layer and head with respect to its attention weights a and scores s
function backward(model, run, at, target) {
  const d = model.positions[0].length, size = d / model.heads, p = softmax(run.logits[at]);
  const ofLast = run.ids.map(() => zeros(d));
  p.forEach((probability, v) => addTo(ofLast[at], model.embedding[v], probability - (v === target)));
  let g = normBack(ofLast, run.last, model.norm);
  const layers = model.layers.map((layer, l) => [layer, run.layers[l]]).reverse().map(([layer, { norm1, heads, norm2, hidden }]) => {
    const ofHidden = linearBack(g, layer.down.weight).map((row, t) => row.map((v, i) => v * geluSlope(hidden[t][i])));
    g = plus(g, normBack(linearBack(ofHidden, layer.up.weight), norm2, layer.norm2));
    const ofJoined = linearBack(g, layer.out.weight), ofQKV = run.ids.map(() => zeros(3 * d));
    const found = heads.map(({ q, k, v, weights }, h) => {
      const out = ofJoined.map((row) => row.subarray(h * size, (h + 1) * size));
      const a = weights.map((row, i) => row.map((_, j) => dot(out[i], v[j])));
      const s = weights.map((row, i) => { const mean = dot(row, a[i]); return row.map((w, j) => w * (a[i][j] - mean)); });
      const part = (t, which) => ofQKV[t].subarray(which * d + h * size, which * d + (h + 1) * size);
      s.forEach((row, i) => row.forEach((slope, j) => {
        addTo(part(i, 0), k[j], slope / Math.sqrt(size));
        addTo(part(j, 1), q[i], slope / Math.sqrt(size));
        addTo(part(j, 2), out[i], weights[i][j]);
      }));
      return { out, a, s };
    });
    g = plus(g, normBack(linearBack(ofQKV, layer.qkv.weight), norm1, layer.norm1));
    return found;
  }).reverse();
  return { loss: -Math.log(p[target]), embeddings: g, layers };
}

// a logit as a sum over what was added to the state of the token at `at`: for a fixed spread, x̂ is linear in the state
function contributions(model, run, at, v) {
  const spread = run.last.spread[at], e = model.embedding[v], { weight, bias } = model.norm;
  const share = (vector) => {
    const mean = sum([...vector]) / vector.length;
    return sum([...vector].map((c, i) => (e[i] * weight[i] * (c - mean)) / spread));
  };
  const terms = [["its embedding", share(model.embedding[run.ids[at]])], ["its position", share(model.positions[at])]];
  run.layers.forEach(({ heads, added }, l) => {
    const { weight: W, bias: b } = model.layers[l].out, size = heads[0].out[at].length;
    heads.forEach((head, h) => terms.push([`layer ${l + 1}, head ${h + 1}`, share(W.map((row) => dot(row.subarray(h * size, (h + 1) * size), head.out[at])))]));
    terms.push([`layer ${l + 1}, biases`, share(b)], [`layer ${l + 1}, feed-forward`, share(added[at])]);
  });
  return [...terms, ["β of the last norm", dot(e, bias)]];
}

// ---- the weights in the page: matrices in 8 bits with a factor for each row, vectors in 32 bits

function unpack({ shape, numbers, factors }) {
  const bytes = Uint8Array.from(atob(numbers), (c) => c.charCodeAt(0)).buffer;
  if (!factors) return Float64Array.from(new Float32Array(bytes));
  const rows = new Int8Array(bytes), by = unpack({ numbers: factors });
  return range(shape[0]).map((r) => Float64Array.from(rows.subarray(r * shape[1], (r + 1) * shape[1]), (v) => v * by[r]));
}

function modelOf(data) {
  const all = Object.fromEntries(Object.entries(data.weights).map(([name, packed]) => [name, unpack(packed)]));
  const pair = (name, under = ".") => ({ weight: all[`${name}${under}weight`], bias: all[`${name}${under}bias`] });
  const layers = range(data.layers).map((l) => {
    const of = (name, under) => pair(`blocks.layers.${l}.${name}`, under);
    return { norm1: of("norm1"), qkv: of("self_attn.in_proj", "_"), out: of("self_attn.out_proj"), norm2: of("norm2"), up: of("linear1"), down: of("linear2") };
  });
  return { heads: data.heads, embedding: all["embedding.weight"], positions: all["positions.weight"], layers, norm: pair("blocks.norm") };
}

// ---- byte pairs: in each word, the merge that was learned first is applied, until none is possible

const WORDS = /'(?:[stmd]|re|ve|ll)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu;

function encode({ bytes, merges }, words) {
  const ranks = new Map(merges.map(([a, b, c], rank) => [`${a} ${b}`, [rank, c]]));
  return (words.match(WORDS) ?? []).flatMap((word) => {
    let ids = [...new TextEncoder().encode(word)].map((b) => bytes[b]).filter((id) => id !== undefined);
    for (;;) {
      const known = ids.slice(1).map((id, i) => ranks.get(`${ids[i]} ${id}`)).filter(Boolean);
      if (!known.length) return ids;
      const first = Math.min(...known.map(([rank]) => rank)), [a, b, c] = merges[first];
      ids = ids.reduce((done, id) => (id === b && done.at(-1) === a ? [...done.slice(0, -1), c] : [...done, id]), []);
    }
  });
}
