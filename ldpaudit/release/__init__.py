"""A release: features, released labels and, for an insider, the true labels.

Nothing here reads files; :mod:`ldpaudit.datasets` builds these objects.
"""

from ldpaudit.arrays import BoolArray, Float32Array, FloatArray, IndexArray, IntArray, Label
from ldpaudit.release.declaration import Declaration, LabelDeclaration, VectorDeclaration
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
from ldpaudit.release.vector import ReleasedVector

__all__ = [
    "Bags",
    "BoolArray",
    "Declaration",
    "FeatureTable",
    "Float32Array",
    "FloatArray",
    "IndexArray",
    "IntArray",
    "Label",
    "LabelDeclaration",
    "Release",
    "ReleasedLabels",
    "ReleasedVector",
    "Sketch",
    "Strata",
    "SyntheticTable",
    "TrueLabels",
    "VectorDeclaration",
    "joined",
    "label_table",
]
