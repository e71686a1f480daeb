"""What reports of a local protocol reveal: by its likelihood ratio, and by all that they hold.

A protocol reads of a report what it needs: whether a label is in a list, not at which place; a seed
modulo 2³². Whatever else stands in a report must not depend on the true label either. So a model
that sees every entry, its digits and how often it occurs guesses true labels on one half of the
rows, and its surest guesses on the other half are counted as those of the protocol are.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ldpaudit.arrays import stable_order
from ldpaudit.audits.interface import AuditContext, remembered
from ldpaudit.error_budget import ONE_HALF, REPORTS
from ldpaudit.estimators.epsilon.bounds import EpsilonBound
from ldpaudit.estimators.epsilon.guesses import GuessCounts, epsilon_lower
from ldpaudit.mechanisms.capabilities import LocalReports
from ldpaudit.mechanisms.foreign import checked_reports
from ldpaudit.models.trees import fit_boosting
from ldpaudit.randomness import integer_seed
from ldpaudit.release import FloatArray, IndexArray, IntArray

# A report guesses where its log ratio is the largest that the protocol has, up to this share.
_NEAR: Final = 1e-9
# The share of a half on which the model is fitted; how sure a guess must be is chosen on the rest.
_FITTED_SHARE: Final = 2 / 3
_FEWEST, _MOST_FITTED, _MOST_TESTED = 200, 20_000, 100_000
# Labels that the model tells apart, and columns that it looks at.
_MOST_LABELS, _MOST_COLUMNS = 12, 64
_ITERATIONS: Final = {"full": 60, "small": 15}
_RESIDUES: Final = (2, 3, 5, 7, 8, 9, 10, 16)
_LARGE: Final = 1 << 12
_DECIMALS: Final = 7
# The quantiles of how sure guesses are that are tried as the least.
_SURE: Final = (0.0, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99)
_CHOSEN_AT: Final = 0.05


@dataclass(frozen=True)
class ReportEvidence:
    """How often guesses from reports name the true label of a pair.

    ``protocol``: by the declared protocol's likelihood ratio, in all rows; ``learnt``: by a model
    of all entries, on each half of the rows; empty where there are too few.
    """

    protocol: GuessCounts
    learnt: tuple[GuessCounts, ...]

    def bound(self, alpha: float) -> EpsilonBound:
        """Return the strongest lower bound of ε at level 1 − alpha, corrected for all of them."""
        learnt = REPORTS.of(alpha, "learnt") * ONE_HALF
        bounds = [epsilon_lower(self.protocol, REPORTS.of(alpha, "protocol"))]
        bounds += [epsilon_lower(counts, learnt) for counts in self.learnt]
        strongest = max(bounds, key=lambda bound: bound.epsilon)
        return replace(strongest, alpha=alpha)


@remembered("epsilon.reports")
def report_counts(context: AuditContext) -> GuessCounts | None:
    """Return how often the reports' likelihood ratio names the true label of a pair."""
    # None where there are no reports or true labels, or all true labels are the same.
    claim, release = context.claim.offers(LocalReports), context.release
    if release.reports is None or release.truth is None:
        return None
    assert claim is not None
    rows, decoys = candidates(context.truth, context.rng("epsilon", "reports"))
    if len(rows) == 0:
        return None
    protocol = checked_reports(claim)
    ratios = protocol.log_ratio(release.reports[rows], context.truth[rows], decoys)
    least = claim.epsilon * (1 - _NEAR)
    right, wrong = int((ratios >= least).sum()), int((ratios <= -least).sum())
    return GuessCounts(len(rows), right, wrong)


def candidates(truth: IntArray, rng: np.random.Generator) -> tuple[IndexArray, IntArray]:
    """Draw candidates from the codes of n true labels: rows, and the other label of each pair."""
    # Returns int64 (m,), int32 (m,): m is n/2, or the rows outside the commonest class where it has
    # more than half of all.
    order = rng.permutation(len(truth))
    order = order[stable_order(truth[order])]
    # In label order, rows half of all apart differ unless one class has more than half.
    half = len(order) // 2
    first, second = order[:half], order[len(order) - half :]
    differ = truth[first] != truth[second]
    coin = rng.random(half) < 0.5
    row, other = np.where(coin, first, second), np.where(coin, second, first)
    return row[differ].astype(np.int64), truth[other[differ]].astype(np.int32)


@remembered("epsilon.reports, all entries")
def report_evidence(context: AuditContext) -> ReportEvidence | None:
    """Return the evidence of recorded reports; None where there are none, or no true labels."""
    counts = report_counts(context)
    if counts is None:
        return None
    context.progress.step("looking at all that reports hold")
    halves = [context.half(half) for half in (0, 1)]
    if min(map(len, halves)) < _FEWEST:
        return ReportEvidence(counts, ())
    shown = _columns(context)
    learnt = (
        _learnt(context, shown, mine, other, str(way))
        for way, (mine, other) in enumerate((halves, halves[::-1]))
    )
    return ReportEvidence(counts, tuple(one for one in learnt if one is not None))


def _learnt(
    context: AuditContext, shown: FloatArray, mine: IndexArray, other: IndexArray, way: str
) -> GuessCounts | None:
    """Return the guesses on the other half by a model of mine; None where it cannot be fitted."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    rng, truth = context.rng("reports", way), context.truth
    # Which labels the model tells apart is chosen by true labels alone.
    labels = np.argsort(-np.bincount(truth[mine]), kind="stable")[:_MOST_LABELS]
    order = rng.permutation(mine[np.isin(truth[mine], labels)])
    cut = int(_FITTED_SHARE * len(order))
    fitted, choosing = order[: min(cut, _MOST_FITTED)], order[cut:]
    known = np.unique(truth[fitted])
    if len(known) < 2:
        return None
    unfitted = HistGradientBoostingClassifier(
        max_iter=_ITERATIONS[context.plan.effort],
        early_stopping=False,
        random_state=integer_seed(rng),
    )
    model = fit_boosting(unfitted, shown[fitted], truth[fitted])

    def ratios(rows: IndexArray) -> FloatArray:
        rows = rows[np.isin(truth[rows], known)][:_MOST_TESTED]
        some, decoys = candidates(truth[rows], rng)
        chances = np.log(np.maximum(model.predict_proba(shown[rows[some]]), 1e-300))
        every = np.arange(len(some))
        own = chances[every, np.searchsorted(known, truth[rows[some]])]
        return np.asarray(own - chances[every, np.searchsorted(known, decoys)])

    least = _least_sure(ratios(choosing))
    return _counted(ratios(rng.permutation(other)), least)


def _least_sure(ratios: FloatArray) -> float:
    """Return how sure guesses must be for the largest bound."""
    if not len(ratios):
        return 0.0
    tried = np.unique(np.quantile(np.abs(ratios), _SURE))
    bounds = [epsilon_lower(_counted(ratios, one), _CHOSEN_AT).epsilon for one in tried]
    return float(tried[int(np.argmax(bounds))])


def _counted(ratios: FloatArray, least: float) -> GuessCounts:
    right = int(((ratios >= least) & (ratios > 0)).sum())
    wrong = int(((ratios <= -least) & (ratios < 0)).sum())
    return GuessCounts(len(ratios), right, wrong)


def _columns(context: AuditContext) -> FloatArray:
    """Return all that reports hold as columns of numbers, float64 (n, p)."""
    release, claim = context.release, context.claim.offers(LocalReports)
    assert claim is not None
    assert release.reports is not None
    read = release.reports_in_file
    assert read is not None
    protocol, n = checked_reports(claim), len(release)
    first = np.zeros(n, dtype=np.int32)
    columns = list[npt.NDArray[Any]]()
    for reports in (release.reports, _with_first_value(release.reports)):
        if reports is not None:
            columns += [
                protocol.log_ratio(reports, np.full(n, code, dtype=np.int32), first)
                for code in range(1, min(len(claim.classes), _MOST_LABELS))
            ]
    for entry in read.T:
        columns += _shown(entry, len(claim.classes))
        if len(columns) >= _MOST_COLUMNS:
            break
    return np.column_stack(columns[:_MOST_COLUMNS]).astype(np.float64)


def _with_first_value(reports: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
    """Return reports of a seed and a value, all with the value 0; None where there is no seed."""
    # What a seed makes of each label then shows, whatever the value is.
    if reports.shape[1] != 2 or reports.dtype.kind not in "iu":
        return None
    return np.column_stack([reports[:, 0], np.zeros_like(reports[:, 1])])


def _shown(entry: npt.NDArray[Any], labels: int) -> Iterator[npt.NDArray[Any]]:
    """Yield what one entry of all reports shows: its value, its digits, and how often it occurs."""
    yield entry
    if entry.dtype.kind == "b":
        return
    if entry.dtype.kind == "f":
        found = (entry == np.round(entry, digits) for digits in range(_DECIMALS))
        yield np.sum([one.astype(np.int8) for one in found], axis=0)
        yield entry * 1024 % 1
    elif int(entry.max()) - int(entry.min()) >= _LARGE:
        for residue in sorted({*_RESIDUES, labels}):
            yield entry % residue
        for byte in range(1, entry.dtype.itemsize):
            yield (entry >> (8 * byte)) & 255
    else:
        return
    _, places, counts = np.unique(entry, return_inverse=True, return_counts=True)
    yield counts[places]
