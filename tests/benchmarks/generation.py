"""Language models that generate with a cache, and sentences through MiniLM, against PyTorch.

Every program has the same weights and the same prompt and generates the same tokens greedily. Our
model runs compiled, which is the default of `generate`, and once through the modules alone. The
PyTorch models are written by hand. They use PyTorch's functions for norm, attention and products in
inference mode, and store keys and values in tensors of the final length.

    python -m tests.benchmarks.generation              two threads each
    python -m tests.benchmarks.generation 12 1         12 rounds, one thread each

SmolLM2 and MiniLM have the sizes of the real models. Their weights are random, which does not
change the time.
"""

import sys

from tests.benchmarks.measure import interleave, ratios, table, use_threads, versions

THREADS = int(sys.argv[2]) if len(sys.argv) > 2 else 2
use_threads(THREADS)

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as TF  # noqa: E402

import tinyattn as ta  # noqa: E402
from tinyattn import inference  # noqa: E402
from tinyattn.models import BERT, GPT, Llama  # noqa: E402

torch.set_num_threads(THREADS)


def tensors(model):
    return {name: torch.tensor(a) for name, a in model.state_dict().items()}


class TorchGenerator:
    """Generation of the likeliest tokens with PyTorch. The models differ only in `features`."""

    def __init__(self, model, heads, kv_heads, layers):
        self.w, self.heads, self.kv_heads, self.layers = tensors(model), heads, kv_heads, layers

    @torch.inference_mode()
    def generate(self, ids, n):
        B, T = ids.shape
        d = self.embedding.shape[1] // self.heads
        room = (self.layers, 2, B, self.kv_heads, T + n, d)
        self.cache, self.length = torch.empty(room), 0
        out, new = [ids], ids
        for _ in range(n):
            h = self.features(new)
            self.length += new.shape[1]
            new = TF.linear(h[:, -1], self.embedding).argmax(-1, keepdim=True)
            out.append(new)
        return torch.cat(out, 1)

    def attend(self, i, q, k, v):
        """Attend from q [B, H, T, d] to all keys so far. The first call is causal."""
        T, start = q.shape[2], self.length
        cache = self.cache[i]
        cache[0][:, :, start : start + T], cache[1][:, :, start : start + T] = k, v
        y = TF.scaled_dot_product_attention(
            q,
            cache[0][:, :, : start + T],
            cache[1][:, :, : start + T],
            is_causal=T > 1,
            enable_gqa=self.heads != self.kv_heads,
        )
        return y.transpose(1, 2).flatten(2)

    def split(self, x):
        return x.unflatten(-1, (-1, self.embedding.shape[1] // self.heads)).transpose(1, 2)


class TorchGPT(TorchGenerator):
    def __init__(self, model, heads, layers):
        super().__init__(model, heads, heads, layers)
        self.embedding = self.w["embedding.weight"]

    def features(self, ids):
        w, T = self.w, ids.shape[1]
        x = self.embedding[ids] + w["positions.weight"][self.length : self.length + T]
        shape = x.shape[-1:]
        for i in range(self.layers):
            p = f"blocks.layers.{i}."
            z = TF.layer_norm(x, shape, w[p + "norm1.weight"], w[p + "norm1.bias"])
            qkv = TF.linear(z, w[p + "self_attn.in_proj_weight"], w[p + "self_attn.in_proj_bias"])
            y = self.attend(i, *(self.split(u) for u in qkv.chunk(3, -1)))
            out = p + "self_attn.out_proj."
            x = x + TF.linear(y, w[out + "weight"], w[out + "bias"])
            z = TF.layer_norm(x, shape, w[p + "norm2.weight"], w[p + "norm2.bias"])
            z = TF.gelu(TF.linear(z, w[p + "linear1.weight"], w[p + "linear1.bias"]))
            x = x + TF.linear(z, w[p + "linear2.weight"], w[p + "linear2.bias"])
        return TF.layer_norm(x, shape, w["blocks.norm.weight"], w["blocks.norm.bias"])


class TorchLlama(TorchGenerator):
    def __init__(self, model, heads, kv_heads, layers, base=10000.0):
        super().__init__(model, heads, kv_heads, layers)
        self.embedding = self.w["embed_tokens.weight"]
        half = self.embedding.shape[1] // heads // 2
        angle = torch.arange(2048)[:, None] * base ** (-torch.arange(half) / half)
        self.cos, self.sin = (torch.cat([f(angle), f(angle)], -1) for f in (torch.cos, torch.sin))

    def turn(self, x):
        t = slice(self.length, self.length + x.shape[2])
        a, b = x.chunk(2, -1)
        return x * self.cos[t] + torch.cat([-b, a], -1) * self.sin[t]

    def features(self, ids):
        w, x = self.w, self.embedding[ids]
        shape = x.shape[-1:]
        for i in range(self.layers):
            p = f"layers.{i}."
            z = TF.rms_norm(x, shape, w[p + "input_layernorm.weight"], 1e-5)
            q, k, v = (self.split(TF.linear(z, w[f"{p}self_attn.{n}_proj.weight"])) for n in "qkv")
            y = self.attend(i, self.turn(q), self.turn(k), v)
            x = x + TF.linear(y, w[p + "self_attn.o_proj.weight"])
            z = TF.rms_norm(x, shape, w[p + "post_attention_layernorm.weight"], 1e-5)
            gate = TF.silu(TF.linear(z, w[p + "mlp.gate_proj.weight"]))
            up = TF.linear(z, w[p + "mlp.up_proj.weight"])
            x = x + TF.linear(gate * up, w[p + "mlp.down_proj.weight"])
        return TF.rms_norm(x, shape, w["norm.weight"], 1e-5)


def generating(ours, theirs, B, T, n, vocab):
    """Return all programs, after checking that they generate the same tokens."""
    ids = np.random.default_rng(0).integers(vocab, size=(B, T))
    programs = {
        "tinyattn": lambda: ours.generate(ids, n, temperature=0),
        "our modules, not compiled": lambda: ours.generate(ids, n, temperature=0, compiled=False),
        "PyTorch eager": lambda: theirs.generate(torch.tensor(ids), n).numpy(),
    }
    first, second, third = (run() for run in programs.values())
    assert (first == second).all()
    if not (first == third).all():
        print(f"  note: {np.mean(first != third):.1%} of the tokens differ (near ties)")
    return programs


def sentences(B, T):
    """Return programs for MiniLM (6 layers, d = 384, 12 heads) on B sentences of T tokens."""
    model = BERT(30522, 384, 12, 6, rng=0).eval()
    layer = torch.nn.TransformerEncoderLayer(384, 12, 1536, 0.0, "gelu", 1e-12, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 6, enable_nested_tensor=False).eval()
    w = tensors(model)
    encoder.load_state_dict(
        {n.removeprefix("encoder."): a for n, a in w.items() if n.startswith("encoder.")}
    )
    ids = np.random.default_rng(0).integers(30522, size=(B, T))
    torch_ids = torch.tensor(ids)

    compiled = inference.compile(model)

    def modules():
        with ta.no_grad():
            return model(ids).data

    @torch.inference_mode()
    def theirs():
        x = w["embedding.weight"][torch_ids] + w["positions.weight"][:T] + w["types.weight"][0]
        return encoder(TF.layer_norm(x, (384,), w["norm.weight"], w["norm.bias"], 1e-12)).numpy()

    ours = lambda: compiled(ids).data
    np.testing.assert_allclose(modules(), theirs(), atol=1e-4)
    np.testing.assert_allclose(ours(), theirs(), atol=1e-4)
    return {"tinyattn": ours, "our modules, not compiled": modules, "PyTorch eager": theirs}


def works():
    small = GPT(65, 128, 4, 4, 256, rng=0)
    torch_small = TorchGPT(small, 4, 4)
    yield "GPT, 4 layers, d = 128: 100 tokens", generating(small, torch_small, 1, 8, 100, 65)
    yield "the same, 12 texts at the same time", generating(small, torch_small, 12, 8, 100, 65)
    middle = GPT(65, 384, 6, 6, 256, rng=0)
    yield (
        "GPT, 6 layers, d = 384: 100 tokens",
        generating(middle, TorchGPT(middle, 6, 6), 1, 8, 100, 65),
    )
    smol = Llama(49152, 576, 9, 3, 30, 1536, rng=0)
    yield "SmolLM2: 20 tokens", generating(smol, TorchLlama(smol, 9, 3, 30), 1, 30, 20, 49152)
    yield "MiniLM: 1 sentence of 12 tokens", sentences(1, 12)
    yield "MiniLM: 32 sentences of 24 tokens", sentences(32, 24)


def main(rounds=12):
    rows = {}
    for work, programs in works():
        n = 3 * rounds if "MiniLM" in work else rounds  # these are short, and their figures vary
        times = interleave(programs, n, at_least=0.2)
        rows[work] = ratios(times, "tinyattn")
        print(work, file=sys.stderr, flush=True)  # the table comes at the end
    print(
        f"\nAll programs use float32, with {THREADS} threads each. Medians and quartiles are "
        f"over {rounds} rounds (MiniLM: {3 * rounds}).\n"
    )
    print(table(rows, ["our modules, not compiled", "PyTorch eager"]))
    print("\n" + versions(ta, np, torch))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
