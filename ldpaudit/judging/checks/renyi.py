"""Is the Rényi divergence between the released rows of two labels above a limit?"""

from ldpaudit.judging.checks.exceedance import grid_point
from ldpaudit.judging.checks.interface import Answer, Case, Draft
from ldpaudit.reports.text.numbers import number
from ldpaudit.result import Curve

BOUND, ESTIMATE = "renyi.release", "renyi.release.estimate"


def draft(case: Case) -> Draft | None:
    """Return the check, None where the policy does not ask for it."""
    section, evidence = case.policy.checks.renyi_epsilon, case.evidence
    if section is None:
        return None
    limit, order = section.max, section.alpha
    curve, estimate = evidence.curves.get(BOUND), evidence.curves.get(ESTIMATE)

    def test(alpha: float) -> Answer:
        at = None if curve is None else _order_at_most(curve, order)
        if curve is None or at is None:
            return Answer("inconclusive", None, "the Rényi divergence was not audited there")
        low = evidence.curve_bound(curve, at, alpha)
        if low > limit:
            return Answer("fail", low, "the certified lower bound lies above the limit", "lower")
        above = None if estimate is None else grid_point(estimate, order)
        if estimate is None or above is None:
            reason = "the rows cannot support an estimate at this order"
            return Answer("inconclusive", low, reason, "lower")
        if estimate.value[above] <= limit:
            return Answer("pass", estimate.value[above], "the estimate lies within the limit")
        return Answer("inconclusive", estimate.value[above], "the estimate straddles the limit")

    question = f"Is the Rényi divergence at order {number(order)} above the limit?"
    ids = tuple(part.id for part in (curve, estimate) if part is not None)
    return Draft("renyi-epsilon", section.level, question, limit, ids, test)


def _order_at_most(curve: Curve, order: float) -> int | None:
    """Return the last grid point at or below ``order``: D grows, so its lower bound is safe."""
    return max((i for i, x in enumerate(curve.x) if x <= order + 1e-9), default=None)
