"""Seq2Seq, the encoder-decoder transformer: padding, causality, decoding with caches, learning."""

import numpy as np
import pytest

import tinyattn as ta
from tests.parity import torch
from tinyattn import check, nn, optim
from tinyattn.data import translation
from tinyattn.models import Seq2Seq
from tinyattn.models.decoding import log_softmax

V, D, H = 11, 8, 2
rng = np.random.default_rng(0)
IDS = rng.integers(V, size=(3, 7))
TN = torch.nn


def seq2seq(**options):
    return Seq2Seq(V, D, H, 2, 16, dropout=0.0, rng=0, **options).astype(np.float64)


SRC, TGT = IDS % 10 + 1, (IDS[:, :5] + 3) % 10 + 1
SRC[1, 4:] = SRC[2, 2:] = 0
TGT[2, 3:] = 0


def test_padding_of_source_and_target_changes_nothing():
    model = seq2seq()
    whole = model(SRC, TGT).data
    for b, (s, t) in enumerate(((7, 5), (4, 5), (2, 3))):
        alone = model(SRC[b : b + 1, :s], TGT[b : b + 1, :t]).data
        np.testing.assert_allclose(whole[b, :t], alone[0], rtol=0, atol=1e-13)
    total = sum(
        model.loss(SRC[b : b + 1, :s], TGT[b : b + 1, :t]).item() * (t - 1)
        for b, (s, t) in enumerate(((7, 5), (4, 5), (2, 3)))
    )
    np.testing.assert_allclose(model.loss(SRC, TGT).item(), total / (4 + 4 + 2), rtol=1e-12)


def test_loss_is_pytorchs_with_label_smoothing():
    model = seq2seq()
    y = torch.tensor(model(SRC, TGT[:, :-1]).data)
    expected = TN.functional.cross_entropy(
        y.flatten(0, 1), torch.tensor(TGT[:, 1:]).ravel(), ignore_index=0, label_smoothing=0.1
    )
    np.testing.assert_allclose(model.loss(SRC, TGT).item(), expected.item(), rtol=1e-12)


def test_the_target_is_causal_and_sees_the_source():
    model = seq2seq()
    check.causal(lambda tgt: model(SRC[:1], tgt), TGT[:1, :4]).expect()
    assert (model(SRC[:1], TGT[:1]).data != model(SRC[:1, ::-1], TGT[:1]).data).all()


@pytest.mark.parametrize("beams", [1, 3])
def test_translation_with_cache_has_its_true_probability(beams):
    model, start, stop = seq2seq(), 1, 2
    for b, found in enumerate(model.search(SRC, start, stop, 6, beams)):
        n = np.count_nonzero(SRC[b])
        for h in found:
            tgt = np.array([[start, *h.tokens, *([stop] if h.finished else [])]])
            p = log_softmax(model(SRC[b : b + 1, :n], tgt[:, :-1]).data)[0]
            true = sum(p[t, tgt[0, t + 1]] for t in range(len(p)))
            np.testing.assert_allclose(h.log_probability, true, rtol=1e-10)
    greedy = model.translate(SRC, start, stop, 6)
    assert all(
        (a == b[0].tokens).all()
        for a, b in zip(greedy, model.search(SRC, start, stop, 6, 1), strict=True)
    )


def test_it_learns_to_reverse():
    model = Seq2Seq(8, 32, 2, 1, 64, dropout=0.0, rng=0)
    random = np.random.default_rng(0)
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(150):
        words = random.integers(3, 8, size=(32, 4))
        tgt = np.concatenate([np.full((32, 1), 1), words[:, ::-1], np.full((32, 1), 2)], axis=1)
        optimizer.zero_grad()
        loss = model.loss(words, tgt, label_smoothing=0.0)
        loss.backward()
        optimizer.step()
    words = random.integers(3, 8, size=(20, 4))
    right = [
        list(y) == list(x[::-1])
        for x, y in zip(words, model.translate(words, 1, 2, 6), strict=True)
    ]
    assert np.mean(right) > 0.9
    maps = model.attention_maps(words, words)
    assert maps[0].shape == (20, 2, 4, 4)
    np.testing.assert_allclose(maps[0].sum(-1), 1, rtol=1e-5)


def test_maps_of_an_encoder_are_those_it_uses():
    layer = nn.TransformerEncoderLayer(D, H, 16, dropout=0.0, norm_first=True, rng=0)
    encoder = nn.TransformerEncoder(layer, 2).astype(np.float64)
    x = ta.tensor(rng.normal(size=(2, 5, D)))
    maps = encoder.attention_maps(x, causal=True)
    z = encoder.layers[1].norm1(encoder.layers[0](x, causal=True))
    _, weights = encoder.layers[1].self_attn(z, z, z, causal=True, average_attn_weights=False)
    assert (maps[1] == weights.data).all() and maps[0].shape == (2, H, 5, 5)


# ---------------------------------------------------------------- what translate takes

PAIRS = [("a cat sleeps", "eine Katze schläft"), ("a dog", "ein Hund"), ("cats", "Katzen")]


@pytest.fixture(scope="module")
def translator():
    source, target, tokenizer = translation.from_pairs(PAIRS)
    model = Seq2Seq(len(tokenizer), 32, 4, 1, 64, dropout=0.0, rng=0)
    optimizer = optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(120):
        optimizer.zero_grad()
        model.loss(source, target, label_smoothing=0.0).backward()
        optimizer.step()
    return model, source, tokenizer


def test_texts_one_sentence_and_batches_are_translated(translator):
    model, source, tokenizer = translator
    said = [german for _, german in PAIRS]
    texts = [english for english, _ in PAIRS]
    assert model.translate(texts, tokenizer=tokenizer) == said
    assert model.translate("a dog", tokenizer=tokenizer) == "ein Hund"
    ids = [tokenizer.encode(german)[1:-1] for german in said]
    start, stop = tokenizer.ids["[CLS]"], tokenizer.ids["[SEP]"]
    ragged = [row[row != 0] for row in source]
    for given in (source, ta.tensor(source), ragged, [row.tolist() for row in ragged]):
        for found in (
            model.translate(given, start, stop),
            model.translate(given, tokenizer=tokenizer),
        ):
            assert [list(a) for a in found] == [list(a) for a in ids]
    for one in (ragged[1], ragged[1].tolist(), ta.tensor(ragged[1])):
        found = model.translate(one, start, stop)
        assert found.ndim == 1 and list(found) == list(ids[1])
