"""Which rows belong together, and so which rows bounds may count."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.arrays import unwriteable
from ldpaudit.audits.assumptions.alone import groups_that_agree, spacing_alone
from ldpaudit.audits.assumptions.noise import SUSPICIOUS, NoiseFinding, WhiteNoise, white_noise
from ldpaudit.audits.assumptions.places import every_code
from ldpaudit.audits.assumptions.views import views
from ldpaudit.audits.interface import AuditContext, remembered
from ldpaudit.audits.models import copies
from ldpaudit.error_budget import SHARED_NOISE
from ldpaudit.estimators.assumptions.clusters import disjoint_pairs, equal_rows, merged, one_of_each
from ldpaudit.estimators.assumptions.neighbours import neighbour_guesses
from ldpaudit.estimators.assumptions.spacing import Spacing, spacing_of
from ldpaudit.estimators.departures import Groups, Order
from ldpaudit.estimators.epsilon.bounds import EpsilonBound
from ldpaudit.estimators.epsilon.guesses import GuessCounts, epsilon_lower
from ldpaudit.estimators.whiteness import autocorrelations, white
from ldpaudit.release import IndexArray, IntArray

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
    if clearest is None or (clearest.is_dependence and not _explained_by_sharing(context)):
        return []
    return [one for one in found if not one.is_dependence]


@remembered("rows.explained by sharing")
def _explained_by_sharing(context: AuditContext) -> bool:
    """Return whether noise depends on nothing any more in one row of each group that shares it.

    A model, or a large group, knows a person of whom other rows are there by a few columns.
    """
    first = _clearest_groups(noise_of(context).clear(known=True))
    if first is None:
        return False
    codes, left = _all_that_share(context, first[1])
    # Few rows would show no dependence either.
    enough = _LEAST_LEFT * len(codes) <= len(np.unique(codes))
    return enough and left.p_value(known=True, dependence=True) > SUSPICIOUS


def _clearest_groups(found: list[NoiseFinding]) -> tuple[NoiseFinding, Groups] | None:
    """Return the clearest finding that rows of a small group share noise, with these groups."""
    for one in sorted(found, key=lambda one: -one.departure.log_wealth):
        where, departure = one.departure.where, one.departure
        alike = departure.family == "groups" and not departure.opposite
        if alike and not one.is_dependence and isinstance(where, Groups):
            return one, where
    return None


# Kinds of groups whose rows share noise, one after the other.
_MOST_KINDS: Final = 4
_FEWEST_LEFT: Final = 100
_LEAST_LEFT: Final = 0.1


def _all_that_share(context: AuditContext, where: Groups) -> tuple[IndexArray, WhiteNoise]:
    """Return codes of rows that share noise, int64 (n,), and what is found in one row of each.

    The rows of one person may be equal in these columns here, and in others there.
    """
    codes, rng = every_code(context, where), context.rng("rows that share noise")
    features, every = context.release.features, range(context.release.features.width)
    left = WhiteNoise()
    for _ in range(_MOST_KINDS):
        rows = one_of_each(codes, rng)
        left = noise_of(context.on_rows(rows))
        more = _clearest_groups(left.clear(known=True))
        if more is None or len(rows) < _FEWEST_LEFT or not more[1].columns:
            break
        others = tuple(place for place in every if place not in more[1].columns)
        joined = merged(codes, equal_rows(features.without(others)))
        if 2 * int(np.bincount(joined).max()) > len(joined):
            break
        codes = joined
    return codes, left


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
    return None if clearest is None else _all_that_share(context, clearest[1])[0]


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
        Positions of rows in increasing order, which nobody can write to; None for all rows.
    """
    rows = counted(context).rows
    return None if rows is None else unwriteable(rows)


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
# Rows of one value of a column that names persons, on average at most, and so many values at least
# that several rows have; the rows that show whether a column is such.
_MOST_OF_ONE: Final = 10
_FEWEST_SEVERAL: Final = 30
_GLANCE: Final = 10_000


@dataclass(frozen=True)
class Persons:
    """Groups of rows that are persons with fresh noise for each row.

    ``rows``: of the largest; ``column``: the array column whose values tell persons apart, None
    where the user names them, or rows that are equal in all columns are one person's.
    """

    rows: int
    column: int | None = None


@remembered("rows.persons")
def persons(context: AuditContext) -> Persons | None:
    """Return the persons whose labels were released several times; None where there are none."""
    # Without true labels a group that the user names is taken for one person.
    groups, truth = context.release.groups, context.release.truth
    if truth is None:
        return None if groups is None else Persons(int(np.bincount(groups).max()))
    if noise_clusters(context) is not None or shared(context):
        return None  # Their noise is not fresh, or may not be.
    if groups is not None:
        return Persons(int(np.bincount(groups).max())) if _one_answer(groups, truth) else None
    # Rows are one person's where they have equal labels far more often than any two.
    shares = np.bincount(truth) / len(truth)
    if not tested(context) or float(shares @ shares) > _ANY_TWO:
        return None
    if equal_share(context) and _one_answer(copies(context), truth):
        return Persons(int(np.bincount(copies(context)).max()))
    for place, codes in _columns_of_persons(context):
        if _one_answer(codes, truth):
            return Persons(int(np.bincount(codes).max()), place)
    return None


def _one_answer(groups: IndexArray, truth: IntArray) -> bool:
    """Return whether nearly all groups of several rows have one true label."""
    sizes = np.bincount(groups)
    first, several = np.zeros(len(sizes), dtype=np.int64), sizes > 1
    first[groups] = truth
    differing = np.bincount(groups, weights=truth != first[groups])
    return bool(several.any()) and float(np.mean(differing[several] == 0)) >= _ONE_ANSWER


def _columns_of_persons(context: AuditContext) -> Iterator[tuple[int, IndexArray]]:
    """Yield the array columns of texts or whole numbers whose values few rows each have."""
    features = context.release.features
    for place, column in enumerate([*features.numeric.T, *features.categorical.T]):
        glance = column[:_GLANCE]
        if not (glance == np.rint(glance)).all():
            continue
        if len(np.unique(glance)) * _MOST_OF_ONE < len(glance):
            continue
        _, codes, sizes = np.unique(column, return_inverse=True, return_counts=True)
        if len(sizes) * _MOST_OF_ONE >= len(column) and np.sum(sizes > 1) >= _FEWEST_SEVERAL:
            yield place, codes.reshape(-1).astype(np.int64)


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
