"""Functions of networks without weights of their own: activations, norms, losses, attention."""

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
from tinyattn.functional.attention import scaled_dot_product_attention
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

__all__ = [
    "batch_norm", "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "cosine_similarity", "cross_entropy", "dropout", "elu", "embedding", "erf", "gelu",
    "huber_loss", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "linear", "log_softmax",
    "logsumexp", "mse_loss", "nll_loss", "normalize", "one_hot", "relu", "rms_norm",
    "scaled_dot_product_attention", "sigmoid", "silu", "softmax", "softplus", "tanh",
]  # fmt: skip
