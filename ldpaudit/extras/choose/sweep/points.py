"""The points of a sweep: the tables they draw from, simulated releases, and their measures."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ldpaudit.api import plan_of
from ldpaudit.audits.interface import Shared
from ldpaudit.datasets.declaration import check_true_labels
from ldpaudit.datasets.formats import open_table
from ldpaudit.datasets.formats.tables import (
    MemoryTable,
    TableSource,
    computed_type,
    decoded,
    read_whole,
    value_type,
)
from ldpaudit.datasets.reading import ReadReport
from ldpaudit.doors import (
    Declaration,
    Estimate,
    Mechanism,
    NoProgress,
    Note,
    Progress,
    child_generator,
    declare,
    read_release,
    refuse,
)
from ldpaudit.extras.choose.sweep.request import Point, SweepRequest
from ldpaudit.extras.learn.utility import ModelKind
from ldpaudit.extras.learn.utility.learner import Learner
from ldpaudit.extras.learn.utility.scores import Utility, utility
from ldpaudit.extras.release.priors import LabelPrior, read_prior
from ldpaudit.extras.release.privatize.columns import (
    DeclaredLabels,
    PrivateColumn,
    PrivateColumns,
    build,
    declared_labels,
    survey_labels,
)
from ldpaudit.extras.release.privatize.features import FittedGenerator, fit_generator
from ldpaudit.extras.release.privatize.labels import Survey, bare_type, completed, output_array
from ldpaudit.extras.release.privatize.release import row_release
from ldpaudit.extras.release.privatize.request import ColumnRequest
from ldpaudit.extras.release.privatize.work import check_columns, released_schema
from ldpaudit.judging.policy import Policy, default_policy
from ldpaudit.mechanisms.view import DeclaredCoding
from ldpaudit.numeric_labels import NumericView
from ldpaudit.pipeline.audit import audit
from ldpaudit.pipeline.terms import Terms
from ldpaudit.randomness import seed_from

# Rows of the generator that audits and learners are given.
_POOL_PER_CLASS, _MOST_POOLED = 200, 20_000
_BEYOND: Final = "Violation found: the declared ε lies above what the policy allows."


@dataclass(frozen=True, eq=False)
class SweepTables:
    """The data of every point of a sweep."""

    request: SweepRequest
    seed: int
    """The sweep's root seed."""
    everything: MemoryTable
    """All rows of the data, from which the labels are surveyed."""
    training: pa.Table
    """The n rows that are released in simulations, with the true label."""
    test: Any
    """The rows that learners are tested on, or their file."""
    prior: LabelPrior | None
    columns: Sequence[str]
    """All columns of the data's file, whose places messages name."""
    fitted: FittedGenerator | None = None
    """What makes synthetic rows where a mechanism needs them and there is no table of them."""
    shared: Shared = field(default_factory=Shared)
    """What the audits of the points share, as models of the true labels."""
    _surveys: dict[str, tuple[DeclaredLabels, Survey]] = field(default_factory=dict)

    @property
    def features(self) -> pa.Schema:
        """The features' columns and types."""
        label = self.request.label
        return pa.schema([column for column in self.training.schema if column.name != label])

    def survey(self, request: ColumnRequest) -> tuple[DeclaredLabels, Survey]:
        """Return the labels as a mechanism needs them, read once for each mechanism."""
        if request.mechanism not in self._surveys:
            stated = declared_labels(request, None if self.prior is None else self.prior.labels)
            survey = survey_labels(request, stated, self.everything, NoProgress())
            self._surveys[request.mechanism] = stated, survey
        return self._surveys[request.mechanism]

    def with_generator(self, point: Point, progress: Progress) -> "SweepTables":
        """Return the tables with the generator of synthetic rows, fitted as a point asks for."""
        asked = self.request.privatized(point, self.seed)
        rows, (_, survey) = MemoryTable(self.training, self.everything.location), self.survey(asked)
        return replace(self, fitted=fit_generator(asked, rows, survey, self.features, progress))


def read_tables(
    request: SweepRequest,
    seed: int | None = None,
    progress: Progress | None = None,
    source: TableSource | None = None,
) -> SweepTables:
    """Read the data and split it; ``seed`` defaults to the request's, else is 0."""
    # ``source``: the data, where they are read already.
    if source is None:
        source = open_table(request.data, request)
        if source.remark and progress is not None:
            progress.remark(f"Read the data as {source.remark}.")
        check_true_labels(source, [request.label], "The table")
    roles = dict.fromkeys(request.text, "to read as text") | {request.label: "label"}
    check_columns(request, roles, source)
    if request.labels is None and not request.numeric:
        source.read_as_labels([request.label])
    source = completed(source, [request.label], request.missing)
    whole = read_whole(source).drop_columns(list(request.drop))
    for place, kind in enumerate(whole.schema.types):
        if computed_type(value_type(kind)) != value_type(kind):
            whole = whole.set_column(place, whole.schema.names[place], decoded(whole.column(place)))
    whole = whole.unify_dictionaries().combine_chunks()
    if seed is None:
        # Not derived from the data: it is shown, and would reveal whether a guess of them is right.
        seed = request.seed or 0
    training, test = whole, request.test
    if request.test is None:
        n, share = len(whole), request.test_share
        held_out = round(share * n)
        refuse(
            not 1 <= held_out < n,
            f"A share of {share:g} of {n:,} rows leaves none to release or to test on.",
        )
        order = child_generator(seed, "sweep", "split").permutation(n)
        # Each in the order of the data.
        parts = (np.sort(order[held_out:]), np.sort(order[:held_out]))
        training, test = (whole.take(pa.array(rows)) for rows in parts)
    prior = None if request.prior is None else read_prior(request.prior, request)
    rows = MemoryTable(whole, source.location)
    return SweepTables(request, seed, rows, training, test, prior, source.schema.names)


@dataclass(frozen=True, eq=False)
class Simulation:
    """A simulated release: features and released labels with the declaration, n rows."""

    # ``seed`` is the point's root seed, for everything done with the table.

    point: Point
    mechanism: Mechanism
    table: pa.Table
    seed: int


def point_seed(root: int, point: Point) -> int:
    """Return the seed of a point: the same in every sweep with this root."""
    return seed_from(child_generator(root, "sweep", point.key))


def audit_seed(tables: SweepTables, point: Point) -> int:
    """Return the seed of a point's audit: the same halves of the rows for the whole grid.

    What is fitted on true labels is then fitted once. It tells nothing of the noise, which has
    other seeds; repeated draws differ in it.
    """
    return seed_from(child_generator(tables.seed, "sweep", "audits", str(point.repeat)))


def mechanism_at(tables: SweepTables, point: Point) -> Mechanism:
    """Return the mechanism of a point (InputError if labels, prior or ε do not fit it)."""
    request = tables.request.privatized(point, 0)
    return build(request, *tables.survey(request), tables.prior)[0]


def simulate(tables: SweepTables, point: Point) -> Simulation:
    """Apply a point's mechanism to the training rows, with seeded draws."""
    seed = point_seed(tables.seed, point)
    request = tables.request.privatized(point, seed)
    (stated, survey), label = tables.survey(request), tables.training.schema.field(request.label)
    mechanism = build(request, stated, survey, tables.prior)[0]
    generator = tables.fitted if request.generator is not None else None
    columns = PrivateColumns((PrivateColumn(request, label, survey, mechanism),))
    rows = row_release(columns, tables.features, generator)
    released, names = rows.schema(tables.features), tables.training.schema.names
    fields = [
        pa.field(n, rows.types[0] if n == label.name else released.field(n).type) for n in names
    ]
    schema, batches = released_schema(request, columns, fields, generator), []
    for batch in tables.training.to_batches():
        true = batch.column(label.name)
        codes = survey.domain.codes(true)
        new, (noisy,) = rows.draw(batch.select(tables.features.names), [true], [codes])
        arrays = [noisy if n == label.name else new.column(n) for n in schema.names]
        batches.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
    return Simulation(point, mechanism, pa.Table.from_batches(batches, schema), seed)


def synthetic_pool(tables: SweepTables, point: Point) -> pa.Table | str | None:
    """Return labelled synthetic rows; None where there are none."""
    # The user's table, which is then the distribution of the synthetic rows; else new rows of the
    # generator that are in no release, equally many of each label.
    request = tables.request.privatized(point, 0)
    if request.synthetic is not None or tables.fitted is None or request.generator is None:
        return request.synthetic
    _, survey = tables.survey(request)
    k = len(survey.domain.classes)
    most = max(min(tables.training.num_rows, _MOST_POOLED), _POOL_PER_CLASS * k)
    codes = np.repeat(np.arange(k, dtype=np.int32), most // k)
    rows = tables.fitted.generator.sample(codes, child_generator(tables.seed, "sweep", "pool"))
    kind = bare_type(tables.training.schema.field(request.label).type)
    values = output_array(survey.domain.classes, kind, survey.found).take(pa.array(codes))
    return rows.append_column(request.label, values)


def measure(
    tables: SweepTables, point: Point, policy: Policy | None, progress: Progress | None = None
) -> dict[str, Any]:
    """Simulate a release, audit it as ``ldpaudit run`` would, and learn from it."""
    # What the point's file holds: exact ε in nats and λ, the verdict with its sentence, the
    # learner's score on rows held out with the correction of its loss, and the whole audit.
    request, progress = tables.request, progress or NoProgress()
    progress.step("drawing the release")
    drawn = simulate(tables, point)
    mechanism, reading = drawn.mechanism, reading_of(tables, drawn)
    plan = plan_of(request, audit_seed(tables, point), threads=1)
    # A claim about a mechanism that classes and ε describe is tested on the release; for any other
    # a policy can only limit the declared ε.
    claim, beyond, applied = None if policy is None else policy.of_all().claim, False, policy
    if policy and claim and claim.epsilon is not None and mechanism.epsilon is not None:
        beyond = mechanism.epsilon > claim.epsilon * (1 + 1e-9)
        applied = policy.model_copy(update={"claim": None}) if beyond else policy
    terms = Terms(
        plan,
        applied or default_policy(),
        command="ldpaudit sweep …",
        only=request.only,
        skip=request.skip,
        outsiders=False,
    )
    run = terms.execution(progress=progress, shared=tables.shared)
    notes = tuple(Note(audit="reading", text=text) for text in reading.warnings)
    result = audit(reading.release, terms, run, notes=notes)
    progress.step("training the learner")
    learnt = score(tables, reading, confidence_of(policy), drawn.seed)
    by_noise = "lambda" in mechanism.traits.stated_by
    return {
        "mechanism": point.mechanism,
        "parameter": point.parameter,
        "value": point.value,
        "repeat": point.repeat,
        "epsilon": mechanism.epsilon,
        "lambda": mechanism.parametrisations().get("lambda") if by_noise else None,
        "verdict": "fail" if beyond else result.verdict,
        "decision": "do not publish" if beyond else result.decision,
        "sentence": _BEYOND if beyond else result.sentence,
        "test": learnt.estimate.model_dump(),
        "beside": [one.model_dump() for one in learnt.beside],
        "correction": learnt.correction.name or "none",
        "result": result.model_dump(),
    }


def confidence_of(policy: Policy | None) -> float:
    """Return the confidence that a policy asks for."""
    return (policy or default_policy()).audit.confidence


def reference(tables: SweepTables, point: Point, level: float) -> Estimate:
    """Return the score of a learner that is given the true labels."""
    # Any ``point`` will do: it decides how labels are coded.
    reading = truth_reading(tables, mechanism_at(tables, point))
    return score(tables, reading, level, tables.seed, true=True).estimate


def truth_reading(tables: SweepTables, mechanism: Mechanism) -> ReadReport:
    """Return the true labels as a release, coded as those of a mechanism."""
    claim, true = Declaration(mechanism.name, dict(mechanism.declaration()), "api"), tables.training
    released = declare(true.replace_schema_metadata(), claim, tables.request.label)
    return _read(tables, released, coding=_TrueCoding)


class _TrueCoding(DeclaredCoding):
    """The coding of true numbers, which need not be among the mechanism's outputs."""

    def view(self, rows: int) -> NumericView | None:
        """Return the view whose released labels are coded like true ones."""
        view = super().view(rows)
        return None if view is None else NumericView(view.classes, view.classes)


def reading_of(tables: SweepTables, drawn: Simulation) -> ReadReport:
    """Return a simulated release as an insider reads it."""
    if drawn.mechanism.traits.features == "partly synthetic":
        pool = synthetic_pool(tables, drawn.point)
        if pool is not None:
            return _read(tables, drawn.table, original=tables.training, synthetic=pool)
    return _read(tables, drawn.table)


def _read(
    tables: SweepTables, released: Any, coding: type[DeclaredCoding] = DeclaredCoding, **more: Any
) -> ReadReport:
    label, files = tables.request.label, tables.request
    truth = tables.training.select([label])
    reading = read_release(
        released, label=label, truth=truth, test=tables.test, files=files, coding=coding, **more
    )
    # Only the simulation is an experiment, not the release that it stands for.
    faults = tuple(f for f in reading.release.faults_of_making if f != "experiment")
    return replace(reading, release=replace(reading.release, faults_of_making=faults))


def score(
    tables: SweepTables, reading: ReadReport, level: float, seed: int, *, true: bool = False
) -> Utility:
    """Return how a model that is trained on a simulated release does on the test rows."""
    assert reading.test is not None
    kind: ModelKind = "network" if tables.request.learner == "network" else "logistic"
    learner = Learner(kind, tables.request.device, true)
    rng = child_generator(seed, "sweep", "learner")
    return utility(reading.release, reading.test, learner, level, rng)
