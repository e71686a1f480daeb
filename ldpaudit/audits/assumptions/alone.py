"""Whether noise is white, as far as released labels alone show it."""

import math
from typing import Final

import numpy as np

from ldpaudit.audits.interface import AuditContext, remembered
from ldpaudit.audits.models import aligned_channel, copies, cross_fitted_posterior, partial_copies
from ldpaudit.estimators.assumptions.agreement import (
    Stretch,
    agreement_p_value,
    largest_agreement,
    sharpness_test,
)
from ldpaudit.estimators.assumptions.clusters import disjoint_pairs
from ldpaudit.estimators.assumptions.learner import cross_fitted_chances, label_sides
from ldpaudit.estimators.assumptions.spacing import Spacing, spacing_of
from ldpaudit.estimators.departures import Order
from ldpaudit.estimators.row_noise import RowNoise
from ldpaudit.estimators.whiteness import autocorrelations, in_order
from ldpaudit.release import IndexArray

_AGREE: Final = 0.01
_FEWEST_PAIRS: Final = 30
_MOST_KEYS: Final = 8


def groups_that_agree(context: AuditContext) -> list[IndexArray]:
    """Return groupings whose released labels agree too often for noise of their own.

    Too often: more than two labels released independently can, whatever the true ones are. A
    release with less noise than claimed has that, too, so the other rows are asked as well.
    """
    channel, features = aligned_channel(context), context.release.features
    if channel is None or features.is_constant():
        return []
    most = largest_agreement(channel.matrix, channel.matrix)
    labels = context.release.released
    keys = partial_copies(context)[:_MOST_KEYS]
    shared = []
    for place, codes in enumerate((copies(context), *(codes for _, codes in keys))):
        first, second = disjoint_pairs(codes, context.rng("agreement", str(place)))
        if len(first) < _FEWEST_PAIRS:
            continue
        level = _AGREE / (1 + len(keys))
        if agreement_p_value(labels, first, second, most) > level:
            continue
        if _more_than_features_say(context, codes, first, second, most):
            shared.append(codes)
            break
    return shared


def _more_than_features_say(
    context: AuditContext, codes: IndexArray, first: IndexArray, second: IndexArray, most: float
) -> bool:
    """Return whether rows agree far more often than their features alone would have it."""
    released = context.release.released
    side = label_sides(released, released, same_labels=True)[1].astype(np.float64)
    noise = RowNoise(side, np.zeros(len(side), dtype=np.int64))
    rng = context.rng("agreement", "expected")
    chance = cross_fitted_chances(context.release.features, noise, codes, rng)
    one, other = chance[first], chance[second]
    expected = float(np.mean(one * other + (1 - one) * (1 - other)))
    near = float(np.mean(side[first] == side[second]))
    return expected < (near + max(most, expected)) / 2 and near > expected + 0.02


@remembered("alone.spacing")
def _spacing(context: AuditContext) -> Spacing | None:
    # A model of the released label says for each row what to expect. Whether it came goes together
    # with rows near by, and more often than two labels released independently can.
    release, channel = context.release, aligned_channel(context)
    if channel is None or release.features.is_constant() or release.outputs != release.classes:
        return None
    if not np.ptp(context.halves()):  # All rows belong together.
        return None
    expected = cross_fitted_posterior(context, "released").argmax(axis=1)
    surprised = release.released != expected
    order = Order("the file", np.arange(len(release)))
    found: list[tuple[float, int]] = []
    views = [
        RowNoise(surprised.astype(np.float64), codes.astype(np.int64))
        for codes in (expected, release.released)
    ]
    for departure in in_order(views[0], order, 1.0):
        if departure.family == "distance" and not departure.opposite:
            # The order may have been made from released labels.
            wealth = min(departure.bet(view) for view in views)
            if departure.tried * math.exp(-max(wealth, 0.0)) <= _AGREE:
                found.append((wealth, departure.first))
    if not found:
        return None
    clear = np.min([autocorrelations(view.residual) for view in views], axis=0)
    spacing = spacing_of(clear, max(found)[1])
    first, second = spacing.pairs(len(release))
    most = float(np.max(channel.matrix**2 + (1 - channel.matrix) ** 2))
    agree = agreement_p_value(surprised.astype(np.int32), first, second, most)
    return spacing if agree <= _AGREE else None


def spacing_alone(context: AuditContext, rows: IndexArray | None = None) -> Spacing | None:
    """Return the distances at which noise seems to be shared, None where it does not."""
    # Where one row of each group is left, what was shared within groups is gone with the others.
    return _spacing(context) if rows is None else None


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
