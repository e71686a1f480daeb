"""Checked arrays: what scikit-learn's own validation returns, with types."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import validate_data

from ldpaudit.errors import InputError
from ldpaudit.release import FloatArray

Seed = int | np.random.Generator | None
"""scikit-learn's ``random_state``; a generator is used directly, None draws a seed."""


def check_weights(weights: npt.ArrayLike | None, n: int) -> FloatArray:
    """Return n weights, float64 of shape (n,); ones where none are given.

    Raises
    ------
    InputError
        If their number is not n, one is negative or not finite, or all are zero.
    """
    if weights is None:
        return np.ones(n)
    checked = np.asarray(weights, dtype=np.float64)
    if checked.ndim == 0:
        checked = np.full(n, float(checked))
    if checked.shape != (n,):
        raise InputError(
            f"The sample weights must be one number for each of the {n} rows. "
            f"Got shape {checked.shape} instead."
        )
    bad = int(np.count_nonzero(~np.isfinite(checked) | (checked < 0)))
    if bad or not checked.sum() > 0:
        raise InputError(
            f"The sample weights must be finite, not negative and not all zero; {bad} are not."
        )
    return checked


def checked_rows(estimator: Any, X: npt.ArrayLike, *, nan: bool = False) -> FloatArray:
    """Return the features of rows to predict or to add, float64 of shape (n, d)."""
    finite = "allow-nan" if nan else True
    rows: FloatArray = validate_data(
        estimator, X, dtype=np.float64, ensure_all_finite=finite, reset=False
    )
    return rows


def checked_pair(
    estimator: Any,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    nan: bool = False,
    numeric: bool = False,
    reset: bool = True,
) -> tuple[FloatArray, npt.NDArray[Any]]:
    """Return features (n, d) and labels (n,) to learn from."""
    pair: tuple[FloatArray, npt.NDArray[Any]] = validate_data(
        estimator,
        X,
        y,
        dtype=np.float64,
        ensure_all_finite="allow-nan" if nan else True,
        y_numeric=numeric,
        reset=reset,
    )
    return pair
