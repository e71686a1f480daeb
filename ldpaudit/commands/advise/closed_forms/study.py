"""A private column as it is studied: its rows, and what models learn of it from the true labels.

Half of the rows teach the models. Of the others, some are reported on, and no choice has seen them;
on the rest candidates are compared.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal

import numpy as np
import pyarrow as pa

from ldpaudit.audits.instance_loss.labels import LossLabels
from ldpaudit.audits.instance_loss.queries import has_features, neighborhoods
from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.audits.models import half_model
from ldpaudit.commands.advise.request import AdviseRequest, Simulated
from ldpaudit.commands.advise.tables import joined_table
from ldpaudit.commands.sweep.grid import Point
from ldpaudit.commands.sweep.points.measuring import truth_reading
from ldpaudit.commands.sweep.points.simulation import mechanism_at
from ldpaudit.commands.sweep.points.tables import SweepTables, read_tables
from ldpaudit.datasets.formats.batches import read_whole
from ldpaudit.datasets.formats.opening import open_batches
from ldpaudit.errors import InputError
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower, clopper_pearson_upper
from ldpaudit.estimators.loss.exceedance import ErrorBudget
from ldpaudit.mechanisms import DebiasedRR, RandomizedResponse, from_declaration
from ldpaudit.mechanisms.interface import Mechanism
from ldpaudit.mechanisms.numeric.view import group_channel, numeric_view
from ldpaudit.numeric_labels import NumericView
from ldpaudit.randomness import child_generator
from ldpaudit.release import FloatArray, IntArray, Release
from ldpaudit.running.progress import NoProgress, Progress

PROBES: Final = {False: RandomizedResponse.traits.name, True: DebiasedRR.traits.name}
"""Mechanisms that code labels as they are: classes, and numbers."""
_COMPARED: Final = 0.125
"""The share of the rows to release in simulations that learners are compared on instead."""
_MOST_STUDIED: Final = 60_000
"""Of a larger table so many rows, drawn at random, are studied and released in simulations."""
_MOST_ASKED: Final = 20_000
_WORK: Final = 1e7
"""Closed forms average over at most so many rows × labels × labels."""
_ERROR: Final = 0.01
_METRICS: Final[tuple[Literal["l2", "learned"], ...]] = ("l2", "learned")


@dataclass(frozen=True)
class Rows:
    """Rows with their true labels, and what an attacker who knows others' labels thinks of them.

    Attributes
    ----------
    posterior : float64 array of shape (r, k)
        P(y | x) by a model that has not seen these rows' labels.
    truth : int32 array of shape (r,)
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
            chance = column[self.truth]
            guess = (self.posterior * column).argmax(axis=1)
            result += chance * (guess == self.truth)
        return np.asarray(np.minimum(result, 1.0), dtype=np.float64)

    @cached_property
    def alone(self) -> FloatArray:
        """Whether the attacker is right who sees the features alone, float64 of shape (r,)."""
        return np.asarray(self.posterior.argmax(axis=1) == self.truth, dtype=np.float64)


@dataclass(frozen=True)
class Parts:
    """How many rows of a study are of which part, in this order.

    Attributes
    ----------
    released : int
        Rows that simulations release; half of all rows, among them, teach the models.
    compared : int
        Rows that learners are compared on.
    reported : int
        Rows that are reported on.
    """

    released: int
    compared: int
    reported: int

    @property
    def rows(self) -> int:
        """All rows."""
        return self.released + self.compared + self.reported


@dataclass(frozen=True, eq=False)
class Study:
    """A private column, its true labels coded, and the rows in their parts.

    Attributes
    ----------
    request : AdviseRequest
    tables : SweepTables
        Its ``training`` rows are released in simulations; its ``test`` rows are the others.
    parts : Parts
    release : Release
        All rows, part by part, with the true labels in place of released ones.
    progress : Progress
    """

    request: AdviseRequest
    tables: SweepTables
    parts: Parts
    release: Release
    progress: Progress

    @property
    def asked(self) -> Simulated:
        """What is asked of simulations: the column's name, the columns left out, the prior."""
        assert isinstance(self.tables.request, Simulated)
        return self.tables.request

    @property
    def label(self) -> str:
        """The column's name."""
        return self.asked.label

    @property
    def rows(self) -> int:
        """The rows of the table that is to be released."""
        return int(self.tables.everything.table.num_rows)

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
    def context(self) -> AuditContext:
        """An audit's context: its models and neighbourhoods are those of ``ldpaudit run``.

        Models learn from half 1, where no row is that is reported on or compared.
        """
        plan = Plan(seed=self.tables.seed, threads=self.request.threads or 1)
        claim = from_declaration(None, self.release.classes)
        context = AuditContext(replace(self.release, declaration=None), claim, plan, self.progress)
        halves = np.zeros(self.parts.rows, dtype=np.int8)
        taught = min(self.parts.rows // 2, self.parts.released)
        order = context.rng("advise", "halves").permutation(self.parts.released)
        halves[order[:taught]] = 1
        context.once("halves", lambda: halves)
        return context

    @property
    def most(self) -> int:
        """How many rows of a part closed forms average over at most."""
        return int(min(_MOST_ASKED, max(_WORK / len(self.release.classes) ** 2, 2_000)))

    def _asked(self, *, reported: bool) -> Rows:
        rows = self.context.half(0)
        rows = rows[(rows >= self.parts.rows - self.parts.reported) == reported]
        rows = self.context.sample(rows, self.most, "advise", "asked", str(reported))
        model = half_model(self.context, "truth", 1)
        return Rows(model.predict(self.release.features.take(rows)), self.truth[rows])

    @cached_property
    def compared(self) -> Rows:
        """Rows that candidates are compared on."""
        return self._asked(reported=False)

    @cached_property
    def reported(self) -> Rows:
        """Rows that are reported on: no choice has seen them."""
        return self._asked(reported=True)

    @cached_property
    def neighbors(self) -> tuple[tuple[FloatArray, FloatArray], ...]:
        """P(y | x) by neighbours' true labels, for each metric: of rows compared, and reported on.

        Neighbours are found and counted as ``ldpaudit run`` does it.
        """
        context, k = self.context, len(self.release.classes)
        counts, n, tail = np.bincount(self.truth, minlength=k), len(self.truth), _ERROR / 2
        low, high = clopper_pearson_lower(counts, n, tail), clopper_pearson_upper(counts, n, tail)
        every = np.arange(k)
        labels = LossLabels(
            *(self.truth, self.truth, every, k, self.prior, low, high, None, "none")
        )
        budget, found = ErrorBudget.of(_ERROR), []
        for metric in _METRICS if has_features(context) else _METRICS[:1]:
            here = replace(context, plan=replace(context.plan, metric=metric))
            asked = neighborhoods(here, labels)
            box = labels.box(asked.counts, asked.totals, budget.per_query).estimate
            last = asked.queries >= self.parts.rows - self.parts.reported
            parts = (np.flatnonzero(~last), np.flatnonzero(last))
            some = [context.sample(part, self.most, "advise", metric) for part in parts]
            found.append((box[some[0]], box[some[1]]))
        return tuple(found)

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

    def without(self, *columns: str) -> "Study":
        """Return the study of the same rows without some feature columns."""
        tables, names = self.tables, list(columns)
        everything = replace(tables.everything, table=tables.everything.table.drop_columns(names))
        fewer = replace(
            tables,
            request=replace(tables.request, drop=(*tables.request.drop, *columns)),
            everything=everything,
            training=tables.training.drop_columns(names),
            test=tables.test.drop_columns(names),
        )
        return study_of(self.request, fewer, self.parts, self.progress)


def read_study(
    request: AdviseRequest, label: str, drop: tuple[str, ...], progress: Progress | None = None
) -> Study:
    """Read a table with the true labels of one private column.

    Raises
    ------
    InputError
        If a column is missing, a label does not fit, or there are too few rows.
    """
    progress = progress or NoProgress()
    asked = request.simulated(label, PROBES[request.numeric], drop)
    tables = read_tables(asked, progress=progress, source=joined_table(request))
    test, n = tables.test, tables.training.num_rows
    if isinstance(test, str):
        test = _like(read_whole(open_batches(test, request.files)), tables.training)
    most = round(_MOST_STUDIED * n / (n + test.num_rows))
    rng = child_generator(tables.seed, "advise", "compared")
    order = rng.permutation(n)[:most]
    cut = round(_COMPARED * len(order))
    some, rest = np.sort(order[:cut]), np.sort(order[cut:])
    kept = rng.permutation(test.num_rows)[: max(_MOST_STUDIED - most, 1)]
    test = test.take(pa.array(np.sort(kept)))
    others = pa.concat_tables([tables.training.take(pa.array(some)), test])
    parts = Parts(len(rest), len(some), test.num_rows)
    tables = replace(tables, training=tables.training.take(pa.array(rest)), test=others)
    return study_of(request, tables, parts, progress)


def study_of(
    request: AdviseRequest, tables: SweepTables, parts: Parts, progress: Progress
) -> Study:
    """Return the study of rows that are in their parts."""
    point = Point(tables.request.mechanisms[0], "epsilon", 1.0, 1)
    every = replace(
        tables,
        training=pa.concat_tables([tables.training, tables.test]).combine_chunks(),
        test=None,
    )
    release = truth_reading(every, mechanism_at(tables, point)).release
    return Study(request, tables, parts, release, progress)


def _like(table: pa.Table, other: pa.Table) -> pa.Table:
    missing = [name for name in other.schema.names if name not in table.schema.names]
    if missing:
        raise InputError(f"The test rows (--test) lack {len(missing)} column(s) of the table.")
    return table.select(other.schema.names).cast(other.schema)
