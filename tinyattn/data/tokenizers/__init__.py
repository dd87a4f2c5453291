"""Tokenizers, which turn text into integers and back.

`encode(text)` returns token ids, which are integers [T], and `decode(ids)` returns the text.

Characters(text)                 one token for each character in the text
Bytes()                          the 256 bytes of UTF-8
BytePairs.train(text, size)      frequent neighbours become one token, repeatedly
BytePairs.from_gguf(metadata)    the tokenizer of a GPT-like model in a GGUF file
WordPiece(path)                  BERT's, from its vocabulary file
padded(sequences)                sequences of different lengths as one array, with a mask
"""

from tinyattn.data.tokenizers.pairs import BytePairs
from tinyattn.data.tokenizers.simple import Bytes, Characters, padded
from tinyattn.data.tokenizers.wordpiece import WordPiece

__all__ = ["BytePairs", "Bytes", "Characters", "WordPiece", "padded"]
