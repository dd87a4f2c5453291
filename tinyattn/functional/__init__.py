"""Network functions without weights: activations, norms, losses, attention."""

from tinyattn.engine import torch_hints
from tinyattn.functional.activations import (
    dropout,
    elu,
    erf,
    gelu,
    leaky_relu,
    log_softmax,
    logsumexp,
    relu,
    sigmoid,
    silu,
    softmax,
    softplus,
    tanh,
)
from tinyattn.functional.attention import (
    attention_weights,
    packed_self_attention,
    scaled_dot_product_attention,
)
from tinyattn.functional.conv import (
    avg_pool1d,
    avg_pool2d,
    conv1d,
    conv2d,
    max_pool1d,
    max_pool2d,
    neighbour_table,
    pad,
)
from tinyattn.functional.gamma import digamma, lgamma
from tinyattn.functional.linear import cosine_similarity, embedding, linear, normalize, one_hot
from tinyattn.functional.losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    nll_loss,
)
from tinyattn.functional.norms import batch_norm, layer_norm, rms_norm
from tinyattn.functional.sampling import multinomial

__all__ = [
    "attention_weights",
    "avg_pool1d",
    "avg_pool2d",
    "batch_norm",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "conv1d",
    "conv2d",
    "cosine_similarity",
    "cross_entropy",
    "digamma",
    "dropout",
    "elu",
    "embedding",
    "erf",
    "gelu",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "lgamma",
    "linear",
    "log_softmax",
    "logsumexp",
    "max_pool1d",
    "max_pool2d",
    "mse_loss",
    "multinomial",
    "neighbour_table",
    "nll_loss",
    "normalize",
    "one_hot",
    "packed_self_attention",
    "pad",
    "relu",
    "rms_norm",
    "scaled_dot_product_attention",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "tanh",
]


def __getattr__(name):
    """Raise AttributeError for the missing `name`, with what to write instead, if known."""
    raise torch_hints.no_such_name(__name__, name)
