"""Layers, and the activations and losses of `tinyattn.functional` as modules."""

from tinyattn.engine import torch_hints
from tinyattn.nn import init
from tinyattn.nn.activations import ELU, GELU, LeakyReLU, ReLU, Sigmoid, SiLU, Softmax, Tanh
from tinyattn.nn.attention import CrossAttention, MultiheadAttention, SelfAttention
from tinyattn.nn.cache import CrossAttentionCache, KeyValueCache
from tinyattn.nn.containers import Identity, ModuleDict, ModuleList, Sequential
from tinyattn.nn.conv import AvgPool2d, Conv1d, Conv2d, MaxPool1d, MaxPool2d
from tinyattn.nn.init import SkipInit
from tinyattn.nn.layers import MLP, Dropout, Embedding, Flatten, Linear
from tinyattn.nn.llama import GroupedQueryAttention, LlamaBlock, LlamaBlocks, SwiGLU
from tinyattn.nn.losses import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    HuberLoss,
    L1Loss,
    MSELoss,
)
from tinyattn.nn.module import Buffer, Module, Parameter
from tinyattn.nn.norms import BatchNorm1d, BatchNorm2d, GroupNorm, LayerNorm, RMSNorm
from tinyattn.nn.positional_encoding import (
    ConcatPositionalEncoding,
    InterleavedRotaryEmbedding,
    LearnedPositionalEmbedding,
    PositionalEncoding,
    RotaryEmbedding,
)
from tinyattn.nn.recurrent import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell, detach
from tinyattn.nn.sets import ISAB, MAB, PMA, SAB, ClassAttention, DeepSets, SetTransformer
from tinyattn.nn.transformer import (
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)

__all__ = [
    "ELU",
    "GELU",
    "MLP",
    "AvgPool2d",
    "BatchNorm1d",
    "Buffer",
    "Conv1d",
    "Conv2d",
    "CrossAttention",
    "Dropout",
    "Embedding",
    "Flatten",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "MaxPool1d",
    "MaxPool2d",
    "Module",
    "ModuleList",
    "MultiheadAttention",
    "Parameter",
    "RMSNorm",
    "ReLU",
    "SelfAttention",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Tanh",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "ISAB",
    "MAB",
    "PMA",
    "SAB",
    "ClassAttention",
    "DeepSets",
    "PositionalEncoding",
    "SetTransformer",
    "ConcatPositionalEncoding",
    "InterleavedRotaryEmbedding",
    "LearnedPositionalEmbedding",
    "RotaryEmbedding",
    "GroupedQueryAttention",
    "KeyValueCache",
    "LlamaBlock",
    "LlamaBlocks",
    "CrossAttentionCache",
    "SkipInit",
    "SwiGLU",
    "BatchNorm2d",
    "GroupNorm",
    "Identity",
    "ModuleDict",
    "init",
    "BCELoss",
    "BCEWithLogitsLoss",
    "HuberLoss",
    "CrossEntropyLoss",
    "L1Loss",
    "MSELoss",
    "GRU",
    "LSTM",
    "RNN",
    "GRUCell",
    "LSTMCell",
    "RNNCell",
    "detach",
]


def __getattr__(name):
    """Raise AttributeError for the missing `name`, with what to write instead, if known."""
    raise torch_hints.no_such_name(__name__, name)
