"""The outcome of a black-box audit: what is stored of it, and what is printed."""

import math
from typing import Any

from ldpaudit.result import Frozen, Kind, Number, Side, Verdict
from ldpaudit.result.numbers import number, percent
from ldpaudit.terminal import say


class Claimed(Frozen):
    """What was claimed of the function.

    Attributes
    ----------
    epsilon
        The claimed ε in nats; null without a claim.
    delta
        The claimed δ.
    """

    epsilon: Number | None
    delta: float


class Value(Frozen):
    """A number, and how sure it is.

    Attributes
    ----------
    value
        The number; for a bound the bound itself.
    kind
        Certified, or estimated.
    """

    value: Number
    kind: Kind


class DeltaBound(Value):
    """A certified lower bound of δ.

    Attributes
    ----------
    low
        The bound.
    side
        Which end is bounded.
    level
        The confidence of both bounds together.
    epsilon
        The claimed ε, in nats, at which δ is bounded.
    """

    low: Number
    side: Side
    level: float
    epsilon: Number


class EpsilonBound(Value):
    """A certified lower bound of ε.

    Attributes
    ----------
    low
        The bound.
    side
        Which end is bounded.
    level
        The confidence of both bounds together.
    unit
        The unit: nats.
    n
        Fresh outputs that could be guessed of.
    count
        Guesses that were right.
    method
        How it was computed.
    assumptions
        What it assumes.
    reference
        The source, with its theorem.
    """

    low: Number
    side: Side
    level: float
    unit: str
    n: int
    count: int
    method: str
    assumptions: list[str]
    reference: str


class Power(Frozen):
    """What the audit could have found.

    Attributes
    ----------
    detectable_epsilon
        The smallest ε that would have refuted the claim; null without a claim.
    probability
        With which probability.
    max_undetected_excess
        The excess that may go unnoticed; a weaker audit is inconclusive.
    """

    detectable_epsilon: Number | None
    probability: float
    max_undetected_excess: Number


class Witness(Frozen):
    """The rule that tells two inputs apart, and how often it was right.

    Attributes
    ----------
    inputs
        The two inputs.
    candidates
        Fresh outputs.
    guesses
        Outputs for which the rule guesses an input.
    right
        Guesses that were right.
    event
        The rule.
    """

    inputs: list[Any]
    candidates: int
    guesses: int
    right: int
    event: dict[str, Any]


class PairFound(Frozen):
    """Two inputs, and about how well they can be told apart.

    Attributes
    ----------
    inputs
        The two inputs.
    epsilon
        The ε that the rule would show, in nats.
    guessed
        The share of outputs for which the rule guesses.
    """

    inputs: list[Any]
    epsilon: Value
    guessed: Value


class BlackBoxAudit(Frozen):
    """The outcome of a black-box audit of a function.

    Attributes
    ----------
    schema_version
        The version of this form.
    verdict
        Whether the claim is refuted.
    function
        The function's name.
    inputs
        The inputs that were compared.
    samples
        Outputs of each input of the tested pair, about.
    seed
        The seed of the audit's randomness.
    claim
        What was claimed.
    epsilon_lower
        The bound of ε.
    delta_lower
        The bound of δ at the claimed ε; null without a claim.
    power
        What the audit could have found.
    witness
        The evidence, which anybody can check.
    pairs
        Every pair of inputs, the one that tells most first.
    opaque_entries
        Entries of outputs that never repeat, of which nothing was learnt.
    """

    schema_version: str
    verdict: Verdict
    function: str
    inputs: list[Any]
    samples: int
    seed: int
    claim: Claimed
    epsilon_lower: EpsilonBound
    delta_lower: DeltaBound | None
    power: Power
    witness: Witness
    pairs: list[PairFound]
    opaque_entries: int

    def summary(self) -> list[str]:
        """Return the outcome in words, the verdict first."""
        bound, rule, delta = self.epsilon_lower, self.witness, self.delta_lower
        claimed, least = self.claim.epsilon, _down(bound.value)
        at = f" (δ = {self.claim.delta:g})" if self.claim.delta else ""
        claim, first, second = f"ε = {claimed or 0:g}{at}", *rule.inputs
        if claimed is None:
            head = "Nothing was claimed, so nothing was judged."
        elif self.verdict == "pass":
            head = f"No violation found: no bound exceeds the claimed {claim}."
        elif self.verdict == "inconclusive":
            head = f"Inconclusive: nothing exceeds {claim}, but too little could have."
        else:
            proof = f"at least ε = {least} is certified"
            if bound.value <= claimed and delta is not None:
                proof = f"at that ε at least δ = {_down(delta.value, 5)} is certified"
            head = f"Violation found: the randomizer claims {claim}, but {proof}."
        lines = [
            head,
            f"  certified    ε ≥ {least}{at} at {percent(bound.level)} confidence, from inputs "
            f"{first!r} and {second!r}: {rule.right:,} of {rule.guesses:,} guesses right in "
            f"{rule.candidates:,} outputs",
        ]
        if claimed is not None and self.verdict != "fail":
            found, excess = self.power.detectable_epsilon, self.power.max_undetected_excess
            assert found is not None
            could = f"ε = {number(found, 'up')} would have been found with 90 % probability"
            could = "no ε would have been found" if math.isinf(found) else could
            more = "" if found <= claimed + excess else "; raise --samples"
            lines.append(f"  power        on this event {could}{more}")
        if delta is not None and delta.value > self.claim.delta:
            lines.append(f"  certified    δ ≥ {_down(delta.value, 5)} at the claimed ε")
        if bound.value == 0 and claimed:
            lines.append(
                "  warning      no two inputs could be distinguished: does the function know them "
                f'as {type(self.inputs[0]).__name__}? In a JSON list 0 is a number and "0" a text'
            )
        if self.opaque_entries:
            lines.append(
                f"  warning      {self.opaque_entries} entry(ies) of the outputs hardly ever "
                "repeat and could not be used; if one is a public seed, give --feature-function"
            )
        return lines


def print_summary(audit: BlackBoxAudit, *, quiet: bool) -> None:
    """Print the outcome, the verdict first."""
    for sentence in audit.summary()[: 1 if quiet else None]:
        say(sentence)


def _down(bound: float, digits: int = 3) -> str:
    return number(bound, "down", digits)
