"""The update rules: SGD, RMSprop, Adam and AdamW, with arguments and defaults as in PyTorch.

θ is a parameter, g its gradient, η the learning rate `lr`.
"""

import math

import numpy as np

from tinyattn.engine import torch_hints
from tinyattn.engine.autograd import Tensor
from tinyattn.kernels import fast
from tinyattn.ops.backends import FLOATS, kernel_is_faster
from tinyattn.optim.optimizer import Optimizer


class SGD(Optimizer):
    """Stochastic gradient descent, θ ← θ - η g, with optional momentum.

        b ← μ b + (1 - dampening) g,   θ ← θ - η b        with momentum μ
        θ ← θ - η (g + μ b)                               with nesterov

    θ is a parameter, g its gradient, and b a running sum of gradients, which is g after the first
    step.

    Args:
        params         parameters, such as model.parameters(), or a list of groups
                       {"params": [...], "lr": ...} with options that replace the arguments below
        lr             learning rate η >= 0
        momentum       μ >= 0, where 0 means no momentum
        dampening      fraction of the gradient that is not added to b, from the second step on.
                       0 means that all of it is added
        weight_decay   λ >= 0, where λ θ is added to the gradient
        nesterov       True: use the last formula, which needs momentum > 0 and dampening = 0

    Raises:
        ValueError: there are no parameters, a parameter is not a leaf tensor or is given more than
            once, an option is outside its range, or nesterov is used without momentum or with
            dampening
        TypeError: params are not tensors or groups of tensors, an option is not a number, or a
            group has an option that is not among the arguments
    """

    def __init__(
        self, params, lr=1e-3, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False
    ):
        super().__init__(
            params,
            lr=lr,
            momentum=momentum,
            dampening=dampening,
            weight_decay=weight_decay,
            nesterov=nesterov,
        )

    def state_names(self, group):
        """Return {"momentum"}, the name of b in the state of a parameter, for every `group`."""
        return {"momentum"}

    def update(self, theta, g, state, group):
        """Return the new values of one parameter, an array.

        Args:
            theta   values θ of the parameter, an array that is not changed
            g       gradient of the parameter, an array of the same shape
            state   dictionary with the state of the parameter, into which the new state is written
            group   dictionary with the options of the parameter's group
        """
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
    """RMSprop, which divides the gradient by the root mean square of recent gradients.

        v ← α v + (1-α) g²,   θ ← θ - η g / (√v + ε)
        m ← α m + (1-α) g,    √(v - m²) instead of √v        with centered
        b ← μ b + g / (√v + ε),   θ ← θ - η b                with momentum μ

    θ is a parameter and g its gradient. The running means v and m and the sum of steps b are
    initially 0.

    Args:
        params         parameters, such as model.parameters(), or a list of groups
                       {"params": [...], "lr": ...} with options that replace the arguments below
        lr             learning rate η >= 0
        alpha          α from 0 to 1, the weight of the old v and m in the new ones
        eps            ε >= 0, which keeps the divisor away from 0
        weight_decay   λ >= 0, where λ θ is added to the gradient
        momentum       μ >= 0, where 0 means no momentum
        centered       True: subtract the square m² of the mean gradient from v

    Raises:
        ValueError: there are no parameters, a parameter is not a leaf tensor or is given more than
            once, or an option is outside its range
        TypeError: params are not tensors or groups of tensors, an option is not a number, a group
            has an option that is not among the arguments, or eps is so small that it is 0 in
            float16, the dtype of a parameter

    Source: Tieleman, Hinton 2012, lecture 6.5, and Graves 2013 (centered).
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
        """Return the set of names in the state of a parameter.

        It contains "v", and also "m" if `group` has centered=True, and "momentum" if its momentum
        is not 0.
        """
        return (
            {"v"}
            | ({"m"} if group["centered"] else set())
            | ({"momentum"} if group["momentum"] else set())
        )

    def update(self, theta, g, state, group):
        """Return the new values of one parameter, an array.

        Args:
            theta   values θ of the parameter, an array that is not changed
            g       gradient of the parameter, an array of the same shape
            state   dictionary with the state of the parameter, into which the new state is written
            group   dictionary with the options of the parameter's group
        """
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
    """Adam, which divides the mean of recent gradients by their root mean square.

        m ← β₁m + (1-β₁)g,   v ← β₂v + (1-β₂)g²,   θ ← θ - η m̂ / (√v̂ + ε)

    θ is a parameter and g its gradient. m̂ = m / (1 - β₁ᵗ) and v̂ = v / (1 - β₂ᵗ) correct for the
    start at m = v = 0, where t = 1, 2, 3, … is the number of the step.

    Args:
        params         parameters, such as model.parameters(), or a list of groups
                       {"params": [...], "lr": ...} with options that replace the arguments below
        lr             learning rate η >= 0
        betas          (β₁, β₂), the weights of the old values of m and v in the new values, with
                       0 <= β₁ < 1 and 0 <= β₂ < 1
        eps            ε >= 0, which keeps the divisor away from 0
        weight_decay   λ >= 0, where λ θ is added to the gradient

    Raises:
        ValueError: there are no parameters, a parameter is not a leaf tensor or is given more than
            once, or an option is outside its range
        TypeError: params are not tensors or groups of tensors, betas are not two numbers, an option
            is not a number, a group has an option that is not among the arguments, or eps is so
            small that it is 0 in float16, the dtype of a parameter

    Source: Kingma, Ba 2015.
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
        betas = tuple(betas) if isinstance(betas, list) else betas
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)

    def state_names(self, group):
        """Return {"t", "m", "v"}, the names in the state of a parameter, for every `group`.

        t is the number of steps, and m and v are the running means in the formula of Adam.
        """
        return {"t", "m", "v"}

    def decay(self, theta, g, group):
        """Return (θ, g + λ θ), the unchanged values of a parameter and its gradient with decay.

        λ is the option weight_decay. `AdamW` applies the decay to θ instead.

        Args:
            theta   values θ of the parameter, an array
            g       gradient of the parameter, an array of the same shape
            group   dictionary with the options of the parameter's group
        """
        if group["weight_decay"]:
            g = g + group["weight_decay"] * theta
        return theta, g

    @torch_hints.with_torch_hints
    def step(self):
        """Update every parameter that has a gradient.

        For large models in float32 or float64, a single compiled call updates all parameters.

        Raises:
            ValueError: the shape of a parameter has changed since the optimizer was made, or its
                gradient has a different shape
            TypeError: a gradient does not consist of real numbers
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
        fast.adam.adam(jobs)
        for p, theta in new:
            p.data = theta

    def kernel_constants(self, t, group):
        """Return the constants of one step as they are passed to the compiled kernel.

        Args:
            t       number of the step, counted from 1
            group   dictionary with the options of the group

        Returns:
            (lr / (1 - β₁ᵗ), β₁, β₂, ε, λ, √(1 - β₂ᵗ), keep) with the options (β₁, β₂) = betas,
            ε = eps and λ = weight_decay. The kernel multiplies θ by keep before the step, and in
            Adam, keep is 1
        """
        beta1, beta2 = group["betas"]
        rate = group["lr"] / (1 - beta1**t)
        correct = math.sqrt(1 - beta2**t)
        return rate, beta1, beta2, group["eps"], group["weight_decay"], correct, 1

    def update(self, theta, g, state, group):
        """Return the new values of one parameter, an array.

        Args:
            theta   values θ of the parameter, an array that is not changed
            g       gradient of the parameter, an array of the same shape
            state   dictionary with the state of the parameter, into which the new state is written
            group   dictionary with the options of the parameter's group
        """
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
    """Adam with weight decay that is applied to θ directly, θ ← θ - η λ θ, before the step.

        m ← β₁m + (1-β₁)g,   v ← β₂v + (1-β₂)g²,   θ ← θ - η m̂ / (√v̂ + ε)

    θ is a parameter and g its gradient. m̂ = m / (1 - β₁ᵗ) and v̂ = v / (1 - β₂ᵗ) correct for the
    start at m = v = 0, where t = 1, 2, 3, … is the number of the step.

    Args:
        params         parameters, such as model.parameters(), or a list of groups
                       {"params": [...], "lr": ...} with options that replace the arguments below
        lr             learning rate η >= 0
        betas          (β₁, β₂), the weights of the old values of m and v in the new values, with
                       0 <= β₁ < 1 and 0 <= β₂ < 1
        eps            ε >= 0, which keeps the divisor away from 0
        weight_decay   λ >= 0, the strength of the decay

    Raises:
        ValueError: there are no parameters, a parameter is not a leaf tensor or is given more than
            once, or an option is outside its range
        TypeError: params are not tensors or groups of tensors, betas are not two numbers, an option
            is not a number, a group has an option that is not among the arguments, or eps is so
            small that it is 0 in float16, the dtype of a parameter

    Source: Loshchilov, Hutter 2019.
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=1e-2):
        super().__init__(params, lr, betas, eps, weight_decay)

    def decay(self, theta, g, group):
        """Return (θ - η λ θ, g), the values of a parameter after decay and its unchanged gradient.

        η is the option lr, and λ is the option weight_decay.

        Args:
            theta   values θ of the parameter, an array
            g       gradient of the parameter, an array of the same shape
            group   dictionary with the options of the parameter's group
        """
        return theta * (1 - group["lr"] * group["weight_decay"]), g

    def kernel_constants(self, t, group):
        """Return the constants of one step as they are passed to the compiled kernel.

        Args:
            t       number of the step, counted from 1
            group   dictionary with the options of the group

        Returns:
            (lr / (1 - β₁ᵗ), β₁, β₂, ε, 0, √(1 - β₂ᵗ), keep) with the options (β₁, β₂) = betas,
            ε = eps and λ = weight_decay. The kernel multiplies θ by keep = 1 - lr · λ before the
            step
        """
        *numbers, decay, correct, _ = super().kernel_constants(t, group)
        return *numbers, 0, correct, 1 - group["lr"] * decay


def _by_kernel(parameters):
    """Return whether a kernel should compute the step, because the arrays are large enough.

    The step writes into parameters and states, but an operation of `ops.backends` returns a new
    array. Therefore, the kernel is chosen here.
    """
    numbers = sum([p.size for p in parameters])
    return (
        all([p.dtype in FLOATS for p in parameters])
        and all([p.data.flags.c_contiguous and p.data.flags.writeable for p in parameters])
        and kernel_is_faster("adam", FLOATS[0], numbers)
    )
