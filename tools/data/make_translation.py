"""Make translation.npz: words for numbers and dates in three languages, and messages of a program.

pip install babel num2words django && python -m tools.data.make_translation
"""

import re
from pathlib import Path

import numpy as np

DATA = Path(__file__).resolve().parents[2] / "tinyattn" / "data"

LANGUAGES = ("en", "de", "fr")
UNITS = ("second", "minute", "hour", "day", "week", "month", "year")
LONGEST = 80  # characters of a message


def make(path):
    arrays = {}
    for language in LANGUAGES:
        for name, lines in {**numbers(language), **calendar(language)}.items():
            arrays[f"{language}_{name}"] = packed(lines)
    for language in LANGUAGES[1:]:
        pairs = messages(language)
        arrays[f"{language}_software"] = packed([s for s, _ in pairs] + [t for _, t in pairs])
    np.savez_compressed(path, **arrays)


def packed(lines):
    """Lines of text as one array of bytes: it compresses better than an array of strings."""
    if any("\n" in line for line in lines):
        raise ValueError("make_translation: a line must not contain a line break")
    return np.frombuffer("\n".join(lines).encode(), np.uint8)


def numbers(language):
    """0 to 9999, the years 1000 to 2099, and the days of a month, in words."""
    from num2words import num2words

    days = [num2words(i, lang=language, to="ordinal") for i in range(1, 32)]
    if language == "fr":  # le premier, but le deux, le trois
        days[1:] = [num2words(i, lang="fr") for i in range(2, 32)]
    return {
        "cardinals": [num2words(i, lang=language) for i in range(10000)],
        "years": [num2words(i, lang=language, to="year") for i in range(1000, 2100)],
        "days": days,
    }


def calendar(language):
    """Names of months and of weekdays from Monday on; patterns of dates and of "in {0} days"."""
    from babel import Locale
    from babel.dates import get_date_format

    locale = Locale(language)
    fields = locale._data["date_fields"]
    return {
        "months": [locale.months["format"]["wide"][i] for i in range(1, 13)],
        "weekdays": [locale.days["format"]["wide"][i] for i in range(7)],
        "dates": [get_date_format(length, language).pattern for length in ("full", "long")],
        "times": [fields[unit][when]["other"] for when in ("past", "future") for unit in UNITS],
    }


def messages(language):
    """[(English, translation)] of Django's own messages that are short, plain and translated."""
    import django
    from babel.messages.pofile import read_po

    found = {}
    for file in sorted(Path(django.__file__).parent.rglob(f"{language}/LC_MESSAGES/django.po")):
        with open(file, "rb") as po:
            for message in read_po(po):
                if message.id and not message.fuzzy:
                    one = isinstance(message.id, tuple)  # singular and plural
                    sides = (
                        zip(message.id, message.string, strict=False)
                        if one
                        else [(message.id, message.string)]
                    )
                    for side in sides:
                        found.setdefault(*side)
    clean = {unwrap(source): unwrap(target) for source, target in found.items() if target}
    return sorted((s, t) for s, t in clean.items() if s and t and max(len(s), len(t)) <= LONGEST)


def unwrap(text):
    """Ordinary blanks; "" for a text with line breaks or marks of a page in it."""
    text = re.sub("[\xa0\u202f]", " ", text).strip()
    return "" if re.search(r"[\n<>]", text) else text


if __name__ == "__main__":
    make(DATA / "translation.npz")
