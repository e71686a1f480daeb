"""The form of what ``design`` stores."""

from typing import Any

from ldpaudit.result import Frozen, Number


class StoredGrid(Frozen):
    """The labels: numbers at equal steps."""

    low: Number
    """The smallest label."""
    high: Number
    """The largest label."""
    step: Number
    """The distance of neighbouring labels."""
    count: int
    """How many labels there are."""


class StoredCandidate(Frozen):
    """A mechanism that was compared, and what it costs."""

    mechanism: str
    """Its name."""
    variant: str
    """Which of its forms; empty where it has one only."""
    epsilon: Number | None
    """Its exact ε in nats, never above the one asked for; null where it could not be built."""
    loss: Number | None
    """Its expected loss under the prior; null where it is not defined."""
    max_bias: Number | None
    """How far the released label is off on average, for the label where that is most."""
    unbiased: bool
    """Whether the released label is right on average, whatever the label."""
    outputs: Number | None
    """How many outputs it has."""
    seconds: float
    """What building and scoring it took."""
    optimal: bool
    """Whether it is proved to be the best of some kind of mechanism."""
    optimal_among: str | None
    """Of which kind."""
    reason: str | None
    """Why its loss is infinite or not defined."""
    declaration: dict[str, Any] | None
    """What a release that was made with it declares."""


class StoredDesign(Frozen):
    """All mechanisms compared for a prior, a loss and ε, the best first."""

    schema_version: str
    """The version of this form."""
    loss: str
    """The loss: squared, absolute or poisson."""
    labels: StoredGrid
    """The labels that were designed for."""
    epsilon: Number
    """ε in nats that the mechanism gets."""
    prior_epsilon: Number
    """ε in nats that the prior cost; 0 for a public one."""
    total_epsilon: Number
    """Both together."""
    prior: list[float]
    """The share of each label."""
    best: int | None
    """The place of the best candidate, from 0."""
    best_unbiased: int | None
    """The place of the best unbiased candidate, from 0."""
    candidates: list[StoredCandidate]
    """The mechanisms, the best first."""
