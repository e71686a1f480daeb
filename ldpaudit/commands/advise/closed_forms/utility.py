"""What a candidate is expected to be good for, by closed forms that need no draw of the noise."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from ldpaudit.commands.advise.closed_forms.study import Study
from ldpaudit.commands.utility.learner import Learner
from ldpaudit.errors import InputError, LdpAuditError
from ldpaudit.learners.numeric_labels import unbiased_values
from ldpaudit.mechanisms.analysis import label_errors
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.label_range import nearest
from ldpaudit.release import FeatureTable, FloatArray, IndexArray, IntArray
from ldpaudit.result import Estimate, Kind

_SIZES: Final = 8
_DRAWS: Final = 3
_SMALLEST: Final = 25
"""Rows of the smallest sample that the learning curve is drawn through."""
_MOST_LEARNT: Final = 40_000
_LEAST: Final = 1e-9


@dataclass(frozen=True)
class Worth:
    """What a candidate is expected to be good for.

    Attributes
    ----------
    id, title, unit : str
    value : float
    cost : float
        The less, the better; candidates are put in order by it.
    tolerance : float
        Costs that differ by less count as equal.
    kind : {"exact", "estimated"}
    method : str
    """

    id: str
    title: str
    unit: str
    value: float
    cost: float
    tolerance: float
    kind: Kind
    method: str

    def as_good(self, other: "Worth") -> bool:
        """Return whether it is worth as much as another, but for a difference nobody notices."""
        return self.cost <= other.cost + self.tolerance

    def estimate(self) -> Estimate:
        """Return it as a number of the result."""
        make = Estimate.exact if self.kind == "exact" else Estimate.estimated
        more = {} if self.kind == "exact" else {"assumptions": ("the closed form fits",)}
        return make(
            self.id,
            self.title,
            self.value,
            section="utility",
            unit=self.unit,  # type: ignore[arg-type]
            method=self.method,
            **more,  # type: ignore[arg-type]
        )


class Yardstick(ABC):
    """Turns a mechanism into what it is worth for one use."""

    def __init__(self, study: Study) -> None:
        self.study = study

    @abstractmethod
    def of(self, mechanism: Mechanism, channel: FloatArray) -> Worth:
        """Return the worth of a mechanism with a channel of shape (k, m)."""


class Accuracy(Yardstick):
    """Accuracy of a classifier that learns from the release.

    Noise is worth as many rows as it costs Fisher information about P(y | x): n noisy labels teach
    like n·I(noisy)/I(true) true ones. A learning curve of the learner on so many true labels says
    how accurate it is then.
    """

    def of(self, mechanism: Mechanism, channel: FloatArray) -> Worth:  # noqa: ARG002
        """Return the expected accuracy on rows that the learner has not seen."""
        rows = self.study.parts.released * information_share(self.study.compared.posterior, channel)
        sizes, scores = self.curve
        value = float(np.interp(math.log(max(rows, 1.0)), np.log(sizes), scores))
        return Worth(
            "test_accuracy",
            "Accuracy of a model that learns from the release",
            "proportion",
            value=value,
            cost=-value,
            tolerance=0.001,
            kind="estimated",
            method=f"the learning curve from true labels at {rows:,.0f} rows, whose information "
            "about the label is that of the noisy rows",
        )

    @cached_property
    def curve(self) -> tuple[FloatArray, FloatArray]:
        """Rows, ascending, and the accuracy that a learner reaches with so many true labels."""
        study = self.study
        most = min(study.parts.released, _MOST_LEARNT)
        sizes = np.unique(np.geomspace(min(_SMALLEST, most), most, _SIZES).astype(int))
        order = study.context.rng("advise", "curve").permutation(study.parts.released)
        asked = np.arange(study.parts.released, study.parts.released + study.parts.compared)
        test, truth = study.release.features.take(asked), study.truth[asked]
        learner = Learner("logistic", true=True)
        # Without information a learner guesses at random: noise can make it worse than one that
        # only knows the commonest label.
        known, scores = [1.0], [1 / len(study.release.classes)]
        for size in sizes:
            parts = [order[i * size : (i + 1) * size] for i in range(_DRAWS)]
            parts = [part for part in parts if len(part) == size]
            found = [self._score(learner, part, test, truth) for part in parts]
            able = [one for one in found if one is not None]
            if able:
                known.append(float(size))
                scores.append(sum(able) / len(able))
        return np.array(known), np.maximum.accumulate(scores)

    def _score(
        self, learner: Learner, rows: IndexArray, test: FeatureTable, truth: IntArray
    ) -> float | None:
        """Return the accuracy on rows compared, None where the rows have one label only."""
        study = self.study
        try:
            guess, _ = learner.classes(
                study.release.take(np.sort(rows)), test, study.context.rng("advise", "score")
            )
        except LdpAuditError:
            return None
        return float((guess == truth).mean())


class SquaredError(Yardstick):
    """Squared error of a linear model that learns from the release."""

    def of(self, mechanism: Mechanism, channel: FloatArray) -> Worth:  # noqa: ARG002
        """Return the error from true labels and what the mechanism's noise and bias add to it.

        A least-squares model of p coefficients on n rows adds p/n times the labels' added variance;
        a bias that is not undone enters whole.
        """
        base, share = self._base
        value = base + self._added(mechanism, share)
        return Worth(
            "test_squared_error",
            "Squared error of a model that learns from the release",
            "squared label units",
            value=value,
            cost=value,
            tolerance=0.005 * base,
            kind="estimated",
            method="the error from true labels, plus the noise's variance times coefficients/rows, "
            "plus the bias that is not undone",
        )

    def _added(self, mechanism: Mechanism, share: float) -> float:
        mechanism = mechanism.after_rounding
        errors, numeric = label_errors(mechanism), self.study.release.numeric
        if errors is None or numeric is None or numeric.truth is None:
            return math.inf
        weights = _weights(errors.labels, numeric.truth)
        # A model averages the bias over the labels that people with these features have.
        bias = np.interp(self._means, errors.labels, errors.bias)
        kept = float(((self.study.compared.posterior @ bias) ** 2).mean())
        kept += share * float(weights @ errors.variance)
        channel = mechanism.channel
        if channel is None or errors.unbiased:
            return kept
        try:
            values = unbiased_values(channel)
        except InputError:
            return kept
        undone = channel.matrix @ values**2 - errors.labels**2
        return min(kept, share * float(weights @ undone))

    @cached_property
    def _means(self) -> FloatArray:
        """The mean label of each code, float64 of shape (k,); of a code without rows 0."""
        study, numeric = self.study, self.study.release.numeric
        assert numeric is not None
        k = len(study.release.classes)
        counts = np.bincount(study.truth, minlength=k)
        return np.asarray(np.bincount(study.truth, numeric.truth, k) / np.maximum(counts, 1))

    @cached_property
    def _base(self) -> tuple[float, float]:
        study = self.study
        assert study.release.numeric is not None
        assert study.release.numeric.truth is not None
        rows = np.arange(study.parts.released)
        asked = np.arange(study.parts.released, study.parts.released + study.parts.compared)
        rows = study.context.sample(rows, _MOST_LEARNT, "advise", "learnt")
        learner, rng = Learner("logistic", true=True), study.context.rng("advise", "linear")
        release = study.release.take(rows)
        guess, _ = learner.numbers(release, study.release.features.take(asked), rng)
        columns = learner.matrix(release.features)(release.features.take(np.arange(1))).shape[1]
        error = float(((guess - study.release.numeric.truth[asked]) ** 2).mean())
        return error, columns / study.parts.released


class ShareError(Yardstick):
    """How well the labels' shares can be told from the release."""

    def of(self, mechanism: Mechanism, channel: FloatArray) -> Worth:  # noqa: ARG002
        """Return the root mean square error of a label's share, exact for these true labels."""
        value = share_error(self.study.prior, channel, self.study.rows)
        return Worth(
            "share_error",
            "Typical error of a label's share",
            "proportion",
            value=value,
            cost=value,
            tolerance=0.0005,
            kind="exact",
            method="root mean square over the labels of the error of the unbiased estimate, the "
            "noise being all that is random",
        )


def yardstick(study: Study) -> Yardstick:
    """Return what the release is measured by."""
    kinds: dict[str, Callable[[Study], Yardstick]] = {
        "classification": Accuracy,
        "regression": SquaredError,
        "counts": ShareError,
    }
    return kinds[study.request.use](study)


def information_share(posterior: FloatArray, channel: FloatArray) -> float:
    """Return how many true labels one noisy label is worth for learning P(y | x).

    The Fisher information of a noisy label about the k − 1 free probabilities, in units of a true
    label's, averaged over directions and rows: tr(J⁻¹ J̃)/(k − 1) with J the information of the true
    label and J̃ that of the noisy one.

    Parameters
    ----------
    posterior : float64 array of shape (r, k)
    channel : float64 array of shape (k, m)

    Returns
    -------
    float
        From 0 to 1.
    """
    k = posterior.shape[1]
    noisy = np.maximum(posterior @ channel, _LEAST)
    # tr(J⁻¹ J̃) = Σ_z Var_η(T[·, z]) / η̃_z: the variance over the label, given x, of z's chance.
    second = posterior @ channel**2
    shares = ((second - noisy**2) / noisy).sum(axis=1) / (k - 1)
    return float(np.clip(shares.mean(), 0.0, 1.0))


def share_error(prior: FloatArray, channel: FloatArray, rows: int) -> float:
    """Return the root mean square error of the labels' shares, estimated by inverting the channel.

    Parameters
    ----------
    prior : float64 array of shape (k,)
        The true shares.
    channel : float64 array of shape (k, m)
    rows : int

    Returns
    -------
    float
        ∞ where the channel cannot be inverted.
    """
    k = len(channel)
    if np.linalg.matrix_rank(channel, tol=1e-9) < k:
        return math.inf
    # Weighted by the outputs' frequencies: less noise than the plain pseudo-inverse.
    weight = 1 / np.maximum(prior @ channel, _LEAST)
    inverse = np.linalg.solve((channel * weight) @ channel.T, channel * weight).T
    spread = prior @ (channel @ inverse**2 - (channel @ inverse) ** 2)
    return float(math.sqrt(max(spread.mean(), 0.0) / rows))


def _weights(labels: FloatArray, truth: FloatArray) -> FloatArray:
    """Return the share of the people whose label is nearest to each of increasing labels."""
    counts = np.bincount(nearest(labels, truth), minlength=len(labels))
    return np.asarray(counts / counts.sum())
