"""What a user of a release would train: a model of the true label, corrected for the mechanism."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, cast

import numpy as np

from ldpaudit.attacks.corrected_classifiers import is_image_table, pixels
from ldpaudit.audits.claimed_channel import aligned_channel
from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.commands.utility import ModelKind
from ldpaudit.device import DeviceName, torch_device
from ldpaudit.errors import InputError
from ldpaudit.learners.noise_model import Noise
from ldpaudit.mechanisms import Mechanism, from_declaration
from ldpaudit.mechanisms.analysis import label_errors
from ldpaudit.mechanisms.capabilities import SyntheticFeatures
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.modelling.encoding import BoostingMatrix, DesignMatrix
from ldpaudit.release import FeatureTable, Float32Array, FloatArray, IntArray, Release

Matrix = Callable[[FeatureTable], Float32Array]
"""Makes a matrix of rows."""

_TRUE: Final = "the true labels"
_RAW: Final = "released labels taken at their word: no correction is known for the mechanism"
_FORWARD: Final = "log-loss through the declared channel"
_UNBIASED: Final = "unbiased log-loss of double randomized response, with its synthetic rows"
_LABEL_ONLY: Final = (
    "log-loss through the label's channel; synthetic rows taken for real ones, since the synthetic "
    "table is not given (--synthetic)"
)
_SQUARED: Final = "squared loss, unbiased under the declared mechanism"
_NO_INVERSE: Final = "squared loss of the released number, whose bias cannot be undone"
_NO_GAIN: Final = "squared loss of the released number: undoing its bias would add more error"
_PENALTY: Final = 1.0
_IMAGE_BATCHES: Final = 1_500
"""Batches that a convolutional network is trained on; at least 3 and at most 30 epochs."""


@dataclass(frozen=True)
class LossCorrection:
    """How the loss takes the mechanism into account; ``words`` say it to people."""

    noise: Noise | None
    name: Any
    words: str


@dataclass(frozen=True)
class Learner:
    """A learner from releases.

    Attributes
    ----------
    model : {"logistic", "boosting", "network"}
        A network is convolutional where rows are square images.
    device : {"auto", "cpu", "cuda"}
        Where the network runs.
    true : bool
        Whether the "released" labels are the true ones, which need no correction.
    """

    model: ModelKind
    device: DeviceName = "auto"
    true: bool = False

    def classes(
        self, release: Release, rows: FeatureTable, rng: np.random.Generator
    ) -> tuple[IntArray, LossCorrection]:
        """Return the class that a model trained on a release predicts for each of t other rows.

        Returns
        -------
        int32 array of shape (t,), LossCorrection
            Codes into the release's classes; −1 for an output that is no class.

        Raises
        ------
        InputError
            If the model cannot be trained under the mechanism.
        """
        correction = LossCorrection(None, None, _TRUE) if self.true else correction_for(release)
        outputs = release.classes if correction.name else release.outputs
        if self.model == "logistic":
            codes = _logistic(release, rows, correction)
        else:
            codes = self._learnt(release, rows, correction, rng)
        # An output means the class of the same name.
        places = np.array([_place(release.classes, output) for output in outputs], dtype=np.int32)
        return np.asarray(places[codes], dtype=np.int32), correction

    def _learnt(
        self,
        release: Release,
        rows: FeatureTable,
        correction: LossCorrection,
        rng: np.random.Generator,
    ) -> IntArray:
        from ldpaudit.learners import ReleaseClassifier

        matrix = self.matrix(release.features)
        learner = ReleaseClassifier(
            correction.noise,
            model=self.model,
            correction=correction.name,
            labels="codes",
            network=self.network(release.features),
            random_state=rng,
        )
        more: dict[str, Any] = {}
        if correction.name == "unbiased" and release.synthetic is not None:
            more["synthetic"] = matrix(release.synthetic.features)
            more["synthetic_labels"] = release.synthetic.labels
        learner.fit(matrix(release.features), release.released, **more)
        return np.asarray(learner.predict(matrix(rows)), dtype=np.int32)

    def numbers(
        self, release: Release, rows: FeatureTable, rng: np.random.Generator
    ) -> tuple[FloatArray, LossCorrection]:
        """Return the number that a model predicts for each of other rows.

        Returns
        -------
        float64 array of shape (t,), LossCorrection
        """
        from ldpaudit.learners import ReleaseRegressor

        assert release.numeric is not None
        matrix, released = self.matrix(release.features), release.numeric.released
        table = matrix(release.features)
        correction = LossCorrection(None, None, _TRUE)
        if not self.true:
            claim = from_declaration(release.declaration, ())
            correction = bias_correction(claim, released, table.shape[1])
        learner = ReleaseRegressor(
            correction.noise,
            model="linear" if self.model == "logistic" else self.model,
            correction=correction.name,
            network=self.network(release.features),
            random_state=rng,
        )
        learner.fit(table, released)
        return learner.predict(matrix(rows)), correction

    def network(self, features: FeatureTable) -> Any:
        """Return the network's options: a convolutional one where rows are square images."""
        from ldpaudit.learners.network import NetworkOptions

        if self.model != "network":
            return None
        options = NetworkOptions(device=torch_device(self.device))
        if not is_image_table(features):
            return options
        epochs = int(np.clip(_IMAGE_BATCHES * options.batch_size // len(features), 3, 30))
        return replace(options, architecture="convolutional", epochs=epochs)

    def matrix(self, features: FeatureTable) -> Matrix:
        """Return the function to a matrix of rows, fitted on the released features alone."""
        if self.model == "network" and is_image_table(features):
            return pixels
        return _filled((BoostingMatrix if self.model == "boosting" else DesignMatrix).fit(features))


def correction_for(release: Release) -> LossCorrection:
    """Return the correction of a loss of classes that fits the declared mechanism.

    Raises
    ------
    InputError
        If the claim's labels are not those of the release.
    """
    claim = from_declaration(release.declaration, release.classes)
    if isinstance(claim, SyntheticFeatures) and release.synthetic is not None:
        stated = {**claim.declaration(), "classes": list(release.classes)}
        ordered = type(claim).from_parameters(stated, ())
        return LossCorrection(ordered, "unbiased", _UNBIASED)
    channel = aligned_channel(AuditContext(release, claim, Plan(seed=0)))
    if channel is None:
        return LossCorrection(None, None, _RAW)
    words = _LABEL_ONLY if isinstance(claim, SyntheticFeatures) else _FORWARD
    return LossCorrection(channel, "forward", words)


def bias_correction(claim: Mechanism, released: FloatArray, columns: int) -> LossCorrection:
    """Return the correction of a squared loss that fits the declared mechanism.

    Undoing a bias adds variance. A linear model with p columns on n rows averages over rows: the
    variance of its labels enters its error p/n times, their squared bias whole. So a bias is undone
    where that lowers the sum, at the mechanism's exact bias and variance of the released labels.

    Parameters
    ----------
    claim : Mechanism
        On numeric labels.
    released : float64 array of shape (n,)
    columns : int
        p.
    """
    from ldpaudit.learners.numeric_labels import debiased_labels, unbiased_values

    try:
        debiased_labels(released, claim)
    except InputError:
        return LossCorrection(None, None, _NO_INVERSE)
    errors, channel = label_errors(claim), claim.channel
    if channel is not None and errors is not None and not errors.unbiased:
        added = channel.matrix @ unbiased_values(channel) ** 2 - errors.labels**2 - errors.variance
        gain, order = errors.bias**2 - columns / len(released) * added, np.argsort(errors.labels)
        if np.interp(released, errors.labels[order], gain[order]).mean() <= 0:
            return LossCorrection(None, None, _NO_GAIN)
    return LossCorrection(claim, "unbiased", _SQUARED)


def _logistic(release: Release, rows: FeatureTable, correction: LossCorrection) -> IntArray:
    """Return the answers of a ridge-penalised logistic model, fitted in single precision.

    Its indicators are not standardised: rare levels then count for less, which helps on noisy
    labels, and fewer steps are needed.
    """
    from ldpaudit.learners.fitting import Rows
    from ldpaudit.learners.logistic import (
        ForwardLoss,
        LogitLoss,
        Stopping,
        TargetLoss,
        fit_logistic,
    )

    matrix, noise = _filled(DesignMatrix.fit(release.features)), correction.noise
    channel = Channel(np.eye(len(release.outputs)), release.outputs, release.outputs)
    if noise is not None:
        channel = (
            noise.label_channel if isinstance(noise, SyntheticFeatures) else cast(Channel, noise)
        )
    table: Any = matrix(release.features)
    known = Rows.labelled(table, release.released, np.ones(len(table)), channel, correction.name)
    if isinstance(noise, SyntheticFeatures) and release.synthetic is not None:
        more: Any = matrix(release.synthetic.features)
        known = known.with_synthetic(more, release.synthetic.labels, noise)
    answers = known.answers.astype(np.float32)
    loss: LogitLoss = ForwardLoss(answers) if known.forward else TargetLoss(answers)
    # Further steps move the accuracy on test rows by less than its interval's rounding.
    stopping = Stopping(iterations=300, slope=1e-5, gain=1e-8)
    model = fit_logistic(known.matrix, loss, answers.shape[1], _PENALTY, None, stopping)
    return np.asarray(model.predict(matrix(rows)).argmax(axis=1), dtype=np.int32)


def _place(classes: tuple[Any, ...], output: Any) -> int:
    return classes.index(output) if output in classes else -1


def _filled(design: DesignMatrix | BoostingMatrix) -> Matrix:
    def matrix(features: FeatureTable) -> Float32Array:
        table = design.transform(features)
        # Of a release without features only the labels' shares can be learnt.
        return table if table.shape[1] else np.zeros((len(features), 1), dtype=np.float32)

    return matrix
