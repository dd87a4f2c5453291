"""The cases of `tests/cases/ops.py` for the captioners, and for the parts they are made of."""

import numpy as np

from tests.cases.layers import layer
from tests.cases.ops import CASES, normal
from tinyattn.models import captioner as c

__all__ = ["CASES"]

H, Z = normal(2, 3), normal(2, 4, 5)
WHITE = np.random.default_rng(0).uniform(size=(2, 4, 4, 3))
TOKENS = np.array([[1, 0, 2], [2, 2, 0]])

layer(c.AdditiveScore, H, Z, make=c.AdditiveScore(3, 5, 2, rng=0))
layer(c.DotScore, H, Z, make=c.DotScore(3, 5, 2, rng=0))
layer(c.Attend, H, Z, make=c.Attend(c.DotScore(3, 5, 2, rng=0)))
layer(c.Attend, H, Z, make=c.Attend(c.AdditiveScore(3, 5, 2, rng=0), c.SigmoidGate()))
layer(c.CaptionerCells, WHITE, make=c.CaptionerCells(3, 2, 3, 4, rng=0), order=1)
layer(c.Regions, WHITE, make=c.Regions(3, (2,), 4, rng=0), order=1)
for model in (
    c.Captioner(c.CaptionerCells(3, 2, 3, 4, rng=0), 3, 2, 3, rng=0),
    c.FixedCaptioner(c.CaptionerCells(3, 2, 3, 4, rng=0), 4, 3, 2, 2, 3, rng=0),
):
    layer(type(model), WHITE, TOKENS, make=model, order=1)
