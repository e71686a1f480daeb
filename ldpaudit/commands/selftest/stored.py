"""The form of what ``selftest`` stores."""

from typing import Any, Literal

from ldpaudit.result import Frozen


class StoredFigure(Frozen):
    """How often something happened, against what is documented."""

    id: str
    """A stable name, such as ``false_alarms``."""
    title: str
    """What is counted."""
    count: int
    """How often it happened."""
    n: int
    """Of how many releases."""
    value: float | None
    """The observed share; null where there was no release."""
    low: float
    """The lower end of its Clopper–Pearson interval."""
    high: float
    """The upper end."""
    level: float
    """The interval's confidence."""
    stated: float
    """The share that is documented."""
    side: Literal["at least", "at most"]
    """What the documented share is of the true one."""
    p_value: float
    """How likely a count this bad is where the documented share is true."""
    finding: Literal["as documented", "refuted", "too few"]
    """Whether the count fits what is documented."""


class StoredRow(Frozen):
    """How the audits of one group of releases ended."""

    group: str
    """What they have in common: mechanism, rows, labels, made or truth."""
    name: str
    """Its value."""
    leaking: bool
    """Whether they leak."""
    n: int
    """How many there are."""
    ended: dict[str, int]
    """How many audits ended with each verdict."""
    found: int
    """Of leaks: in how many a check that names the leak failed."""
    warned: int
    """In how many a check of level warn failed."""


class StoredSelftest(Frozen):
    """What a self-test found."""

    schema_version: str
    """The version of this form."""
    verdict: Literal["pass", "fail", "inconclusive"]
    """Whether this installation works as documented."""
    sentence: str
    """The same for people."""
    chance: float
    """How often a good installation is said not to work."""
    figures: list[StoredFigure]
    """Coverage, false alarms and power."""
    rows: list[StoredRow]
    """How audits ended, group by group."""
    releases: list[dict[str, Any]]
    """Each planted release: what it was, and how its audit ended."""
    planned: int
    """Releases of the plan; fewer were audited where it ended early."""
    seed: int
    """The seed of all releases and audits."""
    thorough: bool
    """Whether it is the long plan."""
    seconds: float
    """How long it took."""
