"""A scikit-learn classifier of the true label, learnt from released labels."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ldpaudit.errors import InputError
from ldpaudit.learners.estimator import ReleaseEstimator
from ldpaudit.learners.fitting import MODELS, Fitted, Rows, fit_model
from ldpaudit.learners.logistic import Stopping
from ldpaudit.learners.network import NetworkOptions
from ldpaudit.learners.noise_model import (
    Correction,
    LabelNoise,
    check_correction,
    label_noise,
    plain_channel,
    stated_noise,
)
from ldpaudit.learners.validation import check_weights, checked_pair, checked_rows
from ldpaudit.release import FloatArray


@dataclass(kw_only=True, eq=False, repr=False)
class ReleaseClassifier(ClassifierMixin, ReleaseEstimator):  # type: ignore[misc]
    """Learns P(true label | features) from features and released labels.

    Parameters
    ----------
    noise : Channel, mechanism or mapping, optional
        What released the labels; None takes them as true. A channel or a mechanism states the
        classes itself; of a mapping such as ``{"name": "rr", "epsilon": 1.0}`` they are the labels
        that occur in ``y``.
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
