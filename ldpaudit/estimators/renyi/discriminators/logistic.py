"""A logistic regression as a discriminator: the cheapest, and exact for Gaussians of one shape."""

import warnings
from dataclasses import dataclass

import numpy as np

from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.renyi.discriminators.inputs import Inputs
from ldpaudit.release import BoolArray, Float32Array, FloatArray


@dataclass(frozen=True)
class LogisticDiscriminator:
    """Standardised inputs and their weights."""

    inputs: Inputs
    weights: FloatArray
    intercept: float

    def log_odds(self, rows: Float32Array) -> FloatArray:
        """Return the log-odds of P."""
        return np.asarray(self.inputs.transform(rows) @ self.weights + self.intercept)


def fit_logistic(
    rows: Float32Array, is_p: BoolArray, categorical: BoolArray
) -> LogisticDiscriminator:
    """Fit it with both sides weighted equally.

    Raises
    ------
    InsufficientDataError
        If no column varies.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    inputs = Inputs.fit(rows, categorical)
    matrix = inputs.transform(rows)
    if matrix.shape[1] == 0:
        raise InsufficientDataError("A discriminator needs a column that varies.")
    model = LogisticRegression(class_weight="balanced", max_iter=200)
    with warnings.catch_warnings():
        # Bounds hold for any discriminator, and two hundred steps are near enough to the best.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(matrix.astype(np.float64), is_p)
    return LogisticDiscriminator(
        inputs, np.asarray(model.coef_[0], np.float64), float(model.intercept_[0])
    )
