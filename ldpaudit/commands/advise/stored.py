"""The form of what ``advise`` stores."""

from typing import Literal

from ldpaudit.result import Estimate, Frozen, Kind, Number


class StoredLimit(Frozen):
    """A limit of the policy, and what a recommendation does about it."""

    check: str
    """The policy's check."""
    title: str
    """What is limited."""
    level: str
    """How grave a violation is: error or warn."""
    unit: str
    """The unit of the value."""
    value: Number
    """What is reached, on the rows that candidates were compared on."""
    limit: Number
    """What is allowed."""
    kind: Kind
    """How sure the value is."""
    passes: bool
    """Whether it is within the limit, chance allowed for."""


class StoredChoice(Frozen):
    """A mechanism for one private column."""

    mechanism: str
    """Its name."""
    parameter: str
    """The parameter that states its noise."""
    value: Number | None
    """The value of that parameter; null for several columns."""
    epsilon: Number
    """ε in nats, all costs included; of several columns their sum."""
    utility: Estimate | None
    """What the release is good for; null for several columns."""
    leakage: dict[str, Estimate] | None
    """What an attacker learns, by id; null for several columns."""
    limits: list[StoredLimit] | None
    """The policy's limits; null for several columns."""
    simulated: bool
    """Whether a release was simulated, audited and learnt from."""
    kind: Kind
    """How sure the least sure of the numbers is."""


class StoredRecommendation(StoredChoice):
    """What to release."""

    labels: list[StoredChoice] | None = None
    """Of several private columns each one's mechanism, in the order of --label."""
    command: str
    """The command that makes it; it names the columns and the file as they were typed."""


class StoredCandidate(Frozen):
    """A mechanism at one ε, by closed forms."""

    mechanism: str
    """Its name."""
    parameter: str
    """The parameter that states its noise."""
    value: Number
    """The value of that parameter."""
    epsilon: Number
    """ε in nats."""
    passes: bool
    """Whether it is within every limit of the policy."""
    utility: Number
    """What it is expected to be worth."""
    accuracy: Number
    """The share of labels that an attacker guesses right."""
    kind: Kind
    """How sure these numbers are."""


class StoredDropped(Frozen):
    """Feature columns to leave out."""

    columns: int
    """How many."""
    reason: str
    """Why."""
    before: dict[str, Estimate]
    """What the features alone tell with them, by id."""
    after: dict[str, Estimate]
    """What the features alone tell without them, by id."""


class StoredAdviceRun(Frozen):
    """How the advice came about."""

    seed: int
    """The root of all randomness."""
    rows: int
    """The rows of the table."""
    reported: int
    """The rows that utility and leakage were measured on, which no choice has seen."""
    level: float
    """The confidence of all intervals together."""
    simulated: int
    """How many releases were simulated."""
    use: str
    """What the release is for: classification, regression or counts."""
    policy_sha256: str | None
    """The digest of the policy file; null for a preset."""


class StoredAdvice(Frozen):
    """What to release so that a policy lets it pass."""

    access: str
    """Who may see it."""
    schema_version: str
    """The version of this form."""
    ldpaudit_version: str
    """The version that wrote it."""
    outcome: Literal["found", "none", "undecided"]
    """Whether something passes, nothing in reach does, or that is not known."""
    sentence: str
    """The advice in one sentence."""
    recommendations: list[StoredRecommendation]
    """Three at most, the best first."""
    candidates: list[StoredCandidate]
    """What was looked at, of the first private column."""
    dropped: list[StoredDropped]
    """Feature columns to leave out."""
    notes: list[str]
    """Remarks."""
    run: StoredAdviceRun
    """How it came about."""
