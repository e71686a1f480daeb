"""Attacks on labels that are numbers: what an attacker believes, guesses, and how that is scored.

The prior is a model of the features over groups of labels, and within a group the frequencies of
other people's labels; the likelihood is the mechanism's, exact. Each held-out row gives one bounded
value for each measure.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ldpaudit.attacks.interface import conditioned
from ldpaudit.attacks.scoring import (
    End,
    Measure,
    RowValues,
    advantage_lower,
    between,
    row_measure,
)
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower, clopper_pearson_upper
from ldpaudit.mechanisms.interface import NumericMechanism
from ldpaudit.mechanisms.label_range import nearest
from ldpaudit.numeric_labels import NumericCoding
from ldpaudit.release import FloatArray, IntArray

# With more labels, or any number in a range, the grid is one of representative points.
MOST_LABELS: Final = 512
_FEWEST_POINTS: Final = 33
_ROWS_PER_POINT: Final = 10


@dataclass(frozen=True)
class LabelGrid:
    """The labels that an attacker considers, with their frequencies among other people."""

    values: FloatArray
    """Float64 array of shape (g,): increasing."""
    groups: IntArray
    """Int32 array of shape (g,): the code of each value in the release's coding of true labels."""
    within: FloatArray
    """Float64 array of shape (g,): P(value | its group), above 0 and summing to 1 over each group.
    """
    shares: FloatArray
    """Float64 array of shape (c,): P(group)."""
    low: float
    high: float
    """``low`` and ``high``: the declared range."""
    complete: bool
    """Whether the grid holds every label that there can be."""

    @classmethod
    def fit(cls, claim: NumericMechanism, coding: NumericCoding, truth: FloatArray) -> "LabelGrid":
        """Count other people's true labels (``truth``, float64 of shape (m,)) in their coding."""
        low, high = claim.label_bounds
        every = claim.label_values
        known = every if every is not None and len(every) <= MOST_LABELS else None
        points = int(np.clip(len(truth) // _ROWS_PER_POINT, _FEWEST_POINTS, MOST_LABELS))
        values = np.linspace(low, high, points) if known is None else known
        groups = coding.codes(values)
        counts = np.bincount(nearest(values, truth), minlength=len(values)).astype(np.float64)
        sizes = np.bincount(groups, minlength=len(coding))
        # One row's worth of equal frequencies within each group.
        counts += 1.0 / np.maximum(sizes, 1)[groups]
        totals = np.bincount(groups, weights=counts, minlength=len(coding))
        shares = np.bincount(coding.codes(truth), minlength=len(coding)) + 1.0 / len(coding)
        shares = np.where(sizes > 0, shares, 0.0)
        within = counts / totals[groups]
        return cls(values, groups, within, shares / shares.sum(), low, high, known is not None)

    @property
    def width(self) -> float:
        """The width of the declared range: the largest possible error."""
        return self.high - self.low

    @property
    def rounding(self) -> float:
        """Half the smallest distance of two labels: a guess nearer than this is exact."""
        return float(np.diff(self.values).min()) / 2

    def prior(self, group_posterior: FloatArray | None = None) -> FloatArray:
        """Return P(value), or with P(group | x) of shape (n, c) P(value | x) of shape (n, g)."""
        if group_posterior is None:
            return np.asarray(self.shares[self.groups] * self.within)
        joint = group_posterior[:, self.groups] * self.within
        return np.asarray(joint / joint.sum(axis=1, keepdims=True))

    def group_mass(self, posterior: FloatArray) -> FloatArray:
        """Return the posterior of each group, float64 of shape (n, c)."""
        return np.asarray(posterior @ np.eye(len(self.shares))[self.groups])


def posterior_median(values: FloatArray, posterior: FloatArray) -> FloatArray:
    """Return the guess of least absolute error, float64 of shape (n,)."""
    running = np.cumsum(posterior, axis=1)
    places = (running < 0.5 * running[:, -1:]).sum(axis=1)
    return np.asarray(values[np.minimum(places, len(values) - 1)])


def best_window(values: FloatArray, posterior: FloatArray, tolerance: float) -> FloatArray:
    """Return the guess that is most probably within ``tolerance`` of the truth.

    The middle of the window of width 2 · tolerance of most mass; an optimal one begins at a value
    of the grid. A tolerance of 0 gives the most probable value.

    Returns
    -------
    float64 array of shape (n,)
        Between the first and the last value.
    """
    slack = 1e-9 * float(values[-1] - values[0])
    ends = np.searchsorted(values, values + 2 * tolerance + slack, side="right")
    running = np.cumsum(np.pad(posterior, ((0, 0), (1, 0))), axis=1)
    mass = running[:, ends] - running[:, :-1]
    guess = values[mass.argmax(axis=1)] + tolerance
    return np.asarray(np.minimum(guess, values[-1]))


# Tolerances as shares of the declared range, by the name of their measure.
TOLERANCES: Final[dict[str, float]] = {"within_1": 0.01, "within_5": 0.05, "within_10": 0.10}
# Guesses without the release, with their titles.
REFERENCES: Final[Mapping[str, str]] = {
    "prior": "Other people’s labels",
    "features-only": "Features only, no release",
}
# Guesses with the release, with their titles.
ATTACKS: Final[Mapping[str, str]] = {
    "released-value": "Believing the released number",
    "posterior-mean": "Posterior mean",
    "posterior-median": "Posterior median",
    "interval": "Most probable interval",
}
_BLOCK: Final = 4096


# What one attack guesses of n rows, each of shape (n,): a ``point`` for the squared error (not of
# an attack that only names intervals), for each tolerance the middle of its window (and ``exact``
# where the labels are finitely many), and in ``bins`` the code of the group of labels.
Guesses = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class NumericAttacker:
    """Knows the declared mechanism, other people's labels, and a model of the features."""

    claim: NumericMechanism
    grid: LabelGrid
    # The groups of true labels.
    coding: NumericCoding

    def guess(self, released: FloatArray, features: FloatArray) -> dict[str, Guesses]:
        """Return the guesses of every reference and attack.

        ``released``: numbers, float64 of shape (n,). ``features``: P(group of labels | features)
        of a model fitted on other people, float64 of shape (n, c).
        """
        starts = range(0, len(released), _BLOCK)
        blocks = [self._block(released[i : i + _BLOCK], features[i : i + _BLOCK]) for i in starts]

        def whole(name: str, key: str) -> FloatArray:
            return np.concatenate([block[name][key] for block in blocks])

        return {
            name: {key: whole(name, key) for key in guesses} for name, guesses in blocks[0].items()
        }

    def _block(self, released: FloatArray, features: FloatArray) -> dict[str, Guesses]:
        values, prior = self.grid.values, self.grid.prior(features)
        # Where no label could give the released number the posterior is the prior.
        posterior = conditioned(prior, self.claim.likelihood(released, values))
        alone, best = self._best(self.grid.prior()[None, :]), self._best(posterior)
        of_nothing = {key: np.repeat(guess, len(released)) for key, guess in alone.items()}
        best = {key: guess for key, guess in best.items() if key != "point"}
        return {
            "prior": of_nothing,
            "features-only": self._best(prior),
            "released-value": self._fixed(released),
            "posterior-mean": self._fixed(posterior @ values),
            "posterior-median": self._fixed(posterior_median(values, posterior)),
            "interval": best,
        }

    def _best(self, posterior: FloatArray) -> Guesses:
        """Return for each measure the guess that is best for it."""
        values, reach = (
            self.grid.values,
            TOLERANCES | ({"exact": 0.0} if self.grid.complete else {}),
        )
        windows = {n: best_window(values, posterior, r * self.grid.width) for n, r in reach.items()}
        bins = self.grid.group_mass(posterior).argmax(axis=1).astype(np.int32)
        return {"point": posterior @ values, **windows, "bins": bins}

    def _fixed(self, point: FloatArray) -> Guesses:
        """Return one guess for all measures."""
        names = ("point", *TOLERANCES, *(("exact",) if self.grid.complete else ()))
        inside = np.clip(point, self.grid.low, self.grid.high)
        # Between two labels of a coding of values there is no code: the nearest label has one.
        near = self.grid.values[nearest(self.grid.values, inside)]
        bins = self.coding.codes(inside if self.coding.grouped else near)
        return dict.fromkeys(names, inside) | {"bins": bins}


# How much farther than a tolerance a guess may be, as a share of the range: single precision.
_ROUNDING: Final = 1e-6

# By measure one value per row, float64 of shape (n,).
Values = Mapping[str, FloatArray]


def _gain(values: FloatArray, alpha: float) -> float:
    """Return a lower bound of the share of values of 1 less that of −1."""
    return advantage_lower(int((values > 0).sum()), int((values < 0).sum()), len(values), alpha)


_SHARE: Final[tuple[End, End]] = (
    lambda values, alpha: float(clopper_pearson_lower(int(values.sum()), len(values), alpha)),
    lambda values, alpha: float(clopper_pearson_upper(int(values.sum()), len(values), alpha)),
)
_DIFFERENCE: Final[tuple[End, End]] = (_gain, lambda values, alpha: -_gain(-values, alpha))


def measures(width: float, complete: bool) -> tuple[Measure[RowValues], ...]:
    """Return the measures of labels whose range has a width; ``exact`` where they are finite."""
    square, bins = width**2, "held-out labels whose group of neighbouring labels is guessed"
    within = [
        row_measure(
            name,
            f"within {100 * share:g} % of the range",
            f"held-out labels guessed within {100 * share:g} % of the declared range",
            _SHARE,
        )
        for name, share in TOLERANCES.items()
    ]
    exact = row_measure("exact", "exact", "held-out labels guessed exactly", _SHARE)
    return (
        row_measure(
            "mse",
            "mean squared error",
            "mean squared error of the guess; an error is at most the declared range",
            between(0.0, square),
            unit="squared label units",
            better=-1,
        ),
        row_measure(
            "mse_gain",
            "squared error gained on other people’s labels",
            "mean squared error of guessing the mean of other people's labels, less its own",
            between(-square, square),
            unit="squared label units",
        ),
        *within,
        *([exact] if complete else []),
        row_measure("bin_accuracy", "right group of labels", bins, _SHARE),
        row_measure(
            "bin_advantage",
            "right group, gained on the features",
            f"{bins}, less those that the features alone give on the same rows",
            _DIFFERENCE,
        ),
    )


def row_values(
    guesses: Mapping[str, Guesses],
    truth: FloatArray,
    bins: IntArray,
    width: float,
    rounding: float,
) -> dict[str, Values]:
    """Score the guesses of every reference and attack on one fold.

    ``truth``, ``bins``: true labels and their groups, of shape (n,). ``width``: of the declared
    range. ``rounding``: how near an exact guess must be.
    """
    baseline = (guesses["prior"]["point"] - truth) ** 2
    features_right = guesses["features-only"]["bins"] == bins
    reach = {name: (share + _ROUNDING) * width for name, share in TOLERANCES.items()}
    found: dict[str, Values] = {}
    for name, guess in guesses.items():
        values = {
            measure: (np.abs(guess[measure] - truth) <= most).astype(np.float64)
            for measure, most in (reach | {"exact": rounding}).items()
            if measure in guess
        }
        if "point" in guess:
            square = (guess["point"] - truth) ** 2
            values |= {"mse": square, "mse_gain": baseline - square}
        right = (guess["bins"] == bins).astype(np.float64)
        found[name] = values | {"bin_accuracy": right, "bin_advantage": right - features_right}
    return found
