"""The outcome of a black-box audit: what is stored of it, and what is printed."""

import math
from typing import Any

from ldpaudit.result import Frozen, Kind, Number, Side, Verdict
from ldpaudit.result.numbers import number, percent
from ldpaudit.terminal import say


class Claimed(Frozen):
    """What was claimed of the function."""

    epsilon: Number | None
    """The claimed ε in nats; null without a claim."""
    delta: float
    """The claimed δ."""


class Value(Frozen):
    """A number, and how sure it is."""

    value: Number
    """The number; for a bound the bound itself."""
    kind: Kind
    """Certified, or estimated."""


class DeltaBound(Value):
    """A certified lower bound of δ."""

    low: Number
    """The bound."""
    side: Side
    """Which end is bounded."""
    level: float
    """The confidence of both bounds together."""
    epsilon: Number
    """The claimed ε, in nats, at which δ is bounded."""


class EpsilonBound(Value):
    """A certified lower bound of ε."""

    low: Number
    """The bound."""
    side: Side
    """Which end is bounded."""
    level: float
    """The confidence of both bounds together."""
    unit: str
    """The unit: nats."""
    n: int
    """Fresh outputs that could be guessed of."""
    count: int
    """Guesses that were right."""
    method: str
    """How it was computed."""
    assumptions: list[str]
    """What it assumes."""
    reference: str
    """The source, with its theorem."""


class Power(Frozen):
    """What the audit could have found."""

    detectable_epsilon: Number | None
    """The smallest ε that would have refuted the claim; null without a claim."""
    probability: float
    """With which probability."""
    max_undetected_excess: Number
    """The excess that may go unnoticed; a weaker audit is inconclusive."""


class Witness(Frozen):
    """The rule that tells two inputs apart, and how often it was right."""

    inputs: list[Any]
    """The two inputs."""
    candidates: int
    """Fresh outputs."""
    guesses: int
    """Outputs for which the rule guesses an input."""
    right: int
    """Guesses that were right."""
    event: dict[str, Any]
    """The rule."""


class PairFound(Frozen):
    """Two inputs, and about how well they can be told apart."""

    inputs: list[Any]
    """The two inputs."""
    epsilon: Value
    """The ε that the rule would show, in nats."""
    guessed: Value
    """The share of outputs for which the rule guesses."""


class BlackBoxAudit(Frozen):
    """The outcome of a black-box audit of a function."""

    schema_version: str
    """The version of this form."""
    verdict: Verdict
    """Whether the claim is refuted."""
    function: str
    """The function's name."""
    inputs: list[Any]
    """The inputs that were compared."""
    samples: int
    """Outputs of each input of the tested pair, about."""
    seed: int
    """The seed of the audit's randomness."""
    claim: Claimed
    """What was claimed."""
    epsilon_lower: EpsilonBound
    """The bound of ε."""
    delta_lower: DeltaBound | None
    """The bound of δ at the claimed ε; null without a claim."""
    power: Power
    """What the audit could have found."""
    witness: Witness
    """The evidence, which anybody can check."""
    pairs: list[PairFound]
    """Every pair of inputs, the one that tells most first."""
    opaque_entries: int
    """Entries of outputs that never repeat, of which nothing was learnt."""

    @property
    def exceeds_delta(self) -> bool:
        """Whether the bound of δ lies above the claimed δ."""
        return self.delta_lower is not None and self.delta_lower.value > self.claim.delta


def print_summary(audit: BlackBoxAudit, *, quiet: bool) -> None:
    """Print the outcome, the verdict first."""
    for sentence in sentences(audit)[: 1 if quiet else None]:
        say(sentence)


def sentences(audit: BlackBoxAudit) -> list[str]:
    """Return the outcome in words, the verdict first."""
    first, second = audit.witness.inputs
    level, told = percent(audit.epsilon_lower.level), audit.witness
    delta = f" (δ = {audit.claim.delta:g})" if audit.claim.delta else ""
    return [
        _headline(audit, delta),
        f"  certified    ε ≥ {_down(audit.epsilon_lower.value)}{delta} at {level} "
        f"confidence, from inputs {first!r} and {second!r}: {told.right:,} of "
        f"{told.guesses:,} guesses right in {told.candidates:,} outputs",
        *_remarks(audit),
    ]


def _headline(audit: BlackBoxAudit, delta: str) -> str:
    claimed = audit.claim.epsilon
    if claimed is None:
        return "Nothing was claimed, so nothing was judged."
    claim = f"ε = {claimed:g}{delta}"
    if audit.verdict == "pass":
        return f"No violation found: no bound exceeds the claimed {claim}."
    if audit.verdict == "inconclusive":
        return f"Inconclusive: nothing exceeds {claim}, but too little could have."
    if audit.epsilon_lower.value > claimed:
        proof = f"at least ε = {_down(audit.epsilon_lower.value)} is certified"
    else:
        assert audit.delta_lower is not None
        proof = f"at that ε at least δ = {_down(audit.delta_lower.value, 5)} is certified"
    return f"Violation found: the randomizer claims {claim}, but {proof}."


def _remarks(audit: BlackBoxAudit) -> list[str]:
    lines = []
    if audit.claim.epsilon is not None and audit.verdict != "fail":
        lines.append(f"  power        {_power(audit, audit.claim.epsilon)}")
    if audit.exceeds_delta:
        assert audit.delta_lower is not None
        lines.append(f"  certified    δ ≥ {_down(audit.delta_lower.value, 5)} at the claimed ε")
    if audit.epsilon_lower.value == 0 and audit.claim.epsilon:
        lines.append(
            "  warning      no two inputs could be distinguished: does the function know them as "
            f'{type(audit.inputs[0]).__name__}? In a JSON list 0 is a number and "0" a text'
        )
    if audit.opaque_entries:
        lines.append(
            f"  warning      {audit.opaque_entries} entry(ies) of the outputs hardly ever repeat "
            f"and could not be used; if one is a public seed, give --feature-function"
        )
    return lines


def _power(audit: BlackBoxAudit, claimed: float) -> str:
    detectable = audit.power.detectable_epsilon
    assert detectable is not None
    if math.isinf(detectable):
        return "no ε would have been found on this event; raise --samples"
    enough = (
        "" if detectable <= claimed + audit.power.max_undetected_excess else "; raise --samples"
    )
    return (
        f"on this event ε = {number(detectable, 'up')} would have been found with 90 % "
        f"probability{enough}"
    )


def _down(bound: float, digits: int = 3) -> str:
    return number(bound, "down", digits)
