"""Recurrent layers: against PyTorch, with lengths, in pieces, and what they refuse."""

import itertools

import numpy as np
import pytest

import tinyattn as ta
from tests.parity import same, torch
from tinyattn import Tensor, nn, optim
from tinyattn.ops.recurrent import gru_step

RNG = np.random.default_rng(0)
LAYERS = ("RNN", "GRU", "LSTM")
LENGTHS = np.array([3, 7, 1, 5])


def run_ours(layer, x, state, lengths=None):
    """(outputs, leaves with gradients) after a backward pass with a fixed gradient."""
    x = Tensor(x, requires_grad=True)
    state = [Tensor(s, requires_grad=True) for s in state]
    y, last = layer(x, tuple(state) if len(state) > 1 else state[0], lengths)
    outputs = [y, *(last if isinstance(last, tuple) else [last])]
    rng = np.random.default_rng(1)
    sum((o * rng.normal(size=o.shape)).sum() for o in outputs).backward()
    gradients = {"x": x.grad} | {f"state {i}": s.grad for i, s in enumerate(state)}
    return [o.data for o in outputs], gradients | {n: p.grad for n, p in layer.named_parameters()}


def run_theirs(layer, x, state, lengths=None):
    x = torch.tensor(x, requires_grad=True)
    state = [torch.tensor(s, requires_grad=True) for s in state]
    given, T = x, x.shape[1]
    if lengths is not None:
        given = torch.nn.utils.rnn.pack_padded_sequence(
            x, torch.tensor(lengths), batch_first=True, enforce_sorted=False
        )
    y, last = layer(given, tuple(state) if len(state) > 1 else state[0])
    if lengths is not None:
        y, _ = torch.nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=T)
    outputs = [y, *(last if isinstance(last, tuple) else [last])]
    rng = np.random.default_rng(1)
    sum((o * torch.tensor(rng.normal(size=o.shape))).sum() for o in outputs).backward()
    gradients = {"x": x.grad} | {f"state {i}": s.grad for i, s in enumerate(state)}
    gradients |= {n: p.grad for n, p in layer.named_parameters()}
    return [o.detach().numpy() for o in outputs], {n: g.numpy() for n, g in gradients.items()}


def compare(name, impl, lengths, D=3, H=4, B=4, T=7, **options):
    theirs = getattr(torch.nn, name)(D, H, batch_first=True, **options).double()
    ours = getattr(nn, name)(D, H, impl=impl, **options).astype(np.float64)
    ours.load_state_dict(theirs.state_dict())
    assert [*ours.state_dict()] == [*theirs.state_dict()]
    x = RNG.normal(size=(B, T, D))
    shape = (ours.num_layers * (1 + ours.bidirectional), B, H)
    state = RNG.normal(size=(ours.cell.states, *shape))
    (found, gradients), (expected, their) = (
        run(layer, x, state, lengths) for run, layer in ((run_ours, ours), (run_theirs, theirs))
    )
    for what, a, b in zip(("y", "h", "c"), found, expected, strict=False):
        same(a, b, what)
    assert gradients.keys() == their.keys()
    for what, g in their.items():
        same(gradients[what], g, f"gradient of {what}")


# ---------------------------------------------------------------- PyTorch


@pytest.mark.parametrize("impl", ["numpy", "kernel"])
@pytest.mark.parametrize("name", LAYERS)
def test_like_pytorch(name, impl):
    """Outputs, states and all gradients, over layers × directions × bias × lengths."""
    for layers, both, bias, ends in itertools.product(
        (1, 2), (False, True), (True, False), (None, LENGTHS)
    ):
        compare(name, impl, ends, num_layers=layers, bidirectional=both, bias=bias)


@pytest.mark.parametrize("name", LAYERS)
def test_sums_like_pytorch(name):
    compare(name, "sums", None)
    compare(name, "sums", LENGTHS, num_layers=2, bidirectional=True)


@pytest.mark.parametrize("impl", ["sums", "numpy", "kernel"])
def test_relu_like_pytorch(impl):
    compare("RNN", impl, LENGTHS, nonlinearity="relu", bidirectional=True)


@pytest.mark.parametrize("name", LAYERS)
def test_many_units_like_pytorch(name):
    """More than one tile of the kernel, and more sequences than go through together."""
    compare(name, "kernel", None, D=19, H=70, B=37, T=11)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", [*LAYERS, "relu"])
def test_cells_like_pytorch(name, bias):
    options = {"nonlinearity": "relu"} if name == "relu" else {}
    name = "RNN" if name == "relu" else name
    theirs = getattr(torch.nn, f"{name}Cell")(3, 4, bias, **options).double()
    ours = getattr(nn, f"{name}Cell")(3, 4, bias, **options).astype(np.float64)
    ours.load_state_dict(theirs.state_dict())
    arrays = [RNG.normal(size=(5, n)) for n in (3, 4, 4)[: 2 + (name == "LSTM")]]
    x = [Tensor(a, requires_grad=True) for a in arrays]
    t = [torch.tensor(a, requires_grad=True) for a in arrays]
    found = ours(x[0], tuple(x[1:])) if name == "LSTM" else ours(*x)
    expected = theirs(t[0], tuple(t[1:])) if name == "LSTM" else theirs(*t)
    if name == "LSTM":
        found, expected = found[0] * 2 + found[1], expected[0] * 2 + expected[1]
    same(found.data, expected.detach().numpy(), "result")
    g = RNG.normal(size=found.shape)
    found.backward(g)
    expected.backward(torch.tensor(g))
    for a, b in zip(x, t, strict=True):
        same(a.grad, b.grad.numpy(), "gradient of an input")
    for n, p in theirs.named_parameters():
        same(dict(ours.named_parameters())[n].grad, p.grad.numpy(), f"gradient of {n}")
    same(np.asarray(_first(ours(arrays[0])).data), _first(theirs(t[0])).detach().numpy(), "zeros")


def _first(state):
    return state[0] if isinstance(state, tuple) else state


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
def test_the_batch_comes_first_always(name):
    """PyTorch's default is the other order: the same call would give another result."""
    layer, rest = getattr(nn, name), ("tanh",) if name == "RNN" else ()
    for x in (layer(3, 4, batch_first=True), layer(3, 4, 1, *rest, True, True, 0.0, True)):
        assert x(np.zeros((2, 5, 3), np.float32))[0].shape[:2] == (2, 5)
    for wrong in (False, None, 0):
        with pytest.raises(ValueError, match=f"{name}: batch_first"):
            layer(3, 4, batch_first=wrong)
    with pytest.raises(ValueError, match="batch_first=False"):
        layer(3, 4, 1, *rest, True, False)


def test_weights_start_as_in_pytorch():
    weights = np.concatenate([p.data.ravel() for p in nn.LSTM(8, 64, rng=0).parameters()])
    assert weights.dtype == np.float32
    assert np.abs(weights).max() <= 1 / 8
    assert abs(weights.std() - 1 / 8 / np.sqrt(3)) < 1e-3


def test_dropout_between_layers_only():
    x = RNG.normal(size=(3, 5, 4)).astype(np.float32)
    one = nn.GRU(4, 6, dropout=0.5, rng=0)
    np.testing.assert_array_equal(one(x)[0].data, one.eval()(x)[0].data)
    two = nn.GRU(4, 6, 2, dropout=0.5, rng=0)
    assert np.abs(two(x)[0].data - two(x)[0].data).max() > 0.01  # drawn anew each time
    two.eval()
    np.testing.assert_array_equal(two(x)[0].data, two(x)[0].data)
    gone = nn.GRU(4, 6, 2, dropout=1.0, rng=0)  # the second layer sees nothing but zeros
    np.testing.assert_array_equal(gone(x)[0].data, gone(2 * x)[0].data)


# ---------------------------------------------------------------- cells and sequences


@pytest.mark.parametrize("name", LAYERS)
def test_a_sequence_is_its_cell_step_by_step(name):
    layer, cell = getattr(nn, name)(3, 4, rng=0), getattr(nn, f"{name}Cell")(3, 4)
    cell.load_state_dict({n.removesuffix("_l0"): a for n, a in layer.state_dict().items()})
    x, state = RNG.normal(size=(2, 6, 3)).astype(np.float32), None
    y, last = layer(x)
    for t in range(6):
        state = cell(x[:, t], state)
        np.testing.assert_allclose(_first(state).data, y.data[:, t], atol=1e-6)
    np.testing.assert_allclose(_first(last).data[0], y.data[:, -1])


def test_the_order_of_gates_and_what_they_do():
    """One unit by hand: an LSTM that forgets half and takes in tanh(1)."""
    cell = nn.LSTMCell(1, 1).astype(np.float64)
    cell.load_state_dict(
        {
            "weight_ih": [[0.0]] * 4,
            "weight_hh": [[0.0]] * 4,
            "bias_ih": [50.0, 0.0, 1.0, 50.0],
            "bias_hh": [0.0] * 4,
        }
    )
    h, c = cell(np.zeros((1, 1)), (np.zeros((1, 1)), np.full((1, 1), 4.0)))
    np.testing.assert_allclose(c.data, 4 / 2 + np.tanh(1))
    np.testing.assert_allclose(h.data, np.tanh(c.data))


def test_step_functions_are_the_slides():
    """The GRU of slide H20 with z replaced by 1 - z, and with the reset gate left open."""
    rng = np.random.default_rng(3)
    W, U = rng.normal(size=(9, 2)), rng.normal(size=(9, 3))
    x, h = rng.normal(size=(1, 2)), rng.normal(size=(1, 3))
    p, q = (Tensor(a) for a in (x @ W.T, h @ U.T))
    p.data[:, :3] = 40  # r = 1
    (found,) = gru_step(p, q, (Tensor(h),))
    z = 1 - 1 / (1 + np.exp(-(p.data + q.data)[:, 3:6]))
    new = np.tanh((p.data + q.data)[:, 6:])
    np.testing.assert_allclose(found.data, (1 - z) * h + z * new)


# ---------------------------------------------------------------- lengths


@pytest.mark.parametrize("impl", ["sums", "numpy", "kernel"])
@pytest.mark.parametrize("name", LAYERS)
def test_padding_changes_nothing(name, impl):
    """Each sequence alone and cut to its length: the same outputs, states and gradients."""
    layer = getattr(nn, name)(3, 5, 2, bidirectional=True, impl=impl, rng=0).astype(np.float64)
    lengths = np.array([4, 0, 9, 1])
    x = RNG.normal(size=(4, 9, 3))
    x[np.arange(9) >= lengths[:, None]] = np.nan  # what stands behind the end must not count
    state = RNG.normal(size=(layer.cell.states, 4, 4, 5))
    found, gradients = run_ours(layer, x, state, lengths)
    assert not np.any(found[0][np.arange(9) >= lengths[:, None]])
    y, last = layer(x, _as_state(state), lengths)
    g = RNG.normal(size=y.shape)
    layer.zero_grad()
    y.backward(g)
    padded = {n: p.grad for n, p in layer.named_parameters()}
    layer.zero_grad()
    for b, n in enumerate(lengths):
        alone, end = layer(x[b : b + 1, :n], _as_state(state[:, :, b : b + 1]))
        np.testing.assert_allclose(alone.data[0], y.data[b, :n], rtol=0, atol=1e-12)
        for s, e in zip(_tuple(last), _tuple(end), strict=True):
            np.testing.assert_allclose(e.data[:, 0], s.data[:, b], rtol=0, atol=1e-12)
        if n:
            alone.backward(g[b : b + 1, :n])
    for name, p in layer.named_parameters():
        np.testing.assert_allclose(p.grad, padded[name], rtol=0, atol=1e-12)
    assert all(np.isfinite(g).all() for g in gradients.values())


def _as_state(arrays):
    return tuple(arrays) if len(arrays) > 1 else arrays[0]


def _tuple(state):
    return state if isinstance(state, tuple) else (state,)


def test_full_lengths_are_no_lengths():
    layer, x = nn.GRU(3, 4, bidirectional=True, rng=0), RNG.normal(size=(2, 5, 3))
    for a, b in zip(layer(x), layer(x, lengths=[5, 5]), strict=True):
        np.testing.assert_array_equal(a.data, b.data)


# ---------------------------------------------------------------- truncated backpropagation


@pytest.mark.parametrize("name", LAYERS)
def test_detach_cuts_the_past_off(name):
    """Piece by piece: the values of the whole sequence, but no gradient before the cut."""
    layer = getattr(nn, name)(3, 4, rng=0).astype(np.float64)
    x = Tensor(RNG.normal(size=(2, 8, 3)), requires_grad=True)
    whole, _ = layer(x)
    first, state = layer(x[:, :4])
    second, _ = layer(x[:, 4:], nn.detach(state))
    np.testing.assert_allclose(np.concatenate([first, second], 1).data, whole.data, atol=1e-14)
    second.sum().backward()
    assert not np.any(x.grad[:, :4])
    assert np.all(np.abs(x.grad[:, 4:]).sum(axis=-1) > 0)
    assert nn.detach(None) is None


def test_truncation_keeps_memory_and_graph_small():
    """The graph behind each piece ends at the cut, however long the sequence was before."""
    layer, state, sizes = nn.RNN(2, 3, impl="numpy", rng=0), None, []
    for _ in range(4):
        y, state = layer(RNG.normal(size=(1, 5, 2)).astype(np.float32), nn.detach(state))
        sizes.append(len(ta.engine.autograd.topological_order(y.sum())[0]))
        y.sum().backward()
    assert len(set(sizes)) == 1


# ---------------------------------------------------------------- learning


def test_an_lstm_learns_to_remember():
    """The first of eight bits, after seven others."""
    rng = np.random.default_rng(0)
    model = nn.LSTM(1, 12, rng=1)
    head = nn.Linear(12, 1, rng=2)
    optimizer = optim.Adam([*model.parameters(), *head.parameters()], 0.02)
    for _ in range(150):
        bits = rng.integers(0, 2, (64, 8, 1)).astype(np.float32)
        _, (h, _) = model(bits * 2 - 1)
        loss = ta.functional.binary_cross_entropy_with_logits(head(h[0]), bits[:, 0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.05
