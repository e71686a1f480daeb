"""What some mechanisms do besides randomizing one label by one channel."""

# Other packages ask for these abilities (:meth:`Mechanism.offers`), never for a particular
# mechanism.

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.interface import AnalysedMechanism, Mechanism, NumericMechanism
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.release import FloatArray, IntArray, Label

if TYPE_CHECKING:
    from ldpaudit.mechanisms.rounding import Rounding


class SyntheticFeatures(AnalysedMechanism):
    """A mechanism that replaces the features of some rows by synthetic ones.

    Attributes
    ----------
    classes : tuple, length k
        The labels.
    noise : float
        λ in [0, 1]: the probability that the features of a row are replaced.
    label_channel : Channel
        The channel of the label alone.
    """

    classes: tuple[Label, ...]
    noise: float

    if TYPE_CHECKING:

        @property
        def label_channel(self) -> Channel: ...

    @property
    def unchanged_share(self) -> float:
        """The share of rows whose features are released as they are: 1 − λ."""
        return 1 - self.noise

    @abstractmethod
    def sample(self, labels: IntArray, synthetic_labels: IntArray, rng: Any = None) -> Any:
        """Decide what is released of each row: its ``labels`` and ``synthetic_rows``.

        Parameters
        ----------
        labels : int32 array of shape (n,)
            Codes of the true labels.
        synthetic_labels : int32 array of shape (s,)
            Codes of the labels of the synthetic table's rows; every label must occur.
        rng : numpy.random.Generator or BitSource, optional
            Default: the operating system's randomness.

        Raises
        ------
        InputError
            If the synthetic table lacks rows of some label.
        """

    @abstractmethod
    def conditional_epsilon(self, divergence: float) -> float:
        """Return ε in nats where features are drawn given their label.

        ``divergence``, Δ ≥ 0 in nats, bounds that of the true from the synthetic features.
        """


class NoisyFeatures(AnalysedMechanism):
    """A mechanism that adds noise to numeric features.

    Attributes
    ----------
    radius : float
        R: the ℓ2 norm that no feature vector exceeds.
    sigma : float
        σ: the standard deviation of the noise on each coordinate.
    feature_epsilon : float
        ε that is claimed for the features, in nats, at ``feature_delta``.
    feature_delta : float
        δ of that claim.
    """

    radius: float
    sigma: float
    feature_epsilon: float
    feature_delta: float

    @abstractmethod
    def claim_holds(self) -> bool:
        """Return whether σ is enough for the (ε, δ) that is stated for the features."""

    @abstractmethod
    def project(self, features: FloatArray) -> FloatArray:
        """Return ``features``, float64 (n, p), with rows longer than R shortened to norm R."""

    @abstractmethod
    def release_features(
        self, features: FloatArray, rng: Any = None, *, simulation: bool = False
    ) -> FloatArray:
        """Release feature vectors.

        Parameters
        ----------
        features : float64 array of shape (n, p)
            Rows of norm at most R.
        rng : numpy.random.Generator
            Needed for a simulation.
        simulation : bool
            Whether floating-point noise is acceptable because nothing will be released.

        Returns
        -------
        float64 array of shape (n, p)
        """


class FeatureDependentLabel(Mechanism):
    """A mechanism that uses a row's features to draw its released label.

    It has no channel that is the same for all rows; bounds on ε that need one are withheld.

    Attributes
    ----------
    classes : tuple, length k
        The labels.
    """

    classes: tuple[Label, ...]

    @abstractmethod
    def sample_rows(self, labels: IntArray, features: Any, rng: Any = None) -> IntArray:
        """Release labels given as codes.

        Parameters
        ----------
        labels : int32 array of shape (n,)
            Codes of the true labels.
        features : pyarrow.RecordBatch of n rows
        rng : numpy.random.Generator, optional
            For simulations; default: the operating system's randomness.

        Returns
        -------
        int32 array of shape (n,)
        """


class PublicModelLabel(AnalysedMechanism):
    """A mechanism with a channel for each row, given by a public model P̂(label | features).

    Attributes
    ----------
    classes : tuple, length k
        The labels.
    noise : float
        λ in [0, 1]: the probability that a label is drawn from the public model.
    floor : float
        The least probability that each label has in such a draw.
    """

    classes: tuple[Label, ...]
    noise: float
    floor: float

    @abstractmethod
    def synthetic(self, classifier: Any, features: Any) -> FloatArray:
        """Return P̂(y | x) of a fitted ``classifier`` at ``features``, float64 (n, k), unfloored.

        Its columns are in the order of the labels; ``classifier`` has ``classes_`` and
        ``predict_proba``.
        """

    @abstractmethod
    def sample(self, labels: IntArray, synthetic: FloatArray, rng: Any = None) -> IntArray:
        """Release labels given as codes.

        Parameters
        ----------
        labels : int32 array of shape (n,)
            Codes of the true labels.
        synthetic : float64 array of shape (n, k)
            P̂(y | x) of the public model, before the floor.
        rng : numpy.random.Generator or BitSource, optional
            Default: the operating system's randomness.

        Returns
        -------
        int32 array of shape (n,)
        """

    @abstractmethod
    def row_likelihood(self, posterior: FloatArray, released: IntArray) -> FloatArray:
        """Return P(ỹ | y, x) at each row's released label for every y, float64 of shape (n, k).

        ``posterior`` is the public model's P̂(y | x), float64 of shape (n, k), before the floor;
        ``released`` are codes of the released labels, int32 of shape (n,).
        """


class StagedLabel(AnalysedMechanism):
    """A mechanism with a channel for each row, given by a prior that earlier rows have taught.

    Attributes
    ----------
    classes : tuple, length k
        The labels.
    stages : int
        In how many parts the rows are released.
    rows : int or None
        How many rows were released; the first stage is the first ⌈rows/stages⌉ of them.
    """

    classes: tuple[Label, ...]
    stages: int
    rows: int | None

    @property
    @abstractmethod
    def first(self) -> AnalysedMechanism:
        """What releases the labels of the first stage, with one channel for all of its rows."""

    @abstractmethod
    def sample(self, labels: IntArray, posterior: FloatArray, rng: Any = None) -> IntArray:
        """Release labels given as codes.

        Parameters
        ----------
        labels : int32 array of shape (n,)
            Codes of the true labels.
        posterior : float64 array of shape (n, k)
            Each row's prior, as earlier stages have taught it.
        rng : numpy.random.Generator or BitSource, optional
            Default: the operating system's randomness.

        Returns
        -------
        int32 array of shape (n,)
        """

    @abstractmethod
    def row_likelihood(self, posterior: FloatArray, released: IntArray) -> FloatArray:
        """Return P(ỹ | y, x) at each row's released label for every y, float64 of shape (n, k).

        ``posterior`` is each row's prior, float64 of shape (n, k); ``released`` are codes of the
        released labels, int32 of shape (n,).
        """


class LabelByStratum(AnalysedMechanism):
    """A mechanism with a finite channel for each value of a public column."""

    values: tuple[Label, ...]  # The values of the public column.

    classes: tuple[Label, ...]  # The k labels, the same in every stratum
    outputs: tuple[Label, ...]  # The m outputs, the same in every stratum
    matrices: FloatArray  # The strata's channels, float64 of shape (s, k, m)

    @abstractmethod
    def averaged(self, shares: FloatArray) -> Channel:
        """Return the channel of a row whose stratum is not looked at.

        ``shares`` are those of the strata, (s,), or (k, s) among the rows of each true label.
        """

    @abstractmethod
    def row_likelihood(self, strata: IntArray, released: IntArray) -> FloatArray:
        """Return P(z | y, s) at each row's stratum and output for every y, float64 of shape (n, k).

        Both are int32 arrays of shape (n,): positions in ``values`` and in ``outputs``.
        """


class BagSums(AnalysedMechanism):
    """A mechanism that releases one sum of labels, or a proportion, for a bag of rows.

    Attributes
    ----------
    bag : str
        The column that identifies a row's bag.
    classes : tuple, length 2
        The labels that count as 0 and 1 in a sum.
    noise : {"none", "laplace", "geometric"}
        The noise that is added to a sum.
    statistic : {"proportion", "sum"}
        What is released of a bag: the share of the second label in it, or their number.
    """

    bag: str
    classes: tuple[Label, ...]
    noise: str
    statistic: str

    @property
    @abstractmethod
    def sums_are_whole(self) -> bool:
        """Whether every released sum is a whole number."""

    @property
    @abstractmethod
    def sums_fit_the_bag(self) -> bool:
        """Whether every released sum lies between 0 and the bag's size."""

    @abstractmethod
    def log_likelihood(self, released: FloatArray, size: int) -> FloatArray:
        """Return log P(released | true sum) up to a constant.

        Parameters
        ----------
        released : float64 array of shape (b,)
            Released sums of bags of one size.
        size : int
            Rows of a bag.

        Returns
        -------
        float64 array of shape (b, size + 1)
            For sums 0 … size; −∞ for an impossible sum.
        """

    @abstractmethod
    def noise_cdf(self, x: FloatArray) -> FloatArray:
        """Return P(noise ≤ x) of the declared noise, float64 of the shape of ``x``."""


class LocalReports(AnalysedMechanism):
    """A protocol by which each person reports a label, where the reports are what is released.

    A subclass states its ``traits`` with ``outputs="reports"`` and no ``options``, and writes
    ``epsilon``, ``description``, :attr:`compared` and the methods below; ``channel`` is None, since
    a report is no label. The audit reads the released column as reports, guesses labels by
    :meth:`labels`, and bounds ε from below by :meth:`log_ratio` of the true and another label.

    Attributes
    ----------
    classes : tuple, length k
        The labels.
    epsilon : float
        The declared protocol's exact ε of one report in nats.
    """

    classes: tuple[Label, ...]

    @property
    @abstractmethod
    def report_kind(self) -> Literal["label", "labels", "numbers"]:
        """How a released column holds a report: a label, a list of labels, or one of numbers.

        All lists have the same length d; a number may also be the fields ``seed`` and ``value`` of
        a struct, d = 2. A label alone has d = 1.
        """

    @abstractmethod
    def check(self, reports: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the reports in the type in which the other methods take them.

        Parameters
        ----------
        reports : array of shape (n, d)
            As the released column holds them: int32 codes of labels, or numbers.

        Returns
        -------
        array of shape (n, d)
            The same reports.

        Raises
        ------
        InputError
            If one is impossible in this protocol. The message says how many are, and shows none.
        """

    @abstractmethod
    def labels(self, reports: npt.NDArray[Any], rng: np.random.Generator) -> IntArray:
        """Return a most likely label of each report, ties broken uniformly.

        Parameters
        ----------
        reports : array of shape (n, d)
            As :meth:`check` returns them.
        rng : numpy.random.Generator
            The only source of randomness.

        Returns
        -------
        int32 array of shape (n,)
            Positions in ``classes``.
        """

    @abstractmethod
    def log_ratio(self, reports: npt.NDArray[Any], first: IntArray, second: IntArray) -> FloatArray:
        """Return log P(report | first)/P(report | second) of each row.

        Parameters
        ----------
        reports : array of shape (n, d)
            As :meth:`check` returns them.
        first, second : int32 arrays of shape (n,)
            Positions in ``classes``.

        Returns
        -------
        float64 array of shape (n,)
            In nats, between −ε and ε.
        """


class StepNoise(NumericMechanism):
    """A mechanism that adds whole steps of noise to labels on a grid."""

    labels: LabelRange  # The labels' range, with a step.
    clipped: bool  # Whether released labels are moved into the range.

    @abstractmethod
    def sample(self, labels: IntArray, rng: Any = None) -> Any:
        """Release labels given as grid positions, int64 of shape (n,), maybe outside the grid."""


class RoundedFirst(NumericMechanism):
    """A mechanism on a grid whose labels, any numbers between its ends, are rounded first."""

    if TYPE_CHECKING:

        @property
        def rounding(self) -> "Rounding":
            """What rounds the labels; ``after_rounding`` is what releases them then."""


class AnyNumber(NumericMechanism):
    """A mechanism whose labels may be any number of a range."""

    @abstractmethod
    def release(self, labels: Any, rng: Any = None) -> FloatArray:
        """Release label values inside the range, float64 of shape (n,)."""
