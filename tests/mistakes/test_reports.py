"""Public bug reports of other libraries, tried here: a right number, or an error that helps.

Each case is a situation that users of autograd, PyTorch, PyTorch Geometric, JAX, tinygrad or numba
reported, with the project in brackets. A program sets `y`, which must be as `right` says, or it
raises an error that says `right`. What of these reports was right from the start is tried in the
tests of each operation.
"""

# ruff: noqa: E501 - a table: one report on a line

import re
import warnings

import numpy as np
import pytest

from tests.mistakes.test_mistakes import what_is_there

SLOPE = (
    "v = ta.tensor({at}, dtype=np.float64, requires_grad=True); np.sum({f}).backward(); y = v.grad"
)
HIDDEN = "np.where(v == v.data[0], 1.0, {f})"  # a branch that is not taken where f is infinite


def slope(f, at):
    return SLOPE.format(f=f, at=at)


REPORTS = [
    ("gradient of det at a singular matrix (pytorch)", slope("np.linalg.det(v)", "[[1, 2], [2, 4.0]]"), [[4, -2], [-2, 1]]),
    ("layer norm of float16 (tensorflow)", "y = F.layer_norm(np.float16([3e4, -3e4, 1e4]), 3)", [1.069, -1.336, 0.2673]),
    ("rms norm of float16 (pytorch)", "y = F.rms_norm(np.float16([3e4, -3e4, 1e4]), 3)", [1.192, -1.192, 0.397]),
    ("clipping a gradient of 1e30 (pytorch)", "p[0].grad = np.full((4, 3), 1e30, np.float32); optim.clip_grad_norm(p[:1], 1); y = p[0].grad[0, 0] * 12**0.5", 1.0),
    ("a second schedule (pytorch)", "o = optim.SGD(p, lr=0.1); optim.WarmupLR(o, 100); optim.CosineLR(o, 9); y = o.lr", 0.1),
    ("strict=False (pytorch)", "model.load_state_dict({}, strict=False)", "state_dict() | part"),
    ("sum of small integers (PyG)", "y = graph.segment_sum(np.uint8([200, 100]), np.array([0, 0]), 1)", [300]),
    ("minimum of small integers (PyG)", "y = graph.segment_min(np.uint8([0, 200]), np.array([0, 0]), 1)", [0]),
    ("minimum of signed integers (PyG)", "y = graph.segment_min(np.int8([-128, 5]), np.array([0, 0]), 1)", [-128]),
    ("a batch whose last graph is empty (PyG)", "y = graph.batch([g, g, graph.Graph([], [], 0)]).num_graphs", 3),
    ("softmax of hidden edges (torch_scatter)", "y = graph.segment_softmax(np.array([-np.inf, -np.inf, 1.0]), np.array([0, 0, 1]), 2)", [0, 0, 1]),
    ("optimizer of another model (tabnet)", "training.fit(model, None, optim.SGD([w]), a)", "none of the model's parameters"),
    ("np.random.seed (jax)", "y = float('np.random' in ta.seed.__doc__)", 1),
    ("Git LFS pointer (transformers)", "path.write_text('version https://git-lfs.github.com/spec/v1'); ta.load(path)", "git lfs pull"),
    ("gradcheck of steep functions (pytorch)", "y = [float(bool(check.gradcheck(f, np.array([v])))) for f, v in ((np.log, 1e-3), (lambda x: 1 / x, 1e-4), (np.sqrt, 1e-4))]", [1, 1, 1]),
    ("full_like of a Tensor (autograd)", "y = np.full_like(x, x).requires_grad", True),
    ("np.sum with where (autograd)", "y = np.sum(x * 0 + 1, where=a > -np.inf, initial=1.0)", 7.0),
    ("np.sum with out (autograd)", "np.sum(x, out=np.zeros(()))", "a new Tensor"),
    ("a list in Sequential (torch forum)", "y = len(nn.Sequential([nn.Linear(3, 4), nn.Linear(4, 2)]))", 2),
    ("arctan2 at zero (weaver-core)", slope("np.arctan2(v[0], v[1])", "[0.0, 0.0]"), [0, 0]),
    ("sin(x) / x at 0 (jax)", slope("np.where(v == 0, 1.0, np.sin(v) / v)", "[0.0, 1.0]"), [0, np.cos(1) - np.sin(1)]),
    *[
        (f"{f} behind np.where (jax)", slope(HIDDEN.format(f=f), [at, 0.25]), right)
        for f, at, right in [
            ("v**0.5", 0.0, [0, 1.0]), ("np.cbrt(v)", 0.0, [0, 0.25 ** (-2 / 3) / 3]),
            ("np.arccos(v)", 1.0, [0, -1 / (1 - 1 / 16) ** 0.5]),
            ("np.arcsin(v)", 1.0, [0, 1 / (1 - 1 / 16) ** 0.5]),
            ("np.arctanh(v)", 1.0, [0, 1 / (1 - 1 / 16)]), ("np.log(v)", 0.0, [0, 4.0]),
            ("np.log2(v)", 0.0, [0, 4 / np.log(2)]), ("np.log1p(v)", -1.0, [0, 0.8]),
            ("1 / v", 0.0, [0, -16.0]), ("v / np.abs(v)", 0.0, [0, 0]), ("v**-1", 0.0, [0, -16.0]),
        ]
    ],
    ("edge_index of a graph (PyG)", "g.edge_index", "np.stack([g.src, g.dst])"),
    ("assigning g.x (PyG)", "g.x = a", "dataclasses.replace"),
    ("num_features (PyG)", "g.num_features", "g.x.shape[1]"),
    ("clip_grad_norm(-1) (pytorch)", "optim.clip_grad_norm(p, -1)", "0 < max_norm"),
    ("patience=0 (keras)", "training.fit(model, None, None, a, a, patience=0)", "1 <= patience"),
    ("proj_size (pytorch)", "nn.LSTM(3, 4, proj_size=2)", "nn.Linear after the layer"),
    ("texts as a list (HF tokenizers)", "data.tokenizers.Bytes().encode(['a'])", "tokenizers.padded"),
    ("ids as a list (tiktoken)", "data.tokenizers.BytePairs.train('abab', 257).encode(['a'])", "expected one text, got list"),
    *[
        (f"the name {name} (torch, PyG, sklearn)", name, "has no attribute")
        for name in (
            "nn.KLDivLoss", "F.smooth_l1_loss", "F.bce_with_logits", "optim.CosineAnnealingLR",
            "optim.LinearLR", "optim.clip_grad_value_", "graph.scatter", "graph.add_self_loops",
            "graph.to_dense_adj", "graph.MessagePassing", "graph.Data", "graph.Batch",
            "data.DataLoader", "data.train_test_split", "data.load_digits", "ta.relu", "ta.Variable",
            "ta.jvp", "ta.vjp", "ta.inference_mode", "ta.compile", "ta.backward",
        )
    ],
]  # fmt: skip


@pytest.mark.parametrize(
    ("program", "right"), [r[1:] for r in REPORTS], ids=[r[0] for r in REPORTS]
)
def test_a_report(program, right, tmp_path):
    space = what_is_there(tmp_path)
    if isinstance(right, str):
        with pytest.raises(Exception) as caught:  # noqa: PT011 - which words matter, not the kind
            exec(program, space)
        said = str(caught.value)
        assert right in said
        if right == "has no attribute":
            assert re.search(r"has no attribute '\w+': \S", said), f"no hint: {said}"
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of the branch that is not taken
        exec(program, space)
    y = space["y"]
    y = np.asarray(y.data if hasattr(y, "_version") else y, float)
    np.testing.assert_allclose(y, np.asarray(right, float), rtol=5e-3, atol=1e-12)
