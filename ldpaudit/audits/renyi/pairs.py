"""Which labels to compare, and what a model guesses of their rows.

D_α is quasi-convex in each argument: at most the largest over a mixture's parts. So "a label
against all others" bounds the worst pair of labels from below as "one against one" does: labels
with few rows are merged that way, never dropped. Which pair to bound is chosen on tuning rows, so
the bound needs no correction for the number of pairs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.renyi.critics import Scores, screened_promise
from ldpaudit.estimators.renyi.divergence import FEWEST_ROWS, TUNING_SHARE, RenyiBound, bounds_on
from ldpaudit.estimators.renyi.points import RenyiPoint, calibration_error, renyi_points
from ldpaudit.release import BoolArray, FloatArray, IndexArray, IntArray

MOST_LABELS = 8
"""Labels that are compared singly: the most frequent ones."""
_SCREENED_ROWS = 1_500
_TUNED_ROWS = 5_000
_FINALISTS = 3
_SCREENING_ORDER = 2.0


@dataclass(frozen=True)
class Pair:
    """Labels on the left (P) and on the right (Q), as masks over the k labels."""

    left: BoolArray
    right: BoolArray


@dataclass(frozen=True)
class GuessedRows:
    """Held-out rows with a model's guess for each label.

    Attributes
    ----------
    weights : float64 array of shape (n, k)
        Positive, proportional within a row to the joint probability of the label and what was
        released.
    labels : int32 array of shape (n,)
    prior : float64 array of shape (k,)
        Shares of the labels among the fitting rows.
    """

    weights: FloatArray
    labels: IntArray
    prior: FloatArray

    def take(self, rows: IndexArray) -> "GuessedRows":
        """Return the given rows."""
        return GuessedRows(self.weights[rows], self.labels[rows], self.prior)

    def scores(self, pair: Pair, most: int | None = None) -> Scores:
        """Return guesses of log dP/dQ for the rows on either side, the first ``most`` of each."""
        return Scores(self._side(pair, pair.left, most), self._side(pair, pair.right, most))

    def _side(self, pair: Pair, side: BoolArray, most: int | None) -> FloatArray:
        rows = np.flatnonzero(side[self.labels])[:most]
        weights, left, right = self.weights[rows], pair.left, pair.right
        here = weights[:, left].sum(axis=1) / self.prior[left].sum()
        other = weights[:, right].sum(axis=1) / self.prior[right].sum()
        return np.asarray(np.log(here) - np.log(other))


@dataclass(frozen=True)
class WorstPair:
    """Bounds and estimates for the pairs that looked farthest apart.

    Attributes
    ----------
    bounds : tuple of RenyiBound
        One for each order.
    pairs : tuple of Pair
        The pair behind each bound.
    points : tuple of RenyiPoint
        For each order the largest estimate over ordered pairs of single labels, supported where
        those of all pairs are; empty where fewer than two labels have 50 rows.
    estimated_labels : int
        How many labels those pairs are of.
    calibration : float or None
        The largest calibration error of the guesses for those pairs.
    compared : int
        How many ordered pairs or groups were candidates for the bounds.
    rows : int
        Test rows.
    """

    bounds: tuple[RenyiBound, ...]
    pairs: tuple[Pair, ...]
    points: tuple[RenyiPoint, ...]
    estimated_labels: int
    calibration: float | None
    compared: int
    rows: int


def worst_pair(
    data: GuessedRows, orders: Sequence[float], *, rng: np.random.Generator
) -> WorstPair:
    """Choose pairs of labels on tuning rows and prepare their bounds on all others.

    Raise InsufficientDataError if no two groups of labels have 50 rows each.
    """
    order = rng.permutation(len(data.labels))
    first = max(int(TUNING_SHARE * len(order)), min(4 * FEWEST_ROWS, len(order) // 2))
    tuning, test = data.take(order[:first]), data.take(order[first:])
    pairs = [pair for pair in candidate_pairs(data.prior) if _enough(pair, tuning, test)]
    if not pairs:
        raise InsufficientDataError(
            f"A Rényi divergence needs two labels, or groups of them, with {FEWEST_ROWS} "
            "held-out rows each."
        )
    finalists = _finalists(pairs, tuning, test)
    families = [
        bounds_on(tuning.scores(pair, _TUNED_ROWS), test.scores(pair), orders) for pair in finalists
    ]
    chosen = [
        int(np.argmax([family[i].critic.foreseen for family in families]))
        for i in range(len(orders))
    ]
    labels = _estimable(test)
    sides = [test.scores(pair) for pair in _single_pairs(labels, len(data.prior))]
    return WorstPair(
        tuple(families[c][i] for i, c in enumerate(chosen)),
        tuple(finalists[c] for c in chosen),
        largest_points([renyi_points(scores, orders) for scores in sides]),
        len(labels),
        max((calibration_error(scores) for scores in sides), default=None),
        len(pairs),
        len(test.labels),
    )


def largest_points(families: Sequence[Sequence[RenyiPoint]]) -> tuple[RenyiPoint, ...]:
    """Return for each order the largest estimate of several, held up by the weakest of them.

    A definition that speaks of every pair of labels is estimated by the largest divergence, and
    only where no divergence is out of sight.
    """
    return tuple(
        RenyiPoint(
            order=points[0].order,
            value=max(point.value for point in points),
            donsker_varadhan=max(point.donsker_varadhan for point in points),
            convex_conjugate=max(point.convex_conjugate for point in points),
            effective_rows=min(point.effective_rows for point in points),
            supported=all(point.supported for point in points),
        )
        for points in zip(*families, strict=True)
    )


def candidate_pairs(prior: FloatArray) -> list[Pair]:
    """Return every ordered pair of the most frequent labels, and each against all others."""
    k = len(prior)
    frequent = np.sort(np.argsort(-prior, kind="stable")[:MOST_LABELS])
    pairs = _single_pairs(frequent, k)
    return pairs + list(_against_rest(np.eye(k, dtype=bool), frequent)) if k > 2 else pairs


def _single_pairs(labels: IndexArray, k: int) -> list[Pair]:
    one = np.eye(k, dtype=bool)
    return [Pair(one[a], one[b]) for a in labels for b in labels if a != b]


def _estimable(test: GuessedRows) -> IndexArray:
    """Return the most frequent labels with 50 rows each, none where there is only one."""
    counts = np.bincount(test.labels, minlength=len(test.prior))
    frequent = np.sort(np.argsort(-counts, kind="stable")[:MOST_LABELS])
    enough = frequent[counts[frequent] >= FEWEST_ROWS]
    return enough if len(enough) > 1 else enough[:0]


def _against_rest(one: BoolArray, frequent: IndexArray) -> Iterator[Pair]:
    for label in frequent:
        yield Pair(one[label], ~one[label])
        yield Pair(~one[label], one[label])


def _enough(pair: Pair, tuning: GuessedRows, test: GuessedRows) -> bool:
    for data, least in ((tuning, 8), (test, FEWEST_ROWS // 2)):
        counts = np.bincount(data.labels, minlength=len(data.prior))
        if min(counts[pair.left].sum(), counts[pair.right].sum()) < least:
            return False
    return True


def _finalists(pairs: list[Pair], tuning: GuessedRows, test: GuessedRows) -> list[Pair]:
    if len(pairs) <= _FINALISTS:
        return pairs
    counts = np.bincount(test.labels, minlength=len(test.prior))
    promises = []
    for pair in pairs:
        n_p, n_q = int(counts[pair.left].sum()), int(counts[pair.right].sum())
        scores = tuning.scores(pair, _SCREENED_ROWS)
        promises.append(screened_promise(scores, n_p, n_q, _SCREENING_ORDER))
    best = np.argsort(-np.asarray(promises), kind="stable")[:_FINALISTS]
    return [pairs[i] for i in best]
