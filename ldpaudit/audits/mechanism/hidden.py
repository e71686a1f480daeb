"""What counts of all rows hide: rare classes, and numbers whose digits come through the noise."""

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from ldpaudit.audits.assumptions.rows import counted_rows
from ldpaudit.audits.assumptions.standing import label_counts, over_all_rows, standing
from ldpaudit.audits.interface import AuditContext, Part
from ldpaudit.audits.mechanism.bounds import bound_of
from ldpaudit.audits.mechanism.evidence import insider_evidence
from ldpaudit.audits.models import aligned_channel, feature_dependence
from ldpaudit.error_budget import PROOFS_OF_NUMBERS
from ldpaudit.estimators.epsilon.bounds import EpsilonBound
from ldpaudit.estimators.epsilon.consistency import (
    HELD_UP,
    MOST_PEOPLE,
    SMALLEST_P_VALUE,
    RareClass,
    rare_classes,
    usual_outputs,
)
from ldpaudit.estimators.epsilon.lattice import (
    ROUNDED_NUMBERS,
    SAME_NUMBERS,
    LatticeEvidence,
    lattice_evidence,
    repeated_numbers,
)
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.interface import NumericMechanism
from ldpaudit.release import IndexArray, label_table
from ldpaudit.result import Bound, Estimate, Note
from ldpaudit.result.stated import INDEPENDENT, LATTICE, RARE_CLASSES, UNSELECTED

_LISTED: Final = 5
_ODDS: Final = 100
_ON_STEP: Final = 1e-6
_MOST_REPEATED: Final = 0.01  # The share of rows with repeated numbers from which a warning is due.


def rare_parts(context: AuditContext) -> Iterator[Part]:
    """Yield whether rare classes were released as claimed; nothing where it cannot be known."""
    channel = aligned_channel(context)
    if channel is None or context.release.truth is None:
        return
    usual = usual_outputs(channel.matrix, channel.classes, channel.outputs)
    found = rare_classes(_people(context), channel.matrix, channel.epsilon, usual)
    if found is None:
        return
    first, unseen = found.classes[0], [one for one in found.classes if not one.can_be_seen]
    tested = len(unseen) < len(found.classes)  # Decided by the classes' sizes alone.
    title = "Labels of rare classes against the declared channel"
    if tested and found.p_value <= HELD_UP:
        label, output = channel.classes[first.label], channel.outputs[first.output]
        title = (
            f"{first.count} of the {first.people} people of class {label} were released "
            f"{'unchanged' if label == output else f'as {output}'}, which the claim allows "
            f"{_once_in(first.chance)}"
        )
        yield Note.warning("mechanism", f"{title[0].upper()}{title[1:]}.")
    if unseen:
        yield Note.info("mechanism", _unseen(channel, unseen))
    if tested:
        kind, assumptions = standing(context, INDEPENDENT, UNSELECTED)
        yield Estimate.upper_bound(
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


def _people(context: AuditContext) -> IndexArray:
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


def lattice_parts(context: AuditContext) -> Iterator[Part]:
    """Yield what remainders and digits reveal, where outputs are seen in bins alone."""
    numbers, claim = context.release.numeric, context.claim.offers(NumericMechanism)
    if numbers is None or not numbers.view.outputs.grouped or claim is None:
        return
    counted = counted_rows(context)
    rows = np.arange(len(numbers.released)) if counted is None else counted
    if claim.output_values is None:
        seen, step = numbers.released[rows], claim.output_step
        if step is not None:  # Outputs of the claimed noise in steps repeat by design.
            steps = (seen - claim.label_bounds[0]) / step
            seen = seen[np.abs(steps - np.rint(steps)) > _ON_STEP]
        share = repeated_numbers(seen) / len(rows)
        if share >= _MOST_REPEATED:
            text = (
                f"{share:.0%} of the rows have a released number, to the last digit, that another "
                "row has too: the noise has few values, and its digits may reveal it. Draw it from "
                "a sampler made for privacy (ldpaudit privatize), or release rounded numbers."
            )
            yield Note.warning("mechanism", text)
    if numbers.truth is None or feature_dependence(context) is not None:
        return
    rng = context.rng("epsilon", "lattice")
    true, released = numbers.truth[rows], numbers.released[rows]
    found = lattice_evidence(true, released, rng, claim.label_bounds)
    if found is None:
        return
    alpha, insider = 1 - context.plan.confidence, insider_evidence(context)
    bound, known = found.bound(PROOFS_OF_NUMBERS.of(alpha, "lattice")), claim.epsilon
    if insider is not None and known is not None:
        # A larger ε leaves more numbers as they were, too.
        known = max(known, insider.bound(PROOFS_OF_NUMBERS.of(alpha, "insider")).epsilon)
    if known is not None and bound.epsilon > known:
        yield Note.warning("mechanism", _read_off(found, bound))
    words = (
        "the strongest bound from the remainders of true and released numbers (by 2 to 10, or the "
        "digits between labels), chosen on one half of the rows and counted on the other"
    )
    if found.same:
        words += (
            ", and from how often a released number is a true one, or that one rounded: its own "
            "row's, or another's"
        )
    names = LATTICE, "True labels, numbers read off"
    shown = bound_of(context, names, bound, words, "Mironov (2012), for the digits")
    yield Bound.of(shown, lambda level: found.bound(level).epsilon)


def _read_off(found: LatticeEvidence, bound: EpsilonBound) -> str:
    """Return in which way numbers are read off the released ones."""
    if bound.method == ROUNDED_NUMBERS:
        return (
            "The true numbers of some rows stand in the release, rounded, without noise: look for "
            "a branch that rounds numbers and adds none."
        )
    if bound.method == SAME_NUMBERS:
        return (
            "The true numbers of some rows stand in the release, where noise would have changed "
            "them: look for a branch that releases numbers as they are."
        )
    if found.step is None:
        return (
            "The finer digits of the released numbers go with the true ones: something is written "
            "there that is no noise. Release numbers in the steps of the noise."
        )
    if found.modulus is not None:
        return (
            "The noise lies on a lattice: the remainder of the true number, divided by "
            f"{found.modulus * found.step:g}, can be read off the released one more often than "
            "the claim allows. Draw noise in steps of the labels."
        )
    return (
        "The digits of a released number reveal which noise was added: for "
        f"{found.right:.0%} of the rows the true number is read off. The noise takes few "
        "values, or was clipped itself; draw it from a sampler made for privacy."
    )
