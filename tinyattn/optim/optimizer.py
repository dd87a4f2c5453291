"""The base class of optimizers, with groups of parameters, their options, and the state."""

import math

import numpy as np

from tinyattn.engine import other_names, torch_hints
from tinyattn.engine.autograd import Tensor
from tinyattn.engine.ranges import check_range


class Optimizer:
    """The base class of optimizers, which hold parameters in groups with separate options.

    A subclass defines `update`.

    Args:
        params    parameters, such as model.parameters(), or a list of groups
                  {"params": [...], "lr": ...} with separate options
        options   name=value, such as lr=0.1, for the groups that do not set this option

    Attributes:
        param_groups   list of the groups, dictionaries with "params" and all options
        state          list with a dictionary for each parameter, the state of the update rule, such
                       as the momentum. It is empty before the first step
        shapes         list with the shape of each parameter

    Raises:
        ValueError: there are no parameters, a parameter is not a leaf tensor or is given more than
            once, or an option is outside its range
        TypeError: params are not tensors or groups of tensors, an option is not a number, a group
            of SGD, RMSprop, Adam or AdamW has an option that is not an argument of this class, or
            eps is so small that it is 0 in float16, the dtype of a parameter
    """

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if cls.__module__.startswith("tinyattn.optim."):
            torch_hints.explain_arguments(cls)

    def __init__(self, params, **options):
        params = list_parameters(type(self).__name__, params)
        groups = params if params and isinstance(params[0], dict) else [{"params": params}]
        for i, g in enumerate(groups):
            if not isinstance(g, dict) or "params" not in g:
                raise TypeError(
                    f'{type(self).__name__}: group {i} must be a dictionary with the key "params". '
                    'Write {"params": [...], "lr": ...}'
                )
            unknown = sorted(g.keys() - options.keys() - {"params", "initial_lr"})
            if unknown and type(self).__module__ == "tinyattn.optim.algorithms":
                raise TypeError(
                    f"{type(self).__name__}: group {i} has the option {unknown[0]!r}, which does "
                    f"not exist. The options are {', '.join(options)}"
                )
        own_name = f"{type(self).__name__}, params of a group"
        self.param_groups = []
        for g in groups:
            plain = {k: _plain(v) for k, v in (options | g).items()}
            self.param_groups.append(plain | {"params": list_parameters(own_name, g["params"])})
        if not self._parameters():
            raise ValueError(
                f"{type(self).__name__}: there are no parameters to train. Pass "
                "model.parameters() of a model that has some, and call parameters() again if you "
                "have already looped over its result"
            )
        for p in self._parameters():
            if not isinstance(p, Tensor):
                raise TypeError(
                    f"{type(self).__name__}: expected Tensors as parameters, got "
                    f"{torch_hints.kind_of(p)}. {how_to_pass(p)}"
                )
            if p._operation is not None:
                raise ValueError(
                    f"{type(self).__name__}: a tensor of shape {p.shape} was computed from others, "
                    "so it never receives a gradient. Pass the leaf tensors instead"
                )
        if len({id(p) for p in self._parameters()}) < len(self._parameters()):
            raise ValueError(
                f"{type(self).__name__}: a parameter is given more than once. Pass each parameter "
                "once"
            )
        for g in self.param_groups:
            _check_options(type(self).__name__, g)
            self._check_eps(g)
        self.state = [{} for _ in self._parameters()]
        self.shapes = [p.shape for p in self._parameters()]

    def __getattr__(self, name):
        """Raise AttributeError for the missing `name`, with what to write instead, if known."""
        raise torch_hints.no_such_attribute("an optimizer", name, other_names.OPTIMIZER_NAMES, self)

    def __setattr__(self, name, value):
        """Set an attribute, but not "learning_rate", which would have no effect."""
        if name == "learning_rate" and type(self).__module__.startswith("tinyattn.optim."):
            getattr(self, name)  # raises the error
        super().__setattr__(name, value)

    def _check_eps(self, group):
        """Raise TypeError if eps is 0 in the dtype of a parameter, because 0 / 0 would be NaN."""
        for p in group["params"]:
            if p.dtype == np.float16 and group.get("eps") and np.float16(group["eps"]) == 0:
                raise TypeError(
                    f"{type(self).__name__}: a parameter of shape {p.shape} is float16, in which "
                    f"eps={group['eps']} is 0, so a gradient of 0 would make it NaN. Train in "
                    "float32 with model.astype(np.float32), or choose eps >= 1e-4"
                )

    def _check_shapes(self):
        """Raise ValueError for a parameter or gradient with another shape than at the beginning."""
        for p, shape in zip(self._parameters(), self.shapes, strict=True):
            if shape != p.shape:
                raise ValueError(
                    f"{type(self).__name__}: a parameter had shape {shape}, but now its data has "
                    f"shape {p.shape}. Write values of the same shape into .data, or make a new "
                    "optimizer after the change"
                )
            if p.grad is not None and getattr(p.grad, "shape", None) != shape:
                what = f"of shape {p.grad.shape}" if hasattr(p.grad, "shape") else repr(p.grad)
                raise ValueError(
                    f"{type(self).__name__}: a parameter has shape {shape}, but its gradient is "
                    f"{what}. Write an array of the same shape into .grad, or None for no gradient"
                )
            if p.grad is not None and p.grad.dtype.kind not in "iuf":
                raise TypeError(
                    f"{type(self).__name__}: a parameter of shape {shape} has a gradient of dtype "
                    f"{p.grad.dtype}. Write an array of real numbers into .grad"
                )

    def _parameters(self):
        return [p for g in self.param_groups for p in g["params"]]

    @property
    def lr(self):
        """The learning rate of the first group. Assigning to it sets the rate of all groups."""
        return self.param_groups[0]["lr"]

    @lr.setter
    def lr(self, value):
        check_range(type(self).__name__, 0, below=math.inf, lr=value)
        for group in self.param_groups:
            group["lr"] = _plain(value)
            if "initial_lr" in group:  # a later schedule starts from this rate
                group["initial_lr"] = group["lr"]

    @torch_hints.with_torch_hints
    def zero_grad(self):
        """Set the gradients of all parameters to None."""
        for p in self._parameters():
            p.grad = None

    @torch_hints.with_torch_hints
    def step(self):
        """Update every parameter that has a gradient.

        Raises:
            ValueError: the shape of a parameter has changed since the optimizer was made, or its
                gradient has a different shape
            TypeError: a gradient does not consist of real numbers
        """
        self._check_shapes()
        states = iter(self.state)
        for group in self.param_groups:
            for p in group["params"]:
                state = next(states)
                if p.grad is not None:
                    g = p.grad.data if isinstance(p.grad, Tensor) else p.grad
                    p.data = self.update(p.data, g.astype(p.dtype, copy=False), state, group)

    def update(self, theta, g, state, group):
        """Return the new values of one parameter, an array. Every subclass defines this method.

        Args:
            theta   values θ of the parameter, an array that must not be changed
            g       gradient of the parameter, an array of the same shape
            state   dictionary with the state of the update rule for this parameter. It is empty in
                    the first step, and the method may write into it
            group   dictionary with the options of the parameter's group

        Raises:
            NotImplementedError: the subclass does not define the method
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no update(self, theta, g, state, group). Define one, or "
            "use an optimizer that has one, such as optim.SGD"
        )

    def state_dict(self):
        """Return {name: array} with the options of all groups and the state of all parameters.

        The arrays are copies. Their names are like "param_groups.0.lr" for an option of group 0,
        and "state.3.m" for the state m of parameter 3.
        """
        found = {}
        for i, state in enumerate(self.state):
            found |= {f"state.{i}.{k}": np.array(v) for k, v in state.items()}
        for i, group in enumerate(self.param_groups):
            found[f"param_groups.{i}.params"] = np.array(len(group["params"]))
            options = {k: v for k, v in group.items() if k != "params"}
            for k, v in options.items():
                found[f"param_groups.{i}.{k}"] = np.array(v, dtype=np.float64)
        return found

    def load_state_dict(self, saved):
        """Load the result of `state_dict`, for the same parameters in the same order.

        Args:
            saved   the dictionary, whose values are arrays or numbers

        Raises:
            TypeError: `saved` is not a dictionary
            KeyError: the state was saved for different parameters or a different optimizer.
                Nothing is changed
            ValueError: a saved option is outside its range. Nothing is changed
        """
        if not hasattr(saved, "items"):
            raise TypeError(
                f"load_state_dict of {type(self).__name__}: expected the dictionary that "
                f"state_dict() returned, got {type(saved).__name__}"
            )
        state = [{} for _ in self.state]
        groups = [dict(g) for g in self.param_groups]
        own = {f"param_groups.{i}.{k}" for i, g in enumerate(groups) for k in g}
        saved = {str(name): value for name, value in saved.items()}
        here = {name for name in saved if name.startswith("param_groups.")}
        for i, g in enumerate(groups):  # initial_lr exists only after a schedule was made
            name = f"param_groups.{i}.initial_lr"
            if name in here - own:
                g["initial_lr"] = g["lr"]
            own, here = own - {name}, here - {name}
        if here - own:
            self._misfit(f"unexpected: {', '.join(sorted(here - own)[:5])}")
        if own - here:
            self._misfit(f"missing: {', '.join(sorted(own - here))}")
        places = {str(i): i for i in range(len(state))}
        for name, value in saved.items():
            kind, _, rest = name.partition(".")
            i, _, key = rest.partition(".")
            value = np.asarray(value)
            if kind == "param_groups":
                self._take_option(groups[int(i)], key, value)
            elif kind == "state" and i in places:
                state[places[i]][key] = value
            else:
                self._misfit(f"unexpected: {name[:100]}")
        owners = [(p, g) for g in groups for p in g["params"]]
        state = [self._taken_state(*o, s) for o, s in zip(owners, state, strict=True)]
        for g in groups:
            _check_options(f"load_state_dict of {type(self).__name__}", g)
        self.state, self.param_groups = state, groups

    def _take_option(self, group, key, value):
        old = len(group["params"]) if key == "params" else group[key]
        if value.shape != np.shape(old) or value.dtype.kind not in "fiub":
            need = "a number" if np.ndim(old) == 0 else f"numbers of shape {np.shape(old)}"
            self._misfit(f"{key} must be {need}, got {value.dtype} of shape {value.shape}")
        if key != "params":
            group[key] = _option(old, value)
        elif value != old:
            self._misfit(
                f"a group has {value} parameter{'s' * int(value != 1)} in the saved state, but "
                f"{old} here"
            )

    def _taken_state(self, p, group, state):
        """Return the saved state of the parameter p in its dtype, after a check of its form.

        Counters, such as the number of steps, become integers.
        """
        names = self.state_names(group)
        if state and names is not None and state.keys() != names:
            self._misfit(
                f"the state of a parameter of shape {p.shape} contains {', '.join(sorted(state))}, "
                f"expected {', '.join(sorted(names)) or 'nothing'}"
            )
        taken = {}
        for key, value in state.items():
            counter = value.ndim == 0 and value.dtype.kind in "iu"
            if counter and value < 0:
                self._misfit(f"{key} must be a number of steps >= 0, got {value}")
            if not counter and (value.shape != p.shape or value.dtype.kind != "f"):
                self._misfit(
                    f"{key} must be floating-point numbers in the shape {p.shape} of the "
                    f"parameter, got {value.dtype} of shape {value.shape}"
                )
            # in another memory order, the kernel would change only a copy
            taken[key] = int(value) if counter else value.astype(p.dtype, order="C")
        return taken

    def state_names(self, group):
        """Return the set of names in the state of a parameter, or None if they are unknown.

        `load_state_dict` refuses a state with other names. Here, the result is None, and a subclass
        can return the names that its `update` uses.

        Args:
            group   dictionary with the options of the parameter's group
        """
        return None

    def _misfit(self, why):
        raise KeyError(
            f"load_state_dict of {type(self).__name__}: {why}. The dictionary is not the state of "
            "this optimizer with these parameters, so nothing was changed"
        )

    def __repr__(self):
        options = {
            k: v for k, v in self.param_groups[0].items() if k not in ("params", "initial_lr")
        }
        n = sum(p.size for p in self._parameters())
        inside = [f"{n:,} parameter{'s' * (n != 1)}", *[f"{k}={v}" for k, v in options.items()]]
        return f"{type(self).__name__}({', '.join(inside)})"


def how_to_pass(p):
    """Return how to pass parameters to a function that got p instead of a Tensor among them."""
    if hasattr(p, "parameters") or hasattr(p, "__next__") or isinstance(p, list):
        return "For several models, write [*a.parameters(), *b.parameters()]"
    return "Pass model.parameters()"


def list_parameters(name, params):
    """Return an iterable of parameters as a list.

    Args:
        name     function or class that is called, for the error message
        params   the parameters

    Raises:
        TypeError: params is a model, a dictionary, a single Tensor, or not iterable
    """
    if hasattr(params, "parameters") or callable(params):
        raise TypeError(
            f"{name}: expected a list of Tensors, got {type(params).__name__}. Write "
            "model.parameters(), with ()"
        )
    if isinstance(params, dict):
        advice = "model.parameters()"
        if "params" in params:
            advice = '[d] for a group with its options, or d["params"] for its parameters'
        elif params and all(isinstance(p, Tensor) for p in params.values()):
            advice = "list(d.values())"
        raise TypeError(f"{name}: expected a list of Tensors, got a dictionary d. Write {advice}")
    if isinstance(params, Tensor):  # list(tensor) would be its rows, which would never be trained
        raise TypeError(f"{name}: expected a list of Tensors, got one Tensor. Write [tensor]")
    if not hasattr(params, "__iter__"):
        raise TypeError(
            f"{name}: expected a list of Tensors, got {params!r}. Pass model.parameters() first, "
            "and the numbers after it"
        )
    return list(params)


def _check_options(name, group):
    for option in ("lr", "initial_lr", "momentum", "weight_decay", "eps"):
        check_range(name, 0, below=math.inf, **{option: group.get(option, 0)})
    check_range(name, 0, 1, alpha=group.get("alpha", 0))
    check_range(name, dampening=group.get("dampening", 0))
    betas = group.get("betas", (0, 0))
    if not isinstance(betas, tuple | list) or len(betas) != 2:
        raise TypeError(f"{name}: betas must be two numbers (β₁, β₂), got {betas!r}")
    for i, b in enumerate(betas):
        check_range(name, 0, below=1, **{f"betas[{i}]": b})
    momentum, dampening = group.get("momentum", 0), group.get("dampening", 0)
    if group.get("nesterov") and (momentum <= 0 or dampening != 0):
        raise ValueError(
            f"{name}: nesterov=True needs momentum > 0 and dampening = 0, got "
            f"momentum={momentum}, dampening={dampening}"
        )


def _plain(value):
    """Return a number of NumPy as a number of Python, next to which arrays keep their dtype."""
    return value.item() if isinstance(value, np.generic) else value


def _option(old, value):
    """Return a saved option as a bool, a number or a pair of numbers."""
    value = value.tolist()
    if isinstance(value, list):
        return tuple(value)
    return bool(value) if isinstance(old, bool) else value
