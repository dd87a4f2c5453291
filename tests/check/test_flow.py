"""Cuts of the graph, losses that are left out and arrays that change are named at their lines."""

import numpy as np

import tinyattn as ta
import tinyattn.functional as F
from tests.check.slips import X, Y, linear, only, slips
from tinyattn import nn, optim


class Encoded(nn.Module):
    """An encoder whose result is taken out of the graph."""

    def __init__(self, cut):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(3, 4, rng=0), nn.Linear(4, 1, rng=1)
        self.cut = cut

    def forward(self, x):
        return self.decoder(np.tanh(self.cut(self.encoder(x))))


def test_an_encoder_that_is_cut_off():
    model = Encoded(lambda h: ta.tensor(h.numpy()))
    found = slips(model, lambda: F.mse_loss(model(X)[:, 0], Y))
    only(found, "no gradient reached encoder.bias, encoder.weight", "lambda h: ")
    frozen = Encoded(lambda h: h.detach())  # whoever writes detach() means it
    assert slips(frozen, lambda: F.mse_loss(frozen(X)[:, 0], Y)) == []


def test_results_that_are_detached_for_printing_are_no_cut():
    model, seen = linear(), []

    def loss():
        y = model(X)
        seen.append(y.numpy().mean())
        return F.mse_loss(y[:, 0], Y)

    assert slips(model, loss) == []


def test_an_array_that_is_filled_again_before_the_backward_pass():
    model, buffer = linear(), np.zeros_like(X)

    def loss(copy=lambda x: x):
        total = 0
        for k in range(3):
            buffer[:] = X + k
            total = total + F.mse_loss(model(copy(buffer))[:, 0], Y)
        return total

    only(slips(model, loss), "written to after this linear used it", "model(copy(buffer))")
    assert slips(model, lambda: loss(np.copy)) == []


def test_nan_in_the_data_is_not_blamed_on_the_learning_rate():
    for where in (0, 9):  # in the first steps, and when they are over
        model, calls = linear(), []

        def loss(model=model, calls=calls, where=where):
            calls.append(1)
            x = X.copy()
            x[2, 1] = np.nan if len(calls) > where else 0
            return F.mse_loss(model(x)[:, 0], Y)

        only(slips(model, loss, steps=15), "the data contain nan, which linear passes on")


def test_a_backward_pass_outside_of_the_loop_over_the_batches():
    model = linear()
    optimizer = optim.SGD(model.parameters(), lr=1e-3)

    def loop(inside=False):
        for _ in range(4):
            for k in range(0, 16, 4):
                loss = F.mse_loss(model(X[k : k + 4])[:, 0], Y[k : k + 4])
                if inside:
                    loss.backward()
            if not inside:
                loss.backward()
            optimizer.step()
            optimizer.zero_grad()

    only(slips(model, None, optimizer, loop=loop), "4 losses were computed in line")
    assert slips(model, None, optimizer, loop=lambda: loop(inside=True)) == []


def test_losses_that_are_added_up_are_all_used():
    model = linear()
    assert (
        slips(model, lambda: sum(F.mse_loss(model(x)[0], y) for x, y in zip(X, Y, strict=True)))
        == []
    )
