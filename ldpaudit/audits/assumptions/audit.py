"""The assumptions of bounds of ε, tested: what was found, in numbers and in words."""

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np

from ldpaudit.audits.assumptions.afterwards import changes
from ldpaudit.audits.assumptions.columns import column_evidence, uses_features
from ldpaudit.audits.assumptions.neighbours import (
    BOUND,
    neighbour_bound,
    neighbour_counts,
    shared_with_others,
)
from ldpaudit.audits.assumptions.persons import equal_share, rows_of_one
from ldpaudit.audits.assumptions.rows import GROUPS, RANKS, counted, noise_clusters, tested
from ldpaudit.audits.assumptions.stated import (
    AGREEMENT_TEST,
    COMPOSED_EPSILON,
    COUNTED_ROWS,
    DERIVED_COLUMNS,
    DOUBTFUL_COLUMNS,
    DOUBTFUL_ROWS,
    FEATURE_BLIND_TEST,
    INDEPENDENT,
    NOT_DERIVED,
    SHARED_NOISE_TEST,
    SHARED_WITH_OTHERS,
)
from ldpaudit.audits.assumptions.unlabelled import agreement_along_the_file
from ldpaudit.audits.interface import AuditContext, Counts
from ldpaudit.estimators.assumptions.order import Stretch
from ldpaudit.estimators.assumptions.shared_noise import BLOCKS, STRETCH
from ldpaudit.estimators.epsilon.consistency import SMALLEST_P_VALUE
from ldpaudit.result import Estimate, Finding, Note

_BETS: Final = "Shafer & Vovk (2019); Ville (1939)"


class AssumptionsAudit:
    """Tests that noise is drawn for each row, from its true label alone."""

    id = "assumptions"
    counts: Counts = "rows"

    def unavailable(self, context: AuditContext) -> str | None:
        """Return why nothing can be tested, None where something can."""
        if tested(context):
            return None
        return "the claimed mechanism uses features, or releases several rows as one"

    def run(self, context: AuditContext) -> Finding:
        """Run it."""
        bounds: dict[str, Callable[[float], float]] = {}
        counts = neighbour_counts(context)
        if counts is not None:
            bounds[BOUND] = lambda alpha: neighbour_bound(context, counts, alpha).epsilon
        estimates = (
            *(*_columns(context), *changes(context), *_rows(context), *_agreement(context)),
            *(*_neighbours(context), *_sums(context)),
        )
        makers = (_column_notes, _row_notes, _order_notes, _agreement_notes, _sum_notes)
        notes = tuple(note for make in makers for note in make(context))
        return Finding(estimates=estimates, notes=notes, bounds=bounds)


def _columns(context: AuditContext) -> Iterator[Estimate]:
    evidence = column_evidence(context)
    if evidence.p_value is not None:
        yield Estimate.upper_bound(
            FEATURE_BLIND_TEST,
            "Released labels depend on the true label alone, not on the features (p-value)",
            max(evidence.p_value, SMALLEST_P_VALUE),
            context.plan.confidence,
            n=len(context.release),
            unit="p-value",
            method="p-value: bets on held-out rows that features say something of the released "
            "label beyond the true one, each column alone and all together",
            assumptions=(INDEPENDENT, NOT_DERIVED),
            reference=_BETS,
        )
    if evidence.derived:
        yield Estimate.estimated(
            DERIVED_COLUMNS,
            "Feature columns computed from the released label",
            len(evidence.derived),
            method="columns that tell the released label, and nothing of the true one beyond it"
            if context.release.truth is not None
            else "columns that alone tell the released label better than any channel of the "
            "claimed ε lets a feature, and go with no other column given the released label",
            assumptions=("no natural feature looks like that",),
        )
    if evidence.doubtful:
        yield Estimate.estimated(
            DOUBTFUL_COLUMNS,
            "Columns that were computed from the released label, or used by the mechanism",
            len(evidence.derived),
            method="derived columns that say nothing of the true label beyond the released one "
            "only as far as so few rows show",
            assumptions=("no natural feature looks like that",),
        )
    if evidence.rows_in_doubt:
        yield Estimate.estimated(
            DOUBTFUL_ROWS,
            "Columns in which rows of one person may be equal, or which the mechanism used",
            1,
            method="features say something of the released label beyond the true one, and rows "
            "equal in a few columns may share noise",
            assumptions=("rows of one person share noise, or none do",),
        )
    if evidence.bound_with is not None:
        yield Estimate.estimated(
            "assumptions.epsilon_with_derived",
            "The release alone, with columns that may be computed from the released label",
            evidence.bound_with,
            axis="epsilon",
            unit="nats",
            method="the bound from the release alone, were all columns natural features",
            assumptions=(NOT_DERIVED,),
        )


def _column_notes(context: AuditContext) -> Iterator[Note]:
    count = len(column_evidence(context).derived)
    if count:
        what = "a column" if count == 1 else f"{count} columns"
        it = "it" if count == 1 else "them"
        text = (
            f"The likeliest explanation of {what} that says more of the released label than a "
            f"feature can: computed from the released label. That gives nothing away, so bounds of "
            f"ε leave {it} out."
        )
        if context.release.truth is None:
            text += (
                f" If {it} was there before the labels were randomized, the claim is refuted: the "
                "true labels (--truth) decide."
            )
        yield Note.warning("assumptions", text)
    if uses_features(context):
        text = (
            "The released labels depend on the features, or on the row's place in the file, also "
            "given the true label: labels were not released as claimed. Bounds that count labels "
            "alone do not hold for such a mechanism and are marked estimated."
        )
        yield Note.warning("assumptions", text)


def _rows(context: AuditContext) -> Iterator[Estimate]:
    found, rows = noise_clusters(context), counted(context)
    if found.test is not None:
        yield Estimate.upper_bound(
            SHARED_NOISE_TEST,
            "Each row's noise is its own (p-value)",
            max(found.test.p_value, SMALLEST_P_VALUE),
            context.plan.confidence,
            n=len(context.release),
            unit="p-value",
            method="p-value: bets that what noise did to two rows goes together, for rows at any "
            f"fixed distance{''.join(f', {kind}' for kind in found.test.by_clusters)}; that blocks "
            "of rows have equally many changed labels; exact tails for stretches of the file. "
            "Bonferroni",
            reference=_BETS,
        )
    if rows.rows is not None:
        yield Estimate.estimated(
            COUNTED_ROWS,
            "Rows that bounds count, since rows share noise",
            len(rows.rows),
            unit="rows",
            count=len(rows.rows),
            n=len(context.release),
            method="one row of each group that shares noise, and none at a shared distance",
            assumptions=("all rows that share noise were found",),
        )


def _order_notes(context: AuditContext) -> Iterator[Note]:
    """Yield what the order of rows shows of the noise."""
    found = noise_clusters(context)
    if found.ordered:
        text = (
            "The rows seem to be in an order made from the released labels, so noise was not "
            "tested along the file. Audit the file in the order in which noise was added."
        )
        yield Note.info("assumptions", text)
    if STRETCH in found.along and found.test is not None:
        one = found.test.order.stretch
        labels = context.release.outputs == context.release.classes
        did = "changed" if labels and context.release.numeric is None else "raised"
        text = (
            f"In {_rows_of_file(context, one)} noise {did} {one.inside:.0%} of the labels, where "
            f"{one.usual:.0%} is usual. Look at how these rows were released: as they are, by "
            "other code, or moved there by what noise did to them."
        )
        yield Note.warning("assumptions", text)
    if BLOCKS in found.along and found.test is not None:
        size = found.test.order.blocks.size
        text = (
            f"Blocks of {size:,} rows have nearly the same number of changed labels each, so that "
            f"{size - 1:,} known labels reveal the last. Draw noise for each row on its own."
        )
        yield Note.warning("assumptions", text)


def _agreement(context: AuditContext) -> Iterator[Estimate]:
    found = agreement_along_the_file(context)
    if found is not None:
        yield Estimate.estimated(
            AGREEMENT_TEST,
            "Released labels go with the features alike along the file (p-value)",
            max(found.p_value, SMALLEST_P_VALUE),
            n=len(context.release),
            unit="p-value",
            method="p-value, by a normal approximation: slopes of released labels in what a model "
            "fitted on the other half expects, in windows of the file; more than 1.4 times, or "
            "less than half of, the slope elsewhere. Bonferroni",
            assumptions=("true labels go with the features nearly alike along the file",),
        )


def _agreement_notes(context: AuditContext) -> Iterator[Note]:
    found = agreement_along_the_file(context)
    if found is not None and found.p_value <= 1 - context.plan.confidence:
        how = "more closely" if found.inside > found.usual else "less closely"
        text = (
            f"In {_rows_of_file(context, found)} released labels go with the features far {how} "
            "than elsewhere. Was noise added there as to all other rows, and were rows shuffled "
            "after it? The people there may be unlike the others, too; true labels (--truth) "
            "decide."
        )
        yield Note.warning("assumptions", text)


def _rows_of_file(context: AuditContext, stretch: Stretch) -> str:
    places = context.release.places
    ends = np.array([stretch.start, stretch.stop - 1])
    first, last = (ends if places is None else places[ends]) + 1
    return f"rows {first:,} to {last:,}"


def _equal_rank(context: AuditContext, array: int) -> str:
    names = [column.name for column in context.release.columns if array in column.arrays]
    return f"j-th rows of each value of {f'column {names[0]!r}' if names else 'a column'}"


def _row_notes(context: AuditContext) -> Iterator[Note]:
    found, rows = noise_clusters(context), counted(context)
    if rows.rows is None:
        return
    words = {GROUPS: "rows of one group (--group)", RANKS: _equal_rank(context, found.ranked)}
    kinds = [words.get(kind, kind) for kind in found.shared]
    if rows.lags is not None and rows.lags.period:
        kinds.append(f"rows {rows.lags.period:,} apart")
    elif rows.lags is not None:
        kinds.append("neighbouring rows")
    share = "share noise" if found.test is not None else "may share noise"
    if RANKS in found.shared:
        share += ": one known label reveals others (is a seed set again for each value?)"
    text = (
        f"Some {' and '.join(kinds)} {share}, so bounds of ε count {len(rows.rows):,} rows "
        f"instead of {len(context.release):,}. Intervals of attacks, losses "
        "and divergences count all rows and are estimates."
    )
    if not rows.holds:
        text += " Even these share noise: no bound of ε holds."
    yield Note.warning("assumptions", text)


def _neighbours(context: AuditContext) -> Iterator[Estimate]:
    others = shared_with_others(context)
    if others is not None:
        yield Estimate.upper_bound(
            SHARED_WITH_OTHERS,
            "No row shares noise with another person's (p-value)",
            max(others, SMALLEST_P_VALUE),
            context.plan.confidence,
            n=len(context.release),
            unit="p-value",
            method="p-value: the bets on shared noise, only on rows with different true labels, or "
            "at a distance where labels agree no more than any two",
            assumptions=("such rows are not one person's",),
            reference=_BETS,
        )
    counts = neighbour_counts(context)
    if counts is None:
        return
    bound = neighbour_bound(context, counts, 1 - context.plan.confidence)
    yield Estimate.lower_bound(
        BOUND,
        "What the noise of a neighbour gives away",
        bound.epsilon,
        context.plan.confidence,
        axis="epsilon",
        unit="nats",
        n=bound.n,
        method="how often a label is guessed right by who knows a neighbour's true label and so "
        "sees what noise did to it; one pair of rows of each group",
        assumptions=("groups of rows that share noise were released independently",),
        reference="Steinke, Nasr & Jagielski (2023), Theorem 5.2",
    )


def _sums(context: AuditContext) -> Iterator[Estimate]:
    rows = rows_of_one(context)
    if not rows or context.claim.epsilon is None:
        return
    named = context.release.groups is not None
    make = Estimate.exact if named else Estimate.estimated
    yield make(
        COMPOSED_EPSILON,
        f"Declared ε for all rows of one {'group' if named else 'person'} together",
        rows * context.claim.epsilon,
        axis="epsilon",
        unit="nats",
        method=f"the largest group has {rows:,} rows with noise of their own; ε adds up",
        assumptions=() if named else ("rows with equal features and labels are one person's",),
        reference="Dwork & Roth (2014), Theorem 3.14",
    )


def _sum_notes(context: AuditContext) -> Iterator[Note]:
    rows, epsilon = rows_of_one(context), context.claim.epsilon
    if epsilon is None:
        return
    if rows and context.release.groups is None:
        text = (
            "Rows with equal features nearly all have equal true labels: they look like one "
            f"person's. With fresh noise for each, up to {rows:,} rows are ε = "
            f"{rows * epsilon:.4g}, not {epsilon:.4g}. Name the column of persons (--group)."
        )
        yield Note.warning("assumptions", text)
    elif rows:
        text = (
            f"The same label was released up to {rows:,} times with fresh noise (--group). For a "
            f"person with that many rows the claim is ε = {rows * epsilon:.4g}, not {epsilon:.4g}."
        )
        yield Note.warning("assumptions", text)
    elif share := equal_share(context):
        text = (
            f"{share:.0%} of the rows have equal features. If a person has several rows, each with "
            f"fresh noise, their ε adds up (2 rows: ε = {2 * epsilon:.4g}). Name the column of "
            "persons (--group)."
        )
        yield Note.warning("assumptions", text)
