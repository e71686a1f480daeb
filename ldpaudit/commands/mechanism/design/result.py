"""The candidates for a prior, a loss and ε, each with its expected loss."""

import math
from dataclasses import dataclass
from typing import Any

from ldpaudit.mechanisms.analysis import LabelErrors
from ldpaudit.mechanisms.design import Problem
from ldpaudit.mechanisms.interface import Mechanism


@dataclass(frozen=True, eq=False)
class Scored:
    """A candidate and what it costs.

    Attributes
    ----------
    name, variant : str
        The mechanism's name and which of its forms.
    seconds : float
        What building and scoring it took.
    mechanism : Mechanism or None
        None where it could not be built.
    epsilon : float or None
        Its exact ε in nats, never above the one asked for.
    loss : float or None
        Its expected loss under the prior, ∞ where it is infinite; None where it is not defined.
    errors : LabelErrors or None
        Bias and variance by label.
    optimal_among : str
        The mechanisms among which it is proved to be the best, "" where nothing is proved.
    reason : str
        Why the loss is infinite or not defined.
    """

    name: str
    variant: str
    seconds: float
    mechanism: Mechanism | None = None
    epsilon: float | None = None
    loss: float | None = None
    errors: LabelErrors | None = None
    optimal_among: str = ""
    reason: str = ""

    @property
    def unbiased(self) -> bool:
        """Whether E[ŷ | y] = y for every label."""
        return self.errors is not None and self.errors.unbiased

    @property
    def usable(self) -> bool:
        """Whether its loss is a finite number."""
        return self.loss is not None and math.isfinite(self.loss)

    @property
    def outputs(self) -> float | None:
        """How many outputs it has, ∞ where not finitely many; None where it could not be built."""
        if self.mechanism is None:
            return None
        channel = self.mechanism.channel
        return math.inf if channel is None else len(channel.outputs)

    @property
    def title(self) -> str:
        """Name and form."""
        return f"{self.name} ({self.variant})" if self.variant else self.name

    def stored(self) -> dict[str, Any]:
        """Return what the JSON file holds, with what a release made with it would declare."""
        errors, made = self.errors, self.mechanism
        return {
            "mechanism": self.name,
            "variant": self.variant,
            "epsilon": self.epsilon,
            "loss": self.loss,
            "max_bias": None if errors is None else errors.largest_bias,
            "unbiased": self.unbiased,
            "outputs": self.outputs,
            "seconds": self.seconds,
            "optimal": bool(self.optimal_among),
            "optimal_among": self.optimal_among or None,
            "reason": self.reason or None,
            "declaration": None if made is None else {"name": made.name, **made.declaration()},
        }


@dataclass(frozen=True, eq=False)
class Design:
    """All candidates for a problem, the best first, and what the prior cost.

    Attributes
    ----------
    problem : Problem
        Its ε is what the mechanism gets: ε₂ = ε − ε₁ with a private prior.
    candidates : tuple of Scored
    prior_epsilon : float
        ε₁ in nats, 0 for a public prior.
    """

    problem: Problem
    candidates: tuple[Scored, ...]
    prior_epsilon: float = 0.0

    @property
    def total_epsilon(self) -> float:
        """ε₁ + ε₂ in nats: what prior and labels together spend."""
        return self.prior_epsilon + self.problem.epsilon

    @property
    def best(self) -> Scored | None:
        """The best usable candidate; None where there is none."""
        return best(self.candidates)

    @property
    def best_unbiased(self) -> Scored | None:
        """The best usable unbiased candidate; None where there is none."""
        return best(self.candidates, unbiased=True)

    def stored(self) -> dict[str, Any]:
        """Return what the JSON file holds."""
        problem, labels = self.problem, self.problem.labels
        places = {id(scored): place for place, scored in enumerate(self.candidates)}
        return {
            "schema_version": "1.0",
            "loss": problem.loss,
            "labels": {
                "low": labels.low,
                "high": labels.high,
                "step": labels.spacing,
                "count": labels.steps + 1,
            },
            "epsilon": problem.epsilon,
            "prior_epsilon": self.prior_epsilon,
            "total_epsilon": self.total_epsilon,
            "prior": problem.prior.tolist(),
            "best": places.get(id(self.best)),
            "best_unbiased": places.get(id(self.best_unbiased)),
            "candidates": [scored.stored() for scored in self.candidates],
        }


def best(candidates: tuple[Scored, ...], *, unbiased: bool = False) -> Scored | None:
    """Return the best usable candidate, or the best unbiased one; None where there is none."""
    return next((s for s in candidates if s.usable and (s.unbiased or not unbiased)), None)
