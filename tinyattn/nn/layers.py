"""Layers that act on each position separately: Linear, Embedding, MLP, Flatten, Dropout.

Initial weights are as in PyTorch: uniform in ±1/√(fan-in) for Linear, standard normal for
Embedding.
"""

from itertools import pairwise

import numpy as np

import tinyattn.functional as F
from tinyattn.engine.convert import as_tensor
from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_range
from tinyattn.nn.activations import ReLU
from tinyattn.nn.containers import Sequential
from tinyattn.nn.init import normal_parameter, uniform_parameter
from tinyattn.nn.module import Module
from tinyattn.nn.validation import check_sizes
from tinyattn.ops.matmul import linear


class Linear(Module):
    """A linear layer, y = x Wᵀ + b.

    The parameters are weight [out_features, in_features] and bias [out_features]. The initial
    values of both are uniform in ±1/√in_features, as in PyTorch.

    Args:
        in_features    number of features of x
        out_features   number of features of y
        bias           False: no b is added, and the attribute `bias` is None
        rng            seed or numpy.random.Generator for the initial values, or None for the
                       default generator

    Raises:
        ValueError: a number of features is not a whole number of at least 1
    """

    def __init__(self, in_features, out_features, bias=True, rng=None):
        check_sizes(self, single=True, in_features=in_features, out_features=out_features)
        rng = generator(rng)
        bound = 1 / np.sqrt(max(in_features, 1))
        self.in_features, self.out_features = in_features, out_features
        self.weight = uniform_parameter((out_features, in_features), bound, rng)
        self.bias = uniform_parameter((out_features,), bound, rng) if bias else None

    def forward(self, x):
        """Apply the layer. Shape: x [..., in_features] → [..., out_features].

        Raises:
            ValueError: the last axis of x does not have in_features numbers
            TypeError: x does not consist of numbers
        """
        return linear(as_tensor(x), self.weight, self.bias)

    def extra_repr(self):
        bias = "" if self.bias is not None else ", bias=False"
        return f"{self.in_features}, {self.out_features}{bias}"


class Embedding(Module):
    """A table with a vector for each id, y = weight[ids].

    The parameter is weight [num_embeddings, embedding_dim]. Its initial values are drawn from a
    standard normal distribution.

    Args:
        num_embeddings   number of ids, which are 0, ..., num_embeddings - 1
        embedding_dim    number of features of a vector
        padding_idx      id of padding, whose vector is initially zero and gets no gradient, or
                         None. A negative number counts from the end
        rng              seed or numpy.random.Generator for the initial values, or None for the
                         default generator

    Raises:
        ValueError: padding_idx is not one of the ids, or a size is not a whole number of at least 1
        TypeError: padding_idx is not a whole number
    """

    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, rng=None):
        sizes = {"num_embeddings": num_embeddings, "embedding_dim": embedding_dim}
        check_sizes(self, single=True, **sizes)
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        check_range(
            "Embedding",
            -num_embeddings,
            below=num_embeddings,
            whole=True,
            optional=("padding_idx",),
            padding_idx=padding_idx,
        )
        self.padding_idx = padding_idx
        self.weight = normal_parameter((num_embeddings, embedding_dim), 1, rng)
        if padding_idx is not None:
            weight = np.array(self.weight.data)
            weight[padding_idx] = 0
            self.weight.data = weight

    def forward(self, ids):
        """Look up the vector of each id. Shape: ids [...] → [..., embedding_dim].

        Args:
            ids   integers from 0 to num_embeddings - 1

        Raises:
            TypeError: the ids are not integers
            IndexError: an id is negative, or not below num_embeddings
        """
        return F.embedding(ids, self.weight, self.padding_idx)

    def extra_repr(self):
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class MLP(Module):
    """A multilayer perceptron: linear layers with a nonlinearity between them.

    MLP([64, 32, 10]) maps 64 features to 32, and these to 10. The layers are in the attribute
    `layers`, so the parameters are called "layers.0.weight", "layers.2.weight" and so on. No
    nonlinearity follows the last layer.

    Args:
        sizes        list of the numbers of features of x and of the output of each linear layer
        activation   class of the nonlinearity, or a function without arguments that returns a
                     module
        bias         False: the linear layers have no bias
        rng          seed or numpy.random.Generator for the initial values, or None for the default
                     generator

    Raises:
        ValueError: there are fewer than two sizes, or a size is not a whole number of at least 1
        TypeError: sizes is not a list, a tuple or an array, or activation does not return a module
    """

    def __init__(self, sizes, activation=ReLU, bias=True, rng=None):
        if not isinstance(sizes, list | tuple | np.ndarray) or getattr(sizes, "ndim", 1) == 0:
            raise TypeError(f"MLP: sizes must be a list, such as [2, 16, 1], got {sizes!r}")
        check_sizes(self, sizes=sizes)
        if len(sizes) < 2:
            raise ValueError(
                f"MLP: sizes must contain at least an input and an output size, got {sizes}"
            )
        rng = generator(rng)
        parts = []
        for d_in, d_out in pairwise(sizes):
            parts += [Linear(d_in, d_out, bias, rng), _made(activation)]
        self.layers = Sequential(*parts[:-1])

    def forward(self, x):
        """Apply all layers. Shape: x [..., sizes[0]] → [..., sizes[-1]].

        Raises:
            ValueError: the last axis of x does not have sizes[0] numbers
        """
        return self.layers(x)


def _made(activation):
    """Return the layer that `activation` makes, or raise TypeError if it makes none."""
    try:
        layer = activation()
    except TypeError:
        layer = None
    if not isinstance(layer, Module):
        name = getattr(activation, "__name__", repr(activation))
        raise TypeError(
            f"MLP: activation must be the class of a layer, or a function that makes one, got "
            f"{name}. Write, for example, nn.ReLU without ()"
        )
    return layer


class Flatten(Module):
    """A layer that merges the axes from `start_dim` to `end_dim` into one.

    Args:
        start_dim   first axis that is merged. The default 1 keeps the batch axis
        end_dim     last axis that is merged. Negative numbers count from the end, so the default -1
                    is the last axis of x

    Raises:
        TypeError: start_dim or end_dim is not a whole number
    """

    def __init__(self, start_dim=1, end_dim=-1):
        check_range("Flatten", whole=True, start_dim=start_dim, end_dim=end_dim)
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x):
        """Merge the axes from start_dim to end_dim. Shape with the defaults: x [B, ...] → [B, n].

        Raises:
            ValueError: start_dim or end_dim is not an axis of x, or start_dim comes after end_dim
        """
        x = as_tensor(x)
        start, end = (d + x.ndim if d < 0 else d for d in (self.start_dim, self.end_dim))
        if not 0 <= start <= end < x.ndim:
            single = x.ndim == 1 and (self.start_dim, self.end_dim) == (1, -1)
            advice = ". For a single example without a batch axis, pass x[None]" if single else ""
            raise ValueError(
                "Flatten: start_dim and end_dim must be axes of x in ascending order, got "
                f"start_dim={self.start_dim}, end_dim={self.end_dim} for x of shape {x.shape}"
                f"{advice}"
            )
        length = int(np.prod(x.shape[start : end + 1], dtype=np.int64))
        return x.reshape((*x.shape[:start], length, *x.shape[end + 1 :]))


class Dropout(Module):
    """Dropout, which in training replaces each number by 0 with probability p.

    The other numbers are divided by 1 - p, which keeps the expected value. In evaluation mode, the
    layer returns x unchanged.

    Args:
        p     probability with which a number becomes 0, 0 <= p <= 1
        rng   seed or numpy.random.Generator for the dropped numbers, or None for the default
              generator, which `ta.seed` sets

    Raises:
        ValueError: p is not from 0 to 1
        TypeError: p is not a number
    """

    def __init__(self, p=0.5, rng=None):
        check_range("Dropout", 0, 1, p=p)
        self.p, self.rng = p, None if rng is None else generator(rng)

    def forward(self, x):
        """Replace each number by 0 with probability p, and divide the others by 1 - p.

        In evaluation mode, x is returned unchanged. Shape: x [...] → [...].
        """
        return F.dropout(x, self.p, self.training, self.rng)

    def extra_repr(self):
        return f"p={self.p}"
