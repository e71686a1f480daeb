"""Whether released labels follow a claim that has a channel for each row, by a public model."""

import numpy as np

from ldpaudit.audits.assumptions.rows import counted
from ldpaudit.audits.interface import AuditContext, remembered
from ldpaudit.audits.public_model import model_readings
from ldpaudit.estimators.epsilon.consistency import binomial_p_value
from ldpaudit.mechanisms.capabilities import PublicModelLabel
from ldpaudit.release import FloatArray, IndexArray, IntArray, label_table

_MOST_ROWS = 200_000


@remembered("mechanism.row channels")
def row_channels_p_value(context: AuditContext) -> float | None:
    """Return the p-value of the counts of true against released labels; None where not known.

    What each row's channel leads one to expect is added up: how many labels are unchanged in all,
    and how often each released label stands beside each true one; Bonferroni, each half.
    """
    # A sum of unlike trials has no heavier tails than as many like ones, from 1 beyond its mean on
    # (Hoeffding 1956, Theorem 5).
    release, claim = context.release, context.claim.offers(PublicModelLabel)
    readings, truth = model_readings(context), release.truth
    if claim is None or not readings or truth is None:
        return None
    rows = counted(context).rows
    rows = np.arange(len(release)) if rows is None else rows
    rows = context.sample(rows, _MOST_ROWS, "row channels")
    labels, released = truth[rows], release.released[rows]
    return max(_p_value(claim, one[rows], labels, released) for one in readings)


def _p_value(
    claim: PublicModelLabel, posterior: FloatArray, labels: IntArray, released: IntArray
) -> float:
    n, k = posterior.shape
    expected = np.zeros((k, k))
    for code in range(k):
        chances = claim.row_likelihood(posterior, np.full(n, code, dtype=np.int32))
        expected[:, code] = np.bincount(labels, chances[np.arange(n), labels], minlength=k)
    seen = label_table(labels, released, k, k)
    sizes = seen.sum(axis=1)
    there = sizes > 0
    cells = _p_values(seen[there], sizes[there, None], expected[there])
    whole = _p_values(np.trace(seen), np.asarray(n), np.trace(expected))
    return min(1.0, 2 * min(float(whole.min()), cells.size * float(cells.min())))


def _p_values(seen: IndexArray, n: IndexArray, expected: FloatArray) -> FloatArray:
    """Return two-sided p-values of sums of trials with chances of their own."""
    found = binomial_p_value(seen, n, np.clip(expected / n, 0.0, 1.0))
    return np.asarray(np.where(np.abs(seen - expected) < 1, 1.0, found))
