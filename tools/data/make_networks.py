"""Make networks.npz from the copies of two small networks that networkx brings along.

pip install networkx && python -m tools.data.make_networks
"""

from pathlib import Path

import numpy as np

DATA = Path(__file__).resolve().parents[2] / "tinyattn" / "data"


def make(path):
    import networkx

    karate, novel = networkx.karate_club_graph(), networkx.les_miserables_graph()
    if (len(karate), karate.size()) != (34, 78) or (len(novel), novel.size()) != (77, 254):
        raise ValueError("expected 34 people, 78 ties and 77 characters, 254 pairs: another copy?")
    club = [karate.nodes[i]["club"] != "Mr. Hi" for i in range(34)]
    number = {name: i for i, name in enumerate(novel)}
    pairs = [(number[a], number[b], d["weight"]) for a, b, d in novel.edges(data=True)]
    np.savez_compressed(
        path,
        karate=np.array(karate.edges, np.uint8),
        club=np.array(club, np.uint8),
        novel=np.array(pairs, np.uint8),
        names=np.array(list(novel)),
    )


if __name__ == "__main__":
    make(DATA / "networks.npz")
