"""What the two IWP-SGD estimators share: parameters, passes over the rows, the step size."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils.validation import check_is_fitted

from ldpaudit.errors import InputError
from ldpaudit.learners.iwp.descent import Iterate, Objective, StepSize, descend, theorem_rule
from ldpaudit.learners.noise_model import Noise
from ldpaudit.learners.validation import Seed, checked_pair, checked_rows
from ldpaudit.mechanisms.capabilities import NoisyFeatures
from ldpaudit.release import FloatArray

Step = float | Literal["theorem"]


@dataclass(kw_only=True, eq=False, repr=False)
class IWPEstimator(BaseEstimator, ABC):  # type: ignore[misc]
    """The base of :class:`IWPClassifier` and :class:`IWPRegressor`."""

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
            If a label lies outside the channel or cannot be corrected; for a classifier also if
            there are not two labels, or the noise is too large for the loss (σ²·radius² beyond its
            limit).
        """
        matrix, released = checked_pair(self, X, y, numeric=is_regressor(self))
        self._begin(released)
        problem = self._problem()
        self._start(matrix.shape[1])
        rows = self._prepared(matrix, released, sample_weight)
        self._run(problem, rows, self.epochs, whole=True)
        return self

    def _go_on(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None,
        classes: npt.ArrayLike | None = None,
    ) -> Self:
        """Pass once over more rows."""
        first = not hasattr(self, "theta_")
        matrix, released = checked_pair(self, X, y, numeric=is_regressor(self), reset=first)
        if first:
            self._begin(released if classes is None else np.asarray(classes))
            self.theta_, self.mean_, self.n_steps_ = Iterate.start(
                matrix.shape[1] + self.fit_intercept
            )
        rows = self._prepared(matrix, released, sample_weight)
        self._run(self._problem(), rows, 1, whole=False)
        return self

    def _begin(self, labels: npt.NDArray[Any]) -> None:
        """Inspect the labels before learning from the first row."""

    @abstractmethod
    def _problem(self) -> Objective:
        """Return what is minimised, after a check of the parameters."""

    @abstractmethod
    def _prepared(
        self, X: FloatArray, y: npt.NDArray[Any], weights: npt.ArrayLike | None
    ) -> "Prepared":
        """Return the rows with corrected labels."""

    def _scores(self, X: npt.ArrayLike) -> FloatArray:
        """Return θᵀx plus the intercept of each row, float64 of shape (n,)."""
        check_is_fitted(self)
        return np.asarray(checked_rows(self, X) @ self.coef_ + self.intercept_)

    def _sigma(self) -> float:
        declared = self.noise.sigma if isinstance(self.noise, NoisyFeatures) else None
        if self.sigma is None:
            return float(declared or 0.0)
        if not (math.isfinite(self.sigma) and self.sigma >= 0):
            raise InputError(f"The 'sigma' parameter must be finite and ≥ 0. Got {self.sigma!r}.")
        if declared is not None and not math.isclose(self.sigma, declared, rel_tol=1e-9):
            raise InputError(
                f"'sigma' and the mechanism must agree: {self.sigma:.6g} against {declared:.6g}."
            )
        return float(self.sigma)

    def _check_parameters(self) -> None:
        for name in ("radius", "batch_size", "epochs"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise InputError(f"The {name!r} parameter must be above 0. Got {value!r} instead.")
        if not (math.isfinite(self.ridge) and self.ridge >= 0):
            raise InputError(f"The 'ridge' parameter must be ≥ 0. Got {self.ridge!r} instead.")
        step: Any = self.step
        if step == "theorem":
            if self.ridge == 0:
                raise InputError(
                    "The step of Theorem 5.5 needs strong convexity: a 'ridge' above 0. "
                    "Set one, or give a constant 'step'."
                )
        elif isinstance(step, str) or not (math.isfinite(step) and step > 0):
            raise InputError(
                f"The 'step' parameter must be 'theorem' or a number above 0. Got {step!r} instead."
            )

    def _run(self, problem: Objective, rows: "Prepared", epochs: int, *, whole: bool) -> None:
        """Pass over the rows, from the current parameters on; ``whole``: no more will follow."""
        expected = self.expected_rows or (epochs * len(rows.matrix) if whole else None)
        step_size = self._step_size(problem, rows, expected)
        matrix, rng = np.ascontiguousarray(rows.matrix), np.random.default_rng(self.random_state)
        progress = Iterate(self.theta_, self.mean_, self.n_steps_)
        for _ in range(epochs):
            order = rng.permutation(len(rows.matrix)) if self.shuffle else None
            progress = descend(
                problem,
                matrix,
                rows.answers,
                rows.weights,
                order,
                step_size,
                self.batch_size,
                progress,
            )
        self._store(problem, progress)

    def _store(self, problem: Objective, progress: Iterate) -> None:
        self.theta_, self.mean_, self.n_steps_ = progress
        chosen = progress.mean if self.average else progress.theta
        self.margin_variance_ = problem.variance(chosen)
        self.coef_, self.intercept_ = problem.split(chosen)

    def _start(self, width: int) -> None:
        self.theta_, self.mean_, self.n_steps_ = Iterate.start(width + self.fit_intercept)

    def _step_size(self, problem: Objective, rows: "Prepared", expected: int | None) -> StepSize:
        if self.step != "theorem":
            constant = float(self.step)
            return lambda _: constant
        rule = theorem_rule(
            problem,
            rows.matrix.shape[1],
            self._feature_radius(problem, rows.matrix),
            rows.label_factor,
            self.batch_size,
        )
        if expected is None:
            return rule.at
        chosen = rule.at(max(math.ceil(expected / self.batch_size), 1))
        return lambda _: chosen

    def _declared_radius(self) -> float | None:
        """Return the largest norm of a clean feature vector, None where it is not stated."""
        if self.feature_radius is None and isinstance(self.noise, NoisyFeatures):
            return float(self.noise.radius)
        return self.feature_radius

    def _feature_radius(self, problem: Objective, matrix: FloatArray) -> float:
        declared = self._declared_radius()
        if declared is not None:
            return declared
        if problem.sigma > 0:
            raise InputError(
                "The step of Theorem 5.5 needs the largest norm of a clean feature vector: pass "
                "'feature_radius', a mechanism that states it, or a constant 'step'."
            )
        return float(np.sqrt((matrix**2).sum(axis=1).max()))


@dataclass(frozen=True)
class Prepared:
    """Rows ready for the descent.

    Attributes
    ----------
    matrix, answers, weights : float64 arrays
        As :func:`ldpaudit.learners.iwp.descent.descend` takes them.
    label_factor : float
        S̃(S̃ − 1) of the label noise.
    """

    matrix: FloatArray
    answers: FloatArray
    weights: FloatArray
    label_factor: float
