"""Names and arguments of other libraries: each gets a hint, and what the hint names is there."""

import re

import numpy as np
import pytest

import tinyattn as ta
import tinyattn.functional as F
from tinyattn import check, data, graph, metrics, models, nn, optim, plot, training
from tinyattn.engine import other_names, torch_hints

PLACES = {
    "ta": ta,
    "nn": nn,
    "F": F,
    "optim": optim,
    "graph": graph,
    "data": data,
    "training": training,
    "check": check,
    "metrics": metrics,
    "models": models,
    "plot": plot,
}
# what is typed first in each place; the answer must name the object that is here
ASKED = """
    nn.SmoothL1Loss nn.HuberLosses? nn.KLDivLoss nn.Softplus nn.CosineSimilarity nn.softmax
    nn.cross_entropy nn.GCNConv nn.Adam F.smooth_l1_loss F.group_norm F.bce_with_logits
    F.CrossEntropyLoss F.Linear optim.CosineAnnealingLR optim.LinearLR optim.ExponentialLR
    optim.clip_grad_value_ optim.clip_grad_norm_ graph.softmax graph.scatter graph.add_self_loops
    graph.remove_self_loops graph.degree graph.to_dense_adj graph.MessagePassing graph.Data
    graph.Batch graph.radius graph.Linear graph.LayerNorm data.DataLoader data.random_split
    data.train_test_split data.load_digits data.make_moons data.pad_sequence training.train
    training.Trainer training.EarlyStopping ta.relu ta.softmax ta.sigmoid ta.logsumexp ta.Parameter
    ta.Module ta.Linear ta.Variable ta.Function ta.jvp ta.vjp ta.inference_mode ta.compile
    ta.backward ta.Adam ta.fit ta.gradcheck ta.knn_graph nn.GPT models.Linear training.Adam
""".replace("nn.HuberLosses?", "").split()


@pytest.mark.parametrize("asked", ASKED)
def test_a_name_of_another_library_has_a_hint(asked):
    place, name = asked.split(".")
    with pytest.raises(AttributeError, match=rf"has no attribute '{name}': \w+"):
        getattr(PLACES[place], name)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("nn.HuberLos", "nn.HuberLoss"),
        ("nn.Liner", "nn.Linear"),
        ("optim.Adm", "optim.Adam"),
        ("F.cross_entropie", "F.cross_entropy"),
        ("F.log_sofmax", "F.log_softmax"),
        ("data.bachtes", "data.[Bb]atches"),
    ],
)
def test_a_mistyped_name(typed, meant):
    place, name = typed.split(".")
    with pytest.raises(AttributeError, match=rf": did you mean {meant}\?$"):
        getattr(PLACES[place], name)


def test_a_name_that_nobody_has_gets_no_hint():
    for place in PLACES.values():
        with pytest.raises(AttributeError, match="has no attribute 'quux'$"):
            place.quux  # noqa: B018
        assert not hasattr(place, "__wrapped__")


def test_hints_are_of_names_that_are_not_there():
    for name in other_names.NAMES:
        assert name not in torch_hints.FUNCTIONS, name
        assert name not in ta.__all__, name
    g = graph.Graph([0], [1], 2)
    assert not [name for name in other_names.GRAPH_NAMES if name in dir(g)]


TEXTS = [
    *other_names.NAMES.values(),
    *other_names.GRAPH_NAMES.values(),
    *other_names.KEYWORDS.values(),
]


@pytest.mark.parametrize("text", sorted(set(TEXTS)))
def test_what_a_hint_names_is_there(text):
    for place, name in re.findall(
        r"\b(ta|nn|F|optim|graph|data|training|check)\.([A-Za-z_]\w*)", text
    ):
        assert hasattr(PLACES[place], name), f"{place}.{name}"
    g = graph.Graph([0], [1], 2)
    for name in re.findall(r"\bg\.([a-z_]+)", text):
        assert hasattr(g, name), name


@pytest.mark.parametrize("name", other_names.GRAPH_NAMES)
def test_a_graph_explains_names_of_other_libraries(name):
    with pytest.raises(AttributeError, match=rf"a Graph has no attribute '{name}': \w+"):
        getattr(graph.Graph([0], [1], 2), name)


def test_a_graph_does_not_change():
    with pytest.raises(AttributeError, match=r"dataclasses.replace\(g, x=...\)"):
        graph.Graph([0], [1], 2).x = np.ones((2, 1))


x = np.ones((4, 3), np.float32)
model = nn.Linear(3, 2)
CALLS = {
    "padding_mode": lambda k: nn.Conv2d(1, 1, 3, **k),
    "max_norm": lambda k: nn.Embedding(3, 2, **k),
    "add_zero_attn": lambda k: nn.MultiheadAttention(4, 2, **k),
    "proj_size": lambda k: nn.LSTM(3, 2, **k),
    "enable_gqa": lambda k: F.scaled_dot_product_attention(x, x, x, **k),
    "shape": lambda k: ta.tensor(x).reshape(**k),
    "argnums": lambda k: ta.grad(np.sum, **k),
    "has_aux": lambda k: ta.value_and_grad(np.sum, **k),
    "retain_graph": lambda k: ta.gradients(ta.tensor(x), [], **k),
    "strict": lambda k: model.load_state_dict({}, **k),
    "recurse": lambda k: model.parameters(**k),
    "set_to_none": lambda k: model.zero_grad(**k),
    "learning_rate": lambda k: optim.SGD(model.parameters(), **k),
    "beta1": lambda k: optim.Adam(model.parameters(), **k),
    "norm_type": lambda k: optim.clip_grad_norm(model.parameters(), 1, **k),
    "num_workers": lambda k: data.batches(x, **k),
    "seed": lambda k: data.batches(x, **k),
    "test_size": lambda k: data.split(x, **k),
    "random_state": lambda k: data.split(x, **k),
    "callbacks": lambda k: training.fit(None, None, None, None, **k),
    "validation_data": lambda k: training.fit(None, None, None, None, **k),
    "flow": lambda k: graph.knn_graph(x, 2, **k),
    "max_num_neighbors": lambda k: graph.radius_graph(x, 1.0, **k),
    "edge_dim": lambda k: graph.GATConv(3, 2, **k),
    "num_heads": lambda k: graph.GATConv(3, 2, **k),
    "heads": lambda k: nn.MultiheadAttention(4, 2, **k),
    "cached": lambda k: graph.GCNConv(3, 2, **k),
    "aggr": lambda k: graph.propagate(x, None, **k),
    "dim_size": lambda k: graph.segment_sum(x, [0], 1, **k),
    "num_neighbors": lambda k: graph.GravNetConv(3, 2, 2, 2, **k),
    "units": lambda k: nn.Linear(3, **k),
    "sparse": lambda k: nn.Embedding(3, 2, **k),
    "scale_grad_by_freq": lambda k: nn.Embedding(3, 2, **k),
    "add_bias_kv": lambda k: nn.MultiheadAttention(4, 2, **k),
    "where": lambda k: ta.tensor(x).sum(**k),
    "inputs": lambda k: ta.tensor(x, requires_grad=True).sum().backward(**k),
    "closure": lambda k: optim.SGD(model.parameters()).step(**k),
    "error_if_nonfinite": lambda k: optim.clip_grad_norm(model.parameters(), 1, **k),
    "last_epoch": lambda k: optim.CosineLR(optim.SGD(model.parameters()), 5, **k),
    "warmup_steps": lambda k: optim.WarmupLR(optim.SGD(model.parameters()), **k),
    "pin_memory": lambda k: data.batches(x, **k),
    "stratify": lambda k: data.split(x, **k),
    "verbose": lambda k: training.fit(None, None, None, None, **k),
    "cosine": lambda k: graph.knn_graph(x, 2, **k),
    "improved": lambda k: graph.GCNConv(3, 2, **k),
    "return_attention_weights": lambda k: graph.GATConv(3, 2)(x, graph.Graph([0], [1], 4), **k),
    "num_nodes": lambda k: graph.segment_softmax(x, np.zeros(4, int), **k),
}


@pytest.mark.parametrize("keyword", CALLS)
def test_an_argument_of_another_library_has_a_hint(keyword):
    with pytest.raises(TypeError, match=rf"takes no {keyword}=: \w+"):
        CALLS[keyword]({keyword: 1})


def test_an_argument_that_is_nearly_right():
    with pytest.raises(TypeError, match=r"split takes no held_ot=: did you mean held_out=\?"):
        data.split(x, held_ot=0.2)
    with pytest.raises(
        TypeError, match=r"split takes no quux=. Its arguments are arrays, held_out"
    ):
        data.split(x, quux=0.2)


# ---------------------------------------------------------------- what was short and is added


def test_a_module_list_grows_like_a_list():
    a, b, c = nn.Linear(1, 2), nn.Linear(2, 3), nn.Linear(3, 4)
    layers = nn.ModuleList([a]).extend([c])
    layers.insert(1, b)
    assert list(layers) == [a, b, c] and list(nn.ModuleList([a]) + [b, c]) == [a, b, c]
    assert [n for n, _ in layers.named_parameters()] == [
        f"{i}.{name}" for i in range(3) for name in ("weight", "bias")
    ]
    with pytest.raises(TypeError, match="entry 3 must be an nn.Module, got a int"):
        layers.extend([3])
    assert len(layers) == 3


def test_a_sequential_takes_a_list():
    a, b = nn.Linear(1, 2), nn.Tanh()
    assert list(nn.Sequential([a, b])) == list(nn.Sequential(a, b)) == [a, b]


def test_losses_as_layers():
    p, t = np.array([0.2, 3.0], np.float32), np.array([0.0, 1.0], np.float32)
    for layer, found in (
        (nn.HuberLoss(delta=0.5), F.huber_loss(p, t, delta=0.5)),
        (nn.BCELoss(reduction="sum"), F.binary_cross_entropy(p / 4, t, reduction="sum")),
    ):
        inputs = p if isinstance(layer, nn.HuberLoss) else p / 4
        np.testing.assert_array_equal(layer(inputs, t).data, found.data)
    with pytest.raises(ValueError, match="HuberLoss: expected delta > 0"):
        nn.HuberLoss(delta=0)


def test_pools_of_graphs():
    values, batch = np.arange(8.0).reshape(4, 2), np.array([0, 0, 2, 2])
    np.testing.assert_array_equal(
        graph.global_mean_pool(values, batch).data, [[1, 2], [0, 0], [5, 6]]
    )
    assert graph.global_add_pool(values, batch, size=4).shape == (4, 2)
    np.testing.assert_array_equal(graph.global_max_pool(values, None).data, [[6, 7]])


def test_schedules_of_steps_and_of_a_function():
    from tests.parity import torch

    for ours, theirs in (
        (lambda o: optim.StepLR(o, 3, 0.5), lambda o: torch.optim.lr_scheduler.StepLR(o, 3, 0.5)),
        (
            lambda o: optim.LambdaLR(o, lambda t: 1 / (1 + t)),
            lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda t: 1 / (1 + t)),
        ),
    ):
        a = optim.SGD([ta.tensor([1.0], requires_grad=True)], lr=0.3)
        b = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.3)
        schedule, other = ours(a), theirs(b)
        for _ in range(8):
            assert a.lr == pytest.approx(b.param_groups[0]["lr"], rel=1e-12)
            schedule.step()
            b.step()
            other.step()
    with pytest.raises(TypeError, match="lr_lambda must be a function of the step, got a float"):
        optim.LambdaLR(a, 0.9)
    with pytest.raises(ValueError, match="expected 0 < gamma, got gamma=-1"):
        optim.StepLR(a, 3, -1)
