"""The outcome of a black-box audit: its verdict and its JSON form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from ldpaudit.commands.black_box.request import Claim

SCHEMA_VERSION: Final = "1.0"
ASSUMPTION: Final = "the outputs of the function are independent and identically distributed"


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
    function, inputs, seed, claim, max_excess
        As requested.
    samples : int
        Outputs per input of the tested pair, about.
    confidence : float
        One-sided, of the certified bounds together.
    epsilon_lower : float
        Certified, in nats.
    delta_lower : float or None
        Certified lower bound of δ at the claimed ε; None without a claim.
    detectable : float or None
        The smallest ε that the event would have refuted the claim with, at 90 % power.
    candidates, right, wrong : int
        Fresh outputs, and right and wrong guesses of their input.
    pair : tuple of int
        Which inputs were told apart.
    event : mapping
        The rule that guesses.
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
        if self.epsilon_lower > claimed or self.exceeds_delta:
            return "fail"
        assert self.detectable is not None
        weak = self.detectable > claimed + self.max_excess
        return "inconclusive" if weak or self.opaque else "pass"

    @property
    def exceeds_delta(self) -> bool:
        """Whether the bound of δ lies above the claimed δ."""
        return self.delta_lower is not None and self.delta_lower > self.claim.delta

    def stored(self) -> dict[str, Any]:
        """Return what the JSON file holds."""
        certified = {"kind": "certified", "side": "lower", "level": self.confidence}
        shift = self.delta_lower
        return {
            "schema_version": SCHEMA_VERSION,
            "verdict": self.verdict,
            "function": self.function,
            "inputs": [_plain(value) for value in self.inputs],
            "samples": self.samples,
            "seed": self.seed,
            "claim": {"epsilon": self.claim.epsilon, "delta": self.claim.delta},
            "epsilon_lower": certified
            | {
                "value": self.epsilon_lower,
                "low": self.epsilon_lower,
                "unit": "nats",
                "n": self.candidates,
                "count": self.right,
                "method": "right guesses of which of two inputs was given, event chosen beforehand",
                "assumptions": [ASSUMPTION],
                "reference": "Steinke, Nasr & Jagielski (2023), Theorem 5.2",
            },
            "delta_lower": None
            if shift is None
            else certified | {"value": shift, "low": shift, "epsilon": self.claim.epsilon},
            "power": {
                "detectable_epsilon": self.detectable,
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


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | list) else repr(value)
