"""Image captioning: a network describes the regions of an image, and an LSTM writes words.

`Captioner` weighs the regions again for every word (soft attention), and `FixedCaptioner` has one
vector for the whole image. Both have the same regions, embedding, LSTM cell, head and search. The
regions come from an encoder in `captioner_regions.py`. Read `Attend` in `captioner_attention.py`
first, then `Captioner`.

Letters: B images, R regions with D features each, H features of the LSTM's state, T words of a
caption, V words of the vocabulary.

Source: Xu et al. 2015 "Show, Attend and Tell", Vinyals et al. 2015 "Show and Tell", slides
KB08-KB13.
"""

import math
from typing import NamedTuple

import numpy as np

import tinyattn.functional as F
from tinyattn import nn
from tinyattn.engine.autograd import Tensor, no_grad
from tinyattn.engine.convert import to_array
from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_range
from tinyattn.functional import recurrent
from tinyattn.functional.linear import ids_of
from tinyattn.models.captioner_attention import AdditiveScore, Attend, check_module
from tinyattn.models.decoding import beam_search
from tinyattn.models.gpt import described
from tinyattn.nn.module import eval_mode
from tinyattn.nn.overrides import describe_override
from tinyattn.nn.validation import check_sizes


def _size(name, regions):
    """Return the number D of features that `regions` computes, or raise TypeError."""
    if isinstance(regions, type) or not hasattr(regions, "size"):
        raise TypeError(
            f"{name}: regions must be a module with the attribute size, got {described(regions)}. "
            "Pass, for example, CaptionerCells(channels, cell, size, count)"
        )
    return regions.size


def _check_words(name, argument, words, axes, least=0):
    """Raise ValueError unless the vectors of words have these axes, where "T" is at least `least`.

    The last entry of `axes` is the embedding, whose number of features is the length of this axis.
    """
    *axes, embedding = axes
    axes, shape = (*axes, embedding.embedding_dim), np.shape(to_array(words))
    fits = [n == m or (m == "T" and n >= least) for n, m in zip(shape, axes, strict=False)]
    if len(shape) != len(axes) or not all(fits):
        raise ValueError(
            f"{name}: {argument} must be [{', '.join(map(str, axes))}]{' with T >= 1' * least}, "
            f"got shape {shape}. Pass the result of captioner.embedding(tokens)"
        )


class Caption(NamedTuple):
    """A caption that a captioner wrote.

    Attributes:
        tokens            token ids [T], without the tokens that begin and end the caption
        attention         attention weights of the regions [T, R], computed before each of the T
                          words, or None for a captioner without attention
        log_probability   sum of the log probabilities of all tokens, including the stop token
                          unless the caption was cut at the largest length
    """

    tokens: np.ndarray
    attention: np.ndarray | None
    log_probability: float


class _Captioner(nn.Module):
    """The parts that both captioners share: embedding, LSTM cell, head, loss and search."""

    def __init__(self, regions, vocab_size, context, d_word, d_state, rng):
        check_sizes(self, vocab_size=vocab_size, context=context, d_word=d_word, d_state=d_state)
        self.regions = regions
        self.embedding = nn.Embedding(vocab_size, d_word, rng=rng)
        self.cell = nn.LSTMCell(d_word + context, d_state, rng=rng)
        self.head = nn.Linear(d_state + context, vocab_size, rng=rng)

    def forward(self, images, tokens):
        """Predict the word that follows each word of the true captions (teacher forcing).

        The input of the decoder is the true previous word instead of the predicted one.

        Args:
            images   images with values from 0 to 1 [B, height, width, channels]
            tokens   token ids of the true captions [B, T], with the start token first

        Returns:
            (logits [B, T, V], attention weights [B, T, R] or None)

        Raises:
            ValueError: tokens are not [B, T], `regions` does not accept the shape of the images, or
                the numbers of images and captions differ
            TypeError: tokens are not integers, or images do not consist of numbers
            IndexError: a token is not from 0 to V - 1
        """
        name = type(self).__name__
        shape = ids_of(name, tokens, "tokens").shape
        if len(shape) != 2:
            advice = ". Write tokens[None] for one caption" if len(shape) == 1 else ""
            raise ValueError(
                f"{name}: tokens must be [B, T], one caption for each image, got shape "
                f"{shape}{advice}"
            )
        first = self.start(images)
        if len(images) != shape[0]:
            raise ValueError(
                f"{name}: tokens must be [{len(images)}, T], one caption for each image, got shape "
                f"{shape}"
            )
        y, maps = self.read(self.embedding(tokens), *first)
        return self.head(y), maps

    def step(self, word, memory, state):
        """Read one word, and predict the next.

        Args:
            word     vector of the word [B, d_word]
            memory   first result of `start`
            state    second result of `start`, or the new state from the previous step

        Returns:
            (logits [B, V], new state, attention weights [B, R] or None)

        Raises:
            ValueError: word is not [B, d_word]
        """
        y, state, a = self.advance(word, memory, state)
        return self.head(y), state, a

    def loss(self, images, tokens, pad=0, penalty=0.0):
        """Return the mean cross-entropy over the N words of all captions, -1/N Σ log p(word).

        The stop token at the end of a caption counts as a word. The penalty (doubly stochastic
        attention) adds λ/(B R) Σ_bj (1 - Σ_t a_btj)² for the attention weights a_btj of image b,
        word t and region j. It is small if every region receives a total weight of about 1 during a
        caption.

        Args:
            images    images with values from 0 to 1 [B, height, width, channels]
            tokens    captions [B, T + 1] from the start token to the stop token, then `pad`
            pad       token id that pads short captions and is excluded from the loss, or None if
                      there is no padding
            penalty   factor λ >= 0 of the penalty, where 0 means no penalty

        Returns:
            the loss, a Tensor of shape ()

        Raises:
            ValueError: tokens are not [B, T + 1] with at least one word, `regions` does not accept
                the shape of the images, or the numbers of images and captions differ
            ValueError: the penalty is negative or not finite, or it is not 0 although the captioner
                has no attention
            TypeError: tokens are not integers, pad is not an integer, penalty is not a number, or
                images do not consist of numbers
            IndexError: a token is not from 0 to V - 1

        Source: Xu et al. 2015, eq. 14.
        """
        tokens = ids_of("loss", tokens, "tokens")
        if tokens.ndim != 2 or tokens.shape[1] < 2:
            raise ValueError(
                f"loss: tokens must be [B, T + 1] with the start token first and at least one "
                f"word, got shape {tokens.shape}"
            )
        check_range("loss", 0, below=math.inf, penalty=penalty)
        check_range("loss", whole=True, pad=pad, optional=("pad",))
        if (tokens[:, 1:] == pad).all():
            raise ValueError(
                f"loss: tokens must contain at least one word after the start token, but all are "
                f"pad={pad}"
            )
        logits, maps = self(images, tokens[:, :-1])
        target = tokens[:, 1:]
        keep = target != pad
        loss = F.cross_entropy(logits[keep], target[keep])
        if penalty and maps is None:
            raise ValueError(
                f"loss: penalty={penalty} needs attention weights, and this captioner has none. "
                "Use penalty=0"
            )
        if penalty:
            seen = np.sum(np.where(keep[:, :, None], maps, 0.0), axis=1)  # [B, R]
            loss = loss + penalty * np.mean((1 - seen) ** 2)
        return loss

    def write(self, images, start, stop, beams=1, max_len=20, length_penalty=0.0):
        """Write a caption for each image, greedily or by beam search.

        Args:
            images           images with values from 0 to 1 [B, height, width, channels]
            start            token id before the first word
            stop             token id, or several token ids, that end a caption
            beams            number of partial captions that are kept, where 1 means greedy decoding
            max_len          largest number of tokens of a caption
            length_penalty   exponent p in the divisor ((5 + T) / 6)^p of the log probability of T
                             tokens. Larger values favour longer captions

        Returns:
            a list of `Caption`, the best caption found for each image

        Raises:
            ValueError: `regions` does not accept the shape of the images, beams or max_len is below
                1, or start or stop is not a token id
            TypeError: beams, max_len or length_penalty is not a number of the right kind, or images
                do not consist of numbers
            IndexError: start is not from 0 to V - 1
        """
        if np.ndim(to_array(start)) != 0:
            raise ValueError(
                "write: start must be the id of one token, with which all captions begin, got "
                f"{start!r}"
            )
        with no_grad(), eval_mode(self):
            memory, state = self.start(images)

            def step(tokens, state):
                y, new, _ = self.step(self.embedding(tokens), state[0], state[1])
                return y, (state[0], new)

            found = beam_search(
                step,
                (memory, state),
                np.full(len(images), start),
                stop,
                beams=beams,
                max_len=max_len,
                length_penalty=length_penalty,
            )
            best = [hypotheses[0] for hypotheses in found]
            maps = self._maps(images, [b.tokens for b in best], start)
        return [Caption(b.tokens, a, b.log_probability) for b, a in zip(best, maps, strict=True)]

    def _maps(self, images, written, start):
        """Return, for each caption, the attention weights [T, R] before each of its T words.

        `written` contains the token ids of the captions. Without attention, each entry is None.
        """
        longest = max((len(w) for w in written), default=0)
        tokens = np.zeros((len(written), max(longest, 1)), np.int64)
        tokens[:, 0] = start
        for row, w in zip(tokens, written, strict=True):
            row[1 : len(w)] = w[:-1] if len(w) else []
        _, maps = self(images, tokens)
        if maps is None:
            return [None] * len(written)
        return [a[: len(w)] for a, w in zip(maps.numpy(), written, strict=True)]


class Captioner(_Captioner):
    """A captioner with soft attention, which computes a new context vector for every word.

        e_tj = score(h_{t-1}, z_j),   a_t = softmax(e_t),   c_t = Σ_j a_tj z_j
        h_t = LSTM([E[w_{t-1}], c_t], h_{t-1}),   logits = head([h_t, c_t])

    E[w] is the vector of word w, and z_j are the features of region j. The initial h and c of the
    LSTM are the tanh of two linear maps of the mean of all z_j. In the paper, y denotes words and
    i denotes regions.

    Args:
        regions      a module that maps images to z [B, R, D] and has the number D as its attribute
                     `size`, such as `CaptionerCells`
        vocab_size   number V of words
        d_word       number of features of a word's vector
        d_state      number H of features of the LSTM's state
        attend       a module (h, z) → (c [B, D], a [B, R]). If None, it is
                     `Attend(AdditiveScore(d_state, D, d_state))`. If the module has a method
                     `keys(z)`, the keys are computed once for each image, and the module is called
                     with (h, z, keys)
        rng          seed or numpy.random.Generator for the initial values, or None for the default
                     generator

    Raises:
        ValueError: vocab_size, d_word or d_state is not a whole number >= 1
        TypeError: regions is not a module with the attribute `size`, or attend is a class or cannot
            be called

    Source: Xu et al. 2015, slides KB09, KB10.
    """

    def __init__(self, regions, vocab_size, d_word=32, d_state=64, attend=None, rng=None):
        check_sizes(self, vocab_size=vocab_size, d_word=d_word, d_state=d_state)
        if attend is not None:
            check_module("Captioner: attend", attend, "Attend(DotScore(d_state, D, size))")
        rng, d = generator(rng), _size("Captioner", regions)
        super().__init__(regions, vocab_size, d, d_word, d_state, rng)
        self.attend = attend or Attend(AdditiveScore(d_state, d, d_state, rng))
        self.first_h, self.first_c = nn.Linear(d, d_state, rng=rng), nn.Linear(d, d_state, rng=rng)

    def start(self, images):
        """Return the features of the images and the first state of the LSTM.

        Args:
            images   images with values from 0 to 1 [B, height, width, channels]

        Returns:
            (memory, state), where memory is (z [B, R, D], keys), or (z,) if `attend` computes no
            keys, and state is (h, c), each [B, d_state]

        Raises:
            ValueError: `regions` does not accept the shape of the images
            TypeError: images do not consist of numbers
        """
        z = self.regions(images)
        keys = self.attend.keys(z) if hasattr(self.attend, "keys") else None
        mean = np.mean(z, axis=1)
        state = np.tanh(self.first_h(mean)), np.tanh(self.first_c(mean))
        return (z,) if keys is None else (z, keys), state

    def read(self, words, memory, state):
        """Read captions word by word, and attend to the regions before each word.

        Args:
            words    vectors of the words [B, T, d_word], T >= 1
            memory   first result of `start`
            state    second result of `start`, the (h, c) before the first word

        Returns:
            (new states and contexts [h_t, c_t] [B, T, d_state + D], attention weights [B, T, R])

        Raises:
            ValueError: words are not [B, T, d_word]
        """
        _check_words("Captioner.read", "words", words, (len(state[0]), "T", self.embedding), 1)
        features, maps = [], []
        for t in range(words.shape[1]):
            y, state, a = self.advance(words[:, t], memory, state)
            features.append(y)
            maps.append(a)
        return np.stack(features, axis=1), np.stack(maps, axis=1)

    def advance(self, word, memory, state):
        """Attend to the regions, and update the state with one word.

        Args:
            word     vector of the word [B, d_word]
            memory   first result of `start`
            state    (h, c) of the LSTM before the word

        Returns:
            (the new h followed by the context vector [B, d_state + D], new state (h, c), attention
            weights [B, R])

        Raises:
            ValueError: word is not [B, d_word]
        """
        _check_words("Captioner.advance", "word", word, (len(state[0]), self.embedding))
        c, a = self.attend(state[0], *memory)
        state = self.cell(np.concatenate([word, c], axis=1), state)
        return np.concatenate([state[0], c], axis=1), state, a


class FixedCaptioner(_Captioner):
    """A captioner with one context vector, which is the same for every word.

        c = f_w(z_1, ..., z_R) [B, context],   h_t = LSTM([E[w_{t-1}], c], h_{t-1})

    The features z_j of the R regions are concatenated, and f_w is an MLP with one hidden layer and
    tanh at the end. The first state is zero. In the paper, the decoder receives the image once,
    before the first word. In this class, c is an input at every word, so the state need not store
    the image.

    Args:
        regions      a module that maps images to z [B, R, D] and has the number D as its attribute
                     `size`, such as `CaptionerCells`
        count        number R of regions
        vocab_size   number V of words
        context      number of features of c
        d_word       number of features of a word's vector
        d_state      number H of features of the LSTM's state
        hidden       width of the hidden layer of f_w. If None, it is R·D, the number of features of
                     all regions, so that only c can be a bottleneck
        rng          seed or numpy.random.Generator for the initial values, or None for the default
                     generator

    Raises:
        ValueError: count, vocab_size, context, d_word, d_state or hidden is not a whole number >= 1
        TypeError: regions is not a module with the attribute `size`

    Source: Vinyals et al. 2015, slide KB08.
    """

    def __init__(
        self, regions, count, vocab_size, context=32, d_word=32, d_state=64, hidden=None, rng=None
    ):
        check_sizes(
            self,
            single=True,
            count=count,
            vocab_size=vocab_size,
            context=context,
            d_word=d_word,
            d_state=d_state,
        )
        d = _size("FixedCaptioner", regions)
        self.count, hidden = count, count * d if hidden is None else hidden
        check_sizes(self, single=True, hidden=hidden)
        rng = generator(rng)
        super().__init__(regions, vocab_size, context, d_word, d_state, rng)
        self.squeeze = nn.Sequential(
            nn.Linear(count * d, hidden, rng=rng),
            nn.ReLU(),
            nn.Linear(hidden, context, rng=rng),
        )

    def start(self, images):
        """Return one context vector for each image, and a state of zeros.

        Args:
            images   images with values from 0 to 1 [B, height, width, channels]

        Returns:
            (context vectors [B, context], state), where state is (h, c) of the LSTM, each
            [B, d_state]

        Raises:
            ValueError: `regions` does not accept the shape of the images, or an image does not have
                `count` regions
            TypeError: images do not consist of numbers
        """
        z = self.regions(images)
        if z.shape[1] != self.count:
            raise ValueError(
                f"FixedCaptioner: each image has {z.shape[1]} region{'s' * (z.shape[1] != 1)}, "
                f"expected count={self.count}. Create FixedCaptioner with count={z.shape[1]}"
            )
        c = np.tanh(self.squeeze(np.reshape(z, (z.shape[0], z.shape[1] * z.shape[2]))))
        zeros = Tensor(np.zeros((z.shape[0], self.cell.hidden_size), c.dtype))
        return c, (zeros, zeros)

    def read(self, words, c, state):
        """Read whole captions, with the same context at every word.

        The inputs do not depend on the states, so the LSTM processes the whole caption in one call.
        If the `forward` of the cell was changed, the cell is called word by word instead.

        Args:
            words   vectors of the words [B, T, d_word]
            c       context [B, context], the first result of `start`
            state   (h, c) of the LSTM before the first word, the second result of `start`

        Returns:
            (new states and context [h_t, c] [B, T, d_state + context], None), because there are no
            attention weights

        Raises:
            ValueError: words are not [B, T, d_word]
        """
        _check_words("FixedCaptioner.read", "words", words, (len(state[0]), "T", self.embedding))
        if describe_override(self.cell) is not None:
            steps = []
            for t in range(words.shape[1]):
                y, state, _ = self.advance(words[:, t], c, state)
                steps.append(y)
            return np.stack(steps, axis=1), None
        c = np.broadcast_to(c[:, None], (*words.shape[:2], c.shape[1]))
        weights = self.cell.weight_ih, self.cell.weight_hh, self.cell.bias_ih, self.cell.bias_hh
        h, _ = recurrent.scan(self.cell.cell, np.concatenate([words, c], axis=2), state, *weights)
        return np.concatenate([h, c], axis=2), None

    def advance(self, word, c, state):
        """Update the state with one word.

        Args:
            word    vector of the word [B, d_word]
            c       context [B, context], the first result of `start`
            state   (h, c) of the LSTM before the word

        Returns:
            (the new h followed by the context vector [B, d_state + context], new state (h, c),
            None), because there are no attention weights

        Raises:
            ValueError: word is not [B, d_word]
        """
        _check_words("FixedCaptioner.advance", "word", word, (len(state[0]), self.embedding))
        state = self.cell(np.concatenate([word, c], axis=1), state)
        return np.concatenate([state[0], c], axis=1), state, None
