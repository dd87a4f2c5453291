"""`ta.trace`: the ways to ask for one, its gradients, names and lines."""

import sys

import numpy as np
import pytest

import tinyattn as ta
import tinyattn.functional as F
from tests.trace import examples
from tinyattn import nn


def names_of(trace):
    return [n["name"] for n in trace.data["nodes"]]


def node(trace, name):
    return trace.data["nodes"][names_of(trace).index(name)]


@pytest.mark.parametrize("example", [*examples.SMALL, lambda: examples.language_model(6, 8)])
def test_all_gradients_are_those_of_backward(example):
    tape = example().tape
    leaves = [x for x in tape.gradients if x._operation is None]
    for x in leaves:
        x.grad = None
    tape.root.backward()
    assert leaves
    for x in leaves:
        assert np.array_equal(x.grad, tape.gradients[x])


def test_three_ways_to_ask():
    w, x = ta.tensor([1.0, 2.0], requires_grad=True), np.array([3.0, 4.0], np.float32)
    loss = (w * x).sum()
    after = ta.trace(loss)
    called = ta.trace(lambda w, x: (w * x).sum(), w, x)
    with ta.trace() as block:
        again = (w * x).sum()  # noqa: F841
    for t in (after, called, block):
        assert names_of(t)[:2] == ["w", "x"]
        assert node(t, "w")["grad"].tolist() == [3.0, 4.0]
    assert names_of(after)[-1] == "loss"
    assert names_of(block)[-1] == "again"
    assert node(called, "x")["grad"].tolist() == [1.0, 2.0]  # arrays of floats get one


def test_a_page_is_saved_in_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    path = examples.perceptron().save("~/trace.html")
    assert path == tmp_path / "trace.html" and path.exists()


def test_backward_and_a_step_of_training_inside_the_block():
    """The values are those of the forward pass, not those after the step."""
    model = nn.Linear(2, 1)
    optimizer = ta.optim.SGD(model.parameters(), lr=0.5)
    before = model.weight.data.copy()
    with ta.trace() as t:
        loss = (model(np.ones((1, 2), np.float32)) ** 2).sum()
        loss.backward()
        optimizer.step()
    assert not np.allclose(model.weight.data, before)
    assert np.allclose(node(t, "weight")["data"], before.ravel())
    assert np.allclose(node(t, "weight")["grad"], model.weight.grad.ravel())


def test_names_lines_and_layers():
    t = examples.perceptron()
    assert names_of(t) == [
        "x",
        "0.weight",
        "0.bias",
        "linear",
        "tanh",
        "2.weight",
        "2.bias",
        "y",
        "target",
        "(y − target)",
        "(y − target)²",
        "loss",
    ]
    assert node(t, "y")["line"][2] == "y = model(x)"
    assert node(t, "loss")["line"][2].startswith("loss = np.mean((y - target) ** 2)")
    (frame,) = t.data["groups"]
    assert frame["label"] == "Sequential"
    assert [t.data["nodes"][i]["name"] for i in frame["nodes"]] == ["linear", "tanh", "y"]


def test_a_result_without_a_name_and_layers_in_a_list():
    layers = [nn.Linear(2, 2, rng=0), nn.Linear(2, 1, rng=1)]
    t = ta.trace(lambda x: layers[1](np.tanh(layers[0](x))).sum(), np.ones((1, 2), np.float32))
    assert names_of(t)[-1] == "L"
    assert "layers[0].weight" in names_of(t) and "layers[1].bias" in names_of(t)


def test_names_in_a_language_model():
    names = names_of(examples.language_model(6, 8))
    assert "scores₁" in names and "logits" in names
    assert not [n for n in names if len(n) > 24 and "." not in n]


def test_rules_as_they_stand_in_the_source():
    t = examples.attention()
    shown = {name.split()[0]: facts for name, facts in t.data["operations"].items()}
    assert shown["matmul"]["forward"]["file"].startswith("tinyattn/ops/")
    assert "def matmul" in shown["matmul"]["forward"]["text"]
    (rule,) = [r["text"] for r in shown["mean"]["rules"] if r]
    assert rule.startswith("lambda g, y, x")
    assert "y = Σ x / n" in shown["mean"]["formula"]
    assert len({r["text"] for r in shown["divide"]["rules"]}) == 2  # two lambdas on one line


def test_an_operation_of_a_function_is_measured_after_the_fact_too():
    @ta.primitive
    def half(x):
        return x / 2

    half.defvjp(lambda g, y, x: g)  # wrong
    loss = half(ta.tensor([1.0, 2.0], requires_grad=True)).sum()
    t = ta.trace(loss)
    assert t.data["nodes"][1]["measured"]["wrong"] == 2


def test_reshapes_pass_through_and_others_do_not():
    t = examples.selection()
    through = [n["name"] for n in t.data["nodes"] if n.get("through")]
    assert through == ["reshape"]


def test_losers_and_dead_numbers_are_sources_too():
    t = examples.selection()
    best = node(t, "best")
    (rows,) = [i["rows"] for i in best["inputs"] if "node" in i]
    assert rows["n"] == 3  # of each maximum three, though only one has a slope
    bent = node(t, "bent")
    assert bent["inputs"][0]["rows"]["n"] == 1


def test_small_steps_while_it_records_only():
    x = np.random.default_rng(0).normal(size=(64, 128)).astype(np.float32)
    w = ta.tensor(x, requires_grad=True)
    kernel = F.softmax(w)._operation.name
    with ta.trace() as t:
        loss = F.softmax(w)[0, 0] * 1.0  # noqa: F841
    names = {s.operation.name for s in t.tape.steps}
    assert F.softmax(w)._operation.name == kernel
    assert len(names) > 1


def test_tracing_of_others_is_put_back():
    def theirs(*_):
        return None

    before = sys.gettrace()
    sys.settrace(theirs)
    try:
        examples.selection()
        assert sys.gettrace() is theirs
    finally:
        sys.settrace(before)


def test_an_error_in_the_block_is_its_own():
    with pytest.raises(ZeroDivisionError), ta.trace() as t:
        1 / 0  # noqa: B018
    assert "recording" in repr(t)
    assert sys.gettrace() is None or "coverage" in str(sys.gettrace())


def test_in_a_notebook_and_in_a_terminal():
    t = examples.perceptron()
    frame = t._repr_html_()
    assert frame.count("<iframe srcdoc=") == 1 and "<script>" not in frame
    assert repr(t).startswith("trace of loss = ")
    assert len(t.html()) < 60_000


def test_a_kernel_that_was_asked_for_is_traced_as_it_is():
    """Attention by the kernel is one step; it is found to be a sum over its values v."""
    q, k, v = (
        ta.tensor(np.random.default_rng(i).normal(size=(3, 2)), np.float32, requires_grad=True)
        for i in range(3)
    )
    with ta.trace() as t:
        y = F.scaled_dot_product_attention(q, k, v, causal=True, impl="kernel")
        loss = (y * y).sum()  # noqa: F841
    attended = node(t, "y")
    assert attended["terms"] == [2] and attended["measured"] is None
    weights = F.scaled_dot_product_attention(q, k, np.eye(3, dtype=np.float32), causal=True).data
    (rows,) = [i["rows"] for i in attended["inputs"] if i["k"] == 2]
    starts = rows["starts"]  # query i sees i + 1 keys
    found = np.concatenate([rows["slopes"][starts[2 * i] : starts[2 * i + 1]] for i in range(3)])
    assert np.allclose(found, weights[np.tri(3, dtype=bool)], atol=1e-6)


def classified():
    model = nn.Sequential(nn.Linear(3, 4, rng=0), nn.ReLU(), nn.Linear(4, 3, rng=1))
    x = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    return model, x, np.array([0, 2])


def test_weights_have_their_names_after_the_fact():
    """The model is found among the variables of the caller."""
    model, x, ids = classified()
    loss = F.cross_entropy(model(x), ids)
    named = [n["name"] for n in ta.trace(loss).data["nodes"] if n["kind"] == "parameter"]
    assert named == ["0.weight", "0.bias", "2.weight", "2.bias"]
    before, unused = nn.Linear(3, 3, rng=0), nn.Linear(3, 3, rng=0)  # noqa: F841
    trace = ta.trace(F.cross_entropy(model(before(x)), ids))
    named = [n["name"] for n in trace.data["nodes"] if n["kind"] == "parameter"]
    assert named[:3] == ["before.weight", "before.bias", "model.0.weight"]


def test_a_loss_is_one_box_with_its_formula():
    model, x, ids = classified()
    with ta.trace() as t:
        loss = F.cross_entropy(model(x), ids)  # noqa: F841
    closed = [g for g in t.data["groups"] if g.get("closed")]
    assert [g["label"] for g in closed] == ["cross_entropy()"]
    assert closed[0]["formula"].endswith(", -ln softmax(x)[target] for scores x.")


def test_after_the_fact_a_loss_is_one_box_too():
    """Norms, activations and attention that fall apart are boxes as well, inside of nothing."""
    model, x, ids = classified()
    x = ta.tensor(x, requires_grad=True)
    q = F.gelu(F.layer_norm(model(x), 3))
    y = F.scaled_dot_product_attention(q, q, q)
    loss = F.cross_entropy(y, ids)
    F.cross_entropy(model(x), ids)  # a call that the loss does not depend on
    data = ta.trace(loss).data
    boxes = {g["label"]: g for g in data["groups"]}
    names = ["layer_norm()", "gelu()", "scaled_dot_product_attention()", "cross_entropy()"]
    assert list(boxes) == names and all(g["closed"] for g in boxes.values())
    assert boxes["cross_entropy()"]["formula"].endswith(", -ln softmax(x)[target] for scores x.")
    assert boxes["cross_entropy()"]["nodes"][-1] == data["loss"]
    inside = [i for g in boxes.values() for i in g["nodes"]]
    assert len(inside) == len(set(inside)) < len(data["nodes"])
    first = data["nodes"][boxes["layer_norm()"]["nodes"][0]]
    assert all(data["nodes"][i["node"]]["name"] != "x" for i in first["inputs"] if "node" in i)


def test_what_a_function_defines_inside_is_not_a_box():
    model, x, ids = classified()
    with ta.trace() as t:
        loss = F.cross_entropy(model(x), ids)  # noqa: F841
    assert [g["label"] for g in t.data["groups"]] == ["Sequential", "cross_entropy()"]
