"""What noise did to each label, which rows share it, and so which rows bounds may count."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

import numpy as np

from ldpaudit.audits.assumptions.derived import first_look
from ldpaudit.audits.interface import AuditContext, remembered
from ldpaudit.audits.models import aligned_channel, cross_fitted_posterior
from ldpaudit.estimators.assumptions.clusters import (
    alike_rows,
    equal_ranks,
    equal_rows,
    has_pairs,
    merged,
    one_of_each,
    partly_equal_rows,
)
from ldpaudit.estimators.assumptions.columns import Columns, Halves, label_sides, sampled
from ldpaudit.estimators.assumptions.noise import (
    LagTest,
    agreement_p_value,
    bet_at,
    bet_on_pairs,
    disjoint_pairs,
    flip_chances,
    lag_test,
    neighbour_guesses,
    of_some,
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
    Stretch,
    least_clear,
    noise_test,
    sharpness_test,
    stretch_test,
)
from ldpaudit.estimators.epsilon.bounds import EpsilonBound
from ldpaudit.estimators.epsilon.guesses import GuessCounts, epsilon_lower
from ldpaudit.estimators.person_noise import largest_agreement
from ldpaudit.release import BoolArray, FeatureTable, FloatArray, IndexArray, IntArray

_QUANTILES: Final = 64
_SUREST: Final = 0.001


@dataclass(frozen=True, eq=False)
class LabelNoise:
    """What noise did to each label, as 0 or 1."""

    # ``outcomes``, float64 (n,): 1 where noise changed the label (or raised it, for numbers), else
    # 0. ``chances``, float64 (n,): the share of ones among rows with the same true label.
    # ``by_released``, float64 (n,): the share of ones among rows with the same released label: what
    # their order says where it was made from released labels.

    outcomes: FloatArray
    chances: FloatArray
    by_released: FloatArray

    def order(self) -> OrderTest:
        """Test what noise shows along the file."""
        # The order may have been made from the true labels, or from the released ones (a file that
        # is sorted by them): each explains some of what noise did, so both are asked.
        return OrderTest.of(self.outcomes, self.chances, self.by_released)

    def lags(self, rows: IndexArray) -> LagTest:
        """Test whether some rows, at a fixed distance, share noise."""
        some = (of_some(chances, rows) for chances in (self.chances, self.by_released))
        return least_clear(lag_test, self.outcomes, *some)

    def bet_on(self, kind: str, first: IndexArray, second: IndexArray) -> float:
        """Bet on pairs of one kind of clusters; the logarithm."""
        # Which rows have equal rank comes from their order, so both are asked for them, too.
        every = (self.chances, self.by_released)[: 1 + (kind == RANKS)]
        return min(bet_on_pairs(self.outcomes, chances, first, second) for chances in every)

    def bet_at(self, lag: int, taking_part: BoolArray) -> float:
        """Bet on the pairs of rows at one distance, as :meth:`lags` does; the logarithm."""
        every = (self.chances, self.by_released)
        return min(bet_at(self.outcomes, chances, lag, taking_part) for chances in every)


@remembered("assumptions.noise")
def label_noise(context: AuditContext) -> LabelNoise:
    """Return what noise did to each label; the true labels must be known."""
    release, truth = context.release, context.truth
    known: IntArray | FloatArray = truth
    released: IntArray | FloatArray = release.released
    if release.numeric is not None and release.numeric.truth is not None:
        known, released = release.numeric.truth, release.numeric.released
        outcomes = released > known
    elif release.outputs == release.classes:
        outcomes = release.released != truth
    else:
        outcomes = label_sides(truth, release.released, same_labels=False)[1] == 1
    # Not drawn to the mean: what is far below every label was never raised, and a chance of that
    # would make rows sorted by what was released look as if they shared noise.
    by_released = flip_chances(outcomes, _strata(released), prior_rows=0.0)
    chances = flip_chances(outcomes, _strata(known))
    return LabelNoise(outcomes.astype(np.float64), chances, by_released)


def _strata(values: FloatArray | IntArray) -> IndexArray:
    if values.dtype.kind == "i":
        return values.astype(np.int64)
    edges = np.unique(np.quantile(values, np.linspace(0, 1, _QUANTILES + 1)[1:-1]))
    return np.searchsorted(edges, values).astype(np.int64)


def centred_by_features(
    context: AuditContext, features: FeatureTable, noise: LabelNoise, clusters: IndexArray
) -> FloatArray:
    """Return the chance of each outcome given features and true label, float64 (n,)."""
    # By models fitted on other clusters: in a release whose channel uses features alike rows have
    # alike chances, and that is no shared noise.
    rng = context.rng("assumptions", "centred")
    columns = Columns.of(features).beside(noise.chances)
    outcomes = noise.outcomes.astype(np.int32)
    count = int(clusters.max()) + 1
    if count < 2:  # There are no others.
        return np.clip(noise.chances, _SUREST, 1 - _SUREST)
    chosen = rng.random(count) < 0.5
    if chosen.all() or not chosen.any():  # Of few clusters all can be in one half.
        chosen = rng.permutation(count) < count / 2
    halves = chosen[clusters]
    chances = np.empty(len(outcomes))
    for half in (False, True):
        test = np.flatnonzero(halves == half)
        learn = sampled(np.flatnonzero(halves != half), features.width, rng)
        odds = columns.log_odds(outcomes, Halves(learn, test), int(rng.integers(2**31)))
        chances[test] = 1 / (1 + np.exp(-odds))
    return np.clip(chances, _SUREST, 1 - _SUREST)


_AGREE: Final = 0.01
# How many times as far apart the rows are that clusters are compared with.
_FURTHER: Final = 4.0


def clusters_that_agree(
    context: AuditContext, kinds: Mapping[str, IndexArray], features: FeatureTable | None
) -> list[str]:
    """Return the kinds of clusters whose released labels agree too often for noise of their own."""
    # Too often: more than two labels released independently agree at most, whatever the true ones
    # are. A release with less noise than claimed has that too; there, rows a little further apart
    # agree about as often, and clusters are not the cause; without ``features`` that is not asked.
    channel = aligned_channel(context)
    if channel is None:
        return []
    most = largest_agreement(channel.matrix, channel.matrix)
    labels, shared = context.release.released, []
    for name, codes in kinds.items():
        first, second = disjoint_pairs(codes, context.rng("agreement", name))
        if len(first) < FEWEST_PAIRS or agreement_p_value(labels, first, second, most) > _AGREE:
            continue
        if features is None:
            shared.append(name)
            continue
        near = float(np.mean(labels[first] == labels[second]))
        one, other = _further_pairs(context, features, codes, first)
        far = float(np.mean(labels[one] == labels[other])) if len(one) >= FEWEST_PAIRS else most
        if far < (near + most) / 2:
            shared.append(name)
    return shared


def _further_pairs(
    context: AuditContext, features: FeatureTable, codes: IndexArray, members: IndexArray
) -> tuple[IndexArray, IndexArray]:
    """Return pairs of a member of a cluster and a row near it, but of no cluster with it."""
    coarse = alike_rows(features, context.rng("further rows"), _FURTHER)
    order = np.lexsort((context.rng("further", "order").permutation(len(codes)), coarse))
    inside = np.zeros(len(codes), dtype=np.bool_)
    inside[members] = True
    one, other = order[:-1], order[1:]
    fits = (coarse[one] == coarse[other]) & (codes[one] != codes[other])
    fits &= inside[one] | inside[other]
    return one[fits], other[fits]


def lags_that_agree(context: AuditContext, rows: IndexArray | None) -> LagTest | None:
    """Return the distance at which noise seems to be shared, None where it does not."""
    # A model of the released label says for each row what to expect. Whether it came goes together
    # with rows nearby, and more often than two labels released independently can.
    release, channel = context.release, aligned_channel(context)
    if channel is None or release.features.is_constant() or release.outputs != release.classes:
        return None
    if not np.ptp(context.halves()):  # All rows belong together.
        return None
    places = np.arange(len(release)) if rows is None else rows
    expected = cross_fitted_posterior(context, "released").argmax(axis=1)
    surprised = release.released != expected
    strata = (expected, release.released.astype(np.int64))
    chances = (of_some(flip_chances(surprised, codes), places) for codes in strata)
    test = least_clear(lag_test, surprised.astype(np.float64), *chances)
    if test.p_value > _AGREE:
        return None
    most = float(np.max(channel.matrix**2 + (1 - channel.matrix) ** 2))
    first, second = test.pairs(len(release))
    both = np.isin(first, places) & np.isin(second, places)
    first, second = first[both], second[both]
    agree = agreement_p_value(surprised.astype(np.int32), first, second, most)
    return test if agree <= _AGREE else None


@remembered("assumptions.agreement")
def agreement_along_the_file(context: AuditContext) -> Stretch | None:
    """Return the stretch in which released labels go with features unlike elsewhere."""
    # Noise that is the same for all rows weakens what features say of a label everywhere alike.
    # None with true labels, where the noise itself is tested, and where there is no such channel.
    release, channel = context.release, aligned_channel(context)
    features = release.features
    if release.truth is not None or channel is None or features.is_constant():
        return None
    if len(np.unique(release.released)) < 2:
        return None
    expected = cross_fitted_posterior(context, "released")
    codes = np.arange(expected.shape[1], dtype=np.int32)
    by_code, sides = label_sides(codes, release.released, same_labels=True)
    chances = channel.matrix @ by_code
    return sharpness_test(sides, expected @ by_code, (chances.min(), chances.max()))


GROUPS: Final = "groups"
EQUAL: Final = "equal rows"
_PARTLY: Final = "rows equal in some columns"
RANKS: Final = "rows of equal rank"
# The p-value from which rows count as sharing noise.
SHARED: Final = 0.05
_STILL_SHARED: Final = 0.001
# How many times as far apart rows are among which shared noise is looked for once more.
_LESS_ALIKE: Final = 4.0
_MOST_RANKED: Final = 64
# Of the error probability; the order of rows has the rest.
_ALIKE_SHARE, _RANKS_SHARE = 0.25, 0.25


@dataclass(frozen=True, eq=False)
class Clusters:
    """Which rows share noise because they belong together."""

    # ``kinds``, mapping from name to int64 (n,): The clusters that were looked at. ``shared``:
    # Those that share noise. ``codes``, int64 (n,): the clusters that share noise, put together;
    # None where none does. ``test``: the test against true labels; None without them. ``features``:
    # what rows were compared by: no column computed from the released label. ``ranked``: the array
    # column within whose values rows of equal rank were compared, the clearest of all. ``ordered``:
    # Whether the order of the rows was made from released labels: it is not tested then.

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
    """The rows that bounds count."""

    # ``rows``: in order; None for all of them. ``lags``: the distances at which rows share noise,
    # None where they do not. ``holds``: whether no noise is shared by the rows left.

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
    # Do equal or nearly equal rows agree too often, for whatever reason?
    if found.test is None:
        alike = {name: codes for name, codes in found.kinds.items() if name != GROUPS}
        suspicious = bool(clusters_that_agree(context, alike, None))
    else:
        lags = found.test.corrected(LAGS) <= SHARED
        suspicious = lags or bool(found.along) or bool(set(found.shared) - {GROUPS})
    if not suspicious:
        return found
    # A column computed from the released label makes rows alike whose released labels agree.
    together = _together(found.kinds, [*_alike(found.kinds), *found.shared])
    together = np.arange(len(context.release)) if together is None else together
    seen = first_look(context, together)
    ordered = seen.ordered and not seen.doubtful
    return _look(context, seen.derived, ordered) if seen.derived or ordered else found


def _look(context: AuditContext, derived: tuple[int, ...] = (), ordered: bool = False) -> Clusters:
    """Return which rows share noise, without columns computed from the released label."""
    release, kinds = context.release, dict[str, IndexArray]()
    features = release.features.without(derived)
    if release.groups is not None:
        kinds[GROUPS] = release.groups
    if not features.is_constant():
        kinds[EQUAL] = equal_rows(features)
        kinds["nearly equal rows"] = alike_rows(features, context.rng("alike rows"))
        partly = partly_equal_rows(features, context.rng("partly equal rows"))
        kinds |= {f"{_PARTLY} ({place})": codes for place, codes in enumerate(partly, 1)}
    if release.truth is None:
        shared = clusters_that_agree(context, kinds, features)
        partly_shared = [name for name in shared if name.startswith(_PARTLY)]
        shared = [name for name in shared if name not in partly_shared[1:]]
        # Without true labels nothing shows that a group's rows do not share noise.
        if GROUPS in kinds and GROUPS not in shared:
            shared.append(GROUPS)
        return Clusters(kinds, tuple(shared), _together(kinds, shared), features=features)
    shares = dict.fromkeys(kinds, _ALIKE_SHARE / max(len(kinds), 1))
    # The column whose rows of equal rank share noise most clearly, if a column has few values.
    noise, rng = label_noise(context), context.rng("equal ranks")
    ranks = [
        (noise.bet_on(RANKS, *disjoint_pairs(codes, rng)), place, codes)
        for place, codes in islice(equal_ranks(features), 0 if ordered else _MOST_RANKED)
    ]
    nothing = (0.0, -1, np.arange(len(release)))
    _, place, kinds[RANKS] = max(ranks, key=lambda one: one[0], default=nothing)
    shares[RANKS] = _RANKS_SHARE / max(len(ranks), 1)
    kept = [j for j in range(release.features.width) if j not in derived]
    test = _test(context, kinds, shares, features, ordered)
    shared, ranked = _shared(test), kept[place] if ranks else -1
    together = _together(kinds, shared)
    return Clusters(kinds, tuple(shared), together, test, features, ranked, ordered)


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
    """Return the clusters put together, of rows equal in some columns the first kind alone."""
    # Several such kinds would make one cluster of nearly all rows.
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
    test = noise_test(noise.bet_on, kinds, rng, order, shares)
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
    given = replace(noise, chances=chances)
    centred = noise_test(given.bet_on, kinds, rng, order, shares)
    least = {name: max(p, centred.by_clusters[name]) for name, p in test.by_clusters.items()}
    return NoiseTest(least, test.shares, order)


@remembered("assumptions.counted")
def counted(context: AuditContext) -> Counted:
    """Return the rows that bounds count, and why."""
    found, every = noise_clusters(context), np.arange(len(context.release))
    rows, lags = None, None
    if found.codes is not None:
        rows = one_of_each(found.codes, context.rng("counted rows"))
    # The distances at which rows share noise, also after one of each cluster is taken.
    if tested(context) and found.test is None:
        lags = lags_that_agree(context, rows)
    elif found.test is not None and found.test.corrected(LAGS) <= SHARED:
        left = found.test.order.lags if rows is None else label_noise(context).lags(rows)
        lags = left if rows is None or left.p_value <= SHARED else None
    if lags is None:
        return Counted(rows, None, rows is None or not _some_left(context, found, rows))
    rows = lags.apart(every if rows is None else rows)
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


# The share of groups with one true label from which a group is one person.
_ONE_ANSWER: Final = 0.9
# With larger chances that any two labels are equal, equal rows say too little.
_ANY_TWO: Final = 0.75
_WORTH_SAYING: Final = 0.2


def rows_of_one(context: AuditContext) -> int:
    """Return the rows of the largest group where groups are persons with fresh noise; else 0."""
    # Without groups: of the largest group of equal rows, where they look like one person's. Without
    # true labels a group that the user names is taken for one person.
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
    sizes = np.bincount(groups)
    if truth is not None:
        # The share of groups of several rows in which all true labels are the same.
        first, several = np.zeros(len(sizes), dtype=np.int64), sizes > 1
        first[groups] = truth
        differing = np.bincount(groups, weights=truth != first[groups])
        if not several.any() or np.mean(differing[several] == 0) < _ONE_ANSWER:
            return 0
    return int(sizes.max())


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
    """Return how often a neighbour's noise tells the true label; None where none is shared."""
    # None also where labels are numbers or no two rows that share noise differ in their true
    # labels: noise that one person's rows share gives nothing away.
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
    """Return the bound of ε at level 1 − alpha: half of alpha for seeing that noise is shared."""
    # It must be seen among rows that differ in their true labels: those that do not may be one
    # person's, whose labels cannot differ, so that shared noise gives nothing away.
    others = shared_with_others(context)
    seen = others is not None and others <= alpha / 2
    return epsilon_lower(counts if seen else GuessCounts(counts.candidates, 0, 0), alpha / 2)


@remembered("assumptions.others")
def shared_with_others(context: AuditContext) -> float | None:
    """Return the p-value of "no row shares noise with another person's"."""
    # Valid; None without true labels. Where it is small the claim is refuted: who knows one of the
    # two labels sees the noise, and with it the other label. Rows are another person's where their
    # true labels differ; at a distance where labels agree no more than any two, all rows are. Noise
    # that only rows with one true label share may be one person's, and gives nothing away.
    found = noise_clusters(context)
    if found.test is None:
        return None
    truth, noise, rng = context.truth, label_noise(context), context.rng("neighbours", "others")
    # Nobody's answers are remembered so that a block of them has a given number of changes.
    p_values = [found.test.corrected(BLOCKS)]
    for name in found.shared:
        first, second = disjoint_pairs(found.kinds[name], rng)
        differ = truth[first] != truth[second]
        wealth = noise.bet_on(name, first[differ], second[differ])
        p_values.append(p_value(wealth) / found.test.shares[name])
    lag = found.test.order.lags.strongest
    if lag < len(truth) and not found.ordered:
        # Certainly not one person's: those with different labels; at a distance where labels agree
        # no more than any two, all.
        apart: BoolArray = truth[:-lag] != truth[lag:]
        shares = np.bincount(truth) / len(truth)
        chance = float(shares @ shares)
        spread = np.sqrt(chance * (1 - chance) / len(apart))
        some = 1 - apart.mean() > chance + 2 * spread
        wealth = noise.bet_at(lag, apart if some else np.ones_like(apart))
        p_values.append(tried(lag, len(truth)) * p_value(wealth) / found.test.shares[LAGS])
    return max(found.test.p_value, min(1.0, *p_values))
