"""The losses between a true and a released numeric label.

squared: ½(ŷ − y)², the papers' convention with its factor ½;
absolute: |ŷ − y|;
poisson: ŷ − y log ŷ, the Poisson log loss, with 0 log 0 = 0 and ∞ where ŷ < 0 or ŷ = 0 < y.
"""

from typing import Literal, get_args

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.release import FloatArray

Loss = Literal["squared", "absolute", "poisson"]


def loss(name: Loss, output: FloatArray, truth: FloatArray) -> FloatArray:
    """Return ℓ(ŷ, y) entry by entry.

    Parameters
    ----------
    name : {"squared", "absolute", "poisson"}
        Which loss.
    output, truth : float64 arrays that broadcast to one shape
        ŷ and y.

    Returns
    -------
    float64 array of the common shape

    References
    ----------
    Ghazi et al. (2023), section 2.
    """
    if name == "squared":
        return np.asarray(0.5 * np.square(output - truth))
    if name == "absolute":
        return np.asarray(np.abs(output - truth))
    if name == "poisson":
        return _poisson(output, truth)
    raise InputError(f"The loss must be one of {', '.join(get_args(Loss))}. Got {name!r} instead.")


def _poisson(output: FloatArray, truth: FloatArray) -> FloatArray:
    if np.min(truth, initial=0.0) < 0:
        raise InputError("The Poisson log loss must be used with labels that are not negative.")
    output, truth = np.broadcast_arrays(output, truth)
    with np.errstate(divide="ignore", invalid="ignore"):
        logarithm = np.where(truth > 0, truth * np.log(output), 0.0)
    return np.where(output < 0, np.inf, output - logarithm)
