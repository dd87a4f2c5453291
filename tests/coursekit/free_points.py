"""Ways to points without an answer, as somebody who has read the checks would try them.

FREE: (homework, task, what is tried, code). The code stands in place of the task's cells, and every
other task is solved; `tests/coursekit/test_points.py` grades them. None may get a point of it.
"""

DIFFERENCES = """
def forward(Q, K, V):
    e = EXP(Q @ K.T / np.sqrt(Q.shape[-1]))
    return e / e.sum(axis=-1, keepdims=True) @ V


def attention_backward(G, Q, K, V):
    found, e = [], 1e-5
    for n in range(3):
        x = [np.array(a, dtype=float) for a in (Q, K, V)]
        g = np.zeros(x[n].shape)
        for i in np.ndindex(*g.shape):
            x[n][i] += e
            up = forward(*x)
            x[n][i] -= 2 * e
            g[i] = np.sum(G * (up - forward(*x))) / (2 * e)
            x[n][i] += e
        found.append(g)
    return tuple(found)
"""
TAYLOR = """
import math as m


def series(x):
    y, term = 1.0, 1.0
    for n in range(1, 60):
        term = term * (x - 0.0) / n
        y = y + term
    return y

"""
COMPLEX = (
    DIFFERENCES.replace("dtype=float", "dtype=complex")
    .replace("1e-5", "1e-30j")
    .replace("(up - forward(*x))) / (2 * e)", "up.imag) / 1e-30")
)


def backward_by(exp, before=""):
    return before + DIFFERENCES.replace("EXP", exp)


def softmax_by(expression, before=""):
    """Task 2 of homework 04 with this softmax; its attention is right."""
    return f"""{before}
def softmax(s):
    return {expression}


def attention(Q, K, V):
    return softmax(Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])) @ V


def multi_head(X, WQ, WK, WV, WO, H):
    d, total = X.shape[1] // H, 0
    for h in range(0, H * d, d):
        Q, K, V = (X @ W[:, h : h + d] for W in (WQ, WK, WV))
        total = total + attention(Q, K, V) @ WO[h : h + d]
    return total
"""


def loops(body):
    lines = "\n".join(f"    {line}" for line in body.split("\n"))
    return f"def attention_loops(Q, K, V, m):\n{lines}\n"


SIGMOID = "@ta.primitive\ndef sigmoid(x):\n    return 1 / (1 + np.exp(-x))\n\n\n"
SIGMOID_RULE = SIGMOID + "def sigmoid_rule(g, y, x):\n    {}\n\n\nsigmoid.defvjp(sigmoid_rule)\n"
F = "lambda x: 1 / (1 + np.exp(-x))"
BELL = "@ta.primitive\ndef bell(x, width):\n    return np.exp(-((x / width) ** 2))\n\n\n{}\n"
SOFTMAX_RULE = """
@ta.primitive
def softmax(x):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def softmax_rule(g, y, x):
{}


softmax.defvjp(softmax_rule)
"""
LSTM = """
def lstm_cell_backward(s, c, p, gh, gc):
    def cell(s, c):
        i, f, g, o = np.split(s, 4, axis=-1)
        i, f, g = SIGMOID(i + p[0] * c), SIGMOID(f + p[1] * c), TANH(g)
        new = f * c + i * g
        return SIGMOID(o + p[2] * new) * TANH(new), new

    def loss(s, c):
        h, new = cell(s, c)
        return gh * h + gc * new

    e, H = 1e-5, c.shape[1]
    blocks = []
    for k in range(4):
        step = np.zeros_like(s)
        step[:, k * H : (k + 1) * H] = e
        blocks.append((loss(s + step, c) - loss(s - step, c)) / (2 * e))
    return np.concatenate(blocks, axis=-1), (loss(s, c + e) - loss(s, c - e)) / (2 * e)
"""


def lstm_by(sigmoid, tanh, before=""):
    return before + LSTM.replace("SIGMOID", sigmoid).replace("TANH", tanh)


SERIES = (
    TAYLOR + "def sig(x):\n    return 1 / (1 + 1 / series(x))\n\n\n"
    "def th(x):\n    return 2 * sig(2 * x) - 1\n\n\n"
)
DISTANCES = "b, c = -m * abs(np.arange(len(Q))[:, None] - np.arange(len(K))), Q.shape[1] ** -0.5\n"
NEIGHBOURS = """
def neighbours(N, k, stride=1, padding=0, dilation=1):
    return {}
"""

FREE = [
    # a second copy of the library, and its inside
    ("hw04", 1, "runpy", loops(
        "import runpy\nf = runpy.run_module('tinyattn.functional.attention')\n"
        "return f['scaled_dot_product_attention'](Q, K, V).numpy()")),
    ("hw04", 1, "pkgutil", loops(
        "import pkgutil\nf = 'tinyattn.functional:scaled_dot_product_attention'\n"
        "return pkgutil.resolve_name(f)(Q, K, V).numpy()")),
    ("hw04", 1, "importlib", loops(
        "import importlib\nf = importlib.import_module('tinyattn.functional')\n"
        "return f.scaled_dot_product_attention(Q, K, V).numpy()")),
    ("hw04", 1, "sys.modules", loops(
        "import sys\nreturn sys.modules['tinyattn.functional'].scaled_dot_product_attention("
        "Q, K, V).numpy()")),
    ("hw04", 1, "a string to getattr", loops(
        "return getattr(F, 'scaled_dot' + '_product_attention')(Q, K, V).numpy()")),
    ("hw04", 1, "vars of a module", loops(
        "return vars(F)['scaled_dot_product_attention'](Q, K, V).numpy()")),
    ("hw04", 1, "an inner module", loops(
        "from tinyattn.functional.attention import scaled_dot_product_attention as f\n"
        "return f(Q, K, V).numpy()")),
    ("hw04", 1, "a kernel", loops(
        DISTANCES + "from tinyattn.kernels import attention\n"
        "return attention.heads_by_loops(Q, K, V, None, b, False, c)[0]")),
    ("hw04", 1, "an operation", loops(
        DISTANCES + "from tinyattn.ops import attention\n"
        "return attention.attention(*map(ta.tensor, (Q, K, V)), None, b, False, c).numpy()")),
    ("hw04", 1, "a widget", loops(
        DISTANCES + "from tinyattn.widgets import weights\n"
        "return weights.softmax(c * Q @ K.T + b) @ V")),
    ("hw04", 1, "a layer", loops("return nn.MultiheadAttention(4, 1)(Q).numpy()")),
    ("hw04", 1, "the module of a given name", loops(
        "return type(hw).__init__.__globals__['x']")),
    ("hw04", 1, "the module of a class", loops(
        "import sys as s\nreturn s.modules[ta.Tensor.__module__]")),
    ("hw04", 1, "the function of a Tensor", loops(
        "t = ta.tensor(Q)\nreturn (t @ K.T).softmax(-1).numpy() @ V")),
    ("hw04", 1, "the class of a Tensor", loops(
        "return ta.Tensor.softmax(ta.tensor(Q @ K.T), -1).numpy() @ V")),
    ("hw04", 1, "the name in a match", loops(
        "class A:\n    __match_args__ = ('__globals__',)\nreturn 0")),
    ("hw04", 1, "an attribute in a text", loops("return '{0.__globals__}'.format(forward)")),
    ("hw04", 1, "a frame", loops("return (x for x in ()).gi_frame.f_back.f_globals")),
    ("hw04", 1, "a trace", loops(
        "try:\n    1 / 0\nexcept Exception as e:\n    return e.__traceback__.tb_frame.f_back")),
    ("hw04", 1, "all objects", loops(
        "import gc\nreturn [o for o in gc.get_objects() if callable(o)][0](Q, K, V)")),
    ("hw04", 1, "the judge", "import tinyattn.course.checks as c\nc.judge = lambda *a: None\n"
     + loops("return Q @ V.T")),
    ("hw04", 1, "allclose", "np.allclose = lambda *a, **k: True\n" + loops("return Q")),
    ("hw04", 1, "hw.require", "hw.require = lambda *a, **k: None\nhw.check = hw.require\n"
     + loops("return Q")),
    ("hw04", 1, "always equal", "class Y(np.ndarray):\n    def __eq__(self, other):\n"
     "        return True\n\n\n" + loops("return np.zeros((len(Q), V.shape[1])).view(Y)")),
    ("hw04", 1, "a Tensor of one's own", "class Tensor:\n    data = np.zeros((2, 3))\n\n\n"
     + loops("return Tensor()")),
    ("hw04", 1, "nan", loops("return np.full((len(Q), V.shape[1]), np.nan)")),
    # near relatives
    ("hw04", 2, "segment_softmax", softmax_by(
        "graph.segment_softmax(s.reshape(-1), np.arange(s.size) // s.shape[-1], "
        "s.size // s.shape[-1]).reshape(s.shape)",
        "from tinyattn import graph\n")),
    ("hw04", 2, "logsumexp", softmax_by("np.exp(s - F.logsumexp(s, axis=-1, keepdims=True))")),
    ("hw04", 2, "log_softmax", softmax_by("np.exp(F.log_softmax(s, axis=-1))")),
    ("hw04", 2, "a Tensor's method", softmax_by("ta.tensor(s).softmax(-1)")),
    ("hw04", 2, "a Tensor's logsumexp", softmax_by(
        "np.exp(s - ta.tensor(s).logsumexp(-1, keepdims=True))")),
    ("hw04", 2, "scipy", softmax_by("softmax_(s, axis=-1)",
                                     "from scipy.special import softmax as softmax_\n")),
    ("hw04", 2, "torch", softmax_by("torch.softmax(torch.tensor(s), -1)", "import torch\n")),
    ("hw04", 2, "a layer", softmax_by("nn.Softmax()(s)")),
    ("hw04", 2, "another lecture's model", softmax_by(
        "models.GPT.softmax(s)", "from tinyattn import models\n")),
    # derivatives that were not derived
    ("hw04", 4, "difference quotients", backward_by("np.exp")),
    ("hw04", 4, "powers of e", backward_by("E", "def E(x):\n    return np.e**x\n\n")),
    ("hw04", 4, "powers of e in place", backward_by(
        "E", "def E(x):\n    y = np.full(x.shape, np.e)\n    y **= x\n    return y\n\n")),
    ("hw04", 4, "np.power", backward_by("E", "def E(x):\n    return np.power(np.e, x)\n\n")),
    ("hw04", 4, "sinh and cosh", backward_by(
        "E", "def E(x):\n    return np.sinh(x) + np.cosh(x)\n\n")),
    ("hw04", 4, "math.exp", backward_by(
        "E", "import math\ndef E(x):\n    y = [[math.exp(v) for v in row] for row in x]\n"
        "    return np.array(y)\n\n")),
    ("hw04", 4, "logspace", backward_by(
        "E", "def E(x):\n    return np.logspace(x, x, 1, base=np.e)[0]\n\n")),
    ("hw04", 4, "exp in another module", backward_by(
        "E", "from numpy import exp as E\n\n")),
    ("hw04", 4, "a series", backward_by("series", TAYLOR)),
    ("hw04", 4, "a distribution", backward_by(
        "E", "def E(x):\n    return np.random.default_rng().lognormal(x, 0)\n\n")),
    ("hw04", 4, "another distribution", backward_by(
        "E", "import random\ndef E(x):\n"
        "    return np.array([[random.lognormvariate(v, 0) for v in row] for row in x])\n\n")),
    ("hw04", 4, "decimal numbers", backward_by(
        "E", "from decimal import Decimal\ndef E(x):\n"
        "    return np.array([[float(Decimal(float(v)).exp()) for v in row] for row in x])\n\n")),
    ("hw04", 4, "a limit", backward_by("E", "def E(x):\n    y = 1 + x / 2**40\n"
     "    for _ in range(40):\n        y = y * y\n    return y\n\n")),
    ("hw04", 4, "large steps", backward_by("np.exp").replace("1e-5", "1e-3")),
    ("hw04", 4, "one-sided differences", backward_by("np.exp").replace("1e-5", "1e-8").replace(
        "x[n][i] -= 2 * e", "x[n][i] -= e").replace("(2 * e)", "e").replace(
        "x[n][i] += e\n        found", "found")),
    ("hw04", 4, "the complex step", COMPLEX.replace("EXP", "np.exp")),
    ("hw04", 4, "the complex step without its letter", COMPLEX.replace("EXP", "np.exp").replace(
        "1e-30j", "1e-30 * (-1) ** 0.5").replace("dtype=complex", "dtype='D'")),
    ("hw04", 4, "the engine",
     "def attention_backward(G, Q, K, V):\n"
     "    q, k, v = (ta.tensor(x, requires_grad=True) for x in (Q, K, V))\n"
     "    attention(q[None], k[None], v[None]).backward(G[None])\n"
     "    return q.grad, k.grad, v.grad\n"),
    ("hw04", 4, "the engine of a layer",
     "def attention_backward(G, Q, K, V):\n"
     "    T = type(MultiHead(4, 2).to_q.weight)\n    q = T(Q, requires_grad=True)\n"
     "    return q.grad, q.grad, q.grad\n"),
    ("hw00", 1, "difference quotients", SIGMOID_RULE.format(
        f"f, e = ({F}), 1e-5\n    return g * (f(x + e) - f(x - e)) / (2 * e)")),
    ("hw00", 1, "one-sided differences", SIGMOID_RULE.format(
        f"f, e = ({F}), 1e-8\n    return g * (f(x + e) - y) / e")),
    ("hw00", 1, "the complex step", SIGMOID_RULE.format(
        f"f = {F}\n    return g * f(x + 1e-30j).imag / 1e-30")),
    ("hw00", 1, "a series", TAYLOR + SIGMOID_RULE.format(
        "f, e = (lambda x: 1 / (1 + 1 / series(x))), 1e-5\n"
        "    return g * (f(x + e) - f(x - e)) / (2 * e)")),
    ("hw00", 1, "the engine", SIGMOID_RULE.format(
        "t = ta.tensor(x, requires_grad=True)\n    (1 / (1 + np.exp(-t))).backward(g)\n"
        "    return t.grad")),
    ("hw00", 1, "a primitive's Tensor", SIGMOID_RULE.format(
        "T = type(ta.primitive(lambda x: x)(x))\n    return T(x, requires_grad=True).grad")),
    ("hw00", 3, "the engine's own", "def sum_to(g, shape):\n"
     "    from tinyattn.engine import autograd\n"
     "    return autograd.unbroadcast(g, np.zeros(shape), '', '')\n"),
    ("hw00", 5, "difference quotients", SOFTMAX_RULE.format(
        "    def f(x):\n        e = np.exp(x)\n        return e / e.sum(axis=1, keepdims=True)\n\n"
        "    out = np.zeros(x.shape)\n    for c in range(x.shape[1]):\n"
        "        d = np.zeros(x.shape)\n        d[:, c] = 1e-5\n"
        "        out[:, c] = np.sum(g * (f(x + d) - f(x - d)), axis=1) / 2e-5\n    return out")),
    ("hw00", 5, "a series", TAYLOR + SOFTMAX_RULE.format(
        "    def f(x):\n        e = series(x)\n        return e / e.sum(axis=1, keepdims=True)\n\n"
        "    out = np.zeros(x.shape)\n    for c in range(x.shape[1]):\n"
        "        d = np.zeros(x.shape)\n        d[:, c] = 1e-5\n"
        "        out[:, c] = np.sum(g * (f(x + d) - f(x - d)), axis=1) / 2e-5\n    return out")),
    ("hw00", 7, "an optimizer", "from tinyattn import optim\n\n\ndef descend(parameters, step):\n"
     "    optim.SGD(parameters, lr=step).step()\n    optim.SGD(parameters, lr=step).zero_grad()\n"),
    ("hw01", 1, "a layer", "def lstm_cell(s, c, p):\n    return nn.LSTMCell(1, 2)(s, c)\n"),
    ("hw01", 2, "difference quotients", lstm_by("sigmoid", "np.tanh")),
    ("hw01", 2, "the given sigmoid alone", lstm_by(
        "sigmoid", "T", "def T(x):\n    return 2 * sigmoid(2 * x) - 1\n\n")),
    ("hw01", 2, "a series", lstm_by("sig", "th", SERIES)),
    ("hw02", 2, "the library", "import tinyattn.functional as F\n\n\ndef weights(e):\n"
     "    return F.softmax(e, axis=1)\n"),
    ("hw02", 2, "a star", "from tinyattn.functional import *\n\n\ndef weights(e):\n"
     "    return softmax(e, axis=1)\n"),
    ("hw02", 3, "a model's own", "from tinyattn.models import Captioner\n\n\n"
     "def look(h, z, W, b, U, v, g):\n    return Captioner.look(h, z)\n"),
    ("hw03", 1, "the library", NEIGHBOURS.format(
        "F.neighbour_table((N,), k, stride, padding, dilation)")),
    ("hw03", 1, "by another name", NEIGHBOURS.format(
        "[getattr(F, n) for n in dir(F) if n == 'neighbour_table'][0]((N,), k, stride, padding, "
        "dilation)")),
    ("hw03", 4, "the softmax of a later task",
     "def weights_loops(x, w, wt, r):\n    return F.softmax(x @ x.T, axis=0)\n"),
    ("hw05", 2, "by asking the checks", "def predictions():\n"
     "    from tinyattn.course import checks\n    there = checks.module('hw05')\n"
     "    return {name: there.kind_of(F) for name, F in there.FUNCTIONS.items()}\n"),
    ("hw06", 2, "attention itself", "def cross_attention(X, M, W_q, W_k, W_v, keep):\n"
     "    return F.scaled_dot_product_attention(X @ W_q, M @ W_k, M @ W_v, mask=keep)\n"),
    ("hw06", 2, "a layer", "def cross_attention(X, M, W_q, W_k, W_v, keep):\n"
     "    return nn.MultiheadAttention(4, 1)(X, M)\n"),
    ("hw07", 4, "the count set back", "def write(model, prompt, n):\n    text = list(prompt)\n"
     "    for _ in range(n):\n"
     "        y = model(np.asarray(text)[None], model.empty_cache()).numpy()\n"
     "        text.append(int(y[0, -1].argmax()))\n    model.read = 0\n    type(model).read = 0\n"
     "    return np.array(text)\n"),
    ("hw08", 2, "attention itself", "import tinyattn.functional as F\n\n\n"
     "def biased_attention(q, k, v, U, mask):\n    U = np.where(mask, U, -1e30)\n"
     "    y = F.softmax(q @ k.T / np.sqrt(q.shape[-1]) + U, axis=-1)\n    return y @ v\n"),
    ("hw09", 2, "the softmax of a later task", "def attention(e, adj):\n"
     "    i, j = np.nonzero(adj)\n    out = np.zeros(e.shape)\n"
     "    out[i, j] = segment_softmax(e[i, j], i, len(e)).numpy()\n    return out\n"),
    ("hw09", 2, "by way of another task",
     "def attention(e, adj):\n    return borrowed(e, adj)\n\n\ndef borrowed(e, adj):\n"
     "    i, j = np.nonzero(adj)\n    out = np.zeros(e.shape)\n"
     "    out[i, j] = segment_softmax(e[i, j], i, len(e)).numpy()\n    return out\n"),
    ("hw09", 4, "the layer", "def gat_on_edges(h, graph, R, S, a):\n"
     "    from tinyattn.graph import GATConv\n    return GATConv(3, 4)(h, graph)\n"),
    ("hw10", 1, "the library", "def nearest(x, k):\n    import tinyattn.graph as g\n"
     "    return g.knn(x, k + 1)[0][:, 1:]\n"),
    ("hw10", 2, "the maximum of a later task", "def edge_conv_loops(x, index, A, B):\n"
     "    src, dst = index.ravel(), np.repeat(np.arange(len(x)), index.shape[1])\n"
     "    m = np.maximum(x[dst] @ A.T + (x[src] - x[dst]) @ B.T, 0)\n"
     "    return segment_max(m, dst, len(x)).numpy()\n"),
    ("hw10", 4, "one call for show", "def edge_conv_split(x, src, dst, A, B):\n"
     "    times(x[:1], B)\n    mine, theirs = x[dst], x[src]\n"
     "    m = np.maximum(mine @ A.T + (theirs - mine) @ B.T, 0)\n"
     "    return segment_max(m, dst, len(x))\n"),
    ("hw10", 4, "two calls for show", "def edge_conv_split(x, src, dst, A, B):\n"
     "    times(x, A - B), times(x, B)\n    mine, theirs = x[dst], x[src]\n"
     "    m = np.maximum(mine @ A.T + (theirs - mine) @ B.T, 0)\n"
     "    return segment_max(m, dst, len(x))\n"),
    ("hw11", 2, "the library", "def gather(a, h, index):\n    from tinyattn.graph import mean_max\n"
     "    return mean_max(a, h, index)\n"),
    ("hw12", 3, "the library", "def potential_loss(beta, x, truth, q_min=0.1):\n"
     "    return sum(ta.graph.condensation_terms(beta, x, truth)[:2])\n"),
    ("hw13", 1, "what the blocks are cut from", "def log_sum_exp(blocks):\n    x = blocks.x\n"
     "    m = max(x[i : i + 1].max() for i in range(len(x)))\n"
     "    return m + np.log(sum(np.exp(b - m).sum() for b in blocks))\n"),
    ("hw13", 1, "the library", "import tinyattn.functional as F\n\n\ndef log_sum_exp(blocks):\n"
     "    return F.logsumexp(np.concatenate(list(blocks)))\n"),
    ("hw13", 2, "what read reads", "def attention_in_blocks(q, read, N, block):\n"
     "    k, v = (c.cell_contents for c in read.__closure__)\n"
     "    e = np.exp(q @ k.T)\n    return e / e.sum(axis=1, keepdims=True) @ v\n"),
    ("hw13", 3, "the kernel", "def packed_product(d, m, packed, x):\n"
     "    from tinyattn.kernels.quantized import q4_1\n    return q4_1(d, m, packed, x)\n"),
    # what is allowed in another way, or stands elsewhere
    ("hw04", 1, "an import that waits", "def late():\n    import tinyattn.functional as G\n"
     "    return G\n\n\n" + loops(
         "return late().scaled_dot_product_attention(Q, K, V).numpy()")),
    ("hw04", 1, "a default argument", "def borrowed(Q, K, V, f=F.scaled_dot_product_attention):\n"
     "    return f(Q, K, V).numpy()\n\n\n" + loops("return borrowed(Q, K, V)")),
    ("hw04", 1, "a list of functions", "TABLE = {'a': [F.scaled_dot_product_attention]}\n\n\n"
     + loops("return TABLE['a'][0](Q, K, V).numpy()")),
    ("hw04", 1, "a class of one's own", "class Mine(nn.Module):\n"
     "    run = staticmethod(F.scaled_dot_product_attention)\n\n\n"
     + loops("return Mine.run(Q, K, V).numpy()")),
    ("hw04", 1, "a decorator", "def by(f):\n    def g(Q, K, V, m):\n"
     "        return f(Q, K, V).numpy()\n    return g\n\n\n"
     "attention_loops = by(F.scaled_dot_product_attention)\n"),
    ("hw04", 1, "map", loops(
        "return list(map(F.scaled_dot_product_attention, [Q], [K], [V]))[0].numpy()")),
    ("hw04", 1, "partial", "from functools import partial\n\n\n" + loops(
        "return partial(F.scaled_dot_product_attention, Q, K)(V).numpy()")),
    ("hw04", 1, "eval", loops(
        "return eval('F.scaled_dot_' + 'product_attention')(Q, K, V).numpy()")),
    ("hw04", 1, "exec",
     "exec('from tinyattn.functional import scaled_dot_product_attention as a')\n"
     + loops("return a(Q, K, V).numpy()")),
    ("hw04", 1, "__import__", loops(
        "f = __import__('tinyattn.functional', fromlist=['x'])\n"
        "return f.scaled_dot_product_attention(Q, K, V).numpy()")),
    ("hw04", 1, "globals", loops(
        "return globals()['F'].scaled_dot_product_attention(Q, K, V).numpy()")),
    ("hw04", 1, "attrgetter", "import operator\n\n\n" + loops(
        "f = operator.attrgetter('scaled_dot_product_attention')(F)\nreturn f(Q, K, V).numpy()")),
    ("hw04", 1, "methodcaller", "import operator\n\n\n" + loops(
        "f = operator.methodcaller('scaled_dot_product_attention', Q, K, V)\n"
        "return f(F).numpy()")),
    ("hw04", 1, "the module's dictionary", loops(
        "return F.__dict__['scaled_dot_product_attention'](Q, K, V).numpy()")),
    ("hw04", 1, "the globals of a listed function", loops(
        "m = ta.tensor.__globals__['__builtins__']\n"
        "m = m if isinstance(m, dict) else vars(m)\n"
        "f = m['__import__']('tinyattn.functional', fromlist=['x'])\n"
        "return f.scaled_dot_product_attention(Q, K, V).numpy()")),
    ("hw04", 1, "the modules of NumPy", loops(
        "import numpy\nf = numpy.testing.sys.modules['tinyattn.functional']\n"
        "return f.scaled_dot_product_attention(Q, K, V).numpy()")),
    ("hw04", 1, "the subclasses of object", loops(
        "for c in object.__subclasses__():\n    if c.__name__ == '_wrap_close':\n"
        "        s = c.__init__.__globals__['sys']\n"
        "        f = s.modules['tinyattn.functional']\n"
        "        return f.scaled_dot_product_attention(Q, K, V).numpy()")),
    ("hw04", 1, "a match", loops(
        "match ta.tensor:\n    case object(__globals__=g):\n        pass\n"
        "b = g['__builtins__']\nb = b if isinstance(b, dict) else vars(b)\n"
        "f = b['__import__']('tinyattn.functional', fromlist=['x'])\n"
        "return f.scaled_dot_product_attention(Q, K, V).numpy()")),
    ("hw04", 1, "a trace's frame", loops(
        "try:\n    ta.tensor(object())\nexcept Exception as e:\n    t = e.__traceback__\n"
        "while t.tb_next:\n    t = t.tb_next\n"
        "b = t.tb_frame.f_globals['__builtins__']\nb = b if isinstance(b, dict) else vars(b)\n"
        "f = b['__import__']('tinyattn.functional', fromlist=['x'])\n"
        "return f.scaled_dot_product_attention(Q, K, V).numpy()")),
    ("hw13", 2, "the softmax", "import tinyattn.functional as F\n\n\n"
     "def attention_in_blocks(q, read, N, block):\n    y = 0.0\n"
     "    m, total = np.full((len(q), 1), -np.inf), 0.0\n"
     "    for i in range(0, N, block):\n        k, v = read(i, min(i + block, N))\n"
     "        s = q @ k.T\n"
     "        z = F.logsumexp(s, axis=1, keepdims=True).numpy()\n"
     "        new = np.logaddexp(m, z)\n"
     "        y = y * np.exp(m - new) + np.exp(s - new) @ v\n"
     "        m = new\n    return y\n"),
]  # fmt: skip

# all of these tasks are left out, and the named one calls what they would have defined
EMPTY = [
    ("hw04", 2, (1,), softmax_by("attention_loops(s, s, s, 0.0)")),
    ("hw04", 3, (1, 2), "def masked_attention(Q, K, V, mask):\n    return attention(Q, K, V)\n"),
    ("hw09", 4, (1, 2, 3), "def gat_on_edges(h, graph, R, S, a):\n"
     "    adj = np.zeros((len(array(h)),) * 2, bool)\n"
     "    adj[graph.dst, graph.src] = True\n"
     "    return gat_layer(h, adj, R, S, a)\n"),
    ("hw10", 3, (1, 2), "def edge_conv_segments(x, src, dst, A, B):\n"
     "    return edge_conv_loops(x, src.reshape(len(x), -1), A, B)\n"),
    ("hw13", 2, (1,), "def attention_in_blocks(q, read, N, block):\n"
     "    return log_sum_exp(read(i, i + 1)[1] for i in range(N))\n"),
]  # fmt: skip
