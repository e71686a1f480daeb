"""The comparison in three sentences: privacy, the advantage over the features alone, utility.

A change is named only where its interval leaves its sign in no doubt. Each difference stands with
its interval, at one level at which all of them hold together. The advantage has a sentence of its
own: replaced features tell less by themselves, so an attack can be right less often although the
release adds more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ldpaudit.commands.compare.differences.outside import ADVANTAGE, BEST, NUMBERS
from ldpaudit.commands.compare.wording import Intervals, percent_of, points_of, signed_points
from ldpaudit.commands.utility.scores import ACCURACY, SQUARED_ERROR
from ldpaudit.reports.text.numbers import number
from ldpaudit.result import AuditResult, Estimate
from ldpaudit.result.comparison import Difference


@dataclass(frozen=True)
class _Topic:
    """What one sentence is about.

    Attributes
    ----------
    id : str
        Of the number.
    what : str
        The sentence up to the number, with a place for it and for the first release.
    words : two str
        What a smaller and a larger number is called.
    beside : str
        How another release is named.
    unit : {"percent", "points", "plain"}
        How the number is given: as a share in percent, a difference of shares in percent points,
        or as it is.
    """

    id: str
    what: str
    words: tuple[str, str]
    beside: str = "in"
    unit: Literal["percent", "points", "plain"] = "percent"


_PRIVACY: Final = (
    _Topic(
        BEST,
        "the strongest attack guesses {value} of the labels right in {name}",
        ("fewer", "more"),
    ),
    _Topic(
        NUMBERS,
        "the strongest guess of the numbers has a mean squared error of {value} in {name}",
        ("smaller", "larger"),
        unit="plain",
    ),
)
_ADVANTAGE: Final = (
    _Topic(
        ADVANTAGE,
        "{name} adds {value} percent points to guesses",
        ("less", "more"),
        beside="with",
        unit="points",
    ),
)
_UTILITY: Final = (
    _Topic(
        ACCURACY,
        "a model trained on {name} is right for {value} of the test rows",
        ("fewer", "more"),
        beside="with",
    ),
    _Topic(
        SQUARED_ERROR,
        "a model trained on {name} has a mean squared error of {value} on the test rows",
        ("smaller", "larger"),
        beside="with",
        unit="plain",
    ),
)
_SENTENCES: Final = (
    ("Privacy", _PRIVACY, "no attack was scored, which needs the true labels (--truth)"),
    ("Advantage over the features alone", _ADVANTAGE, "it was not measured"),
    ("Utility", _UTILITY, "no test rows were given (--test)"),
)
_OF_NUMBERS: Final = "it is measured for labels that are classes, not for numbers"

Named = Sequence[tuple[str, AuditResult]]
"""The releases with their names; the others are compared with the first."""


def sentences(
    releases: Named, differences: Sequence[Difference], confidence: float
) -> tuple[str, ...]:
    """Return the three sentences.

    ``differences`` are those of the releases in their order; the simultaneous ones hold together
    at ``confidence``.
    """
    return tuple(
        f"{title}: {_sentence(topics, why, releases, differences, confidence)}."
        for title, topics, why in _SENTENCES
    )


def intervals_of(differences: Sequence[Difference], confidence: float) -> Intervals:
    """Return how to give the intervals of the differences that the sentences name."""
    ids = {topic.id for _, topics, _ in _SENTENCES for topic in topics}
    return Intervals.of([d for d in _first_of_each(differences) if d.id in ids], confidence)


def _first_of_each(differences: Sequence[Difference]) -> list[Difference]:
    """Return one difference of each number and release: that of the family where it has one."""
    first: dict[tuple[str, str], Difference] = {}
    for difference in differences:
        first.setdefault((difference.b, difference.id), difference)
    return list(first.values())


def _sentence(
    topics: Sequence[_Topic],
    why: str,
    releases: Named,
    differences: Sequence[Difference],
    confidence: float,
) -> str:
    name, first = releases[0]
    numeric = first.estimate(NUMBERS) is not None
    usable = [t for t in topics if first.estimate(t.id) is not None]
    if numeric and topics is not _UTILITY:
        usable = [topic for topic in usable if topic.unit == "plain"]
        why = _OF_NUMBERS
    if not usable:
        return f"not compared, because {why}"
    topic = usable[0]
    value = first.estimate(topic.id)
    assert value is not None
    intervals = intervals_of(differences, confidence)
    by_letter = {d.b: d for d in _first_of_each(differences) if d.id == topic.id}
    clauses = [
        _clause(topic, other, result, by_letter.get(chr(ord("A") + place)), intervals)
        for place, (other, result) in enumerate(releases[1:], start=1)
    ]
    start = topic.what.format(value=_shown(topic, value), name=name)
    return "; ".join([start, *clauses])


def _clause(
    topic: _Topic,
    name: str,
    result: AuditResult,
    change: Difference | None,
    intervals: Intervals,
) -> str:
    value = result.estimate(topic.id)
    if value is None:
        return f"{name} was not measured in the same way"
    text = _shown(topic, value)
    if change is None:
        return f"{text} {topic.beside} {name} (no interval for the change)"
    word = topic.words[change.low > 0] if change.decided else "no difference shown"
    estimated = ", by estimate," if change.kind == "estimated" and change.decided else ""
    if topic.unit != "plain":
        moved = f"{signed_points(change.value)} percent points {intervals.points(change)}"
    else:
        plus = "+" if change.value > 0 else ""
        moved = f"{plus}{number(change.value)} {intervals.plain(change)}"
    return f"{word}{estimated} {topic.beside} {name}, {text}: {moved}"


def _shown(topic: _Topic, estimate: Estimate) -> str:
    if topic.unit == "plain":
        return number(estimate.value)
    return (percent_of if topic.unit == "percent" else points_of)(estimate.value)
