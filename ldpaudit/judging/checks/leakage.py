"""Checks of what is leaked: instance-based loss, divergences and attacks."""

import math
from collections.abc import Callable
from typing import Any

from ldpaudit.judging.checks.interface import Answer, Case, Draft, Evidence, drafted
from ldpaudit.judging.policy.sections import CLAIM
from ldpaudit.result import Curve
from ldpaudit.result.numbers import number
from ldpaudit.result.stated import (
    EXCEEDANCE,
    EXCEEDANCE_LEARNED,
    MEAN_LOSS,
    MEAN_LOSS_LEARNED,
    MEAN_LOSS_LOWER,
    NOT_INDEPENDENT,
    RELEASE_CURVE,
)

_LOSSES = (EXCEEDANCE, EXCEEDANCE_LEARNED)
_MEANS = (MEAN_LOSS, MEAN_LOSS_LEARNED)
_TOO_COARSE = (
    "people's mean loss is certified to lie above its estimate by neighbours, so more people than "
    "estimated may lose that much: the neighbourhoods are too coarse"
)


def exceedance(case: Case, section: Any) -> Draft:
    """Return the check of how many people lose more than the limit."""
    evidence, limit, at = case.evidence, section.max, section.at.at(case.claim.epsilon)
    if at is None:
        why = "nothing finite was claimed that the limit could follow"
        question = "Is the share of people whose loss is far above the claimed ε too large?"
        return drafted(Answer("inconclusive", None, why), limit=limit, question=question)
    curves = [evidence.curves[name] for name in _LOSSES if name in evidence.curves]
    curves = [curve for curve in curves if curve.low is not None]
    places = [(curve, _grid_point(curve, at)) for curve in curves]
    points = [(curve, place) for curve, place in places if place is not None]

    def test(alpha: float) -> Answer:
        if not points:
            return Answer("inconclusive", None, "the instance-based loss was not estimated")
        # One bound per metric: together they may err as often as one.
        part = alpha / len(curves)
        low = max(evidence.curve_bound(curve, place, part) for curve, place in points)
        value = max(curve.value[place] for curve, place in points)
        if low > limit:
            return Answer("fail", low, "the lower bound of the share lies above the limit", "lower")
        if value > limit:
            return Answer("inconclusive", value, "the share's estimate straddles the limit")
        # Where d nats of the mean are missed, a share of d/τ more people may lose τ nats: nobody
        # loses less than 0 on average over what is released.
        if value + _missed_mean(evidence) / max(at, 1e-9) > limit:
            return Answer("inconclusive", value, _TOO_COARSE)
        return Answer("pass", value, "the estimated share lies within the limit")

    question = f"Is the share of people whose loss is at least {number(at)} nats too large?"
    return drafted(test, tuple(curve.id for curve in curves), limit, question)


def _missed_mean(evidence: Evidence) -> float:
    """Return how much of the certified mean loss the estimates by neighbours miss, in nats."""
    means = [evidence.estimates[name].value for name in _MEANS if name in evidence.estimates]
    if MEAN_LOSS_LOWER not in evidence.estimates or not means:
        return 0.0
    return max(evidence.estimates[MEAN_LOSS_LOWER].value - max(means), 0.0)


def _grid_point(curve: Curve, at: float) -> int | None:
    """Return the first grid point at or above ``at``: J falls, so its bound is the safe one."""
    return next((i for i, x in enumerate(curve.x) if x >= at - 1e-9), None)


def renyi_divergence(case: Case, section: Any) -> Draft:
    """Return the check of the Rényi divergence between rows of two labels."""
    evidence, limit, order = case.evidence, section.max, section.alpha
    names = RELEASE_CURVE, f"{RELEASE_CURVE}.estimate"
    bound, estimate = (evidence.curves.get(name) for name in names)

    def test(alpha: float) -> Answer:
        # D grows with the order, so a lower bound at the last grid point below it is safe.
        points = [] if bound is None else [i for i, x in enumerate(bound.x) if x <= order + 1e-9]
        if bound is None or not points:
            return Answer("inconclusive", None, "the Rényi divergence was not audited there")
        low = evidence.curve_bound(bound, points[-1], alpha)
        if low > limit:
            return Answer("fail", low, "the certified lower bound lies above the limit", "lower")
        above = None if estimate is None else _grid_point(estimate, order)
        if estimate is None or above is None:
            reason = "the rows cannot support an estimate at this order"
            return Answer("inconclusive", low, reason, "lower")
        if estimate.value[above] <= limit:
            return Answer("pass", estimate.value[above], "the estimate lies within the limit")
        return Answer("inconclusive", estimate.value[above], "the estimate straddles the limit")

    question = f"Is the Rényi divergence at order {number(order)} above the limit?"
    return drafted(test, tuple(name for name in names if name in evidence.curves), limit, question)


def attack_score(what: str) -> Callable[[Case, Any], Draft]:
    """Return how the score of the strongest attack, with its interval, is held against a limit."""

    def look(case: Case, section: Any) -> Draft:
        evidence, limit = case.evidence, section.max
        score = evidence.estimates.get(name := f"attack.best.{what}")
        if limit == CLAIM:  # The most that the claimed ε allows.
            ceiling = evidence.estimates.get("attack.ceiling.advantage")
            limit = None if ceiling is None else ceiling.value
        if score is None or score.low is None or score.high is None:
            answer = Answer("inconclusive", None, "no attack could be scored against true labels")
            return drafted(answer, (name,) if score else (), limit)
        why = "the attack could be scored only under the claim's own assumption"
        if limit is None:
            why = "nothing was claimed that the limit could follow"
        elif NOT_INDEPENDENT in score.assumptions:
            why = "rows share noise, so no certified interval holds for the attack's score"
        if limit is None or score.kind != "certified":
            return drafted(Answer("inconclusive", score.value, why), (name,), limit)
        value, low, high, certain = score.value, score.low, score.high, score.level or 1.0

        def test(alpha: float) -> Answer:
            certified = low if alpha >= (1 - certain) / 2 else -math.inf
            least = evidence.bounds[name](alpha) if name in evidence.bounds else certified
            if least > limit:
                return Answer(
                    "fail", least, f"the best attack's {what} lies above the limit", "lower"
                )
            if high <= limit:
                return Answer("pass", value, f"the best attack's {what} is within the limit")
            return Answer("inconclusive", value, "the interval straddles the limit")

        return drafted(test, (name,), limit)

    return look
