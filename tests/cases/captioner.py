"""The cases of `tests/cases/ops.py` for the captioners, and for the parts they are made of."""

import numpy as np

from tests.cases.layers import layer
from tests.cases.ops import CASES, normal
from tinyattn.models import (
    AdditiveScore,
    Attend,
    Captioner,
    CaptionerCells,
    DotScore,
    FixedCaptioner,
    Regions,
    SigmoidGate,
)

__all__ = ["CASES"]

H, Z = normal(2, 3), normal(2, 4, 5)
WHITE = np.random.default_rng(0).uniform(size=(2, 4, 4, 3))
TOKENS = np.array([[1, 0, 2], [2, 2, 0]])

layer(AdditiveScore, H, Z, make=AdditiveScore(3, 5, 2, rng=0))
layer(DotScore, H, Z, make=DotScore(3, 5, 2, rng=0))
layer(Attend, H, Z, make=Attend(DotScore(3, 5, 2, rng=0)))
layer(Attend, H, Z, make=Attend(AdditiveScore(3, 5, 2, rng=0), SigmoidGate()))
layer(CaptionerCells, WHITE, make=CaptionerCells(3, 2, 3, 4, rng=0), order=1)
layer(Regions, WHITE, make=Regions(3, (2,), 4, rng=0), order=1)
for model in (
    Captioner(CaptionerCells(3, 2, 3, 4, rng=0), 3, 2, 3, rng=0),
    FixedCaptioner(CaptionerCells(3, 2, 3, 4, rng=0), 4, 3, 2, 2, 3, rng=0),
):
    layer(type(model), WHITE, TOKENS, make=model, order=1)
