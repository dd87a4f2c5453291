"""Compiled inference, for those who ask for it: several operations of a layer in one call.

    compiled = inference.compile(model)
    print(compiled)                          which layers are compiled, and when; what is not
    compiled.generate(ids, 100)              the same text as model.generate(ids, 100)

Weights of few bits stay as a file has them in `BlockLinear` and `BlockEmbedding`: what makes a
language model write slowly is reading its weights.

Nothing else in the framework is replaced: `model(x)` always runs the `forward` of every layer.
"""

from tinyattn.inference.blocks import BlockEmbedding, BlockLinear
from tinyattn.inference.compiled import Compiled, Refused, compile

__all__ = ["BlockEmbedding", "BlockLinear", "Compiled", "Refused", "compile"]
