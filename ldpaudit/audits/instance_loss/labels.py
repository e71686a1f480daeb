"""What the instance-loss audit counts: labels, their shares, and the channel between them."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from ldpaudit.audits.claimed_channel import aligned_channel
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.mechanism.evidence import feature_dependence
from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.epsilon.consistency import channel_consistency
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower, clopper_pearson_upper
from ldpaudit.estimators.loss.posterior_intervals import SMOOTHING, PosteriorBox
from ldpaudit.release import FloatArray, IntArray, label_table

ChannelSource = Literal["declared", "measured", "none"]

REFUTED = 0.001
"""A declared channel is not used where the counts disagree with it at this p-value."""


@dataclass(frozen=True)
class LossLabels:
    """Labels of all n rows of a release, k true and m released ones.

    Attributes
    ----------
    truth : int32 array of shape (n,) or None
        True labels, coded 0 … k − 1 among those that occur; None for an outsider.
    released : int32 array of shape (n,)
    classes : int64 array of shape (k,)
        The codes of those labels in the release.
    prior, prior_low, prior_high : float64 arrays of shape (k,)
        Shares of the true labels, and a simultaneous confidence interval for them.
    channel : float64 array of shape (k, m) or None
        P(z | y); None where the released label is known to depend on the features.
    source : {"declared", "measured", "none"}
        Where the channel is from.
    """

    truth: IntArray | None
    released: IntArray
    classes: npt.NDArray[np.int64]
    outputs: int
    prior: FloatArray
    prior_low: FloatArray
    prior_high: FloatArray
    channel: FloatArray | None
    source: ChannelSource

    @property
    def counted(self) -> IntArray:
        """The labels that are counted among neighbours: true ones, or an outsider's released."""
        return self.released if self.truth is None else self.truth

    @property
    def n_counted(self) -> int:
        """How many labels are counted."""
        return self.outputs if self.truth is None else len(self.classes)

    def box(self, counts: IntArray, totals: IntArray, error: float) -> PosteriorBox:
        """Return the posteriors of true labels that counts of the counted labels imply."""
        box = PosteriorBox.from_counts(counts, totals, error)
        if self.truth is not None:
            return box
        assert self.channel is not None
        return box.through(self.channel)


def loss_labels(context: AuditContext, error: float) -> LossLabels:
    """Return the labels of a release; the shares' intervals fail with probability ``error``.

    Raise InsufficientDataError if only one true label occurs.
    """
    return _outsider(context, error) if context.release.truth is None else _insider(context, error)


def measured_channel(labels: IntArray, released: IntArray, k: int, m: int) -> FloatArray:
    """Return P(z | y) as counted, float64 of shape (k, m), every entry positive.

    Each label's counts are shrunk by m/2 rows towards the shares of all released labels.
    """
    counts = label_table(labels, released, k, m)
    shares = (counts.sum(axis=0) + SMOOTHING) / (counts.sum() + SMOOTHING * m)
    rows = counts.sum(axis=1, keepdims=True)
    return np.asarray((counts + SMOOTHING * m * shares) / (rows + SMOOTHING * m))


def measured_shares(labels: IntArray, k: int) -> FloatArray:
    """Return the labels' shares, float64 of shape (k,), each with half a row added."""
    counts = np.bincount(labels, minlength=k)
    return np.asarray((counts + SMOOTHING) / (len(labels) + SMOOTHING * k))


def _insider(context: AuditContext, error: float) -> LossLabels:
    released, m = context.release.released, len(context.release.outputs)
    occurs = np.bincount(context.truth) > 0
    classes = np.flatnonzero(occurs)
    if len(classes) < 2:
        raise InsufficientDataError("The privacy loss needs at least two true labels that occur.")
    truth = context.truth
    if not occurs.all():
        truth = (np.cumsum(occurs, dtype=np.int32) - 1)[truth]
    counts, n = np.bincount(truth), len(truth)
    tail = error / (2 * len(counts))
    low, high = clopper_pearson_lower(counts, n, tail), clopper_pearson_upper(counts, n, tail)
    channel, source = _channel(context, truth, classes, m)
    return LossLabels(truth, released, classes, m, counts / n, low, high, channel, source)


def _channel(
    context: AuditContext, truth: IntArray, classes: npt.NDArray[np.int64], m: int
) -> tuple[FloatArray | None, ChannelSource]:
    """Return the declared channel unless the counts refute it, else the measured one."""
    if feature_dependence(context) is not None:
        return None, "none"
    declared = aligned_channel(context)
    released = context.release.released
    if declared is not None:
        matrix = declared.matrix[classes]
        counts = label_table(truth, released, len(classes), m)
        if channel_consistency(counts, matrix, REFUTED).p_value > REFUTED:
            return matrix, "declared"
    return measured_channel(truth, released, len(classes), m), "measured"


def _outsider(context: AuditContext, error: float) -> LossLabels:
    declared = aligned_channel(context)
    assert declared is not None
    released, matrix = context.release.released, declared.matrix
    box = prior_box(released, matrix, error)
    return LossLabels(
        None,
        released,
        np.arange(len(matrix)),
        matrix.shape[1],
        box.estimate[0],
        np.clip(box.low[0], 1e-12, None),
        np.clip(box.high[0], None, 1 - 1e-12),
        matrix,
        "declared",
    )


def prior_box(released: IntArray, channel: FloatArray, error: float) -> PosteriorBox:
    """Return the shares of true labels, one row, that released labels imply through a channel."""
    counts = np.bincount(released, minlength=channel.shape[1]).astype(np.int32)
    total = np.array([len(released)], dtype=np.int32)
    return PosteriorBox.from_counts(counts[None], total, error).through(channel)
