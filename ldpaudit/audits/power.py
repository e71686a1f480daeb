"""Power: what this audit could have found, and how many rows would find more."""

# An audit that finds nothing is worth as much as what it could have found: the smallest excess of
# ε, and the smallest share or group of rows in the clear, that its bounds find in nine of ten
# simulated releases.

import math
from collections.abc import Callable, Iterator
from functools import partial
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from ldpaudit.arrays import code_counts
from ldpaudit.audits.assumptions.alone import spacing_alone
from ldpaudit.audits.assumptions.rows import noise_clusters
from ldpaudit.audits.assumptions.standing import label_counts
from ldpaudit.audits.interface import AuditContext, BuiltIn, Part, in_part
from ldpaudit.audits.mechanism.evidence import (
    FITTED_SHARE,
    insider_evidence,
    outsider_evidence,
    subgroup_evidence,
)
from ldpaudit.audits.mechanism.reports import report_counts
from ldpaudit.audits.models import aligned_channel, claimed_family, feature_dependence, one_channel
from ldpaudit.audits.registered import power_of_registered
from ldpaudit.error_budget import CLAIMED, PROOFS, REPORTS
from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.assumptions.clusters import one_of_each
from ldpaudit.estimators.epsilon.bounds import class_counts
from ldpaudit.estimators.epsilon.guesses import GuessCounts, detectable_epsilon
from ldpaudit.estimators.epsilon.power import (
    WANTED_POWER,
    Claimed,
    further_rows,
    is_found,
    label_mixtures,
    sharpened,
    smallest_excess,
)
from ldpaudit.estimators.epsilon.release_only import ReleaseOnlyEvidence
from ldpaudit.estimators.epsilon.strongest import PILOT_SHARE, design_bounds
from ldpaudit.mechanisms import RandomizedResponse, lambda_of_epsilon
from ldpaudit.mechanisms.capabilities import PublicModelLabel, SyntheticFeatures
from ldpaudit.mechanisms.channel import Channel, ChannelFamily
from ldpaudit.mechanisms.view import point_channel
from ldpaudit.release import FloatArray, IndexArray
from ldpaudit.result import AtLevel, Bound, Estimate, Note
from ldpaudit.result.stated import (
    CLEAR_GROUP,
    CLEAR_SHARE,
    EXCESS,
    EXCESS_TITLE,
    EXCESS_WITH_TRUTH,
    FEATURE_BLIND,
    ROWS_NEEDED,
    ROWS_WITH_TRUTH,
)

_NEARLY, _HEAD, _GROUP_DRAWS = 1e-9, 4_000, 1000
_ERROR = 0.05  # How often one of the classes may be smaller than the released labels say.
_SHARES_IMPLY = "the claimed channel made the released labels: their shares imply the true ones"
_FAMILY = (
    "a release at a larger ε is made by the claimed channel with every entry raised to one power "
    "(for randomized response: randomized response)"
)
_SAME_MECHANISM = "a release at a larger ε is made by the claimed mechanism at that ε"
_OUTSIDER = (
    FEATURE_BLIND,
    "the claim is right about this release, so that the groups' released labels show how well the "
    "features tell the true labels of their rows",
    "groups as good would be found in a release at a larger ε",
)


def _unavailable(context: AuditContext) -> str | None:
    context = one_channel(context)
    epsilon, dependent = context.claim.epsilon, feature_dependence(context)
    if context.claim.by_stratum:
        return "each stratum has its own claim, and an audit of its own"
    if dependent is not None and context.claim.offers(PublicModelLabel) is None:
        return f"no bound of ε applies: {dependent}"
    if epsilon is not None and math.isinf(epsilon):
        return "the claimed ε is infinite: there is no excess to find"
    if context.release.truth is None and outsiders_channel(context) is None:
        return "there are no true labels, and no channel is declared that could be sharpened"
    return None


def _parts(context: AuditContext) -> Iterator[Part]:
    """Yield the power; raise InsufficientDataError if no bound of ε could be computed at all."""
    # Where bounds count the first stage alone, what is said of rows would not hold for the others.
    one = one_channel(context)
    for part in _power(one):
        name = getattr(part, "id", "")
        if one is context or name not in (CLEAR_GROUP, CLEAR_SHARE, ROWS_NEEDED, ROWS_WITH_TRUTH):
            yield part


def _power(context: AuditContext) -> Iterator[Part]:
    channel, release = aligned_channel(context), context.release
    outsiders, reports = outsiders_channel(context), report_counts(context)
    first = None if channel is None else channel.matrix[:, release.released[0]]
    always = first is not None and bool(np.all(first > 1 - _NEARLY))
    if context.claim.offers(PublicModelLabel) is not None:
        bounded = power_of_registered(context)
        if bounded is None:
            raise InsufficientDataError("no audit of this installation bounds ε of such a claim")
        yield from bounded
    elif release.constant and always:
        # The claim gives everybody one label, and the release has just that.
        given = "a mechanism that gave anybody another label would have done so in one row"
        yield Estimate.estimated(
            EXCESS,
            EXCESS_TITLE,
            0.0,
            unit="nats",
            n=len(release),
            method="every row has the same released label, whatever the true one",
            assumptions=(given,),
        )
    elif release.truth is None:
        assert outsiders is not None
        yield from _outsiders_power(context, outsiders)
    elif insider_evidence(context) is None:
        raise InsufficientDataError("fewer than two classes occur among the true labels")
    elif reports is not None:
        yield from _reports_power(context, reports)
    elif channel is None:
        yield from _unclaimed(context, class_counts(label_counts(context)))
    else:
        yield from _insiders_power(context, channel, class_counts(label_counts(context)))


AUDIT: Final = BuiltIn("power", _parts, _unavailable, needs=("rows",))


def _unclaimed(context: AuditContext, sizes: IndexArray) -> Iterator[Part]:
    release, alpha = context.release, 1 - context.plan.confidence
    if len(release.outputs) != len(release.classes):
        text = "Without a claim the power is computed only where outputs and classes are the same."
        yield Note.info("power", text)
        return
    used = (sizes - (PILOT_SHARE * sizes).astype(np.int64)).astype(np.int64)

    def found(epsilon: float) -> bool:
        matrix = RandomizedResponse.from_epsilon(release.classes, epsilon).channel.matrix
        design = design_bounds(used, matrix)
        return design is not None and is_found(
            lambda draws, rng: design.exceeding(used, matrix, 0.0, alpha, draws, rng)
        )

    yield Estimate.estimated(
        "power.detectable_epsilon",
        "Smallest ε found to be above 0 with 90 % power",
        smallest_excess(found, 0.0),
        unit="nats",
        n=int(sizes.sum()),
        method=f"the smallest ε certified to be above 0 in {WANTED_POWER:.0%} of simulated "
        "releases",
        assumptions=(
            "the mechanism is randomized response",
            "the method is chosen as well as if its ε were known",
        ),
    )


def _insiders_power(context: AuditContext, channel: Channel, sizes: IndexArray) -> Iterator[Part]:
    """Yield the smallest excess, group and share of rows that true labels would have shown."""
    limit, alpha = _limit_of(context, channel), 1 - context.plan.confidence
    target, n = context.plan.max_undetected_excess.at(limit), int(sizes.sum())
    family, given = _family(context, channel)
    claimed = Claimed(sizes, channel, limit, family)
    share = PROOFS.of(CLAIMED["by the claim"], "insider")

    def group(error: float) -> float:
        level = PROOFS.of(error, "subgroups")
        part = claimed.smallest_clear_group(level, FITTED_SHARE / 2)
        return math.ceil(n * part) if math.isfinite(part) else math.inf

    bounds: dict[str, AtLevel] = {
        EXCESS: lambda error: claimed.smallest_excess(error * share),
        ROWS_NEEDED: lambda error: claimed.further_rows(limit + target, error * share),
        CLEAR_SHARE: lambda error: claimed.smallest_clear_share(error * share),
    }
    if not isinstance(subgroup_evidence(context), str):
        bounds[CLEAR_GROUP] = group
    for name, at in bounds.items():
        yield Bound(name, at)
    yield from _excess(
        bounds[EXCESS](alpha),
        n=n,
        method="the smallest excess, shared by all rows, at which the certified bound from true "
        f"labels, at level {1 - alpha * share:.4g}, exceeds the claim in {WANTED_POWER:.0%} of "
        "simulated releases",
        assumptions=(given,),
    )
    yield _rows(bounds[ROWS_NEEDED](alpha), target, (given,))
    for name, title, unit, method, clear in _CLEAR:
        value = bounds[name](alpha) if name in bounds else math.inf
        if math.isfinite(value):
            yield Estimate.estimated(
                name, title, value, unit=unit, n=n, method=method, assumptions=clear
            )


_CLEAR: Any = (
    (
        CLEAR_SHARE,
        "Smallest share of rows in the clear found with 90 % power",
        "proportion",
        "the smallest share of rows, chosen at random, whose true labels are released while all "
        "others are released as claimed, that the bound from all rows finds in simulated releases",
        ("all other rows are released as claimed",),
    ),
    (
        CLEAR_GROUP,
        "Smallest group of rows in the clear found with 90 % power",
        "rows",
        "the smallest group of rows, distinguished by features, whose true labels are released "
        "and that the bound within groups finds in simulated releases",
        (
            "features separate the group's rows from all others, as one range of a column does",
            "its classes have the proportions of all rows, and other rows are released as claimed",
        ),
    ),
)


def _family(context: AuditContext, channel: Channel) -> tuple[ChannelFamily, str]:
    """Return the channel of a release at a larger ε, and what that takes for granted."""
    # In bins, a mechanism on numbers at a larger ε is not its own channel raised to a power.
    found = claimed_family(context)
    return (partial(sharpened, channel), _FAMILY) if found is None else (found, _SAME_MECHANISM)


def _reports_power(context: AuditContext, counts: GuessCounts) -> Iterator[Part]:
    """Yield what the bound from recorded reports could have found."""
    limit = context.claim.epsilon or 0.0

    def excess(alpha: float) -> float:
        level = REPORTS.of(PROOFS.of(alpha, "insider"), "protocol")
        return detectable_epsilon(counts, limit, level) - limit

    yield Bound(EXCESS, excess)
    yield from _excess(
        excess(1 - context.plan.confidence),
        n=counts.candidates,
        method="the smallest excess at which the certified bound from the reports' likelihood "
        f"ratio exceeds the claim with probability {WANTED_POWER:.0%}",
        assumptions=(
            "a protocol at a larger ε lets guesses be made as often as the declared one did here",
        ),
    )


def outsiders_channel(context: AuditContext) -> Channel | None:
    """Return the claimed channel; where numeric labels are grouped, that of single labels."""
    channel, numeric = aligned_channel(context), context.release.numeric
    if channel is None and numeric is not None:
        return point_channel(context.claim, numeric.view)
    return channel


def _outsiders_power(context: AuditContext, channel: Channel) -> Iterator[Part]:
    """Yield the smallest excess that the release alone would have shown, and the rows it needs."""
    # And what the true labels would show: the publisher's audit of the same release. Raise
    # InsufficientDataError if no bound of ε could be computed at all.
    evidence = outsider_evidence(context)
    if isinstance(evidence, str):
        raise InsufficientDataError(f"no bound of ε could be computed: {evidence}")
    limit, alpha = _limit_of(context, channel), 1 - context.plan.confidence
    family, given = _family(context, channel)
    found = _simulated(context, evidence, channel, limit, family)

    def excess(error: float) -> float:
        return smallest_excess(lambda epsilon: found(epsilon, error, 1.0), limit)

    value, target, rows = excess(alpha), context.plan.max_undetected_excess.at(limit), 0.0
    if value > target:
        worse = partial(found, limit + target, alpha)
        # Where even a thousand times as many rows would not do, the features are what is missing.
        rows = further_rows(worse, len(context.release)) if worse(1e3) else math.inf
    yield Bound(EXCESS, excess)
    yield from _excess(
        value,
        n=evidence.bound(alpha).n,
        method="the smallest excess at which the certified bound from the release alone exceeds "
        f"the claim in {WANTED_POWER:.0%} of simulated releases, for the groups of rows that gave "
        "the bound",
        assumptions=(*_OUTSIDER, given),
    )
    yield _rows(rows, target, (*_OUTSIDER, given))
    level = PROOFS.of(alpha, "insider")
    sizes = np.rint(len(context.release) * _all_labels(context, channel)).astype(np.int64)
    if np.count_nonzero(sizes) < 2 or context.release.numeric is not None:
        return
    claimed, shares = Claimed(sizes, channel, limit), (_SHARES_IMPLY,)
    yield Estimate.estimated(
        EXCESS_WITH_TRUTH,
        "Smallest excess ε found with 90 % power if the true labels were given",
        claimed.smallest_excess(level),
        unit="nats",
        method="the power of the bound from true labels, for as many rows",
        assumptions=shares,
    )
    yield Estimate.estimated(
        ROWS_WITH_TRUTH,
        "Further rows for the wanted power if the true labels were given",
        claimed.further_rows(limit + target, level),
        unit="rows",
        method=f"as many rows again until an excess of {target:g} nats is found",
        assumptions=shares,
    )


def _simulated(
    context: AuditContext,
    evidence: ReleaseOnlyEvidence,
    channel: Channel,
    limit: float,
    family: ChannelFamily,
) -> Callable[[float, float, float], bool]:
    """Return whether a release's ε, at a level and a multiple of the rows, is found."""
    # That of the best of the tests, given how good they are: the largest bound is at least its.
    # Each group is taken for the mixture of true labels that explains its released labels best
    # under the claimed channel; at a larger ε a mechanism that replaces features replaces fewer of
    # them, and groups are purer.
    mixtures = [label_mixtures(test.table, channel.matrix) for test in evidence.tests]
    claim, everyone = context.claim.offers(SyntheticFeatures), _all_labels(context, channel)

    def clearer(shares: FloatArray, epsilon: float) -> FloatArray:
        if claim is None or not 0 < claim.noise < 1:
            return shares
        kept = np.clip(shares - claim.noise * everyone, 0.0, None)
        kept = kept / np.maximum(kept.sum(axis=1, keepdims=True), 1e-300)
        replaced = lambda_of_epsilon(epsilon, len(channel.classes))
        return np.asarray((1 - replaced) * kept + replaced * everyone)

    def found(epsilon: float, alpha: float, factor: float) -> bool:
        worse = family(epsilon).matrix
        return any(
            np.mean(
                test.simulated(
                    clearer(shares, epsilon) @ worse,
                    alpha,
                    _GROUP_DRAWS,
                    np.random.default_rng(0),
                    factor,
                )
                > limit
            )
            >= WANTED_POWER
            for test, shares in zip(evidence.tests, mixtures, strict=True)
        )

    return found


def excess_by_released_labels(context: AuditContext, alpha: float) -> float | None:
    """Return an excess that true labels would show, of classes that released labels bound alone."""
    # Of a context without true labels. Counted are rows that share no noise, as far as released
    # labels show it. All classes are as small as these allow at 95 % confidence; None where no
    # excess would be shown then, or they say nothing of the classes.
    context = one_channel(context)
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
    sizes = _smallest_sizes(context if rows is None else part.on_rows(rows), channel)
    if np.count_nonzero(sizes) < 2:
        return None
    family, _ = _family(context, channel)
    claimed = Claimed(sizes, channel, _limit_of(context, channel), family)
    excess = claimed.smallest_excess(PROOFS.of(alpha, "insider"))
    return excess if math.isfinite(excess) else None


def _counted_alone(context: AuditContext) -> IndexArray | None:
    """Return rows that share no noise, as far as released labels show it; None for all."""
    # Distances at which rows share noise are looked for at the head of the file: a model of all
    # rows would take longer than the rest of an audit.
    codes = noise_clusters(context)
    rows = None if codes is None else one_of_each(codes, context.rng("counted rows"))
    whole = len(context.release) <= _HEAD
    head = context if whole else context.on_rows(np.arange(_HEAD))
    spacing = spacing_alone(head)
    if spacing is None:
        return rows
    return spacing.apart(np.arange(len(context.release)) if rows is None else rows)


def _smallest_sizes(context: AuditContext, channel: Channel) -> IndexArray:
    """Return how many have each true label at least, the others the most frequent one."""
    # All classes together are as large with 95 % confidence. Of the rows of a group one counts.
    release, inverse = context.release, np.linalg.pinv(channel.matrix)
    people = len(release) if release.groups is None else len(np.unique(release.groups))
    seen = code_counts(release.released, len(channel.outputs)) / len(release)
    variance = np.maximum(seen @ inverse**2 - (seen @ inverse) ** 2, 0) / people
    implied = _all_labels(context, channel)
    below = NormalDist().inv_cdf(1 - _ERROR / max(len(implied) - 1, 1))
    least = np.maximum(implied - below * np.sqrt(variance), 0)
    sizes = np.floor(people * least).astype(np.int64)
    sizes[implied.argmax()] += people - sizes.sum()
    return np.asarray(sizes)


def _all_labels(context: AuditContext, channel: Channel) -> FloatArray:
    """Return the shares of true labels that the released ones imply, float64 of shape (k,)."""
    table = code_counts(context.release.released, len(channel.outputs))[None]
    return np.asarray(label_mixtures(table, channel.matrix)[0])


def _limit_of(context: AuditContext, channel: Channel) -> float:
    """Return the claimed ε; the channel to the bins of a numeric mechanism may have a smaller."""
    return channel.epsilon if context.claim.epsilon is None else context.claim.epsilon


def _excess(value: float, **details: Any) -> Iterator[Part]:
    """Yield the smallest excess found, and a warning where none would be."""
    yield Estimate.estimated(EXCESS, EXCESS_TITLE, value, unit="nats", **details)
    if math.isinf(value):
        text = (
            "If a release with a larger ε is made as is assumed here, no excess over the claim, "
            "however large, would be found reliably with these rows and features."
        )
        yield Note.warning("power", text)


def _rows(rows: float, target: float, assumptions: tuple[str, ...]) -> Estimate:
    """Return how many further rows find an excess ``target``, in nats."""
    return Estimate.estimated(
        ROWS_NEEDED,
        "Further rows for the power that the policy asks for",
        rows,
        unit="rows",
        method=f"further rows, in the same classes' proportions, until an excess of {target:g} "
        f"nats is found in {WANTED_POWER:.0%} of simulated releases (to about 5 %)",
        assumptions=assumptions,
    )
