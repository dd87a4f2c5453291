"""Astromer: a transformer for light curves, pre-trained by predicting hidden magnitudes.

The body is `Astromer`. `MaskedMagnitudes` adds a head for pre-training, and `StarClassifier` adds a
head for classification. Sources: Donoso-Oliva et al. 2023 (A&A 670, A54, arXiv:2205.01677), slides
H14, H15.
"""

import math
from typing import NamedTuple

import numpy as np

import tinyattn.functional as F
from tinyattn import nn
from tinyattn.data.tokenizers.simple import as_array
from tinyattn.engine.autograd import no_grad
from tinyattn.engine.convert import to_array
from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_range
from tinyattn.models.gpt import described
from tinyattn.nn.module import eval_mode
from tinyattn.nn.validation import check_heads, check_sizes


def time_encoding(times, d, shortest, longest):
    """Return the sinusoidal encoding of times, p[…, 2i] = sin ω_i t and p[…, 2i+1] = cos ω_i t.

    The d/2 periods 2π/ω_i form a geometric sequence from the shortest to the longest. With the
    positions t = 0, 1, 2, … in a sentence and periods from 2π to 2π · 10000^(1 - 2/d), p is the
    encoding of `nn.PositionalEncoding`.

    Args:
        times      times [...]
        d          number of features, an even number
        shortest   shortest period, in the unit of the times
        longest    longest period

    Returns:
        the encoding p [..., d]

    Raises:
        ValueError: d is odd
    """
    if d % 2:
        raise ValueError(f"time_encoding: d must be even (pairs of sine and cosine), got d={d}")
    periods = np.geomspace(shortest, longest, d // 2)
    angle = times[..., None] * (2 * np.pi / periods)  # [..., d/2]
    p = np.stack([np.sin(angle), np.cos(angle)], axis=-1)
    return np.reshape(p, (*p.shape[:-2], d))


class Astromer(nn.Module):
    """A transformer for light curves that gives a vector for each observation, [B, T, d_model].

        x = W m + b + p(t),   m and t minus their means over the curve,  m = 0 if hidden
        x ← x + Attention(norm x),  x ← x + W₂ tanh(W₁ norm x)      num_layers times
        return norm x

    m is the magnitude of an observation, t its time, and p the encoding of the time. Call the model
    with (times, magnitudes, keep=None, visible=None). Since means are subtracted, neither the
    distance of the star nor the date of the first night matters, and the order of the observations
    matters only through their times. The default periods of the encoding, 2π to 2000π days, are
    about the same as in the paper. There are two differences from the published code. First,
    attention and feed-forward networks have residual connections with the norm first (pre-norm), as
    in other transformers, while the published code has no residual connections. Second, attention
    to hidden observations is zero, while in the published code it is only weaker.

    Args:
        d_model           number of features
        num_heads         number of heads, which divides d_model
        num_layers        number of layers
        dim_feedforward   number of hidden features of the feed-forward networks
        dropout           probability with which a number becomes 0 in training
        periods           (shortest, longest) period of the encoding, in the unit of the times,
                          with 0 < shortest <= longest
        rng               seed or numpy.random.Generator for the initial values and the dropout, or
                          None for the default generator

    Raises:
        ValueError: num_heads does not divide d_model, d_model is odd, a size is not a whole number
            >= 1, dropout is not from 0 to 1, or periods are not two numbers with 0 < shortest <=
            longest < inf
        TypeError: dropout is not a number
    """

    def __init__(
        self,
        d_model=64,
        num_heads=4,
        num_layers=2,
        dim_feedforward=128,
        dropout=0.0,
        periods=(2 * math.pi, 2000 * math.pi),
        rng=None,
    ):
        check_heads(self, d_model=d_model, num_heads=num_heads)
        check_sizes(
            self,
            num_layers=num_layers,
            dim_feedforward=dim_feedforward,
        )
        check_range(type(self).__name__, 0, 1, dropout=dropout)
        if d_model % 2:
            raise ValueError(
                "Astromer: d_model must be even, because it is split into sines and cosines, got "
                f"d_model={d_model}"
            )
        pair = np.asarray(periods)
        numbers = pair.shape == (2,) and pair.dtype.kind in "iuf"
        if not numbers or not 0 < pair[0] <= pair[1] < math.inf:
            raise ValueError(
                "Astromer: periods must be (shortest, longest) in the unit of the times, with "
                f"0 < shortest <= longest < inf, got {periods!r}"
            )
        rng = None if rng is None else generator(rng)
        self.d_model, self.periods = d_model, periods
        self.embed = nn.Linear(1, d_model, rng=rng)
        layer = nn.TransformerEncoderLayer(
            d_model, num_heads, dim_feedforward, dropout, F.tanh, norm_first=True, rng=rng
        )
        self.encoder = nn.TransformerEncoder(layer, num_layers, nn.LayerNorm(d_model))

    def forward(self, times, magnitudes, keep=None, visible=None):
        """Return a vector for each observation, [B, T, d_model].

        Args:
            times        times [B, T] in the unit of `periods` (days by default), in any order. They
                         need not be evenly spaced, and they may be NaN for padding
            magnitudes   magnitudes [B, T]. They may be NaN where they are hidden or padding
            keep         bool [B, T], True for observations, False for padding. If None, all are
                         observations
            visible      bool [B, T], False where the magnitude is hidden. If None, all are visible.
                         A hidden magnitude is not used. Its observation attends to the visible
                         observations, but no observation attends to it

        Raises:
            ValueError: times are not [B, T], or magnitudes, keep or visible have a different shape
            ValueError: keep or visible is not bool, the time of an observation is not finite, or a
                visible magnitude is not finite
            TypeError: times or magnitudes are not an array of numbers
        """
        x, seen = self._start(times, magnitudes, keep, visible)
        return self.encoder(x, seen)

    def attention_maps(self, times, magnitudes, keep=None, visible=None):
        """Return the attention weights of each layer, a list of arrays [B, H, T, T].

        H is the number of heads. The model runs in evaluation mode, so dropout does not act.

        Args:
            times        as in `forward`
            magnitudes   as in `forward`
            keep         as in `forward`
            visible      as in `forward`

        Raises:
            ValueError: as in `forward`
            TypeError: as in `forward`
        """
        with eval_mode(self), no_grad():
            return self.encoder.attention_maps(*self._start(times, magnitudes, keep, visible))

    def _start(self, times, magnitudes, keep, visible):
        """Return the input of the first layer [B, T, d_model], and the mask [B, 1, T]."""
        keep, visible = _check_light_curves(times, magnitudes, keep, visible)
        shown = np.where(visible, magnitudes - mean_of(magnitudes, visible), 0)
        since = np.where(keep, times - mean_of(times, keep), 0)  # padding may contain any number
        position = time_encoding(since, self.d_model, *self.periods)
        x = self.embed(shown[..., None])
        return x + position.astype(x.dtype), visible[:, None, :]

    def extra_repr(self):
        return "periods=({:.3g}, {:.3g})".format(*self.periods)


def mean_of(x, mask):
    """Return the mean of the chosen numbers in each row, or 0 for a row without any.

    Args:
        x      numbers [B, T]
        mask   bool [B, T], True for chosen numbers

    Returns:
        the means [B, 1]
    """
    total = np.sum(np.where(mask, x, 0), axis=1, keepdims=True)
    return total / np.maximum(mask.sum(axis=1, keepdims=True), 1).astype(x.dtype)


def _check_light_curves(times, magnitudes, keep, visible):
    """Return keep and visible as bool arrays, where visible is False for padding, too."""
    for name, given in (("times", times), ("magnitudes", magnitudes)):
        if not hasattr(given, "shape"):
            raise TypeError(
                f"Astromer: {name} must be an array [B, T], got {type(given).__name__}. Write "
                f"np.array({name})"
            )
        if given.dtype.kind not in "fiub":
            raise TypeError(
                f"Astromer: {name} must be numbers, got {given.dtype}. Write {name}.astype(float)"
            )
    shape = times.shape
    if len(shape) != 2 or magnitudes.shape != shape:
        one = len(shape) == 1 and magnitudes.shape == shape
        advice = ". Write times[None] and magnitudes[None] for one curve" if one else ""
        raise ValueError(
            f"Astromer: times and magnitudes must both be [B, T], got shapes {shape} and "
            f"{magnitudes.shape}{advice}"
        )
    masks = []
    for name, mask in (("keep", keep), ("visible", visible)):
        mask = np.ones(shape, bool) if mask is None else np.asarray(to_array(mask))
        if mask.dtype != bool or mask.shape != shape:
            raise ValueError(
                f"Astromer: {name} must be bool with the shape of times {shape}, got {mask.dtype} "
                f"of shape {mask.shape}"
            )
        masks.append(mask)
    keep, visible = masks[0], masks[0] & masks[1]
    _check_finite("Astromer", "times", times, keep, "observations")
    _check_finite("Astromer", "magnitudes", magnitudes, visible, "visible observations")
    return keep, visible


def _check_finite(name, argument, values, used, parts):
    """Raise ValueError if a number [B, T] is NaN or infinite where `used` is True."""
    bad = np.argwhere(used & ~np.isfinite(to_array(values)))
    if len(bad):
        raise ValueError(
            f"{name}: {argument} are NaN or infinite in {len(bad)} of {used.sum()} {parts}, first "
            f"in observation {bad[0][1]} of curve {bad[0][0]}. Pass a keep that is False for "
            f"{'this observation' if len(bad) == 1 else 'all of them'}, such as "
            f"np.isfinite({argument})"
        )


# ---------------------------------------------------------------- heads


def _check_body(name, astromer):
    """Raise TypeError unless `astromer` is an `Astromer` or a module with its d_model."""
    if isinstance(astromer, type) or not hasattr(astromer, "d_model"):
        raise TypeError(
            f"{name}: astromer must be an Astromer, got {described(astromer)}. Make one first, as "
            "in Astromer()"
        )


class MaskedMagnitudes(nn.Module):
    """A model that predicts the magnitude of each observation: an `Astromer` with a linear head.

        y = w·x + b + mean of the visible magnitudes

    w·x + b is the linear head, applied to the body's vector x of the observation. The body is
    pre-trained together with the head. The loss is computed only on the observations that the model
    must predict:

        task = hide_magnitudes(magnitudes, rng=0)
        y = model(times, task.magnitudes, visible=task.visible)
        loss = np.sqrt(F.mse_loss(y[task.asked], magnitudes[task.asked]))

    Args:
        astromer   the body, an `Astromer`
        rng        seed or numpy.random.Generator for the initial values of the head, or None for
                   the default generator

    Raises:
        TypeError: astromer is not an `Astromer`
    """

    def __init__(self, astromer, rng=None):
        _check_body("MaskedMagnitudes", astromer)
        self.astromer = astromer
        self.out = nn.Linear(astromer.d_model, 1, rng=rng)

    def forward(self, times, magnitudes, keep=None, visible=None):
        """Return a magnitude for each observation, including hidden ones, [B, T].

        Args:
            times        as in `Astromer.forward`
            magnitudes   as in `Astromer.forward`
            keep         as in `Astromer.forward`
            visible      as in `Astromer.forward`

        Raises:
            ValueError: as in `Astromer.forward`
            TypeError: as in `Astromer.forward`
        """
        _, seen = _check_light_curves(times, magnitudes, keep, visible)
        x = self.astromer(times, magnitudes, keep, visible)
        return self.out(x)[..., 0] + mean_of(magnitudes, seen)


class StarClassifier(nn.Module):
    """A classifier of light curves: an `Astromer`, and a head on the mean of its vectors.

    The mean is taken over all observations of a curve, without padding.

    Args:
        astromer      the body, an `Astromer`
        num_classes   number of classes
        hidden        number of hidden features of the head, an MLP with one hidden layer
        rng           seed or numpy.random.Generator for the initial values of the head, or None for
                      the default generator

    Raises:
        ValueError: num_classes or hidden is not a whole number >= 1
        TypeError: astromer is not an `Astromer`
    """

    def __init__(self, astromer, num_classes, hidden=64, rng=None):
        _check_body("StarClassifier", astromer)
        check_sizes(self, single=True, num_classes=num_classes, hidden=hidden)
        self.astromer = astromer
        self.mlp = nn.MLP([astromer.d_model, hidden, num_classes], rng=rng)

    def forward(self, times, magnitudes, keep=None):
        """Return the scores of the classes, [B, num_classes].

        Args:
            times        as in `Astromer.forward`
            magnitudes   as in `Astromer.forward`
            keep         as in `Astromer.forward`

        Raises:
            ValueError: as in `Astromer.forward`
            TypeError: as in `Astromer.forward`
        """
        keep = None if keep is None else np.asarray(to_array(keep))
        x = self.astromer(times, magnitudes, keep)
        return self.mlp(nn.sets.masked_mean(x, keep))


class Hidden(NamedTuple):
    """Light curves with hidden magnitudes, and the observations to predict.

    Attributes:
        magnitudes   magnitudes [B, T], of which some were replaced by those of other observations
        visible      bool [B, T], False where the magnitude is hidden, and for padding
        asked        bool [B, T], True for the observations that the model must predict
    """

    magnitudes: np.ndarray
    visible: np.ndarray
    asked: np.ndarray


def hide_magnitudes(magnitudes, keep=None, share=0.5, rng=None):
    """Hide random magnitudes of light curves for pre-training.

    Each observation is chosen with the probability `share`, and the model must predict the
    magnitudes of the chosen ones. About 60% of these magnitudes are hidden, 20% are replaced by the
    magnitude of a random observation of the same curve, and 20% are unchanged. Therefore, the model
    cannot assume that a visible magnitude is correct.

    Args:
        magnitudes   magnitudes [B, T]. They may be NaN for padding
        keep         bool [B, T], True for observations, False for padding. If None, all are
                     observations
        share        probability with which an observation is chosen
        rng          seed or numpy.random.Generator, or None for the default generator

    Returns:
        a `Hidden` with the arrays magnitudes, visible and asked, each [B, T]

    Raises:
        ValueError: magnitudes are not [B, T], for example because the curves have different
            lengths, or the magnitude of an observation is not finite
        ValueError: keep does not have the shape of magnitudes or is not bool, or share is not from
            0 to 1
        TypeError: magnitudes are not numbers, or share is not a number

    Source: Donoso-Oliva et al. 2023, section 3.
    """
    magnitudes, rng = as_array(magnitudes), generator(rng)
    if magnitudes.dtype == object and magnitudes.ndim == 1 and any(map(np.ndim, magnitudes)):
        raise ValueError(
            "hide_magnitudes: magnitudes must be [B, T], got curves of different lengths. Append "
            "NaN to shorter curves, and pass np.isfinite(magnitudes) as keep"
        )
    keep = np.ones(magnitudes.shape, bool) if keep is None else np.asarray(to_array(keep))
    if magnitudes.dtype.kind not in "fiub":
        raise TypeError(f"hide_magnitudes: magnitudes must be numbers, got {magnitudes.dtype}")
    if magnitudes.ndim != 2 or keep.shape != magnitudes.shape or keep.dtype != bool:
        one = magnitudes.ndim == 1 and keep.shape == magnitudes.shape
        advice = ". Write magnitudes[None] for one curve" if one else ""
        raise ValueError(
            "hide_magnitudes: magnitudes must be [B, T] and keep a bool array of the same shape, "
            f"got shape {magnitudes.shape} and {keep.dtype} of shape {keep.shape}{advice}"
        )
    _check_finite("hide_magnitudes", "magnitudes", magnitudes, keep, "observations")
    check_range("hide_magnitudes", 0, 1, share=share)
    asked = (rng.random(magnitudes.shape) < share) & keep
    how = rng.random(magnitudes.shape)
    number = np.maximum(keep.sum(axis=1, keepdims=True), 1)
    chosen = (rng.random(magnitudes.shape) * number).astype(np.int64)
    places = np.argsort(~keep, axis=1, kind="stable")  # observations come first, padding last
    others = np.take_along_axis(magnitudes, np.take_along_axis(places, chosen, 1), 1)
    changed = np.where(asked & (how >= 0.6) & (how < 0.8), others, magnitudes)
    return Hidden(changed, keep & ~(asked & (how < 0.6)), asked)
