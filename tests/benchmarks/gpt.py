"""A training step of a GPT through nn and optim, against the same model in PyTorch eager.

    python -m tests.benchmarks.gpt [rounds]

A step: logits, cross-entropy, backward, AdamW. Float32, two threads on both sides. Before
anything is timed the loss and all gradients are compared with PyTorch's in float64, and three
steps of training in float32.
"""

import sys

from tests.benchmarks.measure import HEADER, interleave, row, use_threads, versions

use_threads(2)

import numpy as np  # noqa: E402
import torch  # noqa: E402

import tinyattn as ta  # noqa: E402
import tinyattn.functional as F  # noqa: E402
from tinyattn import models, optim  # noqa: E402

torch.set_num_threads(2)
VOCABULARY = 128
SIZES = {  # layers, d_model, heads, T, B, goal
    "tiny": (2, 64, 4, 32, 8, 2.0),
    "small": (4, 128, 4, 64, 12, 1.35),
    "big": (6, 384, 6, 256, 8, 1.15),
}


class Block(torch.nn.Module):
    """x + Attention(norm x), then x + W₂ gelu(W₁ norm x), as one writes it in PyTorch."""

    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = torch.nn.LayerNorm(d), torch.nn.LayerNorm(d)
        self.inside, self.outside = torch.nn.Linear(d, 3 * d), torch.nn.Linear(d, d)
        self.linear1, self.linear2 = torch.nn.Linear(d, 4 * d), torch.nn.Linear(4 * d, d)

    def forward(self, x):
        B, T, d = x.shape
        q, k, v = (
            z.view(B, T, self.heads, d // self.heads).transpose(1, 2)
            for z in self.inside(self.norm1(x)).split(d, dim=2)
        )
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.outside(y.transpose(1, 2).reshape(B, T, d))
        return x + self.linear2(torch.nn.functional.gelu(self.linear1(self.norm2(x))))


class TorchGPT(torch.nn.Module):
    """The same GPT, with the weights of one of ours."""

    def __init__(self, ours, d, heads, layers, T):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, d)
        self.positions = torch.nn.Parameter(torch.zeros(T, d))
        self.blocks = torch.nn.ModuleList([Block(d, heads) for _ in range(layers)])
        self.norm = torch.nn.LayerNorm(d)
        with torch.no_grad():
            for theirs, mine in zip(self.ordered(), ordered(ours), strict=True):
                theirs.copy_(torch.from_numpy(mine.data.copy()))

    def ordered(self):
        """The parameters in the order of `ordered`."""
        found = [self.embedding.weight, self.positions]
        for b in self.blocks:
            for part in (b.inside, b.outside, b.linear1, b.linear2, b.norm1, b.norm2):
                found += [part.weight, part.bias]
        return [*found, self.norm.weight, self.norm.bias]

    def forward(self, ids):
        x = self.embedding(ids) + self.positions[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return torch.nn.functional.linear(self.norm(x), self.embedding.weight)


def ordered(model):
    """The parameters of our GPT in the order of those of TorchGPT."""
    found = dict(model.named_parameters())
    names = ["embedding.weight", next(n for n in found if n.startswith("positions."))]
    parts = ("self_attn.in_proj", "self_attn.out_proj", "linear1", "linear2", "norm1", "norm2")
    for i in range(sum(name.endswith("norm1.weight") for name in found)):
        for part in parts:
            joint = "_" if part.endswith("in_proj") else "."
            names += [f"blocks.layers.{i}.{part}{joint}{kind}" for kind in ("weight", "bias")]
    names += ["blocks.norm.weight", "blocks.norm.bias"]
    assert sorted(names) == sorted(found)
    return [found[name] for name in names]


def programs(size, dtype=np.float32):
    """{name: step}; a step returns the loss. And the two lists of parameters."""
    layers, d, heads, T, B, _ = SIZES[size]
    ours = models.GPT(VOCABULARY, d, heads, layers, T, rng=0).astype(dtype)
    theirs = TorchGPT(ours, d, heads, layers, T).to(getattr(torch, np.dtype(dtype).name))
    text = np.random.default_rng(0).integers(0, VOCABULARY, (B, T + 1))
    x, y = text[:, :-1].copy(), text[:, 1:].reshape(-1).copy()
    torch_x, torch_y = torch.from_numpy(x), torch.from_numpy(y)
    optimizer = optim.AdamW(ours.parameters(), lr=1e-3)
    torch_optimizer = torch.optim.AdamW(theirs.parameters(), lr=1e-3)

    def tinyattn():
        optimizer.zero_grad()
        loss = F.cross_entropy(ours(x).reshape(-1, VOCABULARY), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    def pytorch():
        torch_optimizer.zero_grad()
        logits = theirs(torch_x).reshape(-1, VOCABULARY)
        loss = torch.nn.functional.cross_entropy(logits, torch_y)
        loss.backward()
        torch_optimizer.step()
        return loss.item()

    return {"tinyattn": tinyattn, "PyTorch eager": pytorch}, ordered(ours), theirs.ordered()


def check(size):
    """Loss and gradients in float64, and the losses of three steps in float32."""
    steps, ours, theirs = programs(size, np.float64)
    losses = [step() for step in steps.values()]
    np.testing.assert_allclose(*losses, rtol=1e-12)
    for p, q in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(p.grad, q.grad.numpy(), rtol=1e-8, atol=1e-11)
        np.testing.assert_allclose(p.data, q.detach().numpy(), rtol=1e-5, atol=1e-8)
    steps, *_ = programs(size)
    losses = [[step() for _ in range(3)] for step in steps.values()]
    np.testing.assert_allclose(*losses, rtol=1e-4)


def main(rounds=15):
    print(HEADER)
    for size, (layers, d, _, T, B, goal) in SIZES.items():
        check(size)
        steps, *_ = programs(size)
        times = interleave(steps, rounds, 3, at_least=0.05)
        work = f"GPT training step, {size}: {layers} layers, d = {d}, T = {T}, B = {B}"
        print(row(work, times, goal=goal), flush=True)
    print(f"\nFloat32, 2 threads each, median and quartiles of {rounds} rounds; logits, "
          f"cross-entropy, backward and AdamW. {versions(np, torch, ta)}")  # fmt: skip


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 15)
