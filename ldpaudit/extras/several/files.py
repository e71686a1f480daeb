"""Several private columns of a release, or several releases of the same people."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from ldpaudit.arrays import Label
from ldpaudit.doors import IndexArray, InputError, IntArray, Release
from ldpaudit.release import ColumnsDeclaration, DeclaredColumns
from ldpaudit.release.features import ColumnSurvey

Noise = Literal["fresh", "remembered"]
"""Whether each release draws again, or repeats the answer for a label that did not change."""


@dataclass(frozen=True)
class FileColumns:
    """Several private columns of the same n rows."""

    columns: tuple[Release, ...]
    """One for each of the d ≥ 2 private columns, in their declared order, with the same n rows.

    The other released columns are among its features, as an attacker has them.
    """
    others: tuple[tuple[int, ...], ...]
    """For each column the places of the other released columns among the arrays of its features.

    Numeric ones come first, as :meth:`FeatureTable.without` takes them.
    """
    declaration: ColumnsDeclaration | None = None
    """The claim; None where nothing was declared."""
    name: str = "release"
    """The file's base name, for the report."""
    sha256: str | None = None
    """The released file's digest."""
    declared: DeclaredColumns | None = None
    """All private columns that the file declares, where some of them are not audited."""

    def __post_init__(self) -> None:
        if len(self.columns) < 2 or len(self.others) != len(self.columns):
            raise InputError("There must be at least two private columns.")
        if len({len(column) for column in self.columns}) > 1:
            raise InputError("The private columns must have the same rows.")

    def __len__(self) -> int:
        """Return the number of rows n."""
        return len(self.columns[0])

    def alone(self, position: int) -> Release:
        """Return one column's release without the other released columns among its features."""
        column, gone = self.columns[position], self.others[position]
        features = replace(column.features.without(gone), extra=column.features.extra)
        seen = tuple(_moved(one, gone) for one in column.columns if not _among(one, gone))
        before = frozenset(_shifted(place, gone) for place in column.before - {*gone})
        return replace(column, features=features, columns=seen, before=before)


def _among(column: ColumnSurvey, places: tuple[int, ...]) -> bool:
    return bool(column.arrays) and set(column.arrays) <= set(places)


def _moved(column: ColumnSurvey, gone: tuple[int, ...]) -> ColumnSurvey:
    """Return what was seen of a column with its places after others are gone."""
    return replace(column, arrays=tuple(_shifted(place, gone) for place in column.arrays))


def _shifted(place: int, gone: tuple[int, ...]) -> int:
    return place - sum(other < place for other in gone)


@dataclass(frozen=True)
class ColumnReleases:
    """Releases of one private column of the same people, and which row is whose."""

    releases: tuple[Release, ...]
    """The t ≥ 2 releases, in the order in which they were given."""
    rows: IndexArray
    """The row of each person in each release, int64 of shape (p, t); −1 where there is none.

    People whose id repeats within a release are left out.
    """
    by_id: bool = True
    """Whether rows were joined on an id; else they are in the same order in all releases."""
    repeated: int = 0
    """People who were left out as their id repeats within a release."""

    def __post_init__(self) -> None:
        """Refuse releases that cannot be compared."""
        first = self.releases[0]
        for number, other in enumerate(self.releases[1:], start=2):
            if set(other.classes) != set(first.classes):
                raise InputError(
                    "All releases must have the same classes: release 1 has "
                    f"{len(first.classes)}, release {number} has {len(other.classes)}, and they "
                    "are not the same. Declare all classes in each, or audit the releases one by "
                    "one."
                )

    @property
    def classes(self) -> tuple[Label, ...]:
        """The values of true labels, in the order of the codes of :meth:`truth`."""
        return self.releases[0].classes

    @cached_property
    def outputs(self) -> tuple[Label, ...]:
        """The values of released labels, in the order of the codes of :meth:`released`."""
        every = (output for release in self.releases for output in release.outputs)
        return tuple(dict.fromkeys(every))

    @property
    def known(self) -> bool:
        """Whether true labels are known in every release."""
        return all(release.truth is not None for release in self.releases)

    @cached_property
    def in_all(self) -> IndexArray:
        """The people who are in every release, positions in ``rows``."""
        return np.flatnonzero((self.rows >= 0).all(axis=1))

    def released(self, place: int, people: IndexArray) -> IntArray:
        """Return codes into ``outputs`` of what a release says of people who are in it."""
        release = self.releases[place]
        codes = np.array([self.outputs.index(o) for o in release.outputs], dtype=np.int32)
        return np.asarray(codes[release.released[self.rows[people, place]]])

    def truth(self, place: int, people: IndexArray) -> IntArray:
        """Return codes into ``classes`` of the true labels of people who are in a release."""
        release = self.releases[place]
        assert release.truth is not None
        codes = np.array([self.classes.index(c) for c in release.classes], dtype=np.int32)
        return np.asarray(codes[release.truth[self.rows[people, place]]])

    def table(self, people: IndexArray, *, truth: bool = False) -> IntArray:
        """Return the released (or true) labels of people who are in all releases, (n, t)."""
        read = self.truth if truth else self.released
        return np.stack([read(place, people) for place in range(len(self.releases))], axis=1)


@dataclass(frozen=True)
class ReleasedFiles:
    """Released files of the same people, each with one private column or several."""

    files: tuple[Release | FileColumns, ...]
    """The t ≥ 2 files, in the order in which they were given."""
    rows: IndexArray
    """The row of each person in each file, int64 of shape (p, t); −1 where there is none.

    People whose id repeats within a file are left out.
    """
    by_id: bool = True
    """As in :class:`ColumnReleases`."""
    repeated: int = 0
    """As in :class:`ColumnReleases`."""

    @cached_property
    def columns(self) -> dict[str, ColumnReleases]:
        """The releases of each private column that is in two files or more."""
        # Where each file has one private column these are releases of the same one, whatever it is
        # called.
        found: dict[str, dict[int, Release]] = {}
        for place, file in enumerate(self.files):
            for release in _alone(file):
                found.setdefault(release.label, {})[place] = release
        single = [file for file in self.files if isinstance(file, Release)]
        if len(single) == len(self.files):
            found = {single[-1].label: dict(enumerate(single))}
        return {name: self._of(column) for name, column in found.items() if len(column) > 1}

    def _of(self, column: dict[int, Release]) -> ColumnReleases:
        rows = self.rows[:, list(column)]
        rows = rows[(rows >= 0).any(axis=1)]
        return ColumnReleases(tuple(column.values()), rows, self.by_id, self.repeated)


def _alone(file: Release | FileColumns) -> tuple[Release, ...]:
    """Return each private column of a file, without the others among its features."""
    if isinstance(file, Release):
        return (file,)
    return tuple(file.alone(place) for place in range(len(file.columns)))
