"""The checks of homework 09: message passing."""

import numpy as np

from tinyattn.course.checks.judging import (
    NO_RETURN,
    Homework,
    array_of,
    expect,
    judge,
    judge_gradients,
    slopes,
)

homework = Homework("hw09")
homework.allow(1, "tinyattn.functional.leaky_relu")
homework.build_on(3, "scores", "attention")
homework.allow(4, "tinyattn.graph.propagate", "tinyattn.graph.segment_softmax")
homework.build_on(5, "gat_on_edges")


def graph_of(case):
    """h, both matrices, a, and adj [N, N] bool with rows for receivers.

    The last node has no neighbours, and one node has an edge to itself.
    """
    N, F, C = case.size(5, 4, 7), case.size(3, 2, 4), case.size(4, 2, 5)
    h, R, S, a = case.normal(N, F), case.normal(C, F), case.normal(C, F), case.normal(C)
    if case.number == 0:
        rows = [[0, 1, 1, 0, 0], [1, 1, 0, 1, 0], [0, 1, 0, 0, 0], [1, 1, 1, 0, 0], [0] * 5]
        return h, R, S, a, np.array(rows, bool)
    adj = case.rng.random((N, N)) < 0.4
    adj[np.arange(N), (np.arange(N) + 1) % N] = True
    adj[-1] = False
    np.fill_diagonal(adj, False)
    adj[0, 0] = True
    return h, R, S, a, adj


def leaky(x, slope=0.2):
    return np.where(x > 0, x, slope * x)


def score_of(h, R, S, a, f=leaky):
    """By loops: e[i, j] = a · f(R h_i + S h_j)."""
    N = len(h)
    return np.array([[a @ f(R @ h[i] + S @ h[j]) for j in range(N)] for i in range(N)])


def weights_of(e, adj):
    p = adj * np.exp(e - e.max(axis=1, keepdims=True, where=adj > 0, initial=-1e30))
    p = np.where(adj > 0, p, 0)
    total = p.sum(axis=1, keepdims=True)
    return p / np.where(total > 0, total, 1)


def with_loops(adj):
    """Every node has one edge to itself."""
    return np.where(np.eye(len(adj)), 1, adj)


def layer_of(h, adj, R, S, a):
    """Every node also receives from itself."""
    return np.tanh(weights_of(score_of(h, R, S, a), with_loops(adj)) @ (h @ S.T))


# --- task 1

PAIRS = (
    "R h_i for all rows is h @ R.T, [N, C]. All pairs are [N, N, C]: (...)[:, None] + (...)[None]."
)


@homework.part(1, "the values z")
def values(student, case):
    h, R, S, a, _ = graph_of(case)
    z, _ = _scores(student, h, R, S, a)
    mistakes = {"with the receiver's matrix R, although z is what the sender sends": h @ R.T}
    judge(z, h @ S.T, mistakes, what="z (rows are nodes, so for all nodes it is h @ S.T)")


@homework.part(1, "the scores e")
def scores(student, case):
    h, R, S, a, _ = graph_of(case)
    _, e = _scores(student, h, R, S, a)
    plain = (h @ R.T)[:, None] + (h @ S.T)[None]
    right = score_of(h, R, S, a)
    mistakes = {
        "when the LeakyReLU is missing": plain @ a,
        "from a ReLU, without the slope of 0.2 on the negative side": np.maximum(plain, 0) @ a,
        "with a slope on the negative side that is not 0.2 but 0.01": leaky(plain, 0.01) @ a,
        "when rows and columns are swapped: R belongs to the receiver, which is the row": right.T,
        "with the LeakyReLU after the product with a, as in GAT, not before it": leaky(plain @ a),
        "with a LeakyReLU of each of the two terms: add them first, then apply the LeakyReLU": (
            leaky(h @ R.T)[:, None] + leaky(h @ S.T)[None]
        )
        @ a,
        "before the product with a: return one number for each pair": leaky(plain),
        "with S for both: the receiver has R": leaky((h @ S.T)[:, None] + (h @ S.T)[None]) @ a,
        "with R for both: the sender has S": leaky((h @ R.T)[:, None] + (h @ R.T)[None]) @ a,
        "from the product of the two terms instead of their sum": leaky(
            (h @ R.T)[:, None] * (h @ S.T)
        )
        @ a,
        "from the difference of the two terms instead of their sum": leaky(
            (h @ R.T)[:, None] - h @ S.T
        )
        @ a,
        "without the receiver": np.broadcast_to(leaky(h @ S.T) @ a, right.shape),
    }
    alone = leaky(h @ R.T + h @ S.T) @ a  # [N]
    why = "for each node paired with itself only: the receivers need a separate axis, [:, None]"
    if e is not None and np.ndim(e) and len(e) == 1:
        alone = alone[None]
    mistakes[why] = alone
    judge(e, right, mistakes, what="e")


def _scores(student, h, R, S, a):
    came = student.scores(h, R, S, a, hint=PAIRS)
    expect(isinstance(came, tuple) and len(came) == 2, "scores: return z and e: return z, e")
    return came


# --- task 2


def some_scores(case):
    *_, adj = graph_of(case)
    return case.normal(*adj.shape), adj


ROWS = "e and adj are [N, N]. A sum along a row must keep its axis (keepdims=True)."


def finite_rows(came, adj):
    """Raise Diagnosis if there is nan, and only in the rows of nodes without neighbours."""
    came = array_of(came)
    if came.shape != adj.shape:
        return
    finite, lonely = np.isfinite(came.astype(float)), ~adj.any(axis=1)
    expect(
        finite.all() or not finite[~lonely].all(),
        "attention: only the row of a node without neighbours is NaN; it should be zeros. Perhaps "
        "its largest score is -inf, and -inf - -inf is NaN, or its weights are 0 / 0",
        "NaN in the row of a node without neighbours",
    )


@homework.part(2, "weights of neighbours")
def attention(student, case):
    e, adj = some_scores(case)
    came = student.attention(e, adj, hint=ROWS)
    finite_rows(came, adj)
    p, every, zeroed = np.exp(e) * adj, np.exp(e), np.exp(e * (adj > 0))
    right = weights_of(e, adj)
    plain = (e * adj).sum(axis=1, keepdims=True)
    with np.errstate(all="ignore"):
        mistakes = {
            "with the softmax over all nodes: adj is not used": every
            / every.sum(axis=1, keepdims=True),
            "with scores of 0 outside the edges: exp(0) = 1, so these nodes still get "
            "weight": zeroed / zeroed.sum(axis=1, keepdims=True),
            "with a softmax over all nodes, and zeros afterwards: rows no longer sum to 1": p
            / every.sum(axis=1, keepdims=True),
            "with adj transposed: row i of adj marks the nodes that send to i": weights_of(
                e, adj.T
            ),
            "when the exp is missing": (e * adj)
            / np.maximum((e * adj).sum(axis=1, keepdims=True), 1e-300),
            "when the exp is missing and the sum loses its sign": (e * adj)
            / np.where(plain > 0, plain, 1),
            "when the exp is missing: scores divided by their sum": (e * adj)
            / np.where(adj.any(1), (e * adj).sum(1), 1)[:, None],
            "when a node without neighbours receives equally from all nodes: weights outside the "
            "edges must be exactly 0": np.where(adj.any(axis=1, keepdims=True), right, 1 / len(e)),
        }
    top = np.max(np.where(adj, e, -1e30), axis=1, keepdims=True)  # subtracted, or not
    for numbers, way in (
        (p, ""),
        (np.where(adj, adj * np.exp(e - top), 0), " (largest subtracted)"),
    ):
        mistakes |= {
            f"by dividing by the sum of a column: each *receiver* (row) sums to 1{way}": numbers
            / np.maximum(numbers.sum(axis=0), 1e-300),
            f"without keepdims in the sum: the sums are along the wrong axis{way}": numbers
            / np.maximum(numbers.sum(axis=1), 1e-300),
            f"by dividing by the sum of all: each row has its own{way}": numbers / numbers.sum(),
        }
    with np.errstate(all="ignore"):
        for taken in (top, e.max(axis=1, keepdims=True)):
            turned = np.where(adj, adj * np.exp(np.where(adj, e, -1e30) - taken.T), 0)
            wrong = turned / np.maximum(turned.sum(axis=1, keepdims=True), 1e-300)
            way = "" if taken is top else " (of all)"
            mistakes[f"without keepdims in the maximum: it is subtracted from the columns{way}"] = (
                wrong
            )
    judge(came, right, mistakes, what="attention")


@homework.part(2, "large scores")
def tall(student, case):
    e, adj = some_scores(case)
    for shift in (1000.0, -1000.0):
        came = array_of(student.attention(np.where(adj, e + shift, e), adj, hint=ROWS))
        finite_rows(came, adj)
        expect(
            np.isfinite(came.astype(float)),
            "attention: scores of 1000 overflow. Subtract the largest score of each row before "
            "you apply exp",
            "scores of 1000 overflow",
        )
        text = f"attention, with {shift:+.0f} added to the scores of all neighbours (is the "
        judge(came, weights_of(e, adj), what=f"{text}largest taken over the neighbours only?)")
    far = 2000.0 * np.arange(len(e))[:, None]
    came = student.attention(e + far, adj, hint=ROWS)
    what = (
        "attention, with rows that are 2000 apart (do you subtract the largest score of each "
        "row separately?)"
    )
    judge(came, weights_of(e, adj), what=what)


def attention_in_float32(its, e, adj):
    import numpy as np

    import tinyattn as ta

    return its.attention(ta.tensor(np.asarray(e, np.float32)), adj)


@homework.part(2, "a node without neighbours in float32")
def lonely(student, case):
    e, adj = some_scores(case)
    finite_rows(student.attention(e, adj, hint=ROWS), adj)
    came = student.ask(attention_in_float32, e, adj, hint=ROWS)
    expect(came is not None, "attention returned None. Is the `return` missing?", NO_RETURN)
    came = array_of(came)
    expect(
        np.isfinite(came.astype(float)),
        "attention: with scores in float32, the row of a node without neighbours is NaN. Perhaps "
        "it is 0 / 0, because numbers such as 1e-300 are 0 in float32. Divide by 1 where the sum "
        "is 0",
        "NaN in float32",
    )
    what = "attention, with scores in float32"
    judge(came, weights_of(e, adj), rtol=1e-4, atol=1e-6, what=what)


# --- task 3


@homework.part(3, "the layer")
def layer(student, case):
    h, R, S, a, adj = graph_of(case)
    came = student.gat_layer(h, adj, R, S, a, hint=PAIRS)
    hat, z = with_loops(adj), h @ S.T
    alpha = weights_of(score_of(h, R, S, a), hat)
    mistakes = {
        "when the nodes do not receive from themselves: set the diagonal of adj to True": np.tanh(
            weights_of(score_of(h, R, S, a), adj) @ z
        ),
        "when 1 is added to the diagonal: a node with an edge to itself counts once, not twice. "
        "Set the diagonal to True": np.tanh(
            weights_of(score_of(h, R, S, a), adj + np.eye(len(h))) @ z
        ),
        "when all nodes are neighbours: only the node itself is added, the diagonal": np.tanh(
            weights_of(score_of(h, R, S, a), np.ones_like(adj)) @ z
        ),
        "when 1 is added everywhere: only the node itself is added, the diagonal": np.tanh(
            weights_of(score_of(h, R, S, a), adj + 1) @ z
        ),
        "when σ = tanh is missing": alpha @ z,
        "when alpha is transposed: sum over senders j, alpha @ z": np.tanh(alpha.T @ z),
        "when σ comes before the sum instead of after it": alpha @ np.tanh(z),
        "when the weights are not used: this is the unweighted sum over the neighbours": np.tanh(
            hat @ z
        ),
        "from the receiver's values R h: sum the values z that the senders send": np.tanh(
            alpha @ (h @ R.T)
        ),
    }
    judge(came, layer_of(h, adj, R, S, a), mistakes, what="gat_layer")


def layer_keeps_adj(its, h, adj, R, S, a):
    its.gat_layer(h, adj, R, S, a)
    return its.gat_layer(h, adj, R, S, a), adj


@homework.part(3, "adj is unchanged")
def adj_stays(student, case):
    h, R, S, a, adj = graph_of(case)
    y, after = student.ask(layer_keeps_adj, h, adj, R, S, a, hint=PAIRS)
    expect(
        np.array_equal(adj, after),
        "gat_layer: your function changed adj. Make a new matrix with adj.copy() or np.where",
        "adj was changed",
    )
    judge(y, layer_of(h, adj, R, S, a), what="gat_layer, called twice")


@homework.part(3, "gradient")
def layer_gradient(student, case):
    h, R, S, a, adj = graph_of(case)
    judge_gradients(
        student, "gat_layer", layer_of, h, adj, R, S, a, of=[0, 2, 3, 4], letters="hRSa", case=case
    )


# --- task 4


def on_edges(its, h, adj, R, S, a):
    import numpy as np

    from tinyattn.graph import Graph

    dst, src = np.nonzero(adj)
    return its.gat_on_edges(h, Graph(src, dst, len(h)), R, S, a)


EDGES = "(h @ R.T)[graph.dst] has one row for each edge, as has (h @ S.T)[graph.src]."


@homework.part(4, "along the edges")
def edges(student, case):
    h, R, S, a, adj = graph_of(case)
    came = student.ask(on_edges, h, adj, R, S, a, hint=EDGES)
    hat, z, e = with_loops(adj), h @ S.T, score_of(h, R, S, a)
    alpha, p = weights_of(e, hat), hat * np.exp(e)
    mistakes = {
        "when the nodes do not receive from themselves: graph.with_self_loops()": np.tanh(
            weights_of(e, adj) @ z
        ),
        "when receiver and sender are swapped in the score: R belongs to graph.dst": np.tanh(
            weights_of(e.T, hat) @ z
        ),
        "with a softmax over the edges of one sender instead of one receiver, dst": (
            np.tanh((p / p.sum(axis=0)) @ z)
        ),
        "with one softmax over all edges instead of one for each receiver": np.tanh(
            (p / p.sum()) @ z
        ),
        "when the message is the receiver's own z instead of alpha · z_j": np.tanh(z),
        "when σ = tanh is missing": alpha @ z,
        "with the mean of the messages: the weights of a node already sum to 1, so add its "
        "messages": np.tanh(alpha @ z / hat.sum(axis=1, keepdims=True)),
        "when self-loops are added to existing ones: graph.with_self_loops() replaces "
        "them": np.tanh(weights_of(e, adj + np.eye(len(h))) @ z),
        "when messages go in the wrong direction": np.tanh(weights_of(e, hat.T) @ z),
        "when the weights are not used: this is the unweighted sum": np.tanh(hat @ z),
        "with the LeakyReLU after the product with a": np.tanh(
            weights_of(leaky(((h @ R.T)[:, None] + z[None]) @ a), hat) @ z
        ),
    }
    judge(came, np.tanh(alpha @ z), mistakes, what="gat_on_edges")


def gradients_on_edges(its, name, h, adj, weights, arriving):
    """The answer of gat_on_edges or heads, and the gradients of h and of all weights."""
    import numpy as np

    import tinyattn as ta
    from tinyattn.graph import Graph

    def leaf(values):
        return ta.tensor(np.array(values, dtype=float), requires_grad=True)

    dst, src = np.nonzero(adj)
    h, parts = leaf(h), [[leaf(one) for one in part] for part in weights]
    given = parts if name == "heads" else [part[0] for part in parts]
    y = getattr(its, name)(h, Graph(src, dst, len(h)), *given)
    if not isinstance(y, ta.Tensor) or not y.requires_grad or y.shape != np.shape(arriving):
        return y, None
    y.backward(np.asarray(arriving))
    return y, [h.grad, *[one.grad for part in parts for one in part]]


def judge_on_edges(student, case, name, H):
    """The gradients of gat_on_edges or heads, against difference quotients."""
    h, R, S, a, adj = graph_of(case)
    weights = [case.normal(H, *one.shape) for one in (R, S, a)]
    inputs = [h, *[one for part in weights for one in part]]

    def reference(h, *flat):
        return _heads(h, adj, flat[:H], flat[H : 2 * H], flat[2 * H :])

    right = reference(*inputs)
    arriving = case.normal(*right.shape)
    y, grads = student.ask(gradients_on_edges, name, h, adj, weights, arriving, hint=EDGES)
    judge(y, right, what=name)
    lost = (
        f"{name}: the gradient does not reach the inputs. Use operators and NumPy functions on "
        "the inputs themselves, not .numpy(), .data or np.asarray"
    )
    expect(grads is not None, lost, "when the gradient is lost on the way")
    letters = ["h", *[f"{letter}{n}" for letter in ("R", "S", "a") for n in range(H)]]
    for i, (letter, came) in enumerate(zip(letters, grads, strict=True)):
        expect(came is not None, f"{name}: no gradient arrives at {letter}")
        what = f"{name}, the gradient with respect to {letter}"
        judge(came, slopes(reference, inputs, i, arriving), rtol=1e-4, atol=1e-6, what=what)


@homework.part(4, "gradient")
def edges_gradient(student, case):
    judge_on_edges(student, case, "gat_on_edges", 1)


def memory_on_a_ring(its, N, R, S, a):
    import tracemalloc

    import numpy as np

    from tinyattn.course.checks.runner import kept_bytes
    from tinyattn.graph import Graph

    ring = Graph(np.arange(N), (np.arange(N) + 1) % N, N)
    h = np.cos(np.arange(3.0 * N)).reshape(N, 3)
    its.gat_on_edges(0 * h, ring, R, S, a)  # the first call loads what it needs
    kept = kept_bytes(its.gat_on_edges)
    tracemalloc.start()
    y = its.gat_on_edges(h, ring, R, S, a)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return y[:3], peak + kept


@homework.part(4, "memory", hidden=())
def memory(student, case):
    N, R, S, a = 2000, case.normal(4, 3), case.normal(4, 3), case.normal(4)
    y, peak = student.ask(memory_on_a_ring, N, R, S, a, hint=EDGES)
    h = np.cos(np.arange(3.0 * N)).reshape(N, 3)
    rows = []
    for j in range(3):  # node j receives from node j - 1 and from itself
        pair = np.stack([h[j], h[j - 1]])
        rows.append(layer_of(pair, np.array([[0, 1], [0, 0]]), R, S, a)[0])
    judge(y, np.array(rows), what=f"gat_on_edges on a ring of {N} nodes")
    expect(
        isinstance(peak, int) and peak < 4 * N * N,
        f"gat_on_edges: right, but a ring of {N} nodes took {peak / 1e6:.0f} MB: there is "
        "an array with an entry for each pair of nodes. (h @ R.T)[graph.dst] has one row per edge",
        "memory for all pairs",
    )


# --- task 5


def heads_side_by_side(its, h, adj, Rs, Ss, vectors):
    import numpy as np

    from tinyattn.graph import Graph

    dst, src = np.nonzero(adj)
    return its.heads(h, Graph(src, dst, len(h)), list(Rs), list(Ss), list(vectors))


def _heads(h, adj, Rs, Ss, vectors):
    heads = [layer_of(h, adj, *one) for one in zip(Rs, Ss, vectors, strict=True)]
    return np.concatenate(heads, axis=1)


@homework.part(5, "several heads")
def several_heads(student, case):
    h, *_, adj = graph_of(case)
    H, C, F = case.size(3, 2, 4), case.size(2, 2, 3), h.shape[1]
    Rs, Ss, vectors = case.normal(H, C, F), case.normal(H, C, F), case.normal(H, C)
    came = student.ask(heads_side_by_side, h, adj, Rs, Ss, vectors)
    each = [layer_of(h, adj, *one) for one in zip(Rs, Ss, vectors, strict=True)]
    same = [layer_of(h, adj, R, S, vectors[0]) for R, S in zip(Rs, Ss, strict=True)]
    mistakes = {
        "when the heads are averaged instead of concatenated": np.mean(each, axis=0),
        "when the heads are added up instead of concatenated": np.sum(each, axis=0),
        "when the heads are concatenated along the nodes: the features are axis=1": (
            np.concatenate(each)
        ),
        "with a new axis for the heads: np.concatenate joins them along an existing axis": np.stack(
            each
        ),
        "when the result has only the first head": each[0],
        "when all heads use the first a": np.concatenate(same, axis=1),
        "when all heads use the first R": _heads(h, adj, [Rs[0]] * H, Ss, vectors),
        "when all heads use the first S": _heads(h, adj, Rs, [Ss[0]] * H, vectors),
        "with R and S swapped": _heads(h, adj, Ss, Rs, vectors),
        "with the features of the heads interleaved: all features of one head come "
        "before those of the next": np.stack(each, axis=-1).reshape(len(h), -1),
    }
    judge(came, np.concatenate(each, axis=1), mistakes, what="heads")


@homework.part(5, "gradient")
def heads_gradient(student, case):
    judge_on_edges(student, case, "heads", 2)
