"""ε bounded within groups of rows whose labels come through too often, or too rarely.

A release may keep its promise on average and break it for some people. A model fitted on some rows
says where the released label betrays the true one more than elsewhere; groups of other rows that
it ranks highest, or lowest, are bounded like a whole table. Groups are chosen by features alone
and without the released labels of the rows counted, so the bounds hold for every ε-DP channel that
is the same for all rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ldpaudit.estimators.epsilon.bounds import class_counts
from ldpaudit.estimators.epsilon.designs import best_plan
from ldpaudit.estimators.epsilon.strongest import (
    DESIGN_ALPHA,
    PILOT_ALPHA,
    BoundEvidence,
    design_bounds,
    gather_evidence,
    presumed_channel,
)
from ldpaudit.estimators.intervals.binomial import score_lower
from ldpaudit.release import BoolArray, FloatArray, IndexArray, IntArray, label_table

CANDIDATES = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5)
"""The shares of rows, from either end of the ranking, among which one group is chosen."""
FIXED = (0.03, 0.1, 0.3)
"""The shares of rows, from either end, that are tested whatever the rows say."""
CHOSEN_SHARE = 0.7
"""The share of the error probability of the chosen group; the fixed ones have the rest."""
_MANY_LABELS = 12
_DEAR_LABELS = 64
"""With more labels than these, the chosen group alone is tested: each takes long to plan."""


@dataclass(frozen=True, eq=False)
class RankedRows:
    """Rows with a score that knows nothing of their own released labels.

    Attributes
    ----------
    scores : float64 array of shape (n,)
        Large where the released label betrays the true one more than elsewhere.
    truth, released : int32 arrays of shape (n,)
        Codes below k and m.
    """

    scores: FloatArray
    truth: IntArray
    released: IntArray

    def counts(self, inside: BoolArray, k: int, m: int) -> IndexArray:
        """Return the rows inside by true and released label, int64 of shape (k, m)."""
        return label_table(self.truth[inside], self.released[inside], k, m)


@dataclass(frozen=True)
class Edge:
    """A group of rows: those at one end of the ranking, up to a score.

    ``sign`` is 1 for the highest scores and −1 for the lowest.
    """

    sign: int
    least: float

    def inside(self, scores: FloatArray) -> BoolArray:
        """Return which rows belong to the group, bool of shape (n,)."""
        return np.asarray(self.sign * scores >= self.least)


def betraying(channel: FloatArray, sizes: IndexArray) -> BoolArray:
    """Return which outputs are likelier than usual for each label, bool of shape (k, m).

    For randomized response: the label itself.

    Parameters
    ----------
    channel : float64 array of shape (k, m)
    sizes : int64 array of shape (k,)
        Rows of each true label.
    """
    usual = sizes @ channel / max(int(sizes.sum()), 1)
    return np.asarray(channel > usual + 1e-9)


def surprise(rows: RankedRows, betrays: BoolArray) -> FloatArray:
    """Return how much more each row is betrayed than rows of its label are on average.

    1 or 0, less the share of its label's rows whose output ``betrays`` it: float64 of shape (n,).
    What a model of the ranking is fitted to; for one channel its mean is 0 whatever the features.
    """
    hit = betrays[rows.truth, rows.released].astype(np.float64)
    total = np.bincount(rows.truth, minlength=len(betrays))
    share = np.bincount(rows.truth, weights=hit, minlength=len(betrays)) / np.maximum(total, 1)
    return np.asarray(hit - share[rows.truth])


def subgroup_tests(
    choosing: RankedRows,
    tested: RankedRows,
    labels: tuple[int, int],
    share: float,
    rng: np.random.Generator,
) -> list[BoundEvidence]:
    """Choose groups on some rows and count them on others.

    Parameters
    ----------
    choosing, tested : RankedRows
        Two disjoint sets of rows, scored by a model that saw neither.
    labels : two int
        k true labels and m outputs.
    share : float
        The share of the error probability of all groups together.
    rng : numpy.random.Generator

    Returns
    -------
    list of BoundEvidence
        The counts of each group, with its share.
    """
    factor = len(tested.scores) / max(len(choosing.scores), 1)
    best = max(
        _edges(choosing.scores, CANDIDATES),
        key=lambda edge: _promise(choosing.counts(edge.inside(choosing.scores), *labels), factor),
    )
    few = labels[0] <= _DEAR_LABELS
    fixed = list(_edges(choosing.scores, FIXED)) if few else []
    parts = [CHOSEN_SHARE, *[(1 - CHOSEN_SHARE) / max(len(fixed), 1)] * len(fixed)]
    tests = []
    for part, edge in zip(parts, (best, *fixed), strict=True):
        presumed = presumed_channel(choosing.counts(edge.inside(choosing.scores), *labels))
        counts = tested.counts(edge.inside(tested.scores), *labels)
        design = design_bounds(class_counts(counts), presumed, PILOT_ALPHA)
        if design is not None:
            tests.append(gather_evidence(counts, design, rng, share * part))
    return tests


def _edges(scores: FloatArray, shares: tuple[float, ...]) -> Iterator[Edge]:
    for sign in (1, -1):
        for least in np.quantile(sign * scores, 1 - np.array(shares)):
            yield Edge(sign, float(least))


def _promise(counts: IndexArray, factor: float) -> float:
    """Return the bound to expect of a group of ``factor`` times as many rows as were counted."""
    sizes = np.floor(class_counts(counts) * factor).astype(np.int64)
    if np.count_nonzero(sizes) < 2:
        return -1.0
    if len(counts) > _MANY_LABELS:
        counts = _commonest(counts)
        sizes = np.floor(class_counts(counts) * factor).astype(np.int64)
    return best_plan(sizes, presumed_channel(counts), DESIGN_ALPHA, score_lower)[1]


def _commonest(counts: IndexArray) -> IndexArray:
    """Return a table of two labels, the commonest and all others, and as many outputs."""
    label = int(class_counts(counts).argmax())
    output = int(counts[label].argmax())
    inside, both = counts[label, output], counts[label].sum()
    others = counts[:, output].sum() - inside
    rest = counts.sum() - both - others
    return np.array([[inside, both - inside], [others, rest]], dtype=np.int64)
