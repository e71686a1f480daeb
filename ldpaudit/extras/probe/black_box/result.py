"""The outcome of a black-box audit: what is stored of it, and what is printed."""

import math
from collections.abc import Iterator
from typing import Any

from pydantic import Field

from ldpaudit.doors import Frozen, Said, Stored, number, percent
from ldpaudit.result import Kind, Number, Side, Verdict


class Claimed(Frozen):
    """What was claimed of the function."""

    epsilon: Number | None = Field(description="The claimed ε in nats; null without a claim.")
    delta: float = Field(description="The claimed δ.")


class Value(Frozen):
    """A number, and how sure it is."""

    value: Number = Field(description="The number; for a bound the bound itself.")
    kind: Kind = Field(description="Certified, or estimated.")


class Bound(Value):
    """A certified lower bound."""

    low: Number = Field(description="The bound.")
    side: Side = Field("lower", description="Which end is bounded.")
    level: float = Field(description="The confidence of both bounds together.")
    kind: Kind = Field("certified", description="Always certified.")


class DeltaBound(Bound):
    """A certified lower bound of δ."""

    epsilon: Number = Field(description="The claimed ε, in nats, at which δ is bounded.")


class EpsilonBound(Bound):
    """A certified lower bound of ε."""

    unit: str = Field("nats", description="The unit: nats.")
    n: int = Field(description="Fresh outputs that could be guessed of.")
    count: int = Field(description="Guesses that were right.")
    method: str = Field(
        "right guesses of which of two inputs was given, event chosen beforehand",
        description="How it was computed.",
    )
    assumptions: tuple[str, ...] = Field(
        ("the outputs of the function are independent and identically distributed",),
        description="What it assumes.",
    )
    reference: str = Field(
        "Steinke, Nasr & Jagielski (2023), Theorem 5.2", description="The source, with its theorem."
    )


class Power(Frozen):
    """What the audit could have found."""

    detectable_epsilon: Number | None = Field(
        description="The smallest ε that would have refuted the claim; null without a claim."
    )
    probability: float = Field(0.9, description="With which probability.")
    max_undetected_excess: Number = Field(
        description="The excess that may go unnoticed; a weaker audit is inconclusive."
    )


class Witness(Frozen):
    """The rule that tells two inputs apart, and how often it was right."""

    inputs: list[Any] = Field(description="The two inputs.")
    candidates: int = Field(description="Fresh outputs.")
    guesses: int = Field(description="Outputs for which the rule guesses an input.")
    right: int = Field(description="Guesses that were right.")
    event: dict[str, Any] = Field(description="The rule.")


class PairFound(Frozen):
    """Two inputs, and about how well they can be told apart."""

    inputs: list[Any] = Field(description="The two inputs.")
    epsilon: Value = Field(description="The ε that the rule would show, in nats.")
    guessed: Value = Field(description="The share of outputs for which the rule guesses.")


class BlackBoxAudit(Stored):
    """The outcome of a black-box audit of a function."""

    schema_version: str = Field("1.0", description="The version of this form.")
    verdict: Verdict = Field(description="Whether the claim is refuted.")
    function: str = Field(description="The function's name.")
    inputs: list[Any] = Field(description="The inputs that were compared.")
    samples: int = Field(description="Outputs of each input of the tested pair, about.")
    stopped_early: bool = Field(
        False, description="Whether the test ended before all of them, the claim refuted."
    )
    seed: int = Field(description="The seed of the audit's randomness.")
    claim: Claimed = Field(description="What was claimed.")
    epsilon_lower: EpsilonBound = Field(description="The bound of ε.")
    delta_lower: DeltaBound | None = Field(
        description="The bound of δ at the claimed ε; null without a claim."
    )
    power: Power = Field(description="What it could have found, by its samples.")
    witness: Witness = Field(description="The evidence, which anybody can check.")
    pairs: list[PairFound] = Field(
        description="Every pair of inputs, the one that tells most first."
    )
    opaque_entries: int = Field(
        description="Entries of outputs that never repeat, of which nothing was learnt."
    )

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
        if self.stopped_early:
            yield (
                "note",
                "the test ended as soon as the claim was refuted (an e-process, valid at any time)",
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
