"""BERT: an encoder that attends in both directions, pre-trained by predicting hidden words.

The body is `BERT`. `MaskedWords` adds a head for pre-training, and `Classifier` adds a head for
classification. Sources: Devlin et al. 2019, slides H05, H07, H08, H09.
"""

from pathlib import Path

import numpy as np

import tinyattn.functional as F
from tinyattn import nn
from tinyattn.engine.autograd import no_grad
from tinyattn.engine.convert import as_tensor, to_array
from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_range
from tinyattn.functional.linear import ids_of
from tinyattn.models.generation import compiled_or_itself
from tinyattn.models.gpt import check_ids, described, init_weights
from tinyattn.nn.module import eval_mode
from tinyattn.nn.sets import masked_mean
from tinyattn.nn.validation import check_heads, check_sizes


class BERT(nn.Module):
    """An encoder that gives a vector for each token, where each token attends to all tokens.

        x = norm(E[ids] + P[0..T-1] + S[types])
        x ← norm(x + Attention(x)),  x ← norm(x + W₂ gelu(W₁ x))      num_layers times

    E, P and S are the embeddings of tokens, positions and types. Initial weights are normal with
    standard deviation 0.02 √(768/d_model), which is the paper's 0.02 for d_model=768.
    `BERT.from_huggingface` builds a model from weights of the Transformers library.

    Args:
        vocab_size        number of tokens
        d_model           number of features
        num_heads         number of heads, which divides d_model
        num_layers        number of layers
        max_len           number of positions, the largest number of tokens of a text
        num_types         number of token types. The type of a token is the index of its
                          sentence, 0 or 1 if there are two
        dim_feedforward   number of hidden features of the feed-forward networks. If None, it is 4
                          d_model
        dropout           probability with which a number becomes 0 in training
        layer_norm_eps    ε of the norms, the number that is added to the variance
        rng               seed or numpy.random.Generator for the initial values and the dropout, or
                          None for the default generator

    Raises:
        ValueError: num_heads does not divide d_model, a size is not a whole number >= 1, dropout is
            not from 0 to 1, or layer_norm_eps is negative
        TypeError: dropout or layer_norm_eps is not a number
    """

    def __init__(
        self,
        vocab_size,
        d_model,
        num_heads,
        num_layers,
        max_len=512,
        num_types=2,
        dim_feedforward=None,
        dropout=0.0,
        layer_norm_eps=1e-12,
        rng=None,
    ):
        check_heads(self, d_model=d_model, num_heads=num_heads)
        check_sizes(
            self,
            vocab_size=vocab_size,
            num_layers=num_layers,
            max_len=max_len,
            num_types=num_types,
            dim_feedforward=dim_feedforward,
            optional=("dim_feedforward",),
        )
        check_range(type(self).__name__, 0, 1, dropout=dropout)
        rng = None if rng is None else generator(rng)
        self.max_len = max_len
        self.embedding = nn.Embedding(vocab_size, d_model, rng=rng)
        self.positions = nn.LearnedPositionalEmbedding(max_len, d_model, rng=rng)
        self.types = nn.Embedding(num_types, d_model, rng=rng)
        self.norm = nn.LayerNorm(d_model, layer_norm_eps)
        self.dropout = nn.Dropout(dropout, rng)
        layer = nn.TransformerEncoderLayer(
            d_model,
            num_heads,
            dim_feedforward or 4 * d_model,
            dropout,
            "gelu",
            layer_norm_eps,
            rng=rng,
        )
        self.encoder = nn.TransformerEncoder(layer, num_layers)
        self.pooler = nn.Linear(d_model, d_model, rng=rng)
        init_weights(self, d_model, rng)

    def forward(self, ids, types=None, keep=None):
        """Return a vector for each token, [B, T, d_model].

        Args:
            ids     token ids [B, T], from 0 to vocab_size - 1, with T <= max_len
            types   type of each token [B, T], from 0 to num_types - 1. If None, all types are 0
            keep    bool [B, T], True for tokens, False for padding. If None, all are tokens

        Raises:
            ValueError: ids are not [B, T] with T <= max_len, types do not have the shape of ids, or
                keep is not bool [B, T]
            TypeError: ids or types are not integers
            IndexError: an id is not from 0 to vocab_size - 1, or a type is not from 0 to
                num_types - 1
        """
        return self.encoder(self.embed(ids, types), padding_mask(ids, keep))

    def embed(self, ids, types=None):
        """Return the input of the first layer, norm(E[ids] + P + S[types]) [B, T, d_model].

        E, P and S are the embeddings of tokens, positions and types. Dropout acts in training.

        Args:
            ids     token ids [B, T], from 0 to vocab_size - 1, with T <= max_len
            types   type of each token [B, T], from 0 to num_types - 1. If None, all types are 0

        Raises:
            ValueError: ids are not [B, T] with T <= max_len, or types do not have the shape of ids
            TypeError: ids or types are not integers
            IndexError: an id is not from 0 to vocab_size - 1, or a type is not from 0 to
                num_types - 1
        """
        ids = to_array(as_tensor(ids))
        check_ids("BERT", ids, self.max_len)
        # one zero, which broadcasts to all sequences and positions
        types = np.zeros((1, 1), np.int64) if types is None else to_array(as_tensor(types))
        n = self.types.num_embeddings
        if types.dtype.kind not in "iu":
            advice = "Pass a mask of the padding as keep="
            advice = advice if types.dtype == bool else "Write types.astype(int)"
            raise TypeError(
                f"BERT: types must be integers from 0 to {n - 1}, got {types.dtype}. {advice}"
            )
        wrong = types[(types < 0) | (types >= n)]
        if wrong.size:
            raise IndexError(f"BERT: types must be integers from 0 to {n - 1}, got {wrong[0]}")
        if types.ndim != 2 or any(
            n not in (1, m) for n, m in zip(types.shape, ids.shape, strict=True)
        ):
            raise ValueError(
                f"BERT: types must have the shape of ids {ids.shape}, got {types.shape}"
            )
        return self.dropout(self.norm(self.positions(self.embedding(ids) + self.types(types))))

    def pooled(self, hidden):
        """Return a vector for each text, tanh(h_0 Wᵀ + b) [B, d_model].

        W and b belong to the linear layer `pooler`.

        Args:
            hidden   output of `forward` [B, T, d_model], of which only the vector h_0 of the first
                     token is used

        Raises:
            ValueError: hidden is not [B, T, d_model] with T >= 1
        """
        d = self.pooler.in_features
        if np.ndim(hidden) != 3 or hidden.shape[1] < 1 or hidden.shape[2] != d:
            raise ValueError(
                f"BERT.pooled: hidden must be [B, T, {d}] with T >= 1, got shape "
                f"{np.shape(hidden)}. Pass the output of the model, model.pooled(model(ids))"
            )
        return np.tanh(self.pooler(hidden[:, 0]))

    def sentence_vectors(self, ids, keep=None, compiled=True):
        """Return the mean of the token vectors of each text, scaled to length 1.

        The model runs in evaluation mode. Because of the scaling, x @ y.T contains the cosine
        similarities of two results x and y.

        Args:
            ids        token ids [B, T]
            keep       bool [B, T], True for tokens, False for padding. If None, all are tokens
            compiled   True: run the model that `inference.compile` returns, or the modules if the
                       model cannot be compiled. False: run the modules, which takes longer

        Returns:
            an array [B, d_model], with a row of zeros for a text that consists only of padding

        Raises:
            ValueError: as in `forward`
            TypeError: as in `forward`
            IndexError: as in `forward`

        Source: Reimers, Gurevych 2019.
        """
        with eval_mode(self), no_grad():
            keep = None if keep is None else np.asarray(to_array(keep))
            run = compiled_or_itself(self)() if compiled else self
            hidden = run(ids, keep=keep)
            return F.normalize(masked_mean(hidden, keep), axis=-1).data

    def attention_maps(self, ids, types=None, keep=None):
        """Return the attention weights of each layer, a list of arrays [B, H, T, T].

        H is the number of heads. The model runs in evaluation mode, so dropout does not act.

        Args:
            ids     as in `forward`
            types   as in `forward`
            keep    as in `forward`

        Raises:
            ValueError: as in `forward`
            TypeError: as in `forward`
            IndexError: as in `forward`
        """
        with eval_mode(self), no_grad():
            return self.encoder.attention_maps(self.embed(ids, types), padding_mask(ids, keep))

    @classmethod
    def from_huggingface(cls, state, num_heads, layer_norm_eps=1e-12, assign=False):
        """Build a model from the state dict of a BertModel of the Transformers library.

        Args:
            state            the state dict {name: array}, from which the sizes are read
            num_heads        number of heads, which the state dict does not contain
            layer_norm_eps   ε of the norms
            assign           False: copy the weights. True: use the arrays themselves if possible,
                             as in `load_state_dict`

        Returns:
            the model

        Raises:
            TypeError: state is not a dictionary
            ValueError: a weight from which sizes are read is missing, or num_heads does not divide
                d_model
            KeyError: another weight is missing, unknown or has a wrong shape
        """
        check_state("BERT", "BertModel", state, NEEDED)
        state = {rename_hf_key(name): np.asarray(a) for name, a in stacked(state).items()}
        unused = [name for name in state if name.startswith("unused.")]
        state = {name: a for name, a in state.items() if name not in unused}
        vocab_size, d_model = state["embedding.weight"].shape
        layers = {name.split(".")[2] for name in state if name.startswith("encoder.layers.")}
        model = cls(
            vocab_size,
            d_model,
            num_heads,
            len(layers),
            len(state["positions.weight"]),
            len(state["types.weight"]),
            len(state["encoder.layers.0.linear1.bias"]),
            layer_norm_eps=layer_norm_eps,
            rng=nn.SkipInit(),
        )
        return model.load_state_dict(state, assign)


def check_state(cls, theirs, state, names):
    """Raise an error unless `state` is a state dict of the Transformers library.

    Args:
        cls      name of the model that is built, for the error message
        theirs   name of the model in the Transformers library, for the error message
        state    the state dict
        names    {name of a weight in the Transformers library: its name here}. Each weight must be
                 in the state dict under one of the two names

    Raises:
        TypeError: state is not a dictionary
        ValueError: one of these weights is missing
    """
    if not hasattr(state, "items"):
        raise TypeError(
            f"{cls}.from_huggingface: state must be a state dict, got {type(state).__name__}. "
            + ("Pass io.load(path)" if isinstance(state, str | Path) else "Pass model.state_dict()")
        )
    for name, ours in names.items():
        if name not in state and ours not in state:
            found = ", ".join(list(state)[:3]) + (", …" if len(state) > 3 else "")
            raise ValueError(
                f"{cls}.from_huggingface: state must contain {name}, got the entries "
                f"{found or '(none)'}. Pass the state dict of a {theirs}"
            )


def padding_mask(ids, keep):
    """Return the attention mask [B, 1, T] that hides padding, or None if keep is None."""
    if keep is None:
        return None
    keep = np.asarray(to_array(keep))
    if keep.dtype != bool or keep.shape != np.shape(to_array(ids)):
        raise ValueError(
            f"BERT: keep must be bool with the shape of ids {np.shape(to_array(ids))} and True for "
            f"tokens, got {keep.dtype} of shape {keep.shape}"
        )
    return keep[:, None, :]


# ---------------------------------------------------------------- heads


def _check_body(name, bert, part):
    """Raise TypeError unless `bert` is a `BERT` or a module with its embedding and `part`."""
    if isinstance(bert, type) or not (hasattr(bert, "embedding") and hasattr(bert, part)):
        raise TypeError(
            f"{name}: bert must be a BERT, got {described(bert)}. Make one first, as in "
            "BERT(vocab_size, d_model, num_heads, num_layers)"
        )


class MaskedWords(nn.Module):
    """A model that predicts the token at each position: a `BERT` with a head for its V tokens.

    The last linear map is the transposed embedding matrix. To pre-train the body, hide some of the
    input tokens and compute the loss on these tokens only:

        inputs, targets = mask_tokens(ids, mask_id, vocab_size, rng=0)
        loss = F.cross_entropy(model(inputs).reshape((-1, vocab_size)), targets.ravel())

    Args:
        bert   the body, a `BERT`
        rng    seed or numpy.random.Generator for the initial values of the head, or None for the
               default generator

    Raises:
        TypeError: bert is not a `BERT`
    """

    def __init__(self, bert, rng=None):
        _check_body("MaskedWords", bert, "norm")
        rng = None if rng is None else generator(rng)
        vocab_size, d_model = bert.embedding.weight.shape
        self.bert = bert
        self.dense = nn.Linear(d_model, d_model, rng=rng)
        self.norm = nn.LayerNorm(d_model, bert.norm.eps)
        self.bias = nn.Parameter(np.zeros(vocab_size, bert.embedding.weight.dtype))

    def forward(self, ids, types=None, keep=None):
        """Return the logits of the token at each position, [B, T, V].

        Args:
            ids     as in `BERT.forward`
            types   as in `BERT.forward`
            keep    as in `BERT.forward`

        Raises:
            ValueError: as in `BERT.forward`
            TypeError: as in `BERT.forward`
            IndexError: as in `BERT.forward`
        """
        hidden = self.norm(F.gelu(self.dense(self.bert(ids, types, keep))))
        return F.linear(hidden, self.bert.embedding.weight, self.bias)


class Classifier(nn.Module):
    """A classifier of texts: a `BERT`, and a linear head on the result of `BERT.pooled`.

    Args:
        bert          the body, a `BERT`
        num_classes   number of classes
        dropout       probability with which a feature of this result becomes 0 in training
        rng           seed or numpy.random.Generator for the initial values and the dropout, or None
                      for the default generator

    Raises:
        ValueError: num_classes is not a whole number >= 1, or dropout is not from 0 to 1
        TypeError: bert is not a `BERT`, or dropout is not a number
    """

    def __init__(self, bert, num_classes, dropout=0.1, rng=None):
        _check_body("Classifier", bert, "pooled")
        check_sizes(self, single=True, num_classes=num_classes)
        check_range(type(self).__name__, 0, 1, dropout=dropout)
        rng = None if rng is None else generator(rng)
        self.bert = bert
        self.dropout = nn.Dropout(dropout, rng)
        self.out = nn.Linear(bert.embedding.embedding_dim, num_classes, rng=rng)

    def forward(self, ids, types=None, keep=None):
        """Return the logits of the classes, [B, num_classes].

        Args:
            ids     as in `BERT.forward`, with at least one token
            types   as in `BERT.forward`
            keep    as in `BERT.forward`

        Raises:
            ValueError: as in `BERT.forward`
            TypeError: as in `BERT.forward`
            IndexError: as in `BERT.forward`
        """
        return self.out(self.dropout(self.bert.pooled(self.bert(ids, types, keep))))


def mask_tokens(ids, mask_id, vocab_size, special=(), share=0.15, rng=None):
    """Hide random tokens, and return (inputs, targets) for masked language modelling.

    Each token is chosen with the probability `share`. Of the chosen tokens, about 80% are replaced
    by mask_id, 10% by a random token, and 10% are unchanged, so the model cannot rely on seeing
    mask_id. The targets are the original tokens at the chosen positions and -100 at all others,
    which `F.cross_entropy` skips.

    Args:
        ids          token ids [B, T]
        mask_id      id of the token that replaces the hidden tokens, such as [MASK]
        vocab_size   number V of tokens. Random tokens are drawn from 0 to V - 1
        special      token id, or several token ids, that are never chosen, such as padding. If
                     empty, every token may be chosen
        share        probability with which a token is chosen
        rng          seed or numpy.random.Generator, or None for the default generator

    Returns:
        (inputs [B, T], targets [B, T]), both integers. ids do not change

    Raises:
        ValueError: share is not from 0 to 1, mask_id < 0, vocab_size < 1, or ids are a list of rows
            of different lengths
        TypeError: ids or special are not integers, share is not a number, or mask_id or vocab_size
            is not a whole number

    Source: Devlin et al. 2019, section 3.1.
    """
    check_range("mask_tokens", share=share)
    if not 0 <= share <= 1:
        raise ValueError(
            f"mask_tokens: expected 0 <= share <= 1, got share={share}. Write 0.15 for 15%"
        )
    check_range("mask_tokens", 0, whole=True, mask_id=mask_id)
    check_range("mask_tokens", 1, whole=True, vocab_size=vocab_size)
    ids, rng = ids_of("mask_tokens", ids), generator(rng)
    if ids.dtype.kind not in "iu":
        raise TypeError(
            f"mask_tokens: ids must be integers [B, T], got {ids.dtype} of shape {ids.shape}. "
            + (
                "Write ids.astype(int)"
                if ids.dtype.kind == "f"
                else "Encode texts with a tokenizer"
            )
        )
    special = np.atleast_1d(np.asarray(() if special is None else to_array(special)))
    if special.size and special.dtype.kind not in "iu":
        raise TypeError(
            "mask_tokens: special must be token ids, which are integers, got "
            f"{special.dtype} of shape {special.shape}. Pass for example tokenizer.ids['[PAD]']"
        )
    chosen = (rng.random(ids.shape) < share) & ~np.isin(ids, special)
    how, other = rng.random(ids.shape), rng.integers(vocab_size, size=ids.shape)
    inputs = np.where(how < 0.8, mask_id, np.where(how < 0.9, other, ids))
    return np.where(chosen, inputs, ids), np.where(chosen, ids, -100)


# ---------------------------------------------------------------- names of the Transformers library

# weights from which `from_huggingface` reads the sizes, and their names in `BERT`
NEEDED = {
    "embeddings.word_embeddings.weight": "embedding.weight",
    "embeddings.position_embeddings.weight": "positions.weight",
    "embeddings.token_type_embeddings.weight": "types.weight",
    "encoder.layer.0.intermediate.dense.bias": "encoder.layers.0.linear1.bias",
}
NAMES = {
    "embeddings.word_embeddings": "embedding",
    "embeddings.position_embeddings": "positions",
    "embeddings.token_type_embeddings": "types",
    "embeddings.LayerNorm": "norm",
    "embeddings.position_ids": "unused.position_ids",  # these are always 0, 1, 2, …
    "pooler.dense": "pooler",
    "encoder.layer.": "encoder.layers.",
    "attention.self.in_proj_": "self_attn.in_proj_",  # query, key and value are stacked
    "attention.output.dense": "self_attn.out_proj",
    "attention.output.LayerNorm": "norm1",
    "intermediate.dense": "linear1",
    "output.dense": "linear2",
    "output.LayerNorm": "norm2",
}


def rename_hf_key(name):
    """Translate the name of a parameter of the Transformers library into its name in `BERT`."""
    for theirs, ours in NAMES.items():
        name = name.replace(theirs, ours)
    return name


def stacked(state):
    """Return `state` with queries, keys and values stacked as in `nn.MultiheadAttention`.

    `state` is the state dict of a BertModel, whose other weights and names do not change.
    """
    found = {}
    for name, array in state.items():
        for kind in ("weight", "bias"):
            if name.endswith(f"attention.self.query.{kind}"):
                parts = [state[name.replace("query", x)] for x in ("query", "key", "value")]
                found[name.replace(f"query.{kind}", f"in_proj_{kind}")] = np.concatenate(
                    [np.asarray(x) for x in parts]
                )
        if ".attention.self." not in name:
            found[name] = array
    return found
