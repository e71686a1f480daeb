"""From bags to the estimates of the result."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from ldpaudit.audits.aggregates.runs import ATTACKS, BagRun
from ldpaudit.audits.interface import AuditContext
from ldpaudit.estimators.intervals.binomial import clopper_pearson
from ldpaudit.estimators.intervals.bounded_mean import mean_lower, mean_upper
from ldpaudit.estimators.label_inference.advantage import randomized_response_advantage
from ldpaudit.estimators.label_inference.bag_posterior import bag_posterior, log_odds_shift
from ldpaudit.mechanisms.capabilities import BagSums
from ldpaudit.release import FloatArray
from ldpaudit.result import Curve, Estimate, Score, Unit

_REFERENCE: Final = "Busa-Fekete et al. (2024)"
_SHIFTS: Final = tuple(float(s) for s in np.round(np.arange(0, 6.01, 0.25), 2))
_RIGHT: Final = "labels guessed right, as a share of each bag, averaged over held-out bags"
_GAINED: Final = f"{_RIGHT}, less those that the features alone give"
_INDEPENDENT_LABELS: Final = "labels of a bag are independent given the features"
_MEASURES: Final = {"accuracy": "accuracy", "advantage": "additive advantage"}
_LARGEST: Final = 40.0
_BAGS: Final = "bags were formed and released independently of each other"


def attack_estimates(
    runs: Sequence[BagRun], confidence: float
) -> tuple[list[Estimate], dict[str, partial[float]]]:
    """Return accuracy and advantage of every attack, and of the strongest, certified."""
    estimates = []
    for run in runs:
        estimates.append(_estimate(run, "accuracy", run.right, 0.0, confidence, _RIGHT))
        if run.name in ATTACKS:
            estimates.append(_estimate(run, "advantage", run.gained, -1.0, confidence, _GAINED))
    attacks = [run for run in runs if run.name in ATTACKS]
    best = _best(attacks, confidence)
    bounds = {best.id: partial(_best_lower, attacks)}
    return [best, *estimates], bounds


def _bound(values: Sequence[FloatArray], alpha: float, low: float, side: str) -> float:
    """Return a bound at level 1 − alpha of the average over two halves, each at half of alpha."""
    end = mean_lower if side == "lower" else mean_upper
    total = sum(len(part) for part in values)
    return sum(len(part) / total * end(part, alpha / len(values), low, 1.0) for part in values)


def _estimate(
    run: BagRun,
    measure: str,
    values: Sequence[FloatArray],
    low: float,
    confidence: float,
    method: str,
) -> Estimate:
    tail = (1 - confidence) / 2
    ends = _bound(values, tail, low, "lower"), _bound(values, tail, low, "upper")
    return _scored(run, measure, values, ends, confidence, method)


def _scored(
    run: BagRun,
    measure: str,
    values: Sequence[FloatArray],
    ends: tuple[float, float],
    level: float,
    method: str,
) -> Estimate:
    score = Score(subject=run.name, measure=measure, row=run.title, column=_MEASURES[measure])
    return Estimate.interval(
        f"aggregates.{run.name}.{measure}",
        score.title,
        float(np.concatenate(list(values)).mean()),
        ends,
        level,
        score=score,
        unit="proportion",
        n=sum(len(part) for part in values),
        method=method,
        assumptions=(_BAGS,),
        reference=_REFERENCE,
    )


def _best_lower(attacks: Sequence[BagRun], alpha: float) -> float:
    return max(_bound(run.gained, alpha / len(attacks), -1.0, "lower") for run in attacks)


def _best(attacks: Sequence[BagRun], confidence: float) -> Estimate:
    tail = (1 - confidence) / 2
    best = max(attacks, key=lambda run: float(np.concatenate(run.gained).mean()))
    high = max(_bound(run.gained, tail, -1.0, "upper") for run in attacks)
    method = (
        f"the stronger of {len(attacks)} attacks, here {best.name}; the lower end's error "
        f"probability is divided by {len(attacks)}"
    )
    strongest = replace(best, name="best", title="Strongest attack on bags")
    ends = _best_lower(attacks, tail), high
    return _scored(strongest, "advantage", best.gained, ends, confidence, method)


def expectation_findings(
    context: AuditContext, claim: BagSums, priors: FloatArray, source: str
) -> tuple[tuple[Curve, ...], list[Estimate]]:
    """Return the accuracy that the exact posterior expects of itself, given P(label | features).

    Parameters
    ----------
    context : AuditContext
    claim : BagSums
    priors : float64 array of shape (n,)
        P(second class | features) before the release.
    source : str
        Where they come from.
    """
    bags = context.bags
    posterior = bag_posterior(
        priors, bags.members, bags.released, claim.log_likelihood, claim.epsilon
    )
    expected = float(np.maximum(posterior, 1 - posterior).mean())
    gain = expected - float(np.maximum(priors, 1 - priors).mean())
    given = (_INDEPENDENT_LABELS, f"P(label | features) is that of {source}", "the claim holds")
    values = {
        "expected_accuracy": expected,
        "additive_advantage": gain,
        "equivalent_epsilon": equivalent_epsilon(priors, gain),
    }
    estimates = [_expected(name, value, len(priors), given) for name, value in values.items()]
    estimates += _certainty(context, claim, priors, given)
    shift = log_odds_shift(priors, posterior)
    return (_multiplicative(shift, given),), estimates


_EXPECTED: Final[Mapping[str, tuple[str, Unit, str]]] = {
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


def _expected(name: str, value: float, n: int, given: tuple[str, ...]) -> Estimate:
    title, unit, method = _EXPECTED[name]
    return Estimate.estimated(
        f"aggregates.{name}",
        title,
        value,
        axis="epsilon" if unit == "nats" else None,
        unit=unit,
        n=n,
        method=method,
        assumptions=given,
        reference=_REFERENCE,
    )


def equivalent_epsilon(priors: FloatArray, advantage: float) -> float:
    """Return the ε of binary randomized response with an additive advantage, in nats.

    Parameters
    ----------
    priors : float64 array of shape (n,)
        P(second class) of each row.
    advantage : float
        The advantage averaged over rows; 0 gives 0, and what no ε reaches gives ∞.
    """
    from scipy.optimize import brentq

    posterior = np.column_stack([1 - priors, priors])

    def excess(epsilon: float) -> float:
        return float(randomized_response_advantage(posterior, epsilon).mean()) - advantage

    if advantage <= 0:
        return 0.0
    return math.inf if excess(_LARGEST) <= 0 else float(brentq(excess, 0.0, _LARGEST))


def _certainty(
    context: AuditContext, claim: BagSums, priors: FloatArray, given: tuple[str, ...]
) -> Iterator[Estimate]:
    """Yield the share of bags whose labels are all the same, where the sum reveals it."""
    bags = context.bags
    if claim.noise != "none":
        return
    sizes = np.bincount(bags.members)
    pure = int(((bags.released == 0) | (bags.released == sizes)).sum())
    low, high = clopper_pearson(pure, len(sizes), 1 - context.plan.confidence)
    yield Estimate.interval(
        "aggregates.certain_share",
        "Share of people whose label the release states",
        pure / len(sizes),
        (float(low), float(high)),
        context.plan.confidence,
        unit="proportion",
        n=len(sizes),
        count=pure,
        method="bags whose sum reveals every label because all are the same; the multiplicative "
        "advantage is infinite there",
        assumptions=(_BAGS,),
        reference=_REFERENCE,
    )
    logs = np.stack([np.log(np.clip(p, 1e-300, 1)) for p in (priors, 1 - priors)])
    alike = [np.exp(np.bincount(bags.members, weights=part)).mean() for part in logs]
    yield _expected("expected_certain_share", float(sum(alike)), len(priors), given)


def _multiplicative(shift: FloatArray, given: tuple[str, ...]) -> Curve:
    share = tuple(float((shift >= tau).mean()) for tau in _SHIFTS)
    return Curve(
        id="aggregates.multiplicative",
        title="Share of people whose log-odds shift by τ or more",
        axis="share of people",
        kind="estimated",
        x=_SHIFTS,
        value=share,
        x_label="τ: by how much the released sum shifts the log-odds of a label, nats",
        unit="proportion",
        n=len(shift),
        method="|logit posterior − logit prior|, the multiplicative advantage",
        assumptions=given,
        reference=_REFERENCE,
    )
