"""Class probabilities learnt from labels that went through a channel of each row's own."""

# Under model-based randomized response a new label is drawn from a public model of the features; of
# synthetic rows the label is independent of the features.

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ldpaudit.models.corrections import conditioned
from ldpaudit.models.encoding import BoostingMatrix, DesignMatrix
from ldpaudit.models.label_model import (
    Blend,
    Linear,
    Part,
    PosteriorModel,
    ValueEncoder,
    blend_weights,
    floored,
)
from ldpaudit.models.logistic import ForwardLoss, fit_logistic
from ldpaudit.models.screening import (
    MOST_COLUMNS,
    TREE_COLUMNS,
    Screen,
    most_bins,
    screened,
    tried_out,
)
from ldpaudit.models.trees import fit_boosting, probabilities
from ldpaudit.randomness import integer_seed
from ldpaudit.release import FeatureTable, Float32Array, FloatArray

_MOST_ROWS_FITTED = 50_000
_FEWEST = 100
_HELD_OUT = 0.2
_RIDGE = 3.0
_FLOOR = 1e-6
_BOOSTED_CLASSES = 12
_EM_ROUNDS = 3
_ITERATIONS = 40
_FEW_ITERATIONS, _FEW_BINS = 12, 32  # To try things out.
_LEAF = 40
_PRIOR_ROUNDS = 100


@dataclass(frozen=True)
class BoostedRows:
    """Gradient boosting of the true label, by expectation–maximisation."""

    design: Any
    model: Any
    classes: int

    def predict(self, features: FeatureTable) -> FloatArray:
        return self.probability(self.design.transform(features))

    def probability(self, matrix: Float32Array) -> FloatArray:
        probability = np.zeros((len(matrix), self.classes))
        probability[:, self.model.classes_] = probabilities(self.model, matrix)
        return probability


def fit_row_channels(
    features: FeatureTable, likelihood: FloatArray, rng: np.random.Generator
) -> PosteriorModel:
    """Learn P(y | x) by the forward loss −log Σ_y p_y(x) P(ỹ | y, x).

    ``likelihood``: P(ỹ | y, x) at each row's ỹ, (n, k). Of more than 50,000 rows a random sample
    is used. A blend of class frequencies, logistic regression and, up to 12 labels, gradient
    boosting, weighted on held-out rows.
    Patrini et al. (2017), Theorem 2, with a channel for each row.
    """
    features = features.expanded()
    rows = rng.permutation(len(features))[:_MOST_ROWS_FITTED]
    prior = floored(_frequencies(likelihood[rows])[None, :], _FLOOR).ravel()
    if len(rows) < _FEWEST or features.is_constant():
        return PosteriorModel(prior)
    held, training = np.split(rows, [int(_HELD_OUT * len(rows))])
    parts = _parts(features.take(training), likelihood[training], rng)
    blend = Blend(Screen(), ValueEncoder(), prior, parts, np.eye(1 + len(parts))[0])
    weights = blend_weights(blend.logs(features.take(held)), likelihood[held])
    return PosteriorModel(prior, replace(blend, weights=weights))


def _parts(
    features: FeatureTable, likelihood: FloatArray, rng: np.random.Generator
) -> tuple[Part, ...]:
    k, parts = likelihood.shape[1], list[Part]()
    likeliest = likelihood.argmax(axis=1)
    design = screened(DesignMatrix, features, likeliest, MOST_COLUMNS)
    start = np.tile(_frequencies(likelihood), (len(features), 1))
    if design.width:
        loss = ForwardLoss(np.ascontiguousarray(likelihood, dtype=np.float32))
        model = fit_logistic(design.transform(features), loss, k, _RIDGE)
        parts.append(Linear(design, model, _RIDGE))
        start = parts[0].predict(features)
    boosting = screened(BoostingMatrix, features, likeliest, TREE_COLUMNS)
    if boosting.width and k <= _BOOSTED_CLASSES:
        matrix = boosting.transform(features)
        parts.append(_boosted(boosting, matrix, likelihood, start, rng))
    return tuple(parts)


def _boosted(
    design: Any,
    matrix: Float32Array,
    likelihood: FloatArray,
    start: FloatArray,
    rng: np.random.Generator,
) -> BoostedRows:
    """Boost the weighted log-loss of every possible label, with P(y | x, ỹ) as its weight."""
    # The weights come from the logistic model first, then from boosting itself.
    from sklearn.ensemble import HistGradientBoostingClassifier

    n, k = likelihood.shape
    labels = np.repeat(np.arange(k), n)
    stacked, seed = np.tile(matrix, (k, 1)), integer_seed(rng)
    posterior = conditioned(start, likelihood)
    rounds, bins = _ITERATIONS, most_bins(design.width, design.categorical())
    if tried_out():
        levels = np.nanmax(matrix[:, design.categorical()], initial=0)
        rounds, bins = _FEW_ITERATIONS, min(bins, max(_FEW_BINS, int(levels) + 2))
    for _ in range(_EM_ROUNDS):
        model = HistGradientBoostingClassifier(
            max_iter=rounds,
            min_samples_leaf=_LEAF * k,
            l2_regularization=1.0,
            categorical_features=design.categorical(),
            max_bins=bins,
            early_stopping=False,
            random_state=seed,
        )
        # Each label keeps a little weight everywhere, so that none is absent.
        fit_boosting(model, stacked, labels, np.maximum(posterior.T.ravel(), _FLOOR))
        boosted = BoostedRows(design, model, k)
        posterior = conditioned(boosted.probability(matrix), likelihood)
    return boosted


def _frequencies(likelihood: FloatArray) -> FloatArray:
    """Return the class frequencies behind released labels by EM, float64 of shape (k,)."""
    k = likelihood.shape[1]
    prior = np.full(k, 1 / k)
    for _ in range(_PRIOR_ROUNDS if len(likelihood) else 0):
        prior = conditioned(np.tile(prior, (len(likelihood), 1)), likelihood).mean(axis=0)
    return np.asarray(prior / prior.sum())
