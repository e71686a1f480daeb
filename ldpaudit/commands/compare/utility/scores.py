"""What can still be learnt from a release: scores on test rows that no release holds."""

from dataclasses import dataclass

import numpy as np

from ldpaudit.commands.compare.reading import ReleaseInput
from ldpaudit.commands.compare.request import Model
from ldpaudit.commands.compare.utility.learning import (
    correction_for,
    predicted_classes,
    predicted_numbers,
)
from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.estimators.intervals.binomial import clopper_pearson
from ldpaudit.estimators.intervals.bounded_mean import mean_lower, mean_upper
from ldpaudit.numeric_labels import NumericCoding
from ldpaudit.randomness import child_generator
from ldpaudit.release import FloatArray
from ldpaudit.result import Estimate

ACCURACY = "test_accuracy"
SQUARED_ERROR = "test_squared_error"
_ASSUMPTIONS = (
    "the test rows are independent draws, and none of them is in a release or was used to make one",
)


@dataclass(frozen=True)
class Utility:
    """How a model trained on a release does on the test rows.

    Attributes
    ----------
    estimate : Estimate
        ``test_accuracy`` or ``test_squared_error``, certified.
    scores : float64 array of shape (t,)
        Right (1) or wrong (0), or squared errors, row by row; stays in memory.
    reach : float
        No difference of two scores can exceed it.
    """

    estimate: Estimate
    scores: FloatArray
    reach: float


def utility(item: ReleaseInput, model: Model, seed: int, confidence: float) -> Utility:
    """Train a model on a release and score it on the test rows.

    Parameters
    ----------
    item : ReleaseInput
        With test rows.
    model : {"logistic", "boosting", "network"}
    seed : int
        The root of the model's randomness, the same for all releases.
    confidence : float
        Of the interval.

    Raises
    ------
    InputError
        If the model cannot be trained under the mechanism, or a test label is outside of the
        declared range.
    """
    rng = child_generator(seed, "compare", "utility")
    if item.release.numeric is not None:
        return _numeric(item, model, rng, confidence)
    assert item.test is not None
    assert item.test.labels is not None
    if len(np.unique(item.test.labels)) < 2:
        raise InsufficientDataError("The test rows must have at least two different labels.")
    right = predicted_classes(item, model, rng) == item.test.labels
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
        method=f"{model} model trained on the release, {correction_for(item).words}; test rows, "
        "Clopper–Pearson",
        assumptions=_ASSUMPTIONS,
    )
    return Utility(estimate, right.astype(np.float64), 1.0)


def _numeric(
    item: ReleaseInput, model: Model, rng: np.random.Generator, confidence: float
) -> Utility:
    assert item.test is not None
    assert item.test.numbers is not None
    assert item.release.numeric is not None
    low, high = _range(item.release.numeric.view.classes)
    outside = int(((item.test.numbers < low) | (item.test.numbers > high)).sum())
    if outside:
        raise InputError(
            f"Every test label must lie in the declared range; {outside} of "
            f"{len(item.test.numbers)} rows do not."
        )
    predicted, words = predicted_numbers(item, model, rng)
    errors = (np.clip(predicted, low, high) - item.test.numbers) ** 2
    reach, tail = (high - low) ** 2, (1 - confidence) / 2
    ends = [end(errors, tail, 0.0, reach, rng=rng) for end in (mean_lower, mean_upper)]
    estimate = Estimate.interval(
        SQUARED_ERROR,
        "Squared error on test rows",
        float(errors.mean()),
        (ends[0], ends[1]),
        confidence,
        section="utility",
        unit="squared label units",
        n=len(errors),
        method=f"{'linear' if model == 'logistic' else model} model trained on the release, "
        f"{words}; clipped to the declared range; test rows, betting bounds",
        assumptions=_ASSUMPTIONS,
    )
    return Utility(estimate, np.asarray(errors), reach)


def _range(coding: NumericCoding) -> tuple[float, float]:
    if coding.values is not None:
        return float(coding.values[0]), float(coding.values[-1])
    if np.isfinite([coding.low, coding.high]).all():
        return float(coding.low), float(coding.high)
    raise InputError("Errors on test rows need a declared range of the label, and there is none.")
