"""Do too many people lose too much? J(τ) against a share."""

from ldpaudit.judging.checks.interface import Answer, Case, Draft, Evidence
from ldpaudit.judging.policy.sections import ExceedanceSection
from ldpaudit.reports.text.numbers import number
from ldpaudit.result import Curve

CURVES = ("instance_loss.exceedance", "instance_loss.exceedance_learned")
MEANS = ("instance_loss.mean", "instance_loss.mean_learned")
MEAN_LOWER = "instance_loss.mean_lower"
_ID = "instance-loss-exceedance"
_TOO_COARSE = (
    "people's mean loss is certified to lie above its estimate by neighbours, so more people than "
    "estimated may lose that much: the neighbourhoods are too coarse"
)


def draft(case: Case) -> Draft | None:
    """Return the check, None where the policy does not ask for it."""
    section, evidence = case.policy.checks.instance_loss_exceedance, case.evidence
    if section is None:
        return None
    limit, at = section.max, section.at.at(case.claim.epsilon)
    if at is None:
        return _unlimited(section)
    curves = [evidence.curves[name] for name in CURVES if name in evidence.curves]
    curves = [curve for curve in curves if curve.low is not None]

    missed = _missed_mean(evidence)

    def test(alpha: float) -> Answer:
        points = [(curve, grid_point(curve, at)) for curve in curves]
        known = [(curve, place) for curve, place in points if place is not None]
        if not known:
            return Answer("inconclusive", None, "the instance-based loss was not estimated")
        # One bound per metric: together they may err as often as one.
        part = alpha / len(curves)
        low = max(evidence.curve_bound(curve, place, part) for curve, place in known)
        value = max(curve.value[place] for curve, place in known)
        if low > limit:
            return Answer("fail", low, "the lower bound of the share lies above the limit", "lower")
        if max(low, value) <= limit < value + missed / max(at, 1e-9):
            return Answer("inconclusive", value, _TOO_COARSE)
        if max(low, value) <= limit:
            return Answer("pass", value, "the estimated share lies within the limit")
        return Answer("inconclusive", value, "the share's estimate straddles the limit")

    question = f"Is the share of people whose loss is at least {number(at)} nats too large?"
    ids = tuple(curve.id for curve in curves)
    return Draft(_ID, section.level, question, limit, ids, test)


def _unlimited(section: ExceedanceSection) -> Draft:
    """Return the check where its loss follows a claim that promises nothing."""
    question = "Is the share of people whose loss is far above the claimed ε too large?"
    answer = Answer("inconclusive", None, "nothing finite was claimed that the limit could follow")
    return Draft(_ID, section.level, question, section.max, (), lambda _: answer)


def _missed_mean(evidence: Evidence) -> float:
    """Return how much of the certified mean loss the neighbours' estimates miss, in nats, if any.

    Where d nats are missed, a share of d/τ more people may lose τ nats: nobody loses less than 0 on
    average over what is released.
    """
    means = [evidence.estimates[name].value for name in MEANS if name in evidence.estimates]
    if MEAN_LOWER not in evidence.estimates or not means:
        return 0.0
    return max(evidence.estimates[MEAN_LOWER].value - max(means), 0.0)


def grid_point(curve: Curve, at: float) -> int | None:
    """Return the first grid point at or above ``at``: J falls, so its bound is the safe one."""
    return next((i for i, x in enumerate(curve.x) if x >= at - 1e-9), None)
