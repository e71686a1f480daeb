"""What pictures show of labels before and after the noise."""

from typing import Annotated

from pydantic import FailFast

from ldpaudit.result.estimate import Frozen, Kind, Number


class ColumnShare(Frozen):
    """How much of the label one column explains, before and after the noise.

    Attributes
    ----------
    name
        The column.
    before
        The share of the true label's variance that it explains, from 0 to 1: Goodman and Kruskal's
        τ for classes, η² for numbers, less what its bins explain by chance; estimated.
    after
        The same of the released label.
    before_counts
        For each bin of the column the sampled rows by group of true labels.
    after_counts
        The same by group of released labels.
    """

    name: str
    before: Number
    after: Number
    before_counts: tuple[tuple[int, ...], ...]
    after_counts: tuple[tuple[int, ...], ...]


class ColumnShares(Frozen):
    """Single columns and the label, before and after the noise, on a sample of rows.

    Attributes
    ----------
    rows
        Sampled rows.
    columns
        Feature columns of the release; ``shares`` are of those that explain most.
    groups
        What ``before_counts`` count: the most frequent labels and the others, or thirds of numbers.
    released_groups
        What ``after_counts`` count.
    shares
        A part for each column, in the order of the file. A bin is a range of numbers with about
        as many rows as any other, by rising value, or a frequent category, the most frequent first;
        missing values and rare categories have bins of their own. No bin has few rows.
    """

    rows: int
    columns: int
    groups: tuple[str, ...]
    released_groups: tuple[str, ...]
    shares: Annotated[tuple[ColumnShare, ...], FailFast()]


class ConfusionEntry(Frozen):
    """How often one true label was released as one label.

    Attributes
    ----------
    true
        The true label, or the range of numbers.
    released
        What was released.
    count
        Rows with both.
    n
        Rows with that true label.
    share
        ``count`` of ``n``.
    low
        The lower end of its interval.
    high
        The upper end of its interval.
    expected
        The entry of the claimed channel; null without a claim of one channel for all rows.
    difference
        ``share`` less ``expected``.
    difference_low
        The lower end of its interval.
    difference_high
        The upper end of its interval.
    """

    true: str
    released: str
    count: int
    n: int
    share: Number
    low: Number
    high: Number
    expected: Number | None = None
    difference: Number | None = None
    difference_low: Number | None = None
    difference_high: Number | None = None


class Confusion(Frozen):
    """True against released labels, and the claimed channel.

    Attributes
    ----------
    level
        The confidence of all intervals together.
    kind
        Certified, unless an assumption is refuted or not known to hold.
    labels
        True labels that have rows.
    outputs
        Released labels.
    pairs
        Pairs of the two; ``entries`` are those that differ most from the claim, or the most
        frequent ones, where these are many.
    assumptions
        Of the intervals.
    entries
        A part for each pair, by true label.
    """

    level: float
    kind: Kind
    labels: int
    outputs: int
    pairs: int
    assumptions: tuple[str, ...] = ()
    entries: Annotated[tuple[ConfusionEntry, ...], FailFast()]
