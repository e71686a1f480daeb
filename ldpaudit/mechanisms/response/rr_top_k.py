"""Randomized response on the most likely labels only: RR-Top-k and RR with prior."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.design import Candidate, Proposal
from ldpaudit.mechanisms.finite import FiniteMechanism, noise_on
from ldpaudit.mechanisms.interface import Traits
from ldpaudit.mechanisms.options import CLASSES, PRIOR, MechanismOptions
from ldpaudit.mechanisms.parameters import Parameter, check_classes, check_epsilon, check_prior
from ldpaudit.release import FloatArray, Label


def _labels(kept: Any) -> tuple[Label, ...]:
    if isinstance(kept, str) or not isinstance(kept, Sequence):
        raise InputError("The kept labels must be a list of labels.")
    return tuple(kept)


@dataclass(frozen=True)
class RandomizedResponseTopK(FiniteMechanism):
    """Randomized response over some kept labels; any other label becomes a random kept one.

    A kept label stays with probability e^ε/(e^ε + m − 1) and becomes each other kept label with
    probability 1/(e^ε + m − 1), m the number of kept labels; a label that is not kept becomes each
    kept one with probability 1/m.

    Parameters
    ----------
    classes : tuple
        The k ≥ 2 labels.
    kept : tuple
        The m ≥ 1 outputs, some of the labels.
    budget : float
        ε > 0 in nats of the randomized response on the kept labels: the mechanism's exact ε if
        m ≥ 2. A single kept label gives nothing away (ε = 0).

    References
    ----------
    Ghazi et al. (2021), Algorithms 2 and 3; Ghazi et al. (2023), appendix G.
    """

    traits = Traits(
        name="rr-top-k",
        title="RR-Top-k",
        labels="classes",
        outputs="labels",
        label_depends_on_features=False,
        features="unchanged",
        rows="independent",
        options=("epsilon", *CLASSES, *PRIOR),
        stated_by=("epsilon",),
        whole=False,
        needs=frozenset({"prior"}),
    )

    declared = (
        Parameter("classes", check_classes),
        Parameter("kept", _labels),
        Parameter("epsilon", check_epsilon, "budget"),
    )

    classes: tuple[Label, ...]
    kept: tuple[Label, ...]
    budget: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", check_classes(self.classes))
        object.__setattr__(self, "kept", tuple(self.kept))
        check_epsilon(self.budget)
        if not self.kept or len(set(self.kept)) < len(self.kept):
            raise InputError("There must be at least one kept label, and no label twice.")
        if not set(self.kept) <= set(self.classes):
            raise InputError("The kept labels must be among the mechanism's labels.")

    @classmethod
    def from_prior(
        cls, classes: Sequence[Label], prior: Sequence[float] | FloatArray, epsilon: float
    ) -> Self:
        """Keep the number of most likely labels that makes the released label most often true.

        Parameters
        ----------
        classes : sequence, length k
            The labels.
        prior : float64 array of shape (k,)
            Their probabilities, from other data than the labels to be released, or with a privacy
            budget of their own.
        epsilon : float
            ε > 0 in nats.

        References
        ----------
        Ghazi et al. (2021), Algorithm 3 (RRWithPrior): m maximises e^ε/(e^ε + m − 1) times the
        probability of the m most likely labels. Ties go to the smaller m and the earlier label.
        """
        labels = check_classes(classes)
        probabilities = check_prior(prior, len(labels))
        order = np.argsort(-probabilities, kind="stable")
        others = np.arange(len(labels))
        hit = np.cumsum(probabilities[order]) / (1 + others * math.exp(-check_epsilon(epsilon)))
        m = int(np.argmax(hit)) + 1
        return cls(labels, tuple(labels[y] for y in sorted(order[:m])), epsilon)

    @property
    def epsilon(self) -> float:
        """The exact ε in nats: the budget, or 0 with a single kept label."""
        return self.budget if len(self.kept) > 1 else 0.0

    @property
    def description(self) -> str:
        """Its parameters in words."""
        m = len(self.kept)
        keep = 1 / (1 + (m - 1) * math.exp(-self.budget))
        return (
            f"randomized response on {m} kept labels of {len(self.classes)}: budget "
            f"{self.budget:.6g} nats, ε = {self.epsilon:.6g} nats, a kept label stays with "
            f"probability {keep:.6g}"
        )

    @cached_property
    def channel(self) -> Channel:
        """The k × m channel."""
        m = len(self.kept)
        off = math.exp(-self.budget) / (1 + (m - 1) * math.exp(-self.budget))
        place = {label: z for z, label in enumerate(self.kept)}
        matrix = np.full((len(self.classes), m), 1 / m)
        for y, label in enumerate(self.classes):
            if label in place:
                matrix[y] = off
                matrix[y, place[label]] = 1 / (1 + (m - 1) * math.exp(-self.budget))
        return Channel(matrix, self.classes, self.kept)

    def parametrisations(self) -> dict[str, float]:
        """Return ``epsilon``, and λ of randomized response on the kept labels."""
        return super().parametrisations() | {"lambda": noise_on(len(self.kept), self.epsilon)}

    def worst_rows(self) -> Sequence[int]:
        """Return two kept labels and another one."""
        kept = [self.classes.index(label) for label in self.kept[:2]]
        others = [y for y, label in enumerate(self.classes) if label not in self.kept]
        return kept + others[:1]

    @classmethod
    def candidates(cls) -> Iterator[Candidate]:
        """Yield the one with the best number of kept labels for the prior."""
        yield Candidate(
            "with prior", lambda p: Proposal(cls.from_prior(p.labels.classes, p.prior, p.epsilon))
        )

    @classmethod
    def from_options(cls, options: MechanismOptions) -> Self:
        """Build it for the prior."""
        return cls.from_prior(*options.for_prior(cls.traits.name))
