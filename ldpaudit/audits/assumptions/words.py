"""What was found of the noise, in words: the order, the distance or group, and how clearly.

And what to look at first, which follows from it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ldpaudit.audits.assumptions.causes import carrying, causes
from ldpaudit.audits.assumptions.changed import changed_columns
from ldpaudit.audits.assumptions.doubts import Doubt, doubt
from ldpaudit.audits.assumptions.noise import SUSPICIOUS, NoiseFinding
from ldpaudit.audits.assumptions.pattern import STEP, clear_pattern
from ldpaudit.audits.assumptions.places import KEPT, every_code
from ldpaudit.audits.assumptions.views import views
from ldpaudit.audits.before import before
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.models import copies
from ldpaudit.estimators.departures import Groups, Order
from ldpaudit.estimators.epsilon.consistency import likelihood_ratio_p_value
from ldpaudit.estimators.whiteness import MIRRORED
from ldpaudit.release import BoolArray, FloatArray, IndexArray, label_table
from ldpaudit.result.numbers import number, rows, share_of

_LISTED = 5
# The share of the rows of a place that have in common what describes it.
_NEARLY_ALL = 0.9
# The share of their difference that all rows of a kind must show.
_STILL = 0.7
# The p-value up to which released labels differ where a column is missing.
_SURELY = 1e-6
_ON_ITS_OWN = "Draw noise for each row on its own."
_ONE_PROBABILITY = (
    "Use one probability for all rows, or declare a mechanism that uses features, such as "
    "model-based-rr."
)


def columns_words(context: AuditContext, places: tuple[int, ...]) -> str:
    """Return the names of array columns in the order given, or how many there are."""
    of = {place: column.name for column in context.release.columns for place in column.arrays}
    named = list(dict.fromkeys(of[place] for place in places if place in of))
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
    """Return what was found, in one sentence."""
    departure = found.departure
    where = departure.where
    if departure.family == "model":
        which = columns_words(context, carrying(context, found))
        return f"What noise did to a label can be foreseen from {which}."
    if isinstance(where, Groups):
        return _of_groups(context, found, where)
    return _of_order(context, found, where)


def step_words(context: AuditContext, found: NoiseFinding) -> str:
    """Return what to look at first, which follows from what was found."""
    departure = found.departure
    where, family = departure.where, departure.family
    if family == "model":
        which = columns_words(context, carrying(context, found))
        them = "them" if which.startswith("columns") else "it"
        return (
            f"Find where the release code uses {which}: noise depends on {them}. {_ONE_PROBABILITY}"
        )
    if found.is_dependence:
        place = _place(context, found)
        if place.of_file:
            return (
                f"Look at {place.words}: they may have been released by other code, or as they "
                "are, or moved there by what noise did to them."
            )
        if where.name == KEPT:
            return (
                f"Look at {place.words}: one random number may decide both label and features. "
                "Draw the two independently of each other."
            )
        used = ""
        if departure.columns:
            used = f", or the release code uses {columns_words(context, departure.columns)}"
        return (
            f"Look at {place.words}: a filter, a join or a fallback may treat them differently"
            f"{used}. {_ONE_PROBABILITY}"
        )
    if isinstance(where, Groups):
        return _step_of_groups(context, found, where)
    order = _order_words(context, where)
    if family == "blocks":
        return (
            f"Look for code that keeps the number of changed labels in blocks of "
            f"{departure.first:,} rows{order}. {_ON_ITS_OWN}"
        )
    if departure.opposite:
        return f"Look for noise drawn in opposite pairs, of {_apart(context, found)}. {_ON_ITS_OWN}"
    if where.name.startswith("rank"):
        return (
            f"Look for a seed that is set again for each value of {_ranked(context, where)}. Set "
            "none, and draw the noise of all rows in sequence."
        )
    if departure.first == departure.last == 1:
        cause = "one draw for several rows, such as a household's"
    elif departure.first == departure.last:
        cause = f"random numbers that repeat after {departure.first:,} rows, or a seed set again"
    else:
        cause = "one draw for several rows, or random numbers used again"
    return f"Look for {cause}: {_apart(context, found)} share noise. {_ON_ITS_OWN}"


def _step_of_groups(context: AuditContext, found: NoiseFinding, where: Groups) -> str:
    who = _rows_of_groups(context, found, where)
    if found.departure.family == "equal groups":
        return f"Look for code that keeps totals among {who}. {_ON_ITS_OWN}"
    if found.departure.opposite:
        return f"Look for noise drawn in opposite pairs, among {who}. {_ON_ITS_OWN}"
    step = (
        f"Look at how noise is drawn for {who}: one draw, a remembered answer or a seed of their "
        f"own serves several rows. {_ON_ITS_OWN}"
    )
    if where.name == "group":
        # To draw the noise on one label again would reveal more of it.
        return f"{step[:-1]}, unless they repeat one person's one label: then keep it as it is."
    step = f"{step[:-1]}; if one person's rows share it on purpose, name their column (--group)."
    if _are_copies(context, where):
        return f"{step} If they are copies of rows, made after the noise, leave the copies out."
    return step


def _are_copies(context: AuditContext, where: Groups) -> bool:
    """Return whether rows that are equal in some columns are nearly always equal in all."""
    if where.name not in ("equal rows", "equal columns", "value"):
        return False
    return _pairs(copies(context)) >= _NEARLY_ALL * _pairs(every_code(context, where))


def _pairs(codes: IndexArray) -> float:
    sizes = np.bincount(codes).astype(np.float64)
    return float(sizes @ (sizes - 1)) / 2


def _rows_of_groups(context: AuditContext, found: NoiseFinding, where: Groups) -> str:
    if _are_copies(context, where):
        return "rows that are equal in all columns"
    which = columns_words(context, carrying(context, found))
    return {
        "group": "rows of one group (--group)",
        KEPT: "rows whose features were kept, or those whose features were replaced",
        MIRRORED: "rows at equal distances before and after one place, in the file or in an order",
        "range": f"rows in one range of {which}",
    }.get(where.name, f"rows with equal values in {which}")


def _of_groups(context: AuditContext, found: NoiseFinding, where: Groups) -> str:
    who = _rows_of_groups(context, found, where)
    if found.departure.family == "equal groups":
        return (
            f"Noise changed nearly equally many labels among {who}, as if it had been drawn until "
            "a total came out right: whoever knows all labels but one can read the last."
        )
    if found.departure.opposite:
        return f"What noise did to a label is the opposite of what it did to others, among {who}."
    if where.small:
        return f"{who[0].upper()}{who[1:]} share noise: {_consequence(found)}"
    return _differs(context, found)


def _of_order(context: AuditContext, found: NoiseFinding, where: Order) -> str:
    departure = found.departure
    order = _order_words(context, where)
    if departure.family == "blocks":
        size = departure.first
        return (
            f"Blocks of {size:,} rows{order} have nearly the same number of changed labels each, "
            f"so that {size - 1:,} known labels reveal the last."
        )
    if departure.family == "triples":
        return (
            f"What noise did to a label follows from what it did to the labels {departure.first:,} "
            f"and {departure.last:,} rows before{order}, as a shift register makes it: known "
            "labels reveal others. Draw noise from the operating system's generator."
        )
    if departure.family == "stretch":
        return _differs(context, found)
    who = _apart(context, found)
    who = who[0].upper() + who[1:]
    if departure.opposite:
        return (
            f"{who} have opposite noise{_clearly(context, found)}: one known label reveals another."
        )
    return f"{who} share noise{_clearly(context, found)}: {_consequence(found)}"


def _consequence(found: NoiseFinding) -> str:
    """Return what shared noise reveals, which may be nothing where labels do not differ."""
    if found.others <= SUSPICIOUS:
        return "one known label reveals others."
    return "unless they are one person's, one known label reveals others."


def _differs(context: AuditContext, found: NoiseFinding) -> str:
    said = _place(context, found).said
    return f"{said[0].upper()}{said[1:]}."


def _apart(context: AuditContext, found: NoiseFinding) -> str:
    """Return which rows go together along an order."""
    departure, where = found.departure, found.departure.where
    assert isinstance(where, Order)
    order = _order_words(context, where)
    if where.name.startswith("rank"):
        return f"the j-th rows of each value of {_ranked(context, where)}"
    if departure.first == departure.last == 1:
        return f"neighbouring rows{order}"
    apart = f"{departure.first:,}"
    if departure.last > departure.first:
        apart = f"{departure.first:,} to {departure.last:,}"
    return f"rows {apart} apart{order}"


@dataclass(frozen=True)
class _Place:
    """Rows with other noise: in words, what it did to them, and whether they are of the file."""

    words: str
    said: str
    of_file: bool


def _place(context: AuditContext, found: NoiseFinding) -> _Place:
    """Return the rows in which noise differs: by a gap or one value of a column where that is it.

    No value is named, only the column, and how many rows there are.
    """
    departure, outcomes = found.departure, views(context)[0].outcomes
    where, n = departure.where, len(context.release)
    inside = np.zeros(n, dtype=np.bool_)
    if isinstance(where, Groups):
        codes = every_code(context, where)
        sums = np.bincount(codes, outcomes.residual)
        sizes = np.bincount(codes)
        clearest = np.abs(sums) / np.sqrt(np.maximum(sizes, 1))
        inside[codes == int(clearest.argmax())] = True
        kind = "range" if where.name == "range" else "group"
        words = f"rows in one {kind} of {columns_words(context, departure.columns)}"
        if where.name == KEPT:
            words = "rows whose features were " + ("kept" if codes[inside].all() else "replaced")
    else:
        inside[where.rows[departure.first : departure.last]] = True
        words = f"rows in sequence{_order_words(context, where)}"
    if len(departure.columns) == 1:
        for alike, every in _alike(context, departure.columns[0], inside):
            if _as_clear(outcomes.ones, every, inside):
                words, inside = alike, every
                break
    of_file = isinstance(where, Order) and where.name == "the file"
    count = int(inside.sum())
    words = f"the {rows(count)} {words}"
    if of_file:
        words = stretch_words(context, np.array([departure.first, departure.last - 1]))
    release = context.release
    labels = release.outputs == release.classes and release.numeric is None
    did = "changed" if labels else "raised"
    ones = outcomes.ones
    said = (
        f"in {words} noise {did} {share_of(float(ones[inside].mean()))} of the labels, and "
        f"{share_of(float(ones[~inside].mean()))} elsewhere"
    )
    return _Place(words, said, of_file)


def _alike(context: AuditContext, place: int, inside: BoolArray) -> Iterator[tuple[str, BoolArray]]:
    """Yield what nearly all rows of a place have in common in a column, and all such rows."""
    features = context.release.features
    numbers = features.numeric.shape[1]
    numeric = place < numbers
    column = features.numeric[:, place] if numeric else features.categorical[:, place - numbers]
    which = columns_words(context, (place,))
    gaps = np.isnan(column) if numeric else np.zeros(len(column), dtype=np.bool_)
    if gaps[inside].mean() >= _NEARLY_ALL:
        yield f"rows in which {which} is missing", gaps
    values, counts = np.unique(column[inside & ~gaps], return_counts=True)
    if len(values) and counts.max() >= _NEARLY_ALL * inside.sum():
        yield f"rows with one value of {which}", column == values[counts.argmax()]


def _as_clear(ones: FloatArray, every: BoolArray, inside: BoolArray) -> bool:
    """Return whether the noise of all rows of a kind differs nearly as much as that of some."""
    usual = float(ones.mean())
    some, whole = (abs(float(ones[rows].mean()) - usual) for rows in (inside, every))
    return whole >= _STILL * some


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


def reading_words(context: AuditContext, doubt: Doubt) -> str:
    """Return both readings of what unknown columns say."""
    which, pronouns = _in_doubt(context, doubt)
    sign = f", or {which}"
    if doubt.finding is not None:
        what = found_words(doubt.of or context, doubt.finding)
        sign = f": {what[0].lower()}{what[1:]} Or {which}"
    elif doubt.bound is not None:
        bound = number(doubt.with_all or doubt.bound, "down")
        sign = f" (with {pronouns[2]} a bound would be ε ≥ {bound}), or {which}"
    return (
        f"Either the labels were not released as claimed{sign} {pronouns[1]} computed from "
        f"released labels, which reveals nothing. {_say(pronouns)}"
    )


def doubt_step(context: AuditContext, doubt: Doubt) -> str:
    """Return what to say about the columns that speak against a claim, and what to look at."""
    which, pronouns = _in_doubt(context, doubt)
    look = _gap(context, doubt)
    found = doubt.finding
    if found is not None and found.is_dependence and found.departure.family != "model":
        look = f"Look at {_place(doubt.of or context, found).words}. "
    return f"{look}Find out whether {which} {pronouns[1]} there before the noise. {_say(pronouns)}"


def _gap(context: AuditContext, doubt: Doubt) -> str:
    """Return to look at the rows in which a column is missing, where released labels differ."""
    numeric, released = context.release.features.numeric, context.release.released
    for place in doubt.columns[:_LISTED]:
        if place >= numeric.shape[1]:
            continue
        gaps = np.isnan(numeric[:, place])
        if not gaps.any() or gaps.all():
            continue
        counts = label_table(gaps.astype(np.int32), released, 2, len(context.release.outputs))
        shares = np.tile(counts.sum(axis=0) / counts.sum(), (2, 1))
        if likelihood_ratio_p_value(counts, shares) <= _SURELY:
            which = columns_words(context, (place,))
            return (
                f"Look at the {rows(gaps.sum())} rows in which {which} is missing: their released "
                "labels are unlike those of the other rows. "
            )
    return ""


def _in_doubt(context: AuditContext, doubt: Doubt) -> tuple[str, tuple[str, str, str]]:
    which = columns_words(context, doubt.columns)
    several = which.startswith("columns") or which[0].isdigit()
    return which, (("they", "were", "them") if several else ("it", "was", "it"))


def _say(pronouns: tuple[str, str, str]) -> str:
    it, was, them = pronouns
    return (
        f"If {it} {was} there before the noise, say so (--before, or true labels in a table that "
        f"has {them}, too); if not, leave {them} out (--drop)."
    )


@dataclass(frozen=True)
class Steps:
    """What to look at first, by what was found; empty where nothing was.

    ``noise``: by columns from before it; ``columns``: about those that are in doubt; ``changed``:
    the columns that fix released labels, ``made`` whether they may be computed from these.
    """

    noise: str = ""
    columns: str = ""
    changed: str = ""
    made: bool = False


def steps(context: AuditContext, group: Doubt | None = None) -> Steps:
    """Return the steps; ``group``: columns by which a bound within a group exceeds the claim."""
    found = causes(context)
    asked = doubt(context) or group
    fixing = changed_columns(context)
    step = step_words(context, found[0]) if found else ""
    return Steps(
        STEP if clear_pattern(context) else step,
        doubt_step(context, asked) if asked is not None else "",
        columns_words(context, fixing) if fixing else "",
        not set(fixing) <= set(before(context)),
    )
