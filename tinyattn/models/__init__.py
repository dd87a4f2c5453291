"""Published architectures, one in each file, composed of the layers in `tinyattn.nn`."""

from tinyattn.engine import torch_hints
from tinyattn.models.astromer import (
    Astromer,
    MaskedMagnitudes,
    StarClassifier,
    hide_magnitudes,
)
from tinyattn.models.bert import BERT, Classifier, MaskedWords, mask_tokens
from tinyattn.models.captioner import Captioner, FixedCaptioner
from tinyattn.models.captioner_attention import AdditiveScore, Attend, DotScore, SigmoidGate
from tinyattn.models.captioner_regions import CaptionerCells, Regions
from tinyattn.models.dgcnn import DGCNN, DGCNNSegmentation
from tinyattn.models.gpt import GPT
from tinyattn.models.gravnet import GravNetModel
from tinyattn.models.llama import Llama
from tinyattn.models.molecule_attention import MoleculeAttentionTransformer
from tinyattn.models.particle_transformer import ParticleTransformer
from tinyattn.models.particlenet import ParticleNet
from tinyattn.models.seq2seq import Seq2Seq

__all__ = [
    "AdditiveScore",
    "Astromer",
    "Attend",
    "BERT",
    "Captioner",
    "CaptionerCells",
    "Classifier",
    "DGCNN",
    "DGCNNSegmentation",
    "DotScore",
    "FixedCaptioner",
    "GPT",
    "GravNetModel",
    "Llama",
    "MaskedMagnitudes",
    "MaskedWords",
    "MoleculeAttentionTransformer",
    "ParticleNet",
    "ParticleTransformer",
    "Regions",
    "Seq2Seq",
    "SigmoidGate",
    "StarClassifier",
    "hide_magnitudes",
    "mask_tokens",
]


torch_hints.hint_functions(globals(), __all__)


def __getattr__(name):
    """Raise AttributeError for the missing `name`, with what to write instead, if known."""
    raise torch_hints.no_such_name(__name__, name)
