"""What the bounds from true labels could have found."""

import math
from collections.abc import Callable, Iterator

import numpy as np

from ldpaudit.audits.epsilon_proofs import INSIDER, INSIDER_SHARES, SUBGROUPS
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.mechanism.subgroups import FITTED_SHARE, subgroup_evidence
from ldpaudit.audits.observational.power import EXCESS, EXCESS_TITLE, WANTED_POWER
from ldpaudit.audits.power.wanted import (
    ROWS_NEEDED,
    excess_estimate,
    further_rows,
    limit_of,
    no_power,
    rows_estimate,
)
from ldpaudit.estimators.epsilon.clear import Claimed, smallest_clear_group, smallest_clear_share
from ldpaudit.estimators.epsilon.guesses import GuessCounts, detectable_epsilon
from ldpaudit.estimators.epsilon.power import (
    detection_power,
    sharpened,
    smallest_detectable,
    worth_looking_for,
)
from ldpaudit.estimators.epsilon.strongest import BoundDesign, design_bounds
from ldpaudit.estimators.epsilon.subgroups import SubgroupEvidence
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.release import IndexArray
from ldpaudit.result import Estimate, Finding

CLEAR_GROUP, CLEAR_SHARE = "power.smallest_clear_group", "power.smallest_clear_share"
_FAMILY = (
    "the mechanism's family: the claimed channel with every entry raised to one power (for "
    "randomized response: randomized response), in truth at a larger ε"
)
_TOLD_APART = (
    "features tell the group's rows from all others, as one range of a column does",
    "its classes have the proportions of all rows, and other rows are released as claimed",
)


def insiders_power(context: AuditContext, channel: Channel, sizes: IndexArray) -> Finding:
    """Return the smallest excess, group and share of rows that true labels would have shown."""
    limit, alpha = limit_of(context, channel), 1 - context.plan.confidence
    target = context.plan.max_undetected_excess.at(limit)
    level = alpha * INSIDER_SHARES[INSIDER]
    design = design_for(sizes, channel)

    def excess(error: float) -> float:
        part = error * INSIDER_SHARES[INSIDER]
        return smallest_excess(sizes, channel, limit, part, design)

    value = excess(alpha)
    words = (
        "from binomial distributions: the smallest excess, shared by all rows, at which the "
        f"certified bound from true labels, at level {1 - level:.4g}, exceeds the claim with "
        f"probability {WANTED_POWER:.0%}; {_FAMILY}"
    )

    def further(error: float) -> float:
        part = error * INSIDER_SHARES[INSIDER]
        return insiders_rows(sizes, channel, limit + target, limit, part)

    clear, bounds = _clear(context, channel, sizes, limit)
    return Finding(
        estimates=(
            Estimate.exact(EXCESS, EXCESS_TITLE, value, unit="nats", method=words),
            rows_estimate(further(alpha), target, exact=True),
            *clear,
        ),
        notes=no_power(value),
        bounds={EXCESS: excess, ROWS_NEEDED: further, **bounds},
    )


def reports_power(context: AuditContext, counts: GuessCounts) -> Finding:
    """Return what the bound from recorded reports could have found."""
    limit = context.claim.epsilon or 0.0

    def excess(alpha: float) -> float:
        return detectable_epsilon(counts, limit, alpha * INSIDER_SHARES[INSIDER]) - limit

    estimate, notes = excess_estimate(
        excess,
        1 - context.plan.confidence,
        n=counts.candidates,
        method="the smallest excess at which the certified bound from the reports' likelihood "
        f"ratio exceeds the claim with probability {WANTED_POWER:.0%}",
        assumptions=(
            "a protocol at a larger ε lets guesses be made as often as the declared one did here",
        ),
    )
    return Finding(estimates=(estimate,), notes=notes, bounds={EXCESS: excess})


def design_for(sizes: IndexArray, channel: Channel) -> BoundDesign | None:
    """Return how a release through a worse channel than the claimed one would be bounded."""
    return design_bounds(sizes, worth_looking_for(channel).matrix)


def smallest_excess(
    sizes: IndexArray,
    channel: Channel,
    limit: float,
    alpha: float,
    design: BoundDesign | None,
) -> float:
    """Return the smallest excess over ``limit`` that so many true labels show, in nats."""
    if design is None:
        return math.inf

    def power(epsilon: float) -> float:
        return detection_power(design, sizes, sharpened(channel, epsilon).matrix, limit, alpha)

    return smallest_detectable(power, limit, WANTED_POWER) - limit


def insiders_rows(
    sizes: IndexArray, channel: Channel, epsilon: float, limit: float, alpha: float
) -> float:
    """Return how many more rows find that a release has ``epsilon``, 0 where these do."""
    worse = sharpened(channel, epsilon).matrix

    def enough(factor: float) -> bool:
        larger = np.ceil(sizes * factor).astype(np.int64)
        design = design_for(larger, channel)
        assert design is not None
        return detection_power(design, larger, worse, limit, alpha) >= WANTED_POWER

    return further_rows(enough, int(sizes.sum()))


def _clear(
    context: AuditContext, channel: Channel, sizes: IndexArray, limit: float
) -> tuple[Iterator[Estimate], dict[str, Callable[[float], float]]]:
    """Return the smallest share of rows and the smallest group that are found in the clear."""
    alpha, n = 1 - context.plan.confidence, int(sizes.sum())
    claimed = Claimed(sizes, channel.matrix, worth_looking_for(channel).matrix, limit)

    def share(error: float) -> float:
        return smallest_clear_share(claimed, error * INSIDER_SHARES[INSIDER], WANTED_POWER)

    def group(error: float) -> float:
        level, fitted = error * INSIDER_SHARES[SUBGROUPS], FITTED_SHARE / 2
        part = smallest_clear_group(claimed, level, WANTED_POWER, fitted)
        return math.ceil(n * part) if math.isfinite(part) else math.inf

    bounds: dict[str, Callable[[float], float]] = {CLEAR_SHARE: share}
    if isinstance(subgroup_evidence(context), SubgroupEvidence):
        bounds[CLEAR_GROUP] = group
    return _clear_estimates({name: bound(alpha) for name, bound in bounds.items()}), bounds


def _clear_estimates(values: dict[str, float]) -> Iterator[Estimate]:
    if math.isfinite(values[CLEAR_SHARE]):
        yield Estimate.exact(
            CLEAR_SHARE,
            "Smallest share of rows in the clear found with 90 % power",
            values[CLEAR_SHARE],
            unit="proportion",
            method="from binomial distributions: the smallest share of rows, chosen at random, "
            "whose true labels are released while all others are released as claimed, that the "
            "bound from all rows finds",
        )
    if math.isfinite(values.get(CLEAR_GROUP, math.inf)):
        yield Estimate.estimated(
            CLEAR_GROUP,
            "Smallest group of rows in the clear found with 90 % power",
            values[CLEAR_GROUP],
            unit="rows",
            method="from binomial distributions: the smallest group of rows, told apart by "
            "features, whose true labels are released, that the bound within groups finds",
            assumptions=_TOLD_APART,
        )
