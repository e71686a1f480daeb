"""A scorer of models of the true label that needs released labels alone."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ldpaudit.doors import InputError
from ldpaudit.extras.learn.corrections import StatedNoise, label_noise, stated_noise

_LEAST = 1e-12  # of a probability, before its logarithm is taken


@dataclass(frozen=True)
class ReleasedScorer:
    """Scores P(released label | features) = p(x)·T by the log of what was released."""

    noise: StatedNoise
    labels: Literal["values", "codes"] = "values"

    def __call__(self, estimator: Any, X: npt.ArrayLike, y: npt.ArrayLike) -> float:
        """Return the mean log-probability of the released labels: larger is better."""
        released = np.asarray(y)
        noise = label_noise(stated_noise(self.noise, released))
        channel = noise.channel
        names = list(channel.classes if self.labels == "values" else range(len(channel.classes)))
        known = np.asarray(estimator.classes_).tolist()
        if not set(known) <= set(names):
            raise InputError("The estimator's classes must be the channel's.")
        found = np.asarray(estimator.predict_proba(X), dtype=np.float64)
        true = np.zeros((len(found), len(names)))
        true[:, [names.index(label) for label in known]] = found
        codes = noise.codes(released, self.labels)
        chances = (true @ channel.matrix)[np.arange(len(codes)), codes]
        return float(np.log(np.maximum(chances, _LEAST)).mean())


def released_scorer(
    noise: StatedNoise, *, labels: Literal["values", "codes"] = "values"
) -> ReleasedScorer:
    """Return a scorer for cross-validation and grid searches on a release.

    scikit-learn's own scorers compare answers with the released labels, and so prefer models that
    were not corrected. This one sends the probabilities of the true label through the channel
    first: its mean is largest at the true P(label | features), whatever the noise.

    Parameters
    ----------
    noise : Channel, mechanism or mapping
        What released the labels, as of :class:`~ldpaudit.learners.ReleaseClassifier`.
    labels : {"values", "codes"}
        How labels are given.

    Returns
    -------
    callable
        ``scorer(estimator, X, y)``, for ``scoring=``: the mean log-probability of the released
        labels, in nats.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import GridSearchCV
    >>> from ldpaudit.learners import ReleaseClassifier, released_scorer
    >>> from ldpaudit.mechanisms import RandomizedResponse
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> noise = RandomizedResponse.from_epsilon(("no", "yes"), 1.0)
    >>> released = noise.release(np.where(X[:, 0] > 0, "yes", "no"), rng)
    >>> grid = {"correction": ["forward", None]}
    >>> search = GridSearchCV(ReleaseClassifier(noise), grid, scoring=released_scorer(noise))
    >>> search.fit(X, released).best_params_
    {'correction': 'forward'}
    """
    return ReleasedScorer(noise, labels)
