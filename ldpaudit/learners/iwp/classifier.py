"""IWP-SGD: a linear classifier learnt from features with Gaussian noise and noisy labels."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ldpaudit.errors import InputError
from ldpaudit.learners.corrections import label_targets
from ldpaudit.learners.iwp.base import IWPEstimator, Prepared
from ldpaudit.learners.iwp.descent import ClassificationLoss, Objective
from ldpaudit.learners.iwp.losses import (
    ExponentialLoss,
    MarginLoss,
    QuadraticLoss,
    SeriesLoss,
    log_loss,
)
from ldpaudit.learners.iwp.truncation import GradientError, gradient_errors, truncation_bias
from ldpaudit.learners.noise_model import LabelNoise, label_noise, plain_channel
from ldpaudit.learners.validation import check_weights
from ldpaudit.release import FloatArray

LOSSES: Mapping[str, Callable[[int], MarginLoss]] = {
    "quadratic": lambda rows: QuadraticLoss(rows=rows),
    "exponential": lambda rows: ExponentialLoss(rows=rows),
    "log": lambda rows: log_loss(rows=rows),
}


@dataclass(kw_only=True, eq=False, repr=False)
class IWPClassifier(ClassifierMixin, IWPEstimator):  # type: ignore[misc]
    """A linear classifier of two labels by inverse-Weierstrass private SGD.

    Parameters
    ----------
    noise : GaussianRR, other mechanism or Channel, optional
        What released the labels; a GaussianRR states the features' noise as well. None takes the
        labels as true.
    loss : {"quadratic", "exponential", "log"} or MarginLoss
        f(y θᵀx). The first two are corrected exactly; the log loss by a series that is cut off at
        the order whose gradient has the least mean squared error over a batch. Noise is refused
        at which that error is more than half the clean slope's variance. What is left:
        ``gradient_error`` (bias and standard deviation of a row's gradient), ``truncation_bias``.
    sigma : float, optional
        σ of Gaussian noise on the features, where ``noise`` does not state it.
    ridge : float
        The constant of ridge/2·‖θ‖².
    radius : float
        The parameters stay in the ball of this ℓ2 radius.
    step : float or "theorem"
        A constant step size, or the one of Theorem 5.5. For a stream of unknown length the
        theorem's size for the steps so far is taken.
    batch_size, epochs, shuffle
        Rows of a batch, passes over the rows in ``fit`` (the theorem is about one), and whether
        rows are taken in random order.
    average : bool
        Whether the average of the iterates is kept, later ones with more weight, in place of the
        last one: with a constant ``step`` it has a fraction of the variance.
    fit_intercept : bool
        Whether an intercept is learnt.
    feature_radius : float, optional
        The largest norm of a clean feature vector, for the theorem's step, where ``noise`` does
        not state it.
    expected_rows : int, optional
        How many rows ``partial_fit`` will see in all, for the theorem's step.
    labels : {"values", "codes"}
        Whether labels are given as the channel's outputs or as positions among them.
    random_state : int, numpy.random.Generator or None
        Seed of the order of the rows.

    Attributes
    ----------
    coef_ : float64 array of shape (d,)
        θ.
    intercept_ : float
        The intercept, 0 without one.
    margin_variance_ : float
        σ²‖θ‖², the variance that the features' noise gives a released row's score.
    classes_ : array of shape (2,)
        The true labels; the score speaks for the second one.

    Notes
    -----
    The corrected gradient is unbiased, but its variance grows with σ²‖θ‖² (like its exponential for
    the exponential loss): a small ``radius`` or a larger ``ridge`` keeps it in hand.

    References
    ----------
    Dufraiche et al., Algorithm 1, Theorems 5.2 and 5.5, section 5.2.

    Examples
    --------
    >>> import numpy as np
    >>> from ldpaudit.learners import IWPClassifier
    >>> from ldpaudit.mechanisms import RandomizedResponse
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.7, 0.7, size=(1000, 2))
    >>> noise = RandomizedResponse.from_epsilon(("no", "yes"), 2.0)
    >>> released = noise.release(np.where(X[:, 0] > 0, "yes", "no"), rng)
    >>> noisy = X + rng.normal(0, 0.1, X.shape)
    >>> learner = IWPClassifier(noise, sigma=0.1, feature_radius=1.0).fit(noisy, released)
    >>> learner.predict([[0.6, 0.0], [-0.6, 0.0]])
    array(['yes', 'no'], dtype='<U3')
    """

    loss: Literal["quadratic", "exponential", "log"] | MarginLoss = "quadratic"
    radius: float = 5.0
    labels: Literal["values", "codes"] = "values"
    classes_: npt.NDArray[Any] = field(init=False)

    def partial_fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Go on with more rows: one pass over them.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`.
        classes : array of shape (2,), optional
            The labels; needed in the first call where ``noise`` is None.
        """
        if classes is None and self.noise is None and not hasattr(self, "theta_"):
            raise InputError("The first call of partial_fit needs 'classes' or a 'noise'.")
        return self._go_on(X, y, sample_weight, classes)

    def _begin(self, labels: npt.NDArray[Any]) -> None:
        check_classification_targets(labels)
        if self.noise is None:
            classes = len(np.unique(labels))
            if classes != 2:
                # scikit-learn's own words, which its checks look for.
                raise InputError(
                    "Only binary classification is supported: the labels must be of 2 classes. "
                    f"Got {classes} class{'es' if classes > 1 else ''} instead."
                )
            noise = LabelNoise(plain_channel(labels))
        else:
            noise = label_noise(self.noise)
        if len(noise.channel.classes) != 2 or noise.double is not None:
            raise InputError(
                "IWP-SGD is for two labels and features with Gaussian noise or none; this "
                f"mechanism has {len(noise.channel.classes)} labels"
                + (" and synthetic features." if noise.double is not None else ".")
            )
        coded = self.noise is not None and self.labels == "codes"
        self.classes_ = np.arange(2) if coded else np.asarray(noise.channel.classes)
        self._label_noise = noise

    def _problem(self) -> Objective:
        self._check_parameters()
        loss: Any = self.loss
        if isinstance(loss, str):
            if loss not in LOSSES:
                raise InputError(
                    f"The 'loss' parameter must be one of {', '.join(LOSSES)}. Got {loss!r}."
                )
            loss = LOSSES[loss](self.batch_size)
        sigma = self._sigma()
        if sigma > 0:
            loss.check(sigma**2 * self.radius**2)
        self._margin_loss: MarginLoss = loss
        return Objective(
            ClassificationLoss(loss), sigma, self.ridge, self.radius, self.fit_intercept
        )

    def _prepared(
        self, X: FloatArray, y: npt.NDArray[Any], weights: npt.ArrayLike | None
    ) -> Prepared:
        noise = self._label_noise
        targets = label_targets(
            noise.codes(y, "values" if self.noise is None else self.labels), noise.channel
        )
        # S̃(S̃ − 1) for randomized response; the larger of two labels' for another channel.
        factor = float((noise.channel.matrix @ noise.channel.inverse**2)[:, 1].max()) - 1.0
        return Prepared(
            np.ascontiguousarray(X), targets, check_weights(weights, len(X)), max(factor, 0.0)
        )

    def decision_function(self, X: npt.ArrayLike) -> FloatArray:
        """Return the score θᵀx plus the intercept of each row, float64 of shape (n,)."""
        return self._scores(X)

    def predict_proba(self, X: npt.ArrayLike) -> FloatArray:
        """Return P(true label | x) by the loss's link, float64 of shape (n, 2)."""
        scores = self.decision_function(X)
        positive = self._margin_loss.probability(scores)
        return np.stack([1 - positive, positive], axis=1)

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the likelier true label of each row (of clean features), shape (n,)."""
        positive = (self.decision_function(X) > 0).astype(int)
        return np.asarray(self.classes_[positive])

    def truncation_bias(self) -> float:
        """Return how far the corrected loss of one row may be from unbiased at the fitted θ.

        The supremum over clean margins up to ‖θ‖ times ``feature_radius`` (or up to 3 where it is
        not known); 0 for the quadratic and the exponential loss.
        """
        check_is_fitted(self)
        loss = self._margin_loss
        if not isinstance(loss, SeriesLoss) or self.margin_variance_ <= 0:
            return 0.0
        radius = self._declared_radius()
        norm = float(np.linalg.norm(self.coef_))
        reach = loss.reach if radius is None else norm * radius + abs(self.intercept_)
        # The label's noise averages out: what is left is the series' own bias.
        order = loss.order(self.margin_variance_)
        return truncation_bias(loss.derivative, self.margin_variance_, reach, order)

    def gradient_error(self) -> GradientError | None:
        """Return order, bias and standard deviation of a row's corrected slope at the fitted θ.

        None for the quadratic and the exponential loss, and without noise: no series is cut off.
        """
        check_is_fitted(self)
        loss, variance = self._margin_loss, self.margin_variance_
        if not isinstance(loss, SeriesLoss) or variance <= 0:
            return None
        order = loss.order(variance)
        return gradient_errors(loss.derivative, variance, loss.reach, order + 1)[order]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
