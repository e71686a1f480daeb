"""Whether noise is white: what was there before it, and where what it did goes with that."""

# True labels must be known. What is found is asked again in two ways before it counts: rows may
# have been put in order, and columns computed, from released labels after the noise.

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ldpaudit.audits.assumptions.places import MOST_GROUPED, groups, orders
from ldpaudit.audits.assumptions.views import MOST_SIDES, View, views
from ldpaudit.audits.before import before
from ldpaudit.audits.interface import AuditContext, remembered
from ldpaudit.audits.models import copies
from ldpaudit.error_budget import WHITE_NOISE
from ldpaudit.estimators.assumptions.clusters import one_of_each
from ldpaudit.estimators.assumptions.learner import cross_fitted_chances, foreseen, label_sides
from ldpaudit.estimators.departures import Departure, Groups, Order
from ldpaudit.estimators.row_noise import RowNoise, p_value
from ldpaudit.estimators.whiteness import MIRRORED, white
from ldpaudit.release import FloatArray, IndexArray

# The p-value from which noise is not taken for white: the audit cannot pass then.
SUSPICIOUS: Final = 0.01
# Up to this p-value it is asked what else explains a departure.
_ASKED_AGAIN: Final = 0.05
# So many findings by columns from before, and by others, are looked into: more have the same cause.
_MOST_CONFIRMED: Final = 6
# What goes with released labels nearly as clearly as with the noise may be made from them.
_NEARLY: Final = 0.7
# … and what they show less than this part of was not.
_HARDLY: Final = 0.25
_TOO_EQUAL: Final = ("blocks", "equal groups")
_LEARNT: Final = "a model of all columns"


@dataclass(frozen=True, eq=False)
class NoiseFinding:
    """Something that was there before, with which noise goes together.

    Attributes
    ----------
    departure : Departure
    p_value : float
        Valid for all tests at once, whichever way rows were put in order after the noise.
    others : float
        The same of rows with different true labels: noise that one person's rows share reveals
        nothing.
    known : bool
        Whether all that it rests on was there before the noise.
    """

    departure: Departure
    p_value: float
    others: float
    known: bool

    def if_repeated(self, times: float) -> float:
        """Return the p-value where a row stands in the table up to so many times."""
        if times <= 1:
            return self.p_value
        # Copies win together what one row wins, and a bet on many groups pays less for each than
        # it would with as many rows of their own: half of what is left counts.
        tried = max(float(self.departure.tried), 1.0)
        return min(tried * math.pow(self.p_value / tried, 0.5 / times), 1.0)

    @property
    def is_dependence(self) -> bool:
        """Whether the noise itself depends on columns or places, rather than on other rows'."""
        where = self.departure.where
        large = isinstance(where, Groups) and self.departure.family == "groups" and not where.small
        return large or self.departure.family in ("stretch", "model")


@dataclass(frozen=True, eq=False)
class WhiteNoise:
    """What was found, the clearest first.

    ``findings``: with which noise goes together; ``ordered``: whether the rows seem to have been
    put in order by their released labels after the noise.
    """

    findings: tuple[NoiseFinding, ...] = ()
    ordered: bool = False

    def p_value(
        self, *, known: bool = True, dependence: bool | None = None, times: float = 1.0
    ) -> float:
        """Return the p-value of white noise by some of the findings.

        ``times``: how often a row may stand in the table.
        """
        some = self._some(known, dependence)
        return min((one.if_repeated(times) for one in some), default=1.0)

    def others(self) -> float:
        """Return the p-value of "no row's noise reveals another person's", by what is known."""
        return min((one.others for one in self._some(True, False)), default=1.0)

    def _some(self, known: bool, dependence: bool | None) -> Iterator[NoiseFinding]:
        for one in self.findings:
            if one.known == known and dependence in (None, one.is_dependence):
                yield one

    def clear(self, *, known: bool | None = None) -> list[NoiseFinding]:
        """Return the findings with which noise is not taken for white."""
        return [
            one for one in self.findings if one.p_value <= SUSPICIOUS and known in (None, one.known)
        ]


@remembered("noise.white")
def white_noise(context: AuditContext) -> WhiteNoise:
    """Return where noise is not white."""
    context.progress.step("testing whether noise is white")
    known, findings, ordered = set(before(context)), [], False
    every_order, every_group = list(orders(context)), list(groups(context, MOST_GROUPED))
    seen: set[int] = set()
    of_each = WHITE_NOISE["orders and groups"] / len(views(context))
    found_in = [
        (view, departure)
        for view in views(context)
        for departure in white(view.outcomes, every_order, every_group, of_each)
    ]
    # The file's order first, in all views: it shows whether released labels put rows in order.
    found_in.sort(key=lambda pair: (pair[1].where is not every_order[0], pair[1].p_value))
    confirmed = [0, 0]
    # The orders and groupings that were made from released labels.
    made = set[_Place]()
    for view, departure in found_in:
        own = set(departure.columns) <= known
        # Rows in the order of true labels keep that of the file within each.
        order = _order(departure)
        by_truth = order is not None and "true label" in order.name
        if confirmed[own] == _MOST_CONFIRMED or (by_truth and ordered):
            seen.update(departure.columns)
            continue
        found = _confirmed(context, view, departure, own, by_released=_place(departure) in made)
        findings.append(found)
        confirmed[own] += found.p_value <= SUSPICIOUS
        explained = departure.p_value <= SUSPICIOUS < found.p_value
        ordered |= explained and order is not None
        if explained:
            made.add(_place(departure))
        # What released labels explain would only be learnt again.
        seen.update(departure.columns if explained else ())
    for blind, departure in _learnt(context, seen, WHITE_NOISE["learner"]):
        findings.append(NoiseFinding(departure, departure.p_value, departure.p_value, blind))
    findings.sort(key=lambda one: one.p_value)
    return WhiteNoise(tuple(one for one in _without_echoes(findings) if one.p_value < 1), ordered)


def _without_echoes(findings: Sequence[NoiseFinding]) -> list[NoiseFinding]:
    """Return the findings without those that noise which is used again brings about.

    Where noise repeats at a distance, a few draws stand in many rows: by chance they go together
    with their mirror image, and with sums of rows before, in all of these.
    """
    repeated = [
        one.departure.log_wealth
        for one in findings
        if one.departure.family == "distance" and one.p_value <= SUSPICIOUS
    ]
    clearest = max(repeated, default=0.0)

    def is_echo(one: NoiseFinding) -> bool:
        departure = one.departure
        shaped = departure.family == "triples" or departure.where.name == MIRRORED
        return shaped and departure.log_wealth < clearest

    return [one for one in findings if not is_echo(one)]


_Place = tuple[bool, str, tuple[int, ...]]


def _order(departure: Departure) -> Order | None:
    """Return the order in which a departure was seen; mirrored rows are groups by an order."""
    where = departure.where
    return where if isinstance(where, Order) else where.order


def _place(departure: Departure) -> _Place:
    """Return where a departure was seen; ranks within values stand in the file's order."""
    order = _order(departure)
    if order is None:
        return False, departure.where.name, departure.where.columns
    if order.name.startswith("rank"):
        return True, "the file", ()
    return True, order.name, order.columns


def _confirmed(
    context: AuditContext,
    view: View,
    departure: Departure,
    known: bool,
    *,
    by_released: bool = False,
) -> NoiseFinding:
    """Return what is left of a departure that released labels, and features, do not explain.

    ``by_released``: whether the order or grouping is known to be made from released labels.
    """
    found, others = departure.p_value, departure.p_value
    if found > _ASKED_AGAIN:
        return NoiseFinding(departure, found, others, known)
    if departure.family in _TOO_EQUAL:
        found = max(found, p_value(departure.bet(view.totals), departure.tried))
        return NoiseFinding(departure, found, found, known)
    # Large groups by columns from before the noise are not made from released labels, and hardly
    # were their rows chosen by them; of equal rows one may have been left out.
    large = isinstance(departure.where, Groups) and not departure.where.small
    blind = known and departure.family == "groups" and large
    of_released = 0.0 if blind else _of_released(context, departure)
    # What was made from released labels goes with these at least as clearly as with the noise: of
    # the noise it knows no more than they say. Where they hardly show it, it was not.
    blind |= (
        of_released <= _HARDLY * departure.log_wealth / view.outcomes.entropy and not by_released
    )
    if departure.where.name == MIRRORED and not blind:
        # In an order made from released labels, ends are alike by right.
        return NoiseFinding(departure, 1.0, 1.0, known)
    if not blind:
        wealth = departure.bet(view.by_released, both_signs=True)
        found = max(found, p_value(wealth, departure.tried))
    if not blind and found <= _ASKED_AGAIN:
        # Where it goes with the released labels at least as clearly as with the noise, and all that
        # features and these labels explain leaves nothing, it was made from released labels.
        wealth = departure.bet(explained(context, view, departure), both_signs=True)
        left = p_value(wealth, departure.tried)
        nearly = of_released >= _NEARLY * departure.log_wealth / view.outcomes.entropy
        if left > SUSPICIOUS and (by_released or nearly):
            found = left
    if found <= SUSPICIOUS and not _of_any_two(context, departure):
        labels = context.truth.astype(np.int64)
        wealth = departure.bet(replace(view.outcomes, labels=labels))
        others = p_value(wealth, departure.tried)
    return NoiseFinding(departure, found, max(found, others), known)


def _of_any_two(context: AuditContext, departure: Departure) -> bool:
    """Return whether true labels at a distance agree no more than those of any two people."""
    if departure.family != "distance":
        return False
    truth = context.truth[departure.where.rows]
    shares = np.bincount(truth) / len(truth)
    chance = float(shares @ shares)
    agree = truth[departure.first :] == truth[: -departure.first]
    most = chance + 2 * np.sqrt(chance * (1 - chance) / len(agree))
    return bool(agree.mean() <= most)


def explained(context: AuditContext, view: View, departure: Departure) -> RowNoise:
    """Return outcomes with the chance that the other features and the released label give them."""
    chances = _cross_fitted(context, view.by_released, departure)
    return replace(view.by_released, chances=chances)


def _of_released(context: AuditContext, departure: Departure) -> float:
    """Return what the same bet gains on released labels, as a share of all that it could.

    On the one of several sides on which it gains most: each frequent label against all others.
    """
    released = context.release.released
    halves = label_sides(released, released, same_labels=True)[1]
    counts = np.bincount(released)
    frequent = np.argsort(-counts, kind="stable")[: MOST_SIDES if np.sum(counts > 0) > 2 else 0]
    gains = []
    for side in (halves, *(released == code for code in frequent)):
        every = RowNoise(side.astype(np.float64), np.zeros(len(side), dtype=np.int64))
        gains.append(departure.bet(every, both_signs=True) / max(every.entropy, 1.0))
    return max(gains)


def _cross_fitted(context: AuditContext, noise: RowNoise, departure: Departure) -> FloatArray:
    """Return the chance of each outcome given its stratum and the columns not looked at."""
    features, where = context.release.features, departure.where
    of_groups = isinstance(where, Groups) and where.small
    known = before(context)
    of_others = departure.family == "groups"
    without = tuple(j for j in departure.columns if of_others and j not in known)
    # The same models serve all orders of the rows.
    what = (hash(noise.ones.tobytes()), len(noise.ones))
    which = where.name + str(where.columns) if of_groups else ""
    key = f"noise.cross-fitted {what} {without} {which}"

    def fit() -> FloatArray:
        together = where.every if of_groups and isinstance(where, Groups) else _equal(context)
        rng = context.rng("noise", "cross-fitted", which, *map(str, without))
        return cross_fitted_chances(features.without(without), noise, together, rng)

    return context.once(key, fit)


@remembered("noise.equal rows")
def _equal(context: AuditContext) -> IndexArray:
    """Return codes of rows that may be one person's, int64 (n,)."""
    given, features = context.release.groups, context.release.features
    if given is not None:
        return given
    return np.arange(len(features)) if features.is_constant() else copies(context)


def _one_of_equal_rows(context: AuditContext) -> IndexArray | None:
    """Return one random row of all that are equal, int64 in order; None where no two are."""
    # A row may stand in the table several times because of its released label: then how often its
    # values occur says something of the noise, and nothing of how it was drawn.
    release = context.release
    if release.groups is not None or release.features.is_constant():
        return None
    rows = one_of_each(copies(context), context.rng("noise", "equal rows"))
    return None if len(rows) == len(release) else rows


def _learnt(
    context: AuditContext, seen: set[int], share: float
) -> Iterator[tuple[bool, Departure]]:
    """Yield what a model of the noise finds: by columns from before, and by all of them."""
    features, known = context.release.features, set(before(context))
    outcomes = [view.outcomes for view in views(context)]
    single = _one_of_equal_rows(context)
    if single is not None:
        features, outcomes = features.take(single), [one.take(single) for one in outcomes]
    every = set(range(features.width))
    for own, places in ((True, known), (False, every - seen)):
        if not places or (not own and places <= known):
            continue
        rng = context.rng("noise", "model", str(own))
        tried = 2 * len(outcomes) / share
        where = Groups(_LEARNT, np.empty(0, np.int64), tuple(sorted(places)), np.arange(0))
        shown = features.without(tuple(every - places))
        for wealth in foreseen(shown, outcomes, rng, context.release.groups):
            yield own, Departure("model", where, tried=tried, log_wealth=wealth)
