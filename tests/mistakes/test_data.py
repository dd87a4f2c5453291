"""Mistakes with data sets and tokenizers: the error that each must raise."""

import numpy as np
import pytest

from tests.data.test_tokenizers import GGUF_TOKENIZER
from tinyattn import data
from tinyattn.data import recall
from tinyattn.data.emoji import SIZE, scenes
from tinyattn.data.grids import words
from tinyattn.data.sentences import agreement, nested
from tinyattn.data.showers import irregular_cells, select
from tinyattn.data.tokenizers import BytePairs, Bytes, Characters, WordPiece, padded
from tinyattn.data.translation import from_pairs, phrases, software


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: data.batches(np.zeros(3), np.zeros(4)), "same number of examples.*got 3, 4"),
        (lambda: data.batches(), "at least one array"),
        (lambda: data.batches(np.float32(3)), "array 0 is a single number"),
        (lambda: data.batches(np.zeros((0, 3))), "no examples"),
        (lambda: data.batches(np.zeros(3), batch_size=0), "whole number >= 1, got 0"),
        (lambda: data.batches(np.zeros(3), batch_size=2.5), "whole number >= 1, got 2.5"),
        (lambda: data.batches(np.zeros(3), batch_size=4, drop_last=True), "leaves no batch"),
        (lambda: data.batches(np.zeros(3), rng="0"), "rng: expected"),
        (lambda: data.split(np.zeros(3), np.zeros(4)), "same number of examples.*got 3, 4"),
        (lambda: data.split(np.zeros(3), held_out=1.5), "fraction 0 < held_out < 1"),
        (lambda: data.split(np.zeros(3), held_out=3), "fraction 0 < held_out < 1"),
        (
            lambda: data.split(np.zeros(3), held_out=0.01),
            "0 < held_out < 3, with one or more of the 3 examples in each part",
        ),
        (lambda: data.split(np.zeros(3), held_out=True), "got held_out=True"),
        (lambda: data.split(np.zeros((1, 3))), "only 1 example .* so it cannot be split"),
        (lambda: data.batches(np.zeros(3), None), "array 1 is a NoneType"),
        (lambda: data.batches(np.zeros(3), 2), "array 1 is .* by name, such as batch_size=32"),
        (lambda: data.split(np.zeros(3), 0.2), "array 1 is .* by name, such as held_out=0.2"),
        (lambda: data.split([[1], [2, 3]]), "got a list with entries of different shapes"),
    ],
)
def test_errors_of_batches_say_what_came(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_scenes_explain_wrong_input():
    pictures = np.ones((3, SIZE, SIZE, 3))
    assert len(scenes(pictures, np.zeros((0, 2), int))) == 0
    for which in ([[3, 0]], [[-1, 0]], [[0, -2]]):
        with pytest.raises(ValueError, match="indices from 0 to 2, or -1 for"):
            scenes(pictures, which)
    with pytest.raises(
        ValueError, match=r"which must be whole numbers \[N, 2\].*got dtype int64 and shape \(2,\)"
    ):
        scenes(pictures, [0, 1])
    with pytest.raises(ValueError, match=r"pictures must be \[M, 24, 24, 3\]"):
        scenes(np.ones((3, 8, 8)), [[0, 1]])


def test_wrong_input_of_overlaps_and_tracks():
    with pytest.raises(ValueError, match=r"objects\[1\] <= 8, got objects=\(2, 9\)"):
        data.overlaps(3, 0, objects=(2, 9))
    with pytest.raises(ValueError, match="overlaps: expected 0 <= n, got n=-1"):
        data.overlaps(-1)
    with pytest.raises(ValueError, match=r"tracks: expected 0 <= objects\[0\] <= objects"):
        data.tracks(2, objects=(3, 1))
    with pytest.raises(
        ValueError, match=r"fit on a circle, got apart=1.5 rad and objects=\(2, 5\)"
    ):
        data.tracks(2, apart=1.5)


@pytest.mark.parametrize(
    "call", [lambda: agreement(2, 0), lambda: agreement(2, 1.5), lambda: nested(1, -1)]
)
def test_bad_input_of_sentences_is_explained(call):
    with pytest.raises(ValueError, match="distance must be whole numbers >= 1|expected 0 <= depth"):
        call()


def test_distances_for_another_number_of_sentences_are_explained():
    with pytest.raises(ValueError, match=r"one for each sentence \(n=4\), got shape \(2,\)"):
        agreement(4, [1, 2])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"kinds": ("ball", "cube")}, "a tuple of one or more of 'ball', .*, 'mug', got"),
        ({"kinds": ()}, "kinds must be a tuple of one or more"),
        ({"N": 1}, "expected 2 <= N, got N=1"),
        ({"noise": -1}, "0 <= noise < inf, got noise=-1"),
        ({"uneven": np.inf}, "uneven <= 300, got uneven=inf"),
        ({"uneven": 500}, "-300 <= uneven <= 300, got uneven=500"),
    ],
)
def test_wrong_input_of_shapes(options, says):
    with pytest.raises(ValueError, match=says):
        data.shapes(2, **options)


def test_showers_that_cannot_be():
    with pytest.raises(ValueError, match=r"objects\[0\] <= objects\[1\], got objects=\(3, 1\)"):
        data.showers(2, objects=(3, 1))
    for noise in (-0.1, 2, np.nan, np.inf):
        with pytest.raises(ValueError, match=f"in GeV, .* 0 <= noise <= 1, got noise={noise}"):
            data.showers(2, noise=noise)
    with pytest.raises(ValueError, match="0 <= planes <= 3, got planes=4"):
        data.showers(2, planes=4)
    with pytest.raises(ValueError, match=r"0 < spread <= 16 cm"):
        data.showers(2, spread=0)


@pytest.mark.parametrize(
    ("ids", "options", "says"),
    [
        (np.arange(8), {"batch_size": 2, "length": 4}, "at least 9 ids, got 8"),
        (np.arange(8.0), {"batch_size": 2, "length": 2}, r"Convert them with np.asarray\(ids, int"),
        ("a text", {"batch_size": 2, "length": 2}, "A tokenizer turns text into ids"),
        ([[1], [2, 3]], {"batch_size": 1, "length": 2}, r"Join .* np.concatenate\(ids\)"),
        ([], {"batch_size": 1, "length": 1}, "need at least 2 ids, got 0. Pass more ids"),
        (np.zeros((3, 3), int), {"batch_size": 1, "length": 2}, r"shape \(3, 3\)"),
        (np.arange(8), {"batch_size": 0, "length": 2}, "batch_size must be a whole number"),
        (np.arange(8), {"batch_size": 1, "length": 2.5}, "length must be a whole number"),
    ],
)
def test_windows_say_what_is_wrong(ids, options, says):
    with pytest.raises(ValueError, match=says):
        data.windows(ids, **options)


def test_the_memory_tasks_say_what_is_wrong():
    with pytest.raises(ValueError, match="first_bit: expected 1 <= length, got length=0"):
        recall.first_bit(3, 0)
    with pytest.raises(ValueError, match="expected 4 <= length, got length=2"):
        recall.delayed_bit(3, 2)


TEXT = "low lower lowest newer newest widest the lower the newer, it's 2024!\n\n  low  low " * 3
SPECIAL = ["<|end|>", "<|begin|>"]
PAIRS = BytePairs.train(TEXT, 300, SPECIAL)


def test_ids_that_are_no_tokens():
    for tokenizer in (Bytes(), Characters("ab"), PAIRS):
        with pytest.raises(ValueError, match="expected token ids from 0 to"):
            tokenizer.decode([len(tokenizer)])
        with pytest.raises(ValueError, match="expected token ids from 0 to"):
            tokenizer.decode([-1])
        with pytest.raises(ValueError, match=r"which are integers \[T\]"):
            tokenizer.decode([[0]])
        with pytest.raises(ValueError, match=r"which are integers \[T\]"):
            tokenizer.decode([0.5])


FIRST_LINES = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"has no \[PAD\], \[UNK\], \[CLS\], \[SEP\]"),
        (b"[PAD]\n[UNK]\n", r"has no \[CLS\], \[SEP\]"),
        (FIRST_LINES.encode() + b"a\n\xff\n", "line 6: byte 0xff is not UTF-8"),
        (FIRST_LINES.encode() + b"a\n\nb\n", "line 6 is empty"),
        (FIRST_LINES.encode() + b"a\nb\na\n", "line 7: 'a' already appears on line 5"),
        (b"\n" * 1000, "line 1 is empty"),
    ],
)
def test_a_broken_vocabulary_is_refused_with_file_and_line(tmp_path, content, message):
    (tmp_path / "vocab.txt").write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        WordPiece(tmp_path / "vocab.txt")
    assert str(tmp_path / "vocab.txt") in str(caught.value)


MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


def test_wrong_requests_of_phrases_are_explained():
    with pytest.raises(ValueError, match='language must be "de" .* or "fr" .*, got .es'):
        phrases(3, "es")
    with pytest.raises(ValueError, match="language must be"):
        software("en")
    with pytest.raises(ValueError, match="one or more of 'date', 'number', 'time', got .'hour',."):
        phrases(3, kinds=("hour",))
    with pytest.raises(ValueError, match="0 <= n <= 5000 for the kinds \\['number'\\], got n=9000"):
        phrases(9000, kinds=("number",))
    with pytest.raises(ValueError, match="0 <= n <= 5000 for"):  # it would search forever
        phrases(12_000, kinds=("number", "number", "number"))


def test_pairs_that_are_none_are_explained():
    for wrong in (["a cat"], [("a", "b", "c")], [("a", "")], [("a", 3)], ["ab"]):
        with pytest.raises(
            ValueError, match=r"pairs\[0\] must be \(text, translation\), two strings that"
        ):
            from_pairs(wrong)
    with pytest.raises(ValueError, match="at least one pair"):
        from_pairs([])
    with pytest.raises(ValueError, match="does not know 'zebra'. Leave tokenizer= out"):
        from_pairs([("a zebra", "ein Zebra")][:1], WordPiece([*MARKS, "a", "ein", "Zebra"], False))


@pytest.mark.parametrize("make", [data.jets, data.hard_jets, data.light_curves, data.molecules])
def test_a_part_that_a_data_set_does_not_have(make):
    name = make.__name__
    with pytest.raises(
        ValueError, match=rf'{name}: part must be "train", "test" or "all", got \'valid\''
    ):
        make("valid")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"length": 10_000}, "1 <= length <= 690, .* got length=10000$"),
        ({"length": 20, "out_of": 10}, "1 <= length <= out_of <= 690, .* length=20, out_of=10"),
    ],
)
def test_lengths_that_light_curves_do_not_have(wrong, says):
    with pytest.raises(ValueError, match=says):
        data.light_curves(**wrong)


@pytest.mark.parametrize("objects", [[], [0, 1], [10], 3])
def test_numbers_of_objects_that_do_not_fit_into_a_grid(objects):
    with pytest.raises(ValueError, match="must be a list of whole numbers from 1 to 9.*got"):
        data.grids(3, objects)


def test_a_table_of_cells_has_six_columns():
    with pytest.raises(ValueError, match=r"cells must be \[cells, 6\]"):
        data.showers(1, rng=0, cells=irregular_cells(rng=0)[:, :3])


@pytest.mark.parametrize("density", [0, -1, 0.05, np.nan, np.inf])
def test_a_density_without_cells(density):
    with pytest.raises(ValueError, match=r"0\.06 <= density < inf"):
        irregular_cells(rng=0, density=density)


def test_unknown_characters_are_named():
    with pytest.raises(ValueError, match="'q', 'z' did not occur"):
        Characters("hello").encode("hqz")


def test_fewer_tokens_than_bytes_and_special_ones():
    with pytest.raises(ValueError, match="256 bytes and 2 special"):
        BytePairs.train("a", 257, SPECIAL)


def test_a_tokenizer_of_another_model_and_a_byte_without_token_are_named():
    with pytest.raises(ValueError, match="the tokenizer is 'llama'"):
        BytePairs.from_gguf(GGUF_TOKENIZER | {"tokenizer.ggml.model": "llama"})
    none = {k: v for k, v in GGUF_TOKENIZER.items() if not k.endswith("unknown_token_id")}
    with pytest.raises(ValueError, match="'z' has a byte that is not a token"):
        BytePairs.from_gguf(none).encode("z")


def test_a_vocabulary_without_marks_names_them():
    with pytest.raises(ValueError, match=r"has no \[UNK\], \[SEP\]"):
        WordPiece(["[PAD]", "[CLS]"])
    with pytest.raises(ValueError, match=r'has no \[PAD\]. Remove the "\\n" at the end'):
        WordPiece(["[PAD]\n", *MARKS[1:]])
    with pytest.raises(ValueError, match="contains 'a' twice, at the indices 4 and 6"):
        WordPiece([*MARKS, "a", "b", "a"])


def test_special_tokens_are_different_and_not_empty():
    for special in ([""], ["<s>", "<s>"]):
        with pytest.raises(ValueError, match="special must contain different texts, none of them"):
            BytePairs.train("a", 300, special)


def test_jets_and_positions_of_a_wrong_kind():
    for call in (data.jet_features, data.four_momenta):
        with pytest.raises(TypeError, match=f"{call.__name__}: jets must be a Jets, .* ndarray"):
            call(np.zeros((2, 40, 3)))
    for positions in ([1, 2, 3], [["a", "b", "c"]]):
        with pytest.raises(ValueError, match=r"distances: positions must be numbers \[..., N, D\]"):
            data.distances(positions)


def test_cells_that_are_not_finite():
    with pytest.raises(ValueError, match="cells must be finite, but row 1 has NaN"):
        data.showers(1, cells=[[0.0] * 6, [np.nan] * 6])


@pytest.mark.parametrize("make", [data.moons, data.spirals, data.sine])
def test_generated_sets_refuse_no_points_and_negative_noise(make):
    with pytest.raises(ValueError, match="expected 0 <= noise < inf, got noise=-1"):
        make(noise=-1)
    with pytest.raises(ValueError, match="expected [123] <= n, got n=0"):
        make(n=0)


def test_networks_that_cannot_be():
    with pytest.raises(ValueError, match="expected 0 <= between <= 1, got between=2"):
        data.stochastic_block_model(between=2)
    with pytest.raises(ValueError, match=r"got informed=5, neighbours=\(4, 12\)"):
        data.distractors(informed=5)
    with pytest.raises(
        ValueError, match=r"num_nodes >= 36 for .* informed=2 and neighbours=\(4, 12\)"
    ):
        data.distractors(35)


def test_events_that_cannot_be_selected():
    events = data.showers(3, rng=0)
    for wrong in ([3], [-1], [0.5], [True, False, True], [[0]]):
        with pytest.raises(ValueError, match="select: events must be indices from 0 to 2, got .*"):
            select(events, wrong)
    assert len(select(events, []).event) == 0


def test_token_ids_of_captions_and_sentences():
    for read, name in ((words, "words"), (data.sentences.read, "read")):
        with pytest.raises(ValueError, match=rf"{name}: .* got int64 of shape \(1, 2\)"):
            read([[1, 2]])
        with pytest.raises(ValueError, match=f"{name}: expected token ids from 0 to"):
            read([99])


def test_texts_and_sequences_of_a_wrong_kind():
    wordpiece = WordPiece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a"])
    for call, message in (
        (lambda: wordpiece.batch("a a"), r"batch: texts must be a list .*Write \[text\]"),
        (lambda: wordpiece.encode("a", 3), "WordPiece.encode, pair: expected one text, got int"),
        (lambda: wordpiece.pieces(3), "WordPiece.pieces: expected one text, got int"),
        (lambda: wordpiece.unknown(3), "WordPiece.unknown: expected one text"),
        (lambda: wordpiece.words(["a"]), "WordPiece.words: expected one text, got list"),
        (lambda: padded([1, 2]), r"sequence 0 .* got int64 of shape \(\)"),
        (lambda: padded([[1], [1.5]]), r"sequence 1 .* got float64 of shape \(1,\)"),
        (lambda: padded("abc"), "padded: sequence 0 must be token ids"),
        (lambda: padded([[[1], [2, 3]]]), r"sequence 0 .* got object of shape \(2,\)"),
        (lambda: padded(3), "padded: sequences must be a list, got 3"),
        (lambda: padded([[1], [2, 3]], pad=0.5), "pad must be a whole number, got 0.5"),
        (lambda: wordpiece.encode(["a"]), r"got list. .* write tokenizer.batch\(texts\)"),
        (lambda: wordpiece.batch(["a", 3]), r"batch, texts\[1\]: expected one text, got int"),
        (lambda: wordpiece.batch(3), "texts must be a list of texts, got 3"),
        (lambda: Bytes().encode(b"a"), 'got bytes. Convert it with .decode."utf-8"'),
        (lambda: WordPiece(3), "path of a file or a list of strings, got 3"),
        (lambda: WordPiece([*MARKS, 3]), r"a list of strings, got \['\[PAD\]'"),
        (lambda: BytePairs([b"a"], [], special=["<s>"]), r"a dictionary .* got \['<s>'\]"),
        (lambda: BytePairs.train("a", 300, [1]), r"special must be a list of texts, got \[1\]$"),
        (lambda: BytePairs.from_gguf("file.gguf"), "the field metadata of a GGUF, got .* str"),
        (
            lambda: BytePairs.train("abab", 300, special="<s>"),
            r"special must be a list of texts, got '<s>'. Write special=\['<s>'\]",
        ),
        (
            lambda: from_pairs([("a", "b")], Bytes()),
            "from_pairs: tokenizer must be a WordPiece or None, got an object of type Bytes",
        ),
    ):
        with pytest.raises(TypeError, match=message):
            call()
