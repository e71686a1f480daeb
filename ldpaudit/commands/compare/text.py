"""What ``ldpaudit compare`` prints."""

from typing import Final

from ldpaudit.commands.compare.wording import percent_of
from ldpaudit.reports.charts.measuring import distinct
from ldpaudit.reports.text.harmless import one_line
from ldpaudit.reports.text.quantities import Printer
from ldpaudit.reports.text.wording import publish_answer
from ldpaudit.result import AuditResult
from ldpaudit.result.comparison import Comparison
from ldpaudit.terminal import say, show

_COLUMNS: Final = (
    ("claimed ε", ("mechanism.epsilon",)),
    ("measured ε", ("mechanism.epsilon_lower", "release_only.epsilon_lower")),
    ("strongest attack", ("attack.best.accuracy", "numeric.best.mse")),
    ("features alone", ("attack.features-only.accuracy", "numeric.features-only.mse")),
    ("test rows", ("test_accuracy", "test_squared_error")),
)
_NAME: Final = 40
"""Characters of a name in the table."""


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
