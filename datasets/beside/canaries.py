"""Canaries: rows whose true labels the auditor drew, with the probabilities of the draw."""

from dataclasses import replace
from typing import Any

import numpy as np

from ldpaudit.datasets.beside.class_probabilities import are_distributions, class_columns
from ldpaudit.errors import InputError
from ldpaudit.release import Release


def with_canaries(release: Release, source: Any) -> Release:
    """Return the release with the probabilities that canaries' labels were drawn with.

    Parameters
    ----------
    release : Release
        n rows, k classes.
    source : path, table, float array of shape (n, k) or None
        A table has the release's row order and a column for each class, named by it; a row without
        any number is no canary. An array has the release's order of classes, NaN for no canary.
        None: there are no canaries.

    Raises
    ------
    InputError
        If rows or columns are missing, or a canary's probabilities do not sum to 1.
    """
    if source is None:
        return release
    if not isinstance(source, np.ndarray):
        source = class_columns(source, release, "The canaries'", "numbers or nothing")
    values = np.asarray(source, dtype=np.float64)
    k = len(release.classes)
    if values.shape != (len(release), k):
        raise InputError(
            f"The canaries' table must have {len(release)} rows, in the release's order, and a "
            f"probability for each of {k} classes. Got shape {values.shape} instead."
        )
    drawn = ~np.isnan(values).all(axis=1)
    own = values[drawn]
    good = are_distributions(own)
    if not good.all():
        raise InputError(
            "A canary's probabilities must be given for every class and sum to 1; "
            f"{int((~good).sum())} of {len(own)} canaries' are not."
        )
    scaled = np.full(values.shape, np.nan)
    scaled[drawn] = own / own.sum(axis=1, keepdims=True)
    return replace(release, canaries=scaled)
