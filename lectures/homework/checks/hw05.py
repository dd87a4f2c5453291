"""The checks of homework 05: networks on sets, tested, trained and repaired."""

import numpy as np

from tinyattn.course.checks.judging import (
    NO_RETURN,
    Homework,
    array_of,
    expect,
    judge,
    number_of,
)

homework = Homework("hw05")


def sets(case, N=5, F=3):
    """A set, and a permutation that is not its own inverse."""
    N, F = case.size(N, 4, 7), case.size(F, 2, 4)
    p = np.array([2, 0, 3, 4, 1]) if case.number == 0 else np.roll(case.rng.permutation(N), 1)
    while case.number and (np.array_equal(p, np.argsort(p)) or p[0] == 0):
        p = case.rng.permutation(N)
    return case.normal(N, F), p


# --- task 1


def error_of(its, name, kind, X, p):
    import numpy as np

    import tinyattn as ta

    functions = {
        "sum": lambda X: X.sum(axis=0),
        "first row": lambda X: X[0],
        "minus the first row": lambda X: ta.tensor(-np.asarray(X[0])),
        "exp minus mean": lambda X: np.exp(X) - X.mean(axis=0),
        "numbered": lambda X: X * np.arange(1, len(X) + 1)[:, None],
        "reversed": lambda X: X[::-1],
    }
    return getattr(its, name)(functions[kind], X, p)


def ask_error(student, name, kind, X, p):
    hint = "F takes a set [N, d]. PX is X[p]. If results are Tensors, array(...) makes arrays."
    came = student.ask(error_of, name, kind, X, p, hint=hint)
    expect(came is not None, f"{name} returned None. Is the `return` missing?", NO_RETURN)
    return float(number_of(came, name))


@homework.part(1, "invariance")
def invariance(student, case):
    X, p = sets(case)
    e = ask_error(student, "invariance_error", "sum", X, p)
    expect(
        abs(e) < 1e-9,
        f"invariance_error: the sum of all rows is invariant, but your error is {e:.3f}",
        "an invariant function is called not invariant",
    )
    true = np.abs(X[p[0]] - X[0]).max()
    for kind in ("first row", "minus the first row"):  # one has its largest difference below 0
        e = ask_error(student, "invariance_error", kind, X, p)
        expect(
            not np.isclose(e, 0),
            "invariance_error: the first row is not invariant, but your error is 0. "
            "Is F called on the permuted set?",
            "F is not called on the permuted set",
        )
        expect(
            np.isclose(e, true),
            f"invariance_error: for {kind} expected {true:.4f}, but your error is {e:.4f}. Return "
            "the largest of the absolute differences, not their sum, their mean or a signed one",
            "not the largest absolute difference",
        )


@homework.part(1, "equivariance")
def equivariance(student, case):
    X, p = sets(case)

    def f(X):
        return np.exp(X) - X.mean(axis=0)

    e = ask_error(student, "equivariance_error", "exp minus mean", X, p)
    inverse = np.abs(f(X[p]) - f(X)[np.argsort(p)]).max()
    expect(
        not np.isclose(e, inverse),
        "equivariance_error: you used the inverse permutation. Row n of PX is row p[n] of X, and "
        "in the same way P F(X) is F(X)[p]",
        "the inverse permutation",
    )
    expect(
        not np.isclose(e, np.abs(f(X[p]) - f(X)).max()),
        "equivariance_error: this is the test for invariance. For equivariance, F(X) must be "
        "permuted, too",
        "the test for invariance instead of equivariance",
    )
    expect(
        abs(e) < 1e-9,
        f"equivariance_error: exp(x) minus the mean is equivariant, but your error is {e:.3f}",
        "an equivariant function is called not equivariant",
    )
    numbers = np.arange(1, len(X) + 1)[:, None]
    true = np.abs(X[p] * numbers - (X * numbers)[p]).max()
    e = ask_error(student, "equivariance_error", "numbered", X, p)
    expect(
        np.isclose(e, true),
        "equivariance_error: a layer that multiplies row n by n + 1 is not equivariant: expected "
        f"{true:.4f}, but your error is {e:.4f}",
        "not the largest absolute difference",
    )
    true = np.abs(X[p][::-1] - X[::-1][p]).max()
    e = ask_error(student, "equivariance_error", "reversed", X, p)
    expect(
        np.isclose(e, true),
        "equivariance_error: a layer that reverses the order of the rows is not equivariant: "
        f"expected {true:.4f}, but your error is {e:.4f}. Compare row with row: F(X[p]), F(X)[p]",
        "rows are not compared with their own rows",
    )


# --- task 2


def kind_of(F):
    """The symmetry of F, tested with twenty permutations."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(5, 3))
    shuffles, y = [rng.permutation(5) for _ in range(20)], F(X)
    if max(np.abs(F(X[p]) - y).max() for p in shuffles) < 1e-9:
        return "invariant"
    if np.shape(y)[:1] == (5,) and max(np.abs(F(X[p]) - y[p]).max() for p in shuffles) < 1e-9:
        return "equivariant"
    return "neither"


def nearest_other(X):
    d2 = np.square(X[:, None] - X).sum(axis=-1) + 1e9 * np.eye(len(X))
    return X - X[d2.argmin(axis=1)]


FUNCTIONS = {
    "softmax over the rows": lambda X: np.exp(X) / np.exp(X).sum(axis=0),
    "Gram matrix X Xᵀ, its largest eigenvalue": lambda X: np.linalg.eigvalsh(X @ X.T)[-1],
    "running sum": lambda X: np.cumsum(X, axis=0),
    "row with the largest first feature": lambda X: X[X[:, 0].argmax()],
    "each row minus the row before it": lambda X: X - np.roll(X, 1, axis=0),
    "each row minus the nearest other row": nearest_other,
}


@homework.part(2, "who is what", hidden=())
def predictions(student, case):
    came = student.predictions()
    expect(isinstance(came, dict), "predictions: return a dictionary, name → kind")
    missing = [name for name in FUNCTIONS if name not in came]
    expect(not missing, f"no prediction yet for {missing}", "no prediction for some")
    kinds = ["invariant", "equivariant", "neither"]
    strange = [came[name] for name in FUNCTIONS if came[name] not in kinds]
    expect(
        not strange,
        f"predictions: each kind must be one of {kinds}, got {strange[:1]}",
        "a word other than the three",
    )
    wrong = [name for name, F in FUNCTIONS.items() if came[name] != kind_of(F)]
    expect(
        not wrong,
        "the tests disagree about: " + "; ".join(wrong) + ". Permute three rows on paper: what "
        "happens to the result?",
        f"wrong about: {wrong[0] if wrong else ''}",
    )


# --- task 3


def deep(its, x, mask):
    import numpy as np

    return its.deep_sets(lambda x: np.cos(x) + 1, lambda z: z * 10 + 3, x, mask)


def phi(x):
    return np.cos(x) + 1  # φ(0) is not 0


def rho(z):
    return z * 10 + 3


def some_sets(case):
    N, d = case.size(4, 3, 6), case.size(2, 3, 4)
    counts = np.array([N, N // 2, 0])
    return case.normal(3, N, d), np.arange(N) < counts[:, None]


def deep_reference(x, mask):
    rows = [
        rho(phi(x[b, m]).mean(axis=0)) if m.any() else rho(0 * x[b, 0]) for b, m in enumerate(mask)
    ]
    return np.stack(rows)


MASK_HINT = "x is [B, N, d] and mask [B, N]: give the mask an axis for the features, [:, :, None]."


@homework.part(3, "sets of different size")
def deep_sets(student, case):
    x, mask = some_sets(case)
    count = np.maximum(mask.sum(axis=1, keepdims=True), 1)
    there = mask[:, :, None]
    with np.errstate(all="ignore"):
        empty = rho((phi(x) * there).sum(axis=1) / mask.sum(axis=1, keepdims=True))
    mistakes = {
        "when φ is applied after the padding was set to 0: φ(0) is not 0, mask the result of φ": (
            rho(phi(x * there).sum(axis=1) / count)
        ),
        "from a mean over all N positions, padding included": rho((phi(x) * there).mean(axis=1)),
        "from a sum, without dividing by the number of elements": rho((phi(x) * there).sum(axis=1)),
        "when padding is summed, too: the mask is only in the number of elements": rho(
            phi(x).sum(axis=1) / count
        ),
        "without the mask": rho(phi(x).mean(axis=1)),
        "without ρ": (phi(x) * there).sum(axis=1) / count,
        "when the empty set is divided by 0": empty,
        "by dividing by the number of elements in all sets together: divide each set by "
        "its own number": rho((phi(x) * there).sum(axis=1) / max(mask.sum(), 1)),
        "by dividing after ρ: apply ρ after the mean": rho((phi(x) * there).sum(axis=1)) / count,
        "from the maximum instead of the mean": rho((phi(x) * there).max(axis=1)),
        "with ρ applied to every element: apply it after the mean": np.sum(
            rho(phi(x)) * there, axis=1
        )
        / count,
    }
    judge(student.ask(deep, x, mask, hint=MASK_HINT), deep_reference(x, mask), mistakes)


@homework.part(3, "padding that is nan")
def padding(student, case):
    x, mask = some_sets(case)
    right = deep_reference(x, mask)
    x[~mask] = np.nan
    came = student.ask(deep, x, mask, hint=MASK_HINT)
    expect(
        came is None or not np.isnan(array_of(came)).any(),
        "NaN in the padding reaches the output, because nan · 0 is nan. Choose with np.where "
        "instead of multiplying",
        "nan in the padding reaches the output",
    )
    judge(came, right)


def deep_gradient(its, x, mask, arriving):
    import numpy as np

    import tinyattn as ta

    t = ta.tensor(x, requires_grad=True)
    y = its.deep_sets(lambda x: np.cos(x) + 1, lambda z: z * 10 + 3, t, mask)
    if not isinstance(y, ta.Tensor) or not y.requires_grad:
        return None
    y.backward(arriving)
    return t.grad


@homework.part(3, "gradient")
def deep_sets_gradient(student, case):
    x, mask = some_sets(case)
    arriving = case.normal(3, x.shape[2])
    came = student.ask(deep_gradient, x, mask, arriving, hint=MASK_HINT)
    expect(
        came is not None,
        "the gradient does not reach x. Use NumPy functions on x itself, not .numpy()",
        "when the gradient is lost",
    )
    count = np.maximum(mask.sum(axis=1), 1)[:, None, None]
    right = np.where(mask[:, :, None], -np.sin(x) * 10 * arriving[:, None] / count, 0)
    everywhere = -np.sin(x) * 10 * arriving[:, None] / count
    judge(
        came,
        right,
        {"when the padding gets a gradient": everywhere},
        what=("the gradient with respect to x"),
    )


# --- task 4


def one_step(its, W, x, mask, y, lr):
    """A step of a linear layer with old gradients: the loss, and the weights after it."""
    import numpy as np

    from tinyattn import nn, optim

    class Model(nn.Module):
        """The mean of the elements, then a linear layer."""

        def __init__(self):
            self.layer = nn.Linear(len(W), 1, rng=0)

        def forward(self, x, mask):
            mean = np.where(mask[:, :, None], x, 0).sum(axis=1) / mask.sum(axis=1, keepdims=True)
            return self.layer(mean)[:, 0]

    model = Model().astype(np.float64)
    model.layer.weight.data, model.layer.bias.data = W[None], np.zeros(1)
    optimizer = optim.SGD(model.parameters(), lr=lr)
    np.mean((model(x, mask) - y) ** 2).backward()
    loss = its.train_step(model, optimizer, x, mask, y)
    return loss, hasattr(loss, "item"), model.layer.weight.data[0], model.layer.bias.data


@homework.part(4, "the training step")
def train_step(student, case):
    B, N, d = case.size(6, 4, 8), 3, case.size(3, 2, 5)
    x, mask = case.normal(B, N, d), np.arange(N) < case.rng.integers(1, N + 1, B)[:, None]
    W, y, lr = case.normal(d), case.normal(B), 0.05 + 0.05 * case.number
    value, has_item, after, bias = student.ask(one_step, W, x, mask, y, lr)
    expect(value is not None, "train_step returned None. Is the `return` missing?", NO_RETURN)
    expect(
        has_item,
        "train_step: return the loss itself, a Tensor, not a number",
        "a number instead of the loss",
    )
    mean = (x * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
    difference = mean @ W - y
    slope = 2 * difference @ mean / B
    mistakes = {
        "when the weights did not move: is optimizer.step() missing?": W,
        "from the gradients of this step plus those of the previous step: gradients add up until "
        "optimizer.zero_grad() clears them": W - 2 * lr * slope,
        "when the step increases the loss": W + lr * slope,
        "from the sum of the squares instead of the mean": W - lr * B * slope,
        "from half the squares instead of the squares themselves": W - lr * slope / 2,
    }
    judge(after, W - lr * slope, mistakes, what="train_step, the weights")
    judge(bias, -lr * np.array([2 * difference.mean()]), what="train_step, the bias")
    right = np.square(difference).mean()
    judge(number_of(value, "the loss"), right, what="the loss that train_step returns")


def members(x, mask):
    """The elements of one set as a sorted list of rows."""
    return sorted(map(tuple, x[mask].tolist()))


@homework.part(4, "every element twice")
def twice(student, case):
    x, mask = some_sets(case)
    B, N, d = x.shape
    came = student.twice(x, mask, hint="Join along axis 1: x is [B, N, d], mask is [B, N].")
    expect(came is not None, "twice returned None. Is the `return` missing?", NO_RETURN)
    expect(
        isinstance(came, tuple | list) and len(came) == 2,
        "twice: return two arrays, x and mask",
        "not two arrays",
    )
    y, there = (array_of(a) for a in came)
    expect(
        y.shape == (B, 2 * N, d) and there.shape == (B, 2 * N),
        f"twice: expected shapes {(B, 2 * N, d)} and {(B, 2 * N)}, but yours are {y.shape} and "
        f"{there.shape}",
        "with other shapes than asked for",
    )
    there = there.astype(bool)
    expect(
        (there.sum(axis=1) == 2 * mask.sum(axis=1)).all(),
        f"twice: the sets should have {(2 * mask.sum(axis=1)).tolist()} elements, but yours have "
        f"{there.sum(axis=1).tolist()}. Does padding count as an element?",
        "another number of elements",
    )
    for b in range(B):
        once, now = members(x[b], mask[b]), members(y[b], there[b])
        expect(
            now == sorted(once + once),
            f"twice: set {b} does not contain each of its elements twice. Are x and mask doubled "
            "in the same order?",
            "not each element twice",
        )


# --- task 5


def repaired(its, X, W1, b1, W2, b2):
    """The output of the layer with these weights."""
    import numpy as np

    import tinyattn as ta

    layer = its.Repaired(X.shape[1], 0).astype(np.float64)
    for part, W, b in ((layer.own, W1, b1), (layer.others, W2, b2)):
        part.weight.data, part.bias.data = W, b
    return layer(ta.tensor(X))


@homework.part(5, "the repaired layer")
def repair(student, case):
    X, _ = sets(case)
    hint = "x is [N, d]: rows are elements. The mean of the others is [N, d] too: one row for each."
    F = X.shape[1]
    W1, b1, W2, b2 = case.normal(F, F), case.normal(F), case.normal(F, F), case.normal(F)
    y = student.ask(repaired, X, W1, b1, W2, b2, hint=hint)
    expect(y is not None, "forward returned None. Is the `return` missing?", NO_RETURN)

    def layer(others):
        return X @ W1.T + b1 + others @ W2.T + b2

    def centred(z):
        return z - z.mean(axis=1, keepdims=True)

    N = len(X)
    mine = np.stack([np.delete(X, i, 0).mean(axis=0) for i in range(N)])
    z = layer(mine)
    everyone, first = np.tile(X.mean(axis=0), (N, 1)), np.tile(X[1:].mean(axis=0), (N, 1))
    mistakes = {
        "with the mean of *all* elements, i included, instead of the others": centred(
            layer(everyone)
        ),
        "with the first element excluded for all elements": centred(layer(first)),
        "with the sum of the others, not their mean": centred(layer(mine * (N - 1))),
        "by dividing by N: there are N - 1 others": centred(layer(mine * (N - 1) / N)),
        "without subtracting the mean over the features": z,
        "with one mean over everything subtracted: each element has its own (axis=1)": z - z.mean(),
        "with the mean taken over the elements: it should be over the features (axis=1)": z
        - z.mean(axis=0),
        "with the mean of the first element subtracted everywhere (y[:1])": z - z[:1].mean(),
    }
    judge(y, centred(z), mistakes)


# --- task 6


@homework.part(6, "equivariant")
def own_is_equivariant(student, case):
    for X in _own_sets(case):
        y = array_of(student.own(X, hint="own takes [N, d] for any N and returns [N, d]."))
        expect(
            y.shape == X.shape,
            f"own: expected shape {X.shape}, but yours has shape {y.shape}",
            "with another shape than asked for",
        )
        expect(np.isfinite(y.astype(float)), "own: the result contains NaN or infinity")
        p = case.rng.permutation(len(X))
        gap = np.abs(array_of(student.own(X[p])) - y[p]).max()
        expect(
            gap < 1e-9,
            f"own: it is not equivariant: F(PX) and P F(X) differ by {gap:.2g}",
            "not equivariant",
        )
        heard = array_of(student.own(np.concatenate([X[:1], case.normal(len(X) - 1, 3)])))
        expect(
            np.abs(heard[0] - y[0]).max() > 1e-6,
            "own: each row must depend on the other elements, but with other elements in the set, "
            "the first row of the result stays the same",
            "no row depends on the others",
        )


@homework.part(6, "more than the mean")
def own_is_more_than_the_mean(student, case):
    X = _own_sets(case)[0]
    others = case.normal(len(X) - 1, 3)
    others += X[1:].mean(axis=0) - others.mean(axis=0)
    y, moved = array_of(student.own(X)), array_of(student.own(np.concatenate([X[:1], others])))
    expect(
        y.shape == X.shape == moved.shape and np.abs(moved[0] - y[0]).max() > 1e-6,
        "own: with other elements that have the same mean, the first row of the result stays the "
        "same, so you use the others only through their mean or sum. Use pairs, a maximum or a "
        "distance",
        "the others are used only through their mean",
    )


def _own_sets(case):
    return [case.normal(case.size(N, 4, 8), 3) for N in (5, 4)]
