"""Modules find what is theirs, save and load whole, and layers equal PyTorch's."""

import copy
import pickle

import numpy as np
import pytest

import tinyattn as ta
import tinyattn.functional as F
from tests.parity import modules, torch
from tinyattn import graph, models, nn
from tinyattn.models.captioner_regions import CaptionerCells

rng = np.random.default_rng(0)
TN = torch.nn


def normal(*shape):
    return rng.normal(size=shape)


PAIRS = {
    "Linear": (lambda: nn.Linear(4, 3), lambda: TN.Linear(4, 3), (2, 5, 4)),
    "Linear without bias": (
        lambda: nn.Linear(4, 3, bias=False),
        lambda: TN.Linear(4, 3, bias=False),
        (4,),
    ),
    "LayerNorm": (lambda: nn.LayerNorm(4), lambda: TN.LayerNorm(4), (2, 3, 4)),
    "LayerNorm of two axes": (
        lambda: nn.LayerNorm((3, 4), eps=0.1, bias=False),
        lambda: TN.LayerNorm((3, 4), eps=0.1, bias=False),
        (2, 3, 4),
    ),
    "RMSNorm": (lambda: nn.RMSNorm(4), lambda: TN.RMSNorm(4), (2, 3, 4)),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(4), lambda: TN.BatchNorm1d(4), (6, 4)),
    "BatchNorm1d of sequences": (
        lambda: nn.BatchNorm1d(4, momentum=None),
        lambda: TN.BatchNorm1d(4, momentum=None),
        (2, 4, 5),
    ),
    "Sequential": (
        lambda: nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Flatten(), nn.Linear(15, 2)),
        lambda: TN.Sequential(TN.Linear(4, 5), TN.Tanh(), TN.Flatten(), TN.Linear(15, 2)),
        (2, 3, 4),
    ),
    "ReLU": (nn.ReLU, TN.ReLU, (3, 4)),
    "LeakyReLU": (lambda: nn.LeakyReLU(0.3), lambda: TN.LeakyReLU(0.3), (3, 4)),
    "ELU": (nn.ELU, TN.ELU, (3, 4)),
    "GELU": (nn.GELU, TN.GELU, (3, 4)),
    "SiLU": (nn.SiLU, TN.SiLU, (3, 4)),
    "Sigmoid": (nn.Sigmoid, TN.Sigmoid, (3, 4)),
    "Tanh": (nn.Tanh, TN.Tanh, (3, 4)),
    "Softmax": (lambda: nn.Softmax(1), lambda: TN.Softmax(1), (3, 4)),
    "MaxPool1d": (lambda: nn.MaxPool1d(2), lambda: TN.MaxPool1d(2), (2, 3, 6)),
    "MaxPool2d": (lambda: nn.MaxPool2d(2, 1), lambda: TN.MaxPool2d(2, 1), (2, 3, 6, 5)),
    "AvgPool2d": (lambda: nn.AvgPool2d(3, 2, 1), lambda: TN.AvgPool2d(3, 2, 1), (2, 3, 6, 5)),
    "Flatten of some axes": (lambda: nn.Flatten(1, 2), lambda: TN.Flatten(1, 2), (2, 3, 4, 5)),
}


@pytest.mark.parametrize("name", PAIRS)
def test_layers_equal_pytorch(name):
    mine, theirs, shape = PAIRS[name]
    modules(mine(), theirs(), normal(*shape))


def test_batch_norm_in_evaluation():
    mine, theirs = nn.BatchNorm1d(3).astype(np.float64), TN.BatchNorm1d(3).double()
    x = normal(8, 3) * 2 + 1
    mine(ta.tensor(x)), theirs(torch.tensor(x))
    found = mine.eval()(ta.tensor(x)).data
    np.testing.assert_allclose(found, theirs.eval()(torch.tensor(x)).detach().numpy(), rtol=1e-12)
    assert mine.num_batches_tracked.item() == 1


def test_embedding_equals_pytorch():
    ids = np.array([[0, 3], [3, 1]])
    mine, theirs = nn.Embedding(5, 2, padding_idx=3), TN.Embedding(5, 2, padding_idx=3)
    assert not mine.weight.data[3].any()
    mine.load_state_dict(theirs.state_dict())
    mine(ids).sum().backward()
    theirs(torch.tensor(ids)).sum().backward()
    np.testing.assert_array_equal(mine.weight.grad, theirs.weight.grad.numpy())


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (lambda r: nn.Linear(50, 400, rng=r), lambda: TN.Linear(50, 400)),
        (lambda r: nn.Conv2d(6, 80, 5, rng=r), lambda: TN.Conv2d(6, 80, 5)),
        (lambda r: nn.Embedding(200, 100, rng=r), lambda: TN.Embedding(200, 100)),
    ],
)
def test_weights_start_as_in_pytorch(mine, theirs):
    torch.manual_seed(0)
    a, b = mine(0).state_dict(), {n: p.detach().numpy() for n, p in theirs().named_parameters()}
    assert a.keys() == b.keys()
    for name in a:
        # for n independent numbers the spread of the spread is below 1/√n of it
        assert abs(a[name].std() / b[name].std() - 1) < 4 / np.sqrt(a[name].size)
    assert all(
        (u == v).all() for u, v in zip(a.values(), mine(0).state_dict().values(), strict=True)
    )


# ---------------------------------------------------------------- what is inside


class Tied(nn.Module):
    def __init__(self):
        self.embed = nn.Embedding(5, 3, rng=0)
        self.head = nn.Linear(3, 5, bias=False, rng=1)
        self.head.weight = self.embed.weight
        self.scale = nn.Parameter(np.ones(1))
        self.steps = nn.Buffer(np.zeros(2))
        self.scratch = ta.Tensor(np.zeros(2))  # neither trained nor saved

    def forward(self, ids):
        return self.head(self.embed(ids)) * self.scale


def test_names_sharing_and_counting():
    model = Tied()
    assert [n for n, _ in model.named_parameters()] == ["scale", "embed.weight"]
    assert list(model.state_dict()) == ["scale", "steps", "embed.weight", "head.weight"]
    assert [n for n, _ in model.named_modules()] == ["", "embed", "head"]
    assert [n for n, _ in model.named_buffers()] == ["steps"]
    assert model.num_parameters() == 16
    twin = copy.deepcopy(model)
    assert twin.head.weight is twin.embed.weight is not model.embed.weight
    assert pickle.loads(pickle.dumps(model)).num_parameters() == 16


def test_lists_of_modules():
    parts = nn.Sequential(nn.Linear(2, 3, rng=0), nn.Tanh(), nn.Linear(3, 1, rng=1))
    assert len(parts) == 3
    assert isinstance(parts[-1], nn.Linear)
    assert [type(m).__name__ for m in parts[:2]] == ["Linear", "Tanh"]
    assert len(nn.ModuleList([nn.Tanh()]).append(nn.Tanh())) == 2


def test_modes_reach_everything_inside():
    model = nn.Sequential(nn.Sequential(nn.Dropout(0.5, rng=0)), nn.BatchNorm1d(2))
    assert not any(m.training for m in model.eval().modules())
    x = np.ones((4, 2), np.float32)
    assert np.shares_memory(model[0](x).data, x)
    assert all(m.training for m in model.train().modules())


def test_casting_freezing_and_forgetting():
    model = nn.Sequential(nn.Linear(2, 2, rng=0), nn.BatchNorm1d(2)).astype(np.float64)
    assert {a.dtype.name for a in model.state_dict().values()} == {"float64", "int64"}
    model(normal(3, 2)).sum().backward()
    assert model[0].weight.grad.dtype == np.float64
    model.zero_grad()
    assert model[0].weight.grad is None
    model[0].requires_grad_(False)
    model(normal(3, 2)).sum().backward()
    assert model[0].weight.grad is None
    assert model[1].bias.grad is not None


# ---------------------------------------------------------------- saving and loading


def test_a_failed_load_lists_everything_and_changes_nothing():
    model = nn.MLP([2, 3, 1], rng=0)
    before = model.state_dict()
    state = {k: v + 1 for k, v in before.items()}
    state["layers.0.weight"] = np.ones((2, 2))
    del state["layers.2.bias"]
    state["extra"] = np.ones(1)
    with pytest.raises(KeyError) as error:
        model.load_state_dict(state)
    for part in ("missing: layers.2.bias", "unexpected: extra", "shape: layers.0.weight is (3, 2)"):
        assert part in error.value.args[0]
    assert all((model.state_dict()[k] == before[k]).all() for k in before)


def test_loading_casts_and_copies():
    model = nn.Linear(2, 1, rng=0)
    state = {"weight": np.array([[1.0, 2.0]]), "bias": [3]}
    model.load_state_dict(state)
    assert model.weight.dtype == np.float32
    state["weight"][0, 0] = 7
    assert model.weight.data.tolist() == [[1, 2]]
    held = model.state_dict()
    model.weight.data = model.weight.data + 1
    assert held["weight"].tolist() == [[1, 2]]


def test_assigned_arrays_are_not_copied():
    """Where dtype and layout fit; a copy is made of all others, such as views of a file."""
    model = nn.Linear(3, 2, rng=0)
    state = {"weight": np.ones((2, 3), np.float32), "bias": np.ones(2, np.float32)}
    model.load_state_dict(state, assign=True)
    assert model.weight.data is state["weight"]
    assert model.bias.data is state["bias"]
    protected = np.frombuffer(np.ones(6, np.float32).tobytes(), np.float32).reshape(2, 3)
    for weight in (protected, np.ones((3, 2), np.float32).T, np.ones((2, 3))):
        model.load_state_dict({"weight": weight, "bias": [1, 2]}, assign=True)
        data = model.weight.data
        assert not np.shares_memory(data, weight)
        assert data.dtype == np.float32
        model.weight[...] = 0


# ---------------------------------------------------------------- initial values left out


UNFILLED = {
    "GPT": lambda rng: models.GPT(9, 8, 2, 2, 6, rng=rng),
    "BERT": lambda rng: models.BERT(9, 8, 2, 2, 6, rng=rng),
    "Llama": lambda rng: models.Llama(9, 8, 2, 1, 2, 5, rng=rng),
    "Seq2Seq": lambda rng: models.Seq2Seq(9, 8, 2, 2, rng=rng),
    "LSTM": lambda rng: nn.LSTM(2, 3, rng=rng),
    "Conv2d": lambda rng: nn.Conv2d(1, 2, 3, rng=rng),
    "SetTransformer": lambda rng: nn.SetTransformer(2, 2, 8, 2, 3, rng=rng),
    "Captioner": lambda rng: models.Captioner(CaptionerCells(3, 2, 4, 4, rng), 5, 3, 4, rng=rng),
    "GATConv": lambda rng: graph.GATConv(3, 2, rng=rng),
    "Embedding": lambda rng: nn.Embedding(4, 3, padding_idx=1, rng=rng),
}


@pytest.mark.parametrize("make", UNFILLED.values(), ids=UNFILLED)
def test_without_initial_values_every_drawn_parameter_is_nan(make):
    drawn, other, empty = make(0), make(1), make(nn.SkipInit())
    for (name, p), q, e in zip(
        drawn.named_parameters(), other.parameters(), empty.parameters(), strict=True
    ):
        assert (e.shape, e.dtype) == (p.shape, p.dtype)
        differs = p.data != q.data  # what is drawn; a row of zeros and weights of norms are not
        assert np.isnan(e.data[differs]).all(), name
        assert np.array_equal(e.data[~differs], p.data[~differs]), name
    empty.load_state_dict(drawn.state_dict())
    for p, e in zip(drawn.parameters(), empty.parameters(), strict=True):
        assert np.array_equal(p.data, e.data)
        e[...] = 0  # may be written to


def test_what_was_never_filled_is_found():
    make = lambda rng: models.GPT(9, 64, 2, 2, 40, rng=rng)
    state, ids = make(0).state_dict(), np.zeros((4, 40), int)
    assert all(p.data.strides == (0, 0) for p in make(nn.SkipInit()).parameters() if p.ndim > 1)
    assert np.isnan(nn.SkipInit().uniform()) and nn.SkipInit().normal(size=(2, 3)).shape == (2, 3)
    for missing in ("blocks.layers.1.linear1.weight", "positions.weight"):
        model = make(nn.SkipInit())
        for name, p in model.named_parameters():
            if name != missing:
                p.data = state[name]
        with pytest.raises(ValueError, match="read-only"):
            dict(model.named_parameters())[missing][...] = 1
        assert np.isnan(model(ids).data).all()
        with ta.no_grad():
            assert np.isnan(model(ids[:1, :3]).data).all()
        with pytest.raises(ValueError, match="NaN"):
            model.generate([1, 2], 2)


def test_dropout_of_a_model_without_initial_values_is_random():
    model = models.BERT(9, 8, 2, 1, dropout=0.5, rng=nn.SkipInit())
    model.load_state_dict(models.BERT(9, 8, 2, 1, rng=0).state_dict())
    ids = np.array([[1, 2, 3]])
    assert np.isfinite(model(ids).data).all()
    assert (model(ids).data != model(ids).data).any()


# ---------------------------------------------------------------- showing itself


def test_tree_and_summary():
    model = nn.Sequential(nn.Linear(4, 8, rng=0), nn.ReLU(), nn.Linear(8, 2, bias=False, rng=1))
    assert repr(model).splitlines()[1] == "  (0): Linear(4, 8)"
    table = repr(model.summary(np.ones((5, 4), np.float32))).splitlines()
    assert table[3].split() == ["0:", "Linear", "(5,", "8)", "40"]
    assert table[-1] == "56 parameters"
    assert "<table>" in model._repr_html_()
    assert model.training, "the run for the summary must not change the mode"
    y = model(np.ones((5, 4), np.float32))
    F.mse_loss(y, np.zeros((5, 2), np.float32)).backward()
    assert model[0].weight.grad is not None


def test_summary_counts_shared_weights_once():
    assert repr(Tied().summary(np.array([1, 2]))).splitlines()[-1] == "16 parameters"


# ---------------------------------------------------------------- at the edges


def test_a_linear_function_of_nothing_is_its_bias():
    bias = np.array([1.0, 2.0], np.float32)
    y = F.linear(np.ones((3, 4, 0), np.float32), np.ones((2, 0), np.float32), bias)
    np.testing.assert_array_equal(y.data, np.broadcast_to(bias, (3, 4, 2)))


def test_the_message_of_a_failed_load_has_lines():
    with pytest.raises(KeyError) as error:
        nn.Linear(2, 1).load_state_dict({})
    _, *listed, advice = str(error.value).splitlines()
    assert listed == ["  missing: weight (1, 2)", "  missing: bias (1,)"]
    assert advice.endswith("pass model.state_dict() | part")


def test_the_rows_of_a_summary_add_up_with_frozen_layers():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    model[0].requires_grad_(False)
    summary = model.summary()
    assert [n for _, _, n in summary.rows] == [0, 6, 3]
    assert summary.total == 9


X, PICTURE = (normal(2, 3, 4).astype(np.float32), normal(2, 4, 3, 3).astype(np.float32))
TAKE_LISTS = [
    (nn.MultiheadAttention(4, 2, rng=0), X, X, X),
    (nn.SelfAttention(4, 2, rng=0), X),
    (nn.CrossAttention(4, 2, rng=0), X, X),
    (nn.GroupedQueryAttention(4, 2, 1, rng=0), X),
    (nn.LlamaBlock(4, 2, 1, 8, rng=0), X),
    (nn.TransformerEncoderLayer(4, 2, 8, rng=0), X),
    (nn.TransformerEncoderLayer(4, 2, 8, norm_first=True, rng=0), X),
    (nn.TransformerDecoderLayer(4, 2, 8, rng=0), X, X),
    (nn.Transformer(4, 2, 1, 1, 8, rng=0), X, X),
    (nn.BatchNorm1d(3), X),
    (nn.BatchNorm2d(4), PICTURE),
    (nn.GroupNorm(2, 4), PICTURE),
    (nn.PositionalEncoding(4, 5), X),
    (nn.LearnedPositionalEmbedding(5, 4, rng=0), X),
    (nn.MAB(4, 2, rng=0), X, X),
    (nn.SAB(4, 2, rng=0), X),
    (nn.ISAB(4, 2, 2, rng=0), X),
    (nn.PMA(4, 2, rng=0), X),
    (nn.DeepSets(nn.Linear(4, 3, rng=0), nn.Linear(3, 2, rng=0)), X),
    (nn.SetTransformer(4, 2, 4, 2, 2, rng=0), X),
    (nn.ClassAttention(4, 2, rng=0), X[:, :1], X),
    (models.GPT(9, 8, 2, 1, 4, rng=0), np.array([[1, 2, 3]])),
    (models.Llama(9, 8, 2, 1, 1, 16, rng=0), np.array([[1, 2, 3]])),
]


@pytest.mark.parametrize("case", TAKE_LISTS, ids=lambda case: type(case[0]).__name__)
def test_a_list_is_taken_as_an_array(case):
    layer, *inputs = case
    found, expected = (
        layer.eval()(*xs) for xs in ([x.tolist() for x in inputs], [ta.tensor(x) for x in inputs])
    )
    for y, of_array in zip(
        *(v if isinstance(v, tuple) else (v,) for v in (found, expected)), strict=True
    ):
        np.testing.assert_array_equal(y.data, of_array.data)


def test_an_entry_can_be_replaced():
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    model[-1] = last = nn.Linear(3, 4)
    assert model[2] is last and len(model) == 3 and model(np.zeros((1, 2))).shape == (1, 4)
    assert "2.weight" in model.state_dict()
    with pytest.raises(IndexError):
        model[3] = last
    with pytest.raises(TypeError, match="nn.Module"):
        model[0] = np.tanh
