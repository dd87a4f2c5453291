"""Learning-rate schedules, which set the rate of an optimizer at every step."""

import math

import numpy as np

from tinyattn.engine import other_names, torch_hints
from tinyattn.engine.ranges import check_range, type_with_article
from tinyattn.optim.optimizer import Optimizer


class Schedule:
    """The base class of learning-rate schedules, which set the rate at every `step()`.

    The schedule starts at step t = 0. Call its `step()` after every step of the optimizer. A
    subclass defines `factor(step)`, by which the learning rate η₀ of the optimizer is multiplied,
    or `rate(lr, step)`, which returns the rate for η₀ = lr. To continue from a checkpoint, make the
    schedule first, and then write `schedule.step_count = load_checkpoint(...)`.

    Each group of parameters keeps η₀ as "initial_lr", so a second schedule that replaces the first
    one starts from the same rate. `optimizer.lr = ...` sets both the current rate and η₀.

    Args:
        optimizer   optimizer whose learning rate is set. Its own rate is η₀

    Raises:
        TypeError: `optimizer` is not an optimizer, or the rate or its factor is not a number
        ValueError: the rate at step 0 is negative or not finite
        NotImplementedError: the subclass defines neither `factor` nor `rate`
    """

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        torch_hints.explain_arguments(cls)

    def __init__(self, optimizer):
        if not isinstance(optimizer, Optimizer):
            raise TypeError(
                f"{type(self).__name__}: expected an optimizer such as optim.SGD(...), got "
                f"{type(optimizer).__name__}"
            )
        self.optimizer, self.step_count = optimizer, -1
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
        self.step()

    def __getattr__(self, name):
        """Raise AttributeError for the missing `name`, with what to write instead, if known."""
        raise torch_hints.no_such_attribute("a schedule", name, other_names.SCHEDULE_NAMES, self)

    def factor(self, step):
        """Return the factor of the initial learning rate at `step` = 0, 1, 2, …

        Raises NotImplementedError if a subclass does not define it. It may define `rate` instead.
        """
        name = type(self).__name__
        if type(self).rate is not Schedule.rate:
            raise NotImplementedError(f"{name} has no factor(step). Call rate(lr, step) instead")
        raise NotImplementedError(
            f"{name} has neither factor(self, step) nor rate(self, lr, step). Define one of them"
        )

    @torch_hints.with_torch_hints
    def step(self):
        """Advance by one step, and set the learning rate of the optimizer for its next step.

        Raises:
            ValueError: the new rate is negative or not finite
            TypeError: the new rate or its factor is not a number
        """
        self.step_count += 1
        for group in self.optimizer.param_groups:
            rate = self.rate(group["initial_lr"], self.step_count)
            _check_number(f"{type(self).__name__}: rate(lr, {self.step_count})", rate)
            if not 0 <= rate < math.inf:
                raise ValueError(
                    f"{type(self).__name__}: expected 0 <= lr < inf at step {self.step_count}, got "
                    f"lr={rate}"
                )
            group["lr"] = float(rate)

    def rate(self, lr, step):
        """Return lr · factor(step), the learning rate at `step` = 0, 1, 2, … of a group.

        lr is the initial learning rate of the group. A subclass may define this method instead of
        `factor`. Raises TypeError if the factor is not a number.
        """
        factor = self.factor(step)
        _check_number(f"{type(self).__name__}: factor({step})", factor)
        return lr * factor


def _check_number(call, value):
    """Raise TypeError unless the value of a call, such as "factor(3)", is a single number."""
    if np.ndim(value) or np.asarray(value).dtype.kind not in "fiub":
        found = "None" if value is None else type_with_article(value)
        advice = ". Did you forget its `return`?" if value is None else ""
        raise TypeError(f"{call} must be a number, got {found}{advice}")


class WarmupLR(Schedule):
    """A learning rate that grows linearly to the optimizer's rate in `warmup` steps.

        η = η₀ min(1, (t + 1) / warmup)        at step t = 0, 1, 2, …

    Args:
        optimizer   optimizer whose learning rate is set. Its own rate is η₀
        warmup      number of steps, at least 1, after which the rate is constant

    Raises:
        ValueError: warmup is below 1 or infinite
        TypeError: `optimizer` is not an optimizer, or warmup is not a number
    """

    def __init__(self, optimizer, warmup):
        check_range("WarmupLR", 1, below=math.inf, warmup=warmup)
        self.warmup = warmup
        super().__init__(optimizer)

    def factor(self, step):
        """Return the factor of the initial learning rate at `step` = 0, 1, 2, …"""
        return min(1.0, (step + 1) / self.warmup)


class CosineLR(Schedule):
    """A learning rate that falls along half a cosine from η₀ to η_min.

        η = η_min + (η₀ - η_min)(1 + cos(π t / T_max)) / 2        at step t = 0, 1, 2, …

    After T_max steps, the rate rises again, as in PyTorch, so train for at most T_max steps.

    Args:
        optimizer   optimizer whose learning rate is set. Its own rate is η₀
        T_max       number of steps after which η is η_min, at least 1
        eta_min     η_min >= 0, the rate at step T_max

    Raises:
        ValueError: T_max is below 1 or infinite, or eta_min is negative or infinite
        TypeError: `optimizer` is not an optimizer, or an argument is not a number

    Source: Loshchilov, Hutter 2017, without restarts.
    """

    def __init__(self, optimizer, T_max, eta_min=0.0):
        check_range("CosineLR", 1, below=math.inf, T_max=T_max)
        check_range("CosineLR", 0, below=math.inf, eta_min=eta_min)
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer)

    def rate(self, lr, step):
        """Return the learning rate at `step` = 0, 1, 2, … for a group with the initial rate lr."""
        wave = (1 + math.cos(math.pi * step / self.T_max)) / 2
        return self.eta_min + (lr - self.eta_min) * wave


class WarmupCosineLR(Schedule):
    """A learning rate that grows linearly for `warmup` steps and then falls along half a cosine.

        η = η₀ (t + 1) / warmup                                           for t < warmup
        η = η_min + (η₀ - η_min)(1 + cos(π (t - warmup) / (T_max - warmup))) / 2      up to T_max

    Here t = 0, 1, 2, … is the step.

    Args:
        optimizer   optimizer whose learning rate is set. Its own rate is η₀
        warmup      number of steps in which the rate grows, at least 1
        T_max       total number of steps, after which η stays at η_min
        eta_min     η_min >= 0, the rate at the end

    Raises:
        ValueError: warmup is below 1, T_max is not above warmup or is infinite, or eta_min is
            negative or infinite
        TypeError: `optimizer` is not an optimizer, or an argument is not a number
    """

    def __init__(self, optimizer, warmup, T_max, eta_min=0.0):
        check_range("WarmupCosineLR", 1, below=math.inf, T_max=T_max)
        check_range("WarmupCosineLR", 1, warmup=warmup)
        if not warmup < T_max:
            raise ValueError(
                f"WarmupCosineLR: expected warmup < T_max, got warmup={warmup}, T_max={T_max}"
            )
        check_range("WarmupCosineLR", 0, below=math.inf, eta_min=eta_min)
        self.warmup, self.T_max, self.eta_min = warmup, T_max, eta_min
        super().__init__(optimizer)

    def rate(self, lr, step):
        """Return the learning rate at `step` = 0, 1, 2, … for a group with the initial rate lr."""
        if step < self.warmup:
            return lr * (step + 1) / self.warmup
        share = min(1.0, (step - self.warmup) / (self.T_max - self.warmup))
        return self.eta_min + (lr - self.eta_min) * (1 + math.cos(math.pi * share)) / 2


class NoamLR(Schedule):
    """The learning rate of the first transformer, η = η₀ d_model^-½ min(t^-½, t · warmup^-3/2).

    Here t = 1, 2, 3, … is the step, counted from 1. The rate grows linearly and then falls in
    proportion to 1/√t. The optimizer's own rate η₀ is only a factor, so it is usually 1.

    Args:
        optimizer   optimizer whose learning rate is set. Its own rate is η₀
        d_model     number of features of the model, at least 1
        warmup      number of steps in which the rate grows, at least 1

    Raises:
        ValueError: d_model or warmup is below 1 or infinite
        TypeError: `optimizer` is not an optimizer, or an argument is not a number

    Source: Vaswani et al. 2017, section 5.3, where η₀ = 1.
    """

    def __init__(self, optimizer, d_model, warmup=4000):
        check_range("NoamLR", 1, below=math.inf, d_model=d_model, warmup=warmup)
        self.d_model, self.warmup = d_model, warmup
        super().__init__(optimizer)

    def factor(self, step):
        """Return the factor of the initial learning rate at `step` = 0, 1, 2, …"""
        t = step + 1
        return self.d_model**-0.5 * min(t**-0.5, t * self.warmup**-1.5)


class StepLR(Schedule):
    """A learning rate that is multiplied by γ after every `step_size` steps.

        η = η₀ γ^⌊t / step_size⌋        at step t = 0, 1, 2, …

    Args:
        optimizer   optimizer whose learning rate is set. Its own rate is η₀
        step_size   number of steps between two changes, at least 1
        gamma       γ > 0, the factor of each change

    Raises:
        ValueError: step_size is below 1, or gamma is not positive
        TypeError: `optimizer` is not an optimizer, step_size is not a whole number, or gamma is not
            a number
    """

    def __init__(self, optimizer, step_size, gamma=0.1):
        check_range("StepLR", 1, step_size=step_size, whole=True)
        check_range("StepLR", above=0, gamma=gamma)
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer)

    def factor(self, step):
        """Return the factor of the initial learning rate at `step` = 0, 1, 2, …"""
        return self.gamma ** (step // self.step_size)


class LambdaLR(Schedule):
    """A learning rate that is multiplied by a function of the step, η = η₀ f(t).

    Args:
        optimizer   optimizer whose learning rate is set. Its own rate is η₀
        lr_lambda   f, a function of the step t = 0, 1, 2, …, which returns a factor f(t) >= 0

    Raises:
        TypeError: `optimizer` is not an optimizer, lr_lambda is not a function, or f(0) is not a
            number
        ValueError: f(0) is negative or not finite
    """

    def __init__(self, optimizer, lr_lambda):
        if not callable(lr_lambda):
            raise TypeError(
                "LambdaLR: lr_lambda must be a function of the step, got "
                f"{type(lr_lambda).__name__}. Write, for example, lambda step: 0.9**step"
            )
        self.lr_lambda = lr_lambda
        super().__init__(optimizer)

    def factor(self, step):
        """Return lr_lambda(step), the factor of the initial learning rate at `step` = 0, 1, 2, …

        Raises TypeError if this factor is not a number.
        """
        factor = self.lr_lambda(step)
        _check_number(f"LambdaLR: lr_lambda({step})", factor)
        return factor
