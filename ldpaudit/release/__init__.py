"""A release: features, released labels and, for an insider, the true labels.

In: arrays of codes and what is declared about them; :mod:`ldpaudit.datasets` reads them from files.
Out: a release of one private column, or a vector of several, that every other part takes.
"""

from ldpaudit.arrays import BoolArray, Float32Array, FloatArray, IndexArray, IntArray, Label
from ldpaudit.release.declaration import (
    Declaration,
    DeclaredColumns,
    LabelDeclaration,
    VectorDeclaration,
)
from ldpaudit.release.features import FeatureTable, Sketch, joined
from ldpaudit.release.release import (
    Bags,
    Release,
    ReleasedLabels,
    Strata,
    SyntheticTable,
    TrueLabels,
    label_table,
)
from ldpaudit.release.repeated import ReleasedFiles, RepeatedReleases
from ldpaudit.release.vector import ReleasedVector

__all__ = [
    "Bags",
    "BoolArray",
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
    "ReleasedFiles",
    "ReleasedLabels",
    "ReleasedVector",
    "RepeatedReleases",
    "Sketch",
    "Strata",
    "SyntheticTable",
    "TrueLabels",
    "VectorDeclaration",
    "joined",
    "label_table",
]
