"""IWP-SGD: a linear regression learnt from features with Gaussian noise and noisy labels."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin

from ldpaudit.learners.iwp.base import IWPEstimator, Prepared
from ldpaudit.learners.iwp.descent import Objective, RegressionLoss
from ldpaudit.learners.numeric_labels import debiased_labels
from ldpaudit.learners.validation import check_weights
from ldpaudit.release import FloatArray


class IWPRegressor(RegressorMixin, IWPEstimator):  # type: ignore[misc]
    """Linear regression by inverse-Weierstrass private SGD.

    The squared loss is linear in the label's noise, so a label with unbiased noise needs no
    correction; one from a biased finite channel gets its unbiased transform. Gaussian noise on the
    features is corrected by −σ²/2·‖θ‖².

    Parameters
    ----------
    noise : GaussianRR, other mechanism or Channel, optional
        What released the labels; None takes them as true, which is right for any unbiased
        noise.
    sigma, ridge, radius, step, batch_size, epochs, shuffle, average, fit_intercept
        As in :class:`~ldpaudit.learners.IWPClassifier`.
    feature_radius, expected_rows, random_state
        As in :class:`~ldpaudit.learners.IWPClassifier`.

    Attributes
    ----------
    coef_ : float64 array of shape (d,)
        θ.
    intercept_ : float
        The intercept, 0 without one.

    References
    ----------
    Dufraiche et al., Algorithm 1 and appendix E.2.
    """

    def partial_fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Go on with more rows: one pass over them."""
        return self._go_on(X, y, sample_weight)

    def _problem(self) -> Objective:
        self._check_parameters()
        loss = RegressionLoss()
        return Objective(loss, self._sigma(), self.ridge, self.radius, self.fit_intercept)

    def _prepared(
        self, X: FloatArray, y: npt.NDArray[Any], weights: npt.ArrayLike | None
    ) -> Prepared:
        released = np.asarray(y, dtype=np.float64)
        target = released if self.noise is None else debiased_labels(y, self.noise)
        return Prepared(
            np.ascontiguousarray(X), target, check_weights(weights, len(X)), float(np.var(target))
        )

    def predict(self, X: npt.ArrayLike) -> FloatArray:
        """Return θᵀx plus the intercept for clean features, float64 of shape (n,)."""
        return self._scores(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # One pass over a few hundred rows does not reach the minimum.
        tags.regressor_tags.poor_score = True
        return tags
