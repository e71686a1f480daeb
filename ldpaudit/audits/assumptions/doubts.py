"""Columns that may have been computed from released labels, and what they say against a claim."""

import math
from dataclasses import dataclass
from typing import Final

from ldpaudit.audits.assumptions.causes import named_in_doubt, telling, without_which
from ldpaudit.audits.assumptions.changed import without_changed
from ldpaudit.audits.assumptions.noise import NoiseFinding
from ldpaudit.audits.assumptions.rows import counted, dependence_of, shared, tested
from ldpaudit.audits.assumptions.without_truth import evidence_of
from ldpaudit.audits.before import unknown
from ldpaudit.audits.interface import AuditContext, remembered
from ldpaudit.audits.models import aligned_channel
from ldpaudit.models.screening import association

# What a policy's limit is where nothing is claimed: no natural feature reveals more, in nats.
_DETERMINED: Final = 4.0
# Columns that are left out one by one, the clearest with the released label.
_MOST_SUSPECTS: Final = 6


@dataclass(frozen=True)
class Doubt:
    """What columns say that may have been computed from released labels after the noise.

    ``columns``: array places, the clearest first, without which nothing would speak against it;
    ``finding``: by white noise, or None where a bound says it; ``bound``: the bound of ε that they
    would give, in nats, the least over leaving out each; ``with_all``: with none left out;
    ``of``: the rows in which it was found, None for all.
    """

    columns: tuple[int, ...]
    finding: NoiseFinding | None = None
    bound: float | None = None
    with_all: float | None = None
    of: AuditContext | None = None


@remembered("assumptions.doubt")
def doubt(context: AuditContext) -> Doubt | None:
    """Return what unknown columns say against the claim, None where they say nothing."""
    if not tested(context):
        return None
    if context.release.truth is None:
        return _doubt_alone(context)
    apart, of = dependence_of(context), context
    found = [one for one in shared(context) if not one.known]
    if not found and apart is not None:
        found = [one for one in apart.clear(known=False) if one.is_dependence]
        rows = counted(context).rows
        of = context.on_rows(rows) if shared(context) and rows is not None else context
    left = without_changed(context)
    if not found or (left is not None and not left.clear(known=False)):
        return None
    return Doubt(named_in_doubt(of, found), telling(found)[0], of=of)


def _doubt_alone(context: AuditContext) -> Doubt | None:
    """Return the unknown columns that bound ε above the claim, the single one that does, if any."""
    limit = largest_expected(context)
    places = unknown(context)
    with_all = _bound_without(context, ()) if places and limit < math.inf else 0.0
    if with_all <= limit:
        return None
    bounds = {j: _bound_without(context, (j,)) for j in _suspects(context, places)}
    alone = [j for j, bound in bounds.items() if bound <= limit]
    least = min(bounds.values(), default=math.inf)
    some = tuple(alone) or without_which(
        context, lambda some: _bound_without(context, some) > limit, _MOST_SUSPECTS
    )
    return Doubt(some, bound=least, with_all=with_all)


def _suspects(context: AuditContext, places: tuple[int, ...]) -> list[int]:
    """Return the unknown columns that go most clearly with the released label."""
    release = context.release
    scores = association(release.features, release.released)
    order = sorted(places, key=lambda j: -scores[j])
    return order[:_MOST_SUSPECTS]


def largest_expected(context: AuditContext) -> float:
    """Return the claimed ε; where nothing is claimed, what no natural feature reveals."""
    channel = aligned_channel(context)
    limit = context.claim.epsilon
    if limit is None and channel is not None:
        limit = channel.epsilon
    return _DETERMINED if limit is None or math.isinf(limit) else limit


def _bound_without(context: AuditContext, columns: tuple[int, ...]) -> float:
    """Return the bound of ε from the release alone without some columns, in nats; 0 for none."""
    evidence = evidence_of(context, context.release.features.without(columns))
    if isinstance(evidence, str):
        return 0.0
    return evidence.bound(1 - context.plan.confidence).epsilon
