"""Canaries: rows whose true labels the auditor drew, with the probabilities of the draw."""

from dataclasses import replace
from typing import Any

import numpy as np

from ldpaudit.datasets.beside.class_probabilities import class_columns, distributions
from ldpaudit.release import Release


def with_canaries(release: Release, source: Any) -> Release:
    """Return the release with the probabilities that canaries' labels were drawn with.

    Parameters
    ----------
    release : Release
        n rows, k classes.
    source : path, table, float array of shape (n, k) or None
        A table has the release's row order and a column named after each class; a row without any
        number is no canary. An array has the release's order of classes, NaN for no canary.
        None: there are no canaries.

    Raises
    ------
    InputError
        If rows or columns are missing, or a canary's probabilities do not sum to 1.
    """
    if source is None:
        return release
    values = class_columns(source, release, "The canaries'")
    drawn = ~np.isnan(values).all(axis=1)
    values[drawn] = distributions(values[drawn], "The canaries'")
    return replace(release, canaries=values)
