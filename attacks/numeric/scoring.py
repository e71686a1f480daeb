"""How attacks on numeric labels are scored: one bounded value per held-out row and measure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.attacks.numeric.guesses import TOLERANCES, NumericGuesses
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
class NumericMeasure:
    """One score of a numeric attack.

    Attributes
    ----------
    name : str
        Its name in estimate ids.
    title : str
        What people call it.
    method : str
    kind : {"share", "difference", "mean"}
        Share: values are 0 and 1; difference: −1, 0 and 1; mean: anything between the bounds.
    low, high : float
        Bounds of a row's value, known beforehand.
    unit : str
    better : {1, −1}
        Whether a strong attack has a large (1) or a small (−1) score.
    """

    name: str
    title: str
    method: str
    kind: str = "share"
    low: float = 0.0
    high: float = 1.0
    unit: Unit = "proportion"
    better: int = 1

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


def measures(width: float, complete: bool) -> tuple[NumericMeasure, ...]:
    """Return the measures of labels whose range has a width; ``exact`` where they are finite."""
    square, bins = width**2, "held-out labels whose group of neighbouring labels is guessed"
    shares = [
        NumericMeasure(
            name,
            f"within {100 * share:g} % of the range",
            f"held-out labels guessed within {100 * share:g} % of the declared range",
        )
        for name, share in TOLERANCES.items()
    ]
    if complete:
        shares.append(NumericMeasure("exact", "exact", "held-out labels guessed exactly"))
    return (
        NumericMeasure(
            "mse",
            "mean squared error",
            "mean squared error of the guess; an error is at most the declared range",
            kind="mean",
            high=square,
            unit="squared label units",
            better=-1,
        ),
        NumericMeasure(
            "mse_gain",
            "squared error gained on other people’s labels",
            "mean squared error of guessing the mean of other people's labels, less its own",
            kind="mean",
            low=-square,
            high=square,
            unit="squared label units",
        ),
        *shares,
        NumericMeasure("bin_accuracy", "right group of labels", bins),
        NumericMeasure(
            "bin_advantage",
            "right group, gained on the features",
            f"{bins}, less those that the features alone give on the same rows",
            kind="difference",
            low=-1.0,
        ),
    )


def row_values(
    guesses: Mapping[str, NumericGuesses],
    truth: FloatArray,
    bins: IntArray,
    width: float,
    rounding: float,
) -> dict[str, Values]:
    """Score the guesses of every reference and attack on one fold.

    Parameters
    ----------
    guesses : mapping from name to NumericGuesses
        With ``prior`` and ``features-only``, the references of the others.
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
        name: _of_attack(attack, truth, bins, baseline, right, width, rounding)
        for name, attack in guesses.items()
    }


def _of_attack(
    guesses: NumericGuesses,
    truth: FloatArray,
    bins: IntArray,
    baseline: FloatArray,
    features_right: BoolArray,
    width: float,
    rounding: float,
) -> Values:
    values: dict[str, FloatArray] = {}
    if guesses.point is not None:
        square = (guesses.point - truth) ** 2
        values |= {"mse": square, "mse_gain": baseline - square}
    reach = {name: share * width for name, share in TOLERANCES.items()} | {"exact": rounding}
    for name, guess in guesses.windows.items():
        slack = 0.0 if name == "exact" else _ROUNDING * width
        values[name] = (np.abs(guess - truth) <= reach[name] + slack).astype(np.float64)
    right = guesses.bins == bins
    values["bin_accuracy"] = right.astype(np.float64)
    values["bin_advantage"] = right.astype(np.float64) - features_right.astype(np.float64)
    return values
