"""True classes with fewer than ten people: no number of an audit rests on them.

Whatever is computed from true labels, many numbers together would tell how many people a small
class has, however each is rounded. So its rows are left out before anything is computed, and some
of the largest class: what is shown is a function of the rows that are left. How many are left out
follows from the number of small classes alone, as if each had nine people; a class without anybody
is treated alike. Which rows are left out follows from the true labels alone, so audits with other
seeds, or of other releases, tell no more.

What was released of the rows that are left out is no secret either: it is the release less what is
told of the others. So the released label of a small class counts as that of the largest: then,
under randomized response, what is released of a small class has the same law as what is released
of the rows that are left out with it, and tells nothing of how many they are.

Leaving rows out by their true label keeps every bound valid: given the true labels, the released
ones of the rows that are left are what they were. To count one released label as another is
post-processing: what is claimed of the release holds for it, and its channel is known. But it also
hides what a faulty mechanism does with that label. So labels that refute the claim, by their counts
or by what they depend on, are left as they are; each test takes an honest release for one of those
once in 10,000 times. Of rows of one stated group, which may share their noise, one counts.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Final

import numpy as np

from ldpaudit.arrays import BoolArray, IndexArray, IntArray
from ldpaudit.audits.assumptions.audit import AssumptionsAudit
from ldpaudit.audits.assumptions.stated import FEATURE_BLIND_TEST, SHARED_WITH_OTHERS
from ldpaudit.audits.claimed_channel import aligned_channel
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.part import of_rows
from ldpaudit.estimators.assumptions.clusters import one_of_each
from ldpaudit.estimators.epsilon.consistency import channel_consistency
from ldpaudit.randomness import child_generator
from ldpaudit.release import (
    Release,
    ReleasedLabels,
    RepeatedReleases,
    TrueLabels,
    label_table,
)
from ldpaudit.result import SMALLEST_CELL, Note

MOST_CLASSES: Final = 20
"""With more classes, seldom all large, none is shown separately and no row is left out."""
_REFUTED: Final = 1e-4
"""Up to this p-value the claimed channel is refuted by the labels as they were released."""
_FEW: Final = (
    f"Some true classes have fewer than {SMALLEST_CELL} people{{where}}, or none: their rows were "
    "left out, with others of the largest class, {left} of {rows} rows in all, so that no count "
    "tells how many they are.{merged} What their labels give away was not measured: the answer, "
    "and what it says would have been found, is about the other rows alone"
)
_OF_ROWS: Final = (
    f"Counts are of rows: some true classes have {SMALLEST_CELL} rows or more of fewer than "
    f"{SMALLEST_CELL} people (--group), and are not hidden. If how many they are is secret, "
    "merge rare labels before the release, or audit one row of each person"
)
_MERGED: Final = " Where one of their labels was released, it counts as that of the largest class."
_TOO_FEW: Final = (
    f"Fewer than two true classes have {SMALLEST_CELL} people or more: the true labels were not "
    "used, as every number would tell how many have which. This is the outsider's audit; to give "
    "the labels again changes nothing, to merge rare ones before a release does"
)


def without_small_classes(context: AuditContext) -> tuple[AuditContext, tuple[Note, ...]]:
    """Return the context without the people of small true classes, and what to say of it."""
    release = context.release
    if release.truth is None or release.bags is not None:
        return context, ()
    of_rows_alone = _of_rows_alone(release)
    kept = large_classes([(release.truth, len(release.classes))], joint_strata([release]))
    if kept is None:
        alone = replace(context, release=without_truth(release))
        return alone, (Note.warning("reading", f"{_TOO_FEW}."),)
    if len(kept) == len(release):
        return context, of_rows_alone
    left = len(release) - len(kept)
    words = {
        "where": "" if release.strata is None else " in a stratum",
        "left": f"{left:,}",
        "rows": f"{len(release):,}",
    }
    small = merged(replace(of_rows(context, kept), left_out=left), release.truth)
    if context.guesses is not None:
        context.guesses.people, context.guesses.counts_as = kept, small.counts_as
    as_others = _MERGED if small.counts_as else ""
    few = Note.warning("reading", f"{_FEW.format(**words, merged=as_others)}.")
    return small, (few, *of_rows_alone)


def _of_rows_alone(release: Release) -> tuple[Note, ...]:
    """Return a warning of classes that are large by their rows, and small by their people."""
    k = len(release.classes)
    if release.truth is None or release.groups is None or k > MOST_CLASSES:
        return ()
    rows = np.bincount(release.truth, minlength=k)
    pairs = np.unique(np.stack([release.truth, release.groups]), axis=1)
    people = np.bincount(pairs[0], minlength=k)
    few = (rows >= SMALLEST_CELL) & (people < SMALLEST_CELL)
    return (Note.warning("reading", f"{_OF_ROWS}."),) if few.any() else ()


def merged(context: AuditContext, everyone: IntArray) -> AuditContext:
    """Return the context without the classes that nobody is left of, where that can be done.

    Their released labels count as that of the largest class of ``everyone``, the true labels before
    rows were left out. Not where what is released of a row is no label alone, or depends on the
    row; nor where tables beside it hold its classes, where only one released label would be left
    (nothing could then be found, whatever was done), or where the counts refute the claim.
    """
    release, channel = context.release, context.claim.label_channel
    labels = (release.bags, release.reports, release.strata, release.numeric)
    tables = (release.synthetic, release.public, release.public_posterior, release.canaries)
    depends = context.claim.traits.label_depends_on_features
    if depends or any(one is not None for one in (*labels, *tables)):
        return context
    sizes = np.bincount(context.truth, minlength=len(release.classes))
    largest = release.classes[_largest(everyone)]
    gone = [label for label, size in zip(release.classes, sizes, strict=True) if not size]
    if largest in gone or len(sizes) > MOST_CLASSES:
        return context
    if largest not in release.outputs or (channel is not None and largest not in channel.outputs):
        return context
    counts_as = dict.fromkeys(gone, largest)
    outputs = tuple(label for label in release.outputs if label not in counts_as)
    if len(outputs) < 2 or _refuted(context):
        return context
    seen = [outputs.index(counts_as.get(label, label)) for label in release.outputs]
    places = np.flatnonzero(sizes)
    codes = np.zeros(len(sizes), dtype=np.int32)
    codes[places] = np.arange(len(places))
    merged = replace(
        release,
        classes=tuple(release.classes[y] for y in places),
        outputs=outputs,
        truth=TrueLabels(codes[context.truth]),
        released=ReleasedLabels(np.array(seen, dtype=np.int32)[release.released]),
    )
    numbers = tuple(int(y) + 1 for y in places)
    return replace(context, release=merged, counts_as=counts_as, numbers=numbers)


def _refuted(context: AuditContext) -> bool:
    """Return whether the labels as they were released refute the claim.

    By how often each is released as which, or by what else they depend on: features, other rows.
    """
    context = replace(context, _shared={})
    channel, release, assumed = aligned_channel(context), context.release, AssumptionsAudit()
    if channel is None:
        return False
    # Rows of one group may share their noise, and would refute a claim that each of them keeps.
    rows: slice | IndexArray = slice(None)
    if release.groups is not None:
        rows = one_of_each(release.groups, child_generator(0, "one row of each group"))
    counts = label_table(context.truth[rows], release.released[rows], *channel.matrix.shape)
    if channel_consistency(counts, channel.matrix, _REFUTED).p_value <= _REFUTED:
        return True
    if assumed.unavailable(context) is not None:
        return False
    # Not that rows share noise at all: those of one person may.
    tests = {FEATURE_BLIND_TEST, SHARED_WITH_OTHERS}
    found = assumed.run(context).estimates
    return any(one.value <= _REFUTED for one in found if one.id in tests)


def counted_as_another(release: Release, context: AuditContext) -> float:
    """Return in which share of a whole release's rows, at most, the label counts as another."""
    gone = [release.outputs.index(z) for z in context.counts_as if z in release.outputs]
    rows = int(np.isin(release.released, gone).sum()) if gone else 0
    return math.ceil(100 * max(rows, SMALLEST_CELL) / len(release)) / 100 if rows else 0.0


def without_truth(release: Release) -> Release:
    """Return a release as outsiders have it."""
    return replace(release, truth=None, canaries=None)


def columns_alone(columns: Sequence[Release]) -> list[Release]:
    """Return the private columns of a release without the people of a small class of any."""
    kept = _kept(columns)
    if kept is None:
        return [without_truth(column) for column in columns]
    return list(columns) if len(kept) == len(columns[0]) else [c.take(kept) for c in columns]


def rows_left_out(columns: Sequence[Release]) -> int | None:
    """Return how many rows :func:`columns_alone` leaves out; None where it leaves out the truth."""
    kept = _kept(columns)
    return None if kept is None else len(columns[0]) - len(kept)


def _kept(columns: Sequence[Release]) -> IndexArray | None:
    labels = [(one.truth, len(one.classes)) for one in columns if one.truth is not None]
    if len(labels) < len(columns):
        return np.arange(len(columns[0]))
    return large_classes(labels, joint_strata(columns))


def people_alone(releases: RepeatedReleases) -> RepeatedReleases:
    """Return several releases without the people of a class that is small in one of them."""
    if not releases.known:
        return releases
    labels = []
    for place, release in enumerate(releases.releases):
        k, there = len(release.classes), releases.rows[:, place] >= 0
        # Who is not in a release is in a class of its own, which is no secret.
        codes = np.full(len(there), -1, dtype=np.int64)
        assert release.truth is not None
        codes[there] = release.truth[releases.rows[there, place]]
        labels.append((codes, k))
    kept = large_classes(labels)
    if kept is None:
        outside = tuple(without_truth(release) for release in releases.releases)
        return replace(releases, releases=outside)
    return replace(releases, rows=releases.rows[kept])


def joint_strata(releases: Sequence[Release]) -> IndexArray | None:
    """Return codes of rows in the same stratum of every column, int64 (n,); None without strata."""
    codes: IndexArray | None = None
    for one in releases:
        if one.strata is not None:
            before = 0 if codes is None else codes * one.strata.count
            codes = np.unique(before + one.strata.codes, return_inverse=True)[1].astype(np.int64)
    return codes


def large_classes(
    columns: Sequence[tuple[IntArray | IndexArray, int]], strata: IndexArray | None = None
) -> IndexArray | None:
    """Return the rows to look at, int64 in order; None where no two classes are large.

    Parameters
    ----------
    columns : sequence of (codes of shape (n,), number of classes)
        The true labels of each private column; a row is left out where one of them is small. A
        code of -1 is no class.
    strata : int64 array of shape (n,), optional
        Whose numbers are shown separately: each is looked at by itself, and left out where no two
        of its classes are large.
    """
    if strata is None:
        return _large(columns)
    parts = [np.flatnonzero(strata == code) for code in np.unique(strata)]
    found = [(rows, _large([(codes[rows], k) for codes, k in columns])) for rows in parts]
    kept = [rows[own] for rows, own in found if own is not None]
    return np.sort(np.concatenate(kept)) if kept else None


def may_count(sizes: IndexArray) -> BoolArray:
    """Return of which classes exact numbers may tell the rows, where not all rows count, (k,)."""
    return np.asarray((sizes >= SMALLEST_CELL) | (len(sizes) > MOST_CLASSES))


def _large(columns: Sequence[tuple[IntArray | IndexArray, int]]) -> IndexArray | None:
    """Return the rows of one stratum to look at, int64 in order; None without two large classes."""
    n = len(columns[0][0])
    columns = [(codes, k) for codes, k in columns if k <= MOST_CLASSES]
    if not columns:
        return np.arange(n)
    kept, left = np.ones(n, dtype=bool), -1
    few, rare = np.zeros((2, len(columns)), dtype=np.int64)
    while left != kept.sum():  # Who is left out of one column may make a class of another small.
        left = kept.sum()
        for place, (codes, k) in enumerate(columns):
            sizes = np.bincount(codes[kept & (codes >= 0)], minlength=k)
            if (sizes >= SMALLEST_CELL).sum() < 2:
                return None
            small = kept & ~np.append(sizes >= SMALLEST_CELL, True)[codes]
            few[place], rare[place] = (sizes < SMALLEST_CELL).sum(), rare[place] + small.sum()
            kept &= ~small
    if not few.any():
        return np.arange(n)
    most = (SMALLEST_CELL - 1) * few
    most[few.argmax()] += -most.sum() % SMALLEST_CELL
    for (own, _), wanted in zip(columns, most - rare, strict=True):
        order = _largest_first(own, kept)
        spare = np.all([_rank(codes[order]) >= SMALLEST_CELL for codes, _ in columns], axis=0)
        others = order[spare][:wanted]
        kept[others] = False
        if len(others) < wanted:
            return None
    return np.flatnonzero(kept)


def _largest(codes: IntArray | IndexArray) -> int:
    return int(np.bincount(codes[codes >= 0]).argmax())


def _largest_first(codes: IntArray | IndexArray, kept: BoolArray) -> IndexArray:
    """Return the rows that are kept, those of the largest class first, else in a secret disorder.

    It follows from all true labels: who could draw it again could tell the others from the few.
    """
    labels = sha256(codes.astype("<i8").tobytes()).hexdigest()
    order = child_generator(0, "rows of small classes", labels).permutation(len(codes))
    order = order[kept[order]]
    sizes = np.bincount(codes[kept] + 1)
    ranks = -sizes[codes[order] + 1], codes[order] != _largest(codes)
    return np.asarray(order[np.lexsort(ranks)])


def _rank(codes: IntArray | IndexArray) -> IndexArray:
    """Return how many rows before each one have the same code."""
    places = np.argsort(codes, kind="stable")
    starts = np.searchsorted(codes[places], codes[places])
    rank = np.empty(len(codes), dtype=np.int64)
    rank[places] = np.arange(len(codes)) - starts
    return rank
