"""Channels by stratum: each stratum is audited as a release of its own, with its own claim.

Rows of different strata are never compared, so all that bounds and tests assume of one channel
holds within a stratum.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from ldpaudit.audits.assumptions.stated import RARE_CLASSES
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.listing import AUDITS
from ldpaudit.errors import InsufficientDataError
from ldpaudit.result import Estimate, Finding, Note, in_stratum, together

_AUDITS: Final = ("assumptions", "mechanism", "power")
"""What the check of the claim looks at."""
_DETAILS: Final = (
    "mechanism.epsilon_lower.",
    "mechanism.channel_consistency.",
    "mechanism.total_variation",
    "mechanism.lambda",
    "mechanism.keep_probability",
    "mechanism.binary_flip",
    "mechanism.inconsistent_entries",
)
"""What would be said of every stratum, and decides nothing."""
CONSISTENCY: Final = "mechanism.channel_consistency"


def stratum_contexts(context: AuditContext) -> Iterator[tuple[int, AuditContext]]:
    """Yield the number of each stratum that has rows, from 1, and its context.

    The error probability is shared among them in equal parts.
    """
    strata = context.release.strata
    assert strata is not None
    present = np.unique(strata.codes)
    confidence = 1 - (1 - context.plan.confidence) / len(present)
    shared = replace(context, plan=replace(context.plan, confidence=confidence), whole=None)
    for place in present:
        rows, claim = np.flatnonzero(strata.codes == place), context.claim.by_stratum[place]
        release = replace(context.release.take(rows), strata=None)
        slices = tuple(replace(one, codes=one.codes[rows]) for one in context.plan.slices)
        own = replace(shared, release=release, claim=claim, companions=None, _shared={})
        yield int(place) + 1, replace(own, plan=replace(own.plan, slices=slices))


def strata_finding(context: AuditContext) -> Finding:
    """Return what is found in each stratum, the ids with its number: ``stratum-1.…``."""
    found = [part for number, own in stratum_contexts(context) for part in _of(number, own)]
    every = together(found)
    return replace(every, estimates=(*every.estimates, *_of_all(every)))


def _of(number: int, context: AuditContext) -> Iterator[Finding]:
    from ldpaudit.audits.running import load

    for name in _AUDITS:
        audit = load(AUDITS[name])
        reason = audit.unavailable(context)
        if reason is not None:
            continue
        try:
            finding = audit.run(context).in_section(name)
        except InsufficientDataError as error:
            text = f"Stratum {number}: {error}"
            yield Finding(notes=(Note.info("mechanism", text),))
            continue
        yield _numbered(finding, number)


def _numbered(finding: Finding, number: int) -> Finding:
    """Return the main numbers of a stratum under ids and titles of their own."""
    estimates = tuple(
        one.model_copy(
            update={"id": in_stratum(number, one.id), "title": f"Stratum {number}: {one.title}"}
        )
        for one in finding.estimates
        if not one.id.startswith(_DETAILS)
    )
    notes = tuple(
        note.model_copy(update={"text": f"Stratum {number}: {note.text}"}) for note in finding.notes
    )
    bounds = {in_stratum(number, key): bound for key, bound in finding.bounds.items()}
    return Finding(estimates, notes=notes, bounds=bounds)


def _of_all(finding: Finding) -> Iterator[Estimate]:
    """Yield whether all strata agree with their channels: of each test one p-value, Bonferroni."""
    titles = {
        CONSISTENCY: "Counts of all strata against their declared channels (p-value)",
        RARE_CLASSES: None,
    }
    for name, title in titles.items():
        tests = [e for e in finding.estimates if e.id.endswith(f".{name}")]
        if not tests:
            continue
        smallest = min(tests, key=lambda one: one.value)
        high = None if smallest.high is None else min(len(tests) * smallest.high, 1.0)
        yield smallest.model_copy(
            update={
                "id": name,
                "title": title or smallest.title,
                "value": min(len(tests) * smallest.value, 1.0),
                "high": high,
                "method": f"p-value: the smallest of {len(tests)} strata, Bonferroni",
            }
        )
