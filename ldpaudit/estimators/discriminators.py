"""Discriminators: calibrated models that tell rows of P from rows of Q."""

# With both sides weighted equally the log-odds of "this row is of P" are log dP/dQ. A certified
# bound holds whatever they are, provided that they come from other rows; an estimate needs them
# calibrated, so a fifth of the fitting rows sets the slope and the intercept of the log-odds.

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.models.encoding import DesignMatrix, LevelsByColumn, Limits
from ldpaudit.models.screening import most_bins, strongest_of
from ldpaudit.models.trees import fit_boosting
from ldpaudit.randomness import integer_seed
from ldpaudit.release import BoolArray, FeatureTable, Float32Array, FloatArray

Kind = Literal["logistic", "boosting", "network"]
# From rows of shape (n, d) to uncalibrated log-odds of P, float64 of shape (n,).
LogOdds = Callable[[Float32Array], FloatArray]
FEWEST_ROWS: Final = 40  # rows of either side that a discriminator needs
LARGEST_LOG_RATIO: Final = 20.0
_RIDGE: Final = 1.0
_LIMITS: Final = Limits(LevelsByColumn(40), constants_marked=False)


@dataclass(frozen=True)
class Discriminator:
    """A fitted discriminator: its kind, and the slope and intercept of its calibrated log-odds."""

    kind: Kind
    log_odds: LogOdds
    slope: float
    intercept: float

    def log_ratio(self, rows: Float32Array) -> FloatArray:
        """Return a guess of log dP/dQ for rows of shape (n, d), float64 (n,), within ±20."""
        if not len(rows):
            return np.empty(0)
        odds = self.slope * self.log_odds(rows) + self.intercept
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
    MissingDependencyError
        If a network needs torch, which is not installed.
    """
    if p.ndim != 2 or q.ndim != 2 or p.shape[1] != q.shape[1]:
        raise InputError("Both sides of a discriminator must have the same columns.")
    if min(len(p), len(q)) < FEWEST_ROWS or p.shape[1] == 0:
        raise InsufficientDataError(
            f"A discriminator needs at least {FEWEST_ROWS} rows on each side and one column."
        )
    if kind not in _FITS:
        raise InputError("The discriminator must be 'logistic', 'boosting' or 'network'.")
    p, q = p[rng.permutation(len(p))], q[rng.permutation(len(q))]
    held_p, held_q = _held(len(p)), _held(len(q))
    rows = np.concatenate([p[held_p:], q[held_q:]])
    is_p = np.arange(len(rows)) < len(p) - held_p
    codes = np.zeros(p.shape[1], dtype=bool) if categorical is None else categorical
    log_odds = _FITS[kind](rows, is_p, codes, rng, threads, device)
    slope, intercept = _calibration(log_odds(p[:held_p]), log_odds(q[:held_q]))
    return Discriminator(kind, log_odds, slope, intercept)


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
    of the rows chooses, so a bound needs rows of its own, as it does anyway. ``options`` and errors
    are those of :func:`fit_discriminator`.
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
    return side * side == columns >= 64 and not categorical.any()


def kinds_for(columns: int, categorical: BoolArray, rows: int) -> tuple[Kind, ...]:
    """Return the kinds worth fitting to so many rows a side: several for images."""
    image = is_image(columns, categorical) and rows >= 500
    return ("network", "logistic") if image else ("boosting",)


def _held(n: int) -> int:
    return min(max(int(0.2 * n), 8), 20_000)


def encoded(rows: Float32Array, categorical: BoolArray) -> Callable[[Float32Array], Float32Array]:
    """Return a function from rows to standardised numbers and indicators, learnt on some rows."""
    if not (np.fmin.reduce(rows, axis=0) < np.fmax.reduce(rows, axis=0)).any():
        raise InsufficientDataError("A discriminator needs a column that varies.")

    def table(rows: Float32Array) -> FeatureTable:
        codes = np.nan_to_num(rows[:, categorical], nan=-1).astype(np.int32)
        sizes = tuple((codes.max(axis=0, initial=-1) + 1).tolist())
        # Columns of codes become constants, so that numeric columns keep their places.
        numeric = np.where(categorical, np.float32(0), rows)
        return FeatureTable(numeric, codes, sizes, rows.shape[1])

    design = DesignMatrix.fit(table(rows), _LIMITS)
    return lambda rows: design.transform(table(rows))


def _logistic(rows: Float32Array, is_p: BoolArray, categorical: BoolArray, *_: Any) -> LogOdds:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    inputs = encoded(rows, categorical)
    model = LogisticRegression(class_weight="balanced", max_iter=200)
    with warnings.catch_warnings():
        # Bounds hold for any discriminator, and two hundred steps are near enough to the best.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(inputs(rows).astype(np.float64), is_p)
    return lambda rows: np.asarray(inputs(rows) @ model.coef_[0] + model.intercept_[0])


def _boosting(
    rows: Float32Array,
    is_p: BoolArray,
    categorical: BoolArray,
    rng: np.random.Generator,
    threads: int,
    _: str,
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
        max_iter=60,
        learning_rate=0.12,
        max_leaf_nodes=15,
        min_samples_leaf=max(20, len(rows) // 2000),
        l2_regularization=_RIDGE,
        categorical_features=categorical[present] & (top < 254),
        max_bins=most_bins(int(present.sum()), categorical[present]),
        early_stopping=len(rows) >= 400,
        n_iter_no_change=6,
        random_state=integer_seed(rng),
    )
    with threadpool_limits({"openmp": threads}):
        fit_boosting(model, rows[:, present], is_p)
    share = float(is_p.mean())

    def log_odds(rows: Float32Array) -> FloatArray:
        with threadpool_limits({"openmp": threads}):
            raw = np.asarray(model.decision_function(rows[:, present]), dtype=np.float64)
        return raw - math.log(share / (1 - share))

    return log_odds


def _network(
    rows: Float32Array,
    is_p: BoolArray,
    categorical: BoolArray,
    rng: np.random.Generator,
    threads: int,
    device: str,
) -> LogOdds:
    from ldpaudit.models.network import NetworkOptions, fit_network, torch_threads

    inputs, middle = encoded(rows, categorical), np.nanmean(rows)
    image = is_image(rows.shape[1], categorical)

    def matrix(rows: Float32Array) -> FloatArray:
        pixels = np.where(np.isnan(rows), middle, rows) if image else inputs(rows)
        return pixels.astype(np.float64)

    options = NetworkOptions(
        "convolutional" if image else "dense",
        epochs=12,
        batch_size=int(np.clip(len(rows) // 40, 32, 512)),
        learning_rate=2e-3,
        device=device,
    )
    share = is_p.mean()
    weights = np.where(is_p, 0.5 / share, 0.5 / (1 - share))
    answers = np.stack([~is_p, is_p], axis=1).astype(np.float64)
    with torch_threads(threads):
        model = fit_network(matrix(rows), answers, weights, "targets", options, rng)

    def log_odds(rows: Float32Array) -> FloatArray:
        with torch_threads(threads):
            of_q, of_p = np.log(model.predict(matrix(rows))).T
        return np.asarray(of_p - of_q)

    return log_odds


_FITS: Final[dict[str, Callable[..., LogOdds]]] = {
    "logistic": _logistic,
    "boosting": _boosting,
    "network": _network,
}


def _calibration(p: FloatArray, q: FloatArray) -> tuple[float, float]:
    """Return slope and intercept of the logistic regression on the log-odds, sides weighted alike.

    A ridge of one row draws them towards 1 and 0, so that few rows change little.
    """
    score, sign = np.concatenate([p, q]), np.repeat([1.0, -1.0], [len(p), len(q)])
    weight = len(score) / 2 / np.repeat([len(p), len(q)], [len(p), len(q)])
    design, start = np.stack([score, np.ones(len(score))], axis=1), np.array([1.0, 0.0])

    def loss(beta: FloatArray) -> tuple[float, FloatArray]:
        margin, pull = sign * (design @ beta), _RIDGE * (beta - start)
        value = float(weight @ np.logaddexp(0, -margin)) + 0.5 * float(pull @ (beta - start))
        return value, pull - design.T @ (weight * sign * expit(-margin))

    slope, intercept = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-8}).x
    return max(float(slope), 0.0), float(intercept)
