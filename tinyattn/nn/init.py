"""Functions that fill a tensor with initial values and return it, as in `torch.nn.init`.

    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", rng=0)

For a weight [out, in, *window], fan-in is in · (elements of the window) and fan-out is out ·
(elements of the window). Functions that draw random numbers take rng= (a Generator or a seed).
"""

import math

import numpy as np

from tinyattn.engine import torch_hints
from tinyattn.engine.autograd import Tensor
from tinyattn.engine.convert import to_array
from tinyattn.engine.dtypes import DEFAULT_DTYPE
from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_range
from tinyattn.nn.module import Parameter

__all__ = [
    "calculate_gain",
    "constant_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]


def uniform_(tensor, a=0.0, b=1.0, rng=None):
    """Fill a tensor with independent numbers, uniform between a and b.

    Args:
        tensor   tensor to fill, which is returned
        a        lower end of the interval
        b        upper end of the interval
        rng      seed or numpy.random.Generator, or None for the default generator

    Raises:
        ValueError: a > b, or a or b is not finite
        TypeError: the tensor is not a floating-point Tensor, or a or b is not a number
    """
    _check_tensor("uniform_", tensor)
    check_range("uniform_", above=-math.inf, below=math.inf, a=a, b=b)
    if not a <= b:
        raise ValueError(f"uniform_: expected a <= b, got a={a}, b={b}")
    return _filled(tensor, generator(rng).uniform(a, b, tensor.shape))


def normal_(tensor, mean=0.0, std=1.0, rng=None):
    """Fill a tensor with independent numbers from a normal distribution.

    Args:
        tensor   tensor to fill, which is returned
        mean     mean of the numbers
        std      standard deviation of the numbers
        rng      seed or numpy.random.Generator, or None for the default generator

    Raises:
        ValueError: std is negative, or mean or std is NaN
        TypeError: the tensor is not a floating-point Tensor, or mean or std is not a number
    """
    _check_tensor("normal_", tensor)
    check_range("normal_", mean=mean)
    check_range("normal_", 0, std=std)
    return _filled(tensor, generator(rng).normal(mean, std, tensor.shape))


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, rng=None):
    """Fill a tensor with numbers from a normal distribution truncated to [a, b].

    Numbers outside [a, b] are drawn again. All arguments are in the units of the result, so a and b
    do not count standard deviations.

    Args:
        tensor   tensor to fill, which is returned
        mean     mean of the normal distribution
        std      standard deviation of the normal distribution
        a        smallest number
        b        largest number
        rng      seed or numpy.random.Generator, or None for the default generator

    Raises:
        ValueError: std is not positive and finite, a is not below b, or less than a millionth of
            the normal distribution is in [a, b]
        TypeError: the tensor is not a floating-point Tensor, or another argument is not a number
    """
    _check_tensor("trunc_normal_", tensor)
    rng = generator(rng)
    check_range("trunc_normal_", mean=mean, a=a, b=b)
    check_range("trunc_normal_", above=0, below=math.inf, std=std)
    if not a < b:
        raise ValueError(f"trunc_normal_: expected a < b, got a={a}, b={b}")
    below_a, below_b = (0.5 * math.erfc((mean - x) / (math.sqrt(2) * std)) for x in (a, b))
    if not below_b - below_a > 1e-6:  # otherwise, nearly all numbers would be drawn again
        raise ValueError(
            f"trunc_normal_: [a, b] = [{a}, {b}] contains hardly any numbers of a normal "
            f"distribution with mean={mean} and std={std}. Choose a wider interval around the mean"
        )
    values = rng.normal(mean, std, tensor.shape)
    while (outside := (values < a) | (values > b)).any():
        values[outside] = rng.normal(mean, std, outside.sum())
    return _filled(tensor, values)


def constant_(tensor, val):
    """Fill a tensor with one number.

    Args:
        tensor   tensor to fill, which is returned
        val      the number

    Raises:
        TypeError: the tensor is not a Tensor, or val is not a number
    """
    if np.ndim(val) or np.asarray(to_array(val)).dtype.kind not in "fiub":
        raise TypeError(f"constant_: val must be a number, got {val!r}")
    return _constant("constant_", tensor, val)


def ones_(tensor):
    """Fill `tensor` with 1, and return it. Anything but a Tensor raises TypeError."""
    return _constant("ones_", tensor, 1)


def zeros_(tensor):
    """Fill `tensor` with 0, and return it. Anything but a Tensor raises TypeError."""
    return _constant("zeros_", tensor, 0)


def eye_(tensor):
    """Fill the matrix `tensor` with 1 on the diagonal and 0 elsewhere, and return it.

    Raises:
        ValueError: the tensor is not a matrix
        TypeError: the tensor is not a Tensor
    """
    _check_tensor("eye_", tensor, "fiub")
    if tensor.ndim != 2:
        raise ValueError(f"eye_: tensor must be a matrix, got shape {tensor.shape}")
    return _filled(tensor, np.eye(*tensor.shape))


def xavier_uniform_(tensor, gain=1.0, rng=None):
    """Fill a tensor with numbers uniform in ±gain √(6 / (fan-in + fan-out)).

    Args:
        tensor   weight [out, in, *window] to fill, which is returned. Fan-in is in · n, and fan-out
                 is out · n, where n is the number of elements of the window (1 for a matrix)
        gain     factor for the nonlinearity, see `calculate_gain`
        rng      seed or numpy.random.Generator, or None for the default generator

    Raises:
        ValueError: the tensor has fewer than two axes, or no elements, or gain is negative or
            infinite
        TypeError: the tensor is not a floating-point Tensor, or gain is not a number

    Source: Glorot, Bengio 2010.
    """
    check_range("xavier_uniform_", 0, below=math.inf, gain=gain)
    bound = gain * xavier_bound(*_fans("xavier_uniform_", tensor))
    return uniform_(tensor, -bound, bound, rng)


def xavier_bound(fan_in, fan_out):
    """Return the bound of Xavier's uniform initial values, √(6 / (fan_in + fan_out)).

    Weights that are uniform within ± this bound are a compromise between keeping the variance of
    the activations in the forward pass and that of the gradients in the backward pass. They keep
    both if fan_in = fan_out.

    Args:
        fan_in    number of inputs of a unit
        fan_out   number of units that depend on an input
    """
    return math.sqrt(6 / (fan_in + fan_out))


def xavier_normal_(tensor, gain=1.0, rng=None):
    """Fill a tensor with normally distributed numbers, std = gain √(2 / (fan-in + fan-out)).

    Their mean is 0, and std is their standard deviation.

    Args:
        tensor   weight [out, in, *window] to fill, which is returned. Fan-in is in · n, and fan-out
                 is out · n, where n is the number of elements of the window (1 for a matrix)
        gain     factor for the nonlinearity, see `calculate_gain`
        rng      seed or numpy.random.Generator, or None for the default generator

    Raises:
        ValueError: the tensor has fewer than two axes, or no elements, or gain is negative or
            infinite
        TypeError: the tensor is not a floating-point Tensor, or gain is not a number

    Source: Glorot, Bengio 2010.
    """
    check_range("xavier_normal_", 0, below=math.inf, gain=gain)
    fans = _fans("xavier_normal_", tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2 / sum(fans)), rng)


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", rng=None):
    """Fill a tensor with numbers uniform in ±√3 gain / √fan.

    Args:
        tensor         weight [out, in, *window] to fill, which is returned
        a              slope for negative numbers if the nonlinearity is "leaky_relu", otherwise
                       ignored
        mode           "fan_in": fan = in · (elements of the window), which keeps the variance
                       of the activations in the forward pass. "fan_out": fan = out · (elements of
                       the window), which keeps the variance of the gradients in the backward pass
        nonlinearity   name of the function after the layer, which determines the gain, see
                       `calculate_gain`
        rng            seed or numpy.random.Generator, or None for the default generator

    Raises:
        ValueError: the mode or the nonlinearity is unknown, or the tensor has fewer than two axes
            or no elements
        TypeError: the tensor is not a floating-point Tensor, or `a` is not a number

    Source: He et al. 2015.
    """
    check_range("kaiming_uniform_", a=a, optional=("a",))
    fan = _fan("kaiming_uniform_", tensor, mode)
    bound = math.sqrt(3) * _gain("kaiming_uniform_", nonlinearity, a) / math.sqrt(fan)
    return uniform_(tensor, -bound, bound, rng)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", rng=None):
    """Fill a tensor with normally distributed numbers, std = gain / √fan.

    Their mean is 0, and std is their standard deviation.

    Args:
        tensor         weight [out, in, *window] to fill, which is returned
        a              slope for negative numbers if the nonlinearity is "leaky_relu", otherwise
                       ignored
        mode           "fan_in": fan = in · (elements of the window), which keeps the variance
                       of the activations in the forward pass. "fan_out": fan = out · (elements of
                       the window), which keeps the variance of the gradients in the backward pass
        nonlinearity   name of the function after the layer, which determines the gain, see
                       `calculate_gain`
        rng            seed or numpy.random.Generator, or None for the default generator

    Raises:
        ValueError: the mode or the nonlinearity is unknown, or the tensor has fewer than two axes
            or no elements
        TypeError: the tensor is not a floating-point Tensor, or `a` is not a number

    Source: He et al. 2015.
    """
    check_range("kaiming_normal_", a=a, optional=("a",))
    gain = _gain("kaiming_normal_", nonlinearity, a)
    std = gain / math.sqrt(_fan("kaiming_normal_", tensor, mode))
    return normal_(tensor, 0.0, std, rng)


def orthogonal_(tensor, gain=1.0, rng=None):
    """Fill a tensor with gain · Q, where the rows or the columns of Q are orthonormal.

    The rows are orthonormal if there are no more rows than columns, and otherwise the columns are.
    A tensor with more than two axes is treated as a matrix, with the first axis as rows and all
    other axes as columns.

    Args:
        tensor   weight to fill, which is returned
        gain     factor for the nonlinearity, see `calculate_gain`
        rng      seed or numpy.random.Generator, or None for the default generator

    Raises:
        ValueError: the tensor has fewer than two axes
        TypeError: the tensor is not a floating-point Tensor, or gain is not a number

    Source: Saxe et al. 2014.
    """
    _check_tensor("orthogonal_", tensor)
    check_range("orthogonal_", gain=gain)
    if tensor.ndim < 2:
        raise ValueError(
            f"orthogonal_: tensor must have at least two axes, got shape {tensor.shape}"
        )
    rows, columns = len(tensor.data), tensor.size // max(1, len(tensor.data))
    q, r = np.linalg.qr(generator(rng).normal(size=(max(rows, columns), min(rows, columns))))
    q = q * np.where(np.diag(r) < 0, -1, 1)  # this makes Q uniform among all orthogonal matrices
    return _filled(tensor, gain * np.reshape(q if rows >= columns else q.T, tensor.shape))


GAINS = {
    "linear": 1.0,
    "conv1d": 1.0,
    "conv2d": 1.0,
    "sigmoid": 1.0,
    "tanh": 5 / 3,
    "relu": math.sqrt(2),
    "selu": 3 / 4,
}


def calculate_gain(nonlinearity, param=None):
    """Return the gain, a factor of the initial weights for the nonlinearity that follows the layer.

    With this factor, the variance stays about the same from layer to layer. The gain is 1 for
    "linear", "conv1d", "conv2d" and "sigmoid", 5/3 for "tanh", √2 for "relu", 3/4 for "selu" and
    √(2 / (1 + param²)) for "leaky_relu", as in PyTorch.

    Args:
        nonlinearity   one of these names
        param          slope of leaky_relu for negative numbers, or None for 0.01

    Raises:
        ValueError: the nonlinearity is unknown
        TypeError: param is not a number
    """
    check_range("calculate_gain", param=param, optional=("param",))
    return _gain("calculate_gain", nonlinearity, param)


def _gain(name, nonlinearity, param):
    if isinstance(nonlinearity, str) and nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    if not isinstance(nonlinearity, str) or nonlinearity not in GAINS:
        advice = '. Use "relu", which is similar' if nonlinearity in ("gelu", "silu", "elu") else ""
        raise ValueError(
            f"{name}: nonlinearity must be one of leaky_relu, {', '.join(GAINS)}, got "
            f"{nonlinearity!r}{advice}"
        )
    return GAINS[nonlinearity]


def _fans(name, tensor):
    """Return (fan-in, fan-out) of a weight [out, in, *window]. Errors begin with `name`."""
    _check_tensor(name, tensor)
    if tensor.ndim < 2 or tensor.size == 0:
        advice = ". For a bias, use zeros_ or uniform_" if tensor.ndim == 1 else ""
        raise ValueError(
            f"{name}: tensor must be a weight [out, in, ...] with at least one element, because "
            f"its fan-in and fan-out are needed, got shape {tensor.shape}{advice}"
        )
    out, into, *window = tensor.shape
    return into * math.prod(window), out * math.prod(window)


def _fan(name, tensor, mode):
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f'{name}: mode must be "fan_in" or "fan_out", got {mode!r}')
    return _fans(name, tensor)[mode == "fan_out"]


def _check_tensor(name, tensor, kinds="f"):
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"{name}: tensor must be a Tensor such as layer.weight, got {type(tensor).__name__}"
        )
    if tensor.dtype.kind not in kinds:
        raise TypeError(
            f"{name}: tensor must be floating point, got {tensor.dtype}. Make it with "
            "dtype=np.float32"
        )


def _constant(name, tensor, val):
    _check_tensor(name, tensor, "fiub")
    return _filled(tensor, np.full(tensor.shape, val))


def _filled(tensor, values):
    tensor.data = values.astype(tensor.dtype, copy=False)
    return tensor


def uniform_parameter(shape, bound, rng):
    """Make a parameter of independent numbers, uniform in [-bound, bound].

    Args:
        shape   shape of the parameter
        bound   largest absolute value
        rng     seed or numpy.random.Generator, or None for the default generator
    """
    return _parameter(generator(rng).uniform(-bound, bound, shape))


def xavier_parameter(shape, rng):
    """Make a parameter of numbers uniform in ±√(6 / (m + n)), for matrices [m, n] in its last axes.

    Args:
        shape   shape [..., m, n] of the parameter
        rng     seed or numpy.random.Generator, or None for the default generator
    """
    return uniform_parameter(shape, xavier_bound(shape[-1], shape[-2]), rng)


def normal_parameter(shape, std, rng):
    """Make a parameter of independent numbers from a normal distribution of mean 0.

    Args:
        shape   shape of the parameter
        std     standard deviation
        rng     seed or numpy.random.Generator, or None for the default generator
    """
    check_range("normal_parameter", 0, below=math.inf, std=std)
    return _parameter(generator(rng).normal(0, std, shape))


def _parameter(values):
    p = Parameter(0.0)
    p.data = values.astype(DEFAULT_DTYPE, copy=False)  # Parameter(values) would copy them
    return p


class SkipInit(np.random.Generator):
    """A replacement for a random generator, to create a model without drawing initial values.

        model = GPT(50257, 768, 12, 12, 1024, rng=nn.SkipInit())
        model.load_state_dict(state)

    Without it, most of the loading time is spent on drawing initial values that are replaced
    immediately. With it, all elements of a parameter share one NaN, which takes no time and no
    memory. If you forget to load a parameter, every result is NaN, and writing into the parameter
    raises ValueError. Weights that a layer initializes with 1 and biases that it initializes with 0
    keep these values. Other random numbers, such as those of dropout, are drawn as usual. PyTorch
    has torch.nn.utils.skip_init and the device "meta" for this.
    """

    def __init__(self):
        super().__init__(np.random.PCG64())

    def uniform(self, low=0.0, high=1.0, size=None):
        """Return NaN instead of numbers from a uniform distribution.

        Args:
            low    ignored
            high   ignored
            size   shape of the result. None: a scalar

        Returns:
            a read-only array of NaN in float32, which takes the memory of a single number
        """
        return np.broadcast_to(DEFAULT_DTYPE.type(np.nan), () if size is None else size)

    def normal(self, loc=0.0, scale=1.0, size=None):
        """Return NaN instead of numbers from a normal distribution.

        Args:
            loc     ignored
            scale   ignored
            size    shape of the result. None: a scalar

        Returns:
            a read-only array of NaN in float32, which takes the memory of a single number
        """
        return np.broadcast_to(DEFAULT_DTYPE.type(np.nan), () if size is None else size)


def __getattr__(name):
    """Raise AttributeError for the missing `name`, with what to write instead, if known."""
    if f"{name}_" in globals():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: use nn.init.{name}_")
    raise torch_hints.no_such_name(__name__, name)
