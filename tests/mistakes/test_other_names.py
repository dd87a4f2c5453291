"""Names and arguments of other libraries: each gets a hint, and what the hint names is there."""

import re

import numpy as np
import pytest

import tinyattn as ta
import tinyattn.functional as F
from tinyattn import check, data, graph, metrics, models, nn, optim, plot, training
from tinyattn.engine import other_names, torch_hints

PLACES = {
    "init": nn.init,
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
    nn.ConvTranspose2d nn.AdaptiveAvgPool2d nn.PReLU nn.ReLU6 nn.Mish nn.GLU nn.Bilinear
    nn.Unflatten
    nn.InstanceNorm2d nn.BatchNorm3d nn.Dropout2d nn.LazyLinear nn.ParameterDict nn.EmbeddingBag
    nn.TripletMarginLoss F.cdist F.logsigmoid F.relu6 F.glu F.gumbel_softmax F.interpolate
    optim.Adadelta optim.RAdam optim.Lion optim.swa_utils optim.CyclicLR optim.LRScheduler
    nn.Activation nn.GlobalAveragePooling2D nn.MaxPooling2D nn.BatchNormalization nn.TimeDistributed
    nn.Bidirectional nn.SimpleRNN nn.Concatenate training.ModelCheckpoint data.pad_sequences
    metrics.f1_score metrics.confusion_matrix metrics.mean_squared_error metrics.r2_score
    metrics.roc_auc_score data.StandardScaler data.KFold data.shuffle data.LabelEncoder data.mnist
    ta.tree_map ta.lax ta.hvp ta.stop_gradient ta.linalg ta.pmap ta.unsqueeze ta.topk ta.bmm
    ta.clamp
    ta.norm ta.F ta.randperm graph.TransformerConv graph.dropout_edge graph.subgraph
    graph.to_networkx graph.TUDataset graph.Planetoid graph.coalesce graph.is_undirected
    graph.scatter_mean graph.adjacency graph.from_edges graph.BatchNorm init.xavier_uniform
    init.he_normal init.glorot_uniform nn.Swish nn.Attention nn.Lambda nn.Embed F.swish F.mae F.mse
    F.categorical_crossentropy optim.clip_by_global_norm optim.apply_updates optim.Momentum
    graph.scatter_softmax graph.edge_softmax graph.dense_to_sparse graph.add_remaining_self_loops
    data.ConcatDataset data.load_mnist training.validate ta.GradientTape ta.constant ta.array
    ta.asarray ta.set_seed
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


def test_names_of_numpy_that_take_no_tensors_or_mean_something_else():
    for name, text in (
        ("exp", "np.exp, which takes Tensors too"),
        ("pi", "np.pi"),
        ("zeros", "np.zeros"),
    ):
        with pytest.raises(AttributeError, match=f": write {text}$"):
            getattr(ta, name)
    with pytest.raises(AttributeError, match="write np.linspace$"):  # it has no rule
        ta.linspace  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'test'$"):  # np.test tests NumPy
        training.test  # noqa: B018


def test_the_same_spelling_is_found_first():
    for name, place in (("sigmoid", "F"), ("relu", "F"), ("Sigmoid", "nn"), ("ReLU", "nn")):
        with pytest.raises(AttributeError, match=rf": use {place}\.{name}$"):
            getattr(ta, name)


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
    *other_names.MODULE_NAMES.values(),
    *other_names.TENSOR_NAMES.values(),
    *other_names.OPTIMIZER_NAMES.values(),
    *other_names.SCHEDULE_NAMES.values(),
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


@pytest.mark.parametrize("name", other_names.MODULE_NAMES)
def test_a_module_explains_names_of_keras(name):
    class Own(nn.Module):
        def __init__(self):
            setattr(self, name, 3)

    with pytest.raises(AttributeError, match=rf"a module has no attribute '{name}': \w+"):
        getattr(nn.ReLU(), name)
    assert getattr(Own(), name) == 3


@pytest.mark.parametrize("name", other_names.TENSOR_NAMES)
def test_a_tensor_explains_more_names(name):
    with pytest.raises(AttributeError, match=rf"a Tensor has no attribute '{name}': \w+"):
        getattr(ta.tensor([1.0]), name)


def test_optimizers_and_schedules_explain_more_names():
    optimizer = optim.SGD(nn.Linear(2, 2).parameters(), lr=0.1)
    schedule = optim.StepLR(optimizer, 5)
    for x, whose, names in (
        (optimizer, "an optimizer", other_names.OPTIMIZER_NAMES),
        (schedule, "a schedule", other_names.SCHEDULE_NAMES),
    ):
        for name in names:
            with pytest.raises(AttributeError, match=rf"{whose} has no attribute '{name}': \w+"):
                getattr(x, name)
        with pytest.raises(AttributeError, match="has no attribute 'quux'$"):
            x.quux  # noqa: B018
    with pytest.raises(AttributeError, match="'learning_rate': use optimizer.lr"):
        optimizer.learning_rate = 0.01  # it would change nothing
    with pytest.raises(TypeError, match="step takes no epoch=: it takes no arguments"):
        schedule.step(epoch=3)

    class Own(optim.Optimizer):
        def update(self, theta, g, state, group):
            return theta - self.learning_rate * g

    own = Own([nn.Parameter(np.ones(2))])
    own.learning_rate = 0.5  # its own business
    assert own.learning_rate == 0.5


def test_functions_explain_unknown_arguments():
    """Not F.linear, which is called most, and not the operations of one argument."""
    short = {"digamma", "erf", "lgamma", "linear", "neighbour_table", "tanh"}
    for name in set(F.__all__) - short:
        with pytest.raises(TypeError, match="takes no quux="):
            getattr(F, name)(quux=3)
    with pytest.raises(TypeError, match="one_hot takes no depth=: use num_classes="):
        F.one_hot(np.array([0]), depth=3)


def test_an_optimizer_with_swapped_arguments():
    with pytest.raises(TypeError, match=r"got 0.1. Pass model.parameters\(\) first"):
        optim.SGD(0.1, list(nn.Linear(2, 2).parameters()))


def test_a_graph_is_made_of_edge_index():
    edges = np.array([[0, 1], [1, 2]])
    for wrong in (
        lambda: graph.Graph(edge_index=edges),
        lambda: graph.Graph(edges),
        lambda: graph.Graph(edges, num_nodes=3),
    ):
        with pytest.raises(TypeError, match=r"Write Graph\(\*edge_index, |graph.Graph\(edge_index"):
            wrong()
    g = graph.Graph(*edges, 3)
    assert g.num_edges == 2
    with pytest.raises(TypeError, match="Write g.x$"):
        g["x"]


def test_a_layer_that_is_made_and_called_at_once():
    for wrong in (
        lambda: nn.ReLU(x),
        lambda: nn.MSELoss(x, x),
        lambda: nn.CrossEntropyLoss(x, [0]),
        lambda: nn.Linear(x),
    ):
        with pytest.raises(TypeError, match=r"as in layer = \w+\(...\); layer\(x\)"):
            wrong()
    with pytest.raises(TypeError, match="LSTM takes no units="):  # not its base class's name
        nn.LSTM(units=3)
    with pytest.raises(TypeError, match="ReLU takes no inplace=: PyTorch's"):
        nn.ReLU(inplace=True)
    with pytest.raises(TypeError, match=r"got the class ReLU. Write ReLU\(...\), with \(\)"):
        nn.Sequential(nn.Linear(3, 2), nn.ReLU)
    with pytest.raises(TypeError, match=r"a list, such as \[2, 16, 1\]"):
        nn.MLP(2)


def test_parts_of_pytorch_are_called_so():
    class Linear:
        __module__ = "torch.nn.modules.linear"

    with pytest.raises(TypeError, match="got Linear of PyTorch"):
        nn.Sequential(Linear())
    with pytest.raises(TypeError, match="got Linear of PyTorch"):
        optim.SGD([Linear()])


def test_a_misspelled_constructor():
    with pytest.raises(TypeError, match="Wrong defines _init_. Did you mean __init__"):

        class Wrong(nn.Module):
            def _init_(self):
                pass


def test_pictures_into_a_linear_layer():
    with pytest.raises(ValueError, match=r"Write x.reshape\(len\(x\), -1\)"):
        nn.Linear(12, 2)(np.ones((5, 3, 4)))
    with pytest.raises(ValueError, match="in the last axis$"):
        nn.Linear(12, 2)(np.ones((5, 3)))


def test_labels_that_are_no_numbers():
    with pytest.raises(TypeError, match="names, labels = np.unique"):
        F.cross_entropy(np.ones((2, 2)), np.array(["cat", "dog"]))
    with pytest.raises(TypeError, match=r"Write target.astype\(int\)"):
        F.cross_entropy(np.ones((2, 2)), np.array([0.0, 1.0]))


def test_fit_takes_a_loss_of_the_model():
    m = nn.Linear(3, 2)
    o = optim.SGD(m.parameters())
    batch = x, np.zeros(4, int)
    with pytest.raises(
        TypeError, match=r"Pass lambda model, x, y: F.cross_entropy\(model\(x\), y\)"
    ):
        training.fit(m, F.cross_entropy, o, batch)
    with pytest.raises(TypeError, match=r"CrossEntropyLoss takes predictions and targets"):
        training.fit(m, nn.CrossEntropyLoss(), o, batch)
    with pytest.raises(TypeError, match="loss must be a function of .* got str"):
        training.fit(m, "mse", o, batch)
    with pytest.raises(TypeError, match="expected an optimizer, got str"):
        training.fit(m, lambda m, x, y: F.cross_entropy(m(x), y), "adam", batch)


def test_a_tensor_is_rounded_like_a_number():
    loss = ta.tensor(2.345678, requires_grad=True)
    assert round(loss, 2).item() == np.float32(2.35) and round(loss).item() == 2


def test_tensors_with_tables_of_pandas():
    pd = pytest.importorskip("pandas")
    w = ta.tensor(np.array([1.0, 2.0]), requires_grad=True)
    column = pd.Series([3.0, 4.0], index=[7, 8])
    for y in (column * w, column - w, w * column):
        assert isinstance(y, ta.Tensor) and y.requires_grad
    np.sum((column - w) ** 2).backward()
    assert w.grad.tolist() == [-4, -4]


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
    "hx": lambda k: nn.GRUCell(3, 2)(x, **k),
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
    "input_dim": lambda k: nn.Embedding(embedding_dim=2, **k),
    "rate": lambda k: nn.Dropout(**k),
    "filters": lambda k: nn.Conv2d(1, kernel_size=3, **k),
    "return_sequences": lambda k: nn.LSTM(3, 2, **k),
    "from_logits": lambda k: F.cross_entropy(x, [0, 1, 2, 0], **k),
    "activation": lambda k: nn.Linear(3, 2, **k),
    "in_channels": lambda k: nn.Linear(**k),
    "in_features": lambda k: graph.GCNConv(**k),
    "hidden_channels": lambda k: nn.MLP([3, 2], **k),
    "alpha": lambda k: nn.LeakyReLU(**k),
    "clipnorm": lambda k: optim.Adam(model.parameters(), **k),
    "decay": lambda k: optim.Adam(model.parameters(), **k),
    "lr": lambda k: training.fit(None, None, None, None, **k),
    "shuffle": lambda k: training.fit(None, None, None, None, **k),
    "early_stopping": lambda k: training.fit(None, None, None, None, **k),
    "map_location": lambda k: ta.load("x", **k),
    "weights_only": lambda k: ta.load("x", **k),
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
    with pytest.raises(TypeError, match="entry 3 must be an nn.Module, got int$"):
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
    with pytest.raises(ValueError, match="HuberLoss: expected 0 < delta"):
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
    with pytest.raises(TypeError, match="lr_lambda must be a function of the step, got float"):
        optim.LambdaLR(a, 0.9)
    with pytest.raises(ValueError, match="expected 0 < gamma, got gamma=-1"):
        optim.StepLR(a, 3, -1)
