"""A release: features, released labels and, for an insider, the true labels."""

from dataclasses import dataclass, replace
from typing import Any, Final, NewType

import numpy as np
import numpy.typing as npt

from ldpaudit.arrays import FloatArray, IndexArray, IntArray, Label
from ldpaudit.errors import InputError
from ldpaudit.numeric_labels import NumericLabels
from ldpaudit.release.declaration import Declaration, DeclaredColumns, FaultOfMaking
from ldpaudit.release.features import ColumnSurvey, FeatureTable, Sketch, joined

# Labels that are counted at once.
_LABELS: Final = 1 << 20

TrueLabels = NewType("TrueLabels", IntArray)
"""Codes of the true labels, int32 of shape (n,), positions in :attr:`Release.classes`."""
ReleasedLabels = NewType("ReleasedLabels", IntArray)
"""Codes of the released labels, int32 of shape (n,), positions in :attr:`Release.outputs`."""


def label_table(labels: npt.NDArray[Any], released: npt.NDArray[Any], k: int, m: int) -> IndexArray:
    """Return the number of rows of each label and released label, int64 of shape (k, m)."""
    # Both are codes, integers of shape (n,).
    counts: IndexArray = np.zeros(k * m, dtype=np.int64)
    for start in range(0, len(labels), _LABELS):
        rows = slice(start, start + _LABELS)
        counts += np.bincount(labels[rows].astype(np.int64) * m + released[rows], minlength=k * m)
    return counts.reshape(k, m)


@dataclass(frozen=True)
class SyntheticTable:
    """Synthetic rows with the label that each represents.

    Attributes
    ----------
    features : FeatureTable
        s rows, coded like the release's features.
    labels : int32 array of shape (s,)
        Codes into the release's classes.
    """

    features: FeatureTable
    labels: IntArray

    def __post_init__(self) -> None:
        if len(self.features) != len(self.labels):
            raise InputError("The synthetic table must have a label for every row.")


@dataclass(frozen=True)
class Slices:
    """The rows of a release grouped by one column."""

    column: str
    """The column's name; shown only where names may be."""
    names: tuple[str, ...]
    """The values of the s slices, those of most rows first; cells of a feature, never shown."""
    codes: IntArray
    """The slice of each row, int32 of shape (n,)."""
    rest: bool = False
    """Whether the last one is all other values together."""

    def __len__(self) -> int:
        """Return the number of slices s."""
        return len(self.names)


@dataclass(frozen=True)
class Strata:
    """Which rows have which channel, where the mechanism has one for each value of a column."""

    codes: IntArray
    """The stratum of each row, int32 of shape (n,), 0 … count − 1 in the declaration's order.

    The column that holds them is public, and a feature.
    """
    count: int
    """The number of declared strata; some may have no row."""


@dataclass(frozen=True)
class Bags:
    """Rows that were released together.

    Attributes
    ----------
    members : int64 array of shape (n,)
        The bag of each row, 0 … b − 1; every bag has at least two.
    released : float64 array of shape (b,)
        The released sum of each bag: how many of its rows have the second class, plus noise.
    """

    members: IndexArray
    released: FloatArray


@dataclass(frozen=True)
class Release:
    """A released dataset, and what its owner knows about it.

    Attributes
    ----------
    features : FeatureTable
        The released features, n rows (0 columns allowed: label-only audits still run).
    released : ReleasedLabels
        Codes into ``outputs``.
    outputs : tuple
        The values that a released label can take, m of them.
    classes : tuple
        The values that a true label can take, k of them; for randomized response the same as
        ``outputs``.
    truth : TrueLabels or None
        Codes into ``classes``; None in the outsider's audit.
    declaration : Declaration or None
        The claim, None where nothing was declared.
    name : str
        The file's base name, for the report.
    label : str
        The released label's column name.
    sha256 : str or None
        The released file's digest; None for an in-memory table.
    numeric : NumericLabels or None
        The labels as numbers, where the mechanism is one on numbers: the codes above are then
        those of its view, in which many labels are grouped and many outputs put into bins.
    original : FeatureTable or None
        The original features, n rows in the release's order and coded like ``features``, where the
        mechanism replaces some.
    synthetic : SyntheticTable or None
        The table that replaced features were drawn from, where it is known.
    held_out : FeatureTable or None
        Rows of the same population, coded like ``features``, that no generator has seen.
    public_posterior : float64 array of shape (n, k) or None
        P̂(y | x) of the public model that a model-based mechanism drew labels from.
    reports : array of shape (n, d) or None
        What was released of each label, where it is a frequency oracle's report and no label:
        ``released`` is then a most likely label of each report, ties broken at random.
    reports_as_read : array of shape (n, d) or None
        The reports' entries as they stand in the file, label codes or numbers, where the protocol
        reads less of them: the order of a list, the upper bits of a seed.
    public : SyntheticTable or None
        Public rows with labels, coded alike, from which P(y | x) can be learnt without the release.
    canaries : float64 array of shape (n, k) or None
        The probabilities with which the auditor drew a row's true label; NaN for other rows.
    bags : Bags or None
        Which rows were released as one sum, where that is what was released.
    groups : int64 array of shape (n,) or None
        Codes of rows that belong together, such as a household or a person; no feature.
    columns : tuple of ColumnSurvey
        What the reader saw of each feature column, then of those that were left out; empty for a
        release that was not read.
    holds_truth : bool
        Whether the table that was read holds the true labels, too.
    keys : tuple of float64 arrays of shape (n,)
        The ranks of the values of columns that are no features, such as ids and groups.
    left_out : int
        Its columns that are no features because the user left them out.
    unread : int
        Other tables (sheets) in its file.
    besides : int
        Bytes of the file's metadata that describe no column and declare nothing.
    otherwise_written : int
        Rows whose released label is written otherwise than in most rows with that label.
    whole_reports : int
        Rows whose report is of whole numbers alone, where noise leaves hardly any so.
    sketch : Sketch or None
        How the features were projected, where they are sparse.
    strata : Strata or None
        Which rows have which channel, where that depends on a public column.
    places : int64 array of shape (n,) or None
        The row of the file that each row was, for what looks at the order of rows.
    declared : DeclaredColumns or None
        All private columns that the file declares, where some of them are not audited.
    before : frozenset of int
        The places among the arrays of ``features`` (numeric ones first; then those of ``keys``) of
        columns that are known to be from before the noise.
    truth_released : bool
        Whether the true labels were read from a release: this one, or one that declares its noise.
    prior_epsilon : float
        What the private histograms by which the file's mechanisms were designed cost together,
        in nats, as it declares: ε besides that of the labels.
    faults_of_making : tuple of {"experiment", "generator"}
        How the release was made, as its file declares, where that breaks its promise.
    named_as_truth : tuple of int
        Which of the file's columns, from 1, are features and have the private column's name.
    """

    features: FeatureTable
    released: ReleasedLabels
    outputs: tuple[Label, ...]
    classes: tuple[Label, ...]
    truth: TrueLabels | None = None
    declaration: Declaration | None = None
    name: str = "release"
    label: str = "label"
    sha256: str | None = None
    numeric: NumericLabels | None = None
    original: FeatureTable | None = None
    synthetic: "SyntheticTable | None" = None
    held_out: FeatureTable | None = None
    public_posterior: FloatArray | None = None
    reports: npt.NDArray[Any] | None = None
    reports_as_read: npt.NDArray[Any] | None = None
    public: "SyntheticTable | None" = None
    canaries: FloatArray | None = None
    bags: Bags | None = None
    groups: IndexArray | None = None
    columns: tuple[ColumnSurvey, ...] = ()
    holds_truth: bool = False
    keys: tuple[FloatArray, ...] = ()
    left_out: int = 0
    unread: int = 0
    besides: int = 0
    otherwise_written: int = 0
    whole_reports: int = 0
    places: IndexArray | None = None
    sketch: Sketch | None = None
    strata: Strata | None = None
    declared: DeclaredColumns | None = None
    before: frozenset[int] = frozenset()
    truth_released: bool = False
    prior_epsilon: float = 0.0
    faults_of_making: tuple[FaultOfMaking, ...] = ()
    named_as_truth: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        n = len(self.released)
        if n == 0:
            raise InputError("The release has no rows.")
        if len(self.features) != n:
            raise InputError(f"The features have {len(self.features):,} rows, the labels {n:,}.")
        if self.truth is not None and len(self.truth) != n:
            raise InputError(f"The true labels have {len(self.truth)} rows, the release {n}.")
        if self.original is not None and len(self.original) != n:
            raise InputError(
                f"The original features have {len(self.original):,} rows, the release {n:,}."
            )

    def __len__(self) -> int:
        """Return the number of rows n."""
        return len(self.released)

    @property
    def reports_in_file(self) -> npt.NDArray[Any] | None:
        """The reports with all that stands in the file, shape (n, d); None where there are none."""
        return self.reports if self.reports_as_read is None else self.reports_as_read

    @property
    def constant(self) -> bool:
        """Whether every row has the same released label, and nothing else was released of it."""
        same = self.reports is None and self.bags is None and self.numeric is None
        return same and bool((self.released == self.released[0]).all())

    def followed_by(self, other: "Release") -> "Release":
        """Return features and released labels of two parts, one after the other, and no more."""
        labels = ReleasedLabels(np.concatenate([self.released, other.released]))
        features = joined(self.features, other.features)
        before = self.before & other.before
        return Release(features, labels, self.outputs, self.classes, before=before)

    def take(self, rows: npt.NDArray[Any]) -> "Release":
        """Return the release of the given rows (indices or a boolean mask)."""

        def kept(array: Any) -> Any:
            return None if array is None else array[rows]

        truth = None if self.truth is None else TrueLabels(self.truth[rows])
        numeric = None if self.numeric is None else self.numeric.take(rows)
        original = None if self.original is None else self.original.take(rows)
        strata = self.strata
        if strata is not None:
            strata = replace(strata, codes=strata.codes[rows])
        return replace(
            self,
            numeric=numeric,
            features=self.features.take(rows),
            released=ReleasedLabels(self.released[rows]),
            truth=truth,
            original=original,
            public_posterior=kept(self.public_posterior),
            reports=kept(self.reports),
            reports_as_read=kept(self.reports_as_read),
            canaries=kept(self.canaries),
            bags=None,
            groups=kept(self.groups),
            keys=tuple(key[rows] for key in self.keys),
            places=kept(self.places),
            strata=strata,
        )
