"""Recurrent layers RNN, GRU and LSTM, for single steps or for whole sequences.

Initial weights are uniform in ±1/√H. Their names and the order of the gates are as in PyTorch.
"""

import numpy as np

import tinyattn.functional as F
from tinyattn.engine import torch_hints
from tinyattn.engine.autograd import Tensor
from tinyattn.engine.convert import as_tensor
from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_range
from tinyattn.functional import recurrent
from tinyattn.nn.init import uniform_parameter
from tinyattn.nn.module import Module
from tinyattn.nn.validation import check_sizes


def detach(state):
    """Return the same state without its graph, for truncated backpropagation through time.

    To train on a long sequence, divide it into pieces. Each piece starts from the last state of the
    previous piece, but no gradient flows back into the previous piece, so the time and memory of a
    training step do not grow:

        state = None
        for x, target in pieces:                     # x [B, T, D], consecutive in time
            y, state = rnn(x, nn.detach(state))
            loss(y, target).backward()               # through this piece only
            ...

    Args:
        state   a Tensor, None, or a tuple or list of such states

    Returns:
        the state without its graph, in the same form

    Raises:
        TypeError: the state is or contains anything else, such as a plain array
    """
    if isinstance(state, tuple | list):
        return type(state)(detach(s) for s in state)
    if state is not None and not isinstance(state, Tensor):
        raise TypeError(
            "detach: state must be a Tensor, None, or a tuple or list of them, got "
            f"{torch_hints.kind_of(state)}"
        )
    return state if state is None else state.detach()


def _check_float_input(name, x, axes, size):
    """Return x as a Tensor with these axes, the last of which must have `size` features."""
    x = as_tensor(x)
    if x.ndim != len(axes) or x.shape[-1] != size:
        advice = ""
        if x.ndim == len(axes) - 1 and x.shape[-1:] == (size,):
            advice = f". For a single {'sequence' if 'T' in axes else 'example'}, pass x[None]"
        elif x.ndim == 3 and len(axes) == 2:
            advice = f". For whole sequences, use nn.{name.removesuffix('Cell')}"
        raise ValueError(
            f"{name}: x must be [{', '.join(axes)}] with {axes[-1]} = {size}, got shape {x.shape}"
            f"{advice}"
        )
    if x.dtype.kind != "f":
        raise TypeError(
            f"{name}: x must be floating point, got {x.dtype}. Pass token ids through nn.Embedding "
            "first, and convert other whole numbers with .astype(np.float32)"
        )
    return x


def _state(name, cell, state, shape, dtype):
    """Return the initial state as a tuple of Tensors of this shape, zeros for None."""
    if state is None:
        return tuple(Tensor(np.zeros(shape, dtype)) for _ in range(cell.states))
    if cell.states == 1 and isinstance(state, tuple):
        raise TypeError(
            f"{name}: the state must be one array h, got a tuple of length {len(state)}. Pass h "
            "alone, because only an LSTM has a state (h, c)"
        )
    parts = state if cell.states > 1 else (state,)
    if not isinstance(parts, tuple | list) or len(parts) != cell.states:
        raise TypeError(
            f"{name}: the state must be a tuple (h, c), got "
            + (
                f"a {type(parts).__name__} of length {len(parts)}"
                if isinstance(parts, tuple | list)
                else "a single array"
                if hasattr(parts, "shape")
                else torch_hints.kind_of(parts)
            )
            + ". Pass both arrays, or None for zeros"
        )
    parts = tuple(as_tensor(s) for s in parts)
    for letter, s in zip("hc", parts, strict=False):
        if s.shape != shape:
            axes = "[B, H]" if len(shape) == 2 else "[layers · directions, B, H]"
            what = f"{letter} in the state" if cell.states > 1 else "the state"
            raise ValueError(f"{name}: {what} must be {axes} = {shape}, got shape {s.shape}")
    return tuple(s if s.dtype == dtype else s.astype(dtype) for s in parts)


# ---------------------------------------------------------------- one step


class _Cell(Module):
    cell = None  # a cell of tinyattn.functional.recurrent

    def __init__(self, input_size, hidden_size, bias=True, *, impl="auto", rng=None):
        check_sizes(self, single=True, input_size=input_size, hidden_size=hidden_size)
        rng = generator(rng)
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        self.impl = impl
        bound, rows = 1 / np.sqrt(max(hidden_size, 1)), self.cell.gates * hidden_size
        self.weight_ih = uniform_parameter((rows, input_size), bound, rng)
        self.weight_hh = uniform_parameter((rows, hidden_size), bound, rng)
        self.bias_ih = uniform_parameter((rows,), bound, rng) if bias else None
        self.bias_hh = uniform_parameter((rows,), bound, rng) if bias else None

    def forward(self, x, state=None):
        """Return the next state, where D is input_size and H is hidden_size.

        Args:
            x       input [B, D] of this step
            state   the previous state, h [B, H] or, for an `nn.LSTMCell`, (h, c) of two arrays
                    [B, H]. None: zeros

        Returns:
            the next state, in the same form

        Raises:
            ValueError: x or the state has a different shape, or impl is unknown
            TypeError: x is not floating point, or the state has a different form
        """
        name = type(self).__name__
        x = _check_float_input(name, x, ("B", "D"), self.input_size)
        dtype = np.result_type(x.dtype, self.weight_ih.dtype)
        state = _state(name, self.cell, state, (x.shape[0], self.hidden_size), dtype)
        weights = self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        state = recurrent.step(self.cell, x, state, *weights, impl=self.impl)
        return state if self.cell.states > 1 else state[0]

    def extra_repr(self):
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class RNNCell(_Cell):
    """One step of a simple recurrent network, h_t = tanh(W_ih x + b_ih + W_hh h + b_hh).

    Call it with x [B, D] and the state h [B, H], or None for zeros. It returns the new state
    h_t [B, H]. The parameters are weight_ih [H, D], weight_hh [H, H], bias_ih [H] and bias_hh [H].

    Args:
        input_size     number D of features of x
        hidden_size    number H of features of the state
        bias           False: omit the biases b_ih and b_hh
        nonlinearity   "tanh", or "relu" for max(0, ...) instead of tanh
        impl           "sums" (loops, cannot be differentiated twice), "numpy" (array algebra) or
                       "auto" ("numpy")
        rng            seed or numpy.random.Generator for the initial values, or None for the
                       default generator

    Raises:
        ValueError: a size is not a whole number of at least 1, or the nonlinearity is neither
            "tanh" nor "relu"

    Source: slides H17, KB03.
    """

    cell = recurrent.RNN

    def __init__(
        self, input_size, hidden_size, bias=True, nonlinearity="tanh", *, impl="auto", rng=None
    ):
        check_sizes(self, single=True, input_size=input_size, hidden_size=hidden_size)
        self.cell = _rnn("RNNCell", nonlinearity)
        super().__init__(input_size, hidden_size, bias, impl=impl, rng=rng)


class GRUCell(_Cell):
    """One step of a gated recurrent unit (GRU), h_t = (1 - z) ⊙ n + z ⊙ h.

        r = σ(W_ir x + b_ir + W_hr h + b_hr)
        z = σ(W_iz x + b_iz + W_hz h + b_hz)
        n = tanh(W_in x + b_in + r ⊙ (W_hn h + b_hn))

    Call it with x [B, D] and the state h [B, H], or None for zeros. It returns the new state
    h_t [B, H]. The parameters are weight_ih [3H, D], which holds W_ir, W_iz and W_in in this order,
    and in the same form weight_hh [3H, H], bias_ih [3H] and bias_hh [3H].

    Args:
        input_size    number D of features of x
        hidden_size   number H of features of the state
        bias          False: omit all biases b
        impl          "sums" (loops), "numpy" (array algebra), "kernel" (compiled) or "auto" (the
                      faster of "numpy" and "kernel"). "sums" cannot be differentiated twice
        rng           seed or numpy.random.Generator for the initial values, or None for the default
                      generator

    Raises:
        ValueError: input_size or hidden_size is not a whole number of at least 1

    Source: Cho et al. 2014 and slide H20. As in PyTorch, z here is 1 - z of the slide.
    """

    cell = recurrent.GRU


class LSTMCell(_Cell):
    """One step of a long short-term memory (LSTM), c_t = f ⊙ c + i ⊙ g and h_t = o ⊙ tanh c_t.

        i = σ(W_ii x + b_ii + W_hi h + b_hi),   f = σ(W_if x + b_if + W_hf h + b_hf)
        g = tanh(W_ig x + b_ig + W_hg h + b_hg),   o = σ(W_io x + b_io + W_ho h + b_ho)

    Call it with x [B, D] and the state (h, c), each [B, H], or None for zeros. It returns the new
    state (h_t, c_t). The parameters are weight_ih [4H, D], which holds W_ii, W_if, W_ig and W_io in
    this order, and in the same form weight_hh [4H, H], bias_ih [4H] and bias_hh [4H].

    Args:
        input_size    number D of features of x
        hidden_size   number H of features of h and of c
        bias          False: omit all biases b
        impl          "sums" (loops), "numpy" (array algebra), "kernel" (compiled) or "auto" (the
                      faster of "numpy" and "kernel"). "sums" cannot be differentiated twice
        rng           seed or numpy.random.Generator for the initial values, or None for the default
                      generator

    Raises:
        ValueError: input_size or hidden_size is not a whole number of at least 1

    Source: Hochreiter, Schmidhuber 1997, Gers et al. 2000, and slides H20, KB04.
    """

    cell = recurrent.LSTM


def _rnn(name, nonlinearity):
    if nonlinearity not in ("tanh", "relu"):
        raise ValueError(f'{name}: nonlinearity must be "tanh" or "relu", got {nonlinearity!r}')
    return recurrent.RNN if nonlinearity == "tanh" else recurrent.RELU_RNN


# ---------------------------------------------------------------- whole sequences


class _Recurrent(Module):
    cell = None

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=True,
        dropout=0.0,
        bidirectional=False,
        *,
        impl="auto",
        rng=None,
    ):
        sizes = {"input_size": input_size, "hidden_size": hidden_size, "num_layers": num_layers}
        check_sizes(self, single=True, **sizes)
        name = type(self).__name__
        if batch_first is not True:
            raise ValueError(
                f"{name}: batch_first is always True here, with x [B, T, D], got "
                f"batch_first={batch_first!r}. Leave it out, and for PyTorch's default x [T, B, D] "
                "swap the axes of x and of y with np.swapaxes(x, 0, 1)"
            )
        check_range(name, 0, 1, dropout=dropout)
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.dropout, self.bidirectional, self.impl = bias, dropout, bidirectional, impl
        rng = generator(rng)
        self.rng = rng if dropout else None
        bound, rows = 1 / np.sqrt(max(hidden_size, 1)), self.cell.gates * hidden_size
        for layer, suffix in self._places():
            width = hidden_size * (1 + bidirectional) if layer else input_size
            shapes = {"weight_ih": (rows, width), "weight_hh": (rows, hidden_size)}
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,)} if bias else {}
            for part, shape in shapes.items():
                setattr(self, f"{part}_l{layer}{suffix}", uniform_parameter(shape, bound, rng))

    def _places(self):
        """Return a list with (layer, suffix of the parameter names) for each state, in order."""
        directions = ("", "_reverse") if self.bidirectional else ("",)
        return [(layer, suffix) for layer in range(self.num_layers) for suffix in directions]

    def _weights(self, layer, suffix):
        parts = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        return [getattr(self, f"{part}_l{layer}{suffix}", None) for part in parts]

    def forward(self, x, state=None, lengths=None):
        """Apply the layer to whole sequences, where D is input_size and H is hidden_size.

        Args:
            x         the sequences [B, T, D]
            state     initial state h [layers · directions, B, H] or, for an `nn.LSTM`, (h, c) of
                      two such arrays. None: zeros. With two directions, axis 0 contains layer 0,
                      its reverse direction, layer 1 and so on
            lengths   [B] whole numbers from 0 to T. Sequence b ends after lengths[b] steps, later
                      steps have no effect, and y is 0 there. None: all sequences have T steps

        Returns:
            (y [B, T, H · directions], state). y contains h of the last layer for every step. The
            second result is the state after the last step of each sequence, in the form of the
            initial state. The last step of the reverse direction is at the beginning of the
            sequence. With dropout, y and the state are random in training

        Raises:
            ValueError: x, the state or lengths has a different shape, lengths are not whole numbers
                from 0 to T, or impl is unknown
            TypeError: x is not floating point, or the state has a different form
        """
        name, places = type(self).__name__, self._places()
        x = _check_float_input(name, x, ("B", "T", "D"), self.input_size)
        B, T, _ = x.shape
        lengths = recurrent.check_lengths(name, lengths, B, T)
        dtype = np.result_type(x.dtype, self.weight_ih_l0.dtype)
        state = _state(name, self.cell, state, (len(places), B, self.hidden_size), dtype)
        x, outputs, last = x if x.dtype == dtype else x.astype(dtype), [], []
        for i, (layer, suffix) in enumerate(places):
            start = tuple(s[i] for s in state)
            y, end = recurrent.scan(
                self.cell,
                x,
                start,
                *self._weights(layer, suffix),
                lengths,
                suffix == "_reverse",
                self.impl,
            )
            outputs.append(y)
            last.append(end)
            # all directions of this layer have been computed
            if i + 1 == len(places) or places[i + 1][0] > layer:
                x = np.concatenate(outputs, axis=-1) if len(outputs) > 1 else outputs[0]
                outputs = []
                if layer + 1 < self.num_layers:
                    x = F.dropout(x, self.dropout, self.training, self.rng)
        state = tuple(np.stack(parts) for parts in zip(*last, strict=True))
        return x, state if self.cell.states > 1 else state[0]

    def extra_repr(self):
        options = {
            "num_layers": (self.num_layers, 1),
            "bias": (self.bias, True),
            "dropout": (self.dropout, 0.0),
            "bidirectional": (self.bidirectional, False),
        }
        shown = [f", {n}={value}" for n, (value, usual) in options.items() if value != usual]
        return f"{self.input_size}, {self.hidden_size}" + "".join(shown)


class RNN(_Recurrent):
    """A simple recurrent network over sequences, h_t = tanh(W_ih x_t + b_ih + W_hh h_{t-1} + b_hh).

    Call it with x [B, T, D] and, optionally, the initial state [layers · directions, B, H], where
    directions is 2 with bidirectional=True and otherwise 1. It returns y [B, T, H · directions] and
    the last state. With lengths [B], sequence b ends after lengths[b] steps. After the end of a
    sequence, y is 0. The last state is the state at the end of each sequence. The reverse direction
    starts at the end of the sequence, so its last state belongs to the beginning. The parameters of
    layer 0 are weight_ih_l0, weight_hh_l0, bias_ih_l0 and bias_hh_l0. For the reverse direction,
    "_reverse" is appended to these names.

        rnn = nn.RNN(3, 16)
        y, h = rnn(x)                                # x [B, T, 3] → y [B, T, 16], h [1, B, 16]
        y, h = rnn(x, lengths=n)                     # n [B], the length of each sequence

    Args:
        input_size      number D of features of x
        hidden_size     number H of features of the state
        num_layers      number of layers, each of which receives the outputs of the previous layer
        nonlinearity    "tanh", or "relu" for max(0, ...) instead of tanh
        bias            False: omit the biases b_ih and b_hh
        batch_first     must be True, because the batch is the first axis of x and y (PyTorch's
                        default is False)
        dropout         probability with which, in training, an output of a layer becomes 0 in the
                        input of the next layer
        bidirectional   True: a second network processes each sequence from its end to its beginning
        impl            "sums" (loops), "numpy" (can be differentiated more than once), "kernel"
                        (compiled) or "auto" (the faster of "numpy" and "kernel")
        rng             seed or numpy.random.Generator for the initial values and the dropout, or
                        None for the default generator

    Raises:
        ValueError: a size is not a whole number of at least 1, batch_first is not True, dropout is
            not from 0 to 1, or the nonlinearity is neither "tanh" nor "relu"
        TypeError: dropout is not a number

    Source: Elman 1990 and slides H17, KB03.
    """

    cell = recurrent.RNN

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        nonlinearity="tanh",
        bias=True,
        batch_first=True,
        dropout=0.0,
        bidirectional=False,
        *,
        impl="auto",
        rng=None,
    ):
        sizes = {"input_size": input_size, "hidden_size": hidden_size, "num_layers": num_layers}
        check_sizes(self, single=True, **sizes)
        self.cell, self.nonlinearity = _rnn("RNN", nonlinearity), nonlinearity
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            impl=impl,
            rng=rng,
        )


class GRU(_Recurrent):
    """A gated recurrent unit (GRU) over sequences, with the gates in the order r, z, n.

        h_t = (1 - z) ⊙ n + z ⊙ h_{t-1},   with r, z and n as in `nn.GRUCell`

    Call it with x [B, T, D] and, optionally, the initial state [layers · directions, B, H], where
    directions is 2 with bidirectional=True and otherwise 1. It returns y [B, T, H · directions] and
    the last state. With lengths [B], sequence b ends after lengths[b] steps, and y is 0 after its
    end. The parameters have the same names as in `nn.RNN`.

        gru = nn.GRU(3, 16)
        y, h = gru(x)                                # x [B, T, 3] → y [B, T, 16], h [1, B, 16]
        y, h = gru(more, h)                          # continues where x ended

    Args:
        input_size      number D of features of x
        hidden_size     number H of features of the state
        num_layers      number of layers, each of which receives the outputs of the previous layer
        bias            False: omit all biases
        batch_first     must be True, because the batch is the first axis of x and y (PyTorch's
                        default is False)
        dropout         probability with which, in training, an output of a layer becomes 0 in the
                        input of the next layer
        bidirectional   True: a second network processes each sequence from its end to its beginning
        impl            "sums" (loops), "numpy" (can be differentiated more than once), "kernel"
                        (compiled) or "auto" (the faster of "numpy" and "kernel")
        rng             seed or numpy.random.Generator for the initial values and the dropout, or
                        None for the default generator

    Raises:
        ValueError: a size is not a whole number of at least 1, batch_first is not True, or dropout
            is not from 0 to 1
        TypeError: dropout is not a number

    Source: Cho et al. 2014 and slide H20.
    """

    cell = recurrent.GRU


class LSTM(_Recurrent):
    """A long short-term memory (LSTM) over sequences, with the gates in the order i, f, g, o.

        c_t = f ⊙ c_{t-1} + i ⊙ g,   h_t = o ⊙ tanh c_t,   with i, f, g and o as in `nn.LSTMCell`

    Call it with x [B, T, D] and, optionally, the initial state (h, c), each
    [layers · directions, B, H], where directions is 2 with bidirectional=True and otherwise 1. It
    returns y [B, T, H · directions] and the last state (h, c). With lengths [B], sequence b ends
    after lengths[b] steps, and y is 0 after its end. The parameters have the same names as in
    `nn.RNN`.

        lstm = nn.LSTM(3, 16)
        y, (h, c) = lstm(x)                          # x [B, T, 3] → y [B, T, 16], h, c [1, B, 16]
        y, (h, c) = lstm(more, (h, c))               # continues where x ended

    Args:
        input_size      number D of features of x
        hidden_size     number H of features of h and of c
        num_layers      number of layers, each of which receives the outputs of the previous layer
        bias            False: omit all biases
        batch_first     must be True, because the batch is the first axis of x and y (PyTorch's
                        default is False)
        dropout         probability with which, in training, an output of a layer becomes 0 in the
                        input of the next layer
        bidirectional   True: a second network processes each sequence from its end to its beginning
        impl            "sums" (loops), "numpy" (can be differentiated more than once), "kernel"
                        (compiled) or "auto" (the faster of "numpy" and "kernel")
        rng             seed or numpy.random.Generator for the initial values and the dropout, or
                        None for the default generator

    Raises:
        ValueError: a size is not a whole number of at least 1, batch_first is not True, or dropout
            is not from 0 to 1
        TypeError: dropout is not a number

    Source: Hochreiter, Schmidhuber 1997, Gers et al. 2000, and slides H20, KB04.
    """

    cell = recurrent.LSTM
