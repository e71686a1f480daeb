"""The unbiased loss under double randomized response, as soft labels.

With noise p, k labels, R the inverse of randomized response and P̂_j the synthetic features of
label j,

  E_P[ℓ(h(X), Y)] = E[Σ_y R[Ỹ, y] ℓ(h(X̃), y)]/(1 − p)
                    − p/(k(1 − p)) Σ_j E_{x ~ P̂_j, y ~ P_Y}[ℓ(h(x), y)].

The published last term has a plus sign and lacks the factor 1/k; with it the loss is not unbiased.
"""

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.learners.corrections import label_targets
from ldpaudit.mechanisms.capabilities import SyntheticFeatures
from ldpaudit.mechanisms.finite import check_codes
from ldpaudit.release import FloatArray, IntArray


def double_targets(
    codes: IntArray,
    synthetic_codes: IntArray,
    mechanism: SyntheticFeatures,
    weights: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return the soft labels under which a loss is unbiased for double randomized response.

    Parameters
    ----------
    codes : int array of shape (n,)
        Released labels.
    synthetic_codes : int array of shape (s,)
        Labels of a sample of the synthetic features; every label must occur.
    mechanism : SyntheticFeatures
        With λ < 1.
    weights : float64 array of shape (n,), optional
        Weights of the released rows.

    Returns
    -------
    float64 arrays of shape (n, k) and (s, k)
        For the released rows, each summing to weight/(1 − p); for the synthetic rows, summing to
        −p/(1 − p) over all. Σ targets · losses over both tables is the unbiased mean loss.

    Notes
    -----
    P_Y is estimated from the released labels, which leaves the loss unbiased: it enters linearly,
    and the synthetic sample is independent of it.

    Raises
    ------
    InputError
        If λ = 1, a code is out of range, or a label has no synthetic row.

    References
    ----------
    Busa-Fekete et al. (2023), Lemma G.1, with the last term's sign and factor corrected.
    """
    k, p = len(mechanism.classes), mechanism.noise
    targets = label_targets(codes, mechanism.label_channel)
    share = np.ones(len(targets)) if weights is None else np.asarray(weights, dtype=np.float64)
    share = share / share.sum()
    prior = share @ targets
    counts = np.bincount(check_codes(synthetic_codes, k), minlength=k)
    if (counts == 0).any():
        raise InputError(
            f"The synthetic sample must have rows of every label; {int((counts == 0).sum())} of "
            f"{k} labels have none."
        )
    each = -p / (k * (1 - p)) / counts[synthetic_codes]
    return targets * share[:, None] / (1 - p), each[:, None] * prior
