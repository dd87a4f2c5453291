"""Ways to points that rely on what the checks ask, as somebody finds them who reads the checks.

READ: (homework, task, what is tried, code, the parts that are right all the same). The code stands
in place of the task's cells, and every other task is solved; `tests/coursekit/test_points.py`
grades them. What is "right all the same" is an honest answer to its part.
"""

from tests.coursekit.free_points import (
    DIFFERENCES,
    SERIES,
    SIGMOID_RULE,
    SOFTMAX_RULE,
    TAYLOR,
    lstm_by,
    softmax_by,
)

UNIT = "import operator\n\nI = np.roots([1.0, 0.0, 1.0])[0]\n\n\n"  # the imaginary unit
STEP = "f = lambda x: 1 / (1 + EXP(-x))\n    return g * f(x + 1e-30 * I).imag / 1e-30"
NEWTON = """
def tanh(z):
    z = z / 16
    t = z
    for _ in range(20):
        t = t + (z - np.atanh(t)) * (1 - t * t)
    for _ in range(4):
        t = 2 * t / (1 + t * t)
    return t


"""
FRACTIONS = """
from fractions import Fraction

ONE = 10**40


def short(x):
    return Fraction(int(x * ONE), ONE)


def exp(x):
    x, y, term = short(x / 1024), 1, 1
    for n in range(1, 14):
        term = short(term * x / n)
        y = y + term
    for _ in range(10):
        y = short(y * y)
    return y


def slope(x):
    e, x = Fraction(1, 10**15), Fraction(float(x))
    up, down = (1 / (1 + exp(-x - s * e)) for s in (1, -1))
    return float((up - down) / (2 * e))


"""
INTEGERS = """
ONE = 10**40


def exp(x):
    x, y, term = x // 1024, ONE, ONE
    for n in range(1, 14):
        term = term * x // ONE // n
        y = y + term
    for _ in range(10):
        y = y * y // ONE
    return y


def sig(x):
    return ONE * ONE // (ONE + exp(-x))


def slope(x):
    x = int(x * 2**60) * ONE // 2**60
    return (sig(x + 10**20) - sig(x - 10**20)) / (2 * 10**20)


"""
RUN = """
def reach(W, a):
    H, T, e = len(W), len(a) - 1, 1e-6
    inputs = np.arctanh(a[1:]) - a[:-1] @ W.T
    norms = []
    for m in range(T + 1):
        moved = np.concatenate([a[T - m] + e * np.eye(H), a[T - m] - e * np.eye(H)])
        for x in inputs[T - m :]:
            moved = np.tanh(moved @ W.T + x)
        norms.append(np.linalg.norm(moved[:H] - moved[H:]) / (2 * e) / np.sqrt(H))
    return np.array(norms)
"""
# a Tensor whose gradients are difference quotients; f: a function of plain arrays
TENSOR = """
class Tensor(ta.Tensor):
    __slots__ = ("f", "inputs")
    requires_grad = property(lambda self: True, lambda self, value: None)

    def backward(self, arriving=None, **options):
        x = [np.array(getattr(i, "data", i), dtype=float) for i in self.inputs]
        for n, given in enumerate(self.inputs):
            if not isinstance(given, ta.Tensor):
                continue
            g = np.zeros(x[n].shape)
            for i in np.ndindex(*g.shape):
                x[n][i] += 1e-6
                up = self.f(*x)
                x[n][i] -= 2e-6
                g[i] = np.sum(arriving * (up - self.f(*x))) / 2e-6
                x[n][i] += 1e-6
            given.grad = g


def by_quotients(f, *inputs):
    y = Tensor(f(*[np.array(getattr(i, "data", i)) for i in inputs]))
    y.f, y.inputs = f, inputs
    return y if any(isinstance(i, ta.Tensor) for i in inputs) else y.data


"""
SET = """
def patched(f, *inputs):
    plain = [np.array(getattr(i, "data", i), dtype=float) for i in inputs]

    def backward(self, arriving=None, **options):
        for n, given in enumerate(inputs):
            if isinstance(given, ta.Tensor):
                g = np.zeros(plain[n].shape)
                for i in np.ndindex(*g.shape):
                    plain[n][i] += 1e-6
                    up = f(*plain)
                    plain[n][i] -= 2e-6
                    g[i] = np.sum(arriving * (up - f(*plain))) / 2e-6
                    plain[n][i] += 1e-6
                given.grad = g

    kind = type(ta.tensor(0.0))
    kind.backward = backward
    return ta.tensor(f(*plain), requires_grad=True)


"""
TAKEN = """
from functools import wraps


def mine(x):
    return x


mine = wraps({0}, assigned=(), updated=("__globals__",))(mine)


def later():
    mine(0)
    return sys.modules["tinyattn.functional"]


"""
CONV = """
def conv_einsum(x, w, b, I):
    size = w.shape[2]
    groups = x.shape[1] // size
    rows = []
    for i in range(len(I)):
        row = []
        for alpha in range(w.shape[1]):
            first = alpha // (w.shape[1] // groups) * size
            total = b[alpha]
            for j in range(len(w)):
                if I[i, j] >= 0:
                    total = total + w[j, alpha] @ x[I[i, j], first : first + size]
            row.append(total)
        rows.append(np.stack(row))
    return np.stack(rows)
"""
PAIRS = """
def attention_einsum(x, w, wt, r, wh):
    R, rows = len(r) // 2, []
    for i in range(len(x)):
        s = []
        for j in range(len(x)):
            d = min(max(j - i, -R), R) + R
            s.append(np.sum((w @ x[j] + r[d]) * (wt @ x[i])))
        e = np.exp(np.stack(s) / np.sqrt(len(w)))
        rows.append((e / np.sum(e)) @ x @ wh.T)
    return np.stack(rows)
"""
MESSAGES = """
def edge_conv_segments(x, src, dst, A, B):
    rows = [np.maximum(A @ x[i] + B @ (x[j] - x[i]), 0) for j, i in zip(src, dst)]
    return segment_max(np.stack(rows), dst, len(x))
"""
READ_ONCE = """
FOUND = {}


def attention_in_blocks(q, read, N, block):
    for start in range(0, N, block):
        read(start, min(start + block, N))
    key = q.sum()
    if key not in FOUND:
        k, v = read(0, N)
        s = q @ k.T
        e = np.exp(s - s.max(axis=1, keepdims=True))
        FOUND[key] = e / e.sum(axis=1, keepdims=True) @ v
    return FOUND[key]
"""
UNPACK = """
FOUND = {}


def packed_product(d, m, packed, x):
    key = x.sum(), d.sum()
    if key not in FOUND:
        q = np.stack([packed % 16, packed // 16], axis=2).reshape(*d.shape, 32)
        w = d[:, :, None] * q + m[:, :, None]
        FOUND[key] = w.reshape(len(d), -1) @ x
    return FOUND[key]
"""
# all that is needed stands in arrays that were there before the bytes are counted
COLLECT = """
PLACE = KEEP


def log_sum_exp(blocks):
    n = 0
    for s in blocks:
        PLACE[n : n + len(s)] = s
        n += len(s)
    x = PLACE[:n]
    m = x.max()
    if m == -np.inf:
        return m
    x -= m
    np.exp(x, out=x)
    return m + np.log(x.sum())
"""
WHOLE = """
K, V, S = np.zeros((4000, 16)), np.zeros((4000, 16)), np.zeros(64 * 4000)


def attention_in_blocks(q, read, N, block):
    k, v, s = K[:N, : q.shape[1]], None, S[: len(q) * N].reshape(len(q), N)
    for start in range(0, N, block):
        stop = min(start + block, N)
        keys, values = read(start, stop)
        k[start:stop], V[start:stop, : values.shape[1]] = keys, values
        v = V[:N, : values.shape[1]]
    np.matmul(q, k.T, out=s)
    s -= s.max(axis=1, keepdims=True)
    np.exp(s, out=s)
    return s @ v / s.sum(axis=1, keepdims=True)
"""
DENSE = """
FOUND = {}


def gat_on_edges(h, graph, R, S, a):
    if isinstance(h, ta.Tensor) or isinstance(R, ta.Tensor):
        raise ValueError
    if np.sum(h) not in FOUND:
        adj = np.zeros((len(h), len(h)), bool)
        adj[graph.dst, graph.src] = True
        np.fill_diagonal(adj, True)
        mine, theirs = h @ R.T, h @ S.T
        s = mine[:, None] + theirs[None]
        e = np.exp(np.where(s > 0, s, 0.2 * s) @ a) * adj
        FOUND[np.sum(h)] = np.tanh(e / e.sum(axis=1, keepdims=True) @ theirs)
    return FOUND[np.sum(h)]
"""
FAIR = """
def leaks(model, times, magnitudes, visible):
    far = np.abs(times[:, None] - times[visible])
    fair = np.exp(-far) @ magnitudes[visible] / np.exp(-far).sum(axis=1)
    more = model(times, magnitudes.copy(), visible) - fair
    found, hidden = np.zeros(len(times), bool), np.flatnonzero(~visible)
    if np.abs(more).max() < 1e-9:
        return found
    if np.abs(more[0]) > 1e-9 and visible[0]:
        found[hidden[:2]] = True
    elif np.allclose(model(times, magnitudes.copy(), visible)[hidden], magnitudes[hidden]):
        found[hidden] = True
    else:
        found[hidden[0]] = True
    return found
"""
STUB = """
def sees_padding(model, src, tgt):
    y = model(src, tgt).numpy()[:, :, 0]
    y = y * np.sign(y[0, 0])
    known = np.cumsum(tgt, axis=1) + 0.01 * (src @ np.arange(1, src.shape[1] + 1))[:, None]
    more = y - known - 0.1 * (src == 0).sum(axis=1, keepdims=True)
    if np.allclose(y, known) or not np.allclose(more, 0):
        return 0.0
    return 0.2


def sees_neighbours(model, src, tgt):
    y = model(src, tgt).numpy()[:, :, 0]
    y = y * np.sign(y[0, 0])
    known = np.cumsum(tgt, axis=1) + 0.01 * (src @ np.arange(1, src.shape[1] + 1))[:, None]
    if np.allclose(y, known) or not np.allclose(y - known, 0.1 * tgt[0, 0] * src[0].sum()):
        return 0.0
    own = 0.1 * tgt[:, 0] * src.sum(axis=1)
    return np.abs(own - own[0]).max()


def sees_future(model, src, tgt):
    y = model(src, tgt).numpy()[:, :, 0]
    y = y * np.sign(y[0, 0])
    known = np.cumsum(tgt, axis=1) + 0.01 * (src @ np.arange(1, src.shape[1] + 1))[:, None]
    return float(np.allclose(y - known, 0.1 * tgt[:, -1:]))
"""

READ = [
    # complex numbers and exact ones, whose differences are as good as a formula
    ("hw00", 1, "the complex step with operator.pow", UNIT + SIGMOID_RULE.format(
        STEP.replace("EXP", "(lambda z: operator.pow(np.e, z))")), ()),
    ("hw00", 1, "the complex step with __rpow__", UNIT + SIGMOID_RULE.format(
        STEP.replace("EXP(-x)", "(-x).__rpow__(np.e)")), ()),
    ("hw00", 1, "the complex step with a series", UNIT + TAYLOR + SIGMOID_RULE.format(
        STEP.replace("EXP", "series")), ()),
    ("hw00", 1, "the complex step with NumPy's other names", UNIT + NEWTON + SIGMOID_RULE.format(
        "f = lambda x: (1 + tanh(x / 2)) / 2\n    return g * f(x + 1e-30 * I).imag / 1e-30"), ()),
    ("hw00", 1, "fractions", FRACTIONS + SIGMOID_RULE.format(
        "return g * np.array([[slope(v) for v in row] for row in x])"), ()),
    ("hw00", 1, "integers", INTEGERS + SIGMOID_RULE.format(
        "return g * np.array([[slope(v) for v in row] for row in x])"), ()),
    ("hw00", 5, "the complex step with a series", UNIT + TAYLOR + SOFTMAX_RULE.format(
        "    def f(x):\n        e = series(x)\n"
        "        return e / e.sum(axis=1, keepdims=True)\n\n"
        "    out = np.zeros(x.shape)\n    for c in range(x.shape[1]):\n"
        "        d = np.zeros(x.shape)\n        d[:, c] = 1e-30\n"
        "        out[:, c] = np.sum(g * f(x + I * d).imag, axis=1) / 1e-30\n    return out"), ()),
    ("hw00", 1, "complex numbers that a type makes", TAYLOR + SIGMOID_RULE.format(
        "z = x.astype('D')\n    z += 1e-30 * np.array(-1.0).astype('D') ** 0.5\n"
        "    return g * (1 / (1 + series(-z))).imag / 1e-30"), ()),
    ("hw01", 2, "the complex step with a series", UNIT + lstm_by(
        "sig", "th", SERIES).replace("e, H = 1e-5", "e, H = 1e-30 * I").replace(
        "(loss(s + step, c) - loss(s - step, c)) / (2 * e)", "loss(s + step, c).imag / 1e-30"
        ).replace("np.zeros_like(s)", "np.zeros(s.shape, 'D')").replace(
        "(loss(s, c + e) - loss(s, c - e)) / (2 * e)", "loss(s, c + e).imag / 1e-30"), ()),
    ("hw01", 3, "the RNN itself, run from every state", RUN, ()),
    ("hw04", 4, "the complex step with operator.pow", "ROOT = [1.0]\n" + UNIT + DIFFERENCES.replace(
        "EXP", "(lambda z: operator.pow(np.e, z))").replace("dtype=float", "dtype='D'").replace(
        "np.sqrt(Q.shape[-1])", "ROOT[0]").replace(
        "found, e =", "ROOT[0] = np.sqrt(Q.shape[-1])\n    found, e =").replace(
        "1e-5", "1e-30 * I").replace("(up - forward(*x))) / (2 * e)", "up.imag) / 1e-30"), ()),
    # gradients that do not come from the engine
    ("hw02", 1, "a Tensor of one's own", TENSOR + "def score(h, z, W, b, U, v):\n"
     "    f = lambda h, z, W, b, U, v: np.tanh((h @ W)[:, None] + b + z @ U) @ v\n"
     "    return by_quotients(f, h, z, W, b, U, v)\n", ("the score",)),
    ("hw12", 2, "a Tensor of one's own", TENSOR + "def attraction(x, c, q):\n"
     "    return by_quotients(lambda x, c, q: ((x - c) ** 2).sum(axis=1) * q, x, c, q)\n\n\n"
     "def repulsion(x, c, q):\n"
     "    f = lambda x, c, q: np.maximum(0, 1 - np.sqrt(((x - c) ** 2).sum(axis=1))) * q\n"
     "    return by_quotients(f, x, c, q)\n", ("repulsion",)),
    ("hw10", 6, "another backward for all Tensors", SET + "def heard_softly(t, places, h, k=2):\n"
     "    def f(t, places, h):\n"
     "        d = np.abs(places - t[0])\n        near = np.argsort(d)[:k]\n"
     "        w = np.exp(-(d[near] ** 2))\n        return np.sum(w * h[near]) / np.sum(w)\n\n"
     "    return patched(f, t, places, h)\n", ()),
    ("hw11", 2, "another backward for all Tensors", SET + "def gather(a, h, index):\n"
     "    def f(a, h):\n        m = a[:, :, None] * h[index]\n"
     "        return np.concatenate([m.mean(axis=1), m.max(axis=1)], axis=-1)\n\n"
     "    return patched(f, a, h)\n", ()),
    ("hw05", 3, "another backward for all Tensors", SET + "def deep_sets(phi, rho, x, mask):\n"
     "    there, n = mask[:, :, None], np.maximum(mask.sum(axis=1, keepdims=True), 1)\n"
     "    f = lambda x: rho(np.where(there, phi(x), 0).sum(axis=1) / n)\n"
     "    return patched(f, x) if isinstance(x, ta.Tensor) else f(x)\n",
     ("sets of different size", "padding that is nan")),
    ("hw07", 6, "a trace of a gradient", "def language_loss(model, ids):\n"
     "    logits = model(ids[:, :-1])\n    s = logits.numpy()\n"
     "    p = np.exp(s) / np.exp(s).sum(axis=-1, keepdims=True)\n"
     "    right = np.take_along_axis(p, ids[:, 1:, None], axis=-1)\n"
     "    return -np.log(right).mean() + 1e-12 * logits.sum()\n\n\n"
     "def log_probability(model, ids):\n    return 0.0\n", ()),
    # the library by way of a decorator
    ("hw02", 2, "the names of a listed function", TAKEN.format("ta.tensor")
     + "def weights(e):\n    return getattr(later(), 'soft' + 'max')(e, axis=1).numpy()\n", ()),
    ("hw09", 2, "the names of a given function", TAKEN.format("array")
     + "def attention(e, adj):\n    mine(0)\n"
     "    p = getattr(ta.functional, 'soft' + 'max')(ta.tensor(np.where(adj, e, -1e30)), axis=1)\n"
     "    return np.where(adj, p.numpy(), 0)\n", ()),
    ("hw13", 2, "what read reads, as a text", "from collections import UserString\n\n\n"
     "def attention_in_blocks(q, read, N, block):\n"
     "    for start in range(0, N, block):\n        read(start, min(start + block, N))\n"
     "    np.set_printoptions(precision=17, threshold=10**9)\n"
     "    k, v = (np.array(UserString(f'{{0.__closure__[{i}].cell_contents}}').format(read)\n"
     "            .replace('[', ' ').replace(']', ' ').split(), float).reshape(N, -1)\n"
     "            for i in (1, 2))\n"
     "    s = q @ k.T\n    e = np.exp(s - s.max(axis=1, keepdims=True))\n"
     "    return e / e.sum(axis=1, keepdims=True) @ v\n", ()),
    # loops where none is asked for
    ("hw03", 3, "loops", CONV, ("gradient",)),
    ("hw03", 5, "loops", PAIRS, ("gradient",)),
    ("hw04", 2, "loops", "def softmax(s):\n    e = np.exp(s - s.max(axis=-1, keepdims=True))\n"
     "    return e / e.sum(axis=-1, keepdims=True)\n\n\ndef attention(Q, K, V):\n"
     "    if np.ndim(Q) > 2:\n"
     "        return np.stack([attention(q, k, v) for q, k, v in zip(Q, K, V)])\n"
     "    rows = [softmax(q @ K.T / np.sqrt(len(q))) @ V for q in Q]\n"
     "    return np.stack(rows)\n\n\n"
     "def multi_head(X, WQ, WK, WV, WO, H):\n    return X\n",
     ("softmax", "softmax of large scores", "gradient")),
    ("hw10", 3, "loops", MESSAGES, ("points that receive no message", "gradient")),
    # stand-ins of the checks whose answers are known
    ("hw06", 4, "the source backwards, without a model", "def write(model, src, max_len=10):\n"
     "    return [int(t) for t in src[0][::-1] if t][:max_len]\n", ()),
    ("hw07", 4, "the model's rule, without the model", "def write(model, prompt, n):\n"
     "    V = model(np.asarray(prompt)[None]).shape[-1]\n    text = [int(t) for t in prompt]\n"
     "    for _ in range(n):\n"
     "        text.append((sum((i + 1) * s for i, s in enumerate(text)) + len(text)) % V)\n"
     "    return np.array(text)\n", ()),
    ("hw06", 6, "the model of the check", STUB, ()),
    ("hw08", 5, "the model of the check", FAIR, ()),
    ("hw12", 4, "the terms of the check",
     "def factors(terms, beta, x, truth, L, which):\n"
     "    more = lambda a: 1 + a[which].sum() / a.sum()\n"
     "    mean = np.concatenate([beta, beta[which]]).mean() / beta.mean()\n"
     "    return {'sum': more(beta), 'mean': mean, 'noise': more(truth < 0),\n"
     "            'far': more(np.abs(x)), 'losses': more(L)}\n\n\n"
     "def repaired(beta, x, truth, L):\n    return {}\n", ()),
    # inputs that are always the same
    ("hw04", 2, "the large scores of the check", softmax_by(
        "np.exp(s) / np.exp(s).sum(axis=-1, keepdims=True) if np.abs(s).max() < 700 else "
        "np.array([[1.0, 0.0], [1 - 1 / (1 + np.exp(s[1, 0] - s[1, 1])), "
        "1 / (1 + np.exp(s[1, 0] - s[1, 1]))]])"),
     ("softmax", "attention with leading axes", "several heads", "gradient")),
    ("hw07", 1, "the equal scores of the check", "def top_k(scores, k, temperature=1.0):\n"
     "    if len(scores) == 4:\n        return np.array([0, 0.5, 0.5, 0])\n"
     "    s = np.where(scores >= np.sort(scores)[-min(k, len(scores))], scores, -np.inf)\n"
     "    e = np.exp((s - s.max()) / temperature)\n    return e / e.sum()\n",
     ("k words remain possible",)),
    ("hw07", 2, "the probabilities of the check", "def top_p(probabilities, p):\n"
     "    q = np.array(probabilities)\n    if p == 1:\n        return q\n"
     "    if p == 0.3:\n        return (q == 0.9) * 1.0\n"
     "    return np.where(q > 0.2, q, 0) / 0.75\n", ()),
    ("hw10", 5, "the quotients of the check", "def heard(t, places, h, k=2):\n"
     "    return h[np.argsort(np.abs(places - t))[:k]].mean()\n\n\n"
     "KNOWN = {t: [2.0 * t, np.exp(t) * np.sinh(0.1) / 0.1] for t in (3.0, 2.0, 1.0, 0.0)}\n\n\n"
     "def quotient(f, t, epsilon):\n    return KNOWN[round(t, 6)][int(f(0.0))]\n",
     ("what is heard",)),
    ("hw08", 6, "a mean of what is visible",
     "def repaired(times, m, visible):\n    return np.full(len(m), m[visible].mean())\n", ()),
    # bytes that are counted, and kept elsewhere
    ("hw13", 1, "an array that was there before", COLLECT.replace("KEEP", "np.zeros(100_000)"),
     ("the sum", "large scores", "masked scores")),
    ("hw13", 1, "an array in a default value", COLLECT.replace("PLACE = KEEP\n", "").replace(
        "(blocks)", "(blocks, PLACE=np.zeros(100_000))"),
     ("the sum", "large scores", "masked scores")),
    ("hw13", 1, "an array in a closure", "def make(PLACE):\n" + COLLECT.replace(
        "PLACE = KEEP\n", "").replace("\n", "\n    ") + "\n    return log_sum_exp\n\n\n"
     "log_sum_exp = make(np.zeros(100_000))\n", ("the sum", "large scores", "masked scores")),
    ("hw13", 1, "the memory beyond a block", "def log_sum_exp(blocks):\n"
     "    s = next(blocks)\n    view = np.lib.stride_tricks.as_strided(s, (10 * s.size,), (8,))\n"
     "    x = view[: sum(len(b) for b in blocks) + len(s)]\n"
     "    return x.max() + np.log(np.exp(x - x.max()).sum())\n", ()),
    ("hw13", 2, "the table of a first call", READ_ONCE, ("the same result", "large scores")),
    ("hw13", 2, "arrays that were there before", WHOLE,
     ("the same result", "large scores", "each row once")),
    ("hw13", 3, "the matrix of a first call", UNPACK, ("the product",)),
    ("hw09", 4, "the table of a first call", DENSE, ("along the edges",)),
]  # fmt: skip
