"""Signs of a mistake in what was read, such as a true label left among the features."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ldpaudit.datasets.domains import EncodedLabels
from ldpaudit.datasets.features import EncodedFeatures
from ldpaudit.datasets.labels import RELEASED, nearly_alike, positions
from ldpaudit.datasets.names import Roles
from ldpaudit.datasets.truth import Truth
from ldpaudit.release import IntArray, label_table

_GLANCE: Final = 1000


def warnings_about(
    truth: Truth | None,
    labels: EncodedLabels,
    features: EncodedFeatures,
    names: Sequence[str],
    roles: Roles,
) -> list[str]:
    """Return signs that the true labels were left in a release, or that files were mixed up."""
    values, warnings, number = labels.true_values, [], {n: j for j, n in enumerate(names, start=1)}
    if truth is not None and values is not None:
        for place in _revealing_columns(features, values):
            warnings.append(
                f"Column {number[roles.features[place]]} of the release determines the true label "
                "in every row: was the true label left in the release?"
            )
        if _equal(labels):
            warnings.append(
                "The true labels equal the released labels in every row: either nothing was "
                "privatized, or the release itself was given as the truth."
            )
        if labels.domains.apart:
            warnings.append(
                "No true label has the value of any released label; they were read as labels of "
                "two different kinds."
            )
        if truth.unused:
            warnings.append("Some rows of the truth match no row of the release and were left out.")
    classes = () if labels.numeric is not None else labels.domains.classes
    for alike in nearly_alike(classes):
        warnings.append(
            f"{alike}; they are kept apart, and the claim is read as one of {len(classes)} labels."
        )
    return warnings


def named_as_truth(truth: Truth | None, names: Sequence[str], roles: Roles) -> tuple[int, ...]:
    """Return which columns of the file, from 1, are features and have the private column's name.

    That is the name of the true labels' column, or the one before post-randomization.
    """
    theirs = {roles.label.removesuffix(RELEASED)}
    if truth is not None and truth.column is not None:
        theirs.add(truth.column)
    left = theirs.intersection(roles.features) - {roles.label}
    return tuple(place for place, name in enumerate(names, start=1) if name in left)


def _revealing_columns(features: EncodedFeatures, truth: IntArray) -> list[int]:
    """Return the feature columns (numbers from 0) that map one to one to the true label."""
    columns: list[tuple[int, npt.NDArray[Any]]] = [
        (place, block[:, 0])
        for place, block in zip(features.numeric_places, features.numeric, strict=True)
        if block.shape[1] == 1
    ]
    columns += zip(features.categorical_places, features.categorical, strict=True)
    return sorted(
        place
        for place, values in columns
        # Most columns are ruled out by a few rows.
        if _one_to_one(values[:_GLANCE], truth[:_GLANCE]) and _one_to_one(values, truth)
    )


def _one_to_one(values: npt.NDArray[Any], truth: IntArray) -> bool:
    """Return whether equal values have equal labels and the other way round, in every row."""
    distinct, codes = np.unique(values, return_inverse=True)
    classes = len(np.unique(truth))
    if len(distinct) != classes:
        return False
    width = int(truth.max()) + 1
    return len(np.unique(codes.astype(np.int64) * width + truth)) == classes


def _equal(labels: EncodedLabels) -> bool:
    """Return whether every released label is the true one."""
    if labels.numeric is not None:
        truth = labels.numeric.truth
        return truth is not None and bool((labels.numeric.released == truth).all())
    if labels.truth is None:
        return False
    domains = labels.domains
    meaning = positions(domains.outputs, domains.classes)
    table = label_table(labels.truth, labels.released, len(domains.classes), len(domains.outputs))
    places, codes = np.nonzero(table)
    return bool((meaning[codes] == places).all())
