"""Logistic regression on a release in single precision, as far as a comparison needs it."""

from typing import Any, Final, cast

import numpy as np

from ldpaudit.learners.fitting import Rows
from ldpaudit.learners.logistic import (
    ForwardLoss,
    LogisticModel,
    LogitLoss,
    Stopping,
    TargetLoss,
    fit_logistic,
)
from ldpaudit.mechanisms.capabilities import SyntheticFeatures
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.release import Float32Array, IntArray, SyntheticTable

_PENALTY: Final = 1.0
_STOPPING: Final = Stopping(iterations=300, slope=1e-5, gain=1e-8)
"""Further steps move the accuracy on test rows by less than its interval's rounding."""


def fit_linear(
    matrix: Float32Array,
    codes: IntArray,
    channel: Channel,
    correction: str | None,
    double: tuple[SyntheticFeatures, Float32Array, SyntheticTable] | None,
) -> LogisticModel:
    """Fit a ridge-penalised multinomial model of the true label.

    Parameters
    ----------
    matrix : float32 array of shape (n, p)
        The released features as a design matrix.
    codes : int32 array of shape (n,)
        Released labels, columns of the channel.
    channel : Channel
        Of the label.
    correction : {"forward", "unbiased"} or None
    double : tuple of SyntheticFeatures, float32 array of shape (s, p), SyntheticTable, or None
        The mechanism, with the design matrix and the labels of the synthetic rows, for the unbiased
        loss of double randomized response.

    Raises
    ------
    ldpaudit.errors.InputError
        If the channel cannot be inverted, or a label has no synthetic row.
    """
    plain = cast(Any, matrix)
    rows = Rows.labelled(plain, codes, np.ones(len(matrix)), channel, correction)
    if double is not None:
        mechanism, synthetic, table = double
        rows = rows.with_synthetic(cast(Any, synthetic), table.labels, mechanism)
    answers = rows.answers.astype(np.float32)
    loss: LogitLoss = ForwardLoss(answers) if rows.forward else TargetLoss(answers)
    return fit_logistic(rows.matrix, loss, answers.shape[1], _PENALTY, None, _STOPPING)
