"""The cases of `tests/cases/ops.py` for tinyattn.functional and tinyattn.nn."""

from functools import partial

import numpy as np

import tinyattn.functional as F
from tests.cases.ops import CASES, MASK, apart, case, normal, positive, unit
from tinyattn import nn

__all__ = ["CASES"]

IDS = np.array([[2, 0, 2], [1, 1, 0]])

# ---------------------------------------------------------------- activations

for f in (F.sigmoid, F.silu, F.softplus, F.tanh, F.erf, F.gelu):
    for shape in ((), (2, 3), (0, 2)):
        case(f, normal(*shape))
    case(f, normal(4, 4), f=lambda x, f=f: f(x[::2].T), order=3, note="strided view, third order")
for f in (F.lgamma, F.digamma):
    case(f, positive(2, 3), order=3)
    case(f, np.array([-2.6, -0.3, 0.3, 0.7, 1.0, 2.0, 9.5, 12.0]), order=3, note="both sides")
    case(f, np.array(1.4))
    case(f, np.zeros((0, 2)))
for f in (F.relu, F.elu, F.leaky_relu):
    for shape in ((), (2, 3), (0, 2)):
        case(f, apart(*shape))
case(F.elu, apart(3), alpha=0.5)
case(F.leaky_relu, apart(3), negative_slope=0.3)
case(F.gelu, normal(2, 3), approximate="tanh")
case(F.softplus, np.array([-50.0, 0.0, 50.0]), note="far out")
case(F.sigmoid, np.array([-50.0, 0.0, 50.0]), note="far out")
for f in (F.softmax, F.log_softmax, F.logsumexp):
    for axis in (-1, 0, 1):
        case(f, normal(2, 3), axis=axis)
    case(f, normal(2, 3, 2), axis=1)
    case(f, normal(3), order=3)
    case(f, normal(0, 3))
    case(f, np.full((2, 3), 1.5), note="all tied")
    case(f, np.array([500.0, 501.0, -300.0]), note="large")
case(F.logsumexp, normal(2, 3), axis=0, keepdims=True)
case(F.dropout, normal(3, 4), p=0.4, rng=0)
case(F.dropout, normal(3, 4), p=0.4, training=False)

# ---------------------------------------------------------------- sums, norms

case(F.linear, normal(2, 3), normal(4, 3), normal(4))
case(F.linear, normal(2, 2, 3), normal(4, 3))
case(F.linear, normal(3), normal(4, 3), normal(4))
case(F.linear, normal(0, 3), normal(4, 3), normal(4))
case(F.embedding, IDS, normal(3, 2))
case(F.embedding, np.array([0, 1, 0]), normal(2, 1), padding_idx=None)
case(F.embedding, np.zeros((0,), int), normal(2, 2))
for p in (1.0, 2.0, 3.0):
    case(F.normalize, apart(2, 3), p=p)
case(F.normalize, normal(2, 3), axis=0)
case(F.normalize, np.array([[0.0, 2.0], [1.0, 0.0]]), note="zeros")
case(F.cosine_similarity, normal(2, 3), normal(2, 3) + 1)
case(F.cosine_similarity, normal(2, 3), normal(1, 3) + 1, axis=-1)
case(F.layer_norm, normal(2, 3), (3,), normal(3) + 1, normal(3))
case(F.layer_norm, normal(2, 2, 3), (2, 3))
case(F.rms_norm, normal(2, 3), (3,), normal(3) + 1)
case(F.rms_norm, normal(2, 2, 3), (2, 3), eps=1e-5)
for shape in ((4, 3), (2, 3, 2)):
    case(
        F.batch_norm,
        normal(*shape),
        normal(3),
        positive(3),
        note=f"training {shape}",
        f=lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
    )
    case(
        F.batch_norm,
        normal(*shape),
        normal(3),
        positive(3),
        note=f"evaluation {shape}",
        f=lambda x, w, b: F.batch_norm(x, np.zeros(3) + 0.1, np.ones(3) * 2, w, b),
    )

# ---------------------------------------------------------------- windows

case(F.conv1d, normal(2, 3, 5), normal(4, 3, 2), normal(4))
case(F.conv1d, normal(1, 4, 7), normal(2, 2, 3), stride=2, padding=1, groups=2)
case(F.conv1d, normal(1, 2, 7), normal(2, 2, 3), dilation=2)
case(F.conv1d, normal(0, 2, 5), normal(2, 2, 3))
case(F.conv1d, normal(1, 4, 7), normal(2, 2, 3), normal(2), padding=1, groups=2, impl="sums")
case(F.conv2d, normal(1, 2, 3, 4), normal(2, 2, 2, 2), normal(2))
case(F.conv2d, normal(1, 2, 3, 4), normal(2, 2, 2, 2), stride=2, padding=1, impl="sums")
case(F.conv2d, normal(1, 2, 5, 4), normal(2, 1, 3, 2), stride=(2, 1), padding=(1, 0), groups=2)
case(F.conv2d, normal(1, 1, 5, 5), normal(1, 1, 2, 2), dilation=(2, 3), padding=1)
case(F.max_pool1d, apart(2, 2, 5), 2)
case(F.max_pool1d, apart(1, 2, 5), 3, stride=1, padding=1)
case(F.max_pool2d, apart(1, 2, 4, 4), 2)
case(F.max_pool2d, apart(1, 1, 5, 4), (2, 3), stride=(2, 1), padding=(1, 0))
case(F.avg_pool1d, normal(2, 2, 5), 2)
case(F.avg_pool1d, normal(1, 2, 5), 3, stride=1, padding=1)
case(F.avg_pool2d, normal(1, 2, 4, 4), 2)
case(F.avg_pool2d, normal(1, 1, 5, 4), (2, 3), stride=(2, 1), padding=(1, 0))
case(F.pad, normal(2, 3), (1, 2))
case(F.pad, normal(2, 3), (1, 0, 0, 2), value=1.5)

# ---------------------------------------------------------------- losses

PROBABILITIES = unit(2, 3) / 2 + 0.5
for reduction in ("mean", "sum", "none"):
    for f in (F.mse_loss, F.l1_loss, F.huber_loss):
        case(f, apart(2, 3), apart(2, 3)[::-1] + 0.03, reduction=reduction)
    case(F.binary_cross_entropy, PROBABILITIES, target=MASK * 0.8 + 0.1, reduction=reduction)
    case(
        F.binary_cross_entropy_with_logits,
        normal(2, 3),
        target=MASK * 0.8 + 0.1,
        reduction=reduction,
    )
    case(F.kl_div, normal(2, 3), PROBABILITIES, reduction=reduction)
    for f in (F.nll_loss, F.cross_entropy):
        case(f, normal(2, 3), np.array([2, 0]), reduction=reduction)
        case(f, normal(2, 3), np.array([2, -100]), weight=positive(3), reduction=reduction)
        case(f, normal(2, 3, 3), IDS, reduction=reduction)
    case(F.cross_entropy, normal(2, 3), np.array([2, 0]), label_smoothing=0.2, reduction=reduction)
    case(F.cross_entropy, normal(2, 3), PROBABILITIES, weight=positive(3), reduction=reduction)
case(F.huber_loss, apart(2, 3), apart(2, 3)[::-1] + 0.03, delta=0.2)
case(
    F.binary_cross_entropy_with_logits,
    np.array([-60.0, 60.0, 0.0]),
    note="far out",
    target=np.array([0.3, 0.3, 1.0]),
    pos_weight=np.array([1.0, 2.0, 3.0]),
)
case(F.kl_div, normal(2, 3), normal(2, 3) - 1, log_target=True, reduction="batchmean")
case(F.kl_div, normal(3), target=np.array([0.0, 0.4, 0.6]), note="zero probability")
case(F.mse_loss, normal(0, 3), normal(0, 3), reduction="sum")
case(F.cross_entropy, np.array([[500.0, -500.0]]), np.array([1]), note="large")

# ---------------------------------------------------------------- attention

Q, K, V = normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 2)
SEEN = np.array([[1, 1, 0, 1, 0], [0, 0, 0, 0, 0], [0, 0, 1, 0, 0]], bool)  # one query sees none
for impl, order in (("numpy", 2), ("sums", 1), ("kernel", 1)):
    attention = partial(case, F.scaled_dot_product_attention, order=order, impl=impl)
    attention(Q, K, V)
    attention(Q, K, V, mask=SEEN)
    attention(Q, K, V, None, normal(3, 5), causal=True, scale=0.3)
    attention(Q[0], K, V[:1], None, normal(2, 1, 5), note=f"{impl}, broadcast")
    attention(Q, normal(2, 0, 4), normal(2, 0, 2))
case(F.attention_weights, Q, K)
case(F.attention_weights, Q, K, mask=SEEN, causal=True)

# ---------------------------------------------------------------- layers, with their weights


def layer(cls, *inputs, make, order=2, **call):
    """A layer on inputs; its parameters are checked with them."""
    module = make() if isinstance(make, partial) else make
    f = partial(module, **call) if call else module
    case(cls, *inputs, f=f, order=order, note=f"{module!r}"[:60].replace("\n", " "))


def activation(cls, *arguments):
    case(cls, apart(2, 3), f=cls(*arguments))


for cls in (nn.ReLU, nn.ELU, nn.LeakyReLU, nn.GELU, nn.SiLU, nn.Sigmoid, nn.Tanh, nn.Softmax):
    activation(cls)
activation(nn.GELU, "tanh")
activation(nn.ELU, 0.5)
layer(nn.Linear, normal(2, 3), make=nn.Linear(3, 2, rng=0))
layer(nn.Linear, normal(2, 2, 3), make=nn.Linear(3, 2, bias=False, rng=0))
layer(nn.Embedding, IDS, make=nn.Embedding(3, 2, rng=0))
layer(nn.MLP, normal(2, 3), make=nn.MLP([3, 4, 2], nn.Tanh, rng=0))
layer(nn.Sequential, normal(2, 3), make=nn.Sequential(nn.Linear(3, 2, rng=0), nn.GELU()))
layer(nn.Flatten, normal(2, 3, 2), make=nn.Flatten())
layer(nn.Flatten, normal(2, 3, 2), make=nn.Flatten(0, 1))
case(nn.Dropout, normal(3, 4), f=lambda x: nn.Dropout(0.4, rng=0)(x), note="training")
layer(nn.Dropout, normal(3, 4), make=nn.Dropout(0.4).eval())
layer(nn.LayerNorm, normal(2, 3), make=nn.LayerNorm(3))
layer(nn.LayerNorm, normal(2, 2, 3), make=nn.LayerNorm((2, 3), bias=False))
layer(nn.RMSNorm, normal(2, 3), make=nn.RMSNorm(3))
layer(nn.BatchNorm1d, normal(4, 3), make=nn.BatchNorm1d(3))
layer(nn.BatchNorm1d, normal(2, 3, 2), make=nn.BatchNorm1d(3))
layer(nn.BatchNorm1d, normal(4, 3), make=nn.BatchNorm1d(3).eval())
layer(nn.BatchNorm2d, normal(2, 3, 2, 2), make=nn.BatchNorm2d(3))
layer(nn.BatchNorm2d, normal(2, 3, 2, 2), make=nn.BatchNorm2d(3).eval())
layer(nn.GroupNorm, normal(2, 4, 3), make=nn.GroupNorm(2, 4))
layer(nn.GroupNorm, normal(2, 4), make=nn.GroupNorm(2, 4, affine=False))
layer(nn.GroupNorm, normal(2, 3, 2, 2), make=nn.GroupNorm(3, 3))
layer(nn.Identity, normal(2, 3), make=nn.Identity(54, anything=True))
for loss in (nn.MSELoss(), nn.L1Loss(reduction="sum"), nn.HuberLoss(delta=0.5)):
    case(type(loss), apart(2, 3), apart(2, 3)[::-1] + 0.03, f=loss)
case(nn.BCELoss, PROBABILITIES, MASK * 0.8 + 0.1, f=nn.BCELoss(positive(3)))
case(nn.CrossEntropyLoss, normal(2, 3), f=lambda x: nn.CrossEntropyLoss(positive(3))(x, IDS[0, 1:]))
WEIGHED = nn.BCEWithLogitsLoss(positive(3), pos_weight=positive(3))
case(nn.BCEWithLogitsLoss, normal(2, 3), f=lambda x: WEIGHED(x, MASK * 0.8 + 0.1))
layer(nn.Conv1d, normal(1, 2, 5), make=nn.Conv1d(2, 3, 2, rng=0))
layer(nn.Conv2d, normal(1, 2, 3, 4), make=nn.Conv2d(2, 2, 2, padding=1, rng=0))
layer(nn.MaxPool1d, apart(1, 2, 5), make=nn.MaxPool1d(2))
layer(nn.MaxPool2d, apart(1, 2, 4, 4), make=nn.MaxPool2d(2))
layer(nn.AvgPool2d, normal(1, 2, 4, 4), make=nn.AvgPool2d(2))
X, CONTEXT = normal(2, 3, 4), normal(2, 5, 4)
layer(nn.SelfAttention, X, make=nn.SelfAttention(4, 2, rng=0))
layer(nn.SelfAttention, X, make=nn.SelfAttention(4, rng=0), causal=True)
layer(nn.CrossAttention, X, CONTEXT, make=nn.CrossAttention(4, 2, rng=0))
layer(nn.MultiheadAttention, X, CONTEXT, CONTEXT + 1, make=nn.MultiheadAttention(4, 2, rng=0))
layer(
    nn.MultiheadAttention,
    X,
    CONTEXT,
    CONTEXT + 1,
    make=nn.MultiheadAttention(4, 2, rng=0),
    mask=SEEN,
)
SMALL = {"dim_feedforward": 3, "dropout": 0.0, "activation": "gelu", "rng": 0}
ENCODER, DECODER = nn.TransformerEncoderLayer, nn.TransformerDecoderLayer
layer(ENCODER, X, make=ENCODER(4, 2, **SMALL), mask=np.tri(3, dtype=bool))
layer(DECODER, X, CONTEXT, make=DECODER(4, 2, norm_first=True, **SMALL), causal=True)
layer(nn.TransformerEncoder, X, make=nn.TransformerEncoder(ENCODER(4, 2, **SMALL), 2))
layer(nn.TransformerDecoder, X, CONTEXT, make=nn.TransformerDecoder(DECODER(4, 1, **SMALL), 1))
layer(nn.Transformer, CONTEXT, X, make=nn.Transformer(4, 2, 1, 1, **SMALL), causal=True)
KEEP = np.arange(5) < np.array([4, 2])[:, None]  # [B, N]
for pool in ("sum", "mean", "max"):
    deep = nn.DeepSets(nn.Linear(4, 3, rng=0), nn.Linear(3, 2, rng=1), pool)
    layer(nn.DeepSets, CONTEXT, make=deep, mask=KEEP)
layer(nn.MAB, X, CONTEXT, make=nn.MAB(4, 2, rng=0), mask=SEEN)
layer(nn.SAB, CONTEXT, make=nn.SAB(4, 2, rng=0), mask=KEEP[:, None, :])
layer(nn.ISAB, CONTEXT, make=nn.ISAB(4, 2, 2, rng=0), mask=KEEP[:, None, :])
layer(nn.PMA, CONTEXT, make=nn.PMA(4, 2, 2, rng=0), mask=KEEP)
layer(nn.SetTransformer, CONTEXT, make=nn.SetTransformer(4, 2, 4, 2, 2, rng=0), mask=KEEP)
layer(nn.ClassAttention, X[:, :1], CONTEXT, make=nn.ClassAttention(4, 2, rng=0), mask=KEEP)
layer(nn.PositionalEncoding, X, make=nn.PositionalEncoding(4))

# no function of its own: holds other modules, parameters, or is the base class
NOTHING_TO_CHECK = {nn.Module, nn.ModuleDict, nn.ModuleList, nn.Parameter, nn.Buffer}
NO_GRADIENT = {F.multinomial, F.neighbour_table, F.one_hot}
