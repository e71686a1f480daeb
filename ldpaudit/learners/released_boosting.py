"""Boosting of the released label's own probabilities, led back through the channel.

An ordinary problem with an ordinary minimum: each row's answer is the η whose image η T is nearest
to the boosted probabilities in Kullback–Leibler divergence, the η of least forward loss if they
were right.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from ldpaudit.learners.boosting import BoostingOptions
from ldpaudit.learners.corrections import project_on_simplex
from ldpaudit.release import FloatArray, IntArray

_EM_STEPS = 100
_FLOOR = 1e-6


@dataclass(frozen=True)
class BoostedReleased:
    """Boosted probabilities of the released label, led back through the channel.

    Attributes
    ----------
    model : HistGradientBoostingClassifier
        Of the released labels that occur.
    transition : float64 array of shape (k, m)
        The channel.
    """

    model: Any
    transition: FloatArray

    def predict(self, matrix: FloatArray) -> FloatArray:
        """Return P(y | x), float64 of shape (n, k)."""
        released = np.zeros((len(matrix), self.transition.shape[1]))
        released[:, self.model.classes_] = self.model.predict_proba(matrix)
        return nearest_source(released, self.transition)


def fit_boosted_released(
    matrix: FloatArray,
    codes: IntArray,
    transition: FloatArray,
    weights: FloatArray,
    options: BoostingOptions,
) -> BoostedReleased:
    """Boost the released label's probabilities.

    Parameters
    ----------
    matrix : float array of shape (n, d)
        Features; NaN where missing.
    codes : int32 array of shape (n,)
        Released labels, columns of ``transition``.
    transition : float64 array of shape (k, m)
        The channel; for labels that are not noisy each row is the indicator of its outputs.
    weights : float64 array of shape (n,)
        Rows' weights, not negative.
    options : BoostingOptions
        How to boost.
    """
    counts = np.bincount(codes)
    parameters = options.parameters(len(matrix))
    # Holding rows out is stratified, which takes two of each label.
    parameters["early_stopping"] &= bool(counts[counts > 0].min() > 1)
    model = HistGradientBoostingClassifier(**parameters)
    return BoostedReleased(model.fit(matrix, codes, weights), transition)


def nearest_source(released: FloatArray, transition: FloatArray) -> FloatArray:
    """Return the η of each row that maximises Σ_z q_z log (η T)_z, float64 of shape (n, k).

    Parameters
    ----------
    released : float64 array of shape (n, m)
        Probabilities q of the released label.
    transition : float64 array of shape (k, m)
        The channel T. Where its rows are linearly dependent, η is one of many.

    Notes
    -----
    Starts from the inverse channel's answer, projected on the simplex, which is η itself wherever
    q is the image of some η; expectation–maximisation does the rest.
    """
    k = len(transition)
    eta = project_on_simplex(released @ np.linalg.pinv(transition))
    unfit = np.flatnonzero(np.abs(eta @ transition - released).max(axis=1) > _FLOOR)
    part, target = (1 - k * _FLOOR) * eta[unfit] + _FLOOR, released[unfit]
    for _ in range(_EM_STEPS):
        image = part @ transition
        ratio = np.where(target > 0, target / np.where(image > 0, image, 1.0), 0.0)
        part = part * (ratio @ transition.T)
        part /= part.sum(axis=1, keepdims=True)
    eta[unfit] = part
    return eta
