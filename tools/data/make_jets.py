"""Make jets.npz and hard_jets.npz: simulated jets of quarks and gluons (QCD) and of top quarks.

pip install pythia8mc fastjet && python -m tools.data.make_jets jets.npz
The seeds are fixed: the same versions of both give the same file.

Proton collisions at 14 TeV by Pythia 8 with its standard settings, no detector. All stable
particles but neutrinos with |η| < 4 are clustered by anti-kT with radius 0.8. Of an event, the two
hardest jets with |η| < 2 and a pT between the limits of the sample are kept; a top jet must hold
the top quark and the three quarks into which it decayed (all within 0.8 of the jet axis).
"""

import io
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tinyattn.data.byte_planes import bytes_apart
from tinyattn.data.jets import steps_of

DATA = Path(__file__).resolve().parents[2] / "tinyattn" / "data"


class Sample(NamedTuple):
    """What differs between the two files."""

    per_class: int
    pt: tuple  # limits of the jet's pT in GeV
    pt_hat: tuple  # of the hard scattering: most are softer than what is wanted, so it is cut
    median_mass: tuple  # limits in GeV for QCD and for top jets: a check of the physics
    seeds: tuple  # of QCD, of top, of the order
    test: int  # the last jets of the file, to judge a model
    with_quarks: int  # this many simulated top jets; the quarks of those in the test set are kept


SAMPLES = {
    "jets.npz": Sample(2500, (500, 700), (450, 800), ((60, 95), (165, 182)), (1, 2, 3), 1000, 0),
    "hard_jets.npz": Sample(
        10000, (700, 1000), (630, 1150), ((85, 130), (168, 192)), (4, 5, 6), 4000, 4000
    ),
}
CONSTITUENTS = 40  # the hardest ones
RADIUS, ETA_MAX = 0.8, 2
NEUTRINOS = {12, 14, 16}
QCD = ["HardQCD:all = on"]
TOP = ["Top:gg2ttbar = on", "Top:qqbar2ttbar = on", "24:onMode = off", "24:onIfAny = 1 2 3 4 5"]


def generator(settings, pt_hat, seed):
    import pythia8mc

    low, high = pt_hat
    pythia = pythia8mc.Pythia("", False)
    for line in [
        "Beams:eCM = 14000",
        f"PhaseSpace:pTHatMin = {low}",
        f"PhaseSpace:pTHatMax = {high}",
        *settings,
        "Print:quiet = on",
        "Random:setSeed = on",
        f"Random:seed = {seed}",
    ]:
        if not pythia.readString(line):
            raise ValueError(f"Pythia does not know {line!r}")
    if not pythia.init():
        raise RuntimeError("Pythia did not start")
    return pythia


def distance(eta1, phi1, eta2, phi2):
    """ΔR = √(Δη² + Δφ²)."""
    return np.hypot(eta1 - eta2, wrapped(phi1 - phi2))


def wrapped(phi):
    """An angle in -π … π."""
    return (phi + np.pi) % (2 * np.pi) - np.pi


def tops(event):
    """The (η, φ) of each decaying top quark and of the three quarks it turned into."""
    found = []
    for i in range(event.size()):
        p = event[i]
        daughters = [event[j] for j in p.daughterList()]
        bosons = [d for d in daughters if d.idAbs() == 24]
        if p.idAbs() != 6 or not bosons:
            continue  # not a top quark, or one that only radiated
        boson = bosons[0]
        while any(event[j].idAbs() == 24 for j in boson.daughterList()):
            boson = next(event[j] for j in boson.daughterList() if event[j].idAbs() == 24)
        quarks = [d for d in daughters if d.idAbs() in (1, 3, 5)]
        quarks += [event[j] for j in boson.daughterList()]
        if len(quarks) == 3:
            found.append([(p.eta(), p.phi())] + [(q.eta(), q.phi()) for q in quarks])
    return found


def jets_of(event, want_top, pt_min, pt_max):
    """(pT, η, mass, constituents [n, 4], quarks [3, 2]) of the jets of one event.

    A constituent is pT, Δη, Δφ, charge; a quark of a top jet is Δη, Δφ (None for QCD).
    """
    import fastjet

    stable = []
    for i in range(event.size()):
        p = event[i]
        if p.isFinal() and p.idAbs() not in NEUTRINOS and abs(p.eta()) < 4:
            particle = fastjet.PseudoJet(p.px(), p.py(), p.pz(), p.e())
            particle.set_user_index(int(p.charge()))
            stable.append(particle)
    cluster = fastjet.ClusterSequence(
        stable, fastjet.JetDefinition(fastjet.antikt_algorithm, RADIUS)
    )
    truth = tops(event) if want_top else None
    for jet in fastjet.sorted_by_pt(cluster.inclusive_jets(pt_min))[:2]:
        eta, phi = jet.eta(), jet.phi_std()
        if jet.pt() > pt_max or abs(eta) > ETA_MAX:
            continue
        quarks = None
        if want_top:
            inside = [
                top for top in truth if all(distance(eta, phi, *quark) < RADIUS for quark in top)
            ]
            if not inside:
                continue
            quarks = [(e - eta, wrapped(p - phi)) for e, p in inside[0][1:]]  # without the top
        rows = [
            (c.pt(), c.eta() - eta, wrapped(c.phi_std() - phi), c.user_index())
            for c in fastjet.sorted_by_pt(jet.constituents())
        ]
        yield jet.pt(), eta, jet.m(), np.array(rows)[:CONSTITUENTS], quarks


def collect(settings, want_top, sample, seed):
    pythia, found = generator(settings, sample.pt_hat, seed), []
    while len(found) < sample.per_class:
        if pythia.next():
            found += jets_of(pythia.event, want_top, *sample.pt)
    return found[: sample.per_class]


def make(path, sample):
    of_qcd, of_top, of_order = sample.seeds
    found = collect(QCD, False, sample, of_qcd) + collect(TOP, True, sample, of_top)
    label = np.arange(len(found)) // sample.per_class
    mass = np.array([jet[2] for jet in found])
    for kind, (low, high) in enumerate(sample.median_mass):
        middle = np.median(mass[label == kind])
        print(f"median mass of {('QCD', 'top')[kind]} jets: {middle:.1f} GeV")
        if not low < middle < high:
            raise ValueError(f"expected a median mass between {low} and {high} GeV")
    order = np.random.default_rng(of_order).permutation(len(found))
    rows = np.concatenate([found[i][3] for i in order])
    count = np.array([len(found[i][3]) for i in order], np.uint8)
    mask = np.arange(count.max()) < count[:, None]
    pt = np.zeros(mask.shape)
    pt[mask] = rows[:, 0]
    judged = order[-sample.test :]
    top = judged - sample.per_class  # number of each top jet of the test set, as simulated
    known = np.flatnonzero((top >= 0) & (top < sample.with_quarks))  # rows of the test set
    quarks = {
        "with_quarks": known.astype(np.uint16),
        "quarks": bytes_apart(in_steps([found[judged[i]][4] for i in known])),
    }
    save_small(
        path,
        **(quarks if sample.with_quarks else {}),
        label=label[order].astype(np.uint8),
        count=count,
        # column by column, and the bytes apart: that compresses better
        jet=bytes_apart(np.array([found[i][:3] for i in order], "<f4").T),
        pt=bytes_apart(steps_of(pt, mask)),
        angles=bytes_apart(in_steps(rows[:, 1:3].T)),
        charge=rows[:, 3].astype(np.int8),
    )
    print(f"{path}: {Path(path).stat().st_size / 1e6:.2f} MB")


def in_steps(angles):
    """Angles as whole numbers of steps of 0.0005."""
    return np.round(np.asarray(angles) * 2000).astype("<i2")


def save_small(path, **arrays):
    """What np.savez_compressed writes, compressed as far as it goes: 1% smaller, and slower."""
    with zipfile.ZipFile(path, "w") as file:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, array, allow_pickle=False)
            place = zipfile.ZipInfo(f"{name}.npy")  # without the time, so the same file each time
            file.writestr(place, content.getvalue(), zipfile.ZIP_DEFLATED, compresslevel=9)


if __name__ == "__main__":
    for name in sys.argv[1:] or SAMPLES:
        make(DATA / name, SAMPLES[name])
