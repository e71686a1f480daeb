"""Real releases with Gaussian noise on features, drawn by OpenDP only."""

from importlib import import_module
from typing import Any

import numpy as np

from ldpaudit.errors import InputError, MissingDependencyError
from ldpaudit.mechanisms.exact_sampling import Randomness
from ldpaudit.release import FloatArray

REASON = (
    "Continuous noise in floating-point numbers reveals labels through its last bits "
    "(Mironov 2012), so it is not released."
)
_INSTALL = " For Gaussian noise install OpenDP: ldpaudit[continuous]."


def simulation_generator(rng: Randomness) -> np.random.Generator:
    """Return the NumPy generator of a simulation."""
    if not isinstance(rng, np.random.Generator):
        raise InputError("A simulation must be given a numpy.random.Generator.")
    return rng


def gaussian_release(values: FloatArray, sigma: float) -> FloatArray:
    """Add Gaussian noise of standard deviation σ by OpenDP, float64 of the shape of ``values``.

    Raises
    ------
    MissingDependencyError
        If OpenDP is not installed.
    """
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
    measurement = dp.m.make_gaussian(*space, scale=sigma)
    return np.asarray(measurement(values.ravel().tolist()), dtype=np.float64).reshape(values.shape)


def _opendp() -> Any:
    try:
        dp: Any = import_module("opendp.prelude")
    except ImportError:
        raise MissingDependencyError(REASON + _INSTALL) from None
    dp.enable_features("contrib")
    return dp
