"""The GPT that tells stories: what is shipped is what was measured, and it writes words."""

import re

import numpy as np
import pytest

from tinyattn.models import storyteller


@pytest.mark.parametrize(
    ("size", "parameters", "tokens"), [("large", 570_432, 1024), ("small", 87_360, 512)]
)
def test_what_is_shipped(size, parameters, tokens):
    model, tokenizer = storyteller.load(size)
    assert model.num_parameters() == parameters and len(tokenizer) == tokens
    assert not model.training
    text = 'Once upon a time, Lily said "Hello!"\nThe end.'
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert len(tokenizer.encode(text)) < len(text) / 2


@pytest.mark.parametrize("size", storyteller.SIZES)
def test_the_training_is_on_record(size):
    found = storyteller.record(size)
    assert found["loss"].shape == (100,) and found["loss"][-1] < 0.7 * found["loss"][0]
    steps, bits = found["held_out"].T
    assert steps[-1] == found["steps"] and bits[-1] == bits.min()  # trained to the end, not past it
    # 8 bits change the loss by less than the stories, of which the curve has 60 and this has 200
    assert abs(found["bits"] - bits[-1]) < 0.05


def test_the_large_one_predicts_better_than_the_small_one():
    assert storyteller.record("large")["bits"] < storyteller.record("small")["bits"]


def test_it_tells_a_story_in_english_words():
    model, tokenizer = storyteller.load()
    start = tokenizer.encode("<end>Once upon a time")
    text = tokenizer.decode(model.generate(start, 120, temperature=0.6, rng=0)[1:])
    words = re.findall(r"[a-z]+", text.lower())
    common = set("the a and to was he she it they said in of his her with had".split())
    assert len(words) > 60 and np.mean([w in common for w in words]) > 0.25
