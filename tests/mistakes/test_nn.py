"""Mistakes with modules and layers: the error that each must raise."""

import re
from collections import OrderedDict

import numpy as np
import pytest

import tinyattn as ta
from tinyattn import Tensor, nn
from tinyattn.kernels import numba


def test_errors_of_attention():
    with pytest.raises(ValueError, match="embed_dim=10 cannot be divided among num_heads=3 heads"):
        nn.MultiheadAttention(10, 3)
    module = nn.MultiheadAttention(8, 2, rng=0)
    x = np.ones((2, 5, 8), np.float32)
    for q, k, v, message in [
        (x[..., :7], x, x, r"q must be \[B, T, 8\]"),
        (x, x[..., :7], x, r"k must be \[B, S, 8\]"),
        (x, x, x[0], r"v must be \[B, S, 8\], or all three without B; got q \(2, 5, 8\)"),
        (x[None], x, x, "q must be"),
    ]:
        with pytest.raises(ValueError, match=message):
            module(q, k, v)
    for shape in ((2, 7), (3, 5, 5), (2, 3, 5, 5), (5,)):
        with pytest.raises(ValueError, match=r"\[T, S\].*keep\[:, None, :\]"):
            module(x, x, x, mask=np.ones(shape, bool))
    with pytest.raises(TypeError, match="mask must be bool"):
        module(x, x, x, mask=np.ones((5, 5)))


def test_a_forgotten_container_is_refused():
    class Forgets(nn.Module):
        def __init__(self, parts):
            self.parts = parts

    for parts in ([nn.Tanh()], {"a": nn.Linear(1, 1)}, (nn.Parameter(np.ones(1)),)):
        with pytest.raises(
            TypeError, match=r"would not be trained. Put modules into nn.Module(List|Dict)"
        ):
            Forgets(parts)
    with pytest.raises(TypeError, match="is an OrderedDict of modules or parameters"):
        Forgets(OrderedDict(a=nn.Tanh()))
    assert len(list(Forgets(nn.ModuleList([nn.Linear(1, 1), nn.Tanh()])).parameters())) == 2


def test_a_tensor_that_would_not_be_trained_is_refused():
    class Forgets(nn.Module):
        def __init__(self):
            self.w = ta.tensor([1.0], requires_grad=True)

    with pytest.raises(TypeError, match=r"Forgets.w .* Make it an nn.Parameter"):
        Forgets()


@pytest.mark.parametrize(
    "value",
    [
        ta.tensor([[1.0, 2.0]]),
        np.ones((1, 2)),
        [[1.0, 2.0]],
        1.0,
        nn.Linear(2, 1),
        nn.Buffer([1.0]),
    ],
)
def test_only_a_parameter_takes_the_place_of_a_parameter(value):
    model = nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1))
    kind = type(value).__name__
    with pytest.raises(TypeError, match=rf"weight is a Parameter, but .*type {kind}.*\.data = "):
        model[0].weight = value
    if not isinstance(value, nn.Buffer):
        with pytest.raises(TypeError, match=rf"mean is a Buffer, but .*type {kind}.*be saved"):
            model[1].running_mean = value
    assert len(model.state_dict()) == 7
    computed = model[0].weight * 2
    with pytest.raises(
        TypeError, match=r"of type Tensor of shape \(1, 2\) and would not be trained"
    ):
        model[0].weight = computed
    model[0].weight = nn.Parameter(np.zeros((1, 2)))
    model[0].bias = None
    assert [*model.state_dict()][:2] == ["0.weight", "1.weight"]


BAD_LAYERS = [
    (lambda: nn.MLP([3]), "at least an input and an output"),
    (lambda: nn.Dropout(2), "0 <= p <= 1"),
    (lambda: nn.BatchNorm1d(3)(ta.tensor(np.ones((4, 2)))), r"x must be \[B, 3\]"),
]


@pytest.mark.parametrize(("call", "message"), BAD_LAYERS)
def test_bad_input_of_layers_is_explained(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("container", [[], {}, [[]]])
def test_a_container_that_is_filled_later_is_refused_too(container):
    model = nn.Module()
    model.parts = container
    part = nn.Linear(1, 1)
    if isinstance(container, dict):
        container["a"] = part
    else:
        (container[0] if container else container).append(part)
    for use in (model.parameters, model.state_dict, model.train):
        with pytest.raises(TypeError, match="would not be trained"):
            list(use())


@pytest.mark.parametrize(
    ("layer", "shape"),
    [((2, 1), (2, 3, 4)), ((5, -1), (2, 3, 4)), ((1, -4), (2, 3, 4)), ((), (3,))],
)
def test_flatten_refuses_axes_that_x_does_not_have(layer, shape):
    with pytest.raises(ValueError, match="must be axes of x in ascending order"):
        nn.Flatten(*layer)(np.ones(shape))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.Embedding(3, 4, padding_idx=3), "-3 <= padding_idx < 3, .*got padding_idx=3"),
        (
            lambda: nn.GroupedQueryAttention(8, 2)(np.ones((5, 8), np.float32)),
            r"x must be \[B, T, 8\], got shape \(5, 8\)",
        ),
    ],
)
def test_each_wrong_argument_has_its_own_message(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_norms_refuse_other_shapes():
    for layer, shape, expected in [
        (nn.BatchNorm2d(3), (4, 3, 2), r"BatchNorm2d: x must be \[B, 3, H, W\]"),
        (nn.BatchNorm2d(3), (4, 2, 2, 2), r"BatchNorm2d: x must be \[B, 3, H, W\]"),
        (nn.GroupNorm(2, 4), (3, 6), r"GroupNorm: x must be \[B, 4, \.\.\.\]"),
        (nn.GroupNorm(2, 4), (4,), r"GroupNorm: x must be \[B, 4, \.\.\.\]"),
    ]:
        with pytest.raises(ValueError, match=expected):
            layer(np.zeros(shape, np.float32))
    with pytest.raises(ValueError, match="num_groups=4 must divide num_channels=6"):
        nn.GroupNorm(4, 6)


@pytest.mark.parametrize(
    ("name", "module", "error", "message"),
    [
        (3, nn.ReLU(), TypeError, "names must be strings, got 3"),
        ("a.b", nn.ReLU(), KeyError, "'a.b' cannot be a name"),
        ("", nn.ReLU(), KeyError, "'' cannot be a name"),
        ("forward", nn.ReLU(), KeyError, "'forward' is already an attribute of ModuleDict"),
        ("f", np.tanh, TypeError, "'f' must be an nn.Module, got ufunc"),
    ],
)
def test_a_dictionary_of_modules_explains_what_it_refuses(name, module, error, message):
    with pytest.raises(error, match=message):
        nn.ModuleDict({name: module})
    with pytest.raises(NotImplementedError, match="Call its modules by name"):
        nn.ModuleDict()(np.ones(3))
    with pytest.raises(KeyError):
        nn.ModuleDict()["absent"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: nn.init.xavier_uniform_(nn.Parameter(np.zeros(3))), "For a bias, use zeros_"),
        (lambda p: nn.init.kaiming_normal_(p, mode="fan"), 'mode must be "fan_in" or "fan_out"'),
        (lambda p: nn.init.kaiming_normal_(p, nonlinearity="gelu"), "got 'gelu'"),
        (lambda p: nn.init.orthogonal_(nn.Parameter(np.zeros(3))), "at least two axes"),
        (lambda p: nn.init.eye_(nn.Parameter(np.zeros(3))), "must be a matrix"),
        (lambda p: nn.init.trunc_normal_(p, a=50.0, b=60.0), "hardly any number"),
        (lambda p: nn.init.trunc_normal_(p, a=0.0, b=1e-9), "Choose a wider interval"),
        (lambda p: nn.init.trunc_normal_(p, a=1.0, b=-1.0), "expected a < b, got a=1.0, b=-1.0"),
    ],
)
def test_initial_values_explain_what_they_refuse(call, message):
    with pytest.raises(ValueError, match=message):
        call(nn.Parameter(np.zeros((2, 2))))


def test_wrong_arguments_of_rotary():
    with pytest.raises(ValueError, match="rotated in pairs, got d=5"):
        nn.RotaryEmbedding(5)
    with pytest.raises(ValueError, match=r"x must be \[..., T, 4\]"):
        nn.RotaryEmbedding(4)(ta.tensor(np.ones((3, 6))))
    with pytest.raises(ValueError, match="positions must be >= 0"):
        nn.RotaryEmbedding(4)(ta.tensor(np.ones((1, 4))), [-1])


def test_wrong_numbers_of_heads():
    with pytest.raises(ValueError, match="d_model=8 cannot be divided among num_heads=3 heads"):
        nn.GroupedQueryAttention(8, 3, 1)
    with pytest.raises(ValueError, match="num_kv_heads=3 must divide num_heads=4"):
        nn.GroupedQueryAttention(8, 4, 3)


SETS, MASK = ta.tensor(np.ones((2, 5, 4))), np.arange(5) < [[5], [2]]


def deep_sets(pool):
    return nn.DeepSets(nn.MLP([4, 6, 3], rng=0), nn.MLP([3, 4, 2], rng=1), pool)


BAD_SETS = [
    (lambda: deep_sets("median"), "pool must be one of sum, mean, max"),
    (lambda: deep_sets(["sum"]), r"pool must be one of .*, got \['sum'\]$"),
    (lambda: deep_sets("sum")(ta.tensor(np.ones((3, 4)))), r"batch of sets \[B, N, d\]"),
    (
        lambda: deep_sets("sum")(SETS, MASK[:, None, :]),
        r"mask must be bool \[B, N\] = \(2, 5\)",
    ),
    (lambda: nn.PMA(4)(SETS, MASK.astype(np.int64)), "got int64"),
    (lambda: nn.PositionalEncoding(4, 3)(SETS), "max_len=3"),
]


@pytest.mark.parametrize(("call", "message"), BAD_SETS)
def test_bad_input_of_layers_on_sets_is_explained(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_what_is_no_module_and_what_cannot_be_called():
    with pytest.raises(TypeError, match=r"entry 0 must be an nn.Module, got function"):
        nn.Sequential(lambda x: x)
    with pytest.raises(TypeError, match="must be an nn.Module"):
        nn.Sequential(nn.Linear(2, 3))[0] = np.tanh
    with pytest.raises(NotImplementedError, match="only holds modules"):
        nn.ModuleList()(1)
    with pytest.raises(NotImplementedError, match=r"has no forward"):
        nn.Module()(1)


@pytest.mark.parametrize(
    ("options", "given"), [({"d": 3}, "d="), ({}, "a value of type int")], ids=["named", "not"]
)
def test_arguments_that_are_passed_on_to_module(options, given):
    class Layer(nn.Module):
        def __init__(self, d):
            super().__init__(*(() if options else (d,)), **options)

    with pytest.raises(TypeError, match=rf"Layer: super\(\).__init__ takes .* got {given}\. "):
        Layer(3)


def test_dropout_of_weights_has_no_kernel():
    module = nn.MultiheadAttention(8, 2, dropout=0.5, rng=0)
    x = np.ones((1, 40, 8), np.float32)
    with pytest.raises(ValueError, match=r'Use impl="numpy", dropout=0, or \.eval'):
        module(x, x, x, need_weights=False, impl="kernel")


@pytest.mark.parametrize(
    "module",
    [
        nn.PositionalEncoding(4, 9),
        nn.LearnedPositionalEmbedding(9, 4, rng=0),
        nn.ConcatPositionalEncoding(2, 9),
    ],
    ids=repr,
)
def test_positions_that_an_encoding_does_not_have(module):
    with pytest.raises(ValueError, match="positions must be from 0 to 8"):
        module(ta.tensor(np.ones((2, 5, 4))), np.arange(5) + 5)


@pytest.mark.parametrize(
    "module",
    [
        nn.PositionalEncoding(4, 9),
        nn.LearnedPositionalEmbedding(9, 4, rng=0),
        nn.ConcatPositionalEncoding(2, 9),
        nn.RotaryEmbedding(4),
        nn.InterleavedRotaryEmbedding(4),
    ],
    ids=repr,
)
def test_positions_of_more_sequences_than_x_has(module):
    for shape, B in (((3, 4), 1), ((3, 4), 2), ((1, 3, 4), 2), ((1, 2, 3, 4), 2)):
        expected = (
            rf"positions \[B, T\] need .* same B, got positions \({B}, 3\) and x \({shape[0]}, "
        )
        with pytest.raises(ValueError, match=expected):
            module(x(*shape), np.zeros((B, 3), int))


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
def test_another_order_of_axes_is_explained(name):
    layer, rest = getattr(nn, name), ("tanh",) if name == "RNN" else ()
    for wrong in (False, None, 0):
        with pytest.raises(
            ValueError, match=rf"{name}: batch_first is always True here, with x \[B, T, D"
        ):
            layer(3, 4, batch_first=wrong)
    with pytest.raises(ValueError, match=r"got batch_first=False.*np.swapaxes\(x, 0, 1\)"):
        layer(3, 4, 1, *rest, True, False)


@pytest.mark.parametrize("make", [nn.MSELoss, nn.CrossEntropyLoss, nn.BCEWithLogitsLoss])
def test_reductions_of_losses_are_named(make):
    with pytest.raises(ValueError, match='reduction must be "mean", "sum" or "none", got \'men\''):
        make(reduction="men")(np.ones((2, 2)), np.ones((2, 2)))


def test_an_unknown_activation_is_explained():
    with pytest.raises(ValueError, match="activation must be a function or one of relu, gelu"):
        nn.TransformerEncoderLayer(6, 2, activation="swish")


def test_a_cache_wants_a_batch():
    attention = nn.MultiheadAttention(6, 2)
    with pytest.raises(ValueError, match=r"with a cache, q must be \[B, T, 6\]"):
        attention(*[ta.tensor(np.ones((5, 6)))] * 3, cache=nn.KeyValueCache())


@pytest.mark.skipif(numba is None, reason="without Numba there is no kernel")
def test_the_kernel_of_a_recurrent_layer_has_no_second_derivative():
    layer = nn.LSTM(2, 3, impl="kernel")
    x = Tensor(np.ones((1, 2, 2), np.float32), requires_grad=True)
    with pytest.raises(NotImplementedError, match='impl="numpy"'):
        layer(x)[0].sum().backward(create_graph=True)


SEQUENCES = np.zeros((2, 3, 4), np.float32)
BAD_RECURRENT = {
    "features": (
        lambda: nn.GRU(5, 2)(SEQUENCES),
        "GRU: x must be [B, T, D] with D = 5, got shape (2,",
    ),
    "no batch axis": (lambda: nn.RNN(4, 2)(SEQUENCES[0]), "RNN: x must be [B, T, D] with D = 4"),
    "a cell on a sequence": (
        lambda: nn.RNNCell(4, 2)(SEQUENCES),
        "RNNCell: x must be [B, D] with D = 4",
    ),
    "ids": (
        lambda: nn.GRU(4, 2)(SEQUENCES.astype(int)),
        "GRU: x must be floating point, got int64",
    ),
    "shape of the state": (
        lambda: nn.GRU(4, 2, 2)(SEQUENCES, np.zeros((1, 2, 2))),
        "GRU: the state must be [layers · directions, B, H] = (2, 2, 2), got shape (1, 2, 2)",
    ),
    "two states": (
        lambda: nn.GRU(4, 2)(SEQUENCES, (np.zeros((1, 2, 2)), np.zeros((1, 2, 2)))),
        "the state must be one array h, got a tuple of length 2. Pass h alone",
    ),
    "half a state": (
        lambda: nn.LSTM(4, 2)(SEQUENCES, np.zeros((1, 2, 2))),
        "must be a tuple (h, c)",
    ),
    "state of a cell": (
        lambda: nn.LSTMCell(4, 2)(SEQUENCES[0], SEQUENCES[0]),
        "must be a tuple (h, c)",
    ),
    "too long": (
        lambda: nn.GRU(4, 2)(SEQUENCES, lengths=[1, 4]),
        "GRU: expected 0 <= lengths <= 3, the number of steps of x, got lengths[1]=4",
    ),
    "negative": (lambda: nn.GRU(4, 2)(SEQUENCES, lengths=[-1, 2]), "got lengths[0]=-1"),
    "one length": (lambda: nn.GRU(4, 2)(SEQUENCES, lengths=[1]), "[2] whole numbers"),
    "fractions": (lambda: nn.GRU(4, 2)(SEQUENCES, lengths=[1.0, 2.0]), "got float64"),
    "implementation": (
        lambda: nn.GRU(4, 2, impl="fast")(SEQUENCES),
        "impl must be one of auto, sums",
    ),
    "half floats": (
        lambda: nn.GRU(4, 2, impl="kernel").astype(np.float16)(SEQUENCES.astype(np.float16)),
        "takes float32 or float64, got float16",
    ),
    "nonlinearity": (lambda: nn.RNN(4, 2, nonlinearity="sin"), '"tanh" or "relu", got \'sin\''),
    "layers": (
        lambda: nn.LSTM(4, 2, 0),
        "LSTM: num_layers must be a whole number of at least 1, got 0",
    ),
    "dropout": (lambda: nn.LSTM(4, 2, dropout=1.5), "LSTM: expected 0 <= dropout <= 1"),
}


@pytest.mark.parametrize("what", BAD_RECURRENT)
def test_wrong_input_of_recurrent_layers(what):
    call, message = BAD_RECURRENT[what]
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        call()


def x(*shape):
    return np.ones(shape, np.float32)


ENCODER = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, rng=0), 2)
DECODER = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, rng=0), 2)
BLOCKS = nn.LlamaBlocks([nn.LlamaBlock(8, 4, 2, 16, rng=0)])
GROUPED = nn.GroupedQueryAttention(8, 4, 2, rng=0)
TRANSFORMER = nn.Transformer(8, 2, 1, 1, 16, rng=0)
MORE_BAD_LAYERS = [
    (lambda: nn.Linear((3,), 2), "in_features must be a whole number .* got .3,., a tuple"),
    (lambda: nn.Conv2d((2, 2), 3, 3), "in_channels must be a whole number"),
    (lambda: nn.BatchNorm1d((3,)), "num_features must be a whole number"),
    (lambda: nn.Conv1d(2, 3, 3, padding="full"), '"same" or "valid", got .full'),
    (lambda: nn.SelfAttention(8)(x(2, 3, 7)), r"SelfAttention: x must be \[B, N, 8\] or \[N, 8\]"),
    (lambda: nn.CrossAttention(8)(x(2, 3, 8), x(2, 3, 7)), r"and context .2, 3, 7.$"),
    (lambda: nn.CrossAttention(8)(x(2, 3, 8), x(3, 3, 8)), "CrossAttention: x must be"),
    (lambda: nn.MAB(4)(x(2, 3, 4), x(3, 5, 4)), "MAB: x must be .* with the same B"),
    (lambda: nn.SAB(4)(x(2, 3, 5)), "SAB: x must be"),
    (lambda: nn.ISAB(4)(x(3, 4)), r"ISAB: x must be \[B, N, 4\], got shape .3, 4."),
    (lambda: nn.ClassAttention(4)(x(2, 4), x(2, 5, 4)), r"c must be \[B, 1, 4\]"),
    (lambda: nn.ClassAttention(4)(x(2, 2, 4), x(2, 5, 4)), r"c must be \[B, 1, 4\]"),
    (lambda: GROUPED(x(2, 3, 8), np.ones((2, 3), bool)), r"\[B, T, S\] = .2, 3, 3. .* padd"),
    (lambda: nn.GroupedQueryAttention(8, 4, rotary=nn.RotaryEmbedding(4)), "= 2 features, got d=4"),
    (lambda: nn.LearnedPositionalEmbedding(5, 4)(x(2, 3, 1)), r"x must be \[B, T, 4\]"),
    (lambda: nn.LearnedPositionalEmbedding(5, 4, std=-1), "expected 0 <= std"),
    (lambda: nn.ConcatPositionalEncoding(4)(x(4)), r"x must be \[B, T, d\]"),
    (
        lambda: nn.RotaryEmbedding(4)(x(2, 3, 4), np.zeros((3, 3), int)),
        r"got positions \(3, 3\) and x \(2, 3, 4\). Pass positions \[T\]",
    ),
    (lambda: nn.RotaryEmbedding(4)(x(2, 3, 4), np.zeros((2, 2), int)), "each row of x .2, 3, 4."),
    (lambda: nn.KeyValueCache().append(x(1, 2, 3, 4), x(1, 2, 1, 4)), "the same B, H and T"),
    (lambda: nn.KeyValueCache().truncate(0.5), r"one for each row of the cache \[B\] = \(1,\)"),
    (lambda: nn.KeyValueCache().truncate([0, 0]), "got int64 of shape .2,."),
    (lambda: nn.init.xavier_uniform_(ta.tensor([[1.0]]), gain=-1), "0 <= gain < inf, got gain=-1"),
    (lambda: nn.MLP([[3, 2], [2, 1]]), "MLP: sizes must be whole numbers"),
    (lambda: nn.Conv2d(1, 1, ((3, 3), (3, 3))), "Conv2d: kernel_size must be whole numbers"),
    (
        lambda: nn.LayerNorm(x(9, 9)),
        r"normalized_shape must be .*, got an ndarray of shape \(9, 9\)$",
    ),
    (lambda: nn.LayerNorm(()), r"LayerNorm: normalized_shape must contain .*, got \(\)$"),
    (lambda: nn.RMSNorm([]), r"RMSNorm: normalized_shape must contain at least one size"),
    (lambda: nn.MLP([2, [3, 2]]), "MLP: sizes must be whole numbers"),
    (lambda: TRANSFORMER(x(2, 3, 8), x(2, 4, 7)), r"tgt \[B, T, 8\], .* tgt \(2, 4, 7\)"),
    (lambda: TRANSFORMER(x(3, 8), x(2, 4, 8)), "or both without B, got src"),
    (lambda: TRANSFORMER(x(2, 3, 8), x(3, 4, 8)), "src and tgt must have the same batch size B"),
    (lambda: nn.PMA(4, 2, k=[1]), "PMA: k must be a whole number"),
    (lambda: nn.Flatten()(x(3)), r"pass x\[None\]"),
    (lambda: nn.BatchNorm1d(3)(x(2, 4, 3)), r"write np.swapaxes\(x, 1, 2\)"),
    (lambda: nn.BatchNorm2d(3)(x(2, 4, 4, 3)), r"write np.moveaxis\(x, -1, 1\)"),
    (lambda: nn.TransformerEncoder(2, ENCODER.layers[0]), "got a TransformerEncoderLayer$"),
    (lambda: ENCODER.attention_maps(x(2, 3, 7)), r"TransformerEncoderLayer: x must be \[B, T, 8"),
    (lambda: DECODER.attention_maps(x(2, 3, 8), x(2, 3, 7)), r"memory must be \[B, S, 8\]"),
    (lambda: TRANSFORMER(x(2, 3, 8), x(2, 4, 8), np.ones((2, 3), bool)), "src_mask must be"),
    (lambda: TRANSFORMER(x(3, 8), x(4, 8), None, np.ones(4, bool)), "tgt_mask must be"),
    (lambda: nn.GroupedQueryAttention(6, 2), "d_model / num_heads must be even, .* got 6 / 2 = 3"),
    (lambda: nn.ISAB(8, 2)(x(2, 3, 8), np.ones((2, 3), bool)), r"ISAB: mask .* = \(2, 1, 3\)"),
    (
        lambda: nn.MAB(8, 2)(x(2, 3, 8), x(2, 5, 8), np.ones((2, 5), bool)),
        r"^MAB: mask must be .* = \(2, 2, 3, 5\)",
    ),
    (lambda: nn.SAB(8, 2)(x(3, 8), np.ones(3, bool)), r"SAB: mask .* pass keep\[None, :\]"),
    (lambda: nn.PMA(8, 2)(x(2, 3, 7)), r"PMA: x must be a batch of sets \[B, N, 8\]"),
    (lambda: ENCODER(x(2, 3, 7)), r"TransformerEncoderLayer: x must be \[B, T, 8\] or \[T, 8\]"),
    (lambda: DECODER(x(2, 3, 8), x(2, 3, 7)), r"memory must be \[B, S, 8\] or \[S, 8\]"),
    (lambda: DECODER(x(2, 3, 8), x(4, 3, 8)), "x and memory must have the same batch size B"),
    (
        lambda: DECODER(x(2, 3, 8), x(2, 4, 8), memory_mask=np.ones((2, 4), bool)),
        r"memory_mask must be .* = \(2, 2, 3, 4\) .* pass keep\[:, None, :\]",
    ),
    (lambda: nn.KeyValueCache().append(x(4), x(4)), r"k must be \[B, H, T, d\]"),
    (lambda: nn.LSTMCell(3, 4)(x(2, 3), (x(2, 4), x(2, 5))), r"c in the state must be \[B, H\]"),
    (lambda: nn.RNNCell(3, 4)(x(2, 5, 3)), "For whole sequences, use nn.RNN$"),
    (lambda: nn.init.kaiming_normal_(nn.Linear(2, 2).weight, nonlinearity="gelu"), "^kaiming_norm"),
]


@pytest.mark.parametrize(("call", "message"), MORE_BAD_LAYERS)
def test_arguments_of_a_layer_are_named_in_its_own_words(call, message):
    with pytest.raises(ValueError, match=message):
        call()


WRONG_KINDS = [
    (lambda: nn.MultiheadAttention(8, 2)(*[x(2, 3, 8)] * 3, cache=[]), "the cache of this layer"),
    (
        lambda: nn.SelfAttention(8)(*[x(2, 3, 8)] * 3),
        r"x must be passed only once, .* Write layer\(x\)",
    ),
    (
        lambda: ENCODER(x(2, 3, 8), cache=nn.KeyValueCache()),
        "one cache for each layer, of length 2, got a Key",
    ),
    (
        lambda: ENCODER(x(2, 3, 8), cache=DECODER.empty_cache()),
        "one cache for each layer, .* contains a tuple",
    ),
    (
        lambda: DECODER(x(2, 3, 8), x(2, 3, 8), cache=[]),
        "a pair of caches .* got a list of length 0",
    ),
    (lambda: DECODER.layers[0](x(2, 3, 8), x(2, 3, 8), cache=3), "must be a pair"),
    (lambda: BLOCKS(x(2, 3, 8), nn.KeyValueCache()), "for each block, got a KeyValueCache"),
    (lambda: nn.TransformerEncoder(DECODER.layers[0], 2), "Pass an nn.TransformerEncoderLayer"),
    (lambda: nn.TransformerEncoder(ENCODER.layers[0], 2, nn.LayerNorm), "norm must be a module"),
    (lambda: nn.DeepSets(3, nn.Tanh()), "phi must be a module or a function, got 3"),
    (lambda: nn.DeepSets(nn.Tanh(), nn.Tanh), "rho must be .* got the class Tanh"),
    (lambda: nn.PositionalEncoding(4)(np.ones((2, 3, 4), int)), "x must be floating point"),
    (lambda: nn.RotaryEmbedding(4)(np.ones((3, 4), int)), "x must be floating point"),
    (lambda: nn.RMSNorm(3)(np.ones((2, 3), int)), "or pass a number as eps"),
    (lambda: nn.detach(np.ones(3)), "state must be a Tensor, None, .* got ndarray"),
    (lambda: nn.init.normal_(np.ones(3)), "tensor must be a Tensor such as layer.weight"),
    (lambda: nn.init.zeros_(nn.Tanh()), "^zeros_: tensor must be a Tensor"),
    (lambda: nn.init.uniform_(ta.tensor([1, 2])), "must be floating point, got int64"),
    (lambda: nn.init.constant_(ta.tensor([1.0]), "a"), "val must be a number, got 'a'"),
    (lambda: nn.init.kaiming_normal_(ta.tensor([[1.0]]), a="x"), "^kaiming_normal_: a must be"),
    (lambda: nn.Sequential({"a": nn.Tanh()}), r"got a dict. Write Sequential\(\*d.values\(\)\)"),
    (lambda: nn.Sequential(nn.Tanh()) + nn.Tanh(), r"\+ needs a list of modules, got one Tanh"),
    (lambda: nn.Sequential().extend(nn.Tanh()), "extend needs a list of modules"),
    (lambda: nn.Sequential().insert(nn.Tanh(), 0), "insert: i must be a whole number, got Tanh"),
    (lambda: nn.Sequential(nn.Tanh())["0"], "must be a whole number or a slice, got '0'"),
    (lambda: nn.GRUCell(3, 4)(), r"^GRUCell.forward\(\) missing 1 required"),
    (lambda: nn.LSTM(3, 4)(1, 2, 3, 4), r"^LSTM.forward\(\) takes from 2 to 4"),
    (lambda: nn.Conv1d(3, 4, 1)(1, 2), r"^Conv1d.forward\(\) takes 2"),
    (lambda: GROUPED(x(2, 3, 8), np.ones((3, 3))), r"mask must be bool .* got float64. Compare"),
    (lambda: nn.MAB(4)(x(2, 3, 4), x(2, 5, 4), x(3, 5)), r"^MAB: mask must be bool .* Compare"),
    (lambda: nn.SAB(4)(x(2, 3, 4), x(2, 1, 3)), "^SAB: mask must be bool .* got float32"),
    (lambda: nn.ISAB(4)(x(2, 3, 4), x(2, 1, 3)), "^ISAB: mask must be bool .* got float32"),
    (lambda: nn.Tanh().train(x(3)), "Tanh.train: mode must be True or False, got ndarray. To tr"),
    (lambda: nn.Tanh().train(0), "mode must be True or False, got 0. To train"),
    (lambda: nn.Linear(1, 1).requires_grad_(5), "must be True or False, got 5. Write requires"),
    (lambda: nn.Tanh().summary((2, 3)), r"got the tuple \(2, 3\). .* pass np.zeros\(\(2, 3\)"),
    (lambda: nn.Sequential(nn.Tanh(), [nn.Tanh()]), r"got list. Write \* before the list"),
    (lambda: nn.ModuleDict({"a": [nn.Tanh()]}), "got list. Put its modules into an nn.Sequential"),
    (lambda: nn.ModuleDict(3), "modules must be a dictionary .* got int"),
    (lambda: nn.ModuleDict(nn.Tanh()), "modules must be a dictionary"),
    (lambda: nn.Linear(2, 2).astype(int), "dtype must be floating point, .* got int64"),
    (lambda: nn.ReLU(True), r"expected no arguments, got True. Write ReLU\(\)"),
    (lambda: nn.BCELoss("mean"), "weight must be numbers, got 'mean'. Other arguments need"),
    (lambda: nn.Sequential("ab"), "entry 0 must be an nn.Module, got str$"),
    (lambda: nn.Sequential([nn.Tanh()], [nn.Tanh()]), r"got list. Write \* before the list"),
    (lambda: nn.Sequential().extend(3), "extend needs a list of modules, got int$"),
    (
        lambda: nn.Sequential().append([nn.Tanh()]),
        "append takes one module, got a list. Use extend",
    ),
    (lambda: nn.Sequential(nn.Tanh(), nn.Tanh()).__setitem__(slice(1), nn.Tanh()), "at a time"),
    (lambda: nn.ModuleList({"a": nn.Tanh()}), r"got dict. Write nn.ModuleList\(d.values\(\)\)"),
    (lambda: nn.ModuleList(nn.Tanh), "got the class Tanh"),
    (lambda: nn.ModuleDict(nn.Tanh()), r"pairs \(name, module\), got Tanh"),
    (lambda: nn.Linear(2, 2).astype(None), "dtype must be floating point, .* got None"),
    (lambda: GROUPED(x(2, 3, 8), cache=[]), "got list. Pass the cache of this layer alone"),
    (lambda: GROUPED(x(2, 3, 8), cache=nn.CrossAttentionCache()), "must be an nn.KeyValueCache"),
    (lambda: nn.GroupedQueryAttention(8, 2, rotary=3), r"got 3. Write nn.RotaryEmbedding\(4\)"),
    (
        lambda: ENCODER.layers[0](x(2, 3, 8), cache=nn.CrossAttentionCache()),
        "TransformerEncoderLayer: cache must be an nn.KeyValueCache or None",
    ),
    (
        lambda: DECODER.layers[0](x(2, 3, 8), x(2, 3, 8), cache=(nn.CrossAttentionCache(), 3)),
        r"must be a pair .* got \(CrossAttentionCache, int\)",
    ),
]


@pytest.mark.parametrize(("call", "message"), WRONG_KINDS)
def test_a_wrong_kind_of_argument_is_explained(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_a_missing_module_of_a_dictionary_is_named():
    with pytest.raises(KeyError, match="there is no module 'b', only a"):
        nn.ModuleDict({"a": nn.Tanh()})["b"]


def test_a_class_in_place_of_an_activation_is_explained():
    with pytest.raises(ValueError, match=r"activation is the class Tanh. Write Tanh\(\)"):
        nn.TransformerEncoderLayer(8, 2, activation=nn.Tanh)


def test_a_summary_with_keyword_arguments_has_shapes():
    assert "(3, 2)" in repr(nn.Linear(4, 2).summary(x=x(3, 4)))


@pytest.mark.parametrize("kind", ["multihead", "grouped"])
def test_a_call_that_is_refused_leaves_the_cache_as_it_was(kind):
    if kind == "multihead":
        layer = nn.SelfAttention(8, 2, rng=0).eval()
        call = lambda x, mask: nn.MultiheadAttention.forward(
            layer, x, x, x, mask=mask, need_weights=False, cache=cache
        )
    else:
        layer = nn.GroupedQueryAttention(8, 2, 1, rng=0)
        call = lambda x, mask: layer(x, mask=mask, cache=cache)
    cache, x = nn.KeyValueCache(), np.ones((1, 2, 8), np.float32)
    with ta.no_grad():
        call(x, None)
        with pytest.raises(ValueError, match="mask"):
            call(x, np.ones((2, 3), bool))
        for kind in (float, int):
            with pytest.raises(TypeError, match="mask must be bool"):
                call(x, np.ones((2, 4), kind))
        assert list(cache.lengths) == [2]
        call(x, np.ones((2, 4), bool))
    assert list(cache.lengths) == [4]


def test_a_row_that_a_cache_or_a_list_lacks_is_named():
    cache = nn.KeyValueCache()
    cache.append(x(2, 1, 3, 4), x(2, 1, 3, 4))
    with pytest.raises(IndexError, match=r"KeyValueCache: .* from 0 to 1, got \[0, 5\]"):
        cache.rows([0, 5])
    with pytest.raises(IndexError, match=r"index must be a list of rows, got 1. Write \[1\]"):
        cache.rows(1)
    with pytest.raises(IndexError, match="Sequential: expected -1 <= i < 1, got i=1"):
        nn.Sequential(nn.Tanh())[1] = nn.Tanh()
    with pytest.raises(IndexError, match="ModuleList: there are no modules, got i=0"):
        nn.ModuleList()[0]
    with pytest.raises(KeyError, match="no module 'a', because the dictionary is empty"):
        nn.ModuleDict()["a"]


def test_a_cache_of_a_memory_is_not_for_another_batch():
    layer, cache = nn.MultiheadAttention(8, 2), nn.CrossAttentionCache()
    with ta.no_grad():
        layer(x(2, 1, 8), x(2, 4, 8), x(2, 4, 8), cache=cache)
        with pytest.raises(ValueError, match="the cache holds B=2 sequences, but q has B=3"):
            layer(x(3, 1, 8), x(3, 4, 8), x(3, 4, 8), cache=cache)
        with pytest.raises(
            ValueError, match=r"is \(2, 4\) in the cache, but \(4, 2\) in this layer"
        ):
            nn.MultiheadAttention(8, 4)(x(2, 1, 8), x(2, 4, 8), x(2, 4, 8), cache=cache)
        with pytest.raises(ValueError, match="the same number T of tokens, .* use an nn.CrossAtt"):
            layer(x(2, 1, 8), x(2, 4, 8), x(2, 4, 8), cache=nn.KeyValueCache())


@pytest.mark.parametrize("values", [["a", "b"], [1j, 2], [None, 1]])
def test_values_of_a_state_that_are_no_real_numbers_are_refused(values):
    layer = nn.Linear(1, 2, rng=0)
    before = layer.state_dict()
    with pytest.raises(KeyError, match="values: bias must consist of real numbers, got"):
        layer.load_state_dict(before | {"weight": np.zeros((2, 1)), "bias": values})
    assert (layer.weight.data == before["weight"]).all()


def test_a_batch_that_is_refused_does_not_count():
    norm = nn.BatchNorm1d(3, momentum=None)
    with pytest.raises(ValueError, match="more than one value"):
        norm(x(1, 3))
    assert norm.num_batches_tracked.item() == 0
    norm = nn.BatchNorm1d(3, track_running_stats=False).eval()
    with pytest.raises(
        ValueError, match=r"of a batch need .* eval\(\) on .* track_running_stats=T"
    ):
        norm(x(1, 3))


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (dict(mask=np.ones((3, 3))), TypeError, r"mask must be bool .* \(mask != 0\), or pass"),
        (dict(bias=np.ones((3, 3), bool)), TypeError, "bias must be .* pass it as mask="),
        (dict(bias=np.ones((3, 3), int)), TypeError, r"bias must be .* int64. .*\.astype\(np.flo"),
        (dict(impl="x"), ValueError, "impl must be one of auto, sums, numpy, kernel"),
    ],
)
def test_attention_names_its_class(options, error, message, need_weights):
    layer, tokens = nn.MultiheadAttention(8, 2), x(2, 3, 8)
    with pytest.raises(error, match=f"MultiheadAttention: {message}"):
        layer(tokens, tokens, tokens, need_weights=need_weights, **options)


def test_an_unknown_impl_is_named_with_dropout_too():
    layer = nn.MultiheadAttention(8, 2, dropout=0.5)
    with pytest.raises(ValueError, match="impl must be one of .* got impl='x'"):
        layer(x(2, 3, 8), x(2, 3, 8), x(2, 3, 8), impl="x")


def test_the_init_that_is_no_init():
    with pytest.raises(TypeError, match="Did you mean __init__\\?$"):
        type("Net", (nn.Module,), {"__int__": lambda self: None})


@pytest.mark.parametrize("make", [nn.RNN, nn.GRU, nn.LSTM])
def test_loops_of_a_recurrent_layer_have_only_a_first_derivative(make):
    layer = make(2, 3, impl="sums")
    y, _ = layer(ta.tensor(np.ones((1, 4, 2), np.float32), requires_grad=True))
    with pytest.raises(NotImplementedError, match='only a first derivative.* Use impl="numpy"'):
        y.sum().backward(create_graph=True)


@pytest.mark.parametrize("name", ["constant", "zeros", "normal", "kaiming_normal"])
def test_initial_values_have_the_names_of_pytorch_with_an_underscore(name):
    with pytest.raises(AttributeError, match=f"no attribute '{name}': use nn.init.{name}_$"):
        getattr(nn.init, name)
