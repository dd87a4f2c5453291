"""Cutting a text into words, numbers, signs and blanks before pairs are counted.

The pattern is that of GPT-2. It needs the Unicode categories of letters and numbers, which
Python's `re` does not know; they are put into the pattern as ranges of characters.
"""

import re
import sys
import unicodedata
from functools import cache
from itertools import groupby

BLANK = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"


@cache
def ranges(category):
    """All characters whose category begins with this letter, as the inside of [...]."""
    codes = (c for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c))[0] == category)
    runs = groupby(enumerate(codes), key=lambda pair: pair[1] - pair[0])  # neighbours
    parts = []
    for _, run in runs:
        found = [c for _, c in run]
        parts.append(f"{re.escape(chr(found[0]))}-{re.escape(chr(found[-1]))}")
    return "".join(parts)


@cache
def gpt2_pattern():
    """'s 't …, or a word, a number, other signs (each with one blank before), or blanks."""
    L, N = ranges("L"), ranges("N")
    return re.compile(
        rf"'(?:[stmd]|re|ve|ll)| ?[{L}]+| ?[{N}]+| ?[^{BLANK}{L}{N}]+"
        rf"|[{BLANK}]+(?![^{BLANK}])|[{BLANK}]+"
    )


@cache
def digit_pattern():
    """The same, but each digit is a piece of its own."""
    return re.compile(f"[{ranges('N')}]|[^{ranges('N')}]+")


def split_gpt2(text):
    """The pieces of a text; put together again they are the text."""
    return gpt2_pattern().findall(text)


def split_digits(text):
    """As `split_gpt2`, with numbers cut into digits: what SmolLM does."""
    return [w for part in digit_pattern().findall(text) for w in gpt2_pattern().findall(part)]
