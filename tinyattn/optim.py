"""Optimizers, which turn gradients into steps of the parameters, and learning-rate schedules.

The update rules, arguments and defaults are the same as in PyTorch. θ is a parameter, g its
gradient, η the learning rate `lr`. A step writes through `p.data`, so the engine notices if a graph
that still waits for `backward` has used the old values.
"""

import math
import warnings

import numpy as np

from tinyattn.engine import torch_hints
from tinyattn.engine.autograd import Tensor
from tinyattn.engine.ranges import check_range
from tinyattn.kernels import fast
from tinyattn.ops.backends import FLOATS, kernel_is_faster


class Optimizer:
    """The base class of optimizers: parameters in groups, each with its own options.

    A subclass defines `update`.

    Args:
        params    parameters, or dictionaries {"params": [...], "lr": ...} with options of their own
        options   name=value for groups that do not set this option themselves, such as lr

    Attributes:
        param_groups   the groups, as dictionaries
        state          the state of the rule for each parameter, such as its momentum, in the order
                       of the parameters
    """

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if cls.__module__ == __name__:
            torch_hints.explain_arguments(cls)

    def __init__(self, params, **options):
        params = _listed(type(self).__name__, params)
        if not params:
            raise ValueError(
                f"{type(self).__name__}: there are no parameters to train. Pass "
                "model.parameters(), and call it again if its generator is used up"
            )
        groups = params if isinstance(params[0], dict) else [{"params": params}]
        self.param_groups = [
            {**options, **g, "params": _listed("a group", g["params"])} for g in groups
        ]
        for p in self._parameters():
            if not isinstance(p, Tensor):
                raise TypeError(
                    f"{type(self).__name__}: expected Tensors as parameters, got "
                    f"{type(p).__name__}. Pass model.parameters()"
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

    def _check_eps(self, group):
        """Raise TypeError if eps is 0 in the dtype of a parameter: 0 / 0 would be nan."""
        for p in group["params"]:
            if p.dtype == np.float16 and group.get("eps") and np.float16(group["eps"]) == 0:
                raise TypeError(
                    f"{type(self).__name__}: a parameter of shape {p.shape} is float16, in which "
                    f"eps={group['eps']} is 0, so its first step would be nan. Train in float32 "
                    "with model.astype(np.float32), or choose eps >= 1e-4"
                )

    def _check_shapes(self):
        """Raise ValueError for a parameter whose shape has changed since it was given."""
        for p, shape in zip(self._parameters(), self.shapes, strict=True):
            gradient = p.shape if p.grad is None else p.grad.shape
            if not shape == p.shape == gradient:
                raise ValueError(
                    f"{type(self).__name__}: a parameter had shape {shape}, but now its data has "
                    f"{p.shape} and its gradient {gradient}. Write values of the same shape into "
                    ".data, or make a new optimizer after the change"
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
            group["lr"] = value
            if "initial_lr" in group:  # a later schedule starts from this rate
                group["initial_lr"] = value

    @torch_hints.with_torch_hints
    def zero_grad(self):
        """Set the gradients of all parameters to None."""
        for p in self._parameters():
            p.grad = None

    @torch_hints.with_torch_hints
    def step(self):
        """Update every parameter that has a gradient.

        Raises:
            ValueError: the shape of a parameter has changed since the optimizer was made
        """
        self._check_shapes()
        states = iter(self.state)
        for group in self.param_groups:
            for p in group["params"]:
                state = next(states)
                if p.grad is not None:
                    g = p.grad.data if isinstance(p.grad, Tensor) else p.grad
                    p.data = self.update(p.data, g, state, group)

    def update(self, theta, g, state, group):
        """Return the new values of one parameter. Every subclass defines its own.

        Args:
            theta   values of the parameter
            g       its gradient
            state   state of the rule for this parameter, a dictionary that may be changed
            group   options of its group
        """
        raise NotImplementedError

    def state_dict(self):
        """Return everything that is needed to continue the training, {name: array or number}."""
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
            saved   the dictionary

        Raises:
            KeyError: it was saved for other parameters or another optimizer. Nothing is changed
        """
        if not hasattr(saved, "items"):
            raise TypeError(
                f"load_state_dict of {type(self).__name__}: expected the dictionary that "
                f"state_dict() returned, got a {type(saved).__name__}"
            )
        state = [{} for _ in self.state]
        groups = [dict(g) for g in self.param_groups]
        own = {f"param_groups.{i}.{k}" for i, g in enumerate(groups) for k in g}
        here = {name for name in saved if name.startswith("param_groups.")}
        for i, g in enumerate(groups):  # the value exists once a schedule was made
            name = f"param_groups.{i}.initial_lr"
            if name in here - own:
                g["initial_lr"] = g["lr"]
            own, here = own - {name}, here - {name}
        if here - own:
            self._misfit(f"{', '.join(sorted(here - own)[:5])} has no place")
        if own - here:
            self._misfit(f"{', '.join(sorted(own - here))} is missing")
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
                self._misfit(f"{name[:100]} has no place")
        owners = [(p, g) for g in groups for p in g["params"]]
        state = [self._taken_state(*o, s) for o, s in zip(owners, state, strict=True)]
        for g in groups:
            _check_options(f"load_state_dict of {type(self).__name__}", g)
        self.state, self.param_groups = state, groups

    def _take_option(self, group, key, value):
        old = len(group["params"]) if key == "params" else group[key]
        if value.shape != np.shape(old) or value.dtype.kind not in "fiub":
            self._misfit(f"{key} is {value.dtype} {value.shape}, expected numbers {np.shape(old)}")
        if key != "params":
            group[key] = _option(old, value)
        elif value != old:
            self._misfit(f"{value} parameters there, {old} here")

    def _taken_state(self, p, group, state):
        """Return the saved state of the parameter p in its dtype, with integer counters."""
        names = self.state_names(group)
        if state and names is not None and state.keys() != names:
            self._misfit(
                f"for a parameter of shape {p.shape} it has {', '.join(sorted(state))}, "
                f"expected {', '.join(sorted(names)) or 'nothing'}"
            )
        taken = {}
        for key, value in state.items():
            counter = value.ndim == 0 and value.dtype.kind in "iu"
            if counter and value < 0:
                self._misfit(f"{key} is {value}, no number of steps")
            if not counter and (value.shape != p.shape or value.dtype.kind != "f"):
                self._misfit(f"{key} is {value.dtype} {value.shape} for a parameter {p.shape}")
            # use the kernel's order, because it would only change a copy of any other
            taken[key] = int(value) if counter else value.astype(p.dtype, order="C")
        return taken

    def state_names(self, group):
        """Return the names in the state of a parameter, or None if they are unknown.

        Args:
            group   options of its group
        """
        return None

    def _misfit(self, why):
        raise KeyError(
            f"load_state_dict of {type(self).__name__}: {why}, so the state was saved for other "
            "parameters or another optimizer. Nothing was changed"
        )

    def __repr__(self):
        options = {
            k: v for k, v in self.param_groups[0].items() if k not in ("params", "initial_lr")
        }
        n = sum(p.size for p in self._parameters())
        inside = ", ".join(f"{k}={v}" for k, v in options.items())
        return f"{type(self).__name__}({n:,} parameters, {inside})"


def _listed(name, params):
    if hasattr(params, "parameters") or callable(params):
        raise TypeError(
            f"{name}: expected a list of Tensors, got a {type(params).__name__}. Write "
            "model.parameters(), with ()"
        )
    if isinstance(params, Tensor):  # a list of it would be its rows, which are never trained
        raise TypeError(f"{name}: expected a list of Tensors, got one Tensor. Write [tensor]")
    return list(params)


def _check_options(name, group):
    for option in ("lr", "initial_lr", "momentum", "weight_decay", "eps"):
        check_range(name, 0, below=math.inf, **{option: _there(name, group, option)})
    check_range(name, 0, 1, alpha=_there(name, group, "alpha"))
    check_range(name, dampening=_there(name, group, "dampening"))
    for b in group.get("betas", ()):
        check_range(name, 0, below=1, betas=b)


def _there(name, group, option):
    """Return the option of a group, or 0 if the optimizer lacks it. Raises TypeError for None."""
    value = group.get(option, 0)
    if value is None:
        raise TypeError(f"{name}: {option} must be a number, got None")
    return value


def _option(old, value):
    """Convert a saved option: a switch, a number, or a pair of numbers."""
    value = value.tolist()
    if isinstance(value, list):
        return tuple(value)
    return bool(value) if isinstance(old, bool) else value


class SGD(Optimizer):
    """Stochastic gradient descent, θ ← θ - η g, with optional momentum.

        b ← μ b + (1 - dampening) g,   θ ← θ - η b        with momentum μ
        θ ← θ - η (g + μ b)                               with nesterov

    Args:
        params         parameters, or groups of them as in `Optimizer`
        lr             learning rate η
        momentum       momentum μ; 0: no momentum
        dampening      fraction of the gradient that is left out of b
        weight_decay   λ, where λ θ is added to the gradient
        nesterov       True: use the Nesterov step above, which needs momentum > 0 and dampening = 0
    """

    def __init__(
        self, params, lr=1e-3, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False
    ):
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError(
                "SGD: nesterov=True needs momentum > 0 and dampening = 0, got "
                f"momentum={momentum}, dampening={dampening}"
            )
        super().__init__(
            params,
            lr=lr,
            momentum=momentum,
            dampening=dampening,
            weight_decay=weight_decay,
            nesterov=nesterov,
        )

    def state_names(self, group):
        """Return {"momentum"} for any `group`."""
        return {"momentum"}

    def update(self, theta, g, state, group):
        """Return the new values. `theta`, `g`, `state` and `group` are as in `Optimizer.update`."""
        mu = group["momentum"]
        if group["weight_decay"]:
            g = g + group["weight_decay"] * theta
        if mu:
            b = state.get("momentum")
            b = g.copy() if b is None else mu * b + (1 - group["dampening"]) * g
            state["momentum"] = b
            g = g + mu * b if group["nesterov"] else b
        return theta - group["lr"] * g


class RMSprop(Optimizer):
    """Steps divided by a running root mean square of the gradient.

        v ← α v + (1-α) g²,   θ ← θ - η g / (√v + ε)
        m ← α m + (1-α) g,    √(v - m²) instead of √v        with centered
        b ← μ b + g / (√v + ε),   θ ← θ - η b                with momentum μ

    Args:
        params         parameters, or groups of them as in `Optimizer`
        lr             learning rate η
        alpha          α, the weight of the old mean square in the new one
        eps            ε, which keeps the divisor away from 0
        weight_decay   λ, where λ θ is added to the gradient
        momentum       momentum μ; 0: no momentum
        centered       True: subtract the square of the mean gradient, as above

    Source: Tieleman, Hinton 2012, lecture 6.5; centered: Graves 2013.
    """

    def __init__(
        self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False
    ):
        super().__init__(
            params,
            lr=lr,
            alpha=alpha,
            eps=eps,
            weight_decay=weight_decay,
            momentum=momentum,
            centered=centered,
        )

    def state_names(self, group):
        """Return the names in the state of a parameter, which depend on the options of `group`."""
        return (
            {"v"}
            | ({"m"} if group["centered"] else set())
            | ({"momentum"} if group["momentum"] else set())
        )

    def update(self, theta, g, state, group):
        """Return the new values. `theta`, `g`, `state` and `group` are as in `Optimizer.update`."""
        alpha = group["alpha"]
        if group["weight_decay"]:
            g = g + group["weight_decay"] * theta
        v = state["v"] = alpha * state.get("v", 0) + (1 - alpha) * g * g
        if group["centered"]:
            m = state["m"] = alpha * state.get("m", 0) + (1 - alpha) * g
            v = v - m * m
        step = g / (np.sqrt(v) + group["eps"])
        if group["momentum"]:
            step = state["momentum"] = group["momentum"] * state.get("momentum", 0) + step
        return theta - group["lr"] * step


class Adam(Optimizer):
    """Adam, which divides a running mean of the gradient by its running root mean square.

        m ← β₁m + (1-β₁)g,   v ← β₂v + (1-β₂)g²,   θ ← θ - η m̂ / (√v̂ + ε)

    m̂ = m / (1 - β₁ᵗ) and v̂ = v / (1 - β₂ᵗ) correct for the start at zero, where t counts the
    steps.

    Args:
        params         parameters, or groups of them as in `Optimizer`
        lr             learning rate η
        betas          (β₁, β₂), the weights of the old m and v in the new ones
        eps            ε, which keeps the divisor away from 0
        weight_decay   λ, where λ θ is added to the gradient

    Source: Kingma, Ba 2015.
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
        if not isinstance(betas, tuple | list) or len(betas) != 2:
            raise TypeError(
                f"{type(self).__name__}: betas must be two numbers (β₁, β₂), got {betas!r}"
            )
        super().__init__(params, lr=lr, betas=tuple(betas), eps=eps, weight_decay=weight_decay)

    def state_names(self, group):
        """Return {"t", "m", "v"} for any `group`."""
        return {"t", "m", "v"}

    def decay(self, theta, g, group):
        """Return (θ, g) after weight decay. `AdamW` applies it to θ.

        Args:
            theta   values of the parameter
            g       its gradient
            group   options of its group
        """
        if group["weight_decay"]:
            g = g + group["weight_decay"] * theta
        return theta, g

    @torch_hints.with_torch_hints
    def step(self):
        """Update every parameter that has a gradient.

        Large models are updated in a single compiled pass.
        """
        with_gradient = [p for p in self._parameters() if p.grad is not None]
        if not _by_kernel(with_gradient):
            super().step()
            return
        self._check_shapes()
        states, jobs, new, known = iter(self.state), [], [], {}
        for group in self.param_groups:
            for p in group["params"]:
                state = next(states)
                if p.grad is None:
                    continue
                g = p.grad.data if isinstance(p.grad, Tensor) else p.grad
                g = np.ascontiguousarray(g, p.dtype)
                if not state:
                    state.update(t=0, m=np.zeros(p.shape, p.dtype), v=np.zeros(p.shape, p.dtype))
                state["t"] += 1
                theta = np.empty(p.shape, p.dtype)
                key = id(group), state["t"], p.dtype
                if key not in known:
                    known[key] = [p.dtype.type(x) for x in self.kernel_constants(state["t"], group)]
                jobs.append((theta, p.data, g, state["m"], state["v"], known[key]))
                new.append((p, theta))
        fast.rowwise.adam(jobs)
        for p, theta in new:
            p.data = theta

    def kernel_constants(self, t, group):
        """Return rate, β₁, β₂, ε, decay, correction and keep, which are the kernel's arguments.

        Args:
            t       number of the step, from 1
            group   options of the group
        """
        beta1, beta2 = group["betas"]
        rate = group["lr"] / (1 - beta1**t)
        correct = math.sqrt(1 - beta2**t)
        return rate, beta1, beta2, group["eps"], group["weight_decay"], correct, 1

    def update(self, theta, g, state, group):
        """Return the new values. `theta`, `g`, `state` and `group` are as in `Optimizer.update`."""
        beta1, beta2 = group["betas"]
        theta, g = self.decay(theta, g, group)
        if not state:
            state.update(t=0, m=np.zeros_like(theta), v=np.zeros_like(theta))
        state["t"] += 1
        m, v, t = state["m"], state["v"], state["t"]
        m += (1 - beta1) * (g - m)
        v *= beta2
        v += (1 - beta2) * (g * g)
        step = np.sqrt(v, out=np.empty_like(v))
        step /= math.sqrt(1 - beta2**t)
        step += group["eps"]
        np.divide(m, step, out=step)
        step *= group["lr"] / (1 - beta1**t)
        return theta - step


class AdamW(Adam):
    """Adam with weight decay that does not pass through m and v: first θ ← θ - η λ θ.

    Args:
        params         parameters, or groups of them as in `Optimizer`
        lr             learning rate η
        betas          (β₁, β₂), the weights of the old m and v in the new ones
        eps            ε, which keeps the divisor away from 0
        weight_decay   λ, the strength of the decay

    Source: Loshchilov, Hutter 2019.
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
        super().__init__(params, lr, betas, eps, weight_decay)

    def decay(self, theta, g, group):
        """Return (θ - η λ θ, g). `theta`, `g` and `group` are as in `Adam.decay`."""
        return theta * (1 - group["lr"] * group["weight_decay"]), g

    def kernel_constants(self, t, group):
        """Return the constants of the kernel. `t` and `group` are as in `Adam.kernel_constants`."""
        *numbers, decay, correct, _ = super().kernel_constants(t, group)
        return *numbers, 0, correct, 1 - group["lr"] * decay


def _by_kernel(parameters):
    """Return whether a kernel should do the step: enough numbers, in arrays that the kernel
    accepts.
    """
    numbers = sum([p.size for p in parameters])
    return (
        all([p.dtype in FLOATS for p in parameters])
        and all([p.data.flags.c_contiguous and p.data.flags.writeable for p in parameters])
        and kernel_is_faster("adam", FLOATS[0], numbers)
    )


@torch_hints.with_torch_hints
def clip_grad_norm(parameters, max_norm):
    """Scale all gradients together so that ‖g‖₂ ≤ max_norm.

    The norm is summed in float64, so that squares of large numbers do not overflow. If the norm is
    not finite, the gradients stay unchanged and a warning is given, because an infinite gradient
    has no direction.

    Args:
        parameters   the parameters, of which those without a gradient do not count
        max_norm     largest norm, > 0

    Returns:
        the norm ‖g‖₂ before the scaling

    Raises:
        ValueError: max_norm is not positive
    """
    check_range("clip_grad_norm", above=0, max_norm=max_norm)
    one = isinstance(parameters, Tensor)
    parameters = [parameters] if one else _listed("clip_grad_norm", parameters)
    with_gradient = [p for p in parameters if p.grad is not None]
    grads = [p.grad.data if isinstance(p.grad, Tensor) else p.grad for p in with_gradient]
    total = _norm(grads)
    scale = max_norm / (total + 1e-6)
    if not math.isfinite(total):
        warnings.warn(
            f"clip_grad_norm: the norm of the gradients is {total}, so they are left as they are. "
            f"`with ta.detect_anomaly():` around the step says where that came from",
            stacklevel=2,
        )
    elif scale < 1:
        for p, g in zip(with_gradient, grads, strict=True):
            small = scale < np.finfo(g.dtype).tiny  # a subnormal number has few digits
            wide = np.multiply(g, scale, dtype=np.float64) if small else None
            p.grad = g * g.dtype.type(scale) if wide is None else wide.astype(g.dtype)
    return total


def _norm(arrays):
    """Return the root of the sum of all squares, recomputed in float64 if they overflow."""
    with np.errstate(over="ignore"):
        square = sum(float(np.vdot(a, a)) for a in arrays)
    if not math.isfinite(square):
        largest = max(float(np.abs(a).max(initial=0)) for a in arrays)
        if math.isfinite(largest):
            wide = [np.divide(a, largest, dtype=np.float64) for a in arrays]
            return largest * math.sqrt(sum(float(np.vdot(a, a)) for a in wide))
    return math.sqrt(square)


class Schedule:
    """The base class of learning-rate schedules, which set the rate at every `step()`.

    The schedule starts at step 0. A subclass defines `factor(step)`, the learning rate as a
    multiple of the optimizer's own. To continue from a checkpoint, make the schedule first, and
    then write `schedule.step_count = load_checkpoint(...)`. A second schedule starts from the rate
    that the optimizer had before the first one, kept as "initial_lr" of each group, and takes over
    from it. `optimizer.lr = ...` sets both.

    Args:
        optimizer   the optimizer whose rate is set

    Raises:
        TypeError: it is not an optimizer
    """

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        torch_hints.explain_arguments(cls)

    def __init__(self, optimizer):
        if not isinstance(optimizer, Optimizer):
            raise TypeError(
                f"{type(self).__name__}: expected an optimizer such as optim.SGD(...), got a "
                f"{type(optimizer).__name__}"
            )
        self.optimizer, self.step_count = optimizer, -1
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
        self.step()

    def factor(self, step):
        """Return the learning rate at `step` as a multiple of the optimizer's own."""
        raise NotImplementedError

    def step(self):
        """Advance by one step, and set the learning rate."""
        self.step_count += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(group["initial_lr"], self.step_count)

    def rate(self, lr, step):
        """Return the learning rate at `step` of a group whose own rate is `lr`."""
        return lr * self.factor(step)


class WarmupLR(Schedule):
    """A rate that grows linearly to the optimizer's own over `warmup` steps, then stays constant.

    Args:
        optimizer   the optimizer whose rate is set
        warmup      number of steps, at least 1
    """

    def __init__(self, optimizer, warmup):
        check_range("WarmupLR", 1, below=math.inf, warmup=warmup)
        self.warmup = warmup
        super().__init__(optimizer)

    def factor(self, step):
        """Return the learning rate at `step` as a multiple of the optimizer's own."""
        return min(1.0, (step + 1) / self.warmup)


class CosineLR(Schedule):
    """A rate that falls along half a cosine, η = η_min + (η₀ - η_min)(1 + cos(π t / T_max)) / 2.

    Args:
        optimizer   the optimizer whose rate is set
        T_max       number of steps after which η is η_min
        eta_min     η_min, the smallest learning rate

    Source: Loshchilov, Hutter 2017, without restarts.
    """

    def __init__(self, optimizer, T_max, eta_min=0.0):
        check_range("CosineLR", 1, below=math.inf, T_max=T_max)
        check_range("CosineLR", 0, below=math.inf, eta_min=eta_min)
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer)

    def rate(self, lr, step):
        """Return the rate at `step` of a group whose own rate is `lr`."""
        wave = (1 + math.cos(math.pi * step / self.T_max)) / 2
        return self.eta_min + (lr - self.eta_min) * wave


class WarmupCosineLR(Schedule):
    """A rate that grows linearly over `warmup` steps, and then falls along half a cosine.

        η = η₀ (t + 1) / warmup                                           for t < warmup
        η = η_min + (η₀ - η_min)(1 + cos(π (t - warmup) / (T_max - warmup))) / 2      up to T_max

    Args:
        optimizer   the optimizer whose rate is set
        warmup      number of steps of growth
        T_max       total number of steps, after which η stays at η_min
        eta_min     η_min, the smallest learning rate

    Raises:
        ValueError: warmup is not below T_max
    """

    def __init__(self, optimizer, warmup, T_max, eta_min=0.0):
        check_range("WarmupCosineLR", 1, below=T_max, warmup=warmup)
        check_range("WarmupCosineLR", 0, below=math.inf, eta_min=eta_min)
        self.warmup, self.T_max, self.eta_min = warmup, T_max, eta_min
        super().__init__(optimizer)

    def rate(self, lr, step):
        """Return the rate at `step` of a group whose own rate is `lr`."""
        if step < self.warmup:
            return lr * (step + 1) / self.warmup
        share = min(1.0, (step - self.warmup) / (self.T_max - self.warmup))
        return self.eta_min + (lr - self.eta_min) * (1 + math.cos(math.pi * share)) / 2


class NoamLR(Schedule):
    """The rate of the first transformer, η = η₀ d_model^-½ min(t^-½, t · warmup^-3/2).

    Here t counts from 1. The rate grows linearly and then falls as 1/√t.

    Args:
        optimizer   the optimizer whose rate is set
        d_model     number of features of the model
        warmup      number of steps of growth

    Source: Vaswani et al. 2017, section 5.3, where η₀ = 1.
    """

    def __init__(self, optimizer, d_model, warmup=4000):
        check_range("NoamLR", 1, below=math.inf, d_model=d_model, warmup=warmup)
        self.d_model, self.warmup = d_model, warmup
        super().__init__(optimizer)

    def factor(self, step):
        """Return the learning rate at `step` as a multiple of the optimizer's own."""
        t = step + 1
        return self.d_model**-0.5 * min(t**-0.5, t * self.warmup**-1.5)


class StepLR(Schedule):
    """A rate that is multiplied by gamma after every `step_size` steps, η = η₀ γ^⌊t / step_size⌋.

    Args:
        optimizer   the optimizer whose rate is set
        step_size   number of steps between two changes
        gamma       factor γ > 0 after every `step_size` steps
    """

    def __init__(self, optimizer, step_size, gamma=0.1):
        check_range("StepLR", 1, step_size=step_size, whole=True)
        check_range("StepLR", above=0, gamma=gamma)
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer)

    def factor(self, step):
        """Return the learning rate at `step` as a multiple of the optimizer's own."""
        return self.gamma ** (step // self.step_size)


class LambdaLR(Schedule):
    """A rate that is a function of the step, η = η₀ f(t).

    Args:
        optimizer   the optimizer whose rate is set
        lr_lambda   f, a function of t = 0, 1, 2, …
    """

    def __init__(self, optimizer, lr_lambda):
        if not callable(lr_lambda):
            raise TypeError(
                "LambdaLR: lr_lambda must be a function of the step, got a "
                f"{type(lr_lambda).__name__}. Write for example lambda step: 0.9**step"
            )
        self.lr_lambda = lr_lambda
        super().__init__(optimizer)

    def factor(self, step):
        """Return the learning rate at `step` as a multiple of the optimizer's own."""
        return self.lr_lambda(step)


def __getattr__(name):
    """Raise the error for a missing name, with its name in this library."""
    raise torch_hints.no_such_name(__name__, name)
