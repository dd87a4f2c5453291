"""Wrong answers to homework 00, and what its checks must say about them."""

SIGMOID = "return g * y * (1 - y)"
TOTAL = "return np.broadcast_to(np.expand_dims(g, axis), x.shape)"
SUM_TO = "return g.sum(axis=short, keepdims=True)"
MATMUL_A, MATMUL_B = "return g @ b.T", "return a.T @ g"
SOFTMAX = "return y * (g - np.sum(g * y, axis=1, keepdims=True))"
YOUNGEST_FIRST = "sorted(found, key=lambda n: n.order, reverse=True)"
ADDED = "for x, slope in zip(number.inputs, number.slopes):\n            x.grad += slope"
STEP = "p.data -= step * p.grad"
BELL_X, BELL_WIDTH = "g * y * -2 * x / width**2", "g * y * 2 * x**2 / width**3"

MISTAKES = [  # right, wrong, what the check must say about it
    (SIGMOID, "return y * (1 - y)", "Multiply by g"),
    (SIGMOID, "return g * x * (1 - x)", "Did you use x?"),
    (SIGMOID, "return -g * y * (1 - y)", "the sign is wrong"),
    (SIGMOID, "g * y * (1 - y)", "Is the `return` missing?"),
    (TOTAL, "return g", "must have the shape of x"),
    (TOTAL, "return np.broadcast_to(g, x.shape)", "Insert the removed axis again"),
    (TOTAL, "return np.expand_dims(g, axis) / x.shape[axis] + 0 * x", "the rule of the mean"),
    (TOTAL, "return np.ones_like(x)", "the g of its own sum"),
    (SUM_TO, "return g", "copies must still be summed"),
    (SUM_TO, "return g.sum(axis=short)", "use keepdims=True"),
    (SUM_TO, "return g.sum(axis=1)", "Yours is summed over axis 1 of g"),
    (SUM_TO, "return np.unsqueeze(g, 0)", "np.expand_dims(x, 0)"),
    (SUM_TO, "return g.unsqueeze(0)", "PyTorch's x.unsqueeze(0) is np.expand_dims(x, 0)"),
    (SUM_TO, "return torch.sum(g)", "NumPy's functions (np.exp"),
    (SUM_TO, "return g.mean(axis=short, keepdims=True)", "Did you take a mean"),
    (MATMUL_A, "return g @ b", "b must be transposed"),
    (MATMUL_A, "return b.T @ g", "in the wrong order"),
    (MATMUL_A, "return a.T @ g", "this is the gradient of b"),
    (MATMUL_B, "return a @ g", "a must be transposed"),
    (MATMUL_B, "return g @ a.T", "in the wrong order"),
    (SOFTMAX, "return g * y * (1 - y)", "depends on all its scores"),
    (SOFTMAX, "return y * (g - np.sum(g * y))", "although each row is separate"),
    (SOFTMAX, "return y * (g - np.sum(g, axis=1, keepdims=True))", "must sum to 0"),
    (YOUNGEST_FIRST, "sorted(found, key=lambda n: n.order)", "Too small"),
    (YOUNGEST_FIRST, "friends_backward(result) or []", "friend's bug"),
    (ADDED, ADDED.replace("+=", "="), "must be ADDED"),
    (STEP, "p.data += step * p.grad", "uphill"),
    (STEP, "p.data -= p.grad", "length of the step"),
    (STEP, "p = p - step * p.grad", "did not move"),
    (STEP, "p -= step * p.grad", "not the tensor itself"),
    ("if p.grad is not None:", "if True:", "its .grad is None"),
    ("    p.grad = None", "    pass", "Gradients add up"),
    ("np.exp(-((x / width) ** 2))", "np.exp(-(x**2 / width))", "without the square of the width"),
    ("    p.grad = None", "    p.grad = 0 * p.grad", "Zeros say"),
    (f"    lambda g, y, x, width: {BELL_WIDTH},\n", "", "so it needs two rules"),
    (BELL_X, "g * y * 2 * x / width**2", "the sign is wrong"),
    (BELL_WIDTH, "g * y * 2 * x**2 / width**2", "one factor of width too many"),
    (SIGMOID, "return g * y * (1 - x)", "with 1 - x instead of 1 - y"),
    (SIGMOID, "return g + y * (1 - y)", "with g added"),
    (TOTAL, "return np.expand_dims(g, axis) * x", "multiplied by x"),
    (TOTAL, "return np.full(x.shape, g.sum())", "the g of its own sum"),
    (MATMUL_A, "return g * b", "a matrix product, and so is its rule"),
    (MATMUL_A, "return g.T @ b", "with g transposed"),
    (MATMUL_B, "return a.T @ np.ones_like(g)", "is not used"),
    (SOFTMAX, "return y * (g - np.sum(g * y, axis=1))", "without keepdims"),
    (SOFTMAX, "return y * (g + np.sum(g * y, axis=1, keepdims=True))", "by adding the sum"),
    (SOFTMAX, "return g * y - np.sum(g * y, axis=1, keepdims=True)", "both terms have it"),
    (YOUNGEST_FIRST, "sorted(found, key=lambda n: n.value, reverse=True)", "at 0.5"),
    ("x.grad += slope * number.grad", "x.grad += slope * number.value", "in the product itself"),
    (BELL_X, "y * -2 * x / width**2", "is not used"),
    (BELL_WIDTH, "g * y * -2 * x / width**2", "from the rule of x"),
    (BELL_X, BELL_WIDTH, "Are the two rules swapped"),
    (BELL_X, BELL_WIDTH, "it is checked only when the rule of x is right"),
    (STEP, "p -= step * p.grad", "Perhaps this helps: A parameter may have no gradient"),
]

RIGHT = [  # the sample's way, another one that is right too
    (TOTAL, "return np.repeat(np.expand_dims(g, axis), x.shape[axis], axis=axis)"),
    (SUM_TO, "for i in short:\n        g = g.sum(axis=i, keepdims=True)\n    return g"),
    (MATMUL_A, 'return np.einsum("nm,km->nk", g, b)'),
    (SOFTMAX, "return y * g - y * (y * g).sum(axis=-1)[:, None]"),
    (STEP, "p.data = p.data - step * p.grad"),
]

LIBRARY = [  # right, the library's function in its place
    (
        SOFTMAX,
        "t = ta.tensor(x, requires_grad=True)\n    softmax(t).backward(g)\n    return t.grad",
    ),
    (
        "g = g.sum(axis=tuple(range(g.ndim - len(shape))))",
        "from tinyattn.engine.autograd import unbroadcast\n"
        "    return unbroadcast(g, np.zeros(shape), '', '')",
    ),
    (MATMUL_A, "return ta.grad(lambda a: np.sum((a @ b) * g))(a)"),
]
