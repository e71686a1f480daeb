"""The options of ``ldpaudit mechanism audit``."""

import json
import math
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from ldpaudit.doors import Argument, Option, refuse
from ldpaudit.work.documents import parse_json
from ldpaudit.work.limits import EPSILON, INPUTS, SAMPLES, SECONDS

FEWEST_SAMPLES: Final = 200


def parse_inputs(text: str) -> tuple[Any, ...]:
    """Read the inputs of the command line: ``A,B,…`` or a JSON list (InputError where it is none).

    A part that is a JSON number, true or false is one; anything else is text.
    """
    if text.lstrip().startswith("["):
        invalid = "Inputs that begin with [ must be a JSON list."
        return tuple(parse_json(text, "The inputs", invalid))
    return tuple(_value(part.strip()) for part in text.split(","))


def _value(text: str) -> Any:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, int | float) else text


@dataclass(frozen=True)
class Claim:
    """What is claimed of the randomizer."""

    epsilon: Annotated[float | None, Option("The claimed ε, in nats.")] = None
    delta: Annotated[float, Option("The δ of (ε, δ)-DP.")] = 0.0


@dataclass(frozen=True)
class BlackBoxRequest:
    """The options of ``ldpaudit mechanism audit``.

    A tenth to a half of the samples, and as many of every other input, serve to choose the event.
    ``claim``: ε is None where nothing is claimed; δ is that of the (ε, δ)-DP that is claimed, or
    under which ε is bounded. The value of ``features`` for an output must not depend on the other
    outputs. ``path``: where modules are searched first.
    """

    function: Annotated[
        str,
        Argument(
            "The randomizer, FUNCTION(value, n, rng) -> n outputs; or FILE.py:FUNCTION.",
            metavar="MODULE:FUNCTION",
        ),
    ]
    inputs: Annotated[
        tuple[Any, ...],
        Option(
            "The values to compare: A,B,… (0 is a number) or a JSON list.",
            type=str,
            read=parse_inputs,
        ),
    ]
    samples: Annotated[int, Option("Outputs to draw of each input of the tested pair.")] = 100_000
    claim: Claim = field(default_factory=Claim)
    features: Annotated[
        str,
        Option("MODULE:FUNCTION(outputs, value) -> what is public of them.", "--feature-function"),
    ] = ""
    confidence: Annotated[float, Option("One-sided, of the certified bound.")] = 0.95
    max_excess: Annotated[
        float,
        Option("An audit that could miss more is inconclusive.", "--max-undetected-excess"),
    ] = 0.5
    stop_early: Annotated[
        bool, Option("Test in growing parts, and stop as soon as the claim is refuted.")
    ] = False
    timeout: Annotated[float, Option("Seconds that one call of the function may take.")] = 60.0
    processes: Annotated[
        int | None, Option("Processes to draw in (default: one per processor).", "--threads")
    ] = None
    seed: Annotated[int, Option("The seed of all generators.")] = 0
    path: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n, claimed, delta = len(self.inputs), self.claim.epsilon, self.claim.delta
        twice = any(a == b for i, a in enumerate(self.inputs[:INPUTS]) for b in self.inputs[:i])
        finite = claimed is None or (claimed >= 0 and math.isfinite(claimed))
        processes = 1 if self.processes is None else self.processes
        positive = self.timeout > 0 and self.max_excess > 0 and processes > 0
        for wrong, message in (
            (n < 2, f"There must be at least two inputs. Got {n} instead."),
            (n > INPUTS, f"There must be at most {INPUTS:,} inputs. Got {n:,}."),
            (twice, "The inputs must differ from one another; some are given twice."),
            (
                self.samples < FEWEST_SAMPLES,
                f"There must be at least {FEWEST_SAMPLES} samples. Got {self.samples} instead.",
            ),
            (
                self.samples > SAMPLES or not self.timeout <= SECONDS,
                f"There must be at most {SAMPLES:,} samples, and {SECONDS:,} seconds for a call.",
            ),
            (
                not 0 < self.confidence < 1,
                f"The confidence must lie in (0, 1). Got {self.confidence:g} instead.",
            ),
            (not 0 <= delta < 1, f"δ must lie in [0, 1). Got {delta:g} instead."),
            (not finite, f"The claimed ε must be finite and at least 0. Got {claimed or 0:g}."),
            (
                (claimed or 0) > EPSILON[1],
                f"The claimed ε must be at most {EPSILON[1]:g}. Got {claimed or 0:g}.",
            ),
            (not positive, "The time limit, the excess and the processes must be above 0."),
            (
                self.stop_early and (claimed is None or delta > 0),
                "To stop early there must be a claim of pure ε (--epsilon, no --delta).",
            ),
        ):
            refuse(wrong, message)
