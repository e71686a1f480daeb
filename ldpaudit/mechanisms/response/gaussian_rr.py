"""Gaussian noise on the features and randomized response on the label."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.capabilities import NoisyFeatures
from ldpaudit.mechanisms.design import Candidate
from ldpaudit.mechanisms.exact_sampling import Randomness
from ldpaudit.mechanisms.interface import Traits
from ldpaudit.mechanisms.noise.continuous_release import gaussian_release, simulation_generator
from ldpaudit.mechanisms.options import RESPONSE, MechanismOptions
from ldpaudit.mechanisms.parameters import (
    Parameter,
    check_delta,
    check_epsilon,
    check_positive,
    real,
    required,
)
from ldpaudit.mechanisms.response.gaussian import gaussian_delta, gaussian_epsilon, gaussian_sigma
from ldpaudit.mechanisms.response.randomized_response import LABEL_ONLY, RandomizedResponse
from ldpaudit.release import FloatArray
from ldpaudit.result import Estimate

_ON_THE_SPHERE = 1e-9


@dataclass(frozen=True)
class GaussianRR(RandomizedResponse, NoisyFeatures):
    """x̃ = x + N(0, σ²I) for ‖x‖₂ ≤ R, and ỹ by randomized response with λ, independently.

    ``epsilon``, ``delta``, ``rdp`` and ``channel`` are those of the label's randomized response,
    with the features taken as known. The methods that begin with ``example_`` cover the whole
    example (x, y).

    Parameters
    ----------
    classes : tuple
        The k ≥ 2 labels.
    noise : float
        λ in [0, 1] of the label.
    radius : float
        R > 0, the ℓ2 norm that no feature vector exceeds.
    sigma : float
        σ > 0.
    feature_epsilon, feature_delta : float
        The (ε, δ) claimed for the features; :meth:`claim_holds` says whether σ is enough.

    References
    ----------
    Dufraiche et al., Eq. (1), Propositions 2.2 and 2.3.
    """

    traits = Traits(
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
    )

    declared = (
        *RandomizedResponse.declared,
        *map(Parameter, ("radius", "sigma", "feature_epsilon", "feature_delta")),
    )

    radius: float = 1.0
    sigma: float = 1.0
    feature_epsilon: float = 1.0
    feature_delta: float = 1e-5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("radius", self.radius)
        check_positive("sigma", self.sigma)
        check_epsilon(self.feature_epsilon)
        check_delta(self.feature_delta)

    @property
    def description(self) -> str:
        """Its parametrisations in words."""
        held = "holds" if self.claim_holds() else "does not hold"
        return (
            f"Gaussian noise of σ = {self.sigma:.6g} on features of norm at most {self.radius:.6g} "
            f"(claimed ε = {self.feature_epsilon:.6g} at δ = {self.feature_delta:.3g}, which "
            f"{held}: exactly {self.exact_feature_epsilon:.6g}) and {super().description}"
        )

    @cached_property
    def exact_feature_epsilon(self) -> float:
        """The exact ε of the features in nats at ``feature_delta``."""
        return gaussian_epsilon(self.sigma, 2 * self.radius, self.feature_delta)

    def claim_holds(self) -> bool:
        """Return whether the features are (feature_epsilon, feature_delta)-DP, by exact δ(ε)."""
        # A relative 1e-9 for the rounding of a declared σ.
        exact = gaussian_delta(self.sigma, 2 * self.radius, self.feature_epsilon)
        return exact <= self.feature_delta * (1 + 1e-9)

    def example_delta(self, epsilon: float) -> float:
        """Return the exact δ(ε) of the whole example, ε ≥ 0 in nats.

        The label's privacy loss is ε_y, −ε_y or 0 and independent of the features', so δ is the
        Gaussian's, averaged at ε minus that loss.
        """
        k, off = len(self.classes), self.noise / len(self.classes)
        keep = 1 - self.noise + off

        def gauss(at: float) -> float:
            return gaussian_delta(self.sigma, 2 * self.radius, at)

        if self.noise == 0:
            return 1.0
        parts = keep * gauss(epsilon - self.epsilon) + off * gauss(epsilon + self.epsilon)
        return min(parts + (k - 2) * off * gauss(epsilon), 1.0)

    @property
    def example_epsilon(self) -> float:
        """ε_x + ε_y in nats at ``feature_delta`` by simple composition, with the exact ε_x."""
        return self.exact_feature_epsilon + self.epsilon

    def project(self, features: FloatArray) -> FloatArray:
        """Return the features of shape (n, p) with longer rows shortened to norm R."""
        norms = np.linalg.norm(features, axis=1, keepdims=True)
        return np.asarray(features * np.minimum(1.0, self.radius / np.maximum(norms, 1e-300)))

    def release_features(
        self, features: FloatArray, rng: Randomness = None, *, simulation: bool = False
    ) -> FloatArray:
        """Release feature vectors of norm at most R, as :meth:`NoisyFeatures.release_features`.

        Raises
        ------
        InputError
            If a row is longer than R or not finite; the rows are counted.
        MissingDependencyError
            Without ``simulation``, if OpenDP is not installed.
        """
        values = np.asarray(features, dtype=np.float64)
        if values.ndim != 2:
            raise InputError("The features must be a matrix with one row per example.")
        fits = np.linalg.norm(values, axis=1) <= self.radius * (1 + _ON_THE_SPHERE)
        if not fits.all():
            raise InputError(
                f"Every feature vector must have norm at most R; {int((~fits).sum()):,} row(s) "
                f"do not. Scale them, or project them onto the ball (--project)."
            )
        if not simulation:
            return gaussian_release(values, self.sigma)
        generator = simulation_generator(rng)
        return values + generator.normal(scale=self.sigma, size=values.shape)

    def parametrisations(self) -> dict[str, float]:
        """Return ``epsilon`` and ``lambda`` of the label, ``sigma`` and ``radius``."""
        return super().parametrisations() | {"sigma": self.sigma, "radius": self.radius}

    def remarks(self) -> tuple[str, ...]:
        """Say what ε covers, and what holds for the whole example, features and label."""
        held = "holds" if self.claim_holds() else "does NOT hold"
        return (
            LABEL_ONLY,
            f"The features' claim, ε = {self.feature_epsilon:.6g} at δ = {self.feature_delta:.3g}, "
            f"{held}: exactly ε = {self.exact_feature_epsilon:.6g}. The whole example is "
            f"(ε, δ)-DP at ε = {self.example_epsilon:.6g} by adding the two, and δ = "
            f"{self.example_delta(self.example_epsilon):.3g} exactly at that ε.",
        )

    def exact_estimates(self) -> Iterator[Estimate]:
        """Yield the label's numbers and the exact ε of the features."""
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

    @classmethod
    def candidates(cls) -> Iterator[Candidate]:
        """Yield nothing: on the label it is randomized response."""
        return iter(())

    @classmethod
    def parameters_from(cls, options: MechanismOptions) -> dict[str, Any]:
        """Return the declaration's parameters, with σ from the features' (ε, δ) or ε from (σ, δ).

        Raises
        ------
        InputError
            If the radius, δ, or both of σ and the features' ε are missing.
        """
        stated = super().parameters_from(options)
        radius = check_positive("radius", required(stated, "radius", cls.traits.name))
        delta = check_delta(required(stated, "feature_delta", cls.traits.name))
        sigma, epsilon = real(stated, "sigma"), real(stated, "feature_epsilon")
        if sigma is None and epsilon is None:
            raise InputError("Gaussian features must state 'sigma' or 'feature_epsilon'.")
        if sigma is None:
            assert epsilon is not None
            sigma = gaussian_sigma(epsilon, delta, 2 * radius)
        elif epsilon is None:
            epsilon = gaussian_epsilon(check_positive("sigma", sigma), 2 * radius, delta)
        return stated | {"sigma": sigma, "feature_epsilon": epsilon}
