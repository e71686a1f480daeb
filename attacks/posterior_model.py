"""Class probabilities given the features, learnt from true or from released labels.

Up to four parts are fitted on most of the rows and judged on the rest: the class frequencies, a
ridge-penalised multinomial logistic regression, histogram gradient boosting and, where rows repeat,
the counts of identical rows. Their log-linear blend with the weights of least validation log-loss
is the model; a single part with a temperature is a special case of it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from ldpaudit.attacks.design_matrix import BoostingMatrix, DesignMatrix
from ldpaudit.attacks.feature_cells import Cells, shrunk_cell_posteriors
from ldpaudit.attacks.forward_logistic import ForwardLogistic, fit_forward_logistic
from ldpaudit.errors import InsufficientDataError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.randomness import integer_seed
from ldpaudit.release import FeatureTable, FloatArray, IndexArray, IntArray

PROBABILITY_FLOOR = 1e-7
"""No predicted probability is below this (nor above 1 minus it)."""
MIN_ROWS = 20
"""With fewer rows the class frequencies are the model."""
_PART_FLOOR = 1e-6
_INVERTED_FLOOR = 0.01
_BATCH = 100_000
_MAX_VALIDATION = 20_000
_LOGISTIC_WORK = 4e8
_BOOSTING_WORK = 4e8
_BOOSTED_CLASSES = 12
_CELL_WEIGHTS = (1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0)


@dataclass(frozen=True)
class PosteriorModel:
    """A calibrated estimate of P(y | x), with y the true label or the released one.

    Built by :func:`fit_posterior`.
    """

    prior: FloatArray
    parts: tuple["_Part", ...] = ()
    weights: FloatArray | None = None
    cells: "_CellTable | None" = None

    def predict(self, features: FeatureTable) -> FloatArray:
        """Return P(y | x) for each row, float64 of shape (n, K).

        Rows sum to 1 up to rounding; every entry is at least :data:`PROBABILITY_FLOOR`.
        """
        result = np.empty((len(features), len(self.prior)))
        for start in range(0, len(features), _BATCH):
            rows = np.arange(start, min(start + _BATCH, len(features)))
            result[rows] = self._predict_batch(features.take(rows))
        return _floored(result, PROBABILITY_FLOOR)

    def _predict_batch(self, features: FeatureTable) -> FloatArray:
        blended = self._blend(features)
        if self.cells is None:
            return blended
        spots = self.cells.cells.locate(features)
        known = spots >= 0
        blended[known] = self.cells.table[spots[known]]
        return blended

    def _blend(self, features: FeatureTable) -> FloatArray:
        if self.weights is None:
            return np.tile(self.prior, (len(features), 1))
        logs = _part_logs(self.prior, self.parts, features)
        return np.asarray(softmax(np.tensordot(self.weights, logs, axes=1), axis=1))


@dataclass(frozen=True)
class _CellTable:
    cells: Cells
    table: FloatArray


@dataclass(frozen=True)
class _LogisticPart:
    design: DesignMatrix
    model: ForwardLogistic

    def predict(self, features: FeatureTable) -> FloatArray:
        return _floored(self.model.predict(self.design.transform(features)), _PART_FLOOR)


@dataclass(frozen=True)
class _BoostingPart:
    design: BoostingMatrix
    model: Any
    observed: IntArray
    outputs: int
    channel: Channel | None
    prior: FloatArray

    def predict(self, features: FeatureTable) -> FloatArray:
        probability = np.zeros((len(features), self.outputs))
        probability[:, self.observed] = self.model.predict_proba(self.design.transform(features))
        if self.channel is None:
            return _floored(probability, _PART_FLOOR)
        clean = clean_posterior(probability, self.channel)
        return np.asarray((1 - _INVERTED_FLOOR) * clean + _INVERTED_FLOOR * self.prior)


_Part = _LogisticPart | _BoostingPart


def fit_posterior(
    features: FeatureTable,
    codes: IntArray,
    n_classes: int,
    rng: np.random.Generator,
    threads: int,
    max_rows: int = 200_000,
    channel: Channel | None = None,
) -> PosteriorModel:
    """Learn P(y | x) from the rows given.

    Parameters
    ----------
    features : FeatureTable
        n rows; no column, or constant columns, leave the class frequencies.
    codes : int32 array of shape (n,)
        Labels in 0 … n_classes − 1; with a ``channel`` the released labels, its outputs.
    n_classes : int
        K; classes that do not occur get a small probability.
    rng : numpy.random.Generator
        Draws the rows used, the validation part and the boosting seed.
    threads : int
        Threads for BLAS and boosting.
    max_rows : int
        More rows than this are thinned at random.
    channel : Channel, optional
        The channel from the K true labels to the codes: the model then predicts the **true**
        label, by forward correction (logistic part and cells), by inversion of the channel
        (boosting), and with weights that minimise the forward log-loss.

    Raises
    ------
    InsufficientDataError
        If there is no row.
    """
    from threadpoolctl import threadpool_limits

    if len(codes) == 0:
        raise InsufficientDataError("A model of the labels needs at least one row.")
    if len(codes) > max_rows:
        rows = np.sort(rng.choice(len(codes), size=max_rows, replace=False))
        features, codes = features.take(rows), codes[rows]
    with threadpool_limits(limits=threads):
        return _Fit(features, codes, n_classes, rng, channel).model()


def clean_posterior(noisy_posterior: FloatArray, channel: Channel) -> FloatArray:
    """Return P(y | x) from P(ỹ | x): invert the channel, then project on the simplex.

    Parameters
    ----------
    noisy_posterior : float64 array of shape (n, m)
        Probabilities of the released label.
    channel : Channel
        The channel T (k × m), of rank k.

    Returns
    -------
    float64 array of shape (n, k)
        The Euclidean projection of ``noisy_posterior @ channel.inverse``; may hold zeros.

    Raises
    ------
    InputError
        If the channel cannot be inverted.
    """
    return _project_on_simplex(noisy_posterior @ channel.inverse)


def _project_on_simplex(points: FloatArray) -> FloatArray:
    # Duchi et al. (2008), Figure 1: subtract the threshold at which the positive part sums to 1.
    descending = -np.sort(-points, axis=1)
    excess = np.cumsum(descending, axis=1) - 1.0
    ranks = np.arange(1, points.shape[1] + 1)
    support = (descending - excess / ranks > 0).sum(axis=1)
    threshold = excess[np.arange(len(points)), support - 1] / support
    return np.asarray(np.clip(points - threshold[:, None], 0.0, None))


def _floored(probability: FloatArray, floor: float) -> FloatArray:
    return np.asarray((1.0 - probability.shape[1] * floor) * probability + floor)


def _part_logs(prior: FloatArray, parts: tuple[_Part, ...], features: FeatureTable) -> FloatArray:
    shape = (len(features), len(prior))
    logs = [np.broadcast_to(np.log(prior), shape)]
    logs += [np.log(part.predict(features)) for part in parts]
    return np.stack(logs)


class _Fit:
    """The steps of :func:`fit_posterior` on one set of rows."""

    def __init__(
        self,
        features: FeatureTable,
        codes: IntArray,
        n_classes: int,
        rng: np.random.Generator,
        channel: Channel | None,
    ) -> None:
        self.features, self.codes, self.rng, self.channel = features, codes, rng, channel
        self.transition = np.eye(n_classes) if channel is None else channel.matrix
        self.prior = self._prior()
        order = rng.permutation(len(codes))
        held = min(max(len(codes) // 5, 1), _MAX_VALIDATION)
        self.validation, self.training = np.sort(order[:held]), np.sort(order[held:])

    def model(self) -> PosteriorModel:
        """Fit the parts, their weights and the cells."""
        if len(self.codes) < MIN_ROWS or self.features.is_constant() or self._one_label():
            return PosteriorModel(self.prior)
        parts = self._parts()
        held = self.features.take(self.validation)
        logs = _part_logs(self.prior, parts, held)
        weights = blend_weights(logs, self._likelihood(self.validation))
        blend = PosteriorModel(self.prior, parts, weights)
        return self._with_cells(blend)

    def _one_label(self) -> bool:
        return bool((self.codes[self.training] == self.codes[self.training[0]]).all())

    def _likelihood(self, rows: IndexArray) -> FloatArray:
        likelihood: FloatArray = self.transition.T[self.codes[rows]]
        return likelihood

    def _prior(self) -> FloatArray:
        k, m = self.transition.shape
        counts = np.bincount(self.codes, minlength=m).astype(np.float64)
        uniform = np.full((1, k), 1.0 / k)
        return shrunk_cell_posteriors(counts[None, :], self.transition, uniform, 1.0).ravel()

    def _parts(self) -> tuple[_Part, ...]:
        parts: list[_Part] = []
        logistic = self._logistic()
        if logistic is not None:
            parts.append(logistic)
        boosting = self._boosting()
        if boosting is not None:
            parts.append(boosting)
        return tuple(parts)

    def _thinned(self, work_per_row: float, budget: float) -> IndexArray:
        rows = max(int(budget / max(work_per_row, 1.0)), 2_000)
        if len(self.training) <= rows:
            return self.training
        return np.sort(self.rng.choice(self.training, size=rows, replace=False))

    def _logistic(self) -> _LogisticPart | None:
        design = DesignMatrix.fit(self.features.take(self.training))
        if design.width == 0:
            return None
        work = design.width * len(self.transition)
        rows = self._thinned(work, _LOGISTIC_WORK)
        matrix, codes = design.transform(self.features.take(rows)), self.codes[rows]
        many = len(rows) * work > _LOGISTIC_WORK / 8
        held = design.transform(self.features.take(self.validation))
        best: tuple[float, ForwardLogistic] | None = None
        start: ForwardLogistic | None = None
        for penalty in (1.0,) if many else (1000.0, 30.0, 1.0):
            start = fit_forward_logistic(matrix, codes, self.transition, penalty, start)
            evidence = (start.predict(held) * self._likelihood(self.validation)).sum(axis=1)
            loss = -float(np.log(np.maximum(evidence, 1e-30)).mean())
            if best is None or loss < best[0]:
                best = (loss, start)
        assert best is not None
        return _LogisticPart(design, best[1])

    def _boosting(self) -> _BoostingPart | None:
        from sklearn.ensemble import HistGradientBoostingClassifier

        observed, m = np.unique(self.codes[self.training]), self.transition.shape[1]
        if len(observed) > _BOOSTED_CLASSES or self._not_invertible():
            return None
        trees = 1 if len(observed) == 2 else len(observed)
        iterations = int(np.clip(300 // trees, 20, 100))
        rows = self._thinned(self.features.width * trees * iterations, _BOOSTING_WORK)
        codes = self.codes[rows]
        observed = np.unique(codes)
        design = BoostingMatrix.fit(self.features.take(rows))
        model = HistGradientBoostingClassifier(
            learning_rate=0.1 * (100 / iterations) ** 0.5,
            max_iter=iterations,
            min_samples_leaf=max(20, len(rows) // 2000),
            l2_regularization=1.0,
            categorical_features=design.categorical(self.features),
            early_stopping=True,
            n_iter_no_change=8,
            random_state=integer_seed(self.rng),
        )
        if np.bincount(codes).max() < 2 or np.bincount(codes)[observed].min() < 2:
            return None
        model.fit(design.transform(self.features.take(rows)), codes)
        return _BoostingPart(design, model, observed, m, self.channel, self.prior)

    def _not_invertible(self) -> bool:
        return bool(np.linalg.matrix_rank(self.transition, tol=1e-9) < len(self.transition))

    def _with_cells(self, blend: PosteriorModel) -> PosteriorModel:
        cells = Cells.fit(self.features.take(self.training))
        if len(cells) > len(self.training) // 3:
            return blend
        base = blend.predict(self.features.take(self.training[cells.representatives]))
        counts = cells.counts(self.codes[self.training], self.transition.shape[1])
        held = self.features.take(self.validation)
        spots, likelihood = cells.locate(held), self._likelihood(self.validation)
        plain = blend.predict(held)
        best = (_forward_loss(plain, likelihood), 0.0)
        for weight in _CELL_WEIGHTS:
            table = shrunk_cell_posteriors(counts, self.transition, base, weight)
            trial = np.where(spots[:, None] >= 0, table[spots], plain)
            best = min(best, (_forward_loss(trial, likelihood), weight))
        if best[1] == 0.0:
            return blend
        return self._refilled(blend, best[1])

    def _refilled(self, blend: PosteriorModel, weight: float) -> PosteriorModel:
        cells = Cells.fit(self.features)
        base = blend.predict(self.features.take(cells.representatives))
        counts = cells.counts(self.codes, self.transition.shape[1])
        table = shrunk_cell_posteriors(counts, self.transition, base, weight)
        return PosteriorModel(blend.prior, blend.parts, blend.weights, _CellTable(cells, table))


def _forward_loss(probability: FloatArray, likelihood: FloatArray) -> float:
    evidence = (probability * likelihood).sum(axis=1)
    return -float(np.log(np.maximum(evidence, 1e-300)).mean())


def blend_weights(logs: FloatArray, likelihood: FloatArray) -> FloatArray:
    """Return the non-negative weights of the log-linear blend of least forward log-loss.

    Parameters
    ----------
    logs : float64 array of shape (parts, n, k)
        Logarithms of each part's probabilities.
    likelihood : float64 array of shape (n, k)
        T[y, z] for each row's released label z; one-hot where labels are not noisy.

    Returns
    -------
    float64 array of shape (parts,)
        w ≥ 0 of softmax(Σ_i w_i log p_i); with few rows drawn towards the best single part.
    """
    n = logs.shape[1]
    alone = [_forward_loss(np.exp(part), likelihood) for part in logs]
    anchor = np.eye(len(logs))[int(np.argmin(alone))]

    def objective(weights: FloatArray) -> tuple[float, FloatArray]:
        log_p = log_softmax(np.tensordot(weights, logs, axes=1), axis=1)
        joint = np.exp(log_p) * likelihood
        evidence = np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)
        residual = np.exp(log_p) - joint / evidence
        away = weights - anchor
        loss = -float(np.log(evidence).mean()) + float(away @ away) / n
        gradient = np.array([(part * residual).sum() for part in logs]) / n + 2 * away / n
        return loss, gradient

    bounds = [(0.0, 3.0)] * len(logs)
    found = minimize(objective, anchor, jac=True, method="L-BFGS-B", bounds=bounds)
    return np.asarray(found.x, dtype=np.float64)
