"""Small data sets, real and generated, and how to cut them into batches."""

from tinyattn.data import sentences, tokenizers
from tinyattn.data.batches import Batches, batches, split
from tinyattn.data.digits import digits
from tinyattn.data.emoji import emoji
from tinyattn.data.generated import moons, sine, spirals
from tinyattn.data.grids import Grids, grids
from tinyattn.data.jets import Jets, jet_features, jets
from tinyattn.data.networks import blocks, distractors, karate_club, les_miserables
from tinyattn.data.text import english, windows

__all__ = [
    "Batches",
    "Grids",
    "Jets",
    "batches",
    "blocks",
    "digits",
    "distractors",
    "emoji",
    "english",
    "grids",
    "jet_features",
    "jets",
    "karate_club",
    "les_miserables",
    "moons",
    "sentences",
    "sine",
    "spirals",
    "split",
    "tokenizers",
    "windows",
]
