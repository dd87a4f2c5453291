"""Layers: modules with weights, and the functions of networks as modules."""

from tinyattn.nn.activations import ELU, GELU, LeakyReLU, ReLU, Sigmoid, SiLU, Softmax, Tanh
from tinyattn.nn.attention import CrossAttention, MultiheadAttention, SelfAttention
from tinyattn.nn.layers import MLP, Dropout, Embedding, Flatten, Linear
from tinyattn.nn.module import Module, ModuleList, Parameter, Sequential
from tinyattn.nn.norms import BatchNorm1d, LayerNorm, RMSNorm

__all__ = [
    "ELU", "GELU", "MLP", "BatchNorm1d", "CrossAttention", "Dropout", "Embedding", "Flatten", "LayerNorm",
    "LeakyReLU", "Linear", "Module", "ModuleList", "MultiheadAttention", "SelfAttention", "Parameter", "RMSNorm", "ReLU", "Sequential",
    "SiLU", "Sigmoid", "Softmax", "Tanh",
]  # fmt: skip
