"""What to release, what it costs and the command to make it: the result of ``advise``."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Literal

from pydantic import PrivateAttr

from ldpaudit.result import Check, Estimate, Frozen, Kind, Number
from ldpaudit.result.access import CONFIDENTIAL
from ldpaudit.result.numbers import as_percent, number, percent
from ldpaudit.terminal import say, show

if TYPE_CHECKING:
    import pandas as pd

Outcome = Literal["found", "none", "undecided"]
_SURENESS: Final = ("estimated", "certified", "exact")
_VERDICTS: Final[dict[Outcome, Literal["pass", "fail", "inconclusive"]]] = {
    "found": "pass",
    "none": "fail",
    "undecided": "inconclusive",
}
NOT_RELEASED: Final = (
    "Nothing was released. Simulated releases were drawn with a seeded generator and are not kept."
)
ORDER: Final = (
    "In this order: first what no interval shows to be worth less than the best, and of these what "
    "the closed form expects to err least."
)
# Headers for numbers, by their ids.
_SHORT: Final = {
    "test_accuracy": "Learner's accuracy",
    "test_squared_error": "Learner's squared error",
    "share_error": "Error of a share",
    "advice.accuracy": "Guessed right",
    "advice.advantage": "Beyond the features",
    "advice.exceedance": "Lose too much",
}


class Limit(Frozen):
    """A limit of the policy, and what a simulated release of a recommendation does about it.

    Attributes
    ----------
    check
        The policy's check.
    title
        What is limited.
    level
        How grave a violation is: error or warn.
    unit
        The unit of the value.
    value
        What is reached.
    limit
        What is allowed.
    kind
        How sure the value is.
    passes
        Whether it is within the limit, as the audit judged it.
    """

    check: str
    title: str
    level: str
    unit: str
    value: Number
    limit: Number
    kind: Kind
    passes: bool

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
    """A mechanism for one private column.

    Attributes
    ----------
    mechanism
        Its name.
    parameter
        The parameter that states its noise.
    value
        The value of that parameter; null for several columns.
    epsilon
        ε in nats, all costs included; of several columns their sum.
    utility
        What the release is good for; null for several columns, and where it was not simulated.
    leakage
        What an attacker learns, by id; null for several columns.
    limits
        The policy's limits; null for several columns.
    simulated
        Whether a release was simulated, audited and learnt from.
    kind
        How sure the least sure of the numbers is.
    """

    mechanism: str
    parameter: str = "epsilon"
    value: Number | None
    epsilon: Number
    utility: Estimate | None
    leakage: dict[str, Estimate] | None
    limits: list[Limit] | None
    simulated: bool
    kind: Kind

    @property
    def numbers(self) -> tuple[Estimate, ...]:
        """What a release is worth, then what it gives away."""
        return (*filter(None, [self.utility]), *(self.leakage or {}).values())

    @property
    def words(self) -> str:
        """Name and ε."""
        return f"{self.mechanism} ε = {self.epsilon:g}"


def least_sure(kinds: Iterable[Kind]) -> Kind:
    """Return how sure the least sure of numbers is."""
    return min(kinds, key=_SURENESS.index)


class Recommendation(Choice):
    """What to release.

    Attributes
    ----------
    labels
        Of several private columns each one's mechanism, in the order of --label.
    command
        The command that makes it; it names the columns and the file as they were typed.
    """

    labels: list[Choice] | None = None
    command: str

    @property
    def choices(self) -> list[Choice]:
        """The mechanism of each private column."""
        return self.labels or [self]


class Candidate(Frozen):
    """A release that was simulated, or one whose closed form says to try it first.

    Attributes
    ----------
    mechanism
        Its name; independent for several columns.
    parameter
        The parameter that states its noise.
    value
        The value of that parameter, of several columns the sum.
    epsilon
        ε in nats.
    passes
        Whether simulated releases of it met the policy.
    utility
        What a learner made of it, of several columns of the first; null where that is not
        known.
    accuracy
        The share of labels that an attacker guesses right, of several columns of the first;
        null where it cannot be made.
    kind
        How sure these numbers are.
    why_not
        Why it is not recommended; empty where it met the policy.
    """

    mechanism: str
    parameter: str = "epsilon"
    value: Number
    epsilon: Number
    passes: bool
    utility: Number | None
    accuracy: Number | None
    kind: Kind
    why_not: str


class Dropped(Frozen):
    """Feature columns to leave out.

    Attributes
    ----------
    columns
        How many.
    reason
        Why.
    before
        What the features alone tell with them, by id.
    after
        What the features alone tell without them, by id.
    """

    columns: int
    reason: str
    before: dict[str, Estimate]
    after: dict[str, Estimate]
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
        told = [{one.id: one for one in some} for some in (before, after)]
        made = cls(columns=len(names), reason=reason, before=told[0], after=told[1])
        made._names = names
        return made

    @property
    def names(self) -> tuple[str, ...]:
        """Their names, which are not stored."""
        return self._names


class AdviceRun(Frozen):
    """How the advice came about.

    Attributes
    ----------
    seed
        The root of all randomness.
    rows
        The rows of the table.
    reported
        The rows that utility and leakage were measured on, which nothing was learnt from.
    level
        The confidence of all intervals together.
    simulated
        How many releases were simulated.
    use
        What the release is for: classification, regression or counts.
    policy_sha256
        The digest of the policy file; null for a preset.
    """

    seed: int
    rows: int
    reported: int
    level: float
    simulated: int
    use: str
    policy_sha256: str | None


class Advice(Frozen):
    """A recommended release that meets a policy.

    Attributes
    ----------
    access
        Who may see it.
    schema_version
        The version of this form.
    ldpaudit_version
        The version that wrote it.
    outcome
        Whether something passes, nothing in reach does, or that is not known.
    sentence
        The advice in one sentence.
    recommendations
        Three at most, the best first; where none was simulated, those to try first.
    candidates
        What was looked at.
    dropped
        Feature columns to leave out.
    notes
        Remarks.
    run
        How it came about.
    """

    access: str = CONFIDENTIAL
    schema_version: str = "1.0"
    ldpaudit_version: str
    outcome: Outcome
    sentence: str
    recommendations: list[Recommendation]
    candidates: list[Candidate]
    dropped: list[Dropped]
    notes: list[str]
    run: AdviceRun

    def __repr__(self) -> str:
        return f"Advice({self.sentence!r})"

    @property
    def verdict(self) -> Literal["pass", "fail", "inconclusive"]:
        """The outcome as the verdict whose exit status it has."""
        return _VERDICTS[self.outcome]

    def to_frame(self) -> "pd.DataFrame":
        """Return one row for each private column of each recommendation."""
        import pandas as pd

        rows = [
            {
                "place": place,
                "mechanism": choice.mechanism,
                "epsilon": choice.epsilon,
                **{one.id: one.value for one in choice.numbers},
                "kind": choice.kind,
                "command": recommendation.command,
            }
            for place, recommendation in enumerate(self.recommendations, 1)
            for choice in recommendation.choices
        ]
        return pd.DataFrame(rows)


def print_advice(advice: Advice, *, quiet: bool) -> None:
    """Print what to release, and the command to make it."""
    if not quiet:
        say(CONFIDENTIAL)
    say(advice.sentence)
    if quiet:
        for recommendation in advice.recommendations[:1]:
            say(recommendation.command)
        return
    for dropped in advice.dropped:
        say(f"  {'left out':<12} {', '.join(dropped.names)}: {dropped.reason}")
    if advice.recommendations:
        found = advice.outcome == "found"
        title = "Releases that meet the policy" if found else "What to try first, by closed form"
        show(title, *recommended(advice))
        if found and len(advice.recommendations) > 1:
            say(ORDER)
        for place, one in enumerate(advice.recommendations, 1):
            say(f"  {place}. {one.command}")
    for text in advice.notes:
        say(f"  {'note':<12} {text}")
    say(f"All intervals hold together at {percent(advice.run.level)}. {NOT_RELEASED}")


def recommended(advice: Advice) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return headers, and a row for each private column of each recommendation."""
    choices = [
        (str(place) if one.labels is None else f"{place}, column {column}", choice)
        for place, one in enumerate(advice.recommendations, 1)
        for column, choice in enumerate(one.choices, 1)
    ]
    ids = list(dict.fromkeys(one.id for _, choice in choices for one in choice.numbers))
    head = ("", "Mechanism", "ε (nats)", *(_SHORT.get(name, name) for name in ids), "Sure")
    rows = []
    for place, choice in choices:
        found = {one.id: shown(one) for one in choice.numbers}
        sure = choice.kind if choice.simulated else f"{choice.kind}, not simulated"
        numbers = (found.get(name, "–") for name in ids)
        rows.append((place, choice.mechanism, number(choice.epsilon), *numbers, sure))
    return head, rows


def shown(estimate: Estimate) -> str:
    """Return a number with its interval."""
    if estimate.low is None or estimate.high is None:
        return number(estimate.value)
    low, high = number(estimate.low, "down"), number(estimate.high, "up")
    return f"{number(estimate.value)} [{low}, {high}]"


def found_words(best: Recommendation) -> str:
    """Return what to release in one sentence."""
    if best.labels is not None:
        parts = ", ".join(choice.words for choice in best.labels)
        return f"Release the {len(best.labels)} private columns with {parts}, in this order."
    return f"Release with {best.words}: {_utility_words(best)}{_leak_words(best)}."


def _utility_words(choice: Choice) -> str:
    if choice.utility is None:
        return ""
    value = _plain(choice.utility)
    words = {
        "test_accuracy": f"a model that learns from it is right in {value} of cases, ",
        "test_squared_error": f"a model that learns from it has a squared error of {value}, ",
        "share_error": f"labels' shares are off by {value}, typically, ",
    }
    return words.get(choice.utility.id, f"{choice.utility.title} {value}, ")


def _leak_words(choice: Choice) -> str:
    leakage = choice.leakage or {}
    words = f"an attacker guesses {_plain(leakage['advice.accuracy'])} of the labels"
    if "advice.advantage" not in leakage:
        return words
    points = as_percent(number(leakage["advice.advantage"].value)).removesuffix("\u00a0%")
    return f"{words}, {points} points more than without the release"


def _plain(estimate: Estimate) -> str:
    text = number(estimate.value)
    return as_percent(text) if estimate.unit == "proportion" else text
