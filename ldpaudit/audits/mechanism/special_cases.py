"""What counts of all rows hide: rare classes, and numbers whose digits come through the noise."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from ldpaudit.audits.assumptions.rows import counted_rows
from ldpaudit.audits.assumptions.standing import label_counts, over_all_rows, standing
from ldpaudit.audits.assumptions.stated import FEATURE_BLIND, INDEPENDENT, RARE_CLASSES
from ldpaudit.audits.claimed_channel import aligned_channel, feature_dependence
from ldpaudit.audits.epsilon_proofs import LATTICE, LATTICE_SHARE
from ldpaudit.audits.interface import AuditContext
from ldpaudit.estimators.epsilon.consistency import (
    HELD_UP,
    MOST_PEOPLE,
    SMALLEST_P_VALUE,
    RareClass,
    rare_classes,
    usual_outputs,
)
from ldpaudit.estimators.epsilon.lattice import lattice_evidence, repeated_numbers
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.interface import NumericMechanism
from ldpaudit.numeric_labels import NumericLabels
from ldpaudit.release import FloatArray, IndexArray, label_table
from ldpaudit.result import Estimate, Finding, Note

_TITLE: Final = "Labels of rare classes against the declared channel"
_LISTED: Final = 5
_ODDS: Final = 100
_ON_STEP: Final = 1e-6
_MOST_REPEATED: Final = 0.01
"""The share of rows with repeated numbers from which a warning is due."""


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
        label, output = channel.classes[first.label], channel.outputs[first.output]
        title = (
            f"{first.count} of the {first.people} people of class {label} were released "
            f"{'unchanged' if label == output else f'as {output}'}, which the claim allows "
            f"{_once_in(first.chance)}"
        )
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


def lattice_finding(context: AuditContext) -> Finding:
    """Return what remainders and digits reveal, where outputs are seen in bins alone."""
    numbers, claim = context.release.numeric, context.claim.offers(NumericMechanism)
    if numbers is None or not numbers.view.outputs.grouped or claim is None:
        return Finding()
    notes = list[Note]()
    if claim.output_values is None and (again := repeated_numbers(_off_steps(claim, numbers))):
        share = again / len(numbers.released)
        if share >= _MOST_REPEATED:
            text = (
                f"{share:.0%} of the rows have a released number, to the last digit, that another "
                "row has too: the noise has few values, and its digits may reveal it. Draw it from "
                "a sampler made for privacy (ldpaudit privatize), or release rounded numbers."
            )
            notes.append(Note.warning("mechanism", text))
    found = None
    if numbers.truth is not None and feature_dependence(context) is None:
        rows = counted_rows(context)
        rows = np.arange(len(numbers.truth)) if rows is None else rows
        rng = context.rng("epsilon", "lattice")
        found = lattice_evidence(numbers.truth[rows], numbers.released[rows], rng)
    if found is None:
        return Finding(notes=tuple(notes))
    alpha = (1 - context.plan.confidence) * LATTICE_SHARE
    bound, evidence = found.bounds.bound(alpha), found.bounds
    if claim.epsilon is not None and bound.epsilon > claim.epsilon:
        text = (
            "The digits of a released number reveal which noise was added: for "
            f"{found.right:.0%} of the rows the true number is read off. The noise takes few "
            "values; draw it from a sampler made for privacy."
        )
        if found.modulus is not None:
            text = (
                "The noise lies on a lattice: the remainder of the true number, divided by "
                f"{found.modulus * found.step:g}, can be read off the released one more often than "
                "the claim allows. Draw noise in steps of the labels."
            )
        notes.append(Note.warning("mechanism", text))
    kind, assumptions = standing(context, FEATURE_BLIND, INDEPENDENT)
    estimate = Estimate.lower_bound(
        LATTICE,
        "True labels, remainders of numbers",
        bound.epsilon,
        1 - alpha,
        axis="epsilon",
        unit="nats",
        n=bound.n,
        kind=kind,
        method="the strongest bound from the remainders of true and released numbers (by 2 to 10, "
        "or the digits between labels), chosen on one half of the rows and counted on the other",
        assumptions=assumptions,
        reference="Mironov (2012), for the digits",
    )
    return Finding(
        (estimate,),
        notes=tuple(notes),
        bounds={LATTICE: lambda level: evidence.bound(level).epsilon},
    )


def _off_steps(claim: NumericMechanism, numbers: NumericLabels) -> FloatArray:
    """Return the released numbers that are no outputs of the claimed noise in steps."""
    if claim.output_step is None:
        return numbers.released
    steps = (numbers.released - claim.label_bounds[0]) / claim.output_step
    return np.asarray(numbers.released[np.abs(steps - np.rint(steps)) > _ON_STEP])
