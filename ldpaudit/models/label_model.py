"""P(label | features), learnt from true or from released labels."""

# Logistic regression and boosting learn the label as it stands in the rows; a fifth of the rows
# says how much each of them, and the class frequencies, count (:class:`Blend`). Behind a channel
# the regression's probabilities are those of the true label, sent through the channel, and the
# blend is led back to the true label (:func:`nearest_source`).
#
# Columns of many values, and pairs of columns that say together what none of them says alone, are
# numbers to both models: the log-odds of the labels among other rows of the same value.

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Final, Protocol

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from ldpaudit.errors import InsufficientDataError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.models.corrections import forward_loss, forward_losses, nearest_source
from ldpaudit.models.counts import clean_prior
from ldpaudit.models.encoding import BoostingMatrix, DesignMatrix, LevelsByColumn, Limits
from ldpaudit.models.logistic import LogisticModel, fit_forward_logistic
from ldpaudit.models.screening import (
    MOST_COLUMNS,
    TREE_COLUMNS,
    Screen,
    many_valued,
    most_bins,
    screened,
    tried_out,
)
from ldpaudit.models.trees import fit_boosting, probabilities
from ldpaudit.randomness import integer_seed
from ldpaudit.release import FeatureTable, Float32Array, FloatArray, IndexArray, IntArray

# No predicted probability is below this (nor above 1 minus it).
PROBABILITY_FLOOR: Final = 1e-7
# Models are fitted on a random sample of at most this many rows.
MOST_ROWS_FITTED: Final = 200_000
# With fewer rows the class frequencies are the model.
_FEWEST: Final = 20
_BATCH: Final = 100_000
# With fewer rows those held out do not tell whether more, or other, models are worth their while.
_TELLING: Final = 2_000
# Boosting goes on, up to three times as long, while ten rounds take two percent off the loss.
_LONGEST, _LATELY, _WORTH_GOING_ON = 3, 10, 0.02
_NUMBERS: Final = Limits(LevelsByColumn(0), marked_from=1 << 62)
_NORMAL_ROWS: Final = 5_000
# Normal numbers count where they take such a share, and so many standard errors, off the loss of
# so many held-out rows.
_CLEARLY, _SURELY, _SOME = 0.01, 3.0, 2_000
# Entries of a table from which boosting gains more by threads than it loses by their barriers.
_WORTH_THREADS: Final = 1_000_000
_HELD_OUT: Final = 40_000
# Rows × columns × labels up to which models are fitted again with the rows that were held out.
_REFITTED: Final = 2e6
_FLOOR: Final = 1e-6
_TOWARDS_PRIOR: Final = 0.01
_PENALTIES: Final = (1000.0, 30.0, 1.0)
_ROWS_PER_WEIGHT: Final = 50
# Rows × columns × labels (× rounds of boosting) that a model is fitted on at most.
_WORK: Final = 4e8
# Against 160,000 rows, in four or five draws of each of four worlds: the bound on E[ν] lost nothing
# where P(y | x) is smooth, 1 % with many categories, and on average nothing where columns interact
# (single fits ended up to half above or an eighth below it). Of a label on 2 % of the rows it lost
# 3 %, so all rows are taken where so many would hold few of a label.
_MOST_BOOSTED: Final = 100_000
_FEW_OF_A_LABEL: Final = 10_000
_BOOSTED_CLASSES: Final = 12
_ROUNDS: Final = 100
_LEAVES: Final = 15
_FEW_ROUNDS, _FEW_LEAVES = 12, 8  # To try things out.
_UNUSED: Final = 0.02
_ANCHOR_ROWS: Final = 25.0

# One or two columns, counted with the numeric ones first.
Effect = tuple[int, ...]


@dataclass(frozen=True)
class PosteriorModel:
    """An estimate of P(y | x), y the true label or the released one; see :func:`fit_posterior`."""

    prior: FloatArray
    """Float64 array of shape (k,): the class frequencies; without a blend they are the model."""
    blend: "Blend | None" = None
    """Of the label as it stands in the rows."""
    transition: FloatArray | None = None
    """Float64 array of shape (k, m) or None: the channel of that label; None where the model is
    about that label itself."""

    def predict(self, features: FeatureTable) -> FloatArray:
        features, result = features.expanded(), np.empty((len(features), len(self.prior)))
        for start in range(0, len(features), _BATCH):
            rows = np.arange(start, min(start + _BATCH, len(features)))
            result[rows] = self._of(features.take(rows))
        return floored(result, PROBABILITY_FLOOR)

    def _of(self, features: FeatureTable) -> FloatArray:
        if self.blend is None:
            return np.tile(self.prior, (len(features), 1))
        found = self.blend.predict(features)
        if self.transition is None:
            return found
        clean = nearest_source(found, self.transition, self.prior)
        return np.asarray((1 - _TOWARDS_PRIOR) * clean + _TOWARDS_PRIOR * self.prior)


def fit_posterior(
    features: FeatureTable,
    codes: IntArray,
    n_classes: int,
    rng: np.random.Generator,
    threads: int,
    channel: Channel | None = None,
    like: PosteriorModel | None = None,
) -> PosteriorModel:
    """Learn P(y | x) of K classes from n rows; classes that do not occur get a small probability.

    With a ``channel`` codes are released labels, its outputs, and the model is one of the **true**
    label. ``like``: a model of other rows whose penalty, rounds and weights are taken, so that no
    row is held out. Raise InsufficientDataError if there is no row.
    """
    from threadpoolctl import threadpool_limits

    if len(codes) == 0:
        raise InsufficientDataError("A model of the labels needs at least one row.")
    transition = np.eye(n_classes) if channel is None else channel.matrix
    prior, rows = clean_prior(codes, transition), np.arange(len(codes))
    if len(rows) > MOST_ROWS_FITTED:
        rows = np.sort(rng.choice(rows, size=MOST_ROWS_FITTED, replace=False))
    features, codes = features.expanded().take(rows), codes[rows]
    few = len(rows) < _FEWEST or len(np.unique(codes)) < 2 or features.is_constant()
    if few or (like is not None and like.blend is None):
        return PosteriorModel(prior)
    openmp = threads if len(rows) * features.width >= _WORTH_THREADS else 1
    limits: AbstractContextManager[object] = threadpool_limits({"blas": 1, "openmp": openmp})
    with limits:
        if like is not None and like.blend is not None:
            blend = like.blend.refitted(features, codes, rng)
        else:
            blend = _fit(features, codes, transition, rng)
    return PosteriorModel(prior, blend, None if channel is None else transition)


def floored(probability: FloatArray, floor: float) -> FloatArray:
    """Return probabilities mixed with the uniform distribution so that none is below ``floor``."""
    return np.asarray((1.0 - probability.shape[1] * floor) * probability + floor)


class Part(Protocol):
    """A model of a label."""

    def predict(self, features: FeatureTable) -> FloatArray:
        """Return its probabilities, float64 of shape (n, m)."""


@dataclass(frozen=True)
class Linear:
    """Ridge-penalised multinomial logistic regression."""

    design: Any
    model: LogisticModel
    penalty: float
    # The channel of the label in the rows, which the loss is sent through; None: there is none.
    transition: FloatArray | None = None

    def predict(self, features: FeatureTable) -> FloatArray:
        found = self.model.predict(self.design.transform(features))
        return found if self.transition is None else found @ self.transition


@dataclass(frozen=True)
class Boosted:
    """Histogram gradient boosting."""

    design: Any
    model: Any
    outputs: int

    def predict(self, features: FeatureTable) -> FloatArray:
        probability = np.zeros((len(features), self.outputs))
        found = probabilities(self.model, self.design.transform(features))
        probability[:, self.model.classes_] = found
        return probability


@dataclass(frozen=True)
class Normal:
    """Numbers that are normal given the label, with means and variances (m, d) (naive Bayes)."""

    design: DesignMatrix
    base: FloatArray
    means: FloatArray
    variances: FloatArray

    def predict(self, features: FeatureTable) -> FloatArray:
        x = self.design.transform(features)
        logs = [
            -(((x - mean) ** 2 / variance).sum(axis=1) + np.log(variance).sum()) / 2
            for mean, variance in zip(self.means, self.variances, strict=True)
        ]
        return np.asarray(softmax(np.log(self.base) + np.stack(logs, axis=1), axis=1))


@dataclass(frozen=True)
class Blend:
    """softmax(Σ w_i log p_i) of the class frequencies and of models of the label in the rows.

    ``base``, float64 array of shape (m,): the frequencies of the label; ``weights``, float64
    array of shape (1 + parts,).
    """

    screen: Screen
    values: "ValueEncoder"
    base: FloatArray
    parts: tuple[Part, ...]
    weights: FloatArray

    def predict(self, features: FeatureTable) -> FloatArray:
        return blended(
            self.weights, self.logs(self.values.transform(self.screen.transform(features)))
        )

    def logs(self, encoded: FeatureTable) -> FloatArray:
        """Return log-probabilities of the frequencies and of each part, (1 + parts, n, m)."""
        logs = [np.broadcast_to(np.log(self.base), (len(encoded), len(self.base)))]
        logs += [np.log(floored(part.predict(encoded), _FLOOR)) for part in self.parts]
        return np.stack(logs)

    def refitted(
        self, features: FeatureTable, codes: IntArray, rng: np.random.Generator
    ) -> "Blend":
        """Return the same blend of models of other rows."""
        features, outputs = self.screen.transform(features), len(self.base)
        values, encoded = self.values.refitted(features, codes, outputs, rng)
        parts: list[Part] = []
        for part in self.parts:
            if isinstance(part, Linear):
                assert part.transition is not None  # Models of rows with channels are not refitted.
                fitted: Any = _linear(encoded, codes, part.transition, rng, (part.penalty,))
                parts += fitted or [part]
            elif isinstance(part, Boosted):
                again = _boosted(encoded, codes, outputs, rng, part.model.n_iter_)
                parts.append(again or part)
            elif isinstance(part, Normal):
                parts.append(_normal(encoded, codes, outputs) or part)
        return replace(self, values=values, base=_base(codes, outputs), parts=tuple(parts))


def _fit(
    features: FeatureTable, codes: IntArray, transition: FloatArray, rng: np.random.Generator
) -> Blend:
    n, outputs = len(codes), transition.shape[1]
    order = rng.permutation(n)
    held, training = np.split(order, [min(n // 5, _HELD_OUT)])
    screen, mine = Screen(), features.take(training)
    if features.width > MOST_COLUMNS:
        screen = Screen.fit(mine, codes[training], MOST_COLUMNS)
        mine = screen.transform(mine)
    values, encoded = fit_values(mine, codes[training], outputs, rng)
    asked = values.transform(screen.transform(features.take(held)))
    right = np.eye(outputs)[codes[held]]
    base = _base(codes[training], outputs)
    linear = _linear(encoded, codes[training], transition, rng)
    if linear:
        losses = [forward_loss(floored(one.predict(asked), _FLOOR), right) for one in linear]
        linear = [linear[int(np.argmin(losses))]]
    boosted = _boosted(encoded, codes[training], outputs, rng)
    parts: list[Part] = [*linear, *([] if boosted is None else [boosted])]
    blend = Blend(screen, values, base, tuple(parts), np.eye(1 + len(parts))[0])
    logs = blend.logs(asked)
    weights = blend_weights(logs, right)
    normal = _normal(encoded, codes[training], outputs) if n >= _TELLING else None
    if normal is not None:
        wider = np.append(logs, replace(blend, parts=(normal,)).logs(asked)[1:], axis=0)
        more = blend_weights(wider[:, :_SOME], right[:_SOME])
        with_them, without = (
            forward_losses(blended(mixed, each[:, :_SOME]), right[:_SOME])
            for mixed, each in ((more, wider), (weights, logs))
        )
        gain = without - with_them
        clear = max(_CLEARLY * without.mean(), _SURELY * gain.std() / np.sqrt(len(gain)))
        if gain.mean() > clear:
            parts, weights = [*parts, normal], blend_weights(wider, right)
    kept = [i for i in range(len(parts)) if weights[1 + i] > _UNUSED]
    blend = replace(
        blend,
        parts=tuple(parts[i] for i in kept),
        weights=weights[[0, *(1 + i for i in kept)]],
    )
    small = n * features.width * outputs <= _REFITTED and not tried_out()
    return blend.refitted(features, codes, rng) if small else blend


def blended(weights: FloatArray, logs: FloatArray) -> FloatArray:
    """Return softmax(Σ_i w_i log p_i), float64 of shape (n, k)."""
    return np.asarray(softmax(np.tensordot(weights, logs, axes=1), axis=1))


def blend_weights(logs: FloatArray, likelihood: FloatArray) -> FloatArray:
    """Return the weights w ≥ 0 of the blend softmax(Σ_i w_i log p_i) of least forward log-loss.

    ``logs`` are those of each part's probabilities, (parts, n, k), ``likelihood`` T[y, z] of each
    row's released label, (n, k). With few rows they are drawn towards the best single part.
    """
    n = logs.shape[1]
    alone = np.stack([forward_losses(np.exp(part), likelihood) for part in logs])
    anchor = np.eye(len(logs))[alone.mean(axis=1).argmin()]

    def objective(weights: FloatArray) -> tuple[float, FloatArray]:
        log_p = log_softmax(np.tensordot(weights, logs, axes=1), axis=1)
        joint = np.exp(log_p) * likelihood
        evidence = np.maximum(joint.sum(axis=1, keepdims=True), 1e-300)
        residual = np.exp(log_p) - joint / evidence
        away = weights - anchor
        pull = _ANCHOR_ROWS / n
        loss = -float(np.log(evidence).mean()) + pull * float(away @ away)
        slope = np.array([(part * residual).sum() for part in logs]) / n
        return loss, slope + 2 * pull * away

    bounds = [(0.0, 3.0)] * len(logs)
    optimum = minimize(objective, anchor, jac=True, method="L-BFGS-B", bounds=bounds)
    return np.asarray(optimum.x, dtype=np.float64)


def _base(codes: IntArray, outputs: int) -> FloatArray:
    counts = np.bincount(codes, minlength=outputs) + 1.0 / outputs
    return np.asarray(counts / counts.sum())


def _linear(
    features: FeatureTable,
    codes: IntArray,
    transition: FloatArray,
    rng: np.random.Generator,
    penalties: tuple[float, ...] = _PENALTIES,
) -> list[Linear]:
    """Return a regression for each penalty; none where no column varies."""
    design = DesignMatrix.fit(features)
    if design.width == 0:
        return []
    work = design.width * len(transition)
    rows = _thinned(len(codes), work, rng)
    # What the channel leaves of a difference: its second singular value, 1 without noise.
    contrast = float(np.linalg.svd(transition, compute_uv=False)[1])
    if len(rows) * contrast**2 > _ROWS_PER_WEIGHT * work:
        penalties = penalties[-1:]
    matrix, models = design.transform(features.take(rows)), list[Linear]()
    for penalty in penalties:
        start = models[-1].model if models else None
        model = fit_forward_logistic(matrix, codes[rows], transition, penalty, start)
        models.append(Linear(design, model, penalty, transition))
    return models


def _boosted(
    features: FeatureTable,
    codes: IntArray,
    outputs: int,
    rng: np.random.Generator,
    rounds: int | None = None,
) -> Boosted | None:
    """Return boosting with given rounds, by default as many as a tenth of the rows asks for."""
    # None where labels are more than 12, or one has too few rows.
    from sklearn.ensemble import HistGradientBoostingClassifier

    counts = np.unique(codes, return_counts=True)[1]
    trees = 1 if len(counts) == 2 else len(counts)
    most = int(np.clip(300 // trees, 20, _ROUNDS))
    leaves = _LEAVES
    if tried_out():
        most, leaves = _FEW_ROUNDS, _FEW_LEAVES
    work = min(features.width, TREE_COLUMNS) * trees * most
    enough = counts.min() * _MOST_BOOSTED >= _FEW_OF_A_LABEL * len(codes)
    rows = _thinned(len(codes), max(work, _WORK / _MOST_BOOSTED) if enough else work, rng)
    features, codes = features.take(rows), codes[rows]
    observed, counts = np.unique(codes, return_counts=True)
    design = screened(BoostingMatrix, features, codes, TREE_COLUMNS)
    too_few = counts.min() < 2 or len(rows) < 10 * len(observed)
    if not 2 <= len(observed) <= _BOOSTED_CLASSES or too_few or not design.width:
        return None
    model = HistGradientBoostingClassifier(
        learning_rate=0.1 * (100 / most) ** 0.5,
        max_iter=rounds or most,
        max_leaf_nodes=leaves,
        min_samples_leaf=max(20, len(rows) // 2000),
        l2_regularization=1.0,
        categorical_features=design.categorical(),
        max_bins=most_bins(design.width, design.categorical()),
        early_stopping=rounds is None,
        n_iter_no_change=8,
        random_state=integer_seed(rng),
        warm_start=True,
    )
    matrix = design.transform(features)
    fit_boosting(model, matrix, codes)
    may_go_on = rounds is None and len(rows) >= _TELLING
    while may_go_on and model.n_iter_ == model.max_iter < _LONGEST * most:
        before, last = model.validation_score_[[-1 - _LATELY, -1]]
        if last - before <= -_WORTH_GOING_ON * last:
            break
        model.max_iter += most
        fit_boosting(model, matrix, codes)
    return Boosted(design, model, outputs)


def _normal(features: FeatureTable, codes: IntArray, outputs: int) -> Normal | None:
    """Return normal numbers; None where none varies, or they or the labels are many."""
    rows = np.arange(0, len(codes), len(codes) // _NORMAL_ROWS + 1)
    features = features.take(rows)
    design = DesignMatrix.fit(features, _NUMBERS)
    if not 0 < design.width <= TREE_COLUMNS or outputs > _BOOSTED_CLASSES:
        return None
    x, labels = design.transform(features).astype(np.float64), np.eye(outputs)[codes[rows]]
    # Each label has one row more, as usual as any.
    counts = labels.sum(axis=0)[:, None] + 1
    means = labels.T @ x / counts
    return Normal(design, _base(codes, outputs), means, (labels.T @ x**2 + 1) / counts - means**2)


def _thinned(n: int, work_per_row: float, rng: np.random.Generator) -> IndexArray:
    most = max(int(_WORK / max(work_per_row, 1.0)), 2_000)
    return np.arange(n) if n <= most else np.sort(rng.choice(n, size=most, replace=False))


# How many rows the frequencies of all labels are worth beside those of one value.
_SMOOTH: Final = (2.0, 16.0, 128.0)
_PARTS: Final = 5
_MOST_ADDED: Final = 24
_LEAST_GAIN: Final = 1e-4
_PAIRED_ROWS: Final = 6_000
_FEWEST_PAIRED: Final = 500
_PAIRED_COLUMNS: Final = 16
_PAIRED_VALUES: Final = 200
_MOST_PAIRS: Final = 3
_PULL: Final = 4.0
_SURE: Final = 4.0


@dataclass(frozen=True)
class ValueLabels:
    """The log-odds of the labels for each value of a column, or of a pair of columns."""

    columns: Effect
    keys: IndexArray
    """Int64 array of shape (v,): the values that were seen, sorted."""
    logs: Float32Array
    """Float32 array of shape (v + 1, m − 1): against the first label, beyond those of the
    frequencies of all; last 0, of new values."""
    smooth: float
    """How many rows these frequencies are worth."""

    def transform(self, features: FeatureTable) -> Float32Array:
        keys = _keys(features, self.columns)
        spots = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return self.logs[np.where(self.keys[spots] == keys, spots, -1)]


@dataclass(frozen=True)
class ValueEncoder:
    """Adds what the labels say of the values of some columns, and of pairs of columns."""

    # A categorical column that is encoded alone is left out.

    effects: tuple[ValueLabels, ...] = ()

    def transform(self, features: FeatureTable) -> FeatureTable:
        return self._extended(features, [effect.transform(features) for effect in self.effects])

    def refitted(
        self, features: FeatureTable, codes: IntArray, outputs: int, rng: np.random.Generator
    ) -> tuple["ValueEncoder", FeatureTable]:
        """Return the same columns encoded by other rows, and these rows encoded by one another."""
        part = rng.permutation(len(codes)) % _PARTS
        found = [
            _fitted(features, one.columns, codes, outputs, part, (one.smooth,))
            for one in self.effects
        ]
        encoder = ValueEncoder(tuple(effect for effect, *_ in found))
        return encoder, encoder._extended(features, [added for _, added, _ in found])

    def _extended(self, features: FeatureTable, added: list[Float32Array]) -> FeatureTable:
        d = features.numeric.shape[1]
        alone = {one.columns[0] - d for one in self.effects if len(one.columns) == 1}
        kept = [j for j in range(features.categorical.shape[1]) if j not in alone]
        return replace(
            features,
            numeric=np.concatenate([features.numeric, *added], axis=1),
            categorical=features.categorical[:, kept],
            cardinalities=tuple(features.cardinalities[j] for j in kept),
        )


def fit_values(
    features: FeatureTable, codes: IntArray, outputs: int, rng: np.random.Generator
) -> tuple[ValueEncoder, FeatureTable]:
    """Choose what to encode; return the encoder, and the rows encoded by one another's labels."""
    if outputs > _BOOSTED_CLASSES:
        return ValueEncoder(), features
    many: list[Effect] = [(j,) for j in many_valued(features)]
    effects = (many + _pairs(features, codes, rng))[: max(_MOST_ADDED // (outputs - 1), 1)]
    part, base = rng.permutation(len(codes)) % _PARTS, _base(codes, outputs)
    worst = -float(np.log(base[codes]).mean()) - _LEAST_GAIN
    found = [_fitted(features, columns, codes, outputs, part, _SMOOTH) for columns in effects]
    kept = [(effect, added) for effect, added, loss in found if loss < worst]
    encoder = ValueEncoder(tuple(effect for effect, _ in kept))
    return encoder, encoder._extended(features, [added for _, added in kept])


def _fitted(
    features: FeatureTable,
    columns: Effect,
    codes: IntArray,
    outputs: int,
    part: IndexArray,
    smooth: tuple[float, ...],
) -> tuple[ValueLabels, Float32Array, float]:
    """Return what values say, the rows' numbers by other parts' labels, and the least log-loss."""
    keys, members = np.unique(_keys(features, columns), return_inverse=True)
    base, shape = _base(codes, outputs), (_PARTS, len(keys), outputs)
    flat = (part * len(keys) + members) * outputs + codes
    counts = np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)
    total = counts.sum(axis=0)

    def logs(seen: FloatArray, m: float) -> FloatArray:
        share = (seen + m * base) / (seen.sum(axis=-1, keepdims=True) + m)
        return np.asarray(np.log(share / base))

    best: tuple[float, float, FloatArray] = (np.inf, 0.0, np.empty(0))
    for m in smooth:
        crossed = logs(total - counts, m)[part, members]
        loss = -float((crossed + np.log(base))[np.arange(len(codes)), codes].mean())
        best = min(best, (loss, m, crossed), key=lambda found: found[0])
    loss, m, crossed = best
    table = np.append(logs(total, m), np.zeros((1, outputs)), axis=0)
    table, crossed = (each[:, 1:] - each[:, :1] for each in (table, crossed))
    return ValueLabels(columns, keys, table.astype(np.float32), m), crossed.astype(np.float32), loss


def _bits(features: FeatureTable, column: int) -> IndexArray:
    """Return the values of a column as whole numbers, int64 of shape (n,); missing is one."""
    d = features.numeric.shape[1]
    if column >= d:
        return features.categorical[:, column - d].astype(np.int64) + 1
    values = features.numeric[:, column] + np.float32(0.0)
    values = np.where(np.isnan(values), np.float32(np.nan), values).astype(np.float32)
    return values.view(np.uint32).astype(np.int64)


def _keys(features: FeatureTable, columns: Effect) -> IndexArray:
    """Return one number for each combination of values, int64 of shape (n,)."""
    key = np.zeros(len(features), dtype=np.int64)
    for column in columns:
        key = (key << 32) + _bits(features, column)
    return key


def _pairs(features: FeatureTable, codes: IntArray, rng: np.random.Generator) -> list[Effect]:
    """Return the pairs of columns that say clearly more of the labels together than apart."""
    # The gain of columns is the log-loss, in nats a row, by which the frequencies of labels among
    # the rows of one half that agree on them predict the other half better than the class
    # frequencies do. Effects that add up gain no more together than apart; a pair is chosen where
    # it gains more by four standard errors.
    rows = np.sort(rng.permutation(len(codes))[:_PAIRED_ROWS])
    if len(rows) < _FEWEST_PAIRED:
        return []
    features, codes, half = features.take(rows), codes[rows], rng.permutation(len(rows)) % 2
    columns: dict[int, IndexArray] = {}
    for j in range(features.width):
        found, places = np.unique(_bits(features, j), return_inverse=True)
        if 2 <= len(found) <= _PAIRED_VALUES and len(columns) < _PAIRED_COLUMNS:
            columns[j] = places.astype(np.int64)
    outputs = int(codes.max()) + 1
    base = np.bincount(codes, minlength=outputs) / len(codes)

    def gains(key: IndexArray) -> FloatArray:
        cells, members = np.unique(key, return_inverse=True)
        flat = (half * len(cells) + members) * outputs + codes
        shape = 2, len(cells), outputs
        counts = np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)[::-1]
        share = (counts + _PULL * base) / (counts.sum(axis=2, keepdims=True) + _PULL)
        return np.asarray(np.log(share[half, members, codes] / base[codes]))

    alone = {j: gains(places) for j, places in columns.items()}
    beyond: dict[Effect, FloatArray] = {}
    for a, b in combinations(columns, 2):
        together = gains(columns[a] * _PAIRED_VALUES + columns[b])
        beyond[a, b] = together - alone[a] - alone[b]
    sure = [
        e
        for e, g in beyond.items()
        if g.mean() > _SURE * g.std() / np.sqrt(len(g)) and g.mean() > 0
    ]
    return sorted(sure, key=lambda e: -float(beyond[e].mean()))[:_MOST_PAIRS]
