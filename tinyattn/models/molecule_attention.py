"""Molecule Attention Transformer: attention that also depends on distances and bonds.

Source: Maziarka, Danel, Mucha, Rataj, Tabor, Jastrzębski 2020, arXiv:2002.08264, slide N28.
"""

import numpy as np

import tinyattn.functional as F
from tinyattn import nn
from tinyattn.engine.autograd import no_grad
from tinyattn.engine.convert import to_array
from tinyattn.engine.dtypes import DEFAULT_DTYPE
from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_range
from tinyattn.nn.module import eval_mode
from tinyattn.nn.validation import check_heads, check_sizes

FAR = 1e6  # Å: distance of the dummy atom


def near_first(D, mask):
    """Return softmax(-D) along each row, which gives nearer atoms more weight.

    Args:
        D      distances in Å [B, N, N]
        mask   bool [B, N], True for atoms, False for padding, which gets weight 0
    """
    return F.softmax(np.where(mask[:, None, :], -D, -np.inf))


def exponential(D, mask):
    """Return exp(-D), with which the weight of a pair does not depend on other atoms.

    Args:
        D      distances in Å [B, N, N]
        mask   bool [B, N], True for atoms, False for padding, which gets weight 0
    """
    return np.where(mask[:, None, :], np.exp(-D), 0)


G = {"softmax": near_first, "exp": exponential}


class MoleculeAttention(nn.Module):
    """Attention with H heads, A = λ_a softmax(Q Kᵀ/√(d/H)) + λ_d g(D) + λ_g Adj, y = A V W_oᵀ + b.

    D contains the distances of the atoms, g is `near_first` or `exponential`, and Adj contains the
    bonds. Q, K and V are linear maps of x. The last two terms of A are the same for all heads and
    layers, so their sum is passed as one matrix, `geometry`.

    Args:
        d           number of features
        num_heads   number H of heads, which divides d
        share       factor λ_a. With 0, no scores are computed
        rng         seed or numpy.random.Generator for the initial values
    """

    def __init__(self, d, num_heads, share, rng):
        check_sizes(self, d=d, num_heads=num_heads)
        self.num_heads, self.share = num_heads, share  # λ_a
        self.in_proj, self.out_proj = nn.Linear(d, 3 * d, rng=rng), nn.Linear(d, d, rng=rng)

    def forward(self, x, geometry, mask):
        """Apply the attention. Shape: x [B, N, d] → [B, N, d].

        Args:
            x          features of the atoms [B, N, d]
            geometry   λ_d g(D) + λ_g Adj [B, 1, N, N]
            mask       bool [B, N], True for atoms, False for padding
        """
        q, k, v = self._heads(x)
        y = np.matmul(geometry, v)
        if self.share:
            seen = mask[:, None, None, :]
            y = y + self.share * F.scaled_dot_product_attention(q, k, v, seen)
        y = np.swapaxes(y, 1, 2)  # [B, N, H, d/H]
        return self.out_proj(np.reshape(y, x.shape))

    def weights(self, x, geometry, mask):
        """Return the weights A [B, H, N, N] for the arguments of `forward`."""
        q, k, _ = self._heads(x)
        return self.share * F.attention_weights(q, k, mask[:, None, None, :]) + geometry

    def _heads(self, x):
        B, N, d = x.shape
        parts = np.reshape(self.in_proj(x), (B, N, 3, self.num_heads, d // self.num_heads))
        return [np.swapaxes(parts[:, :, i], 1, 2) for i in range(3)]  # [B, H, N, d/H]


class MoleculeAttentionLayer(nn.Module):
    """A layer, x ← x + Attention(norm x), then x ← x + W₂ relu(W₁ norm x).

    Args:
        d           number of features
        num_heads   number of heads, which divides d
        share       factor λ_a of the softmax in `MoleculeAttention`
        dropout     probability with which a number becomes 0 in training, in each term before it is
                    added to x
        rng         seed or numpy.random.Generator for the initial values and the dropout
    """

    def __init__(self, d, num_heads, share, dropout, rng):
        check_sizes(self, d=d, num_heads=num_heads)
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attention = MoleculeAttention(d, num_heads, share, rng)
        self.feed_forward = nn.MLP([d, d, d], rng=rng)
        self.dropout = nn.Dropout(dropout, rng)

    def forward(self, x, geometry, mask):
        """Return the new x [B, N, d] for x [B, N, d], geometry [B, 1, N, N] and mask [B, N]."""
        x = x + self.dropout(self.attention(self.norm1(x), geometry, mask))
        return x + self.dropout(self.feed_forward(self.norm2(x)))


class MoleculeAttentionTransformer(nn.Module):
    """A transformer for molecules with attention that also depends on distances and bonds.

        A = λ_a softmax(Q Kᵀ/√d) + λ_d g(D) + λ_g Adj        in each layer
        y = mean(norm x) Wᵀ + b                              the mean over the atoms

    In the first formula, d = d_model/num_heads is the number of features of a head, D contains the
    distances of the atoms, and Adj their bonds. A dummy atom with a learned vector is added to each
    molecule, and the mean includes it. The dummy atom has no bonds, and its distance from all atoms
    and from itself is set to 10⁶ Å. The rows of Adj are divided by their sums, as in the code
    of Maziarka et al. 2020 but not in their formula. Dropout acts on the terms that are added to x,
    while in the paper it acts on A.

    Args:
        features     number of features of an atom
        outputs      number of outputs
        d_model      number of features in each layer
        num_heads    number of heads, which divides d_model
        num_layers   number of layers
        lambdas      (λ_a, λ_d, λ_g), three finite numbers >= 0, which are not trained. With
                     (1, 0, 0), the model is a plain transformer
        g            "softmax" for softmax(-D) along each row, or "exp" for exp(-D) of each pair
        dropout      probability with which a number becomes 0 in training
        rng          seed or numpy.random.Generator for the initial values and the dropout, or None
                     for the default generator

    Raises:
        ValueError: num_heads does not divide d_model, a size is not a whole number >= 1, lambdas
            are not three finite numbers >= 0, g is unknown, or dropout is not from 0 to 1
        TypeError: dropout is not a number

    Source: Maziarka et al. 2020, arXiv:2002.08264, and slide N28.
    """

    def __init__(
        self,
        features,
        outputs=1,
        d_model=64,
        num_heads=4,
        num_layers=4,
        lambdas=(1 / 3, 1 / 3, 1 / 3),
        g="softmax",
        dropout=0.0,
        rng=None,
    ):
        check_heads(self, d_model=d_model, num_heads=num_heads)
        check_sizes(
            self,
            single=True,
            features=features,
            outputs=outputs,
            num_layers=num_layers,
        )
        name, rng = type(self).__name__, generator(rng)
        check_range(name, 0, 1, dropout=dropout)
        shares = np.asarray(lambdas)
        fits = shares.shape == (3,) and shares.dtype.kind in "iuf"
        if not fits or not ((shares >= 0) & (shares < np.inf)).all():
            raise ValueError(
                f"{name}: lambdas must be three weights >= 0 and < inf (of attention, distances "
                f"and bonds), got {lambdas!r}"
            )
        if not isinstance(g, str) or g not in G:
            raise ValueError(f"{name}: g must be {' or '.join(map(repr, G))}, got {g!r}")
        self.lambdas, self.g = tuple(lambdas), g
        self.dummy = nn.Parameter(rng.normal(size=(1, 1, d_model)).astype(DEFAULT_DTYPE))
        self.embed = nn.Linear(features, d_model, rng=rng)
        self.layers = nn.ModuleList(
            [
                MoleculeAttentionLayer(d_model, num_heads, lambdas[0], dropout, rng)
                for _ in range(num_layers)
            ]
        )
        self.norm, self.head = nn.LayerNorm(d_model), nn.Linear(d_model, outputs, rng=rng)

    def forward(self, atoms, distances, bonds, mask=None):
        """Return the outputs, [B, outputs].

        Args:
            atoms       features of the atoms [B, N, features]
            distances   D in Å [B, N, N]
            bonds       bool [B, N, N], True for a bond. Adj is 1 for bonds and on the diagonal, and
                        each row is then divided by its sum
            mask        bool [B, N], True for atoms, False for padding. If None, all are atoms

        Raises:
            ValueError: atoms are not [B, N, features], distances or bonds are not [B, N, N], mask
                is not [B, N], bonds or mask are not bool, or a feature or distance of atoms is not
                finite
            TypeError: atoms or distances are not an array of numbers
        """
        x, geometry, mask = self._start(atoms, distances, bonds, mask)
        for layer in self.layers:
            x = layer(x, geometry, mask)
        return self.head(nn.sets.masked_mean(self.norm(x), mask))

    def attention_maps(self, atoms, distances, bonds, mask=None):
        """Return the weights A of each layer, a list of arrays [B, H, 1 + N, 1 + N].

        H is the number of heads, and the dummy atom comes first. The model runs in evaluation mode,
        so dropout does not act.

        Args:
            atoms       as in `forward`
            distances   as in `forward`
            bonds       as in `forward`
            mask        as in `forward`

        Raises:
            ValueError: as in `forward`
            TypeError: as in `forward`
        """
        maps = []
        with eval_mode(self), no_grad():
            x, geometry, mask = self._start(atoms, distances, bonds, mask)
            for layer in self.layers:
                maps.append(layer.attention.weights(layer.norm1(x), geometry, mask).data)
                x = layer(x, geometry, mask)
        return maps

    def _start(self, atoms, distances, bonds, mask):
        """Return x [B, 1 + N, d], geometry [B, 1, 1 + N, 1 + N] and mask, with the dummy atom."""
        bonds, mask = _check_molecules(atoms, distances, bonds, mask, self.embed.in_features)
        B, N = mask.shape
        # padding may contain anything, even nan
        x = self.embed(np.where(mask[..., None], atoms, 0))
        x = np.concatenate([np.broadcast_to(self.dummy, (B, 1, x.shape[-1])), x], axis=1)
        mask = np.concatenate([np.ones((B, 1), bool), mask], axis=1)
        pairs = mask[:, 1:, None] & mask[:, None, 1:]
        D = np.pad(np.where(pairs, distances, FAR), ((0, 0), (1, 0), (1, 0)), constant_values=FAR)
        edges = np.zeros((B, N + 1, N + 1), x.dtype)
        edges[:, 1:, 1:] = bonds | (np.eye(N, dtype=bool) & mask[:, 1:, None])
        edges /= np.maximum(edges.sum(axis=-1, keepdims=True), 1)
        _, near, bonded = self.lambdas
        geometry = near * G[self.g](D, mask) + bonded * edges
        return x, geometry.astype(x.dtype)[:, None], mask

    def extra_repr(self):
        return f"lambdas=({', '.join(f'{x:.3g}' for x in self.lambdas)}), g={self.g!r}"


def _check_molecules(atoms, distances, bonds, mask, C):
    """Return bonds and mask as bool arrays, and refuse shapes that do not fit."""
    name = "MoleculeAttentionTransformer"
    for argument, given in (("atoms", atoms), ("distances", distances)):
        if not hasattr(given, "shape"):
            raise TypeError(
                f"{name}: {argument} must be an array or Tensor, got {type(given).__name__}. Write "
                f"np.array({argument})"
            )
        if given.dtype.kind not in "fiub":
            text = given.dtype.kind in "US"
            advice = "Write each element as numbers, such as a one-hot row"
            raise TypeError(
                f"{name}: {argument} must be real numbers, got {'text' if text else given.dtype}. "
                f"{advice if text else f'Convert {argument} to float'}"
            )
    bonds = np.asarray(to_array(bonds))
    fits = atoms.ndim == 3 and atoms.shape[2] == C
    pairs = (*atoms.shape[:2], atoms.shape[1]) if fits else None
    if pairs is None or distances.shape != pairs or bonds.shape != pairs or bonds.dtype != bool:
        only_bonds = pairs is not None and distances.shape == bonds.shape == pairs
        raise ValueError(
            f"{name}: expected atoms [B, N, {C}], distances [B, N, N] and bool bonds [B, N, N], "
            f"got shapes {atoms.shape}, {distances.shape} and {bonds.shape} with bonds of "
            f"{bonds.dtype}{'. Write bonds != 0' if only_bonds else ''}"
        )
    mask = np.ones(atoms.shape[:2], bool) if mask is None else np.asarray(to_array(mask))
    if mask.dtype != bool or mask.shape != atoms.shape[:2]:
        raise ValueError(
            f"{name}: mask must be bool of shape {atoms.shape[:2]} with True for atoms, got "
            f"{mask.dtype} of shape {mask.shape}"
        )
    pairs = mask[:, :, None] & mask[:, None, :]
    for argument, used, parts, finite in (
        ("atoms", mask, "atoms", np.isfinite(to_array(atoms)).all(axis=2)),
        ("distances", pairs, "pairs of atoms", np.isfinite(to_array(distances))),
    ):
        bad = np.argwhere(used & ~finite)
        if len(bad):
            raise ValueError(
                f"{name}: {argument} are NaN or infinite for {len(bad)} of {used.sum()} {parts}, "
                f"first at index {tuple(bad[0].tolist())}. Pass a mask that is False for padding, "
                "or leave out these molecules"
            )
    return bonds & pairs, mask
