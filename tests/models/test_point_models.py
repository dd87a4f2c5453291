"""DGCNN, ParticleNet and GravNetModel: shapes, symmetries, padding, memory, and that they learn."""

import numpy as np
import pytest

import tinyattn as ta
import tinyattn.functional as F
from tests.machine import fresh_python
from tinyattn import data, models, nn, optim
from tinyattn.graph import edge_conv, knn, knn_edges
from tinyattn.models.particlenet import EdgeConvBlock


def cloud(N, D, seed=0):
    return np.random.default_rng(seed).normal(size=(N, D)).astype(np.float32)


def small_dgcnn(kind, **options):
    return kind(3, 4, k=5, widths=(8, 8), embedding=16, hidden=(8,), rng=0, **options)


def small_particle_net():
    return models.ParticleNet(4, 2, 3, ((6, 6, 6), (8, 8, 8)), 8, rng=0)


def small_gravnet():
    return models.GravNetModel(5, 2, 2, 8, 8, 3, 4, k=6, hidden=8, rng=0)


# ---------------------------------------------------------------- DGCNN


def test_dgcnn_of_a_batch_is_that_of_each_cloud():
    x, batch = cloud(30, 3), np.repeat([0, 1], [12, 18])
    classify = small_dgcnn(models.DGCNN).eval()
    together = classify(x, batch).data
    assert together.shape == (2, 4)
    for c in (0, 1):
        np.testing.assert_allclose(classify(x[batch == c]).data[0], together[c], atol=1e-5)
    mixed = np.random.default_rng(0).permutation(30)
    np.testing.assert_allclose(classify(x[mixed], batch[mixed]).data, together, atol=1e-5)
    segment = small_dgcnn(models.DGCNNSegmentation).eval()
    points = segment(x, batch).data
    assert points.shape == (30, 4)
    np.testing.assert_allclose(segment(x[mixed], batch[mixed]).data, points[mixed], atol=1e-5)


@pytest.mark.parametrize("kind", [models.DGCNN, models.DGCNNSegmentation])
def test_dgcnn_looks_for_neighbours_where_a_subclass_says(kind):
    class InSpace(kind):
        def places(self, points, x):
            seen.append(x.shape)
            return points

    x, batch, seen = cloud(30, 3), np.repeat([0, 1], [12, 18]), []
    model, index = small_dgcnn(InSpace).eval(), knn(x, 5, batch)[0]
    found = model(x, batch).data
    assert seen == [(30, 3), (30, 8)]
    _, side_by_side = model.features(x, batch, model.places)
    first = edge_conv(model.features.convs[0].nn, x, index)
    second = edge_conv(model.features.convs[1].nn, first, index)  # the same neighbours
    by_hand = np.concatenate([first.data, second.data], axis=-1)
    np.testing.assert_allclose(side_by_side.data, by_hand, atol=1e-6)
    usual = small_dgcnn(kind).eval()
    usual.load_state_dict(model.state_dict())
    assert np.abs(usual(x, batch).data - found).max() > 1e-3


def test_dgcnn_learns():
    """Spheres against cubes; and for each point of a cloud, on which side of it it lies."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(24, 40, 3)).astype(np.float32)
    x[::2] /= np.linalg.norm(x[::2], axis=-1, keepdims=True)
    x[1::2] /= np.abs(x[1::2]).max(axis=-1, keepdims=True)
    batch, y = np.repeat(np.arange(24), 40), np.arange(24) % 2
    model = models.DGCNN(3, 2, 8, (8, 16), 32, (16,), 0.0, rng=0)
    optimizer, losses = optim.Adam(model.parameters(), lr=0.01), []
    for _ in range(25):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x.reshape(-1, 3), batch), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]


# ---------------------------------------------------------------- the same in PyTorch


def test_models_equal_pytorch():
    pytest.importorskip("torch_geometric")
    pytest.importorskip("scipy")
    from tests import parity
    from tests.parity import point_models as point_peers

    rng = np.random.default_rng(0)
    shape = (5, 2, 2, 8, 8, 3, 4, 6, 8)
    theirs = point_peers.GravNetModel(*shape)
    parity.modules(models.GravNetModel(*shape), theirs, rng.normal(size=(40, 5)))
    widths = ((6, 6, 6), (8, 8))
    points = rng.normal(size=(4, 9, 2))
    theirs = point_peers.ParticleNet(4, 2, 3, widths, 8)
    parity.torch.nn.init.normal_(theirs.norm.bias)  # else running means are rounding errors of 0
    theirs.forward = lambda x, f=theirs.forward: f(parity.torch.tensor(points), x)
    mine = models.ParticleNet(4, 2, 3, widths, 8, 0.0)
    mine.forward = lambda x, f=mine.forward: f(points, x)
    parity.modules(mine, theirs, rng.normal(size=(4, 9, 4)))


# ---------------------------------------------------------------- ParticleNet


def particles(B, P, number, seed=0):
    rng = np.random.default_rng(seed)
    mask = np.arange(P) < np.reshape(number, (B, 1))
    points, features = rng.normal(size=(B, P, 2)), rng.normal(size=(B, P, 4))
    return points.astype(np.float32), features.astype(np.float32), mask


def test_padding_is_nobodys_neighbour():
    points, features, mask = particles(5, 9, [9, 6, 4, 2, 1])
    for train in (False, True):  # neither the neighbours nor the batch norms see it
        model = small_particle_net().train(train)
        model.head = nn.Sequential(model.head[0], model.head[3])  # no dropout
        expected = model(points, features, mask).data
        for filling in (0, 1e4, np.nan):
            p = np.where(mask[..., None], points, filling).astype(np.float32)
            f = np.where(mask[..., None], features, filling).astype(np.float32)
            again = small_particle_net().train(train)
            again.head = nn.Sequential(again.head[0], again.head[3])
            np.testing.assert_array_equal(again(p, f, mask).data, expected)


def test_a_jet_by_itself_is_the_same():
    points, features, mask = particles(4, 9, [9, 6, 3, 1])
    model = small_particle_net().eval()
    together = model(points, features, mask).data
    for b, n in enumerate([9, 6, 3, 1]):
        alone = model(points[b : b + 1, :n], features[b : b + 1, :n]).data
        np.testing.assert_allclose(alone[0], together[b], atol=1e-5)


def test_particles_have_no_order():
    points, features, mask = particles(3, 9, [9, 6, 5])
    order = np.random.default_rng(0).permutation(9)
    model = small_particle_net().eval()
    found = model(points[:, order], features[:, order], mask[:, order]).data
    np.testing.assert_allclose(found, model(points, features, mask).data, atol=1e-5)


def test_neighbours_by_hand():
    x = np.array([[0.0], [1.0], [3.0], [10.0], [11.0], [50.0]])
    sender, receiver = knn_edges(x, 2, np.array([0, 0, 0, 3, 3, 4]))
    # the second jet has only two particles, and the last particle is alone
    np.testing.assert_array_equal(receiver, [0, 0, 1, 1, 2, 2, 3, 4])
    np.testing.assert_array_equal(sender, [1, 2, 0, 2, 1, 0, 4, 3])
    sender, receiver = knn_edges(x, 1, np.array([0, 0, 0, 3, 3, 4]))
    np.testing.assert_array_equal(receiver, [0, 1, 2, 3, 4])
    np.testing.assert_array_equal(sender, [1, 0, 1, 4, 3])
    sender, receiver = knn_edges(np.zeros((4, 1)), 2, np.zeros(4, int))  # all at one place
    np.testing.assert_array_equal(sender, [1, 2, 0, 2, 0, 1, 0, 1])


def test_edge_conv_block_is_its_formula():
    x, places = cloud(12, 4).astype(float), cloud(12, 2, 1)
    block = EdgeConvBlock(4, (5, 6), 3, rng=0).astype(float).eval()
    sender, receiver = knn_edges(places, 3, np.zeros(12, int))
    expected = np.zeros((12, 6))
    for j in range(12):
        heard = [
            block.nn(np.concatenate([x[j], x[i] - x[j]])[None]).data[0]
            for i in sender[receiver == j]
        ]
        expected[j] = np.maximum(np.mean(heard, axis=0) + block.shortcut(x[j : j + 1]).data[0], 0)
    found = block(ta.Tensor(x), places, np.zeros(12, int)).data
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_particle_net_learns_to_tell_jets():
    train = data.jets("train")
    rows = np.arange(64)
    features, points = data.jet_features(train)[rows], train.particles[rows, :, 1:]
    model = models.ParticleNet(7, 2, 7, ((16,) * 3, (16,) * 3), 16, 0.0, rng=0)
    optimizer, losses = optim.Adam(model.parameters(), lr=0.01), []
    for _ in range(12):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(points, features, train.mask[rows]), train.label[rows])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.6 * losses[0]


# ---------------------------------------------------------------- GravNet


def test_gravnet_model_of_a_batch_is_that_of_each_event():
    x, batch = cloud(40, 5), np.repeat([3, 8], [15, 25])
    model = small_gravnet().eval()
    together = model(x, batch).data
    assert together.shape == (40, 2)
    for event in (3, 8):
        alone = model(x[batch == event]).data
        np.testing.assert_allclose(alone, together[batch == event], atol=1e-5)
    mixed = np.random.default_rng(0).permutation(40)
    np.testing.assert_allclose(model(x[mixed], batch[mixed]).data, together[mixed], atol=1e-5)


MEMORY = """
import resource, numpy as np
from tinyattn.graph import GravNetConv
rng, N = np.random.default_rng(0), {N}
layer = GravNetConv(8, 16, 4, 22, k=40, rng=0)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
np.sum(layer(rng.normal(size=(N, 8)).astype(np.float32))).backward()
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


def test_a_hundred_thousand_hits_pass_in_one_event():
    pytest.importorskip("numba")
    pytest.importorskip("resource")
    (used,) = fresh_python(MEMORY.format(N=100_000))
    # N × N distances would be 40 GB, N × k × F messages 350 MB; compiled code is in here as well
    assert int(used) < 1_000_000_000
