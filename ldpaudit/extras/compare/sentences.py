"""What a comparison says: three sentences, and a row for each release on the terminal."""

# On privacy, the advantage over the features alone, and utility. A change is named only where its
# interval leaves its sign in no doubt. Each difference stands with its interval, at one level at
# which all of them hold together. The advantage has a sentence of its own: replaced features reveal
# less by themselves, so an attack can be right less often although the release adds more.

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import partial
from typing import Final, Literal, NamedTuple

from ldpaudit.commands.shell import public_lines
from ldpaudit.doors import AuditResult, Said, Told, number, percent
from ldpaudit.extras.compare.comparison import LETTERS, Comparison, Difference
from ldpaudit.extras.compare.differences import ADVANTAGE, BEST, NUMBERS
from ldpaudit.extras.compare.page import render_comparison
from ldpaudit.extras.learn.utility.scores import ACCURACY, SQUARED_ERROR
from ldpaudit.reports.charts.figure import distinct
from ldpaudit.reports.public_forms import render_public
from ldpaudit.reports.text.quantities import Printer
from ldpaudit.reports.text.wording import publish_answer
from ldpaudit.result import Profile
from ldpaudit.result.public import public_comparison
from ldpaudit.work.documents import as_json

# Decimals beyond which an end is floating-point noise.
_EXACT: Final = 12
# Below this joint level nothing is said of it.
_LEAST_LEVEL: Final = 0.5
# The releases with their names; the others are compared with the first.
Named = Sequence[tuple[str, AuditResult]]


class _Topic(NamedTuple):
    """What one sentence is about: a number by its id, and what is said up to it.

    ``what`` has a place for the number and for the first release; ``words``: what a smaller and a
    larger number is called; ``other``: how another release is named; ``unit``: a share in
    percent, a difference of shares in percentage points, or the number as it is.
    """

    id: str
    what: str
    words: tuple[str, str]
    other: str
    unit: Literal["percent", "points", "plain"]


_TOPICS: Final = {
    "Privacy": (
        _Topic(
            BEST,
            "the strongest attack guesses {value} of the labels right in {name}",
            ("fewer", "more"),
            *("in", "percent"),
        ),
        _Topic(
            NUMBERS,
            "the strongest guess of the numbers has a mean squared error of {value} in {name}",
            ("smaller", "larger"),
            *("in", "plain"),
        ),
    ),
    "Advantage over the features alone": (
        _Topic(
            ADVANTAGE,
            "{name} adds {value} percentage points to guesses",
            ("less", "more"),
            *("with", "points"),
        ),
    ),
    "Utility": (
        _Topic(
            ACCURACY,
            "a model trained on {name} is right for {value} of the test rows",
            ("fewer", "more"),
            *("with", "percent"),
        ),
        _Topic(
            SQUARED_ERROR,
            "a model trained on {name} has a mean squared error of {value} on the test rows",
            ("smaller", "larger"),
            *("with", "plain"),
        ),
    ),
}
_WHY_NOT: Final = {
    "Privacy": "no attack was scored, which needs the true labels (--truth) and the audit "
    "label-inference",
    "Advantage over the features alone": "it was not measured",
    "Utility": "no test rows were given (--test)",
}
_OF_NUMBERS: Final = "it is measured for labels that are classes, not for numbers"


def sentences(
    releases: Named, differences: Sequence[Difference], confidence: float
) -> tuple[str, ...]:
    """Return the three sentences.

    ``differences`` are those of the releases in their order; the simultaneous ones hold together
    at ``confidence``.
    """
    return tuple(
        f"{title}: {_sentence(title, releases, differences, confidence)}." for title in _TOPICS
    )


def _first_of_each(differences: Sequence[Difference]) -> list[Difference]:
    """Return one difference of each number and release: that of the family where it has one."""
    first: dict[tuple[str, str], Difference] = {}
    for difference in differences:
        first.setdefault((difference.b, difference.id), difference)
    return list(first.values())


def remark(differences: Sequence[Difference], confidence: float) -> str:
    """Return at which level the intervals in the sentences hold together; "" if one stands alone.

    Those of the corrected family share one error probability, the others add theirs.
    """
    ids = {topic.id for topics in _TOPICS.values() for topic in topics}
    named = [one for one in _first_of_each(differences) if one.id in ids]
    alone = sum(1 - one.level for one in named if not one.simultaneous and one.level is not None)
    together = 1 - alone - (1 - confidence if any(one.simultaneous for one in named) else 0.0)
    if len(named) < 2 or together < _LEAST_LEVEL:
        return ""
    why = ""
    if any(_level(one, confidence) != _percent(confidence) for one in named):
        why = (
            f"An interval at less than {_percent(confidence)} combines those of the two results, "
            "whose error probabilities add up. "
        )
    return f"{why}The intervals hold together at {_percent(together)}."


def _sentence(
    title: str, releases: Named, differences: Sequence[Difference], confidence: float
) -> str:
    (name, first), *others = releases
    topics, why = _TOPICS[title], _WHY_NOT[title]
    if title != "Utility" and first.estimate(NUMBERS) is not None:
        topics, why = tuple(topic for topic in topics if topic.unit == "plain"), _OF_NUMBERS
    topic = next((one for one in topics if first.estimate(one.id) is not None), None)
    if topic is None:
        return f"not compared, because {why}"
    by_letter = {one.b: one for one in _first_of_each(differences) if one.id == topic.id}
    said = [topic.what.format(value=_value(topic, first), name=name)]
    for letter, (other, result) in zip(LETTERS[1:], others, strict=False):
        value, change = _value(topic, result), by_letter.get(letter)
        if value is None:
            said.append(f"{other} was not measured in the same way")
        elif change is None:
            said.append(f"{value} {topic.other} {other} (no interval for the change)")
        else:
            word = topic.words[change.low > 0] if change.decided else "no difference shown"
            word += ", by estimate," * (change.kind == "estimated" and change.decided)
            said.append(
                f"{word} {topic.other} {other}, {value}: {_moved(topic, change, confidence)}"
            )
    return "; ".join(said)


def _value(topic: _Topic, result: AuditResult) -> str | None:
    estimate = result.estimate(topic.id)
    if estimate is None:
        return None
    if topic.unit == "plain":
        return number(estimate.value)
    return _rounded(100 * estimate.value, 1) + " %" * (topic.unit == "percent")


def _moved(topic: _Topic, change: Difference, confidence: float) -> str:
    """Return a change with its interval, ends rounded outward."""
    if topic.unit == "plain":
        low, high = (round(end, _EXACT) for end in (change.low, change.high))
        ends, plus = (number(low, "down"), number(high, "up")), "+" if change.value > 0 else ""
        moved = f"{plus}{number(change.value)}"
    else:
        ends = _outward(change.low, ROUND_FLOOR), _outward(change.high, ROUND_CEILING)
        moved = f"{signed_points(change.value)} percentage points"
    return f"{moved} ({_level(change, confidence)}: {ends[0]} to {ends[1]})"


def _level(difference: Difference, confidence: float) -> str:
    return _percent(confidence if difference.simultaneous else difference.level or 0.0)


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


def signed_points(difference: float) -> str:
    """Return a difference of shares in percentage points, with as many digits as show its sign."""
    for digits in (1, 2, 3, 4):
        text = _rounded(100 * difference, digits)
        if text.strip("−0."):
            return text if difference < 0 else f"+{text}"
    return "0"


def _rounded(value: float, digits: int) -> str:
    return f"{Decimal(repr(value)):.{digits}f}".replace("-", "−")


_COLUMNS: Final = {
    "claimed ε": ("mechanism.epsilon",),
    "measured ε": ("mechanism.epsilon_lower", "release_only.epsilon_lower"),
    "strongest attack": ("attack.best.accuracy", "numeric.best.mse"),
    "features alone": ("attack.features-only.accuracy", "numeric.features-only.mse"),
    "test rows": ("test_accuracy", "test_squared_error"),
    "best constant": ("test_constant",),
}
# Characters of a name in the table.
_NAME: Final = 40


@dataclass(frozen=True)
class Compared(Told):
    """A comparison, as one sees it who may see the true labels; or as everybody does."""

    comparison: Comparison
    profile: Profile

    @property
    def confidential(self) -> bool:
        """Whether its files show what true labels reveal."""
        return self.profile == "internal" and self.comparison.confidential

    def makers(self) -> Mapping[str, Callable[[], str]]:
        """Return what makes the result and the page."""
        if self.profile == "public":
            shared = public_comparison(self.comparison.releases)
            return {name: partial(render_public, shared, name) for name in ("json", "html")}
        return {
            "json": lambda: as_json(self.comparison.model_dump()),
            "html": partial(render_comparison, self.comparison),
        }

    def said(self, *, quiet: bool) -> Iterator[Said]:
        """Yield the three sentences, then a row for each release; quiet: the sentences only."""
        comparison = self.comparison
        if self.profile == "public":
            yield from public_lines(public_comparison(comparison.releases), quiet=quiet)
            return
        yield from () if quiet else (comparison.access,)
        yield from comparison.sentences or (comparison.sentence,)
        if quiet:
            return
        printers = [Printer(result) for result in comparison.releases]
        pairs = [*zip(printers, comparison.releases, strict=True)]
        every = [(title, [_cell(*pair, ids) for pair in pairs]) for title, ids in _COLUMNS.items()]
        columns = [(title, cells) for title, cells in every if any(cells)]
        half = _NAME // 2
        names = distinct(
            name if len(name) <= _NAME else f"{name[: half - 1]}…{name[-half:]}"
            for name in comparison.names.values()
        )
        rows = [
            (name, publish_answer(result), *(cells[place] or "–" for _, cells in columns))
            for place, (name, result) in enumerate(zip(names, comparison.releases, strict=True))
        ]
        yield "Releases", ("release", "publish", *(title for title, _ in columns)), rows
        yield from filter(None, (comparison.remark,))
        yield from (("warning", one.text) for one in comparison.notes if one.level == "warning")


def _cell(printer: Printer, result: AuditResult, ids: tuple[str, ...]) -> str:
    """Return the first number that there is, as it stands on the page; "" without one."""
    estimate = next(filter(None, map(result.estimate, ids)), None)
    if estimate is None:
        return ""
    decisive = printer.decisive if estimate.id.endswith("epsilon_lower") else None
    if estimate.unit == "proportion":
        return f"{_rounded(100 * estimate.value, 1)} %"
    return (decisive or printer.quantity(estimate)).text
