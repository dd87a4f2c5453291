"""ParticleTransformer: the physics of pairs, symmetries, padding, the same numbers as weaver."""

import numpy as np
import pytest

import tinyattn as ta
import tinyattn.functional as F
from tinyattn import check, data, models, optim
from tinyattn.models.particle_transformer import SMALLEST, pair_features
from tinyattn.ops import attention as operations
from tinyattn.ops import backends

KT, Z, DELTA, M2 = range(4)  # the columns of the pair features


def momenta(*shape, mass=0.14, seed=0):
    """Four-momenta E, px, py, pz in GeV, of up to about 100 GeV."""
    p = np.random.default_rng(seed).normal(size=(*shape, 3)) * 30
    return np.concatenate([np.sqrt((p**2).sum(-1, keepdims=True) + mass**2), p], axis=-1)


def jets_of(B, N, number, seed=0):
    rng = np.random.default_rng(seed)
    mask = np.arange(N) < np.reshape(number, (B, 1))
    features = rng.normal(size=(B, N, 5)).astype(np.float32) * mask[..., None]
    return features, momenta(B, N, seed=seed) * mask[..., None], mask


def small(**options):
    return models.ParticleTransformer(5, 3, (8, 16), (6, 6), 4, 2, 2, rng=0, **options)


# ---------------------------------------------------------------- the features of pairs


def test_pair_features_by_hand():
    # 3 GeV along x and 1 GeV along y, both massless: Δ = π/2, m² = 4² - (3² + 1²) = 6
    a, b = np.array([3.0, 3, 0, 0]), np.array([1.0, 0, 1, 0])
    expected = [np.pi / 2, 1 / 4, np.pi / 2, 6]
    np.testing.assert_allclose(np.exp(pair_features(a, b)), expected, rtol=1e-12)


def test_pair_features_are_their_formulas():
    a, b = momenta(50), momenta(50, seed=1)
    pt = [np.hypot(p[:, 1], p[:, 2]) for p in (a, b)]
    y = [np.arctanh(p[:, 3] / p[:, 0]) for p in (a, b)]
    dphi = np.angle((a[:, 1] + 1j * a[:, 2]) / (b[:, 1] + 1j * b[:, 2]))
    delta = np.hypot(y[0] - y[1], dphi)
    total = a + b
    m2 = total[:, 0] ** 2 - np.sum(total[:, 1:] ** 2, axis=1)
    expected = np.stack([np.minimum(*pt) * delta, np.minimum(*pt) / (pt[0] + pt[1]), delta, m2], 1)
    np.testing.assert_allclose(pair_features(a, b), np.log(expected), atol=1e-10)


def test_angles_are_taken_the_short_way_round():
    angles = np.array([np.pi - 0.1, -np.pi + 0.1])
    p = np.stack([np.ones(2), np.cos(angles), np.sin(angles), np.zeros(2)], axis=1)
    np.testing.assert_allclose(np.exp(pair_features(p[0], p[1])[DELTA]), 0.2)


@pytest.mark.parametrize("angle", [0.3, 3.0, -1.7])
def test_pair_features_do_not_see_a_turn_around_the_beam(angle):
    a, b = momenta(50), momenta(50, seed=1)
    c, s = np.cos(angle), np.sin(angle)
    turn = np.array([[1, 0, 0, 0], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1]])
    np.testing.assert_allclose(
        pair_features(a @ turn.T, b @ turn.T), pair_features(a, b), atol=1e-9
    )


def test_pair_features_do_not_see_a_boost_along_the_beam_but_one_across():
    a, b = momenta(50), momenta(50, seed=1)
    cosh, sinh = np.cosh(0.7), np.sinh(0.7)
    along, across = np.eye(4), np.eye(4)
    along[[0, 0, 3, 3], [0, 3, 0, 3]] = across[[0, 0, 1, 1], [0, 1, 0, 1]] = cosh, sinh, sinh, cosh
    before = pair_features(a, b)
    np.testing.assert_allclose(pair_features(a @ along.T, b @ along.T), before, atol=1e-9)
    after = pair_features(a @ across.T, b @ across.T)
    np.testing.assert_allclose(after[:, M2], before[:, M2], atol=1e-9)  # the mass is the same
    assert np.all(np.abs(after - before)[:, [KT, Z, DELTA]].max(axis=0) > 0.1)  # what the beam sees


def test_pair_features_do_not_see_who_is_first():
    a, b = momenta(50), momenta(50, seed=1)
    np.testing.assert_allclose(pair_features(a, b), pair_features(b, a), rtol=1e-13)


def test_logarithms_are_safe_at_zero():
    p = ta.Tensor(momenta(4, mass=0), requires_grad=True)
    y = pair_features(p, p)  # no distance from itself, no mass
    np.testing.assert_allclose(y.data[:, [KT, DELTA]], np.log(SMALLEST))
    np.testing.assert_allclose(y.data[:, Z], np.log(0.5))
    assert np.all((y.data[:, M2] >= np.log(SMALLEST)) & (y.data[:, M2] < np.log(1e-6)))
    y.sum().backward()
    assert np.isfinite(p.grad).all()
    nothing = np.zeros((1, 4))
    assert np.isfinite(pair_features(nothing, nothing)).all()


def test_along_the_beam_both_directions_are_alike():
    along, other = np.array([5.0, 0, 0, 5.0]), np.array([3.0, 3, 0, 0])
    turned = along * [1, 1, 1, -1]
    ahead, behind = pair_features(along, other), pair_features(turned, other)
    assert np.isfinite(ahead).all()
    np.testing.assert_allclose(behind, ahead, rtol=1e-12)


# ---------------------------------------------------------------- symmetries and padding


def test_particles_have_no_order():
    features, p, mask = jets_of(3, 9, [9, 6, 5])
    features = features.astype(float)
    order = np.random.default_rng(0).permutation(9)
    for train in (False, True):
        model = small(dropout=0.0).astype(float).train(train)
        found = model(features[:, order], p[:, order], mask[:, order]).data
        np.testing.assert_allclose(found, model(features, p, mask).data, atol=1e-12)
    particles = model.particles(features, p, mask).data
    found = model.particles(features[:, order], p[:, order], mask[:, order]).data
    np.testing.assert_allclose(found, particles[:, order], atol=1e-12)


def test_the_order_counts_if_momenta_keep_theirs():
    """The control of the test above: features that no longer belong to their momenta."""
    features, p, mask = jets_of(3, 9, [9, 9, 9])
    model = small().astype(float).eval()
    shuffled = model(features[:, ::-1], p, mask).data
    assert np.abs(shuffled - model(features, p, mask).data).max() > 1e-6


def test_padding_is_not_seen():
    features, p, mask = jets_of(4, 9, [9, 6, 3, 1])
    model = small().eval()
    expected = model(features, p, mask).data
    for filling in (1e4, np.nan):
        f = np.where(mask[..., None], features, filling).astype(np.float32)
        found = model(f, np.where(mask[..., None], p, filling), mask).data
        np.testing.assert_array_equal(found, expected)
    for b, n in enumerate([9, 6, 3, 1]):
        alone = model(features[b : b + 1, :n], p[b : b + 1, :n]).data
        np.testing.assert_allclose(alone[0], expected[b], atol=1e-5)


def test_training_does_not_see_what_stands_in_padding():
    features, p, mask = jets_of(4, 9, [9, 6, 3, 1])
    found = []
    for filling in (0, 100, np.nan):
        model = small(dropout=0.0).train()
        f = np.where(mask[..., None], features, filling).astype(np.float32)
        y = model(f, np.where(mask[..., None], p, filling), mask)
        y.sum().backward()
        found.append([y.data] + [w.grad for w in model.parameters() if w.grad is not None])
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("B", "N"), [(0, 9), (2, 0)])
def test_no_jets_and_no_particles(B, N):
    features, p, mask = jets_of(B, N, [N] * B)
    y = small().eval()(features, p, mask)
    assert y.shape == (B, 3) and np.isfinite(y.data).all()


def test_no_gradient_reaches_padding():
    features, p, mask = jets_of(4, 9, [9, 6, 3, 1])
    model = small().eval()
    x, v = ta.Tensor(features, requires_grad=True), ta.Tensor(p, requires_grad=True)
    model(x, v, mask).sum().backward()
    for grad in (x.grad, v.grad):
        assert np.all(grad[~mask] == 0)
        assert np.all(np.abs(grad[:3][mask[:3]]).max(axis=-1) > 0)
    assert np.all(v.grad[3] == 0)  # a particle alone has no pairs


def test_jets_do_not_see_each_other():
    features, p, mask = jets_of(3, 9, [9, 6, 5])
    check.isolated(lambda x: small().astype(float).eval()(x, p, mask), features).expect()


def test_token_is_one_vector_of_any_number_of_particles():
    model = small().eval()
    for N in (1, 4, 30):
        features, p, mask = jets_of(2, N, [N, N])
        tokens = model.tokens(model.particles(features, p, mask), mask)
        assert [t.shape for t in tokens] == [(2, 1, 16)] * 3
        assert np.array_equal(tokens[0].data[0], tokens[0].data[1])  # the same start for all jets
        assert not np.allclose(tokens[1].data[0], tokens[1].data[1])


def test_attention_maps():
    features, p, mask = jets_of(3, 9, [9, 6, 5])
    model = small()
    maps = model.attention_maps(features, p, mask)
    assert model.training
    assert [a.shape for a in maps] == [(3, 4, 9, 9)] * 2 + [(3, 4, 1, 10)] * 2
    for a in maps:
        np.testing.assert_allclose(a.sum(axis=-1), 1, rtol=1e-5)
        seen = mask if a.shape[-1] == 9 else np.insert(mask, 0, True, axis=1)
        assert np.all(a.transpose(0, 3, 1, 2)[~seen] == 0)
    without = model.attention_maps(features, None, mask)
    assert np.abs(without[0] - maps[0]).max() > 1e-3


def test_the_kernel_gets_the_pairs_and_their_gradient(monkeypatch):
    seen = []

    def spy(q, k, v, mask, bias, *options):
        seen.append(None if bias is None else (bias.shape, bias.requires_grad))
        return kernel(q, k, v, mask, bias, *options)

    implementations = operations.attention.implementations
    kernel = implementations["kernel"]
    monkeypatch.setitem(implementations, "kernel", spy)
    features, p, mask = jets_of(16, 20, np.arange(5, 21))
    model = small(dropout=0.0)
    model(features, p, mask).sum().backward()
    if backends.have_numba("attention"):
        assert seen == [((16, 4, 20, 20), True)] * 2
    first = model.pair_embed.embed[1].weight
    assert np.abs(first.grad).max() > 0


# ---------------------------------------------------------------- the same as weaver


def weaver_model(*sizes, **options):
    """Weaver's model with the sizes of ours, no dropout, and initial values that hide nothing."""
    parity = pytest.importorskip("tests.parity")
    weaver = pytest.importorskip("weaver.nn.model.ParticleTransformer")
    names = ("embed_dims", "pair_embed_dims", "num_heads", "num_layers", "num_cls_layers")
    none = dict(dropout=0, attn_dropout=0, activation_dropout=0)
    parity.torch.manual_seed(0)
    model = weaver.ParticleTransformer(
        *sizes[:2],
        **dict(zip(names, sizes[2:], strict=True)),
        trim=False,
        block_params=none,
    )
    for p in model.parameters():
        if p.ndim < 2:  # norms and scales start at 1, biases at 0
            parity.torch.nn.init.normal_(p, 0.5, 0.3)
    return parity, model


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("with_pairs", [True, False])
def test_equals_weaver(train, with_pairs):
    """Outputs, gradients and running averages; 8 jets of 24 are enough for the kernel."""
    sizes = (5, 3, (16, 32, 16), (8, 8), 4, 2, 2)
    parity, theirs = weaver_model(*sizes)
    torch = parity.torch
    features, p, mask = jets_of(8, 24, [24, 20, 17, 12, 9, 5, 2, 1])
    mine = models.ParticleTransformer(*sizes, dropout=0.0, rng=0).train(train)
    mine_forward, their_forward = mine.forward, theirs.train(train).forward
    mine.forward = lambda x: mine_forward(x, p if with_pairs else None, mask)
    last = torch.tensor(p[..., [1, 2, 3, 0]].transpose(0, 2, 1).copy())  # px, py, pz, E
    there = torch.tensor(mask[:, None])
    theirs.forward = lambda x: their_forward(  # in training weaver's batch norm hears padding
        x.transpose(1, 2) * there, last if with_pairs else None, there
    )
    parity.modules(mine, theirs, features.astype(float))


def test_initial_values_are_distributed_as_in_weaver():
    sizes = (5, 3, (32, 64), (16, 16), 4, 3, 2)
    pytest.importorskip("tests.parity")
    weaver = pytest.importorskip("weaver.nn.model.ParticleTransformer")
    names = ("embed_dims", "pair_embed_dims", "num_heads", "num_layers", "num_cls_layers")
    theirs = weaver.ParticleTransformer(*sizes[:2], **dict(zip(names, sizes[2:], strict=True)))
    mine = models.ParticleTransformer(*sizes, rng=0).state_dict()
    for name, value in theirs.state_dict().items():
        value = value.numpy()
        if value.size > 200:
            np.testing.assert_allclose(mine[name].std(), value.std(), rtol=0.2, err_msg=name)
            np.testing.assert_allclose(np.abs(mine[name]).max(), np.abs(value).max(), rtol=0.2)


# ---------------------------------------------------------------- learning


def test_learns_to_tell_jets():
    train = data.jets("train")
    rows = np.arange(64)
    features, p = data.jet_features(train)[rows], data.four_momenta(train)[rows]
    model = models.ParticleTransformer(7, 2, (16, 16), (8,), 2, 1, 1, 0.0, rng=0)
    optimizer, losses = optim.AdamW(model.parameters(), lr=0.003), []
    for _ in range(25):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(features, p, train.mask[rows]), train.label[rows])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
