"""What a comparison says: three sentences, and a row for each release on the terminal.

On privacy, the advantage over the features alone, and utility. A change is named only where its
interval leaves its sign in no doubt. Each difference stands with its interval, at one level at
which all of them hold together. The advantage has a sentence of its own: replaced features tell
less by themselves, so an attack can be right less often although the release adds more.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Final, Literal

from ldpaudit.commands.compare.differences import ADVANTAGE, BEST, NUMBERS
from ldpaudit.commands.utility.scores import ACCURACY, SQUARED_ERROR
from ldpaudit.reports.charts.figure import distinct
from ldpaudit.reports.text.quantities import Printer
from ldpaudit.reports.text.wording import publish_answer
from ldpaudit.result import AuditResult, Estimate
from ldpaudit.result.comparison import Comparison, Difference
from ldpaudit.result.harmless import one_line
from ldpaudit.result.numbers import number, percent
from ldpaudit.terminal import say, show

# Decimals beyond which an end is floating-point noise.
_EXACT: Final = 12
# Below this joint level nothing is said of it.
_LEAST_LEVEL: Final = 0.5


@dataclass(frozen=True)
class Intervals:
    """How sentences give their ``count`` intervals.

    Attributes
    ----------
    together : float
        The level at which all hold together: those of the corrected family share one error
        probability, the others add theirs.
    confidence : float
        Of the corrected family.
    """

    together: float
    confidence: float
    count: int

    @classmethod
    def of(cls, named: Sequence[Difference], confidence: float) -> "Intervals":
        """Return how to give the intervals of the named differences."""
        alone = sum(1 - d.level for d in named if not d.simultaneous and d.level is not None)
        family = 1 - confidence if any(d.simultaneous for d in named) else 0.0
        return cls(1 - alone - family, confidence, len(named))

    def points(self, difference: Difference) -> str:
        """Return the interval of a share, in percent points: ends rounded outward."""
        low, high = _outward(difference.low, ROUND_FLOOR), _outward(difference.high, ROUND_CEILING)
        return f"({self._level(difference)}: {low} to {high})"

    def plain(self, difference: Difference) -> str:
        """Return the interval, ends rounded outward."""
        low, high = (round(end, _EXACT) for end in (difference.low, difference.high))
        return f"({self._level(difference)}: {number(low, 'down')} to {number(high, 'up')})"

    def remark(self) -> str:
        """Return at which level the intervals hold together, where several do; or nothing."""
        if self.count < 2 or self.together < _LEAST_LEVEL:
            return ""
        return f"The intervals hold together at {_percent(self.together)}."

    def _level(self, difference: Difference) -> str:
        return _percent(self.confidence if difference.simultaneous else difference.level or 0.0)


def _percent(level: float) -> str:
    # Sums of error probabilities are off in their last digits, which would be rounded up.
    return percent(round(level, 9))


def _outward(end: float, rounding: str) -> str:
    """Return an end of an interval in points, with as many digits as keep its sign."""
    exact = Decimal(repr(round(end, _EXACT))) * 100
    for digits in range(1, _EXACT):
        text = exact.quantize(Decimal(1).scaleb(-digits), rounding=rounding)
        if text or not exact:
            break
    return f"{text:f}".replace("-", "−")


def percent_of(share: float) -> str:
    """Return a share such as ``88.3 %``."""
    return f"{points_of(share)} %"


def points_of(share: float) -> str:
    """Return a share in hundredths, such as ``88.3``."""
    return _rounded(100 * share, 1)


def signed_points(difference: float) -> str:
    """Return a difference of shares in percent points, with as many digits as show its sign."""
    for digits in (1, 2, 3, 4):
        text = _rounded(100 * difference, digits)
        if text.strip("−0."):
            return text if difference < 0 else f"+{text}"
    return "0"


def _rounded(value: float, digits: int) -> str:
    step = Decimal(1).scaleb(-digits)
    text = f"{Decimal(repr(value)).quantize(step, rounding=ROUND_HALF_EVEN):f}"
    return text.replace("-", "−")


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

# The releases with their names; the others are compared with the first.
Named = Sequence[tuple[str, AuditResult]]


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
    start = topic.what.format(value=_value(topic, value), name=name)
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
    text = _value(topic, value)
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


def _value(topic: _Topic, estimate: Estimate) -> str:
    if topic.unit == "plain":
        return number(estimate.value)
    return (percent_of if topic.unit == "percent" else points_of)(estimate.value)


_COLUMNS: Final = (
    ("claimed ε", ("mechanism.epsilon",)),
    ("measured ε", ("mechanism.epsilon_lower", "release_only.epsilon_lower")),
    ("strongest attack", ("attack.best.accuracy", "numeric.best.mse")),
    ("features alone", ("attack.features-only.accuracy", "numeric.features-only.mse")),
    ("test rows", ("test_accuracy", "test_squared_error")),
    ("best constant", ("test_constant",)),
)
# Characters of a name in the table.
_NAME: Final = 40


def print_summary(comparison: Comparison, *, quiet: bool) -> None:
    """Print the three sentences, then a row for each release; quiet: the sentences only."""
    if not quiet:
        say(comparison.access)
    for sentence in comparison.sentences or (comparison.sentence,):
        say(sentence)
    if quiet:
        return
    printers = [Printer(result) for result in comparison.releases]
    pairs = [*zip(printers, comparison.releases, strict=True)]
    every = [(title, [_cell(*pair, ids) for pair in pairs]) for title, ids in _COLUMNS]
    columns = [(title, cells) for title, cells in every if any(cells)]
    names = distinct(map(_short, comparison.names.values()))
    rows = [
        (name, publish_answer(result), *(cells[place] or "–" for _, cells in columns))
        for place, (name, result) in enumerate(zip(names, comparison.releases, strict=True))
    ]
    show("Releases", ("release", "publish", *(t for t, _ in columns)), rows)
    if comparison.remark:
        say(comparison.remark)
    for note in comparison.notes:
        if note.level == "warning":
            say(f"  {'warning':<12} {one_line(note.text)}")


def _short(name: str) -> str:
    """Return a name of at most so many characters, its beginning and its end."""
    half = _NAME // 2
    return name if len(name) <= _NAME else f"{name[: half - 1]}…{name[-half:]}"


def _cell(printer: Printer, result: AuditResult, ids: tuple[str, ...]) -> str:
    """Return the first number that there is, as it stands on the page; "" without one."""
    estimate = next(filter(None, map(result.estimate, ids)), None)
    if estimate is None:
        return ""
    decisive = printer.decisive if estimate.id.endswith("epsilon_lower") else None
    if estimate.unit == "proportion":
        return percent_of(estimate.value)
    return (decisive or printer.quantity(estimate)).text
