"""Aggregates of labels: what the released sum of a bag reveals about each label in it."""

# The attacker knows the mechanism, and P(label | features) from other people; the posterior of
# every label given the bag's released sum is exact. Bags, not rows, are independent: models are
# fitted on one half of the bags and scored on the other, both ways, and every interval counts bags.

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np
from scipy.stats import binom

from ldpaudit.arrays import BoolArray
from ldpaudit.attacks.scoring import RowValues, between, row_measure
from ldpaudit.audits.interface import Dependence, Part
from ldpaudit.audits.scores import Scored, best_bound, score_estimate
from ldpaudit.doors import (
    AuditContext,
    BagSums,
    Curve,
    Estimate,
    FloatArray,
    InsufficientDataError,
    IntArray,
    Note,
    clopper_pearson,
)
from ldpaudit.estimators.advantage import randomized_response_advantage
from ldpaudit.estimators.departures import Order
from ldpaudit.estimators.epsilon.consistency import SMALLEST_P_VALUE
from ldpaudit.estimators.intervals.binomial import trials_lower, trials_upper
from ldpaudit.estimators.row_noise import RowNoise
from ldpaudit.estimators.whiteness import is_in_an_order, white
from ldpaudit.extras.kinds.bags.posterior import bag_posterior, log_odds_shift
from ldpaudit.models.label_model import fit_posterior
from ldpaudit.release import Bags
from ldpaudit.result import Bound, Details, Unit
from ldpaudit.result.stated import SUMS_CONSISTENCY

AUDIT_ID: Final = "aggregates"
LOWER: Final = "aggregates.epsilon_lower"
MIN_BAGS: Final = 20
TITLES: Final = {
    "prior": "Majority guess",
    "features-only": "Features only, no release",
    "bag": "The bag’s released share",
    "posterior": "Features and the bag’s released share",
}
ATTACKS: Final = ("bag", "posterior")  # What uses the release; the others are references.
_REFERENCE: Final = "Busa-Fekete et al. (2024)"
_SHIFTS: Final = tuple(float(s) for s in np.round(np.arange(0, 6.01, 0.25), 2))
_RIGHT: Final = "labels guessed right, as a share of each bag, averaged over held-out bags"
ACCURACY: Final = row_measure("accuracy", "accuracy", _RIGHT, between(0.0, 1.0))
ADVANTAGE: Final = row_measure(
    "advantage",
    "additive advantage",
    f"{_RIGHT}, less those that the features alone give",
    between(-1.0, 1.0),
)
_CHOSEN: Final = (
    "the stronger of {count} attacks, here {best}; the {end} end's error probability is divided by "
    "{possible}"
)
_LARGEST: Final = 40.0
# A sum is moved from half of a label on, which rounding changes by less than this.
_MOVED, _SLACK = 0.5, 0.1
_BAGS: Final = "bags were formed and released independently of each other"
_SAME_NOISE: Final = "each bag's sum gets independent noise from one distribution"
_ROUNDING: Final = 1e-6
# Permutations of the true labels.
_DRAWS: Final = 199
_EXPECTED: Final[dict[str, tuple[str, Unit, str]]] = {
    "expected_accuracy": (
        "Accuracy that the bags’ posterior expects",
        "proportion",
        "the larger posterior, averaged over rows",
    ),
    "additive_advantage": (
        "Additive advantage that the bags’ posterior expects",
        "proportion",
        "the larger posterior less the larger prior, averaged over rows",
    ),
    "equivalent_epsilon": (
        "Randomized response with the same additive advantage",
        "nats",
        "the ε of randomized response that has this additive advantage at the same priors",
    ),
    "expected_certain_share": (
        "The same, as expected from the features",
        "proportion",
        "∏p + ∏(1 − p), averaged over bags",
    ),
}


def aggregates_parts(context: AuditContext) -> Iterator[Part]:
    """Yield what attacks on bags find, what their posterior expects, and the noise of the sums."""
    bags, claim, rows = context.bags, context.claim.offers(BagSums), len(context.bags.members)
    assert claim is not None
    if len(bags.released) < MIN_BAGS:
        raise InsufficientDataError(
            f"Attacks on bags need at least {MIN_BAGS} bags; there are {len(bags.released)}."
        )
    context.progress.step("the posterior of every label in its bag")
    # The share of the second class that all released sums imply.
    share = float(np.clip(bags.released.sum() / rows, 0.5 / rows, 1 - 0.5 / rows))
    priors, source = np.full(rows, share), "the bags' own sums"
    if context.release.truth is not None:
        runs, priors = run_attacks(context, claim)
        source = "a model of other bags"
        yield from attack_parts(runs, context.plan.confidence)
    yield from _expectations(context, claim, priors, source)
    if claim.noise == "none":
        text = (
            "Without noise no ε holds: where all labels of a bag are the same, its sum reveals "
            "every one, and the multiplicative advantage is infinite."
        )
        yield Note.warning(AUDIT_ID, text)
    elif context.release.truth is not None:
        yield from _noise_parts(context, claim)


def run_attacks(
    context: AuditContext, claim: BagSums
) -> tuple[list[Scored[RowValues]], FloatArray]:
    """Fit and score every attack on both halves of the bags; true labels are known."""
    # Also returns P(second class | features) of every row from a model that has not seen its bag,
    # float64 of shape (n,).
    bags, release = context.bags, context.release
    half = np.zeros(len(bags.released))
    half[context.rng("aggregates", "halves").permutation(len(half))[: len(half) // 2]] = 1
    side = half[bags.members]
    shares, features = np.empty(len(release)), np.empty(len(release))
    for guessed in (0, 1):
        fitting, others = np.flatnonzero(side != guessed), np.flatnonzero(side == guessed)
        labels = context.truth[fitting]
        shares[others] = (labels.sum() + 1) / (len(labels) + 2)
        rng = context.rng("aggregates", "model", str(guessed))
        table = release.features.take(fitting)
        model = fit_posterior(table, labels, 2, rng, context.plan.threads)
        features[others] = model.predict(release.features.take(others))[:, 1]
    chances = {
        "prior": shares,
        "features-only": features,
        "bag": _posterior(shares, bags, claim),
        "posterior": _posterior(features, bags, claim),
    }
    yes, sizes = context.truth == 1, np.bincount(bags.members)
    right = {
        name: np.bincount(bags.members, weights=(chance > 0.5) == yes) / sizes
        for name, chance in chances.items()
    }
    gained = {name: values - right["features-only"] for name, values in right.items()}
    bags_of = [np.flatnonzero(half == one) for one in (0, 1)]
    runs = [
        Scored(
            name,
            title,
            tuple(
                RowValues({"accuracy": right[name][bag], "advantage": gained[name][bag]}, len(bag))
                for bag in bags_of
            ),
        )
        for name, title in TITLES.items()
    ]
    return runs, features


def _posterior(priors: FloatArray, bags: Bags, claim: BagSums) -> FloatArray:
    return bag_posterior(priors, bags.members, bags.released, claim.log_likelihood, claim.epsilon)


def attack_parts(runs: Sequence[Scored[RowValues]], confidence: float) -> Iterator[Part]:
    """Yield accuracy and advantage of the strongest attack, and of every one, certified."""
    stated = Details(assumptions=(_BAGS,), reference=_REFERENCE)
    attacks, title = [run for run in runs if run.name in ATTACKS], "Strongest attack on bags"
    asked = attacks, ADVANTAGE, confidence, len(attacks), title, _CHOSEN, AUDIT_ID
    yield best_bound(*asked, **stated)
    for run in runs:
        for measure in (ACCURACY, ADVANTAGE) if run.name in ATTACKS else (ACCURACY,):
            yield score_estimate(run, measure, confidence, AUDIT_ID, **stated)


def _expectations(
    context: AuditContext, claim: BagSums, priors: FloatArray, source: str
) -> Iterator[Part]:
    """Yield the accuracy that the exact posterior expects of itself, given P(label | features).

    ``priors``: P(second class | features) before the release, float64 of shape (n,), from
    ``source``.
    """
    bags = context.bags
    posterior, sizes = _posterior(priors, bags, claim), np.bincount(bags.members)
    expected = float(np.maximum(posterior, 1 - posterior).mean())
    gain = expected - float(np.maximum(priors, 1 - priors).mean())
    given = (
        "labels of a bag are independent given the features",
        f"P(label | features) is that of {source}",
        "the claim holds",
    )

    def estimate(name: str, value: float) -> Estimate:
        title, unit, method = _EXPECTED[name]
        return Estimate.estimated(
            f"aggregates.{name}",
            title,
            value,
            axis="epsilon" if unit == "nats" else None,
            unit=unit,
            n=len(priors),
            method=method,
            assumptions=given,
            reference=_REFERENCE,
        )

    yield estimate("expected_accuracy", expected)
    yield estimate("additive_advantage", gain)
    yield estimate("equivalent_epsilon", equivalent_epsilon(priors, gain))
    if claim.noise == "none":
        pure = int(((bags.released == 0) | (bags.released == sizes)).sum())
        low, high = clopper_pearson(pure, len(sizes), 1 - context.plan.confidence)
        yield Estimate.interval(
            "aggregates.certain_share",
            "Share of people whose label the release reveals",
            pure / len(sizes),
            (float(low), float(high)),
            context.plan.confidence,
            unit="proportion",
            n=len(sizes),
            count=pure,
            method="bags whose sum reveals every label because all are the same; the "
            "multiplicative advantage is infinite there",
            assumptions=(_BAGS,),
            reference=_REFERENCE,
        )
        logs = np.stack([np.log(np.clip(p, 1e-300, 1)) for p in (priors, 1 - priors)])
        alike = [np.exp(np.bincount(bags.members, weights=part)).mean() for part in logs]
        yield estimate("expected_certain_share", float(sum(alike)))
    shift = log_odds_shift(priors, posterior)
    yield Curve(
        id="aggregates.multiplicative",
        title="Share of people whose log-odds shift by τ or more",
        axis="share of people",
        kind="estimated",
        x=_SHIFTS,
        value=tuple(float((shift >= tau).mean()) for tau in _SHIFTS),
        x_label="τ: by how much the released sum shifts the log-odds of a label, nats",
        unit="proportion",
        n=len(shift),
        method="|logit posterior − logit prior|, the multiplicative advantage",
        assumptions=given,
        reference=_REFERENCE,
    )


def equivalent_epsilon(priors: FloatArray, advantage: float) -> float:
    """Return the ε of binary randomized response with an additive advantage, in nats.

    ``priors``, float64 (n,): P(second class) of each row. ``advantage``: the advantage averaged
    over rows; 0 gives 0, and what no ε reaches gives ∞.
    """
    from scipy.optimize import brentq

    posterior = np.column_stack([1 - priors, priors])

    def excess(epsilon: float) -> float:
        return float(randomized_response_advantage(posterior, epsilon).mean()) - advantage

    if advantage <= 0:
        return 0.0
    return math.inf if excess(_LARGEST) <= 0 else float(brentq(excess, 0.0, _LARGEST))


def residuals(context: AuditContext) -> tuple[FloatArray, FloatArray]:
    """Return released less true sums of all bags, and of those with labels of both classes."""
    # In the latter, clipping a noisy sum to 0 … size leaves it on the same side of the true sum and
    # of its neighbours. Where all labels are the same a clipped sum never lies beyond the true one,
    # and the few far residuals would look like little noise.
    sizes = np.bincount(context.bags.members)
    true = np.bincount(context.bags.members, weights=context.truth)
    found = context.bags.released - true
    return found, found[(true > 0) & (true < sizes)]


def bag_bound(residuals: FloatArray, alpha: float) -> float:
    """Return a lower bound of ε from the noise of released sums, in nats, at level 1 − alpha."""
    # Neighbouring sums differ by 1, so for additive noise F(t) ≤ e^ε F(t − 1), and the same for the
    # upper tail; t = 0, where Laplace and geometric noise reach ε. Each tail of the residuals,
    # which are released less true sums, float64 of shape (b,), gets half of alpha.
    return max(0.0, *(_tail_bound(side * residuals, alpha / 2) for side in (1, -1)))


def _tail_bound(residuals: FloatArray, alpha: float) -> float:
    n = len(residuals)
    low = float(trials_lower(int((residuals <= _ROUNDING).sum()), n, alpha / 2))
    high = float(trials_upper(int((residuals <= _ROUNDING - 1).sum()), n, alpha / 2))
    return math.log(low / high) if low > 0 else 0.0


def _noise_parts(context: AuditContext, claim: BagSums) -> Iterator[Part]:
    """Yield how the noise of the released sums agrees with the claim."""
    confidence, (every, mixed) = context.plan.confidence, residuals(context)
    shown = Estimate.lower_bound(
        LOWER,
        "Noise of the released sums",
        bag_bound(mixed, 1 - confidence),
        confidence,
        axis="epsilon",
        unit="nats",
        n=len(mixed),
        method="how much likelier noise of at most 0 is than of at most −1, and the same "
        "upwards, in bags with labels of both classes; Clopper–Pearson, corrected for both",
        assumptions=(f"{_SAME_NOISE}; it may have been clipped to the bag's size",),
        reference="Hoeffding (1956), Theorem 5",
    )
    yield Bound.of(shown, partial(bag_bound, mixed))
    yield Estimate.upper_bound(
        "aggregates.noise_consistency",
        "Noise of the sums against the declaration (p-value)",
        max(noise_p_value(every, claim), 1e-12),
        confidence,
        n=len(every),
        unit="p-value",
        method="p-value: largest distance of the noise's distribution function from the "
        "declared one (Kolmogorov–Smirnov; for whole numbers conservative)",
        assumptions=(_SAME_NOISE,),
    )
    yield Estimate.upper_bound(
        SUMS_CONSISTENCY,
        "Noise of the sums drawn as declared (p-value)",
        max(as_declared(context.bags, context.truth, claim), SMALLEST_P_VALUE),
        confidence,
        n=len(every),
        unit="p-value",
        method="p-value: how often the noise moves a sum up or down by half or more, in bags with "
        "labels of one class and of both (binomial, whatever was clipped to the bag's size), and "
        "whether it follows from that of other bags in the file (bets); Bonferroni",
        assumptions=(f"{_SAME_NOISE}; it may have been clipped to the bag's size",),
        reference="Clopper & Pearson (1934); Shafer & Vovk (2019)",
    )


def as_declared(bags: Bags, truth: IntArray, claim: BagSums) -> float:
    """Return the p-value of noise drawn as declared, for each bag by itself."""
    sizes, true = np.bincount(bags.members), np.bincount(bags.members, weights=truth)
    noise = bags.released - true
    strata = np.unique(np.stack([sizes, true], axis=1), axis=0, return_inverse=True)[1].ravel()
    raised = RowNoise((noise > _ROUNDING).astype(np.float64), strata.astype(np.int64))
    order = Order("the file", np.arange(len(noise)))
    # Bags may have been sorted by what was released of them.
    found = [] if is_in_an_order(raised) else white(raised, [order], [])
    shared = min((one.p_value for one in found), default=1.0)
    up = (true < sizes) & (true == 0), (true < sizes) & (true > 0)
    down = (true > 0) & (true == sizes), (true < sizes) & (true > 0)
    # Sums may have been rounded: chances are those of a little more, and of a little less, noise.
    cdf = claim.noise_cdf(np.array([_MOVED - _SLACK, _MOVED + _SLACK]))
    below = claim.noise_cdf(np.array([_SLACK - _MOVED, -_MOVED - _SLACK]))
    moved = [
        *(_moved(noise[some] >= _MOVED, float(1 - cdf[1]), float(1 - cdf[0])) for some in up),
        *(_moved(noise[some] <= -_MOVED, float(below[1]), float(below[0])) for some in down),
    ]
    return min(1.0, 2 * min(shared, len(moved) * min(moved)))


def _moved(moved: BoolArray, least: float, most: float) -> float:
    """Return the two-sided p-value of so many moved sums, of a chance from least to most."""
    count, n = int(moved.sum()), len(moved)
    tails = binom.cdf(count, n, least), binom.sf(count - 1, n, most)
    return float(min(1.0, 2 * min(tails)))


def bags_dependence(context: AuditContext) -> Dependence:
    """Return how far the released sums depend on the true labels; without noise they must match."""
    claim, bags, truth = context.claim.offers(BagSums), context.bags, context.truth
    rng = context.rng("alignment")

    def distance(labels: IntArray) -> float:
        sums = np.bincount(bags.members, weights=labels)
        return float(((bags.released - sums) ** 2).sum())

    def as_claimed() -> float:
        if claim is None or claim.noise == "none":
            return 0.0
        return noise_p_value(residuals(context)[0], claim)

    seen = distance(truth) * (1 + 1e-12)
    nearer = sum(distance(rng.permutation(truth)) <= seen for _ in range(_DRAWS))
    return Dependence((1 + nearer) / (1 + _DRAWS), as_claimed)


def noise_p_value(residuals: FloatArray, claim: BagSums) -> float:
    """Return the p-value of the two-sided Kolmogorov–Smirnov test."""
    # With a discrete law the test compares at the jumps only, and its continuous null distribution
    # is conservative.
    from scipy.stats import kstest, kstwo

    if claim.noise == "geometric":
        values, counts = np.unique(np.rint(residuals), return_counts=True)
        empirical = np.cumsum(counts) / len(residuals)
        before = empirical - counts / len(residuals)
        distance = max(
            float(np.abs(empirical - claim.noise_cdf(values)).max()),
            float(np.abs(before - claim.noise_cdf(values - 1)).max()),
        )
    else:
        distance = float(kstest(claim.noise_cdf(residuals), "uniform").statistic)
    return float(kstwo.sf(distance, len(residuals)))
