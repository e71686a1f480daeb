"""What can still be learnt from a release: scores on test rows that no release holds."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ldpaudit.datasets.companions import LabelledRows
from ldpaudit.doors import (
    Estimate,
    FloatArray,
    InputError,
    InsufficientDataError,
    IntArray,
    Release,
    clopper_pearson,
    mean_lower,
    mean_upper,
    refuse,
)
from ldpaudit.extras.learn.utility.learner import Learner, LossCorrection
from ldpaudit.extras.learn.utility.outside import rows_inside, said_inside
from ldpaudit.numeric_labels import NumericCoding
from ldpaudit.result import Unit

ACCURACY: Final = "test_accuracy"
SQUARED_ERROR: Final = "test_squared_error"
CONSTANT: Final = "test_constant"
AUC: Final = "test_auc"
DEVIANCE: Final = "test_poisson_deviance"
_LEAST_MEAN: Final = 1e-6
_NO_BETTER: Final = (
    "The model is no better on the test rows than the best single answer, which uses no features."
)
_ASSUMPTIONS = (
    "the test rows are independent draws, and none of them is in a release or was used to make one",
)


@dataclass(frozen=True)
class Utility:
    """How a model trained on a release does on the test rows."""

    estimate: Estimate
    """``test_accuracy`` or ``test_squared_error``, certified for this one model."""
    scores: FloatArray
    """Float64 of shape (t,): right (1) or wrong (0), or squared errors, row by row; stays in
    memory."""
    reach: float
    """No difference of two scores can exceed it."""
    correction: LossCorrection
    beside: tuple[Estimate, ...]
    """What to compare it with: the best single answer, and the area under the ROC curve or, of a
    model of counts, the Poisson deviance."""

    inside: float = 0.0
    """The share of test rows that seem to be of the release; 0 where it is small."""

    @property
    def constant(self) -> float:
        """What the best single answer reaches on the same test rows."""
        return self.beside[0].value

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences where the model is no better than one answer, or test rows are released."""
        score, right = self.estimate.value, self.estimate.id == ACCURACY
        better = score > self.constant if right else score < self.constant
        said = () if better else (_NO_BETTER,)
        inside = said_inside(self.inside)
        return (*said, inside) if inside else said


def utility(
    release: Release,
    test: LabelledRows,
    learner: Learner,
    confidence: float,
    rng: np.random.Generator,
) -> Utility:
    """Train a model on a release and score it on t test rows, coded like the release."""
    # InputError if the model cannot be trained under the mechanism, or a test label is outside of
    # the declared range; InsufficientDataError if the test rows have fewer than two different
    # labels.
    if release.numeric is not None:
        found = _of_numbers(release, test, learner, confidence, rng)
        return replace(found, inside=rows_inside(release.features, test.features))
    assert test.labels is not None
    if len(np.unique(test.labels)) < 2:
        raise InsufficientDataError("The test rows must have at least two different labels.")
    inside = rows_inside(release.features, test.features)
    answers = learner.classes(release, test.features, rng)
    correction, right = answers.correction, answers.codes == test.labels
    count, n = int(right.sum()), len(right)
    low, high = clopper_pearson(count, n, 1 - confidence)
    estimate = Estimate.interval(
        ACCURACY,
        "Accuracy on test rows",
        count / n,
        (float(low), float(high)),
        confidence,
        section="utility",
        unit="proportion",
        n=n,
        count=count,
        method=f"{learner.model} model, {correction.words}; test rows, Clopper–Pearson",
        assumptions=_ASSUMPTIONS,
    )
    constant = float(np.bincount(test.labels).max() / n)
    beside = (
        _compared(CONSTANT, "Accuracy of the best single answer", constant, n),
        _compared(AUC, "Area under the ROC curve", _auc(test.labels, answers.probability), n),
    )
    return Utility(estimate, right.astype(np.float64), 1.0, correction, beside, inside)


def _compared(name: str, title: str, value: float, n: int, unit: Unit = "proportion") -> Estimate:
    return Estimate.estimated(
        name, title, float(value), section="utility", unit=unit, n=n, method="on the test rows"
    )


def _auc(labels: IntArray, probability: FloatArray) -> float:
    """Return the area under the curve of each label against the rest, by the labels' shares."""
    from sklearn.metrics import roc_auc_score

    counts = np.bincount(labels, minlength=probability.shape[1])
    found = np.flatnonzero((counts > 0) & (counts < len(labels)))
    if not len(found):
        return 0.5
    areas = [roc_auc_score(labels == y, probability[:, y]) for y in found]
    return float(np.average(areas, weights=counts[found]))


def _of_numbers(
    release: Release,
    test: LabelledRows,
    learner: Learner,
    confidence: float,
    rng: np.random.Generator,
) -> Utility:
    assert test.numbers is not None
    assert release.numeric is not None
    low, high = _range(release.numeric.view.classes)
    outside = int(((test.numbers < low) | (test.numbers > high)).sum())
    refuse(
        outside,
        f"Every test label must lie in the declared range; {outside:,} of "
        f"{len(test.numbers):,} rows do not.",
    )
    predicted, correction = learner.numbers(release, test.features, rng)
    guesses = np.clip(predicted, low, high)
    errors = (guesses - test.numbers) ** 2
    unit: Unit = "squared label units"
    reach, tail, value = (high - low) ** 2, (1 - confidence) / 2, float(errors.mean())
    ends = [end(errors, tail, 0.0, reach, rng=rng) for end in (mean_lower, mean_upper)]
    estimate = Estimate.interval(
        SQUARED_ERROR,
        "Squared error on test rows",
        value,
        (min(ends[0], value), max(ends[1], value)),
        confidence,
        section="utility",
        unit=unit,
        n=len(errors),
        method=f"{'linear' if learner.model == 'logistic' else learner.model} model trained on the "
        f"release, {correction.words}; clipped to the declared range; test rows, betting bounds",
        assumptions=_ASSUMPTIONS,
    )
    title, variance = "Squared error of the best single answer", float(np.var(test.numbers))
    beside = [_compared(CONSTANT, title, variance, len(errors), unit)]
    if learner.loss == "poisson" and (test.numbers >= 0).all():
        from sklearn.metrics import mean_poisson_deviance

        value = mean_poisson_deviance(test.numbers, np.maximum(guesses, _LEAST_MEAN))
        beside.append(_compared(DEVIANCE, "Poisson deviance", value, len(errors), "1"))
    return Utility(estimate, np.asarray(errors), reach, correction, tuple(beside))


def _range(coding: NumericCoding) -> tuple[float, float]:
    if coding.values is not None:
        return float(coding.values[0]), float(coding.values[-1])
    if np.isfinite([coding.low, coding.high]).all():
        return float(coding.low), float(coding.high)
    raise InputError("Errors on test rows need a declared range of the label, and there is none.")
