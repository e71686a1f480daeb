"""The outcome of a black-box audit: what is stored of it, and what is printed."""

import math
from collections.abc import Iterator
from typing import Any

from ldpaudit.commands.shell import Said, Stored
from ldpaudit.result import Frozen, Kind, Number, Side, Verdict
from ldpaudit.result.numbers import number, percent


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


class Bound(Value):
    """A certified lower bound.

    Attributes
    ----------
    low
        The bound.
    side
        Which end is bounded.
    level
        The confidence of both bounds together.
    """

    low: Number
    side: Side = "lower"
    level: float
    kind: Kind = "certified"


class DeltaBound(Bound):
    """A certified lower bound of δ.

    Attributes
    ----------
    epsilon
        The claimed ε, in nats, at which δ is bounded.
    """

    epsilon: Number


class EpsilonBound(Bound):
    """A certified lower bound of ε.

    Attributes
    ----------
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

    unit: str = "nats"
    n: int
    count: int
    method: str = "right guesses of which of two inputs was given, event chosen beforehand"
    assumptions: tuple[str, ...] = (
        "the outputs of the function are independent and identically distributed",
    )
    reference: str = "Steinke, Nasr & Jagielski (2023), Theorem 5.2"


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
    probability: float = 0.9
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


class BlackBoxAudit(Stored):
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

    schema_version: str = "1.0"
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

    def said(self, *, quiet: bool) -> Iterator[Said]:
        """Yield the outcome, the verdict first."""
        bound, rule, delta = self.epsilon_lower, self.witness, self.delta_lower
        claimed, least = self.claim.epsilon, number(bound.value, "down")
        at = f" (δ = {self.claim.delta:g})" if self.claim.delta else ""
        claim, shift = f"ε = {claimed or 0:g}{at}", number(delta.value if delta else 0, "down", 5)
        proof = f"at least ε = {least} is certified"
        if bound.value <= (claimed or 0):
            proof = f"at that ε at least δ = {shift} is certified"
        heads = {
            "pass": f"No violation found: no bound exceeds the claimed {claim}.",
            "inconclusive": f"Inconclusive: nothing exceeds {claim}, but too little could have.",
            "fail": f"Violation found: the randomizer claims {claim}, but {proof}.",
        }
        unclaimed = "Nothing was claimed, so nothing was judged."
        yield unclaimed if claimed is None else heads[self.verdict]
        if quiet:
            return
        yield (
            "certified",
            f"ε ≥ {least}{at} at {percent(bound.level)} confidence, from inputs "
            f"{rule.inputs[0]!r} and {rule.inputs[1]!r}: {rule.right:,} of {rule.guesses:,} "
            f"guesses right in {rule.candidates:,} outputs",
        )
        found = self.power.detectable_epsilon
        if claimed is not None and found is not None and self.verdict != "fail":
            could = f"ε = {number(found, 'up')} would have been found with 90 % probability"
            could = "no ε would have been found" if math.isinf(found) else could
            enough = found <= claimed + self.power.max_undetected_excess
            yield "power", f"on this event {could}{'' if enough else '; raise --samples'}"
        if delta is not None and delta.value > self.claim.delta:
            yield "certified", f"δ ≥ {shift} at the claimed ε"
        if bound.value == 0 and claimed:
            yield (
                "warning",
                "no two inputs could be distinguished: does the function know them as "
                f'{type(self.inputs[0]).__name__}? In a JSON list 0 is a number and "0" a text',
            )
        if self.opaque_entries:
            yield (
                "warning",
                f"{self.opaque_entries} entry(ies) of the outputs hardly ever repeat and could not "
                "be used; if one is a public seed, give --feature-function",
            )
