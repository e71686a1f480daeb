"""A release: features, released labels and, for an insider, the true labels."""

# In: arrays of codes and what is declared about them; :mod:`ldpaudit.datasets` reads them from
# files. Out: a release of one private column, or of several, that every other part takes.

from ldpaudit.arrays import BoolArray, Float32Array, FloatArray, IndexArray, IntArray, Label
from ldpaudit.release.declaration import (
    ColumnsDeclaration,
    Declaration,
    DeclaredColumns,
    LabelDeclaration,
)
from ldpaudit.release.features import FeatureTable, Sketch, joined
from ldpaudit.release.release import (
    Bags,
    Release,
    ReleasedLabels,
    Slices,
    Strata,
    SyntheticTable,
    TrueLabels,
    label_table,
)
from ldpaudit.release.several import ColumnReleases, FileColumns, ReleasedFiles

__all__ = [
    "Bags",
    "BoolArray",
    "ColumnReleases",
    "ColumnsDeclaration",
    "Declaration",
    "DeclaredColumns",
    "FeatureTable",
    "FileColumns",
    "Float32Array",
    "FloatArray",
    "IndexArray",
    "IntArray",
    "Label",
    "LabelDeclaration",
    "Release",
    "ReleasedFiles",
    "ReleasedLabels",
    "Sketch",
    "Slices",
    "Strata",
    "SyntheticTable",
    "TrueLabels",
    "joined",
    "label_table",
]
