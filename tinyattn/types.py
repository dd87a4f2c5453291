"""What an editor is told where it cannot find out by itself. Nothing here runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tinyattn.autograd import Operation, Tensor


class Primitive(Protocol):
    """A function made by `ta.primitive`: arrays and Tensors in, a Tensor out."""

    operation: Operation
    __name__: str

    def __call__(self, *inputs, **options) -> Tensor: ...

    def __get__(self, instance, owner) -> Callable[..., Tensor]: ...  # as a method: x + y

    def defvjp(self, *rules) -> None:
        """Set the derivative rules, one for each input: (g, y, *inputs) -> its gradient."""

    def defvjp_joint(self, rule) -> None:
        """Set one rule for all inputs: (g, y, *inputs) -> a list of their gradients."""
