"""Released columns as features of a model that will meet their true values.

A model that takes a noisy column at its word learns too weak an effect of it: the noise hides
it (errors in variables). Three ways around that know the channel:

*The posterior.* Noise is replaced by what it tells: the indicators of a column's values in the
released rows become P(value | features, released columns), and are plain indicators of the true
value in rows where it is known (regression calibration). It serves linear models; trees and
networks would meet indicators that no released row had.

*The mixture.* A logistic model of the label is fitted to the likelihood of all released columns
of a row, summed over the other columns' true values. It also holds where one mechanism released
the columns together.

*Expansion.* Each released row stands once with every combination of true values, weighted by its
probability given all released columns, by that mixture. It serves any model that takes weights.

References
----------
Carroll, Ruppert, Stefanski & Crainiceanu (2006), "Measurement Error in Nonlinear Models", chapter 4
(regression calibration) and section 8.4 (likelihood).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ldpaudit.doors import Channel, FloatArray, InputError, IntArray
from ldpaudit.mechanisms.finite import check_codes
from ldpaudit.models.encoding import Scaling
from ldpaudit.models.logistic import (
    ForwardLoss,
    LogisticModel,
    Real,
    Stopping,
    fit_logistic,
)

# Combinations of the other columns' values that a row is expanded by at most.
COMBINATIONS: Final = 64
STOPPING: Final = Stopping(iterations=300, slope=1e-5, gain=1e-8)
_LEAST: Final = np.float32(1e-30)


def posteriors(
    matrix: Real, likelihoods: Sequence[FloatArray], penalty: float = 1.0
) -> list[FloatArray]:
    """Return P(true value | features, released columns) of each noisy column: estimates, (n, k).

    A logistic model of each column's true value, learnt through its channel from standardised
    features (n, p) and the other released columns, is the prior; the column's own released value
    is then taken into account by Bayes' rule. ``likelihoods``: P(released value | true value) of
    each row, (n, k); the columns' draws are independent given their true values.
    """
    shown = [_normalised(one) for one in likelihoods]
    priors = [
        prior(np.hstack([matrix, *shown[:j], *shown[j + 1 :]]), one, penalty)
        for j, one in enumerate(likelihoods)
    ]
    return [_normalised(p * one) for p, one in zip(priors, likelihoods, strict=True)]


def prior(matrix: Real, likelihood: FloatArray, penalty: float = 1.0) -> FloatArray:
    """Return P(true value | features) of a noisy column, float64 of shape (n, k), learnt from it.

    ``likelihood``: P(released value | true value) at each row's released value, of that shape.
    """
    rows = np.ascontiguousarray(matrix, dtype=np.float32)
    loss = ForwardLoss(likelihood.astype(np.float32))
    k = likelihood.shape[1]
    return fit_logistic(rows, loss, k, penalty, None, STOPPING).predict(rows)


@dataclass(frozen=True)
class MixtureLoss:
    """−log Σ_b Σ_y W[b, y] p(y | x, b): the other columns' true values b are unknown.

    Attributes
    ----------
    weights : float array of shape (n, c, k)
        P(b | x) P(released columns | y, b) of each row, for c combinations b and k labels y.
    """

    weights: Real

    def __call__(self, logits: Real) -> tuple[float, Real]:
        """Return the mean loss of n rows, and n·c times its gradient in the logits (k, n·c)."""
        each = logits.T.reshape(self.weights.shape)
        probability = np.exp(each - each.max(axis=2, keepdims=True))
        probability /= probability.sum(axis=2, keepdims=True)
        joint = self.weights * probability
        part = joint.sum(axis=2, keepdims=True)
        evidence = np.maximum(part.sum(axis=1, keepdims=True), _LEAST)
        gradient = (part * probability - joint) / evidence * self.weights.shape[1]
        loss = -float(np.log(evidence).mean(dtype=np.float64))
        return loss, gradient.reshape(logits.shape[::-1]).T


def fit_mixture(
    matrix: Real,
    others: Sequence[FloatArray],
    likelihood: FloatArray,
    codes: Real,
    penalty: float = 1.0,
) -> LogisticModel:
    """Fit P(label | features, true values of the other columns) to all released columns.

    ``others``: P(true value | features) of each other column, (n, k_j), taken as independent
    given the features; ``likelihood``: P(released columns | label, b), (n, c, k), for each
    combination b of the others' values, row-major; ``codes``: what stands beside the features for
    each, (c, q). The model is one of p + q columns.
    """
    _, c, k = likelihood.shape
    weights = _combined(others)[:, :, None] * likelihood
    weights /= np.maximum(weights.sum(axis=(1, 2), keepdims=True), 1e-300)
    rows = expanded(matrix, codes).astype(np.float32)
    loss: Any = MixtureLoss(weights.astype(np.float32))
    # The ridge is divided by the n·c rows of the matrix, and should be by n.
    return fit_logistic(rows, loss, k, penalty * c, None, STOPPING)


def combination_weights(
    matrix: Real,
    likelihoods: Sequence[FloatArray],
    likelihood: FloatArray,
    codes: Real,
    penalty: float = 1.0,
) -> FloatArray:
    """Return P(combination of the others' true values | features, released columns, label too).

    The parameters are those of :func:`fit_mixture`, with P(released value | true value) of each
    other column in place of ``others``.

    Returns
    -------
    float64 array of shape (n, c)
    """
    others = [prior(matrix, one, penalty) for one in likelihoods]
    model = fit_mixture(matrix, others, likelihood, codes, penalty)
    labels = model.predict(expanded(matrix, codes)).reshape(likelihood.shape)
    return _normalised(_combined(others) * (likelihood * labels).sum(axis=2))


def expanded(matrix: Real, codes: Real) -> Real:
    """Return each of n rows with each of c combinations, of shape (n·c, p + q)."""
    n, c = len(matrix), len(codes)
    return np.hstack([np.repeat(matrix, c, axis=0), np.tile(codes, (n, 1))])


def independent_law(likelihoods: Sequence[FloatArray], own: FloatArray) -> FloatArray:
    """Return P(all released columns | the others' values, label) of independent draws, (n, c, k).

    ``own``: P(released label | label), of shape (n, k).
    """
    return np.asarray(_combined(likelihoods)[:, :, None] * own[:, None, :])


def combinations(values: Sequence[FloatArray]) -> FloatArray:
    """Return what stands for each combination of true values, row-major, float64 (c, Σw).

    ``values``: for each column what stands for each of its values, of shape (k_j, w_j).
    """
    sizes = [len(one) for one in values]
    codes = np.unravel_index(np.arange(int(np.prod(sizes))), sizes)
    return np.hstack([v[code] for v, code in zip(values, codes, strict=True)])


def _combined(parts: Sequence[FloatArray]) -> FloatArray:
    """Return the products of one entry of each part, row-major, of shape (n, c)."""
    joint = np.ones((len(parts[0]), 1))
    for one in parts:
        joint = np.einsum("ia,ib->iab", joint, one).reshape(len(joint), -1)
    return joint


def _normalised(values: FloatArray) -> FloatArray:
    total = values.sum(axis=1, keepdims=True)
    even = 1.0 / values.shape[1]
    return np.asarray(np.divide(values, total, out=np.full_like(values, even), where=total > 0))


@dataclass(frozen=True)
class NoisyInputs:
    """Columns of an array that hold released values while learning, and true ones afterwards.

    Attributes
    ----------
    channels : mapping of int to Channel
        The positions of the columns, with what released each of them.
    """

    channels: Mapping[int, Channel]

    def posterior(self, X: FloatArray) -> FloatArray:
        """Return (n, d') features of released rows: the other columns, then the posteriors."""
        rest = self._rest(X)
        return np.hstack([rest, *posteriors(_scaled(rest), self._likelihoods(X))])

    def at_their_word(self, X: FloatArray) -> FloatArray:
        """Return (n, d') features of released rows: the other columns, then the likeliest."""
        found = [np.eye(one.shape[1])[one.argmax(axis=1)] for one in self._likelihoods(X)]
        return np.hstack([self._rest(X), *found])

    def expanded(self, X: FloatArray, own: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (n·c, d') features of expanded rows, and their weights of shape (n, c).

        ``own``: P(released label | label) of each row, of shape (n, k).
        """
        sizes = [np.eye(len(channel.classes)) for channel in self.channels.values()]
        codes, found, rest = combinations(sizes), self._likelihoods(X), self._rest(X)
        if len(codes) > COMBINATIONS:
            raise InputError(
                f"The noisy columns have {len(codes)} combinations of values, and at most "
                f"{COMBINATIONS} can be tried for each row: use a linear model."
            )
        law = independent_law(found, own)
        rows = np.asarray(expanded(rest, codes), dtype=np.float64)
        return rows, combination_weights(_scaled(rest), found, law, codes)

    def _likelihoods(self, X: FloatArray) -> list[FloatArray]:
        return [
            channel.matrix.T[self._codes(X, at, len(channel.outputs))]
            for at, channel in self.channels.items()
        ]

    def true(self, X: FloatArray) -> FloatArray:
        """Return (n, d') features of rows with true values: the other columns, then indicators."""
        found = [
            np.eye(len(channel.classes))[self._codes(X, at, len(channel.classes))]
            for at, channel in self.channels.items()
        ]
        return np.hstack([self._rest(X), *found])

    def _rest(self, X: FloatArray) -> FloatArray:
        outside = [at for at in self.channels if not 0 <= at < X.shape[1]]
        if outside:
            raise InputError(
                f"The noisy columns must lie among the {X.shape[1]} columns of the features; "
                f"{len(outside)} of them do not."
            )
        return np.delete(X, list(self.channels), axis=1)

    @staticmethod
    def _codes(X: FloatArray, at: int, values: int) -> IntArray:
        codes = X[:, at]
        if not (np.isfinite(codes).all() and (codes == np.floor(codes)).all()):
            raise InputError("A noisy column must hold positions of values: whole numbers from 0.")
        return check_codes(codes.astype(np.int64), values)


def _scaled(rows: FloatArray) -> Real:
    return Scaling.fit(np.nan_to_num(rows), np.ones(len(rows))).transform(rows)
