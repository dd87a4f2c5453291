"""Real molecules of the data set QM9, with atoms, positions, bonds and computed properties."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

FILE = Path(__file__).with_name("molecules.npz")
TEST = 400  # number of test molecules, which are the last ones of the file (in random order)
SYMBOLS = ("H", "C", "N", "O", "F")
RADII = np.array([0.31, 0.76, 0.71, 0.66, 0.57])  # covalent radii in Å, Cordero et al. 2008
TARGETS = (
    "atomization energy in eV",  # energy needed to separate all atoms, at 0 K
    "dipole moment in debye",
    "polarizability in bohr³",
    "HOMO in eV",  # energy of the highest occupied orbital
    "LUMO in eV",  # energy of the lowest unoccupied orbital
    "gap in eV",  # difference of LUMO and HOMO
    "extent in bohr²",  # ⟨R²⟩ of the electrons
    "zero-point energy in eV",
    "heat capacity in cal/(mol K)",
)


class Molecules(NamedTuple):
    """B molecules of at most N = 29 atoms, including hydrogen, padded with 0.

    Attributes:
        atoms       symbol of each atom, one-hot over SYMBOLS (H, C, N, O, F) [B, N, 5] float32
        positions   coordinates in Å, relative to the mean of the atoms' positions [B, N, 3]
                    float32
        bonds       True if two atoms are bonded, whatever the bond order [B, N, N] bool
        mask        True where there is an atom [B, N] bool
        targets     nine properties, such as the dipole moment in debye, in the order of TARGETS
                    (`from tinyattn.data.molecules import TARGETS`) [B, 9] float32
        smiles      SMILES strings, which describe the bonds without hydrogen [B] text
    """

    atoms: np.ndarray  # one-hot index into SYMBOLS
    positions: np.ndarray  # [B, N, 3] float32 in Å, relative to the mean of the atoms
    bonds: np.ndarray  # [B, N, N] bool: True for bonded atoms, whatever the bond order
    mask: np.ndarray  # [B, N] bool, True where there is an atom
    targets: np.ndarray  # [B, 9] float32: TARGETS
    smiles: np.ndarray  # [B] text: the structural formula without hydrogen


def molecules(part="train"):
    """Load small organic molecules of the data set QM9.

    Their shapes and properties were computed by quantum mechanics (density functional theory,
    B3LYP). Bonds are derived from the distances between the atoms.

    Args:
        part   "train" for 1,600 molecules, "test" for 400 others, or "all" for all 2,000

    Returns:
        `Molecules`, in random order

    Raises:
        ValueError: part is not "train", "test" or "all"

    Source: Ramakrishnan, Dral, Rupp, von Lilienfeld 2014. tinyattn/data/SOURCES.md has the details.
    """
    if part not in ("train", "test", "all"):
        raise ValueError(f'molecules: part must be "train", "test" or "all", got {part!r}')
    with np.load(FILE) as stored:
        count, kind = stored["count"].astype(np.int64), stored["atoms"]
        places, targets = stored["positions"].T / np.float32(1000), stored["targets"]
        smiles = np.array(str(stored["smiles"]).split("\n"))
    mask = np.arange(count.max()) < count[:, None]  # [B, N]
    atoms = np.zeros((*mask.shape, len(SYMBOLS)), np.float32)
    atoms[mask, kind] = 1
    positions = np.zeros((*mask.shape, 3), np.float32)
    positions[mask] = places
    rows = {"train": slice(0, -TEST), "test": slice(-TEST, None), "all": slice(None)}[part]
    atoms, positions, mask = atoms[rows], positions[rows], mask[rows]
    bonds = bonded(atoms, positions, mask)
    return Molecules(atoms, positions, bonds, mask, targets[rows], smiles[rows])


def distances(positions):
    """Return the distances ‖x_i - x_j‖ between all pairs of points, [..., N, N].

    Args:
        positions   positions of the points [..., N, D], such as those of the atoms in `Molecules`

    Returns:
        the distances, in the unit and dtype of the positions (float64 for integers)

    Raises:
        ValueError: positions are not numbers [..., N, D]
    """
    positions = np.asarray(positions)
    if positions.ndim < 2 or positions.dtype.kind not in "fiub":
        raise ValueError(
            f"distances: positions must be numbers [..., N, D], got {positions.dtype} of shape "
            f"{positions.shape}"
        )
    if positions.dtype.kind != "f":
        positions = positions.astype(np.float64)  # differences of unsigned integers would wrap
    return np.linalg.norm(positions[..., :, None, :] - positions[..., None, :, :], axis=-1)


def bonded(atoms, positions, mask):
    """Return which atoms are bonded, [B, N, N] bool.

    Two atoms are bonded if their distance is less than 1.16 times the sum of their covalent radii.
    With this factor, the bonds of all 2,000 molecules agree with their SMILES.

    Args:
        atoms       symbol of each atom, one-hot over SYMBOLS [B, N, 5]
        positions   coordinates in Å [B, N, 3]
        mask        True where there is an atom [B, N] bool
    """
    reach = (atoms @ RADII)[..., None] + (atoms @ RADII)[..., None, :]
    pairs = mask[:, :, None] & mask[:, None, :] & ~np.eye(mask.shape[1], dtype=bool)
    return pairs & (distances(positions) < 1.16 * reach)
