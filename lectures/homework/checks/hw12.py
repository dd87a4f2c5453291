"""The checks of homework 12: object condensation."""

import numpy as np

from tinyattn.course.checks.judging import (
    Homework,
    array_of,
    expect,
    judge,
    judge_gradients,
    number_of,
)

homework = Homework("hw12")
HIGHEST = 1 - 1e-4
homework.build_on(3, "charge", "attraction", "repulsion")
homework.build_on(4, "potential_loss")
homework.build_on(6, "charge", "potential_loss")


def event(case, N=40):
    """β [N], x [N, 2], truth [N] (-1: noise) and property errors [N] of a made-up event."""
    N = case.size(N, 20, 50)
    truth = case.rng.integers(-1, 3, N)
    truth[:6] = [-1, -1, 0, 1, 2, 2]
    return case.rng.uniform(0.05, 0.95, N), 0.7 * case.normal(N, 2), truth, case.rng.uniform(size=N)


def charges(beta, q_min=0.1):
    return np.arctanh(np.minimum(beta, HIGHEST)) ** 2 + q_min


# --- task 1


def some_beta(case):
    beta = np.array([0.0, 0.5, 0.9]) if case.number == 0 else case.rng.uniform(0.05, 0.95, 7)
    return beta, 0.1 + 0.2 * case.number


@homework.part(1, "the charge")
def charge(student, case):
    beta, q_min = some_beta(case)
    right, t = charges(beta, q_min), np.arctanh(beta)
    mistakes = {
        "from arctanh without the square": t + q_min,
        "from the tangent, arctan: the formula has arctanh": np.arctan(beta) ** 2 + q_min,
        "from tanh: the formula has its inverse, arctanh": np.tanh(beta) ** 2 + q_min,
        "from arctanh² β without q_min: a point with β = 0 would have no charge": right - q_min,
        "with q_min inside the square": (t + q_min) ** 2,
        "when β is squared, not the arctanh": np.arctanh(beta**2) + q_min,
        "with a product with q_min: add q_min instead": t**2 * q_min,
        "from the larger of arctanh² β and q_min: add the two instead": np.maximum(t**2, q_min),
    }
    judge(student.charge(beta, q_min), right, mistakes, what="charge")
    mistakes = {"with 0.1 instead of the argument q_min": charges(beta)}
    judge(student.charge(beta, 0.7), charges(beta, 0.7), mistakes, what="charge with q_min = 0.7")


@homework.part(1, "β = 1")
def pole(student, case):
    beta, q_min = np.array([1.0, 1 - 1e-7, 0.3]), 0.1
    if case.number:
        beta, q_min = np.append(beta, case.rng.uniform(0.05, 0.95, 3)), case.rng.uniform(0.1, 1)
    came = array_of(student.charge(beta, q_min))
    expect(
        np.isfinite(came.astype(float)),
        "charge: β = 1 gives infinity. Limit β to at most HIGHEST first",
        "infinity at β = 1",
    )
    judge(came, charges(beta, q_min), what="charge for β = 1")


@homework.part(1, "gradient")
def charge_gradient(student, case):
    beta, q_min = some_beta(case)
    judge_gradients(student, "charge", charges, beta, q_min, of=[0], letters=["β"], case=case)
    pole, both = np.array([1.0, 0.5]), np.ones(2)
    _, (at_the_pole,) = student.gradients("charge", pole, q_min, of=[0], arriving=both)
    expect(
        np.isfinite(array_of(at_the_pole).astype(float)),
        "charge: the gradient at β = 1 is not finite: 0 · inf is nan. Limit β itself before the "
        "arctanh, not the result afterwards",
        "no finite gradient at β = 1",
    )


# --- task 2


def around(case):
    """A centre, a charge, and points at different distances from it, inside 1 and beyond."""
    c, q = np.array([1.0, -1.0]) + case.number, 3.0 + case.number
    x = c + np.array([[0.3, 0.4], [0.0, 0.9], [3.0, 4.0]])  # at distance 0.5, 0.9, 5
    if case.number:
        x = c + case.normal(case.size(5, 4, 8), 2)
    return x, c, q, np.sqrt(np.square(x - c).sum(axis=1))


POINTS = "x is [N, C] and c [C]: x - c is [N, C], and the distance of each point a sum over axis 1."


@homework.part(2, "attraction")
def attraction(student, case):
    x, c, q, d = around(case)
    mistakes = {
        "from the distance itself: square it": d * q,
        "without q: the charge q is missing": d**2,
        "from one sum over all points: return one number for each point": np.sum(d**2) * q,
        "with q squared": d**2 * q**2,
        "from the mean over the coordinates: d² is their sum": d**2 * q / x.shape[1],
        "from the sum of absolute differences: each is squared first": (
            np.abs(x - c).sum(axis=1) * q
        ),
        "from the square of a sum: each difference is squared first, then they are summed": (
            (x - c).sum(axis=1) ** 2 * q
        ),
    }
    judge(student.attraction(x, c, q, hint=POINTS), d**2 * q, mistakes, what="attraction")
    reference = lambda x, c, q: np.square(x - c).sum(axis=1) * q
    judge_gradients(student, "attraction", reference, x, c, q, letters="xcq", case=case)


@homework.part(2, "repulsion")
def repulsion(student, case):
    x, c, q, d = around(case)
    mistakes = {
        "without the maximum: beyond 1 the potential is 0, not negative": (1 - d) * q,
        "from the squared distance: the cone is linear": np.maximum(0, 1 - d**2) * q,
        "from (1 - distance)²: the cone is linear": np.maximum(0, 1 - d) ** 2 * q,
        "without the charge q": np.maximum(0, 1 - d),
        "from the distance itself: the potential should decrease with the distance": d * q,
        "from distance - 1: the potential should decrease with the distance": np.maximum(0, d - 1)
        * q,
        "from q - distance: multiply 1 - distance by q": np.maximum(0, q - d),
    }
    came = student.repulsion(x, c, q, hint=POINTS)
    judge(came, np.maximum(0, 1 - d) * q, mistakes, what="repulsion")


@homework.part(2, "the forces")
def forces(student, case):
    x, c, q, _ = around(case)
    x = np.concatenate([x, c[None]])
    _, (by_x, by_q) = student.gradients("repulsion", x, c, q, of=[0, 2], arriving=np.ones(len(x)))
    expect(
        by_x is not None,
        "repulsion: the gradient does not reach x. Use NumPy functions on x itself",
        "when the gradient is lost on the way",
    )
    expect(
        np.isfinite(array_of(by_x).astype(float)),
        "repulsion: the gradient is not finite for a point exactly at c. The square root has no "
        "derivative at 0, and 0 · inf is nan. Replace the 0 *before* the root, and the result "
        "after it",
        "no finite gradient at distance 0",
    )
    d = np.sqrt(np.square(x - c).sum(axis=1, keepdims=True))
    inside = (d > 0) & (d < 1)
    right = np.where(inside, -q * (x - c) / np.where(d > 0, d, 1), 0)
    slips = {"with the opposite sign": -right, "without the charge q": right / q}
    judge(by_x, right, slips, what="repulsion, the gradient with respect to x")
    expect(by_q is not None, "repulsion: no gradient arrives at the charge q")
    judge(
        by_q,
        np.maximum(0, 1 - d).sum(),
        what="repulsion, the gradient with respect to q",
        rtol=1e-5,
    )


# --- task 3


def potentials(
    beta,
    x,
    truth,
    q_min=0.1,
    *,
    represent=None,
    own=True,
    noise=True,
    charged=True,
    divide=None,
    fixed=None,
    centres=None,
    turned=False,
    which=slice(None),
):
    """L_V by itself, and with a usual slip in it.

    `fixed` are charges that β does not move, `centres` points [N, C] that x does not move.
    """
    q, total = charges(beta, q_min), 0.0
    q_j, q_k = ((fixed or {}).get(which, q) for which in ("each", "representative"))
    objects = np.unique(truth[truth >= 0])
    centres = x if centres is None else centres
    for k in objects[which]:
        mine = truth == k
        alpha = represent(k) if represent else np.flatnonzero(mine)[np.argmax(q[mine])]
        d = np.sqrt(np.square(x - centres[alpha]).sum(axis=1))
        mine = mine ^ turned
        pushed = np.where(mine & own | ((truth < 0) & (not noise)), 0, np.maximum(0, 1 - d))
        V = q_k[alpha] * (np.where(mine, d**2, 0) + pushed)
        total += np.sum((q_j if charged else 1) * V)
    by = {
        "sum": 1,
        "hits": np.sum(truth >= 0),
        "objects": len(truth) * max(len(objects), 1),
        "K": max(len(objects), 1),
    }
    return total / by.get(divide, len(truth))


def wrong_potentials(beta, x, truth, q_min):
    def loss(**slip):
        return potentials(beta, x, truth, q_min, **slip)

    q = charges(beta, q_min)
    return {
        "without dividing by N": loss(divide="sum"),
        "by dividing by the points of objects only: N counts the noise too": loss(divide="hits"),
        "from a mean over the objects instead of a sum": loss(divide="objects"),
        "without q_j: the force on each point is proportional to its own charge": loss(
            charged=False
        ),
        "when noise is not repelled: M is 0 for noise, so all objects repel it": loss(noise=False),
        "from the point with the lowest charge of each object: take the highest, with argmax": loss(
            represent=lambda k: np.flatnonzero(truth == k)[np.argmin(q[truth == k])]
        ),
        "by dividing by K, the number of objects: L_V divides by N, all points": loss(divide="K"),
        "from objects that repel their own points too: 1 - M is 0 there": loss(own=False),
        "from argmax among the points of the object, used as a row of the event": loss(
            represent=lambda k: np.argmax(q[truth == k])
        ),
        "from one condensation point for all objects: take the maximum within each object": loss(
            represent=lambda k: np.argmax(q)
        ),
        "from the first point of each object: its strongest is the condensation point": loss(
            represent=lambda k: np.flatnonzero(truth == k)[0]
        ),
        "when noise is treated as an object: points with truth < 0 do not form one": potentials(
            beta, x, np.where(truth < 0, 99, truth), q_min
        ),
        "with the mean position of an object as c: its condensation point is c": _to_the_mean(
            beta, x, truth, q_min
        ),
        "from the last object only: add the sums of all objects": loss(which=slice(-1, None)),
        "without the first object, perhaps because you skip the first value of truth: an "
        "event may have no noise, so choose by truth >= 0": (loss(which=slice(1, None))),
        "with the two potentials swapped: an object attracts its own points": loss(turned=True),
        "without q_min: pass it to charge": potentials(beta, x, truth, 0.0),
        "with q_min = 0.1 in all cases: pass q_min to charge": potentials(beta, x, truth, 0.1),
    }


def _to_the_mean(beta, x, truth, q_min):
    q, total = charges(beta, q_min), 0.0
    for k in np.unique(truth[truth >= 0]):
        mine = truth == k
        d = np.sqrt(np.square(x - x[mine].mean(axis=0)).sum(axis=1))
        total += np.sum(q * q[mine].max() * np.where(mine, d**2, np.maximum(0, 1 - d)))
    return total / len(truth)


LOSS_HINT = "beta and truth are [N], x is [N, C], x[alpha] is [C] and q[alpha] is one number."


@homework.part(3, "the sum of all forces")
def potential_loss(student, case):
    beta, x, truth, _ = event(case)
    for q_min in (0.1, 0.4 + case.number):
        came = number_of(student.potential_loss(beta, x, truth, q_min, hint=LOSS_HINT))
        mistakes = wrong_potentials(beta, x, truth, q_min)
        judge(came, potentials(beta, x, truth, q_min), mistakes, what=f"L_V with q_min = {q_min}")


@homework.part(3, "objects with other names")
def other_names(student, case):
    beta, x, truth, _ = event(case)
    truth = np.where(truth == 1, 17, truth)
    came = number_of(student.potential_loss(beta, x, truth, 0.1, hint=LOSS_HINT))
    judge(came, potentials(beta, x, truth), wrong_potentials(beta, x, truth, 0.1))
    clean = np.where(truth < 0, 0, truth)
    came = number_of(student.potential_loss(beta, x, clean, 0.1, hint=LOSS_HINT))
    slips = wrong_potentials(beta, x, clean, 0.1)
    judge(came, potentials(beta, x, clean), slips, what="an event without noise")
    few = np.full(5, -1)
    alone = number_of(student.potential_loss(beta[:5], x[:5], few, 0.1, hint=LOSS_HINT))
    judge(alone, 0.0, what="an event of noise only")


@homework.part(3, "gradient with respect to x")
def gradient_by_x(student, case):
    beta, x, truth, _ = event(case, 20)
    slips = {
        "when the condensation points x_αk are plain numbers: they need a gradient, too": (
            lambda *inputs: potentials(*inputs, centres=x)
        )
    }
    judge_gradients(
        student,
        "potential_loss",
        potentials,
        beta,
        x,
        truth,
        0.1,
        of=[1],
        letters="x",
        case=case,
        slips=slips,
    )


@homework.part(3, "gradient with respect to β")
def gradient_by_beta(student, case):
    beta, x, truth, _ = event(case, 20)
    q = charges(beta)

    def with_fixed(*which):
        return lambda *inputs: potentials(*inputs, fixed=dict.fromkeys(which, q))

    slips = {
        "when the charges of the condensation points are plain numbers: they need a gradient, "
        "too": (with_fixed("representative")),
        "when the charges q_j of the points are plain numbers: they need a gradient, too": (
            with_fixed("each")
        ),
    }
    judge_gradients(
        student,
        "potential_loss",
        potentials,
        beta,
        x,
        truth,
        0.1,
        of=[0],
        letters="β",
        case=case,
        slips=slips,
    )


# --- task 4


def counted_factors(its, beta, x, truth, L, which, power, centre):
    import numpy as np

    def counted(beta, x, truth, L):
        return {
            "sum": (beta**power).sum(),
            "mean": (beta**power).mean(),
            "noise": float((truth < 0).sum()),
            "far": np.abs(x - centre).sum(),
            "losses": (L**power).sum(),
        }

    return its.factors(counted, beta, x, truth, L, which)


NAMES = {"sum", "mean", "noise", "far", "losses"}


@homework.part(4, "the test")
def factors(student, case):
    given = event(case)
    beta, x, truth, L = given
    everyone = np.ones(len(beta), bool)
    # the terms of a hidden case are those of no formula that could be known
    power, centre = case.rng.uniform([0.5, -1], [2, 1]).tolist() if case.number else (1.0, 0.0)
    hint = "terms takes four arrays. Append the rows `which` to each of them."
    found = _factors_of(student.ask(counted_factors, *given, everyone, power, centre, hint=hint))
    short = [n for n in ("far", "losses", "noise", "sum") if np.isclose(found[n], 1)]
    expect(
        not short,
        f"factors: with all points twice, the sum {short[:1]} did not grow. Are all four arrays "
        "longer, and is `terms` called with the longer arrays?",
        "not all four arrays get longer",
    )
    expect(
        not np.isclose(found["sum"], 0.5),
        "factors: return after / before, not before / after",
        "before / after",
    )
    expect(
        np.isclose(found["sum"], 2) and np.isclose(found["mean"], 1),
        "factors, with all points twice: a sum has the factor 2 and a mean has the factor 1, "
        f"but yours are {found['sum']:.2f} and {found['mean']:.2f}. (A factor 3 means two copies "
        "were added.)",
        "not each point twice",
    )
    found = _factors_of(student.ask(counted_factors, *given, truth < 0, power, centre, hint=hint))
    beta, x, L = beta**power, x - centre, L**power
    right = {
        "sum": 1 + beta[truth < 0].sum() / beta.sum(),
        "mean": np.concatenate([beta, beta[truth < 0]]).mean() / beta.mean(),
        "noise": 2.0,
        "far": 1 + np.abs(x[truth < 0]).sum() / np.abs(x).sum(),
        "losses": 1 + L[truth < 0].sum() / L.sum(),
    }
    for name, value in right.items():
        expect(
            np.isclose(found[name], value),
            f"factors, with only the noise twice: '{name}' should have the factor {value:.3f}, "
            f"yours is {found[name]:.3f}. Is `which` used?",
            "which is not used",
        )


def _factors_of(found):
    expect(
        isinstance(found, dict) and set(found) == NAMES,
        "factors: expected a dictionary with the same names as that of `terms`",
    )
    return {name: float(number_of(value, f"factors, {name}")) for name, value in found.items()}


TERMS = ("potentials", "objects", "noise", "properties")
HINTS = {
    "potentials": "L_V is a mean over the N points of the event",
    "objects": "this term was correct: 1/K Σ (1 - β of the condensation point)",
    "noise": "the mean β of the noise points: N_B counts the noise only",
    "properties": "the weights in the denominator are those in the numerator, and both are "
    "without noise",
}


def four_terms(beta, x, truth, L, colleague=False):
    """The terms as the lecture has them, or as the colleague divided them."""
    noise, objects = truth < 0, np.unique(truth[truth >= 0])
    w, N, K = charges(beta, 0.0), len(truth), max(len(objects), 1)
    V, beta_noise, Lw = potentials(beta, x, truth), beta[noise].sum(), (L * w)[~noise].sum()
    return {
        "potentials": V * N / K if colleague else V,
        "objects": sum(1 - beta[truth == k].max() for k in objects) / K,
        "noise": beta_noise / (N if colleague else max(noise.sum(), 1)),
        "properties": Lw / max((w if colleague else w[~noise]).sum(), 1e-12),
    }


@homework.part(4, "the repaired terms")
def repaired(student, case):
    given = event(case)
    found, right, old = _terms(student, given), four_terms(*given), four_terms(*given, True)
    for name in TERMS:
        same = np.isclose(found[name], old[name]) and not np.isclose(old[name], right[name])
        expect(
            not same,
            f"repaired: '{name}' still has the colleague's denominator. {HINTS[name]}",
            f"{name} is divided as the colleague did",
        )
        expect(
            np.isclose(found[name], right[name]),
            f"repaired: '{name}': expected {right[name]:.4f}, yours is {found[name]:.4f}: "
            f"{HINTS[name]}",
            f"{name} is divided by the wrong number",
        )


@homework.part(4, "nothing is divided by 0")
def nothing_to_divide(student, case):
    beta, x, _, L = (a[:4] for a in event(case))
    for what, truth in (("noise only", np.full(4, -1)), ("no noise", np.array([0, 0, 1, 1]))):
        found, right = _terms(student, (beta, x, truth, L)), four_terms(beta, x, truth, L)
        bad = [name for name in TERMS if not np.isfinite(found[name])]
        expect(
            not bad,
            f"repaired: an event of {what}: {bad} is not finite. 0 / 0 should give 0 here",
            "0 / 0 in an event without noise, or of noise only",
        )
        for name in TERMS:
            judge(found[name], right[name], what=f"repaired, an event of {what}, {name}")


def _terms(student, given):
    found = student.repaired(*given, hint="Each of the four terms is one number.")
    expect(
        isinstance(found, dict) and set(found) == set(TERMS),
        "repaired: expected a dictionary with potentials, objects, noise and properties",
    )
    return {name: float(number_of(value, f"repaired, {name}")) for name, value in found.items()}


# --- task 5


def collected(
    beta, x, t_beta, t_d, *, order=None, again=False, over=False, strong=False, near=None
):
    """Objects found in order of β, and with a usual slip in it."""
    found, number = np.full(len(beta), -1), 0
    order = np.argsort(-beta, kind="stable") if order is None else order
    for i in order:
        if beta[i] > t_beta and (found[i] < 0 or again):
            d2 = np.square(x - x[i]).sum(axis=1)
            mine = (d2 <= t_d**2) if near is None else near(d2)
            mine &= (found < 0) | over
            if strong:
                mine &= beta > t_beta
            found[mine] = number
            number += 1
    return found


def wrong_collections(beta, x, t_beta, t_d):
    def slip(**options):
        return collected(beta, x, t_beta, t_d, **options)

    right = slip()
    return {
        "when the point with the lowest β comes first: go from the highest β down": slip(
            order=np.argsort(beta, kind="stable")
        ),
        "in the order of the points: go from the highest β down": slip(order=range(len(beta))),
        "when a claimed point starts an object: only unclaimed points may start one": slip(
            again=True
        ),
        "when claimed points start objects and claim points: only unclaimed points may "
        "start an object or be claimed": slip(again=True, over=True),
        "when an object claims points of another object: only unclaimed points may be "
        "claimed": slip(over=True),
        "when only points above t_β can be claimed: points below t_β can be claimed, too": slip(
            strong=True
        ),
        "when the squared distance is compared with t_d": slip(near=lambda d2: d2 <= t_d),
        "with t_d = 0.7 in all cases: use the argument t_d": collected(beta, x, t_beta, 0.7),
        "with t_β = 0.1 in all cases: use the argument t_beta": collected(beta, x, 0.1, t_d),
        "from the first object only: continue with the points that are not claimed yet": np.where(
            right == 0, 0, -1
        ),
        "when the objects are numbered from 1: the first object is 0": np.where(
            right >= 0, right + 1, -1
        ),
        "with 0 for points that no object claims: these points get -1": np.where(
            right >= 0, right + 1, 0
        ),
        "when each point gets the index of the point that claims it: number the objects 0, 1, "
        "2, … instead": (_claiming_points(beta, right)),
    }


def _claiming_points(beta, found):
    first = [
        np.flatnonzero(found == k)[np.argmax(beta[found == k])] for k in range(found.max() + 1)
    ]
    return np.where(found >= 0, np.array([*first, -1])[found], -1)


def cloud(case):
    """β and x of points between which distances of 0.3 to 0.9 are frequent."""
    N = case.size(30, 20, 40)
    beta = case.rng.uniform(0.01, 0.99, N) ** 2
    return beta, 0.6 * case.normal(N, 2)


COLLECT = "found is [N] int, one number for each point."


@homework.part(5, "the objects found")
def collect(student, case):
    beta, x = cloud(case)
    for t_beta, t_d in ((0.1, 0.7), (0.3, 0.45)):
        right = collected(beta, x, t_beta, t_d)
        came = student.collect(beta, x, t_beta, t_d, hint=COLLECT)
        slips = wrong_collections(beta, x, t_beta, t_d)
        judge(came, right, slips, what=f"collect with t_β = {t_beta}, t_d = {t_d}")


@homework.part(5, "nothing to collect")
def nothing(student, case):
    beta, x = cloud(case)
    none = np.full(len(beta), -1)
    came = student.collect(0.05 * beta, x, 0.1, 0.7, hint=COLLECT)
    judge(came, none, what="collect where no β is above t_β")
    apart = 10.0 * np.arange(len(beta))[:, None] * np.ones(2)
    right = collected(beta, apart, 0.1, 0.7)
    judge(
        student.collect(beta, apart, 0.1, 0.7, hint=COLLECT),
        right,
        wrong_collections(beta, apart, 0.1, 0.7),
        what="collect where all points are far apart",
    )


# --- task 6


def whole(beta, x, truth, L, *, weights=None, s_beta=1, s_noise=1, s_V=1, s_p=1, squared=True):
    """Return the whole loss of one event, or with a frequent slip. `weights` are those in L_p."""
    noise = truth < 0
    w = np.arctanh(np.minimum(beta, HIGHEST))
    w = (w**2 if squared else w) if weights is None else weights
    strongest = [beta[truth == k].max() for k in np.unique(truth[~noise])]
    L_p = np.sum((L * w)[~noise]) / np.sum(w[~noise])
    L_beta = s_beta * np.mean([1 - b for b in strongest]) + s_noise * np.mean(beta[noise])
    return s_p * L_p + s_V * potentials(beta, x, truth) + L_beta


WHOLE_HINT = "beta, truth and L are [N], x is [N, C], and the loss is one number."


@homework.part(6, "the whole loss")
def whole_loss(student, case):
    given = event(case)
    beta, _, truth, _ = given
    noise, w = truth < 0, charges(beta, 0.0)
    slips = {
        "without L_V": whole(*given, s_V=0),
        "without the term of the condensation points, 1 - β": whole(*given, s_beta=0),
        "without the noise term": whole(*given, s_noise=0),
        "without L_p": whole(*given, s_p=0),
        "with q_min in the weights of L_p: the weights are arctanh² β only": whole(
            *given, weights=w + 0.1
        ),
        "with arctanh β as the weights of L_p: the weights are arctanh² β": whole(
            *given, squared=False
        ),
        "with an unweighted mean as L_p: weight it with arctanh² β": whole(
            *given, weights=np.ones(len(w))
        ),
        "with the noise in the denominator of L_p: its weights are (1 - n) arctanh² β": (
            whole(*given, s_p=w[~noise].sum() / w.sum())
        ),
        "with the mean of 1 - β over all points of objects: only the condensation points": (
            whole(*given, s_beta=0) + np.mean(1 - beta[~noise])
        ),
        "with β instead of 1 - β for the condensation points": (
            whole(*given, s_beta=0) + 1 - (whole(*given) - whole(*given, s_beta=0))
        ),
    }
    came = number_of(student.whole_loss(*given, hint=WHOLE_HINT))
    judge(came, whole(*given), slips, what="the whole loss")


@homework.part(6, "gradient with respect to β")
def whole_by_beta(student, case):
    beta, x, truth, L = event(case, 20)
    fixed = charges(beta, 0.0)
    slips = {
        "when the weights of L_p are plain numbers: β also needs a gradient from the properties": (
            lambda *inputs: whole(*inputs, weights=fixed)
        ),
        "when β gets no gradient from L_V": (
            lambda *inputs: whole(*inputs, s_V=0) + potentials(beta, inputs[1], truth)
        ),
    }
    judge_gradients(
        student, "whole_loss", whole, beta, x, truth, L, of=[0], letters="β", case=case, slips=slips
    )


@homework.part(6, "gradients with respect to x and L")
def whole_by_others(student, case):
    beta, x, truth, L = event(case, 20)
    judge_gradients(
        student, "whole_loss", whole, beta, x, truth, L, of=[1, 3], letters="xL", case=case
    )
