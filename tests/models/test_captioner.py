"""The captioners: attention's symmetries, gradients, writing, the penalty."""

import numpy as np
import pytest

import tinyattn as ta
import tinyattn.functional as F
from tests.parity import torch
from tinyattn import check, nn, no_grad, optim
from tinyattn.data.grids import END, PAD, START, VOCABULARY, grids
from tinyattn.models import Captioner, FixedCaptioner
from tinyattn.models.captioner_attention import AdditiveScore, Attend, DotScore, SigmoidGate
from tinyattn.models.captioner_regions import CaptionerCells, Regions
from tinyattn.models.decoding import log_softmax

V = len(VOCABULARY)
PICTURES = grids(5, rng=0)
rng = np.random.default_rng(0)
H, Z = rng.normal(size=(3, 4)), rng.normal(size=(3, 9, 5))
ATTENDS = {
    "additive": Attend(AdditiveScore(4, 5, 6, rng=0)),
    "dot": Attend(DotScore(4, 5, 6, rng=0)),
    "sigmoid": Attend(AdditiveScore(4, 5, 6, rng=0), SigmoidGate()),
}


def captioner(**options):
    return Captioner(CaptionerCells(3, 6, 8, 9, rng=0), V, 4, 6, rng=0, **options).astype(
        np.float64
    )


def fixed():
    return FixedCaptioner(CaptionerCells(3, 6, 8, 9, rng=0), 9, V, 5, 4, 6, rng=0).astype(
        np.float64
    )


MODELS = {"attention": captioner, "fixed": fixed}


# ---------------------------------------------------------------- one look


@pytest.mark.parametrize("name", ATTENDS)
def test_weights_lie_between_0_and_1_and_follow_the_regions(name):
    attend = ATTENDS[name].astype(np.float64)
    c, a = attend(H, Z)
    assert c.shape == (3, 5)
    assert a.shape == (3, 9)
    assert ((a.data >= 0) & (a.data <= 1)).all()
    if name != "sigmoid":
        np.testing.assert_allclose(a.data.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_allclose(c.data, np.einsum("br,brd->bd", a.data, Z), rtol=1e-12)
    check.equivariant(lambda z: attend(H, z)[1], Z, axis=1).expect()
    check.invariant(lambda z: attend(H, z)[0], Z, axis=1).expect()


def test_scores_are_the_formulas_written_as_sums():
    add, dot = AdditiveScore(4, 5, 6, rng=1).astype(float), DotScore(4, 5, 6, rng=1).astype(float)
    W, b, U = add.from_state.weight.data, add.from_state.bias.data, add.from_region.weight.data
    v, P, Q = add.v.weight.data[0], dot.from_state.weight.data, dot.from_region.weight.data
    for n in range(3):
        for i in range(9):
            e = sum(v[k] * np.tanh(W[k] @ H[n] + b[k] + U[k] @ Z[n, i]) for k in range(6))
            np.testing.assert_allclose(add(H, Z).data[n, i], e, rtol=1e-12)
            e = sum((P @ H[n])[k] * (Q @ Z[n, i])[k] for k in range(6)) / np.sqrt(6)
            np.testing.assert_allclose(dot(H, Z).data[n, i], e, rtol=1e-12)


def test_cells_see_only_their_own_pixels():
    cells = CaptionerCells(3, 6, 8, 9, rng=0).astype(np.float64)
    x = PICTURES.images[:1].astype(float)
    changed = x.copy()
    changed[:, 6:12, 12:] -= 0.5  # cell 5
    with no_grad():
        moved = np.abs(cells(changed).data - cells(x).data).max(axis=(0, 2))
    np.testing.assert_array_equal(np.flatnonzero(moved), [5])


def test_regions_are_strided_convolutions_in_reading_order():
    regions = Regions(3, (4, 6), 15, rng=0).astype(np.float64)
    x = rng.uniform(size=(2, 12, 20, 3))
    y = torch.tensor(1 - x).permute(0, 3, 1, 2)
    for layer in regions.convolutions:
        weight, bias = (torch.tensor(layer.state_dict()[n]) for n in ("weight", "bias"))
        y = torch.relu(torch.nn.functional.conv2d(y, weight, bias, stride=2, padding=1))
    y = y.flatten(2).swapaxes(1, 2).numpy()
    np.testing.assert_allclose(regions(x).data - regions.places.data, y, rtol=0, atol=1e-12)


def test_only_the_context_of_the_fixed_captioner_is_a_bottleneck_unless_hidden_is_narrower():
    """The numbers that get through f_w: the rank of the contexts of many images, before tanh."""
    images = np.random.default_rng(4).uniform(size=(400, 18, 18, 3))

    def rank(context, hidden=None):
        model = FixedCaptioner(
            CaptionerCells(3, 6, 8, 9, rng=0), 9, V, context, 4, 6, hidden=hidden, rng=0
        ).astype(np.float64)
        with no_grad():
            c = np.arctanh(model.start(images)[0].data)
        return np.linalg.matrix_rank(c - c.mean(axis=0), tol=1e-8 * np.abs(c).max())

    assert rank(5) == 5
    assert rank(72) > 40  # 48: the other hidden units are 0 for every image
    assert 0 < rank(72, hidden=6) <= 6


# ---------------------------------------------------------------- the whole model


@pytest.mark.parametrize("name", MODELS)
def test_the_loss_is_the_mean_over_the_words_and_padding_does_not_count(name):
    model, g = MODELS[name](), PICTURES
    words = (g.tokens[:, 1:] != PAD).sum(axis=1)
    total = 0
    for b, n in enumerate(words):
        logits, _ = model(g.images[b : b + 1], g.tokens[b : b + 1, :n])
        total += F.cross_entropy(logits[0], g.tokens[b, 1 : n + 1], reduction="sum").item()
    found = model.loss(g.images, g.tokens).item()
    np.testing.assert_allclose(found, total / words.sum(), rtol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_a_word_depends_on_the_words_before_and_on_none_behind(name):
    model, g = MODELS[name](), PICTURES
    changed = g.tokens[:, :-1].copy()
    changed[:, 4] = (changed[:, 4] + 1) % V
    before, after = (model(g.images, t)[0].data for t in (g.tokens[:, :-1], changed))
    np.testing.assert_array_equal(before[:, :4], after[:, :4])
    assert (before[:, 4] != after[:, 4]).any(axis=1).all()


def test_the_whole_captioner_is_the_one_written_in_pytorch():
    """Loss and all gradients, with the formulas of Xu et al. written once more in PyTorch."""
    model, g = captioner(), PICTURES
    p = {n: torch.tensor(x.data, requires_grad=True) for n, x in model.named_parameters()}

    def linear(x, name):
        return torch.nn.functional.linear(x, p[f"{name}.weight"], p.get(f"{name}.bias"))

    cell = torch.nn.LSTMCell(4 + 8, 6).double()
    weights = {n: p[f"cell.{n}"] for n, _ in cell.named_parameters()}
    x = 1 - torch.tensor(g.images.astype(np.float64)).reshape(5, 3, 6, 3, 6, 3)
    x = x.swapaxes(2, 3).reshape(5, 9, 108)
    z = linear(torch.relu(linear(x, "regions.first")), "regions.second") + p["regions.places"]
    h, c = (torch.tanh(linear(z.mean(dim=1), f"first_{n}")) for n in "hc")
    tokens, logits = torch.tensor(g.tokens), []
    for t in range(tokens.shape[1] - 1):
        asked = linear(h, "attend.score.from_state")[:, None]
        e = linear(torch.tanh(asked + linear(z, "attend.score.from_region")), "attend.score.v")
        a = torch.softmax(e[:, :, 0], dim=1)
        context = torch.einsum("br,brd->bd", a, z)
        word = torch.cat([p["embedding.weight"][tokens[:, t]], context], dim=1)
        h, c = torch.func.functional_call(cell, weights, (word, (h, c)))
        logits.append(linear(torch.cat([h, context], dim=1), "head"))
    y = torch.stack(logits, dim=1)
    expected = torch.nn.functional.cross_entropy(
        y.flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=PAD
    )
    expected.backward()
    found = model.loss(g.images.astype(np.float64), g.tokens)
    found.backward()
    np.testing.assert_allclose(found.item(), expected.item(), rtol=1e-12)
    for name, parameter in model.named_parameters():
        np.testing.assert_allclose(
            parameter.grad, p[name].grad.numpy(), rtol=0, atol=1e-10, err_msg=name
        )


def test_doubly_stochastic_penalty():
    model, g, L = captioner(), PICTURES, 0.7
    _, a = model(g.images, g.tokens[:, :-1])
    extra = 0
    for b in range(5):
        for i in range(9):
            seen = sum(a.data[b, t, i] for t in range(a.shape[1]) if g.tokens[b, t + 1] != PAD)
            extra += (1 - seen) ** 2 / (5 * 9)
    plain, with_penalty = (model.loss(g.images, g.tokens, penalty=p).item() for p in (0, L))
    np.testing.assert_allclose(with_penalty - plain, L * extra, rtol=1e-12)
    model.loss(g.images, g.tokens, penalty=L).backward()
    assert all(np.isfinite(p.grad).all() for p in model.parameters())


def test_a_region_that_gets_weight_0_does_not_count():
    class Covered(DotScore):
        def forward(self, h, z):
            return np.where(np.arange(9) == 4, -np.inf, super().forward(h, z))

    attend = Attend(Covered(4, 5, 6, rng=0)).astype(np.float64)
    z = ta.tensor(Z, requires_grad=True)
    c, a = attend(H, z)
    assert (a.data[:, 4] == 0).all()
    np.square(c).sum().backward()
    assert (z.grad[:, 4] == 0).all()
    assert (z.grad[:, 5] != 0).all()


@pytest.mark.parametrize("name", ATTENDS)
def test_keys_that_are_given_along_change_nothing(name):
    attend = ATTENDS[name].astype(np.float64)
    for alone, given in zip(attend(H, Z), attend(H, Z, attend.keys(Z)), strict=True):
        np.testing.assert_array_equal(alone.data, given.data)


def test_a_look_or_a_score_of_ones_own_needs_no_keys():
    class Plain(nn.Module):
        def __init__(self, inner):
            self.inner = inner

        def forward(self, h, z):
            return self.inner(h, z)

    inner = DotScore(6, 8, 5, rng=0)
    logits = [
        captioner(attend=attend)(PICTURES.images, PICTURES.tokens)[0].data
        for attend in (Attend(inner), Attend(Plain(inner)), Plain(Attend(inner)))
    ]
    np.testing.assert_array_equal(logits[0], logits[1])
    np.testing.assert_array_equal(logits[0], logits[2])


# ---------------------------------------------------------------- writing


def greedily(model, image):
    """The likeliest word, again and again, with the whole caption computed anew each time."""
    tokens = [START]
    while tokens[-1] != END and len(tokens) < 8:
        with no_grad():
            logits, _ = model(image[None], np.array([tokens]))
        tokens.append(int(logits.data[0, -1].argmax()))
    return [t for t in tokens[1:] if t != END]


@pytest.mark.parametrize("name", MODELS)
def test_one_beam_is_greedy(name):
    model = trained(name)
    for image, caption in zip(
        PICTURES.images, model.write(PICTURES.images, START, END, max_len=7), strict=True
    ):
        assert caption.tokens.tolist() == greedily(model, image)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("beams", [1, 3])
def test_a_caption_has_its_true_probability_and_attention(name, beams):
    model = trained(name)
    found = model.write(PICTURES.images, START, END, beams=beams, max_len=6)
    for image, caption in zip(PICTURES.images, found, strict=True):
        t = caption.tokens
        with no_grad():
            logits, a = model(image[None], np.array([[START, *t]]))
        log_p = log_softmax(logits)[0]
        target = [*t, END] if len(t) < 6 else t
        total = sum(log_p[i, w] for i, w in enumerate(target))
        np.testing.assert_allclose(caption.log_probability, total, rtol=1e-10)
        if name == "fixed":
            assert caption.attention is None
        else:
            assert caption.attention.shape == (len(t), 9)
            np.testing.assert_allclose(caption.attention, a.data[0, : len(t)], atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_more_beams_are_never_less_likely(name):
    model = trained(name)
    one, many = (model.write(PICTURES.images, START, END, beams=k, max_len=8) for k in (1, 8))
    assert all(
        b.log_probability >= a.log_probability - 1e-9 for a, b in zip(one, many, strict=True)
    )


def trained(name, kept={}):  # noqa: B006 (trained once for all tests)
    if name not in kept:
        model, g = MODELS[name](), grids(200, (1, 2), rng=1)
        optimizer = optim.Adam(model.parameters(), lr=2e-2)
        for k in range(40):
            i = np.arange(32) + 5 * k % 150
            optimizer.zero_grad()
            model.loss(g.images[i], g.tokens[i]).backward()
            optimizer.step()
        kept[name] = model
    return kept[name]
