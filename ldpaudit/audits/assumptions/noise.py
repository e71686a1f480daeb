"""What noise did to each label, and without true labels, signs that rows share it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.audits.claimed_channel import aligned_channel
from ldpaudit.audits.interface import AuditContext, remembered
from ldpaudit.audits.models import cross_fitted_posterior
from ldpaudit.estimators.assumptions.clusters import alike_rows
from ldpaudit.estimators.assumptions.columns import Columns, Halves, label_sides, sampled
from ldpaudit.estimators.assumptions.noise import (
    LagTest,
    agreement_p_value,
    bet_at,
    disjoint_pairs,
    flip_chances,
    lag_test,
    largest_agreement,
    of_some,
)
from ldpaudit.estimators.assumptions.order import (
    FEWEST_PAIRS,
    OrderTest,
    Stretch,
    least_clear,
    sharpness_test,
)
from ldpaudit.release import BoolArray, FeatureTable, FloatArray, IndexArray, IntArray

_QUANTILES: Final = 64
_SUREST: Final = 0.001


@dataclass(frozen=True, eq=False)
class LabelNoise:
    """What noise did to each label, as 0 or 1.

    ``outcomes``, float64 (n,): 1 where noise changed the label (or raised it, for numbers), else 0.
    ``chances``, float64 (n,): the share of ones among rows with the same true label.
    ``by_released``, float64 (n,): the share of ones among rows with the same released label: what
    their order says where it was made from released labels.
    """

    outcomes: FloatArray
    chances: FloatArray
    by_released: FloatArray

    def order(self) -> OrderTest:
        """Test what noise shows along the file.

        The order may have been made from the true labels, or from the released ones (a file that
        is sorted by them): each explains some of what noise did, so both are asked.
        """
        return OrderTest.of(self.outcomes, self.chances, self.by_released)

    def lags(self, rows: IndexArray) -> LagTest:
        """Test whether some rows, at a fixed distance, share noise."""
        some = (of_some(chances, rows) for chances in (self.chances, self.by_released))
        return least_clear(lag_test, self.outcomes, *some)

    def bet_at(self, lag: int, taking_part: BoolArray) -> float:
        """Bet on the pairs of rows at one distance, as :meth:`lags` does; the logarithm."""
        every = (self.chances, self.by_released)
        return min(bet_at(self.outcomes, chances, lag, taking_part) for chances in every)


@remembered("assumptions.noise")
def label_noise(context: AuditContext) -> LabelNoise:
    """Return what noise did to each label; the true labels must be known."""
    release, truth = context.release, context.truth
    released: IntArray | FloatArray = release.released
    strata = _strata(truth)
    if release.numeric is not None and release.numeric.truth is not None:
        numbers, released = release.numeric.truth, release.numeric.released
        outcomes, strata = released > numbers, _strata(numbers)
    elif release.outputs == release.classes:
        outcomes = release.released != truth
    else:
        outcomes = label_sides(truth, release.released, same_labels=False)[1] == 1
    # Not drawn to the mean: what is far below every label was never raised, and a chance of that
    # would make rows sorted by what was released look as if they shared noise.
    by_released = flip_chances(outcomes, _strata(released), prior_rows=0.0)
    return LabelNoise(outcomes.astype(np.float64), flip_chances(outcomes, strata), by_released)


def _strata(values: FloatArray | IntArray) -> IndexArray:
    if values.dtype.kind == "i":
        return values.astype(np.int64)
    edges = np.unique(np.quantile(values, np.linspace(0, 1, _QUANTILES + 1)[1:-1]))
    return np.searchsorted(edges, values).astype(np.int64)


def centred_by_features(
    context: AuditContext, features: FeatureTable, noise: LabelNoise, clusters: IndexArray
) -> FloatArray:
    """Return the chance of each outcome given features and true label, float64 (n,).

    By models fitted on other clusters: in a release whose channel uses features alike rows have
    alike chances, and that is no shared noise.
    """
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
    """Return the kinds of clusters whose released labels agree too often for noise of their own.

    Too often: more than two labels released independently agree at most, whatever the true ones
    are. A release with less noise than claimed has that too; there, rows a little further apart
    agree about as often, and clusters are not the cause; without ``features`` that is not asked.
    """
    channel = aligned_channel(context)
    if channel is None:
        return []
    most = largest_agreement(channel.matrix)
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
    """Return the distance at which noise seems to be shared, None where it does not.

    A model of the released label says for each row what to expect. Whether it came goes together
    with rows nearby, and more often than two labels released independently can.
    """
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
    """Return the stretch in which released labels go with features unlike elsewhere.

    Noise that is the same for all rows weakens what features say of a label everywhere alike. None
    with true labels, where the noise itself is tested, and where there is no such channel.
    """
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
