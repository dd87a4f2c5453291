"""Particle Transformer: jets as sets of particles, with features of pairs in the attention.

Names and shapes of the parameters, initial values and results are the same as in
`ParticleTransformer` of the package weaver-core, so its state_dict can be loaded. In this library,
particles are rows, [B, N, …], and four-momenta begin with the energy. Source: Qu, Li, Qian 2022,
arXiv:2202.03772, slides H10 to H13.
"""

import math

import numpy as np

import tinyattn.functional as F
from tinyattn import nn
from tinyattn.engine.autograd import no_grad
from tinyattn.engine.convert import to_array
from tinyattn.engine.dtypes import DEFAULT_DTYPE
from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_range
from tinyattn.models.particlenet import check_particles
from tinyattn.nn.init import xavier_bound
from tinyattn.nn.module import eval_mode
from tinyattn.nn.validation import check_sizes

SMALLEST = 1e-8  # smaller numbers are replaced by this one before the logarithm


def pair_features(a, b):
    """Return ln kT, ln z, ln Δ, ln m² of pairs of particles, [..., 4].

        Δ² = (y_a - y_b)² + (φ_a - φ_b)²          distance in rapidity and angle
        kT = min(pT_a, pT_b) Δ                    in GeV
        z  = min(pT_a, pT_b) / (pT_a + pT_b)      between 0 and 0.5
        m² = (E_a + E_b)² - |p_a + p_b|²          in GeV²

    The features do not change if a and b are exchanged, if both particles are rotated around the
    beam, or (up to rounding) if both are boosted along the beam.

    Before the logarithm, values of kT, z, Δ and m² below 1e-8 are replaced by 1e-8, because the
    distance of a particle from itself is 0 and has no logarithm. ln Δ is computed as ½ ln Δ²,
    because a square root has no derivative at zero.

    Args:
        a   four-momenta E, px, py, pz of the first particles in GeV [..., 4]
        b   four-momenta of the second particles [..., 4]

    Source: Qu, Li, Qian 2022, eq. 3, in the order of weaver, slide H11.
    """
    pt_a, y_a, phi_a = _cylindrical(a)
    pt_b, y_b, phi_b = _cylindrical(b)
    dphi = (phi_a - phi_b + math.pi) % (2 * math.pi) - math.pi  # -π … π
    distance2 = (y_a - y_b) ** 2 + dphi**2
    softer = np.minimum(pt_a, pt_b)
    E, px, py, pz = (a[..., k] + b[..., k] for k in range(4))
    m2 = E**2 - (px**2 + py**2 + pz**2)
    columns = (
        0.5 * _safe_log(softer**2 * distance2, SMALLEST**2),
        _safe_log(softer / np.maximum(pt_a + pt_b, SMALLEST), SMALLEST),
        0.5 * _safe_log(distance2, SMALLEST**2),
        _safe_log(m2, SMALLEST),
    )
    return np.stack(columns, axis=-1)


def _cylindrical(p):
    """Return pT, rapidity y = ½ ln((E + pz)/(E - pz)), and angle φ of four-momenta p [..., 4].

    For a massless particle along the beam, E + pz or E - pz is 0. This 0 is replaced by 1e-20, so y
    is large but not infinite.
    """
    E, px, py, pz = (p[..., k] for k in range(4))
    y = 0.5 * (_safe_log(E + pz, 1e-20) - _safe_log(E - pz, 1e-20))
    # np.hypot avoids the infinite slope of a root at 0
    return np.hypot(px, py), y, np.arctan2(py, px)


def _safe_log(x, smallest):
    return np.log(np.maximum(x, smallest))


# ---------------------------------------------------------------- from features to vectors


class ParticleEmbedding(nn.Module):
    """An embedding of particles, [B, N, C] → [B, N, dims[-1]].

    Batch norm comes first, followed by layer norm, linear map and GELU for each size in `dims`. In
    training, padding enters the statistics of the batch norm as zeros.

    Args:
        input_dim   number of features C of a particle
        dims        number of features after each linear map
        rng         seed or numpy.random.Generator for the initial values
    """

    def __init__(self, input_dim, dims, rng):
        check_sizes(self, input_dim=input_dim, dims=dims)
        self.input_bn = nn.BatchNorm1d(input_dim)
        layers, sizes = [], [input_dim, *dims]
        for d_in, d_out in zip(sizes[:-1], dims, strict=True):
            layers += [nn.LayerNorm(d_in), nn.Linear(d_in, d_out, rng=rng), nn.GELU()]
        self.embed = nn.Sequential(*layers)

    def forward(self, x):
        """Apply the embedding. Shape: x [..., C] → [..., dims[-1]]."""
        rows = self.input_bn(np.reshape(x, (-1, x.shape[-1])))
        return self.embed(np.reshape(rows, x.shape))


class PointwiseConv1d(nn.Conv1d):
    """A linear map of each row of x, stored as a convolution of width 1.

    Args:
        in_channels    number of features of a row
        out_channels   number of features of a row of the result
        rng            seed or numpy.random.Generator for the initial values
    """

    def __init__(self, in_channels, out_channels, rng):
        super().__init__(in_channels, out_channels, 1, rng=rng)

    def forward(self, x):
        """Apply the layer. Shape: x [M, in_channels] → [M, out_channels]."""
        return F.linear(x, self.weight[:, :, 0], self.bias)


class PairEmbed(nn.Module):
    """A network that computes the bias U [B, H, N, N] from the features of each pair of particles.

    U is added to the attention scores. It is symmetric, so each pair is computed only once. For
    padding, U is 0.

    Args:
        dims   number of features after each linear map, of which the last is the number H of heads
        rng    seed or numpy.random.Generator for the initial values
    """

    def __init__(self, dims, rng):
        check_sizes(self, dims=dims)
        layers, sizes = [nn.BatchNorm1d(4)], [4, *dims]
        for d_in, d_out in zip(sizes[:-1], dims, strict=True):
            layers += [PointwiseConv1d(d_in, d_out, rng), nn.BatchNorm1d(d_out), nn.GELU()]
        self.embed = nn.Sequential(*layers[:-1])

    def forward(self, momenta, mask, dtype):
        """Return the bias U, [B, H, N, N].

        Args:
            momenta   four-momenta E, px, py, pz in GeV [B, N, 4], of any float dtype
            mask      bool [B, N], True for particles, False for padding
            dtype     dtype of U
        """
        B, N = mask.shape
        jet, i, j = np.nonzero(np.tril(mask[:, :, None] & mask[:, None, :]))
        pairs = pair_features(momenta[jet, i], momenta[jet, j]).astype(dtype)  # [M, 4]
        u = self.embed(pairs)  # [M, H]
        row = np.full((B, N, N), len(jet))  # the last row is for padding
        row[jet, i, j] = row[jet, j, i] = np.arange(len(jet))
        u = np.concatenate([u, np.zeros((1, u.shape[1]), u.dtype)])
        return np.moveaxis(u[row], -1, 1)


# ---------------------------------------------------------------- blocks


class BiasedAttention(nn.Module):
    """Attention with H heads, softmax(Q Kᵀ/√(d/H) + U) V for each head, with a bias U.

    Q comes from the vectors q that attend, and K and V from the vectors x that are attended to.

    Args:
        d           number of features, d/H for each head
        num_heads   number H of heads, which divides d
        dropout     probability with which a weight becomes 0 in training
        rng         seed or numpy.random.Generator for the initial values and dropout
    """

    def __init__(self, d, num_heads, dropout, rng):
        check_sizes(self, d=d, num_heads=num_heads)
        self.num_heads, self.dropout, self.rng = num_heads, dropout, rng
        self.in_proj = nn.Linear(d, 3 * d, rng=rng)
        self.out_proj = nn.Linear(d, d, rng=rng)

    def forward(self, q, x, mask=None, bias=None):
        """Apply the attention. Shape: q [B, T, d], x [B, S, d] → [B, T, d].

        Args:
            q      vectors that attend [B, T, d]
            x      vectors that are attended to [B, S, d]
            mask   bool [B, 1, 1, S], True for vectors that may be attended to. If None, all may be
            bias   U [B, H, T, S], which is added to the scores. If None, it is 0
        """
        q, k, v = self._heads(q, x)
        # the kernel stores no weights that dropout could act on
        if self.training and self.dropout > 0:
            a = F.attention_weights(q, k, mask, bias)
            y = np.matmul(F.dropout(a, self.dropout, True, self.rng), v)
        else:
            y = F.scaled_dot_product_attention(q, k, v, mask, bias)
        y = np.swapaxes(y, 1, 2)  # [B, T, H, d/H]
        return self.out_proj(np.reshape(y, (*y.shape[:2], y.shape[2] * y.shape[3])))

    def weights(self, q, x, mask=None, bias=None):
        """Return the attention weights [B, H, T, S] for the arguments of `forward`."""
        q, k, _ = self._heads(q, x)
        return F.attention_weights(q, k, mask, bias)

    def _heads(self, q, x):
        """Return queries, keys and values of each head, [B, H, T or S, d/H]."""
        d = q.shape[-1]
        parts = np.split(self.in_proj(x), 3, axis=-1)
        if q is not x:  # a class token is a single row, so its unused keys and values cost little
            parts[0] = self.in_proj(q)[..., :d]
        shape = (self.num_heads, d // self.num_heads)
        return [np.swapaxes(np.reshape(a, (*a.shape[:2], *shape)), 1, 2) for a in parts]


class ParticleAttentionBlock(nn.Module):
    """A block, x ← x + norm(c ⊙ Attention(norm x)), then x ← w ⊙ x + W₂ norm(gelu(W₁ norm x)).

    c scales each head and w each feature. Both are learned and start at 1, as in NormFormer
    (Shleifer, Weston, Ott 2021). A class token attends to itself and to all particles, token ←
    token + norm(c ⊙ Attention(token, norm [token, x])), and then takes the same second step.

    Args:
        d           number of features
        num_heads   number of heads, which divides d
        dropout     probability with which a number becomes 0 in training
        rng         seed or numpy.random.Generator for the initial values and the dropout
    """

    def __init__(self, d, num_heads, dropout, rng):
        check_sizes(self, d=d, num_heads=num_heads)
        self.pre_attn_norm = nn.LayerNorm(d)
        self.attn = BiasedAttention(d, num_heads, dropout, rng)
        self.post_attn_norm = nn.LayerNorm(d)
        self.dropout = nn.Dropout(dropout, rng)
        self.pre_fc_norm = nn.LayerNorm(d)
        self.fc1 = nn.Linear(d, 4 * d, rng=rng)
        self.act_dropout = nn.Dropout(dropout, rng)
        self.post_fc_norm = nn.LayerNorm(4 * d)
        self.fc2 = nn.Linear(4 * d, d, rng=rng)
        self.c_attn = nn.Parameter(np.ones(num_heads, DEFAULT_DTYPE))
        self.w_resid = nn.Parameter(np.ones(d, DEFAULT_DTYPE))

    def forward(self, x, mask=None, bias=None, token=None):
        """Return the new x [B, N, d] or, if a token is given, the new token [B, 1, d].

        Args:
            x       vectors of the particles [B, N, d]
            mask    bool [B, N], True for particles, False for padding. If None, all are particles
            bias    U [B, H, N, N], which is added to the scores. If None, it is 0
            token   class token [B, 1, d], or None
        """
        heard = self.attn(*self.listens(x, mask, token), bias)
        scale = np.repeat(self.c_attn, heard.shape[-1] // len(self.c_attn))
        old = x if token is None else token
        x = old + self.dropout(self.post_attn_norm(heard * scale))
        hidden = self.act_dropout(F.gelu(self.fc1(self.pre_fc_norm(x))))
        return self.w_resid * x + self.dropout(self.fc2(self.post_fc_norm(hidden)))

    def listens(self, x, mask, token):
        """Return the input of the queries, that of the keys and values, and the mask [B, 1, 1, S].

        The arguments are those of `forward`.
        """
        if token is None:
            x = self.pre_attn_norm(x)
            return x, x, None if mask is None else mask[:, None, None, :]
        if mask is not None:  # the class token is never hidden
            mask = np.concatenate([np.ones((len(mask), 1), bool), mask], axis=1)[:, None, None, :]
        return token, self.pre_attn_norm(np.concatenate([token, x], axis=1)), mask


# ---------------------------------------------------------------- the model


class ParticleTransformer(nn.Module):
    """A classifier of jets with features of pairs of particles in its attention.

        x = ParticleEmbedding(features),   U = PairEmbed(ln kT, ln z, ln Δ, ln m² of each pair)
        x ← ParticleAttentionBlock(x) with softmax(Q Kᵀ/√d + U) V          num_layers times
        token ← ParticleAttentionBlock(token, [token, x]), without U       num_cls_layers times
        logits = norm(token) Wᵀ + b

    In the second line, d is the number of features of a head. The initial token is a learned
    parameter, which is the same for all jets. The scores do not depend on the order of the
    particles. The authors' code in the package weaver-core also shortens the longest jets at random
    in training (`trim`). This step is omitted here.

    Args:
        input_dim         number of features C of a particle
        num_classes       number of classes
        embed_dims        tuple with the number of features after each layer of the embedding, of
                          which the last is the number of features in the blocks
        pair_embed_dims   tuple with the number of features after each hidden layer of the network
                          that computes U
        num_heads         number of heads, which divides the last of embed_dims
        num_layers        number of particle blocks
        num_cls_layers    number of class blocks
        dropout           probability with which a number becomes 0 in training, in the particle
                          blocks
        rng               seed or numpy.random.Generator for the initial values and the dropout, or
                          None for the default generator

    Raises:
        ValueError: num_heads does not divide the last of embed_dims, embed_dims is empty, a size is
            not a whole number >= 1, or dropout is not from 0 to 1
        TypeError: embed_dims or pair_embed_dims is not a tuple or list, or dropout is not a number
    """

    def __init__(
        self,
        input_dim,
        num_classes=2,
        embed_dims=(128, 512, 128),
        pair_embed_dims=(64, 64, 64),
        num_heads=8,
        num_layers=8,
        num_cls_layers=2,
        dropout=0.1,
        rng=None,
    ):
        check_sizes(
            self,
            single=True,
            input_dim=input_dim,
            num_classes=num_classes,
            num_heads=num_heads,
            num_layers=num_layers,
            num_cls_layers=num_cls_layers,
        )
        check_sizes(self, embed_dims=embed_dims, pair_embed_dims=pair_embed_dims)
        for name, widths in (("embed_dims", embed_dims), ("pair_embed_dims", pair_embed_dims)):
            if not isinstance(widths, tuple | list):
                advice = f"tuple({name})" if hasattr(widths, "shape") else f"({widths!r},)"
                raise TypeError(
                    f"ParticleTransformer: {name} must be a tuple of widths, got {widths!r}. Write "
                    f"{advice}{'' if hasattr(widths, 'shape') else ' for one layer'}"
                )
        if not embed_dims:
            raise ValueError(
                "ParticleTransformer: embed_dims must contain at least one width, got "
                f"{embed_dims!r}"
            )
        check_range("ParticleTransformer", 0, 1, dropout=dropout)
        rng, d = generator(rng), embed_dims[-1]
        if d % num_heads:
            raise ValueError(
                f"ParticleTransformer: the last of embed_dims, {d}, cannot be divided among "
                f"num_heads={num_heads} heads. Choose a multiple of num_heads as the last width"
            )
        self.cls_token = nn.Parameter((0.02 * rng.normal(size=(1, 1, d))).astype(DEFAULT_DTYPE))
        self.embed = ParticleEmbedding(input_dim, embed_dims, rng)
        self.pair_embed = PairEmbed((*pair_embed_dims, num_heads), rng)
        self.blocks = nn.ModuleList(
            [ParticleAttentionBlock(d, num_heads, dropout, rng) for _ in range(num_layers)]
        )
        self.cls_blocks = nn.ModuleList(
            [ParticleAttentionBlock(d, num_heads, 0, rng) for _ in range(num_cls_layers)]
        )
        self.norm = nn.LayerNorm(d)
        self.fc = nn.Sequential(nn.Linear(d, num_classes, rng=rng))
        init_weights(self, rng)

    def forward(self, features, momenta=None, mask=None):
        """Return the scores of the classes, [B, num_classes].

        Args:
            features   features of the particles [B, N, C]
            momenta    E, px, py, pz in GeV [B, N, 4]. If None, the pairs are not used (U is 0).
                       Pass float64, because m² of light particles is a small difference of large
                       numbers
            mask       bool [B, N], True for particles, False for padding. If None, all are
                       particles

        Raises:
            ValueError: features are not [B, N, C], momenta are not [B, N, 4], or mask is not bool
                [B, N]
            ValueError: a feature or momentum of a particle is not finite, or a batch in training
                has fewer than two particles in all, which is too few for batch norm
            TypeError: features or momenta are not an array of numbers
        """
        mask = _check_jets(features, momenta, mask, self.embed.input_bn.num_features)
        return self.head(self.tokens(self.particles(features, momenta, mask), mask)[-1])

    def particles(self, features, momenta=None, mask=None):
        """Return the vector of each particle after the particle blocks, [B, N, d].

        d is the last of embed_dims.

        Args:
            features   as in `forward`
            momenta    as in `forward`
            mask       as in `forward`

        Raises:
            ValueError: as in `forward`
            TypeError: as in `forward`
        """
        mask = _check_jets(features, momenta, mask, self.embed.input_bn.num_features)
        x, bias = self.embedded(features, momenta, mask)
        for block in self.blocks:
            x = block(x, mask, bias)
        return x

    def embedded(self, features, momenta, mask):
        """Return the input of the first block, (x [B, N, d], U [B, H, N, N]).

        x are the vectors of the particles, and U is the bias from the pairs for each of the H
        heads, or None if momenta is None.

        Args:
            features   as in `forward`
            momenta    as in `forward`
            mask       as in `forward`

        Raises:
            ValueError: as in `forward`
            TypeError: as in `forward`
        """
        mask = _check_jets(features, momenta, mask, self.embed.input_bn.num_features)
        features = np.where(mask[..., None], features, 0)  # padding may contain anything, even nan
        x = np.where(mask[..., None], self.embed(features), 0)
        return x, None if momenta is None else self.pair_embed(momenta, mask, x.dtype)

    def tokens(self, x, mask=None):
        """Return the class token before the first class block and after each class block.

        Args:
            x      vectors of the particles [B, N, d], the result of `particles`
            mask   bool [B, N], True for particles, False for padding. If None, all are particles

        Returns:
            a list of num_cls_layers + 1 tokens [B, 1, d]

        Raises:
            ValueError: x is not [B, N, d], or mask is not bool [B, N]
        """
        d = self.cls_token.shape[-1]
        if not hasattr(x, "shape") or len(x.shape) != 3 or x.shape[2] != d:
            got = f"shape {x.shape}" if hasattr(x, "shape") else type(x).__name__
            raise ValueError(
                f"ParticleTransformer.tokens: x must be [B, N, {d}], got {got}. Pass the result of "
                "particles(features, momenta, mask)"
            )
        mask = None if mask is None else _check_mask(mask, x.shape[:2])
        tokens = [np.broadcast_to(self.cls_token, (x.shape[0], 1, x.shape[-1]))]
        for block in self.cls_blocks:
            tokens.append(block(x, mask, token=tokens[-1]))
        return tokens

    def head(self, token):
        """Return the scores of the classes [B, num_classes] for a class `token` [B, 1, d].

        The token is usually the last result of `tokens`, and d is the last of embed_dims. Raises
        ValueError if `token` has a different shape.
        """
        d = self.cls_token.shape[-1]
        if not hasattr(token, "shape") or token.shape != (len(token), 1, d):
            got = f"shape {token.shape}" if hasattr(token, "shape") else type(token).__name__
            raise ValueError(
                f"ParticleTransformer.head: token must be [B, 1, {d}], got {got}. Pass the last "
                "result of tokens(x, mask)"
            )
        return self.fc(self.norm(token[:, 0]))

    def attention_maps(self, features, momenta=None, mask=None):
        """Return the attention weights of all blocks, as a list of arrays.

        First come the particle blocks with weights [B, H, N, N]. Then come the class blocks, in
        which the token attends to itself and to the particles, with weights [B, H, 1, 1 + N]. The
        model runs in evaluation mode, so dropout does not act.

        Args:
            features   as in `forward`
            momenta    as in `forward`
            mask       as in `forward`

        Raises:
            ValueError: as in `forward`
            TypeError: as in `forward`
        """
        mask = _check_jets(features, momenta, mask, self.embed.input_bn.num_features)
        maps = []
        with eval_mode(self), no_grad():
            x, bias = self.embedded(features, momenta, mask)
            for block in self.blocks:
                maps.append(block.attn.weights(*block.listens(x, mask, None), bias).data)
                x = block(x, mask, bias)
            for block, token in zip(self.cls_blocks, self.tokens(x, mask), strict=False):
                maps.append(block.attn.weights(*block.listens(x, mask, token)).data)
        return maps


def _check_jets(features, momenta, mask, C):
    """Return the mask as a bool array [B, N], after a check of the arguments of the model."""
    for name, given in (("features", features), ("momenta", momenta)):
        if not hasattr(given, "shape") and (name, given) != ("momenta", None):
            axes = "[B, N, C]" if name == "features" else "[B, N, 4]"
            advice = f". Pad the jets to the same N, and write np.array({name})"
            raise TypeError(
                f"ParticleTransformer: {name} must be an array or Tensor {axes}, got "
                f"{type(given).__name__}{advice if isinstance(given, tuple | list) else ''}"
            )
        if given is not None and given.dtype.kind not in "fiub":
            raise TypeError(
                f"ParticleTransformer: {name} must be numbers, got {given.dtype}. Write "
                f"{name}.astype(float)"
            )
    fits = features.ndim == 3 and features.shape[2] == C
    if not fits or (momenta is not None and momenta.shape != (*features.shape[:2], 4)):
        got, advice = "" if momenta is None else f" and {momenta.shape}", ""
        if fits and momenta.dtype == bool:
            advice = ". Pass a mask as mask="
        raise ValueError(
            f"ParticleTransformer: expected features [B, N, {C}] and momenta [B, N, 4] (E, px, py, "
            f"pz), got shape{'s' * bool(got)} {features.shape}{got}{advice}"
        )
    shape = features.shape[:2]
    mask = np.ones(shape, bool) if mask is None else _check_mask(mask, shape)
    used = {"features": features} | ({} if momenta is None else {"momenta": momenta})
    check_particles("ParticleTransformer", mask, **used)
    return mask


def _check_mask(mask, shape):
    """Return the mask as an array, or raise ValueError unless it is bool and has this shape."""
    mask = np.asarray(to_array(mask))
    if mask.dtype != bool or mask.shape != shape:
        raise ValueError(
            f"ParticleTransformer: mask must be bool of shape {shape} with True for particles, got "
            f"{mask.dtype} of shape {mask.shape}"
        )
    return mask


def init_weights(model, rng):
    """Draw the weights of all `nn.Linear` uniformly in ±√(6/(fan-in + fan-out)), with biases 0.

    Queries, keys and values count as separate maps. In particle block l = 1, 2, …, the maps with an
    output that is added to x are multiplied by 1/√(2l).

    Args:
        model   a `ParticleTransformer`
        rng     seed or numpy.random.Generator
    """
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            fan_out, fan_in = module.weight.shape
            fan_out //= 3 if name.endswith("in_proj") else 1
            bound = xavier_bound(fan_in, fan_out)
            nn.init.uniform_(module.weight, -bound, bound, rng)
            module.bias.data = 0 * module.bias.data
    for number, block in enumerate(model.blocks, start=1):
        for part in (block.attn.out_proj, block.fc2):
            part.weight.data = part.weight.data / np.float32(math.sqrt(2 * number))
