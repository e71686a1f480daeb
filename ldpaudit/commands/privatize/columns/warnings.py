"""What the owner of a table is told about columns before it leaves the house."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ldpaudit.columns import ColumnSurvey
from ldpaudit.commands.privatize.columns.leaves import Path
from ldpaudit.commands.privatize.columns.together import LIMIT
from ldpaudit.datasets.names import listed, quoted
from ldpaudit.estimators.columns.row_order import Agreement
from ldpaudit.estimators.columns.scan import Scan
from ldpaudit.mechanisms.interface import Mechanism

_MOST_LISTED: Final = 10
_LARGE_EPSILON: Final = 5.0
_FEW_ROWS: Final = 200
"""For each label; with fewer at ε = 1 an excess of 0.5 is hardly ever found."""
_CONCERNS: Final = {
    "index": "numbers the rows (an index), so it may lead back to the rows' origin",
    "identifier": "has a value of its own for (nearly) every row, as an identifier of a person has",
    "text": "holds free text, which may name a person",
    "date": "holds exact dates, which may point to a person",
}


def scan_warnings(
    paths: list[Path], found: Scan, together: float | None, names: Sequence[str]
) -> Iterator[str]:
    """Yield a warning for each group of columns that tell labels, and of all together.

    ``names``: all columns of the file.
    """
    if together is not None and together > LIMIT:
        yield (
            "The columns together tell true labels nearly without error (held-out accuracy or AUC "
            f"{100 * together:.1f} %), so noise on the label hides little. Leave out what tells "
            "them (--drop), or make it coarser."
        )
    tell = "tells at least 98 % of the true labels by itself, so noise on the label hides little"
    yield from _about([paths[i][0] for i in found.deciding], names, tell)
    flag = "follows from the true label in at least 98 % of the rows, so it tells some labels apart"
    yield from _about([paths[i][0] for i in found.flags], names, flag)
    near = "tells at least 98 % of the true labels of rows next to its own"
    yield from _about([paths[i][0] for i, _ in found.lagged], names, near)


def survey_warnings(columns: list[ColumnSurvey], names: Sequence[str]) -> Iterator[str]:
    """Yield a warning for each group of columns that may lead back to a person."""
    for concern, words in _CONCERNS.items():
        yield from _about([c.name for c in columns if c.concern == concern], names, words)


def order_warning(found: Agreement | None) -> Iterator[str]:
    """Yield a warning where rows near each other have the same label, or never have."""
    if found is None:
        return
    how = "more" if found.excess > 0 else "less"
    yield (
        f"The order of the rows tells true labels: rows near each other have the same one far "
        f"{how} often than by chance. Shuffle the table first."
    )


def pair_warnings(name: str, others: list[str]) -> Iterator[str]:
    """Yield a warning where private columns follow from each other."""
    if others:
        also = ", ".join(quoted(other) for other in others[:_MOST_LISTED])
        yield (
            f"The private column {quoted(name)} and {also} follow from each other in every row: "
            "they are noisy answers to one question, and together tell as much as the sum of their "
            "ε. Release one of them."
        )


def vector_warnings(epsilon: float, alone: list[float]) -> Iterator[str]:
    """Yield a warning where several columns hide little together, though none does by itself."""
    if epsilon > _LARGE_EPSILON >= max(alone):
        yield (
            f"With ε = {epsilon:.6g} for all {len(alone)} private columns together the release "
            "hides little of a person: give some a smaller epsilon, or release fewer of them."
        )


def amount_warnings(mechanism: Mechanism) -> Iterator[str]:
    """Yield a warning of an ε that hides nothing."""
    epsilon = mechanism.epsilon
    if epsilon is not None and epsilon > _LARGE_EPSILON:
        channel = mechanism.channel
        share = ""
        if channel is not None and channel.outputs == channel.classes:
            kept = float(channel.matrix.diagonal().mean())
            share = f": {_percent(kept)} labels are released as they are"
        yield f"With ε = {epsilon:.6g} the mechanism hides little{share}. Give a smaller --epsilon."


def size_warnings(mechanisms: Iterable[Mechanism], rows: int) -> Iterator[str]:
    """Yield a warning of a table too small to hide in."""
    channels = [one.channel for one in mechanisms]
    labels = max(2 if channel is None else len(channel.classes) for channel in channels)
    if rows < _FEW_ROWS * labels:
        yield (
            f"Few people are in this table ({rows} rows, {labels} labels): an audit of so few is "
            "likely to be inconclusive."
        )


def _percent(share: float) -> str:
    """Return a share in percent, never rounded up to all."""
    return "nearly all" if share >= 0.9995 else f"{100 * share:.1f} % of"


def _about(some: list[str], names: Sequence[str], what: str) -> Iterator[str]:
    """Yield one sentence about columns, by their places; nothing where there are none."""
    some = list(dict.fromkeys(some))
    if not some:
        return
    which = listed(some, names, _MOST_LISTED)
    if len(some) == 1:
        yield f"{which.capitalize()} of {len(names)} {what}. Leave it out with --drop."
        return
    yield f"Of the {which}, each {what}. Leave them out with --drop."
