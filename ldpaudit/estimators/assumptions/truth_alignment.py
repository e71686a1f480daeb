"""Are the true labels those of these rows, in this order?"""

import math
from typing import Final

import numpy as np
from scipy.special import gammaln

from ldpaudit.estimators.epsilon.consistency import likelihood_ratio_p_value
from ldpaudit.release import FloatArray, IndexArray, IntArray, label_table

MOST_SHIFT: Final = 3
_OVERWHELMING: Final = math.log(1e9)
"""By what factor another explanation must beat the claim: honest releases reach it once in 1e9."""
_NO_DEPENDENCE: Final = 0.01
_ROUNDING: Final = 1e-9


def truth_alignment(truth: IntArray, released: IntArray, channel: FloatArray) -> int | None:
    """Return by how many rows the true labels are shifted; 0 if not, None if they are of others.

    Row i of the release fits the true label of row i + shift. Every alternative is a likelihood
    ratio against the claimed channel, (k, m): under the claim it exceeds c at most once in c.
    """
    k, m = channel.shape
    shifts = [s for s in range(-MOST_SHIFT, MOST_SHIFT + 1) if s]
    tables = {s: label_table(np.roll(truth, -s), released, k, m) for s in (0, *shifts)}
    logs = np.log(np.maximum(channel, _ROUNDING))
    fits = {s: float((table * logs).sum()) for s, table in tables.items()}
    best = max(shifts, key=lambda s: fits[s])
    blind = _fit_without_truth(tables[0].sum(axis=0))
    enough = _OVERWHELMING + math.log(len(shifts) + 1)
    if fits[best] > max(fits[0], blind) + enough:
        return best
    counts = tables[0]
    shares = np.tile(counts.sum(axis=0) / max(counts.sum(), 1), (k, 1))
    independent = likelihood_ratio_p_value(counts, shares) > _NO_DEPENDENCE
    return None if blind > fits[0] + enough and independent else 0


def _fit_without_truth(released: IndexArray) -> float:
    """Return the log-likelihood of labels drawn blindly, shares of Jeffreys' prior (KT)."""
    m = len(released)
    ends = gammaln(m / 2) - m * gammaln(0.5) - gammaln(released.sum() + m / 2)
    return float(ends + gammaln(released + 0.5).sum())
