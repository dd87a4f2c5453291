"""Learning-rate schedules, which set the rate of an optimizer at every step."""

import math

from tinyattn.engine import other_names, torch_hints
from tinyattn.engine.ranges import check_range
from tinyattn.optim.optimizer import Optimizer


class Schedule:
    """The base class of learning-rate schedules, which set the rate at every `step()`.

    The schedule starts at step 0. A subclass defines `factor(step)`, by which the learning rate of
    the optimizer is multiplied. To continue from a checkpoint, make the schedule first, and then
    write `schedule.step_count = load_checkpoint(...)`.

    Each group keeps the original rate of the optimizer as "initial_lr", so if a second schedule
    replaces the first one, it starts from the same rate. `optimizer.lr = ...` sets both rates.

    Args:
        optimizer   optimizer that gets the learning rate

    Raises:
        TypeError: `optimizer` is not an optimizer
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

    def __getattr__(self, name):
        """Raise the error for a missing attribute, with its name in this library."""
        raise torch_hints.no_such_attribute("a schedule", name, other_names.SCHEDULE_NAMES, self)

    def factor(self, step):
        """Return the factor by which the optimizer's learning rate is multiplied at `step`."""
        raise NotImplementedError

    @torch_hints.with_torch_hints
    def step(self):
        """Advance by one step, and set the learning rate."""
        self.step_count += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(group["initial_lr"], self.step_count)

    def rate(self, lr, step):
        """Return the learning rate at `step` of a group whose original rate is `lr`."""
        return lr * self.factor(step)


class WarmupLR(Schedule):
    """A learning rate that grows linearly to the optimizer's rate in `warmup` steps.

    After these steps, the rate is constant.

    Args:
        optimizer   optimizer that gets the learning rate
        warmup      number of steps, at least 1
    """

    def __init__(self, optimizer, warmup):
        check_range("WarmupLR", 1, below=math.inf, warmup=warmup)
        self.warmup = warmup
        super().__init__(optimizer)

    def factor(self, step):
        """Return the factor by which the optimizer's learning rate is multiplied at `step`."""
        return min(1.0, (step + 1) / self.warmup)


class CosineLR(Schedule):
    """A learning rate that falls along half a cosine from η₀ to η_min.

        η = η_min + (η₀ - η_min)(1 + cos(π t / T_max)) / 2

    Args:
        optimizer   optimizer that gets the learning rate
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
        """Return the learning rate at `step` of a group whose original rate is `lr`."""
        wave = (1 + math.cos(math.pi * step / self.T_max)) / 2
        return self.eta_min + (lr - self.eta_min) * wave


class WarmupCosineLR(Schedule):
    """A learning rate that grows linearly for `warmup` steps and then falls along half a cosine.

        η = η₀ (t + 1) / warmup                                           for t < warmup
        η = η_min + (η₀ - η_min)(1 + cos(π (t - warmup) / (T_max - warmup))) / 2      up to T_max

    Args:
        optimizer   optimizer that gets the learning rate
        warmup      number of steps in which the rate grows
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
        """Return the learning rate at `step` of a group whose original rate is `lr`."""
        if step < self.warmup:
            return lr * (step + 1) / self.warmup
        share = min(1.0, (step - self.warmup) / (self.T_max - self.warmup))
        return self.eta_min + (lr - self.eta_min) * (1 + math.cos(math.pi * share)) / 2


class NoamLR(Schedule):
    """The learning rate of the first transformer, η = η₀ d_model^-½ min(t^-½, t · warmup^-3/2).

    Here t counts from 1. The rate grows linearly and then falls in proportion to 1/√t.

    Args:
        optimizer   optimizer that gets the learning rate
        d_model     number of features of the model
        warmup      number of steps in which the rate grows

    Source: Vaswani et al. 2017, section 5.3, where η₀ = 1.
    """

    def __init__(self, optimizer, d_model, warmup=4000):
        check_range("NoamLR", 1, below=math.inf, d_model=d_model, warmup=warmup)
        self.d_model, self.warmup = d_model, warmup
        super().__init__(optimizer)

    def factor(self, step):
        """Return the factor by which the optimizer's learning rate is multiplied at `step`."""
        t = step + 1
        return self.d_model**-0.5 * min(t**-0.5, t * self.warmup**-1.5)


class StepLR(Schedule):
    """A learning rate that is multiplied by γ after every `step_size` steps.

        η = η₀ γ^⌊t / step_size⌋

    Args:
        optimizer   optimizer that gets the learning rate
        step_size   number of steps between two changes
        gamma       factor γ > 0 after every `step_size` steps
    """

    def __init__(self, optimizer, step_size, gamma=0.1):
        check_range("StepLR", 1, step_size=step_size, whole=True)
        check_range("StepLR", above=0, gamma=gamma)
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer)

    def factor(self, step):
        """Return the factor by which the optimizer's learning rate is multiplied at `step`."""
        return self.gamma ** (step // self.step_size)


class LambdaLR(Schedule):
    """A learning rate that is multiplied by a function of the step, η = η₀ f(t).

    Args:
        optimizer   optimizer that gets the learning rate
        lr_lambda   f, a function of the step t = 0, 1, 2, …
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
        """Return the factor by which the optimizer's learning rate is multiplied at `step`."""
        return self.lr_lambda(step)
