"""Make storyteller.npz: a GPT that learned to tell children's stories, and a smaller one.

python -m tools.data.make_storyteller FOLDER          40 minutes of one core

The large one that is shipped had 68 minutes (--minutes 68) on a shared machine: 5397 steps in 27
minutes of one core.

FOLDER keeps the three files of stories (downloaded if they are missing) and what was trained so
far. The text is not shipped, only what was learned from it.
"""

import argparse
import hashlib
import math
import re
import time
import urllib.request
from pathlib import Path

import numpy as np

import tinyattn as ta
import tinyattn.functional as F
from tinyattn import data, io, nn, optim, training
from tinyattn.models import GPT, storyteller
from tinyattn.widgets.own_words import rows_in_8_bits

# parts of TinyStories (Eldan and Li 2023, CDLA-Sharing-1.0) that public repositories keep as text:
# name: (address, SHA-256, pattern between two stories)
RAW = "https://raw.githubusercontent.com"
SOURCES = {
    "first.txt": (
        f"{RAW}/s-ajaykumar/smallGPT/b8b899265a5574abd2c19d8857039309184a357c/data/tiny_stories.txt",
        "c56cfd24fb1c542b141a396184b822a4db3672abdb4c49c6aa843171c5e822a5",
        r"(?<!\n)\n(?!\n)",
    ),
    "second.txt": (
        f"{RAW}/mines-opt-ml/decoding-gpt/79274e31fe66ed5cf23be815bf51dc63a4ca57a6/data/"
        "tinystories_10k.txt",
        "5a19b936d7b53bbdac1eea03230b00161dceca24ae272f5bd8e9dbbc2a883418",
        r"<\|endoftext\|>",
    ),
    "third.txt": (
        f"{RAW}/yuninxia/moe-routing-bench/bb9bb0bd461aa77cf6ab89423b758f586a6f75d1/data/"
        "tinystories_val.txt",
        "5fc1fb0113df62b567fb271806cd645ce8d75f59c58ca0b764c03d3b6ff34ca6",
        r"\n\n(?=Once upon a time)",
    ),
}
PLAIN = {"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "…": "..."}
SHORTEST, LONGEST = 200, 2500  # characters; longer ones are several in one
HELD_OUT = 200  # stories on which nothing is trained or chosen
END = storyteller.END

# size: (tokens, d_model, heads, layers, tokens in a window, steps, learning rate, dropout)
SIZES = {
    "large": (1024, 96, 4, 4, 256, 7000, 3e-3, 0.1),
    "small": (512, 48, 4, 2, 128, 6000, 6e-3, 0.0),
}
BATCH = 16
# largest whole number of a weight: 6 bits are enough, but the page rounds to 8 bits what it gets
LARGEST = {"large": 31, "small": 127}


def stories(folder):
    """All stories that are kept, in the order of the files, each once."""
    found = {}
    for name, (address, digest, between) in SOURCES.items():
        path = folder / name
        if not path.is_file():
            urllib.request.urlretrieve(address, path)
        raw = path.read_bytes()
        if hashlib.sha256(raw).hexdigest() != digest:
            raise ValueError(f"make_storyteller: {path} is not the file of {address}. Delete it")
        for story in re.split(between, raw.decode()):
            plain = re.sub(
                r"\s*\n\s*", "\n", re.sub(r"[ \t]+", " ", story.translate(TABLE))
            ).strip()
            if SHORTEST <= len(plain) <= LONGEST and plain.isascii() and plain[-1] in '.!?"':
                found.setdefault(plain[:120], plain)  # the files overlap
    return list(found.values())


TABLE = str.maketrans(PLAIN)


def split(texts):
    """(training, held out): 200 stories by chance are held out."""
    order = np.random.default_rng(0).permutation(len(texts))
    return [texts[i] for i in order[HELD_OUT:]], [texts[i] for i in order[:HELD_OUT]]


def learned(texts, size):
    """The bytes that occur in the training text, and its byte pairs: with END, `size` tokens."""
    alphabet = sorted(set("".join(texts).encode()))
    full = data.tokenizers.BytePairs.train("\n".join(texts), 256 + size - len(alphabet) - 1)
    return {"alphabet": np.array(alphabet, np.uint8), "pairs": np.array([*full.merges], np.uint16)}


def tokenizer_of(texts, size):
    """The tokenizer of the training text."""
    found = learned(texts, size)
    return storyteller.tokenizer(found["alphabet"].tolist(), found["pairs"].tolist())


class Stories:
    """Windows of the training stories, one after another with END before each.

    A window begins with a story, as a text that is written does, or where a window full of a long
    story ends.
    """

    def __init__(self, tokenizer, texts, length):
        coded = [tokenizer.encode(END + text) for text in texts]
        begin = np.cumsum([0, *map(len, coded)])
        further = [
            np.arange(b, b + len(c) - 50, length) for b, c in zip(begin, coded, strict=False)
        ]
        self.ids, self.length = np.concatenate(coded), length
        self.starts = np.concatenate(further)
        self.starts = self.starts[self.starts + length + 1 <= len(self.ids)]

    def batch(self, size, rng):
        return self.ids[rng.choice(self.starts, size)[:, None] + np.arange(self.length + 1)]


def held_out_bits(model, tokenizer, texts, length):
    """Bits per character of the held-out stories, each from its beginning, with its end counted.

    Stories that do not fit in the window are judged up to there.
    """
    bits, characters = 0.0, 0
    with ta.no_grad():
        for text in texts:
            ids = tokenizer.encode(END + text + END)[: length + 1]
            loss = F.cross_entropy(model(ids[None, :-1])[0], ids[1:])
            bits += loss.item() * (len(ids) - 1) / math.log(2)
            shown = tokenizer.decode(ids[1:])
            characters += len(shown.replace(END, "."))  # the end counts as one character
    return bits / characters


def train(folder, name, minutes):
    """Train one size; its weights and what was measured stay in the folder, every five minutes.

    The learning rate falls with the steps, or with the time where that is shorter.
    """
    vocab, d, heads, layers, length, steps, rate, dropout = SIZES[name]
    texts, judged = split(stories(folder))
    tokenizer = tokenizer_of(texts, vocab)
    windows = Stories(tokenizer, texts, length)
    model = GPT(len(tokenizer), d, heads, layers, length, dropout, rng=0)
    print(f"{name}: {model.num_parameters()} parameters, {len(texts)} stories, ", end="")
    print(f"{sum(map(len, texts))} characters, {len(windows.ids)} tokens", flush=True)
    for part in model.modules():
        if isinstance(part, nn.MultiheadAttention):
            part.dropout = 0.0  # dropping weights of the attention takes twice as long
    decay = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim == 1]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
    optimizer, rng = optim.AdamW(groups, lr=rate, betas=(0.9, 0.95)), np.random.default_rng(0)
    begun = kept = time.time()
    cpu, done, step = time.process_time(), 0.0, 0
    losses, curve = [], []
    while True:
        done = max(step / steps, (time.time() - begun) / (60 * minutes))
        if done >= 1 or time.time() - kept > 300:
            kept, seconds = time.time(), time.process_time() - cpu
            model.eval()
            curve.append((step, held_out_bits(model, tokenizer, judged[:60], length)))
            model.train()
            io.save(folder / f"{name}.safetensors", model.state_dict())
            np.savez(folder / f"{name}_curve.npz", losses=losses, held_out=curve, seconds=seconds)
            print(
                f"{seconds:6.0f} s, step {step}, loss {np.mean(losses[-200:] or [0]):.4f}, ", end=""
            )
            print(f"held out {curve[-1][1]:.4f} bits per character", flush=True)
        if done >= 1:
            return
        grows = min(1.0, (step + 1) / 200)
        optimizer.lr = rate * grows * (1 + math.cos(math.pi * done)) / 2
        ids = windows.batch(BATCH, rng)
        optimizer.zero_grad()
        logits = model(ids[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, len(tokenizer)), ids[:, 1:].ravel())
        loss.backward()
        optim.clip_grad_norm(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        step += 1


def bits_of_characters(folder):
    """Bits per character of the held-out stories for the small GPT of lecture 07, on characters.

    It is trained on the same stories with the lecture's settings: 2500 steps of 8 windows of 64
    characters. Each judged character has at least 32 before it, as in the lecture.
    """
    texts, judged = split(stories(folder))
    letters = data.tokenizers.Characters("\n".join(texts + judged))
    ids, test = (letters.encode("\n".join(part)) for part in (texts, judged))
    model, rng = GPT(len(letters), 48, 4, 2, 64, rng=0), np.random.default_rng(0)

    def loss(model):
        pieces = ids[rng.integers(0, len(ids) - 65, 8)[:, None] + np.arange(65)]
        return F.cross_entropy(
            model(pieces[:, :-1]).reshape(-1, len(letters)), pieces[:, 1:].ravel()
        )

    training.fit_steps(model, loss, 2500, lr=6e-3, warmup=100)
    pieces, found = test[np.arange(0, len(test) - 65, 32)[:, None] + np.arange(65)], []
    with ta.no_grad():
        for group in np.array_split(pieces, len(pieces) // 64):
            scores = model(group[:, :-1]).reshape(-1, 64, len(letters))[:, 32:]
            loss = F.cross_entropy(scores.reshape(-1, len(letters)), group[:, 33:].ravel())
            found += [loss.item()] * len(group)
    return np.mean(found) / math.log(2)


def make(folder, path):
    """Write what was trained to the file, with matrices in 8 bits."""
    texts, judged = split(stories(folder))
    arrays, of_characters = {}, bits_of_characters(folder)
    print("a small GPT on characters, bits per character:", of_characters)
    for name, (vocab, d, heads, layers, length, *_) in SIZES.items():
        curve = np.load(folder / f"{name}_curve.npz")
        tokenizer = tokenizer_of(texts, vocab)
        model = GPT(len(tokenizer), d, heads, layers, length, rng=0)
        found = {"heads": heads, "seconds": curve["seconds"]}
        for key, value in io.load(folder / f"{name}.safetensors").items():
            found[f"model.{key}"] = value.astype(np.float16)
            if value.ndim > 1:
                found[f"model.{key}"], found[f"factors.{key}"] = rows_in_8_bits(
                    value, LARGEST[name]
                )
        for key in model.state_dict():
            factors = found.get(f"factors.{key}")
            wide = found[f"model.{key}"].astype(np.float32)
            value = wide if factors is None else wide * factors[:, None]
            model.load_state_dict(model.state_dict() | {key: value})
        losses = curve["losses"]
        found |= {
            "loss": [part.mean() for part in np.array_split(losses, 100)],
            "held_out": curve["held_out"],
            "steps": len(losses),
            "bits_of_characters": of_characters,
            "bits": held_out_bits(model.eval(), tokenizer, judged, length),
            **learned(texts, vocab),
        }
        print(name, "bits per character of the held-out stories, rounded:", found["bits"])
        arrays |= {f"{name}/{key}": np.asarray(value) for key, value in found.items()}
    np.savez_compressed(path, **arrays)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=SIZES, help="train only this one, and write no file")
    parser.add_argument("--minutes", type=float, default=math.inf, help="longest time of a size")
    options = parser.parse_args()
    for name in [options.size] if options.size else SIZES:
        if options.size or not (options.folder / f"{name}.safetensors").is_file():
            train(options.folder, name, options.minutes)
    if not options.size:
        make(options.folder, storyteller.FILE)


if __name__ == "__main__":
    main()
