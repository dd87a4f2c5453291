"""Small data sets, real and generated, and how to cut them into batches."""

from tinyattn.data.batches import Batches, batches, split
from tinyattn.data.digits import digits
from tinyattn.data.generated import moons, sine, spirals

__all__ = ["Batches", "batches", "digits", "moons", "sine", "spirals", "split"]
