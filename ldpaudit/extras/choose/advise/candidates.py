"""What is known before any noise is drawn: the columns, which to leave out, and what to simulate.

A model learns the label from the rows that simulations release to learners; what it makes of the
test rows, through a mechanism's channel, is the one closed form that ranks mechanisms.
"""

import math
import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Context
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ldpaudit.attacks.scoring import AUC, BALANCED_ACCURACY, score_fold
from ldpaudit.datasets.declaration import check_true_labels
from ldpaudit.datasets.formats import open_table
from ldpaudit.datasets.formats.tables import MemoryTable, TableSource, read_whole
from ldpaudit.datasets.names import called, missing_column, shown_type
from ldpaudit.datasets.reading import open_source
from ldpaudit.doors import (
    Estimate,
    FloatArray,
    InputError,
    IntArray,
    LdpAuditError,
    Mechanism,
    Progress,
    Release,
    child_generator,
    mean_lower,
    mean_upper,
    parse_declaration,
    refuse,
)
from ldpaudit.errors import PolicyError
from ldpaudit.estimators.advantage import advantage_ceiling
from ldpaudit.estimators.instance_loss import mean_loss
from ldpaudit.extras.choose.advise.request import AdviseRequest, Simulated
from ldpaudit.extras.choose.advise.result import Dropped
from ldpaudit.extras.choose.sweep.points import (
    Simulation,
    SweepTables,
    mechanism_at,
    read_tables,
    simulate,
    truth_reading,
)
from ldpaudit.extras.choose.sweep.request import Point
from ldpaudit.extras.kinds.mechanisms.bins import DebiasedRR
from ldpaudit.extras.learn.corrections import unbiased_values
from ldpaudit.extras.learn.utility.outside import rows_inside, said_inside
from ldpaudit.extras.release.privatize.scan import released_as_they_are
from ldpaudit.judging.policy import Policy
from ldpaudit.judging.policy.sections import CLAIM
from ldpaudit.mechanisms import RandomizedResponse, traits_of
from ldpaudit.mechanisms.analysis import label_errors
from ldpaudit.mechanisms.label_range import nearest
from ldpaudit.mechanisms.registry import applicable
from ldpaudit.mechanisms.view import group_channel, numeric_view
from ldpaudit.models.label_model import fit_posterior
from ldpaudit.models.screening import association
from ldpaudit.numeric_labels import NumericView
from ldpaudit.options import LabelOptions, parse_label

# Of a larger table so many rows, drawn at random, are studied and released in simulations.
MOST_ROWS_RELEASED: Final = 30_000
# ε in nats that are tried, the most noise first: 0.05 to 8.
GRID: Final = (
    *(place / 20 for place in range(1, 21)),
    *(place / 10 for place in range(11, 21)),
    *(place / 4 for place in range(9, 17)),
    *(place / 2 for place in range(9, 17)),
)
# Mechanisms that are simulated, the best by closed form, and recommendations at most.
MOST: Final = 3
# ε at which mechanisms are ranked, and tried first where nothing limits it.
_USUAL: Final = 1.0
_LEAST: Final = 1e-9
# Costs that differ by no more count as equal: then there is no reason to spend more ε.
_TOLERANCE: Final = {"classification": 0.001, "regression": 0.001, "counts": 0.0005}
# Mechanisms that code labels as they are: classes, and numbers.
_PROBES: Final = {False: RandomizedResponse.traits.name, True: DebiasedRR.traits.name}
# Closed forms average over at most so many rows × labels × labels.
_WORK: Final = 1e7
# The search for columns to leave out: rows of its models, columns tried in each round, a margin.
_FEW_ROWS, _LOOKED, _MARGIN = 4_000, 8, 0.97
_DECIDE: Final = "they reveal the label in every row, and privatize refuses them"
_NAME: Final = "they may lead back to a person (the policy's check identifiers)"
_REVEAL: Final = "with them the features alone reveal more of the labels than the policy allows"

Parts = tuple[Point, ...]  # A mechanism at an ε for each private column.


def words(parts: Parts) -> str:
    """Return mechanisms and their ε."""
    return ", ".join(f"{one.mechanism} ε = {one.value:g}" for one in parts)


def spent(parts: Parts) -> float:
    """Return what the whole release costs a person, in nats."""
    return math.fsum(one.value for one in parts)


def replaces_features(name: str) -> bool:
    """Return whether a mechanism replaces features, too: with synthetic rows of a public table."""
    traits = traits_of(name)
    swept = traits.swept and "epsilon" in traits.stated_by
    return swept and traits.features == "partly synthetic"


@dataclass(frozen=True)
class Rows:
    """Test rows, and what an attacker who knows other people's true labels thinks of them."""

    posterior: FloatArray
    """P(y | x), float64 of shape (r, k), by a model that has not seen these labels."""
    truth: IntArray
    """Int32 of shape (r,)."""

    def right(self, channel: FloatArray) -> FloatArray:
        """Return each row's chance, over the noise, that the attacker guesses its label."""
        # The attacker guesses the most probable label given the features and what is released, with
        # the channel of shape (k, m) known: exact for the model, no noise is drawn.
        result: FloatArray = np.zeros(len(self.truth))
        for column in channel.T:
            guess = (self.posterior * column).argmax(axis=1)
            result += column[self.truth] * (guess == self.truth)
        return np.asarray(np.minimum(result, 1.0), dtype=np.float64)

    @cached_property
    def alone(self) -> FloatArray:
        """Whether the attacker is right who sees the features alone, float64 of shape (r,)."""
        return np.asarray(self.posterior.argmax(axis=1) == self.truth, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Column:
    """A private column and its features."""

    request: AdviseRequest
    tables: SweepTables
    """The rows that learners are given in simulations and those that they are tested on."""
    audited: pa.Table
    """The rows that are released in simulated audits, in their order."""
    inside: str = ""
    """What is said where test rows (--test) are rows of the table."""

    @property
    def asked(self) -> Simulated:
        """What is asked of simulations: the column's name, the columns left out, the prior."""
        assert isinstance(self.tables.request, Simulated)
        return self.tables.request

    @property
    def rows(self) -> int:
        """The rows of the table that is to be released."""
        return len(self.tables.everything.table)

    @cached_property
    def release(self) -> Release:
        """The rows that teach and then the test rows, true labels in place of released ones."""
        both = pa.concat_tables([self.tables.training, self.tables.test]).combine_chunks()
        point = Point(self.asked.mechanisms[0], "epsilon", 1.0, 1)
        every = replace(self.tables, training=both, test=None)
        return truth_reading(every, mechanism_at(self.tables, point)).release

    @property
    def truth(self) -> IntArray:
        """The true labels' codes, int32 of shape (n,)."""
        assert self.release.truth is not None
        return self.release.truth

    @cached_property
    def prior(self) -> FloatArray:
        """The labels' shares, half a row added to each, float64 of shape (k,)."""
        counts = np.bincount(self.truth, minlength=len(self.release.classes))
        return np.asarray((counts + 0.5) / (len(self.truth) + 0.5 * len(counts)))

    @property
    def constant(self) -> float:
        """What one answer for everybody is worth: the commonest label's share of the rows.

        Where labels are numbers, the mean's squared error.
        """
        numeric = self.release.numeric
        if numeric is not None and numeric.truth is not None:
            return float(np.var(numeric.truth))
        return float(np.bincount(self.truth).max() / len(self.truth))

    @cached_property
    def tested(self) -> Rows:
        """The test rows as an attacker sees them who learnt from the others."""
        taught, k = self.tables.training.num_rows, len(self.release.classes)
        asked = np.arange(taught, min(len(self.truth), taught + int(max(_WORK / k**2, 2_000))))
        rng = child_generator(self.tables.seed, "advise", "model")
        return self.learnt(np.arange(taught), asked, (), rng, self.request.threads or 1)

    def learnt(
        self, taught: IntArray, asked: IntArray, gone: Sequence[int], rng: Any, threads: int = 1
    ) -> Rows:
        """Return rows as others see them who learnt from rows that are taught."""
        features, k = self.release.features.without(list(gone)), len(self.release.classes)
        model = fit_posterior(features.take(taught), self.truth[taught], k, rng, threads)
        return Rows(model.predict(features.take(asked)), self.truth[asked])

    def channel(self, mechanism: Mechanism) -> FloatArray:
        """Return P(released | true) of a mechanism, float64 of shape (k, m); numbers in bins."""
        numeric = self.release.numeric
        if numeric is not None:
            view = numeric_view(mechanism, len(self.release))
            assert view is not None
            assert numeric.truth is not None
            both = NumericView(numeric.view.classes, view.outputs)
            return group_channel(mechanism, both, numeric.truth).matrix
        channel = mechanism.label_channel
        assert channel is not None
        return channel.matrix[[channel.classes.index(label) for label in self.release.classes]]

    def guessed(self, point: Point) -> float | None:
        """Return the share of labels that the attacker guesses right; None: it cannot be made."""
        try:
            mechanism = mechanism_at(self.tables, point)
        except LdpAuditError:
            return None
        return float(self.tested.right(self.channel(mechanism)).mean())

    def leakage(self, point: Point, level: float) -> tuple[Estimate, ...]:
        """Return what an attacker gets right on test rows, and of classes beyond the features."""
        right = self.tested.right(self.channel(mechanism_at(self.tables, point)))
        found = [_mean("accuracy", "Labels guessed right", right, 0.0, level)]
        if self.release.numeric is None:
            title = "Labels guessed right beyond what the features reveal"
            found.append(_mean("advantage", title, right - self.tested.alone, -1.0, level))
        return tuple(found)

    def drawn(self, rows: pa.Table, point: Point) -> Simulation:
        """Return rows as a mechanism would release them, with seeded noise."""
        return simulate(replace(self.tables, training=rows), point)

    def without(self, names: tuple[str, ...]) -> "Column":
        """Return the same rows without some feature columns, as far as they are there."""
        gone = [name for name in names if name in self.tables.features.names]
        if not gone:
            return self
        tables, everything = self.tables, self.tables.everything
        fewer = replace(
            tables,
            request=replace(tables.request, drop=(*tables.request.drop, *gone)),
            everything=MemoryTable(everything.table.drop_columns(gone), everything.location),
            training=tables.training.drop_columns(gone),
            test=tables.test.drop_columns(gone),
        )
        return replace(self, tables=fewer, audited=self.audited.drop_columns(gone))

    def among(self, others: Mapping[str, "tuple[Column, Point]"]) -> "Column":
        """Return the same rows with other private columns' released values among the features."""
        training, test = self.tables.training, self.tables.test
        for name, (column, point) in others.items():
            again = replace(point, repeat=point.repeat + 2)  # The noise of other rows.
            taught = column.drawn(column.tables.training, point).table.column(name)
            asked = column.drawn(column.tables.test, again).table.column(name)
            training, test = training.append_column(name, taught), test.append_column(name, asked)
        kept = tuple(name for name in self.asked.drop if name not in others)
        request = replace(self.asked, drop=kept)
        return replace(
            self, tables=replace(self.tables, request=request, training=training, test=test)
        )


def _mean(name: str, title: str, values: FloatArray, least: float, level: float) -> Estimate:
    tail, value = (1 - level) / 2, float(values.mean())
    low, high = (end(values, tail, least, 1.0) for end in (mean_lower, mean_upper))
    return Estimate.interval(
        f"advice.{name}",
        title,
        value,
        (min(low, value), max(high, value)),
        level,
        section="leakage",
        unit="proportion",
        n=len(values),
        method="an attacker who knows other people's true labels guesses by a model of the "
        "features and the channel; each row's chance over the noise is exact; held-out rows, "
        "betting bounds",
        assumptions=(
            "rows are independent",
            "the attacker knows other people's true labels, and the noise is as declared",
        ),
    )


def checked(request: AdviseRequest) -> AdviseRequest:
    """Return the request with its private columns named; refuse those that are missing."""
    table: Any = open_source(request.data, None, request.files)
    declared = None if table.declaration is None else parse_declaration(table.declaration)
    label, apart = request.label, False
    if not label:
        named = ("label",) if declared is None else declared.names
        label = tuple(LabelOptions(label=name).text() for name in named)
    for name in (parse_label(text).label for text in label):
        if name not in table.names:
            advice = "name the private column: --label COLUMN."
            raise missing_column(name, "label", table.names, advice)
    if request.truth is None:
        check_true_labels(table, [parse_label(text).label for text in label], "The table")
    else:
        truth: Any = open_source(request.truth, None, request.files)
        apart = not set(table.names) <= set(truth.names)
        refuse(
            not apart and truth.row_count != table.row_count,
            "The table of the true labels (--truth) must have as many rows as the release.",
        )
        claims = [] if declared is None else [one.mechanism for one in declared.labels]
        refuse(
            apart and any(one and traits_of(one.name).features != "unchanged" for one in claims),
            "This release changed the features, so what to release instead must be found from "
            "the table that it was made from: ldpaudit advise TABLE --label COLUMN.",
        )
    return replace(request, label=label, apart=apart)


def joined_table(request: AdviseRequest) -> TableSource | None:
    """Return the release's features with the true labels of another file; None for one file."""
    if not request.apart or request.truth is None:
        return None
    source = open_table(request.data, request)
    table, truth = read_whole(source), read_whole(open_table(request.truth, request))
    refuse(
        len(truth) != len(table),
        f"The true labels (--truth) must be row by row those of the release. They have "
        f"{len(truth):,} rows, and the release {len(table):,}.",
    )
    for name in (parse_label(text).label for text in request.label):
        if name not in truth.schema.names and truth.num_columns > 1:
            raise missing_column(name, "label", truth.schema.names)
        values = truth.column(name if name in truth.schema.names else 0)
        table = table.set_column(table.schema.names.index(name), name, values)
    return MemoryTable(table, source.location)


def read_column(request: AdviseRequest, place: int, progress: Progress) -> Column:
    """Read the table with the true labels of the private column at a place, without the others."""
    one = request.columns()[place]
    others = tuple(parse_label(text).label for text in request.label)
    drop = (*request.drop, *(name for name in others if name != one.label[0]))
    asked = one.simulated(one.label[0], _PROBES[one.numeric], drop)
    tables = read_tables(asked, progress=progress, source=joined_table(request))
    training, test, inside = tables.training, tables.test, ""
    if isinstance(test, str):
        test = read_whole(open_table(test, request.files))
        refuse(
            (missing := set(training.schema.names) - set(test.schema.names)),
            f"The test rows (--test) lack columns of the table: {len(missing)}.",
        )
        test = _as_types(test.select(training.schema.names), training.schema)
        point = Point(asked.mechanisms[0], "epsilon", 1.0, 1)
        _, survey = tables.survey(asked.privatized(point, 0))
        labels = test.column(asked.label).chunks
        outside = sum(int((survey.domain.codes(some) < 0).sum()) for some in labels)
        refuse(
            outside,
            "Every label of the test rows (--test) must be one of the table's labels; "
            f"{outside:,} of {len(test):,} rows hold another value or none.",
        )
        both = Column(one, replace(tables, test=test), tables.everything.table).release.features
        taught = len(training)
        own, theirs = (np.arange(taught), np.arange(taught, taught + len(test)))
        inside = said_inside(rows_inside(both.take(own), both.take(theirs)))
    share = len(test) / (len(training) + len(test))
    rng = child_generator(tables.seed, "advise", "rows")

    def some(table: pa.Table, most: int) -> pa.Table:
        kept = rng.permutation(len(table))[:most]
        return table.take(pa.array(np.sort(kept))).combine_chunks()

    audited = some(tables.everything.table, MOST_ROWS_RELEASED)
    training = some(training, round(MOST_ROWS_RELEASED * (1 - share)))
    test = some(test, max(round(MOST_ROWS_RELEASED * share), 1))
    # Each column draws noise of its own.
    seed = tables.seed + place
    kept = replace(tables, training=training, test=test, seed=seed)
    return Column(one, kept, audited, inside)


def _as_types(test: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return test rows in the types of the table (InputError where some value is of no such)."""
    for place, (name, kind) in enumerate(zip(schema.names, schema.types, strict=True)):
        try:
            test = test.set_column(place, name, test.column(place).cast(kind))
        except pa.ArrowException:
            raise InputError(
                f"{called(name, schema.names).capitalize()} of the test rows (--test) must be of "
                f"the table's type {shown_type(kind)}. Got {shown_type(test.schema.types[place])}."
            ) from None
    return test


def left_out(
    columns: Sequence[Column], policy: Policy, level: float, deadline: float
) -> tuple[list[Column], list[Dropped], bool]:
    """Return the columns with the features that stay, what is left out, and whether time sufficed.

    There is one table for all private columns, so what one needs to be left out is gone for all.
    """
    dropped: list[Dropped] = []
    left, searched = list(columns), True

    def deciding(column: Column) -> Sequence[str]:  # privatize refuses them.
        whole, label, kept = column.tables.everything.table, column.asked.label, column.request.keep
        return released_as_they_are(whole, label, kept, whole.schema.names).deciding()

    def identifying(column: Column) -> Sequence[str]:
        named = [one.name for one in column.release.columns if one.concern is not None]
        return [name for name in named if name not in column.request.keep]

    reasons: dict[str, Callable[[Column], Sequence[str]]] = {_DECIDE: deciding}
    if "identifiers" in policy.checks.asked():
        reasons[_NAME] = identifying
    for place in range(len(left)):
        for reason, find in reasons.items():
            if names := tuple(find(left[place])):
                left = [one.without(names) for one in left]
                dropped.append(Dropped.of(names, reason))
    for place, column in enumerate(left):
        if stretch(column, policy, column.tested) > 1:
            names, done = _revealing(column, policy, deadline)
            searched &= done
            if names:
                before = features_alone(column, level)
                left = [one.without(names) for one in left]
                after = features_alone(left[place], level)
                dropped.append(Dropped.of(names, _REVEAL, before, after))
    return left, dropped, searched


def stretch(column: Column, policy: Policy, rows: Rows, level: float | None = None) -> float:
    """Return how far beyond a limit the features alone are, 1 at the limit; 0 without any."""
    # With a ``level`` by the lower ends of intervals: beyond 1 a limit is surely broken.
    checks, worst, classes = policy.checks, [0.0], column.release.numeric is None
    reveal, right = checks.features_reveal_label, checks.label_inference_accuracy
    tail = None if level is None else (1 - level) / 2
    if reveal is not None and classes:
        fold = _scored(rows, tail or 0.05)
        worst += [
            (measure.value(fold) if tail is None else measure.lower(fold, tail)) / reveal.max
            for measure in (AUC, BALANCED_ACCURACY)
        ]
    if right is not None and classes:
        worst.append(_share(rows.alone, tail) / max(right.max, 1e-9))
    loss = checks.instance_loss_exceedance
    if loss is not None and (at := loss.at.at(0.0)) is not None:
        exceeding = mean_loss(rows.posterior, column.prior, None) >= at - 1e-9
        worst.append(_share(exceeding.astype(np.float64), tail) / max(loss.max, 1e-9))
    return max(worst)


def _share(values: FloatArray, tail: float | None) -> float:
    """Return the mean of numbers from 0 to 1, or a lower bound of it that errs so seldom."""
    return float(values.mean() if tail is None else mean_lower(values, tail, 0.0, 1.0))


def _scored(rows: Rows, alpha: float) -> Any:
    rng = np.random.default_rng(0)  # Ranks a sample of many rows.
    return score_fold(rows.truth, rows.posterior, None, rate_alpha=alpha, rng=rng)


def features_alone(column: Column, level: float) -> tuple[Estimate, ...]:
    """Return what the features alone reveal about the test rows."""
    tail = (1 - level) / 2
    fold, found = _scored(column.tested, tail), []
    for measure in (BALANCED_ACCURACY, AUC):
        value, low, high = measure.value(fold), measure.lower(fold, tail), measure.upper(fold, tail)
        found.append(
            Estimate.interval(
                f"advice.features_{measure.name}",
                f"{measure.title} of an attacker who sees the features alone",
                value,
                (min(low, value), max(high, value)),
                level,
                section="leakage",
                unit="proportion",
                n=fold.n,
                method=measure.method,
                assumptions=(
                    "rows are independent",
                    "the attacker knows other people's true labels",
                ),
            )
        )
    return tuple(found)


def _revealing(column: Column, policy: Policy, deadline: float) -> tuple[tuple[str, ...], bool]:
    """Return columns to leave out so that little enough is revealed, and whether time sufficed."""
    # Small models of some of the rows that teach leave out one column at a time, the one without
    # which least is revealed of other rows that teach; what that did is shown on test rows.
    rng = child_generator(column.tables.seed, "advise", "columns")
    order = rng.permutation(column.tables.training.num_rows)
    cut = min(len(order) // 2, _FEW_ROWS)
    taught, asked = np.sort(order[:cut]), np.sort(order[cut : cut + _FEW_ROWS])
    arrays = {one.name: one.arrays for one in column.release.columns if one.arrays}
    left = {name: places for name, places in arrays.items() if name not in column.request.keep}
    clear: FloatArray = association(column.release.features.take(taught), column.truth[taught])
    gone: list[int] = []
    names: list[str] = []

    def revealed(places: Sequence[int]) -> float:
        few = np.random.default_rng(column.tables.seed)
        return stretch(column, policy, column.learnt(taught, asked, places, few))

    # Nothing helps where what is kept reveals too much by itself.
    if not left or revealed([place for places in left.values() for place in places]) > 1:
        return (), True
    while revealed(gone) > _MARGIN and left:
        if time.monotonic() > deadline:
            return tuple(names), False
        looked = sorted(left, key=lambda name: -max(clear[place] for place in left[name]))
        tried = {name: revealed([*gone, *left[name]]) for name in looked[:_LOOKED]}
        names.append(min(tried, key=lambda name: tried[name]))
        gone += left.pop(names[-1])
    # Of columns that say the same the first may have been left out for nothing.
    for name in names[:-1]:
        others = [place for other in names if other != name for place in arrays[other]]
        if time.monotonic() < deadline and revealed(others) <= _MARGIN:
            names.remove(name)
    return tuple(names), True


@dataclass(frozen=True)
class Line:
    """Releases with ever less noise, and the place of the one to try first."""

    parts: tuple[Parts, ...]
    start: int


def lines(columns: Sequence[Column], policy: Policy, *, hopeless: bool) -> list[Line]:
    """Return what to simulate: for one private column the best mechanisms, each at every ε."""
    # For several columns the best mechanism of each, with ε shared out among them. ``hopeless``: no
    # noise on the label alone helps, so double randomized response is left, given a public table.
    most, claim = largest_epsilon(policy, len(columns[0].release.classes)), policy.of_all().claim
    grid = [epsilon for epsilon in GRID if epsilon <= most]
    grid += [most] if most < GRID[-1] and most not in grid else []
    names = applicable()
    # What is claimed by name, or by λ, is what the release is held against.
    if claim is not None and (claim.mechanism is not None or claim.lambda_ is not None):
        names = (claim.declaration().name,)
        grid = [most] if claim.lambda_ is not None else grid
    made: list[tuple[Parts, ...]] = []
    if not hopeless:
        ranked = [_ranked(column, names, grid) for column in columns]
        if len(columns) == 1:
            made = [tuple((point,) for point in one) for one in ranked[0]]
        else:
            made = [_together(columns, [one[0] for one in ranked if one], grid, most)]
        made = [_no_dearer(columns, one) for one in made if one]
    if len(columns) == 1 and columns[0].request.public is not None:
        for name in filter(replaces_features, names):
            made.append(tuple((Point(name, "epsilon", epsilon, 1),) for epsilon in grid))
    if not made and len(names) == 1 and not hopeless:
        why = "cannot be simulated on these labels, or leaves nothing to learn"
        if replaces_features(names[0]):
            why = "is simulated for one private column, with a public table (--public FILE)"
        raise PolicyError(
            f"The policy claims the mechanism {names[0]!r}, which {why}; leave it out of [claim] "
            "to compare others."
        )
    return [Line(one, _start(columns, one, policy, most)) for one in made]


def _no_dearer(columns: Sequence[Column], line: tuple[Parts, ...]) -> tuple[Parts, ...]:
    """Return a line up to where still more ε is expected to be worth no more."""

    def total(place: int) -> float:
        return math.fsum(map(cost, columns, line[place]))

    enough = total(-1) + sum(_TOLERANCE[column.request.use] for column in columns)
    if not math.isfinite(enough):
        return line
    return line[: bisect_left(range(len(line)), True, key=lambda place: total(place) <= enough) + 1]


def largest_epsilon(policy: Policy, classes: int) -> float:
    """Return the most ε that a policy allows the whole release; ∞ where it states none.

    Rounded down to what is printed: a command must not ask for more.
    """
    claim = policy.of_all().claim
    stated = {} if claim is None else claim.declaration().parameters
    most = float(stated.get("epsilon", math.inf))
    if "lambda" in stated:
        most = math.log1p(classes * (1 - stated["lambda"]) / stated["lambda"])
    return most if math.isinf(most) else float(Context(6, ROUND_FLOOR).create_decimal(repr(most)))


def limits_nothing(policy: Policy) -> bool:
    """Return whether a policy lets any ε pass: all that it asks follows the release's own claim."""
    checks, claim = policy.checks, policy.of_all().claim
    claimed = claim is not None and claim.declaration().parameters
    loss = checks.instance_loss_exceedance
    limited = checks.renyi_epsilon is not None or limits_of_guesses(policy)
    return not claimed and not limited and (loss is None or loss.at.above_claim)


def _ranked(column: Column, names: Sequence[str], grid: Sequence[float]) -> list[list[Point]]:
    """Return the mechanisms that the labels allow at every ε, the most useful for its ε first."""
    usual = max(len([epsilon for epsilon in grid if epsilon <= _USUAL]) - 1, 0)
    found = []
    for name in names:
        traits = traits_of(name)
        if (
            traits.swept
            and traits.numeric == (column.release.numeric is not None)
            and traits.features == "unchanged"
            and traits.rows == "independent"
            and not traits.label_depends_on_features
            and "epsilon" in traits.stated_by
        ):
            points = [Point(name, "epsilon", epsilon, 1) for epsilon in grid]
            found.append((cost(column, points[usual]), points))
    best = sorted((one for one in found if math.isfinite(one[0])), key=lambda one: one[0])
    return [points for _, points in best[:MOST]]


def cost(column: Column, point: Point) -> float:
    """Return what a mechanism's noise costs the wanted use, the less the better; ∞: of no use."""
    try:
        mechanism = mechanism_at(column.tables, point)
    except LdpAuditError:
        return math.inf
    if column.request.use == "counts":
        return share_error(column.prior, column.channel(mechanism), column.rows)
    if column.release.numeric is not None:
        return _numbers_cost(column, mechanism)
    share = information_share(column.tested.posterior, column.channel(mechanism))
    return _excess(column, share) if share > 0 else math.inf


def _excess(column: Column, share: float) -> float:
    """Return the excess risk of p coefficients from n rows, each worth a share of a true one."""
    return 1 / (1 + column.rows * share / (column.release.features.width + 1))


def information_share(posterior: FloatArray, channel: FloatArray) -> float:
    """Return how many true labels one noisy label is worth for learning P(y | x), from 0 to 1."""
    # The Fisher information of a noisy label about the k − 1 free probabilities, in units of a true
    # label's, averaged over directions and rows: tr(J⁻¹ J̃)/(k − 1) with J the information of the
    # true label and J̃ that of the noisy one. ``posterior`` of shape (r, k), ``channel`` of shape
    # (k, m).
    noisy = np.maximum(posterior @ channel, _LEAST)
    # tr(J⁻¹ J̃) = Σ_z Var_η(T[·, z]) / η̃_z: the variance over the label, given x, of z's chance.
    second = posterior @ channel**2
    shares = ((second - noisy**2) / noisy).sum(axis=1) / (posterior.shape[1] - 1)
    return float(np.clip(shares.mean(), 0.0, 1.0))


def share_error(prior: FloatArray, channel: FloatArray, rows: int) -> float:
    """Return the root mean square error of the labels' shares, estimated by inverting the channel.

    ``prior``: the true shares, float64 of shape (k,); ``channel`` of shape (k, m). ∞ where it
    cannot be inverted.
    """
    if np.linalg.matrix_rank(channel, tol=1e-9) < len(channel):
        return math.inf
    # Weighted by the outputs' frequencies: less noise than the plain pseudo-inverse.
    weight = 1 / np.maximum(prior @ channel, _LEAST)
    inverse = np.linalg.solve((channel * weight) @ channel.T, channel * weight).T
    spread = prior @ (channel @ inverse**2 - (channel @ inverse) ** 2)
    return float(math.sqrt(max(spread.mean(), 0.0) / rows))


def _numbers_cost(column: Column, mechanism: Mechanism) -> float:
    """Return the excess risk by noise, and by the bias of noisy numbers unless that is undone."""
    mechanism = mechanism.after_rounding
    errors, numeric = label_errors(mechanism), column.release.numeric
    if errors is None or numeric is None or numeric.truth is None:
        return math.inf
    counts = np.bincount(nearest(errors.labels, numeric.truth), minlength=len(errors.labels))
    weights, spread = counts / counts.sum(), max(float(np.var(numeric.truth)), _LEAST)

    def excess(variance: FloatArray) -> float:
        return _excess(column, spread / (spread + float(weights @ variance)))

    kept = float(weights @ errors.bias**2) / spread + excess(errors.variance)
    if mechanism.channel is None or errors.unbiased:
        return kept
    try:
        values = unbiased_values(mechanism.channel)
    except LdpAuditError:
        return kept
    return min(kept, excess(mechanism.channel.matrix @ values**2 - errors.labels**2))


def _together(
    columns: Sequence[Column], ranked: Sequence[list[Point]], grid: Sequence[float], most: float
) -> tuple[Parts, ...]:
    """Return the best mechanism of every column with ever more ε, shared out among them."""
    d = len(columns)
    if len(ranked) < d:
        return ()
    costs = [
        [(point.value, c) for point in points if math.isfinite(c := cost(column, point))]
        for column, points in zip(columns, ranked, strict=True)
    ]
    totals = sorted({min(d * epsilon, most) for epsilon in grid})
    shares = [found for total in totals if (found := shared_out(costs, total)) is not None]
    return tuple(
        tuple(Point(of[0].mechanism, "epsilon", e, 1) for of, e in zip(ranked, each, strict=True))
        for each in dict.fromkeys(map(tuple, shares))
    )


def shared_out(
    columns: Sequence[Sequence[tuple[float, float]]], total: float
) -> list[float] | None:
    """Return the ε of each column: each nat goes where it lowers the cost most."""
    # ``columns``: of each its ε in nats, ascending, and the cost there. Costs are in units of what
    # a column can gain at all, so that they can be added. None where even the smallest ε are too
    # much.
    places = [0] * len(columns)
    if any(not one for one in columns) or sum(one[0][0] for one in columns) > total + 1e-9:
        return None
    scales = [max(max(c for _, c in one) - min(c for _, c in one), 1e-12) for one in columns]
    while True:
        left = total - sum(one[place][0] for one, place in zip(columns, places, strict=True))
        steps = [
            ((one[here][1] - further) / scale / (epsilon - one[here][0]), index, place)
            for index, (one, here, scale) in enumerate(zip(columns, places, scales, strict=True))
            for place, (epsilon, further) in enumerate(one)
            if place > here and epsilon - one[here][0] <= left + 1e-9
        ]
        if not steps:
            return [one[place][0] for one, place in zip(columns, places, strict=True)]
        _, index, place = max(steps)
        places[index] = place


def _start(columns: Sequence[Column], line: Sequence[Parts], policy: Policy, most: float) -> int:
    """Return the place of the least noise that the closed form expects to be within the limits."""
    checks = policy.checks
    limited = checks.label_inference_advantage or checks.label_inference_accuracy
    wanted = most if math.isfinite(most) or limited else _USUAL * len(columns)
    place = max((i for i, parts in enumerate(line) if spent(parts) <= wanted + 1e-9), default=0)
    while place and not all(map(within, columns, line[place], [policy] * len(columns))):
        place -= 1
    return place


def limits_of_guesses(policy: Policy) -> dict[str, tuple[str, float, str]]:
    """Return by the id of advice what bounds an attacker's guesses: check, limit, level."""
    # A limit that follows the claim holds for every mechanism of that ε: nothing is to be shown.
    checks = policy.checks
    asked = {
        "advice.accuracy": ("label-inference-accuracy", checks.label_inference_accuracy),
        "advice.advantage": ("label-inference-advantage", checks.label_inference_advantage),
    }
    return {
        name: (check, float(section.max), section.level)
        for name, (check, section) in asked.items()
        if section is not None and section.max != CLAIM
    }


def within(column: Column, point: Point, policy: Policy) -> bool:
    """Return whether guesses are expected to be within the policy's limits, by the closed form."""
    guessed, classes = column.guessed(point), len(column.release.classes)
    if guessed is None or column.release.numeric is not None:
        return guessed is not None
    gain, right = policy.checks.label_inference_advantage, policy.checks.label_inference_accuracy
    if gain is not None:
        most = advantage_ceiling(point.value, classes) if gain.max == CLAIM else float(gain.max)
        if guessed - float(column.tested.alone.mean()) > most:
            return False
    return right is None or guessed <= right.max
