"""Caches of keys and values, for attention that generates a sequence token by token.

Without a cache, the keys and values of all earlier tokens are computed again for each new token, so
generating T tokens takes T²/2 of these computations instead of T. The caches hold plain arrays
without a graph and are changed in place, so use them for generation but not for training.

Each attention layer has a cache, and a model keeps its caches in a list. Axis 0 contains the
sequences. A beam search uses `rows(index)` to keep, drop or repeat sequences.
"""

import numpy as np

from tinyattn.engine.autograd import Tensor
from tinyattn.engine.convert import to_array
from tinyattn.engine.memory import address


class KeyValueCache:
    """A cache of the keys and values [B, H, S, d] of all tokens so far.

    Row b holds lengths[b] tokens (lengths [B]), and lengths[b] is the position of its next token.
    S is the largest of these lengths, and H the number of heads that have keys and values. The
    first call of `append` determines B. Before this call, lengths is [0].
    """

    def __init__(self):
        self.k = self.v = None  # [B, H, room for more tokens, d]
        self.lengths = np.zeros(1, np.int64)  # one entry for all rows until tokens are added
        self.shortest = self.longest = 0
        self._places = None, None, ()  # positions of the keys and values

    def append(self, k, v):
        """Add the keys and values of T new tokens, and return the keys and values of all tokens.

        Args:
            k   keys of the new tokens [B, H, T, d]
            v   values of the new tokens [B, H, T, d_v]

        Returns:
            (k [B, H, S, d], v [B, H, S, d_v]), arrays that share the memory of the cache. S is the
            length of the longest row, and shorter rows are padded at their end

        Raises:
            ValueError: the number of sequences, heads or features differs from that of the cache,
                or k and v have different numbers of sequences, heads or tokens
            RuntimeError: k or v requires a gradient
        """
        k, v = _array_without_gradient(k), _array_without_gradient(v)
        if k.ndim < 3 or k.shape[:-1] != v.shape[:-1]:
            raise ValueError(
                "KeyValueCache: k must be [B, H, T, d] and v [B, H, T, d_v] with the same B, H and "
                f"T, got k {k.shape} and v {v.shape}"
            )
        B, T = k.shape[0], k.shape[-2]
        *_, before = self.reserve(k.shape, np.result_type(k, v), v.shape[-1])
        S = self.longest
        if self.shortest == self.longest:
            self.k[..., S - T : S, :], self.v[..., S - T : S, :] = k, v
        else:  # each row writes after its own last token
            b, s = np.arange(B)[:, None], before[:, None] + np.arange(T)
            self.k[b, :, s], self.v[b, :, s] = np.swapaxes(k, 1, 2), np.swapaxes(v, 1, 2)
        return self.k[..., :S, :], self.v[..., :S, :]

    def reserve(self, shape, dtype, d_v=None):
        """Make room for T new tokens in each row, and add T to the lengths.

        Args:
            shape   shape [B, H, T, d] of the new keys
            dtype   dtype of keys and values, used only if memory must be allocated
            d_v     number of features of a value, or None for d

        Returns:
            (k [B, H, room, d], v [B, H, room, d_v], lengths [B] before the call), where k and v are
            the arrays of the cache, and room is at least the length of the longest row. Write the
            new keys of row b into k[b, :, n : n + T] with n = lengths[b], and the new values in the
            same way into v

        Raises:
            ValueError: the number of sequences, heads or features differs from that of the cache
        """
        (B, *H, T, d), d_v = shape, shape[-1] if d_v is None else d_v
        if self.k is not None and (*H, d, d_v) != self._sizes():
            raise ValueError(
                "KeyValueCache: (heads, features of a key, features of a value) is "
                f"{self._sizes()} in the cache, got {(*H, d, d_v)}. Give each attention layer its "
                "own cache"
            )
        if self.k is None:  # all rows are still empty
            self.lengths = np.zeros(B, np.int64)
        if len(self.lengths) != B:
            raise ValueError(
                f"KeyValueCache: the cache holds B={len(self.lengths)} sequences, got B={B}. Start "
                "a new cache for each batch, or select rows with .rows(index)"
            )
        S = self.longest + T
        # double the room, because otherwise every new token would copy all earlier ones
        if self.k is None or self.k.shape[-2] < S:
            room = S if self.k is None else max(S, 2 * self.k.shape[-2])
            self.k, self.v = (
                self._widened(old, (B, *H, room, n), dtype)
                for old, n in ((self.k, d), (self.v, d_v))
            )
        before, self.lengths = self.lengths, self.lengths + T
        self.shortest, self.longest = self.shortest + T, S
        return self.k, self.v, before

    def addresses(self):
        """Return the two addresses in memory, as integers, at which keys and values begin.

        For an empty cache, the result is ().
        """
        k, v, places = self._places
        if k is not self.k or v is not self.v:
            places = address(self.k), address(self.v)
            self._places = self.k, self.v, places
        return places

    def past(self, T):
        """Return the mask with which each of T new tokens attends to itself and all earlier tokens.

        Call this method before `append`.

        Args:
            T   number of new tokens

        Returns:
            (mask, causal), the arguments of these names for an attention. The mask is bool [T, S]
            or, if the rows have different lengths, [B, 1, T, S], where S counts the tokens in the
            cache and the new ones. It is None if no mask is needed besides `causal`
        """
        if self.shortest == self.longest:
            if T == 1 or self.longest == 0:
                return None, T > 1
            return np.tri(T, self.longest + T, self.longest, dtype=bool), False
        last = self.lengths[:, None] + np.arange(T)  # [B, T]
        return (np.arange(self.longest + T) <= last[..., None])[:, None], False

    def positions(self, T):
        """Return the positions of T new tokens, counted from 0.

        Args:
            T   number of new tokens

        Returns:
            positions [T], or [B, T] if the rows have different lengths
        """
        if self.shortest == self.longest:
            return self.longest + np.arange(T)
        return self.lengths[:, None] + np.arange(T)

    def truncate(self, lengths):
        """Keep only the first tokens of each row, for example to remove padding.

        Args:
            lengths   number of tokens to keep in each row [B], or one number for all rows

        Returns:
            the cache, which is changed in place

        Raises:
            ValueError: lengths are neither one whole number nor one for each row, or a number is
                negative or larger than the length of its row
        """
        lengths = np.asarray(to_array(lengths))
        if lengths.dtype.kind not in "iu" or lengths.shape not in ((), (1,), self.lengths.shape):
            raise ValueError(
                "KeyValueCache: lengths must be one whole number, or one for each row of the cache "
                f"[B] = {self.lengths.shape}, got {lengths.dtype} of shape {lengths.shape}"
            )
        lengths = np.broadcast_to(lengths.astype(np.int64), self.lengths.shape).copy()
        if (lengths < 0).any() or (lengths > self.lengths).any():
            raise ValueError(
                f"KeyValueCache: expected 0 <= lengths <= {self.lengths}, the numbers of tokens in "
                f"the cache, got lengths={lengths}"
            )
        self._set(lengths)
        return self

    def rows(self, index):
        """Return a cache with the given rows only, for example to continue a beam search.

        Args:
            index   indices of the rows to keep [B'], in their new order. A row may occur more than
                    once

        Returns:
            a new cache with a copy of these rows, or this cache itself if it is empty or nothing
            would change

        Raises:
            IndexError: index is a single number, or an index is not that of a row of the cache.
                An empty cache accepts all indices
        """
        if self.k is None:
            return self
        if np.shape(index) == self.lengths.shape and (index == np.arange(len(index))).all():
            return self
        taken = KeyValueCache()
        taken.k, taken.v = _rows("KeyValueCache", self, index)
        taken._set(self.lengths[index])
        return taken

    def _set(self, lengths):
        self.lengths = lengths
        self.longest = int(lengths.max(initial=0))
        self.shortest = int(lengths.min(initial=self.longest))

    def _sizes(self):
        """Return (heads, features of a key, features of a value)."""
        return *self.k.shape[1:-2], self.k.shape[-1], self.v.shape[-1]

    def _widened(self, old, shape, dtype):
        new = np.zeros(shape, dtype)
        if old is not None:
            new[..., : old.shape[-2], :] = old
        return new


def reserve_in_all(caches, shape, dtype):
    """Make room for one new token of each row in several caches, and add 1 to their lengths.

    Args:
        caches   the caches
        shape    shape [B, H, 1, d] of the new keys, which is also the shape of the new values
        dtype    dtype of keys and values

    Returns:
        the lengths [B] before the call. If a cache is not a `KeyValueCache`, or if the lengths,
        shapes or dtypes of the caches differ, the result is None, and no cache is changed

    Raises:
        ValueError: the shape does not fit the caches
    """
    (B, G, _, d), first = shape, caches[0]
    S, shortest, k, v = first.longest, first.shortest, first.k, first.v
    for cache in caches:
        if type(cache) is not KeyValueCache or cache.longest != S or cache.shortest != shortest:
            return None
        if (k is None) is not (cache.k is None):
            return None
        if shortest != S and not np.array_equal(cache.lengths, first.lengths):
            return None
        if k is not None and not (_alike(cache.k, k) and _alike(cache.v, v)):
            return None
    if k is None or k.shape[2] <= S or k.shape != (B, G, k.shape[2], d) or v.shape != k.shape:
        # this makes room or raises an error
        before = [cache.reserve(shape, dtype)[-1] for cache in caches]
        return before[0]
    before = first.lengths
    after = before + 1
    for cache in caches:
        cache.lengths, cache.shortest, cache.longest = after, shortest + 1, S + 1
    return before


def _alike(a, b):
    """Return whether two arrays have the same shape, strides and dtype."""
    return a.shape == b.shape and a.strides == b.strides and a.dtype == b.dtype


class CrossAttentionCache:
    """A cache of the keys and values of an encoder output, which does not change.

    The first call of `get_or_compute` computes the keys and values [B, H, S, d], and later calls
    return them.
    """

    def __init__(self):
        self.k = self.v = None

    def get_or_compute(self, make):
        """Return the keys and the values, which are computed only in the first call.

        Args:
            make   function without arguments that computes and returns (keys, values). It is
                   called only if the cache is empty

        Returns:
            (keys, values), as arrays

        Raises:
            RuntimeError: the keys or values require a gradient
        """
        if self.k is None:
            self.k, self.v = (_array_without_gradient(x) for x in make())
        return self.k, self.v

    def rows(self, index):
        """Return a cache with the given rows only, for example to continue a beam search.

        Args:
            index   indices of the rows to keep [B'], in their new order. A row may occur more than
                    once

        Returns:
            a new cache with a copy of these rows. If this cache is empty, the new one is empty too

        Raises:
            IndexError: index is a single number, or an index is not that of a row of the cache.
                An empty cache accepts all indices
        """
        taken = CrossAttentionCache()
        if self.k is not None:
            taken.k, taken.v = _rows("CrossAttentionCache", self, index)
        return taken


def _rows(name, cache, index):
    """Return the keys and the values of the given rows. Errors begin with `name`."""
    if np.ndim(index) == 0:
        raise IndexError(f"{name}: index must be a list of rows, got {index}. Write [{index}]")
    try:
        return cache.k[index], cache.v[index]
    except IndexError:
        n = len(cache.k)
        raise IndexError(
            f"{name}: index must contain rows of the cache, from 0 to {n - 1}, got "
            f"{np.asarray(to_array(index)).tolist()}"
        ) from None


def _array_without_gradient(x):
    if isinstance(x, Tensor) and x.requires_grad:
        raise RuntimeError(
            "attention with a cache: keys and values must not require a gradient, because the "
            "cache stores plain arrays. Generate under `with ta.no_grad():`, or train without a "
            "cache"
        )
    return to_array(x)
