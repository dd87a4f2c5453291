"""MoleculeAttentionTransformer: its formula, symmetries, padding, and that it learns."""

import numpy as np
import pytest

import tinyattn.functional as F
from tinyattn import data, models, optim
from tinyattn.models.molecule_attention import MoleculeAttention


def molecules_of(B, N, number, seed=0):
    rng = np.random.default_rng(seed)
    mask = np.arange(N) < np.reshape(number, (B, 1))
    atoms = np.eye(3)[rng.integers(3, size=(B, N))] * mask[..., None]
    positions = rng.normal(size=(B, N, 3)) * 2
    D = data.distances(positions)
    return atoms, D, (D < 2.5) & ~np.eye(N, dtype=bool), mask, positions


def small(**options):
    options = {"d_model": 8, "num_heads": 2, "num_layers": 2, "rng": 0, **options}
    return models.MoleculeAttentionTransformer(3, 2, **options).astype(float)


def test_attention_is_its_formula():
    rng = np.random.default_rng(0)
    x, geometry = rng.normal(size=(1, 5, 4)), rng.normal(size=(1, 1, 5, 5))
    mask = np.array([[True, True, True, True, False]])
    layer = MoleculeAttention(4, 1, 0.4, rng).astype(float)
    q, k, v = np.split(x[0] @ layer.in_proj.weight.data.T + layer.in_proj.bias.data, 3, axis=1)
    e = np.exp(q @ k.T / 2) * mask
    A = 0.4 * e / e.sum(axis=1, keepdims=True) + geometry[0, 0]
    expected = A @ v @ layer.out_proj.weight.data.T + layer.out_proj.bias.data
    np.testing.assert_allclose(layer(x, geometry, mask).data[0], expected, atol=1e-12)


@pytest.mark.parametrize("g", ["softmax", "exp"])
def test_maps_are_their_formula(g):
    """Row by row: the share of attention, of distance and of bonds."""
    atoms, D, bonds, mask, _ = molecules_of(2, 6, [6, 4])
    a, d, b = 0.5, 0.3, 0.2
    for A in small(lambdas=(a, d, b), g=g).attention_maps(atoms, D, bonds, mask):
        assert A.shape == (2, 2, 7, 7)
        rest = A[1, :, 1:5, 1:5]  # the four atoms of the second molecule
        near = np.exp(-D[1, :4, :4])
        near /= near.sum(axis=1, keepdims=True) if g == "softmax" else 1
        edges = bonds[1, :4, :4] + np.eye(4)
        attention = rest - d * near - b * edges / edges.sum(axis=1, keepdims=True)
        assert np.all(attention > 0)  # what remains is the softmax, without the dummy's part
        assert np.all(attention.sum(axis=-1) < a)
        assert np.all(A[1, :, :5, 5:] == 0)  # padding
        if g == "softmax":
            np.testing.assert_allclose(A[0, :, 1:].sum(axis=-1), 1)


@pytest.mark.parametrize("lambdas", [(1, 0, 0), (0.5, 0.5, 0), (0.5, 0, 0.5), (0, 0.5, 0.5)])
def test_a_weight_of_zero_switches_off(lambdas):
    atoms, D, bonds, mask, _ = molecules_of(2, 6, [6, 4])
    model = small(lambdas=lambdas)
    y = model(atoms, D, bonds, mask).data
    for which, other in ((1, (D * 1.5, bonds)), (2, (D, ~bonds))):
        changed = np.abs(model(atoms, *other, mask).data - y).max()
        assert changed > 1e-4 if lambdas[which] else changed == 0


def test_atoms_have_no_order():
    atoms, D, bonds, mask, _ = molecules_of(3, 6, [6, 5, 3])
    p = np.random.default_rng(0).permutation(6)
    y = small()(atoms, D, bonds, mask).data
    mixed = small()(atoms[:, p], D[:, p][:, :, p], bonds[:, p][:, :, p], mask[:, p]).data
    np.testing.assert_allclose(mixed, y, atol=1e-12)
    wrong = small()(atoms[:, p], D, bonds, mask[:, p]).data  # the control: only half is mixed
    assert np.abs(wrong - y).max() > 1e-4


def test_turned_and_moved_molecules_are_the_same():
    atoms, D, bonds, mask, positions = molecules_of(3, 6, [6, 5, 3])
    turn, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))
    moved = data.distances(positions @ turn + [1.0, -2, 3])
    y = small()(atoms, D, bonds, mask).data
    np.testing.assert_allclose(small()(atoms, moved, bonds, mask).data, y, atol=1e-12)


def test_padding_is_not_seen():
    atoms, D, bonds, mask, _ = molecules_of(3, 6, [6, 4, 1])
    model = small()
    y = model(atoms, D, bonds, mask).data
    pairs = mask[:, :, None] & mask[:, None, :]
    for filling in (0.1, -1e4, np.nan):
        for g in models.molecule_attention.G:
            model.g = g
            y = model(atoms, D, bonds, mask).data
            filled = model(
                np.where(mask[..., None], atoms, filling),
                np.where(pairs, D, filling),
                bonds | ~pairs,
                mask,
            ).data
            np.testing.assert_array_equal(filled, y)
    model.g = "softmax"
    y = model(atoms, D, bonds, mask).data
    for b, n in enumerate([6, 4, 1]):
        one = slice(b, b + 1)
        alone = model(atoms[one, :n], D[one, :n, :n], bonds[one, :n, :n]).data
        np.testing.assert_allclose(alone[0], y[b], atol=1e-12)


def test_learns_the_energy_of_molecules():
    m = data.molecules("train")
    rows = np.arange(64)
    inputs = m.atoms[rows], data.distances(m.positions[rows]), m.bonds[rows], m.mask[rows]
    target = m.targets[rows, :1]
    target = (target - target.mean()) / target.std()
    model = models.MoleculeAttentionTransformer(5, 1, 16, 2, 2, rng=0)
    optimizer, losses = optim.Adam(model.parameters(), lr=0.01), []
    for _ in range(60):
        optimizer.zero_grad()
        loss = F.mse_loss(model(*inputs), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]
