"""Columns of a release that should not be published: names of people, and what shows labels."""

# With or without true labels. What the best column, a row near by or the order of the rows shows is
# part of every audit.

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ldpaudit.audits.interface import AuditContext, Part, collected
from ldpaudit.audits.models import (
    aligned_channel,
    copies,
    cross_fitted_posterior,
    why_no_channel,
)
from ldpaudit.errors import InputError
from ldpaudit.estimators.close_numbers import Close, close_numbers
from ldpaudit.estimators.readable import (
    LEAST_SHARE,
    MOST_SCANNED,
    Readable,
    readable,
    rows_to_scan,
    scan,
    worth_scanning,
)
from ldpaudit.estimators.readable import Labels as LabelsRead
from ldpaudit.estimators.representations import Source, represent
from ldpaudit.estimators.row_order import (
    Agreement,
    agreement_in_cells,
    strongest_agreement,
    written_in_ties,
)
from ldpaudit.estimators.telling import (
    MOST_ERROR,
    Values,
    pairs_to_compare,
    repeated_alike,
    tells_people_apart,
)
from ldpaudit.mechanisms.interface import NumericMechanism
from ldpaudit.release import FloatArray, IndexArray, IntArray, Release, Sketch
from ldpaudit.release.features import Concern
from ldpaudit.result import Estimate, Finding, Note
from ldpaudit.result.numbers import at_least, share_of
from ldpaudit.result.stated import (
    CLEAR_ROWS,
    DATES,
    DECIDING,
    IDENTIFIERS,
    INDICES,
    LAGGED,
    ONE_LABEL,
    ORDERED,
    POSITION,
    READ_OFF,
    ROW_ORDER,
    TEXTS,
    TOLD,
    TRUTH_INSIDE,
    UNREAD,
)

_MOST_READ: Final = 20_000
_EQUAL_VALUES: Final = "rows with equal values"
_MOST_OF_ONE: Final = 30  # Rows that a person may have.
_MOST: Final = 20  # With more labels, the rarer ones count as one.
_LEAST_Z: Final = 6.0
_SURELY: Final = 1e-9
# The smallest excess of a word, of true labels and of released ones, which noise makes smaller.
_LEAST_EXCESS: Final = {True: 0.05, False: 0.02}
_LEAST_KNOWN, _ALL, _FEWEST, _LISTED = 10.0, 1.1, 40, 5
_HOW: Final = {
    True: "guessed from the column's value as learnt on other rows, labels counted alike",
    False: "as with true labels, which the inverse of the claimed channel stands for",
}
_BY_NUMBER: Final = (
    "; by a column that is within 5 % of the range of the true number, or nearer, in 98 % of a "
    "group of rows that gaps, steps or values of a column tell apart"
)
_LAST_MARK: Final = 3
_ODD_CELLS: Final = "by which gaps are NaN, or which zeros are negative"
_WITHIN: Final = {True: "within each released label", False: "of the rows"}
_ASSUMED: Final = {True: "the rows looked at are like the others", False: "the claim holds"}
_CONCERNS: Final[dict[Concern, tuple[str, str]]] = {
    "index": (INDICES, "Columns that number the rows"),
    "identifier": (IDENTIFIERS, "Columns that are different in (nearly) every row"),
    "text": (TEXTS, "Columns of free text"),
    "date": (DATES, "Columns of exact dates"),
}


@dataclass(frozen=True)
class Labels:
    """The labels that columns are compared with."""

    codes: IntArray
    """Int32 (n,): true labels, or released ones."""
    classes: int
    """How many there are."""
    weights: FloatArray
    """Float64 (m, k): what a row with each code counts for each label."""
    most_equal: float | None = None
    """The excess over chance of equal released labels of two rows with one true label; None where
    the codes are true labels."""


def columns_finding(context: AuditContext) -> Finding:
    """Return what the columns of a release may reveal besides what the noise allows."""
    return collected([*_telling(context), *_surveyed(context)]).in_section("columns")


def concerned(release: Release) -> dict[str, tuple[str, ...]]:
    """Return the columns that may lead back to a person, by the estimate that counts them."""
    return {
        name: tuple(column.name for column in release.columns if column.concern == concern)
        for concern, (name, _) in _CONCERNS.items()
    }


def _surveyed(context: AuditContext) -> Iterator[Part]:
    """Yield what the columns' names and values look like."""
    release = context.release
    names = concerned(release)
    for name, title in _CONCERNS.values():
        alike = names[name]
        if release.columns:
            method, given = "by the columns' values and names", ("a column is what it looks like",)
            yield Estimate.estimated(name, title, len(alike), method=method, assumptions=given)
        if alike:
            more = f" and {len(alike) - _LISTED} more" if len(alike) > _LISTED else ""
            yield Note.warning("columns", f"{title}: {', '.join(alike[:_LISTED])}{more}.")
    if doubtful := [one for one in release.columns if one.reading.others]:
        method = "cells that are neither numbers (or dates) nor a known mark of a missing value"
        title = "Columns with cells that were not read as they stand"
        yield Estimate.exact(UNREAD, title, len(doubtful), method=method)
    if release.holds_truth:
        method = "the true labels were read from the release itself (--truth-column)"
        title = "Columns of true labels in the release"
        yield Estimate.exact(TRUTH_INSIDE, title, 1, method=method)
    if release.sketch is not None and release.sketch.shared:
        yield from _distortion(release.sketch)
    left_out, unused = release.left_out, sum(column.unused > 0 for column in release.columns)
    if left_out:
        yield Note.warning(
            "columns",
            f"{left_out} column{'s' if left_out > 1 else ''} of the release took no part in this "
            "audit (--drop, --features): what such a column reveals about labels is not known, so "
            "publish the file without it.",
        )
    if release.unread:
        yield Note.warning(
            "columns",
            f"The workbook has {release.unread} more, perhaps hidden, "
            f"sheet{'s' if release.unread > 1 else ''} that no audit looked at; publish the "
            "audited sheet in a file of its own.",
        )
    if unused:
        yield Note.warning(
            "columns",
            "Categories that no row has are in the file, perhaps of people who were left out "
            f"({unused} columns). Write it without them.",
        )


def _telling(context: AuditContext) -> Iterator[Part]:
    """Yield what columns and the order of the rows show; nothing where no label is known."""
    release, labels = context.release, _labels_of(context)
    if labels is None or len(release) < _FEWEST or labels.classes < 2:
        return
    width = release.features.width
    places = list(range(width))
    looked = min(len(places), MOST_SCANNED)
    rows = rows_to_scan(len(release), looked, labels.classes, context.rng("columns"))
    if looked < len(places):
        places = worth_scanning(release.features, labels.codes, rows, places)
    scanned = list(places)
    extra = () if release.features.extra is None else release.features.extra.T
    # Which gaps and zeros are odd ones, from 0 to 3; hashed words are no whole numbers.
    marks = [x for x in extra if x.min() >= 0 and x.max() <= _LAST_MARK and (x == np.rint(x)).all()]
    every = (*release.features.numeric.T, *release.features.categorical.T, *release.keys, *marks)
    places += range(width, len(every))
    yield from _of_columns(context, labels, rows, {place: every[place] for place in places})
    yield from _read_off(context, labels, rows, scanned)
    yield from _order(context, labels)
    if width > MOST_SCANNED:
        yield Note.info(
            "columns",
            f"Of {width} feature columns about {MOST_SCANNED} were looked at one by one for "
            "labels that they tell: those that go most clearly with the label of their row, or of "
            "a row near by.",
        )


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


def _of_columns(
    context: AuditContext, labels: Labels, rows: IndexArray, looked_at: dict[int, Values]
) -> Iterator[Part]:
    """Yield what single columns show: of their row's label, of rows near by, of some people.

    ``looked_at``: arrays of single columns, by their places among all of the release's.
    """
    release, known = context.release, labels.most_equal is None
    places, arrays = list(looked_at), list(looked_at.values())
    codes, surveyed = labels.codes[rows], release.columns
    of = {place: i for i, column in enumerate(surveyed) for place in column.arrays}
    found = scan(arrays, rows, labels.weights[codes], codes if known else None)

    def columns(some: Iterable[int]) -> list[int]:
        """Return the columns of the file that arrays come from, each once."""
        # Of which column odd gaps and zeros are is not known: −1.
        return list(
            dict.fromkeys(of.get(p, -1 if surveyed else p) for p in (places[i] for i in some))
        )

    def names(which: list[int]) -> str:
        named = (surveyed[i].name if i >= 0 else _ODD_CELLS for i in which)
        return f" ({', '.join(named)})" if surveyed else ""

    method, given = _HOW[known], (_ASSUMED[known],)
    deciding, lagged = (*found.deciding, *found.flags), [i for i, _ in found.lagged]
    for name, title, some, asked in (
        (
            DECIDING,
            "Columns that reveal, or follow from, 98 % of the labels",
            deciding,
            found.rows,
        ),
        (
            LAGGED,
            "Columns that reveal 98 % of the labels of nearby rows",
            lagged,
            found.lagged_rows,
        ),
    ):
        count = len(columns(some))
        # How many rows the answer rests on is said where it is not all of them.
        sample = f"; on a random sample of {asked:,} rows" if asked < len(release) else ""
        how = f"{method}{sample}"
        yield Estimate.estimated(name, title, count, method=how, assumptions=given)
    told = [(TOLD, "Labels that the best single column reveals", found.best)]
    if known or found.position.error <= MOST_ERROR:
        told.append((POSITION, "Labels that the row number reveals", found.position))
    for name, title, one in told:
        yield Estimate.estimated(
            name,
            title,
            one.share,
            unit="proportion",
            n=found.rows,
            method=method,
            assumptions=given,
        )
    for some, words in (
        (found.deciding, "at least 98 % of the true labels"),
        (found.flags, "which group of true labels a person is in, in at least 98 % of the rows"),
        (lagged, "at least 98 % of the true labels of rows near by"),
    ):
        if which := columns(some):
            tell = "tells" if len(which) == 1 else "tell, each by itself,"
            counted = f"{len(which)} column{'s' if len(which) > 1 else ''}{names(which)}"
            tell = tell if known else f"{tell.rstrip(',')}, judged by the released labels,"
            made = "" if known else ", unless computed from the released labels"
            yield Note.warning("columns", f"{counted} {tell} {words}{made}.")


def _read_off(
    context: AuditContext, labels: Labels, rows: IndexArray, places: list[int]
) -> Iterator[Part]:
    """Yield the share of people whose label some representation of the features reveals."""
    release = context.release
    if labels.most_equal is not None or release.features.is_constant():
        return
    some = _one_of_a_person(context, rows)[:_MOST_READ]
    shown = represent(release.features, some, places=places, keys=release.keys)
    known = LabelsRead(labels.codes[some], release.released[some])
    found = [one for one in readable(shown, known, context.rng("columns", "blur")) if one.notable]
    alike, found = _of_one_label(context, list(_repeated(context)), found)
    yield from alike
    close = _close_numbers(context, some, places)
    shares = [one.share for one in found if not one.by_released] + [one.share for one in close]
    # Which ways there are to read numbers off is said where labels are numbers.
    by_number = "" if release.numeric is None else _BY_NUMBER
    yield Estimate.estimated(
        READ_OFF,
        "People whose label is read off from a representation of the features",
        max(shares, default=0.0),
        unit="proportion",
        n=len(some),
        method="every representation of the columns (values, digits, gaps, counts, places within "
        "groups): by boosting, fitted on one half of the rows, on the other rows whose label a "
        "model of blurred values and the released label leave open, and of which at least 98 % "
        "are read right; by values or ranges whose rows nearly all have one true label, where "
        "neither the label's share nor, of numbers, rows just below and above explain it (exact "
        f"binomial tests at 1 % for all){by_number}",
        assumptions=(_ASSUMED[True],),
    )
    yield from _clear_rows(release, [one for one in found if one.by_released], len(some))
    for near in close[:_LISTED]:
        own = _column(release, near.column)
        told = "," if near.by is None else f", told by {_column(release, near.by)},"
        yield Note.warning(
            "columns",
            f"For {at_least(near.share)} of the people{told} {own} holds the true number, to "
            f"{100 * near.within:g} % of its range, whatever the noise on it: "
            f"{100 * near.right:.1f} % of these readings are right. The column may be computed "
            "from true labels, or hold another measurement of the same thing; anybody who reads "
            "it knows those labels.",
        )
    for one in [one for one in found if not one.by_released][:_LISTED]:
        columns = _named(release, one, " ({})")
        yield Note.warning(
            "columns",
            f"The true label of {at_least(one.share)} of the people {_how(one)}{columns}, whatever "
            f"the noise on it: {100 * one.purity:.1f} % of these readings are right. The column "
            "may be computed from true labels (target encoding, missing values filled in by "
            "class), have been treated class by class, or predict the label by nature; anybody "
            "who reads it knows those labels.",
        )


def _close_numbers(context: AuditContext, rows: IndexArray, places: Sequence[int]) -> list[Close]:
    """Return the columns that are close to the true numbers of some people."""
    # Columns of categories tell people apart only: their codes are no numbers.
    release, numeric = context.release, context.release.numeric
    if numeric is None or numeric.truth is None:
        return []
    features, width = release.features, release.features.numeric.shape[1]
    columns = [
        features.numeric[rows, place].astype(np.float64)
        if place < width
        else features.categorical[rows, place - width].astype(np.float64)
        for place in places
    ]
    claim = context.claim.offers(NumericMechanism)
    low, high = numeric.truth.min(), numeric.truth.max()
    low, high = (float(low), float(high)) if claim is None else claim.label_bounds
    found = close_numbers(
        columns, numeric.truth[rows], high - low, context.rng("columns", "close"), LEAST_SHARE
    )
    names = [places[one.column] for one in found]
    return [
        replace(one, column=name, by=None if one.by is None else places[one.by])
        for one, name in zip(found, names, strict=True)
        if name < width
    ]


def _one_of_a_person(context: AuditContext, rows: IndexArray) -> IndexArray:
    """Return the rows, of each declared group one, and of equal rows with equal labels, too."""
    # What is learnt from a person's other rows is no reading.
    release, people = context.release, np.arange(len(context.release))
    if release.groups is not None:
        people = release.groups
    elif release.truth is not None and release.numeric is not None:
        # Equal numbers are hardly ever released of different people.
        alike, n = copies(context), len(release)
        answers = np.unique(np.stack([alike, release.truth, release.released], 1), axis=0)
        alone = np.bincount(answers[:, 0], minlength=int(alike.max(initial=0)) + 1) == 1
        person = alone & (np.bincount(alike, minlength=len(alone)) <= _MOST_OF_ONE)
        people = np.where(person[alike], alike, n + people)
    _, first = np.unique(people[rows], return_index=True)
    return rows[np.sort(first)]


def _clear_rows(release: Release, found: Sequence[Readable], n: int) -> Iterator[Part]:
    """Yield how many people have their true label as the released one, and are told by columns."""
    if not found:
        return
    yield Estimate.estimated(
        CLEAR_ROWS,
        "People whose released label is known to be the true one",
        max(one.share for one in found),
        unit="proportion",
        n=n,
        method="as of labels that are read off from the columns; these readings need the released "
        "label, so what the columns tell is where it is true",
        assumptions=(_ASSUMED[True],),
    )
    for one in found[:_LISTED]:
        columns = _named(release, one, ", {}")
        yield Note.warning(
            "columns",
            f"Of {at_least(one.share)} of the people, told by {one.source.kind}{columns}, the "
            f"released label shows the true one: {100 * one.purity:.1f} % of these readings are "
            "right. These rows may have been released without noise. The columns by themselves do "
            "not reveal these labels.",
        )


def _repeated(context: AuditContext) -> Iterator[Readable]:
    """Yield columns in which rows with equal values, of different people, have one true label."""
    release, rng = context.release, context.rng("columns", "repeated")
    columns = [*release.features.numeric.T]
    pairs = pairs_to_compare(len(release), rng)
    telling = [tells_people_apart(column, pairs) for column in columns]
    for place, column in enumerate(columns):
        # Made one by one: hardly any is looked at, and a list for each column would be long.
        others = (columns[other] for other, tell in enumerate(telling) if tell and other != place)
        share, purity = repeated_alike(column, context.truth, others)
        if share >= LEAST_SHARE:
            yield Readable(share, purity, Source(_EQUAL_VALUES, (place,)))


def _of_one_label(
    context: AuditContext, repeated: list[Readable], found: list[Readable]
) -> tuple[list[Part], list[Readable]]:
    """Return what is said of columns whose equal values have one label, and the other findings.

    ``repeated``: columns of numbers of which the next value says less than an equal one.

    A value that few rows share reveals no label: it only shows whose rows belong together.
    """
    release, parts, left = context.release, list[Part](), list[Readable]()
    seen, most = set[tuple[int, ...]](), 0.0
    numbers = {one.source.arrays for one in repeated}
    for one in [*repeated, *found]:
        own = one.source.kind == _EQUAL_VALUES
        few = one.values and (one.source.arrays in numbers or _is_category(release, one))
        if not (own or (few and _is_of_few(release, one))):
            left.append(one)
        elif one.source.arrays not in seen:
            most = max(most, one.share)
            text = (
                f"Rows with equal values{_named(release, one, ' in {}')}, "
                f"{at_least(one.share)} of the rows, have one true label, as the rows of one "
                "person do: whoever knows the label of one knows that of the others. Or the values "
                "were computed class by class."
            )
            parts.append(Note.warning("columns", text))
            seen.add(one.source.arrays)
    if not parts:
        return [], left
    estimate = Estimate.estimated(
        ONE_LABEL,
        "Rows with equal values in a column that have one label",
        most,
        unit="proportion",
        n=len(release),
        method="values that at most 30 rows share, all but 2 % of these with one true label; the "
        "largest share of all columns",
        assumptions=(_ASSUMED[True],),
    )
    return [estimate, *parts], left


def _is_category(release: Release, one: Readable) -> bool:
    return bool(min(one.source.arrays, default=0) >= release.features.numeric.shape[1])


def _is_of_few(release: Release, one: Readable) -> bool:
    """Return whether the values of a column are shared by few rows each, as ids of people are."""
    columns = [*release.features.numeric.T, *release.features.categorical.T]
    place = one.source.arrays[0] if len(one.source.arrays) == 1 else len(columns)
    if place >= len(columns):
        return False
    sizes = np.unique(columns[place], return_counts=True)[1]
    few = sizes[(sizes > 1) & (sizes <= _MOST_OF_ONE)]
    return bool(2 * few.sum() > len(release))


def _named(release: Release, one: Readable, words: str) -> str:
    """Return the columns of a finding put into words; nothing where they have no names."""
    names = {place: column.name for column in release.columns for place in column.arrays}
    which = list(dict.fromkeys(names[j] for j in one.source.arrays if j in names))
    return words.format(f"column{'s' * (len(which) > 1)} {', '.join(which)}") if which else ""


def _column(release: Release, place: int) -> str:
    """Return the name of an array column in words."""
    names = {array: column.name for column in release.columns for array in column.arrays}
    return f"column {names[place]}" if place in names else "a column"


def _how(one: Readable) -> str:
    if one.values:
        some = "one" if one.values == 1 else f"{one.values:,}"
        return f"follows from {some} of its values or ranges: {one.source.kind}"
    return f"is read off from {one.source.kind}"


def _order(context: AuditContext, labels: Labels) -> Iterator[Part]:
    """Yield whether the order of the rows reveals true labels."""
    known = labels.most_equal is None
    released = context.release.released if known else None
    order = strongest_agreement(labels.codes, released)
    if order is None:
        return
    # Noise makes the excess of equal released labels smaller than that of true ones. Rows sorted by
    # the released label, or with noise in common, agree more than true labels could.
    beyond = _is_beyond(order, known)
    impossible = beyond and abs(order.excess) > _ALL * (labels.most_equal or 1.0)
    reveals = beyond and not impossible
    within, more = _WITHIN[known], ""
    if reveals and not context.release.features.is_constant():
        # In a file that is sorted by a feature, rows near each other agree as far as it says.
        cells = _cells_by_features(context, known)
        order = agreement_in_cells(labels.codes, cells, context.rng("columns", "order"))
        reveals, more = _is_beyond(order, known), ", and more than the features say"
        within = f"of rows whose features {'and released label ' * known}say the same"
    excess = order.excess / (labels.most_equal or 1.0)
    tied, chance = _in_ties(context) if known else (0.0, 1.0)
    in_ties = tied >= LEAST_SHARE and chance <= _SURELY
    yield Estimate.estimated(
        ORDERED,
        "Whether the order of the rows reveals labels (1: yes)",
        float(reveals or in_ties),
        method="rows near each other agree more or less often than by chance, by six standard "
        f"deviations and {100 * _LEAST_EXCESS[known]:.0f} % or more{more}; or true labels put rows "
        "with equal values of a column, and equal released labels, in order (sign test)",
    )
    if (labels.most_equal or np.inf) * order.pairs**0.5 >= _LEAST_KNOWN:
        yield Estimate.estimated(
            ROW_ORDER,
            "Rows near each other with the same label, beyond chance",
            excess,
            unit="proportion",
            n=order.pairs,
            method=f"pairs of rows up to three apart, against all orders {within}; 0 is "
            "chance, 1 always the same true label",
            assumptions=("each row has noise of its own",),
        )
    which, cause = ("true", "") if known else ("released", " (or rows share their noise)")
    if reveals:
        yield Note.warning(
            "columns",
            "The order of the rows reveals labels: rows near each other have the same "
            f"{which} label far {'more' if order.excess > 0 else 'less'} often than by "
            f"chance{cause}. Shuffle the rows before a release.",
        )
    if in_ties and not reveals:
        yield Note.warning(
            "columns",
            "The order of the rows reveals labels: rows next to each other with equal values of a "
            f"column stand in the order of their true labels ({share_of(tied)} of the rows). "
            "Shuffle the rows before a release.",
        )
    if impossible:
        yield Note.warning(
            "columns",
            "Rows near each other agree in their released labels more often than any true labels "
            "could explain: the rows are sorted by the released label, or share noise.",
        )


def _in_ties(context: AuditContext) -> tuple[float, float]:
    release = context.release
    columns = (*release.features.numeric.T, *release.features.categorical.T, *release.keys)
    return written_in_ties(columns, context.truth, release.released)


def _is_beyond(order: Agreement, known: bool) -> bool:
    return abs(order.z) >= _LEAST_Z and abs(order.excess) >= _LEAST_EXCESS[known]


def _cells_by_features(context: AuditContext, known: bool) -> IndexArray:
    """Return codes of rows whose features, and released label, say the same of the label, int64."""
    # By the likeliest label and how likely it is, in three parts. Equal rows are a cell of their
    # own: anybody sees which belong together.
    release = context.release
    chances = cross_fitted_posterior(context, "truth" if known else "released")
    if known and (channel := aligned_channel(context)) is not None:
        # What the claim calls impossible may have been released all the same.
        chances = chances * np.maximum(channel.matrix[:, release.released].T, 1e-9)
    likeliest, share = chances.argmax(axis=1), chances.max(axis=1) / chances.sum(axis=1)
    cells = likeliest * 3 + np.searchsorted(np.quantile(share, [1 / 3, 2 / 3]), share)
    equal = copies(context)
    repeated = np.bincount(equal)[equal] > 1
    return np.asarray(np.where(repeated, cells.max() + 1 + equal, cells))


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
