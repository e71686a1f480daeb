"""Which rows are true and which are synthetic, label by label, and what that assumes."""

import math
from dataclasses import dataclass

import numpy as np

from ldpaudit.attacks.models.cells import hash_rows
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.renyi.curves import AUDIT_ID
from ldpaudit.release import BoolArray, FeatureTable, IndexArray

_DISTINCT = 0.99
_NEVER_EQUAL = (
    "no synthetic row equals by chance the row that it replaces: such rows count as kept, though "
    "true rows repeat"
)
_COPIES = (
    "equal synthetic rows are copies of one row and count once, though a few true rows repeat too"
)
_UNTRUE = "the synthetic rows are not copies of true ones, though many equal one"
_MOST_COPIES = 0.01
_STANDARD_ERRORS = 4
UNSEEN = (
    "the synthetic rows do not depend on the true rows that they are compared with: their "
    "generator never saw those rows"
)


@dataclass(frozen=True)
class Sides:
    """True and synthetic rows of every label.

    Attributes
    ----------
    true : mapping from label code to row numbers of ``original``
    synthetic : the same of ``made``
    original, made : FeatureTable
    labelled : bool
        Whether the synthetic rows' labels are known; else every label faces all of them.
    doubt : str or None
        What has to be assumed of the synthetic rows where they are known only by differing from
        the row that they replace and true rows repeat. Nothing about them is certified then.
    seen : bool
        Whether clearly more synthetic rows equal true ones than true rows equal one another: their
        generator may have seen them (or favours rows that many people share), and then no
        comparison says how far it is from people whom it has not seen.
    """

    true: dict[int, IndexArray]
    synthetic: dict[int, IndexArray]
    original: FeatureTable
    made: FeatureTable
    labelled: bool
    doubt: str | None = None
    seen: bool = False


def true_and_synthetic(context: AuditContext) -> Sides | None:
    """Return the rows of both sides, None where either is unknown."""
    release, k = context.release, len(context.release.classes)
    truth = release.truth
    if truth is None or release.features.width == 0:
        return None
    table = release.synthetic
    untouched = context.claim.traits.features == "unchanged"
    original = release.original
    if original is None and table is not None and untouched:
        original = release.features
    if original is None:
        return None
    true = {y: np.flatnonzero(truth == y) for y in range(k) if (truth == y).any()}
    if table is not None:
        made = {y: np.flatnonzero(table.labels == y) for y in range(k)}
        seen = _are_copies(table.features, original)
        return Sides(true, made, original, table.features, True, _UNTRUE if seen else None, seen)
    if not context.claim.traits.features_replaced:
        return None
    rows = np.flatnonzero(replaced_rows(original, release.features))
    distinct = _distinct_share(original)
    if distinct >= _DISTINCT:
        rows = _once(release.features, rows, original, context.rng(AUDIT_ID, "copies"))
    doubt = None if distinct == 1 else _COPIES if distinct >= _DISTINCT else _NEVER_EQUAL
    seen = _are_copies(release.features.take(rows), original)
    doubt = _UNTRUE if seen else doubt
    made = dict.fromkeys(true, rows)
    return Sides(true, made, original, release.features, False, doubt, seen)


def replaced_rows(original: FeatureTable, released: FeatureTable) -> BoolArray:
    """Return which rows have other features in the release than in the original, bool (n,)."""
    a, b = original.numeric, released.numeric
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    other = ~same.all(axis=1)
    return np.asarray(other | (original.categorical != released.categorical).any(axis=1))


def _are_copies(made: FeatureTable, original: FeatureTable) -> bool:
    """Return whether synthetic rows equal true rows clearly more often than true rows others do."""
    _, inverse, counts = np.unique(hash_rows(original), return_inverse=True, return_counts=True)
    repeated = float((counts[inverse] > 1).mean())
    copied = float(np.isin(hash_rows(made), hash_rows(original)).mean()) if len(made) else 0.0
    spread = math.sqrt(repeated * (1 - repeated) / max(min(len(made), len(original)), 1))
    return copied > repeated + _MOST_COPIES + _STANDARD_ERRORS * spread


def _distinct_share(original: FeatureTable) -> float:
    hashes = hash_rows(original)
    return len(np.unique(hashes)) / len(hashes)


def _once(
    released: FeatureTable, rows: IndexArray, original: FeatureTable, rng: np.random.Generator
) -> IndexArray:
    """Return each synthetic row once, but values that people share as often as they would be.

    Copies of one row of a synthetic table are one draw of its generator: on both sides of a split
    they would be recognised, which shows the table, not how the generator resembles people.
    A value that several people have would lose its weight among the synthetic rows alone; its rows
    are thinned by the average number of copies instead.
    """
    made = hash_rows(released.take(rows))
    values, counts = np.unique(hash_rows(original), return_counts=True)
    shared = np.isin(made, values[counts > 1])
    first = np.zeros(len(rows), dtype=bool)
    first[np.unique(made, return_index=True)[1]] = True
    share = (first & ~shared).sum() / max(int((~shared).sum()), 1)
    chosen = np.where(shared, rng.random(len(rows)) < share, first)
    return np.asarray(rows[chosen])
