"""Gradient boosting on labels that went through a known channel.

Corrected losses with negative weights are no losses for trees, which make them as small as they
like. Two sound ways instead, neither with a negative weight:

* forward: each row appears once per label y with weight P(y | x, z), by the current model and the
  channel; boosting takes a few Newton steps on the weighted log-loss, and the weights are computed
  anew. The weighted log-loss lies above the forward loss and touches it, so each stage is a step of
  expectation–maximisation on it. The channel may differ from row to row. With one channel for all
  rows :mod:`ldpaudit.learners.released_boosting` does better.
* backward: the unbiased soft labels are regressed on the features, label by label, with the squared
  loss, which is bounded below whatever their sign; then the answers are projected on the simplex.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from ldpaudit.learners.corrections import forward_losses, project_on_simplex
from ldpaudit.release import BoolArray, FloatArray, IndexArray

_EM_STEPS = 100
_HELD_OUT = 0.1
_WORTH_HOLDING_OUT = 1000
_PATIENCE = 2


@dataclass(frozen=True)
class BoostingOptions:
    """How to boost.

    Attributes
    ----------
    rounds : int
        Rounds at most.
    rate : float
        The step of each.
    steps : int
        Rounds between two looks at the weights, where there are any.
    leaf : int
        The least number of rows of a leaf.
    seed : int
        The seed.
    categorical : bool array of shape (d,), optional
        Which features are categorical.
    """

    rounds: int = 100
    rate: float = 0.1
    steps: int = 10
    leaf: int = 20
    seed: int = 0
    categorical: BoolArray | None = None

    def parameters(self, n: int) -> dict[str, Any]:
        """Return scikit-learn's parameters for n rows; from 1,000 on it stops early."""
        return {
            "max_iter": self.rounds,
            "learning_rate": self.rate,
            "min_samples_leaf": self.leaf,
            "l2_regularization": 1.0,
            "early_stopping": n >= _WORTH_HOLDING_OUT,
            "validation_fraction": _HELD_OUT,
            "categorical_features": self.categorical,
            "random_state": self.seed,
        }


@dataclass(frozen=True)
class BoostedForward:
    """A boosted classifier of the true label."""

    model: Any

    def predict(self, matrix: FloatArray) -> FloatArray:
        """Return P(y | x), float64 of shape (n, k)."""
        return np.asarray(self.model.predict_proba(matrix), dtype=np.float64)


@dataclass(frozen=True)
class BoostedTargets:
    """One boosted regression of a soft label for each class."""

    models: tuple[Any, ...]

    def predict(self, matrix: FloatArray) -> FloatArray:
        """Return P(y | x), float64 of shape (n, k): the regressions projected on the simplex."""
        raw = np.stack([model.predict(matrix) for model in self.models], axis=1)
        return project_on_simplex(raw)


def fit_boosted_forward(
    matrix: FloatArray, likelihood: FloatArray, weights: FloatArray, options: BoostingOptions
) -> BoostedForward:
    """Boost the forward loss by expectation–maximisation, with any channel for each row.

    Parameters
    ----------
    matrix : float array of shape (n, d)
        Features; NaN where missing.
    likelihood : float64 array of shape (n, k)
        P(z | y, x) of each row's released label z, for every label y.
    weights : float64 array of shape (n,)
        Rows' weights, not negative.
    options : BoostingOptions
        How to boost; of 1,000 rows or more a tenth is held out, and the stage of least forward
        loss on it is kept.

    Notes
    -----
    Under strong noise a stage closes only the share of the gap that the channel lets through: with
    one channel for all rows :mod:`ldpaudit.learners.released_boosting` is nearer to the truth.

    References
    ----------
    Patrini et al. (2017), Theorem 2 (the loss); Dempster et al. (1977) (the stages).
    """
    held, training = _split(len(matrix), options.seed)
    stages = _Stages(matrix[training], likelihood[training], weights[training], options)
    best, kept, since = np.inf, stages.model, 0
    for model in stages.grow():
        if not len(held):
            kept = model
            continue
        losses = forward_losses(np.asarray(model.predict_proba(matrix[held])), likelihood[held])
        value, since = float(weights[held] @ losses), since + 1
        if value < best:
            best, kept, since = value, copy.deepcopy(model), 0
        if since >= _PATIENCE:
            break
    return BoostedForward(kept)


class _Stages:
    """Boosting by stages: each row once per possible label, with weights made anew."""

    def __init__(
        self,
        matrix: FloatArray,
        likelihood: FloatArray,
        weights: FloatArray,
        options: BoostingOptions,
    ) -> None:
        self.matrix, self.likelihood, self.weights = matrix, likelihood, weights
        self.rounds, self.steps = options.rounds, options.steps
        self.rows, self.label = np.nonzero(likelihood * weights[:, None] > 0)
        parameters = options.parameters(len(matrix))
        # The rows held out here are whole ones; scikit-learn would hold out copies.
        parameters |= {"early_stopping": False, "warm_start": True}
        parameters["min_samples_leaf"] = max(1, round(options.leaf * len(self.rows) / len(matrix)))
        self.model = HistGradientBoostingClassifier(**parameters)

    def grow(self) -> Iterator[Any]:
        """Yield the model after each stage."""
        posterior = _normalised(marginal(self.likelihood, self.weights) * self.likelihood)
        stacked = self.matrix[self.rows]
        for done in range(0, self.rounds, self.steps):
            share = (posterior * self.weights[:, None])[self.rows, self.label]
            self.model.set_params(max_iter=min(done + self.steps, self.rounds))
            self.model.fit(stacked, self.label, share)
            yield self.model
            probability = np.asarray(self.model.predict_proba(self.matrix))
            posterior = _normalised(probability * self.likelihood)


def fit_boosted_targets(
    matrix: FloatArray, targets: FloatArray, weights: FloatArray, options: BoostingOptions
) -> BoostedTargets:
    """Boost the squared loss of soft labels, float64 of shape (n, k), that may be negative."""
    models = (fit_boosted_values(matrix, target, weights, options) for target in targets.T)
    return BoostedTargets(tuple(models))


def fit_boosted_values(
    matrix: FloatArray, values: FloatArray, weights: FloatArray, options: BoostingOptions
) -> Any:
    """Boost the squared loss of numbers, float64 of shape (n,); the result has ``predict``."""
    model = HistGradientBoostingRegressor(**options.parameters(len(matrix)))
    return model.fit(matrix, values, weights)


def marginal(likelihood: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the class frequencies behind released labels by EM, float64 of shape (k,).

    ``likelihood`` is float64 of shape (n, k), ``weights`` of shape (n,).
    """
    prior = np.full(likelihood.shape[1], 1 / likelihood.shape[1])
    share = weights / weights.sum()
    for _ in range(_EM_STEPS):
        prior = share @ _normalised(prior * likelihood)
    return np.asarray(prior)


def _split(n: int, seed: int) -> tuple[IndexArray, IndexArray]:
    order = np.random.default_rng(seed).permutation(n)
    size = int(n * _HELD_OUT) if n >= _WORTH_HOLDING_OUT else 0
    return np.sort(order[:size]), np.sort(order[size:])


def _normalised(joint: FloatArray) -> FloatArray:
    total = joint.sum(axis=1, keepdims=True)
    return np.asarray(joint / np.where(total > 0, total, 1.0))
