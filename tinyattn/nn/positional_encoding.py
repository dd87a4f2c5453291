"""Positional encodings of the rows of x [B, T, d], for layers that ignore the order of the rows.

PositionalEncoding (sinusoids) and LearnedPositionalEmbedding are added to x, while
ConcatPositionalEncoding gives x more features. RotaryEmbedding rotates queries and keys, so that
the product of a query and a key depends only on the difference of their positions.

The argument positions is [T] or [B, T]. Without it, the rows have the positions 0, …, T - 1. A
model that generates token by token passes the positions of its cache.
"""

import math

import numpy as np

from tinyattn.engine.convert import as_tensor, to_array
from tinyattn.engine.ranges import check_range
from tinyattn.nn.init import normal_parameter
from tinyattn.nn.layers import Dropout
from tinyattn.nn.module import Module
from tinyattn.nn.validation import check_sizes


def sinusoids(length, d):
    """Return the sinusoidal encoding p of the positions t = 0, …, length - 1.

        p[t, 2i] = sin(t / 10000^(2i/d)),   p[t, 2i+1] = cos(t / 10000^(2i/d))

    Args:
        length   number of positions
        d        number of features

    Returns:
        p, an array [length, d] in float64

    Source: Vaswani et al. 2017, section 3.5, and slides S16, N24.
    """
    i = np.arange(d)
    angle = np.arange(length)[:, None] / 10000.0 ** (2 * (i // 2) / d)
    return np.where(i % 2 == 0, np.sin(angle), np.cos(angle))


class PositionalEncoding(Module):
    """A sinusoidal encoding that is added to x, y = dropout(x + p[positions]), without parameters.

        p[t, 2i] = sin(t / 10000^(2i/d_model)),   p[t, 2i+1] = cos(t / 10000^(2i/d_model))

    Args:
        d_model   number of features
        max_len   number of positions t = 0, …, max_len - 1. Other positions raise ValueError
        dropout   probability with which a number becomes 0 in training
        rng       seed or numpy.random.Generator for the dropout, or None for the default generator

    Raises:
        ValueError: a size is not a whole number of at least 1, or dropout is not from 0 to 1
        TypeError: dropout is not a number
    """

    def __init__(self, d_model, max_len=5000, dropout=0.0, rng=None):
        check_sizes(self, single=True, d_model=d_model, max_len=max_len)
        check_range("PositionalEncoding", 0, 1, dropout=dropout)
        # the encoding is computed and not trained, so it is not saved
        self.p = sinusoids(max_len, d_model)
        self.dropout = Dropout(dropout, rng)

    def forward(self, x, positions=None):
        """Add the encoding, then apply the dropout. Shape: x [B, T, d_model] → the same.

        The axis B may be missing.

        Args:
            x           the tokens
            positions   positions of the tokens, whole numbers [T] or [B, T], or None for
                        0, …, T - 1

        Raises:
            ValueError: x has fewer than two axes or a different number of features, positions are
                not whole numbers of such a shape, or a position is not from 0 to max_len - 1
            TypeError: x is not floating point
        """
        max_len, d_model = self.p.shape
        x = _checked("PositionalEncoding", x, d_model)
        t = _positions("PositionalEncoding", x, positions, max_len)
        return self.dropout(x + self.p[t].astype(x.dtype))

    def extra_repr(self):
        return f"{self.p.shape[1]}, max_len={self.p.shape[0]}"


class LearnedPositionalEmbedding(Module):
    """A learned vector for each position that is added to x, y = x + weight[positions].

    The parameter is weight [max_len, d_model]. Its initial values are normal with mean 0.

    Args:
        max_len   number of positions 0, …, max_len - 1. Other positions raise ValueError
        d_model   number of features
        std       standard deviation of the initial values
        rng       seed or numpy.random.Generator for the initial values, or None for the default
                  generator

    Raises:
        ValueError: a size is not a whole number of at least 1, or std is negative or infinite
        TypeError: std is not a number

    Source: Gehring et al. 2017. GPT and BERT use this encoding.
    """

    def __init__(self, max_len, d_model, std=0.02, rng=None):
        check_sizes(self, single=True, max_len=max_len, d_model=d_model)
        check_range("LearnedPositionalEmbedding", 0, below=math.inf, std=std)
        self.weight = normal_parameter((max_len, d_model), std, rng)

    def forward(self, x, positions=None):
        """Add the vector of each position. Shape: x [B, T, d_model] → the same.

        The axis B may be missing.

        Args:
            x           the tokens
            positions   positions of the tokens, whole numbers [T] or [B, T], or None for
                        0, …, T - 1

        Raises:
            ValueError: x has fewer than two axes or a different number of features, positions are
                not whole numbers of such a shape, or a position is not from 0 to max_len - 1
            TypeError: x is not floating point
        """
        name, (max_len, d_model) = "LearnedPositionalEmbedding", self.weight.shape
        x = _checked(name, x, d_model)
        return x + self.weight[_positions(name, x, positions, max_len)]

    def extra_repr(self):
        return "{}, {}".format(*self.weight.shape)


class ConcatPositionalEncoding(Module):
    """A sinusoidal encoding that is concatenated with x, y = [x, p[positions]].

        p[t, 2i] = sin(t / 10000^(2i/d_position)),   p[t, 2i+1] = cos(t / 10000^(2i/d_position))

    The d features of x do not change, and the next layer must accept d + d_position features.

    Args:
        d_position   number of features of p
        max_len      number of positions t = 0, …, max_len - 1. Other positions raise ValueError

    Raises:
        ValueError: d_position or max_len is not a whole number of at least 1

    Source: slide K23.
    """

    def __init__(self, d_position, max_len=5000):
        check_sizes(self, single=True, d_position=d_position, max_len=max_len)
        self.p = sinusoids(max_len, d_position)

    def forward(self, x, positions=None):
        """Append the encoding. Shape: x [B, T, d] → [B, T, d + d_position].

        The axis B may be missing.

        Args:
            x           the tokens
            positions   positions of the tokens, whole numbers [T] or [B, T], or None for
                        0, …, T - 1

        Raises:
            ValueError: x has fewer than two axes, positions are not whole numbers of such a shape,
                or a position is not from 0 to max_len - 1
            TypeError: x is not floating point
        """
        name = "ConcatPositionalEncoding"
        x = _checked(name, x)
        p = self.p[_positions(name, x, positions, len(self.p))].astype(x.dtype)
        p = np.broadcast_to(p, (*x.shape[:-1], p.shape[-1]))
        return np.concatenate([x, p], axis=-1)

    def extra_repr(self):
        return f"{self.p.shape[1]}, max_len={self.p.shape[0]}"


def _checked(name, x, d=None):
    """Return x as a Tensor, after a check that it is [..., T, d] and floating point."""
    x = as_tensor(x)
    if x.ndim < 2 or (d is not None and x.shape[-1] != d):
        raise ValueError(f"{name}: x must be [B, T, {d or 'd'}], got shape {x.shape}")
    if x.dtype.kind != "f":  # the encoding would be rounded to whole numbers
        raise TypeError(
            f"{name}: x must be floating point, got {x.dtype}. Pass token ids through nn.Embedding "
            "first, and convert other whole numbers with .astype(np.float32)"
        )
    return x


def _positions(name, x, positions, max_len):
    """Return the positions as an index, after a check that they are from 0 to max_len - 1."""
    T = x.shape[-2]
    if positions is None:
        if T > max_len:
            raise ValueError(
                f"{name}: expected T <= max_len={max_len} for x [B, T, d], got T={T}, x {x.shape}. "
                "Choose a larger max_len"
            )
        return slice(T)
    positions = _whole(name, positions, x)
    if positions.size and not 0 <= positions.min() <= positions.max() < max_len:
        raise ValueError(
            f"{name}: positions must be from 0 to {max_len - 1}, got {positions.min()} to "
            f"{positions.max()}"
        )
    return positions


def _whole(name, positions, x):
    """Return the positions as an array [T] or [B, 1, ..., 1, T], after a check that they fit x."""
    T, given = x.shape[-2], np.asarray(to_array(positions))
    fits = given.ndim in (1, 2) and given.shape[-1] in (T, 1)
    if not fits or given.dtype.kind not in "iu":
        raise ValueError(
            f"{name}: positions must be whole numbers [{T}] or [B, {T}], one for each row of x "
            f"{x.shape}, got {given.dtype} of shape {given.shape}"
        )
    if given.ndim == 1:
        return given
    if x.ndim < 3 or len(given) not in (1, len(x)):
        raise ValueError(
            f"{name}: positions [B, T] need x [B, ..., T, d] with the same B, got positions "
            f"{given.shape} and x {x.shape}. Pass positions [T]"
        )
    return given.reshape(len(given), *(1,) * (x.ndim - 3), given.shape[1])


# ---------------------------------------------------------------- rotary


class RotaryEmbedding(Module):
    """A rotation of features by angles that grow with the position. It has no parameters.

        y_i       = x_i cos tθ_i - x_(i+d/2) sin tθ_i,   θ_i = base^(-2i/d)
        y_(i+d/2) = x_(i+d/2) cos tθ_i + x_i sin tθ_i

    Here t is the position, and i = 0, …, d/2 - 1 counts the pairs of features. The product of a
    query at position t and a key at position s depends on t - s, but not on t and s themselves.

    Args:
        d      number of features, an even number
        base   base > 0 of the frequencies θ_i. A larger base makes the slowest pair of features
               rotate more slowly

    Raises:
        ValueError: d is odd or not a whole number of at least 1, or base is not positive and finite
        TypeError: base is not a number

    Source: Su et al. 2021 (RoFormer), with the pairs in the order of GPT-NeoX and Llama.
    """

    def __init__(self, d, base=10000.0):
        check_sizes(self, single=True, d=d)
        if d % 2:
            raise ValueError(
                f"{type(self).__name__}: d must be even, because features are rotated in pairs, "
                f"got d={d}"
            )
        check_range(type(self).__name__, above=0, below=math.inf, base=base)
        self.d, self.base = d, base
        self.theta = float(base) ** (-np.arange(0, d, 2) / d)
        # cos and sin up to the largest position so far
        self.table = np.ones((0, d // 2)), np.zeros((0, d // 2))

    def forward(self, x, positions=None):
        """Rotate the features. Shape: x [..., T, d] → the same.

        Args:
            x           queries or keys [..., T, d]
            positions   positions of the rows, whole numbers [T] or, for x [B, ..., T, d], [B, T].
                        None: 0, …, T - 1

        Raises:
            ValueError: x has fewer than two axes or a different number of features, positions are
                not whole numbers of such a shape, or a position is negative
            TypeError: x is not floating point
        """
        x = as_tensor(x)
        if x.ndim < 2 or x.shape[-1] != self.d:
            raise ValueError(
                f"{type(self).__name__}: x must be [..., T, {self.d}], got shape {x.shape}"
            )
        x = _checked(type(self).__name__, x)
        cos, sin = self._turns(x, positions)
        a, b = self._pairs(x)
        return self._joined(a * cos - b * sin, b * cos + a * sin)

    def _turns(self, x, positions):
        """Return cos and sin of the angles, as [T, d/2] or [B, 1, …, T, d/2]."""
        if positions is None:
            t = np.arange(x.shape[-2])
        else:
            t = _whole(type(self).__name__, positions, x)
        if t.size and t.min() < 0:
            raise ValueError(f"{type(self).__name__}: positions must be >= 0, got {t.min()}")
        return self.turns(t, x.dtype)

    def turns(self, t, dtype):
        """Return the cosines and the sines of the angles tθ_i, where θ_i = base^(-2i/d).

        Args:
            t       positions, an integer t >= 0 or an array [...] of such integers
            dtype   dtype of the result

        Returns:
            a list of two arrays [..., d/2], the cosines and the sines
        """
        # Read self.table only once, because another thread may replace it.
        last, table = int(np.max(t, initial=-1)), self.table
        if last >= len(table[0]):
            angle = np.arange(max(2 * last, 64))[:, None] * self.theta
            self.table = table = np.cos(angle), np.sin(angle)
        return [c[t].astype(dtype) for c in table]

    def _pairs(self, x):
        h = self.d // 2
        return x[..., :h], x[..., h:]

    def _joined(self, a, b):
        return np.concatenate([a, b], axis=-1)

    def extra_repr(self):
        return f"{self.d}, base={self.base:g}"


class InterleavedRotaryEmbedding(RotaryEmbedding):
    """A `RotaryEmbedding` that rotates the pairs of features 2i and 2i + 1, as in Su et al. 2021.

        y_2i     = x_2i cos tθ_i - x_(2i+1) sin tθ_i,   θ_i = base^(-2i/d)
        y_(2i+1) = x_(2i+1) cos tθ_i + x_2i sin tθ_i

    Here t is the position, and i = 0, …, d/2 - 1 counts the pairs of features. The products of
    queries and keys are the same as with `RotaryEmbedding` if the features of queries and keys are
    first reordered for `RotaryEmbedding`, so that feature 2i becomes feature i and feature 2i + 1
    becomes feature i + d/2.

    Args:
        d      number of features, an even number
        base   base > 0 of the frequencies θ_i. A larger base makes the slowest pair of features
               rotate more slowly

    Raises:
        ValueError: d is odd or not a whole number of at least 1, or base is not positive and finite
        TypeError: base is not a number
    """

    def _pairs(self, x):
        return x[..., 0::2], x[..., 1::2]

    def _joined(self, a, b):
        return np.reshape(np.stack([a, b], axis=-1), (*a.shape[:-1], self.d))
