"""Labels before and after the noise: what each column explains of them, and which became which."""

# Nothing is judged by these numbers: they are for pictures.

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.arrays import FloatArray, IndexArray, IntArray
from ldpaudit.audits.assumptions.standing import label_counts, standing
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.models import aligned_channel, one_channel
from ldpaudit.estimators.explained import (
    Entries,
    bands,
    bins_of_categories,
    bins_of_numbers,
    entries_of,
    explained_of_classes,
    explained_of_numbers,
)
from ldpaudit.models.screening import associations, projected, strongest
from ldpaudit.numeric_labels import NumericCoding, NumericView
from ldpaudit.result.before_after import ColumnShare, ColumnShares, Confusion, ConfusionEntry
from ldpaudit.result.stated import INDEPENDENT

_MOST_ROWS_EXPLAINED: Final = 20_000
_MOST_ARRAYS: Final = 64
"""Of a wider table those that go most clearly with the true label, by a few rows."""
_FEW_ROWS: Final = 5_000
_MOST_COLUMNS: Final = 24
_MOST_ENTRIES: Final = 100
_BANDS: Final = 5
_GROUPS: Final = 3
"""Groups of labels that a histogram tells apart; of more labels all but two are one group."""
_THIRDS: Final = ("lowest third", "middle third", "highest third")


@dataclass(frozen=True)
class _Labels:
    """True or released labels of the sampled rows.

    ``codes``, int32 (n,); ``numbers``, float64 (n,) or None; ``of_row``, int64 (n,): the group
    that a histogram counts a row in, by its place in ``groups``.
    """

    codes: IntArray
    numbers: FloatArray | None
    of_row: IndexArray
    groups: tuple[str, ...]

    def explained(self, bins: IndexArray) -> float:
        """Return the share of their variance that some bins explain."""
        if self.numbers is not None:
            return explained_of_numbers(bins, self.numbers)
        return explained_of_classes(_table(bins, self.codes))

    def counts(self, bins: IndexArray) -> tuple[tuple[int, ...], ...]:
        """Return rows by bin and group."""
        table = _table(bins, self.of_row, len(self.groups))
        return tuple(tuple(map(int, row)) for row in table)


def column_shares(context: AuditContext) -> ColumnShares | None:
    """Return what single columns explain of true and of released labels.

    None without true labels, without features, and where labels were not released row by row.
    """
    release = context.release
    if release.truth is None or release.bags is not None or not release.features.width:
        return None
    rows = context.sample(np.arange(len(release)), _MOST_ROWS_EXPLAINED, "before and after")
    part, names = release.take(rows), dict(_names(context))
    numbers, truth = part.numeric, part.truth
    assert truth is not None
    before = _labels(
        truth, None if numbers is None else numbers.truth, tuple(map(str, release.classes))
    )
    after = _labels(
        part.released,
        None if numbers is None else numbers.released,
        tuple(map(str, release.outputs)),
        before.groups,
    )
    places = np.arange(part.features.width)
    if len(places) > _MOST_ARRAYS:
        few = np.arange(0, len(truth), max(len(truth) // _FEW_ROWS, 1))
        scores = associations(part.features.take(few), [truth[few]])[0]
        places = strongest(scores, _MOST_ARRAYS)
    chosen = projected(part.features, tuple(map(int, places)))
    arrays = [*chosen.numeric.T, *chosen.categorical.T]
    found: dict[str, ColumnShare] = {}
    for place, array in zip(places.tolist(), arrays, strict=True):
        bins = bins_of_numbers(array) if array.dtype.kind == "f" else bins_of_categories(array)
        name = names.get(place, f"column {place + 1}")
        one = ColumnShare(
            name=name,
            before=before.explained(bins),
            after=after.explained(bins),
            before_counts=before.counts(bins),
            after_counts=after.counts(bins),
        )
        # Of a column of lists the entry that explains most.
        if name not in found or one.before > found[name].before:
            found[name] = one
    order = {name: place for place, name in enumerate(dict.fromkeys(names.values()))}
    strong = sorted(found.values(), key=lambda one: -one.before)[:_MOST_COLUMNS]
    return ColumnShares(
        rows=len(rows),
        columns=release.features.columns,
        groups=before.groups,
        released_groups=after.groups,
        shares=tuple(sorted(strong, key=lambda one: order.get(one.name, 0))),
    )


def _names(context: AuditContext) -> Iterator[tuple[int, str]]:
    """Yield the places of arrays and the names of their columns, in the order of the file."""
    release = context.release
    for column in release.columns:
        for place in column.arrays:
            if place < release.features.width:
                yield place, column.name


def _labels(
    codes: IntArray,
    numbers: FloatArray | None,
    names: tuple[str, ...],
    first: tuple[str, ...] = (),
) -> _Labels:
    """Return labels with their groups; those that are called as ``first`` stand in that order."""
    if numbers is not None:
        cuts = np.quantile(numbers, (1 / 3, 2 / 3))
        return _Labels(codes, numbers, np.searchsorted(cuts, numbers, side="right"), _THIRDS)
    known = [names.index(name) for name in first if name in names]
    sizes = np.bincount(codes, minlength=len(names))
    sizes[known] = np.iinfo(np.int64).max - np.arange(len(known))
    order = np.argsort(-sizes, kind="stable")
    alone = order if len(order) <= _GROUPS else order[: _GROUPS - 1]
    places = np.full(len(names), len(alone), dtype=np.int64)
    places[alone] = np.arange(len(alone))
    groups = tuple(names[code] for code in alone)
    return _Labels(
        codes, None, places[codes], groups if len(order) <= _GROUPS else (*groups, "others")
    )


def _table(bins: IndexArray, codes: IndexArray | IntArray, width: int | None = None) -> IndexArray:
    k = width or int(codes.max()) + 1
    flat = np.bincount(bins * k + codes, minlength=(int(bins.max()) + 1) * k)
    return flat.reshape(-1, k).astype(np.int64)


def confusion(context: AuditContext) -> Confusion | None:
    """Return true against released labels; None without true labels, for reports and for bags.

    Of numbers it is of bands, which true labels and the claim choose; None without a claim.
    """
    context = one_channel(context)
    release = context.release
    if release.truth is None or release.bags is not None or release.reports is not None:
        return None
    channel, level = aligned_channel(context), context.plan.confidence
    table = _Table(
        label_counts(context),
        None if channel is None else channel.matrix,
        tuple(map(str, release.classes)),
        tuple(map(str, release.outputs)),
    )
    if release.numeric is not None:
        if channel is None:
            return None
        table = table.banded(release.numeric.view)
    found = entries_of(table.counts, table.claim, 1 - level)
    kind, assumptions = standing(context, INDEPENDENT)
    pairs = np.argwhere(found.n > 0)
    # Those that differ most from the claim first, and of equal ones those that are most frequent.
    order = np.lexsort((-found.count[tuple(pairs.T)], found.p_value[tuple(pairs.T)]))
    kept = pairs[np.sort(order[:_MOST_ENTRIES])]
    return Confusion(
        level=level,
        kind=kind,
        labels=int((found.n[:, 0] > 0).sum()),
        outputs=len(table.outputs),
        pairs=len(pairs),
        assumptions=assumptions,
        entries=tuple(table.entry(found, label, output) for label, output in kept.tolist()),
    )


@dataclass(frozen=True)
class _Table:
    """Rows by true label and output, and the claimed channel.

    ``counts``, int64 (k, m); ``claim``, float64 (k, m) or None; then what labels are called.
    """

    counts: IndexArray
    claim: FloatArray | None
    labels: tuple[str, ...]
    outputs: tuple[str, ...]

    def banded(self, view: NumericView) -> "_Table":
        """Return the table of a few bands of numbers."""
        # A band's claim is the mean of its labels' rows. Its count is a sum of independent draws
        # with several probabilities, which spreads less than a binomial one (Hoeffding 1956).
        assert self.claim is not None
        sizes = self.counts.sum(axis=1).astype(np.float64)
        down, over = bands(sizes, _BANDS), bands(sizes @ self.claim, _BANDS)
        rows, columns = (np.eye(int(one.max()) + 1)[one] for one in (down, over))
        weights = rows.T @ (sizes[:, None] * self.claim) @ columns
        held = np.maximum(rows.T @ sizes, 1.0)[:, None]
        counts = (rows.T @ self.counts @ columns).astype(np.int64)
        names = (_bands_called(view.classes, down), _bands_called(view.outputs, over))
        return _Table(counts, weights / held, *names)

    def entry(self, found: Entries, label: int, output: int) -> ConfusionEntry:
        """Return one pair."""
        at = label, output
        share, low, high = (float(part[at]) for part in (found.share, found.low, found.high))
        one = ConfusionEntry(
            true=self.labels[label],
            released=self.outputs[output],
            count=int(found.count[at]),
            n=int(found.n[at]),
            share=share,
            low=low,
            high=high,
        )
        if self.claim is None:
            return one
        claim = float(self.claim[at])
        against = {"expected": claim, "difference": share - claim}
        against |= {"difference_low": low - claim, "difference_high": high - claim}
        return one.model_copy(update=against)


def _bands_called(coding: NumericCoding, codes: IndexArray) -> tuple[str, ...]:
    """Return what the bands of a coding are called, by their ends."""
    edges = (-np.inf, *coding.edges, np.inf) if coding.values is None else None
    found = []
    for band in range(int(codes.max()) + 1):
        within = np.flatnonzero(codes == band)
        first, last = int(within[0]), int(within[-1])
        if edges is None:
            assert coding.values is not None
            low, high = coding.values[first], coding.values[last]
        else:
            low, high = edges[first], edges[last + 1]
        if low == high:
            found.append(f"{low:.3g}")
        elif np.isinf(low):
            found.append(f"up to {high:.3g}")
        else:
            found.append(f"above {low:.3g}" if np.isinf(high) else f"{low:.3g} to {high:.3g}")
    return tuple(found)
