"""Which columns of a wide table to scan: those that go most clearly with a label, own or near."""

from dataclasses import replace
from typing import Final

import numpy as np

from ldpaudit.estimators.columns.scan import LAGS
from ldpaudit.modelling.association import associations, strongest
from ldpaudit.modelling.values import projected
from ldpaudit.release import FeatureTable, IndexArray, IntArray

MOST_SCANNED: Final = 256
"""Columns that are scanned one by one."""
_MOST_ROWS: Final = 5_000


def worth_scanning(
    features: FeatureTable, codes: IntArray, rows: IndexArray, places: list[int]
) -> list[int]:
    """Return the columns that a scan must see, in order.

    Parameters
    ----------
    features : FeatureTable
        n rows in their order.
    codes : int32 array of shape (n,)
        True or released labels.
    rows : int64 array of shape (s,)
        Rows of the scan, in random order; 5,000 of them are looked at.
    places : list of int
        The columns to choose from.

    Notes
    -----
    A column is scored by the label of its own row, also with the row's number taken from it, and by
    the labels of the rows of :data:`ldpaudit.estimators.columns.scan.LAGS`. Half of the columns are
    those of the own label.
    """
    rows = np.sort(rows[:_MOST_ROWS])
    table = projected(features.take(rows), tuple(places))
    # A column at row t that tells the label of row t - lag, seen ``lag`` rows away from there.
    near = [codes[(rows - lag) % len(codes)] for lag in LAGS]
    own, *lagged = associations(table, [codes[rows], *near])
    counted = replace(table, numeric=(table.numeric - rows[:, None]).astype(np.float32))
    width = table.numeric.shape[1]
    others = [*lagged, np.append(associations(counted, [codes[rows]])[0][:width], own[width:])]
    kept = set(strongest(own, MOST_SCANNED // 2).tolist())
    for scores in others:
        kept.update(strongest(scores, MOST_SCANNED // 2 // len(others)).tolist())
    return [places[i] for i in sorted(kept)]
