"""Several rows of one person, each with fresh noise: what a claim per row becomes per person."""

from typing import Final

import numpy as np

from ldpaudit.audits.assumptions.rows import EQUAL, noise_clusters
from ldpaudit.audits.interface import AuditContext
from ldpaudit.release import IndexArray, IntArray

_ONE_ANSWER: Final = 0.9
"""The share of groups with one true label from which a group is one person."""
_ANY_TWO: Final = 0.75
"""With larger chances that any two labels are equal, equal rows say too little."""
_WORTH_SAYING: Final = 0.2


def rows_of_one(context: AuditContext) -> int:
    """Return the rows of the largest group where groups are persons with fresh noise; else 0.

    Without groups: of the largest group of equal rows, where they look like one person's.
    Without true labels a group that the user names is taken for one person.
    """
    groups, found = context.release.groups, noise_clusters(context)
    if found.test is not None and found.codes is not None:
        return 0
    truth = context.release.truth
    if groups is None:
        return _equal_rows_of_one(context)
    if truth is not None and _of_one_label(groups, truth) < _ONE_ANSWER:
        return 0
    return int(np.bincount(groups).max())


def _equal_rows_of_one(context: AuditContext) -> int:
    """Return the rows of the largest group of equal rows where these seem to be one person's.

    With true labels only: equal rows have equal labels far more often than any two rows.
    """
    truth = context.release.truth
    if truth is None or not equal_share(context):
        return 0
    codes, shares = noise_clusters(context).kinds[EQUAL], np.bincount(truth) / len(truth)
    if float(shares @ shares) > _ANY_TWO or _of_one_label(codes, truth) < _ONE_ANSWER:
        return 0
    return int(np.bincount(codes).max())


def _of_one_label(groups: IndexArray, truth: IntArray) -> float:
    """Return the share of groups of several rows in which all true labels are the same."""
    sizes = np.bincount(groups)
    first = np.zeros(len(sizes), dtype=np.int64)
    first[groups] = truth
    differing = np.bincount(groups, weights=truth != first[groups])
    several = sizes > 1
    return float(np.mean(differing[several] == 0)) if several.any() else 0.0


def equal_share(context: AuditContext) -> float:
    """Return the share of rows that equal another one, with noise of their own; 0 below a fifth."""
    found = noise_clusters(context)
    if EQUAL not in found.kinds or found.codes is not None:
        return 0.0
    codes = found.kinds[EQUAL]
    share = float(np.mean(np.bincount(codes)[codes] > 1))
    return share if share >= _WORTH_SAYING else 0.0
