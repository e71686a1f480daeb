"""True labels that were left in a release by mistake, and other signs that files were mixed up.

The warnings go into reports, so they give a column's number, not its name.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpaudit.datasets.beside.channel_tables import RELEASED
from ldpaudit.datasets.beside.truth import Truth
from ldpaudit.datasets.domains import EncodedLabels
from ldpaudit.datasets.features import EncodedFeatures
from ldpaudit.datasets.labels import positions
from ldpaudit.datasets.roles import Roles
from ldpaudit.release import IntArray

_GLANCE = 1000


def warnings_about(
    truth: Truth | None,
    labels: EncodedLabels,
    features: EncodedFeatures,
    names: Sequence[str],
    roles: Roles,
) -> list[str]:
    """Return what the reader should know about the truth beside a release with these columns."""
    values, warnings = labels.true_values, []
    if truth is None or values is None:
        return []
    number = {name: place for place, name in enumerate(names, start=1)}
    if truth.column in roles.features:
        warnings.append(
            f"Column {number[truth.column]} of the release has the name of the true label's column "
            f"and is used as a feature: was the true label left in the release?"
        )
    for place in _revealing_columns(features, values):
        warnings.append(
            f"Column {number[roles.features[place]]} of the release determines the true label in "
            f"every row: was the true label left in the release?"
        )
    if _equal(labels):
        warnings.append(
            "The true labels equal the released labels in every row: either nothing was "
            "privatized, or the release itself was given as the truth."
        )
    if labels.domains.apart:
        warnings.append(
            "No true label has the value of any released label; they were read as labels of two "
            "different kinds."
        )
    if truth.unused:
        warnings.append("Some rows of the truth match no row of the release and were left out.")
    return warnings


def twin_warnings(names: Sequence[str], roles: Roles) -> list[str]:
    """Return a warning where the column that was post-randomized is a feature beside its result."""
    before = roles.label.removesuffix(RELEASED)
    if before == roles.label or before not in roles.features:
        return []
    return [
        f"Column {names.index(before) + 1} of the release has the name that the private column had "
        "before it was post-randomized, and is used as a feature: were the true values left in the "
        "release?"
    ]


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


def _one_to_one(values: npt.NDArray[np.generic], truth: IntArray) -> bool:
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
    domains = labels.domains
    meaning = positions(domains.outputs, domains.classes)
    return bool((meaning[labels.released] == labels.truth).all())
