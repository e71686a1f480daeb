"""What to release, what it costs and the command to make it: the parts of an advice."""

from collections.abc import Iterable
from typing import Final, Literal

from pydantic import Field, PrivateAttr

from ldpaudit.doors import Estimate, Frozen, number
from ldpaudit.result import Check, Kind, Number
from ldpaudit.result.numbers import as_percent

Outcome = Literal["found", "none", "undecided"]
_SURENESS: Final = ("estimated", "certified", "exact")
_WORTH: Final = {
    "test_accuracy": "a model that learns from it is right in {} of cases",
    "test_squared_error": "a model that learns from it has a squared error of {}",
    "share_error": "labels' shares are off by {}, typically",
}


class Limit(Frozen):
    """A limit of the policy, and what a simulated release of a recommendation does about it."""

    check: str = Field(description="The policy's check.")
    title: str = Field(description="What is limited.")
    level: str = Field(description="How grave a violation is: error or warn.")
    unit: str = Field(description="The unit of the value.")
    value: Number = Field(description="What is reached.")
    limit: Number = Field(description="What is allowed.")
    kind: Kind = Field(description="How sure the value is.")
    passes: bool = Field(description="Whether it is within the limit, as the audit judged it.")

    @classmethod
    def of(cls, check: Check) -> "Limit | None":
        """Return the limit of an audit's check; None where it has none."""
        if check.limit is None or check.observed is None:
            return None
        nats = check.id in ("claimed-epsilon", "renyi-epsilon", "undetected-excess")
        return cls(
            check=check.id,
            title=check.question,
            level=check.level,
            unit="nats" if nats else "proportion",
            value=check.observed,
            limit=check.limit,
            kind="estimated" if check.side is None else "certified",
            passes=check.verdict == "pass",
        )


class Choice(Frozen):
    """A mechanism for one private column."""

    mechanism: str = Field(description="Its name.")
    parameter: str = Field("epsilon", description="The parameter that states its noise.")
    value: Number | None = Field(
        description="The value of that parameter; null for several columns."
    )
    epsilon: Number = Field(
        description="ε in nats, all costs included; of several columns their sum."
    )
    utility: Estimate | None = Field(
        description="What the release is good for; null for several columns, and where it was not "
        "simulated."
    )
    leakage: dict[str, Estimate] | None = Field(
        description="What an attacker learns, by id; null for several columns."
    )
    limits: list[Limit] | None = Field(description="The policy's limits; null for several columns.")
    simulated: bool = Field(description="Whether a release was simulated, audited and learnt from.")
    passed: int = Field(
        0, description="How many simulated audits it passed; a single pass may be luck."
    )
    kind: Kind = Field(description="How sure the least sure of the numbers is.")

    @property
    def sure(self) -> str:
        """How sure the numbers are, and whether a second simulated audit passed, too."""
        if not self.simulated:
            return f"{self.kind}, not simulated"
        return self.kind if self.passed > 1 else f"{self.kind}, not confirmed"

    @property
    def numbers(self) -> dict[str, Estimate]:
        """What a release is worth, then what it reveals, by id."""
        worth = {} if self.utility is None else {self.utility.id: self.utility}
        return worth | (self.leakage or {})

    @property
    def words(self) -> str:
        """Name and ε."""
        return f"{self.mechanism} ε = {self.epsilon:g}"


def least_sure(kinds: Iterable[Kind]) -> Kind:
    """Return how sure the least sure of numbers is."""
    return min(kinds, key=_SURENESS.index)


class Recommendation(Choice):
    """What to release."""

    labels: list[Choice] | None = Field(
        None,
        description="Of several private columns each one's mechanism, in the order of --label.",
    )
    command: str = Field(
        description="The command that makes it; it names the columns and the file as they were "
        "typed."
    )

    @property
    def choices(self) -> list[Choice]:
        """The mechanism of each private column."""
        return self.labels or [self]


class Candidate(Frozen):
    """A release that was simulated, or one whose closed form says to try it first."""

    mechanism: str = Field(description="Its name; independent for several columns.")
    parameter: str = Field("epsilon", description="The parameter that states its noise.")
    value: Number = Field(description="The value of that parameter, of several columns the sum.")
    epsilon: Number = Field(description="ε in nats.")
    passes: bool = Field(description="Whether simulated releases of it met the policy.")
    utility: Number | None = Field(
        description="What a learner made of it, of several columns of the first; null where that "
        "is not known."
    )
    accuracy: Number | None = Field(
        description="The share of labels that an attacker guesses right, of several columns of "
        "the first; null where it cannot be made."
    )
    kind: Kind = Field(description="How sure these numbers are.")
    why_not: str = Field(description="Why it is not recommended; empty where it met the policy.")


class Dropped(Frozen):
    """Feature columns to leave out."""

    columns: int = Field(description="How many.")
    reason: str = Field(description="Why.")
    before: dict[str, Estimate] = Field(
        description="What the features alone reveal with them, by id."
    )
    after: dict[str, Estimate] = Field(
        description="What the features alone reveal without them, by id."
    )
    _names: tuple[str, ...] = PrivateAttr(())

    @classmethod
    def of(
        cls,
        names: tuple[str, ...],
        reason: str,
        before: tuple[Estimate, ...] = (),
        after: tuple[Estimate, ...] = (),
    ) -> "Dropped":
        """Return columns to leave out: their names are for the terminal and the command."""
        known = [{one.id: one for one in some} for some in (before, after)]
        made = cls(columns=len(names), reason=reason, before=known[0], after=known[1])
        made._names = names
        return made

    @property
    def names(self) -> tuple[str, ...]:
        """Their names, which are not stored."""
        return self._names


class AdviceRun(Frozen):
    """How the advice came about."""

    seed: int = Field(description="The root of all randomness.")
    rows: int = Field(description="The rows of the table.")
    reported: int = Field(
        description="The rows that utility and leakage were measured on, which nothing was learnt "
        "from."
    )
    level: float = Field(description="The confidence of all intervals together.")
    simulated: int = Field(description="How many releases were simulated.")
    use: str = Field(description="What the release is for: classification, regression or counts.")
    policy_sha256: str | None = Field(
        description="The digest of the policy file; null for a preset."
    )


def found_words(best: Recommendation, constant: float | None = None) -> str:
    """Return what to release in one sentence.

    ``constant``: what one answer for everybody is worth, where no release is shown to beat it.
    """
    once = "" if best.passed > 1 else " Not confirmed: only one simulated audit passed so far."
    if best.labels is not None:
        parts = ", ".join(choice.words for choice in best.labels)
        return f"Release the {len(best.labels)} private columns with {parts}, in this order.{once}"
    leakage, said = best.leakage or {}, list[str]()
    if best.utility is not None:
        said.append(_WORTH[best.utility.id].format(_plain(best.utility)))
    said.append(f"an attacker guesses {_plain(leakage['advice.accuracy'])} of the labels")
    if (gain := leakage.get("advice.advantage")) is not None:
        points = as_percent(number(gain.value)).removesuffix("\u00a0%")
        # Of its own features where the audit of a simulated release measured it.
        alone = "without the release" if gain.section == "leakage" else "from its features alone"
        said.append(f"{points} points more than {alone}")
    if constant is None or best.utility is None:
        return f"Release with {best.words}: {', '.join(said)}.{once}"
    return (
        "No release that meets the policy is shown to be of use: "
        f"{constant_words(best.utility, constant)}. With {best.words}, the best of them, "
        f"{', '.join(said)}.{once}"
    )


def constant_words(utility: Estimate, constant: float, label: str = "") -> str:
    """Return what one answer for everybody is worth, in words, as a ``utility`` is measured."""
    of_label, worth = label and f" of {label}", number(constant)
    if utility.id == "test_squared_error":
        return f"always guessing the mean{of_label} has a squared error of {worth}"
    share = as_percent(worth)
    return f"always guessing the commonest label{of_label} is right in {share} of cases"


def _plain(estimate: Estimate) -> str:
    text = number(estimate.value)
    return as_percent(text) if estimate.unit == "proportion" else text
