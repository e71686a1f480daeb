"""Signs of shared noise in a release alone: rows whose released labels agree too often."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from ldpaudit.audits.claimed_channel import aligned_channel
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.models import cross_fitted_posterior
from ldpaudit.estimators.assumptions.bets import disjoint_pairs
from ldpaudit.estimators.assumptions.clusters import alike_rows
from ldpaudit.estimators.assumptions.derived import label_sides
from ldpaudit.estimators.assumptions.lags import LagTest, least_clear, of_some
from ldpaudit.estimators.assumptions.order import Stretch, sharpness_test
from ldpaudit.estimators.assumptions.shared_noise import (
    FEWEST_PAIRS,
    agreement_p_value,
    flip_chances,
    largest_agreement,
)
from ldpaudit.release import FeatureTable, IndexArray

_AGREE: Final = 0.01
_FURTHER: Final = 4.0
"""How many times as far apart the rows are that clusters are compared with."""


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
    places = np.arange(len(release)) if rows is None else rows
    expected = cross_fitted_posterior(context, "released").argmax(axis=1)
    surprised = release.released != expected
    strata = (expected, release.released.astype(np.int64))
    chances = (of_some(flip_chances(surprised, codes), places) for codes in strata)
    test = least_clear(surprised.astype(np.float64), *chances)
    if test.p_value > _AGREE:
        return None
    most = float(np.max(channel.matrix**2 + (1 - channel.matrix) ** 2))
    first, second = test.pairs(len(release))
    both = np.isin(first, places) & np.isin(second, places)
    first, second = first[both], second[both]
    agree = agreement_p_value(surprised.astype(np.int32), first, second, most)
    return test if agree <= _AGREE else None


def agreement_along_the_file(context: AuditContext) -> Stretch | None:
    """Return the stretch in which released labels go with features unlike elsewhere.

    Noise that is the same for all rows weakens what features say of a label everywhere alike. None
    with true labels, where the noise itself is tested, and where there is no such channel.
    """
    return context.once("assumptions.agreement", lambda: _agreement(context))


def _agreement(context: AuditContext) -> Stretch | None:
    release, channel = context.release, aligned_channel(context)
    features = release.features
    if release.truth is not None or channel is None or features.is_constant():
        return None
    if len(np.unique(release.released)) < 2:
        return None
    expected = cross_fitted_posterior(context, "released")
    codes = np.arange(expected.shape[1], dtype=np.int32)
    by_code, sides = label_sides(codes, release.released, same_labels=True)
    return sharpness_test(sides, expected @ by_code)
