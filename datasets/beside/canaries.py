"""Canaries: rows whose true labels the auditor drew, with the probabilities of the draw."""

from dataclasses import replace
from typing import Any

import numpy as np

from ldpaudit.datasets.beside.class_probabilities import class_columns, distributions
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.release import Release


def with_canaries(release: Release, source: Any, files: FileOptions = AS_FOUND) -> Release:
    """Return the release with the probabilities that canaries' labels were drawn with.

    Parameters
    ----------
    release : Release
        n rows, k classes.
    source : path, table, float array of shape (n, k) or None
        A table has the release's row order and a column named after each class; a row without any
        number is no canary. An array has the release's order of classes, NaN for no canary.
        None: there are no canaries.
    files : FileOptions
        How text files are written.

    Raises
    ------
    InputError
        If rows or columns are missing, or a canary's probabilities do not sum to 1.
    """
    if source is None:
        return release
    values = class_columns(source, release, "The canaries'", files)
    drawn = ~np.isnan(values).all(axis=1)
    values[drawn] = distributions(values[drawn], "The canaries'")
    return replace(release, canaries=values)
