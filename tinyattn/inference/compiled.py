"""`compile`, which returns a copy of a model in which some layers are one compiled call each.

The copy shares all parameters with the model. Only the modules around a compiled layer are copied,
so everything except the compiled layers runs the same code as in the model: its embeddings, its
`features` and `generate`, and your own models around the layers of `nn`.
"""

from copy import copy
from inspect import signature
from itertools import chain
from operator import attrgetter, is_

from tinyattn.engine.autograd import no_grad
from tinyattn.inference.layers import COMPILED
from tinyattn.nn import Buffer, Module, Parameter
from tinyattn.nn.overrides import describe_class_override, describe_object_override, is_user_module

# the entry for modules that are not in COMPILED
NOT_COMPILED = "module: this kind has no compiled form"


class CannotCompile(ValueError):
    """The error that `compile` raises if a layer was changed, by a subclass or a replaced method.

    A compiled copy computes with the original layer of tinyattn, so it would ignore the change. The
    message names the layer. `model(x)` still works.
    """


def compile(model):
    """Return a copy of a model in which layers of transformers are compiled where possible.

    The compiled layers are `nn.TransformerEncoderLayer` with activation="gelu", `nn.LlamaBlock`,
    `nn.RMSNorm` and `QuantizedLinear`. All others run unchanged.

    Args:
        model   the model. Its parameters are shared and not copied. A layer with dropout is
                compiled only in evaluation mode, so call model.eval() first

    Returns:
        a `Compiled` model, which you call like the model. Its results have no gradient. Printing
        it shows which layers are compiled

    Raises:
        TypeError: model is not an nn.Module
        CannotCompile: a module is an instance of a subclass of a layer or model of tinyattn, or has
            a replaced method, so a compiled call could give a different result. A module that you
            wrote from scratch runs unchanged
    """
    return Compiled(model)


class Compiled:
    """A model with compiled layers, the result of `inference.compile`.

    Each call first checks whether `model` has changed. If parameters or modules were replaced, the
    call compiles again, so new weights take effect immediately. If a layer was changed in a way
    that `compile` refuses, the call raises `CannotCompile`. The results have no gradient.

    Args:
        model   the model, whose parameters are shared

    Attributes:
        compiled_layers   names of the compiled layers

    Raises:
        TypeError: model is not an nn.Module
        CannotCompile: a layer of the model was changed, see `compile`
    """

    def __init__(self, model):
        if not isinstance(model, Module):
            got = type(model).__name__
            if isinstance(model, type):
                got = f"the class {model.__name__}. Make the module first, and then compile it"
            raise TypeError(f"inference.compile: model must be an nn.Module, got {got}")
        self.model = model
        self._compile()

    def _compile(self):
        self._seen = None  # stays None if the model is refused
        self._parts = []  # (name, module, description of what runs it)
        self._snapshot, self._classes = _Snapshot(), {}
        self._module = self._copy("", self.model, {})
        self._snapshot.add_classes(self._classes)
        self._seen = self._snapshot

    def _copy(self, name, module, copies):
        """Return `module` with compiled layers inside, and add a line about each of its parts.

        `name` is its path in the model, and `copies` is {id of a module: its copy}.
        """
        if id(module) in copies:  # the layer is used twice
            return copies[id(module)]
        self._refuse_changed(name, module)
        self._snapshot.add(module)
        # a submodule that refers back to this module gets the module itself, not a copy
        copies[id(module)] = module
        first, twin, how = len(self._parts), module, NOT_COMPILED
        inside = [(n, m) for n, m in vars(module).items() if isinstance(m, Module)]
        copied = {n: self._copy(f"{name}.{n}".lstrip("."), m, copies) for n, m in inside}
        form = COMPILED[type(module)](module) if type(module) in COMPILED else None
        if form is not None:
            twin, how = form
            del self._parts[first:]
        elif any(copied[n] is not m for n, m in inside):
            twin = copy(module)
            vars(twin).update(copied)
        copies[id(module)] = twin
        # if no part is compiled, one line describes the whole module
        if all(how == NOT_COMPILED for *_, how in self._parts[first:]):
            self._parts[first:] = [(name or "all", module, how)]
        return twin

    def _refuse_changed(self, name, module):
        cls = type(module)
        if cls not in self._classes:
            self._classes[cls] = None if is_user_module(cls) else describe_class_override(cls)
        change = self._classes[cls] or (
            None if is_user_module(cls) else describe_object_override(module)
        )
        if change is not None:
            raise CannotCompile(
                f"inference.compile: {f'module {name}' if name else 'the model'} {change}. Call "
                "the model itself, which runs every layer unchanged"
            )

    def module(self):
        """Return the compiled copy of the model, after compiling again if the model has changed.

        Call the copy under `no_grad` and in evaluation mode.

        Raises:
            CannotCompile: a layer was changed in a way that `compile` refuses
        """
        if self._seen is None or not self._seen.is_current():
            self._compile()
        return self._module

    def __call__(self, *inputs, **options):
        """Return the result of `model(*inputs, **options)`, without a gradient."""
        with no_grad():
            return self.module()(*inputs, **options)

    def generate(self, *inputs, **options):
        """Return `model.generate(*inputs, **options)`, computed by the compiled copy.

        Args:
            inputs    positional arguments of the model's `generate`
            options   keyword arguments of the model's `generate`

        Raises:
            CannotCompile: a layer was changed in a way that `compile` refuses
            AttributeError: the model has no method `generate`
        """
        return self._call("generate", inputs, options)

    def sentence_vectors(self, *inputs, **options):
        """Return `model.sentence_vectors(*inputs, **options)`, computed by the compiled copy.

        Args:
            inputs    positional arguments of the model's `sentence_vectors`
            options   keyword arguments of the model's `sentence_vectors`

        Raises:
            CannotCompile: a layer was changed in a way that `compile` refuses
            AttributeError: the model has no method `sentence_vectors`
        """
        return self._call("sentence_vectors", inputs, options)

    def _call(self, name, inputs, options):
        """Return the result of a method of the copy, which does not compile the copy again."""
        method = getattr(self.module(), name)
        parameters = signature(method).parameters
        if "compiled" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            options = {**options, "compiled": False}
        with no_grad():
            return method(*inputs, **options)

    @property
    def compiled_layers(self):
        """Return the list of the names of the compiled layers."""
        return [name for name, module, how in self._parts if how.startswith("compiled")]

    def __repr__(self):
        try:
            self.module()
        except CannotCompile as reason:
            return str(reason)
        rows = [("part", "layer", "runs as"), *_in_groups(self._parts)]
        widths = [max(len(row[i]) for row in rows) for i in range(2)]
        lines = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}" for a, b, c in rows]
        n, kind = len(self.compiled_layers), type(self.model).__name__
        head = f"{kind}: {n or 'no'} layer{'' if n == 1 else 's'} compiled"
        return "\n".join([head, "", lines[0], "-" * max(map(len, lines)), *lines[1:]])


def _in_groups(parts):
    """Return a row for each part, but one row for successive numbered parts that run alike."""
    rows, last = [], None
    for name, module, how in parts:
        parent, _, number = name.rpartition(".")
        group = (parent, type(module), how) if number.isdigit() else None
        if group is not None and group == last:
            first = rows[-1][0].partition(" to ")[0]
            rows[-1] = (f"{first} to {number}", *rows[-1][1:])
        else:
            rows.append((name, type(module).__name__, how))
        last = group
    return rows


class _Snapshot:
    """The contents of a model at one moment: all attributes of its modules and of their classes."""

    def __init__(self):
        self.dicts, self.sizes, self.values, self.tensors, self.arrays = [], [], [], [], []

    def add(self, module):
        """Remember the attributes of a module, and the arrays of its parameters and buffers."""
        self._add_dict(vars(module))
        for value in vars(module).values():
            if isinstance(value, Parameter | Buffer):
                self.tensors.append(value)
                self.arrays.append(value.data)

    def add_classes(self, classes):
        """Remember the contents of classes of modules and of their bases."""
        for cls in dict.fromkeys(base for c in classes for base in c.__mro__[:-1]):
            self._add_dict(vars(cls))

    def _add_dict(self, d):
        self.dicts.append(d)
        self.sizes.append(len(d))
        self.values += d.values()

    def is_current(self):
        """Return whether everything is as it was when it was added, except numbers inside arrays.

        It is called before each token, so it contains no Python loop.
        """
        if list(map(len, self.dicts)) != self.sizes:
            return False
        values = chain.from_iterable([d.values() for d in self.dicts])
        return all(map(is_, values, self.values)) and all(
            map(is_, map(ARRAY, self.tensors), self.arrays)
        )


ARRAY = attrgetter("data")
