"""A scikit-learn regressor of the true numeric label, learnt from released labels."""

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ldpaudit.errors import InputError
from ldpaudit.learners.estimator import ReleaseEstimator
from ldpaudit.learners.network import NetworkOptions, fit_network
from ldpaudit.learners.noise_model import stated_noise
from ldpaudit.learners.numeric_labels import debiased_labels
from ldpaudit.learners.validation import check_weights, checked_pair
from ldpaudit.modelling.encoding import Scaling
from ldpaudit.randomness import integer_seed
from ldpaudit.release import FloatArray

_MODELS = ("linear", "boosting", "network")


@dataclass(kw_only=True, eq=False, repr=False)
class ReleaseRegressor(RegressorMixin, ReleaseEstimator):  # type: ignore[misc]
    """Learns E[true label | features] from features and released numeric labels.

    The squared loss of a label with unbiased noise is, up to a constant, an unbiased loss of the
    true label. So mechanisms without bias need no correction, and finite channels with bias get
    the label's unbiased transform T⁻¹.

    Parameters
    ----------
    noise : Channel, mechanism or mapping, optional
        What released the labels; None takes them as true. Of a mapping such as
        ``{"name": "rr", "epsilon": 1.0}`` the labels are those that occur in ``y``.
    model : {"linear", "boosting", "network"}
        Ridge regression, histogram gradient boosting, or a neural network.
    correction : {"unbiased"} or None
        None regresses on the released label as it is.
    loss : {"squared", "poisson"}
        The loss: ½(ŷ − y)², or ŷ − y log ŷ for amounts and counts, with predictions above 0. Both
        are linear in the label's noise.
    penalty : float
        The ridge penalty of the linear model, for standardised features.
    rounds, network, random_state, noisy
        As in :class:`~ldpaudit.learners.ReleaseClassifier`; models other than the linear one take
        noisy columns at their word.

    References
    ----------
    Badanidiyuru et al. (2023), section 3 (unbiased noise and the squared loss).

    Examples
    --------
    >>> import numpy as np
    >>> from ldpaudit.learners import ReleaseRegressor
    >>> from ldpaudit.mechanisms import LabelRange, Laplace
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, size=(2000, 1))
    >>> noise = Laplace(LabelRange(0, 10), epsilon=2.0)
    >>> model = ReleaseRegressor(noise).fit(X, noise.release(X[:, 0], rng))
    >>> model.predict([[8.0]]).round()
    array([8.])
    """

    model: Literal["linear", "boosting", "network"] = "linear"
    correction: Literal["unbiased"] | None = "unbiased"
    loss: Literal["squared", "poisson"] = "squared"

    def fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Learn from released rows.

        Parameters
        ----------
        X, sample_weight
            As in :class:`~ldpaudit.learners.ReleaseClassifier`.
        y : float array of shape (n,)
            Released labels.

        Raises
        ------
        InputError
            If a label is none of the channel's outputs or cannot be debiased; with the Poisson loss
            also if their mean is not above 0, or for boosting one of them is negative.
        """
        rows, released = checked_pair(self, X, y, nan=self._nan(), numeric=True)
        if self.model not in _MODELS or self.correction not in ("unbiased", None):
            raise InputError(
                f"The 'model' must be one of {', '.join(_MODELS)} and the 'correction' 'unbiased' "
                f"or None. Got {self.model!r} and {self.correction!r} instead."
            )
        if self.loss not in ("squared", "poisson"):
            raise InputError(
                f"The 'loss' parameter must be 'squared' or 'poisson'. Got {self.loss!r} instead."
            )
        weights = check_weights(sample_weight, len(rows))
        target = np.asarray(released, dtype=np.float64)
        if self.noise is not None and self.correction is not None:
            target = debiased_labels(released, stated_noise(self.noise, released))
        self.shift_, self.scale_ = self._units(target, weights)
        self._fit(self._encoded(rows), (target - self.shift_) / self.scale_, weights)
        return self

    def _encoded(self, rows: FloatArray) -> FloatArray:
        """Return the features; a model that is not linear takes noisy columns at their word."""
        noisy = self._noisy()
        if noisy is None:
            return rows
        return noisy.posterior(rows) if self.model == "linear" else noisy.at_their_word(rows)

    def _units(self, target: FloatArray, weights: FloatArray) -> tuple[float, float]:
        """Return what is subtracted from the labels, and what they are divided by."""
        mean = float(np.average(target, weights=weights))
        if self.loss == "squared":
            spread = float(np.sqrt(np.average((target - mean) ** 2, weights=weights)))
            return mean, spread or 1.0
        if not mean > 0:
            raise InputError("The Poisson loss needs labels with a mean above 0; use 'squared'.")
        if self.model == "boosting" and (target < 0).any():
            raise InputError(
                "Boosting takes no labels below 0 with the Poisson loss, and noise made some: use "
                "the model 'linear' or 'network'."
            )
        return 0.0, mean

    def _fit(self, X: FloatArray, target: FloatArray, weights: FloatArray) -> None:
        rng = np.random.default_rng(self.random_state)
        self.model_: Any
        self.scaling_: Scaling | None = None
        if self.model == "network":
            shape = self.network or NetworkOptions()
            self.model_ = fit_network(X, target[:, None], weights, self.loss, shape, rng)
        elif self.model == "boosting":
            from ldpaudit.learners.boosting import BoostingOptions, fit_boosted_values

            options = BoostingOptions(rounds=self.rounds, seed=integer_seed(rng))
            name = "squared_error" if self.loss == "squared" else self.loss
            self.model_ = fit_boosted_values(X, target, weights, options, name)
        elif self.loss == "poisson":
            from ldpaudit.learners.poisson import fit_poisson

            self.scaling_ = Scaling.fit(X, weights)
            matrix = self.scaling_.transform(X)
            self.model_ = fit_poisson(matrix, target, weights, self.penalty)
        else:
            from sklearn.linear_model import Ridge

            self.scaling_ = Scaling.fit(X, weights)
            ridge = Ridge(alpha=self.penalty)
            self.model_ = ridge.fit(self.scaling_.transform(X), target, weights)

    def predict(self, X: npt.ArrayLike) -> FloatArray:
        """Return the estimated mean of the true label of each row, float64 of shape (n,)."""
        check_is_fitted(self)
        rows = self._asked(X)
        matrix = rows if self.scaling_ is None else self.scaling_.transform(rows)
        answers = np.asarray(self.model_.predict(matrix), dtype=np.float64)
        return answers.reshape(len(matrix)) * self.scale_ + self.shift_
