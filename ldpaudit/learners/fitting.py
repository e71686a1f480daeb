"""From corrected rows to a fitted model: logistic regression, boosting or a network."""

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.learners.corrections import label_targets
from ldpaudit.learners.double_rr_loss import double_targets
from ldpaudit.learners.logistic import (
    ForwardLoss,
    LogisticModel,
    LogitLoss,
    Real,
    Stopping,
    TargetLoss,
    fit_logistic,
)
from ldpaudit.learners.network import NetworkLoss, NetworkOptions, fit_network
from ldpaudit.mechanisms.capabilities import SyntheticFeatures
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.modelling.encoding import Scaling
from ldpaudit.randomness import integer_seed
from ldpaudit.release import FloatArray, IntArray

MODELS = ("logistic", "boosting", "network")
_TIGHT = Stopping(iterations=2000, slope=1e-8, gain=1e-12)
_SINGLE = 1e-7


class Fitted(Protocol):
    """What every fitted model offers."""

    def predict(self, matrix: FloatArray) -> FloatArray:
        """Return P(y | x), float64 of shape (n, k)."""


@dataclass(frozen=True)
class Rows:
    """Rows whose labels are ready for a corrected loss.

    Attributes
    ----------
    matrix : float64 array of shape (n, d)
        Features.
    answers : float64 array of shape (n, k)
        T[y, z] of each label for the forward loss, else soft labels of any sign.
    weights : float64 array of shape (n,)
        Rows' weights; the soft labels do not include them.
    forward : bool
        Which of the two ``answers`` is.
    codes : int32 array of shape (n,)
        The released labels.
    transition : float64 array of shape (k, m)
        The channel that the forward loss assumes.
    """

    matrix: FloatArray
    answers: FloatArray
    weights: FloatArray
    forward: bool
    codes: IntArray
    transition: FloatArray

    @classmethod
    def labelled(
        cls,
        matrix: FloatArray,
        codes: IntArray,
        weights: FloatArray,
        channel: Channel,
        correction: str | None,
    ) -> "Rows":
        """Return rows corrected for the label's channel."""
        transition = channel.matrix if correction else _at_their_word(channel)
        if correction in (None, "forward"):
            return cls(matrix, transition.T[codes], weights, True, codes, transition)
        return cls(matrix, label_targets(codes, channel), weights, False, codes, transition)

    @classmethod
    def constant(cls, matrix: FloatArray, weights: FloatArray) -> "Rows":
        """Return rows of a single label."""
        codes = np.zeros(len(matrix), dtype=np.int32)
        return cls(matrix, np.ones((len(matrix), 1)), weights, True, codes, np.ones((1, 1)))

    def repeated(self, matrix: FloatArray, weights: FloatArray) -> "Rows":
        """Return each row c times, with features (n·c, d) and shares (n, c) of its weight."""
        times = weights.shape[1]
        return replace(
            self,
            matrix=matrix,
            answers=np.repeat(self.answers, times, axis=0),
            weights=(self.weights[:, None] * weights).ravel(),
            codes=np.repeat(self.codes, times),
        )

    def with_synthetic(
        self, synthetic: FloatArray, synthetic_codes: IntArray, mechanism: SyntheticFeatures
    ) -> "Rows":
        """Return these rows and the synthetic ones with the soft labels of double RR."""
        released, drawn = double_targets(self.codes, synthetic_codes, mechanism, self.weights)
        # Scaled so that each released row again has a soft label of about its own size.
        scale = float(self.weights.sum())
        return replace(
            self,
            matrix=np.concatenate([self.matrix, synthetic]),
            answers=np.concatenate([released, drawn]) * scale,
            weights=np.ones(len(self.matrix) + len(synthetic)),
            codes=np.concatenate([self.codes, synthetic_codes]),
        )


@dataclass(frozen=True)
class ScaledLogistic:
    """Logistic regression on standardised features."""

    scaling: Scaling
    model: LogisticModel

    def predict(self, matrix: FloatArray) -> FloatArray:
        """Return P(y | x), float64 of shape (n, k)."""
        return self.model.predict(self.scaling.transform(matrix))


class OneLabel:
    """The model of rows that all have one label."""

    def predict(self, matrix: FloatArray) -> FloatArray:
        """Return ones, float64 of shape (n, 1)."""
        return np.ones((len(matrix), 1))


def fit_model(
    rows: Rows,
    model: str,
    penalty: float,
    stopping: Stopping | None,
    rounds: int,
    network: NetworkOptions,
    rng: np.random.Generator,
) -> Fitted:
    """Fit one of :data:`MODELS` to corrected rows."""
    if rows.answers.shape[1] == 1:
        return OneLabel()
    if model == "network":
        loss: NetworkLoss = "forward" if rows.forward else "targets"
        return fit_network(rows.matrix, rows.answers, rows.weights, loss, network, rng)
    if model == "boosting":
        return _boosted(rows, rounds, integer_seed(rng))
    return _logistic(rows, penalty, stopping or _TIGHT)


def _logistic(rows: Rows, penalty: float, stopping: Stopping) -> ScaledLogistic:
    # Single precision halves the time, and cannot tell losses that differ by less.
    kind: type[np.floating[Any]] = np.float32 if stopping.gain >= _SINGLE else np.float64
    scaling = Scaling.fit(rows.matrix, rows.weights)
    share = (rows.weights / rows.weights.mean())[:, None]
    loss: LogitLoss = TargetLoss((rows.answers * share).astype(kind))
    if rows.forward:
        loss = ForwardLoss(rows.answers.astype(kind), share.astype(kind))
    # Of n rows with total weight w the loss counts n/w each: the penalty must, too.
    ridge = penalty * len(rows.weights) / float(rows.weights.sum())
    matrix: Real = scaling.transform(rows.matrix).astype(kind, copy=False)
    model = fit_logistic(matrix, loss, rows.answers.shape[1], ridge, None, stopping)
    return ScaledLogistic(scaling, model)


def _boosted(rows: Rows, rounds: int, seed: int) -> Fitted:
    from ldpaudit.learners.boosting import (
        BoostingOptions,
        fit_boosted_released,
        fit_boosted_targets,
    )

    options = BoostingOptions(rounds=rounds, seed=seed)
    if rows.forward:
        return fit_boosted_released(rows.matrix, rows.codes, rows.transition, rows.weights, options)
    return fit_boosted_targets(rows.matrix, rows.answers, rows.weights, options)


def _at_their_word(channel: Channel) -> FloatArray:
    """Return for each class the indicator of the output of its name, float64 of shape (k, m)."""
    if not set(channel.outputs) <= set(channel.classes):
        raise InputError(
            "Without correction the released labels are taken as true, but not all of the "
            "channel's outputs are classes: choose a correction."
        )
    indicators = [
        [float(label == output) for output in channel.outputs] for label in channel.classes
    ]
    return np.array(indicators)
