"""The other private columns of a release, as a learner of one of them uses them.

The released rows hold noisy values of the other columns, the test rows true ones. What a noisy
value tells of the true one is known from its channel.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.audits.claimed_channel import aligned_channel
from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.datasets.beside.labelled_rows import LabelledRows
from ldpaudit.errors import InputError
from ldpaudit.mechanisms import Mechanism, from_declaration
from ldpaudit.mechanisms.capabilities import LabelByStratum
from ldpaudit.mechanisms.interface import NumericMechanism
from ldpaudit.mechanisms.joint import JointMechanism
from ldpaudit.mechanisms.joint import from_declaration as joint_claim
from ldpaudit.mechanisms.label_range import nearest
from ldpaudit.modelling.encoding import DesignMatrix
from ldpaudit.release import (
    FeatureTable,
    FloatArray,
    IntArray,
    Label,
    Release,
    ReleasedVector,
)

_GRID: Final = 33
"""Points of a number's range at most."""
_COMBINATIONS: Final = 64
_CELLS: Final = 1 << 26
"""Values and entries up to which the channel of all columns together is used."""
_POSTERIOR: Final = "the other private columns as what they tell of their true values"
_TOGETHER: Final = "through the channel of all private columns together"
_WITHOUT: Final = "without the other private columns, whose noise depends on the label's"
_LEFT_OUT: Final = "without the other private columns"
_UNCLAIMED: Final = "without the private columns of which no channel is declared"


@dataclass(frozen=True)
class OtherColumns:
    """Other private columns of n released rows, and of t test rows.

    Attributes
    ----------
    likelihoods : tuple of float64 arrays of shape (n, k)
        P(released value | true value) at the released values.
    values : tuple of float64 arrays of shape (k, w)
        What stands for each true value among the features: indicators, or a number.
    true : tuple of float64 arrays of shape (t, w)
        The same for the true values of the test rows.
    together : float64 array of shape (n, c, k) or None
        P(all released columns | label, the others' values), where the draws are not independent.
    words : str
        How they are used where the model can.
    """

    likelihoods: tuple[FloatArray, ...]
    values: tuple[FloatArray, ...]
    true: tuple[FloatArray, ...]
    together: FloatArray | None
    words: str

    def released_block(self, features: FeatureTable) -> FloatArray:
        """Return what the released values tell of the true ones, float64 of shape (n, Σw)."""
        from ldpaudit.learners.noisy_columns import posteriors

        design = DesignMatrix.fit(features).transform(features)
        found = posteriors(design, self.likelihoods)
        parts = [q @ v for q, v in zip(found, self.values, strict=True)]
        return np.hstack([np.empty((len(features), 0)), *parts])

    def test_block(self, rows: int) -> FloatArray:
        """Return the true values of the test rows, float64 of shape (t, Σw)."""
        return np.hstack([np.empty((rows, 0)), *self.true])

    def words_for(self, model: str) -> str:
        """Return how a model uses them: only a logistic one learns from all columns together."""
        if model == "iwp":
            return _LEFT_OUT
        return _WITHOUT if self.together is not None and model != "logistic" else self.words

    @property
    def combinations(self) -> FloatArray:
        """What stands for each combination of true values, row-major, float64 of shape (c, Σw)."""
        sizes = [len(one) for one in self.values]
        codes = np.unravel_index(np.arange(int(np.prod(sizes))), sizes)
        return np.hstack([v[code] for v, code in zip(self.values, codes, strict=True)])


def other_columns(
    vector: ReleasedVector,
    position: int,
    tests: Sequence[LabelledRows | None],
    *,
    true: bool = False,
) -> OtherColumns:
    """Return the other private columns for a learner of the one at ``position``.

    Parameters
    ----------
    vector : ReleasedVector
    position : int
    tests : sequence of LabelledRows, length d
        The test rows with the true values of each column.
    true : bool
        Whether to use the true values of the released rows, which must be known.

    Raises
    ------
    InputError
        If a claim cannot be built, or is not about the release's labels.
    """
    joint = _joint(vector)
    others = [j for j in range(len(vector.columns)) if j != position]
    if true:
        parts = [_told(vector.columns[j], tests[j], None) for j in others]
    elif joint is not None and not joint.independent:
        return _together(vector, position, tests, joint)
    else:
        claims = {j: _claim(vector.columns[j]) for j in others}
        parts = [_told(vector.columns[j], tests[j], claim) for j, claim in claims.items()]
    known = [part for part in parts if part is not None]
    words = _POSTERIOR if len(known) == len(parts) else f"{_POSTERIOR}; {_UNCLAIMED}"
    return _collected(known, None, words if known else _UNCLAIMED)


def _collected(
    parts: Sequence[tuple[FloatArray, FloatArray, FloatArray]],
    together: FloatArray | None,
    words: str,
) -> OtherColumns:
    likelihoods, values, true = zip(*parts, strict=True) if parts else ((), (), ())
    return OtherColumns(likelihoods, values, true, together, words)


def _claim(column: Release) -> Mechanism:
    return from_declaration(column.declaration, column.classes)


def _joint(vector: ReleasedVector) -> JointMechanism | None:
    declared = vector.declaration
    if declared is None or declared.joint is None:
        return None
    return joint_claim(declared, [column.classes for column in vector.columns])


def _told(
    column: Release, test: LabelledRows | None, claim: Mechanism | None
) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Return likelihood, values and true values of one column; ``claim`` None: of its truth."""
    assert test is not None
    if column.numeric is not None:
        return _told_number(column, test, claim)
    assert test.labels is not None
    indicators = np.eye(len(column.classes))
    if claim is None:
        assert column.truth is not None
        found: FloatArray | None = indicators[column.truth]
    else:
        found = row_likelihood(column, claim)
    return None if found is None else (found, indicators, indicators[test.labels])


def row_likelihood(column: Release, claim: Mechanism) -> FloatArray | None:
    """Return P(released | y) at each row's released label for every class, of shape (n, k).

    None where the claim has no channel of the label alone.
    """
    if isinstance(claim, LabelByStratum):
        if column.strata is None or set(claim.classes) != set(column.classes):
            return None
        released = _places(column.outputs, claim.outputs)[column.released]
        likelihood = claim.row_likelihood(column.strata.codes, released)
        return np.asarray(likelihood[:, _places(column.classes, claim.classes)])
    channel = aligned_channel(AuditContext(column, claim, Plan(seed=0)))
    return None if channel is None else np.asarray(channel.matrix.T[column.released])


def _told_number(
    column: Release, test: LabelledRows, claim: Mechanism | None
) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    assert column.numeric is not None
    assert test.numbers is not None
    stated = _claim(column)
    if not isinstance(stated, NumericMechanism):
        return None
    low, high = stated.label_bounds
    grid = stated.label_values
    if grid is None or len(grid) > _GRID:
        grid = np.linspace(low, high, _GRID)
    if claim is None:
        assert column.numeric.truth is not None
        found = np.eye(len(grid))[nearest(grid, column.numeric.truth)]
    else:
        found = stated.likelihood(column.numeric.released, grid)
    centre, scale = (high + low) / 2, (high - low) / 4
    return found, ((grid - centre) / scale)[:, None], ((test.numbers - centre) / scale)[:, None]


def _together(
    vector: ReleasedVector,
    position: int,
    tests: Sequence[LabelledRows | None],
    joint: JointMechanism,
) -> OtherColumns:
    """Return the columns that one mechanism released together."""
    columns, channel = vector.columns, joint.channel()
    sizes = [len(column.classes) for column in columns]
    cells = len(vector) * int(np.prod(sizes))
    few = np.prod(sizes) / sizes[position] <= _COMBINATIONS and cells <= _CELLS
    if channel is None or not few:
        return OtherColumns((), (), (), None, _WITHOUT)
    laws = [one.channel for one in joint.columns]
    places = [
        _places(column.classes, () if law is None else law.classes)
        for column, law in zip(columns, laws, strict=True)
    ]
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
    return _collected(parts, seen.reshape(len(vector), -1, sizes[position]), _TOGETHER)


def _places(names: tuple[Label, ...], among: tuple[Label, ...]) -> IntArray:
    """Return the position of each name."""
    missing = [name for name in names if name not in among]
    if missing:
        raise InputError(
            f"The claim's labels must be those of the release; {len(missing)} of a column's "
            f"{len(names)} are not."
        )
    return np.array([among.index(name) for name in names], dtype=np.int32)
