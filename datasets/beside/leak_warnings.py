"""True labels that were left in a release by mistake, and other signs that files were mixed up.

The warnings go into reports, so they name no column: they tell a column's number instead.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from ldpaudit.datasets.beside.truth import Truth
from ldpaudit.datasets.domains import EncodedLabels
from ldpaudit.datasets.features import EncodedFeatures
from ldpaudit.datasets.labels import positions
from ldpaudit.datasets.roles import Roles
from ldpaudit.release import IntArray

_GLANCE = 1000


def warnings_about(
    truth: Truth, labels: EncodedLabels, features: EncodedFeatures, roles: Roles, order: list[int]
) -> list[str]:
    """Return what the reader should know about the truth beside this release.

    Parameters
    ----------
    truth : Truth
    labels : EncodedLabels
        With true labels.
    features : EncodedFeatures
    roles : Roles
    order : list of int
        For each feature its column's number in the file, from 1.
    """
    found = []
    if truth.column in roles.features:
        place = order[roles.features.index(truth.column)]
        found.append(
            f"Column {place} of the release has the name of the true label's column and is used "
            f"as a feature: was the true label left in the release?"
        )
    values = labels.true_values
    assert values is not None
    for place in revealing_columns(features, values):
        found.append(
            f"Column {order[place]} of the release tells the true label in every row: was the "
            f"true label left in the release?"
        )
    if _equal(labels):
        found.append(
            "The true labels equal the released labels in every row: either nothing was "
            "privatized, or the release itself was given as the truth."
        )
    if labels.domains.apart:
        found.append(
            "No true label has the value of any released label; they were read as labels of two "
            "different kinds."
        )
    if truth.unused:
        found.append("Some rows of the truth belong to no row of the release and were left out.")
    return found


def revealing_columns(features: EncodedFeatures, truth: IntArray) -> list[int]:
    """Return the feature columns (numbers from 0) that stand one to one with the true label."""
    columns: list[tuple[int, npt.NDArray[Any]]] = [
        (place, block[:, 0])
        for place, block in zip(features.numeric_places, features.numeric, strict=True)
        if block.shape[1] == 1
    ]
    columns += zip(features.categorical_places, features.categorical, strict=True)
    return sorted(place for place, values in columns if one_to_one(values, truth))


def one_to_one(values: npt.NDArray[np.generic], truth: IntArray) -> bool:
    """Return whether equal values have equal labels and the other way round, in every row.

    Parameters
    ----------
    values : array of shape (n,)
        A feature.
    truth : int32 array of shape (n,)
    """
    return _pairs(values[:_GLANCE], truth[:_GLANCE]) and _pairs(values, truth)


def _pairs(values: npt.NDArray[np.generic], truth: IntArray) -> bool:
    found, codes = np.unique(values, return_inverse=True)
    classes = len(np.unique(truth))
    if len(found) != classes:
        return False
    width = int(truth.max()) + 1
    return len(np.unique(codes.astype(np.int64) * width + truth)) == classes


def _equal(labels: EncodedLabels) -> bool:
    """Return whether every released label is the true one."""
    if labels.numeric is not None:
        truth = labels.numeric.truth
        return truth is not None and bool((labels.numeric.released == truth).all())
    domains = labels.domains
    meaning = positions(domains.outputs, domains.classes)
    return bool((meaning[labels.released] == labels.truth).all())
