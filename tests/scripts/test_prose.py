"""The table of patterns counts words and patterns, and reads every kind of text."""

from tests.scripts import prose

PROGRAM = '''
"""What is here stands alone; the rest does not.

    x = what(is) ; y        # code

The end.
"""

LIMIT = 3  # of what is drawn
# two lines
# in place of one


def f(x, n):
    """Return the sum.

    Args:
        x   what is added; that of others is not
    """
    if n < 0:
        raise ValueError(f"f: expected n >= 0, got {n}; what is it?")
    raise KeyError
'''
LECTURE = """---
kernelspec: python
---

+++ {"tags": ["K30"]}

# A title

Nobody says so; `code; with; semicolons` does not count.

```{code-cell}
x = 1; y = 2; z = 3
```

+++ {"tags": ["notes"]}

Ask: who is it?
"""


def joined(texts):
    return "\n\n".join(text for _, text in texts)


def test_words_and_patterns_are_counted():
    words, found = prose.rates("What is taken away; it stands in place of x. Nobody came.")
    assert words == 12
    for name in ("semicolons", "what ...", "stands", "in place of", "nobody"):
        assert round(found[name], 6) == round(10_000 / 12, 6), name
    assert found["that of"] == found["hears"] == 0


def test_docstrings_lose_their_code_and_keep_descriptions():
    text = joined(prose.docstrings(PROGRAM))
    words, found = prose.rates(text)
    assert "what(is)" not in text and "Args" not in text
    assert "what is added" in text and "Return the sum" in text
    assert round(found["what ..."] * words / 10_000) == 2  # the module's and the argument's
    assert round(found["semicolons"] * words / 10_000) == 2
    assert round(found["that of"] * words / 10_000) == 1


def test_errors_and_comments_are_read():
    (error,) = prose.errors(PROGRAM)
    assert error == (21, "f: expected n >= 0, got X; what is it?")
    comments = prose.comments(PROGRAM)
    assert [text for _, text in comments] == ["of what is drawn", "two lines in place of one"]


def test_lectures_are_divided_into_slides_and_notes():
    slides = joined(prose.of_cells(notes=False)(LECTURE))
    notes = joined(prose.of_cells(notes=True)(LECTURE))
    assert "Ask" in notes and "Ask" not in slides and "kernelspec" not in slides
    words, found = prose.rates(slides)
    assert round(found["semicolons"] * words / 10_000) == 1  # not those of the code
    assert found["nobody"] > 0


def test_the_ledger_is_read():
    text = joined(prose.ledger('[C001]\nclaim = "A holds; B too"\nevidence = "4 of 5"\n'))
    assert prose.rates(text)[1]["semicolons"] > 0 and "4 of 5" in text


def test_the_table_has_a_column_for_each_kind():
    texts = {}
    for kind, _, _, text in prose.project():
        texts[kind] = texts.get(kind, "") + "\n\n" + text
    assert set(texts) == set(prose.KINDS)
    assert all(prose.rates(text)[0] > 1000 for text in texts.values())
    head, *lines = prose.table(texts).split("\n")
    assert all(kind in head for kind in prose.KINDS)
    assert [line[:18].strip() for line in lines] == [*prose.PATTERNS, "words"]
