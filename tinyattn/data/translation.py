"""Two small collections of translated texts: numbers and dates in words, and program messages.

    phrases(1000, "de", rng=0)     [("in twenty-two days", "in zweiundzwanzig Tagen"), ...]
    software("de")                 [("Add another", "Eine weitere hinzufügen"), ...]
    tokenizer("de")                cuts both sides of the phrases into pieces, and joins them again
    from_pairs([("a cat", "eine Katze"), ...])    your own pairs: ids of both sides, and a tokenizer

Words and patterns come from CLDR and num2words, and the messages come from Django. SOURCES.md has
the details.
"""

import datetime
import re
from functools import cache
from pathlib import Path

import numpy as np

from tinyattn.data.tokenizers import WordPiece
from tinyattn.engine.random import generator
from tinyattn.engine.ranges import check_range

FIRST_YEAR = 1000  # first year in the file
YEARS = (1700, 2100)  # range of the years in dates
TIMES = 1000  # "in {0} days" has numbers below this
KINDS = ("date", "number", "time")
# A German number is one long word. These are its parts, besides the numbers up to twelve and the
# tens.
STEMS = {
    "de": ("ein", "und", "hundert", "tausend", "sech", "sieb", "ste", "te"),
    "fr": (),
}


def phrases(n, language="de", rng=None, kinds=KINDS):
    """Generate n different phrases, [(English, translation)].

    The phrases are dates, numbers up to 9,999, and times in the past or future:

        Sunday, May third, nineteen oh-five    Sonntag, der dritte Mai neunzehnhundertfünf
        three thousand and eighty-two          dreitausendzweiundachtzig
        forty-seven weeks ago                  vor siebenundvierzig Wochen

    If all kinds are requested, about half of the phrases are dates, or more if n is large. The
    weekday of each date is correct.

    Args:
        n          number of phrases
        language   "de" or "fr"
        rng        seed or numpy.random.Generator, or None for the default generator
        kinds      kinds of phrases to choose from, a selection of "date", "number" and "time"

    Returns:
        a list of n pairs (English, translation), all different

    Raises:
        TypeError: n is not a whole number
        ValueError: the language or a kind is unknown, n is negative, or n exceeds the limit of the
            given kinds, which is the sum of 50,000 for "date", 5,000 for "number" and 5,000 for
            "time"
    """
    _check_language("phrases", language)
    makers = dict(zip(KINDS, (_date, _number, _time), strict=True))
    if not isinstance(kinds, tuple | list) or not kinds or any(k not in KINDS for k in kinds):
        raise ValueError(
            f"phrases: kinds must be a tuple of one or more of {', '.join(map(repr, KINDS))}, got "
            f"{kinds!r}. An example is kinds=('date',)"
        )
    check_range("phrases", whole=True, n=n)
    weight = np.array([2 if kind == "date" else 1 for kind in kinds])
    most = {"date": 100_000, "number": 10_000, "time": 10_000}
    limit = sum(most[kind] for kind in {*kinds}) // 2
    if not 0 <= n <= limit:
        raise ValueError(
            f"phrases: expected 0 <= n <= {limit} for the kinds {list(kinds)}, got n={n}"
        )
    rng, found = generator(rng), {}
    while len(found) < n:
        kind = kinds[rng.choice(len(kinds), p=weight / weight.sum())]
        source, target = makers[kind](language, rng)
        found[source] = target
    return list(found.items())


def software(language="de"):
    """Load the messages of Django with up to 80 characters, as a list of (English, translation).

    The list is sorted by the English messages. Words like %(name)s are placeholders, which stay
    unchanged in a translation.

    Args:
        language   "de" or "fr"

    Raises:
        ValueError: the language is unknown
    """
    _check_language("software", language)
    lines = _lines(language, "software")
    return list(zip(lines[: len(lines) // 2], lines[len(lines) // 2 :], strict=True))


@cache
def tokenizer(language="de"):
    """Return a `WordPiece` with one vocabulary for English and the other language.

    Each word is one piece, except that German numbers are cut into their parts, as in sieben ##und
    ##achtzig. A sentence begins with [CLS] and ends with [SEP]. Padding is [PAD], token id 0.

    Args:
        language   "de" or "fr"

    Raises:
        ValueError: the language is unknown
    """
    _check_language("tokenizer", language)
    stems = {*STEMS[language], *(_lines(language, "cardinals")[i] for i in [*range(13), *TENS])}
    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    cutter = WordPiece([*marks, *stems, *(f"##{stem}" for stem in stems)], lower=False)
    pieces = dict.fromkeys(_words("en"))
    for word in _words(language):
        cut = cutter.pieces(word)
        pieces.update(dict.fromkeys([word] if "[UNK]" in cut else cut))
    return WordPiece([*marks, *pieces], lower=False)


TENS = range(20, 100, 10)


def from_pairs(pairs, tokenizer=None):
    """Turn your own pairs of texts into arrays of token ids, and return them with a tokenizer.

        source, target, tokenizer = from_pairs([("a cat", "eine Katze"), ("a dog", "ein Hund")])
        model = models.Seq2Seq(len(tokenizer), 64, 4, 2)
        model.loss(source, target).backward()
        model.translate("a dog", tokenizer=tokenizer)

    A sentence begins with [CLS] and ends with [SEP]. Padding is [PAD], token id 0.

    Args:
        pairs       list of pairs (text, translation)
        tokenizer   a `WordPiece`. If None, a new one is created from all words and punctuation
                    marks of both sides

    Returns:
        (source [n, S] int64, target [n, T] int64, tokenizer), where the token ids of each side are
        padded to its longest text

    Raises:
        TypeError: pairs is not a list (for example, a dictionary or a text), or tokenizer is
            neither a `WordPiece` nor None
        ValueError: pairs is empty, an entry is not a pair of texts, a text is blank, or the given
            tokenizer does not know a word
    """
    if not hasattr(pairs, "__iter__") or isinstance(pairs, str | dict):
        raise TypeError(
            "from_pairs: pairs must be a list of (text, translation), got "
            f"{type(pairs).__name__}. "
            + (
                "Write list(pairs.items())"
                if isinstance(pairs, dict)
                else 'Write [("a cat", "eine Katze"), ...]'
            )
        )
    if not (tokenizer is None or isinstance(tokenizer, WordPiece)):
        raise TypeError(
            "from_pairs: tokenizer must be a WordPiece or None, got an object of type "
            f"{type(tokenizer).__name__}. Leave tokenizer= out to build one from the pairs"
        )
    pairs = [tuple(pair) if isinstance(pair, tuple | list) else pair for pair in pairs]
    for i, pair in enumerate(pairs):
        if not (isinstance(pair, tuple) and len(pair) == 2 and all(map(_has_words, pair))):
            raise ValueError(
                f"from_pairs: pairs[{i}] must be (text, translation), two strings that are not "
                f"blank, got {pair!r}"
            )
    if not pairs:
        raise ValueError("from_pairs: pairs is empty. Pass at least one pair of texts")
    marks, texts = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"], [text for pair in pairs for text in pair]
    if tokenizer is None:
        cutter = WordPiece(marks, lower=False)
        words = sorted({word for text in texts for word in cutter.words(text)})
        tokenizer = WordPiece([*marks, *words], lower=False)
    unknown = dict.fromkeys(word for text in texts for word in tokenizer.unknown(text))
    if unknown:
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        raise ValueError(
            "from_pairs: the tokenizer does not know "
            f"{', '.join(map(repr, [*unknown][:5]))}{more}. Leave tokenizer= out to build one that "
            "knows all words"
        )
    source, target = (tokenizer.batch(side)[0] for side in zip(*pairs, strict=True))
    return source, target, tokenizer


def _has_words(text):
    return isinstance(text, str) and bool(text.strip())


def _words(language):
    """Return all different words and punctuation marks in the phrases of a language, sorted."""
    cardinals = _lines(language, "cardinals")
    # all other numbers are composed of these
    lines = [_ARTICLE[language], *cardinals[:200], *cardinals[200::100]]
    for name in ("days", "years", "months", "weekdays", "times"):
        lines += _lines(language, name)
    return sorted(set(re.findall(r"\w+|[^\w\s]", " ".join(lines).replace("{0}", "") + ",")))


# ---------------------------------------------------------------- the three kinds

_ARTICLE = {"en": "", "de": "der", "fr": ""}  # in German, a day of the month needs an article


def _date(language, rng):
    first = datetime.date(YEARS[0], 1, 1).toordinal()
    day = datetime.date.fromordinal(
        int(rng.integers(first, datetime.date(YEARS[1], 1, 1).toordinal()))
    )
    length = int(rng.integers(2))  # with or without the weekday
    return _dated("en", day, length), _dated(language, day, length)


def _dated(language, day, length):
    """Fill the date pattern number `length` of CLDR (EEEE, MMMM, d, y) with a day in words."""
    words = {
        "EEEE": _lines(language, "weekdays")[day.weekday()],
        "MMMM": _lines(language, "months")[day.month - 1],
        "d": f"{_ARTICLE[language]} {_lines(language, 'days')[day.day - 1]}".strip(),
        "y": _lines(language, "years")[day.year - FIRST_YEAR],
    }
    # a full stop after the day marks an ordinal number, which is a word here
    pattern = _lines(language, "dates")[length].replace("d.", "d")
    return re.sub("EEEE|MMMM|d|y", lambda found: words[found[0]], pattern)


def _number(language, rng):
    i = int(rng.integers(10000))
    return _lines("en", "cardinals")[i], _lines(language, "cardinals")[i]


def _time(language, rng):
    """Return a time in both languages, without numbers that end in 1, because their form varies."""
    i = 2 + int(rng.integers(TIMES - 2))
    i, which = i + (i % 10 == 1), int(rng.integers(len(_lines("en", "times"))))
    return tuple(
        _lines(side, "times")[which].replace("{0}", _lines(side, "cardinals")[i])
        for side in ("en", language)
    )


# ---------------------------------------------------------------- the file


def _check_language(name, language):
    if language not in [*STEMS]:
        raise ValueError(
            f'{name}: language must be "de" (German) or "fr" (French), got {language!r}'
        )


@cache
def _lines(language, name):
    with np.load(Path(__file__).with_name("translation.npz")) as file:
        return file[f"{language}_{name}"].tobytes().decode().split("\n")
