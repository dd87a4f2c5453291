"""Cut a text into words, numbers, punctuation and whitespace, before byte pairs are merged.

The pattern comes from GPT-2. It needs the Unicode categories of letters and numbers, which Python's
`re` does not support, so they are inserted into the pattern as ranges of characters.
"""

import re
import sys
import unicodedata
from functools import cache
from itertools import groupby

BLANK = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"


@cache
def ranges(category):
    """Return the characters whose Unicode category begins with `category`, as ranges for [...]."""
    codes = (c for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c))[0] == category)
    runs = groupby(enumerate(codes), key=lambda pair: pair[1] - pair[0])  # neighbours
    parts = []
    for _, run in runs:
        found = [c for _, c in run]
        parts.append(f"{re.escape(chr(found[0]))}-{re.escape(chr(found[-1]))}")
    return "".join(parts)


@cache
def gpt2_pattern():
    """Return a pattern for the pieces of a text, which are words, numbers and other signs.

    Endings such as 's are separate pieces. A word, a number or a sequence of signs includes one
    space before it. Further whitespace forms separate pieces.
    """
    L, N = ranges("L"), ranges("N")
    return re.compile(
        rf"'(?:[stmd]|re|ve|ll)| ?[{L}]+| ?[{N}]+| ?[^{BLANK}{L}{N}]+"
        rf"|[{BLANK}]+(?![^{BLANK}])|[{BLANK}]+"
    )


@cache
def digit_pattern():
    """Return a pattern that cuts a text into single digits and the parts between them."""
    return re.compile(f"[{ranges('N')}]|[^{ranges('N')}]+")


def split_gpt2(text):
    """Cut a text into words, numbers and other signs by the rule of GPT-2.

    Args:
        text   the text

    Returns:
        a list of texts, whose concatenation is the text
    """
    return gpt2_pattern().findall(text)


def split_digits(text):
    """Cut a text into pieces as in `split_gpt2`, but with each digit as a separate piece.

    SmolLM uses this rule.

    Args:
        text   the text

    Returns:
        a list of texts, whose concatenation is the text
    """
    return [w for part in digit_pattern().findall(text) for w in gpt2_pattern().findall(part)]
