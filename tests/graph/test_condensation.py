"""Object condensation against numbers worked out by hand and against plain loops."""

import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinyattn as ta
from tests.machine import fresh_python
from tinyattn import check
from tinyattn.graph import condensation, condensation_loss, condensation_terms, condense, match
from tinyattn.graph.condensation import HIGHEST


def loops(beta, x, truth, property_loss, q_min, s_B, s_C):
    """The formulas of KB02, sum by sum, for one event."""
    N, charge = len(beta), [math.atanh(b) ** 2 for b in beta]
    q = [c + q_min for c in charge]
    objects = sorted({int(k) for k in truth if k >= 0})
    alpha = {k: max((i for i in range(N) if truth[i] == k), key=lambda i: q[i]) for k in objects}
    L_V = 0.0
    for j in range(N):
        for k in objects:
            d = math.dist(x[j], x[alpha[k]])
            potential = d**2 if truth[j] == k else max(0.0, 1 - d)
            L_V += q[j] * potential * q[alpha[k]] / N
    noise = [i for i in range(N) if truth[i] < 0]
    L_beta = sum(1 - beta[alpha[k]] for k in objects) / len(objects) if objects else 0.0
    L_beta += s_B * sum(beta[i] for i in noise) / len(noise) if noise else 0.0
    hits = [i for i in range(N) if truth[i] >= 0]
    weight = sum(charge[i] for i in hits)
    L_p = sum(property_loss[i] * charge[i] for i in hits) / weight if weight else 0.0
    return L_p + s_C * (L_beta + L_V)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 25), st.integers(-1, 5), st.integers(0, 10**6))
def test_equals_the_loops(N, highest, seed):
    rng = np.random.default_rng(seed)
    beta, x = rng.uniform(0.01, 0.99, N), rng.normal(size=(N, 3))
    truth, loss = rng.integers(-1, highest + 1, N), rng.uniform(size=N)
    found = condensation_loss(beta, x, truth, loss, q_min=0.3, s_B=0.7, s_C=1.3)
    assert float(np.asarray(found)) == pytest.approx(loops(beta, x, truth, loss, 0.3, 0.7, 1.3))


def test_by_hand():
    # object 0: points at 0 and 0.5, object 1: one point at 0.25; q_min = 0 and arctanh² β = 1, 4
    one, two = math.tanh(1), math.tanh(2)
    beta, x = np.array([two, one, one]), np.array([[0.0], [0.5], [0.25]])
    t = condensation_terms(beta, x, np.array([0, 0, 1]), np.array([1.0, 2.0, 4.0]), q_min=0)
    # point 1 to point 0: d² q_α q = 0.25 · 4 · 1; the others are at their own condensation point
    assert t.attraction.item() == pytest.approx(0.25 * 4 / 3)
    # points 0, 1 from point 2 (charge 1), 0.25 away; point 2 from point 0 (charge 4)
    assert t.repulsion.item() == pytest.approx((4 * 0.75 + 1 * 0.75 + 1 * 0.75 * 4) / 3)
    assert t.condensation_points.item() == pytest.approx(((1 - two) + (1 - one)) / 2)
    assert t.noise == 0
    assert float(np.asarray(t.properties)) == pytest.approx((1 * 4 + 2 + 4) / 6)


def test_repulsion_is_linear_in_the_distance():
    beta, truth = np.array([0.5, 0.5]), np.array([0, 1])
    at = [
        condensation_terms(beta, np.array([[0.0], [d]]), truth, q_min=0).repulsion.item()
        for d in (0.0, 0.25, 0.5, 1.0, 3.0)
    ]
    np.testing.assert_allclose(np.array(at) / at[0], [1, 0.75, 0.5, 0, 0], atol=1e-12)


def test_charge_by_hand():
    # two points 0.5 apart; β = tanh 1 has arctanh² β = 1, so q = 1 + q_min; β = 0 has q = q_min
    beta, x = np.array([math.tanh(1), 0.0]), np.array([[0.0], [0.5]])
    for q_min in (0.0, 0.1, 2.0):
        t = condensation_terms(beta, x, np.array([3, 3]), q_min=q_min)
        assert t.attraction.item() == pytest.approx(0.25 * (1 + q_min) * q_min / 2)
        t = condensation_terms(beta, x, np.array([3, -1]), q_min=q_min)  # noise is pushed away
        assert t.repulsion.item() == pytest.approx(0.5 * (1 + q_min) * q_min / 2)
        assert t.attraction == 0


def test_the_weights_of_the_sum():
    beta, x, truth = (
        np.array([0.3, 0.8, 0.6]),
        np.array([[0.0], [0.4], [0.7]]),
        np.array([0, 0, -1]),
    )
    t = condensation_terms(beta, x, truth, np.array([1.0, 2.0, 9.0]))
    found = condensation_loss(beta, x, truth, np.array([1.0, 2.0, 9.0]), s_B=0.5, s_C=3.0)
    total = t.properties + 3 * (t.attraction + t.repulsion + t.condensation_points + 0.5 * t.noise)
    assert float(np.asarray(found)) == pytest.approx(float(np.asarray(total)))
    assert t.noise.item() == pytest.approx(0.6)


def test_above_the_highest_beta_the_charge_stays():
    x, truth = np.array([[0.0], [0.5]]), np.array([0, 0])
    at = [
        condensation_terms(np.array([b, 0.2]), x, truth).attraction
        for b in (HIGHEST, 1 - 1e-6, 1.0)
    ]
    assert at[0] == at[1] == at[2]


def test_noise_only():
    t = condensation_terms(np.array([0.2, 0.4]), np.zeros((2, 2)), np.array([-1, -1]), np.ones(2))
    assert t.noise.item() == pytest.approx(0.3)
    assert t.attraction == t.repulsion == t.condensation_points == t.properties == 0


def test_objects_of_one_hit_feel_no_attraction():
    rng = np.random.default_rng(0)
    t = condensation_terms(rng.uniform(0.1, 0.9, 5), rng.uniform(size=(5, 2)), np.arange(5))
    assert t.attraction == 0
    assert t.repulsion > 0


def test_one_object_is_not_repelled():
    rng = np.random.default_rng(0)
    t = condensation_terms(rng.uniform(0.1, 0.9, 5), rng.normal(size=(5, 2)), np.zeros(5, int))
    assert t.repulsion == 0
    assert t.attraction > 0


def test_a_batch_is_the_mean_of_its_events():
    rng = np.random.default_rng(1)
    beta, x = rng.uniform(0.1, 0.9, 12), rng.normal(size=(12, 2))
    truth, event = rng.integers(-1, 3, 12), np.repeat([4, 2, 7], 4)
    alone = [condensation_loss(beta[r], x[r], truth[r]) for r in (event == e for e in (2, 4, 7))]
    mixed = rng.permutation(12)
    found = condensation_loss(beta[mixed], x[mixed], truth[mixed], batch=event[mixed])
    assert float(np.asarray(found)) == pytest.approx(float(np.mean(alone)))


def test_an_event_of_noise_in_a_batch():
    rng = np.random.default_rng(2)
    beta, x, loss = rng.uniform(0.1, 0.9, 9), rng.normal(size=(9, 2)), rng.uniform(size=9)
    truth, event = np.array([0, 0, 1, -1, -1, -1, 5, 5, -1]), np.repeat([0, 1, 2], 3)
    alone = [condensation_loss(beta[r], x[r], truth[r], loss[r]) for r in np.split(np.arange(9), 3)]
    found = condensation_loss(beta, x, truth, loss, event)
    assert float(np.asarray(found)) == pytest.approx(np.mean([float(np.asarray(a)) for a in alone]))


def test_the_same_label_in_two_events_is_two_objects():
    beta, x = np.array([0.5, 0.5]), np.array([[0.0], [7.0]])
    t = condensation_terms(beta, x, np.array([4, 4]), batch=np.array([0, 1]))
    assert t.attraction == t.repulsion == 0
    assert t.condensation_points.item() == pytest.approx(0.5)


@pytest.mark.parametrize("seed", range(3))
def test_gradients_equal_those_of_pytorch(seed):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(seed)
    N, truth = 30, rng.integers(-1, 4, 30)
    values = rng.uniform(0.05, 0.95, N), 0.6 * rng.normal(size=(N, 2)), rng.uniform(size=N)
    ours = [ta.Tensor(v, requires_grad=True) for v in values]
    loss = condensation_loss(ours[0], ours[1], truth, ours[2], q_min=0.2, s_B=0.7, s_C=1.4)
    loss.backward()
    beta, x, L = theirs = [torch.tensor(v, requires_grad=True) for v in values]
    charge = torch.arctanh(beta) ** 2
    q, objects = charge + 0.2, [torch.tensor(np.flatnonzero(truth == k)) for k in range(4)]
    alpha = [rows[torch.argmax(q[rows])] for rows in objects]
    V = 0.0
    for k, a in enumerate(alpha):
        d2 = ((x - x[a]) ** 2).sum(dim=1)
        mine = torch.tensor(truth == k)
        d = torch.sqrt(torch.where(mine, 1.0, d2))  # the condensation point itself is left out
        V = V + torch.where(mine, d2, torch.clamp(1 - d, min=0)) * q[a]
    noise, hits = torch.tensor(truth < 0), torch.tensor(truth >= 0)
    expected = (L * charge)[hits].sum() / charge[hits].sum() + 1.4 * (
        (q * V).sum() / N + (1 - beta[torch.stack(alpha)]).mean() + 0.7 * beta[noise].mean()
    )
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-12)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.grad, b.grad.numpy(), atol=1e-10)


def test_beta_learns_from_the_properties_by_hand():
    """Two points of one object at one position: the one that predicts worse is weakened."""
    x, truth = np.zeros((2, 2)), np.zeros(2, int)
    beta = ta.Tensor(np.array([0.9, 0.9]), requires_grad=True)
    condensation_terms(beta, x, truth, np.array([0.1, 1.0])).properties.backward()
    w, slope = math.atanh(0.9) ** 2, 2 * math.atanh(0.9) / (1 - 0.9**2)
    push = slope * (1.0 - 0.55) / (2 * w)  # w' (L - L_p) / Σ w = 1.609
    np.testing.assert_allclose(beta.grad, [-push, push], rtol=1e-12)
    whole = [
        condensation_loss(np.array([0.9, b]), x, truth, np.array([0.1, 1.0])).item()
        for b in (0.9, 0.1)
    ]
    np.testing.assert_allclose(whole, [0.650, 0.204], atol=5e-4)
    equal = [
        condensation_loss(np.array([0.9, b]), x, truth, np.array([0.4, 0.4])).item()
        for b in (0.9, 0.1)
    ]
    assert equal[0] == pytest.approx(equal[1])  # both predict equally well: nothing to gain


def test_gradient_stays_finite_at_the_ends():
    beta = ta.Tensor(np.array([0.0, 1.0, 1.0, 0.0]), requires_grad=True)
    x = ta.Tensor(np.zeros((4, 2)), requires_grad=True)  # all at one place: d has no derivative
    condensation_loss(beta, x, np.array([0, 0, 1, -1]), np.ones(4)).backward()
    assert np.isfinite(beta.grad).all()
    assert np.isfinite(x.grad).all()


def test_all_charges_zero_has_no_property_loss():
    t = condensation_terms(np.zeros(3), np.zeros((3, 2)), np.zeros(3, int), np.ones(3))
    assert t.properties == 0


def pairs_listed(beta, x, truth, q_min=0.1):
    """The terms with each pair written out: what the blocks must give, values and gradients."""
    q = np.square(np.arctanh(beta)) + q_min
    hits = truth >= 0
    labels, of = np.unique(truth[hits], return_inverse=True)
    mine = np.zeros((len(truth), len(labels)), bool)
    mine[np.flatnonzero(hits), of] = True
    plain_q = q.data if isinstance(q, ta.Tensor) else q
    alpha = np.array([np.flatnonzero(m)[np.argmax(plain_q[m])] for m in mine.T])
    d2 = np.sum(np.square(x[:, None] - x[alpha]), axis=2)
    d = np.sqrt(np.where(mine, 1.0, d2))
    V = np.where(mine, d2, np.maximum(0, 1 - d))
    return np.sum(q[:, None] * V * q[alpha]) / len(truth)


@pytest.mark.parametrize("kept", [0, 8])
@pytest.mark.parametrize("pairs", [1, 7, 60, 10_000])
def test_blocks_of_any_size_give_the_sum_over_all_pairs(pairs, kept, monkeypatch):
    monkeypatch.setattr(condensation, "TOGETHER", pairs)
    monkeypatch.setattr(condensation, "PIECE", pairs)
    monkeypatch.setattr(condensation, "MOST_KEPT", kept)
    rng = np.random.default_rng(0)
    values, truth = (
        (rng.uniform(0.05, 0.95, 50), 0.5 * rng.normal(size=(50, 3))),
        rng.integers(-1, 6, 50),
    )
    blocks, whole = ([ta.Tensor(v, requires_grad=True) for v in values] for _ in range(2))
    t = condensation_terms(*blocks, truth)
    found, expected = t.attraction + t.repulsion, pairs_listed(*whole, truth)
    assert found.item() == pytest.approx(expected.item(), rel=1e-12)
    found.backward()
    expected.backward()
    for a, b in zip(blocks, whole, strict=True):
        np.testing.assert_allclose(a.grad, b.grad, rtol=1e-10, atol=1e-12)


def test_blocks_of_several_events_some_without_objects(monkeypatch):
    rng = np.random.default_rng(1)
    event = rng.permutation(np.repeat(np.arange(6), 8))
    truth = np.where(event % 3 == 0, -1, rng.integers(-1, 3, 48))  # events 0 and 3 are noise
    values = rng.uniform(0.05, 0.95, 48), 0.5 * rng.normal(size=(48, 2))
    grads = []
    for pairs in (1, 10_000):
        for name in ("TOGETHER", "PIECE"):
            monkeypatch.setattr(condensation, name, pairs)
        inputs = [ta.Tensor(v, requires_grad=True) for v in values]
        condensation_loss(*inputs, truth, batch=event).backward()
        grads.append([t.grad for t in inputs])
    for a, b in zip(*grads, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    assert check.gradcheck(
        lambda b, x: condensation_loss(b, x, truth, batch=event), *values, order=2
    )


def test_memory_grows_with_hits_plus_objects():
    import tracemalloc

    def peak(N, K):
        rng = np.random.default_rng(0)
        beta = ta.Tensor(rng.uniform(0.1, 0.9, N), requires_grad=True)
        x = ta.Tensor(0.1 * rng.normal(size=(N, 2)), requires_grad=True)  # all repel each other
        tracemalloc.start()
        condensation_loss(beta, x, rng.integers(0, K, N)).backward()
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    peak(1000, 20)  # the first call loads what is compiled
    assert peak(20_000, 200) < 3 * peak(20_000, 20)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts memory as Linux does")
def test_a_training_step_of_100_000_hits_and_200_objects_takes_less_than_a_gigabyte():
    """All within reach of each other: 20 million pairs, which took 4.75 GB when they were kept."""
    (peak,) = fresh_python("""
        import numpy as np, tinyattn as ta
        from tinyattn.graph import condensation_loss
        rng = np.random.default_rng(0)
        x = ta.Tensor(0.1 * rng.normal(size=(100_000, 3)).astype(np.float32), requires_grad=True)
        beta = ta.Tensor(rng.uniform(0.1, 0.9, 100_000).astype(np.float32), requires_grad=True)
        condensation_loss(beta, x, rng.integers(-1, 200, 100_000)).backward()
        with open("/proc/self/status") as file:  # rusage would count the parent's memory, too
            print(*[line.split()[1] for line in file if line.startswith("VmHWM")])
    """)
    print(f"{int(peak) / 1e6:.2f} GB")
    assert int(peak) < 500_000  # kilobytes


# ---------------------------------------------------------------- inference


def test_condense_by_hand():
    beta = np.array([0.9, 0.2, 0.8, 0.05, 0.7, 0.95])
    x = np.array([[0.0], [0.5], [0.6], [9.0], [1.1], [5.0]])
    found, points = condense(beta, x, t_beta=0.1, t_d=0.6)
    # 5 takes itself; 0 takes 1 and 2 (at exactly t_d); 4 is left for itself; 3 is too weak
    np.testing.assert_array_equal(points, [5, 0, 4])
    np.testing.assert_array_equal(found, [1, 1, 1, -1, 2, 0])


def test_condense_keeps_events_apart():
    beta, x = np.array([0.9, 0.8, 0.7]), np.zeros((3, 2))
    found, points = condense(beta, x, batch=np.array([0, 1, 0]))
    np.testing.assert_array_equal(found, [0, 1, 0])
    np.testing.assert_array_equal(points, [0, 1])


def test_condense_of_equal_beta_takes_the_first():
    found, points = condense(np.full(3, 0.5), np.array([[0.0], [10.0], [0.1]]))
    np.testing.assert_array_equal(points, [0, 1])
    np.testing.assert_array_equal(found, [0, 1, 0])


def test_condense_nothing():
    for N in (0, 3):
        found, points = condense(np.full(N, 0.05), np.zeros((N, 2)))
        assert len(points) == 0
        np.testing.assert_array_equal(found, np.full(N, -1))


@given(st.integers(0, 30), st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_condense_properties(N, seed):
    rng = np.random.default_rng(seed)
    beta, x = rng.uniform(size=N), rng.normal(size=(N, 2))
    found, points = condense(beta, x, 0.3, 0.7)
    assert np.all(beta[points] > 0.3)
    np.testing.assert_array_equal(found[points], np.arange(len(points)))
    for i in range(N):
        if found[i] >= 0:
            assert np.linalg.norm(x[i] - x[points[found[i]]]) <= 0.7
        else:  # left over: too weak, and nobody's neighbour
            assert beta[i] <= 0.3
            assert np.all(np.linalg.norm(x[points] - x[i], axis=1) > 0.7)


# ---------------------------------------------------------------- matching


def test_match_by_hand():
    truth = np.array([5, 5, 5, 5, 8, 8, -1, -1])
    found = np.array([0, 0, 0, 1, 1, 2, 0, -1])
    m = match(found, truth)
    # 0 and 5 share 3 of 5 points; 1 and 8 share 1 of 3, 2 and 8 share 1 of 2: not above 0.5
    np.testing.assert_array_equal(m.pairs, [[0, 5]])
    np.testing.assert_allclose(m.iou, [0.6])
    assert (m.efficiency, m.purity) == (1 / 2, 1 / 3)
    m = match(found, truth, threshold=0.4)
    np.testing.assert_array_equal(m.pairs, [[0, 5], [2, 8]])
    m = match(found, truth, weights=np.array([1, 1, 1, 1, 1, 9, 0, 0]))
    np.testing.assert_array_equal(m.pairs, [[2, 8], [0, 5]])
    np.testing.assert_allclose(m.iou, [0.9, 0.75])


def test_match_without_objects():
    m = match(np.array([-1, -1]), np.array([-1, 3]))
    assert (len(m.pairs), m.efficiency) == (0, 0)
    assert math.isnan(m.purity)
    m = match(np.zeros(0, int), np.zeros(0, int))
    assert math.isnan(m.efficiency)


def test_events_that_count_from_zero_each_are_kept_apart():
    found, truth, event = np.array([[1, 1, 0, 0], [0, 0, 0, -1], [0, 0, 1, 1]]), None, [4, 4, 2]
    truth = np.array([[0, 0, 1, 1], [2, 2, 2, -1], [1, 1, 0, -1]])
    batch = np.repeat(event, 4)
    batch[4:8] = 7
    m = match(found.ravel(), truth.ravel(), batch=batch)
    # event 4: 1-0 and 0-1; event 7: 0-2; event 2: 0-1, while 1-0 is at the threshold
    assert sorted(zip(m.event.tolist(), m.pairs.tolist(), strict=True)) == [
        (2, [0, 1]),
        (4, [0, 1]),
        (4, [1, 0]),
        (7, [0, 2]),
    ]
    assert (m.efficiency, m.purity) == (4 / 5, 4 / 5)
    alone = [match(f, t) for f, t in zip(found, truth, strict=True)]
    assert sorted(m.iou) == sorted(np.concatenate([one.iou for one in alone]))
    order = np.random.default_rng(0).permutation(12)
    mixed = match(found.ravel()[order], truth.ravel()[order], batch=batch[order])
    assert (mixed.efficiency, mixed.purity) == (m.efficiency, m.purity)
    assert match(found.ravel(), truth.ravel()).efficiency == 2 / 3  # as one event they mix


def test_what_is_found_exactly():
    truth = np.array([3, 3, -1, 7, 7, 7])
    m = match(np.array([1, 1, -1, 0, 0, 0]), truth)
    assert (m.efficiency, m.purity) == (1, 1)
    np.testing.assert_array_equal(m.iou, [1, 1])


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, bool])
def test_condense_of_whole_numbers_is_that_of_floats(dtype):
    beta, x = np.array([0, 1, 1, 1], dtype), np.array([[1], [1], [0], [0]], dtype)
    found, points = condense(beta, x, t_beta=0.5, t_d=1.0)
    np.testing.assert_array_equal(found, [0, 0, 0, 0])
    np.testing.assert_array_equal(points, [1])
