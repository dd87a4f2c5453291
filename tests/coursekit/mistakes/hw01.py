"""Wrong answers to homework 01, and what its checks must say about them."""

SPLIT = "i, f, g, o = np.split(s, 4, axis=-1)\n    c_new"
NEW = "c_new = sigmoid(f + p[1] * c) * c + sigmoid(i + p[0] * c) * np.tanh(g)"
HIDDEN = "return sigmoid(o + p[2] * c_new) * np.tanh(c_new), c_new"
TOTAL = "total = gc + gh * o * (1 - t * t) + s_o * p[2]"
INPUT, FORGET = "s_i = total * g * i * (1 - i)", "s_f = total * c * f * (1 - f)"
PROPOSAL, OUTPUT = "total * i * (1 - g * g),", "s_o = gh * t * o * (1 - o)"
RULE = "return np.concatenate(blocks, axis=-1), total * f + s_i * p[0] + s_f * p[1]"
CELL, LOOP = "self.ax(x) + self.aa(a))", "a = self.cell(x[:, t], a)"

PRODUCT = "J = J @ ((1 - a[t] ** 2)[:, None] * W)"
NORMS = "norms.append(np.linalg.norm(J) / np.sqrt(len(W)))"

MISTAKES = [  # right, wrong, what the check must say about it
    (SPLIT, SPLIT.replace("i, f, g, o", "i, f, o, g"), "the third one is g"),
    (SPLIT, SPLIT.replace("i, f, g, o", "f, i, g, o"), "the first one is i"),
    (NEW, NEW.replace("np.tanh(g)", "sigmoid(g)"), "it needs a tanh"),
    (NEW, NEW.replace("sigmoid(f + p[1] * c)", "(1 - sigmoid(i + p[0] * c))"), "gate of a GRU"),
    (NEW, NEW.replace("sigmoid(f + p[1] * c) * c", "c"), "without forgetting"),
    (
        NEW,
        NEW.replace("p[1]", "p[x]").replace("p[0]", "p[1]").replace("p[x]", "p[0]"),
        "peepholes of i and f swapped",
    ),
    (HIDDEN, "return sigmoid(o + p[2] * c_new) * c_new, c_new", "without the outer tanh"),
    (HIDDEN, "return sigmoid(o + p[2] * c_new) * np.tanh(c), c_new", "from the old cell state"),
    (HIDDEN, "return sigmoid(o + p[2] * c) * np.tanh(c_new), c_new", "instead of the new one"),
    (HIDDEN, "return sigmoid(o) * np.tanh(c_new), c_new", "the peephole of the output gate"),
    (HIDDEN, "return c_new, sigmoid(o + p[2] * c_new) * np.tanh(c_new)", "h and c_new are swapped"),
    (HIDDEN, "return sigmoid(o) * np.tanh(c_new)", "return 2 values, h, c_new"),
    (TOTAL, TOTAL.replace("gc + ", ""), "also gets a gradient directly"),
    (TOTAL, "total = gc + s_o * p[2]", "is used in h as well"),
    (TOTAL, TOTAL.replace(" * (1 - t * t)", ""), "the derivative of the outer tanh"),
    (TOTAL, TOTAL.replace("gh * o", "gh"), "without the factor o"),
    (TOTAL, TOTAL.replace(" + s_o * p[2]", ""), "which uses c'"),
    (INPUT, "s_i = total * g", "block i"),
    (FORGET, "s_f = total * f * (1 - f)", "block f"),
    (PROPOSAL, "total * i * g * (1 - g),", "it has a tanh"),
    (OUTPUT, "s_o = gh * c_new * o * (1 - o)", "instead of tanh c'"),
    (RULE, RULE.replace("np.concatenate(blocks, axis=-1)", "sum(blocks)"), "four blocks"),
    (RULE, "return np.concatenate(blocks, axis=-1)", "return 2 values"),
    (RULE, RULE.replace(" + s_i * p[0] + s_f * p[1]", ""), "which use the old c"),
    (RULE, RULE.replace("total * f", "total"), "gradient for c"),
    (PRODUCT, "J = ((1 - a[t] ** 2)[:, None] * W) @ J", "multiply from the right"),
    (PRODUCT, "J = J @ W", "without tanh'"),
    (PRODUCT, PRODUCT.replace("a[t] ** 2", "np.tanh(a[t]) ** 2"), "already tanh(s)"),
    (PRODUCT, PRODUCT.replace("a[t]", "a[t - 1]"), "J_t takes the new state"),
    (PRODUCT, PRODUCT.replace(" * W)", " * W.T)"), "a row of W belongs to the unit"),
    (PRODUCT, PRODUCT.replace("J @ ", ""), "not of the product"),
    (NORMS, "norms.append(np.linalg.norm(J))", "the reach"),
    ("np.eye(len(W)), [1.0]", "np.eye(len(W)), []", "from m = 0 (which is 1)"),
    ("return np.array(norms)", "return np.array(norms[::-1])", "m = 0 comes first"),
    (
        "return np.array(norms)",
        "return np.array(norms) * np.sqrt(len(W))",
        "without the division by √H",
    ),
    (CELL, "self.ax(x) + self.aa(x * a))", "multiplied by the input"),
    (CELL, "self.ax(x))", "without the old state"),
    (LOOP, "a = self.cell(x[:, t], nn.detach(a))", "What cuts the state off"),
    (LOOP, "a = self.cell(x[:, 0], a)", "the last input does not reach"),
    ("    optimizer.zero_grad()\n    loss =", "    loss =", "gradients add up"),
    ("    loss.backward()\n    optimizer.step()", "    loss.backward()", "did not move"),
    (NEW, NEW.replace("np.tanh(g)", "g"), "without the tanh on g"),
    (TOTAL, TOTAL.replace("(1 - t * t)", "(1 - t)"), "tanh' = 1 - tanh²"),
    (INPUT, INPUT.replace("total * g", "total"), "without g on the path to i"),
    (FORGET, FORGET.replace("total * c", "total * c_new"), "the other factor is the old c"),
    (PROPOSAL, "total * i * (1 - g) ** 2,", "instead of 1 - g²"),
    (RULE, RULE.replace("total * f + ", ""), "from c' to c through f"),
    (
        "np.tanh(self.ax(x) + self.aa(a))",
        "np.tanh(self.ax(x)) + np.tanh(self.aa(a))",
        "add the terms first",
    ),
    (LOOP + "\n        return self.out(a)", LOOP + "\n            return self.out(a)", "not in it"),
    (
        "    return loss\n    # END",
        "    return float(loss.item())\n    # END",
        "return the loss itself",
    ),
]

RIGHT = [  # the sample's way, another one that is right too
    (
        SPLIT,
        "H = c.shape[1]\n    i, f, g, o = (s[:, n * H : n * H + H] for n in range(4))\n    c_new",
    ),
    (
        "    optimizer.zero_grad()\n    loss =",
        "    for p in model.parameters():\n        p.grad = None\n    loss =",
    ),
    (CELL, "self.aa(a) + self.ax(x))"),
]

LIBRARY = [  # right, the library's function in its place
    (HIDDEN, "return nn.LSTMCell(1, 2)(s, c)"),
    ("t = np.tanh(c_new)\n    s_o", "return ta.gradients(lambda *x: 0, s, c)\n    s_o"),
]
