"""The options of ``ldpaudit mechanism audit``."""

import json
import math
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from ldpaudit.errors import InputError
from ldpaudit.options import Argument, Option
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

    Attributes
    ----------
    function : str
        ``MODULE:FUNCTION`` or ``FILE.py:FUNCTION``; called as ``function(value, n, rng)``.
    inputs : tuple
        At least two different values.
    samples : int
        Outputs per input of the tested pair; a tenth to a half of them, and as many of every other
        input, are used to choose the event.
    claim : Claim
        ε in nats, None where nothing is claimed; δ of the (ε, δ)-DP that is claimed, or under
        which ε is bounded.
    features : str
        ``MODULE:FUNCTION`` called as ``features(outputs, value)``; empty: none. Its value for an
        output must not depend on the other outputs.
    confidence : float
        One-sided, in (0, 1).
    max_excess : float
        An audit that could miss a larger excess of ε than this is inconclusive, in nats.
    timeout : float
        Seconds that one call may take.
    processes : int or None
        How many draw at once; None: one per processor, at most 8.
    seed : int
    path : tuple of str
        Where modules are searched first.
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
            "The values to tell apart: A,B,… (0 is a number) or a JSON list.",
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
    timeout: Annotated[float, Option("Seconds that one call of the function may take.")] = 60.0
    processes: Annotated[
        int | None, Option("Processes to draw in (default: one per processor).", "--threads")
    ] = None
    seed: Annotated[int, Option("The seed of all generators.")] = 0
    path: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.inputs) < 2:
            raise InputError(f"There must be at least two inputs. Got {len(self.inputs)} instead.")
        if len(self.inputs) > INPUTS:
            raise InputError(f"There must be at most {INPUTS:,} inputs. Got {len(self.inputs):,}.")
        if any(a == b for i, a in enumerate(self.inputs) for b in self.inputs[:i]):
            raise InputError("The inputs must differ from one another; some are given twice.")
        if self.samples < FEWEST_SAMPLES:
            raise InputError(
                f"There must be at least {FEWEST_SAMPLES} samples. Got {self.samples} instead."
            )
        if self.samples > SAMPLES or not self.timeout <= SECONDS:
            raise InputError(
                f"There must be at most {SAMPLES:,} samples, and {SECONDS:,} seconds for a call."
            )
        if not 0 < self.confidence < 1:
            raise InputError(f"The confidence must lie in (0, 1). Got {self.confidence:g} instead.")
        if not 0 <= self.claim.delta < 1:
            raise InputError(f"δ must lie in [0, 1). Got {self.claim.delta:g} instead.")
        epsilon = self.claim.epsilon
        if epsilon is not None and not (epsilon >= 0 and math.isfinite(epsilon)):
            raise InputError(f"The claimed ε must be finite and at least 0. Got {epsilon:g}.")
        if epsilon is not None and epsilon > EPSILON[1]:
            raise InputError(f"The claimed ε must be at most {EPSILON[1]:g}. Got {epsilon:g}.")
        if not self.timeout > 0 or not self.max_excess > 0 or (self.processes or 1) < 1:
            raise InputError("The time limit, the excess and the processes must be above 0.")
