"""Randomized response on the label with the features withheld."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ldpaudit.mechanisms.capabilities import FloorWithDrawnFeatures
from ldpaudit.mechanisms.design import Candidate
from ldpaudit.mechanisms.options import RESPONSE, SYNTHETIC
from ldpaudit.mechanisms.response.randomized_response import (
    LABEL_ONLY,
    RandomizedResponse,
    conditional_rdp_floor,
)


@dataclass(frozen=True)
class DummyFeaturesRR(RandomizedResponse, FloorWithDrawnFeatures):
    """Randomized response with λ on the label; the features are replaced by a constant.

    It is useless for learning: a floor with which to compare mechanisms that release features.

    Parameters
    ----------
    classes : tuple
        The k ≥ 2 labels.
    noise : float
        λ in [0, 1], the probability of drawing the label anew, uniformly from all k.

    References
    ----------
    Busa-Fekete et al. (2023), Mechanism 3.
    """

    traits = replace(
        RandomizedResponse.traits,
        name="dummy-features-rr",
        title="randomized response with dummy features",
        features="withheld",
        options=(*RESPONSE, *SYNTHETIC),
    )

    @property
    def description(self) -> str:
        """Both parametrisations in words."""
        return super().description + ", released without its features"

    def conditional_rdp_floor(self, alpha: float) -> float:
        """Return a lower bound on the Rényi DP with conditional features, α > 1, in nats."""
        return conditional_rdp_floor(alpha, self.noise, len(self.classes))

    def remarks(self) -> tuple[str, ...]:
        """Say what ε covers."""
        return (LABEL_ONLY,)

    @classmethod
    def candidates(cls) -> Iterator[Candidate]:
        """Yield nothing: on the label it is randomized response."""
        return iter(())
