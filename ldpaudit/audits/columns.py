"""Columns of a release that should not be published: names of people, and what shows labels.

With or without true labels. What the best column, a row near by or the order of the rows shows is
part of every audit.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.audits.assumptions.standing import derived_columns
from ldpaudit.audits.claimed_channel import aligned_channel, why_no_channel
from ldpaudit.audits.interface import AuditContext
from ldpaudit.columns import ColumnSurvey, Concern
from ldpaudit.errors import InputError
from ldpaudit.estimators.columns import (
    LEAST_SHARE,
    MOST_ERROR,
    MOST_SCANNED,
    Decided,
    Scan,
    decided,
    rows_to_scan,
    scan,
    strongest_agreement,
    worth_scanning,
)
from ldpaudit.release import FloatArray, IndexArray, IntArray, Sketch
from ldpaudit.result import Estimate, Finding, Note

_MOST: Final = 20  # With more labels, the rarer ones count as one.
_LEAST_Z: Final = 6.0
# The smallest excess of a word, of true labels and of released ones, which noise makes smaller.
_LEAST_EXCESS: Final = {True: 0.05, False: 0.02}
_LEAST_KNOWN, _ALL, _FEWEST, _LISTED = 10.0, 1.1, 40, 5
_HOW: Final = {
    True: "guessed from the column's value as learnt on other rows, labels counted alike",
    False: "as with true labels, which the inverse of the claimed channel stands for",
}
_WITHIN: Final = {True: "within each released label", False: "of the rows"}
_ASSUMED: Final = {True: "the rows looked at are like the others", False: "the claim holds"}
_CONCERNS: Final[dict[Concern, tuple[str, str]]] = {
    "index": ("columns.indices", "Columns that number the rows"),
    "identifier": ("columns.identifiers", "Columns that are different in (nearly) every row"),
    "text": ("columns.texts", "Columns of free text"),
    "date": ("columns.dates", "Columns of exact dates"),
}


@dataclass(frozen=True)
class Labels:
    """The labels that columns are compared with.

    ``codes``, int32 (n,): true labels, or released ones. ``classes``: how many there are.
    ``weights``, float64 (m, k): what a row with each code counts for each label. ``most_equal``:
    the excess over chance of equal released labels of two rows with one true label; None where the
    codes are true labels.
    """

    codes: IntArray
    classes: int
    weights: FloatArray
    most_equal: float | None = None

    @property
    def known(self) -> bool:
        """Whether the codes are true labels."""
        return self.most_equal is None


def columns_finding(context: AuditContext) -> Finding:
    """Return what the columns of a release may reveal besides what the noise allows."""
    release, found = context.release, telling(context)
    estimates, notes = [*found.estimates], [*found.notes]
    for concern, (name, title) in _CONCERNS.items():
        alike = [column for column in release.columns if column.concern == concern]
        if release.columns:
            method, given = "by the columns' values and names", ("a column is what it looks like",)
            estimates.append(
                Estimate.estimated(name, title, len(alike), method=method, assumptions=given)
            )
        if alike:
            more = f" and {len(alike) - _LISTED} more" if len(alike) > _LISTED else ""
            names = ", ".join(column.name for column in alike[:_LISTED])
            notes.append(Note.warning("columns", f"{title}: {names}{more}."))
    if release.holds_truth:
        method = "the true labels were read from the release itself (--truth-column)"
        title = "Columns of true labels in the release"
        estimates.append(Estimate.exact("columns.truth", title, 1, method=method))
    if release.sketch is not None and release.sketch.shared:
        estimates += _distortion(release.sketch)
    if left_out := release.left_out:
        text = (
            f"{left_out} column{'s' if left_out > 1 else ''} of the release took no part in this "
            "audit (--drop, --features): what such a column reveals about labels is not known, so "
            "publish the file without it."
        )
        notes.append(Note.warning("columns", text))
    if unused := sum(column.unused > 0 for column in release.columns):
        text = (
            "Categories that no row has are in the file, perhaps of people who were left out "
            f"({unused} columns). Write it without them."
        )
        notes.append(Note.warning("columns", text))
    return Finding(tuple(estimates), notes=tuple(notes)).in_section("columns")


def telling(context: AuditContext) -> Finding:
    """Return what columns and the order of the rows show; nothing where no label is known."""
    release, labels = context.release, _labels_of(context)
    if labels is None or len(release) < _FEWEST or labels.classes < 2:
        return Finding()
    left_out, width = set(derived_columns(context)), release.features.width
    places = [j for j in range(width) if j not in left_out]
    looked = min(len(places), MOST_SCANNED)
    rows = rows_to_scan(len(release), looked, labels.classes, context.rng("columns"))
    if looked < len(places):
        places = worth_scanning(release.features, labels.codes, rows, places)
    every = (*release.features.numeric.T, *release.features.categorical.T, *release.keys)
    places += range(width, len(every))
    arrays, codes = [every[place] for place in places], labels.codes[rows]
    known = codes if labels.known else None
    found = scan(arrays, rows, labels.weights[codes], known)
    some = []
    if known is not None:
        some = [decided(array[rows], known, release.released[rows]) for array in arrays]
    columns = _columns(found, labels, _Names(release.columns, places), some)
    order = _order(context, labels)
    notes = [*columns.notes, *order.notes]
    if width > MOST_SCANNED:
        text = (
            f"Of {width} feature columns about {MOST_SCANNED} were looked at one by one for "
            "labels that they tell: those that go most clearly with the label of their row, or of "
            "a row near by."
        )
        notes.append(Note.info("columns", text))
    return Finding((*columns.estimates, *order.estimates), notes=tuple(notes))


def _labels_of(context: AuditContext) -> Labels | None:
    """Return the true labels, else the released ones; None where neither can be compared."""
    release = context.release
    if release.bags is not None:
        return None
    if release.truth is not None:
        places, k = _places(np.bincount(release.truth, minlength=len(release.classes)))
        return Labels(places[release.truth], k, np.eye(k))
    try:
        channel = None if why_no_channel(context) is not None else aligned_channel(context)
    except InputError:
        channel = None
    if channel is None:
        return None
    counts = channel.inverse[release.released].sum(axis=0)
    places, k = _places(counts)
    weights = np.zeros((len(channel.outputs), k))
    for label, place in enumerate(places):
        weights[:, place] += channel.inverse[:, label]
    shares = np.clip(counts, 0, None) / np.clip(counts, 0, None).sum()
    chance = float((shares @ channel.matrix) @ (shares @ channel.matrix))
    equal = float(shares @ (channel.matrix**2).sum(axis=1))
    most_equal = max((equal - chance) / max(1 - chance, 1e-9), 1e-9)
    return Labels(release.released, k, weights, most_equal)


def _places(counts: FloatArray | IndexArray) -> tuple[IntArray, int]:
    """Return the new code of each label, the rarest ones sharing one, and how many there are."""
    if len(counts) <= _MOST:
        return np.arange(len(counts), dtype=np.int32), len(counts)
    places = np.full(len(counts), _MOST - 1, dtype=np.int32)
    places[np.argsort(-counts, kind="stable")[: _MOST - 1]] = np.arange(_MOST - 1)
    return places, _MOST


class _Names:
    """Which columns of the file the arrays come from."""

    def __init__(self, columns: Sequence[ColumnSurvey], places: list[int]) -> None:
        self._of = {place: i for i, column in enumerate(columns) for place in column.arrays}
        self._places, self._names = places, [column.name for column in columns]

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


def _columns(found: Scan, labels: Labels, names: _Names, some: list[Decided]) -> Finding:
    """Return what single columns show: of their row's label, of rows near by, of some people."""
    method, given = _HOW[labels.known], (_ASSUMED[labels.known],)
    deciding, lagged = (*found.deciding, *found.flags), [i for i, _ in found.lagged]
    estimates, notes = [], []
    for name, title, arrays in (
        ("columns.deciding", "Columns that reveal, or follow from, 98 % of the labels", deciding),
        ("columns.lagged", "Columns that reveal 98 % of the labels of nearby rows", lagged),
    ):
        count = len(names.columns(arrays))
        estimates.append(Estimate.estimated(name, title, count, method=method, assumptions=given))
    told = [("columns.told", "Labels that the best single column reveals", found.best)]
    if labels.known or found.position.error <= MOST_ERROR:
        told.append(("columns.position", "Labels that the row number reveals", found.position))
    for name, title, one in told:
        best = Estimate.estimated(
            name,
            title,
            one.share,
            unit="proportion",
            n=found.rows,
            method=method,
            assumptions=given,
        )
        estimates.append(best)
    by = "" if labels.known else ", by estimate from the released ones"
    for arrays, words in (
        (found.deciding, "at least 98 % of the true labels"),
        (found.flags, "which group of true labels a person is in, in at least 98 % of the rows"),
        (lagged, "at least 98 % of the true labels of rows near by"),
    ):
        if arrays:
            tell = "tells" if len(names.columns(arrays)) == 1 else "tell, each by itself,"
            text = f"{names.counted(arrays)} {tell} {words}{by}."
            notes.append(Note.warning("columns", text))
    if some:
        decided_by_one = Estimate.estimated(
            "columns.decided",
            "People whose label the value of one column decides",
            max(one.share for one in some),
            unit="proportion",
            n=found.rows,
            method="values whose rows nearly all have one true label, chosen on one half of the "
            "rows and tested on the other, where neither the label's share nor, of numbers, rows "
            "just below and above explain it; exact binomial tests at 0.1 % a column",
            assumptions=(_ASSUMED[True],),
        )
        estimates.append(decided_by_one)
    for place, value in enumerate(some):
        if value.share >= LEAST_SHARE and place not in found.deciding:
            values = "a value decides" if value.values == 1 else f"{value.values} values decide"
            text = (
                f"{names.of(place)}: {values} the true "
                f"label of {100 * value.share:.2g} % of the people, whatever the noise on it. The "
                "column may be computed from true labels (target encoding, missing values filled "
                "in by class), or predict the label by nature; anybody who reads it knows those "
                "labels."
            )
            notes.append(Note.warning("columns", text))
    return Finding(tuple(estimates), notes=tuple(notes))


def _order(context: AuditContext, labels: Labels) -> Finding:
    """Return whether the order of the rows reveals true labels."""
    known = labels.known
    released = context.release.released if known else None
    order = strongest_agreement(labels.codes, int(labels.codes.max()) + 1, released)
    if order is None:
        return Finding()
    # Noise makes the excess of equal released labels smaller than that of true ones. Rows sorted by
    # the released label, or with noise in common, agree more than true labels could.
    excess = order.excess / (labels.most_equal or 1.0)
    beyond = abs(order.z) >= _LEAST_Z and abs(order.excess) >= _LEAST_EXCESS[known]
    reveals = beyond and abs(excess) <= _ALL
    estimates = [
        Estimate.estimated(
            "columns.ordered",
            "Whether the order of the rows reveals labels (1: yes)",
            float(reveals),
            method="rows near each other agree more or less often than by chance, by six standard "
            f"deviations and {100 * _LEAST_EXCESS[known]:.0f} % or more",
        )
    ]
    if (labels.most_equal or np.inf) * order.pairs**0.5 >= _LEAST_KNOWN:
        how_often = Estimate.estimated(
            "columns.row_order",
            "Rows near each other with the same label, beyond chance",
            excess,
            unit="proportion",
            n=order.pairs,
            method=f"pairs of rows up to three apart, against all orders {_WITHIN[known]}; 0 is "
            "chance, 1 always the same true label",
            assumptions=("each row has noise of its own",),
        )
        estimates.append(how_often)
    notes: tuple[Note, ...] = ()
    if reveals:
        which, cause = ("true", "") if known else ("released", " (or rows share their noise)")
        text = (
            "The order of the rows reveals labels: rows near each other have the same "
            f"{which} label far {'more' if order.excess > 0 else 'less'} often than by "
            f"chance{cause}. Shuffle the rows before a release."
        )
        notes = (Note.warning("columns", text),)
    elif beyond:
        text = (
            "Rows near each other agree in their released labels more often than any true labels "
            "could explain: the rows are sorted by the released label, or share noise."
        )
        notes = (Note.warning("columns", text),)
    return Finding(tuple(estimates), notes=notes)


def _distortion(sketch: Sketch) -> Iterator[Estimate]:
    share = f"{100 * sketch.share:.0f} %"
    method = (
        f"{sketch.features:,} sparse features, projected without labels: the {sketch.single} most "
        f"frequent ones of the first rows have a column each, the others are summed with random "
        f"signs in {sketch.shared} columns (count sketch)"
    )
    yield Estimate.estimated(
        "features.distortion_bound",
        f"Error of the squared distance of a pair of rows, at most, in {share} of projections",
        sketch.bound,
        unit="proportion",
        method=f"{method}; Chebyshev's inequality with a relative variance of 2/{sketch.shared}",
        assumptions=("hashed places and signs are like independent draws",),
    )
    if sketch.error is not None:
        yield Estimate.estimated(
            "features.distortion",
            f"Error of the squared distance that {share} of pairs of rows do not exceed",
            sketch.error,
            unit="proportion",
            n=sketch.pairs,
            method=f"{method}; random pairs of near-by lines, before columns are standardised",
            assumptions=("the pairs looked at are like the others",),
        )
