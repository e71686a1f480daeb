"""Classes with few people: were their labels released as the claim says? Looked at one by one."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from ldpaudit.audits.assumptions.rows import counted_rows
from ldpaudit.audits.assumptions.standing import standing
from ldpaudit.audits.assumptions.stated import INDEPENDENT, RARE_CLASSES
from ldpaudit.audits.claimed_channel import aligned_channel
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.mechanism.evidence import label_counts
from ldpaudit.audits.part import over_all_rows
from ldpaudit.estimators.epsilon.consistency import SMALLEST_P_VALUE
from ldpaudit.estimators.epsilon.rare import (
    HELD_UP,
    MOST_PEOPLE,
    RareClass,
    rare_classes,
    usual_outputs,
)
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.release import IndexArray, label_table
from ldpaudit.result import Estimate, Finding, Note

_TITLE: Final = "Labels of rare classes against the declared channel"
_LISTED: Final = 5
_ODDS: Final = 100


def rare_finding(context: AuditContext) -> Finding:
    """Return whether rare classes were released as claimed; nothing where it cannot be known."""
    channel = aligned_channel(context)
    if channel is None or context.release.truth is None:
        return Finding()
    usual = usual_outputs(channel.matrix, channel.classes, channel.outputs)
    found = rare_classes(_counts(context), channel.matrix, channel.epsilon, usual)
    if found is None:
        return Finding()
    first, unseen = found.classes[0], [one for one in found.classes if not one.can_be_seen]
    notes = [] if not unseen else [Note.info("mechanism", _unseen(channel, unseen))]
    # Whether there is a test is decided by the classes' sizes alone.
    if len(unseen) == len(found.classes):
        return Finding(notes=tuple(notes))
    title = _TITLE
    if found.p_value <= HELD_UP:
        title = f"{_what(channel, first)}, which the claim allows {_once_in(first.chance)}"
        notes.insert(0, Note.warning("mechanism", f"{title[0].upper()}{title[1:]}."))
    kind, assumptions = standing(context, INDEPENDENT)
    estimate = Estimate.upper_bound(
        RARE_CLASSES,
        title,
        max(found.p_value, SMALLEST_P_VALUE),
        context.plan.confidence,
        kind=kind,
        unit="p-value",
        method="p-value: exact binomial tests of the labels of each class with at most "
        f"{MOST_PEOPLE} people ({len(found.classes)} here), most of it for labels released "
        "unchanged; the smallest against its own distribution",
        assumptions=assumptions,
        reference="Tarone (1990)",
    )
    return Finding(estimates=(estimate,), notes=tuple(notes))


def _counts(context: AuditContext) -> IndexArray:
    """Return people by label and output: of a group one row of each true label."""
    every = over_all_rows(context)
    release, groups = every.release, every.release.groups
    if groups is None:
        return label_counts(context)
    rows, k = counted_rows(every), len(release.classes)
    rows = np.arange(len(release)) if rows is None else rows
    rows = rows[np.unique(groups[rows] * k + every.truth[rows], return_index=True)[1]]
    return label_table(every.truth[rows], release.released[rows], k, len(release.outputs))


def _what(channel: Channel, one: RareClass) -> str:
    """Return what the released labels of a class are."""
    label, output = channel.classes[one.label], channel.outputs[one.output]
    released = "unchanged" if label == output else f"as {output}"
    return f"{one.count} of the {one.people} people of class {label} were released {released}"


def _unseen(channel: Channel, classes: Sequence[RareClass]) -> str:
    """Return what so few people cannot show."""
    largest = sorted(classes, key=lambda one: one.all_alike)
    first = largest[0]
    names = [f"{channel.classes[one.label]} ({one.people})" for one in largest[1 : _LISTED + 1]]
    more = f" and {len(largest) - 1 - _LISTED} more" if len(largest) > _LISTED + 1 else ""
    others = f" The same holds for smaller classes: {', '.join(names)}{more}." if names else ""
    who = "its only label" if first.people == 1 else f"the labels of all {first.people} people"
    return (
        f"Too few people have class {channel.classes[first.label]}: even if {who} were released "
        f"unchanged, that would happen {_once_in(first.all_alike)} under the claim, so a full "
        f"disclosure of this class could not be noticed.{others}"
    )


def _once_in(chance: float) -> str:
    """Return a chance in words, never smaller than it is."""
    times = math.floor(1 / max(chance, SMALLEST_P_VALUE))
    if times < 2:
        return "more often than not"
    step = 10 ** max(len(str(times)) - 2, 0) if times >= _ODDS else 1
    return f"once in {times // step * step:,} times"
