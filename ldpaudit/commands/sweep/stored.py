"""The form of what ``sweep`` stores."""

from typing import Annotated

from pydantic import ConfigDict, Field

from ldpaudit.result import Decision, Estimate, Frozen, Kind, Number, Unit, Verdict


class StoredMean(Frozen):
    """A number of the audits of one setting, averaged over its draws."""

    title: str
    """What people call it."""
    kind: Kind
    """How sure it is."""
    unit: Unit
    """The unit of the value."""
    value: Number
    """The mean."""
    low: Number | None
    """The lower end of its interval."""
    high: Number | None
    """The upper end of its interval."""
    level: float | None
    """The confidence of the interval; null without one."""
    repeats: list[Number]
    """The number of each draw."""


class StoredEnds(Frozen):
    """The probability that a draw passes, by an interval."""

    low: float
    """The lower end."""
    high: float
    """The upper end."""
    level: float
    """The confidence of the interval."""


class StoredShare(StoredEnds):
    """The share of draws that pass."""

    value: float
    """The share."""
    n: int
    """The draws that were measured."""
    count: int
    """Those that pass."""


class StoredPoint(Frozen):
    """A mechanism at one amount of noise; what audits and learners measured stands under its id."""

    model_config = ConfigDict(extra="allow")

    mechanism: str
    """Its name."""
    parameter: str
    """Which parameter was set: lambda or epsilon."""
    value: Number
    """Its value."""
    epsilon: Number | None
    """ε in nats, exact."""
    noise: Annotated[Number | None, Field(alias="lambda")]
    """λ, exact, where it has one."""
    verdict: Verdict | None
    """The worst verdict of the draws; null where none could be measured."""
    decision: Decision
    """Whether a release made this way may be published."""
    verdicts: dict[Verdict, int]
    """How many draws have which verdict."""
    sentence: str
    """The worst verdict in words."""
    pass_share: StoredShare | None
    """The share of draws that pass; null where none could be measured."""
    failed: list[str]
    """Why draws could not be measured."""
    correction: str
    """How the learner's loss is corrected for the noise."""


class StoredNeighbour(Frozen):
    """The next setting of the grid with less, or more, noise."""

    value: Number
    """The value of its parameter."""
    verdict: Verdict | None
    """Its worst verdict."""
    passes: int
    """Draws that pass."""
    draws: int
    """Draws that were measured."""


class StoredLeast(Frozen):
    """The least noise of one mechanism that the policy lets pass."""

    mechanism: str
    """Its name."""
    parameter: str | None
    """Which parameter was set; null where no setting passes."""
    value: Number | None
    """Its value."""
    epsilon: Number | None
    """ε in nats."""
    passes: int | None
    """Draws that pass."""
    draws: int | None
    """Draws that were measured."""
    pass_share: StoredEnds | None
    """The probability that a draw passes."""
    less_noise: StoredNeighbour | None
    """The next setting with less noise."""
    more_noise: StoredNeighbour | None
    """The next setting with more noise."""
    more_noise_that_does_not_pass: list[Number]
    """Values with more noise at which draws do not pass all the same."""
    sentence: str
    """The answer in words."""


class StoredRun(Frozen):
    """How to repeat the sweep."""

    seed: int
    """The root of all randomness."""
    rows: int
    """Rows of each simulated release."""
    test_rows: int | None
    """Rows that learners were tested on."""
    repeats: int
    """Draws of each setting."""
    learner: str
    """The learner."""


class StoredSweep(Frozen):
    """Mechanisms over a grid of noise: simulated, audited, and learnt from."""

    access: str
    """Who may see it."""
    ldpaudit_version: str
    """The version that made it."""
    points: list[StoredPoint]
    """The settings, mechanism by mechanism, the least noise first."""
    least_noise: dict[str, StoredLeast]
    """The answer, by the name of the mechanism."""
    reference: dict[str, Estimate] | None
    """The learner's score with the true labels, under its id."""
    notes: list[str]
    """Sentences for people."""
    run: StoredRun
    """How to repeat it."""
