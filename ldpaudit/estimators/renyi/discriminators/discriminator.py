"""Discriminators: calibrated models that tell rows of P from rows of Q.

With both sides weighted equally the log-odds of "this row is of P" are log dP/dQ. A certified bound
holds whatever they are, provided that they come from other rows; an estimate needs them calibrated,
so a fifth of the fitting rows sets the slope and the intercept of the log-odds.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from scipy.special import expit

from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.modelling.screening import most_bins, strongest_of
from ldpaudit.randomness import integer_seed
from ldpaudit.release import BoolArray, Float32Array, FloatArray

Kind = Literal["logistic", "boosting", "network"]

FEWEST_ROWS = 40
"""Rows of either side that a discriminator needs."""
LARGEST_LOG_RATIO = 20.0
_CALIBRATION_SHARE = 0.2
_MOST_CALIBRATION = 20_000
_NEWTON_STEPS = 25
_RIDGE = 1.0
_LEVELS = 254
_ITERATIONS = 60
_LEAST_IMAGE = 64
_LEAST_IMAGES = 500


class LogOdds(Protocol):
    """What a kind of discriminator fits."""

    def log_odds(self, rows: Float32Array) -> FloatArray:
        """Return uncalibrated log-odds of P for rows of shape (n, d); float64 (n,)."""


@dataclass(frozen=True)
class Discriminator:
    """A fitted discriminator.

    Attributes
    ----------
    model : LogOdds
    slope, intercept : float
        Of the calibrated log-odds.
    """

    model: LogOdds
    slope: float
    intercept: float

    def log_ratio(self, rows: Float32Array) -> FloatArray:
        """Return a guess of log dP/dQ for rows of shape (n, d), float64 (n,), within ±20."""
        if not len(rows):
            return np.empty(0)
        odds = self.slope * self.model.log_odds(rows) + self.intercept
        return np.asarray(np.clip(odds, -LARGEST_LOG_RATIO, LARGEST_LOG_RATIO))

    def log_loss(self, p: Float32Array, q: Float32Array) -> float:
        """Return the log loss on rows of P and of Q with both sides weighted equally."""
        losses = np.logaddexp(0, -self.log_ratio(p)), np.logaddexp(0, self.log_ratio(q))
        return float(losses[0].mean() + losses[1].mean())


def fit_discriminator(
    p: Float32Array,
    q: Float32Array,
    kind: Kind,
    *,
    rng: np.random.Generator,
    categorical: BoolArray | None = None,
    threads: int = 1,
    device: str = "cpu",
) -> Discriminator:
    """Fit a discriminator of rows of P against rows of Q, both sides weighted equally.

    Parameters
    ----------
    p, q : float32 arrays of shapes (n_p, d) and (n_q, d)
        NaN where missing.
    kind : {"logistic", "boosting", "network"}
        The network is dense; where d is a square of at least 64 numbers it is convolutional.
    rng : numpy.random.Generator
    categorical : bool array of shape (d,), optional
        Columns that hold codes 0, 1, …
    threads : int
    device : str
        Where the network runs, for instance "cuda".

    Raises
    ------
    InputError
        If the two sides have different columns.
    InsufficientDataError
        If a side has fewer than 40 rows, or there is no column (for boosting: none that is not all
        missing; else: none that varies).
    """
    if p.ndim != 2 or q.ndim != 2 or p.shape[1] != q.shape[1]:
        raise InputError("Both sides of a discriminator must have the same columns.")
    if min(len(p), len(q)) < FEWEST_ROWS or p.shape[1] == 0:
        raise InsufficientDataError(
            f"A discriminator needs at least {FEWEST_ROWS} rows on each side and one column."
        )
    p, q = p[rng.permutation(len(p))], q[rng.permutation(len(q))]
    held_p, held_q = _held(len(p)), _held(len(q))
    rows = np.concatenate([p[held_p:], q[held_q:]])
    is_p = np.arange(len(rows)) < len(p) - held_p
    cats = np.zeros(p.shape[1], dtype=bool) if categorical is None else categorical
    model = _fit(kind, rows, is_p, cats, rng, threads, device)
    slope, intercept = _calibration(model.log_odds(p[:held_p]), model.log_odds(q[:held_q]))
    return Discriminator(model, slope, intercept)


def fit_strongest(
    p: Float32Array,
    q: Float32Array,
    kinds: Sequence[Kind],
    *,
    rng: np.random.Generator,
    **options: Any,
) -> Discriminator:
    """Fit several kinds of discriminator and return the one of least log loss on rows held out.

    On images a linear model can tell faint pixels apart that a convolutional one overlooks. A fifth
    of the rows chooses, so a bound needs rows of its own, as it does anyway.

    Parameters
    ----------
    p, q : float32 arrays of shapes (n_p, d) and (n_q, d)
    kinds : sequence of kinds, at least one
    rng : numpy.random.Generator
    **options
        As for :func:`fit_discriminator`, with its errors.
    """
    if len(kinds) == 1 or min(len(p), len(q)) < 2 * FEWEST_ROWS:
        return fit_discriminator(p, q, kinds[0], rng=rng, **options)
    held_p, held_q = _held(len(p)), _held(len(q))
    p, q = p[rng.permutation(len(p))], q[rng.permutation(len(q))]
    fitted = [fit_discriminator(p[held_p:], q[held_q:], kind, rng=rng, **options) for kind in kinds]
    return min(fitted, key=lambda model: model.log_loss(p[:held_p], q[:held_q]))


def is_image(columns: int, categorical: BoolArray) -> bool:
    """Return whether rows are taken for square images: a square number of numeric columns."""
    side = math.isqrt(columns)
    return side * side == columns >= _LEAST_IMAGE and not categorical.any()


def kinds_for(columns: int, categorical: BoolArray, rows: int) -> tuple[Kind, ...]:
    """Return the kinds worth fitting to so many rows a side: several for images."""
    image = is_image(columns, categorical) and rows >= _LEAST_IMAGES
    return ("network", "logistic") if image else ("boosting",)


def _held(n: int) -> int:
    return min(max(int(_CALIBRATION_SHARE * n), 8), _MOST_CALIBRATION)


def _fit(
    kind: Kind,
    rows: Float32Array,
    is_p: BoolArray,
    categorical: BoolArray,
    rng: np.random.Generator,
    threads: int,
    device: str,
) -> LogOdds:
    if kind == "boosting":
        return _fit_boosting(rows, is_p, categorical, rng, threads)
    if not (np.fmin.reduce(rows, axis=0) < np.fmax.reduce(rows, axis=0)).any():
        raise InsufficientDataError("A discriminator needs a column that varies.")
    if kind == "logistic":
        from ldpaudit.estimators.renyi.discriminators.logistic import fit_logistic

        return fit_logistic(rows, is_p, categorical)
    if kind == "network":
        from ldpaudit.estimators.renyi.discriminators.network import fit_network

        image = is_image(rows.shape[1], categorical)
        return fit_network(rows, is_p, categorical, image, rng, device, threads)
    raise InputError("The discriminator must be 'logistic', 'boosting' or 'network'.")


@dataclass(frozen=True)
class _BoostingDiscriminator:
    model: Any
    prior: float
    present: BoolArray
    threads: int

    def log_odds(self, rows: Float32Array) -> FloatArray:
        from threadpoolctl import threadpool_limits

        with threadpool_limits({"openmp": self.threads}):
            raw = self.model.decision_function(rows[:, self.present])
        return np.asarray(raw, dtype=np.float64) - self.prior


def _fit_boosting(
    rows: Float32Array,
    is_p: BoolArray,
    categorical: BoolArray,
    rng: np.random.Generator,
    threads: int,
) -> LogOdds:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits

    there = ~np.isnan(rows)
    present = np.asarray(there.any(axis=0))
    if not present.any():
        raise InsufficientDataError("A discriminator needs a column that is not all missing.")
    present = strongest_of(rows, is_p, present)
    top = np.where(there, rows, 0).max(axis=0)[present]
    model = HistGradientBoostingClassifier(
        max_iter=_ITERATIONS,
        learning_rate=0.12,
        max_leaf_nodes=15,
        min_samples_leaf=max(20, len(rows) // 2000),
        l2_regularization=_RIDGE,
        categorical_features=categorical[present] & (top < _LEVELS),
        max_bins=most_bins(int(present.sum()), categorical[present]),
        early_stopping=len(rows) >= 400,
        n_iter_no_change=6,
        random_state=integer_seed(rng),
    )
    with threadpool_limits({"openmp": threads}):
        model.fit(rows[:, present], is_p)
    share = float(is_p.mean())
    return _BoostingDiscriminator(model, math.log(share / (1 - share)), present, threads)


def _calibration(p: FloatArray, q: FloatArray) -> tuple[float, float]:
    """Return slope and intercept of the logistic regression on the log-odds, sides weighted alike.

    A ridge of one row draws them towards 1 and 0, so that few rows change little.
    """
    score = np.concatenate([p, q])
    target = np.concatenate([np.ones(len(p)), np.zeros(len(q))])
    n = len(score)
    weight = np.concatenate([np.full(len(p), n / 2 / len(p)), np.full(len(q), n / 2 / len(q))])
    design = np.stack([score, np.ones(n)], axis=1)
    start = np.array([1.0, 0.0])
    beta = start.copy()
    for _ in range(_NEWTON_STEPS):
        chance = expit(design @ beta)
        slope = design.T @ (weight * (target - chance)) - _RIDGE * (beta - start)
        curve = (design.T * (weight * chance * (1 - chance))) @ design + _RIDGE * np.eye(2)
        step = np.linalg.solve(curve, slope)
        beta = beta + np.clip(step, -1, 1)
        if np.abs(step).max() < 1e-9:
            break
    return max(float(beta[0]), 0.0), float(beta[1])
