"""Intervals, p-values and bounds of other numbers in worlds of known truth, as rows of one table.

Each end of an interval is a bound at half of its error; a p-value is a bound of 0 that is 1 where
it refutes.
"""

import math
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from estimators.epsilon.test_lattice import drawn as drawn_numbers
from estimators.epsilon.test_lattice import off_the_grid
from estimators.epsilon.test_rare import ASYMMETRIC, examined
from estimators.loss.test_mean_loss import BINARY, TRUTH
from estimators.renyi.test_divergence import gaussian_scores, renyi_bounds
from estimators.worlds import (
    Bound,
    Rng,
    World,
    counted,
    guesses,
    labels,
    pair,
    people_of_homes,
    randomized_response,
)
from extras.kinds.synthetic.test_memorisation import draws
from extras.kinds.synthetic.test_synthetic_attacks import attacked
from extras.several.person import worlds as person
from scipy.special import expit
from scipy.stats import norm

from ldpaudit.attacks.scoring import CALIBRATION_ERROR, advantage_lower, gain_lower, score_fold
from ldpaudit.estimators.assumptions.agreement import sharpness_test
from ldpaudit.estimators.assumptions.neighbours import neighbour_guesses
from ldpaudit.estimators.epsilon.consistency import channel_consistency, marginal_consistency
from ldpaudit.estimators.epsilon.guesses import GuessCounts, epsilon_lower
from ldpaudit.estimators.epsilon.lattice import DIGITS, ROUNDED_NUMBERS, lattice_evidence
from ldpaudit.estimators.instance_loss import (
    ErrorBudget,
    PosteriorBox,
    exceedance,
    mean_loss,
    mean_loss_lower,
)
from ldpaudit.estimators.intervals.binomial import shift_lower, shift_upper
from ldpaudit.estimators.intervals.bounded_mean import (
    best_interval,
    mean_lower,
    mean_upper,
    paired_interval,
)
from ldpaudit.estimators.intervals.ranking import auc_interval, tpr_at_fpr
from ldpaudit.estimators.mean_loss import certified_mean_loss, claimed_mean_loss
from ldpaudit.estimators.renyi import Scores
from ldpaudit.extras.compare.differences import counted_interval
from ldpaudit.extras.kinds.noisy_features.one_run import one_run_epsilon
from ldpaudit.extras.kinds.synthetic.counts import (
    PairedSuccesses,
    count_memorisation,
    count_own_rows,
)
from ldpaudit.extras.probe.black_box.work import delta_lower
from ldpaudit.extras.several.person.estimators import sum_lower
from ldpaudit.extras.several.person.noise_tests import agreement_share, shared_noise

Interval = Callable[[float], tuple[float, float]]
"""From the error of both ends to the ends."""


def tested(name: str, draw: Callable[[Rng], float]) -> World:
    def bound(rng: Rng) -> Bound:
        found = draw(rng)
        return lambda alpha: float(found <= alpha)

    return World(name, bound, 0.0)


def low_and_high(found: Any) -> tuple[float, float]:
    return found.low, found.high


def mean_ends(draw: Callable[[Rng], Any], rng: Rng) -> Interval:
    values = np.float64(draw(rng))
    return lambda error: tuple(end(values, error / 2, 0, 1) for end in (mean_lower, mean_upper))  # type: ignore[return-value]


def paired(shares: tuple[float, float], rng: Rng) -> Interval:
    folds = pair(*guesses(rng, 600, list(shares)))
    return lambda error: low_and_high(paired_interval(folds, error))


def luckiest(rng: Rng) -> Interval:
    """All attacks are equally good: choosing the luckiest is no difference."""
    ours, *theirs = guesses(rng, 300, [0.7] * 5)
    means = {str(j): float(row.mean()) for j, row in enumerate(theirs)}
    difference = partial(best_interval, lambda _, j: pair(ours, theirs[int(j)]))
    return lambda error: low_and_high(difference({"0": float(ours.mean())}, means, error))


def unpaired(rng: Rng) -> Interval:
    sides = [{"x": (int(c), 300)} for c in rng.binomial(300, [0.7, 0.6])]
    return lambda error: low_and_high(counted_interval(*sides, error))


def luckiest_unpaired(rng: Rng) -> Interval:
    counts = {str(i): (int(c), 300) for i, c in enumerate(rng.binomial(300, 0.7, 6))}
    ours = {name: counts.pop(name) for name in ("0", "1")}
    return lambda error: low_and_high(counted_interval(ours, counts, error))


def shifted(epsilon: float, rng: Rng) -> Interval:
    eta = rng.beta(2, 5, 150)
    truth = rng.random(150) < eta
    guess = np.where(rng.random(150) < expit(epsilon), truth, ~truth)
    known = np.where(guess, eta, 1 - eta), int((guess == truth).sum())
    return lambda error: (shift_lower(*known, error / 2), shift_upper(*known, error / 2))


def normals(shift: float, few: int, many: int) -> Callable[[Rng], tuple[Any, Any]]:
    return lambda rng: (rng.normal(shift, 1, few), rng.normal(0, 1, many))


def auc_ends(sides: Callable[[Rng], Any], rng: Rng) -> Interval:
    positives, negatives = (np.float64(side) for side in sides(rng))
    return lambda error: auc_interval(positives, negatives, error)


def rate_ends(sides: Callable[[Rng], Any], rng: Rng) -> Interval:
    both = sides(rng)
    return lambda error: low_and_high(tpr_at_fpr(*both, 0.01, error))


THIRDS = [0.2, 0.3, 0.5]
AUCS: dict[str, tuple[Callable[[Rng], Any], float]] = {
    "few of either": (normals(1, 30, 90), norm.cdf(1 / math.sqrt(2))),
    "chance": (normals(0, 130, 400), 0.5),
    "nearly one": (normals(4, 120, 300), 0.99766),
    "few positives": (normals(1, 22, 500), 0.76025),
    "one side says it": (lambda rng: (rng.random(110) < 0.1, rng.random(300) < 0.0), 0.55),
    "ties": (lambda r: (r.choice(3, 140, p=THIRDS), r.choice(3, 140, p=THIRDS[::-1])), 0.695),
}
"""Scores of positives and negatives, and the AUC of their laws."""
RATES: dict[str, tuple[Callable[[Rng], Any], float]] = {
    **{
        f"{n} {m}": (normals(2, n, m), norm.sf(norm.isf(0.01) - 2))
        for n, m in ((60, 400), (20, 50))
    },
    # Among negatives 2 % score 2, so the best threshold of at most 1 % names nobody.
    "ties": (lambda r: (r.choice(3, 100), r.choice(3, 2000, p=[0.7, 0.28, 0.02])), 0.0),
}
MEANS: dict[str, tuple[Callable[[Rng], Any], float]] = {
    "fair coin": (lambda rng: rng.random(200) < 0.5, 0.5),
    "rare event": (lambda rng: rng.random(200) < 0.02, 0.02),
    "skewed": (lambda rng: rng.beta(0.3, 3.0, 200), 1 / 11),
}


def exceeding(k: int) -> World:
    """J(1) of neighbourhoods that are small enough to have no bias."""
    shapes, prior = np.full(k, 0.5), np.full(k, 1 / k)
    channel = np.full((k, k), 0.1) + (1 - 0.1 * k) * np.eye(k)
    losses = mean_loss(np.random.default_rng(0).dirichlet(shapes, 200_000), prior, channel)

    def draw(rng: Rng) -> Bound:
        counts = rng.multinomial(2_000, rng.dirichlet(shapes, 400)).astype(np.int32)

        def bound(alpha: float) -> float:
            budget = ErrorBudget.of(alpha)
            sizes = np.full(400, 2_000, np.int32)
            box = PosteriorBox.from_counts(counts, sizes, budget.per_query)
            lower = mean_loss_lower(box, prior, prior, channel)
            seen = mean_loss(box.estimate, prior, channel)
            found = exceedance(seen, lower, budget, np.array([1.0]))
            assert found.low is not None
            return float(found.low[0])

        return bound

    return World(f"exceedance {k}", draw, float((losses >= 1).mean()) + 0.003, 0.5)


def mean_losses(claimed: bool, rng: Rng) -> Bound:
    data = BINARY.draw(1500, rng)
    if claimed:
        seen = data.posterior @ BINARY.channel
        return claimed_mean_loss(seen, data.released, BINARY.channel, BINARY.prior, rng=rng).at
    return certified_mean_loss(data, rng=rng).at


def hardly_varying(ties: bool, rng: Rng) -> Bound:
    """A hundred copies of each of a few rows, of a generator that saw nothing."""
    training, held_out, other = draws(rng, ties=ties)
    made = np.repeat(other[:20], 100, axis=0) + np.float32(0 if ties else 0.01)
    return count_memorisation(training, held_out, made, rng).share_lower


def randomized_membership(epsilon: float, rng: Rng) -> Bound:
    """Every record of a known pool is released or not, by randomized response on its membership.

    Exchanging two records changes two answers, so ε is twice that of one answer, and the chance of
    a decisive pair to be won is e^ε/(1 + e^ε): the case in which the bound is tight.
    """
    training, held_out, _ = draws(rng, rows=300)
    keep = expit(epsilon / 2)
    shown = rng.random(300) < keep, rng.random(300) < 1 - keep
    made = np.concatenate([training[shown[0]], held_out[shown[1]]])
    return count_memorisation(training, held_out, made, rng).epsilon_lower


def own_rows(selected: bool, rng: Rng) -> Bound:
    """Rows of their own; or values 0, 1 against 1, 2, of which those that differ are seen."""
    if not selected:
        true, made = rng.standard_normal((2, 600, 2)).astype(np.float32)
        return count_own_rows(true, made, rng).share_lower
    true, made = rng.integers(0, 2, 900), rng.choice([0, 1, 2], 900, p=[0.05, 0.55, 0.4])
    seen = true != made
    points = [part[seen, None].astype(np.float32) for part in (true, made)]
    keys = (true[seen].astype(np.uint64), made[seen].astype(np.uint64))
    return count_own_rows(*points, rng, keys).share_lower


def risk(place: int, round_to: int | None, rng: Rng) -> Bound:
    found = attacked(rng, round_to=round_to)[place]
    return lambda alpha: found.interval(2 * alpha)[0]


def risk_ends(rng: Rng) -> Interval:
    counts = rng.multinomial(300, [0.05, 0.2, 0.1, 0.65])  # both, audited, held-out, neither
    return PairedSuccesses(300, *map(int, counts[:3])).interval


def numbers_on_a_lattice(kind: str, epsilon: float, rng: Rng) -> Bound:
    found = lattice_evidence(*drawn_numbers(kind, epsilon, 1_000, rng), rng)
    assert found is not None
    return lambda alpha: found.bound(alpha).epsilon


def numbers_on_no_grid(kind: str, epsilon: float, rng: Rng) -> Bound:
    truth, released = off_the_grid(kind, epsilon, 1_000, rng)
    found = lattice_evidence(truth, np.asarray(released, dtype=np.float64), rng, (0.0, 10.0))
    assert found is not None
    return lambda alpha: found.bound(alpha).epsilon


def own_numbers(rng: Rng) -> Bound:
    """One of 100 numbers on no grid, e^ε times as often its own as each other: the worst law."""
    numbers, codes = np.sort(rng.random(100)), np.repeat(np.arange(100), 30)
    kept = rng.random(3_000) < math.exp(3) / (math.exp(3) + 99)
    others = (codes + rng.integers(1, 100, 3_000)) % 100
    found = lattice_evidence(numbers[codes], numbers[np.where(kept, codes, others)], rng)
    assert found is not None
    return lambda alpha: found.same[0].bound(alpha).epsilon


def rounded_numbers(rng: Rng) -> Bound:
    """A number's own ten comes out e^ε times as often as each other: the worst law."""
    tens, numbers = np.repeat(np.arange(10), 300), 100 * rng.random(3_000)
    numbers = numbers % 9 - 4.5 + 10 * tens
    kept = rng.random(3_000) < math.exp(3) / (math.exp(3) + 9)
    others = (tens + rng.integers(1, 10, 3_000)) % 10
    found = lattice_evidence(numbers, 10.0 * np.where(kept, tens, others), rng)
    assert found is not None
    assert found.same[-1].method == ROUNDED_NUMBERS
    return lambda alpha: found.same[-1].bound(alpha).epsilon


def numbers_by_digits(epsilon: float, rng: Rng) -> Bound:
    """All released numbers have the digits of noise that hardly moves them, if ε allows it."""
    n = 3_000
    truth = rng.integers(0, 10, n)
    chance = math.exp(epsilon) / (math.exp(epsilon) + 9)
    said = np.where(rng.random(n) < chance, truth, (truth + rng.integers(1, 10, n)) % 10)
    found = lattice_evidence(truth.astype(float), said + 0.05, rng)
    assert found is not None
    assert found.same[-1].method == DIGITS
    return lambda alpha: found.bound(alpha).epsilon


def a_common_number(rng: Rng) -> Bound:
    """Half of the rows have one number, which comes out e^ε times as often of them."""
    truth = np.where(rng.random(2_000) < 0.5, 0.0, rng.random(2_000))
    often = np.where(truth == 0, 0.05 * math.e, 0.05)
    released = np.where(rng.random(2_000) < often, 0.0, rng.random(2_000) + 2)
    found = lattice_evidence(truth, released, rng)
    assert found is not None
    common = [one for one in found.same if one.having > 500][-1]
    return lambda alpha: common.bound(alpha).epsilon


def worst_guesses(delta: float, sides: int, of_delta: bool, rng: Rng) -> Bound:
    """The worst (ε, δ)-DP law of guesses: a = e^ε b + δ·sides/2."""
    often = math.e * 0.1 + delta * sides / 2
    right, wrong, _ = rng.multinomial(2_000, [often, 0.1, 0.9 - often])
    counts = GuessCounts(2_000, int(right), int(wrong), sides)
    if of_delta:
        return lambda alpha: delta_lower(counts, 1.0, alpha)
    return lambda alpha: epsilon_lower(counts, alpha, delta).epsilon


def one_run(epsilon: float, rng: Rng) -> Bound:
    right = int(rng.binomial(2_000, expit(epsilon)))
    return partial(one_run_epsilon, GuessCounts(2_000, right, 2_000 - right))


def neighbours(rng: Rng) -> Bound:
    truth, released, _ = people_of_homes(rng, 300, 2, 0.1, shared=False)
    counts = neighbour_guesses(truth, released, np.arange(0, 600, 2), np.arange(1, 600, 2), rng)
    return lambda alpha: epsilon_lower(counts, alpha).epsilon


def remembered_share(rng: Rng) -> Interval:
    made = person.drawn(rng, n=600, remembered=0.4)
    same = int((made.released[:, 0] == made.released[:, 1]).sum())
    expected = float((made.channel**2).sum(axis=1)[made.truth[:, 0]].mean())
    return lambda error: agreement_share(same, 600, expected, error)[1:]


def of_labels(rng: Rng, **order: float) -> float:
    return sharpness_test(*labels(rng, 3000, **order)).p_value


def of_counts(k: int, marginal: bool, rng: Rng) -> float:
    channel = randomized_response(k, 1.0)
    counts = counted(rng.multinomial(600, np.full(k, 1 / k)), channel, rng)
    if marginal:
        return marginal_consistency(counts.sum(axis=0), channel) or 0.0
    return channel_consistency(counts, channel, 0.05).p_value


def of_rare(sizes: list[int], channel: np.ndarray, epsilon: float, rng: Rng) -> float:
    return examined(counted(np.array(sizes), channel, rng), channel, epsilon).p_value


def of_columns(world: person.World, rng: Rng) -> float:
    truth = world.labels(600, rng)
    same = [len(c) == c.shape[1] for c in world.channels]
    return shared_noise(truth, world.release(truth, rng), same_labels=same).p_value or 0.0


def of_releases(rng: Rng, unchanged: bool = True, **options: float) -> float:
    made = person.drawn(rng, n=400, **options)  # type: ignore[arg-type]
    known: Any = {"same_labels": [True] * 2, "unchanged": unchanged}
    return shared_noise(made.truth, made.released, **known).p_value or 0.0


def as_one(world: person.World, rng: Rng) -> Bound:
    evidence = person.of_columns(world, 1_000, rng)
    return lambda alpha: evidence.as_one(alpha).epsilon


def added(world: person.World, rng: Rng) -> Bound:
    evidence = person.of_columns(world, 1_000, rng)
    return lambda alpha: evidence.bound(alpha).epsilon


def released(rng: Rng, **options: Any) -> Bound:
    evidence = person.of_releases(1_000, rng, **options)
    if options.get("remembered"):  # Noise that is not independent does not add up.
        evidence = evidence.without_sums() or evidence
    return lambda alpha: evidence.bound(alpha).epsilon


def both_at_once(rng: Rng) -> Bound:
    """Three columns over two releases at ε = 0.6 each."""
    made = [person.of_releases(300, rng, "fresh", epsilon=0.6) for _ in range(3)]
    return partial(sum_lower, [one.epsilon for one in made])


def gained(gain: float, loss: float, rng: Rng) -> Bound:
    won, lost, _ = rng.multinomial(500, [gain, loss, 1 - gain - loss])
    return partial(advantage_lower, int(won), int(lost), 500)


UNLIKE = SimpleNamespace(n=400, alike=False, class_rows=range(3))


def gained_unlike(rng: Rng) -> Bound:
    """Three outcomes with chances that differ from row to row; their means are .16 and .08."""
    gain, loss, u = (
        0.01 + 0.45 * (np.arange(400) % 3 == 0),
        np.tile([0.01, 0.15], 200),
        rng.random(400),
    )
    counts = {"gained": int((u < gain).sum()), "lost": int((u > 1 - loss).sum())}
    fold: Any = SimpleNamespace(**vars(UNLIKE), **counts)
    return partial(gain_lower, fold)


def calibration(excess: float, rng: Rng) -> Interval:
    """Guesses with confidence c that are right with chance c − excess."""
    confidence = rng.uniform(0.6, 0.95, 300)
    truth = (rng.random(300) >= confidence - excess).astype(np.int32)
    posterior = np.stack([confidence, 1 - confidence], axis=1)
    fold, error = score_fold(truth, posterior, None, rate_alpha=0.05, rng=rng), CALIBRATION_ERROR
    return lambda alpha: (error.lower(fold, alpha / 2), error.upper(fold, alpha / 2))


def divergence(order: float, slope: float, rng: Rng) -> Bound:
    return renyi_bounds(gaussian_scores(600, 0.7, rng, slope), [order], rng=rng)[0].at


def no_divergence(rng: Rng) -> Bound:
    """Guesses that have nothing to do with the rows."""
    scores = Scores(rng.standard_normal(800), rng.standard_normal(800))
    return renyi_bounds(scores, [2.0], rng=rng)[0].at


RR = randomized_response
INTERVALS = [
    World(name, draw, truth, sides=2)
    for name, draw, truth in (
        *((name, partial(mean_ends, draw), mean) for name, (draw, mean) in MEANS.items()),
        *((f"paired {s}", partial(paired, s), s[1] - s[0]) for s in ((0.7, 0.7), (0.9, 0.88))),
        ("the luckiest", luckiest, 0.0),
        ("unpaired", unpaired, -0.1),
        ("the luckiest, unpaired", luckiest_unpaired, 0.0),
        *((f"shift {e}", partial(shifted, e), e) for e in (0.0, 1.0)),
        *((f"AUC, {n}", partial(auc_ends, draw), truth) for n, (draw, truth) in AUCS.items()),
        *((f"rate, {n}", partial(rate_ends, draw), truth) for n, (draw, truth) in RATES.items()),
        ("risk of pairs", risk_ends, 0.1 / 0.85),
        ("remembered share", remembered_share, 0.4),
        *((f"calibration {e}", partial(calibration, e), e) for e in (0.0, 0.1)),
    )
]
P_VALUES = [
    *(
        tested(f"sharpness {order}", partial(of_labels, **order))
        for order in ({}, {"drift": 2.0}, {"by_truth": 0.5}, {"by_truth": 1.0})
    ),
    *(
        tested(f"consistency of {k}, {marginal}", partial(of_counts, k, marginal))
        for k in (2, 3, 8)
        for marginal in (False, True)
    ),
    *(
        tested(
            f"rare classes of {len(sizes)}, {epsilon:.1f}",
            partial(of_rare, sizes, channel, epsilon),
        )
        for sizes, channel, epsilon in (
            ([2500, 2491, 9], RR(3, 0.1), 0.1),
            ([2500, 2492, 8], RR(3, 1.0), 1.0),
            ([60, 50, *range(3, 33)], RR(32, 1.0), 1.0),
            ([900, 3, 2, 1], RR(4, 2.0), 2.0),
            ([900, 30, 20, 10], ASYMMETRIC, math.log(8)),
        )
    ),
    *(
        tested(f"columns, {w.name}", partial(of_columns, w))
        for w in (person.HONEST[1], person.MANY)
    ),
    *(
        tested(f"releases {options}", partial(of_releases, **options))
        for options in (
            {},
            {"changing": 0.4, "remembered": 1.0, "unchanged": False},
            {"changing": 0.4},
        )
    ),
]
OTHERS = [
    *(exceeding(k) for k in (2, 3)),
    World("E[ν]", partial(mean_losses, False), TRUTH, 0.6),
    World("E[ν] under the claim", partial(mean_losses, True), TRUTH, 0.4),
    *(World(f"memorisation {ties}", partial(hardly_varying, ties), 0.5) for ties in (False, True)),
    *(
        World(f"membership {e}", partial(randomized_membership, e), e, least)
        for e, least in ((0.5, 0.1), (1.5, 0.5))
    ),
    *(World(f"own rows {seen}", partial(own_rows, seen), 0.5) for seen in (False, True)),
    *(
        World(f"risk {place} {digits}", partial(risk, place, digits), 0.0)
        for place in (0, 1)
        for digits in (None, 2)
    ),
    *(
        World(f"{kind} {epsilon}", partial(numbers_on_a_lattice, kind, epsilon), epsilon)
        for epsilon in (1.0, 4.0)
        for kind in ("whole", "whole, clipped", "whole, by five", "real", "real, rounded")
    ),
    *(
        World(f"no grid, {kind} {epsilon}", partial(numbers_on_no_grid, kind, epsilon), epsilon)
        for epsilon in (1.0, 4.0)
        for kind in ("laplace", "zeros", "steps", "single", "clipped", "cents", "whole")
    ),
    World("rounded numbers", rounded_numbers, 3.0, 0.9),
    *(World(f"digits {e}", partial(numbers_by_digits, e), e, 0.5) for e in (1.0, 3.0)),
    World("own numbers", own_numbers, 3.0, 0.9),
    World("a common number", a_common_number, 1.0, 0.5),
    *(
        World(
            f"guesses {delta} {sides} {which}", partial(worst_guesses, delta, sides, which), *truth
        )
        for delta in (0.0, 0.02)
        for sides in (1, 2)
        for which, truth in ((False, (1.0, 0.75)), (True, (delta,)))
    ),
    *(World(f"one run {e}", partial(one_run, e), e, 0.7) for e in (0.5, 3.0)),
    World("neighbours", neighbours, 0.1),
    *(
        World(f"advantage {a} {b}", partial(gained, a, b), a - b)
        for a, b in ((0.02, 0.02), (0.3, 0.0), (0.001, 0.002))
    ),
    World("advantage", partial(gained, 0.1, 0.03), 0.07, 0.4),
    World("advantage of unlike rows", gained_unlike, 0.08, 0.1),
    *(
        World(f"D_{o}", partial(divergence, o, s), o * 0.245, least / 2)
        for o, s, least in ((1.5, 1.0, 0.4), (6.0, 1.4, 0.1))
    ),
    World("D_2 of nothing", no_divergence, 0.0),
]
PERSONS = [
    World("columns in short", partial(added, person.HONEST[0]), person.HONEST[0].epsilon, 0.6),
    *(
        World(f"as one, {w.name}", partial(as_one, w), w.epsilon, least)
        for w, least in zip(
            (person.HONEST[2], *person.JOINT, *person.SHARED),
            (0.0, 0.5, 0.2, 0.2, 0.5, 0.4),
            strict=True,
        )
    ),
    *(
        World(f"released {options}", partial(released, **options), epsilon, least)
        for options, epsilon, least in (
            ({"noise": "fresh"}, 2.0, 0.5),
            ({"noise": "fresh", "releases": 8, "epsilon": 0.5}, 4.0, 0.5),
            ({"noise": None, "releases": 3}, 3.0, 0.5),
            ({"noise": "remembered", "releases": 8, "remembered": 1.0}, 1.0, 0.5),
        )
    ),
    World("3 columns × 2 releases", both_at_once, 3.6, 0.2),
]
