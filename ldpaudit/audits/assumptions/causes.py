"""Of all findings about noise those that name a cause, and the fewest columns that carry it."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ldpaudit.audits.assumptions.noise import SUSPICIOUS, NoiseFinding
from ldpaudit.audits.assumptions.rows import noise_of, shared
from ldpaudit.audits.assumptions.views import views
from ldpaudit.audits.before import before, unknown
from ldpaudit.audits.interface import AuditContext, remembered
from ldpaudit.estimators.assumptions.clusters import equal_rows
from ldpaudit.estimators.assumptions.learner import foreseen
from ldpaudit.estimators.departures import Groups, Order
from ldpaudit.estimators.row_noise import p_value
from ldpaudit.models.screening import association

Columns = tuple[int, ...]
# The share of what a model of all columns gained that the fewest columns must gain.
_MOST_OF_IT = 0.8
# Models that are fitted to find them.
_MOST_MODELS = 12
# A grouping is the cause of what is seen along an order if it says so much of it.
_NEARLY = 0.5


@remembered("assumptions.causes")
def causes(context: AuditContext) -> list[NoiseFinding]:
    """Return what is found by columns from before the noise: one finding a cause, clearest first.

    Rows that are alike have alike noise where it depends on a column: what they seem to share
    then is no cause of its own.
    """
    found = noise_of(context).clear(known=True)
    together = [one for one in shared(context) if one.known]
    return telling(together or [one for one in found if one.is_dependence] or found)


def telling(found: Sequence[NoiseFinding]) -> list[NoiseFinding]:
    """Return one finding for each cause, the most telling first.

    A group comes before the orders in which its rows are neighbours, single columns before a model
    of all; what the same rows show in another order is left out.
    """
    clearest = max((one.departure.log_wealth for one in found), default=0.0)

    def rank(one: NoiseFinding) -> tuple[bool, bool, float]:
        departure = one.departure
        groups = isinstance(departure.where, Groups) and departure.family == "groups"
        told = groups and not departure.opposite and departure.log_wealth >= _NEARLY * clearest
        return departure.family == "model", not told, -departure.log_wealth

    ordered = sorted(found, key=rank)
    if any(_is_of_file(one) for one in ordered):
        # Rows in the order of true labels, and ranks within a column, follow the file.
        ordered = [one for one in ordered if not _follows_file(one)]
    # Of three rows that share noise each follows from the two before it.
    alike = [one.departure.where for one in ordered if _is_of_pairs(one)]
    ordered = [
        one
        for one in ordered
        if one.departure.family != "triples" or one.departure.where not in alike
    ]
    if ordered and ordered[0].departure.family != "model":
        ordered = [one for one in ordered if one.departure.family != "model"]
    seen: dict[tuple[str, Columns], NoiseFinding] = {}
    for one in ordered:
        departure = one.departure
        # A group says what its rows' order says, and a place with other noise is one, however seen.
        kind = "" if one.is_dependence else departure.family.removesuffix("s")
        kind = "" if kind in ("group", "distance") and departure.columns else kind
        name = "the file" if _is_of_file(one) else "a column" if departure.columns else "other"
        sign = "-" if departure.opposite and not one.is_dependence else ""
        seen.setdefault((name + kind + sign, departure.columns), one)
    return list(seen.values())


def _is_of_pairs(one: NoiseFinding) -> bool:
    return one.departure.family in ("distance", "distances") and not one.departure.opposite


def _is_of_file(one: NoiseFinding) -> bool:
    return isinstance(one.departure.where, Order) and one.departure.where.name == "the file"


def _follows_file(one: NoiseFinding) -> bool:
    where, family = one.departure.where, one.departure.family
    if not isinstance(where, Order) or _is_of_file(one):
        return False
    if family == "stretch":
        return not where.columns or where.name.startswith("rank")
    return family in ("distance", "distances") and not where.columns


def carrying(context: AuditContext, found: NoiseFinding) -> Columns:
    """Return the fewest columns by which something is found, the clearest first."""
    departure = found.departure
    of = _of_model if departure.family == "model" else _of_equal_rows
    if departure.where.name not in ("equal rows", "equal columns") and departure.family != "model":
        return departure.columns
    key = f"carrying {departure.family} {departure.columns}"
    return context.once(key, lambda: of(context, found))


def _of_model(context: AuditContext, found: NoiseFinding) -> Columns:
    release, departure = context.release, found.departure
    outcomes = [view.outcomes for view in views(context)]
    columns = _clearest_first(context, departure.columns)
    every = set(range(release.features.width))

    def carry(some: Columns) -> bool:
        rng = context.rng("noise", "carrying", *map(str, sorted(some)))
        shown = release.features.without(tuple(every - set(some)))
        wealth = max(foreseen(shown, outcomes, rng))
        clear = p_value(wealth, departure.tried) <= SUSPICIOUS
        return clear and wealth >= _MOST_OF_IT * departure.log_wealth

    return fewest(columns, carry, _MOST_MODELS)


def _of_equal_rows(context: AuditContext, found: NoiseFinding) -> Columns:
    departure, features = found.departure, context.release.features
    columns = _clearest_first(context, departure.columns)
    every = set(range(features.width))

    def carry(some: Columns) -> bool:
        codes = equal_rows(features.without(tuple(every - set(some))))
        where = Groups("equal columns", codes, some, departure.where.rows)
        coarser = replace(departure, where=where)
        wealth = max(coarser.bet(view.outcomes) for view in views(context))
        return wealth >= _MOST_OF_IT * departure.log_wealth

    return fewest(columns, carry, _MOST_MODELS)


def _clearest_first(context: AuditContext, columns: Columns) -> Columns:
    """Return columns, those that go most clearly with what noise did first."""
    outcomes = [view.outcomes.ones.astype(np.int32) for view in views(context)]
    features = context.release.features
    scores = np.max([association(features, ones) for ones in outcomes], axis=0)
    return tuple(sorted(columns, key=lambda place: -scores[place]))


def fewest(columns: Columns, carry: Callable[[Columns], bool], most: int) -> Columns:
    """Return columns without any part that is not needed, by so many questions at most.

    The first columns are asked alone, twice as many each time; then parts are left out.

    References
    ----------
    Zeller & Hildebrandt (2002), "Simplifying and isolating failure-inducing input", ddmin.
    """
    asked, kept, size = 0, columns, 1
    while size < len(columns) and asked < most:
        asked += 1
        if carry(columns[:size]):
            kept = columns[:size]
            break
        size *= 2
    part = len(kept) // 2
    while part and asked < most:
        start = 0
        while start < len(kept) and len(kept) > 1 and asked < most:
            left = kept[:start] + kept[start + part :]
            asked += 1
            if left and carry(left):
                kept = left
            else:
                start += part
        part = min(part, len(kept)) // 2
    return kept


def named_in_doubt(context: AuditContext, found: Sequence[NoiseFinding]) -> Columns:
    """Return unknown columns without which nothing is found, the clearest first."""
    known, chosen = set(before(context)), list[int]()
    ordered = sorted(found, key=lambda one: (len(one.departure.columns), -one.departure.log_wealth))
    for one in ordered:
        if not set(one.departure.columns) & set(chosen):
            chosen += [place for place in carrying(context, one) if place not in known]
    return tuple(chosen)


def without_which(
    context: AuditContext, exceeds: Callable[[Columns], bool], most: int = 6
) -> Columns:
    """Return the fewest unknown columns without which a bound does not exceed the claim.

    All of them where leaving out a few of those clearest with the released label does not help.
    ``exceeds``: whether the bound still does without some columns.
    """
    release, places = context.release, unknown(context)
    scores = association(release.features, release.released)
    suspects = sorted(places, key=lambda place: -scores[place])
    for size in (1, 2, 4, most):
        some = tuple(suspects[:size])
        if not exceeds(some):
            break
    else:
        return tuple(suspects)
    for place in reversed(some[:-1] if len(some) > 1 else ()):
        left = tuple(one for one in some if one != place)
        if not exceeds(left):
            some = left
    return some
