"""Randomized response on the label with the features withheld."""

from collections.abc import Iterator
from dataclasses import dataclass

from ldpaudit.mechanisms.design import Candidate
from ldpaudit.mechanisms.interface import Traits
from ldpaudit.mechanisms.options import RESPONSE, SYNTHETIC
from ldpaudit.mechanisms.response.randomized_response import (
    LABEL_ONLY,
    RandomizedResponse,
    conditional_rdp_floor,
)


@dataclass(frozen=True)
class DummyFeaturesRR(RandomizedResponse):
    """Randomized response with λ on the label; the features are replaced by a constant.

    Useless for learning, it is the floor with which mechanisms that release features are compared.

    References
    ----------
    Busa-Fekete et al. (2023), Mechanism 3.
    """

    traits = Traits(
        name="dummy-features-rr",
        title="randomized response with dummy features",
        labels="classes",
        outputs="labels",
        label_depends_on_features=False,
        features="withheld",
        rows="independent",
        options=(*RESPONSE, *SYNTHETIC),
        stated_by=("epsilon", "lambda"),
        whole=True,
        needs=frozenset(),
    )

    @property
    def description(self) -> str:
        """Both parametrisations in words."""
        return super().description + ", released without its features"

    def conditional_rdp_floor(self, alpha: float) -> float:
        """Return a lower bound of the Rényi label-DP with conditional features, α > 1, in nats.

        α/(α − 1) · log(1 + (1 − λ)k/λ) − log(k/λ)/(α − 1).

        References
        ----------
        Busa-Fekete et al. (2023), Theorem 7.2.
        """
        return conditional_rdp_floor(alpha, self.noise, len(self.classes))

    def remarks(self) -> tuple[str, ...]:
        """Say what ε speaks of."""
        return (LABEL_ONLY,)

    @classmethod
    def candidates(cls) -> Iterator[Candidate]:
        """Yield nothing: on the label it is randomized response."""
        return iter(())
