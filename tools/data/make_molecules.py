"""Make molecules.npz: 2000 molecules of QM9, drawn at random.

pip install --no-deps qm9pack && python -m tools.data.make_molecules
"""

import ast
import csv
import importlib.util
import json
import sys
from pathlib import Path

import numpy as np

from tinyattn.data.molecules import FILE, SYMBOLS

HOW_MANY, TOTAL = 2000, 130831
HARTREE = 27.211386  # eV
# energies of single atoms by the same method in Hartree: what the atomization energy starts from
ATOM = {"H": -0.500273, "C": -37.846772, "N": -54.583861, "O": -75.064579, "F": -99.718730}


def rows():
    """The lines of the package's tables, without importing it: it would need pandas."""
    package = Path(importlib.util.find_spec("qm9pack").submodule_search_locations[0])
    for part in (1, 2, 3):
        with open(package / "data" / f"qm9_part{part}.csv", newline="") as file:
            yield from csv.DictReader(file)


def targets(row, symbols):
    """The numbers of `molecules.TARGETS`, in their order."""
    atoms = sum(ATOM[s] for s in symbols)
    return [
        (atoms - float(row["InternalEnergy_0K_au"])) * HARTREE,
        float(row["Dipole_debye"]),
        float(row["Polarizability_bohr3"]),
        float(row["HOMO_au"]) * HARTREE,
        float(row["LUMO_au"]) * HARTREE,
        float(row["HOMO_LUMO_gap_au"]) * HARTREE,
        float(row["R2_bohr2"]),
        float(row["ZPVE_au"]) * HARTREE,
        float(row["Heatcapacity_Cv_cal_mol_K"]),
    ]


def make(path):
    chosen = np.sort(np.random.default_rng(0).permutation(TOTAL)[:HOW_MANY])
    wanted, molecules, last = set(chosen.tolist()), [], -1
    for last, row in enumerate(rows()):
        if last in wanted:
            symbols = ast.literal_eval(row["Elements"])
            molecules.append((row, symbols, json.loads(row["XYZ_Ang"])))
    if last + 1 != TOTAL:
        raise ValueError(f"expected {TOTAL} molecules in qm9pack, got {last + 1}: another version?")
    order = np.random.default_rng(1).permutation(HOW_MANY)  # the file's last ones are the test
    molecules = [molecules[i] for i in order]
    positions = np.concatenate([np.array(xyz) - np.mean(xyz, axis=0) for *_, xyz in molecules])
    np.savez_compressed(
        path,
        count=np.array([len(symbols) for _, symbols, _ in molecules], np.uint8),
        atoms=np.array([SYMBOLS.index(s) for _, m, _ in molecules for s in m], np.uint8),
        positions=np.round(positions.T * 1000).astype(np.int16),  # steps of 0.001 Å
        targets=np.array([targets(row, m) for row, m, _ in molecules], np.float32),
        smiles="\n".join(row["SMILES"] for row, *_ in molecules),
    )
    print(f"{path}: {Path(path).stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    make(Path(sys.argv[1]) if sys.argv[1:] else FILE)
