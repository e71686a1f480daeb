"""What was found of the noise, in words: the order, the distance or group, and how clearly."""

import numpy as np

from ldpaudit.audits.assumptions.noise import NoiseFinding, views
from ldpaudit.audits.assumptions.standing import Doubt
from ldpaudit.audits.before import names
from ldpaudit.audits.interface import AuditContext
from ldpaudit.estimators.whiteness import MIRRORED, Groups, Order
from ldpaudit.release import IndexArray
from ldpaudit.result.numbers import number

_LISTED = 5


def columns_words(context: AuditContext, places: tuple[int, ...]) -> str:
    """Return the names of array columns, or how many there are."""
    named = names(context, places)
    if not named:
        return "a column" if len(places) == 1 else f"{len(places)} columns"
    listed = ", ".join(map(repr, named[:_LISTED]))
    more = f" and {len(named) - _LISTED} more" if len(named) > _LISTED else ""
    return f"{'column' if len(named) == 1 else 'columns'} {listed}{more}"


def stretch_words(context: AuditContext, places: IndexArray) -> str:
    """Return the first and the last row between two places of the file, counted from 1."""
    numbers = context.release.places
    first, last = (places if numbers is None else numbers[places]) + 1
    return f"rows {first:,} to {last:,}"


def found_words(context: AuditContext, found: NoiseFinding) -> str:
    """Return what was found, in one or two sentences."""
    departure = found.departure
    where = departure.where
    if departure.family == "model":
        which = columns_words(context, departure.columns)
        return f"What noise did to a label can be foreseen from {which}."
    if isinstance(where, Groups):
        return _of_groups(context, found, where)
    return _of_order(context, found, where)


def _of_groups(context: AuditContext, found: NoiseFinding, where: Groups) -> str:
    departure = found.departure
    which = columns_words(context, departure.columns)
    rows = {
        "group": "rows of one group (--group)",
        MIRRORED: "rows at equal distances before and after one place, in the file or in an order",
        "equal rows": "rows that are equal in all columns",
        "range": f"rows in one range of {which}",
    }.get(where.name, f"rows with equal values in {which}")
    if departure.family == "equal groups":
        return (
            f"Noise changed nearly equally many labels among {rows}, as if it had been drawn until "
            "a total came out right: whoever knows all labels but one can read the last. Draw "
            "noise for each row on its own."
        )
    if departure.opposite:
        return f"What noise did to a label is the opposite of what it did to others, among {rows}."
    if where.small:
        return (
            f"{rows.capitalize() if where.name == 'group' else rows[0].upper() + rows[1:]} share "
            "noise: one known label reveals others."
        )
    return f"Noise is not the same for all rows: it depends on {which}."


def _of_order(context: AuditContext, found: NoiseFinding, where: Order) -> str:
    departure = found.departure
    order = _order_words(context, where)
    if departure.family == "blocks":
        size = departure.first
        return (
            f"Blocks of {size:,} rows{order} have nearly the same number of changed labels each, "
            f"so that {size - 1:,} known labels reveal the last. Draw noise for each row on its "
            "own."
        )
    if departure.family == "triples":
        return (
            f"What noise did to a label follows from what it did to the labels {departure.first:,} "
            f"and {departure.last:,} rows before{order}, as a shift register makes it: known "
            "labels reveal others. Draw noise from the operating system's generator."
        )
    if departure.family == "stretch":
        return _of_stretch(context, found, where, order)
    apart = f"{departure.first:,}"
    if departure.last > departure.first:
        apart = f"{departure.first:,} to {departure.last:,}"
    if where.name.startswith("rank"):
        rows = f"the j-th rows of each value of {_ranked(context, where)}"
    elif departure.first == departure.last == 1:
        rows = f"neighbouring rows{order}"
    else:
        rows = f"rows {apart} apart{order}"
    rows = rows[0].upper() + rows[1:]
    if departure.opposite:
        return (
            f"{rows} have opposite noise{_clearly(context, found)}: one known label reveals "
            "another. Draw noise for each row on its own."
        )
    return (
        f"{rows} share noise{_clearly(context, found)}: one known label reveals others. Is a seed "
        "set again, or are random numbers used again?"
    )


def _of_stretch(context: AuditContext, found: NoiseFinding, where: Order, order: str) -> str:
    departure = found.departure
    rows = where.rows[departure.first : departure.last]
    noise = views(context)[0].outcomes
    inside, usual = float(noise.ones[rows].mean()), float(noise.ones.mean())
    release = context.release
    labels = release.outputs == release.classes and release.numeric is None
    did = "changed" if labels else "raised"
    place = f"{len(rows):,} rows in sequence{order}"
    if where.name == "the file":
        place = stretch_words(context, np.array([departure.first, departure.last - 1]))
    return (
        f"In {place} noise {did} {inside:.0%} of the labels, where {usual:.0%} is usual. Look at "
        "how these rows were released: as they are, by other code, or moved there by what noise "
        "did to them."
    )


def _ranked(context: AuditContext, where: Order) -> str:
    return columns_words(context, where.columns) if where.columns else "the true label"


def _order_words(context: AuditContext, where: Order) -> str:
    if where.name == "the file":
        return ""
    if where.name.startswith("rank"):
        return f" in the order of ranks within {_ranked(context, where)}"
    return f" in the order of {_ranked(context, where)}"


def _clearly(context: AuditContext, found: NoiseFinding) -> str:
    """Return the correlation of the noise of such rows, in brackets."""
    departure = found.departure
    if departure.first != departure.last:
        return ""
    most = 0.0
    for view in views(context):
        residual = view.outcomes.residual[departure.where.rows]
        pairs = residual[departure.first :] * residual[: -departure.first]
        most = max(most, abs(float(pairs.mean())))
    return f" (correlation {number(most, 'down')})"


def reading_words(context: AuditContext, doubt: Doubt, what: str) -> str:
    """Return both readings of what unknown columns say."""
    which = columns_words(context, doubt.columns)
    it, was, them = ("it", "was", "it")
    if len(names(context, doubt.columns) or doubt.columns) > 1:
        it, was, them = ("they", "were", "them")
    sign = f": {what[0].lower()}{what[1:]} Or {which}" if what else f", or {which}"
    if doubt.bound is not None:
        bound = number(doubt.bound, "down")
        sign = f" (a bound by these columns would be ε ≥ {bound}), or {which}"
    return (
        f"Either the labels were not released as claimed{sign} {was} computed from released "
        f"labels, which reveals nothing. If {it} {was} there before the noise, say so "
        f"(--before, or true labels in a table that has {them}, too); if not, leave {them} out "
        "(--drop)."
    )
