"""Simulated jets, which are sprays of particles from a light quark, a gluon or a top quark."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from tinyattn.data.byte_planes import bytes_together

FILE, HARD_FILE = (Path(__file__).with_name(f"{name}.npz") for name in ("jets", "hard_jets"))
HARD_TEST = 4000  # number of test jets, which are the last ones of hard_jets.npz


class Jets(NamedTuple):
    """B jets of at most P = 40 particles, which are sorted by descending pT and padded with 0.

    Attributes:
        particles   pT in GeV, and Δη and Δφ (in radians) relative to the axis of the jet [B, P, 3]
                    float32
        charge      electric charge in units of e: -1, 0 or 1 [B, P] int64
        mask        True where there is a particle [B, P] bool
        label       0 for QCD (a light quark or a gluon), 1 for a top quark [B] int64
        jet         pT in GeV, η and mass in GeV of the jet, computed from all particles, including
                    those that are not among the P hardest [B, 3] float32
    """

    particles: np.ndarray  # [B, P, 3] float32: pT in GeV, Δη and Δφ from the axis of the jet
    charge: np.ndarray  # [B, P] int64: -1, 0 or 1
    mask: np.ndarray  # [B, P] bool, True where there is a particle
    label: np.ndarray  # [B] int64: 0 QCD, 1 top
    jet: np.ndarray  # [B, 3] float32: pT in GeV, η, mass in GeV, of all particles of the jet


def jets(part="train"):
    """Load simulated QCD and top jets with pT from 500 to 700 GeV, about half of each kind.

    The jets were simulated with Pythia 8, without a detector, and clustered with the anti-kT
    algorithm and radius 0.8. The 40 hardest particles of each jet are kept. These carry 96% of the
    momentum of a jet, but only 78% of the mass of a QCD jet and 89% of the mass of a top jet
    (medians over the jets). The jets are in random order.

    Args:
        part   "train" for 4,000 jets, "test" for 1,000 others, or "all" for all 5,000

    Returns:
        `Jets`

    Raises:
        ValueError: part is not "train", "test" or "all"
    """
    return _loaded("jets", FILE, part, test=1000)


def hard_jets(part="train"):
    """Load simulated QCD and top jets with pT from 700 to 1,000 GeV, about half of each kind.

    These jets were simulated in the same way as `jets`. You can therefore pre-train a model on many
    hard jets, and then fine-tune it on a few of the jets of `jets`, whose pT is lower.

    Args:
        part   "train" for 16,000 jets, "test" for 4,000 others, or "all" for all 20,000

    Returns:
        `Jets`, in random order

    Raises:
        ValueError: part is not "train", "test" or "all"
    """
    return _loaded("hard_jets", HARD_FILE, part, test=HARD_TEST)


def quark_directions():
    """Return the directions of the three quarks of top jets in `hard_jets("test")`, [4000, 3, 2].

    The last axis is Δη and Δφ (in radians) relative to the axis of the jet, before the quarks
    radiate. The first quark is the b quark, and the other two come from the W boson. To save space,
    the directions are stored for only 799 of the top jets. All other rows, including those of QCD
    jets, are NaN.

    Returns:
        [4000, 3, 2] float32, where row i belongs to jet i of `hard_jets("test")`
    """
    quarks = np.full((HARD_TEST, 3, 2), np.nan, np.float32)
    with np.load(HARD_FILE) as stored:
        steps = bytes_together(stored["quarks"], "<i2").reshape(-1, 3, 2)
        quarks[stored["with_quarks"]] = steps / np.float32(2000)
    return quarks


def _loaded(name, file, part, test):
    """Return one part of the jets in a file, where all jets are shuffled and the test jets last."""
    if part not in ("train", "test", "all"):
        raise ValueError(f'{name}: part must be "train", "test" or "all", got {part!r}')
    with np.load(file) as stored:
        label, count, charge = stored["label"], stored["count"].astype(np.int64), stored["charge"]
        jet = bytes_together(stored["jet"], "<f4").reshape(3, -1).T.astype(np.float32, order="C")
        steps = bytes_together(stored["pt"], "<i2")
        angles = bytes_together(stored["angles"], "<i2").reshape(2, -1)
    rows = {"train": slice(0, -test), "test": slice(-test, None), "all": slice(None)}[part]
    mask = np.arange(count.max()) < count[:, None]  # [B, P]
    particles = np.zeros((*mask.shape, 3), np.float32)
    particles[mask, 0] = momenta(steps, mask)[mask]
    particles[mask, 1:] = angles.T / np.float32(2000)
    charges = np.zeros(mask.shape, np.int64)
    charges[mask] = charge
    return Jets(*(x[rows] for x in (particles, charges, mask, label.astype(np.int64), jet)))


def steps_of(pt, mask):
    """Return pT as differences of integers [N] int16, which compress an eighth better.

    If the bits of a float16 >= 0 are interpreted as an integer, a larger number has a larger
    integer. The hardest particle of a jet is stored as this integer, and each further particle as
    the difference from the previous one. The hardest particles of all jets come first.

    Args:
        pt     pT in GeV [B, P], the hardest first
        mask   True where there is a particle [B, P]

    Returns:
        [N] int16, one number for each particle
    """
    bits = pt.astype("<f2").view("<i2")
    return np.diff(bits, axis=1, prepend=bits.dtype.type(0)).T[mask.T]


def momenta(steps, mask):
    """Return pT in GeV [B, P] float16 from its stored form, the inverse of `steps_of`.

    Args:
        steps   result of `steps_of`, [N] int16
        mask    True where there is a particle [B, P]
    """
    bits = np.zeros(mask.shape, "<i2")
    bits.T[mask.T] = steps
    return np.cumsum(bits, axis=1, dtype="<i2").view("<f2")


def jet_features(jets):
    """Return the inputs of ParticleNet for each particle, [B, P, 7].

    The features are Δη, Δφ, ln pT, ln E, ln(pT/pT(jet)), ln(E/E(jet)) and ΔR = √(Δη² + Δφ²), with
    pT and E in GeV. Particles are treated as massless, so their energies are E = pT cosh η.

    Args:
        jets   `Jets`

    Returns:
        [B, P, 7] float32, padded with 0

    Raises:
        TypeError: jets is not a `Jets`

    Source: Qu, Gouskos 2019, table 1, without the charge and type of the particle.
    """
    _check_jets("jet_features", jets)
    pt, deta, dphi = np.moveaxis(jets.particles, -1, 0)
    pt = np.where(jets.mask, pt, 1)
    jet_pt, jet_eta, jet_mass = jets.jet.T[:, :, None]  # each [B, 1]
    energy = pt * np.cosh(jet_eta + deta)
    jet_energy = np.sqrt((jet_pt * np.cosh(jet_eta)) ** 2 + jet_mass**2)
    columns = (
        deta,
        dphi,
        np.log(pt),
        np.log(energy),
        np.log(pt / jet_pt),
        np.log(energy / jet_energy),
        np.hypot(deta, dphi),
    )
    return np.where(jets.mask[..., None], np.stack(columns, axis=-1), 0).astype(np.float32)


def _check_jets(name, jets):
    if not hasattr(jets, "particles"):
        raise TypeError(
            f"{name}: jets must be a Jets, the result of data.jets() or data.hard_jets(), got an "
            f"object of type {type(jets).__name__}"
        )


def four_momenta(jets):
    """Return E, px, py, pz of each particle in GeV, [B, P, 4] float64, padded with 0.

    The beam is the z axis, the axis of the jet is at φ = 0, and particles are treated as massless:
    px = pT cos Δφ, py = pT sin Δφ, pz = pT sinh η, E = pT cosh η with η = η(jet) + Δη.

    Args:
        jets   `Jets`

    Returns:
        [B, P, 4] float64

    Raises:
        TypeError: jets is not a `Jets`
    """
    _check_jets("four_momenta", jets)
    pt, deta, dphi = np.moveaxis(jets.particles.astype(np.float64), -1, 0)
    eta = jets.jet[:, 1, None] + deta
    columns = pt * np.cosh(eta), pt * np.cos(dphi), pt * np.sin(dphi), pt * np.sinh(eta)
    return np.stack(columns, axis=-1)
