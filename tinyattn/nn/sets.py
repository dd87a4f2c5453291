"""Layers on sets, in which the N rows of x [B, N, d] have no order.

If the rows are permuted, the output of equivariant layers (SAB, ISAB) is permuted in the same way,
and the output of pooling layers (PMA, DeepSets) does not change. Sets of different sizes are padded
to N rows, and a mask is True for elements and False for padding. The mask is [B, N] for pooling
layers and [B, 1, N] for equivariant ones. The letters follow Lee et al. 2019, with N elements and m
inducing points.
"""

import numpy as np

from tinyattn.engine.convert import as_tensor, as_tensors, to_array
from tinyattn.engine.random import generator
from tinyattn.nn.attention import CrossAttention
from tinyattn.nn.init import xavier_parameter
from tinyattn.nn.layers import MLP, Linear
from tinyattn.nn.module import Module
from tinyattn.nn.norms import LayerNorm
from tinyattn.nn.validation import check_heads, check_sizes


def masked_sum(x, mask):
    """Return the sum over the elements of each set.

    Args:
        x      elements [B, N, d]
        mask   bool [B, N], True for elements and False for padding, or None without padding

    Returns:
        [B, d]
    """
    return np.sum(x if mask is None else np.where(mask[..., None], x, 0), axis=1)


def masked_mean(x, mask):
    """Return the mean over the elements of each set, or 0 for an empty set.

    Args:
        x      elements [B, N, d]
        mask   bool [B, N], True for elements and False for padding, or None without padding

    Returns:
        [B, d]
    """
    if mask is None:
        return masked_sum(x, None) / max(x.shape[1], 1)
    count = np.maximum(np.sum(mask, axis=1, keepdims=True), 1).astype(x.dtype)
    return masked_sum(x, mask) / count


def masked_max(x, mask):
    """Return the maximum of each feature over the elements of each set, or 0 for an empty set.

    Args:
        x      elements [B, N, d]
        mask   bool [B, N], True for elements and False for padding, or None without padding

    Returns:
        [B, d]
    """
    if x.shape[1] == 0:
        return masked_sum(x, mask)
    if mask is None:
        return np.max(x, axis=1)
    y = np.max(np.where(mask[..., None], x, -np.inf), axis=1)
    return np.where(np.any(mask, axis=1)[:, None], y, 0)


POOLINGS = {"sum": masked_sum, "mean": masked_mean, "max": masked_max}


def _check_set(name, x, mask, d=None):
    """Return the mask as a bool array [B, N], checked against x [B, N, d]. None: any d."""
    if x.ndim != 3 or (d is not None and x.shape[-1] != d):
        single = x.ndim == 2 and d in (None, x.shape[1])
        advice = ". For a single set, pass x[None]" if single else ""
        raise ValueError(
            f"{name}: x must be a batch of sets [B, N, {d or 'd'}], got shape {x.shape}{advice}"
        )
    if mask is None:
        return None
    mask = np.asarray(to_array(mask))
    if mask.dtype != bool or mask.shape != x.shape[:2]:
        advice = ". Write mask != 0" if mask.dtype != bool and mask.shape == x.shape[:2] else ""
        raise ValueError(
            f"{name}: mask must be bool [B, N] = {x.shape[:2]} with True for elements, got "
            f"{mask.dtype} of shape {mask.shape}{advice}"
        )
    return mask


def _check_tokens(name, d, **inputs):
    """Raise ValueError unless all inputs are [B, N, d] with the same B, or all [N, d]."""
    batches = {x.shape[:-2] for x in inputs.values()} - {(1,)}
    axes = {x.ndim for x in inputs.values()}
    fits = len(batches) < 2 and axes in ({2}, {3})
    if not fits or any(x.shape[-1] != d for x in inputs.values()):
        got = ", ".join(f"{what} {x.shape}" for what, x in inputs.items())
        if len(inputs) > 1:
            expected = f"x must be [B, T, {d}] and y [B, S, {d}] with the same B, or both without B"
        else:
            expected, got = f"x must be [B, N, {d}] or [N, {d}]", f"shape {got.partition(' ')[2]}"
        raise ValueError(f"{name}: {expected}, got {got}")


def _check_keys(name, mab, mask, T, x):
    """Raise ValueError unless the mask fits the attention of T tokens to x [B, N, d] in a MAB."""
    scores = (*x.shape[:-2], mab.attention.num_heads, T, x.shape[-2])
    try:
        mab.attention.with_heads(mask, scores, "mask", name)
    except ValueError:
        batch, keep = ("B, ", "[:, None, :]") if x.ndim == 3 else ("", "[None, :]")
        expected = (*x.shape[:-2], 1, x.shape[-2])
        raise ValueError(
            f"{name}: mask must be bool [{batch}1, N] = {expected}, got shape {np.shape(mask)}. To "
            f"hide padding with keep [{batch}N], pass keep{keep}"
        ) from None


class DeepSets(Module):
    """A network on sets, y = ρ(□_i φ(x_i)), where □ is the sum, mean or maximum over the elements.

    With the sum, every continuous function of sets of a given size has this form, for suitable φ
    and ρ. The result of pooling an empty set is 0.

    Args:
        phi    φ, a module or function that maps the features of each element, [B, N, d] to
               [B, N, d']
        rho    ρ, a module or function that maps the pooled features [B, d'] to the output
        pool   "sum", "mean" or "max" over the elements of a set

    Raises:
        ValueError: pool is unknown
        TypeError: phi or rho is neither a module nor a function

    Source: Zaheer et al. 2017 and slides S02, S05.
    """

    def __init__(self, phi, rho, pool="sum"):
        if not isinstance(pool, str) or pool not in POOLINGS:
            raise ValueError(f"DeepSets: pool must be one of {', '.join(POOLINGS)}, got {pool!r}")
        for name, part in (("phi", phi), ("rho", rho)):
            if not callable(part) or isinstance(part, type):
                found = f"the class {part.__name__}" if isinstance(part, type) else repr(part)
                raise TypeError(
                    f"DeepSets: {name} must be a module or a function, got {found}. Pass, for "
                    "example, nn.MLP([2, 16, 16])"
                )
        self.phi, self.rho, self.pool = phi, rho, pool

    def forward(self, x, mask=None):
        """Apply the network. Shape: x [B, N, d] → [B, d_out], the output of rho.

        Args:
            x      elements [B, N, d]
            mask   bool [B, N], True for elements and False for padding, or None without padding

        Raises:
            ValueError: x is not [B, N, d], or the mask is not bool or not [B, N]
        """
        x = as_tensor(x)
        mask = _check_set("DeepSets", x, mask)
        return self.rho(POOLINGS[self.pool](self.phi(x), mask))

    def extra_repr(self):
        return f"pool={self.pool!r}"


class MAB(Module):
    """A multi-head attention block, in which x attends to y and an MLP acts on each element.

        H = norm(x + Attention(x, y)),   MAB(x, y) = norm(H + rFF(H))

    Each norm is an `nn.LayerNorm`, and rFF is an `nn.MLP` with d hidden features, which acts on
    each element separately.

    Args:
        d       number of features
        heads   number of heads, which divides d
        rng     seed or numpy.random.Generator for the initial values, or None for the default
                generator

    Raises:
        ValueError: heads does not divide d, or one of them is not a whole number of at least 1

    Source: Lee et al. 2019.
    """

    def __init__(self, d, heads=1, rng=None):
        check_heads(self, d=d, heads=heads)
        rng = generator(rng)
        self.attention = CrossAttention(d, heads, rng=rng)
        self.rff = MLP([d, d, d], rng=rng)
        self.norm1, self.norm2 = LayerNorm(d), LayerNorm(d)

    def forward(self, x, y, mask=None):
        """Apply the block. Shape: x [B, T, d], y [B, S, d] → [B, T, d], or all without B.

        Args:
            x      elements [B, T, d] that attend to y
            y      elements [B, S, d] that x attends to
            mask   bool [T, S], [B, T, S] or [B, heads, T, S], where any axis may have length 1,
                   True where element t of x may attend to element s of y. None: all attend to all

        Raises:
            ValueError: x, y or the mask has a different shape
            TypeError: the mask is not bool
        """
        x, y = as_tensors(x, y)
        _check_tokens("MAB", self.norm1.normalized_shape[0], x=x, y=y)
        # the attention may have been replaced by a layer of another kind
        if mask is not None and isinstance(self.attention, CrossAttention):
            scores = (*x.shape[:-2], self.attention.num_heads, x.shape[-2], y.shape[-2])
            mask = self.attention.with_heads(mask, scores, "mask", "MAB")
        H = self.norm1(x + self.attention(x, y, mask))
        return self.norm2(H + self.rff(H))


class SAB(Module):
    """An equivariant set attention block, SAB(x) = MAB(x, x), with all N² pairs of elements.

    If the elements are permuted, the output is permuted in the same way. MAB is `nn.MAB`.

    Args:
        d       number of features
        heads   number of heads, which divides d
        rng     seed or numpy.random.Generator for the initial values, or None for the default
                generator

    Raises:
        ValueError: heads does not divide d, or one of them is not a whole number of at least 1
    """

    def __init__(self, d, heads=1, rng=None):
        check_heads(self, d=d, heads=heads)
        self.mab = MAB(d, heads, rng)

    def forward(self, x, mask=None):
        """Apply the block. Shape: x [B, N, d] → [B, N, d], or both without B.

        Args:
            x      the elements
            mask   bool [B, 1, N], True for elements and False for padding, or None without padding

        Raises:
            ValueError: x or the mask has a different shape
            TypeError: the mask is not bool
        """
        x = as_tensor(x)
        _check_tokens("SAB", self.mab.norm1.normalized_shape[0], x=x)
        if mask is not None:
            _check_keys("SAB", self.mab, mask, x.shape[-2], x)
        return self.mab(x, x, mask)


class ISAB(Module):
    """An induced set attention block, ISAB(x) = MAB(x, MAB(I, x)), with m inducing points I.

    First the inducing points attend to the set, and then the set attends to the inducing points.
    For N elements, this requires 2 N m attention scores instead of the N² scores between all
    elements. The block is equivariant: if the elements are permuted, the output is permuted in the
    same way. MAB is `nn.MAB`.

    Args:
        d       number of features
        heads   number of heads, which divides d
        m       number of inducing points, which are learned
        rng     seed or numpy.random.Generator for the initial values, or None for the default
                generator

    Raises:
        ValueError: heads does not divide d, or a size is not a whole number of at least 1
    """

    def __init__(self, d, heads=1, m=16, rng=None):
        check_heads(self, d=d, heads=heads)
        check_sizes(self, single=True, m=m)
        rng = generator(rng)
        self.inducing = xavier_parameter((m, d), rng)
        self.gather, self.scatter = MAB(d, heads, rng), MAB(d, heads, rng)

    def forward(self, x, mask=None):
        """Apply the block. Shape: x [B, N, d] → [B, N, d].

        Args:
            x      the elements
            mask   bool [B, 1, N], True for elements and False for padding, or None without padding

        Raises:
            ValueError: x or the mask has a different shape
            TypeError: the mask is not bool
        """
        x = as_tensor(x)
        m, d = self.inducing.shape
        if x.ndim != 3 or x.shape[-1] != d:
            advice = ". For a single set, pass x[None]" if x.shape[1:] == (d,) else ""
            raise ValueError(f"ISAB: x must be [B, N, {d}], got shape {x.shape}{advice}")
        if mask is not None:
            _check_keys("ISAB", self.gather, mask, m, x)
        inducing = np.broadcast_to(self.inducing, (x.shape[0], m, d))
        return self.scatter(x, self.gather(inducing, x, mask))


class PMA(Module):
    """Pooling by multi-head attention, PMA(x) = MAB(S, rFF(x)), with k learned seeds S.

    MAB is `nn.MAB`, and rFF is an `nn.MLP` with d hidden features, which acts on each element
    separately. The result does not depend on the order of the elements.

    Args:
        d       number of features
        heads   number of heads, which divides d
        k       number of seeds, and thus of vectors in the result
        rng     seed or numpy.random.Generator for the initial values, or None for the default
                generator

    Raises:
        ValueError: heads does not divide d, or a size is not a whole number of at least 1
    """

    def __init__(self, d, heads=1, k=1, rng=None):
        check_heads(self, d=d, heads=heads)
        check_sizes(self, single=True, k=k)
        rng = generator(rng)
        self.seeds = xavier_parameter((k, d), rng)
        self.rff = MLP([d, d, d], rng=rng)
        self.mab = MAB(d, heads, rng)

    def forward(self, x, mask=None):
        """Apply the block. Shape: x [B, N, d] → [B, k, d].

        Args:
            x      the elements
            mask   bool [B, N], True for elements and False for padding, or None without padding

        Raises:
            ValueError: x is not [B, N, d], or the mask is not bool or not [B, N]
        """
        x = as_tensor(x)
        mask = _check_set("PMA", x, mask, self.seeds.shape[1])
        seeds = np.broadcast_to(self.seeds, (x.shape[0], *self.seeds.shape))
        return self.mab(seeds, self.rff(x), None if mask is None else mask[:, None, :])


class SetTransformer(Module):
    """A network on sets: a linear map, two ISABs, a PMA with k seeds, an SAB and a linear map.

    The parts are `nn.ISAB`, `nn.PMA` and `nn.SAB`.

    Args:
        d_in    number of features of an element
        d_out   number of features of the result
        d       number of features between the layers
        heads   number of heads, which divides d
        m       number of inducing points of each ISAB
        k       number of seeds of the PMA
        rng     seed or numpy.random.Generator for the initial values, or None for the default
                generator

    Raises:
        ValueError: heads does not divide d, or a size is not a whole number of at least 1

    Source: Lee et al. 2019 and slide S06.
    """

    def __init__(self, d_in, d_out, d=64, heads=4, m=16, k=1, rng=None):
        check_heads(self, d=d, heads=heads)
        check_sizes(self, single=True, d_in=d_in, d_out=d_out, m=m, k=k)
        rng = generator(rng)
        self.project = Linear(d_in, d, rng=rng)
        self.encode1, self.encode2 = ISAB(d, heads, m, rng), ISAB(d, heads, m, rng)
        self.pool, self.decode = PMA(d, heads, k, rng), SAB(d, heads, rng)
        self.out = Linear(d, d_out, rng=rng)

    def forward(self, x, mask=None):
        """Apply the network. Shape: x [B, N, d_in] → [B, d_out], or [B, k, d_out] for k > 1.

        Args:
            x      the elements
            mask   bool [B, N], True for elements and False for padding, or None without padding

        Raises:
            ValueError: x is not [B, N, d_in], or the mask is not bool or not [B, N]
        """
        x = as_tensor(x)
        mask = _check_set("SetTransformer", x, mask, self.project.in_features)
        keys = None if mask is None else mask[:, None, :]
        x = self.encode2(self.encode1(self.project(x), keys), keys)
        y = self.out(self.decode(self.pool(x, mask)))  # [B, k, d_out]
        return y[:, 0] if y.shape[1] == 1 else y


class ClassAttention(Module):
    """A block that changes only the class token, which attends to itself and to x.

        c ← c + Attention(norm [c, x]),   c ← c + FF(norm c)

    Here [c, x] are 1 + N tokens. Each norm is an `nn.LayerNorm`, and FF is an `nn.MLP` with 4 d
    hidden features.

    Args:
        d       number of features of c and x
        heads   number of heads, which divides d
        rng     seed or numpy.random.Generator for the initial values, or None for the default
                generator

    Raises:
        ValueError: heads does not divide d, or one of them is not a whole number of at least 1

    Source: Touvron et al. 2021 (CaiT), here without the layer scale, and slide H12.
    """

    def __init__(self, d, heads=1, rng=None):
        check_heads(self, d=d, heads=heads)
        rng = generator(rng)
        self.attention = CrossAttention(d, heads, rng=rng)
        self.feed_forward = MLP([d, 4 * d, d], rng=rng)
        self.norm1, self.norm2 = LayerNorm(d), LayerNorm(d)

    def forward(self, c, x, mask=None):
        """Apply the block, and return the new c. Shape: c [B, 1, d], x [B, N, d] → [B, 1, d].

        Args:
            c      the class token of each set
            x      the elements of each set
            mask   bool [B, N], True for elements and False for padding, or None without padding

        Raises:
            ValueError: c is not [B, 1, d], x is not [B, N, d], or the mask is not bool or not
                [B, N]
        """
        c, x = as_tensors(c, x)
        mask = _check_set("ClassAttention", x, mask)
        d = self.norm1.normalized_shape[0]
        if c.shape != (x.shape[0], 1, d) or x.shape[-1] != d:
            raise ValueError(
                f"ClassAttention: c must be [B, 1, {d}] and x [B, N, {d}] with the same B, got c "
                f"{c.shape} and x {x.shape}"
            )
        if mask is not None:  # the class token is never hidden
            mask = np.concatenate([np.ones((len(mask), 1), bool), mask], axis=1)[:, None, :]
        z = self.norm1(np.concatenate([c, x], axis=1))  # [B, 1 + N, d]
        c = c + self.attention(z[:, :1], z, mask)
        return c + self.feed_forward(self.norm2(c))
