"""GPT: a decoder-only transformer that predicts the next token.

Sources: Radford et al. 2018, 2019, slides H03, H04, H06.
"""

import math

import numpy as np

import tinyattn.functional as F
from tinyattn import nn
from tinyattn.engine.convert import as_tensor
from tinyattn.engine.dtypes import DEFAULT_DTYPE
from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_range
from tinyattn.models.generation import generate
from tinyattn.nn.validation import check_heads, check_sizes

# the outputs of these layers are added to x
ADDS_TO_X = ("out_proj", "linear2", "o_proj", "down_proj")


class GPT(nn.Module):
    """A language model that predicts the next token, where token t attends to the tokens ≤ t.

        x = E[ids] + P[0..T-1]
        x ← x + Attention(norm x),  x ← x + W₂ gelu(W₁ norm x)      num_layers times
        logits = norm(x) Eᵀ                                          the head is the embedding

    E and P are the learned vectors of the tokens and of the positions. Initial weights are normal
    with standard deviation 0.02 √(768/d_model), times 1/√(2 num_layers) for the linear maps whose
    output is added to x. With d_model = 768, this is the initialization of GPT-2. With 0.02 for
    every d_model, a narrow model would start with attention scores that are almost zero, and would
    learn slowly. Dropout acts on the sum of the embeddings, on the attention weights, on the
    hidden features gelu(...), and on each term before it is added to x.

    Args:
        vocab_size   number of tokens V
        d_model      number of features
        num_heads    number of heads, which divides d_model
        num_layers   number of layers
        max_len      number of positions, the largest number of tokens that the model can read
        dropout      probability with which a number becomes 0 in training
        rng          seed or numpy.random.Generator for the initial values and the dropout, or None
                     for the default generator

    Raises:
        ValueError: num_heads does not divide d_model, a size is not a whole number >= 1, or dropout
            is not from 0 to 1
        TypeError: dropout is not a number
    """

    def __init__(self, vocab_size, d_model, num_heads, num_layers, max_len, dropout=0.0, rng=None):
        check_heads(self, d_model=d_model, num_heads=num_heads)
        check_sizes(
            self,
            vocab_size=vocab_size,
            num_layers=num_layers,
            max_len=max_len,
        )
        check_range(type(self).__name__, 0, 1, dropout=dropout)
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
        """Return the features of each token, which are the input of the head, [B, T, d_model].

        Args:
            ids     token ids [B, T], from 0 to V - 1. With a cache, pass only the new ones
            cache   the cache of all earlier tokens, which at the beginning is the result of
                    `empty_cache`. Keys and values of the new tokens are added to it. If None, ids
                    are the whole sequences

        Raises:
            ValueError: as in `forward`
            TypeError: as in `forward`
            IndexError: as in `forward`
            RuntimeError: as in `forward`
        """
        ids = as_tensor(ids)
        check_ids("GPT", ids, self.max_len if cache is None else math.inf)
        if cache is not None:
            check_cache("GPT", cache, len(self.blocks.layers))
        positions = None if cache is None else cache[0].positions(ids.shape[-1])
        x = self.dropout(self.positions(self.embedding(ids), positions))
        return self.blocks(x, causal=True, cache=cache)

    def head(self, features):
        """Return the logits of the V tokens of the vocabulary for `features` [..., d_model].

        Raises ValueError if the last axis of `features` does not have the length d_model.
        """
        return F.linear(features, self.embedding.weight)

    def forward(self, ids, cache=None):
        """Return the logits of the next token after each token, [B, T, V].

        Args:
            ids     token ids [B, T], from 0 to V - 1. With a cache, pass only the new ones
            cache   the cache of all earlier tokens, which at the beginning is the result of
                    `empty_cache`. Keys and values of the new tokens are added to it. If None, ids
                    are the whole sequences

        Raises:
            ValueError: ids are not [B, T], a sequence has more than max_len tokens, or the cache
                holds a different number of sequences
            TypeError: ids are not integers, or cache is not a result of `empty_cache`
            IndexError: an id is not from 0 to V - 1
            RuntimeError: a cache is used while gradients are recorded
        """
        return self.head(self.features(ids, cache))

    def empty_cache(self):
        """Return a cache without tokens, a list with one `nn.KeyValueCache` for each layer."""
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
        """Return the prompt and up to max_new_tokens further tokens.

        The model runs in evaluation mode, and uses only the last max_len tokens of a longer text.

        Args:
            ids              one prompt [T], prompts [B, T], or a list of prompts of different
                             length
            max_new_tokens   largest number of new tokens
            temperature      as in `decoding.probabilities`, where 0 always selects the likeliest
                             token, and 1 draws from the model's probabilities
            top_k            number of the likeliest tokens to draw from. If None, all are possible
            top_p            total probability of the likeliest tokens to draw from. If None, all
                             are possible
            rng              seed or numpy.random.Generator, or None for the default generator
            cache            True: keep the keys and values of earlier tokens. False: recompute them
                             for each token, which gives the same result but takes longer
            stop             token id, or several token ids, that end a sequence. If None, no
                             sequence ends early
            compiled         True: run the model that `inference.compile` returns, or the modules if
                             the model cannot be compiled or cache is False. False: run the modules

        Returns:
            for one prompt an array of token ids, and for a list of prompts a list of arrays, all
            without the stop token. For prompts [B, T] an array [B, T + n] with n <= max_new_tokens,
            in which a row that has ended is filled with its stop token

        Raises:
            TypeError: ids are not a list or an array
            ValueError: a prompt is empty or does not consist of integers, stop is not integers or
                not in the vocabulary, or max_new_tokens, temperature, top_k or top_p is out of
                range
            IndexError: a prompt contains a token that the model does not have
        """
        return generate(
            self, ids, max_new_tokens, temperature, top_k, top_p, rng, cache, stop, compiled
        )


def described(value):
    """Return a wrong argument for the end of a message. The repr of a module may be very long."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return type(value).__name__ if isinstance(value, nn.Module) else repr(value)


def check_ids(name, ids, max_len):
    """Raise ValueError unless ids are [B, T] with T <= max_len, for the model `name`."""
    if ids.ndim != 2 or ids.shape[1] > max_len:
        limit = f" with T <= {max_len}" if max_len < math.inf else ""
        advice = ". Choose a larger max_len, or shorten the sequences"
        if ids.ndim != 2:
            advice = ". Write ids[None] for one sequence" if ids.ndim == 1 else ""
        raise ValueError(f"{name}: ids must be [B, T]{limit}, got shape {ids.shape}{advice}")


def check_cache(name, cache, num_layers):
    """Raise TypeError unless the cache is a list with an `nn.KeyValueCache` for each layer."""
    listed = isinstance(cache, list | tuple)
    fits = listed and len(cache) == num_layers
    wrong = [c for c in cache if not isinstance(c, nn.KeyValueCache)] if fits else []
    twice = fits and len({id(c) for c in cache}) < num_layers
    if fits and not wrong and not twice:
        return
    found = type(cache).__name__
    if wrong:
        is_class = isinstance(wrong[0], type)
        kind = f"the class {wrong[0].__name__}" if is_class else type(wrong[0]).__name__
        found = f"a {found} that contains {kind}"
    elif listed:
        found = f"a {found} " + ("with the same cache twice" if fits else f"of length {len(cache)}")
    raise TypeError(
        f"{name}: cache must be the result of empty_cache(), a list of length {num_layers} with an "
        f"nn.KeyValueCache for each layer, got {found}"
    )


def init_weights(model, d_model, rng, num_layers=None):
    """Draw all matrices from a normal distribution of mean 0, and set all biases to 0.

    Args:
        model        a module
        d_model      number of features. The standard deviation is 0.02 √(768/d_model)
        rng          seed or numpy.random.Generator, or None for the default generator
        num_layers   number L of layers. Matrices whose output is added to the residual stream are
                     multiplied by 1/√(2 L). If None, they are not
    """
    rng, std = generator(rng), 0.02 * math.sqrt(768 / d_model)
    for name, p in model.named_parameters():
        if p.ndim > 1:
            adds = name.endswith(tuple(f"{part}.weight" for part in ADDS_TO_X))
            scale = std / math.sqrt(2 * num_layers) if adds and num_layers else std
            p.data = rng.normal(0, scale, p.shape).astype(DEFAULT_DTYPE, copy=False)
        elif name.endswith("bias"):
            p.data = np.zeros(p.shape, p.dtype)
