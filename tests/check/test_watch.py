"""Each slip of a training loop is named once, at its line; right loops are left alone."""

import warnings

import numpy as np
import pytest

import tinyattn as ta
import tinyattn.functional as F
from tests.check.slips import CLASS, X, Y, error_of, linear, only, slips
from tinyattn import check, nn, optim, training
from tinyattn.engine import autograd
from tinyattn.engine.dispatch import HANDLED_FUNCTIONS

rng = np.random.default_rng(1)


# ---------------------------------------------------------------- losses


def test_predictions_in_a_column_and_labels_in_a_row():
    model = linear()
    found = slips(model, lambda: ((model(X) - Y) ** 2).mean())
    only(found, "subtract of [16, 1] and [16] gives [16, 16]", "(model(X) - Y) ** 2")


def test_a_product_of_such_shapes():
    model = linear()

    def loss():
        p = F.sigmoid(model(X))
        return -(CLASS * np.log(p) + (1 - CLASS) * np.log(1 - p)).mean()

    only(slips(model, loss), "multiply of [16] and [16, 1] gives [16, 16]", "CLASS * np.log(p)")


def test_an_accuracy_of_such_shapes():
    model = linear()

    def loss():
        np.mean(model(X) == Y)
        return F.mse_loss(model(X)[:, 0], Y)

    only(slips(model, loss), "equal of [16, 1] and [16] gives [16, 16]", "np.mean(model(X) == Y)")


def test_an_accuracy_after_many_steps():
    model = linear()
    optimizer = optim.SGD(model.parameters(), lr=1e-3)

    def loop():
        for _ in range(3):
            for _ in range(8):
                optimizer.zero_grad()
                F.mse_loss(model(X)[:, 0], Y).backward()
                optimizer.step()
            with ta.no_grad():
                np.mean((model(X) > 0) == CLASS)

    found = slips(model, None, optimizer, loop=loop)
    only(found, "equal of [16, 1] and [16] gives [16, 16]", "np.mean((model(X) > 0) == CLASS)")


def test_a_metric_of_fit():
    def hits(model, x, y):
        return np.mean((model(x) > 0) == y)

    def loss(model, x, y):
        return F.binary_cross_entropy_with_logits(model(x)[:, 0], y.astype("f"))

    model, data = linear(), (X, CLASS)
    optimizer = optim.SGD(model.parameters(), lr=1e-3)
    options = {"valid": data, "metric": hits, "epochs": 3, "batch_size": 2, "quiet": True}
    with pytest.warns(check.SlipWarning, match=r"equal of \[16, 1\] and \[16\]") as caught:
        training.fit(model, loss, optimizer, data, **options)
    assert len(caught) == 1 and caught[0].filename == __file__


def test_distances_of_all_pairs_are_meant():
    model = linear()

    def loss():
        z = model(X)
        pairs = z - z[:, 0]  # every point and every other one
        near = np.exp(-((z - np.arange(16)) ** 2)).sum(axis=1)  # to 16 fixed points
        return np.mean(pairs**2) + np.mean((X[:, :1] - X[:, 0]) ** 2) - np.mean(near)

    assert slips(model, loss) == []


def test_softmax_before_the_cross_entropy():
    model = linear(2)
    found = slips(model, lambda: F.cross_entropy(F.softmax(model(X)), CLASS))
    only(found, "cross_entropy gets probabilities", "F.softmax(model(X))")
    assert slips(model, lambda: F.cross_entropy(model(X), CLASS)) == []


def test_cross_entropy_of_one_column():
    model = linear(1)
    # that all 64 labels are 0, and all gradients, follows from it
    found = slips(model, lambda: F.cross_entropy(model(X), np.zeros(16, int)))
    only(found, "cross_entropy of one class is always 0", "F.cross_entropy(model(X), np.zeros")


def test_nll_loss_of_scores_and_of_probabilities():
    model = linear(2)
    only(slips(model, lambda: F.nll_loss(model(X), CLASS)), "nll_loss gets scores")
    found = slips(model, lambda: F.nll_loss(F.softmax(model(X)), CLASS))
    only(found, "nll_loss gets probabilities")
    assert slips(model, lambda: F.nll_loss(F.log_softmax(model(X)), CLASS)) == []


def test_sigmoid_before_a_loss_that_takes_logits():
    model = linear()

    def loss():
        return F.binary_cross_entropy_with_logits(F.sigmoid(model(X))[:, 0], CLASS.astype("f"))

    only(slips(model, loss), "gets the output of a sigmoid")


def test_a_relu_before_the_loss():
    model = nn.Sequential(nn.Linear(3, 2, rng=0), nn.ReLU())
    only(slips(model, lambda: error_of(model)), "Remove the last ReLU", "F.cross_entropy(model")
    labels = CLASS.astype("f")
    for scores in (lambda: model(X)[:, 0], lambda: np.maximum(model[0](X), 0)[:, 0]):
        found = slips(model, lambda: F.binary_cross_entropy_with_logits(scores(), labels))  # noqa: B023
        only(found, "no probability is below 0.5", "binary_cross_entropy_with_logits")
    hidden = nn.Sequential(nn.Linear(3, 8, rng=0), nn.ReLU(), nn.Linear(8, 2, rng=1))
    assert slips(hidden, lambda: error_of(hidden)) == []


def test_scores_that_a_sigmoid_limits():
    model = linear(2)
    found = slips(model, lambda: F.cross_entropy(F.sigmoid(model(X)), CLASS))
    only(found, "cross_entropy gets the output of a sigmoid", "F.cross_entropy(F.sigmoid")
    far = slips(model, lambda: F.cross_entropy(10 * F.sigmoid(model(X)), CLASS))
    assert far == []  # a factor gives them back their range
    # the σ of a layer of GAT, which homework 09 trains with cross-entropy
    assert slips(model, lambda: F.cross_entropy(np.tanh(model(X)), CLASS)) == []


def test_kl_div_of_scores_and_of_probabilities():
    model, p = linear(2), np.float32([[0.9, 0.1]] * 16)
    found = slips(model, lambda: F.kl_div(F.softmax(model(X)), p))
    only(found, "kl_div gets probabilities", "F.kl_div")
    only(slips(model, lambda: F.kl_div(model(X), p)), "kl_div gets scores", "F.kl_div")
    for log_target in (False, True):
        right = F.softmax(p).numpy() if not log_target else F.log_softmax(p).numpy()
        loss = lambda: F.kl_div(F.log_softmax(model(X)), right, log_target=log_target)  # noqa: B023
        assert slips(model, loss) == []


def test_inputs_of_large_numbers():
    for sizes in ([1e6, 1e6, 1e6], [1, 1, 1e6]):  # all of them, or one column
        large = X * np.array(sizes, np.float32)
        model = nn.Sequential(nn.Linear(3, 8, rng=0), nn.Tanh(), nn.Linear(8, 2, rng=1))
        found = slips(model, lambda: F.cross_entropy(model(large), CLASS))  # noqa: B023
        only(found, "Standardize each feature", "model(large)")
        normal = nn.Sequential(nn.BatchNorm1d(3), nn.Linear(3, 2, rng=0))
        assert slips(normal, lambda: F.cross_entropy(normal(large), CLASS)) == []  # noqa: B023
    model = nn.Conv2d(1, 2, 3, rng=0)
    image = rng.normal(size=(2, 1, 5, 5)).astype("f") * 1e6
    assert "Standardize each feature" in slips(model, lambda: np.mean(model(image)))[0][0]
    pixels = rng.integers(256, size=(2, 1, 5, 5)).astype("f")
    assert slips(model, lambda: np.mean(model(pixels / 255) ** 2)) == []


def test_classes_on_the_last_axis():
    model = nn.Linear(3, 4, rng=0)
    tokens, target = rng.normal(size=(2, 4, 3)).astype("f"), rng.integers(4, size=(2, 4))
    only(
        slips(model, lambda: F.cross_entropy(model(tokens), target)), "linear layer puts them last"
    )
    assert slips(model, lambda: F.cross_entropy(model(tokens).swapaxes(1, 2), target)) == []


# ---------------------------------------------------------------- masks

TOKENS = rng.normal(size=(4, 4, 6)).astype(np.float32)
PAST = np.tri(4, dtype=bool)
KEEP = np.arange(4) < np.array([4, 2, 3, 2])[:, None]  # [B, S]


def attention_loss(mask, bias=None):
    model = nn.MultiheadAttention(6, 2, rng=0)
    return model, lambda: np.mean(model(TOKENS, TOKENS, TOKENS, mask)[0] ** 2)


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (~PAST, "see later positions only"),
        (~KEEP[:, None, :], "hides their beginnings, and sequence 0 sees no key"),
        (KEEP, "looks like one row for each sequence"),
    ],
    ids=["future", "padding", "batch"],
)
def test_masks_that_hide_the_wrong_keys(mask, words):
    only(slips(*attention_loss(mask)), words, "model(TOKENS")


@pytest.mark.parametrize("mask", [None, PAST, KEEP[:, None, :], KEEP[:, ::-1][:, None, :]])
def test_masks_that_are_right(mask):
    assert slips(*attention_loss(mask)) == []


def test_a_mask_of_an_attention_written_by_hand():
    model = nn.Linear(6, 6, rng=0)

    def loss(mask):
        q = model(TOKENS)
        scores = np.where(mask, q @ q.swapaxes(1, 2), -np.inf)
        return np.mean((F.softmax(scores) @ q) ** 2)

    found = slips(model, lambda: loss(~PAST | np.eye(4, dtype=bool)))
    assert found == []  # a reader from right to left is no mistake
    assert slips(model, lambda: loss(PAST)) == []


def by_hand(hide):
    """The loss of an attention by hand, whose scores `hide` changes."""
    model = nn.Linear(6, 6, rng=0)

    def loss():
        q = model(TOKENS)
        return np.mean((F.softmax(hide(q @ q.swapaxes(1, 2))) @ q) ** 2)

    return model, loss


@pytest.mark.parametrize("mask", [PAST, KEEP[:, None, :]], ids=["future", "padding"])
def test_inverted_masks_of_an_attention_written_by_hand(mask):
    words = "later positions only" if mask is PAST else "hides their beginnings"
    low = np.float32(-1e9)
    only(slips(*by_hand(lambda s: np.where(mask, low, s))), words, "np.where(mask, low, s)")
    added = np.where(mask, low, np.float32(0))
    only(slips(*by_hand(lambda s: s + added)), words, "s + added")
    only(slips(*by_hand(lambda s: s + added)), "infinity must be added to the other keys")
    assert slips(*by_hand(lambda s: np.where(~mask, low, s))) == []
    right = np.where(mask, np.float32(0), low)
    assert slips(*by_hand(lambda s: s + right)) == []


def test_an_added_mask_of_a_batch():
    added = np.where(KEEP, 0, np.float32(-1e9))
    only(slips(*by_hand(lambda s: s + added)), "looks like one row for each sequence", "s + added")
    assert slips(*by_hand(lambda s: s + added[:, None, :])) == []


# ---------------------------------------------------------------- the loop


def test_forgotten_zero_grad():
    model = linear()
    optimizer = optim.SGD(model.parameters(), lr=1e-3)

    def loop():
        for _ in range(7):
            F.mse_loss(model(X)[:, 0], Y).backward()
            optimizer.step()

    only(slips(model, None, optimizer, loop=loop), "Call optimizer.zero_grad()", "backward()")


def test_gradients_that_are_added_up_on_purpose():
    model = linear()
    optimizer = optim.SGD(model.parameters(), lr=1e-3)

    def loop():
        for step in range(12):
            F.mse_loss(model(X)[:, 0], Y).backward()
            if step % 3 == 2:
                optimizer.step()
                model.zero_grad()

    assert slips(model, None, optimizer, loop=loop) == []


def test_a_step_without_a_gradient():
    model = linear()
    optimizer = optim.SGD(model.parameters(), lr=1e-3)

    def loop():
        for _ in range(7):
            loss = F.mse_loss(model(X)[:, 0], Y)
            loss.backward()
            optimizer.zero_grad()
            optimizer.step()

    only(
        slips(model, None, optimizer, loop=loop), "no parameter has a gradient", "optimizer.step()"
    )

    def no_backward():
        for _ in range(7):
            F.mse_loss(model(X)[:, 0], Y)
            optimizer.step()

    only(slips(model, None, optimizer, loop=no_backward), "call loss.backward() first")


def test_an_optimizer_of_another_model():
    model, other = linear(), linear()
    found = slips(model, lambda: F.mse_loss(model(X)[:, 0], Y), optim.SGD(other.parameters()))
    only(found, "holds no parameter of this model")


def test_a_parameter_exchanged_after_the_optimizer_was_made():
    model = nn.Sequential(linear(4), nn.Tanh(), nn.Linear(4, 1, rng=1))
    optimizer = optim.SGD(model.parameters(), lr=1e-3)
    model[2] = nn.Linear(4, 1, rng=2)
    found = slips(model, lambda: F.mse_loss(model(X)[:, 0], Y), optimizer)
    only(found, "2.bias, 2.weight of the model were made after the optimizer")
    model = nn.Sequential(linear(4), nn.Tanh(), nn.Linear(4, 1, rng=1))
    optimizer = optim.SGD(model.parameters(), lr=1e-3)
    model[0].weight = nn.Parameter(model[0].weight.data)
    found = slips(model, lambda: F.mse_loss(model(X)[:, 0], Y), optimizer)
    only(found, "0.weight of the model was made after the optimizer")


def test_an_optimizer_of_a_part_of_the_model_is_meant():
    model = nn.Sequential(linear(4), nn.Tanh(), nn.Linear(4, 1, rng=1))
    optimizer = optim.SGD(model[2].parameters(), lr=1e-3)
    assert slips(model, lambda: F.mse_loss(model(X)[:, 0], Y), optimizer) == []


def test_training_in_evaluation_mode():
    model = nn.Sequential(linear(4), nn.Dropout(0.5, rng=0), nn.Linear(4, 1, rng=1)).eval()
    found = slips(model, lambda: F.mse_loss(model(X)[:, 0], Y))
    only(found, "from the first step on, which changes what Dropout computes", "optimizer.step()")
    model = nn.Sequential(linear(4), nn.Dropout(0.0), nn.Linear(4, 1, rng=1)).eval()
    assert slips(model, lambda: F.mse_loss(model(X)[:, 0], Y)) == []


def test_training_goes_on_in_evaluation_mode_after_the_first_epoch():
    model = nn.Sequential(linear(4), nn.BatchNorm1d(4), nn.Dropout(0.5, rng=0), nn.Linear(4, 1))
    optimizer = optim.SGD(model.parameters(), lr=1e-3)

    def loop(again):
        for _ in range(3):
            if again:
                model.train()
            for _ in range(8):
                optimizer.zero_grad()
                F.mse_loss(model(X)[:, 0], Y).backward()
                optimizer.step()
            model.eval()

    found = slips(model, None, optimizer, loop=lambda: loop(False))
    only(found, "from step 9 on, which changes what BatchNorm1d and Dropout compute. Call")
    assert slips(model, None, optimizer, loop=lambda: loop(True)) == []


def test_an_optimizer_made_in_the_loop():
    model = linear()

    def loop():
        for _ in range(7):
            optimizer = optim.SGD(model.parameters(), lr=1e-3)
            optimizer.zero_grad()
            F.mse_loss(model(X)[:, 0], Y).backward()
            optimizer.step()

    found = slips(model, None, loop=loop)
    only(found, "step() of this optimizer was never called")


def test_a_learning_rate_that_is_too_high():
    model = linear()
    found = slips(model, lambda: F.mse_loss(model(X)[:, 0], Y), optim.SGD(model.parameters(), lr=5))
    only(found, "the learning rate 5 is probably too high")


# steps 0 and 77 to 96 of eight layers of filters (lecture 03) on sentences of 64 examples with 0 to
# 4 clauses, at twice the lecture's rate: two batches of other sentences, and it goes on learning
SPIKE = [0.700, 0.686, 0.666, 0.638, 0.346, 0.452, 0.221, 0.175, 7.102, 15.394, 0.139, 0.000]
SPIKE += [1.562, 1.095, 0.723, 0.510, 0.680, 0.658, 0.874, 0.570, 0.711]


def test_single_batches_with_a_large_loss_are_no_slip():
    class Weight(nn.Module):
        def __init__(self):
            self.w = nn.Parameter(np.ones(3, np.float32))

    def losses(values):
        model, values = Weight(), iter(values)
        return slips(model, lambda: np.sum(model.w - model.w.data) + next(values), steps=len(SPIKE))

    assert losses(SPIKE) == []
    lasting = SPIKE[:8] + [20 + v for v in SPIKE[8:]]
    only(losses(lasting), "the loss went from 0.7 to", "loss().backward()")


def test_numpys_warnings_come_once():
    model = linear()
    optimizer = optim.SGD(model.parameters(), lr=1e-3)

    def loop():
        with check.watch(model, optimizer):
            for _ in range(5):
                np.log(model(X) * 0)

    with pytest.warns(RuntimeWarning, match="divide by zero encountered") as caught:
        loop()
    assert len(caught) == 1 and caught[0].filename == __file__
    printed = warnings.formatwarning(caught[0].message, caught[0].category, "mine.py", 1, "")
    assert printed.startswith("mine.py:1: RuntimeWarning: \ndivide by zero encountered (NumPy's")


def test_a_second_kind_of_numpys_warnings_is_not_told():
    model = linear()

    def loop():
        with check.watch(model, optim.SGD(model.parameters(), lr=1e-3)):
            large = (model(X) * 0 + np.float32(3e38)) * 10
            np.log(large - large)

    with pytest.warns(RuntimeWarning, match="overflow encountered") as caught:
        loop()
    assert len(caught) == 1


def test_warnings_of_sums_name_the_users_line():
    """NumPy's sum runs Python code of its own, which is not where the mistake is."""
    model = linear()
    with pytest.warns(RuntimeWarning, match="overflow") as caught:
        with check.watch(model, optim.SGD(model.parameters(), lr=1e-3)):
            np.mean(model(X) * 0 + np.float32(3e38))
    assert [w.filename for w in caught] == [__file__]


def test_a_printed_warning_has_short_lines():
    other = optim.SGD(linear().parameters())
    with pytest.warns(check.SlipWarning) as caught, check.watch(linear(), other):
        pass
    text = str(caught[0].message)
    printed = warnings.formatwarning(caught[0].message, check.SlipWarning, "mine.py", 1, "x = 1")
    first, *lines, source = printed.splitlines()
    assert first == "mine.py:1: SlipWarning: " and source == "  x = 1"
    assert " ".join(lines) == text and max(map(len, lines)) <= 88


# ---------------------------------------------------------------- the model


class Inside(nn.Module):
    def __init__(self):
        self.first = nn.Linear(3, 4, rng=0)

    def forward(self, x):
        return nn.Linear(4, 1, rng=1)(np.tanh(self.first(x)))


class Plain(nn.Module):
    def __init__(self):
        self.first = nn.Linear(3, 4, rng=0)
        self.w = np.ones((4, 1), np.float32)

    def forward(self, x):
        return np.tanh(self.first(x)) @ self.w


class PlainFirst(nn.Module):
    """The product of two plain arrays is not recorded."""

    def __init__(self):
        self.w = np.ones((3, 4), np.float32)
        self.mean, self.table = np.zeros(3, np.float32), np.ones((16, 3), np.float32)
        self.second = nn.Linear(4, 1, rng=1)

    def forward(self, x):
        return self.second(np.tanh((x - self.mean + self.table) @ self.w))


class PlainCalled(PlainFirst):
    def __init__(self):
        super().__init__()
        self.w = self.w.T

    def forward(self, x):
        return self.second(np.dot(x, self.w.T))


class OfTheClass(nn.Module):
    w = nn.Parameter(np.ones((4, 1), np.float32))

    def __init__(self):
        self.first = nn.Linear(3, 4, rng=0)

    def forward(self, x):
        return np.tanh(self.first(x)) @ self.w


class Steps(nn.Module):
    def __init__(self):
        self.first, self.second = nn.Linear(3, 4, rng=0), nn.Linear(4, 1, rng=1)

    def forward(self, x):
        return self.second(np.heaviside(self.first(x), 0.5))


class Rounded(Steps):
    def forward(self, x):
        return self.second(np.sign(self.first(x)))


class Equal(Steps):
    def __init__(self):
        super().__init__()
        self.first.weight.data[:] = 0.1
        self.first.bias.data[:] = 0.0
        self.second.weight.data[:] = 0.1

    def forward(self, x):
        return self.second(np.tanh(self.first(x)))


@pytest.mark.parametrize(
    ("kind", "words", "source"),
    [
        (Inside, "a layer is made inside forward", "return nn.Linear(4, 1, rng=1)(np.tanh("),
        (Plain, "Plain.w [4, 1] is a plain array, so training", "np.tanh(self.first(x)) @ self.w"),
        (PlainFirst, "PlainFirst.w [3, 4] is a plain array, so training", ") @ self.w))"),
        (PlainCalled, "PlainCalled.w [4, 3] is a plain array, so training", "np.dot(x, self.w.T)"),
        (OfTheClass, "OfTheClass.w is an attribute of the class", None),
        (Steps, "because np.heaviside in this line has the slope 0", "np.heaviside(self"),
        (Rounded, "because np.sign in this line has the slope 0 everywhere", "np.sign(self"),
        (Equal, "all rows of first.weight [4, 3] are equal", None),
    ],
)
def test_slips_in_a_model(kind, words, source):
    model = kind()
    only(slips(model, lambda: F.mse_loss(model(X)[:, 0], Y)), words, source)


@pytest.mark.parametrize(
    ("step", "name"),
    [
        (lambda z: z.astype(int).astype(np.float32), ".astype(...) to whole numbers"),
        (lambda z: z // 1, "//"),
        (lambda z: np.where(z > 0, np.float32(1), np.float32(0)), ">"),
        (lambda z: np.argmax(z, axis=1)[:, None] * np.ones((1, 4), np.float32), "np.argmax"),
    ],
)
def test_other_functions_of_slope_0(step, name):
    model = nn.Sequential(linear(4), nn.Linear(4, 1, rng=1))
    found = slips(model, lambda: F.mse_loss(model[1](step(model[0](X)))[:, 0], Y))
    only(found, f"because {name} in this line has the slope 0 everywhere. Use a function with")


def test_an_accuracy_is_not_the_cause_of_an_unused_layer():
    model = nn.Sequential(linear(2), nn.Linear(2, 2, rng=1))
    hits = []

    def loss():
        z = model[0](X)
        hits.append(np.mean(np.argmax(z, axis=1) == CLASS))
        return F.cross_entropy(z, CLASS)

    assert slips(model, loss) == []


def test_a_dead_network():
    model = nn.Sequential(linear(4), nn.ReLU(), nn.Linear(4, 1, bias=False, rng=1))
    model[0].bias.data[:] = -100
    found = slips(model, lambda: F.mse_loss(model(X)[:, 0], Y))
    only(found, "was exactly 0 in 5 steps")


def test_a_cut_graph_is_named_in_the_error():
    model = linear()
    optimizer = optim.SGD(model.parameters(), lr=1e-3)
    with pytest.raises(RuntimeError) as caught, check.watch(model, optimizer):
        np.mean(np.round(model(X))).backward()
    assert "np.round in line" in "".join(caught.value.__notes__)
    model = linear(2)
    optimizer = optim.SGD(model.parameters(), lr=1e-3)
    with pytest.raises(RuntimeError) as caught, check.watch(model, optimizer):
        np.mean(np.argmax(model(X), axis=1) != CLASS).backward()
    assert "np.argmax in line" in "".join(caught.value.__notes__)


# ---------------------------------------------------------------- afterwards


def test_it_leaves_everything_as_it_was():
    model = linear()
    optimizer = optim.SGD(model.parameters(), lr=1e-3)
    before = autograd.record, autograd.backward_pass, dict(HANDLED_FUNCTIONS)
    method = ta.Tensor.numpy
    with pytest.raises(KeyError), check.watch(model, optimizer):
        raise KeyError
    assert (autograd.record, autograd.backward_pass, HANDLED_FUNCTIONS) == before
    assert ta.Tensor.numpy is method
    assert not {"step", "zero_grad"} & set(vars(optimizer))


def test_the_result_is_the_same():
    def trained(watched):
        model = nn.Sequential(linear(4), nn.Tanh(), nn.Linear(4, 1, rng=1))
        optimizer = optim.Adam(model.parameters(), lr=1e-2)

        def loop():
            for _ in range(8):
                optimizer.zero_grad()
                F.mse_loss(model(X)[:, 0], Y).backward()
                optimizer.step()

        if watched:
            with check.watch(model, optimizer):
                loop()
        else:
            loop()
        return [p.data for p in model.parameters()]

    for a, b in zip(trained(True), trained(False), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_rule_that_adds_into_its_gradient_is_named():
    """np.add.at writes into an array that is read-only, up to NumPy 2.4."""

    @ta.primitive
    def square(x):
        return x**2

    def rule(g, y, x):
        np.add.at(g, [0], np.float32(1))
        return g * 2 * x

    square.defvjp(rule)
    model = nn.Linear(3, 2, rng=0)
    optimizer = optim.SGD(model.parameters(), lr=0.01)
    x = np.ones((4, 3), np.float32)
    with pytest.raises(ValueError, match="square: .*writes"):
        with check.watch(model, optimizer):
            np.sum(2 * square(model(x)[:, 0])).backward()
    np.sum(2 * square(model(x)[:, 0])).backward()  # outside of a block nothing is compared


def trained(model, optimizer, steps=6):
    x = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with check.watch(model, optimizer):
            for _ in range(steps):
                optimizer.zero_grad()
                F.cross_entropy(model(x), np.array([0, 1, 2, 0, 1, 2])).backward()
                optimizer.step()
    return [str(w.message) for w in caught]


def test_a_learning_rate_of_0_is_named():
    model = nn.Linear(3, 3, rng=0)
    (said,) = trained(model, optim.SGD(model.parameters(), lr=0))
    assert "the learning rate was 0 in 5 steps" in said
    assert trained(model, optim.SGD(model.parameters(), lr=0.1)) == []


def test_a_network_of_zeros_is_named():
    model = nn.Sequential(nn.Linear(3, 8, rng=0), nn.Tanh(), nn.Linear(8, 3, rng=1))
    for p in model.parameters():
        p.data = np.zeros_like(p.data)
    (said,) = trained(model, optim.SGD(model.parameters(), lr=0.1))
    assert "all rows of 0.weight [8, 3] are equal" in said
    last = nn.Sequential(nn.Linear(3, 8, rng=0), nn.Tanh(), nn.Linear(8, 3, rng=1))
    last[2].weight.data = np.zeros_like(last[2].weight.data)  # as is often done, and trains
    assert trained(last, optim.SGD(last.parameters(), lr=0.1)) == []


# ---------------------------------------------------------------- axes, labels and layers


def test_a_softmax_over_the_batch():
    model = linear(2)

    def picked(axis):
        p = F.softmax(model(X), axis=axis)
        return -np.mean(np.log(p[np.arange(16), CLASS]))

    only(slips(model, lambda: picked(0)), "over the examples (axis 0)", "p[np.arange(16), CLASS]")
    assert slips(model, lambda: picked(1)) == []
    found = slips(model, lambda: F.nll_loss(F.log_softmax(model(X), axis=0), CLASS))
    only(found, "over the examples (axis 0)")


def test_labels_that_are_all_the_same():
    model = linear(2)
    only(slips(model, lambda: F.cross_entropy(model(X), 0 * CLASS)), "first 64 labels are 0")
    assert slips(model, lambda: F.cross_entropy(model(X), CLASS)) == []


def test_one_layer_several_times_in_a_list():
    model = nn.Sequential(*[nn.Linear(3, 3, rng=0)] * 2, nn.ReLU(), nn.Linear(3, 1, rng=1))
    only(slips(model, lambda: F.mse_loss(model(X)[:, 0], Y)), "entry 0 of Sequential is in it 2")
    act = nn.ReLU()
    model = nn.Sequential(nn.Linear(3, 3, rng=0), act, nn.Linear(3, 1, rng=1), act)
    model[2].bias.data[:] = 1
    assert slips(model, lambda: F.mse_loss(model(X)[:, 0], Y)) == []


# ---------------------------------------------------------------- the optimizer


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (lambda o: optim.CosineLR(o, 4), "fell to 0 in step 5 and rises again"),
        (lambda o: optim.LambdaLR(o, lambda t: max(0, 1 - t / 4)), "fell to 0 in step 5, and the"),
    ],
)
def test_a_schedule_of_epochs_that_is_stepped_with_each_batch(schedule, words):
    model = linear()
    optimizer = optim.SGD(model.parameters(), lr=1e-3)
    rates = schedule(optimizer)

    def loop(steps=12):
        for _ in range(steps):
            optimizer.zero_grad()
            F.mse_loss(model(X)[:, 0], Y).backward()
            optimizer.step()
            rates.step()

    only(slips(model, None, optimizer, loop=loop), words, "optimizer.step()")
    optimizer = optim.SGD(model.parameters(), lr=1e-3)
    rates = schedule(optimizer)
    assert slips(model, None, optimizer, loop=lambda: loop(4)) == []


def test_gradients_that_are_clipped_after_the_step():
    model = linear()
    optimizer = optim.SGD(model.parameters(), lr=1e-3)

    def loop(late):
        for _ in range(6):
            optimizer.zero_grad()
            F.mse_loss(model(X)[:, 0], Y).backward()
            if not late:
                optim.clip_grad_norm(model.parameters(), 1e-3)
            optimizer.step()
            if late:
                optim.clip_grad_norm(model.parameters(), 1e-3)

    only(slips(model, None, optimizer, loop=lambda: loop(True)), "between step() and zero_grad()")
    assert slips(model, None, optimizer, loop=lambda: loop(False)) == []


def test_a_learning_rate_that_rounding_removes():
    model = linear()
    optimizer = optim.SGD(model.parameters(), lr=1e-10)
    found = slips(model, lambda: F.mse_loss(model(X)[:, 0], Y), optimizer)
    only(found, "the changes are rounded away")
