"""Names that differ in PyTorch, in one table for error messages and for a page of the course.

Each line contains PyTorch's way and the equivalent here. Errors show the line when code asks a
Tensor, a function or a layer for PyTorch's name, and `lectures/from_pytorch.md` shows all lines.
`tests/mistakes/test_hints.py` runs both sides of each line and compares the results.
"""

import re
import sys
from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from importlib.util import find_spec
from inspect import isfunction, signature
from typing import NamedTuple, TypeVar

import numpy as np

from tinyattn.engine import other_names

Function = TypeVar("Function", bound=Callable)


class Hint(NamedTuple):
    """PyTorch's way, the equivalent here, and a note."""

    theirs: str
    ours: str
    note: str = ""

    def __str__(self):
        note = f" ({self.note})" if self.note else ""
        if self.ours == "nothing":
            return f"PyTorch's {self.theirs} has no counterpart here{note}"
        return f"PyTorch's {self.theirs} is {self.ours} here{note}"


# names that users look for on a Tensor x
METHODS = {
    "view": Hint("x.view(3, 2)", "x.reshape(3, 2)"),
    "view_as": Hint("x.view_as(y)", "x.reshape(y.shape)"),
    "reshape_as": Hint("x.reshape_as(y)", "x.reshape(y.shape)"),
    "permute": Hint("x.permute(1, 0)", "x.transpose(1, 0)"),
    "t": Hint("x.t()", "x.T"),
    "unsqueeze": Hint("x.unsqueeze(0)", "np.expand_dims(x, 0)", "or x[None]"),
    "masked_fill": Hint("x.masked_fill(m, 0)", "np.where(m, 0, x)"),
    "masked_select": Hint("x.masked_select(m)", "x[m]"),
    "clone": Hint("x.clone()", "x.copy()"),
    "numel": Hint("x.numel()", "x.size"),
    "nelement": Hint("x.nelement()", "x.size"),
    "dim": Hint("x.dim()", "x.ndim"),
    "ndimension": Hint("x.ndimension()", "x.ndim"),
    "expand": Hint("x.expand(4, 2, 3)", "np.broadcast_to(x, (4, 2, 3))"),
    "expand_as": Hint("x[0].expand_as(x)", "np.broadcast_to(x[0], x.shape)"),
    "tile": Hint("x.tile(2, 1)", "np.tile(x, (2, 1))"),
    "repeat_interleave": Hint("x.repeat_interleave(2, dim=0)", "x.repeat(2, axis=0)"),
    "float": Hint("x.float()", "x.astype(np.float32)"),
    "double": Hint("x.double()", "x.astype(np.float64)"),
    "half": Hint("x.half()", "x.astype(np.float16)"),
    "long": Hint("x.long()", "x.astype(np.int64)"),
    "int": Hint("x.int()", "x.astype(np.int32)"),
    "bool": Hint("x.bool()", "x.astype(bool)"),
    "type": Hint("x.type(torch.float64)", "x.astype(np.float64)"),
    "type_as": Hint("x.type_as(y)", "x.astype(y.dtype)"),
    "to": Hint("x.to(torch.float64)", "x.astype(np.float64)", "there is only the CPU"),
    "cpu": Hint("x.cpu()", "x", "there is only the CPU, so leave it out"),
    "cuda": Hint("x.cuda()", "x", "there is only the CPU, so leave it out"),
    "device": Hint("x.device", '"cpu"', "there is only the CPU, so leave it out"),
    "contiguous": Hint("x.contiguous()", "x", "every array can be reshaped, so leave it out"),
    "requires_grad_": Hint("x.requires_grad_()", "ta.tensor(x, requires_grad=True)"),
    "retain_grad": Hint("h.retain_grad()", "ta.gradients(y, [h])", "h is an intermediate result"),
    "is_leaf": Hint("x.is_leaf", "x._operation is None"),
    "grad_fn": Hint("x.grad_fn", "x._operation"),
    "pow": Hint("x.pow(2)", "x**2"),
    "square": Hint("x.square()", "x**2"),
    "sin": Hint("x.sin()", "np.sin(x)"),
    "cos": Hint("x.cos()", "np.cos(x)"),
    "sigmoid": Hint("x.sigmoid()", "F.sigmoid(x)"),
    "relu": Hint("x.relu()", "F.relu(x)"),
    "softmax": Hint("x.softmax(-1)", "F.softmax(x, axis=-1)"),
    "log_softmax": Hint("x.log_softmax(-1)", "F.log_softmax(x, axis=-1)"),
    "logsumexp": Hint("x.logsumexp(-1)", "F.logsumexp(x, axis=-1)"),
    "norm": Hint("x.norm()", "np.linalg.norm(x)"),
    "inverse": Hint("s.inverse()", "np.linalg.inv(s)"),
    "det": Hint("s.det()", "np.linalg.det(s)"),
    "matmul": Hint("x.matmul(x.T)", "x @ x.T"),
    "mm": Hint("x.mm(x.T)", "x @ x.T"),
    "bmm": Hint("b.bmm(b.mT)", "b @ b.mT"),
    "mv": Hint("x.mv(x[0])", "x @ x[0]"),
    "add": Hint("x.add(y)", "x + y"),
    "sub": Hint("x.sub(y)", "x - y"),
    "mul": Hint("x.mul(y)", "x * y"),
    "div": Hint("x.div(y)", "x / y"),
    "neg": Hint("x.neg()", "-x"),
    "add_": Hint("x.add_(y)", "x = x + y", "for a parameter inside no_grad(): p += y"),
    "sub_": Hint("x.sub_(y)", "x = x - y", "for a parameter inside no_grad(): p -= y"),
    "mul_": Hint("x.mul_(y)", "x = x * y", "for a parameter inside no_grad(): p *= y"),
    "zero_": Hint("x.zero_()", "x[...] = 0"),
    "fill_": Hint("x.fill_(7)", "x[...] = 7"),
    "copy_": Hint("x.copy_(y)", "x[...] = y"),
    "clamp": Hint("x.clamp(0, 1)", "x.clip(0, 1)"),
    "amax": Hint("x.amax(1)", "x.max(axis=1)"),
    "amin": Hint("x.amin(1)", "x.min(axis=1)"),
    "eq": Hint("x.eq(y)", "x == y"),
    "gt": Hint("x.gt(y)", "x > y"),
    "lt": Hint("x.lt(y)", "x < y"),
    "isnan": Hint("x.isnan()", "np.isnan(x)"),
    "gather": Hint("x.gather(1, i)", "np.take_along_axis(x, i, axis=1)"),
    "index_select": Hint("x.index_select(0, j)", "x[j]"),
    "scatter_add": Hint("x.scatter_add(0, ...)", "graph.segment_sum(values, ids, n)"),
    "topk": Hint("x.topk(2).values", "-np.sort(-x)[..., :2]"),
    "chunk": Hint("x.chunk(3, 1)[0]", "np.split(x, 3, axis=1)[0]"),
    "split": Hint(
        "x.split(1, 1)[0]", "np.split(x, 3, axis=1)[0]", "give the number of parts, not their size"
    ),
    "unbind": Hint("x.unbind(0)[0]", "x[0]", "a loop over x gives all of them"),
    "flip": Hint("x.flip(0)", "np.flip(x, 0)"),
    "roll": Hint("x.roll(1, 0)", "np.roll(x, 1, 0)"),
    "tril": Hint("x.tril()", "np.tril(x)"),
    "triu": Hint("x.triu()", "np.triu(x)"),
    "new_zeros": Hint("x.new_zeros(2)", "np.zeros(2, x.dtype)"),
    "cat": Hint("torch.cat([x, x])", "np.concatenate([x, x])"),
    "values": Hint("x.max(1).values", "x.max(axis=1)", "x.sort() also returns the values only"),
    "indices": Hint("x.max(1).indices", "x.argmax(axis=1)", "for x.sort() it is x.argsort()"),
}

# names that users look for on a module
MODULES = {
    "to": Hint("model.to(torch.float64)", "model.astype(np.float64)", "there is only the CPU"),
    "cpu": Hint("model.cpu()", "model", "there is only the CPU, so leave it out"),
    "cuda": Hint("model.cuda()", "model", "there is only the CPU, so leave it out"),
    "float": Hint("model.float()", "model.astype(np.float32)"),
    "double": Hint("model.double()", "model.astype(np.float64)"),
    "half": Hint("model.half()", "model.astype(np.float16)"),
    "type": Hint("model.type(torch.float64)", "model.astype(np.float64)"),
    "buffers": Hint("model.buffers()", "[b for _, b in model.named_buffers()]"),
    "register_buffer": Hint('model.register_buffer("m", m)', "model.m = nn.Buffer(m)"),
    "register_parameter": Hint('model.register_parameter("p", p)', "model.p = p"),
    "add_module": Hint('model.add_module("first", layer)', "model.first = layer"),
    "compile": Hint(
        "model.compile()",
        "ta.inference.compile(model)",
        "returns a compiled copy, and the model stays as it is",
    ),
}

# keyword arguments of functions, layers and optimizers
KEYWORDS = {
    "dim": Hint("F.softmax(x, dim=-1)", "F.softmax(x, axis=-1)"),
    "dims": Hint("torch.flip(x, dims=(0,))", "np.flip(x, axis=(0,))"),
    "keepdim": Hint("x.sum(1, keepdim=True)", "x.sum(1, keepdims=True)"),
    "unbiased": Hint("x.var(1, unbiased=True)", "x.var(1, ddof=1)", "ddof defaults to 0"),
    "correction": Hint("x.std(1, correction=1)", "x.std(1, ddof=1)", "ddof defaults to 0"),
    "descending": Hint("x.sort(descending=True).values", "-np.sort(-x)"),
    "is_causal": Hint(
        "F.scaled_dot_product_attention(b, b, b, is_causal=True)",
        "F.scaled_dot_product_attention(b, b, b, causal=True)",
    ),
    "attn_mask": Hint(
        "F.scaled_dot_product_attention(b, b, b, attn_mask=keep)",
        "F.scaled_dot_product_attention(b, b, b, mask=keep)",
        "True means attend, everywhere. PyTorch's layers use the opposite convention for a bool "
        "mask, so there it is mask=~attn_mask. Numbers that are added to the scores are bias=",
    ),
    "key_padding_mask": Hint(
        "attention(b, b, b, key_padding_mask=padding)[0]",
        "attention(b, b, b, mask=~padding[:, None, :])[0]",
        "True means attend",
    ),
    "src_key_padding_mask": Hint(
        "encoder(b, src_key_padding_mask=padding)",
        "encoder(b, mask=~padding[:, None, :])",
        "True means attend. In nn.Transformer, the argument is src_mask=",
    ),
    "tgt_key_padding_mask": Hint(
        "decoder(b, b, tgt_key_padding_mask=padding)",
        "decoder(b, b, mask=~padding[:, None, :])",
        "True means attend. In nn.Transformer, the argument is tgt_mask=",
    ),
    "memory_key_padding_mask": Hint(
        "decoder(b, b, memory_key_padding_mask=padding)",
        "decoder(b, b, memory_mask=~padding[:, None, :])",
        "True means attend",
    ),
    "src_mask": Hint(
        "encoder(b, src_mask=hidden)", "encoder(b, mask=~hidden)", "True means attend"
    ),
    "tgt_mask": Hint(
        "decoder(b, b, tgt_mask=hidden)", "decoder(b, b, mask=~hidden)", "True means attend"
    ),
    "tgt_is_causal": Hint(
        "decoder(b, b, tgt_mask=later, tgt_is_causal=True)", "decoder(b, b, causal=True)"
    ),
    "dropout_p": Hint(
        "F.scaled_dot_product_attention(b, b, b, dropout_p=0.0)",
        "F.scaled_dot_product_attention(b, b, b)",
        "dropout of weights: nn.MultiheadAttention(d, heads, dropout=0.1)",
    ),
    "inplace": Hint(
        "F.relu(x, inplace=True)",
        "F.relu(x)",
        "leave it out, because every operation returns a new tensor",
    ),
    "device": Hint(
        'torch.tensor([1.0, 2.0], device="cpu")',
        "ta.tensor([1.0, 2.0])",
        "there is only the CPU, so leave it out",
    ),
    "dtype": Hint(
        "torch.nn.Linear(3, 2, dtype=torch.float64)", "nn.Linear(3, 2).astype(np.float64)"
    ),
    "batch_first": Hint(
        "torch.nn.TransformerEncoderLayer(4, 2, batch_first=True)",
        "nn.TransformerEncoderLayer(4, 2)",
        "the batch is the first axis everywhere, so leave it out",
    ),
    "edge_index": Hint(
        "conv(x, edge_index)",
        "conv(x, graph.Graph(edge_index[0], edge_index[1], len(x)))",
        "edges run from row 0 to row 1, as in PyTorch Geometric",
    ),
    "retain_graph": Hint(
        "y.backward(retain_graph=True)",
        "(a + b).backward()",
        "backward frees the graph, so add up the losses, or compute y again",
    ),
    "size_average": Hint(
        "F.mse_loss(x, y, size_average=True)", 'F.mse_loss(x, y, reduction="mean")'
    ),
    "amsgrad": Hint(
        "optim.Adam(p, amsgrad=False)", "optim.Adam(p)", "this variant is not implemented"
    ),
    "fused": Hint(
        "optim.Adam(p, fused=True)",
        "optim.Adam(p)",
        "large models use one compiled pass automatically",
    ),
    "foreach": Hint("optim.SGD(p, foreach=True)", "optim.SGD(p)", "leave it out"),
    "maximize": Hint("optim.SGD(p, maximize=True)", "optim.SGD(p)", "minimize -loss instead"),
    "num_warmup_steps": Hint(
        "schedule(optimizer, num_warmup_steps=100)", "optim.WarmupLR(optimizer, 100)"
    ),
    "input": Hint("F.relu(input=x)", "F.relu(x)", "the first argument is called x"),
}

# Names that users look for in the package, nn, F or optim. Other names are looked up in NumPy.
FUNCTIONS = {
    "cat": Hint("torch.cat([x, y])", "np.concatenate([x, y])"),
    "stack": Hint("torch.stack([x, y])", "np.stack([x, y])"),
    "randn": Hint("torch.randn(2, 3)", "np.random.default_rng(0).normal(size=(2, 3))"),
    "rand": Hint("torch.rand(2, 3)", "np.random.default_rng(0).random((2, 3))"),
    "randint": Hint("torch.randint(5, (2,))", "np.random.default_rng(0).integers(5, size=2)"),
    "manual_seed": Hint("torch.manual_seed(0)", "ta.seed(0)"),
    "from_numpy": Hint("torch.from_numpy(array)", "ta.tensor(array)", "which copies the array"),
    "is_tensor": Hint("torch.is_tensor(x)", "isinstance(x, ta.Tensor)"),
    "FloatTensor": Hint("torch.FloatTensor([1, 2])", "ta.tensor([1.0, 2.0])"),
    "LongTensor": Hint("torch.LongTensor([1, 2])", "ta.tensor([1, 2])"),
    "autograd": Hint("torch.autograd.grad(y, [x])", "ta.gradients(y, [x])"),
    "device": Hint('torch.device("cpu")', "nothing", "there is only the CPU"),
    "cuda": Hint("torch.cuda", "nothing", "there is only the CPU"),
    "clip_grad_norm_": Hint("torch.nn.utils.clip_grad_norm_(p, 1)", "optim.clip_grad_norm(p, 1)"),
    "lr_scheduler": Hint(
        "optim.lr_scheduler.CosineAnnealingLR(o, 10)",
        "optim.CosineLR(o, 10)",
        "there are also WarmupLR, NoamLR, StepLR and LambdaLR",
    ),
    "utils": Hint(
        "torch.nn.utils.rnn.pad_sequence(ids, True)",
        "data.tokenizers.padded(ids)[0]",
        "this pads token ids. Use lstm(x, lengths=n) instead of packed sequences, data.batches "
        "instead of DataLoader, and optim.clip_grad_norm(p, 1) for clipping",
    ),
    "LogSoftmax": Hint("nn.LogSoftmax(-1)(x)", "F.log_softmax(x, axis=-1)"),
    "NLLLoss": Hint("nn.NLLLoss()(x, c)", "F.nll_loss(x, c)"),
    "ParameterList": Hint(
        "self.both = nn.ParameterList([p, q])",
        "self.p, self.q = p, q",
        "each parameter in an attribute of its own, because nn.ModuleList holds only modules",
    ),
    "functional": Hint("torch.nn.functional", "tinyattn.functional"),
    "softmin": Hint("F.softmin(x, dim=-1)", "F.softmax(-x, axis=-1)"),
    "matmul": Hint("torch.matmul(x, x.T)", "x @ x.T"),
}

# the same name or habit in both libraries, but different behaviour
DIFFERENT = {
    "repeat": Hint("x.repeat(2, 1)", "np.tile(x, (2, 1))", "x.repeat(2, axis=0) repeats each row"),
    "std": Hint("x.std()", "x.std(ddof=1)", "x.std() and x.var() divide by n here, as in NumPy"),
    "var": Hint("x.var(0)", "x.var(axis=0, ddof=1)", "ddof defaults to 0, as for x.std()"),
    "transpose": Hint(
        "b.transpose(1, 2)",
        "b.swapaxes(1, 2)",
        "x.transpose(...) takes all axes in their new order",
    ),
    "T": Hint(
        "b.permute(2, 1, 0)", "b.T", "all axes are reversed, but b.mT swaps only the last two"
    ),
    "size": Hint("x.size(0)", "x.shape[0]", "x.size is the number of elements"),
    "sort": Hint("x.sort().values", "x.sort()", "the order is x.argsort()"),
    "min": Hint("torch.minimum(x, y)", "np.minimum(x, y)", "functions of two tensors are NumPy's"),
    "functions": Hint(
        "torch.exp(x)",
        "np.exp(x)",
        "functions of one tensor are NumPy's too, and those without a derivative rule raise an "
        "error",
    ),
    "where": Hint("torch.where(m, x, 0.0)", "np.where(m, x, 0.0)", ""),
    "data": Hint("x.data.numpy()", "x.data", "x.data is already a NumPy array"),
    "flatten": Hint("b.flatten(1)", "b.reshape(len(b), -1)", "x.flatten() takes no axes"),
    "squeeze": Hint("x[:, :1].squeeze(1)", "x[:, :1].squeeze(axis=1)", ""),
    "norm": Hint("torch.linalg.norm(x, dim=1)", "np.linalg.norm(x, axis=1)", ""),
    "mask of attention": Hint(
        "encoder(b, src_mask=hidden)",
        "encoder(b, mask=~hidden)",
        "True means attend, everywhere, but in PyTorch's layers True means hidden",
    ),
    "a recurrent layer": Hint(
        "nn.LSTM(3, 4, batch_first=True)",
        "nn.LSTM(3, 4)",
        "x is always [B, T, D], and the state [layers · directions, B, H]",
    ),
    "padded sequences": Hint(
        "lstm(nn.utils.rnn.pack_padded_sequence(x, n, batch_first=True))", "lstm(x, lengths=n)"
    ),
    "gradients": Hint("x.grad.numpy()", "x.grad", "an array, but a Tensor after create_graph=True"),
    "a normalized row": Hint("F.normalize(x, dim=1)", "F.normalize(x, axis=1)", ""),
    "tied maxima": Hint("x.amax()", "x.max()", "tied maxima share the gradient, as in amax"),
    "tied maxima in pooling": Hint(
        "F.max_pool1d(b, 2)",
        "F.max_pool1d(b, 2)",
        "tied maxima share the gradient, but in PyTorch one of them gets all of it",
    ),
}

# functions of SciPy, called with a Tensor
SCIPY = {
    "erf": "F.erf(x)",
    "expit": "F.sigmoid(x)",
    "gammaln": "F.lgamma(x)",
    "psi": "F.digamma(x)",
}
# methods of NumPy's functions, called with a Tensor
OF_FUNCTIONS = {
    "add.at": "a + graph.segment_sum(x, i, len(a))",
    "add.reduce": "np.sum(x, axis)",
    "multiply.reduce": "np.prod(x, axis)",
    "maximum.reduce": "np.max(x, axis)",
    "minimum.reduce": "np.min(x, axis)",
    "add.accumulate": "np.cumsum(x, axis)",
}


# functions of NumPy whose PyTorch versions are methods of tensors
NUMPY_FUNCTIONS = """
    abs absolute acos acosh allclose angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh
    argwhere asin asinh atan atan2 atanh bincount bitwise_and bitwise_left_shift bitwise_not
    bitwise_or bitwise_right_shift bitwise_xor broadcast_to ceil clip conj copysign corrcoef cosh
    count_nonzero cov cross cumprod cumsum deg2rad diag diagflat diff divide dsplit equal exp exp2
    expm1 fill_diagonal fix fliplr flipud float_power floor floor_divide fmax fmin fmod frexp gcd
    greater greater_equal heaviside histogram hsplit hypot i0 imag inner isclose isfinite isinf
    isneginf isposinf isreal kron lcm ldexp less less_equal log log10 log1p log2 logaddexp
    logaddexp2 logical_and logical_not logical_or logical_xor maximum median minimum moveaxis
    multiply nan_to_num nanmean nanmedian nanquantile nansum negative nextafter nonzero not_equal
    outer positive power put quantile rad2deg real reciprocal remainder resize rot90 round select
    sign signbit sinc sinh sqrt squeeze subtract swapaxes tan tanh transpose true_divide trunc
    unique vdot vsplit where
""".split()
# Those of them that need further arguments. Functions of two numbers, such as np.divide, are not in
# this list, because `_arguments` recognizes them by their `nin`.
MORE_ARGUMENTS = """
    allclose broadcast_to clip cross dsplit fill_diagonal hsplit inner isclose kron moveaxis
    nanquantile outer put quantile resize select swapaxes vdot vsplit
""".split()
# PyTorch has these in place too, with a _ at the end of the name
IN_PLACE = """
    abs ceil clamp clip cos div exp floor log masked_fill multiply neg pow reciprocal relu round
    sigmoid sin sqrt square squeeze subtract t tan tanh transpose tril triu trunc unsqueeze
""".split()


class MissingAttribute:
    """An attribute that an object does not have. Reading it raises AttributeError with a hint.

    Args:
        whose   the object in the message, such as "a Tensor"
        name    name of the attribute
        hint    what to write instead
    """

    def __init__(self, whose, name, hint):
        self.whose, self.name, self.__doc__ = whose, name, hint  # help(Tensor) shows it

    def __get__(self, x, cls=None):
        message = f"{self.whose} has no attribute {self.name!r}: {self.__doc__}"
        raise AttributeError(message, name=self.name, obj=cls if x is None else x)


class _Names:
    """Attributes that users of PyTorch expect. An object's own attributes take precedence.

    One `__getattr__` for all names would be shorter, but would triple the time of every access to a
    slot of a tensor (in Python 3.11), and such accesses are most of the engine's work.
    """

    __slots__ = ()

    def __dir__(self):
        """Return the existing names, for editors."""
        of_classes = [vars(cls).items() for cls in type(self).__mro__]
        ours = {n for items in of_classes for n, v in items if not isinstance(v, MissingAttribute)}
        return sorted(ours | getattr(self, "__dict__", {}).keys())


class TensorTorchNames(_Names):
    """PyTorch's names for attributes of a Tensor, each with a hint."""

    __slots__ = ()


class ModuleTorchNames(_Names):
    """PyTorch's names for attributes of a module, each with a hint."""


def _arguments(name):
    """Return the arguments of NumPy's function for a hint: x, or more if it needs more."""
    if name == "where":
        return "mask, x, y"
    if getattr(getattr(np, name, None), "nin", 1) == 2:
        return "x, y"
    return "x, ..." if name in MORE_ARGUMENTS else "x"


def _fill():
    new = "operations return new tensors and change none in place, so "
    hints = {name: f"write np.{name}({_arguments(name)})" for name in NUMPY_FUNCTIONS}
    hints |= {name: str(hint) for name, hint in METHODS.items()}
    hints |= {f"{name}_": f"{new}{hints[name]}" for name in IN_PLACE}
    hints |= other_names.TENSOR_NAMES
    for cls, whose, table in (
        (TensorTorchNames, "a Tensor", hints),
        (ModuleTorchNames, "a module", MODULES | other_names.MODULE_NAMES),
    ):
        for name, hint in table.items():
            setattr(cls, name, MissingAttribute(whose, name, str(hint)))


_fill()


def no_such_name(module, name):
    """Return the AttributeError for a name that a module lacks, with a hint where one is known.

    `module` is the module's own name, such as "tinyattn.nn".
    """
    hint = "" if name.startswith("_") or _is_file(module, name) else missing_name(name)
    return AttributeError(f"module {module!r} has no attribute {name!r}{hint}")


def no_such_attribute(whose, name, hints, x):
    """Return the AttributeError for a missing attribute of an object x, with a hint.

    `whose` is the object in the message, such as "a Graph", and `hints` is {name: hint}.
    """
    hint = f": {hints[name]}" if name in hints else ""
    return AttributeError(f"{whose} has no attribute {name!r}{hint}", name=name, obj=x)


def _is_file(module, name):
    """Return whether the module has a file `name`, which Python first looks up as an attribute."""
    package = hasattr(sys.modules[module], "__path__")
    return package and find_spec(f"{module}.{name}") is not None


def missing_name(name):
    """Return a hint for a name that a module lacks, as the end of a sentence, or "" if unknown."""
    if name in FUNCTIONS:
        return f": {FUNCTIONS[name]}"
    if name in other_names.NAMES:
        return f": {other_names.NAMES[name]}"
    elsewhere = _where_it_is(name)
    if elsewhere:
        return f": use {elsewhere}"
    if name in METHODS:
        return f": {METHODS[name]}"
    if name in np.__all__ and name not in OF_NUMPY_ALONE:
        handled = _package().engine.dispatch.HANDLED_FUNCTIONS  # this file cannot import it
        takes = ", which takes Tensors too" if getattr(np, name) in handled else ""
        return f": write np.{name}{takes}"
    nearly = get_close_matches(_plain(name), _public(), n=1, cutoff=NEARLY)
    return f": did you mean {_public()[nearly[0]]}?" if nearly else ""


OF_NUMPY_ALONE = ("test", "show_config", "info")  # users mean something else by these names
NEARLY = 0.85  # similarity in difflib of a mistyped name; one of four letters may be missing

# A name is looked for in these public modules, and the value is how users write the module.
PLACES = {
    "": "ta",
    "nn": "nn",
    "functional": "F",
    "optim": "optim",
    "graph": "graph",
    "data": "data",
    "training": "training",
    "metrics": "metrics",
    "check": "check",
    "models": "models",
    "plot": "plot",
}


def _where_it_is(name):
    """Return the public object with this name in any spelling, as in "F.huber_loss", or ""."""
    for module, short in PLACES.items():  # F.relu for "relu", and nn.ReLU for "ReLU"
        there = getattr(_package(), module) if module else _package()
        if name in public_names(there):
            return f"{short}.{name}"
    found, wanted = _public(), _plain(name)
    return found.get(wanted) or found.get(wanted.removesuffix("loss"), "")


def _package():
    return sys.modules[__name__.partition(".")[0]]


def _public():
    """Return {plain spelling: public object, as "F.huber_loss"} of all public modules."""
    package, found = _package(), {}
    for module, short in PLACES.items():
        there = getattr(package, module) if module else package
        for public in public_names(there):
            found.setdefault(_plain(public), f"{short}.{public}")
    return found


def public_names(module):
    """Return the public names of a module: its `__all__`, or its own definitions."""
    own = (n for n, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__)
    return getattr(module, "__all__", None) or [n for n in own if not n.startswith("_")]


def _plain(name):
    return name.replace("_", "").lower()


def explain(error, f, made=None):
    """Raise the error again with a hint if it reports an unknown keyword argument of f.

    If f is the constructor or the `forward` of an object, `made` is this object. f may belong to a
    base class.
    """
    start = f"{f.__qualname__}() got an unexpected keyword argument '"
    message = str(error)
    if not message.startswith(start):
        return
    name = message[len(start) :].partition("'")[0]
    whose = f.__qualname__.removesuffix(".__init__").removesuffix(".forward").lstrip("_")
    whose = whose.replace("TensorMethods", "Tensor")
    if f.__name__ in ("__init__", "forward") and made is not None:
        whose = type(made).__name__
    raise TypeError(f"{whose} takes no {name}={_instead(name, f)}") from None


def _instead(name, f):
    """Return the replacement for the argument `name` of f, as the end of a sentence."""
    if name in KEYWORDS:
        return f": {KEYWORDS[name]}"
    takes = [
        p.name
        for p in signature(f).parameters.values()
        if p.kind is not p.VAR_KEYWORD and p.name != "self"
    ]
    hint = other_names.KEYWORDS.get(name, "")
    other = re.fullmatch(r"use (\w+)=.*", hint)
    if hint and (other is None or other[1] in takes):
        return f": {hint}"
    close = get_close_matches(name, takes, 1)
    if close:
        return f": did you mean {close[0]}=?"
    if len(takes) == 1:
        return f". Its only argument is {takes[0]}"
    return f". Its arguments are {', '.join(takes)}" if takes else ": it takes no arguments"


def hint_functions(namespace, names):
    """Make functions of a public module explain arguments of other libraries.

    `namespace` is the module's globals(), in which the functions are replaced. Those of the `names`
    that are not functions of this module are left unchanged.
    """
    for name in names:
        f = namespace[name]
        if isfunction(f) and f.__module__.startswith(namespace["__name__"]):
            namespace[name] = with_torch_hints(namespace[name])


def with_torch_hints(f: Function) -> Function:
    """Return f with a hint in the error for an argument that has a different name in PyTorch."""

    @wraps(f)
    def call(*args, **options):
        try:
            return f(*args, **options)
        except TypeError as error:
            if options:
                explain(error, f, *args[:1])
            base = f"{f.__qualname__}() "
            if f.__name__ == "__init__" and str(error).startswith(base):
                # an inherited constructor has the name of the class in which it is defined
                name = type(args[0]).__name__
                message = f"{name}() {str(error)[len(base) :]}"
                if any(_is_data(x) for x in args[1:]) and "positional" in message:
                    message = called_too_early(name, message)
                raise TypeError(message) from None
            raise

    return call  # type: ignore[return-value]


def dtype_of_numbers(dtype):
    """Return the argument `dtype` of a Tensor as an np.dtype, or raise TypeError with a hint."""
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = None
    if found is None or found.kind not in "fiubc":
        advice = "Use NumPy's names, such as dtype=np.float64"
        if isinstance(dtype, bool):  # ta.tensor(x, True)
            advice = "Write requires_grad=True"
        elif isinstance(dtype, int | float | list):  # ta.tensor(1.0, 2.0)
            advice = "Several numbers go into one list, ta.tensor([1.0, 2.0])"
        raise TypeError(
            f"Tensor: dtype must be a type of numbers, such as np.float32, got dtype={dtype!r}. "
            f"{advice}"
        )
    return found


def kind_of(x):
    """Return the name of the class of x, with the library if it is PyTorch."""
    name = type(x).__name__
    return f"{name} of PyTorch" if type(x).__module__.partition(".")[0] == "torch" else name


def unknown_option(name, option, f):
    """Return the message for an argument `option` that the class `name` does not take.

    f is its constructor, whose arguments are suggested instead.
    """
    return f"{name} takes no {option}={_instead(option, f)}"


def called_too_early(name, error):
    """Return the message for nn.MSELoss(prediction, target) instead of nn.MSELoss()(...).

    `name` is the class, and `error` is the beginning of the message.
    """
    return f"{error}. Make the layer first, and then call it, as in layer = {name}(...); layer(x)"


def _is_data(x):
    return isinstance(x, np.ndarray) or hasattr(x, "requires_grad")


def explain_arguments(cls):
    """Make the constructor of a class explain arguments of PyTorch."""
    name = "__init__"  # a variable, because with a literal editors would lose the arguments
    if name in vars(cls):
        setattr(cls, name, with_torch_hints(vars(cls)[name]))


def without_hints(f):
    """Return the function that `with_torch_hints` wrapped, or f itself if f is not wrapped."""
    return f.__wrapped__ if getattr(f, "__code__", None) is _CODE else f


_CODE = with_torch_hints(without_hints).__code__
