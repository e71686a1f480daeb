"""Whether test rows are of the release: a model knows the rows that it was trained on."""

import numpy as np

from ldpaudit.doors import FeatureTable, InputError, number
from ldpaudit.models.counts import hash_rows

_MOST, _NOTED = 0.5, 0.05


def rows_inside(release: FeatureTable, test: FeatureTable) -> float:
    """Return the share of test rows that are the release's, beyond what chance makes alike.

    Rows of different people may have equal features. How often that happens is how often rows of
    the release have a twin in it. InputError where most test rows are the release's.
    """
    own, theirs = hash_rows(release), hash_rows(test)
    _, place, counts = np.unique(own, return_inverse=True, return_counts=True)
    by_chance = float(np.mean(counts[place] > 1))
    share = float(np.isin(theirs, own).mean()) - by_chance
    if share > _MOST:
        raise InputError(
            "The test rows must be in no release: most of them have the features of a released "
            "row. Give rows of other people, with their true labels."
        )
    return share if share > _NOTED else 0.0


def said_inside(share: float) -> str:
    """Return that a share of the test rows are rows of the release; nothing where none are."""
    if not share:
        return ""
    return (
        f"About {number(100 * share, digits=0)} % of the test rows have the features of a "
        "released row: a model knows the rows that it was trained on, so what is said of it by "
        "the test rows is too good."
    )
