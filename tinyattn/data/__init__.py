"""Small real and generated data sets, and functions that cut them into batches."""

from tinyattn.data import sentences, tokenizers, translation
from tinyattn.data.batches import Batches, batches, split
from tinyattn.data.digits import digits
from tinyattn.data.emoji import emoji
from tinyattn.data.generated import moons, sine, spirals
from tinyattn.data.grids import Grids, grids
from tinyattn.data.jets import Jets, four_momenta, hard_jets, jet_features, jets, quark_directions
from tinyattn.data.light_curves import LightCurves, light_curves
from tinyattn.data.molecules import Molecules, distances, molecules
from tinyattn.data.networks import distractors, karate_club, les_miserables, stochastic_block_model
from tinyattn.data.overlaps import Overlaps, overlaps
from tinyattn.data.shapes import Shapes, shapes
from tinyattn.data.showers import Showers, showers
from tinyattn.data.text import english, windows
from tinyattn.data.tracks import Tracks, tracks
from tinyattn.engine import torch_hints

__all__ = [
    "Batches",
    "Grids",
    "Jets",
    "LightCurves",
    "Molecules",
    "Overlaps",
    "Shapes",
    "Tracks",
    "Showers",
    "batches",
    "stochastic_block_model",
    "digits",
    "distances",
    "distractors",
    "emoji",
    "english",
    "four_momenta",
    "grids",
    "hard_jets",
    "jet_features",
    "jets",
    "karate_club",
    "les_miserables",
    "light_curves",
    "molecules",
    "moons",
    "overlaps",
    "quark_directions",
    "sentences",
    "shapes",
    "showers",
    "sine",
    "spirals",
    "split",
    "tokenizers",
    "translation",
    "tracks",
    "windows",
]


torch_hints.hint_functions(globals(), __all__)


def __getattr__(name):
    """Raise AttributeError for the missing `name`, with what to write instead, if known."""
    raise torch_hints.no_such_name(__name__, name)
