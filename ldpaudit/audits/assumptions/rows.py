"""Which rows belong together, and so which rows bounds may count."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.audits.assumptions.alone import groups_that_agree, spacing_alone
from ldpaudit.audits.assumptions.noise import (
    NoiseFinding,
    WhiteNoise,
    every_code,
    views,
    white_noise,
)
from ldpaudit.audits.interface import AuditContext, remembered
from ldpaudit.audits.models import copies
from ldpaudit.error_budget import SHARED_NOISE
from ldpaudit.estimators.assumptions.clusters import (
    disjoint_pairs,
    merged,
    one_of_each,
)
from ldpaudit.estimators.assumptions.neighbours import neighbour_guesses
from ldpaudit.estimators.assumptions.spacing import Spacing, spacing_of
from ldpaudit.estimators.epsilon.bounds import EpsilonBound
from ldpaudit.estimators.epsilon.guesses import GuessCounts, epsilon_lower
from ldpaudit.estimators.whiteness import Groups, Order, autocorrelations, white
from ldpaudit.release import IndexArray

_STILL_SHARED: Final = 0.001


@dataclass(frozen=True, eq=False)
class Counted:
    """The rows that bounds count.

    Attributes
    ----------
    rows : int64 array or None
        In order; None for all of them.
    holds : bool
        Whether no noise is shared by the rows left, as far as tests show.
    known : bool
        Whether this rests only on what was there before the noise. Where it does not, the rows may
        have been chosen by their released labels: a bound must then hold for all rows, too.
    spacing : Spacing or None
        The distances in the file at which rows share noise.
    """

    rows: IndexArray | None
    holds: bool = True
    known: bool = True
    spacing: Spacing | None = None


def tested(context: AuditContext) -> bool:
    """Return whether the claim is one in which each row has noise of its own."""
    traits = context.claim.traits
    return traits.rows == "independent" and not traits.label_depends_on_features


def noise_of(context: AuditContext) -> WhiteNoise:
    """Return where noise is not white; nothing where it is not tested."""
    if context.release.truth is None or not tested(context):
        return WhiteNoise()
    return white_noise(context)


def shared(context: AuditContext) -> list[NoiseFinding]:
    """Return the findings that noise of one row says something of another's, the clearest first.

    None where noise depends on a column, or on a place, more clearly: rows that are alike have
    alike noise then, and share none.
    """
    found = noise_of(context).clear()
    clearest = max(found, key=lambda one: one.departure.log_wealth, default=None)
    if clearest is None or clearest.is_dependence:
        return []
    return [one for one in found if not one.is_dependence]


def dependence_of(context: AuditContext) -> WhiteNoise | None:
    """Return where noise is not white in rows that share none; None where such are not known."""
    if not shared(context):
        return noise_of(context)
    rows, holds = counted(context).rows, counted(context).holds
    if rows is None or not holds:
        return None
    apart = rows
    return context.once("rows.apart", lambda: noise_of(context.on_rows(apart)))


@remembered("rows.clusters")
def noise_clusters(context: AuditContext) -> IndexArray | None:
    """Return codes of rows that share noise because they belong together, int64 (n,), or None."""
    if not tested(context):
        return None
    if context.release.truth is None:
        kinds = groups_that_agree(context)
        # Without true labels nothing shows that a group's rows do not share noise.
        if context.release.groups is not None:
            kinds = [context.release.groups, *kinds]
        return _together(kinds)
    # Several kinds of rows that are equal in a few columns would put nearly all rows together.
    clearest = _shared_in_groups(context)
    return None if clearest is None else every_code(context, clearest[1])


def _shared_in_groups(context: AuditContext) -> tuple[NoiseFinding, Groups] | None:
    """Return the clearest finding that rows of a group share noise, with these groups, if any."""
    for one in shared(context):
        where, departure = one.departure.where, one.departure
        alike = departure.family == "groups" and not departure.opposite
        if alike and isinstance(where, Groups):
            return one, where
    return None


def shared_with_others(context: AuditContext) -> float:
    """Return the p-value of "no row's noise reveals another person's", by what is known.

    Where rows of a group share noise, they may be one person's, and a few such people in a larger
    group make it look as if these shared noise, too: besides that group one row of each is asked.
    """
    found = noise_of(context)
    clearest = _shared_in_groups(context)
    alone = None if clearest is None else dependence_of(context)
    if clearest is None or alone is None or not clearest[0].known:
        return found.others()
    return min(2 * min(clearest[0].others, alone.others()), 1.0)


def _together(kinds: list[IndexArray]) -> IndexArray | None:
    together: IndexArray | None = None
    for codes in kinds:
        together = codes if together is None else merged(together, codes)
    return together


def clusters(context: AuditContext) -> IndexArray | None:
    """Return codes of rows that must be in one half, int64 (n,); None where each is on its own."""
    found, groups = noise_clusters(context), context.release.groups
    if groups is None or found is None:
        return found if groups is None else groups
    return merged(groups, found)


def counted_rows(context: AuditContext) -> IndexArray | None:
    """Return the rows of ``context.release`` that a bound may count: they share no noise.

    For audits with ``counts = "rows"``. Rows of one group, rows that are seen to share noise, and
    rows at distances in the file at which noise repeats are left out but for one of them.

    Parameters
    ----------
    context : AuditContext

    Returns
    -------
    int64 array or None
        Positions of rows in increasing order; None for all rows.
    """
    return counted(context).rows


@remembered("rows.counted")
def counted(context: AuditContext) -> Counted:
    """Return the rows that bounds count, and why."""
    codes, rows = noise_clusters(context), None
    if codes is not None:
        rows = one_of_each(codes, context.rng("counted rows"))
    if context.release.truth is None:
        spacing = spacing_alone(context, rows) if tested(context) else None
        return Counted(_apart(context, rows, spacing), spacing=spacing)
    found = shared(context)
    if not found:
        return Counted(rows)
    spacing = _spacing(context, found, rows)
    rows = _apart(context, rows, spacing)
    holds = rows is not None and not _some_left(context, rows)
    return Counted(rows, holds, all(one.known for one in found), spacing)


def _apart(
    context: AuditContext, rows: IndexArray | None, spacing: Spacing | None
) -> IndexArray | None:
    if spacing is None:
        return rows
    return spacing.apart(np.arange(len(context.release)) if rows is None else rows)


def _spacing(
    context: AuditContext, found: list[NoiseFinding], rows: IndexArray | None
) -> Spacing | None:
    """Return the distances in the file at which rows share noise; None where they do not."""
    for one in found:
        departure = one.departure
        file = isinstance(departure.where, Order) and departure.where.name == "the file"
        if not file or departure.opposite or departure.family not in ("distance", "distances"):
            continue
        if rows is not None and not _some_left(context, rows):
            return None
        clear = np.max(
            [autocorrelations(view.outcomes.residual) for view in views(context)], axis=0
        )
        if departure.family == "distances":
            return Spacing(run=departure.last)
        return spacing_of(clear, departure.first)
    return None


def _some_left(context: AuditContext, rows: IndexArray) -> bool:
    """Return whether the rows left still share noise along the file."""
    order = [Order("the file", np.arange(len(rows)))]
    for view in views(context):
        left = white(view.outcomes.take(rows), order, ())
        if any(one.p_value <= _STILL_SHARED and one.family != "stretch" for one in left):
            return True
    return False


# The share of groups with one true label from which a group is one person.
_ONE_ANSWER: Final = 0.9
# With larger chances that any two labels are equal, equal rows say too little.
_ANY_TWO: Final = 0.75
_WORTH_SAYING: Final = 0.2


def rows_of_one(context: AuditContext) -> int:
    """Return the rows of the largest group where groups are persons with fresh noise; else 0."""
    # Without groups: of the largest group of equal rows, where they look like one person's. Without
    # true labels a group that the user names is taken for one person.
    groups, truth = context.release.groups, context.release.truth
    if truth is not None and (noise_clusters(context) is not None or shared(context)):
        # Their noise is not fresh, or may not be.
        return 0
    if groups is None:
        # Equal rows are one person's where they have equal labels far more often than any two.
        if truth is None or not equal_share(context):
            return 0
        shares = np.bincount(truth) / len(truth)
        if float(shares @ shares) > _ANY_TWO:
            return 0
        groups = copies(context)
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
    constant = not tested(context) or context.release.features.is_constant()
    if constant or noise_clusters(context) is not None:
        return 0.0
    codes = copies(context)
    share = float(np.mean(np.bincount(codes)[codes] > 1))
    return share if share >= _WORTH_SAYING else 0.0


@remembered("rows.neighbours")
def neighbour_counts(context: AuditContext) -> GuessCounts | None:
    """Return how often a neighbour's noise reveals the true label; None where none is shared."""
    # None also where labels are numbers, where what is shared rests on columns that may be made
    # from released labels, or where no two rows that share noise differ in their true labels: noise
    # that one person's rows share reveals nothing.
    release, codes, rows = context.release, noise_clusters(context), counted(context)
    whole = release.outputs == release.classes and release.numeric is None
    if release.truth is None or not whole or not tested(context) or not rows.known:
        return None
    if codes is not None:
        first, second = disjoint_pairs(codes, context.rng("neighbours"))
        one = np.unique(codes[first], return_index=True)[1]
        pairs = first[one], second[one]
    elif rows.spacing is not None:
        pairs = rows.spacing.pairs(len(release))
    else:
        return None
    rng = context.rng("neighbours", "guesses")
    counts = neighbour_guesses(context.truth, release.released, *pairs, rng)
    return counts if counts.guesses else None


def neighbour_bound(context: AuditContext, counts: GuessCounts, alpha: float) -> EpsilonBound:
    """Return the bound of ε at level 1 − alpha; a part of it is for seeing that noise is shared."""
    # It must be seen among rows that differ in their true labels: those that do not may be one
    # person's, whose labels cannot differ, so that shared noise reveals nothing.
    seen = shared_with_others(context) <= SHARED_NOISE.of(alpha, "seen")
    if not seen:
        counts = GuessCounts(counts.candidates, 0, 0)
    return epsilon_lower(counts, SHARED_NOISE.of(alpha, "bound"))
