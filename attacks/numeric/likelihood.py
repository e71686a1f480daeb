"""The exact likelihood of a released number under each of some true labels."""

from typing import Final

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.finite import FiniteMechanism
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.noise.additive import AdditiveNoise
from ldpaudit.mechanisms.noise.discrete_noise import DiscreteNoise
from ldpaudit.mechanisms.noise.exponential import Exponential
from ldpaudit.release import FloatArray, IndexArray

_ROUNDING: Final = 1e-6
"""How near the end of the range a clipped output counts as clipped, as a share of the range."""


def likelihood(claim: Mechanism, released: FloatArray, values: FloatArray) -> FloatArray:
    """Return the likelihood of each released number under each true label.

    Parameters
    ----------
    claim : Mechanism
        A mechanism on numbers.
    released : float64 array of shape (n,)
        Released numbers.
    values : float64 array of shape (g,)
        True labels: of a mechanism with finitely many, some of them; inside the declared range.

    Returns
    -------
    float64 array of shape (n, g)
        Densities, or probabilities where the output is one of finitely many or an end of the range
        that outputs are clipped to; rows are comparable within themselves only.

    Raises
    ------
    ldpaudit.errors.InputError
        If the mechanism has no labels that are numbers.
    """
    if isinstance(claim, FiniteMechanism):
        return _finite(claim, released, values)
    if isinstance(claim, DiscreteNoise):
        return _discrete(claim, released, values)
    if isinstance(claim, AdditiveNoise):
        return _additive(claim, released, values)
    if isinstance(claim, Exponential):
        inside = np.clip(released, claim.labels.low, claim.labels.high)
        return claim.density(inside, values).T
    raise InputError(f"The mechanism {claim.name!r} has no labels that are numbers.")


def label_bounds(claim: Mechanism) -> tuple[float, float]:
    """Return the lowest and the highest label of a mechanism on numbers."""
    if isinstance(claim, FiniteMechanism):
        return float(claim.label_values[0]), float(claim.label_values[-1])
    if isinstance(claim, AdditiveNoise | DiscreteNoise | Exponential):
        return claim.labels.low, claim.labels.high
    raise InputError(f"The mechanism {claim.name!r} has no labels that are numbers.")


def label_values(claim: Mechanism, most: int) -> FloatArray | None:
    """Return every label where there are at most ``most``, float64 of shape (k,); else None."""
    if isinstance(claim, FiniteMechanism):
        return claim.label_values if len(claim.label_values) <= most else None
    if isinstance(claim, AdditiveNoise | DiscreteNoise | Exponential):
        grid = claim.labels
        return grid.values if grid.step is not None and grid.steps < most else None
    return None


def _finite(claim: FiniteMechanism, released: FloatArray, values: FloatArray) -> FloatArray:
    outputs = nearest(np.sort(claim.output_values), released)
    columns = np.argsort(claim.output_values, kind="stable")[outputs]
    rows = nearest(claim.label_values, values)
    return np.asarray(claim.channel.matrix[np.ix_(rows, columns)].T)


def _discrete(claim: DiscreteNoise, released: FloatArray, values: FloatArray) -> FloatArray:
    grid, law = claim.labels, claim.law
    places = np.rint((released - grid.low) / grid.spacing).astype(np.int64)
    labels = np.rint((values - grid.low) / grid.spacing).astype(np.int64)
    result = law.pmf(places[:, None] - labels[None, :])
    if claim.clipped:
        result[places <= 0] = law.tail(labels)
        result[places >= grid.steps] = law.tail(grid.steps - labels)
    return result


def _additive(claim: AdditiveNoise, released: FloatArray, values: FloatArray) -> FloatArray:
    grid = claim.labels
    if not claim.clipped:
        return claim.density(released, values).T
    slack = _ROUNDING * grid.width
    result = np.array(claim.density(released, values).T)
    atoms = claim.atoms(values)
    result[released <= grid.low + slack] = atoms[:, 0]
    result[released >= grid.high - slack] = atoms[:, 1]
    return result


def nearest(points: FloatArray, numbers: FloatArray) -> IndexArray:
    """Return the position of the nearest of some increasing points, int64 of shape (n,)."""
    middles = (points[1:] + points[:-1]) / 2
    return np.asarray(np.searchsorted(middles, numbers, side="right"), dtype=np.int64)
