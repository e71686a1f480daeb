"""Classifiers of three kinds with three losses, as the literature uses for attacks.

Logistic regression, gradient boosting and a network; with the released labels as if they were true
(plain), with the loss through the channel (forward), or with the unbiased loss of the inverse
channel (backward). All guess from the features alone, except ``bayes-network``.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from ldpaudit.attacks.costs import Parts, Size
from ldpaudit.attacks.interface import Knowledge, Model, Need, SharedModel
from ldpaudit.attacks.model_attack import ModelAttack
from ldpaudit.attacks.models.parts import floored
from ldpaudit.device import torch_device
from ldpaudit.errors import InputError
from ldpaudit.estimators.renyi.discriminators.discriminator import is_image
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.modelling.encoding import BoostingMatrix, DesignMatrix
from ldpaudit.modelling.screening import MOST_COLUMNS, TREE_COLUMNS, screened
from ldpaudit.randomness import integer_seed
from ldpaudit.release import FeatureTable, Float32Array, FloatArray, Release

Kind = Literal["logistic", "boosting", "network"]
Loss = Literal["plain", "forward", "backward"]

_MOST_ASKED: Final = 50_000
_FEWEST: Final = 2_000
_STEPS: Final = 1_500
"""Batches that a network is trained on."""
_BATCH: Final = 128
_FLOOR: Final = 1e-6
_ITERATIONS: Final = 150
"""Where logistic training stops: more moves no accuracy by more than chance does."""
_IMAGE_BATCH_SECONDS: Final = 2.6e-5
"""Of a convolutional network, for each batch that it learns and each pixel of an image."""
_IMAGE_ROW_SECONDS: Final = 3e-7
"""For each row that it guesses and each pixel."""


class _Limits(NamedTuple):
    title: str
    work: float
    """Rows × columns × labels that a classifier is fitted on: more rows are thinned."""
    most_rows: int
    seconds: float
    """Predicted for both folds and two classes; the losses of one kind differ little."""
    slowed_by: float
    """As many more classes double the seconds."""

    def rows(self, width: int, k: int) -> int:
        """Return how many rows of ``width`` columns and k labels are fitted on at most."""
        return int(np.clip(self.work / (max(width, 1) * k), _FEWEST, self.most_rows))


_KINDS: Final[dict[Kind, _Limits]] = {
    "logistic": _Limits("Logistic regression", 3e6, 20_000, 2.0, 10.0),
    "boosting": _Limits("Boosting", 6e6, 50_000, 2.5, 4.0),
    "network": _Limits("Network", 3e7, 20_000, 4.0, 50.0),
}


class CorrectedClassifier(ModelAttack):
    """One kind of classifier with one loss, learnt from released labels.

    Each row's own released label is not used, except by ``bayes-network``.
    """

    most_rows = _MOST_ASKED

    def __init__(self, knowledge: Knowledge, kind: Kind, loss: Loss) -> None:
        super().__init__(knowledge)
        self.kind, self.loss = kind, loss
        self.name = f"classifier-{kind}-{loss}"
        self.title = f"{_KINDS[kind].title}, {loss}"
        labels: Need = "class-names" if loss == "plain" else "channel"
        self.needs = frozenset({labels, "features"})

    def learn(self, release: Release, rng: np.random.Generator) -> Model:  # noqa: ARG002
        """Return the classifier, fitted once for all attacks."""

        def build(rng: np.random.Generator) -> SharedModel:
            channel = self.knowledge.channel
            if self.loss == "plain":
                channel = Channel(np.eye(len(release.classes)), release.classes, release.outputs)
            assert channel is not None
            device = torch_device(self.knowledge.device) if self.kind == "network" else "cpu"
            return SharedModel(_fitted(release, channel, self.kind, self.loss, rng, device))

        return self.knowledge.once(f"{self.kind}-{self.loss}", build)

    def cost(self, size: Size) -> Parts:
        """Return the predicted seconds by part."""
        kind, width = _KINDS[self.kind], size.width
        seconds = kind.seconds * (1.0 + (size.classes - 2) / kind.slowed_by)
        if self.kind == "network" and is_image(width, np.zeros(width, dtype=np.bool_)):
            seconds += _image_seconds(size)
        return {f"{self.kind}-{self.loss}": seconds}


class NetworkBayesAttack(CorrectedClassifier):
    """P(y | x, ỹ) ∝ P(y | x) T[y, ỹ] with P(y | x) by the forward-corrected network."""

    uses_own_label = True

    def __init__(self, knowledge: Knowledge) -> None:
        super().__init__(knowledge, "network", "forward")
        self.name = "bayes-network"
        self.title = "Network and channel (Bayes)"


logistic_plain = partial(CorrectedClassifier, kind="logistic", loss="plain")
logistic_forward = partial(CorrectedClassifier, kind="logistic", loss="forward")
logistic_backward = partial(CorrectedClassifier, kind="logistic", loss="backward")
boosting_plain = partial(CorrectedClassifier, kind="boosting", loss="plain")
boosting_forward = partial(CorrectedClassifier, kind="boosting", loss="forward")
boosting_backward = partial(CorrectedClassifier, kind="boosting", loss="backward")
network_plain = partial(CorrectedClassifier, kind="network", loss="plain")
network_forward = partial(CorrectedClassifier, kind="network", loss="forward")
network_backward = partial(CorrectedClassifier, kind="network", loss="backward")


@dataclass(frozen=True)
class FittedClassifier:
    """A learner with the matrix that it takes."""

    matrix: Callable[[FeatureTable], Float32Array]
    learner: Any

    def predict(self, features: FeatureTable) -> FloatArray:
        """Return P(y | x), float64 of shape (n, k), every entry above 0."""
        return floored(self.learner.predict_proba(self.matrix(features)), _FLOOR)


def _fitted(
    release: Release,
    channel: Channel,
    kind: Kind,
    loss: Loss,
    rng: np.random.Generator,
    device: str,
) -> FittedClassifier:
    """Fit a classifier of the true label on released labels, of many rows on a random sample.

    Raises
    ------
    InputError
        If no column can be learnt from, or (``backward``) the channel has no inverse.
    """
    from ldpaudit.learners import ReleaseClassifier
    from ldpaudit.learners.logistic import Stopping

    most = _KINDS[kind].rows(release.features.width, len(channel.classes))
    release = release.take(np.sort(rng.permutation(len(release))[:most]))
    matrix = _matrix(release, kind)
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


def _matrix(release: Release, kind: Kind) -> Callable[[FeatureTable], Float32Array]:
    features, codes = release.features, release.released
    if kind == "boosting":
        transform = screened(BoostingMatrix, features, codes, TREE_COLUMNS).transform
    elif kind == "network" and is_image_table(features):
        transform = pixels
    else:
        transform = screened(DesignMatrix, features, codes, MOST_COLUMNS).transform
    chosen: Callable[[FeatureTable], Float32Array] = transform
    return chosen


def pixels(features: FeatureTable) -> Float32Array:
    """Return the pixels of square images as they are, float32 of shape (n, width)."""
    return np.nan_to_num(features.numeric)


def is_image_table(features: FeatureTable) -> bool:
    """Return whether rows are square images: as many numeric columns as pixels, and no other."""
    return is_image(features.width, np.arange(features.width) >= features.numeric.shape[1])


def _network(features: FeatureTable, rows: int, device: str) -> Any:
    from ldpaudit.learners.network import NetworkOptions

    options = NetworkOptions(epochs=_epochs(rows), batch_size=_BATCH, device=device)
    return replace(options, architecture="convolutional") if is_image_table(features) else options


def _epochs(rows: int) -> int:
    return int(np.clip(_STEPS * _BATCH // max(rows, 1), 3, 30))


def _image_seconds(size: Size) -> float:
    """Return the predicted seconds of a convolutional network in both folds."""
    rows = min(size.rows, _KINDS["network"].rows(size.width, size.classes))
    learning = _IMAGE_BATCH_SECONDS * _epochs(rows) * -(-rows // _BATCH)
    asking = _IMAGE_ROW_SECONDS * min(size.rows, _MOST_ASKED)
    return float(2 * size.width * (learning + asking))
