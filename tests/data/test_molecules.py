"""The shipped molecules: what they promise, and chemistry that is easy to check."""

import numpy as np

from tinyattn import data
from tinyattn.data.molecules import FILE, SYMBOLS, TARGETS

H, C, N, O, F = range(5)
BOHR = 0.529177  # Å


def target(molecules, name):
    (column,) = [i for i, text in enumerate(TARGETS) if text.startswith(name)]
    return molecules.targets[:, column].astype(float)


def test_shapes_and_split():
    train, test, every = (data.molecules(part) for part in ("train", "test", "all"))
    assert train.atoms.shape == (1600, 29, 5)
    assert test.positions.shape == (400, 29, 3)
    for a, b, both in zip(train, test, every, strict=True):
        np.testing.assert_array_equal(np.concatenate([a, b]), both)
    assert every.targets.shape == (2000, len(TARGETS))
    assert [x.dtype.name for x in every[:5]] == ["float32", "float32", "bool", "bool", "float32"]
    assert len(set(every.smiles)) == 2000


def test_atoms_and_padding():
    m = data.molecules("all")
    assert np.all(m.atoms.sum(axis=-1) == m.mask)
    assert np.all(m.positions[~m.mask] == 0)
    assert not m.bonds[~m.mask].any()
    heavy = m.mask.sum(axis=1) - m.atoms[..., H].sum(axis=1)
    assert heavy.max() == 9
    assert np.mean(heavy) > 8.5  # nearly all molecules of QM9 have nine
    for symbol in "NOF":  # the same atoms as in the formula (without hydrogen)
        count = np.char.count(np.char.upper(m.smiles), symbol)
        np.testing.assert_array_equal(m.atoms[..., SYMBOLS.index(symbol)].sum(axis=1), count)


def test_bonds_are_those_of_chemistry():
    m = data.molecules("all")
    assert np.all(m.bonds == m.bonds.swapaxes(1, 2))
    assert not np.diagonal(m.bonds, axis1=1, axis2=2).any()
    degree = m.bonds.sum(axis=-1)
    for atom, most in ((H, 1), (C, 4), (O, 2), (F, 1)):
        of_atom = degree[m.atoms[..., atom] == 1]
        assert of_atom.min() >= 1
        assert of_atom.max() <= most
    reach = m.bonds | np.eye(29, dtype=bool)  # every molecule hangs together
    for _ in range(5):
        reach = np.matmul(reach.astype(np.float32), reach.astype(np.float32)) > 0
    assert np.all(reach[:, 0] == m.mask)
    # rings of the formula: each has one bond more than a tree; a digit opens and closes one
    rings = m.bonds.sum(axis=(1, 2)) // 2 - m.mask.sum(axis=1) + 1
    digits = np.array([sum(c.isdigit() for c in text) // 2 for text in m.smiles])
    plain = np.char.find(m.smiles, "[") < 0  # digits in brackets count hydrogen
    np.testing.assert_array_equal(rings[plain], digits[plain])


def test_distances():
    m = data.molecules("test")
    D = data.distances(m.positions)
    i, j = 3, 5
    np.testing.assert_allclose(D[7, i, j], np.linalg.norm(m.positions[7, i] - m.positions[7, j]))
    kinds = m.atoms.argmax(axis=-1)
    carbon_hydrogen = m.bonds & (kinds[:, :, None] == C) & (kinds[:, None, :] == H)
    assert 1.08 < np.median(D[carbon_hydrogen]) < 1.11  # Å
    pairs = m.mask[:, :, None] & m.mask[:, None, :] & ~np.eye(29, dtype=bool)
    assert D[pairs].min() > 0.9


def test_targets_are_physics():
    m = data.molecules("all")
    energy = target(m, "atomization")
    bonds = m.bonds.sum(axis=(1, 2)) / 2
    assert np.corrcoef(energy, bonds)[0, 1] > 0.9  # a bond is worth some 4 eV
    assert 3 < np.median(energy / bonds) < 5
    np.testing.assert_allclose(
        target(m, "gap"), target(m, "LUMO") - target(m, "HOMO"), atol=0.01
    )  # rounded in the source
    assert np.all(target(m, "gap") > 0)
    # the electrons are where the nuclei are: ⟨R²⟩ is about Σ Z r², and some more for each electron
    Z = m.atoms @ np.array([1, 6, 7, 8, 9])
    centre = np.sum(Z[..., None] * m.positions, axis=1) / Z.sum(axis=1)[:, None]
    r2 = np.sum((m.positions - centre[:, None]) ** 2, axis=-1) * m.mask
    assert np.corrcoef(np.sum(Z * r2, axis=1) / BOHR**2, target(m, "extent"))[0, 1] > 0.999


def test_the_file_is_small():
    assert FILE.stat().st_size < 4e5


def test_distances_of_small_integers_do_not_wrap():
    x = np.array([[0], [200], [255]])
    for kind in (np.uint8, np.int16, np.float32):
        assert data.distances(x.astype(kind)).tolist() == [
            [0, 200, 255],
            [200, 0, 55],
            [255, 55, 0],
        ]
