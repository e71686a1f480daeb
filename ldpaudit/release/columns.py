"""Several private columns of one release: each as a release of its own, and all together."""

from dataclasses import dataclass, replace

from ldpaudit.columns import ColumnSurvey
from ldpaudit.errors import InputError
from ldpaudit.release.declaration import ColumnsDeclaration, DeclaredColumns
from ldpaudit.release.release import Release


@dataclass(frozen=True)
class FileColumns:
    """Several private columns of the same n rows.

    Attributes
    ----------
    columns : tuple of Release, length d ≥ 2
        One for each private column, in the order of the declaration, n rows each in the same order.
        The other released columns are among its features, as an attacker has them.
    others : tuple of tuple of int, length d
        For each column: the places of the other released columns among the arrays of its features,
        numeric ones first (as :meth:`FeatureTable.without` takes them).
    declaration : ColumnsDeclaration or None
        The claim; None where nothing was declared.
    name : str
        The file's base name, for the report.
    sha256 : str or None
        The released file's digest.
    declared : DeclaredColumns or None
        All private columns that the file declares, where some of them are not audited.
    """

    columns: tuple[Release, ...]
    others: tuple[tuple[int, ...], ...]
    declaration: ColumnsDeclaration | None = None
    name: str = "release"
    sha256: str | None = None
    declared: DeclaredColumns | None = None

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
        return replace(column, features=features, columns=seen)


def _among(column: ColumnSurvey, places: tuple[int, ...]) -> bool:
    return bool(column.arrays) and set(column.arrays) <= set(places)


def _moved(column: ColumnSurvey, gone: tuple[int, ...]) -> ColumnSurvey:
    """Return what was seen of a column with its places after others are gone."""
    arrays = tuple(place - sum(other < place for other in gone) for place in column.arrays)
    return replace(column, arrays=arrays)
