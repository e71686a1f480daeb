"""The other private columns of a release, as a learner of one of them uses them."""

# The released rows hold noisy values of the other columns, the test rows true ones. What a noisy
# value reveals of the true one is known from its channel.

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np

from ldpaudit.api import read_with
from ldpaudit.api.reading import opened
from ldpaudit.datasets.companions import LabelledRows
from ldpaudit.datasets.reading import ReadReport
from ldpaudit.doors import (
    AuditContext,
    FeatureTable,
    FloatArray,
    IntArray,
    Mechanism,
    NumericMechanism,
    Plan,
    Release,
    ReleaseOptions,
    aligned_channel,
    from_declaration,
    refuse,
)
from ldpaudit.extras.several.files import FileColumns
from ldpaudit.extras.several.reading import ColumnsReport, read_columns
from ldpaudit.mechanisms.capabilities import LabelByStratum
from ldpaudit.mechanisms.joint import JointMechanism
from ldpaudit.mechanisms.joint import from_declaration as joint_claim
from ldpaudit.mechanisms.label_range import nearest
from ldpaudit.models.encoding import DesignMatrix
from ldpaudit.options import named_columns
from ldpaudit.release import Float32Array, Label

# Points of a number's range at most.
_GRID: Final = 33
# Entries up to which the law of all columns together is used.
_CELLS: Final = 1 << 26
_UNCLAIMED: Final = "private columns without a declared channel are left out"
_TOO_MANY: Final = "one mechanism released them together, on too many vectors"
Way = Literal["posterior", "together", "expanded", "at their word", "left out"]
_WORDS: Final[Mapping[Way, str]] = {
    "posterior": "the other private columns by what they reveal about their true values",
    "together": "through the channel of all private columns together",
    "expanded": "each row with all values that the other private columns may have, weighted",
    "at their word": "the other private columns at their word",
    "left out": "without the other private columns",
}


@dataclass(frozen=True)
class OtherColumns:
    """Other private columns of n released rows, and of t test rows."""

    likelihoods: tuple[FloatArray, ...]
    """Float64 of shape (n, k): P(released value | true value) at the released values."""
    values: tuple[FloatArray, ...]
    """Float64 of shape (k, w): what stands for each true value among the features: indicators, or a
    number."""
    true: tuple[FloatArray, ...]
    """Float64 of shape (t, w): the same for the true values of the test rows."""
    own: FloatArray | None = None
    """Float64 of shape (n, k): P(released label | label) of the column to learn, where it is a
    class and known."""
    together: FloatArray | None = None
    """Float64 of shape (n, c, k): P(all released columns | label, the others' values), where the
    draws are not independent."""
    remark: str = ""
    """What is left out."""

    def posterior(self, features: FeatureTable) -> FloatArray:
        """Return what the released values reveal of the true ones, float64 of shape (n, Σw)."""
        from ldpaudit.extras.learn.noisy_columns import posteriors

        found = posteriors(_design(features), self.likelihoods)
        return np.hstack([q @ v for q, v in zip(found, self.values, strict=True)])

    def at_their_word(self) -> FloatArray:
        """Return the values that released ones stand for, float64 of shape (n, Σw)."""
        pairs = zip(self.likelihoods, self.values, strict=True)
        return np.hstack([values[found.argmax(axis=1)] for found, values in pairs])

    @cached_property
    def law(self) -> FloatArray | None:
        """P(all released columns | the others' values, label), (n, c, k); None if too large."""
        from ldpaudit.extras.learn.noisy_columns import COMBINATIONS, independent_law

        if self.together is not None or self.own is None:
            return self.together
        c = int(np.prod([len(one) for one in self.values]))
        if c > COMBINATIONS or c * self.own.size > _CELLS:
            return None
        return independent_law(self.likelihoods, self.own)

    def expanded(self, features: FeatureTable) -> FloatArray:
        """Return the weight of each combination of true values, float64 of shape (n, c)."""
        from ldpaudit.extras.learn.noisy_columns import combination_weights

        assert self.law is not None
        return combination_weights(_design(features), self.likelihoods, self.law, self.combinations)

    def test_block(self, rows: int) -> FloatArray:
        """Return the true values of the test rows, float64 of shape (t, Σw)."""
        return np.hstack([np.empty((rows, 0)), *self.true])

    def way(self, model: str, classes: bool) -> Way:
        """Return how a model of classes or numbers uses them."""
        if not self.likelihoods or model == "iwp":
            return "left out"
        if model == "logistic":
            return "posterior" if self.together is None else "together"
        if classes and self.law is not None:
            return "expanded"
        return "at their word" if self.together is None else "left out"

    def words(self, way: Way) -> str:
        """Return how they are used, for people."""
        said = _WORDS[way]
        return f"{said}; {self.remark}" if self.remark else said

    @property
    def combinations(self) -> FloatArray:
        """What stands for each combination of true values, row-major, float64 of shape (c, Σw)."""
        from ldpaudit.extras.learn.noisy_columns import combinations

        return combinations(self.values)


def other_columns(
    file: FileColumns,
    position: int,
    tests: Sequence[LabelledRows | None],
    *,
    true: bool = False,
) -> OtherColumns:
    """Return the other private columns for a learner of the one at ``position``.

    ``tests``: the test rows with the true values of each column; ``true``: whether to use the
    true values of the released rows, which must be known.
    """
    columns, declared = file.columns, file.declaration
    if declared is not None and declared.joint is not None and not true:
        joint = joint_claim(declared, [column.classes for column in columns])
        if not joint.independent:
            return _together(file, position, tests, joint)
    claims = [None if true else from_declaration(one.declaration, one.classes) for one in columns]
    others = [j for j in range(len(columns)) if j != position]
    parts = [_of_column(columns[j], tests[j], claims[j]) for j in others]
    known, own = [part for part in parts if part is not None], claims[position]
    found = _collected(known, "" if len(known) == len(parts) else _UNCLAIMED)
    if own is None or columns[position].numeric is not None:
        return found
    return replace(found, own=row_likelihood(columns[position], own))


def _collected(
    parts: Sequence[tuple[FloatArray, FloatArray, FloatArray]], remark: str = ""
) -> OtherColumns:
    likelihoods, values, true = zip(*parts, strict=True) if parts else ((), (), ())
    return OtherColumns(likelihoods, values, true, remark=remark)


def _design(features: FeatureTable) -> Float32Array:
    return DesignMatrix.fit(features).transform(features)


def _of_column(
    column: Release, test: LabelledRows | None, claim: Mechanism | None
) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Return likelihood, values and true values of one column; ``claim`` None: of its truth."""
    assert test is not None
    if column.numeric is None:
        assert test.labels is not None
        indicators = np.eye(len(column.classes))
        if claim is None:
            found: FloatArray | None = indicators[column.truth]
        else:
            found = row_likelihood(column, claim)
        return None if found is None else (found, indicators, indicators[test.labels])
    assert test.numbers is not None
    stated = from_declaration(column.declaration, column.classes).offers(NumericMechanism)
    if stated is None:
        return None
    (low, high), grid = stated.label_bounds, stated.label_values
    if grid is None or len(grid) > _GRID:
        grid = np.linspace(low, high, _GRID)
    if claim is None:
        assert column.numeric.truth is not None
        found = np.eye(len(grid))[nearest(grid, column.numeric.truth)]
    else:
        found = stated.likelihood(column.numeric.released, grid)
    centre, scale = (high + low) / 2, (high - low) / 4
    return found, ((grid - centre) / scale)[:, None], ((test.numbers - centre) / scale)[:, None]


def row_likelihood(column: Release, claim: Mechanism) -> FloatArray | None:
    """Return P(released | y) at each row's released label for every class, of shape (n, k)."""
    # None where the claim has no channel of the label alone.
    if (strata := claim.offers(LabelByStratum)) is not None:
        if column.strata is None or set(strata.classes) != set(column.classes):
            return None
        released = _places(column.outputs, strata.outputs)[column.released]
        likelihood = strata.row_likelihood(column.strata.codes, released)
        return np.asarray(likelihood[:, _places(column.classes, strata.classes)])
    channel = aligned_channel(AuditContext(column, claim, Plan(seed=0)))
    return None if channel is None else np.asarray(channel.matrix.T[column.released])


def _together(
    file: FileColumns,
    position: int,
    tests: Sequence[LabelledRows | None],
    joint: JointMechanism,
) -> OtherColumns:
    """Return the columns that one mechanism released together."""
    from ldpaudit.extras.learn.noisy_columns import COMBINATIONS

    columns, channel = file.columns, joint.channel()
    sizes = [len(column.classes) for column in columns]
    few = np.prod(sizes) / sizes[position] <= COMBINATIONS
    if channel is None or not few or len(file) * int(np.prod(sizes)) > _CELLS:
        return OtherColumns((), (), (), remark=_TOO_MANY)
    laws = [one.channel for one in joint.columns]
    known = ((() if law is None else law.classes) for law in laws)
    places = [_places(column.classes, names) for column, names in zip(columns, known, strict=True)]
    codes = [at[column.released] for at, column in zip(places, columns, strict=True)]
    seen = channel.matrix.T[np.ravel_multi_index(codes, sizes)].reshape(-1, *sizes)
    seen = np.moveaxis(seen, position + 1, -1)[..., places[position]]
    parts = []
    for j, (test, law) in enumerate(zip(tests, laws, strict=True)):
        if j != position:
            assert law is not None
            assert test is not None
            assert test.labels is not None
            values = np.eye(sizes[j])
            parts.append((law.matrix.T[codes[j]], values, values[places[j][test.labels]]))
    return replace(_collected(parts), together=seen.reshape(len(file), -1, sizes[position]))


def _places(names: tuple[Label, ...], among: tuple[Label, ...]) -> IntArray:
    """Return the position of each name."""
    missing = [name for name in names if name not in among]
    refuse(
        missing,
        f"The claim's labels must be those of the release; {len(missing)} of a column's "
        f"{len(names)} are not.",
    )
    return np.array([among.index(name) for name in names], dtype=np.int32)


@dataclass(frozen=True)
class ColumnToLearn:
    """A private column, and what a learner of it may use."""

    release: Release
    """Without the other private columns among its features."""
    test: LabelledRows
    """Test rows with the same features."""
    beside: OtherColumns | None
    """The other private columns; None where there are none."""
    reading: ReadReport | ColumnsReport
    """What was read."""
    position: int = 0
    """Which column of several it is."""

    @cached_property
    def beside_in_truth(self) -> OtherColumns | None:
        """The other columns' true values in the place of released ones; None where unknown."""
        reading = self.reading
        if isinstance(reading, ReadReport) or any(
            one.truth is None for one in reading.file.columns
        ):
            return None
        return other_columns(reading.file, self.position, reading.tests, true=True)


def column_to_learn(release: Any, options: ReleaseOptions, test: Any) -> ColumnToLearn:
    """Read the column that is named first, or the only one, with all others that are declared."""
    named = [one.label for one in named_columns(options)]
    source, declaration = opened(release, options)
    declared = () if declaration is None else declaration.names
    if len(named) == 1 and named[0] in declared:
        options = replace(options, label=())  # The other declared columns are read, too.
    if len(named) < 2 and (len(declared) < 2 or not {*named} <= {*declared}):
        alone = read_with(source, options, test=test)
        assert alone.test is not None
        return ColumnToLearn(alone.release, alone.test, None, alone)
    refuse(
        not named,
        f"The release declares {len(declared)} private columns; name the one to learn: --label.",
    )
    reading = read_columns(source, options, test=test)
    assert isinstance(reading, ColumnsReport)
    file, tests = reading.file, reading.tests
    at = [one.label for one in file.columns].index(named[0])
    own_test = tests[at]
    assert own_test is not None
    public = replace(own_test, features=own_test.features.without(file.others[at]))
    return ColumnToLearn(file.alone(at), public, other_columns(file, at, tests), reading, at)
