"""A private column as advice looks at it: its rows, and what others' true labels teach of them.

A model learns the label from the rows that simulations release to learners; what it makes of the
test rows, through a mechanism's channel, is the one closed form that ranks mechanisms.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ldpaudit.commands.advise.request import AdviseRequest, Simulated
from ldpaudit.commands.sweep.points import (
    Simulation,
    SweepTables,
    mechanism_at,
    read_tables,
    simulate,
    truth_reading,
)
from ldpaudit.commands.sweep.request import Point
from ldpaudit.datasets.declaration import parse_declaration
from ldpaudit.datasets.formats.opening import open_table
from ldpaudit.datasets.formats.tables import MemoryTable, TableSource, read_whole
from ldpaudit.datasets.names import missing_column
from ldpaudit.datasets.reading import open_source
from ldpaudit.errors import InputError, LdpAuditError
from ldpaudit.estimators.intervals.bounded_mean import mean_lower, mean_upper
from ldpaudit.mechanisms import DebiasedRR, RandomizedResponse, traits_of
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.view import group_channel, numeric_view
from ldpaudit.models.label_model import fit_posterior
from ldpaudit.numeric_labels import NumericView
from ldpaudit.options import LabelOptions, parse_label
from ldpaudit.randomness import child_generator
from ldpaudit.release import FloatArray, IntArray, Release
from ldpaudit.result import Estimate
from ldpaudit.work.progress import Progress

JOIN: Final = (
    "The true labels are in a file of their own, so the commands say TABLE: put the true labels "
    "into the table first, in place of the released ones."
)
# Of a larger table so many rows, drawn at random, are studied and released in simulations.
MOST_ROWS: Final = 30_000
# Mechanisms that code labels as they are: classes, and numbers.
_PROBES: Final = {False: RandomizedResponse.traits.name, True: DebiasedRR.traits.name}
# Closed forms average over at most so many rows × labels × labels.
_WORK: Final = 1e7
_TITLES: Final = {
    "accuracy": "Labels guessed right",
    "advantage": "Labels guessed right beyond what the features reveal",
}


def checked(request: AdviseRequest) -> AdviseRequest:
    """Return the request with its private columns named; refuse those that are missing."""
    table: Any = open_source(request.data, None, request.files)
    label = request.label or _declared(table)
    for name in (parse_label(text).label for text in label):
        if name not in table.names:
            advice = "name the private column: --label COLUMN."
            raise missing_column(name, "label", table.names, advice)
    apart = False
    if request.truth is not None:
        truth: Any = open_source(request.truth, None, request.files)
        apart = not set(table.names) <= set(truth.names)
        _check_features_kept(table, apart=apart)
    return replace(request, label=label, apart=apart)


def _declared(table: Any) -> tuple[str, ...]:
    if table.declaration is None:
        return ("label",)
    names = parse_declaration(table.declaration).names
    return tuple(LabelOptions(label=name).text() for name in names)


def _check_features_kept(table: Any, *, apart: bool) -> None:
    """Refuse the features of a release that changed them, where there are no others."""
    if not apart or table.declaration is None:
        return
    labels = parse_declaration(table.declaration).labels
    stated = [one.mechanism.name for one in labels if one.mechanism is not None]
    if any(traits_of(name).features != "unchanged" for name in stated):
        raise InputError(
            "This release changed the features, so what to release instead must be found from the "
            "table that it was made from: ldpaudit advise TABLE --label COLUMN."
        )


def joined_table(request: AdviseRequest) -> TableSource | None:
    """Return the release's features with the true labels of another file; None for one file."""
    if not request.apart or request.truth is None:
        return None
    source = open_table(request.data, request)
    table = read_whole(source)
    truth = read_whole(open_table(request.truth, request))
    if len(truth) != len(table):
        raise InputError(
            f"The true labels (--truth) must be row by row those of the release. They have "
            f"{len(truth):,} rows, and the release {len(table):,}."
        )
    for name in (parse_label(text).label for text in request.label):
        if name not in truth.schema.names and truth.num_columns > 1:
            raise missing_column(name, "label", truth.schema.names)
        values = truth.column(name if name in truth.schema.names else 0)
        table = table.set_column(table.schema.names.index(name), name, values)
    return MemoryTable(table, source.location)


@dataclass(frozen=True)
class Rows:
    """Test rows, and what an attacker who knows other people's true labels thinks of them.

    ``posterior``: P(y | x), float64 of shape (r, k), by a model that has not seen these labels;
    ``truth``: int32 of shape (r,).
    """

    posterior: FloatArray
    truth: IntArray

    def right(self, channel: FloatArray) -> FloatArray:
        """Return each row's chance, over the noise, that the attacker guesses its label.

        The attacker guesses the most probable label given the features and what is released, with
        the channel of shape (k, m) known: exact for the model, no noise is drawn.
        """
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
    """A private column and its features.

    ``tables``: the rows that learners are given in simulations and those that they are tested on;
    ``audited``: the rows that are released in simulated audits, in their order.
    """

    request: AdviseRequest
    tables: SweepTables
    audited: pa.Table

    @property
    def asked(self) -> Simulated:
        """What is asked of simulations: the column's name, the columns left out, the prior."""
        assert isinstance(self.tables.request, Simulated)
        return self.tables.request

    @property
    def rows(self) -> int:
        """The rows of the table that is to be released."""
        return int(self.tables.everything.table.num_rows)

    @cached_property
    def release(self) -> Release:
        """The rows that teach and then the test rows, true labels in place of released ones."""
        tables = self.tables
        both = pa.concat_tables([tables.training, tables.test]).combine_chunks()
        point = Point(self.asked.mechanisms[0], "epsilon", 1.0, 1)
        every = replace(tables, training=both, test=None)
        return truth_reading(every, mechanism_at(tables, point)).release

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

    @cached_property
    def tested(self) -> Rows:
        """The test rows as an attacker sees them who learnt from the others."""
        taught, k = self.tables.training.num_rows, len(self.release.classes)
        most = int(max(_WORK / k**2, 2_000))
        asked = np.arange(taught, min(len(self.truth), taught + most))
        rng = child_generator(self.tables.seed, "advise", "model")
        features, some = self.release.features, np.arange(taught)
        threads = self.request.threads or 1
        model = fit_posterior(features.take(some), self.truth[some], k, rng, threads)
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
        values = {"accuracy": right}
        if self.release.numeric is None:
            values["advantage"] = right - self.tested.alone
        return tuple(_mean(name, of, level) for name, of in values.items())

    def drawn(self, rows: pa.Table, point: Point) -> Simulation:
        """Return rows as a mechanism would release them, with seeded noise."""
        return simulate(replace(self.tables, training=rows), point, None)

    def without(self, names: tuple[str, ...]) -> "Column":
        """Return the same rows without some feature columns, as far as they are there."""
        gone = [name for name in names if name in self.tables.features.names]
        if not gone:
            return self
        tables = self.tables
        request = replace(tables.request, drop=(*tables.request.drop, *gone))
        everything = tables.everything
        whole = MemoryTable(everything.table.drop_columns(gone), everything.location)
        training, test = (one.drop_columns(gone) for one in (tables.training, tables.test))
        fewer = replace(tables, request=request, everything=whole, training=training, test=test)
        return Column(self.request, fewer, self.audited.drop_columns(gone))

    def beside(self, others: Mapping[str, "tuple[Column, Point]"]) -> "Column":
        """Return the same rows with other private columns' released values among the features."""
        tables, request = self.tables, self.tables.request
        training, test = tables.training, tables.test
        for name, (column, point) in others.items():
            again = replace(point, repeat=point.repeat + 2)  # The noise of other rows.
            taught = column.drawn(column.tables.training, point).table.column(name)
            asked = column.drawn(column.tables.test, again).table.column(name)
            training = training.append_column(name, taught)
            test = test.append_column(name, asked)
        kept = tuple(name for name in request.drop if name not in others)
        asked_for = replace(request, drop=kept)
        more = replace(tables, request=asked_for, training=training, test=test)
        return replace(self, tables=more)


def _mean(name: str, values: FloatArray, level: float) -> Estimate:
    tail, value, least = (1 - level) / 2, float(values.mean()), -1.0 if name == "advantage" else 0.0
    low, high = (end(values, tail, least, 1.0) for end in (mean_lower, mean_upper))
    return Estimate.interval(
        f"advice.{name}",
        _TITLES[name],
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


def read_columns(
    request: AdviseRequest, asked: tuple[AdviseRequest, ...], progress: Progress
) -> list[Column]:
    """Read the table with the true labels, once for each private column: without the others."""
    names = [one.label[0] for one in asked]
    found = []
    for place, one in enumerate(asked):
        others = tuple(name for name in names if name != one.label[0])
        column = _read(one, (*request.drop, *others), progress)
        # Each column draws noise of its own.
        tables = replace(column.tables, seed=column.tables.seed + place)
        found.append(replace(column, tables=tables))
    return found


def _read(request: AdviseRequest, drop: tuple[str, ...], progress: Progress) -> Column:
    asked = request.simulated(request.label[0], _PROBES[request.numeric], drop)
    tables = read_tables(asked, progress=progress, source=joined_table(request))
    test = tables.test
    if isinstance(test, str):
        test = _like(read_whole(open_table(test, request.files)), tables.training)
    whole, share = tables.everything.table, len(test) / (len(tables.training) + len(test))
    rng = child_generator(tables.seed, "advise", "rows")
    audited = _some(whole, MOST_ROWS, rng)
    training = _some(tables.training, round(MOST_ROWS * (1 - share)), rng)
    test = _some(test, max(round(MOST_ROWS * share), 1), rng)
    return Column(request, replace(tables, training=training, test=test), audited)


def _some(table: pa.Table, most: int, rng: np.random.Generator) -> pa.Table:
    """Return so many rows at most, in their order."""
    kept = rng.permutation(len(table))[:most]
    return table.take(pa.array(np.sort(kept))).combine_chunks()


def _like(table: pa.Table, other: pa.Table) -> pa.Table:
    missing = [name for name in other.schema.names if name not in table.schema.names]
    if missing:
        raise InputError(f"The test rows (--test) lack {len(missing)} column(s) of the table.")
    return table.select(other.schema.names).cast(other.schema)
