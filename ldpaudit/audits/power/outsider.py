"""What the bound from the release alone could have found."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from statistics import NormalDist

import numpy as np

from ldpaudit.audits.assumptions.rows import noise_clusters
from ldpaudit.audits.assumptions.unlabelled import lags_that_agree
from ldpaudit.audits.claimed_channel import aligned_channel
from ldpaudit.audits.epsilon_proofs import INSIDER, INSIDER_SHARES
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.mechanism.evidence import (
    FEATURE_BLIND,
    feature_dependence,
    outsider_evidence,
)
from ldpaudit.audits.observational.power import EXCESS, WANTED_POWER
from ldpaudit.audits.part import in_part, of_rows
from ldpaudit.audits.power.insider import design_for, insiders_rows, smallest_excess
from ldpaudit.audits.power.wanted import excess_estimate, further_rows, limit_of, rows_estimate
from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.assumptions.clusters import one_of_each
from ldpaudit.estimators.epsilon.power import sharpened, smallest_detectable
from ldpaudit.estimators.epsilon.release_only.bound import GroupTest, ReleaseOnlyEvidence
from ldpaudit.estimators.epsilon.release_only.power import group_power, label_mixtures
from ldpaudit.mechanisms import lambda_of_epsilon
from ldpaudit.mechanisms.capabilities import SyntheticFeatures
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.numeric.view import point_channel
from ldpaudit.release import FloatArray, IndexArray
from ldpaudit.result import Estimate, Finding

_HEAD = 4_000
_ERROR = 0.05
"""How often one of the classes may be smaller than the released labels say."""
WITH_TRUTH = "power.with_truth.min_detectable_excess"
ROWS_WITH_TRUTH = "power.with_truth.rows_needed"
_ASSUMPTIONS = (
    FEATURE_BLIND,
    "the claim is right about this release, so that the groups' released labels show how well the "
    "features tell the true labels of their rows",
    "groups as good would be found in a release at a larger ε",
    "a release at a larger ε is made by the claimed channel with every entry raised to one power",
)


def outsiders_channel(context: AuditContext) -> Channel | None:
    """Return the claimed channel; where numeric labels are grouped, that of single labels."""
    channel, numeric = aligned_channel(context), context.release.numeric
    if channel is None and numeric is not None:
        return point_channel(context.claim, numeric.view)
    return channel


def outsiders_power(context: AuditContext, channel: Channel) -> Finding:
    """Return the smallest excess that the release alone would have shown, and the rows it needs.

    Raise InsufficientDataError if no bound of ε could be computed at all.
    """
    evidence = outsider_evidence(context)
    if isinstance(evidence, str):
        raise InsufficientDataError(f"no bound of ε could be computed: {evidence}")
    limit, alpha = limit_of(context, channel), 1 - context.plan.confidence
    power = _power(context, evidence, channel, limit)

    def excess(error: float) -> float:
        return smallest_detectable(lambda e: power(e, error, 1.0), limit, WANTED_POWER) - limit

    estimate, notes = excess_estimate(
        excess,
        alpha,
        n=int(evidence.strongest_test(alpha).sizes.sum()),
        method="probability that the certified bound from the release alone exceeds the claim, "
        f"{WANTED_POWER:.0%}, for the groups of rows that gave the bound",
        assumptions=_ASSUMPTIONS,
    )
    target = context.plan.max_undetected_excess.at(limit)
    rows = _rows(power, limit + target, alpha, len(context.release), estimate.value <= target)
    needed = rows_estimate(rows, target, exact=False, assumptions=_ASSUMPTIONS)
    estimates = (estimate, needed, *_with_truth(context, channel, limit, target))
    return Finding(estimates=estimates, notes=notes, bounds={EXCESS: excess})


def _with_truth(
    context: AuditContext, channel: Channel, limit: float, target: float
) -> Iterator[Estimate]:
    """Yield what the true labels would show: the publisher's audit of the same release."""
    level = (1 - context.plan.confidence) * INSIDER_SHARES[INSIDER]
    sizes = np.rint(len(context.release) * _all_labels(context, channel)).astype(np.int64)
    if np.count_nonzero(sizes) < 2 or context.release.numeric is not None:
        return
    assumptions = (
        "the claimed channel made the released labels: their shares imply the true ones",
    )
    yield Estimate.estimated(
        WITH_TRUTH,
        "Smallest excess ε found with 90 % power if the true labels were given",
        smallest_excess(sizes, channel, limit, level, design_for(sizes, channel)),
        unit="nats",
        method="the power of the bound from true labels, for as many rows",
        assumptions=assumptions,
    )
    yield Estimate.estimated(
        ROWS_WITH_TRUTH,
        "Further rows for the wanted power if the true labels were given",
        insiders_rows(sizes, channel, limit + target, limit, level),
        unit="rows",
        method=f"as many rows again until an excess of {target:g} nats is found",
        assumptions=assumptions,
    )


def excess_by_released_labels(context: AuditContext, alpha: float) -> float | None:
    """Return an excess that true labels would show, of classes that released labels bound alone.

    Of a context without true labels. Counted are rows that share no noise, as far as released
    labels show it. All classes are as small as these allow at 95 % confidence; None where no excess
    would be shown then, or they say nothing of the classes.
    """
    claim = context.claim
    if claim.epsilon is not None and math.isinf(claim.epsilon):
        return None
    channel = None if feature_dependence(context) or claim.by_stratum else aligned_channel(context)
    if channel is None:
        return None
    if np.linalg.matrix_rank(channel.matrix, tol=1e-9) < len(channel.classes):
        return None
    part = in_part(context)
    rows = _counted_alone(part)
    counts = context if rows is None else of_rows(part, rows)
    sizes = _smallest_sizes(counts, channel)
    if np.count_nonzero(sizes) < 2:
        return None
    limit, level = limit_of(context, channel), alpha * INSIDER_SHARES[INSIDER]
    excess = smallest_excess(sizes, channel, limit, level, design_for(sizes, channel))
    return excess if math.isfinite(excess) else None


def _counted_alone(context: AuditContext) -> IndexArray | None:
    """Return rows that share no noise, as far as released labels show it; None for all.

    Distances at which rows share noise are looked for at the head of the file: a model of all rows
    would take longer than the rest of an audit.
    """
    found = noise_clusters(context)
    rows = None if found.codes is None else one_of_each(found.codes, context.rng("counted rows"))
    head = of_rows(context, np.arange(min(len(context.release), _HEAD)))
    lags = lags_that_agree(replace(head, _shared={}), None)
    if lags is None:
        return rows
    return lags.apart(np.arange(len(context.release)) if rows is None else rows)


def _smallest_sizes(context: AuditContext, channel: Channel) -> IndexArray:
    """Return how many have each true label at least, the others the most frequent one.

    All classes together are as large with 95 % confidence. Of the rows of a group one counts.
    """
    release, inverse = context.release, np.linalg.pinv(channel.matrix)
    people = len(release) if release.groups is None else len(np.unique(release.groups))
    seen = np.bincount(release.released, minlength=len(channel.outputs)) / len(release)
    variance = np.maximum(seen @ inverse**2 - (seen @ inverse) ** 2, 0) / people
    implied = _all_labels(context, channel)
    below = NormalDist().inv_cdf(1 - _ERROR / max(len(implied) - 1, 1))
    least = np.maximum(implied - below * np.sqrt(variance), 0)
    sizes = np.floor(people * least).astype(np.int64)
    sizes[implied.argmax()] += people - sizes.sum()
    return np.asarray(sizes)


def _all_labels(context: AuditContext, channel: Channel) -> FloatArray:
    """Return the shares of true labels that the released ones imply, float64 of shape (k,)."""
    table = np.bincount(context.release.released, minlength=len(channel.outputs))[None]
    none = np.zeros(len(channel.outputs), dtype=np.int32)
    return np.asarray(label_mixtures(GroupTest(table, none, 1.0, "scores"), channel)[0])


def _power(
    context: AuditContext, evidence: ReleaseOnlyEvidence, channel: Channel, limit: float
) -> Callable[[float, float, float], float]:
    """Return the power as a function of a release's ε, the level and a multiple of the rows.

    That of the best of the tests, given how good they are: the largest bound is at least its.
    """
    mixtures = [label_mixtures(test, channel) for test in evidence.tests]
    clearer = _clearer_features(context, channel)

    @cache
    def power(epsilon: float, alpha: float, factor: float) -> float:
        worse = sharpened(channel, epsilon)
        tests = zip(evidence.tests, mixtures, strict=True)
        return max(
            group_power(test, clearer(shares, epsilon), worse, limit, alpha, factor)
            for test, shares in tests
        )

    return power


def _clearer_features(
    context: AuditContext, channel: Channel
) -> Callable[[FloatArray, float], FloatArray]:
    """Return what groups' shares of true labels become at a larger ε.

    They stay, unless the mechanism replaces features: at a larger ε it replaces fewer of them, and
    groups are purer. A group's rows with replaced features have all rows' shares.
    """
    claim = context.claim
    if not isinstance(claim, SyntheticFeatures) or not 0 < claim.noise < 1:
        return lambda shares, _: shares
    everyone = _all_labels(context, channel)

    def clearer(shares: FloatArray, epsilon: float) -> FloatArray:
        kept = np.clip(shares - claim.noise * everyone, 0.0, None)
        kept = kept / np.maximum(kept.sum(axis=1, keepdims=True), 1e-300)
        replaced = lambda_of_epsilon(epsilon, len(channel.classes))
        return np.asarray((1 - replaced) * kept + replaced * everyone)

    return clearer


def _rows(
    power: Callable[[float, float, float], float],
    epsilon: float,
    alpha: float,
    rows: int,
    enough: bool,
) -> float:
    if enough:
        return 0.0
    # Where even a thousand times as many rows would not do, the features are what is missing.
    if power(epsilon, alpha, 1e3) < WANTED_POWER:
        return math.inf
    return further_rows(lambda factor: power(epsilon, alpha, factor) >= WANTED_POWER, rows)
