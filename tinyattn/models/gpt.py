"""GPT: a decoder-only transformer that predicts the next token.

Sources: Radford et al. 2018, 2019; slides H03, H04, H06.
"""

import math

import numpy as np

import tinyattn.functional as F
from tinyattn import nn
from tinyattn.engine.convert import as_tensor
from tinyattn.engine.dtypes import DEFAULT_DTYPE
from tinyattn.engine.random import generator
from tinyattn.models.generation import generate
from tinyattn.nn.validation import check_sizes

# the outputs of these layers are added to x
ADDS_TO_X = ("out_proj", "linear2", "o_proj", "down_proj")


class GPT(nn.Module):
    """A language model that predicts the next token; token t sees the tokens ≤ t.

        x = E[ids] + P[0..T-1]
        x ← x + Attention(norm x),  x ← x + W₂ gelu(W₁ norm x)      num_layers times
        logits = norm(x) Eᵀ                                          the head is the embedding

    Weights start normal with standard deviation 0.02 √(768/d_model), those that add to x smaller by
    1/√(2 num_layers). At d_model = 768 that is GPT-2; with the same 0.02, a narrow model would
    start with scores that are almost zero and learn slowly. Dropout acts on the attention weights
    and before each sum.

    Args:
        vocab_size   number of tokens V
        d_model      number of features
        num_heads    number of heads; it divides d_model
        num_layers   number of layers
        max_len      number of positions
        dropout      probability with which a number becomes 0 in training
        rng          seed or numpy.random.Generator for the initial values
    """

    def __init__(self, vocab_size, d_model, num_heads, num_layers, max_len, dropout=0.0, rng=None):
        check_sizes(
            self,
            vocab_size=vocab_size,
            d_model=d_model,
            num_heads=num_heads,
            num_layers=num_layers,
            max_len=max_len,
        )
        rng = None if rng is None else generator(rng)
        self.max_len = max_len
        self.embedding = nn.Embedding(vocab_size, d_model, rng=rng)
        self.positions = nn.LearnedPositionalEmbedding(max_len, d_model, rng=rng)
        self.dropout = nn.Dropout(dropout, rng)
        layer = nn.TransformerEncoderLayer(
            d_model, num_heads, 4 * d_model, dropout, "gelu", norm_first=True, rng=rng
        )
        self.blocks = nn.TransformerEncoder(layer, num_layers, nn.LayerNorm(d_model))
        init_weights(self, d_model, rng, num_layers)

    def features(self, ids, cache=None):
        """Return the input of the head, [B, T, d_model].

        Args:
            ids     tokens [B, T]; with a cache those that are new
            cache   result of `empty_cache`, or None
        """
        positions = cache[0].positions(ids.shape[-1]) if cache else None
        x = self.dropout(self.positions(self.embedding(ids), positions))
        return self.blocks(x, causal=True, cache=cache)

    def head(self, features):
        """Return the scores of all tokens, [..., V], for `features` [..., d_model]."""
        return F.linear(features, self.embedding.weight)

    def forward(self, ids, cache=None):
        """Return the logits of the next token after each token, [B, T, V].

        Args:
            ids     tokens [B, T]; with a cache those that follow it
            cache   result of `empty_cache`, or None

        Raises:
            ValueError: ids have another shape, or without a cache more than max_len tokens
        """
        ids = as_tensor(ids)
        if ids.ndim != 2 or (cache is None and ids.shape[1] > self.max_len):
            raise ValueError(
                f"GPT: ids must be [B, T] with T <= {self.max_len}, got shape {ids.shape}"
            )
        return self.head(self.features(ids, cache))

    def empty_cache(self):
        """Return an empty cache for `features` and `forward`."""
        return self.blocks.empty_cache()

    def generate(
        self,
        ids,
        max_new_tokens,
        temperature=1.0,
        top_k=None,
        top_p=None,
        rng=None,
        cache=True,
        stop=None,
        compiled=True,
    ):
        """Return the prompt and its continuation, token by token; see `models.generation.generate`.

        Args:
            ids              one prompt [T], prompts [B, T], or a list of prompts of different
                             length
            max_new_tokens   largest number of new tokens
            temperature      0 always takes the likeliest token
            top_k            only the k likeliest tokens are drawn; None: all
            top_p            only the likeliest tokens of total probability top_p are drawn; None:
                             all
            rng              seed or numpy.random.Generator
            cache            False: all is computed again for each token, with the same result
            stop             token, or several, after which a sequence ends
            compiled         False: the modules themselves run, not the compiled model
        """
        return generate(
            self, ids, max_new_tokens, temperature, top_k, top_p, rng, cache, stop, compiled
        )


def init_weights(model, d_model, rng, num_layers=None):
    """Initialize matrices from a normal distribution with standard deviation 0.02 √(768/d_model),
    and biases to zero.

    Given num_layers L, the matrices whose output is added to x are smaller by 1/√(2 L).
    """
    rng, std = generator(rng), 0.02 * math.sqrt(768 / d_model)
    for name, p in model.named_parameters():
        if p.ndim > 1:
            adds = name.endswith(tuple(f"{part}.weight" for part in ADDS_TO_X))
            scale = std / math.sqrt(2 * num_layers) if adds and num_layers else std
            p.data = rng.normal(0, scale, p.shape).astype(DEFAULT_DTYPE, copy=False)
        elif name.endswith("bias"):
            p.data = np.zeros(p.shape, p.dtype)
