"""The form of what an audit of a function stores."""

from typing import Any

from ldpaudit.result import Frozen, Kind, Number, Side, Verdict


class StoredClaim(Frozen):
    """What was claimed of the function."""

    epsilon: Number | None
    """The claimed ε in nats; null without a claim."""
    delta: float
    """The claimed δ."""


class StoredNumber(Frozen):
    """A number, and how sure it is."""

    value: Number
    """The number; for a bound the bound itself."""
    kind: Kind
    """Certified, or estimated."""


class StoredShift(StoredNumber):
    """A certified lower bound of δ."""

    low: Number
    """The bound."""
    side: Side
    """Which end is bounded."""
    level: float
    """The confidence of both bounds together."""
    epsilon: Number
    """The claimed ε, in nats, at which δ is bounded."""


class StoredBound(StoredNumber):
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
    """What it rests on."""
    reference: str
    """The source, with its theorem."""


class StoredPower(Frozen):
    """What the audit could have found."""

    detectable_epsilon: Number | None
    """The smallest ε that would have refuted the claim; null without a claim."""
    probability: float
    """With which probability."""
    max_undetected_excess: Number
    """The excess that may go unnoticed; a weaker audit is inconclusive."""


class StoredWitness(Frozen):
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


class StoredPair(Frozen):
    """Two inputs, and about how well they can be told apart."""

    inputs: list[Any]
    """The two inputs."""
    epsilon: StoredNumber
    """The ε that the rule would show, in nats."""
    guessed: StoredNumber
    """The share of outputs for which the rule guesses."""


class StoredAudit(Frozen):
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
    claim: StoredClaim
    """What was claimed."""
    epsilon_lower: StoredBound
    """The bound of ε."""
    delta_lower: StoredShift | None
    """The bound of δ at the claimed ε; null without a claim."""
    power: StoredPower
    """What the audit could have found."""
    witness: StoredWitness
    """The evidence, which anybody can check."""
    pairs: list[StoredPair]
    """Every pair of inputs, the one that tells most first."""
    opaque_entries: int
    """Entries of outputs that never repeat, of which nothing was learnt."""
