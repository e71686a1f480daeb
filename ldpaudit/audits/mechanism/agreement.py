"""Whether the counts of released labels agree with the claim."""

from collections.abc import Iterator

import numpy as np

from ldpaudit.arrays import code_counts
from ldpaudit.audits.assumptions.rows import counted
from ldpaudit.audits.assumptions.standing import every_count, label_counts, over_all_rows, standing
from ldpaudit.audits.interface import AuditContext, Part
from ldpaudit.audits.mechanism.row_channels import row_channels_p_value
from ldpaudit.audits.models import aligned_channel
from ldpaudit.estimators.epsilon.consistency import (
    SMALLEST_P_VALUE,
    channel_consistency,
    likelihood_ratio_p_value,
    marginal_consistency,
)
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.release import IndexArray
from ldpaudit.result import Estimate, Note
from ldpaudit.result.numbers import p_words
from ldpaudit.result.stated import CHANNEL_CONSISTENCY, INDEPENDENT, MARGINAL_CONSISTENCY


def agreement_parts(context: AuditContext) -> Iterator[Part]:
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
    # Of noise that was drawn again a small p-value is chance.
    if len(shown) * least <= alpha and not context.proven:  # Bonferroni
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
    if found <= 1 - context.plan.confidence and not context.proven:
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
