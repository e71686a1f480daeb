"""IWP-SGD on a release: a linear model under Gaussian noise of the features, if there is any."""

import math
from typing import Any, Final

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms import Mechanism
from ldpaudit.mechanisms.capabilities import NoisyFeatures
from ldpaudit.release import FeatureTable, Float32Array, Release

IWP_LOSSES: Final = ("quadratic", "exponential", "log")
_SETTINGS: Final = {"ridge": 0.01, "epochs": 3, "average": True}
_RADIUS: Final = 5.0
# The ball is so small that a step's slope has at most this error, in units of its variance.
_ERROR: Final = 0.03
_LARGEST_STEP: Final = 0.05


def iwp_model(
    noise: Any,
    sigma: float,
    matrix: Float32Array,
    loss: str | None,
    rng: np.random.Generator,
) -> Any:
    """Return an unfitted model, its step and ball small enough for the features and their noise.

    Parameters
    ----------
    noise : Channel, mechanism or None
        What released the labels.
    sigma : float
        σ of the features' noise, 0 without any.
    matrix : float array of shape (n, d)
        Released features.
    loss : {"quadratic", "exponential", "log", "squared"} or None
        None: quadratic; "squared" for numbers in [−1, 1].
    rng : numpy.random.Generator
    """
    from ldpaudit.learners import IWPClassifier, IWPRegressor
    from ldpaudit.models.iwp_losses import LOSSES

    size = float((matrix.astype(np.float64) ** 2).sum(axis=1).mean())
    settings: dict[str, Any] = {**_SETTINGS, "step": min(_LARGEST_STEP, 0.5 / (1 + size))}
    settings |= {"sigma": sigma, "random_state": rng, "radius": _RADIUS}
    chosen: Any = "quadratic" if loss in (None, "squared") else loss
    if sigma > 0:
        batch = IWPClassifier.batch_size
        most = LOSSES[chosen](batch).largest_variance((_RADIUS * sigma) ** 2, batch, _ERROR)
        settings["radius"] = math.sqrt(most) / sigma
    if loss == "squared":
        return IWPRegressor(**settings)
    return IWPClassifier(noise, loss=chosen, labels="codes", **settings)


def feature_noise(claim: Mechanism | None, release: Release) -> float:
    """Return σ of the noise on the release's features.

    Raises
    ------
    InputError
        If there is noise and a feature is no number, or missing.
    """
    noisy = None if claim is None else claim.offers(NoisyFeatures)
    if noisy is None:
        return 0.0
    features = release.features
    if features.categorical.shape[1] or np.isnan(features.numeric).any():
        raise InputError("Noisy features must be numbers without gaps for the learner 'iwp'.")
    return float(noisy.sigma)


def as_released(features: FeatureTable) -> Float32Array:
    """Return numeric features as they are: the noise is stated in their units."""
    return features.numeric
