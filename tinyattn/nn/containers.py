"""Modules that hold other modules, and `Identity`, which returns its input."""

from contextlib import suppress

from tinyattn.engine import torch_hints
from tinyattn.engine.convert import as_tensor
from tinyattn.engine.ranges import check_range, type_with_article
from tinyattn.nn.module import Module


class Identity(Module):
    """A layer that returns its input, y = x, as a placeholder for another layer.

    Args:
        arguments   arguments of the layer that Identity replaces, which are ignored
        options     keyword arguments of that layer, also ignored
    """

    def __init__(self, *arguments, **options):
        pass

    def forward(self, x):
        """Return x unchanged, as a Tensor. Shape: x [...] → the same."""
        return as_tensor(x)


LAYERS = {  # the layers of functions, for messages
    "elu": "ELU",
    "gelu": "GELU",
    "leaky_relu": "LeakyReLU",
    "relu": "ReLU",
    "sigmoid": "Sigmoid",
    "silu": "SiLU",
    "softmax": "Softmax",
}


class Sequential(Module):
    """A sequence of modules, each of which is applied to the output of the previous one.

    The names of the modules are "0", "1" and so on.

    Args:
        modules   the modules, or a single list or tuple of them. For other iterables, write
                  Sequential(*modules)

    Raises:
        TypeError: an entry is not a module
    """

    def __init__(self, *modules):
        if len(modules) == 1 and isinstance(modules[0], list | tuple):
            modules = modules[0]  # the call was Sequential([a, b])
        if (
            len(modules) == 1
            and not isinstance(modules[0], Module | str)
            and not callable(modules[0])
        ):
            if hasattr(modules[0], "__iter__"):
                star = "*d.values()" if isinstance(modules[0], dict) else "*modules"
                raise TypeError(
                    f"{type(self).__name__}: expected modules or a list of them, got "
                    f"{type_with_article(modules[0])}. Write {type(self).__name__}({star})"
                )
        for i, module in enumerate(modules):
            _check_module(self, i, module, star=True)
            setattr(self, str(i), module)

    def forward(self, x):
        """Apply the modules in order, the first one to x, and return the last output.

        Without modules, the result is x.
        """
        for module in self.children():
            x = module(x)
        return x

    def __len__(self):
        return sum([isinstance(m, Module) for m in vars(self).values()])

    def __iter__(self):
        return self.children()

    def __getitem__(self, i):
        found = _at(self, list(self.children()), i)
        return type(self)(found) if isinstance(i, slice) else found

    def __setitem__(self, i, module):
        """Replace the module with index i."""
        if isinstance(i, slice):
            raise TypeError(
                f"{type(self).__name__}: only one module can be replaced at a time. Pass an index "
                "instead of a slice"
            )
        _check_module(self, i, module)
        setattr(self, str(_at(self, range(len(self)), i)), module)

    def append(self, module):
        """Add `module` at the end, and return the container.

        Raises TypeError if `module` is not a module.
        """
        if isinstance(module, list | tuple):
            raise TypeError(
                f"{type(self).__name__}: append takes one module, got a {type(module).__name__}. "
                "Use extend for several modules"
            )
        _check_module(self, len(self), module)
        setattr(self, str(len(self)), module)
        return self

    def extend(self, modules):
        """Add several modules at the end, and return the container.

        Args:
            modules   an iterable of modules, such as a list or another container

        Raises:
            TypeError: modules are not an iterable of modules. Nothing is added
        """
        modules = _listed(self, "extend", modules)
        for i, module in enumerate(modules):
            _check_module(self, len(self) + i, module, star=True)
        for module in modules:
            self.append(module)
        return self

    def insert(self, i, module):
        """Insert a module, and renumber the modules after it. The result is None.

        Args:
            i        index of the module before which the new one is inserted, as in list.insert. A
                     negative number counts from the end
            module   the new module

        Raises:
            TypeError: module is not a module, or i is not a whole number
        """
        check_range(f"{type(self).__name__}.insert", whole=True, i=i)
        _check_module(self, i, module)
        modules = list(self.children())
        modules.insert(i, module)
        for k, m in enumerate(modules):
            setattr(self, str(k), m)

    def __add__(self, others):
        """Return a new container with the modules of both operands."""
        return type(self)([*self, *_listed(self, "+", others)])


class ModuleList(Sequential):
    """A list of modules, which are called by the module that holds the list.

    Args:
        modules   an iterable of modules, such as a list, but not a dictionary

    Raises:
        TypeError: modules are not an iterable of modules
    """

    def __init__(self, modules=()):
        if isinstance(modules, Module | dict | str) or not hasattr(modules, "__iter__"):
            name = type(self).__name__
            dictionary = isinstance(modules, dict)
            prefix = "nn." if type(self).__module__.startswith("tinyattn.nn") else ""
            advice = f"Write {prefix}{name}({'d.values()' if dictionary else '[a, b]'})"
            found = f"the class {modules.__name__}" if isinstance(modules, type) else None
            raise TypeError(
                f"{name}: modules must be a list of modules, got "
                f"{found or torch_hints.kind_of(modules)}. {advice}"
            )
        super().__init__(list(modules))

    def __getitem__(self, i):
        found = _at(self, list(self.children()), i)
        return ModuleList(found) if isinstance(i, slice) else found

    def forward(self, *inputs):
        """Raise NotImplementedError: a list does not define how `inputs` pass through it."""
        raise NotImplementedError(
            f"{type(self).__name__}.forward: a list only holds modules. Call its modules one by "
            "one, or put them into an nn.Sequential"
        )


def _listed(self, call, modules):
    if not hasattr(modules, "__iter__"):
        one = isinstance(modules, Module)
        advice = ". Write [module], or append(module)" if one else ""
        raise TypeError(
            f"{type(self).__name__}: {call} needs a list of modules, got {'one ' if one else ''}"
            f"{torch_hints.kind_of(modules)}{advice}"
        )
    return list(modules)


def _at(self, entries, i):
    """Return the entry or entries with index i, or raise an error if there is none."""
    try:
        return entries[i]
    except TypeError:
        raise TypeError(
            f"{type(self).__name__}: an index must be a whole number or a slice, got {i!r}"
        ) from None
    except IndexError:
        n = len(entries)
        expected = f"expected {-n} <= i < {n}" if n else "there are no modules"
        raise IndexError(f"{type(self).__name__}: {expected}, got i={i}") from None


def _check_module(self, i, module, star=False):
    if not isinstance(module, Module):
        raise TypeError(
            f"{type(self).__name__}: entry {i} must be an nn.Module, got {_found(module, star)}"
        )


def _found(module, star=False):
    """Return what was found instead of a module, and what to do, as the end of a message.

    With `star`, the module is an entry of a sequence, in which * unpacks a list.
    """
    if isinstance(module, type) and issubclass(module, Module):
        return f"the class {module.__name__}. Write {module.__name__}(...), with ()"
    layer = LAYERS.get(getattr(module, "__name__", None), "Tanh")
    advice = (
        f". For a function, use its layer, for example nn.{layer}()" if callable(module) else ""
    )
    if isinstance(module, list | tuple):
        advice = (
            f". Write * before the {type(module).__name__} to pass its modules one by one"
            if star
            else ". Put its modules into an nn.Sequential or an nn.ModuleList"
        )
    return f"{torch_hints.kind_of(module)}{advice}"


class ModuleDict(Module):
    """A dictionary of modules, which are called by the module that holds the dictionary.

        heads = nn.ModuleDict({"mass": nn.Linear(8, 1), "kind": nn.Linear(8, 5)})
        heads["kind"](x)

    Args:
        modules   dictionary {name: module}, an iterable of pairs (name, module), or None for an
                  empty dictionary

    Raises:
        TypeError: modules is neither a dictionary nor an iterable of pairs, a name is not a string,
            or a value is not a module
        KeyError: a name is empty, contains a dot, or is an attribute of every ModuleDict, such as
            "forward" or "keys"
    """

    def __init__(self, modules=None):
        self.update({} if modules is None else modules)

    def __setitem__(self, name, module):
        if not isinstance(name, str):
            raise TypeError(f"ModuleDict: names must be strings, got {name!r}")
        if not name:
            raise KeyError(
                "ModuleDict: '' cannot be a name. Choose one with at least one character"
            )
        if "." in name:
            raise KeyError(
                f"ModuleDict: {name!r} cannot be a name in a state dict, whose names are joined by "
                "dots. Choose a name without dots"
            )
        if name not in self and hasattr(self, name):
            raise KeyError(
                f"ModuleDict: {name!r} is already an attribute of ModuleDict. Choose another name"
            )
        if not isinstance(module, Module):
            raise TypeError(f"ModuleDict: {name!r} must be an nn.Module, got {_found(module)}")
        setattr(self, name, module)

    def __getitem__(self, name):
        modules = dict(self.named_children())
        if name not in modules:
            only = f"only {', '.join(modules)}" if modules else "because the dictionary is empty"
            raise KeyError(f"ModuleDict: there is no module {name!r}, {only}")
        return modules[name]

    def __delitem__(self, name):
        self.pop(name)

    def __contains__(self, name):
        return name in dict(self.named_children())

    def __iter__(self):
        return iter(self.keys())

    def __len__(self):
        return len(self.keys())

    def keys(self):
        """Return the names of the modules, in the order in which they were added."""
        return dict(self.named_children()).keys()

    def values(self):
        """Return the modules, in the order in which they were added."""
        return dict(self.named_children()).values()

    def items(self):
        """Return the pairs (name, module), in the order in which they were added."""
        return dict(self.named_children()).items()

    def update(self, modules):
        """Add modules. A module whose name exists already is replaced.

        Args:
            modules   dictionary {name: module}, or an iterable of pairs (name, module)

        Raises:
            TypeError: modules is neither a dictionary nor an iterable of pairs, a name is not a
                string, or a value is not a module
            KeyError: a name is empty, contains a dot, or is an attribute of every ModuleDict
        """
        pairs = None
        if isinstance(modules, ModuleDict) or not isinstance(modules, Module | type):
            with suppress(TypeError, ValueError):
                pairs = dict(modules).items()
        if pairs is None:
            found = f"the class {modules.__name__}" if isinstance(modules, type) else None
            raise TypeError(
                "ModuleDict: modules must be a dictionary {name: module} or pairs (name, module), "
                f"got {found or torch_hints.kind_of(modules)}"
            )
        for name, module in pairs:
            self[name] = module

    def pop(self, name):
        """Remove the module `name` and return it. A missing name raises KeyError."""
        module = self[name]
        delattr(self, name)
        return module

    def clear(self):
        """Remove all modules from the dictionary."""
        for name in list(self):
            del self[name]

    def forward(self, *inputs):
        """Raise NotImplementedError: a dictionary does not define how `inputs` pass through it."""
        raise NotImplementedError(
            f"{type(self).__name__}.forward: a dictionary only holds modules. Call its modules by "
            "name"
        )
