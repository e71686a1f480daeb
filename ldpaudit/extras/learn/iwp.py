"""Stochastic gradient descent on the inverse-Weierstrass loss of a linear model."""

# Each batch gives an unbiased estimate of the clean gradient; the parameters take a step against it
# and are led back to a ball.

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_regressor
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ldpaudit.doors import FloatArray, IndexArray, InputError, Mechanism, NoisyFeatures
from ldpaudit.extras.learn.corrections import (
    LabelNoise,
    Noise,
    debiased_labels,
    label_noise,
    label_targets,
    plain_channel,
)
from ldpaudit.extras.learn.iwp_losses import LOSSES, GradientError, MarginLoss, QuadraticLoss
from ldpaudit.extras.learn.learners import Seed, check_weights, checked_pair, checked_rows

# The step size as a function of the number of the step, from 1.
StepSize = Callable[[int], float]


@dataclass(frozen=True)
class Objective:
    """What is minimised, and where: the mean of f(y θᵀx) of a label y = ±1, plus a ridge.

    A row's label is given by its soft labels (of −1, of +1), an array of shape (b, 2). With the
    quadratic loss the soft labels (1 ∓ t)/2 give the squared loss ½(θᵀx − t)² of a number t, up
    to a constant (Dufraiche et al., appendix E.2).
    ``loss``, MarginLoss. ``sigma``, float: σ ≥ 0 of the features' noise. ``ridge``, float: the
    constant of ridge/2·‖θ‖²; the intercept is free. ``radius``, float: the parameters, intercept
    included, stay in the ball of this radius. ``intercept``, bool: whether the last parameter is
    an intercept, which meets no noise.
    """

    loss: MarginLoss
    sigma: float
    ridge: float
    radius: float
    intercept: bool

    def split(self, theta: FloatArray) -> tuple[FloatArray, float]:
        """Return the slopes, float64 of shape (p,), and the intercept, 0 without one."""
        return (theta[:-1], float(theta[-1])) if self.intercept else (theta, 0.0)

    def variance(self, theta: FloatArray) -> float:
        """Return σ²‖θ‖², the variance that the noise gives a score."""
        slopes, _ = self.split(theta)
        return self.sigma**2 * float(slopes @ slopes)

    def risk(
        self, theta: FloatArray, matrix: FloatArray, answers: FloatArray, weights: FloatArray
    ) -> float:
        """Return the weighted mean corrected loss plus the ridge, an unbiased estimate."""
        slopes, intercept = self.split(theta)
        scores, variance = matrix @ slopes + intercept, self.variance(theta)
        negative, positive = answers.T
        losses = positive * self.loss.corrected(scores, variance)
        losses = losses + negative * self.loss.corrected(-scores, variance)
        return float(weights @ losses / weights.sum() + self.ridge / 2 * (slopes @ slopes))

    def gradient(
        self, theta: FloatArray, matrix: FloatArray, answers: FloatArray, weights: FloatArray
    ) -> FloatArray:
        """Return the gradient of :meth:`risk` (Dufraiche et al., Eqs. (7) and (16))."""
        slopes, intercept = self.split(theta)
        scores, variance = matrix @ slopes + intercept, self.variance(theta)
        both, b, (negative, positive) = np.concatenate([scores, -scores]), len(scores), answers.T
        slope, bend = (self.loss.corrected(both, variance, j) for j in (1, 2))
        share = weights / weights.sum()
        by_score = (positive * slope[:b] - negative * slope[b:]) * share
        # The derivative in the variance, by the heat equation.
        by_variance = -0.5 * float((positive * bend[:b] + negative * bend[b:]) @ share)
        gradient = by_score @ matrix + (2 * self.sigma**2 * by_variance + self.ridge) * slopes
        return np.append(gradient, by_score.sum()) if self.intercept else np.asarray(gradient)

    def project(self, theta: FloatArray) -> FloatArray:
        """Return the nearest parameters in the ball."""
        norm = float(np.sqrt(theta @ theta))
        return theta if norm <= self.radius else theta * (self.radius / norm)


class Iterate(NamedTuple):
    """How far a descent has come.

    ``theta``, float64 array of shape (d,): the parameters after the last step. ``mean``, float64
    array of shape (d,): their average over the steps, the t-th with a weight proportional to t.
    ``steps``, int.
    """

    theta: FloatArray
    mean: FloatArray
    steps: int


def descend(
    problem: Objective,
    rows: tuple[FloatArray, FloatArray, FloatArray],
    order: IndexArray | None,
    step_size: StepSize,
    batch_size: int,
    start: Iterate,
) -> Iterate:
    """Take one pass over rows: features (n, p), soft labels (n, 2) and weights (n,).

    ``order`` is the order of the rows, None as they come; the last batch may be smaller, and one
    whose weights are all zero is passed over. Raise InputError if the gradient overflows.
    Dufraiche et al., Algorithm 1 (a descent: the text once prints a plus sign); Lacoste-Julien,
    Schmidt & Bach (2012) for the weights of the average.
    """
    matrix, answers, weights = rows
    theta, mean, steps = start
    with np.errstate(over="ignore", invalid="ignore"):
        for first in range(0, len(matrix), batch_size):
            chosen = slice(first, first + batch_size)
            batch = chosen if order is None else order[chosen]
            share = weights[batch]
            if not share.any():
                continue
            steps += 1
            gradient = problem.gradient(theta, matrix[batch], answers[batch], share)
            theta = problem.project(theta - step_size(steps) * gradient)
            if not np.isfinite(theta).all():
                raise InputError(
                    f"The gradient overflowed at step {steps}: the noise is too large for this "
                    "loss and radius. Use a smaller radius or step, or the quadratic loss."
                )
            mean = mean + 2 / (steps + 1) * (theta - mean)
    return Iterate(theta, mean, steps)


def theorem_step(steps: int, strong: float, smooth: float, spread: float, distance: float) -> float:
    """Return γ = min(1/(2𝒦), log(max(2, μ² D² t/A))/(μ t)) for a run of t steps.

    μ = ``strong`` > 0 is the strong convexity that the ridge grants, 𝒦 = ``smooth`` that of the
    risk on the ball, A = ``spread`` the largest second moment of a batch's gradient about its
    mean, D = ``distance`` a bound of that from the start to the minimum.
    Dufraiche et al., Theorem 5.5 and appendix D.8; not their A, see :func:`theorem_rule`.
    """
    gain = strong**2 * distance**2 * steps / spread
    return min(1 / (2 * smooth), math.log(max(2.0, gain)) / (strong * steps))


def theorem_rule(
    problem: Objective, dimension: int, feature_radius: float, label_factor: float, batch_size: int
) -> StepSize:
    """Return the rule for a problem with a ridge above 0.

    ``feature_radius`` is the largest norm of a clean feature vector, ``label_factor`` S̃(S̃ − 1)
    of the label noise, S̃ = 1/(1 − e^{−ε}); 0 without any. Theorem 5.3's own bound of the variance
    is too small where features are noisy: its C is a supremum over clean features, but the
    corrected gradient is taken at noisy ones. Here it is the exact second moment of a row.
    """
    norm = math.sqrt(feature_radius**2 + problem.intercept)
    moment = problem.loss.second_moment(problem.sigma, problem.radius, norm, dimension)
    # The mean gradient of a batch has so much less variance than a row's. What a corrected label
    # adds is 4S̃(S̃ − 1) times the moment of half the difference of both labels' gradients.
    spread = moment * (1 + 4 * label_factor) / batch_size
    smooth = problem.loss.curvature(norm * problem.radius) * norm**2 + problem.ridge
    return partial(
        theorem_step,
        strong=problem.ridge,
        smooth=smooth,
        spread=max(spread, 1e-300),
        distance=problem.radius,
    )


Step = float | Literal["theorem"]


@dataclass(kw_only=True, eq=False, repr=False)
class IWPEstimator(BaseEstimator, ABC):  # type: ignore[misc]
    """The base of :class:`IWPClassifier` and :class:`IWPRegressor`: passes over the rows."""

    noise: Noise | None = field(default=None, kw_only=False)
    sigma: float | None = None
    ridge: float = 0.01
    radius: float = 10.0
    step: Step = "theorem"
    batch_size: int = 128
    epochs: int = 1
    shuffle: bool = True
    average: bool = False
    fit_intercept: bool = True
    feature_radius: float | None = None
    expected_rows: int | None = None
    random_state: Seed = 0
    theta_: FloatArray = field(init=False)
    mean_: FloatArray = field(init=False)
    n_steps_: int = field(init=False)

    def fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Learn from released rows.

        Parameters
        ----------
        X : float array of shape (n, d)
            Released features.
        y : array of shape (n,)
            Released labels.
        sample_weight : float array of shape (n,), optional
            Weights, not negative.

        Raises
        ------
        InputError
            If a label lies outside the channel or cannot be corrected, the noise is too large for
            the loss (σ²·radius² beyond its limit), or, for a classifier, there are not two labels.
        """
        return self._pass(X, y, sample_weight, whole=True)

    def _pass(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None,
        classes: npt.ArrayLike | None = None,
        *,
        whole: bool = False,
    ) -> Self:
        """Pass over rows; ``whole``: from the start, ``epochs`` times, and no more will follow."""
        first = whole or not hasattr(self, "theta_")
        matrix, released = checked_pair(self, X, y, numeric=is_regressor(self), reset=first)
        if first:
            self._begin(released if classes is None else np.asarray(classes))
        epochs = self.epochs if whole else 1
        n, width = matrix.shape
        expected = self.expected_rows or (epochs * n if whole else None)
        problem = self._problem(expected)
        if first:
            zeros = np.zeros(width + self.fit_intercept)
            self.theta_, self.mean_, self.n_steps_ = zeros, zeros, 0
        answers, label_factor = self._answers(released)
        rows = np.ascontiguousarray(matrix), answers, check_weights(sample_weight, n)
        step_size = self._step_size(problem, rows[0], label_factor, expected)
        rng = np.random.default_rng(self.random_state)
        progress = Iterate(self.theta_, self.mean_, self.n_steps_)
        for _ in range(epochs):
            order = rng.permutation(n) if self.shuffle else None
            progress = descend(problem, rows, order, step_size, self.batch_size, progress)
        self.theta_, self.mean_, self.n_steps_ = progress
        chosen = progress.mean if self.average else progress.theta
        self.margin_variance_ = problem.variance(chosen)
        self.coef_, self.intercept_ = problem.split(chosen)
        return self

    def _begin(self, labels: npt.NDArray[Any]) -> None:
        """Inspect the labels before learning from the first row."""

    @abstractmethod
    def _loss(self) -> MarginLoss:
        """Return the loss."""

    @abstractmethod
    def _answers(self, y: npt.NDArray[Any]) -> tuple[FloatArray, float]:
        """Return the rows' soft labels, (n, 2), and S̃(S̃ − 1) of the label noise."""

    def _scores(self, X: npt.ArrayLike) -> FloatArray:
        """Return θᵀx plus the intercept of each row, float64 of shape (n,)."""
        check_is_fitted(self)
        return np.asarray(checked_rows(self, X) @ self.coef_ + self.intercept_)

    def _problem(self, expected: int | None) -> Objective:
        """Return what is minimised, after a check of the parameters and of the noise."""
        zero = {"radius": False, "batch_size": False, "epochs": False, "ridge": True, "sigma": True}
        for name, may in zero.items():
            value = getattr(self, name)
            if value is not None and not (
                math.isfinite(value) and (value > 0 or (may and not value))
            ):
                limit = "≥ 0" if may else "above 0"
                raise InputError(f"The {name!r} parameter must be {limit}. Got {value!r} instead.")
        step: Any = self.step
        if step != "theorem" and (isinstance(step, str) or not (math.isfinite(step) and step > 0)):
            raise InputError(
                f"The 'step' parameter must be 'theorem' or a number above 0. Got {step!r} instead."
            )
        if step == "theorem" and not self.ridge:
            raise InputError(
                "The step of Theorem 5.5 needs strong convexity: a 'ridge' above 0. "
                "Set one, or give a constant 'step'."
            )
        noisy = self.noise.offers(NoisyFeatures) if isinstance(self.noise, Mechanism) else None
        declared = None if noisy is None else noisy.sigma
        sigma = float(self.sigma if self.sigma is not None else declared or 0.0)
        if declared is not None and not math.isclose(sigma, declared, rel_tol=1e-9):
            raise InputError(
                f"'sigma' and the mechanism must agree: {sigma:.6g} against {declared:.6g}."
            )
        loss = self._loss()
        if sigma > 0:
            loss.check(sigma**2 * self.radius**2, expected)
        return Objective(loss, sigma, self.ridge, self.radius, self.fit_intercept)

    def _step_size(
        self, problem: Objective, matrix: FloatArray, label_factor: float, expected: int | None
    ) -> StepSize:
        if self.step != "theorem":
            return lambda _: float(self.step)
        norm = self._declared_radius()
        if norm is None:
            if problem.sigma > 0:
                raise InputError(
                    "The step of Theorem 5.5 needs the largest norm of a clean feature vector: "
                    "pass 'feature_radius', a mechanism that declares it, or a constant 'step'."
                )
            norm = float(np.sqrt((matrix**2).sum(axis=1).max()))
        rule = theorem_rule(problem, matrix.shape[1], norm, label_factor, self.batch_size)
        if expected is None:
            return rule
        return lambda _: rule(max(math.ceil(expected / self.batch_size), 1))

    def _declared_radius(self) -> float | None:
        """Return the largest norm of a clean feature vector, None where it is not declared."""
        noisy = self.noise.offers(NoisyFeatures) if isinstance(self.noise, Mechanism) else None
        return float(noisy.radius) if self.feature_radius is None and noisy else self.feature_radius


@dataclass(kw_only=True, eq=False, repr=False)
class IWPClassifier(ClassifierMixin, IWPEstimator):  # type: ignore[misc]
    """A linear classifier of two labels by inverse-Weierstrass private SGD.

    Parameters
    ----------
    noise : GaussianRR, other mechanism or Channel, optional
        What released the labels; a GaussianRR declares the features' noise as well. None takes the
        labels as true.
    loss : {"quadratic", "exponential", "log"} or MarginLoss
        f(y θᵀx), one of :mod:`ldpaudit.learners`. The first two are corrected exactly;
        the log loss by a series that is cut off at the order whose gradient has the least mean
        squared error over a batch. What is left: ``gradient_error`` (bias and standard deviation
        of a row's gradient), ``truncation_bias``.
    sigma : float, optional
        σ of Gaussian noise on the features, where ``noise`` does not declare it.
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
        not declare it.
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
    The corrected gradient is unbiased, but its variance grows with σ²‖θ‖², for the exponential loss
    exponentially. A ``radius`` at whose edge the error of a step's gradient is larger than half the
    variance of the clean one is refused: there the model may learn the opposite. For the
    exponential loss and batches of 128 that is σ²·radius² = 3.8, for the log loss 56; the gradient
    of the quadratic loss is linear, so that its noise averages out over all n rows: 1.5 n.

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
        return self._pass(X, y, sample_weight, classes)

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

    def _loss(self) -> MarginLoss:
        if isinstance(self.loss, str):
            if self.loss not in LOSSES:
                raise InputError(
                    f"The 'loss' parameter must be one of {', '.join(LOSSES)}. Got {self.loss!r}."
                )
            return LOSSES[self.loss](rows=self.batch_size)
        return self.loss

    def _answers(self, y: npt.NDArray[Any]) -> tuple[FloatArray, float]:
        channel = self._label_noise.channel
        codes = self._label_noise.codes(y, "values" if self.noise is None else self.labels)
        # S̃(S̃ − 1) for randomized response; the larger of two labels' for another channel.
        factor = float((channel.matrix @ channel.inverse**2)[:, 1].max()) - 1.0
        return label_targets(codes, channel), max(factor, 0.0)

    def decision_function(self, X: npt.ArrayLike) -> FloatArray:
        """Return the score θᵀx plus the intercept of each row, float64 of shape (n,)."""
        return self._scores(X)

    def predict_proba(self, X: npt.ArrayLike) -> FloatArray:
        """Return P(true label | x) by the loss's link, float64 of shape (n, 2)."""
        positive = self._loss().probability(self.decision_function(X))
        return np.stack([1 - positive, positive], axis=1)

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the likelier true label of each row (of clean features), shape (n,)."""
        positive = (self.decision_function(X) > 0).astype(int)
        return np.asarray(self.classes_[positive])

    def truncation_bias(self) -> float:
        """Return how far the corrected loss of one row may be from unbiased at the fitted θ."""
        # The supremum over clean margins up to ‖θ‖ times ``feature_radius`` (or up to 3 where it is
        # not known); 0 for the quadratic and the exponential loss.
        if self.gradient_error() is None:
            return 0.0
        loss, radius = self._loss(), self._declared_radius()
        norm = float(np.linalg.norm(self.coef_))
        reach = loss.reach if radius is None else norm * radius + abs(self.intercept_)
        # The label's noise averages out: what is left is the series' own bias.
        return loss.bias(self.margin_variance_, reach, loss.order(self.margin_variance_))

    def gradient_error(self) -> GradientError | None:
        """Return order, bias and standard deviation of a row's corrected slope at the fitted θ."""
        # None for the quadratic and the exponential loss, and without noise: no series is cut off.
        check_is_fitted(self)
        exact = self._loss().exact or self.margin_variance_ <= 0
        return None if exact else self._loss().error(self.margin_variance_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


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
        return self._pass(X, y, sample_weight)

    def _loss(self) -> MarginLoss:
        return QuadraticLoss(rows=self.batch_size)

    def _answers(self, y: npt.NDArray[Any]) -> tuple[FloatArray, float]:
        released = np.asarray(y, dtype=np.float64)
        target = released if self.noise is None else debiased_labels(y, self.noise)
        return np.stack([1 - target, 1 + target], axis=1) / 2, float(np.var(target))

    def predict(self, X: npt.ArrayLike) -> FloatArray:
        """Return θᵀx plus the intercept for clean features, float64 of shape (n,)."""
        return self._scores(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # One pass over a few hundred rows does not reach the minimum.
        tags.regressor_tags.poor_score = True
        return tags
