"""Arguments of a wrong kind or range, whose errors must name the argument and its value."""

import numpy as np
import pytest

import tinyattn as ta
import tinyattn.functional as F
from tinyattn import data, graph, metrics, models, nn, optim, plot, widgets
from tinyattn.data.sentences import agreement
from tinyattn.data.translation import from_pairs, phrases
from tinyattn.graph import Graph

SIGNAL = np.ones((1, 1, 5))
G = Graph([0], [1], 2, x=np.zeros((2, 3)))
X = ta.tensor([1.0], requires_grad=True)
Z = np.fft.fft(ta.tensor(np.ones(4), requires_grad=True))
LAYER = nn.Linear(2, 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: F.max_pool1d(SIGNAL, None), "kernel_size must be a whole number, got None"),
        (lambda: F.conv1d(SIGNAL, SIGNAL, stride=None), "stride must be .*, got None"),
        (lambda: F.neighbour_table((), 3), "lengths must be a tuple"),
        (lambda: F.pad(SIGNAL, None), "pad must be a tuple of whole numbers.* got pad=None"),
        (
            lambda: F.binary_cross_entropy(np.r_[np.nan], np.r_[1.0]),
            "got nan at index .0,.. Look for NaN",
        ),
        (
            lambda: F.binary_cross_entropy(np.r_[0.5], np.r_[np.nan]),
            "target <= 1, got nan at index .0,.$",
        ),
        (
            lambda: F.binary_cross_entropy(np.r_[0.5], np.r_[1.0], np.r_[np.nan]),
            "0, got nan at index .0,.$",
        ),
        (lambda: F.layer_norm(SIGNAL, ()), "must contain at least one length"),
        (lambda: agreement(2, None), "distance must be whole numbers >= 1, got None"),
        (lambda: agreement(-1, 2), "agreement: expected 0 <= n, got n=-1"),
        (lambda: data.shapes(2, kinds="ball"), "kinds must be a tuple .* got 'ball'"),
        (lambda: data.shapes(2, noise=np.inf), "got noise=inf"),
        (lambda: data.showers(2, noise=None), "in GeV, .* got noise=None"),
        (lambda: data.grids(3, [1.5]), r"whole numbers from 1 to 9.*got \[1.5\]"),
        (lambda: data.tracks(2, apart=-1), "0 <= apart < inf, got apart=-1"),
        (lambda: phrases(3, kinds="date"), "kinds must be a tuple .* got 'date'"),
        (lambda: graph.batch([G, Graph([0], [1], 2, x=np.zeros((2, 4)))]), "the same features in"),
        (lambda: ta.seed(-1), "seed: n must be a whole number >= 0, got n=-1"),
        (lambda: data.moons(10, rng=-1), "a whole number >= 0 as a seed, got rng=-1"),
        (lambda: metrics.roc_auc(None, [0, 1]), "^roc_auc: scores and labels must both be"),
        (lambda: plot.loss_curve([1, 2], smooth=None), "smooth >= 1, got smooth=None"),
        (lambda: plot.loss_curve({"a": []}), "histories.* is empty, so there is nothing to draw"),
        (lambda: plot.curves([1, 2], {}), "ys is empty"),
        (lambda: plot.heatmap({}), "values is empty"),
        (lambda: plot.images(np.ones((3, 2, 2, 2))), r"colour images must be \[N, H, W, 3\]"),
        (lambda: widgets.gravnet([-1.0]), "expected distances >= 0, got -1 at index "),
        (lambda: widgets.gravnet([1.0], sharpness=np.inf), "< inf, got sharpness=inf"),
        (lambda: widgets.attention([], "abc"), r"a list with an array \[H, T, S\] for each"),
    ],
)
def test_values_out_of_range_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: data.moons(None), "moons: n must be a whole number, got None$"),
        (lambda: data.moons(10.0), "moons: n must be a whole number, got 10.0, a float"),
        (lambda: data.sine(noise=None), "sine: noise must be a number, got None$"),
        (
            lambda: data.tracks(2, objects=3),
            r"objects must be two whole numbers .*, got 3",
        ),
        (lambda: data.showers(2, objects=(1.5, 2)), "objects must be two whole numbers"),
        (lambda: from_pairs({"a": "b"}), r"a list .* got dict. Write list\(pairs.items"),
        (lambda: graph.batch(None), "expected a list of graphs, got NoneType"),
        (lambda: graph.propagate(G.x, G, 3), "message must be a function"),
        (lambda: ta.gradients(3.0, X), "y must be a Tensor, got float. Did you use .item"),
        (lambda: np.where(X > 0, X), "either both a and b must be given"),
        (lambda: np.exp(X, dtype=np.float32), r"dtype=\. Convert before or after"),
        (lambda: np.add.reduce(Z), "np.add.reduce has no derivative rule for a spectrum"),
        (lambda: np.multiply(Z, 2, where=True), "np.multiply with where= has no derivative"),
        (lambda: metrics.roc_auc(["a", "b"], [0, 1]), "^roc_auc: scores must be real numbers"),
        (lambda: metrics.background_rejection([0, 1], [0, 1], None), "efficiency must be a number"),
        (lambda: plot.curves([1, 2], [1, 2], quantiles=0.5), "quantiles must be two numbers"),
        (lambda: plot.bars({"a": None}), r"bars: values\['a'\] must be real numbers, got NoneType"),
        (lambda: plot.bars({"a": 1}, errors=3), "errors must be a dictionary .* got int"),
        (lambda: ta.save("a.safetensors", LAYER), r"Write save\(path, model.state_dict\(\)\)"),
        (lambda: ta.save("a", optim.SGD(LAYER.parameters())), "of arrays, got an optimizer"),
        (lambda: ta.save("a", {"a": SIGNAL}, metadata="abc"), "metadata must be a dictionary"),
    ],
)
def test_wrong_kinds_are_named(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_places_that_are_not_finite():
    layer = graph.DynamicEdgeConv(nn.Linear(6, 2), 1)
    with pytest.raises(
        ValueError, match="DynamicEdgeConv: places is NaN or infinite in 1 of 2 points"
    ):
        layer(G.x, places=np.array([[0.0], [np.nan]]))


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(IsADirectoryError, match="load: .* is a folder"):
        ta.load(tmp_path)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.MultiheadAttention(7, 2), "MultiheadAttention: embed_dim=7 .* num_heads=2"),
        (lambda: nn.TransformerDecoderLayer(8, 3), "DecoderLayer: d_model=8 .* nhead=3 heads"),
        (lambda: nn.Transformer(8, 3), "^Transformer: d_model=8 .* a multiple of nhead as d_model"),
        (lambda: nn.PMA(7, 2), "PMA: d=7 cannot be divided among heads=2"),
        (lambda: models.GPT(10, 8, 3, 1, 4), "GPT: d_model=8 .* num_heads=3"),
        (lambda: models.Llama(10, 8, 3, 3, 1, 4), "Llama: d_model=8 .* num_heads=3"),
        (lambda: nn.Transformer(8, 2, dropout=2), "0 <= dropout <= 1, got dropout=2"),
        (lambda: models.BERT(9, 8, 2, 1, dropout=-1), "BERT: expected 0 <= dropout <= 1"),
        (lambda: nn.Conv2d(1, 1, (3, 3, 3)), "kernel_size must be a whole number, or a pair"),
    ],
)
def test_errors_speak_of_the_arguments_that_were_written(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.Dropout(None), "Dropout: p must be a number, got None$"),
        (lambda: nn.BatchNorm1d(2, eps=None), "eps must be a number, got None$"),
        (lambda: nn.MLP([2, 3, 1], activation=nn.ReLU()), "MLP: activation must be the class of a"),
        (lambda: nn.MLP(None), "sizes must be a list, such as .*, got None"),
        (lambda: nn.ModuleList(nn.ReLU()), r"got ReLU\. Write nn\.ModuleList\(\[a, b\]\)"),
        (lambda: nn.TransformerEncoder(3, 2), "encoder_layer must be a layer, got 3"),
        (lambda: nn.MSELoss("sum"), r"^MSELoss\(\) takes 1 positional argument but 2 were given"),
    ],
)
def test_wrong_kinds_of_layers_are_named(make, message):
    with pytest.raises(TypeError, match=message):
        make()


def test_attention_names_the_shapes_that_were_passed():
    layer, x = nn.MultiheadAttention(8, 2), np.zeros((2, 3, 8), np.float32)
    both = np.concatenate([x, x])
    for k, v, same in ((x, x[:, :2], "number S of tokens"), (both, both, "batch size B")):
        with pytest.raises(ValueError, match=rf"the same {same}, got q \(2, 3, 8\), k"):
            layer(x, k, v)


def test_positions_are_whole_numbers_one_for_each_token():
    x = np.zeros((2, 3, 8), np.float32)
    for layer in (nn.PositionalEncoding(8, 5), nn.RotaryEmbedding(8)):
        for wrong in ([0, 1], [0, 1, 0.5], "a"):
            with pytest.raises(
                ValueError, match=r"positions must be whole numbers \[3\] or \[B, 3"
            ):
                layer(x, positions=wrong)
