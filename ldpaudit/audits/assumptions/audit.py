"""The assumptions of bounds of ε, tested: one table of tests, and what they say to people."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from ldpaudit.audits.assumptions.rows import (
    BOUND,
    GROUPS,
    RANKS,
    agreement_along_the_file,
    counted,
    equal_share,
    neighbour_bound,
    neighbour_counts,
    noise_clusters,
    rows_of_one,
    shared_with_others,
    tested,
)
from ldpaudit.audits.assumptions.standing import column_evidence, selected, uses_features
from ldpaudit.audits.interface import AuditContext, BuiltIn, Part
from ldpaudit.audits.models import one_channel
from ldpaudit.estimators.assumptions.order import BLOCKS, STRETCH, Stretch
from ldpaudit.estimators.epsilon.consistency import SMALLEST_P_VALUE
from ldpaudit.result import Details, Estimate, Note, stated

_BETS: Final = "Shafer & Vovk (2019); Ville (1939)"
_NATURAL: Final[Details] = {"assumptions": ("no natural feature looks like that",)}


@dataclass(frozen=True)
class Test:
    """One assumption, or what replaces it where it does not hold."""

    # ``found``: from the context to a number; None where it is not tested, or nothing was found.
    # ``method``: How; a callable makes it of the context. ``kind``: a p-value is certified unless
    # estimated; rows are counted. ``details``: what else the estimate states.

    id: str
    title: str
    found: Callable[[AuditContext], float | None]
    method: str | Callable[[AuditContext], str]
    kind: Literal["p-value", "estimated p-value", "rows", "number"]
    details: Details

    def estimate(self, context: AuditContext) -> Estimate | None:
        """Return what was found, in words."""
        value, n = self.found(context), len(context.release)
        if value is None:
            return None
        method = self.method if isinstance(self.method, str) else self.method(context)
        words = Details(method=method) | self.details
        if self.kind == "rows":
            words |= {"unit": "rows", "n": n, "count": int(value)}
        elif self.kind != "number":
            words |= {"unit": "p-value", "n": n}
            value = max(value, SMALLEST_P_VALUE)
        if self.kind == "p-value":
            confidence = context.plan.confidence
            return Estimate.upper_bound(self.id, self.title, value, confidence, **words)
        return Estimate.estimated(self.id, self.title, value, **words)


def _derived_how(context: AuditContext) -> str:
    if context.release.truth is not None:
        return "columns that reveal the released label, and nothing more of the true one"
    return (
        "columns that alone tell the released label better than any channel of the claimed ε lets "
        "a feature, and go with no other column given the released label"
    )


def _shared_how(context: AuditContext) -> str:
    test = noise_clusters(context).test
    kinds = () if test is None else test.by_clusters
    return (
        "p-value: bets that what noise did to two rows goes together, for rows at any fixed "
        f"distance{''.join(f', {kind}' for kind in kinds)}; that blocks of rows have equally many "
        "changed labels; exact tails for stretches of the file. Bonferroni"
    )


# What is tested, in the order in which it is shown.
TESTS: Final = (
    Test(
        stated.FEATURE_BLIND_TEST,
        "Released labels depend on the true label alone, not on the features (p-value)",
        lambda context: column_evidence(context).p_value,
        "p-value: bets on held-out rows that features say something of the released label beyond "
        "the true one, each column alone and all together",
        "p-value",
        {"assumptions": (stated.INDEPENDENT, stated.NOT_DERIVED), "reference": _BETS},
    ),
    Test(
        stated.DERIVED_COLUMNS,
        "Feature columns computed from the released label",
        lambda context: len(column_evidence(context).derived) or None,
        _derived_how,
        "number",
        _NATURAL,
    ),
    Test(
        stated.DOUBTFUL_COLUMNS,
        "Columns that were computed from the released label, or used by the mechanism",
        lambda context: (
            len(column_evidence(context).derived) if column_evidence(context).doubtful else None
        ),
        "derived columns that say nothing of the true label beyond the released one only as far as "
        "so few rows show",
        "number",
        _NATURAL,
    ),
    Test(
        stated.DOUBTFUL_ROWS,
        "Columns in which rows of one person may be equal, or which the mechanism used",
        lambda context: 1 if column_evidence(context).rows_in_doubt else None,
        "features say something of the released label beyond the true one, and rows equal in a few "
        "columns may share noise",
        "number",
        {"assumptions": ("rows of one person share noise, or none do",)},
    ),
    Test(
        "assumptions.epsilon_with_derived",
        "The release alone, with columns that may be computed from the released label",
        lambda context: column_evidence(context).bound_with,
        "the bound from the release alone, were all columns natural features",
        "number",
        {"axis": "epsilon", "unit": "nats", "assumptions": (stated.NOT_DERIVED,)},
    ),
    Test(
        stated.CHANGED_ROWS,
        "Rows whose released label their features fix, whatever the true one is",
        lambda context: len(column_evidence(context).fixed) or None,
        "all rows with a value of a column, or in a leaf of a tree, have one released label, also "
        "those with the true label that makes it least likely; without these rows the features say "
        "nothing of the released label beyond the true one",
        "rows",
        {"assumptions": ("such labels were overwritten after the noise",)},
    ),
    Test(
        stated.SELECTED,
        "Whether rows were left out or repeated because of their released label (1: yes)",
        lambda context: 1 if selected(context) else None,
        "the counts fit the claimed channel with each column scaled by one factor (G test), and "
        "not the channel itself",
        "number",
        {
            "assumptions": (stated.INDEPENDENT,),
            "reference": "Deming & Stephan (1940); Wilks (1938)",
        },
    ),
    Test(
        stated.SHARED_NOISE_TEST,
        "Each row's noise is its own (p-value)",
        lambda context: getattr(noise_clusters(context).test, "p_value", None),
        _shared_how,
        "p-value",
        {"reference": _BETS},
    ),
    Test(
        stated.COUNTED_ROWS,
        "Rows that bounds count, since rows share noise",
        lambda context: None if (rows := counted(context).rows) is None else len(rows),
        "one row of each group that shares noise, and none at a shared distance",
        "rows",
        {"assumptions": ("all rows that share noise were found",)},
    ),
    Test(
        stated.AGREEMENT_TEST,
        "Released labels go with the features alike along the file (p-value)",
        lambda context: getattr(agreement_along_the_file(context), "p_value", None),
        "p-value, by a normal approximation: slopes of released labels in what a model fitted on "
        "the other half expects, in windows of the file; more than 1.4 times, or less than half "
        "of, the slope elsewhere. Bonferroni",
        "estimated p-value",
        {"assumptions": ("true labels go with the features nearly alike along the file",)},
    ),
    Test(
        stated.SHARED_WITH_OTHERS,
        "No row shares noise with another person's (p-value)",
        shared_with_others,
        "p-value: the bets on shared noise, only on rows with different true labels, or at a "
        "distance where labels agree no more than any two",
        "p-value",
        {"assumptions": ("such rows are not one person's",), "reference": _BETS},
    ),
)


def _unavailable(context: AuditContext) -> str | None:
    words = "the claimed mechanism uses features, or releases several rows as one"
    return None if tested(one_channel(context)) else words


def _parts(context: AuditContext) -> Iterator[Part]:
    context = one_channel(context)
    level, counts, epsilon = (
        context.plan.confidence,
        neighbour_counts(context),
        context.claim.epsilon,
    )
    yield from (one for test in TESTS if (one := test.estimate(context)) is not None)
    if counts is not None:
        bound = neighbour_bound(context, counts, 1 - level)
        yield BOUND, lambda alpha: neighbour_bound(context, counts, alpha).epsilon
        yield Estimate.lower_bound(
            BOUND,
            "What the noise of a neighbour reveals",
            bound.epsilon,
            level,
            axis="epsilon",
            unit="nats",
            n=bound.n,
            method="how often a label is guessed right by who knows a neighbour's true label and "
            "so sees what noise did to it; one pair of rows of each group",
            assumptions=("groups of rows that share noise were released independently",),
            reference="Steinke, Nasr & Jagielski (2023), Theorem 5.2",
        )
    rows, named = rows_of_one(context), context.release.groups is not None
    if rows and epsilon is not None:
        make = Estimate.exact if named else Estimate.estimated
        yield make(
            stated.COMPOSED_EPSILON,
            f"Declared ε for all rows of one {'group' if named else 'person'} together",
            rows * epsilon,
            axis="epsilon",
            unit="nats",
            method=f"the largest group has {rows:,} rows with noise of their own; ε adds up",
            assumptions=() if named else ("rows with equal features and labels are one person's",),
            reference="Dwork & Roth (2014), Theorem 3.14",
        )
    for said in (_on_columns, _on_rows, _on_order, _on_agreement, _on_sums):
        yield from said(context)


AUDIT: Final = BuiltIn("assumptions", _parts, _unavailable)


def _on_columns(context: AuditContext) -> Iterator[Note]:
    if count := len(column_evidence(context).derived):
        what = "a column" if count == 1 else f"{count} columns"
        it, were = ("it", "it was") if count == 1 else ("them", "they were")
        text = (
            f"The likeliest explanation of {what} that says more of the released label than a "
            f"feature can: computed from the released label. That gives nothing away, so bounds of "
            f"ε leave {it} out."
        )
        if context.release.truth is None:
            text += (
                f" If {were} there before the labels were randomized, the claim is refuted: the "
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


def _on_rows(context: AuditContext) -> Iterator[Note]:
    found, rows = noise_clusters(context), counted(context)
    if rows.rows is None:
        return
    columns = context.release.columns
    ranked = next((repr(one.name) for one in columns if found.ranked in one.arrays), "")
    ranks = f"j-th rows of each value of {f'column {ranked}' if ranked else 'a column'}"
    words = {GROUPS: "rows of one group (--group)", RANKS: ranks}
    kinds = [words.get(kind, kind) for kind in found.shared]
    if rows.lags is not None:
        period = rows.lags.period
        kinds.append(f"rows {period:,} apart" if period else "neighbouring rows")
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


def _on_order(context: AuditContext) -> Iterator[Note]:
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


def _on_agreement(context: AuditContext) -> Iterator[Note]:
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


def _on_sums(context: AuditContext) -> Iterator[Note]:
    rows, epsilon, share = rows_of_one(context), context.claim.epsilon, equal_share(context)
    if epsilon is None or not (rows or share):
        return
    text = (
        f"{share:.0%} of the rows have equal features. If a person has several rows, each with "
        f"fresh noise, their ε adds up (2 rows: ε = {2 * epsilon:.4g}). Name the column of "
        "persons (--group)."
    )
    if rows and context.release.groups is None:
        text = (
            "Rows with equal features nearly all have equal true labels: they look like one "
            f"person's. With fresh noise for each, up to {rows:,} rows are ε = "
            f"{rows * epsilon:.4g}, not {epsilon:.4g}. Name the column of persons (--group)."
        )
    elif rows:
        text = (
            f"The same label was released up to {rows:,} times with fresh noise (--group). For a "
            f"person with that many rows the claim is ε = {rows * epsilon:.4g}, not {epsilon:.4g}."
        )
    yield Note.warning("assumptions", text)
