"""A release: features, released labels and, for an insider, the true labels."""

# In: arrays of codes and what is declared about them; :mod:`ldpaudit.datasets` reads them from
# files. Out: a release of one private column, which every other part takes.

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

__all__ = [
    "Bags",
    "BoolArray",
    "ColumnsDeclaration",
    "Declaration",
    "DeclaredColumns",
    "FeatureTable",
    "Float32Array",
    "FloatArray",
    "IndexArray",
    "IntArray",
    "Label",
    "LabelDeclaration",
    "Release",
    "ReleasedLabels",
    "Sketch",
    "Slices",
    "Strata",
    "SyntheticTable",
    "TrueLabels",
    "joined",
    "label_table",
]
