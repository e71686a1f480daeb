"""Which columns of a release were there before the noise, as far as is known."""

from collections.abc import Collection

import numpy as np

from ldpaudit.audits.interface import AuditContext, remembered
from ldpaudit.release import BoolArray, FeatureTable


def before(context: AuditContext) -> tuple[int, ...]:
    """Return the places of arrays, numeric ones first, of columns from before the noise."""
    width = context.release.features.width
    return tuple(sorted(place for place in context.release.before if place < width))


def unknown(context: AuditContext) -> tuple[int, ...]:
    """Return the places of all other arrays: they may be computed from released labels."""
    known = context.release.before
    return tuple(j for j in range(context.release.features.width) if j not in known)


def names(context: AuditContext, places: Collection[int]) -> tuple[str, ...]:
    """Return the columns of the file that arrays come from, each once, in the file's order."""
    asked = frozenset(places)
    columns = (one for one in context.release.columns if not asked.isdisjoint(one.arrays))
    return tuple(one.name for one in columns)


@remembered("before.kept")
def kept_features(context: AuditContext) -> BoolArray | None:
    """Return in which rows the features are the original ones, bool (n,).

    Whoever knows a person's features sees it. None where no original features are given, or all
    rows are alike.
    """
    release = context.release
    if release.original is None:
        return None
    kept = ~replaced_rows(release.original, release.features)
    return kept if 0 < np.count_nonzero(kept) < len(kept) else None


def replaced_rows(original: FeatureTable, released: FeatureTable) -> BoolArray:
    """Return which rows have other features in the release than in the original, bool (n,)."""
    a, b = original.numeric, released.numeric
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    other = ~same.all(axis=1)
    return np.asarray(other | (original.categorical != released.categorical).any(axis=1))
