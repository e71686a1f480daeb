"""How attacks on numeric labels are scored: one bounded value per held-out row and measure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.attacks.numeric.guesses import TOLERANCES, Guesses
from ldpaudit.attacks.scoring.measures import advantage_lower
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower, clopper_pearson_upper
from ldpaudit.estimators.intervals.bounded_mean import mean_lower, mean_upper
from ldpaudit.release import BoolArray, FloatArray, IntArray
from ldpaudit.result import Unit

_ROUNDING: Final = 1e-6
"""How much farther than a tolerance a guess may be, as a share of the range: single precision."""

Values = Mapping[str, FloatArray]
"""By measure one value per row, float64 of shape (n,)."""


@dataclass(frozen=True)
class Measure:
    """One score of a numeric attack.

    Attributes
    ----------
    name : str
        Its name in estimate ids.
    title : str
        What people call it.
    low, high : float
        Bounds of a row's value, known beforehand.
    unit : str
    kind : {"share", "difference", "mean"}
        Share: values are 0 and 1; difference: −1, 0 and 1; mean: anything between the bounds.
    better : {1, −1}
        Whether a strong attack has a large (1) or a small (−1) score.
    method : str
    """

    name: str
    title: str
    low: float
    high: float
    unit: Unit
    kind: str
    better: int
    method: str

    def lower(self, values: FloatArray, alpha: float) -> float:
        """Return a lower bound of the mean at level 1 − alpha, one-sided, for independent rows."""
        if self.kind == "share":
            return float(clopper_pearson_lower(int(values.sum()), len(values), alpha))
        if self.kind == "difference":
            gained, lost = int((values > 0).sum()), int((values < 0).sum())
            return advantage_lower(gained, lost, len(values), alpha)
        return mean_lower(values, alpha, self.low, self.high)

    def upper(self, values: FloatArray, alpha: float) -> float:
        """Return an upper bound of the mean at level 1 − alpha, one-sided."""
        if self.kind == "share":
            return float(clopper_pearson_upper(int(values.sum()), len(values), alpha))
        if self.kind == "difference":
            gained, lost = int((values > 0).sum()), int((values < 0).sum())
            return -advantage_lower(lost, gained, len(values), alpha)
        return mean_upper(values, alpha, self.low, self.high)

    def smallest_cell(self, folds: Sequence[FloatArray]) -> int | None:
        """Return the smallest count above 0 behind it, None for a mean of real numbers."""
        if self.kind == "mean":
            return None
        every = np.concatenate(list(folds))
        cells = [int((every == value).sum()) for value in (-1, 0, 1)]
        return min(cell for cell in cells if cell > 0)


def measures(width: float, complete: bool) -> tuple[Measure, ...]:
    """Return the measures of labels whose range has a width; ``exact`` where they are finite."""
    square = width**2
    shares = [
        Measure(
            name,
            f"within {100 * share:g} % of the range",
            0.0,
            1.0,
            "proportion",
            "share",
            1,
            f"held-out labels guessed within {100 * share:g} % of the declared range",
        )
        for name, share in TOLERANCES.items()
    ]
    words = "held-out labels guessed exactly"
    exact = Measure("exact", "exact", 0.0, 1.0, "proportion", "share", 1, words)
    bins = "held-out labels whose group of neighbouring labels is guessed"
    return (
        Measure(
            "mse",
            "mean squared error",
            0.0,
            square,
            "squared label units",
            "mean",
            -1,
            "mean squared error of the guess; an error is at most the declared range",
        ),
        Measure(
            "mse_gain",
            "squared error gained on other people’s labels",
            -square,
            square,
            "squared label units",
            "mean",
            1,
            "mean squared error of guessing the mean of other people's labels, less its own",
        ),
        *shares,
        *((exact,) if complete else ()),
        Measure("bin_accuracy", "right group of labels", 0.0, 1.0, "proportion", "share", 1, bins),
        Measure(
            "bin_advantage",
            "right group, gained on the features",
            -1.0,
            1.0,
            "proportion",
            "difference",
            1,
            f"{bins}, less those that the features alone give on the same rows",
        ),
    )


def row_values(
    guesses: Mapping[str, Guesses], truth: FloatArray, bins: IntArray, width: float, rounding: float
) -> dict[str, Values]:
    """Score the guesses of every reference and attack on one fold.

    Parameters
    ----------
    guesses : mapping from name to Guesses
        With ``prior`` and ``features-only``, which the others are held against.
    truth : float64 array of shape (n,)
        True labels.
    bins : int32 array of shape (n,)
        Their groups.
    width : float
        The width of the declared range.
    rounding : float
        How near an exact guess must be.
    """
    prior, features = guesses["prior"], guesses["features-only"]
    assert prior.point is not None
    baseline = (prior.point - truth) ** 2
    right = features.bins == bins
    return {
        name: _of_attack(found, truth, bins, baseline, right, width, rounding)
        for name, found in guesses.items()
    }


def _of_attack(
    found: Guesses,
    truth: FloatArray,
    bins: IntArray,
    baseline: FloatArray,
    features_right: BoolArray,
    width: float,
    rounding: float,
) -> Values:
    values: dict[str, FloatArray] = {}
    if found.point is not None:
        square = (found.point - truth) ** 2
        values |= {"mse": square, "mse_gain": baseline - square}
    reach = {name: share * width for name, share in TOLERANCES.items()} | {"exact": rounding}
    for name, guess in found.windows.items():
        slack = 0.0 if name == "exact" else _ROUNDING * width
        values[name] = (np.abs(guess - truth) <= reach[name] + slack).astype(np.float64)
    right = found.bins == bins
    values["bin_accuracy"] = right.astype(np.float64)
    values["bin_advantage"] = right.astype(np.float64) - features_right.astype(np.float64)
    return values
