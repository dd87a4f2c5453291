"""Llama: a decoder-only transformer with the architecture of most recent language models.

Unlike GPT, it has RMSNorm instead of layer norm, rotary positions instead of added position
vectors, keys and values shared by groups of heads, a gated feed-forward network, and no biases.
Sources: Touvron et al. 2023, Allal et al. 2025 (SmolLM2).
"""

import math
from pathlib import Path

import numpy as np

import tinyattn.functional as F
from tinyattn import inference, nn
from tinyattn.engine.convert import as_tensor
from tinyattn.engine.random import generator
from tinyattn.inference.quantized import numbers_in_blocks
from tinyattn.models import gguf
from tinyattn.models.bert import check_state
from tinyattn.models.generation import generate
from tinyattn.models.gpt import check_cache, check_ids, init_weights
from tinyattn.nn.validation import check_heads, check_sizes
from tinyattn.ops.quantized import QuantizedMatrix


class Llama(nn.Module):
    """A language model with RMSNorm, rotary positions, and keys and values that heads share.

    Token t attends to the tokens ≤ t. Initial weights are drawn as in `GPT`. Parameter names are
    the same as in LlamaForCausalLM of the Transformers library, without the leading "model.", so
    `from_huggingface` can load its weights.

    Args:
        vocab_size     number of tokens V
        d_model        number of features
        num_heads      number of query heads
        num_kv_heads   number of heads with keys and values, which divides num_heads. Each is shared
                       by num_heads / num_kv_heads query heads
        num_layers     number of layers
        d_hidden       number of hidden features of the feed-forward networks
        max_len        number of tokens of the longest text in the training data. `generate` lets
                       the model use only this many tokens
        base           base of the rotary positions. The slowest pair of features rotates by about
                       1/base radians per token
        eps            ε of the norms, the number that is added to the mean square
        tied_head      True: the head uses the embedding matrix. False: the head has a separate
                       matrix `lm_head`
        rng            seed or numpy.random.Generator for the initial values, or None for the
                       default generator

    Raises:
        ValueError: num_heads does not divide d_model, num_kv_heads does not divide num_heads,
            d_model / num_heads is odd, a size is not a whole number >= 1, or base or eps is out of
            range
        TypeError: base or eps is not a number
    """

    def __init__(
        self,
        vocab_size,
        d_model,
        num_heads,
        num_kv_heads,
        num_layers,
        d_hidden,
        max_len=2048,
        base=10000.0,
        eps=1e-5,
        tied_head=True,
        rng=None,
    ):
        check_heads(self, d_model=d_model, num_heads=num_heads)
        check_sizes(
            self,
            vocab_size=vocab_size,
            num_kv_heads=num_kv_heads,
            num_layers=num_layers,
            d_hidden=d_hidden,
            max_len=max_len,
        )
        rng = generator(rng)
        self.max_len = max_len
        self.embed_tokens = nn.Embedding(vocab_size, d_model, rng=rng)
        rotary = nn.RotaryEmbedding(d_model // num_heads, base)
        self.layers = nn.LlamaBlocks(
            [
                nn.LlamaBlock(d_model, num_heads, num_kv_heads, d_hidden, rotary, eps, rng)
                for _ in range(num_layers)
            ]
        )
        self.norm = nn.RMSNorm(d_model, eps)
        self.lm_head = None if tied_head else nn.Linear(d_model, vocab_size, bias=False, rng=rng)
        init_weights(self, d_model, rng, num_layers)

    def features(self, ids, cache=None):
        """Return the features of each token, which are the input of the head, [B, T, d_model].

        Args:
            ids     token ids [B, T], from 0 to V - 1. With a cache, pass only the new ones
            cache   the cache of all earlier tokens, which at the beginning is the result of
                    `empty_cache`. Keys and values of the new tokens are added to it. If None, ids
                    are the whole sequences

        Raises:
            ValueError: as in `forward`
            TypeError: as in `forward`
            IndexError: as in `forward`
            RuntimeError: as in `forward`
        """
        ids = as_tensor(ids)
        check_ids("Llama", ids, math.inf)
        if cache is not None:
            check_cache("Llama", cache, len(list(self.layers)))
        return self.norm(self.layers(self.embed_tokens(ids), cache))

    def head(self, features):
        """Return the logits of the V tokens of the vocabulary for `features` [..., d_model].

        Raises ValueError if the last axis of `features` does not have the length d_model.
        """
        if self.lm_head is not None:
            return self.lm_head(features)
        return F.linear(features, self.embed_tokens.weight)

    def forward(self, ids, cache=None):
        """Return the logits of the next token after each token, [B, T, V].

        Args:
            ids     token ids [B, T], from 0 to V - 1. With a cache, pass only the new ones
            cache   the cache of all earlier tokens, which at the beginning is the result of
                    `empty_cache`. Keys and values of the new tokens are added to it. If None, ids
                    are the whole sequences

        Raises:
            ValueError: ids are not [B, T], or the cache holds a different number of sequences
            TypeError: ids are not integers, or cache is not a result of `empty_cache`
            IndexError: an id is not from 0 to V - 1
            RuntimeError: a cache is used while gradients are recorded
        """
        return self.head(self.features(ids, cache))

    def empty_cache(self):
        """Return a cache without tokens, a list with one `nn.KeyValueCache` for each layer."""
        return [nn.KeyValueCache() for _ in self.layers]

    def generate(
        self,
        ids,
        max_new_tokens,
        temperature=1.0,
        top_k=None,
        top_p=None,
        rng=None,
        cache=True,
        stop=None,
        compiled=True,
    ):
        """Return the prompt and up to max_new_tokens further tokens.

        The model runs in evaluation mode, and uses only the last max_len tokens of a longer text.

        Args:
            ids              one prompt [T], prompts [B, T], or a list of prompts of different
                             length
            max_new_tokens   largest number of new tokens
            temperature      as in `decoding.probabilities`, where 0 always selects the likeliest
                             token, and 1 draws from the model's probabilities
            top_k            number of the likeliest tokens to draw from. If None, all are possible
            top_p            total probability of the likeliest tokens to draw from. If None, all
                             are possible
            rng              seed or numpy.random.Generator, or None for the default generator
            cache            True: keep the keys and values of earlier tokens. False: recompute them
                             for each token, which gives the same result but takes longer
            stop             token id, or several token ids, that end a sequence. If None, no
                             sequence ends early
            compiled         True: run the model that `inference.compile` returns, or the modules if
                             the model cannot be compiled or cache is False. False: run the modules

        Returns:
            for one prompt an array of token ids, and for a list of prompts a list of arrays, all
            without the stop token. For prompts [B, T] an array [B, T + n] with n <= max_new_tokens,
            in which a row that has ended is filled with its stop token

        Raises:
            TypeError: ids are not a list or an array
            ValueError: a prompt is empty or does not consist of integers, stop is not integers or
                not in the vocabulary, or max_new_tokens, temperature, top_k or top_p is out of
                range
            IndexError: a prompt contains a token that the model does not have
        """
        return generate(
            self, ids, max_new_tokens, temperature, top_k, top_p, rng, cache, stop, compiled
        )

    @classmethod
    def from_huggingface(
        cls, state, num_heads, num_kv_heads, max_len=2048, base=10000.0, eps=1e-5, assign=False
    ):
        """Build a model from the state dict of a LlamaForCausalLM of the Transformers library.

        If the state dict contains a `QuantizedMatrix`, this matrix stays quantized. The model can
        then generate text but cannot be trained, so no parameter requires a gradient.

        Args:
            state          the state dict {name: array}, from which the sizes are read
            num_heads      number of query heads, which the state dict does not contain
            num_kv_heads   number of heads with keys and values, which divides num_heads
            max_len        number of tokens of the longest text in the training data. `generate`
                           lets the model use only this many tokens
            base           base of the rotary positions
            eps            ε of the norms
            assign         False: copy the weights. True: use the arrays themselves if possible, as
                           in `load_state_dict`

        Returns:
            the model

        Raises:
            TypeError: state is not a dictionary
            ValueError: a weight from which sizes are read is missing, num_heads does not divide
                d_model, or num_kv_heads does not divide num_heads
            KeyError: another weight is missing, unknown or has a wrong shape, which can also be due
                to wrong numbers of heads
        """
        check_state("Llama", "LlamaForCausalLM", state, NEEDED)
        state = {
            name.removeprefix("model."): a if isinstance(a, QuantizedMatrix) else np.asarray(a)
            for name, a in state.items()
        }
        vocab_size, d_model = state["embed_tokens.weight"].shape
        num_layers = len({n.split(".")[1] for n in state if n.startswith("layers.")})
        model = cls(
            vocab_size,
            d_model,
            num_heads,
            num_kv_heads,
            num_layers,
            state["layers.0.mlp.gate_proj.weight"].shape[0],
            max_len,
            base,
            eps,
            "lm_head.weight" not in state,
            rng=nn.SkipInit(),
        )
        blocks = {name: a for name, a in state.items() if isinstance(a, QuantizedMatrix)}
        if not blocks:
            return model.load_state_dict(state, assign)
        state |= _in_blocks(model, blocks)
        if model.lm_head is None and "embed_tokens.weight" in blocks:
            table = blocks["embed_tokens.weight"]  # the same bytes are the weights of the head
            model.lm_head, state["lm_head.weight"] = inference.QuantizedLinear(table), table.raw
        return model.load_state_dict(state, assign).requires_grad_(False)

    def num_parameters(self):
        """Return the number of elements of all parameters, including quantized matrices."""
        return super().num_parameters() + numbers_in_blocks(self)

    @classmethod
    def from_gguf(cls, file):
        """Build a model from a GGUF file of the architecture "llama".

        If `file` is the result of `gguf.mapped`, matrices of the types Q4_1 and Q8_0 stay
        quantized. A model with such matrices needs less memory and generates text faster, but
        cannot be trained.

        Args:
            file   path of the file, or the result of `gguf.read` or `gguf.mapped`. With a path or
                   the result of `gguf.read`, the weights are float32

        Returns:
            the model

        Raises:
            FileNotFoundError: there is no such file
            ValueError: the file is damaged, contains another kind of model, or its tensors do not
                fit a Llama
            TypeError: file is neither a path nor a `GGUF`
        """
        if not isinstance(file, gguf.GGUF | str | Path):
            raise TypeError(
                "Llama.from_gguf: file must be a path, or the result of gguf.read or gguf.mapped, "
                f"got {type(file).__name__}. For a state dict, call Llama.from_huggingface"
            )
        file = file if isinstance(file, gguf.GGUF) else gguf.read(file)
        kind = file.entry("general.architecture", str)
        if kind != "llama":
            raise ValueError(
                f"Llama.from_gguf: {file.path} contains a model of kind {kind!r}, expected 'llama'"
            )
        num_heads = file.entry("llama.attention.head_count", int)
        num_kv_heads = file.entry("llama.attention.head_count_kv", int, num_heads)
        sizes = (
            num_heads,
            num_kv_heads,
            file.entry("llama.context_length", int),
            file.entry("llama.rope.freq_base", float, 10000.0),
            file.entry("llama.attention.layer_norm_rms_epsilon", float),
        )
        in_blocks = any(isinstance(a, QuantizedMatrix) for a in file.tensors.values())
        state = {}
        try:
            for name in ("token_embd.weight", "blk.0.ffn_gate.weight"):
                if name not in file.tensors:
                    raise ValueError(f"there is no {name}")
            for name, a in file.tensors.items():
                if not in_blocks and (".attn_q." in name or ".attn_k." in name):
                    a = _halves(a, num_heads if ".attn_q." in name else num_kv_heads)
                state[rename_hf_key(name)] = a
            model = cls.from_huggingface(state, *sizes, assign=True)
        except (KeyError, ValueError) as error:
            raise ValueError(
                f"Llama.from_gguf: the tensors of {file.path} do not fit a Llama: {error}"
            ) from error
        if in_blocks:  # the rows stay in the order of the file
            old = model.layers[0].self_attn.rotary
            rotary = nn.InterleavedRotaryEmbedding(old.d, old.base)
            for layer in model.layers:
                layer.self_attn.rotary = rotary
        return model


# weights from which `from_huggingface` reads the sizes, and their names in `Llama`
NEEDED = {
    "model.embed_tokens.weight": "embed_tokens.weight",
    "model.layers.0.mlp.gate_proj.weight": "layers.0.mlp.gate_proj.weight",
}
# names in GGUF files -> names in this library
NAMES = {
    "token_embd": "embed_tokens",
    "output_norm": "norm",
    "blk.": "layers.",
    "attn_norm": "input_layernorm",
    "attn_output": "self_attn.o_proj",
    "attn_": "self_attn.",
    "ffn_norm": "post_attention_layernorm",
    "ffn_": "mlp.",
    "self_attn.q.": "self_attn.q_proj.",
    "self_attn.k.": "self_attn.k_proj.",
    "self_attn.v.": "self_attn.v_proj.",
    "mlp.gate.": "mlp.gate_proj.",
    "mlp.up.": "mlp.up_proj.",
    "mlp.down.": "mlp.down_proj.",
}


def rename_hf_key(name):
    """Translate the name of a tensor in a GGUF file into the name used in `Llama`."""
    if name == "output.weight":
        return "lm_head.weight"
    for theirs, ours in NAMES.items():
        name = name.replace(theirs, ours)
    return name


def _in_blocks(model, blocks):
    """Replace the layers of `blocks`, {name: QuantizedMatrix}, and return the new layers' state.

    A matrix without a matching layer is kept in this state dict, so that the error on loading names
    the matrix.
    """
    layers, state = dict(model.named_modules()), {}
    for name, matrix in blocks.items():
        where = name.removesuffix(".weight")
        layer = layers.get(where)
        kind = KINDS.get(type(layer))
        if kind is None or layer.weight.shape != matrix.shape:
            state[name] = np.broadcast_to(np.float32(0), matrix.shape)
            continue
        parent, _, last = where.rpartition(".")
        setattr(layers[parent], last, kind(matrix))
        state[name] = matrix.raw
    return state


KINDS = {nn.Linear: inference.QuantizedLinear, nn.Embedding: inference.QuantizedEmbedding}


def _halves(weight, num_heads):
    """Reorder the rows of each head from the pairs 2i, 2i + 1 to the pairs i, i + d/2.

    The former is the order of `nn.InterleavedRotaryEmbedding`, the latter of `nn.RotaryEmbedding`.
    """
    pairs = weight.reshape(num_heads, -1, 2, weight.shape[-1])
    return np.swapaxes(pairs, 1, 2).reshape(weight.shape)


SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


def chat_prompt(question, system=SYSTEM):
    """Format a question for the SmolLM2 chat models, which end their answer with <|im_end|>.

    Args:
        question   text of the user
        system     instructions that come before the question, such as the style of the answer

    Returns:
        a text that ends where the model's answer begins
    """
    turns = [("system", system), ("user", question)]
    text = "".join(f"<|im_start|>{who}\n{what}<|im_end|>\n" for who, what in turns)
    return text + "<|im_start|>assistant\n"
