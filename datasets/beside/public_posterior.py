"""The public model's probabilities that come with a release by model-based randomized response."""

from dataclasses import replace
from typing import Any

import numpy as np

from ldpaudit.arrays import FloatArray
from ldpaudit.datasets.beside.class_probabilities import are_distributions, class_columns
from ldpaudit.errors import InputError
from ldpaudit.release import Release


def with_public_posterior(release: Release, source: Any) -> Release:
    """Return the release with P̂(y | x) of the public model.

    Parameters
    ----------
    release : Release
        n rows, k classes.
    source : path, table, float array of shape (n, k) or None
        A table has a column for each class, named by it, and the release's row order; an array
        has the declaration's order of classes, or without one the release's. None: nothing is
        known.

    Raises
    ------
    InputError
        If there is no probability for each row and class.
    """
    if source is None:
        return release
    if isinstance(source, np.ndarray):
        values = _array(source, release)
    else:
        values = class_columns(source, release, "The public model's")
    k = len(release.classes)
    if values.shape != (len(release), k):
        raise InputError(
            f"The public model must have a probability for each of {len(release)} rows and {k} "
            f"classes. Got shape {values.shape} instead."
        )
    good = are_distributions(values)
    if not good.all():
        raise InputError(
            f"The public model's probabilities must sum to 1; in {int((~good).sum())} rows they "
            "do not."
        )
    scaled: FloatArray = values / values.sum(axis=1, keepdims=True)
    return replace(release, public_posterior=scaled)


def _array(values: FloatArray, release: Release) -> FloatArray:
    declared = () if release.declaration is None else release.declaration.parameters.get("classes")
    if not declared or set(declared) != set(release.classes) or values.ndim != 2:
        return np.asarray(values, dtype=np.float64)
    if values.shape[1] != len(declared):
        return np.asarray(values, dtype=np.float64)
    order = [list(declared).index(label) for label in release.classes]
    return np.asarray(values[:, order], dtype=np.float64)
