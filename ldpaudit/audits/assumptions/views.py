"""What noise did to each row, as 0 or 1, in each way of looking at it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ldpaudit.audits.interface import AuditContext, remembered
from ldpaudit.audits.models import aligned_channel
from ldpaudit.estimators.assumptions.learner import label_sides
from ldpaudit.estimators.row_noise import RowNoise
from ldpaudit.estimators.whiteness import is_in_an_order
from ldpaudit.mechanisms.capabilities import LocalReports
from ldpaudit.mechanisms.foreign import checked_reports
from ldpaudit.release import BoolArray, FloatArray, IndexArray, IntArray, Release

_QUANTILES: Final = 64
# Labels on whose side noise may have put a row.
MOST_SIDES: Final = 4
# Chances that differ by no more than this part are as large.
_AS_LIKELY: Final = 1e-6
# Chances in one such step count as the same.
_STEP_OF_CHANCES: Final = 0.02
# Pairs of labels whose support in reports is looked at.
_MOST_PAIRS: Final = 2


@dataclass(frozen=True, eq=False)
class View:
    """What noise did, seen in one way.

    ``outcomes``: given the true label; ``by_released``: given the released one: what an order or a
    column made from released labels shows of it by right; ``totals``: the same for counts that may
    be too equal, where ``claimed`` is what a released label implies.
    """

    outcomes: RowNoise
    by_released: RowNoise
    totals: RowNoise


def views(context: AuditContext) -> list[View]:
    """Return what noise did to each label: changed it, and put it on one side of all labels."""
    release, truth = context.release, context.truth
    known, seen = truth.astype(np.int64), release.released.astype(np.int64)
    if release.strata is not None and context.claim.by_stratum:
        return _of_strata(truth, release, release.strata.codes.astype(np.int64))
    if release.numeric is not None and release.numeric.truth is not None:
        return [*_of_numbers(context, release.numeric.truth, release.numeric.released)]
    return [*_of_labels(context, known, seen), *_of_reports(context, known, seen)]


def _of_strata(truth: IntArray, release: Release, strata: IndexArray) -> list[View]:
    """Return whether noise changed each label; each stratum has a channel of its own."""
    changed = (release.released != truth).astype(np.float64)
    known = truth + strata * len(release.classes)
    by_released = RowNoise(changed, release.released + strata * len(release.outputs))
    return [View(RowNoise(changed, known), by_released, by_released)]


def _of_numbers(context: AuditContext, numbers: FloatArray, released: FloatArray) -> Iterator[View]:
    """Yield what noise did to numbers: raised each, and left it near, as half of them are."""
    strata, by = _strata(numbers), _strata(released)
    raised = (released > numbers).astype(np.float64)
    by_released = RowNoise(raised, by)
    yield View(RowNoise(raised, strata), by_released, by_released)
    near, fine = _left_near(context, numbers, released)
    if near is not None:
        by_released = RowNoise(near, by)
        yield View(RowNoise(near, fine), by_released, by_released)


def _left_near(
    context: AuditContext, numbers: FloatArray, released: FloatArray
) -> tuple[FloatArray | None, IndexArray]:
    """Return which numbers noise left near, 0 or 1, and strata in which that is as likely."""
    strata, numeric = _strata(numbers), context.release.numeric
    if numeric is not None and numeric.view.outputs.grouped:
        distance = np.abs(released - numbers)
        return (distance <= np.median(distance)).astype(np.float64), strata
    channel = aligned_channel(context)
    if channel is None:
        return None, strata
    likeliest = _likeliest(channel.matrix)
    codes = context.truth
    near = likeliest[codes, context.release.released].astype(np.float64)
    # Labels of one stratum have nearly the same chance.
    chances = np.rint((channel.matrix * likeliest).sum(axis=1) / _STEP_OF_CHANCES)[codes]
    pairs = np.column_stack([strata, chances.astype(np.int64)])
    fine = np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)
    return near, fine.astype(np.int64)


def _likeliest(matrix: FloatArray) -> BoolArray:
    """Return the likeliest outputs of each label that have half of its chance, bool (k, m)."""
    # Of outputs that are as likely, those in the middle of the likeliest come first.
    m = matrix.shape[1]
    most = matrix >= matrix.max(axis=1, keepdims=True) * (1 - _AS_LIKELY)
    middle = (most * np.arange(m)).sum(axis=1) / most.sum(axis=1)
    distance = np.abs(np.arange(m) - middle[:, None])
    chances = np.round(np.log(np.maximum(matrix, 1e-300)), 6)
    order = np.lexsort((distance, -chances), axis=1)
    ranked = np.take_along_axis(matrix, order, axis=1)
    before = np.cumsum(ranked, axis=1) - ranked
    found = np.zeros(matrix.shape, dtype=np.bool_)
    np.put_along_axis(found, order, before < 0.5, axis=1)
    return found


def _of_reports(context: AuditContext, known: IndexArray, seen: IndexArray) -> Iterator[View]:
    """Yield what noise did in reports: which of two labels, the commonest first, each supports.

    The label that is drawn from a report hides most of what reports of two people share.
    """
    if ordered_by_reports(context):
        return
    for supports in _supports(context):
        by_released = RowNoise(supports, seen)
        yield View(RowNoise(supports, known), by_released, by_released)


@remembered("noise.order of reports")
def ordered_by_reports(context: AuditContext) -> bool:
    """Return whether the file is in an order of its reports, which reveals nothing more."""
    known = context.truth.astype(np.int64)
    return any(is_in_an_order(RowNoise(supports, known)) for supports in _supports(context))


def _supports(context: AuditContext) -> Iterator[FloatArray]:
    """Yield which reports support the one of two labels more, 0 or 1, float64 (n,)."""
    release, claim = context.release, context.claim.offers(LocalReports)
    if release.reports is None or claim is None:
        return
    protocol, n = checked_reports(claim), len(release)
    sizes = np.bincount(context.truth, minlength=len(claim.classes))
    commonest = np.argsort(-sizes, kind="stable")
    chosen = commonest[: 2 * _MOST_PAIRS].astype(np.int32)
    for one, other in zip(chosen[::2], chosen[1::2], strict=False):
        ratio = protocol.log_ratio(release.reports, np.full(n, one), np.full(n, other))
        yield (ratio > 0).astype(np.float64)


def _of_labels(context: AuditContext, known: IndexArray, seen: IndexArray) -> list[View]:
    release, truth = context.release, context.truth
    same = release.outputs == release.classes
    of_truth, of_released = label_sides(truth, release.released, same_labels=same)
    channel = aligned_channel(context)
    matrix = None if channel is None else channel.matrix
    sides = _side_of_outputs(of_released, seen, len(release.outputs))
    claimed = None if matrix is None else (matrix @ sides)[truth]
    side = RowNoise(of_released.astype(np.float64), known, claimed=claimed)
    truth_side = RowNoise(of_truth.astype(np.float64), seen, claimed=_implied(context, of_truth))
    if not same:
        return [View(side, replace(truth_side, claimed=None), truth_side)]
    changed = (seen != known).astype(np.float64)
    claimed = None if matrix is None else 1 - np.diagonal(matrix)[truth]
    by_released = RowNoise(changed, seen)
    return [
        View(
            RowNoise(changed, known, claimed=claimed),
            by_released,
            replace(by_released, claimed=claimed),
        ),
        View(side, by_released, truth_side),
    ]


def _implied(context: AuditContext, of_truth: IntArray) -> FloatArray | None:
    """Return the side of the true label that each released one implies on average, if any."""
    channel = aligned_channel(context)
    if channel is None or np.linalg.matrix_rank(channel.matrix, tol=1e-9) < len(channel.matrix):
        return None
    sides = _side_of_outputs(of_truth, context.truth.astype(np.int64), len(channel.matrix))
    return np.asarray((channel.inverse @ sides)[context.release.released])


def _side_of_outputs(side: IntArray, codes: IndexArray, size: int) -> FloatArray:
    sides = np.zeros(size)
    sides[codes] = side
    return sides


def _strata(numbers: FloatArray) -> IndexArray:
    edges = np.unique(np.quantile(numbers, np.linspace(0, 1, _QUANTILES + 1)[1:-1]))
    return np.searchsorted(edges, numbers).astype(np.int64)
