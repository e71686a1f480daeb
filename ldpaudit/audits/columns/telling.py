"""What single columns, rows near by and the order of the rows tell about labels."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import numpy.typing as npt

from ldpaudit.audits.assumptions.columns import derived_columns
from ldpaudit.audits.columns.labels import Labels, labels_of
from ldpaudit.audits.interface import AuditContext
from ldpaudit.estimators.columns.deciding import LEAST_SHARE, Decided, decided
from ldpaudit.estimators.columns.row_order import Agreement, strongest_agreement
from ldpaudit.estimators.columns.scan import MOST_ERROR, Scan, rows_to_scan, scan
from ldpaudit.estimators.columns.worth import MOST_SCANNED, worth_scanning
from ldpaudit.result import Estimate, Finding, Note

_LEAST_Z: Final = 6.0
_LEAST_EXCESS: Final = {True: 0.05, False: 0.02}
"""The smallest excess of a word, of true labels and of released ones, which noise makes smaller."""
_LEAST_KNOWN: Final = 10.0
_ALL: Final = 1.1
_FEWEST: Final = 40
_HOW: Final = {
    True: "guessed from the column's value as learnt on other rows, labels counted alike",
    False: "as with true labels, which the inverse of the claimed channel stands for",
}
_WITHIN: Final = {True: "within each released label", False: "of the rows"}
_ASSUMED: Final = {True: "the rows looked at are like the others", False: "the claim holds"}


def telling(context: AuditContext) -> Finding:
    """Return what columns and the order of the rows tell; nothing where no label is known."""
    labels = labels_of(context)
    if labels is None or len(context.release) < _FEWEST or labels.classes < 2:
        return Finding()
    left_out = set(derived_columns(context))
    places = [j for j in range(context.release.features.width) if j not in left_out]
    rng = context.rng("columns")
    looked = min(len(places), MOST_SCANNED)
    rows = rows_to_scan(len(context.release), looked, labels.classes, rng)
    if looked < len(places):
        places = worth_scanning(context.release.features, labels.codes, rows, places)
    arrays = dict(_arrays(context, places))
    known = labels.codes[rows] if labels.known else None
    found = scan(arrays.values(), rows, labels.of(rows), len(context.release), known)
    released = context.release.released if labels.known else None
    order = strongest_agreement(labels.codes, int(labels.codes.max()) + 1, released)
    names = _Names(context, list(arrays))
    some = {}
    if known is not None:
        of_rows = context.release.released[rows]
        some = {i: decided(a[rows], known, of_rows) for i, a in enumerate(arrays.values())}
    return Finding(
        estimates=(
            *_estimates(found, labels, names),
            *_decided(some, len(rows)),
            *_order_estimates(order, labels),
        ),
        notes=(
            *_notes(found, labels, names),
            *_decided_notes({i: one for i, one in some.items() if i not in found.deciding}, names),
            *_order_notes(order, labels),
            *_scanned(context),
        ),
    )


def _arrays(context: AuditContext, places: Iterable[int]) -> Iterator[tuple[int, npt.NDArray[Any]]]:
    """Yield some feature columns by number, then ids and groups."""
    features = context.release.features
    width = features.numeric.shape[1]
    for place in places:
        block = features.numeric if place < width else features.categorical
        yield place, block[:, place if place < width else place - width]
    yield from enumerate(context.release.keys, features.width)


class _Names:
    """Which columns of the file the arrays come from."""

    def __init__(self, context: AuditContext, places: list[int]) -> None:
        columns = context.release.columns
        self._of = {place: i for i, column in enumerate(columns) for place in column.arrays}
        self._places = places
        self._names = [c.name for c in columns]

    def columns(self, arrays: Iterable[int]) -> list[int]:
        """Return the columns of the file, each once, by the positions of their arrays."""
        places = [self._places[i] for i in arrays]
        return list(dict.fromkeys(self._of.get(place, place) for place in places))

    def of(self, array: int) -> str:
        """Return what the column of an array is called."""
        place = self._of.get(self._places[array])
        return "A column" if place is None else f"Column {self._names[place]}"

    def counted(self, arrays: Iterable[int]) -> str:
        """Return how many columns there are, named if that was asked for."""
        columns = self.columns(arrays)
        names = f" ({', '.join(self._names[i] for i in columns)})" if self._names else ""
        return f"{len(columns)} column{'s' if len(columns) > 1 else ''}{names}"


def _estimates(found: Scan, labels: Labels, names: _Names) -> Iterator[Estimate]:
    method, assumptions = _HOW[labels.known], (_ASSUMED[labels.known],)
    deciding = names.columns((*found.deciding, *found.flags))
    lagged = names.columns(i for i, _ in found.lagged)
    for name, title, count in (
        ("columns.deciding", "Columns that tell, or follow from, 98 % of the labels", deciding),
        ("columns.lagged", "Columns that tell 98 % of the labels of rows near by", lagged),
    ):
        yield Estimate.estimated(name, title, len(count), method=method, assumptions=assumptions)
    told = [("columns.told", "Labels that the best single column tells", found.best)]
    if labels.known or found.position.error <= MOST_ERROR:
        told.append(("columns.position", "Labels that the number of the row tells", found.position))
    for name, title, one in told:
        yield Estimate.estimated(
            name,
            title,
            one.share,
            unit="proportion",
            n=found.rows,
            method=method,
            assumptions=assumptions,
        )


def _decided(some: Mapping[int, Decided], rows: int) -> Iterator[Estimate]:
    if some:
        yield Estimate.estimated(
            "columns.decided",
            "People whose label the value of one column decides",
            max(one.share for one in some.values()),
            unit="proportion",
            n=rows,
            method="values whose rows nearly all have one true label, chosen on one half of the "
            "rows and tested on the other, where neither the label's share nor, of numbers, rows "
            "just below and above explain it; exact binomial tests at 0.1 % a column",
            assumptions=(_ASSUMED[True],),
        )


def _decided_notes(some: Mapping[int, Decided], names: _Names) -> Iterator[Note]:
    for place, one in some.items():
        if one.share >= LEAST_SHARE:
            values = "a value" if one.values == 1 else f"{one.values} values"
            yield Note.warning(
                "columns",
                f"{names.of(place)}: {values} decide{'s' * (one.values == 1)} the true "
                f"label of {100 * one.share:.2g} % of the people, whatever the noise on it. The "
                "column may be computed from true labels (target encoding, missing values filled "
                "in by class), or foretell the label by nature; whoever reads it knows those "
                "labels.",
            )


def _order_estimates(order: Agreement | None, labels: Labels) -> Iterator[Estimate]:
    if order is None:
        return
    yield Estimate.estimated(
        "columns.ordered",
        "Whether the order of the rows reveals labels (1: yes)",
        float(_reveals(order, labels)),
        method="rows near each other agree more or less often than by chance, by six standard "
        f"deviations and {100 * _LEAST_EXCESS[labels.known]:.0f} % or more",
    )
    if not _is_known(order, labels):
        return
    yield Estimate.estimated(
        "columns.row_order",
        "Rows near each other with the same label, beyond chance",
        _excess(order, labels),
        unit="proportion",
        n=order.pairs,
        method=f"pairs of rows up to three apart, against all orders {_WITHIN[labels.known]}; 0 is "
        "chance, 1 always the same true label",
        assumptions=("each row has noise of its own",),
    )


def _is_known(order: Agreement, labels: Labels) -> bool:
    """Return whether the excess of true labels is known to about 0.1."""
    return labels.most_equal is None or labels.most_equal * order.pairs**0.5 >= _LEAST_KNOWN


def _excess(order: Agreement, labels: Labels) -> float:
    """Return the excess of equal true labels; noise makes that of released ones smaller."""
    return order.excess if labels.most_equal is None else order.excess / labels.most_equal


def _beyond_chance(order: Agreement, labels: Labels) -> bool:
    """Return whether rows near each other agree by more, or less, than chance could."""
    return abs(order.z) >= _LEAST_Z and abs(order.excess) >= _LEAST_EXCESS[labels.known]


def _reveals(order: Agreement, labels: Labels) -> bool:
    """Return whether the order reveals true labels: released ones agree no more than these could.

    Rows sorted by the released label, or with noise in common, agree more.
    """
    return _beyond_chance(order, labels) and abs(_excess(order, labels)) <= _ALL


def _scanned(context: AuditContext) -> Iterator[Note]:
    columns = context.release.features.width
    if columns > MOST_SCANNED:
        text = (
            f"Of {columns} feature columns about {MOST_SCANNED} were looked at one by one for "
            "labels that they tell: those that go most clearly with the label of their row, or of "
            "a row near by."
        )
        yield Note.info("columns", text)


def _notes(found: Scan, labels: Labels, names: _Names) -> Iterator[Note]:
    by = "" if labels.known else ", by estimate from the released ones"
    for arrays, words in (
        (found.deciding, "at least 98 % of the true labels"),
        (found.flags, "which group of true labels a person is in, in at least 98 % of the rows"),
        ([i for i, _ in found.lagged], "at least 98 % of the true labels of rows near by"),
    ):
        if arrays:
            which = names.counted(arrays)
            tell = "tells" if len(names.columns(arrays)) == 1 else "tell, each by itself,"
            yield Note.warning("columns", f"{which} {tell} {words}{by}.")


def _order_notes(order: Agreement | None, labels: Labels) -> Iterator[Note]:
    if order is None or not _beyond_chance(order, labels):
        return
    if not _reveals(order, labels):
        text = (
            "Rows near each other agree in their released labels more often than any true labels "
            "could explain: the rows are sorted by the released label, or share noise."
        )
        yield Note.warning("columns", text)
        return
    how = "more" if order.excess > 0 else "less"
    cause = "" if labels.known else " (or rows share their noise)"
    yield Note.warning(
        "columns",
        "The order of the rows reveals labels: rows near each other have the same "
        f"{_which(labels)} label far {how} often than by chance{cause}. Shuffle the rows "
        "before a release.",
    )


def _which(labels: Labels) -> str:
    return "true" if labels.known else "released"
