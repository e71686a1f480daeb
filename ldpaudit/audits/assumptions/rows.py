"""Which rows bounds may count: where noise is shared, one of each group; and what that reveals."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np

from ldpaudit.audits.assumptions.derived import first_look
from ldpaudit.audits.assumptions.noise import (
    centred_by_features,
    clusters_that_agree,
    label_noise,
    lags_that_agree,
)
from ldpaudit.audits.interface import AuditContext, remembered
from ldpaudit.estimators.assumptions.clusters import (
    alike_rows,
    equal_ranks,
    equal_rows,
    has_pairs,
    merged,
    one_of_each,
    partly_equal_rows,
)
from ldpaudit.estimators.assumptions.noise import (
    LagTest,
    bet_on_pairs,
    disjoint_pairs,
    lag_test,
    neighbour_guesses,
    p_value,
    tried,
)
from ldpaudit.estimators.assumptions.order import (
    BLOCKS,
    FEWEST_PAIRS,
    LAGS,
    STRETCH,
    NoiseTest,
    OrderTest,
    noise_test,
    stretch_test,
)
from ldpaudit.estimators.epsilon.bounds import EpsilonBound
from ldpaudit.estimators.epsilon.guesses import GuessCounts, epsilon_lower
from ldpaudit.release import BoolArray, FeatureTable, IndexArray, IntArray

GROUPS: Final = "groups"
EQUAL: Final = "equal rows"
_PARTLY: Final = "rows equal in some columns"
RANKS: Final = "rows of equal rank"
SHARED: Final = 0.05
"""The p-value from which rows count as sharing noise."""
_STILL_SHARED: Final = 0.001
# How many times as far apart rows are among which shared noise is looked for once more.
_LESS_ALIKE: Final = 4.0
_MOST_RANKED: Final = 64
# Of the error probability; the order of rows has the rest.
_ALIKE_SHARE, _RANKS_SHARE = 0.25, 0.25


@dataclass(frozen=True, eq=False)
class Clusters:
    """Which rows share noise because they belong together.

    ``kinds``, mapping from name to int64 (n,): The clusters that were looked at. ``shared``: Those
    that share noise. ``codes``, int64 (n,): the clusters that share noise, put together; None where
    none does. ``test``: the test against true labels; None without them. ``features``: what rows
    were compared by: no column computed from the released label. ``ranked``: the array column
    within whose values rows of equal rank were compared, the clearest of all. ``ordered``: Whether
    the order of the rows was made from released labels: it is not tested then.
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

    ``rows``: in order; None for all of them. ``lags``: the distances at which rows share noise,
    None where they do not. ``holds``: whether no noise is shared by the rows left.
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


@remembered("assumptions.clusters")
def noise_clusters(context: AuditContext) -> Clusters:
    """Return which groups, equal and nearly equal rows share noise."""
    if not tested(context):
        return Clusters({}, (), None)
    found = _look(context)
    if not _suspicious(context, found):
        return found
    # A column computed from the released label makes rows alike whose released labels agree.
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
        partly = [name for name in shared if name.startswith(_PARTLY)]
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
    found = [
        (bet_on_pairs(noise.outcomes, noise.chances, *disjoint_pairs(ranks, rng)), place, ranks)
        for place, ranks in islice(equal_ranks(features), _MOST_RANKED)
    ]
    if not found:
        return -1, np.arange(len(context.release)), _RANKS_SHARE
    _, place, ranks = max(found, key=lambda one: one[0])
    return places[place], ranks, _RANKS_SHARE / len(found)


def _kinds(context: AuditContext, features: FeatureTable) -> dict[str, IndexArray]:
    kinds = {}
    if context.release.groups is not None:
        kinds[GROUPS] = context.release.groups
    if not features.is_constant():
        kinds[EQUAL] = equal_rows(features)
        kinds["nearly equal rows"] = alike_rows(features, context.rng("alike rows"))
        partly = partly_equal_rows(features, context.rng("partly equal rows"))
        kinds |= {f"{_PARTLY} ({place})": codes for place, codes in enumerate(partly, 1)}
    return kinds


def _alike(kinds: Mapping[str, IndexArray]) -> list[str]:
    return [name for name in kinds if not name.startswith((_PARTLY, RANKS))]


def _shared(test: NoiseTest) -> list[str]:
    """Return the kinds that share noise, of those equal in some columns the clearest at most."""
    found = test.shared(SHARED)
    # Where noise changes along the file rows of equal rank have like noise by their places.
    if RANKS in found and test.corrected(STRETCH) <= test.corrected(RANKS):
        found.remove(RANKS)
    partly = [name for name in test.shared(_STILL_SHARED) if name.startswith(_PARTLY)]
    clearest = sorted(partly, key=lambda name: test.by_clusters[name])[:1]
    return [name for name in found if not name.startswith(_PARTLY)] + clearest


def _together(kinds: Mapping[str, IndexArray], shared: list[str]) -> IndexArray | None:
    """Return the clusters put together, of rows equal in some columns the first kind alone.

    Several such kinds would make one cluster of nearly all rows.
    """
    together: IndexArray | None = None
    partly = [name for name in shared if name.startswith(_PARTLY)]
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
    return [k for k, p in test.by_clusters.items() if k.startswith(_PARTLY) and p <= SHARED]


def _test(
    context: AuditContext,
    kinds: Mapping[str, IndexArray],
    shares: Mapping[str, float],
    features: FeatureTable,
    ordered: bool,
) -> NoiseTest:
    noise, rng = label_noise(context), context.rng("shared noise")
    order = OrderTest() if ordered else noise.order()
    test = noise_test(noise.outcomes, noise.chances, kinds, rng, order, shares)
    suspicious = test.p_value <= SHARED or bool(_unsure(test))
    if not suspicious or features.is_constant():
        return test
    together = _together(kinds, [*_alike(kinds), *_shared(test)])
    assert together is not None
    chances = centred_by_features(context, features, noise, together)
    lags, stretch = lag_test(noise.outcomes, chances), stretch_test(noise.outcomes, chances)
    # Features that steer a channel give no block an exact count, and a model would blur it.
    order = OrderTest(
        max(order.lags, lags, key=lambda found: found.p_value),
        max(order.stretch, stretch, key=lambda found: found.p_value),
        order.blocks,
    )
    rng = context.rng("shared noise", "centred")
    centred = noise_test(noise.outcomes, chances, kinds, rng, order, shares)
    least = {name: max(p, centred.by_clusters[name]) for name, p in test.by_clusters.items()}
    return NoiseTest(least, test.shares, order)


@remembered("assumptions.counted")
def counted(context: AuditContext) -> Counted:
    """Return the rows that bounds count, and why."""
    found, rows = noise_clusters(context), None
    if found.codes is not None:
        rows = one_of_each(found.codes, context.rng("counted rows"))
    lags = _lags(context, found, rows)
    if lags is None:
        return Counted(rows, None, rows is None or not _some_left(context, found, rows))
    rows = lags.apart(np.arange(len(context.release)) if rows is None else rows)
    untested = context.release.truth is None or found.ordered
    holds = untested or label_noise(context).lags(rows).p_value > _STILL_SHARED
    return Counted(rows, lags, holds)


def _some_left(context: AuditContext, found: Clusters, rows: IndexArray) -> bool:
    """Return whether rows that are less alike share noise too: not all of them were found."""
    features = found.features
    if found.test is None or features is None or features.is_constant():
        return False
    rng, noise = context.rng("alike rows", "left"), label_noise(context)
    codes = alike_rows(features.take(rows), rng, _LESS_ALIKE)
    if not has_pairs(codes, FEWEST_PAIRS):
        return False
    outcomes, chances = noise.outcomes[rows], noise.chances[rows]
    return p_value(bet_on_pairs(outcomes, chances, *disjoint_pairs(codes, rng))) <= _STILL_SHARED


def _lags(context: AuditContext, found: Clusters, rows: IndexArray | None) -> LagTest | None:
    """Return the distances at which rows share noise, also after one of each cluster is taken."""
    if not tested(context):
        return None
    if found.test is None:
        return lags_that_agree(context, rows)
    if found.test.corrected(LAGS) > SHARED:
        return None
    left = found.test.order.lags if rows is None else label_noise(context).lags(rows)
    return left if rows is None or left.p_value <= SHARED else None


# The share of groups with one true label from which a group is one person.
_ONE_ANSWER: Final = 0.9
# With larger chances that any two labels are equal, equal rows say too little.
_ANY_TWO: Final = 0.75
_WORTH_SAYING: Final = 0.2


def rows_of_one(context: AuditContext) -> int:
    """Return the rows of the largest group where groups are persons with fresh noise; else 0.

    Without groups: of the largest group of equal rows, where they look like one person's.
    Without true labels a group that the user names is taken for one person.
    """
    groups, truth, found = context.release.groups, context.release.truth, noise_clusters(context)
    if found.test is not None and found.codes is not None:
        return 0
    if groups is None:
        # Equal rows are one person's where they have equal labels far more often than any two.
        if truth is None or not equal_share(context):
            return 0
        groups, shares = found.kinds[EQUAL], np.bincount(truth) / len(truth)
        if float(shares @ shares) > _ANY_TWO:
            return 0
    if truth is not None and _of_one_label(groups, truth) < _ONE_ANSWER:
        return 0
    return int(np.bincount(groups).max())


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


BOUND: Final = "mechanism.shared_noise_epsilon_lower"


@remembered("assumptions.neighbours")
def neighbour_counts(context: AuditContext) -> GuessCounts | None:
    """Return how often a neighbour's noise tells the true label; None where none is shared.

    None also where labels are numbers or no two rows that share noise differ in their true labels:
    noise that one person's rows share gives nothing away.
    """
    release, found, lags = context.release, noise_clusters(context), counted(context).lags
    whole = release.outputs == release.classes and release.numeric is None
    if release.truth is None or not whole or found.test is None:
        return None
    if found.codes is not None:
        first, second = disjoint_pairs(found.codes, context.rng("neighbours"))
        one = np.unique(found.codes[first], return_index=True)[1]
        pairs = first[one], second[one]
    elif lags is not None:
        pairs = lags.pairs(len(release))
    else:
        return None
    rng = context.rng("neighbours", "guesses")
    counts = neighbour_guesses(context.truth, release.released, *pairs, rng)
    return counts if counts.guesses else None


def neighbour_bound(context: AuditContext, counts: GuessCounts, alpha: float) -> EpsilonBound:
    """Return the bound of ε at level 1 − alpha: half of alpha for seeing that noise is shared.

    It must be seen among rows that differ in their true labels: those that do not may be one
    person's, whose labels cannot differ, so that shared noise gives nothing away.
    """
    others = shared_with_others(context)
    seen = others is not None and others <= alpha / 2
    return epsilon_lower(counts if seen else GuessCounts(counts.candidates, 0, 0), alpha / 2)


@remembered("assumptions.others")
def shared_with_others(context: AuditContext) -> float | None:
    """Return the p-value of "no row shares noise with another person's".

    Valid; None without true labels. Where it is small the claim is refuted: who knows one of the
    two labels sees the noise, and with it the other label. Rows are another person's where their
    true labels differ; at a distance where labels agree no more than any two, all rows are. Noise
    that only rows with one true label share may be one person's, and gives nothing away.
    """
    found = noise_clusters(context)
    if found.test is None:
        return None
    truth, noise, rng = context.truth, label_noise(context), context.rng("neighbours", "others")
    # Nobody's answers are remembered so that a block of them has a given number of changes.
    p_values = [found.test.corrected(BLOCKS)]
    for name in found.shared:
        first, second = disjoint_pairs(found.kinds[name], rng)
        differ = truth[first] != truth[second]
        wealth = bet_on_pairs(noise.outcomes, noise.chances, first[differ], second[differ])
        p_values.append(p_value(wealth) / found.test.shares[name])
    lag = found.test.order.lags.strongest
    if lag < len(truth) and not found.ordered:
        wealth = noise.bet_at(lag, _of_others(truth, lag))
        p_values.append(tried(lag, len(truth)) * p_value(wealth) / found.test.shares[LAGS])
    return max(found.test.p_value, min(1.0, *p_values))


def _of_others(truth: IntArray, lag: int) -> BoolArray:
    """Return which pairs of rows at a distance are certainly not one person's, bool (n − lag,).

    Those with different labels; all, where labels at that distance agree no more than any two.
    """
    differ: BoolArray = truth[:-lag] != truth[lag:]
    shares = np.bincount(truth) / len(truth)
    chance = float(shares @ shares)
    spread = np.sqrt(chance * (1 - chance) / len(differ))
    return differ if 1 - differ.mean() > chance + 2 * spread else np.ones_like(differ)
