"""The public model's probabilities that come with a release by model-based randomized response."""

from dataclasses import replace
from typing import Any

import numpy as np

from ldpaudit.datasets.beside.class_probabilities import class_columns, distributions
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.release import Release


def with_public_posterior(release: Release, source: Any, files: FileOptions = AS_FOUND) -> Release:
    """Return the release with P̂(y | x) of the public model.

    Parameters
    ----------
    release : Release
        n rows, k classes.
    source : path, table, float array of shape (n, k) or None
        A table has a column named after each class, and the release's row order; an array has the
        declaration's order of classes, or without one the release's. None: the model is unknown.
    files : FileOptions
        How text files are written.

    Raises
    ------
    InputError
        If there is no probability for each row and class.
    """
    if source is None:
        return release
    values = class_columns(source, release, "The public model's", files)
    declared = release.declaration and release.declaration.parameters.get("classes")
    if isinstance(source, np.ndarray) and declared and set(declared) == set(release.classes):
        values = values[:, [list(declared).index(label) for label in release.classes]]
    return replace(release, public_posterior=distributions(values, "The public model's"))
