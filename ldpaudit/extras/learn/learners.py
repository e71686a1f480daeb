"""Scikit-learn estimators of the true label, learnt from released labels."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, Final, Literal, Protocol, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ldpaudit.doors import Channel, FloatArray, InputError, IntArray, SyntheticFeatures
from ldpaudit.extras.learn.corrections import (
    Correction,
    LabelNoise,
    Noise,
    StatedNoise,
    check_correction,
    debiased_labels,
    double_targets,
    label_noise,
    label_targets,
    plain_channel,
    stated_noise,
)
from ldpaudit.extras.learn.logistic import TargetLoss
from ldpaudit.extras.learn.noisy_columns import NoisyInputs
from ldpaudit.models.encoding import Scaling
from ldpaudit.models.logistic import (
    ForwardLoss,
    LogisticModel,
    LogitLoss,
    Real,
    Stopping,
    fit_logistic,
)
from ldpaudit.models.network import NetworkLoss, NetworkOptions, fit_network
from ldpaudit.randomness import integer_seed

# scikit-learn's ``random_state``; a generator is used directly, None draws a seed.
Seed = int | np.random.Generator | None


def check_weights(weights: npt.ArrayLike | None, n: int) -> FloatArray:
    """Return n weights, float64 of shape (n,); ones where none are given.

    Raises
    ------
    InputError
        If their number is not n, one is negative or not finite, or all are zero.
    """
    if weights is None:
        return np.ones(n)
    checked = np.asarray(weights, dtype=np.float64)
    if checked.ndim == 0:
        checked = np.full(n, float(checked))
    if checked.shape != (n,):
        raise InputError(
            f"The sample weights must be one number for each of the {n} rows. "
            f"Got shape {checked.shape} instead."
        )
    bad = int(np.count_nonzero(~np.isfinite(checked) | (checked < 0)))
    if bad or not checked.sum() > 0:
        raise InputError(
            f"The sample weights must be finite, not negative and not all zero; {bad} are not."
        )
    return checked


def checked_rows(estimator: Any, X: npt.ArrayLike, *, nan: bool = False) -> FloatArray:
    """Return the features of rows to predict or to add, float64 of shape (n, d)."""
    finite = "allow-nan" if nan else True
    rows: FloatArray = validate_data(
        estimator, X, dtype=np.float64, ensure_all_finite=finite, reset=False
    )
    return rows


def checked_pair(
    estimator: Any,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    nan: bool = False,
    numeric: bool = False,
    reset: bool = True,
) -> tuple[FloatArray, npt.NDArray[Any]]:
    """Return features (n, d) and labels (n,) to learn from."""
    pair: tuple[FloatArray, npt.NDArray[Any]] = validate_data(
        estimator,
        X,
        y,
        dtype=np.float64,
        ensure_all_finite="allow-nan" if nan else True,
        y_numeric=numeric,
        reset=reset,
    )
    return pair


MODELS = ("logistic", "boosting", "network")
_TIGHT = Stopping(iterations=2000, slope=1e-8, gain=1e-12)
_SINGLE = 1e-7


class Fitted(Protocol):
    """What every fitted model offers."""

    def predict(self, matrix: FloatArray) -> FloatArray:
        """Return P(y | x), float64 of shape (n, k)."""


@dataclass(frozen=True)
class Rows:
    """Rows whose labels are ready for a corrected loss."""

    matrix: FloatArray
    """Float64 array of shape (n, d): features."""
    answers: FloatArray
    """Float64 array of shape (n, k): T[y, z] of each label for the forward loss, else soft labels
    of any sign."""
    weights: FloatArray
    """Float64 array of shape (n,): rows' weights; the soft labels do not include them."""
    forward: bool
    """Which of the two ``answers`` is."""
    codes: IntArray
    """Int32 array of shape (n,): the released labels."""
    transition: FloatArray
    """Float64 array of shape (k, m): the channel that the forward loss assumes."""

    @classmethod
    def labelled(
        cls,
        matrix: FloatArray,
        codes: IntArray,
        weights: FloatArray,
        channel: Channel,
        correction: str | None,
    ) -> "Rows":
        """Return rows corrected for the label's channel."""
        transition = channel.matrix if correction else _at_their_word(channel)
        if correction in (None, "forward"):
            return cls(matrix, transition.T[codes], weights, True, codes, transition)
        return cls(matrix, label_targets(codes, channel), weights, False, codes, transition)

    @classmethod
    def constant(cls, matrix: FloatArray, weights: FloatArray) -> "Rows":
        """Return rows of a single label."""
        codes = np.zeros(len(matrix), dtype=np.int32)
        return cls(matrix, np.ones((len(matrix), 1)), weights, True, codes, np.ones((1, 1)))

    def repeated(self, matrix: FloatArray, weights: FloatArray) -> "Rows":
        """Return each row c times, with features (n·c, d) and shares (n, c) of its weight."""
        times = weights.shape[1]
        return replace(
            self,
            matrix=matrix,
            answers=np.repeat(self.answers, times, axis=0),
            weights=(self.weights[:, None] * weights).ravel(),
            codes=np.repeat(self.codes, times),
        )

    def with_synthetic(
        self, synthetic: FloatArray, synthetic_codes: IntArray, mechanism: SyntheticFeatures
    ) -> "Rows":
        """Return these rows and the synthetic ones with the soft labels of double RR."""
        released, drawn = double_targets(self.codes, synthetic_codes, mechanism, self.weights)
        # Scaled so that each released row again has a soft label of about its own size.
        scale = float(self.weights.sum())
        return replace(
            self,
            matrix=np.concatenate([self.matrix, synthetic]),
            answers=np.concatenate([released, drawn]) * scale,
            weights=np.ones(len(self.matrix) + len(synthetic)),
            codes=np.concatenate([self.codes, synthetic_codes]),
        )


@dataclass(frozen=True)
class ScaledLogistic:
    """Logistic regression on standardised features."""

    scaling: Scaling
    model: LogisticModel

    def predict(self, matrix: FloatArray) -> FloatArray:
        return self.model.predict(self.scaling.transform(matrix))


class OneLabel:
    """The model of rows that all have one label."""

    def predict(self, matrix: FloatArray) -> FloatArray:
        return np.ones((len(matrix), 1))


def fit_model(
    rows: Rows,
    model: str,
    penalty: float,
    stopping: Stopping | None,
    rounds: int,
    network: NetworkOptions,
    rng: np.random.Generator,
) -> Fitted:
    """Fit one of :data:`MODELS` to corrected rows."""
    if rows.answers.shape[1] == 1:
        return OneLabel()
    if model == "network":
        loss: NetworkLoss = "forward" if rows.forward else "targets"
        return fit_network(rows.matrix, rows.answers, rows.weights, loss, network, rng)
    if model == "boosting":
        return _boosted(rows, rounds, integer_seed(rng))
    return _logistic(rows, penalty, stopping or _TIGHT)


def _logistic(rows: Rows, penalty: float, stopping: Stopping) -> ScaledLogistic:
    # Single precision halves the time, and cannot tell losses that differ by less.
    kind: type[np.floating[Any]] = np.float32 if stopping.gain >= _SINGLE else np.float64
    scaling = Scaling.fit(rows.matrix, rows.weights)
    share = (rows.weights / rows.weights.mean())[:, None]
    loss: LogitLoss = TargetLoss((rows.answers * share).astype(kind))
    if rows.forward:
        loss = ForwardLoss(rows.answers.astype(kind), share.astype(kind))
    # Of n rows with total weight w the loss counts n/w each: the penalty must, too.
    ridge = penalty * len(rows.weights) / float(rows.weights.sum())
    matrix: Real = scaling.transform(rows.matrix).astype(kind, copy=False)
    model = fit_logistic(matrix, loss, rows.answers.shape[1], ridge, None, stopping)
    return ScaledLogistic(scaling, model)


def _boosted(rows: Rows, rounds: int, seed: int) -> Fitted:
    from ldpaudit.extras.learn.boosting import (
        BoostingOptions,
        fit_boosted_released,
        fit_boosted_targets,
    )

    options = BoostingOptions(rounds=rounds, seed=seed)
    if rows.forward:
        return fit_boosted_released(rows.matrix, rows.codes, rows.transition, rows.weights, options)
    return fit_boosted_targets(rows.matrix, rows.answers, rows.weights, options)


def _at_their_word(channel: Channel) -> FloatArray:
    """Return for each class the indicator of the output of its name, float64 of shape (k, m)."""
    if not set(channel.outputs) <= set(channel.classes):
        raise InputError(
            "Without correction the released labels are taken as true, but not all of the "
            "channel's outputs are classes: choose a correction."
        )
    indicators = [
        [float(label == output) for output in channel.outputs] for label in channel.classes
    ]
    return np.array(indicators)


@dataclass(kw_only=True, eq=False, repr=False)
class ReleaseEstimator(BaseEstimator):  # type: ignore[misc]
    """The base of :class:`ReleaseClassifier` and :class:`ReleaseRegressor`."""

    noise: StatedNoise | None = field(default=None, kw_only=False)
    model: str = "boosting"
    penalty: float = 1.0
    rounds: int = 100
    network: NetworkOptions | None = None
    random_state: Seed = 0
    noisy: Mapping[int, Noise] | None = None

    def _noisy(self) -> NoisyInputs | None:
        if not self.noisy:
            return None
        stated: Any = self.noisy
        whole = isinstance(stated, Mapping) and all(
            isinstance(at, Integral) and not isinstance(at, bool) for at in stated
        )
        if not whole:
            raise InputError("The noisy columns are a mapping from positions (0, 1, …) to noise.")
        return NoisyInputs({at: label_noise(one).channel for at, one in self.noisy.items()})

    def _asked(self, X: Any) -> FloatArray:
        """Return checked features of rows to predict, whose noisy columns hold true values."""
        rows, noisy = checked_rows(self, X, nan=self._nan()), self._noisy()
        return rows if noisy is None else noisy.true(rows)

    def _nan(self) -> bool:
        return self.model == "boosting"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._nan()
        return tags


@dataclass(kw_only=True, eq=False, repr=False)
class ReleaseClassifier(ClassifierMixin, ReleaseEstimator):  # type: ignore[misc]
    """Learns P(true label | features) from features and released labels.

    Parameters
    ----------
    noise : Channel, mechanism, declaration, mapping or str, optional
        What released the labels; None takes them as true. A channel or a mechanism states the
        classes itself; of ``"rr:epsilon=1"`` or a mapping such as ``{"name": "rr", "epsilon":
        1.0}`` they are the labels that occur in ``y``.
    model : {"logistic", "boosting", "network"}
        Ridge-penalised multinomial logistic regression; histogram gradient boosting; a neural
        network.
    correction : {"forward", "backward", "unbiased"} or None
        ``forward``: the log-loss of the model's probabilities sent through the channel.
        ``backward``: the loss of soft labels made by the inverse channel (log-loss; squared loss
        for boosting). ``unbiased``: the same, and under double randomized response also without
        the bias of the synthetic features. None: the released labels as if they were true.
    labels : {"values", "codes"}
        Whether labels are given as the channel's outputs or as positions among them; answers are
        then positions among the channel's classes.
    penalty : float
        The ridge penalty of the logistic model, for standardised features.
    stopping : Stopping, optional
        When the logistic model's training stops; default: where further steps change nothing.
        A looser one takes a tenth of the time on wide tables, and gives nearly the same answers.
    rounds : int
        Boosting rounds.
    network : NetworkOptions, optional
        Shape and training of the network.
    random_state : int, numpy.random.Generator or None
        Seed of boosting and network.
    noisy : mapping of int to Channel or mechanism, optional
        Columns of ``X`` that were released with noise of their own, by position. They hold
        positions: in ``fit`` of the released values among the channel's outputs, later of the true
        values among its classes. Their noise must be independent of the labels'. Other models than
        the logistic one see each row with each combination of true values, 64 at most, weighted.

    Attributes
    ----------
    classes_ : array of shape (k,)
        The true labels.
    n_features_in_ : int
        d.

    Notes
    -----
    The learnt probabilities are estimates: nothing about them is certified.

    References
    ----------
    Patrini et al. (2017), Theorems 1 and 2; Busa-Fekete et al. (2023), appendix G (corrected).

    Examples
    --------
    >>> import numpy as np
    >>> from ldpaudit.learners import ReleaseClassifier
    >>> from ldpaudit.mechanisms import RandomizedResponse
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> noise = RandomizedResponse.from_epsilon(("no", "yes"), 1.0)
    >>> released = noise.release(np.where(X[:, 0] > 0, "yes", "no"), rng)
    >>> ReleaseClassifier(noise).fit(X, released).predict([[2.0, 0.0], [-2.0, 0.0]])
    array(['yes', 'no'], dtype='<U3')
    """

    model: Literal["logistic", "boosting", "network"] = "logistic"
    correction: Correction | None = "forward"
    labels: Literal["values", "codes"] = "values"
    stopping: Stopping | None = None
    classes_: npt.NDArray[Any] = field(init=False)
    model_: Fitted = field(init=False)

    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        *,
        synthetic: npt.ArrayLike | None = None,
        synthetic_labels: npt.ArrayLike | None = None,
    ) -> Self:
        """Learn from released rows.

        Parameters
        ----------
        X : float array of shape (n, d)
            Released features; boosting takes NaN for missing ones.
        y : array of shape (n,)
            Released labels.
        sample_weight : float array of shape (n,), optional
            Weights, not negative.
        synthetic : float array of shape (s, d), optional
            A sample of the synthetic features, for double randomized response.
        synthetic_labels : array of shape (s,), optional
            The labels that the synthetic rows were made for, given as ``y`` is.

        Raises
        ------
        InputError
            If a label is none of the channel's outputs, the channel cannot be inverted (for
            ``backward`` and ``unbiased``), or the correction does not fit the noise.
        """
        rows, y = checked_pair(self, X, y, nan=self._nan())
        weights = check_weights(sample_weight, len(rows))
        if self.model not in MODELS:
            raise InputError(
                f"The 'model' parameter must be one of {', '.join(MODELS)}. Got {self.model!r}."
            )
        stated = None if self._trivial(y) or self.noise is None else stated_noise(self.noise, y)
        noise = None if stated is None else label_noise(stated)
        check_correction(self.correction, noise, self.model, synthetic is not None)
        corrected = self._with_noisy(self._rows(rows, y, weights, noise))
        if synthetic is not None and noise is not None and noise.double is not None:
            if self.noisy:
                raise InputError("'synthetic' rows have no noisy columns: pass no 'noisy'.")
            if synthetic_labels is None:
                raise InputError("'synthetic' needs 'synthetic_labels', one for each row.")
            extra = checked_rows(self, synthetic, nan=self._nan())
            extra_codes = noise.codes(np.asarray(synthetic_labels), self.labels)
            corrected = corrected.with_synthetic(extra, extra_codes, noise.double)
        rng = np.random.default_rng(self.random_state)
        network = self.network or NetworkOptions()
        self.model_ = fit_model(
            corrected, self.model, self.penalty, self.stopping, self.rounds, network, rng
        )
        return self

    def _trivial(self, y: npt.NDArray[Any]) -> bool:
        """Check labels that state the classes themselves; return whether there is one only."""
        if self.noise is not None and not isinstance(self.noise, Mapping):
            return False
        check_classification_targets(y)
        return isinstance(self.noise, Mapping) and len(np.unique(y)) == 1

    def _rows(
        self, X: FloatArray, y: npt.NDArray[Any], weights: FloatArray, noise: LabelNoise | None
    ) -> Rows:
        if noise is None:
            noise = LabelNoise(plain_channel(y)) if len(np.unique(y)) > 1 else None
        if noise is None:
            self.classes_ = np.unique(y)
            return Rows.constant(X, weights)
        channel = noise.channel
        given_values = self.noise is None or self.labels == "values"
        codes = noise.codes(y, "values" if given_values else "codes")
        names = channel.classes if given_values else tuple(range(len(channel.classes)))
        self.classes_ = np.asarray(names)
        return Rows.labelled(X, codes, weights, channel, self.correction)

    def _with_noisy(self, known: Rows) -> Rows:
        """Return the rows with noisy columns as what they tell of the true values."""
        noisy = self._noisy()
        if noisy is None:
            return known
        if self.model == "logistic":
            return replace(known, matrix=noisy.posterior(known.matrix))
        own = known.transition.T[known.codes]
        matrix, weights = noisy.expanded(known.matrix, own)
        return known.repeated(matrix, weights)

    def predict_proba(self, X: npt.ArrayLike) -> FloatArray:
        """Return P(true label | x), float64 of shape (n, k), columns as in ``classes_``."""
        check_is_fitted(self)
        return self.model_.predict(self._asked(X))

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the likeliest true label of each row, shape (n,)."""
        answers: npt.NDArray[Any] = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[answers])


_MODELS = ("linear", "boosting", "network")


@dataclass(kw_only=True, eq=False, repr=False)
class ReleaseRegressor(RegressorMixin, ReleaseEstimator):  # type: ignore[misc]
    """Learns E[true label | features] from features and released numeric labels.

    The squared loss of a label with unbiased noise is, up to a constant, an unbiased loss of the
    true label. So mechanisms without bias need no correction, and finite channels with bias get
    the label's unbiased transform T⁻¹.

    Parameters
    ----------
    noise : Channel, mechanism or mapping, optional
        What released the labels; None takes them as true. Of a mapping such as
        ``{"name": "rr", "epsilon": 1.0}`` the labels are those that occur in ``y``.
    model : {"linear", "boosting", "network"}
        Ridge regression, histogram gradient boosting, or a neural network.
    correction : {"unbiased"} or None
        None regresses on the released label as it is.
    loss : {"squared", "poisson"}
        The loss: ½(ŷ − y)², or ŷ − y log ŷ for amounts and counts, with predictions above 0. Both
        are linear in the label's noise.
    penalty : float
        The ridge penalty of the linear model, for standardised features.
    rounds, network, random_state, noisy
        As in :class:`~ldpaudit.learners.ReleaseClassifier`; models other than the linear one take
        noisy columns at their word.

    References
    ----------
    Badanidiyuru et al. (2023), section 3 (unbiased noise and the squared loss).

    Examples
    --------
    >>> import numpy as np
    >>> from ldpaudit.learners import ReleaseRegressor
    >>> from ldpaudit.mechanisms import LabelRange, Laplace
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, size=(2000, 1))
    >>> noise = Laplace(LabelRange(0, 10), epsilon=2.0)
    >>> model = ReleaseRegressor(noise).fit(X, noise.release(X[:, 0], rng))
    >>> model.predict([[8.0]]).round()
    array([8.])
    """

    model: Literal["linear", "boosting", "network"] = "linear"
    correction: Literal["unbiased"] | None = "unbiased"
    loss: Literal["squared", "poisson"] = "squared"

    def fit(
        self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None
    ) -> Self:
        """Learn from released rows.

        Parameters
        ----------
        X, sample_weight
            As in :class:`~ldpaudit.learners.ReleaseClassifier`.
        y : float array of shape (n,)
            Released labels.

        Raises
        ------
        InputError
            If a label is none of the channel's outputs or cannot be debiased; with the Poisson loss
            also if their mean is not above 0, or for boosting one of them is negative.
        """
        rows, released = checked_pair(self, X, y, nan=self._nan(), numeric=True)
        if self.model not in _MODELS or self.correction not in ("unbiased", None):
            raise InputError(
                f"The 'model' must be one of {', '.join(_MODELS)} and the 'correction' 'unbiased' "
                f"or None. Got {self.model!r} and {self.correction!r} instead."
            )
        if self.loss not in ("squared", "poisson"):
            raise InputError(
                f"The 'loss' parameter must be 'squared' or 'poisson'. Got {self.loss!r} instead."
            )
        weights = check_weights(sample_weight, len(rows))
        target = np.asarray(released, dtype=np.float64)
        if self.noise is not None and self.correction is not None:
            target = debiased_labels(released, stated_noise(self.noise, released))
        self.shift_, self.scale_ = self._units(target, weights)
        self._fit(self._encoded(rows), (target - self.shift_) / self.scale_, weights)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.loss == "poisson"
        return tags

    def _encoded(self, rows: FloatArray) -> FloatArray:
        """Return the features; a model that is not linear takes noisy columns at their word."""
        noisy = self._noisy()
        if noisy is None:
            return rows
        return noisy.posterior(rows) if self.model == "linear" else noisy.at_their_word(rows)

    def _units(self, target: FloatArray, weights: FloatArray) -> tuple[float, float]:
        """Return what is subtracted from the labels, and what they are divided by."""
        mean = float(np.average(target, weights=weights))
        if self.loss == "squared":
            spread = float(np.sqrt(np.average((target - mean) ** 2, weights=weights)))
            return mean, spread or 1.0
        if not mean > 0:
            raise InputError("The Poisson loss needs labels with a mean above 0; use 'squared'.")
        if self.model == "boosting" and (target < 0).any():
            raise InputError(
                "Boosting takes no labels below 0 with the Poisson loss, and noise made some: use "
                "the model 'linear' or 'network'."
            )
        return 0.0, mean

    def _fit(self, X: FloatArray, target: FloatArray, weights: FloatArray) -> None:
        rng = np.random.default_rng(self.random_state)
        self.model_: Any
        self.scaling_: Scaling | None = None
        if self.model == "network":
            shape = self.network or NetworkOptions()
            self.model_ = fit_network(X, target[:, None], weights, self.loss, shape, rng)
        elif self.model == "boosting":
            from ldpaudit.extras.learn.boosting import BoostingOptions, fit_boosted_values

            options = BoostingOptions(rounds=self.rounds, seed=integer_seed(rng))
            name = "squared_error" if self.loss == "squared" else self.loss
            self.model_ = fit_boosted_values(X, target, weights, options, name)
        elif self.loss == "poisson":
            from ldpaudit.extras.learn.logistic import fit_poisson

            self.scaling_ = Scaling.fit(X, weights)
            matrix = self.scaling_.transform(X)
            self.model_ = fit_poisson(matrix, target, weights, self.penalty)
        else:
            from sklearn.linear_model import Ridge

            self.scaling_ = Scaling.fit(X, weights)
            ridge = Ridge(alpha=self.penalty)
            self.model_ = ridge.fit(self.scaling_.transform(X), target, weights)

    def predict(self, X: npt.ArrayLike) -> FloatArray:
        """Return the estimated mean of the true label of each row, float64 of shape (n,)."""
        check_is_fitted(self)
        rows = self._asked(X)
        matrix = rows if self.scaling_ is None else self.scaling_.transform(rows)
        answers = np.asarray(self.model_.predict(matrix), dtype=np.float64)
        return answers.reshape(len(matrix)) * self.scale_ + self.shift_


_WEIGHTS: Final = "check_sample_weight_equivalence_on_dense_data"
_IN_BATCHES: Final = "rows are taken in batches of a given size"
_NEARLY: Final = "the descent stops within 1e-7 of the minimum, the check asks for less"
_ROUNDED: Final = "single precision: how a matrix product rounds depends on the number of rows"
_LABELS: Final = "the check's labels are not those that the mechanism declares"
_KEPT: Final = "a mechanism keeps what it has computed; its parameters do not change"
_SHARP: Final = "the check's labels carry no noise, so undoing some gives others"
_ORDERS: Final = ("check_methods_sample_order_invariance", "check_methods_subset_invariance")
_OVERWRITE: Final = "check_estimators_overwrite_params"
# The checks that learn from labels of their own.
_WITH_OTHER_LABELS: Final = (
    *_ORDERS,
    _OVERWRITE,
    _WEIGHTS,
    "check_classifier_data_not_an_array",
    "check_classifier_not_supporting_multiclass",
    "check_classifiers_classes",
    "check_classifiers_regression_target",
    "check_classifiers_train",
    "check_dict_unchanged",
    "check_dont_overwrite_parameters",
    "check_dtype_object",
    "check_estimators_dtypes",
    "check_estimators_fit_returns_self",
    "check_estimators_partial_fit_n_features",
    "check_f_contiguous_array_estimator",
    "check_fit2d_1feature",
    "check_fit2d_predict1d",
    "check_fit_check_is_fitted",
    "check_fit_idempotent",
    "check_fit_score_takes_y",
    "check_n_features_in",
    "check_n_features_in_after_fitting",
    "check_positive_only_tag_during_fit",
    "check_readonly_memmap_input",
    "check_regressor_data_not_an_array",
    "check_regressors_int",
    "check_regressors_no_decision_function",
    "check_regressors_train",
    "check_sample_weights_list",
    "check_sample_weights_not_an_array",
    "check_sample_weights_not_overwritten",
    "check_sample_weights_pandas_series",
    "check_sample_weights_shape",
    "check_supervised_y_2d",
)


def expected_failed_checks(learner: Any) -> dict[str, str]:
    """Return the checks that do not apply to a learner, each with the reason.

    Parameters
    ----------
    learner : estimator
        One of this package.

    Returns
    -------
    dict from str to str
        For ``expected_failed_checks`` of ``sklearn.utils.estimator_checks.check_estimator`` and
        ``parametrize_with_checks`` (scikit-learn 1.6 and later).

    Examples
    --------
    >>> from ldpaudit.learners import ReleaseClassifier, expected_failed_checks
    >>> expected_failed_checks(ReleaseClassifier(model="boosting"))
    {}
    >>> list(expected_failed_checks(ReleaseClassifier({"name": "rr", "epsilon": 1.0})))
    ['check_sample_weight_equivalence_on_dense_data']
    """
    model, noise = getattr(learner, "model", "in batches"), learner.noise
    expected: dict[str, str] = {}
    if model in ("in batches", "network"):
        expected[_WEIGHTS] = _IN_BATCHES
    if model == "network":
        expected |= dict.fromkeys(_ORDERS, _ROUNDED)
    if model == "logistic":
        expected[_WEIGHTS] = _NEARLY
    if isinstance(noise, Mapping) and not hasattr(learner, "predict_proba"):
        expected |= dict.fromkeys(("check_fit2d_1sample", "check_regressors_train"), _SHARP)
    elif noise is not None and not isinstance(noise, Mapping):
        expected |= dict.fromkeys(_WITH_OTHER_LABELS, _LABELS) | {_OVERWRITE: _KEPT}
    return expected
