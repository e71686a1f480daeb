"""Features on their way into a release: unchanged, noisy, withheld, or of synthetic rows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.formats import open_table
from ldpaudit.datasets.formats.tables import (
    LISTS,
    NUMBERS,
    TEXTS,
    TableSource,
    computed_type,
    decoded,
    is_any,
    read_whole,
    value_type,
)
from ldpaudit.datasets.names import ColumnError, called, of_column, shown_type
from ldpaudit.doors import (
    FloatArray,
    IndexArray,
    InputError,
    IntArray,
    NoisyFeatures,
    Progress,
    refuse,
)
from ldpaudit.extras.kinds.files.written import check_holds, is_text
from ldpaudit.extras.receipt.cells import cells_as_numbers, distinct_texts, floats
from ldpaudit.extras.release.privatize.labels import (
    ClassDomain,
    Survey,
    bare_labels,
    check_type,
    outputs_of,
)
from ldpaudit.extras.release.privatize.request import ColumnRequest
from ldpaudit.mechanisms.exact_sampling import bit_source, uniform_below
from ldpaudit.mechanisms.keyed import Stream
from ldpaudit.models.trees import fit_boosting
from ldpaudit.release import Label

if TYPE_CHECKING:
    from ldpaudit.doors import Generator

_OF_FEATURES: Final = " of the features"
_SAMPLE_ROWS: Final = 8192
_MOST_CATEGORIES: Final = 250
_TRIED: Final = 1000
TRAINED_ON_PRIVATE: Final = (
    "The generator was trained on the private rows themselves, so its synthetic rows may give some "
    "of them away; the guarantee of the mechanism assumes public rows (--generator-data)."
)


@dataclass(frozen=True, eq=False)
class FeatureRelease:
    """Turns true features into released ones of as many rows; by itself into the same."""

    schema: Callable[[pa.Schema], pa.Schema] = lambda schema: schema
    draw: Callable[[pa.RecordBatch, int], pa.RecordBatch] = lambda batch, _: batch


@dataclass(frozen=True, eq=False)
class RowSource:
    """Synthetic rows, ``take``n by position."""

    labels: IntArray
    """The code of each row's label, int32 of shape (s,); every label occurs."""
    take: Callable[[IndexArray, int], pa.Table]
    """Positions and the block of rows that they are for. A generator has one position for each
    label and draws anew each time, so that no row comes twice."""


def labelled_rows(
    path: str, request: ColumnRequest, features: pa.Schema, classes: tuple[Label, ...], role: str
) -> tuple[pa.Table, IntArray]:
    """Read a table that goes along with the data: its features, decoded, and its label codes.

    Other columns that it may have are those of the data that are not released. ``role`` is for
    messages. InputError if its columns, types or labels are not those of the data; rows are
    counted.
    """
    table, label = read_whole(open_table(path, request)), request.label
    names = [*features.names, label]
    for name in names:
        if name not in table.schema.names:
            what = "the label's column" if name == label else called(name, names)
            of = "" if name == label else " of the data's features"
            raise InputError(f"The {role} table must have {what}{of}; it has none of that name.")
    surplus = sorted(set(table.schema.names) - set(names) - set(request.drop))
    if surplus:
        raise InputError(
            f"The {role} table must have the data's columns only; it has {len(surplus)} more, "
            f"such as {called(surplus[0], table.schema.names)}."
        )
    refuse(not len(table), f"The {role} table has no rows.")
    try:
        check_type(table.schema.field(label).type, numeric=False)
    except InputError as error:
        raise InputError(f"The {role} table: {error}") from None
    columns = [_as_type(table, field, role) for field in plain_schema(features)]
    plain = bare_labels(pa.concat_arrays(table.column(label).unify_dictionaries().chunks))
    codes = ClassDomain(classes, pc.unique(plain.drop_null())).codes(plain)
    refuse(
        (foreign := int((codes < 0).sum())),
        f"Every label of the {role} table must be one of the {len(classes)} labels; {foreign:,} "
        f"of {len(codes):,} rows hold another value or none.",
    )
    refuse(
        (lacking := len(classes) - len(np.unique(codes))),
        f"The {role} table must have rows of every label; {lacking} have none.",
    )
    return pa.table(dict(zip(features.names, columns, strict=True))), codes


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema with dictionaries decoded."""
    return pa.schema([pa.field(f.name, value_type(f.type)) for f in schema])


def _as_type(table: pa.Table, field: pa.Field, role: str) -> pa.ChunkedArray:
    """Return a column in the data's type; only numbers and texts of another width are converted."""
    column, kind = decoded(table.column(field.name)), field.type
    which = f"{called(field.name, table.schema.names).capitalize()} of the {role} table"
    if column.type == kind:
        return column
    alike = [
        all(is_any(one, *kinds) for one in (column.type, kind))
        for kinds in (("integer", "floating"), TEXTS)
    ]
    refuse(
        not any(alike) and not pa.types.is_null(column.type),
        f"{which} must be of the data's type {shown_type(kind)}. Got {shown_type(column.type)} "
        "instead.",
    )
    try:
        return column.cast(kind)
    except pa.ArrowException:
        raise InputError(
            f"{which} cannot be turned into the data's type {shown_type(kind)} without a loss."
        ) from None


@dataclass(frozen=True, eq=False)
class FittedGenerator:
    """A fitted generator and its warnings, one sentence each."""

    generator: "Generator"
    warnings: tuple[str, ...]

    def sample(self, codes: IntArray, rng: np.random.Generator) -> pa.Table:
        """Return a new row for each code."""
        return self.generator.sample(codes, rng)

    def provenance(self) -> dict[str, Any]:
        """Return what the declaration says: name, version, seed, size, trained_on; no row."""
        description = dict(self.generator.describe())
        return {"size": description.pop("rows")} | description


def fit_generator(
    request: ColumnRequest,
    source: TableSource,
    survey: Survey,
    features: pa.Schema,
    progress: Progress,
) -> FittedGenerator | None:
    """Fit the requested generator on public rows, else on the data; None where none is requested.

    InputError, InsufficientDataError, GeneratorDivergedError if the table does not fit the data, a
    class has too few rows, or training fails.
    """
    if request.generator is None:
        return None
    from ldpaudit.extras.release.synthesis.factory import generator

    classes, public = survey.domain.classes, request.generator_data
    if public is not None:
        table, codes = labelled_rows(public, request, features, classes, "generator's")
    else:
        table = pa.Table.from_batches(source.batches([*features.names, request.label]))
        labels = table.column(request.label).chunks
        codes = np.concatenate([survey.domain.codes(chunk) for chunk in labels])
        table = table.select(features.names).cast(plain_schema(features))
    unfitted = generator(request.generator, trained_on="private" if public is None else "public")
    progress.step(f"fitting the generator {request.generator}")
    fitted = unfitted.fit(
        table,
        codes,
        len(classes),
        rng=request.draws("generator").seeded(),
        progress=progress,
        device=request.device,
    )
    # What it returns is looked at before a label is drawn, and goes nowhere.
    fitted.sample(np.resize(codes, _TRIED), np.random.default_rng(0))
    warning = (TRAINED_ON_PRIVATE,) if public is None else ()
    return FittedGenerator(fitted, (*warning, *fitted.warnings))


def synthetic_rows(
    request: ColumnRequest,
    features: pa.Schema,
    classes: tuple[Label, ...],
    fitted: FittedGenerator | None,
) -> RowSource | None:
    """Return the source of synthetic rows; None where the options name none."""
    if fitted is not None:
        labels, draws = np.arange(len(classes), dtype=np.int32), request.draws("synthetic")
        return RowSource(labels, lambda rows, n: fitted.sample(labels[rows], draws.seeded(n)))
    if request.synthetic is None:
        return None
    table, codes = labelled_rows(request.synthetic, request, features, classes, "synthetic")
    return RowSource(codes, lambda rows, _: table.take(pa.array(rows)))


def withheld(synthetic: RowSource | None, draws: Stream) -> FeatureRelease:
    """Return features that are missing, or those of rows drawn independently of the data."""
    # Source: Busa-Fekete et al. (2023), Mechanism 3.

    def draw(batch: pa.RecordBatch, block: int) -> pa.RecordBatch:
        if synthetic is None:
            kinds = unordered(batch.schema).types
            nothing = [pa.nulls(len(batch), kind) for kind in kinds]
            return pa.RecordBatch.from_arrays(nothing, names=batch.schema.names)
        drawn = uniform_below(len(synthetic.labels), len(batch), bit_source(draws.at(block)))
        return _as_batch(synthetic.take(drawn.astype(np.int64), block), batch.schema)

    return FeatureRelease(unordered, draw)


def replaced(
    batch: pa.RecordBatch, synthetic: RowSource, rows: IndexArray, block: int
) -> pa.RecordBatch:
    """Return the block with the synthetic row that ``rows`` names in place of each; −1: the true.

    Its dictionaries hold released values only.
    """
    new = np.flatnonzero(rows >= 0)
    schema = plain_schema(batch.schema)
    true = pa.Table.from_batches([batch]).cast(schema)
    both = pa.concat_tables([true, synthetic.take(rows[new], block).cast(schema)])
    order = np.arange(len(batch))
    order[new] = len(batch) + np.arange(len(new))
    return _as_batch(both.take(pa.array(order)), batch.schema)


def _as_batch(table: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    """Return a table as one batch of a schema, with new dictionaries of the values it holds."""
    columns = []
    for name, kind in zip(schema.names, schema.types, strict=True):
        chunks = table.column(name).chunks
        column = pa.concat_arrays([pa.array([], table.schema.field(name).type), *chunks])
        if pa.types.is_dictionary(kind):
            encoded = column.dictionary_encode()
            indices = encoded.indices.cast(kind.index_type)
            column = pa.DictionaryArray.from_arrays(indices, encoded.dictionary)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names=schema.names)


def unordered(schema: pa.Schema) -> pa.Schema:
    """Return the schema with unordered dictionaries: the order of a new one means nothing."""
    kinds = [
        pa.dictionary(kind.index_type, kind.value_type) if pa.types.is_dictionary(kind) else kind
        for kind in schema.types
    ]
    return pa.schema(list(map(pa.field, schema.names, kinds)))


def without_unused(column: pa.Array) -> pa.Array:
    """Return a dictionary column whose dictionary holds only values that some row has."""
    # A category that no row has any more, such as one of rows that were filtered out, would stay in
    # the file's bytes.
    kind = column.type
    if pa.types.is_nested(kind) and _holds_dictionary(kind):
        return pa.array(column.to_pylist(), kind)  # Slow, and rare.
    if not pa.types.is_dictionary(kind):
        return column
    used = np.zeros(len(column.dictionary), dtype=bool)
    used[column.indices.drop_null().to_numpy(zero_copy_only=False)] = True
    if used.all():
        return column
    places = pa.array(np.cumsum(used) - 1).take(column.indices).cast(kind.index_type)
    values = column.dictionary.cast(computed_type(kind.value_type))
    dictionary = values.filter(pa.array(used)).cast(kind.value_type)
    return pa.DictionaryArray.from_arrays(places, dictionary, ordered=kind.ordered)


def _holds_dictionary(kind: pa.DataType) -> bool:
    fields = (kind.field(i) for i in range(kind.num_fields))
    return pa.types.is_dictionary(kind) or any(_holds_dictionary(field.type) for field in fields)


def with_gaussian_noise(
    mechanism: NoisyFeatures, project: bool, rng: np.random.Generator | None
) -> FeatureRelease:
    """Return numbers with noise; a list of numbers counts as that many features.

    ``project``: rows longer than the radius are shortened, else refused. ``rng``: a generator for
    an experiment, None for OpenDP.
    """

    def schema(features: pa.Schema) -> pa.Schema:
        fields = []
        for field in features:
            with of_column(field.name, features.names, _OF_FEATURES):
                fields.append(pa.field(field.name, _noisy_type(field)))
        return pa.schema(fields)

    def noisy(true: FloatArray) -> FloatArray:
        return mechanism.release_features(true, rng, simulation=rng is not None)

    def draw(batch: pa.RecordBatch, _: int) -> pa.RecordBatch:
        names, blocks = batch.schema.names, [np.empty((len(batch), 0))]
        for name, cells in zip(names, batch.columns, strict=True):
            with of_column(name, names, _OF_FEATURES):
                blocks.append(_matrix(cells))
        true = np.column_stack(blocks)
        ends = np.cumsum([block.shape[1] for block in blocks])
        parts = np.split(noisy(mechanism.project(true) if project else true), ends[:-1], axis=1)
        kinds = schema(batch.schema).types
        columns = [_column(part, kind) for part, kind in zip(parts[1:], kinds, strict=True)]
        return pa.RecordBatch.from_arrays(columns, names=names)

    noisy(np.zeros((1, 1)))  # Before anything is read: exact noise can be drawn.
    return FeatureRelease(schema, draw)


def _noisy_type(field: pa.Field) -> pa.DataType:
    lists = is_any(field.type, *LISTS)
    if not is_any(field.type.value_type if lists else field.type, *NUMBERS, "boolean"):
        raise ColumnError(
            f"is of type {shown_type(field.type)}, and Gaussian noise needs numbers. Leave it out "
            "with --drop, or turn it into numbers."
        )
    return pa.list_(pa.float64()) if lists else pa.float64()


def _matrix(column: pa.Array) -> FloatArray:
    """Return a feature as float64 of shape (n, width), all of it finite."""
    width, cells = 1, column
    if is_any(column.type, *LISTS):
        lengths = pc.unique(pc.list_value_length(column))
        if len(lengths) != 1 or lengths.null_count:
            raise ColumnError("must hold lists of one length.")
        width, cells = lengths[0].as_py(), pc.list_flatten(column)
    values = floats(cells)
    if bad := int((~np.isfinite(values)).sum()):
        raise ColumnError(
            f"has {bad} values that are missing or infinite; Gaussian noise needs complete, finite "
            "features."
        )
    return values.reshape(len(column), width)


def _column(part: FloatArray, kind: pa.DataType) -> pa.Array:
    cells = pa.array(np.ascontiguousarray(part).reshape(-1))
    if not is_any(kind, *LISTS):
        return cells
    offsets = np.arange(len(part) + 1, dtype=np.int32) * part.shape[1]
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), cells)


@dataclass(frozen=True, eq=False)
class SyntheticSample:
    """Rows of a generator for each label in turn, so that all labels have equally many.

    They are new draws: no row of the sample is in the release or shows which rows are synthetic.
    ``schema``: the release's without its declaration; decoded for text.
    """

    rows: int
    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


def synthetic_sample(
    request: ColumnRequest, survey: Survey, released: pa.Schema, fitted: FittedGenerator | None
) -> SyntheticSample | None:
    """Return the requested sample; None where none is."""
    # Before a generator is fitted it only checks what is known then. InputError, OutputError if it
    # has fewer rows than labels, or its format cannot hold a column.
    target, classes = request.synthetic_out, survey.domain.classes
    if target is None:
        return None
    check_holds(target, released)
    schema = plain_schema(released) if is_text(target) else unordered(released)
    rows = sample_rows(request, survey)

    def batches() -> Iterator[pa.RecordBatch]:
        assert fitted is not None
        label, draws = schema.field(request.label), request.draws("synthetic sample")
        _, write = outputs_of(classes, label.type, survey.spelt)
        features = schema.remove(schema.get_field_index(label.name))
        for start in range(0, rows, _SAMPLE_ROWS):
            places = np.arange(start, min(start + _SAMPLE_ROWS, rows))
            codes = (places % len(classes)).astype(np.int32)
            new = _as_batch(fitted.sample(codes, draws.seeded(start)), features)
            own = write(codes).cast(label.type)
            columns = [own if name == label.name else new.column(name) for name in schema.names]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return SyntheticSample(rows, schema, batches())


def sample_rows(request: ColumnRequest, survey: Survey) -> int:
    """Return how many rows the sample has: as requested, else as many as the release."""
    asked, classes = request.synthetic_rows, survey.domain.classes
    refuse(
        asked is not None and asked < len(classes),
        f"--synthetic-rows must be at least {len(classes)}, one row for each label. Got {asked}.",
    )
    return max(survey.rows, len(classes)) if asked is None else asked


@dataclass(eq=False)
class PublicModel:
    """Gradient boosted trees of public features, used like a classifier of scikit-learn."""

    classes_: Any
    known: dict[str, pa.Array | None]
    """The distinct texts of each column, sorted; None for numbers."""
    classifier: Any

    def predict_proba(self, features: pa.RecordBatch, /) -> FloatArray:
        """Return P̂(y | x) of n rows, float64 of shape (n, k)."""
        values = self.classifier.predict_proba(cells_as_numbers(features, self.known))
        return np.asarray(values, dtype=np.float64)

    @property
    def schema(self) -> pa.Schema:
        """A column for each class."""
        return pa.schema([(str(label), pa.float64()) for label in self.classes_])

    def table(self, features: pa.RecordBatch) -> pa.RecordBatch:
        """Return P̂(y | x) of n rows, as ``run --public-posterior`` reads it."""
        columns = map(pa.array, self.predict_proba(features).T)
        return pa.RecordBatch.from_arrays(list(columns), schema=self.schema)


def fit_public_model(
    path: str, request: ColumnRequest, features: pa.Schema, classes: tuple[Label, ...]
) -> PublicModel:
    """Fit gradient boosted trees on a public labelled table (InputError as labelled_rows)."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    table, codes = labelled_rows(path, request, features, classes, "public")
    known = {name: distinct_texts(table.column(name)) for name in features.names}
    few = [
        place
        for place, values in enumerate(known.values())
        if values is not None and len(values) <= _MOST_CATEGORIES
    ]
    # The model is public: its seed needs no secrecy, and one file gives one model.
    classifier = HistGradientBoostingClassifier(random_state=0, categorical_features=few or None)
    fit_boosting(classifier, cells_as_numbers(table, known), codes)
    named = np.empty(len(classes), dtype=object)
    named[:] = classes
    return PublicModel(named[classifier.classes_], known, classifier)
