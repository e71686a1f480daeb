"""Canaries: rows whose true labels the auditor drew, with the probabilities of the draw."""

from dataclasses import replace
from typing import Any

import numpy as np

from ldpaudit.arrays import FloatArray
from ldpaudit.datasets.formats.tabular import open_table
from ldpaudit.errors import InputError
from ldpaudit.release import Release

_TOLERANCE = 1e-3


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
    values = source if isinstance(source, np.ndarray) else _table(source, release)
    values = np.asarray(values, dtype=np.float64)
    k = len(release.classes)
    if values.shape != (len(release), k):
        raise InputError(
            f"The canaries' table must have {len(release)} rows, in the release's order, and a "
            f"probability for each of {k} classes. Got shape {values.shape} instead."
        )
    drawn = ~np.isnan(values).all(axis=1)
    own = values[drawn]
    good = np.isfinite(own).all(axis=1) & (own >= 0).all(axis=1)
    good &= np.abs(own.sum(axis=1) - 1) <= _TOLERANCE
    if not good.all():
        raise InputError(
            "A canary's probabilities must be given for every class and sum to 1; "
            f"{int((~good).sum())} of {len(own)} canaries' are not."
        )
    scaled = np.full(values.shape, np.nan)
    scaled[drawn] = own / own.sum(axis=1, keepdims=True)
    return replace(release, canaries=scaled)


def _table(source: Any, release: Release) -> FloatArray:
    table = open_table(source)
    wanted = [str(label) for label in release.classes]
    missing = sum(name not in table.names for name in wanted)
    if missing:
        raise InputError(
            f"The canaries' table must have a column named after each of {len(wanted)} classes; "
            f"{missing} are missing."
        )
    try:
        columns = [column.to_numpy().astype(np.float64) for _, column in table.columns(wanted)]
    except (TypeError, ValueError):
        raise InputError("The canaries' table must hold numbers or nothing.") from None
    return np.stack(columns, axis=1)
