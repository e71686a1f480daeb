"""The mechanism: what was claimed, whether the counts agree, and what ε is at least."""

# Exact numbers come from the claim alone. With true labels ε is bounded from below by true against
# released labels, and without (as a cross-check also with them) by the release alone. An audit can
# refute a claim; it cannot prove one. What counts of all rows hide is looked at besides: rare
# classes, and numbers whose digits come through the noise.

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from ldpaudit.arrays import code_counts
from ldpaudit.audits.assumptions.rows import counted, counted_rows
from ldpaudit.audits.assumptions.standing import (
    doubt,
    every_count,
    label_counts,
    over_all_rows,
    standing,
)
from ldpaudit.audits.assumptions.words import reading_words
from ldpaudit.audits.interface import AuditContext, BuiltIn, Part, collected
from ldpaudit.audits.mechanism.evidence import (
    insider_evidence,
    insider_evidence_of_all,
    outsider_evidence,
    subgroup_doubt,
    subgroup_evidence,
)
from ldpaudit.audits.mechanism.reports import report_evidence
from ldpaudit.audits.mechanism.row_channels import row_channels_p_value
from ldpaudit.audits.models import aligned_channel, feature_dependence, one_channel
from ldpaudit.audits.registered import parts_within
from ldpaudit.error_budget import PROOFS, PROOFS_OF_NUMBERS
from ldpaudit.estimators.epsilon.bounds import EpsilonBound
from ldpaudit.estimators.epsilon.consistency import (
    HELD_UP,
    MOST_PEOPLE,
    SMALLEST_P_VALUE,
    RareClass,
    channel_consistency,
    likelihood_ratio_p_value,
    marginal_consistency,
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
from ldpaudit.estimators.epsilon.strongest import SELECTED, BoundEvidence
from ldpaudit.mechanisms.analysis import delta_curve, label_errors, privacy_of, rdp_curve
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.interface import AnalysedMechanism, Mechanism, NumericMechanism
from ldpaudit.release import IndexArray, label_table
from ldpaudit.result import Bound, Curve, Estimate, Note
from ldpaudit.result.numbers import p_words
from ldpaudit.result.stated import (
    CHANNEL_CONSISTENCY,
    DECLARED_EPSILON,
    FEATURE_BLIND,
    INDEPENDENT,
    INSIDER,
    LATTICE,
    MARGINAL_CONSISTENCY,
    NOT_DERIVED,
    OUTSIDER,
    RARE_CLASSES,
    SUBGROUPS,
    UNSELECTED,
)

_LISTED, _ODDS, _ON_STEP = 5, 100, 1e-6
_MOST_REPEATED: Final = 0.01  # The share of rows with repeated numbers from which a warning is due.
_GROUP_SOURCES = {
    "scores": "groups of rows that a model fitted on other rows is surest about",
    "anchors": "balls in feature space, chosen on other rows",
}
_METHODS = {
    "accuracy": "how often the best fixed guess of the label is right, against what an ε-DP "
    "channel allows at these label frequencies",
    "odds-ratio": "exact conditional bound of the odds ratio, which is at most e^{2ε}",
    "two-sided": "how often the labels that make one event likely have it, against labels that do "
    "not; labels and event were chosen by the claim and the labels' frequencies",
}
_BY_OTHER_ROWS: Final = (
    "the stronger of accuracy and two-sided, for labels and outputs that a random third of the "
    "rows chose, whatever the claim leads one to expect; counted in the others, at its own level"
)
_REFERENCES = {
    "accuracy": "Hoeffding (1956), Theorem 5; Ghazi et al. (2021), RR-Top-k",
    "odds-ratio": "Cornfield (1956)",
    "two-sided": "Jagielski, Ullman & Oprea (2020); Cornfield (1956)",
}


def _parts(context: AuditContext) -> Iterator[Part]:
    yield from exact_estimates(context.claim)
    yield from exact_curves(context.claim)
    yield from _in_the_clear(context)
    yield from parts_within("mechanism", context)
    every, context = context, one_channel(context)
    if context.release.strata is not None and context.claim.by_stratum:
        return  # Each stratum is bounded by itself.
    found = collected(
        [*_agreement(context), *rare_parts(context), *lattice_parts(context), *_bounds(context)]
    )
    yield found if counted(context).holds else replace(found, bounds={})
    dependent, truth = feature_dependence(context), context.release.truth
    groups, outsider = subgroup_evidence(context), outsider_evidence(context)
    if dependent is not None:
        yield Note.warning("mechanism", f"Counts of labels alone give no bound of ε: {dependent}.")
        return
    one_class = truth is not None and insider_evidence(context) is None
    if context is not every:
        yield Note.warning(
            "mechanism",
            f"Bounds of ε count the {len(context.release):,} rows of the first stage, whose labels "
            "were released without the features. In later stages each row has a channel of its "
            "own: a larger ε in these alone would not be found.",
        )
    if one_class:
        yield Note.warning(
            "mechanism", "True labels give no bound of ε: fewer than two classes occur among them."
        )
    if truth is not None and not one_class and isinstance(groups, str):
        yield Note.info("mechanism", f"Groups of rows were not bounded by themselves: {groups}.")
    if isinstance(outsider, str):
        yield Note.info("mechanism", f"No bound of ε from the release alone: {outsider}.")
    if context.claim.traits.outputs == "unknown":
        yield Note.info(
            "mechanism",
            "No mechanism is declared. The bounds of ε assume that the released label was drawn "
            "from the true label alone; for a mechanism that uses the features they do not hold.",
        )


AUDIT: Final = BuiltIn("mechanism", _parts, needs=())


def _in_the_clear(context: AuditContext) -> Iterator[Part]:
    """Yield whose labels a claim releases as they are."""
    channel = context.claim.channel
    if channel is None or not channel.unperturbed:
        return
    kept = set(channel.unperturbed)
    outputs = [z for z in range(len(channel.outputs)) if channel.matrix[list(kept), z].any()]
    rows = len(context.release)
    people = int(np.isin(context.release.released, outputs).sum())
    yield Note.warning(
        "mechanism",
        f"The claim releases {len(kept)} of the {len(channel.classes)} labels as "
        f"{'it is' if len(kept) == 1 else 'they are'}: that of {people:,} of the {rows:,} people "
        f"({people / rows:.1%}), whose ε is infinite. Of everybody else it is certain that the "
        f"label is another one; among the other labels ε = {channel.epsilon_of_others:.6g}.",
    )


def exact_estimates(claim: Mechanism) -> Iterator[Estimate]:
    """Yield the exact numbers of a claimed mechanism; none where nothing is claimed."""
    if claim.epsilon is not None:
        yield Estimate.exact(
            DECLARED_EPSILON,
            "Declared ε",
            claim.epsilon,
            axis="epsilon",
            unit="nats",
            method="the largest log-ratio of two entries in one column of the channel",
        )
    if (others := _epsilon_of_others(claim)) is not None:
        yield Estimate.exact(
            "mechanism.epsilon_of_others",
            "Declared ε among the labels that are not released as they are",
            others,
            axis="epsilon",
            unit="nats",
            method="the largest log-ratio of two entries in one column of the channel, without the "
            "labels that have outputs of their own alone; that somebody has one of these, or none, "
            "is certain",
        )
    if claim.channel is not None:
        yield Estimate.exact(
            "mechanism.total_variation",
            "Total variation between two labels' outputs",
            min(claim.channel.total_variation, 1.0),
            unit="proportion",
            method="the largest total variation distance between two rows of the channel",
        )
    yield from claim.exact_estimates()
    errors = label_errors(claim) if claim.traits.numeric else None
    if errors is None:
        return
    where = "over all labels" if errors.every else "at evenly spaced labels"
    yield Estimate.exact(
        "mechanism.max_bias",
        "Largest bias of a released label",
        errors.largest_bias,
        unit="label units",
        method=f"the largest |E[ŷ | y] − y| {where}",
    )
    yield Estimate.exact(
        "mechanism.max_mean_squared_error",
        "Largest mean squared error of a released label",
        float((errors.bias**2 + errors.variance).max()),
        unit="squared label units",
        method=f"the largest E[(ŷ − y)² | y] {where}",
    )


def _epsilon_of_others(claim: Mechanism) -> float | None:
    """Return ε among the labels that are not unperturbed, nats; None where none is."""
    parts = [one.channel for one in claim.by_stratum or ()] or [claim.channel]
    channels = [channel for channel in parts if channel is not None and channel.unperturbed]
    if not channels:
        return None
    return max(c.epsilon_of_others for c in parts if c is not None)


def exact_curves(claim: Mechanism) -> Iterator[Curve]:
    """Yield the Rényi curve and δ(ε) of a claim; none where they are not known, or too much."""
    if claim.epsilon is None or claim.offers(AnalysedMechanism) is None:
        return
    privacy = privacy_of(claim)
    if not privacy.points:
        return
    orders, divergences = zip(*(p for p in rdp_curve(privacy) if math.isfinite(p[0])), strict=True)
    yield Curve(
        id="mechanism.rdp",
        title="Rényi divergence of the declared mechanism",
        section="renyi",
        kind="exact",
        axis="divergence",
        x=orders,
        value=divergences,
        x_label="order α",
        unit="nats",
        method="the largest Rényi divergence of order α between two labels' outputs",
        reference="Busa-Fekete et al. (2023), Definition 4.2",
    )
    grid, deltas = zip(*delta_curve(privacy), strict=True)
    yield Curve(
        id="mechanism.delta",
        title="δ(ε) of the declared mechanism",
        section="renyi",
        kind="exact",
        x=grid,
        value=tuple(min(max(delta, 0.0), 1.0) for delta in deltas),
        x_label="ε",
        unit="proportion",
        method="the smallest δ for which the mechanism is (ε, δ)-label-DP",
    )


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
    shown = _bound(context, names, bound, words, "Mironov (2012), for the digits")
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


def _strongest_words(insider: BoundEvidence, alpha: float) -> str:
    """Return how the strongest bound from true labels came about at level 1 − alpha."""
    if insider.methods == SELECTED:
        return "the odds ratio of two labels and two outputs, which a selection does not change"
    primary, others = insider.design.primary, insider.by_other_rows
    share = insider.share * insider.design.weights[primary]
    words = (
        f"the stronger of {' and '.join(insider.methods)}, here '{insider.bound(alpha).method}'; "
        f"corrected: '{primary}', chosen before the outcomes were seen, has {share:.0%} of the "
        "error probability"
    )
    if others is None:
        return words
    return (
        f"{words}, and {others.share:.0%} goes to labels and outputs that a third of the rows chose"
    )


def _bounds(context: AuditContext) -> Iterator[Part]:
    """Yield every lower bound of ε, at any level too, and the numbers beside it."""
    alpha, reports = 1 - context.plan.confidence, report_evidence(context)
    names, insider = (INSIDER, "True labels, strongest bound"), insider_evidence(context)
    groups, outsider = subgroup_evidence(context), outsider_evidence(context)
    if insider is not None:
        best, words = insider.bound(alpha), _strongest_words(insider, alpha)
        further = () if insider.methods == SELECTED else (UNSELECTED,)
        if reports is None:
            yield _bound(context, names, best, words, None, *further)
        for method in insider.methods:
            own = f"{INSIDER}.{method}", f"True labels, {method.replace('-', ' ')}"
            words = f"{_METHODS[method]}; at its own level, not corrected for the other method"
            bound, reference = insider.by_method(method, alpha), _REFERENCES[method]
            yield _bound(context, own, bound, words, reference, *further)
        others = insider.by_other_rows
        if others is not None and others.methods != SELECTED:
            own = f"{INSIDER}.other-rows", "True labels, as other rows suggest"
            bound = replace(others, share=1.0).bound(alpha)
            yield _bound(context, own, bound, _BY_OTHER_ROWS, None, *further)
        yield from _observed(label_counts(context))
        of_all = insider_evidence_of_all(context)

        def of_the_least(level: float) -> float:
            every = math.inf if of_all is None else of_all.bound(level).epsilon
            return min(insider.bound(level).epsilon, every)

        yield Bound(INSIDER, of_the_least)
    if not isinstance(groups, str):
        words = (
            "the strongest bound within groups of rows whose released label equals the true one "
            "too often, or too rarely; a model found them on one half, the other half is counted, "
            f"both ways round, corrected for {len(groups.tests)} groups"
        )
        # At the level at which it counts against a claim: other bounds have the rest.
        bound = groups.bound(PROOFS.of(alpha, "subgroups"))
        own = SUBGROUPS, "True labels, groups of rows"
        shown = _bound(context, own, bound, words, None, NOT_DERIVED, UNSELECTED)
        yield Bound.of(shown, lambda level: groups.bound(level).epsilon)
        # What noise shows of unknown columns is said with it; this is of the same cause.
        found = None if doubt(context) is not None else subgroup_doubt(context)
        if found is not None:
            yield Note.warning("mechanism", reading_words(context, found))
    if reports is not None:
        # The reports show more than the labels drawn from them.
        words = (
            "how often the declared protocol's likelihood ratio of two labels names the true one, "
            f"for {reports.protocol.guesses:,} guesses of reports in pairs, or a model of all that "
            "the other half's reports hold: the order of lists, digits, values that occur again; "
            "labels and pairs do not look at the reports"
        )
        reference = "Steinke, Nasr & Jagielski (2023), Theorem 5.2"
        shown = _bound(context, names, reports.bound(alpha), words, reference)
        yield Bound.of(shown, lambda level: reports.bound(level).epsilon)
    if not isinstance(outsider, str):
        bound = outsider.bound(alpha)
        sampled = [one.sampled for one in outsider.tests if one.source == bound.method]
        sample = f" (a sample of {sampled[0]:,})" if sampled and sampled[0] else ""
        words = (
            f"how unanimous the released labels of {_GROUP_SOURCES[bound.method]}{sample} are; "
            f"corrected for {len(outsider.tests)} tests"
        )
        reference = "Reeve & Kabán (2019), Theorem 3; Hoeffding (1956), Theorem 5"
        alone = OUTSIDER, "The release alone"
        shown = _bound(context, alone, bound, words, reference, NOT_DERIVED, UNSELECTED)
        yield Bound.of(shown, lambda level: outsider.bound(level).epsilon)


def _observed(counts: IndexArray) -> Iterator[Estimate]:
    table = counts[counts.sum(axis=1) > 0] + 0.5
    if len(table) < 2:
        return
    logs = np.log(table / table.sum(axis=1, keepdims=True))
    yield Estimate.estimated(
        "mechanism.epsilon_observed",
        "Observed frequencies",
        float(np.max(logs.max(axis=0) - logs.min(axis=0))),
        axis="epsilon",
        unit="nats",
        n=int(counts.sum()),
        method="the largest log-ratio of observed frequencies, half a row added to every cell",
        assumptions=(
            FEATURE_BLIND,
            "enough rows in every cell: the largest of several noisy ratios is too large",
        ),
    )


def _bound(
    context: AuditContext,
    names: tuple[str, str],
    bound: EpsilonBound,
    method: str,
    reference: str | None,
    *further: str,
) -> Estimate:
    """Return a lower bound of ε; ``names`` are its id and title, ``further`` more assumptions."""
    kind, assumptions = standing(context, FEATURE_BLIND, INDEPENDENT, *further)
    return Estimate.lower_bound(
        *names,
        bound.epsilon,
        1 - bound.alpha,
        kind=kind,
        axis="epsilon",
        unit="nats",
        n=bound.n,
        method=method,
        assumptions=assumptions,
        reference=reference,
    )


def _agreement(context: AuditContext) -> Iterator[Part]:
    """Compare the counts with the claimed channel."""
    channel, alpha = aligned_channel(context), 1 - context.plan.confidence
    counts: IndexArray | None = None
    if channel is None:
        yield from _agreement_by_row(context)
        return
    every = over_all_rows(context)
    rows, labels = counted(every).rows, every.release.released
    seen = labels if rows is None else labels[rows]
    released = code_counts(seen, len(channel.outputs))
    p_values = [marginal_consistency(released, channel.matrix)]
    if p_values[0] is not None:
        words = (
            "the smallest level at which no mixture of the claimed channel's rows lies within the "
            "simultaneous Clopper–Pearson intervals of the released labels' frequencies"
        )
        title = "Released shares against the declaration (p-value)"
        yield _p_value(context, (MARGINAL_CONSISTENCY, title), p_values[0], words)
    if context.release.truth is not None:
        counts = label_counts(context)
        test = channel_consistency(counts, channel.matrix, alpha)
        if (all_counts := every_count(context)) is not None:
            # The rows counted may be chosen by released labels: the claim must fail for all, too.
            test = max(
                (test, channel_consistency(all_counts, channel.matrix, alpha)),
                key=lambda one: one.p_value,
            )
        p_values.append(test.p_value)
        words = (
            "one exact test of all rows for less or more noise than claimed, and exact binomial "
            f"tests of {test.cells} entries of the channel, Bonferroni; each has half"
        )
        title = "Counts against the declared channel (p-value)"
        names = (CHANNEL_CONSISTENCY, title)
        yield _p_value(context, names, test.p_value, words)
        yield Estimate.lower_bound(
            "mechanism.inconsistent_entries",
            "Entries of the channel outside their intervals",
            test.inconsistent,
            context.plan.confidence,
            method=f"entries of the channel, of {test.cells}, outside their simultaneous intervals",
            assumptions=(INDEPENDENT,),
            reference="Clopper & Pearson (1934)",
        )
        yield Estimate.estimated(
            "mechanism.channel_consistency.g-test",
            "Counts against the declared channel, G test (p-value)",
            max(likelihood_ratio_p_value(counts, channel.matrix), SMALLEST_P_VALUE),
            n=int(counts.sum()),
            unit="p-value",
            method="p-value of the likelihood-ratio (G) test of all entries at once",
            assumptions=("counts are large: the χ² distribution is an approximation",),
            reference="Wilks (1938)",
        )
    shown = [max(p, SMALLEST_P_VALUE) for p in p_values if p is not None]
    least = min(shown, default=1.0)
    if len(shown) * least <= alpha:  # Bonferroni
        p_value = least if least <= SMALLEST_P_VALUE else len(shown) * least
        text = (
            f"The released labels do not follow the claimed mechanism ({p_words(p_value)}). The "
            "claimed λ or ε may be in another parametrisation, or labels may have been changed "
            f"afterwards.{_kept(counts, channel)}"
        )
        yield Note.warning("mechanism", text)


def _agreement_by_row(context: AuditContext) -> Iterator[Part]:
    """Compare the counts with a claim whose channel is another one in each row."""
    found = row_channels_p_value(context)
    if found is None:
        return
    names = CHANNEL_CONSISTENCY, "Counts against the declared channels (p-value)"
    words = (
        "binomial tests of how many labels are unchanged, and how often each released label stands "
        "beside each true one, against the sum of the rows' own channels; Bonferroni, each half"
    )
    yield _p_value(context, names, found, words)
    if found <= 1 - context.plan.confidence:
        yield Note.warning(
            "mechanism",
            f"The released labels do not follow the claimed mechanism ({p_words(found)}): by the "
            "public model, labels were changed more often, or less often, than is claimed.",
        )


def _kept(counts: IndexArray | None, channel: Channel) -> str:
    """Return how many labels were released unchanged, and how many the claim would keep."""
    if counts is None or channel.outputs != channel.classes:
        return ""
    sizes = counts.sum(axis=1)
    expected = round(float(sizes @ channel.matrix.diagonal()))
    return (
        f" {int(np.trace(counts)):,} of {int(sizes.sum()):,} labels are unchanged, where the claim "
        f"leads one to expect {expected:,}."
    )


def _p_value(
    context: AuditContext, names: tuple[str, str], p_value: float, method: str
) -> Estimate:
    """Return a valid p-value as a certified upper bound; ``names`` are its id and title."""
    # Under the claim, data that contradict it as strongly have at most this probability. The level
    # is the one at which the report calls the claim contradicted.
    rows = counted(context).rows
    kind, assumptions = standing(context, INDEPENDENT)
    return Estimate.upper_bound(
        *names,
        max(p_value, SMALLEST_P_VALUE),
        context.plan.confidence,
        kind=kind,
        n=len(context.release) if rows is None else len(rows),
        unit="p-value",
        method=f"p-value: {method}",
        assumptions=assumptions,
        reference="Clopper & Pearson (1934)",
    )
