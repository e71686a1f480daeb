"""What else was released of a column's people: the other columns of its file, or other releases."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from ldpaudit.doors import IndexArray, Release
from ldpaudit.extras.several.files import ColumnReleases, FileColumns, Noise
from ldpaudit.mechanisms.joint import JointMechanism


@dataclass(frozen=True)
class Companions:
    """The other private columns of a release, where it has several.

    Attributes
    ----------
    file : FileColumns
    position : int
        Of the column that is audited.
    claim : JointMechanism or None
        What is claimed of all columns; None where nothing is.
    rows : int64 array or None
        The rows that the audit looks at; None: all.
    """

    file: FileColumns
    position: int
    claim: JointMechanism | None = None
    rows: IndexArray | None = None

    @property
    def private(self) -> AbstractSet[str]:
        """The names of all private columns of the file."""
        return {column.label for column in self.file.columns}

    def release(self, *, alone: bool) -> Release:
        """Return the column, or its features without the other released columns (``alone``)."""
        file, place = self.file, self.position
        release = file.alone(place) if alone else file.columns[place]
        return release if self.rows is None else release.take(self.rows)

    def take(self, rows: IndexArray) -> "Companions":
        """Return the same for some of its rows."""
        return replace(self, rows=rows if self.rows is None else self.rows[rows])


@dataclass(frozen=True)
class OverReleases:
    """Several releases of the same people, and what is claimed of their noise.

    Attributes
    ----------
    releases : ColumnReleases
    noise : {"fresh", "remembered"} or None
        Whether each release draws again, or repeats the answer for a label that did not change.
    """

    releases: ColumnReleases
    noise: Noise | None = None

    @property
    def private(self) -> AbstractSet[str]:
        """None: no other release is among the features."""
        return frozenset()

    def take(self, rows: IndexArray) -> "OverReleases":  # noqa: ARG002
        """Return the same: people are joined over all rows of each release."""
        return self
