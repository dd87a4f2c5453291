"""Compiled inference, which runs several operations of a layer in one call.

    compiled = inference.compile(model)
    print(compiled)                          which layers are compiled, and for which inputs
    compiled.generate(ids, 100)              the same text as model.generate(ids, 100)

`QuantizedLinear` and `QuantizedEmbedding` keep each weight in a few bits, as in a GGUF file,
because a language model spends most of its time reading its weights.

Nothing else in the framework changes, because `model(x)` always runs the `forward` of every layer.
"""

from tinyattn.inference.compiled import CannotCompile, Compiled, compile
from tinyattn.inference.quantized import QuantizedEmbedding, QuantizedLinear

__all__ = ["QuantizedEmbedding", "QuantizedLinear", "Compiled", "CannotCompile", "compile"]
