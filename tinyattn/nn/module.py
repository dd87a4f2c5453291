"""The base class `Module`, with attributes that hold parameters, buffers and other modules.

Unlike in PyTorch, a module need not register its parts. Every attribute that is a `Parameter`, a
`Buffer` or a `Module` belongs to it. Names are the attribute names joined by dots, as in PyTorch.
"""

from contextlib import contextmanager
from inspect import Parameter as Parameter_
from inspect import Signature

import numpy as np

from tinyattn.engine import torch_hints
from tinyattn.engine.autograd import Tensor
from tinyattn.engine.ranges import type_with_article
from tinyattn.nn.summary import Summary, tree


class StateError(KeyError):
    """An error for saved values that do not fit a module.

    Unlike a plain KeyError, it shows its message line by line.
    """

    def __str__(self):
        return self.args[0]


class Parameter(Tensor):
    """A tensor that is trained as part of a module.

    Args:
        data            initial values of the parameter
        dtype           dtype of the parameter. If None, it is the dtype of an array, and float32
                        for Python numbers
        requires_grad   False: the parameter is frozen

    Raises:
        TypeError: data are not real numbers, or the dtype of the parameter would not be floating
            point (unless it is frozen), for example for an array of whole numbers
    """

    __slots__ = ()

    def __init__(self, data, dtype=None, requires_grad=True):
        super().__init__(data, dtype, requires_grad)


class Buffer(Tensor):
    """A tensor that is saved with a module but not trained, such as a running average.

    Args:
        data            values of the buffer
        dtype           dtype of the buffer. If None, it is the dtype of an array, float32 for
                        Python floats, and int64 for Python integers (float32 if requires_grad is
                        True)
        requires_grad   True: the buffer gets a gradient, which is unusual

    Raises:
        TypeError: data are not real numbers or booleans, or requires_grad is True and the dtype of
            the buffer would not be floating point
    """

    __slots__ = ()


SAVED_KINDS = (Parameter, Buffer)  # the classes that are saved with a module


class Module(torch_hints.ModuleTorchNames):
    """The base class of all layers and models.

    A subclass creates its parts in `__init__` and computes its output in `forward`:

        class TwoLayers(nn.Module):
            def __init__(self, d):
                self.first, self.second = nn.Linear(d, d), nn.Linear(d, 1)

            def forward(self, x):
                return self.second(np.tanh(self.first(x)))

    Calling the module, as in `TwoLayers(3)(x)`, calls `forward`. Put several modules into an
    `nn.ModuleList` or `nn.ModuleDict`, because an attribute that is a list or dictionary of modules
    raises TypeError.
    """

    training = True

    def __init__(self, *arguments, **options):
        name = type(self).__name__
        if type(self).__init__ is not Module.__init__ and (arguments or options):
            given = [f"{option}=" for option in options]
            given += [f"a value of type {type(a).__name__}" for a in arguments]
            raise TypeError(
                f"{name}: super().__init__ takes no arguments, got {given[0]}. Write "
                "super().__init__(), and keep values in attributes such as self.size"
            )
        for option in options:
            raise TypeError(torch_hints.unknown_option(name, option, self.__init__))
        if arguments and not hasattr(arguments[0], "shape"):
            raise TypeError(f"{name}: expected no arguments, got {arguments[0]!r}. Write {name}()")
        if arguments:
            raise TypeError(torch_hints.called_too_early(name, f"{name}() takes no arguments"))

    # the arguments above exist only for the error messages
    __init__.__signature__ = Signature([Parameter_("self", Parameter_.POSITIONAL_OR_KEYWORD)])

    def forward(self, *inputs, **options):
        """Compute the output from `inputs` and `options`. Every subclass defines this method.

        Without such a definition, NotImplementedError is raised.
        """
        raise NotImplementedError(f"{type(self).__name__} has no forward(self, ...). Define one")

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        for name in ("_init_", "__int__", "__init", "init__", "_init"):
            if name in vars(cls) and "__init__" not in vars(cls):
                ends = "" if name == "__int__" else ", with two _ at each end"
                raise TypeError(f"{cls.__name__} defines {name}. Did you mean __init__{ends}?")
        if cls.__module__.startswith("tinyattn."):
            torch_hints.explain_arguments(cls)

    def __call__(self, *inputs, **options):
        try:
            y = self.forward(*inputs, **options)
        except TypeError as error:
            if options:
                torch_hints.explain(error, self.forward, self)
            _name_the_class(error, self)
            raise
        if y is None:
            raise TypeError(
                f"{type(self).__name__}.forward returned None. Did you forget its `return`?"
            )
        return y

    def __setattr__(self, name, value):
        _refuse_container(self, name, value)
        _keep_kind(self, name, value)
        if type(value) is Tensor and value.requires_grad and value._operation is None:
            raise TypeError(
                f"{type(self).__name__}.{name} is a tensor that requires a gradient, but it would "
                "be neither trained nor saved. Make it an nn.Parameter, or .detach() it"
            )
        super().__setattr__(name, value)

    # ---- parts

    def named_children(self):
        """Yield (attribute name, module) for the modules directly inside this module.

        An attribute that is a list or dictionary of modules raises TypeError.
        """
        for name, value in vars(self).items():
            if isinstance(value, Module):
                yield name, value
            else:
                # a list may have been filled after it was assigned
                _refuse_container(self, name, value)

    def children(self):
        """Yield the modules directly inside this module."""
        return (m for _, m in self.named_children())

    def named_modules(self, prefix=""):
        """Yield (name, module) for this module and all modules inside, each once, outer ones first.

        Args:
            prefix   name of this module, with which all other names begin, by default ""
        """
        seen, todo = set(), [(prefix, self)]
        while todo:
            name, module = todo.pop()
            if id(module) in seen:
                continue
            seen.add(id(module))
            yield name, module
            inside = [(f"{name}.{n}".lstrip("."), m) for n, m in module.named_children()]
            todo += reversed(inside)

    def modules(self):
        """Yield this module and all modules inside it, each once, outer ones first."""
        return (m for _, m in self.named_modules())

    def _named_tensors(self, kind):
        """Return all pairs (name, tensor) with tensors of the class `kind`, or of these classes.

        A tensor that is used twice appears under both names.
        """

        def visit(module, prefix):
            for name, value in vars(module).items():
                if isinstance(value, kind):
                    yield prefix + name, value
            for name, child in module.named_children():
                yield from visit(child, f"{prefix}{name}.")

        return visit(self, "")

    def named_parameters(self):
        """Yield (name, parameter) for each parameter, and only once if several modules share it.

        A name consists of attribute names joined by dots, such as "layers.0.weight". An attribute
        that is a list or dictionary of modules or parameters raises TypeError.
        """
        seen = set()
        for name, p in self._named_tensors(Parameter):
            if id(p) not in seen:
                seen.add(id(p))
                yield name, p

    @torch_hints.with_torch_hints
    def parameters(self):
        """Yield all parameters, each once. Pass them to an optimizer."""
        return (p for _, p in self.named_parameters())

    def named_buffers(self):
        """Yield (name, buffer) for each `nn.Buffer`, a tensor that is saved but not trained."""
        return self._named_tensors(Buffer)

    def num_parameters(self):
        """Return the number of elements of all parameters, including frozen ones.

        A parameter that several modules share counts once.
        """
        return sum(p.size for p in self.parameters())

    # ---- saving and loading

    def state_dict(self):
        """Return {name: array} with copies of all parameters and buffers, named as in PyTorch.

        A tensor that several modules share appears under each of its names.
        """
        return {name: t.data.copy() for name, t in self._named_tensors(SAVED_KINDS)}

    @torch_hints.with_torch_hints
    def load_state_dict(self, state, assign=False):
        """Load the values of a state dict, and return the module.

        Values are copied and cast to the dtype of the parameter. To load a part of a model, write
        model.load_state_dict(model.state_dict() | part).

        Args:
            state    {name: values}, where values are anything that np.asarray accepts, or tensors
                     of PyTorch
            assign   True: use the array itself instead of a copy if it is contiguous, writeable and
                     of the right dtype. Do not write to it afterwards

        Raises:
            TypeError: state is not a dictionary
            KeyError: names are missing or unexpected, shapes differ, or values are not real
                numbers. The error lists all of these names, and nothing is changed
        """
        if not hasattr(state, "items"):
            raise TypeError(
                "load_state_dict: expected a dictionary of arrays, such as model.state_dict() or "
                f"ta.load(path), got {type(state).__name__}"
            )
        own = dict(self._named_tensors(SAVED_KINDS))
        arrays = {n: _array(v) for n, v in state.items()}
        missing = [f"missing: {n} {t.shape}" for n, t in own.items() if n not in arrays]
        problems = [f"unexpected: {n} {a.shape}" for n, a in arrays.items() if n not in own]
        problems += [
            f"shape: {n} is {own[n].shape} here, {a.shape} in the state dict"
            for n, a in arrays.items()
            if n in own and own[n].shape != a.shape
        ]
        problems += [
            f"values: {n} must consist of real numbers, got {a.dtype}"
            for n, a in arrays.items()
            if n in own and a.dtype.kind in "USOMmc"
        ]
        if missing or problems:
            advice = (
                [] if problems else ["To load a part of a model, pass model.state_dict() | part"]
            )
            raise StateError(
                f"load_state_dict of {type(self).__name__}, nothing was changed:\n  "
                + "\n  ".join(missing + problems + advice)
            )
        cast = {
            n: a.astype(own[n].dtype, copy=not (assign and _can_be_owned(a)))
            for n, a in arrays.items()
        }
        for name, array in cast.items():
            own[name].data = array
        return self

    # ---- modes

    def train(self, mode=True):
        """Switch this module and all modules inside to training mode, and return this module.

        Args:
            mode   False: switch to evaluation mode instead

        Raises:
            TypeError: mode is not a bool, for example because it is data
        """
        if not isinstance(mode, bool | np.bool_):
            found = repr(mode) if isinstance(mode, int | str) else torch_hints.kind_of(mode)
            raise TypeError(
                f"{type(self).__name__}.train: mode must be True or False, got {found}. To train "
                "on data, write a loop with an optimizer, because train() only switches the mode"
            )
        for module in self.modules():
            module.training = mode
        return self

    def eval(self):
        """Switch this module and all modules inside to evaluation mode, and return this module."""
        return self.train(False)

    @torch_hints.with_torch_hints
    def zero_grad(self):
        """Set the gradients of all parameters of this module to None."""
        for p in self.parameters():
            p.grad = None

    def apply(self, f):
        """Call a function with each module inside and then with this module. Return this module.

            model.apply(lambda m: nn.init.zeros_(m.bias) if isinstance(m, nn.Linear) else None)

        Args:
            f   function of a module, whose result is ignored
        """
        for module in self.children():
            module.apply(f)
        f(self)
        return self

    def requires_grad_(self, requires_grad=True):
        """Make all parameters trainable, or freeze them, and return the module.

        Args:
            requires_grad   True: the parameters are trainable. False: they are frozen

        Raises:
            TypeError: requires_grad is not a bool
        """
        if not isinstance(requires_grad, bool | np.bool_):
            short = isinstance(requires_grad, int | float | str)
            found = repr(requires_grad) if short else type_with_article(requires_grad)
            raise TypeError(
                f"{type(self).__name__}.requires_grad_: requires_grad must be True or False, got "
                f"{found}. Write requires_grad_(False) to freeze the parameters"
            )
        for p in self.parameters():
            p.requires_grad = requires_grad
        return self

    def astype(self, dtype):
        """Cast floating-point parameters and buffers in place, and return the module.

        Their gradients are set to None.

        Args:
            dtype   a floating-point dtype, such as np.float64

        Raises:
            TypeError: dtype is not a floating-point dtype. Nothing is changed
        """
        if dtype is None or np.dtype(dtype).kind != "f":  # np.dtype(None) would be float64
            raise TypeError(
                f"{type(self).__name__}.astype: dtype must be floating point, such as np.float64, "
                f"got {dtype if dtype is None else np.dtype(dtype)}"
            )
        for t in {id(t): t for _, t in self._named_tensors(SAVED_KINDS)}.values():
            if t.dtype.kind == "f":
                t.data, t.grad = t.data.astype(dtype), None
        return self

    # ---- display

    def summary(self, *inputs, **options):
        """Return a table of layers, output shapes and numbers of parameters, which can be printed.

        To find the shapes, the module is called once in evaluation mode without gradients. Without
        inputs and options, it is not called, and the table has no shapes.

        Args:
            inputs    arguments of this call, such as a batch of examples (but not its shape)
            options   keyword arguments of this call

        Raises:
            TypeError: an input is a tuple of whole numbers, such as the shape of a batch
        """
        for x in inputs:
            if isinstance(x, tuple) and x and all(isinstance(n, int | np.integer) for n in x):
                raise TypeError(
                    f"{type(self).__name__}.summary: expected a batch of examples, got the tuple "
                    f"{x}. If it is the shape of a batch, pass np.zeros({x}, np.float32)"
                )
        return Summary(self, inputs, options)

    def extra_repr(self):
        """Return the text, such as the sizes, that a printed module shows after its class name."""
        return ""

    def __repr__(self):
        return tree(self)

    def _repr_html_(self):
        return Summary(self)._repr_html_()


@contextmanager
def eval_mode(module):
    """Put a module into evaluation mode inside the block, and restore all modes afterwards."""
    modes = [(m, m.training) for m in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for m, mode in modes:
            m.training = mode


def _name_the_class(error, module):
    """Replace a private base class, such as _Cell, in a message about the arguments of forward."""
    base, _, name = getattr(type(module).forward, "__qualname__", "").rpartition(".")
    if base.startswith("_") and str(error).startswith(f"{base}.{name}() "):
        error.args = (type(module).__name__ + str(error).removeprefix(base),)


def _refuse_container(module, name, value):
    if isinstance(value, list | tuple | dict | set) and _hides(value):
        raise TypeError(
            f"{type(module).__name__}.{name} is {type_with_article(value)} of modules or "
            "parameters, which would not be trained. Put modules into "
            f"nn.{'ModuleDict' if isinstance(value, dict) else 'ModuleList'}, and each parameter "
            "into its own attribute"
        )


def _keep_kind(module, name, value):
    """Raise for a value, other than None, that would silently replace a parameter or buffer."""
    old = vars(module).get(name)
    kind = next((k for k in SAVED_KINDS if isinstance(old, k)), None)
    if kind is not None and value is not None and not isinstance(value, kind):
        kept = "trained or saved" if kind is Parameter else "saved"
        of = f" of shape {value.shape}" if hasattr(value, "shape") else ""
        raise TypeError(
            f"{type(module).__name__}.{name} is a {kind.__name__}, but the new value is of type "
            f"{type(value).__name__}{of} and would not be {kept}. Write {name}.data = array to "
            f"change its values, or nn.{kind.__name__}(array) to make a new one"
        )


def _hides(value):
    """Return whether a container holds modules or parameters, at any depth."""
    for v in value.values() if isinstance(value, dict) else value:
        if isinstance(v, Module | Parameter):
            return True
        if isinstance(v, list | tuple | dict | set) and _hides(v):
            return True
    return False


def _can_be_owned(array):
    """Return whether a parameter can hold the array itself: contiguous and writeable."""
    return array.flags.c_contiguous and array.flags.writeable and array.flags.aligned


def _array(value):
    if isinstance(value, Tensor):
        return value.data
    if hasattr(value, "detach"):  # np.asarray rejects a PyTorch tensor that requires a gradient
        value = value.detach()
    return np.asarray(value)
