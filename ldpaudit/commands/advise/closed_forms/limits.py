"""What a policy limits, as numbers that closed forms can be held against."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from ldpaudit.estimators.label_inference.advantage import advantage_ceiling
from ldpaudit.judging.policy import Policy
from ldpaudit.judging.policy.limits import CLAIM

Measure = Literal["epsilon", "excess", "exceedance", "advantage", "accuracy", "renyi"]
FEATURES: Final = ("features-reveal-label", "identifiers")
"""Checks of the features alone: no noise on the label changes them."""
AUDITS: Final = {
    "exceedance": "instance-loss",
    "advantage": "label-inference",
    "accuracy": "label-inference",
    "renyi": "renyi",
}
"""The audits of a simulated release that say more of a measure than its closed form does."""


@dataclass(frozen=True)
class Limit:
    """The most that a policy allows of one measure.

    Attributes
    ----------
    measure : str
    check : str
        The policy's check.
    title : str
        What is limited, in words.
    unit : {"nats", "proportion"}
    level : {"error", "warn"}
    most : callable
        The limit for a claimed ε in nats.
    at : callable or None
        The loss τ in nats for a claimed ε; the order α for "renyi".
    """

    measure: Measure
    check: str
    title: str
    unit: Literal["nats", "proportion"]
    level: str
    most: Callable[[float], float]
    at: Callable[[float], float] | None = None


@dataclass(frozen=True)
class Limits:
    """Everything that a policy limits by noise, and how sure it wants to be.

    Attributes
    ----------
    limits : tuple of Limit
    columns : tuple of str
        The checks of the features alone that it asks for.
    confidence : float
    tests : int
        Checks of level ``error`` that share the error probability.
    min_rows : int or None
    """

    limits: tuple[Limit, ...]
    columns: tuple[str, ...]
    confidence: float
    tests: int
    min_rows: int | None

    @classmethod
    def of(cls, policy: Policy, classes: int) -> "Limits":
        """Return the limits of a policy for so many labels."""
        asked = policy.checks.asked()
        sections = {name: getattr(policy.checks, name.replace("-", "_")) for name in asked}
        # A seed that can be guessed has an error probability of its own.
        shared = (section for name, section in sections.items() if name != "guessable-seed")
        graves = [section for section in shared if section.level == "error"]
        return cls(
            tuple(_limits(policy, sections, classes)),
            tuple(name for name in FEATURES if name in asked),
            policy.audit.confidence,
            max(len(graves), 1),
            policy.audit.min_rows,
        )

    def of_measure(self, measure: Measure) -> Limit | None:
        """Return the limit of a measure; None where there is none."""
        return next((limit for limit in self.limits if limit.measure == measure), None)


def _limits(policy: Policy, sections: dict[str, Any], classes: int) -> Iterator[Limit]:
    claim = policy.of_all().claim
    if claim is not None and (claimed := claim.declaration().parameters):
        yield _claimed(claimed, classes)
    if "claimed-epsilon" in sections:
        allowed = policy.audit.max_undetected_excess
        words = "excess of ε that an audit of so many rows could miss"
        level = sections["claimed-epsilon"].level
        yield Limit("excess", "claimed-epsilon", words, "nats", level, allowed.at)
    if section := sections.get("instance-loss-exceedance"):
        words = f"share of people who lose {_loss(section.at)} nats or more"
        most, at = _constant(section.max), section.at.at
        yield Limit(
            "exceedance",
            "instance-loss-exceedance",
            words,
            "proportion",
            section.level,
            most,
            lambda epsilon: math.inf if (loss := at(epsilon)) is None else loss,
        )
    if section := sections.get("label-inference-advantage"):
        most = (
            (lambda epsilon: advantage_ceiling(epsilon, classes))
            if section.max == CLAIM
            else _constant(section.max)
        )
        words = "labels guessed right beyond what the features tell"
        check = "label-inference-advantage"
        yield Limit("advantage", check, words, "proportion", section.level, most)
    if section := sections.get("label-inference-accuracy"):
        words, check = "labels guessed right", "label-inference-accuracy"
        yield Limit("accuracy", check, words, "proportion", section.level, _constant(section.max))
    if section := sections.get("renyi-epsilon"):
        words = f"Rényi divergence of order {section.alpha:g} by the label"
        yield Limit(
            *("renyi", "renyi-epsilon", words, "nats", section.level),
            _constant(section.max),
            _constant(section.alpha),
        )


def _claimed(claimed: Any, classes: int) -> Limit:
    most = claimed.get("epsilon")
    if most is None:
        noise = claimed["lambda"]
        most = math.log1p(classes * (1 - noise) / noise)
    return Limit("epsilon", "claimed-epsilon", "declared ε", "nats", "error", _constant(most))


def _constant(value: float) -> Callable[[float], float]:
    return lambda _: float(value)


def _loss(at: Any) -> str:
    return f"ε + {at.nats:g}" if at.above_claim else f"{at.nats:g}"
