"""What could have been missed: the power of the audit in sentences."""

import math
from collections.abc import Iterator

from ldpaudit.reports.parts.part import Section
from ldpaudit.reports.summary.told import Told
from ldpaudit.reports.text.numbers import number, rows, share_up
from ldpaudit.reports.text.wording import missing
from ldpaudit.result import AuditResult, Estimate


def power_told(section: Section) -> Told:
    """Return what a release would have had to leak to be found."""
    result = section.result
    texts = [*_excess(result), *_clear(result), *_with_truth(result)]
    return Told(
        "missed",
        "What could have been missed",
        tuple(texts),
        missing="" if texts else missing(result.audits, "power"),
        more="power",
    )


def _excess(result: AuditResult) -> Iterator[str]:
    excess = result.estimate("power.min_detectable_excess")
    if excess is None:
        return
    if math.isinf(excess.value):
        yield "Not even a large excess over the claim would have been found reliably."
        return
    yield (
        f"With these {rows(result.release.rows)} rows, a release that leaks {_up(excess)} nats "
        f"more than it claims is found with 90 % probability{_if_assumed(excess)}. A smaller "
        "excess may have gone unseen."
    )


def _clear(result: AuditResult) -> Iterator[str]:
    share = result.estimate("power.smallest_clear_share")
    group = result.estimate("power.smallest_clear_group")
    found = [] if share is None else [f"{share_up(share.value)} of the rows at random"]
    if group is not None:
        found.append(f"a group of {rows(group.value, 'up')} rows that features tell apart")
    if found:
        yield f"Found likewise: true labels released for {', or for '.join(found)}."


def _with_truth(result: AuditResult) -> Iterator[str]:
    excess = result.estimate("power.with_truth.min_detectable_excess")
    if excess is not None and math.isfinite(excess.value):
        yield (
            f"With the true labels (--truth) an excess of {_up(excess)} nats would be found"
            f"{_if_assumed(excess)}."
        )


def _up(estimate: Estimate) -> str:
    return number(estimate.value, "up")


def _if_assumed(estimate: Estimate) -> str:
    return ", if its assumptions hold" if estimate.kind == "estimated" else ""
