"""What all columns together tell of true labels, learnt on half of a few rows."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ldpaudit.release import IntArray

LIMIT: Final = 0.98
"""That of the check ``features-reveal-label``."""
_MOST_ROWS: Final = 10_000
_MOST_CELLS: Final = 1_000_000
_FEWEST_ROWS: Final = 400
_FEWEST_OF_A_LABEL: Final = 20
_TREES: Final = 30
_VALUES: Final = 255
"""As many as trees tell apart."""


def told_together(arrays: Sequence[npt.NDArray[Any]], labels: IntArray) -> float | None:
    """Return what the columns together tell: balanced accuracy, or the AUC of two labels.

    Parameters
    ----------
    arrays : sequence of arrays of shape (n,)
        Numbers, or codes of categories.
    labels : int32 array of shape (n,)
        Codes of the true labels; rare ones are left out.

    Returns
    -------
    float or None
        The larger of the two on rows that nothing was learnt from; None with too few rows.
    """
    counts = np.bincount(labels)
    rows = np.flatnonzero(counts[labels] >= _FEWEST_OF_A_LABEL)
    most = min(_MOST_ROWS, _MOST_CELLS // max(len(arrays), 1))
    rows = np.random.default_rng(0).permutation(rows)[:most]  # Which rows, no more than that.
    if len(rows) < _FEWEST_ROWS or len(np.unique(labels[rows])) < 2 or not arrays:
        return None
    cells = np.column_stack([_few_values(array[rows].astype(np.float64)) for array in arrays])
    return _held_out(cells, labels[rows])


def _few_values(column: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return a column of many values as groups of neighbours; NaN where it is not finite.

    With weights the trees would search the ends of their groups one by one, sorting anew for each.
    """
    known = np.isfinite(column)
    values = column[known]
    if len(np.unique(values)) > _VALUES:
        shares = np.arange(1, _VALUES) / _VALUES
        ends = np.unique(np.quantile(values, shares, method="inverted_cdf"))
        values = np.searchsorted(ends, values).astype(np.float64)
    found = np.full(len(column), np.nan)
    found[known] = values
    return found


def _held_out(cells: npt.NDArray[np.float64], labels: IntArray) -> float | None:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import balanced_accuracy_score, roc_auc_score

    half = len(labels) // 2
    known, asked = labels[:half], labels[half:]
    if set(np.unique(known)) != set(np.unique(asked)):
        return None
    model = HistGradientBoostingClassifier(
        max_iter=_TREES, class_weight="balanced", early_stopping=False, random_state=0
    ).fit(cells[:half], known)
    told = float(balanced_accuracy_score(asked, model.predict(cells[half:])))
    if len(model.classes_) > 2:
        return told
    return max(told, float(roc_auc_score(asked, model.predict_proba(cells[half:])[:, 1])))
