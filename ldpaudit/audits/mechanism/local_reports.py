"""Recorded reports against true labels: a certified lower bound of a frequency oracle's ε.

Rows are put into disjoint pairs with different true labels, without looking at any report, and a
fair coin picks one row of each pair as a candidate. Given the pair its label is then uniform over
the pair's two labels, so the declared protocol's likelihood ratio of these two labels makes a guess
that an ε-DP mechanism, whatever was declared, lets be right with probability at most e^ε/(1 + e^ε).
"""

import numpy as np

from ldpaudit.audits.interface import AuditContext
from ldpaudit.estimators.epsilon.guesses import GuessCounts
from ldpaudit.mechanisms.frequency_oracles import FrequencyOracle
from ldpaudit.release import IndexArray, IntArray

_NEAR = 1e-9
"""A report guesses where its log ratio is the largest that the protocol has, up to this share."""


def report_counts(context: AuditContext) -> GuessCounts | None:
    """Return how often the reports' likelihood ratio names the true label of a pair.

    None where there are no reports or true labels, or all true labels are the same.
    """
    release = context.release
    if release.reports is None or release.truth is None:
        return None
    return context.once("epsilon.reports", lambda: _count(context))


def _count(context: AuditContext) -> GuessCounts | None:
    claim, release = context.claim, context.release
    assert isinstance(claim, FrequencyOracle)
    assert release.reports is not None
    rows, decoys = candidates(context.truth, context.rng("epsilon", "reports"))
    if len(rows) == 0:
        return None
    ratios = claim.log_ratio(release.reports[rows], context.truth[rows], decoys)
    least = claim.epsilon * (1 - _NEAR)
    right, wrong = int((ratios >= least).sum()), int((ratios <= -least).sum())
    return GuessCounts(len(rows), right, wrong)


def candidates(truth: IntArray, rng: np.random.Generator) -> tuple[IndexArray, IntArray]:
    """Draw candidates from the codes of n true labels: rows, and the other label of each pair.

    Returns
    -------
    int64 array of shape (m,), int32 array of shape (m,)
        m is n/2, or the rows outside the commonest class where it has more than half of all.
    """
    order = rng.permutation(len(truth))
    order = order[np.argsort(truth[order], kind="stable")]
    # In label order, rows half of all apart differ unless one class has more than half.
    half = len(order) // 2
    first, second = order[:half], order[len(order) - half :]
    differ = truth[first] != truth[second]
    coin = rng.random(half) < 0.5
    row, other = np.where(coin, first, second), np.where(coin, second, first)
    return row[differ].astype(np.int64), truth[other[differ]].astype(np.int32)
