"""What a black-box audit found, its verdict and its JSON form."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from ldpaudit.options import Option

SCHEMA_VERSION: Final = "1.0"
ASSUMPTION: Final = "the outputs of the function are independent and identically distributed"


@dataclass(frozen=True)
class Claim:
    """What is claimed of the randomizer.

    Attributes
    ----------
    epsilon : float or None
        In nats; None where nothing is claimed.
    delta : float
        δ of the (ε, δ)-DP that is claimed, or under which ε is bounded.
    """

    epsilon: Annotated[float | None, Option("The claimed ε, in nats.")] = None
    delta: Annotated[float, Option("The δ of (ε, δ)-DP.")] = 0.0


@dataclass(frozen=True)
class PairFound:
    """A pair of inputs and about how well its best event tells them apart (estimated)."""

    inputs: tuple[Any, Any]
    epsilon: float
    guesses: float


@dataclass(frozen=True)
class BlackBoxAudit:
    """The outcome of a black-box audit.

    Attributes
    ----------
    function : str
    inputs : tuple
    samples : int
        Outputs per input of the tested pair, about.
    seed : int
    confidence : float
        One-sided, of the certified bounds together.
    claim : Claim
    epsilon_lower : float
        Certified, in nats.
    delta_lower : float or None
        Certified lower bound of δ at the claimed ε; None without a claim.
    detectable : float or None
        The smallest ε that the event would have refuted the claim with, at 90 % power.
    max_excess : float
        By how much ``detectable`` may exceed the claim for the audit to count.
    candidates, right, wrong : int
        Fresh outputs, and right and wrong guesses of their input.
    pair : tuple of int
        Which inputs were told apart.
    event : mapping
        The rule that guesses.
    pairs : sequence of PairFound
    opaque : int
        Entries of an output that never repeat and that no event could use.
    """

    function: str
    inputs: tuple[Any, ...]
    samples: int
    seed: int
    confidence: float
    claim: Claim
    epsilon_lower: float
    delta_lower: float | None
    detectable: float | None
    max_excess: float
    candidates: int
    right: int
    wrong: int
    pair: tuple[int, int]
    event: Mapping[str, Any]
    pairs: Sequence[PairFound]
    opaque: int

    @property
    def verdict(self) -> Literal["pass", "fail", "inconclusive"]:
        """``fail``: a bound exceeds the claim; ``pass``: none does, and that of ε could have."""
        claimed = self.claim.epsilon
        if claimed is None:
            return "inconclusive"
        if self.epsilon_lower > claimed or self._exceeds_delta:
            return "fail"
        assert self.detectable is not None
        weak = self.detectable > claimed + self.max_excess
        return "inconclusive" if weak or self.opaque else "pass"

    @property
    def _exceeds_delta(self) -> bool:
        return self.delta_lower is not None and self.delta_lower > self.claim.delta

    def sentences(self) -> list[str]:
        """Return the outcome in words, the verdict first."""
        first, second = (self.inputs[i] for i in self.pair)
        delta = f" (δ = {self.claim.delta:g})" if self.claim.delta else ""
        return [
            self._headline(delta),
            f"  certified    ε ≥ {_down(self.epsilon_lower)}{delta} at {self.confidence:.6g} "
            f"confidence, from inputs {first!r} and {second!r}: {self.right:,} of "
            f"{self.right + self.wrong:,} guesses right in {self.candidates:,} outputs",
            *self._remarks(),
        ]

    def _headline(self, delta: str) -> str:
        claimed = self.claim.epsilon
        if claimed is None:
            return "Nothing was claimed, so nothing was judged."
        if self.verdict == "fail" and self.epsilon_lower <= claimed:
            assert self.delta_lower is not None
            return (
                f"Violation found: the randomizer claims ε = {claimed:g}{delta}, but at that ε at "
                f"least δ = {_down(self.delta_lower, 6)} is certified."
            )
        if self.verdict == "fail":
            return (
                f"Violation found: the randomizer claims ε = {claimed:g}{delta}, but at least "
                f"ε = {_down(self.epsilon_lower)} is certified."
            )
        if self.verdict == "pass":
            return f"No violation found: no bound exceeds the claimed ε = {claimed:g}{delta}."
        return f"Inconclusive: nothing exceeds ε = {claimed:g}{delta}, but too little could have."

    def _remarks(self) -> list[str]:
        lines = []
        if self.claim.epsilon is not None and self.verdict != "fail":
            lines.append(f"  power        {self._power(self.claim.epsilon)}")
        if self._exceeds_delta:
            assert self.delta_lower is not None
            lines.append(f"  certified    δ ≥ {_down(self.delta_lower, 6)} at the claimed ε")
        if self.epsilon_lower == 0 and self.claim.epsilon:
            lines.append(
                "  warning      no two inputs were told apart: does the function know them as "
                f'{type(self.inputs[0]).__name__}? In a JSON list 0 is a number and "0" a text'
            )
        if self.opaque:
            lines.append(
                f"  warning      {self.opaque} entry(ies) of the outputs hardly ever repeat and "
                f"could not be used; if one is a public seed, give --feature-function"
            )
        return lines

    def _power(self, claimed: float) -> str:
        assert self.detectable is not None
        if math.isinf(self.detectable):
            return "no ε would have been found on this event; raise --samples"
        enough = "" if self.detectable <= claimed + self.max_excess else "; raise --samples"
        return (
            f"on this event ε = {math.ceil(self.detectable * 1000) / 1000:g} would have been "
            f"found with probability 0.9{enough}"
        )

    def to_json(self) -> str:
        """Return the outcome as JSON, keys sorted."""
        certified = {"kind": "certified", "side": "lower", "level": self.confidence}
        bound = certified | {
            "value": self.epsilon_lower,
            "low": self.epsilon_lower,
            "unit": "nats",
            "n": self.candidates,
            "count": self.right,
            "method": "right guesses of which of two inputs was given, event chosen beforehand",
            "assumptions": [ASSUMPTION],
            "reference": "Steinke, Nasr & Jagielski (2023), Theorem 5.2",
        }
        shift = self.delta_lower
        content = {
            "schema_version": SCHEMA_VERSION,
            "verdict": self.verdict,
            "function": self.function,
            "inputs": [_plain(value) for value in self.inputs],
            "samples": self.samples,
            "seed": self.seed,
            "claim": {"epsilon": self.claim.epsilon, "delta": self.claim.delta},
            "epsilon_lower": bound,
            "delta_lower": None
            if shift is None
            else certified | {"value": shift, "low": shift, "epsilon": self.claim.epsilon},
            "power": {
                "detectable_epsilon": _number(self.detectable),
                "probability": 0.9,
                "max_undetected_excess": self.max_excess,
            },
            "witness": {
                "inputs": [_plain(self.inputs[i]) for i in self.pair],
                "candidates": self.candidates,
                "guesses": self.right + self.wrong,
                "right": self.right,
                "event": dict(self.event),
            },
            "pairs": [
                {
                    "inputs": [_plain(value) for value in pair.inputs],
                    "epsilon": {"kind": "estimated", "value": pair.epsilon},
                    "guessed": {"kind": "estimated", "value": pair.guesses},
                }
                for pair in self.pairs
            ],
            "opaque_entries": self.opaque,
        }
        return json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _down(bound: float, digits: int = 3) -> str:
    return f"{math.floor(bound * 10**digits) / 10**digits:g}"


def _number(value: float | None) -> float | str | None:
    return "inf" if value is not None and math.isinf(value) else value


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | list) else repr(value)
