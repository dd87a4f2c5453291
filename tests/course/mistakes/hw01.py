"""Wrong answers to homework 01, and what its checks must say about them."""

SPLIT = "i, f, g, o = np.split(s, 4, axis=-1)\n    c_new"
NEW = "c_new = sigmoid(f) * c + sigmoid(i) * np.tanh(g)"
HIDDEN = "return sigmoid(o) * np.tanh(c_new), c_new"
TOTAL = "total = gc + gh * o * (1 - t * t)"
INPUT, FORGET = "total * g * i * (1 - i),", "total * c * f * (1 - f),"
PROPOSAL, OUTPUT = "total * i * (1 - g * g),", "gh * t * o * (1 - o),"
RULE = "return np.concatenate(blocks, axis=-1), total * f"
CELL, LOOP = "self.ax(x) + self.aa(a))", "a = self.cell(x[:, t], a)"

MISTAKES = [  # right, wrong, what the check must say about it
    (SPLIT, SPLIT.replace("i, f, g, o", "i, f, o, g"), "the third one is g"),
    (SPLIT, SPLIT.replace("i, f, g, o", "f, i, g, o"), "the first one is i"),
    (NEW, NEW.replace("np.tanh(g)", "sigmoid(g)"), "it needs a tanh"),
    (NEW, NEW.replace("sigmoid(f)", "(1 - sigmoid(i))"), "coupled gate of a GRU"),
    (NEW, NEW.replace("sigmoid(f) * c", "c"), "without forgetting"),
    (HIDDEN, "return sigmoid(o) * c_new, c_new", "without the outer tanh"),
    (HIDDEN, "return sigmoid(o) * np.tanh(c), c_new", "from the old cell state"),
    (HIDDEN, "return c_new, sigmoid(o) * np.tanh(c_new)", "yours are swapped"),
    (HIDDEN, "return sigmoid(o) * np.tanh(c_new)", "return 2 things, h, c_new"),
    (TOTAL, "total = gh * o * (1 - t * t)", "add what comes directly"),
    (TOTAL, "total = gc", "is used in h as well"),
    (TOTAL, "total = gc + gh * o", "the derivative of the outer tanh"),
    (TOTAL, "total = gc + gh * (1 - t * t)", "without the factor o"),
    (INPUT, "total * g,", "block i"),
    (FORGET, "total * f * (1 - f),", "block f"),
    (PROPOSAL, "total * i * g * (1 - g),", "it has a tanh"),
    (OUTPUT, "gh * c_new * o * (1 - o),", "in place of tanh c'"),
    (RULE, "return sum(blocks), total * f", "four blocks"),
    (RULE, "return np.concatenate(blocks, axis=-1)", "return 2 things"),
    (RULE, "return np.concatenate(blocks, axis=-1), total", "gradient by c"),
    (CELL, "self.ax(x) + self.aa(x * a))", "multiplied by the input"),
    (CELL, "self.ax(x))", "without the old state"),
    (LOOP, "a = self.cell(x[:, t], nn.detach(a))", "What cuts the state off"),
    (LOOP, "a = self.cell(x[:, 0], a)", "the last input does not reach"),
    ("    optimizer.zero_grad()\n    loss =", "    loss =", "gradients add up"),
    ("    loss.backward()\n    optimizer.step()", "    loss.backward()", "did not move"),
]

LIBRARY = [  # right, the library's function in its place
    (HIDDEN, "return nn.LSTMCell(1, 2)(s, c)"),
    ("t = np.tanh(c_new)\n    total", "return ta.gradients(lambda *x: 0, s, c)\n    total"),
]
