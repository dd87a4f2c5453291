"""Modules that hold other modules, and `Identity`, which returns its input."""

from tinyattn.engine import torch_hints
from tinyattn.engine.convert import as_tensor
from tinyattn.nn.module import Module


class Identity(Module):
    """A layer that returns its input, y = x, as a placeholder for another layer.

    Args:
        arguments   the arguments of the layer that Identity replaces, which are ignored
        options     its keyword arguments, which are ignored too
    """

    def __init__(self, *arguments, **options):
        pass

    def forward(self, x):
        """Return x unchanged. Shape: x [...] → the same."""
        return as_tensor(x)


class Sequential(Module):
    """A sequence of modules, each of which is applied to the output of the previous one.

    The names of the modules are "0", "1" and so on.

    Args:
        modules   the modules, or a single list or tuple of them (for other iterables, write *)

    Raises:
        TypeError: an entry is not a module
    """

    def __init__(self, *modules):
        if len(modules) == 1 and isinstance(modules[0], list | tuple):
            modules = modules[0]  # the call was Sequential([a, b])
        if len(modules) == 1 and not isinstance(modules[0], Module) and not callable(modules[0]):
            if hasattr(modules[0], "__iter__"):
                star = "*d.values()" if isinstance(modules[0], dict) else "*modules"
                raise TypeError(
                    f"{type(self).__name__}: expected modules or a list of them, got a "
                    f"{type(modules[0]).__name__}. Write {type(self).__name__}({star})"
                )
        for i, module in enumerate(modules):
            _check_module(self, i, module)
            setattr(self, str(i), module)

    def forward(self, x):
        """Apply the modules in order, the first one to x, and return the last output."""
        for module in self.children():
            x = module(x)
        return x

    def __len__(self):
        return len(list(self.children()))

    def __iter__(self):
        return self.children()

    def __getitem__(self, i):
        found = list(self.children())[i]
        return type(self)(found) if isinstance(i, slice) else found

    def __setitem__(self, i, module):
        """Replace the module with index i."""
        _check_module(self, i, module)
        setattr(self, str(range(len(self))[i]), module)

    def append(self, module):
        """Add `module` at the end, and return the container."""
        _check_module(self, len(self), module)
        setattr(self, str(len(self)), module)
        return self

    def extend(self, modules):
        """Add several `modules` at the end, and return the container."""
        modules = _listed(self, "extend", modules)
        for i, module in enumerate(modules):
            _check_module(self, len(self) + i, module)
        for module in modules:
            self.append(module)
        return self

    def insert(self, i, module):
        """Insert `module` before the module with index `i`, and renumber the modules after it."""
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
        modules   an iterable of modules

    Raises:
        TypeError: an entry is not a module
    """

    def __init__(self, modules=()):
        if isinstance(modules, Module) or not hasattr(modules, "__iter__"):
            raise TypeError(
                "ModuleList: modules must be a list of modules, got "
                f"{torch_hints.kind_of(modules)}. Write nn.ModuleList([a, b])"
            )
        super().__init__(list(modules))

    def __getitem__(self, i):
        found = list(self.children())[i]
        return ModuleList(found) if isinstance(i, slice) else found

    def forward(self, *inputs):
        """Raise NotImplementedError: a list does not define how `inputs` pass through it."""
        raise NotImplementedError(
            "ModuleList.forward: a list only holds modules. Call its modules one by one"
        )


def _listed(self, call, modules):
    if isinstance(modules, Module) and not hasattr(modules, "__iter__"):
        raise TypeError(
            f"{type(self).__name__}: {call} needs a list of modules, got one "
            f"{type(modules).__name__}. Write [module], or append(module)"
        )
    return list(modules)


def _check_module(self, i, module):
    if not isinstance(module, Module):
        raise TypeError(
            f"{type(self).__name__}: entry {i} must be an nn.Module, got {_found(module)}"
        )


def _found(module):
    """Return what was found instead of a module, and what to do, as the end of a message."""
    if isinstance(module, type) and issubclass(module, Module):
        return f"the class {module.__name__}. Write {module.__name__}(...), with ()"
    advice = ". For a function, use its layer, for example nn.Tanh()" if callable(module) else ""
    return f"{torch_hints.kind_of(module)}{advice}"


class ModuleDict(Module):
    """A dictionary of modules, which are called by the module that holds the dictionary.

        heads = nn.ModuleDict({"mass": nn.Linear(8, 1), "kind": nn.Linear(8, 5)})
        heads["kind"](x)

    Args:
        modules   dictionary {name: module}, an iterable of pairs (name, module), or None for an
                  empty dictionary

    Raises:
        TypeError: modules are not names with modules, a name is not a string, or a value is not a
            module
        KeyError: a name is empty, contains a dot, or is an attribute of every module
    """

    def __init__(self, modules=None):
        if isinstance(modules, Module | type) and not isinstance(modules, ModuleDict):
            modules = [modules]  # this raises the error
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
                f"ModuleDict: {name!r} is an attribute of every module. Choose another name"
            )
        if not isinstance(module, Module):
            raise TypeError(f"ModuleDict: {name!r} must be an nn.Module, got {_found(module)}")
        setattr(self, name, module)

    def __getitem__(self, name):
        modules = dict(self.named_children())
        if name not in modules:
            raise KeyError(f"ModuleDict: there is no module {name!r}, only {', '.join(modules)}")
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
        """Return the names in the order in which the modules were added."""
        return dict(self.named_children()).keys()

    def values(self):
        """Return the modules in the order in which they were added."""
        return dict(self.named_children()).values()

    def items(self):
        """Return the pairs (name, module) in the order in which they were added."""
        return dict(self.named_children()).items()

    def update(self, modules):
        """Add or replace `modules`, a dictionary {name: module} or pairs (name, module)."""
        try:
            pairs = dict(modules).items()
        except (TypeError, ValueError):
            raise TypeError(
                "ModuleDict: modules must be a dictionary {name: module} or pairs (name, module), "
                f"got {torch_hints.kind_of(modules)}"
            ) from None
        for name, module in pairs:
            self[name] = module

    def pop(self, name):
        """Remove the module `name`, and return it. A name that is missing raises KeyError."""
        module = self[name]
        delattr(self, name)
        return module

    def clear(self):
        """Remove all modules."""
        for name in list(self):
            del self[name]

    def forward(self, *inputs):
        """Raise NotImplementedError: a dictionary does not define how `inputs` pass through it."""
        raise NotImplementedError(
            "ModuleDict.forward: a dictionary only holds modules. Call its modules by name"
        )
