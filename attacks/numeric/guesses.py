"""The attacks on numeric labels and their references: what each guesses."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.attacks.numeric.posterior import (
    LabelGrid,
    best_window,
    posterior_mean,
    posterior_median,
)
from ldpaudit.mechanisms.interface import NumericMechanism
from ldpaudit.mechanisms.label_range import nearest
from ldpaudit.numeric_labels import NumericCoding
from ldpaudit.release import FloatArray, IntArray

TOLERANCES: Final[Mapping[str, float]] = {"within_1": 0.01, "within_5": 0.05, "within_10": 0.10}
"""Tolerances as shares of the declared range, by the name of their measure."""
REFERENCES: Final[Mapping[str, str]] = {
    "prior": "Other people’s labels",
    "features-only": "Features only, no release",
}
"""Guesses without the release, with their titles."""
ATTACKS: Final[Mapping[str, str]] = {
    "released-value": "Believing the released number",
    "posterior-mean": "Posterior mean",
    "posterior-median": "Posterior median",
    "interval": "Most probable interval",
}
"""Guesses with the release, with their titles."""
_BLOCK: Final = 4096


@dataclass(frozen=True)
class NumericGuesses:
    """What one attack guesses of some rows.

    Attributes
    ----------
    point : float64 array of shape (n,) or None
        For the squared error; None for an attack that only names intervals.
    windows : mapping from measure to float64 array of shape (n,)
        For each tolerance, and ``"exact"`` where the labels are finitely many.
    bins : int32 array of shape (n,)
        The group of labels.
    """

    point: FloatArray | None
    windows: Mapping[str, FloatArray]
    bins: IntArray


@dataclass(frozen=True)
class NumericAttacker:
    """Knows the declared mechanism, other people's labels, and a model of the features."""

    claim: NumericMechanism
    grid: LabelGrid
    coding: NumericCoding
    """The groups of true labels."""

    def guess(self, released: FloatArray, features: FloatArray) -> dict[str, NumericGuesses]:
        """Return the guesses of every reference and attack.

        Parameters
        ----------
        released : float64 array of shape (n,)
            Released numbers.
        features : float64 array of shape (n, c)
            P(group of labels | features) of a model fitted on other people.
        """
        parts: dict[str, list[NumericGuesses]] = {name: [] for name in (*REFERENCES, *ATTACKS)}
        for start in range(0, len(released), _BLOCK):
            block = slice(start, start + _BLOCK)
            for name, guesses in self._block(released[block], features[block]):
                parts[name].append(guesses)
        return {name: _joined(guesses) for name, guesses in parts.items()}

    def _block(
        self, released: FloatArray, features: FloatArray
    ) -> Iterator[tuple[str, NumericGuesses]]:
        values, prior = self.grid.values, self.grid.prior(features)
        alone = self._best(self.grid.prior()[None, :])
        yield "prior", _repeated(alone, len(released))
        yield "features-only", self._best(prior)
        yield "released-value", self._fixed(np.clip(released, self.grid.low, self.grid.high))
        posterior = self.grid.posterior(prior, self.claim, released)
        yield "posterior-mean", self._fixed(posterior_mean(values, posterior))
        yield "posterior-median", self._fixed(posterior_median(values, posterior))
        best = self._best(posterior)
        yield "interval", NumericGuesses(None, best.windows, best.bins)

    def _best(self, posterior: FloatArray) -> NumericGuesses:
        """Return for each measure the guess that is best for it."""
        values = self.grid.values
        windows = {
            name: best_window(values, posterior, share * self.grid.width)
            for name, share in TOLERANCES.items()
        }
        if self.grid.complete:
            windows["exact"] = best_window(values, posterior, 0.0)
        bins = self.grid.group_mass(posterior).argmax(axis=1).astype(np.int32)
        return NumericGuesses(posterior_mean(values, posterior), windows, bins)

    def _fixed(self, point: FloatArray) -> NumericGuesses:
        """Return one guess for all measures."""
        names = [*TOLERANCES, "exact"] if self.grid.complete else [*TOLERANCES]
        inside = np.clip(point, self.grid.low, self.grid.high)
        # Between two labels of a coding of values there is no code: the nearest label has one.
        near = self.grid.values[nearest(self.grid.values, inside)]
        bins = self.coding.codes(inside if self.coding.grouped else near)
        return NumericGuesses(inside, dict.fromkeys(names, inside), bins)


def _repeated(guesses: NumericGuesses, n: int) -> NumericGuesses:
    assert guesses.point is not None
    windows = {name: np.repeat(guess, n) for name, guess in guesses.windows.items()}
    return NumericGuesses(np.repeat(guesses.point, n), windows, np.repeat(guesses.bins, n))


def _joined(parts: list[NumericGuesses]) -> NumericGuesses:
    points = [part.point for part in parts if part.point is not None]
    windows = {
        name: np.concatenate([part.windows[name] for part in parts]) for name in parts[0].windows
    }
    bins = np.concatenate([part.bins for part in parts])
    return NumericGuesses(np.concatenate(points) if points else None, windows, bins)
