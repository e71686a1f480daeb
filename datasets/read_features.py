"""The features of a release, coded and surveyed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from ldpaudit.datasets.as_read import ColumnReader
from ldpaudit.datasets.cells import Cells
from ldpaudit.datasets.column_survey import survey_keys, survey_left_out, surveyed, with_arrays
from ldpaudit.datasets.companions import Companion, Parts, encode_together
from ldpaudit.datasets.features import EncodedFeatures
from ldpaudit.datasets.formats.tables import VALUES, TableSource, is_any
from ldpaudit.datasets.known import KnownColumns
from ldpaudit.datasets.names import Roles
from ldpaudit.datasets.spelling import with_spelling
from ldpaudit.options import FileOptions
from ldpaudit.release import FeatureTable
from ldpaudit.release.features import ColumnSurvey
from ldpaudit.work.memory import MANY_ROWS, give_back


@dataclass(frozen=True)
class ReadFeatures:
    """The features of a release, and what was seen of each of its columns."""

    features: FeatureTable
    encoded: EncodedFeatures
    sketch: Any
    """What stands for the features of a sparse release; None for any other."""
    parts: Parts
    """The tables that come with the release, coded alike."""
    columns: tuple[ColumnSurvey, ...]
    """All columns but the private ones: features, left out ones, ids and groups."""
    surveyed: tuple[ColumnSurvey, ...]
    """The features as their reader saw them."""


def read_features(
    table: TableSource,
    roles: Roles,
    cells: Cells,
    settled: KnownColumns,
    companions: Sequence[Companion],
    files: FileOptions,
) -> ReadFeatures:
    """Code the features together with those of the companions, and survey all columns."""
    surveyed_features: list[ColumnSurvey] = []
    reader = ColumnReader.of(table, files)
    of_features = islice(cells.columns, len(roles.features))
    compared = settled.compared(of_features, roles.features, cells.keys)
    as_read = surveyed(compared, surveyed_features, table.names, reader)
    numbers = 0
    if not table.sparse:
        types = [table.schema.field(name).type for name in roles.features]
        numbers = sum(is_any(kind, *VALUES) for kind in types)
    encoded, parts = encode_together(as_read, len(cells), companions, table.names, files, numbers)
    give_back(at_once=len(cells) >= MANY_ROWS)
    surveys = with_arrays(surveyed_features, encoded)
    surveys += survey_left_out(cells.columns, table.names, reader)
    sketch = getattr(table, "sketch", None)
    if sketch is not None:
        encoded.columns = sketch.features
    features = encoded.table()
    if cells.looked_at is None:
        features = with_spelling(features, table, surveys)
    surveys += survey_keys(cells.keys, features.width, table.names)
    places = {name: place for place, name in enumerate(table.names, start=1)}
    columns = tuple(
        replace(settled.of(survey) if survey.arrays else survey, place=places.get(survey.name, 0))
        for survey in surveys
    )
    return ReadFeatures(features, encoded, sketch, parts, columns, tuple(surveyed_features))
