"""What an attacker believes about a numeric label: a posterior over a grid of labels.

The prior is a model of the features over groups of labels, and within a group the frequencies of
other people's labels; the likelihood is the mechanism's, exact.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.attacks.interface import conditioned
from ldpaudit.mechanisms.interface import NumericMechanism
from ldpaudit.mechanisms.label_range import nearest
from ldpaudit.numeric_labels import NumericCoding
from ldpaudit.release import BoolArray, FloatArray, IntArray

MOST_LABELS: Final = 512
"""With more labels, or any number in a range, the grid is one of representative points."""
_FEWEST_POINTS: Final = 33
_ROWS_PER_POINT: Final = 10


@dataclass(frozen=True)
class LabelGrid:
    """The labels that an attacker considers, with their frequencies among other people.

    Attributes
    ----------
    values : float64 array of shape (g,)
        Increasing.
    groups : int32 array of shape (g,)
        The code of each value in the release's coding of true labels.
    within : float64 array of shape (g,)
        P(value | its group), above 0 and summing to 1 over each group.
    shares : float64 array of shape (c,)
        P(group).
    low, high : float
        The declared range.
    complete : bool
        Whether the grid holds every label that there can be.
    """

    values: FloatArray
    groups: IntArray
    within: FloatArray
    shares: FloatArray
    low: float
    high: float
    complete: bool

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

    def posterior(
        self, prior: FloatArray, claim: NumericMechanism, released: FloatArray
    ) -> FloatArray:
        """Return P(value | x, released), float64 of shape (n, g).

        Where no label could give the released number it is the prior.
        """
        return conditioned(prior, claim.likelihood(released, self.values))

    def group_mass(self, posterior: FloatArray) -> FloatArray:
        """Return the posterior of each group, float64 of shape (n, c)."""
        mass = np.zeros((len(posterior), len(self.shares)))
        for group in np.unique(self.groups):
            members: BoolArray = self.groups == group
            mass[:, group] = posterior[:, members].sum(axis=1)
        return mass


def posterior_mean(values: FloatArray, posterior: FloatArray) -> FloatArray:
    """Return the guess of least squared error, float64 of shape (n,)."""
    return np.asarray(posterior @ values)


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
    return np.asarray(np.clip(guess, values[0], values[-1]))
