"""Classifiers of three kinds with three losses, as the literature attacks with.

Logistic regression, gradient boosting and a network; with the released labels as if they were true
(plain), with the loss sent through the channel (forward), or with the unbiased loss of the inverse
channel (backward). All guess from the features alone, except ``bayes-network``.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from ldpaudit.attacks.costs import Parts, Size
from ldpaudit.attacks.interface import Knowledge, Model, Need, SharedModel
from ldpaudit.attacks.model_attack import ModelAttack
from ldpaudit.attacks.models.parts import floored
from ldpaudit.device import torch_device
from ldpaudit.encoding import BoostingMatrix, DesignMatrix
from ldpaudit.errors import InputError
from ldpaudit.estimators.renyi.discriminators.discriminator import is_image
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.randomness import integer_seed
from ldpaudit.release import FeatureTable, Float32Array, FloatArray, Release

Kind = Literal["logistic", "boosting", "network"]
Loss = Literal["plain", "forward", "backward"]

_MOST_ASKED: Final = 50_000
_FEWEST: Final = 2_000
_WORK: Final[dict[Kind, float]] = {"logistic": 3e6, "boosting": 6e6, "network": 3e7}
"""Rows × columns × labels that a classifier is fitted on: more rows are thinned."""
_MOST_ROWS: Final[dict[Kind, int]] = {"logistic": 20_000, "boosting": 50_000, "network": 20_000}
_STEPS: Final = 1_500
"""Batches that a network is trained on."""
_BATCH: Final = 128
_FLOOR: Final = 1e-6
_ITERATIONS: Final = 150
"""Where logistic training stops: more of it moves no accuracy by more than chance does."""
_SECONDS: Final[dict[Kind, float]] = {"logistic": 2.0, "boosting": 2.5, "network": 3.5}
"""Predicted for both folds and few classes; the losses of one kind differ too little to tell."""
_SLOWED_BY: Final[dict[Kind, float]] = {"logistic": 10.0, "boosting": 4.0, "network": 50.0}
"""As many classes more double the seconds."""
_TITLES: Final[dict[Kind, str]] = {
    "logistic": "Logistic regression",
    "boosting": "Boosting",
    "network": "Network",
}
_IMAGE_BATCH_SECONDS: Final = 2.6e-5
"""Of a convolutional network, for each batch that it learns and each pixel of an image."""
_IMAGE_ROW_SECONDS: Final = 3e-7
"""For each row that it is asked about and each pixel."""


class CorrectedClassifier(ModelAttack):
    """One kind of classifier with one loss, learnt from released labels.

    Each row's own released label is not used, except by ``bayes-network``.
    """

    most_rows = _MOST_ASKED

    def __init__(self, knowledge: Knowledge, kind: Kind, loss: Loss) -> None:
        super().__init__(knowledge)
        self.kind, self.loss = kind, loss
        self.name = f"classifier-{kind}-{loss}"
        self.title = f"{_TITLES[kind]}, {loss}"
        labels: Need = "class-names" if loss == "plain" else "channel"
        self.needs = frozenset({labels, "features"})

    def learn(self, release: Release, rng: np.random.Generator) -> Model:  # noqa: ARG002
        """Return the classifier, fitted once for all attacks."""
        key = f"{self.kind}-{self.loss}"

        def build(rng: np.random.Generator) -> SharedModel:
            channel = _channel(self.knowledge, release, self.loss)
            device = torch_device(self.knowledge.device) if self.kind == "network" else "cpu"
            fitted = fit_classifier(release, channel, self.kind, self.loss, rng, device)
            return SharedModel(fitted)

        return self.knowledge.once(key, build)

    def cost(self, size: Size) -> Parts:
        """Return the predicted seconds by part."""
        seconds = _SECONDS[self.kind] * (1.0 + (size.classes - 2) / _SLOWED_BY[self.kind])
        if self.kind == "network" and _may_be_image(size.width):
            seconds += _image_seconds(size)
        return {f"{self.kind}-{self.loss}": seconds}


class NetworkBayesAttack(CorrectedClassifier):
    """P(y | x, ỹ) ∝ P(y | x) T[y, ỹ] with P(y | x) by the forward-corrected network."""

    uses_own_label = True

    def __init__(self, knowledge: Knowledge) -> None:
        super().__init__(knowledge, "network", "forward")
        self.name = "bayes-network"
        self.title = "Network and channel (Bayes)"


def classifier(kind: Kind, loss: Loss) -> Callable[[Knowledge], CorrectedClassifier]:
    """Return what builds one of the classifiers."""
    return lambda knowledge: CorrectedClassifier(knowledge, kind, loss)


logistic_plain = classifier("logistic", "plain")
logistic_forward = classifier("logistic", "forward")
logistic_backward = classifier("logistic", "backward")
boosting_plain = classifier("boosting", "plain")
boosting_forward = classifier("boosting", "forward")
boosting_backward = classifier("boosting", "backward")
network_plain = classifier("network", "plain")
network_forward = classifier("network", "forward")
network_backward = classifier("network", "backward")


def _channel(knowledge: Knowledge, release: Release, loss: Loss) -> Channel:
    if loss == "plain":
        return Channel(np.eye(len(release.classes)), release.classes, release.outputs)
    assert knowledge.channel is not None
    return knowledge.channel


@dataclass(frozen=True)
class FittedClassifier:
    """A learner with the matrix that it takes."""

    matrix: Callable[[FeatureTable], Float32Array]
    learner: Any

    def predict(self, features: FeatureTable) -> FloatArray:
        """Return P(y | x), float64 of shape (n, k), every entry above 0."""
        return floored(self.learner.predict_proba(self.matrix(features)), _FLOOR)


def fit_classifier(
    release: Release,
    channel: Channel,
    kind: Kind,
    loss: Loss,
    rng: np.random.Generator,
    device: str = "cpu",
) -> FittedClassifier:
    """Fit a classifier of the true label on released labels.

    Parameters
    ----------
    release : Release
        Without true labels; of many rows a random sample is used.
    channel : Channel
        The channel of the released labels; the identity for the plain loss.
    kind, loss : str
        Which classifier.
    rng : numpy.random.Generator
        Draws the rows and the learner's seed.
    device : str
        Where a network runs.

    Raises
    ------
    InputError
        If no column can be learnt from, or (``backward``) the channel has no inverse.
    """
    from ldpaudit.learners import ReleaseClassifier
    from ldpaudit.learners.logistic import Stopping

    release = release.take(_sample(release, len(channel.classes), kind, rng))
    matrix = _matrix(release.features, kind)
    rows = matrix(release.features)
    if not rows.shape[1]:
        raise InputError("No feature column can be learnt from.")
    learner = ReleaseClassifier(
        channel,
        model=kind,
        correction="backward" if loss == "backward" else "forward",
        labels="codes",
        penalty=3.0,
        stopping=Stopping(iterations=_ITERATIONS),
        rounds=60,
        network=_network(release.features, len(rows), device) if kind == "network" else None,
        random_state=integer_seed(rng),
    )
    return FittedClassifier(matrix, learner.fit(rows, release.released))


def _sample(release: Release, k: int, kind: Kind, rng: np.random.Generator) -> Any:
    per_row = max(release.features.width, 1) * k
    most = int(np.clip(_WORK[kind] / per_row, _FEWEST, _MOST_ROWS[kind]))
    return np.sort(rng.permutation(len(release))[:most])


def _matrix(features: FeatureTable, kind: Kind) -> Callable[[FeatureTable], Float32Array]:
    if kind == "boosting":
        return BoostingMatrix.fit(features).transform
    if kind == "network" and is_image_table(features):
        return pixels
    return DesignMatrix.fit(features).transform


def pixels(features: FeatureTable) -> Float32Array:
    """Return the pixels of square images as they are, float32 of shape (n, width)."""
    return np.nan_to_num(features.numeric)


def is_image_table(features: FeatureTable) -> bool:
    """Return whether rows are square images: as many numeric columns as pixels, and no other."""
    return is_image(features.width, np.arange(features.width) >= features.numeric.shape[1])


def _network(features: FeatureTable, rows: int, device: str) -> Any:
    from ldpaudit.learners.network import NetworkOptions

    epochs = int(np.clip(_STEPS * _BATCH // rows, 3, 30))
    options = NetworkOptions(epochs=epochs, batch_size=_BATCH, device=device)
    return replace(options, architecture="convolutional") if is_image_table(features) else options


def _may_be_image(width: int) -> bool:
    return is_image(width, np.zeros(width, dtype=np.bool_))


def _image_seconds(size: Size) -> float:
    """Return the predicted seconds of a convolutional network in both folds."""
    most = np.clip(_WORK["network"] / (size.width * size.classes), _FEWEST, _MOST_ROWS["network"])
    rows = min(size.rows, int(most))
    epochs = np.clip(_STEPS * _BATCH // max(rows, 1), 3, 30)
    learning = _IMAGE_BATCH_SECONDS * epochs * -(-rows // _BATCH)
    asking = _IMAGE_ROW_SECONDS * min(size.rows, _MOST_ASKED)
    return float(2 * size.width * (learning + asking))
