"""Compiled inference, for those who ask for it: several operations of a layer in one call.

    compiled = inference.compile(model)
    print(compiled)                          which layers are compiled, and when; what is not
    compiled.generate(ids, 100)              the same text as model.generate(ids, 100)

`QuantizedLinear` and `QuantizedEmbedding` keep weights of few bits as a file has them, because
reading its weights is what takes a language model most of the time.

Nothing else in the framework is replaced: `model(x)` always runs the `forward` of every layer.
"""

from tinyattn.inference.compiled import CannotCompile, Compiled, compile
from tinyattn.inference.quantized import QuantizedEmbedding, QuantizedLinear

__all__ = ["QuantizedEmbedding", "QuantizedLinear", "Compiled", "CannotCompile", "compile"]
