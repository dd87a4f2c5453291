"""nn.MultiheadAttention, SelfAttention and CrossAttention: PyTorch's, in every implementation."""

import numpy as np
import pytest

import tinyattn as ta
from tests.functional.test_attention import IMPLS, TOLERANCE, assert_close
from tinyattn import check, nn
from tinyattn.engine.autograd import Tensor

MODULES = {
    "plain": dict(embed_dim=12, num_heads=3),
    "one head": dict(embed_dim=5, num_heads=1),
    "no bias": dict(embed_dim=8, num_heads=2, bias=False),
    "kdim, vdim": dict(embed_dim=8, num_heads=4, kdim=5, vdim=3),
    "kdim without bias": dict(embed_dim=6, num_heads=2, kdim=4, bias=False),
}


def pair(**options):
    """A module of PyTorch and ours with the same weights, both in float64."""
    torch = pytest.importorskip("torch")
    theirs = torch.nn.MultiheadAttention(**options, batch_first=True, dtype=torch.float64)
    for p in theirs.parameters():
        torch.nn.init.normal_(p, std=0.5, generator=torch.Generator().manual_seed(0))
    ours = nn.MultiheadAttention(**options).astype(np.float64)
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def mha_inputs(module, B=2, T=5, S=7):
    rng = np.random.default_rng(0)
    lead = () if B is None else (B,)
    sizes = ((T, module.embed_dim), (S, module.kdim), (S, module.vdim))
    return [rng.standard_normal((*lead, *s)) for s in sizes]


def assert_parity(ours, theirs, arrays, mask=None, torch_mask=None, **options):
    """Outputs, weights, and the gradients of inputs and parameters are those of PyTorch."""
    import torch

    average = options.get("average_attn_weights", True)
    tensors = [Tensor(x, requires_grad=True) for x in arrays]
    theirs_in = [torch.tensor(x, requires_grad=True) for x in arrays]
    out, weights = ours(*tensors, mask=mask, **options)
    expected, expected_weights = theirs(
        *theirs_in, attn_mask=torch_mask, average_attn_weights=average
    )
    (out * out + 3 * out).sum().backward()
    (expected * expected + 3 * expected).sum().backward()
    own = dict(ours.named_parameters())
    pairs = [(out.data, expected), (weights.data, expected_weights)]
    pairs += [(t.grad, x.grad) for t, x in zip(tensors, theirs_in, strict=True)]
    pairs += [(own[name].grad, p.grad) for name, p in theirs.named_parameters()]
    assert list(own) == [name for name, _ in theirs.named_parameters()]
    got, expected = zip(*[(x, y.detach().numpy()) for x, y in pairs], strict=True)
    assert_close(got, expected, 1e-12)


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("B", [2, None])
@pytest.mark.parametrize("name", MODULES)
def test_multihead_attention_is_pytorchs(name, B, average):
    ours, theirs = pair(**MODULES[name])
    assert_parity(ours, theirs, mha_inputs(ours, B), average_attn_weights=average)


@pytest.mark.parametrize("mask", ["[T, S]", "[B, T, S]", "[B, H, T, S]", "padding", "causal"])
def test_multihead_attention_masks_are_pytorchs_inverted(mask):
    torch = pytest.importorskip("torch")
    B, H, T, S = 2, 3, 5, 7
    ours, theirs = pair(embed_dim=12, num_heads=H)
    rng = np.random.default_rng(0)
    shapes = {"[T, S]": (T, S), "[B, T, S]": (B, T, S), "[B, H, T, S]": (B, H, T, S)}
    keep = rng.random(shapes.get(mask, (B, 1, S))) < 0.6
    keep[..., 0] = True  # PyTorch gives nan where nothing may be seen
    full = keep[:, None] if keep.ndim == 3 else keep
    options = {}
    if mask == "causal":
        keep, full, options = None, np.tri(T, S, dtype=bool), dict(causal=True)
    hidden = torch.tensor(~np.broadcast_to(full, (B, H, T, S)).reshape(B * H, T, S))
    assert_parity(ours, theirs, mha_inputs(ours), keep, hidden, **options)


def test_self_attention_is_pytorchs():
    """One and the same tensor as query, key and value: the projections are one product."""
    ours, theirs = pair(embed_dim=12, num_heads=3)
    import torch

    x = np.random.default_rng(0).standard_normal((2, 6, 12))
    t, z = Tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    module = nn.SelfAttention(12, 3).astype(np.float64)
    module.load_state_dict(theirs.state_dict())
    out, weights = module(t, need_weights=True)
    expected, expected_weights = theirs(z, z, z)
    (out * out).sum().backward()
    (expected * expected).sum().backward()
    got = [out.data, weights.data, t.grad, module.in_proj_weight.grad, module.in_proj_bias.grad]
    p = theirs.in_proj_weight.grad, theirs.in_proj_bias.grad
    assert_close(got, [v.detach().numpy() for v in (expected, expected_weights, z.grad, *p)], 1e-12)
    np.testing.assert_array_equal(module(t).data, out.data)
    np.testing.assert_allclose(ours(x, x, x)[0].data, out.data, rtol=1e-12)


def test_cross_attention_is_pytorchs():
    _, theirs = pair(embed_dim=8, num_heads=2, kdim=5, vdim=5)
    import torch

    x, context = (np.random.default_rng(0).standard_normal(s) for s in ((2, 4, 8), (2, 7, 5)))
    module = nn.CrossAttention(8, 2, d_context=5).astype(np.float64)
    module.load_state_dict(theirs.state_dict())
    out, weights = module(x, context, need_weights=True)
    c = torch.tensor(context)
    expected = [y.detach().numpy() for y in theirs(torch.tensor(x), c, c)]
    assert_close([out.data, weights.data], expected, 1e-12)
    assert nn.CrossAttention(8, 2)(np.ones((1, 3, 8)), np.ones((1, 2, 8))).shape == (1, 3, 8)


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
def test_module_gives_the_same_on_every_implementation(dtype):
    module = nn.MultiheadAttention(12, 3, rng=0).astype(dtype)
    q, k, v = (x.astype(dtype) for x in mha_inputs(module, 2, 5, 7))
    mask = np.random.default_rng(0).random((2, 1, 7)) < 0.7
    bias = np.random.default_rng(1).standard_normal((3, 5, 7)).astype(dtype)[None]
    results = []
    for impl in ("auto", *IMPLS):
        for need in (True, False):
            out, weights = module(q, k, v, mask, need_weights=need, bias=bias, impl=impl)
            assert (weights is not None) == need
            results.append([out.data])
    for other in results[1:]:
        assert_close(other, results[0], TOLERANCE[dtype])


def test_gradients_of_the_modules():
    x, context = (np.random.default_rng(0).standard_normal(s) for s in ((2, 3, 4), (2, 2, 3)))
    keep = np.array([[True, True, False], [False, False, False]])[:, None]
    check.gradcheck(nn.SelfAttention(4, 2, rng=0), x, keep, True, order=2).expect()
    check.gradcheck(nn.CrossAttention(4, 2, d_context=3, rng=0), x, context).expect()


def test_self_attention_does_not_know_the_order_of_its_tokens():
    module = nn.SelfAttention(8, 2, rng=0)
    check.equivariant(module, np.random.default_rng(0).standard_normal((5, 8))).expect()


def test_padding_changes_nothing():
    """A padded set gives for the real tokens what the set alone gives; one of padding b_o."""
    module = nn.SelfAttention(8, 2, rng=0)
    x = np.random.default_rng(0).standard_normal((2, 6, 8)).astype(np.float32)
    keep = np.array([[True] * 4 + [False] * 2, [False] * 6])
    out = module(x, keep[:, None, :]).data
    np.testing.assert_allclose(out[0, :4], module(x[:1, :4]).data[0], rtol=0, atol=1e-6)
    np.testing.assert_array_equal(out[1], np.broadcast_to(module.out_proj.bias.data, (6, 8)))


def test_dropout_acts_on_the_weights_in_training():
    module = nn.MultiheadAttention(8, 2, dropout=0.5, rng=0)
    x = np.random.default_rng(0).standard_normal((1, 40, 8)).astype(np.float32)
    _, weights = module(x, x, x, average_attn_weights=False)
    assert 0.4 < (weights.data == 0).mean() < 0.6  # of 3200, 0.5 ± 0.009
    with pytest.raises(ValueError, match='impl="numpy", dropout=0'):
        module(x, x, x, need_weights=False, impl="kernel")
    assert module(x, x, x, need_weights=False)[1] is None
    module.eval()
    once, twice = (module(x, x, x, need_weights=False)[0].data for _ in range(2))
    np.testing.assert_array_equal(once, twice)


def test_seed_decides_what_dropout_hides():
    module = nn.SelfAttention(8, dropout=0.5)
    x = np.ones((1, 20, 8), np.float32)
    results = []
    for seed in (1, 1, 2):
        ta.seed(seed)
        results.append(module(x).data)
    assert (results[0] == results[1]).all()
    assert (results[0] != results[2]).any()


def test_initial_values_are_pytorchs():
    torch = pytest.importorskip("torch")
    for options in (MODULES["plain"], MODULES["kdim, vdim"]):
        big = {n: 40 * v if n != "num_heads" else v for n, v in options.items()}
        ours = nn.MultiheadAttention(**big, rng=0)
        theirs = dict(torch.nn.MultiheadAttention(**big).named_parameters())
        for name, p in ours.named_parameters():
            assert p.dtype == np.float32
            z = theirs[name].detach().numpy()
            # the largest of n uniform numbers is within 10/n of the bound, but for e⁻¹⁰
            np.testing.assert_allclose(np.abs(p.data).max(), np.abs(z).max(), rtol=20 / p.size)
            np.testing.assert_allclose(p.data.std(), z.std(), rtol=5 / np.sqrt(p.size))
