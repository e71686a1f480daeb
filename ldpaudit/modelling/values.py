"""The values of feature columns: which repeat, and which columns have many or rare ones."""

from dataclasses import replace

import numpy as np

from ldpaudit.release import FeatureTable, IndexArray

MANY_VALUES = 100
"""A categorical column of more levels is encoded by what labels say, where labels may be used …"""
_MANY_NUMBERS = 254
"""… and a numeric one of more values, if they repeat."""
_LEAST_ROWS_PER_VALUE = 1.2
_LOST_SHARE = 0.02
_RARE = 10
_LOOKED_AT = 5_000
"""Numbers of which none comes twice among so many rows are taken not to repeat."""


def projected(features: FeatureTable, columns: tuple[int, ...]) -> FeatureTable:
    """Return the table of some columns, counted with the numeric ones first."""
    d = features.numeric.shape[1]
    numeric = [j for j in columns if j < d]
    categorical = [j - d for j in columns if j >= d]
    return replace(
        features,
        numeric=features.numeric[:, numeric],
        categorical=features.categorical[:, categorical],
        cardinalities=tuple(features.cardinalities[j] for j in categorical),
    )


def column_codes(features: FeatureTable, column: int) -> IndexArray:
    """Return the values of a column as codes 0, 1 …, int64 of shape (n,); missing is a value."""
    d = features.numeric.shape[1]
    if column >= d:
        return features.categorical[:, column - d].astype(np.int64) + 1
    return np.unique(features.numeric[:, column], return_inverse=True)[1].astype(np.int64)


def many_valued(features: FeatureTable) -> list[int]:
    """Return the columns whose values repeat, but are too many for an indicator each."""
    return [j for j in range(features.width) if _has_many(features, j)]


def unrepeated(features: FeatureTable) -> int:
    """Return how many categorical columns have another value in nearly every row."""
    n, d = len(features), features.numeric.shape[1]
    values = (_counts(features, d + j) for j in range(features.categorical.shape[1]))
    return sum(len(counts) > max(n / _LEAST_ROWS_PER_VALUE, MANY_VALUES) for counts in values)


def merged(features: FeatureTable) -> int:
    """Return how many categorical columns have rare values that are taken as one, on few rows."""
    d = features.numeric.shape[1]
    places = range(d, features.width)
    rare = [
        j for j in places if (_counts(features, j) < _RARE).any() and not _has_many(features, j)
    ]
    return len(rare) - unrepeated(features)


def _has_many(features: FeatureTable, column: int) -> bool:
    n = len(features)
    if column < features.numeric.shape[1] and n > 4 * _LOOKED_AT:
        some = features.numeric[:: n // _LOOKED_AT, column]
        if len(np.unique(some)) == len(some):
            return False
    counts = _counts(features, column)
    if n < _LEAST_ROWS_PER_VALUE * len(counts):
        return False
    if column < features.numeric.shape[1]:
        return len(counts) > _MANY_NUMBERS
    lost = counts[counts < _RARE].sum()
    return len(counts) > MANY_VALUES or bool(lost > _LOST_SHARE * n and len(counts) > _RARE)


def _counts(features: FeatureTable, column: int) -> IndexArray:
    d = features.numeric.shape[1]
    if column < d:
        return np.unique(features.numeric[:, column], return_counts=True)[1].astype(np.int64)
    counts = np.bincount(features.categorical[:, column - d] + 1)
    return np.asarray(counts[counts > 0], dtype=np.int64)
