"""A training step of a GPT through nn and optim, against the same model in PyTorch.

    python -m tests.benchmarks.gpt [rounds]

A step computes logits, cross-entropy and gradients, and updates the weights with AdamW. All
programs use float32 and two threads. PyTorch runs in two versions: eager, to which the goals refer,
and with logits and cross-entropy through torch.compile, which needs a C++ compiler. Before any
timing, the loss and all gradients are compared with PyTorch eager in float64. Then the losses of
three steps in float32 are compared with both versions. torch.compile compiles in these steps.
"""

import copy
import sys

from tests.benchmarks.measure import HEADER, by_processor, foot, interleave, row, use_threads

use_threads(2)

import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch._inductor.exc import (  # noqa: E402
    CppCompileError,
    InductorError,
    InvalidCxxCompiler,
)

import tinyattn as ta  # noqa: E402
import tinyattn.functional as F  # noqa: E402
from tinyattn import models, optim  # noqa: E402

torch.set_num_threads(2)
EAGER, COMPILED = "PyTorch eager", "torch.compile"
REASONS = {
    InvalidCxxCompiler: "there is no C++ compiler",
    CppCompileError: "the C++ compiler failed",
}
VOCABULARY = 128
SIZES = {  # layers, d_model, heads, T, B, goal
    "tiny": (2, 64, 4, 32, 8, by_processor(1.4, 1.3)),
    "small": (4, 128, 4, 64, 12, by_processor(1.15, 1.2)),
    "big": (6, 384, 6, 256, 8, by_processor(1.15, 1.2)),
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
        """Return the parameters in the order of `ordered`."""
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
    """Return the parameters of our GPT in the order of those of TorchGPT."""
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


def models_and_text(size, dtype):
    """Return our GPT and PyTorch's with the same weights, and the tokens x and y."""
    layers, d, heads, T, B, _ = SIZES[size]
    ours = models.GPT(VOCABULARY, d, heads, layers, T, rng=0).astype(dtype)
    theirs = TorchGPT(ours, d, heads, layers, T).to(getattr(torch, np.dtype(dtype).name))
    text = np.random.default_rng(0).integers(0, VOCABULARY, (B, T + 1))
    return ours, theirs, text[:, :-1].copy(), text[:, 1:].reshape(-1).copy()


def our_step(model, x, y):
    """Return a function that does one step of training and returns the loss."""
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x).reshape(-1, VOCABULARY), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def torch_step(model, x, y, compiled=False):
    """Return a function that does the same step with PyTorch."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x, y = torch.from_numpy(x), torch.from_numpy(y)

    def loss_of(x, y):
        return torch.nn.functional.cross_entropy(model(x).reshape(-1, VOCABULARY), y)

    loss_of = torch.compile(loss_of) if compiled else loss_of

    def step():
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def check(size):
    """Check loss, gradients and weights after a step in float64."""
    ours, theirs, x, y = models_and_text(size, np.float64)
    np.testing.assert_allclose(our_step(ours, x, y)(), torch_step(theirs, x, y)(), rtol=1e-12)
    for p, q in zip(ordered(ours), theirs.ordered(), strict=True):
        np.testing.assert_allclose(p.grad, q.grad.numpy(), rtol=1e-8, atol=1e-11)
        np.testing.assert_allclose(p.data, q.detach().numpy(), rtol=1e-5, atol=1e-8)


def programs(size):
    """Return {name: step} in float32, all from the same weights."""
    ours, theirs, x, y = models_and_text(size, np.float32)
    torch.compiler.reset()  # what was compiled for other shapes does not count
    return {
        "tinyattn": our_step(ours, x, y),
        EAGER: torch_step(theirs, x, y),
        COMPILED: torch_step(copy.deepcopy(theirs), x, y, compiled=True),
    }


def agree(steps):
    """Compare the losses of three steps, and return why torch.compile was removed, or ""."""
    missing, expected = "", [steps["tinyattn"]() for _ in range(3)]
    for peer in (EAGER, COMPILED):
        try:
            losses = [steps[peer]() for _ in range(3)]
        except InductorError as error:
            reason = REASONS.get(type(error.inner_exception))
            if reason is None:
                raise
            missing = f"A row of torch.compile is missing: {reason}."
            del steps[peer]
        else:
            np.testing.assert_allclose(losses, expected, rtol=1e-4)
    return missing


def main(rounds=15):
    print(HEADER)
    missing = set()
    for size, (layers, d, _, T, B, goal) in SIZES.items():
        check(size)
        steps = programs(size)
        missing.add(agree(steps))
        times = interleave(steps, rounds, 3, at_least=0.05)
        work = f"GPT training step, {size}: {layers} layers, d = {d}, T = {T}, B = {B}"
        print(row(work, times, goal=goal, peer=EAGER), flush=True)
        if COMPILED in times:
            print(row(work, times, peer=COMPILED), flush=True)
    note = (
        "A step computes logits, cross-entropy and gradients, and updates the weights with AdamW. "
        "The goals refer to PyTorch eager. "
    )
    note += " ".join(sorted(missing - {""})) or "torch.compile compiles all but AdamW."
    print(foot(rounds, np, torch, ta, note=note))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
