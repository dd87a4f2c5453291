"""Right answers that look different from the sample solutions.

UNUSUAL: (homework, task, what is unusual, code). The code stands in place of the task's cells;
`tests/coursekit/test_points.py` grades them, and each must have all points of its task.
"""

UNUSUAL = [
    ("hw00", 1, "with x alone, and a walrus", """
@ta.primitive
def sigmoid(x):
    return np.reciprocal(1.0 + np.exp(np.negative(x)))


sigmoid_rule = lambda g, y, x: g * (e := np.exp(-x)) / np.square(1 + e)
sigmoid.defvjp(sigmoid_rule)
"""),
    ("hw00", 3, "recursive", """
def sum_to(g, shape):
    if g.ndim > len(shape):
        return sum_to(np.add.reduce(g, axis=0), shape)
    for axis, (have, want) in enumerate(zip(g.shape, shape)):
        if have != want:
            return sum_to(g.sum(axis=axis, keepdims=True), shape)
    return g
"""),
    ("hw00", 4, "einsum, and loops", """
def matmul_rule_a(g, y, a, b):
    return np.einsum("nm,km->nk", g, b)


def matmul_rule_b(g, y, a, b):
    found = np.zeros(b.shape)
    for n in range(len(a)):
        for k in range(len(b)):
            for m in range(b.shape[1]):
                found[k, m] += a[n, k] * g[n, m]
    return found


matmul.defvjp(matmul_rule_a, matmul_rule_b)
"""),
    ("hw00", 5, "a Jacobian matrix for each row", """
@ta.primitive
def softmax(x):
    x = x - np.max(x, axis=1, keepdims=True)
    return np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)


def softmax_rule(g, y, x):
    rows = [(np.diag(row) - np.outer(row, row)) @ above for row, above in zip(y, g)]
    return np.vstack(rows)


softmax.defvjp(softmax_rule)
"""),
    ("hw01", 2, "helpers and a dictionary", """
class Slope:
    of_sigmoid = staticmethod(lambda y: y * (1.0 - y))
    of_tanh = staticmethod(lambda y: (1.0 - y) * (1.0 + y))


def lstm_cell_backward(s, c, p, gh, gc):
    H = c.shape[1]
    block = {name: s[:, n * H : (n + 1) * H] for n, name in enumerate("ifgo")}
    i, f = (sigmoid(block[name] + w * c) for name, w in (("i", p[0]), ("f", p[1])))
    g = np.tanh(block["g"])
    new = np.multiply(f, c)
    new += i * g
    o, t = sigmoid(block["o"] + p[2] * new), np.tanh(new)
    by_o = gh * t * Slope.of_sigmoid(o)
    by_new = gc + gh * o * Slope.of_tanh(t) + by_o * p[2]
    by_i, by_f = by_new * g * Slope.of_sigmoid(i), by_new * c * Slope.of_sigmoid(f)
    by_g = by_new * i * Slope.of_tanh(g)
    return np.hstack([by_i, by_f, by_g, by_o]), by_new * f + by_i * p[0] + by_f * p[1]
"""),
    ("hw01", 3, "accumulate", """
from itertools import accumulate


def reach(W, a):
    steps = [np.diag(1 - state**2) @ W for state in a[:0:-1]]
    products = accumulate(steps, np.matmul, initial=np.eye(len(W)))
    return np.array([np.sqrt(np.sum(J**2) / len(W)) for J in products])
"""),
    ("hw02", 5, "a comprehension", """
def weight_on_the_named(a, cells):
    found = [w[r] for at, where in zip(a, cells) for w, r in zip(at, where) if r != -1]
    return sum(found) / len(found)
"""),
    ("hw03", 1, "a generator", """
def neighbours(N, k, stride=1, padding=0, dilation=1):
    def windows(first=-padding):
        while first + dilation * (k - 1) < N + padding:
            yield [n if 0 <= n < N else -1 for n in range(first, first + dilation * k, dilation)]
            first += stride

    return np.array(list(windows()))
"""),
    ("hw03", 3, "a sum over the places of the kernel", """
def conv_einsum(x, w, b, I):
    k, out, size = w.shape
    groups = x.shape[1] // size
    total = b
    for j in range(k):
        read = np.where((I[:, j] >= 0)[:, None], x[I[:, j]], 0).reshape(len(I), groups, 1, size)
        total = total + np.sum(read * w[j].reshape(groups, out // groups, size), axis=-1).reshape(
            len(I), out
        )
    return total
"""),
    ("hw04", 1, "without loops, in float32", """
def attention_loops(Q, K, V, m):
    Q, K, V = (np.asarray(a, dtype=np.float32) for a in (Q, K, V))
    far = abs(np.subtract.outer(np.arange(len(Q)), np.arange(len(K))))
    s = np.einsum("td,sd->ts", Q, K) / Q.shape[1] ** 0.5 - np.float32(m) * far
    e = np.exp(s - s.max(1)[:, None])
    return np.einsum("ts,sv,t->tv", e, V, 1 / e.sum(1))
"""),
    ("hw04", 2, "einsum, and heads by reshape", """
def softmax(s):
    return (e := np.exp(s - np.max(s, axis=-1, keepdims=True))) / np.sum(e, axis=-1, keepdims=True)


def attention(Q, K, V):
    return np.einsum("...ts,...sv->...tv", softmax(np.einsum("...td,...sd->...ts", Q, K) * (
        Q.shape[-1] ** -0.5)), V)


def multi_head(X, WQ, WK, WV, WO, H):
    T, D = X.shape
    cut = lambda W: np.transpose(np.reshape(X @ W, (T, H, D // H)), (1, 0, 2))
    Z = attention(*(cut(W) for W in (WQ, WK, WV)))
    return np.reshape(np.transpose(Z, (1, 0, 2)), (T, D)) @ WO
"""),
    ("hw05", 3, "set by set", """
def deep_sets(phi, rho, x, mask):
    def mean(elements, there):
        kept = [phi(e) for e, is_there in zip(elements, there) if is_there]
        return sum(kept) / len(kept) if kept else 0 * np.where(there[:, None], elements, 0)[0]

    return rho(np.stack([mean(*one) for one in zip(x, mask)]))
"""),
    ("hw06", 4, "recursive", """
def write(model, src, max_len=10, so_far=(START,)):
    if len(so_far) > max_len:
        return list(so_far[1:])
    scores = np.asarray(model(src, np.asarray([so_far])))[0, -1]
    best = max(range(len(scores)), key=lambda token: scores[token])
    return list(so_far[1:]) if best == STOP else write(model, src, max_len, (*so_far, best))
"""),
    ("hw07", 1, "with a heap", """
import heapq


def top_k(scores, k, temperature=1.0):
    best = heapq.nsmallest(k, range(len(scores)), key=lambda i: (-scores[i], i))
    p = np.zeros(len(scores))
    top = max(scores)
    for i in best:
        p[i] = np.exp((scores[i] - top) / temperature)
    return p / p.sum()
"""),
    ("hw07", 2, "a loop with a sum", """
def top_p(probabilities, p):
    left, total, kept = list(enumerate(probabilities)), 0.0, {}
    while left and total < p:
        i, q = max(left, key=lambda pair: pair[1])
        left.remove((i, q))
        kept[i], total = q, total + q
    return np.array([kept.get(i, 0.0) / total for i in range(len(probabilities))])
"""),
    ("hw08", 1, "complex numbers and loops", """
def pairs(pt, eta, phi):
    N, SMALL = len(pt), 1e-8
    turn = np.exp(1j * np.asarray(phi))
    found = np.empty((N, N, 4))
    for a in range(N):
        for b in range(N):
            dphi, deta = np.angle(turn[a] * np.conj(turn[b])), eta[a] - eta[b]
            soft, d = min(pt[a], pt[b]), np.sqrt(deta**2 + dphi**2)
            m2 = 2 * pt[a] * pt[b] * (np.cosh(deta) - np.cos(dphi))
            found[a, b] = soft * d, soft / (pt[a] + pt[b]), d, m2
    return np.log(np.where(found > SMALL, found, SMALL))
"""),
    ("hw09", 2, "row by row", """
def attention(e, adj):
    def row(scores, there):
        if not there.any():
            return np.zeros(len(scores))
        p = np.exp(np.where(there, scores, -np.inf) - np.max(scores[there]))
        return p / np.sum(p)

    e = np.asarray(e)
    return np.array([row(*one) for one in zip(e, np.asarray(adj, bool))])
"""),
    ("hw10", 1, "sorted", """
def nearest(x, k):
    def others(i):
        return sorted(set(range(len(x))) - {i}, key=lambda j: (np.sum((x[i] - x[j]) ** 2), j))

    return np.array([others(i)[:k] for i in range(len(x))])
"""),
    ("hw11", 5, "a dataclass and Newton's method", """
from dataclasses import dataclass


@dataclass
class Cloud:
    N: int
    K: int

    def dense(self, rows, into, out):
        return rows * into * out


def edgeconv_on_edges(N, K, F):
    return Cloud(N, K).dense(N * K, 2 * F, F)


edgeconv_split = lambda N, F: 2 * Cloud(N, 0).dense(N, F, F)


def gravnet_products(N, K, F, S, P):
    widths = [(F, S), (F, P), (F, F), (2 * P, F)]
    return sum(Cloud(N, K).dense(N, a, b) for a, b in widths) + N * K * P


def turning_point(K, S, P):
    F = 1000.0
    for _ in range(100):
        F -= (F**2 - (S + 3 * P) * F - K * P) / (2 * F - (S + 3 * P))
    return F
"""),
    ("hw12", 1, "with logarithms", """
HIGHEST = 1 - 1e-4


def charge(beta, q_min=0.1):
    b = np.clip(beta, None, HIGHEST)
    return 0.25 * np.square(np.log1p(b) - np.log1p(-b)) + q_min
"""),
    ("hw12", 5, "with sets", """
def collect(beta, x, t_beta=0.1, t_d=0.7):
    free, found, number = set(range(len(beta))), [-1] * len(beta), 0
    while free and beta[best := max(free, key=lambda i: beta[i])] > t_beta:
        mine = {i for i in free if np.hypot(*(x[i] - x[best])) <= t_d}
        for i in mine:
            found[i] = number
        free, number = free - mine, number + 1
    return np.array(found)
"""),
    ("hw13", 1, "logaddexp", """
from functools import reduce


def log_sum_exp(blocks):
    return reduce(np.logaddexp, (np.logaddexp.reduce(s) for s in blocks), -np.inf)
"""),
    ("hw13", 3, "row by row", """
def packed_product(d, m, packed, x):
    parts = x.reshape(-1, 2, 16)
    y = np.empty(len(d))
    for r, (scale, least, row) in enumerate(zip(d, m, packed)):
        low, high = row & 15, row >> 4
        q = (low * parts[:, 0]).sum(1) + (high * parts[:, 1]).sum(1)
        y[r] = scale @ q + least @ parts.sum((1, 2))
    return y
"""),
]  # fmt: skip
