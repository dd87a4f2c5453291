"""The cases of `tests/cases/ops.py` for positions, parts of language models, and models."""

from functools import partial

import numpy as np

from tests.cases.layers import NOTHING_TO_CHECK, layer
from tests.cases.ops import CASES, normal
from tinyattn import models, nn
from tinyattn.models import BERT, GPT, Classifier, Llama, MaskedWords, Seq2Seq

__all__ = ["CASES"]

X = normal(2, 3, 4)
IDS, KEEP = np.array([[1, 0, 2], [2, 2, 0]]), np.array([[1, 1, 1], [1, 1, 0]], bool)

layer(nn.LearnedPositionalEmbedding, X, make=nn.LearnedPositionalEmbedding(5, 4, rng=0))
layer(
    nn.LearnedPositionalEmbedding,
    X,
    make=nn.LearnedPositionalEmbedding(5, 4, rng=0),
    positions=np.array([0, 4, 4]),
)
layer(nn.ConcatPositionalEncoding, X, make=nn.ConcatPositionalEncoding(2))
for rotary in (nn.RotaryEmbedding, nn.InterleavedRotaryEmbedding):
    layer(rotary, X, make=rotary(4))
    layer(rotary, normal(2, 2, 3, 4), make=rotary(4), positions=np.array([[0, 1, 2], [7, 8, 9]]))
layer(nn.SwiGLU, X, make=nn.SwiGLU(4, 3, rng=0))
layer(nn.GroupedQueryAttention, X, make=nn.GroupedQueryAttention(4, 2, 1, rng=0))
layer(nn.LlamaBlock, X, make=nn.LlamaBlock(4, 2, 1, 3, rng=0))
layer(nn.LlamaBlocks, X, make=nn.LlamaBlocks([nn.LlamaBlock(4, 2, 1, 3, rng=i) for i in (0, 1)]))
layer(nn.GroupedQueryAttention, X[:, :1], make=nn.GroupedQueryAttention(4, 2, rng=0))
layer(
    nn.GroupedQueryAttention,
    X,
    make=nn.GroupedQueryAttention(4, 2, 1, rng=0),
    mask=np.array([[[1, 0, 1]], [[1, 1, 1]]], bool),
)

# whole models: gradients of their parameters, first order, in random directions
bert = partial(BERT, 3, 4, 2, 1, max_len=3, dim_feedforward=3)
for model, inputs in (
    (GPT(3, 4, 2, 1, 3, rng=0), (IDS,)),
    (Llama(3, 4, 2, 1, 1, 3, rng=0), (IDS,)),
    (bert(rng=0), (IDS, IDS % 2, KEEP)),
    (MaskedWords(bert(rng=1), rng=0), (IDS, None, KEEP)),
    (Classifier(bert(rng=2), 2, dropout=0.0, rng=0), (IDS, None, KEEP)),
    (Seq2Seq(3, 4, 2, 1, 3, dropout=0.0, rng=0), (IDS, np.array([[1, 2], [0, 1]]))),
):
    layer(type(model), *inputs, make=model, order=1)

# particles of a jet: features, four-momenta in GeV, and which of them are particles
THERE = np.array([[1, 1, 1], [1, 1, 0]], bool)
P = 3 * normal(2, 3, 3)
P = np.concatenate([np.sqrt(1 + np.sum(P**2, axis=-1, keepdims=True)), P], axis=-1)
part = partial(models.ParticleTransformer, 4, 2, (4, 4), (3,), 2, 1, 1, dropout=0.0)
for pairs in ((P,), (None,)):
    layer(models.ParticleTransformer, X, *pairs, make=part(rng=0), order=1, mask=THERE)

# atoms of a molecule: features, distances, bonds
molecule = partial(models.MoleculeAttentionTransformer, 4, 2, 4, 2, 1, rng=0)
BONDS = np.array([[[0, 1, 0], [1, 0, 1], [0, 1, 0]], [[0, 1, 0], [1, 0, 0], [0, 0, 0]]], bool)
for g in ("softmax", "exp"):
    layer(
        models.MoleculeAttentionTransformer,
        X,
        np.abs(normal(2, 3, 3)),
        BONDS,
        order=1,
        make=molecule(g=g),
        mask=THERE,
    )

# light curves: times in days, magnitudes, and which of them may be seen
TIMES, SEEN = np.array([[0.0, 1.1, 5.2], [0.0, 2.3, 2.9]]), np.array([[1, 0, 1], [1, 1, 1]], bool)
astromer = partial(models.Astromer, 4, 2, 1, 3, rng=0)
for model, mask in (
    (astromer(), {"keep": THERE, "visible": SEEN}),
    (models.MaskedMagnitudes(astromer(), rng=1), {"keep": THERE, "visible": SEEN}),
    (models.StarClassifier(astromer(), 2, 3, rng=1), {"keep": THERE}),
):
    layer(type(model), TIMES, normal(2, 3), make=model, order=1, **mask)

NOTHING_TO_CHECK |= {nn.KeyValueCache, nn.CrossAttentionCache, nn.SkipInit}  # plain arrays
