"""The transformer of Vaswani et al., with an encoder for the source and a decoder for the target.

Source: Vaswani et al. 2017, "Attention is all you need", slides S14-S17, N23-N26, K22-K27.
"""

import math

import numpy as np

import tinyattn.functional as F
from tinyattn import nn
from tinyattn.data.tokenizers.simple import padded
from tinyattn.engine.autograd import Tensor, no_grad
from tinyattn.engine.convert import as_tensor, to_array
from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_range
from tinyattn.models.decoding import beam_search
from tinyattn.nn.module import eval_mode
from tinyattn.nn.validation import check_heads, check_sizes


class Seq2Seq(nn.Module):
    """A transformer for translation, with an encoder for the source and a decoder for the target.

        memory = encoder(√d E[src] + p),   h = decoder(√d E[tgt] + p, memory),   logits = h Eᵀ

    d is d_model. Source, target and head share one embedding E and thus one vocabulary. The
    position vectors p are sinusoidal. In training, the input of the decoder is the true target
    shifted by one position (teacher forcing), as in `loss`.

    Args:
        vocab_size        number of tokens V
        d_model           number of features
        num_heads         number of heads, which divides d_model
        num_layers        number of layers of the encoder and also of the decoder
        dim_feedforward   number of hidden features of the feed-forward networks. If None, it is 4
                          d_model
        dropout           probability with which a number becomes 0 in training
        max_len           number of positions, the largest number of tokens of a source or target
        pad               id of the padding token. In a source, padding is hidden from attention,
                          and in a target, `loss` excludes it
        rng               seed or numpy.random.Generator for the initial values and the dropout, or
                          None for the default generator

    Raises:
        ValueError: num_heads does not divide d_model, a size is not a whole number >= 1, or dropout
            is not from 0 to 1
        TypeError: dropout is not a number, or pad is not a whole number
    """

    def __init__(
        self,
        vocab_size,
        d_model,
        num_heads,
        num_layers,
        dim_feedforward=None,
        dropout=0.1,
        max_len=512,
        pad=0,
        rng=None,
    ):
        check_heads(self, d_model=d_model, num_heads=num_heads)
        check_sizes(
            self,
            vocab_size=vocab_size,
            num_layers=num_layers,
            dim_feedforward=dim_feedforward,
            max_len=max_len,
            optional=("dim_feedforward",),
        )
        check_range(type(self).__name__, 0, 1, dropout=dropout)
        check_range(type(self).__name__, whole=True, pad=pad)
        rng = None if rng is None else generator(rng)
        self.pad, self.scale, self.max_len = pad, math.sqrt(d_model), max_len
        self.embedding = nn.Embedding(vocab_size, d_model, rng=rng)
        weight = self.embedding.weight
        # √d E then has size 1 at the beginning
        weight.data = weight.data / np.float32(self.scale)
        self.positions = nn.PositionalEncoding(d_model, max_len, dropout, rng)
        self.transformer = nn.Transformer(
            d_model,
            num_heads,
            num_layers,
            num_layers,
            dim_feedforward or 4 * d_model,
            dropout,
            rng=rng,
        )

    def forward(self, src, tgt):
        """Return the logits [B, T, V] of the next target token.

        Token t of tgt attends to the tokens of tgt up to t, and to all tokens of src except
        padding.

        Args:
            src   token ids of the source [B, S]
            tgt   token ids of the target [B, T]

        Raises:
            ValueError: src is not [B, S], tgt is not [B, T], their numbers of rows differ, or a row
                has more than max_len tokens
            TypeError: src or tgt does not consist of integers
            IndexError: an id is not from 0 to V - 1
        """
        tgt = _ids("tgt", tgt, "T", self.max_len)
        memory, keep = self.encode(src)
        _check_rows(keep, src, tgt)
        return self.head(self.transformer.decoder(self.embed(tgt), memory, None, keep, causal=True))

    def embed(self, ids, positions=None):
        """Return the input of the encoder or decoder, √d E[ids] + p [B, T, d_model].

        d is d_model, E the embedding, and p are the position vectors. Dropout acts in training.

        Args:
            ids         token ids [B, T]
            positions   positions of the tokens, integers [T] or [B, T] from 0 to max_len - 1. If
                        None, they are 0, ..., T - 1

        Raises:
            ValueError: a row of ids has more than max_len tokens, or positions are not integers
                [T] or [B, T] from 0 to max_len - 1
            TypeError: ids are not integers
            IndexError: an id is not from 0 to V - 1
        """
        return self.positions(self.embedding(ids) * self.scale, positions)

    def encode(self, src):
        """Encode the source, and return (memory [B, S, d_model], mask [B, 1, S]).

        The memory contains a vector for each token of the source. The mask is True for tokens and
        False for padding, which no token attends to.

        Args:
            src   token ids of the source [B, S]

        Raises:
            ValueError: src is not [B, S] with S <= max_len
            TypeError: src does not consist of integers
            IndexError: an id is not from 0 to V - 1
        """
        src = _ids("src", src, "S", self.max_len)
        keep = (src != self.pad)[:, None, :]
        return self.transformer.encoder(self.embed(src), keep), keep

    def head(self, features):
        """Return the logits of the V tokens of the vocabulary for `features` [..., d_model].

        Raises ValueError if the last axis of `features` does not have the length d_model.
        """
        return F.linear(features, self.embedding.weight)

    def loss(self, src, tgt, label_smoothing=0.1):
        """Return the mean cross-entropy over the target tokens, with teacher forcing.

        The decoder receives tgt[:, :-1] and predicts tgt[:, 1:]. Padding is excluded from the mean.

        Args:
            src               token ids of the source [B, S]
            tgt               token ids of the target [B, T]: start token, sentence, stop token,
                              padding
            label_smoothing   ε in [0, 1]. The true token gets the probability 1 - ε, and ε is
                              spread uniformly over all tokens

        Raises:
            ValueError: as in `forward`, tgt has no token to predict, or label_smoothing is not from
                0 to 1
            TypeError: as in `forward`, or label_smoothing is not a number
            IndexError: as in `forward`
        """
        tgt = _ids("tgt", tgt, "T")
        if (tgt[:, 1:] == self.pad).all():
            after = f" with only pad={self.pad} after the first tokens" if tgt.shape[1] > 1 else ""
            raise ValueError(
                "Seq2Seq: tgt must contain a start token and at least one token to predict, got "
                f"shape {tgt.shape}{after}"
            )
        logits, targets = self(src, tgt[:, :-1]), tgt[:, 1:]  # [B, T-1, V]
        return F.cross_entropy(
            np.reshape(logits, (-1, logits.shape[-1])),
            targets.ravel(),
            ignore_index=self.pad,
            label_smoothing=label_smoothing,
        )

    def translate(
        self, src, start=None, stop=None, max_len=50, beams=1, length_penalty=0.6, tokenizer=None
    ):
        """Translate sentences, and return the best target sentences without start and stop tokens.

        The result has the form of the input: one array of ids for one sentence of ids, one text for
        one text, and a list of arrays or texts for several. The model runs in evaluation mode, with
        caches for keys and values.

        Args:
            src              a sentence of ids [S], a batch [B, S], or a list of sentences of
                             different length. With a tokenizer, also a text, or a list of texts
            start            id of the token that begins a target. If None, it is that of [CLS], and
                             a tokenizer is needed
            stop             id of the token that ends a target, or several ids. If None, it is that
                             of [SEP], and a tokenizer is needed
            max_len          largest number of tokens of the answer, at most the model's max_len
            beams            number of partial sentences that are kept, where 1 means greedy
                             decoding
            length_penalty   exponent p in the divisor ((5 + T) / 6)^p of the log probability of T
                             tokens. Larger values favour longer answers
            tokenizer        `WordPiece` that turns texts into ids and back. If None, src must be
                             ids

        Raises:
            ValueError: the tokenizer does not know a word, src is empty or has a wrong shape or
                dtype, or the source or the answer is longer than the model's max_len
            ValueError: start or stop is not a token id, or beams or max_len is below 1
            TypeError: a text is given without a tokenizer, the tokenizer is not a WordPiece, start
                or stop is missing, or src is a list with numbers that are not integers
            TypeError: beams, max_len or length_penalty is not a number of the right kind
            IndexError: an id is not from 0 to V - 1
        """
        if tokenizer is not None:
            _check_tokenizer(tokenizer)
            start = tokenizer.ids["[CLS]"] if start is None else start
            stop = tokenizer.ids["[SEP]"] if stop is None else stop
        ids, is_text, is_one = _sentences(src, tokenizer, self.pad)
        if start is None or stop is None:
            raise TypeError(
                "translate: start and stop must be the ids of the tokens that begin and end a "
                f"target sentence, got start={start} and stop={stop}. Pass both, or a tokenizer"
            )
        with eval_mode(self):
            answers = self.search(ids, start, stop, max_len, beams, length_penalty)
        found = [answer[0].tokens for answer in answers]
        found = [tokenizer.decode(tokens) for tokens in found] if is_text else found
        return found[0] if is_one else found

    def search(self, src, start, stop, max_len=50, beams=4, length_penalty=0.6):
        """Find the best answers for each row of src with a beam search.

        Call eval() first, because dropout acts in training mode.

        Args:
            src              token ids of the source [B, S]
            start            id of the token that begins a target
            stop             id of the token that ends a target, or several ids
            max_len          largest number of tokens of an answer, at most the model's max_len
            beams            number of partial sentences that are kept
            length_penalty   exponent p in the divisor ((5 + T) / 6)^p of the log probability of T
                             tokens. Larger values favour longer answers

        Returns:
            a list with one entry for each row, a list of up to `beams` `decoding.Hypothesis`, the
            best first

        Raises:
            ValueError: src is not [B, S], start is not an integer, no stop is a token id, beams or
                max_len is below 1, or a source or an answer is longer than the model's max_len
            TypeError: src does not consist of integers, or beams, max_len or length_penalty is not
                a number of the right kind
            IndexError: an id is not from 0 to V - 1
        """
        src = _ids("src", src, "S")
        if np.ndim(to_array(start)) != 0:
            raise ValueError(
                "Seq2Seq: start must be the id of one token, with which all targets begin, got "
                f"{start!r}"
            )
        step, state = self.reader(src)
        return beam_search(step, state, [start] * len(src), stop, beams, max_len, length_penalty)

    def reader(self, src):
        """Encode `src` [B, S], and return the (step, state) that `decoding.beam_search` needs.

        Call step(tokens, state) under `no_grad`. It raises ValueError after the model's max_len
        tokens. `reader` itself raises the errors of `encode`.
        """
        with no_grad():
            memory, keep = self.encode(src)

        def step(tokens, state):
            memory, keep, cache = state
            if cache[0][0].positions(1).max(initial=0) >= self.max_len:
                raise ValueError(
                    f"Seq2Seq: an answer has {self.max_len} tokens without a stop token, and the "
                    f"model cannot read more. Pass max_len={self.max_len} to end answers there, or "
                    "create a model with a larger max_len"
                )
            x = self.embed(tokens[:, None], cache[0][0].positions(1))
            y = self.transformer.decoder(x, Tensor(memory), None, keep, cache=cache)
            return self.head(y[:, -1]), (memory, keep, cache)

        return step, (memory.data, keep, self.transformer.decoder.empty_cache())

    def attention_maps(self, src, tgt):
        """Return the weights with which the decoder attends to the source, in each layer.

        The model runs in evaluation mode, so dropout does not act.

        Args:
            src   token ids of the source [B, S]
            tgt   token ids of the target [B, T]

        Returns:
            a list of arrays [B, H, T, S], one for each layer, where H is the number of heads

        Raises:
            ValueError: as in `forward`
            TypeError: as in `forward`
            IndexError: as in `forward`
        """
        tgt = _ids("tgt", tgt, "T", self.max_len)
        with eval_mode(self), no_grad():
            memory, keep = self.encode(src)
            _check_rows(keep, src, tgt)
            return self.transformer.decoder.attention_maps(
                self.embed(tgt), memory, None, keep, causal=True
            )


def _ids(name, ids, letter, max_len=math.inf):
    """Return token ids as an array [B, `letter`], with at most max_len tokens in a row."""
    ids = to_array(as_tensor(ids))
    if ids.ndim != 2:
        advice = f". Write {name}[None] for one sentence" if ids.ndim == 1 else ""
        raise ValueError(
            f"Seq2Seq: {name} must be token ids [B, {letter}], got shape {ids.shape}{advice}"
        )
    if ids.shape[1] > max_len:
        raise ValueError(
            f"Seq2Seq: {name} must be token ids [B, {letter}] with {letter} <= {max_len}, got "
            f"shape {ids.shape}. Choose a larger max_len, or shorten the sentences"
        )
    return ids


def _check_rows(keep, src, tgt):
    """Raise ValueError unless src, with the mask `keep`, has as many rows as tgt."""
    if len(keep) != len(tgt):
        raise ValueError(
            "Seq2Seq: src and tgt must have the same number of rows, got shapes "
            f"{np.shape(to_array(src))} and {tgt.shape}"
        )


def _check_tokenizer(tokenizer):
    if not hasattr(tokenizer, "unknown") or not hasattr(tokenizer, "ids"):
        raise TypeError(
            "translate: tokenizer must be a data.tokenizers.WordPiece, got "
            f"{type(tokenizer).__name__}. Pass the tokenizer of the model"
        )


def _sentences(src, tokenizer, pad):
    """Return (ids [B, S], whether texts were given, whether there was a single sentence)."""
    if isinstance(src, str):
        return _read([src], tokenizer, pad), True, True
    if isinstance(src, list | tuple) and src and isinstance(src[0], str):
        return _read(src, tokenizer, pad), True, False
    if isinstance(src, list | tuple):
        if not src:
            raise ValueError("translate: src is empty. Pass at least one sentence")
        is_one = bool(src) and np.ndim(to_array(src[0])) == 0
        ids = padded([np.asarray(to_array(s)) for s in ([src] if is_one else src)], pad)[0]
    else:
        ids = np.asarray(to_array(src))
        is_one = ids.ndim == 1
        ids = ids[None] if is_one else ids
    if ids.ndim != 2 or ids.dtype.kind not in "iu":
        advice = ". Write src.astype(int)" if ids.ndim == 2 and ids.dtype.kind == "f" else ""
        raise ValueError(
            "translate: src must be token ids [S] or [B, S], which are integers, or texts, got "
            f"{ids.dtype} of shape {ids.shape}{advice}"
        )
    if not len(ids):
        raise ValueError("translate: src is empty. Pass at least one sentence")
    return ids, False, is_one


def _read(texts, tokenizer, pad):
    """Return the ids [B, S] of texts."""
    if tokenizer is None:
        raise TypeError(
            "translate: src is a text, but tokenizer is None. Pass the tokenizer of the model as "
            "tokenizer=tokenizer, or token ids"
        )
    if not all(isinstance(text, str) for text in texts):
        kinds = ", ".join(sorted({type(text).__name__ for text in texts}))
        raise TypeError(f"translate: a list of texts must contain only texts, got {kinds}")
    unknown = dict.fromkeys(word for text in texts for word in tokenizer.unknown(text))
    if unknown:
        raise ValueError(
            f"translate: the tokenizer does not know {', '.join(map(repr, unknown))}, so the model "
            "would see [UNK] and translate something else. Use words of its vocabulary"
        )
    return padded([tokenizer.encode(text) for text in texts], pad)[0]
