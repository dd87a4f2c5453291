"""Make jets.npz: simulated jets of light quarks and gluons (QCD) and of top quarks.

pip install pythia8mc fastjet && python -m tinyattn.data.make_jets
The seeds are fixed: the same versions of both give the same file.

Proton collisions at 14 TeV by Pythia 8 with its standard settings, no detector. All stable
particles but neutrinos with |η| < 4 are clustered by anti-kT with radius 0.8. Of an event, the two
hardest jets with 500 < pT < 700 GeV and |η| < 2 are kept; a top jet must hold the top quark and
the three quarks into which it decayed (all within 0.8 of the jet axis).
"""

import sys
from pathlib import Path

import numpy as np

PER_CLASS = 2500
CONSTITUENTS = 40  # the hardest ones
RADIUS, PT_MIN, PT_MAX, ETA_MAX = 0.8, 500, 700, 2
NEUTRINOS = {12, 14, 16}
QCD = ["HardQCD:all = on"]
TOP = ["Top:gg2ttbar = on", "Top:qqbar2ttbar = on", "24:onMode = off", "24:onIfAny = 1 2 3 4 5"]
# most jets of a process are softer than what is wanted, so the hard scattering is cut
COMMON = ["Beams:eCM = 14000", "PhaseSpace:pTHatMin = 450", "PhaseSpace:pTHatMax = 800"]


def generator(settings, seed):
    import pythia8mc

    pythia = pythia8mc.Pythia("", False)
    for line in [*COMMON, *settings, "Print:quiet = on", "Random:setSeed = on",
                 f"Random:seed = {seed}"]:  # fmt: skip
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


def jets_of(event, want_top):
    """(pT, η, mass, constituents [n, 4] of pT, Δη, Δφ, charge) of the jets of one event."""
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
    for jet in fastjet.sorted_by_pt(cluster.inclusive_jets(PT_MIN))[:2]:
        eta, phi = jet.eta(), jet.phi_std()
        if jet.pt() > PT_MAX or abs(eta) > ETA_MAX:
            continue
        if want_top and not any(
            all(distance(eta, phi, *quark) < RADIUS for quark in top) for top in truth
        ):
            continue
        rows = [
            (c.pt(), c.eta() - eta, wrapped(c.phi_std() - phi), c.user_index())
            for c in fastjet.sorted_by_pt(jet.constituents())
        ]
        yield jet.pt(), eta, jet.m(), np.array(rows)[:CONSTITUENTS]


def collect(settings, want_top, seed):
    pythia, found = generator(settings, seed), []
    while len(found) < PER_CLASS:
        if pythia.next():
            found += jets_of(pythia.event, want_top)
    return found[:PER_CLASS]


def make(path):
    found = collect(QCD, False, 1) + collect(TOP, True, 2)
    label = np.arange(len(found)) // PER_CLASS
    mass = np.array([jet[2] for jet in found])
    middle = np.median(mass[label == 0]), np.median(mass[label == 1])
    print("median mass of QCD and top jets: {:.1f} and {:.1f} GeV".format(*middle))
    if not (60 < middle[0] < 95 and 165 < middle[1] < 182):
        raise ValueError("expected median masses near 77 and 173 GeV")
    order = np.random.default_rng(3).permutation(len(found))
    rows = np.concatenate([found[i][3] for i in order])
    np.savez_compressed(
        path,
        label=label[order].astype(np.uint8),
        jet=np.array([found[i][:3] for i in order], np.float32),
        count=np.array([len(found[i][3]) for i in order], np.uint8),
        # column by column: that compresses better
        pt=rows[:, 0].astype(np.float16),
        angles=np.round(rows[:, 1:3].T * 2000).astype(np.int16),  # steps of 0.0005
        charge=rows[:, 3].astype(np.int8),
    )
    print(f"{path}: {Path(path).stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    make(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).with_name("jets.npz"))
