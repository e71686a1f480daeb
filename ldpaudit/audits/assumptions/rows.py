"""Which rows bounds may count: where rows share noise, one of each group."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

import numpy as np

from ldpaudit.audits.assumptions.noise import centred_by_features, label_noise
from ldpaudit.audits.assumptions.unlabelled import clusters_that_agree, lags_that_agree
from ldpaudit.audits.interface import AuditContext
from ldpaudit.estimators.assumptions.bets import bet_on_pairs, disjoint_pairs, p_value
from ldpaudit.estimators.assumptions.clusters import (
    alike_rows,
    equal_ranks,
    equal_rows,
    has_pairs,
    merged,
    one_of_each,
    partly_equal_rows,
)
from ldpaudit.estimators.assumptions.lags import LagTest
from ldpaudit.estimators.assumptions.order import OrderTest
from ldpaudit.estimators.assumptions.shared_noise import (
    BLOCKS,
    FEWEST_PAIRS,
    LAGS,
    STRETCH,
    NoiseTest,
    noise_test,
)
from ldpaudit.release import FeatureTable, IndexArray

GROUPS: Final = "groups"
EQUAL: Final = "equal rows"
PARTLY: Final = "rows equal in some columns"
RANKS: Final = "rows of equal rank"
SHARED: Final = 0.05
"""The p-value from which rows count as sharing noise."""
STILL_SHARED: Final = 0.001
_LESS_ALIKE: Final = 4.0
"""How many times as far apart rows are among which shared noise is looked for once more."""
_MOST_RANKED: Final = 64
_ALIKE_SHARE, _RANKS_SHARE = 0.25, 0.25
"""Of the error probability; the order of rows has the rest."""


@dataclass(frozen=True, eq=False)
class Clusters:
    """Which rows share noise because they belong together.

    Attributes
    ----------
    kinds : mapping from name to int64 array of shape (n,)
        The clusters that were looked at.
    shared : tuple of str
        Those that share noise.
    codes : int64 array of shape (n,) or None
        The clusters that share noise, put together; None where none does.
    test : NoiseTest or None
        The test against true labels; None without them.
    features : FeatureTable or None
        What rows were compared by: no column computed from the released label.
    ranked : int
        The array column within whose values rows of equal rank were compared, the clearest of all.
    ordered : bool
        Whether the order of the rows was made from released labels: it is not tested then.
    """

    kinds: Mapping[str, IndexArray]
    shared: tuple[str, ...]
    codes: IndexArray | None
    test: NoiseTest | None = None
    features: FeatureTable | None = None
    ranked: int = -1
    ordered: bool = False

    @property
    def along(self) -> tuple[str, ...]:
        """What the order of rows shows: a stretch with other noise, blocks of equal counts."""
        test = self.test
        if test is None:
            return ()
        return tuple(name for name in (STRETCH, BLOCKS) if test.corrected(name) <= SHARED)


@dataclass(frozen=True, eq=False)
class Counted:
    """The rows that bounds count.

    Attributes
    ----------
    rows : int64 array or None
        In order; None for all of them.
    lags : LagTest or None
        The distances at which rows share noise, None where they do not.
    holds : bool
        Whether no noise is shared by the rows left.
    """

    rows: IndexArray | None
    lags: LagTest | None = None
    holds: bool = True


def counted_rows(context: AuditContext) -> IndexArray | None:
    """Return the rows that a bound may count, int64, in order; None for all of them."""
    return counted(context).rows


def clusters(context: AuditContext) -> IndexArray | None:
    """Return codes of rows that must be in one half, int64 (n,); None where each is on its own."""
    found, groups = noise_clusters(context), context.release.groups
    if groups is None or found.codes is None:
        return found.codes if groups is None else groups
    return merged(groups, found.codes)


def tested(context: AuditContext) -> bool:
    """Return whether the claim is one in which each row has noise of its own."""
    traits = context.claim.traits
    return traits.rows == "independent" and not traits.label_depends_on_features


def noise_clusters(context: AuditContext) -> Clusters:
    """Return which groups, equal and nearly equal rows share noise."""
    return context.once("assumptions.clusters", lambda: _find_clusters(context))


def _find_clusters(context: AuditContext) -> Clusters:
    if not tested(context):
        return Clusters({}, (), None)
    found = _look(context)
    if not _suspicious(context, found):
        return found
    # A column computed from the released label makes rows alike whose released labels agree.
    from ldpaudit.audits.assumptions.columns import first_look

    together = _together(found.kinds, [*_alike(found.kinds), *found.shared])
    together = np.arange(len(context.release)) if together is None else together
    seen = first_look(context, together)
    ordered = seen.ordered and not seen.doubtful
    return _look(context, seen.derived, ordered) if seen.derived or ordered else found


def _suspicious(context: AuditContext, found: Clusters) -> bool:
    """Return whether equal or nearly equal rows agree too often, for whatever reason."""
    if found.test is not None:
        lags = found.test.corrected(LAGS) <= SHARED
        return lags or bool(found.along) or bool(set(found.shared) - {GROUPS})
    alike = {name: codes for name, codes in found.kinds.items() if name != GROUPS}
    return bool(clusters_that_agree(context, alike, None))


def _look(context: AuditContext, derived: tuple[int, ...] = (), ordered: bool = False) -> Clusters:
    features = context.release.features.without(derived)
    kinds = _kinds(context, features)
    if context.release.truth is None:
        shared = clusters_that_agree(context, kinds, features)
        partly = [name for name in shared if name.startswith(PARTLY)]
        shared = [name for name in shared if name not in partly[1:]]
        # Without true labels nothing shows that a group's rows do not share noise.
        if GROUPS in kinds and GROUPS not in shared:
            shared.append(GROUPS)
        return Clusters(kinds, tuple(shared), _together(kinds, shared), features=features)
    shares = dict.fromkeys(kinds, _ALIKE_SHARE / max(len(kinds), 1))
    kept = [j for j in range(context.release.features.width) if j not in derived]
    ranked, kinds[RANKS], shares[RANKS] = _clearest_ranks(context, features, kept)
    test = _test(context, kinds, shares, features, ordered)
    shared = _shared(test)
    together = _together(kinds, shared)
    return Clusters(kinds, tuple(shared), together, test, features, ranked, ordered)


def _clearest_ranks(
    context: AuditContext, features: FeatureTable, places: list[int]
) -> tuple[int, IndexArray, float]:
    """Return the column whose rows of equal rank share noise most clearly, them, and their share.

    The column by its number among all; no two rows have one rank where no column has few values.
    """
    noise, rng = label_noise(context), context.rng("equal ranks")
    looked_at, best = 0, (-np.inf, -1, np.arange(len(context.release)))
    for place, ranks in islice(equal_ranks(features), _MOST_RANKED):
        pairs = disjoint_pairs(ranks, rng)
        looked_at += 1
        best = max(
            best,
            (bet_on_pairs(noise.outcomes, noise.chances, *pairs), places[place], ranks),
            key=lambda one: one[0],
        )
    return best[1], best[2], _RANKS_SHARE / max(looked_at, 1)


def _kinds(context: AuditContext, features: FeatureTable) -> dict[str, IndexArray]:
    kinds = {}
    if context.release.groups is not None:
        kinds[GROUPS] = context.release.groups
    if not features.is_constant():
        kinds[EQUAL] = equal_rows(features)
        kinds["nearly equal rows"] = alike_rows(features, context.rng("alike rows"))
        partly = partly_equal_rows(features, context.rng("partly equal rows"))
        kinds |= {f"{PARTLY} ({place})": codes for place, codes in enumerate(partly, 1)}
    return kinds


def _alike(kinds: Mapping[str, IndexArray]) -> list[str]:
    return [name for name in kinds if not name.startswith((PARTLY, RANKS))]


def _shared(test: NoiseTest) -> list[str]:
    """Return the kinds that share noise, of those equal in some columns the clearest at most."""
    found = test.shared(SHARED)
    # Where noise changes along the file rows of equal rank have like noise by their places.
    if RANKS in found and test.corrected(STRETCH) <= test.corrected(RANKS):
        found.remove(RANKS)
    partly = [name for name in test.shared(STILL_SHARED) if name.startswith(PARTLY)]
    clearest = sorted(partly, key=lambda name: test.by_clusters[name])[:1]
    return [name for name in found if not name.startswith(PARTLY)] + clearest


def _together(kinds: Mapping[str, IndexArray], shared: list[str]) -> IndexArray | None:
    """Return the clusters put together, of rows equal in some columns the first kind alone.

    Several such kinds would make one cluster of nearly all rows.
    """
    together: IndexArray | None = None
    partly = [name for name in shared if name.startswith(PARTLY)]
    for name in shared:
        if name in partly[1:]:
            continue
        together = kinds[name] if together is None else merged(together, kinds[name])
    return together


def may_share(context: AuditContext) -> bool:
    """Return whether rows equal in some columns may share noise: not all of them are found then."""
    test = noise_clusters(context).test
    return test is not None and bool(_unsure(test))


def _unsure(test: NoiseTest) -> list[str]:
    """Return the kinds equal in some columns that may share noise, were each the only one."""
    return [k for k, p in test.by_clusters.items() if k.startswith(PARTLY) and p <= SHARED]


def _test(
    context: AuditContext,
    kinds: Mapping[str, IndexArray],
    shares: Mapping[str, float],
    features: FeatureTable,
    ordered: bool,
) -> NoiseTest:
    """Test for shared noise; a channel that uses features is not to be taken for it."""
    noise, rng = label_noise(context), context.rng("shared noise")
    order = OrderTest(LagTest(1.0)) if ordered else noise.order()
    test = noise_test(noise.outcomes, noise.chances, kinds, rng, order, shares)
    suspicious = test.p_value <= SHARED or bool(_unsure(test))
    if not suspicious or features.is_constant():
        return test
    together = _together(kinds, [*_alike(kinds), *_shared(test)])
    assert together is not None
    chances = centred_by_features(context, features, noise, together)
    rng, order = context.rng("shared noise", "centred"), OrderTest.of(noise.outcomes, chances)
    # Features that steer a channel give no block an exact count, and a model would blur it.
    order = replace(order, blocks=test.order.blocks)
    return test.less_clear(noise_test(noise.outcomes, chances, kinds, rng, order, shares))


def counted(context: AuditContext) -> Counted:
    """Return the rows that bounds count, and why."""
    return context.once("assumptions.counted", lambda: _count(context))


def _count(context: AuditContext) -> Counted:
    found = noise_clusters(context)
    rows = None
    if found.codes is not None:
        rows = one_of_each(found.codes, context.rng("counted rows"))
    lags = _lags(context, found, rows)
    if lags is None:
        return Counted(rows, None, rows is None or not _some_left(context, found, rows))
    rows = np.arange(len(context.release)) if rows is None else rows
    rows = lags.apart(rows)
    return Counted(rows, lags, _independent(context, rows))


def _some_left(context: AuditContext, found: Clusters, rows: IndexArray) -> bool:
    """Return whether rows that are less alike share noise too: not all of them were found."""
    features = found.features
    if found.test is None or features is None or features.is_constant():
        return False
    left, rng = features.take(rows), context.rng("alike rows", "left")
    codes = alike_rows(left, rng, _LESS_ALIKE)
    if not has_pairs(codes, FEWEST_PAIRS):
        return False
    noise = label_noise(context)
    outcomes, chances = noise.outcomes[rows], noise.chances[rows]
    first, second = disjoint_pairs(codes, rng)
    return p_value(bet_on_pairs(outcomes, chances, first, second)) <= STILL_SHARED


def _lags(context: AuditContext, found: Clusters, rows: IndexArray | None) -> LagTest | None:
    """Return the distances at which rows share noise, also after one of each cluster is taken."""
    if not tested(context):
        return None
    if found.test is None:
        return lags_that_agree(context, rows)
    if found.test.corrected(LAGS) > SHARED:
        return None
    if rows is None:
        return found.test.order.lags
    left = label_noise(context).lags(rows)
    return left if left.p_value <= SHARED else None


def _independent(context: AuditContext, rows: IndexArray) -> bool:
    if context.release.truth is None:
        return True
    if noise_clusters(context).ordered:
        return True
    return label_noise(context).lags(rows).p_value > STILL_SHARED
