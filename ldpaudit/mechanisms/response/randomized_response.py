"""k-ary randomized response, in both of its parametrisations.

ε form: keep the label with probability e^ε/(e^ε + k − 1), else one of the k − 1 others.
λ form: keep it with probability 1 − λ, else draw uniformly from all k labels.
The two agree with ε = log(1 + k(1 − λ)/λ) and λ = k/(k − 1 + e^ε). For two labels
the probability of a flip is λ/2.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, Self

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.design import Candidate, Proposal
from ldpaudit.mechanisms.exact_sampling import Randomness, randomized_response
from ldpaudit.mechanisms.finite import FiniteMechanism, StepLoss, check_codes
from ldpaudit.mechanisms.interface import Traits
from ldpaudit.mechanisms.options import RESPONSE
from ldpaudit.mechanisms.parameters import (
    AGREEMENT,
    Parameter,
    check_classes,
    check_epsilon,
    only_known,
    real,
)
from ldpaudit.release import IntArray, Label
from ldpaudit.result import Estimate

LABEL_ONLY: Final = "ε, δ(ε) and the Rényi curve are the label's, with its features taken as known."
"""The remark of mechanisms that do not release the features unchanged."""


def epsilon_of_lambda(noise: float, k: int) -> float:
    """Return ε = log(1 + k(1 − λ)/λ) in nats for λ in [0, 1] and k labels (∞ at λ = 0).

    References
    ----------
    Busa-Fekete et al. (2023), section 8.1; at λ = 0.01, k = 2 it is log 199 = 5.29 (the paper
    prints 5.19).

    Examples
    --------
    >>> from ldpaudit.mechanisms import epsilon_of_lambda
    >>> round(epsilon_of_lambda(0.5, 2), 6)  # log 3
    1.098612
    """
    if not 0 <= noise <= 1:
        raise InputError(f"The 'lambda' parameter must lie in [0, 1]. Got {noise!r} instead.")
    return math.inf if noise == 0 else math.log1p(k * (1 - noise) / noise)


def lambda_of_epsilon(epsilon: float, k: int) -> float:
    """Return λ = k/(k − 1 + e^ε) for ε > 0 in nats and k labels (0 at ε = ∞)."""
    if not epsilon > 0:
        raise InputError(f"The 'epsilon' parameter must be above 0. Got {epsilon!r} instead.")
    return k * math.exp(-epsilon) / (1 + (k - 1) * math.exp(-epsilon))


def conditional_rdp_floor(alpha: float, noise: float, k: int) -> float:
    """Return a lower bound on the Rényi label-DP with conditional features at order α > 1, in nats.

    α/(α − 1) · log(1 + (1 − λ)k/λ) − log(k/λ)/(α − 1), for λ and k labels.

    References
    ----------
    Busa-Fekete et al. (2023), Theorem 7.2.
    """
    if not alpha > 1:
        raise InputError(f"The order alpha must be above 1, got {alpha}.")
    epsilon = epsilon_of_lambda(noise, k)
    if math.isinf(alpha) or noise == 0:
        return epsilon
    return max((alpha * epsilon - math.log(k / noise)) / (alpha - 1), 0.0)


@dataclass(frozen=True)
class RandomizedResponse(StepLoss, FiniteMechanism):
    """Randomized response over ``classes`` with noise λ: T = (1 − λ)I + (λ/k)11ᵀ.

    Parameters
    ----------
    classes : tuple
        The k ≥ 2 labels.
    noise : float
        λ in [0, 1], the probability of drawing the label anew, uniformly from all k.

    Examples
    --------
    >>> from ldpaudit.mechanisms import RandomizedResponse
    >>> mechanism = RandomizedResponse.from_epsilon(("no", "yes"), 1.0)
    >>> print(mechanism.description)
    randomized response on 2 labels: λ = 0.537883, ε = 1 nats, ...
    """

    traits = Traits(
        name="randomized-response",
        title="randomized response",
        labels="classes",
        outputs="labels",
        label_depends_on_features=False,
        features="unchanged",
        rows="independent",
        options=RESPONSE,
        stated_by=("epsilon", "lambda"),
        whole=True,
        needs=frozenset(),
    )

    declared: ClassVar[tuple[Parameter, ...]] = (
        Parameter("classes", check_classes),
        Parameter("lambda", field="noise"),
    )

    classes: tuple[Label, ...]
    noise: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", check_classes(self.classes))
        epsilon_of_lambda(self.noise, len(self.classes))

    @classmethod
    def from_epsilon(cls, classes: tuple[Label, ...], epsilon: float) -> Self:
        """Build it from ε > 0 in nats."""
        return cls(classes, lambda_of_epsilon(epsilon, len(classes)))

    @property
    def description(self) -> str:
        """Both parametrisations in words."""
        return (
            f"randomized response on {len(self.classes)} labels: λ = {self.noise:.6g}, "
            f"ε = {self.epsilon:.6g} nats, released label true with probability "
            f"{self.keep_probability:.6g}"
        )

    @property
    def epsilon(self) -> float:
        """ε in nats."""
        return epsilon_of_lambda(self.noise, len(self.classes))

    @cached_property
    def channel(self) -> Channel:
        """The k × k channel."""
        k = len(self.classes)
        matrix = (1 - self.noise) * np.eye(k) + self.noise / k
        return Channel(matrix, self.classes, self.classes)

    @property
    def total_variation(self) -> float:
        """1 − λ, for any two labels."""
        return 1 - self.noise

    @property
    def keep_probability(self) -> float:
        """P(released = true) for every label: 1 − λ + λ/k."""
        return 1 - self.noise + self.noise / len(self.classes)

    def parametrisations(self) -> dict[str, float]:
        """Return ``epsilon`` and ``lambda``."""
        return super().parametrisations() | {"lambda": float(self.noise)}

    def worst_rows(self) -> Sequence[int]:
        """Return any two labels: all pairs are alike."""
        return (0, 1)

    def exact_estimates(self) -> Iterator[Estimate]:
        """Yield λ and the probabilities that follow from it."""
        yield Estimate.exact(
            "mechanism.lambda",
            "λ, the probability of drawing the label anew",
            self.noise,
            unit="proportion",
            method="λ form: the probability of drawing the label anew, uniformly from all labels",
            reference="Busa-Fekete et al. (2023), section 8.1: λ = k/(k − 1 + e^ε)",
        )
        yield Estimate.exact(
            "mechanism.keep_probability",
            "Probability that the released label is the true one",
            self.keep_probability,
            unit="proportion",
            method="ε form: the probability that the released label is the true one",
            reference="Ghazi et al. (2021): e^ε/(e^ε + k − 1)",
        )
        if len(self.classes) == 2:
            yield Estimate.exact(
                "mechanism.binary_flip",
                "Probability of a flip, λ/2",
                self.noise / 2,
                unit="proportion",
                method="the probability that the released label is the other one, λ/2",
            )

    def sample(self, labels: IntArray, rng: Randomness = None) -> IntArray:
        """Release labels given as codes, as :meth:`FiniteMechanism.sample`."""
        codes = check_codes(labels, len(self.classes))
        return randomized_response(codes, self.noise, len(self.classes), rng)

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any], classes: tuple[Label, ...]) -> Self:
        """Build it from a declaration with ``lambda``, ``epsilon`` or both, which agree."""
        only_known(parameters, {"epsilon", *(p.name for p in cls.declared)}, cls.traits.name)
        k = len(check_classes(parameters.get("classes") or classes))
        stated = {key: value for key, value in parameters.items() if key != "epsilon"}
        return super().from_parameters(stated | {"lambda": _noise(parameters, k)}, classes)

    @classmethod
    def candidates(cls) -> Iterator[Candidate]:
        """Yield it for the labels and ε."""
        yield Candidate("", lambda p: Proposal(cls.from_epsilon(p.labels.classes, p.epsilon)))


def _noise(parameters: Mapping[str, Any], k: int) -> float:
    noise, epsilon = real(parameters, "lambda"), real(parameters, "epsilon")
    if noise is None and epsilon is None:
        raise InputError("Randomized response must state 'epsilon' or 'lambda'.")
    if epsilon is None:
        assert noise is not None
        epsilon_of_lambda(noise, k)
        return noise
    if noise is None:
        return lambda_of_epsilon(check_epsilon(epsilon), k)
    stated = epsilon_of_lambda(noise, k)
    if not math.isclose(stated, epsilon, rel_tol=AGREEMENT, abs_tol=AGREEMENT):
        raise InputError(
            f"'epsilon' and 'lambda' must agree: lambda = {noise:.6g} on {k} labels means "
            f"epsilon = {stated:.6g}, but epsilon = {epsilon:.6g} is stated."
        )
    return noise
