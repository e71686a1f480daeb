"""Gaussian noise on the features and randomized response on the label."""

# With the exact δ(ε) of the Gaussian mechanism, its inverse, and the least σ. Δ is the ℓ2
# sensitivity: 2R for vectors of a ball of radius R.

import math
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from importlib import import_module
from typing import Any, Final

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from ldpaudit.doors import (
    Estimate,
    FloatArray,
    InputError,
    MissingDependencyError,
    NoisyFeatures,
    Parameter,
    Traits,
    check_epsilon,
)
from ldpaudit.mechanisms.exact_sampling import Randomness
from ldpaudit.mechanisms.interface import RESPONSE, MechanismOptions
from ldpaudit.mechanisms.parameters import check_positive, real, required, within
from ldpaudit.mechanisms.response import (
    LABEL_ONLY,
    RESPONSE_PARAMETERS,
    Response,
    ResponseFamily,
    described,
    response_channel,
)
from ldpaudit.release import Label

_LARGEST: Final = 1e9
_TOLERANCE: Final = 1e-13
_ON_THE_SPHERE: Final = 1e-9


def check_delta(delta: float) -> float:
    """Return δ; it must lie strictly between 0 and 1."""
    return within("delta", delta, lambda value: 0 < value < 1, "lie in (0, 1)")


def gaussian_delta(sigma: float, sensitivity: float, epsilon: float) -> float:
    """Return the exact δ(ε) = Φ(Δ/2σ − εσ/Δ) − e^ε Φ(−Δ/2σ − εσ/Δ).

    Parameters
    ----------
    sigma, sensitivity : float
        σ > 0 and Δ > 0.
    epsilon : float
        Any real number of nats: a negative one occurs when mechanisms are composed.

    References
    ----------
    Balle and Wang (2018), Theorem 8.
    """
    half, slope = sensitivity / (2 * sigma), epsilon * sigma / sensitivity
    if math.isinf(slope):
        return 0.0 if slope > 0 else 1.0
    first, second = float(log_ndtr(half - slope)), float(log_ndtr(-half - slope))
    # In the form Φ(a)(1 − ratio) a small δ keeps its digits.
    return math.exp(first) * -math.expm1(min(epsilon + second - first, 0.0))


def gaussian_epsilon(sigma: float, sensitivity: float, delta: float) -> float:
    """Return the smallest ε ≥ 0 in nats with δ(ε) ≤ δ, to a relative 1e-12, rounded up.

    ∞ beyond 1e9 nats.
    """
    check_positive("sigma", sigma)
    check_positive("sensitivity", sensitivity)
    check_delta(delta)
    if gaussian_delta(sigma, sensitivity, 0.0) <= delta:
        return 0.0
    return _least(lambda e: gaussian_delta(sigma, sensitivity, e), delta)


def _least(delta_at: Callable[[float], float], delta: float) -> float:
    """Return the least x > 0 with ``delta_at(x)`` ≤ δ, which falls, to a relative 1e-12; or ∞."""
    low = high = 1.0
    while delta_at(high) > delta and high < _LARGEST:
        high *= 2
    if delta_at(high) > delta:
        return math.inf
    while delta_at(low) <= delta and low > 1 / _LARGEST:
        low /= 2
    root = float(brentq(lambda x: delta_at(x) - delta, low, high, xtol=_TOLERANCE * low))
    while delta_at(root) > delta:
        root *= 1 + 1e-12
    return root


def gaussian_sigma(epsilon: float, delta: float, sensitivity: float) -> float:
    """Return the least σ that is (ε, δ)-DP, to a relative 1e-12, rounded up."""
    # Balle and Wang (2018), Theorem 8, solved for σ.
    check_epsilon(epsilon)
    check_delta(delta)
    check_positive("sensitivity", sensitivity)
    sigma = sensitivity * _least(lambda least: gaussian_delta(least, 1.0, epsilon), delta)
    while gaussian_delta(sigma, sensitivity, epsilon) > delta:  # Scaled, σ was rounded again.
        sigma *= 1 + 1e-12
    return sigma


class GaussianResponse(Response, NoisyFeatures):
    """x̃ = x + N(0, σ²I) for ‖x‖₂ ≤ R, and ỹ by randomized response with λ, independently."""

    # ``epsilon``, ``delta``, ``rdp`` and ``channel`` are those of the label's randomized response,
    # with the features taken as known. The methods that begin with ``example_`` cover the whole
    # example (x, y).
    # Dufraiche et al., Eq. (1), Propositions 2.2 and 2.3.

    @cached_property
    def exact_feature_epsilon(self) -> float:
        """The exact ε of the features in nats at ``feature_delta``."""
        return gaussian_epsilon(self.sigma, 2 * self.radius, self.feature_delta)

    def claim_holds(self) -> bool:
        # A relative 1e-9 for the rounding of a declared σ.
        exact = gaussian_delta(self.sigma, 2 * self.radius, self.feature_epsilon)
        return bool(exact <= self.feature_delta * (1 + 1e-9))

    def example_delta(self, epsilon: float) -> float:
        """Return the exact δ(ε) of the whole example, ε ≥ 0 in nats."""
        # The label's privacy loss is ε_y, −ε_y or 0 and independent of the features', so δ is the
        # Gaussian's, averaged at ε minus that loss.
        k, off = len(self.classes), self.noise / len(self.classes)
        if self.noise == 0:
            return 1.0
        losses = (
            (self.epsilon, 1 - self.noise + off),
            (-self.epsilon, off),
            (0.0, (k - 2) * off),
        )
        width = 2 * self.radius
        parts = (p * gaussian_delta(self.sigma, width, epsilon - at) for at, p in losses)
        return float(min(sum(parts), 1.0))

    @property
    def example_epsilon(self) -> float:
        """ε_x + ε_y in nats at ``feature_delta`` by simple composition, with the exact ε_x."""
        return self.exact_feature_epsilon + self.epsilon

    def project(self, features: FloatArray) -> FloatArray:
        norms = np.linalg.norm(features, axis=1, keepdims=True)
        return np.asarray(features * np.minimum(1.0, self.radius / np.maximum(norms, 1e-300)))

    def release_features(
        self, features: FloatArray, rng: Randomness = None, *, simulation: bool = False
    ) -> FloatArray:
        """Release feature vectors of norm at most R, as :meth:`NoisyFeatures.release_features`."""
        values = np.asarray(features, dtype=np.float64)
        if values.ndim != 2:
            raise InputError("The features must be a matrix with one row per example.")
        fits = np.linalg.norm(values, axis=1) <= self.radius * (1 + _ON_THE_SPHERE)
        if not fits.all():
            raise InputError(
                f"Every feature vector must have norm at most R; longer ones: "
                f"{int((~fits).sum()):,}. Scale them, or project them onto the ball (--project)."
            )
        if not simulation:
            return _opendp_release(values, self.sigma)
        if not isinstance(rng, np.random.Generator):
            raise InputError("A simulation must be given a numpy.random.Generator.")
        return values + rng.normal(scale=self.sigma, size=values.shape)

    def parametrisations(self) -> dict[str, float]:
        return super().parametrisations() | {"sigma": self.sigma, "radius": self.radius}

    def remarks(self) -> tuple[str, ...]:
        held = "holds" if self.claim_holds() else "does NOT hold"
        return (
            LABEL_ONLY,
            f"The features' claim, ε = {self.feature_epsilon:.6g} at δ = {self.feature_delta:.3g}, "
            f"{held}: exactly ε = {self.exact_feature_epsilon:.6g}. The whole example is "
            f"(ε, δ)-DP at ε = {self.example_epsilon:.6g} by adding the two, and δ = "
            f"{self.example_delta(self.example_epsilon):.3g} exactly at that ε.",
        )

    def exact_estimates(self) -> Iterator[Estimate]:
        yield from super().exact_estimates()
        yield Estimate.exact(
            "mechanism.feature_epsilon",
            "Exact ε of the features' noise",
            self.exact_feature_epsilon,
            axis="epsilon",
            unit="nats",
            method=f"exact ε of the features' Gaussian noise at δ = {self.feature_delta:.3g}; "
            f"claimed: {self.feature_epsilon:.6g}",
            reference="Balle & Wang (2018), Theorem 8",
        )


def _opendp_release(values: FloatArray, sigma: float) -> FloatArray:
    """Add Gaussian noise of standard deviation σ by OpenDP, float64 of the shape of ``values``."""
    try:
        dp: Any = import_module("opendp.prelude")
    except ImportError:
        raise MissingDependencyError(
            "Continuous noise in floating-point numbers reveals labels through its last bits "
            "(Mironov 2012), so it is not released. For Gaussian noise install OpenDP: "
            "ldpaudit[continuous]."
        ) from None
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
    measurement = dp.m.make_gaussian(*space, scale=sigma)
    return np.asarray(measurement(values.ravel().tolist()), dtype=np.float64).reshape(values.shape)


class _GaussianFamily(ResponseFamily):
    def __call__(
        self,
        classes: tuple[Label, ...],
        noise: float,
        radius: float = 1.0,
        sigma: float = 1.0,
        feature_epsilon: float = 1.0,
        feature_delta: float = 1e-5,
    ) -> Response:
        return super().__call__(classes, noise, radius, sigma, feature_epsilon, feature_delta)


def _stated(options: MechanismOptions) -> dict[str, Any]:
    """Return a declaration's parameters, with σ from the features' (ε, δ) or ε from (σ, δ)."""
    stated, name = options.stated() | options.stated_classes(), GaussianRR.traits.name
    radius = check_positive("radius", required(stated, "radius", name))
    delta = check_delta(required(stated, "feature_delta", name))
    sigma, epsilon = real(stated, "sigma"), real(stated, "feature_epsilon")
    if sigma is None and epsilon is None:
        raise InputError("Gaussian features must state 'sigma' or 'feature_epsilon'.")
    if sigma is None:
        sigma = gaussian_sigma(check_epsilon(epsilon or 0), delta, 2 * radius)
    elif epsilon is None:
        epsilon = gaussian_epsilon(check_positive("sigma", sigma), 2 * radius, delta)
    return stated | {"sigma": sigma, "feature_epsilon": epsilon}


def _described(m: GaussianResponse) -> str:
    held = "holds" if m.claim_holds() else "does not hold"
    return (
        f"Gaussian noise of σ = {m.sigma:.6g} on features of norm at most {m.radius:.6g} "
        f"(claimed ε = {m.feature_epsilon:.6g} at δ = {m.feature_delta:.3g}, which "
        f"{held}: exactly {m.exact_feature_epsilon:.6g}) and {described(m)}"
    )


GaussianRR: Final = _GaussianFamily(
    traits=Traits(
        name="gaussian-rr",
        title="randomized response with Gaussian features",
        labels="classes",
        outputs="labels",
        label_depends_on_features=False,
        features="noisy",
        rows="independent",
        options=(*RESPONSE, "radius", "sigma", "feature_epsilon", "delta", "project"),
        stated_by=("epsilon", "lambda"),
        whole=False,
        needs=frozenset({"feature noise"}),
    ),
    parameters=(
        *RESPONSE_PARAMETERS,
        Parameter("radius", partial(check_positive, "radius")),
        Parameter("sigma", partial(check_positive, "sigma")),
        Parameter("feature_epsilon", check_epsilon),
        Parameter("feature_delta", check_delta),
    ),
    channel=response_channel,
    describe=_described,
    kind=GaussianResponse,
    stated=_stated,
)
"""Gaussian noise on features and randomized response on the label: ``GaussianRR(classes, noise,
radius, sigma, feature_epsilon, feature_delta)``, see :class:`GaussianResponse`.

``radius`` is R > 0, the ℓ2 norm that no feature vector exceeds; ``sigma`` > 0; the last two are the
(ε, δ) claimed for the features, and :meth:`GaussianResponse.claim_holds` says whether σ is enough.
"""
