"""The assumptions of bounds of ε: whether noise is white, and what that says to people."""

import math
from collections.abc import Iterator

import numpy as np

from ldpaudit.audits.assumptions.alone import agreement_along_the_file
from ldpaudit.audits.assumptions.causes import causes
from ldpaudit.audits.assumptions.changed import changed_rows, foreseen_labels
from ldpaudit.audits.assumptions.doubts import doubt
from ldpaudit.audits.assumptions.noise import WhiteNoise, white_noise
from ldpaudit.audits.assumptions.pattern import (
    FOUND,
    clear_pattern,
    looks_at_numbers,
    pattern,
)
from ldpaudit.audits.assumptions.places import MOST_GROUPED, SEGMENT
from ldpaudit.audits.assumptions.rows import (
    Persons,
    counted,
    equal_share,
    neighbour_bound,
    neighbour_counts,
    noise_of,
    persons,
    shared_with_others,
    tested,
)
from ldpaudit.audits.assumptions.standing import feature_blind, repeated, selected_before
from ldpaudit.audits.assumptions.words import (
    columns_words,
    found_words,
    reading_words,
    stretch_words,
)
from ldpaudit.audits.interface import AuditContext, BuiltIn, Part
from ldpaudit.audits.models import one_channel
from ldpaudit.estimators.assumptions.learner import MOST_LEARNT
from ldpaudit.estimators.epsilon.consistency import SMALLEST_P_VALUE
from ldpaudit.result import Bound, Estimate, Note, stated

_BETS = "Shafer & Vovk (2019); Ville (1939)"
# So many findings are described; the others are of the same cause, as a rule.
_MOST_DESCRIBED = 3


def _unavailable(context: AuditContext) -> str | None:
    words = "the claimed mechanism uses features, or releases several rows as one"
    return None if tested(one_channel(context)) or _by_stratum(context) else words


def _parts(context: AuditContext) -> Iterator[Part]:
    context = one_channel(context)
    if _by_stratum(context):
        yield from _across_strata(context)
        return
    if context.release.truth is not None:
        yield from _white(context)
    yield from _afterwards(context)
    yield from _unknown(context)
    yield from _counted(context)
    yield from _neighbours(context)
    yield from _agreement(context)
    yield from _composed(context)


AUDIT = BuiltIn("assumptions", _parts, _unavailable)


def _p_value(context: AuditContext, name: str, title: str, value: float, method: str) -> Estimate:
    return Estimate.upper_bound(
        name,
        title,
        max(value, SMALLEST_P_VALUE),
        context.plan.confidence,
        unit="p-value",
        n=len(context.release),
        method=method,
        reference=_BETS,
    )


def _by_stratum(context: AuditContext) -> bool:
    """Return whether strata have channels of their own, and noise can be compared across them."""
    release = context.release
    if release.truth is None or release.strata is None:
        return False
    return bool(context.claim.by_stratum)


def _across_strata(context: AuditContext) -> Iterator[Part]:
    """Yield whether noise is white in all rows, given the stratum and the true label of each."""
    # Each stratum answers for its own rows, and no stratum sees noise that serves another, too.
    found = white_noise(context)
    yield _p_value(
        context,
        stated.SHARED_NOISE_TEST,
        "Each row's noise is its own, in whatever stratum (p-value)",
        found.p_value(),
        "p-value: bets that what noise did to a row, given its stratum, follows from what it did "
        "to other rows of any stratum; Bonferroni over all tests" + _sampled(context),
    )
    yield _p_value(
        context,
        stated.SHARED_WITH_OTHERS,
        "No row's noise reveals another person's (p-value)",
        found.others(),
        "p-value: the same bets on rows with different true labels",
    )
    described = dict.fromkeys(found_words(context, one) for one in found.clear(known=True))
    for text in list(described)[:_MOST_DESCRIBED]:
        yield Note.warning("assumptions", text)


def _white(context: AuditContext) -> Iterator[Part]:
    """Yield whether noise is white, by what was there before it."""
    found = noise_of(context)
    blind = feature_blind(context)
    if blind is not None:
        yield _p_value(
            context,
            stated.FEATURE_BLIND_TEST,
            "Noise depends on no column from before it, and on no place in the file (p-value)",
            blind,
            "p-value: bets that groups of rows, stretches of the file and a model of the columns "
            "from before the noise say something of it; Bonferroni over all tests"
            + _sampled(context)
            + _of_copies(context),
        )
    numbers = "; and that it follows the row's number" if looks_at_numbers(context) else ""
    yield _p_value(
        context,
        stated.SHARED_NOISE_TEST,
        "Each row's noise is its own (p-value)",
        min(found.p_value(dependence=False), _along(found), pattern(context)),
        "p-value: bets that what noise did to a row follows from what it did to rows before it: at "
        "any distance in the file, in the order of each column from before the noise, in groups, "
        f"or so that counts come out equal{numbers}; Bonferroni over all tests" + _sampled(context),
    )
    yield _p_value(
        context,
        stated.SHARED_WITH_OTHERS,
        "No row's noise reveals another person's (p-value)",
        shared_with_others(context),
        "p-value: the same bets on rows with different true labels",
    )
    described = dict.fromkeys(found_words(context, one) for one in causes(context))
    if clear_pattern(context):
        described = {FOUND: None, **described}
    for text in list(described)[:_MOST_DESCRIBED]:
        yield Note.warning("assumptions", text)


def _of_copies(context: AuditContext) -> str:
    """Return how often rows may stand in the table, in words; nothing where they seem not to."""
    times = repeated(context)
    if times <= 1:
        return ""
    return (
        f"; rows look repeated up to {math.ceil(times)} times, and copies count as one row at most"
    )


def _sampled(context: AuditContext) -> str:
    """Return which tests look at a sample of so many rows, in words; nothing where none does."""
    rows, samples = len(context.release), list[str]()
    if rows > 2 * MOST_LEARNT:
        samples.append(f"a model learns from, and is tested on, at most {MOST_LEARNT:,} rows each")
    if rows > SEGMENT:
        samples.append(f"orders by a column are of about {SEGMENT:,} rows next to each other")
    if rows > MOST_GROUPED:
        samples.append(f"groups of many rows are of a random sample of {MOST_GROUPED:,} rows")
    return "".join(f"; {one}" for one in samples)


def _along(found: WhiteNoise) -> float:
    known = (one for one in found.findings if one.known and one.departure.family == "stretch")
    return min((one.p_value for one in known), default=1.0)


def _afterwards(context: AuditContext) -> Iterator[Part]:
    """Yield what was done to rows after the noise, which reveals nothing."""
    if context.release.truth is None:
        return
    n = len(context.release)
    fixed = len(np.union1d(changed_rows(context), foreseen_labels(context)))
    if fixed:
        yield Estimate.estimated(
            stated.CHANGED_ROWS,
            "Rows whose released label their features fix, whatever the true one is",
            fixed,
            unit="rows",
            n=n,
            count=fixed,
            method="all rows with a value, or in a range, of a column have one released label, or "
            "a model of other rows foresees it more surely than the claim allows; also those with "
            "the true label that makes it least likely",
            assumptions=("such labels were overwritten after the noise",),
        )
    if selected_before(context):
        yield Estimate.estimated(
            stated.SELECTED,
            "Whether the rows look selected by their released label (1: yes)",
            1,
            method="the counts fit the claimed channel with each column scaled by one factor (G "
            "test), and not the channel itself",
            assumptions=(stated.INDEPENDENT,),
            reference="Deming & Stephan (1940); Wilks (1938)",
        )


def _unknown(context: AuditContext) -> Iterator[Part]:
    """Yield what columns say that may have been computed from released labels."""
    found = doubt(context)
    if found is None:
        return
    yield Estimate.estimated(
        stated.UNKNOWN_COLUMNS,
        "Columns that speak against the claim, unless they were computed from released labels",
        len(found.columns),
        method="with these columns noise is not white, or the release alone bounds ε above the "
        "claim; whether they were there before the noise is not known",
    )
    if found.bound is not None:
        yield Estimate.estimated(
            "assumptions.epsilon_with_unknown",
            "The release alone, were all columns there before the noise",
            found.bound,
            axis="epsilon",
            unit="nats",
            method="the bound from the release alone, the least over leaving out each column that "
            "goes clearly with the released label",
            assumptions=(stated.NOT_DERIVED,),
        )
    yield Note.warning("assumptions", reading_words(context, found))


def _counted(context: AuditContext) -> Iterator[Part]:
    rows, n = counted(context), len(context.release)
    if rows.rows is None:
        return
    count = len(rows.rows)
    yield Estimate.estimated(
        stated.COUNTED_ROWS,
        "Rows that bounds count, since rows share noise",
        count,
        unit="rows",
        n=n,
        count=count,
        method="one row of each group that shares noise, and none at a shared distance",
        assumptions=("all rows that share noise were found",),
    )
    share = "share" if context.release.truth is not None else "may share"
    text = (
        f"Rows {share} noise, so bounds of ε count {count:,} rows instead of {n:,}. Intervals of "
        "attacks, losses and divergences count all rows and are estimates."
    )
    if not rows.holds:
        text += " Even these share noise: no bound of ε holds."
    yield Note.warning("assumptions", text)


def _neighbours(context: AuditContext) -> Iterator[Part]:
    counts, level = neighbour_counts(context), context.plan.confidence
    if counts is None:
        return
    bound = neighbour_bound(context, counts, 1 - level)
    shown = Estimate.lower_bound(
        stated.SHARED_NOISE,
        "What the noise of a neighbour reveals",
        bound.epsilon,
        level,
        axis="epsilon",
        unit="nats",
        n=bound.n,
        method="how often a label is guessed right by who knows a neighbour's true label and so "
        "sees what noise did to it; one pair of rows of each group",
        assumptions=("groups of rows that share noise were released independently",),
        reference="Steinke, Nasr & Jagielski (2023), Theorem 5.2",
    )
    yield Bound.of(shown, lambda alpha: neighbour_bound(context, counts, alpha).epsilon)


def _agreement(context: AuditContext) -> Iterator[Part]:
    """Yield whether released labels go with the features alike along the file."""
    found = agreement_along_the_file(context)
    if found is None:
        return
    yield Estimate.estimated(
        stated.AGREEMENT_TEST,
        "Released labels go with the features alike along the file (p-value)",
        max(found.p_value, SMALLEST_P_VALUE),
        unit="p-value",
        n=len(context.release),
        method="p-value, by a normal approximation: slopes of released labels in what a model "
        "fitted on the other half expects, in windows of the file; more than 1.4 times, or less "
        "than half of, the slope elsewhere. Bonferroni",
        assumptions=("true labels go with the features nearly alike along the file",),
    )
    if found.p_value <= 1 - context.plan.confidence:
        how = "more closely" if found.inside > found.usual else "less closely"
        where = stretch_words(context, np.array([found.start, found.stop - 1]))
        text = (
            f"In {where} released labels go with the features far {how} than elsewhere. Was noise "
            "added there as to all other rows, and were rows shuffled after it? The people there "
            "may be unlike the others, too; true labels (--truth) decide."
        )
        yield Note.warning("assumptions", text)


def _alike(context: AuditContext, found: Persons | None) -> str:
    """Return which rows look like one person's."""
    if found is None or found.column is None:
        return "rows with equal features"
    return f"rows with equal values in {columns_words(context, (found.column,))}"


def _composed(context: AuditContext) -> Iterator[Part]:
    """Yield what a claim per row becomes for a person with several rows."""
    found, epsilon, share = persons(context), context.claim.epsilon, equal_share(context)
    rows = 0 if found is None else found.rows
    if epsilon is None or not (rows or share):
        return
    named = context.release.groups is not None
    if rows:
        make = Estimate.exact if named else Estimate.estimated
        yield make(
            stated.COMPOSED_EPSILON,
            f"Declared ε for all rows of one {'group' if named else 'person'} together",
            rows * epsilon,
            axis="epsilon",
            unit="nats",
            method=f"the largest group has {rows:,} rows with noise of their own; ε adds up",
            assumptions=() if named else (f"{_alike(context, found)} and labels are one person's",),
            reference="Dwork & Roth (2014), Theorem 3.14",
        )
    text = (
        f"{share:.0%} of the rows have equal features. If a person has several rows, each with "
        f"fresh noise, their ε adds up (2 rows: ε = {2 * epsilon:.4g}). Name the column of "
        "persons (--group)."
    )
    if rows and not named:
        who = _alike(context, found)
        text = (
            f"{who[0].upper()}{who[1:]} nearly all have equal true labels: they look like one "
            f"person's. With fresh noise for each, up to {rows:,} rows are ε = "
            f"{rows * epsilon:.4g}, not {epsilon:.4g}. Name the column of persons (--group)."
        )
    elif rows:
        text = (
            f"The same label was released up to {rows:,} times with fresh noise (--group). For a "
            f"person with that many rows the claim is ε = {rows * epsilon:.4g}, not {epsilon:.4g}."
        )
    yield Note.warning("assumptions", text)
