"""Image captioning: a network gives features of the regions of a picture, an LSTM writes words.

`Captioner` weighs the regions anew for every word (soft attention); `FixedCaptioner` has one vector
for the whole picture. Regions, embedding, LSTM cell, head and search are the same in both.

Source: Xu et al. 2015 "Show, Attend and Tell", Vinyals et al. 2015 "Show and Tell"; slides
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
from tinyattn.functional import recurrent
from tinyattn.models.decoding import beam_search
from tinyattn.models.generation import eval_mode
from tinyattn.nn.init import normal_parameter
from tinyattn.nn.overrides import describe_override
from tinyattn.nn.validation import check_sizes


class Regions(nn.Module):
    """Features z [B, R, D] of the R regions of pictures [B, height, width, channels].

        z = places + relu(conv(... relu(conv(1 - pictures))))

    Convolutions of 3 by 3 that move by 2 pixels: L of them make regions of 2^L by 2^L pixels, in
    reading order (its features depend on some pixels of its neighbours, too). A learned vector is
    added for the place of each region, since attention does not use their order. Pixels are
    inverted, so that white (1) becomes 0.

    count     the number of regions R
    """

    def __init__(self, channels, widths, count, rng=None):
        check_sizes(self, channels=channels, widths=widths, count=count)
        rng = generator(rng)
        sizes = (channels, *widths)
        self.convolutions = nn.ModuleList(
            [
                nn.Conv2d(a, b, 3, stride=2, padding=1, rng=rng)
                for a, b in zip(sizes, widths, strict=False)
            ]
        )
        self.size = widths[-1]
        self.places = normal_parameter((count, self.size), 0.3, rng)

    def forward(self, images):
        """z [B, R, D];   images [B, height, width, channels]. ValueError for other shapes."""
        x = _pictures("Regions", images)
        x = np.moveaxis(1 - x, -1, 1)  # [B, channels, height, width]
        for convolution in self.convolutions:
            x = F.relu(convolution(x))
        x = np.reshape(x, (x.shape[0], x.shape[1], -1))
        return _placed("Regions", np.swapaxes(x, 1, 2), self.places)


class CaptionerCells(nn.Module):
    """Features z [B, R, D] of the cells of a grid: one MLP for all cells of `cell`² pixels.

    The features of a region depend on its own pixels only, so its attention weight says how much
    these pixels were used. Places and inverted pixels as in `Regions`.
    """

    def __init__(self, channels, cell, size, count, rng=None):
        check_sizes(self, channels=channels, cell=cell, size=size, count=count)
        rng = generator(rng)
        self.cell, self.size = cell, size
        self.first = nn.Linear(cell * cell * channels, size, rng=rng)
        self.second = nn.Linear(size, size, rng=rng)
        self.places = normal_parameter((count, size), 0.3, rng)

    def forward(self, images):
        """z [B, R, D];   images [B, height, width, channels]. Raises ValueError for other
        shapes, and for pictures that cannot be cut into cells.
        """
        x = _pictures("CaptionerCells", images)
        b, height, width, channels = x.shape
        s = self.cell
        if height % s or width % s:
            raise ValueError(
                f"CaptionerCells: {height} by {width} pixels cannot be cut into cells of {s}"
            )
        x = np.reshape(1 - x, (b, height // s, s, width // s, s, channels))
        x = np.reshape(np.swapaxes(x, 2, 3), (b, (height // s) * (width // s), s * s * channels))
        return _placed("CaptionerCells", self.second(F.relu(self.first(x))), self.places)


def _pictures(name, images):
    x = images if isinstance(images, Tensor) else Tensor(images)
    if x.ndim != 4:
        raise ValueError(f"{name}: pictures are [B, height, width, channels], got shape {x.shape}")
    return x


def _placed(name, z, places):
    """z [B, R, D] + places [R, D]"""
    if z.shape[1] != len(places):
        raise ValueError(
            f"{name}: the pictures have {z.shape[1]} regions, but {len(places)} places were made: "
            f"give count={z.shape[1]}"
        )
    return z + places


class AdditiveScore(nn.Module):
    """e_j = tanh(h W + z_j U) · v, [B, R] (Xu et al. 2015, Bahdanau et al. 2015).

    The term of z alone, `keys(z)`, is the same for every word: pass it if it is already computed.
    """

    def __init__(self, state, features, size, rng=None):
        check_sizes(self, state=state, features=features, size=size)
        rng = generator(rng)
        self.from_state = nn.Linear(state, size, rng=rng)
        self.from_region = nn.Linear(features, size, bias=False, rng=rng)
        self.v = nn.Linear(size, 1, bias=False, rng=rng)

    def keys(self, z):
        """z_j U for all regions, [B, R, size]."""
        return self.from_region(z)

    def forward(self, h, z, keys=None):
        """e [B, R];   h [B, H], z [B, R, D], keys [B, R, size]."""
        keys = self.keys(z) if keys is None else keys
        return self.v(np.tanh(self.from_state(h)[:, None] + keys))[:, :, 0]


class DotScore(nn.Module):
    """e_j = (h W) · (z_j U) / √size, [B, R]: query and key (Vaswani et al. 2017).

    `keys(z)` as in `AdditiveScore`.
    """

    def __init__(self, state, features, size, rng=None):
        check_sizes(self, state=state, features=features, size=size)
        rng = generator(rng)
        self.size = size
        self.from_state = nn.Linear(state, size, bias=False, rng=rng)
        self.from_region = nn.Linear(features, size, bias=False, rng=rng)

    def keys(self, z):
        """z_j U for all regions, [B, R, size]."""
        return self.from_region(z)

    def forward(self, h, z, keys=None):
        """e [B, R];   h [B, H], z [B, R, D], keys [B, R, size]."""
        q, k = self.from_state(h), self.keys(z) if keys is None else keys
        return np.einsum("bd,brd->br", q, k) / math.sqrt(self.size)


class SigmoidGate(nn.Module):
    """a_j = σ(e_j): a weight for each region alone, so they need not sum to 1 (slide KB10)."""

    def forward(self, scores):
        """a [B, R];   scores [B, R]."""
        return F.sigmoid(scores)


class Softmax(nn.Module):
    """a = softmax(e): weights in [0, 1] that sum to 1 over the regions."""

    def forward(self, scores):
        """a [B, R];   scores [B, R]."""
        return F.softmax(scores, axis=-1)


class Attend(nn.Module):
    """Attention to the regions:  e_j = score(h, z_j),  a = weights(e),  c = Σ_j a_j z_j.

    h [B, H] is the decoder's state before the word, z [B, R, D] are the regions; returns the
    context c [B, D] and the weights a [B, R]. If the regions are permuted, the weights are permuted
    in the same way and the context does not change (slide KB13).

    keys   `keys(z)`, the part of the score that no state changes, if it is already known
    """

    def __init__(self, score, weights=None):
        self.score, self.weights = score, weights or Softmax()

    def keys(self, z):
        """The term of the score that only the regions enter; None if the score has none."""
        return self.score.keys(z) if hasattr(self.score, "keys") else None

    def forward(self, h, z, keys=None):
        """(c [B, D], a [B, R]);   h [B, H], z [B, R, D], keys as `keys(z)` gives them."""
        e = self.score(h, z) if keys is None else self.score(h, z, keys)  # [B, R]
        a = self.weights(e)
        return np.einsum("br,brd->bd", a, z), a


class Caption(NamedTuple):
    """A caption that was written: token ids [T], attention [T, R] (None without), log p."""

    tokens: np.ndarray
    attention: np.ndarray | None
    log_probability: float


class _Captioner(nn.Module):
    """What both captioners share: embedding, LSTM cell, head, loss, and search for a caption."""

    def __init__(self, regions, vocab_size, context, d_word, d_state, rng):
        check_sizes(self, vocab_size=vocab_size, context=context, d_word=d_word, d_state=d_state)
        self.regions = regions
        self.embedding = nn.Embedding(vocab_size, d_word, rng=rng)
        self.cell = nn.LSTMCell(d_word + context, d_state, rng=rng)
        self.head = nn.Linear(d_state + context, vocab_size, rng=rng)

    def forward(self, images, tokens):
        """(logits [B, T, V], attention [B, T, R] or None): the words after each of tokens [B, T].

        Teacher forcing: the decoder is given the true word before, not the one it would have
        written.
        """
        if len(images) != len(tokens):
            raise ValueError(f"captioner: {len(images)} pictures but {len(tokens)} captions")
        y, maps = self.read(self.embedding(tokens), *self.start(images))
        return self.head(y), maps

    def step(self, word, memory, state):
        """(logits [B, V], new state, weights [B, R] or None) after one more word [B, d_word]."""
        y, state, a = self.advance(word, memory, state)
        return self.head(y), state, a

    def loss(self, images, tokens, pad=0, penalty=0.0):
        """Mean cross-entropy per word; tokens [B, T + 1] run from START to END, then `pad`.

        penalty λ: adds λ/(B R) Σ_j (1 - Σ_t a_tj)², doubly stochastic attention: over the whole
        caption every region is to be looked at about once (Xu et al. 2015, eq. 14).
        """
        tokens = np.asarray(to_array(tokens))
        if tokens.ndim != 2 or tokens.shape[1] < 2:
            raise ValueError(
                f"loss: tokens are [B, T + 1] with START first and at least one word, "
                f"got shape {tokens.shape}"
            )
        logits, maps = self(images, tokens[:, :-1])
        target = tokens[:, 1:]
        keep = target != pad
        loss = F.cross_entropy(logits[keep], target[keep])
        if penalty and maps is None:
            raise ValueError("loss: penalty is on attention weights, and this captioner has none")
        if penalty:
            seen = np.sum(np.where(keep[:, :, None], maps, 0.0), axis=1)  # [B, R]
            loss = loss + penalty * np.mean((1 - seen) ** 2)
        return loss

    def write(self, images, start, stop, beams=1, max_len=20, length_penalty=0.0):
        """One `Caption` for each picture: greedy (beams=1) or by beam search."""
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
        """The attention while each of these captions is written, cut to its length."""
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
    """A caption for a picture, with a new context for every word (soft attention).

        e_tj = score(h_{t-1}, z_j),   a_t = softmax(e_t),   c_t = Σ_j a_tj z_j
        h_t = LSTM([E[w_{t-1}], c_t], h_{t-1}),   logits = head([h_t, c_t])

    regions    a module: pictures → z [B, R, D], with its D as `.size` (`Regions`, `CaptionerCells`)
    attend     a module: (h, z) → (c [B, D], a [B, R]); default: `Attend(AdditiveScore(...))`. If
               it has `keys(z)`, these are computed once per picture: (h, z, keys) → (c, a)

    The first state is an MLP of the mean region. Where letters differ: Xu et al. write y
    for words and i for regions.
    """

    def __init__(self, regions, vocab_size, d_word=32, d_state=64, attend=None, rng=None):
        check_sizes(self, vocab_size=vocab_size, d_word=d_word, d_state=d_state)
        rng, d = generator(rng), regions.size
        super().__init__(regions, vocab_size, d, d_word, d_state, rng)
        self.attend = attend or Attend(AdditiveScore(d_state, d, d_state, rng))
        self.first_h, self.first_c = nn.Linear(d, d_state, rng=rng), nn.Linear(d, d_state, rng=rng)

    def start(self, images):
        """(memory, first state): (z [B, R, D],) or (z, keys), and (h, c), each [B, d_state]."""
        z = self.regions(images)
        keys = self.attend.keys(z) if hasattr(self.attend, "keys") else None
        mean = np.mean(z, axis=1)
        state = np.tanh(self.first_h(mean)), np.tanh(self.first_c(mean))
        return (z,) if keys is None else (z, keys), state

    def read(self, words, memory, state):
        """([h_t, c_t] [B, T, ...], weights [B, T, R]) for the words [B, T, d_word] of captions."""
        features, maps = [], []
        for t in range(words.shape[1]):
            y, state, a = self.advance(words[:, t], memory, state)
            features.append(y)
            maps.append(a)
        return np.stack(features, axis=1), np.stack(maps, axis=1)

    def advance(self, word, memory, state):
        """([h_t, c_t], new state, weights [B, R]) after one more word [B, d_word]."""
        c, a = self.attend(state[0], *memory)
        state = self.cell(np.concatenate([word, c], axis=1), state)
        return np.concatenate([state[0], c], axis=1), state, a


class FixedCaptioner(_Captioner):
    """A caption for a picture, with one context vector that is the same for every word.

        c = f_w(z_1, ..., z_R) [B, context],   h_t = LSTM([E[w_{t-1}], c], h_{t-1})

    f_w is an MLP with one hidden layer on all regions concatenated, so it can use where each of
    them is. The first state is zero.

    regions    a module: pictures → z [B, R, D], with its D as `.size`
    count      the number of regions R
    context    the length of c
    hidden     the width of the hidden layer of f_w; None: R·D, as many as all regions have, so
               that only c can be a bottleneck
    """

    def __init__(
        self, regions, count, vocab_size, context=32, d_word=32, d_state=64, hidden=None, rng=None
    ):
        check_sizes(
            self,
            count=count,
            vocab_size=vocab_size,
            context=context,
            d_word=d_word,
            d_state=d_state,
        )
        hidden = count * regions.size if hidden is None else hidden
        check_sizes(self, hidden=hidden)
        rng = generator(rng)
        super().__init__(regions, vocab_size, context, d_word, d_state, rng)
        self.squeeze = nn.Sequential(
            nn.Linear(count * regions.size, hidden, rng=rng),
            nn.ReLU(),
            nn.Linear(hidden, context, rng=rng),
        )

    def start(self, images):
        """(memory, first state): the context c [B, context] and a state of zeros."""
        z = self.regions(images)
        c = np.tanh(self.squeeze(np.reshape(z, (z.shape[0], -1))))
        zeros = Tensor(np.zeros((z.shape[0], self.cell.hidden_size), c.dtype))
        return c, (zeros, zeros)

    def read(self, words, c, state):
        """([h_t, c] [B, T, ...], None) for the words [B, T, d_word] of captions.

        No input depends on a state, so the LSTM runs over the whole caption at once; a cell whose
        `forward` was changed is called word by word.
        """
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
        """([h_t, c], new state, None) after one more word [B, d_word]."""
        state = self.cell(np.concatenate([word, c], axis=1), state)
        return np.concatenate([state[0], c], axis=1), state, None
