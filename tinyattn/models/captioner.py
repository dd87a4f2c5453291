"""Image captioning: a network describes the regions of an image, and an LSTM writes words.

`Captioner` weighs the regions again for every word (soft attention), and `FixedCaptioner` has one
vector for the whole image. Both have the same regions, embedding, LSTM cell, head and search. Read
`Attend` first, then `Captioner`.

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
from tinyattn.models.decoding import beam_search
from tinyattn.models.gpt import described
from tinyattn.nn.init import normal_parameter
from tinyattn.nn.module import eval_mode
from tinyattn.nn.overrides import describe_override
from tinyattn.nn.validation import check_sizes


class Regions(nn.Module):
    """A stack of convolutions that computes features of the regions of an image.

        z = places + relu(conv(... relu(conv(1 - images))))

    Each 3 by 3 convolution has stride 2, so L convolutions divide the image into regions of 2^L by
    2^L pixels, which come in reading order (row by row). The features of a region also depend on
    some pixels of neighbouring regions. Because attention ignores the order of the regions, a
    learned vector for the position of each region is added (`places`). Pixels are inverted, so that
    white (1) becomes 0.

    Args:
        channels   number of channels of an image, 3 for RGB
        widths     tuple with the number of channels after each convolution, of which the last is D
        count      number R of regions of an image
        rng        seed or numpy.random.Generator for the initial values, or None for the default
                   generator

    Raises:
        ValueError: channels, count or a width is not a whole number >= 1
        TypeError: widths is not a tuple or list, or is empty

    Source: Xu et al. 2015 (regions of a CNN), slide KB08.
    """

    def __init__(self, channels, widths, count, rng=None):
        check_sizes(self, single=True, channels=channels, count=count)
        check_sizes(self, widths=widths)
        if not isinstance(widths, tuple | list) or not widths:
            raise TypeError(
                "Regions: widths must be a tuple with a number of channels for each convolution, "
                f"got {widths!r}. Write, for example, widths=(16, 32)"
            )
        rng = generator(rng)
        self.channels, sizes = channels, (channels, *widths)
        self.convolutions = nn.ModuleList(
            [
                nn.Conv2d(a, b, 3, stride=2, padding=1, rng=rng)
                for a, b in zip(sizes, widths, strict=False)
            ]
        )
        self.size = widths[-1]
        self.places = normal_parameter((count, self.size), 0.3, rng)

    def forward(self, images):
        """Compute the features of the regions.

        Args:
            images   images with values from 0 to 1 [B, height, width, channels]

        Returns:
            z [B, R, D], where z_j are the features of region j

        Raises:
            ValueError: images are not [B, height, width, channels] with the layer's number of
                channels, an integer array contains numbers above 1, or an image does not have
                `count` regions
            TypeError: images do not consist of numbers
        """
        x = _images("Regions", images, self.channels)
        x = np.moveaxis(1 - x, -1, 1)  # [B, channels, height, width]
        for convolution in self.convolutions:
            x = F.relu(convolution(x))
        x = np.reshape(x, (x.shape[0], x.shape[1], x.shape[2] * x.shape[3]))
        return _placed("Regions", "regions", np.swapaxes(x, 1, 2), self.places)


class CaptionerCells(nn.Module):
    """An MLP for the cells of a grid, z_j = places_j + W₂ relu(W₁ (1 - cell_j) + b₁) + b₂.

    All cells share the MLP. The features of a cell depend only on the pixels of this cell, so its
    attention weight shows how much these pixels were used. As in `Regions`, a learned vector for
    the position of each cell is added (`places`), and pixels are inverted.

    Args:
        channels   number of channels of an image, 3 for RGB
        cell       width and height of a cell in pixels, a single number
        size       number D of features of a cell
        count      number R of cells of an image
        rng        seed or numpy.random.Generator for the initial values, or None for the default
                   generator

    Raises:
        ValueError: channels, cell, size or count is not a whole number >= 1
    """

    def __init__(self, channels, cell, size, count, rng=None):
        check_sizes(self, single=True, channels=channels, cell=cell, size=size, count=count)
        rng = generator(rng)
        self.channels, self.cell, self.size = channels, cell, size
        self.first = nn.Linear(cell * cell * channels, size, rng=rng)
        self.second = nn.Linear(size, size, rng=rng)
        self.places = normal_parameter((count, size), 0.3, rng)

    def forward(self, images):
        """Compute the features of the cells, row by row.

        Args:
            images   images with values from 0 to 1 [B, height, width, channels]

        Returns:
            z [B, R, D], where z_j are the features of cell j

        Raises:
            ValueError: images are not [B, height, width, channels] with the layer's number of
                channels, an integer array contains numbers above 1, height or width is not a
                multiple of `cell`, or an image does not have `count` cells
            TypeError: images do not consist of numbers
        """
        x = _images("CaptionerCells", images, self.channels)
        b, height, width, channels = x.shape
        s = self.cell
        if height % s or width % s:
            raise ValueError(
                f"CaptionerCells: images of {height} by {width} pixels cannot be cut into cells of "
                f"{s} by {s}. Choose a cell that divides height and width"
            )
        x = np.reshape(1 - x, (b, height // s, s, width // s, s, channels))
        x = np.reshape(np.swapaxes(x, 2, 3), (b, (height // s) * (width // s), s * s * channels))
        return _placed("CaptionerCells", "cells", self.second(F.relu(self.first(x))), self.places)


def _images(name, images, channels):
    """Return images as a Tensor [B, height, width, channels], after a check of their values."""
    x = images if isinstance(images, Tensor) else Tensor(images)
    if x.ndim != 4 or x.shape[3] != channels:
        advice = ""
        if x.ndim == 3 and x.shape[2] == channels:
            advice = ". Write images[None] for one image"
        elif x.ndim == 4 and x.shape[1] == channels:
            advice = ". Write np.moveaxis(images, 1, 3)"
        raise ValueError(
            f"{name}: images must be [B, height, width, channels] with {channels} "
            f"channel{'' if channels == 1 else 's'}, got shape {x.shape}{advice}"
        )
    if x.dtype.kind in "iu" and x.data.max(initial=0) > 1:
        raise ValueError(
            f"{name}: images must have values from 0 to 1, got {x.dtype} up to {x.data.max()}. "
            "Divide them by 255"
        )
    return x


def _placed(name, parts, z, places):
    """Add the position vectors `places` [R, D] to z [B, R, D], where R counts the `parts`."""
    if z.shape[1] != len(places):
        create = f"Create {name} with count={z.shape[1]}, or pass" if z.shape[1] else "Pass"
        raise ValueError(
            f"{name}: each image has {z.shape[1]} {parts if z.shape[1] != 1 else parts[:-1]}, "
            f"expected count={len(places)}. {create} images of another size"
        )
    return z + places


class AdditiveScore(nn.Module):
    """The additive attention score, e_j = tanh(h W + b + z_j U) · v.

    Args:
        state      number H of features of the state h
        features   number D of features of a region z_j
        size       width K of the hidden layer
        rng        seed or numpy.random.Generator for the initial values, or None for the default
                   generator

    Raises:
        ValueError: state, features or size is not a whole number >= 1

    Source: Bahdanau et al. 2014, Xu et al. 2015, slide KB10.
    """

    def __init__(self, state, features, size, rng=None):
        check_sizes(self, single=True, state=state, features=features, size=size)
        rng = generator(rng)
        self.from_state = nn.Linear(state, size, rng=rng)
        self.from_region = nn.Linear(features, size, bias=False, rng=rng)
        self.v = nn.Linear(size, 1, bias=False, rng=rng)

    def keys(self, z):
        """Return the part of the scores that does not depend on the state, z_j U [B, R, K].

        U [D, K] is the transposed weight of `from_region`. Computed once for each image, the result
        can be passed to `forward` for every word.

        Args:
            z   features z_j of the regions [B, R, D]

        Raises:
            ValueError: z does not have D features
        """
        return self.from_region(z)

    def forward(self, h, z, keys=None):
        """Return the score of every region for the given state.

        Args:
            h      state of the LSTM [B, H]
            z      features of the regions [B, R, D]
            keys   result of `keys(z)` [B, R, K], which replaces z. If None, the keys are computed
                   from z in this call

        Returns:
            e [B, R], the scores

        Raises:
            ValueError: h is not [B, H], z is not [B, R, D], or keys are not [B, R, K]
        """
        q, k = self.from_state(h), self.keys(z) if keys is None else keys
        _check_scores("AdditiveScore", q, k)
        return self.v(np.tanh(q[:, None] + k))[:, :, 0]


class DotScore(nn.Module):
    """The scaled dot-product attention score, e_j = (h W) · (z_j U) / √K.

    Args:
        state      number H of features of the state h
        features   number D of features of a region z_j
        size       number K of features of query and key
        rng        seed or numpy.random.Generator for the initial values, or None for the default
                   generator

    Raises:
        ValueError: state, features or size is not a whole number >= 1

    Source: Vaswani et al. 2017, slide KB10.
    """

    def __init__(self, state, features, size, rng=None):
        check_sizes(self, single=True, state=state, features=features, size=size)
        rng = generator(rng)
        self.size = size
        self.from_state = nn.Linear(state, size, bias=False, rng=rng)
        self.from_region = nn.Linear(features, size, bias=False, rng=rng)

    def keys(self, z):
        """Return the part of the scores that does not depend on the state, z_j U [B, R, K].

        U [D, K] is the transposed weight of `from_region`. Computed once for each image, the result
        can be passed to `forward` for every word.

        Args:
            z   features z_j of the regions [B, R, D]

        Raises:
            ValueError: z does not have D features
        """
        return self.from_region(z)

    def forward(self, h, z, keys=None):
        """Return the score of every region for the given state.

        Args:
            h      state of the LSTM [B, H]
            z      features of the regions [B, R, D]
            keys   result of `keys(z)` [B, R, K], which replaces z. If None, the keys are computed
                   from z in this call

        Returns:
            e [B, R], the scores

        Raises:
            ValueError: h is not [B, H], z is not [B, R, D], or keys are not [B, R, K]
        """
        q, k = self.from_state(h), self.keys(z) if keys is None else keys
        _check_scores("DotScore", q, k)
        return np.einsum("bd,brd->br", q, k) / math.sqrt(self.size)


def _check_scores(name, q, k):
    """Raise ValueError unless q is [B, K] and k [B, R, K], the linear map of h and the keys."""
    (*B, K), keys = q.shape, np.shape(k)
    if (
        len(B) != 1
        or len(keys) != 3
        or keys[2] != K
        or (keys[0] != B[0] and 1 not in (keys[0], *B))
    ):
        raise ValueError(
            f"{name}: expected h [B, H], z [B, R, D] and keys [B, R, {K}] with the same B, but the "
            f"linear map of h has shape {q.shape}, and the keys of z have shape {keys}"
        )


class SigmoidGate(nn.Module):
    """A sigmoid of each score, a_j = σ(e_j), so the weights need not sum to 1.

    Source: slide KB10.
    """

    def forward(self, scores):
        """Turn scores into weights: scores [B, R] → a [B, R]."""
        return F.sigmoid(scores)


class Softmax(nn.Module):
    """A softmax over the regions, a = softmax(e), so the weights sum to 1."""

    def forward(self, scores):
        """Turn scores into weights: scores [B, R] → a [B, R]."""
        return F.softmax(scores, axis=-1)


def _check_module(argument, module, example):
    """Raise TypeError unless `module`, the value of an argument, can be called."""
    if isinstance(module, type) or not callable(module):
        raise TypeError(
            f"{argument} must be a module or function, got {described(module)}. Pass, for example, "
            f"{example}"
        )


class Attend(nn.Module):
    """Attention of a state to regions, e_j = score(h, z_j), a = weights(e), c = Σ_j a_j z_j.

    If the regions are permuted, the weights are permuted in the same way and the context does not
    change.

    Args:
        score     a module (h [B, H], z [B, R, D]) → e [B, R], such as `AdditiveScore`. If the
                  module has a method `keys(z)`, the result of `keys` can be computed once and
                  passed to the module as the third argument
        weights   a module e [B, R] → a [B, R], such as `SigmoidGate`. If None, it is a `Softmax`

    Raises:
        TypeError: score or weights is a class, or cannot be called

    Source: Bahdanau et al. 2014, Xu et al. 2015, slides KB09, KB10, KB13.
    """

    def __init__(self, score, weights=None):
        _check_module("Attend: score", score, "DotScore(state, features, size)")
        if weights is not None:
            _check_module("Attend: weights", weights, "SigmoidGate()")
        self.score, self.weights = score, weights or Softmax()

    def keys(self, z):
        """Return the part of the scores that does not depend on the state, for `forward`.

        The result is `score.keys(z)`, or None if `score` has no method `keys`.

        Args:
            z   features of the regions [B, R, D]

        Raises:
            ValueError: `score.keys` does not accept the shape of z
        """
        return self.score.keys(z) if hasattr(self.score, "keys") else None

    def forward(self, h, z, keys=None):
        """Return the context, which is the weighted sum of the regions, and the weights.

        Args:
            h      state of the LSTM before the word [B, H]
            z      features of the regions [B, R, D]
            keys   `keys(z)`, if already computed. If None, they are computed in this call

        Returns:
            (context c [B, D], weights a [B, R])

        Raises:
            ValueError: `score` does not accept the shapes of h, z and keys
        """
        e = self.score(h, z) if keys is None else self.score(h, z, keys)  # [B, R]
        a = self.weights(e)
        return np.einsum("br,brd->bd", a, z), a


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
            _check_module("Captioner: attend", attend, "Attend(DotScore(d_state, D, size))")
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
