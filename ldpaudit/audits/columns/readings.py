"""The people whose label some representation of the features reveals."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from ldpaudit.audits.columns.labels import ASSUMED, Labels
from ldpaudit.audits.interface import AuditContext, Part
from ldpaudit.audits.models import copies
from ldpaudit.estimators.close_numbers import Close, close_numbers
from ldpaudit.estimators.readable import LEAST_SHARE, Readable, readable
from ldpaudit.estimators.readable import Labels as LabelsRead
from ldpaudit.estimators.representations import Source, represent
from ldpaudit.estimators.telling import (
    pairs_to_compare,
    repeated_alike,
    tells_people_apart,
)
from ldpaudit.mechanisms.interface import NumericMechanism
from ldpaudit.release import IndexArray, Release
from ldpaudit.result import Estimate, Note
from ldpaudit.result.numbers import at_least
from ldpaudit.result.stated import CLEAR_ROWS, ONE_LABEL, READ_OFF

_MOST_READ: Final = 20_000
_EQUAL_VALUES: Final = "rows with equal values"
_MOST_OF_ONE: Final = 30
"""Rows that a person may have."""
_LISTED: Final = 5
_BY_NUMBER: Final = (
    "; by a column that is within 5 % of the range of the true number, or nearer, in 98 % of a "
    "group of rows that gaps, steps or values of a column tell apart"
)


def read_off(
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
        assumptions=(ASSUMED[True],),
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
        assumptions=(ASSUMED[True],),
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
        assumptions=(ASSUMED[True],),
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
